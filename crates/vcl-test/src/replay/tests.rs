//! Recordings that a VCL itself has made, replayed against others.

use super::answers::Answers;
use super::command::{CACHE_BYTES, DIFFERS, PASSED, SAME, UNUSABLE};
use super::player::Player;
use super::*;
use crate::program::{Settings, compile};
use crate::world::Setting;
use recording::{Exchange, Fetch, Head, Item, Line, Notes, Reader, Writer, gather};
use std::fs::File;
use std::rc::Rc;
use std::time::Duration;
use surface::program::Called;
use surface::tag::Tag;
use tempfile::TempDir;
use tokio::task::LocalSet;

/// A site in which a page of each user has a copy of its own.
const SITE: &str = "\
vcl 4.1;
backend default { .host = \"127.0.0.1\"; }
sub vcl_recv {
    if (req.url ~ \"^/cart\") { return (pass); }
    if (req.method == \"GET\") { return (hash); }
}
sub vcl_hash {
    hash_data(req.url);
    hash_data(req.http.Cookie);
    return (lookup);
}
sub vcl_backend_response {
    set beresp.ttl = 60s;
    set beresp.grace = 0s;
    unset beresp.http.Set-Cookie;
    return (deliver);
}
";

/// Under `rfc`, a response to a request with a cookie would not be shared in the first place.
const POLICY: (&str, &str) = ("http_policy", "varnish");

/// A request: seconds, URL, cookie.
type Asked = (f64, String, &'static str);

/// The head of a message.
fn head(line: [&str; 3], fields: &[(&str, &str)]) -> Head {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    Head { line: line.map(|word| word.as_bytes().to_vec()), fields: fields.collect() }
}

/// An exchange of which only the client's request and the origin's answer are known.
fn planned((at, url, cookie): &Asked) -> Exchange {
    let start = format!("Start: {} 0 0", 1e9 + at);
    let lines = [(Tag::Begin, "req 1 rxreq"), (Tag::Timestamp, &start), (Tag::VCLCall, "RECV")];
    let lines = lines.map(|(tag, text)| Line { vxid: 2, tag, text: text.as_bytes() });
    let mut exchange = gather(&lines, 255).unwrap();
    let cookies: &[(&str, &str)] = if cookie.is_empty() { &[] } else { &[("Cookie", cookie)] };
    let fields = [&[("Host", "a.example")], cookies].concat();
    exchange.request = head(["GET", url, "HTTP/1.1"], &fields);
    exchange.client = "198.18.0.1".parse().unwrap();
    exchange.fetches = vec![Fetch {
        vxid: 3,
        start: 1e9 + at,
        is_background: false,
        backend: "default".to_owned(),
        request: exchange.request.clone(),
        response: Some(head(["HTTP/1.1", "200", "OK"], &[("Content-Type", "text/html"), ("ETag", "\"1\"")])),
        body_bytes: 1000,
        failure: String::new(),
        stored: None,
        lifetime: None,
    }];
    exchange
}

/// Records what a VCL does with these requests.
fn record(folder: &TempDir, vcl: &str, asked: &[Asked]) -> OsString {
    let settings = Settings { parameters: vec![(POLICY.0.to_owned(), POLICY.1.to_owned())], ..Settings::default() };
    let parameters = settings.parameters(&[]).unwrap();
    let program = compile("/site.vcl", vcl.as_bytes(), &settings, &parameters).unwrap();
    let mut answers = Answers::default();
    let planned: Vec<Exchange> = asked.iter().map(planned).collect();
    planned.iter().enumerate().for_each(|(number, one)| answers.add(number as u32, one, false).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let path = folder.path().join("recording");
    let mut writer = Writer::begin(File::create(&path).unwrap(), &Notes::default()).unwrap();
    LocalSet::new().block_on(&runtime, async {
        let setting = Setting { start: 1e9 - 1.0, storage_bytes: CACHE_BYTES };
        let mut player = Player::new(&program, &parameters, &Rc::new(answers), &setting).unwrap();
        let begun = tokio::time::Instant::now();
        for (number, one) in planned.iter().enumerate() {
            tokio::time::sleep_until(begun + Duration::from_secs_f64(one.start - 1e9 + 1.0)).await;
            let mut exchange = player.play(number as u32, one).await.unwrap().exchange;
            exchange.key = None;
            writer.add(&Item::Exchange(Box::new(exchange))).unwrap();
        }
    });
    writer.flush().unwrap();
    path.into_os_string()
}

fn replayed(folder: &TempDir, recording: &OsString, vcl: &str, more: &[&str]) -> (i32, String) {
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string()
    };
    let (old, new) = (file("old.vcl", SITE), file("new.vcl", vcl));
    let mut args =
        vec![recording.clone(), "--vcl".into(), new, "-p".into(), format!("{}={}", POLICY.0, POLICY.1).into()];
    if more.contains(&"--against") {
        args.extend(["--against".into(), old]);
    }
    args.extend(more.iter().filter(|word| **word != "--against").map(OsString::from));
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut std::io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = run(&args, &mut streams);
    (status, String::from_utf8(output).unwrap() + &String::from_utf8(error).unwrap())
}

/// Two users who look at the same pages, again and again.
fn visits() -> Vec<Asked> {
    let page = |number: u32| format!("/page/{}", number / 2 % 7);
    let cookie = |number: u32| if number.is_multiple_of(2) { "session=anna" } else { "session=bert" };
    (0..100).map(|number| (f64::from(number) * 0.7, page(number), cookie(number))).collect()
}

#[test]
fn same_vcl_has_no_noise_and_no_differences() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, SITE, &visits());
    let reformatted =
        SITE.replace("    ", "\t").replace("{ return (pass); }", "{\n\t\t# The cart.\n\t\treturn (pass);\n\t}");
    let (status, text) = replayed(&folder, &recording, &reformatted, &["--against"]);
    assert_eq!(status, SAME, "{text}");
    assert!(text.contains("100 requests recorded, 100 compared"), "{text}");
    assert!(text.contains("old VCL against the recording: 0 requests differ"), "{text}");
    assert!(text.contains("\n0 requests differ"), "{text}");
    let (status, text) = replayed(&folder, &recording, SITE, &[]);
    assert_eq!(status, SAME, "against the recording itself: {text}");
}

#[test]
fn cookie_that_is_dropped_from_the_key_is_a_leak_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, SITE, &visits());
    let shared = SITE.replace("    hash_data(req.http.Cookie);\n", "");
    let (status, text) = replayed(&folder, &recording, &shared, &["--against"]);
    assert_eq!(status, PASSED, "{text}");
    assert!(text.contains("limit passed: leak:"), "{text}");
    assert!(text.contains("old.vcl:9: hash_data(req.http.Cookie);"), "{text}");
    assert!(text.contains("miss → hit"), "{text}");
    let (status, json) = replayed(&folder, &recording, &shared, &["--against", "--json", "--limit", "leak=100%"]);
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &object["status"]), (DIFFERS, &DIFFERS.into()));
    assert_eq!(object["differences"][0]["class"], "leak");
    assert!(object["after"]["hits"].as_u64() > object["before"]["hits"].as_u64());
}

