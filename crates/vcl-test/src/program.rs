//! The VCL under test: compiled once, without a name server.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use surface::parameter::{Parameters, value};
use vcl::{CompileError, CompileOptions, Resolve, SourceText};
use vcl_run::program::Program;

/// Parameters of the daemon that a test assumes, and the options of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) path: Vec<PathBuf>,
    pub(crate) default_backend: Option<String>,
}

impl Settings {
    /// The parameters, with further ones after those of the command line.
    ///
    /// # Errors
    /// The message about the first that is not accepted.
    pub(crate) fn parameters(&self, more: &[(String, String)]) -> Result<Parameters, String> {
        let mut parameters = Parameters::default();
        let own = [
            ("http_policy", "rfc"),
            // Facts come from the log: everything has to be in it, and whole.
            ("vsl_mask", "+VCL_trace,+Hash,+Witness"),
            ("vsl_reclen", "4000b"),
        ];
        let own = own.iter().map(|(name, value)| (*name, *value));
        let given = self.parameters.iter().chain(more).map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, wanted) in own.chain(given) {
            value::set(&mut parameters, &Parameters::default(), name, wanted, &[])
                .map_err(|error| format!("parameter {name}: {}", error.text().trim().replace('\n', " ")))?;
        }
        Ok(parameters)
    }
}

/// Parameters of a daemon, with everything in the log.
pub(crate) fn with_facts(parameters: Parameters) -> Parameters {
    let settings = Settings::default();
    let facts = settings.parameters(&[]).expect("the own settings are accepted");
    Parameters { vsl_mask: facts.vsl_mask, vsl_reclen: facts.vsl_reclen, ..parameters }
}

/// Compiles the VCL for these parameters.
///
/// # Errors
/// The messages of the compiler.
pub(crate) fn compile(
    name: &str,
    text: &[u8],
    settings: &Settings,
    parameters: &Parameters,
) -> Result<Program, CompileError> {
    let mut path = settings.path.clone();
    path.extend(parameters.vcl_path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from));
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    let options = CompileOptions {
        vcl_path: &path,
        unsafe_path: parameters.vcc_unsafe_path,
        err_unref: parameters.vcc_err_unref,
        storages: &storages,
        version_optional: true,
        default_backend: settings.default_backend.as_deref(),
        follows_rfc: parameters.http_policy == "rfc",
        follows_names: true,
        traces_statements: true,
        resolver: &Invented,
        ..CompileOptions::default()
    };
    vcl::compile(&SourceText { name, text }, &options).map(|compiled| compiled.program)
}

/// Gives each name an address of its own in the network for benchmarks (RFC 2544), without asking a
/// name server.
struct Invented;

impl Resolve for Invented {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let hash = host.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let [_, high, middle, low] = hash.to_be_bytes();
        Ok(vec![Ipv4Addr::new(198, 18 + (high & 1), middle, low).into()])
    }

    fn port(&self, name: &str) -> Option<u16> {
        match name {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        }
    }
}
