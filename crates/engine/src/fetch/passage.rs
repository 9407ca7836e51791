//! How a request's body passes from whoever has it to an origin, through filters: [`pass_on`], for a body that is sent before the
//! response is received (`transmit.rs`) and for one that is sent meanwhile (`upload.rs`).

use crate::bodies::filters::Filters;
use crate::bodies::pull::{Failure, Next, Pull};
use crate::bodies::request::BodyReadError;
use crate::bodies::source::Handed;
use crate::turns::Turns;

/// Why a request was not sent completely.
pub(super) enum SendError {
    /// The origin does not accept it: error number.
    Origin(i32),
    /// The transport cannot say it: what of it.
    Unsayable(&'static str),
    /// The client does not deliver its body.
    Client(String),
}

/// A way that a request's body takes.
pub(super) trait Passage {
    /// Sends a piece.
    async fn send(&mut self, piece: &[u8]) -> Result<(), SendError>;

    /// Waits for the client's next piece; `None` at the end of its body.
    async fn next(&mut self) -> Option<Result<Vec<u8>, BodyReadError>>;
}

/// Sends a body after filtering it: what has been handed over, and then what comes. Fails unless the client sends exactly the
/// announced length; `missing_bytes` is what it still has to send.
pub(super) async fn pass_on(
    passage: &mut impl Passage,
    mut handed: Handed,
    mut missing_bytes: Option<u64>,
    mut stages: Filters,
) -> Result<(), SendError> {
    let (mut pull, mut turns) = (Pull::default(), Turns::through(&stages));
    loop {
        match pull.next(&mut handed, &mut stages) {
            Next::Bytes { bytes, .. } => passage.send(bytes).await?,
            Next::Nothing => {}
            Next::Waits => {
                handed.give(next_piece(passage, &mut missing_bytes).await?);
                continue;
            }
            Next::Ended => break,
            Next::Failed(Failure::Filter(error)) => return Err(SendError::Client(error.text().to_owned())),
            // The client's side fails only while it is waited for, and no filter of this side promises a length.
            Next::Failed(Failure::Supply | Failure::Short) => {
                return Err(SendError::Client("short body".to_owned()));
            }
        }
        turns.take().await;
    }
    // The rest is taken from the client even if the filters don't use it.
    while !handed.is_over() {
        handed.give(next_piece(passage, &mut missing_bytes).await?);
    }
    match missing_bytes {
        Some(1..) => Err(SendError::Client("less than announced".to_owned())),
        Some(0) | None => Ok(()),
    }
}

/// The client's next piece; `None` at the end of its body.
async fn next_piece(passage: &mut impl Passage, missing_bytes: &mut Option<u64>) -> Result<Option<Vec<u8>>, SendError> {
    let Some(piece) = passage.next().await else { return Ok(None) };
    let piece = piece.map_err(|error| SendError::Client(error.0))?;
    if let Some(missing) = missing_bytes {
        let left = missing.checked_sub(piece.len() as u64);
        *missing = left.ok_or_else(|| SendError::Client("more than announced".to_owned()))?;
    }
    Ok(Some(piece))
}
