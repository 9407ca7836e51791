//! Probe results of a backend, reused for an equivalent backend of another VCL or of the next
//! worker.
//!
//! A backend that has a probe counts as sick until a check was good. Where the same check of the
//! same address has just been good, that result is reused, and misses need not fail until the check
//! has been repeated. Compat: Varnish begins anew with every load, and with every worker.

use crate::backend::Backend;
use crate::probe::ProbeState;
use crate::probe::window::Window;
use crate::tls_settings::TlsSettings;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use surface::counter::Vbe;
use vcl_run::program::BackendDefinition;

/// Results for backends that are healthy by their probes, by a number that is the same for all
/// backends that are checked in the same way, in one version of the program.
pub type Findings = HashMap<u64, Finding>;

/// The checks of a backend that is healthy by its probe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Finding {
    /// The mask of good checks, the latest in bit 0.
    pub happy: u64,
    /// Average time of the good checks, in seconds.
    pub average_seconds: f64,
}

impl Backend {
    /// Its result; `None` without a probe, and unless it is healthy by it.
    #[must_use]
    pub fn finding(&self) -> Option<(u64, Finding)> {
        let window = self.probe()?.window();
        if !window.is_healthy() || !self.health().probed() {
            return None;
        }
        Some((self.check_key()?, Finding { happy: window.happy(), average_seconds: window.average_seconds() }))
    }

    /// True if its probe has made a check in this process.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.probe().is_some_and(ProbeState::is_checked)
    }

    /// Starts its probe with the results of an equivalent backend, unless it begins as healthy by
    /// itself. `now` is in seconds since 1970. Returns true if there were any.
    pub fn begin_with(&self, known: &Findings, now: f64) -> bool {
        let Some(probe) = self.probe() else { return false };
        if known.is_empty() || probe.window().is_healthy() {
            return false;
        }
        let Some(found) = self.check_key().and_then(|key| known.get(&key)) else { return false };
        let window = Window::resumed(probe.definition(), found.happy, found.average_seconds);
        if !window.is_healthy() {
            return false;
        }
        probe.resume(window);
        self.counters().set(Vbe::Happy as usize, window.happy());
        self.health().set_probed(true, now);
        true
    }

    /// A number for everything that may make a difference to a check; `None` without a probe.
    #[must_use]
    pub fn check_key(&self) -> Option<u64> {
        let probe = self.probe()?;
        Some(probe.key(|| {
            // TLS settings have a digest.
            let definition = BackendDefinition { probe: None, tls: None, ..self.definition().clone() };
            let mut hasher = DefaultHasher::new();
            format!("{definition:?} {:?}", probe.definition()).hash(&mut hasher);
            self.tls().map(TlsSettings::identity).hash(&mut hasher);
            hasher.finish()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{definition, probe};
    use crate::probe::outcome::{Family, Outcome};
    use vcl_run::program::ProbeDefinition;

    fn backend(change: impl FnOnce(&mut BackendDefinition, &mut ProbeDefinition)) -> std::sync::Arc<Backend> {
        let (mut definition, mut probe) = (definition("b"), probe(2, 4, 3));
        change(&mut definition, &mut probe);
        Backend::new("vcl", definition, Some(&probe), 1.0)
    }

    fn check(backend: &Backend, happy: bool) {
        let outcome = Outcome {
            family: Some(Family::Ipv4),
            sent: Some(true),
            received: Some(happy),
            happy,
            seconds: 0.5,
            text: String::new(),
        };
        let window = backend.probe().unwrap().note(&outcome);
        backend.health().set_probed(window.is_healthy(), 2.0);
    }

    #[test]
    fn one_that_is_the_same_to_a_probe_begins_healthy_and_others_do_not() {
        let old = backend(|_, _| {});
        assert_eq!(old.finding(), None, "nothing was found yet");
        check(&old, true);
        let known = Findings::from([old.finding().unwrap()]);
        let new = backend(|definition, _| definition.probe = Some(7));
        assert!(!new.health().is_healthy() && new.begin_with(&known, 3.0));
        assert!(new.health().is_healthy());
        assert_eq!((new.counters().get(Vbe::Happy as usize), new.probe().unwrap().window().good()), (0b111, 3));
        check(&new, false);
        check(&new, false);
        assert!(!new.health().is_healthy(), "and is judged by its own checks from then on");
        let others = [
            backend(|definition, _| definition.port = "81".to_owned()),
            backend(|_, probe| probe.threshold = 4),
            backend(|_, probe| probe.url = "/other".to_owned()),
        ];
        for other in others {
            assert!(!other.begin_with(&known, 3.0));
            assert!(!other.health().is_healthy());
        }
    }

    #[test]
    fn one_that_was_sick_says_nothing_and_what_makes_no_sense_is_not_believed() {
        let old = backend(|_, _| {});
        check(&old, true);
        let (key, found) = old.finding().unwrap();
        check(&old, false);
        check(&old, false);
        assert_eq!(old.finding(), None);
        let new = backend(|_, _| {});
        assert!(!new.begin_with(&Findings::from([(key, Finding { happy: 1, ..found })]), 3.0), "too few good checks");
        assert!(!new.health().is_healthy());
        let nonsense = Finding { average_seconds: f64::NAN, ..found };
        assert!(new.begin_with(&Findings::from([(key, nonsense)]), 3.0));
        assert_eq!(new.probe().unwrap().window().average_seconds(), 0.0);
    }
}
