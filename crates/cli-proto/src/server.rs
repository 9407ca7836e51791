//! The server's end of a connection: allowed commands, and the end of the connection.
//!
//! States: *challenged* → (right answer) → *open* → *closed*. While challenged, only `help`,
//! `ping`, `auth` and `quit` are allowed, lines are short, and every reply but 200 closes the
//! connection.

use crate::auth::{self, Challenge};
use crate::request::{Command, Request, RequestReader};
use crate::response::{Response, status};
use surface::limits::CLI_UNAUTHENTICATED_LINE_BYTES_MAX;

/// The reply to an unknown verb.
pub const UNKNOWN_REQUEST: &str = "Unknown request.\nType 'help' for more info.\n";

/// Verbs that need no authentication.
pub const OPEN_VERBS: [&str; 4] = ["help", "ping", "auth", "quit"];

/// Next action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Execute this and pass its reply to [`ServerSession::reply`].
    Command(Command),
    /// Check this answer with [`ServerSession::authenticate`] and pass the reply to
    /// [`ServerSession::reply`].
    Answer(String),
    /// Send this; it has already passed through [`ServerSession::reply`].
    Send(Response),
}

/// The server's end of a connection.
#[derive(Debug)]
pub struct ServerSession {
    reader: RequestReader,
    challenge: Option<Challenge>,
    limit_bytes: usize,
    closed: bool,
}

impl ServerSession {
    /// A session whose peer is trusted from the start. Commands may have up to `limit_bytes`.
    #[must_use]
    pub fn open(limit_bytes: usize) -> ServerSession {
        ServerSession { reader: RequestReader::new(limit_bytes), challenge: None, limit_bytes, closed: false }
    }

    /// A session whose peer must answer `challenge` first.
    #[must_use]
    pub fn challenging(challenge: Challenge, limit_bytes: usize) -> ServerSession {
        let reader = RequestReader::cutting(CLI_UNAUTHENTICATED_LINE_BYTES_MAX);
        ServerSession { reader, challenge: Some(challenge), limit_bytes, closed: false }
    }

