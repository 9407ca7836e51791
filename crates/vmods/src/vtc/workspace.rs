//! vtc.workspace_…: changes the memory of a task, to test what happens to a request that runs out
//! of it.
//!
//! There are no workspaces of fixed size here: the strings and messages of a task grow up to the
//! parameter request_memory_max. All four workspace names mean that memory. Allocating some of it
//! lowers the remaining memory of the task; nothing is written to it. Session and thread have
//! nothing that could overflow; only the mark is kept.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::VmodContext;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// The most bytes that a dump shows.
const DUMP_BYTES_MAX: i64 = 1024;

/// Bytes of memory left.
fn left(context: &dyn VmodContext, scratch: &Scratch) -> usize {
    scratch.limit_bytes().saturating_sub(scratch.used_bytes()).saturating_sub(context.message_bytes())
}

/// The requested size in bytes; a negative size means all but that many.
fn asked(context: &dyn VmodContext, size: i64, scratch: &Scratch) -> i64 {
    let left = i64::try_from(left(context, scratch)).unwrap_or(i64::MAX);
    if size < 0 { size.saturating_add(left) } else { size }
}

/// True if the named workspace is the task's, rather than the session's or thread's.
fn is_of_task(arguments: Arguments<'_>, scratch: &Scratch) -> bool {
    matches!(scratch.get(arguments.text(0)), b"client" | b"backend")
}

/// `vtc.workspace_alloc()`
pub(crate) fn alloc(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let size = asked(context, arguments.int(1), scratch);
    if size <= 0 {
        return Err(Failure("Attempted negative WS allocation".to_owned()));
    }
    let Some(size) = usize::try_from(size).ok().filter(|size| *size <= left(context, scratch)) else {
        return Err(Failure("vtc.workspace_alloc".to_owned()));
    };
    if is_of_task(arguments, scratch) {
        scratch.set_limit(scratch.limit_bytes() - size);
        context.task().taken_bytes += size;
    }
    done(Value::Void)
}

/// `vtc.workspace_reserve()`
pub(crate) fn reserve(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let size = asked(context, arguments.int(1), scratch);
    if size <= 0 {
        return Err(Failure("Attempted negative WS reservation".to_owned()));
    }
    let fits = usize::try_from(size).is_ok_and(|size| size <= left(context, scratch));
    done(Value::Bytes(if fits { size } else { 0 }))
}

/// `vtc.workspace_free()`
pub(crate) fn free(context: &mut dyn VmodContext, scratch: &Scratch) -> Value {
    Value::Int(i64::try_from(left(context, scratch)).unwrap_or(i64::MAX))
}

/// `vtc.workspace_snapshot()`
pub(crate) fn snapshot(context: &mut dyn VmodContext) -> Value {
    let task = context.task();
    task.taken_bytes_before = task.taken_bytes;
    Value::Void
}

/// `vtc.workspace_reset()`
pub(crate) fn reset(context: &mut dyn VmodContext, scratch: &mut Scratch) -> Value {
    let task = context.task();
    let given_back = task.taken_bytes.saturating_sub(task.taken_bytes_before);
    task.taken_bytes -= given_back;
    scratch.set_limit(scratch.limit_bytes().saturating_add(given_back));
    Value::Void
}

/// `vtc.workspace_overflowed()`
pub(crate) fn overflowed(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let of_task = is_of_task(arguments, scratch);
    Value::Bool(if of_task { scratch.overflowed() } else { context.task().kept().is_overflow_marked })
}

/// `vtc.workspace_overflow()`
pub(crate) fn overflow(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    if is_of_task(arguments, scratch) {
        scratch.mark_overflowed();
    } else {
        context.task().kept().is_overflow_marked = true;
    }
    Value::Void
}

/// `vtc.workspace_dump()`
pub(crate) fn dump(arguments: Arguments<'_>, scratch: &mut Scratch) -> Result<Called, Failure> {
    let (offset, length) = (arguments.int(2), arguments.int(3));
    if length > DUMP_BYTES_MAX {
        return Err(Failure(format!("workspace_dump: max length is {DUMP_BYTES_MAX}")));
    }
    let strings = if scratch.get(arguments.text(1)) == b"s" { scratch.bytes() } else { &[] };
    let from = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..)).unwrap_or_default();
    let piece = from[..from.len().min(usize::try_from(length).unwrap_or(0))].to_vec();
    if piece.is_empty() {
        return Err(Failure("workspace_dump: off limit".to_owned()));
    }
    done(Value::Blob(scratch.put(&piece)))
}
