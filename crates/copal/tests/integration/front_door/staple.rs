//! Additions to a handshake: a PROXY header that HAProxy sends, and an OCSP response that OpenSSL
//! has made and verifies.

use super::*;
use crate::daemon::{Origin, Process, eventually, ok};
use std::net::TcpStream;

#[test]
fn proxy_header_before_the_handshake_sets_the_client_address() {
    let (Some(haproxy), Some(curl)) = (needs("haproxy"), needs("curl")) else { return };
    let origin = Origin::start(|_| ok("", "hello"));
    let backend = format!("127.0.0.1:{}", origin.port);
    let door = Door::start("PROXY,https", |_, listener| {
        Daemon::start(&["-b", &backend, "-a", listener, "-p", "feature=+http2"])
    });
    let port = free_port();
    let conf = door.folder.path().join("haproxy.cfg");
    let text = format!(
        "defaults\n mode tcp\n timeout connect 300s\n timeout client 300s\n timeout server 300s\n\
         frontend f\n bind 127.0.0.1:{port}\n default_backend b\n\
         backend b\n server s 127.0.0.1:{} send-proxy-v2\n",
        door.port
    );
    std::fs::write(&conf, text).unwrap();
    let mut command = Command::new(haproxy);
    let _haproxy = Process(command.args(["-q", "-db", "-f"]).arg(conf).stdin(Stdio::null()).spawn().unwrap());
    eventually("haproxy listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    // A second address of loopback, so that the client's is not the balancer's.
    for (flag, protocol) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")] {
        let mut client = Command::new(&curl);
        client.args(["-sS", "--fail", flag, "--interface", "127.0.0.2", "--cacert"]).arg(door.authority.file());
        client.args(["--connect-to", &format!("::127.0.0.1:{port}"), &format!("https://{}/{protocol}", NAMES[0])]);
        assert_eq!(succeeds(&mut client), "hello", "{protocol}");
        let expected = format!("127.0.0.2 {protocol} https");
        eventually(&expected, || {
            let output = door.daemon.applet("ncsa", &["-d", "-F", "%h %H %{VSL:ReqStart[4]}x %U"]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.contains(&format!("{expected} /{protocol}")).then_some(())
        });
    }
    // Without the header the handshake fails.
    let mut direct = Command::new(&curl);
    direct.args(["-sS", "-m", "10", "--cacert"]).arg(door.authority.file());
    direct.args(["--connect-to", &format!("::127.0.0.1:{}", door.port), &format!("https://{}/", NAMES[0])]);
    assert!(!run(&mut direct).status.success());
    assert_eq!(origin.count(), 2);
}

/// Runs OpenSSL in a folder, without an input.
#[track_caller]
fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ocsp_response_next_to_a_certificate_is_stapled() {
    if needs("openssl").is_none() {
        return;
    }
    let origin = Origin::start(|_| ok("", "hello"));
    let door = Door::open(origin.port, &[]);
    let folder = door.folder.path();
    let connect = format!("127.0.0.1:{}", door.port);
    let status = |name: &str| {
        let trust = ["-CAfile", "authority.pem", "-verify_return_error"];
        let named = ["s_client", "-status", "-connect", connect.as_str(), "-servername", name];
        openssl(folder, &[&named[..], &trust].concat())
    };
    assert!(status(NAMES[0]).contains("OCSP response: no response sent"));
    let serial = openssl(folder, &["x509", "-noout", "-serial", "-in", "a.example.crt"]);
    let serial = serial.trim().strip_prefix("serial=").unwrap();
    std::fs::write(folder.join("index.txt"), format!("V\t40000101000000Z\t\t{serial}\tunknown\t/CN=a.example\n"))
        .unwrap();
    openssl(folder, &["ocsp", "-issuer", "authority.pem", "-cert", "a.example.crt", "-reqout", "request", "-no_nonce"]);
    let signer = ["-CA", "authority.pem", "-rsigner", "authority.pem", "-rkey", "authority.key", "-ndays", "7"];
    let files = ["ocsp", "-index", "index.txt", "-reqin", "request", "-respout", "a.example.pem.ocsp"];
    openssl(folder, &[&files[..], &signer].concat());
    door.cli(&["tls.cert.reload"]);
    let stapled = status(NAMES[0]);
    assert!(stapled.contains("OCSP Response Status: successful") && stapled.contains("Cert Status: good"), "{stapled}");
    assert!(stapled.contains(&format!("Serial Number: {serial}")), "{stapled}");
    assert!(status(NAMES[1]).contains("OCSP response: no response sent"), "it belongs to one certificate");
}
