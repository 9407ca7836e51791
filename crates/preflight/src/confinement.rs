//! Restrictions of a unit, and a verdict if the daemon needs the restricted rights.
//!
//! Only settings are checked that prevent a start, or the start of the next worker. The observed
//! effect of each under systemd 252 is in `docs/operate/secure.md`.
//!
//! Source: systemd.exec(5), "CAPABILITIES", "SYSTEM CALL FILTERING", `RestrictAddressFamilies=`.

use crate::report::{Place, Report};
use std::collections::BTreeSet;

/// Without one of these the worker, or the second one, cannot start.
const CAPABILITIES: &[&str] = &["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETGID", "CAP_SETUID"];

/// System calls with which a worker enters the sandbox. Lists of systemd that are older than
/// landlock do not have them.
const SANDBOX_CALLS: &[&str] = &["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"];

/// Groups that contain all of those. systemd 252 does not have `@sandbox`, and ignores it.
const SANDBOX_GROUPS: &[&str] = &["@known"];

/// The values of a setting in the order of their reading, with the place of each.
pub(crate) type Values = Vec<(String, Place)>;

/// Judges `CapabilityBoundingSet=` of a unit that starts as root. An empty value removes all of
/// them, and `~` restores all.
pub(crate) fn capabilities(values: &Values, report: &mut Report) {
    let all = || CAPABILITIES.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let mut left = all();
    let mut is_narrowed = false;
    for (value, _) in values {
        let names = |text: &str| text.split_whitespace().map(str::to_ascii_uppercase).collect::<BTreeSet<_>>();
        match value.strip_prefix('~') {
            Some(rest) if rest.trim().is_empty() => (left, is_narrowed) = (all(), false),
            Some(rest) => {
                left = left.difference(&names(rest)).cloned().collect();
                is_narrowed = true;
            }
            None if is_narrowed && !value.is_empty() => left.extend(names(value)),
            None => (left, is_narrowed) = (names(value), true),
        }
    }
    let missing: Vec<&str> = CAPABILITIES.iter().copied().filter(|name| !left.contains(*name)).collect();
    if let Some((value, place)) = values.last()
        && !missing.is_empty()
    {
        report.blocks(
            place,
            format!("CapabilityBoundingSet={value}: without {} it can't start workers", missing.join(", ")),
            "CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL CAP_DAC_OVERRIDE",
        );
    }
}

/// Judges `SystemCallFilter=`, a list of allowed calls if its first value has no `~`. With a
/// `SystemCallErrorNumber=` other calls fail, without it they kill.
pub(crate) fn system_calls(values: &Values, has_error_number: bool, report: &mut Report) {
    let Some((first, _)) = values.first() else { return };
    if first.starts_with('~') {
        return;
    }
    let mut allowed = BTreeSet::new();
    for (value, _) in values {
        let (rest, is_taken_back) = value.strip_prefix('~').map_or((value.as_str(), false), |rest| (rest, true));
        // An error number of its own may follow a name.
        for name in rest.split_whitespace().map(|word| word.split(':').next().unwrap_or(word)) {
            match is_taken_back {
                true => allowed.remove(name),
                false => allowed.insert(name),
            };
        }
    }
    let has = |name: &&str| allowed.contains(*name);
    if SANDBOX_GROUPS.iter().any(has) || SANDBOX_CALLS.iter().all(has) {
        return;
    }
    let Some((value, place)) = values.last() else { return };
    let remedy = format!("a further line SystemCallFilter={}", SANDBOX_CALLS.join(" "));
    match has_error_number {
        true => report.changes(
            place,
            format!("SystemCallFilter={value}: the worker can't fence itself in, and runs without"),
            remedy,
        ),
        false => report.blocks(
            place,
            format!("SystemCallFilter={value}: the worker is killed when it fences itself in"),
            remedy,
        ),
    }
}

/// Judges `RestrictAddressFamilies=`: readiness, the watchdog and the kept storages need a socket
/// of `AF_UNIX`.
pub(crate) fn address_families(values: &Values, report: &mut Report) {
    let (Some((first, _)), Some((value, place))) = (values.first(), values.last()) else { return };
    let denies = first.starts_with('~');
    let mut is_listed = false;
    for (value, _) in values {
        let (rest, is_inverted) = value.strip_prefix('~').map_or((value.as_str(), false), |rest| (rest, true));
        if rest.split_whitespace().any(|name| name == "AF_UNIX") {
            is_listed = is_inverted == denies;
        }
    }
    if is_listed == denies {
        report.blocks(
            place,
            format!("RestrictAddressFamilies={value}: without AF_UNIX systemd never hears that it is ready"),
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn values(texts: &[&str]) -> Values {
        texts.iter().enumerate().map(|(line, text)| ((*text).to_owned(), Place::new("f", line + 1))).collect()
    }

    /// The verdict, or none if nothing was reported.
    fn verdict(judge: impl FnOnce(&mut Report)) -> Option<Verdict> {
        let mut report = Report::default();
        judge(&mut report);
        Some(report.verdict()).filter(|verdict| *verdict != Verdict::Works)
    }

    #[test]
    fn capabilities_that_a_worker_needs_are_missed() {
        let judged = |texts: &[&str]| verdict(|report| capabilities(&values(texts), report));
        let whole = "CAP_NET_BIND_SERVICE CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL CAP_DAC_OVERRIDE";
        for right in [&[][..], &[whole], &["~CAP_SYS_ADMIN"], &["", "~"], &["CAP_SETUID", whole], &["", whole]] {
            assert_eq!(judged(right), None, "{right:?}");
        }
        let without_dac = "CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL";
        for wrong in [&[without_dac][..], &[""], &[whole, "~CAP_CHOWN"], &["~CAP_SETUID"], &["~", without_dac]] {
            assert_eq!(judged(wrong), Some(Verdict::Blocks), "{wrong:?}");
        }
        assert_eq!(judged(&["~CAP_SETUID CAP_SYS_ADMIN", "cap_setuid"]), None);
    }

    #[test]
    fn system_call_filter_without_the_sandbox_calls_is_reported() {
        let judged = |texts: &[&str], number| verdict(|report| system_calls(&values(texts), number, report));
        let sandbox_calls = "landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp";
        for right in [&[][..], &["@system-service", sandbox_calls], &["~@debug"], &["@known"]] {
            assert_eq!(judged(right, false), None, "{right:?}");
        }
        for wrong in
            [&["@system-service"][..], &["@system-service @sandbox"], &["@system-service", sandbox_calls, "~seccomp"]]
        {
            assert_eq!(judged(wrong, false), Some(Verdict::Blocks), "{wrong:?}");
            assert_eq!(judged(wrong, true), Some(Verdict::Changes), "{wrong:?}");
        }
    }

    #[test]
    fn systemd_is_notified_over_a_unix_socket() {
        let judged = |texts: &[&str]| verdict(|report| address_families(&values(texts), report));
        for right in [&[][..], &["AF_INET AF_UNIX"], &["~AF_PACKET"], &["AF_INET", "AF_UNIX"]] {
            assert_eq!(judged(right), None, "{right:?}");
        }
        for wrong in [&["AF_INET AF_INET6"][..], &["none"], &["~AF_UNIX AF_PACKET"], &["AF_UNIX AF_INET", "~AF_UNIX"]] {
            assert_eq!(judged(wrong), Some(Verdict::Blocks), "{wrong:?}");
        }
    }
}
