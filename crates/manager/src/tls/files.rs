//! Certificates in files: [`PemFiles`].
//!
//! Keys are the one thing that is read with the manager's own rights although its name may come
//! from the CLI: they belong to root, and the jail's user must not have them. Their content is
//! never shown; a message names the file and its fault.
//!
//! *Invariant:* a private key is read by the manager with its own rights, whatever named the file,
//! and is in memory only.

use crate::clock::now;
use crate::system_error::reason;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use surface::limits::TLS_FILE_BYTES_MAX;
use tls::certificate::{LoadedCertificate, Pem};
use tls::secret::Secret;
use tls::staple::{Staple, StapleError};

/// The files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PemFiles {
    /// The certificate with its chain, and with its key unless that is apart.
    pub certificate: PathBuf,
    /// The key.
    pub key: Option<PathBuf>,
    /// OCSP response in DER; `None` = the file named like the certificate with `.ocsp` appended, if
    /// it exists.
    pub ocsp: Option<PathBuf>,
}

/// Content of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromFiles {
    /// The certificate, with its key.
    pub loaded: LoadedCertificate,
    /// The OCSP response, if there is a usable one.
    pub ocsp: Option<Vec<u8>>,
    /// The reason why the present one is not usable.
    pub ocsp_fault: Option<StapleError>,
    /// The file with the key is readable for all users.
    pub is_key_open: bool,
    /// State of the files before they were read.
    pub stamp: Stamp,
}

/// Metadata that changes with the files; `None` for a missing file. Editors and tools replace files
/// or the targets of links, so the time alone is not enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(Vec<Option<FileStamp>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl PemFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// The fault, with the name of the file.
    pub fn read(&self) -> Result<FromFiles, String> {
        let stamp = self.stamp();
        let (certificate, certificate_mode) = read_secret(&self.certificate)?;
        let key = self.key.as_deref().map(read_secret).transpose()?;
        let key_mode = key.as_ref().map_or(certificate_mode, |(_, mode)| *mode);
        let loaded = Pem::read(certificate.bytes(), key.as_ref().map(|(key, _)| key.bytes()))
            .map_err(|error| format!("{}: {error}", self.place()))?;
        let ocsp = match (&self.ocsp, read(&self.ocsp_path())) {
            (_, Ok((response, _))) => Some(response),
            (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
            (_, Err(error)) => return Err(unreadable(&self.ocsp_path(), &error)),
        };
        // An empty file means that there is no response.
        let ocsp = ocsp.filter(|response| !response.is_empty());
        let ocsp_fault = ocsp.as_ref().and_then(|response| check_staple(response, &loaded).err());
        let ocsp = ocsp.filter(|_| ocsp_fault.is_none());
        Ok(FromFiles { loaded, ocsp, ocsp_fault, is_key_open: key_mode & 0o004 != 0, stamp })
    }

    /// The file that holds the key.
    #[must_use]
    pub fn key_path(&self) -> &Path {
        self.key.as_deref().unwrap_or(&self.certificate)
    }

    /// Path of the OCSP response, which may not exist.
    #[must_use]
    pub fn ocsp_path(&self) -> PathBuf {
        self.ocsp.clone().unwrap_or_else(|| {
            let mut path = self.certificate.clone().into_os_string();
            path.push(".ocsp");
            path.into()
        })
    }

    /// The names of the files, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.key {
            Some(key) => format!("{} and {}", self.certificate.display(), key.display()),
            None => self.certificate.display().to_string(),
        }
    }

    /// State of the files now, without reading them.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let paths = [Some(self.certificate.clone()), self.key.clone(), Some(self.ocsp_path())];
        Stamp(paths.iter().flatten().map(|path| stamp(path)).collect())
    }
}

/// Checks that an OCSP response may be stapled now.
fn check_staple(response: &[u8], loaded: &LoadedCertificate) -> Result<(), StapleError> {
    let staple = Staple::read(response, loaded.chain.first().map_or(&[][..], |first| first))?;
    if staple.is_good_at(now() as i64) { Ok(()) } else { Err(StapleError::Expired) }
}

