//! The supported cipher suites, under each of their names: [`SUITES`].

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite as known;
use rustls::{CipherSuite, ProtocolVersion};

/// A cipher suite.
#[derive(Clone, Copy, Debug)]
pub struct SuiteRow {
    /// OpenSSL's name; in TLS 1.3 the same as IANA's.
    pub openssl: &'static str,
    /// IANA's name.
    pub iana: &'static str,
    /// The suite in rustls.
    pub suite: SupportedCipherSuite,
}

impl SuiteRow {
    /// True if it belongs to TLS 1.3; else to TLS 1.2.
    #[must_use]
    pub fn is_tls13(&self) -> bool {
        self.suite.tls13().is_some()
    }
}

macro_rules! suites {
    ($($openssl:literal = $iana:literal = $suite:ident;)*) => {
        /// All of them in the order of preference.
        pub static SUITES: &[SuiteRow] = &[
            $(SuiteRow { openssl: $openssl, iana: $iana, suite: known::$suite },)*
        ];
    };
}

suites! {
    "TLS_AES_256_GCM_SHA384" = "TLS_AES_256_GCM_SHA384" = TLS13_AES_256_GCM_SHA384;
    "TLS_AES_128_GCM_SHA256" = "TLS_AES_128_GCM_SHA256" = TLS13_AES_128_GCM_SHA256;
    "TLS_CHACHA20_POLY1305_SHA256" = "TLS_CHACHA20_POLY1305_SHA256" = TLS13_CHACHA20_POLY1305_SHA256;
    "ECDHE-ECDSA-AES256-GCM-SHA384" = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" = TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
    "ECDHE-ECDSA-AES128-GCM-SHA256" = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" = TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    "ECDHE-ECDSA-CHACHA20-POLY1305" = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
        = TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
    "ECDHE-RSA-AES256-GCM-SHA384" = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" = TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384;
    "ECDHE-RSA-AES128-GCM-SHA256" = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" = TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
    "ECDHE-RSA-CHACHA20-POLY1305" = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        = TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256;
}

/// The suite with a name: OpenSSL's, IANA's or that of rustls, in any case.
#[must_use]
pub fn named(name: &str) -> Option<&'static SuiteRow> {
    SUITES.iter().find(|row| {
        let of_rustls = format!("{:?}", row.suite.suite());
        [row.openssl, row.iana, &of_rustls].iter().any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// OpenSSL's name of a suite; empty for an unsupported one.
#[must_use]
pub fn openssl_name(suite: CipherSuite) -> &'static str {
    SUITES.iter().find(|row| row.suite.suite() == suite).map_or("", |row| row.openssl)
}

/// OpenSSL's name of a version; empty for an unsupported one.
#[must_use]
pub fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_library_has_a_row() {
        for suite in rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES {
            assert!(!openssl_name(suite.suite()).is_empty(), "{suite:?}");
        }
        assert_eq!(SUITES.len(), rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.len());
    }

    #[test]
    fn a_suite_is_found_by_each_of_its_names() {
        for row in SUITES {
            let of_rustls = format!("{:?}", row.suite.suite());
            for name in [row.openssl, row.iana, &of_rustls, &row.openssl.to_lowercase()] {
                assert_eq!(named(name).map(|found| found.iana), Some(row.iana));
            }
        }
        assert!(named("RC4-MD5").is_none());
    }
}
