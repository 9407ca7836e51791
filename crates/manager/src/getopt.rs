//! Parser of the command line in the manner of getopt(3): letters in clusters, values attached or
//! next, operands anywhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use surface::option::LongOption;

/// One element of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// An option letter, with its value if it takes one.
    Option(char, Option<OsString>),
    /// A long option, with its value if it takes one.
    Long(&'static str, Option<OsString>),
    /// Something that is not an option.
    Operand(OsString),
    /// A letter that is not an option.
    Unknown(char),
    /// An unknown long option, or one with a value that it does not take.
    UnknownLong(String),
    /// A letter whose value is missing.
    Incomplete(char),
    /// A long option whose value is missing.
    IncompleteLong(&'static str),
}

/// Splits arguments by an option string (letters, each followed by `:` when it takes a value) and a
/// table of long ones. A mistake is an element too, and the last one.
#[must_use]
pub fn elements(arguments: &[OsString], options: &str, long: &'static [LongOption]) -> Vec<Element> {
    let mut out = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"--" {
            out.extend(rest.by_ref().cloned().map(Element::Operand));
            break;
        }
        if let Some(text) = bytes.strip_prefix(b"--") {
            let element = long_option(text, long, || rest.next().cloned());
            let is_wrong = !matches!(element, Element::Long(..));
            out.push(element);
            if is_wrong {
                return out;
            }
            continue;
        }
        if bytes.len() < 2 || bytes[0] != b'-' {
            out.push(Element::Operand(argument.clone()));
            continue;
        }
        let mut cluster = &bytes[1..];
        while let Some((&byte, after)) = cluster.split_first() {
            let letter = char::from(byte);
            cluster = after;
            match takes_value(options, letter) {
                None => {
                    out.push(Element::Unknown(letter));
                    return out;
                }
                Some(false) => out.push(Element::Option(letter, None)),
                Some(true) => {
                    let value = if cluster.is_empty() {
                        rest.next().cloned()
                    } else {
                        Some(OsStr::from_bytes(cluster).to_owned())
                    };
                    cluster = &[];
                    match value {
                        Some(value) => out.push(Element::Option(letter, Some(value))),
                        None => {
                            out.push(Element::Incomplete(letter));
                            return out;
                        }
                    }
                }
            }
        }
    }
    out
}

/// Parses a long option from the text after its dashes; `next` returns the next argument.
fn long_option(text: &[u8], long: &'static [LongOption], next: impl FnOnce() -> Option<OsString>) -> Element {
    let mut parts = text.splitn(2, |byte| *byte == b'=');
    let (name, value) = (parts.next().unwrap_or_default(), parts.next());
    let value = value.map(|bytes| OsStr::from_bytes(bytes).to_owned());
    let unknown = || Element::UnknownLong(String::from_utf8_lossy(name).into_owned());
    let Some(row) = long.iter().find(|row| row.name.as_bytes() == name) else { return unknown() };
    match (row.takes_value, value) {
        (false, None) => Element::Long(row.name, None),
        (false, Some(_)) => unknown(),
        (true, value) => match value.or_else(next) {
            Some(value) => Element::Long(row.name, Some(value)),
            None => Element::IncompleteLong(row.name),
        },
    }
}

/// True if the letter takes a value; `None` if it is not an option.
fn takes_value(options: &str, letter: char) -> Option<bool> {
    if letter == ':' {
        return None;
    }
    let position = options.find(letter)?;
    Some(options[position + letter.len_utf8()..].starts_with(':'))
}

/// A value as text, for display and for parsing; bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn text(value: &OsStr) -> String {
    String::from_utf8_lossy(&value.to_os_string().into_vec()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(arguments: &[&str]) -> Vec<Element> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        elements(&arguments, "?a:Fs:V", surface::option::DAEMON)
    }

    fn option(letter: char, value: Option<&str>) -> Element {
        Element::Option(letter, value.map(OsString::from))
    }

    #[test]
    fn letters_cluster_and_values_attach() {
        assert_eq!(
            cut(&["-Fa", ":80", "-smalloc,1m"]),
            [option('F', None), option('a', Some(":80")), option('s', Some("malloc,1m"))]
        );
        assert_eq!(cut(&["-a", "-F"]), [option('a', Some("-F"))]);
        assert_eq!(cut(&["-?"]), [option('?', None)]);
    }

    #[test]
    fn long_options_take_what_follows_them() {
        let json = || Element::Long("log-format", Some("json".into()));
        assert_eq!(cut(&["--log-format", "json", "--log-format=json", "-F"]), [json(), json(), option('F', None)]);
        assert_eq!(cut(&["-a", "--help", "--help"]), [option('a', Some("--help")), Element::Long("help", None)]);
        assert_eq!(cut(&["--log-format"]), [Element::IncompleteLong("log-format")]);
        assert_eq!(cut(&["--help=x", "-F"]), [Element::UnknownLong("help".into())]);
        assert_eq!(cut(&["--halp", "-F"]), [Element::UnknownLong("halp".into())]);
    }

    #[test]
    fn operands_are_found_anywhere() {
        let operand = |text: &str| Element::Operand(text.into());
        assert_eq!(cut(&["x", "-F", "-", "--", "-V"]), [operand("x"), option('F', None), operand("-"), operand("-V")]);
    }

    #[test]
    fn invalid_option_ends_the_list() {
        assert_eq!(cut(&["-FZ", "-V"]), [option('F', None), Element::Unknown('Z')]);
        assert_eq!(cut(&["-:"]), [Element::Unknown(':')]);
        assert_eq!(cut(&["-Fa"]), [option('F', None), Element::Incomplete('a')]);
    }
}
