//! Values that `varnishhist` displays: the side of the records, the tag, prefix and field, and the
//! range in powers of ten.

use shm::read::query::nth_field;
use shm::read::record::Record;
use shm::read::tags::TagSet;
use surface::tag::{TAGS, Tag};

use crate::transactions::print::is_unsafe;

/// Lowest and highest power of ten if a definition gives none.
const POWERS_DEFAULT: (i32, i32) = (-6, 3);
/// No number is beyond these powers of ten.
const POWERS_MAX: i32 = 308;
/// Highest number of a field.
const FIELD_MAX: usize = 1000;

/// Side of the transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Backend,
    /// Client, including requests of ESI.
    Esi,
}

/// Unit of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Seconds,
    Bytes,
}

/// A value to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Profile {
    pub name: String,
    pub side: Side,
    pub tag: Tag,
    pub prefix: String,
    /// Counted from 1.
    pub field: usize,
    /// The histogram's limits, in powers of ten.
    pub low: i32,
    pub high: i32,
    /// In words; empty for a value that the user defined.
    pub text: &'static str,
    pub unit: Option<Unit>,
}

/// A predefined profile.
pub(super) struct ProfileRow {
    pub name: &'static str,
    side: Side,
    tag: Tag,
    prefix: &'static str,
    field: usize,
    low: i32,
    high: i32,
    /// Description of the displayed value.
    pub text: &'static str,
}

const fn row(
    name: &'static str,
    side: Side,
    tag: Tag,
    prefix: &'static str,
    field: usize,
    powers: (i32, i32),
    text: &'static str,
) -> ProfileRow {
    ProfileRow { name, side, tag, prefix, field, low: powers.0, high: powers.1, text }
}

/// The predefined profiles; the first is the default.
pub(super) static PROFILES: &[ProfileRow] = &[
    row("responsetime", Side::Client, Tag::Timestamp, "Process:", 3, (-6, 3), "seconds until a response is ready"),
    row("reqbodytime", Side::Client, Tag::Timestamp, "ReqBody:", 3, (-6, 3), "seconds until a request body is read"),
    row("size", Side::Client, Tag::ReqAcct, "", 5, (1, 8), "bytes of response bodies"),
    row("Bereqtime", Side::Backend, Tag::Timestamp, "Bereq:", 3, (-6, 3), "seconds until a backend request is sent"),
    row("Beresptime", Side::Backend, Tag::Timestamp, "Beresp:", 3, (-6, 3), "seconds until a backend answers"),
    row(
        "BerespBodytime",
        Side::Backend,
        Tag::Timestamp,
        "BerespBody:",
        3,
        (-6, 3),
        "seconds until a backend's body is there",
    ),
    row("Besize", Side::Backend, Tag::BereqAcct, "", 5, (1, 8), "bytes of backend response bodies"),
];

impl ProfileRow {
    fn profile(&self) -> Profile {
        Profile {
            name: self.name.to_owned(),
            side: self.side,
            tag: self.tag,
            prefix: self.prefix.to_owned(),
            field: self.field,
            low: self.low,
            high: self.high,
            text: self.text,
            unit: Some(if self.text.starts_with("bytes") { Unit::Bytes } else { Unit::Seconds }),
        }
    }
}

impl Profile {
    /// The default profile.
    pub fn default() -> Profile {
        PROFILES[0].profile()
    }

