//! xkey, bodyaccess and tcp, through the single entry point.

use super::*;
use std::cell::RefCell;
use std::io;

#[test]
fn xkey_hands_the_list_to_the_cache() {
    let mut engine = Engine::new(Method::Recv);
    let list = engine.text("a b,c");
    assert_eq!(engine.value(Function::XkeyPurge, &[list]), Value::Int(7));
    assert_eq!(engine.value(Function::XkeySoftpurge, &[list]), Value::Int(7));
    assert_eq!(engine.records, ["a b,c Hard", "a b,c Soft { ttl: 0.0, grace: -1.0, keep: -1.0 }"]);
}

fn with_body(method: Method, body: &str) -> Engine {
    Engine { body: Some(Rc::new(body.as_bytes().to_vec())), ..Engine::new(method) }
}

#[test]
fn a_held_body_is_measured_matched_and_logged() {
    let mut engine = with_body(Method::Recv, "big body");
    assert_eq!(engine.value(Function::BodyaccessLenReqBody, &[]), Value::Int(8));
    assert_eq!(engine.value(Function::BodyaccessRematchReqBody, &[Value::Regex(0)]), Value::Int(1));
    engine.body = Some(Rc::new(b"a b".to_vec()));
    assert_eq!(engine.value(Function::BodyaccessRematchReqBody, &[Value::Regex(0)]), Value::Int(0));
    let prefix = engine.text("P:");
    for (length, expected) in
        [(2, vec!["Debug P:a ", "Debug P:b"]), (0, vec!["Debug P:a b"]), (-1, vec!["Debug P:a b"])]
    {
        engine.records.clear();
        engine.value(Function::BodyaccessLogReqBody, &[prefix, Value::Int(length)]);
        assert_eq!(engine.records, expected);
    }
}

#[test]
fn a_body_goes_into_the_hash_in_vcl_hash_only() {
    let mut engine = with_body(Method::Hash, "b");
    engine.value(Function::BodyaccessHashReqBody, &[]);
    assert_eq!(engine.records, ["hash b"]);
    let mut engine = with_body(Method::Recv, "b");
    engine.value(Function::BodyaccessHashReqBody, &[]);
    assert_eq!(engine.records, ["VCLError hash_req_body can only be used in vcl_hash{}"]);
    let mut engine = with_body(Method::Deliver, "b");
    assert_eq!(engine.value(Function::BodyaccessLenReqBody, &[]), Value::Int(-1));
    assert_eq!(engine.value(Function::BodyaccessRematchReqBody, &[Value::Regex(0)]), Value::Int(-1));
    assert_eq!(engine.records.len(), 2);
}

#[test]
fn a_body_that_is_not_held_is_an_error_in_the_log() {
    let mut engine = Engine::new(Method::Recv);
    assert_eq!(engine.value(Function::BodyaccessLenReqBody, &[]), Value::Int(-1));
    assert_eq!(engine.value(Function::BodyaccessRematchReqBody, &[Value::Regex(0)]), Value::Int(-1));
    let nothing = engine.text("");
    engine.value(Function::BodyaccessLogReqBody, &[nothing, Value::Int(200)]);
    engine.value(Function::BodyaccessHashReqBody, &[]);
    assert_eq!(engine.records, ["VCLError Unbuffered req.body"; 4]);
}

/// A socket that records the calls.
#[derive(Default)]
struct Socket {
    pace: RefCell<u32>,
    is_broken: bool,
}

impl Socket {
    fn answer<T>(&self, value: T) -> io::Result<T> {
        if self.is_broken { Err(io::ErrorKind::NotConnected.into()) } else { Ok(value) }
    }
}

impl SocketOptions for Socket {
    fn tcp_info(&self, descriptor: i32) -> io::Result<TcpInfo> {
        assert_eq!(descriptor, 7);
        self.answer(TcpInfo { snd_mss: 1448, rtt: 152_900, reordering: 3, ..TcpInfo::default() })
    }

    fn congestion(&self, _descriptor: i32) -> io::Result<String> {
        self.answer("reno".to_owned())
    }

