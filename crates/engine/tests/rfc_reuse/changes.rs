//! Requests that change a resource, and their effect on stored responses.

use super::*;
use tokio::io::AsyncWriteExt;

const PASSING: &str = "sub vcl_recv { if (req.method != \"GET\" && req.method != \"HEAD\") { return (pass); } }";

/// True for each of `/a`, `/b` and `/c` that is still stored after a request to `/a` with that
/// method and answer.
fn kept_after(method: &'static str, status: &'static str, headers: &'static str) -> [bool; 3] {
    let mut kept = [false; 3];
    run_rfc_with(
        |_| {},
        PASSING,
        async |world| {
            origin(&world, move |_, request| match request.line().starts_with("GET") {
                true => ok("Cache-Control: max-age=100\r\n", "x"),
                false => bare(status, headers),
            });
            let mut client = world.client();
            for target in ["/a", "/b", "/c"] {
                client.get(target, "").await;
            }
            send(&mut client, method, "/a", "Content-Length: 0\r\n").await;
            let mut asked = ["/a", "/b", "/c"].into_iter();
            for is_kept in &mut kept {
                let response = client.get(asked.next().unwrap(), "Cache-Control: only-if-cached\r\n").await;
                *is_kept = response.status() == 200;
            }
        },
    );
    kept
}

#[test]
fn unsafe_and_unknown_methods_invalidate_their_target_unless_they_fail() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
        assert_eq!(kept_after(method, "200 OK", ""), [false, true, true], "{method}");
        assert_eq!(kept_after(method, "303 See Other", ""), [false, true, true], "{method}");
        assert_eq!(kept_after(method, "500 Oops", "Location: /b\r\n"), [true; 3], "{method}");
        assert_eq!(kept_after(method, "404 Not Found", ""), [true; 3], "{method}");
    }
    for method in ["OPTIONS", "PROPFIND", "QUERY"] {
        assert_eq!(kept_after(method, "200 OK", "Location: /b\r\n"), [true; 3], "{method}");
    }
}

#[test]
fn resources_named_by_the_response_are_invalidated_within_the_same_origin() {
    let cases = [
        ("Location: /b\r\n", [false, false, true]),
        ("Location: b\r\nContent-Location: http://example.com/c\r\n", [false, false, false]),
        ("Content-Location: /c#part\r\n", [false, true, false]),
        ("Location: http://example.org/b\r\n", [false, true, true]),
        ("Location: //example.com:8080/b\r\n", [false, true, true]),
    ];
    for (headers, expected) in cases {
        assert_eq!(kept_after("POST", "201 Created", headers), expected, "{headers}");
    }
}

#[test]
fn all_variants_go_and_the_operators_key_rules_hold() {
    let vcl = "sub vcl_recv { if (req.method != \"GET\") { return (pass); } }
        sub vcl_hash { hash_data(regsub(req.url, \"\\?.*\", \"\")); return (lookup); }";
    run_rfc_with(
        |_| {},
        vcl,
        async |world| {
            origin(&world, |_, request| match request.line().starts_with("GET") {
                true => ok("Cache-Control: max-age=100\r\nVary: Foo\r\n", "x"),
                false => bare("200 OK", "Location: /b?3\r\n"),
            });
            let mut client = world.client();
            for (target, headers) in [("/a?1", "Foo: 1\r\n"), ("/a?1", "Foo: 2\r\n"), ("/b?2", "")] {
                client.get(target, headers).await;
            }
            assert_eq!(world.engine.cache.object_count(), 3);
            send(&mut client, "DELETE", "/a?9", "").await;
            assert_eq!(world.engine.cache.object_count(), 0, "{}", world.story());
            expect_reason(&world, "invalidated");
            client.get("/a", "").await;
            world.expect_log("miss-absent gone=invalidated");
        },
    );
}

#[test]
fn response_that_was_under_way_when_its_target_changed_is_not_kept() {
    run_rfc_with(
        |_| {},
        PASSING,
        async |world| {
            world.origin(move |mut stream| async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let is_get = request.line().starts_with("GET");
                    wait(if is_get { 5 } else { 1 }).await;
                    let answer = if is_get { ok("Cache-Control: max-age=100\r\n", "x") } else { bare("200 OK", "") };
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
            let slow = {
                let world = Rc::clone(&world);
                tokio::task::spawn_local(async move { world.client().get("/", "").await })
            };
            wait(1).await;
            send(&mut world.client(), "POST", "/", "Content-Length: 0\r\n").await;
            assert_eq!(slow.await.unwrap().text(), "x", "who asked gets it");
            assert_eq!(world.engine.cache.object_count(), 0, "{}", world.story());
        },
    );
}

#[test]
fn under_varnish_nothing_is_invalidated() {
    run_with(
        |_| {},
        PASSING,
        async |world| {
            origin(&world, |_, request| match request.line().starts_with("GET") {
                true => ok("Cache-Control: max-age=100\r\n", "x"),
                false => bare("200 OK", "Location: /b\r\n"),
            });
            let mut client = world.client();
            client.get("/a", "").await;
            send(&mut client, "POST", "/a", "Content-Length: 0\r\n").await;
            assert_eq!(world.engine.cache.object_count(), 1);
        },
    );
}
