//! Arbitrary bytes through the compiler (without files or a name server), the formatter and the
//! migration; and small programs made from bytes, run by the evaluator and by a naive one.

mod host;
mod naive;
mod random;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use surface::vcl::{Generation, Method};
use vcl::{CompileOptions, FileKind, ReadFile, Resolve, SourceText};
use vcl_run::eval::Machine;
use vcl_run::link::LinkedProgram;
use vcl_run::value::Scratch;

/// Every include finds the same small text; deeper includes find nothing, so that they end.
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

/// Compiles `bytes`, both as they are and as each of the old dialects.
///
/// # Panics
/// When a text is refused without a message, or is accepted but can't be run or linted.
pub fn compile(bytes: &[u8]) {
    compile_as(bytes, None);
    if !bytes.trim_ascii_start().starts_with(b"vcl") {
        Generation::ALL
            .iter()
            .filter(|generation| generation.is_legacy())
            .for_each(|&old| compile_as(bytes, Some(old)));
    }
}

fn compile_as(bytes: &[u8], generation: Option<Generation>) {
    with_options(generation, |options| match vcl::compile(&SourceText { name: "fuzz", text: bytes }, options) {
        Ok(compiled) => {
            if let Err(error) = LinkedProgram::link(compiled.program) {
                panic!("an accepted program does not link: {error}");
            }
            lint(bytes, options);
        }
        Err(error) => assert!(!error.text.is_empty(), "a refusal has a message"),
    });
}

fn lint(bytes: &[u8], options: &CompileOptions<'_>) {
    let linted = vcl::lint(&SourceText { name: "fuzz", text: bytes }, options);
    for finding in linted.expect("what compiles can be linted").findings {
        let shown = finding.pretty(false);
        assert!(!shown.contains(|letter: char| letter != '\n' && letter.is_control()), "{shown:?}");
    }
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
/// When a text is refused without a message, or the result of the migration does not compile.
pub fn migrate(bytes: &[u8]) {
    with_options(None, |options| match vcl::migrate(&SourceText { name: "fuzz", text: bytes }, options) {
        Ok(migrated) => {
            // A storage hint may name any storage, but the expression must name one that exists;
            // the migration adds a note.
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
/// When a text is refused without a message, when it is VCL but formatting would change its
/// meaning, or when formatting the result changes it again.
pub fn format(bytes: &[u8]) {
    let formatted = match vcl::format(&SourceText { name: "fuzz", text: bytes }) {
        Ok(formatted) => formatted,
        Err(error) => {
            assert!(!error.text.is_empty(), "a refusal has a message");
            // The formatter also fails if its result differs from the input; that error has no
            // message about the text.
            assert!(!error.diagnostics.is_empty(), "what parses can be formatted: {error}");
            return;
        }
    };
    let again = vcl::format(&SourceText { name: "fuzz", text: &formatted });
    let again = again.unwrap_or_else(|error| panic!("a formatted text is no VCL: {error}"));
    assert_eq!(String::from_utf8_lossy(&formatted), String::from_utf8_lossy(&again), "a formatted text is stable");
}

/// Makes a program from `bytes`, runs it, and walks it naively. Returns the number of its actions.
///
/// # Panics
/// When the program does not compile, or the evaluator and the naive one differ.
pub fn run(bytes: &[u8]) -> usize {
    let random = random::program(bytes);
    let text = random.vcl();
    let source = SourceText { name: "fuzz", text: text.as_bytes() };
    let options = CompileOptions { err_unref: false, resolver: &OneHost, files: &OneFile, ..CompileOptions::default() };
    let compiled = vcl::compile(&source, &options).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let program = LinkedProgram::link(compiled.program).unwrap_or_else(|error| panic!("{text}\n{error}"));
    // Texts that grow too long are stopped by the limits of a request, which are not part of the
    // language.
    let Some(expected) = naive::walk(&random) else { return 0 };
    // A traced run executes each instruction, other runs the optimised steps.
    for is_traced in [false, true] {
        let mut host = host::ListingHost::new(&program, is_traced);
        let mut scratch = Scratch::new(64 << 20);
        Machine::new().run(&program, Method::Recv, &mut host, &mut scratch);
        assert_eq!(host.done, expected, "{text}");
    }
    expected.len()
}
