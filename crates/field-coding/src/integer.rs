//! Integers that begin in the low bits of a byte. Source: RFC 7541 §5.1, RFC 9204 §4.1.1.

/// Reason why an integer cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The input ends before the integer does.
    Ended,
    /// The integer has more bytes than allowed.
    TooLong,
}

/// Reads an integer with `bits` (1 to 8) bits in its first byte, and advances past it.
/// `more_bytes_max` is the maximum number of bytes after the first, at most 9: those are enough for
/// 62 bits.
///
/// # Errors
/// See [`Unreadable`]; then `rest` is unchanged.
pub fn read(rest: &mut &[u8], bits: u32, more_bytes_max: u32) -> Result<u64, Unreadable> {
    let mask = (1u64 << bits) - 1;
    let (first, mut after) = rest.split_first().ok_or(Unreadable::Ended)?;
    let mut value = u64::from(*first) & mask;
    if value == mask {
        for place in 0.. {
            if place == more_bytes_max {
                return Err(Unreadable::TooLong);
            }
            let (byte, next) = after.split_first().ok_or(Unreadable::Ended)?;
            after = next;
            value += u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(value)
}

/// Appends an integer; `pattern` are the bits before it in its first byte.
pub fn write(value: u64, bits: u32, pattern: u8, into: &mut Vec<u8>) {
    let mask = (1u64 << bits) - 1;
    if value < mask {
        return into.push(pattern | value as u8);
    }
    into.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        into.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    into.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: RFC 7541 §C.1.
    #[test]
    fn integers_are_those_of_the_examples() {
        for (value, bits, bytes) in [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42]), (31, 5, &[31, 0])] {
            let mut written = Vec::new();
            write(value, bits, 0, &mut written);
            assert_eq!(written, bytes);
            let mut rest = bytes;
            assert_eq!(read(&mut rest, bits, 9), Ok(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_integer_that_ends_too_early_or_is_too_long_is_left() {
        for (bytes, more_bytes_max, why) in [
            (&[][..], 9, Unreadable::Ended),
            (&[31], 9, Unreadable::Ended),
            (&[31, 0x80, 0x80, 0], 2, Unreadable::TooLong),
        ] {
            let mut rest = bytes;
            assert_eq!(read(&mut rest, 5, more_bytes_max), Err(why));
            assert_eq!(rest, bytes);
        }
    }
}
