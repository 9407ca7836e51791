//! Comments that suppress findings: `# copal: allow(S1, P2) reason`.
//!
//! Such a comment holds for its line, or for the next line with a token if it is alone in its line.
//! One that suppresses nothing, names no rule or gives no reason is a finding itself.

use super::finding::{Finding, Placed};
use crate::diagnostic::between;
use crate::format::trivia::{Comment, gap};
use crate::lex::lex;
use crate::load::Loaded;
use crate::source::{Kind, Token};
use surface::lint::Rule;

const MARK: &str = "copal: allow(";

/// One name in a comment.
struct Allow {
    source: u32,
    /// The line for which it holds.
    line: u32,
    /// The comment, as a token.
    token: Token,
    name: String,
    has_reason: bool,
    is_used: bool,
}

/// Removes the suppressed findings, and adds those about suppressions. Also returns the number of
/// removed findings.
pub(super) fn apply(loaded: &Loaded, findings: Vec<Placed>) -> (Vec<Placed>, usize) {
    let mut allows = Vec::new();
    for source in 0..loaded.sources.files.len() as u32 {
        read(loaded, source, &mut allows);
    }
    let before = findings.len();
    let mut kept = Vec::with_capacity(before);
    for (source, finding) in findings {
        let lines = finding.place.line..=finding.place.end_line;
        let holds = |allow: &&mut Allow| {
            allow.source == source
                && lines.contains(&allow.line)
                && Rule::of_id(&allow.name) == Some(finding.rule)
                && allow.has_reason
        };
        match allows.iter_mut().find(holds) {
            Some(allow) => allow.is_used = true,
            None => kept.push((source, finding)),
        }
    }
    let suppressed = before - kept.len();
    for allow in allows.iter().filter(|allow| !allow.is_used) {
        kept.push((allow.source, useless(loaded, allow)));
    }
    (kept, suppressed)
}

fn useless(loaded: &Loaded, allow: &Allow) -> Finding {
    let name = &allow.name;
    let message = match Rule::of_id(name) {
        None => format!("There is no rule {name}"),
        Some(_) if !allow.has_reason => format!("allow({name}) gives no reason"),
        Some(_) => format!("allow({name}) suppresses nothing"),
    };
    Finding {
        rule: Rule::AllowUnused,
        message,
        place: between(&loaded.sources, allow.token, allow.token),
        related: Vec::new(),
        hint: Rule::AllowUnused.row().hint.to_owned(),
        fix: None,
    }
}

/// Collects the comments of a source.
fn read(loaded: &Loaded, source: u32, allows: &mut Vec<Allow>) {
    let text = &loaded.sources.files[source as usize].text;
    if !text.windows(MARK.len()).any(|window| window == MARK.as_bytes()) {
        return;
    }
    let tokens = lex(&loaded.sources, source, &mut Vec::new());
    let mut start = 0;
    for index in 0..=tokens.len() {
        let next = tokens.get(index);
        let end = next.map_or(text.len(), |token| token.start as usize);
        for comment in gap(text, start, end).comments {
            let before = index.checked_sub(1).and_then(|before| tokens.get(before)).copied();
            one(loaded, source, comment, before, next.copied(), allows);
        }
        start = next.map_or(text.len(), |token| token.end as usize);
    }
}

fn one(
    loaded: &Loaded,
    source: u32,
    comment: Comment,
    before: Option<Token>,
    next: Option<Token>,
    allows: &mut Vec<Allow>,
) {
    let text = &loaded.sources.files[source as usize].text;
    let words = String::from_utf8_lossy(&text[comment.start..comment.end]).into_owned();
    let Some((_, rest)) = words.split_once(MARK) else { return };
    let Some((names, reason)) = rest.split_once(')') else { return };
    let token = Token { kind: Kind::Word, source, start: comment.start as u32, end: comment.end as u32 };
    let own = loaded.sources.place(token).0;
    let last_byte = |token: Token| loaded.sources.place_at(source, token.end.saturating_sub(1)).0;
    let is_alone = before.is_none_or(|before| last_byte(before) != own);
    let line = match next {
        Some(next) if is_alone => loaded.sources.place(next).0,
        _ => own,
    };
    let has_reason = !reason.trim().trim_end_matches("*/").trim().is_empty();
    for name in names.split(',') {
        let name = name.trim().to_owned();
        allows.push(Allow { source, line, token, name, has_reason, is_used: false });
    }
}
