//! Operations of the dashboard: the closed set of requests that `copal observe` may send to the
//! manager, and their form on the wire.
//!
//! `copal observe` has no rights of its own. It sends an [`Order`] over a socket, and the manager
//! makes a command of it ([`Operation::command`]). *Invariant:* no text of the CLI passes. The verb
//! is chosen by the variant, each argument is one word, and [`Order::decode`] refuses words that
//! the command would take for an option, a pattern or a second condition list.
//!
//! A frame is its length (u32, big-endian) and its parts, each with a length in front. The answer
//! is a frame of two parts: the status of the CLI in decimal, and its text.

use crate::limits::{DASH_BAN_BYTES_MAX, DASH_BAN_WORDS_MAX, DASH_NAME_BYTES_MAX, DASH_TAGS_MAX};

/// The health of a backend, as an operator sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// The result of the probe.
    Auto,
    /// Always healthy.
    Healthy,
    /// Always sick.
    Sick,
}

impl Health {
    /// All of them.
    pub const ALL: [Health; 3] = [Health::Auto, Health::Healthy, Health::Sick];

    /// The word in the CLI.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Health::Auto => "auto",
            Health::Healthy => "healthy",
            Health::Sick => "sick",
        }
    }
}

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// The VCLs and labels.
    Vcls,
    /// The source of a VCL.
    Source(String),
    /// The backends and their probes.
    Backends,
    /// The bans in force.
    Bans,
    /// The parameters that differ from their defaults.
    Parameters,
    /// The certificates.
    Certificates,
    /// The number of objects with any of these tags.
    Count(Vec<String>),
    /// The login with a token that the CLI gave out. It is not a command.
    Login(String),
    /// Keeps a session for the next `copal observe`. It is not a command.
    Keep {
        /// Its id.
        id: String,
        /// The word of its role.
        role: String,
        /// Its token against forged requests.
        csrf: String,
    },
    /// The kept session with this id: its role, its token, its age in seconds, its user, divided by
    /// blanks. It is not a command.
    Recall(String),
    /// Ends the kept session with this id. It is not a command.
    Forget(String),
    /// Sets the health of a backend.
    Health(String, Health),
    /// Makes a VCL the active one.
    Use(String),
    /// Removes the objects that match all conditions, given in the words of `ban`.
    Ban(Vec<String>),
    /// Removes the objects with any of these tags, or makes them stale.
    Tags {
        /// Removes them, instead of making them stale.
        is_hard: bool,
        /// The tags.
        tags: Vec<String>,
    },
}

/// An operation with its origin, for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The user of the dashboard.
    pub user: String,
    /// The address of the browser.
    pub from: String,
    /// The operation.
    pub operation: Operation,
}

