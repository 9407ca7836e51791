//! Leak guard: a response of one client that VCL has stored for all is found, and not stored under
//! `refuse`.

use crate::support::{OriginRequest, Response, World, run_with, serve_each};
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::time::sleep;

/// The fault: the cookie is not in the key, and the origin's marks are removed.
const LEAKY: &str = "sub vcl_recv { return (hash); }
sub vcl_backend_response {
    unset beresp.http.Set-Cookie;
    unset beresp.http.Cache-Control;
    set beresp.uncacheable = false;
    set beresp.ttl = 5s;
    set beresp.grace = 0s;
    return (deliver);
}";
const ALICE: &str = "Cookie: sid=alice\r\n";
const BOB: &str = "Cookie: sid=bob\r\n";

fn guard(policy: &'static str, value: &'static str) -> impl FnOnce(&mut Parameters) {
    move |parameters| {
        policy.clone_into(&mut parameters.http_policy);
        value.clone_into(&mut parameters.leak_guard);
    }
}

/// Answers with the request's cookie in the body, and with these headers.
fn personal(headers: &'static str) -> impl Fn(&OriginRequest) -> Vec<u8> + Clone {
    move |request| {
        let name = request.header("cookie").or(request.header("authorization")).unwrap_or("nobody");
        let body = format!("hello {name}");
        format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }
}

/// Gives all clients the same response.
fn same(_: &OriginRequest) -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()
}

fn reasons(world: &World) -> Vec<String> {
    let lines = world.log();
    let why = lines.iter().filter_map(|line| line.split_once(" Witness why "));
    why.map(|(_, reason)| reason.to_owned()).filter(|reason| reason.contains("leak")).collect()
}

/// Leaks found, and those refused.
fn counted(world: &World) -> (u64, u64) {
    (world.count(Main::LeaksFound), world.count(Main::LeaksRefused))
}

async fn get(world: &World, headers: &str) -> Response {
    let response = world.client().get("/account", headers).await;
    // The fetch may end after its client has got everything.
    sleep(Duration::from_millis(10)).await;
    response
}

#[test]
fn marked_response_is_found_with_the_line_that_removed_the_mark() {
    for (headers, mark) in [
        ("Set-Cookie: sid=alice\r\n", "Set-Cookie"),
        ("Cache-Control: private\r\n", "private"),
        ("Cache-Control: no-store\r\n", "no-store"),
    ] {
        run_with(guard("rfc", "auto"), LEAKY, async |world| {
            world.origin(serve_each(personal(headers)));
            get(&world, ALICE).await;
            assert_eq!(get(&world, BOB).await.text(), "hello sid=alice", "only recorded, nothing changes");
            let said = reasons(&world);
            assert_eq!(said.len(), 1, "{}", world.story());
            assert!(said[0].starts_with("leak-marked at=") && said[0].ends_with(&format!(" marks={mark}")), "{said:?}");
            assert!(said[0].contains(" in=vcl_backend_response "), "{said:?}");
            assert_eq!(counted(&world), (1, 0));
        });
    }
}

#[test]
fn marked_response_is_not_stored_under_refuse() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\nCache-Control: max-age=60\r\n")));
        for headers in [ALICE, BOB, "Authorization: Basic YTpi\r\n"] {
            let expected = headers.split_once(": ").unwrap().1.trim_end();
            assert_eq!(get(&world, headers).await.text(), format!("hello {expected}"));
        }
        let said = reasons(&world);
        assert!(said.iter().all(|reason| reason.starts_with("not-stored-leak-marked at=")), "{said:?}");
        assert_eq!((said.len(), counted(&world)), (3, (3, 3)));
        assert_eq!(world.count(Main::CacheHitmiss), 2, "a marker is remembered: {}", world.story());
    });
}

#[test]
fn policy_varnish_is_not_guarded_unless_the_parameter_says_so() {
    run_with(guard("varnish", "auto"), LEAKY, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\n")));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.text(), "hello sid=alice");
        assert_eq!((reasons(&world), counted(&world)), (Vec::new(), (0, 0)));
    });
    run_with(guard("varnish", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\n")));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.text(), "hello sid=bob");
        assert_eq!(counted(&world), (2, 2));
    });
}

#[test]
fn cookie_that_the_origin_did_not_receive_is_no_credential() {
    let vcl = "sub vcl_recv { unset req.http.Cookie; return (hash); }
sub vcl_backend_response { unset beresp.http.Set-Cookie; set beresp.ttl = 5s; return (deliver); }";
    run_with(guard("rfc", "refuse"), vcl, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\n")));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.text(), "hello nobody");
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (1, (0, 0)));
    });
}

#[test]
fn cookie_that_vary_names_is_part_of_the_key() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\nVary: Cookie\r\n")));
        for headers in [ALICE, BOB, ALICE, BOB] {
            let expected = headers.split_once(": ").unwrap().1.trim_end();
            assert_eq!(get(&world, headers).await.text(), format!("hello {expected}"));
        }
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (2, (0, 0)));
    });
}

