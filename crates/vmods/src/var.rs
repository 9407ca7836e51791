//! var: variables of a task, and global ones that all tasks share.
//!
//! A variable of another type reads as unset, zero, the null address, or no backend. Global variables are strings and outlive
//! the VCL that set them. Compat: as varnish-modules 0.20 for Varnish 7.1. Both stores are bounded: that of a task by
//! `request_memory_max`, the global one by [`surface::limits::VAR_GLOBAL_BYTES_MAX`].

use crate::arguments::Arguments;
use crate::context::VmodContext;
use crate::done;
use parking_lot::RwLock;
use std::collections::HashMap;
use surface::limits::VAR_GLOBAL_BYTES_MAX;
use surface::vmod::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Approximate memory of a variable besides its name and text, in bytes.
const ENTRY_BYTES: usize = 96;

/// A variable of a task.
#[derive(Debug)]
enum Variable {
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

    /// What they take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn set(&mut self, name: &[u8], variable: Variable, limit_bytes: usize) -> Result<(), Failure> {
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

/// `var.set()` and its typed variants.
pub(crate) fn set(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let name = arguments.text(0);
    if !name.is_set() {
        return done(Value::Void);
    }
    let variable = match arguments.value(1) {
        Value::Text(text) => Variable::Text(scratch.get(text).to_vec()),
        value => Variable::Plain(value),
    };
    let task = context.task();
    let limit_bytes = task.room_bytes(scratch);
    task.kept().variables.set(scratch.get(name), variable, limit_bytes)?;
    done(Value::Void)
}

/// `var.get()` and its typed variants.
pub(crate) fn get(
    function: Function,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Value {
    let found = context.task().kept().variables.by_name.get(scratch.get(arguments.text(0)));
    let found = found.filter(|_| arguments.text(0).is_set());
    match (function, found) {
        (Function::VarGet | Function::VarGetString, Some(Variable::Text(text))) => Value::Text(scratch.put(text)),
        (Function::VarGetInt, Some(Variable::Plain(value @ Value::Int(_))))
        | (Function::VarGetReal, Some(Variable::Plain(value @ Value::Real(_))))
        | (Function::VarGetDuration, Some(Variable::Plain(value @ Value::Duration(_))))
        | (Function::VarGetIp, Some(Variable::Plain(value @ Value::Ip(_))))
        | (Function::VarGetBackend, Some(Variable::Plain(value @ Value::Backend(_)))) => *value,
        (Function::VarGetInt, _) => Value::Int(0),
        (Function::VarGetReal, _) => Value::Real(0.0),
        (Function::VarGetDuration, _) => Value::Duration(0.0),
        (Function::VarGetIp, _) => Value::Ip(None),
        (Function::VarGetBackend, _) => Value::Backend(None),
        _ => Value::Text(Text::UNSET),
    }
}

/// `var.clear()`
pub(crate) fn clear(context: &mut dyn VmodContext) -> Value {
    context.task().kept().variables.clear();
    Value::Void
}

/// The global variables.
#[derive(Debug, Default)]
pub(crate) struct Globals(RwLock<GlobalTable>);

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

/// `var.global_set()`
pub(crate) fn global_set(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (name, value) = (arguments.text(0), arguments.text(1));
    if name.is_set() {
        let value = value.is_set().then(|| scratch.get(value));
        if !context.shared().globals.0.write().set(scratch.get(name), value, VAR_GLOBAL_BYTES_MAX) {
            return Err(Failure(format!("var.global_set(): the global variables have {VAR_GLOBAL_BYTES_MAX} bytes")));
        }
    }
    done(Value::Void)
}

/// `var.global_get()`
pub(crate) fn global_get(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let name = arguments.text(0);
    if !name.is_set() {
        return Value::Text(Text::UNSET);
    }
    let table = context.shared().globals.0.read();
    let value = table.by_name.get(scratch.get(name));
    Value::Text(value.map_or(Text::UNSET, |value| scratch.put(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_keeps_is_bounded_and_room_comes_back() {
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
