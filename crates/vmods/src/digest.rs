//! digest: hashes, keyed hashes and base64 of strings.
//!
//! Hashes are written as lower-case hexadecimal digits, keyed ones with `0x` in front. Compat: as
//! libvmod-digest 1.0.3 with libmhash 0.9.9: an unset string hashes like an empty one, a keyed hash
//! without a key is unset, CRC-32 and Adler-32 are written lowest byte first, and decoded base64
//! ends before its first zero byte. Omitted: hashes of libmhash that no published VCL uses.

use crate::alphabet::Alphabet;
use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use ::md5::Md5;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use surface::tag::Tag;
use surface::vmod::functions::digest::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::DigestHashSha1 => done(hash(arguments, scratch, of::<Sha1>)),
        Function::DigestHashSha224 => done(hash(arguments, scratch, of::<Sha224>)),
        Function::DigestHashSha256 => done(hash(arguments, scratch, of::<Sha256>)),
        Function::DigestHashSha384 => done(hash(arguments, scratch, of::<Sha384>)),
        Function::DigestHashSha512 => done(hash(arguments, scratch, of::<Sha512>)),
        Function::DigestHashMd5 => done(hash(arguments, scratch, of::<Md5>)),
        Function::DigestHashCrc32 => done(hash(arguments, scratch, crc32_of_bzip2)),
        Function::DigestHashCrc32b => done(hash(arguments, scratch, crc32)),
        Function::DigestHashAdler32 => done(hash(arguments, scratch, adler32)),
        Function::DigestHmacSha256 => done(keyed::<Hmac<Sha256>>(arguments, scratch)),
        Function::DigestHmacSha1 => done(keyed::<Hmac<Sha1>>(arguments, scratch)),
        Function::DigestHmacMd5 => done(keyed::<Hmac<Md5>>(arguments, scratch)),
        Function::DigestBase64 => encode(Alphabet::Standard, arguments, scratch),
        Function::DigestBase64Hex => encode_hexadecimal(Alphabet::Standard, arguments, scratch),
        Function::DigestBase64Decode => decode(Alphabet::Standard, context, arguments, scratch),
        Function::DigestBase64url => encode(Alphabet::Url, arguments, scratch),
        Function::DigestBase64urlHex => encode_hexadecimal(Alphabet::Url, arguments, scratch),
        Function::DigestBase64urlDecode => decode(Alphabet::Url, context, arguments, scratch),
        Function::DigestBase64urlNopad => encode(Alphabet::UrlBare, arguments, scratch),
        Function::DigestBase64urlNopadHex => encode_hexadecimal(Alphabet::UrlBare, arguments, scratch),
        Function::DigestBase64urlNopadDecode => decode(Alphabet::UrlBare, context, arguments, scratch),
        Function::DigestVersion => done(version(scratch)),
    }
}

/// Result of `digest.version()`: the version of the VMOD whose behaviour is reproduced.
const VERSION: &[u8] = b"1.0.3";

/// `digest.hash_…()`
pub(crate) fn hash(arguments: Arguments<'_>, scratch: &mut Scratch, digest: impl Fn(&[u8]) -> Vec<u8>) -> Value {
    let digest = digest(scratch.get(arguments.text(0)));
    Value::Text(scratch.put(&hexadecimal(b"", &digest)))
}

pub(crate) fn of<D: Digest>(text: &[u8]) -> Vec<u8> {
    D::digest(text).to_vec()
}

/// The CRC-32 of bzip2, which is Ethernet's with the highest bit first.
fn crc32_of_bzip2(text: &[u8]) -> Vec<u8> {
    let step = |crc: u32, _| if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
    let crc = !text.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte) << 24, step));
    crc.to_le_bytes().to_vec()
}

fn crc32(text: &[u8]) -> Vec<u8> {
    crc32fast::hash(text).to_le_bytes().to_vec()
}

fn adler32(text: &[u8]) -> Vec<u8> {
    adler2::adler32_slice(text).to_le_bytes().to_vec()
}

/// `digest.hmac_…()`
pub(crate) fn keyed<M: Mac + KeyInit>(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    if !arguments.text(0).is_set() {
        return Value::Text(Text::UNSET);
    }
    let digest = code::<M>(scratch.get(arguments.text(0)), scratch.get(arguments.text(1)));
    Value::Text(scratch.put(&hexadecimal(b"0x", &digest)))
}

fn code<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    // An HMAC accepts keys of any length.
    let Ok(mut code) = M::new_from_slice(key) else { return Vec::new() };
    code.update(text);
    code.finalize().into_bytes().to_vec()
}

pub(crate) fn hexadecimal(front: &[u8], bytes: &[u8]) -> Vec<u8> {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    front.iter().copied().chain(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)])).collect()
}

/// Decodes base64; `None` if a letter is not in the alphabet. Padding counts as zeros wherever it
/// is, and so do letters missing at the end.
fn decoded(alphabet: Alphabet, text: &[u8]) -> Option<Vec<u8>> {
    let zero = |letter: &u8| if alphabet.padding() == Some(*letter) { b'A' } else { *letter };
    alphabet.decode_groups(text.iter().map(zero).collect())
}

