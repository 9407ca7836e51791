//! Tokens that another implementation has signed, and those of attackers.

use super::algorithm::{Algorithm, Hash};
use super::key_set::{Key, KeySet};
use super::token::Token;
use crate::watched::Parsed;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// A set with a key for each algorithm, and one for encryption.
const KEYS: &str = include_str!("keys.json");
/// A token for each algorithm, valid from 500 to 2000.
const TOKENS: &str = include_str!("tokens.txt");
/// The public key of RSA of the set.
const RSA: &str = include_str!("rsa.pem");

fn tokens() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOKENS.lines().filter_map(|line| line.split_once(' '))
}

fn algorithm(name: &str) -> Algorithm {
    Algorithm::named(name.as_bytes()).unwrap()
}

fn verify(token: &str, name: &str, keys: &KeySet, now: f64, skew: f64) -> Result<(), &'static str> {
    Token::parse(token.as_bytes()).unwrap().verify(algorithm(name), keys, now, skew)
}

/// A token with the secret `secret`.
fn signed(header: &str, payload: &str) -> String {
    let [header, payload] = [header, payload].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
    let message = format!("{header}.{payload}");
    let code = Hash::Sha256.code(b"secret", message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(code))
}

fn secret() -> KeySet {
    KeySet::of(Key::parse(b"secret").unwrap())
}

#[test]
fn tokens_of_every_algorithm_are_verified_with_a_set_of_keys() {
    let keys = KeySet::parse(KEYS).unwrap();
    assert!(keys.remarks().is_empty(), "{:?}", keys.remarks());
    let mut count = 0;
    for (name, text) in tokens() {
        assert_eq!(verify(text, name, &keys, 1000.0, 0.0), Ok(()), "{name}");
        assert_eq!(verify(text, name, &keys, 2000.0, 0.0), Err("it has expired"), "{name}");
        assert_eq!(verify(text, name, &keys, 499.0, 0.0), Err("it is not valid yet"), "{name}");
        assert_eq!(verify(text, name, &keys, 2010.0, 11.0), Ok(()), "{name}");
        assert_eq!(verify(text, name, &keys, 490.0, 11.0), Ok(()), "{name}");
        count += 1;
    }
    assert_eq!(count, 13);
}

#[test]
fn one_changed_letter_is_noticed_wherever_it_is() {
    let keys = KeySet::parse(KEYS).unwrap();
    for (name, text) in tokens() {
        // Every letter of a signature with RSA would take a second.
        for place in (0..text.len()).step_by(if name.starts_with("RS") || name.starts_with("PS") { 41 } else { 7 }) {
            let mut changed = text.as_bytes().to_vec();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let is_valid =
                Token::parse(&changed).is_some_and(|token| token.verify(algorithm(name), &keys, 1000.0, 0.0).is_ok());
            assert!(!is_valid, "{name} {place}");
        }
    }
}

