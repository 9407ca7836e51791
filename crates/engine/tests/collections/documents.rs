//! The examples in the manuals of the VMODs: each documented use is run, with the documented
//! result.

use super::*;

/// A request, its URL and header lines, and the expected fields of the answer, names in lower case.
type Exchange<'a> = (&'a str, &'a str, &'a [(&'a str, Option<&'a str>)]);

/// Sends requests, and asserts the values that vcl_recv has put into `req.http.X-…`, which the
/// answers contain.
#[track_caller]
fn shows(vcl: &str, requests: &[Exchange<'_>]) {
    let names: Vec<&str> = {
        let mut names: Vec<&str> =
            requests.iter().flat_map(|(_, _, expected)| expected.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let copies: String = names
        .iter()
        .map(|name| format!("if (req.http.{name}) {{ set resp.http.{name} = req.http.{name}; }} "))
        .collect();
    let vcl = format!("{vcl} sub vcl_synth {{ {copies} return (deliver); }}");
    told(&vcl, async |world| {
        for (url, headers, expected) in requests {
            let response = world.client().get(url, headers).await;
            assert_eq!(response.status(), 200, "{url}\n{}", world.story());
            expect(&response, expected);
        }
    });
}

#[test]
fn std_collect_takes_the_usual_separator_for_none() {
    shows(
        r#"import std;
        sub vcl_recv {
            if (req.url == "/empty") { std.collect(req.http.x-a, ""); } else { std.collect(req.http.x-a, "; "); }
            return (synth(200));
        }"#,
        &[
            ("/empty", "X-A: 1\r\nX-A: 2\r\n", &[("x-a", Some("1, 2"))]),
            ("/", "X-A: 1\r\nX-A: 2\r\n", &[("x-a", Some("1; 2"))]),
        ],
    );
}

#[test]
fn cookies_are_kept_while_there_is_nothing_to_parse() {
    shows(
        r#"import cookie;
        sub vcl_recv {
            cookie.parse(req.http.Cookie);
            cookie.parse(req.http.None);
            cookie.keep("lang,size");
            set req.http.x-kept = cookie.get_string();
            cookie.parse("");
            cookie.set("seen", "yes");
            set req.http.x-more = cookie.get_string();
            return (synth(200));
        }"#,
        &[(
            "/",
            "Cookie: lang=de; __utma=1; size=9\r\n",
            &[("x-kept", Some("lang=de; size=9;")), ("x-more", Some("lang=de; size=9; seen=yes;"))],
        )],
    );
}

#[test]
fn a_header_line_that_is_replaced_by_nothing_is_gone() {
    shows(
        r#"import header; import std;
        sub vcl_recv {
            header.regsub(req, "^(?i)X-Drop(-\d)?: .*", "");
            header.regsub(req, "^(?i)X-Part: (.*)", "X-Whole: <\1>");
            std.collect(req.http.X-Stay);
            return (synth(200));
        }"#,
        &[(
            "/",
            "X-Drop: 1\r\nX-Stay: 2\r\nX-Drop-3: 3\r\nX-Drop-4: 4\r\nX-Stay: 5\r\nX-Part: 6\r\n",
            &[
                ("x-drop", None),
                ("x-drop-3", None),
                ("x-drop-4", None),
                ("x-stay", Some("2, 5")),
                ("x-part", None),
                ("x-whole", Some("<6>")),
            ],
        )],
    );
}

#[test]
fn values_that_begin_with_blanks_read_without_them() {
    shows(
        r#"sub vcl_recv {
            set req.http.x-rest = regsub(req.http.Cookie, "^a=1;", "");
            if (req.http.x-rest == "b=2") { set req.http.x-is = "b"; }
            set req.http.x-none = regsub(req.http.Cookie, "^a=1;( )b=2$", "\1");
            if (req.http.x-none == "") { set req.http.x-is-none = "yes"; }
            if (req.http.x-rest ~ "^b") { set req.http.x-match = "<" + req.http.x-rest + ">"; }
            return (synth(200));
        }"#,
        &[(
            "/",
            "Cookie: a=1; b=2\r\n",
            &[("x-is", Some("b")), ("x-is-none", Some("yes")), ("x-match", Some("<b=2>")), ("x-none", Some(""))],
        )],
    );
}

#[test]
fn the_examples_of_accept_pick_what_is_on_offer() {
    shows(
        r#"import accept;
        sub vcl_init {
            new language = accept.rule("en");
            language.add("de"); language.add("fr"); language.remove("fr");
            new format = accept.rule("text/plain");
            format.add("text/html"); format.add("application/json");
        }
        sub vcl_recv {
            set req.http.x-language = language.filter(req.http.Accept-Language);
            set req.http.x-format = format.filter(req.http.Accept);
            return (synth(200));
        }"#,
        &[
            (
                "/",
                "Accept-Language: fr, de;q=0.8\r\nAccept: application/json;q=0.9, text/html;q=0.8\r\n",
                &[("x-language", Some("de")), ("x-format", Some("application/json"))],
            ),
            ("/", "Accept: image/png\r\n", &[("x-language", Some("en")), ("x-format", Some("text/plain"))]),
        ],
    );
}

#[test]
fn the_examples_of_querystring_filter_by_text_glob_and_expression() {
    shows(
        r#"import querystring;
        sub vcl_init {
            new tidy = querystring.filter(sort = true, uniq = true);
            tidy.add_string("_"); tidy.add_glob("utm_*"); tidy.add_regex("^sess[0-9]+$");
            new french = querystring.filter(match = param);
            french.add_regex("^lang=fr(-..)?$");
        }
        sub vcl_recv {
            set req.http.x-tidy = tidy.apply();
            set req.http.x-rest = tidy.extract();
            set req.http.x-only = tidy.apply(mode = keep);
            set req.http.x-french = french.extract(req.url, mode = keep);
            set req.http.x-clean = querystring.clean();
            set req.http.x-sort = querystring.sort(req.url, uniq = true);
            set req.http.x-bare = querystring.remove();
            return (synth(200));
        }"#,
        &[
            (
                "/a?utm_source=x&b=2&_=1&a=1&sess42=q&lang=fr-CA&&=x&b=2",
                "",
                &[
                    ("x-tidy", Some("/a?a=1&b=2&lang=fr-CA")),
                    ("x-rest", Some("a=1&b=2&lang=fr-CA")),
                    ("x-only", Some("/a?_=1&sess42=q&utm_source=x")),
                    ("x-french", Some("lang=fr-CA")),
                    ("x-clean", Some("/a?utm_source=x&b=2&_=1&a=1&sess42=q&lang=fr-CA&b=2")),
                    ("x-sort", Some("/a?_=1&a=1&b=2&lang=fr-CA&sess42=q&utm_source=x")),
                    ("x-bare", Some("/a")),
                ],
            ),
            ("/a?utm_source=x", "", &[("x-tidy", Some("/a")), ("x-rest", Some(""))]),
        ],
    );
}

#[test]
fn the_examples_of_uuid_and_digest_give_the_published_values() {
    shows(
        r#"import uuid; import digest;
        sub vcl_recv {
            set req.http.x-v3 = uuid.uuid_v3("ns:DNS", "www.widgets.com");
            set req.http.x-v5 = uuid.uuid_v5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.widgets.com");
            if (digest.hmac_sha256("key", req.http.Data) == req.http.Signature) { set req.http.x-signed = "yes"; }
            set req.http.x-hex = digest.base64_hex("0xdd26bfddf122c1055d4c");
            return (synth(200));
        }"#,
        &[(
            "/",
            "Data: The quick brown fox jumps over the lazy dog\r\n\
             Signature: 0xf7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8\r\n",
            &[
                ("x-v3", Some("3d813cbb-47fb-32ba-91df-831e1593ac29")),
                ("x-v5", Some("21f7f8de-8051-5b89-8680-0195ef798b6a")),
                ("x-signed", Some("yes")),
                ("x-hex", Some("3Sa/3fEiwQVdTA==")),
            ],
        )],
    );
}

#[test]
fn a_forward_proxy_of_dynamic_and_re_reads_its_requests() {
    let vcl = r#"
        import dynamic; import re;
        acl of_four { "0.0.0.0"/0; }
        sub vcl_init {
            new by_name = dynamic.director(whitelist = of_four, ttl = 5m, retry_after = 10s, domain_usage_timeout = 1h,
                first_lookup_timeout = 2s, share = HOST, connect_timeout = 3s, max_connections = 10, keep = 1);
            new dns = dynamic.resolver(parallel = 4);
            dns.set_timeout(2s);
            new by_dns = dynamic.director(port = "8080", resolver = dns.use(), ttl_from = min);
            new absolute = re.regex("^http://([^:/]+(?::(\d+))?)(/.*)");
            new relative = re.regex("^(?:[^:]+)(?::(\d+))?");
        }
        sub vcl_recv {
            if (req.http.Full) { set req.url = req.http.Full; }
            if (req.http.To) { set req.http.Host = req.http.To; }
            if (absolute.match(req.url)) {
                set req.url = absolute.backref(3, "");
                set req.http.Host = absolute.backref(1, "");
                set req.backend_hint = by_name.backend(port = absolute.backref(2, "80"));
            } else if (relative.match(req.http.Host)) {
                set req.backend_hint = by_dns.backend(port = relative.backref(1, "81"));
            }
            set req.http.x-to = req.backend_hint;
            set req.http.x-url = req.url;
            return (synth(200));
        }"#;
    shows(
        vcl,
        &[
            ("/b", "To: b.example:82\r\n", &[("x-to", Some("by_dns(b.example:82:82)")), ("x-url", Some("/b"))]),
            ("/c", "To: c.example\r\n", &[("x-to", Some("by_dns(c.example:81)")), ("x-url", Some("/c"))]),
            (
                "/",
                "Full: http://d.example/e?f\r\n",
                &[("x-to", Some("by_name(d.example:80)")), ("x-url", Some("/e?f"))],
            ),
        ],
    );
}
