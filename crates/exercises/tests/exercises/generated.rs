//! Initial inputs of a fuzzer: random bytes (the same ones every time), and damaged valid ones.

use crate::corpus::repository;
use ::body::Gzip;
use exercises::{body, cli_proto, http2, semantics, tls, vcl, vtc};
use rand::rngs::{SmallRng, StdRng};
use rand::{RngExt, SeedableRng};

#[test]
fn damaged_gzip_keeps_the_promises() {
    let mut random = SmallRng::seed_from_u64(9);
    for _ in 0..100 {
        let plain: Vec<u8> = (0..random.random_range(0..3000)).map(|_| random.random_range(0..4)).collect();
        let mut bytes = vec![random.random()];
        ::body::whole(Gzip::new(random.random_range(0..10)), &plain, usize::MAX, &mut bytes).unwrap();
        for _ in 0..random.random_range(0..3) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        bytes.truncate(random.random_range(0..bytes.len() * 2));
        body::gzip(&bytes);
    }
}

/// A function under test.
type Exercise = fn(&[u8]);

#[test]
fn damaged_handshakes_upgrades_and_pem_files_keep_the_promises() {
    let mut random = SmallRng::seed_from_u64(31);
    let targets: [(&str, Exercise); 3] = [("ja3", tls::hello), ("http2_upgrade", http2::upgrade), ("pem", tls::pem)];
    for (target, run) in targets {
        for entry in std::fs::read_dir(repository(&format!("fuzz/corpus/{target}"))).unwrap() {
            let good = std::fs::read(entry.unwrap().path()).unwrap();
            for _ in 0..40 {
                let mut bytes = good.clone();
                for _ in 0..random.random_range(1..4) {
                    let at = random.random_range(0..bytes.len());
                    match random.random_range(0..4) {
                        0 => bytes[at] = random.random(),
                        1 => _ = bytes.remove(at),
                        2 => bytes.insert(at, [b' ', b'\n', b'-', 0][random.random_range(0..4)]),
                        _ => bytes.truncate(at.max(1)),
                    }
                }
                run(&bytes);
            }
        }
    }
}

#[test]
fn pages_of_all_that_esi_knows_keep_the_promises() {
    #[rustfmt::skip]
    let words: &[&[u8]] = &[
        b"<", b">", b"/", b"-", b"--", b"-->", b"]]>", b"<p>", b"<!--", b"<!--esi", b"<!---->", b"<![CDATA[", b"<esi:", b"</esi:",
        b"include", b"remove", b"comment", b" ", b"\n", b"src=", b"onerror=", b"\"", b"'", b"/x", b"http://h", b"https://h/", b"&amp;",
        b"<esi:remove>", b"</esi:remove>", b"<esi:include src=\"/y\"/>", b"<esi:include src='z' />", b"a", b"text", b"\xef\xbb\xbf", b"\0",
    ];
    let mut random = SmallRng::seed_from_u64(23);
    for _ in 0..2000 {
        let mut bytes = vec![random.random(), random.random_range(0..8)];
        for _ in 0..random.random_range(0..25) {
            bytes.extend_from_slice(words[random.random_range(0..words.len())]);
        }
        body::esi::parse(&bytes);
    }
}

