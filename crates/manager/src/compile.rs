//! Compiling a VCL in the manager: a job that can run on another thread, and its result.

mod listing;

use crate::arguments::Arguments;
use crate::arguments::jail::Reader;
use crate::rights;
use crate::state::Manager;
use crate::vcl_files::{Recorder, VclFiles};
use crate::vcl_table::Loaded;
use std::path::PathBuf;
use surface::parameter::{NAMES_FIXED, Parameters};
use surface::program::Called;
use vcl::{CompileOptions, SourceText};

/// Everything that a compilation depends on.
#[derive(Debug)]
pub struct Job {
    source_name: String,
    text: Vec<u8>,
    /// Files with precedence over those of the file system.
    files: VclFiles,
    vcl_path: Vec<PathBuf>,
    unsafe_path: bool,
    err_unref: bool,
    storages: Vec<String>,
    labels: Vec<String>,
    syntax_min: u8,
    follows_rfc: bool,
    follows_names: bool,
    version_optional: bool,
    default_backend: Option<String>,
    /// The rights with which everything is read.
    reader: Option<Reader>,
}

/// Result of a compilation.
#[derive(Debug)]
pub struct Done {
    /// For the table.
    pub loaded: Loaded,
    /// Messages that are not errors, as they are shown; empty if there are none.
    pub warnings: String,
    /// The program in readable form, for `-C`.
    pub listing: String,
}

impl Job {
    /// A job with the manager's current parameters.
    #[must_use]
    pub fn new(manager: &Manager, source_name: String, text: Vec<u8>) -> Job {
        let mut job = Job::of_parameters(&manager.parameters.borrow(), &manager.arguments, source_name, text);
        job.labels = manager.vcls.borrow().labels();
        let has_unix_socket = manager.listeners.borrow().iter().any(|listener| listener.path().is_some());
        job.syntax_min = syntax_min(has_unix_socket);
        job
    }

    /// A job for a program that is not running yet (`-C`).
    #[must_use]
    pub fn of_parameters(parameters: &Parameters, arguments: &Arguments, source_name: String, text: Vec<u8>) -> Job {
        Job {
            source_name,
            text,
            files: VclFiles::default(),
            vcl_path: parameters.vcl_path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect(),
            unsafe_path: parameters.vcc_unsafe_path,
            err_unref: parameters.vcc_err_unref,
            storages: arguments.storages.names(),
            labels: Vec::new(),
            syntax_min: 40,
            follows_rfc: parameters.http_policy == "rfc",
            follows_names: parameters.backend_follow_dns != NAMES_FIXED,
            version_optional: arguments.called == Called::Copal,
            default_backend: arguments.default_backend.clone(),
            reader: arguments.jail.reader().cloned(),
        }
    }

    /// Files that the VCL was compiled from before, and the existing labels.
    #[must_use]
    pub fn again(mut self, files: VclFiles, labels: Vec<String>, has_unix_socket: bool) -> Job {
        self.text = files.main.bytes().to_vec();
        self.files = files;
        self.labels = labels;
        self.syntax_min = syntax_min(has_unix_socket);
        self
    }

    /// Compiles with the rights of the jail's user: only files that this user may read are read,
    /// whatever the text names. `list` requests the readable form.
    ///
    /// # Errors
    /// The report for the operator.
    pub fn run(self, list: bool) -> Result<Done, String> {
        let failed =
            |error| format!("The rights of the jail's user could not be taken: {error}\nVCL compilation failed");
        rights::with(self.reader.as_ref(), || self.compile(list)).map_err(failed)?
    }

    fn compile(&self, list: bool) -> Result<Done, String> {
        let recorder = Recorder::new(&self.files);
        let options = CompileOptions {
            vcl_path: &self.vcl_path,
            unsafe_path: self.unsafe_path,
            err_unref: self.err_unref,
            storages: &self.storages,
            labels: &self.labels,
            syntax_min: self.syntax_min,
            follows_rfc: self.follows_rfc,
            follows_names: self.follows_names,
            version_optional: self.version_optional,
            default_backend: self.default_backend.as_deref(),
            files: &recorder,
            ..CompileOptions::default()
        };
        let source = SourceText { name: &self.source_name, text: &self.text };
        let compiled = vcl::compile(&source, &options).map_err(|error| error.report())?;
        let warnings = if compiled.warnings.is_empty() {
            String::new()
        } else {
            format!("Message from VCC-compiler:\n{}\n", compiled.warnings.trim_end())
        };
        let program = postcard::to_stdvec(&compiled.program).map_err(|error| error.to_string())?;
        let names = compiled.program.sources.iter().map(|source| source.name.as_str());
        let files = recorder.finish(&self.text, names);
        Ok(Done {
            listing: if list { listing::listing(&compiled.program) } else { String::new() },
            loaded: Loaded { program, files, sources: compiled.program.sources, labels: compiled.program.labels },
            warnings,
        })
    }
}

/// The lowest version of the language.
fn syntax_min(has_unix_socket: bool) -> u8 {
    if has_unix_socket { 41 } else { 40 }
}

/// The report about a file that can't be read.
#[must_use]
pub fn unreadable(file: &str, reason: &str) -> String {
    format!(
        "Message from VCC-compiler:\nCannot read file '{file}' ({reason})\n\
         Running VCC-compiler failed, exited with 2\nVCL compilation failed"
    )
}
