//! Detection of the dialect of a text without a version line.
//!
//! Every word that is not common to all generations is a vote for those that have it, according to
//! the tables of the compiler: statements, names of methods, their actions, variables where they
//! are used. The generation with the most votes wins; in a tie the newest, because later compilers
//! accepted most texts of earlier ones.

use super::Dialect;
use crate::source::{Kind, Sign, Sources, Token};
use crate::variable_names::variable_rows;
use surface::vcl::legacy::Language;
use surface::vcl::{Generation, METHODS};

/// Number of tokens that are examined; a text reveals its dialect long before that.
const TOKENS_MAX: usize = 100_000;

/// Number of votes of a word that only one generation uses.
const SET_BACKEND_VOTES: usize = 8;

/// The result.
#[derive(Debug)]
pub(crate) struct Detected {
    pub(crate) generation: Generation,
    /// The strongest evidence, if there is any.
    pub(crate) evidence: Option<Evidence>,
}

/// A word or variable that not all generations have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Its first and last token.
    pub(crate) first: Token,
    pub(crate) last: Token,
    /// Only that generation has it. Otherwise that generation is the last one before 4.0 that has
    /// it, and 4.0 has not.
    pub(crate) is_proof: bool,
    /// The use of it that 4.0 lacks.
    pub(crate) usage: Usage,
}

/// The use of a word: later generations may have the same word with another meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usage {
    /// A name that is evidence by itself, such as that of a method.
    Name,
    /// A statement of its own.
    Statement,
    /// The policy of a director.
    Policy,
    /// In this subroutine.
    In(Token),
    /// A part of a string that is joined without a sign.
    Joined,
}

/// A set of generations, one bit each, in the order of [`Generation::ALL`].
type Set = u8;

const V1: Set = 1;
const V20: Set = 2;
const V21: Set = 4;
const V3: Set = 8;
const V4: Set = 16;
const EVERY: Set = V1 | V20 | V21 | V3 | V4;

/// Detects the dialect of a row of tokens. `None` if it is clearly VCL 4.
pub(crate) fn detect(sources: &Sources, tokens: &[Token]) -> Option<Detected> {
    let mut reader = Reader {
        sources,
        tokens,
        depth: 0,
        declaration: "",
        name: "",
        name_token: None,
        statement: None,
        votes: Vec::new(),
    };
    for index in 0..tokens.len().min(TOKENS_MAX) {
        reader.token(index);
    }
    reader.verdict()
}

struct Reader<'a> {
    sources: &'a Sources,
    tokens: &'a [Token],
    depth: usize,
    /// The word that began the current declaration, and the name after it.
    declaration: &'a str,
    name: &'a str,
    name_token: Option<Token>,
    /// Index of the first word of the current statement.
    statement: Option<usize>,
    votes: Vec<Vote>,
}

/// One or more words that belong together, and the generations that have them.
#[derive(Clone, Copy)]
struct Vote {
    first: usize,
    last: usize,
    set: Set,
    usage: Usage,
}

