//! Server logs, hostile lines, and the resulting reports.

use super::*;
use std::fmt::Write as _;

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

fn json_with(args: &[&str], input: &[u8]) -> serde_json::Value {
    let (status, output, _) = run_with(&[&["--json"], args].concat(), input);
    assert_eq!((status, output.lines().count()), (0, 1), "{output}");
    serde_json::from_str(&output).unwrap()
}

fn line(url: &str, bytes: u64) -> String {
    format!("203.0.113.7 - - [23/Nov/2026:00:00:00 +0000] \"GET {url} HTTP/1.1\" 200 {bytes} \"-\" \"curl\"\n")
}

#[test]
fn lines_of_the_usual_servers_are_understood() {
    let key = |text: &str, format| match access_log::parse(text.as_bytes(), format) {
        Line::Got(got) => (request(&got).key, got.bytes),
        other => panic!("{text}: {other:?}"),
    };
    let combined = key(&line("/a?b=c", 512), Format::Combined);
    assert_eq!(combined.1, 512);
    let common = "host - user name [t] \"GET /a?b=c HTTP/1.0\" 200 512\n";
    assert_eq!(key(common, Format::Combined), combined, "the URL alone counts, without host and protocol");
    assert_ne!(key(&line("/a?b=d", 512), Format::Combined).0, combined.0);
    let quoted = r#"1.2.3.4 - - [t] "GET /\"x\\ HTTP/1.1" 200 - "r" "a""#;
    assert_eq!(key(quoted, Format::Combined).1, 0);
    let (one, other) =
        ("one:80 1.1.1.1 - - [t] \"GET / HTTP/1.1\" 200 5\r\n", "two:80 1.1.1.1 - - [t] \"GET / HTTP/1.1\" 200 5");
    assert_ne!(key(one, Format::VirtualHost).0, key(other, Format::VirtualHost).0);
}

#[test]
fn other_methods_and_statuses_are_others_and_the_rest_is_bad() {
    fn said(text: &str) -> Line<'_> {
        access_log::parse(text.as_bytes(), Format::Combined)
    }
    for other in [
        "h - - [t] \"POST / HTTP/1.1\" 200 5",
        "h - - [t] \"GET / HTTP/1.1\" 304 0",
        "h - - [t] \"-\" 408 -",
        "h - - [t] \"\" 400 0",
    ] {
        assert_eq!(said(other), Line::Other, "{other}");
    }
    for bad in [
        "",
        "\n",
        "h - - [t] \"GET / HTTP/1.1",
        "h - - [t] \"GET / HTTP/1.1\" 2oo 5",
        "h - - [t] \"GET / HTTP/1.1\" 200 -5",
        "h - - [t] \"GET / HTTP/1.1\" 200 99999999999999999999",
        "h - - [t] \"GET / HTTP/1.1\" 200",
        "h - - \"GET / HTTP/1.1\" 200 5",
        " - - [t] \"GET / HTTP/1.1\" 200 5",
    ] {
        assert_eq!(said(bad), Line::Bad, "{bad}");
    }
}

#[test]
fn a_log_without_a_request_to_replay_gets_a_reason_and_no_table() {
    for (log, why) in [
        ("", "there are no lines"),
        ("h - - [t] \"POST / HTTP/1.1\" 200 5\n", "no line is a GET that was answered with 200"),
        ("x\n", "1 of 1 lines are not in this format; --format names another"),
    ] {
        let said = run_with(&["-"], log.as_bytes());
        assert_eq!(said, (1, String::new(), format!("copal policy: nothing to replay: {why}\n")), "{log:?}");
    }
}

