//! Log records of directors, which themselves have no access to the log.

use std::cell::RefCell;
use std::fmt;
use surface::tag::Tag;

/// A log record of a director.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The record's tag.
    pub tag: Tag,
    /// The record's text.
    pub text: String,
    /// True if it belongs to the running task; other records belong to no transaction.
    pub of_task: bool,
}

/// The log records that directors make while they choose or change. Usually empty and without an
/// allocation.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// No records yet.
    #[must_use]
    pub fn new() -> Notes {
        Notes::default()
    }

    /// All records, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        self.0.take()
    }

    /// Adds a record of the running task.
    pub(crate) fn say(&self, tag: Tag, text: String) {
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    fn of_task(&self, tag: Tag, name: &str, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard {name}: {text}");
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    /// Adds an error.
    pub(crate) fn error(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Error, name, text);
    }

    /// Adds a notice.
    pub(crate) fn notice(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Notice, name, text);
    }

    /// Adds a Debug record of the task.
    pub fn task_debug(&self, text: String) {
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: true });
    }

    /// Adds a record that `.debug()` asked for.
    pub(crate) fn debug(&self, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard: {text}");
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: false });
    }
}
