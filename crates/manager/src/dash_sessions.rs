//! Sessions of the dashboard, kept for the next `copal observe`: its end must not log users out.
//!
//! They are only given back to that process, which checks cookies. They end with this manager.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use surface::limits::{DASH_SESSION_SECONDS_MAX, DASH_SESSIONS_MAX};

/// The kept sessions.
#[derive(Debug, Default)]
pub struct Sessions(RefCell<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    id: String,
    user: String,
    role: String,
    csrf: String,
    begun: Instant,
}

impl Sessions {
    /// Keeps a session. The oldest gives way if there are too many.
    pub fn keep(&self, id: &str, user: &str, role: &str, csrf: &str, now: Instant) {
        let mut sessions = self.0.borrow_mut();
        let life = Duration::from_secs(DASH_SESSION_SECONDS_MAX);
        sessions.retain(|one| one.id != id && now.saturating_duration_since(one.begun) < life);
        if sessions.len() == DASH_SESSIONS_MAX {
            sessions.pop_front();
        }
        let owned = str::to_owned;
        let session = Session { id: owned(id), user: owned(user), role: owned(role), csrf: owned(csrf), begun: now };
        sessions.push_back(session);
    }

    /// The session with this id, as `surface::operation` writes it.
    pub fn recall(&self, id: &str, now: Instant) -> Option<String> {
        let sessions = self.0.borrow();
        let found = sessions.iter().find(|one| one.id == id)?;
        let age = now.saturating_duration_since(found.begun).as_secs();
        let text = format!("{} {} {age} {}", found.role, found.csrf, found.user);
        (age < DASH_SESSION_SECONDS_MAX).then_some(text)
    }

    /// Ends a session.
    pub fn forget(&self, id: &str) {
        self.0.borrow_mut().retain(|one| one.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_kept_until_they_end() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        sessions.keep("a", "anna b", "view", "c", start);
        assert_eq!(sessions.recall("a", at(7)).as_deref(), Some("view c 7 anna b"));
        assert_eq!(sessions.recall("b", at(7)), None);
        assert_eq!(sessions.recall("a", at(DASH_SESSION_SECONDS_MAX)), None);
        sessions.forget("a");
        assert_eq!(sessions.recall("a", start), None);
        for number in 0..=DASH_SESSIONS_MAX {
            sessions.keep(&format!("s{number}"), "u", "view", "c", start);
        }
        assert_eq!(sessions.recall("s0", start), None);
        assert!(sessions.recall("s1", start).is_some());
    }
}
