//! Names of query arguments and fields whose values may be secrets, for everything that shows or
//! keeps requests.

/// Words in the names of query arguments whose values may be secrets.
const SECRET: [&str; 18] = [
    "token",
    "secret",
    "pass",
    "password",
    "passwd",
    "pwd",
    "signature",
    "sig",
    "auth",
    "session",
    "sessionid",
    "sid",
    "code",
    "jwt",
    "key",
    "apikey",
    "state",
    "ticket",
];

/// True if the value of a query argument or a field with this name may be a secret.
#[must_use]
pub fn names_secret(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    ["token", "secret", "passw"].iter().any(|part| name.contains(part))
        || name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|part| SECRET.contains(&part))
}

/// True if a decoded value has an argument of its own that may be a secret.
#[must_use]
pub fn holds_secret(value: &[u8]) -> bool {
    let pairs = value.split(|byte| matches!(byte, b'?' | b'&' | b';'));
    let mut names =
        pairs.filter_map(|pair| pair.split(|byte| *byte == b'=').next().filter(|name| name.len() < pair.len()));
    names.any(|name| names_secret(&decoded(name)))
}

/// Bytes with `%xx` decoded.
#[must_use]
pub fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        let digit = |place: usize| text.get(at + place).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognized() {
        for name in ["token", "access_token", "API-Key", "sid", "X-Auth", "newPassword", "code"] {
            assert!(names_secret(name.as_bytes()), "{name}");
        }
        for name in ["", "page", "keyword", "authors", "encode", "Accept-Encoding"] {
            assert!(!names_secret(name.as_bytes()), "{name}");
        }
        assert!(holds_secret(b"/next?a=1&%74oken=2") && !holds_secret(b"/token/next?a=1"));
        assert_eq!(decoded(b"%41b%4"), b"Ab%4");
    }
}
