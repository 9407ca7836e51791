//! The corpus of every target, randomly damaged: the first step of a fuzzer, without its learning.
//!
//! `EXERCISE_ROUNDS` is the number of damaged copies of each file, `EXERCISE_SEED` the seed;
//! `EXERCISE_TARGETS` selects targets by name. Input that violates a property is printed and stored
//! in the folder of temporary files.

use crate::corpus::repository;
use exercises::{
    body, cache, cacheability, cli_proto, fleet, http1, http2, http3, load, message, order, preflight, proxy_protocol,
    semantics, shm, store, tls, tls_file, tools, vcl, vcl_cases, vtc,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A function under test.
type Exercise = fn(&[u8]);

const TARGETS: &[(&str, Exercise)] = &[
    ("http1_request", http1::request),
    ("http1_response", http1::response),
    ("chunked_body", http1::chunked_body),
    ("http2_machine", http2::machine),
    ("http2_hpack", http2::hpack),
    ("http2_upgrade", http2::upgrade),
    ("installation", preflight::installation),
    ("access_log", tools::access_log),
    ("load_answer", load::answer),
    ("pem", tls::pem),
    ("staple", tls::staple),
    ("ja3", tls::hello),
    ("tls_file", tls_file::tls_file),
    ("ranges", semantics::ranges),
    ("http_headers", semantics::headers),
    ("cacheability", cacheability::cacheability),
    ("gzip_body", body::gzip),
    ("esi_parse", body::esi::parse),
    ("esi_plan", body::esi::plan),
    ("esi_join", body::esi::join),
    ("content_encoding", body::content_encoding),
    ("message_decode", message::stored),
    ("proxy_header", proxy_protocol::proxy_header),
    ("arena_recovery", store::arena),
    ("bodies_in_a_file", store::bodies),
    ("ban_journal", store::journal),
    ("fleet_envelope", fleet::envelope),
    ("fleet_files", fleet::files),
    ("recording", exercises::recording::file),
    ("ban_expression", cache::ban),
    ("ban_pattern", cache::ban_pattern),
    ("cli_command", cli_proto::both_ends),
    ("order", order::order),
    ("log_reader", shm::readers),
    ("line_format", tools::line_format),
    ("vcl_compile", vcl::compile),
    ("vcl_run", |bytes| _ = vcl::run(bytes)),
    ("vcl_cases", vcl_cases::read),
    ("vcl_format", vcl::format),
    ("vcl_compile", vcl::format),
    ("vtc_script", vtc::script),
    ("http3_stream", http3::stream),
    ("http3_block", http3::block),
    ("vtc_frames", vtc::frames),
];

/// Default number of rounds.
const ROUNDS: u64 = 2;

/// Changes, drops, repeats or swaps a few bytes or pieces; takes a piece of another file now and
/// then.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut StdRng) {
    for _ in 0..random.random_range(1..5) {
        let length = bytes.len();
        let at = random.random_range(0..=length);
        let end = (at + random.random_range(1..16)).min(length);
        match random.random_range(0..8) {
            0 if at < length => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < length => bytes[at] = random.random(),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].repeat(random.random_range(1..40));
                bytes.splice(at..at, piece);
            }
            4 => bytes.insert(at, b" \n\r\t\0\"'\\/{}();:,=-0\xff"[random.random_range(0..20)]),
            5 => bytes.truncate(at),
            6 if !other.is_empty() => {
                let from = random.random_range(0..other.len());
                let to = (from + random.random_range(1..64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => bytes[at..end].reverse(),
        }
    }
}

#[test]
fn damaged_corpora_keep_the_promises() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (rounds, seed) = (number("EXERCISE_ROUNDS").unwrap_or(ROUNDS), number("EXERCISE_SEED").unwrap_or(47));
    let wanted = std::env::var("EXERCISE_TARGETS").unwrap_or_default();
    for (target, run) in TARGETS.iter().filter(|(target, _)| target.contains(&wanted)) {
        let entries = std::fs::read_dir(repository(&format!("fuzz/corpus/{target}"))).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let files: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        for round in 0..rounds {
            for (number, file) in files.iter().enumerate() {
                let mut random = StdRng::seed_from_u64(seed << 40 | round << 12 | number as u64);
                let mut bytes = file.clone();
                damage(&mut bytes, &files[random.random_range(0..files.len())], &mut random);
                if std::panic::catch_unwind(|| run(&bytes)).is_err() {
                    let path = std::env::temp_dir().join(format!("damaged-{target}-{seed}-{round}-{number}"));
                    std::fs::write(&path, &bytes).unwrap();
                    panic!("{target}: {}", path.display());
                }
            }
        }
    }
}
