//! The records of one transaction, collected in ring format and written as one batch.
//!
//! Collecting costs a bit test for a masked tag, otherwise two or three words and a copy; it does
//! not allocate once the buffer has grown to its usual size (at most `vsl_buffer`). *Invariant:*
//! everything in the buffer belongs to one id; `words[..used]` are whole records.

use std::cell::RefCell;
use std::fmt::{self, Write};

use surface::tag::Tag;

use super::decimal::{INTEGER_BYTES_MAX, SECONDS_BYTES_MAX, TimeOfDay, integer, seconds};
use super::word::{WORD_BYTES, Word};
use super::{LogId, LogRing};
use crate::layout::{FirstWords, PLAIN_HEAD_WORDS};

/// Words of a line whose length is unknown before it is written, with its NUL; and its bytes.
const LINE_WORDS: usize = 36;
const LINE_BYTES: usize = 4 * LINE_WORDS;
/// Longest label of a timestamp that is written in place.
const LABEL_BYTES_MAX: usize = 32;
const _: () = assert!(LABEL_BYTES_MAX + 1 + 3 * (SECONDS_BYTES_MAX + 1) + 4 <= LINE_BYTES);
/// Most numbers of a record that are written in place.
const NUMBERS_MAX: usize = 6;
const _: () = assert!(NUMBERS_MAX * (INTEGER_BYTES_MAX + 1) + 4 <= LINE_BYTES);
/// Two zero times, each with a blank before it.
const NO_TIMES: &[u8] = b" 0.000000 0.000000";
/// First size of a buffer, in words.
const FIRST_WORDS: usize = 1024;
/// Number of buffers that a thread keeps for later transactions, and the most words of each.
const SPARE_BUFFERS: usize = 32;
const SPARE_WORDS_MAX: usize = 4 * FIRST_WORDS;

thread_local! {
    /// Buffers of finished transactions, for later ones: each fetch needs one.
    static SPARE: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer for a first record of `words` words, no longer than `limit`; its content is undefined.
fn spare(words: usize, limit: usize) -> Option<Vec<u32>> {
    // It does not exist any more when the thread ends.
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok()??;
    Some(spare).filter(|spare| (words..=limit).contains(&spare.len()))
}

/// Keeps a buffer that is not needed any more.
fn keep(words: Vec<u32>) {
    if (FIRST_WORDS..=SPARE_WORDS_MAX).contains(&words.len()) {
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_BUFFERS {
                spare.push(words);
            }
        });
    }
}
/// Room for a record that precedes the batch: the longest Link of a request, with its head.
const NOTICE_WORDS: usize = 10;

/// Collects the records of one transaction after another; one per request or backend request under
/// way.
pub struct LogBuffer {
    start: f64,
    ring: LogRing,
    words: Vec<u32>,
    used: usize,
    /// Start of the record appended last.
    last: usize,
    records: u64,
    previous: f64,
    id: LogId,
    /// The words after the first one of each record; see [`crate::layout::Layout::id_words`].
    id_words: [u32; 2],
    first_words: &'static FirstWords,
    head_words: usize,
    /// Digits of the second in which timestamps were made last.
    second: TimeOfDay,
    /// A record of another transaction, which is written together with the first batch of this one.
    notice: [u32; NOTICE_WORDS],
    notice_words: usize,
}

impl LogBuffer {
    /// An empty buffer for `ring`; memory is allocated with the first record.
    #[must_use]
    pub fn new(ring: &LogRing) -> LogBuffer {
        LogBuffer {
            ring: ring.clone(),
            id: LogId::NONE,
            id_words: [0; 2],
            first_words: ring.layout().first_words(),
            head_words: ring.layout().head_words(),
            words: Vec::new(),
            used: 0,
            last: 0,
            records: 0,
            start: 0.0,
            previous: 0.0,
            second: TimeOfDay::default(),
            notice: [0; NOTICE_WORDS],
            notice_words: 0,
        }
    }

