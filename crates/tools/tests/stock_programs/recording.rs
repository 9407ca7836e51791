//! A log of requests of every kind and some nonsense, in the format of a server.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use shm::layout::Layout;
use shm::log::{LogBuffer, LogConfiguration, LogId, LogRing};
use shm::vsc::Publisher;
use shm::vsm::{MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY, recreate_directory};
use surface::tag::Tag;

/// A server's directory, with a log of requests of every kind and some nonsense.
pub fn written_directory() -> tempfile::TempDir {
    written_in(Layout::V71)
}

/// The same with a log of this layout.
pub fn written_in(layout: Layout) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let writer = |name| {
        let path = directory.path().join(name);
        recreate_directory(&path, 0o755).unwrap();
        VsmWriter::create(&path).unwrap()
    };
    let manager = Publisher::new(&writer(MANAGER_DIRECTORY), 1 << 32);
    manager.publish(&surface::counter::MGT, "MGT").unwrap().set(0, 77);
    let worker = writer(WORKER_DIRECTORY);
    let publisher = Publisher::new(&worker, 1);
    let mut random = SmallRng::seed_from_u64(7);
    for (section, ident) in [
        (&surface::counter::MAIN, "MAIN"),
        (&surface::counter::SMA, "SMA.s0"),
        (&surface::counter::VBE, "VBE.boot.a_rather_long_name"),
    ] {
        let block = publisher.publish(section, ident).unwrap();
        for index in 0..section.counters.len() {
            block.set(index, random.random::<u64>() >> random.random_range(0..64));
        }
        if ident == "VBE.boot.a_rather_long_name" {
            publisher.publish(section, "VBE.hidden.x").unwrap().hide(true);
        }
    }
    let ring = LogRing::publish(&worker, 1 << 22, layout).unwrap();
    ring.configure(&LogConfiguration { mask: [0; 32], ..LogConfiguration::default() });
    write_log(&ring, &mut random);
    directory
}

fn write_log(ring: &LogRing, random: &mut SmallRng) {
    ring.write(Tag::CLI, LogId::NONE, b"Rd ping");
    ring.write(Tag::Debug, LogId::NONE, b"odd \x01\x7f\xff \"bytes\"");
    let mut vxid = 100;
    for _ in 0..150 {
        vxid += 1;
        let session = vxid;
        ring.write(Tag::Begin, LogId::client(session), b"sess 0 HTTP/1");
        for _ in 0..random.random_range(0..3) {
            vxid += 1;
            ring.write_fmt(Tag::Link, LogId::client(session), format_args!("req {vxid} rxreq"));
            write_request(ring, random, &mut vxid, session, "rxreq", 0);
        }
        ring.write(Tag::SessClose, LogId::client(session), b"REM_CLOSE 0.010");
        if random.random_range(0..10) > 0 {
            ring.write(Tag::End, LogId::client(session), b"");
        }
    }
}

