//! Additions around a migrated text: imports, the former implicit actions of the core, and the
//! built-in VCL of the old generation.
//!
//! The first subroutines of each method are those of [`prologue`], so that the author's find the
//! same state as before; those of the old built-in VCL come last, so that VCL 4.1's are never
//! reached.

use super::failover::Again;
use super::statement::{RESTARTS_MAX, carrier};
use super::tables::Defaults;
use super::writer::Knowledge;
use std::fmt::Write as _;
use surface::vcl::Generation;

/// Further facts that the prologue needs.
pub(super) struct Surroundings<'a> {
    pub(super) generation: Generation,
    pub(super) defaults: &'a Defaults,
    /// The name of the std VMOD.
    pub(super) std: &'a str,
    /// The name of the var VMOD.
    pub(super) var: &'a str,
    /// The default if the VCL names no backend, and true if it is a director.
    pub(super) default_backend: Option<(String, bool)>,
    /// The name of that default if it is a director that chooses only when the backend is needed.
    pub(super) default_late: Option<String>,
    /// Directors that choose only when the backend is needed, by name, each with the call that
    /// makes it choose.
    pub(super) late: Vec<(String, String)>,
    /// The health test for the backend of a request.
    pub(super) healthy: String,
    /// Directors that are asked for another member when one yields no connection.
    pub(super) again: Vec<Again>,
}

/// The imports that the text needs but lacks.
pub(super) fn imports(vmods: &[(&'static str, String)]) -> String {
    let mut text = String::new();
    for (name, alias) in vmods {
        let _ =
            if name == alias { writeln!(text, "import {name};") } else { writeln!(text, "import {name} as {alias};") };
    }
    text
}

/// Writes a subroutine, unless it is empty.
fn sub(out: &mut String, comment: &str, name: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    for line in comment.lines() {
        let _ = writeln!(out, "# {line}");
    }
    let _ = writeln!(out, "sub {name} {{");
    for line in body.lines() {
        let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "    {line}") };
    }
    out.push_str("}\n\n");
}

/// The text before the author's first subroutine.
pub(super) fn prologue(known: &Knowledge, around: &Surroundings) -> String {
    let version = around.generation.name();
    let mut out =
        format!("# migrate: up to the next such line, what Varnish {version} did and VCL 4.1 does otherwise.\n");
    if !around.defaults.asks_for_gzip {
        let _ = writeln!(out, "# {}.", asks_for_gzip(around.generation));
    }
    out.push('\n');
    sub(&mut out, "", "vcl_recv", &recv(known, around, false));
    if known.rolls_back {
        let body = recv(known, around, true);
        let body = if body.is_empty() { "# Nothing was changed.\n".to_owned() } else { body };
        sub(&mut out, "The same for a request that was rolled back.", "migrate_request", &body);
    }
    let is_old = around.generation.is_legacy();
    let grace = if is_old { hash(known, around) } else { String::new() };
    sub(
        &mut out,
        "A stale object was for those who would have to wait, or when its backend is sick.",
        "vcl_hash",
        &grace,
    );
    sub(&mut out, "", "vcl_backend_fetch", &backend_fetch(known, around));
    sub(&mut out, "", "vcl_pipe", &pipe(known, around));
    sub(&mut out, "", "vcl_hit", &before_fetch(known, around, false));
    sub(&mut out, "", "vcl_miss", &before_fetch(known, around, true));
    sub(&mut out, "", "vcl_pass", &before_fetch(known, around, true));
    let response = backend_response(known, around);
    sub(
        &mut out,
        &format!("How long Varnish {version} let responses live, and when it sent them."),
        "vcl_backend_response",
        &response,
    );
    let error = if is_old { backend_error(known, around) } else { String::new() };
    sub(&mut out, "An error of the backend is the client's: vcl_synth makes its page.", "vcl_backend_error", &error);
    sub(&mut out, "", "vcl_deliver", &deliver(known, around));
    let mut page = String::new();
    if is_old {
        page += "set resp.http.Age = \"0\";\nset resp.http.Via = \"1.1 varnish\";\n";
    }
    if matches!(around.generation, Generation::V20 | Generation::V21) {
        page += "set resp.http.Retry-After = \"0\";\n";
    }
    sub(&mut out, "", "vcl_synth", &page);
    endings(known, around, &mut out);
    out
}

/// The difference in encodings that VCL cannot undo: a stored response serves clients of all
/// encodings.
pub(super) fn asks_for_gzip(generation: Generation) -> String {
    let version = generation.name();
    format!(
        "Varnish {version} passed on the Accept-Encoding of clients, VCL 4.1 asks backends for gzip, \
         which the parameter http_gzip_support=off prevents"
    )
}

