//! TLS settings of connections to a backend, with a digest that identifies them: [`TlsSettings`].
//!
//! A definition may hold certificates of many kilobytes; its digest is computed once, so that idle
//! connections and the configurations of handshakes are found without reading all of it.

use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};
use vcl_run::program::TlsDefinition;

/// The TLS settings of a backend.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    definition: TlsDefinition,
    identity: [u8; 32],
}

impl TlsSettings {
    /// The TLS settings with their digest.
    #[must_use]
    pub fn new(definition: TlsDefinition) -> TlsSettings {
        let mut whole = Everything(Sha256::new());
        definition.hash(&mut whole);
        TlsSettings { definition, identity: whole.0.finalize().into() }
    }

    /// The definition in VCL.
    #[must_use]
    pub fn definition(&self) -> &TlsDefinition {
        &self.definition
    }

    /// Digest of the whole definition.
    #[must_use]
    pub fn identity(&self) -> [u8; 32] {
        self.identity
    }
}

/// Feeds everything that is hashed into a digest. `Hash` writes lengths and the numbers of
/// variants, so that no two definitions write the same.
struct Everything(Sha256);

impl Hasher for Everything {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tls;

    #[test]
    fn settings_that_differ_in_any_field_have_different_digests() {
        let base = tls("a.example");
        let others = [
            TlsDefinition { host: "b.example".into(), ..base.clone() },
            TlsDefinition { server_name: None, ..base.clone() },
            TlsDefinition { verify_peer: false, ..base.clone() },
            TlsDefinition { verify_host: false, ..base.clone() },
            TlsDefinition { authorities: vec![vec![1], vec![2]], ..base.clone() },
            TlsDefinition { authorities: vec![vec![1, 2]], ..base.clone() },
            TlsDefinition { pin: Some([0; 32]), ..base.clone() },
            TlsDefinition { only_tls13: true, ..base.clone() },
        ];
        let mut seen = vec![TlsSettings::new(base.clone()).identity()];
        for other in others {
            let identity = TlsSettings::new(other).identity();
            assert!(!seen.contains(&identity));
            seen.push(identity);
        }
        assert_eq!(TlsSettings::new(base).identity(), seen[0]);
    }
}
