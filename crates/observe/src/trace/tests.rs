//! Tests: the choice of traces, the environment, and collectors that are absent, slow or hostile.

use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;
use surface::limits::{TEST_HANG_SECONDS, TRACE_QUEUE_SPANS_MAX};

fn trace() -> Trace {
    Trace {
        spans: vec![Span::default()],
        cut: 0,
        id: u128::MAX,
        is_sampled: false,
        has_error: false,
        nanoseconds: 5_000_000,
        words: vec!["miss-absent", "miss"],
    }
}

#[test]
fn errors_slow_ones_reasons_and_the_callers_choice_are_kept() {
    let kept = |sample: &str, trace: &Trace| is_kept(&Sample::parse(sample).unwrap(), trace);
    let plain = trace();
    for (sample, expected) in [
        ("1", true),
        ("0.5", false),
        ("errors", false),
        ("slow:5ms", true),
        ("slow:6ms", false),
        ("why:miss", true),
        ("why:pass", false),
    ] {
        assert_eq!(kept(sample, &plain), expected, "{sample}");
    }
    assert!(kept("errors", &Trace { has_error: true, ..trace() }));
    let sampled = Trace { is_sampled: true, ..trace() };
    assert!(kept("0", &sampled) && !kept("0,ignore-parent", &sampled));
    // The share depends on the id alone.
    let count = (0..1000u128).filter(|number| kept("0.25", &Trace { id: number << 54, ..trace() })).count();
    assert!((240..260).contains(&count), "{count}");
}

#[test]
fn environment_names_service_headers_and_attributes() {
    let made = resource(Some("shop"), "service.name=x,deployment.environment=a%2Cb,service.version=1");
    let shown: Vec<(String, String)> = made
        .attributes
        .into_iter()
        .map(|pair| match pair.value.unwrap().value.unwrap() {
            Value::StringValue(text) => (pair.key, text),
            other => panic!("{other:?}"),
        })
        .collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        shown,
        [pair("service.name", "shop"), pair("deployment.environment", "a,b"), pair("service.version", "1")]
    );
    assert_eq!(headers("api-key=a%20b, x=1").unwrap(), "api-key: a b\r\nx: 1\r\n");
    assert!(headers("a=b%0d%0aEvil: 1").is_err() && headers("a b=1").is_err());
    assert!(tls(Some("/nonexistent")).is_err());
}

/// A collector with this behaviour for each connection.
struct Collector {
    endpoint: Endpoint,
    limit: Duration,
    received: std::sync::mpsc::Receiver<ExportTraceServiceRequest>,
}

impl Collector {
    fn new(answer: impl Fn(&mut TcpStream) + Send + 'static) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, received) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if let Some(message) = request(&mut stream) {
                    answer(&mut stream);
                    let _ = sender.send(message);
                }
            }
        });
        let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        Collector { endpoint, limit: Duration::from_secs(TEST_HANG_SECONDS), received }
    }

    /// Sends some spans; returns the numbers of those that were taken and dropped.
    fn send(&self, spans: usize) -> (u64, u64) {
        let totals = Arc::<Totals>::default();
        let client = Client {
            addresses: vec![format!("127.0.0.1:{}", self.endpoint.port).parse().unwrap()],
            endpoint: self.endpoint.clone(),
            headers: "x-key: 1\r\n".to_owned(),
            tls: None,
            limit: self.limit,
        };
        let (exporter, queue) = Exporter::start(client, Resource::default(), &totals).unwrap();
        let surplus = queue.put(vec![Span { name: "GET".to_owned(), ..Span::default() }; spans]);
        let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        let dropped = || surplus + SpanDrop::ALL.into_iter().map(|why| totals.dropped_spans(why)).sum::<u64>();
        while totals.spans() + dropped() < spans as u64 {
            assert!(Instant::now() < deadline, "neither taken nor dropped");
            thread::sleep(Duration::from_millis(1));
        }
        drop(exporter);
        (totals.spans(), dropped())
    }
}

/// Reads a request; `None` if it is broken off.
fn request(stream: &mut TcpStream) -> Option<ExportTraceServiceRequest> {
    let mut received = Vec::new();
    let mut room = [0; 1 << 16];
    let (head, body) = loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(received[..end].to_vec()).unwrap();
            let length: usize =
                head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
            if received.len() >= end + 4 + length {
                break (head, received[end + 4..].to_vec());
            }
        }
        match stream.read(&mut room) {
            Ok(0) | Err(_) => return None,
            Ok(count) => received.extend_from_slice(&room[..count]),
        }
    };
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("x-key: 1"), "{head}");
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut message).unwrap();
    Some(ExportTraceServiceRequest::decode(&message[..]).unwrap())
}

#[test]
fn spans_arrive_in_batches() {
    let collector = Collector::new(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap());
    assert_eq!(collector.send(1000), (1000, 0));
    let spans: usize = collector
        .received
        .try_iter()
        .flat_map(|message| message.resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .map(|scope| scope.spans.len())
        .sum();
    assert_eq!(spans, 1000);
}

#[test]
fn hostile_collectors_cost_their_spans_and_nothing_else() {
    let redirect = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 301 Moved\r\nLocation: /v1/traces\r\nContent-Length: 0\r\n\r\n");
    };
    assert_eq!(Collector::new(redirect).send(3), (0, 3));
    let error = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
    };
    assert_eq!(Collector::new(error).send(3), (0, 3));
    // A head without end, and a body that would be a gigabyte.
    let endless = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    };
    assert_eq!(Collector::new(endless).send(3), (0, 3));
    let large = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    };
    assert_eq!(Collector::new(large).send(3), (3, 0));
    let garbage = |stream: &mut TcpStream| {
        let _ = stream.write_all(&[0xff; 100]);
    };
    assert_eq!(Collector::new(garbage).send(3), (0, 3));
}

#[test]
fn busy_collector_is_asked_again() {
    let busy = std::sync::atomic::AtomicBool::new(true);
    let collector = Collector::new(move |stream| {
        let answer: &[u8] = match busy.swap(false, std::sync::atomic::Ordering::Relaxed) {
            true => b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            false => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        let _ = stream.write_all(answer);
    });
    assert_eq!(collector.send(3), (3, 0));
}

#[test]
fn absent_or_silent_collector_costs_at_most_the_queue() {
    let mut collector = Collector::new(|_| thread::sleep(Duration::from_secs(1)));
    collector.limit = Duration::from_millis(20);
    assert_eq!(collector.send(3), (0, 3));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    collector.endpoint.port = free;
    assert_eq!(collector.send(3), (0, 3));
    let queue = Queue::default();
    assert_eq!(queue.put(vec![Span::default(); TRACE_QUEUE_SPANS_MAX]), 0);
    assert_eq!(queue.put(vec![Span::default(); 5]), 5);
}
