//! Storage of the account and the certificates: [`Folder`]. Everything here blocks, and runs off
//! the manager's loop.
//!
//! ```text
//! FOLDER/AUTHORITY/lock                              held by the server that orders
//!                  account.json                      our account there, with its key
//!                  challenges/TOKEN                  the current answers
//!                  certificates/NAME/certificate.pem chain and key
//!                  certificates/NAME/state.json      the record of the orders so far
//! ```
//!
//! Only the owner can read it (0700, 0600). Files are replaced as a whole: written under another
//! name, synced to disk, renamed. Chain and key are in one file, so they always belong together. An
//! unreadable file is renamed and never deleted. Several servers may share the folder: the holder
//! of the lock orders, and all of them read the result. Next file: `conversation.rs`.

use super::plan::Record;
use crate::arguments::acme::Way;
use nix::fcntl::{Flock, FlockArg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use surface::limits::{ACME_CHALLENGES_MAX, ACME_FILE_BYTES_MAX};
use tls::certificate::{LoadedCertificate, Pem};

/// The answer to an authority that validates a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Challenge type.
    pub way: Way,
    /// The name.
    pub name: String,
    /// The challenge's token.
    pub token: String,
    /// The answer over HTTP.
    pub authorization: String,
    /// Its SHA-256, the answer in a handshake.
    pub digest: Vec<u8>,
}

/// Identity of a file's version; differs once the file was replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(i64, i64, u64, u64);

/// A stored certificate.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Stamp of its file.
    pub stamp: Stamp,
    /// Parsed content of the file.
    pub loaded: LoadedCertificate,
}

/// An unusable file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(
    /// One line that names it.
    pub String,
);

