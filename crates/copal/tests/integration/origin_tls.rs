//! TLS to origins: nginx with certificates made on the spot, and OpenSSL's own server. Each check
//! that can fail does, and is reported.

use crate::daemon::{Daemon, eventually, free_port, needs};
use crate::origins::{folder, start};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Files with certificates in a folder.
struct Certificates<'a> {
    folder: &'a Path,
    issuer: Issuer<'static, KeyPair>,
}

impl<'a> Certificates<'a> {
    /// An authority, as `ca.pem`.
    fn new(folder: &'a Path) -> Certificates<'a> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "Authority");
        std::fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Certificates { folder, issuer: Issuer::new(params, key) }
    }

    /// `NAME.pem` and `NAME.key`, issued for `a.example`.
    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        change(&mut params);
        self.write(name, &params.signed_by(&key, &self.issuer).unwrap().pem(), &key);
    }

    fn self_signed(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        self.write(name, &params.self_signed(&key).unwrap().pem(), &key);
    }

    fn write(&self, name: &str, certificate: &str, key: &KeyPair) {
        std::fs::write(self.folder.join(format!("{name}.pem")), certificate).unwrap();
        std::fs::write(self.folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// nginx, and Copal in front of it with a backend for each case: `/NAME` uses the backend of that
/// name.
struct Scene {
    _nginx: crate::daemon::Process,
    daemon: Daemon,
    _folder: tempfile::TempDir,
}

/// Trust anchors of the system for the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    /// The default place.
    AsItIs,
    /// `SSL_CERT_FILE` names our authority.
    Ours,
}

/// Name of a case, of its certificate, additional nginx settings, and the attributes of the
/// backend; `@` is replaced by the folder.
type Case = (&'static str, &'static str, &'static str, &'static str);

impl Scene {
    fn new(cases: &[Case], arguments: &[&str], system: System) -> Option<Scene> {
        let nginx = needs("nginx")?;
        let folder = folder();
        let at = folder.path().display().to_string();
        let certificates = Certificates::new(folder.path());
        for name in ["good", "client"] {
            certificates.issue(name, |_| {});
        }
        certificates.issue("expired", |params| params.not_after = date_time_ymd(2020, 2, 1));
        certificates.self_signed("own");
        let (mut servers, mut backends, mut choice, mut last) = (String::new(), String::new(), String::new(), 0);
        for (name, certificate, of_nginx, of_vcl) in cases {
            let port = free_port();
            last = port;
            let _ = write!(
                servers,
                "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {at}/{certificate}.pem; ssl_certificate_key {at}/{certificate}.key;\n\
                 {} location / {{ return 200 \"name=$ssl_server_name reused=$ssl_session_reused version=$ssl_protocol client=$ssl_client_verify\"; }} }}\n",
                of_nginx.replace('@', &at)
            );
            let _ = writeln!(
                backends,
                "backend {name} {{ .host = \"127.0.0.1\"; .port = \"{port}\"; .ssl = 1; {} }}",
                of_vcl.replace('@', &at)
            );
            let _ = writeln!(choice, "if (req.url ~ \"^/{name}\") {{ set req.backend_hint = {name}; }}");
        }
        let conf = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}}\n\
             http {{ access_log {at}/access.log; ssl_session_cache shared:s:1m; ssl_protocols TLSv1.2 TLSv1.3;\n\
             client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;\n\
             {servers} }}\n"
        );
        std::fs::write(folder.path().join("nginx.conf"), conf).unwrap();
        let nginx = start(Command::new(nginx).args(["-c", &format!("{at}/nginx.conf"), "-p", &at]), last);
        let pipe = "if (req.url ~ \"piped$\") { return (pipe); }";
        let vcl = format!("vcl 4.1;\n{backends}\nsub vcl_recv {{ {choice} {pipe} return (pass); }}");
        let path = folder.path().join("test.vcl");
        std::fs::write(&path, vcl).unwrap();
        let all = [&["-f", path.to_str().unwrap()], arguments].concat();
        let daemon = Daemon::start_with(&all, |command| {
            if system == System::Ours {
                command.env("SSL_CERT_FILE", folder.path().join("ca.pem"));
            }
        });
        Some(Scene { _nginx: nginx, daemon, _folder: folder })
    }

    /// The body of an answer.
    fn text(&self, path: &str) -> String {
        let answer = self.daemon.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", self.log());
        answer.text()
    }

    /// Waits until a counter, which is published at intervals, has this value.
    fn counts(&self, name: &str, value: u64) {
        eventually(&format!("{name} is {value}"), || (self.daemon.counter(name) == value).then_some(()));
    }

    fn log(&self) -> String {
        let log = self.daemon.applet("log", &["-d", "-g", "raw", "-i", "FetchError,BackendSSL,Backend_health"]);
        String::from_utf8_lossy(&log.stdout).into_owned()
    }
}

