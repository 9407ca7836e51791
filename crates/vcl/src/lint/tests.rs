//! The examples of the rows, paths through subroutines, suppressions, and hostile texts.

use super::{Finding, Linted, lint};
use crate::{CompileOptions, SourceText};
use std::time::{Duration, Instant};
use surface::lint::{Level, RULES, Rule};

fn linted(text: &str) -> Linted {
    let source = SourceText { name: "site.vcl", text: text.as_bytes() };
    lint(&source, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The findings for the text after `vcl 4.1;` and a backend, as `S1:3`.
#[track_caller]
fn found(text: &str) -> Vec<String> {
    let whole = format!("vcl 4.1; backend web {{ .host = \"192.0.2.1\"; }}\n{text}");
    linted(&whole).findings.iter().map(short).collect()
}

fn short(finding: &Finding) -> String {
    format!("{}:{}", finding.rule.row().id, finding.place.line)
}

#[test]
fn bad_example_of_each_rule_is_found_and_the_good_one_is_not() {
    for row in RULES {
        let bad: Vec<_> = linted(row.bad).findings.into_iter().map(|finding| finding.rule).collect();
        assert_eq!(bad, [row.rule], "{}", row.id);
        let good: Vec<_> = linted(row.good).findings.iter().map(short).collect();
        assert_eq!(good, [""; 0], "{}", row.id);
    }
}

#[test]
fn builtin_vcl_and_an_empty_one_have_no_warnings() {
    let findings = linted(&format!("{}\nbackend default none;", crate::BUILTIN)).findings;
    // The built-in VCL passes all requests with a cookie.
    assert!(findings.iter().all(|finding| finding.rule == Rule::PassForCookie), "{findings:?}");
    assert_eq!(found(""), [""; 0]);
}

#[test]
fn rfc_policy_refuses_private_responses_itself() {
    let text = "vcl 4.1; backend web none;
        sub vcl_recv { return (hash); }
        sub vcl_backend_response { unset beresp.http.Set-Cookie; set beresp.ttl = 1m; return (deliver); }";
    let source = SourceText { name: "site.vcl", text: text.as_bytes() };
    let rules = |follows_rfc| -> Vec<String> {
        let options = CompileOptions { follows_rfc, ..Default::default() };
        lint(&source, &options).unwrap().findings.iter().map(short).collect()
    };
    assert_eq!((rules(false).join(" "), rules(true).len()), ("S2:2 S3:3".to_owned(), 0));
}

#[test]
fn all_paths_and_called_subroutines_count() {
    // One of the two ways leaves the header.
    let one =
        "sub vcl_backend_response {\nif (bereq.url ~ \"a\") { unset beresp.http.Set-Cookie; }\nreturn (deliver); }";
    assert_eq!(found(one), ["S1:4"]);
    let both = "sub clean { unset beresp.http.Set-Cookie; }
        sub vcl_backend_response { if (bereq.url ~ \"a\") { call clean; } else { call clean; } return (deliver); }";
    assert_eq!(found(both), [""; 0]);
    let in_call = "sub store {\n return (deliver); }\nsub vcl_backend_response { call store; }";
    assert_eq!(found(in_call), ["S1:3"]);
    let returned = "sub check { if (bereq.uncacheable) { return; } unset beresp.http.Set-Cookie; }
        sub vcl_backend_response { call check; return (deliver); }";
    assert_eq!(found(returned), ["S1:3"], "return; leaves the header");
    let passed = "sub vcl_backend_response { if (bereq.uncacheable) { return (deliver); } }";
    assert_eq!(found(passed), [""; 0]);
    let earlier_piece = "sub vcl_backend_response { if (bereq.uncacheable) { return (deliver); }
        return (deliver); }";
    assert_eq!(found(earlier_piece), ["S1:3"], "the condition of an earlier branch says nothing here");
}

#[test]
fn ttl_of_a_marker_is_no_lifetime_of_a_response() {
    let large = "sub vcl_backend_response {
        unset beresp.http.Set-Cookie;
        if (beresp.http.Content-Length ~ \"[0-9]{8,}\") {
            set beresp.uncacheable = true;
            set beresp.ttl = 120s;
        }
        return (deliver);
    }";
    assert_eq!(found(large), [""; 0]);
    let after = large.replace("set beresp.uncacheable = true;", "");
    assert_eq!(found(&after), ["S3:8"]);
}

#[test]
fn ttl_of_zero_that_a_copy_of_the_builtin_vcl_looks_at_makes_nobody_wait() {
    let copied = "sub vcl_backend_response {
        if (beresp.http.Surrogate-Control ~ \"BigPipe\") { set beresp.ttl = 0s; }
        if (beresp.ttl <= 0s || beresp.http.Set-Cookie || beresp.http.Cache-Control ~ \"private\") {
            set beresp.uncacheable = true;
            set beresp.ttl = 120s;
        }
        return (deliver);
    }";
    assert_eq!(found(copied), [""; 0]);
    let unseen = copied.replace("beresp.ttl <= 0s || ", "");
    assert_eq!(found(&unseen), ["P3:8"]);
}

#[test]
fn planted_fault_of_a_shop_is_found() {
    let shop = "sub vcl_recv {
            unset req.http.Authorization;
            return (hash);
        }
        sub vcl_hash { hash_data(req.http.Cookie); }
        sub vcl_backend_response { set beresp.ttl = 1m; }";
    assert!(!found(shop).iter().any(|finding| finding.starts_with('S')), "{:?}", found(shop));
    let without_cookie = shop.replace("hash_data(req.http.Cookie);", "");
    assert_eq!(found(&without_cookie), ["S2:4"]);
    let stored = shop.replace("set beresp.ttl = 1m;", "set beresp.ttl = 1m;\nreturn (deliver);");
    let all = found(&stored);
    assert!(all.contains(&"S1:8".to_owned()) && all.contains(&"S3:8".to_owned()), "{all:?}");
}

#[test]
fn access_checks_of_all_kinds_are_accepted() {
    for check in [
        "if (!client.ip ~ office) { return (synth(405)); }",
        "if (std.ip(req.http.X-Real-IP, client.ip) !~ office) { return (synth(405)); } # copal: allow(S4) tested",
        "if (req.http.X-Purge-Key != \"secret\") { return (synth(405)); }",
        "if (req.http.Authorization != \"Basic x\") { return (synth(405)); }",
        "if (remote.ip != \"127.0.0.1\") { return (synth(405)); }",
    ] {
        let text = format!(
            "import std; acl office {{ \"192.0.2.0\"/24; }}\nsub vcl_recv {{ if (req.method == \"PURGE\") {{ {check}\n return (purge); }}
            if (client.ip ~ office) {{ return (pass); }} }}"
        );
        assert_eq!(found(&text), [""; 0], "{check}");
    }
    let open = "sub vcl_recv { if (req.http.Host == \"a\") {\nban(\"obj.http.x == 1\"); } }";
    assert_eq!(found(open), ["S5:3"]);
}

