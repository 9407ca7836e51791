//! Settings of `cargo xtask cost` for the tests that it counts.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// One measurement, from the environment.
pub struct Measured {
    /// `http_policy`.
    pub policy: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of event loops in the process, at least 1.
    pub loops: usize,
}

impl Measured {
    pub fn from_environment() -> Measured {
        let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
        Measured {
            policy: std::env::var("COST_POLICY").unwrap_or_else(|_| "varnish".to_owned()),
            requests: number("COST_REQUESTS", 1000),
            loops: number("COST_LOOPS", 1) as usize,
        }
    }
}

/// Threads that have served requests and wait until this value is dropped, as idle event loops do.
pub struct OtherLoops {
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl OtherLoops {
    /// Starts `count` threads and returns once each has called `serve`.
    pub fn start(count: usize, serve: impl Fn() + Clone + Send + 'static) -> OtherLoops {
        let threads = (0..count).map(|_| {
            let (end, ended) = channel();
            let (done, served) = channel();
            let serve = serve.clone();
            let thread = std::thread::spawn(move || {
                serve();
                done.send(()).unwrap();
                let _ = ended.recv();
            });
            served.recv().unwrap();
            (end, thread)
        });
        OtherLoops { threads: threads.collect() }
    }
}

impl Drop for OtherLoops {
    fn drop(&mut self) {
        for (end, thread) in self.threads.drain(..) {
            drop(end);
            thread.join().unwrap();
        }
    }
}
