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
pub mod json;
pub mod request;
pub mod response;
pub mod server;
pub mod table;
pub mod words;

/// Runs every parser of this crate over arbitrary bytes: the entry of the fuzz target. Must never panic.
pub fn exercise(bytes: &[u8]) {
    let _ = words::split(bytes);
    let mut commands = request::RequestReader::new(1 << 16);
    for piece in bytes.chunks(7) {
        commands.push(piece);
        while commands.next().is_some() {}
    }
    let mut session = server::ServerSession::challenging([b'a'; auth::CHALLENGE_BYTES], 1 << 16);
    session.push(bytes);
    while session.next().is_some() {}
    let mut responses = response::ResponseReader::new(1 << 16);
    for piece in bytes.chunks(5) {
        responses.push(piece);
        while let Ok(Some(_)) = responses.next() {}
    }
    let mut client = client::ClientSession::new(1 << 16);
    client.push(bytes);
    while let Ok(Some(_)) = client.next() {}
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
