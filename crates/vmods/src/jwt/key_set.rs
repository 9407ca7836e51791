//! Keys for tokens: one, or a JSON Web Key Set. Source: RFC 7517.

use super::algorithm::Algorithm;
use crate::json_text::{self, Step, member};
use crate::keys::PublicKey;
use crate::watched::Parsed;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use surface::limits::{JWT_KEY_BYTES_MAX, JWT_KEYS_MAX};

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A shared secret.
    Secret(Vec<u8>),
    /// A public key.
    Public(PublicKey),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Secret(_) => f.write_str("Secret"),
            Key::Public(_) => f.write_str("Public"),
        }
    }
}

impl Key {
    /// Reads a key that VCL gives: PEM, else a shared secret. Text with a PEM label that is not
    /// a public key is not a secret either: it may be public, and then anybody could sign.
    pub(crate) fn parse(text: &[u8]) -> Option<Key> {
        if memchr::memmem::find(text, b"-----BEGIN").is_some() {
            return PublicKey::from_pem(std::str::from_utf8(text).ok()?).map(Key::Public);
        }
        (!text.is_empty()).then(|| Key::Secret(text.to_vec()))
    }

    /// True if the signature is right; false if the key is not for the algorithm.
    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Key::Secret(secret), Algorithm::Secret(hash)) => {
                verify_slices_are_equal(&hash.code(secret, message), signature).is_ok()
            }
            (Key::Public(key), Algorithm::Public(signing)) => key.verifies(signing, message, signature),
            (Key::Secret(_), Algorithm::Public(_)) | (Key::Public(_), Algorithm::Secret(_)) => false,
        }
    }
}

/// Keys with their restrictions.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    keys: Vec<Entry>,
    remarks: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    /// `None` if the key has no name: then it may be the one of any token.
    kid: Option<String>,
    /// The only algorithm that it is for.
    algorithm: Option<Algorithm>,
}

impl KeySet {
    /// A set of one key without restrictions.
    pub(crate) fn of(key: Key) -> KeySet {
        KeySet { keys: vec![Entry { key, kid: None, algorithm: None }], remarks: Vec::new() }
    }

    /// Reads a key or a set; `None` if it has no key that can be used.
    pub(crate) fn parse(text: &str) -> Option<KeySet> {
        if !json_text::is_valid(text) {
            return None;
        }
        let mut set = KeySet::default();
        match json_text::find(text, &[Step::Name("keys".to_owned())]) {
            None => set.add(0, text),
            Some(list) => {
                let count = json_text::length(list).unwrap_or(0);
                if count > JWT_KEYS_MAX {
                    set.remarks.push(format!("has more than {JWT_KEYS_MAX} keys; the others are not used"));
                }
                for index in 0..count.min(JWT_KEYS_MAX) {
                    if let Some(jwk) = json_text::find(list, &[Step::Index(index as i64)]) {
                        set.add(index, jwk);
                    }
                }
            }
        }
        (!set.keys.is_empty()).then_some(set)
    }

    fn add(&mut self, index: usize, jwk: &str) {
        let text = |name: &str| member(jwk, name);
        // Keys for encryption do not verify signatures.
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return;
        }
        let algorithm = text("alg");
        let key = match text("kty").as_deref() {
            Some("oct") => text("k")
                .and_then(|secret| BASE64_URL_SAFE_NO_PAD.decode(secret.trim_end_matches('=')).ok())
                .filter(|secret| !secret.is_empty())
                .map(Key::Secret),
            _ => PublicKey::from_jwk(jwk).map(Key::Public),
        };
        let known = algorithm.as_deref().map(|name| Algorithm::named(name.as_bytes()));
        match (key, known) {
            (Some(key), None) => self.keys.push(Entry { key, kid: text("kid"), algorithm: None }),
            (Some(key), Some(Some(algorithm))) => {
                self.keys.push(Entry { key, kid: text("kid"), algorithm: Some(algorithm) });
            }
            (None, _) | (_, Some(None)) => self.remarks.push(format!("key {} cannot be used", index + 1)),
        }
    }

    /// True if one of the keys for that name and algorithm verifies the signature.
    pub(crate) fn verifies(&self, kid: Option<&str>, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let is_meant = |entry: &&Entry| {
            let is_named = match (kid, entry.kid.as_deref()) {
                (Some(wanted), Some(name)) => wanted == name,
                _ => true,
            };
            is_named && entry.algorithm.is_none_or(|only| only == algorithm)
        };
        self.keys.iter().filter(is_meant).any(|entry| entry.key.verifies(algorithm, message, signature))
    }
}

impl Parsed for KeySet {
    const BYTES_MAX: u64 = JWT_KEY_BYTES_MAX as u64;
    /// A set that was removed or damaged while it was written leaves the last one in use.
    const KEEPS_LAST: bool = true;

    fn parse(content: Vec<u8>) -> Result<KeySet, String> {
        let text = String::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        KeySet::parse(&text).ok_or_else(|| "has no key that can be used".to_owned())
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }
}
