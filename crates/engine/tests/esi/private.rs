//! Private parts in a public page.

use super::site::{Site, page};
use crate::support::{OriginRequest, run_with};
use std::time::Duration;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

const VCL: &str = "
    sub vcl_recv {
        if (req.url == \"/corner\") { return (pass); }
        unset req.http.Cookie;
    }
    sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }";

#[test]
fn a_private_corner_is_never_shared_while_the_page_around_it_is() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            world.origin(async move |mut stream| {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let body = match request.target() {
                        "/" => "<p>shop <esi:include src=\"/corner\"/></p>".to_owned(),
                        _ => format!("hello {}", request.header("cookie").unwrap_or("stranger")),
                    };
                    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length";
                    let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
            for user in ["ann", "bob", "ann"] {
                let response = world.client().get("/", &format!("Cookie: user={user}\r\n")).await;
                assert_eq!(response.text(), format!("<p>shop hello user={user}</p>"));
            }
            assert_eq!(world.client().get("/", "").await.text(), "<p>shop hello stranger</p>");
            assert_eq!((world.count(Main::CacheHit), world.count(Main::SPass)), (3, 4));
        },
    );
}

#[test]
fn fragments_vary_by_the_request_as_it_was_received() {
    run_with(
        |_| {},
        "sub vcl_recv { if (req.esi_level == 0) { unset req.http.Accept-Language; } }
        sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }",
        async |world| {
            world.origin(async move |mut stream| {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let body = match request.target() {
                        "/" => "<p><esi:include src=\"/l\"/></p>".to_owned(),
                        _ => request.header("accept-language").unwrap_or("none").to_owned(),
                    };
                    let head = "HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nContent-Length";
                    let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
            for _ in 0..2 {
                for language in ["de", "fr"] {
                    let response = world.client().get("/", &format!("Accept-Language: {language}\r\n")).await;
                    assert_eq!(response.text(), format!("<p>{language}</p>"));
                }
            }
            assert_eq!(world.count(Main::CacheMiss), 3);
        },
    );
}

#[test]
fn a_stale_fragment_is_sent_while_it_is_refreshed() {
    run_with(
        |_| {},
        "sub vcl_backend_response { if (bereq.url == \"/\") { set beresp.do_esi = true; set beresp.ttl = 1h; }
            else { set beresp.ttl = 1s; set beresp.grace = 1h; } }",
        async |world| {
            let site = Site::serve(&world, [("/", page("<p><esi:include src=\"/a\"/></p>")), ("/a", page("old"))]);
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.text(), "<p>old</p>");
            site.set("/a", page("new").after(Duration::from_secs(1)));
            sleep(Duration::from_secs(2)).await;
            assert_eq!(client.get("/", "").await.text(), "<p>old</p>");
            sleep(Duration::from_millis(1500)).await;
            assert_eq!(client.get("/", "").await.text(), "<p>new</p>");
        },
    );
}
