//! How much a client wants a response ([`Priority`]): a `priority` header says it, or a frame that may come before the request
//! ([`WaitingPriorities`]). What makes no sense is left out of account. Source: RFC 9218.

use std::collections::VecDeque;
use surface::limits::PRIORITIES_WAITING_MAX;

/// How much a client wants a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transport) struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub(in crate::transport) urgency: u8,
    /// It can be used piece by piece.
    pub(in crate::transport) is_incremental: bool,
}

impl Default for Priority {
    /// What holds for a client that says nothing.
    fn default() -> Self {
        Priority { urgency: 3, is_incremental: true }
    }
}

impl Priority {
    /// What the value of a `priority` header, or of a frame, says. Source: RFC 9218 §4.
    pub(in crate::transport) fn of_field(value: &[u8]) -> Priority {
        let mut priority = Priority { is_incremental: false, ..Priority::default() };
        for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// What a request's head says.
    pub(in crate::transport) fn of_head(headers: &http::HeaderMap) -> Option<Priority> {
        headers.get("priority").map(|value| Priority::of_field(value.as_bytes()))
    }
}

/// What frames said of streams that have not begun, the latest last.
#[derive(Debug, Default)]
pub(in crate::transport) struct WaitingPriorities(VecDeque<(u64, Priority)>);

impl WaitingPriorities {
    /// Remembers what a frame said; of too many the oldest is forgotten.
    pub(in crate::transport) fn put(&mut self, stream: u64, priority: Priority) {
        self.0.retain(|(other, _)| *other != stream);
        if self.0.len() >= PRIORITIES_WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((stream, priority));
    }

    /// What was said of a stream that begins.
    pub(in crate::transport) fn take(&mut self, stream: u64) -> Option<Priority> {
        let place = self.0.iter().position(|(other, _)| *other == stream)?;
        self.0.remove(place).map(|(_, priority)| priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_word_counts_and_the_oldest_is_forgotten() {
        let mut waiting = WaitingPriorities::default();
        let of = |urgency| Priority { urgency, is_incremental: false };
        for stream in 0..PRIORITIES_WAITING_MAX as u64 {
            waiting.put(stream, of(1));
        }
        waiting.put(1, of(5));
        waiting.put(1000, of(2));
        assert_eq!((waiting.take(0), waiting.take(1), waiting.take(1)), (None, Some(of(5)), None));
        assert_eq!((waiting.take(2), waiting.take(1000)), (Some(of(1)), Some(of(2))));
    }

    #[test]
    fn a_priority_is_read_as_far_as_it_makes_sense() {
        assert_eq!(Priority::of_field(b""), Priority { urgency: 3, is_incremental: false });
        assert_eq!(Priority::of_field(b"u=0, i"), Priority { urgency: 0, is_incremental: true });
        assert_eq!(Priority::of_field(b"i=?1,u=7;x"), Priority { urgency: 7, is_incremental: true });
        assert_eq!(Priority::of_field(b"u=8, u=a, x, i=?0"), Priority { urgency: 3, is_incremental: false });
    }
}
