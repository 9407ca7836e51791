//! What a fragment's request knows of the page that includes it, and of the client's request above all pages.

use crate::bodies::fragment::Fragment;
use crate::bodies::page::Budget;
use crate::loaded_vcl::LoadedVcl;
use message::Message;
use std::rc::Rc;
use std::sync::Arc;

/// A request that was made to be included in a page.
pub(crate) struct Inclusion {
    /// `req.esi_level`: 1 for the fragments of what the client asked for.
    pub(crate) level: u64,
    /// The client's request.
    pub(crate) top: Rc<Top>,
    /// Where the response goes.
    pub(crate) fragment: Rc<Fragment>,
}

/// What all fragments below one client's request share.
pub(crate) struct Top {
    /// `req_top`, as VCL left it.
    pub(crate) request: Message,
    /// `req_top.time`.
    pub(crate) received_at: f64,
    /// The VCL that runs for fragments, if a label has led the client's request to another one.
    pub(crate) vcl: Option<Arc<LoadedVcl>>,
    /// How many fragments may be open.
    pub(crate) budget: Rc<Budget>,
}
