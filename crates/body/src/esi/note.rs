//! Notes of the parser about a page, for the log.

use std::fmt;

/// Severity of a note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteLevel {
    /// The page's ESI is correct (the page is not parsed, for example): not counted.
    Remark,
    /// Counted in `esi_warnings`.
    Warning,
    /// Counted in `esi_errors`.
    Error,
}

/// A record `ESI_xmlerror`; its text is the record's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    level: NoteLevel,
    after: u64,
    text: &'static str,
}

impl Note {
    /// About the tag or text that begins `after` bytes into the stored body.
    pub(crate) fn new(level: NoteLevel, after: u64, text: &'static str) -> Note {
        Note { level, after, text }
    }

    /// The severity of the note.
    #[must_use]
    pub fn level(&self) -> NoteLevel {
        self.level
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            NoteLevel::Remark => f.write_str(self.text),
            NoteLevel::Warning => write!(f, "WARN after {} {}", self.after, self.text),
            NoteLevel::Error => write!(f, "ERR after {} {}", self.after, self.text),
        }
    }
}
