//! The same command line gives the same output and exit status as the stock program, on the same log.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use shm::log::{LogBuffer, LogConfiguration, LogId, LogRing};
use shm::vsc::Publisher;
use shm::vsm::{MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY, recreate_directory};
use surface::tag::Tag;
use tools::Streams;

type Tool = fn(&[OsString], &mut Streams) -> i32;

/// Where a stock program is; says so when it is not installed.
fn stock(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|directory| directory.join(program)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: needs {program}");
    }
    found
}

struct Ran {
    status: i32,
    output: Vec<u8>,
    error: String,
}

fn run_ours(tool: Tool, args: &[&str], input: &[u8]) -> Ran {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut input = input;
    let mut streams = Streams { input: &mut input, output: &mut output, error: &mut error, program: false };
    let status = tool(&args, &mut streams);
    Ran { status, output, error: String::from_utf8_lossy(&error).into_owned() }
}

fn run_stock(program: &Path, args: &[&str]) -> Ran {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { status: output.status.code().unwrap_or(-1), output: output.stdout, error }
}

#[track_caller]
fn compare(program: &Path, tool: Tool, args: &[&str]) {
    let (theirs, ours) = (run_stock(program, args), run_ours(tool, args, b""));
    assert_eq!(ours.status, theirs.status, "{args:?}: {} {}", ours.error, theirs.error);
    if ours.output != theirs.output {
        let (ours, theirs) = (String::from_utf8_lossy(&ours.output), String::from_utf8_lossy(&theirs.output));
        let different = ours.lines().zip(theirs.lines()).position(|(ours, theirs)| ours != theirs);
        let at = different.unwrap_or(ours.lines().count().min(theirs.lines().count()));
        let (ours, theirs) = (ours.lines().nth(at), theirs.lines().nth(at));
        panic!("{args:?}: line {} differs\n  ours: {ours:?}\ntheirs: {theirs:?}", at + 1);
    }
}

/// A directory as a server would keep it, with a log of requests of every kind and some nonsense.
fn written_directory() -> tempfile::TempDir {
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
            block.set(index, random.r#gen::<u64>() >> random.gen_range(0..64));
        }
        if ident == "VBE.boot.a_rather_long_name" {
            publisher.publish(section, "VBE.hidden.x").unwrap().hide(true);
        }
    }
    let ring = LogRing::publish(&worker, 1 << 22).unwrap();
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
        for _ in 0..random.gen_range(0..3) {
            vxid += 1;
            ring.write_fmt(Tag::Link, LogId::client(session), format_args!("req {vxid} rxreq"));
            write_request(ring, random, &mut vxid, session, "rxreq", 0);
        }
        ring.write(Tag::SessClose, LogId::client(session), b"REM_CLOSE 0.010");
        if random.gen_range(0..10) > 0 {
            ring.write(Tag::End, LogId::client(session), b"");
        }
    }
}

