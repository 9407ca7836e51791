//! State that a fragment's request shares with the page that includes it, and with the client's
//! request above all pages.

use crate::bodies::fragment::Fragment;
use crate::bodies::page::Budget;
use crate::loaded_vcl::LoadedVcl;
use message::Message;
use std::rc::Rc;
use std::sync::Arc;

/// Inclusion of a request in a page.
pub(crate) struct Inclusion {
    /// `req.esi_level`: 1 for the fragments of the page that the client requested.
    pub(crate) level: u64,
    /// The client's request.
    pub(crate) top: Rc<Top>,
    /// Destination of the response.
    pub(crate) fragment: Rc<Fragment>,
}

/// State shared by all fragments below one client's request.
pub(crate) struct Top {
    /// `req_top`, as VCL left it.
    pub(crate) request: Message,
    /// `req_top.time`.
    pub(crate) received_at: f64,
    /// The VCL that runs for fragments, if a label has led the client's request to another one.
    pub(crate) vcl: Option<Arc<LoadedVcl>>,
    /// Limit of the number of open fragments.
    pub(crate) budget: Rc<Budget>,
}
