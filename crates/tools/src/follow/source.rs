//! Where the records come from: a running server's ring, across restarts of its worker, or a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use shm::read::file::FileCursor;
use shm::read::ring::{RingCursor, Start};
use shm::read::vsm::Vsm;
use shm::read::{Cursor, Next};

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
    /// Something has been read since the position was last lost.
    read_some: bool,
    /// A malformed log, which is not opened again.
    damaged: Option<u64>,
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

    /// The reader was overtaken: continues with what is written from now on. If the position is lost before anything was
    /// read the log is malformed, and is given up.
    pub fn lose_place(&mut self, error: &mut dyn Write) {
        let Source::Server(server) = self else { return };
        let Some((serial, cursor)) = &mut server.cursor else { return };
        if server.read_some {
            server.read_some = false;
            cursor.reset(Start::Tail);
            let _ = writeln!(error, "Log reacquired");
        } else {
            server.damaged = Some(*serial);
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

    /// Checks whether the log has gone or come back; a log that appears during this is read from its start.
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

    /// The server's identity; empty for a file, or when the server doesn't tell.
    pub fn identity(&self) -> String {
        match self {
            Source::File(_) => String::new(),
            Source::Server(server) => server.vsm.text("Arg", "-i").unwrap_or_default(),
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
        if self.damaged == Some(serial) {
            return;
        }
        let opened = self.vsm.map(entry).ok().and_then(|region| RingCursor::open(region, start));
        if let Some(cursor) = opened {
            self.cursor = Some((serial, cursor));
            self.seen_one = true;
            self.read_some = true;
        }
    }
}
