//! cookie: parses a Cookie header; the cookies are kept for the duration of a task.
//!
//! Compat: parsing as observed in Varnish 7.1.1: a name ends at the first `=`, a value at the next `;`; blanks before a name
//! are skipped, nothing else is trimmed; a cookie without a value is dropped; a repeated name keeps its first position and
//! its last value. Names are compared byte by byte.

use crate::arguments::Arguments;
use crate::context::VmodContext;
use std::collections::{HashMap, HashSet};
use surface::tag::Tag;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// One cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Memory that a cookie takes besides its name and value; includes the table by name while a header is parsed.
const ENTRY_BYTES: usize = 2 * size_of::<Cookie>() + 96;

/// The cookies of a task.
#[derive(Debug, Default)]
pub(crate) struct Cookies {
    list: Vec<Cookie>,
    bytes: usize,
}

impl Cookies {
    pub(crate) fn clear(&mut self) {
        *self = Cookies::default();
    }

    /// What they take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps other cookies.
    fn replace(&mut self, list: Vec<Cookie>) {
        self.bytes = list.iter().map(|cookie| ENTRY_BYTES + cookie.name.len() + cookie.value.len()).sum();
        self.list = list;
    }

    fn retain(&mut self, is_kept: impl FnMut(&Cookie) -> bool) {
        let mut list = std::mem::take(&mut self.list);
        list.retain(is_kept);
        self.replace(list);
    }

    /// Returns how many cookies there are, with those that are not kept and each of several with one name.
    ///
    /// # Errors
    /// The cookies take more than `limit_bytes`; then none are kept.
    fn parse(&mut self, header: &[u8], limit_bytes: usize) -> Result<usize, Failure> {
        self.clear();
        let mut list: Vec<Cookie> = Vec::new();
        let mut bytes = 0;
        let mut count = 0;
        // A client may send thousands of cookies: this table finds the position of each by name in constant time.
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        let mut rest = header;
        loop {
            rest = skip_blanks(rest);
            let Some(equals) = rest.iter().position(|byte| *byte == b'=') else {
                self.replace(list);
                return Ok(count);
            };
            count += 1;
            let (name, after) = (&rest[..equals], &rest[equals + 1..]);
            let end = after.iter().position(|byte| *byte == b';').unwrap_or(after.len());
            let value = &after[..end];
            if !name.is_empty() && !value.is_empty() {
                bytes += ENTRY_BYTES + name.len() + value.len();
                if bytes > limit_bytes {
                    return Err(Failure::out_of_memory());
                }
                let place = *places.entry(name).or_insert(list.len());
                match list.get_mut(place) {
                    Some(cookie) => cookie.value = value.to_vec(),
                    None => list.push(Cookie { name: name.to_vec(), value: value.to_vec() }),
                }
            }
            rest = after.get(end + 1..).unwrap_or(b"");
        }
    }

    /// Does nothing without a name or a value.
    ///
    /// # Errors
    /// The cookies would take more than `limit_bytes`.
    fn set(&mut self, name: &[u8], value: &[u8], limit_bytes: usize) -> Result<(), Failure> {
        if name.is_empty() || value.is_empty() {
            return Ok(());
        }
        let more = ENTRY_BYTES + name.len() + value.len();
        if self.bytes + more > limit_bytes {
            return Err(Failure::out_of_memory());
        }
        match self.list.iter_mut().find(|cookie| cookie.name == name) {
            Some(cookie) => {
                self.bytes = self.bytes - cookie.value.len() + value.len();
                cookie.value = value.to_vec();
            }
            None => {
                self.bytes += more;
                self.list.push(Cookie { name: name.to_vec(), value: value.to_vec() });
            }
        }
        Ok(())
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.list.iter().find(|cookie| cookie.name == name).map(|cookie| cookie.value.as_slice())
    }

