//! Fill: a body gets from where it comes into an object: pulled piece by piece, through filters, into the store.
//!
//! The origin's transport shows the pieces where they lie in its buffers; a stale object that is good again shows its own.
//! Nothing is pulled before what came of the last piece is stored, and storing waits: for eviction, or for the readers of what
//! is not kept (`overflow.rs`). Next file: `commit.rs`.

use super::Fetch;
use crate::bodies::filters::Filters;
use crate::bodies::pull::{Failure, Next, Pull, Pulled, Supply};
use crate::origin::{CutShort, OriginExchange, ReceiveLimits};
use crate::turns::Turns;
use body::FilterError;
use std::sync::Arc;
use store::{AppendError, BodyReader, Object};
use surface::counter::Vbe;
use surface::limits::PASS_IN_FLIGHT_BYTES_SHORT;

/// Bytes of a stored body copied between two looks at what else there is to do on this event loop.
const SLICE_BYTES: usize = 256 << 10;

/// Where a body comes from: it shows a piece until that is used up, and waits for the next.
pub(super) struct Source {
    supplier: Supplier,
    /// There will be no more.
    is_over: bool,
}

/// Who has it.
enum Supplier {
    /// What an origin sends, and how long it may take.
    Exchange(OriginExchange, ReceiveLimits),
    /// What lies in an object that is whole.
    Object {
        reader: BodyReader,
        /// Bytes used.
        offset: u64,
        /// Bytes from there on that are shown.
        slice_bytes: usize,
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
    /// A response's body, which has been announced.
    pub(super) fn of_exchange(exchange: OriginExchange, limits: ReceiveLimits) -> Source {
        Source { supplier: Supplier::Exchange(exchange, limits), is_over: false }
    }

    /// The body of an object that is whole.
    pub(super) fn of_object(reader: BodyReader) -> Source {
        Source { supplier: Supplier::Object { reader, offset: 0, slice_bytes: 0 }, is_over: false }
    }

    /// Gives the origin back.
    pub(super) fn into_exchange(self) -> Option<OriginExchange> {
        match self.supplier {
            Supplier::Exchange(exchange, _) => Some(exchange),
            Supplier::Object { .. } => None,
        }
    }

    /// Waits for the next piece; gives its size, 0 at the end. What is left of the last one is dropped.
    async fn more(&mut self) -> Result<usize, BodyFailure> {
        let count = match &mut self.supplier {
            Supplier::Exchange(exchange, limits) => {
                exchange.consume_body(exchange.body().len());
                exchange.more_body(limits).await.map_err(BodyFailure::Origin)?
            }
            Supplier::Object { reader, offset, slice_bytes } => {
                *offset += *slice_bytes as u64;
                if *offset > 0 {
                    tokio::task::yield_now().await;
                }
                *slice_bytes = reader.chunk_at(*offset).map_or(0, <[u8]>::len).min(SLICE_BYTES);
                if *slice_bytes == 0 && *offset != reader.object().available_bytes() {
                    return Err(BodyFailure::Template);
                }
                *slice_bytes
            }
        };
        self.is_over = count == 0;
        Ok(count)
    }
}

impl Supply for Source {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        let bytes = match &mut self.supplier {
            _ if self.is_over => return Pulled::Ended,
            Supplier::Exchange(exchange, _) => exchange.body(),
            Supplier::Object { slice_bytes: 0, .. } => &[],
            Supplier::Object { reader, offset, slice_bytes } => {
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
        let (mut pull, mut turns) = (Pull::default(), Turns::default());
        loop {
            match pull.next(source, filters) {
                Next::Bytes { bytes, .. } => self.store(object, bytes).await?,
                Next::Nothing => {}
                Next::Waits => {
                    self.receive(source).await?;
                    continue;
                }
                Next::Ended => break,
                Next::Failed(Failure::Filter(error)) => return Err(BodyFailure::Filter(error)),
                // A source says so when it is waited for, and no filter of this side promises anything.
                Next::Failed(Failure::Supply | Failure::Short) => return Err(BodyFailure::Origin(CutShort::GONE)),
            }
            turns.take().await;
        }
        // What the filters have no use for has to come all the same.
        while !source.is_over {
            self.receive(source).await?;
        }
        Ok(())
    }

    /// Waits for the next piece, and counts it.
    async fn receive(&mut self, source: &mut Source) -> Result<(), BodyFailure> {
        let bytes = source.more().await?;
        if let Supplier::Exchange(..) = source.supplier {
            self.task.attempt.received_pieces += u64::from(bytes > 0);
            self.task.life.account.response_body += bytes as u64;
            self.count_backend(Vbe::BerespBodybytes, bytes as u64);
        }
        Ok(())
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
}
