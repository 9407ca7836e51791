//! What happens to a body between the object and the client: gunzip, and cutting out a range.
//!
//! The list is `resp.filters`, or follows from object and request. Each filter changes the response's headers when it is set
//! up, then the bytes as they pass, step by step (`body::Chain`). Without a filter bytes are never touched: the body is sent
//! from where it is stored. Next file: `source.rs`.

use super::task::Task;
use crate::logged::{self, RESP};
use body::{Chain, Filter, GzipError, RangeCut, Step};
use semantics::date::DateForms;
use semantics::range::{self, RangeResult};
use semantics::{encoding, reason};
use shm::log::LogBuffer;
use store::{BodyState, ObjectFlags};
use surface::limits::FILTERS_MAX;
use surface::parameter::debug;
use surface::tag::Tag;

/// A gzipped body up to this length cannot inflate to more than the 32 bits of its trailer can say: deflate's best ratio is
/// below 1,040.
const TRAILER_TRUSTED_BYTES_MAX: u64 = 4 << 20;

/// The filters of a response, in the order in which bytes pass them, and their names in the log.
#[derive(Default)]
pub(crate) struct Filters {
    chain: Chain,
    names: Vec<&'static str>,
}

/// The list that applies when VCL has set none. Each name is preceded by a blank.
pub(crate) fn default_list(task: &Task) -> Vec<u8> {
    let mut list = Vec::new();
    let is_gzipped = task.found.object.as_ref().is_some_and(|object| object.flags().has(ObjectFlags::GZIPPED));
    if task.settings.gzip_support && is_gzipped && !encoding::accepts_gzip(&task.request) {
        list.extend_from_slice(b" gunzip");
    }
    let is_get = !task.life.is_head && task.request.method() == b"GET";
    if task.settings.range_support && task.response.status() == 200 && is_get && task.request.has("Range") {
        list.extend_from_slice(b" range");
    }
    list
}

/// Whether the response will be unpacked: that takes memory.
pub(crate) fn unpacks(task: &Task) -> bool {
    match &task.answer.filters {
        Some(list) => list.split(u8::is_ascii_whitespace).any(|name| name == b"gunzip"),
        None => default_list(task).starts_with(b" gunzip"),
    }
}

impl Filters {
    /// Sets up the filters of a list; `length` is that of the body as far as it is known and becomes that of what is sent.
    ///
    /// # Errors
    /// The text for the log: there is no such filter, or there are too many.
    pub(crate) fn set_up(
        list: &[u8],
        task: &mut Task,
        log: &mut LogBuffer,
        length: &mut Option<u64>,
    ) -> Result<Filters, String> {
        let mut filters = Filters::default();
        for name in list.split(|byte| byte.is_ascii_whitespace()).filter(|name| !name.is_empty()) {
            match name {
                b"gunzip" => {
                    *length = plain_length(task);
                    logged::unset(log, RESP, &mut task.response, "Content-Encoding");
                    filters.push("gunzip", Filter::gunzip(*length))?;
                }
                b"range" => filters.set_up_range(task, log, length)?,
                _ => return Err(format!("Filter '...{}' not found", String::from_utf8_lossy(name))),
            }
            if task.settings.debug & debug::PROCESSORS != 0 {
                log.record_parts(Tag::Debug, &[b"VDP_push(", name, b")"]);
            }
        }
        Ok(filters)
    }

    fn push(&mut self, name: &'static str, filter: Filter) -> Result<(), String> {
        if !self.chain.push(filter) {
            return Err(format!("More than {FILTERS_MAX} filters"));
        }
        self.names.push(name);
        Ok(())
    }

