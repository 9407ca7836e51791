//! OCSP responses that are stapled to a certificate: [`Staple`].
//!
//! Clients that request one verify it, and some abort over a wrong one, so one that has expired or
//! is for another certificate is worse than none. Its signature is not verified: the writer of the
//! file is trusted with the key as well. Source: RFC 6960 §4.2.1, in DER.

use std::fmt;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

/// The relevant fields of an OCSP response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Staple {
    /// Time of the next update, in seconds since 1970; `None` = the responder always has a newer
    /// one.
    pub next_update: Option<i64>,
}

/// Reason why a response is not stapled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StapleError {
    /// It is not an OCSP response.
    Malformed,
    /// The responder failed, with this status.
    Unsuccessful(u8),
    /// It is about other certificates.
    Foreign,
    /// Its next update is due.
    Expired,
}

impl fmt::Display for StapleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StapleError::Malformed => f.write_str("it is no response of OCSP in DER"),
            StapleError::Unsuccessful(status) => write!(f, "the responder had no answer (status {status})"),
            StapleError::Foreign => f.write_str("it is for another certificate"),
            StapleError::Expired => f.write_str("it has expired"),
        }
    }
}

impl std::error::Error for StapleError {}

/// Tags of DER.
mod tag {
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const BYTES: u8 = 0x04;
    pub(super) const OBJECT: u8 = 0x06;
    pub(super) const ENUMERATED: u8 = 0x0a;
    pub(super) const TIME: u8 = 0x18;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const CONTEXT_0: u8 = 0xa0;
}

/// `id-pkix-ocsp-basic`.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];

impl Staple {
    /// Reads a response in DER that is to be stapled to this certificate.
    ///
    /// # Errors
    /// [`StapleError`], except `Expired`.
    pub fn read(response: &[u8], certificate: &[u8]) -> Result<Staple, StapleError> {
        let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| StapleError::Foreign)?;
        Staple::read_for(response, certificate.raw_serial())
    }

    /// Reads a response for the certificate with this serial number, in as many bytes as it takes.
    ///
    /// # Errors
    /// As [`Staple::read`].
    pub fn read_for(response: &[u8], wanted: &[u8]) -> Result<Staple, StapleError> {
        let mut rest = single_responses(response)?;
        while !rest.is_empty() {
            let (serial, next_update) = single(&mut rest).ok_or(StapleError::Malformed)?;
            if is_same(serial, wanted) {
                return Ok(Staple { next_update });
            }
        }
        Err(StapleError::Foreign)
    }

    /// True if no update is due at a time in seconds since 1970.
    #[must_use]
    pub fn is_good_at(&self, now: i64) -> bool {
        self.next_update.is_none_or(|next_update| now < next_update)
    }
}

/// The content of `responses` in a successful response.
fn single_responses(mut bytes: &[u8]) -> Result<&[u8], StapleError> {
    let malformed = StapleError::Malformed;
    let mut response = take(&mut bytes, tag::SEQUENCE).filter(|_| bytes.is_empty()).ok_or(malformed)?;
    match *take(&mut response, tag::ENUMERATED).ok_or(malformed)? {
        [0] => basic(response).ok_or(malformed),
        [status] => Err(StapleError::Unsuccessful(status)),
        _ => Err(malformed),
    }
}

/// The content of `responses`, from `responseBytes`.
fn basic(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut explicit = take(&mut bytes, tag::CONTEXT_0)?;
    let mut typed = take(&mut explicit, tag::SEQUENCE)?;
    if take(&mut typed, tag::OBJECT)? != BASIC {
        return None;
    }
    let mut signed = take(&mut typed, tag::BYTES)?;
    let mut parts = take(&mut signed, tag::SEQUENCE)?;
    let mut data = take(&mut parts, tag::SEQUENCE)?;
    if data.first() == Some(&tag::CONTEXT_0) {
        // The version.
        take(&mut data, tag::CONTEXT_0)?;
    }
    // The responder's id, by name or by key.
    let (responder, _) = element(&mut data)?;
    if !matches!(responder, 0xa1 | 0xa2) {
        return None;
    }
    take(&mut data, tag::TIME)?;
    take(&mut data, tag::SEQUENCE)
}

