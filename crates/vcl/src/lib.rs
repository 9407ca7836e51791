//! The VCL compiler: text to a checked program. It knows nothing of what runs the program.
//!
//! [`compile`] takes any bytes and never panics. The steps, each in its own module: `load` cuts the text and what it includes
//! into tokens (`lex`), `parse` makes a tree of them (`tree`), `check` gives names and types a meaning and emits the program
//! of [`vcl_run::program`]. Messages gather in `diagnostic`. What differs between generations of the language are tables in
//! `dialect`. Files and name servers are reached through the traits of [`outside`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod check;
mod diagnostic;
mod dialect;
pub mod exercise;
mod lex;
mod load;
pub mod outside;
mod parse;
mod source;
#[cfg(test)]
mod tests;
mod tree;

pub use outside::{FileKind, ReadFile, Resolve, SystemFiles, SystemResolver};

use diagnostic::Diagnostics;
use std::fmt;
use std::path::PathBuf;
use vcl_run::program::Program;

/// The built-in VCL, as `vcl.show -v` and `varnishd -x builtin` show it.
pub const BUILTIN: &str = include_str!("builtin.vcl");

/// A VCL text and what to call it in messages: a file name, or `<vcl.inline>`.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a [u8],
}

/// What the compiler must know of its surroundings.
#[derive(Clone, Copy)]
pub struct CompileOptions<'a> {
    /// Directories searched for `include` (parameter `vcl_path`).
    pub vcl_path: &'a [PathBuf],
    /// Parameter `vcc_unsafe_path`: `include` may name paths with `/`.
    pub unsafe_path: bool,
    /// Parameter `vcc_err_unref`: an unused symbol is an error, not a warning.
    pub err_unref: bool,
    /// Parameter `vcc_acl_pedantic`: ACLs are `+pedantic` unless they say otherwise.
    pub acl_pedantic: bool,
    /// Names of the storages (`-s`), `Transient` among them; their order gives their indices.
    pub storages: &'a [String],
    /// Names of the labels that exist.
    pub labels: &'a [String],
    /// Least language version: 41 when a listener is a Unix socket, else 40.
    pub syntax_min: u8,
    /// Finds addresses of host names.
    pub resolver: &'a dyn Resolve,
    /// Reads included files.
    pub files: &'a dyn ReadFile,
}

impl Default for CompileOptions<'_> {
    fn default() -> Self {
        CompileOptions {
            vcl_path: &[],
            unsafe_path: true,
            err_unref: true,
            acl_pedantic: true,
            storages: &[],
            labels: &[],
            syntax_min: 40,
            resolver: &SystemResolver,
            files: &SystemFiles,
        }
    }
}

/// A program, and what the author should know.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Warnings, in the form of messages; empty when there are none.
    pub warnings: String,
}

/// Why there is no program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    /// All messages, each with its place in the source.
    pub text: String,
}

impl CompileError {
    /// The text of the CLI reply and of `varnishd -C`: the messages between the lines that tools look for.
    #[must_use]
    pub fn report(&self) -> String {
        format!(
            "Message from VCC-compiler:\n{}\nRunning VCC-compiler failed, exited with 2\nVCL compilation failed",
            self.text
        )
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CompileError {}

/// Compiles a VCL. Takes any bytes.
///
/// # Errors
/// With all messages, when the text is not a valid VCL.
pub fn compile(source: &SourceText<'_>, options: &CompileOptions<'_>) -> Result<Compiled, CompileError> {
    let mut diagnostics = Diagnostics::default();
    let builtin = SourceText { name: "<builtin>", text: BUILTIN.as_bytes() };
    let Some(loaded) = load::load(source, &builtin, options, &mut diagnostics) else {
        return Err(CompileError { text: diagnostics.error_text() });
    };
    let dialect = &dialect::VCL_4;
    let user = parse::parse(&loaded.sources, &loaded.tokens, 0, dialect, &mut diagnostics);
    let builtin = parse::parse(&loaded.sources, &loaded.tokens, loaded.builtin, dialect, &mut diagnostics);
    let program = check::check(
        &loaded,
        &user.declarations,
        &builtin.declarations,
        user.damaged,
        dialect,
        options,
        &mut diagnostics,
    );
    match program {
        Some(program) => Ok(Compiled { program, warnings: diagnostics.warning_text() }),
        None => Err(CompileError { text: diagnostics.error_text() }),
    }
}
