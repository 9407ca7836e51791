//! Rules of vcl_backend_response: stored Set-Cookie (S1), forced lifetimes (S3), long-lived errors
//! (S7), ttl of 0 that makes requests wait (P3).

use super::client::return_end;
use super::finding::Found;
use super::flow::{State, Watch, walk};
use super::view::{View, expressions_of};
use crate::tree::{At, Block, Expression, Statement};
use surface::lint::Rule;

/// Set-Cookie was looked at or changed.
const SET_COOKIE: u32 = 1;
/// The response is not stored.
const UNCACHEABLE: u32 = 1 << 1;
/// Cache-Control was looked at.
const CACHE_CONTROL: u32 = 1 << 2;
/// The status, or the ttl from the origin, was looked at.
const STATUS: u32 = 1 << 3;
/// The ttl is positive by the VCL. In `may`.
const TTL_FORCED: u32 = 1;
/// The ttl is 0 by the VCL. In `may`.
const TTL_ZERO: u32 = 1 << 1;
/// The ttl is long by the VCL. In `may`.
const TTL_LONG: u32 = 1 << 2;
/// Cache-Control was removed or replaced before anything looked at it. In `may`.
const CONTROL_REMOVED: u32 = 1 << 3;

/// A ttl above this is long for an error, in seconds.
const TTL_LONG_SECONDS: f64 = 300.0;

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    let mut watch = Fetch { found };
    walk(view, "vcl_backend_response", &mut watch);
    walk(view, "vcl_fetch", &mut watch);
}

struct Fetch<'f, 'a> {
    found: &'f mut Found<'a>,
}

impl Fetch<'_, '_> {
    fn mention(&self, view: &View<'_>, expression: &Expression, state: &mut State) {
        for (names, fact) in [
            (&["beresp.http.set-cookie", "obj.http.set-cookie"][..], SET_COOKIE),
            (&["beresp.http.cache-control", "beresp.http.surrogate-control", "obj.http.cache-control"], CACHE_CONTROL),
            (&["beresp.status", "beresp.ttl", "obj.status", "obj.ttl"], STATUS),
        ] {
            if view.mentions(expression, names) {
                state.must |= fact;
            }
        }
        // The condition is about the ttl that was set, as in a copy of the built-in VCL.
        if view.mentions(expression, &["beresp.ttl", "obj.ttl"]) {
            state.may &= !TTL_ZERO;
        }
    }

    fn ttl(&self, view: &View<'_>, value: &Expression, at: At, state: &mut State) {
        let Some(seconds) = view.number(value).filter(|_| !state.has(UNCACHEABLE)) else { return };
        state.may &= !(TTL_FORCED | TTL_ZERO | TTL_LONG);
        if seconds <= 0.0 {
            state.may |= TTL_ZERO;
        } else {
            state.may |= TTL_FORCED;
            state.places[0] = at;
        }
        if seconds > TTL_LONG_SECONDS {
            state.may |= TTL_LONG;
        }
    }

    fn set(&self, view: &View<'_>, name: &str, value: Option<&Expression>, at: At, state: &mut State) {
        // VCL 2.0 calls the response obj.
        let name = name.strip_prefix("obj.").map_or_else(|| name.to_owned(), |rest| format!("beresp.{rest}"));
        match (name.as_str(), value) {
            ("beresp.ttl", Some(value)) => self.ttl(view, value, at, state),
            ("beresp.uncacheable", Some(value)) if view.shown(value.first).eq_ignore_ascii_case("true") => {
                state.must |= UNCACHEABLE;
                state.may &= !(TTL_FORCED | TTL_ZERO | TTL_LONG);
            }
            ("beresp.cacheable", Some(value)) if view.shown(value.first).eq_ignore_ascii_case("false") => {
                state.must |= UNCACHEABLE;
            }
            ("beresp.http.set-cookie", _) => state.must |= SET_COOKIE,
            ("beresp.http.cache-control", _) if !state.has(CACHE_CONTROL) => {
                state.may |= CONTROL_REMOVED;
                state.places[1] = at;
            }
            _ => {}
        }
    }

    /// Findings of a path that stores the response.
    fn stored(&mut self, view: &View<'_>, at: At, state: &State) {
        let last = return_end(view, at);
        if !state.has(SET_COOKIE) && state.may & TTL_ZERO == 0 {
            let message = "A response with Set-Cookie is stored here, cookie included";
            self.found.add(Rule::SetCookieStored, at, last, message);
        }
        if state.may & TTL_FORCED != 0 && !state.has(CACHE_CONTROL) {
            let message = "A response with Cache-Control: private is stored here";
            self.private(view, (at, last), message, state.places[0]);
        }
        if state.may & TTL_ZERO != 0 {
            let message = "Requests for one object wait for each other's fetches here";
            self.found.add(Rule::TtlZeroCacheable, at, last, message);
        }
    }

    fn private(&mut self, view: &View<'_>, (at, last): (At, At), message: &str, set: At) {
        let place = self.found.place(set, view.target_end(set));
        if let Some(finding) = self.found.add(Rule::PrivateStored, at, last, message)
            && let Some(place) = place.filter(|_| set != at)
        {
            finding.related.push(("The ttl is set here".to_owned(), place));
        }
    }
}

impl Watch for Fetch<'_, '_> {
    fn condition(&mut self, view: &View<'_>, condition: &Expression, state: &mut State) {
        self.mention(view, condition, state);
    }

    fn branch(&mut self, view: &View<'_>, condition: &Expression, _block: &Block, state: &mut State) {
        if view.mentions(condition, &["bereq.uncacheable", "beresp.uncacheable"]) {
            state.must |= UNCACHEABLE;
        }
    }

    fn statement(&mut self, view: &View<'_>, statement: &Statement, state: &mut State) {
        match statement {
            Statement::Set { target, value, .. } => {
                self.set(view, &view.name(target), Some(value), statement.first(), state);
            }
            Statement::Unset { target } => self.set(view, &view.name(target), None, statement.first(), state),
            _ => {}
        }
        // A header that is copied elsewhere has been thought of.
        for expression in expressions_of(statement) {
            if view.mentions(expression, &["beresp.http.set-cookie", "obj.http.set-cookie"]) {
                state.must |= SET_COOKIE;
            }
        }
    }

    fn end(&mut self, view: &View<'_>, action: &str, at: At, state: &State) {
        let is_stored = matches!(action, "deliver") && !state.has(UNCACHEABLE);
        if is_stored {
            self.stored(view, at, state);
        }
        let continues = action.is_empty() && !state.has(UNCACHEABLE);
        if continues && state.may & (TTL_FORCED | CONTROL_REMOVED) == TTL_FORCED | CONTROL_REMOVED {
            let (removed, set) = (state.places[1], state.places[0]);
            let message = "Cache-Control: private is removed here, and a ttl is set";
            self.private(view, (removed, view.target_end(removed)), message, set);
        }
        if (is_stored || continues) && state.may & TTL_LONG != 0 && !state.has(STATUS) {
            let set = state.places[0];
            self.found.add(
                Rule::ErrorsStored,
                set,
                view.target_end(set),
                "This ttl also holds for errors of the origin",
            );
        }
    }
}
