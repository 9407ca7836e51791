//! One hash of a password file. Hashes that would take too long are refused when the file is read.
//!
//! Source: the formats that `htpasswd` and `crypt(3)` write. bcrypt and SHA-crypt are those of
//! libraries; MD5-crypt (Apache's `$apr1$`, and `$1$`) is here, as it is a few lines over MD5.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::Md5;
use sha_crypt::{PasswordVerifier, ShaCrypt};
use sha1::Sha1;
use sha2::Digest;
use surface::limits::{BCRYPT_COST_MAX, SHA_CRYPT_ROUNDS_MAX};

/// A hash of a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PasswordHash {
    /// `{SHA}`: SHA-1 without salt.
    Sha([u8; 20]),
    /// `$apr1$` and `$1$`.
    Md5Crypt { magic: &'static [u8], salt: Vec<u8>, letters: Vec<u8> },
    /// `$2a$`, `$2b$`, `$2y$`.
    Bcrypt(String),
    /// `$5$` and `$6$`.
    ShaCrypt(String),
}

/// Letters of `crypt(3)` for six bits.
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Rounds of SHA-crypt if the hash names none.
const SHA_CRYPT_ROUNDS: u32 = 5_000;
/// Fewest rounds of SHA-crypt.
const SHA_CRYPT_ROUNDS_MIN: u32 = 1_000;

impl PasswordHash {
    /// Reads a hash.
    ///
    /// # Errors
    /// Why it is not used, for the log; the text says nothing about the hash.
    pub(crate) fn parse(text: &str) -> Result<PasswordHash, String> {
        if let Some(encoded) = text.strip_prefix("{SHA}") {
            let sum = crate::alphabet::Alphabet::Standard.decode_groups(encoded.trim_end_matches('=').into());
            let sum = sum.filter(|_| encoded.len() == 28).and_then(|sum| sum.get(..20)?.try_into().ok());
            return sum.map(PasswordHash::Sha).ok_or_else(|| "the {SHA} hash is damaged".to_owned());
        }
        for magic in [&b"$apr1$"[..], b"$1$"] {
            if let Some(rest) = text.as_bytes().strip_prefix(magic) {
                return md5_crypt(magic, rest).ok_or_else(|| "the MD5 hash is damaged".to_owned());
            }
        }
        if text.starts_with("$2") {
            return bcrypt(text);
        }
        if text.starts_with("$5$") || text.starts_with("$6$") {
            return sha_crypt(text);
        }
        Err("this kind of hash is not supported (DES crypt and plain text never are); use htpasswd -B".to_owned())
    }

    /// True if [`PasswordHash::is_of`] takes too long for an event loop.
    pub(crate) fn is_slow(&self) -> bool {
        !matches!(self, PasswordHash::Sha(_))
    }

    /// An estimate of the cost, for the choice of the slowest.
    pub(crate) fn cost(&self) -> u32 {
        match self {
            PasswordHash::Sha(_) => 0,
            PasswordHash::Md5Crypt { .. } => 1,
            PasswordHash::ShaCrypt(text) => rounds_of(text).unwrap_or(SHA_CRYPT_ROUNDS) / 200,
            PasswordHash::Bcrypt(text) => 1 << cost_of(text).unwrap_or(0).min(20),
        }
    }

    /// True if this is the hash of the password. Compares in constant time; blocks for as long as
    /// the hash takes.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        match self {
            PasswordHash::Sha(sum) => verify_slices_are_equal(&Sha1::digest(password), sum).is_ok(),
            PasswordHash::Md5Crypt { magic, salt, letters } => {
                verify_slices_are_equal(&md5_crypt_letters(magic, salt, password), letters).is_ok()
            }
            PasswordHash::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
            PasswordHash::ShaCrypt(text) => ShaCrypt::default().verify_password(password, text.as_str()).is_ok(),
        }
    }

    /// Bytes that identify the hash.
    pub(crate) fn identity(&self) -> &[u8] {
        match self {
            PasswordHash::Sha(sum) => sum,
            PasswordHash::Md5Crypt { letters, .. } => letters,
            PasswordHash::Bcrypt(text) | PasswordHash::ShaCrypt(text) => text.as_bytes(),
        }
    }
}

