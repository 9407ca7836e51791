//! The client's unidirectional streams.
//!
//! *Invariant:* a connection has one control stream and one stream of each kind of QPACK; they
//! never end before it. A stream that does not send its type in time is not read any more. Source:
//! RFC 9114 §6.2.

use super::quic::{ReceiveStream, StreamOver};
use crate::context::Loop;
use crate::deadline::{Deadline, duration};
use ::http2::Allowance;
use ::http3::Code;
use ::http3::control::ControlReader;
use ::http3::unidirectional::{QpackReader, StreamKind};
use ::http3::varint;
use bytes::Bytes;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Most bytes read at a time.
const READ_BYTES: usize = 4 << 10;

/// A stream of the client.
struct Stream<R> {
    receive: R,
    reading: Reading,
}

/// State of reading a stream.
enum Reading {
    /// The type of the stream, as far as it was received, and the time when the stream was opened.
    Kind(Vec<u8>, Instant),
    Control(ControlReader),
    Qpack(QpackReader),
}

/// All such streams of a connection.
pub(super) struct UnidirectionalStreams<R> {
    streams: Vec<Stream<R>>,
    /// Types that were seen.
    seen: Vec<StreamKind>,
    /// Deadline for the types of streams.
    deadline: Deadline,
    cost: Cost,
}

/// Cost of a client's useless input: frames that can be repeated, streams of unknown types. Each
/// costs Copal a little work.
struct Cost {
    allowance: Allowance,
    began_at: Instant,
    /// Number of counted frames of the control stream.
    frames: u64,
    /// Number of requests.
    requests: u64,
}

impl Cost {
    fn new() -> Cost {
        Cost { allowance: Allowance::default(), began_at: Instant::now(), frames: 0, requests: 0 }
    }

    /// Counts the requests that the client has begun: each earns it some of those frames, since
    /// some are about priorities.
    fn earn(&mut self, requests: u64) {
        (self.requests..requests).for_each(|_| self.allowance.earn(0));
        self.requests = requests;
    }

    fn charge(&mut self, count: u64) -> Result<(), Code> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let is_paid = count == 0 || self.allowance.charge(count, self.began_at.elapsed());
        is_paid.then_some(()).ok_or(Code::ExcessiveLoad)
    }

    /// Counts useless frames on the control stream.
    fn charge_frames(&mut self, frames: u64) -> Result<(), Code> {
        let more = frames - std::mem::replace(&mut self.frames, frames);
        self.charge(more)
    }
}

impl<R: ReceiveStream> UnidirectionalStreams<R> {
    pub(super) fn new() -> UnidirectionalStreams<R> {
        UnidirectionalStreams { streams: Vec::new(), seen: Vec::new(), deadline: Deadline::new(), cost: Cost::new() }
    }

    /// Takes over a stream that the client has opened.
    pub(super) fn add(&mut self, receive: R) {
        self.streams.push(Stream { receive, reading: Reading::Kind(Vec::new(), Instant::now()) });
    }

    /// Reads the received bytes. Returns true if the client announced that it will leave.
    /// `requests` is the number of requests that it has begun.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub(super) fn poll(&mut self, wait: &mut Context<'_>, context: &Loop, requests: u64) -> Result<bool, Code> {
        self.cost.earn(requests);
        let mut goes_away = false;
        let mut index = 0;
        while index < self.streams.len() {
            match self.poll_stream(index, wait)? {
                Progress::Nothing => index += 1,
                Progress::GoesAway => {
                    goes_away = true;
                    index += 1;
                }
                Progress::Over => drop(self.streams.swap_remove(index)),
            }
        }
        self.poll_kinds(wait, context)?;
        Ok(goes_away)
    }

    /// Gives up streams that have not sent their type for `timeout_idle`: bytes received after the
    /// gap are held for them.
    fn poll_kinds(&mut self, wait: &mut Context<'_>, context: &Loop) -> Result<(), Code> {
        let opened_at = |stream: &Stream<R>| match stream.reading {
            Reading::Kind(_, since) => Some(since),
            Reading::Control(_) | Reading::Qpack(_) => None,
        };
        let mut allowed = None;
        while let Some(oldest) = self.streams.iter().filter_map(opened_at).min() {
            let allowed: Duration =
                *allowed.get_or_insert_with(|| duration(context.engine.parameters.load().timeout_idle));
            self.deadline.set(oldest + allowed);
            if self.deadline.poll(wait).is_pending() {
                break;
            }
            let Some(place) = self.streams.iter().position(|stream| opened_at(stream) == Some(oldest)) else { break };
            self.streams.swap_remove(place).receive.stop(Code::StreamCreationError.number());
            self.cost.charge(1)?;
        }
        Ok(())
    }

    /// Takes the client's priorities for requests since the last call.
    pub(super) fn take_priorities(&mut self) -> Vec<(u64, Bytes)> {
        let control = self.streams.iter_mut().find_map(|stream| match &mut stream.reading {
            Reading::Control(control) => Some(control),
            Reading::Kind(..) | Reading::Qpack(_) => None,
        });
        control.map(ControlReader::take_priorities).unwrap_or_default()
    }

    fn poll_stream(&mut self, index: usize, wait: &mut Context<'_>) -> Result<Progress, Code> {
        let mut progress = Progress::Nothing;
        loop {
            let Stream { receive, reading } = &mut self.streams[index];
            let chunk = match receive.poll_chunk(wait, READ_BYTES) {
                Poll::Pending => return Ok(progress),
                Poll::Ready(Ok(Some(chunk))) => chunk,
                Poll::Ready(Ok(None) | Err(StreamOver)) => {
                    // It may end before it has sent its type.
                    return match reading {
                        Reading::Kind(..) => self.cost.charge(1).map(|()| Progress::Over),
                        Reading::Control(_) | Reading::Qpack(_) => Err(Code::ClosedCriticalStream),
                    };
                }
            };
            match reading {
                Reading::Kind(number, _) => {
                    number.extend_from_slice(&chunk);
                    let Some((kind, used)) = varint::read(number) else { continue };
                    let rest = Bytes::copy_from_slice(&number[used..]);
                    let kind = StreamKind::of(kind)?;
                    if kind == StreamKind::Unknown {
                        receive.stop(Code::StreamCreationError.number());
                        return self.cost.charge(1).map(|()| Progress::Over);
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
                    if take(reading, rest, &mut self.cost)? {
                        progress = Progress::GoesAway;
                    }
                }
                reading => {
                    if take(reading, chunk, &mut self.cost)? {
                        progress = Progress::GoesAway;
                    }
                }
            }
        }
    }
}

/// Result of reading a stream.
enum Progress {
    Nothing,
    /// The client will leave.
    GoesAway,
    /// The stream has no meaning any more.
    Over,
}

fn take(reading: &mut Reading, bytes: Bytes, cost: &mut Cost) -> Result<bool, Code> {
    match reading {
        Reading::Kind(..) => Ok(false),
        Reading::Control(control) => {
            let goes_away = control.take(bytes)?;
            cost.charge_frames(control.idle_frames())?;
            Ok(goes_away)
        }
        Reading::Qpack(qpack) => qpack.take(&bytes).map(|()| false),
    }
}
