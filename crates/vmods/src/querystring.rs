//! querystring: cleans, sorts and filters the parameters of a URL.
//!
//! A query string is the text after the first `?`, split at each `&`. A parameter with an empty
//! name is dropped, and so is the `?` if no parameter remains. Filter objects keep or drop
//! parameters by exact texts, shell patterns and regular expressions, which are matched against the
//! name or the whole parameter. Compat: as vmod-querystring 2.0.3, plus the functions that version
//! 0.x had instead of objects (`filter`, `regfilter`, `globfilter` and their `_except`); those
//! compare names.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use parking_lot::RwLock;
use pattern::Flags;
use std::cmp::Ordering;
use surface::limits::QUERYSTRING_CRITERIA_MAX;
use surface::tag::Tag;
use surface::vcl::HttpObject;
use surface::vmod::functions::querystring::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::regex::{Regex, dynamic_pattern};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::QuerystringClean => clean(context, arguments, scratch),
        Function::QuerystringSort => sort(context, arguments, scratch),
        Function::QuerystringRemove => remove(context, arguments, scratch),
        Function::QuerystringFilter => done(create(context, instance, arguments, scratch)),
        Function::QuerystringAddString | Function::QuerystringAddGlob | Function::QuerystringAddRegex => {
            add(function, context, instance, arguments, scratch)
        }
        Function::QuerystringApply => apply(context, instance, arguments, scratch),
        Function::QuerystringExtract => extract(context, instance, arguments, scratch),
        Function::QuerystringFiltersep => done(separator(scratch)),
        Function::QuerystringFilterNames
        | Function::QuerystringFilterExcept
        | Function::QuerystringRegfilter
        | Function::QuerystringRegfilterExcept
        | Function::QuerystringGlobfilter
        | Function::QuerystringGlobfilterExcept => filter_by(function, context, arguments, scratch),
    }
}

/// Result of `querystring.filtersep()`: a byte that does not occur in URLs.
const SEPARATOR: u8 = 0x1f;

/// A filter object.
#[derive(Debug)]
struct Filter {
    rewriting: Rewriting,
    criteria: RwLock<Vec<Criterion>>,
}

/// Changes besides filtering.
#[derive(Clone, Copy, Debug, Default)]
struct Rewriting {
    sorts: bool,
    /// Drops a parameter that equals the one before it.
    drops_repeated: bool,
    /// Names are compared, not whole parameters.
    by_name: bool,
}

#[derive(Debug)]
enum Criterion {
    Text(Vec<u8>),
    Glob(Vec<u8>),
    /// Index into the regular expressions of the VCL.
    Regex(u32),
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
struct Parameter<'a> {
    whole: &'a [u8],
    /// The part that is compared.
    compared: &'a [u8],
}

impl Parameter<'_> {
    fn order(&self, other: &Self) -> Ordering {
        self.compared.cmp(other.compared)
    }
}

/// The parameters of a query string, without those that have an empty name.
fn parameters(query: &[u8], by_name: bool) -> impl Iterator<Item = Parameter<'_>> {
    query.split(|byte| *byte == b'&').filter(|whole| !matches!(whole, [] | [b'=', ..])).map(move |whole| {
        let end = whole.iter().position(|byte| *byte == b'=').filter(|_| by_name).unwrap_or(whole.len());
        Parameter { whole, compared: &whole[..end] }
    })
}