/// Held while ordering. The system releases it when the process ends.
pub struct Lock(#[allow(dead_code)] Flock<File>);

/// The folder of one authority.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder, below `base`, for an authority's directory URL. Certificates of different
    /// authorities, such as one for tests, are never mixed.
    #[must_use]
    pub fn of(base: &Path, directory: &str) -> Folder {
        let place = directory.split_once("://").map_or(directory, |(_, rest)| rest);
        let host = place.split('/').next().unwrap_or_default();
        let path = place.strip_prefix(host).unwrap_or_default();
        let mut label: String = host.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
        // The usual paths add nothing; other paths distinguish authorities at one host.
        if !matches!(path, "" | "/" | "/directory" | "/dir") {
            label.extend(path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }));
        }
        Folder { path: base.join(label.trim_matches(['.', '-'])) }
    }

    /// Creates it if it does not exist.
    ///
    /// # Errors
    /// It cannot be created or written, or other users may read it.
    pub fn prepare(&self) -> Result<(), String> {
        let failed =
            |path: &Path, error: &io::Error| format!("{}: {}", path.display(), crate::arguments::reason(error));
        for path in [self.path.clone(), self.challenges(), self.path.join("certificates")] {
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| failed(&path, &error))?;
            let mode = fs::metadata(&path).map_err(|error| failed(&path, &error))?.permissions().mode();
            if mode & 0o077 != 0 {
                fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(|error| failed(&path, &error))?;
            }
        }
        self.open_lock().map(drop).map_err(|error| failed(&self.path.join("lock"), &error))
    }

    /// Takes the lock; `None` if another process holds it.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        match Flock::lock(self.open_lock()?, FlockArg::LockExclusiveNonblock) {
            Ok(held) => Ok(Some(Lock(held))),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error.into()),
        }
    }

    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.path.join("lock"))
    }

    /// The account, as it was saved.
    ///
    /// # Errors
    /// [`Damage`]: the file was renamed.
    pub fn account<T: DeserializeOwned>(&self) -> Result<Option<T>, Damage> {
        self.read_json(&self.path.join("account.json"))
    }

    /// Saves the account.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_account(&self, text: &str) -> io::Result<()> {
        replace(&self.path.join("account.json"), text.as_bytes())
    }

    /// Renames the file of an account that the authority no longer accepts.
    pub fn set_account_aside(&self) -> Damage {
        self.damage(&self.path.join("account.json"), "the authority does not know it")
    }

    /// A certificate, if there is one.
    ///
    /// # Errors
    /// [`Damage`]: the file was renamed.
    pub fn certificate(&self, name: &str) -> Result<Option<Stored>, Damage> {
        let path = self.certificate_path(name);
        let stamp = self.stamp(name);
        let Some(bytes) = self.read(&path)? else { return Ok(None) };
        match Pem::read(&bytes, None) {
            Ok(loaded) => Ok(Some(Stored { stamp, loaded })),
            Err(error) => Err(self.damage(&path, &error.to_string())),
        }
    }

    /// Stamp of the certificate's file, to detect its replacement.
    #[must_use]
    pub fn stamp(&self, name: &str) -> Stamp {
        fs::metadata(self.certificate_path(name))
            .map_or(Stamp::default(), |found| Stamp(found.mtime(), found.mtime_nsec(), found.ino(), found.size()))
    }

    /// Saves a certificate: chain and key in PEM.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_certificate(&self, name: &str, pem: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.certificate_path(name).with_file_name(""))?;
        replace(&self.certificate_path(name), pem)
    }

    /// Record of the orders so far. An unreadable record is renamed and counts as empty.
    ///
    /// # Errors
    /// [`Damage`]: the file was renamed.
    pub fn record(&self, name: &str) -> Result<Record, Damage> {
        Ok(self.read_json(&self.certificate_path(name).with_file_name("state.json"))?.unwrap_or_default())
    }

    /// Saves the record.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_record(&self, name: &str, record: &Record) -> io::Result<()> {
        let path = self.certificate_path(name).with_file_name("state.json");
        DirBuilder::new().recursive(true).mode(0o700).create(path.with_file_name(""))?;
        replace(&path, &serde_json::to_vec_pretty(record)?)
    }

    /// The current answers, in a fixed order. Files that are not our challenges are left out.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let entries = fs::read_dir(self.challenges()).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).take(ACME_CHALLENGES_MAX).collect();
        names.sort();
        let read = |name: &std::ffi::OsString| -> Option<Answer> {
            let answer: Answer = serde_json::from_slice(&bounded(&self.challenges().join(name)).ok()?).ok()?;
            (answer.token.as_str() == name && is_token(&answer.token) && answer.digest.len() == 32).then_some(answer)
        };
        names.iter().filter_map(read).collect()
    }

    /// Replaces the answers.
    ///
    /// # Errors
    /// A token is invalid, there are too many, or they cannot be written.
    pub fn set_answers(&self, answers: &[Answer]) -> io::Result<()> {
        for entry in fs::read_dir(self.challenges())? {
            let _ = fs::remove_file(entry?.path());
        }
        if answers.len() > ACME_CHALLENGES_MAX || !answers.iter().all(|answer| is_token(&answer.token)) {
            return Err(io::Error::other("a challenge with a token that RFC 8555 does not allow"));
        }
        answers
            .iter()
            .try_for_each(|answer| replace(&self.challenges().join(&answer.token), &serde_json::to_vec(answer)?))
    }

    fn challenges(&self) -> PathBuf {
        self.path.join("challenges")
    }

    fn certificate_path(&self, name: &str) -> PathBuf {
        // Names are those of hosts: no slash, no dot at the ends.
        self.path.join("certificates").join(name).join("certificate.pem")
    }

    fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Damage> {
        let Some(bytes) = self.read(path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| self.damage(path, &error.to_string()))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Damage> {
        match bounded(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.damage(path, &crate::arguments::reason(&error))),
        }
    }

    /// Renames an unreadable file. If that fails the file stays, and is reported again.
    fn damage(&self, path: &Path, why: &str) -> Damage {
        let shown = path.display();
        let quarantined = (0..1000)
            .map(|number| path.with_extension(format!("damaged-{number}")))
            .find(|quarantined| !quarantined.exists() && fs::rename(path, quarantined).is_ok());
        Damage(match quarantined {
            Some(quarantined) => format!("{shown} is of no use ({why}); set aside as {}", quarantined.display()),
            None => format!("{shown} is of no use ({why}) and cannot be set aside"),
        })
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-')
}

/// True if RFC 8555 allows the token (base64url), so that it is safe as a file name and as the end
/// of a path.
#[must_use]
pub fn is_token(token: &str) -> bool {
    (1..=128).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Reads a file that is not too large.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = ACME_FILE_BYTES_MAX;
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(io::Error::other("too large")) } else { Ok(bytes) }
}

