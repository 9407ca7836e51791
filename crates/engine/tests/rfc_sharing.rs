//! Cookies, logins and private pages are shared with others only for a lifetime of their own, or if
//! VCL decides so.

use crate::support::{OriginRequest, Response, World, run_with, serve_each};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::time::sleep;

/// The line of VCL that the README gives to a site without explicit freshness.
const TWO_MINUTES: &str = "sub vcl_backend_response { set beresp.ttl = 2m; }";
const COOKIE: &str = "Cookie: wordpress_logged_in=alice\r\n";
const LOGIN: &str = "Authorization: Basic YWxpY2U6YQ==\r\n";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// Each response contains the number of requests that the origin has received.
fn counting(headers: impl Into<String>) -> impl Fn(&OriginRequest) -> Vec<u8> + Clone {
    let (count, headers) = (Rc::new(Cell::new(0)), headers.into());
    move |_| {
        count.set(count.get() + 1);
        let number = count.get();
        format!("HTTP/1.1 200 OK\r\nX-Number: {number}\r\n{headers}Content-Length: 2\r\n\r\nhi").into_bytes()
    }
}

fn number(response: &Response) -> &str {
    response.header("x-number").unwrap_or("none")
}

fn reasons(world: &World) -> Vec<String> {
    let lines = world.log();
    let why = lines.iter().filter_map(|line| line.split_once(" Witness why "));
    why.map(|(_, reason)| reason.split(' ').next().unwrap().to_owned()).filter(|word| word.contains("stored")).collect()
}

/// A property of an exchange that may make its response private: header lines of the request, and
/// of the response.
struct Trait {
    request: &'static str,
    response: &'static str,
}

/// The source of the lifetime: VCL, and header lines of the response.
struct Lifetime {
    vcl: &'static str,
    response: &'static str,
}

const TRAITS: [Trait; 7] = [
    Trait { request: "", response: "" },
    Trait { request: "", response: "Set-Cookie: sid=alice\r\n" },
    Trait { request: COOKIE, response: "" },
    Trait { request: LOGIN, response: "" },
    Trait { request: "", response: "Cache-Control: no-cache\r\n" },
    Trait { request: "", response: "Cache-Control: private\r\n" },
    Trait { request: "", response: "Cache-Control: no-store\r\n" },
];
const LIFETIMES: [Lifetime; 4] = [
    Lifetime { vcl: TWO_MINUTES, response: "" },
    // `default_ttl` under `varnish`, a tenth of its age under `rfc`.
    Lifetime { vcl: "", response: "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n" },
    Lifetime { vcl: "", response: "Cache-Control: max-age=60\r\n" },
    Lifetime { vcl: TWO_MINUTES, response: "Cache-Control: max-age=60\r\n" },
];

#[test]
fn each_source_of_a_lifetime_shares_what_it_may_under_each_policy() {
    /// Words of `copal why` about the first response under `rfc`, for each lifetime and trait.
    /// Under `varnish` the built-in VCL shares the first trait only.
    const RFC: [[&str; 7]; 4] = [
        [
            "stored",
            "not-stored-set-cookie-ttl",
            "not-stored-cookie",
            "not-stored-authorization",
            "not-stored-no-cache",
            "not-stored-private",
            "not-stored-no-store",
        ],
        [
            "stored",
            "not-stored-set-cookie-ttl",
            "not-stored-cookie",
            "not-stored-authorization",
            "stored", // and validated before every use
            "not-stored-private",
            "not-stored-no-store",
        ],
        [
            "stored",
            "stored",
            "stored",
            "not-stored-authorization",
            "not-stored-stale",
            "not-stored-private",
            "not-stored-no-store",
        ],
        [
            "stored",
            "stored",
            "stored",
            "not-stored-authorization",
            "not-stored-no-cache",
            "not-stored-private",
            "not-stored-no-store",
        ],
    ];
    for (lifetime, words) in LIFETIMES.iter().zip(RFC) {
        for (it, word) in TRAITS.iter().zip(words) {
            for policy in ["rfc", "varnish"] {
                let change = |parameters: &mut Parameters| parameters.http_policy = policy.to_owned();
                run_with(change, lifetime.vcl, async |world| {
                    world.origin(serve_each(counting(format!("{}{}", lifetime.response, it.response))));
                    let what = format!("{policy} {:?} {:?} {it:?}", lifetime.vcl, lifetime.response);
                    world.client().get("/", it.request).await;
                    let other = world.client().get("/", &it.request.replace("alice", "bob")).await;
                    let must_validate = it.response.contains("no-cache");
                    let is_shared = match policy {
                        "rfc" => word == "stored" && !must_validate,
                        _ => it.request.is_empty() && it.response.is_empty(),
                    };
                    assert_eq!(number(&other), if is_shared { "1" } else { "2" }, "{what}: {}", world.story());
                    if policy == "rfc" {
                        assert_eq!(reasons(&world)[0], word, "{what}");
                        let is_marked = world.count(Main::CacheHitmiss) == 1;
                        assert_eq!(is_marked, word != "stored", "{what}: {}", world.story());
                    }
                });
            }
        }
    }
}

