//! Arbitrary bytes as PEM files of an operator, as OCSP responses, and as the first message of a
//! TLS client.

use ::tls::certificate::{CertificateFacts, Pem};
use ::tls::ja3;
use ::tls::staple::{Staple, StapleError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use surface::limits::{CERTIFICATE_CHAIN_MAX, CERTIFICATE_NAMES_MAX, TLS_HELLO_BYTES_MAX};

/// Longest run of bytes of a file that a message may show: words of PEM itself have that length.
const SHOWN_BYTES_MAX: usize = 24;

/// Reads `bytes` as a PEM file with certificate and key, and as one with authorities. Bytes after a
/// NUL are a separate file with the key.
///
/// # Panics
/// When a message shows the contents of a file, when a chain or its names exceed their limits, and
/// when certificates differ after they were written and read again.
pub fn pem(bytes: &[u8]) {
    let (file, key) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    match Pem::read(file, key) {
        Err(error) => check_message(&error.to_string(), bytes),
        Ok(loaded) => {
            assert!((1..=CERTIFICATE_CHAIN_MAX).contains(&loaded.chain.len()) && !loaded.key.bytes().is_empty());
            assert_eq!(CertificateFacts::read(&loaded.chain[0]).as_ref(), Ok(&loaded.facts));
            assert!(loaded.facts.names.len() <= CERTIFICATE_NAMES_MAX);
            for name in &loaded.facts.names {
                assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?}");
                assert_eq!(*name, name.to_ascii_lowercase());
            }
        }
    }
    match Pem::read_authorities(file) {
        Err(error) => check_message(&error.to_string(), bytes),
        Ok(chain) => assert_eq!(Pem::read_authorities(written(&chain).as_bytes()), Ok(chain)),
    }
}

fn check_message(message: &str, bytes: &[u8]) {
    assert!(!message.is_empty() && message.len() < 300, "{message}");
    let shown = message.as_bytes().windows(SHOWN_BYTES_MAX).any(|run| {
        let is_there = bytes.windows(SHOWN_BYTES_MAX).any(|window| window == run);
        is_there && !run.iter().all(u8::is_ascii_whitespace)
    });
    // Bytes may be shown as numbers, too.
    assert!(!shown && !message.contains(", 45, 45"), "{message}");
}

fn written(chain: &[Vec<u8>]) -> String {
    let one =
        |der: &Vec<u8>| format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der));
    chain.iter().map(one).collect()
}

/// Reads `bytes` as an OCSP response for a certificate whose serial number precedes it, after its
/// length in a byte.
///
/// # Panics
/// When a response is accepted for a certificate whose number is not in it, or with trailing bytes.
pub fn staple(bytes: &[u8]) {
    let Some((&length, bytes)) = bytes.split_first() else { return };
    let Some((serial, response)) = bytes.split_at_checked(usize::from(length)) else { return };
    let Ok(staple) = Staple::read_for(response, serial) else { return };
    let significant = serial.iter().position(|byte| *byte != 0).unwrap_or(serial.len());
    let number = &serial[significant..];
    assert!(number.is_empty() || response.windows(number.len()).any(|window| window == number));
    assert!(staple.next_update.is_none_or(|until| !staple.is_good_at(until) && staple.is_good_at(until - 1)));
    assert_eq!(Staple::read_for(&[response, &[0]].concat(), serial), Err(StapleError::Malformed));
}

/// Computes the fingerprint of `bytes` after the first, which determines the record size for
/// splitting the message again.
///
/// # Panics
/// When the fingerprint depends on the splitting of the message or on the bytes after it, when
/// there is one for a truncated message, or for one larger than the limit.
pub fn hello(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let Some(whole) = ja3::ja3(bytes) else { return };
    assert!(whole.len() == 32 && whole.bytes().all(|byte| byte.is_ascii_hexdigit()), "{whole}");
    let mut followed = bytes.to_vec();
    followed.extend_from_slice(&[22, 3, 1, 0, 1, 0]);
    assert_eq!(ja3::ja3(&followed).as_ref(), Some(&whole));
    let Some(message) = message(bytes) else { panic!("a fingerprint without a message") };
    assert!(message.len() <= TLS_HELLO_BYTES_MAX);
    let mut cut = Vec::new();
    for piece in message.chunks(usize::from(*size) + 1) {
        cut.extend_from_slice(&[22, 3, 3]);
        cut.extend_from_slice(&(piece.len() as u16).to_be_bytes());
        cut.extend_from_slice(piece);
    }
    assert_eq!(ja3::ja3(&cut), Some(whole), "records of {size} and one");
    assert_eq!(ja3::ja3(&cut[..cut.len() - 1]), None, "its last byte is missing");
}

/// The message at the start of these records, with its header.
fn message(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    while let [22, _, _, high, low, rest @ ..] = bytes {
        let (record, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        message.extend_from_slice(record);
        bytes = rest;
        if let [_, one, two, three, ..] = message[..] {
            let length = 4 + u32::from_be_bytes([0, one, two, three]) as usize;
            if message.len() >= length {
                message.truncate(length);
                return Some(message);
            }
        }
    }
    None
}
