//! What VMODs need from the engine, beyond what the evaluator's [`Host`] gives: [`VmodContext`].
//!
//! The engine implements it for client tasks, backend tasks and vcl_init/vcl_fini. Where something makes no sense in a
//! task (a request body in vcl_init, say) it answers with a failure or does nothing, as each method says.
//!
//! A function that must wait (for a file, a name, the client's body) hands over a [`Pending`] future and answers
//! `Called::Wait`; the engine awaits it and calls the [`Finish`] it yields for the result of the call.

use crate::task::TaskState;
use crate::tcp::SocketOptions;
use backend::{Directors, Notes, ResolveContext, TestableRandom};
use message::Message;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::{Called, Failure, Host};
use vcl_run::value::{DirectorId, Scratch, Value};

use crate::instances::Instances;
use crate::shared::SharedState;

/// What remains to be done when a wait is over: makes the value of the call.
pub type Finish = Box<dyn FnOnce(&mut dyn VmodContext, &mut Scratch) -> Result<Value, Failure>>;

/// Something to wait for on this event loop.
pub type Pending = Pin<Box<dyn Future<Output = Finish>>>;

/// What a purge does to the variants of an object. Negative seconds leave a time as it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PurgeKind {
    /// They are gone.
    Hard,
    /// Their times are shortened.
    Soft {
        /// Seconds to live from now on.
        ttl: f64,
        /// Seconds of grace.
        grace: f64,
        /// Seconds to keep.
        keep: f64,
    },
}

/// The client's connection behind a task.
#[derive(Clone, Copy, Debug)]
pub struct ClientConnection<'a> {
    /// `client.ip` and its port.
    pub client: SocketAddr,
    /// It came over a Unix-domain socket.
    pub is_unix: bool,
    /// User and group of the peer of a Unix-domain socket, where the system told.
    pub credentials: Option<(u32, u32)>,
    /// The type-length-value elements of a PROXY header of version 2, which were found well-formed; empty without.
    pub proxy_elements: &'a [u8],
}

/// What a log record belongs to. The number is below 2^30.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transaction {
    /// Nothing.
    None,
    /// The session or client request of that number.
    Client(u32),
    /// The backend request of that number.
    Backend(u32),
}

/// The running task as VMODs see it: what the evaluator knows of it, and more.
pub trait VmodContext: Host {
    /// The method being run.
    fn method(&self) -> Method;
    /// The process's generator, which `debug.srandom` seeds.
    fn random(&self) -> &TestableRandom;
    /// The backends and directors of the VCL.
    fn directors(&self) -> &Directors;
    /// What decides where directors lead in this task. What they have to say goes to `notes`.
    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a>;
    /// The backend that the fetch has been sent to; `None` before, and on the client side.
    fn used_backend(&self) -> Option<DirectorId>;
    /// The VMOD objects of the VCL.
    fn instances(&self) -> &Instances;
    /// What VMODs keep for the whole process.
    fn shared(&self) -> &SharedState;
    /// What VMODs keep for the task. A client request keeps it over restarts, a backend request over retries; an ESI
    /// sub-request has its own.
    fn task(&mut self) -> &mut TaskState;
    /// The head of a message, as VCL sees it at this moment; `None` where the task has none of that kind. It may be read for
    /// this, which is why the task is changed.
    fn message(&mut self, http: HttpObject) -> Option<&Message>;
    /// The head of a message that the task may change; `None` where it has none or may only read it (`obj`). What a VMOD
    /// changes this way leaves no log records.
    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message>;
    /// The hash of the request, once vcl_hash has made it.
    fn digest(&self) -> Option<[u8; 32]>;
    /// The parameters at this moment.
    fn parameters(&self) -> Arc<Parameters>;
    /// Writes a log record of another transaction, or of none.
    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]);
    /// Bytes of the task's messages, which count as the strings of VCL do against the parameter request_memory_max.
    fn message_bytes(&self) -> usize;
    /// The client's connection, in backend tasks that of the client who caused it; `None` in vcl_init and vcl_fini.
    fn connection(&self) -> Option<ClientConnection<'_>>;
    /// Writes a Timestamp record for the task, for the present moment. Nothing happens outside a transaction.
    fn timestamp(&mut self, label: &str);
    /// Reads the client's body into memory if it has at most that many bytes (`std.cache_req_body`): the value is a BOOL,
    /// now or after a wait of the engine's own.
    ///
    /// # Errors
    /// In tasks without a client request.
    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure>;
    /// Whether to delay the 100 answer until the body is needed. Counts in vcl_recv only.
    fn late_100_continue(&mut self, late: bool);
    /// Sets the type of service of the client's connection; without effect on Unix-domain sockets and in other tasks.
    fn set_type_of_service(&mut self, tos: u8) {
        if let Some((sockets, descriptor)) = self.client_socket() {
            // A Unix-domain socket has none.
            let _ = sockets.set_type_of_service(descriptor, tos);
        }
    }
    /// Restores `req` or `bereq` to what it was at first.
    ///
    /// # Errors
    /// For other messages, and when it cannot be done any more.
    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure>;
    /// Purges the object that vcl_hit or vcl_miss is about; returns how many variants it had. Called in those only.
    ///
    /// # Errors
    /// When it cannot be done.
    fn purge(&mut self, kind: PurgeKind) -> Result<usize, Failure>;
    /// Purges the objects with any of the tags in a list (blanks or commas between them), now or over several turns of the
    /// event loop: the value is an INT, how many there were.
    fn purge_tags(&mut self, list: &[u8], kind: PurgeKind) -> Called;
    /// The client's body when it is held whole, see [`VmodContext::cache_request_body`].
    fn cached_body(&self) -> Option<Rc<Vec<u8>>>;
    /// The client's connection: who knows its options, and its descriptor number. `None` in tasks without one.
    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)>;
    /// Whether the task can wait. vcl_init and vcl_fini cannot; a function then does its work at once.
    fn can_wait(&self) -> bool;
    /// Notes what the task waits for; the caller answers `Called::Wait` then. Only when [`VmodContext::can_wait`].
    fn wait(&mut self, pending: Pending);
}
