//! What the program calls itself, and which Varnish it stands in for.

/// Copal's own version.
pub const COPAL_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The Varnish release whose interfaces we keep.
pub const VARNISH_VERSION: &str = "7.1.1";
/// What the CLI banner and `varnishd -V` say, which scripts parse.
pub const VARNISH_BANNER: &str = "varnish-7.1.1 revision 7cee1c581bead20e88d101ab3d72afb29f14d87a";
/// The `Via` header's comment and the `Server` of synthetic answers.
pub const VIA: &str = "1.1 varnish (Varnish/7.1)";
/// The state directory compiled into the stock tools.
pub const STATE_DIR: &str = "/var/lib/varnish";
