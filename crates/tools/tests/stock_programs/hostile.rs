//! Hostile bytes in every place that a program prints: the terminal interprets none of them.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use shm::log::{LogBuffer, LogConfiguration, LogId, LogRing};
use shm::vsc::Publisher;
use shm::vsm::{MANAGER_DIRECTORY, VsmWriter, WORKER_DIRECTORY, recreate_directory};
use surface::legible::is_commanding;
use surface::tag::{TAGS, Tag};

use super::{Ran, Tool, run_ours};

/// A window title, colours in one-byte and two-byte form, DEL, a forged line, a change of text
/// direction, invalid UTF-8.
const EVIL: &[u8] = b"/\x1b]0;owned\x07\x9b31m\xc2\x9b31m\x7f\r\nforged\xe2\x80\xae\xff\x08end";

fn is_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{what}: no UTF-8: {bytes:?}"));
    let text = text.replace("\r\n", "\n");
    let at = text.find(|letter: char| letter != '\n' && is_commanding(letter));
    assert_eq!(at, None, "{what}: {text:?}");
}

#[track_caller]
fn run_harmless(tool: Tool, args: &[&str], input: &[u8]) -> Ran {
    let ran = run_ours(tool, args, input);
    is_harmless(&format!("output of {args:?}"), &ran.output);
    is_harmless(&format!("messages of {args:?}"), ran.error.as_bytes());
    ran
}

/// A directory whose log has such bytes in the record of every tag.
fn hostile_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let writer = |name| {
        let path = directory.path().join(name);
        recreate_directory(&path, 0o755).unwrap();
        VsmWriter::create(&path).unwrap()
    };
    Publisher::new(&writer(MANAGER_DIRECTORY), 1).publish(&surface::counter::MGT, "MGT").unwrap();
    let worker = writer(WORKER_DIRECTORY);
    let publisher = Publisher::new(&worker, 1);
    publisher.publish(&surface::counter::MAIN, "MAIN").unwrap();
    publisher.publish(&surface::counter::VBE, "VBE.boot.x").unwrap().set(0, 1);
    let ring = LogRing::publish(&worker, 1 << 20, shm::layout::Layout::V71).unwrap();
    ring.configure(&LogConfiguration { mask: [0; 32], ..LogConfiguration::default() });
    let evil = |before: &str| [before.as_bytes(), EVIL].concat();
    ring.write(Tag::CLI, LogId::NONE, &evil("Rd "));
    // JSON output has no line for an unreadable request, so there is also one without such bytes.
    for (id, begin, link) in [
        (LogId::client(12), "req 11 rxreq", "bereq 13 fetch"),
        (LogId::backend(13), "bereq 12 fetch", ""),
        (LogId::client(22), "req 21 rxreq", "bereq 23 fetch"),
        (LogId::backend(23), "bereq 22 fetch", ""),
    ] {
        let is_read = id.vxid() > 20;
        let mut log = LogBuffer::new(&ring);
        log.start(id, 1_700_000_000.0);
        log.record(Tag::Begin, begin.as_bytes());
        log.timestamp("Start", 1_700_000_000.0);
        for row in TAGS.iter().filter(|row| !matches!(row.tag, Tag::Begin | Tag::End | Tag::Link | Tag::VSL)) {
            if is_read && row.tag == Tag::HttpGarbage {
                continue;
            }
            log.record(row.tag, &evil(""));
            log.record(row.tag, &evil("Host: "));
            log.record(row.tag, &evil("Cookie: name=value; other="));
        }
        for word in
            ["miss-vary headers=", "pass at=/etc/a.vcl:1 in=", "connect-failed text=", "more cookies=", "more ban="]
        {
            log.record(Tag::Witness, &evil(&format!("why {word}")));
        }
        log.record(Tag::BackendOpen, &evil("24 boot."));
        if !link.is_empty() {
            log.record(Tag::Link, link.as_bytes());
        }
        log.timestamp("Process", 1_700_000_000.5);
        log.record(Tag::End, b"");
    }
    directory
}

#[test]
fn a_disk_that_is_full_is_named() {
    let directory = hostile_directory();
    let name = directory.path().to_str().unwrap();
    for tool in [tools::log_to as Tool, tools::ncsa_to] {
        let ran = run_ours(tool, &["-n", name, "-d", "-w", "/dev/full"], b"");
        assert_eq!((ran.status, ran.error.as_str()), (1, "Cannot write /dev/full: No space left on device\n"));
    }
}

