//! Calls through the single entry point, with a context that replaces the engine.

use super::*;
use backend::{ClientName, DirectorKind, Directors, Notes, ResolveContext, TestableRandom};
use http2::Resets;
use message::Message;
use semantics::Purge;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use surface::tag::Tag;
use surface::vcl::{Action, HttpObject, METHODS, Method, Var};
use surface::vmod::FUNCTIONS;
use vcl_run::host::Host;
use vcl_run::link::LinkedProgram;
use vcl_run::program::{BackendDefinition, Endpoint, InstanceDefinition, Op, Program, SubDefinition};
use vcl_run::tls::TlsFacts;
use vcl_run::value::{DirectorId, Text};

mod blob;
mod collection;
mod debug;
mod dynamic;
mod hostile;
mod peer;
mod shard;
mod workspace;

/// Test replacement for the engine.
struct Engine {
    program: LinkedProgram,
    directors: Directors,
    instances: Instances,
    random: TestableRandom,
    shared: SharedState,
    task: TaskState,
    method: Method,
    request: Message,
    records: Vec<String>,
    pending: Option<Pending>,
    can_wait: bool,
    body: Option<Rc<Vec<u8>>>,
    used: Option<DirectorId>,
    digest: Option<[u8; 32]>,
    socket: Option<Rc<dyn SocketOptions>>,
    scratch: Scratch,
    credentials: Option<(u32, u32)>,
    resets: Option<Resets>,
    tls: Option<TlsFacts>,
}

fn backend_definition(name: &str) -> BackendDefinition {
    let endpoint = match name {
        "none" => Endpoint::None,
        _ => Endpoint::Ip { v4: Some(([192, 0, 2, 1], 80).into()), v6: None },
    };
    BackendDefinition::new(name, endpoint)
}

/// A VCL with backends `b0`, `b1`, `none`, and one object of each given class.
fn program(classes: &[(&str, &str)]) -> Program {
    let mut directors = 0;
    let instances = classes
        .iter()
        .map(|(vmod, class)| {
            let is_director = surface::vmod::VMODS.iter().any(|row| row.name == *vmod && row.directors.contains(class));
            let director = is_director.then_some(directors);
            directors += u32::from(is_director);
            InstanceDefinition {
                name: format!("a_{class}"),
                vmod: (*vmod).to_owned(),
                class: (*class).to_owned(),
                director,
            }
        })
        .collect();
    Program {
        syntax: 41,
        sources: Vec::new(),
        backends: ["b0", "b1", "none"].map(backend_definition).to_vec(),
        default_backend: Some(0),
        probes: Vec::new(),
        acls: Vec::new(),
        instances,
        blocks: Vec::new(),
        labels: Vec::new(),
        vmods: Vec::new(),
        subs: METHODS
            .iter()
            .map(|row| {
                // vcl_fini can't fail.
                let entry = u32::from(row.method == Method::Fini);
                SubDefinition { name: row.name.to_owned(), entry, end: entry + 1, at: row.bit }
            })
            .collect(),
        code: [Action::Fail, Action::Ok].map(Op::Return).to_vec(),
        constants: Vec::new(),
        headers: vec!["x".to_owned()],
        regexes: vec!["^b".to_owned()],
        points: Vec::new(),
        places: Vec::new(),
        refreshes: false,
        follows_rfc: false,
    }
}

impl Engine {
    fn new(method: Method) -> Engine {
        Engine::with(method, &[])
    }

    fn with(method: Method, classes: &[(&str, &str)]) -> Engine {
        let program = LinkedProgram::link(program(classes)).unwrap();
        Engine {
            directors: Directors::new("vcl1", program.program(), 1.0),
            instances: Instances::new(program.program()),
            program,
            random: TestableRandom::new(1),
            shared: SharedState::new(),
            task: TaskState::new(),
            method,
            request: Message::new(),
            records: Vec::new(),
            pending: None,
            can_wait: true,
            body: None,
            used: None,
            digest: None,
            socket: None,
            scratch: Scratch::new(1 << 20),
            credentials: None,
            resets: None,
            tls: None,
        }
    }

