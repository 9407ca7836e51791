//! Cipher lists in OpenSSL's syntax, as configurations have them, resolved to the supported suites.
//!
//! A list of TLS 1.2 is a program (`ECDHE+AESGCM:!aRSA`): names and classes add suites, `!` bans
//! and `-` removes them, `+` moves them to the end. Names of unsupported suites add nothing, as in
//! OpenSSL; an empty result is a mistake. Source: ciphers(1).

use crate::suites::{SUITES, SuiteRow};

/// The rustls names of the suites that a list of TLS 1.2 (`ciphers`) allows, in its order; `None` =
/// none, so the list is invalid.
#[must_use]
pub fn tls12(list: &str) -> Option<Vec<&'static str>> {
    let mut chosen: Vec<&SuiteRow> = Vec::new();
    let mut banned: Vec<&SuiteRow> = Vec::new();
    for item in list.split([':', ',', ' ']).filter(|item| !item.is_empty() && !item.starts_with('@')) {
        let (operator, classes) = match item.as_bytes().first() {
            Some(first @ (b'!' | b'-' | b'+')) => (*first, &item[1..]),
            _ => (b' ', item),
        };
        let matches = |row: &&SuiteRow| !row.is_tls13() && classes.split('+').all(|class| is_of_class(row, class));
        let found: Vec<&SuiteRow> = SUITES.iter().filter(matches).collect();
        let is_found = |row: &&SuiteRow| found.iter().any(|other| other.iana == row.iana);
        match operator {
            b'!' => {
                chosen.retain(|row| !is_found(row));
                banned.extend(&found);
            }
            b'-' => chosen.retain(|row| !is_found(row)),
            b'+' => {
                let (moved, kept) = chosen.iter().partition::<Vec<&SuiteRow>, _>(|row| is_found(row));
                chosen = [kept, moved].concat();
            }
            _ => {
                for row in found {
                    if !chosen.iter().chain(&banned).any(|other| other.iana == row.iana) {
                        chosen.push(row);
                    }
                }
            }
        }
    }
    names(&chosen)
}

/// The rustls names of the suites that a list of TLS 1.3 (`ciphersuites`) allows; `None` = it names
/// an unknown suite, or no supported one.
#[must_use]
pub fn tls13(list: &str) -> Option<Vec<&'static str>> {
    let mut chosen: Vec<&SuiteRow> = Vec::new();
    for name in list.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
        match SUITES.iter().find(|row| row.is_tls13() && row.openssl.eq_ignore_ascii_case(name)) {
            Some(row) if !chosen.iter().any(|other| other.iana == row.iana) => chosen.push(row),
            Some(_) => {}
            None if ELSEWHERE.iter().any(|known| known.eq_ignore_ascii_case(name)) => {}
            None => return None,
        }
    }
    names(&chosen)
}

/// Suites of TLS 1.3 that OpenSSL supports and we do not.
const ELSEWHERE: &[&str] = &["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"];

fn names(rows: &[&SuiteRow]) -> Option<Vec<&'static str>> {
    (!rows.is_empty()).then(|| rows.iter().map(|row| row.iana).collect())
}

/// True if a suite has that name or belongs to that class. Compat: case counts in classes, not in
/// names.
fn is_of_class(row: &SuiteRow, class: &str) -> bool {
    let has = |part: &str| row.openssl.contains(part);
    match class {
        "DEFAULT" | "ALL" | "HIGH" | "TLSv1.2" | "AEAD" => true,
        "ECDHE" | "EECDH" | "kECDHE" | "kEECDH" | "ECDH" => true,
        "ECDSA" | "aECDSA" => has("-ECDSA-"),
        "aRSA" => has("-RSA-"),
        "AES" => has("AES"),
        "AESGCM" => has("-GCM-"),
        "AES128" => has("AES128"),
        "AES256" => has("AES256"),
        "CHACHA20" => has("CHACHA20"),
        _ => row.openssl.eq_ignore_ascii_case(class) || row.iana.eq_ignore_ascii_case(class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECDSA_256: &str = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
    const ECDSA_128: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    const RSA_256: &str = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
    const RSA_128: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

    #[test]
    fn lists_as_people_have_them_choose_what_there_is_of_them() {
        let named = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-SHA:AES128-SHA:ECDHE-ECDSA-AES128-GCM-SHA256";
        assert_eq!(tls12(named), Some(vec![RSA_128, ECDSA_128]));
        // The default of hitch.
        assert_eq!(tls12("EECDH+AESGCM:EDH+AESGCM"), Some(vec![ECDSA_256, ECDSA_128, RSA_256, RSA_128]));
        assert_eq!(tls12("HIGH:!aNULL:!MD5").map(|all| all.len()), Some(6));
        assert_eq!(tls12("ECDHE+AESGCM:!ECDSA:@STRENGTH"), Some(vec![RSA_256, RSA_128]));
        assert_eq!(tls12("AESGCM:+aECDSA:-AES128"), Some(vec![RSA_256, ECDSA_256]));
        assert_eq!(tls12("!AES256:AESGCM"), Some(vec![ECDSA_128, RSA_128]));
        assert_eq!(tls13("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256"), Some(vec!["TLS_AES_128_GCM_SHA256"]));
    }

    #[test]
    fn a_list_that_leaves_nothing_is_invalid() {
        for list in ["", ":", "nonsense", "RC4-SHA:AES128-SHA", "HIGH:!ALL", "RSA", "TLS_AES_128_GCM_SHA256"] {
            assert_eq!(tls12(list), None, "{list}");
        }
        for list in ["", "nonsense", "TLS_AES_128_GCM_SHA256:nonsense", "TLS_AES_128_CCM_SHA256"] {
            assert_eq!(tls13(list), None, "{list}");
        }
    }
}
