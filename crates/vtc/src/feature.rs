//! `feature`: skips the test unless the machine and the tested program have the required features.
//!
//! The answers are about this machine and this runner. Features of the stock daemon's build
//! (sanitizers, coverage, persistent storage) are answered with no.

use std::net::SocketAddr;

use nix::unistd::{Group, User, geteuid};
use socket2::Type;
use surface::test_script;

use crate::address;
use crate::journal::Journal;
use crate::specification::Arguments;
use crate::test::{Outcome, Stop};

/// A name with exactly this one address: if DNS gives another or none, it can't be trusted.
const DNS_CANARY: (&str, &str) = ("dns-canary.varnish-cache.org", "192.0.2.255");

/// Executes `feature NAME…`.
///
/// # Errors
/// Something is missing: the test is skipped. Or it is not a feature: the test fails.
pub fn command(journal: &Journal, arguments: &mut Arguments) -> Outcome {
    while let Some(word) = arguments.next() {
        let text = word.text();
        let (name, unwanted) = text.strip_prefix('!').map_or((text.as_str(), false), |name| (name, true));
        if !test_script::FEATURES.iter().any(|row| row.name == name) {
            return Err(journal.fail(format!("FAIL test, unknown feature: {name}")));
        }
        let is_there = match name {
            "ignore_unknown_macro" => {
                journal.test.keep_unknown_macros();
                continue;
            }
            "cmd" => succeeds(journal, &arguments.need("the command-line")?.bytes),
            _ => has(journal, name),
        };
        if is_there != unwanted {
            continue;
        }
        let why = if unwanted { "conflicting" } else { "lacking" };
        journal.log(1, format!("SKIPPING test, {why} feature: {name}"));
        journal.test.skip();
        return Err(Stop::Ended);
    }
    Ok(())
}

fn succeeds(journal: &Journal, line: &[u8]) -> bool {
    let mut command = journal.test.shell(line);
    match command.output() {
        Ok(output) => {
            if !output.stdout.is_empty() || !output.stderr.is_empty() {
                journal.dump(4, "feature", &[output.stdout, output.stderr].concat());
            }
            output.status.code().unwrap_or(0) == 0
        }
        Err(_) => false,
    }
}

fn has(journal: &Journal, name: &str) -> bool {
    match name {
        "64bit" => usize::BITS == 64,
        "ipv4" => can_bind("127.0.0.1:0"),
        "ipv6" => can_bind("[::1]:0"),
        "dns" => dns_works(),
        "disable_aslr" => randomisation_can_be_off(),
        "topbuild" => journal.test.settings.in_build_tree,
        "root" => geteuid().is_root(),
        "user_varnish" => matches!(User::from_name("varnish"), Ok(Some(_))),
        "user_vcache" => matches!(User::from_name("vcache"), Ok(Some(_))),
        "group_varnish" => matches!(Group::from_name("varnish"), Ok(Some(_))),
        _ => false,
    }
}

fn can_bind(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| address::bind(address, Type::STREAM).is_ok())
}

fn dns_works() -> bool {
    let (name, address) = DNS_CANARY;
    address::resolve(name, Some(80)).is_ok_and(|found| found.iter().all(|one| one.ip().to_string() == address))
}

/// If so, also switches it off for everything started from now on, as in the stock runner.
fn randomisation_can_be_off() -> bool {
    use nix::sys::personality::{self, Persona};
    personality::get().and_then(|now| personality::set(now | Persona::ADDR_NO_RANDOMIZE)).is_ok()
}
