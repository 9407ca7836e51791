//! How an authority is reached: https only, with a limit for every response, its size and its time: [`Bounded`].
//!
//! The library reads a response whole, however large it is and however long that takes; so each is read here before it gets it.

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
use surface::limits::{ACME_RESPONSE_BYTES_MAX, ACME_RESPONSE_SECONDS};

/// What was heard beside the bodies: how long the last refusal asked us to wait.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Option<Duration>>>);

impl Heard {
    /// How long the last refusal asked us to wait.
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
    /// A client that trusts these authorities (DER), or whom the system trusts if there are none.
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
        let response = self.client.request(request);
        let heard = self.heard.clone();
        let whole = async move {
            let (parts, body) = response.await.map_err(|error| Error::Other(Box::new(error)))?.into_parts();
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
            Ok(BytesResponse { parts, body: Box::new(body) })
        };
        Box::pin(async move {
            let limit = Duration::from_secs(ACME_RESPONSE_SECONDS);
            let late = || Error::Other(format!("no whole answer within {ACME_RESPONSE_SECONDS} seconds").into());
            tokio::time::timeout(limit, whole).await.unwrap_or_else(|_| Err(late()))
        })
    }
}
