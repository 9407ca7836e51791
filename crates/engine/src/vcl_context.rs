//! What the hosts of the request machine and of the fetch machine have in common: access to the headers of a message,
//! storages, addresses, checks of what VCL sets. Each host keeps its own variables.
//!
//! Nothing here holds state. Texts of failures are those an operator of Varnish knows. Next file: `fetch/host.rs`.

use crate::context::{Engine, Peer};
use crate::loaded_vcl::LoadedVcl;
use crate::logged::{self, MessageTags};
use backend::Notes;
use cache::{BanSpecification, Cache, Purge, TagPurge};
use message::Message;
use shm::log::{LogBuffer, LogId};
use std::borrow::Cow;
use std::net::SocketAddr;
use surface::limits::VCL_BAN_BYTES_MAX;
use surface::parameter::{Parameters, feature};
use surface::tag::Tag;
use surface::vcl::{Method, Var};
use vcl_run::eval::{Machine, Place};
use vcl_run::host::Failure;
use vcl_run::line;
use vcl_run::link::LinkedProgram;
use vcl_run::program::Point;
use vcl_run::value::{DirectorId, Scratch, Value};
use vmods::{Finish, Pending, PurgeKind, Transaction};

/// How many objects a purge by tag looks at before others have their turn on the event loop.
const TAG_PURGE_OBJECTS: usize = 1000;

/// Replaces all headers of that name. An unset value leaves an empty header behind, as `set` does in VCL.
///
/// # Errors
/// `Bad header …` for control characters, when `validate` (feature validate_headers) is on.
pub(crate) fn set_header(
    log: &mut LogBuffer,
    tags: MessageTags,
    message: &mut Message,
    name: &str,
    value: &[u8],
    validate: bool,
) -> Result<(), Failure> {
    if validate && line::check("header", value).is_err() {
        return line::check(&format!("header {name}"), value);
    }
    logged::set(log, tags, message, name, value);
    Ok(())
}

/// Whether `set` of a header checks for control characters.
#[must_use]
pub(crate) fn validates_headers(parameters: &Parameters) -> bool {
    parameters.feature & feature::VALIDATE_HEADERS != 0
}

/// The bytes of a text that must not be empty; `what` is the variable, e.g. `req.url`.
///
/// # Errors
/// `Setting <what> to empty string`.
pub(crate) fn not_empty<'a>(value: Value, what: &str, scratch: &'a Scratch) -> Result<&'a [u8], Failure> {
    match bytes(value, scratch) {
        b"" => Err(Failure(format!("Setting {what} to empty string"))),
        bytes => Ok(bytes),
    }
}

/// A part of a start line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartLine {
    Method,
    Url,
    Protocol,
    Reason,
}

/// Sets a part of a message's start line, and logs it; `what` is the variable, e.g. `req.url`.
///
/// # Errors
/// `Bad <what>: …` for what would not stay one line, or one word where
/// a blank ends it. A blank in a URL stays: VCL goes on working with it, and what is sent to an origin has it as `%20`.
pub(crate) fn set_start_line(
    (log, tags, message): (&mut LogBuffer, MessageTags, &mut Message),
    part: StartLine,
    what: &str,
    bytes: &[u8],
) -> Result<(), Failure> {
    match part {
        StartLine::Method | StartLine::Protocol => line::check_word(what, bytes)?,
        StartLine::Url | StartLine::Reason => line::check(what, bytes)?,
    }
    let tag = match part {
        StartLine::Method => {
            message.set_method(bytes);
            tags.method
        }
        StartLine::Url => {
            message.set_target(bytes);
            tags.url
        }
        StartLine::Protocol => {
            message.set_protocol(bytes);
            tags.protocol
        }
        StartLine::Reason => {
            message.set_reason(bytes);
            tags.reason
        }
    };
    log.record(tag, bytes);
    Ok(())
}

