//! A page with ESI as a supply: the stored body along its plan, with the fragments in their places.
//!
//! ```text
//! plan ─ next instruction ─┬ verbatim: from the stored body           scout: next include to start
//!                          ├ skip                                       │
//!                          └ include: first of `ahead` ◀─ put ─ caller ◀┘
//! ```
//!
//! The page starts nothing itself: it names the includes that may be started ([`Page::scout`]) and
//! is given a [`Fragment`] for it. Fragments run in parallel and are delivered in order. A gzipped
//! page yields one gzip stream: its own pieces are byte-aligned, and fragments are joined without
//! being decoded (`body::esi::join`). *Invariant:* all pages below one client's request together
//! have at most [`Budget::most`] fragments open, plus one for each level of nesting: those whose
//! turn it is, which never wait. *Invariant:* at most `esi_fragments_max` of their includes are
//! followed; all others are left out. Source: the behaviour of Varnish 7.1.1.

use super::fragment::{Fragment, FragmentState};
use super::pull::{Pulled, Supply};
use crate::memory::Ledger;
use crate::request::delivered::Delivered;
use body::esi::join::{GzipFragment, GzipSum, JOINED_HEADER, PlainFragment};
use body::esi::{Instruction, Instructions, Plan};
use body::{Chain, FilterError, Flow};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};
use store::{BodyReader, Object};

/// Limits of the fragments of one client's request: those that are open at a time (started, and not
/// yet delivered), and all.
pub(crate) struct Budget {
    most: usize,
    open: Cell<usize>,
    /// Number of includes that may still be followed. Those that are left out for another cause
    /// count as well: a page that repeats itself would otherwise take time for all of them, on its
    /// deepest level.
    left: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Budget {
    /// Creates a budget of `most` at a time, at least one, and `in_all` in total.
    pub(crate) fn new(most: usize, in_all: u64) -> Rc<Budget> {
        let (open, left) = (Cell::new(0), Cell::new(in_all));
        Rc::new(Budget { most: most.max(1), open, left, waiting: RefCell::default() })
    }

    /// Takes one of the includes that may be followed. False if there is none left.
    fn take_one(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    fn has_room(&self) -> bool {
        self.open.get() < self.most
    }

    /// Wakes the task once there is more room.
    fn watch(&self, context: &Context<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
    }
}

/// The page's end of a fragment. Dropping it cancels the fragment.
struct Open {
    fragment: Rc<Fragment>,
    budget: Rc<Budget>,
}

impl Open {
    fn new(fragment: Rc<Fragment>, budget: &Rc<Budget>) -> Open {
        budget.open.set(budget.open.get() + 1);
        Open { fragment, budget: Rc::clone(budget) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.fragment.give_up();
        self.budget.open.set(self.budget.open.get() - 1);
        self.budget.waiting.borrow_mut().drain(..).for_each(Waker::wake);
    }
}

/// A fragment to include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Include {
    /// The host of the request, instead of the page's.
    pub(crate) host: Option<Vec<u8>>,
    /// Target of the request.
    pub(crate) target: Vec<u8>,
    /// `onerror="continue"`.
    continues: bool,
    /// The client's request has reached its limit of fragments.
    pub(crate) is_beyond: bool,
}

/// An include on the way from its start to its turn.
struct Ahead {
    include: Include,
    state: AheadState,
}

enum AheadState {
    Open(Open),
    /// Not included.
    LeftOut,
    /// It was stopped, and is to be started again when its turn comes.
    Stopped,
    /// No connection was available for it ahead of its turn; it is started again when everything
    /// before it has been sent.
    Refused,
}

impl Ahead {
    fn is_refused(&self) -> bool {
        match &self.state {
            AheadState::Open(open) => open.fragment.is_refused(),
            AheadState::Refused => true,
            AheadState::LeftOut | AheadState::Stopped => false,
        }
    }
}

/// Current action of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The next instruction is due.
    Next,
    /// This number of bytes of the stored body is due.
    Verbatim(u64),
    /// The first include of those ahead is due.
    Include,
    /// Everything has been shown.
    Over,
    /// The rest is not available.
    Broken,
}

/// Result of [`Page::advance`].
enum Ready {
    Piece,
    Stored,
    Waits,
    Ended,
    Failed,
}

/// A fragment that is made a part of a joined gzip stream.
struct Joining {
    chain: Chain,
    input: (Vec<u8>, usize),
    is_pending: bool,
    is_gzip: bool,
    /// Part of it was shown.
    has_begun: bool,
}

/// Page with ESI; see the module header.
pub(crate) struct Page {
    object: Delivered,
    reader: Option<BodyReader>,
    /// Bytes of the stored body that were used.
    offset: u64,
    plan: Vec<u8>,
    is_gzipped: bool,
    /// Bytes of the plan that remain for the walk, and for the scout ahead of it.
    left: usize,
    scout_left: usize,
    ahead: VecDeque<Ahead>,
    state: State,
    /// Bytes that are not in the stored body, and the number of them that were used.
    piece: (Vec<u8>, usize),
    joining: Option<Joining>,
    sum: GzipSum,
    /// A fragment that fails ends the page unless its `onerror` allows to continue.
    heeds_onerror: bool,
    has_left_out: bool,
    is_live: bool,
    error: Option<FilterError>,
    verbatim_pieces: u64,
    budget: Rc<Budget>,
    ledger: Rc<Ledger>,
}

impl Page {
    /// The page of an object. `heeds_onerror` is the feature `esi_include_onerror`. `None` if its
    /// plan is missing or damaged.
    pub(crate) fn of_object(
        mut object: Delivered,
        heeds_onerror: bool,
        budget: &Rc<Budget>,
        ledger: &Rc<Ledger>,
    ) -> Option<Page> {
        let bytes = object.annex()?;
        let plan = Plan::decode(&bytes).filter(|plan| plan.body_bytes() == object.available_bytes())?;
        let (is_gzipped, left) = (plan.is_gzipped(), plan.instructions().left_bytes());
        let header = if is_gzipped { JOINED_HEADER.to_vec() } else { Vec::new() };
        Some(Page {
            reader: object.take_reader().or_else(|| object.reader()),
            object,
            offset: 0,
            plan: bytes,
            is_gzipped,
            left,
            scout_left: left,
            ahead: VecDeque::new(),
            state: State::Next,
            piece: (header, 0),
            joining: None,
            sum: GzipSum::default(),
            heeds_onerror,
            has_left_out: false,
            is_live: false,
            error: None,
            verbatim_pieces: 0,
            budget: Rc::clone(budget),
            ledger: Rc::clone(ledger),
        })
    }