    /// A predefined profile's name, or `[side:]tag:[prefix]:field[:low:high]`. The error is a
    /// message.
    pub fn parse(text: &str) -> Result<Profile, String> {
        if !text.contains(':') {
            let row = PROFILES.iter().find(|row| row.name == text);
            return row.map(ProfileRow::profile).ok_or(format!("-P: No such profile '{text}'"));
        }
        let wrong = || format!("-P: '{text}' is not a valid profile name or definition");
        let (side, rest) = match text.split_once(':') {
            Some(("b", rest)) => (Side::Backend, rest),
            Some(("c", rest)) => (Side::Client, rest),
            Some(("E", rest)) => (Side::Esi, rest),
            _ => (Side::Client, text),
        };
        let words: Vec<&str> = rest.split(':').collect();
        // Compat: an unknown tag is reported before any other mistake.
        let tag = tag_of(words[0]).ok_or(format!("-P: '{text}' is not a valid tag name"))?;
        if tag.row().binary || is_unsafe(tag) {
            return Err(format!("-P: '{text}' is an unsafe or binary record"));
        }
        let [_, prefix, field, powers @ ..] = words.as_slice() else { return Err(wrong()) };
        let field = field.parse().ok().filter(|field| (1..=FIELD_MAX).contains(field)).ok_or_else(wrong)?;
        let (low, high) = match powers {
            [] => POWERS_DEFAULT,
            [low, high] => (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        let profile = Profile {
            name: "custom".to_owned(),
            side,
            tag,
            prefix: (*prefix).to_owned(),
            field,
            low,
            high,
            text: "",
            unit: None,
        };
        profile.check().map_err(|()| wrong())
    }

    /// The profile, if its limits make sense.
    pub fn check(self) -> Result<Profile, ()> {
        let possible = -POWERS_MAX..=POWERS_MAX;
        let fits = possible.contains(&self.low) && possible.contains(&self.high) && self.low < self.high;
        if fits { Ok(self) } else { Err(()) }
    }

    /// The value in a record, if it has one.
    pub fn value(&self, record: &Record) -> Option<f64> {
        if record.tag() != Some(self.tag) {
            return None;
        }
        let text = record.text();
        if !text.starts_with(self.prefix.as_bytes()) {
            return None;
        }
        let field = std::str::from_utf8(nth_field(text, self.field)?).ok()?;
        field.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
    }
}

/// The tag with this name, or with this unambiguous beginning.
fn tag_of(name: &str) -> Option<Tag> {
    if name.contains(['*', ',']) {
        return None;
    }
    let set = TagSet::parse_list(name).ok()?;
    TAGS.iter().map(|row| row.tag).find(|tag| set.contains(*tag as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::log::LogId;

    fn value(profile: &Profile, text: &[u8]) -> Option<f64> {
        profile.value(&Record { number: profile.tag as u8, id: LogId::NONE, payload: text })
    }

    #[test]
    fn the_value_is_a_field_of_the_record_that_the_profile_names() {
        let time = Profile::default();
        assert_eq!(value(&time, b"Process: 1.5 0.000250 0.000010\0"), Some(0.00025));
        assert_eq!(value(&time, b"Resp: 1.5 0.000250 0.000010\0"), None);
        for nothing in
            [&b"Process: 1.5\0"[..], b"Process: 1 nan 1\0", b"Process: 1 inf\0", b"Process: 1 0.0\0", b"\xff"]
        {
            assert_eq!(value(&time, nothing), None);
        }
        let size = Profile::parse("size").unwrap();
        assert_eq!(value(&size, b"82 0 82 304 6962 7266\0"), Some(6962.0));
        let other = Record { number: Tag::ReqURL as u8, id: LogId::NONE, payload: b"1 2 3 4 5\0" };
        assert_eq!(size.value(&other), None);
    }

    #[test]
    fn a_definition_says_side_tag_prefix_field_and_edges() {
        let profile = Profile::parse("b:BereqAcct::5:-1:4").unwrap();
        let wanted = (Side::Backend, Tag::BereqAcct, "", 5, -1, 4);
        assert_eq!(
            (profile.side, profile.tag, profile.prefix.as_str(), profile.field, profile.low, profile.high),
            wanted
        );
        let short = Profile::parse("timestamp:Resp:2").unwrap();
        assert_eq!((short.side, short.prefix.as_str(), short.low, short.high), (Side::Client, "Resp", -6, 3));
        assert_eq!(Profile::parse("E:ReqAcct::3").unwrap().side, Side::Esi);
    }

    #[test]
    fn invalid_profiles_get_one_line_with_the_reason() {
        for (text, wanted) in [
            ("foo", "-P: No such profile 'foo'"),
            ("foo:bar", "-P: 'foo:bar' is not a valid tag name"),
            ("c:Timestamp", "-P: 'c:Timestamp' is not a valid profile name or definition"),
            ("nosuch::3", "not a valid tag name"),
            ("Hash::1", "is an unsafe or binary record"),
            ("H2RxBody::1", "is an unsafe or binary record"),
            ("b:Timestamp:x", "not a valid profile"),
            ("Timestamp:x:0", "not a valid profile"),
            ("Timestamp:x:-1", "not a valid profile"),
            ("Timestamp:x:1:3", "not a valid profile"),
            ("Timestamp:x:1:3:3", "not a valid profile"),
            ("Timestamp:x:1:-9999999:3", "not a valid profile"),
        ] {
            let message = Profile::parse(text).unwrap_err();
            assert!(message.contains(wanted) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
