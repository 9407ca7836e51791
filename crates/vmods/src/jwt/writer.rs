//! jwt.writer: makes tokens with a shared secret (HS256, HS384, HS512). A private key is not for a
//! process that reads requests, so the other algorithms are refused.

use super::draft::Draft;
use super::token::Token;
use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use serde_json::{Map, Value as Json};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Sets a member of the header.
pub(super) fn set_header(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    name: &str,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (draft, text) = with_room(context, instance, arguments, scratch)?;
    draft.header.insert(name.to_owned(), text);
    done(Value::Void)
}

/// Sets a claim that is a text.
pub(super) fn set_claim(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    name: &str,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (draft, text) = with_room(context, instance, arguments, scratch)?;
    draft.claims.insert(name.to_owned(), text);
    done(Value::Void)
}

/// The draft, and the text in the first argument, if the task has memory for it.
fn with_room<'a>(
    context: &'a mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<(&'a mut Draft, Json), Failure> {
    let text = scratch.get(arguments.text(0));
    let draft = context.task().kept().tokens.draft(instance);
    scratch.check_room(draft.bytes + text.len())?;
    draft.bytes += text.len();
    Ok((draft, String::from_utf8_lossy(text).into_owned().into()))
}

/// Sets a claim that is a time, in whole seconds.
pub(super) fn set_time(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    name: &str,
    arguments: Arguments<'_>,
) -> Value {
    let draft = context.task().kept().tokens.draft(instance);
    draft.claims.insert(name.to_owned(), (arguments.real(0) as i64).into());
    Value::Void
}

/// `.from_string()`: header and claims of a token, whose signature is not verified.
pub(super) fn from_string(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let token = Token::parse(scratch.get(arguments.text(0)));
    let map = |text: &str| serde_json::from_str::<Map<String, Json>>(text).ok();
    let parts = token.as_ref().and_then(|token| Some((map(token.header_text())?, map(token.payload_text()?)?)));
    let draft = context.task().kept().tokens.draft(instance);
    *draft = Draft::default();
    match (parts, token) {
        (Some((header, claims)), Some(token)) => {
            // A map takes several times the memory of its text.
            draft.bytes = 16 * token.bytes();
            (draft.header, draft.claims) = (header, claims);
        }
        _ => draft.error = Some("from_string() was given no token"),
    }
    Value::Void
}

/// `.generate()`: unset if that is not possible.
pub(super) fn generate(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Value {
    let draft = context.task().kept().tokens.draft(instance);
    let token = draft.sign(scratch.get(arguments.text(0)));
    draft.error = token.as_ref().err().copied();
    Value::Text(token.map_or(Text::UNSET, |token| scratch.put(token.as_bytes())))
}

/// `.error()`: unset if nothing is wrong.
pub(super) fn error(context: &mut dyn VmodContext, instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let draft = context.task().kept().tokens.draft(instance);
    Value::Text(draft.error.map_or(Text::UNSET, |error| scratch.put(error.as_bytes())))
}
