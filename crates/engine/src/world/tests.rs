//! Everything that the compiler lets a method access exists in its world: every row of `surface`'s
//! tables is read, set and unset in every method that the row names, in every generation of the
//! language. A new variable without a match arm fails here.

use super::*;
use crate::fetch::legacy_order::{ClientRequest, PreparedRequest};
use crate::fetch::mode::FetchMode;
use crate::fetch::task::tests::{event_loop, message, order};
use crate::request::delivered::Delivered;
use crate::request::task::PipeRequest;
use crate::session::Session;
use crate::vcl_life;
use std::sync::Arc;
use store::{Object, ObjectAttributes};
use surface::closed_set::VclState;
use surface::vcl::legacy::{Language, Means};
use surface::vcl::{Generation, HttpObject, METHODS, Type, VARIABLES, Var, VclObject, at};
use vcl_run::host::Host;
use vcl_run::value::{Scratch, Text, Value};

/// Both sides and housekeeping, with all state that VCL may see of them.
struct Stage {
    context: Rc<Loop>,
    vcl: Arc<LoadedVcl>,
    session: SessionView,
    request: Task,
    fetch: FetchTask,
    housekeeping: TaskState,
    log: LogBuffer,
}

impl Stage {
    fn new(generation: Generation) -> Stage {
        let context = event_loop();
        let text = match generation {
            Generation::V4 => "vcl 4.1; backend default { .host = \"10.0.0.1\"; }",
            _ => "backend default { .host = \"10.0.0.1\"; }",
        };
        let source = vcl::SourceText { name: "<test>", text: text.as_bytes() };
        let options = vcl::CompileOptions { generation: Some(generation), ..vcl::CompileOptions::default() };
        let program = vcl::compile(&source, &options).unwrap().program;
        let vcl = vcl_life::load(&context.engine, "boot", program, VclState::Auto, 1.0).unwrap();

        let mut order = order(&context);
        order.order.gzip_support &= vcl.generation >= Generation::V3;
        order.order.vcl = Arc::clone(&vcl);
        order.stale = Some(object(&context));
        if generation.is_legacy() {
            order.client = Some(Box::new(lent()));
        }
        let session = Session::open(&context, order.order.peer.clone(), "HTTP/1").view();
        let mut fetch = FetchTask::new(&context, order, tokio::sync::oneshot::channel().0);
        fetch.attempt.beresp = message(b"");
        fetch.attempt.stale_head = message(b"");
        let log = LogBuffer::new(&context.engine.ring);
        let request = Task { request: message(b"/"), response: message(b""), ..Task::default() };
        Stage { vcl, session, request, fetch, housekeeping: TaskState::new(), log, context }
    }

    /// The world of a method as it is when the method runs.
    fn world(&mut self, method: Method) -> World<'_> {
        let context = &self.context;
        let bit = method.row().bit;
        let side = if bit & at::CLIENT != 0 {
            self.request.found = Default::default();
            if bit & (at::HIT | at::DELIVER) != 0 {
                self.request.found.take_up(Delivered::new(object(context)).unwrap());
            }
            if method == Method::Pipe {
                self.request.found.pipe = Some(Box::new(piped(context)));
            }
            if bit & (at::MISS | at::PASS) != 0 && self.vcl.is_legacy() {
                let mode = FetchMode::Fetch;
                let request = &self.request.request;
                let prepared = PreparedRequest::new(7, mode, request, self.vcl.generation, true, b"192.0.2.7");
                self.request.found.prepared = Some(Box::new(prepared));
            }
            Side::Client(ClientSide { context, session: &mut self.session, task: &mut self.request })
        } else if bit & at::BACKEND != 0 {
            self.fetch.attempt.verdict = Default::default();
            Side::Fetch(FetchSide { context, task: &mut self.fetch })
        } else {
            Side::Housekeeping(&mut self.housekeeping)
        };
        World::new((&context.engine, &self.vcl), (method, 1.0), &mut self.log, side)
    }
}

fn object(context: &Loop) -> Arc<Object> {
    let mut head = Vec::new();
    message(b"").encode(&mut head);
    context.engine.cache.stores()[0].create(&ObjectAttributes::default(), &head).unwrap()
}

fn piped(context: &Loop) -> PipeRequest {
    PipeRequest {
        vxid: 7,
        log: LogBuffer::new(&context.engine.ring),
        bereq: message(b"/"),
        director: None,
        connect_timeout: None,
        task_deadline: None,
        started: 1.0,
        proxy_header_bytes: 0,
    }
}

fn lent() -> ClientRequest {
    ClientRequest {
        message: message(b"/"),
        original: message(b"/"),
        choices: Default::default(),
        restarts: 0,
        esi_level: 0,
        vxid: 7,
        vmod_state: TaskState::new(),
        response_status: 200,
    }
}

/// Access of methods to a variable in one generation.
struct Access {
    generation: Generation,
    name: &'static str,
    var: Var,
    kind: Type,
    read: u16,
    write: u16,
    unset: u16,
}

impl Access {
    fn in_which(&self, methods: u16) -> impl Iterator<Item = Method> {
        let language = Language::of(self.generation);
        let has = move |method| language.is_none_or(|language| language.method(method).is_some());
        METHODS.iter().filter(move |row| methods & row.bit != 0 && has(row.method)).map(|row| row.method)
    }