#[test]
fn no_program_of_the_log_prints_what_commands_a_terminal() {
    let directory = hostile_directory();
    let name = directory.path().to_str().unwrap();
    let file = directory.path().join("recorded").to_str().unwrap().to_owned();
    run_ours(tools::log_to, &["-n", name, "-d", "-g", "raw", "-w", &file], b"");
    for source in [["-n", name], ["-r", &file]] {
        for grouping in ["raw", "vxid", "request", "session"] {
            for more in ["-c", "-v", "--json", "-b"] {
                let ran = run_harmless(tools::log_to, &[source[0], source[1], "-d", "-g", grouping, more], b"");
                let text = String::from_utf8(ran.output).unwrap();
                let is_shown = text.contains("forged") || grouping == "session";
                assert!(!text.contains("\nforged") && is_shown, "{grouping} {more}: {text}");
            }
        }
        let fields = "%b|%D|%H|%h|%I|%l|%m|%O|%q|%r|%s|%t|%T|%U|%u|%{Host}i|%{Host}o|%{Varnish:handling}x|%{VCL_Log:Host}x|\
                      %{VSL:ReqURL}x|%{VSL:VCL_Log}x|%{VSL:Witness}x";
        for sides in ["-c", "-b", "-E"] {
            let ran = run_harmless(tools::ncsa_to, &[source[0], source[1], "-d", sides], b"");
            assert!(sides == "-b" || !ran.output.is_empty(), "{sides}");
            run_harmless(tools::ncsa_to, &[source[0], source[1], "-d", sides, "-F", fields], b"");
            run_harmless(tools::ncsa_to, &[source[0], source[1], "-d", sides, "--json"], b"");
            let template = format!("{{\"all\":\"{fields}\"}}");
            let ran =
                run_harmless(tools::ncsa_to, &[source[0], source[1], "-d", sides, "--json", "-F", &template], b"");
            let line = String::from_utf8(ran.output).unwrap();
            assert!(line.contains("owned"), "{sides}: {line} {}", ran.error);
            for line in line.lines() {
                serde_json::from_str::<serde_json::Value>(line)
                    .unwrap_or_else(|error| panic!("{sides}: {error}: {line}"));
            }
            let ran = run_ours(tools::ncsa_to, &[source[0], source[1], "-d", sides, "-j", "-F", fields], b"");
            let bytes: Vec<u8> = ran.output.into_iter().filter(|byte| *byte != 0xff).collect();
            assert!(String::from_utf8_lossy(&bytes).contains("owned"), "{sides}: {}", ran.error);
            is_harmless("-j, but for bytes that are no UTF-8 and command nothing", &bytes);
        }
        run_harmless(tools::top_to, &[source[0], source[1], "-1"], b"");
        run_harmless(tools::top_to, &[source[0], source[1], "-1", "-f"], b"");
        run_harmless(tools::hist_to, &[source[0], source[1], "-d"], b"");
        run_harmless(tools::hist_to, &[source[0], source[1], "-d", "-P", "c:ReqURL:\x1b]0;x\x07:1:-6:3"], b"");
        let said = run_harmless(tools::why_to, &[source[0], source[1]], b"");
        assert!(String::from_utf8_lossy(&said.output).contains("/%1b]0;owned%07"), "{:?}", said.output);
        assert!(!String::from_utf8_lossy(&said.output).contains("\nforged"), "{:?}", said.output);
        run_harmless(tools::why_to, &[source[0], source[1], "/no\x1b[2J\u{9b}such"], b"");
        let said = run_harmless(tools::why_to, &[source[0], source[1], "--json"], b"");
        for line in String::from_utf8(said.output).unwrap().lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
    for form in ["-1", "-j", "-x", "-l"] {
        run_harmless(tools::stat_to, &["-n", name, form], b"");
    }
}

#[test]
fn messages_about_vcl_and_their_excerpts_command_no_terminal() {
    let evil = String::from_utf8_lossy(EVIL);
    for text in [
        format!("vcl 4.1;\nbackend default none;\nsub vcl_recv {{ set req.http.A = \"{evil}\" + nothing; }}\n"),
        format!("vcl 4.1;\nbackend {evil} none;\n"),
        format!("vcl 4.1;\ninclude \"/nowhere/{}\";\n", evil.replace('\n', "")),
        format!("vcl 4.1; import {evil};"),
        format!(
            "vcl 4.1; # {evil}\nbackend default none; sub vcl_recv {{ if (req.url ~ \"({evil}\") {{ return (pass); }} }}"
        ),
    ] {
        for args in [&["check", "-"][..], &["check", "--json", "-"], &["check", "--text", "-"], &["fmt", "--diff", "-"]]
        {
            run_harmless(tools::vcl_to, args, text.as_bytes());
        }
    }
    run_harmless(tools::vcl_to, &["check", "/no\x1b[2J\u{9b}such"], b"");
    run_harmless(tools::vcl_to, &["explain", "no\x1b[2J\u{9b}such"], b"");
    run_harmless(tools::vcl_to, &["migrate", "/no\x1b[2J\u{9b}such"], b"");
}

/// A CLI on its own port that sends a greeting and answers every command with `reply`.
fn cli(reply: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let frame = |body: &[u8]| [format!("200 {:<8}\n", body.len()).as_bytes(), body, b"\n"].concat();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let _ = client.write_all(&frame(EVIL));
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = client.read(&mut bytes) {
                for line in bytes[..count].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let body = if line == b"ping" { b"PONG 1795202400 1.0" } else { reply };
                    let _ = client.write_all(&frame(body));
                }
            }
        }
    });
    address
}

#[test]
fn replies_of_the_cli_command_no_terminal_unless_they_are_asked_for_as_they_are() {
    let address = cli(EVIL);
    run_harmless(tools::adm_to, &["-T", &address, "vcl.list"], b"");
    run_harmless(tools::adm_to, &["-T", &address], b"vcl.list\nban.list\n");
    let args: Vec<OsString> = ["-p", "-T", &address, "vcl.list"].map(OsString::from).to_vec();
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = tools::Streams {
        input: &mut &b""[..],
        output: &mut output,
        error: &mut error,
        program: false,
        called: surface::program::Called::Stock,
    };
    assert_eq!(tools::adm_to(&args, &mut streams), 0);
    assert!(output.contains(&0x1b), "frames count bytes, so the bytes stay");
}
