//! What the client says beside its requests: its streams that go one way.
//!
//! *Invariant:* a connection has one control stream and one stream of each kind of QPACK; they never end before it. Source: RFC
//! 9114 §6.2.

use super::quic::{ReceiveStream, StreamOver};
use ::http3::Code;
use ::http3::control::ControlReader;
use ::http3::unidirectional::{QpackReader, StreamKind};
use ::http3::varint;
use bytes::Bytes;
use std::task::{Context, Poll};
use surface::limits::HTTP3_IDLE_FRAMES_MAX;

/// Most bytes read at a time.
const READ_BYTES: usize = 4 << 10;

/// A stream of the client.
struct Stream<R> {
    receive: R,
    reading: Reading,
}

/// What a stream turned out to be.
enum Reading {
    /// The number that says what it is, as far as it has come.
    Kind(Vec<u8>),
    Control(ControlReader),
    Qpack(QpackReader),
}

/// All such streams of a connection.
pub(super) struct Beside<R> {
    streams: Vec<Stream<R>>,
    /// Kinds that there were.
    seen: Vec<StreamKind>,
    /// Streams of which nothing was known. Each of them costs a little, and means nothing.
    unknown: u64,
}

impl<R: ReceiveStream> Beside<R> {
    pub(super) fn new() -> Beside<R> {
        Beside { streams: Vec::new(), seen: Vec::new(), unknown: 0 }
    }

    /// Takes over a stream that the client has opened.
    pub(super) fn add(&mut self, receive: R) {
        self.streams.push(Stream { receive, reading: Reading::Kind(Vec::new()) });
    }

    /// Reads what has come. Returns whether the client said that it will go away. Each of the client's `requests` earns it a frame
    /// that carries nothing: those of priorities are such frames, and a connection may live for days.
    ///
    /// # Errors
    /// What the connection must end with.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, requests: u64) -> Result<bool, Code> {
        let frames_max = HTTP3_IDLE_FRAMES_MAX.saturating_add(requests);
        let mut goes_away = false;
        let mut index = 0;
        while index < self.streams.len() {
            match self.poll_stream(index, context, frames_max)? {
                Heard::Nothing => index += 1,
                Heard::GoesAway => {
                    goes_away = true;
                    index += 1;
                }
                Heard::Over => drop(self.streams.swap_remove(index)),
            }
        }
        if self.unknown > HTTP3_IDLE_FRAMES_MAX {
            return Err(Code::ExcessiveLoad);
        }
        Ok(goes_away)
    }

    /// Takes what the client said of its requests' priorities since the last call.
    pub(super) fn take_priorities(&mut self) -> Vec<(u64, Bytes)> {
        let control = self.streams.iter_mut().find_map(|stream| match &mut stream.reading {
            Reading::Control(control) => Some(control),
            Reading::Kind(_) | Reading::Qpack(_) => None,
        });
        control.map(ControlReader::take_priorities).unwrap_or_default()
    }

    fn poll_stream(&mut self, index: usize, context: &mut Context<'_>, frames_max: u64) -> Result<Heard, Code> {
        let mut heard = Heard::Nothing;
        loop {
            let Stream { receive, reading } = &mut self.streams[index];
            let chunk = match receive.poll_chunk(context, READ_BYTES) {
                Poll::Pending => return Ok(heard),
                Poll::Ready(Ok(Some(chunk))) => chunk,
                Poll::Ready(Ok(None) | Err(StreamOver)) => {
                    // It may end before it has said what it is.
                    let is_critical = !matches!(reading, Reading::Kind(_));
                    self.unknown += u64::from(!is_critical);
                    return if is_critical { Err(Code::ClosedCriticalStream) } else { Ok(Heard::Over) };
                }
            };
            match reading {
                Reading::Kind(number) => {
                    number.extend_from_slice(&chunk);
                    let Some((kind, used)) = varint::read(number) else { continue };
                    let rest = Bytes::copy_from_slice(&number[used..]);
                    let kind = StreamKind::of(kind)?;
                    if kind == StreamKind::Unknown {
                        receive.stop(Code::StreamCreationError.number());
                        self.unknown += 1;
                        return Ok(Heard::Over);
                    }
                    if self.seen.contains(&kind) {
                        return Err(Code::StreamCreationError);
                    }
                    self.seen.push(kind);
                    *reading = match kind {
                        StreamKind::Control => Reading::Control(ControlReader::default()),
                        StreamKind::Encoder => Reading::Qpack(QpackReader::new(true)),
                        StreamKind::Decoder | StreamKind::Unknown => Reading::Qpack(QpackReader::new(false)),
                    };
                    if take(reading, rest, frames_max)? {
                        heard = Heard::GoesAway;
                    }
                }
                reading => {
                    if take(reading, chunk, frames_max)? {
                        heard = Heard::GoesAway;
                    }
                }
            }
        }
    }
}

/// What a look at a stream has brought.
enum Heard {
    Nothing,
    /// The client will go away.
    GoesAway,
    /// The stream means nothing any more.
    Over,
}

fn take(reading: &mut Reading, bytes: Bytes, frames_max: u64) -> Result<bool, Code> {
    match reading {
        Reading::Kind(_) => Ok(false),
        Reading::Control(control) => {
            let goes_away = control.take(bytes)?;
            if control.idle_frames() > frames_max { Err(Code::ExcessiveLoad) } else { Ok(goes_away) }
        }
        Reading::Qpack(qpack) => qpack.take(&bytes).map(|()| false),
    }
}
