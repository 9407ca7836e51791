//! The variables of a task, and the global ones. Both stores are bounded.

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use std::collections::HashMap;
use surface::limits::VAR_GLOBAL_BYTES_MAX;
use vcl_run::host::Failure;
use vcl_run::value::Value;

/// Approximate memory of a variable besides its name and text, in bytes.
const ENTRY_BYTES: usize = 96;

/// A variable of a task.
#[derive(Debug)]
pub(crate) enum Variable {
    /// A string.
    Text(Vec<u8>),
    /// Any value that is not text.
    Plain(Value),
}

impl Variable {
    fn bytes(&self) -> usize {
        match self {
            Variable::Text(text) => ENTRY_BYTES + text.len(),
            Variable::Plain(_) => ENTRY_BYTES,
        }
    }
}

/// The variables of a task.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    by_name: HashMap<Vec<u8>, Variable>,
    bytes: usize,
}

impl Variables {
    pub(crate) fn clear(&mut self) {
        if self.bytes > 0 {
            *self = Variables::default();
        }
    }

    /// Memory of the variables, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A variable.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Variable> {
        self.by_name.get(name)
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// The variables would take more than `limit_bytes`.
    pub(crate) fn set(&mut self, name: &[u8], variable: Variable, limit_bytes: usize) -> Result<(), Failure> {
        let old = self.by_name.get(name).map_or(0, |old| old.bytes() + name.len());
        let bytes = self.bytes - old + variable.bytes() + name.len();
        if bytes > limit_bytes {
            return Err(Failure("vmod_var: Out of request memory (parameter request_memory_max)".to_owned()));
        }
        self.bytes = bytes;
        self.by_name.insert(name.to_vec(), variable);
        Ok(())
    }
}

/// The global variables.
#[derive(Debug, Default)]
pub(crate) struct Globals(RwLock<GlobalTable>);

impl Globals {
    /// Sets a variable; an unset value removes it. Returns false if there is no room.
    pub(crate) fn set(&self, name: &[u8], value: Option<&[u8]>) -> bool {
        self.0.write().set(name, value, VAR_GLOBAL_BYTES_MAX)
    }

    /// The value of a variable. Locks the variables until it is dropped.
    pub(crate) fn get(&self, name: &[u8]) -> Option<MappedRwLockReadGuard<'_, [u8]>> {
        RwLockReadGuard::try_map(self.0.read(), |table| table.by_name.get(name).map(|value| &**value)).ok()
    }
}

#[derive(Debug, Default)]
struct GlobalTable {
    by_name: HashMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
}

impl GlobalTable {
    /// An unset value removes the variable. `false` if there is no room.
    fn set(&mut self, name: &[u8], value: Option<&[u8]>, limit_bytes: usize) -> bool {
        let cost = |value: &[u8]| ENTRY_BYTES + name.len() + value.len();
        let old = self.by_name.get(name).map_or(0, |old| cost(old));
        let bytes = self.bytes - old + value.map_or(0, cost);
        if bytes > limit_bytes && value.is_some() {
            return false;
        }
        self.bytes = bytes;
        match value {
            Some(value) => self.by_name.insert(name.into(), value.into()),
            None => self.by_name.remove(name),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_task_are_bounded_and_freed() {
        let mut variables = Variables::default();
        let text = |bytes: usize| Variable::Text(vec![b'x'; bytes]);
        for _ in 0..100 {
            variables.set(b"a", text(500), 1000).unwrap();
        }
        assert!(variables.set(b"b", text(500), 1000).is_err());
        variables.set(b"a", text(0), 1000).unwrap();
        variables.set(b"b", text(500), 1000).unwrap();
        variables.clear();
        variables.set(b"c", text(800), 1000).unwrap();
    }

    #[test]
    fn global_variables_are_bounded_and_room_comes_back() {
        let mut table = GlobalTable::default();
        assert!(table.set(b"a", Some(&[0; 500]), 1000));
        assert!(!table.set(b"b", Some(&[0; 500]), 1000));
        assert!(table.set(b"a", None, 1000));
        assert_eq!(table.bytes, 0);
        assert!(table.set(b"b", Some(&[0; 500]), 1000));
    }
}
