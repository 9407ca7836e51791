//! Gzipped pages: one valid stream, for any fragments.

use super::site::{PARSE_ALL, Site, gunzip, gzipped, page, run_parsing};
use crate::support::run_with;

fn text(seed: usize, bytes: usize) -> String {
    let mut number = seed as u32;
    let mut text = String::new();
    while text.len() < bytes {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(["alpha ", "beta ", "gamma\n", "delta-"][number as usize >> 7 & 3]);
    }
    text
}

#[test]
fn plain_and_gzipped_fragments_are_joined_into_one_stream() {
    for (page_gzipped, long) in [(true, 10), (true, 200_000), (false, 10), (false, 200_000)] {
        // Fragments are not parsed: they are streamed.
        let vcl = "sub vcl_backend_response { if (bereq.url == \"/\") { set beresp.do_esi = true; set beresp.do_gzip = true; } }";
        run_with(
            |_| {},
            vcl,
            async |world| {
                let body = "<p>a<esi:include src=\"/gz\"/>b<esi:include src=\"/plain\"/><esi:include src=\"/gz2\"/>c\
                    <esi:include src=\"/none\"/></p>";
                let (one, two, three) = (text(1, long), text(2, long), text(3, long));
                Site::serve(
                    &world,
                    [
                        ("/", if page_gzipped { gzipped(body) } else { page(body) }),
                        ("/gz", gzipped(&one)),
                        ("/plain", page(two.clone())),
                        ("/gz2", gzipped(&three)),
                        ("/none", page("")),
                    ],
                );
                let whole = format!("<p>a{one}b{two}{three}c</p>");
                let mut client = world.client();
                for _ in 0..2 {
                    let zipped = client.get("/", "Accept-Encoding: gzip\r\n").await;
                    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
                    assert!(
                        zipped.is_whole && gunzip(&zipped.body) == whole,
                        "{page_gzipped} {long}\n{}",
                        world.story()
                    );
                    let plain = client.get("/", "").await;
                    assert_eq!(plain.header("content-encoding"), None);
                    assert!(plain.is_whole && plain.text() == whole, "{page_gzipped} {long}");
                }
            },
        );
    }
}

#[test]
fn gzipped_pages_nest() {
    run_parsing(async |world| {
        Site::serve(
            &world,
            [
                ("/", gzipped("<p>0<esi:include src=\"/in\"/>1<esi:include src=\"/plain\"/></p>")),
                ("/in", gzipped("<q>2<esi:include src=\"/deep\"/>3</q>")),
                ("/plain", page("<r>4<esi:include src=\"/deep\"/>5</r>")),
                ("/deep", gzipped("<s>6</s>")),
            ],
        );
        let mut client = world.client();
        let whole = "<p>0<q>2<s>6</s>3</q>1<r>4<s>6</s>5</r></p>";
        for _ in 0..2 {
            assert_eq!(gunzip(&client.get("/", "Accept-Encoding: gzip\r\n").await.body), whole);
            assert_eq!(client.get("/", "").await.text(), whole);
        }
    });
}

#[test]
fn a_gzipped_page_that_is_not_processed_is_one_valid_stream() {
    let vcl = "sub vcl_deliver { set resp.do_esi = false; }";
    run_with(
        |_| {},
        &format!("{PARSE_ALL} {vcl}"),
        async |world| {
            let body = "<p>0<esi:include src=\"/in\"/>1<esi:remove>x</esi:remove></p>";
            Site::serve(&world, [("/", gzipped(body))]);
            let mut client = world.client();
            for _ in 0..2 {
                assert_eq!(gunzip(&client.get("/", "Accept-Encoding: gzip\r\n").await.body), body);
                assert_eq!(client.get("/", "").await.text(), body);
            }
        },
    );
}

#[test]
fn a_gzipped_fragment_that_breaks_off_ends_a_page_that_has_begun_to_send_it() {
    let vcl = "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let noise: Vec<u8> =
                (0..300_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            let length = super::site::gzip(&noise).len();
            Site::serve(
                &world,
                [("/", gzipped("<p>0<esi:include src=\"/cut\"/>1</p>")), ("/cut", gzipped(&noise).cut(length / 2))],
            );
            let mut client = world.client();
            let response = client.get("/", "Accept-Encoding: gzip\r\n").await;
            assert_eq!((response.status(), response.is_whole), (200, false));
        },
    );
}

#[test]
fn fragment_with_a_false_gzip_header_is_left_out() {
    let vcl = "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }
        sub vcl_deliver { if (req.url == \"/liar\") { set resp.http.Content-Encoding = \"gzip\"; } }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            Site::serve(&world, [("/", gzipped("<p>0<esi:include src=\"/liar\"/>1</p>")), ("/liar", page("not gzip"))]);
            let response = world.client().get("/", "Accept-Encoding: gzip\r\n").await;
            assert!(response.is_whole);
            assert_eq!(gunzip(&response.body), "<p>01</p>");
        },
    );
}
