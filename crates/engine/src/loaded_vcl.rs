//! Loaded VCLs: a linked program with its backends, directors and VMOD objects; also labels, and
//! the active VCL.
//!
//! ```text
//! load ─vcl_init─→ warm ⇄ cooling/busy → cold          discard ─last reference gone─→ vcl_fini
//! ```
//!
//! Temperature: a warm VCL runs its probes and shows its counters; a cold one does neither. A VCL
//! that should be cold but still serves requests is cooling (`auto`) or busy (`cold`). The worker
//! runs probes and publishes counters, guided by [`LoadedVcl::temperature`]. Requests and fetches
//! hold an `Arc<LoadedVcl>` and so keep it alive. The [`VclTable`] is replaced as a whole when
//! something changes. This file defines a loaded VCL; loading and discarding, with vcl_init and
//! vcl_fini, are in `vcl_life.rs`.

use crate::canary::Canary;
use backend::{Backend, Directors};
use semantics::HttpPolicy;
use shm::locks::ClassMutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use surface::closed_set::VclState;
use surface::counter::LockClass;
use surface::parameter::Parameters;
use surface::vcl::{Generation, Var};
use vcl_run::link::LinkedProgram;
use vcl_run::program::{Endpoint, Op, Program};
use vcl_run::regex::RegexLimits;
use vcl_run::value::DirectorId;
use vmods::Instances;

/// Temperature of a VCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temperature {
    /// Being loaded.
    Init,
    /// Not in use, no probes.
    Cold,
    /// Ready.
    Warm,
    /// Set to cold, but requests still run on it.
    Busy,
    /// Unused for a while, but requests still run on it.
    Cooling,
}

impl Temperature {
    /// The name in `vcl.list`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Temperature::Init => "init",
            Temperature::Cold => "cold",
            Temperature::Warm => "warm",
            Temperature::Busy => "busy",
            Temperature::Cooling => "cooling",
        }
    }
}

/// The changing state of a loaded VCL.
#[derive(Debug)]
struct Life {
    state: VclState,
    /// Probes run and counters are shown.
    is_warm: bool,
    /// Time when it was last active, labelled or in use, seconds since 1970.
    last_used: f64,
}

/// A loaded VCL. Requests and fetches hold an `Arc`; after a discard, vcl_fini runs when the last
/// of them is dropped.
pub struct LoadedVcl {
    /// Name.
    pub name: String,
    /// The program, ready to run.
    pub program: Arc<LinkedProgram>,
    /// The generation of the language it is written in.
    pub(crate) generation: Generation,
    /// Rules that decide which responses may be stored, and for what time.
    pub(crate) policy: HttpPolicy,
    /// Backends and directors of the VCL.
    pub directors: Directors,
    /// The VCL reads `resp.time`; if not, the clock need not be read.
    pub(crate) reads_response_time: bool,
    /// The VCL reads `obj.lastuse`, as the old dialects could; if not, the time of use is updated
    /// only at intervals.
    pub(crate) reads_last_use: bool,
    /// Objects that VMODs keep for it.
    pub instances: Instances,
    life: ClassMutex<Life>,
    is_finished: AtomicBool,
}

impl LoadedVcl {
    /// Links a program and makes its backends; vcl_init has not run yet. `now` is seconds since
    /// 1970.
    ///
    /// # Errors
    /// The text for the CLI: the program is damaged.
    pub(crate) fn link(
        name: &str,
        program: Program,
        state: VclState,
        parameters: &Parameters,
        now: f64,
    ) -> Result<Arc<LoadedVcl>, String> {
        let limit = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let limits = RegexLimits {
            matches: limit(parameters.pcre2_match_limit),
            depth: limit(parameters.pcre2_depth_limit),
            jit: parameters.pcre2_jit_compilation,
        };
        let program = LinkedProgram::link_with(program, limits).map_err(|error| format!("VCL \"{name}\" {error}"))?;
        let directors = Directors::new(name, program.program(), now);
        Ok(Arc::new(LoadedVcl {
            name: name.to_owned(),
            instances: Instances::new(program.program()),
            reads_response_time: program.program().code.contains(&Op::Read(Var::RespTime)),
            reads_last_use: program.program().code.contains(&Op::Read(Var::ObjLastuse)),
            generation: program.program().generation(),
            policy: policy_of(program.program()),
            program: Arc::new(program),
            directors,
            life: ClassMutex::new(LockClass::Vcl, Life { state, is_warm: state != VclState::Cold, last_used: now }),
            is_finished: AtomicBool::new(false),
        }))
    }

