//! Tests of running programs: each kind of statement is compiled, linked and run against a host
//! that records all calls.

use super::{Files, HEAD, compile_with};
use std::fmt::Write;
use surface::vcl::{Action, Method};
use vcl_run::eval::{ActionArguments, Machine, Outcome};
use vcl_run::host::Failure;
use vcl_run::link::LinkedProgram;
use vcl_run::program::Program;
use vcl_run::value::{Scratch, Text, Value};

#[path = "../../tests/language/host.rs"]
pub(super) mod host;

use host::RecordingHost;

pub(super) fn linked(vcl: &str) -> LinkedProgram {
    let compiled = match compile_with(vcl.as_bytes(), &Files::default(), |_| {}) {
        Ok(compiled) => compiled,
        Err(error) => panic!("{vcl}\n{}", error.text),
    };
    LinkedProgram::link(compiled.program).unwrap_or_else(|error| panic!("{vcl}\n{error}"))
}

/// Runs a method of a whole VCL; returns the recorded calls, and the outcome.
fn run(vcl: &str, method: Method, prepare: impl FnOnce(&mut RecordingHost)) -> (Vec<String>, Outcome) {
    let program = linked(vcl);
    let mut host = RecordingHost::new(&program);
    host.headers.clear();
    prepare(&mut host);
    let mut scratch = Scratch::new(1 << 20);
    let mut machine = Machine::new();
    let mut outcome = machine.run(&program, method, &mut host, &mut scratch);
    while outcome == Outcome::Wait {
        host.done.push("wait".into());
        outcome = machine.resume(&program, &mut host, &mut scratch);
    }
    (host.done, outcome)
}

/// The calls of statements in vcl_recv, followed by `return (hash)`, between VCL_call and
/// VCL_return.
fn recv(statements: &str) -> Vec<String> {
    let vcl = format!(
        "{HEAD}import std; acl near {{ \"192.0.2.0\"/24; }} acl a +log {{ \"192.0.2.0\"/24; ! \"192.0.2.77\"; \"198.51.100.1\"; }}\nsub used {{ if (client.ip ~ near || client.ip ~ a) {{ }} }}\nsub vcl_recv {{ {statements} return (hash); }} sub vcl_deliver {{ call used; }}"
    );
    let (done, outcome) = run(&vcl, Method::Recv, |host| {
        host.headers.insert(("Req".into(), "set".into()), b"value".to_vec());
        host.headers.insert(("Req".into(), "empty".into()), Vec::new());
    });
    assert_eq!(outcome, Outcome::Return(Action::Hash, ActionArguments::default()), "{statements}: {done:?}");
    assert_eq!(done.first().map(String::as_str), Some("VCL_call RECV"));
    assert_eq!(done.last().map(String::as_str), Some("VCL_return hash"));
    done[1..done.len() - 1].to_vec()
}

/// Checks the text of an expression.
fn shows(expression: &str, expect: &str) {
    assert_eq!(recv(&format!("set req.http.x = {expression};")), [format!("Req x: {expect}")], "{expression}");
}

/// Checks the value of a condition.
fn holds(condition: &str, expect: bool) {
    let taken = recv(&format!("if ({condition}) {{ ban(\"yes\"); }} else {{ ban(\"no\"); }}"));
    assert_eq!(taken.last().unwrap(), if expect { "ban yes" } else { "ban no" }, "{condition}");
}

#[test]
fn values_read_as_text() {
    shows("1", "1");
    shows("-1", "-1");
    shows("1.5", "1.500");
    shows("90m", "5400.000");
    shows("1.5s + 500ms", "2.000");
    shows("now", "Sun, 06 Nov 1994 08:49:37 GMT");
    shows("now - 1h", "Sun, 06 Nov 1994 07:49:37 GMT");
    shows("now - (now - 10s)", "10.000");
    shows("true", "true");
    shows(":YWJj:", ":YWJj:");
    shows("client.ip", "192.0.2.77");
    shows("server.ip", "");
    shows("b", "b");
    shows("storage.s0", "storage.s0");
    shows("storage.Transient.free_space", "2048");
    shows("req.url.upper() + \"ABC\".lower()", "/URLabc");
    shows("req.http.none", "");
    shows("\"a\" + req.http.none + req.http.set", "avalue");
    shows("{\"a\n\"b\"} + \"\"\"c\"\"\"", "a\n\"bc");
}