/// The bytes of a text or blob value; empty for anything else.
pub(crate) fn bytes(value: Value, scratch: &Scratch) -> &[u8] {
    match value {
        Value::Text(text) | Value::Blob(text) => scratch.get(text),
        _ => b"",
    }
}

/// Seconds of a DURATION (or TIME) value; 0 for anything else.
#[must_use]
pub(crate) fn seconds(value: Value) -> f64 {
    match value {
        Value::Duration(seconds) | Value::Time(seconds) | Value::Real(seconds) => seconds,
        _ => 0.0,
    }
}

/// Checks a number that VCL gives as a status; `what` is the variable, e.g. `beresp.status`.
///
/// # Errors
/// When it is negative, larger than 65535, or its last three digits are below 100.
pub(crate) fn checked_status(what: &str, value: Value) -> Result<u16, Failure> {
    let Value::Int(status) = value else { return Err(Failure(format!("{what} is not a number"))) };
    if status < 0 {
        return Err(Failure(format!("{what} ({status}) is negative")));
    }
    let Ok(short) = u16::try_from(status) else { return Err(Failure(format!("{what} ({status}) > 65535"))) };
    if short % 1000 < 100 {
        return Err(Failure(format!("illegal {what} ({status}) (..0##)")));
    }
    Ok(short)
}

/// The reason that goes with a status set by VCL: the phrase of its last three digits.
#[must_use]
pub(crate) fn standard_reason(status: u16) -> &'static str {
    semantics::reason::phrase(status % 1000)
}

/// An address as a value.
#[must_use]
pub(crate) fn address(address: SocketAddr) -> Value {
    Value::Ip(Some((address.ip(), address.port())))
}

/// The variables that read the same in every task: the client's connection and the server itself. `None` = not one of them.
pub(crate) fn shared_variable(
    var: Var,
    engine: &Engine,
    peer: &Peer,
    client_identity: Option<&[u8]>,
    scratch: &mut Scratch,
) -> Option<Value> {
    Some(match var {
        Var::ClientIp => address(peer.client),
        Var::ServerIp => address(peer.server),
        Var::RemoteIp => address(peer.remote),
        Var::LocalIp => address(peer.local),
        Var::LocalEndpoint => Value::Text(scratch.put(peer.listener.endpoint.as_bytes())),
        Var::LocalSocket => Value::Text(scratch.put(peer.listener.name.as_bytes())),
        Var::ServerHostname => Value::Text(scratch.put(engine.hostname.as_bytes())),
        Var::ServerIdentity => Value::Text(scratch.put(engine.identity.as_bytes())),
        Var::ClientIdentity => match client_identity {
            Some(identity) => Value::Text(scratch.put(identity)),
            None => number_text(scratch, format_args!("{}", peer.client.ip())),
        },
        _ => return parameter_variable(var, &engine.parameters.load()),
    })
}

/// `param.*`: run-time parameters as they are now. `None` = not one of them.
pub(crate) fn parameter_variable(var: Var, parameters: &Parameters) -> Option<Value> {
    let seconds = Value::Duration;
    let number = |value: u64| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
    Some(match var {
        Var::ParamBackendIdleTimeout => seconds(parameters.backend_idle_timeout),
        Var::ParamBackendWaitLimit => number(parameters.backend_wait_limit),
        Var::ParamBackendWaitTimeout => seconds(parameters.backend_wait_timeout),
        Var::ParamBetweenBytesTimeout => seconds(parameters.between_bytes_timeout),
        Var::ParamConnectTimeout => seconds(parameters.connect_timeout),
        Var::ParamDefaultGrace => seconds(parameters.default_grace),
        Var::ParamDefaultKeep => seconds(parameters.default_keep),
        Var::ParamDefaultTtl => seconds(parameters.default_ttl),
        Var::ParamFirstByteTimeout => seconds(parameters.first_byte_timeout),
        Var::ParamIdleSendTimeout => seconds(parameters.idle_send_timeout),
        Var::ParamMaxEsiDepth => number(parameters.max_esi_depth),
        Var::ParamMaxRestarts => number(parameters.max_restarts),
        Var::ParamMaxRetries => number(parameters.max_retries),
        Var::ParamPipeTaskDeadline => seconds(parameters.pipe_task_deadline),
        Var::ParamPipeTimeout => seconds(parameters.pipe_timeout),
        Var::ParamSendTimeout => seconds(parameters.send_timeout),
        Var::ParamShortlived => seconds(parameters.shortlived),
        Var::ParamTimeoutIdle => seconds(parameters.timeout_idle),
        Var::ParamTransitBuffer => Value::Bytes(i64::try_from(parameters.transit_buffer).unwrap_or(i64::MAX)),
        Var::ParamUncacheableTtl => seconds(parameters.uncacheable_ttl),
        _ => return None,
    })
}

