//! Layout of tokens and comments in lines.
//!
//! A *piece* is a unit that is written on one line unless something breaks it: a statement with its
//! `;`, a head with its `{`, a `}` with the `else` after it. The layout of a piece depends on its
//! tokens, its comments and the set of its line breaks: those of the author, and additional ones if
//! a condition is too long. Formatting the result again yields the same set, so the layout is
//! stable.

use super::spacing::Neighbours;
use super::trivia::{Comment, Gap, gap};
use crate::source::{Kind, Sign, Sources, Token};

/// Columns per level of indentation.
const INDENT: usize = 4;
/// Column after which a condition is broken.
const WIDTH_MAX: usize = 120;

/// Writes the tokens of one source in the new layout.
pub(super) fn lay_out(sources: &Sources, tokens: &[Token], text: &[u8]) -> Vec<u8> {
    let neighbours = Neighbours { sources, tokens };
    let mut layout =
        Layout { neighbours, text, level: 0, out: Vec::with_capacity(text.len() + text.len() / 4), opened: true };
    let mut next = 0;
    while next < tokens.len() {
        next = layout.piece(next);
    }
    let end = tokens.last().map_or(0, |token| token.end as usize);
    let rest = gap(text, end, text.len());
    layout.comments_between_pieces(&rest);
    while layout.out.last() == Some(&b'\n') {
        layout.out.pop();
    }
    if !layout.out.is_empty() {
        layout.out.push(b'\n');
    }
    layout.out
}

struct Layout<'a> {
    neighbours: Neighbours<'a>,
    text: &'a [u8],
    /// Number of open braces.
    level: usize,
    out: Vec<u8>,
    /// The block has no content yet: an empty line would come first in it.
    opened: bool,
}

/// The text before a token within a piece.
struct Joint {
    /// No space.
    joined: bool,
    /// A line ends here.
    breaks: bool,
    /// Number of open parentheses.
    depth: usize,
    comments: Vec<Comment>,
}

