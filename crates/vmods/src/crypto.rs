//! crypto: hashes, keyed hashes, comparison in constant time, and signatures with RSA.
//!
//! Compat: three VMODs share this name. Here are the functions of the one for hashes (`hash_…`,
//! `hmac_…`; as in digest), `hash()` and `hex_encode()`, and the objects `key` and `verifier` of
//! the one for signatures, with public keys. Omitted: private keys, which are not for a process
//! that reads requests, and MD4, RIPEMD-160 and Whirlpool. `equal()` is our own.

mod messages;

pub(crate) use messages::Messages;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::digest::{self, hexadecimal};
use crate::instances::Instances;
use crate::keys::{PublicKey, Signing};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use hmac::Hmac;
use md5::Md5;
use parking_lot::Mutex;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use surface::vmod::functions::crypto::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::CryptoHashMd5 => done(digest::hash(arguments, scratch, digest::of::<Md5>)),
        Function::CryptoHashSha1 => done(digest::hash(arguments, scratch, digest::of::<Sha1>)),
        Function::CryptoHashSha224 => done(digest::hash(arguments, scratch, digest::of::<Sha224>)),
        Function::CryptoHashSha256 => done(digest::hash(arguments, scratch, digest::of::<Sha256>)),
        Function::CryptoHashSha384 => done(digest::hash(arguments, scratch, digest::of::<Sha384>)),
        Function::CryptoHashSha512 => done(digest::hash(arguments, scratch, digest::of::<Sha512>)),
        Function::CryptoHmacMd5 => done(digest::keyed::<Hmac<Md5>>(arguments, scratch)),
        Function::CryptoHmacSha1 => done(digest::keyed::<Hmac<Sha1>>(arguments, scratch)),
        Function::CryptoHmacSha224 => done(digest::keyed::<Hmac<Sha224>>(arguments, scratch)),
        Function::CryptoHmacSha256 => done(digest::keyed::<Hmac<Sha256>>(arguments, scratch)),
        Function::CryptoHmacSha384 => done(digest::keyed::<Hmac<Sha384>>(arguments, scratch)),
        Function::CryptoHmacSha512 => done(digest::keyed::<Hmac<Sha512>>(arguments, scratch)),
        Function::CryptoHash => done(hash(arguments, scratch)),
        Function::CryptoHexEncode => hex_encode(arguments, scratch),
        Function::CryptoEqual => done(equal(arguments, scratch)),
        Function::CryptoKey => {
            context.instances().keep_object(instance, KeyObject::default());
            done(Value::Void)
        }
        Function::CryptoKeyUse => done(use_blob(instance, scratch)),
        Function::CryptoKeyPemPubkey => pem_public_key(context, instance, arguments, scratch),
        Function::CryptoKeyRsa => rsa(context, instance, arguments, scratch),
        Function::CryptoVerifier => create(context, instance, arguments, scratch),
        Function::CryptoVerifierUpdate | Function::CryptoVerifierUpdateBlob => {
            update(context, instance, arguments, scratch)
        }
        Function::CryptoVerifierReset => done(reset(context, instance)),
        Function::CryptoVerifierValid => done(valid(context, instance, arguments, scratch)),
    }
}

/// `crypto.hash()`: the bytes of a hash.
fn hash(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let text = scratch.get(arguments.text(1));
    let bytes = match scratch.get(arguments.text(0)) {
        b"md5" => digest::of::<Md5>(text),
        b"sha1" => digest::of::<Sha1>(text),
        b"sha224" => digest::of::<Sha224>(text),
        b"sha384" => digest::of::<Sha384>(text),
        b"sha512" => digest::of::<Sha512>(text),
        _ => digest::of::<Sha256>(text),
    };
    Value::Blob(scratch.put(&bytes))
}

/// `crypto.hex_encode()`
fn hex_encode(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let bytes = scratch.get(arguments.text(0));
    scratch.check_room(2 * bytes.len())?;
    let digits = hexadecimal(b"", bytes);
    done(Value::Text(scratch.put(&digits)))
}

