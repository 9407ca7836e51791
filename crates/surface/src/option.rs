//! Options of the daemon: Copal's own long ones, which supplement varnishd's letters, and the words of `-j`.
//! The letters are in `option/letter.rs`.

pub mod letter;

/// One long option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongOption {
    /// As typed, without the two dashes.
    pub name: &'static str,
    /// Whether it takes a value: the next argument, or the text after `=`.
    pub takes_value: bool,
}

/// Every long option of the daemon.
pub const DAEMON: &[LongOption] = &[
    LongOption { name: "help", takes_value: false },
    LongOption { name: "log-format", takes_value: true },
    LongOption { name: "memory", takes_value: true },
    LongOption { name: "version", takes_value: false },
];

/// Value of `--memory`: what the machine or its control groups allow, also when that changes.
pub const MEMORY_AUTO: &str = "auto";

/// The values of `--log-format`: the form of the daemon's own messages on standard error.
pub const LOG_FORMATS: [&str; 3] = ["text", "plain", "json"];

/// Sub-argument of `-j unix`: the user with whose rights VCL is read.
pub const JAIL_USER: &str = "user";
/// Sub-argument of `-j unix`: the user that the worker becomes.
pub const JAIL_WORKER: &str = "workuser";
/// Sub-argument of `-j unix`: accepted, as there is no C compiler.
pub const JAIL_COMPILERS: &str = "ccgroup";
/// Sub-argument of `-j unix`, Copal's own: the group that, besides root, has the secret of the CLI.
pub const JAIL_ADMINISTRATORS: &str = "admingroup";

/// Key of `-o`: certificates are ordered, and this is whom the authority may write to.
pub const ACME: &str = "acme";
/// Key of `-o`: the authority.
pub const ACME_DIRECTORY: &str = "acme_directory";
/// Key of `-o`: the folder of account and certificates.
pub const ACME_DIR: &str = "acme_dir";
/// Key of `-o`: who may have issued the authority's own certificate.
pub const ACME_CA: &str = "acme_ca";
/// Key of `-o`: how it is shown that a name is ours.
pub const ACME_CHALLENGE: &str = "acme_challenge";
/// The keys of `-o`.
pub const ACME_KEYS: [&str; 5] = [ACME, ACME_DIRECTORY, ACME_DIR, ACME_CA, ACME_CHALLENGE];
/// Value of `-o acme`: nobody.
pub const ACME_NOBODY: &str = "none";
/// Value of `-o acme_challenge`: whichever works.
pub const ACME_AUTO: &str = "auto";
/// The folder of account and certificates, unless `-o acme_dir` says another.
pub const ACME_FOLDER: &str = "/var/lib/copal/acme";
/// Authorities that have a name, the default first.
pub const ACME_AUTHORITIES: [(&str, &str); 2] = [
    ("letsencrypt", "https://acme-v02.api.letsencrypt.org/directory"),
    ("staging", "https://acme-staging-v02.api.letsencrypt.org/directory"),
];
