//! vtc.vsl and vtc.vsl_replay: log records of invented transactions, to test programs that read the
//! log.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::{Transaction, VmodContext};
use surface::tag::Tag;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Transaction numbers have 30 bits.
const NUMBER_MAX: i64 = (1 << 30) - 1;

fn record(
    context: &mut dyn VmodContext,
    number: i64,
    tag: &str,
    is_backend: bool,
    payload: &[u8],
) -> Result<(), Failure> {
    // Compat: unlike in a query, upper and lower case differ.
    let known = Tag::from_name(tag).filter(|known| known.name() == tag);
    let tag = known.ok_or_else(|| Failure(format!("No such tag: {tag}")))?;
    let number = u64::try_from(number).ok().filter(|_| number <= NUMBER_MAX);
    let number = number.ok_or_else(|| Failure("id out of bounds".to_owned()))?;
    let transaction = if is_backend { Transaction::Backend(number) } else { Transaction::Client(number) };
    context.log_for(transaction, tag, payload);
    Ok(())
}

/// `vtc.vsl()`
pub(crate) fn vsl(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let tag = String::from_utf8_lossy(scratch.get(arguments.text(1)));
    let is_backend = scratch.get(arguments.text(2)) == b"b";
    record(context, arguments.int(0), &tag, is_backend, scratch.get(arguments.text(3)))?;
    done(Value::Void)
}

/// `vtc.vsl_replay()`
pub(crate) fn replay(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    for line in scratch.get(arguments.text(0)).split(|byte| matches!(byte, b'\r' | b'\n')) {
        if let Some((number, tag, is_backend, payload)) = parse(line) {
            record(context, number, tag, is_backend, payload)?;
        }
    }
    done(Value::Void)
}

fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii_start();
    line.split_at(line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len()))
}

/// Number, tag, side and payload of a line; `None` if it shows no record. In a line that begins
/// with a star, everything before `vsl|` comes from varnishtest.
fn parse(line: &[u8]) -> Option<(i64, &str, bool, &[u8])> {
    const MARK: &[u8] = b"vsl|";
    let line = match line.first() {
        Some(b'*') => &line[line.windows(MARK.len()).position(|window| window == MARK)? + MARK.len()..],
        _ => line,
    };
    let (number, rest) = word(line);
    let (tag, rest) = word(rest);
    let (side, rest) = word(rest);
    let is_backend = match side.first()? {
        b'c' => false,
        b'b' => true,
        _ => return None,
    };
    let payload = rest.get(1..).unwrap_or_default();
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, std::str::from_utf8(tag).ok()?, is_backend, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs_are_read_and_others_are_not() {
        for (line, expected) in [
            ("**** v1    vsl|       1001 ReqURL          c /a b", Some((1001, "ReqURL", false, &b"/a b"[..]))),
            ("      1002 Begin          b bereq 1001 fetch", Some((1002, "Begin", true, b"bereq 1001 fetch"))),
            ("1001 End             c ", Some((1001, "End", false, b""))),
            ("1001 End             c", Some((1001, "End", false, b""))),
            ("         0 CLI            - Rd ping", None),
            ("*** v1 debug|Debug: nothing", None),
            ("", None),
            ("x ReqURL c /", None),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }
}
