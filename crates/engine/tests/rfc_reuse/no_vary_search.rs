//! No-Vary-Search: queries that do not matter.

use super::*;

const FRESH: &str = "Cache-Control: max-age=1000\r\n";

/// Serves a world whose every response has that field and the number of its request as body.
fn numbered(world: &World, field: &'static str) -> Asked {
    origin(world, move |number, _| ok(&format!("{FRESH}No-Vary-Search: {field}\r\n"), number))
}

/// The bodies of the responses for these targets, one after another.
async fn bodies<const N: usize>(world: &World, targets: [&str; N]) -> [String; N] {
    let mut client = world.client();
    let mut bodies = [const { String::new() }; N];
    for (body, target) in bodies.iter_mut().zip(targets) {
        *body = client.get(target, "").await.text();
    }
    bodies
}

#[test]
fn queries_that_differ_in_what_does_not_matter_share_a_response() {
    run_rfc(async |world| {
        let asked = numbered(&world, "params=(\"utm\"), key-order");
        let targets =
            ["/a?x=1&y=2&utm=a", "/a?utm=b&y=2&x=1", "/a?y=2&x=1", "/a?x=1&y=3", "/a?y=3&x=1&utm", "/b?utm=b"];
        // The first response after the rule is known is fetched once more, even if it is stored.
        assert_eq!(bodies(&world, targets).await, ["1", "2", "2", "3", "3", "4"], "{}", world.story());
        assert_eq!(asked.borrow()[1].line(), "GET /a?utm=b&y=2&x=1", "the origin is asked what the client asked");
    });
}

#[test]
fn rules_are_the_rfcs_and_can_be_turned_off() {
    let targets = ["/a?1", "/a?2", "/a?3"];
    run_rfc_with(
        |parameters| parameters.no_vary_search = false,
        "",
        async |world| {
            numbered(&world, "params");
            assert_eq!(bodies(&world, targets).await, ["1", "2", "3"]);
        },
    );
    run_rfc_with(
        |parameters| parameters.http_policy = "varnish".into(),
        "",
        async |world| {
            numbered(&world, "params");
            assert_eq!(bodies(&world, targets).await, ["1", "2", "3"]);
        },
    );
    run_rfc_with(
        |_| {},
        "sub vcl_backend_response { unset beresp.http.No-Vary-Search; }",
        async |world| {
            numbered(&world, "params");
            assert_eq!(bodies(&world, targets).await, ["1", "2", "3"], "VCL has the last word");
        },
    );
}

#[test]
fn response_that_does_not_state_the_rule_is_for_its_own_query_only() {
    run_rfc(async |world| {
        origin(&world, |number, request| match request.line().contains("plain") {
            false => ok(&format!("{FRESH}No-Vary-Search: params\r\n"), number),
            true => ok(FRESH, number),
        });
        let first = bodies(&world, ["/a?1", "/a?plain"]).await;
        assert_eq!(first, ["1", "2"]);
        expect_reason(&world, "not-stored-no-vary-search");
        // The rule is dropped, so the response stored before it existed is found again; the plain
        // one was never shared.
        assert_eq!(bodies(&world, ["/a?plain", "/a?1", "/a?plain", "/a?other"]).await, ["3", "1", "3", "4"]);
    });
}

#[test]
fn other_hosts_and_responses_for_one_user_make_no_rule() {
    run_rfc(async |world| {
        origin(&world, |number, request| match request.line().contains("private") {
            true => ok("Cache-Control: private, max-age=1000\r\nNo-Vary-Search: params\r\n", number),
            false if request.header("host") == Some("evil.example") => {
                ok(&format!("{FRESH}No-Vary-Search: params\r\n"), number)
            }
            false => ok(FRESH, number),
        });
        let mut client = world.client();
        client.send("GET /a?1 HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
        assert_eq!(client.response().await.text(), "1");
        assert_eq!(bodies(&world, ["/a?private", "/a?1", "/a?2", "/a?1"]).await, ["2", "3", "4", "3"]);
    });
}

#[test]
fn vcl_sees_what_the_client_sent_and_its_rules_for_keys_hold() {
    let vcl = "sub vcl_hash { hash_data(regsub(req.url, \"v=.\", \"\")); return (lookup); }
        sub vcl_deliver { set resp.http.Url = req.url; }";
    run_rfc_with(
        |_| {},
        vcl,
        async |world| {
            numbered(&world, "params=(\"utm\")");
            assert_eq!(bodies(&world, ["/a?v=1", "/a?utm=1&v=2", "/a?v=3&utm=2", "/a?w"]).await, ["1", "2", "2", "3"]);
            let response = world.client().get("/a?v=4&utm=3", "").await;
            assert_eq!((response.header("url"), response.text().as_str()), (Some("/a?v=4&utm=3"), "2"));
        },
    );
}

#[test]
fn purge_and_invalidation_reach_what_is_stored_under_a_rule() {
    let vcl = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } if (req.method == \"POST\") { return (pass); } }";
    run_rfc_with(
        |_| {},
        vcl,
        async |world| {
            numbered(&world, "params=(\"utm\")");
            assert_eq!(bodies(&world, ["/a?x", "/a?x&utm=1", "/a?x&utm=2"]).await, ["1", "2", "2"]);
            let mut client = world.client();
            send(&mut client, "PURGE", "/a?utm=3&x", "").await;
            assert_eq!(bodies(&world, ["/a?x&utm=4", "/a?x"]).await, ["3", "3"], "{}", world.story());
            send(&mut client, "POST", "/a?x", "Content-Length: 0\r\n").await;
            assert_eq!(bodies(&world, ["/a?x&utm=5", "/a?x"]).await, ["5", "5"]);
        },
    );
}

#[test]
fn overlong_query_is_keyed_as_it_is() {
    run_rfc(async |world| {
        numbered(&world, "params");
        let long = format!("/a?{}", "x".repeat(surface::limits::NO_VARY_SEARCH_QUERY_BYTES_MAX + 1));
        assert_eq!(
            bodies(&world, ["/a?1", &long, &format!("{long}y"), "/a?2", "/a?3"]).await,
            ["1", "2", "3", "4", "4"]
        );
    });
}
