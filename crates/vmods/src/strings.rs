//! str: works on parts of strings.
//!
//! Strings are bytes. Compat: as varnish-modules 0.20 for Varnish 7.1, plus `token_intersect` of
//! later versions.

use crate::arguments::Arguments;
use crate::call::{Call, done};
use std::collections::HashSet;
use surface::vmod::functions::str::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { arguments, scratch, .. } = call;
    match function {
        Function::StrCount => done(count(arguments)),
        Function::StrStartswith => done(compare(arguments, scratch, <[u8]>::starts_with)),
        Function::StrEndswith => done(compare(arguments, scratch, <[u8]>::ends_with)),
        Function::StrContains => done(compare(arguments, scratch, contains)),
        Function::StrTake => done(take(arguments, scratch)),
        Function::StrReverse => done(reverse(arguments, scratch)),
        Function::StrSplit => done(split(arguments, scratch)),
        Function::StrTokenIntersect => token_intersect(arguments, scratch),
    }
}

/// `str.count()`: −1 if unset.
pub(crate) fn count(arguments: Arguments<'_>) -> Value {
    let text = arguments.text(0);
    Value::Int(if text.is_set() { text.len() as i64 } else { -1 })
}

/// A test of two strings; false if one is unset.
pub(crate) fn compare(arguments: Arguments<'_>, scratch: &Scratch, test: impl Fn(&[u8], &[u8]) -> bool) -> Value {
    let (first, second) = (arguments.text(0), arguments.text(1));
    Value::Bool(first.is_set() && second.is_set() && test(scratch.get(first), scratch.get(second)))
}

/// True if the second occurs in the first.
pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// `str.take()`
pub(crate) fn take(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let text = arguments.text(0);
    if !text.is_set() {
        return Value::Text(Text::UNSET);
    }
    let (start, end) = taken(text.len(), arguments.int(1), arguments.int(2));
    let piece = scratch.get(text)[start..end].to_vec();
    Value::Text(scratch.put(&piece))
}

/// The range of `count` bytes from `offset` in `len` bytes; a negative offset counts from the end,
/// a negative count extends to the left.
fn taken(len: usize, count: i64, offset: i64) -> (usize, usize) {
    let len = i128::try_from(len).unwrap_or(0);
    let (count, mut start) = (i128::from(count), i128::from(offset));
    if offset < 0 || (offset == 0 && count < 0) {
        start += len;
    }
    let (start, end) = if count < 0 { (start + count, start) } else { (start, start + count) };
    let (start, end) = (start.clamp(0, len), end.clamp(0, len));
    (start as usize, end as usize)
}

/// `str.reverse()`
pub(crate) fn reverse(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let text = arguments.text(0);
    if !text.is_set() {
        return Value::Text(text);
    }
    let reversed: Vec<u8> = scratch.get(text).iter().rev().copied().collect();
    Value::Text(scratch.put(&reversed))
}

/// `str.split()`: the token with that number, counted from 1 or, if negative, from the end; unset
/// if there is none.
pub(crate) fn split(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let (text, separators) = (scratch.get(arguments.text(0)), scratch.get(arguments.text(2)));
    let number = arguments.int(1);
    if number == 0 || separators.is_empty() {
        return Value::Text(Text::UNSET);
    }
    let index = usize::try_from(number.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let token = if number > 0 { tokens(text, separators).nth(index) } else { tokens(text, separators).nth_back(index) };
    let Some(token) = token.map(<[u8]>::to_vec) else { return Value::Text(Text::UNSET) };
    Value::Text(scratch.put(&token))
}

/// The non-empty pieces between separators.
fn tokens<'a>(text: &'a [u8], separators: &'a [u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> {
    text.split(|byte| separators.contains(byte)).filter(|token| !token.is_empty())
}

/// `str.token_intersect()`
pub(crate) fn token_intersect(arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let (first, second) = (arguments.text(0), arguments.text(1));
    if !first.is_set() || !second.is_set() {
        return done(Value::Bool(false));
    }
    let separators = if arguments.text(2).is_set() { scratch.get(arguments.text(2)) } else { b" ," };
    // A hash set is kept half empty, and is copied when it grows.
    scratch.check_room(tokens(scratch.get(first), separators).count() * 3 * size_of::<&[u8]>())?;
    let known: HashSet<&[u8]> = tokens(scratch.get(first), separators).collect();
    done(Value::Bool(tokens(scratch.get(second), separators).any(|token| known.contains(token))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_from_both_ends() {
        let text = "abcdefghij";
        for (count, offset, expected) in [
            (3, 0, "abc"),
            (3, 2, "cde"),
            (3, 9, "j"),
            (3, 10, ""),
            (3, 11, ""),
            (0, 3, ""),
            (20, 0, "abcdefghij"),
            (-3, 0, "hij"),
            (-3, 5, "cde"),
            (-3, 2, "ab"),
            (3, -4, "ghi"),
            (3, -1, "j"),
            (3, -11, "ab"),
            (3, -20, ""),
            (-3, -4, "def"),
            (i64::MAX, i64::MIN, "abcdefghi"),
            (i64::MIN, i64::MAX, "abcdefghij"),
            (i64::MIN, 0, "abcdefghij"),
            (i64::MAX, 1, "bcdefghij"),
        ] {
            let (start, end) = taken(text.len(), count, offset);
            assert_eq!(&text[start..end], expected, "{count} {offset}");
        }
    }

    #[test]
    fn tokens_are_delimited_by_separators() {
        let all: Vec<&[u8]> = tokens(b" a\t b,c  ", b" \t").collect();
        assert_eq!(all, [&b"a"[..], b"b,c"]);
        assert_eq!(tokens(b"  ", b" ").next(), None);
    }
}
