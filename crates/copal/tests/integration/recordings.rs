//! Recordings of a real server: `copal record`, `copal replay`, and `vcl.use --compare`.

use crate::daemon::{Daemon, Origin, copal, eventually, ok};
use std::path::Path;
use std::process::{Command, Output};

/// VCL in which each user has pages of its own.
const SITE: &str = "vcl 4.1;
backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
sub vcl_recv {
    if (req.url ~ \"^/cart\") { return (pass); }
    if (req.method == \"GET\") { return (hash); }
}
sub vcl_hash { hash_data(req.url); hash_data(req.http.Cookie); return (lookup); }
sub vcl_backend_response { set beresp.ttl = 2m; return (deliver); }
";

fn page(head: &str) -> Vec<u8> {
    let url = head.split(' ').nth(1).unwrap_or("/");
    match url {
        "/missing" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        url => ok("ETag: \"1\"\r\n", &format!("this is {url}\n")),
    }
}

fn load(daemon: &Daemon, origin: &Origin, name: &str, vcl: &str) {
    let text = vcl.replace("@PORT@", &origin.port.to_string()).replace('"', "\\\"").replace('\n', "\\n");
    let (done, text) = daemon.cli(&["vcl.inline", name, &format!("\"{text}\"")]);
    assert!(done, "{text}");
}

/// Exit status and text of a program.
fn shown(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// Requests of three users, and their recording.
fn recorded(daemon: &Daemon, file: &Path) {
    for round in 0..4 {
        for user in 0..3 {
            for url in ["/", "/a", "/b?utm=1", "/cart", "/missing"] {
                let fields = format!("Cookie: session=secret{user}\r\nX-Round: {round}");
                daemon.request(&format!(
                    "GET {url} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\nConnection: close\r\n\r\n"
                ));
            }
        }
    }
    // The log has the last request a moment after its client has the response.
    eventually("all requests are recorded", || {
        let _ = std::fs::remove_file(file);
        let (_, text) = shown(&daemon.applet("record", &["-o", file.to_str().unwrap(), "--whole"]));
        text.contains("60 requests recorded").then_some(())
    });
    let bytes = std::fs::read(file).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));
}

#[test]
fn requests_of_a_server_are_recorded_and_replayed() {
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(SITE, origin.port, &["-p", "http_policy=varnish"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    recorded(&daemon, &file);
    let vcl = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text.replace("@PORT@", &origin.port.to_string())).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, same) = (vcl("old.vcl", SITE), vcl("same.vcl", &SITE.replace("; ", ";\n\t")));
    let shared = vcl("shared.vcl", &SITE.replace(" hash_data(req.http.Cookie);", ""));
    let replay = |new: &str| {
        let file = file.to_str().unwrap();
        let words = ["replay", file, "--vcl", new, "--against", &old, "-p", "http_policy=varnish"];
        shown(&Command::new(copal()).args(words).output().unwrap())
    };
    let (status, output) = replay(&same);
    assert_eq!(status, 0, "{output}");
    assert!(output.contains("60 requests recorded, 60 compared"), "{output}");
    assert!(output.contains("old VCL against the recording: 0 requests differ"), "{output}");
    let (status, output) = replay(&shared);
    assert_eq!(status, 2, "{output}");
    assert!(output.contains("limit passed: leak") && output.contains("hash_data(req.http.Cookie)"), "{output}");
}

#[test]
fn vcl_becomes_active_only_if_a_replay_passes_or_it_is_forced() {
    let origin = Origin::start(page);
    let daemon = Daemon::with_vcl(SITE, origin.port, &["-p", "http_policy=varnish"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    recorded(&daemon, &file);
    let file = file.to_str().unwrap();
    load(&daemon, &origin, "same", SITE);
    load(&daemon, &origin, "shared", &SITE.replace(" hash_data(req.http.Cookie);", ""));
    load(&daemon, &origin, "error", &SITE.replace("sub vcl_recv {", "sub vcl_recv { return (synth(500));"));
    let (done, text) = daemon.cli(&["vcl.use", "shared", "--compare", file]);
    assert!(!done && text.contains("limit passed: leak") && text.contains("VCL 'boot' stays active"), "{text}");
    let (done, text) = daemon.cli(&["vcl.use", "error", "--compare", file, "--limit", "status=1%"]);
    assert!(!done && text.contains("limit passed: status: 100.00 %"), "{text}");
    for (words, part) in [
        (&["vcl.use", "same", "--compare", "/nonexistent"][..], "No such file"),
        (&["vcl.use", "same", "--compare", "/dev/zero"], "not a file"),
        (&["vcl.use", "same", "--compare", "/etc/passwd"], "not a recording"),
        (&["vcl.use", "same", "--compare", file, "--limit", "x=1"], "nothing is called x"),
        (&["vcl.use", "same", "--compare", file, "--percent", "5"], "Unknown option --percent"),
        (&["vcl.use", "boot", "--compare", file], "VCL 'boot' is active"),
    ] {
        let (_, text) = daemon.cli(words);
        assert!(text.contains(part), "{words:?}: {text}");
    }
    assert!(daemon.cli(&["vcl.list"]).1.contains("active") && daemon.get("/cart").status == 200);
    let (done, text) = daemon.cli(&["vcl.use", "same", "--compare", file]);
    assert!(done && text.contains("0 requests differ") && text.contains("VCL 'same' now active"), "{text}");
    let (done, text) = daemon.cli(&["vcl.use", "shared", "--compare", file, "--force"]);
    assert!(done && text.contains("VCL 'shared' now active"), "{text}");
    assert!(daemon.said().contains("forced against the result of a replay"), "{}", daemon.said());
}
