//! Traces on demand (7.4), deadlines of pipes (7.5), the time of a call (7.2), detection of HTTP/2
//! (7.5).

use crate::support::{always, run_with};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Number of VCL_trace records.
fn traces(vcl: &str, side: &str) -> usize {
    let mut count = 0;
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            world.client().get("/", "").await;
            count = world.log().iter().filter(|line| line.contains("VCL_trace") && line.contains(side)).count();
        },
    );
    count
}

#[test]
fn points_are_recorded_for_the_requests_that_vcl_says() {
    assert_eq!(traces("", ""), 0);
    let both = traces("sub vcl_recv { set req.trace = true; }", "");
    let client =
        traces("sub vcl_recv { set req.trace = true; } sub vcl_backend_fetch { set bereq.trace = false; }", "");
    let origin = traces("sub vcl_backend_fetch { set bereq.trace = true; }", "");
    assert!(client > 0 && origin > 0 && both > client, "{both} {client} {origin}");
    assert_eq!(traces("sub vcl_recv { set req.trace = true; set req.trace = false; }", ""), 0);
}

#[test]
fn trace_reports_its_state() {
    let vcl = "sub vcl_recv { set req.http.a = req.trace; set req.trace = true; set req.http.b = req.trace; }
        sub vcl_backend_fetch { set bereq.http.c = bereq.trace; }
        sub vcl_backend_response { set beresp.http.all = bereq.http.a + \" \" + bereq.http.b + \" \" + bereq.http.c; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            world.origin(always("", "x"));
            assert_eq!(world.client().get("/", "").await.header("all"), Some("false true true"));
        },
    );
}

/// Duration of a pipe whose origin sends something every second.
fn pipe_seconds(vcl: &str, deadline: f64) -> u64 {
    let mut lasted = 0.0;
    run_with(
        |parameters| parameters.pipe_task_deadline = deadline,
        vcl,
        async |world| {
            world.origin(|mut stream| async move {
                use tokio::io::AsyncWriteExt;
                let mut request = [0; 1000];
                let _ = stream.read(&mut request).await;
                for _ in 0..100 {
                    if stream.write_all(b"x").await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
            let start = world.context.clock.now();
            let mut client = world.client();
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            client.rest().await;
            lasted = world.context.clock.now() - start;
        },
    );
    lasted.round() as u64
}

#[test]
fn a_pipe_ends_at_its_deadline_however_busy_it_is() {
    let pipe = "sub vcl_recv { return (pipe); }";
    assert_eq!(pipe_seconds(pipe, 0.0), 100);
    assert_eq!(pipe_seconds(pipe, 20.0), 20);
    let own = "sub vcl_pipe { set bereq.task_deadline = 10s; }";
    assert_eq!(pipe_seconds(&format!("{pipe} {own}"), 20.0), 10);
    let unset = "sub vcl_pipe { set bereq.task_deadline = 10s; unset bereq.task_deadline; }";
    assert_eq!(pipe_seconds(&format!("{pipe} {unset}"), 20.0), 20);
}

#[test]
fn the_clock_goes_on_within_a_method_and_a_call_can_be_timed() {
    let vcl = "import std; import vtc; import h2;
        sub slow { vtc.sleep(2s); }
        sub vcl_recv {
            set req.http.took = std.timed_call(slow);
            if (std.now() - now > 1s) { set req.http.later = \"yes\"; }
            set req.http.h2 = h2.is() + \" \" + h2.rapid_reset() + \" \" + h2.rapid_reset_limit(5) + \" \" +
                h2.rapid_reset_period(10s) + \" \" + h2.rapid_reset_budget();
            return (synth(200));
        }
        sub vcl_synth {
            set resp.http.took = req.http.took; set resp.http.later = req.http.later; set resp.http.h2 = req.http.h2;
            set resp.http.hash = req.hash;
        }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let response = world.client().get("/", "").await;
            assert_eq!(response.header("took"), Some("2.000"), "{} {}", response.head, world.story());
            assert_eq!(response.header("later"), Some("yes"));
            assert_eq!(response.header("h2"), Some("false -1.000 -1 -1.000 -1.000"));
            assert!(response.header("hash").is_some());
        },
    );
}