    /// True if the page is sent gzipped, and its fragments should be.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.is_gzipped
    }

    /// Memory for the plan, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.plan.len()
    }

    /// Reason why a fragment could not be joined, if that ended the page.
    pub(crate) fn error(&self) -> Option<FilterError> {
        self.error
    }

    /// Verbatim pieces shown, and bytes of the stored body used, those left out included.
    pub(crate) fn account(&self) -> (u64, u64) {
        (self.verbatim_pieces, self.offset)
    }

    /// Marks that everything before the page has been sent.
    pub(crate) fn go_live(&mut self) {
        self.is_live = true;
        if self.state == State::Include
            && let Some(Ahead { state: AheadState::Open(open), .. }) = self.ahead.front()
        {
            open.fragment.go_live();
        }
    }

    /// The next include that should be started now; [`Page::put`] must follow.
    pub(crate) fn scout(&mut self) -> Option<Include> {
        let is_due = self.state == State::Include;
        let may_start = |is_needed: bool| {
            let may_run_ahead = self.budget.most > 1 && !self.ledger.is_short();
            (is_needed && self.is_live) || (self.budget.has_room() && (is_needed || may_run_ahead))
        };
        match self.ahead.front() {
            Some(Ahead { include, state: AheadState::Stopped }) => {
                return (is_due && may_start(true)).then(|| include.clone());
            }
            Some(Ahead { include, state: AheadState::Refused }) => {
                return (is_due && self.is_live).then(|| include.clone());
            }
            _ => {}
        }
        if self.ahead.len() >= self.budget.most || !may_start(is_due && self.ahead.is_empty()) {
            return None;
        }
        if self.ahead.iter().any(Ahead::is_refused) {
            // Further fragments would only take its slot.
            return None;
        }
        let mut instructions = Instructions::resumed(&self.plan, self.scout_left);
        let found = instructions.find_map(|instruction| match instruction {
            Instruction::Include { host, target, continues } => {
                let is_beyond = !self.budget.take_one();
                Some(Include { host: host.map(<[u8]>::to_vec), target: target.to_vec(), continues, is_beyond })
            }
            Instruction::Verbatim { .. } | Instruction::Skip { .. } => None,
        });
        self.scout_left = instructions.left_bytes();
        found
    }

    /// The fragment for the include that [`Page::scout`] named; `None` if it is not to be included.
    pub(crate) fn put(&mut self, include: Include, fragment: Option<Rc<Fragment>>) {
        let state = match fragment {
            Some(fragment) => AheadState::Open(Open::new(fragment, &self.budget)),
            None => AheadState::LeftOut,
        };
        match self.ahead.front_mut() {
            Some(first) if matches!(first.state, AheadState::Stopped | AheadState::Refused) => first.state = state,
            _ => self.ahead.push_back(Ahead { include, state }),
        }
    }

    /// Records that an include is left out by a limit. Returns true if it is the first one of the
    /// page.
    pub(crate) fn leave_out(&mut self) -> bool {
        !std::mem::replace(&mut self.has_left_out, true)
    }

    /// True if the next bytes of the page have to be read from a file; [`Page::load`] waits for
    /// them.
    pub(crate) fn wants_load(&self) -> bool {
        self.reader.as_ref().is_some_and(BodyReader::wants_load)
    }

    /// Waits until they are available, or cannot be read.
    pub(crate) async fn load(&self) {
        if let Some(reader) = &self.reader {
            reader.load().await;
        }
    }

    /// The offset at which the stored body could not be read, and its object; `None` = it is intact
    /// so far.
    pub(crate) fn unreadable_at(&self) -> Option<(&Object, u64)> {
        let has_failed = self.reader.as_ref().is_some_and(BodyReader::has_failed);
        has_failed.then(|| (&**self.object, self.offset))
    }

    /// Wakes the task when a waiting page can continue.
    pub(crate) fn watch(&self, context: &Context<'_>) {
        if let Some(Ahead { state: AheadState::Open(open), .. }) = self.ahead.front() {
            open.fragment.watch(context);
        }
        self.budget.watch(context);
    }

    /// Stops fragments that are ahead of their turn and block others by waiting for it.
    pub(crate) fn stop_what_holds_up(&mut self) {
        for ahead in self.ahead.iter_mut().skip(1) {
            if let AheadState::Open(open) = &ahead.state
                && open.fragment.holds_up_others()
            {
                ahead.state = AheadState::Stopped;
            }
        }
    }

    /// True if anything was started ahead of its turn.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.ahead.len() > 1
    }

    fn advance(&mut self) -> Ready {
        loop {
            if self.piece.1 < self.piece.0.len() {
                return Ready::Piece;
            }
            match self.state {
                State::Next => self.next_instruction(),
                State::Verbatim(0) => self.state = State::Next,
                State::Verbatim(_) => return Ready::Stored,
                State::Include => {
                    if !self.include() {
                        return Ready::Waits;
                    }
                }
                State::Over => return Ready::Ended,
                State::Broken => return Ready::Failed,
            }
        }
    }

    fn next_instruction(&mut self) {
        let mut instructions = Instructions::resumed(&self.plan, self.left);
        match instructions.next() {
            Some(Instruction::Verbatim { bytes, crc32, plain_bytes }) => {
                if self.is_gzipped {
                    self.sum.append(GzipSum { crc32, plain_bytes });
                }
                self.verbatim_pieces += 1;
                self.state = State::Verbatim(bytes);
            }
            Some(Instruction::Skip { bytes }) => self.offset += bytes,
            Some(Instruction::Include { .. }) => self.state = State::Include,
            None => {
                if self.is_gzipped {
                    self.piece = (self.sum.trailer().to_vec(), 0);
                }
                self.state = State::Over;
            }
        }
        self.left = instructions.left_bytes();
    }

    /// Continues with the include that is due. False if it must wait.
    fn include(&mut self) -> bool {
        if let Some(first) = self.ahead.front_mut().filter(|first| first.is_refused()) {
            first.state = AheadState::Refused;
        }
        match self.ahead.front() {
            Some(Ahead { state: AheadState::Open(open), .. }) => {
                if self.is_live {
                    open.fragment.go_live();
                }
                let fragment = Rc::clone(&open.fragment);
                if self.is_gzipped { self.join(&fragment) } else { self.insert(&fragment) }
            }
            Some(Ahead { state: AheadState::LeftOut, .. }) => self.included(),
            Some(Ahead { state: AheadState::Stopped | AheadState::Refused, .. }) | None => false,
        }
    }

    /// Ends the include.
    fn included(&mut self) -> bool {
        self.ahead.pop_front();
        self.joining = None;
        self.state = State::Next;
        true
    }

    /// Handles a failed fragment: true if the page ends with it.
    fn ends_with(&mut self) -> bool {
        self.heeds_onerror && self.ahead.front().is_some_and(|ahead| !ahead.include.continues)
    }

    fn break_off(&mut self) -> bool {
        self.state = State::Broken;
        true
    }

    /// Inserts the received bytes of a fragment into a plain page.
    fn insert(&mut self, fragment: &Fragment) -> bool {
        if let Some(piece) = fragment.take(&self.ledger) {
            self.piece = (piece, 0);
            return true;
        }
        match fragment.state() {
            FragmentState::Running => false,
            FragmentState::Failed if self.ends_with() => self.break_off(),
            FragmentState::Complete | FragmentState::Failed => self.included(),
        }
    }

    /// Joins a fragment to a gzipped page.
    fn join(&mut self, fragment: &Fragment) -> bool {
        if self.joining.is_none() {
            let Some(is_gzip) = fragment.is_gzip() else { return false };
            if fragment.state() == FragmentState::Failed && is_gzip {
                // Part of a stream of which nothing was sent yet is left out.
                return if self.ends_with() { self.break_off() } else { self.included() };
            }
            self.joining = Some(Joining::new(is_gzip));
        }
        let Some(joining) = &mut self.joining else { return false };
        if joining.needs_input() {
            match (fragment.take(&self.ledger), fragment.state()) {
                (Some(piece), _) => joining.input = (piece, 0),
                (None, FragmentState::Running) => return false,
                (None, FragmentState::Complete) => {}
                (None, FragmentState::Failed) => {
                    let is_lost = joining.is_gzip && joining.has_begun;
                    if is_lost || self.ends_with() {
                        // Nothing else can follow half a deflate block.
                        return self.break_off();
                    }
                }
            }
        }
        let Some(joining) = &mut self.joining else { return false };
        match joining.step(&mut self.piece) {
            Ok(None) => true,
            Ok(Some(sum)) => {
                self.sum.append(sum);
                self.included()
            }
            Err(_) if !joining.has_begun && !self.ends_with() => self.included(),
            Err(error) => {
                self.error = Some(error);
                self.break_off()
            }
        }
    }
}

