//! The algorithms of signed tokens. `none` is not one of them.

use crate::keys::Signing;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384, Sha512};

/// An algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Algorithm {
    /// HS256, HS384 and HS512, with a shared secret.
    Secret(Hash),
    /// All others, with a public key.
    Public(Signing),
}

/// The hash of an HMAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// Algorithm with that name; names are case-sensitive.
    pub(crate) fn named(name: &[u8]) -> Option<Algorithm> {
        Some(match name {
            b"HS256" => Algorithm::Secret(Hash::Sha256),
            b"HS384" => Algorithm::Secret(Hash::Sha384),
            b"HS512" => Algorithm::Secret(Hash::Sha512),
            b"RS256" => Algorithm::Public(Signing::RsaSha256),
            b"RS384" => Algorithm::Public(Signing::RsaSha384),
            b"RS512" => Algorithm::Public(Signing::RsaSha512),
            b"PS256" => Algorithm::Public(Signing::PssSha256),
            b"PS384" => Algorithm::Public(Signing::PssSha384),
            b"PS512" => Algorithm::Public(Signing::PssSha512),
            b"ES256" => Algorithm::Public(Signing::P256Sha256),
            b"ES384" => Algorithm::Public(Signing::P384Sha384),
            b"ES512" => Algorithm::Public(Signing::P521Sha512),
            b"EdDSA" | b"Ed25519" => Algorithm::Public(Signing::Ed25519),
            _ => return None,
        })
    }
}

impl Hash {
    /// The HMAC of a message.
    pub(crate) fn code(self, secret: &[u8], message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => code::<Hmac<Sha256>>(secret, message),
            Hash::Sha384 => code::<Hmac<Sha384>>(secret, message),
            Hash::Sha512 => code::<Hmac<Sha512>>(secret, message),
        }
    }
}

fn code<M: Mac + KeyInit>(secret: &[u8], message: &[u8]) -> Vec<u8> {
    // An HMAC accepts keys of any length.
    let Ok(mut code) = M::new_from_slice(secret) else { return Vec::new() };
    code.update(message);
    code.finalize().into_bytes().to_vec()
}
