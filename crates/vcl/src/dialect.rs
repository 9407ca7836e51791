//! What differs between generations of VCL, as tables that the parser and the checker read.
//!
//! A dialect never shows as an `if` elsewhere: a new one is a new row here.

/// What a word at the start of a statement means.
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
}

/// A generation of the language.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Words that begin statements.
    pub(crate) statements: &'static [(&'static str, StatementWord)],
    /// Words that go on an `if` with another condition, when no `(` could make them a call.
    pub(crate) else_if: &'static [&'static str],
    /// Words that cannot name anything, besides those of `statements`.
    pub(crate) reserved: &'static [&'static str],
    /// Words of other generations, with what to write instead.
    pub(crate) moved: &'static [(&'static str, &'static str)],
    /// Variables of other generations, with what to write instead.
    pub(crate) renamed: &'static [(&'static str, &'static str)],
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
    reserved: &[
        "acl", "backend", "import", "include", "none", "probe", "sub", "vcl", "else", "elseif", "elsif", "elif",
    ],
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
};