impl std::fmt::Debug for Trait {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?} {:?}", self.request, self.response)
    }
}

/// Sends a request as alice with these header lines, then as bob without. True if bob gets alice's
/// response.
fn is_shared(vcl: &str, request: &'static str, response: &'static str) -> bool {
    let shared = Rc::new(Cell::new(false));
    let result = Rc::clone(&shared);
    run_with(rfc, vcl, async move |world| {
        world.origin(serve_each(counting(response)));
        world.client().get("/", request).await;
        sleep(Duration::from_secs(1)).await;
        result.set(number(&world.client().get("/", "").await) == "1");
    });
    shared.get()
}

#[test]
fn every_way_in_which_vcl_gives_a_lifetime_is_held_to_the_rule() {
    let ways = [
        "sub vcl_backend_response { set beresp.ttl = 2m; return (deliver); }",
        "sub vcl_backend_response { set beresp.grace = 1h; }",
        "sub vcl_backend_response { set beresp.ttl = 0s; set beresp.grace = 1h; }",
        "sub vcl_backend_response { set beresp.ttl = 2m; set beresp.grace = 1h; set beresp.keep = 1d; set beresp.do_stream = false; }",
        "sub vcl_backend_response { set beresp.ttl = 2m; set beresp.do_esi = true; set beresp.do_gzip = true; }",
    ];
    let headers = "ETag: \"a\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
    for vcl in ways {
        for it in &TRAITS[1..4] {
            let response = Box::leak(format!("{headers}{}", it.response).into_boxed_str());
            assert!(!is_shared(vcl, it.request, response), "{vcl} {it:?}");
        }
        assert!(is_shared(vcl, "", headers), "{vcl}");
    }
}

#[test]
fn one_word_of_vcl_takes_the_responsibility_for_each_of_them() {
    let orders = [
        "sub vcl_backend_response { set beresp.uncacheable = false; set beresp.ttl = 2m; }",
        "sub vcl_backend_response { set beresp.ttl = 2m; set beresp.uncacheable = false; }",
    ];
    for vcl in orders {
        for it in &TRAITS {
            assert!(is_shared(vcl, it.request, it.response), "{vcl} {it:?}");
        }
    }
    let taken_back = "sub vcl_backend_response { set beresp.uncacheable = false; set beresp.ttl = 2m;
        set beresp.uncacheable = true; }";
    assert!(!is_shared(taken_back, "", ""));
}

#[test]
fn cookies_that_vcl_removes_in_time_do_not_count() {
    let two_minutes = |more: &str| format!("{more} {TWO_MINUTES}");
    let recv = two_minutes("sub vcl_recv { unset req.http.Cookie; unset req.http.Authorization; }");
    let fetch = two_minutes("sub vcl_backend_fetch { unset bereq.http.Cookie; unset bereq.http.Authorization; }");
    let empty = two_minutes("sub vcl_recv { set req.http.Cookie = \"\"; }");
    assert!(is_shared(&recv, COOKIE, "") && is_shared(&fetch, COOKIE, "") && is_shared(&empty, COOKIE, ""));
    assert!(is_shared(&recv, LOGIN, "") && is_shared(&fetch, LOGIN, ""));
    let set = "Set-Cookie: sid=alice\r\n";
    assert!(is_shared("sub vcl_backend_response { unset beresp.http.Set-Cookie; set beresp.ttl = 2m; }", "", set));
    // The origin has received it, and has answered it: neither can be undone afterwards.
    let late =
        "sub vcl_backend_response { unset bereq.http.Cookie; unset bereq.http.Authorization; set beresp.ttl = 2m; }";
    assert!(!is_shared(late, COOKIE, "") && !is_shared(late, LOGIN, ""));
    for control in ["private", "no-store", "no-cache"] {
        let vcl = "sub vcl_backend_response { unset beresp.http.Cache-Control; set beresp.ttl = 2m; }";
        let headers = Box::leak(format!("Cache-Control: {control}\r\n").into_boxed_str());
        assert!(!is_shared(vcl, "", headers), "{control}");
    }
    let added = "sub vcl_backend_response { set beresp.http.Set-Cookie = \"sid=\" + bereq.xid; set beresp.ttl = 2m; }";
    assert!(!is_shared(added, "", ""));
    let for_browsers = "sub vcl_backend_response { set beresp.ttl = 2m; set beresp.http.Cache-Control = \"private\"; }";
    assert!(is_shared(for_browsers, "", ""), "what VCL tells browsers is not what the origin said");
}

