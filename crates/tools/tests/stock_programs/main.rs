//! Comparison with the stock programs of 7.1, and with some of 7.7: on the same log, the same
//! command line gives the same output and exit status.

mod damage;
mod hostile;
mod objects;
mod queries;
mod recording;
mod server;
#[path = "../../../shm/tests/support/varnish_7_7.rs"]
mod varnish_7_7;

use std::ffi::OsString;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use recording::{written_directory, written_in};
use shm::layout::Layout;
use tools::Streams;
use varnish_7_7::program_of_7_7;

/// Time after which a tool counts as hanging.
const TOOL_TIMEOUT: Duration = Duration::from_secs(600);

type Tool = fn(&[OsString], &mut Streams) -> i32;

/// Path of a stock program; prints a message if it is not installed.
fn stock(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|directory| directory.join(program)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: needs {program}");
    }
    found
}

/// Layouts of the log, each with the path of a stock program that reads it; prints a note for each
/// that is not installed.
fn stock_of_each(program: &str) -> Vec<(Layout, PathBuf)> {
    Layout::ALL.into_iter().filter_map(|layout| Some((layout, stock_of(layout, program)?))).collect()
}

/// Path of the stock program of 7.1, or of the 7.7 that `.ci/varnish-7.7` fetches.
fn stock_of(layout: Layout, program: &str) -> Option<PathBuf> {
    match layout {
        Layout::V71 => stock(program),
        Layout::V73 => program_of_7_7(program),
    }
}

struct Ran {
    status: i32,
    output: Vec<u8>,
    error: String,
}

/// Runs a tool to its end. A tool that has none fails the test with its arguments.
fn run_ours(tool: Tool, args: &[&str], input: &[u8]) -> Ran {
    let owned: Vec<OsString> = args.iter().map(OsString::from).collect();
    let input = input.to_vec();
    let (ended, end) = mpsc::channel();
    let tool = thread::spawn(move || {
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let mut input = &input[..];
        let mut streams = Streams {
            input: &mut input,
            output: &mut output,
            error: &mut error,
            program: false,
            called: surface::program::Called::Stock,
        };
        let status = tool(&owned, &mut streams);
        // The test may have given up.
        let _ = ended.send(Ran { status, output, error: String::from_utf8_lossy(&error).into_owned() });
    });
    match end.recv_timeout(TOOL_TIMEOUT) {
        Ok(ran) => ran,
        Err(RecvTimeoutError::Timeout) => panic!("does not end: {args:?}"),
        Err(RecvTimeoutError::Disconnected) => panic::resume_unwind(tool.join().unwrap_err()),
    }
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
    // Control sequences are escaped here; the stock program prints them.
    let shown = surface::legible::lines(&theirs.output);
    if ours.output != theirs.output && ours.output != shown.as_bytes() {
        let (ours, theirs) = (String::from_utf8_lossy(&ours.output), shown);
        let different = ours.lines().zip(theirs.lines()).position(|(ours, theirs)| ours != theirs);
        let at = different.unwrap_or(ours.lines().count().min(theirs.lines().count()));
        let (ours, theirs) = (ours.lines().nth(at), theirs.lines().nth(at));
        panic!("{args:?}: line {} differs\n  ours: {ours:?}\ntheirs: {theirs:?}", at + 1);
    }
}

/// Like [`compare`], but the messages must also be the same.
#[track_caller]
fn compare_all(program: &Path, tool: Tool, args: &[&str]) {
    compare(program, tool, args);
    let (theirs, ours) = (run_stock(program, args), run_ours(tool, args, b""));
    assert_eq!(ours.error, theirs.error, "{args:?}");
}

#[test]
fn log_prints_the_same_as_varnishlog() {
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
            "-w -",
            "-w - -A",
            "-w - -X Begin:sess -x End",
            "-k 3 -b",
            "-k 3 -q BerespStatus",
        ] {
            let mut args = vec!["-n", name, "-d", "-g", grouping];
            args.extend(more.split(' ').filter(|word| !word.is_empty()));
            compare(&program, tools::log_to, &args);
        }
    }
}

