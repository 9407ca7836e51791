//! Which transactions and which records `varnishlog` and `varnishtop` take: `-b -c -E` and `-i -I -x -X`.
//!
//! A record that an `-I` matches is shown; else one that an `-X` matches is not; else the tags given with `-i` and `-x`
//! decide, in their order. When the first of all these options includes something, nothing else is shown unless asked for.

use pcre2::bytes::{Regex, RegexBuilder};
use shm::read::group::{Kind, Reason, Sides, Transaction};
use shm::read::record::Record;
use shm::read::tags::{TagListError, TagSet};

use surface::tag::Tag;

use crate::options::Given;

/// What `-b`, `-c` and `-E` leave to be shown; none of them leaves everything.
///
/// Compat: with both `-b` and `-c` the stock 7.1 program shows headers without records; here both sides are shown.
pub(super) struct Shown(pub Option<Sides>);

impl Shown {
    /// True when the transaction is on a side that is to be shown.
    pub fn shows(&self, transaction: &Transaction) -> bool {
        let Some(sides) = self.0 else { return true };
        match transaction.kind {
            Kind::Request => sides.client && (sides.esi || transaction.reason != Reason::Esi),
            Kind::BackendRequest => sides.backend,
            Kind::Raw => true,
            Kind::Session | Kind::Unknown => false,
        }
    }

    /// True when a record of a shown transaction is to be shown: a raw one has a side of its own.
    pub fn shows_record(&self, transaction: &Transaction, record: &Record) -> bool {
        match self.0 {
            Some(sides) if transaction.kind == Kind::Raw => {
                sides.client && record.id.is_client() || sides.backend && record.id.is_backend()
            }
            _ => true,
        }
    }
}

struct Pattern {
    tags: TagSet,
    regex: Regex,
}

impl Pattern {
    fn matches(&self, record: &Record) -> bool {
        self.tags.contains(record.number) && self.regex.is_match(record.data()).unwrap_or(false)
    }
}

/// `-i`, `-I`, `-x` and `-X`.
pub(crate) struct Selection {
    tags: TagSet,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    restricted: bool,
}

impl Selection {
    /// Reads the options; the error is a message.
    pub fn from_options(given: &Given) -> Result<Selection, String> {
        let mut selection =
            Selection { tags: TagSet::all(), include: Vec::new(), exclude: Vec::new(), restricted: false };
        let mut caseless = false;
        for (letter, argument) in &given.options {
            let text = argument.to_string_lossy();
            if *letter == 'C' {
                caseless = true;
            }
            if !matches!(letter, 'i' | 'I' | 'x' | 'X') {
                continue;
            }
            if !selection.restricted && matches!(letter, 'i' | 'I') {
                selection.tags = TagSet::EMPTY;
            }
            selection.restricted = true;
            match letter {
                'i' => selection.tags.insert(tag_list(*letter, &text)?),
                'x' => selection.tags.remove(tag_list(*letter, &text)?),
                'I' => selection.include.push(pattern(*letter, &text, caseless)?),
                _ => selection.exclude.push(pattern(*letter, &text, caseless)?),
            }
        }
        Ok(selection)
    }

    /// Includes tags whatever `-i` and `-x` say; `-X` still counts.
    pub fn include_tags(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.tags.insert(TagSet::only(*tag));
        }
    }

    /// True when any of the options was given.
    pub fn is_restricted(&self) -> bool {
        self.restricted
    }

    /// True when the record is to be shown.
    pub fn shows(&self, record: &Record) -> bool {
        if self.include.iter().any(|pattern| pattern.matches(record)) {
            return true;
        }
        self.tags.contains(record.number) && !self.exclude.iter().any(|pattern| pattern.matches(record))
    }
}

fn tag_list(letter: char, list: &str) -> Result<TagSet, String> {
    TagSet::parse_list(list).map_err(|error| match error {
        TagListError::None => format!("-{letter}: \"{list}\" matches zero tags"),
        TagListError::Several => format!("-{letter}: \"{list}\" is ambiguous"),
        TagListError::Syntax => format!("-{letter}: Syntax error in \"{list}\""),
    })
}

fn pattern(letter: char, text: &str, caseless: bool) -> Result<Pattern, String> {
    let (tags, regex) = match text.split_once(':') {
        Some((list, regex)) => (tag_list(letter, list)?, regex),
        None => (TagSet::all(), text),
    };
    match RegexBuilder::new().caseless(caseless).jit_if_available(true).build(regex) {
        Ok(regex) => Ok(Pattern { tags, regex }),
        Err(error) => Err(format!("-{letter}: {}", shm::read::query::regex_error(&error))),
    }
}
