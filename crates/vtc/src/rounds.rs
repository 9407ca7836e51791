//! Repetition of a client's or server's block, and its connections: `-repeat`, `-keepalive`,
//! `-rcvbuf`.

use crate::journal::Journal;
use crate::specification::Arguments;
use crate::test::Outcome;

/// Number of repetitions, and the connections they use.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Number of times that the block is executed.
    pub repeat: u64,
    /// All on one connection.
    pub keepalive: bool,
    /// Size of the receive buffer, in bytes; `None` for the system's choice.
    pub receive_buffer_bytes: Option<usize>,
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { repeat: 1, keepalive: false, receive_buffer_bytes: None }
    }
}

impl Rounds {
    /// Parses an option; false if it is not one of these.
    ///
    /// # Errors
    /// Its argument is missing or wrong.
    pub fn option(&mut self, option: &str, arguments: &mut Arguments) -> Outcome<bool> {
        match option {
            "-repeat" => self.repeat = arguments.number("the count")?,
            "-keepalive" => self.keepalive = true,
            "-rcvbuf" => self.receive_buffer_bytes = usize::try_from(arguments.number("the size")?).ok(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Logs the start.
    pub fn announce(&self, journal: &Journal, address: &str) {
        let how = if self.keepalive { " using keepalive" } else { "" };
        journal.log(2, format!("Started on {address} ({} iterations{how})", self.repeat));
    }
}
