//! What the VMODs of one loaded VCL hold: the contents of files that std.fileread has read, the bytes of blob objects, and
//! where the VCL's director objects stand among its directors. Shared by all event loops; dropped with the VCL.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use vcl_run::program::{InstanceDefinition, Program};

/// The VMOD objects of one loaded VCL.
pub struct Instances {
    definitions: Vec<InstanceDefinition>,
    /// Contents by path, as first read. Bounded by the file names that the VCL makes up.
    files: RwLock<HashMap<Vec<u8>, Arc<[u8]>>>,
    /// By index of the object.
    blobs: Vec<OnceLock<Box<[u8]>>>,
}

impl Instances {
    /// Before vcl_init has run.
    #[must_use]
    pub fn new(program: &Program) -> Instances {
        Instances {
            definitions: program.instances.clone(),
            files: RwLock::default(),
            blobs: program.instances.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The definition of an object.
    #[must_use]
    pub fn definition(&self, instance: u32) -> Option<&InstanceDefinition> {
        self.definitions.get(instance as usize)
    }

    /// The bytes of a blob object, once made.
    pub(crate) fn blob(&self, instance: Option<u32>) -> Option<&[u8]> {
        self.blobs.get(instance? as usize)?.get().map(|bytes| &bytes[..])
    }

    /// Makes a blob object.
    pub(crate) fn keep_blob(&self, instance: Option<u32>, bytes: Vec<u8>) {
        if let Some(place) = instance.and_then(|instance| self.blobs.get(instance as usize)) {
            let _ = place.set(bytes.into());
        }
    }

    /// The content of a file read before.
    pub(crate) fn file(&self, path: &[u8]) -> Option<Arc<[u8]>> {
        self.files.read().get(path).cloned()
    }

    /// Keeps the content of a file; whoever read it first wins.
    pub(crate) fn keep_file(&self, path: &[u8], content: Arc<[u8]>) -> Arc<[u8]> {
        Arc::clone(self.files.write().entry(path.to_vec()).or_insert(content))
    }
}

impl std::fmt::Debug for Instances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instances").field("objects", &self.definitions.len()).finish_non_exhaustive()
    }
}
