//! Filters that a response passes when VCL names none; they follow from the object and the request.
//!
//! The filters are implemented in `bodies/filters.rs`.

use super::task::Task;
use crate::bodies::codings;
use body::Side;
use body::filter::{find, names};
use store::ObjectFlags;

/// The list that applies when VCL has set none. Each name is preceded by a space.
pub(crate) fn default_list(task: &Task) -> Vec<u8> {
    let mut list = Vec::new();
    let flags = task.found.object.as_ref().map_or(ObjectFlags::NONE, |object| object.flags());
    if flags.has(ObjectFlags::ESI) && is_page(task) {
        list.extend_from_slice(b" esi");
    }
    if task.settings.gzip_support && flags.is_coded() && !codings::is_accepted(flags, &task.request) {
        list.extend_from_slice(codings::unpacker(flags));
    }
    let is_get = !task.life.is_head && task.request.method() == b"GET";
    let may_cut = task.settings.range_support && is_get && !task.answer.ignores_range;
    if may_cut && can_be_cut(task) && task.request.has("Range") {
        list.extend_from_slice(b" range");
    }
    list
}

/// True if ranges can be cut from the response: it is a whole one, or a part that was stored as
/// such.
fn can_be_cut(task: &Task) -> bool {
    let is_part = || task.found.object.as_ref().is_some_and(|object| object.flags().has(ObjectFlags::PARTIAL));
    match task.response.status() {
        200 => true,
        206 => is_part(),
        _ => false,
    }
}

/// True if VCL allows assembling a parsed object as a page, and there is something to include.
fn is_page(task: &Task) -> bool {
    let has_plan = task.found.object.as_ref().is_some_and(|object| object.annex_bytes() > 0);
    has_plan && !task.choices.is_esi_forbidden && task.answer.do_esi.unwrap_or(true)
}

/// True if the response will pass a filter that needs much memory.
pub(crate) fn are_heavy(task: &Task) -> bool {
    let is_heavy = |list: &[u8]| names(list).any(|name| find(name, Side::Resp).is_some_and(|row| row.is_heavy));
    match &task.answer.filters {
        Some(list) => is_heavy(list),
        None => is_heavy(&default_list(task)),
    }
}
