//! Connections, one after another: the servers are tried in turn until one accepts.

use crate::session::{Ends, Happened, Names, Session};
use crate::trust::Trust;
use async_nats::ServerAddr;
use rand::RngExt as _;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// First and longest pause after all servers have been tried.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The parts that do not change.
struct Fixed {
    servers: Vec<ServerAddr>,
    trust: Trust,
    names: Rc<Names>,
    ends: Ends,
}

/// The connection, or the attempt to make one.
pub(crate) struct Transport {
    fixed: Rc<Fixed>,
    /// Number of the last session or attempt, and the server to begin with.
    number: u64,
    next: usize,
    pub session: Option<Session>,
    attempt: Option<JoinHandle<(usize, Session)>>,
}

impl Transport {
    /// Begins to connect.
    pub(crate) fn new(servers: Vec<ServerAddr>, trust: Trust, names: Names, ends: Ends) -> Transport {
        // Not all nodes at the same server.
        let next = rand::rng().random_range(0..servers.len());
        let fixed = Rc::new(Fixed { servers, trust, names: Rc::new(names), ends });
        let mut transport = Transport { fixed, number: 0, next, session: None, attempt: None };
        transport.connect();
        transport
    }

    /// Drops the connection, and begins with the next server.
    pub(crate) fn connect(&mut self) {
        self.session = None;
        if let Some(attempt) = self.attempt.take() {
            attempt.abort();
        }
        self.number += 1;
        self.attempt = Some(tokio::task::spawn_local(attempt(self.fixed.clone(), self.number, self.next)));
    }

    /// Waits for a connection; does not end while none is being made.
    pub(crate) async fn connected(&mut self) {
        let Some(attempt) = &mut self.attempt else { return std::future::pending().await };
        let made = attempt.await;
        self.attempt = None;
        match made {
            Ok((server, session)) => {
                self.next = (server + 1) % self.fixed.servers.len();
                self.session = Some(session);
            }
            // The code that parses the server's words has failed.
            Err(_) => self.connect(),
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(attempt) = &self.attempt {
            attempt.abort();
        }
    }
}

async fn attempt(fixed: Rc<Fixed>, number: u64, first: usize) -> (usize, Session) {
    let count = fixed.servers.len();
    let mut pause = PAUSES.0;
    if number > 1 {
        // A server may accept and end every connection.
        tokio::time::sleep(pause).await;
    }
    for at in first.. {
        let server = &fixed.servers[at % count];
        let options = fixed.trust.options(server);
        match Session::open(number, server, options, fixed.names.clone(), fixed.ends.clone()).await {
            Ok(session) => return (at % count, session),
            Err(line) => _ = fixed.ends.happened.send((number, Happened::Say(line))).await,
        }
        if (at + 1 - first).is_multiple_of(count) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
    std::future::pending().await
}