impl<'a> Reader<'a> {
    fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |&token| self.sources.text(token))
    }

    fn is(&self, index: usize, sign: Sign) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is(sign))
    }

    fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    fn vote(&mut self, index: usize, set: Set, usage: Usage) {
        self.vote_between(index, index, set, usage);
    }

    fn vote_between(&mut self, first: usize, last: usize, set: Set, usage: Usage) {
        if set != 0 && set != EVERY {
            self.votes.push(Vote { first, last, set, usage });
        }
    }

    /// The use of a word that depends on the method; a user's subroutine is read for every method.
    fn in_method(&self) -> Usage {
        match self.name_token {
            Some(token) if self.name.starts_with("vcl_") => Usage::In(token),
            _ => Usage::Name,
        }
    }

    fn token(&mut self, index: usize) {
        match self.tokens[index].kind {
            Kind::Sign(Sign::BraceOpen) => {
                self.depth += 1;
                self.statement = None;
            }
            Kind::Sign(Sign::BraceClose) => {
                self.depth = self.depth.saturating_sub(1);
                self.statement = None;
            }
            Kind::Sign(Sign::Semicolon) => self.statement = None,
            Kind::Text => self.string(index),
            Kind::Sign(Sign::Plus) if self.kind(index + 1) == Some(Kind::Text) && self.declaration == "sub" => {
                self.vote(index, V3 | V4, Usage::Name);
            }
            Kind::Word if self.depth == 0 => self.top_level(index),
            Kind::Word if self.declaration == "sub" => self.in_sub(index),
            Kind::Word => self.in_declaration(index),
            _ => {}
        }
    }

    /// A string after another string, a variable or a function is concatenated with it.
    fn string(&mut self, index: usize) {
        let Some(statement) = self.statement.filter(|&statement| statement + 1 < index) else { return };
        let joins = matches!(self.text(statement), "set" | "synthetic" | "log");
        let behind = matches!(self.kind(index - 1), Some(Kind::Text | Kind::Word | Kind::Sign(Sign::ParenClose)));
        if joins && behind && self.declaration == "sub" {
            self.vote(index, V1 | V20 | V21, Usage::Joined);
        }
    }

    fn top_level(&mut self, index: usize) {
        let word = self.text(index);
        // The policy of a director, or the flags of an acl.
        if self.statement.is_some() {
            if self.declaration == "director" && self.statement == Some(index.wrapping_sub(2)) {
                let set = of_dialects(|dialect| dialect.directors.iter().any(|(known, _)| *known == word));
                self.vote(index, set, Usage::Policy);
            } else if self.declaration == "backend" && word.eq_ignore_ascii_case("none") {
                self.vote(index, V4, Usage::Name);
            }
            return;
        }
        self.statement = Some(index);
        self.declaration = word;
        self.name = self.text(index + 1);
        self.name_token = self.tokens.get(index + 1).copied();
        self.vote(index, of_dialects(|dialect| dialect.declarations.contains(&word)), Usage::Name);
        if word == "sub" {
            let name = self.name;
            self.vote(index + 1, methods_named(name), Usage::Name);
        }
    }

    fn in_declaration(&mut self, index: usize) {
        if !matches!(self.declaration, "backend" | "director") {
            return;
        }
        let word = self.text(index);
        if word == "set" && self.text(index + 1) == "backend" {
            // No other generation wrote backends in this way.
            for _ in 0..SET_BACKEND_VOTES {
                self.vote_between(index, index + 1, V1, Usage::Name);
            }
        } else if self.is(index.wrapping_sub(1), Sign::Dot) && self.is(index + 1, Sign::Assign) {
            let set = match word {
                "saintmode_threshold" => V21 | V3,
                "path" | "proxy_header" | "preamble" => V4,
                _ if self.text(index.wrapping_sub(2)) == "backend" => V1,
                _ => EVERY & !V1,
            };
            self.vote(index, set, Usage::Name);
        }
    }

    fn in_sub(&mut self, index: usize) {
        if self.is(index.wrapping_sub(1), Sign::Dot) {
            return;
        }
        let word = self.text(index);
        let starts = self.statement.is_none();
        if starts {
            self.statement = Some(index);
        } else if self.kind(index - 1) == Some(Kind::Text)
            && (self.is(index + 1, Sign::Dot) || word.starts_with("regsub"))
        {
            // A variable after a string is concatenated with it.
            self.vote(index - 1, V1 | V20 | V21, Usage::Joined);
        }
        if self.is(index + 1, Sign::Dot) {
            return self.variable(index);
        }
        if starts {
            return self.statement_word(index, word);
        }
        let returned = self.text(index.wrapping_sub(2)) == "return" && self.is(index - 1, Sign::ParenOpen);
        if returned {
            let name = self.name;
            self.vote(index, endings(name, word), self.in_method());
        }
    }

    fn statement_word(&mut self, index: usize, word: &'a str) {
        let set = match (word, self.kind(index + 1)) {
            ("else" | "if", _) => EVERY,
            ("elseif" | "elsif" | "elif", _) => of_dialects(|dialect| dialect.else_if.contains(&word)),
            ("return", _) => EVERY & !V1,
            ("unset", _) => EVERY & !V1,
            ("purge", Some(Kind::Sign(Sign::Semicolon))) => V3,
            ("purge", _) => V20 | V21,
            ("synthetic", Some(Kind::Sign(Sign::ParenOpen))) => V4,
            ("synthetic", _) => V20 | V21 | V3,
            ("pass" | "pipe" | "lookup" | "hash" | "fetch" | "deliver" | "discard" | "keep", _) => V1 | V20,
            ("restart", _) => V20 | V21,
            _ => of_dialects(|dialect| dialect.is_statement(word)),
        };
        self.vote(index, set, Usage::Statement);
    }

    /// A variable: some generations have it only in certain methods.
    fn variable(&mut self, index: usize) {
        let mut name = self.text(index).to_ascii_lowercase();
        let mut last = index;
        while self.is(last + 1, Sign::Dot) && self.kind(last + 2) == Some(Kind::Word) && last < index + 4 {
            last += 2;
            name.push('.');
            name.push_str(&self.text(last).to_ascii_lowercase());
        }
        let is_set = matches!(self.text(index.wrapping_sub(1)), "set" | "unset" | "remove");
        let in_method = methods_named(self.name) != 0 || self.name.starts_with("vcl_");
        let set = variables_named(&name, self.name, is_set, in_method);
        self.vote_between(index, last, set, self.in_method());
    }

    fn verdict(self) -> Option<Detected> {
        let mut scores = [0usize; Generation::ALL.len()];
        for vote in &self.votes {
            for (index, score) in scores.iter_mut().enumerate() {
                *score += usize::from(vote.set >> index & 1);
            }
        }
        let old = &scores[..4];
        let most = old.iter().copied().max().unwrap_or(0);
        if scores[4] > most {
            return None;
        }
        let chosen = old.iter().rposition(|&score| score == most)?;
        // The word that the fewest other generations have; in a tie the first one. A word of 4.0 is
        // not evidence for an older generation.
        let known = self.votes.iter().filter(|vote| vote.set >> chosen & 1 == 1 && vote.set & V4 == 0);
        let says_most = |vote: &&Vote| (vote.set.count_ones(), vote.first);
        let evidence = known.min_by_key(says_most).map(|vote| Evidence {
            first: self.tokens[vote.first],
            last: self.tokens[vote.last],
            is_proof: vote.set.count_ones() == 1,
            usage: vote.usage,
        });
        Some(Detected { generation: Generation::ALL[chosen], evidence })
    }
}

