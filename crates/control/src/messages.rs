//! The protocol between manager and worker over their socket pair.
//!
//! The manager starts `copal worker --control FD`; the first message is [`Request::Configure`],
//! which names the other inherited descriptors. Every request gets exactly one [`Response`], in
//! order; during the first one, any number of [`Step`]s precede the reply. A frame is a
//! little-endian `u32` length and that many bytes of postcard. The worker never compiles VCL: it
//! gets programs, and verifies them.
//!
//! Invariant: neither side trusts a length beyond [`FRAME_BYTES_MAX`].

use crate::canary::CanaryConfiguration;
use crate::fleet::{FleetOrder, FleetServing};
use cli_proto::response::Response;
use serde::{Deserialize, Serialize};
use shm::layout::Layout;
use std::io;
use std::path::PathBuf;
use surface::closed_set::{Advice, VclState};
use surface::eviction::EvictionPolicy;
use surface::parameter::Parameters;
use surface::program::Called;
use tls::secret::Secret;
use tls::table::TlsTable;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 512 << 20;

/// One listening address with its sockets: one per loop (SO_REUSEPORT), or a single one for
/// Unix-domain sockets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListenerConfiguration {
    /// The `-a` name: given, or `a0`, `a1`, …
    pub name: String,
    /// The address part of the `-a` argument as written, for `local.endpoint`.
    pub endpoint: String,
    /// PROXY protocol expected (`,PROXY`).
    pub proxy: bool,
    /// Path of a Unix-domain socket; `None` for TCP.
    pub path: Option<PathBuf>,
    /// Inherited descriptors, already listening.
    pub descriptors: Vec<i32>,
    /// TLS is enabled, configured by [`TlsTable`].
    pub tls: bool,
    /// The https port that plain requests are redirected to.
    #[serde(default)]
    pub redirect_port: Option<u16>,
    /// Inherited UDP descriptors for HTTP/3, bound to the same port: one per loop, or none.
    pub udp_descriptors: Vec<i32>,
}

/// The file of a storage whose bodies are not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileConfiguration {
    /// Inherited descriptor; the manager has locked the file.
    pub descriptor: i32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bodies begin at multiples of this many bytes.
    pub granularity_bytes: u64,
    /// Advice to the kernel about reads.
    pub advice: Advice,
}

/// One `-s` storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageConfiguration {
    /// Name, e.g. `s0`.
    pub name: String,
    /// Limit of its memory, in bytes.
    pub limit_bytes: u64,
    /// Largest limit while the arena exists, in bytes; a file is divided for that.
    pub grows_to_bytes: u64,
    /// True if `-s` set the limit; otherwise the manager chose it.
    pub is_limit_given: bool,
    /// Its eviction policy; `None` = that of the parameter `eviction_policy`.
    pub policy: Option<EvictionPolicy>,
    /// Inherited descriptor of the arena (a memfd that the manager holds).
    pub descriptor: i32,
    /// File of its bodies, if they are not in the arena.
    pub file: Option<FileConfiguration>,
}

