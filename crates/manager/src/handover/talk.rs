//! What predecessor and successor say to each other behind the document, in frames of `worker::control`.
//!
//! The two may be of different versions: a word is never taken away or moved, new ones come last.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::net::UnixStream;
use worker::control;

/// Successor to predecessor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// Everything is checked; the worker may end.
    Ready,
    /// My worker serves, and everybody sees me.
    Serving,
    /// I give up, and have changed nothing that lasts.
    Failed(String),
    /// My worker is still on its way, and I am alive.
    Working,
}

/// Predecessor to successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// There is no worker any more: start yours.
    Go,
}

/// Waits for what the other one says next; `None` when it is gone.
///
/// # Errors
/// It is late, or says what is no word.
pub async fn hear<T: for<'de> Deserialize<'de>>(
    stream: &mut UnixStream,
    patience: Duration,
) -> Result<Option<T>, String> {
    match tokio::time::timeout(patience, control::receive(stream)).await {
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
    async fn silence_an_end_and_nonsense_are_told_apart() {
        tokio::time::pause();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Err("it did not answer within 60 s".to_owned()));
        control::send(&mut theirs, &Said::Ready).await.unwrap();
        assert_eq!(hear(&mut ours, LONG).await, Ok(Some(Said::Ready)));
        control::send(&mut theirs, &9_u8).await.unwrap();
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Err("it answers in another language".to_owned()));
        drop(theirs);
        assert_eq!(hear::<Said>(&mut ours, LONG).await, Ok(None));
    }
}
