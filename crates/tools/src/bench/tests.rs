//! Command lines, lists of URLs, and the report.

use super::*;
use load::choice::Choice;
use load::plan::{Pace, Plan, Protocol, Target};

/// Exit status, output and messages.
fn run_with(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut &*input,
        output: &mut output,
        error: &mut error,
        program: false,
        called: surface::program::Called::Copal,
    };
    let status = run(&args, &mut streams);
    (status, String::from_utf8(output).unwrap(), String::from_utf8(error).unwrap())
}

fn plan_of(args: &[&str], input: &[u8]) -> Result<Plan, String> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let mut streams = Streams {
        input: &mut &*input,
        output: &mut Vec::new(),
        error: &mut Vec::new(),
        program: false,
        called: surface::program::Called::Copal,
    };
    command::parse(&args, &mut streams).map(|options| options.unwrap().plan)
}

fn paths(plan: &Plan) -> Vec<&str> {
    match &plan.choice {
        Choice::InTurn(paths) => paths.iter().map(String::as_str).collect(),
        Choice::Zipf { pattern, .. } | Choice::Counted { pattern, .. } => vec![pattern],
    }
}

#[test]
fn options_make_a_plan() {
    let url = "https://127.0.0.1:8443/a{}";
    let line = ["-c", "7", "-t", "0.5", "-n", "9", "-r", "100", "--burst", "5", "-k", "3", "--http", "3", "-m", "4"];
    let plan = plan_of(&[&line[..], &["--zipf", "0.9,1000", "-H", "Cookie: a=b", url]].concat(), b"").unwrap();
    assert_eq!((plan.connections, plan.requests_max, plan.per_connection, plan.streams), (7, Some(9), Some(3), 4));
    assert_eq!((plan.protocol, plan.duration), (Protocol::Http3, Duration::from_millis(500)));
    assert_eq!(plan.pace, Pace::Open { per_second: 100.0, burst: 5 });
    assert_eq!(plan.headers, [("Cookie".to_owned(), "a=b".to_owned())]);
    assert_eq!(paths(&plan), ["/a{}"]);
    let plain = plan_of(&["http://127.0.0.1/"], b"").unwrap();
    assert_eq!((plain.pace, plain.per_connection, plain.connections), (Pace::Closed, None, 50));
}

#[test]
fn invalid_command_lines_are_reported_with_the_reason() {
    let url = "http://127.0.0.1/";
    for (args, said) in [
        (&[][..], "no URL"),
        (&["http://127.0.0.1/ a"], "blanks"),
        (&["-c", "0", url], "-c: '0'"),
        (&["-c", "1000000", url], "-c: "),
        (&["-t", "-1", url], "-t: '-1'"),
        (&["-t", "nan", url], "-t: 'nan'"),
        (&["-r", "1e99", url], "-r: "),
        (&["--burst", "3", url], "needs --rate"),
        (&["--http", "3", url], "https"),
        (&["--http", "4", url], "none of 1, 2, 3"),
        (&["--idle", "5", "--http", "2", url], "--idle"),
        (&["--zipf", "1", url], "two numbers"),
        (&["--zipf", "1,0", url], "--zipf: '1,0'"),
        (&["--zipf", "1,10", url], "no {}"),
        (&["--count", "10", url], "no {}"),
        (&["-X", "POST", url], "one of GET"),
        (&["-H", "a b: c", url], "not a header"),
        (&["-H", "a: b\r\nc: d", url], "not a header"),
        (&["-H", "Content-Length: 5", url], "set by the load"),
        (&["--urls", "/nonexistent/list", url], "/nonexistent/list"),
        (&["--log", "-", url], "nothing to ask for"),
        (&[url, url], "unexpected argument"),
    ] {
        let (status, output, error) = run_with(args, b"");
        assert_eq!((status, output.as_str()), (2, ""), "{args:?}");
        assert!(error.contains(said) && error.contains("--help"), "{args:?}: {error}");
    }
    let (status, output, _) = run_with(&["--help"], b"");
    assert!(status == 0 && output.contains("--expect-bytes <num>"));
}

#[test]
fn lists_and_logs_give_the_paths_of_this_server() {
    let url = "http://127.0.0.1:8080/ignored";
    let list = b"/a\n# no\n\nhttp://127.0.0.1:8080/b?c=d#e\r\nhttp://127.0.0.1:8080\nhttp://127.0.0.1:80801/x\n\
                 http://other/x\n/with blank\nrelative\n/\xff\n";
    let plan = plan_of(&["--urls", "-", url], list).unwrap();
    assert_eq!(paths(&plan), ["/a", "/b?c=d", "/"]);
    let log =
        b"1.2.3.4 - - [t] \"GET /one HTTP/1.1\" 200 5 \"-\" \"-\"\n1.2.3.4 - - [t] \"POST /two HTTP/1.1\" 200 5\n\
                1.2.3.4 - - [t] \"GET /one HTTP/1.1\" 200 5\nbad\n1.2.3.4 - - [t] \"GET /three HTTP/1.1\" 404 5\n";
    let plan = plan_of(&["--log", "-", url], log).unwrap();
    assert_eq!(paths(&plan), ["/one", "/one"], "as often as they were asked for");
    let (status, _, error) = run_with(&["-n", "1", "--log", "-", "--timeout", "0.1", "http://127.0.0.1:1/"], log);
    assert!(error.contains("1 lines left out"), "{error}");
    assert_eq!(status, 1, "nobody listens there");
}

/// A server that gives each request the same answer.
fn server(answer: &'static [u8]) -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer) {
                    let _ = stream.write_all(answer);
                }
            });
        }
    });
    port
}

#[test]
fn report_has_counts_failures_and_times() {
    let port = server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Varnish: 3 2\r\n\r\nabc");
    let url = format!("http://127.0.0.1:{port}/");
    let (status, output, error) = run_with(&["-n", "40", "-c", "2", &url], b"");
    assert_eq!((status, error.as_str()), (0, ""));
    for said in ["2 connections  closed loop", "answers       40 in", "hits          100.0 %", "failures      none"] {
        assert!(output.contains(said), "{said}: {output}");
    }
    for said in ["99.99 %", "as measured", "2 opened"] {
        assert!(output.contains(said), "{said}: {output}");
    }
    let (_, output, _) = run_with(&["--json", "-n", "40", "-c", "2", "-r", "2000", &url], b"");
    let found: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (found["answers"].as_u64(), found["hits"].as_u64(), found["failed"].as_u64()),
        (Some(40), Some(40), Some(0))
    );
    assert_eq!((found["rate"].as_f64(), found["latency_us"]["count"].as_u64()), (Some(2000.0), Some(40)));
    assert!(found["latency_us"]["p99.9"].as_f64().unwrap() > 0.0 && found["own_busy"].is_number());
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let port = server(b"\x1b]0;evil\x07\r\n\r\n");
    let (status, output, error) = run_with(&["-n", "3", "-c", "1", &format!("http://127.0.0.1:{port}/")], b"");
    assert_eq!(status, 1);
    assert!(output.contains("3 protocol"), "{output}");
    assert!(!output.contains('\x1b') && !error.contains('\x1b'));
}

#[test]
fn the_bar_grows() {
    let line = progress_line(0.5, 1000, 3, Duration::from_secs(2));
    assert_eq!((line.matches('█').count(), line.matches('░').count()), (15, 15));
    assert!(line.contains("50 %  1000 answers  500/s  3 failed"), "{line}");
    assert_eq!(progress_line(7.0, 0, 0, Duration::ZERO).matches('█').count(), BAR, "never beyond its end");
    assert_eq!(Target::local(80, false).path, "/");
}
