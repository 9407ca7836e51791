//! Assembled pages: plain pages, nesting, markup, errors, and the view of VCL and the log.

use super::site::{PARSE_ALL, Site, page, run_parsing, run_parsing_with};
use crate::support::run_with;
use surface::counter::Main;
use surface::parameter::feature;

#[test]
fn a_page_is_put_together_on_a_miss_and_on_a_hit() {
    run_parsing(async |world| {
        let site = Site::serve(
            &world,
            [
                ("/", page("<p>one<esi:include src=\"/a\"/>two<esi:include src=\"/b\"/>three</p>").with("ETag: \"x\"")),
                ("/a", page("<A>")),
                ("/b", page("<B>")),
            ],
        );
        let mut client = world.client();
        for _ in 0..2 {
            let response = client.get("/", "").await;
            assert_eq!(response.text(), "<p>one<A>two<B>three</p>");
            assert_eq!((response.header("content-length"), response.header("etag")), (None, Some("W/\"x\"")));
            assert!(response.is_whole);
        }
        assert_eq!(site.targets(), ["/", "/a", "/b"]);
        assert_eq!((world.count(Main::EsiReq), world.count(Main::ClientReq)), (4, 2));
        assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheMiss)), (3, 3));
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn a_fragment_is_logged_as_a_request_of_its_own() {
    run_with(
        |parameters| parameters.vsl_reasons = false,
        PARSE_ALL,
        async |world| {
            Site::serve(
                &world,
                [("/", page("<p><esi:include src=\"http://other.example/a\"/></p>")), ("/a", page("<A>"))],
            );
            let mut client = world.client();
            client.get("/", "X-Own: 1\r\nIf-None-Match: \"y\"\r\nRange: bytes=0-1\r\n").await;
            let log = world.transaction(4);
            assert_eq!(
                log[..10],
                [
                    "Begin req 2 esi",
                    "Timestamp Start",
                    "ReqURL /a",
                    "ReqUnset Host: example.com",
                    "ReqHeader Host: other.example",
                    "ReqUnset If-None-Match: \"y\"",
                    "ReqUnset Range: bytes=0-1",
                    "ReqStart 192.0.2.7 4711 a0",
                    "ReqMethod GET",
                    "ReqURL /a",
                ]
            );
            assert!(log.contains(&"ReqHeader X-Own: 1".to_owned()), "{log:#?}");
            assert_eq!(log[log.len() - 3..], ["Timestamp Resp", "ReqAcct 0 0 0 0 3 3", "End"]);
            assert!(world.transaction(2).contains(&"Link req 4 esi".to_owned()), "{}", world.story());
        },
    );
}

#[test]
fn pages_nest_as_deep_as_the_parameter_says() {
    for depth in [0, 1, 3] {
        run_parsing_with(
            |parameters| parameters.max_esi_depth = depth,
            async |world| {
                Site::serve(&world, [("/", page("<a><esi:include src=\"/\"/></a>"))]);
                let mut client = world.client();
                let mut nested = String::new();
                for _ in 0..=depth {
                    nested = format!("<a>{nested}</a>");
                }
                for _ in 0..2 {
                    assert_eq!(client.get("/", "").await.text(), nested);
                }
                world.expect_log(&format!("VCL_Error ESI depth limit reach (param max_esi_depth = {depth})"));
            },
        );
    }
}

#[test]
fn markup_is_carried_out_and_only_pages_that_are_parsed_change() {
    let text = "<p>a<esi:remove>gone</esi:remove>b<!--esi c<esi:include src=\"/x\"/>-->d<esi:comment text=\"\"/>e</p>";
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.do_esi = bereq.url != \"/raw\"; }
        sub vcl_deliver { set resp.http.Can = obj.can_esi; set resp.http.Do = resp.do_esi;
            set resp.http.Filters = resp.filters; if (req.http.Raw) { set resp.do_esi = false; } }",
        async |world| {
            Site::serve(&world, [("/", page(text)), ("/raw", page(text)), ("/x", page("X"))]);
            let mut client = world.client();
            let parsed = client.get("/", "").await;
            assert_eq!(parsed.text(), "<p>ab cXde</p>");
            assert_eq!(
                (parsed.header("can"), parsed.header("do"), parsed.header("filters")),
                (Some("true"), Some("true"), Some("esi"))
            );
            let raw = client.get("/raw", "").await;
            assert_eq!((raw.text().as_str(), raw.header("can"), raw.header("do")), (text, Some("false"), Some("true")));
            let kept = client.get("/", "Raw: 1\r\n").await;
            assert_eq!((kept.text().as_str(), kept.header("content-length")), (text, Some("97")));
            let nothing = client.get("/x", "").await;
            assert_eq!((nothing.header("can"), nothing.header("content-length")), (Some("false"), Some("1")));
            world.expect_log("ESI_xmlerror No ESI processing, first char not '<'.");
        },
    );
}

