//! The log as a file: four bytes of head, then records as in the ring, without batches or markers.

use std::io::{self, Read, Write};

use super::record::is_record;
use super::{Cursor, Next};
use crate::layout::Layout;
use crate::log::{BATCH_TAG, words_as_bytes};

/// Reads the records of a log file or pipe one by one.
pub struct FileCursor<R> {
    input: R,
    layout: Layout,
    raw: Vec<u32>,
}

impl<R: Read> FileCursor<R> {
    /// Checks the head of `input`.
    ///
    /// # Errors
    /// Errors of reading; `InvalidData` if it is not a log file, `UnexpectedEof` if it is empty.
    pub fn open(mut input: R) -> io::Result<FileCursor<R>> {
        let mut head = [0; 4];
        input.read_exact(&mut head)?;
        let layout =
            Layout::of_file(head).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a log file"))?;
        Ok(FileCursor { input, layout, raw: Vec::new() })
    }

    /// The layout of the file.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    fn word(&mut self) -> Option<u32> {
        let mut word = [0; 4];
        self.input.read_exact(&mut word).ok()?;
        Some(u32::from_ne_bytes(word))
    }

    /// Reads one record as it is in the file.
    fn record(&mut self) -> Option<()> {
        self.raw.clear();
        let mut first;
        loop {
            first = self.word()?;
            if first >> 24 != BATCH_TAG {
                break;
            }
            for _ in 1..self.layout.head_words() {
                self.word()?;
            }
        }
        if !is_record(first) {
            return None;
        }
        self.raw.push(first);
        for _ in 1..self.layout.record_words(first) {
            let word = self.word()?;
            self.raw.push(word);
        }
        Some(())
    }
}

impl<R: Read> Cursor for FileCursor<R> {
    /// A file that is truncated in a record, or contains invalid data, ends there.
    fn next(&mut self, words: &mut Vec<u32>) -> Next {
        words.clear();
        if self.record().is_none() {
            return Next::End;
        }
        self.layout.read(&self.raw, words);
        Next::Chunk
    }
}

/// Writes whole records, given in the plain form, as a [`FileCursor`] reads them from a file of
/// this layout.
///
/// # Errors
/// Errors of writing.
pub fn write_records(output: &mut dyn Write, layout: Layout, plain: &[u32]) -> io::Result<()> {
    let mut records = Vec::with_capacity(plain.len());
    layout.write(plain, &mut records);
    output.write_all(words_as_bytes(&records))
}
