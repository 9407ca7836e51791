//! Texts without a version line, and the backend of the command line for texts without one.

use super::{Files, compile_with};
use crate::{BACKEND_OPTION_NAME, CompileError, Compiled, backend_option};
use surface::diagnostic::Code;
use surface::vcl::Generation;

fn compiled(text: &str) -> Result<Compiled, CompileError> {
    compile_with(text.as_bytes(), &Files::default(), |options| options.version_optional = true)
}

fn with_backend(text: &str, argument: &str) -> Result<Compiled, CompileError> {
    // The options of a test hold for ever.
    let backend: &'static str = backend_option(argument).leak();
    compile_with(text.as_bytes(), &Files::default(), |options| {
        (options.version_optional, options.default_backend) = (true, Some(backend));
    })
}

fn codes(error: &CompileError) -> Vec<Code> {
    error.diagnostics.iter().map(|message| message.code).collect()
}

#[test]
fn text_without_a_version_is_4_1_unless_it_uses_an_old_word() {
    for text in [
        "backend b { .host = \"192.0.2.1\"; }",
        "backend b { .host = \"192.0.2.1\"; } sub vcl_recv { if (req.url ~ \"^/a\") { return (pass); } }",
        "backend b none; sub vcl_backend_response { set beresp.ttl = 1m; }",
        "import std; backend b none; sub vcl_recv { std.log(\"x\"); }",
    ] {
        let compiled = compiled(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!((compiled.program.syntax, compiled.warnings.as_str()), (41, ""), "{text}");
    }
    let old = "backend b { .host = \"192.0.2.1\"; } sub vcl_fetch { set beresp.ttl = 1m; return (deliver); }";
    let old = compiled(old).unwrap();
    assert_eq!(old.program.generation(), Generation::V3);
    assert!(old.warnings.contains("No VCL version declaration: read as the VCL of Varnish 3.0"), "{}", old.warnings);
    let stock = compile_with(b"backend b none;", &Files::default(), |_| {}).unwrap_err();
    assert_eq!(codes(&stock), [Code::VersionMissing], "Varnish refuses it");
}

#[test]
fn errors_of_a_text_without_a_version_are_those_of_4_1() {
    let error = compiled("backend b none; sub vcl_recv { set req.urll = \"/\"; }").unwrap_err();
    assert_eq!(codes(&error), [Code::UnknownSymbol], "{error}");
    let error = compiled("backend b { .host = \"192.0.2.1\"; } sub vcl_recv { set req.urll = \"/\"; }").unwrap_err();
    assert_eq!(codes(&error), [Code::UnknownSymbol], "{error}");
    assert_eq!(codes(&compiled("").unwrap_err()), [Code::NoBackend]);
    assert_eq!(codes(&compiled("vlc 4.1; backend b none;").unwrap_err()), [Code::VersionMissing]);
    assert_eq!(codes(&compiled("vcl 9.9; backend b none;").unwrap_err()), [Code::VersionUnsupported]);
}

#[test]
fn backend_option_is_the_default_backend_of_a_text_without_one() {
    for text in [
        "",
        "vcl 4.1;",
        "vcl 4.0; sub vcl_recv { set req.backend_hint = default; }",
        "sub vcl_recv { set req.backend_hint = default; }",
        "sub vcl_recv { } sub vcl_fetch { return (deliver); }",
    ] {
        let compiled = with_backend(text, "192.0.2.1:8080").unwrap_or_else(|error| panic!("{text}\n{error}"));
        let program = &compiled.program;
        assert_eq!(program.backends.iter().map(|backend| backend.name.as_str()).collect::<Vec<_>>(), ["default"]);
        let names: Vec<&str> = program.sources.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names[..2], ["/etc/vcl/test.vcl", BACKEND_OPTION_NAME], "{text}");
    }
    assert!(with_backend("vcl 4.1;", "none").is_ok());
    assert_eq!(codes(&with_backend("vcl 4.1;", "no-such.example").unwrap_err()), [Code::BackendUnresolved]);
}

#[test]
fn text_that_defines_a_backend_is_refused_with_the_option() {
    for text in [
        "vcl 4.1; backend own none;",
        "backend own { .host = \"192.0.2.1\"; }",
        "vcl 4.1; sub vcl_recv { } backend own none;",
        "director own random { { .backend = { .host = \"192.0.2.1\"; } .weight = 1; } }",
    ] {
        let error = with_backend(text, "192.0.2.1").unwrap_err();
        assert!(codes(&error).contains(&Code::Redefined), "{text}\n{error}");
        assert!(error.text.contains("-b names the backend of a VCL that defines none"), "{error}");
        assert!(error.text.contains("leave out -b, or the backends of the VCL"), "{error}");
    }
}
