//! Certificates from an authority: Pebble (Let's Encrypt's for tests), or a fake one that
//! misbehaves.

use crate::daemon::{Daemon, HANG, Process, eventually, free_port};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod client;
mod failures;
mod orders;

/// The certificate of an authority's own server, with its key and its issuer, in a folder.
struct Identity {
    chain: Vec<u8>,
    key: Vec<u8>,
    authority: PathBuf,
}

impl Identity {
    fn make(folder: &Path) -> Identity {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let authority = parameters.self_signed(&authority_key).unwrap();
        let issuer = rcgen::Issuer::new(parameters, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let path = folder.join("authority.pem");
        std::fs::write(&path, authority.pem()).unwrap();
        std::fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
        Identity { chain: certificate.der().to_vec(), key: key.serialize_der(), authority: path }
    }
}

/// The options of a daemon that orders from an authority on loopback.
fn options(port: u16, identity: &Identity, state: &Path) -> Vec<String> {
    [
        "-b".to_owned(),
        "none".to_owned(),
        "-o".to_owned(),
        "acme=you@example.org".to_owned(),
        "-o".to_owned(),
        format!("acme_directory=https://localhost:{port}/dir"),
        "-o".to_owned(),
        format!("acme_ca={}", identity.authority.display()),
        "-o".to_owned(),
        format!("acme_dir={}", state.display()),
    ]
    .to_vec()
}

fn start(options: &[String], more: &[&str]) -> Daemon {
    let all: Vec<&str> = options.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Daemon::start(&all)
}

/// Entry of the only certificate in `acme.list -j`.
fn listed(daemon: &Daemon) -> serde_json::Value {
    let (_, text) = daemon.cli(&["acme.list", "-j"]);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    all[3].clone()
}

/// Waits until there is a certificate, other than the one with that serial number. Returns its own.
fn certificate_of(daemon: &Daemon, other_than: &str) -> String {
    eventually("a certificate", || {
        let row = listed(daemon);
        let serial = row["serial"].as_str()?.to_owned();
        (row["state"] == "valid" && serial != other_than).then_some(serial)
    })
}

/// Waits until an order has failed. Returns the row.
fn failure_of(daemon: &Daemon, failures: u64) -> serde_json::Value {
    eventually("a failure", || {
        let row = listed(daemon);
        (row["failures"].as_u64()? >= failures && row["state"] != "ordering").then_some(row)
    })
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// Seconds from now until the next order.
fn seconds_until_next(row: &serde_json::Value) -> f64 {
    let next = row["next"].as_str().unwrap().to_owned();
    let output = Command::new("date").args(["-d", &next, "+%s"]).output().unwrap();
    let next: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    next - std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
}