/// Configuration that a worker needs before it loads VCL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// The work directory, absolute, or `.` (the worker is started in it); the worker writes
    /// `_.vsm_child` in it.
    pub work_directory: PathBuf,
    /// `-i`.
    pub identity: String,
    /// Host name.
    pub hostname: String,
    /// Name of the server in responses.
    pub name: Called,
    /// Listeners in order of `-a`.
    pub listeners: Vec<ListenerConfiguration>,
    /// The storages in order of `-s`, without Transient; at least one.
    pub storages: Vec<StorageConfiguration>,
    /// Inherited descriptor of the file that a worker locks before it uses storages or journal.
    pub directory_lock_descriptor: i32,
    /// Inherited descriptor of the ban journal; it is on a disk if any storage has a file.
    pub journal_descriptor: i32,
    /// Bytes that the storage named Transient may use of the first one's limit; `None` = no limit
    /// of its own.
    pub transient_limit_bytes: Option<u64>,
    /// Number of event loops (already resolved: at least 1). Each TCP listener has as many
    /// descriptors.
    pub event_loops: usize,
    /// Parameter values.
    pub parameters: Parameters,
    /// Layout of the log.
    pub log_layout: Layout,
    /// User and group to become, if started as root under the unix jail.
    pub run_as: Option<(u32, u32)>,
    /// True if the worker enters the sandbox.
    pub is_sandboxed: bool,
    /// Inherited descriptor of a small memfd into which the panic text is written (NUL-terminated,
    /// at most 64 KiB).
    pub panic_descriptor: i32,
    /// The TLS table, if any listener has TLS.
    pub tls: Option<TlsTable>,
    /// The secret for the tokens and stateless resets of QUIC; it outlives the worker.
    pub quic_secret: Secret,
}

/// Manager to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// First message.
    Configure(Box<Configuration>),
    /// New parameter values.
    Parameters(Box<Parameters>),
    /// Load a program (postcard of `vcl_run::program::Program`) and run its vcl_init; 200, or
    /// 106/300 with the reason.
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
    /// Begin a canary, or end the one that runs; `VclUse` ends it too.
    VclCanary(Option<Box<CanaryConfiguration>>),
    /// The counts of the canary: [`crate::canary::counts_text`], or 300 if none runs.
    CanaryCounts,
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
    /// Replaces the TLS table. Existing connections continue unchanged.
    Tls(Box<TlsTable>),
    /// New limits of the storages, in bytes; the reply contains the present limits, in the same
    /// order, separated by blanks.
    Limits(Vec<u64>),
    /// Serve under these conditions of the fleet from now on.
    FleetServe(FleetServing),
    /// Carry these orders of the fleet out, durably; the reply is [`crate::fleet::Applied`].
    FleetApply(Vec<FleetOrder>),
    /// Check an order without effect; 106 with the reason if it cannot be carried out.
    FleetCheck(FleetOrder),
    /// Begin to accept connections.
    Start,
    /// A CLI command that the worker answers (`ban`, `ban.list`, `backend.list`, `vcl.show`,
    /// `debug.*`, …).
    Command {
        /// The words, without `-j`.
        words: Vec<String>,
        /// JSON is requested.
        json: bool,
    },
    /// For `vcl.list`: one line `name temperature busy` per VCL.
    VclStatus,
    /// Checks that the worker still answers.
    Ping,
    /// Stop accepting, finish requests in flight (bounded), run vcl_fini, exit with status 0. The
    /// reply names the requests that were cut off.
    Stop,
}

/// Step of a worker's configuration, reported before it begins. If the worker dies, the manager has
/// its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Something that does not depend on the content of any storage.
    Surroundings,
    /// Takes over the arena of the storage at that index.
    Storage(usize),
    /// Reads the journal of bans.
    Bans,
    /// Builds the index from the content of all storages.
    Index,
    /// The worker has received the request to stop; from now on SIGUSR1 ends the time for that.
    Draining,
}

/// Any message from a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// Progress of its configuration.
    Step(Step),
    /// The answer to a request.
    Reply(Response),
}

/// Sends a [`Step`] from code that cannot wait.
///
/// # Errors
/// The other side is gone.
pub fn send_step(stream: &std::os::unix::net::UnixStream, step: Step) -> io::Result<()> {
    send_now(stream, &Said::Step(step))
}

/// Sends one frame from code that cannot wait: it is so small that an empty socket takes it at
/// once.
///
/// # Errors
/// The other side is gone.
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
/// The other side is gone.
pub async fn send<T: Serialize>(stream: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    stream.write_all(&frame(message)?).await?;
    stream.flush().await
}

/// Receives one frame; `None` when the other side closed between frames.
///
/// # Errors
/// The connection breaks inside a frame, or the frame is too large or malformed.
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
