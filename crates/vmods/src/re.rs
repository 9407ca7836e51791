//! re: regular expressions whose groups can be read after a match.
//!
//! An object holds an expression. Each task stores the last match of each object; the functions
//! without an object share one more. Compat: as libvmod-re: the texts of records, the ten groups,
//! the fallback after a failed match; an invalid pattern matches nothing and leaves a record with
//! each match, and `.failed()` and `.error()` report it in vcl_init. The stored matches of a task
//! are bounded by `request_memory_max`; the work of a match is bounded by the parameters
//! `pcre2_match_limit` and `pcre2_depth_limit` or by the arguments of the call. Next file:
//! `re/captures.rs`.

mod captures;

pub(crate) use captures::Captures;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use captures::{Found, out_of_memory};
use surface::tag::Tag;
use surface::vmod::functions::re::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::line;
use vcl_run::regex::{PatternError, Regex, RegexLimits, dynamic_pattern};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::ReRegex => done(create(context, instance, arguments, scratch)),
        Function::ReFailed => done(failed(context, instance)),
        Function::ReError => done(error(context, instance, scratch)),
        Function::ReMatch => matches(context, instance, arguments, scratch),
        Function::ReMatchDyn => matches_dynamic(context, instance, arguments, scratch),
        Function::ReBackref => done(backref(context, instance, arguments, scratch)),
        Function::ReNamedref => done(namedref(context, instance, arguments, scratch)),
        Function::ReFunctionMatchDyn => matches_dynamic(context, None, arguments, scratch),
        Function::ReFunctionBackref => done(backref(context, None, arguments, scratch)),
        Function::ReFunctionNamedref => done(namedref(context, None, arguments, scratch)),
        Function::ReVersion => done(version(scratch)),
    }
}

/// Groups that can be read, including group 0 (the whole match).
const GROUPS_MAX: usize = 11;

/// Result of `re.version()`.
const VERSION: &[u8] = b"1.0";

/// A regex object.
#[derive(Debug)]
struct Expression {
    pattern: String,
    limits: RegexLimits,
    /// The error, if the pattern is invalid.
    regex: Result<Regex, String>,
}

fn described(error: &PatternError) -> String {
    format!("{error} (position {})", error.offset.unwrap_or(0))
}

/// The limits in two arguments of a call, else those of the VCL.
fn limits(standard: RegexLimits, arguments: Arguments<'_>, place: usize) -> RegexLimits {
    let given = |place: usize, standard: u32| match arguments.value(place) {
        Value::Int(limit) => u32::try_from(limit.max(0)).unwrap_or(u32::MAX),
        _ => standard,
    };
    RegexLimits { matches: given(place, standard.matches), depth: given(place + 1, standard.depth), ..standard }
}

/// `new x = re.regex()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let pattern = String::from_utf8_lossy(scratch.get(arguments.text(0))).into_owned();
    let limits = limits(context.program().regex_limits(), arguments, 1);
    let regex = Regex::new(&pattern, limits).map_err(|error| described(&error));
    context.instances().keep_object(instance, Expression { pattern, limits, regex });
    Value::Void
}

/// The error in the object's pattern, if any.
fn fault(context: &dyn VmodContext, instance: Option<u32>) -> Option<&str> {
    context.instances().object::<Expression>(instance)?.regex.as_ref().err().map(String::as_str)
}

/// `.failed()`
pub(crate) fn failed(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    Value::Bool(fault(context, instance).is_some())
}

/// `.error()`: empty if the pattern is valid.
pub(crate) fn error(context: &mut dyn VmodContext, instance: Option<u32>, scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(fault(context, instance).unwrap_or("").as_bytes()))
}

/// `.match()`
pub(crate) fn matches(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let subject = scratch.get(arguments.text(0));
    let Some(expression) = context.instances().object::<Expression>(instance) else { return done(Value::Bool(false)) };
    let limits = limits(expression.limits, arguments, 1);
    let room_bytes = scratch.limit_bytes();
    let outcome = match &expression.regex {
        Ok(regex) if limits == expression.limits => search(regex, subject, room_bytes),
        Ok(_) => search(&Regex::deferred(&expression.pattern, limits), subject, room_bytes),
        Err(error) => Err(Fault::Match(format!("vmod re: error compiling regex: {error}"))),
    };
    settle(context, instance, outcome, scratch)
}

/// `.match_dyn()`, `re.match_dyn()`. An invalid pattern clears the last match.
pub(crate) fn matches_dynamic(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let pattern = dynamic_pattern(scratch.get(arguments.text(0)))?;
    let limits = limits(context.program().regex_limits(), arguments, 2);
    let fault = match Regex::new(&pattern, limits) {
        _ if !arguments.text(0).is_set() => "vmod re: the regex is NULL".to_owned(),
        Ok(regex) => {
            let outcome = search(&regex, scratch.get(arguments.text(1)), scratch.limit_bytes());
            return settle(context, instance, outcome, scratch);
        }
        Err(error) => format!("vmod re: error compiling regex \"{pattern}\": {}", described(&error)),
    };
    context.log(Tag::VCLError, fault.as_bytes());
    context.task().kept().captures.forget(instance);
    done(Value::Bool(false))
}

/// Reason why a match failed with an error.
#[derive(Debug)]
enum Fault {
    /// The match was given up, or the pattern is invalid; with the text for the log.
    Match(String),
    /// The groups are longer than the task may keep.
    TooLong,
}