#[test]
fn broken_markup_is_logged_and_counted() {
    run_parsing(async |world| {
        Site::serve(&world, [("/", page("<p><esi:include/><esi:include src=\"/x\">y</p>")), ("/x", page("X"))]);
        assert_eq!(world.client().get("/", "").await.text(), "<p>Xy</p>");
        world.expect_log("ESI_xmlerror ERR after 3 ESI 1.0 <esi:include> lacks src attr");
        world.expect_log("ESI_xmlerror WARN after 17 ESI 1.0 <esi:include> lacks final '/'");
        assert_eq!((world.count(Main::EsiErrors), world.count(Main::EsiWarnings)), (1, 1));
    });
}

#[test]
fn the_client_s_request_is_seen_from_every_level() {
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.do_esi = true; }
        sub vcl_recv {
            set req.http.Seen = req.esi_level + \" \" + req_top.url + \" \" + req_top.method + \" \" + req_top.http.Own;
            if (req_top.time != req.time) { return (fail); }
            if (req.esi_level == 0) { set req.http.Own = \"changed\"; }
            if (req.url == \"/echo\") { return (synth(200)); }
        }
        sub vcl_synth { set resp.body = \"[\" + req.http.Seen + \" \" + req.http.Own + \" \" + req.transport + \"]\";
            return (deliver); }",
        async |world| {
            Site::serve(
                &world,
                [
                    ("/", page("<a><esi:include src=\"/echo\"/><esi:include src=\"/in\"/></a>")),
                    ("/in", page("<b><esi:include src=\"/echo\"/></b>")),
                ],
            );
            let response = world.client().get("/", "Own: mine\r\n").await;
            assert_eq!(
                response.text(),
                "<a>[1 / GET changed mine ESI_INCLUDE]<b>[2 / GET changed mine ESI_INCLUDE]</b></a>"
            );
        },
    );
}

