//! Excerpt of a refused line for the log.

/// The first bytes of an offending line, for the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    bytes: [u8; 20],
    len: u8,
}

impl Sample {
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut bytes = [0; 20];
        let len = line.len().min(bytes.len());
        bytes[..len].copy_from_slice(&line[..len]);
        Sample { bytes, len: len as u8 }
    }

    /// The bytes, at most 20.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}
