//! Windows for what the client sends: [`Window`], one for the connection and one for each stream.
//!
//! Bytes are taken from a window as they arrive, and become credit when they are used. Credit is
//! announced in lumps, or with each piece that is read. *Invariant:* the client's window, its bytes
//! that were not used, and the credit not announced add up to the size of the window. Source: RFC
//! 9113 §5.2, §6.9.

/// The largest window of the protocol.
pub(crate) const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Both windows at the beginning. Source: RFC 9113 §6.5.2, §6.9.2.
pub(crate) const WINDOW_AT_FIRST: i64 = 65_535;

/// A window for the client's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Number of bytes that the client may send.
    left: i64,
    /// Number of bytes that were used and not announced.
    credit: i64,
}

impl Window {
    pub(crate) fn new(left: i64) -> Window {
        Window { left, credit: 0 }
    }

    /// Takes bytes that have arrived; false if the client may not send that many.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        self.left -= i64::from(bytes);
        self.left >= 0
    }

    /// Changes the size.
    pub(crate) fn resize(&mut self, by: i64) {
        self.left += by;
    }

    /// Counts bytes as used.
    pub(crate) fn credit(&mut self, bytes: usize) {
        self.credit += bytes as i64;
    }

    /// The increment to announce, if the credit has at least this number of bytes.
    pub(crate) fn due(&mut self, bytes_min: i64) -> Option<u32> {
        if self.credit <= 0 || self.credit < bytes_min {
            return None;
        }
        let increment = self.credit.min(WINDOW_MAX - self.left.max(0));
        self.credit -= increment;
        self.left += increment;
        u32::try_from(increment).ok().filter(|increment| *increment > 0)
    }

    /// As [`Window::due`], if the credit is at least half of the client's window: the client never
    /// waits for it.
    pub(crate) fn due_by_half(&mut self) -> Option<u32> {
        self.due(self.left / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_no_more_is_allowed_than_the_size() {
        let mut window = Window::new(65_535);
        let (mut client, mut unused) = (65_535_i64, 0_i64);
        for turn in 0..10_000_i64 {
            let sent = client.min(1 + turn * 7919 % 70_000);
            client -= sent;
            unused += sent;
            assert!(window.take(sent as u32), "in turn {turn}");
            let used = unused.min(turn * 104_729 % 50_000);
            unused -= used;
            window.credit(used as usize);
            let due = if turn % 2 == 0 { window.due_by_half() } else { window.due(16_384) };
            client += due.map_or(0, i64::from);
            assert_eq!(client + unused + window.credit, 65_535);
        }
        assert!(!window.take(65_536));
    }

    #[test]
    fn credit_is_announced_in_lumps() {
        let mut window = Window::new(100);
        assert!(window.take(60));
        window.credit(19);
        assert_eq!((window.due(20), window.due_by_half()), (None, None));
        window.credit(1);
        assert_eq!((window.due(20), window.due(1)), (Some(20), None));
        window.resize(-90);
        assert!(!window.take(1));
        window.credit(1);
        assert_eq!(window.due_by_half(), Some(1));
    }
}
