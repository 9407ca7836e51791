//! `copal vcl fmt`: the style, and that only the layout changes, for every VCL in the repository
//! and for others derived from them.

use crate::format::{CHANGED, format};
use crate::lex::lex;
use crate::source::Sources;
use crate::{BUILTIN, BUILTIN_RFC, SourceText};
use std::path::{Path, PathBuf};

fn formatted(text: &str) -> String {
    let source = SourceText { name: "t.vcl", text: text.as_bytes() };
    String::from_utf8(format(&source).unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

#[track_caller]
fn check(text: &str, expect: &str) {
    let found = formatted(text);
    assert_eq!(found, expect, "found:\n{found}");
    assert_eq!(formatted(&found), found, "a formatted text is stable");
}

/// True if a text is VCL. If so, formatting it must change only the layout, and the result must be
/// stable.
fn is_formatted(text: &[u8]) -> bool {
    match format(&SourceText { name: "t", text }) {
        Ok(once) => {
            let again = format(&SourceText { name: "t", text: &once }).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(String::from_utf8_lossy(&once), String::from_utf8_lossy(&again), "a formatted text is stable");
            true
        }
        Err(error) => {
            assert!(!error.text.is_empty(), "a refusal has a message");
            assert!(error.text != CHANGED, "what parses can be formatted");
            false
        }
    }
}

#[test]
fn statements_stand_on_their_own_lines() {
    check(
        "vcl 4.1;backend a{.host=\"h\";.port=\"80\";.probe={.url=\"/\";}\n}sub vcl_recv{if(req.url~\"a\"&&!req.http.x){return(pass);}elseif(client.ip~b){set req.http.y=\"1\"+now;}else if(!(req.restarts>-1)){call c;}else{{}}}",
        r#"vcl 4.1;
backend a {
    .host = "h";
    .port = "80";
    .probe = { .url = "/"; }
}
sub vcl_recv {
    if (req.url ~ "a" && !req.http.x) {
        return (pass);
    } elseif (client.ip ~ b) {
        set req.http.y = "1" + now;
    } else if (!(req.restarts > -1)) {
        call c;
    } else {
        {
        }
    }
}
"#,
    );
}

#[test]
fn comments_and_single_empty_lines_stay() {
    check(
        r#"

# first



vcl 4.1; // version
/* a
     * starred
   */
sub vcl_recv { # opens

   # inside
   set req.url = "/"; /* behind */   set req.http.a = "b";


   if (req.url /* odd */ == "/" # why
       && req.http.a) // so
   {
#   set req.http.c = "d";

   }
   # between
   else {
       /* before */ return (hash);
       /* several
        lines */
   }

}


# last"#,
        r#"# first

vcl 4.1; // version
/* a
 * starred
 */
sub vcl_recv { # opens
    # inside
    set req.url = "/"; /* behind */
    set req.http.a = "b";

    if (req.url /* odd */ == "/" # why
        && req.http.a) // so
    {
        #   set req.http.c = "d";
    }
    # between
    else {
        /* before */ return (hash);
        /* several
        lines */
    }
}

# last
"#,
    );
}

#[test]
fn conditions_that_are_too_long_go_on_behind_an_operator() {
    check(
        "sub vcl_recv {\n  if (req.http.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa || (req.http.bbbbbbbbbbbbbbbbbbbbbbbbbbbbb && req.http.cccccccccccccc) || req.http.ddddddd) { return (pass); }\n}",
        r#"sub vcl_recv {
    if (req.http.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ||
        (req.http.bbbbbbbbbbbbbbbbbbbbbbbbbbbbb && req.http.cccccccccccccc) ||
        req.http.ddddddd) {
        return (pass);
    }
}
"#,
    );
}

#[test]
fn line_ends_at_operators_are_the_authors() {
    check(
        "sub vcl_recv {\nset req.http.a =\n\"a\"\n  + req.url\n+ \"b\" +\n{\"long\n text\"};\nif (\nreq.url == \"a\"\n&& (req.http.b\n|| req.http.c)\n)\n{ return\n(pass); }\nstd.log(\"a\" +\n\"b\",\nc = 5\nm);\n}",
        r#"sub vcl_recv {
    set req.http.a =
        "a" +
        req.url +
        "b" +
        {"long
 text"};
    if (
        req.url == "a" &&
        (req.http.b ||
            req.http.c)
    ) {
        return (pass);
    }
    std.log("a" +
        "b",
        c=5m);
}
"#,
    );
}

#[test]
fn acl_entries_keep_related_tokens_together() {
    check(
        "acl a -pedantic +log{ \"192.0.2.0\" / 24;! ( \"::1\"/128 ) ;}",
        "acl a -pedantic +log {\n    \"192.0.2.0\"/24;\n    !(\"::1\"/128);\n}\n",
    );
}

#[test]
fn fields_on_one_line_stay_there_when_they_fit() {
    let text = "backend a { .host = \"192.0.2.1\"; .port = \"80\"; }\n";
    check(text, text);
    let long = "a".repeat(100);
    check(
        &format!("backend a {{ .host = \"{long}\"; .port = \"80\"; }}"),
        &format!("backend a {{\n    .host = \"{long}\";\n    .port = \"80\";\n}}\n"),
    );
}

#[test]
fn pieces_for_the_middle_of_a_sub_are_formatted() {
    check("if(a){return(pass);}include \"b.vcl\";", "if (a) {\n    return (pass);\n}\ninclude \"b.vcl\";\n");
    check("include +glob \"b/*.vcl\";", "include +glob \"b/*.vcl\";\n");
}

#[test]
fn broken_texts_are_left_alone_with_a_message() {
    for (text, says) in [
        ("sub vcl_recv { set = 1; }", "Expected ID"),
        ("sub vcl_recv { \"open", "Unterminated string"),
        ("sub vcl_recv {", "end of input"),
        ("vcl 4.1; sub vcl_recv { foo bar; }", "Expected"),
        ("vcl 4.1; sub vcl_recv { set req.url = ; }", "Expected"),
    ] {
        let error = format(&SourceText { name: "t.vcl", text: text.as_bytes() }).unwrap_err();
        assert!(error.text.contains(says), "{text}: {error}");
    }
}

#[test]
fn the_builtin_vcl_is_in_the_style() {
    assert_eq!(formatted(BUILTIN), BUILTIN);
}

/// All VCLs of the repository: files, those in test scripts, and the corpora of the fuzz targets.
pub(super) fn every_vcl() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut directories = vec![root.join("crates"), root.join("tests"), root.join("docs"), root.join("fuzz/corpus")];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".vcl") || name.contains("/corpus/vcl_") {
                found.push((path.clone(), std::fs::read(&path).unwrap()));
            } else if name.ends_with(".vtc") || name.ends_with(".rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                // A text in braces or in a raw string may be a VCL.
                for piece in text.split("r#\"").skip(1).filter_map(|rest| rest.split("\"#").next()) {
                    found.push((path.clone(), piece.as_bytes().to_vec()));
                }
                for piece in text.split("-vcl+backend {").skip(1).filter_map(|rest| rest.split("\n} -").next()) {
                    found.push((path.clone(), piece.as_bytes().to_vec()));
                }
            }
        }
    }
    found
}