/// Takes the next `SingleResponse`: its serial number, and its `nextUpdate`.
fn single<'a>(responses: &mut &'a [u8]) -> Option<(&'a [u8], Option<i64>)> {
    let mut single = take(responses, tag::SEQUENCE)?;
    let mut id = take(&mut single, tag::SEQUENCE)?;
    take(&mut id, tag::SEQUENCE)?;
    take(&mut id, tag::BYTES)?;
    take(&mut id, tag::BYTES)?;
    let serial = take(&mut id, tag::INTEGER)?;
    // The certificate's status.
    element(&mut single)?;
    take(&mut single, tag::TIME)?;
    if single.first() != Some(&tag::CONTEXT_0) {
        return Some((serial, None));
    }
    let next_update = take(&mut single, tag::CONTEXT_0)?;
    let (rest, time) = ASN1Time::from_der(next_update).ok()?;
    rest.is_empty().then(|| (serial, Some(time.timestamp())))
}

/// True if two numbers are equal; some authorities prefix zeros.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let significant = |bytes: &[u8]| bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    one[significant(one)..] == other[significant(other)..]
}

/// Takes the next element if it has this tag; returns its content.
fn take<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, content) = element(bytes)?;
    (found == tag).then_some(content)
}

/// Takes the next element: its tag, and its content. Tags of several bytes, and indefinite or
/// non-minimal lengths, are rejected.
fn element<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (digits, behind) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = behind;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            let is_shortest = digits[0] != 0 && length >= 0x80;
            is_shortest.then_some(length)?
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    *bytes = behind;
    (tag & 0x1f != 0x1f).then_some((tag, content))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SerialNumber};

    /// An element of DER.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let head = match length {
            0..0x80 => vec![tag, length as u8],
            0x80..0x100 => vec![tag, 0x81, length as u8],
            _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
        };
        [head, content.to_vec()].concat()
    }

    /// A response about a certificate with this serial number, with this `nextUpdate`.
    pub(crate) fn response(serial: &[u8], next_update: Option<&str>) -> Vec<u8> {
        let sha1 = der(tag::SEQUENCE, &der(tag::OBJECT, &[0x2b, 0x0e, 3, 2, 0x1a]));
        let id = [sha1, der(tag::BYTES, &[1; 20]), der(tag::BYTES, &[2; 20]), der(tag::INTEGER, serial)].concat();
        let mut single = [der(tag::SEQUENCE, &id), vec![0x80, 0], der(tag::TIME, b"20260101000000Z")].concat();
        if let Some(next_update) = next_update {
            single.extend(der(tag::CONTEXT_0, &der(tag::TIME, next_update.as_bytes())));
        }
        let responder = der(0xa2, &der(tag::BYTES, &[3; 20]));
        let singles = der(tag::SEQUENCE, &der(tag::SEQUENCE, &single));
        let data = der(tag::SEQUENCE, &[responder, der(tag::TIME, b"20260101000000Z"), singles].concat());
        let basic = der(tag::SEQUENCE, &[data, der(tag::SEQUENCE, &[]), der(0x03, &[0])].concat());
        let typed = der(tag::SEQUENCE, &[der(tag::OBJECT, BASIC), der(tag::BYTES, &basic)].concat());
        der(tag::SEQUENCE, &[der(tag::ENUMERATED, &[0]), der(tag::CONTEXT_0, &typed)].concat())
    }

    fn certificate(serial: &[u8]) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from_slice(serial));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_response_is_good_for_its_certificate_until_the_next_one_is_there() {
        let ours = certificate(&[7, 8, 9]);
        let staple = Staple::read(&response(&[7, 8, 9], Some("20300101000000Z")), &ours).unwrap();
        assert_eq!(staple.next_update, Some(1_893_456_000));
        assert!(staple.is_good_at(1_893_455_999) && !staple.is_good_at(1_893_456_000));
        let staple = Staple::read(&response(&[0, 7, 8, 9], None), &ours).unwrap();
        assert!(staple.next_update.is_none() && staple.is_good_at(i64::MAX));
        assert_eq!(Staple::read(&response(&[7, 8], None), &ours), Err(StapleError::Foreign));
    }

    #[test]
    fn invalid_ocsp_responses_are_refused_with_a_reason() {
        let ours = certificate(&[7]);
        let refused = |bytes: &[u8]| Staple::read(bytes, &ours).unwrap_err();
        assert_eq!(refused(&der(tag::SEQUENCE, &der(tag::ENUMERATED, &[6]))), StapleError::Unsuccessful(6));
        let whole = response(&[7], Some("20300101000000Z"));
        for end in 0..whole.len() {
            assert_eq!(refused(&whole[..end]), StapleError::Malformed);
        }
        assert_eq!(refused(&[&whole[..], b"x"].concat()), StapleError::Malformed);
        assert_eq!(refused(&response(&[7], Some("tomorrow"))), StapleError::Malformed);
        assert_eq!(refused(b"<html>"), StapleError::Malformed);
        assert_eq!(element(&mut &[4, 0x81, 1, 0][..]), None, "not the shortest");
    }
}
