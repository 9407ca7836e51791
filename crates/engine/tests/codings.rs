//! Brotli and Zstandard: the codings offered to clients and origins, bodies stored as received, and
//! compressed copies.

use crate::support::{World, run_with, serve_each};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::encoding::Encodings;
use surface::parameter::Parameters;
use tokio::time::sleep;

/// The header of a browser.
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
const BR: &str = "Accept-Encoding: br\r\n";
const GZIP: &str = "Accept-Encoding: gzip\r\n";

fn with(codings: &str) -> impl FnOnce(&mut Parameters) {
    let codings = Encodings::parse(codings).unwrap().parameter();
    move |parameters| {
        parameters.http_encodings = codings;
        parameters.compress_after = 1;
        parameters.compress_cpu = 100;
    }
}

fn page() -> String {
    (0..400).map(|number| format!("<p>paragraph {number} of a page that is long enough</p>\n")).collect()
}

/// Text that does not get much shorter.
fn noise(chars: u32) -> String {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x1000 + (state >> 17)).unwrap_or('x')
    };
    (0..chars).map(next).collect()
}

fn brotli(text: &str) -> Vec<u8> {
    let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    writer.write_all(text.as_bytes()).unwrap();
    writer.into_inner()
}

fn unbrotli(body: &[u8]) -> String {
    let mut text = String::new();
    brotli::Decompressor::new(body, 4096).read_to_string(&mut text).unwrap();
    text
}

/// An origin that always gives this body.
fn gives(world: &World, head: &str, body: &[u8]) {
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{head}\r\n", body.len()).as_bytes(), body].concat();
    world.origin(serve_each(move |_| answer.clone()));
}

const HTML: &str = "Content-Type: text/html\r\nETag: \"a\"\r\nCache-Control: max-age=100\r\n";

