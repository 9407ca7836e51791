//! The CLI for other parts of Copal: commands as words, replies as status and text.

use super::connection::CliConnection;
use crate::attach_timeout::AttachTimeout;
use cli_proto::client::command_line;
use std::ffi::OsStr;
use std::time::Duration;
use surface::program::Called;

/// Time limit for a reply.
const REPLY: Duration = Duration::from_secs(60);

/// An authenticated connection to the CLI of a server.
pub struct CliClient(CliConnection);

impl CliClient {
    /// Connects to the server with this name or work directory, and proves the secret, which the
    /// user must be able to read.
    ///
    /// # Errors
    /// There is no server, or it refuses; with the message for the operator.
    pub fn open(name: &OsStr) -> Result<CliClient, String> {
        let connection = CliConnection::by_name(Some(name), None, AttachTimeout(Some(1.0)), Called::Copal);
        let mut connection = connection.map_err(|(_, message)| message)?;
        connection.limit_replies(Some(REPLY));
        Ok(CliClient(connection))
    }

    /// Executes a command, given as words. Returns the status and the text of the reply.
    ///
    /// # Errors
    /// The connection is of no use any more, with the reason.
    pub fn ask(&mut self, words: &[String]) -> Result<(u16, String), String> {
        self.0.send(command_line(words).as_bytes()).map_err(|(_, message)| message)?;
        let reply = self.0.reply().map_err(|(_, message)| message)?;
        Ok((reply.status, reply.body))
    }
}
