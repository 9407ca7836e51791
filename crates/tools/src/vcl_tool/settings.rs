//! Options that `check` and `lint` share: the surroundings that the compiler assumes.

use std::ffi::OsString;
use std::path::PathBuf;
use surface::parameter::{Parameters, value};
use surface::vcl::Generation;
use vcl::CompileOptions;

/// The surroundings of a VCL.
pub(super) struct Settings {
    parameters: Parameters,
    path: Vec<PathBuf>,
    generation: Option<Generation>,
    default_backend: Option<String>,
    labels: Vec<String>,
    storages: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            parameters: Parameters::default(),
            path: Vec::new(),
            generation: None,
            default_backend: None,
            labels: Vec::new(),
            storages: vec!["s0".to_owned(), "Transient".to_owned()],
        }
    }
}

impl Settings {
    /// Takes an option of the command line; ignores a letter that belongs to the command.
    ///
    /// # Errors
    /// A value that is not accepted, in words.
    pub(super) fn take(&mut self, letter: char, argument: OsString) -> Result<(), String> {
        match letter {
            'p' => set_parameter(&mut self.parameters, &text(argument)?)?,
            'I' => self.path.push(PathBuf::from(argument)),
            'd' => self.generation = dialect(&text(argument)?)?,
            'b' => self.default_backend = Some(vcl::backend_option(&text(argument)?)),
            'l' => self.labels.push(text(argument)?),
            's' => self.storages.push(text(argument)?),
            _ => {}
        }
        Ok(())
    }

    /// Calls a function with the options of the compiler.
    pub(super) fn with<T>(&self, call: impl FnOnce(&CompileOptions<'_>) -> T) -> T {
        let parameters = &self.parameters;
        let mut path = self.path.clone();
        path.extend(parameters.vcl_path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from));
        let options = CompileOptions {
            vcl_path: &path,
            unsafe_path: parameters.vcc_unsafe_path,
            err_unref: parameters.vcc_err_unref,
            storages: &self.storages,
            labels: &self.labels,
            generation: self.generation,
            version_optional: true,
            default_backend: self.default_backend.as_deref(),
            follows_rfc: parameters.http_policy == "rfc",
            ..CompileOptions::default()
        };
        call(&options)
    }
}

/// An argument as text.
pub(super) fn text(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|_| "an argument is not text".to_owned())
}

fn set_parameter(parameters: &mut Parameters, setting: &str) -> Result<(), String> {
    let (name, wanted) = setting.split_once('=').ok_or("-p takes param=value")?;
    value::set(parameters, &Parameters::default(), name, wanted, &[]).map_err(|error| {
        let near = error.unknown_name().and_then(value::nearest_name);
        let meant = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        error.text().trim().replace('\n', " ") + &meant
    })
}

fn dialect(name: &str) -> Result<Option<Generation>, String> {
    if name == "auto" {
        return Ok(None);
    }
    Generation::of_name(name).map(Some).ok_or_else(|| "--dialect takes auto, 1, 2.0, 2.1, 3.0 or 4".to_owned())
}
