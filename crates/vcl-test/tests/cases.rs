//! `copal vcl test` and `copal vcl trace` as a user runs them: files, options, output, exit status.

use std::ffi::OsString;
use std::path::PathBuf;
use surface::program::Called;
use tempfile::TempDir;
use tools::Streams;

const SHOP: &str = "vcl 4.1;

backend web { .host = \"web.example\"; }
backend images { .host = \"192.0.2.9\"; .port = \"8080\"; }

sub vcl_recv {
    if (req.url ~ \"^/cart\") {
        return (pass);
    }
    if (req.url ~ \"^/images/\") {
        set req.backend_hint = images;
        unset req.http.Cookie;
    }
}

sub vcl_backend_response {
    set beresp.ttl = 1m;
    set beresp.grace = 1h;
}

sub vcl_deliver {
    set resp.http.X-Shop = \"yes\";
}
";

/// A folder with a VCL and a file of cases.
struct Folder(TempDir);

impl Folder {
    fn new(vcl: &str, cases: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::write(folder.path("shop.vcl"), vcl).unwrap();
        std::fs::write(folder.path("shop.toml"), cases).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit status, output and messages.
    fn test(&self, options: &[&str]) -> (i32, String, String) {
        let mut args: Vec<OsString> = options.iter().map(OsString::from).collect();
        args.extend([self.path("shop.vcl").into(), self.path("shop.toml").into()]);
        run(vcl_test::test_to, &args)
    }

    fn trace(&self, options: &[&str]) -> (i32, String, String) {
        let mut args: Vec<OsString> = options.iter().map(OsString::from).collect();
        args.push(self.path("shop.vcl").into());
        run(vcl_test::trace_to, &args)
    }
}

fn run(command: fn(&[OsString], &mut Streams) -> i32, args: &[OsString]) -> (i32, String, String) {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut std::io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = command(args, &mut streams);
    (status, String::from_utf8(output).unwrap(), String::from_utf8(error).unwrap())
}

/// Asserts that all cases pass.
#[track_caller]
fn passes(vcl: &str, cases: &str) {
    let (status, output, error) = Folder::new(vcl, cases).test(&[]);
    assert_eq!(status, 0, "{output}{error}");
}

#[test]
fn handling_backend_and_storage_of_requests_are_as_expected() {
    passes(
        SHOP,
        r#"
[[case]]
name = "page is shared for a minute, then refreshed in the background"
expect = { handling = "miss", backend = "web", stored = true, ttl = "1m", grace = "1h", status = 200, fetches = 1 }
[[case.then]]
after = "30s"
expect = { handling = "hit", header.Age = ">=30", header.X-Shop = "yes", fetches = 0, stored = false }
[[case.then]]
after = "5m"
expect = { handling = "hit-grace", header.Age = ">=330", fetches = 1 }
[[case.then]]
expect = { handling = "hit", header.Age = "<5" }

[[case]]
name = "cart is never stored"
request = { url = "/cart", headers = { Cookie = "sid=1" } }
origin = { headers = { Set-Cookie = "sid=2" }, body = "x" }
expect = { handling = "pass", stored = false, reason = "pass", body = "x", header.Set-Cookie = "~^sid", bereq.header.Cookie = "sid=1" }

[[case]]
name = "images have a backend of their own and get no cookie"
request = { url = "/images/a.png", headers = { Cookie = "sid=1" }, client = "198.51.100.3" }
origins.images = { body = "image" }
origins.web = { fail = "refuse" }
expect = { backend = "images", body = "image", bereq = { url = "/images/a.png", method = "GET", header = { Cookie = false, X-Forwarded-For = "198.51.100.3" } } }

[[case]]
name = "failing origin"
origin = { fail = "close" }
expect = { status = 503, handling = "miss", reason = "origin-closed", stored = false }

[[case]]
name = "sick backend"
sick = ["web"]
expect = { status = 503, reason = "backend-sick", fetches = 0 }

[[case]]
name = "slow origin"
origin = { delay = "90s" }
expect = { status = 503 }

[[case]]
name = "stale copy while the origin is down"
expect = { handling = "miss" }
[[case.then]]
after = "10m"
origin = { fail = "timeout" }
expect = { handling = "~^hit-", status = 200 }
"#,
    );
}

#[test]
fn failed_expectation_is_shown_with_the_reason_and_the_line() {
    let cases = "[[case]]\nname = \"cart\"\nrequest = { url = \"/cart\" }\n\
        expect = { handling = \"miss\", header.X-Shop = \"no\", backend = \"images\" }\n";
    let (status, output, _) = Folder::new(SHOP, cases).test(&[]);
    assert_eq!(status, 1);
    assert!(output.starts_with("FAIL ") && output.contains("shop.toml:1: cart\n"), "{output}");
    assert!(output.contains("     request 1: GET /cart\n"), "{output}");
    assert!(
        output.contains("handling: expected miss, got pass\n") && output.contains("why: VCL said return (pass)."),
        "{output}"
    );
    assert!(output.contains("shop.vcl:8: return (pass);"), "{output}");
    assert!(output.contains("header.X-Shop: expected no, got yes\n"), "{output}");
    assert!(output.contains("shop.vcl:22: set resp.http.X-Shop = \"yes\";"), "{output}");
    assert!(output.contains("backend: expected images, got web\n"), "{output}");
    assert!(output.contains("\n1 case, 1 failed, "), "{output}");
}

#[test]
fn stored_cookie_of_one_client_is_found() {
    let broken = SHOP.replace("set beresp.ttl = 1m;", "set beresp.ttl = 1m;\n    return (deliver);");
    let cases = "[[case]]\nname = \"cookie\"\norigin = { headers = { Set-Cookie = \"sid=2\", Cache-Control = \"max-age=60\" } }\n\
        expect = { stored = false }\n";
    let (status, output, _) = Folder::new(&broken, cases).test(&["-p", "http_policy=varnish"]);
    assert_eq!(status, 1, "{output}");
    assert!(
        output.contains("stored: expected false, got true") && output.contains("why: The response was stored."),
        "{output}"
    );
    assert!(output.contains("shop.vcl:17: set beresp.ttl = 1m;"), "{output}");
    let (status, output, _) = Folder::new(SHOP, cases).test(&["-p", "http_policy=varnish"]);
    assert_eq!(status, 0, "{output}");
}

#[test]
fn tap_and_junit_report_every_case() {
    let cases = "[[case]]\nname = \"a # b\"\n[[case]]\nname = \"<c>\\u001b\"\nexpect = { status = 404 }\n";
    let folder = Folder::new(SHOP, cases);
    let junit = folder.path("junit.xml");
    let (status, output, _) = folder.test(&["--tap", "--junit", junit.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(
        output.starts_with("TAP version 13\n1..2\nok 1 - ") && output.contains(": a \\# b\nnot ok 2 - "),
        "{output}"
    );
    assert!(output.contains("\n#   status: expected 404, got 200\n"), "{output}");
    let report = std::fs::read_to_string(junit).unwrap();
    assert!(report.contains("tests=\"2\" failures=\"1\"") && report.contains("name=\"&lt;c&gt;%1b\""), "{report}");
    assert!(report.contains("<failure message=\"status: expected 404, got 200\">"), "{report}");
    assert!(!output.contains('\x1b') && !report.contains('\x1b'));
}

#[test]
fn coverage_counts_the_lines_that_ran() {
    let cases = "[[case]]\nname = \"front page\"\n";
    let folder = Folder::new(SHOP, cases);
    let (_, output, _) = folder.test(&["--coverage", "text"]);
    assert!(output.contains("shop.vcl: 5 of 8 lines (62 %); not run: 8, 11-12\n"), "{output}");
    let lcov = folder.path("lcov.info");
    folder.test(&["--coverage", "lcov", "--coverage-file", lcov.to_str().unwrap()]);
    let text = std::fs::read_to_string(lcov).unwrap();
    assert!(text.contains("\nDA:7,1\nDA:8,0\n") && text.contains("\nLF:8\nLH:5\nend_of_record\n"), "{text}");
}

#[test]
fn filter_selects_cases_by_name() {
    let cases = "[[case]]\nname = \"one\"\n[[case]]\nname = \"two\"\nexpect = { status = 1 }\n";
    let folder = Folder::new(SHOP, cases);
    let (status, output, _) = folder.test(&["--filter", "one"]);
    assert_eq!(status, 0, "{output}");
    assert!(output.contains("1 case, 0 failed"), "{output}");
    assert_eq!(folder.test(&["--filter", "three"]).0, 2);
}

#[test]
fn wrong_files_and_command_lines_are_status_2() {
    let good = "[[case]]\nname = \"a\"\n";
    for (vcl, cases, message) in [
        ("vcl 4.1; sub {", good, "Expected ID"),
        (SHOP, "[[case]]\nname = 1\n", "shop.toml: "),
        (
            SHOP,
            "[[case]]\nname = \"a\"\nexpect = { handlin = \"hit\" }\n",
            "shop.toml:1: a: nothing called handlin can be expected; did you mean handling?",
        ),
        (SHOP, "", "no cases"),
        (SHOP, "[[case]]\nname = \"a\"\nsick = [\"wob\"]\n", "no backend is called wob; did you mean web?"),
        (SHOP, "[parameters]\ndefault_tttl = 1\n[[case]]\nname = \"a\"\n", "parameter default_tttl"),
    ] {
        let (status, output, error) = Folder::new(vcl, cases).test(&[]);
        assert_eq!((status, output.as_str()), (2, ""), "{error}");
        assert!(error.contains(message), "{error}");
    }
    let folder = Folder::new(SHOP, good);
    assert_eq!(folder.test(&["--coverage", "html"]).0, 2);
    assert_eq!(folder.test(&["--coverage-file", "x"]).0, 2);
    for (command, name) in
        [(vcl_test::test_to as fn(&[OsString], &mut Streams) -> i32, "test"), (vcl_test::trace_to, "trace")]
    {
        let (status, output, _) = run(command, &["--help".into()]);
        assert!(status == 0 && output.starts_with(&format!("Usage: copal vcl {name}")), "{output}");
    }
    assert_eq!(run(vcl_test::test_to, &[folder.path("shop.vcl").into()]).0, 2);
    assert_eq!(run(vcl_test::test_to, &["/no/such.vcl".into(), "/no/such.toml".into()]).0, 2);
}

#[test]
fn cases_reach_neither_files_nor_networks() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let vcl = format!(
        "vcl 4.1; import std; backend web none;
        sub vcl_recv {{ return (synth(200, std.fileread(\"{}\"))); }}",
        secret.display()
    );
    let (status, output, error) =
        Folder::new(&vcl, "[[case]]\nname = \"a\"\nexpect = { status = 200, body = \"!~secret\" }\n").test(&[]);
    if !error.contains("VMODs can reach files") {
        assert_eq!(status, 0, "{output}{error}");
    }
}

#[test]
fn hostile_vcl_and_responses_take_bounded_time_and_memory() {
    // Restarts, a page that includes itself, bodies that grow.
    let vcl = "vcl 4.1; backend web { .host = \"192.0.2.1\"; }
        sub vcl_recv { if (req.url == \"/restart\") { return (restart); } }
        sub vcl_backend_response { set beresp.do_esi = true; set beresp.ttl = 1h; }
        sub vcl_synth { set resp.body = req.url; }";
    let page = "<esi:include src=\\\"/page\\\"/>".repeat(20);
    let cases = format!(
        "[parameters]\nesi_fragments_max = 1000\n[[case]]\nname = \"restarts\"\nrequest = {{ url = \"/restart\" }}\nexpect = {{ status = 503 }}\n\
         [[case]]\nname = \"esi\"\nrequest = {{ url = \"/page\" }}\norigin = {{ body = \"{page}\" }}\nexpect = {{ status = 200 }}\n\
         [[case]]\nname = \"large\"\norigin = {{ body = \"{}\" }}\nexpect = {{ status = 200, fetches = 1 }}\n",
        "x".repeat(1 << 20)
    );
    passes(vcl, &cases);
}

#[test]
fn each_case_starts_from_an_empty_cache() {
    let mut cases = String::new();
    for number in 0..300 {
        cases += &format!("[[case]]\nname = \"{number}\"\nexpect = {{ handling = \"miss\" }}\n");
    }
    passes(SHOP, &cases);
}

#[test]
fn parameters_and_policy_come_from_the_file() {
    let cases = |policy: &str| {
        format!(
            "[parameters]\nhttp_policy = \"{policy}\"\ndefault_ttl = 7\n[origin]\nheaders = {{ Set-Cookie = \"a=b\" }}\n\
             [[case]]\nname = \"a\"\nexpect = {{ stored = false, ttl = {} }}\n",
            if policy == "varnish" { "\"2m\"" } else { "true" }
        )
    };
    let vcl = "vcl 4.1; backend web { .host = \"192.0.2.1\"; }";
    passes(vcl, &cases("varnish"));
    passes(vcl, &cases("rfc"));
}

#[test]
fn trace_shows_statements_with_their_values() {
    let folder = Folder::new(SHOP, "");
    let (status, output, error) = folder.trace(&["--url", "/images/x.png", "-H", "Cookie: sid=1"]);
    assert_eq!(status, 0, "{error}");
    for part in [
        "\n  RECV\n",
        "    shop.vcl:7: if (req.url ~ \"^/cart\") {    # req.url = \"/images/x.png\"\n",
        "    shop.vcl:12: unset req.http.Cookie;    # req.http.Cookie = \"sid=1\"\n      unset req.http.Cookie\n",
        "    shop.vcl:22: set resp.http.X-Shop = \"yes\";    # resp.http.X-Shop is unset\n      resp.http.X-Shop = \"yes\"\n",
        "fetch 3\n",
        "  BACKEND_RESPONSE\n    shop.vcl:17: set beresp.ttl = 1m;\n",
        "    → hash\n",
    ] {
        assert!(output.contains(part), "{part}\n{output}");
    }
    assert!(!output.contains("<builtin"), "{output}");
    let (_, all, _) = folder.trace(&["--builtin"]);
    assert!(all.contains("<builtin") && all.contains("req.http.host"), "{all}");
    let vcl = "vcl 4.1; backend web { .host = \"192.0.2.1\"; }
sub vcl_recv { set req.http.Y = req.http.X; return (pass); }
sub vcl_backend_response { set beresp.http.Z = beresp.status + beresp.http.X-A; }";
    let folder = Folder::new(vcl, "");
    std::fs::write(folder.path("r.http"), "POST /cart HTTP/1.1\nHost: a\nX: \u{9b}2J\n\nbody").unwrap();
    std::fs::write(folder.path("o.http"), "HTTP/1.1 404 Not here\r\nX-A: b\r\n\r\nmissing").unwrap();
    let (request, origin) = (folder.path("r.http"), folder.path("o.http"));
    let (_, output, _) = folder.trace(&["--request", request.to_str().unwrap(), "--origin", origin.to_str().unwrap()]);
    assert!(output.contains("→ pass") && output.contains("req.http.X = \"\\u{9b}2J\""), "{output}");
    assert!(output.contains("beresp.http.Z = \"404b\"") && !output.contains('\u{9b}'), "{output}");
    assert_eq!(folder.trace(&["--request", "/no/such/file"]).0, 2);
}
