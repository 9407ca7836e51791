//! Runs: the parser's marks become runs of bytes that are sent or left out, and those become the
//! plan of a page.
//!
//! A run ends where the other kind begins. If the body is compressed, each run ends on a byte
//! boundary, and a run that is sent does not refer back across its beginning: everything between
//! two such runs may be left out, and fragments may be inserted.
//!
//! Compat: the positions in notes count from the start of the present run in the stored body, as in
//! Varnish 7.1.1, where each tag begins one.

use super::address::Address;
use super::note::{Note, NoteLevel};
use super::packer::Packer;
use super::plan::{Instruction, PlanWriter};
use std::collections::VecDeque;
use surface::limits::ESI_PLAN_BYTES_MAX;

/// Room in the plan that is reserved for the instructions of one tag, without the address of a
/// fragment.
const RESERVED_BYTES: usize = 256;

/// The treatment of some bytes of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// They are sent.
    Verbatim,
    /// They are left out.
    Skip,
}

/// The runs of one page.
#[derive(Debug)]
pub(crate) struct Runs {
    plan: PlanWriter,
    packer: Option<Packer>,
    mark: Mark,
    /// Bytes of the page in the present run.
    run_bytes: u64,
    /// Its position in the stored body.
    run_start: u64,
    /// Bytes of the stored body that are left out and not yet in the plan.
    skipped_bytes: u64,
    /// There is ESI in the page.
    is_found: bool,
    notes: VecDeque<Note>,
    /// Number of runs that were compressed in this step.
    packed_runs: usize,
}

impl Runs {
    /// Number of notes at which the parser pauses.
    const NOTES_AT_ONCE: usize = 32;
    /// It pauses after this many runs, if they are compressed: the end of a run clears the tables
    /// of the library.
    const PACKED_AT_ONCE: usize = 16;
    /// Maximum number of notes; if they are not taken, further ones are dropped.
    const NOTES_MAX: usize = 4 * Runs::NOTES_AT_ONCE;

    /// The runs of a page that is stored unchanged, or compressed.
    pub(crate) fn new(packer: Option<Packer>) -> Runs {
        let header_bytes = packer.as_ref().map_or(0, Packer::made_bytes);
        Runs {
            plan: PlanWriter::new(packer.is_some()),
            packer,
            mark: Mark::Verbatim,
            run_bytes: 0,
            run_start: header_bytes,
            skipped_bytes: header_bytes,
            is_found: false,
            notes: VecDeque::new(),
            packed_runs: 0,
        }
    }

    /// The memory in use besides the packer, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.plan.held_bytes() + self.notes.capacity() * size_of::<Note>()
    }

    /// The compressor of the body.
    pub(crate) fn packer(&mut self) -> Option<&mut Packer> {
        self.packer.as_mut()
    }

    /// A step of the filter begins.
    pub(crate) fn begin_step(&mut self) {
        self.packed_runs = 0;
    }

    /// True if so much work was done in this step that the rest can wait for the next one.
    pub(crate) fn is_busy(&self) -> bool {
        self.notes.len() >= Runs::NOTES_AT_ONCE || self.packed_runs >= Runs::PACKED_AT_ONCE
    }

    /// The next bytes of the page are of this kind.
    pub(crate) fn mark(&mut self, mark: Mark, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if mark != self.mark && self.run_bytes > 0 {
            self.end_run(mark);
        }
        self.mark = mark;
        self.run_bytes += bytes.len() as u64;
        if let Some(packer) = &mut self.packer {
            packer.pack(bytes);
        }
    }

    /// Starts a tag, which will be of this kind: notes about it count from here, even if the one
    /// before it was left out too.
    pub(crate) fn split(&mut self, next: Mark) {
        if self.mark == Mark::Skip && self.run_bytes > 0 {
            self.end_run(next);
        }
    }

    /// Ends the present run; one of this kind comes next.
    fn end_run(&mut self, next: Mark) {
        let plain_bytes = std::mem::take(&mut self.run_bytes);
        let (bytes, crc32) = match &mut self.packer {
            None => (plain_bytes, 0),
            Some(packer) => {
                self.packed_runs += 1;
                let crc32 = packer.end_run(next == Mark::Verbatim);
                (packer.made_bytes() - self.run_start, crc32)
            }
        };
        self.run_start += bytes;
        match self.mark {
            Mark::Skip => self.skipped_bytes += bytes,
            Mark::Verbatim => {
                self.write_skipped();
                self.plan.push(Instruction::Verbatim { bytes, crc32, plain_bytes });
            }
        }
    }

    fn write_skipped(&mut self) {
        let bytes = std::mem::take(&mut self.skipped_bytes);
        if bytes > 0 {
            self.plan.push(Instruction::Skip { bytes });
        }
    }

    /// The page has ESI.
    pub(crate) fn found(&mut self) {
        self.is_found = true;
    }

    /// True if the plan has no room for another tag.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.plan.written_bytes() + RESERVED_BYTES > ESI_PLAN_BYTES_MAX
    }

    /// True if the plan has room for a fragment.
    pub(crate) fn has_room(&self, address: &Address) -> bool {
        let bytes = address.host.as_ref().map_or(0, Vec::len) + address.target.len();
        self.plan.written_bytes() + bytes + RESERVED_BYTES <= ESI_PLAN_BYTES_MAX
    }

    /// Inserts a fragment here.
    pub(crate) fn include(&mut self, address: &Address, continues: bool) {
        let Address { host, target, .. } = address;
        self.plan.push(Instruction::Include { host: host.as_deref(), target, continues });
    }

    /// Notes something about the present run.
    pub(crate) fn note(&mut self, level: NoteLevel, text: &'static str) {
        if self.notes.len() < Runs::NOTES_MAX {
            self.notes.push_back(Note::new(level, self.run_start, text));
        }
    }

    /// The next note.
    pub(crate) fn take_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// The page has ended: ends the last run, and the compressed body.
    pub(crate) fn finish(&mut self) {
        if self.run_bytes > 0 {
            self.end_run(Mark::Skip);
        }
        if let Some(packer) = &mut self.packer {
            packer.finish();
            self.skipped_bytes += packer.made_bytes() - self.run_start;
        }
        self.write_skipped();
    }

    /// The plan of a page that has ended. `None` if there is no ESI in it.
    pub(crate) fn take_plan(&mut self) -> Option<Vec<u8>> {
        let is_found = std::mem::take(&mut self.is_found);
        is_found.then(|| std::mem::replace(&mut self.plan, PlanWriter::new(false)).finish())
    }
}
