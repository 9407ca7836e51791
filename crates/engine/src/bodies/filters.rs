//! The filters that a body passes on any side: opened by name, pulled from, and accounted for in
//! the log.
//!
//! The first filter named is the one next to the body's source. Opening a filter changes the
//! headers that describe the body, and logs that; a filter with nothing to do leaves no trace.
//! Without filters the bytes are never touched, and no memory is held. `body::FILTERS` lists the
//! filters; no code here refers to one by name, except to those that parse pages. Compat: records
//! of Varnish 7.1.1.

use super::codings::flag_of;
use crate::logged::{self, BEREQ, BERESP, MessageTags, REQ, RESP};
use crate::request::delivered::Delivered;
use body::esi::Note;
use body::filter::{find, names, refusal_of_part};
use body::{Chain, Coding, FilterError, FilterRow, GzipTotals, Head, Opening, Side, Step};
use message::Message;
use semantics::ranges::RangeRules;
use semantics::reason;
use shm::counters::MainCounters;
use shm::log::LogBuffer;
use store::ObjectFlags;
use surface::limits::{FILTER_STEPS_AT_ONCE_MAX, FILTERS_MAX};
use surface::parameter::{Parameters, debug};
use surface::tag::Tag;

/// Checks that filters with all these names exist for that side, which is one for which VMODs bring
/// no filters.
///
/// # Errors
/// The text for the log, with the first unknown name.
pub(crate) fn check_names(list: &[u8], side: Side) -> Result<(), String> {
    check_known(list, side, &[])
}

fn check_known(list: &[u8], side: Side, vmods: &[String]) -> Result<(), String> {
    names(list).try_for_each(|name| known(name, side, vmods).map(drop))
}

/// The filter of that name, if a VCL that imports these VMODs may use it on that side.
fn known(name: &[u8], side: Side, vmods: &[String]) -> Result<&'static FilterRow, String> {
    let is_there = |row: &&FilterRow| row.vmod.is_none_or(|vmod| vmods.iter().any(|imported| imported == vmod));
    find(name, side).filter(is_there).ok_or_else(|| unknown(name))
}

/// Checks names like [`check_names`], and their number.
///
/// # Errors
/// The text for the log.
pub(crate) fn check(list: &[u8], side: Side) -> Result<(), String> {
    check_all(list, side, &[])
}

fn check_all(list: &[u8], side: Side, vmods: &[String]) -> Result<(), String> {
    if names(list).count() > FILTERS_MAX {
        return Err(too_many());
    }
    check_known(list, side, vmods)
}

fn unknown(name: &[u8]) -> String {
    format!("Filter '...{}' not found", String::from_utf8_lossy(name))
}

fn too_many() -> String {
    format!("More than {FILTERS_MAX} filters")
}

/// Filters that make an annex.
const PARSERS: [&str; 2] = ["esi", "esi_gzip"];

const ALL_CODINGS: ObjectFlags = ObjectFlags::GZIPPED.with(ObjectFlags::BROTLI).with(ObjectFlags::ZSTD);

/// The filters of one body.
#[derive(Default)]
pub(crate) struct Filters(Option<Box<Opened>>);

/// The filters that are in effect.
struct Opened {
    side: Side,
    chain: Chain,
    /// For each filter in the chain: its name, and the coding of its output.
    rows: Vec<(&'static str, Coding)>,
    changes_length: bool,
}

/// The body that filters are opened for, and the messages that describe it.
pub(crate) struct Subject<'a> {
    /// The side that the body is on.
    pub(crate) side: Side,
    /// The message that the body belongs to.
    pub(crate) message: &'a mut Message,
    /// The log for changes to that message.
    pub(crate) log: &'a mut LogBuffer,
    /// The client's request, if the message is the response to it.
    pub(crate) request: Option<&'a Message>,
    /// The target of the request to an origin that the message answers; `/` elsewhere.
    pub(crate) target: &'a [u8],
    /// The object that the body belongs to, if it is cached.
    pub(crate) object: Option<&'a Delivered>,
    /// The length of the body if known; becomes the length after the filters.
    pub(crate) length: Option<u64>,
    /// It is a page, which is put together with its fragments outside of the chain.
    pub(crate) is_page: bool,
    /// Rules for the request's Range.
    pub(crate) ranges: RangeRules,
    /// The VMODs that the VCL imports: some bring filters.
    pub(crate) vmods: &'a [String],
}

