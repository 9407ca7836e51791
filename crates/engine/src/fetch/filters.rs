//! The filters that a body goes through: a response's on its way into the store, the first named one next to the origin, and a
//! request's on its way to the origin, the first named one next to the client.
//!
//! Opening a filter changes the headers that describe the body; one that has nothing to do for this response (gunzip of a
//! body that is not gzip) leaves no trace. Compat: names, header changes and `Gzip` records of Varnish 7.1.1.

use crate::logged::{self, BERESP, MessageTags};
use body::{Chain, Filter, GzipError, Step};
use message::Message;
use shm::counters::MainCounters;
use shm::log::LogBuffer;
use store::ObjectFlags;
use surface::counter::Main;
use surface::limits::FILTERS_MAX;
use surface::tag::Tag;

/// Every name that a list may hold.
const KNOWN: [&[u8]; 5] = [b"gzip", b"gunzip", b"testgunzip", b"esi", b"esi_gzip"];

/// Why a filter refused a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterError(GzipError);

impl FilterError {
    /// The payload of the `FetchError` record.
    pub(crate) fn text(self) -> &'static str {
        self.0.text()
    }

    /// The payload of the `Gzip` record that comes before it; `None` when there is none.
    pub(crate) fn gzip_record(self) -> Option<String> {
        self.0.gzip_record()
    }
}

/// What a filter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Gzip,
    Gunzip,
    TestGunzip,
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b' ').filter(|name| !name.is_empty())
}

/// Whether a list has known filters only, and not too many.
///
/// # Errors
/// The text for the log, with the first name that is not known.
pub(crate) fn check(list: &[u8]) -> Result<(), String> {
    if names(list).count() > FILTERS_MAX {
        return Err(format!("More than {FILTERS_MAX} filters"));
    }
    match names(list).find(|name| !KNOWN.contains(name)) {
        Some(unknown) => Err(format!("Filter '...{}' not found", String::from_utf8_lossy(unknown))),
        None => Ok(()),
    }
}

/// The filters of one body.
#[derive(Default)]
pub(crate) struct Filters {
    chain: Chain,
    kinds: Vec<Kind>,
}

