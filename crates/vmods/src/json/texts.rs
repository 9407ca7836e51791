//! The JSON texts of a task.

/// The texts of a task; valid ones only.
#[derive(Debug, Default)]
pub(crate) struct JsonTexts {
    /// The text of json.
    pub(super) json: Option<String>,
    /// The text of jq.
    pub(super) jq: Option<String>,
}

impl JsonTexts {
    /// Memory that clients can make grow, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        [&self.json, &self.jq].into_iter().flatten().map(String::len).sum()
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = JsonTexts::default();
    }
}
