//! Descriptions of methods, actions and statements, in a line or two, for `copal vcl explain`.

use super::{Action, Method};

impl Method {
    /// Time at which the method runs, and its decision.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Method::Recv => {
                "A request has been read. Decides what becomes of it: cached, passed, piped, answered at once."
            }
            Method::Pipe => {
                "The connection is about to become a pipe between client and origin; bereq is what the origin gets first."
            }
            Method::Pass => "The request is sent to the origin and its response to the client, bypassing the cache.",
            Method::Hash => "Puts together the key under which the cache is searched, with hash_data().",
            Method::Purge => "The objects under the key have been purged.",
            Method::Miss => "The cache has nothing that fits; the origin is about to be asked.",
            Method::Hit => "The cache has an answer: obj.",
            Method::Deliver => "The answer is about to be sent to the client: resp.",
            Method::Synth => "An answer is being made here, without an origin: resp and its body.",
            Method::BackendFetch => "The request to the origin is about to be sent: bereq.",
            Method::BackendRefresh => {
                "The origin says that the stale object is still good (304): obj_stale. Decides which headers it has from now on."
            }
            Method::BackendResponse => "The origin's headers have come: beresp. Decides how long the answer is kept.",
            Method::BackendError => "The origin could not be reached or did not answer; an answer is being made here.",
            Method::Init => "The VCL has been loaded, and serves nothing yet. Objects are made here, with new.",
            Method::Fini => "The VCL is about to be discarded; nothing uses it any more.",
        }
    }
}

impl Action {
    /// Effect when a subroutine returns the action.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Action::Fail => "Gives up: a request ends in 503, a fetch fails, the load of a VCL is refused.",
            Action::Synth => "Continues in vcl_synth with a status and a reason: return (synth(404, \"Not here\"));",
            Action::Restart => "Begins anew in vcl_recv with the request as it is now, at most max_restarts times.",
            Action::Pass => {
                "Past the cache, to the origin. In vcl_backend_response the key is remembered as one to pass: return (pass(2m));"
            }
            Action::Pipe => "Joins the connections of client and origin and looks at nothing more.",
            Action::Hash => "Looks in the cache: on to vcl_hash, then vcl_hit or vcl_miss.",
            Action::Purge => "Drops everything that is cached under the key, then continues in vcl_purge.",
            Action::Vcl => "Continues in vcl_recv of another VCL, by its label: return (vcl(label));",
            Action::Fetch => "Asks the origin.",
            Action::Lookup => "Looks in the cache under the key.",
            Action::Deliver => {
                "Continues with the response: to the client, or, in vcl_backend_response, into the cache."
            }
            Action::Abandon => "Gives the fetch up; its client gets 503, or the stale object if there was one.",
            Action::Error => "Continues in vcl_backend_error with a status (503 unless said) and a reason.",
            Action::Retry => "Asks the origin again, from vcl_backend_fetch on, at most max_retries times.",
            Action::Ok => "All is well.",
            Action::Merge => "Keeps the stale object, with the headers of the 304 put over its own.",
            Action::ObjStale => "Keeps the stale object with its headers as they were.",
            Action::Beresp => "Keeps the body of the stale object under the headers of beresp as they are now.",
            Action::Miss => {
                "Replaces the object; in vcl_hit of the first releases of VCL 4, as is fetch. Now written: set req.hash_always_miss = true; return (restart);"
            }
        }
    }
}

/// A word that begins a statement or declaration, or a function of the language.
#[derive(Clone, Copy, Debug)]
pub struct KeywordRow {
    /// The word.
    pub name: &'static str,
    /// Its syntax.
    pub form: &'static str,
    /// Description.
    pub text: &'static str,
}

const fn keyword(name: &'static str, form: &'static str, text: &'static str) -> KeywordRow {
    KeywordRow { name, form, text }
}

/// Words of VCL 4.
pub static KEYWORDS: &[KeywordRow] = &[
    keyword(
        "acl",
        "acl name [+log] [-pedantic] [+fold] { [!] \"address or host\"[/bits]; ... }",
        "A list of addresses, to be matched with an IP: client.ip ~ name. The most specific entry decides.",
    ),
    keyword(
        "backend",
        "backend name { .host = \"...\"; .port = \"...\"; ... }",
        "An origin. The first, or the one named default, gets what the VCL sends nowhere else.",
    ),
    keyword(
        "ban",
        "ban(\"req.url ~ ^/news && obj.http.x == y\");",
        "Every object that matches, and is in the cache now, is not served again. std.ban() says whether it worked.",
    ),
    keyword("call", "call name;", "Runs a subroutine and comes back, unless it returns an action."),
    keyword("hash_data", "hash_data(text);", "Adds to the key; only in vcl_hash."),
    keyword("if", "if (condition) { ... } elseif (condition) { ... } else { ... }", "Also elsif, elif and else if."),
    keyword("import", "import name [as other];", "Makes the functions of a VMOD available below this place."),
    keyword(
        "include",
        "include [+glob] \"path\";",
        "Puts the text of another file in this place, between declarations or statements.",
    ),
    keyword("new", "new name = vmod.class(...);", "Makes an object that lives as long as the VCL; only in vcl_init."),
    keyword(
        "probe",
        "probe name { .url = \"/\"; .interval = 5s; ... }",
        "Health check of a backend. The one named default is used by all backends without a probe of their own.",
    ),
    keyword(
        "regsub",
        "regsub(text, \"pattern\", \"replacement\")",
        "The text with the first match replaced; \\0 is what matched, \\1 to \\9 its groups.",
    ),
    keyword(
        "regsuball",
        "regsuball(text, \"pattern\", \"replacement\")",
        "The text with every match replaced; \\0 is what matched, \\1 to \\9 its groups.",
    ),
    keyword(
        "return",
        "return (action);",
        "Ends the method and says how to go on. Without an action it ends a subroutine of your own.",
    ),
    keyword("set", "set variable = value;", "Also += for text, and += -= *= /= for numbers, durations and times."),
    keyword(
        "sub",
        "sub name { ... }",
        "A subroutine. Those of the language may be written several times; the pieces run one after the other.",
    ),
    keyword(
        "synthetic",
        "synthetic(text);",
        "The body of an answer that is made here; only in vcl_synth and vcl_backend_error. resp.body and beresp.body do the same.",
    ),
    keyword("unset", "unset variable;", "Removes a header, or a body."),
    keyword("vcl", "vcl 4.1;", "The version of the language, first in the file."),
];
