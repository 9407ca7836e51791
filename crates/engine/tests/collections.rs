//! Widely used VMODs besides Varnish's own, each through VCL.

use crate::support::{Response, World, always, run_with};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

mod documents;
mod expressions;
mod header_places;
mod strings;
mod throttle;

/// Runs a test with a VCL that answers with a 200 and the values that its vcl_recv put into
/// `req.http.X-…`, as response headers.
fn told<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(|_| {}, vcl, story);
}

/// Asserts the value of each name (in lower case) in a response; `None` = no such header.
#[track_caller]
fn expect(response: &Response, expected: &[(&str, Option<&str>)]) {
    for (name, value) in expected {
        assert_eq!(response.header(name), *value, "{name} in\n{}", response.head);
    }
}

#[test]
fn headers_that_occur_more_than_once_are_handled_line_by_line() {
    let vcl = r#"
        import header;
        sub vcl_backend_response {
            header.append(beresp.http.Set-Cookie, "d=4" + "; Path=/");
            set beresp.http.X-First = header.get(beresp.http.set-cookie, "^b=");
            set beresp.http.X-None = header.get(beresp.http.set-cookie, "^z=");
            header.copy(beresp.http.Set-Cookie, beresp.http.X-Copy);
            header.remove(beresp.http.Set-Cookie, "^(a|c)=");
            header.append(header.dyn(beresp, "X-" + 42 + ": rest"), "dynamic");
            set beresp.http.X-Empty = header.get(beresp.http.X-Nothing, ".*");
        }
        sub vcl_deliver {
            header.regsub(resp, "^(?i)x-copy: (.)=(.*)$", "X-\1: <\2>");
            header.regsub(resp, "(?<=a)n", "N", true);
            set resp.http.X-Dyn = header.dyn(resp, "x-42");
        }"#;
    told(vcl, async |world| {
        world.origin(always(
            "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nSet-Cookie: c=3\r\nX-Nothing:\r\nFruit: banana\r\n",
            "",
        ));
        let response = world.client().get("/", "").await;
        let cookies: Vec<&str> = response.head.lines().filter(|line| line.starts_with("Set-Cookie")).collect();
        assert_eq!(cookies, ["Set-Cookie: b=2", "Set-Cookie: d=4; Path=/"], "{}", response.head);
        expect(
            &response,
            &[
                ("x-first", Some("b=2")),
                ("x-none", Some("")),
                ("x-empty", Some("")),
                ("x-a", Some("<1>")),
                ("x-b", Some("<2>")),
                ("x-c", Some("<3>")),
                ("x-d", Some("<4; Path=/>")),
                ("x-copy", None),
                ("x-42", Some("dynamic")),
                ("x-dyn", Some("dynamic")),
                ("fruit", Some("baNaNa")),
            ],
        );
        world.expect_log("BerespHeader Set-Cookie: d=4; Path=/");
        world.expect_log("RespUnset X-Copy: a=1");
        world.expect_log("RespHeader X-a: <1>");
    });
}

#[test]
fn header_injection_by_vmods_fails_the_request() {
    let vcl = r#"
        import header; import blob;
        sub vcl_recv {
            if (req.url == "/append") { header.append(req.http.X, blob.transcode(decoding = HEX, encoded = "610d0a623a2063")); }
            if (req.url == "/regsub") { header.regsub(req, "^X: .*", "nothing"); }
            if (req.url == "/dyn") { header.append(header.dyn(req, "a b"), "x"); }
            if (req.url == "/empty") { header.append(header.dyn(req, req.http.None), "x"); }
            return (synth(200));
        }"#;
    told(vcl, async |world| {
        for (url, text) in [
            ("/append", "Bad header X: a\r\nb: c"),
            ("/regsub", "header.regsub(): \"nothing\" is no header line"),
            ("/dyn", "header.dyn(): \"a b\" is no header name"),
            ("/empty", "header.append(): the header has no name"),
        ] {
            assert_eq!(world.client().get(url, "X: 1\r\n").await.status(), 503, "{url}\n{}", world.story());
            world.expect_log(text);
        }
        assert_eq!(world.client().get("/", "X: 1\r\n").await.status(), 200);
    });
}

#[test]
fn headers_of_a_request_cannot_outgrow_its_memory() {
    let doubling = "header.copy(req.http.X, req.http.X);".repeat(40);
    let vcl = format!("import header; sub vcl_recv {{ {doubling} return (synth(200)); }}");
    told(&vcl, async |world| {
        assert_eq!(world.client().get("/", "X: 1\r\n").await.status(), 503);
        world.expect_log("header.copy(): Out of request memory (parameter request_memory_max)");
    });
}

