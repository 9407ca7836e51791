//! Interface between VMODs and the engine, in addition to the evaluator's [`Host`]:
//! [`VmodContext`].
//!
//! The engine implements it for client tasks, backend tasks and vcl_init/vcl_fini. Where something
//! is not applicable to a task (a request body in vcl_init, for example), it fails or does nothing,
//! as documented for each method.
//!
//! A function that must wait (for a file, a name, the client's body) passes a [`Pending`] future to
//! the engine and returns `Called::Wait`; the engine awaits the future and calls the [`Finish`]
//! that it yields to get the result of the call.

use crate::task::TaskState;
use crate::tcp::SocketOptions;
use backend::{Directors, Notes, ResolveContext, TestableRandom};
use http2::Resets;
use message::Message;
use semantics::Purge;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Method};
use vcl_run::host::{Called, Failure, Host};
use vcl_run::tls::TlsFacts;
use vcl_run::value::{DirectorId, Scratch, Value};

use crate::instances::Instances;
use crate::shared::SharedState;

/// Runs when a wait is over, and produces the value of the call.
pub type Finish = Box<dyn FnOnce(&mut dyn VmodContext, &mut Scratch) -> Result<Value, Failure>>;

/// A future to wait for on this event loop.
pub type Pending = Pin<Box<dyn Future<Output = Finish>>>;

/// The client's connection of a task.
#[derive(Clone, Copy, Debug)]
pub struct ClientConnection<'a> {
    /// `client.ip` and its port.
    pub client: SocketAddr,
    /// True for a Unix-domain socket.
    pub is_unix: bool,
    /// User and group of the peer of a Unix-domain socket, if the system provides them.
    pub credentials: Option<(u32, u32)>,
    /// The type-length-value elements of a version 2 PROXY header, already checked; empty without
    /// one.
    pub proxy_elements: &'a [u8],
    /// Results of the TLS handshake; `None` without TLS.
    pub tls: Option<&'a TlsFacts>,
    /// The TLS handshake is not complete: received data is early data.
    pub is_early: bool,
}

/// The transaction of a log record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transaction {
    /// No transaction.
    None,
    /// The session or client request with that number.
    Client(u64),
    /// The backend request with that number.
    Backend(u64),
}

/// The running task for VMODs: the evaluator's view of it, and more.
pub trait VmodContext: Host {
    /// The current method.
    fn method(&self) -> Method;
    /// The random number generator of the process, which `debug.srandom` seeds.
    fn random(&self) -> &TestableRandom;
    /// The backends and directors of the VCL.
    fn directors(&self) -> &Directors;
    /// The input for choices of directors in this task. Their log records go to `notes`.
    fn resolve_context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a>;
    /// The backend that the fetch was sent to; `None` before that, and on the client side.
    fn used_backend(&self) -> Option<DirectorId>;
    /// The VMOD objects of the VCL.
    fn instances(&self) -> &Instances;
    /// The state that VMODs keep for the whole process.
    fn shared(&self) -> &SharedState;
    /// The state that VMODs keep for the task. A client request keeps it over restarts, a backend
    /// request over retries; an ESI sub-request has its own.
    fn task(&mut self) -> &mut TaskState;
    /// The head of a message as VCL sees it now; `None` if the task has no such message. This takes
    /// `&mut self` because the message may have to be read first.
    fn message(&mut self, http: HttpObject) -> Option<&Message>;
    /// The head of a message that the task may change; `None` if it has none or may only read it
    /// (`obj`). A VMOD's changes leave no log records.
    fn message_mut(&mut self, http: HttpObject) -> Option<&mut Message>;
    /// The hash of the request, after vcl_hash.
    fn digest(&self) -> Option<[u8; 32]>;
    /// The current parameters.
    fn parameters(&self) -> Arc<Parameters>;
    /// Writes a log record for another transaction, or for none.
    fn log_for(&mut self, transaction: Transaction, tag: Tag, payload: &[u8]);
    /// Bytes of the task's messages; they count against the parameter request_memory_max, as the
    /// strings of VCL do.
    fn message_bytes(&self) -> usize;
    /// The client's connection; in backend tasks that of the client that caused them. `None` in
    /// vcl_init and vcl_fini.
    fn connection(&self) -> Option<ClientConnection<'_>>;
    /// Results of the TLS handshake with the origin that has answered; `None` without TLS, and if
    /// there is no origin.
    fn backend_tls(&self) -> Option<&TlsFacts> {
        None
    }
    /// The budget of resets of the client's connection, if it uses HTTP/2; `None` in other tasks
    /// than the client's.
    fn http2_resets(&self) -> Option<&Resets>;
    /// Writes a Timestamp record for the task, with the present time. Does nothing outside a
    /// transaction.
    fn timestamp(&mut self, label: &str);
    /// Reads the client's body into memory if it is no longer than `limit_bytes`
    /// (`std.cache_req_body`). The value is a BOOL, at once or after a wait that the engine
    /// handles.
    ///
    /// # Errors
    /// The task has no client request.
    fn cache_request_body(&mut self, limit_bytes: u64) -> Result<Called, Failure>;
    /// Enables or disables delaying the 100 response until the body is needed. Takes effect only in
    /// vcl_recv.
    fn late_100_continue(&mut self, late: bool);
    /// Sets the type of service of the client's connection; has no effect on Unix-domain sockets
    /// and in other tasks.
    fn set_type_of_service(&mut self, tos: u8) {
        if let Some((sockets, descriptor)) = self.client_socket() {
            // A Unix-domain socket has no type of service.
            let _ = sockets.set_type_of_service(descriptor, tos);
        }
    }
    /// Restores the original state of `req` or `bereq`.
    ///
    /// # Errors
    /// For other messages, and if it is too late.
    fn rollback(&mut self, http: HttpObject) -> Result<(), Failure>;
    /// Purges the object of vcl_hit or vcl_miss, and waits until the removal is persistent. The
    /// value is an INT: the number of variants removed. Called only in those methods.
    ///
    /// # Errors
    /// The purge is not possible.
    fn purge(&mut self, kind: Purge) -> Result<Called, Failure>;
    /// Purges the objects that have any of the tags in a list (separated by blanks or commas), at
    /// once or over several turns of the event loop. The value is an INT, the number of objects.
    fn purge_tags(&mut self, list: &[u8], kind: Purge) -> Called;
    /// The client's body if all of it is in memory, see [`VmodContext::cache_request_body`].
    fn cached_body(&self) -> Option<Rc<Vec<u8>>>;
    /// Access to the options of the client's connection, and its descriptor number. `None` in tasks
    /// without one.
    fn client_socket(&self) -> Option<(Rc<dyn SocketOptions>, i32)>;
    /// True if the task can wait. vcl_init and vcl_fini cannot; there a function completes
    /// synchronously.
    fn can_wait(&self) -> bool;
    /// Stores the future to wait for; the caller then returns `Called::Wait`. Only allowed if
    /// [`VmodContext::can_wait`].
    fn wait(&mut self, pending: Pending);
}
