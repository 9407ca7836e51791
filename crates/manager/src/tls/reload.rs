//! Reloads of files: all of them on request ([`reload`]), and changed ones automatically
//! ([`watch`]).
//!
//! Tools write a certificate and its key one after the other, so a change counts once two checks in
//! a row saw the same state. Unusable files are reported once and change nothing; the next change
//! is another attempt.

use crate::report::Level;
use crate::state::Manager;
use crate::tls::apply;
use crate::tls::files::{FromFiles, PemFiles, Stamp};
use crate::tls::open::{notes, say_dates, verification};
use crate::tls::registry::{Origin, Registry};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between checks of the parameter while files are not watched.
const IDLE_POLL: Duration = Duration::from_secs(5);
/// Pause before files are tried again that could not be served for a reason outside of them.
const RETRY: Duration = Duration::from_secs(60);
/// Interval between complaints about dates.
const DATES_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Reads every file again, with the options it was loaded with. Returns the number of certificates
/// read. All or nothing.
///
/// # Errors
/// The message for the operator; then everything is as before.
pub async fn reload(manager: &Rc<Manager>) -> Result<usize, String> {
    let reporter = manager.clone();
    apply::change(manager, move |registry| {
        if !registry.staged().is_empty() {
            return Err("Certificates are staged: commit them or roll them back first".to_owned());
        }
        for frontend in registry.frontends_mut() {
            if let Some(authorities) = &frontend.authorities {
                frontend.settings.client = verification(authorities)?;
            }
        }
        let all = from_files(registry);
        let count = all.len();
        for (id, files, _) in all {
            let read = files.read()?;
            note(&reporter, &files, &read);
            registry.refresh(&id, read);
        }
        registry.active().iter().for_each(|certificate| say_dates(certificate, &reporter.reporter));
        Ok(count)
    })
    .await
}

/// The active certificates that are in files.
fn from_files(registry: &Registry) -> Vec<(String, PemFiles, Stamp)> {
    let of_files = registry.active().iter().filter_map(|certificate| match &certificate.origin {
        Origin::Files(files, stamp) => Some((certificate.id.clone(), files.clone(), stamp.clone())),
        Origin::Acme => None,
    });
    of_files.collect()
}

fn note(manager: &Manager, files: &PemFiles, read: &FromFiles) {
    notes(files, read).into_iter().for_each(|note| manager.say(Level::Warning, note));
}

/// State of the watched files.
#[derive(Default)]
struct Watch {
    /// Stamps of the last check, if they differ from those of the loaded files.
    seen: HashMap<String, Stamp>,
    /// Those that could not be used.
    refused: HashMap<String, Refused>,
}

/// Files that could not be used.
struct Refused {
    /// Stamp of the files.
    stamp: Stamp,
    why: String,
    /// Time to try again although they have not changed: the fault was elsewhere.
    again: Option<Instant>,
}

impl Refused {
    fn holds(&self, stamp: &Stamp) -> bool {
        self.stamp == *stamp && self.again.is_none_or(|again| Instant::now() < again)
    }
}

impl Watch {
    /// The certificates whose files have changed and are stable.
    fn look(&mut self, registry: &Registry) -> Vec<(String, PemFiles, Stamp)> {
        let all = from_files(registry);
        self.seen.retain(|id, _| all.iter().any(|(known, ..)| known == id));
        self.refused.retain(|id, _| all.iter().any(|(known, ..)| known == id));
        let mut ready = Vec::new();
        for (id, files, read_as) in all {
            let now = files.stamp();
            if now == read_as {
                self.seen.remove(&id);
                self.refused.remove(&id);
            } else if self.refused.get(&id).is_some_and(|refused| refused.holds(&now)) {
            } else if self.seen.insert(id.clone(), now.clone()).as_ref() == Some(&now) {
                ready.push((id, files, now));
            }
        }
        ready
    }

    /// Loads the changed files.
    async fn load(&mut self, manager: &Rc<Manager>, ready: Vec<(String, PemFiles, Stamp)>) {
        let (mut good, mut changed) = (Vec::new(), Vec::new());
        for (id, files, stamp) in ready {
            match files.read() {
                Ok(read) => {
                    note(manager, &files, &read);
                    changed.push((id.clone(), read));
                    good.push((id, stamp));
                }
                Err(why) => self.refuse(manager, id, stamp, why, None),
            }
        }
        if good.is_empty() {
            return;
        }
        let applied = apply::change(manager, move |registry| {
            changed.into_iter().for_each(|(id, read)| registry.refresh(&id, read));
            Ok(())
        });
        match applied.await {
            Ok(()) => {
                for (id, ..) in good {
                    self.seen.remove(&id);
                    let registry = manager.tls.borrow();
                    let Some(certificate) = registry.find(&id) else { continue };
                    manager
                        .say(Level::Info, format!("certificate {} has changed and is loaded", certificate.described()));
                    say_dates(certificate, &manager.reporter);
                }
            }
            // The worker may have been about to end.
            Err(why) => {
                let again = Some(Instant::now() + RETRY);
                good.into_iter().for_each(|(id, stamp)| self.refuse(manager, id, stamp, why.clone(), again));
            }
        }
    }

