//! The base64 of the VMODs digest and blob. Source: RFC 4648 §4 and §5.
//!
//! Both are lenient about padding, each in its own way; this module has the common part: whole
//! groups of four letters.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// A base64 alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alphabet {
    /// The alphabet with `+`, `/` and padding.
    Standard,
    /// The alphabet with `-`, `_` and padding.
    Url,
    /// Like [`Alphabet::Url`], without padding.
    UrlBare,
    /// The alphabet with `-`, `~`, and `_` as padding.
    Cf,
}

/// Padding is written but never read: the callers handle it.
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

    /// The padding letter, if there is one.
    pub(crate) fn padding(self) -> Option<u8> {
        match self {
            Alphabet::Standard | Alphabet::Url => Some(b'='),
            Alphabet::UrlBare => None,
            Alphabet::Cf => Some(b'_'),
        }
    }

    /// Encodes bytes as text.
    pub(crate) fn encode(self, bytes: &[u8]) -> Vec<u8> {
        let mut text = self.engine().encode(bytes).into_bytes();
        if let Some(padding) = self.padding() {
            text.iter_mut().rev().take_while(|letter| **letter == b'=').for_each(|letter| *letter = padding);
        }
        text
    }

    /// Decodes letters; the last group is filled up with letters for zero, so that every group
    /// gives three bytes. `None` if a letter is not in the alphabet (padding is not).
    pub(crate) fn decode_groups(self, mut letters: Vec<u8>) -> Option<Vec<u8>> {
        letters.resize(letters.len().next_multiple_of(4), b'A');
        self.engine().decode(letters).ok()
    }
}
