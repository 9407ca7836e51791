//! The state that VCL can access: one [`World`], whichever side runs the method.
//!
//! The evaluator uses it through [`vcl_run::host::Host`] (`world/host.rs`), VMODs also through
//! [`vmods::VmodContext`] (`world/vmod_context.rs`). Each object of the language has a file with
//! its variables, as every side that has the object provides them. Headers and start lines are in
//! one place, next to the messages (`world/messages.rs`). The rows in `surface::vcl` assign each
//! variable to an object.
//!
//! A world is a handful of references and exists for one run of a method, until that ends or waits.
//! *Invariants:* every change to a message is logged; for everything that the compiler allows in a
//! method there is a match arm, all else is out of reach (`world/tests.rs` tests all rows).

mod bereq;
mod beresp;
mod connection;
pub(crate) mod decision;
mod host;
mod invalidation;
mod messages;
mod obj;
mod obj_stale;
mod param;
mod req;
mod resp;
pub(crate) mod run_words;
mod sess;
mod storage;
mod value;
mod vmod_context;
pub(crate) mod vmod_wait;

pub(crate) use decision::Decision;
pub(crate) use req::is_usual;
pub(crate) use vmod_wait::VmodWait;

use crate::context::{Engine, Loop};
use crate::fetch::task::FetchTask;
use crate::loaded_vcl::LoadedVcl;
use crate::request::task::Task;
use crate::session::SessionView;
use backend::{ClientName, Notes, ResolveContext, TestableRandom};
use decision::Noted;
use shm::log::{LogBuffer, LogId};
use std::rc::Rc;
use surface::tag::Tag;
use surface::vcl::Method;
use vcl_run::host::Failure;
use vmods::TaskState;

/// The world of one run of a method.
pub(crate) struct World<'a> {
    engine: &'a Engine,
    vcl: &'a LoadedVcl,
    method: Method,
    /// `now`, seconds since 1970.
    now: f64,
    /// The log of the task.
    log: &'a mut LogBuffer,
    /// The place in VCL that is about to set a value, if reasons are recorded.
    noted: Option<Noted>,
    side: Side<'a>,
}

/// The side that runs the method.
pub(crate) enum Side<'a> {
    /// A client's request.
    Client(ClientSide<'a>),
    /// A fetch.
    Fetch(FetchSide<'a>),
    /// vcl_init or vcl_fini: VCL without a request. Nothing can wait, and the records belong to no
    /// transaction.
    Housekeeping(&'a mut TaskState),
}

/// A client's request, with its view of the session.
pub(crate) struct ClientSide<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) session: &'a mut SessionView,
    pub(crate) task: &'a mut Task,
}

/// A fetch, which may have a client's request on loan.
pub(crate) struct FetchSide<'a> {
    pub(crate) context: &'a Rc<Loop>,
    pub(crate) task: &'a mut FetchTask,
}

/// The compiler rejects this access, so the program must be damaged.
fn out_of_reach() -> Failure {
    Failure("VCL program is damaged".to_owned())
}

fn no_request() -> Failure {
    Failure("There is no request in vcl_init{} and vcl_fini{}".to_owned())
}

impl<'a> World<'a> {
    /// The world of a method at `now` (seconds since 1970).
    pub(crate) fn new(
        (engine, vcl): (&'a Engine, &'a LoadedVcl),
        (method, now): (Method, f64),
        log: &'a mut LogBuffer,
        side: Side<'a>,
    ) -> World<'a> {
        World { engine, vcl, method, now, log, noted: None, side }
    }

    /// True if the places of VCL's decisions are recorded.
    fn records_reasons(&self) -> bool {
        match &self.side {
            Side::Client(client) => client.task.settings.reasons,
            Side::Fetch(fetch) => fetch.task.order.parameters.tells_reasons(),
            Side::Housekeeping(_) => false,
        }
    }

    /// True if the program points that a task passes are logged: `said` is VCL's choice, otherwise
    /// the log's mask decides.
    fn traces(&self, said: Option<bool>) -> bool {
        said.unwrap_or_else(|| !self.log.is_masked(Tag::VCLTrace))
    }

    /// The event loop of the task.
    fn context(&self) -> Option<&'a Rc<Loop>> {
        match &self.side {
            Side::Client(client) => Some(client.context),
            Side::Fetch(fetch) => Some(fetch.context),
            Side::Housekeeping(_) => None,
        }
    }

    /// State that directors need to choose a backend. Their messages go to `notes`.
    fn resolving<'b>(&'b self, notes: &'b Notes) -> ResolveContext<'b> {
        let random = &self.engine.random;
        match &self.side {
            Side::Client(client) => client.resolving(random, (self.method, self.now), notes),
            Side::Fetch(fetch) => fetch.task.resolving(random, self.now, notes),
            Side::Housekeeping(_) => ResolveContext {
                now: self.now,
                random,
                url: b"",
                host: None,
                client: ClientName::default(),
                digest: None,
                is_for_cache: false,
                shard: None,
                notes,
            },
        }
    }

    /// Logs the messages of directors.
    pub(crate) fn log_notes(&mut self, notes: &Notes) {
        match &self.side {
            Side::Client(_) | Side::Fetch(_) => log_notes(self.engine, self.log, notes),
            // All records belong to no transaction here; this keeps their order.
            Side::Housekeeping(_) => {
                for note in notes.take() {
                    self.log.record(note.tag, note.text.as_bytes());
                }
            }
        }
    }
}

/// Logs the messages of directors, in the task's transaction or in none.
pub(crate) fn log_notes(engine: &Engine, log: &mut LogBuffer, notes: &Notes) {
    for note in notes.take() {
        match note.of_task {
            true => log.record(note.tag, note.text.as_bytes()),
            false => engine.ring.write(note.tag, LogId::NONE, note.text.as_bytes()),
        }
    }
}

impl ClientSide<'_> {
    fn resolving<'b>(
        &'b self,
        random: &'b TestableRandom,
        (method, now): (Method, f64),
        notes: &'b Notes,
    ) -> ResolveContext<'b> {
        let task = &*self.task;
        ResolveContext {
            now,
            random,
            url: task.request.target(),
            host: task.found.prepared.as_ref().map_or(&task.request, |prepared| &prepared.bereq).get("Host"),
            client: ClientName {
                identity: task.choices.client_identity.as_deref(),
                address: Some(self.session.peer.client.ip()),
            },
            digest: knows_digest(method).then_some(&task.life.digest),
            is_for_cache: matches!(method, Method::Miss | Method::Hit),
            shard: (method == Method::Pipe).then(|| task.vmod_state.shard_parameters()),
            notes,
        }
    }
}

/// True if vcl_hash runs before this method, on the client's side.
fn knows_digest(method: Method) -> bool {
    !matches!(method, Method::Recv | Method::Hash)
}

#[cfg(test)]
mod tests;