    /// A string argument.
    fn text(&mut self, text: &str) -> Value {
        Value::Text(self.scratch.put(text.as_bytes()))
    }

    fn call_on(&mut self, instance: Option<u32>, name: Function, values: &[Value]) -> Result<Called, Failure> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = call(name as u32, instance, self, values, &mut scratch);
        self.scratch = scratch;
        result
    }

    fn call(&mut self, name: Function, values: &[Value]) -> Result<Called, Failure> {
        self.call_on(None, name, values)
    }

    /// The value of a call that does not wait.
    fn value(&mut self, name: Function, values: &[Value]) -> Value {
        match self.call(name, values) {
            Ok(Called::Value(value)) => value,
            other => panic!("{name:?}: {other:?}"),
        }
    }

    fn string(&self, value: Value) -> Option<String> {
        match value {
            Value::Text(text) | Value::Blob(text) => {
                text.is_set().then(|| String::from_utf8_lossy(self.scratch.get(text)).into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits like the engine, and finishes the call.
    async fn waited(&mut self, name: Function, values: &[Value]) -> Result<Value, Failure> {
        assert_eq!(self.call(name, values), Ok(Called::Wait));
        let finish = self.pending.take().unwrap().await;
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = finish(self, &mut scratch);
        self.scratch = scratch;
        result
    }
}

impl Host for Engine {
    fn program(&self) -> &LinkedProgram {
        &self.program
    }

    fn now(&self) -> f64 {
        1000.0
    }

    fn clock(&self) -> f64 {
        1000.5
    }

    fn read(&mut self, var: Var, _scratch: &mut Scratch) -> Result<Value, Failure> {
        Err(Failure(format!("{var:?} is read by no VMOD")))
    }

    fn write(&mut self, var: Var, _value: Value, _append: bool, _scratch: &mut Scratch) -> Result<(), Failure> {
        Err(Failure(format!("{var:?} is set by no VMOD")))
    }

    fn unset(&mut self, var: Var) -> Result<(), Failure> {
        Err(Failure(format!("{var:?} is unset by no VMOD")))
    }

    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]> {
        self.message(http)?.get(name)
    }

    fn set_header(&mut self, _http: HttpObject, name: &str, _value: Text, _scratch: &Scratch) -> Result<(), Failure> {
        Err(Failure(format!("{name} is set by no VMOD")))
    }

    fn unset_header(&mut self, _http: HttpObject, _name: &str) {}

    fn storage_property(&mut self, _storage: Option<u32>, _var: Var) -> Value {
        Value::Void
    }

    fn storage_name(&self, _storage: Option<u32>) -> &str {
        ""
    }

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        self.directors.name(director)
    }

    fn hash_data(&mut self, piece: Option<&[u8]>) {
        self.records.push(format!("hash {}", String::from_utf8_lossy(piece.unwrap_or_default())));
    }

    fn synthetic(&mut self, _body: &[u8]) {}

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        if expression.starts_with(b"obj.") { Ok(()) } else { Err("no such field".to_owned()) }
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.records.push(format!("{tag:?} {}", String::from_utf8_lossy(payload)));
    }

    fn call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        arguments: &[Value],
        scratch: &mut Scratch,
    ) -> Result<Called, Failure> {
        call(function, instance, self, arguments, scratch)
    }

    fn resume(&mut self, _scratch: &mut Scratch) -> Result<Value, Failure> {
        Err(Failure("nothing waits".to_owned()))
    }
}

impl VmodContext for Engine {
    fn method(&self) -> Method {
        self.method
    }

    fn random(&self) -> &TestableRandom {
        &self.random
    }