#[test]
fn requests_without_a_recorded_response_are_counted_and_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, SITE, &visits());
    let other = SITE.replace("sub vcl_recv {", "sub vcl_recv {\n    set req.url = \"/new\" + req.url;");
    let (status, text) = replayed(&folder, &recording, &other, &["--against"]);
    assert_eq!(status, DIFFERS, "{text}");
    assert!(text.contains("unanswered") && text.contains("asks for GET a.example/new/page/0"), "{text}");
    let (status, text) =
        replayed(&folder, &recording, &other, &["--against", "--limit", "unanswered=1%", "--markdown"]);
    assert_eq!(status, PASSED, "{text}");
    assert!(text.contains("| no recorded response of the origin |"), "{text}");
}

#[test]
fn changes_are_named_by_class() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, SITE, &visits());
    for (old, new, class) in [
        ("beresp.ttl = 60s", "beresp.ttl = 5s", "ttl "),
        ("^/cart", "^/page/3", "handling "),
        ("unset beresp.http.Set-Cookie;", "set beresp.http.X = \"1\";", "response "),
        ("sub vcl_recv {", "sub vcl_recv {\n    if (req.url == \"/page/2\") { return (synth(404)); }", "status "),
        ("sub vcl_recv {", "sub vcl_recv {\n    set req.http.X = \"1\";", "request "),
        ("hash_data(req.url);", "hash_data(req.url + \"x\");", "key "),
    ] {
        let (status, text) = replayed(&folder, &recording, &SITE.replace(old, new), &["--against"]);
        assert_eq!(status, DIFFERS, "{class}: {text}");
        assert!(text.contains(&format!("\n{class}")), "{class}: {text}");
    }
}

