//! Words of VCL: methods, actions, types and variables, with the places where each may be used.
//!
//! The compiler checks against these rows, the reference page is generated from them, and the
//! evaluator refers to variables by [`Var`]. The `vcl` crate has tables of its own that map the old
//! dialects to the same rows. Source: VCL of Varnish 7.1.1 as observed. Next files:
//! `vcl/variables.rs`, `vmod.rs`.

pub mod explanation;
pub mod legacy;
mod object;
mod variables;

pub use object::VclObject;
pub use variables::{LEGACY_VARIABLES, VARIABLES, Var, VariableRow};

use serde::{Deserialize, Serialize};

/// A generation of the language. Each has its own syntax, its own tables of permitted places, its
/// own built-in VCL and its own semantics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Generation {
    /// Varnish 0.9 to 1.1.
    V1,
    /// Varnish 2.0.
    V20,
    /// Varnish 2.1.
    V21,
    /// Varnish 3.0.
    V3,
    /// Varnish 4.0 and later: the text declares `vcl 4.0;` or `vcl 4.1;`.
    V4,
}

impl Generation {
    /// Generation for a language version times ten, as found in programs: 10, 20, 21, 30, 40, 41.
    #[must_use]
    pub fn of_syntax(syntax: u8) -> Generation {
        match syntax {
            0..20 => Generation::V1,
            20 => Generation::V20,
            21..30 => Generation::V21,
            30..40 => Generation::V3,
            40.. => Generation::V4,
        }
    }

    /// Every generation, the oldest first.
    pub const ALL: &'static [Generation] =
        &[Generation::V1, Generation::V20, Generation::V21, Generation::V3, Generation::V4];

    /// Name on the command line and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Generation::V1 => "1.1",
            Generation::V20 => "2.0",
            Generation::V21 => "2.1",
            Generation::V3 => "3.0",
            Generation::V4 => "4",
        }
    }

    /// Generation with this name; any of its version numbers is accepted, e.g. `3`, `3.0`, `3.0.7`,
    /// `1.0`, `1.x`, `4.1`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Generation> {
        let mut numbers = name.split('.');
        let major = numbers.next()?;
        let minor = numbers.next().unwrap_or("");
        if numbers.next().is_some_and(|patch| !patch.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        match (major, minor) {
            ("0" | "1", "" | "0" | "1" | "9" | "x") => Some(Generation::V1),
            ("2", "0") => Some(Generation::V20),
            ("2", "" | "1" | "x") => Some(Generation::V21),
            ("3", "" | "0" | "x") => Some(Generation::V3),
            ("4", "" | "0" | "1" | "x") => Some(Generation::V4),
            _ => None,
        }
    }

    /// Language version times ten in programs of an old dialect; `None` for VCL 4, whose texts
    /// declare it.
    #[must_use]
    pub fn legacy_syntax(self) -> Option<u8> {
        match self {
            Generation::V1 => Some(10),
            Generation::V20 => Some(20),
            Generation::V21 => Some(21),
            Generation::V3 => Some(30),
            Generation::V4 => None,
        }
    }

    /// True before 4.0: `req` is one object through the whole cycle, and `vcl_fetch` acts for the
    /// client.
    #[must_use]
    pub fn is_legacy(self) -> bool {
        self < Generation::V4
    }
}

/// A built-in subroutine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Method {
    Recv,
    Pipe,
    Pass,
    Hash,
    Purge,
    Miss,
    Hit,
    Deliver,
    Synth,
    BackendFetch,
    BackendRefresh,
    BackendResponse,
    BackendError,
    Init,
    Fini,
}

/// Bits for sets of methods.
pub mod at {
    #![allow(missing_docs)]
    pub const RECV: u16 = 1 << 0;
    pub const PIPE: u16 = 1 << 1;
    pub const PASS: u16 = 1 << 2;
    pub const HASH: u16 = 1 << 3;
    pub const PURGE: u16 = 1 << 4;
    pub const MISS: u16 = 1 << 5;
    pub const HIT: u16 = 1 << 6;
    pub const DELIVER: u16 = 1 << 7;
    pub const SYNTH: u16 = 1 << 8;
    pub const BACKEND_FETCH: u16 = 1 << 9;
    pub const BACKEND_REFRESH: u16 = 1 << 10;
    pub const BACKEND_RESPONSE: u16 = 1 << 11;
    pub const BACKEND_ERROR: u16 = 1 << 12;
    pub const INIT: u16 = 1 << 13;
    pub const FINI: u16 = 1 << 14;
    pub const CLIENT: u16 = RECV | PIPE | PASS | HASH | PURGE | MISS | HIT | DELIVER | SYNTH;
    pub const BACKEND: u16 = BACKEND_FETCH | BACKEND_REFRESH | BACKEND_RESPONSE | BACKEND_ERROR;
    pub const ALL: u16 = CLIENT | BACKEND | INIT | FINI;
}

