//! The recipes of `docs/guide/vcl.md`, loaded as printed and tried.

use crate::support::{Client, Response, World, run_with, serve_each};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::time::sleep;

/// The origin of every recipe.
const ORIGIN: &str = "127.0.0.1:8080";

/// The VCL below a heading of the page.
fn recipe(heading: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/vcl.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split_once(&format!("### {heading}\n")).unwrap_or_else(|| panic!("no recipe {heading:?}")).1;
    let block = section.split_once("```vcl\n").unwrap().1;
    block.split_once("```").unwrap().0.to_owned()
}

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// Runs a test with a recipe, under the default policy of `copal daemon`.
fn with_recipe<F: Future<Output = ()>>(heading: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(rfc, &recipe(heading), story);
}

/// An origin whose responses have these header lines.
fn serve(world: &World, headers: &'static str) {
    world.origin_at(
        ORIGIN,
        serve_each(move |_| format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nhi").into_bytes()),
    );
}

/// A client on the machine itself, which the purgers' ACL admits.
fn local_client(world: &World) -> Client {
    let address = "127.0.0.1:4711".parse().unwrap();
    let mut peer = world.peer();
    (peer.client, peer.remote) = (address, address);
    world.client_from(peer)
}

async fn purge(client: &mut Client, target: &str, headers: &str) -> Response {
    client.send(format!("PURGE {target} HTTP/1.1\r\nHost: example.com\r\n{headers}\r\n")).await;
    client.response().await
}

#[test]
fn every_recipe_loads_under_both_policies() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/vcl.md");
    let page = std::fs::read_to_string(page).unwrap();
    let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert!(headings.len() >= 10, "{headings:?}");
    for heading in headings {
        let text = recipe(heading);
        run_with(|_| {}, &text, async |_| {});
        run_with(rfc, &text, async |_| {});
    }
}

#[test]
fn site_without_cache_headers_is_cached_and_personal_pages_are_not() {
    with_recipe("A site that says nothing about caching", async |world| {
        serve(&world, "");
        for _ in 0..3 {
            world.client().get("/", "").await;
        }
        assert_eq!((world.count(Main::CacheMiss), world.count(Main::CacheHit)), (1, 2));
        sleep(Duration::from_secs(125)).await;
        world.client().get("/", "").await;
        assert_eq!(world.count(Main::CacheHitGrace), 1, "grace covers the refresh");
    });
}

#[test]
fn statistics_cookies_are_removed_and_others_reach_the_origin() {
    with_recipe("Cookies that only the browser uses", async |world| {
        world.origin_at(
            ORIGIN,
            serve_each(|request| {
                let cookie = request.header("cookie").unwrap_or("none").to_owned();
                format!("HTTP/1.1 200 OK\r\nVary: Cookie\r\nContent-Length: {}\r\n\r\n{cookie}", cookie.len())
                    .into_bytes()
            }),
        );
        let mut client = world.client();
        assert_eq!(client.get("/", "Cookie: _ga=1; _pk_id=2\r\n").await.text(), "none");
        assert_eq!(client.get("/", "Cookie: _ga=3\r\n").await.text(), "none");
        assert_eq!(world.count(Main::CacheHit), 1);
        assert_eq!(client.get("/", "Cookie: _ga=3; session=4\r\n").await.text(), "session=4;");
    });
}

#[test]
fn wordpress_pages_are_shared_except_for_logged_in_users_and_are_purged_by_the_plug_in() {
    with_recipe("WordPress", async |world| {
        serve(&world, "");
        let mut client = world.client();
        client.get("/post", "Cookie: consent=1\r\n").await;
        client.get("/post", "").await;
        assert_eq!(world.count(Main::CacheHit), 1);
        client.get("/post", "Cookie: wordpress_logged_in_x=1\r\n").await;
        client.get("/wp-admin/", "").await;
        assert_eq!(world.count(Main::SPass), 2);
        assert_eq!(purge(&mut world.client(), "/post", "").await.status(), 403);
        let mut plug_in = local_client(&world);
        client.get("/purged", "").await;
        assert_eq!(purge(&mut plug_in, "/post", "").await.status(), 200);
        client.get("/post", "").await;
        assert_eq!(world.count(Main::CacheHit), 1, "the purged page is fetched again");
    });
}

#[test]
fn a_purge_by_url_removes_the_page() {
    with_recipe("Purge by URL", async |world| {
        serve(&world, "Cache-Control: max-age=600\r\n");
        let get = "GET /page HTTP/1.1\r\nHost: example.com\r\n\r\n";
        let mut client = local_client(&world);
        for _ in 0..2 {
            client.send(get).await;
            client.response().await;
        }
        assert_eq!(world.count(Main::CacheHit), 1);
        assert_eq!(purge(&mut client, "/page", "").await.status(), 200);
        client.send(get).await;
        client.response().await;
        assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheMiss)), (1, 2));
    });
}

#[test]
fn a_purge_by_tag_counts_the_objects() {
    with_recipe("Purge by tag", async |world| {
        serve(&world, "Cache-Control: max-age=600\r\nxkey: product-42 shop\r\n");
        let mut client = local_client(&world);
        client.get("/a", "").await;
        client.get("/b", "").await;
        let answer = purge(&mut client, "/", "xkey: product-42\r\n").await;
        assert!(answer.head.starts_with("HTTP/1.1 200 2 objects"), "{}", answer.head);
    });
}

#[test]
fn plain_http_is_redirected_with_the_path() {
    with_recipe("HTTP to HTTPS", async |world| {
        let answer = world.client().get("/a?b", "").await;
        assert_eq!(answer.status(), 301);
        let location = answer.header("location").unwrap();
        assert!(location.starts_with("https://") && location.ends_with("/a?b"), "{location}");
        let mut client = world.client();
        client.send("GET /a HTTP/1.1\r\nHost: example.com:6080\r\n\r\n".to_owned()).await;
        assert_eq!(
            client.response().await.header("location"),
            Some("https://example.com/a"),
            "without the port of http"
        );
    });
}

#[test]
fn a_test_site_asks_for_its_password() {
    with_recipe("A password in front of a test site", async |world| {
        serve(&world, "Cache-Control: max-age=600\r\n");
        let mut client = world.client();
        let answer = client.get("/", "").await;
        assert_eq!((answer.status(), answer.header("www-authenticate")), (401, Some("Basic realm=\"test\"")));
        assert_eq!(client.get("/", "Authorization: Basic Z3Vlc3Q6c2VjcmV0\r\n").await.status(), 200);
    });
}

#[test]
fn the_maintenance_page_needs_no_origin() {
    with_recipe("Maintenance page", async |world| {
        let answer = world.client().get("/", "").await;
        assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("600")));
        assert!(answer.text().contains("Maintenance"));
    });
}

#[test]
fn an_api_is_revalidated_after_five_seconds() {
    with_recipe("An API with an ETag", async |world| {
        world.origin_at(
            ORIGIN,
            serve_each(|request| match request.header("if-none-match") {
                Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec(),
                None => b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
            }),
        );
        let mut client = world.client();
        client.get("/api/x", "").await;
        assert_eq!(client.get("/api/x", "If-None-Match: \"1\"\r\n").await.status(), 304);
        assert_eq!(world.count(Main::CacheHit), 1);
        sleep(Duration::from_secs(6)).await;
        let answer = world.client().get("/api/x", "").await;
        assert_eq!(answer.text(), "hi", "{}\n{}", answer.head, world.story());
        assert_eq!(world.count(Main::SFetch), 2);
    });
}
