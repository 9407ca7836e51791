//! header: works on headers that occur more than once, line by line.
//!
//! Regular expressions are matched against values without surrounding blanks; `regsub` matches
//! whole lines. Compat: as varnish-modules 0.20 for Varnish 7.1: adding or changing a line leaves
//! its log record, removing one leaves none, and an empty value matches nothing. Bytes that would
//! corrupt the message (control characters, a line without a name) fail the task instead.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use surface::tag::Tag;
use surface::vcl::HttpObject;
use surface::vmod::functions::header::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::line;
use vcl_run::regex::{MatchError, Regex, SubstituteError};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::HeaderAppend => append(context, arguments, scratch),
        Function::HeaderCopy => copy(context, arguments, scratch),
        Function::HeaderGet => get(context, arguments, scratch),
        Function::HeaderRemove => remove(context, arguments, scratch),
        Function::HeaderRegsub => regsub(context, arguments, scratch),
        Function::HeaderDyn => dynamic(arguments, scratch),
    }
}

/// Longest name that `header.dyn()` makes, in bytes. Compat: Varnish stores the length in one
/// signed byte.
const NAME_BYTES_MAX: usize = 126;

/// The tags of the records for a header line that is set, and for one that is removed.
pub(crate) fn tags(http: HttpObject) -> (Tag, Tag) {
    match http {
        HttpObject::Req | HttpObject::ReqTop => (Tag::ReqHeader, Tag::ReqUnset),
        HttpObject::Resp => (Tag::RespHeader, Tag::RespUnset),
        HttpObject::Obj => (Tag::ObjHeader, Tag::ObjUnset),
        HttpObject::Bereq => (Tag::BereqHeader, Tag::BereqUnset),
        HttpObject::Beresp => (Tag::BerespHeader, Tag::BerespUnset),
    }
}

fn cannot(function: &str) -> Failure {
    Failure(format!("header.{function}(): these headers cannot be changed here"))
}