#[test]
fn sums_are_numbers_until_they_are_text() {
    shows("(1 + 2) * 3 + \"a\" + 1 + 2", "9a12");
    shows("1 + 2 + \"a\"", "3a");
    shows("7 / 2 + \",\" + 7 % 4 + \",\" + -7 / 2", "3,3,-3");
    shows("1 + 1.5", "2.500");
    shows("2.5 - 1", "1.500");
    shows("1.5 * 2", "3.000");
    shows("10s / 4", "2.500");
    shows("(1 + 1)", "2");
    shows("1 + \"\" + (true && false)", "1false");
    shows("(true || false) + \"x\" + (req.http.set == \"value\" && true)", "truextrue");
    let mut long = String::from("\"0\"");
    let mut expect = String::from("0");
    for index in 1..200 {
        let _ = write!(long, " + {index}");
        let _ = write!(expect, "{index}");
    }
    shows(&long, &expect);
}

#[test]
fn comparisons_and_logic() {
    for (condition, expect) in [
        ("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 == 1 && 1 != 2", true),
        ("1s < 1m && now > now - 1s && 1.5 > 1.0", true),
        ("\"a\" < \"b\" && \"b\" > \"a\" && \"a\" == \"a\"", true),
        ("req.http.set && !req.http.none", true),
        ("req.http.empty", true),
        ("\"\"", true),
        // An unset header equals nothing, not even another one.
        ("req.http.none == \"\"", false),
        ("req.http.none != \"\"", true),
        ("req.http.none == req.http.none", false),
        ("req.http.none >= \"a\"", true),
        ("req.http.none < \"a\"", false),
        // But a concatenation is never unset.
        ("req.http.none == \"\" + req.http.none", true),
        ("req.http.none + req.http.none", false),
        ("req.http.none + \"\"", true),
        ("req.url ~ \"^/u\" && req.url !~ \"x$\" && req.http.set ~ \"(?i)VAL\"", true),
        ("req.http.none ~ \"^$\"", true),
        ("client.ip == \"192.0.2.77\" && client.ip != \"192.0.2.78:80\"", true),
        ("client.ip == \"2001:db8::1\"", false),
        ("client.ip ~ near", true),
        ("b == req.backend_hint", false),
        ("b && req.ttl", false),
        ("near == near && near != a", true),
        ("false || true && false || !false", true),
        // `!` binds less tightly than a comparison.
        ("!(true) == true", false),
        ("!req.url ~ \"x\"", true),
        ("storage.s0 == storage.s0 && storage.s0.happy && storage.s0.used_space < 1MB", true),
        ("true == (1 == 1)", true),
    ] {
        holds(condition, expect);
    }
}

#[test]
fn acls_with_logging_log_their_match() {
    assert_eq!(recv("if (client.ip ~ a) { }"), ["VCL_acl NEG_MATCH a \"192.0.2.77\""]);
    assert_eq!(recv("if (std.ip(\"x\", client.ip) !~ near) { }").len(), 1);
    let vcl = format!(
        "{HEAD}acl a +log -pedantic {{ \"192.0.2.9\"/24; }} acl c +log {{ \"198.51.100.1\"; }}\nsub vcl_recv {{ if (client.ip ~ a && client.ip !~ c) {{ return (pass); }} }}"
    );
    let (done, outcome) = run(&vcl, Method::Recv, |_| {});
    assert_eq!(
        done[1..],
        ["VCL_acl MATCH a \"192.0.2.9\"/24 fixed: 192.0.2.0/24", "VCL_acl NO_MATCH c", "VCL_return pass"]
    );
    assert_eq!(outcome, Outcome::Return(Action::Pass, ActionArguments::default()));
    // A null address belongs to no acl, and testing it is an error.
    let vcl = format!("{HEAD}acl a {{ }} sub vcl_recv {{ if (server.ip ~ a) {{ }} }}");
    assert!(matches!(run(&vcl, Method::Recv, |_| {}).1, Outcome::Failed(_)));
}

