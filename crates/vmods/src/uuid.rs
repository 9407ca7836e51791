//! uuid: universally unique identifiers, versions 1, 3, 4 and 5. Source: RFC 9562.
//!
//! Compat: as libvmod-uuid for Varnish 6 and later, including the names of namespaces. The node of
//! version 1 is not the machine's address, which should not become public, but a random number
//! chosen when the process starts, as the standard allows; its clock never returns the same time
//! twice. Next file: `uuid/clock.rs`.

mod clock;

pub(crate) use clock::Clock;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use sha1::{Digest, Sha1};
use surface::tag::Tag;
use surface::vmod::functions::uuid::Function;
use uuid::{Builder, Uuid};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::Uuid | Function::UuidV1 => done(by_time(context, scratch)),
        Function::UuidV3 => by_name(3, context, arguments, scratch),
        Function::UuidV4 => done(by_chance(scratch)),
        Function::UuidV5 => by_name(5, context, arguments, scratch),
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

/// `uuid.uuid_v3()` and `uuid.uuid_v5()`: if the namespace is invalid, logs that and returns an
/// unset string.
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
}