    fn put(&self, scratch: &mut Scratch) -> Text {
        let start = scratch.begin();
        for (index, cookie) in self.list.iter().enumerate() {
            for part in [if index == 0 { &b""[..] } else { b" " }, &cookie.name, b"=", &cookie.value, b";"] {
                scratch.extend(part);
            }
        }
        scratch.end(start)
    }
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &bytes[blanks..]
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

/// `cookie.parse()`: an empty or unset header keeps the cookies of the previous one. Compat: Varnish 7.1.
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
    crate::done(Value::Void)
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
    crate::done(Value::Void)
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
    crate::done(Value::Void)
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
        None => crate::done(Value::Void),
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
    for cookie in &cookies.list {
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
    crate::done(Value::Text(found?))
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

    fn shown(cookies: &Cookies) -> String {
        let mut scratch = Scratch::new(1 << 24);
        let text = cookies.put(&mut scratch);
        String::from_utf8(scratch.get(text).to_vec()).unwrap()
    }

    fn parsed(header: &str) -> String {
        let mut cookies = Cookies::default();
        cookies.parse(header.as_bytes(), usize::MAX).unwrap();
        shown(&cookies)
    }

    #[test]
    fn headers_are_taken_apart_as_varnish_does() {
        for (header, expected) in [
            ("a=1; b=2", "a=1; b=2;"),
            ("", ""),
            ("a", ""),
            ("a;b=1", "a;b=1;"),
            ("b=1;c", "b=1;"),
            ("b=1, c=2", "b=1, c=2;"),
            ("A=1; a=2", "A=1; a=2;"),
            ("  a=1 2 ; b = 3", "a=1 2 ; b = 3;"),
            ("a=1; a=2; b=2", "a=2; b=2;"),
            ("a=1; b=2;c=3 ;d; =x; e=; f=5=6;; a=9; g = 7 ", "a=1; b=2; c=3 ; d; =x; f=5=6; ; a=9; g = 7 ;"),
        ] {
            assert_eq!(parsed(header), expected, "{header}");
        }
    }

    #[test]
    fn thousands_of_cookies_are_taken_apart_in_linear_time() {
        let header: String = (0..50_000).map(|number| format!("c{number}=1;")).collect();
        assert_eq!(parsed(&header).split(' ').count(), 50_000);
    }

    #[test]
    fn a_cookie_without_name_or_value_is_not_set() {
        let mut cookies = Cookies::default();
        cookies.parse(b"a=1; b=2", 10_000).unwrap();
        for (name, value) in [(&b"a"[..], &b"5"[..]), (b"c", b"6"), (b"", b"6"), (b"d", b"")] {
            cookies.set(name, value, 10_000).unwrap();
        }
        assert_eq!(shown(&cookies), "a=5; b=2; c=6;");
    }

    #[test]
    fn what_a_task_keeps_of_cookies_is_bounded() {
        let mut cookies = Cookies::default();
        assert!(cookies.parse(&b"a=1;b=2;".repeat(1000), 100_000).is_err());
        assert_eq!(shown(&cookies), "");
        let added = (0..1000).take_while(|n| cookies.set(n.to_string().as_bytes(), b"1", 100_000).is_ok()).count();
        assert!((100..600).contains(&added), "{added}");
    }

    #[test]
    fn what_cookies_take_follows_every_change() {
        let mut cookies = Cookies::default();
        let taken = |cookies: &Cookies| {
            cookies.list.iter().map(|cookie| ENTRY_BYTES + cookie.name.len() + cookie.value.len()).sum::<usize>()
        };
        cookies.parse(b"a=1; b=22; a=333", 10_000).unwrap();
        assert_eq!((cookies.bytes(), cookies.list.len()), (taken(&cookies), 2));
        cookies.set(b"a", b"1", 10_000).unwrap();
        cookies.set(b"c", b"4444", 10_000).unwrap();
        assert_eq!((cookies.bytes(), cookies.list.len()), (taken(&cookies), 3));
        cookies.retain(|cookie| cookie.name != b"b");
        assert_eq!((cookies.bytes(), cookies.list.len()), (taken(&cookies), 2));
        cookies.clear();
        assert_eq!(cookies.bytes(), 0);
    }

    #[test]
    fn lists_of_names_skip_blanks_before_a_name_only() {
        assert_eq!(names(b"a, c ,,d").collect::<Vec<_>>(), [&b"a"[..], b"c ", b"d"]);
    }
}