/// `crypto.equal()`: compares in a time that depends on the lengths only. An unset string equals
/// nothing.
fn equal(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let (one, other) = (arguments.text(0), arguments.text(1));
    let is_same = verify_slices_are_equal(scratch.get(one), scratch.get(other)).is_ok();
    Value::Bool(one.is_set() && other.is_set() && is_same)
}

/// The content of a key object.
#[derive(Default)]
struct KeyObject {
    key: Mutex<Option<PublicKey>>,
}

/// Start of the blob that `.use()` returns; the object's number follows.
const MARK: &[u8; 12] = b"crypto key \0";

/// `.use()`
fn use_blob(instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let start = scratch.begin();
    scratch.extend(MARK);
    scratch.extend(&instance.unwrap_or(u32::MAX).to_le_bytes());
    Value::Blob(scratch.end(start))
}

fn key_of(instances: &Instances, blob: &[u8]) -> Option<PublicKey> {
    let number = u32::from_le_bytes(blob.strip_prefix(MARK)?.try_into().ok()?);
    instances.object::<KeyObject>(Some(number))?.key.lock().clone()
}

fn keep_key(
    context: &dyn VmodContext,
    instance: Option<u32>,
    method: &str,
    key: Option<PublicKey>,
) -> Result<Called, Failure> {
    match (key, context.instances().object::<KeyObject>(instance)) {
        (Some(key), Some(object)) => {
            *object.key.lock() = Some(key);
            done(Value::Void)
        }
        _ => Err(Failure(format!("crypto key.{method}(): not a public key of RSA with 2048 to 8192 bits"))),
    }
}

/// `.pem_pubkey()`
fn pem_public_key(
    context: &dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    keep_key(context, instance, "pem_pubkey", rsa_of_pem(scratch.get(arguments.text(0))))
}

/// `.rsa()`
fn rsa(
    context: &dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let key = PublicKey::rsa(scratch.get(arguments.text(0)), scratch.get(arguments.text(1)));
    keep_key(context, instance, "rsa", key)
}

fn rsa_of_pem(text: &[u8]) -> Option<PublicKey> {
    let key = PublicKey::from_pem(std::str::from_utf8(text).ok()?)?;
    matches!(key, PublicKey::Rsa { .. }).then_some(key)
}

/// The content of a verifier.
struct Verifier {
    key: PublicKey,
    signing: Signing,
}

/// The constructor of `crypto.verifier`.
fn create(
    context: &dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let fault = |text: &str| Err(Failure(format!("crypto.verifier(): {text}")));
    let signing = match scratch.get(arguments.text(0)) {
        b"sha1" => Signing::RsaSha1,
        b"sha256" => Signing::RsaSha256,
        b"sha384" => Signing::RsaSha384,
        b"sha512" => Signing::RsaSha512,
        _ => return fault("only the digests sha1, sha256, sha384 and sha512 are supported"),
    };
    let key = if arguments.is_given(2) {
        key_of(context.instances(), scratch.get(arguments.text(2)))
    } else {
        rsa_of_pem(scratch.get(arguments.text(1)))
    };
    let Some(key) = key else {
        return fault("needs a public key of RSA with 2048 to 8192 bits: pem, or key with the use() of a crypto.key");
    };
    context.instances().keep_object(instance, Verifier { key, signing });
    done(Value::Void)
}

/// `.update()`, `.update_blob()`
fn update(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let bytes = scratch.get(arguments.text(0));
    let task = context.task();
    let room_bytes = task.room_bytes(scratch);
    let messages = &mut task.kept().messages;
    if messages.bytes() + bytes.len() > room_bytes {
        return Err(Failure("crypto verifier.update(): out of memory of the request (request_memory_max)".to_owned()));
    }
    messages.add(instance, bytes);
    done(Value::Bool(true))
}

/// `.reset()`
fn reset(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    context.task().kept().messages.forget(instance);
    Value::Bool(true)
}

/// `.valid()`
fn valid(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let message = context.task().kept().messages.of(instance).to_vec();
    let is_valid = context
        .instances()
        .object::<Verifier>(instance)
        .is_some_and(|verifier| verifier.key.verifies(verifier.signing, &message, scratch.get(arguments.text(0))));
    Value::Bool(is_valid)
}
