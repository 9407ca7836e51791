//! The program's identity, and the version of Varnish that it stands in for.

/// Copal's own version.
pub const COPAL_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The Varnish release whose interfaces we keep.
pub const VARNISH_VERSION: &str = "7.1.1";
/// The version in the CLI banner and `varnishd -V`, which scripts parse.
pub const VARNISH_BANNER: &str = "varnish-7.1.1 revision 7cee1c581bead20e88d101ab3d72afb29f14d87a";
/// The comment in the `Via` header, and the `Server` of synthetic responses.
pub const VIA: &str = "1.1 varnish (Varnish/7.1)";
/// The state directory compiled into the stock tools.
pub const STATE_DIR: &str = "/var/lib/varnish";
