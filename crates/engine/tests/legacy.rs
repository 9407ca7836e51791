//! VCL before 4.0, run end to end: the behaviour that it could rely on.

mod articles;
mod directors;
mod dns;
mod errors;
mod fetches;
mod lookups;
mod requests;

use crate::support::{OriginRequest, OriginStream, World, run_with, serve_each};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use surface::parameter::Parameters;

/// A backend of 2.0 to 3.0.
const BACKEND: &str = "backend default { .host = \"10.0.0.1\"; .port = \"80\"; }\n";

/// Runs a test with a VCL text of 2.0 to 3.0 behind the backend `default`.
fn run_old<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_old_with(|_| {}, vcl, story);
}

/// The same with other parameters.
fn run_old_with<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Rc<World>) -> F,
) {
    run_with(change, &format!("{BACKEND}{vcl}"), story);
}

/// The requests that an origin received, in order.
type Asked = Rc<RefCell<Vec<OriginRequest>>>;

/// An origin that records its requests.
fn noting<A: Fn(&OriginRequest) -> Vec<u8> + Clone + 'static>(
    asked: &Asked,
    answer: A,
) -> impl Fn(OriginStream) -> Pin<Box<dyn Future<Output = ()>>> + use<A> {
    let asked = Rc::clone(asked);
    serve_each(move |request: &OriginRequest| {
        asked.borrow_mut().push(request.clone());
        answer(request)
    })
}

/// A response with a body of known length; headers with their line ends.
fn page(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