    /// The first thing to send: the challenge, or the banner.
    #[must_use]
    pub fn greeting(&self, banner: &str) -> Response {
        match &self.challenge {
            Some(challenge) => Response::new(
                status::AUTHENTICATE,
                format!("{}\n\nAuthentication required.\n", String::from_utf8_lossy(challenge)),
            ),
            None => Response::ok(banner),
        }
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.reader.push(bytes);
        }
    }

    /// Number of bytes of an incomplete command that are held.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.reader.pending_bytes()
    }

    /// Accepts no more of the incomplete command: it is refused as too long.
    pub fn refuse_pending(&mut self) {
        self.reader.refuse();
    }

    /// True if the connection must be closed once all output has been sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// True if the peer has authenticated.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.challenge.is_none()
    }

    /// The next thing to do, `None` when more bytes are needed or the session is closed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Event> {
        if self.closed {
            return None;
        }
        let command = match self.reader.next()? {
            Request::Command(command) => command,
            Request::Empty => {
                return Some(self.send(status::SYNTAX, format!("{UNKNOWN_REQUEST}Empty CLI command.\n")));
            }
            Request::Malformed(error) => {
                let body = format!("{UNKNOWN_REQUEST}Syntax Error: {}\n", error.text());
                return Some(self.send(status::SYNTAX, body));
            }
            Request::TooLong => return Some(self.send(status::CLOSE, "Command too long\n".to_owned())),
        };
        let verb = command.words[0].as_str();
        if self.challenge.is_some() {
            if verb == "auth" && command.words.len() == 2 {
                return Some(Event::Answer(command.words[1].clone()));
            }
            if !OPEN_VERBS.contains(&verb) {
                return Some(self.send(status::UNKNOWN, UNKNOWN_REQUEST.to_owned()));
            }
        }
        Some(Event::Command(command))
    }

    /// Checks an answer against the content of the secret file; if it is right, the session opens
    /// and the reply is the banner.
    pub fn authenticate(&mut self, answer: &str, secret: &[u8], banner: &str) -> Response {
        let Some(challenge) = &self.challenge else {
            return Response::ok(banner);
        };
        if !auth::is_right(challenge, secret, answer) {
            return Response::new(status::CLOSE, "");
        }
        self.challenge = None;
        self.reader.set_limit(self.limit_bytes);
        Response::ok(banner)
    }

    /// Processes the reply to a command before it is sent: some replies end the session.
    pub fn reply(&mut self, response: &Response) {
        if response.status == status::CLOSE || (self.challenge.is_some() && response.status != status::OK) {
            self.closed = true;
        }
    }

    fn send(&mut self, status: u16, body: String) -> Event {
        let response = Response::new(status, body);
        self.reply(&response);
        Event::Send(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: Challenge = *b"abcdefghijklmnopqrstuvwxyzabcdef";

    #[test]
    fn the_right_answer_opens_the_session() {
        let mut session = ServerSession::challenging(CHALLENGE, 1000);
        let greeting = session.greeting("banner");
        assert_eq!((greeting.status, greeting.body.len()), (107, 59));
        session.push(format!("auth {}\n\nvcl.list {}\n", auth::answer(&CHALLENGE, b"s"), "x".repeat(100)).as_bytes());
        let Some(Event::Answer(answer)) = session.next() else { panic!("no answer") };
        let reply = session.authenticate(&answer, b"s", "banner");
        assert_eq!(reply, Response::ok("banner"));
        session.reply(&reply);
        assert!(matches!(session.next(), Some(Event::Command(command)) if command.words[0] == "vcl.list"));
        assert!(!session.is_closed());
    }

    #[test]
    fn strangers_may_ping_and_nothing_else() {
        let mut session = ServerSession::challenging(CHALLENGE, 1000);
        session.push(b"ping\nstop\nping\n");
        assert!(matches!(session.next(), Some(Event::Command(_))));
        session.reply(&Response::ok("PONG"));
        assert_eq!(session.next(), Some(Event::Send(Response::new(101, UNKNOWN_REQUEST))));
        assert!(session.is_closed());
        assert_eq!(session.next(), None);
    }

    #[test]
    fn an_overlong_line_of_a_stranger_is_run_in_pieces_as_in_varnish() {
        // The answers of Varnish 7.1 to the same bytes: 200 and 200, 200 and 101, 101.
        let ping = |bytes: usize| format!("ping {}\n", "x".repeat(bytes - 5));
        for (sent, pings, refused) in [
            (ping(80), 1, false),
            (ping(81), 1, false),
            (ping(82), 1, true),
            (ping(200), 1, true),
            (format!("help{}\nping\n", " ".repeat(200)), 2, false),
            ("x".repeat(81), 0, true),
            ("x".repeat(5000), 0, true),
        ] {
            for piece in [1, 7, 5000] {
                let mut session = ServerSession::challenging(CHALLENGE, 1000);
                let mut found = 0;
                for bytes in sent.as_bytes().chunks(piece) {
                    session.push(bytes);
                    while let Some(event) = session.next() {
                        match event {
                            Event::Command(_) => found += 1,
                            other => assert_eq!(other, Event::Send(Response::new(101, UNKNOWN_REQUEST)), "{sent}"),
                        }
                    }
                }
                assert_eq!((found, session.is_closed()), (pings, refused), "{sent} in pieces of {piece}");
                assert!(session.pending_bytes() <= CLI_UNAUTHENTICATED_LINE_BYTES_MAX || session.is_closed());
            }
        }
    }

    #[test]
    fn strangers_have_no_here_documents() {
        let mut session = ServerSession::challenging(CHALLENGE, 1000);
        session.push(b"ping << E\n");
        assert!(matches!(session.next(), Some(Event::Command(command)) if command.words == ["ping", "<<", "E"]));
    }

    #[test]
    fn a_wrong_answer_or_an_endless_line_closes() {
        let mut session = ServerSession::challenging(CHALLENGE, 1000);
        let reply = session.authenticate("00", b"s", "banner");
        assert_eq!(reply.status, 500);
        session.reply(&reply);
        assert!(session.is_closed());
        let mut session = ServerSession::challenging(CHALLENGE, 1000);
        session.push(&[b'x'; 81]);
        assert!(matches!(session.next(), Some(Event::Send(Response { status: 101, .. }))));
        assert!(session.is_closed());
    }
}
