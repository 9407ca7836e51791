//! VCL before 4.0: the detected dialect, the compiled program, and the messages.

use super::{Files, compile_with};
use crate::Compiled;
use surface::vcl::Generation;
use vcl_run::link::LinkedProgram;

fn compiled(text: &str) -> Compiled {
    compile_with(text.as_bytes(), &Files::default(), |options| options.err_unref = false)
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Checks that a text is accepted, read as a generation, and can be linked.
fn check(text: &str, generation: Generation) -> Compiled {
    let compiled = compiled(text);
    assert_eq!(compiled.program.generation(), generation, "{text}\n{}", compiled.warnings);
    if let Err(error) = LinkedProgram::link(compiled.program.clone()) {
        panic!("{text}\n{error}");
    }
    compiled
}

/// Texts from articles of 2007 to 2013, verbatim, except that the host and the pattern of the
/// second one have been lost.
const ARTICLES: &[(Generation, &str)] = &[
    (
        Generation::V1,
        r#"# This is a basic vcl.conf file for varnish.
 # Modifying this file should be where you store your modifications to
 # varnish. Settnigs here will override defaults.
backend default {
 set backend.host = "127.0.0.1";
 set backend.port = "80";
 }
sub vcl_recv {
 if (req.request == "POST") {
 pipe;
 }
if (req.http.cookie ~ "(comment_)|(wordpress_\w{32}=)") {
        pipe;
}
# force lookup even when cookies are present
 if (req.request == "GET" && req.http.cookie) {
 lookup;
 }
 }
sub vcl_fetch {
 # force minimum ttl of 180 seconds
 if (obj.ttl < 180s) {
 set obj.ttl = 180s;
 }
}
"#,
    ),
    (
        Generation::V3,
        r#"backend default { .host = "127.0.0.1"; .port = "8080"; }
sub vcl_recv { if (req.http.host !~ "example.com") { return(pass); } }
"#,
    ),
    (
        Generation::V3,
        r#"backend default {
.host = "127.0.0.1";
.port = "80";
}
sub vcl_recv {
if (req.http.host ~ "^www.example.com") {
set req.http.host = "example.com";
}
}
"#,
    ),
    (
        Generation::V3,
        r#"backend default {
.host = "127.0.0.1";
.port = "80";
}
sub vcl_recv {
if (req.request != "GET" && req.request != "HEAD") {
return (pass);
}
return (lookup);
}
sub vcl_fetch {
if (req.url ~ "\.(png|gif|jpg)$") {
unset beresp.http.set-cookie;
set beresp.ttl = 1h;
}
}
"#,
    ),
    (
        Generation::V3,
        r#"backend default { .host = "127.0.0.1"; }
sub vcl_hit {
set req.http.tempheader = "1";
}
sub vcl_miss {
set req.http.tempheader = "0";
}
sub vcl_deliver {
set resp.http.X-Hit = "0";
if (req.http.tempheader) {
set resp.http.X-Hit = req.http.tempheader;
unset req.http.tempheader;
}
}
"#,
    ),
    (
        Generation::V3,
        r#"backend default { .host = "127.0.0.1"; }
sub vcl_hit {
set req.http.tempheader = "1";
}
sub vcl_miss {
set req.http.tempheader = "0";
}
sub vcl_fetch {
set beresp.http.X-Hit = "0";
if (req.http.tempheader) {
set beresp.http.X-Hit = req.http.tempheader;
unset req.http.tempheader;
}
}
"#,
    ),
    (
        Generation::V3,
        r#"backend default { .host = "127.0.0.1"; }
sub vcl_recv {
return (lookup);
}
sub vcl_fetch {
set beresp.ttl = 1h;
return (deliver);
}
"#,
    ),
];

#[test]
fn configurations_of_articles_compile_word_for_word() {
    for (generation, text) in ARTICLES {
        check(text, *generation);
    }
}

/// Files that grew over the years: concatenation by juxtaposition as until 2.1, endings of 3.0.
#[test]
fn text_with_words_of_two_generations_is_read_as_the_one_that_takes_all_of_it() {
    let text = r#"
backend a { .host = "127.0.0.1"; }
sub vcl_recv { if (req.request == "PURGE") { return (lookup); } set req.http.X = "a" req.url "b" req.http.Y "c"; }
sub vcl_hit { if (req.request == "PURGE") { purge; error 200 "Purged."; } }
sub vcl_fetch { set beresp.grace = 1h; if (beresp.http.Set-Cookie) { return (hit_for_pass); } }
sub vcl_deliver { if (obj.hits > 0) { set resp.http.X-Cache = "HIT " obj.hits; } }
sub vcl_error { synthetic {"Error "} obj.status " " obj.response; return (deliver); }
"#;
    let compiled = check(text, Generation::V3);
    assert!(compiled.warnings.contains("read as the VCL of Varnish 3.0"), "{}", compiled.warnings);
}

#[test]
fn broken_text_without_a_version_gets_the_messages_of_the_likeliest_dialect() {
    let text = r#"
backend a { .host = "127.0.0.1"; }
sub vcl_recv { return (nonsense); }
sub vcl_fetch { return (hit_for_pass); }
"#;
    let error = compile_with(text.as_bytes(), &Files::default(), |options| options.err_unref = false).unwrap_err();
    assert!(error.text.contains("nonsense") && error.text.contains("Varnish 3.0"), "{error}");
}

#[test]
fn backend_of_old_may_name_a_probe_that_is_declared_further_down() {
    let text = "backend a { .host = \"127.0.0.1\"; .probe = p; }\nprobe p { .url = \"/\"; }\nsub vcl_fetch { return (hit_for_pass); }\n";
    let program = check(text, Generation::V3).program;
    assert_eq!((program.backends[0].probe, program.probes.len()), (Some(0), 1));
}
