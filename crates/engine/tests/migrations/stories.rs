//! One test for each construct of old VCL that operators used.

use super::{Asked, BACKEND, check_requests};

/// The requests for simple texts.
const SOME: &[Asked] = &[
    (0, "GET", "/plain", ""),
    (0, "GET", "/plain", ""),
    (0, "GET", "/cookie", ""),
    (0, "GET", "/cookie", "Cookie: a=b\r\n"),
    (0, "GET", "/gone", ""),
    (0, "GET", "/oops", ""),
    (0, "GET", "/see-other", ""),
    (0, "GET", "/moved", ""),
    (0, "GET", "/broken", ""),
    (0, "GET", "/aged", ""),
    (0, "GET", "/short", ""),
    (7, "GET", "/short", ""),
    (0, "POST", "/plain", "Content-Length: 0\r\n"),
    (0, "PURGE", "/plain", ""),
    (0, "GET", "/plain", ""),
    (0, "HEAD", "/plain", ""),
    (200, "GET", "/plain", ""),
];

const STORIES: &[(&str, &str)] = &[
    (
        "3.0 purge in hit and miss",
        "sub vcl_recv { if (req.request == \"PURGE\") { return (lookup); } } sub vcl_hit { if (req.request == \"PURGE\") { purge; error 200 \"Purged\"; } } sub vcl_miss { if (req.request == \"PURGE\") { purge; error 404 \"Not here\"; } } sub vcl_fetch { set beresp.ttl = 1h; }",
    ),
    (
        "3.0 ban",
        "sub vcl_recv { if (req.request == \"PURGE\") { ban(\"req.url == \" + req.url + \" && req.http.host == \" + req.http.host); error 200 \"Banned\"; } } sub vcl_fetch { set beresp.ttl = 1h; set beresp.http.x-url = req.url; }",
    ),
    (
        "3.0 ban_url",
        "sub vcl_recv { if (req.request == \"PURGE\") { ban_url(req.url); error 200 \"Banned\"; } } sub vcl_fetch { set beresp.ttl = 1h; }",
    ),
    (
        "2.1 purge",
        "sub vcl_recv { if (req.request == \"PURGE\") { purge(\"req.url == \" req.url); error 200 \"Purged\"; } } sub vcl_fetch { set beresp.ttl = 1h; return (deliver); }",
    ),
    (
        "2.0 purge_url",
        "sub vcl_recv { if (req.request == \"PURGE\") { purge_url(req.url); error 200 \"Purged\"; } } sub vcl_fetch { set obj.ttl = 1h; deliver; }",
    ),
    (
        "2.0 purge by ttl",
        "sub vcl_recv { if (req.request == \"PURGE\") { lookup; } } sub vcl_hit { if (req.request == \"PURGE\") { set obj.ttl = 0s; error 200 \"Purged\"; } } sub vcl_miss { if (req.request == \"PURGE\") { error 404 \"No\"; } } sub vcl_fetch { set obj.ttl = 1h; deliver; }",
    ),
    (
        "3.0 grace",
        "sub vcl_recv { set req.grace = 30s; if (req.url ~ \"short\") { set req.grace = 2m; } } sub vcl_fetch { set beresp.grace = 1h; }",
    ),
    (
        "3.0 hit_for_pass",
        "sub vcl_fetch { if (beresp.http.Set-Cookie || beresp.status >= 500) { set beresp.ttl = 30s; return (hit_for_pass); } }",
    ),
    (
        "2.1 pass in fetch",
        "sub vcl_fetch { if (beresp.http.Set-Cookie) { return (pass); } set beresp.ttl = 5s; return (deliver); }",
    ),
    (
        "3.0 error in fetch",
        "sub vcl_fetch { if (beresp.status == 404) { error 404 \"Gone away\"; } if (beresp.status >= 500) { error 503 beresp.response; } }",
    ),
    (
        "3.0 restart in fetch",
        "sub vcl_recv { if (req.restarts > 0) { set req.http.X-Try = req.restarts; } } sub vcl_fetch { if (beresp.status >= 500 && req.restarts < 2) { return (restart); } }",
    ),
    (
        "3.0 restart in deliver",
        "sub vcl_deliver { if (resp.status == 404 && req.restarts == 0) { set req.url = \"/plain\"; return (restart); } set resp.http.X-R = req.restarts; }",
    ),
    (
        "3.0 restart in error",
        "sub vcl_error { if (obj.status == 503 && req.restarts < 2) { return (restart); } synthetic \"sorry: \" + obj.response; return (deliver); } sub vcl_fetch { if (beresp.status == 500) { error 503 \"five\"; } }",
    ),
    (
        "3.0 error page",
        "sub vcl_recv { if (req.url == \"/gone\") { error 701 \"/there\"; } } sub vcl_error { if (obj.status == 701) { set obj.status = 301; set obj.response = \"Moved\"; set obj.http.Location = \"http://x\" + req.url; set obj.http.X-Was = obj.response; return (deliver); } }",
    ),
    (
        "2.0 error page",
        "sub vcl_recv { if (req.url == \"/gone\") { error 404 \"Nothing\"; } } sub vcl_error { set obj.http.Content-Type = \"text/plain\"; synthetic {\"status \"} obj.status \" \" obj.response \" of \" req.url; deliver; }",
    ),
    (
        "3.0 headers of the object in deliver",
        "sub vcl_fetch { set beresp.http.X-Age = \"1\"; unset beresp.http.Server; } sub vcl_deliver { set resp.http.X-Hits = obj.hits; if (resp.http.X-Age) { unset resp.http.X-Powered-By; } }",
    ),
    (
        "3.0 the last use",
        "sub vcl_hit { if (obj.ttl < 100s) { set req.http.X-Low = \"yes\"; } } sub vcl_deliver { set resp.http.X-Low = req.http.X-Low; }",
    ),
    ("3.0 pass of a hit", "sub vcl_hit { if (req.http.Cookie) { return (pass); } }"),
    (
        "2.0 no lookup",
        "sub vcl_recv { if (req.http.Cookie) { pass; } if (req.request == \"POST\") { pipe; } lookup; } sub vcl_fetch { if (obj.http.Set-Cookie) { pass; } set obj.ttl = 10s; insert; }",
    ),
    (
        "3.0 status and response",
        "sub vcl_fetch { if (beresp.status == 404) { set beresp.status = 200; set beresp.response = \"Fine\"; } } sub vcl_deliver { set resp.http.X-S = resp.status + \" \" + resp.response; }",
    ),
    (
        "3.0 uncacheable by ttl",
        "sub vcl_fetch { if (beresp.status != 200) { set beresp.ttl = 0s; } else { set beresp.ttl = 2m; } return (deliver); }",
    ),
    (
        "3.0 hash",
        "sub vcl_hash { hash_data(req.url); if (req.http.Cookie) { hash_data(req.http.Cookie); } return (hash); } sub vcl_recv { if (req.request == \"GET\") { return (lookup); } }",
    ),
    ("2.1 hash", "sub vcl_hash { set req.hash += req.url; set req.hash += req.http.host; return (hash); }"),
    ("3.0 always miss", "sub vcl_recv { if (req.http.Cookie) { set req.hash_always_miss = true; return (lookup); } }"),
    (
        "3.0 bereq",
        "sub vcl_miss { set bereq.http.X-A = req.url; unset bereq.http.User-Agent; } sub vcl_pass { set bereq.http.X-P = \"1\"; set bereq.url = \"/p\" + bereq.url; }",
    ),
    (
        "3.0 request",
        "sub vcl_miss { if (bereq.request == \"GET\") { set bereq.http.X-M = bereq.request + bereq.proto; } }",
    ),
    (
        "3.0 server",
        "sub vcl_recv { set req.http.X-S = server.ip + \" \" + server.port + \" \" + client.ip + \" \" + server.identity; }",
    ),
    ("3.0 xid", "sub vcl_recv { if (req.xid) { set req.http.X-X = \"has\"; } set req.http.X-N = now - now; }"),
    (
        "3.0 log",
        "import std; sub vcl_recv { std.log(\"a\" + req.url); std.syslog(180, \"b\"); set req.http.X-T = std.tolower(\"ABC\") + std.toupper(req.url) + std.integer(\"12\", 0) + std.duration(\"3s\", 1s); }",
    ),
    (
        "3.0 std.random and collect",
        "import std; sub vcl_recv { std.collect(req.http.Accept); if (std.random(1, 2) > 0.5) { set req.http.X-R = \"r\"; } }",
    ),
    ("3.0 saint mode", "sub vcl_fetch { if (beresp.status == 500) { set beresp.saintmode = 10s; return (restart); } }"),
    (
        "3.0 lookup of all",
        "sub vcl_recv { unset req.http.Cookie; if (req.request != \"GET\" && req.request != \"HEAD\") { return (pass); } return (lookup); } sub vcl_fetch { unset beresp.http.Set-Cookie; return (deliver); }",
    ),
    ("2.1 esi and gzip", "sub vcl_fetch { if (req.url == \"/esi\") { esi; } set beresp.ttl = 5s; }"),
    (
        "3.0 do_gzip",
        "sub vcl_fetch { if (req.url ~ \"plain\") { set beresp.do_gzip = true; } set beresp.do_stream = true; }",
    ),
    ("3.0 keep", "sub vcl_fetch { set beresp.keep = 2h; set beresp.ttl = 3s; }"),
    (
        "3.0 can_gzip and vary",
        "sub vcl_recv { if (req.can_gzip) { set req.http.X-G = \"g\"; } set req.hash_ignore_busy = true; }",
    ),
    (
        "3.0 pipe",
        "sub vcl_recv { if (req.url ~ \"^/plain\" && req.http.Cookie) { return (pipe); } } sub vcl_pipe { set bereq.http.Connection = \"close\"; return (pipe); }",
    ),
    (
        "3.0 regsub",
        "sub vcl_recv { set req.url = regsuball(req.url, \"a\", \"a\"); set req.http.X-U = regsub(req.url, \"^/(.)(.*)$\", \"\\2\\1\"); if (req.url !~ \"(?i)^/PLAIN\") { set req.http.X-N = \"1\"; } }",
    ),
    (
        "3.0 backends by host",
        "backend b2 { .host = \"10.0.0.1\"; .port = \"80\"; .connect_timeout = 1s; .first_byte_timeout = 5s; .between_bytes_timeout = 2s; .max_connections = 100; } sub vcl_recv { if (req.http.host ~ \"example\") { set req.backend = b2; } else { set req.backend = default; } if (!req.backend.healthy) { set req.grace = 1h; } }",
    ),
    (
        "3.0 error without a text",
        "sub vcl_recv { if (req.request == \"PURGE\") { error 405; } if (req.url == \"/gone\") { error 999; } }",
    ),
    ("2.1 error in hit", "sub vcl_hit { if (req.url == \"/plain\") { error 410 \"hit\"; } }"),
    ("3.0 error in pass and pipe", "sub vcl_pass { if (req.request == \"POST\") { error 413 \"Too much\"; } }"),
    (
        "3.0 if else chains",
        "sub vcl_recv { if (req.url == \"/a\") { set req.http.A = \"1\"; } elsif (req.url == \"/plain\") { set req.http.A = \"2\"; } else if (req.url == \"/b\") { set req.http.A = \"3\"; } elseif (req.url == \"/c\") { set req.http.A = \"4\"; } else { set req.http.A = \"5\"; } }",
    ),
    (
        "2.1 regsub and concatenation",
        "sub vcl_recv { set req.http.X = regsub(req.url, \"p\", \"q\") \"-\" req.http.host \"%20\"; } sub vcl_fetch { set beresp.http.X-H = beresp.http.Server \"/\" req.url; }",
    ),
    (
        "2.0 every status lives",
        "sub vcl_fetch { set obj.http.X-C = \"c\"; if (!obj.cacheable) { set obj.http.X-C = \"n\"; set obj.ttl = 7s; } deliver; }",
    ),
    (
        "2.1 every status lives",
        "sub vcl_fetch { if (beresp.status == 500) { set beresp.ttl = 9s; return (deliver); } if (!beresp.cacheable) { return (pass); } return (deliver); }",
    ),
    (
        "2.1 grace",
        "sub vcl_recv { set req.grace = 1m; } sub vcl_fetch { set beresp.grace = 10m; if (beresp.ttl < 10s) { set beresp.ttl = 3s; } return (deliver); }",
    ),
    (
        "2.0 a backend by url",
        "backend b2 { .host = \"10.0.0.1\"; .port = \"80\"; } sub vcl_recv { set req.backend = default; if (req.url ~ \"cookie\") { set req.backend = b2; pass; } } sub vcl_fetch { if (!obj.cacheable) { pass; } deliver; }",
    ),
    (
        "2.0 restart in deliver",
        "sub vcl_deliver { if (resp.status == 500 && req.restarts == 0) { restart; } set resp.http.X-R = req.restarts; deliver; } sub vcl_fetch { deliver; }",
    ),
    (
        "2.1 headers unset",
        "sub vcl_recv { remove req.http.Cookie; unset req.http.X-Forwarded-For; set req.http.X-Forwarded-For = client.ip; } sub vcl_fetch { remove beresp.http.Set-Cookie; } sub vcl_deliver { remove resp.http.X-Varnish; remove resp.http.Via; }",
    ),
    (
        "3.0 forwarded",
        "sub vcl_recv { if (req.restarts == 0) { if (req.http.x-forwarded-for) { set req.http.X-Forwarded-For = req.http.X-Forwarded-For + \", \" + client.ip; } else { set req.http.X-Forwarded-For = client.ip; } } return (lookup); }",
    ),
    (
        "3.0 error with a body of the request",
        "sub vcl_recv { if (req.request == \"POST\") { error 403 \"no \" + req.request; } } sub vcl_error { set obj.http.X-U = req.url; set obj.http.Retry-After = \"7\"; synthetic {\"<p>\"} + obj.http.X-U + {\"</p>\"}; return (deliver); }",
    ),
    (
        "3.0 fetch error is 503",
        "sub vcl_error { if (obj.status == 503) { set obj.http.X-E = \"e\"; set obj.status = 502; synthetic \"bad gateway\"; return (deliver); } }",
    ),
    (
        "3.0 the same subroutine on both sides",
        "sub mark { set req.http.X-M = req.http.X-M + \"m\"; } sub vcl_recv { call mark; } sub vcl_fetch { call mark; set beresp.http.X-M = req.http.X-M; } sub vcl_deliver { call mark; set resp.http.X-M2 = req.http.X-M; }",
    ),
    (
        "3.0 acl",
        "acl trusted { \"192.0.2.0\"/24; ! \"192.0.2.99\"; } sub vcl_recv { if (req.request == \"PURGE\" && client.ip !~ trusted) { error 405; } if (client.ip ~ trusted) { set req.http.X-T = \"t\"; } }",
    ),
    (
        "3.0 two pieces of one subroutine",
        "sub vcl_recv { set req.http.X-1 = \"1\"; } sub vcl_recv { set req.http.X-2 = \"2\"; return (lookup); } sub vcl_fetch { set beresp.ttl = 1m; } sub vcl_fetch { set beresp.ttl = beresp.ttl + 1m; }",
    ),
    (
        "3.0 deliver decides by the object",
        "sub vcl_deliver { if (obj.hits > 1) { set resp.http.X-H = \"many\"; } elsif (obj.hits == 1) { set resp.http.X-H = \"one\"; } set resp.http.X-L = obj.lastuse; }",
    ),
    (
        "3.0 redirects",
        "sub vcl_recv { if (req.http.host != \"www.example.com\" && req.url == \"/moved\") { error 750 \"http://www.example.com\" + req.url; } } sub vcl_error { if (obj.status == 750) { set obj.http.Location = obj.response; set obj.status = 301; return (deliver); } }",
    ),
    (
        "3.0 mobile",
        "sub vcl_recv { unset req.http.X-D; if (req.http.User-Agent ~ \"(?i)mobile\") { set req.http.X-D = \"m\"; } } sub vcl_hash { if (req.http.X-D) { hash_data(req.http.X-D); } } sub vcl_fetch { if (req.http.X-D) { set beresp.http.X-D = req.http.X-D; } }",
    ),
    (
        "3.0 normalised encodings",
        "sub vcl_recv { if (req.http.Accept-Encoding) { if (req.url ~ \"[.](jpg|png|gz)$\") { remove req.http.Accept-Encoding; } elsif (req.http.Accept-Encoding ~ \"gzip\") { set req.http.Accept-Encoding = \"gzip\"; } else { unset req.http.Accept-Encoding; } } }",
    ),
    (
        "3.0 cookies",
        "sub vcl_recv { if (req.http.Cookie) { set req.http.Cookie = \";\" + req.http.Cookie; set req.http.Cookie = regsuball(req.http.Cookie, \"; +\", \";\"); set req.http.Cookie = regsuball(req.http.Cookie, \";(a)=\", \"; \\1=\"); set req.http.Cookie = regsuball(req.http.Cookie, \"^[; ]+|[; ]+$\", \"\"); if (req.http.Cookie == \"\") { remove req.http.Cookie; } } } sub vcl_hash { if (req.http.Cookie) { hash_data(req.http.Cookie); } }",
    ),
    ("2.1 esi", "sub vcl_fetch { if (req.url == \"/nothing\") { esi; } return (deliver); }"),
    (
        "1.x with a purge",
        "sub vcl_recv { if (req.request == \"PURGE\") { lookup; } if (req.request == \"GET\") { lookup; } pass; } sub vcl_hit { if (req.request == \"PURGE\") { set obj.ttl = 0s; error 200 \"Purged.\"; } deliver; } sub vcl_miss { if (req.request == \"PURGE\") { error 404 \"Not in cache.\"; } fetch; } sub vcl_fetch { insert; }",
    ),
];

#[test]
fn every_story_comes_out_the_same() {
    let mut differing = Vec::new();
    for (name, text) in STORIES {
        let text = format!("{BACKEND}{text}");
        let ran = std::panic::catch_unwind(|| check_requests(&text, SOME));
        if let Err(panic) = ran {
            let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            differing.push(format!("{name}\n{said}\n\n"));
        }
    }
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), STORIES.len(), differing.concat());
}
