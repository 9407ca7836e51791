//! Rules of the key and of Vary: headers with too many values (P1, P7), keys without host or URL
//! (C9).

use super::client::return_end;
use super::finding::Found;
use super::flow::{State, Watch, walk};
use super::view::{View, bare};
use crate::tree::{At, Expression, ExpressionKind, Statement};
use surface::lint::Rule;

/// The host is a part of the key.
const HOST: u32 = 1;
/// The URL is a part of the key.
const URL: u32 = 1 << 1;

/// Headers of which each client has its own.
const WIDE: &[&str] = &["user-agent", "cookie"];
/// Headers that clients write in many ways.
const UNNORMALISED: &[&str] = &["accept-language", "accept-encoding"];

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    view.statements(&mut |_, statement| match statement {
        Statement::HashData { value, .. } => key(view, value, found),
        Statement::Set { target, value, .. } if view.name(target) == "beresp.http.vary" => vary(view, value, found),
        _ => {}
    });
    walk(view, "vcl_hash", &mut Key { found });
}

fn key(view: &View<'_>, value: &Expression, found: &mut Found<'_>) {
    let ExpressionKind::Path(path) = &bare(value).kind else { return };
    let name = view.name(path);
    let Some(header) = name.strip_prefix("req.http.") else { return };
    if view.is_written(&name) {
        return;
    }
    if WIDE.contains(&header) {
        let message = "Nearly every client gets a copy of its own: this header is a part of the key";
        found.add(Rule::VaryTooWide, value.first, value.last, message);
    } else if UNNORMALISED.contains(&header) {
        let message = "Each spelling of this header gets a copy of its own";
        found.add(Rule::NotNormalised, value.first, value.last, message);
    }
}

fn vary(view: &View<'_>, value: &Expression, found: &mut Found<'_>) {
    let mut names = Vec::new();
    view.parts(value, &mut |part| {
        if let Some(text) = view.constant(part) {
            names.extend(text.split(',').map(|name| name.trim().to_ascii_lowercase()));
        }
    });
    for name in names {
        if view.is_written(&format!("req.http.{name}")) {
            continue;
        }
        // Without a statement that changes it, Accept-Encoding is normalised by the cache.
        if WIDE.contains(&&*name) {
            let message = format!("Nearly every client gets a copy of its own: Vary names {name}");
            found.add(Rule::VaryTooWide, value.first, value.last, message);
        } else if name == "accept-language" {
            let message = format!("Each spelling of {name} gets a copy of its own");
            found.add(Rule::NotNormalised, value.first, value.last, message);
        }
    }
}

struct Key<'f, 'a> {
    found: &'f mut Found<'a>,
}

impl Watch for Key<'_, '_> {
    fn condition(&mut self, view: &View<'_>, condition: &Expression, state: &mut State) {
        // `if (req.http.host) { … } else { … }` adds one or the other.
        if view.mentions(condition, &["req.http.host"]) {
            state.must |= HOST;
        }
    }

    fn statement(&mut self, view: &View<'_>, statement: &Statement, state: &mut State) {
        let Statement::HashData { value, .. } = statement else { return };
        view.paths(value, &mut |path| {
            let name = view.name(path);
            if name.contains("host") || name == "server.ip" {
                state.must |= HOST;
            }
            if name.contains("url") || name.contains("uri") {
                state.must |= URL;
            }
        });
    }

    fn end(&mut self, view: &View<'_>, action: &str, at: At, state: &State) {
        if !matches!(action, "lookup" | "hash") {
            return;
        }
        let missing = match (state.has(HOST), state.has(URL)) {
            (true, true) => return,
            (false, true) => "host",
            (true, false) => "URL",
            (false, false) => "host and URL",
        };
        let message = format!("The key is without {missing} here");
        self.found.add(Rule::KeyIncomplete, at, return_end(view, at), message);
    }
}