#[test]
fn prefixes_of_variables_may_name_other_symbols() {
    for name in ["client", "server", "local", "remote", "storage", "obj", "sess"] {
        let vcl = format!(
            "vcl 4.1; backend b none; acl {name} {{ \"192.0.2.0\"/24; }} sub vcl_recv {{ if (client.ip ~ {name}) {{ set req.http.a = server.ip; }} }}"
        );
        linked(&vcl);
    }
}

#[test]
fn set_unset_and_the_operators_of_set() {
    assert_eq!(recv("set req.url = \"/a\" + req.url;"), ["ReqUrl = \"/a/url\""]);
    assert_eq!(recv("set req.url += \"?b\";"), ["ReqUrl = \"/url?b\""]);
    assert_eq!(recv("set req.http.Set += \"+\" + 1;"), ["Req Set: value+1"]);
    assert_eq!(recv("set req.http.New += \"x\";"), ["Req New: x"]);
    assert_eq!(recv("set req.http.none = req.http.none;"), ["Req none: "]);
    assert_eq!(recv("set req.http.\"x!y\" = 1;"), ["Req x!y: 1"]);
    assert_eq!(recv("unset req.http.set;"), ["unset Req set"]);
    assert_eq!(
        recv("set req.ttl = 10s; set req.ttl += 1m; set req.ttl -= 10s; set req.ttl *= 2; set req.ttl /= 1.5;"),
        [
            "ReqTtl = Duration(10.0)",
            "ReqTtl = Duration(70.0)",
            "ReqTtl = Duration(60.0)",
            "ReqTtl = Duration(120.0)",
            "ReqTtl = Duration(80.0)"
        ]
    );
    assert_eq!(recv("set req.hash_always_miss = req.http.set;"), ["ReqHashAlwaysMiss = Bool(true)"]);
    assert_eq!(recv("set req.backend_hint = b;"), ["ReqBackendHint = backend Some(0)"]);
    assert_eq!(recv("set req.backend_hint = b.resolve();"), ["ReqBackendHint = backend Some(0)"]);
    assert_eq!(recv("set req.storage = storage.Transient;"), ["ReqStorage = Stevedore(Some(1))"]);
    let vcl = format!(
        "{HEAD}sub vcl_synth {{ set resp.body = 1; set resp.body += :YWJj:; synthetic(\"x\" + 1); set resp.status = 404; return (deliver); }}"
    );
    assert_eq!(
        run(&vcl, Method::Synth, |_| {}).0[1..5],
        ["RespBody = \"1\"", "RespBody += blob \"abc\"", "synthetic true x1", "RespStatus = Int(404)"]
    );
}

#[test]
fn backend_none_is_not_a_backend() {
    let vcl = "vcl 4.1; backend default none; sub vcl_recv { set req.backend_hint = default; if (req.backend_hint) { return (pipe); } return (pass); }";
    let (done, _) = run(vcl, Method::Recv, |_| {});
    assert_eq!(done[1..], ["ReqBackendHint = backend None", "VCL_return pass"]);
}

#[test]
fn patterns_replace_first_or_all() {
    shows("regsub(req.url, \"[ul]\", \"<\\0>\")", "/<u>rl");
    shows("regsuball(req.url, \"[ul]\", \"<\\0>\")", "/<u>r<l>");
    shows("regsuball(\"foo bar\", \"o*\", \"-\")", "-f- bar");
    shows("regsub(req.http.none, \"^$\", \"X\")", "X");
    shows("regsub(\"abc\", \"x\" + \"y\", \"z\")", "abc");
    holds("regsub(req.http.none, \"x\", \"y\")", true);
}

