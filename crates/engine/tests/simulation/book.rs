//! What is known of a run: which requests the origin was working on when, and what was purged when.

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
    /// Until when a URL may be remembered as not to be shared, because of an error.
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

    /// The origin is done with it, well or not.
    pub fn end(&self, number: usize, now: Millis) {
        self.work.borrow_mut()[number].until = Some(now);
    }

    /// One more request for a key before its head is out; returns how many there are.
    pub fn enter(&self, key: &str) -> u32 {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// The head is out, or never will be.
    pub fn leave(&self, key: &str) {
        if let Some(count) = self.waiting.borrow_mut().get_mut(key) {
            *count -= 1;
        }
    }

    /// Requests for this URL may be made side by side until then.
    pub fn unshare(&self, url: &str, until: Millis) {
        self.unshared.borrow_mut().insert(url.to_owned(), until);
    }

    /// Whether requests for it may be made side by side.
    pub fn is_unshared(&self, url: &str, now: Millis) -> bool {
        self.unshared.borrow().get(url).is_some_and(|until| *until >= now)
    }

    /// Something is wrong that is seen where a panic would not be.
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

    /// Whether the origin was working on a URL during a removal.
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
