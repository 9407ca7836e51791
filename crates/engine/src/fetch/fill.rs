//! Fill: moves a body from its source into an object, piece by piece, through filters, into the
//! store.
//!
//! Encoders hold bytes back to compress them better. When the origin pauses, these bytes are
//! flushed to the readers, so that a slow stream (progress lines, events) arrives as it is sent. A
//! body without pauses is compressed as a whole.
//!
//! The origin's transport shows the pieces in its own buffers; a stale object that is valid again
//! shows its stored body. The next piece is pulled only once the output of the last one is stored.
//! Storing may wait for eviction, or for the readers of a body that is not kept (`overflow.rs`).
//! Next file: `commit.rs`.

use super::Fetch;
use crate::bodies::disk_tier::are_there;
use crate::bodies::filters::Filters;
use crate::bodies::pull::{Failure, Next, Pull, Pulled, Supply};
use crate::origin::{CutShort, OriginExchange, ReceiveLimits};
use crate::turns::Turns;
use body::FilterError;
use body::esi::NoteLevel;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{AppendError, BodyReader, Object, ObjectFlags};
use surface::counter::{Main, Vbe};
use surface::limits::{FLUSH_PAUSE_MILLISECONDS, PASS_IN_FLIGHT_BYTES_SHORT};
use surface::reason::Reason;
use surface::tag::Tag;

/// Bytes of a stored body to copy before other tasks of this event loop get a turn.
const SLICE_BYTES: usize = 256 << 10;

/// Source of a body. It shows a piece until that is used up, then waits for the next.
pub(super) struct Source {
    supplier: Supplier,
    /// Suppliers that follow the current one.
    next: VecDeque<Supplier>,
    /// The origin's exchange, once its body is used up and another supplier follows it.
    exchange: Option<OriginExchange>,
    /// Bytes that the origin must still send, no fewer and no more; `None` = any number.
    expected: Option<u64>,
    /// The body has ended.
    is_over: bool,
}

/// Supplier of the body.
enum Supplier {
    /// An origin, and its time limits.
    Exchange(Box<OriginExchange>, ReceiveLimits),
    /// A complete object.
    Object {
        reader: BodyReader,
        /// Bytes used.
        offset: u64,
        /// Number of bytes from there on that are shown.
        slice_bytes: usize,
        /// End of the bytes that are shown.
        end: u64,
    },
    /// A stored object that no longer exists.
    Gone,
}

/// Reason why a body is incomplete.
pub(super) enum BodyFailure {
    /// The connection ended or stalled, or the received bytes are not a valid body.
    Origin(CutShort),
    /// The stale object to copy from is not complete.
    Template,
    /// The stored body to copy from cannot be read from its file.
    Unreadable,
    /// A filter rejected the body.
    Filter(FilterError),
    /// The body could not be stored.
    Store,
    /// No client needs the body any more.
    Abandoned,
}

impl From<AppendError> for BodyFailure {
    fn from(error: AppendError) -> BodyFailure {
        match error {
            AppendError::Full | AppendError::TooLarge => BodyFailure::Store,
            AppendError::Abandoned => BodyFailure::Abandoned,
        }
    }
}

impl Source {
    /// A response's body; the exchange's `begin_body` must have been called.
    pub(super) fn of_exchange(exchange: OriginExchange, limits: ReceiveLimits) -> Source {
        Source::of(Supplier::Exchange(Box::new(exchange), limits))
    }

    /// The body of a complete object.
    pub(super) fn of_object(reader: BodyReader) -> Source {
        Source::of(Supplier::of_object(Some(reader), 0, u64::MAX))
    }

    fn of(supplier: Supplier) -> Source {
        Source { supplier, next: VecDeque::new(), exchange: None, expected: None, is_over: false }
    }

