//! digest: hashes, keyed hashes and base64 of strings.
//!
//! Hashes are written as lower-case hexadecimal digits, keyed ones with `0x` in front. Compat: as libvmod-digest 1.0.3 with
//! libmhash 0.9.9: an unset string hashes like an empty one, a keyed hash without a key is unset, CRC-32 and Adler-32 are
//! written lowest byte first, and decoded base64 ends before its first zero byte.

mod haval;
mod snefru;

use crate::alphabet::Alphabet;
use crate::arguments::Arguments;
use crate::context::VmodContext;
use crate::done;
use ::md5::Md5;
use gost94::Gost94Test;
use hmac::{Hmac, KeyInit, Mac};
use md2::Md2;
use md4::Md4;
use ripemd::{Ripemd128, Ripemd160, Ripemd256, Ripemd320};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use surface::tag::Tag;
use surface::vmod::Function;
use tiger::Tiger;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};
use whirlpool::Whirlpool;

/// What `digest.version()` returns: the version of the VMOD whose behaviour this one copies.
const VERSION: &[u8] = b"1.0.3";

/// `digest.hash_…()`
pub(crate) fn hash(function: Function, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let digest = digest_of(function, scratch.get(arguments.text(0)));
    Value::Text(scratch.put(&hexadecimal(b"", &digest)))
}

fn digest_of(function: Function, text: &[u8]) -> Vec<u8> {
    match function {
        Function::DigestHashSha1 => Sha1::digest(text).to_vec(),
        Function::DigestHashSha224 => Sha224::digest(text).to_vec(),
        Function::DigestHashSha256 => Sha256::digest(text).to_vec(),
        Function::DigestHashSha384 => Sha384::digest(text).to_vec(),
        Function::DigestHashSha512 => Sha512::digest(text).to_vec(),
        Function::DigestHashGost => Gost94Test::digest(text).to_vec(),
        Function::DigestHashMd2 => Md2::digest(text).to_vec(),
        Function::DigestHashMd4 => Md4::digest(text).to_vec(),
        Function::DigestHashMd5 => Md5::digest(text).to_vec(),
        Function::DigestHashCrc32 => crc32_of_bzip2(text).to_le_bytes().to_vec(),
        Function::DigestHashCrc32b => crc32fast::hash(text).to_le_bytes().to_vec(),
        Function::DigestHashAdler32 => adler2::adler32_slice(text).to_le_bytes().to_vec(),
        Function::DigestHashHaval128 => haval::digest(text, 128),
        Function::DigestHashHaval160 => haval::digest(text, 160),
        Function::DigestHashHaval192 => haval::digest(text, 192),
        Function::DigestHashHaval224 => haval::digest(text, 224),
        Function::DigestHashHaval256 => haval::digest(text, 256),
        Function::DigestHashRipemd128 => Ripemd128::digest(text).to_vec(),
        Function::DigestHashRipemd160 => Ripemd160::digest(text).to_vec(),
        Function::DigestHashRipemd256 => Ripemd256::digest(text).to_vec(),
        Function::DigestHashRipemd320 => Ripemd320::digest(text).to_vec(),
        Function::DigestHashSnefru128 => snefru::digest(text, 128),
        Function::DigestHashSnefru256 => snefru::digest(text, 256),
        Function::DigestHashTiger => tiger(text, 24),
        Function::DigestHashTiger128 => tiger(text, 16),
        Function::DigestHashTiger160 => tiger(text, 20),
        Function::DigestHashWhirlpool => Whirlpool::digest(text).to_vec(),
        // `call` passes no other functions.
        _ => Vec::new(),
    }
}

/// The first bytes of a Tiger hash; its words are written highest byte first, as in libmhash.
fn tiger(text: &[u8], bytes: usize) -> Vec<u8> {
    Tiger::digest(text).chunks(8).flat_map(|word| word.iter().rev().copied()).take(bytes).collect()
}

/// The CRC-32 of bzip2, which is Ethernet's with the highest bit first.
fn crc32_of_bzip2(text: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
    !text.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte) << 24, step))
}

/// `digest.hmac_…()`
pub(crate) fn keyed(function: Function, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    if !arguments.text(0).is_set() {
        return Value::Text(Text::UNSET);
    }
    let (key, text) = (scratch.get(arguments.text(0)), scratch.get(arguments.text(1)));
    let digest = match function {
        Function::DigestHmacMd5 => code::<Hmac<Md5>>(key, text),
        Function::DigestHmacSha1 => code::<Hmac<Sha1>>(key, text),
        _ => code::<Hmac<Sha256>>(key, text),
    };
    Value::Text(scratch.put(&hexadecimal(b"0x", &digest)))
}