    fn directors(&self) -> &Directors {
        &self.directors
    }

    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        ResolveContext {
            now: 1000.0,
            random: &self.random,
            url: self.request.target(),
            host: self.request.get("Host"),
            client: ClientName::default(),
            digest: Some(self.digest.as_ref().unwrap_or(&[9; 32])),
            is_for_cache: false,
            shard: matches!(self.method, Method::BackendFetch | Method::BackendResponse)
                .then(|| self.task.shard_parameters()),
            notes,
        }
    }

    fn used_backend(&self) -> Option<DirectorId> {
        self.used
    }

    fn instances(&self) -> &Instances {
        &self.instances
    }

    fn shared(&self) -> &SharedState {
        &self.shared
    }

    fn task(&mut self) -> &mut TaskState {
        &mut self.task
    }

    fn message(&mut self, http: HttpObject) -> Option<&Message> {
        (http == HttpObject::Req).then_some(&self.request)
    }

    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message> {
        (http == HttpObject::Req).then_some(&mut self.request)
    }

    fn digest(&self) -> Option<[u8; 32]> {
        self.digest
    }

    fn parameters(&self) -> Arc<Parameters> {
        Arc::new(Parameters::default())
    }

    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]) {
        self.records.push(format!("{transaction:?} {tag:?} {}", String::from_utf8_lossy(payload)));
    }

    fn message_bytes(&self) -> usize {
        0
    }

    fn connection(&self) -> Option<ClientConnection<'_>> {
        (self.method != Method::Init).then_some(ClientConnection {
            client: ([192, 0, 2, 7], 4711).into(),
            is_unix: self.credentials.is_some(),
            credentials: self.credentials,
            proxy_elements: &[1, 0, 2, b'h', b'2', 0x20, 0, 5, 3, 0, 0, 0, 9],
            tls: self.tls.as_ref(),
            is_early: false,
        })
    }

    fn http2_resets(&self) -> Option<&Resets> {
        self.resets.as_ref()
    }

    fn timestamp(&mut self, label: &str) {
        self.records.push(format!("Timestamp {label}"));
    }

    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure> {
        Ok(Called::Value(Value::Bool(limit_bytes >= 100)))
    }

    fn late_100_continue(&mut self, late: bool) {
        self.records.push(format!("late {late}"));
    }

    fn set_type_of_service(&mut self, tos: u8) {
        self.records.push(format!("tos {tos}"));
    }

    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure> {
        self.records.push(format!("rollback {http:?}"));
        Ok(())
    }

    fn purge(&mut self, kind: Purge) -> Result<Called, Failure> {
        self.records.push(format!("{kind:?}"));
        Ok(Called::Value(Value::Int(3)))
    }

    fn purge_tags(&mut self, list: &[u8], kind: Purge) -> Called {
        self.records.push(format!("{} {kind:?}", String::from_utf8_lossy(list)));
        Called::Value(Value::Int(7))
    }

    fn cached_body(&self) -> Option<Rc<Vec<u8>>> {
        self.body.clone()
    }

    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)> {
        self.socket.clone().map(|socket| (socket, 7))
    }

    fn can_wait(&self) -> bool {
        self.can_wait
    }

    fn wait(&mut self, pending: Pending) {
        self.pending = Some(pending);
    }
}

#[test]
fn no_function_panics_on_arguments_of_any_kind() {
    let values = [
        // No positive duration among them: vtc.sleep would really sleep that long.
        Value::Absent,
        Value::Void,
        Value::Bool(true),
        Value::Int(i64::MIN),
        Value::Real(f64::NAN),
        Value::Time(-f64::INFINITY),
        Value::Bytes(-1),
        Value::Text(Text::UNSET),
        Value::Text(Text::EMPTY),
        Value::Ip(None),
        Value::Backend(Some(DirectorId(u32::MAX))),
        Value::Regex(99),
        Value::Http(HttpObject::Obj),
        Value::Header(HttpObject::Obj, 99),
        Value::Header(HttpObject::Req, 99),
    ];
    for number in (0..FUNCTIONS.len() as u32 + 1).filter(|number| *number != Function::VtcPanic as u32) {
        for instance in [None, Some(0), Some(99)] {
            let mut engine = Engine::with(Method::Hit, &[("directors", "round_robin")]);
            engine.can_wait = false;
            for value in values {
                let mut scratch = Scratch::new(100);
                let _ = call(number, instance, &mut engine, &[value; 9], &mut scratch);
            }
            let _ = call(number, instance, &mut engine, &[], &mut Scratch::new(0));
        }
    }
}