fn cost_of(text: &str) -> Option<u32> {
    text.get(4..6)?.parse().ok()
}

fn bcrypt(text: &str) -> Result<PasswordHash, String> {
    let is_sound = ["$2a$", "$2b$", "$2y$"].iter().any(|magic| text.starts_with(magic))
        && text.parse::<bcrypt::HashParts>().is_ok();
    match cost_of(text).filter(|_| is_sound) {
        Some(cost) if cost <= BCRYPT_COST_MAX => Ok(PasswordHash::Bcrypt(text.to_owned())),
        Some(_) => Err(format!("the cost of the bcrypt hash is above {BCRYPT_COST_MAX}")),
        None => Err("the bcrypt hash is damaged".to_owned()),
    }
}

/// The rounds that a hash of SHA-crypt names; `None` without.
fn rounds_of(text: &str) -> Option<u32> {
    text.get(3..)?.strip_prefix("rounds=")?.split('$').next()?.parse().ok()
}

fn sha_crypt(text: &str) -> Result<PasswordHash, String> {
    let damaged = || "the SHA-crypt hash is damaged".to_owned();
    let mut fields: Vec<&str> = text[3..].split('$').collect();
    if fields.first().is_some_and(|field| field.starts_with("rounds=")) {
        let rounds = rounds_of(text).ok_or_else(damaged)?;
        if !(SHA_CRYPT_ROUNDS_MIN..=SHA_CRYPT_ROUNDS_MAX).contains(&rounds) {
            return Err(format!(
                "the rounds of the SHA-crypt hash are not {SHA_CRYPT_ROUNDS_MIN} to {SHA_CRYPT_ROUNDS_MAX}"
            ));
        }
        fields.remove(0);
    }
    let length = if text.starts_with("$5$") { 43 } else { 86 };
    match fields[..] {
        [salt, sum] if salt.len() <= 16 && sum.len() == length => Ok(PasswordHash::ShaCrypt(text.to_owned())),
        _ => Err(damaged()),
    }
}

fn md5_crypt(magic: &'static [u8], rest: &[u8]) -> Option<PasswordHash> {
    let dollar = rest.iter().position(|byte| *byte == b'$')?;
    let (salt, letters) = (&rest[..dollar], &rest[dollar + 1..]);
    let is_sound = salt.len() <= 8 && letters.len() == 22 && letters.iter().all(|letter| LETTERS.contains(letter));
    is_sound.then(|| PasswordHash::Md5Crypt { magic, salt: salt.to_vec(), letters: letters.to_vec() })
}

