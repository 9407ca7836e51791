//! Blocks of fields without a dynamic table: [`decode`] and [`Encoder`].
//!
//! References to a dynamic table cannot be read, since there is none. Values are written without
//! Huffman's code: that is a choice of the sender, and costs a third more bytes rather than time.
//! Source: RFC 9204 §4.5. Next file: `qpack/table.rs`.

mod table;

use field_coding::{Undecodable, integer, string};
use table::{STATIC, of_name};

/// Most bytes of an integer after the first: enough for 62 bits.
const MORE_BYTES_MAX: u32 = 9;

/// Passes each field (name, value) of a block to `see`, until that returns false. Returns true if
/// it was the whole block.
///
/// # Errors
/// See [`Undecodable`].
pub fn decode(block: &[u8], mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<bool, Undecodable> {
    let mut rest = block;
    let required = integer::read(&mut rest, 8, MORE_BYTES_MAX)?;
    let base_sign = rest.first().ok_or(Undecodable)? & 0x80;
    integer::read(&mut rest, 7, MORE_BYTES_MAX)?;
    if required != 0 || base_sign != 0 {
        return Err(Undecodable);
    }
    let (mut name_buffer, mut value_buffer) = (Vec::new(), Vec::new());
    while let Some(first) = rest.first().copied() {
        let is_wanted = if first & 0xc0 == 0xc0 {
            let (name, value) = fixed(integer::read(&mut rest, 6, MORE_BYTES_MAX)?)?;
            see(name.as_bytes(), value.as_bytes())
        } else if first & 0xd0 == 0x50 {
            let (name, _) = fixed(integer::read(&mut rest, 4, MORE_BYTES_MAX)?)?;
            see(name.as_bytes(), string::read(&mut rest, 7, MORE_BYTES_MAX, &mut value_buffer)?)
        } else if first & 0xe0 == 0x20 {
            let name = string::read(&mut rest, 3, MORE_BYTES_MAX, &mut name_buffer)?;
            see(name, string::read(&mut rest, 7, MORE_BYTES_MAX, &mut value_buffer)?)
        } else {
            return Err(Undecodable);
        };
        if !is_wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fixed(index: u64) -> Result<(&'static str, &'static str), Undecodable> {
    usize::try_from(index).ok().and_then(|index| STATIC.get(index)).copied().ok_or(Undecodable)
}

/// Writes a block.
pub struct Encoder<'a>(&'a mut Vec<u8>);

impl Encoder<'_> {
    /// Begins a block at the end of `into`.
    #[must_use]
    pub fn begin(into: &mut Vec<u8>) -> Encoder<'_> {
        into.extend_from_slice(&[0, 0]);
        Encoder(into)
    }

    /// Writes a field. The name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        let indices = of_name(name);
        let has_value = |index: &&u8| STATIC[usize::from(**index)].1.as_bytes() == value;
        if let Some(index) = indices.iter().find(has_value) {
            return integer::write(u64::from(*index), 6, 0xc0, self.0);
        }
        match indices.first() {
            Some(index) => integer::write(u64::from(*index), 4, 0x50, self.0),
            None => {
                integer::write(name.len() as u64, 3, 0x20, self.0);
                self.0.extend_from_slice(name);
            }
        }
        integer::write(value.len() as u64, 7, 0, self.0);
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn fields(block: &[u8]) -> Result<Vec<(String, String)>, Undecodable> {
        let mut fields = Vec::new();
        decode(block, |name, value| {
            fields.push((String::from_utf8_lossy(name).into(), String::from_utf8_lossy(value).into()));
            true
        })?;
        Ok(fields)
    }

    #[test]
    fn encoded_fields_can_be_decoded() {
        let written =
            [("x-long-name-of-a-field", "v"), (":status", "200"), (":status", "299"), ("age", "0"), ("a", "")];
        let long = "x".repeat(1000);
        let mut block = Vec::new();
        let mut encoder = Encoder::begin(&mut block);
        written.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes()));
        encoder.field(b"set-cookie", long.as_bytes());
        let read = fields(&block).unwrap();
        assert_eq!(read.len(), written.len() + 1);
        for (one, (name, value)) in read.iter().zip(written) {
            assert_eq!((one.0.as_str(), one.1.as_str()), (name, value));
        }
        assert_eq!(read.last().unwrap().1, long);
    }

    /// RFC 9204 §B.1, and Huffman's code from RFC 7541 §C.4.1.
    #[test]
    fn blocks_of_the_standards_are_read() {
        let block = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(fields(block).unwrap(), [(":path".into(), "/index.html".into())]);
        let block =
            [&[0, 0, 0x50, 0x8c][..], &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]];
        assert_eq!(fields(&block.concat()).unwrap(), [(":authority".into(), "www.example.com".into())]);
    }

    #[test]
    fn blocks_that_need_a_dynamic_table_are_refused() {
        for block in [
            &[][..],
            &[0],
            &[1, 0],
            &[0, 0x80],
            &[0, 0, 0x80],
            &[0, 0, 0x40, 0],
            &[0, 0, 0x10],
            &[0, 0, 0x00, 0],
            // Beyond the static table, beyond the block, beyond any number.
            &[0, 0, 0xff, 0x24],
            &[0, 0, 0x51, 0x05, b'a'],
            &[0, 0, 0x27, 0x00],
            &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(fields(block), Err(Undecodable), "{block:?}");
        }
    }
}
