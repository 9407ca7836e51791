//! Sessions of the dashboard, and the limit on logins.
//!
//! *Invariant:* a session id is 256 random bits, is sent only in a cookie that scripts cannot read,
//! and is never written anywhere. Tables are bounded (`surface::limits`, `DASH_*`). Time is an
//! argument.

use rand::Rng as _;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use surface::limits::{
    DASH_ALL_LOGINS_A_MINUTE, DASH_LOGIN_ADDRESSES_MAX, DASH_LOGINS_A_MINUTE, DASH_OPERATE_IDLE_SECONDS_MAX,
    DASH_SESSION_SECONDS_MAX, DASH_SESSIONS_MAX,
};

/// Rights of a user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    /// Looks only.
    View,
    /// May change the server.
    Operate,
}

impl Role {
    pub const fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Operate => "operate",
        }
    }
}

/// A session as a request sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Session {
    /// Name of the user.
    pub user: String,
    /// Rights, as they are now.
    pub role: Role,
    /// Value of `X-Copal-Csrf`.
    pub csrf: String,
}

struct Entry {
    user: String,
    role: Role,
    csrf: String,
    begun: Instant,
    used: Instant,
    /// Last operation, or the login.
    operated: Instant,
}

/// All sessions by id.
#[derive(Default)]
pub(crate) struct Sessions(HashMap<String, Entry>);

/// Text of 256 random bits.
fn secret() -> String {
    let mut bytes = [0u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Sessions {
    /// Begins a session; returns its id.
    pub fn begin(&mut self, user: &str, role: Role, now: Instant) -> String {
        self.0.retain(|_, entry| is_alive(entry, now));
        if self.0.len() >= DASH_SESSIONS_MAX
            && let Some(oldest) = self.0.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| id.clone())
        {
            self.0.remove(&oldest);
        }
        let (id, csrf) = (secret(), secret());
        let entry = Entry { user: user.to_owned(), role, csrf, begun: now, used: now, operated: now };
        self.0.insert(id.clone(), entry);
        id
    }

    /// Continues a session that an earlier process began, `age` seconds ago. Its last operation is
    /// not known, so that it counts as idle since its login.
    pub fn resume(&mut self, id: &str, session: Session, age: u64, now: Instant) {
        let begun = now.checked_sub(Duration::from_secs(age));
        if let Some(begun) = begun.filter(|_| self.0.len() < DASH_SESSIONS_MAX) {
            let Session { user, role, csrf } = session;
            self.0.insert(id.to_owned(), Entry { user, role, csrf, begun, used: now, operated: begun });
        }
    }

    /// The session with this id, if it is alive.
    pub fn find(&mut self, id: &str, now: Instant) -> Option<Session> {
        let entry = self.0.get_mut(id).filter(|entry| is_alive(entry, now))?;
        entry.used = now;
        let is_idle =
            now.saturating_duration_since(entry.operated) > Duration::from_secs(DASH_OPERATE_IDLE_SECONDS_MAX);
        let role = if is_idle { Role::View } else { entry.role };
        Some(Session { user: entry.user.clone(), role, csrf: entry.csrf.clone() })
    }

    /// An operation was made in this session.
    pub fn operate(&mut self, id: &str, now: Instant) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.operated = now;
        }
    }

    /// Ends a session.
    pub fn end(&mut self, id: &str) {
        self.0.remove(id);
    }
}

fn is_alive(entry: &Entry, now: Instant) -> bool {
    now.saturating_duration_since(entry.begun) < Duration::from_secs(DASH_SESSION_SECONDS_MAX)
}

/// The limit on logins: per address, and for all addresses together.
#[derive(Default)]
pub(crate) struct Logins {
    by_address: HashMap<IpAddr, VecDeque<Instant>>,
    all: VecDeque<Instant>,
}

