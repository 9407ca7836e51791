//! Refresh: the origin confirms the stale object (304), and vcl_backend_refresh runs.
//!
//! It chooses the headers that the object gets; the body remains that of the stale object
//! (`revalidate.rs`). It runs only for a VCL that defines it itself
//! ([`vcl_run::program::Program::refreshes`]); for others the headers are merged right away. The
//! body's coding, its length and its validators are always those of the stale object. Source: VCL
//! of Varnish 8.0. Next file: `revalidate.rs`.

use super::task::Attempt;
use super::{Fetch, Step};
use crate::bodies::disk_tier::are_there;
use crate::logged::{self, BEREQ, BERESP};
use crate::origin::close_reason;
use crate::ruling::{Failed, RefreshRuling};
use message::Message;
use semantics::{HttpPolicy, revalidate};
use std::sync::Arc;
use store::{BodyState, Object};
use surface::reason::Reason;
use surface::tag::Tag;

/// The headers that describe the stale body, which the new object keeps.
const OF_BODY: [&str; 4] = ["Content-Length", "Content-Encoding", "ETag", "Last-Modified"];

impl Fetch {
    /// Turns a 304 into the response that it stands for.
    ///
    /// # Errors
    /// The next step instead, when the 304 refers to no object or VCL rejects it.
    pub(super) async fn refresh(&mut self) -> Result<(), Step> {
        if self.has_lost_stale() {
            return Err(self.ask_anew(Reason::StaleRemoved));
        }
        if self.is_about_something_else() {
            return Err(self.ask_anew(Reason::NotModifiedOther));
        }
        if let Some(stale) = self.revalidatable_stale().filter(|stale| stale.is_on_disk())
            && !Box::pin(is_readable(&stale)).await
        {
            self.log.record(Tag::Error, b"Stored body could not be read");
            return Err(self.ask_anew(Reason::BodyUnreadable));
        }
        if !self.task.order.vcl.program.program().refreshes {
            return if self.merge_not_modified() { Ok(()) } else { Err(self.not_conditional()) };
        }
        let Some(stale) = self.revalidatable_stale() else { return Err(self.not_conditional()) };
        if self.task.attempt.stale_head.decode(stale.head()).is_none() {
            return Err(self.not_conditional());
        }
        match self.run_vcl().await {
            Ok(RefreshRuling::Merge) => self.merge(&stale),
            Ok(RefreshRuling::ObjStale) => {
                self.task.attempt.beresp.copy_from(&self.task.attempt.stale_head);
                logged::log_response(&mut self.log, BERESP, &self.task.attempt.beresp);
            }
            Ok(RefreshRuling::Beresp) => self.keep_new_head(),
            Ok(RefreshRuling::Retry) => return Err(self.retry_ruling()),
            Ok(RefreshRuling::Abandon) => return Err(self.abandon_ruling()),
            Ok(RefreshRuling::Error(line)) => return Err(self.error_ruling(line)),
            Err(Failed) => return Err(self.response_vcl_failed()),
        }
        self.task.attempt.verdict.was_304 = true;
        Ok(())
    }

    /// True if the stale object was removed since the request was sent. A 304 must not undo a
    /// purge. Compat: if its body has broken off since then the fetch fails, as Varnish's does.
    pub(super) fn has_lost_stale(&self) -> bool {
        let was_conditional = self.task.bereq.has("If-None-Match") || self.task.bereq.has("If-Modified-Since");
        let stale = self.task.life.stale.as_ref();
        was_conditional && stale.is_some_and(|stale| stale.is_removed() && stale.state() != BodyState::Failed)
    }

    /// True if RFC 9111 forbids using the 304 for the stale object: it names the tag of another
    /// response.
    fn is_about_something_else(&self) -> bool {
        if self.task.order.vcl.policy != HttpPolicy::Rfc {
            return false;
        }
        let Some(stale) = self.revalidatable_stale() else { return false };
        let mut stored = Message::new();
        stored.decode(stale.head()).is_some() && !revalidate::is_about(&stored, &self.task.attempt.beresp)
    }

    /// Sends the request again without conditions. The stale object is not used any more, nor is
    /// VCL's result for the 304.
    pub(super) fn ask_anew(&mut self, reason: Reason) -> Step {
        self.why(reason, "");
        self.task.give_up_response(&self.context, &mut self.log);
        self.restore_body_headers();
        self.task.attempt = Attempt::default();
        self.draw_storage();
        self.task.life.stale = None;
        for name in ["If-None-Match", "If-Modified-Since"] {
            logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, name);
        }
        Step::Send
    }

    /// A 304 to a request without conditions.
    fn not_conditional(&mut self) -> Step {
        self.log.record(Tag::Error, b"304 response but not conditional fetch");
        self.why(Reason::ResponseNotConditional, "");
        self.close_connection(close_reason::BAD);
        Step::Error
    }

    /// Applies the headers of the 304 to those of the stale object.
    fn merge(&mut self, stale: &Arc<Object>) {
        let stored = std::mem::replace(&mut self.task.attempt.stale_head, Message::new());
        self.merge_stored(stale, &stored);
        self.task.attempt.stale_head = stored;
    }

    /// Keeps the response's headers as VCL left them, except those that describe the body.
    fn keep_new_head(&mut self) {
        let (log, beresp, stored) = (&mut self.log, &mut self.task.attempt.beresp, &self.task.attempt.stale_head);
        let status = stored.status();
        logged::set_status_line(log, BERESP, beresp, stored.protocol(), status, stored.reason());
        for name in OF_BODY {
            match stored.get(name) {
                Some(value) => logged::force(log, BERESP, beresp, name, value),
                None => logged::unset(log, BERESP, beresp, name),
            }
        }
    }
}

/// True if the beginning of a body that is stored in a file can be read.
async fn is_readable(stale: &Arc<Object>) -> bool {
    let Some(mut reader) = stale.reader() else { return false };
    are_there(&mut reader, 0).await || !reader.has_failed()
}