fn code<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    // An HMAC accepts keys of any length.
    let Ok(mut code) = M::new_from_slice(key) else { return Vec::new() };
    code.update(text);
    code.finalize().into_bytes().to_vec()
}

fn hexadecimal(front: &[u8], bytes: &[u8]) -> Vec<u8> {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    front.iter().copied().chain(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)])).collect()
}

/// Decodes base64; `None` if a letter is not in the alphabet. Padding counts as zeros wherever it is, and so do letters
/// missing at the end.
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

/// `digest.base64…_hex()`: encodes the bytes that hexadecimal digits express; anything that is not a digit counts as 0.
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

    fn shown(function: Function, text: &str) -> String {
        String::from_utf8(hexadecimal(b"", &digest_of(function, text.as_bytes()))).unwrap()
    }

    /// The test vectors of libmhash's users, and those of the algorithms' authors.
    #[test]
    fn hashes_are_those_of_the_algorithms_authors() {
        let mhash = "This is the test of the mhash extension...";
        for (function, text, expected) in [
            (Function::DigestHashMd5, mhash, "2d9bdb91f94e96d9c4e2ae532acc936a"),
            (Function::DigestHashSha1, mhash, "2f9341e55a9083edf5497bf83ba3db812a7de0a3"),
            (Function::DigestHashHaval256, mhash, "b255feff01ad641b27358dc7909bc695a1fca53bddfdfaf19020b275928793af"),
            (Function::DigestHashHaval192, mhash, "4ce837de481e1e30092ab2c610057094c988dfd7db1e01cd"),
            (Function::DigestHashHaval224, mhash, "5362d1856752bf2c139bb2d6fdd772b9c515c8ce5ec82695264b85e1"),
            (Function::DigestHashHaval160, mhash, "c6b36f87750b18576981bc17b4f22271947bf9cb"),
            (Function::DigestHashHaval128, "", "c68f39913f901f3ddf44c707357a7d70"),
            (Function::DigestHashRipemd160, mhash, "6c47435aa1d359c4b7c6af46349f0c3e1258583d"),
            (Function::DigestHashGost, mhash, "101b0a2552cebdf5137cadf15147f21e55b6432935bb9c2c03c7e28d188b2d9e"),
            (Function::DigestHashSnefru128, "abc", "553d0648928299a0f22a275a02c83b10"),
            (Function::DigestHashSnefru256, "", "8617f366566a011837f4fb4ba5bedea2b892f3ed8b894023d16ae344b2be5881"),
            (Function::DigestHashTiger, mhash, "fdb9019a79c33a95677e2097abae91eb0de00b3054bb5c39"),
            (Function::DigestHashTiger128, mhash, "fdb9019a79c33a95677e2097abae91eb"),
            (Function::DigestHashTiger160, mhash, "fdb9019a79c33a95677e2097abae91eb0de00b30"),
            (Function::DigestHashCrc32, mhash, "83041db8"),
            (Function::DigestHashCrc32b, mhash, "a4b75adf"),
            (Function::DigestHashAdler32, mhash, "e40e2d42"),
            (Function::DigestHashMd2, "abc", "da853b0d3f88d99b30283a69e6ded6bb"),
            (Function::DigestHashMd4, "abc", "a448017aaf21d8525fc10ae87aa6729d"),
            (Function::DigestHashSha224, "abc", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            (Function::DigestHashSha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (Function::DigestHashRipemd128, "abc", "c14a12199c66e4ba84636b0f69144c77"),
            (Function::DigestHashRipemd256, "", "02ba4c4e5f8ecd1877fc52d64d30e37a2d9774fb1e5d026380ae0168e3c5522d"),
        ] {
            assert_eq!(shown(function, text), expected, "{function:?}");
        }
        assert!(shown(Function::DigestHashSha384, "abc").starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(shown(Function::DigestHashSha512, "abc").starts_with("ddaf35a193617abacc417349ae204131"));
        assert!(shown(Function::DigestHashWhirlpool, "abc").starts_with("4e2448a4c6f486bb16b6562c73b4020b"));
        assert!(shown(Function::DigestHashRipemd320, "").starts_with("22d65d5661536cdc75c1fdf5c6de7b41"));
    }

    #[test]
    fn snefru_fills_its_blocks_to_the_brim() {
        let long = "z".repeat(127);
        assert_eq!(shown(Function::DigestHashSnefru128, &long), "f6708f16d41ad3a2a458bf8b9febc8ae");
        let brim = "x".repeat(96);
        assert_eq!(shown(Function::DigestHashSnefru128, &brim), "d5f3431110cc279046afaca84984f422");
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
