//! Lines for the operator: the texts of events, and their limit.

use fleet::exchange::{Loss, Report};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use surface::fleet::MessageRefusal;

/// Time for which an equal line is not said again.
const REPEAT: Duration = Duration::from_secs(60);
/// Most lines in that time.
const LINES_MAX: usize = 60;
/// Longest line, in characters: texts of a server may be in it.
const CHARACTERS_MAX: usize = 500;

/// The lines of the last minute.
#[derive(Default)]
pub(crate) struct Lines {
    said: HashMap<String, Instant>,
}

impl Lines {
    /// The line, cut off if it is too long; `None` if it must not be said.
    pub(crate) fn pass(&mut self, text: &str, now: Instant) -> Option<String> {
        self.said.retain(|_, said| now.duration_since(*said) < REPEAT);
        let text: String = text.chars().take(CHARACTERS_MAX).collect();
        if self.said.len() >= LINES_MAX || self.said.contains_key(&text) {
            return None;
        }
        self.said.insert(text.clone(), now);
        Some(text)
    }
}

/// The line for an event, and whether it is a warning.
pub(crate) fn of(report: &Report) -> (bool, String) {
    match report {
        Report::Refused(cause) => (true, format!("refused a message: {}", refusal(*cause))),
        Report::Member(node) => (false, format!("{node} joined, or returned")),
        Report::Forgotten(node) => (true, format!("{node} was removed from the fleet")),
        Report::Epoch => {
            (true, "the stream is another one, or has lost messages; it is read from its begin".to_owned())
        }
        Report::ConsumerStuck => (true, "the stream delivered nothing, and is read anew".to_owned()),
        Report::Dropping(loss, node) => {
            (true, format!("everything in the cache is removed: {} (publisher {node})", cause(*loss)))
        }
        Report::Dropped(objects) => (false, format!("{objects} objects were removed")),
        Report::NameInUse => (true, "another process uses the name of this node".to_owned()),
        Report::Damaged => (true, "the files of this node are damaged; entries or members may be lost".to_owned()),
        Report::NotWritten(error) => (true, format!("a write failed and is tried again: {error}")),
        Report::NotApplied(error) => {
            (true, format!("an order could not be applied, and everything was removed instead: {error}"))
        }
    }
}

fn refusal(cause: MessageRefusal) -> &'static str {
    match cause {
        MessageRefusal::TooLong => "it is too long",
        MessageRefusal::Truncated => "it is too short",
        MessageRefusal::Signature => "its signature is wrong (another key?)",
        MessageRefusal::Version => "it is of another version of the format",
        MessageRefusal::Fleet => "it is of another fleet",
        MessageRefusal::Form => "its form is wrong",
        MessageRefusal::Replay => "it is a repetition, or came too late",
        MessageRefusal::Forgotten => "its sender was removed from the fleet",
        MessageRefusal::Unknown => "its sender is not known yet",
        MessageRefusal::TooManyNodes => "the fleet has too many nodes",
        MessageRefusal::TooFarAhead => "too many before it are missing",
    }
}

fn cause(loss: Loss) -> &'static str {
    match loss {
        Loss::History => "missed entries are older than fleet_history, or an outbox was full",
        Loss::Outbox => "a publisher has lost its outbox, or a part of it",
        Loss::Forgotten => "a publisher was removed without leaving in order",
        Loss::Unreachable => "missed entries did not come within fleet_join_timeout",
        Loss::Cache => "the cache, or the state of this node, is an older copy",
        Loss::Expelled => "this node was removed from the fleet",
        Loss::New => "this node is a new member",
        Loss::Unknown => "an entry is of a later version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_and_many_lines_are_held_back_for_a_while() {
        let mut lines = Lines::default();
        let now = Instant::now();
        assert_eq!(lines.pass("a", now).as_deref(), Some("a"));
        assert_eq!(lines.pass("a", now), None);
        assert_eq!(lines.pass(&"é".repeat(1000), now).unwrap().chars().count(), CHARACTERS_MAX);
        let passed = (0..1000).filter(|number| lines.pass(&number.to_string(), now).is_some()).count();
        assert_eq!(passed, LINES_MAX - 2);
        assert!(lines.pass("a", now + REPEAT).is_some());
    }
}