#[test]
fn header_that_is_reserved_for_its_client_is_no_leak() {
    let vcl = "sub vcl_recv { return (hash); }";
    run_with(guard("rfc", "refuse"), vcl, async |world| {
        let headers = "Set-Cookie: sid=1\r\nCache-Control: max-age=60, private=\"set-cookie\"\r\n";
        world.origin(serve_each(move |_: &OriginRequest| {
            format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 5\r\n\r\nhello").into_bytes()
        }));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.header("set-cookie"), None);
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (1, (0, 0)));
    });
}

#[test]
fn cookie_removed_from_a_response_that_is_for_all_otherwise_is_no_leak() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        let headers = "Set-Cookie: sid=1\r\nCache-Control: public, max-age=60\r\n";
        world.origin(serve_each(move |_: &OriginRequest| {
            format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 5\r\n\r\nhello").into_bytes()
        }));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.header("set-cookie"), None);
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (1, (0, 0)));
    });
    // But with its cookie it is one.
    let vcl = "sub vcl_recv { return (hash); }";
    run_with(guard("rfc", "refuse"), vcl, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\nCache-Control: public, max-age=60\r\n")));
        get(&world, ALICE).await;
        assert_eq!(get(&world, BOB).await.text(), "hello sid=bob");
        assert_eq!(counted(&world), (2, 2));
    });
}

#[test]
fn other_body_for_other_credentials_is_found_at_the_next_fetch() {
    run_with(guard("rfc", "log"), LEAKY, async |world| {
        world.origin(serve_each(personal("")));
        assert_eq!(get(&world, ALICE).await.text(), "hello sid=alice");
        sleep(Duration::from_secs(6)).await;
        assert_eq!(get(&world, BOB).await.text(), "hello sid=bob");
        assert_eq!(get(&world, ALICE).await.text(), "hello sid=bob", "only recorded, nothing changes");
        let said = reasons(&world);
        assert!(said.len() == 1 && said[0].starts_with("leak-differs at="), "{said:?}");
        assert_eq!(counted(&world), (1, 0));
    });
}

#[test]
fn key_with_other_bodies_for_other_credentials_is_not_stored_for_a_minute() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("")));
        get(&world, ALICE).await;
        sleep(Duration::from_secs(6)).await;
        assert_eq!(get(&world, BOB).await.text(), "hello sid=bob");
        assert_eq!(get(&world, ALICE).await.text(), "hello sid=alice");
        assert_eq!(get(&world, "").await.text(), "hello nobody");
        let said = reasons(&world);
        assert!(said.iter().all(|reason| reason.starts_with("not-stored-leak-differs")), "{said:?}");
        assert_eq!((said.len(), counted(&world)), (3, (1, 3)));
        sleep(Duration::from_secs(70)).await;
        get(&world, ALICE).await;
        get(&world, ALICE).await;
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (1, (1, 3)), "{}", world.story());
    });
}

#[test]
fn nobody_else_gets_a_body_before_it_was_compared() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("")));
        get(&world, ALICE).await;
        sleep(Duration::from_secs(6)).await;
        let (bob, carol) = (world.clone(), world.clone());
        let (bob, carol) = tokio::join!(get(&bob, BOB), get(&carol, "Cookie: sid=carol\r\n"));
        assert_eq!((bob.text().as_str(), carol.text().as_str()), ("hello sid=bob", "hello sid=carol"));
    });
}

#[test]
fn same_body_for_all_credentials_stays_shared() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(same));
        for _ in 0..4 {
            get(&world, ALICE).await;
            get(&world, BOB).await;
            sleep(Duration::from_secs(6)).await;
            get(&world, BOB).await;
            get(&world, ALICE).await;
            sleep(Duration::from_secs(6)).await;
        }
        assert_eq!((world.count(Main::CacheHit), counted(&world)), (8, (0, 0)));
    });
}

#[test]
fn response_without_credentials_takes_no_part_unless_another_had_some() {
    run_with(guard("rfc", "refuse"), LEAKY, async |world| {
        world.origin(serve_each(personal("Set-Cookie: visit=1\r\n")));
        for _ in 0..3 {
            assert_eq!(get(&world, "").await.text(), "hello nobody");
            sleep(Duration::from_secs(6)).await;
        }
        assert_eq!(counted(&world), (0, 0));
    });
}

#[test]
fn passed_requests_are_not_judged() {
    let vcl = "sub vcl_recv { return (pass); }";
    run_with(guard("rfc", "refuse"), vcl, async |world| {
        world.origin(serve_each(personal("Set-Cookie: sid=1\r\n")));
        get(&world, ALICE).await;
        get(&world, BOB).await;
        assert_eq!((reasons(&world), counted(&world)), (Vec::new(), (0, 0)));
    });
}