impl<'a> Subject<'a> {
    /// The body of a message, `length` bytes long if known. It is not the body of a cached object
    /// and is not a response to a client.
    pub(crate) fn new(
        side: Side,
        message: &'a mut Message,
        log: &'a mut LogBuffer,
        length: Option<u64>,
    ) -> Subject<'a> {
        let ranges = RangeRules::Varnish;
        Subject {
            side,
            message,
            log,
            request: None,
            target: b"/",
            object: None,
            length,
            is_page: false,
            ranges,
            vmods: &[],
        }
    }
}

impl Filters {
    /// Opens the filters of a list of names separated by spaces.
    ///
    /// # Errors
    /// The text for the log: a name is unknown, there are too many, or one cannot be opened for a
    /// part.
    pub(crate) fn open(
        list: &[u8],
        subject: &mut Subject<'_>,
        parameters: &Parameters,
        counters: &MainCounters,
    ) -> Result<Filters, String> {
        let (side, ranges) = (subject.side, subject.ranges);
        let is_delivery = side == Side::Resp;
        if !is_delivery {
            check_all(list, side, subject.vmods)?;
            if subject.message.status() == 206 {
                if let Some((name, why)) = refusal_of_part(list) {
                    subject.log.record(Tag::VCLError, why.as_bytes());
                    return Err(format!("Fetch filter {name} failed to open"));
                }
                // Part of a gzip stream can be neither tested nor decoded, and part of a page must
                // not be compressed.
                return Ok(Filters::default());
            }
        }
        let (mut chain, mut rows, mut counted) = (Chain::default(), Vec::new(), Vec::new());
        let mut changes_length = false;
        for name in names(list) {
            let row = known(name, side, subject.vmods)?;
            let (length, is_filtered) = (subject.length, subject.is_page || !rows.is_empty());
            let mut opening = Opening { side, head: subject, length, is_filtered, parameters, ranges };
            if let Some(opened) = (row.open)(&mut opening) {
                if !chain.push(opened.machine) {
                    return Err(too_many());
                }
                rows.push((row.name, opened.effect.coding));
                counted.extend(opened.effect.counter);
                changes_length |= length.is_none() || opened.effect.length != length;
                subject.length = opened.effect.length;
                // The next filter does not receive the cached bytes.
                subject.object = None;
            }
            if is_delivery && parameters.debug & debug::PROCESSORS != 0 {
                subject.log.record_parts(Tag::Debug, &[b"VDP_push(", name, b")"]);
            }
        }
        for counter in counted {
            counters.add(counter, 1);
        }
        if chain.is_empty() {
            return Ok(Filters::default());
        }
        Ok(Filters(Some(Box::new(Opened { side, chain, rows, changes_length }))))
    }

    /// True if bodies pass unchanged and unexamined.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// True if filtering may change the length of the body.
    pub(crate) fn change_length(&self) -> bool {
        self.0.as_ref().is_some_and(|opened| opened.changes_length)
    }

    /// True if a page is parsed, so that the object may get an annex.
    pub(crate) fn parse_pages(&self) -> bool {
        self.0.as_ref().is_some_and(|opened| opened.rows.iter().any(|(name, _)| PARSERS.contains(name)))
    }

    /// The annex to store with the body, once the filters have ended.
    pub(crate) fn annex(&mut self) -> Option<Vec<u8>> {
        self.0.as_mut()?.chain.annex()
    }

    /// The next note of a filter about the body.
    pub(crate) fn note(&mut self) -> Option<Note> {
        self.0.as_mut()?.chain.note()
    }

    /// True if a body loses its coding.
    pub(crate) fn unpack(&self) -> bool {
        self.codings().any(|coding| coding == Coding::Unpacked)
    }

    /// The object flags that follow from the filters.
    pub(crate) fn object_flags(&self) -> ObjectFlags {
        self.codings().fold(ObjectFlags::NONE, |flags, coding| match coding {
            Coding::Untold => flags,
            Coding::StillGzip => flags | ObjectFlags::GZIPPED,
            Coding::Packed => flags | ObjectFlags::GZIPPED | ObjectFlags::CHANGED_GZIP,
            Coding::Unpacked => ObjectFlags(flags.0 & !ALL_CODINGS.0) | ObjectFlags::CHANGED_GZIP,
            Coding::Coded(encoding) => flags | flag_of(encoding) | ObjectFlags::CHANGED_GZIP,
        })
    }

    fn codings(&self) -> impl Iterator<Item = Coding> {
        self.0.iter().flat_map(|opened| &opened.rows).map(|(_, coding)| *coding)
    }