impl Logins {
    /// Counts a try. Returns false if there were too many within a minute; then it must not be
    /// checked.
    pub fn take(&mut self, address: IpAddr, now: Instant) -> bool {
        let address = group(address);
        let is_old = |time: &Instant| now.saturating_duration_since(*time) >= Duration::from_secs(60);
        while self.all.front().is_some_and(is_old) {
            self.all.pop_front();
        }
        if !self.by_address.contains_key(&address) && self.by_address.len() >= DASH_LOGIN_ADDRESSES_MAX {
            self.by_address.retain(|_, tries| !tries.back().is_none_or(is_old));
            if self.by_address.len() >= DASH_LOGIN_ADDRESSES_MAX {
                return false;
            }
        }
        let tries = self.by_address.entry(address).or_default();
        while tries.front().is_some_and(is_old) {
            tries.pop_front();
        }
        // Refused tries are not counted: they would keep the owner of the address out for ever.
        if tries.len() >= DASH_LOGINS_A_MINUTE || self.all.len() >= DASH_ALL_LOGINS_A_MINUTE {
            return false;
        }
        tries.push_back(now);
        self.all.push_back(now);
        true
    }
}

/// Addresses that one client can choose from: a network of 64 bits in IPv6.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_after_their_time_and_lose_their_rights_when_idle() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let id = sessions.begin("anna", Role::Operate, start);
        assert_eq!(id.len(), 64);
        let session = sessions.find(&id, at(1)).unwrap();
        assert_eq!((session.user.as_str(), session.role), ("anna", Role::Operate));
        assert_ne!(session.csrf, id);
        sessions.operate(&id, at(DASH_OPERATE_IDLE_SECONDS_MAX));
        assert_eq!(sessions.find(&id, at(2 * DASH_OPERATE_IDLE_SECONDS_MAX)).unwrap().role, Role::Operate);
        assert_eq!(sessions.find(&id, at(2 * DASH_OPERATE_IDLE_SECONDS_MAX + 1)).unwrap().role, Role::View);
        assert_eq!(sessions.find(&id, at(DASH_SESSION_SECONDS_MAX)), None);
        assert_eq!(sessions.find("", start), None);
        sessions.end(&id);
        assert_eq!(sessions.find(&id, at(1)), None);
    }

    #[test]
    fn table_of_sessions_is_bounded_and_drops_the_one_unused_for_longest() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let at = |seconds: usize| start + Duration::from_secs(seconds as u64);
        let ids: Vec<String> = (0..DASH_SESSIONS_MAX).map(|n| sessions.begin("x", Role::View, at(n))).collect();
        sessions.find(&ids[0], at(DASH_SESSIONS_MAX)).unwrap();
        sessions.begin("x", Role::View, at(DASH_SESSIONS_MAX + 1));
        assert!(sessions.find(&ids[0], at(DASH_SESSIONS_MAX + 2)).is_some());
        assert!(sessions.find(&ids[1], at(DASH_SESSIONS_MAX + 2)).is_none());
        assert_eq!(sessions.0.len(), DASH_SESSIONS_MAX);
    }

    #[test]
    fn a_thousand_logins_of_one_address_are_five_and_others_are_not_locked_out() {
        let (mut logins, start) = (Logins::default(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let taken = (0..1000).filter(|_| logins.take(address("2001:db8::1"), start)).count();
        assert_eq!(taken, DASH_LOGINS_A_MINUTE);
        assert!(!logins.take(address("2001:db8::2"), start), "the same network");
        assert!(logins.take(address("192.0.2.1"), start));
        assert!(logins.take(address("2001:db8::1"), start + Duration::from_secs(60)));
    }

    #[test]
    fn logins_of_many_addresses_are_bounded_in_number_and_memory() {
        let (mut logins, start) = (Logins::default(), Instant::now());
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let taken = (0..10_000).filter(|number| logins.take(address(*number), start)).count();
        assert_eq!(taken, DASH_ALL_LOGINS_A_MINUTE);
        assert!(logins.by_address.len() <= DASH_LOGIN_ADDRESSES_MAX);
        assert!(logins.take(address(20_000), start + Duration::from_secs(61)));
    }
}