    /// The message behind a family of headers.
    fn http(&self) -> HttpObject {
        match self.var.object() {
            VclObject::Req => HttpObject::Req,
            VclObject::ReqTop => HttpObject::ReqTop,
            VclObject::Bereq => HttpObject::Bereq,
            VclObject::Beresp => HttpObject::Beresp,
            VclObject::Obj | VclObject::ObjStale => HttpObject::Obj,
            VclObject::Resp => HttpObject::Resp,
            other => panic!("{other:?} has no headers"),
        }
    }
}

fn every_access() -> Vec<Access> {
    let mut all: Vec<Access> = VARIABLES
        .iter()
        .map(|row| Access {
            generation: Generation::V4,
            name: row.name,
            var: row.var,
            kind: row.kind,
            read: row.read,
            write: row.write,
            unset: row.unset,
        })
        .collect();
    for &generation in Generation::ALL {
        for row in Language::of(generation).map_or(&[][..], |language| language.variables) {
            let (var, kind) = match row.means {
                Means::Variable(var) => (var, row.kind),
                Means::Port(var) => (var, Type::Ip),
                Means::Healthy(var) => (var, Type::Backend),
                Means::Hash | Means::Nothing | Means::True => continue,
            };
            let unset = if kind == Type::Header { row.write } else { 0 };
            all.push(Access { generation, name: row.name, var, kind, read: row.read, write: row.write, unset });
        }
    }
    all
}

fn kind_of(value: Value) -> Option<Type> {
    Some(match value {
        Value::Text(_) => Type::String,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Real(_) => Type::Real,
        Value::Duration(_) => Type::Duration,
        Value::Time(_) => Type::Time,
        Value::Bytes(_) => Type::Bytes,
        Value::Ip(_) => Type::Ip,
        Value::Blob(_) => Type::Blob,
        Value::Backend(_) => Type::Backend,
        Value::Stevedore(_) => Type::Stevedore,
        Value::Http(_) => Type::Http,
        _ => return None,
    })
}

fn some_value(kind: Type, scratch: &mut Scratch) -> Value {
    match kind {
        Type::String | Type::Body => Value::Text(scratch.put(b"text")),
        Type::Bool => Value::Bool(true),
        Type::Int => Value::Int(404),
        Type::Duration => Value::Duration(3.0),
        Type::Time => Value::Time(3.0),
        Type::Bytes => Value::Bytes(3),
        Type::Backend => Value::Backend(None),
        Type::Stevedore => Value::Stevedore(None),
        other => panic!("nothing of type {} can be set", other.name()),
    }
}

/// Runs `attempt` for every variable in every method where that is allowed.
fn try_all(methods: impl Fn(&Access) -> u16, attempt: impl Fn(&Access, &mut World<'_>, &mut Scratch, &str)) {
    for &generation in Generation::ALL {
        let mut stage = Stage::new(generation);
        let mut scratch = Scratch::new(1 << 20);
        for access in every_access().iter().filter(|access| access.generation == generation) {
            for method in access.in_which(methods(access)) {
                let place = format!("{} in {} of {}", access.name, method.row().name, generation.name());
                attempt(access, &mut stage.world(method), &mut scratch, &place);
            }
        }
    }
}

#[test]
fn readable_variables_exist_with_their_type() {
    try_all(
        |access| access.read,
        |access, world, scratch, place| match (access.kind, access.var.object()) {
            (Type::Header, _) => assert!(world.header(access.http(), "Foreign").is_some(), "{place}"),
            (kind, VclObject::Storage) => {
                assert_eq!(kind_of(world.storage_property(Some(0), access.var)), Some(kind), "{place}");
            }
            (kind, _) => {
                let value = world.read(access.var, scratch).unwrap_or_else(|failure| panic!("{place}: {failure:?}"));
                assert_eq!(kind_of(value), Some(kind), "{place}");
            }
        },
    );
}

#[test]
fn settable_variables_can_be_set() {
    try_all(
        |access| access.write,
        |access, world, scratch, place| {
            if access.kind == Type::Header {
                assert!(world.logged(access.http()).is_some(), "{place}");
                return;
            }
            let value = some_value(access.kind, scratch);
            for append in [false, true] {
                assert_ne!(world.write(access.var, value, append, scratch), Err(out_of_reach()), "{place}");
            }
        },
    );
}

#[test]
fn unsettable_variables_can_be_unset() {
    try_all(
        |access| access.unset,
        |access, world, _, place| match access.kind {
            Type::Header => assert!(world.logged(access.http()).is_some(), "{place}"),
            _ => assert_eq!(world.unset(access.var), Ok(()), "{place}"),
        },
    );
}

#[test]
fn variables_of_other_methods_are_inaccessible() {
    let mut stage = Stage::new(Generation::V4);
    let scratch = &mut Scratch::new(1 << 20);
    for (method, var) in [
        (Method::Recv, Var::BerespTtl),
        (Method::BackendFetch, Var::RespStatus),
        (Method::BackendResponse, Var::SessTimeoutIdle),
        (Method::Init, Var::ReqUrl),
        (Method::Init, Var::ClientIp),
    ] {
        assert_eq!(stage.world(method).read(var, scratch), Err(out_of_reach()), "{var:?}");
        let value = Value::Text(scratch.put(b"text"));
        assert_eq!(stage.world(method).write(var, value, false, scratch), Err(out_of_reach()), "{var:?}");
        assert_eq!(stage.world(method).unset(var), Err(out_of_reach()), "{var:?}");
    }
    assert_eq!(stage.world(Method::Init).set_header(HttpObject::Req, "X", Text::EMPTY, scratch), Err(no_request()));
}
