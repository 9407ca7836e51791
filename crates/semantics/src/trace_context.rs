//! W3C trace context: `traceparent`, and the size of `tracestate`.
//!
//! ```text
//! 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//! version  trace (16 bytes)              parent (8)    flags
//! ```
//! An unknown version is read by its first 55 bytes, if a `-` or nothing follows; `ff` is not
//! allowed. Source: W3C Trace Context, level 1, §3.2 and §4.

use std::fmt;

/// Length of version 00.
pub const TRACEPARENT_BYTES: usize = 55;
/// Longest `tracestate` that is passed on. Source: §3.3.1.5.
pub const TRACESTATE_BYTES_MAX: usize = 512;
/// Flag: the caller may have recorded the trace.
pub const SAMPLED: u8 = 1;

/// The content of `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent {
    /// The trace; not zero.
    pub trace: u128,
    /// The calling span; not zero.
    pub parent: u64,
    /// Flags.
    pub flags: u8,
}

impl TraceParent {
    /// Parses a field value; `None` if it is malformed.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<TraceParent> {
        let value = value.trim_ascii();
        let head = value.get(..TRACEPARENT_BYTES)?;
        let version = hexadecimal(&head[..2])?;
        let is_longer = value.len() > TRACEPARENT_BYTES;
        let follows = value.get(TRACEPARENT_BYTES).is_none_or(|byte| *byte == b'-');
        if version == 0xff || (version == 0 && is_longer) || !follows {
            return None;
        }
        if [2, 35, 52].iter().any(|at| head[*at] != b'-') {
            return None;
        }
        let trace = hexadecimal(&head[3..35])?;
        let parent = u64::try_from(hexadecimal(&head[36..52])?).ok()?;
        let flags = u8::try_from(hexadecimal(&head[53..])?).ok()?;
        (trace != 0 && parent != 0).then_some(TraceParent { trace, parent, flags })
    }
}

impl fmt::Display for TraceParent {
    /// The field value, in version 00. Other flags than [`SAMPLED`] are not known in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.parent, self.flags & SAMPLED)
    }
}

/// Lower-case digits only. Source: §3.2.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn value_is_read_and_written_back() {
        let parsed = TraceParent::parse(VALUE.as_bytes()).unwrap();
        let expected = TraceParent {
            trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            parent: 0xb7ad_6b71_6920_3331,
            flags: SAMPLED,
        };
        assert_eq!(parsed, expected);
        assert_eq!(parsed.to_string(), VALUE);
        assert_eq!(TraceParent::parse(format!(" {VALUE}\t").as_bytes()), Some(expected));
    }

    #[test]
    fn later_versions_are_read_by_their_beginning() {
        for later in [format!("01{}", &VALUE[2..]), format!("cc{}-more", &VALUE[2..]), format!("01{}-", &VALUE[2..])] {
            assert_eq!(TraceParent::parse(later.as_bytes()), TraceParent::parse(VALUE.as_bytes()), "{later}");
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        let changed = |at: usize, letter: &str| format!("{}{letter}{}", &VALUE[..at], &VALUE[at + 1..]);
        let wrong = [
            String::new(),
            VALUE[..54].to_owned(),
            format!("{VALUE}-x"),
            format!("01{}x", &VALUE[2..]),
            format!("ff{}", &VALUE[2..]),
            changed(2, "_"),
            changed(35, "0"),
            changed(40, "B"),
            changed(10, "g"),
            format!("00-{:032x}-b7ad6b7169203331-01", 0),
            format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", 0),
            "é".repeat(40),
        ];
        for value in wrong {
            assert_eq!(TraceParent::parse(value.as_bytes()), None, "{value}");
        }
    }
}
