//! `bereq.filters`: what the client's body goes through on its way to the origin.
//!
//! Opening them changes the headers that describe the body. What is unpacked is sent chunked, since nobody knows how long it
//! will be: a body that is held whole is not unpacked as a whole either. A retry finds the headers as they were. Source: VCL of Varnish 7.7. Next file: `send.rs`.

use super::Fetch;
use crate::bodies::filters::{Filters, Subject};
use crate::logged::{self, BEREQ};
use body::Side;
use surface::limits::FILTER_STEP_BYTES_MAX;

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
        let length = self.task.life.body.length();
        let mut subject = Subject::new(Side::Bereq, &mut self.task.bereq, &mut self.log, length);
        let stages = Filters::open(list, &mut subject, &self.task.order.parameters, &self.context.counters)?;
        self.task.attempt.is_unpacked = stages.unpack();
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
