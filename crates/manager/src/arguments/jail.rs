//! `-j`: whose rights the worker runs with.

use nix::unistd::{Group, User, geteuid};

/// User and group of nobody, on a system that has no name for them.
const NOBODY: u32 = 65_534;

/// What the processes may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jail {
    /// Everything that the user may who started the daemon. Without `-j` the worker is fenced all the same.
    None {
        /// `-j none` was given.
        asked: bool,
    },
    /// The manager stays root, the worker becomes another user.
    Unix {
        /// User and group of the worker.
        worker: (u32, u32),
        /// Group that may read the log and the counters.
        readers: Option<u32>,
    },
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
}

/// Parses `-j`; without one: `unix` for root, else `none`.
///
/// # Errors
/// The message for the operator.
pub fn parse(argument: Option<&str>) -> Result<Jail, String> {
    let Some(text) = argument else {
        return Ok(if geteuid().is_root() { default_unix() } else { Jail::None { asked: false } });
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
    let (mut worker, mut readers) = default_users();
    for option in options.unwrap_or_default().split(',').filter(|option| !option.is_empty()) {
        let unknown = || format!("Unix jail: unknown sub-argument '{option}'");
        let (key, value) = option.split_once('=').ok_or_else(unknown)?;
        let user = || {
            let found = User::from_name(value).ok().flatten();
            found.ok_or_else(|| format!("Unix jail: {value} user not found."))
        };
        match key {
            "user" => readers = Some(user()?.gid.as_raw()),
            "workuser" => {
                let user = user()?;
                worker = (user.uid.as_raw(), user.gid.as_raw());
            }
            "ccgroup" => {
                let found = Group::from_name(value).ok().flatten();
                found.ok_or_else(|| format!("Unix jail: {value} group not found."))?;
            }
            _ => return Err(unknown()),
        }
    }
    Ok(Jail::Unix { worker, readers })
}

fn default_unix() -> Jail {
    let (worker, readers) = default_users();
    Jail::Unix { worker, readers }
}

/// The worker becomes `vcache`, else `varnish`, else `nobody`, by number where the system has no such name: it never stays
/// root. The group of `varnish`, else the worker's, reads.
fn default_users() -> ((u32, u32), Option<u32>) {
    let user = |name: &str| User::from_name(name).ok().flatten();
    let varnish = user("varnish");
    let worker = user("vcache").or_else(|| varnish.clone()).or_else(|| user("nobody"));
    let worker = worker.map_or((NOBODY, NOBODY), |user| (user.uid.as_raw(), user.gid.as_raw()));
    let readers = varnish.map_or(worker.1, |user| user.gid.as_raw());
    (worker, Some(readers))
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
}
