//! Request directives of clients.

use super::*;
use surface::counter::Main;

fn numbered(headers: &'static str) -> impl Fn(usize, &OriginRequest) -> String + Clone + 'static {
    move |number, _| ok(headers, number)
}

/// The body of a second request with these headers, after a first one and some seconds.
fn second_after(seconds: u64, stored: &'static str, headers: &'static str) -> String {
    let mut body = String::new();
    run_rfc(async |world| {
        origin(&world, numbered(stored));
        let mut client = world.client();
        client.get("/", "").await;
        wait(seconds).await;
        body = client.get("/", headers).await.text();
    });
    body
}

#[test]
fn clients_limits_of_age_and_freshness_are_kept() {
    const STORED: &str = "Cache-Control: max-age=100\r\n";
    let cases = [
        (0, "Cache-Control: nothing-to-see-here\r\nPragma: foo\r\n", "1"),
        (0, "Cache-Control: max-age=0\r\n", "2"),
        (5, "Cache-Control: max-age=4\r\n", "2"),
        (5, "Cache-Control: max-age=6\r\n", "1"),
        (5, "Cache-Control: no-cache\r\n", "2"),
        (5, "Pragma: no-cache\r\n", "2"),
        (5, "Cache-Control: max-age=6\r\nPragma: no-cache\r\n", "1"),
        (5, "Cache-Control: min-fresh=96\r\n", "2"),
        (5, "Cache-Control: min-fresh=94\r\n", "1"),
        (5, "Cache-Control: no-store\r\n", "1"),
        (150, "Cache-Control: max-stale=60\r\n", "1"),
        (150, "Cache-Control: max-stale\r\n", "1"),
        (150, "Cache-Control: max-stale=40\r\n", "2"),
    ];
    for (seconds, headers, expected) in cases {
        assert_eq!(second_after(seconds, STORED, headers), expected, "{seconds} {headers}");
    }
}

#[test]
fn must_revalidate_overrides_max_stale() {
    const STORED: &str = "Cache-Control: max-age=100, must-revalidate\r\n";
    assert_eq!(second_after(150, STORED, "Cache-Control: max-stale\r\n"), "2");
}

#[test]
fn unwelcome_copy_is_validated_rather_than_fetched() {
    run_rfc(async |world| {
        let asked = origin(&world, |number, request| match request.header("if-none-match") {
            Some("\"a\"") => bare("304 Not Modified", "Cache-Control: max-age=100\r\nETag: \"a\"\r\n"),
            _ => ok("Cache-Control: max-age=100\r\nETag: \"a\"\r\n", number),
        });
        let mut client = world.client();
        client.get("/", "").await;
        let response = client.get("/", "Cache-Control: no-cache\r\n").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "1"));
        assert_eq!(asked.borrow()[1].header("if-none-match"), Some("\"a\""));
        assert_eq!(asked.borrow()[1].header("cache-control"), Some("no-cache"), "caches on the way are asked, too");
        expect_reason(&world, "miss-unwelcome");
    });
}

#[test]
fn only_if_cached_gets_what_is_there_or_a_504() {
    run_rfc(async |world| {
        let asked = origin(&world, numbered("Cache-Control: max-age=10\r\n"));
        let mut client = world.client();
        assert_eq!(client.get("/", "Cache-Control: only-if-cached\r\n").await.status(), 504);
        assert!(asked.borrow().is_empty());
        expect_reason(&world, "only-if-cached");
        client.get("/", "").await;
        assert_eq!(client.get("/", "Cache-Control: only-if-cached\r\n").await.text(), "1");
        wait(20).await;
        assert_eq!(client.get("/", "Cache-Control: only-if-cached\r\n").await.status(), 504);
        let both = client.get("/", "Cache-Control: only-if-cached, max-stale\r\n").await;
        assert_eq!(both.text(), "1");
        expect_reason(&world, "hit-stale-welcome");
    });
}

#[test]
fn response_to_no_store_is_not_stored() {
    run_rfc(async |world| {
        origin(&world, numbered("Cache-Control: max-age=10\r\n"));
        let mut client = world.client();
        assert_eq!(client.get("/", "Cache-Control: no-store\r\n").await.text(), "1");
        expect_reason(&world, "pass-no-store");
        assert_eq!(world.engine.cache.object_count(), 0, "not even a marker");
        assert_eq!(client.get("/", "").await.text(), "2");
        assert_eq!(
            client.get("/", "Cache-Control: no-store\r\n").await.text(),
            "2",
            "what is stored already may be used"
        );
    });
}

#[test]
fn vcl_sees_the_wishes_and_can_overrule_them() {
    let vcl = "sub vcl_recv {
        set req.http.Seen = req.ttl;
        if (req.url == \"/ttl\") { unset req.ttl; }
        if (req.url == \"/field\") { unset req.http.Cache-Control; }
        if (req.url == \"/own\") { set req.ttl = 20s; }
    }
    sub vcl_deliver { set resp.http.Seen = req.http.Seen; }";
    run_rfc_with(
        |_| {},
        vcl,
        async |world| {
            origin(&world, numbered("Cache-Control: max-age=100\r\n"));
            let mut client = world.client();
            for (target, expected) in [("/obeyed", false), ("/ttl", true), ("/field", true), ("/own", true)] {
                let first = client.get(target, "").await.text();
                wait(10).await;
                let response = client.get(target, "Cache-Control: max-age=5\r\n").await;
                assert_eq!(response.header("seen"), Some("5.000"));
                assert_eq!(response.text() == first, expected, "{target}");
            }
        },
    );
}

#[test]
fn parameter_enables_request_directives() {
    run_rfc_with(
        |parameters| parameters.http_request_directives = false,
        "",
        async |world| {
            origin(&world, numbered("Cache-Control: max-age=100\r\n"));
            let mut client = world.client();
            client.get("/", "").await;
            for header in ["Cache-Control: no-cache\r\n", "Pragma: no-cache\r\n", "Cache-Control: no-store\r\n"] {
                assert_eq!(client.get("/", header).await.text(), "1");
            }
            assert_eq!(client.get("/new", "Cache-Control: only-if-cached\r\n").await.text(), "2");
        },
    );
}

#[test]
fn reloads_at_one_time_are_one_fetch() {
    run_rfc(async |world| {
        world.origin(move |mut stream| async move {
            use tokio::io::AsyncWriteExt;
            while OriginRequest::read(&mut stream).await.is_some() {
                wait(1).await;
                let _ = stream.write_all(ok("Cache-Control: max-age=100\r\n", "x").as_bytes()).await;
            }
        });
        world.client().get("/", "").await;
        let reloads: Vec<_> = (0..20)
            .map(|_| {
                let world = Rc::clone(&world);
                tokio::task::spawn_local(async move { world.client().get("/", "Cache-Control: no-cache\r\n").await })
            })
            .collect();
        for reload in reloads {
            assert_eq!(reload.await.unwrap().text(), "x");
        }
        assert_eq!(world.count(Main::BackendReq), 2, "{}", world.story());
    });
}

#[test]
fn under_varnish_clients_have_no_say() {
    run_with(
        |_| {},
        "",
        async |world| {
            origin(&world, numbered("Cache-Control: max-age=100\r\n"));
            let mut client = world.client();
            client.get("/", "").await;
            for header in ["Cache-Control: no-cache\r\n", "Pragma: no-cache\r\n", "Cache-Control: only-if-cached\r\n"] {
                assert_eq!(client.get("/", header).await.text(), "1");
            }
            assert_eq!(client.get("/new", "Cache-Control: only-if-cached\r\n").await.text(), "2");
        },
    );
}
