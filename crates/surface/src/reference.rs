//! Files generated from the tables for people and shells: reference pages (`docs/reference`,
//! `docs/reference/vmods.md`), man pages (`packaging/man`) and completions
//! (`packaging/completions`).
//!
//! The files are in the repository, for packages and readers. `REFERENCE_UPDATE=1 cargo test -p
//! surface` rewrites them; without that variable, the test fails if one differs from the tables. A
//! page is a [`document::Document`], which can be written as Markdown and as roff.

mod cli;
mod completions;
mod counters;
pub mod document;
mod lint;
mod metrics;
mod parameters;
mod programs;
mod tags;
mod variables;
mod vmods;

use document::Document;

/// A file to be written.
pub struct Written {
    /// Its path from the root of the repository.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The reference pages: for each the name of the Markdown file, the name of the man page, the stock
/// name of such a page, and the page.
fn pages() -> Vec<(&'static str, &'static str, &'static str, Document)> {
    vec![
        ("parameters", "copal-parameters", "", parameters::page()),
        ("counters", "copal-counters", "varnish-counters", counters::page()),
        ("metrics", "copal-metrics", "", metrics::page()),
        ("log-tags", "copal-log-tags", "vsl", tags::page()),
        ("vcl-variables", "copal-vcl", "vcl", variables::page()),
        ("lint", "copal-lint", "", lint::page()),
        ("cli", "copal-cli", "varnish-cli", cli::page()),
    ]
}

/// Every file.
#[must_use]
pub fn files() -> Vec<Written> {
    let mut files = Vec::new();
    let mut write = |path: String, text: String| files.push(Written { path, text });
    for (name, man, stock, page) in pages() {
        write(format!("docs/reference/{name}.md"), page.markdown());
        write(format!("packaging/man/{man}.7"), page.roff(&[man, stock][..1 + usize::from(!stock.is_empty())], 7));
        if !stock.is_empty() {
            write(format!("packaging/man/{stock}.7"), format!(".so man7/{man}.7\n"));
        }
    }
    let vmods = vmods::page();
    write("docs/reference/vmods.md".to_owned(), vmods.markdown());
    write("packaging/man/copal-vmods.7".to_owned(), vmods.roff(&["copal-vmods"], 7));
    write("docs/reference/programs.md".to_owned(), programs::page().markdown());
    for (names, page) in programs::manuals() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        write(format!("packaging/man/{}.1", names[0]), page.roff(&names, 1));
        for stock in &names[1..] {
            write(format!("packaging/man/{stock}.1"), format!(".so man1/{}.1\n", names[0]));
        }
    }
    write("packaging/completions/copal.bash".to_owned(), completions::bash());
    write("packaging/completions/_copal".to_owned(), completions::zsh());
    write("packaging/completions/copal.fish".to_owned(), completions::fish());
    files
}

#[cfg(test)]
mod tests;
