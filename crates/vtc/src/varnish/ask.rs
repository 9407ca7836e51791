//! Commands to the daemon's CLI, and the expected answers.

use cli_proto::response::{Response, status};

use super::Varnish;
use crate::matching;
use crate::test::{Cancel, Outcome};

impl Varnish {
    /// Sends a command and waits for the answer.
    pub(super) fn ask(&mut self, command: &[u8], cancel: &Cancel) -> Outcome<Response> {
        let journal = self.journal.clone();
        self.launched(cancel)?.cli.ask(&journal, Some(command), cancel)
    }

    /// The answer's text; the command must succeed.
    pub(super) fn ask_ok(&mut self, command: &str, cancel: &Cancel) -> Outcome<String> {
        let reply = self.ask(command.as_bytes(), cancel)?;
        if reply.is_ok() {
            return Ok(reply.body);
        }
        Err(self.journal.fail(format!("CLI {command} command failed: {} {}", reply.status, reply.body)))
    }

    /// Sends a command whose answer must have a status or match a regex.
    pub(super) fn ask_expecting(
        &mut self,
        command: &[u8],
        wanted: Option<u16>,
        regex: Option<&pcre2::bytes::Regex>,
        cancel: &Cancel,
    ) -> Outcome {
        let reply = self.ask(command, cancel)?;
        self.journal.log(2, format!("CLI {:03} <{}>", reply.status, String::from_utf8_lossy(command)));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != reply.status) {
            let said = format!("FAIL CLI response {} expected {wanted}: {}", reply.status, reply.body.trim_end());
            return Err(self.journal.fail(said));
        }
        if let Some(regex) = regex.filter(|regex| !matching::occurs(regex, reply.body.as_bytes())) {
            return Err(self.journal.fail(format!("Expect failed: the answer does not match \"{}\"", regex.as_str())));
        }
        Ok(())
    }

    pub(super) fn ask_for_json(&mut self, command: &[u8], cancel: &Cancel) -> Outcome {
        let reply = self.ask(command, cancel)?;
        self.journal.log(2, format!("CLI {:03} <{}>", reply.status, String::from_utf8_lossy(command)));
        if !reply.is_ok() {
            return Err(self.journal.fail(format!("FAIL CLI response {} expected {}", reply.status, status::OK)));
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(&reply.body) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.journal.fail(format!("FAIL CLI, not good JSON: {error}"))),
        }
    }
}