#[test]
fn log_and_access_log_print_the_same_as_those_of_7_7() {
    let (Some(log), Some(ncsa)) = (stock_of(Layout::V73, "varnishlog"), stock_of(Layout::V73, "varnishncsa")) else {
        return;
    };
    let directory = written_in(Layout::V73);
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
            "-q RespStatus>=500",
            "-q ReqURL~a -q BerespStatus==404",
            "-q {2+}BerespStatus>=300 -i Begin",
            "-w -",
            "-w - -A",
        ] {
            let mut args = vec!["-n", name, "-d", "-g", grouping];
            if grouping == "vxid" && !["-b", "-c", "-E"].contains(&more) {
                if more.starts_with("-w") {
                    // 7.7 writes sessions too, when it is asked for clients.
                    continue;
                }
                // Without any of these, 7.7 leaves out fragments, and 7.1 does not.
                args.push("-E");
            }
            args.extend(more.split(' ').filter(|word| !word.is_empty()));
            compare(&log, tools::log_to, &args);
        }
    }
    // Without -E, the two differ in the fragments that they print; of a field that was set twice,
    // 7.7 prints the first value.
    for more in [&["-b"][..], &["-E", "-F", "%{Varnish:vxid}x %{VCL_Log:key}x %D %b"]] {
        compare(&ncsa, tools::ncsa_to, &[&["-n", name, "-d"], more].concat());
    }
}

/// Each file, written by ours or by the stock program, is read by both.
#[test]
fn files_of_either_layout_are_written_and_read() {
    for (layout, program) in stock_of_each("varnishlog") {
        let directory = written_in(layout);
        let name = directory.path().to_str().unwrap();
        let (ours, theirs) = (format!("{name}/ours"), format!("{name}/theirs"));
        let write = |file| ["-n", name, "-d", "-g", "raw", "-w", file];
        assert_eq!(run_ours(tools::log_to, &write(&ours), b"").status, 0);
        assert_eq!(run_stock(&program, &write(&theirs)).status, 0);
        let (bytes, expected) = (std::fs::read(&ours).unwrap(), std::fs::read(&theirs).unwrap());
        assert!(bytes.starts_with(layout.file_head()) && bytes == expected, "{layout:?}");
        compare(&program, tools::log_to, &["-r", &theirs, "-g", "request"]);
        // A file gets no records of another layout.
        for other in Layout::ALL {
            let directory = written_in(other);
            let append = ["-n", directory.path().to_str().unwrap(), "-d", "-g", "raw", "-a", "-w", &ours];
            assert_eq!(run_ours(tools::log_to, &append, b"").status, 0);
        }
        compare(&program, tools::log_to, &["-r", &ours, "-g", "raw"]);
        let count =
            run_ours(tools::log_to, &["-r", &ours, "-g", "raw"], b"").output.split(|byte| *byte == b'\n').count();
        let once =
            run_ours(tools::log_to, &["-r", &theirs, "-g", "raw"], b"").output.split(|byte| *byte == b'\n').count();
        assert_eq!(count - 1, 3 * (once - 1), "{layout:?}");
    }
}

#[test]
fn wrong_options_get_the_same_words() {
    let (Some(varnishlog), Some(varnishncsa)) = (stock("varnishlog"), stock("varnishncsa")) else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    for wrong in [
        "-g x",
        "-g",
        "-g re",
        "-g s",
        "-g RAW",
        "-k 0",
        "-k x",
        "-k 1x",
        "-L 0",
        "-L x",
        "-L -1",
        "-T x",
        "-T -1",
        "-R 0",
        "-R 3/",
        "-R 3/x",
        "-R 3x",
        "-D",
        "-D -w -",
        "-D -w /dev/null -r -",
        "-Q /nonexistent",
        "-r /nonexistent",
        "-n a -r b",
        "-i Foo",
        "-i a**",
        "-i Beresp",
        "-x ,",
        "-I Foo:x",
        "-I (",
        "-X ReqURL:[",
        "-I :x",
        "-t x",
        "-t -1",
        "-w /nonexistent/x",
    ] {
        for (program, tool) in [(&varnishlog, tools::log_to as Tool), (&varnishncsa, tools::ncsa_to)] {
            let options: Vec<&str> = wrong.split(' ').collect();
            let letter = options[0];
            if program == &varnishncsa && matches!(letter, "-i" | "-x" | "-I" | "-X" | "-T" | "-k" | "-w")
                || letter == "-g" && options.len() == 1
            {
                continue;
            }
            let mut args = vec!["-d"];
            if !wrong.contains("-n") && !wrong.contains("-r") {
                args.extend(["-n", name]);
            }
            args.extend(options);
            compare_all(program, tool, &args);
        }
    }
}

