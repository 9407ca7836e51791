//! `copal vcl`: works with VCL texts without a server.
//!
//! Each command is a row of [`COMMANDS`] and a file in `vcl_tool/`: a function from its arguments
//! to its exit status, which is 0 for success, 1 for errors in the text, 2 for errors in the
//! command line.

mod check;
mod difference;
mod display;
mod explain;
mod fmt;
mod json;
mod lint;
mod lsp;
mod migrate;
mod settings;
mod text_file;

use crate::Streams;
use crate::options::{self, Given};
use std::ffi::OsString;
use surface::program::program;

/// Exit status for an invalid command line, and for files that cannot be read.
const USAGE_ERROR: i32 = 2;

type Command = fn(Given, &mut Streams) -> i32;

/// The commands; their rows are in `surface::program`.
static COMMANDS: &[(&str, Command)] = &[
    ("vcl check", check::run),
    ("vcl lint", lint::run),
    ("vcl fmt", fmt::run),
    ("vcl migrate", migrate::run),
    ("vcl explain", explain::run),
];

pub(crate) use lsp::run as lsp;

pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let Some((first, rest)) = args.split_first() else {
        let _ = streams.error.write_all(usage().as_bytes());
        return USAGE_ERROR;
    };
    let word = first.to_string_lossy();
    if matches!(&*word, "--help" | "-h" | "help") {
        let _ = streams.output.write_all(usage().as_bytes());
        return 0;
    }
    let called = |(part, _): &&(&str, Command)| part.split(' ').nth(1) == Some(&*word);
    let Some((part, run)) = COMMANDS.iter().find(called) else {
        let names: Vec<&str> = commands().map(|(word, _)| word).collect();
        let meant = surface::nearest::did_you_mean(&word, "", names.iter().copied());
        let names = names.join(", ");
        let _ = writeln!(streams.error, "copal vcl: no command is called '{word}'{meant}; there are {names}");
        return USAGE_ERROR;
    };
    match options::parse(part, rest, streams) {
        Ok(given) => run(given, streams),
        Err(status) => status,
    }
}

fn usage() -> String {
    let mut text = program("vcl").usage(surface::program::Called::Copal);
    text.push_str("\nCommands:\n");
    for (word, line) in commands() {
        text += &format!("  {word:<9} {line}\n");
    }
    text
}

/// Every command of `copal vcl` with its summary: those here, and those of the crate `vcl-test`,
/// which run the engine.
fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    surface::program::PROGRAMS.iter().filter_map(|row| Some((row.part.strip_prefix("vcl ")?, row.line)))
}

