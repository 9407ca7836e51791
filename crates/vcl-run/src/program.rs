//! The program: the result of compiling one VCL. Flat, immutable, serialisable; the manager keeps
//! it and sends it to the worker, which verifies it before running it.

mod op;

pub use op::{Arithmetic, Comparison, Op};

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use surface::vcl::Generation;

/// A source text of the compilation, for `vcl.show -v` and for positions in messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// File name, `<vcl.inline>`, `<-b argument>` or `<builtin>`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Address of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// `backend x none;`: always sick.
    None,
    /// `.host` and `.port`, resolved when compiled: at most one address of each family.
    Ip {
        /// IPv4 address and port.
        v4: Option<SocketAddr>,
        /// IPv6 address and port.
        v6: Option<SocketAddr>,
    },
    /// `.path`: a Unix-domain socket; a name that begins with `@` means an abstract one.
    Unix(PathBuf),
}

/// A backend definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendDefinition {
    /// VCL name.
    pub name: String,
    /// Address.
    pub endpoint: Endpoint,
    /// `.host` as written, for messages.
    pub host: String,
    /// `.port` as written.
    pub port: String,
    /// `.host_header`: Host for probes, and for requests that have none.
    pub host_header: String,
    /// Seconds; `None` = parameter `connect_timeout`.
    pub connect_timeout: Option<f64>,
    /// Seconds; `None` = parameter.
    pub first_byte_timeout: Option<f64>,
    /// Seconds; `None` = parameter.
    pub between_bytes_timeout: Option<f64>,
    /// Most connections in use at once; 0 = no limit.
    pub max_connections: u32,
    /// Number of fetches that may wait for a connection when `max_connections` is reached; `None` =
    /// parameter `backend_wait_limit`.
    pub wait_limit: Option<u32>,
    /// Time limit of that wait, in seconds; `None` = parameter `backend_wait_timeout`.
    pub wait_timeout: Option<f64>,
    /// Seconds for the whole response; `None` = parameter.
    pub last_byte_timeout: Option<f64>,
    /// Seconds after which idle connections are closed; `None` = parameter `backend_idle_timeout`.
    pub idle_timeout: Option<f64>,
    /// Conditions that open the circuit breaker; `None` = never.
    pub breaker: Option<Box<BreakerDefinition>>,
    /// Time in which its share of the load rises after it has recovered, in seconds; 0 =
    /// immediately.
    pub slow_start: f64,
    /// Fetches that may be repeated, in percent of all fetches; `None` = no limit.
    pub retry_budget: Option<u32>,
    /// The name that is looked up periodically; `None` = the address stays.
    pub follows: Option<FollowedName>,
    /// The proxy through which connections are made.
    pub via: Option<ViaDefinition>,
    /// PROXY protocol version to send (1 or 2); 0 = none.
    pub proxy_header: u8,
    /// Bytes sent at the start of every connection.
    pub preamble: Vec<u8>,
    /// Index into [`Program::probes`].
    pub probe: Option<u32>,
    /// Connections are made over TLS.
    pub tls: Option<Box<TlsDefinition>>,
    /// Requests are sent over HTTP/2: over TLS if the origin agrees, else always.
    pub http2: bool,
}

/// Conditions under which failed fetches open the circuit breaker of a backend, and the duration.
/// Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakerDefinition {
    /// Number of consecutive failures; 0 = not considered.
    pub fail_limit: u32,
    /// Number of failures in a hundred fetches; 0 = not considered.
    pub fail_ratio: u32,
    /// Time window of that ratio.
    pub fail_window: f64,
    /// Minimum number of fetches for that ratio.
    pub fail_minimum: u32,
    /// Responses of status 500, 502, 503 and 504 are failures, too.
    pub fail_5xx: bool,
    /// Time for which the breaker is open at first; doubled each time.
    pub aside_time: f64,
    /// Longest time for which the breaker is open.
    pub aside_time_max: f64,
}

impl Default for BreakerDefinition {
    fn default() -> BreakerDefinition {
        BreakerDefinition {
            fail_limit: 0,
            fail_ratio: 0,
            fail_window: 10.0,
            fail_minimum: 10,
            fail_5xx: false,
            aside_time: 10.0,
            aside_time_max: 300.0,
        }
    }
}