/// The header in the argument at `at`; it must have a name.
fn place(
    function: &str,
    at: usize,
    context: &dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<(HttpObject, String), Failure> {
    let (http, name) = arguments.header(at, context.program(), scratch).ok_or_else(|| cannot(function))?;
    if name.is_empty() {
        return Err(Failure(format!("header.{function}(): the header has no name")));
    }
    Ok((http, name))
}

fn regex<'a>(context: &'a dyn VmodContext, arguments: Arguments<'_>, at: usize) -> Result<&'a Regex, Failure> {
    let regex = arguments.regex(at).and_then(|index| context.program().regex(index));
    regex.ok_or_else(|| Failure("header: there is no regular expression".to_owned()))
}

fn gave_up(error: &MatchError) -> Failure {
    Failure(format!("Regexp matching failed: {}", error.0))
}

/// Adds lines and writes their records.
fn add(
    function: &str,
    context: &mut dyn VmodContext,
    http: HttpObject,
    name: &str,
    values: &[Vec<u8>],
    scratch: &Scratch,
) -> Result<(), Failure> {
    let limit_bytes = context.task().room_bytes(scratch);
    let message = context.message_mut(http).ok_or_else(|| cannot(function))?;
    let more: usize = values.iter().map(|value| name.len() + 2 + value.len()).sum();
    if message.memory_bytes() + more > limit_bytes {
        return Err(out_of_memory(function));
    }
    for value in values {
        check(name.as_bytes(), value)?;
        message.append(name.as_bytes(), value);
    }
    for value in values {
        context.log(tags(http).0, &[name.as_bytes(), b": ", value].concat());
    }
    Ok(())
}

fn out_of_memory(function: &str) -> Failure {
    Failure(format!("header.{function}(): Out of request memory (parameter request_memory_max)"))
}

/// Refuses a line that would not remain a single header line.
pub(crate) fn check(name: &[u8], value: &[u8]) -> Result<(), Failure> {
    line::check_word("header name", name)?;
    line::check("header", value).or_else(|_| line::check(&format!("header {}", line::shown(name)), value))
}

/// `header.append()`
pub(crate) fn append(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (http, name) = place("append", 0, context, arguments, scratch)?;
    let value = scratch.get(arguments.text(1)).to_vec();
    add("append", context, http, &name, &[value], scratch)?;
    done(Value::Void)
}

/// `header.copy()`: adds every line of the first header as a line of the second.
pub(crate) fn copy(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let Some((from, name)) = arguments.header(0, context.program(), scratch) else { return Err(cannot("copy")) };
    let (to, new_name) = place("copy", 1, context, arguments, scratch)?;
    let values = values(context, from, &name);
    add("copy", context, to, &new_name, &values, scratch)?;
    done(Value::Void)
}

/// The values of a header, in order.
fn values(context: &mut dyn VmodContext, http: HttpObject, name: &str) -> Vec<Vec<u8>> {
    context.message(http).map_or(Vec::new(), |message| message.get_all(name).map(<[u8]>::to_vec).collect())
}

/// The values of a header, in order, each with true if it matches the expression in the argument at
/// `place`.
fn matched(
    context: &mut dyn VmodContext,
    (http, name): (HttpObject, &str),
    arguments: Arguments<'_>,
    at: usize,
) -> Result<Vec<(Vec<u8>, bool)>, Failure> {
    let values = values(context, http, name);
    let regex = regex(context, arguments, at)?;
    values
        .into_iter()
        .map(|value| {
            let is_match = !value.is_empty() && regex.is_match(&value)?;
            Ok((value, is_match))
        })
        .collect::<Result<_, MatchError>>()
        .map_err(|error| gave_up(&error))
}

/// `header.get()`: the first value that matches.
pub(crate) fn get(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some((http, name)) = arguments.header(0, context.program(), scratch) else {
        return done(Value::Text(Text::UNSET));
    };
    let values = matched(context, (http, &name), arguments, 1)?;
    let found = values.into_iter().find(|(_, is_match)| *is_match);
    done(Value::Text(found.map_or(Text::UNSET, |(value, _)| scratch.put(&value))))
}

/// `header.remove()`: removes the lines whose values match.
pub(crate) fn remove(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (http, name) = place("remove", 0, context, arguments, scratch)?;
    let mut goes = matched(context, (http, &name), arguments, 1)?.into_iter();
    let message = context.message_mut(http).ok_or_else(|| cannot("remove"))?;
    message.retain(|header| !header.is(&name) || !goes.next().is_some_and(|(_, is_match)| is_match));
    done(Value::Void)
}

/// `header.regsub()`: replaces every whole line that matches, in place.
pub(crate) fn regsub(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let Some(http) = arguments.http(0) else { return Err(cannot("regsub")) };
    let replacement = scratch.get(arguments.text(2));
    let all = arguments.bool(3);
    let mut changes: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut more = 0;
    let message = context.message(http).ok_or_else(|| cannot("regsub"))?;
    let held_bytes = message.memory_bytes();
    let lines: Vec<Vec<u8>> = message.headers().map(|header| header.line().to_vec()).collect();
    let regex = regex(context, arguments, 1)?;
    for (index, old) in lines.into_iter().enumerate() {
        let mut line = Vec::new();
        let room_bytes = scratch.limit_bytes().saturating_sub(held_bytes + more);
        let found = if all {
            regex.substitute_all(&old, replacement, &mut line, room_bytes)
        } else {
            regex.substitute(&old, replacement, &mut line, room_bytes)
        };
        let found = found.map_err(|error| match error {
            SubstituteError::TooLong => out_of_memory("regsub"),
            SubstituteError::Match(error) => gave_up(&error),
        });
        if !found? || line == old {
            continue;
        }
        more += line.len();
        changes.push((index, old, line));
    }
    // Backwards, so that removing a line does not move those still to come.
    for (index, old, line) in changes.into_iter().rev() {
        if line.is_empty() {
            let message = context.message_mut(http).ok_or_else(|| cannot("regsub"))?;
            message.remove(index);
            context.log(tags(http).1, &old);
            continue;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':').filter(|colon| (1..=0xff00).contains(colon))
        else {
            return Err(Failure(format!("header.regsub(): {:?} is no header line", line::shown(&line))));
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        check(name, value)?;
        let message = context.message_mut(http).ok_or_else(|| cannot("regsub"))?;
        message.replace(index, name, value);
        context.log(tags(http).1, &old);
        context.log(tags(http).0, &[name, b": ", value].concat());
    }
    done(Value::Void)
}

/// `header.dyn()`: a header whose name is made at run time; a colon and the text after it are
/// dropped.
pub(crate) fn dynamic(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let Some(http) = arguments.http(0) else { return Err(cannot("dyn")) };
    let text = scratch.get(arguments.text(1));
    let end = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
    let name = &text[..end];
    if name.len() > NAME_BYTES_MAX || !name.iter().all(u8::is_ascii_graphic) {
        return Err(Failure(format!("header.dyn(): {:?} is no header name", line::shown(name))));
    }
    let name = name.to_vec();
    done(Value::NamedHeader(http, scratch.put(&name)))
}
