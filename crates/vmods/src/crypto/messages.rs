//! The data that a task has given to verifiers of signatures.

/// Data that the verifiers of a task have got, by object.
#[derive(Debug, Default)]
pub(crate) struct Messages(Vec<(Option<u32>, Vec<u8>)>);

impl Messages {
    /// Memory that clients can make grow, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, message)| message.len()).sum()
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The data of a verifier.
    pub(super) fn of(&self, instance: Option<u32>) -> &[u8] {
        self.0.iter().find(|(other, _)| *other == instance).map_or(&[], |(_, message)| message)
    }

    /// Adds data of a verifier.
    pub(super) fn add(&mut self, instance: Option<u32>, bytes: &[u8]) {
        match self.0.iter_mut().find(|(other, _)| *other == instance) {
            Some((_, message)) => message.extend_from_slice(bytes),
            None => self.0.push((instance, bytes.to_vec())),
        }
    }

    /// Drops the data of a verifier.
    pub(super) fn forget(&mut self, instance: Option<u32>) {
        self.0.retain(|(other, _)| *other != instance);
    }
}
