//! The feed as a stream of events. Source: HTML Living Standard, server-sent events.
//!
//! Each stream has a thread, which writes the present figures once they are new. A reader that is
//! slow misses intermediate ones, and one that does not read at all is cut. *Invariant:* a stream
//! ends with its session.

use super::api::Answer;
use super::state::Dash;
use crate::connection::write_all;
use crate::deadline::Deadline;
use crate::listener::Stream;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use surface::limits::{DASH_STREAM_WRITE_SECONDS_MAX, DASH_STREAMS_MAX};

/// Longest silence.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time after which a browser connects again, in milliseconds.
const RETRY_MILLISECONDS: u32 = 1000;

/// A place among the streams.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves a stream until its reader leaves or its session `id` ends.
pub(super) fn serve(dash: &Dash, mut stream: Stream, deadline: Deadline, id: &str) {
    let place = Place(&dash.streams);
    if place.0.fetch_add(1, Ordering::AcqRel) >= DASH_STREAMS_MAX {
        let _ = write_all(&mut stream, deadline, &Answer::error(503, "too many streams").bytes(false));
        return;
    }
    let head = format!("{}retry: {RETRY_MILLISECONDS}\n\n", Answer::stream_head());
    if write_all(&mut stream, deadline, head.as_bytes()).is_err() {
        return;
    }
    let mut last = 0;
    loop {
        let (number, text) = dash.feed.after(last, HEARTBEAT);
        let is_alive = {
            let mut sessions = dash.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.find(id, Instant::now()).is_some()
        };
        let event = match (is_alive, number > last) {
            (false, _) => "event: end\ndata: {}\n\n".to_owned(),
            (true, true) => format!("id: {number}\ndata: {text}\n\n"),
            (true, false) => ": alive\n\n".to_owned(),
        };
        last = number;
        let deadline = Deadline::after(Duration::from_secs(DASH_STREAM_WRITE_SECONDS_MAX));
        if write_all(&mut stream, deadline, event.as_bytes()).is_err() || !is_alive {
            return;
        }
    }
}
