//! Rules for spaces between neighbouring tokens, and for the continuation of a statement on the
//! next line.

use crate::source::{Kind, Sign, Sources, Token};

/// Words before a `(` that does not begin arguments.
const BEFORE_PARENTHESIS: &[&[u8]] = &[b"if", b"elseif", b"elsif", b"elif", b"else", b"return"];
/// Words that continue an `if` after its `}`.
const AFTER_BRACE: &[&[u8]] = &[b"else", b"elseif", b"elsif", b"elif"];
/// Units that follow a number.
const UNITS: &[&[u8]] = &[b"ms", b"s", b"m", b"h", b"d", b"w", b"y", b"B", b"KB", b"MB", b"GB", b"TB"];

/// The tokens of a text, with predicates on neighbours.
pub(super) struct Neighbours<'a> {
    pub(super) sources: &'a Sources,
    pub(super) tokens: &'a [Token],
}

impl Neighbours<'_> {
    fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    pub(super) fn is(&self, index: usize, sign: Sign) -> bool {
        self.kind(index) == Some(Kind::Sign(sign))
    }

    fn is_word(&self, index: usize, words: &[&[u8]]) -> bool {
        self.kind(index) == Some(Kind::Word)
            && words.iter().any(|word| word.eq_ignore_ascii_case(self.sources.bytes(self.tokens[index])))
    }

    /// True if the token continues an `if` whose `}` precedes it.
    pub(super) fn is_else(&self, index: usize) -> bool {
        index > 0 && self.is(index - 1, Sign::BraceClose) && self.is_word(index, AFTER_BRACE)
    }

    /// True if the piece beginning with this token is an `acl`.
    pub(super) fn is_acl(&self, index: usize) -> bool {
        self.is_word(index, &[b"acl"])
    }

    /// True if a `-` (or the `+` or `-` of a flag) is a prefix of the next token.
    fn is_prefix(&self, index: usize, piece: usize) -> bool {
        let after_operand =
            index > piece && !matches!(self.kind(index - 1), Some(Kind::Sign(sign)) if sign != Sign::ParenClose);
        match self.kind(index) {
            Some(Kind::Sign(Sign::Minus)) if !after_operand => true,
            Some(Kind::Sign(Sign::Minus | Sign::Plus)) => {
                self.kind(index + 1) == Some(Kind::Word)
                    && (self.is_acl(piece) || (self.is_word(piece, &[b"include"]) && index == piece + 1))
            }
            _ => false,
        }
    }

    /// True if there is no space between tokens `index - 1` and `index`. `piece` is the first token
    /// of the statement, `depth` the number of open parentheses between the two.
    pub(super) fn joined(&self, index: usize, piece: usize, depth: usize) -> bool {
        let before = index - 1;
        let (Some(left), Some(right)) = (self.kind(before), self.kind(index)) else { return true };
        match (left, right) {
            (_, Kind::Sign(Sign::Semicolon | Sign::Comma | Sign::ParenClose)) | (Kind::Sign(Sign::ParenOpen), _) => {
                true
            }
            // `.host`: the start of a field in a list of fields.
            (Kind::Sign(Sign::BraceOpen | Sign::BraceClose | Sign::Semicolon), Kind::Sign(Sign::Dot)) => false,
            // A number followed by a dot would become a different number.
            (Kind::Integer | Kind::Real, Kind::Sign(Sign::Dot)) => false,
            (Kind::Word | Kind::Text | Kind::Blob | Kind::Sign(Sign::ParenClose), Kind::Sign(Sign::Dot)) => true,
            (Kind::Sign(Sign::Dot), Kind::Word | Kind::Text) => true,
            (Kind::Sign(Sign::Not), Kind::Sign(sign)) => matches!(sign, Sign::ParenOpen | Sign::Not | Sign::Minus),
            (Kind::Sign(Sign::Not), _) => true,
            (Kind::Word, Kind::Sign(Sign::ParenOpen)) => {
                let member = before > piece && self.is(before - 1, Sign::Dot);
                member || !self.is_word(before, BEFORE_PARENTHESIS)
            }
            (Kind::Integer | Kind::Real, Kind::Word) => {
                let bytes = self.sources.bytes(self.tokens[index]);
                UNITS.contains(&bytes)
            }
            // `"192.0.2.0"/24`
            (Kind::Text, Kind::Sign(Sign::Slash)) => self.kind(index + 1) == Some(Kind::Integer),
            (Kind::Sign(Sign::Slash), Kind::Integer) => before > piece && self.kind(before - 1) == Some(Kind::Text),
            (Kind::Sign(_), Kind::Sign(sign)) => {
                self.is_prefix(before, piece) && sign == Sign::ParenOpen
                    || depth > 0 && left == Kind::Sign(Sign::Assign) && sign == Sign::ParenOpen
            }
            (Kind::Sign(Sign::Assign), _) | (_, Kind::Sign(Sign::Assign)) => depth > 0,
            (Kind::Sign(Sign::Minus | Sign::Plus), _) => self.is_prefix(before, piece),
            _ => false,
        }
    }

    /// True if the author may break a line before `index`; if that is before an operator the break
    /// moves after it, see [`Neighbours::moves_break`].
    pub(super) fn may_break(&self, index: usize, piece: usize, depth: usize) -> bool {
        let before = index - 1;
        if self.is(index, Sign::BraceOpen) || self.is(index, Sign::Semicolon) || self.is(index, Sign::Comma) {
            return false;
        }
        match self.kind(before) {
            Some(Kind::Sign(Sign::And | Sign::Or | Sign::Comma | Sign::ParenOpen)) => true,
            Some(Kind::Sign(Sign::Plus)) => !self.is_prefix(before, piece),
            Some(Kind::Sign(Sign::Assign | Sign::PlusAssign)) => depth == 0,
            _ if self.is(index, Sign::ParenClose) => true,
            // Consecutive strings, concatenated as before VCL 4.
            Some(Kind::Text) => matches!(self.kind(index), Some(Kind::Text | Kind::Word)),
            Some(Kind::Word | Kind::Integer | Kind::Sign(Sign::ParenClose)) => {
                before > piece && self.kind(index) == Some(Kind::Text)
            }
            _ => false,
        }
    }

    /// True if a line break before `index` moves after that operator.
    pub(super) fn moves_break(&self, index: usize, piece: usize) -> bool {
        match self.kind(index) {
            Some(Kind::Sign(Sign::And | Sign::Or)) => true,
            Some(Kind::Sign(Sign::Plus)) => !self.is_prefix(index, piece),
            _ => false,
        }
    }

    /// True if a line that is too long is broken before `index`.
    pub(super) fn breaks_when_long(&self, index: usize) -> bool {
        matches!(self.kind(index - 1), Some(Kind::Sign(Sign::And | Sign::Or)))
    }
}
