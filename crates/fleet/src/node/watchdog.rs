//! Watches the stream, which may be replaced, lose messages, or deliver nothing without an error.
//!
//! Source: observed with nats-server 2.15 and async-nats 0.51 after a stream was recreated, and
//! after the server of a consumer was killed.

use crate::message::StreamMark;

/// Time without any message after which the server is asked, in milliseconds.
const SILENCE_MS: u64 = 500;
/// Time between two questions in any case, in milliseconds.
const ASK_MS: u64 = 1000;
/// Time without progress after which the consumer is made anew, in milliseconds.
const STUCK_MS: u64 = 1000;
/// Number of questions without an answer, and of new consumers without progress, after which
/// another server is tried.
const ATTEMPTS_MAX: u32 = 3;

/// An order of the watchdog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Ask,
    /// Consume from this sequence number.
    Consume(u64),
    /// As above, since the consumer delivers nothing.
    ConsumeAnew(u64),
    /// Consume from 1: the stream is another one, or has lost messages.
    Epoch,
    Reconnect,
}

/// The state of the stream.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// The stream, and the last message received from it.
    mark: StreamMark,
    is_connected: bool,
    /// A consumer was ordered since the connection was made.
    is_consuming: bool,
    heard_ms: u64,
    asked_ms: u64,
    unanswered: u32,
    /// The server has later messages: our last one, and since when.
    behind: Option<(u64, u64)>,
    restarts: u32,
}

impl Watchdog {
    /// Continues with the stream of the last run.
    pub(crate) fn new(mark: StreamMark) -> Watchdog {
        Watchdog { mark, ..Watchdog::default() }
    }

    pub(crate) fn mark(&self) -> StreamMark {
        self.mark
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    pub(crate) fn connected(&mut self, now_ms: u64) -> Order {
        *self = Watchdog { mark: self.mark, is_connected: true, heard_ms: now_ms, ..Watchdog::default() };
        self.ask(now_ms)
    }

    pub(crate) fn disconnected(&mut self) {
        (self.is_connected, self.is_consuming) = (false, false);
    }

    fn ask(&mut self, now_ms: u64) -> Order {
        self.asked_ms = now_ms;
        self.unanswered += 1;
        Order::Ask
    }

    /// A message was received, with its number if it came from the stream.
    pub(crate) fn heard(&mut self, sequence: Option<u64>, now_ms: u64) {
        self.heard_ms = now_ms;
        if let Some(sequence) = sequence.filter(|sequence| *sequence > self.mark.sequence) {
            self.mark.sequence = sequence;
            (self.behind, self.restarts) = (None, 0);
        }
    }

    /// The server's answer. A node that needs no history begins at the end of the stream.
    pub(crate) fn answered(&mut self, mark: StreamMark, needs_history: bool, now_ms: u64) -> Option<Order> {
        self.unanswered = 0;
        if !self.is_connected {
            return None;
        }
        if self.mark.created == 0 && !needs_history {
            self.mark = mark;
            self.is_consuming = true;
            return Some(Order::Consume(mark.sequence + 1));
        }
        if self.mark.created != mark.created || mark.sequence < self.mark.sequence {
            let is_first = self.mark.created == 0;
            self.mark = StreamMark { created: mark.created, sequence: 0 };
            (self.is_consuming, self.behind) = (true, None);
            return Some(if is_first { Order::Consume(1) } else { Order::Epoch });
        }
        if !self.is_consuming {
            self.is_consuming = true;
            return Some(Order::Consume(self.mark.sequence + 1));
        }
        if mark.sequence == self.mark.sequence {
            self.behind = None;
            return None;
        }
        match self.behind {
            Some((own, since)) if own == self.mark.sequence => {
                if now_ms.saturating_sub(since) < STUCK_MS {
                    return None;
                }
                self.behind = Some((own, now_ms));
                self.restarts += 1;
                if self.restarts >= ATTEMPTS_MAX {
                    return Some(self.reconnect());
                }
                Some(Order::ConsumeAnew(own + 1))
            }
            Some(_) | None => {
                self.behind = Some((self.mark.sequence, now_ms));
                None
            }
        }
    }

    fn reconnect(&mut self) -> Order {
        self.disconnected();
        Order::Reconnect
    }

    pub(crate) fn tick(&mut self, now_ms: u64) -> Option<Order> {
        let since_asked = now_ms.saturating_sub(self.asked_ms);
        let is_silent = now_ms.saturating_sub(self.heard_ms) >= SILENCE_MS;
        if !self.is_connected || since_asked < if is_silent || self.behind.is_some() { SILENCE_MS } else { ASK_MS } {
            return None;
        }
        if self.unanswered > ATTEMPTS_MAX {
            return Some(self.reconnect());
        }
        Some(self.ask(now_ms))
    }

    /// Another node reads another stream, or a server was seen to answer differently: ask at once.
    pub(crate) fn suspect(&mut self, other: StreamMark) {
        if other.created != 0 && other.created != self.mark.created {
            self.asked_ms = 0;
        }
    }
}