#[test]
fn random_is_that_of_the_seed() {
    let mut engine = Engine::new(Method::Recv);
    // Varnish 7.1.1 returns 6.561 after debug.srandom.
    let Value::Real(number) = engine.value(Function::StdRandom, &[Value::Real(0.0), Value::Real(10.0)]) else {
        panic!()
    };
    assert_eq!((number * 1000.0).round(), 6561.0);
    let Value::Real(number) = engine.value(Function::StdRandom, &[Value::Real(2.0), Value::Real(1.0)]) else {
        panic!()
    };
    assert!((1.0..=2.0).contains(&number));
}

#[test]
fn conversions_come_through_the_table() {
    let mut engine = Engine::new(Method::Recv);
    let text = engine.text("10s");
    assert_eq!(engine.value(Function::StdDuration, &[text]), Value::Duration(10.0));
    let text = engine.text("1.2.3.4:81");
    let address = engine.value(Function::StdIp, &[text, Value::Absent, Value::Bool(true), Value::Absent]);
    assert_eq!(address, Value::Ip(Some(([1, 2, 3, 4].into(), 81))));
    assert_eq!(engine.value(Function::StdPort, &[address]), Value::Int(81));
    assert_eq!(engine.value(Function::StdPort, &[Value::Ip(None)]), Value::Int(0));
    assert_eq!(engine.value(Function::StdRound, &[Value::Real(-2.5)]), Value::Real(-3.0));
    assert_eq!(engine.value(Function::StdReal2integer, &[Value::Real(1e19), Value::Int(3)]), Value::Int(3));
    for (version, expected) in [(3.9, true), (4.0, true), (4.1, true), (4.2, false)] {
        assert_eq!(engine.value(Function::StdSyntax, &[Value::Real(version)]), Value::Bool(expected));
    }
    let (upper, unset) = (engine.text("aB-1"), Value::Text(Text::UNSET));
    let upper = engine.value(Function::StdToupper, &[upper]);
    assert_eq!(engine.string(upper).as_deref(), Some("AB-1"));
    assert_eq!(engine.value(Function::StdTolower, &[unset]), unset);
    let pattern = engine.text("a*");
    assert_eq!(
        engine.call(Function::StdFnmatch, &[unset, pattern]),
        Err(Failure("std.fnmatch(): pattern is NULL".into()))
    );
}

#[tokio::test]
async fn a_name_is_resolved_off_the_loop() {
    let mut engine = Engine::new(Method::Recv);
    let name = engine.text("localhost:http");
    let value = engine.waited(Function::StdIp, &[name, Value::Absent, Value::Bool(true), Value::Absent]).await.unwrap();
    let Value::Ip(Some((address, 80))) = value else { panic!("{value:?}") };
    assert!(address.is_loopback());
    let numeric_only = [name, Value::Absent, Value::Bool(false), Value::Absent];
    assert_eq!(engine.call(Function::StdIp, &numeric_only), Err(Failure("std.ip: conversion failed".into())));
}

