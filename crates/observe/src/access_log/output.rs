//! Destinations of an access log.
//!
//! A file is opened again if it was moved or removed, or if that is asked for, and replaced when it
//! reaches the size of `rotate=`. What cannot be written is dropped and counted; a message says so
//! at most once a minute. A write can block here, on a thread that nothing waits for.

use super::queue::Batch;
use crate::line_counts::LineCounts;
use crate::log_reader::Seldom;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surface::access_log::{AccessLog, Destination, Rotation, SYSLOG_PATH};
use surface::metric::LineDrop;

/// Permission bits of a new file: access logs have addresses of clients.
const MODE: u32 = 0o640;
/// Severity "informational" of syslog.
const SEVERITY: u8 = 6;
/// Name of the program in lines for syslog.
const IDENT: &str = "copal";

/// The destination of one access log.
pub(super) struct Output {
    sink: Sink,
    counts: Arc<LineCounts>,
    complaint: Seldom,
}

enum Sink {
    File(LogFile),
    Stdout,
    Stderr,
    Datagrams { socket: Option<UnixDatagram>, path: PathBuf, start: String },
}

impl Output {
    pub fn new(log: &AccessLog, counts: Arc<LineCounts>) -> Output {
        let datagrams = |path: &str, start: String| Sink::Datagrams {
            socket: UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket)).ok(),
            path: PathBuf::from(path),
            start,
        };
        let sink = match &log.destination {
            Destination::File(path) => Sink::File(LogFile::new(Path::new(path), log.rotation)),
            Destination::Stdout => Sink::Stdout,
            Destination::Stderr => Sink::Stderr,
            Destination::Syslog(_, number) => datagrams(SYSLOG_PATH, format!("<{}>{IDENT}: ", number * 8 + SEVERITY)),
            Destination::Datagram(path) => datagrams(path, String::new()),
        };
        Output { sink, counts, complaint: Seldom::default() }
    }

    /// Writes the lines of a batch, and counts them.
    pub fn write(&mut self, batch: &Batch) {
        let (written, failure) = match &mut self.sink {
            Sink::File(file) => {
                let checked = file.check(batch.reopens);
                let (written, failure) = write_lines(batch, |text| file.write(text));
                (written, failure.or(checked.err()))
            }
            Sink::Stdout => write_lines(batch, |text| io::stdout().lock().write(text)),
            Sink::Stderr => write_lines(batch, |text| io::stderr().lock().write(text)),
            Sink::Datagrams { socket, path, start } => send_lines(batch, socket.as_ref(), path, start),
        };
        self.counts.write(written);
        self.counts.drop_lines(LineDrop::Write, batch.ends.len() as u64 - written);
        if let Some(error) = failure {
            let destination = &self.counts.destination;
            self.complaint.say(format_args!("access log {destination}: {error}; lines are dropped"));
        }
    }
}

/// Writes all lines; returns the number of those that were written whole, and the error that ended
/// it.
fn write_lines(batch: &Batch, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> (u64, Option<io::Error>) {
    let mut at = 0;
    let mut failure = None;
    while at < batch.text.len() {
        match write(&batch.text[at..]) {
            Ok(0) => failure = Some(io::ErrorKind::WriteZero.into()),
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => failure = Some(error),
        }
        if failure.is_some() {
            break;
        }
    }
    let whole = batch.ends.partition_point(|end| *end <= at);
    (whole as u64, failure)
}

/// Sends each line as a datagram, without its newline. A receiver that is absent or slow loses
/// lines.
fn send_lines(batch: &Batch, socket: Option<&UnixDatagram>, path: &Path, start: &str) -> (u64, Option<io::Error>) {
    let Some(socket) = socket else { return (0, Some(io::ErrorKind::NotConnected.into())) };
    let (mut written, mut failure, mut from) = (0, None, 0);
    let mut datagram = Vec::new();
    for end in &batch.ends {
        datagram.clear();
        datagram.extend_from_slice(start.as_bytes());
        datagram.extend_from_slice(batch.text[from..*end].trim_ascii_end());
        from = *end;
        match socket.send_to(&datagram, path) {
            Ok(_) => written += 1,
            Err(error) => failure = Some(error),
        }
    }
    (written, failure)
}

/// A file that is appended to.
struct LogFile {
    path: PathBuf,
    rotation: Option<Rotation>,
    file: Option<File>,
    bytes: u64,
    /// The last line is not whole.
    is_broken: bool,
}

impl LogFile {
    fn new(path: &Path, rotation: Option<Rotation>) -> LogFile {
        LogFile { path: path.to_owned(), rotation, file: None, bytes: 0, is_broken: false }
    }

    /// Opens the file if it is not open, was replaced, or `reopens`.
    fn check(&mut self, reopens: bool) -> io::Result<()> {
        let identity = |data: &fs::Metadata| (data.dev(), data.ino());
        let opened = self.file.as_ref().and_then(|file| file.metadata().ok());
        let present = fs::metadata(&self.path).ok();
        let is_same = opened.as_ref().map(identity) == present.as_ref().map(identity);
        if reopens || !is_same || self.file.is_none() {
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        self.file = None;
        // The path may lead to a pipe without a reader: opening it must not block.
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(MODE).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(&self.path)?;
        self.bytes = file.metadata()?.len();
        self.is_broken = false;
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.rotation.is_some_and(|rotation| self.bytes >= rotation.bytes) {
            self.rotate()?;
        }
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        if self.is_broken {
            file.write_all(b"\n")?;
            self.is_broken = false;
        }
        // A file that rotates takes whole lines, up to its size.
        let room = self.rotation.map_or(usize::MAX, |rotation| {
            usize::try_from(rotation.bytes - self.bytes.min(rotation.bytes)).unwrap_or(usize::MAX)
        });
        let end = text.get(room..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        let text = end.map_or(text, |end| &text[..room + end + 1]);
        let written = file.write(text);
        if let Ok(count) = written {
            self.bytes += count as u64;
            self.is_broken = count > 0 && text[count - 1] != b'\n';
        }
        written
    }

    /// Moves the file away: `log` to `log.1`, that to `log.2`, and so on.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        let numbered = |number: u32| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..rotation.files).rev() {
            match fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, numbered(1))?;
        self.open()
    }
}
