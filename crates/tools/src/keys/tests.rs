//! Tests: reports of logs that the test writes.

use super::*;
use serde_json::Value;
use shm::layout::Layout;
use surface::program::Called;
use surface::tag::Tag;

/// The mark of a client's transaction in the layout of 7.1.
const CLIENT_BIT: u32 = 1 << 30;

/// A log file of requests: URL, step of VCL, more headers of the request, and of the response.
fn log(requests: &[(&str, &str, &str, &str)]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = Layout::V71.file_head().to_vec();
    for (number, (url, step, request, response)) in requests.iter().enumerate() {
        let id = CLIENT_BIT | (2 * number as u32 + 2);
        let mut add = |tag: Tag, text: &str| {
            let head = [((tag as u32) << 24) | (text.len() as u32 + 1), id];
            bytes.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        };
        add(Tag::Begin, "req 1 rxreq");
        add(Tag::ReqMethod, "GET");
        add(Tag::ReqURL, url);
        add(Tag::ReqHeader, "Host: shop.example");
        if !request.is_empty() {
            add(Tag::ReqHeader, request);
        }
        add(Tag::VCLCall, step);
        if !response.is_empty() {
            add(Tag::RespHeader, response);
        }
        add(Tag::RespHeader, "Content-Type: text/html; charset=utf-8");
        add(Tag::ReqAcct, "10 0 10 20 100 120");
        add(Tag::End, "");
    }
    io::Write::write_all(&mut file, &bytes).unwrap();
    file
}

fn report(file: &tempfile::NamedTempFile, json: bool) -> String {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut args = vec![OsString::from("-r"), file.path().as_os_str().to_owned()];
    args.extend(json.then(|| OsString::from("--json")));
    let mut streams = Streams {
        input: &mut io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = run(&args, &mut streams);
    assert_eq!(status, 0, "{}", String::from_utf8_lossy(&error));
    String::from_utf8(output).unwrap()
}

#[test]
fn arguments_and_cookies_that_split_are_found() {
    let file = log(&[
        ("/p?id=1&utm=a", "MISS", "", ""),
        ("/p?id=1&utm=b", "MISS", "", ""),
        ("/p?id=2&utm=b", "MISS", "", ""),
        ("/p?utm=a&id=1", "MISS", "", ""),
        ("/p?id=1&utm=a", "HIT", "", ""),
        ("/cart", "PASS", "Cookie: session=secret; lang=de", ""),
        ("/", "PASS", "Cookie: lang=de", ""),
    ]);
    let object: Value = serde_json::from_str(&report(&file, true)).unwrap();
    assert_eq!((&object["requests"], &object["hits"], &object["passes"]), (&7.into(), &1.into(), &2.into()));
    assert_eq!((&object["objects"], &object["bytes"]), (&4.into(), &400.into()));
    // Without utm only /p?id=1 and /p?id=2 are left.
    let arguments = object["arguments"].as_array().unwrap();
    let utm = arguments.iter().find(|one| one["name"] == "utm").unwrap();
    assert_eq!((&utm["values"], &utm["objects_less"]), (&2.into(), &2.into()));
    assert_eq!(object["sorted_arguments"]["objects_less"], 1);
    let lang = &object["cookies"][0];
    assert_eq!((&lang["name"], &lang["passes"], &lang["passes_alone"]), (&"lang".into(), &2.into(), &1.into()));
    assert_eq!(object["types"][0]["name"], "text/html");
    let text = report(&file, false);
    assert!(text.contains("-2 objects, +28.6% hits") && !text.contains("secret"), "{text}");
}

#[test]
fn fields_of_vary_are_counted_by_their_values() {
    let vary = "Vary: User-Agent";
    let agents = ["User-Agent: a", "User-Agent: b", "User-Agent: c"];
    let requests: Vec<_> = agents.iter().map(|agent| ("/", "MISS", *agent, vary)).collect();
    let object: Value = serde_json::from_str(&report(&log(&requests), true)).unwrap();
    let field = &object["vary"][0];
    assert_eq!(
        (&field["name"], &field["values"], &field["objects_less"]),
        (&"user-agent".into(), &3.into(), &2.into())
    );
}

#[test]
fn hostile_names_are_made_legible_and_limited() {
    let requests: Vec<String> = (0..5000).map(|number| format!("/\u{1b}[2J?\u{1b}]0;evil{number}=1")).collect();
    let requests: Vec<_> = requests.iter().map(|url| (url.as_str(), "MISS", "", "")).collect();
    let text = report(&log(&requests), false);
    assert!(text.bytes().all(|byte| byte == b'\n' || byte >= b' '), "{text:?}");
}