/// One built-in subroutine and the actions that may end it.
#[derive(Debug)]
pub struct MethodRow {
    /// The method.
    pub method: Method,
    /// Name in VCL, e.g. `vcl_backend_fetch`.
    pub name: &'static str,
    /// Name in `VCL_call` records, e.g. `BACKEND_FETCH`.
    pub log_name: &'static str,
    /// Bit in the sets of [`at`].
    pub bit: u16,
    /// The actions that `return` may have.
    pub actions: &'static [Action],
    /// Additional actions in the old dialects, where `vcl_fetch` acts for the client.
    pub legacy_actions: &'static [Action],
    /// Additional actions of the first releases of VCL 4, which Varnish 7.1 refuses. The compiler
    /// accepts them with a warning.
    pub retired_actions: &'static [Action],
}

impl MethodRow {
    /// True if the method may end with this action in a program of that generation. The compiler
    /// refuses actions for which a dialect has no word.
    #[must_use]
    pub fn allows(&self, action: Action, generation: Generation) -> bool {
        let others = if generation.is_legacy() { self.legacy_actions } else { self.retired_actions };
        self.actions.contains(&action) || others.contains(&action)
    }
}

/// The action of a `return` statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Action {
    Fail,
    Synth,
    Restart,
    Pass,
    Pipe,
    Hash,
    Purge,
    Vcl,
    Fetch,
    Lookup,
    Deliver,
    Abandon,
    Error,
    Retry,
    Ok,
    Merge,
    ObjStale,
    Beresp,
    Miss,
}

impl Action {
    /// The word in VCL and in `VCL_return` records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::Fail => "fail",
            Action::Synth => "synth",
            Action::Restart => "restart",
            Action::Pass => "pass",
            Action::Pipe => "pipe",
            Action::Hash => "hash",
            Action::Purge => "purge",
            Action::Vcl => "vcl",
            Action::Fetch => "fetch",
            Action::Lookup => "lookup",
            Action::Deliver => "deliver",
            Action::Abandon => "abandon",
            Action::Error => "error",
            Action::Retry => "retry",
            Action::Ok => "ok",
            Action::Merge => "merge",
            Action::ObjStale => "obj_stale",
            Action::Beresp => "beresp",
            Action::Miss => "miss",
        }
    }

    /// True if it can have arguments in parentheses: `synth(404)`, `pass(10s)`.
    #[must_use]
    pub fn takes_arguments(self) -> bool {
        matches!(self, Action::Fail | Action::Synth | Action::Pass | Action::Vcl | Action::Error)
    }

    /// Every action.
    pub const ALL: &'static [Action] = &[
        Action::Fail,
        Action::Synth,
        Action::Restart,
        Action::Pass,
        Action::Pipe,
        Action::Hash,
        Action::Purge,
        Action::Vcl,
        Action::Fetch,
        Action::Lookup,
        Action::Deliver,
        Action::Abandon,
        Action::Error,
        Action::Retry,
        Action::Ok,
        Action::Merge,
        Action::ObjStale,
        Action::Beresp,
        Action::Miss,
    ];
}

