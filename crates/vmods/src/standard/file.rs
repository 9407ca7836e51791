//! std: files. Once std.fileread or std.blobread has read a file, its content is kept until the VCL
//! is discarded, as long as all those files together are within
//! [`surface::limits::KEPT_FILES_BYTES_MAX`]; others are read each time.
//!
//! A file system may be slow, so files are read off the event loop if the task can wait.

use crate::arguments::Arguments;
use crate::call::done;
use crate::context::{Finish, VmodContext};
use nix::fcntl::OFlag;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surface::limits::FILE_BYTES_MAX;
use tokio::task::spawn_blocking;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// The type of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A STRING; it ends at the first zero byte.
    Text,
    /// A BLOB.
    Blob,
}

impl Kind {
    fn value(self, content: &[u8], scratch: &mut Scratch) -> Value {
        match self {
            Kind::Text => {
                let end = content.iter().position(|byte| *byte == 0).unwrap_or(content.len());
                Value::Text(scratch.put(&content[..end]))
            }
            Kind::Blob => Value::Blob(scratch.put(content)),
        }
    }

    fn nothing(self) -> Value {
        match self {
            Kind::Text => Value::Text(Text::UNSET),
            Kind::Blob => Value::Blob(Text::UNSET),
        }
    }
}

/// `std.fileread()`, `std.blobread()`: unset if the file can't be read.
pub(crate) fn read(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
    kind: Kind,
) -> Result<Called, Failure> {
    let Some(name) = name(arguments, scratch) else { return done(kind.nothing()) };
    if let Some(content) = context.instances().file(&name) {
        return done(kind.value(&content, scratch));
    }
    let path = path(&name);
    if !context.can_wait() {
        return done(keep(context, &name, content(&path), kind, scratch));
    }
    context.wait(Box::pin(async move {
        let content = spawn_blocking(move || content(&path)).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let finish: Finish = Box::new(move |context, scratch| Ok(keep(context, &name, content, kind, scratch)));
        finish
    }));
    Ok(Called::Wait)
}

/// The content of a regular file; others may have no end. Blocks.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    // Does not wait for the writer of a pipe of that name.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let length = file.metadata().map(|about| about.is_file().then_some(about.len()))?;
    let too_long = || io::Error::from(io::ErrorKind::FileTooLarge);
    let length = length.filter(|length| *length <= FILE_BYTES_MAX).ok_or_else(too_long)?;
    let mut content = Vec::with_capacity(length as usize);
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES_MAX { Err(too_long()) } else { Ok(content) }
}

fn keep(
    context: &mut dyn VmodContext,
    name: &[u8],
    content: io::Result<Vec<u8>>,
    kind: Kind,
    scratch: &mut Scratch,
) -> Value {
    match content {
        Ok(content) => {
            let content = context.instances().keep_file(name, Arc::from(content));
            kind.value(&content, scratch)
        }
        Err(_) => kind.nothing(),
    }
}

/// `std.file_exists()`
pub(crate) fn exists(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let Some(name) = name(arguments, scratch) else { return done(Value::Bool(false)) };
    let path = path(&name);
    if !context.can_wait() {
        return done(Value::Bool(path.exists()));
    }
    context.wait(Box::pin(async move {
        let exists = spawn_blocking(move || path.exists()).await.unwrap_or(false);
        let finish: Finish = Box::new(move |_, _| Ok(Value::Bool(exists)));
        finish
    }));
    Ok(Called::Wait)
}

fn name(arguments: Arguments<'_>, scratch: &Scratch) -> Option<Vec<u8>> {
    let text = arguments.text(0);
    text.is_set().then(|| scratch.get(text).to_vec())
}

fn path(name: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(name)).to_owned()
}
