//! The linter: rules of [`surface::lint`] applied to a VCL that compiles.
//!
//! The rules work on the tree and on words, not on types: names are compared in lower case. A rule
//! about the order of events walks all paths of a method (`lint/flow.rs`), with calls followed into
//! the subroutines. A condition that only mentions the subject of a rule satisfies it: the author
//! has thought of it, and a rule that doubts this would be suppressed everywhere. The result is a
//! list of findings in the order of the sources; comments suppress single ones
//! (`lint/suppression.rs`). Non-goal: to prove the absence of a fault.

mod acl;
mod client;
mod expressions;
mod fetch;
mod finding;
mod flow;
mod header_names;
mod key;
mod probe;
mod regex;
mod statements;
mod suppression;
#[cfg(test)]
mod tests;
mod view;

use crate::diagnostic::Diagnostics;
use crate::{CompileError, CompileOptions, SourceText, check, load, parse};
use finding::Found;
use surface::vcl::Generation;
use view::View;

pub use finding::Finding;

/// The result of linting.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Linted {
    /// The findings that no comment suppresses, in the order of the sources.
    pub findings: Vec<Finding>,
    /// Number of findings that comments suppress.
    pub suppressed: usize,
    /// Number of findings beyond the limit, which are not listed.
    pub hidden: usize,
}

/// Looks for breaches of the rules. Accepts any bytes.
///
/// # Errors
/// All messages of the compiler, if the text is not a valid VCL.
pub fn lint(source: &SourceText<'_>, options: &CompileOptions<'_>) -> Result<Linted, CompileError> {
    // An unused name is a finding.
    let options = CompileOptions { err_unref: false, ..*options };
    let generation = crate::compile(source, &options).map(|compiled| compiled.program.syntax)?;
    let assumed = Some(Generation::of_syntax(generation)).filter(|generation| generation.is_legacy());
    let mut diagnostics = Diagnostics::default();
    let Some(loaded) = load::load(source, &options, assumed, &mut diagnostics) else {
        return Err(CompileError::new(diagnostics));
    };
    let dialect = loaded.dialect;
    let user = parse::parse(&loaded.sources, &loaded.tokens, 0, dialect, &mut diagnostics);
    let builtin = parse::parse(&loaded.sources, &loaded.tokens, loaded.builtin, dialect, &mut diagnostics);
    let checked = check::check(
        &loaded,
        &user.declarations,
        &builtin.declarations,
        user.damaged,
        dialect,
        &options,
        &mut diagnostics,
    );
    if checked.is_none() {
        return Err(CompileError::new(diagnostics));
    }
    let mut found = Found::new(&loaded, options.follows_rfc);
    for diagnostic in diagnostics.finish().0 {
        found.compiler(&diagnostic);
    }
    let view = View::new(&loaded, &user.declarations);
    acl::look(&view, &mut found);
    client::look(&view, &mut found);
    expressions::look(&view, &mut found);
    fetch::look(&view, &mut found);
    header_names::look(&view, &mut found);
    key::look(&view, &mut found);
    probe::look(&view, &mut found);
    statements::look(&view, &mut found);
    let (findings, hidden) = (found.findings, found.hidden);
    let (mut findings, suppressed) = suppression::apply(&loaded, findings);
    findings.sort_by_key(|(source, finding)| (*source, finding.place.start, finding.rule));
    findings.dedup();
    let findings = findings.into_iter().map(|(_, finding)| finding).collect();
    Ok(Linted { findings, suppressed, hidden })
}
