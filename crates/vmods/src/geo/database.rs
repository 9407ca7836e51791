//! One database, and the values in it. Source: MaxMind DB file format 2.0.

use crate::watched::Parsed;
use ::maxminddb::{PathElement, Reader};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Formatter, Write};
use std::net::IpAddr;
use surface::limits::GEO_FILE_BYTES_MAX;

/// A database.
pub(crate) struct Database(Reader<Vec<u8>>);

impl Parsed for Database {
    const BYTES_MAX: u64 = GEO_FILE_BYTES_MAX;
    const KEEPS_LAST: bool = true;

    fn parse(content: Vec<u8>) -> Result<Database, String> {
        Reader::from_source(content).map(Database).map_err(|_| "is not a database in the MaxMind DB format".to_owned())
    }
}

/// Most steps of a path.
const STEPS_MAX: usize = 9;

/// Result of a lookup without a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// The path is empty or has too many steps.
    Path,
    /// The database has nothing for the address.
    Address,
    /// It has nothing at the path.
    Data,
    /// A map or an array is at the path.
    Kind,
}

/// A value of a database.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Found {
    Text(String),
    Bytes(Vec<u8>),
    Plain(String),
    /// A map or an array.
    Container,
}

impl Found {
    /// The value as text, or as JSON.
    pub(crate) fn shown(self, json: bool) -> String {
        match self {
            Found::Text(text) if json => serde_json::Value::String(text).to_string(),
            Found::Text(text) | Found::Plain(text) => text,
            Found::Bytes(bytes) => {
                let mut digits = String::with_capacity(2 * bytes.len());
                bytes.iter().for_each(|byte| _ = write!(digits, "{byte:02X}"));
                if json { format!("\"{digits}\"") } else { digits }
            }
            Found::Container => String::new(),
        }
    }
}

impl Database {
    /// The value at a path of keys and indexes, separated by slashes.
    pub(crate) fn find(&self, address: IpAddr, path: &str) -> Result<Found, Missing> {
        let steps: Vec<&str> = path.split('/').collect();
        if path.is_empty() || steps.len() > STEPS_MAX {
            return Err(Missing::Path);
        }
        // Also an IPv6 address in a database of IPv4 ones.
        let result = self.0.lookup(address).map_err(|_| Missing::Address)?;
        if !result.has_data() {
            return Err(Missing::Address);
        }
        // A number is an index, or else a key.
        for with_indexes in [true, false] {
            let index = |step: &str| step.parse::<usize>().ok().filter(|_| with_indexes);
            let path: Vec<PathElement<'_>> =
                steps.iter().map(|step| index(step).map_or(PathElement::Key(step), PathElement::Index)).collect();
            // A path through a value without parts is an error, as a damaged database is.
            match result.decode_path::<Found>(&path) {
                Ok(Some(Found::Container)) => return Err(Missing::Kind),
                Ok(Some(value)) => return Ok(value),
                Ok(None) | Err(_) => {}
            }
        }
        Err(Missing::Data)
    }
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct FoundVisitor;

impl<'de> Visitor<'de> for FoundVisitor {
    type Value = Found;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Found, E> {
        Ok(Found::Plain(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Found, E> {
        Ok(Found::Plain(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Found, E> {
        Ok(Found::Plain(value.to_string()))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Found, E> {
        Ok(Found::Plain(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Found, E> {
        Ok(Found::Plain(format!("{value:.6}")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Found, E> {
        Ok(Found::Text(value.to_owned()))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Found, E> {
        Ok(Found::Bytes(value.to_vec()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Found::Container)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of a few networks, which the example in the reference uses too.
    const DATABASE: &[u8] = include_bytes!("../../../surface/src/vmod/examples/city.mmdb");

    fn find(address: &str, path: &str) -> Result<String, Missing> {
        let database = Database::parse(DATABASE.to_vec()).unwrap();
        database.find(address.parse().unwrap(), path).map(|found| found.shown(false))
    }

    #[test]
    fn values_of_all_kinds_are_text() {
        for (path, expected) in [
            ("country/iso_code", "GB"),
            ("city/names/en", "London"),
            ("subdivisions/0/iso_code", "ENG"),
            ("location/latitude", "51.514200"),
            ("location/accuracy_radius", "100"),
            ("traits/is_anonymous", "true"),
            ("7", "seven"),
        ] {
            assert_eq!(find("192.0.2.7", path).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(find("2001:db8::1", "country/iso_code").as_deref(), Ok("NL"));
        let database = Database::parse(DATABASE.to_vec()).unwrap();
        let name = database.find("2001:db8::1".parse().unwrap(), "city/names/en").unwrap();
        assert_eq!(name.shown(true), r#""A \"quoted\" name""#);
    }

    #[test]
    fn missing_values_have_a_reason() {
        assert_eq!(find("198.51.100.1", "country/iso_code"), Err(Missing::Address));
        for path in ["", "a/b/c/d/e/f/g/h/i/j"] {
            assert_eq!(find("192.0.2.7", path), Err(Missing::Path), "{path}");
        }
        for path in ["x", "country/x", "subdivisions/9/iso_code", "country//x"] {
            assert!(find("192.0.2.7", path) == Err(Missing::Data), "{path}");
        }
        for path in ["country", "subdivisions"] {
            assert_eq!(find("192.0.2.7", path), Err(Missing::Kind), "{path}");
        }
    }

    #[test]
    fn damaged_databases_give_nothing_and_no_panic() {
        assert!(Database::parse(Vec::new()).is_err());
        assert!(Database::parse(vec![0; 10_000]).is_err());
        for end in (0..DATABASE.len()).step_by(3) {
            let _ = Database::parse(DATABASE[..end].to_vec());
        }
        for place in 0..DATABASE.len() {
            for flip in [0xff, 0x80, 0x01, 0x20] {
                let mut bytes = DATABASE.to_vec();
                bytes[place] ^= flip;
                let Ok(database) = Database::parse(bytes) else { continue };
                for (address, path) in [("192.0.2.7", "subdivisions/0/iso_code"), ("2001:db8::1", "city/names/en")] {
                    let _ = database.find(address.parse().unwrap(), path);
                }
            }
        }
    }
}
