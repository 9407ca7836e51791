//! Memory of a request while VCL builds text: measured on this process, which is why it is one test
//! in a binary of its own.

mod support;

use std::rc::Rc;
use support::{World, always, run_with};

/// Text memory limit of a request, and size of its initial text.
const REQUEST_BYTES: u64 = 4 << 20;
const TEXT_BYTES: usize = 1 << 20;

/// Further memory: strings, messages, state of VMODs and one result under construction are each
/// bounded by that number.
const GROWTH_BYTES_MAX: u64 = 2 * REQUEST_BYTES;

/// Peak resident memory since the last call, and present resident memory, bytes.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    let found = (field("VmHWM:"), field("VmRSS:"));
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    found
}

/// Statements that produce long results from a long text in `req.http.T` (`aaa…`), `req.http.U`
/// (`\xff…`), or `req.url` (`/?&a&a…`).
const STATEMENTS: &[&str] = &[
    r#"set req.http.R = regsuball(req.http.T, "a", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");"#,
    r#"set req.http.R = regsub(req.http.T, ".*", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");"#,
    r#"header.regsub(req, "a", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", true);"#,
    r#"header.copy(req.http.T, req.http.T); header.copy(req.http.T, req.http.T); header.copy(req.http.T, req.http.T);"#,
    r#"header.copy(req.http.T, req.http.T); std.collect(req.http.T); header.copy(req.http.T, req.http.T);"#,
    r#"set req.http.R = blob.transcode(decoding = IDENTITY, encoding = URL, encoded = req.http.U);"#,
    r#"set req.http.R = blob.encode(HEX, blob = blob.decode(IDENTITY, encoded = req.http.T));"#,
    r#"set req.http.R = blob.decode(IDENTITY, encoded = req.http.T + req.http.T);"#,
    r#"set req.http.R = digest.base64(req.http.T + req.http.T) + digest.base64_hex(req.http.T);"#,
    r#"set req.url = std.querysort(req.url);"#,
    r#"set req.url = querystring.sort(req.url);"#,
    r#"set req.url = querystring.filter_except(req.url, regsuball(req.http.T, "a", querystring.filtersep()));"#,
    r#"cookie.parse(regsuball(req.http.T, "aaaaa", "a=a;"));"#,
    r#"cookie.parse("a=1"); cookie.keep(regsuball(req.http.T, "aa", "a,"));"#,
    r#"if (re.match_dyn("((((((((((.*))))))))))", req.http.T)) { set req.http.R = re.backref(0, ""); }"#,
    r#"if (re.match_dyn(req.http.T, "a")) { set req.http.R = "x"; }"#,
    r#"set req.http.R = str.token_intersect(regsuball(req.http.T, "aa", "a,"), "b", ",");"#,
    r#"set req.http.R = std.strftime(now, regsuball(req.http.T, "aaaaaaa", "%1000Y"));"#,
    r#"set req.http.R = header.dyn(req, req.http.U);"#,
    r#"return (fail(req.http.U));"#,
    r#"std.ban(regsuball(req.http.T, "aa", "a "));"#,
    r#"std.timestamp(req.http.U);"#,
    r#"set req.http.R = std.toupper(req.http.T) + std.tolower(req.http.T) + str.reverse(req.http.T) + req.http.T;"#,
    r#"set req.http.A = req.http.T; set req.http.B = req.http.T; set req.http.C = req.http.T; set req.http.D = req.http.T;"#,
];

#[test]
fn text_is_bounded_while_it_is_made() {
    run_with(
        |parameters| (parameters.request_memory_max, parameters.max_restarts) = (REQUEST_BYTES, 10),
        "",
        async |world: Rc<World>| {
            world.origin(always("", ""));
            let ask = async |vcl: &str| {
                world.load("test", vcl);
                let mut client = world.client();
                client.get("/", "").await.status()
            };
            let piece = "a".repeat(1 << 10);
            let doubled = "set req.http.T = req.http.T + req.http.T;".repeat(4);
            let begin = format!("set req.http.T = \"{piece}\"; {doubled}");
            for (index, statement) in STATEMENTS.iter().enumerate() {
                // Restarts, so that the strings of each doubling are gone before the next.
                let vcl = format!(
                "vcl 4.1; import std; import blob; import header; import cookie; import digest; import querystring; import re; import str;
                 backend default {{ .host = \"10.0.0.1\"; .port = \"80\"; }}
                 sub vcl_recv {{
                    if (req.restarts == 0) {{ {begin} return (restart); }}
                    if (req.restarts == 1) {{ set req.http.T = regsuball(req.http.T, \"a{{1024}}\", {{\"{long}\"}}); return (restart); }}
                    if (req.restarts == 2) {{
                        set req.url = \"/?\" + regsuball(req.http.T, \"aaaa\", \"&a\");
                        return (restart);
                    }}
                    if (req.restarts == 3) {{
                        set req.http.U = blob.transcode(decoding = URL, encoded = regsuball(req.http.T, \"aaaa\", \"%ff\"));
                        return (restart);
                    }}
                    if (req.restarts == 4) {{ std.log(\"begins {index}\"); {statement} }}
                    return (synth(200));
                 }}",
                long = "a".repeat(TEXT_BYTES / 16),
            );
                // The process's base memory for it.
                let _ = ask(&vcl).await;
                let (_, before) = resident();
                let status = ask(&vcl).await;
                let (peak, _) = resident();
                world.expect_log(&format!("VCL_Log begins {index}"));
                let growth = peak.saturating_sub(before);
                println!("{growth:>10} {status} {statement}");
                assert!(growth <= GROWTH_BYTES_MAX, "{growth} bytes by {statement}");
            }
        },
    );
}