    /// Fails the body unless the origin sends exactly that many bytes.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.expected = Some(bytes);
    }

    /// Puts the first `bytes` of a complete object before the body.
    pub(super) fn begin_with(&mut self, reader: Option<BodyReader>, bytes: u64) {
        let before = Supplier::of_object(reader, 0, bytes);
        self.next.push_front(std::mem::replace(&mut self.supplier, before));
    }

    /// Adds a complete object's bytes from `offset` on after the body.
    pub(super) fn end_with(&mut self, reader: Option<BodyReader>, offset: u64) {
        self.next.push_back(Supplier::of_object(reader, offset, u64::MAX));
    }

    /// Returns the origin's exchange.
    pub(super) fn into_exchange(self) -> Option<OriginExchange> {
        std::iter::once(self.supplier).chain(self.next).find_map(Supplier::into_exchange).or(self.exchange)
    }

    /// True if the last bytes came from an origin.
    fn is_at_origin(&self) -> bool {
        matches!(self.supplier, Supplier::Exchange(..))
    }

    /// Waits for the next piece and returns its size, 0 at the end. The rest of the last piece is
    /// dropped.
    async fn more(&mut self) -> Result<usize, BodyFailure> {
        loop {
            let count = self.supplier.more().await?;
            if self.is_at_origin() {
                self.check_length(count as u64)?;
            }
            let Some(next) = (if count == 0 { self.next.pop_front() } else { None }) else {
                self.is_over = count == 0;
                return Ok(count);
            };
            self.exchange = std::mem::replace(&mut self.supplier, next).into_exchange().or(self.exchange.take());
        }
    }

    /// Takes the piece that was received last, if it came from an origin and is in a buffer of its
    /// own.
    fn take_piece(&mut self) -> Option<Vec<u8>> {
        match &mut self.supplier {
            Supplier::Exchange(exchange, _) => exchange.take_body(),
            Supplier::Object { .. } | Supplier::Gone => None,
        }
    }

    /// Counts the bytes that the origin sent; 0 = no more will follow.
    fn check_length(&mut self, count: u64) -> Result<(), BodyFailure> {
        let Some(expected) = &mut self.expected else { return Ok(()) };
        match expected.checked_sub(count) {
            Some(left) if count > 0 || left == 0 => {
                *expected = left;
                Ok(())
            }
            _ => Err(BodyFailure::Origin(OF_ANOTHER_LENGTH)),
        }
    }
}

/// A part is longer or shorter than stated by its Content-Range.
const OF_ANOTHER_LENGTH: CutShort =
    CutShort { errno: None, reason: Reason::ResponseGarbled, text: "body is not as long as content-range says" };

impl Supplier {
    fn of_object(reader: Option<BodyReader>, offset: u64, end: u64) -> Supplier {
        match reader {
            Some(reader) => {
                let end = end.min(reader.object().available_bytes());
                Supplier::Object { reader, offset, slice_bytes: 0, end }
            }
            None => Supplier::Gone,
        }
    }

    fn into_exchange(self) -> Option<OriginExchange> {
        match self {
            Supplier::Exchange(exchange, _) => Some(*exchange),
            Supplier::Object { .. } | Supplier::Gone => None,
        }
    }

    /// Waits for the next piece and returns its size, 0 at the end.
    async fn more(&mut self) -> Result<usize, BodyFailure> {
        match self {
            Supplier::Exchange(exchange, limits) => {
                exchange.consume_body(exchange.body().len());
                exchange.more_body(limits).await.map_err(|broken| match broken {
                    CutShort::ABANDONED => BodyFailure::Abandoned,
                    broken => BodyFailure::Origin(broken),
                })
            }
            Supplier::Object { reader, offset, slice_bytes, end } => {
                *offset += *slice_bytes as u64;
                if *offset > 0 {
                    tokio::task::yield_now().await;
                }
                let left = usize::try_from(end.saturating_sub(*offset)).unwrap_or(usize::MAX);
                if left > 0 && reader.object().is_on_disk() {
                    Box::pin(are_there(reader, *offset)).await;
                }
                *slice_bytes = reader.chunk_at(*offset).map_or(0, <[u8]>::len).min(SLICE_BYTES).min(left);
                match *slice_bytes {
                    0 if reader.has_failed() => Err(BodyFailure::Unreadable),
                    0 if *offset != *end => Err(BodyFailure::Template),
                    bytes => Ok(bytes),
                }
            }
            Supplier::Gone => Err(BodyFailure::Template),
        }
    }
}

