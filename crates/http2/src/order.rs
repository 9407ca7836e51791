//! Order of sending: streams that have bytes and a window of their own, and wait for room in the
//! output or for the connection's window.
//!
//! Turns are assigned by RFC 9218: a smaller urgency first; among equals first the non-incremental
//! responses, in the order of their streams, then the incremental ones, by turns. A response
//! without a priority counts as incremental. A turn is for one slice, so that a large body delays a
//! small one by no more than the output holds.

use crate::priority::Priority;

/// Stream that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    stream: u32,
    priority: Priority,
    /// Incremental streams are served in the order of their arrival.
    turn: u64,
}

impl Waiting {
    fn rank(&self) -> (u8, bool, u64) {
        let order = if self.priority.is_incremental { self.turn } else { u64::from(self.stream) };
        (self.priority.urgency, self.priority.is_incremental, order)
    }
}

/// The waiting streams of a connection.
#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: Vec<Waiting>,
    turns: u64,
}

impl Order {
    /// True if it is the turn of a stream, which then no longer waits. Otherwise it waits.
    pub(crate) fn take_turn(&mut self, stream: u32, priority: Priority, has_room: bool) -> bool {
        if has_room && self.waiting.is_empty() {
            return true;
        }
        let place = match self.waiting.iter().position(|waiting| waiting.stream == stream) {
            Some(place) => place,
            None => {
                self.turns += 1;
                self.waiting.push(Waiting { stream, priority, turn: self.turns });
                self.waiting.len() - 1
            }
        };
        self.waiting[place].priority = priority;
        let rank = self.waiting[place].rank();
        let is_next = has_room && self.waiting.iter().all(|other| other.rank() >= rank);
        if is_next {
            self.waiting.swap_remove(place);
        }
        is_next
    }

    /// The stream whose turn it is.
    pub(crate) fn next(&self) -> Option<u32> {
        self.waiting.iter().min_by_key(|waiting| waiting.rank()).map(|waiting| waiting.stream)
    }

    /// Changes the priority of a stream that waits.
    pub(crate) fn prioritise(&mut self, stream: u32, priority: Priority) {
        self.waiting.iter_mut().filter(|waiting| waiting.stream == stream).for_each(|own| own.priority = priority);
    }

    /// Cancels the wait.
    pub(crate) fn leave(&mut self, stream: u32) {
        self.waiting.retain(|waiting| waiting.stream != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(text: &str) -> Priority {
        Priority::of_field(text.as_bytes())
    }

    #[test]
    fn turns_go_to_the_urgent_first_then_whole_ones_in_order_then_by_turns() {
        let mut order = Order::default();
        let wishes = [
            (9, Priority::default()),
            (7, Priority::default()),
            (5, priority("")),
            (3, priority("")),
            (1, priority("u=6")),
            (11, priority("u=1")),
        ];
        for (stream, wish) in wishes {
            assert!(!order.take_turn(stream, wish, false));
        }
        assert!(!order.take_turn(13, priority("u=7"), true), "others wait");
        let mut taken = Vec::new();
        while let Some(next) = order.next() {
            let wish = wishes.iter().find(|(stream, _)| *stream == next).map_or(priority("u=7"), |(_, wish)| *wish);
            assert!(order.take_turn(next, wish, true));
            taken.push(next);
        }
        assert_eq!(taken, [11, 3, 5, 9, 7, 1, 13]);
        assert!(order.take_turn(15, Priority::default(), true));
    }

    #[test]
    fn cancelled_waiter_blocks_no_other_stream() {
        let mut order = Order::default();
        assert!(!order.take_turn(1, priority("u=0"), false) && !order.take_turn(3, priority(""), false));
        assert!(!order.take_turn(3, priority(""), true));
        order.prioritise(1, priority("u=7"));
        assert_eq!(order.next(), Some(3));
        order.prioritise(1, priority("u=0"));
        order.leave(1);
        assert!(order.take_turn(3, priority(""), true));
    }
}
