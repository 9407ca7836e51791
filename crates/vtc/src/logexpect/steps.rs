//! One step of an expectation, and the records that match it.

use pcre2::bytes::Regex;
use shm::read::record::Record;
use surface::tag::TAGS;

use crate::journal::Journal;
use crate::matching;
use crate::specification::Arguments;
use crate::test::Outcome;

/// The condition on a number: a vxid or a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted<T> {
    Any,
    /// The same as in the previous record.
    Last,
    Exactly(T),
}

/// Records that may be skipped before the one that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// Any number.
    Any,
    /// None, but neighbours with the same mark may match first.
    Alternative,
    AtMost(u64),
}

/// Effect of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Expect(Skip),
    FailAdd,
    FailClear,
    Abort,
}

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub action: Action,
    pub pattern: Pattern,
    /// Text of the step, for the log.
    pub source: String,
}

/// The condition on records.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub vxid: Wanted<u64>,
    pub tag: Wanted<u8>,
    pub regex: Option<Regex>,
}

impl Step {
    /// Parses a step; `None` if the command is not one.
    pub fn parse(journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<Option<Step>> {
        let source = journal.place().source.trim().to_owned();
        let action = match name {
            "expect" => Action::Expect(skip(journal, &arguments.text("how many to skip")?)?),
            "fail" => match arguments.text("add or clear")?.as_str() {
                "add" => Action::FailAdd,
                "clear" => {
                    arguments.end()?;
                    let pattern = Pattern { vxid: Wanted::Any, tag: Wanted::Any, regex: None };
                    return Ok(Some(Step { action: Action::FailClear, pattern, source }));
                }
                other => return Err(journal.fail(format!("Unknown fail argument '{other}'"))),
            },
            "abort" => {
                while arguments.next().is_some() {}
                let pattern = Pattern { vxid: Wanted::Any, tag: Wanted::Any, regex: None };
                return Ok(Some(Step { action: Action::Abort, pattern, source }));
            }
            _ => return Ok(None),
        };
        let pattern = Pattern::parse(journal, arguments)?;
        arguments.end()?;
        Ok(Some(Step { action, pattern, source }))
    }
}

fn skip(journal: &Journal, text: &str) -> Outcome<Skip> {
    match text {
        "*" => Ok(Skip::Any),
        "?" => Ok(Skip::Alternative),
        _ => text.parse().map(Skip::AtMost).map_err(|_| journal.fail(format!("Not a positive integer: '{text}'"))),
    }
}

impl Pattern {
    fn parse(journal: &Journal, arguments: &mut Arguments) -> Outcome<Pattern> {
        let vxid = match arguments.text("the vxid")?.as_str() {
            "*" => Wanted::Any,
            "=" => Wanted::Last,
            text => {
                let number = text.parse::<u64>();
                Wanted::Exactly(number.map_err(|_| journal.fail(format!("Not a positive integer: '{text}'")))?)
            }
        };
        let tag = match arguments.text("the tag")?.as_str() {
            "*" => Wanted::Any,
            "=" => Wanted::Last,
            name => match tag_number(name) {
                Some(number) => Wanted::Exactly(number),
                None => return Err(journal.fail(format!("Unknown tag name: '{name}'"))),
            },
        };
        let regex = match arguments.next() {
            Some(word) => Some(matching::regex(journal, &word.bytes)?),
            None => None,
        };
        Ok(Pattern { vxid, tag, regex })
    }

    /// True if the record has the required vxid; false if none is required.
    pub fn is_of(&self, record: &Record, last: Option<(u64, u8)>) -> bool {
        match self.vxid {
            Wanted::Any => false,
            Wanted::Last => last.is_some_and(|(vxid, _)| vxid == record.id.vxid()),
            Wanted::Exactly(vxid) => vxid == record.id.vxid(),
        }
    }

    /// True if a record matches; `last` is the vxid and tag of the last record that was expected.
    pub fn matches(&self, record: &Record, last: Option<(u64, u8)>) -> bool {
        let vxid_fits = self.vxid == Wanted::Any || self.is_of(record, last);
        let tag_fits = match self.tag {
            Wanted::Any => true,
            Wanted::Last => last.is_some_and(|(_, tag)| tag == record.number),
            Wanted::Exactly(tag) => tag == record.number,
        };
        // Compat: a regex is considered only if the step names a tag.
        let text_fits = match (&self.regex, self.tag) {
            (Some(regex), Wanted::Exactly(tag)) if tag == record.number => matching::occurs(regex, record.data()),
            _ => true,
        };
        vxid_fits && tag_fits && text_fits
    }
}

/// A tag by name: ignoring case, and abbreviated as long as it is unambiguous.
fn tag_number(name: &str) -> Option<u8> {
    let same = TAGS.iter().find(|row| row.name.eq_ignore_ascii_case(name));
    if let Some(row) = same {
        return Some(row.tag as u8);
    }
    let mut starting =
        TAGS.iter().filter(|row| row.name.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    match (starting.next(), starting.next()) {
        (Some(row), None) => Some(row.tag as u8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::log::LogId;
    use surface::tag::Tag;

    fn record(tag: Tag, vxid: u64, payload: &[u8]) -> Record<'_> {
        Record { number: tag as u8, id: LogId::client(vxid), payload }
    }

    #[test]
    fn tags_are_found_by_name_or_its_start() {
        assert_eq!(tag_number("requrl"), Some(Tag::ReqURL as u8));
        assert_eq!(tag_number("VCL_ca"), Some(Tag::VCLCall as u8));
        assert_eq!((tag_number("Beresp"), tag_number("nonsense")), (None, None));
    }

    #[test]
    fn a_pattern_compares_what_it_names() {
        let any = Pattern { vxid: Wanted::Any, tag: Wanted::Any, regex: Some(Regex::new("x").unwrap()) };
        assert!(any.matches(&record(Tag::ReqURL, 1, b"/a\0"), None));
        let url = Pattern { tag: Wanted::Exactly(Tag::ReqURL as u8), ..any.clone() };
        assert!(!url.matches(&record(Tag::ReqURL, 1, b"/a\0"), None));
        assert!(url.matches(&record(Tag::ReqURL, 1, b"/x\0"), None));
        assert!(!url.matches(&record(Tag::ReqMethod, 1, b"x\0"), None));
        let same = Pattern { vxid: Wanted::Last, tag: Wanted::Last, regex: None };
        assert!(!same.matches(&record(Tag::ReqURL, 1, b"\0"), None));
        assert!(same.matches(&record(Tag::ReqURL, 1, b"\0"), Some((1, Tag::ReqURL as u8))));
        let ends = Pattern { tag: Wanted::Exactly(Tag::ReqURL as u8), regex: Some(Regex::new("a$").unwrap()), ..any };
        assert!(ends.matches(&record(Tag::ReqURL, 1, b"/a\0"), None));
    }
}
