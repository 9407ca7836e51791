//! How connections to a backend speak TLS, with a digest that tells such terms apart: [`TlsTerms`].
//!
//! A definition may hold certificates of many kilobytes; its digest is computed once, so that idle connections and the
//! configurations of handshakes are found without looking at all that.

use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};
use vcl_run::program::TlsDefinition;

/// The terms of a backend.
#[derive(Clone, Debug)]
pub struct TlsTerms {
    definition: TlsDefinition,
    identity: [u8; 32],
}

impl TlsTerms {
    /// The terms with their digest.
    #[must_use]
    pub fn new(definition: TlsDefinition) -> TlsTerms {
        let mut whole = Everything(Sha256::new());
        definition.hash(&mut whole);
        TlsTerms { definition, identity: whole.0.finalize().into() }
    }

    /// What VCL says.
    #[must_use]
    pub fn definition(&self) -> &TlsDefinition {
        &self.definition
    }

    /// Stands for the whole definition.
    #[must_use]
    pub fn identity(&self) -> [u8; 32] {
        self.identity
    }
}

/// Takes everything that is hashed into a digest. `Hash` writes lengths and the numbers of variants, so that no two
/// definitions write the same.
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
    fn whatever_differs_in_terms_makes_them_others() {
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
        let mut seen = vec![TlsTerms::new(base.clone()).identity()];
        for other in others {
            let identity = TlsTerms::new(other).identity();
            assert!(!seen.contains(&identity));
            seen.push(identity);
        }
        assert_eq!(TlsTerms::new(base).identity(), seen[0]);
    }
}