fn carriers_to_fetch(known: &Knowledge, around: &Surroundings) -> Vec<String> {
    let mut names: Vec<String> = known.to_backend_fetch.iter().map(|what| carrier("bereq", what)).collect();
    names.extend(known.to_delivery.iter().map(|header| carrier("obj", &format!("http.{header}"))));
    names.extend(known.hidden().iter().map(|what| carrier("was", what)));
    if known.sets_esi {
        names.push("migrate-esi".to_owned());
    }
    if known.keeps_reason {
        names.push("migrate-kept".to_owned());
    }
    if known.restarts {
        names.push("migrate-grace".to_owned());
    }
    if !around.late.is_empty() {
        names.push("migrate-director".to_owned());
    }
    names
}

fn recv(known: &Knowledge, around: &Surroundings, rolled_back: bool) -> String {
    let mut body = String::new();
    if known.restarts && !rolled_back && around.generation.is_legacy() {
        body += "if (req.restarts > 0) {\n    # A restart began with the first backend, and with nothing special about the lookup.\n";
        if let Some((value, false)) = &around.default_backend {
            let _ = writeln!(body, "    set req.backend_hint = {value};");
        }
        body += "    set req.hash_always_miss = false;\n    set req.hash_ignore_busy = false;\n";
        body += "    if (req.http.migrate-grace ~ \"^-\") {\n        set req.grace = 365d;\n";
        body += "    } elseif (req.http.migrate-grace) {\n";
        let _ =
            writeln!(body, "        set req.grace = {}.duration(req.http.migrate-grace + \"s\", 365d);", around.std);
        body += "    }\n}\n";
    }
    for name in carriers_to_fetch(known, around) {
        let _ = writeln!(body, "unset req.http.{name};");
    }
    if let Some((value, true)) = around.default_backend.as_ref().filter(|_| !rolled_back) {
        let _ = writeln!(body, "set req.backend_hint = {value};");
    }
    if let Some(name) = &around.default_late {
        let _ = writeln!(body, "set req.http.migrate-director = \"{name}\";");
    }
    if known.blacklists && !rolled_back {
        body += "if (req.restarts == 0) {\n    unset req.http.migrate-stale;\n}\n";
    }
    if known.reads_restarts {
        body += "set req.http.migrate-restarts = req.restarts;\n";
    }
    if around.generation == Generation::V4 {
        return body;
    }
    body += "# X-Forwarded-For as the client sent it: the address was appended later, if at all.\n";
    let first = if rolled_back { "" } else { "req.restarts == 0 && " };
    let _ = writeln!(body, "if ({first}req.esi_level == 0) {{");
    body += "    if (req.http.X-Forwarded-For ~ \",\") {\n";
    body += "        set req.http.X-Forwarded-For = regsub(req.http.X-Forwarded-For, \",[^,]*$\", \"\");\n";
    body += "    } else {\n        unset req.http.X-Forwarded-For;\n    }\n}\n";
    body
}

fn hash(known: &Knowledge, around: &Surroundings) -> String {
    if around.defaults.no_grace {
        return "set req.grace = 0s;\n".to_owned();
    }
    let unless = if known.blacklists { " && !req.http.migrate-stale" } else { "" };
    let mut body = format!("if ({}{unless}) {{\n", around.healthy);
    if known.restarts {
        body += "    set req.http.migrate-grace = req.grace;\n";
    }
    body += "    set req.grace = 0s;\n";
    if around.defaults.grace_by_default && !known.sets_grace {
        body += "} else {\n    # The parameter default_grace.\n    set req.grace = 10s;\n";
    }
    body + "}\n"
}

const FORWARD: &str = "\
if (bereq.http.X-Forwarded-For) {
    set bereq.http.X-Forwarded-For = bereq.http.X-Forwarded-For + \", \" + client.ip;
} else {
    set bereq.http.X-Forwarded-For = client.ip;
}
";

/// Requests used to be piped unchanged.
fn pipe(known: &Knowledge, around: &Surroundings) -> String {
    let mut names = carriers_to_fetch(known, around);
    // Read further below.
    names.retain(|name| name != "migrate-director");
    names.extend(known.reads_restarts.then(|| "migrate-restarts".to_owned()));
    names.extend(known.restarts_in_fetch.then(|| "migrate-status".to_owned()));
    let mut body: String = names.iter().map(|name| format!("unset bereq.http.{name};\n")).collect();
    if !around.generation.is_legacy() {
        return body;
    }
    body += "if (req.http.Connection) {\n    set bereq.http.Connection = req.http.Connection;\n} else {\n";
    body += "    unset bereq.http.Connection;\n}\n";
    if !around.defaults.forwards_in_vcl {
        body += FORWARD;
    }
    body += &late(around);
    if !around.late.is_empty() {
        body += "unset bereq.http.migrate-director;\n";
    }
    body
}