/// `.host` that is a name, and the port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedName {
    /// The name.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// TLS settings for connections to a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsDefinition {
    /// The host named in the handshake (SNI); `None` = none.
    pub server_name: Option<String>,
    /// The host that the certificate must be for, if `verify_host`.
    pub host: String,
    /// The chain is verified.
    pub verify_peer: bool,
    /// The name is verified.
    pub verify_host: bool,
    /// Authorities in DER instead of the system's; empty = the system's.
    pub authorities: Vec<Vec<u8>>,
    /// Client certificate and its key, in DER.
    pub client: Option<ClientIdentity>,
    /// SHA-256 of a public key (SPKI) that the origin must have; `None` = any.
    pub pin: Option<[u8; 32]>,
    /// True if nothing older than TLS 1.3 is accepted.
    pub only_tls13: bool,
}

/// A certificate that is presented to origins.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The chain in DER, the own certificate first.
    pub chain: Vec<Vec<u8>>,
    /// The private key in DER.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientIdentity").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

impl BackendDefinition {
    /// A backend of that name and address, with defaults for everything else.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> BackendDefinition {
        BackendDefinition {
            name: name.into(),
            endpoint,
            host: String::new(),
            port: String::new(),
            host_header: String::new(),
            connect_timeout: None,
            first_byte_timeout: None,
            between_bytes_timeout: None,
            max_connections: 0,
            wait_limit: None,
            wait_timeout: None,
            last_byte_timeout: None,
            idle_timeout: None,
            breaker: None,
            slow_start: 0.0,
            retry_budget: None,
            follows: None,
            via: None,
            proxy_header: 0,
            preamble: Vec::new(),
            probe: None,
            tls: None,
            http2: false,
        }
    }
}

/// `.via`: connections are made to another backend's address, and begin with a PROXY header of
/// version 2 that names their destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViaDefinition {
    /// The other backend's VCL name.
    pub name: String,
    /// Its address.
    pub endpoint: Endpoint,
    /// `.authority`: the host name in the header; empty = none.
    pub authority: String,
}

/// A health probe definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeDefinition {
    /// VCL name; empty for an inline one.
    pub name: String,
    /// `.url`; empty when `.request` is given. Default `/`.
    pub url: String,
    /// `.request` lines joined with CR LF each and a final CR LF; empty when `.url` is used.
    pub request: String,
    /// Expected status, default 200.
    pub expected_response: u16,
    /// Seconds for the whole check, default 2.
    pub timeout: f64,
    /// Seconds between starts, default 5.
    pub interval: f64,
    /// Number of good results that are assumed at the start.
    pub initial: u32,
    /// Number of results that are considered, default 8, at most 64.
    pub window: u32,
    /// Number of good results in the window that make the backend healthy, default 3.
    pub threshold: u32,
    /// True if the origin should close the connection; if it does not, the data received before the
    /// timeout is the response. Default true.
    pub expect_close: bool,
}

/// One resolved ACL entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AclEntry {
    /// Network address; bits beyond the mask are zero.
    pub address: IpAddr,
    /// Mask length in bits.
    pub bits: u8,
    /// `!`: a match counts as no match.
    pub negated: bool,
    /// The entry as the log shows it.
    pub text: String,
}

/// An ACL: entries sorted so that a binary search finds the most specific match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AclDefinition {
    /// VCL name.
    pub name: String,
    /// `+log`: write VCL_acl records.
    pub log: bool,
    /// The entries, in the order the evaluator's search needs (see `acl.rs`).
    pub entries: Vec<AclEntry>,
}

/// A subroutine: a range of the code that ends in a return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubDefinition {
    /// VCL name.
    pub name: String,
    /// First instruction.
    pub entry: u32,
    /// One past the last instruction.
    pub end: u32,
    /// Methods that may run it ([`surface::vcl::at`]): for a method only itself; for other
    /// subroutines all in which everything they do, including in subroutines they call, is
    /// available.
    pub at: u16,
}

/// A position in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Index into [`Program::sources`].
    pub source: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, tabs counted to multiples of eight.
    pub position: u32,
}