#[test]
fn targeted_field_does_not_hide_cache_control_from_a_vcl_lifetime() {
    for control in ["private", "no-store", "no-cache"] {
        let headers = Box::leak(format!("CDN-Cache-Control: foo\r\nCache-Control: {control}\r\n").into_boxed_str());
        assert!(!is_shared(TWO_MINUTES, "", headers), "{control}");
        let own = Box::leak(format!("CDN-Cache-Control: max-age=60\r\nCache-Control: {control}\r\n").into_boxed_str());
        assert!(is_shared(TWO_MINUTES, "", own), "{control}");
    }
    assert!(!is_shared(TWO_MINUTES, "", "Cache-Control: must-understand, no-store\r\n"));
    assert!(is_shared("", "", "Cache-Control: must-understand, no-store, max-age=60\r\n"));
    for control in ["public", "max-age=0", "s-maxage=0, max-age=60", "max-age=x", "no-cache, max-age=60"] {
        let headers = Box::leak(format!("Cache-Control: {control}\r\n").into_boxed_str());
        assert!(!is_shared(TWO_MINUTES, COOKIE, headers), "{control} gives no lifetime");
    }
    assert!(!is_shared(TWO_MINUTES, COOKIE, "Expires: 0\r\n"));
}

#[test]
fn private_page_is_not_served_on_errors_of_the_origin() {
    for (it, is_ready) in TRAITS.iter().zip([true, false, false, false]) {
        run_with(rfc, "", async |world| {
            let asked = Rc::new(Cell::new(0));
            let headers = it.response;
            world.origin(serve_each(move |_| {
                asked.set(asked.get() + 1);
                if asked.get() > 1 {
                    return b"garbage\r\n\r\n".to_vec();
                }
                format!("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n{headers}Content-Length: 5\r\n\r\nalice").into_bytes()
            }));
            world.client().get("/", it.request).await;
            let bob = world.client().get("/", "").await;
            assert_eq!(bob.status(), if is_ready { 200 } else { 503 }, "{it:?}: {}", bob.text());
        });
    }
}

#[test]
fn concurrent_clients_get_their_own_pages() {
    run_with(rfc, TWO_MINUTES, async |world| {
        world.origin(serve_each(|request| {
            let name = request.header("cookie").unwrap_or("nobody").to_owned();
            format!("HTTP/1.1 200 OK\r\nX-Name: {name}\r\nContent-Length: 0\r\n\r\n").into_bytes()
        }));
        let ask = async |name: &str| world.client().get("/", &format!("Cookie: {name}\r\n")).await;
        let (alice, bob, eve) = tokio::join!(ask("alice"), ask("bob"), ask("eve"));
        for (response, name) in [(alice, "alice"), (bob, "bob"), (eve, "eve")] {
            assert_eq!(response.header("x-name"), Some(name), "{}", world.story());
        }
    });
}

#[test]
fn a_304_that_sets_a_cookie_ends_the_sharing() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 5s; set beresp.keep = 1h; }";
    run_with(rfc, vcl, async |world| {
        world.origin(serve_each(|request| {
            if request.header("if-none-match").is_some() {
                return b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nSet-Cookie: sid=alice\r\n\r\n".to_vec();
            }
            b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nhi".to_vec()
        }));
        world.client().get("/", "").await;
        sleep(Duration::from_secs(6)).await;
        let alice = world.client().get("/", "").await;
        assert_eq!((alice.status(), alice.header("set-cookie")), (200, Some("sid=alice")), "{}", world.story());
        let bob = world.client().get("/", "").await;
        assert_eq!((bob.header("set-cookie"), world.count(Main::CacheHit)), (None, 0), "{}", world.story());
        assert_eq!(reasons(&world)[..2], ["stored", "not-stored-set-cookie-ttl"]);
    });
}

