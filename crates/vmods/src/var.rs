//! var: variables of a task, and global ones that all tasks share.
//!
//! A variable of another type reads as unset, zero, the null address, or no backend. Global
//! variables are strings and outlive the VCL that set them. Compat: as varnish-modules 0.20 for
//! Varnish 7.1. Both stores are bounded: that of a task by `request_memory_max`, the global one by
//! [`surface::limits::VAR_GLOBAL_BYTES_MAX`]. Next file: `var/variables.rs`.

mod variables;

pub(crate) use variables::{Globals, Variables};

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use surface::limits::VAR_GLOBAL_BYTES_MAX;
use surface::vmod::functions::var::Function;
use variables::Variable;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::VarSet
        | Function::VarSetString
        | Function::VarSetInt
        | Function::VarSetReal
        | Function::VarSetDuration
        | Function::VarSetIp
        | Function::VarSetBackend => set(context, arguments, scratch),
        Function::VarGet
        | Function::VarGetString
        | Function::VarGetInt
        | Function::VarGetReal
        | Function::VarGetDuration
        | Function::VarGetIp
        | Function::VarGetBackend => done(get(function, context, arguments, scratch)),
        Function::VarClear => done(clear(context)),
        Function::VarGlobalSet => global_set(context, arguments, scratch),
        Function::VarGlobalGet => done(global_get(context, arguments, scratch)),
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
    let found = context.task().kept().variables.get(scratch.get(arguments.text(0)));
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

/// `var.global_set()`
pub(crate) fn global_set(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let (name, value) = (arguments.text(0), arguments.text(1));
    if name.is_set() {
        let value = value.is_set().then(|| scratch.get(value));
        if !context.shared().globals.set(scratch.get(name), value) {
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
    let value = context.shared().globals.get(scratch.get(name));
    Value::Text(value.map_or(Text::UNSET, |value| scratch.put(&value)))
}
