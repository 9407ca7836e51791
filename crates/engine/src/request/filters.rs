//! What happens to a body between the object and the client: gunzip, and cutting out a range.
//!
//! The list is `resp.filters`, or follows from object and request. Each filter changes the response's headers when it is set
//! up, then the bytes as they pass. Without a filter bytes are never touched: the body is sent from where it is stored.

use super::task::Task;
use crate::logged::{self, RESP};
use body::{Gunzip, GzipError, RangeCut};
use semantics::date::DateForms;
use semantics::range::{self, RangeResult};
use semantics::{encoding, reason};
use shm::log::LogBuffer;
use store::{BodyState, ObjectFlags};
use surface::parameter::debug;
use surface::tag::Tag;

/// A gzipped body up to this length cannot inflate to more than the 32 bits of its trailer can say: deflate's best ratio is
/// below 1,040.
const TRAILER_TRUSTED_BYTES_MAX: u64 = 4 << 20;

/// One filter, set up.
enum Filter {
    Gunzip(Box<Gunzip>),
    Range(RangeCut),
}

/// The filters of a response, in the order in which bytes pass them.
#[derive(Default)]
pub(crate) struct Filters {
    filters: Vec<Filter>,
    /// For each of them: pieces and bytes that went in.
    passed: Vec<(u64, u64)>,
    spare: Vec<u8>,
}

/// Why bytes could not be filtered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterError(GzipError);

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

impl Filters {
    /// Sets up the filters of a list; `length` is that of the body as far as it is known and becomes that of what is sent.
    ///
    /// # Errors
    /// The name of a filter that there is not.
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
                    filters.filters.push(Filter::Gunzip(Box::new(Gunzip::new())));
                }
                b"range" => filters.set_up_range(task, log, length),
                _ => return Err(String::from_utf8_lossy(name).into_owned()),
            }
            if task.settings.debug & debug::PROCESSORS != 0 {
                log.record_parts(Tag::Debug, &[b"VDP_push(", name, b")"]);
            }
        }
        Ok(filters)
    }

    fn set_up_range(&mut self, task: &mut Task, log: &mut LogBuffer, length: &mut Option<u64>) {
        if task.response.status() != 200 {
            return;
        }
        let Some(wanted) = task.request.get("Range") else { return };
        let mut value = Vec::new();
        let dates = DateForms::of_features(task.settings.feature);
        let status = match range::resolve(wanted, task.request.get("If-Range"), &task.response, *length, dates) {
            RangeResult::Whole => return,
            RangeResult::Part { first, last } => {
                range::content_range(first, last, *length, &mut value);
                *length = Some((last - first).saturating_add(1));
                self.filters.push(Filter::Range(RangeCut::new(first, last)));
                206
            }
            RangeResult::Unsatisfiable(why) => {
                log.record_parts(Tag::Debug, &[b"RANGE_FAIL ", why.as_bytes()]);
                range::content_range_unsatisfied(*length, &mut value);
                *length = Some(0);
                self.filters.push(Filter::Range(RangeCut::new(1, 0)));
                416
            }
        };
        logged::append(log, RESP, &mut task.response, "Content-Range", &[&value]);
        let phrase = reason::phrase(status).as_bytes();
        logged::set_status_line(log, RESP, &mut task.response, b"HTTP/1.1", status, phrase);
    }

    /// Whether bytes pass unchanged.
    pub(crate) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether nothing of what follows will pass.
    pub(crate) fn is_done(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter, Filter::Range(cut) if cut.is_done()))
    }

    /// Bytes of a range that did not come.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.filters
            .iter()
            .map(|filter| match filter {
                Filter::Range(cut) => cut.remaining(),
                Filter::Gunzip(_) => 0,
            })
            .sum()
    }

    /// Passes bytes through; what comes out is appended to `out`.
    ///
    /// # Errors
    /// When the stored body is not what it was taken for.
    pub(crate) fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        self.passed.resize(self.filters.len(), (0, 0));
        if let [(pieces, bytes), ..] = self.passed.as_mut_slice() {
            *pieces += 1;
            *bytes += input.len() as u64;
        }
        match self.filters.as_mut_slice() {
            [Filter::Range(cut)] => out.extend_from_slice(cut.cut(input)),
            [Filter::Gunzip(gunzip)] => gunzip.push(input, out).map_err(FilterError)?,
            filters => {
                let mut current = input.to_vec();
                for (index, filter) in filters.iter_mut().enumerate() {
                    if index > 0 && !current.is_empty() {
                        let (pieces, bytes) = &mut self.passed[index];
                        *pieces += 1;
                        *bytes += current.len() as u64;
                    }
                    self.spare.clear();
                    match filter {
                        Filter::Range(cut) => self.spare.extend_from_slice(cut.cut(&current)),
                        Filter::Gunzip(gunzip) => gunzip.push(&current, &mut self.spare).map_err(FilterError)?,
                    }
                    std::mem::swap(&mut current, &mut self.spare);
                }
                out.extend_from_slice(&current);
            }
        }
        Ok(())
    }

    /// The stored body has ended: what comes out yet is appended to `out`.
    ///
    /// # Errors
    /// When it ended too early.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let mut current = Vec::new();
        for filter in &mut self.filters {
            match filter {
                Filter::Gunzip(gunzip) => {
                    gunzip.finish(&mut current).map_err(FilterError)?;
                }
                Filter::Range(cut) => current = cut.cut(&current).to_vec(),
            }
        }
        out.extend_from_slice(&current);
        Ok(())
    }

    /// Writes what each filter has done, whether or not the body got out whole: `VdpAcct`, and of a gunzip `Gzip`.
    pub(crate) fn log_totals(&self, log: &mut LogBuffer) {
        for (index, filter) in self.filters.iter().enumerate() {
            let (pieces, bytes) = self.passed.get(index).copied().unwrap_or_default();
            match filter {
                Filter::Gunzip(gunzip) => {
                    log.record_fmt(Tag::VdpAcct, format_args!("gunzip {pieces} {bytes}"));
                    let totals = gunzip.totals();
                    log.record_fmt(
                        Tag::Gzip,
                        format_args!(
                            "U D - {} {} {} {} {}",
                            totals.input_bytes, totals.output_bytes, totals.start_bit, totals.last_bit, totals.stop_bit
                        ),
                    );
                }
                // One that lets nothing pass has cut nothing.
                Filter::Range(_) if pieces == 0 => {}
                Filter::Range(_) => log.record_fmt(Tag::VdpAcct, format_args!("range {pieces} {bytes}")),
            }
        }
    }

    /// Whether there is a gunzip among them, for the counter.
    pub(crate) fn has_gunzip(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter, Filter::Gunzip(_)))
    }
}

impl FilterError {
    /// The payload of its `Error` record.
    pub(crate) fn text(self) -> &'static str {
        self.0.text()
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
