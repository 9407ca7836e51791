//! The path of a request's body from its holder to an origin, through filters: [`relay_body`], for
//! a body that is sent before the response is received (`transmit.rs`) and for one that is sent at
//! the same time (`upload.rs`).

use crate::bodies::filters::Filters;
use crate::bodies::pull::{Failure, Next, Pull};
use crate::bodies::request::BodyReadError;
use crate::bodies::source::Handed;
use crate::origin::Unsent;
use crate::turns::Turns;

/// Reason why a request was not sent completely.
pub(super) enum SendError {
    /// The origin does not accept bytes: error number.
    Origin(i32),
    /// The origin has answered, or will not, and does not accept the rest.
    Answered,
    /// The transport cannot express the request: the part that it cannot express.
    Unsayable(&'static str),
    /// The client does not deliver its body.
    Client(String),
}

impl From<Unsent> for SendError {
    fn from(unsent: Unsent) -> SendError {
        match unsent {
            Unsent::Broken(errno) => SendError::Origin(errno),
            Unsent::Answered => SendError::Answered,
        }
    }
}

impl From<BodyReadError> for SendError {
    fn from(error: BodyReadError) -> SendError {
        SendError::Client(error.0)
    }
}

/// Path of a request's body.
pub(super) trait BodyRelay {
    /// Sends a piece.
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError>;

    /// Waits for the client's next piece; `None` at the end of its body.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, SendError>;
}

/// Sends a body after filtering it: the bytes handed over so far, then the bytes that follow. Fails
/// unless the client sends exactly the announced length; `missing_bytes` is the number it still has
/// to send.
pub(super) async fn relay_body(
    relay: &mut impl BodyRelay,
    mut handed: Handed,
    mut missing_bytes: Option<u64>,
    mut stages: Filters,
) -> Result<(), SendError> {
    let (mut pull, mut turns) = (Pull::default(), Turns::through(&stages));
    loop {
        match pull.next(&mut handed, &mut stages) {
            Next::Bytes { bytes, .. } => relay.send(bytes).await?,
            Next::Nothing => {}
            Next::Waits => {
                handed.give(next_piece(relay, &mut missing_bytes).await?);
                continue;
            }
            Next::Ended => break,
            Next::Failed(Failure::Filter(error)) => return Err(SendError::Client(error.text().to_owned())),
            // The client's side fails only during a wait, and no filter of this side announces a
            // length.
            Next::Failed(Failure::Supply | Failure::Short) => {
                return Err(SendError::Client("short body".to_owned()));
            }
        }
        turns.take().await;
    }
    // The rest is taken from the client even if the filters don't use it.
    while !handed.is_over() {
        handed.give(next_piece(relay, &mut missing_bytes).await?);
    }
    match missing_bytes {
        Some(1..) => Err(SendError::Client("less than announced".to_owned())),
        Some(0) | None => Ok(()),
    }
}

/// The client's next piece; `None` at the end of its body.
async fn next_piece(relay: &mut impl BodyRelay, missing_bytes: &mut Option<u64>) -> Result<Option<Vec<u8>>, SendError> {
    let Some(piece) = relay.next().await? else { return Ok(None) };
    if let Some(missing) = missing_bytes {
        let left = missing.checked_sub(piece.len() as u64);
        *missing = left.ok_or_else(|| SendError::Client("more than announced".to_owned()))?;
    }
    Ok(Some(piece))
}
