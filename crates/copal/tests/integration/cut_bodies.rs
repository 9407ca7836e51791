//! Bodies that break off: no client takes a partial body for the whole, with any protocol's way to
//! end a body.

use crate::daemon::{Daemon, free_port, needs};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// More than the storage can hold.
const BODY_BYTES: usize = 12 << 20;

const VCL: &str = r#"vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "@PORT@"; }
sub vcl_recv { if (req.url ~ "pass") { return (pass); } }
sub vcl_backend_response {
    set beresp.ttl = 1h;
    if (bereq.url ~ "held") { set beresp.do_stream = false; }
    if (bereq.url ~ "packed") { set beresp.do_gzip = true; }
}
"#;

/// Sends a body, chunked or until it closes, that is larger than the storage. Chunked ones have no
/// end, except for targets with `/whole`.
fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => head.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    if !head.contains("/cut") && !head.contains("/whole") {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    // Does not compress well.
    let mut state = 1_u64;
    let piece: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(1 << 16)
    .collect();
    for _ in 0..BODY_BYTES >> 16 {
        let _ = stream.write_all(b"10000\r\n").and_then(|()| stream.write_all(&piece));
        let _ = stream.write_all(b"\r\n");
    }
    if head.contains("/whole") {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
}

fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    port
}

fn begun(curl: &Path, how: &[&str], url: &str) -> Child {
    let mut command = Command::new(curl);
    command.args(["--silent", "--insecure", "--output", "/dev/null"]).args(how);
    command.args(["--write-out", "%{http_code} %{size_download}", url]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// True if the client reports success, and its output.
fn ended(child: Child) -> (bool, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_body_that_breaks_off_is_an_error_for_every_reader() {
    let Some(curl) = needs("curl") else { return };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("a.pem"), made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let port = free_port();
    let conf = format!("frontend = {{ host = \"127.0.0.1\" port = \"{port}\" }}\npem-file = \"{}\"\n", path("a.pem"));
    std::fs::write(path("tls.conf"), conf).unwrap();
    let daemon = Daemon::with_vcl(VCL, origin(), &["-A", &path("tls.conf"), "-p", "feature=+http2", "-s", "malloc,8m"]);
    let plain = format!("http://127.0.0.1:{}", daemon.port);
    let encrypted = format!("https://127.0.0.1:{port}");
    let clients: [(&str, &[&str]); 6] = [
        (&plain, &["--http1.0"]),
        (&plain, &["--http1.1"]),
        (&plain, &["--http2-prior-knowledge"]),
        (&encrypted, &["--http1.0"]),
        (&encrypted, &["--http1.1"]),
        (&encrypted, &["--http2"]),
    ];
    for (number, (site, how)) in clients.into_iter().enumerate() {
        for kind in ["", "held", "packed", "pass"] {
            // The second one joins the first, or fetches for itself.
            let url = |what: &str| format!("{site}/{what}/{kind}/{number}");
            let both = [(); 2].map(|()| begun(&curl, how, &url("cut")));
            for child in both {
                let (is_content, said) = ended(child);
                assert!(!is_content, "{how:?} of {} took it for the whole: {said}", url("cut"));
            }
            let (is_content, said) = ended(begun(&curl, how, &url("whole")));
            assert!(is_content, "{how:?} of {}: {said}", url("whole"));
        }
    }
}
