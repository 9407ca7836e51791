//! debug: functions that Varnish's own test cases need from the VMOD with that name.
//!
//! Functions that examine the internals of the C program have no row in the table, so the compiler
//! reports them as unknown. Addresses in Debug records are made up: they only distinguish the items
//! of a task. Next files: `debug/state.rs`, `debug/life.rs`, `debug/counter.rs` (state),
//! `debug/object.rs`, `debug/dynamic.rs`, `debug/acl.rs`. Its filters are among those of the crate
//! `body`.

pub(crate) mod acl;
pub(crate) mod counter;
pub(crate) mod dynamic;
pub(crate) mod life;
pub(crate) mod object;
pub(crate) mod state;

pub(crate) use state::Place;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use crate::header;
use backend::DirectorKind;
use backend::director::kind::failing::Failing;
use state::{address_of, shown};
use std::net::SocketAddr;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vmod::functions::debug::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { instance, context, arguments, scratch } = call;
    match function {
        Function::DebugAuthor => done(author(arguments, scratch)),
        Function::DebugTestPrivCall
        | Function::DebugTestPrivVcl
        | Function::DebugTestPrivTaskGet
        | Function::DebugObjEnum
        | Function::DebugObjObj
        | Function::DebugObjTestPrivCall
        | Function::DebugObjTestPrivVcl => done(Value::Void),
        Function::DebugTestPrivTask => done(task_text(context, arguments, scratch)),
        Function::DebugTestPrivTop => done(first_text(context, arguments, scratch, Place::Top)),
        Function::DebugPrivTaskWithOption => done(first_text(context, arguments, scratch, Place::Option)),
        Function::DebugObj => done(object::create(context, instance, arguments, scratch)),
        Function::DebugObjString => done(object::string(context, instance, scratch)),
        Function::DebugObjNumber => done(object::number(context, instance, scratch)),
        Function::DebugObjFoo | Function::DebugObjBar => done(Value::Text(scratch.put(b"BOO"))),
        Function::DebugObjDate => done(Value::Time(21.4)),
        Function::DebugObjTestPrivTask => done(object::kept(context, instance, arguments, scratch, Place::Task)),
        Function::DebugObjTestPrivTop => done(object::kept(context, instance, arguments, scratch, Place::Top)),
        Function::DebugObjOpt => done(object::create_optional(context, instance, arguments, scratch)),
        Function::DebugObjOptMethOpt => object::optional(context, instance, arguments, scratch),
        Function::DebugRot52 => rot52(context, arguments),
        Function::DebugArgtest => done(argtest(arguments, scratch)),
        Function::DebugVreLimit => {
            let limit = context.parameters().pcre2_match_limit;
            done(Value::Int(i64::try_from(limit).unwrap_or(i64::MAX)))
        }
        Function::DebugVscNew => done(create_counter(context)),
        Function::DebugVscCount => count(context, arguments),
        Function::DebugVscDestroy => done(remove_counter(context)),
        Function::DebugVclDiscardDelay => discard_delay(context, arguments.real(0)),
        Function::DebugVclPreventCold => done(prevent_cold(context, true)),
        Function::DebugVclAllowCold => done(prevent_cold(context, false)),
        Function::DebugFailTaskFini => done(fail_at_end(context, true)),
        Function::DebugOkTaskFini => done(fail_at_end(context, false)),
        Function::DebugFail | Function::DebugFail2 => Err(Failure("Forced failure".to_owned())),
        Function::DebugDyn => dynamic::create(context, instance, arguments, scratch),
        Function::DebugDynUds => dynamic::create_unix(context, instance, arguments, scratch),
        Function::DebugDynRefresh => dynamic::replace(context, instance, arguments, scratch),
        Function::DebugDynUdsRefresh => dynamic::replace_unix(context, instance, arguments, scratch),
        Function::DebugDynBackend | Function::DebugDynUdsBackend => done(dynamic::backend(context, instance)),
        Function::DebugNullAcl => done(Value::Acl(None)),
        Function::DebugAcl | Function::DebugJustReturnRegex => done(arguments.value(0)),
        Function::DebugMatchAcl => acl::matches(context, arguments),
        Function::DebugSweepAcl => acl::sweep(context, arguments, scratch),
        Function::DebugTimeAcl => acl::time(context, arguments),
        Function::DebugAclobj | Function::DebugCaller => done(object::keep(context, instance, arguments)),
        Function::DebugAclobjGet | Function::DebugCallerXsub => done(object::held(context, instance)),
        Function::DebugTestProbe => test_probe(arguments),
        Function::DebugConcat => done(object::keep_text(context, instance, arguments, scratch)),
        Function::DebugConcatGet => done(object::string(context, instance, scratch)),
        Function::DebugConcatenate | Function::DebugCollect => done(joined(arguments)),
        Function::DebugSethdr => set_header(context, arguments, scratch),
        Function::DebugReturnStrands => done(return_strands(context, arguments, scratch)),
        Function::DebugStk => done(Value::Bytes(0)),
        Function::DebugSndbuf => send_buffer(context, arguments),
        Function::DebugStoreIp => done(store_ip(context, arguments)),
        Function::DebugGetIp => done(Value::Ip(context.task().kept().debug.address)),
        Function::DebugDirector => crate::directors::create(context, instance, DirectorKind::Failing(Failing)),
        Function::DebugDirectorFail => done(crate::directors::backend(context, instance)),
        Function::DebugClientIp => done(client(context, scratch, |client| client.ip().to_string())),
        Function::DebugClientPort => done(client(context, scratch, |client| client.port().to_string())),
        Function::DebugReQuote => done(quote(arguments, scratch)),
        Function::DebugValidhdr => done(valid_header(arguments, scratch)),
        Function::DebugCheckCall => sub(arguments.value(0)).map(Called::Check),
        Function::DebugCall => sub(arguments.value(0)).map(Called::Sub),
        Function::DebugCallerCall => sub(object::held(context, instance)).map(Called::Sub),
    }
}

