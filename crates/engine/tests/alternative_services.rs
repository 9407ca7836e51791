//! The announcement of HTTP/3 to clients (`Alt-Svc`), which VCL can override.

use crate::support::{World, always, run_with};
use engine::peer::Listener;
use engine::transport::FirstProtocol;
use std::rc::Rc;
use std::sync::Arc;
use surface::parameter::Parameters;
use tokio::io::AsyncReadExt;
use vcl_run::tls::TlsFacts;

/// The `Alt-Svc` of a response to a client over TLS or in clear, at a listener with HTTP/3 over TLS
/// on port 443.
async fn told(world: &World, is_tls: bool, path: &str) -> Option<String> {
    let mut peer = world.peer();
    let http3_port = is_tls.then_some(443);
    peer.listener = Rc::new(Listener { tls: is_tls, http3_port, ..(*peer.listener).clone() });
    peer.tls = is_tls.then(|| Rc::new(TlsFacts::default()));
    let (mut near, far) = tokio::io::duplex(4096);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").into_bytes();
    tokio::task::spawn_local(engine::transport::serve(
        Rc::clone(&world.context),
        far,
        peer,
        request,
        FirstProtocol::Either,
    ));
    let mut text = String::new();
    near.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    text.lines().find_map(|line| line.strip_prefix("Alt-Svc: ")).map(str::to_owned)
}

#[test]
fn http3_is_advertised_over_tls_where_it_is_enabled() {
    run_with(
        |_| {},
        "",
        async |world| {
            world.origin(always("", "x"));
            let expected = Some("h3=\":443\"; ma=86400".to_owned());
            assert_eq!(told(&world, true, "/").await, expected, "a miss");
            assert_eq!(told(&world, true, "/").await, expected, "a hit");
            assert_eq!(told(&world, false, "/").await, None, "in clear");
            let change = |parameters| world.context.engine.parameters.store(Arc::new(parameters));
            change(Parameters { alt_svc_port: 8443, ..Parameters::default() });
            assert_eq!(told(&world, true, "/").await.unwrap(), "h3=\":8443\"; ma=86400");
            change(Parameters { alt_svc_max_age: 0.0, ..Parameters::default() });
            assert_eq!(told(&world, true, "/").await, None, "not announced");
        },
    );
}

#[test]
fn vcl_has_the_last_word_about_it() {
    let vcl = r#"
        sub vcl_recv { if (req.url == "/synth") { return (synth(200)); } }
        sub vcl_deliver {
            if (req.url == "/unset") { unset resp.http.Alt-Svc; } else { set resp.http.Alt-Svc = "clear"; }
        }"#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            assert_eq!(told(&world, true, "/unset").await, None);
            assert_eq!(told(&world, true, "/set").await.unwrap(), "clear");
            assert_eq!(told(&world, true, "/synth").await.unwrap(), "h3=\":443\"; ma=86400");
        },
    );
}

#[test]
fn alt_svc_of_the_origin_is_kept() {
    run_with(
        |_| {},
        "",
        async |world| {
            world.origin(always("Alt-Svc: h2=\":1\"\r\n", "x"));
            assert_eq!(told(&world, true, "/").await.unwrap(), "h2=\":1\"");
        },
    );
}
