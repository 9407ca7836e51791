//! Tests of limits: for any text, the compiler ends soon and does not crash.

use super::{Files, HEAD, compile_with, compiled};
use crate::lex::lex;
use crate::source::Sources;
use std::fmt::Write;
use surface::diagnostic::Code;
use surface::limits::{VCL_NESTING_MAX, VCL_NO_TOKENS_MAX, VCL_TOKENS_MAX};

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("sub vcl_recv {{ {}{} }}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_is_followed_to_a_limit_and_refused_beyond() {
    let near = VCL_NESTING_MAX - 3;
    for open in ["if (true) { ", "{ "] {
        assert!(compiled(&nested(open, "}", near)).is_ok());
        for depth in [VCL_NESTING_MAX + 1, 100_000] {
            let error = compiled(&nested(open, "}", depth)).unwrap_err().text;
            assert!(error.contains("Nested too deep"), "{error}");
        }
    }
    let parentheses = |depth: usize| {
        compiled(&format!("sub vcl_recv {{ set req.http.a = {}1{}; }}", "(".repeat(depth), ")".repeat(depth)))
    };
    assert!(parentheses(near).is_ok());
    assert!(parentheses(100_000).unwrap_err().text.contains("Nested too deep"));
    let signs = format!("sub vcl_recv {{ set req.http.a = {}1; }}", "- ".repeat(100_000));
    assert!(compiled(&signs).unwrap_err().text.contains("Nested too deep"));
    let calls = format!("sub vcl_recv {{ set req.http.a = {}", "regsub(".repeat(100_000));
    assert!(compiled(&calls).unwrap_err().text.contains("Nested too deep"));
    let probes = format!("backend c {{ {}", ".probe = { ".repeat(100_000));
    assert!(compiled(&probes).unwrap_err().text.contains("Nested too deep"));
}

#[test]
fn long_chains_do_not_count_as_nesting() {
    let many = 20_000;
    let sum = format!("sub vcl_recv {{ set req.http.a = \"a\"{}; }}", " + req.url + 1".repeat(many));
    assert!(compiled(&sum).is_ok());
    let or = format!("sub vcl_recv {{ if (req.url == \"a\"{}) {{ }} }}", " || req.url ~ \"b\" && true".repeat(many));
    assert!(compiled(&or).is_ok());
    let elif = format!("sub vcl_recv {{ if (true) {{ }}{} }}", " elif (req.url == \"x\") { }".repeat(many));
    assert!(compiled(&elif).is_ok());
    let members = format!("sub vcl_recv {{ set req.http.a = req.url{}; }}", ".upper()".repeat(many));
    assert!(compiled(&members).is_ok());
    let mut calls = String::new();
    for index in 0..many {
        let _ = writeln!(calls, "sub s{index} {{ call s{}; }}", index + 1);
    }
    let _ = writeln!(calls, "sub s{many} {{ }} sub vcl_recv {{ call s0; }}");
    assert!(compiled(&calls).is_ok());
}

#[test]
fn a_text_of_nothing_but_signs_or_nonsense_is_not_read_to_its_end() {
    let mut sources = Sources::default();
    let source = sources.add("signs".to_owned(), vec![b';'; VCL_TOKENS_MAX + 10], None);
    let mut errors = Vec::new();
    assert_eq!(lex(&sources, source, &mut errors).len(), VCL_TOKENS_MAX);
    assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [Code::SourceTooLarge]);
    let error = compiled(&"\u{1}\n".repeat(3 * VCL_NO_TOKENS_MAX)).unwrap_err();
    assert!(error.hidden <= VCL_NO_TOKENS_MAX, "{}", error.hidden);
}

#[test]
fn errors_shown_are_bounded() {
    let mut text = String::from("sub vcl_recv {\n");
    for index in 0..10_000 {
        let _ = writeln!(text, "set req.nothing{index} = 1;");
    }
    text.push('}');
    let error = compiled(&text).unwrap_err().text;
    assert!(error.contains("9980 more errors follow."), "{}", error.len());
    assert!(error.len() < 20_000);
}

#[test]
fn includes_that_multiply_are_bounded() {
    // Ten levels, each of which includes the next one ten times, would make ten billion files.
    let files = Files(
        [
            ("/0", "include \"/1\"; include \"/1\"; include \"/1\"; include \"/1\"; include \"/1\"; include \"/1\";"),
            ("/1", "include \"/2\"; include \"/2\"; include \"/2\"; include \"/2\"; include \"/2\"; include \"/2\";"),
            ("/2", "include \"/3\"; include \"/3\"; include \"/3\"; include \"/3\"; include \"/3\"; include \"/3\";"),
            ("/3", "include \"/4\"; include \"/4\"; include \"/4\"; include \"/4\"; include \"/4\"; include \"/4\";"),
            ("/4", "include \"/5\"; include \"/5\"; include \"/5\"; include \"/5\"; include \"/5\"; include \"/5\";"),
            ("/5", "include \"/6\"; include \"/6\"; include \"/6\"; include \"/6\"; include \"/6\"; include \"/6\";"),
            ("/6", "sub vcl_recv { }"),
        ]
        .into(),
    );
    let error = compile_with(format!("{HEAD}include \"/0\";").as_bytes(), &files, |_| {}).unwrap_err().text;
    assert!(error.contains("Too much is included"), "{error}");
}

/// A measurement without an assertion: `cargo test --release -p vcl -- --ignored --nocapture
/// speed`.
#[test]
#[ignore = "prints timings"]
fn speed_of_a_thousand_to_eighty_thousand_lines() {
    for lines in [1_000usize, 20_000, 80_000] {
        let mut text = String::from(HEAD);
        text += "import std;\n";
        for index in 0..lines / 5 {
            let _ = writeln!(
                text,
                "sub s{index} {{\n  if (req.url ~ \"^/path{index}/[a-z]+\" && req.http.x{} == \"y\") {{\n    set req.http.a{index} = regsub(req.url, \"a{index}\", \"b\") + \"c\";\n  }}\n}}",
                index % 50
            );
        }
        text += "sub vcl_recv {\n";
        for index in 0..lines / 5 {
            let _ = writeln!(text, "call s{index};");
        }
        text += "}\n";
        let start = std::time::Instant::now();
        let compiled = compile_with(text.as_bytes(), &Files::default(), |_| {}).unwrap();
        let compile_time = start.elapsed();
        let start = std::time::Instant::now();
        let linked = vcl_run::link::LinkedProgram::link(compiled.program).unwrap();
        println!(
            "{lines} lines: compiled in {compile_time:?}, linked in {:?}, {} instructions",
            start.elapsed(),
            linked.program().code.len()
        );
    }
    let mut text = String::from("vcl 4.1; backend b none;\nacl a {\n");
    for index in 0..100_000u32 {
        let _ = writeln!(text, "\"{}\";", std::net::Ipv4Addr::from(index * 17));
    }
    text += "}\nsub vcl_recv { if (client.ip ~ a) { } }\n";
    let start = std::time::Instant::now();
    compile_with(text.as_bytes(), &Files::default(), |_| {}).unwrap();
    println!("an acl of 100,000 entries: {:?}", start.elapsed());
}
