//! cookie: parses a Cookie header; the cookies are kept for the duration of a task.
//!
//! Compat: parsing as observed in Varnish 7.1.1: a name ends at the first `=`, a value at the next
//! `;`; blanks before a name are skipped, nothing else is trimmed; a cookie without a value is
//! dropped; a repeated name keeps its first position and its last value. Names are compared byte by
//! byte. Next file: `cookie/cookies.rs`.

mod cookies;

pub(crate) use cookies::Cookies;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use cookies::skip_blanks;
use std::collections::HashSet;
use surface::tag::Tag;
use surface::vmod::functions::cookie::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::CookieClean => done(clean(context)),
        Function::CookieDelete => done(delete(context, arguments, scratch)),
        Function::CookieFilter => filter(context, arguments, scratch, false),
        Function::CookieFilterRe => filter_re(context, arguments, false),
        Function::CookieKeep => filter(context, arguments, scratch, true),
        Function::CookieKeepRe => filter_re(context, arguments, true),
        Function::CookieFormatDate | Function::CookieFormatRfc1123 => done(format_date(arguments, scratch)),
        Function::CookieGet => done(get(context, arguments, scratch)),
        Function::CookieGetRe => get_re(context, arguments, scratch),
        Function::CookieGetString => done(get_string(context, scratch)),
        Function::CookieIsset => done(isset(context, arguments, scratch)),
        Function::CookieParse => parse(context, arguments, scratch),
        Function::CookieSet => set(context, arguments, scratch),
    }
}

/// The names in a comma-separated list; blanks before a name are skipped.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(skip_blanks).filter(|name| !name.is_empty())
}

/// `cookie.clean()`
pub(crate) fn clean(context: &mut dyn VmodContext) -> Value {
    context.task().kept().cookies.clear();
    Value::Void
}

/// `cookie.parse()`: an empty or unset header keeps the cookies of the previous one. Compat:
/// Varnish 7.1.
pub(crate) fn parse(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let header = scratch.get(arguments.text(0));
    if header.is_empty() {
        context.log(Tag::Debug, b"cookie: nothing to parse");
    } else {
        let limit_bytes = context.task().room_bytes(scratch);
        let count = context.task().kept().cookies.parse(header, limit_bytes)?;
        if !context.is_masked(Tag::Debug) {
            context.log(Tag::Debug, format!("cookie: parsed {count} cookies.").as_bytes());
        }
    }
    crate::call::done(Value::Void)
}

/// `cookie.set()`
pub(crate) fn set(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let limit_bytes = context.task().room_bytes(scratch);
    let (name, value) = (scratch.get(arguments.text(0)), scratch.get(arguments.text(1)));
    context.task().kept().cookies.set(name, value, limit_bytes)?;
    crate::call::done(Value::Void)
}

/// `cookie.delete()`
pub(crate) fn delete(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let name = scratch.get(arguments.text(0));
    context.task().kept().cookies.retain(|cookie| cookie.name != name);
    Value::Void
}

/// `cookie.filter()` and, with `keep`, `cookie.keep()`
pub(crate) fn filter(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
    keep: bool,
) -> Result<Called, Failure> {
    let list = scratch.get(arguments.text(0));
    scratch.check_room(names(list).count() * 3 * size_of::<&[u8]>())?;
    let list: HashSet<&[u8]> = names(list).collect();
    context.task().kept().cookies.retain(|cookie| list.contains(cookie.name.as_slice()) == keep);
    crate::call::done(Value::Void)
}

/// `cookie.filter_re()` and, with `keep`, `cookie.keep_re()`
pub(crate) fn filter_re(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    keep: bool,
) -> Result<Called, Failure> {
    let mut cookies = std::mem::take(&mut context.task().kept().cookies);
    let mut failure = None;
    cookies.retain(|cookie| match matches(context, arguments, 0, &cookie.name) {
        Ok(matched) if matched == keep => true,
        Ok(_) => {
            if !context.is_masked(Tag::Debug) {
                let how: &[u8] = if keep { b"Removing cookie " } else { b"Removing matching cookie " };
                context.log(Tag::Debug, &[how, &cookie.name, b" (value: ", &cookie.value, b")"].concat());
            }
            false
        }
        Err(error) => {
            failure = Some(error);
            true
        }
    });
    context.task().kept().cookies = cookies;
    match failure {
        Some(failure) => Err(failure),
        None => crate::call::done(Value::Void),
    }
}

/// `cookie.get()`
pub(crate) fn get(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let value = context.task().kept().cookies.get(scratch.get(arguments.text(0)));
    Value::Text(value.map_or(Text::UNSET, |value| scratch.put(value)))
}

/// `cookie.get_re()`: the value of the first cookie whose name matches.
pub(crate) fn get_re(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let cookies = std::mem::take(&mut context.task().kept().cookies);
    let mut found = Ok(Text::UNSET);
    for cookie in cookies.list() {
        if !context.is_masked(Tag::Debug) {
            context.log(Tag::Debug, &[b"cookie: checking ", cookie.name.as_slice()].concat());
        }
        match matches(context, arguments, 0, &cookie.name) {
            Ok(false) => continue,
            Ok(true) => found = Ok(scratch.put(&cookie.value)),
            Err(error) => found = Err(error),
        }
        break;
    }
    context.task().kept().cookies = cookies;
    crate::call::done(Value::Text(found?))
}

/// `cookie.get_string()`
pub(crate) fn get_string(context: &mut dyn VmodContext, scratch: &mut Scratch) -> Value {
    Value::Text(context.task().kept().cookies.put(scratch))
}

/// `cookie.isset()`
pub(crate) fn isset(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    Value::Bool(context.task().kept().cookies.get(scratch.get(arguments.text(0))).is_some())
}

/// `cookie.format_date()`
pub(crate) fn format_date(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let mut date = [0; 29];
    semantics::date::format(arguments.real(0) + arguments.real(1), &mut date);
    Value::Text(scratch.put(&date))
}

fn matches(context: &dyn VmodContext, arguments: Arguments<'_>, place: usize, subject: &[u8]) -> Result<bool, Failure> {
    match arguments.regex(place).and_then(|index| context.program().regex(index)) {
        Some(regex) => regex.is_match(subject).map_err(|error| Failure(format!("Regexp matching failed: {}", error.0))),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_skip_blanks_before_a_name_only() {
        assert_eq!(names(b"a, c ,,d").collect::<Vec<_>>(), [&b"a"[..], b"c ", b"d"]);
    }
}
