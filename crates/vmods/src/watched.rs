//! Files that VMODs hold in memory and read again once they were replaced.
//!
//! A file is checked at most once in [`WATCHED_FILE_CHECK_SECONDS`]: device, inode, length and both
//! times of change. Checks and reads block, so a task that can wait does them on another thread, at
//! most `WATCHED_FILE_READS_MAX` at once; the others wait for the same result. *Invariant:* the
//! content is that of one moment; an error of a check is a content too, unless the kind of file
//! keeps its last good one.

use crate::lookups::{Lookups, Refusal};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use surface::limits::{WATCHED_FILE_CHECK_SECONDS, WATCHED_FILES_MAX};
use tokio::task::spawn_blocking;

/// A kind of file.
pub(crate) trait Parsed: Sized + Send + Sync + 'static {
    /// Largest file, in bytes.
    const BYTES_MAX: u64;
    /// A file that can't be read any more leaves the last content in use.
    const KEEPS_LAST: bool;

    /// Reads the content. The error is for the log.
    fn parse(content: Vec<u8>) -> Result<Self, String>;

    /// Remarks on the content for the log, each at most once per content.
    fn remarks(&self) -> &[String] {
        &[]
    }
}

/// The content of a file, or the reason why there is none.
pub(crate) type Content<T> = Result<Arc<T>, Arc<str>>;

/// Properties of a file that change when it is replaced or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Stamp {
        Stamp {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

struct Watch<T> {
    content: Content<T>,
    /// `None` if the file could not be read.
    stamp: Option<Stamp>,
    /// Time of the last check, in seconds since 1970.
    checked_at: f64,
    /// Number of the last use, for the choice of the one to drop.
    used: u64,
    /// Remarks that no log record has shown yet.
    remarks: Vec<String>,
}

struct Watches<T> {
    by_path: HashMap<Vec<u8>, Watch<T>>,
    uses: u64,
}

/// The files of one kind: at most [`WATCHED_FILES_MAX`].
pub(crate) struct Watched<T> {
    watches: Mutex<Watches<T>>,
}

impl<T> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Watched { watches: Mutex::new(Watches { by_path: HashMap::new(), uses: 0 }) }
    }
}

impl<T: Parsed> Watched<T> {
    /// The content of a file that was checked recently.
    pub(crate) fn fresh(&self, path: &[u8], now: f64) -> Option<Content<T>> {
        let mut watches = self.watches.lock();
        watches.uses += 1;
        let uses = watches.uses;
        let watch = watches.by_path.get_mut(path)?;
        watch.used = uses;
        // Also if the clock was set back.
        let is_fresh = (0.0..WATCHED_FILE_CHECK_SECONDS).contains(&(now - watch.checked_at));
        is_fresh.then(|| watch.content.clone())
    }

    /// The content to use now, or `None` if the caller must check the file. Of many callers at
    /// once, one checks a file that was read before; the others use its last content meanwhile.
    pub(crate) fn claim(&self, path: &[u8], now: f64) -> Option<Content<T>> {
        let fresh = self.fresh(path, now);
        if fresh.is_none()
            && let Some(watch) = self.watches.lock().by_path.get_mut(path)
        {
            watch.checked_at = now;
        }
        fresh
    }

    /// The content to use now, without a wait: a fresh one, or the last one of a kind that keeps
    /// it, while the file is checked on another thread. `None` if the file must be checked first.
    pub(crate) fn current(self: &Arc<Self>, path: &[u8], now: f64, can_wait: bool) -> Option<Content<T>> {
        if let Some(content) = self.fresh(path, now) {
            return Some(content);
        }
        let mut watches = self.watches.lock();
        let watch = watches.by_path.get_mut(path).filter(|watch| T::KEEPS_LAST && can_wait && watch.content.is_ok())?;
        // The others need not check too.
        watch.checked_at = now;
        let content = watch.content.clone();
        drop(watches);
        let (watched, path) = (Arc::clone(self), path.to_vec());
        drop(spawn_blocking(move || watched.read_if_replaced(&path, now)));
        Some(content)
    }