#[test]
fn queries_select_the_same_as_varnishlog() {
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
        let (theirs, ours) = (std::fs::read(&theirs).unwrap(), std::fs::read(&ours).unwrap());
        let is_text = more.contains("-A");
        let shown = if is_text { surface::legible::lines(&theirs).into_owned().into_bytes() } else { theirs };
        assert!(ours == shown, "{more}: the files differ");
    }
    run_ours(tools::log_to, &["-n", name, "-d", "-g", "raw", "-w", &ours], b"");
    for more in [&["-g", "request"][..], &["-g", "vxid", "-L", "3"], &["-g", "vxid", "-T", "0"], &["-g", "session"]] {
        let mut args = vec!["-r", &ours];
        args.extend(more);
        compare(&program, tools::log_to, &args);
    }
    // A pipe is read like a file.
    let bytes = std::fs::read(&ours).unwrap();
    let piped = run_ours(tools::log_to, &["-r", "-", "-g", "request"], &bytes);
    assert_eq!(piped.output, run_ours(tools::log_to, &["-r", &ours, "-g", "request"], b"").output);
    std::fs::write(&theirs, b"no log").unwrap();
    compare(&program, tools::log_to, &["-r", &theirs]);
}

#[test]
fn ncsa_prints_the_same_as_varnishncsa() {
    let Some(program) = stock("varnishncsa") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let everything = "%b|%D|%H|%h|%I|%l|%m|%O|%q|%r|%s|%t|%T|%U|%u|%{User-agent}i|%{Content-Type}o|%{none}i|\
                      %{%Y-%m-%d %H:%M:%S}t|%{%a%A%b%B%c%C%d%D%e%F%g%G}t|%{%h%I%j%k%l%M%n%p%P%r%R}t|\
                      %{%s%T%u%U%V%w%W%x%X%y%z%%}t|%{%E%Q%v%f%N%q%Ey%Od%.3f%+%}t|%{sec}t|%{msec}t|%{usec}t|%{msec_frac}t|%{usec_frac}t|%{s}T|%{ms}T|%{us}T|\
                      %{Varnish:time_firstbyte}x|%{Varnish:hitmiss}x|%{Varnish:handling}x|%{Varnish:side}x|\
                      %{Varnish:vxid}x|%{VCL_Log:key}x|%{VCL_Log:none}x|%{VSL:Timestamp}x|%{VSL:Timestamp:Resp[2]}x|\
                      %{VSL:ReqHeader:host}x|%{VSL:Begin[3]}x|%{VSL:Begin[9]}x|%{X-Odd}i|%{VCL_Log:KEY}x|%{VSL:ReqS:x}x|\
                      %{VSL:ReqHeader:x-odd[1]}x|%{VSL:VCL_Log}x|%{a{b}c}i|\\t\\n\\x";
    for sides in ["", "-b", "-c", "-b -c", "-E", "-g request", "-b -g request", "-j", "-j -b -E", "-q RespStatus<400"] {
        for format in [None, Some(everything)] {
            let mut args = vec!["-n", name, "-d"];
            args.extend(sides.split(' ').filter(|word| !word.is_empty()));
            args.extend(format.iter().flat_map(|format| ["-F", format]));
            compare(&program, tools::ncsa_to, &args);
        }
    }
    for wrong in [
        "%Z",
        "%",
        "a %{x}",
        "%{x}y b",
        "%{x",
        "%{{x}",
        "%{X}T",
        "%{Foo}x",
        "%{VSL:Foo}x",
        "%{VSL:}x",
        "%{VSL:Req}x",
        "%{VSL:ReqURL[0]}x",
        "%{VSL:ReqURL[256]}x",
        "%{VSL:ReqURL[x]}x",
        "%{VSL:ReqURL[]}x",
        "%{VSL:[1]}x",
        "%{VSL:Foo:bar[1]}x",
        "%{VSL:Hash}x",
        "%{VSL:H2RxHdr}x",
    ] {
        compare_all(&program, tools::ncsa_to, &["-n", name, "-d", "-F", wrong]);
    }
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-j", "-F", "%{VSL:Hash}x %{VSL:H2RxHdr}x %{VSL:Debug}x"]);
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-w", "-", "-g", "req"]);
    let format_file = directory.path().join("format");
    for content in ["%h %s\nsecond line", "%h", "\n", ""] {
        std::fs::write(&format_file, content).unwrap();
        compare_all(&program, tools::ncsa_to, &["-n", name, "-d", "-f", format_file.to_str().unwrap()]);
    }
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-g", "session"]);
    compare(&program, tools::ncsa_to, &["-n", name, "-d", "-F", "a", "-F", "b"]);
}

