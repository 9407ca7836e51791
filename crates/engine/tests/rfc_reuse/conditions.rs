//! Conditional requests: from clients to Copal, and from Copal to origins.

use super::*;
use surface::counter::Main;

const TAGGED: &str = "Cache-Control: max-age=10\r\nETag: \"a,1\"\r\nContent-Type: text/plain\r\nLast-Modified: Tue, 29 Oct 2019 19:06:53 GMT\r\n";

#[test]
fn client_conditions_are_evaluated_against_the_stored_response() {
    run_rfc(async |world| {
        origin(&world, |_, _| ok(TAGGED, "x"));
        let mut client = world.client();
        client.get("/", "").await;
        let cases = [
            ("If-None-Match: \"a,1\"\r\n", 304),
            ("If-None-Match: W/\"a,1\"\r\n", 304),
            ("If-None-Match: \"b\", \"a,1\"\r\n", 304),
            ("If-None-Match: *\r\n", 304),
            ("If-None-Match: \"a\"\r\n", 200),
            ("If-None-Match: \"b\"\r\nIf-Modified-Since: Tue, 29 Oct 2019 19:06:53 GMT\r\n", 200),
            ("If-Modified-Since: Tuesday, 29-Oct-19 19:06:53 GMT\r\n", 304),
            ("If-Modified-Since: Tue, 29 Oct 2019 19:06:52 GMT\r\n", 200),
        ];
        for (headers, status) in cases {
            assert_eq!(client.get("/", headers).await.status(), status, "{headers}");
        }
        assert_eq!(world.count(Main::BackendReq), 1);
    });
}

#[test]
fn a_304_has_what_updates_a_stored_response_and_not_what_describes_a_body() {
    run_rfc(async |world| {
        origin(&world, |_, _| ok(TAGGED, "x"));
        let mut client = world.client();
        client.get("/", "").await;
        let response = client.get("/", "If-None-Match: \"a,1\"\r\n").await;
        assert_eq!(response.header("etag"), Some("\"a,1\""));
        assert_eq!(response.header("cache-control"), Some("max-age=10"));
        assert!(response.header("date").is_some() && response.header("age").is_some());
        for name in ["content-type", "content-length", "content-encoding"] {
            assert_eq!(response.header(name), None, "{name}");
        }
    });
}

#[test]
fn stale_object_is_validated_with_its_own_tag_before_the_client_gets_its_304() {
    run_rfc(async |world| {
        let asked = origin(&world, |_, request| match request.header("if-none-match") {
            Some("\"a,1\"") => bare("304 Not Modified", "ETag: \"a,1\"\r\nCache-Control: max-age=10\r\nNew: 1\r\n"),
            _ => ok(TAGGED, "x"),
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(20).await;
        let response = client.get("/", "If-None-Match: \"z\", \"a,1\"\r\n").await;
        assert_eq!((response.status(), response.header("new")), (304, Some("1")));
        assert_eq!(asked.borrow()[1].header("if-none-match"), Some("\"a,1\""));
        assert_eq!(client.get("/", "").await.text(), "x", "the copy is fresh again");
        assert_eq!(world.count(Main::BackendReq), 2);
    });
}

#[test]
fn a_304_about_something_else_is_not_taken_for_the_stored_response() {
    run_rfc(async |world| {
        let asked = origin(&world, |number, request| match request.header("if-none-match") {
            Some(_) => bare("304 Not Modified", "ETag: \"other\"\r\n"),
            None => ok(TAGGED, number),
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(20).await;
        let response = client.get("/", "").await;
        assert_eq!((response.status(), response.text().as_str()), (200, "3"), "{}", world.story());
        assert_eq!(asked.borrow()[2].header("if-modified-since"), None);
        expect_reason(&world, "not-modified-other");
        assert_eq!(client.get("/", "").await.text(), "3");
    });
}

#[test]
fn object_that_must_be_validated_is_at_every_use_and_once_for_all_who_ask_at_one_time() {
    run_rfc(async |world| {
        world.origin(move |mut stream| async move {
            use tokio::io::AsyncWriteExt;
            while let Some(request) = OriginRequest::read(&mut stream).await {
                wait(1).await;
                let headers = "Cache-Control: no-cache\r\nETag: \"a\"\r\n";
                let answer = match request.header("if-none-match") {
                    Some("\"a\"") => bare("304 Not Modified", headers),
                    _ => ok(headers, "x"),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let mut client = world.client();
        for _ in 0..3 {
            assert_eq!(client.get("/", "").await.text(), "x");
        }
        assert_eq!((world.count(Main::BackendReq), world.count(Main::Fetch304)), (3, 2), "{}", world.story());
        expect_reason(&world, "miss-must-validate");
        let crowd: Vec<_> = (0..20)
            .map(|_| {
                let world = Rc::clone(&world);
                tokio::task::spawn_local(async move { world.client().get("/", "").await })
            })
            .collect();
        for one in crowd {
            assert_eq!(one.await.unwrap().text(), "x");
        }
        assert_eq!(world.count(Main::BackendReq), 4);
    });
}

#[test]
fn empty_response_is_validated_like_any_other() {
    run_rfc(async |world| {
        let asked = origin(&world, |_, request| match request.header("if-none-match") {
            Some(_) => bare("304 Not Modified", "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"),
            None => bare("200 OK", "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"),
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(20).await;
        let response = client.get("/", "").await;
        assert_eq!((response.status(), response.header("content-length")), (200, Some("0")), "{}", world.story());
        assert_eq!(asked.borrow()[1].header("if-none-match"), Some("\"a\""));
    });
}

#[test]
fn values_that_mean_the_same_get_the_same_variant() {
    let stored = |vary: &'static str| {
        move |number: usize, _: &OriginRequest| ok(&format!("Cache-Control: max-age=10\r\nVary: {vary}\r\n"), number)
    };
    let cases = [
        ("Foo", "Foo: 1, 2\r\n", "Foo: 1\r\nFoo:  2\r\n", true),
        ("Foo", "Foo: 1\r\n", "Foo: 2\r\n", false),
        ("Foo", "Foo: 1\r\n", "", false),
        ("Accept-Language", "Accept-Language: en, de\r\n", "Accept-Language:  eN ,  De\r\n", true),
        ("Accept-Language", "Accept-Language: en, de\r\n", "Accept-Language: de, en\r\n", false),
        ("*, Foo", "Foo: 1\r\n", "Foo: 1\r\n", false),
    ];
    for (vary, first, second, expected) in cases {
        run_rfc(async |world| {
            origin(&world, stored(vary));
            let mut client = world.client();
            client.get("/", first).await;
            assert_eq!(client.get("/", second).await.text() == "1", expected, "{vary}: {first} {second}");
        });
    }
}

#[test]
fn languages_may_be_compared_as_the_operator_likes() {
    run_rfc_with(
        |parameters| (parameters.vary_language_order, parameters.vary_language_select) = (true, true),
        "",
        async |world| {
            origin(&world, |number, _| {
                ok("Cache-Control: max-age=10\r\nVary: Accept-Language\r\nContent-Language: de\r\n", number)
            });
            let mut client = world.client();
            for (language, expected) in
                [("en, de", "1"), ("de, en", "1"), ("fr;q=0.5, de;q=1.0", "1"), ("fr;q=0.5, it;q=1.0", "2")]
            {
                let response = client.get("/", &format!("Accept-Language: {language}\r\n")).await;
                assert_eq!(response.text(), expected, "{language}");
            }
        },
    );
}
