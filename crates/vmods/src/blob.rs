//! blob: converts binary data to text and back.
//!
//! Compat: encodings, leniency and texts as observed in Varnish 7.1.1. Source: RFC 4648 (hex), RFC
//! 3986 §2.1.

use crate::alphabet::Alphabet;
use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use surface::vmod::functions::blob::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::line;
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::BlobDecode => decode(arguments, scratch),
        Function::BlobEncode => encode(arguments, scratch),
        Function::BlobTranscode => transcode(arguments, scratch),
        Function::BlobSame => done(same(arguments)),
        Function::BlobEqual => done(equal(arguments, scratch)),
        Function::BlobLength => done(length(arguments)),
        Function::BlobSub => sub(arguments),
        Function::Blob => create(context, instance, arguments, scratch),
        Function::BlobGet => done(get(context, instance, scratch)),
        Function::BlobEncodeObject => encode_object(context, instance, arguments, scratch),
    }
}

/// The content of a blob object.
struct Bytes(Vec<u8>);

/// A way to write bytes as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    Identity,
    Base64(Alphabet),
    Hex,
    Url,
}

impl Encoding {
    fn named(word: &[u8]) -> Encoding {
        match word {
            b"BASE64" => Encoding::Base64(Alphabet::Standard),
            b"BASE64URL" => Encoding::Base64(Alphabet::Url),
            b"BASE64URLNOPAD" => Encoding::Base64(Alphabet::UrlBare),
            b"BASE64CF" => Encoding::Base64(Alphabet::Cf),
            b"HEX" => Encoding::Hex,
            b"URL" => Encoding::Url,
            _ => Encoding::Identity,
        }
    }

    fn encode(self, bytes: &[u8], upper: bool) -> Vec<u8> {
        match self {
            Encoding::Identity => bytes.to_vec(),
            Encoding::Base64(alphabet) => alphabet.encode(bytes),
            Encoding::Hex => bytes.iter().flat_map(|byte| hex_digits(*byte, upper)).collect(),
            Encoding::Url => encode_url(bytes, upper),
        }
    }

    /// The most bytes of text that this many bytes can become.
    fn encoded_bytes(self, bytes: usize) -> usize {
        match self {
            Encoding::Identity => bytes,
            Encoding::Base64(_) => bytes.div_ceil(3) * 4,
            Encoding::Hex => bytes * 2,
            Encoding::Url => bytes * 3,
        }
    }

    /// `None` if the text is not in this encoding.
    fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Encoding::Identity => Some(text.to_vec()),
            Encoding::Base64(alphabet) => decode_base64(alphabet, text),
            Encoding::Hex => decode_hex(text),
            Encoding::Url => decode_url(text),
        }
    }
}

/// Letters missing at the end count as padding; the last group may have two padding letters,
/// anywhere in it.
fn decode_base64(alphabet: Alphabet, text: &[u8]) -> Option<Vec<u8>> {
    let mut letters = text.to_vec();
    let last_group = letters.len().saturating_sub(1) / 4 * 4;
    let mut missing = letters.len().next_multiple_of(4) - letters.len();
    for letter in &mut letters[last_group..] {
        if alphabet.padding() == Some(*letter) {
            *letter = b'A';
            missing += 1;
        }
    }
    if missing > 2 {
        return None;
    }
    let mut bytes = alphabet.decode_groups(letters)?;
    bytes.truncate(bytes.len() - missing);
    Some(bytes)
}

fn hex_digits(byte: u8, upper: bool) -> [u8; 2] {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// If the number of digits is odd, the first digit is a byte of its own.
fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    let (half, pairs) = text.split_at(text.len() % 2);
    let mut out = Vec::with_capacity(text.len().div_ceil(2));
    if let [digit] = half {
        out.push(hex_value(*digit)?);
    }
    for pair in pairs.chunks(2) {
        out.push(hex_value(pair[0])? << 4 | hex_value(pair[1])?);
    }
    Some(out)
}

/// True if the byte represents itself in a URL.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

fn encode_url(bytes: &[u8], upper: bool) -> Vec<u8> {
    let plain = bytes.iter().filter(|byte| is_plain(**byte)).count();
    let mut out = Vec::with_capacity(3 * bytes.len() - 2 * plain);
    for byte in bytes {
        if is_plain(*byte) {
            out.push(*byte);
        } else {
            out.push(b'%');
            out.extend(hex_digits(*byte, upper));
        }
    }
    out
}

fn decode_url(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let [high, low, after @ ..] = after else { return None };
            out.push(hex_value(*high)? << 4 | hex_value(*low)?);
            rest = after;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    Some(out)
}

fn failure(text: impl std::fmt::Display) -> Failure {
    Failure(format!("vmod blob error: {text}"))
}