    /// The most memory that the filters take, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |opened| opened.chain.memory_bytes())
    }

    /// Number of steps that may follow one another before other tasks get their turn.
    pub(crate) fn steps_at_once(&self) -> usize {
        let is_slow = self.0.as_ref().is_some_and(|opened| opened.chain.is_slow());
        if is_slow { 1 } else { FILTER_STEPS_AT_ONCE_MAX }
    }

    /// True if no more output will follow.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_some_and(|opened| opened.chain.has_ended())
    }

    /// Memory that they hold now, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |opened| opened.chain.held_bytes())
    }

    /// Notes that memory is short, or no longer.
    pub(crate) fn spare_memory(&mut self, is_short: bool) {
        if let Some(opened) = &mut self.0 {
            opened.chain.spare_memory(is_short);
        }
    }

    /// Bytes missing from a range.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |opened| opened.chain.missing_bytes())
    }

    /// Number of following bytes of the body that are not needed.
    pub(crate) fn unwanted_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |opened| opened.chain.unwanted_bytes())
    }

    /// Continues as if that many of these bytes had been received.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if let Some(opened) = &mut self.0 {
            opened.chain.skip(bytes);
        }
    }

    /// One step: filters some of the body or, with `None`, the rest after its end. The output must
    /// be used before the next step.
    ///
    /// # Errors
    /// If a filter rejects its input, or some of it is missing.
    pub(crate) fn step<'a>(&'a mut self, input: Option<&'a [u8]>) -> Result<Step<'a>, FilterError> {
        match &mut self.0 {
            Some(opened) => opened.chain.step(input),
            None => Ok(Step::untouched(input)),
        }
    }

    /// True if they hold something back that a flush would output.
    pub(crate) fn hold_back(&self) -> bool {
        self.0.as_ref().is_some_and(|opened| opened.chain.holds_back())
    }

    /// Does one step of a flush, see [`Chain::flush`]; `None` once nothing is held back.
    ///
    /// # Errors
    /// A filter failed.
    pub(crate) fn flush(&mut self) -> Result<Option<&[u8]>, FilterError> {
        match &mut self.0 {
            Some(opened) if opened.chain.holds_back() => opened.chain.flush().map(|step| Some(step.bytes)),
            _ => Ok(None),
        }
    }

    /// Logs what each filter has done, even if the body was cut short. Compat: on the way into the
    /// store the filter next to the store is logged first, on the way to a client also the one next
    /// to the store; `VfpAcct` counts the output, `VdpAcct` the input.
    pub(crate) fn log_totals(&self, log: &mut LogBuffer) {
        let Some(opened) = &self.0 else { return };
        if opened.side == Side::Resp {
            (0..opened.rows.len()).for_each(|index| opened.log_delivery(index, log));
        } else {
            (0..opened.rows.len()).rev().for_each(|index| opened.log_fetch(index, log));
        }
    }
}

impl Opened {
    fn log_delivery(&self, index: usize, log: &mut LogBuffer) {
        let (passed, totals) = self.chain.passed(index);
        // A range filter that passes nothing has cut nothing.
        if passed.pieces_in > 0 || totals.is_some() {
            let name = self.rows[index].0;
            log.record_fmt(Tag::VdpAcct, format_args!("{name} {} {}", passed.pieces_in, passed.bytes_in));
        }
        log_gzip(totals, 'D', log);
    }

    fn log_fetch(&self, index: usize, log: &mut LogBuffer) {
        let (passed, totals) = self.chain.passed(index);
        log_gzip(totals, 'F', log);
        let name = self.rows[index].0;
        log.record_fmt(Tag::VfpAcct, format_args!("{name} {} {}", passed.pieces_in, passed.bytes_out));
    }
}

fn log_gzip(totals: Option<GzipTotals>, way: char, log: &mut LogBuffer) {
    let Some(totals) = totals else { return };
    let GzipTotals { work, is_esi, input_bytes, output_bytes, start_bit, last_bit, stop_bit } = totals;
    let esi = if is_esi { 'E' } else { '-' };
    log.record_fmt(
        Tag::Gzip,
        format_args!("{work} {way} {esi} {input_bytes} {output_bytes} {start_bit} {last_bit} {stop_bit}"),
    );
}

/// The record for a body that turns out during delivery not to be in its declared format.
pub(crate) fn log_delivery_failure(error: FilterError, log: &mut LogBuffer) {
    match error.delivery_detail() {
        Some(detail) => log.record(Tag::Gzip, detail.as_bytes()),
        None => log.record(Tag::Error, error.text().as_bytes()),
    }
}

