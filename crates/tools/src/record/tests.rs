//! Recordings of logs that the test writes.

use super::*;
use recording::{Exchange, Reader};
use shm::layout::Layout;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use surface::program::Called;
use surface::tag::Tag;

/// The mark of a client's transaction in the layout of 7.1.
const CLIENT_BIT: u32 = 1 << 30;

/// Writes a log of requests from different clients, with one more header each.
fn log(path: &Path, headers: &[&str]) {
    let mut bytes = Layout::V71.file_head().to_vec();
    for (number, header) in headers.iter().enumerate() {
        let id = CLIENT_BIT | (2 * number as u32 + 2);
        let client = format!("192.0.2.{} 4711 a0", number + 1);
        let records = [
            (Tag::Begin, "req 1 rxreq"),
            (Tag::Timestamp, "Start: 1000.5 0.0 0.0"),
            (Tag::ReqStart, &client),
            (Tag::ReqMethod, "GET"),
            (Tag::ReqURL, "/a?token=verysecret&page=1"),
            (Tag::ReqProtocol, "HTTP/1.1"),
            (Tag::ReqHeader, "Host: shop.example"),
            (Tag::ReqHeader, header),
            (Tag::VCLCall, "RECV"),
            (Tag::Hit, "3 59 0 10"),
            (Tag::RespProtocol, "HTTP/1.1"),
            (Tag::RespStatus, "200"),
            (Tag::RespHeader, "Set-Cookie: sid=verysecret; Path=/"),
            (Tag::ReqAcct, "10 0 10 20 100 120"),
            (Tag::End, ""),
        ];
        for (tag, text) in records {
            let head = [((tag as u32) << 24) | (text.len() as u32 + 1), id];
            bytes.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

fn run_with(log: &Path, recording: &Path, more: &[&str]) -> (i32, String) {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut args =
        [OsStr::new("-r"), log.as_os_str(), OsStr::new("-o"), recording.as_os_str()].map(OsString::from).to_vec();
    args.extend(more.iter().map(OsString::from));
    let mut streams = Streams {
        input: &mut io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = run(&args, &mut streams);
    (status, String::from_utf8(error).unwrap())
}

fn exchanges(path: &Path) -> Vec<Exchange> {
    let reader = Reader::open(File::open(path).unwrap()).unwrap();
    let items = reader.filter_map(|item| match item {
        Item::Exchange(exchange) => Some(*exchange),
        Item::Notes(_) | Item::Lost => None,
    });
    items.collect()
}

#[test]
fn requests_are_recorded_without_their_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("log"), folder.path().join("recording"));
    log(&from, &["Cookie: lang=verysecret", "Authorization: Basic verysecret", "X-Forwarded-For: 203.0.113.77"]);
    let (status, error) = run_with(&from, &to, &[]);
    assert_eq!(status, 0, "{error}");
    assert!(error.starts_with("3 requests recorded"), "{error}");
    assert_eq!(std::fs::metadata(&to).unwrap().mode() & 0o777, 0o600);
    let read = exchanges(&to);
    assert_eq!(read.len(), 3);
    let shown = format!("{read:?}");
    assert!(read.iter().all(|one| one.handling == "hit" && one.status() == 200 && !one.is_cut));
    for secret in [&b"verysecret"[..], b"203.0.113.77", b"192.0.2."] {
        let bytes = format!("{secret:?}");
        assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{secret:?}");
        assert!(!std::fs::read(&to).unwrap().windows(secret.len()).any(|window| window == secret));
    }
    let kept = folder.path().join("kept");
    assert_eq!(run_with(&from, &kept, &["--keep-secrets"]).0, 0);
    assert_eq!(exchanges(&kept)[0].request.value("Cookie"), Some(&b"lang=verysecret"[..]));
}

#[test]
fn limits_samples_and_queries_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("log"), folder.path().join("recording"));
    log(&from, &["A: 1"; 200]);
    let recorded = |more: &[&str]| {
        let _ = std::fs::remove_file(&to);
        let (status, error) = run_with(&from, &to, more);
        assert_eq!(status, 0, "{error}");
        exchanges(&to).len()
    };
    assert_eq!(recorded(&["--requests", "7"]), 7);
    assert!((40..160).contains(&recorded(&["--client-sample", "50%"])));
    assert!((40..160).contains(&recorded(&["--sample", "50%"])));
    assert_eq!(recorded(&["-q", "ReqStart ~ '192.0.2.1 '"]), 1);
    let (status, error) = run_with(&from, &to, &[]);
    assert_eq!((status, error.contains("exists")), (FAILED, true), "{error}");
    let nothing = folder.path().join("nothing");
    assert_eq!(run_with(&from, &nothing, &["-q", "ReqURL ~ nowhere"]).0, NOTHING);
    assert!(!nothing.exists());
}

#[test]
fn cut_records_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("log"), folder.path().join("recording"));
    let long = format!("Cookie: {}", "x".repeat(246));
    log(&from, &[&long, "A: 1"]);
    let (status, error) = run_with(&from, &to, &[]);
    assert_eq!((status, error.contains("1 of them have records")), (0, true), "{error}");
    assert_eq!(exchanges(&to).iter().map(|one| one.is_cut).collect::<Vec<_>>(), [true, false]);
    std::fs::remove_file(&to).unwrap();
    run_with(&from, &to, &["--record-bytes", "4000"]);
    assert!(exchanges(&to).iter().all(|one| !one.is_cut));
}

#[test]
fn wrong_options_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("log"), folder.path().join("recording"));
    log(&from, &["A: 1"]);
    for more in [["--for", "x"], ["--sample", "2"], ["--client-sample", "0%"], ["--requests", "0"], ["-q", "("]] {
        let (status, error) = run_with(&from, &to, &more);
        assert_eq!((status, to.exists()), (FAILED, false), "{more:?}: {error}");
    }
}