#[test]
fn branches_take_the_first_that_holds() {
    let chain = |url: &str| {
        let vcl = format!(
            "{HEAD}sub vcl_recv {{ if (req.url == \"1\") {{ ban(\"one\"); }} elseif (req.url == \"2\") {{ ban(\"two\"); }} elif (req.url == \"3\") {{ ban(\"three\"); }} else {{ ban(\"else\"); }} ban(\"after\"); return (pass); }}"
        );
        run(&vcl, Method::Recv, |host| {
            host.texts.insert("ReqUrl".into(), url.as_bytes().to_vec());
        })
        .0
    };
    for (url, expect) in [("1", "ban one"), ("2", "ban two"), ("3", "ban three"), ("4", "ban else")] {
        assert_eq!(chain(url)[1..], [expect, "ban after", "VCL_return pass"]);
    }
}

#[test]
fn logic_looks_no_further_than_it_must() {
    let calls = |condition: &str| {
        recv(&format!("if ({condition}) {{ }}")).iter().filter(|done| done.starts_with("call")).count()
    };
    assert_eq!(calls("false && std.healthy(b)"), 0);
    assert_eq!(calls("true || std.healthy(b)"), 0);
    assert_eq!(calls("true && std.healthy(b)"), 1);
    assert_eq!(calls("false || std.healthy(b)"), 1);
}

#[test]
fn subs_are_called_and_left() {
    let vcl = format!(
        "{HEAD}sub outer {{ ban(\"outer\"); call inner; ban(\"back\"); }} sub inner {{ if (req.url == \"/url\") {{ ban(\"inner\"); return; }} ban(\"not\"); }}\nsub vcl_recv {{ call outer; call inner; return (pass); }}"
    );
    let (done, _) = run(&vcl, Method::Recv, |_| {});
    assert_eq!(done[1..], ["ban outer", "ban inner", "ban back", "ban inner", "VCL_return pass"]);
    let vcl = format!("{HEAD}sub out {{ return (pass); }} sub vcl_recv {{ call out; ban(\"not\"); }}");
    assert_eq!(run(&vcl, Method::Recv, |_| {}).0, ["VCL_call RECV", "VCL_return pass"]);
}

#[test]
fn pieces_of_a_method_run_in_order_and_then_the_builtin() {
    let vcl = format!(
        "{HEAD}sub vcl_hash {{ hash_data(\"first\"); }} sub vcl_builtin_hash {{ hash_data(\"hook\"); }} sub vcl_hash {{ hash_data(\"second\" + 1); }}"
    );
    let (done, outcome) = run(&vcl, Method::Hash, |host| {
        host.headers.insert(("Req".into(), "host".into()), b"h".to_vec());
    });
    let hashed: Vec<&str> = done.iter().filter_map(|line| line.strip_prefix("hash \"")).collect();
    assert_eq!(hashed, ["first\"", "second\"", "1\"", "hook\"", "/url\"", "h\""]);
    assert_eq!(done.last().map(String::as_str), Some("VCL_return lookup"));
    assert_eq!(outcome, Outcome::Return(Action::Lookup, ActionArguments::default()));
}

#[test]
fn returns_carry_their_arguments() {
    let outcome = |method: Method, name: &str, statement: &str| {
        run(&format!("{HEAD}sub {name} {{ {statement} }}"), method, |_| {}).1
    };
    let recv = |statement: &str| outcome(Method::Recv, "vcl_recv", statement);
    let Outcome::Return(Action::Synth, arguments) = recv("return (synth(10404, \"gone \" + 1));") else { panic!() };
    assert_eq!((arguments.status, arguments.reason.len()), (Some(10404), 6));
    let Outcome::Return(Action::Synth, arguments) = recv("return (synth(200));") else { panic!() };
    assert_eq!((arguments.status, arguments.reason), (Some(200), Text::UNSET));
    let Outcome::Return(Action::Vcl, arguments) = recv("return (vcl(label1));") else { panic!() };
    assert_eq!(arguments.label, Some(0));
    let response = |statement: &str| outcome(Method::BackendResponse, "vcl_backend_response", statement);
    let Outcome::Return(Action::Pass, arguments) = response("return (pass(2m));") else { panic!() };
    assert_eq!(arguments.duration, Some(120.0));
    let Outcome::Return(Action::Error, arguments) = response("return (error(503, \"x\"));") else { panic!() };
    assert_eq!(arguments.status, Some(503));
    assert_eq!(response("return (error);"), Outcome::Return(Action::Error, ActionArguments::default()));
    assert_eq!(response("return (retry);"), Outcome::Return(Action::Retry, ActionArguments::default()));
}