/// The URL with the parameters that pass the test.
fn rewritten<E>(
    url: &[u8],
    rewriting: Rewriting,
    mut wants: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<Vec<u8>, E> {
    let Some(mark) = url.iter().position(|byte| *byte == b'?') else { return Ok(url.to_vec()) };
    let mut kept: Vec<Parameter<'_>> = Vec::new();
    for parameter in parameters(&url[mark + 1..], rewriting.by_name) {
        if wants(parameter.compared)? {
            kept.push(parameter);
        }
    }
    if rewriting.sorts {
        kept.sort_by(Parameter::order);
    }
    if rewriting.drops_repeated {
        kept.dedup_by(|one, before| one.compared == before.compared);
    }
    let mut result = url[..mark].to_vec();
    for (index, parameter) in kept.iter().enumerate() {
        result.push(if index == 0 { b'?' } else { b'&' });
        result.extend_from_slice(parameter.whole);
    }
    Ok(result)
}

fn all(_: &[u8]) -> Result<bool, Failure> {
    Ok(true)
}

/// The URL argument, or the URL of the running task; `None` if it is unset.
fn url(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Result<Option<Vec<u8>>, Failure> {
    if arguments.is_given(0) {
        let text = arguments.text(0);
        check_work(scratch.get(text), scratch)?;
        return Ok(text.is_set().then(|| scratch.get(text).to_vec()));
    }
    let target = [HttpObject::Req, HttpObject::Bereq]
        .into_iter()
        .find_map(|http| context.message(http).map(|message| message.target().to_vec()));
    check_work(target.as_deref().unwrap_or_default(), scratch)?;
    target.map(Some).ok_or_else(|| Failure("querystring: Invalid transaction".to_owned()))
}

/// Checks that there is memory to work on a URL: for its parameters (twice while their list grows,
/// and half as much again while they are sorted), a copy of the URL and the result.
fn check_work(url: &[u8], scratch: &Scratch) -> Result<(), Failure> {
    let parameters = 1 + url.iter().filter(|byte| **byte == b'&').count();
    scratch.check_room(parameters * 3 * size_of::<Parameter<'_>>() + 2 * url.len())
}

fn text(result: Option<Vec<u8>>, scratch: &mut Scratch) -> Result<Called, Failure> {
    done(Value::Text(result.map_or(Text::UNSET, |text| scratch.put(&text))))
}

/// `querystring.clean()`
pub(crate) fn clean(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let url = url(context, arguments, scratch)?;
    text(url.map(|url| rewritten(&url, Rewriting::default(), all)).transpose()?, scratch)
}

/// `querystring.sort()`
pub(crate) fn sort(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let url = url(context, arguments, scratch)?;
    let rewriting = Rewriting { sorts: true, drops_repeated: arguments.bool(1), by_name: false };
    text(url.map(|url| rewritten(&url, rewriting, all)).transpose()?, scratch)
}

/// `querystring.remove()`
pub(crate) fn remove(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let mut url = url(context, arguments, scratch)?;
    if let Some(url) = &mut url
        && let Some(mark) = url.iter().position(|byte| *byte == b'?')
    {
        url.truncate(mark);
    }
    text(url, scratch)
}

/// `querystring.filtersep()`
pub(crate) fn separator(scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(&[SEPARATOR]))
}

/// `querystring.filter()`, `regfilter()`, `globfilter()` and their `_except`: the functions of
/// version 0.x.
pub(crate) fn filter_by(
    function: Function,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some(url) = url(context, arguments, scratch)? else { return text(None, scratch) };
    let expression = scratch.get(arguments.text(1));
    let rewriting = Rewriting { by_name: true, ..Rewriting::default() };
    let keeps = matches!(
        function,
        Function::QuerystringFilterExcept
            | Function::QuerystringRegfilterExcept
            | Function::QuerystringGlobfilterExcept
    );
    let result = match function {
        Function::QuerystringRegfilter | Function::QuerystringRegfilterExcept => {
            let pattern = dynamic_pattern(expression)?;
            let regex = Regex::new(&pattern, context.program().regex_limits());
            match regex {
                Ok(regex) => rewritten(&url, rewriting, |name| is_match(&regex, name).map(|found| found == keeps))?,
                Err(error) => {
                    let position = error.offset.unwrap_or(0);
                    let text = format!("vmod-querystring: regex error ({error}): '{pattern}' pos {position}");
                    context.log(Tag::Error, text.as_bytes());
                    rewritten(&url, rewriting, all)?
                }
            }
        }
        Function::QuerystringGlobfilter | Function::QuerystringGlobfilterExcept => {
            rewritten(&url, rewriting, |name| Ok(matches_glob(expression, name) == keeps))?
        }
        _ => {
            let count = 1 + expression.iter().filter(|byte| **byte == SEPARATOR).count();
            scratch.check_room(count * 2 * size_of::<&[u8]>())?;
            let names: Vec<&[u8]> = expression.split(|byte| *byte == SEPARATOR).collect();
            rewritten(&url, rewriting, |name| Ok(names.contains(&name) == keeps))?
        }
    };
    text(Some(result), scratch)
}

fn is_match(regex: &Regex, subject: &[u8]) -> Result<bool, Failure> {
    regex.is_match(subject).map_err(|error| Failure(format!("Regexp matching failed: {}", error.0)))
}

fn matches_glob(glob: &[u8], subject: &[u8]) -> bool {
    pattern::matches(glob, subject, Flags::default())
}

/// `new x = querystring.filter()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let rewriting = Rewriting {
        sorts: arguments.bool(0),
        drops_repeated: arguments.bool(1),
        by_name: scratch.get(arguments.text(2)) != b"param",
    };
    context.instances().keep_object(instance, Filter { rewriting, criteria: RwLock::default() });
    Value::Void
}

