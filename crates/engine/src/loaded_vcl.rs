//! Loaded VCLs: a linked program with its backends, directors and VMOD objects; labels; which one is active.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One loaded VCL. Requests and fetches hold an `Arc`; when the last goes after a discard, it is gone.
pub struct LoadedVcl {
    /// Name.
    pub name: String,
}

/// All loaded VCLs: replaced whole when something changes.
#[derive(Default, Clone)]
pub struct VclTable {
    /// By name.
    pub loaded: BTreeMap<String, Arc<LoadedVcl>>,
    /// Label → VCL name.
    pub labels: BTreeMap<String, String>,
    /// The active one.
    pub active: Option<Arc<LoadedVcl>>,
}