    /// Remarks on the file that were not taken before.
    pub(crate) fn take_remarks(&self, path: &[u8]) -> Vec<String> {
        self.watches.lock().by_path.get_mut(path).map(|watch| std::mem::take(&mut watch.remarks)).unwrap_or_default()
    }

    /// Checks the file, and reads it if it was replaced. Blocks.
    pub(crate) fn check(&self, path: &[u8], now: f64) -> Content<T> {
        if let Some(content) = self.fresh(path, now) {
            return content;
        }
        self.read_if_replaced(path, now)
    }

    fn read_if_replaced(&self, path: &[u8], now: f64) -> Content<T> {
        let known = self.watches.lock().by_path.get(path).map(|watch| (watch.stamp, watch.content.clone()));
        let (stamp, content) = match (open::<T>(path), known) {
            (Ok((_, stamp)), Some((known, content))) if known == Some(stamp) => (Some(stamp), content),
            (Ok((file, stamp)), known) => match read(file, T::BYTES_MAX).and_then(|bytes| T::parse(bytes)) {
                Ok(content) => (Some(stamp), Ok(Arc::new(content))),
                // Not read again until it changes once more.
                Err(why) => (Some(stamp), keep_last::<T>(known, why)),
            },
            (Err(why), known) => (None, keep_last::<T>(known, why)),
        };
        self.keep(path, Watch { content: content.clone(), stamp, checked_at: now, used: 0, remarks: Vec::new() });
        content
    }

    /// Checks the file on another thread, when its turn has come.
    pub(crate) fn check_later(
        self: &Arc<Self>,
        reads: &Lookups,
        path: Vec<u8>,
        now: f64,
    ) -> impl Future<Output = Content<T>> + 'static {
        let watched = Arc::clone(self);
        let check = reads.run(move || watched.read_if_replaced(&path, now));
        async move { check.await.unwrap_or_else(|refusal: Refusal| Err(Arc::from(refusal.text()))) }
    }

    fn keep(&self, path: &[u8], mut watch: Watch<T>) {
        let mut watches = self.watches.lock();
        watches.uses += 1;
        watch.used = watches.uses;
        let known = watches.by_path.get(path);
        let is_same = known.is_some_and(|known| match (&known.content, &watch.content) {
            (Ok(known), Ok(content)) => Arc::ptr_eq(known, content),
            (Err(known), Err(why)) => known == why,
            _ => false,
        });
        watch.remarks = match (&watch.content, known) {
            (_, Some(known)) if is_same => known.remarks.clone(),
            (Ok(content), _) => content.remarks().to_vec(),
            (Err(why), _) => vec![why.to_string()],
        };
        if known.is_none() && watches.by_path.len() >= WATCHED_FILES_MAX {
            let oldest = watches.by_path.iter().min_by_key(|(_, watch)| watch.used).map(|(path, _)| path.clone());
            oldest.map(|path| watches.by_path.remove(&path));
        }
        watches.by_path.insert(path.to_vec(), watch);
    }
}

fn keep_last<T: Parsed>(known: Option<(Option<Stamp>, Content<T>)>, why: String) -> Content<T> {
    match known {
        Some((_, Ok(content))) if T::KEEPS_LAST => Ok(content),
        _ => Err(Arc::from(why)),
    }
}

fn open<T: Parsed>(path: &[u8]) -> Result<(File, Stamp), String> {
    // Does not wait for the writer of a pipe of that name.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(OsStr::from_bytes(path))
        .map_err(shown)?;
    let about = file.metadata().map_err(shown)?;
    if !about.is_file() {
        return Err("is not a file".to_owned());
    }
    if about.len() > T::BYTES_MAX {
        return Err(format!("is longer than {} bytes", T::BYTES_MAX));
    }
    Ok((file, Stamp::of(&about)))
}