/// `.add_string()`, `.add_glob()`, `.add_regex()`
pub(crate) fn add(
    function: Function,
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let criterion = match (function, arguments.regex(0)) {
        (Function::QuerystringAddRegex, Some(regex)) => Criterion::Regex(regex),
        (Function::QuerystringAddGlob, _) => Criterion::Glob(scratch.get(arguments.text(0)).to_vec()),
        _ => Criterion::Text(scratch.get(arguments.text(0)).to_vec()),
    };
    if let Some(filter) = context.instances().object::<Filter>(instance) {
        let mut criteria = filter.criteria.write();
        if criteria.len() >= QUERYSTRING_CRITERIA_MAX {
            return Err(Failure(format!("querystring: a filter has at most {QUERYSTRING_CRITERIA_MAX} criteria")));
        }
        criteria.push(criterion);
    }
    done(Value::Void)
}

/// `.apply()`
pub(crate) fn apply(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some(url) = url(context, arguments, scratch)? else { return text(None, scratch) };
    let result = filtered(context, instance, &url, scratch.get(arguments.text(1)) == b"keep")?;
    text(result, scratch)
}

/// `.extract()`: unset if the URL has no query string.
pub(crate) fn extract(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some(url) = url(context, arguments, scratch)? else { return text(None, scratch) };
    let mark = url.iter().position(|byte| *byte == b'?').filter(|mark| mark + 1 < url.len());
    let Some(mark) = mark else { return text(None, scratch) };
    let result = filtered(context, instance, &url[mark..], scratch.get(arguments.text(1)) == b"keep")?;
    text(result.map(|query| query.strip_prefix(b"?").unwrap_or(b"").to_vec()), scratch)
}

/// Applies a filter to a URL; `None` if there is no such object. A filter without criteria keeps
/// everything.
fn filtered(
    context: &dyn VmodContext,
    instance: Option<u32>,
    url: &[u8],
    keeps: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(filter) = context.instances().object::<Filter>(instance) else { return Ok(None) };
    let criteria = filter.criteria.read();
    let meets = |criterion: &Criterion, subject: &[u8]| match criterion {
        Criterion::Text(text) => Ok(text == subject),
        Criterion::Glob(glob) => Ok(matches_glob(glob, subject)),
        Criterion::Regex(index) => context.program().regex(*index).map_or(Ok(false), |regex| is_match(regex, subject)),
    };
    let result = rewritten(url, filter.rewriting, |subject| {
        for criterion in criteria.iter() {
            if meets(criterion, subject)? {
                return Ok(keeps);
            }
        }
        Ok(criteria.is_empty() || !keeps)
    });
    result.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(url: &str, rewriting: Rewriting) -> String {
        String::from_utf8(rewritten(url.as_bytes(), rewriting, all).unwrap()).unwrap()
    }

    #[test]
    fn parameters_without_a_name_are_dropped() {
        for (url, expected) in [
            ("/", "/"),
            ("", ""),
            ("?", ""),
            ("/?", "/"),
            ("/?&", "/"),
            ("/?=x", "/"),
            ("/?a&&b=&=c&d=1?2", "/?a&b=&d=1?2"),
            ("/p?b=1&a=2&b=1&", "/p?b=1&a=2&b=1"),
        ] {
            assert_eq!(cleaned(url, Rewriting::default()), expected, "{url}");
        }
    }

    #[test]
    fn sorting_is_stable_and_repeated_ones_go() {
        let by_name = Rewriting { sorts: true, drops_repeated: false, by_name: true };
        assert_eq!(cleaned("/?b=2&a=9&b=1&a-c", by_name), "/?a=9&a-c&b=2&b=1");
        let whole = Rewriting { sorts: true, drops_repeated: true, by_name: false };
        assert_eq!(cleaned("/?b=2&a&b=1&b=2&ab", whole), "/?a&ab&b=1&b=2");
        let neighbours = Rewriting { sorts: false, drops_repeated: true, by_name: true };
        assert_eq!(cleaned("/?b=2&b=3&a&b=4", neighbours), "/?b=2&a&b=4");
    }

    #[test]
    fn thousands_of_parameters_are_sorted_at_once() {
        let url =
            format!("/?{}", (0..100_000).map(|n| format!("p{}", n * 7919 % 100_000)).collect::<Vec<_>>().join("&"));
        let rewriting = Rewriting { sorts: true, ..Rewriting::default() };
        assert!(cleaned(&url, rewriting).starts_with("/?p0&p1&p10&p100&"));
    }
}
