//! Which headers go on from one message to the next.

use message::Message;
pub use surface::header::{
    DROP_FETCH as FETCH, DROP_INSERT as INSERT, DROP_PASS as PASS, DROP_STORE_PASS as STORE_PASS,
};

/// Which way a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Client request to backend request, passed.
    Pass,
    /// Client request to backend request, for the cache.
    Fetch,
    /// Backend response to an object that is kept.
    InsertStored,
    /// Backend response to an object that serves one request.
    StorePass,
    /// Object to response.
    Deliver,
}

/// Appends to `to` the headers of `from` that may go that way. The start line of `to` is the caller's.
pub fn copy_filtered(_from: &Message, _to: &mut Message, _class: Class) {}

/// Joins all headers of that name into one, separated by `, `, in place of the first. Nothing happens when there are
/// fewer than two.
pub fn collapse(_message: &mut Message, _name: &str) {}