fn write_request(ring: &LogRing, random: &mut SmallRng, vxid: &mut u32, parent: u32, reason: &str, depth: u32) {
    const CALLS: [&str; 6] = ["HIT", "MISS", "PASS", "SYNTH", "PIPE", "PURGE"];
    const URLS: [&[u8]; 5] = [b"/", b"/a?b=c&d", b"http://x/y?z", b"?only", b"/\xc3\xa9\"\\ \x02"];
    let id = *vxid;
    let start = 1_700_000_000.0 + random.r#gen::<f64>() * 1000.0;
    let mut log = LogBuffer::new(ring);
    log.start(LogId::client(id), start);
    log.record_fmt(Tag::Begin, format_args!("req {parent} {reason}"));
    if random.gen_range(0..20) == 0 {
        log.record(Tag::HttpGarbage, b"GET\x00");
    }
    log.timestamp("Start", start);
    log.record_fmt(Tag::ReqStart, format_args!("192.0.2.{} 4711 a0", random.gen_range(1..9)));
    log.record(Tag::ReqMethod, b"GET");
    log.record(Tag::ReqURL, URLS[random.gen_range(0..URLS.len())]);
    log.record(Tag::ReqProtocol, b"HTTP/1.1");
    log.record(Tag::ReqHeader, b"Host: www.example.com");
    log.record(Tag::ReqHeader, b"User-agent:   tester/1.0 (\"quoted\")");
    log.record(Tag::ReqHeader, b"user-Agent: tester/2.0");
    log.record(Tag::ReqHeader, b"Authorization: Basic am9lOnNlY3JldA==");
    log.record_fmt(Tag::VCLLog, format_args!("key: {id}"));
    log.record(Tag::Hash, b"/hash\x00");
    let call = CALLS[random.gen_range(0..CALLS.len())];
    log.record(Tag::VCLCall, call.as_bytes());
    if call == "PIPE" {
        log.record(Tag::VCLReturn, b"pipe");
        log.record(Tag::PipeAcct, b"83 155 17 248");
    }
    if matches!(call, "MISS" | "PASS" | "PIPE") {
        *vxid += 1;
        let child = *vxid;
        let reason = ["fetch", "pass", "bgfetch", "pipe"][random.gen_range(0..4)];
        log.record_fmt(Tag::Link, format_args!("bereq {child} {reason}"));
        write_fetch(ring, random, vxid, id, reason);
    }
    log.timestamp("Process", start + 0.25);
    if depth < 4 && random.gen_range(0..3) == 0 {
        *vxid += 1;
        let reason = if random.r#gen() { "esi" } else { "restart" };
        log.record_fmt(Tag::Link, format_args!("req {} {reason}", *vxid));
        if reason == "restart" {
            log.record(Tag::VCLReturn, b"restart");
        }
        write_request(ring, random, vxid, id, reason, depth + 1);
    }
    log.record_fmt(Tag::RespStatus, format_args!("{}", random.gen_range(200..600)));
    log.record(Tag::RespHeader, b"Content-Type: text/html");
    log.timestamp("Resp", start + random.r#gen::<f64>());
    log.record_fmt(Tag::ReqAcct, format_args!("80 0 80 200 {} 1434", random.gen_range(0..3)));
    if random.gen_range(0..30) > 0 {
        log.record(Tag::End, b"");
    }
}

fn write_fetch(ring: &LogRing, random: &mut SmallRng, vxid: &mut u32, parent: u32, reason: &str) {
    let id = *vxid;
    let start = 1_700_000_000.0 + random.r#gen::<f64>() * 1000.0;
    let mut log = LogBuffer::new(ring);
    log.start(LogId::backend(id), start);
    log.record_fmt(Tag::Begin, format_args!("bereq {parent} {reason}"));
    log.timestamp("Start", start);
    log.record(Tag::BereqMethod, b"GET");
    log.record(Tag::BereqURL, b"/origin");
    log.record(Tag::BackendOpen, b"24 boot.default 198.51.100.1 80 198.51.100.2 4712 connect");
    log.record(Tag::BereqHeader, b"Host: origin.example.com");
    log.timestamp("Beresp", start + 0.001_5);
    if random.gen_range(0..4) == 0 {
        *vxid += 1;
        log.record_fmt(Tag::Link, format_args!("bereq {} retry", *vxid));
        write_fetch(ring, random, vxid, id, "retry");
    }
    log.record_fmt(Tag::BerespStatus, format_args!("{}", random.gen_range(200..600)));
    log.record(Tag::BerespHeader, b"Content-Type: text/html");
    log.timestamp("BerespBody", start + random.r#gen::<f64>());
    log.record(Tag::BereqAcct, b"145 0 145 128 120 248");
    log.record(Tag::End, b"");
}

#[test]
fn log_prints_what_varnishlog_prints() {
    let Some(program) = stock("varnishlog") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    for grouping in ["raw", "vxid", "request", "session"] {
        for more in [
            "",
            "-v",
            "-b",
            "-c",
            "-E",
            "-i ReqURL,Resp*",
            "-x Timestamp -x Hash",
            "-I ReqHeader:agent",
            "-X tester -i Req*",
            "-C -I reqheader:AGENT -x ReqURL",
            "-q RespStatus>=500",
            "-q ReqURL~a -q BerespStatus==404",
            "-C -q VCL_call~hit -v",
            "-k 7",
            "-q {2+}BerespStatus>=300 -i Begin",
        ] {
            let mut args = vec!["-n", name, "-d", "-g", grouping];
            args.extend(more.split(' ').filter(|word| !word.is_empty()));
            compare(&program, tools::log_to, &args);
        }
    }
}

#[test]
fn queries_select_what_varnishlog_selects() {
    let Some(program) = stock("varnishlog") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    for query in [
        "ReqHeader:user-agent eq 'tester/2.0'",
        "ReqHeader:user-agent[1] eq 'tester/2.0'",
        "Timestamp:Resp[2] > 0.5",
        "Timestamp:Process[3] == 0.25",
        "not (VCL_call eq HIT or VCL_call eq MISS) and RespStatus < 400",
        "vxid == 0 and CLI",
        "vxid <= 150",
        "{1}ReqAcct[5] != 0",
        "*URL ~ '[?]'",
        "Begin[3] eq esi",
        "VCL_Log:key > 200 # comment\nRespStatus == 200",
        "Hash ~ hash",
        "ReqURL",
        "",
        "ReqURL ==",
        "ReqURL eq \"",
        "Foo",
        "ReqURL ~ '('",
    ] {
        compare(&program, tools::log_to, &["-n", name, "-d", "-g", "request", "-q", query]);
        compare(&program, tools::log_to, &["-n", name, "-d", "-g", "raw", "-q", query]);
    }
}

#[test]
fn log_files_are_the_same_in_both_directions() {
    let Some(program) = stock("varnishlog") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (theirs, ours) = (file("theirs"), file("ours"));
    for more in ["-g raw", "-g request -b", "-g vxid -i ReqURL,Begin,End", "-g session -A"] {
        let args = |out: &str| {
            let mut args = vec!["-n".to_owned(), name.to_owned(), "-d".to_owned(), "-w".to_owned(), out.to_owned()];
            args.extend(more.split(' ').map(str::to_owned));
            args
        };
        let (their_args, our_args) = (args(&theirs), args(&ours));
        let ran = run_stock(&program, &their_args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.status, 0, "{}", ran.error);
        let ran = run_ours(tools::log_to, &our_args.iter().map(String::as_str).collect::<Vec<_>>(), b"");
        assert_eq!((ran.status, ran.error.as_str()), (0, ""));
        assert_eq!(std::fs::read(&theirs).unwrap(), std::fs::read(&ours).unwrap(), "{more}");
    }
    run_ours(tools::log_to, &["-n", name, "-d", "-g", "raw", "-w", &ours], b"");
    for more in [&["-g", "request"][..], &["-g", "vxid", "-L", "3"], &["-g", "vxid", "-T", "0"], &["-g", "session"]] {
        let mut args = vec!["-r", &ours];
        args.extend(more);
        compare(&program, tools::log_to, &args);
    }
    // A pipe is read like the file.
    let bytes = std::fs::read(&ours).unwrap();
    let piped = run_ours(tools::log_to, &["-r", "-", "-g", "request"], &bytes);
    assert_eq!(piped.output, run_ours(tools::log_to, &["-r", &ours, "-g", "request"], b"").output);
    std::fs::write(&theirs, b"no log").unwrap();
    compare(&program, tools::log_to, &["-r", &theirs]);
}

#[test]
fn ncsa_prints_what_varnishncsa_prints() {
    let Some(program) = stock("varnishncsa") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let everything = "%b|%D|%H|%h|%I|%l|%m|%O|%q|%r|%s|%t|%T|%U|%u|%{User-agent}i|%{Content-Type}o|%{none}i|\
                      %{%Y-%m-%d %H:%M:%S}t|%{sec}t|%{msec}t|%{usec}t|%{msec_frac}t|%{usec_frac}t|%{s}T|%{ms}T|%{us}T|\
                      %{Varnish:time_firstbyte}x|%{Varnish:hitmiss}x|%{Varnish:handling}x|%{Varnish:side}x|\
                      %{Varnish:vxid}x|%{VCL_Log:key}x|%{VCL_Log:none}x|%{VSL:Timestamp}x|%{VSL:Timestamp:Resp[2]}x|\
                      %{VSL:ReqHeader:host}x|%{VSL:Begin[3]}x|%{VSL:Begin[9]}x|\\t\\n\\x";
    for sides in ["", "-b", "-c", "-b -c", "-E", "-g request", "-b -g request", "-j", "-j -b -E", "-q RespStatus<400"] {
        for format in [None, Some(everything)] {
            let mut args = vec!["-n", name, "-d"];
            args.extend(sides.split(' ').filter(|word| !word.is_empty()));
            args.extend(format.iter().flat_map(|format| ["-F", format]));
            compare(&program, tools::ncsa_to, &args);
        }
    }
    for wrong in ["%Z", "%{x", "%{X}T", "%{Foo}x", "%{VSL:Foo}x", "%{VSL:ReqURL[0]}x", "%{VSL:Hash}x"] {
        compare(&program, tools::ncsa_to, &["-n", name, "-d", "-F", wrong]);
    }
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-g", "session"]);
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-F", "a", "-F", "b"]);
}

#[test]
fn stat_prints_what_varnishstat_prints() {
    let Some(program) = stock("varnishstat") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    for more in [
        "-1",
        "-1 -r",
        "-l",
        "-1 -f MAIN.cache_* -f MGT.*",
        "-1 -f ^MAIN.* -f ^VBE.*",
        "-1 -I *.happy -X *",
        "-1 -X *.[a-f]*",
        "-1 -f nothing",
        "-1 word",
    ] {
        let mut args = vec!["-n", name];
        args.extend(more.split(' '));
        compare(&program, tools::stat_to, &args);
    }
    for form in ["-j", "-x"] {
        // The line with the time may differ.
        let without_time = |ran: Ran| -> Vec<String> {
            let text = String::from_utf8(ran.output).unwrap();
            text.lines().filter(|line| !line.contains("timestamp")).map(str::to_owned).collect()
        };
        let theirs = without_time(run_stock(&program, &["-n", name, form]));
        assert_eq!(without_time(run_ours(tools::stat_to, &["-n", name, form], b"")), theirs);
    }
}

#[test]
fn a_server_that_is_not_there_gets_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_str().unwrap();
    let cases: [(Tool, &str, i32); 4] = [
        (tools::log_to, "VSM: Could not get hold of varnishd, is it running?\n", 1),
        (tools::ncsa_to, "VSM: Could not get hold of varnishd, is it running?\n", 1),
        (tools::stat_to, "Could not get hold of varnishd, is it running?\n", 1),
        (tools::adm_to, "Could not get hold of varnishd, is it running?\n", 2),
    ];
    for (tool, message, status) in cases {
        let ran = run_ours(tool, &["-n", name, "-t", "0"], b"");
        assert_eq!((ran.error.as_str(), ran.status), (message, status));
        for wrong in ["-Z", "--nonsense"] {
            let ran = run_ours(tool, &[wrong], b"");
            let first = ran.error.lines().next().unwrap_or_default();
            assert!(first.contains("invalid option") && first.contains(wrong.trim_start_matches('-')), "{first}");
            assert_eq!(ran.status, 1);
        }
        let ran = run_ours(tool, &["--help"], b"");
        assert!(ran.status == 0 && ran.output.starts_with(b"Usage: "), "{}", ran.error);
    }
}

/// A stock varnishd on loopback, with an origin behind it.
struct Varnishd {
    process: Child,
    directory: tempfile::TempDir,
}

impl Varnishd {
    fn start() -> Option<Varnishd> {
        let program = stock("varnishd")?;
        let directory = tempfile::tempdir().unwrap();
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = origin.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut client in origin.incoming().map_while(Result::ok) {
                let mut bytes = [0; 4096];
                let _ = client.read(&mut bytes);
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
            }
        });
        let work = directory.path().join("work");
        let process = Command::new(program)
            .args(["-F", "-a", "127.0.0.1:0", "-T", "127.0.0.1:0", "-j", "none", "-l", "2m", "-s", "malloc,8m"])
            .args(["-b", &format!("127.0.0.1:{port}"), "-n"])
            .arg(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Varnishd { process, directory })
    }

    fn name(&self) -> String {
        self.directory.path().join("work").to_str().unwrap().to_owned()
    }

    /// Asks until the worker runs.
    fn wait(&self) {
        for _ in 0..600 {
            let ran = run_ours(tools::adm_to, &["-n", &self.name(), "-t", "10", "status"], b"");
            if ran.output == b"Child in state running\n" {
                return;
            }
            std::thread::yield_now();
        }
        panic!("varnishd does not start");
    }
}

