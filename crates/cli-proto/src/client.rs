//! The client's end of a connection: greeting, authentication, then one reply per command.
//!
//! States: *greeting* → *challenged* → *ready*, or *greeting* → *ready* if no secret is required.

use crate::auth::{self, CHALLENGE_BYTES, Challenge};
use crate::command_line;
use crate::response::{FrameError, Response, ResponseReader, status};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server sent a challenge: answer it with [`answer_line`].
    Challenge(Challenge),
    /// The session is open; the banner.
    Ready(String),
    /// The reply to the next command in order.
    Reply(Response),
    /// The server refused us, or its greeting was not one of the CLI.
    Rejected(Response),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Challenged,
    Ready,
    Rejected,
}

/// The client's end of a connection.
#[derive(Debug)]
pub struct ClientSession {
    reader: ResponseReader,
    state: State,
}

impl ClientSession {
    /// A session that accepts replies of up to `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> ClientSession {
        ClientSession { reader: ResponseReader::new(limit_bytes), state: State::Greeting }
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
    }

    /// The next event, `None` when more bytes are needed.
    ///
    /// # Errors
    /// The bytes received are not a reply.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<ClientEvent>, FrameError> {
        let Some(response) = self.reader.next()? else {
            return Ok(None);
        };
        let event = match (self.state, response.status) {
            (State::Greeting, status::AUTHENTICATE) => {
                match response.body.as_bytes().first_chunk::<CHALLENGE_BYTES>() {
                    Some(challenge) => {
                        self.state = State::Challenged;
                        ClientEvent::Challenge(*challenge)
                    }
                    None => self.reject(response),
                }
            }
            // A server with a small cli_limit truncates its banner too.
            (State::Greeting | State::Challenged, status::OK | status::TRUNCATED) => {
                self.state = State::Ready;
                ClientEvent::Ready(response.body)
            }
            (State::Greeting | State::Challenged | State::Rejected, _) => self.reject(response),
            (State::Ready, _) => ClientEvent::Reply(response),
        };
        Ok(Some(event))
    }

    fn reject(&mut self, response: Response) -> ClientEvent {
        self.state = State::Rejected;
        ClientEvent::Rejected(response)
    }
}

/// The line that answers a challenge; `secret` is the whole content of the secret file.
#[must_use]
pub fn answer_line(challenge: &Challenge, secret: &[u8]) -> String {
    format!("auth {}\n", auth::answer(challenge, secret))
}

/// The line of a command given as words.
#[must_use]
pub fn command_line<W: AsRef<str>>(command: &[W]) -> String {
    let quoted: Vec<String> = command.iter().map(|word| command_line::quote(word.as_ref())).collect();
    quoted.join(" ") + "\n"
}

/// The line for arguments of a program's own command line: joined by blanks and otherwise
/// unchanged, so that `varnishadm ban "req.url ~ ^/x"` is the command as written there. An argument
/// that would end the line is quoted.
#[must_use]
pub fn typed_line<W: AsRef<str>>(arguments: &[W]) -> String {
    let as_typed = |argument: &str| {
        if argument.contains(['\n', '\r']) { command_line::quote(argument) } else { argument.to_owned() }
    };
    let typed: Vec<String> = arguments.iter().map(|argument| as_typed(argument.as_ref())).collect();
    typed.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Event, ServerSession};

    #[test]
    fn client_and_server_understand_each_other() {
        let mut server = ServerSession::challenging([b'q'; CHALLENGE_BYTES], 1000);
        let mut client = ClientSession::new(1000);
        client.push(&server.greeting("banner").encode());
        let Ok(Some(ClientEvent::Challenge(challenge))) = client.next() else { panic!("no challenge") };
        server.push(answer_line(&challenge, b"secret").as_bytes());
        let Some(Event::Answer(answer)) = server.next() else { panic!("no answer") };
        client.push(&server.authenticate(&answer, b"secret", "banner").encode());
        assert_eq!(client.next(), Ok(Some(ClientEvent::Ready("banner".to_owned()))));
        server.push(command_line(&["vcl.inline", "a", "two \"words\"\n"]).as_bytes());
        let Some(Event::Command(command)) = server.next() else { panic!("no command") };
        assert_eq!(command.words, ["vcl.inline", "a", "two \"words\"\n"]);
        client.push(&Response::new(106, "no").encode());
        assert_eq!(client.next(), Ok(Some(ClientEvent::Reply(Response::new(106, "no")))));
    }

    #[test]
    fn typed_arguments_are_one_line_whatever_they_hold() {
        assert_eq!(typed_line(&["ban", "req.url ~ ^/x"]), "ban req.url ~ ^/x\n");
        assert_eq!(typed_line(&["vcl.inline", "a", "vcl 4.1;\nx"]), "vcl.inline a \"vcl 4.1;\\nx\"\n");
    }

    #[test]
    fn a_banner_cut_to_cli_limit_lets_us_in() {
        let mut client = ClientSession::new(1000);
        let mut banner = Response::ok("a banner that is longer than the limit");
        banner.truncate(10);
        client.push(&banner.encode());
        assert_eq!(client.next(), Ok(Some(ClientEvent::Ready("a banner ".to_owned()))));
    }

    #[test]
    fn a_server_that_turns_us_away_is_reported() {
        let mut client = ClientSession::new(1000);
        client.push(&Response::new(107, "short").encode());
        assert!(matches!(client.next(), Ok(Some(ClientEvent::Rejected(_)))));
    }
}