#[test]
fn failed_tls_check_of_an_origin_gives_503_and_is_logged() {
    let cases: &[Case] = &[
        ("good", "good", "", ".ssl_ca = \"@/ca.pem\"; .ssl_name = \"a.example\";"),
        ("expired", "expired", "", ".ssl_ca = \"@/ca.pem\";"),
        ("own", "own", "", ".ssl_ca = \"@/ca.pem\";"),
        ("stranger", "good", "", ".ssl_ca = \"@/own.pem\";"),
        ("misnamed", "good", "", ".ssl_ca = \"@/ca.pem\"; .ssl_name = \"b.example\";"),
        (
            "pinned",
            "good",
            "",
            ".ssl_noverify = 1; .ssl_pin = \"sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\";",
        ),
        ("old", "good", "ssl_protocols TLSv1.2;", ".ssl_ca = \"@/ca.pem\"; .ssl_min_version = \"1.3\";"),
        (
            "wanting",
            "good",
            "ssl_verify_client on; ssl_client_certificate @/ca.pem; ssl_protocols TLSv1.2;",
            ".ssl_ca = \"@/ca.pem\";",
        ),
        ("anybody", "expired", "", ".ssl_noverify = 1;"),
    ];
    let Some(scene) = Scene::new(cases, &[], System::AsItIs) else { return };
    assert!(scene.text("/good").starts_with("name=a.example "));
    assert!(scene.text("/anybody").starts_with("name= "));
    for (name, words) in [
        ("expired", "Server verification failed: certificate has expired (it was valid until"),
        ("own", "Server verification failed: self-signed certificate"),
        ("stranger", "Server verification failed: unknown issuer (CN=Authority"),
        ("misnamed", "Server verification failed: certificate is not for b.example, but for a.example"),
        ("pinned", "Server verification failed: another public key than .ssl_pin says (it has sha256/"),
        ("old", "it speaks neither TLS 1.2 nor 1.3, or not the one demanded"),
    ] {
        assert_eq!(scene.daemon.get(&format!("/{name}")).status, 503, "{name}");
        let log = scene.log();
        let of = |tag: &str, start: &str| {
            log.lines().any(|line| line.contains(tag) && line.contains(start) && line.contains(words))
        };
        assert!(of("FetchError", &format!("backend {name}: TLS: ")) && of("BackendSSL", "failed: "), "{name}: {log}");
    }
    // nginx completes the handshake without the certificate that it requires, and answers with an
    // error in HTTP.
    assert_eq!(scene.daemon.get("/wanting").status, 400);
    scene.counts("MAIN.backend_tls_failed", 6);
    scene.counts("VBE.boot.expired.fail", 1);
    scene.counts("VBE.boot.good.fail", 0);
}

#[test]
fn sessions_are_resumed_connections_kept_and_our_certificate_is_shown() {
    let cases: &[Case] = &[
        ("kept", "good", "", ".ssl_ca = \"@/ca.pem\"; .ssl_name = \"a.example\";"),
        ("fresh", "good", "keepalive_timeout 0;", ".ssl_ca = \"@/ca.pem\"; .host_header = \"www.example:8443\";"),
        ("older", "good", "keepalive_timeout 0; ssl_protocols TLSv1.2;", ".ssl_ca = \"@/ca.pem\"; .ssl_nosni = 1;"),
        (
            "mutual",
            "good",
            "ssl_verify_client on; ssl_client_certificate @/ca.pem;",
            ".ssl_ca = \"@/ca.pem\"; .ssl_cert = \"@/client.pem\"; .ssl_key = \"@/client.key\";",
        ),
    ];
    let Some(scene) = Scene::new(cases, &[], System::AsItIs) else { return };
    assert_eq!(scene.text("/kept"), "name=a.example reused=. version=TLSv1.3 client=NONE");
    // Idle connections belong to an event loop, and a client's connection to one as well.
    let ask = |how: &str| format!("GET /kept HTTP/1.1\r\nHost: example.com\r\nConnection: {how}\r\n\r\n");
    let both = scene.daemon.request(&(ask("keep-alive") + &ask("close")));
    assert_eq!(both.status, 200);
    eventually("a connection is used again", || (scene.daemon.counter("MAIN.backend_reuse") > 0).then_some(()));
    assert_eq!(scene.text("/fresh"), "name=www.example reused=. version=TLSv1.3 client=NONE");
    assert_eq!(scene.text("/fresh"), "name=www.example reused=r version=TLSv1.3 client=NONE");
    assert_eq!(scene.text("/older"), "name= reused=. version=TLSv1.2 client=NONE");
    assert_eq!(scene.text("/older"), "name= reused=r version=TLSv1.2 client=NONE");
    assert_eq!(scene.text("/mutual"), "name= reused=. version=TLSv1.3 client=SUCCESS");
    assert!(scene.text("/kept/piped").starts_with("name=a.example "));
    let log = scene.log();
    assert!(log.contains("TLSv1.3 TLS_AES_256_GCM_SHA384 www.example http/1.1 resumed"), "{log}");
    assert!(log.contains("TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 - http/1.1 full"), "{log}");
}

