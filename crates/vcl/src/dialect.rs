//! The differences between generations of VCL, as tables for the parser and the checker.
//!
//! No other module tests for a version: a new dialect is a new table here. The names of methods and
//! variables are in [`surface::vcl`]. Next files: `dialect/legacy.rs`, the tables of the old
//! dialects, and `dialect/detect.rs`, which detects the dialect of a text without a version line.

mod detect;
mod legacy;

pub(crate) use detect::{Usage, detect};

use std::collections::HashMap;
use std::sync::OnceLock;
use surface::vcl::legacy::{Language, LegacyMethodRow, LegacyVariableRow};
use surface::vcl::{Action, Generation, METHODS, Method};

/// The meaning of a word at the start of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StatementWord {
    Set,
    Unset,
    Call,
    Return,
    If,
    New,
    Ban,
    HashData,
    Synthetic,
    /// An action used as a statement: `pipe;`.
    Action,
    /// The same, optionally followed by `rollback`.
    Restart,
    /// Formerly such an action, now only allowed in a return.
    MustReturn,
    /// `error 404 "reason";`
    Error,
    /// `synthetic` followed by its text, without parentheses.
    SyntheticText,
    /// `purge;`, of the current object.
    Purge,
    /// A ban: `purge("…");`, `purge(req.url == "…" && …);`
    PurgeBan,
    /// A ban on URLs.
    BanUrl,
    /// A ban on the hashed text.
    PurgeHash,
    /// `esi;`
    Esi,
    /// `rollback;`
    Rollback,
    /// `log "text" …;`
    Log,
    /// `panic "text" …;`
    Panic,
}

/// A generation of the language.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Words that begin statements.
    pub(crate) statements: &'static [(&'static str, StatementWord)],
    /// Words that continue an `if` with another condition, if no `(` could make them a call.
    pub(crate) else_if: &'static [&'static str],
    /// Words that cannot be used as names, besides those of `statements`.
    pub(crate) reserved: &'static [&'static str],
    /// Words of other generations, with their replacements.
    pub(crate) moved: &'static [(&'static str, &'static str)],
    /// Variables of other generations, with their replacements.
    pub(crate) renamed: &'static [(&'static str, &'static str)],
    /// Words that begin declarations.
    pub(crate) declarations: &'static [&'static str],
    /// Attributes of backends that are accepted but have no effect.
    pub(crate) ignored_backend_fields: &'static [&'static str],
    /// The kinds of `director` blocks.
    pub(crate) directors: &'static [(&'static str, DirectorPolicy)],
    /// Syntactic forms.
    pub(crate) forms: Forms,
    /// Defaults of declarations.
    pub(crate) defaults: DialectDefaults,
    /// Methods and variables; `None` for those of [`METHODS`] and [`surface::vcl::VARIABLES`].
    pub(crate) language: Option<&'static Language>,
    /// The built-in VCL.
    pub(crate) builtin: &'static str,
}

/// Permitted syntactic forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forms {
    /// Attributes of backends are written `set backend.host = "…";`.
    pub(crate) set_backend: bool,
    /// Consecutive strings are concatenated.
    pub(crate) juxtaposition: bool,
    /// `%41` in a single-line string means `A`.
    pub(crate) percent_escapes: bool,
    /// `$1` and `&` in the replacement of `regsub`.
    pub(crate) dollar_groups: bool,
    /// Regular expressions ignore case.
    pub(crate) patterns_ignore_case: bool,
    /// A plain number where a duration is expected means seconds.
    pub(crate) bare_seconds: bool,
    /// `director name policy { … }`, and its name instead of a backend.
    pub(crate) director_blocks: bool,
    /// Words of statements can be used as names: `acl purge`.
    pub(crate) words_are_names: bool,
    /// An acl, a backend and a subroutine can have the same name.
    pub(crate) names_by_kind: bool,
    /// `storage.name` is true if a storage of that name exists.
    pub(crate) storages_by_name: bool,
    /// `==` between an IP and a string matches like an acl with that one entry.
    pub(crate) address_equals_acl: bool,
}

/// Defaults of declarations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DialectDefaults {
    /// Probes start with a full window of good results, rather than with one too few.
    pub(crate) probes_begin_good: bool,
    /// Acls refuse entries whose address has bits beyond the mask.
    pub(crate) acl_pedantic: bool,
    /// Acls log their matches.
    pub(crate) acl_log: bool,
    /// If a host has several addresses, the first of each family is used.
    pub(crate) first_address: bool,
}

/// Policy by which a `director` block chooses a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DirectorPolicy {
    RoundRobin,
    Random,
    Fallback,
    Hash,
    Client,
    /// By resolving the host name.
    Dns,
}

/// The rows of an old dialect's variable, by its lower-case name.
pub(crate) fn legacy_rows(generation: Generation, name: &str) -> &'static [&'static LegacyVariableRow] {
    type Rows = HashMap<&'static str, Vec<&'static LegacyVariableRow>>;
    static ROWS: OnceLock<Vec<Rows>> = OnceLock::new();
    let all = ROWS.get_or_init(|| {
        let rows = |generation: &Generation| {
            let mut rows = Rows::new();
            for row in Language::of(*generation).map_or(&[] as &[_], |language| language.variables) {
                rows.entry(row.name).or_default().push(row);
            }
            rows
        };
        Generation::ALL.iter().map(rows).collect()
    });
    all[generation as usize].get(name).map_or(&[], Vec::as_slice)
}