/// Refuses every VCL that imports debug if `nuke_limit` is 42.
pub(crate) fn before_load(parameters: &Parameters) -> Result<(), Failure> {
    match parameters.nuke_limit {
        42 => Err(Failure("nuke_limit is not the answer.".to_owned())),
        _ => Ok(()),
    }
}

/// `debug.fail_task_fini()`, `debug.ok_task_fini()`
pub(crate) fn fail_at_end(context: &mut dyn VmodContext, fails: bool) -> Value {
    context.task().kept().debug.fails_at_end = fails;
    Value::Void
}

/// `debug.vsc_new()`: only the first call counts.
pub(crate) fn create_counter(context: &mut dyn VmodContext) -> Value {
    context.shared().debug_counter.create();
    Value::Void
}

/// `debug.vsc_count()`
pub(crate) fn count(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    if !context.shared().debug_counter.add(arguments.int(0).cast_unsigned()) {
        return Err(Failure("debug.vsc_count(): there is no counter".to_owned()));
    }
    done(Value::Void)
}

/// `debug.vsc_destroy()`
pub(crate) fn remove_counter(context: &mut dyn VmodContext) -> Value {
    context.shared().debug_counter.remove();
    Value::Void
}

/// `debug.vcl_discard_delay()`
pub(crate) fn discard_delay(context: &mut dyn VmodContext, seconds: f64) -> Result<Called, Failure> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(Failure("debug.vcl_discard_delay(): the delay must be above 0".to_owned()));
    }
    context.instances().debug_life().set_discard_delay(seconds);
    done(Value::Void)
}

/// `debug.vcl_prevent_cold()`, `debug.vcl_allow_cold()`
pub(crate) fn prevent_cold(context: &mut dyn VmodContext, prevents: bool) -> Value {
    context.instances().debug_life().set_prevents_cold(prevents);
    Value::Void
}

/// `debug.author()`
pub(crate) fn author(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let name = match scratch.get(arguments.text(0)) {
        b"des" => "Dag-Erling",
        b"kristian" => "Kristian",
        b"mithrandir" => "Tollef",
        _ => "Poul-Henning",
    };
    Value::Text(scratch.put(name.as_bytes()))
}

/// `debug.test_priv_task()`
pub(crate) fn task_text(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let more = scratch.get(arguments.text(0)).to_vec();
    let kept = context.task().kept().debug.text(Place::Task, None).map(<[u8]>::to_vec);
    let (text, what) = match (kept, more.is_empty()) {
        (kept, true) => (kept, "exists"),
        (None, false) => (Some(more), "new"),
        (Some(kept), false) => (Some([&kept[..], b" ", &more].concat()), "update"),
    };
    let address = text.as_deref().map_or(0, address_of);
    context.log(Tag::Debug, format!("test_priv_task(0x1000) = {address:#x} ({what})").as_bytes());
    let value = shown(scratch, text.as_deref());
    if let Some(text) = text {
        context.task().kept().debug.set_text(Place::Task, None, text);
    }
    value
}

/// `debug.test_priv_top()`, `debug.priv_task_with_option()`: only the first text is stored.
pub(crate) fn first_text(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    place: Place,
) -> Value {
    if arguments.is_given(0) && context.task().kept().debug.text(place, None).is_none() {
        let text = scratch.get(arguments.text(0)).to_vec();
        context.task().kept().debug.set_text(place, None, text);
    }
    let text = context.task().kept().debug.text(place, None).map(<[u8]>::to_vec);
    shown(scratch, text.as_deref())
}

/// `debug.rot52()`
pub(crate) fn rot52(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let place = arguments.http(0).and_then(|http| context.message_mut(http).map(|message| (http, message)));
    let Some((http, message)) = place else {
        return Err(Failure("debug.rot52(): these headers cannot be changed here".to_owned()));
    };
    message.append(b"Encrypted", b"ROT52");
    context.log(header::tags(http).0, b"Encrypted: ROT52");
    done(Value::Void)
}

