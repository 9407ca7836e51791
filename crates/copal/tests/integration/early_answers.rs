//! Answers that precede the end of a request's body, with a real client: it gets status and body
//! every time.

use crate::daemon::{Daemon, free_port, needs};
use std::process::Command;

const VCL: &str = r#"vcl 4.1;
backend default none;
sub vcl_recv { return (synth(403)); }
sub vcl_synth { set resp.body = "refused"; return (deliver); }
"#;

/// Uploads of each size, each on a connection of its own.
const TRIES: usize = 10;

#[test]
fn curl_over_http2_gets_the_refusal_of_every_upload() {
    let Some(curl) = needs("curl") else { return };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("a.pem"), made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let port = free_port();
    let conf = format!("frontend = {{ host = \"127.0.0.1\" port = \"{port}\" }}\npem-file = \"{}\"\n", path("a.pem"));
    std::fs::write(path("tls.conf"), conf).unwrap();
    let _daemon = Daemon::with_vcl(VCL, free_port(), &["-A", &path("tls.conf"), "-p", "feature=+http2"]);
    for bytes in [1_000, 100_000, 5_000_000] {
        std::fs::write(path("upload"), vec![b'x'; bytes]).unwrap();
        for _ in 0..TRIES {
            let output = Command::new(&curl)
                .args(["--silent", "--insecure", "--http2", "--upload-file", &path("upload")])
                .args(["--write-out", " %{http_code} %{http_version}", &format!("https://127.0.0.1:{port}/")])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "refused 403 2", "{bytes} bytes");
        }
    }
}
