//! Writer of header blocks.

use super::table::{DynamicTable, STATIC, STATUS, TABLE_BYTES_AT_FIRST};
use field_coding::integer;

/// Fields of responses that hardly ever have the same value twice: in the table they would evict
/// fields that recur.
const VARYING: [&[u8]; 14] = [
    b"age",
    b"date",
    b"etag",
    b"expires",
    b"location",
    b"x-varnish",
    b"set-cookie",
    b"cache-status",
    b"retry-after",
    b"content-range",
    b"last-modified",
    b"content-length",
    b"content-location",
    b"content-disposition",
];
/// Longest value that is entered in the table.
const VALUE_BYTES_MAX: usize = 256;

/// The encoder of one connection.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// Smallest size of the table since the last block, if it was changed: it must be told first.
    resized: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder { table: DynamicTable::new(TABLE_BYTES_AT_FIRST), resized: None }
    }
}

impl Encoder {
    /// Handles the largest size of the table that the other side allows. No more is used than at
    /// the beginning of a connection.
    pub fn allow_table(&mut self, bytes_max: usize) {
        let bytes = bytes_max.min(TABLE_BYTES_AT_FIRST);
        if bytes != self.table.bytes_max() {
            self.resized = Some(self.resized.map_or(bytes, |smallest| smallest.min(bytes)));
            self.table.set_bytes_max(bytes);
        }
    }

    /// Begins a block.
    pub fn begin(&mut self, into: &mut Vec<u8>) {
        if let Some(smallest) = self.resized.take() {
            if smallest < self.table.bytes_max() {
                integer::write(smallest as u64, 5, 0x20, into);
            }
            integer::write(self.table.bytes_max() as u64, 5, 0x20, into);
        }
    }

    /// Writes the status of a response, of three digits.
    pub fn status(&mut self, status: u16, into: &mut Vec<u8>) {
        let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        let known = STATIC[STATUS - 1..].iter().take_while(|(name, _)| *name == b":status");
        match known.into_iter().position(|(_, value)| *value == digits) {
            Some(place) => integer::write((STATUS + place) as u64, 7, 0x80, into),
            None => {
                integer::write(STATUS as u64, 4, 0, into);
                string(&digits, into);
            }
        }
    }

    /// Writes a field; the name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], into: &mut Vec<u8>) {
        let of_name = static_name(name);
        if value.len() > VALUE_BYTES_MAX || VARYING.contains(&name) || self.table.bytes_max() == 0 {
            return literal(of_name, 4, 0, name, value, into);
        }
        let mark = mark(name, value);
        if let Some(index) = self.table.find(name, value, mark) {
            return integer::write((STATIC.len() + 1 + index) as u64, 7, 0x80, into);
        }
        literal(of_name, 6, 0x40, name, value, into);
        self.table.insert(name, value, mark);
    }
}

fn literal(of_name: usize, bits: u32, pattern: u8, name: &[u8], value: &[u8], into: &mut Vec<u8>) {
    integer::write(of_name as u64, bits, pattern, into);
    if of_name == 0 {
        string(name, into);
    }
    string(value, into);
}

fn string(text: &[u8], into: &mut Vec<u8>) {
    integer::write(text.len() as u64, 7, 0, into);
    into.extend_from_slice(text);
}

