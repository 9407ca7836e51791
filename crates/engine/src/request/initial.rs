//! `resp` at the start of vcl_deliver and vcl_synth. A rollback in one of them makes it again.
//!
//! The fields that the steps add to it depend on more than the task and stay with them
//! (`deliver.rs`, `synth.rs`). Compat: a rollback drops that too, `Accept-Ranges` for one
//! (`rollback.vtc`).

use super::task::{ObjectHead, Task};
use crate::bodies::codings;
use crate::logged::{self, RESP};
use shm::log::LogBuffer;
use surface::program::Called;
use surface::vcl::Generation;

/// Makes `resp` from the object to deliver. False if there is none, or if its head cannot be
/// decoded.
#[inline(always)]
pub(crate) fn of_object(task: &mut Task, log: &mut LogBuffer, name: Called) -> bool {
    let Some(object) = &task.found.object else { return false };
    if task.found.object_head == ObjectHead::Changed {
        task.response.copy_from(&task.object_head);
    } else if task.response.decode(object.head()).is_none() {
        return false;
    }
    let response = &mut task.response;
    if let Some(fields) = object.unshared() {
        fields.headers().for_each(|header| response.append(header.name(), header.value()));
    }
    logged::log_response(log, RESP, response);

    if response.protocol() != b"HTTP/1.1" {
        response.set_protocol(b"HTTP/1.1");
        log.record(RESP.protocol, b"HTTP/1.1");
    }

    let (mut own, mut fetch) = (itoa::Buffer::new(), itoa::Buffer::new());
    let own = own.format(task.life.vxid).as_bytes();
    if task.found.is_hit {
        let fetch = fetch.format(object.vxid()).as_bytes();
        logged::append(log, RESP, response, "X-Varnish", &[own, b" ", fetch]);
    } else {
        logged::append(log, RESP, response, "X-Varnish", &[own]);
    }
    // The time is that of the last timestamp, which may be earlier than the object's. Age is in
    // whole seconds and never negative.
    let age = (task.life.previous - object.origin()).max(0.0) as u64;
    logged::append(log, RESP, response, "Age", &[itoa::Buffer::new().format(age).as_bytes()]);
    logged::append(log, RESP, response, "Via", &[name.via().as_bytes()]);

    let flags = object.flags();
    if task.settings.gzip_support && flags.is_coded() && !codings::is_accepted(flags, &task.request) {
        codings::weaken_etag(response, log, RESP);
    }
    true
}

/// Makes `resp` for vcl_synth, or the vcl_error of `generation`. `now` is in seconds since 1970.
pub(crate) fn of_error(task: &mut Task, log: &mut LogBuffer, now: f64, generation: Generation, name: Called) {
    task.response.clear();
    let phrase = semantics::reason::phrase(task.life.error_status % 1000);
    let reason = if task.error_reason.is_empty() { phrase.as_bytes() } else { &task.error_reason };
    logged::set_status_line(log, RESP, &mut task.response, b"HTTP/1.1", task.life.error_status, reason);
    let mut date = [0; 29];
    semantics::date::format(now, &mut date);
    logged::append(log, RESP, &mut task.response, "Date", &[&date]);
    logged::append(log, RESP, &mut task.response, "Server", &[name.server().as_bytes()]);
    match generation {
        Generation::V4 => {
            let mut vxid = itoa::Buffer::new();
            logged::append(log, RESP, &mut task.response, "X-Varnish", &[vxid.format(task.life.vxid).as_bytes()]);
        }
        // The headers of every response are added after vcl_error, see `legacy.rs`.
        Generation::V1 | Generation::V3 => {}
        Generation::V20 | Generation::V21 => logged::append(log, RESP, &mut task.response, "Retry-After", &[b"0"]),
    }
}