impl Supply for Source {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        let bytes = match &mut self.supplier {
            _ if self.is_over => return Pulled::Ended,
            Supplier::Exchange(exchange, _) => exchange.body(),
            Supplier::Gone | Supplier::Object { slice_bytes: 0, .. } => &[],
            Supplier::Object { reader, offset, slice_bytes, .. } => {
                let chunk = reader.chunk_at(*offset).unwrap_or_default();
                &chunk[..chunk.len().min(*slice_bytes)]
            }
        };
        match bytes {
            [] => Pulled::Waits,
            bytes => Pulled::Piece { bytes: &bytes[..bytes.len().min(bytes_max)], is_last: false },
        }
    }

    fn consume(&mut self, count: usize) {
        match &mut self.supplier {
            Supplier::Exchange(exchange, _) => exchange.consume_body(count),
            Supplier::Object { offset, slice_bytes, .. } => {
                *offset += count as u64;
                *slice_bytes = slice_bytes.saturating_sub(count);
            }
            Supplier::Gone => {}
        }
    }
}

impl Fetch {
    /// Moves a whole body from its source through filters into the object.
    ///
    /// # Errors
    /// [`BodyFailure`]; the part received by then is in the object.
    pub(super) async fn fill(
        &mut self,
        object: &Arc<Object>,
        source: &mut Source,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        let (mut pull, mut turns) = (Pull::default(), Turns::through(filters));
        loop {
            self.hold_grown(filters);
            match pull.next(source, filters) {
                Next::Bytes { bytes, .. } => self.store(object, bytes).await?,
                Next::Nothing => {}
                Next::Waits => {
                    self.receive_or_flush(object, source, filters).await?;
                    if filters.is_empty() && object.is_passing() {
                        self.hand_over(object, source).await?;
                    }
                    continue;
                }
                Next::Ended => {
                    self.log_notes_of(filters);
                    break;
                }
                Next::Failed(Failure::Filter(error)) => return Err(BodyFailure::Filter(error)),
                // Sources fail only during a wait, and no filter of this side announces a length.
                Next::Failed(Failure::Supply | Failure::Short) => return Err(BodyFailure::Origin(CutShort::GONE)),
            }
            self.log_notes_of(filters);
            self.hold_grown(filters);
            turns.take().await;
        }
        // The rest of the body must be received even if the filters don't use it.
        while !source.is_over {
            self.receive(source).await?;
        }
        Ok(())
    }

    /// Counts the memory that the filters hold by now.
    #[inline]
    fn hold_grown(&mut self, filters: &mut Filters) {
        if filters.is_empty() {
            return;
        }
        let memory = &self.context.memory;
        filters.spare_memory(memory.is_short());
        let (life, bytes) = (&mut self.task.life, filters.held_bytes());
        let before = std::mem::replace(&mut life.held_filter_bytes, bytes);
        if bytes != before {
            life.held_base_bytes = life.held_base_bytes.saturating_sub(before) + bytes;
            life.held.set(memory, life.held.bytes().saturating_sub(before) + bytes);
        }
    }

    /// Logs the findings of the page parser.
    #[inline]
    fn log_notes_of(&mut self, filters: &mut Filters) {
        while let Some(note) = filters.note() {
            self.log.record_fmt(Tag::ESIXmlerror, format_args!("{note}"));
            match note.level() {
                NoteLevel::Error => self.context.count(Main::EsiErrors),
                NoteLevel::Warning => self.context.count(Main::EsiWarnings),
                NoteLevel::Remark => {}
            }
        }
    }