#[test]
fn nothing_hostile_reaches_the_terminal_and_long_lines_are_bad() {
    let mut log = b"\x1b]0;evil\x07 - - [t] \"GET /\x1b[2J HTTP/1.1\" 200 5\n\x1b[31mjunk\xff\n".to_vec();
    log.extend(vec![b'x'; 3 << 16]);
    log.extend(format!("\n{}", line("/last", 7)).bytes());
    let (status, output, error) = run_with(&["-"], &log);
    assert_eq!(status, 0);
    assert!(output.starts_with("requests     2 replayed, 0 others, 2 bad lines\n"), "{output}");
    assert_eq!(error, "copal policy: 2 of 4 lines are not in this format\n");
    assert!(output.bytes().chain(error.bytes()).all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{output}");
}

#[test]
fn a_traversal_costs_lru_its_hits_and_the_others_little() {
    let mut log = String::new();
    for round in 0..60 {
        // Fifty pages of 40 KB are hot, and a bot reads others.
        for page in 0..50 {
            log += &line(&format!("/hot/{page}"), 40_000);
            log += &line(&format!("/hot/{page}"), 40_000);
        }
        for page in 0..100 {
            log += &line(&format!("/bot/{round}/{page}"), 40_000);
        }
    }
    let found = json_with(&["-s", "3m", "-"], log.as_bytes());
    let ratio = |policy: &str| found["sizes"][0]["policies"][policy]["hit_ratio"].as_f64().unwrap();
    assert!(ratio("lru") < 0.26 && ratio("s3fifo") > 0.45, "{found}");
    assert_eq!((found["urls"].as_u64(), found["sampled_one_in"].as_u64()), (Some(6050), Some(1)));
    assert!((found["once_share"].as_f64().unwrap() - 6000.0 / 6050.0).abs() < 1e-9);
    assert_eq!(found["working_set_bytes"].as_u64(), Some(6050 * 40_600));
}

#[test]
fn sizes_go_on_until_everything_fits_and_larger_ones_hit_no_less() {
    let mut log = String::new();
    for step in 0..6000u64 {
        log += &line(&format!("/{}", step * step % 997), 100_000);
    }
    let found = json_with(&["-"], log.as_bytes());
    let sizes = found["sizes"].as_array().unwrap();
    let bytes: Vec<u64> = sizes.iter().map(|size| size["bytes"].as_u64().unwrap() >> 20).collect();
    assert_eq!(bytes, [16, 32, 64], "498 URLs of 100,600 bytes are 48 MiB");
    let last = &sizes[2]["policies"];
    // All but the first request of each URL.
    for policy in POLICIES.iter().map(|row| row.name) {
        let ratio = last[policy]["hit_ratio"].as_f64().unwrap();
        assert!((ratio - (6000.0 - found["urls"].as_f64().unwrap()) / 6000.0).abs() < 1e-9, "{policy} {found}");
    }
    let lru: Vec<f64> = sizes.iter().map(|size| size["policies"]["lru"]["hit_ratio"].as_f64().unwrap()).collect();
    assert!(lru.is_sorted(), "{lru:?}");
    // A model that was copied when it was full is the model that was there from the beginning.
    let named = json_with(&["-s", "64m,32m", "-"], log.as_bytes());
    assert_eq!(named["sizes"], serde_json::json!([sizes[1], sizes[2]]));
}

#[test]
fn a_log_with_more_urls_than_may_be_kept_is_sampled() {
    let mut log = String::new();
    let mut number = 1u64;
    for step in 0..60_000u64 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Half of the requests for 2,000 pages, the others for 20,000.
        let page = if step % 2 == 0 { number >> 33 & 2047 } else { number >> 33 & 16_383 };
        let _ = write!(log, "{}", line(&format!("/{page}"), 10_000));
    }
    let whole = json_with(&["-s", "32m", "-"], log.as_bytes());
    let sampled = json_with(&["-s", "32m", "--urls", "2048", "-"], log.as_bytes());
    assert_eq!(whole["sampled_one_in"].as_u64(), Some(1));
    let urls = |found: &serde_json::Value| found["urls"].as_f64().unwrap();
    assert!((urls(&sampled) / urls(&whole) - 1.0).abs() < 0.1, "{} {}", urls(&sampled), urls(&whole));
    assert_eq!(sampled["sampled_one_in"].as_u64(), Some(8));
    for policy in ["lru", "s3fifo", "sieve", "tinylfu"] {
        let ratio = |found: &serde_json::Value| found["sizes"][0]["policies"][policy]["hit_ratio"].as_f64().unwrap();
        assert!((ratio(&whole) - ratio(&sampled)).abs() < 0.08, "{policy} {} {}", ratio(&whole), ratio(&sampled));
    }
    assert_eq!(sampled["sizes"][0]["vague"].as_bool(), Some(true));
}

#[test]
fn wrong_command_lines_get_one_line_and_status_2() {
    for args in [
        &[][..],
        &["-s", "1", "-"],
        &["-s", "much", "-"],
        &["-s", "9000P", "-"],
        &["--format", "json", "-"],
        &["--urls", "3", "-"],
        &["--nonsense", "-"],
        &["/no/such/file"],
    ] {
        let (status, output, error) = run_with(args, b"");
        assert_eq!((status, output.as_str(), error.lines().count()), (2, "", 1), "{args:?} {error}");
        assert!(error.starts_with("copal policy: "), "{error}");
    }
    assert_eq!(run_with(&["-"], b"").0, 1, "nothing to replay");
    assert!(run_with(&["--help"], b"").1.starts_with("Usage: copal policy"));
}

#[test]
fn no_log_makes_it_panic_or_grow_without_bounds() {
    // Responses of a petabyte, of nothing, and of everything between; and lines with missing parts.
    let mut log = Vec::new();
    let mut number = 5u64;
    for step in 0..20_000u64 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bytes = 999_999_999_999_999 >> (number >> 58);
        let whole = line(&format!("/{}", step % 3000), bytes);
        let cut = if step % 10 == 0 { (number >> 20) as usize % whole.len() } else { whole.len() };
        log.extend(&whole.as_bytes()[..cut]);
        log.push(b'\n');
    }
    let found = json_with(&["--urls", "1024", "-"], &log);
    assert_eq!(found["sizes"].as_array().unwrap().len(), 16);
    assert!(found["urls"].as_u64().unwrap() <= 4096, "{found}");
    assert!(found["bad_lines"].as_u64().unwrap() > 1000, "{found}");
    for size in found["sizes"].as_array().unwrap() {
        let ratio = size["policies"]["tinylfu"]["byte_hit_ratio"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&ratio), "{size}");
    }
}
