//! debug: objects that store the arguments of their constructor.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use crate::debug::state::{Place, address_of, shown};
use surface::tag::Tag;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// debug.obj, debug.obj_opt and debug.concat.
struct Object {
    string: Option<Vec<u8>>,
    number: Vec<u8>,
    flag: Option<bool>,
}

/// debug.aclobj and debug.caller.
struct Held(Value);

fn name(context: &dyn VmodContext, instance: Option<u32>) -> String {
    let definition = instance.and_then(|instance| context.instances().definition(instance));
    definition.map_or_else(String::new, |definition| definition.name.clone())
}

/// `new x = debug.obj()`
pub(crate) fn create(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let string = Some(scratch.get(arguments.text(0)).to_vec());
    let number = scratch.get(arguments.text(1)).to_vec();
    context.instances().keep_object(instance, Object { string, number, flag: None });
    Value::Void
}

/// `new x = debug.concat()`
pub(crate) fn keep_text(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let string = Some(scratch.get(arguments.text(0)).to_vec());
    context.instances().keep_object(instance, Object { string, number: Vec::new(), flag: None });
    Value::Void
}

/// `new x = debug.obj_opt()`
pub(crate) fn create_optional(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Value {
    let string = arguments.is_given(0).then(|| scratch.get(arguments.text(0)).to_vec());
    let flag = arguments.is_given(1).then(|| arguments.bool(1));
    context.instances().keep_object(instance, Object { string, number: Vec::new(), flag });
    Value::Void
}

/// `.string()` of an obj, `.get()` of a concat
pub(crate) fn string(context: &mut dyn VmodContext, instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let object = context.instances().object::<Object>(instance);
    shown(scratch, object.and_then(|object| object.string.as_deref()))
}

/// `.number()`
pub(crate) fn number(context: &mut dyn VmodContext, instance: Option<u32>, scratch: &mut Scratch) -> Value {
    let object = context.instances().object::<Object>(instance);
    shown(scratch, object.map(|object| object.number.as_slice()))
}

/// `.meth_opt()`
pub(crate) fn optional(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let name = name(context, instance);
    let Some(object) = context.instances().object::<Object>(instance) else {
        return Err(Failure(format!("debug.obj_opt: {name} was never made")));
    };
    let word = |text: Option<&[u8]>| text.map_or("*undef*".into(), |text| String::from_utf8_lossy(text).into_owned());
    let flag = |flag: Option<bool>| flag.map_or("*undef*".to_owned(), |flag| flag.to_string());
    let text = format!(
        "obj {name} obj_s {} obj_b {} met_s {} met_b {}",
        word(object.string.as_deref()),
        flag(object.flag),
        word(arguments.is_given(0).then(|| scratch.get(arguments.text(0)))),
        flag(arguments.is_given(1).then(|| arguments.bool(1)))
    );
    done(Value::Text(scratch.put(text.as_bytes())))
}

/// `.test_priv_task()`, `.test_priv_top()`
pub(crate) fn kept(
    context: &mut dyn VmodContext,
    instance: Option<u32>,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    place: Place,
) -> Value {
    let name = name(context, instance);
    let method = if place == Place::Top { "priv_top" } else { "priv_task" };
    let given = scratch.get(arguments.text(0)).to_vec();
    let before = context.task().kept().debug.text(place, instance).map(<[u8]>::to_vec);
    let (text, end) = match (given.is_empty(), before) {
        (true, None) => {
            context.log(Tag::Debug, format!("{name}.{method}() = NULL").as_bytes());
            return Value::Text(scratch.put(b""));
        }
        (true, Some(before)) => (before, ""),
        (false, None) => (given, " [new]"),
        (false, Some(_)) => (given, " [update]"),
    };
    let shown = String::from_utf8_lossy(&text);
    let address = address_of(&text);
    let record = format!("{name}.{method}() = 0x1000 .priv = {address:#x} (\"{shown}\"){end}");
    context.log(Tag::Debug, record.as_bytes());
    let value = Value::Text(scratch.put(&text));
    context.task().kept().debug.set_text(place, instance, text);
    value
}

/// `new x = debug.aclobj()`, `new x = debug.caller()`
pub(crate) fn keep(context: &mut dyn VmodContext, instance: Option<u32>, arguments: Arguments<'_>) -> Value {
    context.instances().keep_object(instance, Held(arguments.value(0)));
    Value::Void
}

/// The value that they store.
pub(crate) fn held(context: &mut dyn VmodContext, instance: Option<u32>) -> Value {
    context.instances().object::<Held>(instance).map_or(Value::Absent, |Held(value)| *value)
}