/// Lets directors choose that used to choose only when the backend was needed.
fn late(around: &Surroundings) -> String {
    let mut body = String::new();
    for (name, value) in &around.late {
        let _ =
            writeln!(body, "if (bereq.http.migrate-director == \"{name}\") {{\n    set bereq.backend = {value};\n}}");
    }
    body
}

/// Before a fetch: prevents more restarts than before, and hides later changes from the backend.
fn before_fetch(known: &Knowledge, around: &Surroundings, hides: bool) -> String {
    let mut body = String::new();
    if known.restarts {
        let status = if known.restarts_in_fetch {
            format!("{}.integer(req.http.migrate-status, 503)", around.std)
        } else {
            "503".to_owned()
        };
        let _ = writeln!(body, "if (req.restarts >= {RESTARTS_MAX}) {{\n    return (synth({status}));\n}}");
    }
    for what in known.hidden().iter().filter(|_| hides) {
        let was = carrier("was", what);
        let _ = writeln!(body, "if (!req.http.{was}) {{\n    set req.http.{was} = req.{what};\n}}");
    }
    body
}

fn backend_fetch(known: &Knowledge, around: &Surroundings) -> String {
    let mut body = String::new();
    if !around.again.is_empty() {
        body += "if (bereq.retries > 0) {\n    return (fetch);\n}\n";
    }
    if known.reads_restarts {
        // A retry of the fetch keeps the variable, and no longer has the header.
        let (std, var) = (around.std, around.var);
        body += "if (bereq.http.migrate-restarts) {\n";
        let _ = writeln!(body, "    {var}.set_int(\"restarts\", {std}.integer(bereq.http.migrate-restarts, 0));\n}}");
        body += "unset bereq.http.migrate-restarts;\n";
    }
    let hidden = known.hidden();
    if !hidden.is_empty() {
        body += "# What vcl_miss and vcl_pass change of the request comes too late for the backend.\n";
    }
    for what in hidden {
        let was = carrier("was", what);
        if what.starts_with("http.") {
            let _ = writeln!(body, "if (bereq.http.{was} == \"\") {{\n    unset bereq.{what};\n}} else {{");
            let _ = writeln!(body, "    set bereq.{what} = bereq.http.{was};\n}}");
        } else {
            let _ = writeln!(body, "set bereq.{what} = bereq.http.{was};");
        }
    }
    for what in &known.to_backend_fetch {
        let header = carrier("bereq", what);
        let _ = writeln!(body, "if (bereq.http.{header}) {{");
        if what.starts_with("http.") {
            let _ =
                writeln!(body, "    if (bereq.http.{header} == \"\") {{\n        unset bereq.{what};\n    }} else {{");
            let _ = writeln!(body, "        set bereq.{what} = bereq.http.{header};\n    }}");
        } else if what.ends_with("_timeout") {
            let _ = writeln!(body, "    set bereq.{what} = {}.duration(bereq.http.{header} + \"s\", 60s);", around.std);
        } else {
            let _ = writeln!(body, "    set bereq.{what} = bereq.http.{header};");
        }
        body += "}\n";
    }
    body += &late(around);
    for name in carriers_to_fetch(known, around) {
        let _ = writeln!(body, "unset bereq.http.{name};");
    }
    if known.blacklists {
        body += "unset bereq.http.migrate-stale;\n";
    }
    if known.restarts_in_fetch {
        body += "unset bereq.http.migrate-status;\n";
    }
    if !around.defaults.forwards_in_vcl {
        body += FORWARD;
    }
    body
}

fn backend_error(known: &Knowledge, around: &Surroundings) -> String {
    let mut body = String::new();
    if !around.again.is_empty() {
        body += "# A director went on to another member when one gave no connection.\n";
        body += "if (bereq.method == \"GET\" || bereq.method == \"HEAD\") {\n";
        let mut word = "if";
        for again in &around.again {
            let _ = writeln!(body, "    {word} (bereq.retries < {} && ({})) {{", again.retries, again.test);
            if let Some(next) = &again.next {
                let _ = writeln!(body, "        set bereq.backend = {next};");
            }
            body += "        return (retry);\n";
            word = "} elseif";
        }
        body += "    }\n}\n";
    }
    if known.blacklists {
        body += "# What is stale was good enough while the backend is left alone.\n";
        let _ = writeln!(body, "if (!bereq.uncacheable && !{}.healthy(bereq.backend)) {{", around.std);
        body += "    set beresp.http.migrate-sick = \"true\";\n    set beresp.ttl = 0s;\n    set beresp.grace = 0s;\n";
        body += "    set beresp.uncacheable = true;\n    return (deliver);\n}\n";
    }
    body + "return (abandon);\n"
}

