//! The index of the bans: finds the few bans that may hit an object among a million that do not.
//!
//! A ban whose conditions require a value to equal, begin with or contain a text is filed under the
//! hash of that text; the fields, and the ways in which their values are split, are columns. An
//! object or request is split in the same way, and only the bans filed under its own texts are
//! tested, with all their conditions. A hash collision therefore costs a test, never a wrong
//! answer. Of several conditions, the one shared by the fewest bans at that time is used.
//!
//! *Lock*: the ban list's. *Invariant*: a ban in the index hits only objects that have one of its
//! keys. The decision to index a ban or not is made once, when the ban is added. See
//! `docs/decisions/bans-are-indexed.md`.

use super::Ban;
use super::pattern::{Key, Separators, keys_of};
use super::specification::{IndexCondition, ObjectView, Subject};
use super::table::Table;
use message::Message;
use smallvec::SmallVec;
use std::sync::Arc;
use surface::limits::{BAN_INDEX_FIELDS_MAX, BAN_INDEX_LISTS_MAX, BAN_PREFIX_BYTES_MAX};

/// The ways in which the values of a field are split, with the number of ban texts for each.
struct Column {
    subject: Subject,
    /// Distinguishes the texts of this column from those of others.
    number: u64,
    whole: usize,
    word: usize,
    /// By length, less one.
    beginnings: [usize; BAN_PREFIX_BYTES_MAX],
    /// A bit for each length that occurs.
    lengths: u64,
    lists: SmallVec<[(Separators, usize); 1]>,
}

const _: () = assert!(BAN_PREFIX_BYTES_MAX <= u64::BITS as usize);

impl Column {
    fn new(subject: Subject, number: u64) -> Column {
        let lists = SmallVec::new();
        Column { subject, number, whole: 0, word: 0, beginnings: [0; BAN_PREFIX_BYTES_MAX], lengths: 0, lists }
    }

    /// True if there is room for bans with such a key.
    fn takes(&self, key: Key) -> bool {
        match key {
            Key::Member(separators) => {
                self.lists.len() < BAN_INDEX_LISTS_MAX || self.lists.iter().any(|(known, _)| *known == separators)
            }
            Key::Whole | Key::Beginning | Key::Word => true,
        }
    }

    /// Counts a text in or out.
    fn count(&mut self, key: Key, text: &[u8], change: isize) {
        let counter = match key {
            Key::Whole => &mut self.whole,
            Key::Word => &mut self.word,
            Key::Beginning => &mut self.beginnings[text.len().clamp(1, BAN_PREFIX_BYTES_MAX) - 1],
            Key::Member(separators) => {
                let at = self.lists.iter().position(|(known, _)| *known == separators).unwrap_or_else(|| {
                    self.lists.push((separators, 0));
                    self.lists.len() - 1
                });
                &mut self.lists[at].1
            }
        };
        *counter = counter.saturating_add_signed(change);
        match key {
            Key::Beginning => {
                let at = text.len().clamp(1, BAN_PREFIX_BYTES_MAX) - 1;
                self.lengths = self.lengths & !(1 << at) | u64::from(self.beginnings[at] > 0) << at;
            }
            Key::Member(_) => self.lists.retain(|(_, count)| *count > 0),
            Key::Whole | Key::Word => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.whole == 0 && self.word == 0 && self.lengths == 0 && self.lists.is_empty()
    }

    /// The ways in which values have to be split.
    fn keys(&self) -> impl Iterator<Item = Key> {
        let whole = (self.whole > 0).then_some(Key::Whole);
        let word = (self.word > 0).then_some(Key::Word);
        let beginning = (self.lengths != 0).then_some(Key::Beginning);
        let lists = self.lists.iter().map(|(separators, _)| Key::Member(*separators));
        whole.into_iter().chain(word).chain(beginning).chain(lists)
    }
}

fn is_same_field(one: &Subject, other: &Subject) -> bool {
    match (one, other) {
        (Subject::RequestHeader(one), Subject::RequestHeader(other))
        | (Subject::ObjectHeader(one), Subject::ObjectHeader(other)) => one.eq_ignore_ascii_case(other),
        (one, other) => one == other,
    }
}

/// The index; see the module header.
#[derive(Default)]
pub(super) struct Index {
    table: Table,
    columns: Vec<Column>,
    columns_made: u64,
}

impl Index {
    /// Salt that separates the texts of a column, split in one way, from all others.
    fn salt(&self, column: &Column, key: Key) -> u64 {
        self.table.hash((column.number, key))
    }

