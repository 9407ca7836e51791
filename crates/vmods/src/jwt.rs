//! jwt: JSON Web Tokens, signed. Source: RFC 7515 (JWS), RFC 7519 (JWT), RFC 7518, RFC 8037, RFC
//! 8725 (practices).
//!
//! Compat: the reader and writer that published VCL uses: `parse()`, `set_key()`, `verify()`, the
//! claims. `verify()` checks `exp` and `nbf` too. Own additions: `skew`, `set_jwk_file()`,
//! `get_claim()`.
//!
//! *Invariants:* the algorithm is the one that VCL names, `none` is not one, and a key is of one
//! kind: a public key is never a shared secret. A token with `crit` is refused. A token is read
//! once, so that the verified bytes are those that are read. Reading order: `jwt/algorithm` →
//! `jwt/key_set` → `jwt/token` → `jwt/writer`.

mod algorithm;
mod draft;
mod key_set;
mod token;
mod tokens;
mod writer;

pub(crate) use key_set::KeySet;
pub(crate) use tokens::Tokens;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::{Finish, VmodContext};
use crate::remarks::log_remarks;
use crate::watched::Content;
use algorithm::Algorithm;
use key_set::Key;
use parking_lot::Mutex;
use std::sync::Arc;
use surface::limits::JWT_KEY_BYTES_MAX;
use surface::tag::Tag;
use surface::vcl::Method;
use surface::vmod::functions::jwt::Function;
use token::Token;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// The keys that vcl_init has given to a reader.
#[derive(Default)]
struct ReaderObject {
    keys: Mutex<Option<Arc<KeySet>>>,
}

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::JwtReader => {
            context.instances().keep_object(instance, ReaderObject::default());
            done(Value::Void)
        }
        Function::JwtReaderParse => done(parse(context, instance, arguments, scratch)),
        Function::JwtReaderSetKey => done(set_key(context, instance, arguments, scratch)),
        Function::JwtReaderSetJwk => done(set_jwk(context, instance, arguments, scratch)),
        Function::JwtReaderSetJwkFile => set_jwk_file(context, instance, arguments, scratch),
        Function::JwtReaderVerify => done(verify(context, instance, arguments, scratch)),
        Function::JwtReaderIsJwt => {
            let is_jwt = context.task().kept().tokens.reader(instance).token.as_ref().is_some_and(Token::has_claims);
            done(Value::Bool(is_jwt))
        }
        Function::JwtReaderGetAlg => done(text(context, instance, scratch, |token| token.header("alg"))),
        Function::JwtReaderGetTyp => done(text(context, instance, scratch, |token| token.header("typ"))),
        Function::JwtReaderGetKid => done(text(context, instance, scratch, |token| token.header("kid"))),
        Function::JwtReaderGetAud => done(text(context, instance, scratch, |token| token.claim("aud"))),
        Function::JwtReaderGetIss => done(text(context, instance, scratch, |token| token.claim("iss"))),
        Function::JwtReaderGetJti => done(text(context, instance, scratch, |token| token.claim("jti"))),
        Function::JwtReaderGetSub => done(text(context, instance, scratch, |token| token.claim("sub"))),
        Function::JwtReaderGetClaim => {
            let name = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
            done(text(context, instance, scratch, |token| token.claim(&name)))
        }
        Function::JwtReaderHasExp => done(has(context, instance, "exp")),
        Function::JwtReaderHasNbf => done(has(context, instance, "nbf")),
        Function::JwtReaderHasIat => done(has(context, instance, "iat")),
        Function::JwtReaderGetExp => done(time(context, instance, "exp")),
        Function::JwtReaderGetNbf => done(time(context, instance, "nbf")),
        Function::JwtReaderGetIat => done(time(context, instance, "iat")),
        Function::JwtReaderGetHeader => {
            done(text(context, instance, scratch, |token| Some(token.header_text().into())))
        }
        Function::JwtReaderGetHeaderEncoded => {
            done(text(context, instance, scratch, |token| Some(token.part(0).into())))
        }
        Function::JwtReaderGetPayload => {
            done(text(context, instance, scratch, |token| token.payload_text().map(Into::into)))
        }
        Function::JwtReaderGetPayloadEncoded => {
            done(text(context, instance, scratch, |token| Some(token.part(1).into())))
        }
        Function::JwtReaderGetSignature => done(text(context, instance, scratch, |token| Some(token.part(2).into()))),
        Function::JwtReaderToString => done(text(context, instance, scratch, |token| Some(token.text().into()))),
        Function::JwtWriter => done(Value::Void),
        Function::JwtWriterSetAlg => writer::set_header(context, instance, "alg", arguments, scratch),
        Function::JwtWriterSetTyp => writer::set_header(context, instance, "typ", arguments, scratch),
        Function::JwtWriterSetKid => writer::set_header(context, instance, "kid", arguments, scratch),
        Function::JwtWriterSetSub => writer::set_claim(context, instance, "sub", arguments, scratch),
        Function::JwtWriterSetIss => writer::set_claim(context, instance, "iss", arguments, scratch),
        Function::JwtWriterSetAud => writer::set_claim(context, instance, "aud", arguments, scratch),
        Function::JwtWriterSetJti => writer::set_claim(context, instance, "jti", arguments, scratch),
        Function::JwtWriterSetExp => done(writer::set_time(context, instance, "exp", arguments)),
        Function::JwtWriterSetNbf => done(writer::set_time(context, instance, "nbf", arguments)),
        Function::JwtWriterSetIat => done(writer::set_time(context, instance, "iat", arguments)),
        Function::JwtWriterFromString => done(writer::from_string(context, instance, arguments, scratch)),
        Function::JwtWriterGenerate => done(writer::generate(context, instance, arguments, scratch)),
        Function::JwtWriterError => done(writer::error(context, instance, scratch)),
    }
}

