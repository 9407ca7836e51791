//! Credentials and TLS for the servers, read before the process gives up its rights.

use crate::start::Start;
use async_nats::{ConnectOptions, ServerAddr};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use surface::limits::FLEET_CREDENTIALS_BYTES_MAX;

/// The means to prove who this node is, and to recognize the servers.
pub(crate) struct Trust {
    /// Text of a file of credentials (a JWT and a seed).
    credentials: Option<String>,
    /// Seed of an nkey.
    seed: Option<String>,
    tls: Option<ClientConfig>,
}

impl Trust {
    /// # Errors
    /// A file cannot be used, with the reason.
    pub(crate) fn read(start: &Start) -> Result<Trust, String> {
        let read = |path: &Option<_>| path.as_deref().map(secret).transpose();
        let credentials = read(&start.creds)?;
        if let Some(text) = &credentials {
            let path = start.creds.as_deref().unwrap_or(Path::new(""));
            ConnectOptions::with_credentials(text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let seed = read(&start.nkey)?.map(|text| text.trim().to_owned());
        let needs_tls = start.tls_ca.is_some() || start.servers.iter().any(ServerAddr::tls_required);
        let tls = needs_tls.then(|| tls(start.tls_ca.as_deref())).transpose()?;
        Ok(Trust { credentials, seed, tls })
    }

    /// The options of a connection.
    pub(crate) fn options(&self, server: &ServerAddr) -> ConnectOptions {
        let mut options = ConnectOptions::new();
        if let Some(credentials) = &self.credentials {
            match options.credentials(credentials) {
                Ok(with) => options = with,
                // The text was accepted before.
                Err(_) => options = ConnectOptions::new(),
            }
        }
        if let Some(seed) = &self.seed {
            options = options.nkey(seed.clone());
        }
        if let Some(tls) = &self.tls {
            options = options.tls_client_config(tls.clone()).require_tls(server.tls_required());
        }
        options
    }
}

fn secret(path: &Path) -> Result<String, String> {
    let shown = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| shown(&error))?;
    file.take(FLEET_CREDENTIALS_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| shown(&error))?;
    if text.len() as u64 > FLEET_CREDENTIALS_BYTES_MAX {
        return Err(shown(&format!("longer than {FLEET_CREDENTIALS_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// TLS to servers whose certificates have one of the issuers of a file, or of the system.
fn tls(file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let shown = file.display();
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| format!("{shown}: {error}"))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| format!("{shown}: {error}"))?;
                roots.add(certificate).map_err(|error| format!("{shown}: {error}"))?;
            }
        }
        None => _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    }
    if roots.is_empty() {
        return Err("there is no issuer of certificates for the servers of the fleet".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