/// A number that differs for most fields that differ.
fn mark(name: &[u8], value: &[u8]) -> u32 {
    let word = |text: &[u8]| {
        let mut bytes = [0; 8];
        let here = text.len().min(8);
        bytes[..here].copy_from_slice(&text[text.len() - here..]);
        u64::from_le_bytes(bytes)
    };
    let middle = &value[..value.len() / 2];
    let mixed = word(name) ^ word(value).rotate_left(21) ^ word(middle).rotate_left(42);
    let sum = mixed.wrapping_add((name.len() << 8 | value.len()) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (sum >> 32) as u32
}

/// Index of a static entry with this name; 0 if there is none.
fn static_name(name: &[u8]) -> usize {
    let range = &BY_LENGTH[name.len().min(BY_LENGTH.len() - 1)];
    range.iter().map(|index| usize::from(*index)).find(|index| STATIC[index - 1].0 == name).unwrap_or(0)
}

/// Longest name of the static table.
const NAME_BYTES_MAX: usize = 27;

/// The static entries of fields whose names have that many bytes; none for longer ones.
static BY_LENGTH: [&[u8]; NAME_BYTES_MAX + 2] = [
    &[],
    &[],
    &[],
    &[21, 60],
    &[33, 34, 37, 38, 45, 59],
    &[22, 50],
    &[19, 32, 35, 54],
    &[36, 51, 52],
    &[39, 42, 46],
    &[],
    &[55, 58],
    &[53],
    &[31, 47],
    &[18, 23, 24, 30, 41, 44],
    &[15, 28],
    &[16, 17],
    &[26, 27, 29, 61],
    &[40, 57],
    &[48],
    &[25, 43, 49],
    &[],
    &[],
    &[],
    &[],
    &[],
    &[56],
    &[],
    &[20],
    &[],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::Decoder;

    #[test]
    fn every_static_name_is_found() {
        for (place, (name, _)) in STATIC.iter().enumerate().skip(14) {
            assert_eq!(static_name(name), place + 1, "{}", String::from_utf8_lossy(name));
        }
        assert_eq!((static_name(b"x"), static_name(&[b'x'; 1000]), static_name(b"")), (0, 0, 0));
    }

    fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        encoder.status(200, &mut block);
        fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
        block
    }

    fn read(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            decoder.decode(block, |name, value| {
                fields.push((text(name), text(value)));
                true
            }),
            Ok(true)
        );
        fields
    }

    #[test]
    fn fields_that_recur_take_one_byte_and_all_are_read_back() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
        let long = "v".repeat(300);
        let fields = [
            ("server", "a"),
            ("x-a", "b"),
            ("age", "7"),
            ("x-varnish", "1 2"),
            ("vary", ""),
            ("x-long", &long),
            ("set-cookie", "a=1"),
        ];
        let first = block(&mut encoder, &fields);
        let again = block(&mut encoder, &fields[..2]);
        let expected = |fields: &[(&str, &str)]| {
            let all = [&[(":status", "200")], fields].concat();
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(read(&mut decoder, &first), expected(&fields));
        assert_eq!(read(&mut decoder, &again), expected(&fields[..2]));
        assert_eq!(again, [0x88, (62 + 2) | 0x80, (62 + 1) | 0x80]);
        for round in 0..1000 {
            let value = format!("{}", round % 200);
            let fields = [("x-b", value.as_str()), ("via", "1.1 x"), ("x-c", "1")];
            assert_eq!(read(&mut decoder, &block(&mut encoder, &fields)), expected(&fields));
        }
    }

    #[test]
    fn a_smaller_table_is_told_before_it_is_used() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
        read(&mut decoder, &block(&mut encoder, &[("x-a", "b")]));
        encoder.allow_table(0);
        encoder.allow_table(60);
        encoder.allow_table(100_000);
        let next = block(&mut encoder, &[("x-a", "b")]);
        assert_eq!(next[..4], [0x20, 0x3f, 0xe1, 0x1f], "0, then 4096");
        read(&mut decoder, &next);
        encoder.allow_table(0);
        let next = block(&mut encoder, &[("x-a", "b")]);
        assert_eq!((next[0], next[2]), (0x20, 0), "nothing is entered");
        assert_eq!(read(&mut decoder, &next).len(), 2);
        assert_eq!(block(&mut encoder, &[])[..], [0x88]);
    }

    #[test]
    fn statuses_have_three_digits() {
        for status in [100, 103, 200, 206, 404, 431, 500, 599, 999] {
            let mut block = Vec::new();
            Encoder::default().status(status, &mut block);
            let read = read(&mut Decoder::new(4096), &block);
            assert_eq!(read, [(":status".to_owned(), status.to_string())]);
        }
    }
}
