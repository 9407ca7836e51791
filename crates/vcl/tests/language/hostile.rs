//! Malicious or merely enormous texts: each yields a program or messages, soon and in bounded
//! memory.
//!
//! The sizes are limited by the time of a test; at a hundred times the size they would show that
//! nothing in the compiler takes much more than linear time.

use crate::world::{Files, compile};
use surface::limits::{VCL_MESSAGES_MAX, VCL_SOURCE_BYTES_MAX};
use vcl::Diagnostic;

const HEAD: &str = "vcl 4.1; backend default none;\n";

/// Compiles any bytes; returns the messages, which are bounded in number and size.
fn messages(text: &[u8]) -> Vec<Diagnostic> {
    let (messages, text_form) = match compile(text, &Files::default(), |_| {}) {
        Ok(compiled) => (compiled.diagnostics, compiled.warnings),
        Err(error) => {
            assert!(!error.diagnostics.is_empty(), "a refusal has a message");
            (error.diagnostics, error.text)
        }
    };
    assert!(messages.len() <= VCL_MESSAGES_MAX);
    assert!(text_form.len() < 1 << 20, "{} bytes of messages", text_form.len());
    for message in &messages {
        assert!(message.pretty(true).len() < 300_000 && message.text().len() < 300_000);
    }
    messages
}

fn recv(statements: &str) -> Vec<Diagnostic> {
    messages(format!("{HEAD}sub vcl_recv {{\n{statements}\n}}").as_bytes())
}

#[test]
fn one_character_over_and_over() {
    for letter in 0..=255u8 {
        let mut text = HEAD.as_bytes().to_vec();
        text.resize(20_000, letter);
        messages(&text);
        messages(&vec![letter; 5_000]);
    }
    for piece in [
        "@ x ", "/*", "*/", "{\"", "\"\"\"", "C{", "}C", "a.", ";", "- ", "! ", "( ", "if (", "sub a {", "\"\n",
        "\r\n", ":a",
    ] {
        messages(format!("{HEAD}{}", piece.repeat(10_000)).as_bytes());
        recv(&piece.repeat(10_000));
        recv(&format!("set req.http.x = {}", piece.repeat(10_000)));
    }
}

#[test]
fn megabytes_on_one_line() {
    assert_eq!(recv(&"set req.http.x = \"a\";".repeat(50_000)), []);
    assert_eq!(recv(&"if (true) { unset req.http.x; } ".repeat(30_000)), []);
    assert_eq!(recv(&"return (pass);".repeat(50_000)).len(), 1);
    assert_eq!(recv(&"set req.nothing = 1; ".repeat(50_000)).len(), VCL_MESSAGES_MAX);
    assert_eq!(recv(&format!("set req.http.x = \"{}\";", "a".repeat(10 << 20))), []);
}

#[test]
fn a_hundred_thousand_statements_and_operands() {
    assert_eq!(recv(&"set req.http.x = req.url;\n".repeat(100_000)), []);
    assert_eq!(recv(&format!("set req.http.x = \"a\"{};", " + req.url".repeat(100_000))), []);
    assert_eq!(recv(&format!("set req.ttl = 1s{};", " + 1".repeat(100_000))).len(), 1);
}

#[test]
fn unknown_names_among_many_known_ones() {
    let known: String = (0..5_000).map(|index| format!("sub known_{index:040} {{ }}\n")).collect();
    let unknown: String = (0..3_000).map(|index| format!("call unknown_{index:040};\n")).collect();
    let found = messages(format!("{HEAD}{known}sub vcl_recv {{ {unknown} }}").as_bytes());
    assert_eq!(found.len(), VCL_MESSAGES_MAX);
}

#[test]
fn names_and_chains_without_end() {
    recv(&format!("set req.http.x = {};", "a.".repeat(200_000) + "a"));
    recv(&format!("call {};", "a".repeat(1 << 20)));
    recv(&format!("set req.http.{} = \"x\";", "a".repeat(1 << 20)));
    messages(format!("{HEAD}sub {0} {{ }} acl {0} {{ }}", "a".repeat(1 << 20)).as_bytes());
    // Each subroutine calls the next ones: as many and as long cycles as messages can show.
    let subs: String = (0..150)
        .map(|from| format!("sub s{from} {{ {} }}\n", (0..150).map(|to| format!("call s{to};")).collect::<String>()))
        .collect();
    messages(format!("{HEAD}{subs} sub vcl_recv {{ call s0; }}").as_bytes());
}

#[test]
fn ways_through_calls_that_multiply() {
    // Each of a thousand levels calls the next one twice: 2^1000 paths.
    let subs: String =
        (0..1_000).map(|level| format!("sub s{level} {{ call s{0}; call s{0}; }}\n", level + 1)).collect();
    let text = |last: &str| format!("{HEAD}{subs} sub s1000 {{ {last} }} sub vcl_recv {{ call s0; }}");
    assert_eq!(messages(text("unset req.http.x;").as_bytes()), []);
    assert!(!messages(text("return (deliver);").as_bytes()).is_empty());
}

#[test]
fn patterns_that_blow_up_are_refused_or_limited() {
    for pattern in ["(".repeat(100_000), "a|".repeat(200_000), "((a{1000}){1000}){1000}".into(), "[".repeat(10_000)] {
        assert_eq!(recv(&format!("if (req.url ~ \"{pattern}\") {{ }}")).len(), 1);
    }
    assert_eq!(recv("if (req.url ~ \"(a+)+$\") { }"), []);
}

#[test]
fn more_text_than_there_may_be() {
    let text = vec![b' '; VCL_SOURCE_BYTES_MAX + 1];
    assert_eq!(messages(&text)[0].code, surface::diagnostic::Code::SourceTooLarge);
}

#[test]
fn includes_that_meet_again() {
    let mut files = Files::default();
    files.0.insert("/vcl/a.vcl".into(), "include \"b.vcl\";".into());
    files.0.insert("/vcl/b.vcl".into(), "include \"c.vcl\";".into());
    files.0.insert("/vcl/c.vcl".into(), "include \"a.vcl\";".into());
    let error = compile(format!("{HEAD}include \"a.vcl\";").as_bytes(), &files, |_| {}).unwrap_err();
    assert_eq!(error.diagnostics[0].code, surface::diagnostic::Code::IncludeRecursive);
    for index in 0..300 {
        files.0.insert(format!("/vcl/chain{index}.vcl"), format!("include \"chain{}.vcl\";", index + 1));
    }
    let error = compile(format!("{HEAD}include \"chain0.vcl\";").as_bytes(), &files, |_| {}).unwrap_err();
    assert_eq!(error.diagnostics[0].code, surface::diagnostic::Code::IncludeUnreadable);
}
