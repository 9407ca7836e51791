//! The parameters of a shard director's choice, in layers: the arguments of a call take precedence
//! over the parameters of the running task, these over the set associated with the director, and
//! that over the defaults.
//!
//! A [`ParameterSet`] belongs to the loaded VCL and changes only in vcl_init; the settings of a
//! backend task are kept in its [`TaskParameters`]. The key and its kind are one value, so that a
//! layer sets both or neither.

use parking_lot::RwLock;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// The source of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The request's hash (vcl_hash) on the backend side, otherwise that of the URL.
    Hash,
    /// The hash of the URL.
    Url,
    /// A number that was given as an argument.
    Key(u32),
    /// The first bytes of a blob.
    Blob(u32),
}

impl By {
    /// The word in VCL.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            By::Hash => "HASH",
            By::Url => "URL",
            By::Key(_) => "KEY",
            By::Blob(_) => "BLOB",
        }
    }
}

/// The key that a blob gives: its first four bytes; a shorter blob is padded with zeros in front.
#[must_use]
pub fn blob_key(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |key, byte| key << 8 | u32::from(*byte))
}

/// The health that a choice takes into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The chosen member must be healthy; members that are skipped as alternatives need not be.
    Chosen,
    /// Health does not matter.
    Ignore,
    /// Only healthy members are counted.
    All,
}

impl Wanted {
    /// The word in VCL.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Wanted::Chosen => "CHOSEN",
            Wanted::Ignore => "IGNORE",
            Wanted::All => "ALL",
        }
    }
}

/// One layer of parameters; `None` = use the layer below.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Parameters {
    /// The source of the key.
    pub by: Option<By>,
    /// Number of members to skip.
    pub alt: Option<u64>,
    /// Probability of using the next member, 0 to 1; −1 = the director's setting.
    pub warmup: Option<f64>,
    /// True if members that became healthy ramp up.
    pub rampup: Option<bool>,
    /// The health that is taken into account.
    pub healthy: Option<Wanted>,
}

impl Parameters {
    /// This layer on top of another.
    #[must_use]
    pub fn over(&self, below: &Parameters) -> Parameters {
        Parameters {
            by: self.by.or(below.by),
            alt: self.alt.or(below.alt),
            warmup: self.warmup.or(below.warmup),
            rampup: self.rampup.or(below.rampup),
            healthy: self.healthy.or(below.healthy),
        }
    }

    /// This layer on top of the defaults: no field is `None`.
    #[must_use]
    pub fn completed(&self) -> Parameters {
        self.over(&Parameters {
            by: Some(By::Hash),
            alt: Some(0),
            warmup: Some(-1.0),
            rampup: Some(true),
            healthy: Some(Wanted::Chosen),
        })
    }
}

/// A `directors.shard_param` object.
#[derive(Debug)]
pub struct ParameterSet {
    id: u32,
    name: String,
    values: RwLock<Parameters>,
}

impl ParameterSet {
    /// An empty set. `id` identifies it among the sets of the VCL.
    #[must_use]
    pub fn new(id: u32, name: &str) -> ParameterSet {
        ParameterSet { id, name: name.to_owned(), values: RwLock::default() }
    }

    /// The VCL name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identifies it among the sets of the VCL.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its own parameters, without those of a task.
    #[must_use]
    pub fn values(&self) -> Parameters {
        self.values.read().clone()
    }

    /// Replaces its parameters.
    pub fn set(&self, values: Parameters) {
        *self.values.write() = values;
    }

    /// Its parameters, overridden by those that the task has set for it.
    #[must_use]
    pub fn values_in(&self, task: Option<&TaskParameters>) -> Parameters {
        match task.and_then(|task| task.of_set(self.id)) {
            Some(layer) => layer.over(&self.values()),
            None => self.values(),
        }
    }
}

/// Arguments of `.backend(resolve=LAZY, …)` for a director, stored in the running task.
#[derive(Clone, Debug, Default)]
pub struct DirectorLayer {
    /// The arguments given.
    pub values: Parameters,
    /// The set given as `param`; it replaces the associated one.
    pub set: Option<Arc<ParameterSet>>,
}

/// The parameters of one backend task (or pipe). Empty and without an allocation until VCL sets
/// some.
#[derive(Clone, Debug, Default)]
pub struct TaskParameters {
    directors: Vec<(DirectorId, DirectorLayer)>,
    sets: Vec<(u32, Parameters)>,
}

impl TaskParameters {
    /// Removes everything.
    pub fn clear(&mut self) {
        self.directors.clear();
        self.sets.clear();
    }

    /// The stored layer of a director.
    #[must_use]
    pub fn of_director(&self, director: DirectorId) -> Option<&DirectorLayer> {
        self.directors.iter().find(|(id, _)| *id == director).map(|(_, layer)| layer)
    }

    /// The layer of a director; created if there is none.
    pub fn director_mut(&mut self, director: DirectorId) -> &mut DirectorLayer {
        let place = self.directors.iter().position(|(id, _)| *id == director).unwrap_or_else(|| {
            self.directors.push((director, DirectorLayer::default()));
            self.directors.len() - 1
        });
        &mut self.directors[place].1
    }

    fn of_set(&self, set: u32) -> Option<&Parameters> {
        self.sets.iter().find(|(id, _)| *id == set).map(|(_, values)| values)
    }

    /// Replaces the task's settings for a parameter set.
    pub fn change_set(&mut self, set: u32, values: Parameters) {
        match self.sets.iter_mut().find(|(id, _)| *id == set) {
            Some((_, held)) => *held = values,
            None => self.sets.push((set, values)),
        }
    }
}
