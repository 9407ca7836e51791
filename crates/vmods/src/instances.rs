//! What the VMODs of one loaded VCL hold: the contents of files that std.fileread has read, what the objects made in
//! vcl_init consist of, and where the VCL's director objects stand among its directors. Shared by all event loops; dropped
//! with the VCL.

use parking_lot::RwLock;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use vcl_run::program::{InstanceDefinition, Program};

/// The VMOD objects of one loaded VCL.
pub struct Instances {
    definitions: Vec<InstanceDefinition>,
    /// Contents by path, as first read. Bounded by the file names that the VCL makes up.
    files: RwLock<HashMap<Vec<u8>, Arc<[u8]>>>,
    /// By index of the object: what the VMOD of its class made of it.
    objects: Vec<OnceLock<Box<dyn Any + Send + Sync>>>,
    /// By index of the object: whether its constructor has run.
    made: Vec<AtomicBool>,
}

impl Instances {
    /// Before vcl_init has run.
    #[must_use]
    pub fn new(program: &Program) -> Instances {
        Instances {
            definitions: program.instances.clone(),
            files: RwLock::default(),
            objects: program.instances.iter().map(|_| OnceLock::new()).collect(),
            made: program.instances.iter().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The definition of an object.
    #[must_use]
    pub fn definition(&self, instance: u32) -> Option<&InstanceDefinition> {
        self.definitions.get(instance as usize)
    }

    /// Notes that the constructor of an object has run.
    pub(crate) fn note_made(&self, instance: Option<u32>) {
        if let Some(made) = instance.and_then(|instance| self.made.get(instance as usize)) {
            made.store(true, Relaxed);
        }
    }

    /// The name of an object whose constructor has not run, though its class wants it to.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        let is_missing = |(definition, made): &(&InstanceDefinition, &AtomicBool)| {
            // The latter is made of its block, before any VCL runs.
            let needs_none = [("debug", "obj_opt"), ("directors", "dns")];
            !made.load(Relaxed) && !needs_none.contains(&(definition.vmod.as_str(), definition.class.as_str()))
        };
        self.definitions.iter().zip(&self.made).find(is_missing).map(|(definition, _)| definition.name.as_str())
    }

    /// An object, once made; `None` also when it is of another type.
    pub(crate) fn object<T: 'static>(&self, instance: Option<u32>) -> Option<&T> {
        self.objects.get(instance? as usize)?.get()?.downcast_ref()
    }

    /// Keeps an object that its constructor made; the first one stays.
    pub(crate) fn keep_object<T: Send + Sync + 'static>(&self, instance: Option<u32>, object: T) {
        if let Some(place) = instance.and_then(|instance| self.objects.get(instance as usize)) {
            let _ = place.set(Box::new(object));
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
