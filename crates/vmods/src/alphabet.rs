//! The base64 of the VMODs digest and blob. Source: RFC 4648 §4 and §5.
//!
//! Both are lenient with padding, each in its own way; here is what they have in common: whole groups of four letters.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// A base64 alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alphabet {
    /// With `+`, `/` and padding.
    Standard,
    /// With `-`, `_` and padding.
    Url,
    /// As [`Alphabet::Url`], without padding.
    UrlBare,
    /// With `-`, `~` and `_` for padding.
    Cf,
}

/// Padding is written, and never read: that is the callers'.
const PADDED: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone);

static STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PADDED);
static URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PADDED);
static URL_BARE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PADDED.with_encode_padding(false));
static CF: GeneralPurpose = GeneralPurpose::new(
    &match alphabet::Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-~") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 letters"),
    },
    PADDED,
);

impl Alphabet {
    fn engine(self) -> &'static GeneralPurpose {
        match self {
            Alphabet::Standard => &STANDARD,
            Alphabet::Url => &URL,
            Alphabet::UrlBare => &URL_BARE,
            Alphabet::Cf => &CF,
        }
    }

    /// What fills up the last group, if anything does.
    pub(crate) fn padding(self) -> Option<u8> {
        match self {
            Alphabet::Standard | Alphabet::Url => Some(b'='),
            Alphabet::UrlBare => None,
            Alphabet::Cf => Some(b'_'),
        }
    }

    /// Bytes as text.
    pub(crate) fn encode(self, bytes: &[u8]) -> Vec<u8> {
        let mut text = self.engine().encode(bytes).into_bytes();
        if let Some(padding) = self.padding() {
            text.iter_mut().rev().take_while(|letter| **letter == b'=').for_each(|letter| *letter = padding);
        }
        text
    }

    /// What letters stand for, with zeros for those that the last group lacks, so that it is of three bytes like the others.
    /// `None` when there is a letter of another alphabet; padding is one.
    pub(crate) fn decode_groups(self, mut letters: Vec<u8>) -> Option<Vec<u8>> {
        letters.resize(letters.len().next_multiple_of(4), b'A');
        self.engine().decode(letters).ok()
    }
}
