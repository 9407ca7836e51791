//! What directors have to say, for those who know a log.

use std::cell::RefCell;
use std::fmt;
use surface::tag::Tag;

/// One thing a director has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The record's tag.
    pub tag: Tag,
    /// The record's text.
    pub text: String,
    /// It belongs to the running task; others are records of no transaction.
    pub of_task: bool,
}

/// What directors have to say while they choose or change, for the log. Empty and without allocation mostly.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// Nothing said yet.
    #[must_use]
    pub fn new() -> Notes {
        Notes::default()
    }

    /// All that was said, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        self.0.take()
    }

    /// A record of the running task.
    pub(crate) fn say(&self, tag: Tag, text: String) {
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    fn of_task(&self, tag: Tag, name: &str, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard {name}: {text}");
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    /// A mistake.
    pub(crate) fn error(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Error, name, text);
    }

    /// Something worth knowing.
    pub(crate) fn notice(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Notice, name, text);
    }

    /// A Debug record of the task.
    pub fn task_debug(&self, text: String) {
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: true });
    }

    /// What `.debug()` asked for.
    pub(crate) fn debug(&self, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard: {text}");
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: false });
    }
}
