//! Lists of tag names and globs, as in queries and options: `Req*,*Header,Debug`.

use surface::tag::{TAGS, Tag, TagRow};

/// A set of tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TagSet(u128);

/// Error of a refused list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagListError {
    /// The list is empty, or an element matches no tag.
    None,
    /// An element is not a glob, but the start of several names.
    Several,
    /// An element has more than one `*`.
    Syntax,
}

impl TagSet {
    /// No tag.
    pub const EMPTY: TagSet = TagSet(0);

    /// One tag.
    #[must_use]
    pub fn only(tag: Tag) -> TagSet {
        TagSet(1 << tag as u32)
    }

    /// Every tag there is.
    #[must_use]
    pub fn all() -> TagSet {
        TagSet(((1 << TAGS.len()) - 1) << 1)
    }

    /// True when the tag with this number is in the set.
    #[must_use]
    pub fn contains(self, number: u8) -> bool {
        number < 128 && self.0 >> number & 1 != 0
    }

    /// Puts every tag of `other` in.
    pub fn insert(&mut self, other: TagSet) {
        self.0 |= other.0;
    }

    /// Takes every tag of `other` out.
    pub fn remove(&mut self, other: TagSet) {
        self.0 &= !other.0;
    }

    /// The tags of a comma-separated list of names and globs. Case is ignored in names, and names
    /// may be abbreviated as long as they are unambiguous; empty elements are skipped.
    ///
    /// # Errors
    /// The fault of the first bad element.
    pub fn parse_list(list: &str) -> Result<TagSet, TagListError> {
        let mut set = TagSet::EMPTY;
        for element in list.split(',').filter(|element| !element.is_empty()) {
            set.insert(TagSet::parse_glob(element)?);
        }
        if set == TagSet::EMPTY { Err(TagListError::None) } else { Ok(set) }
    }

    /// The tag with this name, ignoring case, or the only one whose name starts with it.
    ///
    /// # Errors
    /// The fault of the name.
    pub fn parse_name(name: &str) -> Result<Tag, TagListError> {
        if let Some(row) = TAGS.iter().find(|row| row.name.eq_ignore_ascii_case(name)) {
            return Ok(row.tag);
        }
        let starts = |row: &&TagRow| row.name.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name));
        let mut found = TAGS.iter().filter(starts);
        match (found.next(), found.next()) {
            (Some(row), None) => Ok(row.tag),
            (Some(_), Some(_)) if !name.is_empty() => Err(TagListError::Several),
            _ => Err(TagListError::None),
        }
    }

    /// The tags that match one name or glob: a single `*`, at the start, the end or in the middle,
    /// matches any text.
    ///
    /// # Errors
    /// The fault of the glob.
    pub fn parse_glob(glob: &str) -> Result<TagSet, TagListError> {
        let starts =
            |name: &str, core: &str| name.get(..core.len()).is_some_and(|part| part.eq_ignore_ascii_case(core));
        let ends = |name: &str, core: &str| {
            let at = name.len().checked_sub(core.len());
            at.and_then(|at| name.get(at..)).is_some_and(|part| part.eq_ignore_ascii_case(core))
        };
        let matching = |test: &dyn Fn(&str) -> bool| {
            TagSet(TAGS.iter().filter(|row| test(row.name)).fold(0, |set, row| set | 1 << row.tag as u32))
        };
        let set = match glob.split_once('*') {
            Some((_, after)) if after.contains('*') => return Err(TagListError::Syntax),
            Some((before, after)) => {
                matching(&|name| name.len() >= before.len() + after.len() && starts(name, before) && ends(name, after))
            }
            None => return TagSet::parse_name(glob).map(TagSet::only),
        };
        if set == TagSet::EMPTY { Err(TagListError::None) } else { Ok(set) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(list: &str) -> u32 {
        TagSet::parse_list(list).unwrap().0.count_ones()
    }

    #[test]
    fn globs_match_at_either_end_without_regard_to_case() {
        assert_eq!(count("*"), 98);
        assert_eq!(count("requrl"), 1);
        assert_eq!(count("*URL"), 5);
        assert_eq!(count("H2*"), 4);
        assert_eq!(count("H2*Hdr"), 2);
        assert_eq!(count("Req*URL"), 1);
        assert!(TagSet::parse_list("Req*,TTL").unwrap().contains(Tag::ReqURL as u8));
        assert_eq!(count("VCL_ca"), 1);
        assert!(TagSet::parse_list("Timestamp").unwrap().contains(Tag::Timestamp as u8));
        assert_eq!(TagSet::all(), TagSet::parse_list("*").unwrap());
    }

    #[test]
    fn a_list_that_names_nothing_is_refused() {
        assert_eq!(TagSet::parse_list("Foo"), Err(TagListError::None));
        assert_eq!(TagSet::parse_list("a*b"), Err(TagListError::None));
        assert_eq!(TagSet::parse_list(","), Err(TagListError::None));
        assert_eq!(TagSet::parse_list("*q*"), Err(TagListError::Syntax));
        assert_eq!(TagSet::parse_list("Beresp"), Err(TagListError::Several));
        assert_eq!(TagSet::parse_list(",ReqURL,"), TagSet::parse_list("requrl"));
    }
}
