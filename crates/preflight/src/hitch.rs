//! hitch.conf: read in the way of `-A`, with its certificates.

use crate::files::Root;
use crate::report::{Place, Report};
use manager::arguments::tls_file::{self, PemArgument};
use std::path::{Path, PathBuf};
use tls::hitch::{self, Assignment, Value};

/// Notes and remedies for keys whose function the daemon provides in another way.
const MOVED: &[(&str, &str, &str)] = &[
    (
        "alpn-protos",
        "HTTP/2 is offered where the parameter feature has http2, HTTP/1.1 always",
        "-p feature=+http2 for HTTP/2",
    ),
    ("backend", "requests need no way from hitch to Varnish any more", "drop the -a ...,PROXY that was for hitch"),
];

/// Result for a hitch.conf.
pub(crate) struct Found {
    /// The file, for `-A`.
    pub(crate) file: PathBuf,
    /// The backend of hitch, as written.
    pub(crate) backend: Option<String>,
}

/// Judges a hitch.conf; `None` if it can't be used.
pub(crate) fn judge(path: &Path, root: &Root, report: &mut Report) -> Option<Found> {
    let file = path.display().to_string();
    let whole = Place::new(&file, 0);
    let text = match root.text(path) {
        Ok(text) => text,
        Err(why) => {
            report.blocks(&whole, why, "the file must be there and readable");
            return None;
        }
    };
    report.note_read(&file);
    let parsed = hitch::parse(&text).map_err(|error| (error.line, error.what)).and_then(|assignments| {
        tls_file::parse(&text, &file, &mut 0)
            .map(|found| (assignments, found))
            .map_err(|message| (line_in(&message), message))
    });
    let (assignments, found) = match parsed {
        Ok(both) => both,
        Err((line, message)) => {
            report.blocks(&Place::new(&file, line), message, "docs/guide/tls.md has the keys of an -A file");
            return None;
        }
    };
    for assignment in &assignments {
        of_key(assignment, &file, report);
    }
    // The last note names the keys without a meaning, which were reported with their lines.
    for note in found.notes.iter().filter(|note| !note.contains("these mean nothing here")) {
        report.changes(&Place::new(&file, line_in(note)), note.as_str(), "");
    }
    if found.frontends.iter().all(|frontend| frontend.certificates.is_empty()) && found.certificates.is_empty() {
        report.changes(
            &whole,
            "no certificate is named: handshakes fail until one is loaded",
            "pem-file, or tls.cert.load",
        );
    }
    let of_frontends = found.frontends.iter().flat_map(|frontend| &frontend.certificates);
    for pem in found.certificates.iter().chain(of_frontends) {
        certificate(pem, &text, &file, root, report);
    }
    for frontend in &found.frontends {
        report.works(&whole, format!("TLS at {}", frontend.listener.endpoint));
    }
    let backend = assignments.iter().find(|assignment| assignment.key == "backend").and_then(word);
    Some(Found { file: path.to_owned(), backend: backend.map(str::to_owned) })
}

fn word(assignment: &Assignment) -> Option<&str> {
    match &assignment.value {
        Value::Words(words) => words.first().map(String::as_str),
        Value::Block(_) => None,
    }
}

fn of_key(assignment: &Assignment, file: &str, report: &mut Report) {
    let place = Place::new(file, assignment.line);
    let key = assignment.key.as_str();
    if let Some((_, what, remedy)) = MOVED.iter().find(|(moved, ..)| *moved == key) {
        report.changes(&place, format!("{key}: {what}"), *remedy);
    } else if tls_file::is_meaningless(key) {
        report.changes(&place, format!("{key}: means nothing here"), "it may stay; it may go");
    } else if key != "pem-file" {
        report.works(&place, key);
    }
}

/// Reads a certificate with its key, in the way of the manager.
fn certificate(pem: &PemArgument, text: &str, file: &str, root: &Root, report: &mut Report) {
    let name = pem.files.certificate.display().to_string();
    let line = text.lines().position(|line| line.contains(&name)).map_or(0, |index| index + 1);
    let place = Place::new(file, line);
    let mut files = pem.files.clone();
    files.certificate = root.at(&files.certificate);
    files.key = files.key.map(|key| root.at(&key));
    files.ocsp = files.ocsp.map(|ocsp| root.at(&ocsp));
    match files.read() {
        Ok(found) => {
            let facts = &found.loaded.facts;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs());
            if facts.not_after < i64::try_from(now).unwrap_or(i64::MAX) {
                return report.changes(
                    &place,
                    format!("{name}: the certificate has expired"),
                    "renew it: clients refuse it",
                );
            }
            report.works(&place, format!("{name}: certificate and key for {}", facts.names.join(", ")));
            if found.is_key_open {
                report.changes(
                    &place,
                    format!("{}: everybody can read the key", pem.files.key_path().display()),
                    "chmod 600",
                );
            }
            if let Some(fault) = found.ocsp_fault {
                let place_of_staple = files.ocsp_path().display().to_string();
                report.changes(
                    &place,
                    format!("{place_of_staple}: {fault}"),
                    "ask the authority for a new response of OCSP: this one is not stapled",
                );
            }
        }
        Err(why) if why.contains("Permission denied") && !nix::unistd::geteuid().is_root() => {
            report.changes(
                &place,
                format!("could not be checked: {why}"),
                "run copal preflight as root to have it checked",
            );
        }
        Err(why) => report.blocks(
            &place,
            why,
            "docs/guide/tls.md says what a pem-file holds; the daemon does not start without it",
        ),
    }
}

/// The number after `line ` in a message; 0 if there is none.
fn line_in(message: &str) -> usize {
    let digits = message.split(" line ").nth(1).unwrap_or_default();
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}
