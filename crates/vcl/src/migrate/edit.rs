//! A row of tokens, the text between them, and changes to both.
//!
//! Changes are kept by token and applied when a range is written, so that the same subroutine can
//! be written several times: once for each method in which it has a different meaning.

use crate::load::Loaded;
use crate::source::{Kind, Sign, Sources, Token};
use crate::tree::At;
use std::collections::HashMap;

/// The tokens, each with the text before it.
pub(super) struct Row<'a> {
    pub(super) sources: &'a Sources,
    pub(super) tokens: &'a [Token],
    /// White space and comments before each token, including those of included files.
    leads: Vec<Vec<u8>>,
    /// For each token, the first token of its line.
    line_starts: Vec<At>,
}

impl<'a> Row<'a> {
    /// Determines the text between the tokens, from `start` to the next [`Kind::End`].
    pub(super) fn new(loaded: &'a Loaded, start: At) -> Row<'a> {
        let (sources, tokens) = (&loaded.sources, loaded.tokens.as_slice());
        let mut reader = Reader { sources, positions: vec![0; sources.files.len()], open: Vec::new() };
        let mut leads = vec![Vec::new(); tokens.len()];
        for (index, token) in tokens.iter().enumerate().skip(start as usize) {
            leads[index] = reader.before(token);
            if token.kind == Kind::End {
                break;
            }
        }
        let mut line_starts = Vec::with_capacity(leads.len());
        let mut first = 0;
        for (index, lead) in leads.iter().enumerate() {
            if lead.contains(&b'\n') {
                first = index as At;
            }
            line_starts.push(first);
        }
        Row { sources, tokens, leads, line_starts }
    }

    pub(super) fn token(&self, index: At) -> Token {
        self.tokens[(index as usize).min(self.tokens.len() - 1)]
    }

    pub(super) fn text(&self, index: At) -> &'a str {
        self.sources.text(self.token(index))
    }

    pub(super) fn is(&self, index: At, sign: Sign) -> bool {
        self.token(index).is(sign)
    }

    pub(super) fn lead(&self, index: At) -> &[u8] {
        self.leads.get(index as usize).map_or(b"", Vec::as_slice)
    }

    /// True if the token is the first of its line.
    pub(super) fn begins_line(&self, index: At) -> bool {
        let lead = self.lead(index);
        lead.contains(&b'\n') || index == 0
    }

    /// The white space at the beginning of a token's line.
    pub(super) fn indentation(&self, index: At) -> String {
        let lead = self.lead(self.line_starts.get(index as usize).copied().unwrap_or(0));
        let line = lead.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let blanks = lead[line..].iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        blanks.map(|&byte| char::from(byte)).collect()
    }

    /// The first `;` from a token on, or the last token.
    pub(super) fn semicolon(&self, from: At) -> At {
        let last = self.tokens.len() as At - 1;
        (from..last)
            .find(|&index| self.is(index, Sign::Semicolon) || self.token(index).kind == Kind::End)
            .unwrap_or(last)
    }

    /// The `}` that closes a `{`.
    pub(super) fn closing(&self, open: At) -> At {
        let mut depth = 0usize;
        for index in open..self.tokens.len() as At {
            match self.token(index).kind {
                Kind::Sign(Sign::BraceOpen) => depth += 1,
                Kind::Sign(Sign::BraceClose) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return index;
                    }
                }
                Kind::End => return index,
                _ => {}
            }
        }
        open
    }

    /// The unchanged tokens, with single spaces instead of the text between them.
    pub(super) fn flat(&self, first: At, last: At) -> String {
        let mut out = String::new();
        for index in first..=last {
            if index > first && !self.lead(index).is_empty() {
                out.push(' ');
            }
            let text = String::from_utf8_lossy(self.sources.bytes(self.token(index)));
            out.extend(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
        }
        out
    }

    /// Writes a range with its changes; the text before its first token is not included.
    pub(super) fn write(&self, first: At, last: At, edits: &Edits, out: &mut Vec<u8>) {
        for index in first..=last {
            let edit = edits.0.get(&index);
            let gone = edit.is_some_and(|edit| edit.gone);
            let lead = self.lead(index);
            let keeps = !edit.is_some_and(|edit| edit.swallowed) && has_comment(lead);
            if index > first && (!gone || keeps) {
                out.extend_from_slice(lead);
            }
            let Some(edit) = edit else {
                out.extend_from_slice(self.sources.bytes(self.token(index)));
                continue;
            };
            out.extend_from_slice(edit.before.as_bytes());
            match &edit.text {
                Some(text) => out.extend_from_slice(text),
                None if gone => {}
                None => out.extend_from_slice(self.sources.bytes(self.token(index))),
            }
            out.extend_from_slice(edit.after.as_bytes());
        }
    }

    /// A range with its changes.
    pub(super) fn written(&self, first: At, last: At, edits: &Edits) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(first, last, edits, &mut out);
        out
    }
}

