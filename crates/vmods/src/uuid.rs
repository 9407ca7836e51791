//! uuid: universally unique identifiers, versions 1, 3, 4 and 5. Source: RFC 9562.
//!
//! Compat: as libvmod-uuid for Varnish 6 and later, including the names of namespaces. The node of version 1 is not the
//! machine's address, which should not become public, but a random number chosen when the process starts, as the standard
//! allows; its clock never returns the same time twice.

use crate::arguments::Arguments;
use crate::context::VmodContext;
use crate::done;
use parking_lot::Mutex;
use sha1::{Digest, Sha1};
use surface::tag::Tag;
use uuid::{Builder, Uuid};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Steps of 100 ns from 15 October 1582, where version 1 starts counting, to 1970.
const STEPS_TO_1970: u64 = 0x01b2_1dd2_1381_4000;

/// What version 1 needs to be unique.
#[derive(Debug)]
pub(crate) struct Clock {
    node: [u8; 6],
    sequence: u16,
    /// The time used last, in steps of 100 ns.
    last: Mutex<u64>,
}

impl Default for Clock {
    fn default() -> Clock {
        let [a, b, c, d, e, f, high, low, ..] = *Uuid::new_v4().as_bytes();
        // The lowest bit of the first byte marks the node as not being a machine's address.
        Clock { node: [a | 1, b, c, d, e, f], sequence: u16::from_be_bytes([high, low]), last: Mutex::new(0) }
    }
}

impl Clock {
    /// A time at or after `now` (seconds since 1970) that was not used before.
    fn moment(&self, now: f64) -> u64 {
        // `as` saturates.
        let steps = STEPS_TO_1970.saturating_add((now * 1e7) as u64);
        let mut last = self.last.lock();
        *last = steps.max(last.saturating_add(1));
        *last
    }
}

fn text(uuid: Uuid, scratch: &mut Scratch) -> Value {
    let mut room = Uuid::encode_buffer();
    Value::Text(scratch.put(uuid.hyphenated().encode_lower(&mut room).as_bytes()))
}

/// `uuid.uuid()`, `uuid.uuid_v1()`
pub(crate) fn by_time(context: &mut dyn VmodContext, scratch: &mut Scratch) -> Value {
    let clock = &context.shared().uuid_clock;
    let uuid = Builder::from_gregorian_timestamp(clock.moment(context.now()), clock.sequence, &clock.node).into_uuid();
    text(uuid, scratch)
}

/// `uuid.uuid_v4()`
pub(crate) fn by_chance(scratch: &mut Scratch) -> Value {
    text(Uuid::new_v4(), scratch)
}

/// `uuid.uuid_v3()` and `uuid.uuid_v5()`: if the namespace is invalid, logs that and returns an unset string.
pub(crate) fn by_name(
    version: u8,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let (space, name) = (arguments.text(0), arguments.text(1));
    if !space.is_set() || !name.is_set() {
        return Err(Failure(format!("uuid.uuid_v{version}(): namespace or name is NULL")));
    }
    let Some(space) = namespace(scratch.get(space)) else {
        let text = format!("vmod uuid error: {:?} is no namespace", vcl_run::line::shown(scratch.get(space)));
        context.log(Tag::VCLError, text.as_bytes());
        return done(Value::Text(Text::UNSET));
    };
    let uuid = named(version, space, scratch.get(name));
    done(text(uuid, scratch))
}

fn named(version: u8, space: Uuid, name: &[u8]) -> Uuid {
    if version == 3 {
        let hash = md5::Md5::new().chain_update(space.as_bytes()).chain_update(name).finalize();
        return Builder::from_md5_bytes(hash.into()).into_uuid();
    }
    let hash = Sha1::new().chain_update(space.as_bytes()).chain_update(name).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_sha1_bytes(bytes).into_uuid()
}

fn namespace(name: &[u8]) -> Option<Uuid> {
    match name {
        b"nil" => Some(Uuid::nil()),
        b"ns:DNS" => Some(Uuid::NAMESPACE_DNS),
        b"ns:URL" => Some(Uuid::NAMESPACE_URL),
        b"ns:OID" => Some(Uuid::NAMESPACE_OID),
        b"ns:X500" => Some(Uuid::NAMESPACE_X500),
        text if text.len() == 36 => Uuid::try_parse_ascii(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in Appendix A of the standard.
    #[test]
    fn names_give_the_same_identifier_everywhere() {
        let shown =
            |version, space: &str| named(version, namespace(space.as_bytes()).unwrap(), b"www.example.com").to_string();
        for space in ["ns:DNS", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"] {
            assert_eq!(shown(3, space), "5df41881-3aed-3515-88a7-2f4a814cf09e");
            assert_eq!(shown(5, space), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
        }
        for wrong in ["", "ns:dns", "6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430cx"] {
            assert_eq!(namespace(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_new_moments() {
        let clock = Clock::default();
        let moments = [1000.0, 1000.0, 1000.0, 5.0, f64::NAN, -1.0, 2000.0].map(|now| clock.moment(now));
        assert!(moments.is_sorted_by(|one, next| one < next), "{moments:?}");
        assert_eq!(moments[6], STEPS_TO_1970 + 20_000_000_000);
    }
}
