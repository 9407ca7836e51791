//! Reuse of stored responses under `http_policy=rfc`.

mod changes;
mod conditions;
mod groups;
mod heads;
mod no_vary_search;
mod queries;
mod request_directives;
mod stale;

use crate::support::{Client, OriginRequest, Response, World, run_with, serve_each};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use surface::parameter::Parameters;
use tokio::time::sleep;

/// Runs a test under RFC 9111. The VCL keeps nothing from the cache.
fn run_rfc<F: Future<Output = ()>>(story: impl FnOnce(Rc<World>) -> F) {
    run_rfc_with(|_| {}, "", story);
}

/// As [`run_rfc`], with other parameters and more VCL.
fn run_rfc_with<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Rc<World>) -> F,
) {
    let change = |parameters: &mut Parameters| {
        parameters.http_policy = "rfc".into();
        parameters.default_grace = 0.0;
        parameters.default_keep = 3600.0;
        // Clients of these tests wait long between their requests.
        parameters.timeout_idle = 1e6;
        change(parameters);
    };
    run_with(change, vcl, story);
}

/// The requests that an origin received, in order.
type Asked = Rc<RefCell<Vec<OriginRequest>>>;

/// Serves the world with the result of `answer` for the number of the request (from 1) and the
/// request.
fn origin(world: &World, answer: impl Fn(usize, &OriginRequest) -> String + Clone + 'static) -> Asked {
    let asked = Asked::default();
    let seen = Rc::clone(&asked);
    world.origin(serve_each(move |request| {
        seen.borrow_mut().push(request.clone());
        let number = seen.borrow().len();
        answer(number, request).into_bytes()
    }));
    asked
}

/// A 200 with these headers (each with its line end) and that body.
fn ok(headers: &str, body: impl std::fmt::Display) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A response without a body.
fn bare(line: &str, headers: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{headers}Content-Length: 0\r\n\r\n")
}

async fn wait(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

async fn send(client: &mut Client, method: &str, target: &str, headers: &str) -> Response {
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: example.com\r\n{headers}\r\n")).await;
    client.response().await
}

/// The reasons recorded so far.
fn reasons(world: &World) -> Vec<String> {
    let lines = world.log();
    lines.iter().filter_map(|line| line.split_once(" Witness why ")).map(|(_, reason)| reason.to_owned()).collect()
}

#[track_caller]
fn expect_reason(world: &World, word: &str) {
    let all = reasons(world);
    let is_there = all.iter().any(|reason| reason.split(' ').next() == Some(word));
    assert!(is_there, "no {word} in {all:?}\n{}", world.story());
}
