//! Named maxima: every queue, retry, table and recursion that is not a parameter.

/// Deepest nesting of blocks, parentheses and includes that the VCL compiler follows.
pub const VCL_NESTING_MAX: usize = 200;
/// Largest VCL source, all includes together, in bytes.
pub const VCL_SOURCE_BYTES_MAX: usize = 128 << 20;
/// Deepest chain of `call` at run time.
pub const VCL_CALL_DEPTH_MAX: usize = 64;
/// Deepest chain of directors followed to find a backend.
pub const DIRECTOR_DEPTH_MAX: usize = 16;
/// Longest command line before authentication, in bytes.
pub const CLI_UNAUTHENTICATED_LINE_BYTES_MAX: usize = 80;
/// Most CLI connections at once.
pub const CLI_CONNECTIONS_MAX: usize = 256;
/// How long a CLI client may take to show that it knows the secret, in seconds.
pub const CLI_UNAUTHENTICATED_SECONDS_MAX: u64 = 60;
/// Longest command (with here-document), in bytes.
pub const CLI_COMMAND_BYTES_MAX: usize = 160 << 20;
/// Bytes of a body that may be under way between an origin and a client when nothing is stored.
pub const PASS_IN_FLIGHT_BYTES_MAX: usize = 256 << 10;
/// Longest chunk-size line with its extensions, in bytes.
pub const CHUNK_HEADER_BYTES_MAX: usize = 256;
/// Longest trailer section of a chunked body, in bytes.
pub const CHUNK_TRAILER_BYTES_MAX: usize = 8 << 10;
/// Most idle connections kept to one backend by one event loop.
pub const IDLE_BACKEND_CONNECTIONS_MAX: usize = 256;
/// Most texts that one VCL may consist of, each `include` counted.
pub const VCL_SOURCES_MAX: usize = 10_000;
