//! Errors of the operating system in words: [`reason`].

use std::io;

/// The error text in the words of the C library.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}
