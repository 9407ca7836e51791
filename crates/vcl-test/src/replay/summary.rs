//! The results of a replay: numbers and examples.

use recording::Exchange;
use surface::limits::{REPLAY_EXAMPLES_MAX, REPLAY_NOISE_PERCENT_MAX};
use surface::replay::DifferenceClass;

/// Numbers of one side.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Totals {
    pub(super) requests: u64,
    pub(super) hits: u64,
    /// Requests to the origin.
    pub(super) fetches: u64,
    /// Bytes of their bodies.
    pub(super) bytes: u64,
}

impl Totals {
    pub(super) fn add(&mut self, exchange: &Exchange) {
        self.requests += 1;
        self.hits += u64::from(exchange.handling.starts_with("hit"));
        self.fetches += exchange.fetches.len() as u64;
        self.bytes += exchange.fetches.iter().map(|fetch| fetch.body_bytes).sum::<u64>();
    }

    pub(super) fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.requests.max(1) as f64
    }
}

/// An example of a difference.
#[derive(Clone, Debug)]
pub(super) struct Example {
    /// Method, host and URL.
    pub(super) request: String,
    /// Seconds since the first request.
    pub(super) at: f64,
    pub(super) text: String,
    /// Lines of the old and of the new VCL that decided.
    pub(super) lines: Vec<String>,
}

/// Everything about a replay.
#[derive(Clone, Default, Debug)]
pub(super) struct Summary {
    /// Requests in the recording.
    pub(super) recorded: u64,
    /// Requests that are incomplete in the recording.
    pub(super) cut: u64,
    /// Requests that are not replayed: connections that were relayed, and those that ended early.
    pub(super) skipped: u64,
    /// Requests that need a response from before the recording.
    pub(super) unknown: u64,
    /// Compared requests.
    pub(super) compared: u64,
    /// Of these, those with a difference.
    pub(super) differing: u64,
    /// Requests that the old VCL handled in another way than was recorded.
    pub(super) noise: u64,
    /// Responses of the origin that were recorded with other credentials.
    pub(super) similar: u64,
    /// Places at which requests are missing.
    pub(super) lost: u64,
    /// Fragments (ESI), which are not replayed.
    pub(super) fragments: u64,
    /// The recording ended early, with the reason.
    pub(super) damage: Option<&'static str>,
    pub(super) before: Totals,
    pub(super) after: Totals,
    counts: [u64; DifferenceClass::ALL.len()],
    examples: Vec<(DifferenceClass, Example)>,
    pub(super) noise_examples: Vec<Example>,
}

impl Summary {
    pub(super) fn add(&mut self, class: DifferenceClass) {
        self.counts[class as usize] += 1;
    }

    /// True if a further example of this class is shown.
    pub(super) fn wants_example(&self, class: DifferenceClass) -> bool {
        self.examples_of(class).count() < REPLAY_EXAMPLES_MAX
    }

    pub(super) fn add_example(&mut self, class: DifferenceClass, example: Example) {
        self.examples.push((class, example));
    }

    pub(super) fn examples_of(&self, class: DifferenceClass) -> impl Iterator<Item = &Example> {
        self.examples.iter().filter(move |(of, _)| *of == class).map(|(_, example)| example)
    }

    pub(super) fn count(&self, class: DifferenceClass) -> u64 {
        self.counts[class as usize]
    }

    /// Requests of a class, as a percentage of those compared.
    pub(super) fn share(&self, class: DifferenceClass) -> f64 {
        self.percent(self.count(class))
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.compared.max(1) as f64
    }

    pub(super) fn noise_percent(&self) -> f64 {
        self.percent(self.noise)
    }

    /// The reason why nothing follows from this replay.
    pub(super) fn fault(&self) -> Option<String> {
        if self.compared == 0 {
            return Some(match self.unknown {
                0 => "no request of the recording can be replayed".to_owned(),
                _ => "the recording lacks the responses that were stored before it; try --warm".to_owned(),
            });
        }
        (self.noise_percent() > REPLAY_NOISE_PERCENT_MAX).then(|| {
            format!(
                "the recording does not explain itself: the old VCL handles {:.1} % of the requests in another way \
                 than was recorded",
                self.noise_percent()
            )
        })
    }
}
