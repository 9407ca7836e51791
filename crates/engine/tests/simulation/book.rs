//! The records of a run: the origin's requests with their times, and the purges with theirs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Milliseconds since the run began.
pub type Millis = u64;

/// A request at the origin.
#[derive(Clone, Debug)]
pub struct Work {
    pub url: String,
    pub from: Millis,
    /// `None` while it lasts.
    pub until: Option<Millis>,
}

/// A purge or ban.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    pub from: Millis,
    pub until: Millis,
}

/// The book.
#[derive(Default)]
pub struct Book {
    work: RefCell<Vec<Work>>,
    /// Requests for a key whose response head is not out yet.
    waiting: RefCell<HashMap<String, u32>>,
    removals: RefCell<HashMap<String, Vec<Removal>>>,
    /// Times until which a URL may be marked as not shared, because of an error.
    unshared: RefCell<HashMap<String, Millis>>,
    faults: RefCell<Vec<String>>,
    answers: Cell<u64>,
}

impl Book {
    /// The origin has a request; returns its number.
    pub fn begin(&self, url: &str, now: Millis) -> usize {
        let mut work = self.work.borrow_mut();
        work.push(Work { url: url.to_owned(), from: now, until: None });
        work.len() - 1
    }

    /// The origin has finished it, successfully or not.
    pub fn end(&self, number: usize, now: Millis) {
        self.work.borrow_mut()[number].until = Some(now);
    }

    /// One more request for a key before its head is sent; returns their number.
    pub fn enter(&self, key: &str) -> u32 {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// The head is sent, or never will be.
    pub fn leave(&self, key: &str) {
        if let Some(count) = self.waiting.borrow_mut().get_mut(key) {
            *count -= 1;
        }
    }

    /// Requests for this URL may be made in parallel until then.
    pub fn unshare(&self, url: &str, until: Millis) {
        self.unshared.borrow_mut().insert(url.to_owned(), until);
    }

    /// True if requests for it may be made in parallel.
    pub fn is_unshared(&self, url: &str, now: Millis) -> bool {
        self.unshared.borrow().get(url).is_some_and(|until| *until >= now)
    }

    /// Records a failure found where a panic would not be seen.
    pub fn fault(&self, text: String) {
        self.faults.borrow_mut().push(text);
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults.borrow().clone()
    }

    /// A purge or ban was done.
    pub fn removed(&self, url: &str, removal: Removal) {
        self.removals.borrow_mut().entry(url.to_owned()).or_default().push(removal);
    }

    /// The last removal of a URL that was over before `at`.
    pub fn last_removal(&self, url: &str, at: Millis) -> Option<Removal> {
        let removals = self.removals.borrow();
        removals.get(url)?.iter().filter(|removal| removal.until < at).max_by_key(|removal| removal.until).copied()
    }

    /// True if the origin was working on a URL during a removal.
    pub fn was_under_way(&self, url: &str, removal: Removal) -> bool {
        self.work.borrow().iter().any(|work| {
            work.url == url && work.from <= removal.until && work.until.is_none_or(|until| until >= removal.from)
        })
    }

    /// Counts a good answer.
    pub fn answered(&self) {
        self.answers.set(self.answers.get() + 1);
    }

    pub fn answers(&self) -> u64 {
        self.answers.get()
    }
}
