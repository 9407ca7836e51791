//! Words of a canary: how clients are told apart, its limits, and its bounds.
//!
//! Used by the command line of `vcl.use`, by the manager, which judges, and by the worker, which
//! chooses. Next file: `cli.rs`.

use std::fmt;
use std::time::Duration;

/// Number of parts into which clients are divided; a share is a number of them.
pub const SHARE_WHOLE: u32 = 10_000;
/// Largest share of a canary. The control group is of the same size, and both fit.
pub const SHARE_MAX: u32 = SHARE_WHOLE / 2;
/// Shortest canary.
pub const CANARY_TIME_MIN: Duration = Duration::from_secs(1);
/// Longest canary.
pub const CANARY_TIME_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Longest name of a cookie or header, in bytes.
pub const STICK_NAME_BYTES_MAX: usize = 64;

/// The property by which a client stays with its VCL.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum Stick {
    /// The address; of an IPv6 address the first 64 bits.
    #[default]
    Ip,
    /// The value of the first cookie of this name.
    Cookie(String),
    /// The value of the first header of this name.
    Header(String),
}

impl Stick {
    /// The property for a word: `ip`, `cookie:NAME`, `header:NAME`. `None` if it is none of these,
    /// or the name is not a token of at most [`STICK_NAME_BYTES_MAX`] bytes.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Stick> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let name = |name: &str| {
            let is_good = (1..=STICK_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_token);
            is_good.then(|| name.to_owned())
        };
        match word.split_once(':') {
            None if word == "ip" => Some(Stick::Ip),
            Some(("cookie", cookie)) => name(cookie).map(Stick::Cookie),
            Some(("header", header)) => name(header).map(Stick::Header),
            None | Some(_) => None,
        }
    }
}

impl fmt::Display for Stick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stick::Ip => f.write_str("ip"),
            Stick::Cookie(name) => write!(f, "cookie:{name}"),
            Stick::Header(name) => write!(f, "header:{name}"),
        }
    }
}

/// A share in percent, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) * 100.0 / f64::from(SHARE_WHOLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stick_is_read_as_it_is_shown_and_names_are_tokens() {
        for word in ["ip", "cookie:sid", "header:X-User"] {
            assert_eq!(Stick::from_word(word).unwrap().to_string(), word);
        }
        let long = format!("cookie:{}", "x".repeat(STICK_NAME_BYTES_MAX + 1));
        for word in ["", "IP", "ip:", "cookie", "cookie:", "header:a b", "header:a\r\nb", "header:a:b", &long] {
            assert_eq!(Stick::from_word(word), None, "{word:?}");
        }
        assert_eq!((Percent(500).to_string(), Percent(12).to_string()), ("5 %".to_owned(), "0.12 %".to_owned()));
    }
}
