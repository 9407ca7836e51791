//! Messages of the VCL compiler: for each the code, the meaning, the cause and the correction.
//!
//! Codes are stable: a code is never given to another message, and a retired code is not used
//! again. The first two digits give the part of the language: 00 sources and versions, 01
//! characters, 02 grammar, 03 names, 04 permitted places, 05 types, 06 backends and probes, 07
//! access control lists, 08 old dialects. The texts of messages are in the compiler; `copal vcl
//! explain` shows this table. The rows are in `diagnostic/rows.rs`.

mod rows;

pub use rows::{CODES, Code};

/// The documentation of one code.
#[derive(Clone, Copy, Debug)]
pub struct CodeRow {
    /// The code.
    pub code: Code,
    /// Written form: `V0301`.
    pub number: &'static str,
    /// Title: the error in a few words.
    pub title: &'static str,
    /// The cause, and the correction.
    pub explanation: &'static str,
    /// A VCL that causes the message.
    pub bad: &'static str,
    /// The corrected VCL.
    pub good: &'static str,
}

impl Code {
    /// The documentation of this code.
    #[must_use]
    pub fn row(self) -> &'static CodeRow {
        &CODES[self as usize]
    }

    /// Written form: `V0301`.
    #[must_use]
    pub fn number(self) -> &'static str {
        self.row().number
    }

    /// Code with this number, ignoring case; the `V` is optional.
    #[must_use]
    pub fn by_number(written: &str) -> Option<Code> {
        let digits = written.strip_prefix(['V', 'v']).unwrap_or(written);
        CODES.iter().find(|row| &row.number[1..] == digits).map(|row| row.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_numbers() {
        assert!(CODES.windows(2).all(|pair| pair[0].number < pair[1].number));
        for (index, row) in CODES.iter().enumerate() {
            assert_eq!(row.code as usize, index, "{}", row.number);
            assert!(row.number.len() == 5 && row.number.starts_with('V'), "{}", row.number);
            assert!(!row.title.is_empty() && row.title.len() <= 80 && !row.title.ends_with('.'), "{}", row.number);
            assert!(row.explanation.len() > 40, "{}", row.number);
            assert!(row.bad != row.good && !row.bad.is_empty() && !row.good.is_empty(), "{}", row.number);
        }
    }

    #[test]
    fn a_code_is_found_as_people_write_it() {
        assert_eq!(Code::by_number("V0301"), Some(Code::UnknownSymbol));
        assert_eq!(Code::by_number("v0301"), Some(Code::UnknownSymbol));
        assert_eq!(Code::by_number("0301"), Some(Code::UnknownSymbol));
        assert_eq!(Code::by_number("V9999"), None);
        assert_eq!(Code::by_number(""), None);
    }
}
