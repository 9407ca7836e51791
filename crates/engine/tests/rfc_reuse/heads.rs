//! HEAD: the source of its answer, and its effect on stored responses.

use super::*;

async fn head(client: &mut Client, target: &str, headers: &str) -> Response {
    client.send(format!("HEAD {target} HTTP/1.1\r\nHost: example.com\r\n{headers}\r\n")).await;
    client.response_to_head().await
}

/// The stored response, if it answers a GET without the origin.
async fn stored(client: &mut Client) -> Option<Response> {
    Some(client.get("/", "Cache-Control: only-if-cached\r\n").await).filter(|response| response.status() != 504)
}

/// Status, `Mark` and body of a response.
fn gist(response: &Response) -> (u16, &str, String) {
    (response.status(), response.header("mark").unwrap_or_default(), response.text())
}

/// The methods that the origin saw.
fn methods(asked: &Asked) -> Vec<String> {
    let asked = asked.borrow();
    asked.iter().map(|request| request.line().split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn head_on_a_fresh_response_sends_no_fetch() {
    run_rfc(async |world| {
        let asked = origin(&world, |_, _| ok("Cache-Control: max-age=100\r\nMark: 1\r\n", "four"));
        let mut client = world.client();
        client.get("/", "").await;
        let response = head(&mut client, "/", "").await;
        assert_eq!(gist(&response), (200, "1", String::new()));
        assert_eq!(response.header("content-length"), Some("4"));
        assert_eq!(asked.borrow().len(), 1);
    });
}

#[test]
fn head_fills_the_cache_for_later_gets() {
    run_rfc(async |world| {
        let asked = origin(&world, |_, _| ok("Cache-Control: max-age=100\r\n", "four"));
        let mut client = world.client();
        let response = head(&mut client, "/", "").await;
        assert_eq!((response.status(), response.header("content-length")), (200, Some("4")));
        assert_eq!(stored(&mut client).await.unwrap().text(), "four", "{}", world.story());
        assert_eq!(methods(&asked), ["GET"]);
    });
}

#[test]
fn head_on_a_stale_response_validates_it_for_all() {
    run_rfc(async |world| {
        let asked = origin(&world, |number, request| {
            assert_eq!(request.header("if-none-match").is_some(), number > 1);
            let line = if number == 1 { "200 OK" } else { "304 Not Modified" };
            let length = if number == 1 { "Content-Length: 4\r\n" } else { "" };
            let body = if number == 1 { "four" } else { "" };
            let seconds = if number == 1 { 2 } else { 1000 };
            format!(
                "HTTP/1.1 {line}\r\nCache-Control: max-age={seconds}\r\nETag: \"a\"\r\nMark: {number}\r\n{length}\r\n{body}"
            )
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(3).await;
        let response = head(&mut client, "/", "").await;
        assert_eq!(gist(&response), (200, "2", String::new()));
        assert_eq!(response.header("content-length"), Some("4"));
        wait(500).await;
        assert_eq!(gist(&stored(&mut client).await.unwrap()), (200, "2", "four".to_owned()), "{}", world.story());
        assert_eq!(methods(&asked), ["GET", "GET"]);
        assert_eq!(world.engine.cache.object_count(), 1);
    });
}

/// A HEAD cannot distinguish these two bodies.
#[test]
fn head_on_a_stale_response_without_validators_brings_the_new_body_even_of_the_same_length() {
    run_rfc(async |world| {
        origin(&world, |number, _| {
            let seconds = if number == 1 { 2 } else { 1000 };
            ok(&format!("Cache-Control: max-age={seconds}\r\n"), format!("body {number}"))
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(3).await;
        let response = head(&mut client, "/", "").await;
        assert_eq!((response.text().as_str(), response.header("content-length")), ("", Some("6")));
        assert_eq!(stored(&mut client).await.unwrap().text(), "body 2", "{}", world.story());
    });
}

#[test]
fn head_and_get_of_a_stale_response_share_one_fetch() {
    run_rfc(async |world| {
        let asked = Asked::default();
        let seen = Rc::clone(&asked);
        world.origin(move |mut stream| {
            let seen = Rc::clone(&seen);
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    seen.borrow_mut().push(request);
                    let number = seen.borrow().len();
                    wait(5).await;
                    let answer = ok("Cache-Control: max-age=10\r\n", number);
                    let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
                }
            }
        });
        world.client().get("/", "").await;
        wait(20).await;
        let (mut first, mut second) = (world.client(), world.client());
        let (of_head, of_get) = tokio::join!(head(&mut first, "/", ""), async {
            wait(1).await;
            second.get("/", "").await
        });
        assert_eq!((of_head.text().as_str(), of_get.text().as_str()), ("", "2"), "{}", world.story());
        assert_eq!(asked.borrow().len(), 2);
    });
}

#[test]
fn head_that_receives_a_410_removes_the_stored_response() {
    for validator in ["", "ETag: \"a\"\r\n"] {
        for told in ["", "Cache-Control: max-age=1000\r\n", "Cache-Control: no-store\r\n"] {
            run_rfc(async |world| {
                origin(&world, move |number, _| match number {
                    1 => ok(&format!("Cache-Control: max-age=2\r\n{validator}"), "x"),
                    _ => bare("410 Gone", told),
                });
                let mut client = world.client();
                client.get("/", "").await;
                wait(3).await;
                assert_eq!(head(&mut client, "/", "").await.status(), 410);
                assert_eq!(client.get("/", "").await.status(), 410, "{told}: {}", world.story());
            });
        }
    }
}

#[test]
fn head_gets_the_stale_response_where_a_get_would() {
    run_rfc(async |world| {
        origin(&world, |number, _| match number {
            1 => ok("Cache-Control: max-age=2, stale-if-error=60\r\nMark: 1\r\n", "x"),
            _ => bare("503 Busy", "Mark: 2\r\n"),
        });
        let mut client = world.client();
        client.get("/", "").await;
        wait(3).await;
        assert_eq!(gist(&head(&mut client, "/", "").await), (200, "1", String::new()), "{}", world.story());
    });
}

/// The fields of a changed representation are never combined with the stored body, nor shared
/// against its directives.
#[test]
fn response_to_head_is_shared_only_if_one_to_get_would_be() {
    let lies = [
        ("Cache-Control: no-store\r\nMark: 2\r\n", false),
        ("Cache-Control: private\r\nMark: 2\r\n", false),
        ("Cache-Control: max-age=1000\r\nSet-Cookie: mine=1\r\nMark: 2\r\n", false),
        ("Cache-Control: max-age=1000\r\nVary: *\r\nMark: 2\r\n", false),
        ("Cache-Control: max-age=1000\r\nVary: Foo\r\nMark: 2\r\n", false),
        ("Cache-Control: max-age=1000\r\nETag: \"b\"\r\nMark: 2\r\n", true),
    ];
    for validator in ["", "ETag: \"a\"\r\n"] {
        for (headers, is_shared) in lies {
            run_rfc_with(
                |parameters| parameters.store_set_cookie = false,
                "",
                async |world| {
                    origin(&world, move |number, _| match number {
                        1 => ok(&format!("Cache-Control: max-age=2\r\nMark: 1\r\n{validator}"), "old"),
                        2 => ok(headers, "new"),
                        _ => ok("Mark: 3\r\n", "own"),
                    });
                    let mut client = world.client();
                    client.get("/", "").await;
                    wait(3).await;
                    let response = head(&mut client, "/", "Foo: 1\r\n").await;
                    assert_eq!(gist(&response), (200, "2", String::new()), "{headers}");
                    let other = world.client().get("/", "Foo: 2\r\n").await;
                    let expected = if is_shared { (200, "2", "new".to_owned()) } else { (200, "3", "own".to_owned()) };
                    assert_eq!(gist(&other), expected, "{headers}{}", world.story());
                    assert_eq!(other.header("set-cookie"), None);
                },
            );
        }
    }
}

/// It may describe a representation that only this client sees, so that a client could spoil the
/// response for all others.
#[test]
fn head_that_is_passed_leaves_what_is_stored_alone() {
    let vcl = "sub vcl_recv { if (req.http.Cookie) { return (pass); } }";
    let answers = [
        ("200 OK", "Cache-Control: max-age=1000\r\nETag: \"b\"\r\nMark: 2\r\n"),
        ("200 OK", "Cache-Control: max-age=0\r\nETag: \"a\"\r\nMark: 2\r\n"),
        ("200 OK", "Cache-Control: no-store\r\nSet-Cookie: mine=1\r\nVary: Cookie\r\nMark: 2\r\n"),
        ("410 Gone", "Mark: 2\r\n"),
        ("304 Not Modified", "ETag: \"a\"\r\nCache-Control: max-age=1000\r\nMark: 2\r\n"),
    ];
    for (line, headers) in answers {
        run_rfc_with(
            |_| {},
            vcl,
            async |world| {
                let asked = origin(&world, move |_, request| match request.line().starts_with("GET") {
                    true => ok("Cache-Control: max-age=100\r\nETag: \"a\"\r\nMark: 1\r\n", "four"),
                    false => format!("HTTP/1.1 {line}\r\n{headers}Content-Length: 99\r\n\r\n"),
                });
                let mut client = world.client();
                client.get("/", "").await;
                let passed = head(&mut client, "/", "Cookie: me\r\n").await;
                assert_eq!(passed.header("mark"), Some("2"), "{line} {headers}");
                let kept = stored(&mut client).await.unwrap();
                assert_eq!(gist(&kept), (200, "1", "four".to_owned()), "{line} {headers}{}", world.story());
                assert_eq!((kept.header("set-cookie"), kept.header("etag")), (None, Some("\"a\"")));
                wait(101).await;
                assert!(stored(&mut client).await.is_none(), "its life is not longer than before");
                assert_eq!(methods(&asked), ["GET", "HEAD"]);
            },
        );
    }
}

/// VCL may send HEAD to the origin anyway.
#[test]
fn head_that_vcl_sends_on_leaves_nothing_for_those_who_get() {
    let vcl = "sub vcl_backend_fetch { if (bereq.http.Asks) { set bereq.method = bereq.http.Asks; } }";
    for (seconds, validator) in [(0, ""), (100, ""), (3, ""), (3, "ETag: \"a\"\r\n")] {
        run_rfc_with(
            |_| {},
            vcl,
            async |world| {
                let asked = origin(&world, move |number, request| match request.line().starts_with("GET") {
                    true => ok(&format!("Cache-Control: max-age=2\r\nMark: {number}\r\n{validator}"), "four"),
                    false => {
                        let told = "Cache-Control: max-age=1000\r\nETag: \"b\"\r\nMark: lie\r\n";
                        format!("HTTP/1.1 200 OK\r\n{told}Content-Length: 99\r\n\r\n")
                    }
                });
                let mut client = world.client();
                if seconds > 0 {
                    client.get("/", "").await;
                    wait(seconds).await;
                }
                let response = head(&mut client, "/", "Asks: HEAD\r\n").await;
                assert_eq!(gist(&response), (200, "lie", String::new()), "{}", world.story());
                assert_eq!(response.header("content-length"), Some("99"), "what a GET would have");
                expect_reason(&world, "not-stored-head");
                let number = asked.borrow().len() + 1;
                let response = client.get("/", "").await;
                assert_eq!(gist(&response), (200, &*number.to_string(), "four".to_owned()), "{}", world.story());
                assert_eq!(gist(&stored(&mut client).await.unwrap()), gist(&response), "and that is shared");
            },
        );
    }
}

#[test]
fn validation_that_vcl_sends_as_head_renews_what_is_stored() {
    run_rfc_with(
        |_| {},
        "sub vcl_backend_fetch { if (bereq.http.If-None-Match) { set bereq.method = \"HEAD\"; } }",
        async |world| {
            let asked = origin(&world, |number, _| match number {
                1 => ok("Cache-Control: max-age=2\r\nETag: \"a\"\r\nMark: 1\r\n", "four"),
                _ => "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=1000\r\nMark: 2\r\n\r\n".to_owned(),
            });
            let mut client = world.client();
            client.get("/", "").await;
            wait(3).await;
            head(&mut client, "/", "").await;
            assert_eq!(methods(&asked), ["GET", "HEAD"]);
            assert_eq!(gist(&stored(&mut client).await.unwrap()), (200, "2", "four".to_owned()), "{}", world.story());
        },
    );
}

#[test]
fn those_who_wait_for_a_head_that_vcl_sent_on_share_one_get() {
    run_rfc_with(
        |_| {},
        "sub vcl_backend_fetch { if (bereq.http.Asks) { set bereq.method = bereq.http.Asks; } }",
        async |world| {
            let asked = Asked::default();
            let seen = Rc::clone(&asked);
            world.origin(move |mut stream| {
                let seen = Rc::clone(&seen);
                async move {
                    while let Some(request) = OriginRequest::read(&mut stream).await {
                        seen.borrow_mut().push(request.clone());
                        wait(5).await;
                        let whole = ok("Cache-Control: max-age=100\r\n", "four");
                        let is_get = request.line().starts_with("GET");
                        let answer = if is_get { whole.as_str() } else { whole.trim_end_matches("four") };
                        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
                    }
                }
            });
            let mut clients = [world.client(), world.client(), world.client()];
            let [first, second, third] = &mut clients;
            let get = async |client: &mut Client| {
                wait(1).await;
                client.get("/", "").await.text()
            };
            let (of_head, one, other) = tokio::join!(head(first, "/", "Asks: HEAD\r\n"), get(second), get(third));
            assert_eq!((of_head.status(), of_head.header("content-length")), (200, Some("4")));
            assert_eq!([one, other], ["four", "four"], "{}", world.story());
            assert_eq!(methods(&asked), ["HEAD", "GET"]);
        },
    );
}