fn encoding(arguments: Arguments<'_>, place: usize, scratch: &Scratch) -> Encoding {
    Encoding::named(scratch.get(arguments.text(place)))
}

/// True if digits are upper-case. The case matters only for HEX and URL.
///
/// # Errors
/// A case is given for an encoding that has none.
fn is_upper(
    encoding: Encoding,
    arguments: Arguments<'_>,
    names: (usize, usize),
    scratch: &Scratch,
) -> Result<bool, Failure> {
    let case = scratch.get(arguments.text(names.1));
    if case != b"DEFAULT" && !case.is_empty() && !matches!(encoding, Encoding::Hex | Encoding::Url) {
        let (case, name) = (String::from_utf8_lossy(case), scratch.get(arguments.text(names.0)));
        return Err(failure(format_args!("case {case} is illegal with encoding {}", String::from_utf8_lossy(name))));
    }
    Ok(case == b"UPPER")
}

/// Decodes a text, or its first `length` bytes if `length` is above 0. If the text is not in this
/// encoding, the error text reports that `what` is impossible, and shows the first of the pieces
/// that the text was joined from.
fn decoded(encoding: Encoding, text: Text, length: i64, what: &str, scratch: &Scratch) -> Result<Vec<u8>, Failure> {
    let bytes = scratch.get(text);
    let wanted = usize::try_from(length).ok().filter(|length| *length > 0).unwrap_or(bytes.len());
    scratch.check_room(wanted.min(bytes.len()))?;
    encoding.decode(&bytes[..wanted.min(bytes.len())]).ok_or_else(|| {
        let piece = line::shown(scratch.get(scratch.first_piece(text)));
        failure(format_args!("cannot {what}, illegal encoding beginning with \"{piece}\""))
    })
}

/// Stores a VCL string, which ends before the first NUL.
fn put_string(scratch: &mut Scratch, bytes: &[u8]) -> Value {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Value::Text(scratch.put(&bytes[..end]))
}

/// `blob.decode()`
pub(crate) fn decode(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let encoding = encoding(arguments, 0, scratch);
    let bytes = decoded(encoding, arguments.text(2), arguments.int(1), "decode", scratch)?;
    done(Value::Blob(scratch.put(&bytes)))
}

/// `blob.encode()`
pub(crate) fn encode(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let encoding = encoding(arguments, 0, scratch);
    let upper = is_upper(encoding, arguments, (0, 1), scratch)?;
    let blob = arguments.text(2);
    if !blob.is_set() {
        return done(Value::Text(Text::UNSET));
    }
    scratch.check_room(blob.len())?;
    let bytes = scratch.get(blob).to_vec();
    encoded(encoding, &bytes, upper, scratch)
}

/// The encoding of bytes, as a string.
fn encoded(encoding: Encoding, bytes: &[u8], upper: bool, scratch: &mut Scratch) -> Result<Called, Failure> {
    if encoding.encoded_bytes(bytes.len()) > scratch.left_bytes() {
        // The length of a URL depends on the number of bytes that represent themselves.
        let counted = match encoding {
            Encoding::Url => 3 * bytes.len() - 2 * bytes.iter().filter(|byte| is_plain(**byte)).count(),
            Encoding::Identity | Encoding::Base64(_) | Encoding::Hex => encoding.encoded_bytes(bytes.len()),
        };
        scratch.check_room(counted)?;
    }
    let text = encoding.encode(bytes, upper);
    done(put_string(scratch, &text))
}

/// `blob.transcode()`
pub(crate) fn transcode(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let to = encoding(arguments, 1, scratch);
    let upper = is_upper(to, arguments, (1, 2), scratch)?;
    let from = encoding(arguments, 0, scratch);
    let bytes = decoded(from, arguments.text(4), arguments.int(3), "decode", scratch)?;
    encoded(to, &bytes, upper, scratch)
}

/// `blob.same()`: true if both are the same bytes at the same address.
pub(crate) fn same(arguments: Arguments<'_>) -> Value {
    let (one, other) = (arguments.text(0), arguments.text(1));
    Value::Bool(one == other || one.is_empty() && other.is_empty())
}

/// `blob.equal()`
pub(crate) fn equal(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    Value::Bool(scratch.get(arguments.text(0)) == scratch.get(arguments.text(1)))
}

/// `blob.length()`
pub(crate) fn length(arguments: Arguments<'_>) -> Value {
    Value::Int(arguments.text(0).len() as i64)
}

/// `blob.sub()`
pub(crate) fn sub(arguments: Arguments<'_>) -> Result<Called, Failure> {
    let whole = arguments.text(0);
    let (length, offset) = (arguments.int(1), arguments.int(2));
    if whole.is_empty() {
        return Err(failure("blob is empty in blob.sub()"));
    }
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    let part = range.and_then(|(offset, length)| whole.part(offset, length)).ok_or_else(|| {
        let size = whole.len();
        failure(format_args!(
            "size {length} from offset {offset} requires more bytes than blob length {size} in blob.sub()"
        ))
    })?;
    done(Value::Blob(part))
}