/// Reads the trust anchors for client certificates.
///
/// # Errors
/// The fault, with the name of the file.
pub fn read_authorities(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let (bytes, _) = read(path).map_err(|error| unreadable(path, &error))?;
    Pem::read_authorities(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(FileStamp {
        device: found.dev(),
        inode: found.ino(),
        size: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("Cannot read {}: {}", path.display(), reason(error))
}

fn read_secret(path: &Path) -> Result<(Secret, u32), String> {
    let (bytes, mode) = read(path).map_err(|error| unreadable(path, &error))?;
    Ok((Secret::new(bytes), mode))
}

/// Reads a file and its permissions.
///
/// # Errors
/// It cannot be read, is not a regular file, or is longer than [`TLS_FILE_BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    // A pipe without a writer must not block us.
    let file: File = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::Error::from_raw_os_error(nix::libc::EISDIR));
    }
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // With room for all, so that growing leaves no copy of a part of a key behind.
    let mut bytes = Vec::with_capacity(usize::try_from(found.size().min(TLS_FILE_BYTES_MAX)).unwrap_or(0) + 1);
    file.take(TLS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TLS_FILE_BYTES_MAX {
        return Err(io::Error::other(format!("longer than {TLS_FILE_BYTES_MAX} bytes")));
    }
    Ok((bytes, found.mode()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    fn pair(name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn files(folder: &TempDir, key: bool) -> PemFiles {
        let path = |name: &str| folder.path().join(name);
        PemFiles { certificate: path("site.pem"), key: key.then(|| path("site.key")), ocsp: None }
    }

    #[test]
    fn certificate_and_key_come_from_one_file_or_two_and_the_staple_from_the_same_folder() {
        let folder = TempDir::new().unwrap();
        let (certificate, key) = pair("a.example");
        fs::write(folder.path().join("site.pem"), format!("{key}{certificate}")).unwrap();
        let whole = files(&folder, false).read().unwrap();
        assert_eq!((whole.loaded.facts.names.as_slice(), whole.ocsp), (&["a.example".to_owned()][..], None));
        fs::write(folder.path().join("site.pem"), certificate).unwrap();
        fs::write(folder.path().join("site.key"), key).unwrap();
        let apart = files(&folder, true).read().unwrap();
        assert_eq!(apart.loaded, whole.loaded);
        let staple = folder.path().join("site.pem.ocsp");
        fs::write(&staple, b"staple").unwrap();
        let stapled = files(&folder, true).read().unwrap();
        assert_eq!((stapled.ocsp, stapled.ocsp_fault), (None, Some(StapleError::Malformed)));
        // Status tryLater of the responder.
        fs::write(&staple, [0x30, 3, 0x0a, 1, 3]).unwrap();
        assert_eq!(files(&folder, true).read().unwrap().ocsp_fault, Some(StapleError::Unsuccessful(3)));
        fs::write(&staple, b"").unwrap();
        let stapled = files(&folder, true).read().unwrap();
        assert_eq!((stapled.ocsp, stapled.ocsp_fault), (None, None));
        let named = PemFiles { ocsp: Some(folder.path().join("none")), ..files(&folder, true) };
        assert!(named.read().unwrap_err().ends_with("/none: No such file or directory"));
    }

    #[test]
    fn mistake_is_reported_with_the_file_and_without_its_content() {
        let folder = TempDir::new().unwrap();
        let shown = folder.path().join("site.pem").display().to_string();
        let refused = |key: bool| files(&folder, key).read().unwrap_err();
        assert_eq!(refused(false), format!("Cannot read {shown}: No such file or directory"));
        fs::create_dir(folder.path().join("site.pem")).unwrap();
        assert_eq!(refused(false), format!("Cannot read {shown}: Is a directory"));
        fs::remove_dir(folder.path().join("site.pem")).unwrap();
        nix::unistd::mkfifo(&folder.path().join("site.pem"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(refused(false), format!("Cannot read {shown}: not a regular file"));
        fs::remove_file(folder.path().join("site.pem")).unwrap();
        fs::write(folder.path().join("site.pem"), "").unwrap();
        assert_eq!(refused(false), format!("{shown}: the file is empty"));
        let ((certificate, _), (_, key)) = (pair("a.example"), pair("b.example"));
        fs::write(folder.path().join("site.pem"), certificate).unwrap();
        fs::write(folder.path().join("site.key"), key).unwrap();
        assert_eq!(
            refused(true),
            format!("{shown} and {}/site.key: key and certificate mismatch", folder.path().display())
        );
        fs::write(folder.path().join("site.pem"), "x".repeat(TLS_FILE_BYTES_MAX as usize + 1)).unwrap();
        assert_eq!(refused(false), format!("Cannot read {shown}: longer than {TLS_FILE_BYTES_MAX} bytes"));
    }

    #[test]
    fn world_readable_key_is_noticed_anywhere() {
        let folder = TempDir::new().unwrap();
        let (certificate, key) = pair("a.example");
        let mode =
            |name: &str, mode| fs::set_permissions(folder.path().join(name), Permissions::from_mode(mode)).unwrap();
        fs::write(folder.path().join("site.pem"), format!("{key}{certificate}")).unwrap();
        fs::write(folder.path().join("site.key"), key).unwrap();
        mode("site.pem", 0o644);
        mode("site.key", 0o600);
        assert!(files(&folder, false).read().unwrap().is_key_open);
        assert!(!files(&folder, true).read().unwrap().is_key_open);
    }

    #[test]
    fn a_change_is_seen_when_a_file_is_replaced_or_a_link_led_elsewhere() {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["one", "two"] {
            fs::write(path(name), "same").unwrap();
        }
        std::os::unix::fs::symlink("one", path("site.pem")).unwrap();
        let files = files(&folder, true);
        let first = files.stamp();
        assert_eq!(files.stamp(), first);
        fs::remove_file(path("site.pem")).unwrap();
        std::os::unix::fs::symlink("two", path("site.pem")).unwrap();
        let second = files.stamp();
        assert_ne!(second, first);
        fs::write(path("site.pem.ocsp"), "").unwrap();
        assert_ne!(files.stamp(), second);
    }
}
