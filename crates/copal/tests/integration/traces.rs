//! Traces of a real daemon: a page with fragments and a failed fetch arrives whole at a collector,
//! with the parents that the origin has seen.

use crate::daemon::{Daemon, Origin, eventually, exchange, ok};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const VCL: &str = r#"vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "@PORT@"; }
backend dead { .host = "127.0.0.1"; .port = "1"; }
sub vcl_recv {
    if (req.url ~ "^/dead") { set req.backend_hint = dead; }
}
sub vcl_backend_response {
    if (bereq.url == "/page") { set beresp.do_esi = true; }
}"#;
const CALLER: &str = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n";

/// A collector of this test; each span that it has taken.
fn collector() -> (u16, Arc<Mutex<Vec<Span>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let spans = Arc::<Mutex<Vec<Span>>>::default();
    let taken = Arc::clone(&spans);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut received, mut room) = (Vec::new(), [0; 1 << 16]);
            let body = loop {
                if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&received[..end]).into_owned();
                    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                    if received.len() >= end + 4 + length.unwrap().parse::<usize>().unwrap() {
                        break received[end + 4..].to_vec();
                    }
                }
                let count = stream.read(&mut room).unwrap();
                received.extend_from_slice(&room[..count]);
            };
            let mut message = Vec::new();
            flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut message).unwrap();
            let message = ExportTraceServiceRequest::decode(&message[..]).unwrap();
            let all = message.resource_spans.into_iter().flat_map(|one| one.scope_spans).flat_map(|one| one.spans);
            taken.lock().unwrap().extend(all);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    (port, spans)
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|pair| pair.key == key)?.value.clone()?.value?;
    Some(match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::ArrayValue(all) => format!("{:?}", all.values),
        other => format!("{other:?}"),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn page_with_fragments_and_a_failed_fetch_is_one_trace() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let of_origin = Arc::clone(&seen);
    let origin = Origin::start(move |request| {
        of_origin.lock().unwrap().push(request.to_owned());
        if request.starts_with("GET /page") {
            let include = |path: &str| format!("<esi:include src=\"{path}\"/>");
            let page: String = ["/a?token=secret", "/b", "/dead"].map(include).concat();
            return ok("Cache-Control: max-age=60\r\n", &page);
        }
        ok("Cache-Control: max-age=60\r\n", "fragment")
    });
    let (port, spans) = collector();
    let otlp = format!("otlp=http://127.0.0.1:{port}");
    let daemon =
        Daemon::with_vcl(VCL, origin.port, &["-o", &otlp, "-o", "otlp_sample=errors", "-p", "trace_context=on"]);
    let request =
        format!("GET /page HTTP/1.1\r\nHost: shop.example\r\n{CALLER}Referer: secret\r\nConnection: close\r\n\r\n");
    // The first requests may come before the log is read.
    eventually("the trace arrives", || {
        exchange(daemon.port, request.as_bytes());
        daemon.cli(&["ban", "req.url ~ ."]);
        let spans = spans.lock().unwrap();
        spans.iter().any(|span| span.kind == SpanKind::Server as i32).then_some(())
    });
    let spans = spans.lock().unwrap().clone();
    let first = spans.iter().position(|span| span.kind == SpanKind::Server as i32).unwrap();
    let root = &spans[first];
    assert_eq!(hexadecimal(&root.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hexadecimal(&root.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(root, "server.address").as_deref(), Some("shop.example"));
    assert_eq!(attribute(root, "copal.cache.result").as_deref(), Some("miss"));
    assert!(attribute(root, "copal.why.reason").unwrap().contains("miss-"));
    let below = |parent: &Span, kind: SpanKind| -> Vec<&Span> {
        spans.iter().filter(|span| span.parent_span_id == parent.span_id && span.kind == kind as i32).collect()
    };
    assert_eq!(below(root, SpanKind::Client).len(), 1);
    let fragments = below(root, SpanKind::Internal);
    assert_eq!(fragments.len(), 3, "{spans:?}");
    let mut failed = 0;
    for fragment in fragments {
        assert_eq!(fragment.trace_id, root.trace_id);
        for fetch in below(fragment, SpanKind::Client) {
            let path = attribute(fetch, "url.path").unwrap();
            if path == "/dead" {
                failed += 1;
                assert_eq!(fetch.status.as_ref().unwrap().code, 2, "{fetch:?}");
                continue;
            }
            // The origin has seen this span as its parent.
            let header = format!("00-{}-{}-00", hexadecimal(&fetch.trace_id), hexadecimal(&fetch.span_id));
            assert!(seen.lock().unwrap().iter().any(|request| request.contains(&header)), "{header}");
        }
    }
    assert_eq!(failed, 1);
    let shown = format!("{spans:?}");
    assert!(!shown.contains("secret") && shown.contains("token=*"), "{shown}");
}

#[test]
fn without_the_parameter_the_callers_header_passes_unchanged() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let of_origin = Arc::clone(&seen);
    let origin = Origin::start(move |request| {
        of_origin.lock().unwrap().push(request.to_owned());
        ok("", "x")
    });
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let get = |path: &str, more: &str| {
        exchange(daemon.port, format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}Connection: close\r\n\r\n").as_bytes());
        seen.lock().unwrap().pop().unwrap()
    };
    assert!(get("/a", CALLER).contains(CALLER.trim_end()));
    assert!(daemon.cli(&["param.set", "trace_context", "on"]).0);
    let continued = get("/b", &format!("{CALLER}tracestate: a=1\r\n"));
    assert!(continued.contains("00-0af7651916cd43dd8448eb211c80319c-") && continued.contains("tracestate: a=1"));
    assert!(!continued.contains("b7ad6b7169203331"), "{continued}");
    // A malformed header is replaced, and what belongs to it is dropped.
    let made = get("/c", "traceparent: 00-evil\r\ntracestate: a=1\r\n");
    let line = made.lines().find(|line| line.to_ascii_lowercase().starts_with("traceparent: ")).unwrap();
    assert!(semantics::trace_context::TraceParent::parse(&line.as_bytes()[13..]).is_some(), "{line}");
    assert!(!made.contains("evil") && !made.contains("tracestate"), "{made}");
}