/// `debug.argtest()`
pub(crate) fn argtest(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let text = |place| String::from_utf8_lossy(scratch.get(arguments.text(place))).into_owned();
    let given = arguments.is_given(5);
    let last = if given { text(5) } else { "<undef>".to_owned() };
    let joined = format!(
        "{} {} {} {} {} {} {last}",
        text(0),
        general(arguments.real(1)),
        text(2),
        text(3),
        arguments.int(4),
        i32::from(given)
    );
    Value::Text(scratch.put(joined.as_bytes()))
}

/// Formats a number like C's `%g`: six significant digits, no zeros at the end.
fn general(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number}");
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        return trimmed(&format!("{number:.*}", usize::try_from(5 - exponent).unwrap_or(0)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

/// `debug.test_probe()`
pub(crate) fn test_probe(arguments: Arguments<'_>) -> Result<Called, Failure> {
    let (probe, same) = (arguments.value(0), arguments.value(1));
    if same != Value::Absent && same != probe {
        return Err(Failure("debug.test_probe(): these are two probes".to_owned()));
    }
    done(Value::Void)
}

/// `debug.concatenate()`, `debug.collect()`: the pieces arrive joined; if all are unset, the result
/// is an empty string.
pub(crate) fn joined(arguments: Arguments<'_>) -> Value {
    let text = arguments.text(0);
    Value::Text(if text.is_set() { text } else { Text::EMPTY })
}

/// `debug.sethdr()`
pub(crate) fn set_header(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let cannot = || Failure("debug.sethdr(): header argument can not be used here".to_owned());
    let (http, name) = arguments.header(0, context.program(), scratch).ok_or_else(cannot)?;
    let value = scratch.get(arguments.text(1)).to_vec();
    if !is_valid_value(&value) {
        return Err(Failure(format!("Bad header {name}: {}", String::from_utf8_lossy(&value))));
    }
    context.message_mut(http).ok_or_else(cannot)?.set(&name, &value);
    context.log(header::tags(http).0, &[name.as_bytes(), b": ", &value].concat());
    done(Value::Void)
}

fn is_valid_value(value: &[u8]) -> bool {
    value.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

/// `debug.validhdr()`
pub(crate) fn valid_header(arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    Value::Bool(is_valid_value(scratch.get(arguments.text(0))))
}

/// `debug.return_strands()`
pub(crate) fn return_strands(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let text = arguments.text(0);
    context.log(Tag::Debug, scratch.get(text));
    Value::Text(text)
}

/// `debug.sndbuf()`
pub(crate) fn send_buffer(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Result<Called, Failure> {
    let Some((sockets, descriptor)) = context.client_socket() else {
        return Err(Failure("debug.sndbuf() called outside a transaction.".to_owned()));
    };
    let wish = arguments.int(0).clamp(0, i64::from(i32::MAX)) as u32;
    let (before, after) = sockets
        .set_send_buffer(descriptor, wish)
        .map_err(|error| Failure(format!("debug.sndbuf(): the send buffer cannot be set: {error}")))?;
    let text = format!("SO_SNDBUF fd={descriptor} old={before} new={wish} actual={after}");
    context.log(Tag::Debug, text.as_bytes());
    done(Value::Void)
}

/// `debug.store_ip()`
pub(crate) fn store_ip(context: &mut dyn VmodContext, arguments: Arguments<'_>) -> Value {
    context.task().kept().debug.address = arguments.ip(0);
    Value::Void
}

/// `debug.client_ip()`, `debug.client_port()`
pub(crate) fn client(
    context: &mut dyn VmodContext,
    scratch: &mut Scratch,
    part: impl Fn(SocketAddr) -> String,
) -> Value {
    let text = context.connection().map(|connection| part(connection.client));
    shown(scratch, text.as_deref().map(str::as_bytes))
}

/// `debug.re_quote()`: puts the text between `\Q` and `\E`; handles an `\E` within the text.
pub(crate) fn quote(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let text = scratch.get(arguments.text(0)).to_vec();
    let mut out = Vec::with_capacity(text.len() + 4);
    let mut rest = &text[..];
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\\E") {
        out.extend_from_slice(&[b"\\Q", &rest[..end], b"\\\\EE"].concat());
        rest = &rest[end + 2..];
    }
    if !rest.is_empty() {
        out.extend_from_slice(&[b"\\Q", rest, b"\\E"].concat());
    }
    Value::Text(scratch.put(&out))
}

/// The subroutine that an argument refers to.
pub(crate) fn sub(value: Value) -> Result<u32, Failure> {
    match value {
        Value::Sub(sub) => Ok(sub),
        _ => Err(Failure("debug: there is no subroutine".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_does() {
        for (number, expected) in [
            (2.0, "2"),
            (0.0, "0"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (2.345_678_9, "2.34568"),
            (-0.25, "-0.25"),
        ] {
            assert_eq!(general(number), expected);
        }
    }
}
