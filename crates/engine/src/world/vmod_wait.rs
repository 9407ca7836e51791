//! What a VCL method is waiting for.

use vcl_run::value::Value;
use vmods::{Finish, Pending};

/// What a method is waiting for, and then the result.
pub(crate) enum VmodWait {
    /// Read and keep the client's body if it has at most this many bytes.
    CacheBody(u64),
    /// A VMOD's own wait. Who has gone does not wait any more.
    Pending(Pending),
    /// Something that is done whether or not anybody waits for it, such as a purge.
    Doing(Pending),
    /// The wait is over; calling this yields the result.
    Finish(Finish),
    /// The value of the call.
    Value(Value),
}