/// Searches for the expression; also returns true if there are more groups than can be read.
fn search(regex: &Regex, subject: &[u8], room_bytes: usize) -> Result<Option<(Found, bool)>, Fault> {
    let gave_up = |text: &str| Fault::Match(format!("vmod re: regex match failed: {text}"));
    let compiled = regex.compiled().map_err(|error| gave_up(&error.0))?;
    let mut locations = compiled.capture_locations();
    if compiled.captures_read(&mut locations, subject).map_err(|error| gave_up(&error.to_string()))?.is_none() {
        return Ok(None);
    }
    // `\K` can move the start past the end.
    let group = |number| locations.get(number).and_then(|(start, end)| subject.get(start..end)).unwrap_or(b"");
    let count = locations.len().min(GROUPS_MAX);
    let text_bytes = (0..count).map(|number| group(number).len()).sum();
    if text_bytes > room_bytes {
        return Err(Fault::TooLong);
    }
    let text = Vec::with_capacity(text_bytes);
    let mut found = Found { text, groups: Vec::new(), names: Vec::new() };
    for number in 0..count {
        found.text.extend_from_slice(group(number));
        found.groups.push((found.text.len(), locations.get(number).is_some()));
    }
    let names = compiled.capture_names().iter().enumerate().take(GROUPS_MAX);
    found.names = names.filter_map(|(number, name)| Some((name.clone()?, number))).collect();
    let has_more = (GROUPS_MAX..locations.len()).any(|number| locations.get(number).is_some());
    Ok(Some((found, has_more)))
}

fn settle(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    outcome: Result<Option<(Found, bool)>, Fault>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let found = match outcome {
        Ok(Some((found, has_more))) => {
            if has_more {
                let text = format!("vmod re: capturing substrings exceed max {}", GROUPS_MAX - 1);
                context.log(Tag::VCLError, text.as_bytes());
            }
            Some(found)
        }
        Ok(None) => None,
        Err(Fault::Match(text)) => {
            context.log(Tag::VCLError, text.as_bytes());
            None
        }
        Err(Fault::TooLong) => return Err(out_of_memory()),
    };
    let is_match = found.is_some();
    let task = context.task();
    let limit_bytes = task.room_bytes(scratch);
    task.kept().captures.keep(instance, found, limit_bytes)?;
    done(Value::Bool(is_match))
}

/// `.backref()`, `re.backref()`
pub(crate) fn backref(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Value {
    let number = usize::try_from(arguments.int(0)).unwrap_or(usize::MAX);
    if number >= GROUPS_MAX {
        let text = format!("vmod re: backref {} out of range", arguments.int(0));
        context.log(Tag::VCLError, text.as_bytes());
        return Value::Text(arguments.text(1));
    }
    group(context, instance, "backref", arguments, scratch, |_| Some(number))
}

/// `.namedref()`, `re.namedref()`
pub(crate) fn namedref(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Value {
    let wanted = scratch.get(arguments.text(0)).to_vec();
    group(context, instance, "namedref", arguments, scratch, |found| {
        found.names.iter().find(|(name, _)| name.as_bytes() == wanted).map(|(_, number)| *number)
    })
}

/// The text of a group of the last match, else the fallback.
fn group(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    function: &str,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    number: impl FnOnce(&Found) -> Option<usize>,
) -> Value {
    let fallback = Value::Text(arguments.text(1));
    let Some(capture) = context.task().kept().captures.of(instance) else {
        context.log(Tag::VCLError, format!("vmod re: {function} called without prior match").as_bytes());
        return fallback;
    };
    let Some(found) = &capture.found else { return fallback };
    match number(found).map(|number| found.group(number)) {
        Some(Some(text)) => Value::Text(scratch.put(text)),
        Some(None) => fallback,
        None => {
            let name = line::shown(scratch.get(arguments.text(0))).into_owned();
            context.log(Tag::VCLError, format!("vmod re: there is no group named {name:?}").as_bytes());
            fallback
        }
    }
}

/// `re.version()`
pub(crate) fn version(scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, subject: &str) -> Option<(Vec<Option<String>>, bool)> {
        let regex = Regex::new(pattern, RegexLimits::default()).unwrap();
        let (found, has_more) = search(&regex, subject.as_bytes(), 1000).unwrap()?;
        let text = |number| found.group(number).map(|text| String::from_utf8_lossy(text).into_owned());
        Some(((0..found.groups.len()).map(text).collect(), has_more))
    }

    #[test]
    fn groups_that_took_no_part_differ_from_empty_ones() {
        let (groups, has_more) = found("(b)(x)?()(c)", "abcd").unwrap();
        let groups: Vec<Option<&str>> = groups.iter().map(Option::as_deref).collect();
        assert_eq!(groups, [Some("bc"), Some("b"), None, Some(""), Some("c")]);
        assert!(!has_more);
        assert_eq!(found("x", "abc"), None);
    }

    #[test]
    fn only_ten_groups_can_be_asked_for() {
        let (groups, has_more) = found(&"(.)".repeat(12), "abcdefghijklm").unwrap();
        assert_eq!((groups.len(), has_more), (11, true));
        assert_eq!(groups[10].as_deref(), Some("j"));
    }

    #[test]
    fn a_runaway_match_is_given_up() {
        let regex = Regex::new("^(a+)+$", RegexLimits::default()).unwrap();
        let subject = [[b'a'; 60].as_slice(), b"b"].concat();
        let Err(Fault::Match(text)) = search(&regex, &subject, 1000) else { panic!("it must be given up") };
        assert!(text.contains("match limit exceeded"));
    }

    #[test]
    fn match_size_is_checked_before_copying() {
        let regex = Regex::new(&format!("{}.*{}", "(".repeat(10), ")".repeat(10)), RegexLimits::default()).unwrap();
        assert!(matches!(search(&regex, &[b'a'; 1000], 10_999), Err(Fault::TooLong)));
        assert!(matches!(search(&regex, &[b'a'; 1000], 11_000), Ok(Some(_))));
    }
}