#[test]
fn the_authorities_of_the_system_are_those_of_ssl_cert_file_and_the_policy_decides_about_the_name() {
    let cases: &[Case] = &[("unnamed", "good", "", ""), ("named", "good", "", ".ssl_name = \"a.example\";")];
    let statuses = |arguments: &[&str], system: System| {
        let scene = Scene::new(cases, arguments, system)?;
        Some([scene.daemon.get("/unnamed").status, scene.daemon.get("/named").status])
    };
    let Some(of_strangers) = statuses(&[], System::AsItIs) else { return };
    assert_eq!(of_strangers, [503, 503]);
    assert_eq!(statuses(&[], System::Ours), Some([200, 200]));
    assert_eq!(statuses(&["-p", "http_policy=rfc"], System::Ours), Some([503, 200]));
}

#[test]
fn probes_use_tls_and_report_failures() {
    let cases: &[Case] = &[
        (
            "well",
            "good",
            "",
            ".ssl_ca = \"@/ca.pem\"; .probe = { .interval = 1s; .initial = 0; .window = 2; .threshold = 1; }",
        ),
        ("ill", "expired", "", ".ssl_ca = \"@/ca.pem\"; .probe = { .interval = 1s; }"),
    ];
    let Some(scene) = Scene::new(cases, &[], System::AsItIs) else { return };
    eventually("both were probed", || {
        let log = scene.log();
        let is_well = log.contains("well Went healthy") && log.contains("\"HTTP/1.1 200 OK\"");
        let is_ill = log.contains("\"TLS: Server verification failed: certificate has expired");
        (is_well && is_ill).then_some(())
    });
}

/// An origin of a few lines: `serve` handles each connection.
fn origin(serve: impl Fn(std::net::TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    port
}

#[test]
fn an_origin_without_tls_or_one_that_is_silent_gives_503_within_connect_timeout() {
    let plain = origin(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        let _ = stream.read(&mut [0; 4096]);
    });
    let silent = origin(std::mem::forget);
    let closing = origin(drop);
    let vcl = format!(
        "vcl 4.1; backend plain {{ .host = \"127.0.0.1\"; .port = \"{plain}\"; .ssl = 1; }}
         backend silent {{ .host = \"127.0.0.1\"; .port = \"{silent}\"; .ssl = 1; .connect_timeout = 0.2s; }}
         backend closing {{ .host = \"127.0.0.1\"; .port = \"{closing}\"; .ssl = 1; .ssl_noverify = 1; }}
         sub vcl_recv {{
            if (req.url ~ \"silent\") {{ set req.backend_hint = silent; }}
            if (req.url ~ \"closing\") {{ set req.backend_hint = closing; }}
         }}"
    );
    let daemon = Daemon::with_vcl(&vcl, plain, &["-p", "connect_timeout=3600"]);
    for path in ["/plain", "/silent", "/silent", "/closing"] {
        assert_eq!(daemon.get(path).status, 503, "{path}");
    }
    let log = daemon.applet("log", &["-d", "-g", "raw", "-i", "FetchError"]);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    for said in [
        "backend plain: TLS: the origin does not speak TLS on this port",
        "backend silent: TLS: the handshake took too long",
        "backend closing: TLS: ",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    assert_eq!(log.matches("took too long").count(), 2, "after silence the next one tries again: {log}");
    let why = daemon.applet("why", &["/plain"]);
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("The TLS handshake with the backend failed"), "{why}");
}
