//! Filters of request bodies (7.7).

use crate::support::{Client, OriginRequest, World, run_with, serve_each};
use flate2::{Compression, write::GzEncoder};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

const TEXT: &[u8] =
    b"a text that is long enough to be worth the while, a text that is long enough to be worth the while";

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// The body that the origin received for a gzipped body posted under that VCL.
async fn posted(world: &Rc<World>, head: &str, body: Vec<u8>) -> (u16, OriginRequest) {
    let got = Rc::new(RefCell::new(OriginRequest::default()));
    let into = Rc::clone(&got);
    world.origin(serve_each(move |request| {
        *into.borrow_mut() = request.clone();
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
    }));
    let mut client: Client = world.client();
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\n{head}Content-Length: {}\r\n\r\n", body.len());
    let status = client.post(head, body).await.status();
    let got = got.borrow().clone();
    (status, got)
}

fn check(vcl: &str, check: impl FnOnce(&Rc<World>, u16, OriginRequest)) {
    run_with(
        |_| {},
        vcl,
        async |world| {
            let (status, got) = posted(&world, "Content-Encoding: gzip\r\n", gzipped(TEXT)).await;
            check(&world, status, got);
        },
    );
}

#[test]
fn a_body_is_unpacked_on_its_way_from_the_client() {
    check("sub vcl_recv { set req.filters = \"gunzip\"; }", |world, status, got| {
        assert_eq!((status, got.body.as_slice()), (200, TEXT), "{}", world.story());
        assert_eq!(got.header("content-encoding"), None);
        assert_eq!(got.header("transfer-encoding"), Some("chunked"));
    });
}

#[test]
fn a_body_that_is_kept_is_kept_unpacked() {
    let vcl = "import std;
        sub vcl_recv { set req.filters = \"gunzip\"; std.cache_req_body(100KB); set req.http.Kept = req.filters; }";
    check(vcl, |world, status, got| {
        assert_eq!((status, got.body.as_slice()), (200, TEXT), "{}", world.story());
        assert_eq!((got.header("content-encoding"), got.header("kept")), (None, Some("gunzip")));
        assert_eq!(got.header("content-length"), Some(TEXT.len().to_string().as_str()));
    });
}

#[test]
fn a_body_is_unpacked_on_its_way_to_the_origin_streamed_or_kept() {
    for kept in ["", "import std; sub vcl_recv { std.cache_req_body(100KB); }"] {
        let vcl = format!("{kept} sub vcl_backend_fetch {{ set bereq.filters = \"gunzip\"; }}");
        check(&vcl, |world, status, got| {
            assert_eq!((status, got.body.as_slice()), (200, TEXT), "{}", world.story());
            assert_eq!(got.header("content-encoding"), None);
        });
    }
}

#[test]
fn a_body_that_is_kept_is_unpacked_anew_when_the_fetch_is_retried() {
    let vcl = "import std;
        sub vcl_recv { std.cache_req_body(100KB); }
        sub vcl_backend_fetch {
            set bereq.filters = \"gunzip\";
            set bereq.http.Before = bereq.http.Content-Encoding + bereq.retries;
        }
        sub vcl_backend_response { if (bereq.retries == 0) { return (retry); } }";
    check(vcl, |world, status, got| {
        assert_eq!((status, got.body.as_slice()), (200, TEXT), "{}", world.story());
        assert_eq!((got.header("before"), got.header("content-encoding")), (Some("gzip1"), None));
    });
}

#[test]
fn a_body_is_packed_for_the_origin() {
    run_with(
        |_| {},
        "sub vcl_recv { set req.filters = \"gzip\"; }",
        async |world| {
            let (status, got) = posted(&world, "", TEXT.to_vec()).await;
            assert_eq!((status, got.header("content-encoding")), (200, Some("gzip")), "{}", world.story());
            let mut plain = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(got.body.as_slice()), &mut plain).unwrap();
            assert_eq!(plain, TEXT);
        },
    );
}

#[test]
fn invalid_gzip_never_reaches_the_origin_and_unknown_filters_fail_the_request() {
    run_with(
        |_| {},
        "sub vcl_recv { set req.filters = \"gunzip\"; }",
        async |world| {
            let (status, got) = posted(&world, "Content-Encoding: gzip\r\n", b"not gzip at all".to_vec()).await;
            assert_eq!((status, got.body.len()), (503, 0), "{}", world.story());
        },
    );
    for vcl in [
        "sub vcl_recv { set req.filters = \"gunzip foo\"; }",
        "sub vcl_backend_fetch { set bereq.filters = \"gzip\"; }",
        "import std; sub vcl_recv { std.cache_req_body(100KB); set req.filters = \"gunzip\"; }",
    ] {
        check(vcl, |world, status, _| assert_eq!(status, 503, "{vcl} {}", world.story()));
    }
}
