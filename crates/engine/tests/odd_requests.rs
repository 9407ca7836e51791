//! Odd requests, one table of them (`odd_requests/rows.rs`), each sent over HTTP/1, HTTP/2 and
//! HTTP/3 by clients without validation (`odd_requests/wires.rs`): the response, the exact request
//! at the origin, and that the next request is still right.
//!
//! Requests that cannot be expressed in HTTP/1 without harm are refused and not passed on. Source:
//! RFC 9112 §3 to §6; RFC 9113 §8.2, §8.3; RFC 9114 §4.2, §4.3.

mod rows;
mod wires;

use super::support::{OriginRequest, World, run_with};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use surface::parameter::{Parameters, feature};
use tokio::io::AsyncWriteExt;
use wires::Over;

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The origin answers, and has received this: the request line without its protocol, then the
    /// fields, each behind ` | `, in their order, the name in lower case; then the body behind ` >
    /// `. Fields of [`EVERYWHERE`] are left out.
    Served(&'static str),
    /// Copal answers, and the origin receives nothing.
    Answered(u16),
    /// The stream ends, as malformed; the origin receives nothing.
    Reset,
    /// The connection ends; the origin receives nothing.
    Gone,
    /// The protocol cannot express it.
    Unsaid,
}

/// Fields of requests to origins that do not matter here.
const EVERYWHERE: [&str; 5] = ["x-forwarded-for", "via", "x-varnish", "scheme", "connection"];

/// A request and its ends.
struct Row {
    what: &'static str,
    fields: Vec<(String, String)>,
    body: Option<&'static str>,
    trailers: &'static [(&'static str, &'static str)],
    /// The text for HTTP/1, if it is not derived from the fields.
    text: Option<String>,
    /// HTTP/1, HTTP/2, HTTP/3.
    ends: [End; 3],
}

/// The pseudo headers of a request that is not odd.
const USUAL: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/odd")];

/// A value that means: the field is left out.
const LEFT_OUT: &str = "left out";

impl Row {
    /// The usual request with changes: a pseudo header replaces the usual one, other fields follow.
    fn changed(what: &'static str, changes: &[(&str, &str)], ends: [End; 3]) -> Row {
        let mut fields: Vec<(String, String)> = Vec::new();
        for (name, usual) in USUAL {
            let value = changes.iter().find(|(changed, _)| *changed == name).map_or(usual, |(_, value)| value);
            if value != LEFT_OUT {
                fields.push((name.to_owned(), value.to_owned()));
            }
        }
        let others = changes.iter().filter(|(name, _)| !USUAL.iter().any(|(usual, _)| usual == name));
        fields.extend(others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Row { what, fields, body: None, trailers: &[], text: None, ends }
    }

    /// The usual request and behind it these fields, pseudo headers too: HTTP/1 cannot express it.
    fn appended(what: &'static str, more: &[(&str, &str)], [http2, http3]: [End; 2]) -> Row {
        let all = USUAL.iter().chain(more);
        let fields = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Row { what, fields, body: None, trailers: &[], text: None, ends: [End::Unsaid, http2, http3] }
    }

    /// A request that only HTTP/1 can express.
    fn text(what: &'static str, text: impl Into<String>, end: End) -> Row {
        let ends = [end, End::Unsaid, End::Unsaid];
        Row { what, fields: Vec::new(), body: None, trailers: &[], text: Some(text.into()), ends }
    }

    /// With a body; without a `content-length` it is chunked in HTTP/1.
    fn body(mut self, body: &'static str) -> Row {
        self.body = Some(body);
        self
    }

    /// With trailers.
    fn trailers(mut self, trailers: &'static [(&'static str, &'static str)]) -> Row {
        self.trailers = trailers;
        self
    }
}

/// The requests that the origin has received, in order.
type Heard = Rc<RefCell<Vec<String>>>;

/// An origin that records its requests, and answers all of them alike.
fn listen(world: &World) -> Heard {
    let heard = Heard::default();
    let told = Rc::clone(&heard);
    world.origin(move |mut stream| {
        let told = Rc::clone(&told);
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                told.borrow_mut().push(summary(&request));
                let body = if request.line().starts_with("HEAD ") { "" } else { "ok" };
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}");
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    heard
}

fn summary(request: &OriginRequest) -> String {
    let mut summary = request.line().to_owned();
    for (name, value) in request.head.lines().skip(1).filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase();
        if !EVERYWHERE.contains(&name.as_str()) {
            write!(summary, " | {name}: {}", value.trim()).unwrap();
        }
    }
    if !request.body.is_empty() {
        write!(summary, " > {}", String::from_utf8_lossy(&request.body)).unwrap();
    }
    summary
}

/// The origin's view of the request that follows.
const NEXT: &str = "GET /next | host: next.example";

/// Sends each row over a protocol, on a connection of its own. All failures are reported at once.
fn holds(over: Over, rows: Vec<Row>) {
    let mut wrong = String::new();
    for row in rows {
        let end = row.ends[over as usize];
        if end == End::Unsaid {
            continue;
        }
        let change = |parameters: &mut Parameters| parameters.feature |= feature::HTTP2;
        // Nothing is found in the cache, and no method is piped: the origin receives every accepted
        // request.
        run_with(change, "sub vcl_recv { return (pass); }", async |world| {
            let heard = listen(&world);
            let (came, is_next_answered) = wires::say(&world, over, &row).await;
            let expected = match end {
                End::Served(_) => End::Answered(200),
                other => other,
            };
            let mut expected_heard = Vec::new();
            if let End::Served(text) = end {
                expected_heard.push(text.to_owned());
            }
            // A connection of HTTP/1 ends after a wrong request; the others continue, or a new one
            // is used.
            let goes_on = over != Over::Http1 || matches!(end, End::Served(_));
            if goes_on {
                expected_heard.push(NEXT.to_owned());
            }
            let seen = (came, is_next_answered, heard.borrow().clone());
            if seen != (expected, goes_on, expected_heard.clone()) {
                writeln!(wrong, "{over:?} {}: {seen:?}, expected {expected:?} {goes_on} {expected_heard:?}", row.what)
                    .unwrap();
            }
        });
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A test for each group of rows and protocol.
macro_rules! groups {
    ($($group:ident),*) => {
        $(mod $group {
            use super::{Over, holds, rows};

            #[test]
            fn ends_as_expected_over_http1() {
                holds(Over::Http1, rows::$group());
            }

            #[test]
            fn ends_as_expected_over_http2() {
                holds(Over::Http2, rows::$group());
            }

            #[test]
            fn ends_as_expected_over_http3() {
                holds(Over::Http3, rows::$group());
            }
        })*
    };
}

groups!(paths, methods, hosts, lengths, fields, pseudo_headers, bodies, sizes);