#[test]
fn damaged_fragments_keep_the_promises() {
    let mut random = SmallRng::seed_from_u64(29);
    for _ in 0..300 {
        let range = 1 << random.random_range(1..9);
        let plain: Vec<u8> = (0..random.random_range(0..2000)).map(|_| random.random_range(0..range) as u8).collect();
        let mut bytes = vec![random.random()];
        ::body::whole(Gzip::new(random.random_range(0..10)), &plain, usize::MAX, &mut bytes).unwrap();
        if random.random() {
            let at = random.random_range(1..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
        }
        body::esi::join(&bytes);
    }
}

#[test]
fn ranges_and_parts_made_by_chance_keep_the_promises() {
    let mut random = SmallRng::seed_from_u64(11);
    for _ in 0..3000 {
        let mut text = Vec::new();
        let total: u64 = random.random_range(1..=255);
        let mut number = |past: u64| random.random_range(0..total + past);
        let ranges: Vec<String> = (0..number(1) % 9)
            .map(|_| match number(1) % 3 {
                0 => format!("{}-", number(9)),
                1 => format!("-{}", number(9)),
                _ => {
                    let first = number(3);
                    format!("{first}-{}", first + number(1) / 4)
                }
            })
            .collect();
        text.extend_from_slice(format!("Range: bytes={}\n\n", ranges.join(",")).as_bytes());
        let received = total.min(1 + number(1) / 2);
        for _ in 0..2 {
            let first = number(1).min(total - received);
            let range = format!("ETag: \"a\"\nContent-Range: bytes {first}-{}/{total}\n\n", first + received - 1);
            text.extend_from_slice(range.as_bytes());
        }
        let mut bytes = vec![total as u8, random.random(), received as u8];
        bytes.extend_from_slice(&text);
        semantics::ranges(&bytes);
        let at = random.random_range(3..bytes.len());
        bytes[at] = random.random();
        semantics::ranges(&bytes);
    }
}

#[test]
fn no_bytes_upset_the_ends_of_the_cli() {
    let mut random = SmallRng::seed_from_u64(7);
    let alphabet = b"ab<< \n\r\"\\x0147-\t\0\xff200 8       \nEOT";
    for _ in 0..2000 {
        let length = random.random_range(0..80);
        let bytes: Vec<u8> = (0..length).map(|_| alphabet[random.random_range(0..alphabet.len())]).collect();
        cli_proto::both_ends(&bytes);
    }
    cli_proto::both_ends(b"200 99999999\n");
    cli_proto::both_ends(b"a b << \"\"\n\n");
    cli_proto::both_ends(&[b'<'; 1 << 17]);
}

#[test]
fn no_bytes_upset_the_compiler() {
    vcl::compile(b"");
    vcl::compile(b"vcl 4.1; \0\0\0");
    vcl::compile(b"vcl 4.1; backend \xff\xfe { .host = \"\xc3\x28\"; } sub vcl_recv { if (req.url ~ \"\xff\") { } }");
    vcl::compile(&[0xff; 1000]);
    vcl::compile("vcl 4.1; sub vcl_recv { set req.http.é = \"é\"; }".as_bytes());
    // Every prefix of a text with samples of everything, and every text with one byte removed or
    // changed.
    let text = r#"vcl 4.1; import std; import directors; probe p { .url = "/"; .window = 5; .threshold = 2; }
backend b { .host = "localhost"; .port = "80"; .probe = p; } acl a +log { ! "192.0.2.0"/24; ("localhost"); }
sub f { if (!req.http.a ~ "x" || client.ip ~ a && 1.5s > 1 s) { set req.http.b = {"y"} + -1 * 2 + now; } else { unset req.http.c; } }
sub vcl_init { new d = directors.random(); d.add_backend(b, weight = 1.0); return (ok); }
sub vcl_recv { call f; std.collect(req.http.a, sep = ","); set req.http.x = regsuball(req.url, "a(.)", "\1"); ban("x"); return (synth(200, "ok")); }
include "other.vcl"; sub vcl_hash { hash_data(req.url); } sub vcl_synth { synthetic("x"); set resp.body += "y"; }"#;
    let bytes = text.as_bytes();
    for end in 0..bytes.len() {
        vcl::compile(&bytes[..end]);
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.to_vec();
        changed.remove(at);
        vcl::compile(&changed);
        changed = bytes.to_vec();
        changed[at] = [b'}', b'"', b'.', 0xff, b'('][at % 5];
        vcl::compile(&changed);
    }
}

/// A thousand programs.
#[test]
fn random_programs_do_what_the_naive_evaluator_does() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut done = 0;
    for _ in 0..1_000 {
        let bytes: Vec<u8> = (0..600)
            .map(|_| {
                // xorshift64*
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
            })
            .collect();
        done += vcl::run(&bytes);
    }
    assert!(done > 4_000, "the programs do something: {done}");
}

#[test]
fn no_damaged_script_panics_the_parser() {
    let text = std::fs::read(repository("tests/vtc/runner_commands.vtc")).unwrap();
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..3000 {
        let mut damaged = text.clone();
        for _ in 0..random.random_range(1..8) {
            let at = random.random_range(0..damaged.len());
            match random.random_range(0..3) {
                0 => damaged.truncate(at + 1),
                1 => damaged[at] = random.random(),
                _ => damaged.insert(at, b"{}\"\\$\n# ,"[random.random_range(0..9)]),
            }
        }
        vtc::script(&damaged);
    }
}