/// Every method, in the order of [`Method`].
pub static METHODS: &[MethodRow] = &[
    MethodRow {
        method: Method::Recv,
        name: "vcl_recv",
        log_name: "RECV",
        bit: at::RECV,
        actions: &[
            Action::Fail,
            Action::Synth,
            Action::Restart,
            Action::Pass,
            Action::Pipe,
            Action::Hash,
            Action::Purge,
            Action::Vcl,
        ],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Pipe,
        name: "vcl_pipe",
        log_name: "PIPE",
        bit: at::PIPE,
        actions: &[Action::Fail, Action::Synth, Action::Pipe],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Pass,
        name: "vcl_pass",
        log_name: "PASS",
        bit: at::PASS,
        actions: &[Action::Fail, Action::Synth, Action::Restart, Action::Fetch],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Hash,
        name: "vcl_hash",
        log_name: "HASH",
        bit: at::HASH,
        actions: &[Action::Fail, Action::Lookup],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Purge,
        name: "vcl_purge",
        log_name: "PURGE",
        bit: at::PURGE,
        actions: &[Action::Fail, Action::Synth, Action::Restart],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Miss,
        name: "vcl_miss",
        log_name: "MISS",
        bit: at::MISS,
        actions: &[Action::Fail, Action::Synth, Action::Restart, Action::Pass, Action::Fetch],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Hit,
        name: "vcl_hit",
        log_name: "HIT",
        bit: at::HIT,
        actions: &[Action::Fail, Action::Synth, Action::Restart, Action::Pass, Action::Deliver],
        legacy_actions: &[],
        retired_actions: &[Action::Miss, Action::Fetch],
    },
    MethodRow {
        method: Method::Deliver,
        name: "vcl_deliver",
        log_name: "DELIVER",
        bit: at::DELIVER,
        actions: &[Action::Fail, Action::Synth, Action::Restart, Action::Deliver],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Synth,
        name: "vcl_synth",
        log_name: "SYNTH",
        bit: at::SYNTH,
        actions: &[Action::Fail, Action::Restart, Action::Deliver],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::BackendFetch,
        name: "vcl_backend_fetch",
        log_name: "BACKEND_FETCH",
        bit: at::BACKEND_FETCH,
        actions: &[Action::Fail, Action::Fetch, Action::Abandon, Action::Error],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::BackendRefresh,
        name: "vcl_backend_refresh",
        log_name: "BACKEND_REFRESH",
        bit: at::BACKEND_REFRESH,
        actions: &[
            Action::Fail,
            Action::Merge,
            Action::ObjStale,
            Action::Beresp,
            Action::Retry,
            Action::Abandon,
            Action::Error,
        ],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::BackendResponse,
        name: "vcl_backend_response",
        log_name: "BACKEND_RESPONSE",
        bit: at::BACKEND_RESPONSE,
        actions: &[Action::Fail, Action::Deliver, Action::Retry, Action::Abandon, Action::Pass, Action::Error],
        legacy_actions: &[Action::Restart, Action::Synth],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::BackendError,
        name: "vcl_backend_error",
        log_name: "BACKEND_ERROR",
        bit: at::BACKEND_ERROR,
        actions: &[Action::Fail, Action::Deliver, Action::Retry, Action::Abandon],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Init,
        name: "vcl_init",
        log_name: "INIT",
        bit: at::INIT,
        actions: &[Action::Ok, Action::Fail],
        legacy_actions: &[],
        retired_actions: &[],
    },
    MethodRow {
        method: Method::Fini,
        name: "vcl_fini",
        log_name: "FINI",
        bit: at::FINI,
        actions: &[Action::Ok],
        legacy_actions: &[],
        retired_actions: &[],
    },
];

impl Method {
    /// The method's row.
    #[must_use]
    pub fn row(self) -> &'static MethodRow {
        &METHODS[self as usize]
    }
}

/// A type of the language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Type {
    Acl,
    Backend,
    Blob,
    Body,
    Bool,
    Bytes,
    Duration,
    Enum,
    Header,
    Http,
    Instance,
    Int,
    Ip,
    Probe,
    Real,
    Regex,
    Stevedore,
    String,
    Strands,
    Sub,
    Time,
    Void,
}

impl Type {
    /// The name in VCL and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Type::Acl => "ACL",
            Type::Backend => "BACKEND",
            Type::Blob => "BLOB",
            Type::Body => "BODY",
            Type::Bool => "BOOL",
            Type::Bytes => "BYTES",
            Type::Duration => "DURATION",
            Type::Enum => "ENUM",
            Type::Header => "HEADER",
            Type::Http => "HTTP",
            Type::Instance => "INSTANCE",
            Type::Int => "INT",
            Type::Ip => "IP",
            Type::Probe => "PROBE",
            Type::Real => "REAL",
            Type::Regex => "REGEX",
            Type::Stevedore => "STEVEDORE",
            Type::String => "STRING",
            Type::Strands => "STRANDS",
            Type::Sub => "SUB",
            Type::Time => "TIME",
            Type::Void => "VOID",
        }
    }
}

/// A set of headers that VCL can access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum HttpObject {
    Req,
    ReqTop,
    Bereq,
    Beresp,
    Obj,
    Resp,
}
