//! `bereq.filters`: what the client's body goes through on its way to the origin.
//!
//! Gunzip is the only filter of that side. Setting it up changes the headers that describe the body, which is then sent
//! chunked, since nobody knows how long it will be: a body that is held whole is not unpacked as a whole either. A retry
//! finds the headers as they were. Source: VCL of Varnish 7.7. Next file: `send.rs`.

use super::Fetch;
use super::filters::Filters;
use crate::logged::{self, BEREQ};
use surface::limits::FILTER_STEP_BYTES_MAX;

/// Every name that the list may hold.
const KNOWN: &[u8] = b"gunzip";

/// Whether a list has filters of this side only.
///
/// # Errors
/// The text for the log, with the first name that is not known.
pub(super) fn check(list: &[u8]) -> Result<(), String> {
    let names = list.split(|byte| *byte == b' ').filter(|name| !name.is_empty());
    match { names }.find(|name| *name != KNOWN) {
        Some(unknown) => Err(format!("Filter '...{}' not found", String::from_utf8_lossy(unknown))),
        None => Ok(()),
    }
}

impl Fetch {
    /// Sets the filters up, unless that has happened and nothing has gone through them yet.
    ///
    /// # Errors
    /// The text for the log: a name is not known.
    pub(super) fn open_request_filters(&mut self) -> Result<(), String> {
        if self.task.attempt.body_stages.is_some() || !self.task.life.body.is_present() {
            return Ok(());
        }
        self.restore_body_headers();
        let Some(list) = &self.task.choices.body_filters else { return Ok(()) };
        let level = u32::try_from(self.task.order.parameters.gzip_level).unwrap_or(6).min(9);
        let stages = Filters::open(list, level, &mut self.log, BEREQ, &mut self.task.bereq, &self.context.counters)?;
        self.task.attempt.is_unpacked = !stages.is_empty();
        self.task.life.held.set_at_least(&self.context.memory, stages.memory_bytes() + FILTER_STEP_BYTES_MAX);
        self.task.attempt.body_stages = Some(stages);
        Ok(())
    }

    /// The headers say again what the body is before it goes through the filters: it is about to be sent once more.
    pub(super) fn restore_body_headers(&mut self) {
        if std::mem::take(&mut self.task.attempt.is_unpacked) {
            logged::set(&mut self.log, BEREQ, &mut self.task.bereq, "Content-Encoding", b"gzip");
        }
        self.task.attempt.body_stages = None;
    }

    /// The length to announce; `None` = the body is sent chunked, since filters change it.
    pub(super) fn announced_length(&self) -> Option<u64> {
        let changes = self.task.attempt.body_stages.as_ref().is_some_and(Filters::change_length);
        self.task.life.body.length().filter(|_| !changes)
    }

    /// Takes the filters for a body that goes out now; `None` when it goes as it is. The next time they are set up anew.
    pub(super) fn take_stages(&mut self) -> Option<Filters> {
        self.task.attempt.body_stages.take_if(|stages| !stages.is_empty())
    }
}
