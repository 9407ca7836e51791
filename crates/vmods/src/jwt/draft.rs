//! A token that is being made.

use super::algorithm::Algorithm;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value as Json};

/// A token that is being made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(super) header: Map<String, Json>,
    pub(super) claims: Map<String, Json>,
    /// Why there is no token.
    pub(super) error: Option<&'static str>,
    /// Bytes of the texts that were set.
    pub(super) bytes: usize,
}

impl Draft {
    /// Memory of the draft, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The token in compact form.
    ///
    /// # Errors
    /// The algorithm or the key is not for a shared secret.
    pub(super) fn sign(&mut self, secret: &[u8]) -> Result<String, &'static str> {
        let name = self.header.get("alg").and_then(Json::as_str).unwrap_or_default();
        let Some(Algorithm::Secret(hash)) = Algorithm::named(name.as_bytes()) else {
            return Err("set_alg() must set HS256, HS384 or HS512");
        };
        if secret.is_empty() || memchr::memmem::find(secret, b"-----BEGIN").is_some() {
            return Err("the key is not a shared secret");
        }
        let mut header = Map::new();
        header.insert("typ".to_owned(), "JWT".into());
        header.extend(self.header.clone());
        let encode = |map: Map<String, Json>| BASE64_URL_SAFE_NO_PAD.encode(Json::Object(map).to_string());
        let signed = format!("{}.{}", encode(header), encode(self.claims.clone()));
        let code = BASE64_URL_SAFE_NO_PAD.encode(hash.code(secret, signed.as_bytes()));
        Ok(format!("{signed}.{code}"))
    }
}
