//! A VMOD that takes a header sees the same as plain VCL, on every side, even if nothing was read
//! before.

use super::{expect, told};
use crate::support::{OriginRequest, World, run_with, serve_each};
use std::rc::Rc;

/// An origin whose responses have `X: 1` and `X: 2` and return the received header as `Y`.
fn origin(world: &World) {
    world.origin(serve_each(|request: &OriginRequest| {
        let y = request.header("y").unwrap_or_default();
        format!("HTTP/1.1 200 OK\r\nX: 1\r\nX: 2\r\nGot-Y: {y}\r\nETag: \"1\"\r\nContent-Length: 0\r\n\r\n")
            .into_bytes()
    }));
}

/// Reads `X` of a side with each reading function, as the first statement of the method, and stores
/// it in headers of another side.
fn looked_at(side: &str, into: &str, label: &str) -> String {
    let named = match side {
        // No value of type HTTP exists for these.
        "obj" | "obj_stale" => format!("{side}.http.X"),
        _ => format!("header.dyn({side}, \"X\")"),
    };
    format!(
        "header.copy({side}.http.X, {into}.http.{label}-Copy);
         set {into}.http.{label}-Get = header.get({side}.http.x, \"2\");
         set {into}.http.{label}-Dyn = header.get({named}, \".\");
         set {into}.http.{label}-Plain = {side}.http.X;"
    )
}

/// The expected result.
fn seen(names: &[String; 4]) -> [(&str, Option<&'static str>); 4] {
    [(&names[0], Some("1")), (&names[1], Some("2")), (&names[2], Some("1")), (&names[3], Some("1"))]
}

fn names(label: &str) -> [String; 4] {
    ["copy", "get", "dyn", "plain"].map(|what| format!("{label}-{what}"))
}

#[test]
fn an_object_is_seen_by_vmods_that_look_before_vcl_does() {
    let hit = looked_at("obj", "req", "Hit");
    let vcl = format!(
        "import header;
         sub vcl_hit {{ {hit} }}
         sub vcl_deliver {{
            header.copy(req.http.Hit-Copy, resp.http.Hit-Copy);
            set resp.http.Hit-Get = req.http.Hit-Get;
            set resp.http.Hit-Dyn = req.http.Hit-Dyn;
            set resp.http.Hit-Plain = req.http.Hit-Plain;
         }}"
    );
    told(&vcl, async |world| {
        origin(&world);
        let mut client = world.client();
        client.get("/", "").await;
        for _ in 0..2 {
            expect(&client.get("/", "").await, &seen(&names("hit")));
        }
    });
}

#[test]
fn each_other_message_is_seen_by_vmods_as_by_vcl() {
    let pieces = [
        ("vcl_recv", looked_at("req", "req", "Recv")),
        ("vcl_backend_fetch", looked_at("bereq", "bereq", "Fetch")),
        ("vcl_backend_response", looked_at("beresp", "beresp", "Response") + &looked_at("bereq", "beresp", "Bereq")),
        ("vcl_deliver", looked_at("resp", "resp", "Deliver")),
        (
            "vcl_synth",
            "std.collect(req.http.X); header.append(resp.http.X, \"1\"); header.append(resp.http.X, \"2\");".to_owned()
                + &looked_at("resp", "resp", "Synth")
                + "set resp.http.Joined = req.http.X;",
        ),
    ];
    let subs: String = pieces.iter().map(|(sub, text)| format!("sub {sub} {{ {text} }}\n")).collect();
    let vcl = format!(
        "import header; import std; {subs}
         sub vcl_deliver {{
            if (req.http.Sec) {{ return (synth(200)); }}
            header.copy(req.http.Recv-Copy, resp.http.Recv-Copy);
            set resp.http.Recv-Get = req.http.Recv-Get;
            set resp.http.Recv-Dyn = req.http.Recv-Dyn;
            set resp.http.Recv-Plain = req.http.Recv-Plain;
         }}"
    );
    told(&vcl, async |world| {
        origin(&world);
        let mut client = world.client();
        for headers in ["", "", "Sec: 1\r\n"] {
            let response = client.get("/", &format!("X: 1\r\nX: 2\r\n{headers}")).await;
            if !headers.is_empty() {
                expect(&response, &seen(&names("synth")));
                expect(&response, &[("joined", Some("1, 2"))]);
                continue;
            }
            for label in ["recv", "response", "bereq", "deliver"] {
                expect(&response, &seen(&names(label)));
            }
        }
    });
}

#[test]
fn the_request_of_a_pipe_is_seen_and_changed_by_vmods() {
    let vcl = "
        import header; import std;
        sub vcl_recv { return (pipe); }
        sub vcl_pipe {
            set bereq.http.Y = header.get(bereq.http.X, \"2\");
            header.append(bereq.http.Y, \"and\");
            std.collect(bereq.http.Y);
        }";
    told(vcl, async |world| {
        origin(&world);
        let response = world.client().get("/", "X: 1\r\nX: 2\r\n").await;
        expect(&response, &[("got-y", Some("2, and"))]);
    });
}

#[test]
fn a_stale_object_is_seen_by_vmods_in_its_refresh() {
    let refresh = looked_at("obj_stale", "beresp", "Stale");
    let vcl = format!(
        "vcl 4.1; import header; backend default {{ .host = \"10.0.0.1\"; .port = \"80\"; }}
         sub vcl_backend_refresh {{ {refresh} }}
         sub vcl_backend_response {{ set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 1h; }}"
    );
    run_with(
        |_| {},
        &vcl,
        async |world| {
            world.origin(serve_each(|request: &OriginRequest| match request.header("if-none-match") {
                Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec(),
                None => b"HTTP/1.1 200 OK\r\nX: 1\r\nX: 2\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
            }));
            let mut client = world.client();
            client.get("/", "").await;
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            expect(&client.get("/", "").await, &seen(&names("stale")));
        },
    );
}

/// In 3.0 `obj` could be changed in vcl_hit, and was the response in vcl_error.
#[test]
fn objects_of_the_old_dialects_are_seen_and_changed_by_vmods() {
    let vcl = "
        backend default { .host = \"10.0.0.1\"; .port = \"80\"; }
        import header; import std;
        sub vcl_hit {
            header.append(obj.http.Z, \"new\");
            std.collect(obj.http.X);
            set req.http.Seen = header.get(obj.http.X, \".\");
        }
        sub vcl_fetch { set beresp.http.Fetched = header.get(beresp.http.X, \"2\"); }
        sub vcl_deliver { set resp.http.Seen = req.http.Seen; }
        sub vcl_recv { if (req.url == \"/error\") { error 700; } }
        sub vcl_error { header.append(obj.http.Z, \"err\"); set obj.http.Y = header.get(obj.http.Z, \".\"); }";
    run_with(
        |_| {},
        vcl,
        async |world: Rc<World>| {
            origin(&world);
            let mut client = world.client();
            expect(&client.get("/", "").await, &[("fetched", Some("2")), ("z", None)]);
            let changed = [("fetched", Some("2")), ("z", Some("new")), ("seen", Some("1, 2")), ("x", Some("1, 2"))];
            expect(&client.get("/", "").await, &changed);
            expect(&client.get("/error", "").await, &[("y", Some("err"))]);
        },
    );
}