/// Reports an error in the command line.
fn wrong(command: &str, text: &str, streams: &mut Streams) -> i32 {
    options::wrong(program(&format!("vcl {command}")), text, streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exit status, output and messages.
    pub(super) fn run_with(args: &[&str], input: &str) -> (i32, String, String) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let mut streams = Streams {
            input: &mut input.as_bytes(),
            output: &mut output,
            error: &mut error,
            program: false,
            called: surface::program::Called::Copal,
        };
        let status = run(&args, &mut streams);
        (status, String::from_utf8(output).unwrap(), String::from_utf8(error).unwrap())
    }

    const GOOD: &str = "vcl 4.1; backend default none;";

    #[test]
    fn a_valid_text_is_status_0_an_invalid_one_1_a_wrong_line_2() {
        assert_eq!(run_with(&["check", "-"], GOOD), (0, "<stdin>: ok\n".into(), String::new()));
        let (status, output, error) =
            run_with(&["check", "-"], "vcl 4.1;\nbackend default none;\nsub vcl_recv { set req.urll = \"/\"; }");
        assert_eq!((status, error.as_str()), (1, ""));
        assert!(output.starts_with("error[V0301]: Symbol not found: 'req.urll'\n  --> <stdin>:3:20\n"), "{output}");
        assert!(
            output.contains("\n    3 | sub vcl_recv { set req.urll = \"/\"; }\n      |                    ^^^^^^^^\n"),
            "{output}"
        );
        assert!(
            output.contains("  hint: did you mean req.url?\n") && output.ends_with("<stdin>: 1 error\n"),
            "{output}"
        );
        for line in
            [&["check"][..], &["check", "--nonsense", "-"], &["check", "-p", "no_such=1", "-"], &["nonsense"], &[]]
        {
            let (status, output, error) = run_with(line, GOOD);
            assert_eq!((status, output.as_str()), (2, ""), "{line:?} {error}");
            assert!(error.contains("copal vcl"), "{error}");
        }
        let (status, _, error) = run_with(&["check", "/no/such/file.vcl"], "");
        assert_eq!((status, error.as_str()), (2, "/no/such/file.vcl: No such file or directory\n"));
    }

    #[test]
    fn warnings_are_not_errors() {
        let text = "vcl 4.1; backend default none; acl unused { }";
        let (status, output, _) = run_with(&["check", "-p", "vcc_err_unref=off", "-"], text);
        assert_eq!(status, 0);
        assert!(
            output.starts_with("warning[V0316]: Unused acl unused\n") && output.ends_with("<stdin>: 1 warning\n"),
            "{output}"
        );
        assert_eq!(run_with(&["check", "-"], text).0, 1);
    }

    #[test]
    fn json_is_one_document_with_every_message() {
        let text = "vcl 4.1; backend default none;\nsub vcl_recv { set req.urll = \"/\"; set req.ttl = 1; }";
        let (status, output, _) = run_with(&["check", "--json", "-"], text);
        assert_eq!(status, 1);
        let value: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!((value["errors"].as_u64(), value["warnings"].as_u64()), (Some(2), Some(0)));
        let first = &value["diagnostics"][0];
        assert_eq!((first["code"].as_str(), first["severity"].as_str()), (Some("V0301"), Some("error")));
        assert_eq!(
            (first["line"].as_u64(), first["column"].as_u64(), first["end_column"].as_u64()),
            (Some(2), Some(20), Some(27))
        );
        assert_eq!(first["suggestions"][0]["replacement"], "req.url");
        assert_eq!(first["main"], "<stdin>");
        assert_eq!(value["diagnostics"][1]["message"], "Expression has type INT, expected DURATION");
        let (status, output, _) = run_with(&["check", "--json", "-"], GOOD);
        assert_eq!(status, 0);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&output).unwrap()["diagnostics"], serde_json::json!([]));
    }

    #[test]
    fn the_text_form_is_that_of_the_cli() {
        let (status, output, _) = run_with(&["check", "--text", "-"], "vcl 4.1;");
        assert_eq!(status, 1);
        assert!(
            output.starts_with("No backends or directors found in VCL program, at least one is necessary.\nhint: "),
            "{output}"
        );
    }

    #[test]
    fn labels_and_storages_are_named_on_the_command_line() {
        let text =
            "vcl 4.1; backend default none; sub vcl_recv { set req.storage = storage.fast; return (vcl(blog)); }";
        assert_eq!(run_with(&["check", "-"], text).0, 1);
        assert_eq!(run_with(&["check", "--label", "blog", "--storage=fast", "-"], text).0, 0);
    }

    #[test]
    fn includes_are_found_next_to_the_file_and_in_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::create_dir(path("lib")).unwrap();
        std::fs::write(path("lib/hooks.vcl"), "sub vcl_deliver { unset resp.http.x; }").unwrap();
        std::fs::write(path("origin.vcl"), "backend default none;").unwrap();
        std::fs::write(path("main.vcl"), "vcl 4.1; include \"./origin.vcl\"; include \"hooks.vcl\";").unwrap();
        assert_eq!(run_with(&["check", "-I", &path("lib"), &path("main.vcl")], "").0, 0);
        let (status, output, _) = run_with(&["check", &path("main.vcl")], "");
        assert_eq!(status, 1);
        assert!(output.contains("error[V0008]: Cannot read file 'hooks.vcl' (No such file or directory)"), "{output}");
    }

    #[test]
    fn include_of_a_non_file_is_a_compile_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::create_dir_all(path("parts/b.vcl")).unwrap();
        std::fs::write(path("parts/a.vcl"), "backend default none;").unwrap();
        let check = |include: &str| run_with(&["check", "-"], &format!("vcl 4.1; include {include};"));
        for (include, message) in [
            ("\"/dev/zero\"".to_owned(), "Cannot read file '/dev/zero' (Not a regular file)"),
            (format!("\"{}\"", path("parts")), "(Is a directory)"),
            (format!("+glob \"{}\"", path("parts/*.vcl")), "b.vcl' (Is a directory)"),
            (format!("+glob \"{}\"", "/*".repeat(100_000)), "glob pattern matched no files."),
        ] {
            let (status, output, _) = check(&include);
            assert!(status == 1 && output.contains(message), "{output}");
        }
        let (status, output, _) = check(&format!("+glob \"{}\"", path("parts/a*.vcl")));
        assert_eq!(status, 0, "{output}");
    }

    #[test]
    fn files_are_formatted_in_place_and_the_input_to_the_output() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (ugly, pretty) = ("sub a{call b;}", "sub a {\n    call b;\n}\n");
        std::fs::write(path("ugly.vcl"), ugly).unwrap();
        std::fs::write(path("pretty.vcl"), pretty).unwrap();
        std::fs::write(path("broken.vcl"), "sub {").unwrap();
        std::os::unix::fs::symlink(path("ugly.vcl"), path("link.vcl")).unwrap();
        assert_eq!(run_with(&["fmt"], ugly), (0, pretty.into(), String::new()));
        assert_eq!(run_with(&["fmt", "--stdin"], ugly), (0, pretty.into(), String::new()));
        assert_eq!(run_with(&["fmt", "--check", "-"], pretty), (0, String::new(), String::new()));
        let (status, output, error) = run_with(&["fmt", "--check", &path("link.vcl"), &path("pretty.vcl")], "");
        assert_eq!((status, output, error), (1, format!("{}\n", path("link.vcl")), String::new()));
        assert_eq!(std::fs::read_to_string(path("ugly.vcl")).unwrap(), ugly);
        // Without an option nothing on the disk changes.
        let (status, output, _) = run_with(&["fmt", &path("ugly.vcl"), &path("pretty.vcl")], "");
        assert_eq!((status, output), (0, format!("{pretty}{pretty}")));
        assert_eq!(run_with(&["fmt", "--write"], ugly), (0, pretty.into(), String::new()), "the standard input");
        assert_eq!(std::fs::read_to_string(path("ugly.vcl")).unwrap(), ugly);
        let (status, output, error) =
            run_with(&["fmt", "--write", &path("broken.vcl"), &path("link.vcl"), &path("pretty.vcl")], "");
        assert_eq!((status, output.as_str()), (1, ""));
        assert!(error.contains("Expected ID got '{'") && error.contains("broken.vcl: left as it is\n"), "{error}");
        assert_eq!(std::fs::read_to_string(path("ugly.vcl")).unwrap(), pretty);
        assert!(std::fs::symlink_metadata(path("link.vcl")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(path("broken.vcl")).unwrap(), "sub {");
        assert_eq!(run_with(&["fmt", "/no/such/file.vcl"], "").0, 2);
    }

    #[test]
    fn an_old_text_is_migrated_to_the_output_or_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let old = "backend b { .host = \"192.0.2.1\"; }\nsub vcl_fetch { set beresp.saintmode = 5s; }\n";
        let (status, output, error) = run_with(&["migrate", "-"], old);
        assert_eq!(status, 0, "{error}");
        assert!(output.starts_with("vcl 4.1;\n") && output.contains("sub vcl_backend_response {"), "{output}");
        assert!(error.contains("<stdin>:2: saint mode") && error.contains("-: read as VCL 3.0"), "{error}");
        std::fs::write(path("old.vcl"), old).unwrap();
        assert_eq!(run_with(&["migrate", &path("old.vcl"), "-o", &path("new.vcl")], "").0, 0);
        assert_eq!(std::fs::read_to_string(path("new.vcl")).unwrap(), output);
        assert_eq!(run_with(&["migrate", "--in-place", &path("old.vcl")], "").0, 0);
        assert_eq!(std::fs::read_to_string(path("old.vcl")).unwrap(), output);
        assert_eq!(run_with(&["check", &path("old.vcl")], "").0, 0);
        let (status, output, error) = run_with(&["migrate", "-"], "sub vcl_fetch {");
        assert_eq!((status, output.as_str()), (1, ""));
        assert!(error.ends_with("-: not migrated\n"), "{error}");
        assert_eq!(run_with(&["migrate"], "").0, 2);
    }

    #[test]
    fn a_difference_shows_the_lines_that_change() {
        let (status, output, _) = run_with(&["fmt", "--diff", "-"], "sub a {\n  call b;\n}\n");
        assert_eq!(status, 0);
        assert_eq!(
            output,
            "--- <stdin>\n+++ <stdin> (formatted)\n@@ -1,3 +1,3 @@\n sub a {\n-  call b;\n+    call b;\n }\n"
        );
        assert_eq!(run_with(&["fmt", "--diff", "--check", "-"], "sub a { }").0, 1);
    }

    #[test]
    fn everything_with_a_name_is_explained() {
        let explain = |words: &[&str]| run_with(&[&["explain"], words].concat(), "");
        let (status, list, _) = explain(&[]);
        assert_eq!(status, 0);
        for row in surface::diagnostic::CODES {
            assert!(list.contains(&format!("{}  {}\n", row.number, row.title)), "{}", row.number);
            let (status, text, _) = explain(&[row.number]);
            assert_eq!(status, 0);
            assert!(text.contains(row.title) && text.contains(row.good.lines().next().unwrap()), "{text}");
        }
        for (word, part) in [
            ("beresp.ttl", "DURATION"),
            ("BERESP.TTL", "set in: vcl_backend_refresh, vcl_backend_response, vcl_backend_error"),
            ("req.http.host", "req.http.*"),
            ("storage.s0.happy", "BOOL"),
            ("vcl_recv", "returns: fail, synth, restart, pass, pipe, hash, purge, vcl"),
            ("deliver", "returned by: vcl_hit, vcl_deliver"),
            ("hash_data", "only in vcl_hash"),
            ("std", "std.healthy("),
            ("std.healthy", "BOOL std.healthy(BACKEND be)"),
            ("directors.round_robin", "new name = directors.round_robin()"),
            ("directors.round_robin.add_backend", ".add_backend(BACKEND"),
            ("v0301", "Nothing has this name"),
            ("vcl_fetch", "VCL 4 says: vcl_backend_response"),
            ("vcl_fetch", "returns in 3.0: error, restart, hit_for_pass, deliver"),
            ("hit_for_pass", "returned in 3.0 by: vcl_fetch"),
            ("obj.cacheable", "1.1, read in vcl_hit, vcl_fetch, set in vcl_hit, vcl_fetch;"),
            ("req.request", "VCL 4 says: req.method"),
            ("purge_url", "VCL 4 says: ban("),
            ("copal/s1", "S1 (error): Response with Set-Cookie is stored"),
        ] {
            let (status, text, error) = explain(&[word]);
            assert_eq!(status, 0, "{word}: {error}");
            assert!(text.contains(part), "{word}: {text}");
        }
        for row in surface::vcl::VARIABLES {
            assert_eq!(explain(&[row.name]).0, 0, "{}", row.name);
        }
        let (status, _, error) = explain(&["beresp.tll"]);
        assert_eq!(
            (status, error.as_str()),
            (1, "copal vcl explain: nothing is called 'beresp.tll'; did you mean beresp.ttl?\n")
        );
    }

    #[test]
    fn help_is_had_for_every_command() {
        let (status, output, _) = run_with(&["--help"], "");
        assert_eq!(status, 0);
        let is_here = |name: &str| COMMANDS.iter().any(|(part, _)| part.strip_prefix("vcl ") == Some(name));
        let others: Vec<&str> = commands().map(|(name, _)| name).filter(|name| !is_here(name)).collect();
        assert_eq!(others, ["test", "trace"], "those of the crate vcl-test");
        for (name, line) in commands() {
            assert!(output.contains(name) && output.contains(line), "{output}");
            if !is_here(name) {
                continue;
            }
            let (status, output, _) = run_with(&[name, "--help"], "");
            assert_eq!(status, 0);
            assert!(output.starts_with(&format!("Usage: copal vcl {name}")), "{output}");
        }
    }
}
