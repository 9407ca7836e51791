//! HTTP client for authorities: https only, with a limit on the size and the time of every
//! response: [`Bounded`].
//!
//! The library reads a response as a whole, without a limit on its size or time; so each response
//! is read here first, within limits.

use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use semantics::date::{self, DateForms};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use surface::limits::{ACME_RESPONSE_BYTES_MAX, ACME_RESPONSE_SECONDS, ACME_RETRY_AFTER_SECONDS_MAX};

/// The delay that the last refusal asked for (`Retry-After`); it is not part of the response body.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Option<Duration>>>);

impl Heard {
    /// The delay that the last refusal asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, headers: &http::HeaderMap) {
        let value = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let now = crate::clock::now();
        let seconds = value.and_then(|value| match value.trim().parse::<u64>() {
            Ok(seconds) => Some(seconds as f64),
            Err(_) => date::parse(value.trim().as_bytes(), DateForms::Rfc).map(|date| (date - now).max(0.0)),
        });
        let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wait;
    }
}

/// The client.
pub struct Bounded {
    client: Client<HttpsConnector<HttpConnector>, BodyWrapper<bytes::Bytes>>,
    heard: Heard,
}

impl Bounded {
    /// A client that trusts these authorities (DER), or the system's if there are none.
    ///
    /// # Errors
    /// The authorities cannot be used.
    pub fn new(authorities: &[Vec<u8>], heard: Heard) -> Result<Bounded, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = if authorities.is_empty() {
            builder.try_with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(CertificateDer::from(authority.clone())).map_err(|error| error.to_string())?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        };
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        Ok(Bounded { client: Client::builder(TokioExecutor::new()).build(connector), heard })
    }
}

impl HttpClient for Bounded {
    fn request(
        &self,
        request: http::Request<BodyWrapper<bytes::Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        // GET is used for the authority's directory and for renewal information.
        let may_be_directory = request.method() == http::Method::GET;
        let response = self.client.request(request);
        let heard = self.heard.clone();
        let whole = async move {
            let (mut parts, body) = response.await.map_err(|error| Error::Other(Box::new(error)))?.into_parts();
            let body = Limited::new(body, ACME_RESPONSE_BYTES_MAX).collect().await.map_err(Error::Other)?.to_bytes();
            let is_json = parts
                .headers
                .get(http::header::CONTENT_TYPE)
                .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.contains("json")));
            if parts.status.is_client_error() || parts.status.is_server_error() {
                heard.note(&parts.headers);
                // A refusal by something in between, not by the authority itself.
                if !is_json {
                    return Err(Error::Other(format!("the authority answered {}", parts.status).into()));
                }
            }
            bound_retry_after(&mut parts.headers);
            if may_be_directory {
                check_addresses(&body)?;
            }
            Ok(BytesResponse { parts, body: Box::new(body) })
        };
        Box::pin(async move {
            let limit = Duration::from_secs(ACME_RESPONSE_SECONDS);
            let late = || Error::Other(format!("no whole answer within {ACME_RESPONSE_SECONDS} seconds").into());
            tokio::time::timeout(limit, whole).await.unwrap_or_else(|_| Err(late()))
        })
    }
}

/// Limits a Retry-After in seconds: the library adds it to the time of day, and panics when that
/// overflows.
fn bound_retry_after(headers: &mut http::HeaderMap) {
    let Some(value) = headers.get(http::header::RETRY_AFTER) else { return };
    let digits = value.as_bytes().trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
    if is_number && seconds.is_none_or(|seconds| seconds as f64 > ACME_RETRY_AFTER_SECONDS_MAX) {
        headers.insert(http::header::RETRY_AFTER, (ACME_RETRY_AFTER_SECONDS_MAX as u64).into());
    }
}

/// Checks the addresses of a directory document: the library panics at one that is not a URI.
fn check_addresses(body: &[u8]) -> Result<(), Error> {
    let Ok(serde_json::Value::Object(directory)) = serde_json::from_slice(body) else { return Ok(()) };
    for name in ["newNonce", "newAccount", "newOrder", "renewalInfo"] {
        let Some(serde_json::Value::String(address)) = directory.get(name) else { continue };
        if address.parse::<http::Uri>().is_err() {
            return Err(Error::Other(format!("the directory's {name} is not an address").into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_retry_after_overflows_the_time_of_day() {
        for (sent, kept) in [
            ("60", "60"),
            ("18446744073709551615", "604800"),
            ("99999999999999999999999999", "604800"),
            (" 18446744073709551615 ", "604800"),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"),
            ("soon", "soon"),
        ] {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::RETRY_AFTER, sent.parse().unwrap());
            bound_retry_after(&mut headers);
            assert_eq!(headers[http::header::RETRY_AFTER], kept, "{sent}");
        }
    }

    #[test]
    fn addresses_of_a_directory_are_checked_before_they_are_used() {
        assert!(check_addresses(br#"{"newNonce": "https://a.example/nonce", "meta": {}}"#).is_ok());
        assert!(check_addresses(b"not JSON").is_ok());
        for bad in [r"https://a.example/\r\nX: y", "", " ", r"https://a.example/\u0000", "https://a b/"] {
            for name in ["newNonce", "newAccount", "newOrder", "renewalInfo"] {
                let body = format!(r#"{{"{name}": "{bad}"}}"#);
                assert!(check_addresses(body.as_bytes()).is_err(), "{body}");
            }
        }
    }
}