#[test]
fn comment_suppresses_the_finding_of_its_line_or_the_next() {
    let with = |comment: &str, own: &str| found(&format!("sub vcl_recv {{\n{own}\nreturn (purge); {comment}\n}}"));
    assert_eq!(with("", ""), ["S5:4"]);
    assert_eq!(with("# copal: allow(S5) internal listener", ""), [""; 0]);
    assert_eq!(with("/* copal: allow(copal/s5, S5) internal */", ""), ["A1:4"], "the second name has no effect");
    assert_eq!(with("", "// copal: allow(S5) internal listener"), [""; 0]);
    assert_eq!(with("# copal: allow(S5)", ""), ["S5:4", "A1:4"], "without a reason");
    assert_eq!(with("# copal: allow(S1) other rule", ""), ["S5:4", "A1:4"]);
    assert_eq!(with("# copal: allow(S77) no rule", ""), ["S5:4", "A1:4"]);
    let text = "vcl 4.1; backend web none;\nsub vcl_recv { return (purge); } # copal: allow(S5) internal";
    assert_eq!(linted(text).suppressed, 1);
    // The text of a string is not a comment.
    assert_eq!(found("sub vcl_deliver { set resp.http.x = \"# copal: allow(S5) x\"; }"), [""; 0]);
}