fn read(file: File, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut content).map_err(shown)?;
    if content.len() as u64 > bytes_max { Err(format!("is longer than {bytes_max} bytes")) } else { Ok(content) }
}

/// The text of an error without its number.
fn shown(error: io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| Errno::from_raw(number).desc().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A text; `bad` is not one.
    struct Words(String);

    impl Parsed for Words {
        const BYTES_MAX: u64 = 100;
        const KEEPS_LAST: bool = true;

        fn parse(content: Vec<u8>) -> Result<Words, String> {
            let text = String::from_utf8_lossy(&content).into_owned();
            if text == "bad" { Err("is bad".to_owned()) } else { Ok(Words(text)) }
        }
    }

    fn path(folder: &tempfile::TempDir, name: &str) -> Vec<u8> {
        folder.path().join(name).into_os_string().into_encoded_bytes()
    }

    #[test]
    fn replaced_file_counts_after_a_second_and_a_bad_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, watched) = (path(&folder, "file"), Watched::<Words>::default());
        let put = |text: &str| {
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), folder.path().join("file")).unwrap();
        };
        let at = |now| watched.check(&file, now).map(|words| words.0.clone()).map_err(|why| why.to_string());
        assert_eq!(at(0.0), Err("No such file or directory".to_owned()));
        put("one");
        assert!(at(0.5).is_err());
        assert_eq!(at(1.0).unwrap(), "one");
        put("two");
        assert_eq!(at(1.9).unwrap(), "one");
        assert_eq!(at(2.0).unwrap(), "two");
        for bad in ["bad", &"x".repeat(101)] {
            put(bad);
            assert_eq!(at(3.0).unwrap(), "two", "{bad}");
        }
        fs::remove_file(folder.path().join("file")).unwrap();
        assert_eq!(at(4.0).unwrap(), "two");
        put("three");
        // The clock was set back.
        assert_eq!(at(1.0).unwrap(), "three");
    }

    #[test]
    fn only_regular_files_are_read_and_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let watched = Watched::<Words>::default();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for strange in [&b"/"[..], b"/dev/zero", b"", b"a\0b", pipe.as_os_str().as_bytes()] {
            assert!(watched.check(strange, 0.0).is_err());
        }
        for number in 0..3 * WATCHED_FILES_MAX {
            assert!(watched.check(&path(&folder, &number.to_string()), 0.0).is_err());
        }
        assert_eq!(watched.watches.lock().by_path.len(), WATCHED_FILES_MAX);
    }

    #[test]
    fn one_of_many_callers_checks_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, watched) = (path(&folder, "file"), Watched::<Words>::default());
        fs::write(folder.path().join("file"), "one").unwrap();
        assert!(watched.claim(&file, 0.0).is_none());
        assert!(watched.check(&file, 0.0).is_ok());
        assert!(watched.claim(&file, 5.0).is_none(), "the first one checks");
        assert!(watched.claim(&file, 5.0).is_some(), "the others need not");
        fs::write(folder.path().join("file"), "second").unwrap();
        assert_eq!(watched.read_if_replaced(&file, 5.0).unwrap().0, "second");
    }

    #[tokio::test]
    async fn last_content_is_used_while_the_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, watched) = (path(&folder, "file"), Arc::new(Watched::<Words>::default()));
        assert!(watched.current(&file, 0.0, true).is_none());
        fs::write(folder.path().join("file"), "one").unwrap();
        assert!(watched.check(&file, 0.0).is_ok());
        fs::write(folder.path().join("file"), "second").unwrap();
        let current = |now| watched.current(&file, now, true).unwrap().unwrap().0.clone();
        assert_eq!(current(5.0), "one");
        while current(5.0) == "one" {
            tokio::task::yield_now().await;
        }
        assert_eq!(current(5.5), "second");
    }
}
