//! The rows of the table of rules, in the order of [`Rule`].

use super::row::{Level, Rule, RuleRow};

/// The table.
pub static RULES: &[RuleRow] = &[
    RuleRow {
        rule: Rule::SetCookieStored,
        id: "S1",
        level: Level::Error,
        title: "Response with Set-Cookie is stored",
        why: "The response is stored with its Set-Cookie, and every client that gets it receives the session of the first one. return \
              (deliver) in vcl_backend_response skips the built-in VCL, which would not have stored the response. Found where a way to \
              return (deliver) neither removes nor looks at beresp.http.Set-Cookie and leaves beresp.uncacheable alone.",
        hint: "unset beresp.http.Set-Cookie, set beresp.uncacheable = true, or leave the return to the built-in VCL",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (bereq.url ~ "^/news/") {
        set beresp.grace = 1h;
        return (deliver);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (bereq.url ~ "^/news/") {
        unset beresp.http.Set-Cookie;
        set beresp.grace = 1h;
        return (deliver);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::CredentialsNotJudged,
        id: "S2",
        level: Level::Error,
        title: "Lookup before Cookie and Authorization are judged",
        why: "return (hash) in vcl_recv skips the built-in VCL, which passes requests with Cookie or Authorization. The response to \
              one client is then sent to others. Found where a way to return (hash) neither looks at nor changes the two headers; \
              below a match of req.url only Cookie and Authorization of other URLs matter, so nothing is reported there.",
        hint: "pass requests with req.http.Cookie and req.http.Authorization, or remove the headers, before return (hash)",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.method == "GET") {
        return (hash);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.method == "GET" && !req.http.Cookie && !req.http.Authorization) {
        return (hash);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::PrivateStored,
        id: "S3",
        level: Level::Error,
        title: "Lifetime is forced on private responses",
        why: "The origin marks a response for one client with Cache-Control: private or no-store. A ttl that is set without a look at \
              beresp.http.Cache-Control, followed by return (deliver), stores it anyway; so does removing the header before the \
              built-in VCL sees it.",
        hint: "set beresp.ttl only if beresp.http.Cache-Control !~ \"private|no-store\", or leave the return to the built-in VCL",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 2m;
    return (deliver);
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 2m;
}
"#,
    },
    RuleRow {
        rule: Rule::ForwardedForTrusted,
        id: "S4",
        level: Level::Error,
        title: "Access is decided by a header of the client",
        why: "Any client can send X-Forwarded-For, X-Real-IP and their like. An ACL that is matched against such a header admits \
              everyone. Found where a condition compares the header with an ACL or an address and no condition before it looks at \
              client.ip or remote.ip.",
        hint: "match client.ip, or accept the header only if remote.ip is one of your proxies",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
import std;
acl office { "192.0.2.0"/24; }
sub vcl_recv {
    if (std.ip(req.http.X-Real-IP, "0.0.0.0") ~ office) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl office { "192.0.2.0"/24; }
sub vcl_recv {
    if (client.ip ~ office) {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::PurgeOpen,
        id: "S5",
        level: Level::Error,
        title: "Purge or ban without an access check",
        why: "Everyone who can reach the cache can empty it, and so put the full load on the origin. Found where a way to return \
              (purge) or ban() in vcl_recv has no condition with an ACL, an address, or a secret header.",
        hint: "check client.ip against an acl first",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        return (purge);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(403));
        }
        return (purge);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::BanInjection,
        id: "S6",
        level: Level::Error,
        title: "Header of the request becomes part of a ban expression",
        why: "A header may contain spaces and && and so add conditions to the ban, and the characters of a URL have a meaning in the \
              regular expression after ~: a ban for /a.b removes /aXb, one for / removes everything. Found where req.url follows ~, or \
              another header follows any operator.",
        hint: "compare with ==, or escape the text: regsuball(req.url, \"([.?*+()])\", \"\\\\1\")",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "BAN" && client.ip ~ purgers) {
        ban("obj.http.X-Url ~ " + req.url);
        return (synth(200));
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "BAN" && client.ip ~ purgers) {
        ban("obj.http.X-Url == " + req.url);
        return (synth(200));
    }
}
"#,
    },
    RuleRow {
        rule: Rule::ErrorsStored,
        id: "S7",
        level: Level::Warning,
        title: "Error responses are stored for long",
        why: "A ttl that is set for every status also stores the 500 and 404 of a bad minute, and replaces a good copy that grace \
              would have kept. Found where beresp.ttl is set to more than five minutes and nothing on the way looks at beresp.status \
              or the ttl of the origin.",
        hint: "set the ttl only for beresp.status < 400; for 5xx in a background fetch return (abandon)",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    set beresp.ttl = 1d;
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (beresp.status < 400) {
        set beresp.ttl = 1d;
    }
}
"#,
    },
    RuleRow {
        rule: Rule::VaryTooWide,
        id: "P1",
        level: Level::Note,
        title: "Vary or key by User-Agent or Cookie",
        why: "Nearly every client has a User-Agent or Cookie of its own, so each gets its own copy and there are hardly any hits. \
              Found in a Vary that VCL sets, and in hash_data().",
        hint: "reduce the header to a few classes in vcl_recv, and vary by a header with the class",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    set beresp.http.Vary = "User-Agent";
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.User-Agent ~ "(?i)mobile") {
        set req.http.X-Device = "mobile";
    } else {
        set req.http.X-Device = "other";
    }
}
sub vcl_backend_response {
    set beresp.http.Vary = "X-Device";
}
"#,
    },
    RuleRow {
        rule: Rule::BanNotByLurker,
        id: "P2",
        level: Level::Note,
        title: "Ban that the ban lurker cannot apply",
        why: "The ban lurker works without a request, so a ban on req.* stays in the list until the last object older than it has \
              gone, and every lookup tests it. Found where a ban expression has a field req.*.",
        hint: "store the URL in the object (set beresp.http.X-Url = bereq.url) and ban on obj.http.X-Url",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "BAN" && client.ip ~ purgers) {
        ban("req.url == " + req.url);
        return (synth(200));
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "BAN" && client.ip ~ purgers) {
        ban("obj.http.X-Url == " + req.url);
        return (synth(200));
    }
}
sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
}
"#,
    },
    RuleRow {
        rule: Rule::TtlZeroCacheable,
        id: "P3",
        level: Level::Warning,
        title: "ttl of 0 without uncacheable",
        why: "Requests for the same object wait for one another, because each hopes that the response will be stored. A ttl of 0s \
              followed by return (deliver) makes them queue behind every fetch; the marker that set beresp.uncacheable = true leaves \
              prevents this. Without the return the built-in VCL sets it.",
        hint: "set beresp.uncacheable = true as well",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (beresp.status >= 400) {
        set beresp.ttl = 0s;
        unset beresp.http.Set-Cookie;
        return (deliver);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (beresp.status >= 400) {
        set beresp.ttl = 1m;
        set beresp.uncacheable = true;
        return (deliver);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::QueryNoise,
        id: "P4",
        level: Level::Note,
        title: "Statistics cookies are removed, statistics parameters are not",
        why: "Links from campaigns and social networks have parameters such as utm_source, gclid and fbclid that the origin ignores. \
              Each value makes a key of its own. Found in a VCL that removes statistics cookies but names none of these parameters.",
        hint: "remove them from req.url in vcl_recv",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    set req.http.Cookie = regsuball(req.http.Cookie, "(^|; ?)_ga=[^;]*", "");
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    set req.http.Cookie = regsuball(req.http.Cookie, "(^|; ?)_ga=[^;]*", "");
    set req.url = regsuball(req.url, "(utm_[a-z]+|gclid|fbclid)=[^&]*&?", "");
}
"#,
    },
    RuleRow {
        rule: Rule::RegexCost,
        id: "P5",
        level: Level::Note,
        title: "Regular expression costs more than it does",
        why: "A repeated group whose content is itself repeated, such as (a+)+, takes exponential time for a text that does not match; \
              PCRE2 gives up at a limit, and the match fails. An expression that is only a text between ^ and $ is a comparison.",
        hint: "write == for a fixed text, and one repetition instead of two",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Host ~ "^example$") {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Host == "example") {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::PassForCookie,
        id: "P6",
        level: Level::Note,
        title: "Every request with a cookie is passed",
        why: "Browsers send cookies for images and styles too, so these are fetched again for each client that has one. Found where a \
              bare condition on req.http.Cookie passes and nothing before it looks at req.url or changes the header.",
        hint: "remove the cookie for static files, or name the cookies that matter",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Cookie) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Cookie ~ "(^|; ?)session=") {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::NotNormalised,
        id: "P7",
        level: Level::Note,
        title: "Vary or key by an unnormalised header",
        why: "Browsers write Accept-Language and Accept-Encoding in hundreds of forms, each of which gets a copy of its own. \
              Accept-Encoding needs no key: compression is handled without it. Found where a Vary that VCL sets or hash_data() names \
              the header and no statement sets it.",
        hint: "reduce the header to the values that the origin knows, in vcl_recv",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_hash {
    hash_data(req.http.Accept-Language);
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Accept-Language ~ "^de") {
        set req.http.Accept-Language = "de";
    } else {
        set req.http.Accept-Language = "en";
    }
}
sub vcl_hash {
    hash_data(req.http.Accept-Language);
}
"#,
    },
    RuleRow {
        rule: Rule::NeverReached,
        id: "C1",
        level: Level::Warning,
        title: "Statement is never reached",
        why: "Every way to the statement ends in a return before it, so that it never runs. Often a later file extends a subroutine \
              that has already returned.",
        hint: "move it before the return, or remove it",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    return (pass);
    set req.http.X-A = "1";
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    set req.http.X-A = "1";
    return (pass);
}
"#,
    },
    RuleRow {
        rule: Rule::Overwritten,
        id: "C2",
        level: Level::Warning,
        title: "Value is overwritten before it is used",
        why: "The second set replaces the first, and nothing in between reads the header. One of the two was meant for another header, \
              or is left over.",
        hint: "remove the first set, or extend the value: set x = x + \"...\"",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_deliver {
    set resp.http.X-A = "1";
    set resp.http.X-A = "2";
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_deliver {
    set resp.http.X-A = "1";
    set resp.http.X-B = "2";
}
"#,
    },
    RuleRow {
        rule: Rule::GroupMissing,
        id: "C3",
        level: Level::Warning,
        title: "Replacement names a group that the pattern does not have",
        why: "In regsub() and regsuball() the group \\1 is empty if the pattern has no parentheses, and $1 is the text $1. The \
              replaced text is lost.",
        hint: "put the part to keep in parentheses, and write \\1 for it",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    set req.url = regsub(req.url, "^/old/.*", "/new/\1");
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    set req.url = regsub(req.url, "^/old/(.*)", "/new/\1");
}
"#,
    },
    RuleRow {
        rule: Rule::Unused,
        id: "C4",
        level: Level::Warning,
        title: "Declaration is never used",
        why: "An acl, backend, probe or subroutine that nothing names has no effect. A misspelled use is often the cause: an ACL that \
              is never matched protects nothing.",
        hint: "use it or remove it",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl office { "192.0.2.0"/24; }
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl office { "192.0.2.0"/24; }
sub vcl_recv {
    if (client.ip ~ office) {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::HeaderTypo,
        id: "C5",
        level: Level::Warning,
        title: "Header name is nearly that of a standard header",
        why: "A header that no peer sends is never there: the condition on it is always false. Found for names that differ in one \
              letter from a well-known header and that the VCL never sets.",
        hint: "correct the name",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Authorisation) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    if (req.http.Authorization) {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::ChangedTooLate,
        id: "C6",
        level: Level::Warning,
        title: "Backend request is changed after it was sent",
        why: "In vcl_backend_response and vcl_backend_error the request has been sent. A change of bereq has an effect only if the \
              request is sent again by return (retry). Found where the VCL neither retries nor reads the value later.",
        hint: "change it in vcl_backend_fetch",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    set bereq.http.X-A = "1";
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_fetch {
    set bereq.http.X-A = "1";
}
"#,
    },
    RuleRow {
        rule: Rule::ProbeImpatient,
        id: "C7",
        level: Level::Warning,
        title: "Probe that fails at the first lost answer",
        why: "A threshold that equals the window makes the backend sick as soon as one answer is lost; a timeout longer than the \
              interval makes each probe late.",
        hint: "choose a threshold below the window, and a timeout below the interval",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
probe health { .window = 5; .threshold = 5; }
backend other { .host = "192.0.2.2"; .probe = health; }
sub vcl_recv { set req.backend_hint = other; }
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
probe health { .window = 5; .threshold = 3; }
backend other { .host = "192.0.2.2"; .probe = health; }
sub vcl_recv { set req.backend_hint = other; }
"#,
    },
    RuleRow {
        rule: Rule::SubRepeated,
        id: "C8",
        level: Level::Warning,
        title: "Subroutine is defined twice in a file",
        why: "Both parts run, in the order of the text. A reader of the second does not see that the first runs before it, or that it \
              has returned. In files that extend one another this is intended, so only one file is looked at.",
        hint: "make one subroutine of them",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    unset req.http.X-A;
}
sub vcl_recv {
    unset req.http.X-B;
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_recv {
    unset req.http.X-A;
    unset req.http.X-B;
}
"#,
    },
    RuleRow {
        rule: Rule::KeyIncomplete,
        id: "C9",
        level: Level::Warning,
        title: "Key without host or URL",
        why: "return (lookup) in vcl_hash skips the built-in VCL, which adds req.url and the host. Without the host two sites share \
              their objects; without the URL all pages are one. Found where a way to return (lookup) adds neither.",
        hint: "hash_data(req.url) and hash_data(req.http.Host), or no return",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_hash {
    hash_data(req.url);
    return (lookup);
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_hash {
    hash_data(req.url);
    hash_data(req.http.Host);
    return (lookup);
}
"#,
    },
    RuleRow {
        rule: Rule::StatusImpossible,
        id: "C10",
        level: Level::Warning,
        title: "Status is compared with a number that is not a status",
        why: "A status has at least three digits, so == with a smaller number is never true, and != always. Meant is a class \
              (beresp.status >= 500) or the whole number.",
        hint: "write the whole number, or compare with < and >=",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (beresp.status == 50) {
        return (abandon);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_backend_response {
    if (beresp.status >= 500) {
        return (abandon);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::AclContained,
        id: "C11",
        level: Level::Warning,
        title: "ACL entry is contained in another",
        why: "The address is in a network of the same ACL, so the entry changes nothing. Often the mask of one of the two is wrong.",
        hint: "remove the entry, or correct the mask",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl office { "192.0.2.0"/24; "192.0.2.7"; }
sub vcl_recv {
    if (client.ip ~ office) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
acl office { "192.0.2.0"/24; "198.51.100.7"; }
sub vcl_recv {
    if (client.ip ~ office) {
        return (pass);
    }
}
"#,
    },
    RuleRow {
        rule: Rule::AllowUnused,
        id: "A1",
        level: Level::Warning,
        title: "Suppression without effect",
        why: "The comment copal: allow(S1) suppresses findings of S1 in its line, or in the next one if it is alone in its line. It \
              has no effect if there is no such finding, if no rule has the name, or if it gives no reason.",
        hint: "remove it, or correct the name and add the reason",
        bad: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_deliver {
    unset resp.http.Via; # copal: allow(S1) not stored
}
"#,
        good: r#"vcl 4.1;
backend web { .host = "192.0.2.1"; }
sub vcl_deliver {
    unset resp.http.Via;
}
"#,
    },
];