#[test]
fn top_ranks_the_same_as_varnishtop() {
    let Some(program) = stock("varnishtop") else { return };
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    // From a file: with a server the stock program needs its name.
    let file = directory.path().join("log").to_str().unwrap().to_owned();
    run_ours(tools::log_to, &["-n", name, "-d", "-g", "raw", "-w", &file], b"");
    for grouping in ["raw", "vxid", "request", "session"] {
        for more in [
            "",
            "-f",
            "-c",
            "-b -i BereqURL,Timestamp",
            "-E -f -i ReqHeader",
            "-x Timestamp,*Acct -X ReqURL:a",
            "-C -I ReqHeader:HOST",
            "-q RespStatus>=400",
            "-p 0x10 -L 5 -T 0",
        ] {
            let mut args = vec!["-r", &file, "-1", "-g", grouping];
            args.extend(more.split(' ').filter(|word| !word.is_empty()));
            compare(&program, tools::top_to, &args);
        }
    }
    assert!(run_ours(tools::top_to, &["-r", &file, "-1"], b"").output.len() > 10_000);
    for wrong in ["-p 12ABC", "-p 60 -p x", "-i nonsense", "-I (", "-g nonsense", "-K", "word", "-t -1", "-q nonsense"]
    {
        let args: Vec<&str> = ["-1"].into_iter().chain(wrong.split(' ')).collect();
        compare(&program, tools::top_to, &args);
    }
}

#[test]
fn a_profile_of_hist_is_the_name_of_no_file() {
    let directory = written_directory();
    // As a pid file it could not be made.
    let args = ["-n", directory.path().to_str().unwrap(), "-d", "-P", "c:ReqURL:/no/such/folder/:1"];
    let ran = run_ours(tools::hist_to, &args, b"");
    assert_eq!((ran.status, ran.error.as_str()), (0, ""));
}

#[test]
fn hist_refuses_the_same_arguments_as_varnishhist() {
    let Some(program) = stock("varnishhist") else { return };
    for wrong in [
        "-P nonsense",
        "-P foo:bar",
        "-P nosuchtag:1",
        "-P nosuchtag::3",
        "-P b:nosuchtag:a:1:-6:3",
        "-P x:Timestamp:Process:2",
        "-P c:Timestamp",
        "-P Hash::1",
        "-p 0",
        "-B 0",
        "-B -0",
        "-B -1.5",
        "-B x",
    ] {
        compare_all(&program, tools::hist_to, &wrong.split(' ').collect::<Vec<_>>());
    }
    for wrong in ["-P Timestamp:x:y", "-g raw", "-g session", "-K", "word"] {
        compare(&program, tools::hist_to, &wrong.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn stat_prints_the_same_as_varnishstat() {
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
            let usage = ran.error.lines().nth(1).unwrap_or_default();
            assert!(usage.starts_with("Usage: varnish"), "a wrong option shows the usage: {}", ran.error);
            assert!(usage.starts_with("Usage: varnishadm ") || usage.ends_with(" <options>"), "{usage}");
            assert_eq!(ran.status, 1);
        }
        let ran = run_ours(tool, &["--help"], b"");
        assert!(ran.status == 0 && ran.output.starts_with(b"Usage: "), "{}", ran.error);
    }
}