/// Waits until no copy is being made.
async fn settled(world: &World) {
    while world.engine.is_copying.load(std::sync::atomic::Ordering::Acquire) {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Causes a copy to be made: two requests that prefer brotli.
async fn have_copy_made(world: &World) {
    let mut client = world.client();
    client.get("/", BR).await;
    client.get("/", BR).await;
    settled(world).await;
    assert_eq!(world.count(Main::NCopies), 1, "{}", world.story());
}

#[test]
fn vcl_and_the_origin_see_codings_in_their_order_of_preference() {
    let vcl = "sub vcl_hash { std.log(\"accepts \" + req.http.accept-encoding); }";
    run_with(with("zstd br gzip"), &format!("import std; {vcl}"), async |world| {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&asked);
        world.origin(serve_each(move |request| {
            seen.borrow_mut().push(request.header("accept-encoding").unwrap_or_default().to_owned());
            b"HTTP/1.1 200 OK\r\nVary: Accept-Encoding\r\nContent-Length: 1\r\n\r\nx".to_vec()
        }));
        for (number, (accept, expected)) in
            [("gzip, deflate, br, zstd", "zstd, br, gzip"), ("gzip, br;q=0", "gzip"), ("br;q=0.5, gzip", "gzip, br")]
                .into_iter()
                .enumerate()
        {
            world.client().get(&format!("/{number}"), &format!("Accept-Encoding: {accept}\r\n")).await;
            world.expect_log(&format!("accepts {expected}"));
        }
        assert_eq!(asked.borrow().len(), 3);
        assert!(asked.borrow().iter().all(|accept| accept == "zstd, br, gzip"), "{asked:?}");
    });
}

#[test]
fn only_gzip_is_offered_unless_more_is_enabled() {
    run_with(
        |_| {},
        "",
        async |world| {
            gives(&world, HTML, page().as_bytes());
            for _ in 0..10 {
                let response = world.client().get("/", BROWSER).await;
                assert_eq!((response.text(), response.header("vary")), (page(), None));
            }
            assert_eq!(world.count(Main::NCopies), 0);
            world.expect_log("ReqHeader Accept-Encoding: gzip");
        },
    );
}

#[test]
fn body_in_brotli_is_sent_as_it_came_or_unpacked() {
    run_with(with("br gzip"), "", async |world| {
        let packed = brotli(&page());
        gives(&world, &format!("{HTML}Content-Encoding: br\r\n"), &packed);
        let mut client = world.client();
        for _ in 0..2 {
            let as_is = client.get("/", BROWSER).await;
            assert_eq!((as_is.header("content-encoding"), &as_is.body), (Some("br"), &packed));
            assert_eq!((as_is.header("etag"), as_is.header("vary")), (Some("\"a\""), Some("Accept-Encoding")));
            let length = packed.len().to_string();
            assert_eq!(as_is.header("content-length"), Some(length.as_str()));
        }
        let plain = client.get("/", "").await;
        assert_eq!((plain.text(), plain.header("content-encoding")), (page(), None));
        assert_eq!((plain.header("etag"), plain.header("vary")), (Some("W/\"a\""), Some("Accept-Encoding")));
        // The length of the body is unknown before it is decompressed, so a range of it is the
        // complete body.
        let part = client.get("/", "Range: bytes=3-11\r\n").await;
        assert_eq!((part.status(), part.text()), (200, page()));
        client.send("HEAD / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        let head = client.response_to_head().await;
        assert_eq!((head.header("content-encoding"), head.header("etag")), (None, Some("W/\"a\"")));
        let unchanged = client.get("/", "If-None-Match: W/\"a\"\r\n").await;
        assert_eq!((unchanged.status(), unchanged.header("etag")), (304, Some("W/\"a\"")));
        world.expect_log("Filters  unbrotli range");
        assert_eq!(world.count(Main::CacheMiss), 1);
    });
}

#[test]
fn damaged_brotli_fails_only_clients_that_need_decompression() {
    run_with(with("br gzip"), "", async |world| {
        gives(&world, &format!("{HTML}Content-Encoding: br\r\n"), &[0xff; 3000]);
        assert_eq!(world.client().get("/", BR).await.body, [0xff; 3000]);
        assert!(!world.client().get("/", "").await.is_whole);
        world.expect_log("Error Invalid brotli data");
    });
}

#[test]
fn bomb_in_brotli_is_unpacked_only_as_far_as_its_client_reads() {
    run_with(with("br gzip"), "", async |world| {
        let bomb = brotli(&" ".repeat(200 << 20));
        assert!(bomb.len() < 10_000, "{}", bomb.len());
        gives(&world, &format!("{HTML}Content-Encoding: br\r\n"), &bomb);
        world.client().get("/", BR).await;
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        client.receive(4000).await;
        sleep(Duration::from_secs(1)).await;
        assert!(world.count(Main::ReqBytes) < 24 << 20, "{}", world.count(Main::ReqBytes));
    });
}

#[test]
fn bomb_becomes_no_copy() {
    run_with(with("br gzip"), "", async |world| {
        let bomb = brotli(&(page() + &noise(3000) + &" ".repeat(20 << 20)));
        assert!((1 << 10..10_000).contains(&bomb.len()), "{}", bomb.len());
        gives(&world, &format!("{HTML}Content-Encoding: br\r\n"), &bomb);
        let mut client = world.client();
        for _ in 0..3 {
            client.send(&format!("HEAD / HTTP/1.1\r\nHost: example.com\r\n{GZIP}\r\n")).await;
            client.response_to_head().await;
        }
        settled(&world).await;
        assert_eq!((world.count(Main::NCopies), world.count(Main::NCopiesRefused)), (0, 1));
    });
}

#[test]
fn copy_is_made_once_and_sent_from_then_on() {
    run_with(with("zstd br gzip"), "", async |world| {
        gives(&world, HTML, page().as_bytes());
        let mut client = world.client();
        let first = client.get("/", BR).await;
        assert_eq!((first.text(), first.header("etag")), (page(), Some("\"a\"")));
        assert_eq!(first.header("vary"), Some("Accept-Encoding"));
        have_copy_made(&world).await;
        // The copy is made on a thread of its own: the last of the requests for it may have got it
        // already.
        let sent_before = world.count(Main::CopiesSent);
        for _ in 0..3 {
            let copy = client.get("/", BR).await;
            assert_eq!((unbrotli(&copy.body), copy.header("content-encoding")), (page(), Some("br")));
            assert_eq!((copy.header("etag"), copy.header("vary")), (Some("W/\"a\""), Some("Accept-Encoding")));
            let length = copy.body.len().to_string();
            assert_eq!(copy.header("content-length"), Some(length.as_str()));
            assert_eq!(copy.header("accept-ranges"), None);
            assert!(copy.body.len() < page().len() / 5);
        }
        // Acceptable for clients that prefer Zstandard; others get a coding they can read.
        assert_eq!(client.get("/", BROWSER).await.header("content-encoding"), Some("br"));
        let plain = client.get("/", "").await;
        assert_eq!(
            (plain.text(), plain.header("content-encoding"), plain.header("etag")),
            (page(), None, Some("\"a\""))
        );
        assert_eq!((world.count(Main::NCopies), world.count(Main::CopiesSent) - sent_before), (1, 4));
        assert!(world.count(Main::CopiesSavedBytes) > 4 * 10_000);
        assert_eq!(world.count(Main::CacheMiss), 1);
        world.expect_log("why hit-copy text=br, ");
        world.expect_log("has a copy in br");
    });
}

#[test]
fn head_and_conditions_are_answered_from_the_copy() {
    run_with(with("br gzip"), "", async |world| {
        gives(&world, HTML, page().as_bytes());
        have_copy_made(&world).await;
        let mut client = world.client();
        let full = client.get("/", BR).await;
        client.send(&format!("HEAD / HTTP/1.1\r\nHost: example.com\r\n{BR}\r\n")).await;
        let head = client.response_to_head().await;
        for name in ["content-length", "content-encoding", "etag", "vary"] {
            assert_eq!(head.header(name), full.header(name), "{name}");
        }
        for tag in ["W/\"a\"", "\"a\""] {
            let unchanged = client.get("/", &format!("{BR}If-None-Match: {tag}\r\n")).await;
            assert_eq!((unchanged.status(), unchanged.header("etag")), (304, Some("W/\"a\"")));
            assert_eq!((unchanged.header("content-length"), unchanged.body.len()), (None, 0));
        }
        assert_eq!(client.get("/", &format!("{BR}If-None-Match: \"b\"\r\n")).await.body, full.body);
    });
}

#[test]
fn ranges_are_those_of_the_stored_body_and_never_mixed_with_a_copy() {
    run_with(with("br gzip"), "", async |world| {
        gives(&world, &format!("{HTML}Last-Modified: Fri, 01 Jan 2021 00:00:00 GMT\r\n"), page().as_bytes());
        have_copy_made(&world).await;
        let mut client = world.client();
        let part = client.get("/", &format!("{BR}Range: bytes=3-11\r\n")).await;
        assert_eq!((part.status(), part.text().as_str(), part.header("content-encoding")), (206, "paragraph", None));
        assert_eq!(part.header("etag"), Some("\"a\""));
        // The tag of the copy is weak; the stored body's is strong.
        let weak = client.get("/", &format!("{BR}Range: bytes=3-11\r\nIf-Range: W/\"a\"\r\n")).await;
        assert_eq!((weak.status(), weak.text().len()), (200, page().len()));
        let strong = client.get("/", &format!("{BR}Range: bytes=3-11\r\nIf-Range: \"a\"\r\n")).await;
        assert_eq!((strong.status(), strong.text().as_str()), (206, "paragraph"));
        // A date is the same for all codings, so the whole body is sent.
        let since = "If-Range: Fri, 01 Jan 2021 00:00:00 GMT\r\n";
        let dated = client.get("/", &format!("{BR}Range: bytes=3-11\r\n{since}")).await;
        assert_eq!((dated.status(), unbrotli(&dated.body)), (200, page()));
        let of_one = client.get("/", &format!("Range: bytes=3-11\r\n{since}")).await;
        assert_eq!(of_one.status(), 206, "who accepts no coding has only seen one body");
    });
}

#[test]
fn gzipped_object_gets_a_copy_in_brotli() {
    run_with(with("br gzip"), "sub vcl_backend_response { set beresp.do_gzip = true; }", async |world| {
        gives(&world, HTML, page().as_bytes());
        let mut client = world.client();
        assert_eq!(client.get("/", GZIP).await.header("content-encoding"), Some("gzip"));
        have_copy_made(&world).await;
        let copy = client.get("/", BROWSER).await;
        assert_eq!((unbrotli(&copy.body), copy.header("content-encoding")), (page(), Some("br")));
        assert_eq!(client.get("/", GZIP).await.header("content-encoding"), Some("gzip"));
        assert_eq!(client.get("/", "").await.text(), page());
    });
}

#[test]
fn object_in_brotli_gets_a_gzipped_copy_for_those_who_only_know_that() {
    run_with(with("br gzip"), "", async |world| {
        let text = page() + &noise(2000);
        gives(&world, &format!("{HTML}Content-Encoding: br\r\n"), &brotli(&text));
        let mut client = world.client();
        client.get("/", GZIP).await;
        let unpacked = client.get("/", GZIP).await;
        assert_eq!((unpacked.text(), unpacked.header("etag")), (text.clone(), Some("W/\"a\"")));
        settled(&world).await;
        let copy = client.get("/", GZIP).await;
        let mut got = String::new();
        flate2::read::GzDecoder::new(&copy.body[..]).read_to_string(&mut got).unwrap();
        assert_eq!((got, copy.header("content-encoding")), (text, Some("gzip")));
    });
}

/// A test with an origin whose page changes with each fetch.
fn changing(change: impl AsyncFn(&World), vcl: &str) {
    run_with(with("br gzip"), vcl, async |world| {
        let number = Rc::new(RefCell::new(0));
        let fetched = Rc::clone(&number);
        world.origin(serve_each(move |_| {
            *fetched.borrow_mut() += 1;
            let body = page().replace("paragraph", &format!("version{}", fetched.borrow()));
            format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }));
        have_copy_made(&world).await;
        let mut client = world.client();
        let old = client.get("/", BR).await;
        assert_eq!(old.header("content-encoding"), Some("br"));
        assert!(unbrotli(&old.body).contains("version1"));
        change(&world).await;
        let mut client = world.client();
        let new = client.get("/", BR).await;
        assert_eq!(new.header("content-encoding"), None, "{}", world.story());
        assert!(new.text().contains("version2"));
        client.get("/", BR).await;
        settled(&world).await;
        let copy = client.get("/", BR).await;
        assert_eq!((copy.header("content-encoding"), world.count(Main::NCopies)), (Some("br"), 2));
        assert!(unbrotli(&copy.body).contains("version2"));
    });
}

#[test]
fn nothing_old_comes_from_a_copy_after_a_purge() {
    let vcl = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }";
    changing(
        async |world| {
            let mut client = world.client();
            client.send("PURGE / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            client.response().await;
        },
        vcl,
    );
}

#[test]
fn nothing_old_comes_from_a_copy_after_a_ban() {
    changing(
        async |world| {
            let ban = cache::BanSpecification::parse(&["obj.http.content-type", "==", "text/html"]).unwrap();
            world.engine.cache.ban(ban, world.context.clock.now()).unwrap();
        },
        "",
    );
}

#[test]
fn nothing_old_comes_from_a_copy_after_expiry() {
    changing(async |_| sleep(Duration::from_secs(300)).await, "");
}

#[test]
fn nothing_old_comes_from_a_copy_after_a_fetch_that_was_forced() {
    let vcl = "sub vcl_recv { if (req.http.force) { set req.hash_always_miss = true; } }";
    run_with(with("br gzip"), vcl, async |world| {
        let number = Rc::new(RefCell::new(0));
        world.origin(serve_each(move |_| {
            *number.borrow_mut() += 1;
            let body = page().replace("paragraph", &format!("version{}", number.borrow()));
            format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }));
        have_copy_made(&world).await;
        world.client().get("/", "Force: yes\r\n").await;
        let new = world.client().get("/", BR).await;
        assert!(new.text().contains("version2"), "{}", world.story());
    });
}

#[test]
fn copy_lives_as_long_as_its_original_may_be_sent() {
    let vcl = "sub vcl_backend_response { set beresp.grace = 50s; set beresp.keep = 100s; }";
    run_with(with("br gzip"), vcl, async |world| {
        gives(&world, HTML, page().as_bytes());
        have_copy_made(&world).await;
        assert_eq!(world.engine.cache.object_count(), 2);
        sleep(Duration::from_secs(120)).await;
        let stale = world.client().get("/", BR).await;
        assert_eq!(stale.header("content-encoding"), Some("br"), "the original is in grace");
        sleep(Duration::from_secs(40)).await;
        world.engine.cache.tick(world.context.clock.now());
        let counts = world.engine.cache.object_count();
        assert!(counts <= 2, "the first copy has expired: {counts}");
    });
}

#[test]
fn only_worthwhile_objects_get_a_copy() {
    let mut random = SmallRng::seed_from_u64(9);
    let noise: Vec<u8> = (0..5000).map(|_| random.random()).collect();
    let no_cases: [(&str, String, Vec<u8>); 7] = [
        ("short", HTML.into(), b"hello".to_vec()),
        ("a picture", HTML.replace("text/html", "image/png"), page().into_bytes()),
        ("protected", HTML.replace("max-age=100", "max-age=100, no-transform"), page().into_bytes()),
        ("a stream of events", HTML.replace("text/html", "text/event-stream"), page().into_bytes()),
        ("coded", format!("{HTML}Content-Encoding: deflate\r\n"), page().into_bytes()),
        ("named by a digest", format!("{HTML}Content-Digest: sha-256=:aaaa=:\r\n"), page().into_bytes()),
        ("not cacheable", HTML.replace("max-age=100", "private"), page().into_bytes()),
    ];
    for (what, head, body) in no_cases {
        run_with(with("br gzip"), "", async |world| {
            gives(&world, &head, &body);
            for _ in 0..4 {
                assert!(world.client().get("/", BR).await.body == body, "{what}");
                settled(&world).await;
            }
            assert_eq!((world.count(Main::NCopies), world.count(Main::NCopiesRefused)), (0, 0), "{what}");
        });
    }
    run_with(with("br gzip"), "", async |world| {
        gives(&world, HTML, &noise);
        for _ in 0..6 {
            assert!(world.client().get("/", BR).await.body == noise);
            settled(&world).await;
        }
        assert_eq!((world.count(Main::NCopies), world.count(Main::NCopiesRefused)), (0, 1), "tried once");
    });
}

#[test]
fn copies_are_made_after_the_hits_that_the_operator_wants_or_never() {
    let change = |parameters: &mut Parameters| {
        with("br gzip")(parameters);
        parameters.compress_after = 5;
    };
    run_with(change, "", async |world| {
        gives(&world, HTML, page().as_bytes());
        for hits in 0..8 {
            let response = world.client().get("/", BR).await;
            assert_eq!(response.header("content-encoding").is_some(), hits > 5, "{hits}");
            settled(&world).await;
        }
    });
    let never = |parameters: &mut Parameters| {
        with("br gzip")(parameters);
        parameters.compress_cpu = 0;
    };
    run_with(never, "", async |world| {
        gives(&world, HTML, page().as_bytes());
        for _ in 0..5 {
            assert_eq!(world.client().get("/", BR).await.text(), page());
        }
        assert_eq!(world.count(Main::NCopies), 0);
    });
}

#[test]
fn filters_that_vcl_names_work_on_the_stored_body() {
    let vcl = "sub vcl_deliver { if (req.http.own) { set resp.filters = \"range\"; } }";
    run_with(with("br gzip"), vcl, async |world| {
        gives(&world, HTML, page().as_bytes());
        have_copy_made(&world).await;
        let own = world.client().get("/", &format!("{BR}Own: yes\r\n")).await;
        assert_eq!((own.text(), own.header("content-encoding")), (page(), None));
        let length = page().len().to_string();
        assert_eq!(own.header("content-length"), Some(length.as_str()));
    });
}

#[test]
fn vcl_can_have_everything_stored_in_brotli() {
    let vcl = "sub vcl_backend_response { set beresp.filters = \"brotli\"; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            gives(&world, HTML, page().as_bytes());
            let response = world.client().get("/", BR).await;
            assert_eq!((response.text(), response.header("content-encoding")), (page(), None), "br is not offered");
            assert_eq!(response.header("vary"), Some("Accept-Encoding"));
        },
    );
    run_with(with("br gzip"), vcl, async |world| {
        gives(&world, HTML, page().as_bytes());
        let response = world.client().get("/", BROWSER).await;
        assert_eq!((unbrotli(&response.body), response.header("content-encoding")), (page(), Some("br")));
        assert_eq!(response.header("etag"), Some("W/\"a\""));
    });
}
