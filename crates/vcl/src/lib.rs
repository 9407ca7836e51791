//! The VCL compiler: text to a checked program. Non-goal: running the program.
//!
//! [`compile`] accepts any bytes and never panics. Each step is a module: `load` splits the text
//! and its includes into tokens (`lex`), `parse` builds a tree (`tree`), `check` resolves names and
//! types and emits the program of [`vcl_run::program`]. Messages are collected in `diagnostic`. The
//! differences between generations of the language are tables in `dialect`. Files and name servers
//! are reached through the traits [`ReadFile`] and [`Resolve`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backend_option;
mod check;
mod diagnostic;
mod dialect;
mod files;
mod format;
mod host_names;
mod lex;
mod lexeme;
mod lint;
mod load;
mod migrate;
mod parse;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod variable_names;
mod version;

pub use backend_option::{BACKEND_OPTION_NAME, backend_option};
pub use diagnostic::{Diagnostic, Part, Place, Severity, Suggestion};
pub use files::{FileKind, ReadFile, SystemFiles};
pub use format::format;
pub use host_names::{Resolve, SystemResolver};
pub use lexeme::{Lexeme, LexemeKind, lexemes};
pub use lint::{Finding, Linted, lint};
pub use migrate::{Migrated, Note, migrate};

use diagnostic::Diagnostics;
use std::fmt;
use std::path::PathBuf;
use surface::vcl::Generation;
use vcl_run::program::Program;

/// The built-in VCL, as `vcl.show -v` and `varnishd -x builtin` show it.
pub const BUILTIN: &str = include_str!("builtin.vcl");

/// The built-in VCL under `http_policy=rfc`.
pub const BUILTIN_RFC: &str = include_str!("builtin/rfc.vcl");

/// The name of [`BUILTIN_RFC`] in places and listings.
pub const BUILTIN_RFC_NAME: &str = "<builtin-rfc>";

/// The built-in VCL of a generation of the language.
#[must_use]
pub fn builtin_of(generation: Generation) -> &'static str {
    dialect::Dialect::of(generation).builtin
}

/// A VCL text and its name in messages: a file name, or `<vcl.inline>`.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a [u8],
}

/// Environment of the compiler.
#[derive(Clone, Copy)]
pub struct CompileOptions<'a> {
    /// Directories searched for `include` (parameter `vcl_path`).
    pub vcl_path: &'a [PathBuf],
    /// Parameter `vcc_unsafe_path`: `include` may name paths with `/`.
    pub unsafe_path: bool,
    /// Parameter `vcc_err_unref`: an unused symbol is an error, not a warning.
    pub err_unref: bool,
    /// Parameter `vcc_acl_pedantic`: ACLs are `+pedantic` unless declared otherwise.
    pub acl_pedantic: bool,
    /// Names of the storages (`-s`), including `Transient`; their order gives their indices.
    pub storages: &'a [String],
    /// Names of the existing labels.
    pub labels: &'a [String],
    /// Lowest language version: 41 when a listener is a Unix socket, else 40.
    pub syntax_min: u8,
    /// The generation of the language; `None`: detected from the text.
    pub generation: Option<Generation>,
    /// A text without a version that uses nothing of an old dialect is VCL 4.1. Compat: Varnish
    /// refuses it.
    pub version_optional: bool,
    /// Text that defines the backend of a VCL without one ([`backend_option`]). A VCL that defines
    /// backends is then an error.
    pub default_backend: Option<&'a str>,
    /// Parameter `http_policy` is `rfc`: the built-in VCL is the one for it. The old dialects have
    /// rules of their own.
    pub follows_rfc: bool,
    /// Parameter `backend_follow_dns` is not `off`: names of backends are looked up again later, so
    /// that one with several addresses is not an error. The old dialects keep their defaults.
    pub follows_names: bool,
    /// A trace has a point for each statement, not for each block: for tests of a VCL.
    pub traces_statements: bool,
    /// Resolves host names.
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
            generation: None,
            version_optional: false,
            default_backend: None,
            follows_rfc: false,
            follows_names: false,
            traces_statements: false,
            resolver: &SystemResolver,
            files: &SystemFiles,
        }
    }
}

/// Replacement in VCL 4 for a word or variable of an older dialect; `None` if it is not one, or is
/// still valid.
#[must_use]
pub fn instead_of(word: &str) -> Option<&'static str> {
    let dialect = &dialect::VCL_4;
    let known = dialect.moved.iter().chain(dialect.renamed).find(|(old, _)| *old == word);
    known.map(|&(_, instead)| instead)
}

/// The known word nearest to an unknown one, if any is near enough to be the intended one.
pub fn nearest_word<'w>(word: &str, candidates: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    check::nearest(word, candidates)
}

/// A program, and messages for the author.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Warnings, in the text form of messages; empty when there are none.
    pub warnings: String,
    /// The warnings as separate messages.
    pub diagnostics: Vec<Diagnostic>,
}

/// Messages of a failed compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    /// The first messages in their text form, each with its place in the source.
    pub text: String,
    /// All messages, including warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Number of further messages that are not listed.
    pub hidden: usize,
}

impl CompileError {
    fn new(diagnostics: Diagnostics) -> CompileError {
        let (diagnostics, hidden) = diagnostics.finish();
        CompileError { text: diagnostic::error_text(&diagnostics, hidden), diagnostics, hidden }
    }

    /// The text of the CLI reply and of `varnishd -C`: the messages, between the lines that tools
    /// look for.
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

/// Compiles a VCL. Accepts any bytes.
///
/// # Errors
/// All messages, if the text is not a valid VCL.
pub fn compile(source: &SourceText<'_>, options: &CompileOptions<'_>) -> Result<Compiled, CompileError> {
    let (compiled, guessed) = attempt(source, options, None);
    let error = match (compiled, guessed) {
        (Err(error), Some(_)) if source.text.len() <= GUESSED_BYTES_MAX => error,
        (compiled, _) => return compiled,
    };
    // Files that grew over the years contain words of several generations: the right one is the one
    // that accepts all of the text.
    let others = Generation::ALL.iter().rev().filter(|other| other.is_legacy() && Some(**other) != guessed);
    for other in others {
        if let (Ok(compiled), _) = attempt(source, options, Some(*other)) {
            return Ok(compiled);
        }
    }
    Err(error)
}

/// Up to this size, in bytes, a text without a version is also tried in generations other than the
/// likeliest.
const GUESSED_BYTES_MAX: usize = 4 << 20;

/// Compiles a text as one of generation `assumed` if given; otherwise also returns the detected
/// generation, if any.
fn attempt(
    source: &SourceText<'_>,
    options: &CompileOptions<'_>,
    assumed: Option<Generation>,
) -> (Result<Compiled, CompileError>, Option<Generation>) {
    let mut diagnostics = Diagnostics::default();
    let Some(loaded) = load::load(source, options, assumed, &mut diagnostics) else {
        return (Err(CompileError::new(diagnostics)), None);
    };
    let dialect = loaded.dialect;
    let generation = Generation::of_syntax(loaded.syntax);
    let is_guessed = loaded.may_be_old || generation.is_legacy() && options.generation.is_none();
    let guessed = is_guessed.then_some(generation);
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
    let compiled = match program {
        Some(program) => {
            let (diagnostics, _) = diagnostics.finish();
            Ok(Compiled { program, warnings: diagnostic::warning_text(&diagnostics), diagnostics })
        }
        None => Err(CompileError::new(diagnostics)),
    };
    (compiled, guessed)
}
