//! Where a tool reads and writes.

use std::io::{Read, Write};
use surface::program::Called;

/// Input and output of a tool.
pub struct Streams<'a> {
    /// Commands, or a log file named `-`.
    pub input: &'a mut dyn Read,
    /// Results.
    pub output: &'a mut dyn Write,
    /// Messages.
    pub error: &'a mut dyn Write,
    /// True if this runs as a program: signals are handled, and terminals are treated as such.
    pub program: bool,
    /// The name by which the tool was called.
    pub called: Called,
}
