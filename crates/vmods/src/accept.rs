//! accept: chooses the best of several values that an Accept header (or Accept-Language, …) names.
//!
//! A rule has a fallback and choices; the header is read from left to right, and the choice with
//! the highest quality wins, the first one in a tie. Compat: as varnish-modules 0.20 for Varnish
//! 7.1: a quality counts only as the first parameter of an entry, blanks are not allowed around
//! `=`, and a malformed header leads to the fallback. Source: RFC 9110 §12.5.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use parking_lot::RwLock;
use surface::limits::ACCEPT_CHOICES_MAX;
use surface::vmod::functions::accept::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::AcceptRule => done(create(context, instance, arguments, scratch)),
        Function::AcceptRuleAdd => add(context, instance, arguments, scratch),
        Function::AcceptRuleRemove => done(remove(context, instance, arguments, scratch)),
        Function::AcceptRuleFilter => done(filter(context, instance, arguments, scratch)),
    }
}

/// A rule object.
#[derive(Debug)]
struct Rule {
    fallback: Vec<u8>,
    choices: RwLock<Vec<Vec<u8>>>,
}

/// One entry of a header: the range, its quality, and the start of the next entry.
#[derive(Debug, PartialEq)]
struct Entry<'a> {
    range: &'a [u8],
    quality: f64,
    rest: &'a [u8],
}

/// The header is malformed.
#[derive(Debug, PartialEq)]
struct Malformed;

/// `new x = accept.rule()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let fallback = scratch.get(arguments.text(0)).to_vec();
    context.instances().keep_object(instance, Rule { fallback, choices: RwLock::default() });
    Value::Void
}

/// `.add()`
pub(crate) fn add(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let choice = scratch.get(arguments.text(0));
    if let Some(rule) = context.instances().object::<Rule>(instance)
        && !choice.is_empty()
    {
        let mut choices = rule.choices.write();
        if find(&choices, choice).is_none() {
            if choices.len() >= ACCEPT_CHOICES_MAX {
                return Err(Failure(format!("accept: a rule has at most {ACCEPT_CHOICES_MAX} choices")));
            }
            choices.push(choice.to_vec());
        }
    }
    crate::call::done(Value::Void)
}

/// `.remove()`
pub(crate) fn remove(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    if let Some(rule) = context.instances().object::<Rule>(instance) {
        let mut choices = rule.choices.write();
        if let Some(index) = find(&choices, scratch.get(arguments.text(0))) {
            choices.remove(index);
        }
    }
    Value::Void
}

/// `.filter()`
pub(crate) fn filter(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Value {
    let Some(rule) = context.instances().object::<Rule>(instance) else { return Value::Text(Text::UNSET) };
    let choices = rule.choices.read();
    let chosen = best(&choices, scratch.get(arguments.text(0))).unwrap_or(&rule.fallback);
    Value::Text(scratch.put(chosen))
}

fn find(choices: &[Vec<u8>], wanted: &[u8]) -> Option<usize> {
    choices.iter().position(|choice| choice.eq_ignore_ascii_case(wanted))
}

/// The choice with the highest quality; `None` if there is none, or the header is malformed.
fn best<'a>(choices: &'a [Vec<u8>], header: &[u8]) -> Option<&'a [u8]> {
    let mut best = None;
    let mut highest = 0.0;
    let mut rest = header;
    while let Some(entry) = entry(rest).ok()? {
        if entry.quality > highest
            && let Some(index) = find(choices, entry.range)
        {
            highest = entry.quality;
            best = Some(choices[index].as_slice());
        }
        rest = entry.rest;
    }
    best
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    &text[blanks..]
}

/// Splits off a word, which must not be empty.
fn word(text: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let is_word = |byte: &&u8| !matches!(byte, b',' | b';' | b'=' | b' ' | b'\t'..=b'\r');
    match text.iter().take_while(is_word).count() {
        0 => Err(Malformed),
        end => Ok(text.split_at(end)),
    }
}

/// Reads one entry; `None` at the end of the header.
fn entry(text: &[u8]) -> Result<Option<Entry<'_>>, Malformed> {
    let text = skip_blanks(text);
    if text.is_empty() {
        return Ok(None);
    }
    let (range, rest) = word(text)?;
    let mut entry = Entry { range, quality: 1.0, rest };
    let mut is_first = true;
    loop {
        entry.rest = skip_blanks(entry.rest);
        match entry.rest {
            [] => return Ok(Some(entry)),
            [b',', rest @ ..] => {
                entry.rest = rest;
                return Ok(Some(entry));
            }
            [b';', rest @ ..] => {
                let (name, rest) = word(skip_blanks(rest))?;
                let rest = rest.strip_prefix(b"=").ok_or(Malformed)?;
                let (value, rest) = word(rest)?;
                entry.rest = rest;
                if is_first && name == b"q" {
                    entry.quality = quality(value)?;
                }
                is_first = false;
            }
            _ => return Err(Malformed),
        }
    }
}

/// A number from 0 to 1.
fn quality(text: &[u8]) -> Result<f64, Malformed> {
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !matches!(text, [b'0' | b'1', ..]) || !text.iter().all(is_number) {
        return Err(Malformed);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()).ok_or(Malformed)?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_highest_quality_is_taken() {
        let choices = ["text/html", "application/json", "en"].map(|choice| choice.as_bytes().to_vec());
        for (header, expected) in [
            ("text/html", "text/html"),
            ("TEXT/HTML", "text/html"),
            ("text/html;q=0.5, application/json", "application/json"),
            ("text/html;q=0.5,application/json;q=0.5", "text/html"),
            ("  text/html  ,  en ", "text/html"),
            ("fr, en ; q=0.1", "en"),
            ("text/html;level=1;q=0.1,en;q=0.9", "text/html"),
            ("en,", "en"),
            ("text/plain", "-"),
            ("", "-"),
            ("en;q=0", "-"),
            ("en;q=0.000", "-"),
            ("en;q=1e-1", "en"),
            // A malformed header leads to the fallback, whatever was found before.
            ("en,,text/html", "-"),
            ("en text/html", "-"),
            ("en;q", "-"),
            ("en;q=", "-"),
            ("en;q =1", "-"),
            ("en;q=2", "-"),
            ("en;q=1.5", "-"),
            ("en;q=-1", "-"),
            ("en;q=0x1", "-"),
            ("en;q=0.5abc", "-"),
            ("en;q=nan", "-"),
            ("en;;q=1", "-"),
            ("=", "-"),
            (";", "-"),
        ] {
            let found = best(&choices, header.as_bytes()).unwrap_or(b"-");
            assert_eq!(String::from_utf8_lossy(found), expected, "{header}");
        }
    }

    #[test]
    fn arbitrary_headers_are_read_to_an_end() {
        let mut state = 1_u32;
        for _ in 0..20_000 {
            let header: Vec<u8> = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"aq,;= 01.\xff"[(state >> 24) as usize % 10]
                })
                .collect();
            let _ = best(&[b"a".to_vec()], &header);
        }
    }
}