impl Filters {
    /// Opens the filters of a list of names separated by blanks.
    ///
    /// # Errors
    /// The text for the log: a name is not known, or there are too many.
    pub(crate) fn open(
        list: &[u8],
        level: u32,
        log: &mut LogBuffer,
        tags: MessageTags,
        message: &mut Message,
        counters: &MainCounters,
    ) -> Result<Filters, String> {
        check(list)?;
        let mut filters = Filters::default();
        let is_response = tags == BERESP;
        if message.status() == 206 {
            // A part of a gzip stream can be neither tested nor unpacked, and a part of a page not be packed.
            return Ok(filters);
        }
        for name in names(list) {
            let is_gzipped = message.get("Content-Encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"));
            let (kind, filter) = match name {
                b"gzip" if !message.has("Content-Encoding") => {
                    counters.add(Main::NGzip, 1);
                    logged::unset(log, tags, message, "Content-Length");
                    if is_response {
                        weaken_etag(log, message);
                    }
                    logged::append(log, tags, message, "Content-Encoding", &[b"gzip"]);
                    if is_response {
                        vary_on_encoding(log, message);
                    }
                    (Kind::Gzip, Filter::gzip(level))
                }
                b"gunzip" if is_gzipped => {
                    counters.add(Main::NGunzip, 1);
                    logged::unset(log, tags, message, "Content-Encoding");
                    logged::unset(log, tags, message, "Content-Length");
                    if is_response {
                        weaken_etag(log, message);
                    }
                    (Kind::Gunzip, Filter::gunzip(None))
                }
                b"testgunzip" if is_gzipped => {
                    counters.add(Main::NTestGunzip, 1);
                    if is_response {
                        vary_on_encoding(log, message);
                    }
                    (Kind::TestGunzip, Filter::test_gunzip())
                }
                b"esi" | b"esi_gzip" => {
                    log.record(Tag::Error, b"ESI is not part of this build: body passed unparsed");
                    continue;
                }
                // Nothing to do for this response.
                _ => continue,
            };
            if !filters.chain.push(filter) {
                return Err(format!("More than {FILTERS_MAX} filters"));
            }
            filters.kinds.push(kind);
        }
        Ok(filters)
    }

    /// Whether bodies pass through untouched and unlooked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether the body may come out longer or shorter than it went in.
    pub(crate) fn change_length(&self) -> bool {
        self.kinds.iter().any(|kind| *kind != Kind::TestGunzip)
    }

    /// What the object is because of them.
    pub(crate) fn object_flags(&self) -> ObjectFlags {
        let mut flags = ObjectFlags::NONE;
        for kind in &self.kinds {
            match kind {
                Kind::Gzip => flags |= ObjectFlags::GZIPPED | ObjectFlags::CHANGED_GZIP,
                Kind::Gunzip => {
                    flags = ObjectFlags(flags.0 & !ObjectFlags::GZIPPED.0) | ObjectFlags::CHANGED_GZIP;
                }
                Kind::TestGunzip => flags |= ObjectFlags::GZIPPED,
            }
        }
        flags
    }

    /// Bytes of memory that they take at most.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chain.memory_bytes()
    }

    /// Whether nothing more will come out.
    pub(crate) fn has_ended(&self) -> bool {
        self.chain.has_ended()
    }

    /// One step on some of the body, or, with `None`, behind its end. What comes out has to be got rid of before the next one.
    ///
    /// # Errors
    /// When a filter refuses what it gets, or misses something.
    pub(crate) fn step<'a>(&'a mut self, input: Option<&'a [u8]>) -> Result<Step<'a>, FilterError> {
        self.chain.step(input).map_err(FilterError)
    }

    /// Writes what each filter has done, the one next to the store first: `Gzip` and `VfpAcct`.
    pub(crate) fn log_totals(&self, log: &mut LogBuffer) {
        for (index, kind) in self.kinds.iter().enumerate().rev() {
            let (letter, name) = match kind {
                Kind::Gzip => ('G', "gzip"),
                Kind::Gunzip => ('U', "gunzip"),
                Kind::TestGunzip => ('u', "testgunzip"),
            };
            let (passed, totals) = self.chain.passed(index);
            let totals = totals.unwrap_or_default();
            log.record_fmt(
                Tag::Gzip,
                format_args!(
                    "{letter} F - {} {} {} {} {}",
                    totals.input_bytes, totals.output_bytes, totals.start_bit, totals.last_bit, totals.stop_bit
                ),
            );
            log.record_fmt(Tag::VfpAcct, format_args!("{name} {} {}", passed.pieces_in, passed.bytes_out));
        }
    }
}

/// Makes a strong ETag weak, with records.
pub(crate) fn weaken_etag(log: &mut LogBuffer, beresp: &mut Message) {
    let Some(tag) = beresp.get("ETag") else { return };
    if tag.starts_with(b"W/") {
        return;
    }
    let weak = [b"W/", tag].concat();
    logged::set(log, BERESP, beresp, "ETag", &weak);
}

/// Has the object vary on Accept-Encoding: what is stored as gzip suits only some clients.
fn vary_on_encoding(log: &mut LogBuffer, beresp: &mut Message) {
    match beresp.get("Vary") {
        None => logged::append(log, BERESP, beresp, "Vary", &[b"Accept-Encoding"]),
        Some(value) => {
            let is_there = semantics::list::members(value)
                .any(|name| name.eq_ignore_ascii_case(b"Accept-Encoding") || name == b"*");
            if !is_there {
                let longer = [value, b", Accept-Encoding"].concat();
                logged::set(log, BERESP, beresp, "Vary", &longer);
            }
        }
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
        let filters = Filters::open(list.as_bytes(), 6, &mut log, BERESP, &mut beresp, &MainCounters::new());
        (filters, beresp)
    }

    #[test]
    fn what_goes_in_comes_out_after_gzip_and_gunzip() {
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