fn backend_response(known: &Knowledge, around: &Surroundings) -> String {
    let mut body = String::new();
    for name in carriers_to_client(known) {
        let _ = writeln!(body, "unset beresp.http.{name};");
    }
    if around.generation == Generation::V4 {
        return body;
    }
    body += "set beresp.do_stream = false;\n";
    body += "if (!bereq.uncacheable) {\n";
    body += "    # 120 s and 10 s: the parameters default_ttl and default_grace.\n";
    let explicit = "beresp.http.Cache-Control ~ \"(?i)(^|[, ])(s-maxage|max-age)=\"";
    if around.defaults.every_status_lives {
        // A status that makes the response uncacheable, and no stated lifetime: beresp.ttl is not
        // usable here.
        let kept = [200, 203, 204, 300, 301, 304, 404, 410, 414].map(|status| format!("beresp.status == {status}"));
        let _ = writeln!(body, "    if (beresp.ttl <= 0s && !({})) {{", kept.join(" || "));
        let _ = writeln!(body, "        if ({explicit}) {{");
        let _ = writeln!(
            body,
            "            set beresp.ttl = {0}.duration(regsub(beresp.http.Cache-Control, \"(?i)^.*?(s-maxage|max-age)=([0-9]+).*$\", \"\\2s\"), 0s) - beresp.age;",
            around.std
        );
        body += "        } elseif (beresp.http.Expires) {\n";
        let _ = writeln!(body, "            set beresp.ttl = {}.time(beresp.http.Expires, now) - now;", around.std);
        body += "        } else {\n            set beresp.ttl = 120s;\n        }\n    }";
    } else {
        body += "    if (beresp.status == 204 || beresp.status == 414) {\n        set beresp.ttl = 0s;\n    }";
    }
    let _ = writeln!(body, " elseif ((beresp.status == 302 || beresp.status == 307 || beresp.age > 0s) &&");
    let _ = writeln!(body, "        ({} || beresp.status == 307) &&", of_old());
    let _ = writeln!(body, "        !({explicit}) && !beresp.http.Expires) {{");
    body += "        set beresp.ttl = 120s;\n    }\n";
    body += "    if (beresp.http.Cache-Control ~ \"(?i)stale-while-revalidate\") {\n        set beresp.grace = 10s;\n    }\n";
    body += "}\n";
    if around.defaults.has_cacheable {
        body += "# What was obj.cacheable or beresp.cacheable; the backend has been asked, and does not see it.\n";
        let passes = if around.generation == Generation::V21 { " && !bereq.uncacheable" } else { "" };
        let lives = if around.generation == Generation::V1 { " && beresp.ttl > 0s" } else { "" };
        let _ = writeln!(body, "unset bereq.http.migrate-cacheable;");
        let _ = writeln!(body, "if (({}){passes}{lives}) {{", of_old());
        body += "    set bereq.http.migrate-cacheable = \"true\";\n}\n";
    }
    body
}

/// The condition on statuses that used to be cacheable.
fn of_old() -> String {
    let tests: Vec<String> =
        [200, 203, 300, 301, 302, 404, 410].iter().map(|status| format!("beresp.status == {status}")).collect();
    tests.join(" || ")
}

fn carriers_to_client(known: &Knowledge) -> Vec<String> {
    let mut names: Vec<String> = known.carried().values().map(|what| carrier("req", what)).collect();
    if known.errors_in_fetch {
        names.extend(["migrate-error".to_owned(), "migrate-reason".to_owned()]);
    }
    if known.restarts_in_fetch {
        names.push("migrate-restart".to_owned());
    }
    names
}

