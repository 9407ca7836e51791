//! A token in compact form: header, payload and signature.

use super::algorithm::Algorithm;
use super::key_set::KeySet;
use crate::json_text::{self, Kind, Step, member};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use surface::limits::JWT_BYTES_MAX;

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// The token as it came, without `Bearer`.
    text: String,
    /// Places of the two dots.
    dots: [usize; 2],
    header: String,
    /// `None` if the payload is not UTF-8.
    payload: Option<String>,
    signature: Vec<u8>,
}

impl Token {
    /// Reads a token; `None` if it is not one, or too long.
    pub(crate) fn parse(value: &[u8]) -> Option<Token> {
        let value = value.trim_ascii();
        let text = match value.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"Bearer ") => rest.trim_ascii(),
            _ => value,
        };
        if text.len() > JWT_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut dots = text.match_indices('.').map(|(place, _)| place);
        let (first, second) = (dots.next()?, dots.next()?);
        if dots.next().is_some() {
            return None;
        }
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
        let header = String::from_utf8(decode(&text[..first])?).ok()?;
        let payload = decode(&text[first + 1..second])?;
        let signature = decode(&text[second + 1..])?;
        let is_object = json_text::is_valid(&header) && json_text::kind(&header) == Kind::Object;
        is_object.then(|| Token {
            text: text.to_owned(),
            dots: [first, second],
            header,
            payload: String::from_utf8(payload).ok(),
            signature,
        })
    }

    /// Memory of the token, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.header.len() + self.payload.as_ref().map_or(0, String::len) + self.signature.len()
    }

    /// The token without `Bearer`.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The header, the payload or the signature as encoded.
    pub(crate) fn part(&self, index: usize) -> &str {
        self.text.split('.').nth(index).unwrap_or_default()
    }

    /// The header as JSON.
    pub(crate) fn header_text(&self) -> &str {
        &self.header
    }

    /// The payload; `None` if it is not UTF-8.
    pub(crate) fn payload_text(&self) -> Option<&str> {
        self.payload.as_deref()
    }

    /// True if the payload is a JSON object.
    pub(crate) fn has_claims(&self) -> bool {
        self.claims().is_some()
    }

    fn claims(&self) -> Option<&str> {
        self.payload_text().filter(|text| json_text::kind(text) == Kind::Object && json_text::is_valid(text))
    }

    /// A member of the header.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        member(&self.header, name)
    }

    /// A claim as text.
    pub(crate) fn claim(&self, name: &str) -> Option<String> {
        member(self.claims()?, name)
    }

    /// A claim that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        let value = json_text::find(self.claims()?, &[Step::Name(name.to_owned())])?;
        value.parse().ok().filter(|number: &f64| json_text::kind(value) == Kind::Number && number.is_finite())
    }

    fn has(&self, name: &str) -> bool {
        self.claims().is_some_and(|claims| json_text::find(claims, &[Step::Name(name.to_owned())]).is_some())
    }

    /// Checks algorithm, signature and times, with a tolerance for clocks in seconds.
    ///
    /// # Errors
    /// Why the token is not valid; fixed texts.
    pub(crate) fn verify(&self, algorithm: Algorithm, keys: &KeySet, now: f64, skew: f64) -> Result<(), &'static str> {
        let named = self.header("alg").and_then(|name| Algorithm::named(name.as_bytes()));
        if named != Some(algorithm) {
            return Err("it has another algorithm");
        }
        // `b64` changes what is signed; like all of `crit`, a reader must know it or refuse.
        if ["crit", "b64"].iter().any(|name| json_text::find(&self.header, &[Step::Name((*name).to_owned())]).is_some())
        {
            return Err("it has an extension (crit)");
        }
        let kid = self.header("kid");
        let message = &self.text.as_bytes()[..self.dots[1]];
        if !keys.verifies(kid.as_deref(), algorithm, message, &self.signature) {
            return Err("its signature is wrong, or not of the key");
        }
        // A payload that cannot be read could hide an end.
        if !self.has_claims() {
            return Err("its payload is no object of claims");
        }
        match (self.has("exp"), self.number("exp")) {
            (true, None) => return Err("its exp is not a number"),
            (_, Some(end)) if now >= end + skew => return Err("it has expired"),
            _ => {}
        }
        match (self.has("nbf"), self.number("nbf")) {
            (true, None) => Err("its nbf is not a number"),
            (_, Some(start)) if now < start - skew => Err("it is not valid yet"),
            _ => Ok(()),
        }
    }
}
