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

/// The log of a server, which may be gone for a while.
pub(super) struct Server {
    vsm: Vsm,
    cursor: Option<(u64, RingCursor)>,
    from_head: bool,
    seen_one: bool,
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
        let mut server = Server { vsm, cursor: None, from_head, seen_one: false };
        server.open(if from_head { Start::Head } else { Start::Tail });
        Source::Server(Box::new(server))
    }

    /// The next chunk.
    pub fn next(&mut self, words: &mut Vec<u32>) -> Next {
        match self {
            Source::File(cursor) => cursor.next(words),
            Source::Server(server) => match &mut server.cursor {
                Some((_, cursor)) => cursor.next(words),
                None => Next::Wait,
            },
        }
    }

    /// The reader was overtaken: goes on with what is written from now on.
    pub fn lose_place(&mut self) {
        if let Source::Server(server) = self
            && let Some((_, cursor)) = &mut server.cursor
        {
            cursor.reset(Start::Tail);
        }
    }

    /// An error when there was no log to read at all.
    pub fn found_log(&self) -> Result<(), String> {
        match self {
            Source::Server(server) if !server.seen_one => {
                Err("VSL: No log to read: the worker is not running".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Looks whether the log has gone or come back; a log that came while we looked is read from its start.
    pub fn look_again(&mut self, error: &mut dyn Write) {
        let Source::Server(server) = self else { return };
        server.vsm.poll();
        if let Some((serial, _)) = &server.cursor {
            if server.vsm.is_listed(*serial) {
                return;
            }
            let _ = writeln!(error, "Log abandoned (vsm)");
            server.cursor = None;
        }
        let again = server.seen_one;
        server.open(Start::Head);
        if again && server.cursor.is_some() {
            let _ = writeln!(error, "Log reacquired");
        }
    }
}

impl Server {
    fn open(&mut self, start: Start) {
        let start = if self.from_head { Start::Head } else { start };
        let Some(entry) = self.vsm.find("Log", None) else { return };
        let serial = entry.serial;
        let opened = self.vsm.map(entry).ok().and_then(|region| RingCursor::open(region, start));
        if let Some(cursor) = opened {
            self.cursor = Some((serial, cursor));
            self.seen_one = true;
        }
    }
}
