//! Reading of single values from a JSON text, without building a tree of it.
//!
//! A tree takes up to eighty times the memory of its text, and a client may send the text. So the
//! text is kept, and each question walks it. Time is proportional to the text, which its users
//! bound; nesting takes no stack. Of names that occur twice, the last one counts, as in most
//! parsers. Source: RFC 8259.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::{self, Formatter};

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A member of an object.
    Name(String),
    /// An element of an array; negative from the end.
    Index(i64),
}

/// Kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// True if the text is one JSON value.
pub(crate) fn is_valid(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The value at a path of a valid text, as JSON; `None` if there is none.
pub(crate) fn find<'a>(text: &'a str, steps: &[Step]) -> Option<&'a str> {
    let mut value = text.trim_ascii();
    for step in steps {
        let length = match step {
            Step::Index(index) if *index < 0 => length(value)?,
            _ => 0,
        };
        let mut deserializer = serde_json::Deserializer::from_str(value);
        value = Finder { step, length }.deserialize(&mut deserializer).ok()??;
    }
    Some(value)
}

/// The kind of a value as JSON.
pub(crate) fn kind(value: &str) -> Kind {
    match value.trim_ascii().as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't') => Kind::True,
        Some(b'f') => Kind::False,
        Some(b'n') | None => Kind::Null,
        Some(_) => Kind::Number,
    }
}

/// Number of members or elements; `None` for other values.
pub(crate) fn length(value: &str) -> Option<usize> {
    let mut deserializer = serde_json::Deserializer::from_str(value);
    deserializer.deserialize_any(Counter).ok().flatten()
}

/// The content of a string, or the JSON of another value.
pub(crate) fn plain(value: &str) -> Cow<'_, str> {
    match kind(value) {
        Kind::String => serde_json::from_str::<String>(value).map_or(Cow::Borrowed(value), Cow::Owned),
        _ => Cow::Borrowed(value),
    }
}

/// The value of a member as text; unset for none and `null`.
pub(crate) fn member(text: &str, name: &str) -> Option<String> {
    let value = find(text, &[Step::Name(name.to_owned())])?;
    (kind(value) != Kind::Null).then(|| plain(value).into_owned())
}

struct Finder<'p> {
    step: &'p Step,
    /// Number of elements, if the index is negative.
    length: usize,
}

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Visits of values that have no members or elements.
macro_rules! scalars_are_none {
    () => {
        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    };
}

impl<'de> Visitor<'de> for Finder<'_> {
    type Value = Option<&'de str>;

    scalars_are_none!();

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let wanted = match self.step {
            Step::Name(name) => Some(name.as_str()),
            Step::Index(_) => None,
        };
        while let Some(is_it) = members.next_key_seed(NameIs(wanted))? {
            if is_it {
                found = Some(members.next_value::<&RawValue>()?.get());
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let wanted = match self.step {
            Step::Index(index @ 0..) => usize::try_from(*index).ok(),
            Step::Index(index) => self.length.checked_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
            Step::Name(_) => None,
        };
        let (mut found, mut place) = (None, 0);
        loop {
            if wanted == Some(place) {
                let Some(element) = elements.next_element::<&RawValue>()? else { return Ok(None) };
                found = Some(element.get());
            } else if elements.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            place += 1;
        }
    }
}

/// Reads a name and compares it, without keeping it.
struct NameIs<'n>(Option<&'n str>);

impl<'de> DeserializeSeed<'de> for NameIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(self.0 == Some(name))
    }
}

struct Counter;

impl<'de> Visitor<'de> for Counter {
    type Value = Option<usize>;

    scalars_are_none!();

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut count = 0;
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Some(count))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut count = 0;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Some(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#" {"a": {"b": [1, "two", {"c": null}, -4.5e1], "é\n": "x\u0041"}, "a\u0062": true, "d": 1, "d": 2} "#;

    fn at(steps: &[Step]) -> Option<&'static str> {
        find(TEXT, steps)
    }

    fn name(name: &str) -> Step {
        Step::Name(name.to_owned())
    }

    #[test]
    fn values_are_found_by_their_path() {
        assert!(is_valid(TEXT));
        let b = [name("a"), name("b")];
        let element = |index| find(at(&b).unwrap(), &[Step::Index(index)]);
        assert_eq!(element(0), Some("1"));
        assert_eq!(element(1), Some("\"two\""));
        assert_eq!(element(-1), Some("-4.5e1"));
        assert_eq!(element(-4), Some("1"));
        assert_eq!((element(4), element(-5), element(i64::MIN), element(i64::MAX)), (None, None, None, None));
        assert_eq!(plain(at(&[name("a"), name("é\n")]).unwrap()), "xA");
        assert_eq!(at(&[name("ab")]), Some("true"), "names are compared after decoding");
        assert_eq!(at(&[name("d")]), Some("2"), "the last one counts");
        assert_eq!((at(&[name("x")]), at(&[name("d"), name("x")]), at(&[Step::Index(0)])), (None, None, None));
        assert_eq!(at(&[]), Some(TEXT.trim_ascii()));
    }

    #[test]
    fn kinds_and_lengths_are_those_of_json() {
        let kinds = [("{}", Kind::Object), ("[1]", Kind::Array), ("\"\"", Kind::String), ("true", Kind::True)];
        for (text, expected) in
            kinds.into_iter().chain([("false", Kind::False), ("null", Kind::Null), ("-1", Kind::Number)])
        {
            assert_eq!(kind(text), expected, "{text}");
        }
        assert_eq!(
            (length("{\"a\":1,\"a\":2}"), length("[1,[2,3]]"), length("7"), length("\"abc\"")),
            (Some(2), Some(2), None, None)
        );
    }

    #[test]
    fn damaged_texts_are_refused_and_deep_ones_take_no_stack() {
        for text in ["", " ", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\u{1}\"", "{\"a\":1}x"] {
            assert!(!is_valid(text), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(is_valid(&deep));
        assert_eq!(find(&deep, &[Step::Index(0), Step::Index(-1)]).map(str::len), Some(deep.len() - 4));
        assert_eq!(length(&deep), Some(1));
        let long = format!("[{}0]", "0,".repeat(100_000));
        assert_eq!(find(&long, &[Step::Index(-1)]), Some("0"));
    }
}