#[test]
pub(super) fn every_vcl_of_the_repository_keeps_its_tokens_and_comments() {
    let mut formatted = 0;
    for (path, text) in every_vcl() {
        let is_vcl = std::panic::catch_unwind(|| is_formatted(&text));
        assert!(is_vcl.is_ok(), "{}:\n{}", path.display(), String::from_utf8_lossy(&text));
        formatted += usize::from(is_vcl.unwrap_or_default());
    }
    assert!(formatted > 50, "only {formatted} are VCL");
}

/// A small random number generator, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The same tokens with different white space, and with comments between them.
fn shaken(text: &[u8], numbers: &mut Numbers) -> Option<Vec<u8>> {
    const BETWEEN: &[&str] =
        &[" ", "  ", "\n", "\n\n\n", "\t", " # line\n", "// line \n\n", "/* block */", "\n/* a\n * b\n */", "\r\n#\n"];
    let mut sources = Sources::default();
    let source = sources.add("t".to_owned(), text.to_vec(), None);
    let mut errors = Vec::new();
    let tokens = lex(&sources, source, &mut errors);
    if !errors.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    for token in tokens {
        for _ in 0..=numbers.below(3) {
            // Comments are rarer than spaces.
            let limit = if numbers.below(4) == 0 { BETWEEN.len() as u64 } else { 5 };
            out.extend_from_slice(BETWEEN[numbers.below(limit) as usize].as_bytes());
        }
        out.extend_from_slice(sources.bytes(token));
    }
    Some(out)
}

