//! VCL features added after 7.1: here parameters as variables, and timeouts that return to their
//! defaults.

mod bodies;
mod origins;
mod refresh;
mod traces;

use crate::support::{always, run_with};

#[test]
fn parameters_read_as_they_are_now() {
    let vcl = r#"
        sub vcl_recv {
            set req.http.recv = param.default_ttl + ";" + param.max_restarts;
            if (param.default_ttl > 60s && param.max_retries == 4) { return (synth(200)); }
        }
        sub vcl_synth { set resp.http.recv = req.http.recv; return (deliver); }
    "#;
    run_with(
        |parameters| parameters.default_ttl = 77.0,
        vcl,
        async |world| {
            let response = world.client().get("/", "").await;
            assert_eq!((response.status(), response.header("recv")), (200, Some("77.000;4")), "{}", response.head);
        },
    );
}

#[test]
fn parameters_read_on_the_origins_side_too() {
    let vcl = r#"
        sub vcl_backend_response { set beresp.http.grace = param.default_grace; set beresp.ttl = param.shortlived; }
    "#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let response = world.client().get("/", "").await;
            assert_eq!(response.header("grace"), Some("10.000"), "{}", response.head);
        },
    );
}

#[test]
fn unset_restores_the_default() {
    let vcl = r#"
        sub vcl_recv {
            set sess.timeout_idle = 99s;
            set req.ttl = 5s;
            set req.grace = 5s;
            set req.http.before = sess.timeout_idle + ";" + req.ttl + ";" + req.grace;
            unset sess.timeout_idle;
            unset req.ttl;
            unset req.grace;
            set req.http.after = sess.timeout_idle + ";" + req.ttl + ";" + req.grace;
        }
        sub vcl_backend_fetch {
            set bereq.first_byte_timeout = 7s;
            set bereq.http.before = bereq.first_byte_timeout;
            unset bereq.first_byte_timeout;
            set bereq.http.after = bereq.first_byte_timeout;
        }
        sub vcl_backend_response { set beresp.http.fetch = bereq.http.before + " " + bereq.http.after; }
        sub vcl_deliver { set resp.http.client = req.http.before + " " + req.http.after; }
    "#;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            let response = world.client().get("/", "").await;
            assert_eq!(response.header("client"), Some("99.000;5.000;5.000 5.000;-1.000;-1.000"));
            assert_eq!(response.header("fetch"), Some("7.000 60.000"));
        },
    );
}
