//! Rules of vcl_recv: credentials before the lookup (S2), access by client headers (S4), open
//! purges (S5), passes for any cookie (P6).

use super::finding::Found;
use super::flow::{State, Watch, walk};
use super::view::{View, bare, expressions_of};
use crate::source::Sign;
use crate::tree::{At, Block, Expression, ExpressionKind, Statement};
use surface::lint::Rule;

/// The Cookie header was looked at or changed.
const COOKIE: u32 = 1;
/// The Authorization header was looked at or changed.
const AUTHORIZATION: u32 = 1 << 1;
/// The path is below a match of the URL.
const BELOW_URL: u32 = 1 << 2;
/// The URL was looked at.
const URL: u32 = 1 << 3;
/// The address of the connection was looked at.
const ADDRESS: u32 = 1 << 4;
/// Access was checked.
const ACCESS: u32 = 1 << 5;

const COOKIE_NAMES: &[&str] = &["req.http.cookie", "cookie"];
const AUTHORIZATION_NAMES: &[&str] = &["req.http.authorization"];
const ADDRESS_NAMES: &[&str] = &["client.ip", "remote.ip", "local.socket", "local.endpoint", "client.identity"];

/// Functions that remove objects.
const PURGES: &[&str] =
    &["std.ban", "xkey.purge", "xkey.softpurge", "ykey.purge", "ykey.purge_header", "ykey.purge_keys"];

/// Headers in which proxies name the client.
const FORWARDED: &[&str] = &[
    "req.http.x-forwarded-for",
    "req.http.x-real-ip",
    "req.http.x-client-ip",
    "req.http.client-ip",
    "req.http.true-client-ip",
    "req.http.cf-connecting-ip",
    "req.http.forwarded",
];

/// Request headers that hold no secret: a comparison with one is not an access check.
const PUBLIC: &[&str] = &["req.http.host", "req.http.user-agent", "req.http.referer", "req.http.accept"];

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    let mut watch = Client { found, key_has_cookie: hashes_cookie(view) };
    walk(view, "vcl_recv", &mut watch);
}

/// True if vcl_hash makes the cookie a part of the key.
fn hashes_cookie(view: &View<'_>) -> bool {
    let mut found = false;
    view.statements(&mut |_, statement| {
        if let Statement::HashData { value, .. } = statement {
            found |= view.mentions(value, COOKIE_NAMES);
        }
    });
    found
}

struct Client<'f, 'a> {
    found: &'f mut Found<'a>,
    key_has_cookie: bool,
}

impl Client<'_, '_> {
    /// Facts from the mere mention of variables.
    fn mention(&self, view: &View<'_>, expression: &Expression, state: &mut State) {
        for (names, fact) in [(COOKIE_NAMES, COOKIE), (AUTHORIZATION_NAMES, AUTHORIZATION), (&["req.url"][..], URL)] {
            if view.mentions(expression, names) {
                state.must |= fact;
            }
        }
    }

    /// Facts and findings from the comparisons of a condition.
    fn compare(&mut self, view: &View<'_>, condition: &Expression, state: &mut State) {
        let mut forwarded = Vec::new();
        view.parts(condition, &mut |part| {
            let ExpressionKind::Compare(pair, operator) = &part.kind else { return };
            let (left, right) = (&pair.0, &pair.1);
            let is_equality = view.is_sign(*operator, Sign::Equal) || view.is_sign(*operator, Sign::NotEqual);
            let is_secret = is_equality && is_secret_header(view, left);
            if is_address(view, left) {
                state.must |= ADDRESS | ACCESS;
            }
            if view.is_acl(right) || is_secret {
                state.must |= ACCESS;
            }
            let is_judged = view.is_acl(right) || view.constant(right).is_some_and(|text| is_address_text(&text));
            if is_judged && view.mentions(left, FORWARDED) {
                forwarded.push(part);
            }
        });
        if view.mentions(condition, AUTHORIZATION_NAMES) {
            state.must |= ACCESS;
        }
        if state.has(ADDRESS) {
            return;
        }
        for part in forwarded {
            let message = "This condition believes an address that the client has sent";
            self.found.add(Rule::ForwardedForTrusted, part.first, part.last, message);
        }
    }

    fn purge(&mut self, at: At, last: At, state: &State) {
        if !state.has(ACCESS) {
            self.found.add(Rule::PurgeOpen, at, last, "Every client can remove objects from the cache here");
        }
    }
}