/// `.parse()`: the token, with or without `Bearer` in front; drops the one before.
fn parse(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let token = Token::parse(scratch.get(arguments.text(0)));
    let is_token = token.is_some();
    context.task().kept().tokens.reader(instance).token = token;
    Value::Bool(is_token)
}

/// Stores keys for the task, or in vcl_init for all tasks.
fn keep(context: &mut dyn VmodContext, instance: Option<u32>, keys: Option<Arc<KeySet>>) -> Value {
    let is_key = keys.is_some();
    if context.method() == Method::Init {
        if let Some(object) = context.instances().object::<ReaderObject>(instance) {
            *object.keys.lock() = keys;
        }
    } else {
        // Without a key of its own, the task must not verify with the one of vcl_init.
        context.task().kept().tokens.reader(instance).keys = Some(keys.unwrap_or_default());
    }
    Value::Bool(is_key)
}

/// `.set_key()`: a shared secret, or a public key in PEM.
fn set_key(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let key = Key::parse(scratch.get(arguments.text(0)));
    keep(context, instance, key.map(|key| Arc::new(KeySet::of(key))))
}

/// `.set_jwk()`: a JSON Web Key or a set of them.
fn set_jwk(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let text = scratch.get(arguments.text(0));
    let keys = std::str::from_utf8(text).ok().filter(|text| text.len() <= JWT_KEY_BYTES_MAX).and_then(KeySet::parse);
    keep(context, instance, keys.map(Arc::new))
}

/// `.set_jwk_file()`: a set of keys from a file, which is read again when it was replaced.
fn set_jwk_file(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let path = scratch.get(arguments.text(0)).to_vec();
    let (files, now) = (Arc::clone(&context.shared().key_sets), context.now());
    let settle = move |context: &mut dyn VmodContext, path: &[u8], content: Content<KeySet>| {
        let remarks = context.shared().key_sets.take_remarks(path);
        log_remarks(context, "jwt", path, remarks);
        keep(context, instance, content.ok())
    };
    if let Some(content) = files.current(&path, now, context.can_wait()) {
        return done(settle(context, &path, content));
    }
    if !context.can_wait() {
        let content = files.check(&path, now);
        return done(settle(context, &path, content));
    }
    let reads = Arc::clone(&context.shared().file_reads);
    context.wait(Box::pin(async move {
        let content = files.check_later(&reads, path.clone(), now).await;
        let finish: Finish = Box::new(move |context, _| Ok(settle(context, &path, content)));
        finish
    }));
    Ok(Called::Wait)
}

/// `.verify()`: true if the token has that algorithm, a right signature, and is valid now. Logs why
/// it is not.
fn verify(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let (now, skew) = (context.now(), arguments.real(1).max(0.0));
    let of_init = context.instances().object::<ReaderObject>(instance).and_then(|object| object.keys.lock().clone());
    let reader = context.task().kept().tokens.reader(instance);
    let keys = reader.keys.clone().or(of_init).unwrap_or_default();
    let found = match (&reader.token, Algorithm::named(scratch.get(arguments.text(0)))) {
        (None, _) => Err("no token was parsed"),
        (_, None) => Err("there is no such algorithm"),
        (Some(token), Some(algorithm)) => token.verify(algorithm, &keys, now, skew),
    };
    if let Err(why) = found {
        context.log(Tag::VCLLog, format!("jwt: token refused: {why}").as_bytes());
    }
    Value::Bool(found.is_ok())
}

/// A text of the token; unset without one.
fn text(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    scratch: &mut Scratch,
    read: impl Fn(&Token) -> Option<String>,
) -> Value {
    let token = context.task().kept().tokens.reader(instance).token.as_ref();
    let found = token.and_then(read).map(|text| scratch.put(text.as_bytes()));
    Value::Text(found.unwrap_or(Text::UNSET))
}

fn number(context: &mut dyn VmodContext, instance: Option<u32>, name: &str) -> Option<f64> {
    context.task().kept().tokens.reader(instance).token.as_ref()?.number(name)
}

fn has(context: &mut dyn VmodContext, instance: Option<u32>, name: &str) -> Value {
    Value::Bool(number(context, instance, name).is_some())
}

/// A claim that is a time; 1970 without one.
fn time(context: &mut dyn VmodContext, instance: Option<u32>, name: &str) -> Value {
    Value::Time(number(context, instance, name).unwrap_or(0.0))
}

#[cfg(test)]
mod tests;
