//! Clients of many makes at one daemon: HTTP/1, HTTP/2 and HTTP/3. Missing clients are reported.
//! Next files: `front_door/clients.rs`, `front_door/conformance.rs`, `front_door/odd.rs`,
//! `front_door/slow.rs`.

use crate::daemon::{Daemon, free_port, needs};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use surface::limits::TEST_HANG_SECONDS;

mod clients;
mod conformance;
mod grpc;
mod odd;
mod protocols;
mod renewal;
mod secured;
mod slow;
mod staple;

/// The names of the two certificates.
const NAMES: [&str; 2] = ["a.example", "b.example"];

/// A daemon with a plain port, and one for TLS and QUIC with two certificates.
struct Door {
    daemon: Daemon,
    /// Port of TCP and UDP.
    port: u16,
    authority: Authority,
    folder: tempfile::TempDir,
}

impl Door {
    /// In front of an origin; the Host of a client does not change the key of an object.
    fn open(origin: u16, arguments: &[&str]) -> Door {
        let vcl = "vcl 4.1; backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
                   sub vcl_recv {
                       set req.http.host = \"a.example\";
                       # Browsers ask for it unasked.
                       if (req.url == \"/favicon.ico\") { return (synth(404)); }
                   }";
        Door::open_with(vcl, origin, arguments)
    }

    /// With this VCL, in which `@PORT@` is replaced with the origin's port.
    fn open_with(vcl: &str, origin: u16, arguments: &[&str]) -> Door {
        Door::start("https,h3", |_, listener| {
            Daemon::with_vcl(vcl, origin, &[&["-a", listener, "-p", "feature=+http2"], arguments].concat())
        })
    }

    /// With a listener for these protocols; `start` gets the folder and the argument of `-a`.
    fn start(speaks: &str, start: impl FnOnce(&Path, &str) -> Daemon) -> Door {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path());
        let files = NAMES.map(|name| authority.certify(name));
        let port = free_port();
        let daemon = start(folder.path(), &format!("tls=127.0.0.1:{port},{speaks}"));
        let door = Door { daemon, port, authority, folder };
        for (name, file) in NAMES.iter().zip(&files) {
            door.cli(&["tls.cert.load", name, file.to_str().unwrap()]);
        }
        door.cli(&["tls.cert.commit"]);
        door
    }

    /// A command that succeeds.
    #[track_caller]
    fn cli(&self, words: &[&str]) {
        let (is_good, text) = self.daemon.cli(words);
        assert!(is_good, "{words:?}: {text}");
    }

    /// URL of a path over TLS.
    fn url(&self, path: &str) -> String {
        format!("https://{}:{}{path}", NAMES[0], self.port)
    }

    /// URL of a path without TLS.
    fn clear_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.daemon.port)
    }
}

/// Issuer of the certificates.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path) -> Authority {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        std::fs::write(folder.join("authority.key"), key.serialize_pem()).unwrap();
        let authority = Authority { issuer: rcgen::Issuer::new(parameters, key), folder: folder.to_owned() };
        std::fs::write(authority.file(), certificate.pem()).unwrap();
        authority
    }

    /// Its own certificate, for clients.
    fn file(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Issues a certificate: `NAME.pem` with its key, which is returned, and `NAME.crt` without.
    fn certify(&self, name: &str) -> PathBuf {
        self.certify_in(&self.folder, name)
    }

    /// As [`Authority::certify`], in another folder.
    fn certify_in(&self, folder: &Path, name: &str) -> PathBuf {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
        let both = folder.join(format!("{name}.pem"));
        std::fs::write(&both, certificate.pem() + &key.serialize_pem()).unwrap();
        both
    }
}

/// Builds the Go program of a folder in `tests/clients`. It takes its libraries from Go's cache of
/// modules, or by the network; `None` = that can't be done here.
fn go_program(folder: &str, into: &Path) -> Option<PathBuf> {
    let program = needs("go")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(folder);
    let built = into.join(folder);
    let mut build = Command::new("timeout");
    build
        .args(["-k", "1", &TEST_HANG_SECONDS.to_string()])
        .arg(program)
        .args(["build", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(source);
    let build = build.env("GOFLAGS", "-mod=readonly").stdin(Stdio::null()).output().unwrap();
    if !build.status.success() {
        println!("skipped: needs a Go program: {}", String::from_utf8_lossy(&build.stderr));
        return None;
    }
    Some(built)
}

/// Runs a client that ends by itself. Its outputs are files: the remaining processes of a browser
/// may hold them open for longer.
fn run(command: &mut Command) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let [out, err] = ["out", "err"].map(|name| folder.path().join(name));
    let mut limited = Command::new("timeout");
    limited
        .args(["-k", "1", &TEST_HANG_SECONDS.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    limited.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
    let status = limited.status().unwrap();
    Output { status, stdout: std::fs::read(out).unwrap(), stderr: std::fs::read(err).unwrap() }
}

/// Both outputs of a client that succeeded.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}: {text}", output.status);
    text
}
