//! The last matches of a task, bounded by `request_memory_max`.

use vcl_run::host::Failure;

/// The last match of one object in a task.
#[derive(Debug)]
pub(crate) struct Capture {
    instance: Option<u32>,
    /// `None` if it failed.
    pub(crate) found: Option<Found>,
}

/// The groups of a match.
#[derive(Debug)]
pub(crate) struct Found {
    /// The texts of the groups, one after another.
    pub(crate) text: Vec<u8>,
    /// End of each group in `text`, and true if it took part.
    pub(crate) groups: Vec<(usize, bool)>,
    /// Names of groups.
    pub(crate) names: Vec<(String, usize)>,
}

impl Found {
    fn bytes(&self) -> usize {
        self.text.len() + self.names.iter().map(|(name, _)| name.len() + size_of::<(String, usize)>()).sum::<usize>()
    }

    /// The text of a group that took part.
    pub(crate) fn group(&self, number: usize) -> Option<&[u8]> {
        let (end, took_part) = *self.groups.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.groups.get(before)).map_or(0, |(end, _)| *end);
        self.text.get(start..end).filter(|_| took_part)
    }
}

/// The last matches of a task.
#[derive(Debug, Default)]
pub(crate) struct Captures(Vec<Capture>);

impl Captures {
    pub(crate) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Memory of the matches, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|capture| capture.found.as_ref().map_or(0, Found::bytes)).sum()
    }

    /// The last match of an object.
    pub(crate) fn of(&self, instance: Option<u32>) -> Option<&Capture> {
        self.0.iter().find(|capture| capture.instance == instance)
    }

    /// Drops the last match of an object.
    pub(crate) fn forget(&mut self, instance: Option<u32>) {
        self.0.retain(|capture| capture.instance != instance);
    }

    /// Replaces the last match of an object.
    ///
    /// # Errors
    /// The matches would take more than `limit_bytes`; then the old one is dropped.
    pub(crate) fn keep(
        &mut self,
        instance: Option<u32>,
        found: Option<Found>,
        limit_bytes: usize,
    ) -> Result<(), Failure> {
        self.forget(instance);
        if self.bytes() + found.as_ref().map_or(0, Found::bytes) > limit_bytes {
            return Err(out_of_memory());
        }
        self.0.push(Capture { instance, found });
        Ok(())
    }
}

/// The failure of a task whose matches take too much memory.
pub(crate) fn out_of_memory() -> Failure {
    Failure("vmod re: Out of request memory (parameter request_memory_max)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_of_a_task_are_bounded() {
        let found = |bytes: usize| Some(Found { text: vec![0; bytes], groups: vec![(bytes, true)], names: Vec::new() });
        let mut captures = Captures::default();
        for _ in 0..10 {
            captures.keep(Some(1), found(600), 1000).unwrap();
        }
        assert!(captures.keep(Some(2), found(600), 1000).is_err());
        captures.keep(Some(1), None, 1000).unwrap();
        captures.keep(Some(2), found(600), 1000).unwrap();
    }
}
