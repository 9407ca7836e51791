//! Words that `expect` accepts in a stream. Source: vtc(7), stream, expect.

use crate::http2::frame::{ACK, ERRORS, Frame, KINDS, kind};
use crate::http2::hpack::{Header, Table};
use crate::http2::state::State;

/// The entries of this table come after the 61 that every table has.
const STATIC_ENTRIES: u32 = 61;

/// The value of a word: of a field, or the word itself. `None` for a missing field.
///
/// # Errors
/// The last frame has no such field.
pub(super) fn resolve(state: &mut State, id: u32, word: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let text = String::from_utf8_lossy(word);
    let itself = || Ok(Some(word.to_vec()));
    if let Some(code) = ERRORS.iter().position(|name| *name == text) {
        return Ok(number(code));
    }
    if let Some(rest) = text.strip_prefix("tbl.dec") {
        return Ok(of_table(&state.decoder, rest).unwrap_or_else(|| Some(word.to_vec())));
    }
    if let Some(rest) = text.strip_prefix("tbl.enc") {
        return Ok(of_table(&state.encoder, rest).unwrap_or_else(|| Some(word.to_vec())));
    }
    let Some((group, field)) = text.split_once('.') else { return itself() };
    let connection_window = state.window_bytes;
    let stream = state.stream(id);
    let last = stream.last.as_ref();
    match group {
        "req" => Ok(of_message(&stream.request, stream.body.as_deref(), field)),
        "resp" => Ok(of_message(&stream.response, stream.body.as_deref(), field)),
        "stream" => Ok(match field {
            "window" => number(if id == 0 { connection_window } else { stream.window_bytes }),
            "weight" => Some(stream.weight).filter(|_| id != 0).and_then(number),
            "dependency" => Some(stream.dependency).filter(|_| id != 0).and_then(number),
            _ => Some(word.to_vec()),
        }),
        _ => of_frame(last, group, field).unwrap_or_else(itself),
    }
}

fn number(number: impl ToString) -> Option<Vec<u8>> {
    Some(number.to_string().into_bytes())
}

fn truth(is_true: bool) -> Option<Vec<u8>> {
    number(is_true)
}

/// `None` for a word that is not a field of a table.
fn of_table(table: &Table, field: &str) -> Option<Option<Vec<u8>>> {
    match field {
        ".size" => return Some(number(table.bytes())),
        ".maxsize" => return Some(number(table.bytes_max())),
        ".length" => return Some(number(table.length())),
        _ => {}
    }
    let (index, part) = field.strip_prefix('[')?.split_once("].")?;
    let entry = index.parse::<u32>().ok()?.checked_add(STATIC_ENTRIES).and_then(|index| table.entry(index));
    match part {
        "key" => Some(entry.map(|(name, _)| name.to_vec())),
        "value" => Some(entry.map(|(_, value)| value.to_vec())),
        _ => None,
    }
}

fn of_message(headers: &[Header], body: Option<&[u8]>, field: &str) -> Option<Vec<u8>> {
    let name = match field {
        "body" => return body.map(<[u8]>::to_vec),
        "bodylen" => return number(body.map_or(0, <[u8]>::len)),
        "url" => ":path".to_owned(),
        "status" | "method" | "authority" | "scheme" => format!(":{field}"),
        _ => field.strip_prefix("http.")?.to_owned(),
    };
    headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value.clone())
}

/// `None` for a word that is not a field of a frame.
fn of_frame(last: Option<&Frame>, group: &str, field: &str) -> Option<Result<Option<Vec<u8>>, String>> {
    let wanted = match group {
        "frame" => {
            return Some(last.ok_or_else(|| "No frame received yet.".to_owned()).and_then(|last| any(last, field)));
        }
        "ping" => kind::PING,
        "winup" => kind::WINDOW_UPDATE,
        "prio" => kind::PRIORITY,
        "rst" => kind::RST_STREAM,
        "settings" => kind::SETTINGS,
        "push" => kind::PUSH_PROMISE,
        "goaway" => kind::GOAWAY,
        _ => return None,
    };
    let Some(last) = last.filter(|last| last.kind == wanted) else {
        return Some(Err(format!("Last frame was not of type {}", KINDS[usize::from(wanted)])));
    };
    let setting = |id: u16| last.setting(id).and_then(number);
    Some(Ok(match (group, field) {
        ("ping", "data") => Some(last.payload.clone()),
        ("ping" | "settings", "ack") => truth(last.has(ACK)),
        ("winup", "size") | ("rst", "err") | ("goaway", "laststream") => number(last.number(0)),
        ("prio", "stream") => number(last.number(0) & 0x7fff_ffff),
        ("prio", "exclusive") => truth(last.number(0) >> 31 != 0),
        ("prio", "weight") => number(last.payload.get(4).copied().unwrap_or(0)),
        ("settings", "push") => last.setting(2).and_then(|value| truth(value == 1)),
        ("settings", "hdrtbl") => setting(1),
        ("settings", "maxstreams") => setting(3),
        ("settings", "winsize") => setting(4),
        ("settings", "framesize") => setting(5),
        ("settings", "hdrsize") => setting(6),
        ("push", "id") => number(promised(last)),
        ("goaway", "err") => number(last.number(4)),
        ("goaway", "debug") => last.payload.get(8..).filter(|debug| !debug.is_empty()).map(<[u8]>::to_vec),
        _ => return None,
    }))
}

fn any(last: &Frame, field: &str) -> Result<Option<Vec<u8>>, String> {
    Ok(match field {
        "data" => Some(last.payload.clone()).filter(|payload| !payload.is_empty()),
        "type" => number(last.kind),
        "size" => number(last.payload.len()),
        "stream" => number(last.stream),
        "padding" if last.can_be_padded() => number(last.padding()),
        "padding" => return Err("Last frame was not of type DATA, HEADERS or PUSH".to_owned()),
        _ => return Err(format!("a frame has no field '{field}'")),
    })
}

/// The stream that a PUSH_PROMISE promises.
fn promised(frame: &Frame) -> u32 {
    let bytes = frame.unpadded().and_then(|rest| rest.get(..4)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, |bytes| u32::from_be_bytes(bytes) & 0x7fff_ffff)
}
