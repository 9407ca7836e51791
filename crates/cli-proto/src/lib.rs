//! The protocol of the management CLI, as machines without sockets: bytes in, events out.
//!
//! [`words`] cuts a command line into words; [`request`] cuts a byte stream into command lines and here-documents;
//! [`response`] frames replies; [`auth`] is the challenge and its answer; [`server`] and [`client`] put them together for
//! the two ends of a connection. [`json`] holds the shape of `-j` replies, [`table`] the layout of column output.
//!
//! Not here: sockets, the commands themselves (`surface::cli` has their table, `manager` and `worker` do them).
//! Invariant: nothing that the other end sends panics or makes a buffer grow past its limit.
//! Source: the CLI of Varnish 7.1, observed.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod auth;
pub mod client;
pub mod command_line;
pub mod json;
pub mod request;
pub mod response;
pub mod server;
pub mod table;

/// Runs every parser of this crate over arbitrary bytes: the entry of the fuzz target.
///
/// # Panics
/// When what is read depends on the pieces in which it arrives, when words that were quoted or a reply that was written are read
/// otherwise, or when a stranger's command is heard.
pub fn exercise(bytes: &[u8]) {
    if let Ok(words) = command_line::split(bytes) {
        let quoted: Vec<String> = words.iter().map(|word| command_line::quote(word)).collect();
        assert_eq!(command_line::split(quoted.join(" ").as_bytes()), Ok(words));
    }
    let limit = bytes.first().map_or(1 << 16, |&first| usize::from(first) * 4);
    let whole = requests(bytes, bytes.len().max(1), limit);
    assert_eq!(requests(bytes, 1, limit), whole, "commands are the same in any pieces");
    assert_eq!(requests(bytes, 7, limit), whole, "commands are the same in any pieces");
    let mut session = server::ServerSession::challenging([b'a'; auth::CHALLENGE_BYTES], 1 << 16);
    session.push(bytes);
    while let Some(event) = session.next() {
        if let server::Event::Command(command) = event {
            assert!(server::OPEN_VERBS.contains(&command.words[0].as_str()), "{command:?}");
        }
    }
    let whole = responses(bytes, bytes.len().max(1));
    assert_eq!(responses(bytes, 5), whole, "replies are the same in any pieces");
    for reply in whole.0 {
        assert_eq!(responses(&reply.encode(), 3), (vec![reply], None));
    }
    let mut client = client::ClientSession::new(1 << 16);
    client.push(bytes);
    while let Ok(Some(_)) = client.next() {}
}

fn requests(bytes: &[u8], piece: usize, limit: usize) -> Vec<request::Request> {
    let (mut reader, mut out) = (request::RequestReader::new(limit), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        while let Some(request) = reader.next() {
            out.push(request);
        }
    }
    out
}

fn responses(bytes: &[u8], piece: usize) -> (Vec<response::Response>, Option<response::FrameError>) {
    let (mut reader, mut out) = (response::ResponseReader::new(1 << 16), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(reply)) => out.push(reply),
                Ok(None) => break,
                Err(error) => return (out, Some(error)),
            }
        }
    }
    (out, None)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn arbitrary_bytes_never_panic() {
        let mut random = SmallRng::seed_from_u64(7);
        let alphabet = b"ab<< \n\r\"\\x0147-\t\0\xff200 8       \nEOT";
        for _ in 0..2000 {
            let length = random.gen_range(0..80);
            let bytes: Vec<u8> = (0..length).map(|_| alphabet[random.gen_range(0..alphabet.len())]).collect();
            super::exercise(&bytes);
        }
        super::exercise(b"200 99999999\n");
        super::exercise(b"a b << \"\"\n\n");
        super::exercise(&[b'<'; 1 << 17]);
    }
}
