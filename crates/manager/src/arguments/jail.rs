//! `-j`: the rights with which the worker runs and VCL is read, and the group of administrators.

use nix::unistd::{Gid, Group, User, geteuid, getgrouplist};
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::CString;
use surface::option;

/// User and group ids of `nobody`, on a system that does not define them.
const NOBODY: u32 = 65_534;

/// Jail: the rights of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jail {
    /// All rights of the user who started the daemon, who is not root, or is root without the
    /// capabilities to become another user. Without `-j` the worker enters the sandbox
    /// nevertheless.
    None {
        /// `-j none` was given.
        asked: bool,
    },
    /// The manager stays root, but does not read VCL as root; the worker becomes another user.
    Unix {
        /// The jail's user: its rights are used to read VCL, its includes, and the sockets it
        /// names.
        reader: Reader,
        /// User and group of the worker, never root's. The group is that of the jail's user; it may
        /// read the log and the counters.
        worker: (u32, u32),
        /// Group that may read the secret of the CLI, never the worker's; `None` = only root.
        administrators: Option<u32>,
    },
}

/// The rights of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// User.
    pub user: u32,
    /// Login group.
    pub group: u32,
    /// Every other group.
    pub groups: Vec<u32>,
}

impl Jail {
    /// The name in the identification of the daemon.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Jail::None { .. } => "none",
            Jail::Unix { .. } => "unix",
        }
    }

    /// The rights with which VCL is read, if not our own.
    #[must_use]
    pub fn reader(&self) -> Option<&Reader> {
        match self {
            Jail::None { .. } => None,
            Jail::Unix { reader, .. } => Some(reader),
        }
    }

    /// The group that, besides root, may read the secret of the CLI and connect to its sockets, if
    /// it isn't our own.
    #[must_use]
    pub fn administrators(&self) -> Option<u32> {
        match self {
            Jail::None { .. } => None,
            Jail::Unix { administrators, .. } => Some(administrators.unwrap_or(0)),
        }
    }

    /// User and group that `copal observe` becomes: the jail's user, which may read the counters,
    /// unless that is root.
    #[must_use]
    pub fn observer(&self) -> Option<(u32, u32)> {
        match self {
            Jail::Unix { reader, .. } if reader.user != 0 && reader.group != 0 => Some((reader.user, reader.group)),
            Jail::Unix { worker, .. } => Some(*worker),
            Jail::None { .. } => None,
        }
    }

    /// User and group that the worker becomes.
    #[must_use]
    pub fn worker(&self) -> Option<(u32, u32)> {
        match self {
            Jail::None { .. } => None,
            Jail::Unix { worker, .. } => Some(*worker),
        }
    }
}

/// Line about a daemon of root that has no jail because it may not become another user, as in a
/// container that drops all capabilities; `None` in every other case.
#[must_use]
pub fn remark(jail: &Jail) -> Option<String> {
    let lacks_jail = *jail == Jail::None { asked: false } && geteuid().is_root();
    lacks_jail.then(|| {
        "root without CAP_SETUID and CAP_SETGID: no jail, the worker stays root and is in the sandbox.".to_owned()
    })
}

/// True if this process may become another user. If it is unknown, it may: a failure is reported.
fn may_change_user() -> bool {
    capabilities(None).map_or(true, |sets| sets.effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID))
}

/// Parses `-j`; without one: `unix` for root, if it may become another user, else `none`.
///
/// # Errors
/// The message for the operator.
pub fn parse(argument: Option<&str>) -> Result<Jail, String> {
    let Some(text) = argument else {
        return if geteuid().is_root() && may_change_user() {
            Wanted::default().jail()
        } else {
            Ok(Jail::None { asked: false })
        };
    };
    let (kind, options) = match text.split_once(',') {
        Some((kind, options)) => (kind, Some(options)),
        None => (text, None),
    };
    match kind {
        "" if options.is_none() => Err("-j argument is empty".to_owned()),
        "none" if options.is_some() => Err("-jnone takes no arguments.".to_owned()),
        "none" => Ok(Jail::None { asked: true }),
        "unix" => parse_unix(options),
        _ => Err(format!("Unknown jail method \"{kind}\"")),
    }
}

fn parse_unix(options: Option<&str>) -> Result<Jail, String> {
    if !geteuid().is_root() {
        return Err("Unix Jail: Must be root.".to_owned());
    }
    let mut wanted = Wanted::default();
    for part in options.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
        let unknown = || format!("Unix jail: unknown sub-argument '{part}'");
        let (key, value) = part.split_once('=').ok_or_else(unknown)?;
        let user = || Account::named(value).ok_or_else(|| format!("Unix jail: {value} user not found."));
        let group = || {
            let found = Group::from_name(value).ok().flatten();
            found.ok_or_else(|| format!("Unix jail: {value} group not found."))
        };
        match key {
            option::JAIL_USER => wanted.user = Some(user()?),
            option::JAIL_WORKER => wanted.worker = Some(user()?),
            // No C compiler is used here.
            option::JAIL_COMPILERS => drop(group()?),
            option::JAIL_ADMINISTRATORS => wanted.administrators = Some(group()?),
            _ => return Err(unknown()),
        }
    }
    wanted.jail()
}