    /// Reports unusable files once.
    fn refuse(&mut self, manager: &Manager, id: String, stamp: Stamp, why: String, again: Option<Instant>) {
        let is_said = self.refused.get(&id).is_some_and(|refused| refused.stamp == stamp && refused.why == why);
        if !is_said {
            let text =
                format!("certificate {id} has changed and cannot be used: {why}; what was loaded before is served");
            manager.say(Level::Error, text);
        }
        self.refused.insert(id, Refused { stamp, why, again });
    }
}

/// Checks the files of certificates, their dates, and the age of ticket keys, without end.
pub async fn watch(manager: Rc<Manager>, ticket_rotation: Duration) {
    let mut watch = Watch::default();
    let (mut dates_said, mut rotated) = (Instant::now(), Instant::now());
    loop {
        let interval = Duration::try_from_secs_f64(manager.parameters.borrow().tls_file_poll).unwrap_or(IDLE_POLL);
        tokio::time::sleep(if interval.is_zero() { IDLE_POLL } else { interval }).await;
        if !interval.is_zero() {
            let ready = watch.look(&manager.tls.borrow());
            watch.load(&manager, ready).await;
        }
        if dates_said.elapsed() >= DATES_INTERVAL {
            dates_said = Instant::now();
            manager.tls.borrow().active().iter().for_each(|certificate| say_dates(certificate, &manager.reporter));
        }
        if rotated.elapsed() >= ticket_rotation {
            rotated = Instant::now();
            let rotation = |registry: &mut Registry| {
                registry.rotate_tickets();
                Ok(())
            };
            if let Err(why) = apply::change(&manager, rotation).await {
                manager.say(Level::Error, format!("The key of session tickets could not be changed: {why}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::registry::{Certificate, Frontend, Settings};
    use rcgen::{CertificateParams, KeyPair};
    use std::fs;
    use std::path::Path;
    use tempfile::TempDir;

    fn write_pair(folder: &Path, name: &str) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        fs::write(folder.join("c"), certificate.pem()).unwrap();
        fs::write(folder.join("k"), key.serialize_pem()).unwrap();
    }

    fn registry(folder: &TempDir) -> Registry {
        write_pair(folder.path(), "a.example");
        let files = PemFiles { certificate: folder.path().join("c"), key: Some(folder.path().join("k")), ocsp: None };
        let read = files.read().unwrap();
        let mut registry = Registry::new(vec![Frontend {
            name: "a0".to_owned(),
            settings: Settings::default(),
            matches_global: false,
            http3: false,
            authorities: None,
        }]);
        registry.put(Certificate::from_files("cert0".to_owned(), None, files, read)).unwrap();
        registry
    }

    #[test]
    fn files_that_changed_are_ready_once_they_look_the_same_twice() {
        let folder = TempDir::new().unwrap();
        let registry = registry(&folder);
        let mut watch = Watch::default();
        assert!(watch.look(&registry).is_empty() && watch.look(&registry).is_empty());
        fs::write(folder.path().join("c"), "half").unwrap();
        assert!(watch.look(&registry).is_empty());
        fs::write(folder.path().join("c"), "more than half").unwrap();
        assert!(watch.look(&registry).is_empty(), "they are still being written");
        assert_eq!(watch.look(&registry).len(), 1);
    }

    #[test]
    fn refused_certificate_is_not_retried_until_it_changes() {
        let folder = TempDir::new().unwrap();
        let mut registry = registry(&folder);
        let mut watch = Watch::default();
        fs::write(folder.path().join("c"), "nonsense").unwrap();
        watch.look(&registry);
        let (id, files, stamp) = watch.look(&registry).remove(0);
        assert!(files.read().is_err());
        watch.refused.insert(id.clone(), Refused { stamp, why: String::new(), again: None });
        assert!(watch.look(&registry).is_empty() && watch.look(&registry).is_empty());
        write_pair(folder.path(), "b.example");
        assert!(watch.look(&registry).is_empty());
        let (_, files, _) = watch.look(&registry).remove(0);
        registry.refresh(&id, files.read().unwrap());
        assert_eq!(registry.find("cert0").unwrap().loaded.facts.names, ["b.example"]);
        assert!(watch.look(&registry).is_empty());
        assert!(watch.refused.is_empty() && watch.seen.is_empty());
        registry.remove("cert0");
        fs::write(folder.path().join("c"), "nonsense").unwrap();
        assert!(watch.look(&registry).is_empty() && watch.look(&registry).is_empty());
    }
}