/// Bytes in hexadecimal digits, as a value.
pub(crate) fn hexadecimal(bytes: &[u8], scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    for byte in bytes {
        scratch.extend_fmt(format_args!("{byte:02x}"));
    }
    Value::Text(scratch.end(start))
}

/// Formatted text as a value.
pub(crate) fn number_text(scratch: &mut Scratch, text: std::fmt::Arguments<'_>) -> Value {
    let start = scratch.begin();
    scratch.extend_fmt(text);
    Value::Text(scratch.end(start))
}

/// Property of a storage, see [`vcl_run::host::Host::storage_property`].
#[must_use]
pub(crate) fn storage_property(engine: &Engine, storage: Option<u32>, property: &str) -> Value {
    let usage = storage.and_then(|index| Some((index, engine.storages.usage(index)?)));
    let Some((index, usage)) = usage else {
        return if property == "happy" { Value::Bool(false) } else { Value::Bytes(0) };
    };
    let bytes = |count: u64| Value::Bytes(i64::try_from(count).unwrap_or(i64::MAX));
    match property {
        "free_space" => bytes(engine.storages.free_bytes(index)),
        "used_space" => bytes(usage.g_bytes),
        _ => Value::Bool(true),
    }
}

/// The bare name of a storage; empty for none.
#[must_use]
pub(crate) fn storage_name(engine: &Engine, storage: Option<u32>) -> &str {
    storage.and_then(|index| engine.storages.name(index)).map_or("", |storage| storage.name.as_str())
}

/// The name of a director or backend, as VCL shows it.
#[must_use]
pub(crate) fn director_name(vcl: &LoadedVcl, director: DirectorId) -> Cow<'_, str> {
    vcl.directors.name(director)
}

