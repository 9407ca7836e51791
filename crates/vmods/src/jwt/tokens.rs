//! The tokens that a task reads and makes, by object.

use super::draft::Draft;
use super::key_set::KeySet;
use super::token::Token;
use std::sync::Arc;

/// Tokens and drafts of a task, by object.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    readers: Vec<(Option<u32>, Reader)>,
    writers: Vec<(Option<u32>, Draft)>,
}

/// A reader in a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    /// The token that was parsed.
    pub(super) token: Option<Token>,
    /// Keys that the task has set.
    pub(super) keys: Option<Arc<KeySet>>,
}

impl Tokens {
    /// Memory that clients can make grow, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let token = |reader: &Reader| reader.token.as_ref().map_or(0, Token::bytes);
        self.readers.iter().map(|(_, reader)| token(reader)).sum::<usize>()
            + self.writers.iter().map(|(_, draft)| draft.bytes()).sum::<usize>()
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Tokens::default();
    }

    /// The reader of an object.
    pub(super) fn reader(&mut self, instance: Option<u32>) -> &mut Reader {
        of(&mut self.readers, instance)
    }

    /// The draft of an object.
    pub(super) fn draft(&mut self, instance: Option<u32>) -> &mut Draft {
        of(&mut self.writers, instance)
    }
}

fn of<T: Default>(list: &mut Vec<(Option<u32>, T)>, instance: Option<u32>) -> &mut T {
    let place = list.iter().position(|(other, _)| *other == instance).unwrap_or_else(|| {
        list.push((instance, T::default()));
        list.len() - 1
    });
    &mut list[place].1
}
