//! Encoders between a slow origin and its readers: a pause flushes them, and bodies without pauses
//! are compressed as a whole.

use crate::support::{OriginRequest, World, run_with, serve_each};
use body::{Chain, Flow, Gunzip, Machine, Unbrotli, Unzstd};
use std::rc::Rc;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

const AS_EVENTS: &str = "Content-Type: text/event-stream\r\n";
const AS_TEXT: &str = "Content-Type: text/plain\r\n";

fn rfc(parameters: &mut surface::parameter::Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// An origin that sends `one`, pauses until it is notified, sends `two` and so on, and ends.
fn pausing(world: &World, headers: &'static str) -> Rc<Notify> {
    let go_on = Rc::new(Notify::new());
    let gate = Rc::clone(&go_on);
    world.origin(move |mut stream| {
        let gate = Rc::clone(&gate);
        async move {
            OriginRequest::read(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            for line in ["one\n", "two\n", "three\n"] {
                let _ = stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await;
                gate.notified().await;
            }
            let _ = stream.write_all(b"0\r\n\r\n").await;
        }
    });
    go_on
}

/// The text that can be decoded from the first bytes of a body.
fn decoded(coding: &str, bytes: &[u8]) -> String {
    let machine: Box<dyn Machine> = match coding {
        "gzip" => Box::new(Gunzip::new(None)),
        "br" => Box::new(Unbrotli::default()),
        "zstd" => Box::new(Unzstd::default()),
        _ => return String::from_utf8_lossy(bytes).into_owned(),
    };
    let mut chain = Chain::default();
    assert!(chain.push(machine));
    let (mut rest, mut text) = (bytes, Vec::new());
    loop {
        let step = chain.step(Some(rest)).unwrap();
        text.extend_from_slice(step.bytes);
        rest = &rest[step.taken..];
        if step.flow != Flow::More {
            return String::from_utf8(text).unwrap();
        }
    }
}

#[test]
fn bytes_of_a_slow_origin_reach_every_reader_while_it_pauses() {
    for (vcl, accepted, coding) in [
        ("set beresp.do_gzip = true;", "gzip", "gzip"),
        ("set beresp.do_gzip = true;", "identity", ""),
        ("set beresp.do_gzip = true; set beresp.uncacheable = true;", "gzip", "gzip"),
        ("set beresp.do_gzip = true; set beresp.uncacheable = true;", "identity", ""),
        (r#"set beresp.filters = "gzip";"#, "gzip", "gzip"),
        (r#"set beresp.filters = "gzip gunzip gzip";"#, "gzip", "gzip"),
        (r#"set beresp.filters = "brotli";"#, "br", "br"),
        (r#"set beresp.filters = "zstd";"#, "zstd", "zstd"),
    ] {
        for policy in ["rfc", "varnish"] {
            let set = |parameters: &mut surface::parameter::Parameters| {
                parameters.http_policy = policy.to_owned();
                parameters.http_encodings = surface::encoding::Encodings::parse("zstd br gzip").unwrap().parameter();
            };
            run_with(set, &format!("sub vcl_backend_response {{ {vcl} }}"), async |world| {
                let go_on = pausing(&world, AS_TEXT);
                let client = world.stream_client();
                let call = client.call(&format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n"));
                call.finish();
                for text in ["one\n", "one\ntwo\n", "one\ntwo\nthree\n"] {
                    let had = |response: &crate::support::Response| decoded(coding, &response.body) == text;
                    assert!(call.until(had).await.is_some(), "{vcl} {accepted} {policy}: {text}");
                    go_on.notify_one();
                }
                let response = call.response().await.unwrap();
                assert!(response.is_whole, "{vcl}");
                assert_eq!(response.header("content-encoding").unwrap_or_default(), coding, "{vcl} {policy}");
                assert_eq!(decoded(coding, &response.body), "one\ntwo\nthree\n");
            });
        }
    }
}

#[test]
fn body_in_pieces_without_pause_is_compressed_as_a_whole() {
    run_with(rfc, "sub vcl_backend_response { set beresp.do_gzip = true; }", async |world| {
        let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
        let all = text.clone();
        world.origin(move |mut stream| {
            let all = all.clone();
            async move {
                OriginRequest::read(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                for piece in all.as_bytes().chunks(1000) {
                    let _ = stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await;
                    let _ = stream.write_all(&[piece, b"\r\n"].concat()).await;
                    tokio::task::yield_now().await;
                }
                let _ = stream.write_all(b"0\r\n\r\n").await;
            }
        });
        let response = world.client().get("/", "Accept-Encoding: gzip\r\n").await;
        let mut at_once = Vec::new();
        let level = world.engine.parameters.load().gzip_level as u32;
        body::whole(body::Gzip::new(level), text.as_bytes(), usize::MAX, &mut at_once).unwrap();
        // The division of the input moves a few bytes; each flush costs at least five.
        assert!(response.body.len() < at_once.len() + 100, "{}, at once {}", response.body.len(), at_once.len());
    });
}

#[test]
fn event_streams_and_no_transform_are_compressed_only_if_vcl_names_the_filter() {
    let no_transform = "Content-Type: text/plain\r\nCache-Control: no-transform\r\n";
    let (flag, list) = ("set beresp.do_gzip = true;", r#"set beresp.filters = "gzip";"#);
    for (policy, vcl, headers, is_compressed) in [
        ("rfc", flag, AS_TEXT, true),
        ("rfc", flag, AS_EVENTS, false),
        ("rfc", flag, "Content-Type: Text/Event-Stream; charset=utf-8\r\n", false),
        ("rfc", flag, no_transform, false),
        ("rfc", flag, "Content-Type: text/plain\r\nCache-Control: max-age=9, No-Transform\r\n", false),
        ("rfc", list, AS_EVENTS, true),
        ("rfc", list, no_transform, true),
        // Compat: the flag is enough.
        ("varnish", flag, AS_EVENTS, true),
        ("varnish", flag, no_transform, true),
    ] {
        let set = |parameters: &mut surface::parameter::Parameters| parameters.http_policy = policy.to_owned();
        run_with(set, &format!("sub vcl_backend_response {{ {vcl} }}"), async |world| {
            world.origin(serve_each(move |_: &OriginRequest| {
                format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 6\r\n\r\ndata:\n").into_bytes()
            }));
            let response = world.client().get("/", "Accept-Encoding: gzip\r\n").await;
            let coding = response.header("content-encoding");
            assert_eq!(coding, is_compressed.then_some("gzip"), "{policy} {vcl} {headers}");
        });
    }
}