    /// Starts another transaction after flushing the last one; timestamps count from `now`.
    pub fn start(&mut self, id: LogId, now: f64) {
        self.flush();
        self.id = id;
        self.id_words = self.ring.layout().id_words(id);
        self.set_start(now);
    }

    /// Writes a short text record of another transaction, such as the Link in a session, at the
    /// latest together with the first batch of this one: one reservation of the ring instead of
    /// two. Call it before the first record.
    pub fn announce(&mut self, tag: Tag, id: LogId, payload: &[u8]) {
        let length = payload.len() + 1;
        let head = self.head_words;
        let words = head + length.div_ceil(4);
        if words > NOTICE_WORDS || length > self.ring.reclen_bytes() || self.notice_words > 0 || self.ring.is_sync() {
            self.flush();
            return self.ring.write(tag, id, payload);
        }
        if self.ring.is_masked(tag) {
            return;
        }
        self.notice[0] = self.first_word(tag, length);
        self.notice[1..3].copy_from_slice(&self.ring.layout().id_words(id));
        self.notice[words - 1] = 0;
        copy(&mut bytes_of(&mut self.notice[head..])[..payload.len()], payload);
        self.notice_words = words;
    }

    /// The transaction being collected.
    #[must_use]
    pub fn id(&self) -> LogId {
        self.id
    }

    /// The ring the records go to.
    #[must_use]
    pub fn ring(&self) -> &LogRing {
        &self.ring
    }

    /// True when records of `tag` are dropped, so that their payload need not be made.
    #[inline]
    #[must_use]
    pub fn is_masked(&self, tag: Tag) -> bool {
        self.ring.is_masked(tag)
    }

    /// Adds a record, cut to `vsl_reclen`.
    #[inline]
    pub fn record(&mut self, tag: Tag, payload: &[u8]) {
        if !self.ring.is_masked(tag) {
            self.record_unmasked(tag, payload);
        }
    }

    /// Like [`LogBuffer::record`], for records of this task that were requested explicitly,
    /// regardless of the mask.
    ///
    /// The usual case has no call and few values to keep: most records of every hit come this way.
    pub fn record_unmasked(&mut self, tag: Tag, payload: &[u8]) {
        let whole_below = if tag.is_binary() { 0 } else { self.ring.whole_below() };
        self.put(tag, payload, whole_below);
    }