/// An object made by `new` in vcl_init.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceDefinition {
    /// VCL name.
    pub name: String,
    /// VMOD name, e.g. `directors`.
    pub vmod: String,
    /// Class, e.g. `round_robin`.
    pub class: String,
    /// If the object is a director, its index among the directors: they follow the static backends
    /// in order of `new`.
    pub director: Option<u32>,
}

/// Settings of a `director` block of the old dialects, besides its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectorBlock {
    /// The director: index into [`Program::instances`].
    pub instance: u32,
    /// `.retries`: number of members that are tried until one yields a connection; `None` = the
    /// number of members.
    pub retries: Option<u32>,
    /// Settings of a dns director.
    pub names: Option<NamesBlock>,
}

/// A `director … dns` block of the old dialects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamesBlock {
    /// `.suffix`: appended to the host that is looked up.
    pub suffix: String,
    /// `.ttl`: validity of an answer in seconds.
    pub ttl: f64,
    /// `.list`: networks whose addresses may be backends.
    pub list: Vec<AclEntry>,
    /// Common settings of those backends; has neither name nor address.
    pub common: BackendDefinition,
    /// Members with a definition of their own: indices into [`Program::backends`].
    pub members: Vec<u32>,
}

/// A compiled VCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Language version times ten: 40 or 41; 10, 20, 21 or 30 for the old dialects.
    pub syntax: u8,
    /// Sources, the main one first, the built-in VCL last.
    pub sources: Vec<Source>,
    /// Backends in order of definition.
    pub backends: Vec<BackendDefinition>,
    /// Index of the default backend; `None` when no backend is named in the VCL.
    pub default_backend: Option<u32>,
    /// Probes, named and inline.
    pub probes: Vec<ProbeDefinition>,
    /// ACLs.
    pub acls: Vec<AclDefinition>,
    /// Objects of vcl_init, in order of `new`.
    pub instances: Vec<InstanceDefinition>,
    /// Settings of the `director` blocks of the old dialects.
    pub blocks: Vec<DirectorBlock>,
    /// Labels named in `return(vcl(label))`, by index of the action's argument.
    pub labels: Vec<String>,
    /// Names of the imported VMODs.
    pub vmods: Vec<String>,
    /// Subroutines; methods first, in the order of [`surface::vcl::Method`], then those of the VCL.
    pub subs: Vec<SubDefinition>,
    /// The instructions of all subroutines.
    pub code: Vec<Op>,
    /// All constant strings and blobs, one after the other.
    pub constants: Vec<u8>,
    /// Header names, without colon, each only once (compared ignoring case).
    pub headers: Vec<String>,
    /// Patterns of regular expressions, each only once.
    pub regexes: Vec<String>,
    /// The position in the sources of each [`Op::Trace`].
    pub points: Vec<Point>,
    /// The positions of statements that end a method, set a noted variable or change a marking
    /// header: index of the instruction and position, in order.
    pub places: Vec<(u32, Point)>,
    /// The VCL itself adds to `vcl_backend_refresh` or to one of its built-in pieces, so it must be
    /// run for a 304. Otherwise nothing is run: the built-in decision is that of Varnish 7.1.
    pub refreshes: bool,
    /// It was compiled under `http_policy=rfc`, whose built-in VCL it has. Never true for the old
    /// dialects.
    pub follows_rfc: bool,
}

impl Program {
    /// The generation of the language in which it was written, and whose semantics apply.
    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation::of_syntax(self.syntax)
    }

    /// The `director` block of an object; `None` when no block created it.
    #[must_use]
    pub fn block(&self, instance: u32) -> Option<&DirectorBlock> {
        self.blocks.iter().find(|block| block.instance == instance)
    }

    /// The position of the statement that has this instruction; `None` if it neither ends a method
    /// nor sets a noted variable nor changes a marking header.
    #[must_use]
    pub fn place_of(&self, instruction: u32) -> Option<(&Source, Point)> {
        let at = self.places.binary_search_by_key(&instruction, |(op, _)| *op).ok()?;
        let (_, point) = self.places.get(at)?;
        Some((self.sources.get(point.source as usize)?, *point))
    }
}