#[test]
fn any_layout_of_every_vcl_becomes_a_stable_one() {
    let mut numbers = Numbers(11);
    let mut formatted = 0;
    for (path, text) in every_vcl() {
        if text.len() > 20_000 {
            continue;
        }
        for _ in 0..4 {
            let Some(text) = shaken(&text, &mut numbers) else { break };
            let is_vcl = std::panic::catch_unwind(|| is_formatted(&text));
            assert!(is_vcl.is_ok(), "{}:\n{}", path.display(), String::from_utf8_lossy(&text));
            formatted += usize::from(is_vcl.unwrap_or_default());
        }
    }
    assert!(formatted > 150, "only {formatted} are VCL");
}

#[test]
fn no_row_of_tokens_upsets_the_printer() {
    const TOKENS: &[&str] = &[
        "if",
        "else",
        "elseif",
        "set",
        "sub",
        "acl",
        "backend",
        "include",
        "return",
        "a",
        "req.http.x",
        "x-y",
        "\"s\"",
        "\"\"",
        "{\"l\n\"}",
        "5",
        "5s",
        "1.5",
        ".",
        "{",
        "}",
        "(",
        ")",
        ";",
        ",",
        "!",
        "~",
        "=",
        "==",
        "&&",
        "||",
        "+",
        "-",
        "--",
        "/",
        "*",
        "%",
        "+=",
        ":aaaa:",
        "# c\n",
        "/* d */",
        "\n",
        "\n\n",
        "};",
        "){",
        ".f = ",
    ];
    let mut numbers = Numbers(5);
    let mut formatted = 0;
    for _ in 0..6_000 {
        let mut text = String::from("sub s {");
        for _ in 0..numbers.below(12) {
            text.push_str(TOKENS[numbers.below(TOKENS.len() as u64) as usize]);
            text.push_str(["", " ", "\n"][numbers.below(3) as usize]);
        }
        // The parser accepts any tokens as values of attributes.
        text.push_str("} backend b { .a = ");
        for _ in 0..numbers.below(8) {
            text.push_str(TOKENS[numbers.below(TOKENS.len() as u64) as usize]);
            text.push_str(["", " ", "\n"][numbers.below(3) as usize]);
        }
        text.push_str("; }");
        let is_vcl = std::panic::catch_unwind(|| is_formatted(text.as_bytes()));
        assert!(is_vcl.is_ok(), "{text}");
        formatted += usize::from(is_vcl.unwrap_or_default());
    }
    assert!(formatted > 50, "only {formatted} are VCL");
}

#[test]
fn the_builtin_vcl_of_the_policy_rfc_is_in_the_style_and_has_the_same_subroutines() {
    assert_eq!(formatted(BUILTIN_RFC), BUILTIN_RFC);
    let subs = |text: &str| -> Vec<(String, String)> {
        let subs = text.split("\nsub ").skip(1).map(|rest| rest.split_once(" {").unwrap());
        subs.map(|(name, body)| (name.to_owned(), body.split("\n}\n").next().unwrap().to_owned())).collect()
    };
    let mine: std::collections::BTreeMap<_, _> = subs(BUILTIN_RFC).into_iter().collect();
    let differs = [
        "vcl_builtin_hash",
        "vcl_req_method",
        "vcl_req_authorization",
        "vcl_req_cookie",
        "vcl_beresp_stale",
        "vcl_beresp_cookie",
        "vcl_beresp_control",
        "vcl_beresp_vary",
        "vcl_builtin_synth",
        "vcl_builtin_backend_error",
    ];
    for (name, body) in subs(BUILTIN) {
        if name == "vcl_beresp_hitmiss" {
            continue;
        }
        let other = mine.get(&name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(*other != body, differs.contains(&name.as_str()), "{name}");
    }
}
