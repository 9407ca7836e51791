//! `--json` of the log tools: every line is an object, in UTF-8 whatever was logged, with the facts
//! of the plain output.

use serde_json::Value;

use super::recording::written_directory;
use super::run_ours;

fn objects(tool: super::Tool, args: &[&str]) -> Vec<Value> {
    let ran = run_ours(tool, args, b"");
    assert_eq!((ran.status, ran.error.as_str()), (0, ""), "{args:?}");
    let text = String::from_utf8(ran.output).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn every_transaction_and_record_of_the_log_is_in_its_object() {
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    for more in ["", "-b", "-E", "-i ReqURL,Resp*", "-q RespStatus>=500"] {
        for (grouping, is_tree) in [("raw", false), ("vxid", false), ("request", true), ("session", true)] {
            let mut args = vec!["-n", name, "-d", "-g", grouping];
            args.extend(more.split(' ').filter(|word| !word.is_empty()));
            let plain = run_ours(tools::log_to, &args, b"").output;
            args.push("--json");
            let lines = objects(tools::log_to, &args);
            let transactions: Vec<&Value> = match is_tree {
                true => lines.iter().flat_map(|line| line["transactions"].as_array().unwrap()).collect(),
                false => lines.iter().collect(),
            };
            let records: usize = match grouping {
                "raw" => transactions.len(),
                _ => transactions.iter().map(|transaction| transaction["records"].as_array().unwrap().len()).sum(),
            };
            let mut plain_counts = (0, 0);
            for line in plain.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match line[0] {
                    b'*' => plain_counts.0 += 1,
                    _ => plain_counts.1 += 1,
                }
            }
            let transactions = if grouping == "raw" { 0 } else { transactions.len() };
            assert_eq!((transactions, records), plain_counts, "-g {grouping} {more}");
        }
    }
}

#[test]
fn a_transaction_says_what_it_is_about() {
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let lines = objects(tools::log_to, &["-n", name, "-d", "-c", "--json", "-q", "VCL_call eq MISS and RespStatus"]);
    // Some are of pages that include others.
    let request = lines.iter().find(|request| request["reason"] == "rxreq").unwrap();
    assert_eq!(request["type"], "req");
    assert!(request["parent"].as_u64().unwrap() > 100);
    assert!(request["client"].as_str().unwrap().starts_with("192.0.2."));
    assert_eq!((&request["method"], &request["handling"]), (&Value::from("GET"), &Value::from("miss")));
    assert_eq!(request["host"], "www.example.com");
    assert!((200..600).contains(&request["status"].as_u64().unwrap()));
    assert!(request["start"].as_f64().unwrap() >= 1_700_000_000.0);
    assert_eq!(request["times"]["Process"], 0.25);
    assert_eq!((&request["received_bytes"], &request["sent_bytes"]), (&Value::from(80), &Value::from(1434)));
    let odd = objects(tools::log_to, &["-n", name, "-d", "-g", "raw", "-i", "Debug", "--json"]);
    assert_eq!(odd[0]["value"], "odd \u{1}\u{7f}\u{fffd} \"bytes\"");
    assert_eq!(odd[0]["hex"], "6f646420017fff2022627974657322");
    assert_eq!((&odd[0]["vxid"], &odd[0]["side"]), (&Value::from(0), &Value::from("-")));
    let path = directory.path().join("file.json");
    let file = path.to_str().unwrap();
    objects(tools::log_to, &["-n", name, "-d", "--json", "-w", file]);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.lines().count() > 100 && written.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn access_lines_as_objects_hold_the_fields_of_the_plain_ones() {
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let format = "%{Varnish:vxid}x %{Varnish:side}x %s %b %I %O %{Varnish:handling}x %u";
    let plain =
        String::from_utf8(run_ours(tools::ncsa_to, &["-n", name, "-d", "-b", "-E", "-j", "-F", format], b"").output)
            .unwrap();
    let lines = objects(tools::ncsa_to, &["-n", name, "-d", "-b", "-E", "--json"]);
    assert_eq!(lines.len(), plain.lines().count());
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0).to_string();
    for (line, plain) in lines.iter().zip(plain.lines()) {
        let ours = [
            text(&line["vxid"]),
            text(&line["side"]),
            number(&line["status"]),
            number(&line["body_bytes"]),
            number(&line["received_bytes"]),
            number(&line["sent_bytes"]),
            text(&line["handling"]),
            text(&line["user"]),
        ];
        assert_eq!(ours.join(" "), plain);
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn a_template_makes_json_of_every_line_or_is_refused() {
    let directory = written_directory();
    let name = directory.path().to_str().unwrap();
    let template =
        r#"{"odd":"%{X-Odd}i","url":"%U%q","bytes":%b,"t":"%t","hash":"%{VSL:Hash}x","h2":"%{VSL:H2RxHdr}x"}"#;
    let lines = objects(tools::ncsa_to, &["-n", name, "-d", "--json", "-F", template]);
    assert!(lines.iter().any(|line| line["odd"] == "\u{e9}\u{fffd} \"quoted\" \\ \u{1}"), "{:?}", lines[0]);
    let times = r#"{"year":%{%Y}t,"hour":"%{%H}t","seconds":%{sec}t}"#;
    assert!(objects(tools::ncsa_to, &["-n", name, "-d", "--json", "-F", times])[0]["year"].is_number());
    // A field that begins with a zero for a part of the day, or of the year, is not a number then.
    let parts = [r#"{"hour":%{%I}t}"#, r#"{"hour":%{%H}t}"#, r#"{"day":%{%j}t}"#];
    for wrong in ["%h %s", r#"{"time":%t}"#, r#"{"a":"%U"#].into_iter().chain(parts) {
        let ran = run_ours(tools::ncsa_to, &["-n", name, "-d", "--json", "-F", wrong], b"");
        assert_eq!(ran.status, 1);
        assert!(ran.error.starts_with("--json: the lines of this format are no JSON: "), "{}", ran.error);
    }
}
