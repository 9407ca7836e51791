//! Reader of header blocks.

use super::table::{DynamicTable, STATIC, STATIC_ENTRIES, TABLE_BYTES_AT_FIRST};
use field_coding::{Undecodable, integer, string};

/// Most bytes of an integer after the first: enough for 28 bits.
const MORE_BYTES_MAX: u32 = 4;

/// The decoder of one connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that the other side may choose.
    table_bytes_max: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder that announces a table of this size. A smaller one than the protocol's holds only
    /// once the other side has heard of it: [`Decoder::acknowledge`].
    #[must_use]
    pub fn new(table_bytes_max: usize) -> Decoder {
        Decoder {
            table: DynamicTable::new(TABLE_BYTES_AT_FIRST),
            table_bytes_max: table_bytes_max.max(TABLE_BYTES_AT_FIRST),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The other side has heard of the announced size.
    pub fn acknowledge(&mut self, table_bytes_max: usize) {
        self.table_bytes_max = table_bytes_max;
        if self.table.bytes_max() > table_bytes_max {
            self.table.set_bytes_max(table_bytes_max);
        }
    }

    /// Passes each field (name, value) of a block to `see`, until that returns false: then the
    /// decoder cannot be used any more. Returns true if it was the whole block.
    ///
    /// # Errors
    /// See [`Undecodable`].
    pub fn decode(&mut self, block: &[u8], mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<bool, Undecodable> {
        let mut rest = block;
        let mut is_at_start = true;
        while let Some(first) = rest.first().copied() {
            if first & 0xe0 == 0x20 {
                // Source: RFC 7541 §4.2.
                let bytes = place(&mut rest, 5)?;
                if !is_at_start || bytes > self.table_bytes_max {
                    return Err(Undecodable);
                }
                self.table.set_bytes_max(bytes);
                continue;
            }
            is_at_start = false;
            let is_wanted = if first & 0x80 != 0 {
                let (name, value) = self.indexed(place(&mut rest, 7)?)?;
                see(name, value)
            } else {
                self.literal(&mut rest, first & 0x40 != 0, &mut see)?
            };
            if !is_wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn indexed(&self, index: usize) -> Result<(&[u8], &[u8]), Undecodable> {
        match index.checked_sub(1).ok_or(Undecodable)? {
            index if index < STATIC.len() => Ok(STATIC[index]),
            index => self.table.get(index - STATIC.len()).ok_or(Undecodable),
        }
    }

    fn literal(
        &mut self,
        rest: &mut &[u8],
        is_entered: bool,
        see: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, Undecodable> {
        let index = place(rest, if is_entered { 6 } else { 4 })?;
        let mut name_buffer = std::mem::take(&mut self.name);
        let mut value_buffer = std::mem::take(&mut self.value);
        let name = match index {
            0 => string::read(rest, 7, MORE_BYTES_MAX, &mut name_buffer)?,
            1..=STATIC_ENTRIES => STATIC[index - 1].0,
            // Copied, since entering the field may evict that entry.
            _ => {
                name_buffer.clear();
                name_buffer.extend_from_slice(self.indexed(index)?.0);
                &name_buffer
            }
        };
        let value = string::read(rest, 7, MORE_BYTES_MAX, &mut value_buffer)?;
        let is_wanted = see(name, value);
        if is_entered {
            self.table.insert(name, value, 0);
        }
        (self.name, self.value) = (name_buffer, value_buffer);
        Ok(is_wanted)
    }
}

fn place(rest: &mut &[u8], bits: u32) -> Result<usize, Undecodable> {
    Ok(integer::read(rest, bits, MORE_BYTES_MAX)? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Undecodable> {
        let mut fields = Vec::new();
        decoder.decode(block, |name, value| {
            fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
            true
        })?;
        Ok(fields)
    }

    /// RFC 7541 §C.4.
    #[test]
    fn requests_of_the_standard_are_read() {
        let mut decoder = Decoder::new(4096);
        let first =
            [0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        let get = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
        assert_eq!(fields(&mut decoder, &first).unwrap(), get);
        let second = [0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf];
        assert_eq!(fields(&mut decoder, &second).unwrap(), [&get[..], &["cache-control: no-cache"]].concat());
        let third = [
            0x82, 0x87, 0x85, 0xbf, 0x40, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f, 0x89, 0x25, 0xa8, 0x49,
            0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf,
        ];
        assert_eq!(
            fields(&mut decoder, &third).unwrap(),
            [":method: GET", ":scheme: https", ":path: /index.html", get[3], "custom-key: custom-value"]
        );
        assert_eq!(decoder.table.get(0).unwrap().0, b"custom-key");
    }

    #[test]
    fn an_evicted_name_can_be_entered_again() {
        let mut decoder = Decoder::new(4096);
        assert_eq!(fields(&mut decoder, &[0x3f, 0x05, 0x40, 1, b'a', 1, b'b']).unwrap(), ["a: b"]);
        assert_eq!(fields(&mut decoder, &[0x7e, 1, b'c', 0xbe]).unwrap(), ["a: c", "a: c"]);
        assert_eq!(fields(&mut decoder, &[0xbf]), Err(Undecodable));
    }

    #[test]
    fn blocks_that_mean_nothing_are_refused() {
        for block in [
            &[0x80][..],
            &[0xbe],
            &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            &[0x40],
            &[0x40, 0x05, b'a'],
            &[0x40, 0x01, b'a'],
            &[0x7e, 0x01, b'a'],
            &[0x1f],
            // A size that was not allowed, and one behind a field.
            &[0x3f, 0xe2, 0x1f],
            &[0x82, 0x20],
            // Huffman's code with a padding of zeros, of eight ones, and with the end of a text.
            &[0x00, 0x81, 0x18, 0x00],
            &[0x00, 0x82, 0x1f, 0xff, 0x00],
            &[0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00],
        ] {
            assert_eq!(fields(&mut Decoder::new(4096), block), Err(Undecodable), "{block:?}");
        }
        assert_eq!(fields(&mut Decoder::new(4096), &[0x20, 0x3f, 0xe1, 0x1f, 0x82]).unwrap().len(), 1);
        assert_eq!(fields(&mut Decoder::new(8192), &[0x3f, 0xe2, 0x1f, 0x82]).unwrap().len(), 1);
        let mut small = Decoder::new(0);
        assert_eq!(fields(&mut small, &[0x40, 1, b'a', 1, b'b', 0xbe]).unwrap().len(), 2, "not heard of yet");
        small.acknowledge(0);
        assert_eq!(fields(&mut small, &[0xbe]), Err(Undecodable));
        assert_eq!(fields(&mut small, &[0x40, 1, b'a', 1, b'b']).unwrap(), ["a: b"]);
    }
}