    /// True if vcl_fini still has to run. True only once: the caller must then run it.
    pub(crate) fn take_finish(&self) -> bool {
        !self.is_finished.swap(true, Ordering::AcqRel)
    }

    /// True if it is written in an old dialect; it then keeps that dialect's semantics.
    pub(crate) fn is_legacy(&self) -> bool {
        self.generation.is_legacy()
    }

    /// The director that a request uses unless VCL sets another.
    #[must_use]
    pub fn default_director(&self) -> Option<DirectorId> {
        self.directors.default_director()
    }

    /// The VCL behind one of the labels that it names, and that label. `index`: of the label in the
    /// program.
    pub(crate) fn behind_label<'a>(&'a self, table: &'a VclTable, index: u32) -> Option<(&'a Arc<LoadedVcl>, &'a str)> {
        let label = self.program.program().labels.get(index as usize)?;
        Some((table.loaded.get(table.labels.get(label)?)?, label))
    }

    /// Names of the VMODs that it imports.
    pub(crate) fn vmods(&self) -> &[String] {
        &self.program.program().vmods
    }

    /// The operator's state.
    #[must_use]
    pub fn state(&self) -> VclState {
        self.life.lock().state
    }

    /// The number of requests, fetches and sessions that hold it; debug can be one more. `held` is
    /// the number of other references (the table, the worker).
    #[must_use]
    pub fn busy(self: &Arc<Self>, held: usize) -> usize {
        let prevents_cold = self.instances.debug_life().prevents_cold();
        Arc::strong_count(self).saturating_sub(held) + usize::from(prevents_cold)
    }

    /// True if probes run and counters are shown.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        self.life.lock().is_warm
    }

    /// The VCL's temperature at that time, given the number of requests on it.
    #[must_use]
    pub fn temperature(&self, busy: usize, now: f64) -> Temperature {
        let is_cooling = self.instances.debug_life().is_cooling(now);
        let life = self.life.lock();
        match (life.is_warm, life.state) {
            (true, _) => Temperature::Warm,
            (false, _) if busy == 0 && is_cooling => Temperature::Cooling,
            (false, _) if busy == 0 => Temperature::Cold,
            (false, VclState::Cold) => Temperature::Busy,
            (false, VclState::Auto | VclState::Warm) => Temperature::Cooling,
        }
    }

    /// Sets the operator's state. Returns true if the VCL became warm or cold, so that probes and
    /// counters must follow.
    pub fn set_state(&self, state: VclState, now: f64) -> bool {
        let mut life = self.life.lock();
        life.state = state;
        let was_warm = life.is_warm;
        match state {
            VclState::Warm => life.is_warm = true,
            VclState::Cold => life.is_warm = false,
            // Stays as it is until it cools down or is used.
            VclState::Auto => life.last_used = now,
        }
        life.is_warm != was_warm
    }

    /// Makes it warm because it becomes active or a label points to it. Returns true if it was cold
    /// before.
    ///
    /// # Errors
    /// The operator keeps it cold.
    pub fn warm_up(&self, now: f64) -> Result<bool, String> {
        let mut life = self.life.lock();
        if life.state == VclState::Cold {
            return Err(format!("VCL '{}' is cold - set to auto or warm first", self.name));
        }
        life.last_used = now;
        Ok(!std::mem::replace(&mut life.is_warm, true))
    }

    /// Makes an unused `auto` VCL cold after `cooldown` seconds. `is_used`: it is active, labelled
    /// or has requests. Returns true if it became cold now.
    pub fn cool_down(&self, is_used: bool, cooldown: f64, now: f64) -> bool {
        let mut life = self.life.lock();
        if is_used {
            life.last_used = now;
        }
        let goes = life.state == VclState::Auto && life.is_warm && !is_used && now - life.last_used >= cooldown;
        if goes {
            life.is_warm = false;
        }
        goes
    }

    /// Its backends that have a probe; the worker runs [`backend::run_probe`] for each while the
    /// VCL is warm. Backends of names that are looked up have their probes run by
    /// [`backend::dns_names::run`].
    #[must_use]
    pub fn probed_backends(&self) -> Vec<Arc<Backend>> {
        self.own_backends().filter(|backend| backend.probe().is_some()).collect()
    }

    /// Excludes `backend x none`, which is not a backend.
    fn own_backends(&self) -> impl Iterator<Item = Arc<Backend>> {
        let is_some = |backend: &&Arc<Backend>| backend.definition().endpoint != Endpoint::None;
        let backends = self.directors.backends().iter().filter(is_some).map(Arc::clone);
        backends.chain(self.directors.run_time_backends())
    }

    /// Its backends, including those made at run time and those of names that are looked up.
    #[must_use]
    pub fn all_backends(&self) -> Vec<Arc<Backend>> {
        self.own_backends().chain(self.directors.dns_names().backends()).collect()
    }
}

