//! Identity of the program, and the version of Varnish that it replaces.
/// Copal's own version.
pub const COPAL_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The Varnish release whose interfaces Copal implements.
pub const VARNISH_VERSION: &str = "7.1.1";
/// The version in the CLI banner and `varnishd -V`, which scripts parse.
pub const VARNISH_BANNER: &str = "varnish-7.1.1 revision 7cee1c581bead20e88d101ab3d72afb29f14d87a";
/// The state directory compiled into the stock tools.
pub const STATE_DIR: &str = "/var/lib/varnish";
