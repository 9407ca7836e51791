//! The entries of the fuzz targets: arbitrary bytes through the compiler, with no files and no name server around it, and
//! through the formatter; and small programs made of them, run by the evaluator and by a naive one.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

mod host;
mod naive;
mod random;

use crate::lex::lex;
use crate::source::Sources;
use crate::{CompileOptions, FileKind, ReadFile, Resolve, SourceText, compile};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use surface::vcl::Generation;
use surface::vcl::Method;
use vcl_run::eval::Machine;
use vcl_run::link::LinkedProgram;
use vcl_run::value::Scratch;

/// Every include finds the same small text; deeper ones find nothing, so that includes end.
struct OneFile;

impl ReadFile for OneFile {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("other.vcl") {
            return Ok(b"sub vcl_deliver { set resp.http.x = \"y\"; }\n".to_vec());
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn glob(&self, _pattern: &str) -> io::Result<Vec<PathBuf>> {
        Ok(vec![PathBuf::from("other.vcl")])
    }

    fn kind(&self, _path: &Path) -> io::Result<FileKind> {
        Ok(FileKind::Socket)
    }
}

struct OneHost;

impl Resolve for OneHost {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        if host == "localhost" { Ok(vec![Ipv4Addr::LOCALHOST.into()]) } else { Err("no such host".to_owned()) }
    }

    fn port(&self, service: &str) -> Option<u16> {
        (service == "http").then_some(80)
    }
}

/// Compiles `bytes`, as what they are and as each of the old dialects.
///
/// # Panics
/// When a text is refused without a message, or accepted and then not fit to run.
pub fn exercise(bytes: &[u8]) {
    exercise_as(bytes, None);
    if !bytes.trim_ascii_start().starts_with(b"vcl") {
        Generation::ALL
            .iter()
            .filter(|generation| generation.is_legacy())
            .for_each(|&old| exercise_as(bytes, Some(old)));
    }
}

fn exercise_as(bytes: &[u8], generation: Option<Generation>) {
    with_options(generation, |options| match compile(&SourceText { name: "fuzz", text: bytes }, options) {
        Ok(compiled) => {
            if let Err(error) = LinkedProgram::link(compiled.program) {
                panic!("an accepted program does not link: {error}");
            }
        }
        Err(error) => assert!(!error.text.is_empty(), "a refusal has a message"),
    });
}

fn with_options(generation: Option<Generation>, run: impl FnOnce(&CompileOptions<'_>)) {
    let storages = ["s0".to_owned(), "Transient".to_owned()];
    run(&CompileOptions {
        err_unref: false,
        generation,
        storages: &storages,
        labels: &["label".to_owned()],
        resolver: &OneHost,
        files: &OneFile,
        ..CompileOptions::default()
    });
}

/// Migrates `bytes`.
///
/// # Panics
/// When a text is refused without a message, or migrated to one that does not compile.
pub fn exercise_migrate(bytes: &[u8]) {
    with_options(None, |options| match crate::migrate(&SourceText { name: "fuzz", text: bytes }, options) {
        Ok(migrated) => {
            // A hint may name any storage, a storage is one of those that there are; a note says so.
            let is_hint = |text: &String| text.starts_with("Symbol not found: 'storage.");
            let problem =
                migrated.problem.map(|problem| problem.text).filter(|text| !is_hint(text)).unwrap_or_default();
            assert_eq!(problem, "", "{}", String::from_utf8_lossy(&migrated.text));
        }
        Err(error) => assert!(!error.text.is_empty(), "a refusal has a message"),
    });
}

/// Formats `bytes`.
///
/// # Panics
/// When a text is refused without a message, or formatted and not the same but for its layout, or not stable.
pub fn exercise_format(bytes: &[u8]) {
    let formatted = match crate::format(&SourceText { name: "fuzz", text: bytes }) {
        Ok(formatted) => formatted,
        Err(error) => {
            assert!(!error.text.is_empty(), "a refusal has a message");
            assert!(error.text != crate::format::CHANGED, "what parses can be formatted");
            return;
        }
    };
    assert_eq!(tokens_and_comments(bytes), tokens_and_comments(&formatted), "only the layout is another");
    let again = crate::format(&SourceText { name: "fuzz", text: &formatted });
    let again = again.unwrap_or_else(|error| panic!("a formatted text is no VCL: {error}"));
    assert_eq!(String::from_utf8_lossy(&formatted), String::from_utf8_lossy(&again), "a formatted text is stable");
}

/// The tokens of a text, and the comments before each of them without their white space.
fn tokens_and_comments(text: &[u8]) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut sources = Sources::default();
    let source = sources.add("fuzz".to_owned(), text.to_vec(), None);
    let tokens = lex(&sources, source, &mut Vec::new());
    let comments = |start: u32, end: usize| -> Vec<Vec<u8>> {
        let gap = crate::format::trivia::gap(text, start as usize, end);
        let shown = |from: usize, to: usize| {
            text[from..to].iter().copied().filter(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')).collect()
        };
        gap.comments.iter().map(|comment| shown(comment.start, comment.end)).collect()
    };
    let mut end = 0;
    let mut all = Vec::with_capacity(tokens.len() + 1);
    for token in tokens {
        all.push((sources.bytes(token).to_vec(), comments(end, token.start as usize)));
        end = token.end;
    }
    all.push((Vec::new(), comments(end, text.len())));
    all
}

/// Makes a program of `bytes`, runs it, and walks it naively. Returns how many things it did.
///
/// # Panics
/// When the program does not compile, or the evaluator does anything else than the naive one.
pub fn exercise_run(bytes: &[u8]) -> usize {
    let random = random::program(bytes);
    let text = random.vcl();
    let source = SourceText { name: "fuzz", text: text.as_bytes() };
    let options = CompileOptions { err_unref: false, resolver: &OneHost, files: &OneFile, ..CompileOptions::default() };
    let compiled = compile(&source, &options).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let program = LinkedProgram::link(compiled.program).unwrap_or_else(|error| panic!("{text}\n{error}"));
    // Texts that grow without end are for the limits of a request, which are not the language.
    let Some(expected) = naive::walk(&random) else { return 0 };
    let mut host = host::ListingHost::new(&program);
    let mut scratch = Scratch::new(64 << 20);
    Machine::new().run(&program, Method::Recv, &mut host, &mut scratch);
    assert_eq!(host.done, expected, "{text}");
    expected.len()
}