#[tokio::test]
async fn a_file_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "first\0rest").unwrap();
    let mut engine = Engine::new(Method::Recv);
    let name = engine.text(path.to_str().unwrap());
    let value = engine.waited(Function::StdFileread, &[name]).await.unwrap();
    assert_eq!(engine.string(value).as_deref(), Some("first"));
    std::fs::write(&path, "second").unwrap();
    let value = engine.value(Function::StdBlobread, &[name]);
    assert_eq!(engine.string(value).as_deref(), Some("first\0rest"));
    assert_eq!(engine.waited(Function::StdFileExists, &[name]).await, Ok(Value::Bool(true)));

    let missing = engine.text("/nonexistent/file");
    assert_eq!(engine.waited(Function::StdFileread, &[missing]).await, Ok(Value::Text(Text::UNSET)));
    engine.can_wait = false;
    assert_eq!(engine.value(Function::StdFileExists, &[missing]), Value::Bool(false));
    assert_eq!(engine.value(Function::StdFileExists, &[Value::Text(Text::UNSET)]), Value::Bool(false));
}

#[tokio::test]
async fn only_regular_files_are_read_and_no_more_of_them_kept_than_there_is_room() {
    let mut engine = Engine::new(Method::Recv);
    for endless in ["/dev/zero", "/dev/tty", "/dev"] {
        let name = engine.text(endless);
        let value = engine.waited(Function::StdFileread, &[name]).await;
        assert_eq!(value, Ok(Value::Text(Text::UNSET)), "{endless}");
    }
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("long");
    std::fs::File::create(&long).unwrap().set_len(surface::limits::FILE_BYTES_MAX + 1).unwrap();
    let name = engine.text(long.to_str().unwrap());
    assert_eq!(engine.waited(Function::StdFileread, &[name]).await, Ok(Value::Text(Text::UNSET)));

    let content: Arc<[u8]> = vec![b'x'; surface::limits::KEPT_FILES_BYTES_MAX / 4].into();
    let kept = (0..10_u8).filter(|number| {
        engine.instances.keep_file(&[*number], Arc::clone(&content));
        engine.instances.file(&[*number]).is_some()
    });
    assert_eq!(kept.count(), 3, "with their names they need a little more");
}

#[test]
fn logging_and_control_reach_the_engine() {
    let mut engine = Engine::new(Method::Recv);
    let (text, empty, unset) = (engine.text("hello"), engine.text(""), Value::Text(Text::UNSET));
    engine.value(Function::StdLog, &[text]);
    engine.value(Function::StdLog, &[unset]);
    engine.value(Function::StdTimestamp, &[text]);
    engine.value(Function::StdTimestamp, &[empty]);
    engine.value(Function::StdLate100Continue, &[Value::Bool(true)]);
    engine.value(Function::StdSetIpTos, &[Value::Int(8)]);
    engine.value(Function::StdRollback, &[Value::Http(HttpObject::Req)]);
    assert_eq!(engine.value(Function::StdCacheReqBody, &[Value::Bytes(100)]), Value::Bool(true));
    assert_eq!(engine.records, ["VCLLog hello", "VCLLog ", "Timestamp hello", "late true", "tos 8", "rollback Req"]);

    let mut engine = Engine::new(Method::Deliver);
    engine.value(Function::StdLate100Continue, &[Value::Bool(true)]);
    assert_eq!(engine.value(Function::StdCacheReqBody, &[Value::Bytes(100)]), Value::Bool(false));
    assert_eq!(
        engine.records,
        [
            "VCLError std.late_100_continue() only valid in vcl_recv{}",
            "VCLError req.body can only be cached in vcl_recv{}"
        ]
    );
}

#[test]
fn failed_ban_reports_its_reason_until_one_succeeds() {
    let mut engine = Engine::new(Method::Recv);
    let (good, bad) = (engine.text("obj.status == 1"), engine.text("x"));
    let error = |engine: &mut Engine| {
        let value = engine.value(Function::StdBanError, &[]);
        engine.string(value).unwrap()
    };
    assert_eq!(error(&mut engine), "");
    assert_eq!(engine.value(Function::StdBan, &[bad]), Value::Bool(false));
    assert_eq!(error(&mut engine), "no such field");
    assert_eq!(engine.value(Function::StdBan, &[Value::Text(Text::UNSET)]), Value::Bool(false));
    assert_eq!(error(&mut engine), "Null argument");
    assert_eq!(engine.value(Function::StdBan, &[good]), Value::Bool(true));
    assert_eq!(error(&mut engine), "");
    assert_eq!(engine.records, ["VCLError ban(): no such field", "VCLError ban(): Null argument"]);
}

