//! The stream of messages: quoted text is escaped, so that the terminal does not interpret it.

use std::io::{self, Write};

use surface::legible;

/// Escapes its text piece by piece: each piece is a separate text, as `write!` produces them.
pub(crate) struct Messages<'a>(pub &'a mut dyn Write);

impl Write for Messages<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(legible::lines(bytes).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
