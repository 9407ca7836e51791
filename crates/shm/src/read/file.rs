//! The log as a file: four bytes of head, then records as in the ring, without batches or markers.

use std::io::{self, Read, Write};

use super::record::{is_record, record_words};
use super::{Cursor, Next};
use crate::log::{BATCH_TAG, words_as_bytes};

/// The first four bytes of a log file.
pub const FILE_HEAD: &[u8; 4] = b"VSL\0";

/// Reads the records of a log file or pipe one by one.
pub struct FileCursor<R> {
    input: R,
}

impl<R: Read> FileCursor<R> {
    /// Checks the head of `input`.
    ///
    /// # Errors
    /// What reading reports; `InvalidData` when it is not a log file, `UnexpectedEof` when it is empty.
    pub fn open(mut input: R) -> io::Result<FileCursor<R>> {
        let mut head = [0; 4];
        input.read_exact(&mut head)?;
        if head != *FILE_HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a log file"));
        }
        Ok(FileCursor { input })
    }

    fn word(&mut self) -> Option<u32> {
        let mut word = [0; 4];
        self.input.read_exact(&mut word).ok()?;
        Some(u32::from_ne_bytes(word))
    }

    fn record(&mut self, words: &mut Vec<u32>) -> Option<()> {
        let mut first = self.word()?;
        let mut second = self.word()?;
        while first >> 24 == BATCH_TAG {
            first = self.word()?;
            second = self.word()?;
        }
        if !is_record(first) {
            return None;
        }
        words.extend([first, second]);
        for _ in 2..record_words(first) {
            let word = self.word()?;
            words.push(word);
        }
        Some(())
    }
}

impl<R: Read> Cursor for FileCursor<R> {
    /// If the file is cut off in a record or contains nonsense, it ends there.
    fn next(&mut self, words: &mut Vec<u32>) -> Next {
        words.clear();
        match self.record(words) {
            Some(()) => Next::Chunk,
            None => Next::End,
        }
    }
}

/// Writes the head of a log file.
///
/// # Errors
/// What writing reports.
pub fn write_head(output: &mut dyn Write) -> io::Result<()> {
    output.write_all(FILE_HEAD)
}

/// Writes whole records in the form that a [`FileCursor`] reads.
///
/// # Errors
/// What writing reports.
pub fn write_records(output: &mut dyn Write, words: &[u32]) -> io::Result<()> {
    output.write_all(words_as_bytes(words))
}