#[test]
fn recording_that_another_vcl_made_does_not_explain_itself() {
    let folder = tempfile::tempdir().unwrap();
    let passes = SITE.replace("return (hash)", "return (pass)");
    let recording = record(&folder, &passes, &visits());
    let (status, text) = replayed(&folder, &recording, SITE, &["--against"]);
    assert_eq!(status, UNUSABLE, "{text}");
    assert!(text.contains("does not explain itself"), "{text}");
}

#[test]
fn responses_from_before_the_recording_are_left_out_or_stood_in_for() {
    let folder = tempfile::tempdir().unwrap();
    let visits: Vec<Asked> = (0..40).map(|number| (f64::from(number), format!("/p{}", number % 4), "")).collect();
    let whole = record(&folder, SITE, &visits);
    let kept = folder.path().join("kept");
    let mut writer = Writer::begin(File::create(&kept).unwrap(), &Notes::default()).unwrap();
    // The first four requests, which were misses, came before the recording.
    let items = Reader::open(File::open(&whole).unwrap()).unwrap().skip(4);
    items.for_each(|item| writer.add(&item).unwrap());
    writer.flush().unwrap();
    let kept = kept.into_os_string();
    let (status, text) = replayed(&folder, &kept, SITE, &["--against"]);
    assert_eq!(status, UNUSABLE, "{text}");
    assert!(text.contains("--warm"), "{text}");
    let (status, text) = replayed(&folder, &kept, SITE, &["--against", "--warm"]);
    assert_eq!(status, SAME, "{text}");
    assert!(text.contains("36 requests recorded, 36 compared"), "{text}");
}

#[test]
fn wrong_files_and_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, SITE, &visits());
    let bytes = std::fs::read(&recording).unwrap();
    let damaged = folder.path().join("damaged");
    std::fs::write(&damaged, &bytes[..bytes.len() - 10]).unwrap();
    let (status, text) = replayed(&folder, &damaged.into_os_string(), SITE, &[]);
    assert_eq!(status, UNUSABLE, "all is in the damaged frame: {text}");
    for (recording, vcl, more, expected) in [
        (OsString::from("/nonexistent"), SITE, "", "No such file"),
        (folder.path().join("old.vcl").into_os_string(), SITE, "", "not a recording"),
        (recording.clone(), "vcl 4.1; sub vcl_recv { set req.foo = 1; }", "", "req.foo"),
        (recording.clone(), SITE, "--limit=x=1", "nothing is called x"),
        (recording, SITE, "--cache-size=7x", "not a size"),
    ] {
        let more: &[&str] = if more.is_empty() { &[] } else { &[more] };
        let (status, text) = replayed(&folder, &recording, vcl, more);
        assert_eq!(status, UNUSABLE, "{text}");
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
