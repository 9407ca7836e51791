//! The VMODs that came with Varnish, through VCL: the backend for a key, the identity of the
//! client, the state of a task.

use crate::support::{always, run, run_with};
use std::rc::Rc;

const THREE: &str = "
    vcl 4.1; import directors; import debug; import std;
    backend s1 { .host = \"10.0.0.1\"; .port = \"80\"; }
    backend s2 { .host = \"10.0.0.2\"; .port = \"80\"; }
    backend s3 { .host = \"10.0.0.3\"; .port = \"80\"; }
    sub vcl_backend_response { set beresp.http.from = beresp.backend; set beresp.http.via = bereq.backend; }
    sub vcl_init {
        new vd = directors.shard();
        vd.add_backend(s1); vd.add_backend(s2); vd.add_backend(s3);
        vd.reconfigure(25);
        new p = directors.shard_param();
        p.set(by=KEY, key=1);
        vd.associate(p.use());
    }";

#[test]
fn keys_fall_to_the_backends_that_varnish_would_ask() {
    run(async |world| {
        world.load(
            "three",
            &format!(
                "{THREE}
                 sub vcl_recv {{ return (pass); }}
                 sub vcl_backend_fetch {{
                    set bereq.backend = vd.backend(resolve=LAZY);
                    if (bereq.url == \"/2\") {{ p.set(by=KEY, key=2147483647); }}
                    if (bereq.url == \"/3\") {{ set bereq.backend = vd.backend(by=KEY, key=4294967295); }}
                    if (bereq.url == \"/4\") {{ vd.backend(resolve=LAZY, by=KEY, key=4294967295); }}
                 }}"
            ),
        );
        for end in ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"] {
            world.origin_at(end, always("", ""));
        }
        let mut client = world.client();
        for (url, from, via) in [("/1", "s1", "vd"), ("/2", "s2", "vd"), ("/3", "s3", "s3"), ("/4", "s3", "vd")] {
            let answer = client.get(url, "").await;
            assert_eq!((answer.header("from"), answer.header("via")), (Some(from), Some(via)), "{url}");
        }
        // The settings of one task end with it.
        assert_eq!(client.get("/1", "").await.header("from"), Some("s1"));
    });
}

#[test]
fn members_added_in_a_task_count_from_its_end_on() {
    run(async |world| {
        world.load(
            "three",
            &format!(
                "{THREE}
                 sub vcl_recv {{
                    if (req.url == \"/only3\") {{ vd.clear(); vd.add_backend(s3); }}
                    set req.backend_hint = vd.backend(by=KEY, key=1);
                    return (pass);
                 }}"
            ),
        );
        for end in ["10.0.0.1:80", "10.0.0.3:80"] {
            world.origin_at(end, always("", ""));
        }
        let mut client = world.client();
        assert_eq!(client.get("/only3", "").await.header("from"), Some("s1"));
        assert_eq!(client.get("/", "").await.header("from"), Some("s3"));
    });
}

#[test]
fn least_connections_takes_the_one_that_has_less_to_do() {
    run(async |world| {
        world.load(
            "two",
            "vcl 4.1; import directors;
             backend a { .host = \"10.0.0.1\"; .port = \"80\"; }
             backend b { .host = \"10.0.0.2\"; .port = \"80\"; }
             sub vcl_init { new l = directors.least_conn(); l.add_backend(a); l.add_backend(b, weight=2); }
             sub vcl_recv { set req.backend_hint = l.backend(); return (pass); }
             sub vcl_backend_response { set beresp.http.from = beresp.backend; }",
        );
        for end in ["10.0.0.1:80", "10.0.0.2:80"] {
            world.origin_at(end, always("", ""));
        }
        let table = world.engine.vcl.load_full();
        let directors = &table.active.as_ref().unwrap().directors;
        let [a, b] = ["a", "b"].map(|name| directors.lookup(name).unwrap());
        assert_eq!((directors.connections(a), directors.connections(b)), (0, 0));
        let mut client = world.client();
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(client.get("/", "").await.header("from").unwrap().to_owned());
        }
        seen.sort();
        assert_eq!(seen, ["a", "b"], "those that are level take turns");
    });
}

#[test]
fn the_peer_of_a_unix_domain_socket_and_the_word_of_a_proxy_reach_both_sides() {
    run(async |world| {
        world.load(
            "who",
            "import unix; import proxy;
             sub vcl_recv { return (pass); }
             sub vcl_backend_response { set beresp.http.b-uid = unix.uid(); set beresp.http.b-sni = proxy.authority(); }
             sub vcl_deliver {
                set resp.http.gid = unix.gid(); set resp.http.user = unix.user();
                set resp.http.alpn = proxy.alpn(); set resp.http.tls = proxy.is_ssl();
             }",
        );
        world.origin(always("", ""));
        let mut peer = world.peer();
        peer.credentials = Some((0, 7));
        peer.proxy_elements = Some(Rc::from(&[1, 0, 2, b'h', b'2', 2, 0, 1, b'x'][..]));
        let mut listener = (*peer.listener).clone();
        listener.path = Some("/run/socket".into());
        peer.listener = Rc::new(listener);
        let mut client = world.client_from(peer);
        let answer = client.get("/", "").await;
        let headers = ["b-uid", "b-sni", "gid", "user", "alpn", "tls"].map(|name| answer.header(name).unwrap_or(""));
        assert_eq!(headers, ["0", "x", "7", "root", "h2", "false"]);
    });
}

#[test]
fn a_subroutine_given_as_a_value_runs_and_may_end_the_method() {
    run_with(
        |_| {},
        "vcl 4.1; import debug;
         backend default none;
         sub mark { set resp.http.marked = \"yes\"; }
         sub stop { set resp.http.stopped = \"yes\"; return (deliver); }
         sub vcl_init { new c = debug.caller(mark); }
         sub vcl_recv { return (synth(200)); }
         sub vcl_synth {
            c.call();
            set resp.http.check = debug.check_call(mark);
            set resp.http.wrong = debug.check_call(vcl_recv);
            debug.call(stop);
            set resp.http.never = \"yes\";
         }",
        async |world| {
            let answer = world.client().get("/", "").await;
            let header = |name| answer.header(name);
            assert_eq!((header("marked"), header("stopped"), header("never")), (Some("yes"), Some("yes"), None));
            assert_eq!(header("check"), Some(""));
            assert_eq!(header("wrong"), Some("Dynamic call to \"sub vcl_recv{}\" not allowed from here"));
        },
    );
}

#[test]
fn memory_that_a_test_takes_makes_that_request_fail_and_no_other() {
    run_with(
        |_| {},
        "import vtc;
         sub vcl_recv { if (req.url == \"/tight\") { vtc.workspace_alloc(client, -50); } return (pass); }
         sub vcl_deliver { set resp.http.long = req.http.host + req.http.host + req.http.host + req.http.host; }",
        async |world| {
            world.origin(always("", ""));
            let mut client = world.client();
            assert!(client.get("/tight", "").await.status() >= 500);
            assert_eq!(world.client().get("/", "").await.status(), 200);
        },
    );
}

#[test]
fn an_object_that_was_never_made_fails_the_load() {
    run(async |world| {
        let refused = world.try_load(
            "half",
            "import debug;
             sub vcl_init { if (false) { new o = debug.obj(); } }
             sub vcl_recv { o.obj(); }",
        );
        assert!(refused.unwrap_err().contains("Object o not initialized"));
        let accepted = world.try_load("fine", "import debug; sub vcl_init { if (false) { new o = debug.obj_opt(); } }");
        assert_eq!(accepted, Ok(()));
    });
}
