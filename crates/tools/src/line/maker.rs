//! Lines for programs other than `varnishncsa`: the same formats, one transaction at a time.

use super::facts::Facts;
use super::format::Format;
use super::print::{self, Escapes};
use super::{DEFAULT_FORMAT, object, read_format_file};
use shm::read::transaction::Transaction;
use std::ffi::OsStr;
use surface::access_log::LineFormat;

/// Maker of lines of one format.
#[derive(Debug)]
pub struct LineMaker {
    format: Format,
    escapes: Escapes,
    objects: bool,
}

impl LineMaker {
    /// A maker of lines in this format.
    ///
    /// # Errors
    /// The message for the operator: the format is wrong, or its file cannot be read.
    pub fn new(format: &LineFormat) -> Result<LineMaker, String> {
        let (text, escapes, objects) = match format {
            LineFormat::Combined => (DEFAULT_FORMAT.to_owned(), Escapes::Text, false),
            LineFormat::Json => (object::FORMAT.to_owned(), Escapes::StrictJson, true),
            LineFormat::File(path) => (read_format_file(OsStr::new(path))?, Escapes::Text, false),
            LineFormat::Text(text) => (text.clone(), Escapes::Text, false),
        };
        Ok(LineMaker { format: Format::parse(&text, escapes.safety())?, escapes, objects })
    }

    /// Appends the line of a transaction, with its newline. Returns false if it has none: its
    /// request was restarted, was not HTTP, or lacks a time that the format needs.
    pub fn line(&self, transaction: &Transaction, out: &mut Vec<u8>) -> bool {
        let Some(facts) = Facts::gather(transaction, &self.format, self.escapes.safety()) else { return false };
        if self.objects {
            object::line(&facts, out);
        } else if !print::line(&self.format, &facts, self.escapes, out) {
            return false;
        }
        out.push(b'\n');
        true
    }
}
