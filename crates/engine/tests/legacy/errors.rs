//! vcl_error: pages made by Copal, and vcl_deliver after it.

use super::{Asked, noting, page, run_old};

#[test]
fn an_error_page_is_made_in_vcl_error_and_goes_through_vcl_deliver() {
    let vcl = r#"
sub vcl_recv { if (req.url == "/secret") { error 403 "Not for you"; } }
sub vcl_error {
  set obj.http.Content-Type = "text/plain";
  synthetic {"Error "} + obj.status + ": " + obj.response;
  return (deliver);
}
sub vcl_deliver { set resp.http.X-Delivered = "yes " + obj.hits; unset resp.http.Via; }"#;
    run_old(vcl, |world| async move {
        let mut client = world.client();
        let response = client.get("/secret", "").await;
        assert!(response.head.starts_with("HTTP/1.1 403 Not for you\r\n"), "{}", response.head);
        assert_eq!(response.text(), "Error 403: Not for you", "{}", world.story());
        assert_eq!(response.header("content-type"), Some("text/plain"));
        assert_eq!(response.header("x-delivered"), Some("yes 0"));
        assert_eq!((response.header("via"), response.header("age")), (None, Some("0")));
        assert_eq!(response.header("x-varnish"), Some("2"));
    });
}

#[test]
fn an_error_without_a_status_is_a_503() {
    run_old("sub vcl_recv { error; } sub vcl_fetch { return (hit_for_pass); }", |world| async move {
        let response = world.client().get("/", "").await;
        assert_eq!(response.status(), 503, "{}", world.story());
        assert!(response.text().contains("Guru Meditation"));
    });
}

#[test]
fn vcl_error_can_restart_until_the_limit() {
    let vcl = r#"
sub vcl_recv { if (req.restarts < 2) { error 750 "again"; } if (req.url == "/never") { error 751 "never"; } }
sub vcl_error { if (obj.status >= 750) { return (restart); } }"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "at last")));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.text(), "at last", "{}", world.story());
        let response = client.get("/never", "").await;
        assert!(response.head.starts_with("HTTP/1.1 751 never"), "{}", response.head);
    });
}

#[test]
fn a_restart_in_vcl_deliver_is_passed_over_in_the_end() {
    let vcl = r#"
sub vcl_deliver { set resp.http.X-Restarts = req.restarts; return (restart); }"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "x")));
        let response = world.client().get("/", "").await;
        // The fourth time, the result of vcl_recv is ignored, and the page made by vcl_error is
        // delivered.
        assert_eq!((response.status(), response.header("x-restarts")), (200, Some("4")), "{}", world.story());
    });
}

#[test]
fn an_error_in_vcl_deliver_of_1_x_is_shown_once() {
    let vcl = "sub vcl_recv { lookup; } sub vcl_deliver { error 403 \"No\"; }";
    let backend = "backend default { set backend.host = \"10.0.0.1\"; set backend.port = \"80\"; }\n";
    crate::support::run_with(
        |_| {},
        &format!("{backend}{vcl}"),
        |world| async move {
            world.origin(noting(&Asked::default(), |_| page("200 OK", "", "x")));
            let response = world.client().get("/", "").await;
            assert_eq!(response.status(), 403, "{}", world.story());
        },
    );
}