impl Dialect {
    /// The dialect of a generation.
    pub(crate) fn of(generation: Generation) -> &'static Dialect {
        match generation {
            Generation::V1 => &legacy::VCL_1,
            Generation::V20 => &legacy::VCL_20,
            Generation::V21 => &legacy::VCL_21,
            Generation::V3 => &legacy::VCL_3,
            Generation::V4 => &VCL_4,
        }
    }

    /// The row of a method of an old dialect.
    pub(crate) fn legacy_method(&self, method: Method) -> Option<&'static LegacyMethodRow> {
        self.language?.method(method)
    }

    /// True if texts can use this method.
    pub(crate) fn has_method(&self, method: Method) -> bool {
        self.language.is_none_or(|language| language.method(method).is_some())
    }

    /// The name of a method.
    pub(crate) fn method_name(&self, method: Method) -> &'static str {
        self.legacy_method(method).map_or(method.row().name, |row| row.name)
    }

    /// The words that may be returned from a method, as written, in alphabetical order.
    pub(crate) fn endings(&self, method: Method) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = match self.legacy_method(method) {
            Some(row) => row.returns.iter().map(|ending| ending.word).collect(),
            None => method.row().actions.iter().map(|action| action.name()).collect(),
        };
        words.sort_unstable();
        words
    }

    /// The action that a word means in a method; `None` if it has no meaning there.
    pub(crate) fn legacy_action(&self, method: Method, word: &str) -> Option<Action> {
        let row = self.legacy_method(method)?;
        row.returns.iter().find(|ending| ending.word == word).map(|ending| ending.action)
    }

    /// The names of a set of methods.
    pub(crate) fn method_names(&self, at: u16) -> Vec<&'static str> {
        let there = METHODS.iter().filter(|row| at & row.bit != 0 && self.has_method(row.method));
        there.map(|row| self.method_name(row.method)).collect()
    }

    /// True if a word begins a statement.
    pub(crate) fn is_statement(&self, word: &str) -> bool {
        self.statements.iter().any(|(known, _)| known.eq_ignore_ascii_case(word))
    }
}

/// VCL 4.0 and 4.1.
pub(crate) static VCL_4: Dialect = Dialect {
    statements: &[
        ("set", StatementWord::Set),
        ("unset", StatementWord::Unset),
        ("call", StatementWord::Call),
        ("return", StatementWord::Return),
        ("if", StatementWord::If),
        ("new", StatementWord::New),
        ("ban", StatementWord::Ban),
        ("hash_data", StatementWord::HashData),
        ("synthetic", StatementWord::Synthetic),
    ],
    else_if: &["elseif", "elsif", "elif"],
    reserved: &["acl", "backend", "import", "include", "probe", "sub", "vcl"],
    moved: &[
        ("error", "VCL 4 says: return (synth(404, \"reason\"));"),
        ("remove", "VCL 4 says: unset"),
        ("purge", "VCL 4 says: return (purge); in vcl_recv"),
        ("ban_url", "VCL 4 says: ban(\"req.url ~ ...\");"),
        ("purge_url", "VCL 4 says: ban(\"req.url ~ ...\");"),
        ("esi", "VCL 4 says: set beresp.do_esi = true;"),
        ("log", "VCL 4 says: import std; std.log(\"...\");"),
        ("rollback", "VCL 4 says: import std; std.rollback(req);"),
        ("lookup", "VCL 4 says: return (hash); in vcl_recv"),
        ("pass", "VCL 4 says: return (pass);"),
        ("pipe", "VCL 4 says: return (pipe);"),
        ("deliver", "VCL 4 says: return (deliver);"),
        ("fetch", "VCL 4 says: return (fetch);"),
        ("restart", "VCL 4 says: return (restart);"),
        ("goto", "VCL has no jumps: use call and return"),
        ("director", "VCL 4 says: import directors; and in vcl_init: new name = directors.round_robin();"),
        ("vcl_fetch", "VCL 4 says: sub vcl_backend_response"),
        ("vcl_error", "VCL 4 says: sub vcl_synth, and vcl_backend_error for what the origin did"),
        ("else", "it follows the } of an if"),
        ("elseif", "it follows the } of an if"),
        ("elsif", "it follows the } of an if"),
        ("elif", "it follows the } of an if"),
    ],
    renamed: &[
        ("req.request", "req.method"),
        ("bereq.request", "bereq.method"),
        ("req.backend", "req.backend_hint"),
        ("req.backend.healthy", "std.healthy(req.backend_hint)"),
        ("beresp.response", "beresp.reason"),
        ("resp.response", "resp.reason"),
        ("obj.response", "obj.reason"),
        ("beresp.cacheable", "beresp.uncacheable (the opposite)"),
        ("client.port", "std.port(client.ip)"),
        ("server.port", "std.port(server.ip)"),
        ("beresp.storage_hint", "beresp.storage"),
        ("req.esi", "resp.do_esi in vcl_deliver"),
    ],
    declarations: &["acl", "sub", "backend", "probe", "import", "include", "vcl"],
    ignored_backend_fields: &[],
    directors: &[],
    forms: Forms {
        set_backend: false,
        juxtaposition: false,
        percent_escapes: false,
        dollar_groups: false,
        patterns_ignore_case: false,
        bare_seconds: false,
        director_blocks: false,
        words_are_names: false,
        names_by_kind: false,
        storages_by_name: false,
        address_equals_acl: false,
    },
    defaults: DialectDefaults { probes_begin_good: false, acl_pedantic: true, acl_log: false, first_address: false },
    language: None,
    builtin: crate::BUILTIN,
};

/// Every dialect, the newest first.
pub(crate) static ALL: &[&Dialect] = &[&VCL_4, &legacy::VCL_3, &legacy::VCL_21, &legacy::VCL_20, &legacy::VCL_1];
