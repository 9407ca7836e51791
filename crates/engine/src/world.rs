//! What VCL can touch: one [`World`], whichever side runs the method.
//!
//! The evaluator asks it through [`vcl_run::host::Host`] (`world/host.rs`), VMODs besides through [`vmods::VmodContext`] (`world/vmod_context.rs`). Variables lie in
//! one file for each object of the language, with what each side answers that has the object; headers and start lines follow
//! once, from the messages (`world/messages.rs`). Which object a variable belongs to says its row in `surface::vcl`.
//!
//! A world is a handful of references and lives for one run of a method, until it ends or waits. *Invariants:* what changes a
//! message leaves its log records; what the compiler lets a method touch has an arm, everything else is out of reach
//! (`world/tests.rs` goes through all rows).

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
mod sess;
mod storage;
mod value;
mod vmod_context;
pub(crate) mod vmod_wait;

pub(crate) use decision::Decision;
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

/// The world of one method.
pub(crate) struct World<'a> {
    engine: &'a Engine,
    vcl: &'a LoadedVcl,
    method: Method,
    /// `now`, seconds since 1970.
    now: f64,
    /// The log of the task.
    log: &'a mut LogBuffer,
    /// Where VCL is about to set something, if somebody will be told.
    noted: Option<Noted>,
    side: Side<'a>,
}

/// Who runs the method.
pub(crate) enum Side<'a> {
    /// A client's request.
    Client(ClientSide<'a>),
    /// A fetch.
    Fetch(FetchSide<'a>),
    /// vcl_init or vcl_fini: VCL without a request. There is nothing to wait for, and the records go to no transaction.
    Housekeeping(&'a mut TaskState),
}

/// A client's request and what it knows of its session.
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

/// The compiler has refused to touch this here, so the program is damaged.
fn out_of_reach() -> Failure {
    Failure("VCL program is damaged".to_owned())
}

fn no_request() -> Failure {
    Failure("There is no request in vcl_init{} and vcl_fini{}".to_owned())
}

impl<'a> World<'a> {
    /// The world of a method, at that time (seconds since 1970).
    pub(crate) fn new(
        (engine, vcl): (&'a Engine, &'a LoadedVcl),
        (method, now): (Method, f64),
        log: &'a mut LogBuffer,
        side: Side<'a>,
    ) -> World<'a> {
        World { engine, vcl, method, now, log, noted: None, side }
    }

    /// Whether somebody will be told where VCL decided something.
    fn tells_reasons(&self) -> bool {
        match &self.side {
            Side::Client(client) => client.task.settings.reasons,
            Side::Fetch(fetch) => fetch.task.order.parameters.tells_reasons(),
            Side::Housekeeping(_) => false,
        }
    }

    /// Whether the points of the program that a task passes are recorded: as VCL said, else as the log's mask says.
    fn traces(&self, said: Option<bool>) -> bool {
        said.unwrap_or_else(|| !self.log.is_masked(Tag::VCLTrace))
    }

    /// The loop of the task.
    fn context(&self) -> Option<&'a Rc<Loop>> {
        match &self.side {
            Side::Client(client) => Some(client.context),
            Side::Fetch(fetch) => Some(fetch.context),
            Side::Housekeeping(_) => None,
        }
    }

    /// What decides where directors lead. What they have to say goes to `notes`.
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

    /// Writes what directors had to say.
    pub(crate) fn log_notes(&mut self, notes: &Notes) {
        match &self.side {
            Side::Client(_) | Side::Fetch(_) => log_notes(self.engine, self.log, notes),
            // All records are of no transaction here, and in their order.
            Side::Housekeeping(_) => {
                for note in notes.take() {
                    self.log.record(note.tag, note.text.as_bytes());
                }
            }
        }
    }
}

/// Writes what directors had to say: to the task's log, or as records of no transaction.
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

/// Whether vcl_hash has run before it, on the client's side.
fn knows_digest(method: Method) -> bool {
    !matches!(method, Method::Recv | Method::Hash)
}

#[cfg(test)]
mod tests;
