//! How a request was handled, and who made its response: both are judged by the last of its restarts, and the fetches for it.

use shm::read::transaction::Reason as Begun;
use surface::reason::{Handling, Layer, Reason};

use super::account::{Account, Step};

/// According to the last reason that says it.
pub(super) fn handling(account: &Account) -> Handling {
    let (step, fetches) = account.last();
    let said = step.and_then(|step| step.decisions.iter().rev().find_map(|made| made.reason.row().handling));
    match said {
        Some(said) => said,
        None if account.hit().is_some() => Handling::Hit,
        None if account.method.is_empty() => Handling::Error,
        None => without_reasons(&fetches),
    }
}

/// As much as the log of any Varnish tells: according to the purpose of the first fetch.
fn without_reasons(fetches: &[&Step]) -> Handling {
    match fetches.iter().find_map(|fetch| fetch.begun) {
        Some(Begun::Fetch) => Handling::Miss,
        Some(Begun::Pass) => Handling::Pass,
        Some(Begun::Pipe) => Handling::Pipe,
        _ => Handling::Answer,
    }
}

/// Whether the response was made here: by VCL, or because something failed. `None` = it came from the cache, or there
/// was none.
pub(super) fn is_made_here(account: &Account) -> Option<bool> {
    if account.status.is_empty() {
        return None;
    }
    let (step, fetches) = account.last();
    let decided = |reason: Reason| step.is_some_and(|step| has(step, |made| made == reason));
    match handling(account) {
        Handling::Hit | Handling::HitGrace | Handling::HitStale => return None,
        Handling::Synth | Handling::Purge => return Some(true),
        // It was on its way when its body broke off.
        Handling::Error if account.hit().is_some() && decided(Reason::BodyUnreadable) => return None,
        _ => {}
    }
    let failed = |step: &Step| has(step, |reason| reason == Reason::VclFailed || reason.row().layer == Layer::Origin);
    let last = fetches.iter().rfind(|fetch| fetch.begun != Some(Begun::Bgfetch));
    let is_origins = last.is_some_and(|fetch| {
        let status = fetch.origin_status.as_deref();
        (status == Some(account.status.as_str()) || status == Some("304")) && !failed(fetch)
    });
    Some(!is_origins || decided(Reason::VclFailed))
}

fn has(step: &Step, is_meant: impl Fn(Reason) -> bool) -> bool {
    step.decisions.iter().any(|decision| is_meant(decision.reason))
}

#[cfg(test)]
mod tests {
    use super::super::account::Decision;
    use super::*;
    use surface::reason::REASONS;

    fn step(reasons: &[Reason]) -> Step {
        let decisions = reasons.iter().map(|reason| Decision { reason: *reason, details: Vec::new() }).collect();
        Step { decisions, ..Step::default() }
    }

    fn hit(reasons: &[Reason]) -> Step {
        Step { hit: Some(Default::default()), ..step(reasons) }
    }

    fn fetch(origin: Option<&str>, reasons: &[Reason]) -> Step {
        Step { is_fetch: true, origin_status: origin.map(str::to_owned), ..step(reasons) }
    }

    fn account(status: &str, steps: Vec<Step>) -> Account {
        Account { method: "GET".to_owned(), status: status.to_owned(), steps, ..Account::default() }
    }

    #[test]
    fn every_reason_of_a_request_says_how_it_was_handled_or_leaves_that_to_an_earlier_one() {
        for row in REASONS {
            let of = |reasons: &[Reason]| handling(&account("200", vec![step(reasons)]));
            assert_eq!(of(&[Reason::PassByVcl, row.reason]), row.handling.unwrap_or(Handling::Pass), "{}", row.word);
            let is_right = match row.cache_status {
                "hit" => matches!(row.handling, Some(Handling::Hit | Handling::HitGrace | Handling::HitStale)),
                "" => !matches!(row.handling, Some(Handling::Hit | Handling::HitGrace | Handling::HitStale)),
                _ => matches!(row.handling, Some(Handling::Miss | Handling::Pass | Handling::Pipe)),
            };
            assert!(is_right, "{}: {:?}", row.word, row.handling);
        }
    }

    #[test]
    fn the_last_restart_is_judged_alone() {
        let passed = || step(&[Reason::PassByVcl, Reason::RestartByVcl]);
        let of = |status: &str, steps: Vec<Step>| {
            let account = account(status, steps);
            (handling(&account), is_made_here(&account))
        };
        let origins = || fetch(Some("401"), &[]);
        assert_eq!(of("200", vec![passed(), origins(), hit(&[])]), (Handling::Hit, None));
        let missed = vec![passed(), origins(), step(&[Reason::MissAbsent]), fetch(Some("200"), &[])];
        assert_eq!(of("200", missed), (Handling::Miss, Some(false)));
        let refused = vec![hit(&[Reason::RestartByVcl]), step(&[Reason::SynthByVcl])];
        assert_eq!(of("403", refused), (Handling::Synth, Some(true)));
        let asked = vec![step(&[Reason::SynthByVcl, Reason::RestartByVcl]), step(&[Reason::MissAbsent]), origins()];
        assert_eq!(of("401", asked), (Handling::Miss, Some(false)));
        let late = Step { parent: 7, ..fetch(Some("200"), &[Reason::ConnectFailed]) };
        assert_eq!(of("200", vec![step(&[Reason::MissAbsent]), fetch(Some("200"), &[]), late]).1, Some(false));
        let unsaid = Step { begun: Some(Begun::Fetch), ..fetch(Some("200"), &[]) };
        assert_eq!(of("200", vec![passed(), origins(), step(&[]), unsaid]), (Handling::Miss, Some(false)));
    }

    #[test]
    fn what_else_a_request_did_does_not_change_how_it_was_handled() {
        let of = |reasons: &[Reason]| handling(&account("200", vec![step(reasons), fetch(Some("200"), &[])]));
        assert_eq!(of(&[Reason::PassByVcl, Reason::Invalidated]), Handling::Pass);
        assert_eq!(of(&[Reason::MissExpired, Reason::StaleOnError]), Handling::HitStale);
        assert_eq!(of(&[Reason::MissExpired]), Handling::Miss);
        assert_eq!(of(&[Reason::Challenge]), Handling::Synth);
        assert_eq!(handling(&account("200", vec![hit(&[Reason::PassByVcl])])), Handling::Pass);
    }

    #[test]
    fn status_of_the_origin_is_told_from_one_made_here() {
        let of = |origin: Option<&str>, reasons: &[Reason]| {
            is_made_here(&account("503", vec![step(&[Reason::MissAbsent]), fetch(origin, reasons)]))
        };
        assert_eq!(of(Some("503"), &[]), Some(false));
        assert_eq!(of(None, &[Reason::ConnectFailed]), Some(true));
        assert_eq!(of(Some("503"), &[Reason::ErrorByVcl]), Some(true));
        assert_eq!(of(Some("503"), &[Reason::VclFailed]), Some(true));
        assert_eq!(of(Some("200"), &[]), Some(true));
        let of = |steps: Vec<Step>| is_made_here(&account("503", steps));
        assert_eq!(of(vec![step(&[Reason::MissExpired, Reason::StaleOnError]), fetch(None, &[])]), None);
        assert_eq!(of(vec![hit(&[])]), None);
        assert_eq!(of(vec![hit(&[Reason::BodyUnreadable])]), None);
        assert_eq!(of(vec![hit(&[Reason::VclFailed])]), Some(true));
    }
}
