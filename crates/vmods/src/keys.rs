//! Public keys and signatures, for the VMODs jwt and crypto, over aws-lc-rs.
//!
//! A key is of one kind, and a signature algorithm accepts only keys of its kind: a public key is
//! never used as a shared secret. RSA keys have 2048 to 8192 bits. Source: RFC 5280 §4.1.2.7
//! (keys), RFC 7518 §3 (algorithms) and §6 (JSON Web Keys), RFC 8037.

use crate::json_text::{self, Step};
use aws_lc_rs::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

/// A signature algorithm with a public key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signing {
    RsaSha1,
    RsaSha256,
    RsaSha384,
    RsaSha512,
    PssSha256,
    PssSha384,
    PssSha512,
    P256Sha256,
    P384Sha384,
    P521Sha512,
    Ed25519,
}

/// A public key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PublicKey {
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// A point in uncompressed form.
    P256(Vec<u8>),
    /// Likewise.
    P384(Vec<u8>),
    /// Likewise.
    P521(Vec<u8>),
    /// 32 bytes.
    Ed25519(Vec<u8>),
}

/// RSA keys of fewer bits are refused, by byte length of the modulus.
const RSA_BYTES_MIN: usize = 256;
/// RSA keys of more bits are refused.
const RSA_BYTES_MAX: usize = 1024;
/// Longest exponent of RSA: its length decides how long a verification takes.
const RSA_EXPONENT_BYTES_MAX: usize = 4;

impl PublicKey {
    /// Reads a key from PEM: `PUBLIC KEY` or `RSA PUBLIC KEY`; `None` for anything else.
    pub(crate) fn from_pem(text: &str) -> Option<PublicKey> {
        let (_, rest) = text.split_once("-----BEGIN ")?;
        let (label, rest) = rest.split_once("-----")?;
        let (body, _) = rest.split_once("-----END ")?;
        let letters: String = body.split_ascii_whitespace().collect();
        let der = BASE64_STANDARD.decode(letters).ok()?;
        match label {
            "PUBLIC KEY" => PublicKey::from_spki(&der),
            "RSA PUBLIC KEY" => PublicKey::from_pkcs1(&der),
            _ => None,
        }
    }

