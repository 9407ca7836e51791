//! Why there is no connection to an origin, for fetches and pipes.

use backend::OpenError;
use surface::reason::Reason;

/// The reason for operators when a backend gave no connection.
pub(crate) fn reason_of(error: &OpenError) -> Reason {
    match error {
        OpenError::None => Reason::NoBackend,
        OpenError::Unhealthy(_) => Reason::BackendSick,
        OpenError::Busy(_) => Reason::BackendBusy,
        OpenError::Failed(_, 0) => Reason::BackendHeldDown,
        OpenError::Failed(..) => Reason::ConnectFailed,
        OpenError::ProxyWrite(..) => Reason::ProxyHeaderFailed,
        OpenError::Tls(..) => Reason::TlsFailed,
    }
}