/// Generations whose dialect satisfies a predicate.
fn of_dialects(has: impl Fn(&Dialect) -> bool) -> Set {
    let old = Generation::ALL.iter().enumerate().filter(|(_, generation)| has(Dialect::of(**generation)));
    old.fold(0, |set, (index, _)| set | 1 << index)
}

/// The generations that have a method of that name.
fn methods_named(name: &str) -> Set {
    of_languages(|language| match language {
        Some(language) => {
            language.methods.iter().any(|row| row.name == name) || language.ignored_methods.contains(&name)
        }
        None => METHODS.iter().any(|row| row.name == name),
    })
}

/// The generations in which a method can return a word; for a user's subroutine, in which any
/// method can.
fn endings(method: &str, word: &str) -> Set {
    let any = !method.starts_with("vcl_");
    of_languages(|language| match language {
        Some(language) => language
            .methods
            .iter()
            .filter(|row| any || row.name == method)
            .any(|row| row.returns.iter().any(|ending| ending.word == word)),
        None => METHODS
            .iter()
            .filter(|row| any || row.name == method)
            .any(|row| row.actions.iter().chain(row.retired_actions).any(|action| action.name() == word)),
    })
}

/// The generations that have a variable in a method; for a user's subroutine, in any method.
fn variables_named(name: &str, method: &str, is_set: bool, in_method: bool) -> Set {
    let family = name.split_once(".http.").map(|(object, _)| format!("{object}.http.*"));
    let name = family.as_deref().unwrap_or(name);
    of_languages(|language| match language {
        Some(language) => {
            let bit = language.methods.iter().find(|row| row.name == method).map_or(0, |row| row.method.row().bit);
            let rows = super::legacy_rows(language.generation, name);
            rows.iter().any(|row| !in_method || bit & if is_set { row.write } else { row.read } != 0)
        }
        None => {
            let bit = METHODS.iter().find(|row| row.name == method).map_or(0, |row| row.bit);
            let rows = variable_rows(name);
            rows.iter().any(|row| !in_method || bit & if is_set { row.write | row.unset } else { row.read } != 0)
        }
    })
}

fn of_languages(has: impl Fn(Option<&'static Language>) -> bool) -> Set {
    let known = Generation::ALL.iter().enumerate().filter(|(_, generation)| has(Language::of(**generation)));
    known.fold(0, |set, (index, _)| set | 1 << index)
}
