//! An origin in this process whose answers are a function of their path.
//!
//! `/…/SIZE` has a body of that many bytes, storable for an hour. Parts of the path change that:
//! `until-TIME` expires at this time in seconds since 1970, `ttl-SECONDS` after this time;
//! `slow-MILLISECONDS` is delayed; `text` consists of words; `page-N` is a page that includes N
//! fragments of 200 bytes; `film` supports ranges; `pieces` is sent without a length. It fails at
//! `error` (503), `cut` (the connection ends in the middle) and `reset` (it ends at once).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Largest body that is made, in bytes.
const BODY_BYTES_MAX: usize = 4 << 30;
/// Bytes that PHP sends at a time.
const PIECE_BYTES: usize = 8_000;
/// Words of `text`.
const WORDS: [&str; 16] = [
    "the ", "cache ", "of ", "a ", "page ", "which ", "was ", "fetched ", "from ", "its ", "origin ", "and ",
    "served ", "again ", "<p>", "</p>\n",
];

/// The body that belongs to a path: no two paths share a byte sequence of any length for long.
pub fn body(path: &str, size: usize) -> Vec<u8> {
    let mut state = path
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let is_text = path.split('/').any(|part| part == "text");
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if is_text {
            bytes.extend_from_slice(WORDS[(state >> 60) as usize].as_bytes());
        } else {
            bytes.extend_from_slice(&state.to_le_bytes());
        }
    }
    bytes.truncate(size);
    bytes
}

/// Starts it; returns its port.
pub fn sized_origin() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(port)
}

/// Text after a word in a path.
fn text<'a>(path: &'a str, word: &str) -> Option<&'a str> {
    path.split('/').find_map(|part| part.strip_prefix(word)?.strip_prefix('-'))
}

/// Number after a word in a path.
fn number(path: &str, word: &str) -> Option<u64> {
    text(path, word)?.parse().ok()
}

/// Lifetime of a body, in seconds.
fn lifetime(path: &str) -> u64 {
    let left = || Some(number(path, "until")?.saturating_sub(crate::place::since_1970().as_secs()));
    number(path, "ttl").or_else(left).unwrap_or(3600)
}

/// Path of a fragment.
pub fn fragment_path(at: u64) -> String {
    format!("/fragment/{at}/200")
}

/// A page of `pieces` pieces.
pub fn page_around(pieces: u64, piece: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
    let middle = (0..pieces).flat_map(|at| [piece(at), b"\n".to_vec()].concat());
    b"<html>\n".iter().copied().chain(middle).chain(*b"</html>\n").collect()
}

/// The requested part of a body: first and last byte.
fn part(head: &str, size: usize) -> Option<(usize, usize)> {
    let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    let (_, wanted) = lines.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("range"))?;
    let (first, last) = wanted.trim().strip_prefix("bytes=")?.split_once('-')?;
    let first: usize = first.parse().ok()?;
    let last = last.parse().unwrap_or(usize::MAX).min(size.checked_sub(1)?);
    (first <= last).then_some((first, last))
}

/// A body in chunks, in the form of programs that generate their output.
fn in_pieces(body: &[u8]) -> Vec<u8> {
    let chunk = |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    body.chunks(PIECE_BYTES).map(chunk).chain([b"0\r\n\r\n".to_vec()]).collect::<Vec<_>>().concat()
}

/// Answers a request; returns false if the connection then ends.
fn answer(stream: &mut TcpStream, request: &str) -> bool {
    let path = request.split(' ').nth(1).unwrap_or("/");
    let size = path.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(0).min(BODY_BYTES_MAX);
    if let Some(milliseconds) = number(path, "slow") {
        std::thread::sleep(Duration::from_millis(milliseconds.min(60_000)));
    }
    let has = |word: &str| path.split('/').any(|part| part == word);
    if has("error") {
        return stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").is_ok();
    }
    if has("reset") {
        return false;
    }
    let whole = match number(path, "page") {
        Some(pieces) => page_around(pieces, |at| format!("<esi:include src=\"{}\"/>", fragment_path(at)).into_bytes()),
        None => body(path, size),
    };
    let part = if has("film") { part(request, whole.len()) } else { None };
    let (status, more, sent) = match part {
        Some((first, last)) => {
            let more = format!("ETag: \"film\"\r\nContent-Range: bytes {first}-{last}/{}\r\n", whole.len());
            ("206 Partial Content", more, &whole[first..=last])
        }
        None if has("film") => ("200 OK", "ETag: \"film\"\r\n".to_owned(), &whole[..]),
        None if has("etag") => ("200 OK", "ETag: \"5f3a-64\"\r\n".to_owned(), &whole[..]),
        None => {
            let tags = text(path, "tags").map(|tags| format!("xkey: {}\r\n", tags.replace('+', " ")));
            ("200 OK", tags.unwrap_or_default(), &whole[..])
        }
    };
    if has("pieces") {
        let head = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\nCache-Control: max-age={}\r\n\r\n",
            lifetime(path)
        );
        return stream.write_all(&[head.as_bytes(), &in_pieces(sent)].concat()).is_ok();
    }
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: text/html\r\nCache-Control: max-age={}\r\n{more}\r\n",
        sent.len(),
        lifetime(path)
    );
    let sent = if has("cut") { &sent[..sent.len() / 2] } else { sent };
    stream.write_all(&[head.as_bytes(), sent].concat()).is_ok() && !has("cut")
}

fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        while let Some(end) = memchr::memmem::find(&received, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            received.drain(..end + 4);
            if !answer(&mut stream, &head) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_they_get() {
        assert_eq!(body("/a/100", 100).len(), 100);
        assert_ne!(body("/a/100", 100), body("/b/100", 100));
        assert!(body("/text/90", 90).is_ascii());
        assert_eq!((lifetime("/ttl-5/a/1"), lifetime("/a/1"), lifetime("/until-3/a/1")), (5, 3600, 0));
        assert_eq!(part("GET /film/1/9 HTTP/1.1\r\nRange: bytes=3-20", 9), Some((3, 8)));
        assert_eq!((part("GET / HTTP/1.1\r\nrange: bytes=9-", 9), part("GET / HTTP/1.1", 9)), (None, None));
        assert_eq!(in_pieces(b"abc"), b"3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(page_around(2, |at| vec![b'0' + at as u8]), b"<html>\n0\n1\n</html>\n");
    }
}
