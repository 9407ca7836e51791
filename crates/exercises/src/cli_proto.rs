//! Arbitrary bytes on both ends of a CLI connection.

use cli_proto::{auth, client, command_line, request, response, server};

/// Runs every parser of the protocol over `bytes`.
///
/// # Panics
/// When the result depends on the pieces in which the bytes arrive, when quoted words or a written
/// reply are read back differently, or when a command is executed before authentication.
pub fn both_ends(bytes: &[u8]) {
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
