//! Names of subjects and issuers as text: [`distinguished_name`].
//!
//! Source: RFC 4514. A certificate's content is untrusted, so all bytes that could end or disguise
//! a line are escaped.

use std::fmt::Write as _;
use surface::limits::CERTIFICATE_NAME_BYTES_MAX;
use x509_parser::oid_registry::Oid;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The short names of RFC 4514 §3, and the usual one of e-mail addresses.
const TYPES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A distinguished name in the form of RFC 4514, the most specific part first:
/// `CN=www.example.org,O=Example`. At most [`CERTIFICATE_NAME_BYTES_MAX`] bytes.
#[must_use]
pub fn distinguished_name(name: &X509Name<'_>) -> String {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.into_iter().rev() {
        for (position, attribute) in part.iter().enumerate() {
            if !text.is_empty() {
                text.push(if position == 0 { ',' } else { '+' });
            }
            write_attribute(&mut text, attribute);
            if text.len() > CERTIFICATE_NAME_BYTES_MAX {
                let is_end = |end: &usize| text.is_char_boundary(*end);
                text.truncate((0..=CERTIFICATE_NAME_BYTES_MAX).rev().find(is_end).unwrap_or(0));
                return text;
            }
        }
    }
    text
}

fn write_attribute(text: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    text.push_str(&type_name(attribute.attr_type()));
    text.push('=');
    match attribute.as_str() {
        Ok(value) => write_value(text, value),
        Err(_) => {
            text.push('#');
            for byte in attribute.as_slice().iter().take(CERTIFICATE_NAME_BYTES_MAX) {
                let _ = write!(text, "{byte:02x}");
            }
        }
    }
}

fn type_name(oid: &Oid<'_>) -> String {
    let numbers = oid.to_id_string();
    match TYPES.iter().find(|(known, _)| *known == numbers) {
        Some((_, name)) => (*name).to_owned(),
        None => numbers,
    }
}

fn write_value(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (position, letter) in value.chars().take(CERTIFICATE_NAME_BYTES_MAX).enumerate() {
        match letter {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => {
                text.push('\\');
                text.push(letter);
            }
            ' ' if position == 0 || position == last => text.push_str("\\ "),
            '#' if position == 0 => text.push_str("\\#"),
            _ if letter.is_control() => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(text, "\\{byte:02x}");
                }
            }
            _ => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &str) -> String {
        let mut text = String::new();
        write_value(&mut text, value);
        text
    }

    #[test]
    fn special_characters_in_names_are_escaped() {
        assert_eq!(written("Smith, John"), "Smith\\, John");
        assert_eq!(written(" #a "), "\\ #a\\ ");
        assert_eq!(written("#a"), "\\#a");
        assert_eq!(written("a\r\nSet-Cookie"), "a\\0d\\0aSet-Cookie");
        assert_eq!(written("Zürich"), "Zürich");
    }
}
