//! Priority of a response ([`Priority`]): set by a `priority` header, or by a frame that may arrive
//! before the request ([`WaitingPriorities`]). Invalid values are ignored. Source: RFC 9218.

use std::collections::VecDeque;
use surface::limits::PRIORITIES_WAITING_MAX;

/// Priority of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// The response can be used piece by piece.
    pub is_incremental: bool,
}

impl Default for Priority {
    /// Priority of a client that sends none.
    fn default() -> Self {
        Priority { urgency: 3, is_incremental: true }
    }
}

impl Priority {
    /// The priority in the value of a `priority` header, or of a frame. Source: RFC 9218 §4.
    #[must_use]
    pub fn of_field(value: &[u8]) -> Priority {
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
}

/// Priorities from frames for streams that have not begun, the latest last.
#[derive(Debug, Default)]
pub struct WaitingPriorities(VecDeque<(u64, Priority)>);

impl WaitingPriorities {
    /// Stores the priority of a frame; if there are too many, the oldest is dropped.
    pub fn put(&mut self, stream: u64, priority: Priority) {
        self.0.retain(|(other, _)| *other != stream);
        if self.0.len() >= PRIORITIES_WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((stream, priority));
    }

    /// Takes the priority of a stream that begins.
    pub fn take(&mut self, stream: u64) -> Option<Priority> {
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
