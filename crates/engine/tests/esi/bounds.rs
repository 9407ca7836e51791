//! Bounds on the cost of pages: memory, time, and delay of other requests.

use super::site::{Site, gunzip, gzipped, page, run_parsing, run_parsing_with};
use crate::support::{OriginRequest, run_with};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

#[test]
fn ten_thousand_includes_are_a_page_like_any_other() {
    run_parsing(async |world| {
        let text = format!("<p>{}</p>", "<esi:include src=\"/a\"/>".repeat(10_000));
        Site::serve(&world, [("/", page(text.clone())), ("/gz", gzipped(text)), ("/a", page("<b/>"))]);
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.body.len(), 7 + 40_000);
        let zipped = client.get("/gz", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(gunzip(&zipped.body).len(), 7 + 40_000);
        assert_eq!((world.count(Main::EsiReq), world.count(Main::CacheMiss)), (20_000, 3));
        assert_eq!(world.context.in_flight(), 0);
        assert!(world.count(Main::ReqBytes) < 100_000, "{}", world.count(Main::ReqBytes));
    });
}

/// An origin whose fragments are endless, or practically so.
fn serve_large(world: &Rc<crate::support::World>, page: &'static str, bytes: usize) -> Rc<Cell<usize>> {
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    world.origin(move |mut stream| {
        let count = Rc::clone(&count);
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if request.target() == "/" {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
                    stream.write_all(head.as_bytes()).await.unwrap();
                    continue;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
                let chunk = [b"2710\r\n".as_slice(), &[b'x'; 10_000], b"\r\n"].concat();
                for _ in 0..bytes / 10_000 {
                    if stream.write_all(&chunk).await.is_err() {
                        return;
                    }
                    count.set(count.get() + 10_000);
                }
                stream.write_all(b"0\r\n\r\n").await.unwrap();
            }
        }
    });
    sent
}

#[test]
fn a_slow_client_holds_little_of_fragments_however_large_they_are() {
    run_with(
        |_| {},
        "sub vcl_recv { if (req.url != \"/\") { return (pass); } }
        sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }",
        async |world| {
            let text = "<p><esi:include src=\"/1\"/><esi:include src=\"/2\"/><esi:include src=\"/3\"/></p>";
            serve_large(&world, text, 1_000_000_000);
            let mut client = world.client_with(1000);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            let held = world.count(Main::ReqBytes);
            assert!(held < 3 << 20, "{held} bytes are held");
            drop(client);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(world.context.in_flight(), 0, "a page that is given up gives up its fragments");
            assert_eq!(world.count(Main::ReqBytes), 0);
        },
    );
}