    /// Adds a record of the same tag for each payload: all headers of a message.
    #[inline]
    pub fn record_each<'a>(&mut self, tag: Tag, payloads: impl Iterator<Item = &'a [u8]>) {
        if self.ring.is_masked(tag) {
            return;
        }
        let whole_below = if tag.is_binary() { 0 } else { self.ring.whole_below() };
        for payload in payloads {
            self.put(tag, payload, whole_below);
        }
    }

    /// Adds a record; one shorter than `whole_below`, in bytes, need not be looked at further.
    #[inline(always)]
    fn put(&mut self, tag: Tag, payload: &[u8], whole_below: usize) {
        let start = self.used;
        let head = self.head_words;
        let words = head + ((payload.len() + 4) >> 2);
        let first_word = self.first_word(tag, payload.len() + 1);
        let [low, high] = self.id_words;
        if payload.len() < whole_below
            && let Some(record) = self.words.get_mut(start..start.wrapping_add(words))
            && let [first, second, third, ..] = record
        {
            // Without a third head word, the payload overwrites it.
            (*first, *second, *third) = (first_word, low, high);
            let room = &mut record[head..];
            // The last word has the NUL, and perhaps the end of the payload.
            if let Some(last) = room.last_mut() {
                *last = 0;
            }
            copy(&mut bytes_of(room)[..payload.len()], payload);
            self.used = start + words;
            self.records += 1;
            return;
        }
        self.record_cut(tag, payload);
    }

    /// Like [`LogBuffer::record`], for a constant text: it is stored as a whole, regardless of its
    /// length.
    #[inline]
    pub fn record_word(&mut self, tag: Tag, word: &Word) {
        if self.ring.is_masked(tag) {
            return;
        }
        let (start, head) = (self.used, self.head_words);
        let first_word = self.first_word(tag, word.len() + 1);
        let [low, high] = self.id_words;
        if word.len() < self.ring.whole_below()
            && let Some(record) = self.words.get_mut(start..start + head + WORD_BYTES / 4)
            && let [first, second, third, ..] = record
        {
            (*first, *second, *third) = (first_word, low, high);
            bytes_of(&mut record[head..]).copy_from_slice(word.whole());
            self.used = start + head + ((word.len() + 4) >> 2);
            self.records += 1;
            return;
        }
        self.record_cut(tag, word.text());
    }

    /// A record that is cut, that the buffer has no room for, or that is written at once.
    #[cold]
    #[inline(never)]
    fn record_cut(&mut self, tag: Tag, payload: &[u8]) {
        let target = self.append(tag, payload.len());
        let cut = target.len().min(payload.len());
        copy(&mut target[..cut], &payload[..cut]);
        self.appended();
    }

    /// Adds a record whose payload is the concatenation of the parts.
    #[inline]
    pub fn record_parts(&mut self, tag: Tag, parts: &[&[u8]]) {
        if self.ring.is_masked(tag) {
            return;
        }
        let total = parts.iter().map(|part| part.len()).sum();
        let mut target = self.append(tag, total);
        for part in parts {
            let cut = target.len().min(part.len());
            let (now, rest) = target.split_at_mut(cut);
            copy(now, &part[..cut]);
            target = rest;
        }
        self.appended();
    }

    /// Adds a record of whole numbers with blanks between them.
    pub fn record_numbers<const N: usize>(&mut self, tag: Tag, numbers: [u64; N]) {
        const { assert!(N > 0 && N <= NUMBERS_MAX) };
        if self.ring.is_masked(tag) {
            return;
        }
        let Some(line) = self.line() else {
            let texts = numbers.map(|number| number.to_string());
            return self.record(tag, texts.join(" ").as_bytes());
        };
        let mut length = 0;
        for number in numbers {
            length += integer(number, &mut line[length..]);
            line[length] = b' ';
            length += 1;
        }
        self.end_line(tag, length - 1);
    }

    /// Adds a record with a formatted payload; nothing is formatted when the tag is masked.
    pub fn record_fmt(&mut self, tag: Tag, args: fmt::Arguments) {
        if self.ring.is_masked(tag) {
            return;
        }
        if let Some(text) = args.as_str() {
            return self.record(tag, text.as_bytes());
        }
        let mut writer = Cut { rest: self.append(tag, usize::MAX), written: 0 };
        // When the payload is full, formatting stops with an error: this cuts long records.
        let _ = writer.write_fmt(args);
        let written = writer.written;
        self.shorten(tag, written);
        self.appended();
    }

    /// Adds a Timestamp record: `label`, then `now`, the time since the start and since the
    /// previous timestamp.
    pub fn timestamp(&mut self, label: &str, now: f64) {
        let previous = std::mem::replace(&mut self.previous, now);
        if self.ring.is_masked(Tag::Timestamp) {
            return;
        }
        let (since_start, since_previous) = (now - self.start, now - previous);
        let mut second = self.second;
        let Some(line) = self.line().filter(|_| label.len() <= LABEL_BYTES_MAX) else {
            return self
                .record_fmt(Tag::Timestamp, format_args!("{label}: {now:.6} {since_start:.6} {since_previous:.6}"));
        };
        copy(&mut line[..label.len()], label.as_bytes());
        line[label.len()] = b':';
        let mut length = label.len() + 1;
        length += put_time(line, length, |room| second.put(now, room));
        if since_start == 0.0 && since_previous == 0.0 {
            // The first two timestamps of most transactions.
            line[length..length + NO_TIMES.len()].copy_from_slice(NO_TIMES);
            length += NO_TIMES.len();
        } else {
            length += put_time(line, length, |room| seconds(since_start, room));
            length += put_time(line, length, |room| seconds(since_previous, room));
        }
        self.second = second;
        self.end_line(Tag::Timestamp, length);
    }

    /// Sets the time that timestamps count from; the next timestamp is also compared to it.
    pub fn set_start(&mut self, start: f64) {
        self.start = start;
        self.previous = start;
    }

    /// The time of the last timestamp, or of the start.
    #[must_use]
    pub fn previous(&self) -> f64 {
        self.previous
    }

    /// Makes the last part of the next timestamp count from `previous`.
    pub fn continue_at(&mut self, previous: f64) {
        self.previous = previous;
    }

    /// Writes the collected records as one batch.
    pub fn flush(&mut self) {
        self.flush_counting(0);
    }

    /// Ends the transaction: an End record, and a flush.
    pub fn end(&mut self) {
        self.record(Tag::End, b"");
        self.flush();
    }

    /// Frees the memory of an idle buffer.
    pub fn release(&mut self) {
        self.flush();
        self.words = Vec::new();
    }

    /// Writes the announced record, since the transaction waits, and readers should see that it
    /// exists.
    pub fn show(&mut self) {
        if self.notice_words > 0 {
            self.ring.write_words(&self.notice[..self.notice_words]);
            self.notice_words = 0;
        }
    }

    /// Frees the unused room; the collected records stay.
    pub fn shrink(&mut self) {
        self.words.truncate(self.used);
        self.words.shrink_to_fit();
    }

    fn flush_counting(&mut self, flushes: u64) {
        let notice = &self.notice[..self.notice_words];
        if self.used > 0 {
            self.ring.write_batch(notice, &self.words[..self.used], self.records, flushes);
        } else if !notice.is_empty() {
            self.ring.write_words(notice);
        }
        self.used = 0;
        self.records = 0;
        self.notice_words = 0;
    }

    /// Room for the text of the next record, which [`LogBuffer::end_line`] completes. `None` if
    /// `vsl_reclen` might cut the record, or records are written one by one.
    #[inline]
    fn line(&mut self) -> Option<&mut [u8; LINE_BYTES]> {
        if self.ring.whole_below() < LINE_BYTES {
            return None;
        }
        if self.words.len() - self.used < LINE_WORDS + PLAIN_HEAD_WORDS {
            self.make_room(LINE_WORDS + PLAIN_HEAD_WORDS);
        }
        let start = self.used + self.head_words;
        self.words.get_mut(start..start + LINE_WORDS).and_then(|words| bytes_of(words).try_into().ok())
    }

    /// Makes the first `payload` bytes of the line a record; there is room for four more.
    #[inline]
    fn end_line(&mut self, tag: Tag, payload: usize) {
        let (start, head) = (self.used, self.head_words);
        let first_word = self.first_word(tag, payload + 1);
        let Some(record) = self.words.get_mut(start..start + head + LINE_WORDS) else { return };
        // The line is written already, so there is no third word to overwrite.
        record[0] = first_word;
        record[1..head].copy_from_slice(&self.id_words[..head - 1]);
        let line = &mut record[head..];
        // NUL and padding are stored, not masked in: loading the word whose bytes were just stored
        // would stall.
        bytes_of(line)[payload..payload + 4].copy_from_slice(&[0; 4]);
        self.used = start + head + ((payload + 4) >> 2);
        self.records += 1;
    }

    /// Appends the head words, NUL and padding of a record with up to `wanted` payload bytes,
    /// and returns the room for the payload itself (less when the record is cut).
    #[inline]
    fn append(&mut self, tag: Tag, wanted: usize) -> &mut [u8] {
        let text = usize::from(!tag.is_binary());
        let payload = wanted.min(self.ring.reclen_bytes() - text);
        let length = payload + text;
        // Lengths have 16 bits, so this cannot overflow; `div_ceil` would add a check.
        let head = self.head_words;
        let words = head + ((length + 3) >> 2);
        if words > self.words.len() - self.used {
            self.make_room(words);
        }
        let start = self.used;
        let first_word = self.first_word(tag, length);
        let Some((heads, rest)) =
            self.words.get_mut(start..start + words).and_then(|room| room.split_at_mut_checked(head))
        else {
            return &mut [];
        };
        if let Some(last) = rest.last_mut() {
            *last = 0;
        }
        heads[0] = first_word;
        heads[1..].copy_from_slice(&self.id_words[..head - 1]);
        self.last = start;
        self.used = start + words;
        self.records += 1;
        &mut bytes_of(rest)[..payload]
    }

    #[inline(always)]
    fn first_word(&self, tag: Tag, length: usize) -> u32 {
        self.first_words[tag as usize & 127] | length as u32
    }

    #[inline]
    fn appended(&mut self) {
        if self.ring.is_sync() {
            self.flush();
        }
    }

    /// Cuts the record appended last down to `payload` bytes.
    fn shorten(&mut self, tag: Tag, payload: usize) {
        let start = self.last;
        let length = payload + usize::from(!tag.is_binary());
        let end = start + self.head_words + length.div_ceil(4);
        self.words[start] = self.first_word(tag, length);
        // NUL and padding are stored, not masked in: loading the word whose bytes were just stored
        // would stall. The reserved room mostly reaches farther, so that the store has a fixed
        // size.
        let room = &mut bytes_of(&mut self.words[start + self.head_words..self.used])[payload..];
        match room.first_chunk_mut::<4>() {
            Some(padding) => *padding = [0; 4],
            None => room.fill(0),
        }
        self.used = end;
    }

    #[cold]
    fn make_room(&mut self, words: usize) {
        let limit = self.ring.buffer_words().max(words);
        if self.used + words > limit {
            self.flush_counting(1);
        }
        if self.words.is_empty() {
            self.words = spare(words, limit).unwrap_or_default();
        }
        if self.used + words > self.words.len() {
            let size = (self.words.len() * 2).max(FIRST_WORDS).max(self.used + words).min(limit);
            self.words.resize(size, 0);
        }
    }
}