fn has_comment(lead: &[u8]) -> bool {
    lead.iter().any(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))
}

/// Follows the files that a row of tokens comes from.
struct Reader<'a> {
    sources: &'a Sources,
    /// Number of bytes of each file that have been read.
    positions: Vec<usize>,
    /// The files that are being read, each one included by the previous one.
    open: Vec<u32>,
}

impl Reader<'_> {
    fn before(&mut self, token: &Token) -> Vec<u8> {
        let mut lead = Vec::new();
        while let Some(&innermost) = self.open.last() {
            if innermost == token.source || self.includes(innermost, token.source) {
                break;
            }
            // The file has been read to its end.
            let text = &self.sources.files[innermost as usize].text;
            lead.extend_from_slice(text[self.positions[innermost as usize]..].trim_ascii_end());
            lead.push(b'\n');
            self.positions[innermost as usize] = text.len();
            self.open.pop();
        }
        self.enter(token.source, &mut lead);
        let source = token.source as usize;
        let text = &self.sources.files[source].text;
        // The end mark is positioned before the white space there.
        let start = if token.kind == Kind::End { text.len() } else { token.start as usize };
        lead.extend_from_slice(text.get(self.positions[source]..start).unwrap_or(b""));
        self.positions[source] = if token.kind == Kind::End { text.len() } else { token.end as usize };
        lead
    }

    /// True if a file includes another, directly or indirectly.
    fn includes(&self, outer: u32, inner: u32) -> bool {
        let mut at = inner;
        while let Some(by) = self.sources.files[at as usize].included_by {
            if by.source == outer {
                return true;
            }
            at = by.source;
        }
        false
    }

    /// Opens a file: the text before the statement that includes it comes first.
    fn enter(&mut self, source: u32, lead: &mut Vec<u8>) {
        if self.open.contains(&source) {
            return;
        }
        if let Some(by) = self.sources.files[source as usize].included_by {
            self.enter(by.source, lead);
            let text = &self.sources.files[by.source as usize].text;
            let from = self.positions[by.source as usize].min(by.start as usize);
            let before = &text[from..by.start as usize];
            let keyword = before.windows(7).rposition(|word| word == b"include").unwrap_or(before.len());
            lead.extend_from_slice(&before[..keyword]);
            let rest = &text[by.end as usize..];
            let end = rest.iter().position(|&byte| byte == b';').map_or(rest.len(), |at| at + 1);
            self.positions[by.source as usize] = by.end as usize + end;
            let path = String::from_utf8_lossy(self.sources.bytes(by)).replace(['\n', '\r'], " ");
            lead.extend_from_slice(format!("# migrate: here stood include {path};\n").as_bytes());
        }
        self.open.push(source);
    }
}

/// Changes by token.
#[derive(Default)]
pub(super) struct Edits(HashMap<At, Edit>);

#[derive(Default)]
struct Edit {
    before: String,
    /// Replaces the token.
    text: Option<Vec<u8>>,
    after: String,
    /// The white space before the token is removed too.
    gone: bool,
    /// The comments there are removed too.
    swallowed: bool,
}

impl Edits {
    fn at(&mut self, index: At) -> &mut Edit {
        self.0.entry(index).or_default()
    }

    /// Inserts text before a token, after text inserted there earlier.
    pub(super) fn before(&mut self, index: At, text: &str) {
        self.at(index).before.push_str(text);
    }

    /// Inserts text after a token.
    pub(super) fn after(&mut self, index: At, text: &str) {
        self.at(index).after.push_str(text);
    }

    /// Replaces a range.
    pub(super) fn replace(&mut self, first: At, last: At, text: impl Into<Vec<u8>>) {
        for index in first..=last {
            let edit = self.at(index);
            edit.text = None;
            edit.gone = index > first;
            if index > first {
                edit.before.clear();
            }
            edit.after.clear();
        }
        self.at(first).text = Some(text.into());
    }

    /// Replaces a range with text that already contains the range's comments.
    pub(super) fn rewrite(&mut self, first: At, last: At, text: impl Into<Vec<u8>>) {
        self.replace(first, last, text);
        for index in first + 1..=last {
            self.at(index).swallowed = true;
        }
    }

    /// Removes a range, with the white space before it.
    pub(super) fn remove(&mut self, first: At, last: At) {
        self.replace(first, last, Vec::new());
        self.at(first).gone = true;
    }
}
