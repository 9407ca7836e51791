//! Selection of transactions and records by a reader of the log: `-b -c -E` ([`Sides`]) and `-i -I
//! -x -X` ([`Selection`]), as in varnishlog, varnishtop and the test language's logexpect.
//!
//! A record that matches an `-I` is shown; otherwise one that matches an `-X` is hidden; otherwise
//! the tags given with `-i` and `-x` decide, in their order. If the first of all these options is
//! an including one, everything else is hidden by default.

use super::query::regex_error;
use super::record::Record;
use super::tags::{TagListError, TagSet};
use super::transaction::{Kind, Reason, Transaction};
use pcre2::bytes::{Regex, RegexBuilder};
use surface::tag::Tag;

/// Sides of the selected transactions. In `vxid` grouping the others are not even collected; in the
/// modes that show whole trees they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides {
    /// Client requests.
    pub client: bool,
    /// Backend requests.
    pub backend: bool,
    /// ESI sub-requests too.
    pub esi: bool,
}

impl Sides {
    /// True when the transaction is on a side that is to be shown.
    #[must_use]
    pub fn shows(self, transaction: &Transaction) -> bool {
        match transaction.kind {
            Kind::Request => self.client && (self.esi || transaction.reason != Reason::Esi),
            Kind::BackendRequest => self.backend,
            Kind::Raw => true,
            Kind::Session | Kind::Unknown => false,
        }
    }

    /// True when a single record is on a side that is to be shown.
    #[must_use]
    pub fn shows_record(self, record: &Record) -> bool {
        self.client && record.id.is_client() || self.backend && record.id.is_backend()
    }
}

#[derive(Clone)]
struct Pattern {
    tags: TagSet,
    regex: Regex,
}

impl Pattern {
    fn matches(&self, record: &Record) -> bool {
        self.tags.contains(record.number) && self.regex.is_match(record.data()).unwrap_or(false)
    }
}

/// `-i`, `-I`, `-x` and `-X`; by default everything is shown.
#[derive(Clone)]
pub struct Selection {
    tags: TagSet,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    restricted: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { tags: TagSet::all(), include: Vec::new(), exclude: Vec::new(), restricted: false }
    }
}

impl Selection {
    /// Adds an option: `i` or `x` with a list of tags, `I` or `X` with `[tags:]regex`; any other
    /// letter changes nothing. With `caseless` a regex ignores case.
    ///
    /// # Errors
    /// A message that begins with the option: no such tag, an ambiguous one, a bad regular
    /// expression.
    pub fn add(&mut self, letter: char, text: &str, caseless: bool) -> Result<(), String> {
        self.try_add(letter, text, caseless).map_err(|reason| format!("-{letter}: {reason}"))
    }

    fn try_add(&mut self, letter: char, text: &str, caseless: bool) -> Result<(), String> {
        if !matches!(letter, 'i' | 'I' | 'x' | 'X') {
            return Ok(());
        }
        if !self.restricted && matches!(letter, 'i' | 'I') {
            self.tags = TagSet::EMPTY;
        }
        self.restricted = true;
        match letter {
            'i' => self.tags.insert(tag_list(text)?),
            'x' => self.tags.remove(tag_list(text)?),
            'I' => self.include.push(pattern(text, caseless)?),
            _ => self.exclude.push(pattern(text, caseless)?),
        }
        Ok(())
    }

    /// Includes tags regardless of `-i` and `-x`; `-X` still counts.
    pub fn include_tags(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.tags.insert(TagSet::only(*tag));
        }
    }

    /// True when any of the options was given.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.restricted
    }

    /// True when the record is to be shown.
    #[must_use]
    pub fn shows(&self, record: &Record) -> bool {
        if self.include.iter().any(|pattern| pattern.matches(record)) {
            return true;
        }
        self.tags.contains(record.number) && !self.exclude.iter().any(|pattern| pattern.matches(record))
    }
}

fn tag_list(list: &str) -> Result<TagSet, String> {
    TagSet::parse_list(list).map_err(|error| match error {
        TagListError::None => format!("\"{list}\" matches zero tags"),
        TagListError::Several => format!("\"{list}\" is ambiguous"),
        TagListError::Syntax => format!("Syntax error in \"{list}\""),
    })
}

fn pattern(text: &str, caseless: bool) -> Result<Pattern, String> {
    let (tags, regex) = match text.split_once(':') {
        Some((list, regex)) => (tag_list(list)?, regex),
        None => (TagSet::all(), text),
    };
    match RegexBuilder::new().caseless(caseless).jit_if_available(true).build(regex) {
        Ok(regex) => Ok(Pattern { tags, regex }),
        Err(error) => Err(regex_error(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(letter: char, text: &str) -> String {
        Selection::default().add(letter, text, false).expect_err("a bad option")
    }

    #[test]
    fn invalid_option_is_reported_with_its_letter() {
        assert_eq!(refused('i', "Nothing"), "-i: \"Nothing\" matches zero tags");
        assert_eq!(refused('x', "Req"), "-x: \"Req\" is ambiguous");
        assert_eq!(refused('X', "Re*q*:a"), "-X: Syntax error in \"Re*q*\"");
        assert!(refused('I', "ReqURL:(").starts_with("-I: Regex error at position "));
    }

    #[test]
    fn the_first_option_decides_whether_the_rest_is_shown() {
        let mut included = Selection::default();
        assert!(!included.is_restricted());
        included.add('i', "ReqURL", false).expect("a tag");
        assert!(included.is_restricted() && !included.tags.contains(Tag::Debug as u8));
        included.include_tags(&[Tag::End]);
        assert!(included.tags.contains(Tag::End as u8));
        let mut excluded = Selection::default();
        excluded.add('x', "ReqURL", false).expect("a tag");
        assert!(excluded.tags.contains(Tag::Debug as u8) && !excluded.tags.contains(Tag::ReqURL as u8));
    }
}