    /// Waits for the next piece and counts it. If the origin pauses, the filters are flushed to the
    /// readers.
    async fn receive_or_flush(
        &mut self,
        object: &Arc<Object>,
        source: &mut Source,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        // A page for ESI is read only when it is complete.
        let is_read_meanwhile =
            object.is_passing() || (self.task.attempt.verdict.do_stream && !object.flags().has(ObjectFlags::ESI));
        if !is_read_meanwhile || !filters.hold_back() {
            return self.receive(source).await;
        }
        let received = {
            let mut receiving = Box::pin(source.more());
            let pause = Duration::from_millis(FLUSH_PAUSE_MILLISECONDS);
            match tokio::time::timeout(pause, &mut receiving).await {
                Ok(received) => received,
                Err(_) => {
                    self.flush(object, filters).await?;
                    receiving.await
                }
            }
        };
        self.count_received(source, received?);
        Ok(())
    }

    /// Stores the bytes that the filters hold back.
    async fn flush(&mut self, object: &Arc<Object>, filters: &mut Filters) -> Result<(), BodyFailure> {
        let mut turns = Turns::through(filters);
        while let Some(bytes) = filters.flush().map_err(BodyFailure::Filter)? {
            self.store(object, bytes).await?;
            self.hold_grown(filters);
            turns.take().await;
        }
        Ok(())
    }

    /// Waits for the next piece and counts it.
    async fn receive(&mut self, source: &mut Source) -> Result<(), BodyFailure> {
        let bytes = source.more().await?;
        self.count_received(source, bytes);
        Ok(())
    }

    /// Counts a piece that was received.
    fn count_received(&mut self, source: &Source, bytes: usize) {
        if source.is_at_origin() {
            self.task.attempt.received_pieces += u64::from(bytes > 0);
            self.task.life.account.response_body += bytes as u64;
            self.count_backend(Vbe::BerespBodybytes, bytes as u64);
        }
    }

    /// Hands the received piece to the reader of a passing body, if it is in a buffer of its own.
    async fn hand_over(&mut self, object: &Arc<Object>, source: &mut Source) -> Result<(), BodyFailure> {
        let Some(piece) = source.take_piece() else { return Ok(()) };
        let bytes = piece.len();
        self.hold_passing(object, bytes);
        match object.hand_over(piece) {
            Ok(()) => self.task.attempt.kept.body_bytes += bytes as u64,
            Err(piece) => self.store(object, &piece).await?,
        }
        Ok(())
    }

    /// Appends body bytes to the object, waiting for room. If the body cannot be kept, from here on
    /// it is only passed to its readers.
    ///
    /// # Errors
    /// [`AppendError`].
    pub(super) async fn store(&mut self, object: &Arc<Object>, bytes: &[u8]) -> Result<(), AppendError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if object.is_passing() {
            self.hold_passing(object, bytes.len());
        }
        if let Some(watched) = &mut self.task.attempt.watched {
            watched.body.update(bytes);
        }
        let before = object.available_bytes();
        match object.append(bytes).await {
            Ok(()) => {}
            Err(AppendError::Abandoned) => return Err(AppendError::Abandoned),
            // Half a page has no plan.
            Err(error) if object.flags().has(ObjectFlags::ESI) => return Err(error),
            Err(error) => {
                let stored = (object.available_bytes() - before) as usize;
                self.overflow(object, error)?;
                let under_way = self.in_flight_bytes();
                self.task.life.held.add(&self.context.memory, under_way);
                object.append(&bytes[stored..]).await?;
            }
        }
        self.task.attempt.kept.body_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Counts the bytes in flight of a body that is only passed to its readers. Few are allowed
    /// while memory for requests is short.
    fn hold_passing(&mut self, object: &Object, more: usize) {
        let memory = &self.context.memory;
        let most = self.in_flight_bytes();
        let most = if memory.is_short() { most.min(PASS_IN_FLIGHT_BYTES_SHORT) } else { most };
        object.limit_in_flight(most);
        let under_way = object.under_way_bytes();
        let life = &mut self.task.life;
        life.held.set(memory, life.held_base_bytes + under_way + more.min(most.saturating_sub(under_way)));
    }
}
