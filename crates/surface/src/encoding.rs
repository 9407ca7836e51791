//! Content codings that Copal encodes and decodes, and lists of them in order of preference.
//!
//! A list is one 16-bit word, so that a request can carry a copy of its parameter. Source: RFC 9110
//! §8.4.1 (gzip), RFC 7932 (br), RFC 8878 and RFC 9659 (zstd).

/// A content coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// `gzip`, also written `x-gzip`.
    Gzip = 1,
    /// `br`.
    Brotli = 2,
    /// `zstd`.
    Zstd = 3,
}

/// All codings.
pub const ENCODINGS: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd];

impl Encoding {
    /// Name in header fields and in the parameter `http_encodings`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Brotli => "br",
            Encoding::Zstd => "zstd",
        }
    }

    /// Coding with this name, ignoring case.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Encoding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Encoding::Gzip);
        }
        ENCODINGS.into_iter().find(|encoding| name.eq_ignore_ascii_case(encoding.name().as_bytes()))
    }
}

/// Codings, each at most once, the preferred one first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Encodings(u16);

/// Bits of one coding in the word.
const BITS: u32 = 4;

impl Encodings {
    /// No coding.
    pub const NONE: Encodings = Encodings(0);
    /// Only gzip: the coding that Varnish supports, and the default of the parameter.
    pub const GZIP: Encodings = Encodings(Encoding::Gzip as u16);

    /// The list for the value of the parameter `http_encodings`.
    #[must_use]
    pub const fn of_parameter(value: u64) -> Encodings {
        Encodings(value as u16)
    }

    /// The value of the parameter.
    #[must_use]
    pub const fn parameter(self) -> u64 {
        self.0 as u64
    }

    /// Appends a coding unless the list contains it.
    pub fn push(&mut self, encoding: Encoding) {
        if !self.has(encoding) {
            self.0 |= (encoding as u16) << (BITS * self.iter().count() as u32);
        }
    }

    /// True if the list contains a coding.
    #[must_use]
    pub fn has(self, encoding: Encoding) -> bool {
        self.iter().any(|other| other == encoding)
    }

    /// True if the list has a coding that Varnish does not support.
    #[must_use]
    pub const fn is_beyond_gzip(self) -> bool {
        self.0 & !Encodings::GZIP.0 != 0
    }

    /// The codings, the preferred one first.
    pub fn iter(self) -> impl Iterator<Item = Encoding> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let code = rest & ((1 << BITS) - 1);
            rest >>= BITS;
            ENCODINGS.into_iter().find(|encoding| *encoding as u16 == code)
        })
    }

    /// The names, separated by `between`.
    #[must_use]
    pub fn join(self, between: &str) -> String {
        self.iter().map(Encoding::name).collect::<Vec<_>>().join(between)
    }

    /// Parses the value of the parameter: names separated by spaces or commas. `gzip` is mandatory,
    /// since every client supports it; `http_gzip_support` turns all codings off.
    ///
    /// # Errors
    /// The error text for the CLI.
    pub fn parse(text: &str) -> Result<Encodings, String> {
        let mut list = Encodings::NONE;
        for name in text.split([' ', ',', '\t']).filter(|name| !name.is_empty()) {
            let encoding = Encoding::of_name(name.as_bytes()).ok_or_else(|| {
                let known = ENCODINGS.map(Encoding::name).join(", ");
                format!("Unknown coding \"{name}\", use {known}\n")
            })?;
            list.push(encoding);
        }
        if list.has(Encoding::Gzip) { Ok(list) } else { Err("gzip must be among them\n".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_as_it_was_written() {
        for (text, shown) in
            [("gzip", "gzip"), ("br gzip", "br gzip"), ("ZSTD,br, gzip", "zstd br gzip"), ("gzip br gzip", "gzip br")]
        {
            let list = Encodings::parse(text).unwrap();
            assert_eq!(list.join(" "), shown);
            assert_eq!(Encodings::of_parameter(list.parameter()), list);
            assert_eq!(list.is_beyond_gzip(), shown != "gzip");
        }
        for text in ["", "br", "deflate gzip", "identity"] {
            assert!(Encodings::parse(text).is_err(), "{text}");
        }
        assert_eq!(Encodings::of_parameter(u64::MAX).iter().count(), 0, "a damaged list is empty");
    }
}
