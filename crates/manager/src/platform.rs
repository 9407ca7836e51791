//! Our identity: the identification of the platform, the banner of the CLI, the host's name.

use crate::arguments::Arguments;
use nix::sys::utsname::uname;
use surface::version::VARNISH_BANNER;

/// `Linux,<release>,<architecture>,-j<jail>,-s<kind>,…,-h<hasher>`, as tools and panics show it.
#[must_use]
pub fn identification(arguments: &Arguments) -> String {
    let (system, release, machine) = match uname() {
        Ok(names) => {
            let text = |name: &std::ffi::OsStr| name.to_string_lossy().into_owned();
            (text(names.sysname()), text(names.release()), text(names.machine()))
        }
        Err(_) => ("Linux".to_owned(), String::new(), String::new()),
    };
    let storages: String = arguments.storages.all().map(|storage| format!(",-s{}", storage.kind)).collect();
    format!("{system},{release},{machine},-j{}{storages},-h{}", arguments.jail.name(), arguments.hasher)
}

/// The greeting of a new CLI connection.
#[must_use]
pub fn banner(identification: &str, worker_runs: bool) -> String {
    let line = "-".repeat(29);
    let start = if worker_runs { "" } else { "Type 'start' to launch worker process.\n" };
    format!(
        "{line}\nVarnish Cache CLI 1.0\n{line}\n{identification}\n{VARNISH_BANNER}\n\n\
         Type 'help' for command list.\nType 'quit' to close CLI session.\n{start}"
    )
}

/// The host's name.
#[must_use]
pub fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_is_the_one_that_tools_know() {
        let text = banner("Linux,6.1,x86_64,-junix,-smalloc,-sdefault,-hcritbit", false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "Varnish Cache CLI 1.0");
        assert!(lines[4].starts_with("varnish-7.1.1 revision "));
        assert_eq!(lines.last(), Some(&"Type 'start' to launch worker process."));
        assert_eq!(banner("x", true).lines().last(), Some("Type 'quit' to close CLI session."));
    }
}