    fn set_congestion(&self, _descriptor: i32, algorithm: &str) -> io::Result<()> {
        if algorithm == "reno" { self.answer(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn pace(&self, _descriptor: i32) -> io::Result<u32> {
        self.answer(*self.pace.borrow())
    }

    fn set_pace(&self, _descriptor: i32, bytes_per_second: u32) -> io::Result<()> {
        *self.pace.borrow_mut() = bytes_per_second;
        self.answer(())
    }

    fn set_send_buffer(&self, _descriptor: i32, bytes: u32) -> io::Result<(u64, u64)> {
        Ok((4096, u64::from(bytes) * 2))
    }

    fn set_type_of_service(&self, _descriptor: i32, _tos: u8) -> io::Result<()> {
        self.answer(())
    }
}

#[test]
fn a_connection_is_described_and_paced() {
    let socket = Rc::new(Socket::default());
    let mut engine = Engine { socket: Some(Rc::clone(&socket) as Rc<dyn SocketOptions>), ..Engine::new(Method::Recv) };
    assert_eq!(engine.value(Function::TcpGetEstimatedRtt, &[]), Value::Real(152.0));
    engine.value(Function::TcpDumpInfo, &[]);
    let (reno, other) = (engine.text("reno"), engine.text("an algorithm of another planet"));
    assert_eq!(engine.value(Function::TcpCongestionAlgorithm, &[reno]), Value::Int(0));
    assert_eq!(engine.value(Function::TcpCongestionAlgorithm, &[other]), Value::Int(-1));
    engine.value(Function::TcpSetSocketPace, &[Value::Int(1000)]);
    assert_eq!(*socket.pace.borrow(), 1_024_000);
    for (rate, bytes) in [(i64::MAX, u32::MAX), (-5, 0)] {
        engine.value(Function::TcpSetSocketPace, &[Value::Int(rate)]);
        assert_eq!(*socket.pace.borrow(), bytes);
    }
    assert_eq!(
        engine.records[..6],
        [
            "VCLLog tcpi: snd_mss=1448 rcv_mss=0 lost=0 retrans=0",
            "VCLLog tcpi2: pmtu=0 rtt=152900 rttvar=0 snd_cwnd=0 advmss=0 reordering=3",
            "VCLLog getsockopt() returned: reno",
            "VCLError TCP_CONGESTION setsockopt() for \"an algorithm of \" failed.",
            "VCLLog vmod-tcp: Socket paced to 1000 KB/s.",
            "VCLLog getsockopt() 0 1024000",
        ]
    );
}

#[test]
fn a_broken_connection_is_an_error_in_the_log_and_none_is_nothing() {
    let broken = Rc::new(Socket { is_broken: true, ..Socket::default() });
    let mut engine = Engine { socket: Some(broken), ..Engine::new(Method::Recv) };
    let reno = engine.text("reno");
    let calls = [
        (Function::TcpGetEstimatedRtt, Value::Absent, Value::Real(0.0)),
        (Function::TcpDumpInfo, Value::Absent, Value::Void),
        (Function::TcpCongestionAlgorithm, reno, Value::Int(-1)),
        (Function::TcpSetSocketPace, Value::Int(1), Value::Void),
    ];
    for (function, argument, expected) in calls {
        assert_eq!(engine.value(function, &[argument]), expected);
    }
    assert_eq!(engine.records.iter().filter(|record| record.starts_with("VCLError")).count(), 4);
    engine.records.clear();
    engine.socket = None;
    for (function, argument, expected) in calls {
        assert_eq!(engine.value(function, &[argument]), expected);
    }
    assert!(engine.records.is_empty());
}

const SAINTS: &[(&str, &str)] = &[("saintmode", "saintmode"), ("directors", "fallback"), ("saintmode", "saintmode")];

fn saints() -> Engine {
    let mut engine = Engine::with(Method::BackendResponse, SAINTS);
    let b0 = Value::Backend(Some(DirectorId(0)));
    let b1 = Value::Backend(Some(DirectorId(1)));
    engine.call_on(Some(0), Function::Saintmode, &[b0, Value::Int(2)]).unwrap();
    engine.call_on(Some(1), Function::Fallback, &[Value::Bool(false)]).unwrap();
    engine.call_on(Some(2), Function::Saintmode, &[b1, Value::Int(0)]).unwrap();
    engine
}

impl Engine {
    fn on(&mut self, instance: u32, name: Function) -> Value {
        match self.call_on(Some(instance), name, &[]) {
            Ok(Called::Value(value)) => value,
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn an_object_is_listed_for_the_backend_that_answered() {
    let mut engine = saints();
    engine.digest = Some([1; 32]);
    let list = |engine: &mut Engine| engine.value(Function::SaintmodeBlacklist, &[Value::Duration(20.0)]);
    list(&mut engine);
    engine.used = Some(DirectorId(0));
    list(&mut engine);
    list(&mut engine);
    assert_eq!(engine.on(0, Function::SaintmodeBlacklistCount), Value::Int(1), "an object counts once");
    assert_eq!(engine.on(0, Function::SaintmodeIsHealthy), Value::Bool(false));
    assert_eq!(engine.on(2, Function::SaintmodeIsHealthy), Value::Bool(true));
    engine.method = Method::Deliver;
    assert_eq!(engine.on(0, Function::SaintmodeIsHealthy), Value::Bool(false));
    engine.digest = None;
    assert_eq!(engine.on(0, Function::SaintmodeIsHealthy), Value::Bool(true), "another object");
    engine.value(Function::SaintmodeDenylist, &[Value::Duration(20.0)]);
    assert_eq!(
        engine.records,
        [
            "VCLError Error: saintmode.blacklist(): Saintmode not configured for this backend.",
            "VCLLog saintmode: object put on blacklist for backend b0 for 20.00 seconds",
            "VCLLog saintmode: object put on blacklist for backend b0 for 20.00 seconds",
            "VCLLog saintmode: unhealthy: object blacklisted for backend b0",
            "VCLLog saintmode: unhealthy: object blacklisted for backend b0",
            "VCLError saintmode.denylist() called outside of vcl_backend_response",
        ]
    );
}

#[test]
fn enough_objects_make_the_backend_sick_for_all_and_the_status_is_json() {
    let mut engine = saints();
    engine.used = Some(DirectorId(0));
    for digest in 1..3 {
        engine.digest = Some([digest; 32]);
        engine.value(Function::SaintmodeDenylist, &[Value::Duration(20.0)]);
    }
    engine.digest = Some([9; 32]);
    let director = engine.on(0, Function::SaintmodeBackend);
    assert_eq!(engine.value(Function::StdHealthy, &[director]), Value::Bool(false));
    assert_eq!(engine.records.last().unwrap(), "VCLLog saintmode: unhealthy: hit threshold for backend b0");
    let status = engine.value(Function::SaintmodeStatus, &[]);
    assert_eq!(
        engine.string(status).unwrap(),
        "{\n\t\"saintmode\": [\n\
         \t\t{ \"name\": \"a_saintmode\", \"backend\": \"b0\", \"count\": \"2\", \"threshold\": \"2\" },\n\
         \t\t{ \"name\": \"a_saintmode\", \"backend\": \"b1\", \"count\": \"0\", \"threshold\": \"0\" }\n\
         \t]\n}\n"
    );
}

#[test]
fn saint_mode_needs_a_backend_and_an_object() {
    let mut engine = Engine::with(Method::Init, SAINTS);
    for value in [Value::Backend(None), Value::Backend(Some(DirectorId(2))), Value::Absent] {
        assert!(engine.call_on(Some(0), Function::Saintmode, &[value, Value::Int(1)]).is_err());
    }
    engine.method = Method::BackendResponse;
    engine.value(Function::SaintmodeBlacklist, &[Value::Duration(1.0)]);
    assert_eq!(engine.records, ["VCLError saintmode.blacklist(): Saintmode is not configured"]);
}
