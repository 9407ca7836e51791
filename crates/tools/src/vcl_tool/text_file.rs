//! VCL texts as files: read by name or from the standard input, and replaced whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The name and the text of a source; `-` is the standard input. A relative name is made absolute, so that
/// `include "./..."` means what it says.
///
/// # Errors
/// As the file system gives them.
pub(super) fn read(file: &OsStr, input: &mut dyn Read) -> io::Result<(String, Vec<u8>)> {
    let mut text = Vec::new();
    // One byte more than the compiler takes is enough for its message.
    let bytes_max = surface::limits::VCL_SOURCE_BYTES_MAX as u64 + 1;
    if file == "-" {
        input.take(bytes_max).read_to_end(&mut text)?;
        return Ok(("<stdin>".to_owned(), text));
    }
    // Not only files: a shell's `<(…)` is a pipe.
    let path = std::path::absolute(Path::new(file))?;
    File::open(&path)?.take(bytes_max).read_to_end(&mut text)?;
    Ok((path.display().to_string(), text))
}

/// Puts a text in the place of a file, so that nobody ever sees half of it: written beside it, then renamed. The permissions
/// stay; a link stays one.
///
/// # Errors
/// As the file system gives them; the file is then what it was.
pub(super) fn replace(file: &OsStr, text: &[u8]) -> io::Result<()> {
    let path = match std::fs::canonicalize(file) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return std::fs::write(file, text),
        Err(error) => return Err(error),
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new().prefix(".copal-vcl-").tempfile_in(directory)?;
    beside.write_all(text)?;
    beside.as_file().set_permissions(std::fs::metadata(&path)?.permissions())?;
    beside.as_file().sync_all()?;
    beside.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// What an error of the file system says, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
