//! The dashboard: a page of its own, and the API that the page uses.
//!
//! ```text
//!  browser ─▶ guard (Host, Origin) ─▶ session (role) ─▶ api ─▶ feed      figures, once a second
//!                                                       │ ├──▶ requests  rankings, failed requests
//!                                                       │ └──▶ operator  the manager, or the CLI
//!                                                       └────▶ stream    the feed, as events
//! ```
//! *Invariants:* a request is answered only if its `Host` is a name of this server (`guard.rs`);
//! data are given to sessions only; a change needs the role, the token of the session and an origin
//! of our own; no reader holds up the feed, the log or another reader. Text from the network
//! is `surface::legible`, and the page never interprets it. Next file: `dash/api.rs`.

mod api;
mod assets;
mod feed;
mod guard;
mod history;
mod operator;
mod requests;
mod sampler;
mod session;
mod state;
mod stream;
mod tops;
mod users;

pub(crate) use feed::Feed;
pub(crate) use operator::{Cli, Operator, Socket};
pub(crate) use requests::{Clients, Requests, Source};
pub(crate) use state::{Dash, Settings};
pub(crate) use users::Users;

use crate::connection::{self, ReadError};
use crate::deadline::Deadline;
use crate::listener::Stream;
use crate::server::Service;
use api::{Answer, Asked};
use message::Message;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use surface::limits::{DASH_BODY_BYTES_MAX, DASH_CONNECTIONS_MAX, OBSERVE_SECONDS_MAX};

impl Service for Dash {
    const CONNECTIONS_MAX: usize = DASH_CONNECTIONS_MAX;

    fn serve(&self, mut stream: Stream) {
        let deadline = Deadline::after(Duration::from_secs(OBSERVE_SECONDS_MAX));
        let mut request = Message::new();
        let answer = match read(&mut stream, deadline, &mut request) {
            Ok(body) => {
                let (client, local) = match stream.addresses() {
                    Some((client, local)) => (client, Some(local)),
                    None => (IpAddr::V4(Ipv4Addr::LOCALHOST), None),
                };
                api::answer(self, &Asked { request: &request, body: &body, client, local })
            }
            Err(Unread::Refused(status, why)) => Answer::error(status, why),
            Err(Unread::Gone) => return,
        };
        match answer {
            Answer::Stream(id) => stream::serve(self, stream, deadline, &id),
            answer => {
                let is_head = request.method() == b"HEAD";
                // A client that leaves, or does not read, is cut.
                if connection::write_all(&mut stream, deadline, &answer.bytes(is_head)).is_ok() {
                    connection::close(&mut stream, deadline);
                }
            }
        }
    }

    fn refuse(&self, mut stream: Stream) {
        use std::io::Write as _;
        if stream.set_nonblocking(true).is_ok() {
            let _ = stream.write(&Answer::error(503, "too many connections").bytes(false));
        }
    }
}

/// A request that is not answered as it asks.
enum Unread {
    Refused(u16, &'static str),
    Gone,
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Unread {
        Unread::Gone
    }
}

/// Reads a request; returns its body.
fn read(stream: &mut Stream, deadline: Deadline, request: &mut Message) -> Result<Vec<u8>, Unread> {
    let mut body = connection::read_head(stream, deadline, request).map_err(|error| match error {
        ReadError::TooLarge => Unread::Refused(431, "request head too large"),
        ReadError::Malformed(why) => Unread::Refused(400, why),
        ReadError::Closed | ReadError::Io(_) => Unread::Gone,
    })?;
    if request.has("Transfer-Encoding") {
        return Err(Unread::Refused(411, "a body needs a length"));
    }
    let mut lengths = request.get_all("Content-Length");
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => 0,
        (Some(text), None) => {
            let number = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = number.and_then(|text| text.parse::<usize>().ok());
            length.ok_or(Unread::Refused(400, "wrong Content-Length"))?
        }
        _ => return Err(Unread::Refused(400, "several Content-Length")),
    };
    if length > DASH_BODY_BYTES_MAX {
        return Err(Unread::Refused(413, "request body too large"));
    }
    let mut room = [0; 4096];
    while body.len() < length {
        stream.set_timeout(deadline.left()?)?;
        match stream.read(&mut room) {
            Ok(0) => return Err(Unread::Gone),
            Ok(count) => body.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    body.truncate(length);
    Ok(body)
}

#[cfg(test)]
mod tests;
