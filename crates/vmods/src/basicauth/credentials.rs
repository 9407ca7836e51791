//! The user and the password in an `Authorization` header. Source: RFC 7617.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use surface::limits::PASSWORD_BYTES_MAX;

/// The credentials of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Credentials {
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

/// Clients write padding or leave it out.
static DECODER: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Credentials {
    /// Reads the value of an `Authorization` header; `None` if it is for another scheme or not
    /// well-formed.
    pub(super) fn parse(header: &[u8]) -> Option<Credentials> {
        let (scheme, rest) = header.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"Basic ") {
            return None;
        }
        let encoded = rest.trim_ascii();
        // Longer ones are not decoded: a user name and a password, four letters for three bytes.
        if encoded.len() > 4 * PASSWORD_BYTES_MAX {
            return None;
        }
        let mut user = DECODER.decode(encoded).ok()?;
        let colon = user.iter().position(|byte| *byte == b':')?;
        let password = user.split_off(colon + 1);
        user.pop();
        let is_sound = !user.is_empty() && password.len() <= PASSWORD_BYTES_MAX && !password.contains(&0);
        is_sound.then_some(Credentials { user, password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_clients_write_them() {
        let read = |text: &str| {
            Credentials::parse(text.as_bytes()).map(|found| {
                [found.user, found.password].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join(" ")
            })
        };
        assert_eq!(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").as_deref(), Some("Aladdin open sesame"));
        assert_eq!(read("bASIC  QWxhZGRpbjpvcGVuIHNlc2FtZQ ").as_deref(), Some("Aladdin open sesame"));
        assert_eq!(read("Basic YTpiOmM=").as_deref(), Some("a b:c"));
        assert_eq!(read("Basic YTo=").as_deref(), Some("a "));
        for wrong in [
            "",
            "Basic",
            "Basic ",
            "Bearer YTpi",
            "BasicYTpi",
            "Basic Y#Q=",
            "Basic YWI=",
            "Basic OmI=",
            "Basic YTpiAA==",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let long = |bytes| format!("Basic {}", DECODER.encode(format!("a:{}", "x".repeat(bytes))));
        assert!(read(&long(PASSWORD_BYTES_MAX)).is_some());
        assert!(read(&long(PASSWORD_BYTES_MAX + 1)).is_none());
        assert!(read(&long(1 << 20)).is_none());
    }
}