/// `digest.base64…()`
pub(crate) fn encode(alphabet: Alphabet, arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let bytes = scratch.get(arguments.text(0));
    scratch.check_room(bytes.len().div_ceil(3) * 4)?;
    let text = alphabet.encode(bytes);
    done(Value::Text(scratch.put(&text)))
}

/// `digest.base64…_hex()`: encodes the bytes that hexadecimal digits express; anything that is not
/// a digit counts as 0.
pub(crate) fn encode_hexadecimal(
    alphabet: Alphabet,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let digits = scratch.get(arguments.text(0));
    scratch.check_room(digits.len().div_ceil(6) * 4)?;
    let bytes = bytes_of_digits(digits);
    done(Value::Text(scratch.put(&alphabet.encode(&bytes))))
}

fn bytes_of_digits(text: &[u8]) -> Vec<u8> {
    let digits = text.strip_prefix(b"0x").filter(|rest| !rest.is_empty()).unwrap_or(text);
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
    digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// `digest.base64…_decode()`: if the text can't be decoded, logs that and returns an empty string.
pub(crate) fn decode(
    alphabet: Alphabet,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let text = scratch.get(arguments.text(0));
    scratch.check_room(text.len().div_ceil(4) * 3)?;
    let Some(bytes) = decoded(alphabet, text) else {
        context.log(Tag::VCLError, b"digest: Base64 input contains invalid characters");
        return done(Value::Text(Text::EMPTY));
    };
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    done(Value::Text(scratch.put(&bytes[..end])))
}

/// `digest.version()`
pub(crate) fn version(scratch: &mut Scratch) -> Value {
    Value::Text(scratch.put(VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of libmhash's users, and those of the algorithms' authors.
    #[test]
    fn hashes_are_those_of_the_algorithms_authors() {
        let mhash = b"This is the test of the mhash extension...";
        let shown =
            |digest: fn(&[u8]) -> Vec<u8>, text: &[u8]| String::from_utf8(hexadecimal(b"", &digest(text))).unwrap();
        assert_eq!(shown(of::<Md5>, mhash), "2d9bdb91f94e96d9c4e2ae532acc936a");
        assert_eq!(shown(of::<Sha1>, mhash), "2f9341e55a9083edf5497bf83ba3db812a7de0a3");
        assert_eq!(shown(crc32_of_bzip2, mhash), "83041db8");
        assert_eq!(shown(crc32, mhash), "a4b75adf");
        assert_eq!(shown(adler32, mhash), "e40e2d42");
        assert_eq!(shown(of::<Sha224>, b"abc"), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
        assert_eq!(shown(of::<Sha256>, b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(shown(of::<Sha384>, b"abc").starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(shown(of::<Sha512>, b"abc").starts_with("ddaf35a193617abacc417349ae204131"));
    }

    /// Source: RFC 2202, RFC 4231; the empty key is from Wikipedia's examples.
    #[test]
    fn keyed_hashes_are_those_of_the_standards() {
        let text = b"what do ya want for nothing?";
        assert_eq!(hexadecimal(b"", &code::<Hmac<Md5>>(b"Jefe", text)), b"750c783e6ab0b503eaa86e310a5db738");
        assert_eq!(hexadecimal(b"", &code::<Hmac<Sha1>>(b"Jefe", text)), b"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(
            hexadecimal(b"0x", &code::<Hmac<Sha256>>(b"Jefe", text)),
            b"0x5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(hexadecimal(b"", &code::<Hmac<Md5>>(b"", b"")), b"74e6f7298a9c2d168935f58c001bad88");
    }

    #[test]
    fn base64_of_every_length_comes_back() {
        for alphabet in [Alphabet::Standard, Alphabet::Url, Alphabet::UrlBare] {
            for len in 0..20_u8 {
                let bytes: Vec<u8> = (0..len).map(|byte| 255 - byte * 7).collect();
                let decoded = decoded(alphabet, &alphabet.encode(&bytes)).unwrap();
                assert_eq!(&decoded[..bytes.len()], bytes);
                assert!(decoded[bytes.len()..].iter().all(|byte| *byte == 0));
            }
        }
        assert_eq!(Alphabet::Standard.encode(&[0xfb, 0xff]), b"+/8=");
        assert_eq!(Alphabet::Url.encode(&[0xfb, 0xff]), b"-_8=");
        assert_eq!(Alphabet::UrlBare.encode(&[0xfb, 0xff]), b"-_8");
        assert_eq!(decoded(Alphabet::Standard, b"YWI"), Some(b"ab\0".to_vec()));
        for (alphabet, text) in [
            (Alphabet::Standard, "a-b="),
            (Alphabet::Url, "a+b="),
            (Alphabet::UrlBare, "YWI="),
            (Alphabet::Standard, "a b"),
        ] {
            assert_eq!(decoded(alphabet, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn digits_are_read_leniently() {
        for (text, expected) in [
            ("0x6162", &b"ab"[..]),
            ("6162", b"ab"),
            ("6A6b6", b"jk"),
            ("0x", b"\0"),
            ("", b""),
            ("zz", b"\0"),
            ("0xg1", b"\x01"),
        ] {
            assert_eq!(bytes_of_digits(text.as_bytes()), expected, "{text}");
        }
    }
}