/// Adds a ban.
///
/// # Errors
/// The text for `std.ban_error()` and for the log.
pub(crate) fn add_ban(engine: &Engine, expression: &[u8], now: f64) -> Result<(), String> {
    if expression.len() > VCL_BAN_BYTES_MAX {
        return Err(format!("Ban expression of more than {VCL_BAN_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(expression).map_err(|_| "Ban expression is not text".to_owned())?;
    engine.cache.ban(BanSpecification::parse_text(text)?, now)
}

/// Writes what directors had to say: to the task's log, or as records of no transaction.
pub(crate) fn log_notes(engine: &Engine, log: &mut LogBuffer, notes: &Notes) {
    for note in notes.take() {
        match note.of_task {
            true => log.record(note.tag, note.text.as_bytes()),
            false => engine.ring.write(note.tag, LogId::NONE, note.text.as_bytes()),
        }
    }
}

/// Purges by tag: the value of the call, or what to wait for when there are too many objects to do it in one go.
pub(crate) fn purge_tags(cache: &Cache, list: &[u8], kind: PurgeKind, now: f64) -> Result<Value, Pending> {
    let count = |purge: &TagPurge| Value::Int(i64::try_from(purge.count()).unwrap_or(i64::MAX));
    let mut purge = cache.purge_tags(list, purge_of(kind), now);
    if purge.step(TAG_PURGE_OBJECTS) {
        return Ok(count(&purge));
    }
    Err(Box::pin(async move {
        while !purge.step(TAG_PURGE_OBJECTS) {
            tokio::task::yield_now().await;
        }
        let finish: Finish = Box::new(move |_, _| Ok(count(&purge)));
        finish
    }))
}

/// The cache's word for what a VMOD asks for.
pub(crate) fn purge_of(kind: PurgeKind) -> Purge {
    match kind {
        PurgeKind::Hard => Purge::Hard,
        PurgeKind::Soft { ttl, grace, keep } => Purge::Soft { ttl, grace, keep },
    }
}

/// The id of log records of a transaction.
#[must_use]
pub(crate) fn log_id(transaction: Transaction) -> LogId {
    match transaction {
        Transaction::None => LogId::NONE,
        Transaction::Client(vxid) => LogId::client(vxid),
        Transaction::Backend(vxid) => LogId::backend(vxid),
    }
}

/// Where VCL set something that somebody may ask about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    method: Option<Method>,
    instruction: u32,
    /// The subroutines called to get there.
    subs: Vec<u32>,
}

impl Noted {
    /// Takes over a place; the room is used again.
    pub(crate) fn set(&mut self, method: Method, place: Place<'_>) {
        self.method = Some(method);
        self.instruction = place.instruction();
        self.subs.clear();
        self.subs.extend(place.subs());
    }
}

/// Where a method's decision stands in the VCL: `at=<source>:<line> in=<method>›<subroutine>…`.
pub(crate) struct Decision<'a> {
    source: &'a str,
    line: u32,
    subs: Vec<&'a str>,
}

impl<'a> Decision<'a> {
    /// The decision of the run that ended last. Without a place (the program is damaged, or VCL failed) it reads empty.
    pub(crate) fn of(machine: &Machine, program: &'a LinkedProgram) -> Decision<'a> {
        let place = machine.decision();
        Decision::at(program, machine.method(), place.instruction(), place.subs())
    }

    /// What was noted when it was set.
    pub(crate) fn noted(noted: &Noted, program: &'a LinkedProgram) -> Decision<'a> {
        Decision::at(program, noted.method, noted.instruction, noted.subs.iter().copied())
    }

    fn at(
        program: &'a LinkedProgram,
        method: Option<Method>,
        instruction: u32,
        called: impl Iterator<Item = u32>,
    ) -> Decision<'a> {
        let program = program.program();
        let (source, line) =
            program.place_of(instruction).map_or(("", 0), |(source, point)| (source.name.as_str(), point.line));
        let method = method.map(|method| method.row().name);
        let called = called.filter_map(|sub| program.subs.get(sub as usize)).map(|sub| sub.name.as_str());
        Decision { source, line, subs: method.into_iter().chain(called).collect() }
    }

    /// Whether a subroutine of that name had been called.
    pub(crate) fn is_under(&self, sub: &str) -> bool {
        self.subs.contains(&sub)
    }

    /// `<source>:<line>`; `None` without a place.
    pub(crate) fn place(&self) -> Option<String> {
        (!self.source.is_empty()).then(|| format!("{}:{}", self.source, self.line))
    }
}

impl std::fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.source.is_empty() {
            write!(f, "at={}:{} ", self.source, self.line)?;
        }
        write!(f, "in={}", self.subs.join(">"))
    }
}

/// Whether the points of the program that a task passes are recorded: as VCL said (`req.trace`), else as the log's mask says.
pub(crate) fn is_traced(log: &LogBuffer, said: Option<bool>) -> bool {
    said.unwrap_or_else(|| !log.is_masked(Tag::VCLTrace))
}

/// The `VCL_trace` record of a point of the program.
pub(crate) fn trace(log: &mut LogBuffer, vcl_name: &str, index: u32, point: Point) {
    let Point { source, line, position } = point;
    log.record_unmasked(Tag::VCLTrace, format!("{vcl_name} {index} {source}.{line}.{position}").as_bytes());
}