impl Operation {
    /// True if it changes the server: forbidden to those who may only look.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        match self {
            Operation::Vcls
            | Operation::Source(_)
            | Operation::Backends
            | Operation::Bans
            | Operation::Parameters
            | Operation::Certificates
            | Operation::Count(_)
            | Operation::Login(_)
            | Operation::Keep { .. }
            | Operation::Recall(_)
            | Operation::Forget(_) => false,
            Operation::Health(..) | Operation::Use(_) | Operation::Ban(_) | Operation::Tags { .. } => true,
        }
    }

    /// The words of the command; empty for logins and sessions.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Operation::Vcls => words(&["vcl.list", "-j"]),
            Operation::Source(name) => words(&["vcl.show", name]),
            Operation::Backends => words(&["backend.list", "-j"]),
            Operation::Bans => words(&["ban.list", "-j"]),
            Operation::Parameters => words(&["param.show", "-j", "changed"]),
            Operation::Certificates => words(&["tls.cert.list", "-j"]),
            Operation::Count(tags) => {
                let mut all = words(&["tag.count", "-j"]);
                all.extend_from_slice(tags);
                all
            }
            Operation::Login(_) | Operation::Keep { .. } | Operation::Recall(_) | Operation::Forget(_) => Vec::new(),
            Operation::Health(name, health) => words(&["backend.set_health", name, health.word()]),
            Operation::Use(name) => words(&["vcl.use", name]),
            Operation::Ban(conditions) => {
                let mut all = vec!["ban".to_owned()];
                all.extend_from_slice(conditions);
                all
            }
            Operation::Tags { is_hard, tags } => {
                let verb = if *is_hard { "tag.purge" } else { "tag.softpurge" };
                let mut all = words(&[verb, "-j"]);
                all.extend_from_slice(tags);
                all
            }
        }
    }

    /// Name on the wire, and arguments.
    fn parts(&self) -> (&'static str, Vec<&str>) {
        match self {
            Operation::Vcls => ("vcls", vec![]),
            Operation::Source(name) => ("source", vec![name]),
            Operation::Backends => ("backends", vec![]),
            Operation::Bans => ("bans", vec![]),
            Operation::Parameters => ("parameters", vec![]),
            Operation::Certificates => ("certificates", vec![]),
            Operation::Count(tags) => ("count", tags.iter().map(String::as_str).collect()),
            Operation::Login(token) => ("login", vec![token]),
            Operation::Keep { id, role, csrf } => ("keep", vec![id, role, csrf]),
            Operation::Recall(id) => ("recall", vec![id]),
            Operation::Forget(id) => ("forget", vec![id]),
            Operation::Health(name, health) => ("health", vec![name, health.word()]),
            Operation::Use(name) => ("use", vec![name]),
            Operation::Ban(conditions) => ("ban", conditions.iter().map(String::as_str).collect()),
            Operation::Tags { is_hard, tags } => {
                (if *is_hard { "purge" } else { "softpurge" }, tags.iter().map(String::as_str).collect())
            }
        }
    }

    /// Checks the arguments.
    ///
    /// # Errors
    /// The reason for the operator.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        let is_word = |text: &str| {
            (1..=DASH_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let is_name = |text: &str| {
            is_plain(text)
                && text.len() <= DASH_NAME_BYTES_MAX
                && !text.starts_with('-')
                && !text.contains(['*', '?', '[', ']', '\\', '"', ' '])
        };
        match self {
            Operation::Source(name) | Operation::Use(name) | Operation::Health(name, _) => {
                if is_name(name) {
                    Ok(())
                } else {
                    Err("this is not a name")
                }
            }
            Operation::Login(token) => {
                if token.len() <= DASH_NAME_BYTES_MAX {
                    Ok(())
                } else {
                    Err("this is not a token")
                }
            }
            Operation::Recall(id) | Operation::Forget(id) => {
                if is_word(id) {
                    Ok(())
                } else {
                    Err("this is not a session")
                }
            }
            Operation::Keep { id, role, csrf } => {
                if [id, role, csrf].into_iter().all(|word| is_word(word)) {
                    Ok(())
                } else {
                    Err("this is not a session")
                }
            }
            Operation::Ban(conditions) => {
                let bytes: usize = conditions.iter().map(String::len).sum();
                if conditions.len() < 3 {
                    Err("a condition has the form: field operator argument")
                } else if conditions.len() > DASH_BAN_WORDS_MAX || bytes > DASH_BAN_BYTES_MAX {
                    Err("the condition is too long")
                } else if conditions.iter().all(|word| is_plain(word)) {
                    Ok(())
                } else {
                    Err("the condition has an empty word or a control character")
                }
            }
            Operation::Tags { tags, .. } | Operation::Count(tags) => {
                if tags.is_empty() || tags.len() > DASH_TAGS_MAX {
                    Err("one tag at least is needed, and there is a limit to their number")
                } else if tags.iter().all(|tag| is_plain(tag) && tag.len() <= DASH_NAME_BYTES_MAX) {
                    Ok(())
                } else {
                    Err("a tag is empty, too long or has a control character")
                }
            }
            Operation::Vcls
            | Operation::Backends
            | Operation::Bans
            | Operation::Parameters
            | Operation::Certificates => Ok(()),
        }
    }
}

impl Order {
    /// The frame.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (name, arguments) = self.operation.parts();
        let mut parts = vec![name, &self.user, &self.from];
        parts.extend(arguments);
        frame(&parts)
    }

    /// The order in a frame, without the frame's length.
    ///
    /// # Errors
    /// It is not an order, or its arguments are wrong; with the reason.
    pub fn decode(bytes: &[u8]) -> Result<Order, &'static str> {
        let parts = parts(bytes).ok_or("the frame is damaged")?;
        let [name, user, from, arguments @ ..] = parts.as_slice() else { return Err("the frame is too short") };
        let owned = |text: &&str| (*text).to_owned();
        let operation = match (*name, arguments) {
            ("vcls", []) => Operation::Vcls,
            ("source", [name]) => Operation::Source(owned(name)),
            ("backends", []) => Operation::Backends,
            ("bans", []) => Operation::Bans,
            ("parameters", []) => Operation::Parameters,
            ("certificates", []) => Operation::Certificates,
            ("count", tags) => Operation::Count(tags.iter().map(owned).collect()),
            ("keep", [id, role, csrf]) => Operation::Keep { id: owned(id), role: owned(role), csrf: owned(csrf) },
            ("recall", [id]) => Operation::Recall(owned(id)),
            ("forget", [id]) => Operation::Forget(owned(id)),
            ("login", [token]) => Operation::Login(owned(token)),
            ("health", [name, word]) => {
                let health = Health::ALL.into_iter().find(|health| health.word() == *word);
                Operation::Health(owned(name), health.ok_or("this is not a state of a backend")?)
            }
            ("use", [name]) => Operation::Use(owned(name)),
            ("ban", conditions) => Operation::Ban(conditions.iter().map(owned).collect()),
            (verb @ ("purge" | "softpurge"), tags) => {
                Operation::Tags { is_hard: verb == "purge", tags: tags.iter().map(owned).collect() }
            }
            _ => return Err("there is no such operation"),
        };
        operation.check()?;
        Ok(Order { user: (*user).to_owned(), from: (*from).to_owned(), operation })
    }
}