fn deliver(known: &Knowledge, around: &Surroundings) -> String {
    let mut body = String::new();
    if known.blacklists {
        body +=
            "if (resp.http.migrate-sick) {\n    if (req.http.migrate-stale) {\n        return (synth(503));\n    }\n";
        body += "    set req.http.migrate-stale = \"true\";\n    return (restart);\n}\n";
    }
    for what in known.carried().values() {
        let header = carrier("req", what);
        let _ = writeln!(body, "if (resp.http.{header} && obj.hits == 0) {{");
        if what.starts_with("http.") {
            let _ = writeln!(body, "    if (resp.http.{header} == \"\") {{\n        unset req.{what};\n    }} else {{");
            let _ = writeln!(body, "        set req.{what} = resp.http.{header};\n    }}");
        } else {
            let _ = writeln!(body, "    set req.{what} = resp.http.{header};");
        }
        let _ = writeln!(body, "}}\nunset resp.http.{header};");
    }
    if known.restarts_in_fetch {
        body += "if (resp.http.migrate-restart) {\n    set req.http.migrate-status = resp.status;\n    return (restart);\n}\n";
    }
    if known.errors_in_fetch {
        body += "if (resp.http.migrate-error) {\n    if (resp.http.migrate-reason) {\n";
        let status = format!("{}.integer(resp.http.migrate-error, 503)", around.std);
        let _ = writeln!(body, "        return (synth({status}, resp.http.migrate-reason));\n    }}");
        let _ = writeln!(body, "    return (synth({status}));\n}}");
    }
    for header in &known.to_delivery {
        let name = carrier("obj", &format!("http.{header}"));
        let header = super::writer::quoted_header(header);
        let _ = writeln!(body, "if (req.http.{name}) {{\n    if (req.http.{name} == \"\") {{");
        let _ = writeln!(body, "        unset resp.http.{header};\n    }} else {{");
        let _ = writeln!(body, "        set resp.http.{header} = req.http.{name};\n    }}\n}}");
    }
    if known.sets_esi {
        body += "if (req.http.migrate-esi == \"false\") {\n    set resp.do_esi = false;\n}\n";
    }
    body
}

const FORGET: &str = "set beresp.ttl = 0s;\nset beresp.grace = 0s;\nset beresp.keep = 0s;\nset beresp.uncacheable = true;\nreturn (deliver);\n";

/// The subroutines with which `vcl_fetch` ends.
fn endings(known: &Knowledge, around: &Surroundings, out: &mut String) {
    if known.restarts_in_fetch {
        let body = format!("set beresp.http.migrate-restart = \"true\";\n{FORGET}");
        sub(out, "The request restarts, and nothing is kept of this response.", "migrate_restart", &body);
    }
    if known.errors_in_fetch {
        sub(out, "The client gets an error, and nothing is kept of this response.", "migrate_error", FORGET);
    }
    let forgets = around.defaults.deliver_heeds_cacheable && (known.delivers_in_fetch || known.passes_in_fetch);
    if forgets {
        let body = format!(
            "if (!bereq.http.migrate-cacheable && !bereq.uncacheable) {{\n    {}}}\n",
            FORGET.replace('\n', "\n    ").trim_end_matches(' ')
        );
        sub(out, "What was not cacheable was not even remembered.", "migrate_heed_cacheable", &body);
    }
    let heed = if forgets { "call migrate_heed_cacheable;\n" } else { "" };
    if known.passes_in_fetch {
        let body =
            format!("{heed}if (beresp.ttl < 120s) {{\n    set beresp.ttl = 120s;\n}}\nreturn (pass(beresp.ttl));\n");
        sub(out, "What is not for all was remembered for default_ttl at least.", "migrate_pass", &body);
    }
    if known.delivers_in_fetch {
        let body =
            "if (beresp.ttl <= 0s) {\n    set beresp.grace = 0s;\n    set beresp.keep = 0s;\n}\nreturn (deliver);\n";
        let comment = "What had no time to live was not kept for grace either.";
        sub(out, comment, "migrate_deliver", &format!("{heed}{body}"));
    }
}

/// The error page that Varnish 1.1 made without calling any VCL.
pub(super) fn fixed_page(delivery: Option<&str>) -> String {
    let call = delivery.map_or(String::new(), |name| format!("    call {name};\n"));
    format!(
        "sub vcl_synth {{\n    set resp.http.Content-Type = \"text/html; charset=utf-8\";\n    set resp.body = {{\"<!DOCTYPE html>\n<html>\n  <head>\n    <title>\"}} + resp.status + \" \" + resp.reason + {{\"</title>\n  </head>\n  <body>\n    <h1>Error \"}} + resp.status + \" \" + resp.reason + {{\"</h1>\n    <p>\"}} + resp.reason + {{\"</p>\n    <h3>Guru Meditation:</h3>\n    <p>XID: \"}} + req.xid + {{\"</p>\n  </body>\n</html>\n\"}};\n{call}    return (deliver);\n}}\n"
    )
}
