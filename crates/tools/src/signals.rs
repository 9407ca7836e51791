//! Signals that a tool handles: HUP rotates the output (or ends a foreground tool), USR1 flushes,
//! INT and TERM end, WINCH reports a changed window size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Requests since the last check.
#[derive(Default)]
pub(crate) struct Signals {
    stop: AtomicBool,
    rotate: AtomicBool,
    flush: AtomicBool,
    resized: AtomicBool,
}

impl Signals {
    /// Signals that are never received.
    pub fn deaf() -> Arc<Signals> {
        Arc::new(Signals::default())
    }

    /// Waits for signals on a thread of its own. A second INT or TERM ends the process even if it
    /// is stuck in a write.
    pub fn listen() -> Arc<Signals> {
        let signals = Signals::deaf();
        let mut set = SigSet::empty();
        for signal in [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGINT, Signal::SIGTERM, Signal::SIGWINCH] {
            set.add(signal);
        }
        if set.thread_block().is_err() {
            return signals;
        }
        let heard = Arc::clone(&signals);
        thread::spawn(move || {
            while let Ok(signal) = set.wait() {
                match signal {
                    Signal::SIGHUP => heard.rotate.store(true, Ordering::Relaxed),
                    Signal::SIGUSR1 => heard.flush.store(true, Ordering::Relaxed),
                    Signal::SIGWINCH => heard.resized.store(true, Ordering::Relaxed),
                    _ => {
                        if heard.stop.swap(true, Ordering::Relaxed) {
                            crate::terminal_modes::restore();
                            std::process::exit(1);
                        }
                    }
                }
            }
        });
        signals
    }

    /// True once the tool has to end.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// True if a HUP arrived since the last check.
    pub fn take_rotate(&self) -> bool {
        self.rotate.swap(false, Ordering::Relaxed)
    }

    /// True if a USR1 arrived since the last check.
    pub fn take_flush(&self) -> bool {
        self.flush.swap(false, Ordering::Relaxed)
    }

    /// True if the window's size has changed since the last check.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }
}