#[test]
fn failures_are_logged_once_and_end_the_method() {
    for (statement, expect) in [
        ("return (fail);", "Failed from VCL"),
        ("return (fail(\"no \" + req.url));", "no /url"),
        ("set req.url = \"\";", "Setting req.url to empty string"),
        ("return (synth(req.restarts - 1));", "return(synth()) status code (-1) is negative"),
        ("return (synth(70000));", "return(synth()) status code (70000) > 65535"),
        ("return (synth(1001));", "illegal return(synth()) status code (1001) (..0##)"),
        ("set req.http.x = 1 / req.restarts;", "Division by zero"),
        (
            "if (\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\" ~ \"^(a+)+$\") { }",
            "Regexp matching failed: match limit exceeded",
        ),
    ] {
        let (done, outcome) = run(&format!("{HEAD}sub vcl_recv {{ {statement} ban(\"not\"); }}"), Method::Recv, |_| {});
        assert_eq!(done, ["VCL_call RECV".to_owned(), format!("VCL_Error {expect}"), "VCL_return fail".to_owned()]);
        assert_eq!(outcome, Outcome::Failed(Failure(expect.into())));
    }
}

#[test]
fn strings_beyond_the_memory_of_a_request_fail_it() {
    let program = linked(&format!("{HEAD}sub vcl_recv {{ set req.http.a = req.url + req.url + req.url; }}"));
    let mut host = RecordingHost::new(&program);
    host.headers.clear();
    host.texts.insert("ReqUrl".into(), vec![b'x'; 100]);
    let outcome = Machine::new().run(&program, Method::Recv, &mut host, &mut Scratch::new(350));
    assert!(matches!(&outcome, Outcome::Failed(Failure(text)) if text.contains("request_memory_max")), "{outcome:?}");
    assert!(!host.done.iter().any(|done| done.starts_with("Req a")));
}

#[test]
fn vmods_are_called_with_all_arguments_in_place() {
    assert_eq!(
        recv("std.log(\"a\" + 1 + now); set req.http.x = std.random(1, 2.5) + std.integer(\"1\", 2);"),
        [
            "call std.log(\"a1Sun, 06 Nov 1994 08:49:37 GMT\")",
            "call std.random(Real(1.0), Real(2.5))",
            "call std.integer(\"1\", Int(2), Absent, Absent, Absent, Absent, Absent)",
            "Req x: 7.500"
        ]
    );
    assert_eq!(
        recv("std.collect(sep = \";\", hdr = req.http.a); std.collect(req.http.a);"),
        ["call std.collect(Req a, \";\")", "call std.collect(Req a, \", \")"]
    );
    assert_eq!(recv("std.rollback(req);"), ["call std.rollback(Http(Req))"]);
    assert_eq!(
        recv("if (std.port(\"192.0.2.1:99\") == 7) { ban(\"x\"); }"),
        ["call std.port(Ip(Some((192.0.2.1, 99))))", "ban x"]
    );
    assert_eq!(recv("if (std.cache_req_body(1KB)) { }"), ["call std.cache_req_body(Bytes(1024))"]);
}

