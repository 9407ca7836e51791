//! Opening the file of a storage, or making it, with the rights of a user who may.

use super::locked::LockedFile;
use crate::arguments::jail::{Jail, Reader};
use crate::arguments::reason;
use crate::rights;
use nix::libc;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Opens a file, or makes it; it is not locked yet.
///
/// # Errors
/// The message for the operator.
pub(super) fn open(path: &Path, jail: &Jail) -> Result<LockedFile, String> {
    // Opening a device may have effects.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(neither(path));
    }
    let (file, made_by) = open_as(path, jail)?;
    let found = file.metadata().map_err(|error| format!("(-sfile) {path:?}: {}", reason(&error)))?;
    if !found.is_file() {
        return Err(neither(path));
    }
    Ok(LockedFile::unlocked(file, path, made_by))
}

fn neither(path: &Path) -> String {
    format!("(-sfile) {path:?} is neither file nor directory")
}

/// A file, and the rights with which it was made, if it was.
type Opened = (File, Option<Option<Reader>>);

/// Opens or makes a file with the rights of the first user who may: the jail's, or the worker's.
fn open_as(path: &Path, jail: &Jail) -> Result<Opened, String> {
    let users: Vec<Option<Reader>> = match jail {
        Jail::None { .. } => vec![None],
        Jail::Unix { reader, worker: (user, group), .. } => {
            vec![Some(reader.clone()), Some(Reader { user: *user, group: *group, groups: Vec::new() })]
        }
    };
    let mut first = None;
    for user in &users {
        match rights::with(user.as_ref(), || open_or_make(path)).and_then(|opened| opened) {
            Ok((file, is_made)) => return Ok((file, is_made.then(|| user.clone()))),
            Err(error) => first = first.or(Some(error)),
        }
    }
    let error = first.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    match fs::metadata(path) {
        Ok(_) => Err(format!("(-sfile) {path:?} could not open ({})", reason(&error))),
        Err(_) => match jail {
            Jail::Unix { reader, .. } if is_of_root_alone(path) => {
                make_for(path, reader).map(|file| (file, Some(None)))
            }
            Jail::Unix { .. } | Jail::None { .. } => Err(error),
        }
        .map_err(|error| format!("(-sfile) {path:?} does not exist and could not be created: {}", reason(&error))),
    }
}

/// The file, and true if it was made.
fn open_or_make(path: &Path) -> io::Result<(File, bool)> {
    // A special file must not block the open.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(flags);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(|file| (file, true)),
    }
    // A dangling link is followed.
    let is_there = path.exists();
    options.create(true).truncate(false).open(path).map(|file| (file, !is_there))
}

/// True if only root may write in the directory of a file, and others may look into it.
fn is_of_root_alone(path: &Path) -> bool {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(directory).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o023 == 0o001)
}

/// Makes a file for a user in a directory where only root may.
fn make_for(path: &Path, reader: &Reader) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    fchown(&file, Some(reader.user), Some(reader.group))?;
    Ok(file)
}