impl Joining {
    fn new(is_gzip: bool) -> Joining {
        let mut chain = Chain::default();
        // There is room for one filter.
        let _ = match is_gzip {
            true => chain.push(Box::new(GzipFragment::default())),
            false => chain.push(Box::new(PlainFragment::default())),
        };
        Joining { chain, input: (Vec::new(), 0), is_pending: false, is_gzip, has_begun: false }
    }

    fn needs_input(&self) -> bool {
        !self.is_pending && self.input.1 == self.input.0.len()
    }

    /// Runs one step; its output replaces `piece`. Returns the checksum once all output was
    /// produced.
    fn step(&mut self, piece: &mut (Vec<u8>, usize)) -> Result<Option<GzipSum>, FilterError> {
        let rest = &self.input.0[self.input.1..];
        let input = if rest.is_empty() && !self.is_pending { None } else { Some(rest) };
        let step = self.chain.step(input)?;
        self.input.1 += step.taken;
        self.is_pending = step.flow == Flow::More && input.is_some();
        piece.0.clear();
        piece.0.extend_from_slice(step.bytes);
        piece.1 = 0;
        self.has_begun |= !step.bytes.is_empty();
        let has_ended = step.flow == Flow::Ended;
        Ok(if has_ended { self.chain.gzip_sum() } else { None })
    }
}

