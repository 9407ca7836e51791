//! Replaces secrets and addresses of clients by values that stand for them.
//!
//! A value becomes a keyed hash (HMAC-SHA-256), so that equal values stay equal. The key belongs to
//! one recording and is stored nowhere.

use crate::exchange::{Exchange, Head};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use surface::secrets::{decoded, holds_secret, names_secret};

/// Bounds of the length of a hash that stands for a value, in bytes: the next power of two.
const HASH_BYTES: [usize; 2] = [8, 64];

/// The masks of one recording.
pub struct Masks {
    key: [u8; 32],
}

impl Masks {
    /// Masks with this key, which must be random.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Masks {
        Masks { key }
    }

    /// Masks everything in an exchange.
    pub fn apply(&self, exchange: &mut Exchange) {
        exchange.client = self.address(exchange.client);
        self.head(&mut exchange.request, true);
        if let Some((_, url)) = &mut exchange.lookup {
            *url = self.url(url);
        }
        if let Some(response) = &mut exchange.response {
            self.head(response, false);
        }
        for fetch in &mut exchange.fetches {
            self.head(&mut fetch.request, true);
            if let Some(response) = &mut fetch.response {
                self.head(response, false);
            }
            fetch.failure = String::from_utf8_lossy(&self.url(fetch.failure.as_bytes())).into_owned();
        }
    }

    fn head(&self, head: &mut Head, is_request: bool) {
        if is_request {
            head.line[1] = self.url(&head.line[1]);
        }
        for (name, value) in &mut head.fields {
            *value = self.field(name, value);
        }
    }

    fn field(&self, name: &[u8], value: &[u8]) -> Vec<u8> {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is("cookie") {
            let pairs = value.split(|byte| *byte == b';').map(|pair| self.pair(pair));
            return pairs.collect::<Vec<_>>().join(&b';');
        }
        if is("set-cookie") {
            let (pair, attributes) = value.split_at(place(value, b';'));
            return [&self.pair(pair)[..], attributes].concat();
        }
        if is("authorization") || is("proxy-authorization") {
            let (scheme, rest) = value.split_at(place(value, b' '));
            let scheme = if rest.is_empty() { &[][..] } else { scheme };
            return [scheme, b" ", &self.hash(value)].concat().trim_ascii().to_vec();
        }
        if names_secret(name) || is("forwarded") {
            return self.hash(value);
        }
        if is("host") {
            return value.to_vec();
        }
        let parts = value.split(|byte| *byte == b',').map(|part| self.part(part));
        parts.collect::<Vec<_>>().join(&b',')
    }

    /// An element of a list: an address, or else a text that may hold a URL.
    fn part(&self, part: &[u8]) -> Vec<u8> {
        let text = part.trim_ascii();
        let address = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
        let Some(address) = address else { return self.url(part) };
        let space = &part[..part.len() - part.trim_ascii_start().len()];
        [space, self.address(address).to_string().as_bytes()].concat()
    }

    /// `name=value` with another value.
    fn pair(&self, pair: &[u8]) -> Vec<u8> {
        match pair.split_at(place(pair, b'=')) {
            // A cookie without a name is a value.
            (value, []) => {
                let space = &value[..value.len() - value.trim_ascii_start().len()];
                [space, &self.hash(value.trim_ascii())].concat()
            }
            (name, value) => [name, b"=", &self.hash(value[1..].trim_ascii())].concat(),
        }
    }

    /// A text with the values of query arguments masked that may be secrets.
    fn url(&self, text: &[u8]) -> Vec<u8> {
        let is_delimiter = |byte: &u8| matches!(byte, b'?' | b'&' | b';');
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.iter().position(is_delimiter) {
            out.extend_from_slice(&rest[..=start]);
            rest = &rest[start + 1..];
            let is_end = |byte: &u8| is_delimiter(byte) || byte.is_ascii_whitespace() || *byte == b'#';
            let (pair, after) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
            let (name, value) = pair.split_at(place(pair, b'='));
            let is_secret = !value.is_empty() && (names_secret(&decoded(name)) || holds_secret(&decoded(&value[1..])));
            if is_secret {
                out.extend_from_slice(&[name, b"=", &self.hash(&value[1..])].concat());
            } else {
                out.extend_from_slice(pair);
            }
            rest = after;
        }
        out.extend_from_slice(rest);
        out
    }

    /// The hexadecimal hash that stands for a value; an empty one stays empty.
    fn hash(&self, value: &[u8]) -> Vec<u8> {
        if value.is_empty() {
            return Vec::new();
        }
        let text: String = self.digest(value).iter().map(|byte| format!("{byte:02x}")).collect();
        let length = value.len().clamp(HASH_BYTES[0], HASH_BYTES[1]).next_power_of_two();
        text.as_bytes()[..length].to_vec()
    }

    fn digest(&self, value: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length is accepted");
        mac.update(value);
        mac.finalize().into_bytes().into()
    }

    /// An address for benchmarks or documents (RFC 2544, RFC 3849). Loopback addresses stay, since
    /// they belong to no client.
    fn address(&self, address: IpAddr) -> IpAddr {
        if address.is_loopback() || address.is_unspecified() {
            return address;
        }
        let digest = self.digest(address.to_string().as_bytes());
        match address {
            IpAddr::V4(_) => Ipv4Addr::new(198, 18 + (digest[0] & 1), digest[1], digest[2]).into(),
            IpAddr::V6(_) => {
                let word = |place: usize| u16::from_be_bytes([digest[place], digest[place + 1]]);
                Ipv6Addr::new(0x2001, 0xdb8, word(0), word(2), word(4), word(6), word(8), word(10)).into()
            }
        }
    }
}

