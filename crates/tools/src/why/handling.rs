//! How a request was handled, and who made its response.

use shm::read::transaction::Reason as Begun;
use surface::reason::{Layer, Reason};

use super::account::{Account, Step};

/// How a request was handled, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Handling {
    Hit,
    HitGrace,
    /// The origin failed.
    HitStale,
    Miss,
    Pass,
    Pipe,
    Purge,
    Synth,
    Error,
    /// The log does not say.
    Answer,
}

impl Handling {
    /// All of them.
    #[cfg(test)]
    pub(super) const ALL: &'static [Handling] = &[
        Handling::Hit,
        Handling::HitGrace,
        Handling::HitStale,
        Handling::Miss,
        Handling::Pass,
        Handling::Pipe,
        Handling::Purge,
        Handling::Synth,
        Handling::Error,
        Handling::Answer,
    ];

    /// The word in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Handling::Hit => "hit",
            Handling::HitGrace => "hit-grace",
            Handling::HitStale => "hit-stale",
            Handling::Miss => "miss",
            Handling::Pass => "pass",
            Handling::Pipe => "pipe",
            Handling::Purge => "purge",
            Handling::Synth => "synth",
            Handling::Error => "error",
            Handling::Answer => "answer",
        }
    }

    /// The text for the first line of an explanation.
    pub(super) fn text(self) -> &'static str {
        match self {
            Handling::HitGrace => "hit (stale, in grace)",
            Handling::HitStale => "hit (stale, since the origin failed)",
            Handling::Synth => "answer made by VCL",
            other => other.word(),
        }
    }

    /// According to the last reason that determines it.
    pub(super) fn of(account: &Account) -> Handling {
        let mut decisions = account.steps.iter().filter(|step| !step.is_fetch).flat_map(|step| &step.decisions);
        let last = decisions.rfind(|decision| decision.reason != Reason::RestartByVcl).map(|last| last.reason);
        match last {
            Some(Reason::HitGrace) => Handling::HitGrace,
            Some(Reason::StaleOnError) => Handling::HitStale,
            Some(Reason::PassByVcl | Reason::HitForPass) => Handling::Pass,
            Some(Reason::PipeByVcl) => Handling::Pipe,
            Some(Reason::PurgeByVcl) => Handling::Purge,
            Some(Reason::SynthByVcl) => Handling::Synth,
            Some(
                Reason::VclFailed
                | Reason::TooManyRestarts
                | Reason::InternalError
                | Reason::BadRequest
                | Reason::RequestTooLarge
                | Reason::ExpectationUnknown
                | Reason::ClientGone,
            ) => Handling::Error,
            Some(reason) if reason.row().layer == Layer::Lookup => Handling::Miss,
            Some(_) => Handling::Error,
            None if account.hit.is_some() => Handling::Hit,
            None if account.method.is_empty() => Handling::Error,
            None => Handling::without_reasons(account),
        }
    }

    /// As much as the log of any Varnish tells: according to the purpose of the first fetch.
    fn without_reasons(account: &Account) -> Handling {
        match account.steps.iter().find(|step| step.is_fetch).and_then(|step| step.begun) {
            Some(Begun::Fetch) => Handling::Miss,
            Some(Begun::Pass) => Handling::Pass,
            Some(Begun::Pipe) => Handling::Pipe,
            _ => Handling::Answer,
        }
    }
}

/// Whether the response was made here: by VCL, or because something failed. `None` = it came from the cache, or there
/// was none.
pub(super) fn is_made_here(account: &Account) -> Option<bool> {
    if account.status.is_empty() || account.hit.is_some() {
        return None;
    }
    let decided =
        |reason: Reason| account.steps.iter().any(|step| step.decisions.iter().any(|made| made.reason == reason));
    if decided(Reason::HitGrace) || decided(Reason::StaleOnError) {
        return None;
    }
    let failed = |step: &Step| step.decisions.iter().any(|decision| decision.reason.row().layer == Layer::Origin);
    let last = account.steps.iter().rfind(|step| step.is_fetch && step.begun != Some(Begun::Bgfetch));
    let is_origins = last.is_some_and(|fetch| {
        let status = fetch.origin_status.as_deref();
        (status == Some(account.status.as_str()) || status == Some("304")) && !failed(fetch)
    });
    Some(!is_origins || decided(Reason::SynthByVcl) || decided(Reason::VclFailed))
}

#[cfg(test)]
mod tests {
    use super::super::account::Decision;
    use super::*;

    #[test]
    fn a_stale_copy_in_place_of_an_error_is_a_hit() {
        let decided = |reasons: &[Reason]| {
            let decisions = reasons.iter().map(|reason| Decision { reason: *reason, details: Vec::new() }).collect();
            let step = Step { decisions, ..Step::default() };
            Handling::of(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() })
        };
        assert_eq!(decided(&[Reason::MissExpired, Reason::StaleOnError]), Handling::HitStale);
        assert_eq!(decided(&[Reason::MissExpired]), Handling::Miss);
    }

    #[test]
    fn status_of_the_origin_is_told_from_one_made_here() {
        let of = |origin: Option<&str>, reason: Option<Reason>| {
            let decisions = reason.into_iter().map(|reason| Decision { reason, details: Vec::new() }).collect();
            let origin_status = origin.map(str::to_owned);
            let step = Step { is_fetch: true, decisions, origin_status, ..Step::default() };
            is_made_here(&Account {
                method: "GET".to_owned(),
                status: "503".to_owned(),
                steps: vec![step],
                ..Account::default()
            })
        };
        assert_eq!(of(Some("503"), None), Some(false));
        assert_eq!(of(None, Some(Reason::ConnectFailed)), Some(true));
        assert_eq!(of(Some("503"), Some(Reason::ErrorByVcl)), Some(true));
        assert_eq!(of(Some("200"), None), Some(true));
        assert_eq!(of(None, Some(Reason::StaleOnError)), None);
        let hit = Account { status: "503".to_owned(), hit: Some(Default::default()), ..Account::default() };
        assert_eq!(is_made_here(&hit), None);
    }
}
