//! Facts about a response for `leak_guard` (`leak.rs`).

use crate::leak_guard::{BodyHash, CredentialsHash, WatchedKey};
use crate::world::decision::Noted;
use semantics::rfc::PrivateMark;

/// Facts about a response before VCL; new for each response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The mark with which the origin sent it, if the request had credentials.
    pub(crate) mark: Option<PrivateMark>,
    /// The request had a Cookie.
    pub(crate) has_cookie: bool,
    /// The request had Authorization.
    pub(crate) has_authorization: bool,
    /// The place where VCL last changed a marking header.
    pub(crate) changed_by: Option<Noted>,
}

/// A body that is compared with that of other credentials.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) key: WatchedKey,
    pub(crate) credentials: CredentialsHash,
    pub(crate) body: BodyHash,
    /// The index does not get the object before its body was compared.
    pub(crate) is_held: bool,
}