/// The first place of a byte, or the end.
fn place(text: &[u8], wanted: u8) -> usize {
    text.iter().position(|byte| *byte == wanted).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> String {
        String::from_utf8(Masks::new([7; 32]).field(name.as_bytes(), value.as_bytes())).unwrap()
    }

    #[test]
    fn cookies_keep_their_names_and_equal_values_stay_equal() {
        let masked = field("Cookie", "a=secret1; session=secret2; b=secret1; flag; empty=");
        let pairs: Vec<&str> = masked.split("; ").collect();
        assert_eq!(pairs.len(), 5, "{masked}");
        assert!(pairs[0].starts_with("a=") && pairs[1].starts_with("session=") && pairs[4] == "empty=", "{masked}");
        assert_eq!(pairs[0][2..], pairs[2][2..]);
        assert_ne!(pairs[0][2..], pairs[1]["session=".len()..]);
        assert!(!masked.contains("secret") && !masked.contains("flag"), "{masked}");
        let set = field("set-cookie", "sid=secret; Path=/; HttpOnly");
        assert!(set.starts_with("sid=") && set.ends_with("; Path=/; HttpOnly") && !set.contains("secret"), "{set}");
    }

    #[test]
    fn credentials_tokens_and_addresses_are_masked_and_nothing_else() {
        let authorization = field("Authorization", "Basic c2VjcmV0");
        assert!(authorization.starts_with("Basic ") && !authorization.contains("c2Vj"), "{authorization}");
        assert!(!field("Authorization", "c2VjcmV0").contains("c2VjcmV0"));
        assert!(!field("X-Api-Key", "secret").contains("secret"));
        let referer = field("Referer", "https://a.example/x?token=secret&page=2#here");
        assert!(referer.contains("&page=2#here") && !referer.contains("secret"), "{referer}");
        let forwarded = field("X-Forwarded-For", "203.0.113.9, 127.0.0.1, 2001:db8::9");
        assert!(!forwarded.contains("203.0.113.9") && forwarded.contains(", 127.0.0.1, 2001:db8:"), "{forwarded}");
        assert!(!field("Forwarded", "for=203.0.113.9").contains("203"));
        for (name, value) in [("Host", "192.0.2.1:80"), ("Accept", "text/html, */*;q=0.8"), ("ETag", "\"abc\"")] {
            assert_eq!(field(name, value), value);
        }
    }
}
