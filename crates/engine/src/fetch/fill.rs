//! Fill: a body gets from where it comes into an object: a piece, what filters make of it step by step, the next piece.
//!
//! The origin's transport shows the pieces where they lie in its buffers; a stale object that is good again shows its own.
//! Nothing is pulled before what came of the last piece is stored, and storing waits: for eviction, or for the readers of what
//! is not kept (`overflow.rs`). Next file: `commit.rs`.

use super::Fetch;
use crate::bodies::filters::Filters;
use crate::origin::{CutShort, OriginExchange, ReceiveLimits};
use crate::turns::Turns;
use body::{FilterError, Flow};
use std::sync::Arc;
use store::{AppendError, BodyReader, Object};
use surface::counter::Vbe;
use surface::limits::PASS_IN_FLIGHT_BYTES_SHORT;

/// Bytes of a stored body copied between two looks at what else there is to do on this event loop.
const SLICE_BYTES: usize = 256 << 10;

/// Where a body comes from.
pub(super) enum Source {
    /// An origin, which has said what comes.
    Origin {
        /// The origin.
        exchange: OriginExchange,
        /// How long it may take.
        limits: ReceiveLimits,
    },
    /// An object that is whole.
    Stored {
        /// The object.
        reader: BodyReader,
        /// Bytes used.
        offset: u64,
    },
}

/// Why a body did not come whole.
pub(super) enum BodyFailure {
    /// The connection ended or stalled, or what came is no body.
    Origin(CutShort),
    /// The stale object that it was to be copied from is not whole.
    Template,
    /// A filter refused it.
    Filter(FilterError),
    /// It could not be stored.
    Store,
    /// Those who wanted it went away.
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
    /// The next piece, where it lies; `None` at the end. It is the next one until it is consumed.
    async fn piece(&mut self) -> Result<Option<&[u8]>, BodyFailure> {
        match self {
            Source::Origin { exchange, limits } => exchange.piece(limits).await.map_err(BodyFailure::Origin),
            Source::Stored { reader, offset } => {
                if *offset > 0 {
                    tokio::task::yield_now().await;
                }
                let is_whole = *offset == reader.object().available_bytes();
                match reader.chunk_at(*offset).filter(|chunk| !chunk.is_empty()) {
                    Some(chunk) => Ok(Some(&chunk[..chunk.len().min(SLICE_BYTES)])),
                    None if is_whole => Ok(None),
                    None => Err(BodyFailure::Template),
                }
            }
        }
    }

    /// So many bytes of the piece have been used.
    fn consume(&mut self, count: usize) {
        match self {
            Source::Origin { exchange, .. } => exchange.consume(count),
            Source::Stored { offset, .. } => *offset += count as u64,
        }
    }
}

impl Fetch {
    /// Brings a whole body from its source through filters into the object.
    ///
    /// # Errors
    /// [`BodyFailure`]; what has come of it till then is in the object.
    pub(super) async fn fill(
        &mut self,
        object: &Arc<Object>,
        source: &mut Source,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        let is_received = matches!(source, Source::Origin { .. });
        loop {
            let piece = source.piece().await?;
            let count = piece.map(<[u8]>::len);
            if is_received {
                self.count_response_body(count.unwrap_or(0));
            }
            if !filters.is_empty() {
                self.store_filtered(object, piece, filters).await?;
            } else if let Some(bytes) = piece {
                self.store(object, bytes).await?;
            }
            let Some(count) = count else { return Ok(()) };
            source.consume(count);
        }
    }

    /// Adds what comes of some of the body, or of its end (`None`): step by step, each waiting for room.
    async fn store_filtered(
        &mut self,
        object: &Arc<Object>,
        input: Option<&[u8]>,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        let mut turns = Turns::default();
        let mut rest = input;
        loop {
            let step = filters.step(rest).map_err(BodyFailure::Filter)?;
            self.store(object, step.bytes).await?;
            if step.flow != Flow::More {
                return Ok(());
            }
            let taken = step.taken;
            rest = rest.map(|rest| &rest[taken..]);
            turns.take().await;
        }
    }

    /// Adds body bytes to the object, waiting for room. A body that cannot be kept is passed on from here on.
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
        let before = object.available_bytes();
        match object.append(bytes).await {
            Ok(()) => {}
            Err(AppendError::Abandoned) => return Err(AppendError::Abandoned),
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

    /// Counts what a body that passes by has under way, which is little while requests hold too much.
    fn hold_passing(&mut self, object: &Object, more: usize) {
        let memory = &self.context.memory;
        let most = self.in_flight_bytes();
        let most = if memory.is_short() { most.min(PASS_IN_FLIGHT_BYTES_SHORT) } else { most };
        object.limit_in_flight(most);
        let under_way = object.under_way_bytes();
        let life = &mut self.task.life;
        life.held.set(memory, life.held_aside_bytes + under_way + more.min(most.saturating_sub(under_way)));
    }

    fn count_response_body(&mut self, bytes: usize) {
        self.task.attempt.received_pieces += u64::from(bytes > 0);
        self.task.life.account.response_body += bytes as u64;
        self.count_backend(Vbe::BerespBodybytes, bytes as u64);
    }
}
