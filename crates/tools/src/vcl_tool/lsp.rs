//! `copal lsp`: a language server for VCL. Source: the Language Server Protocol 3.17.
//!
//! One thread reads messages into a short queue, this one answers them in order. A document is
//! checked after its client has been quiet for [`QUIET`]. The answers come from the compiler, the
//! linter, the formatter and the rows of `surface`. Nothing that a client sends ends the server
//! except `exit` and the end of its input. Positions are UTF-16 only in the protocol.
//! Next files: `lsp/wire.rs`, `lsp/documents.rs`, `lsp/answers.rs`.

mod answers;
mod completion;
mod documents;
mod position;
mod wire;
mod words;

use super::settings::Settings;
use crate::Streams;
use crate::options;
use documents::Documents;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use surface::program::program;
use wire::Received;

/// Time without a message after which changed documents are checked.
const QUIET: Duration = Duration::from_millis(200);
/// Messages that are read ahead.
const QUEUE_MESSAGES: usize = 4;

/// Codes of errors in the protocol.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const NOT_INITIALIZED: i32 = -32002;

pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("lsp", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let mut settings = Settings::default();
    for (letter, argument) in given.options {
        if let Err(text) = settings.take(letter, argument) {
            return options::wrong(program("lsp"), &text, streams);
        }
    }
    // The standard input is locked by this thread, so the reader has a descriptor of its own.
    let input = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(descriptor) => File::from(descriptor),
        Err(error) => return options::wrong(program("lsp"), &format!("no standard input: {error}"), streams),
    };
    serve(input, streams.output, &settings)
}

/// Serves until `exit` or the end of the input. Returns the exit status.
fn serve(input: impl Read + Send + 'static, output: &mut dyn Write, settings: &Settings) -> i32 {
    let (sender, receiver) = sync_channel(QUEUE_MESSAGES);
    // It ends with the input, or with the process: no thread waits for it after `exit`.
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        while let Ok(Some(received)) = wire::read(&mut input) {
            if sender.send(received).is_err() {
                return;
            }
        }
    });
    Server { documents: Documents::default(), settings, state: State::New, output }.run(&receiver)
}

/// State of the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Ending,
    /// After `exit`, with the exit status.
    Ended(i32),
}

struct Server<'a> {
    documents: Documents,
    settings: &'a Settings,
    state: State,
    output: &'a mut dyn Write,
}

impl Server<'_> {
    fn run(&mut self, receiver: &Receiver<Received>) -> i32 {
        let mut is_changed = false;
        loop {
            let received = if is_changed {
                receiver.recv_timeout(QUIET)
            } else {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let done = match received {
                Ok(received) => {
                    let done = self.receive(received, &mut is_changed);
                    if let State::Ended(status) = self.state {
                        return status;
                    }
                    done
                }
                Err(RecvTimeoutError::Timeout) => {
                    is_changed = false;
                    self.publish()
                }
                Err(RecvTimeoutError::Disconnected) => return 1,
            };
            if done.is_err() {
                return 1;
            }
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        self.documents.check(self.settings);
        let messages = self.documents.publications();
        messages.iter().try_for_each(|message| wire::write(self.output, message))
    }

    fn receive(&mut self, received: Received, is_changed: &mut bool) -> io::Result<()> {
        let body = match received {
            Received::Body(body) => body,
            Received::Unreadable(text) => return self.refuse(&Value::Null, PARSE_ERROR, text),
        };
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            return self.refuse(&Value::Null, PARSE_ERROR, "not JSON");
        };
        let id = message.get("id").filter(|id| id.is_number() || id.is_string());
        let Some(method) = message["method"].as_str() else {
            // An answer: this server asks nothing.
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            return if is_answer { Ok(()) } else { self.refuse(&Value::Null, INVALID_REQUEST, "no method") };
        };
        match id {
            Some(id) => self.request(id, method, &message["params"]),
            None => {
                self.notification(method, &message["params"], is_changed);
                Ok(())
            }
        }
    }

    fn refuse(&mut self, id: &Value, code: i32, text: &str) -> io::Result<()> {
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
        wire::write(self.output, &error)
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> io::Result<()> {
        let result = match (self.state, method) {
            (State::New, "initialize") => {
                self.state = State::Running;
                Ok(answers::capabilities())
            }
            (State::New, _) => return self.refuse(id, NOT_INITIALIZED, "initialize comes first"),
            (State::Ending | State::Ended(_), _) => return self.refuse(id, INVALID_REQUEST, "after shutdown"),
            (State::Running, "shutdown") => {
                self.state = State::Ending;
                Ok(Value::Null)
            }
            (State::Running, _) => {
                if method == "textDocument/codeAction" {
                    self.documents.check(self.settings);
                }
                answers::answer(&self.documents, method, params)
                    .unwrap_or(Err((METHOD_NOT_FOUND, "no such method".to_owned())))
            }
        };
        match result {
            Ok(result) => wire::write(self.output, &json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Err((code, text)) => self.refuse(id, code, &text),
        }
    }

    /// A notification has no answer; what is wrong with it goes to the log of the client.
    fn notification(&mut self, method: &str, params: &Value, is_changed: &mut bool) {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or("");
        let done = match method {
            "exit" => {
                self.state = State::Ended(i32::from(self.state != State::Ending));
                return;
            }
            _ if self.state != State::Running => return,
            "textDocument/didOpen" => match params["textDocument"]["text"].as_str() {
                Some(text) if !uri.is_empty() => self.documents.set(uri, text.to_owned()),
                _ => Err("a document without a URI or text"),
            },
            "textDocument/didChange" => {
                let events = params["contentChanges"].as_array().into_iter().flatten();
                events.into_iter().try_for_each(|event| self.documents.change(uri, event))
            }
            "textDocument/didClose" => {
                self.documents.close(uri);
                Ok(())
            }
            // Others, such as cancellations: requests are answered in order and soon.
            _ => return,
        };
        *is_changed = true;
        if let Err(text) = done {
            let params = json!({ "type": 2, "message": format!("copal lsp: {text}") });
            let message = json!({ "jsonrpc": "2.0", "method": "window/logMessage", "params": params });
            let _ = wire::write(self.output, &message);
        }
    }
}
