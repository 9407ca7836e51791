//! State that the VMODs of one loaded VCL store: the files that std.fileread has read, the contents
//! of the objects made in vcl_init, and the positions of the director objects among the VCL's
//! directors. Shared by all event loops; dropped with the VCL.

use crate::debug::life::DebugLife;
use parking_lot::{Mutex, RwLock};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use surface::limits::KEPT_FILES_BYTES_MAX;
use vcl_run::program::{InstanceDefinition, Program};

/// The VMOD objects of one loaded VCL.
pub struct Instances {
    definitions: Vec<InstanceDefinition>,
    files: RwLock<Files>,
    /// Contents by index of the object, whose type depends on the VMOD.
    objects: Vec<OnceLock<Box<dyn Any + Send + Sync>>>,
    /// Flags by index of the object: true once its constructor has run.
    made: Vec<AtomicBool>,
    debug_life: DebugLife,
    /// The file that `maxminddb.init_db()` has named.
    geo_database: Mutex<Option<Vec<u8>>>,
}

/// File contents by path, as first read: at most [`KEPT_FILES_BYTES_MAX`] bytes.
#[derive(Default)]
struct Files {
    by_path: HashMap<Vec<u8>, Arc<[u8]>>,
    bytes: usize,
}

/// Memory of a file besides its name and content, in bytes.
const FILE_BYTES: usize = 96;

impl Instances {
    /// The state before vcl_init runs.
    #[must_use]
    pub fn new(program: &Program) -> Instances {
        Instances {
            definitions: program.instances.clone(),
            files: RwLock::default(),
            objects: program.instances.iter().map(|_| OnceLock::new()).collect(),
            made: program.instances.iter().map(|_| AtomicBool::new(false)).collect(),
            debug_life: DebugLife::default(),
            geo_database: Mutex::default(),
        }
    }

    /// Lifecycle requests of debug for the VCL.
    #[must_use]
    pub fn debug_life(&self) -> &DebugLife {
        &self.debug_life
    }

    /// The definition of an object.
    #[must_use]
    pub fn definition(&self, instance: u32) -> Option<&InstanceDefinition> {
        self.definitions.get(instance as usize)
    }

    /// Records that the constructor of an object has run.
    pub(crate) fn note_made(&self, instance: Option<u32>) {
        if let Some(made) = instance.and_then(|instance| self.made.get(instance as usize)) {
            made.store(true, Relaxed);
        }
    }

    /// The name of an object whose constructor should have run but has not.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        let is_missing = |(definition, made): &(&InstanceDefinition, &AtomicBool)| {
            // The second is made from its block, before any VCL runs.
            let needs_none = [("debug", "obj_opt"), ("directors", "dns")];
            !made.load(Relaxed) && !needs_none.contains(&(definition.vmod.as_str(), definition.class.as_str()))
        };
        self.definitions.iter().zip(&self.made).find(is_missing).map(|(definition, _)| definition.name.as_str())
    }

    /// The content of an object; `None` before it is made, or if its type is not `T`.
    pub(crate) fn object<T: 'static>(&self, instance: Option<u32>) -> Option<&T> {
        self.objects.get(instance? as usize)?.get()?.downcast_ref()
    }

    /// Stores the content of an object; only the first call counts.
    pub(crate) fn keep_object<T: Send + Sync + 'static>(&self, instance: Option<u32>, object: T) {
        if let Some(place) = instance.and_then(|instance| self.objects.get(instance as usize)) {
            let _ = place.set(Box::new(object));
        }
    }

    /// The path of the database of maxminddb.
    pub(crate) fn geo_database(&self) -> Option<Vec<u8>> {
        self.geo_database.lock().clone()
    }

    /// Sets the path of the database of maxminddb.
    pub(crate) fn set_geo_database(&self, path: Vec<u8>) {
        *self.geo_database.lock() = Some(path);
    }

    /// The content of a file that was read before.
    pub(crate) fn file(&self, path: &[u8]) -> Option<Arc<[u8]>> {
        self.files.read().by_path.get(path).cloned()
    }

    /// Stores the content of a file, unless it is stored already or there is no room; returns the
    /// content to use.
    pub(crate) fn keep_file(&self, path: &[u8], content: Arc<[u8]>) -> Arc<[u8]> {
        let mut files = self.files.write();
        if let Some(kept) = files.by_path.get(path) {
            return Arc::clone(kept);
        }
        let bytes = files.bytes + FILE_BYTES + path.len() + content.len();
        if bytes <= KEPT_FILES_BYTES_MAX {
            files.bytes = bytes;
            files.by_path.insert(path.to_vec(), Arc::clone(&content));
        }
        content
    }
}

impl std::fmt::Debug for Instances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instances").field("objects", &self.definitions.len()).finish_non_exhaustive()
    }
}
