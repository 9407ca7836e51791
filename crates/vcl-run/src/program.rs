//! The program: what compiling one VCL yields. Flat, immutable, serialisable; the manager keeps it and sends it to the
//! worker, which verifies it before running it.

mod op;

pub use op::{Arithmetic, Comparison, Op};

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use surface::vcl::Generation;

/// A source text that took part in the compilation, for `vcl.show -v` and for positions in messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// File name, `<vcl.inline>`, `<-b argument>` or `<builtin>`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Where a backend is.
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
    /// `.path`: a Unix-domain socket; a name that begins with `@` is an abstract one.
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
    /// `.host_header`: Host of probes and of requests without one.
    pub host_header: String,
    /// Seconds; `None` = parameter `connect_timeout`.
    pub connect_timeout: Option<f64>,
    /// Seconds; `None` = parameter.
    pub first_byte_timeout: Option<f64>,
    /// Seconds; `None` = parameter.
    pub between_bytes_timeout: Option<f64>,
    /// Most connections in use at once; 0 = no limit.
    pub max_connections: u32,
    /// How many fetches may wait for a connection when that limit is reached; `None` = parameter `backend_wait_limit`.
    pub wait_limit: Option<u32>,
    /// How long they may, seconds; `None` = parameter `backend_wait_timeout`.
    pub wait_timeout: Option<f64>,
    /// The proxy through which it is connected to.
    pub via: Option<ViaDefinition>,
    /// PROXY protocol version to send (1 or 2); 0 = none.
    pub proxy_header: u8,
    /// Bytes sent at the start of every connection.
    pub preamble: Vec<u8>,
    /// Index into [`Program::probes`].
    pub probe: Option<u32>,
}

/// `.via`: connections go to another backend's address, and begin with a PROXY header of version 2 that says where they are
/// to lead.
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
    /// Good results pretended at the start.
    pub initial: u32,
    /// Results considered, default 8, at most 64.
    pub window: u32,
    /// Good results in the window needed to be healthy, default 3.
    pub threshold: u32,
    /// The origin is expected to close the connection; if not, what came until the timeout is the answer. Default true.
    pub expect_close: bool,
}

/// One resolved ACL entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AclEntry {
    /// Network address, bits beyond the mask already zero.
    pub address: IpAddr,
    /// Mask length in bits.
    pub bits: u8,
    /// `!`: a match means no match.
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
    /// Methods that may run it ([`surface::vcl::at`]): of a method itself alone; of others all where what it does, and what
    /// those it calls do, is available.
    pub at: u16,
}

/// A place in a source.
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
    /// Index into the directors when the object is a director (after the static backends), counted in order of `new`.
    pub director: Option<u32>,
}

/// What a `director` block of the old dialects says besides which members it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectorBlock {
    /// The director: index into [`Program::instances`].
    pub instance: u32,
    /// `.retries`: how often a member is chosen until one gives a connection; `None` = as often as there are members.
    pub retries: Option<u32>,
    /// What makes it a dns director.
    pub names: Option<NamesBlock>,
}

/// A `director … dns` block of the old dialects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamesBlock {
    /// `.suffix`: follows the host that is asked for.
    pub suffix: String,
    /// `.ttl`: seconds for which an answer holds.
    pub ttl: f64,
    /// `.list`: networks whose addresses may be backends.
    pub list: Vec<AclEntry>,
    /// What those backends have in common. Has neither name nor address.
    pub common: BackendDefinition,
    /// Members with a definition of their own: indices into [`Program::backends`].
    pub members: Vec<u32>,
}

/// A compiled VCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Language version times ten: 40 or 41; of the old dialects 10, 20, 21 or 30.
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
    /// What `director` blocks of the old dialects say.
    pub blocks: Vec<DirectorBlock>,
    /// Labels named in `return(vcl(label))`, by index of the action's argument.
    pub labels: Vec<String>,
    /// Names of VMODs imported.
    pub vmods: Vec<String>,
    /// Subroutines; methods first, in the order of [`surface::vcl::Method`], then those of the VCL.
    pub subs: Vec<SubDefinition>,
    /// The instructions of all subroutines.
    pub code: Vec<Op>,
    /// All constant strings and blobs, one after the other.
    pub constants: Vec<u8>,
    /// Header names, without colon, each once (compared without regard to case).
    pub headers: Vec<String>,
    /// Patterns of regular expressions, each once.
    pub regexes: Vec<String>,
    /// Where in the sources each [`Op::Trace`] stands.
    pub points: Vec<Point>,
    /// Where in the sources the statements stand that end a method or set what is noted: index of the instruction and place,
    /// in order.
    pub places: Vec<(u32, Point)>,
    /// The VCL has something of its own in `vcl_backend_refresh` or one of its built-in pieces, so that it is asked what
    /// becomes of a 304. Without that nothing is run: what Varnish 7.1 does is what the built-in one decides.
    pub refreshes: bool,
}

impl Program {
    /// The generation of the language it was written in, whose semantics it keeps.
    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation::of_syntax(self.syntax)
    }

    /// What the `director` block of an object says; `None` when no block made it.
    #[must_use]
    pub fn block(&self, instance: u32) -> Option<&DirectorBlock> {
        self.blocks.iter().find(|block| block.instance == instance)
    }

    /// Where the statement stands whose last instruction is this one; `None` when it neither ends a method nor sets what is
    /// noted.
    #[must_use]
    pub fn place_of(&self, instruction: u32) -> Option<(&Source, Point)> {
        let at = self.places.binary_search_by_key(&instruction, |(op, _)| *op).ok()?;
        let (_, point) = self.places.get(at)?;
        Some((self.sources.get(point.source as usize)?, *point))
    }
}