#[test]
fn collect_needs_headers_that_can_be_changed() {
    let mut engine = Engine::new(Method::Recv);
    for separator in [Text::UNSET, Text::EMPTY] {
        engine.request.unset("x");
        for (name, value) in [("X", "a"), ("Y", "  c"), ("x", "b")] {
            engine.request.append(name.as_bytes(), value.as_bytes());
        }
        engine.value(Function::StdCollect, &[Value::Header(HttpObject::Req, 0), Value::Text(separator)]);
        assert_eq!(engine.request.get("x"), Some(&b"a, b"[..]));
        assert_eq!(engine.request.headers().filter(|header| header.is("x")).count(), 1);
    }
    assert_eq!(engine.request.headers().last().unwrap().line(), b"Y:   c", "other lines stay as they are");
    let obj = [Value::Header(HttpObject::Obj, 0)];
    let expected = Failure("std.collect(): header argument can not be used here".to_owned());
    assert_eq!(engine.call(Function::StdCollect, &obj), Err(expected));
    assert!(engine.records.is_empty(), "no record tells of it");
}

#[test]
fn directors_are_made_filled_and_used() {
    let mut engine = Engine::with(Method::Init, &[("directors", "fallback"), ("directors", "hash")]);
    let (b0, b1) = (Value::Backend(Some(DirectorId(0))), Value::Backend(Some(DirectorId(1))));
    assert_eq!(engine.call_on(Some(0), Function::FallbackBackend, &[]), Ok(Called::Value(Value::Backend(None))));
    engine.call_on(Some(0), Function::Fallback, &[Value::Bool(true)]).unwrap();
    engine.call_on(Some(0), Function::FallbackAddBackend, &[b1]).unwrap();
    engine.call_on(Some(0), Function::FallbackAddBackend, &[b0]).unwrap();
    let id = engine.directors.object_id(0);
    assert_eq!(engine.call_on(Some(0), Function::FallbackBackend, &[]), Ok(Called::Value(Value::Backend(Some(id)))));
    let Some(DirectorKind::Fallback(fallback)) = engine.directors.director(id) else { panic!("no fallback") };
    assert!(fallback.is_sticky());
    let notes = Notes::new();
    let context = engine.resolve_context(&notes);
    assert_eq!(engine.directors.resolve(Some(id), &context).unwrap().backend.name(), "b1");
    engine.call_on(Some(0), Function::FallbackRemoveBackend, &[b1]).unwrap();
    assert_eq!(engine.directors.director(id).unwrap().members().len(), 1);

    engine.call_on(Some(1), Function::Hash, &[]).unwrap();
    engine.call_on(Some(1), Function::HashAddBackend, &[b0, Value::Real(1.0)]).unwrap();
    let text = engine.text("x");
    assert_eq!(engine.call_on(Some(1), Function::HashBackend, &[text]), Ok(Called::Value(b0)));
    assert_eq!(engine.value(Function::StdHealthy, &[Value::Backend(Some(id))]), Value::Bool(true));
    assert_eq!(engine.value(Function::StdHealthy, &[Value::Backend(None)]), Value::Bool(false));
}