fn write_request(ring: &LogRing, random: &mut SmallRng, vxid: &mut u64, parent: u64, reason: &str, depth: u32) {
    const CALLS: [&str; 6] = ["HIT", "MISS", "PASS", "SYNTH", "PIPE", "PURGE"];
    const URLS: [&[u8]; 5] = [b"/", b"/a?b=c&d", b"http://x/y?z", b"?only", b"/\xc3\xa9\"\\ \x02"];
    let id = *vxid;
    let start = 1_700_000_000.0 + random.random::<f64>() * 1000.0;
    let mut log = LogBuffer::new(ring);
    log.start(LogId::client(id), start);
    log.record_fmt(Tag::Begin, format_args!("req {parent} {reason}"));
    if random.random_range(0..20) == 0 {
        log.record(Tag::HttpGarbage, b"GET\x00");
    }
    log.timestamp("Start", start);
    log.record_fmt(Tag::ReqStart, format_args!("192.0.2.{} 4711 a0", random.random_range(1..9)));
    log.record(Tag::ReqMethod, b"GET");
    log.record(Tag::ReqURL, URLS[random.random_range(0..URLS.len())]);
    log.record(Tag::ReqProtocol, b"HTTP/1.1");
    log.record(Tag::ReqHeader, b"Host: www.example.com");
    log.record(Tag::ReqHeader, b"User-agent:   tester/1.0 (\"quoted\")");
    log.record(Tag::ReqHeader, b"user-Agent: tester/2.0");
    let credentials: [&[u8]; 6] = [
        b"Authorization: Basic am9lOnNlY3JldA==",
        b"authorization:basic am9lOnNlY3JldA",
        b"Authorization: Basic   am9l IA==",
        b"Authorization: Bearer am9l",
        b"Authorization: Basic !",
        b"authorization",
    ];
    log.record(Tag::ReqHeader, credentials[random.random_range(0..credentials.len())]);
    let odd: [&[u8]; 6] = [
        b"X-Odd:  \tpadded\t ",
        b"x-odd:",
        b"X-Odd : blank before the colon",
        b"X-Oddity: another",
        b"X-ODD: \xc3\xa9\xff \"quoted\" \\ \x01",
        b"Host:  second.example.com ",
    ];
    log.record(Tag::ReqHeader, odd[random.random_range(0..odd.len())]);
    log.record(Tag::VCLLog, [&b"KEY: shouted"[..], b"key:  first ", b"keyword: x", b"key"][random.random_range(0..4)]);
    log.record_fmt(Tag::VCLLog, format_args!("key: {id}"));
    log.record(Tag::Hash, b"/hash\x00");
    log.record(Tag::H2RxHdr, b"\x00\x01\x02binary");
    let call = CALLS[random.random_range(0..CALLS.len())];
    log.record(Tag::VCLCall, call.as_bytes());
    if call == "PIPE" {
        log.record(Tag::VCLReturn, b"pipe");
        log.timestamp("Pipe", start + 0.125);
        log.timestamp("PipeSess", start + 0.5);
        log.record(Tag::PipeAcct, b"83 155 17 248");
    }
    if matches!(call, "MISS" | "PASS" | "PIPE") {
        *vxid += 1;
        let child = *vxid;
        let reason = ["fetch", "pass", "bgfetch", "pipe"][random.random_range(0..4)];
        log.record_fmt(Tag::Link, format_args!("bereq {child} {reason}"));
        write_fetch(ring, random, vxid, id, reason);
    }
    log.timestamp("Process", start + 0.25);
    if depth < 4 && random.random_range(0..3) == 0 {
        *vxid += 1;
        let fragment = if ring.layout().states_depth() { format!("esi {}", depth + 1) } else { "esi".to_owned() };
        let reason = if random.random() { &fragment[..] } else { "restart" };
        log.record_fmt(Tag::Link, format_args!("req {} {reason}", *vxid));
        if reason == "restart" {
            log.record(Tag::VCLReturn, b"restart");
        }
        write_request(ring, random, vxid, id, reason, depth + 1);
    }
    log.record_fmt(Tag::RespStatus, format_args!("{}", random.random_range(200..600)));
    log.record(Tag::RespHeader, b"Content-Type: text/html");
    log.timestamp("Resp", start + random.random::<f64>());
    log.record_fmt(Tag::ReqAcct, format_args!("80 0 80 200 {} 1434", random.random_range(0..3)));
    if random.random_range(0..30) > 0 {
        log.record(Tag::End, b"");
    }
}

fn write_fetch(ring: &LogRing, random: &mut SmallRng, vxid: &mut u64, parent: u64, reason: &str) {
    let id = *vxid;
    let start = 1_700_000_000.0 + random.random::<f64>() * 1000.0;
    let mut log = LogBuffer::new(ring);
    log.start(LogId::backend(id), start);
    log.record_fmt(Tag::Begin, format_args!("bereq {parent} {reason}"));
    log.timestamp("Start", start);
    log.record(Tag::BereqMethod, b"GET");
    log.record(Tag::BereqURL, b"/origin");
    log.record(Tag::BackendOpen, b"24 boot.default 198.51.100.1 80 198.51.100.2 4712 connect");
    log.record(Tag::BereqHeader, b"Host: origin.example.com");
    log.timestamp("Beresp", start + 0.001_5);
    if random.random_range(0..4) == 0 {
        *vxid += 1;
        log.record_fmt(Tag::Link, format_args!("bereq {} retry", *vxid));
        write_fetch(ring, random, vxid, id, "retry");
    }
    log.record_fmt(Tag::BerespStatus, format_args!("{}", random.random_range(200..600)));
    log.record(Tag::BerespHeader, b"Content-Type: text/html");
    log.timestamp("BerespBody", start + random.random::<f64>());
    log.record(Tag::BereqAcct, b"145 0 145 128 120 248");
    log.record(Tag::End, b"");
}

/// The records of the stock program from [`written_directory`], as a file.
pub fn recorded_file(varnishlog: &Path) -> (tempfile::TempDir, String) {
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let file = format!("{name}/recorded");
    let ran = super::run_stock(varnishlog, &["-n", name, "-d", "-g", "raw", "-w", &file]);
    assert_eq!((ran.status, ran.error.as_str()), (0, ""));
    (directory, file)
}