#[test]
fn objects_are_made_in_vcl_init_and_used_later() {
    let vcl = format!(
        "{HEAD}import directors; backend none1 none; sub vcl_init {{ new d = directors.random(); new f = directors.fallback(sticky = true); d.add_backend(b, 1); f.add_backend(none1); }}\nsub vcl_recv {{ set req.backend_hint = f.backend(); return (pass); }}"
    );
    let (done, outcome) = run(&vcl, Method::Init, |_| {});
    assert_eq!(
        done,
        [
            "VCL_call INIT",
            "call d.directors.random()",
            "call f.directors.fallback(Bool(true))",
            "call d.directors.randomadd_backend(backend Some(0), Real(1.0))",
            "call f.directors.fallbackadd_backend(backend None)",
            "VCL_return ok"
        ]
    );
    assert_eq!(outcome, Outcome::Return(Action::Ok, ActionArguments::default()));
    assert_eq!(
        run(&vcl, Method::Recv, |_| {}).0[1..3],
        ["call f.directors.fallbackbackend()", "ReqBackendHint = backend Some(0)"]
    );
    let program = linked(&vcl);
    let directors: Vec<_> = program.program().instances.iter().map(|instance| instance.director).collect();
    assert_eq!(directors, [Some(0), Some(1)]);
}

#[test]
fn a_vmod_may_wait_anywhere_in_an_expression() {
    let vcl = format!(
        "{HEAD}import std; sub f {{ if (req.http.none || std.healthy(b) && true) {{ ban(\"after\"); }} }} sub vcl_recv {{ call f; return (pass); }}"
    );
    let (done, outcome) = run(&vcl, Method::Recv, |host| host.wait_for = Some(Value::Bool(true)));
    assert_eq!(done[1..], ["call std.healthy(backend Some(0))", "wait", "resume", "ban after", "VCL_return pass"]);
    assert_eq!(outcome, Outcome::Return(Action::Pass, ActionArguments::default()));
}