impl std::fmt::Debug for LoadedVcl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedVcl").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A VCL that serves a share of the clients, next to the active one.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The VCL.
    pub vcl: Arc<LoadedVcl>,
    /// The choice of clients, and the counts of the groups.
    pub canary: Arc<Canary>,
}

/// All loaded VCLs; replaced as a whole when something changes.
#[derive(Default, Clone, Debug)]
pub struct VclTable {
    /// The VCLs by name.
    pub loaded: BTreeMap<String, Arc<LoadedVcl>>,
    /// Label → VCL name.
    pub labels: BTreeMap<String, String>,
    /// The active VCL.
    pub active: Option<Arc<LoadedVcl>>,
    /// The VCL on trial.
    pub trial: Option<Trial>,
    /// The label by which the active VCL was chosen; `None` when it was named directly.
    pub active_label: Option<String>,
}

impl VclTable {
    /// The VCL of that name, or the one that the label of that name points to.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<LoadedVcl>> {
        self.loaded.get(self.labels.get(name).map_or(name, String::as_str))
    }

    /// True if the VCL is active or on trial, or a label points to it.
    #[must_use]
    pub fn is_in_use(&self, vcl: &LoadedVcl) -> bool {
        self.active.as_ref().is_some_and(|active| active.name == vcl.name)
            || self.trial.as_ref().is_some_and(|trial| trial.vcl.name == vcl.name)
            || self.labels.values().any(|target| *target == vcl.name)
    }

    /// Number of references to a VCL that this table itself holds.
    #[must_use]
    pub fn held(&self, vcl: &Arc<LoadedVcl>) -> usize {
        let in_list = self.loaded.values().filter(|other| Arc::ptr_eq(other, vcl)).count();
        let is_tried = self.trial.as_ref().is_some_and(|trial| Arc::ptr_eq(&trial.vcl, vcl));
        in_list
            + usize::from(self.active.as_ref().is_some_and(|active| Arc::ptr_eq(active, vcl)))
            + usize::from(is_tried)
    }
}

/// The rules that a program was compiled for: those of its dialect, or those that the operator
/// chose.
fn policy_of(program: &Program) -> HttpPolicy {
    match program.generation() {
        Generation::V1 | Generation::V20 | Generation::V21 => HttpPolicy::Varnish2,
        Generation::V3 => HttpPolicy::Varnish3,
        Generation::V4 if program.follows_rfc => HttpPolicy::Rfc,
        Generation::V4 => HttpPolicy::Varnish,
    }
}