/// Replaces a file as a whole: no reader ever sees half of it, not even after a power cut.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::of(&base.path().join("acme"), "https://acme.example/directory");
        folder.prepare().unwrap();
        (base, folder)
    }

    fn pem(name: &str) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem() + &key.serialize_pem()).into_bytes()
    }

    fn answer(token: &str) -> Answer {
        Answer {
            way: Way::Http,
            name: "a.example".into(),
            token: token.into(),
            authorization: format!("{token}.x"),
            digest: vec![7; 32],
        }
    }

    #[test]
    fn certificates_of_different_authorities_are_stored_separately() {
        let label = |url: &str| Folder::of(Path::new("/x"), url).path.display().to_string();
        assert_eq!(label("https://acme-v02.api.letsencrypt.org/directory"), "/x/acme-v02.api.letsencrypt.org");
        assert_eq!(label("https://127.0.0.1:14000/dir"), "/x/127.0.0.1-14000");
        assert_eq!(label("https://acme.example/v2/DV90"), "/x/acme.example-v2-DV90");
        assert_eq!(label("https://../../etc"), "/x/etc");
    }

    #[test]
    fn certificates_come_back_and_only_their_owner_can_read_them() {
        let (_base, folder) = folder();
        assert!(folder.certificate("a.example").unwrap().is_none());
        assert_eq!(folder.stamp("a.example"), Stamp::default());
        folder.save_certificate("a.example", &pem("a.example")).unwrap();
        let first = folder.certificate("a.example").unwrap().unwrap();
        assert_eq!(first.loaded.facts.names, ["a.example"]);
        assert_eq!(folder.stamp("a.example"), first.stamp);
        folder.save_certificate("a.example", &pem("a.example")).unwrap();
        assert_ne!(folder.stamp("a.example"), first.stamp);
        folder.save_account("{}").unwrap();
        folder.save_record("a.example", &Record::default()).unwrap();
        let mut folders = vec![folder.path.clone()];
        let mut files = 0;
        while let Some(path) = folders.pop() {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
            for entry in fs::read_dir(path).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                files += 1;
                assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
            }
        }
        assert_eq!(files, 4);
    }

    #[test]
    fn damaged_files_are_named_and_kept() {
        let (_base, folder) = folder();
        folder.save_certificate("a.example", b"-----BEGIN CERTIFICATE-----\nhalf").unwrap();
        let Damage(text) = folder.certificate("a.example").unwrap_err();
        assert!(text.contains("a.example/certificate.pem is of no use (") && text.contains("damaged-0"), "{text}");
        assert!(folder.certificate("a.example").unwrap().is_none());
        let kept = folder.certificate_path("a.example").with_extension("damaged-0");
        assert_eq!(fs::read(kept).unwrap(), b"-----BEGIN CERTIFICATE-----\nhalf");
        folder.save_account("{\"id\"").unwrap();
        assert!(folder.account::<serde_json::Value>().unwrap_err().0.contains("account.json"));
        assert_eq!(folder.account::<serde_json::Value>(), Ok(None));
        fs::write(folder.certificate_path("a.example").with_file_name("state.json"), "{").unwrap();
        assert!(folder.record("a.example").unwrap_err().0.contains("state.json"));
        assert_eq!(folder.record("a.example"), Ok(Record::default()));
    }

    #[test]
    fn one_at_a_time_holds_the_lock() {
        let (_base, folder) = folder();
        let held = folder.lock().unwrap().unwrap();
        assert!(folder.lock().unwrap().is_none());
        drop(held);
        assert!(folder.lock().unwrap().is_some());
    }

    #[test]
    fn only_the_answers_set_last_are_served() {
        let (_base, folder) = folder();
        folder.set_answers(&[answer("one"), answer("two")]).unwrap();
        fs::write(folder.challenges().join("other"), "{}").unwrap();
        fs::write(folder.challenges().join("wrong"), serde_json::to_vec(&answer("one")).unwrap()).unwrap();
        assert_eq!(folder.answers(), [answer("one"), answer("two")]);
        assert!(folder.set_answers(&[answer("../x")]).is_err());
        folder.set_answers(&[answer("three")]).unwrap();
        assert_eq!(folder.answers(), [answer("three")]);
        folder.set_answers(&[]).unwrap();
        assert_eq!(folder.answers(), []);
    }
}
