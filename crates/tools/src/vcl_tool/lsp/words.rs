//! The words of a text: paths such as `req.http.Host`, declared names and their uses, the
//! subroutine around a place. Works on lexemes, so that it also serves a text in the middle of an
//! edit.

use vcl::{Lexeme, LexemeKind, lexemes};

/// A text and its lexemes.
pub(super) struct Words<'a> {
    pub(super) text: &'a [u8],
    pub(super) lexemes: Vec<Lexeme>,
}

/// A name that a text declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Declared {
    /// Index of the keyword.
    pub(super) keyword: usize,
    /// Index of the name.
    pub(super) name: usize,
    /// Index of the last lexeme.
    pub(super) last: usize,
}

/// Keywords before a name that they declare.
const DECLARING: &[&str] = &["acl", "backend", "director", "new", "probe", "sub"];

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a [u8]) -> Words<'a> {
        Words { text, lexemes: lexemes(text) }
    }

    /// The bytes of a lexeme as text; empty if there is none or it is not text.
    pub(super) fn shown(&self, index: usize) -> &'a str {
        let range = self.lexemes.get(index).map(|lexeme| lexeme.start..lexeme.end);
        range.and_then(|range| std::str::from_utf8(&self.text[range]).ok()).unwrap_or("")
    }

    fn is_word(&self, index: usize) -> bool {
        self.lexemes.get(index).is_some_and(|lexeme| lexeme.kind == LexemeKind::Word)
    }

    /// Index of the word that contains a byte or ends before it.
    pub(super) fn at(&self, offset: usize) -> Option<usize> {
        let found = self.lexemes.partition_point(|lexeme| lexeme.end < offset);
        let candidates = [found + 1, found];
        candidates.into_iter().find(|&index| self.is_word(index) && self.lexemes[index].start <= offset)
    }

    /// The path up to and including a word: `req.http.Host` for `Host`.
    pub(super) fn path(&self, index: usize) -> String {
        let mut first = index;
        while first >= 2 && self.shown(first - 1) == "." && self.is_word(first - 2) && self.are_adjacent(first - 2) {
            first -= 2;
        }
        (first..=index).map(|index| self.shown(index)).collect()
    }

    fn are_adjacent(&self, index: usize) -> bool {
        let ends = |index: usize| self.lexemes[index].end == self.lexemes[index + 1].start;
        ends(index) && ends(index + 1)
    }

    /// The declarations, in order.
    pub(super) fn declared(&self) -> Vec<Declared> {
        let mut found = Vec::new();
        for keyword in 0..self.lexemes.len() {
            let is_declaring = self.is_word(keyword)
                && DECLARING.contains(&self.shown(keyword))
                && self.is_word(keyword + 1)
                && matches!(
                    self.shown(keyword + 2),
                    "{" | "="
                        | "none"
                        | "+"
                        | "-"
                        | "round_robin"
                        | "random"
                        | "client"
                        | "hash"
                        | "dns"
                        | "fallback"
                        | "("
                )
                && (keyword == 0 || self.shown(keyword - 1) != ".");
            if is_declaring {
                found.push(Declared { keyword, name: keyword + 1, last: self.end_of(keyword + 2) });
            }
        }
        found
    }

    /// Index of the bracket that closes the first brace from a lexeme on, or of a semicolon before
    /// it.
    fn end_of(&self, from: usize) -> usize {
        let mut depth = 0_usize;
        for index in from..self.lexemes.len() {
            match self.shown(index) {
                "{" => depth += 1,
                "}" if depth <= 1 => return index,
                "}" => depth -= 1,
                ";" if depth == 0 => return index,
                _ => {}
            }
        }
        self.lexemes.len().saturating_sub(1)
    }

    /// The uses of a declared name, its declarations included: not the members, headers and actions
    /// of the same spelling.
    pub(super) fn uses(&self, name: &str) -> Vec<Lexeme> {
        let is_use = |&index: &usize| {
            let before = index.checked_sub(1).map_or("", |before| self.shown(before));
            let is_action = before == "(" && index >= 2 && self.shown(index - 2) == "return";
            self.is_word(index) && self.shown(index) == name && before != "." && !is_action
        };
        (0..self.lexemes.len()).filter(is_use).map(|index| self.lexemes[index]).collect()
    }

    /// Name of the subroutine around a byte.
    pub(super) fn sub_at(&self, offset: usize) -> Option<&'a str> {
        let declared = self.declared();
        let inside = declared.iter().rev().find(|one| {
            let (start, end) = (self.lexemes[one.keyword].start, self.lexemes[one.last].end);
            let is_open = self.shown(one.last) != "}";
            self.shown(one.keyword) == "sub" && start < offset && (offset < end || is_open)
        })?;
        Some(self.shown(inside.name))
    }

    /// The call around a byte: the path of its function, and the number of arguments before.
    pub(super) fn call_at(&self, offset: usize) -> Option<(String, usize)> {
        let mut index = self.lexemes.partition_point(|lexeme| lexeme.end <= offset);
        let (mut depth, mut commas) = (0_usize, 0);
        while index > 0 {
            index -= 1;
            match self.shown(index) {
                ")" => depth += 1,
                "(" if depth > 0 => depth -= 1,
                "(" => {
                    let name = index.checked_sub(1).filter(|&name| self.is_word(name))?;
                    return Some((self.path(name), commas));
                }
                "," if depth == 0 => commas += 1,
                ";" | "{" | "}" => return None,
                _ => {}
            }
        }
        None
    }

    /// Class of an object that the text makes with `new`: `directors.round_robin`.
    pub(super) fn class_of(&self, object: &str) -> Option<String> {
        let made = self
            .declared()
            .into_iter()
            .find(|one| self.shown(one.keyword) == "new" && self.shown(one.name) == object)?;
        let mut last = made.name + 2;
        while self.shown(last + 1) == "." && self.is_word(last + 2) {
            last += 2;
        }
        self.is_word(last).then(|| self.path(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_their_uses_but_not_words_of_the_same_spelling() {
        let text = b"sub pass { }\nsub vcl_recv { call pass; set req.http.pass = 1; return (pass); }";
        let words = Words::of(text);
        assert_eq!(words.uses("pass").len(), 2);
        assert_eq!(words.declared().len(), 2);
        assert_eq!((words.sub_at(30), words.sub_at(12)), (Some("vcl_recv"), None));
    }

    #[test]
    fn an_unfinished_call_has_a_function_and_an_argument() {
        let text = b"sub vcl_recv { set req.url = regsub(std.tolower(req.url), \"a\",";
        let words = Words::of(text);
        assert_eq!(words.call_at(text.len()), Some(("regsub".to_owned(), 2)));
        assert_eq!(words.call_at(50), Some(("std.tolower".to_owned(), 0)));
        assert_eq!(words.sub_at(text.len()), Some("vcl_recv"));
    }

    #[test]
    fn an_object_has_the_class_it_was_made_of() {
        let words = Words::of(b"sub vcl_init { new d = directors.round_robin(); d.add_backend(a); }");
        assert_eq!(words.class_of("d").as_deref(), Some("directors.round_robin"));
    }
}
