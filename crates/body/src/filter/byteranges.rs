//! Several parts of a body in one response (`multipart/byteranges`), each with a head of its own.
//!
//! Part of the filter `range`. The parts are in the order of the body, so one walk over it is
//! enough, and the memory does not depend on their number beyond their positions. Source: RFC 9110
//! §14.6, §15.3.7.2.

use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use semantics::range::content_range;
use semantics::ranges::Span;
use std::collections::VecDeque;
use std::io::Write;

/// Passes several parts of a body, with boundaries and heads between them.
#[derive(Debug)]
pub struct ByteRanges {
    /// The parts that have not passed completely, in the order of the body.
    spans: VecDeque<Span>,
    /// Common data of the heads.
    form: Form,
    /// The position in the representation of the next input byte.
    position: u64,
    /// Text that comes before further bytes, and the number of its bytes that were output.
    text: Vec<u8>,
    written: usize,
    /// Bytes that have not been output yet.
    left: u64,
}

/// Common data of the heads of the parts.
#[derive(Debug)]
struct Form {
    boundary: String,
    content_type: Option<Vec<u8>>,
    total: Option<u64>,
}

impl ByteRanges {
    /// For a body that begins at byte `base` of a representation of `total` bytes, if that is
    /// known. The parts are in order and don't overlap. `content_type` is that of the
    /// representation.
    #[must_use]
    pub fn new(
        spans: Vec<Span>,
        base: u64,
        total: Option<u64>,
        boundary: u64,
        content_type: Option<&[u8]>,
    ) -> ByteRanges {
        let content_type = content_type.map(<[u8]>::to_vec);
        let form = Form { boundary: format!("{boundary:016x}"), content_type, total };
        let (mut left, mut text) = (0u64, Vec::new());
        for (index, span) in spans.iter().enumerate() {
            text.clear();
            form.head(*span, index == 0, &mut text);
            left = left.saturating_add(text.len() as u64).saturating_add(span.bytes());
        }
        text.clear();
        form.end(&mut text);
        left = left.saturating_add(text.len() as u64);
        text.clear();
        match spans.first() {
            Some(first) => form.head(*first, true, &mut text),
            None => form.end(&mut text),
        }
        ByteRanges { spans: spans.into(), form, position: base, text, written: 0, left }
    }

    /// The value of Content-Type of the response.
    #[must_use]
    pub fn content_type(&self) -> Vec<u8> {
        format!("multipart/byteranges; boundary={}", self.form.boundary).into_bytes()
    }

    /// The part of the input that passes, and the number of input bytes used up by it.
    fn part(&mut self, span: Span, input_bytes: usize) -> (usize, usize) {
        let within = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(input_bytes);
        let from = within(span.first.saturating_sub(self.position));
        let to = within(span.last.saturating_sub(self.position).saturating_add(1));
        self.position += to as u64;
        if self.position > span.last {
            self.spans.pop_front();
            self.text.clear();
            self.written = 0;
            match self.spans.front() {
                Some(next) => self.form.head(*next, false, &mut self.text),
                None => self.form.end(&mut self.text),
            }
        }
        (from, to)
    }
}

impl Form {
    fn head(&self, span: Span, is_first: bool, out: &mut Vec<u8>) {
        if !is_first {
            out.extend_from_slice(b"\r\n");
        }
        // Writing to a Vec cannot fail.
        let _ = write!(out, "--{}\r\n", self.boundary);
        if let Some(value) = &self.content_type {
            out.extend_from_slice(b"Content-Type: ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"Content-Range: ");
        content_range(span.first, span.last, self.total, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    fn end(&self, out: &mut Vec<u8>) {
        let _ = write!(out, "\r\n--{}--\r\n", self.boundary);
    }
}

impl Machine for ByteRanges {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        if self.written < self.text.len() {
            let count = out.copy_from(&self.text[self.written..]);
            self.written += count;
            self.left -= count as u64;
            let has_ended = self.spans.is_empty() && self.written == self.text.len();
            return Ok(Progress { is_pending: !has_ended, has_ended, ..Progress::default() });
        }
        let (Some(input), Some(&span)) = (input, self.spans.front()) else {
            return Ok(Progress { has_ended: true, ..Progress::default() });
        };
        let (from, to) = self.part(span, input.len());
        self.left -= (to - from) as u64;
        let is_pending = self.written < self.text.len();
        Ok(Progress { taken: to, is_pending, has_ended: false, passed: Some((from, to)) })
    }

    fn output_bytes(&self) -> Option<u64> {
        Some(self.left)
    }

    fn state_bytes(&self) -> usize {
        size_of::<ByteRanges>() + self.spans.capacity() * size_of::<Span>() + 2 * self.text.capacity()
    }

    fn missing_bytes(&self) -> u64 {
        self.left
    }

    fn unwanted_bytes(&self) -> u64 {
        self.spans.front().map_or(0, |span| span.first.saturating_sub(self.position))
    }

    fn skip(&mut self, bytes: u64) {
        self.position = self.position.saturating_add(bytes);
    }
}