    fn set_up_range(&mut self, task: &mut Task, log: &mut LogBuffer, length: &mut Option<u64>) -> Result<(), String> {
        if task.response.status() != 200 {
            return Ok(());
        }
        let Some(wanted) = task.request.get("Range") else { return Ok(()) };
        let mut value = Vec::new();
        let dates = DateForms::of_features(task.settings.feature);
        let status = match range::resolve(wanted, task.request.get("If-Range"), &task.response, *length, dates) {
            RangeResult::Whole => return Ok(()),
            RangeResult::Part { first, last } => {
                range::content_range(first, last, *length, &mut value);
                *length = Some((last - first).saturating_add(1));
                self.push("range", Filter::range(RangeCut::new(first, last)))?;
                206
            }
            RangeResult::Unsatisfiable(why) => {
                log.record_parts(Tag::Debug, &[b"RANGE_FAIL ", why.as_bytes()]);
                range::content_range_unsatisfied(*length, &mut value);
                *length = Some(0);
                self.push("range", Filter::range(RangeCut::new(1, 0)))?;
                416
            }
        };
        logged::append(log, RESP, &mut task.response, "Content-Range", &[&value]);
        let phrase = reason::phrase(status).as_bytes();
        logged::set_status_line(log, RESP, &mut task.response, b"HTTP/1.1", status, phrase);
        Ok(())
    }

    /// Whether bytes pass unchanged.
    pub(crate) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Bytes of memory that they take at most.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chain.memory_bytes()
    }

    /// Whether nothing of what follows will pass.
    pub(crate) fn has_ended(&self) -> bool {
        self.chain.has_ended()
    }

    /// Bytes of a range that did not come.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.chain.missing_bytes()
    }

    /// One step on what is left of the stored body, or, with `None`, behind its end. What comes out has to be sent before
    /// the next one.
    ///
    /// # Errors
    /// When the stored body is not what it was taken for, or ended too early.
    pub(crate) fn step<'a>(&'a mut self, input: Option<&'a [u8]>) -> Result<Step<'a>, GzipError> {
        self.chain.step(input)
    }

    /// Writes what each filter has done, whether or not the body got out whole: `VdpAcct`, and of a gunzip `Gzip`.
    pub(crate) fn log_totals(&self, log: &mut LogBuffer) {
        for (index, name) in self.names.iter().enumerate() {
            let (passed, totals) = self.chain.passed(index);
            // A range that lets nothing pass has cut nothing.
            if passed.pieces_in > 0 || totals.is_some() {
                log.record_fmt(Tag::VdpAcct, format_args!("{name} {} {}", passed.pieces_in, passed.bytes_in));
            }
            if let Some(totals) = totals {
                log.record_fmt(
                    Tag::Gzip,
                    format_args!(
                        "U D - {} {} {} {} {}",
                        totals.input_bytes, totals.output_bytes, totals.start_bit, totals.last_bit, totals.stop_bit
                    ),
                );
            }
        }
    }

    /// Whether there is a gunzip among them, for the counter.
    pub(crate) fn has_gunzip(&self) -> bool {
        self.names.contains(&"gunzip")
    }
}

/// The record of a body that was not what it was taken for. Compat: what follows the end of gzip is told in a Gzip record, with
/// Varnish 7.1's words.
pub(crate) fn log_failure(error: GzipError, log: &mut LogBuffer) {
    match error {
        GzipError::JunkAfterEnd => log.record(Tag::Gzip, b"G(un)zip error: 1 (junk after VGZ_END)"),
        GzipError::Damaged(_) | GzipError::Truncated | GzipError::TestTruncated | GzipError::Compress => {
            log.record(Tag::Error, error.text().as_bytes());
        }
    }
}

/// Length of the inflated body of a complete, small object: its last four bytes say so.
fn plain_length(task: &Task) -> Option<u64> {
    let object = task.found.object.as_ref()?;
    if object.is_passing() || object.state() != BodyState::Complete {
        return None;
    }
    let length = object.available_bytes();
    if !(18..=TRAILER_TRUSTED_BYTES_MAX).contains(&length) {
        return None;
    }
    let mut trailer = [0; 4];
    for (index, byte) in trailer.iter_mut().enumerate() {
        *byte = *object.chunk_at(length - 4 + index as u64)?.first()?;
    }
    Some(u64::from(u32::from_le_bytes(trailer)))
}