/// True for an address of the connection; not for one that is only a default, as in
/// `std.ip(req.http.X-Forwarded-For, client.ip)`.
fn is_address(view: &View<'_>, expression: &Expression) -> bool {
    match &bare(expression).kind {
        ExpressionKind::Path(path) => view.is_one_of(path, ADDRESS_NAMES),
        _ => false,
    }
}

/// True for a header that may hold a secret.
fn is_secret_header(view: &View<'_>, expression: &Expression) -> bool {
    match &bare(expression).kind {
        ExpressionKind::Path(path) => view.name(path).starts_with("req.http.") && !view.is_one_of(path, PUBLIC),
        _ => false,
    }
}

/// True for the beginning of a numeric address, as a text or a regular expression.
fn is_address_text(text: &str) -> bool {
    let text = text.trim_start_matches(['^', '(', '?', ':']);
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    (1..=3).contains(&digits) && text[digits..].trim_start_matches('\\').starts_with('.')
}

impl Watch for Client<'_, '_> {
    fn condition(&mut self, view: &View<'_>, condition: &Expression, state: &mut State) {
        let is_bare_cookie = match &bare(condition).kind {
            ExpressionKind::Path(path) => view.name(path) == "req.http.cookie",
            _ => false,
        };
        if is_bare_cookie && !state.has(URL) && !state.has(COOKIE) {
            state.places[0] = condition.first;
        }
        self.mention(view, condition, state);
        self.compare(view, condition, state);
    }

    fn branch(&mut self, view: &View<'_>, condition: &Expression, block: &Block, state: &mut State) {
        view.parts(condition, &mut |part| {
            if let ExpressionKind::Compare(pair, operator) = &part.kind
                && view.is_sign(*operator, Sign::Match)
                && view.mentions(&pair.0, &["req.url"])
            {
                state.must |= BELOW_URL;
            }
        });
        if state.places[0] == condition.first
            && let Some(Statement::Return { action, .. }) = block.statements.first()
            && view.action(action.as_ref()) == "pass"
        {
            let message = "Every request with a cookie is passed, static files included";
            self.found.add(Rule::PassForCookie, condition.first, condition.last, message);
        }
    }

    fn statement(&mut self, view: &View<'_>, statement: &Statement, state: &mut State) {
        match statement {
            Statement::Set { target, value, .. } => {
                let name = view.name(target);
                if FORWARDED.contains(&&*name) && is_address(view, value) {
                    state.must |= ADDRESS;
                }
                self.written(&name, state);
            }
            Statement::Unset { target } => self.written(&view.name(target), state),
            Statement::Ban { value } => self.purge(statement.first(), value.last, state),
            Statement::Use { path, .. } => {
                let name = view.name(path);
                if PURGES.contains(&&*name) {
                    self.purge(path.first(), path.last(), state);
                }
                // vmod_cookie changes the cookie that is written back later.
                if name.starts_with("cookie.") {
                    state.must |= COOKIE;
                }
            }
            _ => {}
        }
        for expression in expressions_of(statement) {
            self.mention(view, expression, state);
        }
    }

    fn end(&mut self, view: &View<'_>, action: &str, at: At, state: &State) {
        match action {
            "purge" => self.purge(at, at, state),
            "hash" | "lookup" => {
                let needs_cookie = !self.key_has_cookie && !state.has(COOKIE);
                let missing = match (needs_cookie, !state.has(AUTHORIZATION)) {
                    _ if state.has(BELOW_URL) => return,
                    (true, true) => "Cookie and Authorization",
                    (true, false) => "Cookie",
                    (false, true) => "Authorization",
                    (false, false) => return,
                };
                let last = return_end(view, at);
                let message = format!("Requests with {missing} get the response of another client here");
                self.found.add(Rule::CredentialsNotJudged, at, last, message);
            }
            _ => {}
        }
    }
}

impl Client<'_, '_> {
    fn written(&self, name: &str, state: &mut State) {
        match name {
            "req.http.cookie" => state.must |= COOKIE,
            "req.http.authorization" => state.must |= AUTHORIZATION,
            _ => {}
        }
    }
}

/// The last token of a `return (action)`: its closing parenthesis, if the action has no arguments.
pub(super) fn return_end(view: &View<'_>, keyword: At) -> At {
    let is_plain = view.is_sign(keyword + 1, Sign::ParenOpen) && view.is_sign(keyword + 3, Sign::ParenClose);
    if is_plain { keyword + 3 } else { keyword }
}
