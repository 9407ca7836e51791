//! Emitter of instructions and constants; each constant, pattern and header name is stored once.

use hashbrown::HashMap;
use surface::vcl::HttpObject;
use vcl_run::program::{Comparison, Op, Point};

/// The growing tables of a program.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    pub(super) code: Vec<Op>,
    pub(super) constants: Vec<u8>,
    pub(super) headers: Vec<String>,
    pub(super) regexes: Vec<String>,
    pub(super) points: Vec<Point>,
    /// Positions of the instructions that end methods or set noted variables.
    pub(super) places: Vec<(u32, Point)>,
    known_constants: HashMap<Vec<u8>, (u32, u32)>,
    known_headers: HashMap<String, u32>,
    known_regexes: HashMap<String, u32>,
}

impl Emitter {
    pub(super) fn here(&self) -> u32 {
        self.code.len() as u32
    }

    pub(super) fn op(&mut self, op: Op) {
        self.code.push(op);
    }

    /// Emits a jump whose target is set later by [`Emitter::land`].
    pub(super) fn jump(&mut self, jump: fn(u32) -> Op) -> usize {
        self.code.push(jump(0));
        self.code.len() - 1
    }

    /// Sets the target of jumps to the current position.
    pub(super) fn land(&mut self, jumps: &[usize]) {
        let here = self.here();
        for &at in jumps {
            match &mut self.code[at] {
                Op::Jump(to) | Op::JumpUnless(to) | Op::AndThen(to) | Op::OrElse(to) => *to = here,
                _ => {}
            }
        }
    }

    pub(super) fn constant(&mut self, bytes: &[u8]) -> (u32, u32) {
        if let Some(&known) = self.known_constants.get(bytes) {
            return known;
        }
        let span = (self.constants.len() as u32, bytes.len() as u32);
        self.constants.extend_from_slice(bytes);
        self.known_constants.insert(bytes.to_vec(), span);
        span
    }

    pub(super) fn text(&mut self, bytes: &[u8]) {
        let (start, len) = self.constant(bytes);
        self.op(Op::Text { start, len });
    }

    /// Index of a header name; names that differ only in case share the first spelling.
    pub(super) fn header(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.known_headers.get(name) {
            return known;
        }
        let index = self.headers.len() as u32;
        self.headers.push(name.to_owned());
        self.known_headers.insert(name.to_owned(), index);
        index
    }

    pub(super) fn regex(&mut self, pattern: &str) -> Option<u32> {
        self.known_regexes.get(pattern).copied()
    }

    /// Index of one of the compiler's own patterns, which are known to compile.
    pub(super) fn add_pattern(&mut self, pattern: &str) -> u32 {
        self.regex(pattern).unwrap_or_else(|| self.add_regex(pattern.to_owned()))
    }

    pub(super) fn add_regex(&mut self, pattern: String) -> u32 {
        let index = self.regexes.len() as u32;
        self.regexes.push(pattern.clone());
        self.known_regexes.insert(pattern, index);
        index
    }

    /// Adds the text on the stack to the hash; the pieces of a concatenation separately.
    pub(super) fn hash_data(&mut self) {
        let pieces = self.take_apart();
        self.op(Op::HashData(pieces));
    }

    /// Adds the text on the stack to the body; the pieces of a concatenation separately.
    pub(super) fn synthetic(&mut self) {
        let pieces = self.take_apart();
        self.op(Op::Synthetic(pieces));
    }

    /// Undoes the concatenation if the text on the stack was about to be joined. Returns the number
    /// of pieces.
    fn take_apart(&mut self) -> u16 {
        match self.code.last() {
            Some(&Op::Join(count)) => {
                self.code.pop();
                count
            }
            _ => 1,
        }
    }

    /// Emits a test that is true if the text on the stack is set.
    pub(super) fn test(&mut self) {
        if let Some(Op::ReadHeader(http, name)) = self.code.last().copied() {
            self.code.pop();
            self.op(Op::HasHeader(http, name));
        } else {
            self.op(Op::Test);
        }
    }

    /// Emits a test that is true if the text on the stack matches.
    pub(super) fn matches(&mut self, regex: u32) {
        if let Some(Op::ReadHeader(http, name)) = self.code.last().copied()
            && let Ok(name) = u16::try_from(name)
        {
            self.code.pop();
            self.op(Op::MatchHeader(http, name, regex));
        } else if let Some(Op::Read(var)) = self.code.last().copied() {
            self.code.pop();
            self.op(Op::MatchVariable(var, regex));
        } else {
            self.op(Op::Match(regex));
        }
    }

    /// Compares the two values on the stack.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        if let (Comparison::Equal | Comparison::NotEqual, Some([Op::ReadHeader(http, name), Op::Text { start, len }])) =
            (comparison, self.code.last_chunk().copied())
            && let (Ok(name), Ok(len)) = (u16::try_from(name), u16::try_from(len))
        {
            self.code.truncate(self.code.len() - 2);
            self.op(Op::HeaderIs { http, name, len, start });
            if comparison == Comparison::NotEqual {
                self.op(Op::Not);
            }
        } else {
            self.op(Op::Compare(comparison));
        }
    }

    /// Negates the number on the stack; a constant is changed in place.
    pub(super) fn negate(&mut self) {
        match self.code.last_mut() {
            Some(Op::Int(value)) => *value = -*value,
            Some(Op::Real(value) | Op::Duration(value)) => *value = -*value,
            _ => self.op(Op::Negate),
        }
    }

    /// Converts an INT to a REAL.
    pub(super) fn make_real(&mut self) {
        if let Some(Op::Int(value)) = self.code.last().copied() {
            self.code.pop();
            self.op(Op::Real(value as f64));
        } else {
            self.op(Op::ToReal);
        }
    }

    pub(super) fn read_header(&mut self, http: HttpObject, name: &str) {
        let name = self.header(name);
        self.op(Op::ReadHeader(http, name));
    }
}
