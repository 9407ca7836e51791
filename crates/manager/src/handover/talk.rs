//! Messages between predecessor and successor after the document, in frames of `control::messages`.
//!
//! The two may be of different versions: a message is never removed or moved, new ones are
//! appended.

use control::messages;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::net::UnixStream;

/// Successor to predecessor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// Everything is checked; the worker may end.
    Ready,
    /// My worker serves, and I am visible to clients of the CLI and readers.
    Serving,
    /// I give up, and have changed nothing permanent.
    Failed(String),
    /// My worker is still starting, and I am alive.
    Working,
}

/// Predecessor to successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// The old worker is gone: start yours.
    Go,
}

/// Waits for the peer's next message; `None` if the peer is gone.
///
/// # Errors
/// It is late, or is not a known message.
pub async fn hear<T: for<'de> Deserialize<'de>>(
    stream: &mut UnixStream,
    patience: Duration,
) -> Result<Option<T>, String> {
    match tokio::time::timeout(patience, messages::receive(stream)).await {
        Err(_) => Err(format!("it did not answer within {} s", patience.as_secs())),
        Ok(Ok(word)) => Ok(word),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err("it answers in another language".into())
        }
        // A reset is an end too.
        Ok(Err(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn words_keep_their_numbers() {
        let bytes = |word: &Said| postcard::to_stdvec(word).unwrap();
        assert_eq!(bytes(&Said::Ready), [0]);
        assert_eq!(bytes(&Said::Serving), [1]);
        assert_eq!(bytes(&Said::Failed("x".into())), [2, 1, b'x']);
        assert_eq!(bytes(&Said::Working), [3]);
        assert_eq!(postcard::to_stdvec(&Told::Go).unwrap(), [0]);
    }

    #[tokio::test]
    async fn timeout_end_and_garbage_are_distinguished() {
        tokio::time::pause();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Err("it did not answer within 60 s".to_owned()));
        messages::send(&mut theirs, &Said::Ready).await.unwrap();
        assert_eq!(hear(&mut ours, LONG).await, Ok(Some(Said::Ready)));
        messages::send(&mut theirs, &9_u8).await.unwrap();
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Err("it answers in another language".to_owned()));
        drop(theirs);
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Ok(None));
    }
}