impl Drop for Varnishd {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.process.id() as i32),
            nix::sys::signal::Signal::SIGTERM,
        );
        let _ = self.process.wait();
    }
}

#[test]
fn our_tools_attach_to_a_stock_server() {
    let Some(server) = Varnishd::start() else { return };
    let (Some(varnishlog), Some(varnishadm)) = (stock("varnishlog"), stock("varnishadm")) else { return };
    server.wait();
    let name = server.name();
    let listening = run_ours(tools::adm_to, &["-n", &name, "debug.listen_address"], b"");
    let text = String::from_utf8(listening.output).unwrap();
    let port = text.split_whitespace().nth(2).unwrap();
    for path in ["/a", "/a", "/b?c"] {
        let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The log of the requests is complete once their sessions have ended; the CLI's own goes on.
    let sessions = ["-n", &name, "-d", "-g", "session", "-i", "End"];
    while run_ours(tools::log_to, &sessions, b"").output.windows(7).filter(|w| w == b"Session").count() < 3 {
        std::thread::yield_now();
    }
    for grouping in ["vxid", "request", "session"] {
        compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", grouping]);
    }
    compare(&varnishlog, tools::log_to, &["-n", &name, "-d", "-g", "raw", "-x", "CLI"]);
    let hits = run_ours(tools::stat_to, &["-n", &name, "-j", "-f", "MAIN.cache_*"], b"");
    let hits: serde_json::Value = serde_json::from_slice(&hits.output).unwrap();
    assert_eq!(hits["counters"]["MAIN.cache_hit"]["flag"], "c");
    for command in [
        &["status"][..],
        &["nonsense"],
        &["param.show", "nosuch"],
        &["param.show", "default_ttl"],
        &["param.set", "default_ttl", "a b"],
        &["ban", "req.url", "~", "\"quoted\\\""],
        &["vcl.list", "too", "many", "words"],
    ] {
        let mut args = vec!["-n", &name];
        args.extend(command);
        compare(&varnishadm, tools::adm_to, &args);
        args.insert(0, "-p");
        compare(&varnishadm, tools::adm_to, &args);
    }
    let ran = run_ours(tools::adm_to, &["-n", &name, ""], b"");
    assert_eq!((ran.status, ran.error.as_str()), (1, "varnishadm: the command is empty\n"));
    let batch = b"status\n\nnonsense\nvcl.inline x << EOT\nvcl 4.1;\nbackend default none;\nEOT\nparam.show nosuch";
    let ran = run_ours(tools::adm_to, &["-n", &name], batch);
    let text = String::from_utf8(ran.output).unwrap();
    assert_eq!(
        text,
        "Child in state running\nUnknown request.\nType 'help' for more info.\n\n\n\
         Unknown parameter \"nosuch\".\n"
    );
    assert_eq!(ran.status, 0);
    let secret = format!("{name}/_.secret");
    let address = std::fs::read_dir(format!("{name}/_.vsm_mgt"))
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .find_map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let line = text.lines().next().unwrap_or_default().to_owned();
            line.strip_prefix("127.0.0.1 ").map(|port| format!("127.0.0.1:{port}"))
        })
        .unwrap();
    let wrong = server.directory.path().join("wrong");
    std::fs::write(&wrong, "x").unwrap();
    for args in [
        &["-T", &address, "-S", &secret, "status"][..],
        &["-T", &address, "status"],
        &["-T", &address, "-S", wrong.to_str().unwrap(), "status"],
        &["-T", &address, "-S", "/nonexistent", "status"],
        &["-T", "127.0.0.1:1", "-S", &secret, "status"],
        &["-n", &name, "-T", &address, "status"],
        &["-n", &name, "quit"],
    ] {
        compare(&varnishadm, tools::adm_to, args);
    }
}