#[test]
fn replacement_of_a_fix_gives_a_text_without_the_finding() {
    let mut fixed = 0;
    for row in RULES {
        for finding in linted(row.bad).findings {
            let Some(fix) = finding.fix else { continue };
            let (start, end) = (fix.place.start as usize, fix.place.end as usize);
            let text = format!("{}{}{}", &row.bad[..start], fix.replacement, &row.bad[end..]);
            assert_eq!(linted(&text).findings, [], "{text}");
            fixed += 1;
        }
    }
    assert!(fixed >= 2, "{fixed}");
}

#[test]
fn messages_show_the_line_and_nothing_that_a_terminal_interprets() {
    let text = "vcl 4.1; backend web none;\nsub vcl_recv { return (purge); } # \x1b[31m";
    let source = SourceText { name: "a\x1b[2Jb.vcl", text: text.as_bytes() };
    let linted = lint(&source, &CompileOptions::default()).unwrap();
    let shown = linted.findings[0].pretty(false);
    assert!(shown.starts_with("error[S5]: Every client can remove objects from the cache here\n"), "{shown}");
    assert!(shown.contains("\n    2 | sub vcl_recv { return (purge); } # ?[31m\n"), "{shown}");
    assert!(shown.contains("a%1b[2Jb.vcl:2:16") && shown.contains("  hint: check client.ip"), "{shown}");
    assert!(!shown.contains('\x1b') && linted.findings[0].pretty(true).contains("\x1b[1;31merror[S5]"));
}

#[test]
fn old_dialect_is_read_as_such() {
    let text = "backend b { .host = \"192.0.2.1\"; }\nsub vcl_fetch { set beresp.ttl = 1h; return (deliver); }";
    let source = SourceText { name: "old.vcl", text: text.as_bytes() };
    let options = CompileOptions { version_optional: true, ..Default::default() };
    let all: Vec<_> = lint(&source, &options).unwrap().findings.iter().map(short).collect();
    assert_eq!(all, ["S7:2", "S1:2", "S3:2"]);
    // In 2.0 the response is called obj.
    let text = "backend b { .host = \"192.0.2.1\"; }\nsub vcl_fetch {
        if (req.url ~ \"png$\") { unset obj.http.Set-Cookie; return (deliver); }
        if (obj.http.X-Private) { set obj.ttl = 0s; return (deliver); }
    }\nsub vcl_recv { set req.grace = 1m; }";
    let source = SourceText { name: "old.vcl", text: text.as_bytes() };
    let all: Vec<_> = lint(&source, &options).unwrap().findings.iter().map(short).collect();
    assert_eq!(all, ["P3:4"]);
}

#[test]
fn invalid_text_gives_the_messages_of_the_compiler() {
    let source = SourceText { name: "x.vcl", text: b"vcl 4.1; sub vcl_recv { set req.urll = 1; }" };
    assert!(lint(&source, &CompileOptions::default()).unwrap_err().text.contains("req.urll"));
}

#[test]
fn calls_of_calls_and_large_lists_take_a_bounded_time() {
    // 2^40 paths.
    let mut deep: String =
        (0..40).map(|level| format!("sub s{level} {{ call s{0}; call s{0}; }}\n", level + 1)).collect();
    deep += "sub s40 { set beresp.http.x = \"1\"; }\nsub vcl_backend_response { call s0; }";
    let mut acl = "acl big {\n".to_owned();
    for index in 0..20_000u32 {
        acl += &format!("\"10.{}.{}.{}\";\n", index >> 14 & 255, index >> 7 & 127, index & 127);
    }
    acl += "}\nsub vcl_recv { if (client.ip ~ big) { return (pass); } }";
    let many =
        format!("sub vcl_recv {{ {} }}", "if (req.http.Authorisation) { set req.http.a = \"1\"; }\n".repeat(3_000));
    let start = Instant::now();
    for text in [deep, acl, many] {
        found(&text);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn errors_are_the_rules_about_leaks() {
    for row in RULES {
        assert_eq!(row.level == Level::Error, row.id.starts_with('S') && row.rule != Rule::ErrorsStored, "{}", row.id);
    }
}