#[test]
fn variables_last_for_the_task_and_global_ones_for_ever() {
    let vcl = r#"
        import var;
        sub vcl_recv {
            set req.http.X-Before = var.get("text");
            set req.http.X-Global = var.global_get("count");
            var.set("text", "some " + req.url);
            var.set_int("number", 7);
            var.set_real("real", 1.5);
            var.set_duration("duration", 90s);
            var.set_ip("ip", client.ip);
            var.set_backend("backend", default);
            var.global_set("count", var.global_get("count") + "x");
            return (pass);
        }
        sub vcl_deliver {
            set resp.http.X-Before = req.http.X-Before;
            set resp.http.X-Global = req.http.X-Global;
            set resp.http.X-Text = var.get("text");
            set resp.http.X-Same = var.get_string("text");
            set resp.http.X-Number = var.get_int("number") + 1;
            set resp.http.X-Real = var.get_real("real");
            set resp.http.X-Duration = var.get_duration("duration");
            set resp.http.X-Ip = var.get_ip("ip");
            set resp.http.X-Backend = var.get_backend("backend");
            set resp.http.X-Wrong = var.get_int("text");
            set resp.http.X-Wrong-Text = var.get("number");
            set resp.http.X-No-Ip = var.get_ip("number");
            var.clear();
            set resp.http.X-Cleared = var.get("text");
        }"#;
    told(vcl, async |world| {
        world.origin(always("", ""));
        let mut client = world.client();
        for (url, global) in [("/1", ""), ("/2", "x")] {
            let response = client.get(url, "").await;
            let text = format!("some {url}");
            expect(
                &response,
                &[
                    ("x-before", Some("")),
                    ("x-global", Some(global)),
                    ("x-text", Some(&text)),
                    ("x-same", Some(&text)),
                    ("x-number", Some("8")),
                    ("x-real", Some("1.500")),
                    ("x-duration", Some("90.000")),
                    ("x-ip", Some("192.0.2.7")),
                    ("x-backend", Some("default")),
                    ("x-wrong", Some("0")),
                    ("x-wrong-text", Some("")),
                    ("x-no-ip", Some("")),
                    ("x-cleared", Some("")),
                ],
            );
        }
        // Another VCL sees the global ones.
        world.load("next", r#"import var; sub vcl_recv { return (synth(200, var.global_get("count"))); }"#);
        assert!(world.client().get("/", "").await.head.starts_with("HTTP/1.1 200 xx\r\n"));
    });
}

#[test]
fn variables_do_not_follow_a_request_into_another_vcl() {
    told("", async |world| {
        let vcl = r#"
            import var; import re; import cookie;
            sub vcl_init { new x = re.regex("(.)"); }
            sub vcl_recv {
                return (synth(200, cookie.get_string() + var.get("text") + var.get_backend("backend") + x.backref(1, "none")));
            }"#;
        world.load_under_label("other", "label", vcl);
        let vcl = r#"
            import var; import re; import cookie;
            sub vcl_init { new y = re.regex("(.)"); }
            sub vcl_recv {
                cookie.parse("tenant=first");
                if (y.match("a")) { var.set("text", "old"); }
                var.set_backend("backend", default);
                return (vcl(label));
            }"#;
        world.load("first", vcl);
        let response = world.client().get("/", "").await;
        assert!(response.head.starts_with("HTTP/1.1 200 none\r\n"), "{}", response.head);
    });
}

#[test]
fn a_rollback_leaves_nothing_of_what_vmods_kept() {
    let vcl = r#"
        import var; import re; import cookie; import std;
        sub vcl_init { new x = re.regex("(.)"); }
        sub keep {
            cookie.parse("a=1");
            var.set("text", "old");
            if (x.match("b")) { cookie.set("c", "2"); }
        }
        sub vcl_recv { call keep; return (pass); }
        sub vcl_backend_fetch {
            call keep;
            std.rollback(bereq);
            set bereq.http.X-Kept = "<" + cookie.get_string() + var.get("text") + x.backref(1, "") + ">";
        }
        sub vcl_backend_response { set beresp.http.X-Fetch = bereq.http.X-Kept; }
        sub vcl_deliver {
            std.log("before <" + cookie.get_string() + var.get("text") + x.backref(1, "") + ">");
            std.rollback(req);
            set resp.http.X-After = "<" + cookie.get_string() + var.get("text") + x.backref(1, "") + ">";
            cookie.parse("new=1");
            set resp.http.X-New = cookie.get_string();
        }"#;
    told(vcl, async |world| {
        world.origin(always("", ""));
        let response = world.client().get("/", "").await;
        world.expect_log("VCL_Log before <a=1; c=2;oldb>");
        expect(&response, &[("x-fetch", Some("<>")), ("x-after", Some("<>")), ("x-new", Some("new=1;"))]);
    });
}

#[test]
fn the_best_choice_for_an_accept_header_is_taken() {
    let vcl = r#"
        import accept;
        sub vcl_init {
            new language = accept.rule("en");
            language.add("de");
            language.add("fr");
            language.add("nl");
            language.remove("FR");
        }
        sub vcl_recv {
            set req.http.Accept-Language = language.filter(req.http.Accept-Language);
            return (synth(200, req.http.Accept-Language));
        }"#;
    told(vcl, async |world| {
        for (header, expected) in [
            ("Accept-Language: fr, nl;q=0.3, de;q=0.7\r\n", "de"),
            ("Accept-Language: fr\r\n", "en"),
            ("Accept-Language: de;;\r\n", "en"),
            ("", "en"),
        ] {
            let response = world.client().get("/", header).await;
            assert!(response.head.starts_with(&format!("HTTP/1.1 200 {expected}\r\n")), "{header}{}", response.head);
        }
    });
}