/// A frame of these parts.
#[must_use]
pub fn frame(parts: &[&str]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| 4 + part.len()).sum();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = Vec::with_capacity(4 + bytes);
    out.extend(length(bytes));
    for part in parts {
        out.extend(length(part.len()));
        out.extend(part.as_bytes());
    }
    out
}

/// The parts of a frame, without the frame's length. `None` if it is damaged.
#[must_use]
pub fn parts(mut bytes: &[u8]) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        parts.push(std::str::from_utf8(part).ok()?);
        bytes = rest;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn order(operation: Operation) -> Order {
        Order { user: "anna".to_owned(), from: "127.0.0.1".to_owned(), operation }
    }

    fn all() -> Vec<Operation> {
        let text = |text: &str| text.to_owned();
        vec![
            Operation::Vcls,
            Operation::Source(text("boot")),
            Operation::Backends,
            Operation::Bans,
            Operation::Parameters,
            Operation::Certificates,
            Operation::Count(vec![text("a")]),
            Operation::Login(text("0123")),
            Operation::Keep { id: text("a"), role: text("view"), csrf: text("b") },
            Operation::Recall(text("a")),
            Operation::Forget(text("a")),
            Operation::Health(text("boot.default"), Health::Sick),
            Operation::Use(text("boot")),
            Operation::Ban(["req.url", "~", "^/a b"].map(text).to_vec()),
            Operation::Tags { is_hard: true, tags: vec![text("-a")] },
            Operation::Tags { is_hard: false, tags: vec![text("a"), text("b c")] },
        ]
    }

    #[test]
    fn orders_survive_the_wire_and_become_commands_of_the_table() {
        for operation in all() {
            let order = order(operation.clone());
            let frame = order.encode();
            assert_eq!(u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize, frame.len() - 4);
            assert_eq!(Order::decode(&frame[4..]), Ok(order));
            let words = operation.command();
            match words.first() {
                Some(verb) => assert!(command(verb).is_some(), "{verb}"),
                None => assert!(!operation.is_change()),
            }
        }
    }

    #[test]
    fn words_that_a_command_would_read_otherwise_are_refused() {
        let name = |name: &str| Order::decode(&order(Operation::Health(name.to_owned(), Health::Sick)).encode()[4..]);
        for wrong in ["", "*", "boot.*", "-v", "a b", "a\n", "a[b]", "a\\b", &"x".repeat(DASH_NAME_BYTES_MAX + 1)] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
        let ban = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Order::decode(&order(Operation::Ban(words)).encode()[4..])
        };
        assert!(ban(&["req.url", "~", "."]).is_ok());
        assert!(ban(&["req.url", "~"]).is_err() && ban(&["req.url", "~", "a\nb"]).is_err());
        assert!(ban(&["req.url", "~", &"x".repeat(DASH_BAN_BYTES_MAX)]).is_err());
        assert!(ban(&vec!["a"; DASH_BAN_WORDS_MAX + 1]).is_err());
        let tags = |tags: Vec<String>| Order::decode(&order(Operation::Tags { is_hard: true, tags }).encode()[4..]);
        assert!(tags(vec![]).is_err() && tags(vec![String::new()]).is_err());
        assert!(tags(vec!["a".to_owned(); DASH_TAGS_MAX + 1]).is_err());
    }

    #[test]
    fn damaged_frames_are_refused() {
        let frame = order(Operation::Use("boot".to_owned())).encode();
        for end in 4..frame.len() {
            assert!(Order::decode(&frame[4..end]).is_err(), "{end}");
        }
        assert!(Order::decode(&super::frame(&["use", "a", "b", "c", "d"])[4..]).is_err());
        assert!(Order::decode(&super::frame(&["quit", "a", "b"])[4..]).is_err());
        assert!(Order::decode(&[0, 0, 0, 1, 0xff]).is_err());
        assert!(Order::decode(&[0xff; 64]).is_err());
    }
}