#[test]
fn no_director_takes_a_null_backend_or_itself() {
    let mut engine = Engine::with(Method::Init, &[("directors", "random")]);
    engine.call_on(Some(0), Function::Random, &[]).unwrap();
    let own = Value::Backend(Some(engine.directors.object_id(0)));
    for (function, value, expected) in [
        (Function::RandomAddBackend, Value::Backend(None), "a_random: None backend cannot be added"),
        (Function::RandomAddBackend, Value::Backend(Some(DirectorId(2))), "a_random: None backend cannot be added"),
        (Function::RandomAddBackend, own, "a_random: a_random leads back to it and cannot be added"),
        (Function::RandomRemoveBackend, Value::Backend(None), "a_random: None backend cannot be removed"),
    ] {
        let result = engine.call_on(Some(0), function, &[value, Value::Real(1.0)]);
        assert_eq!(result, Err(Failure(expected.to_owned())));
    }
}

#[test]
fn lookup_is_for_init_and_fini() {
    for (method, name, expected) in [
        (Method::Init, "b1", Ok(Value::Backend(Some(DirectorId(1))))),
        (Method::Fini, "none", Ok(Value::Backend(None))),
        (Method::Init, "nope", Ok(Value::Backend(None))),
        (Method::Recv, "b1", Err("lookup() may only be called from vcl_init / vcl_fini")),
    ] {
        let mut engine = Engine::new(method);
        let name = engine.text(name);
        let expected = expected.map(Called::Value).map_err(|text| Failure(text.to_owned()));
        assert_eq!(engine.call(Function::DirectorsLookup, &[name]), expected);
    }
}

#[test]
fn purges_happen_in_hit_and_miss() {
    let mut engine = Engine::new(Method::Miss);
    assert_eq!(engine.value(Function::PurgeHard, &[]), Value::Int(3));
    let times = [Value::Duration(0.0), Value::Duration(-1.0), Value::Duration(5.0)];
    assert_eq!(engine.value(Function::PurgeSoft, &times), Value::Int(3));
    assert_eq!(engine.records, ["Hard", "Soft { ttl: 0.0, grace: -1.0, keep: 5.0 }"]);
    let expected = Failure("purge can only happen in vcl_hit{} or vcl_miss{}".to_owned());
    assert_eq!(Engine::new(Method::Recv).call(Function::PurgeHard, &[]), Err(expected));
}

#[test]
fn cookies_live_as_long_as_the_task() {
    let mut engine = Engine::new(Method::Recv);
    let header = engine.text("a=1; b=2; bc=3; d=4");
    engine.value(Function::CookieParse, &[header]);
    let (a, list) = (engine.text("a"), engine.text("a,bc"));
    assert_eq!(engine.value(Function::CookieIsset, &[a]), Value::Bool(true));
    let value = engine.value(Function::CookieGetRe, &[Value::Regex(0)]);
    assert_eq!(engine.string(value).as_deref(), Some("2"));
    engine.value(Function::CookieFilterRe, &[Value::Regex(0)]);
    let value = engine.value(Function::CookieGetString, &[]);
    assert_eq!(engine.string(value).as_deref(), Some("a=1; d=4;"));
    engine.value(Function::CookieKeep, &[list]);
    engine.value(Function::CookieSet, &[list, a]);
    let value = engine.value(Function::CookieGetString, &[]);
    assert_eq!(engine.string(value).as_deref(), Some("a=1; a,bc=a;"));
    engine.task.clear();
    let value = engine.value(Function::CookieGetString, &[]);
    assert_eq!(engine.string(value).as_deref(), Some(""));
    let date = engine.value(Function::CookieFormatDate, &[Value::Time(784_111_777.5), Value::Duration(300.0)]);
    assert_eq!(engine.string(date).as_deref(), Some("Sun, 06 Nov 1994 08:54:37 GMT"));
}