    fn from_spki(der: &[u8]) -> Option<PublicKey> {
        let (key, rest) = content(der, 0x30)?;
        let (algorithm, key) = content(key, 0x30).filter(|_| rest.is_empty())?;
        let (kind, parameters) = content(algorithm, 0x06)?;
        let (bits, rest) = content(key, 0x03)?;
        let bytes = bits.strip_prefix(&[0]).filter(|_| rest.is_empty())?;
        match kind {
            // rsaEncryption
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1] => PublicKey::from_pkcs1(bytes),
            // ecPublicKey, with the curve
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1] => match content(parameters, 0x06)?.0 {
                [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => PublicKey::of_point(32, bytes.to_vec()),
                [0x2b, 0x81, 4, 0, 34] => PublicKey::of_point(48, bytes.to_vec()),
                [0x2b, 0x81, 4, 0, 35] => PublicKey::of_point(66, bytes.to_vec()),
                _ => None,
            },
            [0x2b, 0x65, 0x70] => (bytes.len() == 32).then(|| PublicKey::Ed25519(bytes.to_vec())),
            _ => None,
        }
    }

    fn from_pkcs1(der: &[u8]) -> Option<PublicKey> {
        let (key, rest) = content(der, 0x30)?;
        let (n, key) = content(key, 0x02).filter(|_| rest.is_empty())?;
        let (e, rest) = content(key, 0x02)?;
        if rest.is_empty() { PublicKey::rsa(n, e) } else { None }
    }

    /// An RSA key from its numbers, big-endian.
    pub(crate) fn rsa(n: &[u8], e: &[u8]) -> Option<PublicKey> {
        let bare = |number: &[u8]| number[number.iter().take_while(|byte| **byte == 0).count()..].to_vec();
        let (n, e) = (bare(n), bare(e));
        let is_sound = (RSA_BYTES_MIN..=RSA_BYTES_MAX).contains(&n.len())
            && (1..=RSA_EXPONENT_BYTES_MAX).contains(&e.len())
            && e.last().is_some_and(|byte| byte & 1 == 1)
            && e != [1];
        is_sound.then_some(PublicKey::Rsa { n, e })
    }

    fn of_point(coordinate_bytes: usize, point: Vec<u8>) -> Option<PublicKey> {
        let is_sound = point.len() == 1 + 2 * coordinate_bytes && point[0] == 4;
        match coordinate_bytes {
            _ if !is_sound => None,
            32 => Some(PublicKey::P256(point)),
            48 => Some(PublicKey::P384(point)),
            _ => Some(PublicKey::P521(point)),
        }
    }

    /// Reads a JSON Web Key with a public key (`kty` RSA, EC or OKP).
    pub(crate) fn from_jwk(jwk: &str) -> Option<PublicKey> {
        let text = |name: &str| {
            let value = json_text::find(jwk, &[Step::Name(name.to_owned())])?;
            (json_text::kind(value) == json_text::Kind::String).then(|| json_text::plain(value).into_owned())
        };
        let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
        match text("kty").as_deref() {
            // Some publish keys of RSA without their kind.
            Some("RSA") | None => PublicKey::rsa(&bytes("n")?, &bytes("e")?),
            Some("EC") => {
                let coordinate_bytes = match text("crv")?.as_str() {
                    "P-256" => 32,
                    "P-384" => 48,
                    "P-521" => 66,
                    _ => return None,
                };
                let (x, y) = (bytes("x")?, bytes("y")?);
                let is_sound = x.len() == coordinate_bytes && y.len() == coordinate_bytes;
                is_sound.then(|| PublicKey::of_point(coordinate_bytes, [&[4][..], &x, &y].concat()))?
            }
            Some("OKP") if text("crv")? == "Ed25519" => {
                bytes("x").filter(|key| key.len() == 32).map(PublicKey::Ed25519)
            }
            Some(_) => None,
        }
    }

    /// True if the signature is right. False if the algorithm is for another kind of key.
    pub(crate) fn verifies(&self, signing: Signing, message: &[u8], signature: &[u8]) -> bool {
        let parameters = match signing {
            Signing::RsaSha1 => &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            Signing::RsaSha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Signing::RsaSha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Signing::RsaSha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Signing::PssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
            Signing::PssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
            Signing::PssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
            Signing::P256Sha256 | Signing::P384Sha384 | Signing::P521Sha512 | Signing::Ed25519 => {
                return self.verifies_on_curve(signing, message, signature);
            }
        };
        let PublicKey::Rsa { n, e } = self else { return false };
        RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
    }

    fn verifies_on_curve(&self, signing: Signing, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn signature::VerificationAlgorithm = match (signing, self) {
            (Signing::P256Sha256, PublicKey::P256(_)) => &signature::ECDSA_P256_SHA256_FIXED,
            (Signing::P384Sha384, PublicKey::P384(_)) => &signature::ECDSA_P384_SHA384_FIXED,
            (Signing::P521Sha512, PublicKey::P521(_)) => &signature::ECDSA_P521_SHA512_FIXED,
            (Signing::Ed25519, PublicKey::Ed25519(_)) => &signature::ED25519,
            _ => return false,
        };
        let (PublicKey::P256(key) | PublicKey::P384(key) | PublicKey::P521(key) | PublicKey::Ed25519(key)) = self
        else {
            return false;
        };
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
    }
}

/// The content of a DER element with that tag, and the bytes after it.
fn content(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81 | 0x82 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_and_weak_keys_are_refused() {
        for text in
            ["", "secret", "-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\n####\n-----END PUBLIC KEY-----"]
        {
            assert_eq!(PublicKey::from_pem(text), None, "{text}");
        }
        let numbers = |n: usize, e: &[u8]| PublicKey::rsa(&vec![0xff; n], e).is_some();
        assert!(numbers(256, &[1, 0, 1]) && numbers(1024, &[3]));
        assert!(!numbers(128, &[1, 0, 1]) && !numbers(1025, &[3]), "length");
        assert!(
            !numbers(256, &[]) && !numbers(256, &[1]) && !numbers(256, &[2]) && !numbers(256, &[0xff; 5]),
            "exponent"
        );
        for jwk in [
            "{}",
            "[]",
            r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}"#,
            r#"{"kty":"OKP","crv":"Ed25519","x":"AQAB"}"#,
            r#"{"kty":"OKP","crv":"X25519","x":"AQAB"}"#,
            r#"{"kty":"oct","k":"AQAB"}"#,
            r#"{"kty":7,"n":7,"e":[]}"#,
        ] {
            assert_eq!(PublicKey::from_jwk(jwk), None, "{jwk}");
        }
    }

    #[test]
    fn every_cut_of_a_key_is_read_without_a_panic() {
        let letters = include_str!("keys/p256.pem");
        let body: String = letters.lines().filter(|line| !line.starts_with('-')).collect();
        let der = BASE64_STANDARD.decode(body).unwrap();
        assert!(matches!(PublicKey::from_spki(&der), Some(PublicKey::P256(_))));
        for end in 0..der.len() {
            assert_eq!(PublicKey::from_spki(&der[..end]), None);
        }
        for place in 0..der.len() {
            let mut changed = der.clone();
            changed[place] ^= 0x80;
            let _ = PublicKey::from_spki(&changed);
        }
    }
}
