//! Rules of single expressions: ban expressions (S6, P2), statistics parameters (P4), regular
//! expressions (P5), replacements (C3), impossible status codes (C10).

use super::finding::Found;
use super::regex;
use super::view::{View, bare};
use crate::diagnostic::Suggestion;
use crate::source::Sign;
use crate::tree::{Argument, At, Expression, ExpressionKind, Path, Statement};
use surface::lint::Rule;

/// Cookies of statistics, as they occur in patterns.
const STATISTICS_COOKIES: &[&str] = &["_ga", "__utm", "_gid", "_fbp"];
/// Parameters of statistics.
const STATISTICS_PARAMETERS: &[&str] = &["utm_", "gclid", "fbclid"];

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    view.expressions(&mut |statement, expression| match &expression.kind {
        ExpressionKind::Compare(pair, operator) => {
            pattern(view, expression, *operator, &pair.1, found);
            status(view, expression, *operator, pair, found);
        }
        ExpressionKind::Path(path) => {
            replacement(view, path, found);
            if view.name(path) == "std.ban" {
                ban_arguments(view, statement, path, found);
            }
        }
        _ => {}
    });
    view.statements(&mut |_, statement| match statement {
        Statement::Ban { value } => ban(view, value, found),
        Statement::Use { path, .. } if view.name(path) == "std.ban" => ban_arguments(view, statement, path, found),
        _ => {}
    });
    query_noise(view, found);
}

fn arguments(path: &Path) -> &[Argument] {
    path.segments.last().and_then(|segment| segment.arguments.as_ref()).map_or(&[], |arguments| &arguments.items)
}

fn ban_arguments(view: &View<'_>, _statement: &Statement, path: &Path, found: &mut Found<'_>) {
    if let Some(first) = arguments(path).first() {
        ban(view, &first.value, found);
    }
}

/// The text of a ban expression: constants joined, other parts as a control character.
fn ban(view: &View<'_>, value: &Expression, found: &mut Found<'_>) {
    let mut parts: Vec<&Expression> = Vec::new();
    match &bare(value).kind {
        ExpressionKind::Sum(first, rest) => {
            parts.push(first);
            parts.extend(rest.iter().map(|(_, part)| part));
        }
        ExpressionKind::Juxtaposed(all) => parts.extend(all),
        _ => parts.push(value),
    }
    let mut text = String::new();
    for part in parts {
        match view.constant(part) {
            Some(constant) => text.push_str(&constant),
            None => {
                if is_injected(view, part, &text) {
                    let message = "The request writes a part of this ban expression";
                    found.add(Rule::BanInjection, part.first, part.last, message);
                }
                text.push('\u{1}');
            }
        }
    }
    if text.split("&&").any(|condition| condition.trim_start().starts_with("req.")) {
        let message = "The ban lurker has no request to compare with";
        found.add(Rule::BanNotByLurker, value.first, value.last, message);
    }
}

fn is_injected(view: &View<'_>, part: &Expression, before: &str) -> bool {
    let ExpressionKind::Path(path) = &bare(part).kind else { return false };
    let name = view.name(path);
    let is_pattern = before.trim_end().ends_with('~');
    let is_url = view.is_one_of(path, &["req.url"]);
    // A URL and a host contain no blanks.
    (is_pattern && is_url) || name.starts_with("req.http.") && (is_pattern || !view.is_one_of(path, &["req.http.host"]))
}

fn pattern(view: &View<'_>, whole: &Expression, operator: At, right: &Expression, found: &mut Found<'_>) {
    let instead = if view.is_sign(operator, Sign::Match) {
        "=="
    } else if view.is_sign(operator, Sign::NotMatch) {
        "!="
    } else {
        return;
    };
    let Some(text) = view.constant(right) else { return };
    if regex::is_exponential(&text) {
        let message = "A text that does not match takes this expression exponential time";
        found.add(Rule::RegexCost, right.first, right.last, message);
    }
    let Some(fixed) = regex::fixed_text(&text) else { return };
    let place = found.place(operator, right.last);
    let message = "This regular expression is a comparison with a fixed text";
    if let Some(finding) = found.add(Rule::RegexCost, whole.first, whole.last, message) {
        finding.fix = place.map(|place| Suggestion { place, replacement: format!("{instead} \"{fixed}\"") });
    }
}

/// `regsub(text, pattern, replacement)` with a group that the pattern does not have.
fn replacement(view: &View<'_>, path: &Path, found: &mut Found<'_>) {
    if path.segments.len() != 1 || !["regsub", "regsuball"].contains(&&*view.name(path)) {
        return;
    }
    let [_, pattern, replacement] = arguments(path) else { return };
    let Some(expression) = view.constant(&pattern.value) else { return };
    if regex::is_exponential(&expression) {
        let message = "A text that does not match takes this expression exponential time";
        found.add(Rule::RegexCost, pattern.value.first, pattern.value.last, message);
    }
    let Some(text) = view.constant(&replacement.value) else { return };
    let groups = regex::groups(&expression);
    let message = match regex::highest_group(&text) {
        Some(group) if group > groups => format!("The pattern has no group {group}"),
        _ if groups > 0 && text.contains("$1") => "$1 is not a group but the text $1".to_owned(),
        _ => return,
    };
    found.add(Rule::GroupMissing, replacement.value.first, replacement.value.last, message);
}

fn status(view: &View<'_>, whole: &Expression, operator: At, pair: &(Expression, Expression), found: &mut Found<'_>) {
    let is_equality = view.is_sign(operator, Sign::Equal) || view.is_sign(operator, Sign::NotEqual);
    let ExpressionKind::Path(path) = &bare(&pair.0).kind else { return };
    if is_equality
        && ["beresp.status", "resp.status", "obj.status"].contains(&&*view.name(path))
        && view.number(&pair.1).is_some_and(|number| number < 100.0)
    {
        let message = format!("{} is never {}", view.name(path), view.shown(bare(&pair.1).first));
        found.add(Rule::StatusImpossible, whole.first, whole.last, message);
    }
}

fn query_noise(view: &View<'_>, found: &mut Found<'_>) {
    let mut cookies = None;
    let mut names_parameters = false;
    view.expressions(&mut |_, expression| {
        if !matches!(expression.kind, ExpressionKind::Text) {
            return;
        }
        let Some(text) = view.constant(expression) else { return };
        names_parameters |= STATISTICS_PARAMETERS.iter().any(|name| text.replace("__utm", "").contains(name));
        if cookies.is_none() && STATISTICS_COOKIES.iter().any(|name| text.contains(name)) {
            cookies = Some((expression.first, expression.last));
        }
    });
    if let Some((first, last)) = cookies.filter(|_| !names_parameters) {
        let message = "The site has statistics, but utm_source, gclid and fbclid stay in the key";
        found.add(Rule::QueryNoise, first, last, message);
    }
}