/// A user of the system.
#[derive(Clone, Debug)]
struct Account {
    name: String,
    user: u32,
    group: u32,
}

impl Account {
    fn named(name: &str) -> Option<Account> {
        let user = User::from_name(name).ok().flatten()?;
        Some(Account { name: user.name, user: user.uid.as_raw(), group: user.gid.as_raw() })
    }

    fn nobody() -> Account {
        Account::named("nobody").unwrap_or_else(|| Account { name: "nobody".to_owned(), user: NOBODY, group: NOBODY })
    }

    fn reader(&self) -> Reader {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        let groups = getgrouplist(&name, Gid::from_raw(self.group)).unwrap_or_default();
        let groups = groups.into_iter().map(Gid::as_raw).filter(|group| *group != self.group);
        Reader { user: self.user, group: self.group, groups: groups.collect() }
    }
}

/// The words of a Unix jail argument.
#[derive(Default)]
struct Wanted {
    user: Option<Account>,
    worker: Option<Account>,
    administrators: Option<Group>,
}

impl Wanted {
    /// The jail's user is `varnish` and the worker's `vcache` unless others are named. On a system
    /// with only one of these users, it serves as both; with neither, `nobody` does.
    ///
    /// Compat: users with different login groups are refused, with the words of Varnish. Varnish
    /// accepts root as the worker's user if the jail's user is root; here that requires `-j none`.
    fn jail(self) -> Result<Jail, String> {
        let worker = self.worker.or_else(|| Account::named("vcache"));
        let user = self.user.or_else(|| Account::named("varnish")).or_else(|| worker.clone());
        let user = user.unwrap_or_else(Account::nobody);
        let worker = worker.unwrap_or_else(|| user.clone());
        if worker.group != user.group {
            let (user, worker) = (user.name, worker.name);
            return Err(format!("Unix jail: user {user} and {worker} have different login groups"));
        }
        if worker.user == 0 || worker.group == 0 {
            let name = worker.name;
            return Err(format!("Unix jail: the worker would have root's rights as {name} (-j none says so)"));
        }
        if let Some(group) = self.administrators.as_ref().filter(|group| group.gid.as_raw() == worker.group) {
            let (group, worker) = (&group.name, worker.name);
            return Err(format!("Unix jail: admingroup {group} is the group of the worker ({worker})"));
        }
        Ok(Jail::Unix {
            reader: user.reader(),
            worker: (worker.user, worker.group),
            administrators: self.administrators.map(|group| group.gid.as_raw()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jails_are_chosen_and_mistakes_named() {
        assert_eq!(parse(Some("none")), Ok(Jail::None { asked: true }));
        assert_eq!(parse(Some("none,x")), Err("-jnone takes no arguments.".to_owned()));
        assert_eq!(parse(Some("solaris")), Err("Unknown jail method \"solaris\"".to_owned()));
        let root = geteuid().is_root();
        assert_eq!(parse(None).unwrap().name(), if root { "unix" } else { "none" });
        let strange = parse(Some("unix,foo=1")).unwrap_err();
        let expected = if root { "Unix jail: unknown sub-argument 'foo=1'" } else { "Unix Jail: Must be root." };
        assert_eq!(strange, expected);
    }

    fn account(name: &str, user: u32, group: u32) -> Option<Account> {
        Some(Account { name: name.to_owned(), user, group })
    }

    fn refusal(wanted: Wanted) -> String {
        wanted.jail().unwrap_err()
    }

    #[test]
    fn worker_of_another_login_group_or_with_the_rights_of_root_is_refused() {
        let of = |worker: Option<Account>| Wanted { user: account("varnish", 102, 105), worker, administrators: None };
        let expected = "Unix jail: user varnish and root have different login groups";
        assert_eq!(refusal(of(account("root", 0, 0))), expected);
        let expected = "Unix jail: user varnish and www have different login groups";
        assert_eq!(refusal(of(account("www", 33, 33))), expected);
        assert!(of(account("vcache", 103, 105)).jail().is_ok());
        for (user, group) in [(0, 0), (7, 0)] {
            let (both, worker) = (account("root", 0, group), account("w", user, group));
            let refused = refusal(Wanted { user: both, worker, administrators: None });
            assert!(refused.contains("would have root's rights as w"), "{refused}");
        }
        assert!(refusal(of(account("toor", 0, 105))).contains("root's rights as toor"));
    }

    #[test]
    fn administrators_are_never_the_group_of_the_worker() {
        let of = |group: u32| Wanted {
            user: account("varnish", 102, 105),
            worker: account("vcache", 103, 105),
            administrators: Some(Group {
                name: "g".to_owned(),
                passwd: CString::default(),
                gid: group.into(),
                mem: vec![],
            }),
        };
        assert_eq!(refusal(of(105)), "Unix jail: admingroup g is the group of the worker (vcache)");
        let Ok(Jail::Unix { administrators, .. }) = of(4).jail() else { panic!("refused") };
        assert_eq!(administrators, Some(4));
    }
}