fn tags(side: Side) -> MessageTags {
    match side {
        Side::Req => REQ,
        Side::Bereq => BEREQ,
        Side::Beresp => BERESP,
        Side::Resp => RESP,
    }
}

impl Head for Subject<'_> {
    fn message(&self) -> &Message {
        self.message
    }

    fn request(&self) -> Option<&Message> {
        self.request
    }

    fn target(&self) -> &[u8] {
        self.target
    }

    fn body_tail(&self) -> Option<[u8; 4]> {
        // Without the flag nothing has checked the body: these bytes may be junk behind the gzip
        // member.
        self.object.filter(|object| object.flags().has(ObjectFlags::GZIPPED))?.tail()
    }

    fn body_start(&self) -> &[u8] {
        self.object.map(Delivered::start).unwrap_or_default()
    }

    fn append(&mut self, name: &str, value: &[u8]) {
        logged::append(self.log, tags(self.side), self.message, name, &[value]);
    }

    fn set(&mut self, name: &str, value: &[u8]) {
        logged::set(self.log, tags(self.side), self.message, name, value);
    }

    fn unset(&mut self, name: &str) {
        logged::unset(self.log, tags(self.side), self.message, name);
    }

    fn set_status(&mut self, status: u16) {
        let phrase = reason::phrase(status).as_bytes();
        logged::set_status_line(self.log, tags(self.side), self.message, b"HTTP/1.1", status, phrase);
    }

    fn debug(&mut self, text: &str) {
        self.log.record(Tag::Debug, text.as_bytes());
    }

    fn error(&mut self, text: &str) {
        self.log.record(Tag::Error, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::log::LogRing;

    fn opened(list: &str, encoding: Option<&str>) -> (Result<Filters, String>, Message) {
        let mut log = LogBuffer::new(&LogRing::in_memory(1 << 16));
        let mut beresp = Message::new();
        beresp.append(b"Content-Length", b"10");
        beresp.append(b"ETag", b"\"a\"");
        if let Some(encoding) = encoding {
            beresp.append(b"Content-Encoding", encoding.as_bytes());
        }
        let mut subject = Subject::new(Side::Beresp, &mut beresp, &mut log, Some(10));
        let filters = Filters::open(list.as_bytes(), &mut subject, &Parameters::default(), &MainCounters::new());
        (filters, beresp)
    }

    #[test]
    fn gzip_then_gunzip_restores_the_body() {
        let (filters, beresp) = opened("gzip gunzip", None);
        let mut filters = filters.unwrap_or_else(|text| panic!("{text}"));
        assert!(filters.change_length());
        assert!(!beresp.has("Content-Length"));
        let text: Vec<u8> = (0..100_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        let mut out = Vec::new();
        for mut piece in text.chunks(777).map(Some).chain([None]) {
            loop {
                let step = filters.step(piece).unwrap_or_else(|error| panic!("{error:?}"));
                out.extend_from_slice(step.bytes);
                piece = piece.map(|piece| &piece[step.taken..]);
                if step.flow != body::Flow::More {
                    break;
                }
            }
        }
        assert!(filters.has_ended());
        assert!(out == text, "{} bytes came out of {}", out.len(), text.len());
    }

    #[test]
    fn a_filter_without_work_leaves_no_trace() {
        let (filters, beresp) = opened("gunzip testgunzip", None);
        assert!(filters.is_ok_and(|filters| filters.is_empty()));
        assert_eq!(beresp.get("ETag"), Some(&b"\"a\""[..]));
        let (filters, _) = opened("gzip", Some("br"));
        assert!(filters.is_ok_and(|filters| filters.is_empty()));
    }

    #[test]
    fn a_gzipped_object_varies_on_accept_encoding_and_keeps_its_length() {
        let (filters, beresp) = opened(" testgunzip", Some("gzip"));
        let filters = filters.unwrap_or_else(|text| panic!("{text}"));
        assert_eq!(filters.object_flags(), ObjectFlags::GZIPPED);
        assert!(!filters.change_length());
        assert_eq!(beresp.get("Vary"), Some(&b"Accept-Encoding"[..]));
    }

    #[test]
    fn a_list_of_filters_has_an_end() {
        let text = opened(&"gzip gunzip ".repeat(5), None).0.err();
        assert_eq!(text.as_deref(), Some("More than 8 filters"));
    }

    #[test]
    fn an_unknown_filter_is_named() {
        assert_eq!(opened("gzip foo", None).0.err().as_deref(), Some("Filter '...foo' not found"));
    }
}
