//! Reasons for a missing connection to an origin, for fetches and pipes.

use backend::OpenError;
use backend::backend::is_local;
use surface::reason::Reason;

const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;

/// True if all connections that the backend may have are in use.
pub(super) fn is_for_lack_of_place(error: &OpenError) -> bool {
    matches!(error, OpenError::Busy(_) | OpenError::QueueFull(_) | OpenError::WaitTimeout(_))
}

/// The reason for operators when a backend gave no connection.
pub(crate) fn reason_of(error: &OpenError) -> Reason {
    match error {
        OpenError::None => Reason::NoBackend,
        OpenError::Unhealthy(_) => Reason::BackendSick,
        OpenError::BreakerOpen(_) => Reason::BackendAside,
        OpenError::Busy(_) => Reason::BackendBusy,
        OpenError::QueueFull(_) => Reason::BackendQueueFull,
        OpenError::WaitTimeout(_) => Reason::BackendWaitTimeout,
        OpenError::Failed(_, 0) => Reason::BackendHeldDown,
        OpenError::Failed(_, ECONNREFUSED) => Reason::ConnectRefused,
        OpenError::Failed(_, ETIMEDOUT) => Reason::ConnectTimeout,
        OpenError::Failed(_, errno) if is_local(*errno) => Reason::ConnectLocalError,
        OpenError::Failed(..) => Reason::ConnectFailed,
        OpenError::ProxyWrite(..) => Reason::ProxyHeaderFailed,
        OpenError::Tls(..) => Reason::TlsFailed,
    }
}
