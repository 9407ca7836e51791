//! Options of the daemon: Copal's own long ones, which supplement varnishd's letters, and the words
//! of `-j`. The letters are in `option/letter.rs`.

pub mod letter;

/// One long option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongOption {
    /// Name without the two dashes.
    pub name: &'static str,
    /// True if it takes a value: the next argument, or the text after `=`.
    pub takes_value: bool,
}

/// Every long option of the daemon.
pub const DAEMON: &[LongOption] = &[
    LongOption { name: "help", takes_value: false },
    LongOption { name: "log-format", takes_value: true },
    LongOption { name: "memory", takes_value: true },
    LongOption { name: "version", takes_value: false },
];

/// Value of `--memory`: the limit of the machine or its control groups, followed when it changes.
pub const MEMORY_AUTO: &str = "auto";

/// The values of `--log-format`: the form of the daemon's own messages on standard error.
pub const LOG_FORMATS: [&str; 3] = ["text", "plain", "json"];

/// Sub-argument of `-j unix`: the user with whose rights VCL is read.
pub const JAIL_USER: &str = "user";
/// Sub-argument of `-j unix`: the user that the worker becomes.
pub const JAIL_WORKER: &str = "workuser";
/// Sub-argument of `-j unix`: accepted without effect, as there is no C compiler.
pub const JAIL_COMPILERS: &str = "ccgroup";
/// Sub-argument of `-j unix`, Copal's own: the group that, besides root, can read the CLI secret.
pub const JAIL_ADMINISTRATORS: &str = "admingroup";

/// Key of `-o`: enables certificate orders; its value is the contact address for the authority.
pub const ACME: &str = "acme";
/// Key of `-o`: the authority.
pub const ACME_DIRECTORY: &str = "acme_directory";
/// Key of `-o`: the folder of account and certificates.
pub const ACME_DIR: &str = "acme_dir";
/// Key of `-o`: the issuers that may have signed the authority's own certificate.
pub const ACME_CA: &str = "acme_ca";
/// Key of `-o`: the challenge type that proves control of a name.
pub const ACME_CHALLENGE: &str = "acme_challenge";
/// Key of `-o`: an address for metrics.
pub const METRICS: &str = "metrics";
/// Key of `-o`: an access log.
pub const ACCESS_LOG: &str = "access-log";
/// Key of `-o`: the layout of the log.
pub const VSL: &str = "vsl";
/// Value of `-o vsl`: the layout that the installed libvarnishapi reads.
pub const VSL_AUTO: &str = "auto";
/// Key of `-o`: a collector of traces.
pub const OTLP: &str = "otlp";
/// Key of `-o`: the traces that are sent.
pub const OTLP_SAMPLE: &str = "otlp_sample";
/// Key of `-o`: `keep`, to send values of query arguments.
pub const OTLP_QUERY: &str = "otlp_query";
/// Key of `-o`: an address for the dashboard.
pub const DASH: &str = "dash";
/// Key of `-o`: the file of the dashboard's users.
pub const DASH_USERS: &str = "dash_users";
/// Key of `-o`: names of the server by which browsers may address the dashboard.
pub const DASH_HOSTS: &str = "dash_hosts";
/// Key of `-o`: `off`, if the dashboard may change nothing.
pub const DASH_OPERATE: &str = "dash_operate";
/// Key of `-o`: `on`, to serve the dashboard without TLS on other addresses than loopback.
pub const DASH_INSECURE: &str = "dash_insecure";
/// Key of `-o`: addresses of clients in the dashboard, `hash` or `show`.
pub const DASH_CLIENTS: &str = "dash_clients";
/// Key of `-o`: the NATS servers of the fleet.
pub const FLEET: &str = "fleet";
/// Key of `-o`: the name of the fleet.
pub const FLEET_NAME: &str = "fleet_name";
/// Key of `-o`: the file of the key that signs and is accepted.
pub const FLEET_KEY: &str = "fleet_key";
/// Key of `-o`: the file of a second key that is accepted.
pub const FLEET_KEY_OLD: &str = "fleet_key_old";
/// Key of `-o`: the name of this node.
pub const FLEET_NODE: &str = "fleet_node";
/// Key of `-o`: the zone of this node.
pub const FLEET_ZONE: &str = "fleet_zone";
/// Key of `-o`: credentials file for NATS.
pub const FLEET_CREDS: &str = "fleet_creds";
/// Key of `-o`: file of an nkey seed for NATS.
pub const FLEET_NKEY: &str = "fleet_nkey";
/// Key of `-o`: the issuers that may have signed the certificates of the NATS servers.
pub const FLEET_TLS_CA: &str = "fleet_tls_ca";
/// All keys of `-o`.
pub const KEYS: [&str; 26] = [
    ACME,
    ACME_DIRECTORY,
    ACME_DIR,
    ACME_CA,
    ACME_CHALLENGE,
    METRICS,
    ACCESS_LOG,
    VSL,
    OTLP,
    OTLP_SAMPLE,
    OTLP_QUERY,
    DASH,
    DASH_USERS,
    DASH_HOSTS,
    DASH_OPERATE,
    DASH_INSECURE,
    DASH_CLIENTS,
    FLEET,
    FLEET_NAME,
    FLEET_KEY,
    FLEET_KEY_OLD,
    FLEET_NODE,
    FLEET_ZONE,
    FLEET_CREDS,
    FLEET_NKEY,
    FLEET_TLS_CA,
];
/// Name of the fleet unless `-o fleet_name` gives another.
pub const FLEET_NAME_DEFAULT: &str = "copal";
/// Port of the dashboard if the address has none.
pub const DASH_PORT: u16 = 9132;
/// Argument of a `copal observe` that a manager starts: how many of its sockets, the last ones but
/// the one for operations, are for the dashboard.
pub const OBSERVE_DASH: &str = "--dash";
/// Port of metrics if the address has none: that of other exporters for Varnish.
pub const METRICS_PORT: u16 = 9131;
/// Name of the process that exchanges invalidations with the fleet; only a manager starts it.
pub const FLEET_AGENT: &str = "fleet-agent";
/// First argument of a `copal observe`, or fleet agent, that a manager starts.
pub const OBSERVE_INHERITED: &str = "--inherited";
/// First argument of a `copal replay` that a manager starts.
pub const REPLAY_INHERITED: &str = "--inherited";
/// Argument of a `copal observe` before an access log.
pub const OBSERVE_ACCESS_LOG: &str = "--access-log";
/// Value of `-o acme`: no contact address.
pub const ACME_NOBODY: &str = "none";
/// Value of `-o acme_challenge`: the first type that works.
pub const ACME_AUTO: &str = "auto";
/// Folder of account and certificates, unless `-o acme_dir` names another.
pub const ACME_FOLDER: &str = "/var/lib/copal/acme";
/// Authorities with a short name, the default first.
pub const ACME_AUTHORITIES: [(&str, &str); 2] = [
    ("letsencrypt", "https://acme-v02.api.letsencrypt.org/directory"),
    ("staging", "https://acme-staging-v02.api.letsencrypt.org/directory"),
];
