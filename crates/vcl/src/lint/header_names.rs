//! Misspelled names of well-known headers (C5).

use super::finding::Found;
use super::view::View;
use crate::diagnostic::Suggestion;
use crate::tree::{ExpressionKind, Path, Statement};
use surface::header::HEADERS;
use surface::lint::Rule;
use surface::nearest::is_one_letter_off;

/// Headers that are well known, besides those that HTTP treats specially.
const KNOWN: &[&str] = &[
    "Access-Control-Allow-Origin",
    "Content-Disposition",
    "Content-Security-Policy",
    "Forwarded",
    "Origin",
    "Proxy-Connection",
    "Strict-Transport-Security",
    "Surrogate-Capability",
    "Surrogate-Control",
    "Surrogate-Key",
    "X-Cache",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Frame-Options",
    "X-Powered-By",
    "X-Real-IP",
    "X-Requested-With",
    "X-Varnish",
];

/// Shorter names are near too many others.
const NAME_BYTES_MIN: usize = 6;

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    view.expressions(&mut |_, expression| {
        if let ExpressionKind::Path(path) = &expression.kind {
            name(view, path, found);
        }
    });
    view.statements(&mut |_, statement| {
        if let Statement::Unset { target } = statement {
            name(view, target, found);
        }
    });
}

fn name(view: &View<'_>, path: &Path, found: &mut Found<'_>) {
    let [object, http, header, ..] = &path.segments[..] else { return };
    if view.word(http.name) != "http" {
        return;
    }
    let written = view.shown(header.name);
    let all = || HEADERS.iter().map(|row| row.name).chain(KNOWN.iter().copied());
    // A header that the VCL sets has a name of its own.
    let is_judged = written.len() >= NAME_BYTES_MIN && !written.contains(|letter: char| letter.is_ascii_digit());
    if !is_judged || all().any(|known| known.eq_ignore_ascii_case(written)) || view.sets_header(&view.word(header.name))
    {
        return;
    }
    let Some(known) = all().find(|known| is_one_letter_off(written, known)) else { return };
    let place = found.place(header.name, header.name);
    let message = format!("{written} is nearly {known}");
    if let Some(finding) = found.add(Rule::HeaderTypo, object.name, header.name, message) {
        finding.fix = place.map(|place| Suggestion { place, replacement: known.to_owned() });
    }
}