/// `new x = blob.blob()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let definition = instance.and_then(|instance| context.instances().definition(instance));
    let what = definition.map_or_else(String::new, |it| format!("create blob {}", it.name));
    let bytes = decoded(encoding(arguments, 0, scratch), arguments.text(1), 0, &what, scratch)?;
    context.instances().keep_object(instance, Bytes(bytes));
    done(Value::Void)
}

/// `.get()`: returns the same address for as long as the strings of a task are kept.
pub(crate) fn get(context: &mut dyn VmodContext, instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let Some(number) = instance else { return Value::Blob(Text::UNSET) };
    let generation = scratch.generation();
    let shown = &mut context.task().kept().shown_blobs;
    if shown.0 != generation {
        *shown = (generation, Vec::new());
    }
    if let Some((_, text)) = shown.1.iter().find(|(shown, _)| *shown == number) {
        return Value::Blob(*text);
    }
    let text = context.instances().object(instance).map_or(Text::UNSET, |Bytes(bytes)| scratch.put(bytes));
    context.task().kept().shown_blobs.1.push((number, text));
    Value::Blob(text)
}

/// `.encode()`
pub(crate) fn encode_object(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let encoding = encoding(arguments, 0, scratch);
    let upper = is_upper(encoding, arguments, (0, 1), scratch)?;
    let Some(Bytes(bytes)) = context.instances().object(instance) else { return done(Value::Text(Text::UNSET)) };
    encoded(encoding, bytes, upper, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_varnish_writes_them() {
        for (encoding, bytes, expected) in [
            ("BASE64", &b"foo"[..], "Zm9v"),
            ("BASE64", b"\xfb\xff", "+/8="),
            ("BASE64URL", b"\xfb\xff", "-_8="),
            ("BASE64URLNOPAD", b"\xfb\xff", "-_8"),
            ("BASE64CF", b"\xfb\xff", "-~8_"),
            ("BASE64CF", b"\xfb\xff\xbe", "-~--"),
            ("BASE64", b"a", "YQ=="),
            ("BASE64", b"", ""),
            ("HEX", b"\xab\x0c", "ab0c"),
            ("URL", b"a b/~-_.%\xc3\xa9", "a%20b%2f~-_.%25%c3%a9"),
            ("IDENTITY", b"x", "x"),
        ] {
            let text = Encoding::named(encoding.as_bytes()).encode(bytes, false);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{encoding}");
        }
        assert_eq!(Encoding::Hex.encode(b"\xab", true), b"AB");
        assert_eq!(Encoding::Url.encode(b"/", true), b"%2F");
    }

    #[test]
    fn text_is_read_with_varnishs_leniency_and_no_more() {
        for (encoding, text, expected) in [
            ("BASE64", "Zm9vYg==", Some(&b"foob"[..])),
            ("BASE64", "Zm9vYg", Some(b"foob")),
            ("BASE64", "Zm9vYg=", Some(b"foob")),
            ("BASE64", "Zm9vYh==", Some(b"foob")),
            ("BASE64", "Zm=v", Some(b"\x66\x60")),
            ("BASE64", "Zm9v Yg==", None),
            ("BASE64", "Zm9v_-==", None),
            ("BASE64", "Z", None),
            ("BASE64", "=", None),
            ("BASE64", "Zm9v====", None),
            ("BASE64", "Zg==Zg==", None),
            ("BASE64URLNOPAD", "Zm9vYg", Some(b"foob")),
            ("BASE64URLNOPAD", "Zm9vYg==", None),
            ("BASE64CF", "Zm9vYg__", Some(b"foob")),
            ("HEX", "abc", Some(b"\x0a\xbc")),
            ("HEX", "xyz", None),
            ("HEX", "", Some(b"")),
            ("URL", "a%20+b", Some(b"a +b")),
            ("URL", "a%2", None),
            ("URL", "a%2xb", None),
        ] {
            assert_eq!(
                Encoding::named(encoding.as_bytes()).decode(text.as_bytes()).as_deref(),
                expected,
                "{encoding} {text}"
            );
        }
    }

    #[test]
    fn every_encoding_reads_what_it_wrote() {
        let bytes: Vec<u8> = (0..=255).collect();
        for name in ["IDENTITY", "BASE64", "BASE64URL", "BASE64URLNOPAD", "BASE64CF", "HEX", "URL"] {
            let encoding = Encoding::named(name.as_bytes());
            for length in 0..bytes.len() {
                assert_eq!(
                    encoding.decode(&encoding.encode(&bytes[..length], false)).unwrap(),
                    &bytes[..length],
                    "{name}"
                );
            }
        }
    }
}