#[test]
fn a_page_that_is_given_up_while_it_waits_ends_with_its_fragments() {
    run_parsing(async |world| {
        let long = Duration::from_secs(50);
        Site::serve(
            &world,
            [
                (
                    "/",
                    page("<p><esi:include src=\"/first\"/><esi:include src=\"/in\"/><esi:include src=\"/slow\"/></p>"),
                ),
                ("/first", page("<a>").after(Duration::from_secs(2))),
                ("/in", page("<q><esi:include src=\"/slow\"/></q>")),
                ("/slow", page("slow").after(long)),
            ],
        );
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.context.in_flight(), 7);
        drop(client);
        sleep(Duration::from_secs(2)).await;
        // The fetch continues, since other requests may use its response.
        assert_eq!(world.context.in_flight(), 1, "{}", world.story());
        sleep(long).await;
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn the_same_body_twice_does_not_wait_for_itself_when_it_cannot_be_kept() {
    run_with(
        |parameters| parameters.unsized_body_share = 1,
        "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }",
        async |world| {
            let sent = serve_large(&world, "<p><esi:include src=\"/big\"/>-<esi:include src=\"/big\"/></p>", 3_000_000);
            let response = tokio::time::timeout(Duration::from_secs(60), world.client().get("/", "")).await;
            let response = response.unwrap_or_else(|_| panic!("stuck after {}\n{}", sent.get(), world.story()));
            assert_eq!((response.is_whole, response.body.len()), (true, 7 + 1 + 6_000_000));
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn a_page_without_room_is_an_error_and_never_its_markup() {
    run_parsing_with(
        |parameters| parameters.unsized_body_share = 1,
        async |world| {
            let text: &'static str = Box::leak(format!("<p>{}</p>", "x".repeat(100)).into_boxed_str());
            serve_large(&world, text, 30_000_000);
            let response = world.client().get("/big", "").await;
            assert_eq!(response.status(), 503);
            world.expect_log("FetchError Could not get storage");
        },
    );
}

/// A page that includes itself `count` times, and has text of its own between.
fn including_itself(count: usize) -> String {
    format!("<p>{}</p>", "<esi:include src=\"/\"/><b>a piece of text</b>".repeat(count))
}

#[test]
fn a_client_that_leaves_stops_the_whole_tree_of_nested_pages() {
    const IS_PAGE: &str = "sub vcl_backend_response { set beresp.do_esi = true; }";
    let passed = format!("sub vcl_recv {{ if (req.esi_level > 0) {{ return (pass); }} }} {IS_PAGE}");
    for (vcl, is_gzipped) in [(IS_PAGE, false), (IS_PAGE, true), (&*passed, false), (&*passed, true)] {
        run_with(
            |_| {},
            vcl,
            async |world| {
                let text = including_itself(20);
                Site::serve(&world, [("/", if is_gzipped { gzipped(text) } else { page(text) })]);
                let mut client = world.client_with(1000);
                client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
                sleep(Duration::from_secs(1)).await;
                let (begun, held) = (world.count(Main::EsiReq), world.count(Main::ReqBytes));
                assert!(begun >= 16, "{begun} fragments have begun");
                // The maximum number of open fragments, those whose turn it is, and as many
                // fetches, each with a full queue.
                assert!(held < 2 * 22 * (96 << 10), "{held} bytes are held");
                drop(client);
                sleep(Duration::from_secs(1)).await;
                assert_eq!(world.count(Main::EsiReq), begun, "a fragment that is given up starts none of its own");
                assert_eq!((world.context.in_flight(), world.count(Main::ReqBytes)), (0, 0));
            },
        );
    }
}

#[test]
fn a_page_has_a_limited_number_of_fragments_in_all() {
    for is_gzipped in [false, true] {
        run_parsing_with(
            |parameters| parameters.esi_fragments_max = 100,
            async |world| {
                let text = including_itself(20);
                Site::serve(&world, [("/", if is_gzipped { gzipped(text) } else { page(text) })]);
                let response = world.client().get("/", "Accept-Encoding: gzip\r\n").await;
                assert!(response.is_whole);
                let text = if is_gzipped { gunzip(&response.body) } else { response.text() };
                let pages = text.matches("<p>").count() as u64;
                assert_eq!(text.matches("a piece of text").count() as u64, pages * 20, "only fragments are left out");
                // Those below max_esi_depth count as well, so that the time of the deepest level is
                // bounded.
                assert!((17..=100).contains(&(pages - 1)), "{pages}");
                assert_eq!(world.count(Main::EsiReq), pages - 1);
                assert_eq!(world.count(Main::EsiReq) + world.count(Main::EsiLeftOut), pages * 20);
                world.expect_log("VCL_Error ESI fragment limit reached (param esi_fragments_max = 100)");
                world.expect_log("Witness why esi-limit limit=esi_fragments_max max=100");
                world.expect_log("Witness why esi-limit limit=max_esi_depth max=5");
                let told = world.log().iter().filter(|line| line.contains("ESI fragment limit reached")).count();
                assert!(told as u64 <= pages, "once a page: {told}");
                // The next request has a limit of its own.
                assert!(world.client().get("/", "").await.is_whole);
                assert!(world.count(Main::EsiReq) >= pages - 1 + 17, "{}", world.count(Main::EsiReq));
            },
        );
    }
}
