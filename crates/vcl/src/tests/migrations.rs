//! Tests of `copal vcl migrate`: the result compiles as VCL 4.1, keeps the author's comments, and
//! lists the parts it cannot preserve. The equivalence of both texts is tested with the engine.

use super::formats::every_vcl;
use super::{Files, Hosts};
use crate::{CompileOptions, Migrated, SourceText, compile, migrate};
use surface::vcl::Generation;

const BACKEND: &str = "backend default { .host = \"192.0.2.1\"; .port = \"80\"; }\n";

fn with_options<T>(files: &Files, run: impl FnOnce(&CompileOptions<'_>) -> T) -> T {
    let storages = ["s0".to_owned(), "s1".to_owned(), "Transient".to_owned()];
    run(&CompileOptions { err_unref: false, storages: &storages, resolver: &Hosts, files, ..CompileOptions::default() })
}

fn migrated(text: &str) -> Migrated {
    with_options(&Files::default(), |options| {
        migrate(&SourceText { name: "old.vcl", text: text.as_bytes() }, options)
            .unwrap_or_else(|error| panic!("{text}\n{error}"))
    })
}

/// The text in VCL 4.1, which compiles.
fn text_of(migrated: &Migrated) -> String {
    let text = String::from_utf8(migrated.text.clone()).unwrap();
    assert_eq!(migrated.problem.as_ref().map(|problem| problem.text.clone()), None, "{text}");
    text
}

/// Checks the author's part, without the additions around it.
#[track_caller]
fn check(text: &str, expect: &str) {
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    let (_, rest) = new.split_once("# migrate: end.\n\n").unwrap();
    let own = rest.split("\n# migrate: what Varnish").next().unwrap();
    assert_eq!(own.trim_end(), expect.trim(), "found:\n{own}");
}

#[test]
fn statements_and_variables_of_3_0_have_their_names_of_4_1() {
    check(
        r#"
sub vcl_recv {
    # who asks
    if (req.request != "GET" && !req.backend.healthy) {
        error 405 "Not " req.request; # said
    }
    remove req.http.Cookie;
    set req.grace = 30;
    return(lookup);
}
sub vcl_pass { return (pass); }
sub vcl_hash { hash_data(req.url); return (hash); }
sub vcl_miss { if (req.request == "PURGE") { purge; error 404; } }
"#,
        r#"
sub vcl_recv {
    # who asks
    if (req.method != "GET" && !std.healthy(req.backend_hint)) {
        return (synth(405, "Not " + req.method)); # said
    }
    unset req.http.Cookie;
    set req.grace = 30s;
    return(hash);
}
sub vcl_pass { return (fetch); }
sub vcl_hash { hash_data(req.url); return (lookup); }
sub vcl_miss { if (req.method == "PURGE") { purge.hard(); return (synth(404)); } }
"#,
    );
}

#[test]
fn bare_words_and_the_object_of_1_x_and_2_0_are_what_they_were() {
    let text = r#"backend default { set backend.host = "192.0.2.1"; set backend.port = "80"; }
sub vcl_recv { if (req.request == "POST") { pipe; } lookup; }
sub vcl_fetch { if (obj.ttl < 180) { set obj.ttl = 3m; } insert; }
"#;
    let found = migrated(text);
    assert_eq!(found.generation, Generation::V1);
    let new = text_of(&found);
    for part in [
        "backend default { .host = \"192.0.2.1\"; .port = \"80\"; }",
        "sub vcl_recv { if (req.method == \"POST\") { return (pipe); } return (hash); }",
        "sub vcl_backend_response { if (beresp.ttl < 180s) { set beresp.ttl = 3m; } call migrate_deliver; }",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
}

#[test]
fn a_subroutine_that_means_different_things_is_written_for_each() {
    check(
        r#"
sub note { set req.http.X-Url = req.url; }
sub vcl_recv { call note; return (lookup); }
sub vcl_fetch { call note; return (deliver); }
"#,
        r#"
sub note { set req.http.X-Url = req.url; }
sub vcl_recv { call note; return (hash); }
sub vcl_backend_response { call note_in_fetch; call migrate_deliver; }

# note, for where its words mean something else.
sub note_in_fetch { set bereq.http.X-Url = bereq.url; }
"#,
    );
}

#[test]
fn directors_become_objects() {
    let text = r#"
backend a { .host = "192.0.2.2"; }
director d random {
    # the big one
    { .backend = a; .weight = 2; }
    { .backend = { .host = "192.0.2.3"; } .weight = 1; }
}
director by client { { .backend = a; .weight = 1; } }
sub vcl_recv { set req.backend = d; if (req.restarts > 0) { set req.backend = by; } }
"#;
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    for part in [
        "import directors;\n",
        "# the big one\nbackend d_1 { .host = \"192.0.2.3\"; }\n# migrate: a GET or HEAD that fails, in whatever way, is sent to another member by return (retry); what has a body fails with the first\nsub vcl_init {\n    new d = directors.random();\n    d.add_backend(a, 2.0);\n    d.add_backend(d_1, 1.0);\n}",
        "set req.backend_hint = d.backend(); if (req.restarts > 0) { set req.backend_hint = by.backend(client.identity); }",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
}

#[test]
fn a_dns_director_becomes_a_dynamic_one() {
    let text = r#"
director d dns {
    .list = { .port = "8080"; .connect_timeout = 2; "192.0.2.0"/24; "198.51.100.7"; }
    .ttl = 5m;
    .suffix = ".internal";
}
director e dns { .list = { "192.0.2.0"/24; } { .backend = default; } }
director f fallback { { .backend = e; } { .backend = default; } }
sub vcl_recv { set req.backend = d; if (req.url == "/e") { set req.backend = e; } elseif (req.url == "/f") { set req.backend = f; } }
sub vcl_fetch { if (req.backend == d) { return (hit_for_pass); } }
"#;
    let found = migrated(&format!("{BACKEND}{text}"));
    let new = text_of(&found);
    for part in [
        "import dynamic;\n",
        "acl d_addresses {\n    \"192.0.2.0\"/24;\n    \"198.51.100.7\";\n}\nsub vcl_init {\n    new d = dynamic.director(port = \"8080\", whitelist = d_addresses, connect_timeout = 2s, ttl = 5m, retry_after = 5m);\n}",
        "set req.backend_hint = d.backend(regsub(req.http.Host, \":.*$\", \"\") + \".internal\");",
        "set req.backend_hint = e.backend(regsub(req.http.Host, \":.*$\", \"\"));",
        "if (bereq.backend == d.backend(regsub(bereq.http.Host, \":.*$\", \"\") + \".internal\"))",
        "set req.http.migrate-director = \"d\";",
        "    if (bereq.http.migrate-director == \"e\") {\n        set bereq.backend = e.backend(regsub(bereq.http.Host, \":.*$\", \"\"));\n    }\n",
        "    new f = directors.fallback();\n    f.add_backend(default);\n",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
    assert!(found.notes.iter().any(|note| note.text.contains("add those of the members")), "{:?}", found.notes);
    assert!(found.notes.iter().any(|note| note.text.contains("can be no member")), "{:?}", found.notes);
}

#[test]
fn a_client_director_is_asked_when_the_backend_is_needed() {
    let text = r#"
director by client { { .backend = default; .weight = 1; } }
sub vcl_recv {
    set req.backend = by;
    set client.identity = req.http.X-User;
    if (req.url == "/") { set req.backend = default; }
}
sub vcl_fetch { return (hit_for_pass); }
"#;
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    for part in [
        "    set req.backend_hint = by.backend(client.identity);\n    set req.http.migrate-director = \"by\";\n",
        "{ set req.backend_hint = default; unset req.http.migrate-director; }",
        "    if (bereq.http.migrate-director == \"by\") {\n        set bereq.backend = by.backend(client.identity);\n    }\n",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
}

#[test]
fn a_member_that_gives_no_connection_is_followed_by_another() {
    let text = r#"
backend other { .host = "192.0.2.3"; }
director d random { .retries = 3; { .backend = default; .weight = 1; } { .backend = other; .weight = 1; } }
director r round-robin { { .backend = default; } { .backend = other; } }
director f fallback { { .backend = default; } { .backend = other; } }
sub vcl_recv { set req.backend = d; if (req.url == "/r") { set req.backend = r; } elseif (req.url == "/f") { set req.backend = f; } }
sub vcl_fetch { return (hit_for_pass); }
"#;
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    for part in [
        "        if (bereq.retries < 2 && (bereq.backend == d.backend())) {\n            return (retry);\n        }",
        "(bereq.retries < 1 && (bereq.backend == f.backend())) {\n            set bereq.backend = f_from_2.backend();\n            return (retry);\n",
        "(bereq.retries < 1 && (bereq.backend == r.backend())) {\n            return (retry);\n",
        "    new f_from_2 = directors.fallback();\n    f_from_2.add_backend(other);\n}",
        "# migrate: a GET or HEAD that fails, in whatever way,",
        "sub vcl_backend_fetch {\n    if (bereq.retries > 0) {\n        return (fetch);\n    }\n",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
}

#[test]
fn a_name_that_is_not_free_any_more_gets_another() {
    let text = r#"
acl ban { "192.0.2.0"/24; }
acl office { "192.0.2.0"/24; }
probe office { .url = "/"; }
backend new { .host = "192.0.2.3"; .probe = office; }
director pass round-robin { { .backend = new; } }
sub vcl_recv {
    if (client.ip ~ ban || client.ip !~ office) { set req.backend = new; }
    set req.backend = pass;
    set req.http.X = "ban";
}
"#;
    let found = migrated(&format!("{BACKEND}{text}"));
    let new = text_of(&found);
    for part in [
        "acl ban_acl { \"192.0.2.0\"/24; }\nacl office { \"192.0.2.0\"/24; }\n",
        "probe office_probe { .initial = 3; .url = \"/\"; }\n",
        "backend new_backend { .host = \"192.0.2.3\"; .probe = office_probe; }\n",
        "    new pass = directors.round_robin();\n    pass.add_backend(new_backend);\n",
        "    if (client.ip ~ ban_acl || client.ip !~ office) { set req.backend_hint = new_backend; }\n    set req.backend_hint = pass.backend();\n    set req.http.X = \"ban\";\n",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
    let renamed = found.notes.iter().filter(|note| note.text.ends_with("the name is not free in VCL 4.1")).count();
    assert_eq!(renamed, 3, "{:?}", found.notes);
}

#[test]
fn a_probe_stands_before_the_backends_that_use_it() {
    let text = r#"
# one
backend one { .host = "192.0.2.2"; .probe = check; }
backend two { .host = "192.0.2.3"; .probe = check; }
# how
probe check { .url = "/"; .interval = 10; }
sub vcl_recv { if (req.url == "/") { set req.backend = one; } else { set req.backend = two; } }
sub vcl_fetch { return (hit_for_pass); }
"#;
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    let expected = "# one\nprobe check { .initial = 3; .url = \"/\"; .interval = 10s; }\n\nbackend one {";
    assert!(new.contains(expected), "{new}");
    assert_eq!(new.matches("probe check").count(), 1, "{new}");
}

#[test]
fn a_storage_that_is_not_there_reads_as_nothing() {
    check(
        r#"
sub vcl_recv {
    set req.http.X-Free = "" + storage.memory.free_space + " " + storage.s0.used_space;
    if (storage.memory.happy) { unset req.http.X; }
}
"#,
        r#"
sub vcl_recv {
    # migrate: there is no storage memory: it reads as nothing
    set req.http.X-Free = "" + 0 + " " + storage.s0.used_space;
    # migrate: there is no storage memory: it reads as nothing
    if (false) { unset req.http.X; }
}
"#,
    );
}

#[test]
fn untranslatable_code_is_reported_in_the_text_and_in_the_list() {
    let text = r#"
sub vcl_fetch {
    set beresp.proto = "HTTP/1.0";
    set beresp.ttl = 1h;
}
C{ int
x; }C
"#;
    let found = migrated(&format!("{BACKEND}{text}"));
    let new = text_of(&found);
    let comment = "    # migrate: the protocol cannot be set in VCL 4.1: set beresp.proto = \"HTTP/1.0\";\n";
    assert!(new.contains(comment), "{new}");
    assert!(new.contains("\n# C{ int\n# x; }C\n"), "{new}");
    let lines: Vec<u32> = found.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [4, 7], "{:?}", found.notes);
}

#[test]
fn saint_mode_is_put_around_each_backend() {
    let text = r#"
director d round-robin { { .backend = default; } { .backend = { .host = "192.0.2.3"; .saintmode_threshold = 4; } } }
sub vcl_recv { set req.backend = d; }
sub vcl_fetch { if (beresp.status == 500) { set beresp.saintmode = 20; return (restart); } }
"#;
    let new = text_of(&migrated(&format!("{BACKEND}{text}")));
    for part in [
        "import saintmode;\n",
        "    new default_saint = saintmode.saintmode(default, 10);\n",
        "    new d_1_saint = saintmode.saintmode(d_1, 4);\n",
        "    d.add_backend(default_saint.backend());\n    d.add_backend(d_1_saint.backend());\n",
        "    set req.backend_hint = default_saint.backend();\n",
        "{ saintmode.blacklist(20s); call migrate_restart; }",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
}

#[test]
fn included_files_become_part_of_the_text() {
    let files = Files([("/etc/acl.vcl", "# who\nacl inside { \"192.0.2.0\"/24; }\n# end of acl")].into());
    let text = format!(
        "{BACKEND}include \"/etc/acl.vcl\";\nsub vcl_recv {{ if (client.ip ~ inside) {{ return (pass); }} }}\nsub vcl_fetch {{ }}\n"
    );
    let found =
        with_options(&files, |options| migrate(&SourceText { name: "m", text: text.as_bytes() }, options)).unwrap();
    let new = text_of(&found);
    assert!(new.contains("# who\nacl inside { \"192.0.2.0\"/24; }\n"), "{new}");
    assert!(new.contains("# end of acl\n\nsub vcl_recv {"), "{new}");
}

#[test]
fn vcl_4_0_becomes_4_1() {
    let text = "vcl 4.0;\n# c\nbackend default none;\nsub vcl_recv { set req.esi = false; }\nsub vcl_deliver { set resp.proto = \"HTTP/1.0\"; }\n";
    let found = migrated(text);
    let new = text_of(&found);
    assert!(new.starts_with("vcl 4.1;\n# c\nbackend default none;\n"), "{new}");
    assert!(new.contains("set req.http.migrate-esi = false;") && new.contains("set resp.do_esi = false;"), "{new}");
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    let same = "vcl 4.1;\nbackend default none;\nsub vcl_recv { return (pass); }\n";
    assert_eq!(text_of(&migrated(same)), same);
}

#[test]
fn miss_and_fetch_in_vcl_hit_become_a_restart_with_always_miss() {
    let text = "vcl 4.0;\nbackend default none;\n\
        sub renew { if (req.http.a) { return (fetch); } }\n\
        sub vcl_miss { call renew; }\n\
        sub vcl_hit {\n    if (obj.ttl < 0s) {\n        return (miss);\n    }\n    call renew;\n}\n";
    let found = migrated(text);
    let new = text_of(&found);
    let restart =
        "    if (obj.ttl < 0s) {\n        set req.hash_always_miss = true;\n        return (restart);\n    }\n";
    assert!(new.contains(restart), "{new}");
    let inline = "{ if (req.http.a) { set req.hash_always_miss = true; return (restart); } }";
    assert!(new.contains(inline) && new.contains("{ if (req.http.a) { return (fetch); } }"), "{new}");
    let compiled = with_options(&Files::default(), |options| {
        compile(&SourceText { name: "new.vcl", text: new.as_bytes() }, options).unwrap()
    });
    assert!(!compiled.warnings.contains("first releases"), "{}", compiled.warnings);
    assert!(
        found.notes.iter().any(|note| note.line == 7 && note.text.contains("vcl_recv runs again")),
        "{:?}",
        found.notes
    );
}

#[test]
fn uncalled_subroutines_of_vcl_4_0_are_migrated() {
    let text = "vcl 4.0;\nbackend default none;\n\
        sub a { set beresp.storage_hint = \"s0\"; set beresp.http.ip = beresp.backend.ip; }\n\
        sub b { set req.esi = false; }\nsub c { set resp.proto = \"HTTP/1.0\"; }\n";
    let new = text_of(&migrated(text));
    assert!(new.contains("sub a { ") && new.contains("set beresp.storage = storage.s0;"), "{new}");
}

#[test]
fn a_header_with_the_longest_name_still_travels() {
    let names = [format!("{}a", "x".repeat(125)), format!("{}b", "x".repeat(125))];
    let sub =
        |name: &str| format!("sub vcl_fetch {{ set beresp.http.{name} = req.http.y; set req.http.{name} = \"1\"; }}\n");
    let text = format!(
        "{BACKEND}{}{}sub vcl_deliver {{ set resp.http.a = req.http.{}; set resp.http.b = req.http.{}; }}",
        sub(&names[0]),
        sub(&names[1]),
        names[0],
        names[1]
    );
    let new = text_of(&migrated(&text));
    let words = new.split([' ', ';', ')']).filter(|word| word.starts_with("beresp.http.migrate-"));
    assert_eq!(words.collect::<std::collections::BTreeSet<_>>().len(), 2, "{new}");
}

#[test]
fn every_old_text_of_the_repository_compiles_when_migrated() {
    let files = Files::default();
    let mut old = 0;
    for (path, text) in every_vcl() {
        let with_backend = [BACKEND.as_bytes(), &text].concat();
        for text in [&text, &with_backend] {
            let source = SourceText { name: "old.vcl", text };
            let found = with_options(&files, |options| {
                let is_old = compile(&source, options).is_ok_and(|compiled| compiled.program.generation().is_legacy());
                let migrated = migrate(&source, options);
                if is_old { Some(migrated.unwrap_or_else(|error| panic!("{}\n{error}", path.display()))) } else { None }
            });
            let Some(found) = found else { continue };
            old += 1;
            let problem = found.problem.as_ref().map_or("", |problem| &problem.text);
            let (text, new) = (String::from_utf8_lossy(text), String::from_utf8_lossy(&found.text));
            assert_eq!(problem, "", "{}\n{text}\n-----\n{new}", path.display());
        }
    }
    assert!(old > 50, "only {old} are old");
}

/// A small random number generator, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }
}

#[test]
fn old_texts_with_their_statements_shuffled_compile_when_migrated() {
    let files = Files::default();
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for (_, text) in every_vcl() {
        for text in [text.clone(), [BACKEND.as_bytes(), &text].concat()] {
            let source = SourceText { name: "old.vcl", text: &text };
            let is_old = with_options(&files, |options| {
                compile(&source, options).is_ok_and(|compiled| compiled.program.generation().is_legacy())
            });
            if is_old && text.len() < 20_000 {
                texts.push(text);
            }
        }
    }
    let statements: Vec<Vec<u8>> = texts
        .iter()
        .flat_map(|text| text.split_inclusive(|&byte| matches!(byte, b';' | b'{' | b'}')).map(<[u8]>::to_vec))
        .filter(|piece| piece.ends_with(b";"))
        .collect();
    let mut numbers = Numbers(3);
    let mut migrated = 0;
    for _ in 0..3_000 {
        let text = &texts[numbers.below(texts.len())];
        let mut pieces: Vec<&[u8]> = text.split_inclusive(|&byte| matches!(byte, b';' | b'{' | b'}')).collect();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(pieces.len());
            pieces.insert(at, &statements[numbers.below(statements.len())]);
        }
        let text = pieces.concat();
        let source = SourceText { name: "old.vcl", text: &text };
        with_options(&files, |options| {
            if !compile(&source, options).is_ok_and(|compiled| compiled.program.generation().is_legacy()) {
                return;
            }
            let found = migrate(&source, options).unwrap_or_else(|error| panic!("{error}"));
            migrated += 1;
            let problem = found.problem.as_ref().map_or("", |problem| &problem.text);
            let (text, new) = (String::from_utf8_lossy(&text), String::from_utf8_lossy(&found.text));
            assert_eq!(problem, "", "{text}\n-----\n{new}");
        });
    }
    println!("MIG {migrated}");
    assert!(migrated > 100, "only {migrated} compile");
}
