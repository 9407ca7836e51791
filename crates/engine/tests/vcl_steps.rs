//! The evaluator runs different code for ordinary and for traced requests: both must have the same
//! effect, record by record.

use crate::support::{always, run_with};
use surface::tag::Tag;

/// Subroutines in subroutines, conditions of every form, jumps to jumps, `hash_data` of every form,
/// and positions that reasons name.
const VCL: &str = r#"
    sub leaf {
        if (req.http.leaf && (req.http.x || req.http.y) && !req.http.z) { set req.http.trail = req.http.trail + " leaf"; }
        if (!req.http.x || !req.http.y) { set req.http.trail = req.http.trail + " some"; }
        if (!(req.http.x && req.http.y)) { set req.http.trail = req.http.trail + " nand"; }
        if ((req.http.x && req.http.y) || req.http.z) { set req.http.trail = req.http.trail + " or"; }
        if (req.http.early) { return; }
        set req.http.trail = req.http.trail + " end";
    }
    sub middle {
        call leaf;
        if (req.url ~ "^/a" && req.http.x ~ "[A-Z]") { call empty; } else if (req.http.y !~ "b$") { call leaf; }
        if (req.restarts == 0 && req.esi_level == 0 && req.http.again) { return (restart); }
        if (req.restarts != 0) { set req.http.trail = req.http.trail + " again"; }
        if (req.http.traced) { set req.trace = true; }
        call leaf;
        if (req.http.passes) { call passes; }
        if (req.http.never) { set req.hash_always_miss = true; }
    }
    sub empty { }
    sub passes { if (req.method == "GET" || req.method == "HEAD") { return (pass); } }
    sub vcl_recv {
        set req.http.trail = "start";
        if (req.method != "GET" && req.method != "POST") { return (synth(405, "no")); }
        call middle;
        set req.http.was-lower = (req.url == "/b");
    }
    sub vcl_hash {
        if (req.http.x) { hash_data(req.http.x); } else { hash_data(req.http.absent); }
        hash_data(req.method); hash_data(req.proto); hash_data(req.url + "!");
    }
    sub vcl_deliver { set resp.http.trail = req.http.trail; set resp.http.was-lower = req.http.was-lower; }
    sub vcl_synth { set resp.http.trail = req.http.trail; }
"#;

/// Headers of which each request has some.
const HEADERS: [&str; 10] = [
    "x: Ab\r\n",
    "y: ab\r\n",
    "z: 1\r\n",
    "leaf: 1\r\n",
    "early: 1\r\n",
    "again: 1\r\n",
    "passes: 1\r\n",
    "never: 1\r\n",
    "traced: 1\r\n",
    "cookie: a=b\r\n",
];

/// The records of many requests without those of a trace, and the number of the latter.
fn records(is_traced: bool) -> (Vec<String>, usize) {
    let mut kept = Vec::new();
    let mut traces = 0;
    run_with(
        |parameters| {
            let number = Tag::VCLTrace as usize;
            let bit = 0x80 >> (number & 7);
            parameters.vsl_mask[number >> 3] = if is_traced {
                parameters.vsl_mask[number >> 3] & !bit
            } else {
                parameters.vsl_mask[number >> 3] | bit
            };
        },
        VCL,
        async |world| {
            world.origin(always("Cache-Control: max-age=60\r\n", "hello"));
            let mut client = world.client();
            for chosen in 0..1u32 << HEADERS.len() {
                // A third of them in no order, which is enough to have every pair.
                if chosen.wrapping_mul(2_654_435_761) >> 30 != 1 {
                    continue;
                }
                let headers: String = HEADERS
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| chosen >> at & 1 == 1)
                    .map(|(_, header)| *header)
                    .collect();
                let target = if chosen % 3 == 0 { "/a" } else { "/b" };
                client.get(target, &headers).await;
            }
            client.send("PUT / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            client.response().await;
            traces = world.log().iter().filter(|line| line.contains(" VCL_trace ")).count();
            kept = world.log().into_iter().filter(|line| !line.contains(" VCL_trace ")).collect();
        },
    );
    (kept, traces)
}

#[test]
fn tracing_changes_neither_answers_nor_records() {
    let ((fast, some), (plain, many)) = (records(false), records(true));
    assert!(some > 0 && many > 2 * some, "{some} {many}: VCL traces some requests itself");
    assert!(fast.iter().any(|line| line.contains("Witness") && line.contains("in=vcl_recv>middle>passes")), "places");
    assert!(fast.iter().any(|line| line.contains("trail: start leaf some nand end leaf")), "subroutines");
    for (one, other) in fast.iter().zip(&plain) {
        assert_eq!(one, other);
    }
    assert_eq!(fast.len(), plain.len());
}
