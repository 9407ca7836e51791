//! Everything that the requests to a dashboard share.
//!
//! Locks are held for single steps, never while a socket is read or written; only the operator's is
//! held while the manager works.

use super::feed::Feed;
use super::operator::Operator;
use super::requests::{Clients, Requests};
use super::session::{Logins, Sessions};
use super::users::Users;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Settings of a dashboard.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settings {
    /// Names of this server, besides its addresses and `localhost`, in lower case.
    pub hosts: Vec<String>,
    /// Those who may log in with a password.
    pub users: Users,
    /// No user may change anything.
    pub is_view_only: bool,
    /// Addresses of clients in the rankings.
    pub clients: Clients,
}

/// Everything that requests share.
pub(crate) struct Dash {
    pub settings: Settings,
    pub feed: Arc<Feed>,
    pub requests: Arc<Mutex<Requests>>,
    pub operator: Mutex<Box<dyn Operator>>,
    /// Last answers to questions, with their times: many pages ask the same.
    pub answers: Mutex<HashMap<String, (Instant, u16, String)>>,
    pub sessions: Mutex<Sessions>,
    pub logins: Mutex<Logins>,
    /// Limit on questions for sessions of an earlier process; one at a time.
    pub recalls: Mutex<Logins>,
    /// One hash of a password at a time.
    pub hashing: Mutex<()>,
    pub streams: AtomicUsize,
}

impl Dash {
    pub fn new(
        settings: Settings,
        feed: &Arc<Feed>,
        requests: &Arc<Mutex<Requests>>,
        operator: Box<dyn Operator>,
    ) -> Dash {
        Dash {
            settings,
            feed: Arc::clone(feed),
            requests: Arc::clone(requests),
            operator: Mutex::new(operator),
            answers: Mutex::default(),
            sessions: Mutex::default(),
            logins: Mutex::default(),
            recalls: Mutex::default(),
            hashing: Mutex::new(()),
            streams: AtomicUsize::new(0),
        }
    }
}
