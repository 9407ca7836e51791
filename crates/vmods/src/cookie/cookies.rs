//! The cookies of a task. The rules of parsing are those at the top of `cookie.rs`.

use std::collections::HashMap;
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Text};

/// One cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Memory that a cookie takes besides its name and value; includes the table by name while a header
/// is parsed.
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

    /// Memory of the cookies, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces all cookies.
    fn replace(&mut self, list: Vec<Cookie>) {
        self.bytes = list.iter().map(|cookie| ENTRY_BYTES + cookie.name.len() + cookie.value.len()).sum();
        self.list = list;
    }

    /// Keeps those for which `is_kept` returns true.
    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&Cookie) -> bool) {
        let mut list = std::mem::take(&mut self.list);
        list.retain(is_kept);
        self.replace(list);
    }

    /// Returns the number of cookies in the header, including those that are not kept and each of
    /// several with one name.
    ///
    /// # Errors
    /// The cookies take more than `limit_bytes`; then none are kept.
    pub(crate) fn parse(&mut self, header: &[u8], limit_bytes: usize) -> Result<usize, Failure> {
        self.clear();
        let mut list: Vec<Cookie> = Vec::new();
        let mut bytes = 0;
        let mut count = 0;
        // A client may send thousands of cookies: this table finds the position of each by name in
        // constant time.
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
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8], limit_bytes: usize) -> Result<(), Failure> {
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

    /// All cookies, in order.
    pub(crate) fn list(&self) -> &[Cookie] {
        &self.list
    }

    /// The value of the cookie with that name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.list.iter().find(|cookie| cookie.name == name).map(|cookie| cookie.value.as_slice())
    }

    /// Writes the cookies as a header.
    pub(crate) fn put(&self, scratch: &mut Scratch) -> Text {
        let start = scratch.begin();
        for (index, cookie) in self.list.iter().enumerate() {
            for part in [if index == 0 { &b""[..] } else { b" " }, &cookie.name, b"=", &cookie.value, b";"] {
                scratch.extend(part);
            }
        }
        scratch.end(start)
    }
}

/// Removes blanks at the beginning.
pub(super) fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &bytes[blanks..]
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
    fn cookie_memory_of_a_task_is_bounded() {
        let mut cookies = Cookies::default();
        assert!(cookies.parse(&b"a=1;b=2;".repeat(1000), 100_000).is_err());
        assert_eq!(shown(&cookies), "");
        let added = (0..1000).take_while(|n| cookies.set(n.to_string().as_bytes(), b"1", 100_000).is_ok()).count();
        assert!((100..600).contains(&added), "{added}");
    }

    #[test]
    fn cookie_memory_follows_every_change() {
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
}
