//! Usual requests reach the end of a method by shortcuts, with the same result as without them.

use super::programs::host::RecordingHost;
use super::programs::linked;
use surface::vcl::{Action, Method};
use vcl_run::eval::{Machine, Outcome};
use vcl_run::link::LinkedProgram;
use vcl_run::regex::RegexLimits;
use vcl_run::value::{Scratch, Value};

/// VCLs whose branches depend on properties common to usual requests, with many other statements
/// before, between and inside of them.
const RECVS: [&str; 9] = [
    "",
    "if (req.method == \"PURGE\") { return (purge); }
     if (req.restarts == 0 && req.http.X) { set req.http.Y = \"y\"; }",
    "if (req.http.Authorization || req.http.cookie) { return (pass); } elsif (req.http.HOST) { return (pipe); }",
    "if (req.http.Cookie) { unset req.http.Cookie; } set req.http.X-Host = req.http.host;",
    "if (req.method != \"GET\" && req.method != \"HEAD\" || req.http.X) { return (pass); }",
    "if (req.http.host ~ \"[A-Z]\") { if (req.http.cookie ~ \"a\") { return (pipe); } return (pass); }",
    "if (!req.http.host) { return (synth(404)); } if (req.method == \"GET\") { if (!req.http.Cookie) { set req.url = \"/x\"; } }",
    "if (req.http.X) { set req.method = \"POST\"; }",
    "if (req.method == \"GET\" && req.proto == \"HTTP/1.0\") { if (req.esi_level == 1) { return (hash); } return (pass); }",
];

/// Sets up one of many requests.
fn prepare(host: &mut RecordingHost, mut number: usize) {
    let mut choose = |count: usize| {
        let choice = number % count;
        number /= count;
        choice
    };
    let methods = ["GET", "HEAD", "PRI", "POST", "PURGE", "PROPFIND"];
    host.texts.insert("ReqMethod".into(), methods[choose(methods.len())].into());
    let protocols = ["HTTP/1.1", "HTTP/1.0"];
    host.texts.insert("ReqProto".into(), protocols[choose(protocols.len())].into());
    host.values.insert("ReqEsiLevel".into(), Value::Int(choose(2) as i64));
    host.values.insert("ReqRestarts".into(), Value::Int(choose(2) as i64));
    host.headers.clear();
    let mut header = |name: &str, values: &[Option<&str>]| {
        if let Some(value) = values[choose(values.len())] {
            host.headers.insert(("Req".into(), name.into()), value.into());
        }
    };
    header("host", &[Some("a.example"), None, Some("A.example"), Some("")]);
    header("cookie", &[None, Some("a"), Some("")]);
    header("authorization", &[None, Some("a")]);
    header("x", &[None, Some("x")]);
}

const REQUESTS: usize = 6 * 2 * 2 * 2 * 4 * 3 * 2 * 2;

/// The calls and the outcome of a method, and the place of the decision.
fn run(
    program: &LinkedProgram,
    method: Method,
    request: usize,
    is_traced: bool,
) -> (Vec<String>, Outcome, u32, Vec<u32>, usize) {
    let mut host = RecordingHost::new(program);
    host.is_traced = is_traced;
    prepare(&mut host, request);
    let (mut machine, mut scratch) = (Machine::new(), Scratch::new(1 << 20));
    let outcome = machine.run(program, method, &mut host, &mut scratch);
    let place = machine.decision(program);
    (host.done, outcome, place.instruction(), place.subs().collect(), host.asked)
}

#[test]
fn whatever_a_request_is_it_comes_to_the_same_end_with_shortcuts_and_without() {
    for recv in RECVS {
        let program = linked(&format!("vcl 4.1; backend b none; sub vcl_recv {{ {recv} }}"));
        for request in 0..REQUESTS {
            for method in [Method::Recv, Method::Hash] {
                let (done, outcome, instruction, subs, _) = run(&program, method, request, false);
                let plain = run(&program, method, request, true);
                assert_eq!(
                    (done, outcome, instruction, subs),
                    (plain.0, plain.1, plain.2, plain.3),
                    "{recv} {request}"
                );
            }
        }
    }
}

#[test]
fn a_usual_request_is_not_asked_again_what_is_known_of_it() {
    let program = linked("vcl 4.1; backend b none;");
    assert_eq!(run(&program, Method::Recv, 0, false).4, 0);
    assert_eq!(run(&program, Method::Recv, 1, false).4, 9, "a HEAD is asked everything");
    // Values that a VCL reads before its own first statement are known as well; then it begins
    // anew.
    let program = linked(
        "vcl 4.1; backend b none; sub vcl_recv { if (req.method == \"PURGE\") { return (purge); }
         if (req.method == \"BAN\") { return (purge); } if (req.http.Authorization) { return (pass); }
         if (req.http.Cookie) { return (pass); } set req.http.X = req.http.Y; }",
    );
    assert_eq!(run(&program, Method::Recv, 0, false).4, 1);
    // Where patterns may exceed their limits, each is tried.
    let compiled = super::compile_with(b"vcl 4.1; backend b none;", &super::Files::default(), |_| {}).unwrap();
    let limits = RegexLimits { matches: 1, ..RegexLimits::default() };
    let program = LinkedProgram::link_with(compiled.program, limits).unwrap();
    assert!(run(&program, Method::Recv, 0, false).4 > 0);
}

#[test]
fn a_method_that_only_returns_need_not_be_run() {
    let program = linked(
        "vcl 4.1; backend b none; sub vcl_miss { if (false) { return (pass); } } sub vcl_pass { return (fail); }
         sub vcl_deliver { set resp.http.X = \"x\"; }",
    );
    let mut machine = Machine::new();
    for (method, action) in [(Method::Hit, Some(Action::Deliver)), (Method::Pipe, Some(Action::Pipe))] {
        assert_eq!(machine.run_at_once(&program, method, || panic!("all requests come to the same")), action);
        let (done, outcome, instruction, subs, asked) = run(&program, method, 0, false);
        assert!(matches!(outcome, Outcome::Return(returned, _) if Some(returned) == action));
        assert_eq!((done.len(), asked), (2, 0), "{done:?}");
        let place = machine.decision(&program);
        assert_eq!((machine.method(), place.instruction(), place.subs().collect()), (Some(method), instruction, subs));
    }
    assert_eq!(machine.run_at_once(&program, Method::Recv, || true), Some(Action::Hash));
    assert_eq!(machine.decision(&program).instruction(), run(&program, Method::Recv, 0, true).2);
    assert_eq!(machine.run_at_once(&program, Method::Recv, || false), None);
    for method in [Method::Hash, Method::Miss, Method::Pass, Method::Deliver, Method::Purge] {
        assert_eq!(machine.run_at_once(&program, method, || true), None, "{method:?}");
    }
}
