//! Languages that a client accepts. Source: RFC 9110 §12.5.4.

use crate::list::{members, split_unquoted};
use message::Message;
use surface::limits::COMPARED_LANGUAGES_MAX;

/// True if two members of `Accept-Language` are equivalent: case and blanks have no meaning there.
#[must_use]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    fn bare(member: &[u8]) -> impl Iterator<Item = u8> {
        member.iter().filter(|byte| !matches!(byte, b' ' | b'\t')).map(u8::to_ascii_lowercase)
    }
    bare(one).eq(bare(other))
}

/// The language that a client prefers to all others; `None` if there is no single one.
#[must_use]
pub fn preferred(request: &Message) -> Option<&[u8]> {
    let mut best: Option<&[u8]> = None;
    let mut most = 0;
    for member in request.get_all("Accept-Language").flat_map(members).take(COMPARED_LANGUAGES_MAX) {
        let (range, parameters) = split_unquoted(member, b';');
        let weight = thousandths(parameters)?;
        if weight > most {
            (best, most) = (Some(range.trim_ascii()), weight);
        } else if weight == most {
            best = None;
        }
    }
    best.filter(|range| *range != b"*")
}

/// The weight in the parameters of a member, 1000 if there is none; `None` if it is unreadable.
fn thousandths(parameters: &[u8]) -> Option<u16> {
    let parameters = parameters.trim_ascii();
    if parameters.is_empty() {
        return Some(1000);
    }
    let (name, value) = split_unquoted(parameters, b'=');
    let (whole, fraction) = split_unquoted(value.trim_ascii(), b'.');
    let is_readable =
        name.trim_ascii().eq_ignore_ascii_case(b"q") && fraction.len() <= 3 && fraction.iter().all(u8::is_ascii_digit);
    let digit = |at: usize| u16::from(fraction.get(at).map_or(0, |digit| digit - b'0'));
    match whole {
        b"0" if is_readable => Some(digit(0) * 100 + digit(1) * 10 + digit(2)),
        b"1" if is_readable => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_language_is_the_one_with_the_largest_weight() {
        let preferred = |value: &str| {
            let mut request = Message::new();
            request.append(b"Accept-Language", value.as_bytes());
            preferred(&request).map(|language| String::from_utf8(language.to_vec()).unwrap())
        };
        for (value, expected) in [
            ("de", Some("de")),
            ("fr;q=0.5, de;q=1.0", Some("de")),
            ("fr;q=0.5, de", Some("de")),
            ("fr; q=0.51, de;q=0.5", Some("fr")),
            ("fr;q=0.5, de;q=0.5, en;q=0.9", Some("en")),
            ("en;q=0.9, fr;q=0.5, de;q=0.5", Some("en")),
            ("en, de", None),
            ("*", None),
            ("en;q=0", None),
            ("en;q=x, de;q=0.1", None),
            ("", None),
        ] {
            assert_eq!(preferred(value).as_deref(), expected, "{value}");
        }
    }
}