    fn column_of(&self, subject: &Subject) -> Option<usize> {
        self.columns.iter().position(|column| is_same_field(&column.subject, subject))
    }

    /// The condition under which a new ban is to be filed; `None` if it cannot be filed.
    pub(super) fn choose<'a>(&self, clues: impl Iterator<Item = (u16, IndexCondition<'a>)>) -> Option<u16> {
        let crowd = |(number, index_condition): (u16, IndexCondition<'a>)| {
            let bytes = index_condition.texts.iter().map(|text| text.len()).min()?;
            let crowd = match self.column_of(index_condition.subject) {
                None => (self.columns.len() < BAN_INDEX_FIELDS_MAX).then_some(0)?,
                Some(at) if self.columns[at].takes(index_condition.key) => {
                    let salt = self.salt(&self.columns[at], index_condition.key);
                    let shared = |text: &[u8]| self.table.bans(self.table.hash((salt, text))).len();
                    index_condition.texts.iter().map(|text| shared(text)).max()?
                }
                Some(_) => return None,
            };
            Some((crowd, std::cmp::Reverse(bytes), number))
        };
        clues.filter_map(crowd).min().map(|(.., number)| number)
    }

    /// Files a ban that is newer than all others.
    pub(super) fn add(&mut self, ban: &Arc<Ban>) {
        let Some(index_condition) = ban.index_condition() else { return };
        let at = self.column_of(index_condition.subject).unwrap_or_else(|| {
            self.columns_made += 1;
            self.columns.push(Column::new(index_condition.subject.clone(), self.columns_made));
            self.columns.len() - 1
        });
        let salt = self.salt(&self.columns[at], index_condition.key);
        for text in &index_condition.texts {
            self.columns[at].count(index_condition.key, text, 1);
            let hash = self.table.hash((salt, &**text));
            self.table.push(hash, ban);
        }
    }

    /// Takes a ban out that [`Index::add`] put in; does nothing if it is out already.
    pub(super) fn remove(&mut self, ban: &Ban) {
        let Some(index_condition) = ban.index_condition() else { return };
        let Some(at) = self.column_of(index_condition.subject) else { return };
        let salt = self.salt(&self.columns[at], index_condition.key);
        for text in &index_condition.texts {
            // A ban may name the same text twice, and is then there twice.
            let hash = self.table.hash((salt, &**text));
            if self.table.remove(hash, ban.sequence) {
                self.columns[at].count(index_condition.key, text, -1);
            }
        }
        if self.columns[at].is_empty() {
            self.columns.swap_remove(at);
        }
    }

    /// The newest of the filed bans after `since`, up to `until`, for which `hits` returns true.
    /// `hits` is called only for bans that share a text with the object or the request.
    pub(super) fn newest(
        &self,
        (since, until): (u64, u64),
        object: &ObjectView<'_>,
        request: Option<&Message>,
        mut hits: impl FnMut(&Ban) -> bool,
    ) -> Option<&Arc<Ban>> {
        let mut newest: Option<&Arc<Ban>> = None;
        for column in &self.columns {
            object.show(&column.subject, request, |value| {
                for key in column.keys() {
                    let salt = self.salt(column, key);
                    keys_of(value, key, column.lengths, |text| {
                        let bucket = self.table.bans(self.table.hash((salt, text)));
                        if bucket.is_empty() {
                            return;
                        }
                        let after = newest.map_or(since, |ban| ban.sequence);
                        let end = bucket.partition_point(|ban| ban.sequence <= until);
                        let mut fresh = bucket[..end].iter().rev().take_while(|ban| ban.sequence > after);
                        newest = fresh.find(|ban| hits(ban)).or(newest);
                    });
                }
            });
        }
        newest
    }
}
