//! What a method of VCL waits for.

use vcl_run::value::Value;
use vmods::{Finish, Pending};

/// What a method waits for, and then what came of it.
pub(crate) enum VmodWait {
    /// The client's body shall be read and kept, if it has at most that many bytes.
    CacheBody(u64),
    /// A VMOD's own wait.
    Pending(Pending),
    /// Its end.
    Finish(Finish),
    /// The value of the call.
    Value(Value),
}
