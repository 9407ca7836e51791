//! Bodies that are announced with a coding and turn out to be empty.

use crate::support::{OriginRequest, run_with, serve_each};
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;

const FRAMINGS: [(&str, &str); 3] = [
    ("Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked"),
    ("Connection: close\r\n\r\n", "until close"),
    ("Connection: close\r\nContent-Length: 0\r\n\r\n", "of length 0"),
];

const VCLS: [&str; 6] = [
    "",
    "sub vcl_backend_response { set beresp.do_gunzip = true; }",
    "sub vcl_backend_response { set beresp.do_esi = true; }",
    "sub vcl_backend_response { set beresp.do_stream = false; }",
    "sub vcl_recv { return (pass); }",
    r#"sub vcl_backend_response { set beresp.filters = "unbrotli unzstd gunzip"; }"#,
];

#[test]
fn an_empty_body_with_a_coding_is_an_empty_body() {
    for (vcl, policy) in VCLS.into_iter().flat_map(|vcl| [(vcl, "rfc"), (vcl, "varnish")]) {
        let set = |parameters: &mut Parameters| {
            parameters.http_policy = policy.to_owned();
            parameters.http_encodings = surface::encoding::Encodings::parse("zstd br gzip").unwrap().parameter();
        };
        run_with(set, vcl, async |world| {
            world.origin(|mut stream| async move {
                let Some(request) = OriginRequest::read(&mut stream).await else { return };
                let parts: Vec<&str> = request.target()[1..].split('/').collect();
                let [status, coding, framing] = parts[..] else { panic!("{}", request.target()) };
                let framing = FRAMINGS[framing.parse::<usize>().unwrap()].0;
                let framing = if request.line().starts_with("HEAD") { FRAMINGS[2].0 } else { framing };
                let head = format!("HTTP/1.1 {status} Some\r\nContent-Encoding: {coding}\r\n{framing}");
                let _ = stream.write_all(head.as_bytes()).await;
            });
            for status in [200, 404, 500] {
                for coding in ["gzip", "br", "zstd"] {
                    for (number, (_, framing)) in FRAMINGS.iter().enumerate() {
                        for (method, accepted) in [
                            ("GET", "identity"),
                            ("GET", "gzip"),
                            ("GET", "zstd, br"),
                            ("HEAD", "identity"),
                            ("POST", "identity"),
                            ("POST", "gzip"),
                        ] {
                            let head = format!(
                                "{method} /{status}/{coding}/{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\
                                 Accept-Encoding: {accepted}\r\n\r\n"
                            );
                            let response = world.stream_client().ask(&head, b"").await;
                            let got = (response.status(), response.is_whole);
                            assert_eq!(got, (status, true), "{vcl} {policy} {coding} {framing} {head}");
                            let body = if vcl.contains("do_esi") && response.header("content-encoding").is_some() {
                                // An empty page is compressed.
                                gunzipped(&response.body)
                            } else {
                                response.body
                            };
                            assert_eq!(body, b"", "{vcl} {policy} {coding} {framing} {head}");
                        }
                    }
                }
            }
        });
    }
}

fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    if !bytes.is_empty() {
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain).unwrap();
    }
    plain
}

#[test]
fn an_empty_fragment_with_a_coding_leaves_its_page_whole() {
    for policy in ["rfc", "varnish"] {
        let vcl = "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/page\"; set beresp.do_gzip = true; }";
        run_with(
            |parameters: &mut Parameters| parameters.http_policy = policy.to_owned(),
            vcl,
            async |world| {
                world.origin(serve_each(|request: &OriginRequest| match request.target() {
                    "/page" => {
                        let page = "<p>a<esi:include src=\"/empty\"/>b</p>";
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len()).into_bytes()
                    }
                    _ => b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                        .to_vec(),
                }));
                for _ in 0..2 {
                    let packed = world.client().get("/page", "Accept-Encoding: gzip\r\n").await;
                    assert_eq!(gunzipped(&packed.body), b"<p>ab</p>", "{policy}");
                    assert_eq!(world.client().get("/page", "").await.text(), "<p>ab</p>", "{policy}");
                }
            },
        );
    }
}
