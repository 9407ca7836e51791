//! The protocol between manager and worker over their socket pair.
//!
//! The manager starts `copal worker --control FD`; the first message is [`Request::Configure`], which names the other
//! inherited descriptors. Every request gets exactly one [`Reply`], in order; during the first one, any number of
//! [`Step`]s precede the reply. A frame is a little-endian `u32` length and that many bytes of postcard. The worker
//! never compiles VCL: it gets programs, and verifies them.
//!
//! Invariant: neither side trusts a length beyond [`FRAME_BYTES_MAX`].

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use surface::eviction::EvictionPolicy;
use surface::parameter::Parameters;
use tls::secret::Secret;
use tls::table::TlsTable;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 512 << 20;

/// One listening address with its sockets: one per loop (SO_REUSEPORT), or a single one for Unix-domain sockets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListenerConfiguration {
    /// The `-a` name: given, or `a0`, `a1`, …
    pub name: String,
    /// The address part of the `-a` argument as written, for `local.endpoint`.
    pub endpoint: String,
    /// PROXY protocol expected (`,PROXY`).
    pub proxy: bool,
    /// Path when it is a Unix-domain socket.
    pub path: Option<PathBuf>,
    /// Inherited descriptors, already listening.
    pub descriptors: Vec<i32>,
    /// TLS is spoken, as [`TlsTable`] says.
    pub tls: bool,
    /// Inherited UDP descriptors for HTTP/3, bound to the same port: one per loop, or none.
    pub udp_descriptors: Vec<i32>,
}

/// How a file is going to be read: what the kernel is told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// Pieces here and there.
    #[default]
    Random,
    /// From one end to the other.
    Sequential,
}

/// The file of a storage whose bodies do not lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileConfiguration {
    /// Inherited descriptor; the manager has locked the file.
    pub descriptor: i32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bodies begin at multiples of this many bytes.
    pub granularity_bytes: u64,
    /// What the kernel is told of reads.
    pub advice: Advice,
}

/// One `-s` storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageConfiguration {
    /// Name, e.g. `s0`.
    pub name: String,
    /// Limit of its memory, in bytes.
    pub limit_bytes: u64,
    /// How large the limit may become while the arena exists, in bytes; a file is divided for that.
    pub grows_to_bytes: u64,
    /// Whether `-s` set the limit; otherwise the manager chose it.
    pub is_limit_given: bool,
    /// What is evicted from it; `None` = as the parameter `eviction_policy` says.
    pub policy: Option<EvictionPolicy>,
    /// Inherited descriptor of the arena (a memfd that the manager holds).
    pub descriptor: i32,
    /// Where bodies lie, if not in the arena.
    pub file: Option<FileConfiguration>,
}

/// Everything a worker needs to know before it loads VCL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// The work directory, absolute, or `.` (the worker is started in it); the worker writes `_.vsm_child` in it.
    pub work_directory: PathBuf,
    /// `-i`.
    pub identity: String,
    /// Host name.
    pub hostname: String,
    /// Listeners in order of `-a`.
    pub listeners: Vec<ListenerConfiguration>,
    /// The storages in order of `-s`, without Transient; at least one.
    pub storages: Vec<StorageConfiguration>,
    /// Inherited descriptor of the file that a worker locks before it touches storages or journal.
    pub seat_descriptor: i32,
    /// Inherited descriptor of the ban journal; it lies on a disk if any storage has a file.
    pub journal_descriptor: i32,
    /// Bytes that the storage named Transient may use of the first one's limit; `None` = no limit of its own.
    pub transient_limit_bytes: Option<u64>,
    /// How many event loops to run (already resolved: at least 1). Each TCP listener has as many descriptors.
    pub event_loops: usize,
    /// Parameter values.
    pub parameters: Parameters,
    /// User and group to become, when started as root under the unix jail.
    pub run_as: Option<(u32, u32)>,
    /// Whether the worker fences itself in.
    pub is_fenced: bool,
    /// Inherited descriptor of a small memfd into which the panic text is written (NUL-terminated, at most 64 KiB).
    pub panic_descriptor: i32,
    /// What TLS is served with, if any listener speaks it.
    pub tls: Option<TlsTable>,
    /// The secret from which the tokens and stateless resets of QUIC are made; it outlives the worker.
    pub quic_secret: Secret,
}