#[test]
fn a_response_that_varies_on_cookie_is_shared_among_equal_cookies_only() {
    run_with(rfc, TWO_MINUTES, async |world| {
        world.origin(serve_each(counting("Vary: Cookie\r\n")));
        let mut numbers = Vec::new();
        for cookie in ["Cookie: a\r\n", "Cookie: b\r\n", "", "Cookie: a\r\n", ""] {
            numbers.push(number(&world.client().get("/", cookie).await).to_owned());
        }
        assert_eq!(numbers, ["1", "2", "3", "1", "3"], "{}", world.story());
    });
}

#[test]
fn fragments_for_one_client_stay_with_it() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 2m; set beresp.do_esi = true;
        if (bereq.url == \"/\") { unset beresp.http.Set-Cookie; } }
        sub vcl_backend_fetch { if (bereq.url == \"/\") { unset bereq.http.Cookie; } }";
    run_with(rfc, vcl, async |world| {
        world.origin(serve_each(|request| {
            let body = match request.target() {
                "/" => "<esi:include src=\"/corner\"/>".to_owned(),
                _ => format!("hello {}", request.header("cookie").unwrap_or("nobody")),
            };
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }));
        for name in ["alice", "bob"] {
            let page = world.client().get("/", &format!("Cookie: {name}\r\n")).await;
            assert_eq!(page.text(), format!("hello {name}"), "{}", world.story());
        }
        assert_eq!(world.count(Main::CacheHit), 1, "the page itself: {}", world.story());
    });
}

#[test]
fn slices_asked_for_with_a_cookie_are_not_stored() {
    const BYTES: usize = 200_000;
    let vcl = "sub vcl_recv { set req.slice_bytes = 64KB; } sub vcl_backend_response { set beresp.ttl = 2m; }";
    run_with(rfc, vcl, async |world| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        world.origin(serve_each(move |request| {
            let name = request.header("cookie").unwrap_or("nobody").to_owned();
            log.borrow_mut().push(name.clone());
            let span = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
            let span = span.map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap_or(BYTES).min(BYTES - 1)));
            let (first, last) = span.unwrap_or((0, BYTES - 1));
            let (line, range) = match span {
                Some(_) => ("206 Partial Content", format!("Content-Range: bytes {first}-{last}/{BYTES}\r\n")),
                None => ("200 OK", String::new()),
            };
            let body = name[..1].repeat(last - first + 1);
            let head = format!("HTTP/1.1 {line}\r\nETag: \"{name}\"\r\n{range}Content-Length: {}\r\n\r\n", body.len());
            format!("{head}{body}").into_bytes()
        }));
        for name in ["alice", "bob"] {
            let response = world.client().get("/", &format!("Cookie: {name}\r\n")).await;
            assert_eq!(response.body.len(), BYTES);
            assert!(response.body.iter().all(|&byte| byte == name.as_bytes()[0]), "{name}: {}", world.story());
        }
        assert_eq!(world.count(Main::CacheHit), 0, "{:?}", seen.borrow());
    });
}

#[test]
fn a_marker_lives_for_uncacheable_ttl_whatever_ttl_vcl_set() {
    let change = |parameters: &mut Parameters| {
        rfc(parameters);
        parameters.uncacheable_ttl = 10.0;
    };
    run_with(change, "sub vcl_backend_response { set beresp.ttl = 1d; set beresp.grace = 1d; }", async |world| {
        world.origin(serve_each(counting("")));
        world.client().get("/", COOKIE).await;
        sleep(Duration::from_secs(9)).await;
        world.client().get("/", COOKIE).await;
        world.expect_log("HitMiss 3 1.000000");
        // The first response that may be shared ends it.
        let anonymous = world.client().get("/", "").await;
        let next = world.client().get("/", "").await;
        assert_eq!(number(&anonymous), number(&next), "{}", world.story());
    });
}

#[test]
fn an_error_with_a_cookie_made_by_vcl_is_for_one_client() {
    let vcl = "sub vcl_backend_error { set beresp.http.Set-Cookie = \"id=\" + bereq.xid; set beresp.ttl = 1m; }";
    for (policy, is_kept) in [("rfc", false), ("varnish", true)] {
        let change = |parameters: &mut Parameters| parameters.http_policy = policy.to_owned();
        run_with(change, vcl, async |world| {
            world.origin(serve_each(|_| b"garbage\r\n\r\n".to_vec()));
            let alice = world.client().get("/", "").await;
            let bob = world.client().get("/", "").await;
            let is_same = alice.header("set-cookie") == bob.header("set-cookie");
            assert_eq!(is_same, is_kept, "{policy}: {}", world.story());
        });
    }
}
