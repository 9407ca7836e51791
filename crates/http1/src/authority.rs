//! Authority of `Host` and of an absolute target: a host, and optionally a port.
//!
//! Everything that two parsers could split differently is refused: blanks, slashes and backslashes,
//! a user, a question mark or fragment, brackets around anything but an address, a port that is not
//! a number below 65,536; plain or percent-encoded. Compat: bytes above 127 are left alone, and an
//! empty port counts as none. Source: RFC 3986 §3.2, RFC 6874, RFC 9110 §7.2.

use std::net::Ipv6Addr;

const fn unreserved_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"-._~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
}

const fn name_table() -> [bool; 256] {
    let mut table = unreserved_table();
    let marks = b"!$&'()*+,;=";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 128;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table
}

static UNRESERVED: [bool; 256] = unreserved_table();
static NAME: [bool; 256] = name_table();

/// True if this is a valid value of `Host`: empty, or a host with an optional port.
#[must_use]
pub fn is_host(value: &[u8]) -> bool {
    value.is_empty() || is_authority(value)
}

/// True if these bytes are a non-empty host with an optional port.
pub(crate) fn is_authority(bytes: &[u8]) -> bool {
    // The usual case: a name without a port.
    let plain = bytes.iter().position(|&byte| !NAME[usize::from(byte)]).unwrap_or(bytes.len());
    if plain == bytes.len() {
        return plain > 0;
    }
    let (is_named, rest) = match bytes {
        [b'[', literal @ ..] => match literal.iter().position(|&byte| byte == b']') {
            Some(end) => (is_literal(&literal[..end]), &literal[end + 1..]),
            None => return false,
        },
        _ => {
            let end = bytes.iter().position(|&byte| byte == b':').unwrap_or(bytes.len());
            (end > 0 && is_name(&bytes[..end], &NAME), &bytes[end..])
        }
    };
    is_named
        && match rest {
            [] => true,
            [b':', port @ ..] => is_port(port),
            _ => false,
        }
}

/// True if these bytes, found before an `@`, are a user with an optional password. They are never
/// passed on.
pub(crate) fn is_user(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b':').all(|part| is_name(part, &NAME))
}

/// True if every byte is in the table, plain or percent-encoded.
fn is_name(mut bytes: &[u8], table: &[bool; 256]) -> bool {
    while let Some((&byte, rest)) = bytes.split_first() {
        let (byte, rest) = match (byte, rest) {
            (b'%', [high, low, rest @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, rest),
                _ => return false,
            },
            _ => (byte, rest),
        };
        if !table[usize::from(byte)] {
            return false;
        }
        bytes = rest;
    }
    true
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The part between brackets: an IPv6 address with an optional zone, or an address of a future
/// version.
fn is_literal(bytes: &[u8]) -> bool {
    if let [b'v' | b'V', later @ ..] = bytes {
        let version = later.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let Some((b'.', address)) = later[version..].split_first() else { return false };
        return version > 0
            && !address.is_empty()
            && address.iter().all(|&byte| byte.is_ascii() && (NAME[usize::from(byte)] || byte == b':'));
    }
    let zone = bytes.windows(3).position(|three| three == b"%25");
    let address = &bytes[..zone.unwrap_or(bytes.len())];
    let is_zone = zone.is_none_or(|at| at + 3 < bytes.len() && is_name(&bytes[at + 3..], &UNRESERVED));
    is_zone && std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// A number below 65,536, or nothing.
fn is_port(bytes: &[u8]) -> bool {
    let number = bytes.iter().try_fold(0u32, |sum, byte| match byte {
        b'0'..=b'9' => Some(sum * 10 + u32::from(byte - b'0')).filter(|&sum| sum <= u32::from(u16::MAX)),
        _ => None,
    });
    number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses_with_ports() {
        for good in [
            "",
            "a",
            "www.example.com",
            "a_b",
            "a.",
            "a:",
            "a:0",
            "a:80",
            "a:65535",
            "a:00080",
            "1.2.3.4:80",
            "[::1]",
            "[::1]:8080",
            "[::ffff:1.2.3.4]",
            "[2001:db8::1]:",
            "[fe80::1%25eth0]",
            "[v1.x:y]",
            "a%2e",
            "a%41",
            "a,b",
            "a;b",
            "a!$&'()*+=~",
            "é",
        ] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b",
            "a\tb",
            "a/b",
            "a/",
            "u@a",
            "@a",
            "a\\b",
            "a#b",
            "a?b",
            "a:x",
            "a:-1",
            "a:+80",
            "a:65536",
            "a: 80",
            "a:99999999999999999999",
            "a:80:80",
            ":",
            ":80",
            "::1",
            "[::1",
            "::1]",
            "[]",
            "[::1]x",
            "[::1]:x",
            "[::1]80",
            "[1.2.3.4]",
            "[::1%eth0]",
            "[::1%25]",
            "[v.x]",
            "[v1.]",
            "[a]",
            "a[",
            "a]",
            "a%",
            "a%4",
            "a%4g",
            "a%2fb",
            "a%40b",
            "a%00",
            "a%20",
            "a%3a80",
            "a\"b",
            "a<b>",
            "a{b}",
            "a|b",
            "a^b",
            "a`b",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn an_authority_has_a_host() {
        assert!(!is_authority(b""));
        assert!(is_authority(b"a") && is_authority("é".as_bytes()));
    }
}
