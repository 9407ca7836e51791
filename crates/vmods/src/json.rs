//! json and jq: values of a JSON text.
//!
//! Both read by a path of names and indexes. Compat: the calls of the VMODs of these names that
//! published VCL uses; of the language of jq only paths (`.a.b[0]`, `."a b"`, `.["a"]`, `.[-1]`).
//! The text is at most [`JSON_BYTES_MAX`] long, as each call walks it. Next file: `json_text.rs`.

mod path;
mod texts;

pub(crate) use texts::JsonTexts;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::json_text::{self, Kind, Step};
use surface::limits::JSON_BYTES_MAX;
use surface::tag::Tag;
use surface::vcl::Method;
use surface::vmod::functions::{jq, json};
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD json.
pub(crate) fn dispatch(function: json::Function, call: Call<'_>) -> Result<Called, Failure> {
    use json::Function;
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::JsonParse => {
            let text = valid(scratch.get(arguments.text(0)));
            context.task().kept().json.json = text;
            done(Value::Void)
        }
        Function::JsonParseReqBody => done(parse_body(context)),
        Function::JsonGet => done(get(context, arguments, scratch)),
        Function::JsonContains => {
            let path = path::parse(scratch.get(arguments.text(0)));
            let text = context.task().kept().json.json.as_deref();
            done(Value::Bool(text.zip(path).is_some_and(|(text, path)| json_text::find(text, &path).is_some())))
        }
        Function::JsonLength => done(Value::Int(
            context.task().kept().json.json.as_deref().and_then(json_text::length).map_or(0, |length| length as i64),
        )),
        Function::JsonIsValid => done(Value::Bool(context.task().kept().json.json.is_some())),
        Function::JsonIsObject => done(is(context, |kind| kind == Kind::Object)),
        Function::JsonIsArray => done(is(context, |kind| kind == Kind::Array)),
        Function::JsonIsString => done(is(context, |kind| kind == Kind::String)),
        Function::JsonIsNumber => done(is(context, |kind| kind == Kind::Number)),
        Function::JsonIsBoolean => done(is(context, |kind| matches!(kind, Kind::True | Kind::False))),
        Function::JsonIsNull => done(is(context, |kind| kind == Kind::Null)),
    }
}

/// Calls a function of the VMOD jq.
pub(crate) fn dispatch_jq(function: jq::Function, call: Call<'_>) -> Result<Called, Failure> {
    use jq::Function;
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::JqParse => done(jq_parse(context, arguments, scratch)),
        Function::JqGet => done(jq_get(context, arguments, scratch)),
        Function::JqIsA => done(jq_is_a(context, arguments, scratch)),
        Function::JqLength => done(jq_length(context)),
    }
}

fn valid(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= JSON_BYTES_MAX)?;
    json_text::is_valid(text).then(|| text.to_owned())
}

/// `json.parse_req_body()`: only in vcl_recv, after `std.cache_req_body()`.
fn parse_body(context: &mut dyn VmodContext) -> Value {
    let body = context.cached_body();
    let text = match (&body, context.method()) {
        (Some(body), Method::Recv) => valid(body),
        (None, _) => {
            context.log(Tag::VCLError, b"json.parse_req_body: Uncached or no request body");
            None
        }
        (Some(_), _) => {
            context.log(Tag::VCLError, b"json.parse_req_body can only be used in vcl_recv{}");
            None
        }
    };
    context.task().kept().json.json = text;
    Value::Void
}

fn is(context: &mut dyn VmodContext, is_it: impl Fn(Kind) -> bool) -> Value {
    let text = context.task().kept().json.json.as_deref();
    Value::Bool(text.is_some_and(|text| is_it(json_text::kind(text))))
}

/// `json.get()`: the second argument if there is no such value.
fn get(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let path = path::parse(scratch.get(arguments.text(0)));
    let text = context.task().kept().json.json.as_deref();
    let Some(found) = text.zip(path).and_then(|(text, path)| json_text::find(text, &path)) else {
        return Value::Text(arguments.text(1));
    };
    let shown = if arguments.bool(2) { compact(found) } else { plain(found) };
    Value::Text(scratch.put(shown.as_bytes()))
}

fn plain(value: &str) -> String {
    if json_text::kind(value) == Kind::String { json_text::plain(value).into_owned() } else { compact(value) }
}

/// The value without blanks and line breaks between its parts, so that it can be in a header.
fn compact(value: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    value
        .chars()
        .filter(|letter| {
            let was_in_string = in_string;
            match letter {
                '"' if !is_escaped => in_string = !in_string,
                _ => {}
            }
            is_escaped = in_string && *letter == '\\' && !is_escaped;
            was_in_string || !letter.is_ascii_whitespace()
        })
        .collect()
}