#[test]
fn algorithms_are_not_confused() {
    let keys = KeySet::parse(KEYS).unwrap();
    for (name, text) in tokens() {
        for (other, _) in tokens().filter(|(other, _)| *other != name) {
            assert!(verify(text, other, &keys, 1000.0, 0.0).is_err(), "{name} as {other}");
        }
    }
    // The public key as a shared secret, as the header of the attacker's token says.
    let message = signed(r#"{"alg":"HS256"}"#, "{}").rsplit_once('.').unwrap().0.to_owned();
    let code = BASE64_URL_SAFE_NO_PAD.encode(Hash::Sha256.code(RSA.as_bytes(), message.as_bytes()));
    let public = KeySet::of(Key::parse(RSA.as_bytes()).unwrap());
    assert!(verify(&format!("{message}.{code}"), "HS256", &public, 1000.0, 0.0).is_err());
    assert_eq!(verify(tokens().find(|(name, _)| *name == "RS256").unwrap().1, "RS256", &public, 1000.0, 0.0), Ok(()));
    assert_eq!(Key::parse(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), None);
    assert_eq!(Key::parse(format!("{}x", &RSA[..100]).as_bytes()), None);
    // No signature.
    for name in ["none", "None", "NONE", "nOnE", "", "hs256"] {
        assert_eq!(Algorithm::named(name.as_bytes()), None, "{name}");
        let token = signed(&format!(r#"{{"alg":"{name}"}}"#), "{}");
        let bare = format!("{}.", token.rsplit_once('.').unwrap().0);
        assert!(verify(&bare, "HS256", &secret(), 1000.0, 0.0).is_err(), "{name}");
    }
}

#[test]
fn strange_headers_and_claims_are_refused() {
    let verified = |header: &str, payload: &str| verify(&signed(header, payload), "HS256", &secret(), 1000.0, 0.0);
    let plain = r#"{"alg":"HS256"}"#;
    assert_eq!(verified(plain, "{}"), Ok(()));
    for payload in ["no claims", "[]", r#"{"exp":1"#] {
        assert_eq!(verified(plain, payload), Err("its payload is no object of claims"), "{payload}");
    }
    assert_eq!(verified(plain, r#"{"exp":1000.5}"#), Ok(()));
    for claims in [
        r#"{"exp":1000}"#,
        r#"{"exp":"3000"}"#,
        r#"{"exp":null}"#,
        r#"{"exp":[3000]}"#,
        r#"{"exp":3000,"exp":1}"#,
        r#"{"nbf":1001}"#,
        r#"{"nbf":"1"}"#,
        r#"{"exp":-1e400}"#,
    ] {
        assert!(verified(plain, claims).is_err(), "{claims}");
    }
    for header in [
        r#"{"alg":"HS256","crit":["exp"]}"#,
        r#"{"alg":"HS256","b64":false}"#,
        r#"{"alg":"HS256","alg":"none"}"#,
        r#"{"alg":["HS256"]}"#,
        r#"{"ALG":"HS256"}"#,
        "{}",
    ] {
        assert!(verified(header, "{}").is_err(), "{header}");
    }
}

#[test]
fn anything_else_is_not_a_token() {
    let good = signed(r#"{"alg":"HS256"}"#, "{}");
    for front in ["", "Bearer ", "bearer   ", "  "] {
        assert!(Token::parse(format!("{front}{good}").as_bytes()).is_some(), "{front}");
    }
    let long = signed(r#"{"alg":"HS256"}"#, &format!("{{\"a\":\"{}\"}}", "x".repeat(20_000)));
    let array = signed("[]", "{}");
    for wrong in [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "a.b.c",
        "Basic x.y.z",
        "é.é.é",
        &long,
        &array,
        &format!("{good}="),
        &format!("{good}.x"),
        &good.replace('.', " . "),
    ] {
        assert!(Token::parse(wrong.as_bytes()).is_none(), "{wrong:.40}");
    }
}

#[test]
fn sets_of_keys_are_bounded_and_name_what_is_not_used() {
    let many = format!("{{\"keys\":[{}]}}", vec![r#"{"kty":"oct","k":"c2VjcmV0"}"#; 1000].join(","));
    let set = KeySet::parse(&many).unwrap();
    assert_eq!(set.remarks().len(), 1);
    assert!(KeySet::parse(r#"{"keys":[{"kty":"oct","k":""},{"kty":"EC"}]}"#).is_none());
    assert!(KeySet::parse(r#"{"keys":{}}"#).is_none());
    let mixed = KeySet::parse(
        r#"{"keys":[{"kty":"oct","k":"c2VjcmV0","alg":"HS256"},{"kty":"EC"},{"kty":"oct","k":"c2VjcmV0","alg":"A1"}]}"#,
    );
    assert_eq!(mixed.unwrap().remarks(), ["key 2 cannot be used", "key 3 cannot be used"]);
    // A key with a name is not used for tokens with another one.
    let named = KeySet::parse(r#"{"kty":"oct","k":"c2VjcmV0","kid":"a"}"#).unwrap();
    for (kid, is_right) in [("a", true), ("b", false)] {
        let token = signed(&format!(r#"{{"alg":"HS256","kid":"{kid}"}}"#), "{}");
        assert_eq!(verify(&token, "HS256", &named, 1000.0, 0.0).is_ok(), is_right, "{kid}");
    }
    // Secrets do not appear in what a program prints for its developers.
    assert!(!format!("{named:?}").contains("secret"));
}