impl Supply for Page {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        match self.advance() {
            Ready::Piece => {
                let rest = &self.piece.0[self.piece.1..];
                Pulled::Piece { bytes: &rest[..rest.len().min(bytes_max)], is_last: false }
            }
            Ready::Stored => {
                let State::Verbatim(left) = self.state else { return Pulled::Failed };
                let most = bytes_max.min(usize::try_from(left).unwrap_or(usize::MAX));
                if let Some(reader) = &mut self.reader
                    && reader.chunk_at(self.offset).is_none()
                    && reader.wants_load()
                {
                    return Pulled::Waits;
                }
                let chunk = match &mut self.reader {
                    Some(reader) => reader.chunk_at(self.offset),
                    None => self.object.chunk_at(self.offset),
                };
                match chunk {
                    Some(chunk) => {
                        let bytes = &chunk[..chunk.len().min(most)];
                        let is_last = !self.is_gzipped && self.left == 0 && bytes.len() as u64 == left;
                        Pulled::Piece { bytes, is_last }
                    }
                    None => Pulled::Failed,
                }
            }
            Ready::Waits => Pulled::Waits,
            Ready::Ended => Pulled::Ended,
            Ready::Failed => Pulled::Failed,
        }
    }

    fn consume(&mut self, count: usize) {
        if self.piece.1 < self.piece.0.len() {
            self.piece.1 = (self.piece.1 + count).min(self.piece.0.len());
        } else if let State::Verbatim(left) = &mut self.state {
            *left = left.saturating_sub(count as u64);
            self.offset += count as u64;
        }
    }
}
