//! Messages about the dates of certificates: [`complaint`].

use crate::tls::registry::Certificate;
use semantics::date;

/// Days before the end of a certificate that cause a warning, and an error.
const WARNING_DAYS: i64 = 14;
const ERROR_DAYS: i64 = 3;
const DAY_SECONDS: i64 = 24 * 3600;

/// Urgency of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It will expire.
    Soon,
    /// It will expire very soon, or is not valid now.
    Now,
}

/// The complaint about the dates of a certificate, present or soon. `now` in seconds since 1970.
#[must_use]
pub fn complaint(certificate: &Certificate, now: i64) -> Option<(Urgency, String)> {
    let facts = &certificate.loaded.facts;
    let described = certificate.described();
    let written = |seconds: i64| date::text(seconds as f64);
    let left = facts.not_after - now;
    if left < 0 {
        let text = format!("certificate {described} expired on {}", written(facts.not_after));
        return Some((Urgency::Now, text));
    }
    if facts.not_before > now {
        let text = format!("certificate {described} is not valid before {}", written(facts.not_before));
        return Some((Urgency::Now, text));
    }
    let urgency = match left {
        _ if left < ERROR_DAYS * DAY_SECONDS => Urgency::Now,
        _ if left < WARNING_DAYS * DAY_SECONDS => Urgency::Soon,
        _ => return None,
    };
    let end = written(facts.not_after);
    let days = left / DAY_SECONDS;
    let text = match days {
        0 => format!("certificate {described} expires within a day, on {end}"),
        1 => format!("certificate {described} expires in 1 day, on {end}"),
        _ => format!("certificate {described} expires in {days} days, on {end}"),
    };
    Some((urgency, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::registry::Origin;
    use crate::tls::registry::tests::loaded;

    #[test]
    fn a_certificate_is_complained_of_two_weeks_before_its_end() {
        let mut certificate = Certificate {
            id: "cert0".to_owned(),
            frontend: None,
            loaded: loaded(&["a.example"]),
            ocsp: None,
            origin: Origin::Acme,
            is_default: false,
        };
        // 2030-01-01.
        certificate.loaded.facts.not_after = 1_893_456_000;
        certificate.loaded.facts.not_before = 1_800_000_000;
        let said = |days_left: f64| complaint(&certificate, 1_893_456_000 - (days_left * 86400.0) as i64);
        assert_eq!(said(14.5), None);
        let end = "on Tue, 01 Jan 2030 00:00:00 GMT";
        assert_eq!(said(13.5), Some((Urgency::Soon, format!("certificate cert0 expires in 13 days, {end}"))));
        assert_eq!(said(1.5), Some((Urgency::Now, format!("certificate cert0 expires in 1 day, {end}"))));
        assert_eq!(said(0.5), Some((Urgency::Now, format!("certificate cert0 expires within a day, {end}"))));
        assert_eq!(said(-1.0), Some((Urgency::Now, format!("certificate cert0 expired {end}"))));
        let early = complaint(&certificate, 1_799_999_999).unwrap().1;
        assert_eq!(early, "certificate cert0 is not valid before Fri, 15 Jan 2027 08:00:00 GMT");
    }
}