impl Layout<'_> {
    fn token(&self, index: usize) -> Token {
        self.neighbours.tokens[index]
    }

    fn gap_before(&self, index: usize) -> Gap {
        let start = if index == 0 { 0 } else { self.token(index - 1).end as usize };
        gap(self.text, start, self.token(index).start as usize)
    }

    /// Writes the piece that begins at `first`; returns where the next one begins.
    fn piece(&mut self, first: usize) -> usize {
        let before = self.gap_before(first);
        let closes = self.neighbours.is(first, Sign::BraceClose);
        let same_line = self.comments_between_pieces(&before);
        if closes {
            self.level = self.level.saturating_sub(1);
        }
        if same_line {
            self.out.push(b' ');
        } else if !self.out.is_empty() {
            self.end_line(if closes { 1 } else { before.newlines_after });
        }
        let (end, opens) = self.piece_end(first);
        let joints = self.joints(first, end);
        if !same_line {
            self.indent(self.level);
        }
        self.write(first, &joints);
        self.opened = opens;
        self.level += usize::from(opens);
        end
    }

    /// Ends the line, and adds an empty one if the source had several line ends.
    fn end_line(&mut self, newlines: usize) {
        self.out.push(b'\n');
        if newlines > 1 && !self.opened {
            self.out.push(b'\n');
        }
    }

    fn indent(&mut self, level: usize) {
        self.columns(level * INDENT);
    }

    fn columns(&mut self, columns: usize) {
        self.out.resize(self.out.len() + columns, b' ');
    }

    /// Writes the comments before a piece; returns true if the piece continues on the line of the
    /// last one.
    fn comments_between_pieces(&mut self, gap: &Gap) -> bool {
        let mut own_line = self.out.is_empty();
        for (index, comment) in gap.comments.iter().enumerate() {
            if !self.out.is_empty() {
                if comment.newlines_before > 0 {
                    own_line = true;
                    self.end_line(comment.newlines_before);
                    self.indent(self.level);
                } else if index > 0 || !own_line {
                    self.out.push(b' ');
                }
            }
            self.comment(comment, self.level * INDENT);
            if own_line {
                self.opened = false;
            }
        }
        gap.comments.last().is_some_and(|last| own_line && !last.to_line_end && gap.newlines_after == 0)
    }

    /// Writes a comment without trailing white space. If its further lines begin with `*` they are
    /// aligned; other lines stay as they are.
    fn comment(&mut self, comment: &Comment, columns: usize) {
        let text = &self.text[comment.start..comment.end];
        let mut lines = text.split(|&byte| byte == b'\n');
        self.out.extend_from_slice(lines.next().unwrap_or(b"").trim_ascii_end());
        let starred = lines.clone().all(|line| line.trim_ascii_start().starts_with(b"*"));
        for line in lines {
            self.out.push(b'\n');
            if starred {
                self.columns(columns + 1);
                self.out.extend_from_slice(line.trim_ascii());
            } else {
                self.out.extend_from_slice(line.trim_ascii_end());
            }
        }
    }

    /// Index after the last token of a piece, and true if that token opens a block.
    fn piece_end(&self, first: usize) -> (usize, bool) {
        let mut at = first;
        let tokens = self.neighbours.tokens;
        if self.neighbours.is(first, Sign::BraceClose) {
            at += 1;
            if self.neighbours.is(at, Sign::Semicolon) {
                return (at + 1, false);
            }
            if !self.neighbours.is_else(at) {
                return (at, false);
            }
        }
        while let Some(token) = tokens.get(at) {
            match token.kind {
                Kind::Sign(Sign::Semicolon) => return (at + 1, false),
                Kind::Sign(Sign::BraceOpen) => match self.one_line(first, at) {
                    Some(end) => return (end, false),
                    None => return (at + 1, true),
                },
                Kind::Sign(Sign::BraceClose) if at > first => return (at, false),
                _ => at += 1,
            }
        }
        (at, false)
    }

    /// For a list of fields that the author wrote on one line and that fits: the index after its
    /// end.
    fn one_line(&self, first: usize, open: usize) -> Option<usize> {
        if !self.neighbours.is(open + 1, Sign::Dot) {
            return None;
        }
        let tokens = self.neighbours.tokens;
        let mut close = open + 1;
        loop {
            match tokens.get(close)?.kind {
                Kind::Sign(Sign::BraceClose) => break,
                Kind::Sign(Sign::BraceOpen) => return None,
                _ => close += 1,
            }
        }
        let end = close + 1 + usize::from(self.neighbours.is(close + 1, Sign::Semicolon));
        // If it is longer in the source than a line can be, it is not examined.
        let span = &self.text[tokens[first].start as usize..tokens[end - 1].end as usize];
        if span.len() > 4 * WIDTH_MAX || span.contains(&b'\n') {
            return None;
        }
        let joints = self.joints(first, end);
        let columns: usize = (first..end)
            .map(|index| self.width(index) + usize::from(index > first && !joints[index - first].joined))
            .sum();
        let plain = joints[1..].iter().all(|joint| joint.comments.is_empty());
        (plain && self.level * INDENT + columns <= WIDTH_MAX).then_some(end)
    }

    fn width(&self, index: usize) -> usize {
        columns_of(self.neighbours.sources.bytes(self.token(index)))
    }

    fn joints(&self, first: usize, end: usize) -> Vec<Joint> {
        let mut joints = Vec::with_capacity(end - first);
        let mut depth = 0usize;
        let mut moved = false;
        for index in first..end {
            if index == first {
                joints.push(Joint { joined: true, breaks: false, depth: 0, comments: Vec::new() });
            } else {
                let gap = self.gap_before(index);
                let mut breaks = moved && self.neighbours.may_break(index, first, depth);
                moved = false;
                if gap.comments.is_empty() {
                    if gap.newlines_after > 0 {
                        let here = self.neighbours.may_break(index, first, depth);
                        moved = !here && self.neighbours.moves_break(index, first);
                        breaks |= here;
                    }
                } else {
                    let last_to_end = gap.comments.last().is_some_and(|comment| comment.to_line_end);
                    breaks = last_to_end || gap.newlines_after > 0;
                }
                let joined = self.neighbours.joined(index, first, depth);
                joints.push(Joint { joined, breaks, depth, comments: gap.comments });
            }
            match self.token(index).kind {
                Kind::Sign(Sign::ParenOpen) => depth += 1,
                Kind::Sign(Sign::ParenClose) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        while self.break_long_lines(first, &mut joints) {}
        joints
    }

    /// Breaks lines that are too long at their outermost `&&` and `||`; returns false if nothing
    /// had to be done.
    fn break_long_lines(&self, first: usize, joints: &mut [Joint]) -> bool {
        let mut changed = false;
        let mut start = 0;
        while start < joints.len() {
            let mut columns = self.margin(first, start, joints);
            let mut end = start;
            loop {
                columns += self.width(first + end) + usize::from(!joints[end].joined);
                end += 1;
                if end == joints.len() || joints[end].breaks || !joints[end].comments.is_empty() {
                    break;
                }
            }
            if columns > WIDTH_MAX {
                let candidate = |index: &usize| self.neighbours.breaks_when_long(first + index);
                let outermost = (start + 1..end).filter(candidate).map(|index| joints[index].depth).min();
                for index in (start + 1..end).filter(candidate) {
                    if Some(joints[index].depth) == outermost {
                        joints[index].breaks = true;
                        changed = true;
                    }
                }
            }
            start = end;
        }
        changed
    }

    /// The indentation of a token, in the piece that begins at `first`, if a line begins with it.
    fn margin(&self, first: usize, index: usize, joints: &[Joint]) -> usize {
        let base = self.level * INDENT;
        if index == 0 {
            return base;
        }
        let token = first + index;
        let closes = self.neighbours.is(token, Sign::ParenClose);
        let depth = joints[index].depth - usize::from(closes && joints[index].depth > 0);
        if self.neighbours.is(token, Sign::BraceOpen) || self.neighbours.is_else(token) || (closes && depth == 0) {
            return base;
        }
        base + INDENT * depth.max(1)
    }

    fn write(&mut self, first: usize, joints: &[Joint]) {
        for (index, joint) in joints.iter().enumerate() {
            let margin = self.margin(first, index, joints);
            for (number, comment) in joint.comments.iter().enumerate() {
                let after_line = number > 0 && joint.comments[number - 1].to_line_end;
                if comment.newlines_before > 0 || after_line {
                    self.out.push(b'\n');
                    self.columns(margin);
                } else {
                    self.out.push(b' ');
                }
                self.comment(comment, margin);
            }
            if joint.breaks {
                self.out.push(b'\n');
                self.columns(margin);
            } else if !joint.joined {
                self.out.push(b' ');
            }
            let bytes = self.neighbours.sources.bytes(self.token(first + index));
            self.out.extend_from_slice(bytes);
        }
    }
}

/// The width in columns of a text up to the end of its first line.
fn columns_of(bytes: &[u8]) -> usize {
    let line = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    // UTF-8 continuation bytes take no column.
    bytes[..line].iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}