#[test]
fn a_fragment_restarts_synthesises_and_passes_for_itself() {
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.do_esi = true; }
        sub vcl_recv {
            if (req.url == \"/again\" && req.restarts == 0) { return (restart); }
            if (req.url == \"/synth\") { return (synth(404)); }
            if (req.url == \"/pipe\") { return (pipe); }
            if (req.url == \"/fail\") { return (fail); }
        }
        sub vcl_synth { set resp.body = \"(\" + resp.status + \")\"; return (deliver); }",
        async |world| {
            let includes = ["/again", "/synth", "/pipe", "/fail"].map(|src| format!("<esi:include src=\"{src}\"/>"));
            Site::serve(
                &world,
                [("/", page(format!("<p>{}</p>", includes.concat()))), ("/again", page("A")), ("/pipe", page("P"))],
            );
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get("/", "").await;
                assert_eq!((response.text().as_str(), response.is_whole), ("<p>A(404)P(503)</p>", true));
            }
            world.expect_log("VCL_Error vcl_recv{} returns pipe for ESI included object.  Doing pass.");
            assert_eq!(world.count(Main::SPipe), 0);
        },
    );
}

#[test]
fn a_fragment_that_breaks_off_ends_the_page_only_if_onerror_is_heeded() {
    for (is_heeded, onerror, whole) in [
        (false, "", true),
        (false, " onerror=\"continue\"", true),
        (true, "", false),
        (true, " onerror=\"continue\"", true),
    ] {
        run_parsing_with(
            |parameters| parameters.feature |= if is_heeded { feature::ESI_INCLUDE_ONERROR } else { 0 },
            async |world| {
                let text = format!("<p>a<esi:include src=\"/gone\"/><esi:include src=\"/cut\"{onerror}/>b</p>");
                // Not parsed, so that the fragment is streamed.
                world.load("v", "sub vcl_backend_response { set beresp.do_esi = bereq.url == \"/\"; }");
                Site::serve(&world, [("/", page(text)), ("/cut", page("0123456789").cut(5))]);
                let response = world.client().get("/", "").await;
                assert_eq!(response.is_whole, whole, "{is_heeded} {onerror}");
                let end = if whole { "b</p>" } else { "" };
                assert_eq!(response.text(), format!("<p>a01234{end}"), "{is_heeded} {onerror}");
            },
        );
    }
}

#[test]
fn a_fragment_that_no_vcl_could_answer_has_failed() {
    for (onerror, text) in [("", "<p>a"), (" onerror=\"continue\"", "<p>ab</p>")] {
        run_with(
            |parameters| parameters.feature |= feature::ESI_INCLUDE_ONERROR,
            "sub vcl_recv { if (req.url == \"/bad\") { return (synth(200)); } }
            sub vcl_synth { return (fail); }
            sub vcl_backend_response { set beresp.do_esi = true; }",
            async |world| {
                let page_text = format!("<p>a<esi:include src=\"/bad\"{onerror}/>b</p>");
                Site::serve(&world, [("/", page(page_text))]);
                let response = world.client().get("/", "").await;
                assert_eq!((response.text().as_str(), response.is_whole), (text, text.ends_with("</p>")), "{onerror}");
            },
        );
    }
}

#[test]
fn a_panic_in_a_fragment_costs_that_fragment_only() {
    run_with(
        |_| {},
        "backend broken { .host = \"10.0.0.2\"; .port = \"80\"; }
        sub vcl_recv { if (req.url == \"/p\") { set req.backend_hint = broken; return (pass); } }
        sub vcl_backend_response { set beresp.do_esi = true; }",
        async |world| {
            world.origin_at("10.0.0.2:80", |_| -> std::future::Ready<()> { panic!("an origin that nobody expected") });
            Site::serve(
                &world,
                [("/", page("<p>a<esi:include src=\"/p\"/>b<esi:include src=\"/q\"/></p>")), ("/q", page("Q"))],
            );
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get("/", "").await;
                assert!(response.is_whole && response.text().ends_with("bQ</p>"), "{}", response.text());
            }
            world.expect_log("FetchError Internal error: an origin that nobody expected");
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn a_label_s_vcl_does_not_run_for_fragments() {
    run_with(
        |_| {},
        "",
        async |world| {
            world.load_under_label(
                "inner",
                "label",
                "sub vcl_recv { set req.http.By = \"inner\"; } sub vcl_backend_response { set beresp.do_esi = true; }
                sub vcl_hash { hash_data(\"inner\"); }",
            );
            world.load(
                "outer",
                "sub vcl_recv { if (req.url == \"/\") { return (vcl(label)); } return (synth(200)); }
                sub vcl_synth { set resp.body = \"outer\"; return (deliver); }",
            );
            Site::serve(&world, [("/", page("<p><esi:include src=\"/x\"/></p>"))]);
            assert_eq!(world.client().get("/", "").await.text(), "<p>outer</p>");
        },
    );
}

#[test]
fn a_partial_response_is_not_parsed_and_a_page_is_not_cut_for_a_range() {
    run_parsing(async |world| {
        let site = Site::serve(&world, [("/", page("<p>0<esi:include src=\"/a\"/>9</p>")), ("/a", page("12345678"))]);
        let mut client = world.client();
        // The length of the page is unknown in advance.
        let whole = client.get("/", "Range: bytes=3-6\r\n").await;
        assert_eq!((whole.status(), whole.text().as_str()), (200, "<p>0123456789</p>"));
        site.set("/part", page("<p>").status("206 Partial Content").with("Content-Range: bytes 0-2/10"));
        world.load("passing", "sub vcl_recv { return (pass); } sub vcl_backend_response { set beresp.do_esi = true; }");
        assert_eq!(client.get("/part", "Range: bytes=0-2\r\n").await.status(), 503);
        world.expect_log("Attempted ESI on partial (206) response");
    });
}

#[test]
fn esi_can_be_forbidden_for_a_request() {
    run_with(
        |_| {},
        "vcl 4.0; backend default { .host = \"10.0.0.1\"; .port = \"80\"; }
        sub vcl_recv { set req.esi = req.http.Esi != \"no\"; }
        sub vcl_backend_response { set beresp.do_esi = true; }",
        async |world| {
            Site::serve(&world, [("/", page("<p><esi:include src=\"/a\"/></p>")), ("/a", page("A"))]);
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.text(), "<p>A</p>");
            assert_eq!(client.get("/", "Esi: no\r\n").await.text(), "<p><esi:include src=\"/a\"/></p>");
        },
    );
}

#[test]
fn old_dialects_parse_if_enabled() {
    let v2 = "backend default { .host = \"10.0.0.1\"; .port = \"80\"; } sub vcl_fetch { esi; set obj.ttl = 10s; }
        sub vcl_recv { return (lookup); }";
    let v3 = "backend default { .host = \"10.0.0.1\"; .port = \"80\"; }
        sub vcl_recv { set req.http.level = req.esi_level; }
        sub vcl_fetch { set beresp.do_esi = true; set beresp.http.L = req.http.level; }";
    for text in [v2, v3] {
        run_with(
            |_| {},
            text,
            async |world| {
                let site = Site::serve(&world, [("/", page("<p><esi:include src=\"/a\"/></p>")), ("/a", page("A"))]);
                let mut client = world.client();
                for _ in 0..2 {
                    assert_eq!(client.get("/", "").await.text(), "<p>A</p>", "{text}\n{}", world.story());
                }
                assert_eq!(site.targets(), ["/", "/a"], "{text}");
            },
        );
    }
}
