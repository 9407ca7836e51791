//! Memory that fetches have used and the next ones of the same event loop use again: the messages
//! of a fetch, and the working memory of VCL.
//!
//! A fetch fills several buffers and is over soon: allocating them for each fetch would be half of
//! its allocations. *Limits:* [`MESSAGES_MAX`] messages and [`MACHINES_MAX`] machines are kept,
//! each with at most [`KEPT_BYTES`] in each of its buffers.

use message::Message;
use std::cell::RefCell;
use vcl_run::eval::Machine;
use vcl_run::value::Scratch;

/// Unused messages that are kept: those of about thirty fetches.
const MESSAGES_MAX: usize = 96;
/// Unused machines that are kept.
const MACHINES_MAX: usize = 32;
/// Largest buffer that is kept, in bytes.
const KEPT_BYTES: usize = 4 << 10;

/// Spare messages and machines; see the module header.
#[derive(Default)]
pub(crate) struct Spares {
    messages: RefCell<Vec<Message>>,
    machines: RefCell<Vec<(Machine, Scratch)>>,
}

impl Spares {
    /// An empty message.
    pub(crate) fn message(&self) -> Message {
        self.messages.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a message back that is no longer needed.
    pub(crate) fn put_message(&self, mut message: Message) {
        let mut kept = self.messages.borrow_mut();
        if message.room_bytes() > 0 && kept.len() < MESSAGES_MAX {
            message.shrink_to(KEPT_BYTES);
            kept.push(message);
        }
    }

    /// A machine with its scratch memory, which may grow to `limit_bytes`.
    pub(crate) fn machine(&self, limit_bytes: usize) -> (Machine, Scratch) {
        let kept = self.machines.borrow_mut().pop();
        kept.map_or_else(
            || (Machine::new(), Scratch::new(limit_bytes)),
            |(machine, mut scratch)| {
                scratch.clear(limit_bytes);
                (machine, scratch)
            },
        )
    }

    /// Takes a machine back whose method has ended.
    pub(crate) fn put_machine(&self, mut machine: Machine, mut scratch: Scratch) {
        let mut kept = self.machines.borrow_mut();
        if kept.len() < MACHINES_MAX {
            machine.clear(KEPT_BYTES);
            if scratch.room_bytes() > KEPT_BYTES {
                scratch.free();
            }
            kept.push((machine, scratch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_spares_are_empty_small_and_bounded_in_number() {
        let spares = Spares::default();
        for length in [10, 100 << 10] {
            let mut message = Message::new();
            message.append(b"Cookie", &vec![b'x'; length]);
            spares.put_message(message);
            let message = spares.message();
            assert_eq!((message.header_count(), message.room_bytes() <= 2 * KEPT_BYTES), (0, true));
        }
        for _ in 0..2 * MESSAGES_MAX {
            let mut message = Message::new();
            message.set_target(b"/");
            spares.put_message(message);
        }
        assert_eq!(spares.messages.borrow().len(), MESSAGES_MAX);
    }
}
