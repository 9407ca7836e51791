//! Configurations as published for Varnish 1 to 3: they work as their authors describe, mistakes
//! included.

use super::{Asked, noting, page, run_old};
use crate::support::run_with;
use std::time::Duration;
use tokio::time::sleep;

#[test]
fn x_hit_by_way_of_a_temporary_request_header_tells_hits_from_misses() {
    let vcl = r#"
sub vcl_hit {
  set req.http.tempheader = "1";
}
sub vcl_miss {
  set req.http.tempheader = "0";
}
sub vcl_deliver {
  set resp.http.X-Hit = "0";
  if (req.http.tempheader) {
    set resp.http.X-Hit = req.http.tempheader;
    unset req.http.tempheader;
  }
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "hello")));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.header("x-hit"), Some("0"), "{}", world.story());
        assert_eq!(client.get("/", "").await.header("x-hit"), Some("1"), "{}", world.story());
        assert_eq!(client.get("/", "").await.header("x-hit"), Some("1"));
        assert_eq!(client.get("/other", "").await.header("x-hit"), Some("0"));
        assert_eq!(asked.borrow().len(), 2);
        assert_eq!(asked.borrow()[0].header("tempheader"), None, "bereq was made before vcl_miss ran");
    });
}

#[test]
fn x_hit_set_in_vcl_fetch_is_stored_with_the_object_and_wrong_ever_after() {
    let vcl = r#"
sub vcl_hit {
  set req.http.tempheader = "1";
}
sub vcl_miss {
  set req.http.tempheader = "0";
}
sub vcl_fetch {
  set beresp.http.X-Hit = "0";
  if (req.http.tempheader) {
    set beresp.http.X-Hit = req.http.tempheader;
    unset req.http.tempheader;
  }
}"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "hello")));
        let mut client = world.client();
        assert_eq!(client.get("/", "").await.header("x-hit"), Some("0"), "{}", world.story());
        for _ in 0..3 {
            let hit = client.get("/", "").await;
            assert_eq!(hit.header("x-varnish").unwrap().split(' ').count(), 2, "it is a hit: {}", hit.head);
            assert_eq!(hit.header("x-hit"), Some("0"), "what vcl_hit says comes too late");
        }
        // vcl_miss ran for the first, and vcl_fetch saw the header that it had set.
        world.expect_log("BerespHeader X-Hit: 0");
        world.expect_log("ReqUnset tempheader: 0");
    });
}

#[test]
fn cookies_of_images_are_dropped_both_ways_and_the_host_is_normalised() {
    let vcl = r#"
sub vcl_recv {
  if (req.http.host ~ "^www.example.com") {
    set req.http.host = "example.com";
  }
  if (req.url ~ "^/images") {
    unset req.http.cookie;
  }
}
sub vcl_fetch {
  if (req.url ~ "\.(png|gif|jpg)$") {
    unset beresp.http.set-cookie;
    set beresp.ttl = 1h;
  }
}"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "Set-Cookie: a=b\r\nCache-Control: max-age=1\r\n", "x")));
        for host in ["www.example.com", "example.com"] {
            let mut client = world.client();
            client.send(format!("GET /images/a.png HTTP/1.1\r\nHost: {host}\r\nCookie: c=d\r\n\r\n")).await;
            assert_eq!(client.response().await.header("set-cookie"), None);
        }
        sleep(Duration::from_secs(3599)).await;
        world.client().get("/images/a.png", "Cookie: e=f\r\n").await;
        assert_eq!(asked.borrow().len(), 1, "{}", world.story());
        assert_eq!(asked.borrow()[0].header("cookie"), None);
        let mut client = world.client();
        assert_eq!(client.get("/page", "").await.header("set-cookie"), Some("a=b"));
        client.get("/page", "").await;
        assert_eq!(asked.borrow().len(), 3, "what sets cookies is passed");
    });
}

#[test]
fn everything_is_cached_for_an_hour_when_both_subroutines_say_so() {
    let vcl = "sub vcl_recv { return (lookup); } sub vcl_fetch { set beresp.ttl = 1h; return (deliver); }";
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "Set-Cookie: a=b\r\nCache-Control: max-age=0\r\n", "x")));
        for wait in [0, 3590, 20] {
            sleep(Duration::from_secs(wait)).await;
            let response = world.client().get("/", "Cookie: c=d\r\nAuthorization: e\r\n").await;
            assert_eq!(response.header("set-cookie"), Some("a=b"), "the stored one, too");
        }
        assert_eq!(asked.borrow().len(), 2, "{}", world.story());
    });
}

#[test]
fn a_blog_of_2008_is_cached_for_three_minutes_unless_the_visitor_is_known() {
    // The port is the test's; everything else is verbatim.
    let vcl = r#"# This is a basic vcl.conf file for varnish.
 # Modifying this file should be where you store your modifications to
 # varnish. Settnigs here will override defaults.
backend default {
 set backend.host = "10.0.0.1";
 set backend.port = "80";
 }
sub vcl_recv {
 if (req.request == "POST") {
 pipe;
 }
if (req.http.cookie ~ "(comment_)|(wordpress_\w{32}=)") {
        pipe;
}
# force lookup even when cookies are present
 if (req.request == "GET" && req.http.cookie) {
 lookup;
 }
 }
sub vcl_fetch {
 # force minimum ttl of 180 seconds
 if (obj.ttl < 180s) {
 set obj.ttl = 180s;
 }
}
"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let asked = Asked::default();
            world.origin(noting(&asked, |request| {
                let cookie = if request.target() == "/login" { "Set-Cookie: a=b\r\n" } else { "" };
                page("200 OK", &format!("{cookie}Cache-Control: max-age=1\r\n"), "post")
            }));
            let mut client = world.client();
            for headers in ["", "Cookie: crap=1\r\n", "Cookie: other=2\r\n"] {
                assert_eq!(client.get("/", headers).await.text(), "post", "{}", world.story());
            }
            assert_eq!(asked.borrow().len(), 1, "cookies do not matter");
            sleep(Duration::from_secs(179)).await;
            world.client().get("/", "").await;
            assert_eq!(asked.borrow().len(), 1, "the origin's one second became three minutes");
            sleep(Duration::from_secs(2)).await;
            world.client().get("/", "").await;
            assert_eq!(asked.borrow().len(), 2);
            let known = format!("Cookie: wordpress_{}=admin\r\n", "0123456789abcdef".repeat(2));
            for headers in [known.as_str(), "Cookie: comment_author=me\r\n"] {
                world.client().get("/", headers).await;
            }
            assert_eq!(asked.borrow().len(), 4, "who wrote or is logged in is piped");
            let mut client = world.client();
            client.get("/login", "").await;
            client.get("/login", "").await;
            assert_eq!(asked.borrow().len(), 6, "what sets cookies is passed by the built-in VCL");
        },
    );
}

#[test]
fn of_a_server_with_many_sites_in_2010_only_one_is_cached() {
    // The host of the backend and the pattern were lost when the article was converted.
    let vcl = r#"backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_recv { if (req.http.host !~ "blog.example.com") { return(pass); } }
"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let asked = Asked::default();
            world.origin(noting(&asked, |_| page("200 OK", "", "x")));
            for (host, fetches) in [("blog.example.com", 1), ("shop.example.com", 3)] {
                let mut client = world.client();
                for _ in 0..2 {
                    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
                    assert_eq!(client.response().await.text(), "x");
                }
                assert_eq!(asked.borrow().len(), fetches, "{host}: {}", world.story());
            }
        },
    );
}