#[test]
fn builtin_decides_as_varnish_does() {
    let vcl = "vcl 4.1; backend b none;";
    let recv = |method: &str, headers: &[(&str, &str)]| {
        let (done, outcome) = run(vcl, Method::Recv, |host| {
            host.texts.insert("ReqMethod".into(), method.into());
            host.texts.insert("ReqProto".into(), b"HTTP/1.1".to_vec());
            for (name, value) in headers {
                host.headers.insert(("Req".into(), (*name).into()), value.as_bytes().to_vec());
            }
        });
        let Outcome::Return(action, arguments) = outcome else { panic!("{outcome:?}") };
        (action, arguments.status, done.len())
    };
    assert_eq!(recv("GET", &[("host", "h")]), (Action::Hash, None, 2));
    assert_eq!(recv("GET", &[("host", "Ho.Example")]), (Action::Hash, None, 3));
    assert_eq!(recv("GET", &[]), (Action::Synth, Some(400), 2));
    assert_eq!(recv("PRI", &[("host", "h")]), (Action::Synth, Some(405), 2));
    assert_eq!(recv("PROPFIND", &[("host", "h")]), (Action::Pipe, None, 2));
    for method in ["POST", "PUT", "TRACE", "OPTIONS", "DELETE", "PATCH"] {
        assert_eq!(recv(method, &[("host", "h")]), (Action::Pass, None, 2));
    }
    assert_eq!(recv("GET", &[("host", "h"), ("cookie", "a")]), (Action::Pass, None, 2));
    assert_eq!(recv("GET", &[("host", "h"), ("authorization", "a")]), (Action::Pass, None, 2));

    let response = |ttl: f64, headers: &[(&str, &str)]| {
        let (done, outcome) = run(vcl, Method::BackendResponse, |host| {
            host.values.insert("BerespTtl".into(), Value::Duration(ttl));
            host.values.insert("ParamUncacheableTtl".into(), Value::Duration(120.0));
            for (name, value) in headers {
                host.headers.insert(("Beresp".into(), (*name).into()), value.as_bytes().to_vec());
            }
        });
        assert_eq!(outcome, Outcome::Return(Action::Deliver, ActionArguments::default()));
        done.contains(&"BerespUncacheable = Bool(true)".to_owned())
            && done.contains(&"BerespTtl = Duration(120.0)".to_owned())
    };
    assert!(!response(60.0, &[]));
    assert!(response(0.0, &[]));
    assert!(response(60.0, &[("set-cookie", "a")]));
    assert!(response(60.0, &[("cache-control", "Private")]));
    assert!(response(60.0, &[("surrogate-control", "no-store")]));
    assert!(!response(60.0, &[("surrogate-control", "x"), ("cache-control", "private")]));
    assert!(response(60.0, &[("vary", "*")]));

    assert_eq!(
        run(vcl, Method::BackendFetch, |host| {
            host.texts.insert("BereqMethod".into(), b"GET".to_vec());
        })
        .0[1],
        "unset BereqBody"
    );
    let Outcome::Return(Action::Synth, arguments) = run(vcl, Method::Purge, |_| {}).1 else { panic!() };
    assert_eq!(arguments.status, Some(200));
    let (done, _) = run(vcl, Method::Synth, |host| {
        host.values.insert("RespStatus".into(), Value::Int(404));
        host.texts.insert("RespReason".into(), b"Not Found".to_vec());
        host.values.insert("ReqXid".into(), Value::Int(1234));
    });
    let body = done.iter().find(|done| done.starts_with("RespBody")).unwrap();
    for part in [
        "<title>404 Not Found</title>",
        "<h1>Error 404 Not Found</h1>",
        "<h3>Guru Meditation:</h3>",
        "<p>XID: 1234</p>",
    ] {
        assert!(body.contains(part), "{body}");
    }
    let refresh = |is_valid: bool, status: i64, is_conditional: bool| {
        let (_, outcome) = run(vcl, Method::BackendRefresh, |host| {
            host.values.insert("ObjStaleIsValid".into(), Value::Bool(is_valid));
            host.values.insert("ObjStaleStatus".into(), Value::Int(status));
            if is_conditional {
                host.headers.insert(("Bereq".into(), "if-none-match".into()), b"x".to_vec());
            }
        });
        let Outcome::Return(action, _) = outcome else { panic!("{outcome:?}") };
        action
    };
    assert_eq!(refresh(true, 200, true), Action::Merge);
    assert_eq!(refresh(false, 200, true), Action::Error);
    assert_eq!(refresh(true, 404, true), Action::Error);
    assert_eq!(refresh(true, 200, false), Action::Error);
    for (method, action) in [
        (Method::Pipe, Action::Pipe),
        (Method::Pass, Action::Fetch),
        (Method::Hit, Action::Deliver),
        (Method::Miss, Action::Fetch),
        (Method::Deliver, Action::Deliver),
        (Method::BackendError, Action::Deliver),
        (Method::Init, Action::Ok),
        (Method::Fini, Action::Ok),
    ] {
        assert_eq!(run(vcl, method, |_| {}).1, Outcome::Return(action, ActionArguments::default()));
    }
}

#[test]
fn a_program_survives_the_way_to_the_worker_and_damage_is_found() {
    let compiled = compile_with(
        format!("{HEAD}sub f {{ if (req.url ~ \"a\") {{ return (pass); }} }} sub vcl_recv {{ call f; }}").as_bytes(),
        &Files::default(),
        |_| {},
    )
    .unwrap();
    let bytes = postcard::to_allocvec(&compiled.program).unwrap();
    let program: Program = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(program, compiled.program);
    assert!(LinkedProgram::link(program.clone()).is_ok());
    // Removing any single instruction is detected, and so is a sub that may run where its actions
    // are not known.
    let mut noticed = 0;
    for index in 0..program.code.len() {
        let mut damaged = program.clone();
        damaged.code.remove(index);
        noticed += usize::from(LinkedProgram::link(damaged).is_err());
    }
    assert_eq!(noticed, program.code.len());
    let mut damaged = program;
    damaged.subs.last_mut().unwrap().at = u16::MAX;
    assert!(LinkedProgram::link(damaged).is_err());
}