impl Drop for LogBuffer {
    /// If a transaction is abandoned, its collected records are not lost.
    fn drop(&mut self) {
        self.flush();
        keep(std::mem::take(&mut self.words));
    }
}

/// Writes a blank and a time at `at`, if there is room for the longest; returns the number of
/// bytes.
#[inline(always)]
fn put_time(
    target: &mut [u8; LINE_BYTES],
    at: usize,
    put: impl FnOnce(&mut [u8; SECONDS_BYTES_MAX]) -> usize,
) -> usize {
    let Some((blank, rest)) = target[at..].split_first_mut() else { return 0 };
    *blank = b' ';
    rest.first_chunk_mut::<SECONDS_BYTES_MAX>().map_or(0, |room| 1 + put(room))
}

#[inline]
fn bytes_of(words: &mut [u32]) -> &mut [u8] {
    // SAFETY: any four bytes are a valid u32, the slice spans exactly `words`, and its borrow keeps
    // it alone.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * 4) }
}

/// Copies between slices of one length. Most payloads are short, and a call of memcpy would cost as
/// much as copying them here: 15 % of the cost of a hit's records.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    #[inline]
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
        if let (Some(start), Some(first)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *start = *first;
        }
        if let (Some(end), Some(last)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
            *end = *last;
        }
    }
    // In this order a short piece needs few comparisons.
    match from.len() {
        65.. => to.copy_from_slice(from),
        32.. => ends::<32>(to, from),
        16.. => ends::<16>(to, from),
        8.. => ends::<8>(to, from),
        4.. => ends::<4>(to, from),
        2.. => ends::<2>(to, from),
        1 => to[0] = from[0],
        0 => {}
    }
}

struct Cut<'a> {
    rest: &'a mut [u8],
    written: usize,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let cut = text.len().min(self.rest.len() - self.written);
        self.rest[self.written..self.written + cut].copy_from_slice(&text.as_bytes()[..cut]);
        self.written += cut;
        if cut < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
