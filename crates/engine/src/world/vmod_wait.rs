//! The wait of a VCL method.

use vcl_run::value::Value;
use vmods::{Finish, Pending};

/// The wait of a method, and then its result.
pub(crate) enum VmodWait {
    /// Read and keep the client's body if it has at most this many bytes.
    CacheBody(u64),
    /// A VMOD's own wait. It is cancelled when the client has left.
    Pending(Pending),
    /// Work that is done even if no task waits for it, such as a purge.
    Doing(Pending),
    /// The wait is over; calling this yields the result.
    Finish(Finish),
    /// The value of the call.
    Value(Value),
}
