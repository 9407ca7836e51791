//! Renewal of a certificate while clients connect without a pause: none of them fails, and the new
//! one is served.

use super::*;
use crate::daemon::{Origin, eventually, ok};
use nix::sys::signal::Signal;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Clients at a time.
const CLIENTS: usize = 3;
/// Most requests of each, if the end takes long.
const REQUESTS_MAX: usize = 20_000;

/// Way to put a changed file into use.
type Way<'a> = &'a dyn Fn(&Path);

/// A handshake, a request and its response; returns the certificate received.
fn visit(door: &Door, config: &Arc<ClientConfig>) -> std::io::Result<Vec<u8>> {
    let mut client = door.secured(config)?;
    client.write_all(b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    Ok(client.conn.peer_certificates().unwrap()[0].to_vec())
}

/// A client that keeps requesting, on a connection of its own from before; returns the number of
/// requests.
fn stay(door: &Door, config: &Arc<ClientConfig>, is_over: &AtomicBool) -> usize {
    let mut client = door.secured(config).unwrap();
    for count in 0..REQUESTS_MAX {
        if is_over.load(Ordering::Relaxed) {
            return count;
        }
        client.write_all(b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\nhello") {
            let mut bytes = [0; 512];
            let count = client.read(&mut bytes).unwrap();
            assert!(count > 0, "it is closed");
            received.extend_from_slice(&bytes[..count]);
        }
        assert!(received.starts_with(b"HTTP/1.1 200 "));
    }
    REQUESTS_MAX
}

#[test]
fn no_request_fails_while_a_certificate_is_renewed_in_every_way() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\n", "hello"));
    let door = Door::open(origin.port, &["-p", "tls_file_poll=0.05"]);
    let config = |resumes: bool| {
        let mut config = (*door.client_config("http/1.1")).clone();
        if !resumes {
            config.resumption = Resumption::disabled();
        }
        Arc::new(config)
    };
    let (fresh, resuming) = (config(false), config(true));
    let file = door.folder.path().join(format!("{}.pem", NAMES[0]));
    // Issues another certificate for the name and replaces its file at once; returns it in DER.
    let renew = |place: &Path| {
        let elsewhere = tempfile::tempdir_in(door.folder.path()).unwrap();
        let made = door.authority.certify_in(elsewhere.path(), NAMES[0]);
        std::fs::rename(made, place).unwrap();
        CertificateDer::from_pem_file(place).unwrap().to_vec()
    };
    let by_poll = |_: &Path| {};
    let by_signal = |_: &Path| door.daemon.process.signal(Signal::SIGHUP);
    let by_command = |_: &Path| door.cli(&["tls.cert.reload"]);
    let by_commits = |file: &Path| {
        door.cli(&["tls.cert.load", "newer", file.to_str().unwrap()]);
        door.cli(&["tls.cert.discard", NAMES[0]]);
        door.cli(&["tls.cert.commit"]);
        door.cli(&["tls.cert.load", NAMES[0], file.to_str().unwrap()]);
        door.cli(&["tls.cert.discard", "newer"]);
        door.cli(&["tls.cert.commit"]);
    };
    let ways: [(&str, Way<'_>); 4] =
        [("files", &by_poll), ("SIGHUP", &by_signal), ("tls.cert.reload", &by_command), ("commits", &by_commits)];
    let seen = Mutex::new(vec![visit(&door, &fresh).unwrap()]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let config = if number == 0 { &resuming } else { &fresh };
                let (door, seen, is_over) = (&door, &seen, &is_over);
                scope.spawn(move || {
                    let mut count = 0;
                    while !is_over.load(Ordering::Relaxed) && count < REQUESTS_MAX {
                        let shown = visit(door, config).unwrap();
                        // A client that resumes receives none, and keeps the old one.
                        if number > 0 && !seen.lock().unwrap().contains(&shown) {
                            seen.lock().unwrap().push(shown);
                        }
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let (door, fresh, is_over) = (&door, &fresh, &is_over);
        let stayed = scope.spawn(move || stay(door, fresh, is_over));
        for (way, act) in ways {
            let renewed = renew(&file);
            act(&file);
            eventually(way, || seen.lock().unwrap().contains(&renewed).then_some(()));
            assert_eq!(visit(door, fresh).unwrap(), renewed, "{way}: the old one is gone");
        }
        is_over.store(true, Ordering::Relaxed);
        let counts: Vec<usize> = visitors.into_iter().map(|visitor| visitor.join().unwrap()).collect();
        assert!(counts.iter().all(|count| *count >= ways.len()), "{counts:?}");
        println!("{counts:?} handshakes with a request each, {} requests on one connection", stayed.join().unwrap());
    });
    assert_eq!(seen.lock().unwrap().len(), 1 + ways.len(), "each was seen");
    assert_eq!((origin.count(), door.daemon.counter("MAIN.tls_failed")), (1, 0));
}
