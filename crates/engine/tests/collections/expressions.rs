//! re and the filters of querystring: objects with regular expressions, through VCL.

use super::*;

#[test]
fn groups_of_a_match_can_be_asked_for() {
    let vcl = r#"
        import re;
        sub vcl_init {
            new age = re.regex("(?<name>max-age|s-maxage)\s*=\s*(\d+)(x)?");
            new any = re.regex("");
        }
        sub vcl_recv {
            set req.http.X-Early = age.backref(1, "early");
            if (age.match(req.http.Value)) {
                set req.http.X-All = age.backref(0);
                set req.http.X-Number = age.backref(2, "none");
                set req.http.X-Name = age.namedref("name", "none");
                set req.http.X-Unset = age.backref(3, "none");
                set req.http.X-Far = age.backref(11, "far");
                set req.http.X-Nobody = age.namedref("nobody", "nobody");
            }
            if (any.match_dyn(req.http.Pattern, req.http.Value)) { set req.http.X-Dynamic = any.backref(1, "no group"); }
            if (re.match_dyn("(\w+)$", "two words")) { set req.http.X-Function = re.backref(1); }
            if (age.match("nothing")) { set req.http.X-Never = "x"; }
            set req.http.X-After = age.backref(1, "after");
            return (pass);
        }
        sub vcl_deliver {
            set resp.http.X-Same-Task = re.backref(1, "gone");
            set resp.http.X-Early = req.http.X-Early;
            set resp.http.X-All = req.http.X-All;
            set resp.http.X-Number = req.http.X-Number;
            set resp.http.X-Name = req.http.X-Name;
            set resp.http.X-Unset = req.http.X-Unset;
            set resp.http.X-Far = req.http.X-Far;
            set resp.http.X-Nobody = req.http.X-Nobody;
            set resp.http.X-Dynamic = req.http.X-Dynamic;
            set resp.http.X-Function = req.http.X-Function;
            set resp.http.X-After = req.http.X-After;
            if (req.http.X-Never) { set resp.http.X-Never = "x"; }
        }"#;
    told(vcl, async |world| {
        world.origin(always("", ""));
        let response = world.client().get("/", "Value: a, max-age = 60\r\nPattern: (m.)\r\n").await;
        expect(
            &response,
            &[
                ("x-early", Some("early")),
                ("x-all", Some("max-age = 60")),
                ("x-number", Some("60")),
                ("x-name", Some("max-age")),
                ("x-unset", Some("none")),
                ("x-far", Some("far")),
                ("x-nobody", Some("nobody")),
                ("x-dynamic", Some("ma")),
                ("x-function", Some("words")),
                ("x-after", Some("after")),
                ("x-same-task", Some("words")),
                ("x-never", None),
            ],
        );
        world.expect_log("VCL_Error vmod re: backref called without prior match");
        world.expect_log("VCL_Error vmod re: backref 11 out of range");
        let response = world.client().get("/", "Value: b\r\nPattern: (m\r\n").await;
        expect(&response, &[("x-dynamic", Some("")), ("x-all", Some(""))]);
        world.expect_log("VCL_Error vmod re: error compiling regex \"(m\": missing closing parenthesis (position 2)");
    });
}

#[test]
fn a_match_that_runs_away_fails_and_limits_can_be_given() {
    let vcl = r#"
        import re;
        sub vcl_init { new runaway = re.regex("^(a+)+$"); }
        sub vcl_recv {
            if (runaway.match(req.http.Value)) { return (synth(200, "match")); }
            if (runaway.match("aaa", limit = 1)) { return (synth(200, "unlimited")); }
            return (synth(200, runaway.backref(1, "none")));
        }"#;
    told(vcl, async |world| {
        let value = format!("Value: {}b\r\n", "a".repeat(60));
        let response = world.client().get("/", &value).await;
        assert!(response.head.starts_with("HTTP/1.1 200 none\r\n"), "{}", response.head);
        world.expect_log("VCL_Error vmod re: regex match failed:");
    });
}

#[test]
fn invalid_regex_in_vcl_init_is_reported_and_matches_nothing() {
    let vcl = r#"
        import re;
        sub vcl_init { new wrong = re.regex("a(b"); new right = re.regex("a"); }
        sub vcl_recv {
            if (wrong.failed() && !right.failed() && !wrong.match("ab") && right.error() == "") {
                return (synth(200, wrong.error()));
            }
            return (synth(500));
        }"#;
    told(vcl, async |world| {
        let response = world.client().get("/", "").await;
        let expected = "HTTP/1.1 200 missing closing parenthesis (position 3)\r\n";
        assert!(response.head.starts_with(expected), "{}", response.head);
        world.expect_log("VCL_Error vmod re: error compiling regex: missing closing parenthesis (position 3)");
    });
}

#[test]
fn filters_keep_or_drop_parameters() {
    let vcl = r#"
        import querystring;
        sub vcl_init {
            new tracking = querystring.filter(sort = true);
            tracking.add_string("_");
            tracking.add_glob("utm_*");
            tracking.add_regex("^sess[0-9]+$");
            new french = querystring.filter(match = param);
            french.add_regex("^lang=fr(-..)?$");
            new once = querystring.filter(uniq = true);
        }
        sub vcl_recv {
            set req.http.X-Kept = tracking.extract(mode = keep);
            set req.http.X-French = french.extract(req.url, keep);
            set req.http.X-Other = french.apply("/?lang=fr&lang=de", mode = drop);
            set req.http.X-Once = once.apply("/?a=1&a=2&b");
            set req.http.X-None = tracking.extract("/");
            set req.url = tracking.apply();
            return (pass);
        }
        sub vcl_deliver {
            set resp.http.X-Url = req.url;
            set resp.http.X-Kept = req.http.X-Kept;
            set resp.http.X-French = req.http.X-French;
            set resp.http.X-Other = req.http.X-Other;
            set resp.http.X-Once = req.http.X-Once;
        }
        sub vcl_backend_fetch { set bereq.http.X-Same = tracking.apply(); }
        "#;
    told(vcl, async |world| {
        world.origin(always("", ""));
        let url = "/p?z=1&utm_source=x&lang=fr-be&_=123&sess42=9&sessx=1&a";
        expect(
            &world.client().get(url, "").await,
            &[
                ("x-url", Some("/p?a&lang=fr-be&sessx=1&z=1")),
                ("x-kept", Some("_=123&sess42=9&utm_source=x")),
                ("x-french", Some("lang=fr-be")),
                ("x-other", Some("/?lang=de")),
                ("x-once", Some("/?a=1&b")),
            ],
        );
        world.expect_log("BereqHeader X-Same: /p?a&lang=fr-be&sessx=1&z=1");
    });
}
