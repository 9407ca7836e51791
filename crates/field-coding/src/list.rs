//! Decoded fields of a head in one buffer: [`FieldList`].
//!
//! The order and repetition of fields are kept; names are in lower case. A cleared list keeps its
//! memory. Source: RFC 9113 §8.2.

/// Bytes of the two lengths before each field.
const LENGTHS_BYTES: usize = 8;

/// Field lines, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldList {
    /// For each field the lengths of its name and value, then both.
    bytes: Vec<u8>,
    count: usize,
}

impl FieldList {
    /// An empty list.
    #[must_use]
    pub fn new() -> FieldList {
        FieldList::default()
    }

    /// An empty list with room for fields whose names and values have this many bytes.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> FieldList {
        FieldList { bytes: Vec::with_capacity(bytes + fields * LENGTHS_BYTES), count: 0 }
    }

    /// Appends a field; the name is stored in lower case.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let lengths = (name.len() as u64 & 0xffff_ffff) | (value.len() as u64) << 32;
        self.bytes.extend_from_slice(&lengths.to_le_bytes());
        let at = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes[at..].make_ascii_lowercase();
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// The fields: names and values.
    #[must_use]
    pub fn iter(&self) -> Fields<'_> {
        Fields { rest: &self.bytes }
    }

    /// The first value of a field; `name` is in lower case.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// All values of a field; `name` is in lower case.
    pub fn get_all<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}

impl<'a> IntoIterator for &'a FieldList {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = Fields<'a>;

    fn into_iter(self) -> Fields<'a> {
        self.iter()
    }
}

/// The fields of a [`FieldList`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (lengths, rest) = self.rest.split_first_chunk::<LENGTHS_BYTES>()?;
        let lengths = u64::from_le_bytes(*lengths);
        let (name, rest) = rest.split_at_checked((lengths & 0xffff_ffff) as usize)?;
        let (value, rest) = rest.split_at_checked((lengths >> 32) as usize)?;
        self.rest = rest;
        Some((name, value))
    }
}

/// True for a byte of a field name in lower case: a token without capital letters.
#[must_use]
pub fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

/// True if a field may have this name: a token in lower case. Source: RFC 9113 §8.2.1.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_name_byte(*byte))
}

/// True if a field may have this value: no control characters but tabs.
#[must_use]
pub fn is_value(value: &[u8]) -> bool {
    value.iter().fold(true, |is_valid, byte| is_valid & ((*byte >= b' ') & (*byte != 0x7f) | (*byte == b'\t')))
}

static NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            table[byte as usize] = true;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_order_with_names_in_lower_case() {
        let mut list = FieldList::with_capacity(3, 30);
        list.push(b"Set-Cookie", b"A=1");
        list.push(b"x", b"");
        list.push(b"set-cookie", b"b=2");
        let fields: Vec<_> = list.iter().collect();
        assert_eq!(fields, [(&b"set-cookie"[..], &b"A=1"[..]), (b"x", b""), (b"set-cookie", b"b=2")]);
        assert_eq!((list.len(), list.get(b"x"), list.get(b"y")), (3, Some(&b""[..]), None));
        assert_eq!(list.get_all(b"set-cookie").count(), 2);
        list.clear();
        assert!(list.is_empty() && list.iter().next().is_none());
    }

    #[test]
    fn names_are_lower_case_tokens_and_values_have_no_controls() {
        assert!(is_name(b"x-a!#$%&'*+-.^_`|~09") && is_value(b"\tab \xff"));
        for name in [&b""[..], b"X", b"a b", b":a", b"a\0", b"\xe9", b"a\"", b"a{"] {
            assert!(!is_name(name), "{name:?}");
        }
        for value in [&b"\0"[..], b"a\r", b"\n", b"\x7f", b"\x1b"] {
            assert!(!is_value(value), "{value:?}");
        }
    }
}