/// `jq.parse()`
fn jq_parse(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let text = if scratch.get(arguments.text(0)) == b"request" {
        let body = context.cached_body();
        if body.is_none() {
            context.log(Tag::VCLError, b"jq.parse: Uncached or no request body");
        }
        body.and_then(|body| valid(&body))
    } else {
        valid(scratch.get(arguments.text(1)))
    };
    let is_valid = text.is_some();
    context.task().kept().json.jq = text;
    Value::Bool(is_valid)
}

/// The value that a path of jq yields: `null` for a missing one, `None` if the value before it has
/// no such parts.
fn walk<'a>(text: &'a str, path: &[Step]) -> Option<&'a str> {
    let mut value = text.trim_ascii();
    for step in path {
        value = match (json_text::kind(value), step) {
            (Kind::Null, _) => "null",
            (Kind::Object, Step::Name(_)) | (Kind::Array, Step::Index(_)) => {
                json_text::find(value, std::slice::from_ref(step)).unwrap_or("null")
            }
            _ => return None,
        };
    }
    Some(value)
}

/// `jq.get()`
fn jq_get(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let filter = scratch.get(arguments.text(0));
    let path = filter.strip_prefix(b".").and_then(|_| path::parse(filter));
    let Some(path) = path else {
        context.log(Tag::VCLError, b"jq.get: Invalid filter, only paths are supported");
        return Value::Text(arguments.text(1));
    };
    let Some(text) = context.task().kept().json.jq.as_deref() else {
        context.log(Tag::VCLError, b"jq.get: No context");
        return Value::Text(arguments.text(1));
    };
    let Some(found) = walk(text, &path) else {
        context.log(Tag::VCLError, b"jq.get: The value has no such parts");
        return Value::Text(arguments.text(1));
    };
    let (ascii, raw) = (arguments.bool(2), arguments.bool(3));
    let mut shown = if raw { plain(found) } else { compact(found) };
    if ascii && !shown.is_ascii() {
        let mut units = [0; 2];
        let escape = |letter: char| match letter.is_ascii() {
            true => letter.to_string(),
            false => letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        };
        shown = shown.chars().map(escape).collect();
    }
    Value::Text(scratch.put(shown.as_bytes()))
}

/// `jq.is_a()`
fn jq_is_a(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let kind = context.task().kept().json.jq.as_deref().map(json_text::kind);
    let word: &[u8] = match kind {
        None => b"invalid",
        Some(Kind::Null) => b"null",
        Some(Kind::False) => b"false",
        Some(Kind::True) => b"true",
        Some(Kind::Number) => b"number",
        Some(Kind::String) => b"string",
        Some(Kind::Array) => b"array",
        Some(Kind::Object) => b"object",
    };
    Value::Bool(word == scratch.get(arguments.text(0)))
}

/// `jq.length()`: members, elements or characters; 0 for `null`, −1 for others.
fn jq_length(context: &mut dyn VmodContext) -> Value {
    let Some(text) = context.task().kept().json.jq.as_deref() else {
        context.log(Tag::VCLError, b"jq.length: No context");
        return Value::Int(-1);
    };
    let length = match json_text::kind(text) {
        Kind::Null => Some(0),
        Kind::String => Some(json_text::plain(text).chars().count()),
        _ => json_text::length(text),
    };
    Value::Int(length.map_or(-1, |length| length as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_text_has_no_blanks_outside_of_strings() {
        for (text, expected) in [
            ("{ \"a b\" : [ 1 ,\n 2 ] }", "{\"a b\":[1,2]}"),
            (r#"[ "a \" b", "\\" , 1 ]"#, r#"["a \" b","\\",1]"#),
            (r#""x\\\" y" "#, r#""x\\\" y""#),
        ] {
            assert_eq!(compact(text), expected);
        }
    }

    #[test]
    fn long_and_damaged_texts_are_not_kept() {
        assert!(valid(b"[1]").is_some());
        assert!(valid(b"[\xff]").is_none());
        assert!(valid(format!("\"{}\"", "x".repeat(JSON_BYTES_MAX)).as_bytes()).is_none());
    }

    #[test]
    fn missing_values_are_null_and_wrong_kinds_are_errors() {
        let at = |path: &str| walk(r#" {"a": [1, {"b": "x"}]} "#, &path::parse(path.as_bytes()).unwrap());
        assert_eq!(at(".a[1].b"), Some("\"x\""));
        assert_eq!(at(".x.y[3]"), Some("null"));
        assert_eq!(at(".a[7]"), Some("null"));
        assert_eq!(at(".a.b"), None);
        assert_eq!(at(".[0]"), None);
        assert_eq!(at(".a[0].x"), None);
    }
}
