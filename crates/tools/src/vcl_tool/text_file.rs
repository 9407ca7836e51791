//! VCL texts as files: read by name or from the standard input, and replaced as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The name and the text of a source; `-` means the standard input. A relative name is made
/// absolute, so that `include "./..."` works.
///
/// # Errors
/// As reported by the file system.
pub(super) fn read(file: &OsStr, input: &mut dyn Read) -> io::Result<(String, Vec<u8>)> {
    let mut text = Vec::new();
    // One byte more than the compiler accepts is enough to get its message.
    let bytes_max = surface::limits::VCL_SOURCE_BYTES_MAX as u64 + 1;
    if file == "-" {
        input.take(bytes_max).read_to_end(&mut text)?;
        return Ok(("<stdin>".to_owned(), text));
    }
    // Not only regular files: a shell's `<(…)` is a pipe.
    let path = std::path::absolute(Path::new(file))?;
    File::open(&path)?.take(bytes_max).read_to_end(&mut text)?;
    Ok((path.display().to_string(), text))
}

/// Replaces a file with a text atomically, so that no reader sees a partial text: written to
/// another file, then renamed. The permissions stay; a link stays a link.
///
/// # Errors
/// As reported by the file system; the file is then unchanged.
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

/// The text of a file system error, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