#[test]
fn blobs_come_through_the_table() {
    let mut engine = Engine::with(Method::Init, &[("blob", "blob")]);
    let [hex, base64, upper, default, encoded] =
        ["HEX", "BASE64", "UPPER", "DEFAULT", "61ff62"].map(|word| engine.text(word));
    let blob = engine.value(Function::BlobDecode, &[hex, Value::Int(4), encoded]);
    let text = engine.value(Function::BlobEncode, &[hex, upper, blob]);
    assert_eq!(engine.string(text).as_deref(), Some("61FF"));
    let text = engine.value(Function::BlobTranscode, &[hex, base64, default, Value::Int(0), encoded]);
    assert_eq!(engine.string(text).as_deref(), Some("Yf9i"));
    assert_eq!(engine.value(Function::BlobLength, &[blob]), Value::Int(2));
    let again = engine.value(Function::BlobDecode, &[hex, Value::Int(4), encoded]);
    assert_eq!(engine.value(Function::BlobSame, &[blob, again]), Value::Bool(false));
    assert_eq!(engine.value(Function::BlobEqual, &[blob, again]), Value::Bool(true));
    let part = engine.value(Function::BlobSub, &[blob, Value::Bytes(1), Value::Bytes(0)]);
    assert_eq!(engine.string(part).as_deref(), Some("a"));
    for (length, offset, expected) in [
        (4, 3, "vmod blob error: size 4 from offset 3 requires more bytes than blob length 2 in blob.sub()"),
        (
            i64::MAX,
            1,
            "vmod blob error: size 9223372036854775807 from offset 1 requires more bytes than blob length 2 in blob.sub()",
        ),
    ] {
        let result = engine.call(Function::BlobSub, &[blob, Value::Bytes(length), Value::Bytes(offset)]);
        assert_eq!(result, Err(Failure(expected.to_owned())));
    }
    let wrong = engine.text("xyz");
    for (function, values, expected) in [
        (Function::BlobEncode, [base64, upper, blob], "case UPPER is illegal with encoding BASE64"),
        (Function::BlobDecode, [hex, Value::Int(0), wrong], "cannot decode, illegal encoding beginning with \"xyz\""),
    ] {
        assert_eq!(engine.call(function, &values), Err(Failure(format!("vmod blob error: {expected}"))));
    }

    engine.call_on(Some(0), Function::Blob, &[hex, encoded]).unwrap();
    let Ok(Called::Value(text)) = engine.call_on(Some(0), Function::BlobEncodeObject, &[base64, default]) else {
        panic!()
    };
    assert_eq!(engine.string(text).as_deref(), Some("Yf9i"));
    let Ok(Called::Value(blob)) = engine.call_on(Some(0), Function::BlobGet, &[]) else { panic!() };
    assert_eq!(engine.value(Function::BlobLength, &[blob]), Value::Int(3));
}

#[tokio::test(start_paused = true)]
async fn a_sleep_does_not_hold_up_the_loop() {
    let mut engine = Engine::new(Method::Recv);
    let start = tokio::time::Instant::now();
    assert_eq!(engine.waited(Function::VtcSleep, &[Value::Duration(2.5)]).await, Ok(Value::Void));
    assert_eq!(start.elapsed().as_secs_f64().round(), 3.0);
    assert_eq!(engine.value(Function::VtcSleep, &[Value::Duration(-1.0)]), Value::Void);
    let (version, authority) = (engine.text("v2"), engine.text("a.b"));
    let ends = ["1.2.3.5:5", "1.2.3.4:80"].map(|end| end.parse::<std::net::SocketAddr>().unwrap());
    let [client, server] = ends.map(|end| Value::Ip(Some((end.ip(), end.port()))));
    let header = engine.value(Function::VtcProxyHeader, &[version, client, server, authority]);
    assert_eq!(engine.value(Function::BlobLength, &[header]), Value::Int(34));
}

#[test]
fn a_pending_wait_is_polled_without_a_runtime_of_its_own() {
    let mut engine = Engine::new(Method::Recv);
    engine.wait(Box::pin(async {
        let finish: Finish = Box::new(|_, _| Ok(Value::Int(1)));
        finish
    }));
    let mut pending = engine.pending.take().unwrap();
    let Poll::Ready(finish) = pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("not ready")
    };
    assert_eq!(finish(&mut engine, &mut Scratch::new(0)), Ok(Value::Int(1)));
}
