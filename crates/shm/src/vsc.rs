//! Counter sections in shared memory, writer side.
//!
//! A section's values (`Stat`) and the JSON document that explains them (`StatDoc`) are two
//! segments joined by a document id. A document is in the index before the first values that refer
//! to it, is shared by all blocks of its section, and is removed with the last of them; its id is
//! never used again. Values are plain 64-bit words that readers may look at any time. Next file:
//! `vsc/document.rs`.

pub mod document;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use surface::counter::SectionRow;

use crate::region::Region;
use crate::vsm::{Segment, VsmWriter};

/// Byte offset of the body in `Stat` and `StatDoc` segments.
pub const BODY_OFFSET: usize = 24;
const OFFSET_OF_BODY_OFFSET: usize = 8;
const OFFSET_OF_DOCUMENT_ID: usize = 16;
const READY_LIVE: u32 = 1;
const READY_HIDDEN: u32 = 2;

/// Publishes counter sections in one index. Cloning gives another handle.
#[derive(Clone)]
pub struct Publisher(Arc<Inner>);

struct Inner {
    vsm: VsmWriter,
    documents: Mutex<Documents>,
}

struct Documents {
    next_id: u64,
    by_section: HashMap<&'static str, Document>,
}

struct Document {
    id: u64,
    segment: Segment,
    users: usize,
}

impl Publisher {
    /// A publisher into `vsm`. Document ids count up from `id_base`; manager and worker must use
    /// ranges that don't overlap.
    #[must_use]
    pub fn new(vsm: &VsmWriter, id_base: u64) -> Publisher {
        let documents = Documents { next_id: id_base, by_section: HashMap::new() };
        Publisher(Arc::new(Inner { vsm: vsm.clone(), documents: Mutex::new(documents) }))
    }

    /// Publishes a block of counters, all zero, under the name `ident` (`MAIN`,
    /// `VBE.boot.default`…).
    ///
    /// # Errors
    /// `InvalidInput` for an ident that an index line cannot contain; else errors of the file
    /// system.
    pub fn publish(&self, section: &'static SectionRow, ident: &str) -> io::Result<CounterBlock> {
        let mut documents = self.0.documents.lock();
        if !documents.by_section.contains_key(section.name) {
            let id = documents.next_id;
            documents.next_id += 1;
            let segment = self.add_document(section, id)?;
            documents.by_section.insert(section.name, Document { id, segment, users: 0 });
        }
        let Some(document) = documents.by_section.get_mut(section.name) else {
            return Err(io::Error::other("counter document vanished"));
        };
        let id = document.id;
        let bytes = BODY_OFFSET + 8 * section.counters.len();
        let segment = self.0.vsm.add_filled("Stat", ident, bytes, |memory| fill_head(memory, id))?;
        document.users += 1;
        Ok(CounterBlock { segment, section })
    }

    /// Removes a block of counters; with the section's last block also its document.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn withdraw(&self, block: CounterBlock) -> io::Result<()> {
        let mut documents = self.0.documents.lock();
        let removed = self.0.vsm.remove(&block.segment);
        let Some(document) = documents.by_section.get_mut(block.section.name) else { return removed };
        document.users = document.users.saturating_sub(1);
        if document.users == 0
            && let Some(last) = documents.by_section.remove(block.section.name)
        {
            return removed.and(self.0.vsm.remove(&last.segment));
        }
        removed
    }

    fn add_document(&self, section: &'static SectionRow, id: u64) -> io::Result<Segment> {
        let text = document::json(section);
        let bytes = BODY_OFFSET + text.len() + 1;
        self.0.vsm.add_filled("StatDoc", &format!("{id:x}"), bytes, |memory| {
            memory.fill(BODY_OFFSET, text.as_bytes());
            fill_head(memory, id);
        })
    }
}

fn fill_head(memory: &Region, document_id: u64) {
    memory.store_u64(OFFSET_OF_BODY_OFFSET, BODY_OFFSET as u64, Ordering::Release);
    memory.store_u64(OFFSET_OF_DOCUMENT_ID, document_id, Ordering::Release);
    memory.store_u32(0, READY_LIVE, Ordering::Release);
}

/// The published values of one section instance.
pub struct CounterBlock {
    segment: Segment,
    section: &'static SectionRow,
}

impl CounterBlock {
    /// Sets counter `index` (the section's enum `as usize`); does nothing if that counter does not
    /// exist.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        if index < self.section.counters.len() {
            self.segment.store_u64(BODY_OFFSET + 8 * index, value);
        }
    }

    /// Sets all counters in the order of the section's rows; surplus values are ignored.
    pub fn set_all(&self, values: &[u64]) {
        for (index, value) in values.iter().enumerate() {
            self.set(index, *value);
        }
    }

    /// Hides the block from the tools or shows it again; the values stay.
    pub fn hide(&self, hidden: bool) {
        self.segment.store_u32(0, if hidden { READY_HIDDEN } else { READY_LIVE });
    }

    /// The section this block is an instance of.
    #[must_use]
    pub fn section(&self) -> &'static SectionRow {
        self.section
    }
}
