//! Texts of a session's log records, joined without the standard library's formatter: a client that
//! sends one request a connection pays for them with every request.

use shm::log::decimal::{self, SECONDS_BYTES_MAX};
use std::net::IpAddr;

/// Room for the longest usual record, in bytes: two IPv6 addresses, ports, a name and a time.
const RECORD_BYTES: usize = 160;

/// A record in the making.
pub(crate) struct SessionRecord(Vec<u8>);

impl SessionRecord {
    /// An empty record.
    pub(crate) fn new() -> SessionRecord {
        SessionRecord(Vec::with_capacity(RECORD_BYTES))
    }

    /// Appends a text.
    pub(crate) fn text(mut self, text: &str) -> SessionRecord {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a whole number.
    pub(crate) fn number(self, number: impl itoa::Integer) -> SessionRecord {
        self.text(itoa::Buffer::new().format(number))
    }

    /// Appends an address in its usual form.
    pub(crate) fn address(self, address: IpAddr) -> SessionRecord {
        match address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                self.number(a).text(".").number(b).text(".").number(c).text(".").number(d)
            }
            IpAddr::V6(address) => self.text(&address.to_string()),
        }
    }

    /// Appends seconds with six decimals.
    pub(crate) fn seconds(mut self, seconds: f64) -> SessionRecord {
        let mut digits = [0; SECONDS_BYTES_MAX];
        let length = decimal::seconds(seconds, &mut digits);
        self.0.extend_from_slice(&digits[..length]);
        self
    }

    /// The length so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, without spare room.
    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.0.into_boxed_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::SessionRecord;
    use std::net::IpAddr;

    #[test]
    fn texts_are_those_of_the_standard_formatter() {
        for address in ["0.0.0.0", "127.0.0.1", "255.10.200.9", "::1", "2001:db8::7", "::ffff:10.0.0.1"] {
            let address: IpAddr = address.parse().expect("an address");
            for seconds in [0.0, 0.0000015, 1.5, 1_795_788_182.123_456, 4e9] {
                let record =
                    SessionRecord::new().address(address).text(" ").number(u16::MAX).text(" a ").seconds(seconds);
                assert_eq!(record.as_bytes(), format!("{address} 65535 a {seconds:.6}").as_bytes());
            }
        }
    }
}