/// MD5-crypt: 1,000 rounds of MD5 over the password, the salt and the last sum.
fn md5_crypt_letters(magic: &[u8], salt: &[u8], password: &[u8]) -> Vec<u8> {
    let alternate = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update(magic).chain_update(salt);
    for start in (0..password.len()).step_by(16) {
        first.update(&alternate[..(password.len() - start).min(16)]);
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0][..] } else { password.get(..1).unwrap_or_default() });
        bits >>= 1;
    }
    let mut sum = first.finalize();
    for round in 0..1000 {
        let mut next = Md5::new();
        next.update(if round % 2 == 1 { password } else { &sum[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round % 2 == 1 { &sum[..] } else { password });
        sum = next.finalize();
    }
    let mut letters = Vec::with_capacity(22);
    let mut put = |value: u32, count: u32| {
        letters.extend((0..count).map(|place| LETTERS[(value >> (6 * place) & 63) as usize]));
    };
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        put(u32::from(sum[high]) << 16 | u32::from(sum[middle]) << 8 | u32::from(sum[low]), 4);
    }
    put(u32::from(sum[11]), 2);
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that `htpasswd` and `openssl passwd` have made.
    #[test]
    fn hashes_of_other_programs_are_verified() {
        for (hash, password) in HASHES {
            let parsed = PasswordHash::parse(hash).unwrap();
            assert!(parsed.is_of(password.as_bytes()), "{hash}");
            for wrong in ["", "secre", "secret ", "Secret"] {
                assert!(!parsed.is_of(wrong.as_bytes()), "{hash} {wrong}");
            }
        }
    }

    const HASHES: &[(&str, &str)] = &[
        ("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "secret"),
        ("$apr1$Q.a3mnpX$1Mlrx5IsCXiaVdapg.PG9/", "secret"),
        ("$2y$04$OWXsCbdhXWWU3TiosutkUeTQ/XrR4HLINOF0ZUUe/VQ5W8D5bNh5a", "secret"),
        ("$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1", "secret"),
        ("$apr1$x$12YdXEY0/hH4rDNkmZupO0", "secret"),
        ("$5$saltstring$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.", "secret"),
        (
            "$6$saltstring$AIsRs/Ee56G/tC8MEHhvReZTfx8u3rXXMl6eYrjCG9ibix19DxoMBLogdTET5Ukw9Sf7eZTITsuk0Ry5qulYz.",
            "secret",
        ),
        ("$5$rounds=1000$abcdefghijklmnop$FzYoqjtuN.mjYqssIob4upmoKbZEpkdQMtytZuqNN/6", "secret"),
        (
            "$6$rounds=1000$abcdefghijklmnop$/ySzNKkDy6wawo9hTH6WxjPbiNMjvDjUNjja1ca1Iw8M6hvIP5521AJRYCq2LKFri/5fZ6KSUYfs/3ZzFVhh./",
            "secret",
        ),
        ("$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "secret"),
        ("$apr1$longsalt$YDYNeHIdYmmA/IdIIgD9G1", "a much longer password than sixteen bytes, to be exact"),
        (
            "$6$longsalt$z4yBT6R05puJw1iNID1pq/6hIVUdwu03sbbHNckIkODYZaeLBUcoEVynBBP1IYicSkoER1WdOShUb0ZbNhGQr0",
            "a much longer password than sixteen bytes, to be exact",
        ),
    ];

    #[test]
    fn damaged_weak_and_expensive_hashes_are_refused() {
        for wrong in [
            "",
            "secret",
            "rl.3StKT.4T8M",
            "{SHA}",
            "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ",
            "{SHA}5en6G6MezRroT3XKqkdPOmY/Bf#=",
            "{SSHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
            "$apr1$saltsaltsalt$1234567890123456789012",
            "$apr1$salt$short",
            "$apr1$",
            "$2y$15$L6Bc/AlTQHyd9liGgGEZyOFLPHNgyxeEPfgYfBCVxJ7JIlwxyVU3u",
            "$2y$99$L6Bc/AlTQHyd9liGgGEZyOFLPHNgyxeEPfgYfBCVxJ7JIlwxyVU3u",
            "$2x$05$L6Bc/AlTQHyd9liGgGEZyOFLPHNgyxeEPfgYfBCVxJ7JIlwxyVU3u",
            "$2y$05$short",
            "$2y\u{e9}05",
            "$5$",
            "$5$salt$short",
            "$6$rounds=999999999$salt$x",
            "$6$rounds=$salt$x",
            "$6$rounds=5000$",
            "$7$C6..../....SodiumChloride$kBGj9fHznVYFQMEn/qDCfrDevf9YDtcDdKvEqHJLV8D",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
        ] {
            let why = PasswordHash::parse(wrong).unwrap_err();
            assert!(!why.contains("salt") && !why.contains("secret"), "{why}");
        }
    }
}
