//! Source of the records: a running server's ring, across restarts of its worker, or a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use shm::layout::Layout;
use shm::read::file::FileCursor;
use shm::read::ring::{RingCursor, Start};
use shm::read::vsm::Vsm;
use shm::read::{Cursor, Next};

/// Number of checks of the index, four a second, after which a damaged log is tried again.
const DAMAGED_LOOKS: u32 = 40;

/// A source of records.
pub(super) enum Source<'a> {
    /// A log file.
    File(FileCursor<BufReader<Box<dyn Read + 'a>>>),
    /// A server.
    Server(Box<Server>),
}

/// The log of a server that may be gone for a while.
pub(super) struct Server {
    vsm: Vsm,
    cursor: Option<(u64, RingCursor)>,
    from_head: bool,
    seen_one: bool,
    /// Something has been read since damage was last found.
    read_some: bool,
    /// A damaged log, and the number of checks after which it is tried again.
    damaged: Option<(u64, u32)>,
}

impl<'a> Source<'a> {
    /// Opens a log file.
    pub fn file(path: &OsStr) -> Result<Source<'a>, String> {
        let name = path.to_string_lossy();
        let file = File::open(path).map_err(|error| format!("Cannot open {name}: {}", super::reason(&error)))?;
        Source::stream(file, &name)
    }

    /// Reads a log file from a stream.
    pub fn stream(input: impl Read + 'a, name: &str) -> Result<Source<'a>, String> {
        let input: Box<dyn Read + 'a> = Box::new(input);
        match FileCursor::open(BufReader::with_capacity(1 << 16, input)) {
            Ok(cursor) => Ok(Source::File(cursor)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err("VSL file read error: EOF".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(format!("Not a VSL file: {name}")),
            Err(error) => Err(format!("VSL file read error: {}", super::reason(&error))),
        }
    }

    /// The log of the server that `vsm` is attached to, from its oldest records or from now on.
    pub fn server(vsm: Vsm, from_head: bool) -> Source<'a> {
        let mut server = Server { vsm, cursor: None, from_head, seen_one: false, read_some: true, damaged: None };
        server.open(if from_head { Start::Head } else { Start::Tail });
        Source::Server(Box::new(server))
    }

    /// The layout of its records; `None` while there is no log.
    pub fn layout(&self) -> Option<Layout> {
        match self {
            Source::File(cursor) => Some(cursor.layout()),
            Source::Server(server) => server.cursor.as_ref().map(|(_, cursor)| cursor.layout()),
        }
    }

    /// The next chunk.
    pub fn next(&mut self, words: &mut Vec<u32>) -> Next {
        match self {
            Source::File(cursor) => cursor.next(words),
            Source::Server(server) => match &mut server.cursor {
                Some((_, cursor)) => {
                    let next = cursor.next(words);
                    server.read_some |= matches!(next, Next::Chunk | Next::Wait);
                    next
                }
                None => Next::Wait,
            },
        }
    }

    /// The reader was overtaken: continues with records written from now on, each time that this
    /// happens.
    pub fn lose_place(&mut self, error: &mut dyn Write) {
        let Source::Server(server) = self else { return };
        let Some((_, cursor)) = &mut server.cursor else { return };
        cursor.reset(Start::Tail);
        let _ = writeln!(error, "Log overrun\nLog reacquired");
    }

    /// The log is invalid here: continues with records written from now on. If those are invalid
    /// too, the log is given up for a while.
    pub fn find_damage(&mut self, error: &mut dyn Write) {
        let Source::Server(server) = self else { return };
        let Some((serial, cursor)) = &mut server.cursor else { return };
        let _ = writeln!(error, "Log damaged");
        if server.read_some {
            server.read_some = false;
            cursor.reset(Start::Tail);
            let _ = writeln!(error, "Log reacquired");
        } else {
            server.damaged = Some((*serial, DAMAGED_LOOKS));
            server.cursor = None;
            let _ = writeln!(error, "Log abandoned (damaged)");
        }
    }

    /// An error if there was no log to read at all.
    pub fn found_log(&self) -> Result<(), String> {
        match self {
            Source::Server(server) if !server.seen_one => {
                Err("VSL: No log to read: the worker is not running".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks if the log has gone or come back; a log that appears during this is read from
    /// its start.
    pub fn look_again(&mut self, error: &mut dyn Write) -> Look {
        let Source::Server(server) = self else { return Look::Same };
        server.vsm.poll();
        let mut look = Look::Same;
        if let Some((serial, _)) = &server.cursor {
            if server.vsm.is_listed(*serial) {
                return look;
            }
            let _ = writeln!(error, "Log abandoned (vsl)");
            server.cursor = None;
            look = Look::Gone;
        }
        let again = server.seen_one;
        server.open(Start::Head);
        if again && server.cursor.is_some() {
            let _ = writeln!(error, "Log reacquired");
        }
        look
    }

    /// The server's identity; empty for a file, or if the server has none.
    pub fn identity(&self) -> String {
        match self {
            Source::File(_) => String::new(),
            Source::Server(server) => server.vsm.argument("-i").unwrap_or_default(),
        }
    }
}

/// The result of checking the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// The log is there, or still not there.
    Same,
    /// The log that was being read has gone.
    Gone,
}

impl Server {
    fn open(&mut self, start: Start) {
        let start = if self.from_head { Start::Head } else { start };
        let Some(entry) = self.vsm.find("Log", None) else { return };
        let serial = entry.serial;
        let damaged = self.damaged.as_mut().filter(|(damaged, _)| *damaged == serial);
        let is_damaged = damaged.is_some();
        if let Some((_, looks)) = damaged {
            *looks = looks.saturating_sub(1);
            if *looks > 0 {
                return;
            }
            *looks = DAMAGED_LOOKS;
        }
        let start = if is_damaged { Start::Tail } else { start };
        let opened = self.vsm.map(entry).ok().and_then(|region| RingCursor::open(region, start));
        // One that is still damaged is ignored silently.
        let opened = opened.filter(|cursor| !is_damaged || cursor.makes_sense());
        if let Some(cursor) = opened {
            self.cursor = Some((serial, cursor));
            self.seen_one = true;
            self.read_some = !is_damaged;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::log::{HEAD_BYTES, LogId, LogRing};
    use shm::vsm::{VsmWriter, WORKER_DIRECTORY};
    use std::os::unix::fs::FileExt;
    use surface::tag::Tag;
    use tempfile::TempDir;

    const RING_BYTES: usize = 1 << 14;

    /// A log, and a reader that has read its first record.
    fn followed() -> (TempDir, LogRing, Source<'static>) {
        let directory = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(&directory.path().join(WORKER_DIRECTORY)).unwrap();
        let ring = LogRing::publish(&writer, RING_BYTES, Layout::V73).unwrap();
        let mut vsm = Vsm::new(directory.path());
        vsm.poll();
        let mut source = Source::server(vsm, false);
        assert_eq!(read_one(&ring, &mut source), [Next::Chunk, Next::Wait]);
        (directory, ring, source)
    }

    fn read_one(ring: &LogRing, source: &mut Source) -> [Next; 2] {
        ring.write(Tag::CLI, LogId::NONE, b"Rd ping");
        let mut words = Vec::new();
        [source.next(&mut words), source.next(&mut words)]
    }

    /// Writes seven segments of eight.
    fn overtake(ring: &LogRing) {
        let record_bytes = 256;
        for _ in 0..RING_BYTES / 8 * 7 / record_bytes {
            ring.write(Tag::CLI, LogId::NONE, &vec![b'x'; record_bytes - 12 - 1]);
        }
    }

    #[test]
    fn a_log_that_overtakes_its_reader_again_and_again_is_read_on() {
        let (_directory, ring, mut source) = followed();
        let mut messages = Vec::new();
        for _ in 0..3 {
            overtake(&ring);
            assert_eq!(source.next(&mut Vec::new()), Next::Overrun);
            source.lose_place(&mut messages);
            // A slow output, and the writer has passed by once more.
        }
        assert_eq!(read_one(&ring, &mut source), [Next::Chunk, Next::Wait]);
        assert_eq!(String::from_utf8(messages).unwrap(), "Log overrun\nLog reacquired\n".repeat(3));
    }

    #[test]
    fn a_damaged_log_is_left_alone_until_it_makes_sense() {
        let (directory, ring, mut source) = followed();
        let Source::Server(server) = &source else { unreachable!() };
        let segment = directory.path().join(WORKER_DIRECTORY).join(server.vsm.find("Log", None).unwrap().file());
        let file = std::fs::OpenOptions::new().write(true).open(segment).unwrap();
        file.write_all_at(&vec![0; RING_BYTES - HEAD_BYTES], HEAD_BYTES as u64).unwrap();
        let mut messages = Vec::new();
        for _ in 0..2 {
            assert_eq!(source.next(&mut Vec::new()), Next::Damaged);
            source.find_damage(&mut messages);
        }
        for _ in 0..3 * DAMAGED_LOOKS {
            assert_eq!(source.look_again(&mut messages), Look::Same);
            assert_eq!(source.next(&mut Vec::new()), Next::Wait);
        }
        let said = "Log damaged\nLog reacquired\nLog damaged\nLog abandoned (damaged)\n";
        assert_eq!(std::str::from_utf8(&messages).unwrap(), said);
        // The writer has overwritten the invalid part.
        overtake(&ring);
        for _ in 0..DAMAGED_LOOKS {
            source.look_again(&mut messages);
        }
        assert_eq!(read_one(&ring, &mut source), [Next::Chunk, Next::Wait]);
        assert_eq!(String::from_utf8(messages).unwrap(), format!("{said}Log reacquired\n"));
    }
}