/// The state that an operator sets for a VCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VclState {
    /// Warm while used.
    Auto,
    /// Never warm.
    Cold,
    /// Always warm.
    Warm,
}

/// Manager to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// First message.
    Configure(Box<Configuration>),
    /// New parameter values.
    Parameters(Box<Parameters>),
    /// Load a program (postcard of `vcl_run::program::Program`) and run its vcl_init; 200, or 106/300 with the reason.
    VclLoad {
        /// Name.
        name: String,
        /// The program.
        program: Vec<u8>,
        /// State.
        state: VclState,
    },
    /// Make a VCL or label the active one.
    VclUse {
        /// Name.
        name: String,
    },
    /// Change the state of a VCL.
    VclState {
        /// Name.
        name: String,
        /// State.
        state: VclState,
    },
    /// Point a label at a VCL.
    VclLabel {
        /// Label.
        label: String,
        /// VCL.
        vcl: String,
    },
    /// Discard a VCL or label; it is removed when its last request is done.
    VclDiscard {
        /// Name.
        name: String,
    },
    /// What TLS is served with from now on. Connections that exist go on as they are.
    Tls(Box<TlsTable>),
    /// New limits of the storages, in bytes; the reply has what they are now, in the same order, separated by blanks.
    Limits(Vec<u64>),
    /// Begin to accept connections.
    Start,
    /// A CLI command that the worker answers (`ban`, `ban.list`, `backend.list`, `vcl.show`, `debug.*`, …).
    Command {
        /// The words, without `-j`.
        words: Vec<String>,
        /// JSON asked for.
        json: bool,
    },
    /// For `vcl.list`: one line `name temperature busy` per VCL.
    VclStatus,
    /// Asks whether the worker still answers.
    Ping,
    /// Stop accepting, finish what is in flight (bounded), run vcl_fini, exit with status 0. The reply says what was cut
    /// off.
    Stop,
}

/// Worker to manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// CLI status: 200, 106, 300, …
    pub status: u16,
    /// Text.
    pub body: String,
}

impl Reply {
    /// Status 200 with text.
    #[must_use]
    pub fn ok(body: impl Into<String>) -> Reply {
        Reply { status: 200, body: body.into() }
    }

    /// Another status with text.
    #[must_use]
    pub fn status(status: u16, body: impl Into<String>) -> Reply {
        Reply { status, body: body.into() }
    }
}

/// What a worker is about to do while it configures itself. If it dies, the manager knows what it was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Something that does not depend on the content of any storage.
    Surroundings,
    /// Takes over the arena of the storage at that index.
    Storage(usize),
    /// Reads the journal of bans.
    Bans,
    /// Builds the index of what was found in all storages.
    Index,
    /// The worker has been told to stop; from now on SIGUSR1 tells it that its time for that is up.
    Draining,
}

/// Any message from a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// Progress of its configuration.
    Step(Step),
    /// The answer to a request.
    Reply(Reply),
}

/// Sends a [`Step`] from code that cannot wait.
///
/// # Errors
/// When the other side is gone.
pub fn send_step(stream: &std::os::unix::net::UnixStream, step: Step) -> io::Result<()> {
    send_now(stream, &Said::Step(step))
}

/// Sends one frame from code that cannot wait: it is so small that an empty socket takes it at once.
///
/// # Errors
/// When the other side is gone.
pub fn send_now<T: Serialize>(mut stream: &std::os::unix::net::UnixStream, message: &T) -> io::Result<()> {
    std::io::Write::write_all(&mut stream, &frame(message)?)
}

fn frame<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(body.len() + 4);
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// Sends one frame.
///
/// # Errors
/// When the other side is gone.
pub async fn send<T: Serialize>(stream: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    stream.write_all(&frame(message)?).await?;
    stream.flush().await
}

/// Receives one frame; `None` when the other side closed between frames.
///
/// # Errors
/// When the connection breaks inside a frame, or the frame is too large or malformed.
pub async fn receive<T: for<'de> Deserialize<'de>>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("control frame of {length} bytes")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    postcard::from_bytes(&body).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
