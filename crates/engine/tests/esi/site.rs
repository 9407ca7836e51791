//! An origin with pages: each target has an answer, optionally delayed.

use crate::support::{OriginRequest, World, run_with};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::rc::Rc;
use std::time::Duration;
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

/// Parses everything.
pub const PARSE_ALL: &str = "sub vcl_backend_response { set beresp.do_esi = true; }";

/// The origin's answer to one target.
#[derive(Clone)]
pub struct Answer {
    head: String,
    body: Vec<u8>,
    after: Duration,
    /// Closes the connection after this many bytes of the body.
    cut: Option<usize>,
}

/// An answer with that body.
pub fn page(body: impl Into<Vec<u8>>) -> Answer {
    Answer { head: "HTTP/1.1 200 OK\r\n".into(), body: body.into(), after: Duration::ZERO, cut: None }
}

/// An answer with that body, gzipped.
pub fn gzipped(body: impl AsRef<[u8]>) -> Answer {
    page(gzip(body.as_ref())).with("Content-Encoding: gzip")
}

impl Answer {
    /// With another status line.
    pub fn status(self, line: &str) -> Answer {
        Answer { head: self.head.replace("200 OK", line), ..self }
    }

    /// With a header.
    pub fn with(self, header: &str) -> Answer {
        Answer { head: format!("{}{header}\r\n", self.head), ..self }
    }

    /// Delays the answer.
    pub fn after(self, after: Duration) -> Answer {
        Answer { after, ..self }
    }

    /// Aborts after this many bytes of the body.
    pub fn cut(self, bytes: usize) -> Answer {
        Answer { cut: Some(bytes), ..self }
    }
}

pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

pub fn gunzip(body: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(body).read_to_string(&mut text).unwrap_or_else(|error| panic!("{error}: {} bytes", body.len()));
    text
}

/// An origin, and the requests that it received.
#[derive(Default)]
pub struct Site {
    pages: RefCell<BTreeMap<String, Answer>>,
    asked: RefCell<Vec<(Instant, OriginRequest)>>,
}

impl Site {
    /// Serves these as the origin of the world.
    pub fn serve<T: Into<String>>(world: &World, pages: impl IntoIterator<Item = (T, Answer)>) -> Rc<Site> {
        let site = Rc::new(Site::default());
        site.pages.borrow_mut().extend(pages.into_iter().map(|(target, answer)| (target.into(), answer)));
        let served = Rc::clone(&site);
        world.origin(move |mut stream| {
            let site = Rc::clone(&served);
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let answer = site.pages.borrow().get(request.target()).cloned();
                    let answer = answer.unwrap_or_else(|| page("").status("404 Not Found"));
                    site.asked.borrow_mut().push((Instant::now(), request));
                    sleep(answer.after).await;
                    let length = answer.body.len();
                    let head = format!("{}Content-Length: {length}\r\n\r\n", answer.head);
                    let body = &answer.body[..answer.cut.unwrap_or(length)];
                    let sent = stream.write_all(&[head.as_bytes(), body].concat()).await;
                    if answer.cut.is_some() {
                        // A response that is aborted before it has a reader becomes an error
                        // response instead.
                        sleep(Duration::from_millis(100)).await;
                        return;
                    }
                    if sent.is_err() {
                        return;
                    }
                }
            }
        });
        site
    }

    /// Changes an answer.
    pub fn set(&self, target: &str, answer: Answer) {
        self.pages.borrow_mut().insert(target.to_owned(), answer);
    }

    /// The requested targets, in order.
    pub fn targets(&self) -> Vec<String> {
        self.asked.borrow().iter().map(|(_, request)| request.target().to_owned()).collect()
    }

    /// The last request for a target.
    pub fn last(&self, target: &str) -> OriginRequest {
        let asked = self.asked.borrow();
        let found = asked.iter().rev().find(|(_, request)| request.target() == target);
        found.unwrap_or_else(|| panic!("nobody asked for {target}")).1.clone()
    }
}

/// Runs a test in a world that parses every response.
pub fn run_parsing<F: Future<Output = ()>>(story: impl FnOnce(Rc<World>) -> F) {
    run_with(|_| {}, PARSE_ALL, story);
}

/// As [`run_parsing`], with other parameters.
pub fn run_parsing_with<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    story: impl FnOnce(Rc<World>) -> F,
) {
    run_with(change, PARSE_ALL, story);
}
