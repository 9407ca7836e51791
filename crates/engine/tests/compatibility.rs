//! Compatibility with scripts written for Varnish 7.1: each case was observed there.

use crate::support::{run, run_with, serve_each};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use surface::tag::Tag;

#[test]
fn a_status_that_is_not_cacheable_reads_as_a_ttl_of_nothing() {
    let vcl = "sub vcl_backend_response { set beresp.http.ttl = beresp.ttl; set beresp.http.grace = beresp.grace; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(serve_each(|request| {
                let age = if request.target() == "/aged" { "Age: 7\r\n" } else { "" };
                format!("HTTP/1.1 500 No\r\nCache-Control: max-age=100\r\n{age}Content-Length: 0\r\n\r\n").into_bytes()
            }));
            let response = world.client().get("/", "").await;
            assert_eq!((response.header("ttl"), response.header("grace")), (Some("0.000"), Some("10.000")));
            world.expect_log("TTL RFC -1 10 0");
        },
    );
}

#[test]
fn pieces_of_a_synthetic_body_that_are_unset_read_null() {
    let vcl = r#"
        sub vcl_recv { return (synth(200)); }
        sub vcl_synth {
            if (req.url == "/1") { synthetic(req.http.N); }
            if (req.url == "/2") { synthetic("a" + req.http.N + "b"); synthetic(req.http.N + req.http.M); }
            if (req.url == "/3") { set resp.body = "a" + req.http.N + "b"; }
            if (req.url == "/4") { synthetic("a"); set resp.body = req.http.N; }
            if (req.url == "/5") { synthetic(regsub(req.http.N, "x", "y")); }
            return (deliver);
        }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            let mut client = world.client();
            for (url, body) in [("/1", "(null)"), ("/2", "a(null)b(null)(null)"), ("/3", "ab"), ("/4", ""), ("/5", "")]
            {
                assert_eq!(client.get(url, "").await.text(), body, "{url}");
            }
        },
    );
}

#[test]
fn a_cookie_header_with_nothing_in_it_leaves_a_record() {
    let vcl =
        r#"import cookie; sub vcl_recv { cookie.parse(""); cookie.parse(req.http.Cookie); return (synth(200)); }"#;
    run_with(
        |parameters| parameters.vsl_mask = [0; 32],
        vcl,
        async |world| {
            world.client().get("/", "").await;
            let records = world.log().into_iter().filter(|line| line.ends_with("Debug cookie: nothing to parse"));
            assert_eq!(records.count(), 2, "{}", world.story());
            world.client().get("/", "Cookie: a=1\r\n").await;
        },
    );
}

#[test]
fn failures_in_vcl_fini_are_logged() {
    run(async |world| {
        let vcl = r#"import blob; import std;
            sub vcl_fini {
                std.log("before");
                std.log(blob.transcode(decoding = HEX, encoded = "zz"));
                std.log("after");
            }"#;
        world.load("one", vcl);
        let one = world.engine.vcl.load().active.clone().unwrap();
        world.load("two", "");
        engine::vcl_life::finish(&world.engine, &one, world.context.clock.now());
        let records = world.records().into_iter().filter(|record| matches!(record.tag, Tag::VCLLog | Tag::VCLError));
        let texts: Vec<String> = records.map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect();
        let failure = "vmod blob error: cannot decode, illegal encoding beginning with \"zz\"";
        assert_eq!(texts, ["before", failure, "VRT_fail() from vcl_fini{} has no effect"]);
    });
}

#[test]
fn excess_after_gzip_in_a_delivery_is_a_gzip_record() {
    let vcl = r#"
        sub vcl_backend_response { set beresp.filters = ""; }
        sub vcl_deliver { set resp.filters = "gunzip"; }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(b"hello world, hello world").unwrap();
            let body = [gzip.finish().unwrap(), b"JUNKJUNK".to_vec()].concat();
            world.origin(serve_each(move |_| {
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
                [head.into_bytes(), body.clone()].concat()
            }));
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            client.rest().await;
            world.expect_log("Gzip G(un)zip error: 1 (junk after VGZ_END)");
            assert!(!world.log().iter().any(|line| line.contains(" Error ")), "{}", world.story());
        },
    );
}

#[test]
fn excess_after_gzip_in_a_delivery_ends_the_connection_without_a_length() {
    let vcl = r#"
        sub vcl_backend_response { set beresp.filters = ""; }
        sub vcl_deliver { set resp.filters = "gunzip"; }"#;
    let gzip = || {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"hello world, hello world").unwrap();
        gzip.finish().unwrap()
    };
    // The last four bytes of the rest would be taken for a length: too long, none, and the right
    // one.
    for junk in [b"JUNKJUNK".to_vec(), vec![0; 100], gzip()] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let body = [gzip(), junk.clone()].concat();
                world.origin(serve_each(move |_| {
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
                    [head.into_bytes(), body.clone()].concat()
                }));
                for _ in ["a miss", "a hit"] {
                    let mut client = world.client();
                    client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
                    let sent = client.rest().await;
                    assert!(sent.starts_with("HTTP/1.1 200 ") && !sent.contains("Content-Length"), "{sent}");
                    assert!(!sent.ends_with("0\r\n\r\n"), "the end of the body is an error: {sent}");
                }
            },
        );
    }
}
