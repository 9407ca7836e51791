//! Integers of one, two, four or eight bytes. Source: RFC 9000 §16.

/// The largest integer.
pub const MAX: u64 = (1 << 62) - 1;
/// The most bytes of an integer.
pub const BYTES_MAX: usize = 8;

/// Reads an integer at the beginning; returns its length, too. `None` if it is not complete.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let count = 1 << (first >> 6);
    let rest = bytes.get(1..count)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)), count))
}

/// Appends an integer in its shortest form. A value beyond [`MAX`] is written as that.
pub fn write(value: u64, into: &mut Vec<u8>) {
    let value = value.min(MAX);
    match value {
        0..=0x3f => into.push(value as u8),
        0x40..=0x3fff => into.extend_from_slice(&(0x4000 | value as u16).to_be_bytes()),
        0x4000..=0x3fff_ffff => into.extend_from_slice(&(0x8000_0000 | value as u32).to_be_bytes()),
        _ => into.extend_from_slice(&(0xc000_0000_0000_0000 | value).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 §A.1.
    #[test]
    fn integers_are_those_of_the_examples() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((value, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
            let mut written = Vec::new();
            write(value, &mut written);
            assert_eq!(written, bytes);
        }
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)));
    }
}
