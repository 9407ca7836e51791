//! A compiled program in readable form: its definitions, then its instructions with their places in
//! the sources (`-C`).

use std::fmt::Write;
use vcl_run::program::{Op, Program};

/// Longest piece of a constant that is shown, in characters.
const CONSTANT_LETTERS_MAX: usize = 60;

/// The program as text.
#[must_use]
pub fn listing(program: &Program) -> String {
    let mut out = String::new();
    definitions(program, &mut out);
    for (index, sub) in program.subs.iter().enumerate() {
        let _ = writeln!(out, "\nsub {} {{ # {index}", sub.name);
        for at in sub.entry..sub.end {
            if let Some(op) = program.code.get(at as usize) {
                let _ = writeln!(out, "  {at:5}  {}", instruction(program, op));
            }
        }
        let _ = writeln!(out, "}}");
    }
    out
}

fn definitions(program: &Program, out: &mut String) {
    let _ = writeln!(out, "vcl {}.{};", program.syntax / 10, program.syntax % 10);
    let named = |out: &mut String, what: &str, names: &[String]| {
        for (index, name) in names.iter().enumerate() {
            let _ = writeln!(out, "{what} {index}: {name}");
        }
    };
    let sources: Vec<String> =
        program.sources.iter().map(|source| format!("{} ({} bytes)", source.name, source.text.len())).collect();
    named(out, "source", &sources);
    named(out, "import", &program.vmods);
    for (index, backend) in program.backends.iter().enumerate() {
        let default = if program.default_backend == Some(index as u32) { ", default" } else { "" };
        let _ = writeln!(out, "backend {index}: {} {:?}{default}", backend.name, backend.endpoint);
    }
    for (index, probe) in program.probes.iter().enumerate() {
        let _ = writeln!(out, "probe {index}: {} {}", probe.name, probe.url);
    }
    for (index, acl) in program.acls.iter().enumerate() {
        let _ = writeln!(out, "acl {index}: {} ({} entries)", acl.name, acl.entries.len());
    }
    for (index, instance) in program.instances.iter().enumerate() {
        let _ = writeln!(out, "new {index}: {} = {}.{}", instance.name, instance.vmod, instance.class);
    }
    named(out, "label", &program.labels);
    named(out, "header", &program.headers);
    named(out, "regex", &program.regexes);
}

/// One instruction; constants and places are shown next to their numbers.
fn instruction(program: &Program, op: &Op) -> String {
    match op {
        Op::Text { start, len } => {
            let (start, len) = (*start as usize, *len as usize);
            let bytes = program.constants.get(start..start.saturating_add(len)).unwrap_or_default();
            let text: String = String::from_utf8_lossy(bytes).chars().take(CONSTANT_LETTERS_MAX).collect();
            format!("Text {text:?}")
        }
        Op::Trace(point) => match program.points.get(*point as usize) {
            Some(point) => format!("Trace {}:{}:{}", point.source, point.line, point.position),
            None => format!("{op:?}"),
        },
        Op::Call(sub) => match program.subs.get(*sub as usize) {
            Some(sub) => format!("Call {}", sub.name),
            None => format!("{op:?}"),
        },
        _ => format!("{op:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::listing;
    use vcl::{CompileOptions, SourceText, compile};

    #[test]
    fn a_listing_names_what_the_program_does() {
        let text = b"vcl 4.1; backend here none; sub vcl_recv { set req.http.x = \"a constant\"; call own; } sub own { return (pass); }";
        let source = SourceText { name: "<test>", text };
        let program = compile(&source, &CompileOptions::default()).unwrap().program;
        let listing = listing(&program);
        for expected in [
            "vcl 4.1;\n",
            "source 0: <test> (",
            "backend 0: here None, default\n",
            "\nsub own {",
            "Text \"a constant\"\n",
            "Call own\n",
        ] {
            assert!(listing.contains(expected), "{expected} is not in {listing}");
        }
    }
}
