//! Filters of a body between the origin and the store.

use crate::support::{OriginRequest, OriginStream, World, always, run_with, serve_each};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::rc::Rc;
use surface::counter::Main;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

fn answering(
    headers: &str,
    body: &[u8],
) -> impl Fn(OriginStream) -> std::pin::Pin<Box<dyn Future<Output = ()>>> + use<> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    serve_each(move |_: &OriginRequest| answer.clone())
}

/// The digest that vcl_hash computes for a target.
fn digest_of(target: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(format!("{target}\0example.com\0")).into()
}

fn with_vcl<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(|_| {}, vcl, story);
}

#[test]
fn do_gzip_stores_compressed_and_serves_both_kinds_of_clients() {
    with_vcl("sub vcl_backend_response { set beresp.do_gzip = true; }", |world| async move {
        let text = "many words ".repeat(5_000);
        world.origin(always("ETag: \"e\"\r\n", &text));
        let mut client = world.client();
        let packed = client.get("/a", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{}", world.story());
        assert_eq!(packed.header("vary"), Some("Accept-Encoding"));
        assert_eq!(packed.header("etag"), Some("W/\"e\""));
        assert_eq!(gunzip(&packed.body), text);
        let plain = client.get("/a", "").await;
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.text(), text);
        assert_eq!(world.count(Main::CacheHit), 1);
        assert_eq!(world.count(Main::NGzip), 1);
        world.expect_log("Filters  gzip");
        world.expect_log("Gzip G F - 55000 ");
        assert!(world.engine.cache.store().usage().g_bytes < 20_000);
    });
}

#[test]
fn do_gunzip_stores_plain() {
    with_vcl("sub vcl_backend_response { set beresp.do_gunzip = true; }", |world| async move {
        world.origin(answering("Content-Encoding: gzip\r\n", &gzip(b"hello hello")));
        let response = world.client().get("/a", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(response.header("content-encoding"), None, "{}", world.story());
        assert_eq!(response.text(), "hello hello");
        world.expect_log("BerespUnset Content-Encoding: gzip");
        world.expect_log("Length 11");
    });
}

#[test]
fn gzip_from_the_origin_is_checked_on_its_way() {
    with_vcl("", |world| async move {
        let packed = gzip(b"hello hello");
        world.origin(answering("Content-Encoding: gzip\r\n", &packed));
        let response = world.client().get("/a", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(response.body, packed, "{}", world.story());
        world.expect_log("Filters  testgunzip");
        assert_eq!(world.count(Main::NTestGunzip), 1);

        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        damaged[middle + 1] ^= 0xff;
        world.engine.cache.purge(&digest_of("/a"), cache::Purge::Hard, world.context.clock.now());
        world.context.pool.clear();
        world.origin(answering("Content-Encoding: gzip\r\n", &damaged));
        let response = world.client().get("/a", "Accept-Encoding: gzip\r\n").await;
        assert!(response.status() == 503 || !response.is_whole, "{}", world.story());
        assert_eq!(world.count(Main::FetchFailed), 1);
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}

#[test]
fn gzip_that_is_not_gzip_is_a_503_without_streaming() {
    with_vcl("sub vcl_backend_response { set beresp.do_stream = false; }", |world| async move {
        world.origin(answering("Content-Encoding: gzip\r\n", b"not gzip at all"));
        assert_eq!(world.client().get("/a", "").await.status(), 503);
        world.expect_log("FetchError Invalid Gzip data: incorrect header check");
    });
}

#[test]
fn an_empty_body_has_no_encoding_and_no_filters() {
    with_vcl("sub vcl_backend_response { set beresp.do_gzip = true; }", |world| async move {
        world.origin(answering("Content-Encoding: gzip\r\n", b""));
        let response = world.client().get("/a", "").await;
        assert_eq!((response.status(), response.body.len()), (200, 0));
        world.expect_log("BerespUnset Content-Encoding: gzip");
        world.expect_log("Fetch_Body 0 none -");
        assert_eq!(world.count(Main::FetchNone), 1);
    });
}

#[test]
fn filters_named_by_vcl_replace_the_default_and_must_exist() {
    let vcl = "sub vcl_backend_response { set beresp.filters = bereq.http.X-Filters; }";
    with_vcl(vcl, |world| async move {
        world.origin(always("", "hello"));
        let mut client = world.client();
        let response = client.get("/a", "X-Filters: gzip\r\nAccept-Encoding: gzip\r\n").await;
        assert_eq!(gunzip(&response.body), "hello");
        let response = client.get("/b", "X-Filters: gzip foo\r\n").await;
        assert_eq!(response.status(), 503);
        world.expect_log("FetchError Filter '...foo' not found");
        world.expect_log("close Out of some resource");
    });
}

#[test]
fn do_flags_come_too_late_after_filters() {
    let vcl = "sub vcl_backend_response { set beresp.filters = \"\"; set beresp.do_gzip = true; }";
    with_vcl(vcl, |world| async move {
        world.origin(always("", "hello"));
        assert_eq!(world.client().get("/a", "").await.status(), 503);
        world.expect_log("VCL_Error beresp.filters are already fixed, beresp.do_gzip is undefined");
        assert_eq!(world.count(Main::VclFail), 1);
    });
}
