//! The queue of spans, and the thread that sends them.
//!
//! A collector that is away costs the memory of the queue: the oldest spans give way to new ones.
//! Unsent spans are counted with their cause.

use super::client::{Client, Sent};
use crate::log_reader::Seldom;
use crate::totals::Totals;
use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use surface::limits::{TRACE_BATCH_SPANS_MAX, TRACE_QUEUE_SPANS_MAX};
use surface::metric::SpanDrop;
use surface::version::COPAL_VERSION;

/// Longest time for which a span waits for others.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts to send a batch.
const ATTEMPTS: u32 = 4;
/// Pause before the second attempt; each further one is twice as long, and up to twice by chance.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest time for the queue at the end.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    spans: VecDeque<Span>,
    ended: Option<Instant>,
}

/// Spans on their way.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Adds spans; returns the number of old ones that gave way. Does not wait.
    pub fn put(&self, spans: Vec<Span>) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.spans.extend(spans);
        let surplus = state.spans.len().saturating_sub(TRACE_QUEUE_SPANS_MAX);
        state.spans.drain(..surplus);
        self.changed.notify_one();
        surplus as u64
    }

    /// The next batch; `None` at the end.
    fn take(&self) -> Option<Vec<Span>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |state: &mut State| state.spans.is_empty() && state.ended.is_none();
        let state = self.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let is_small = |state: &mut State| state.spans.len() < TRACE_BATCH_SPANS_MAX && state.ended.is_none();
        let waited = self.changed.wait_timeout_while(state, BATCH_INTERVAL, is_small);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let count = state.spans.len().min(TRACE_BATCH_SPANS_MAX);
        let batch: Vec<Span> = state.spans.drain(..count).collect();
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits; false if the end comes first.
    fn pause(&self, time: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, time, |state| state.ended.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.ended.is_none()
    }

    fn is_late(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended.is_some_and(|ended| ended.elapsed() > ENDING)
    }
}

/// The sender at work.
pub(crate) struct Exporter {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Exporter {
    pub(super) fn start(
        client: Client,
        resource: Resource,
        totals: &Arc<Totals>,
    ) -> std::io::Result<(Exporter, Arc<Queue>)> {
        let queue = Arc::new(Queue::default());
        let sender = Sender {
            client,
            resource,
            totals: Arc::clone(totals),
            queue: Arc::clone(&queue),
            complaint: Seldom::default(),
        };
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(move || sender.run())?;
        Ok((Exporter { queue: Arc::clone(&queue), thread: Some(thread) }, queue))
    }
}

impl Drop for Exporter {
    /// Sends the rest of the queue, as far as that is possible in a short time.
    fn drop(&mut self) {
        self.queue.state.lock().unwrap_or_else(PoisonError::into_inner).ended = Some(Instant::now());
        self.queue.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let until = Instant::now() + ENDING;
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

struct Sender {
    client: Client,
    resource: Resource,
    totals: Arc<Totals>,
    queue: Arc<Queue>,
    complaint: Seldom,
}

impl Sender {
    fn run(&self) {
        while let Some(batch) = self.queue.take() {
            let spans = batch.len() as u64;
            if self.queue.is_late() {
                self.totals.drop_spans(SpanDrop::Unreachable, spans);
                continue;
            }
            match self.send(batch) {
                Ok(()) => self.totals.count_spans(spans),
                Err((why, text)) => {
                    self.totals.drop_spans(why, spans);
                    self.complaint.say(format_args!("traces: {text}; spans are dropped"));
                }
            }
        }
    }

    /// Sends a batch, in several attempts.
    fn send(&self, spans: Vec<Span>) -> Result<(), (SpanDrop, String)> {
        let scope =
            InstrumentationScope { name: "copal".to_owned(), version: COPAL_VERSION.to_owned(), ..Default::default() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..Default::default() }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans, ..Default::default() }];
        let message = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let body = compress(&message).map_err(|error| (SpanDrop::Refused, error.to_string()))?;
        let mut pause = PAUSE;
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            let wanted = match self.client.send(&body) {
                Ok(Sent::Taken) => return Ok(()),
                Ok(Sent::Refused(status)) => {
                    return Err((SpanDrop::Refused, format!("the collector answered with status {status}")));
                }
                Ok(Sent::Later(time)) => {
                    last = "the collector is busy".to_owned();
                    time
                }
                Err(error) => {
                    last = format!("the collector cannot be reached: {error}");
                    None
                }
            };
            let chance = (RandomState::new().hash_one(attempt) % 1000) as u32;
            let jittered = pause + pause * chance / 1000;
            if attempt + 1 == ATTEMPTS || !self.queue.pause(wanted.unwrap_or(jittered)) {
                break;
            }
            pause *= 2;
        }
        Err((SpanDrop::Unreachable, last))
    }
}

fn compress(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(message)?;
    encoder.finish()
}
