//! `director … dns { … }` becomes a `dynamic.director` with an acl of the addresses it may use.

use super::writer::Writer;
use super::writer::{Context, Found};
use crate::dialect::DirectorPolicy;
use crate::tree::{At, Director, DirectorMember, Expression, ExpressionKind, Field, FieldValue};
use std::fmt::Write as _;
use surface::vcl::Var;
use surface::vcl::legacy::Means;

/// Default validity of an answer.
const TTL: &str = "60s";
/// The port of the backends in a list.
const PORT: &str = "\"80\"";

impl Writer<'_> {
    /// The declarations that replace the block.
    pub(super) fn names_director(&mut self, director: &Director, name: &str) -> String {
        let vmod = self.vmod("dynamic");
        let mut acls = format!("acl {name}_addresses {{\n");
        let mut arguments = format!("whitelist = {name}_addresses");
        let mut port = PORT.to_owned();
        let (fields, entries) = match &director.list {
            Some(list) => (list.fields.as_slice(), list.entries.as_slice()),
            None => (&[] as &[Field], &[] as &[_]),
        };
        for entry in entries {
            let last = entry.mask.map_or(entry.host, |(_, mask)| mask);
            let _ = writeln!(acls, "    {};", self.row.flat(entry.host, last));
        }
        acls.push_str("}\n");
        for field in fields {
            match (self.row.text(field.name), self.director_value(field)) {
                ("port", Some(value)) => port = value,
                ("saintmode_threshold", _) => self.listed(field.name, "saint mode is a VMOD now"),
                (attribute, Some(value)) => {
                    let _ = write!(arguments, ", {attribute} = {value}");
                }
                (_, None) => {}
            }
        }
        let ttl = director.fields.iter().find(|field| self.row.text(field.name) == "ttl");
        let ttl = ttl.and_then(|field| self.director_value(field)).unwrap_or_else(|| TTL.to_owned());
        let note = "the dynamic VMOD looks the host up, in the background";
        self.listed(director.keyword, note);
        let mut text = format!("# migrate: {note}\n");
        if !director.members.is_empty() {
            let note =
                "only addresses in the list are used: add those of the members, which had definitions of their own";
            self.listed(director.keyword, note);
            let _ = writeln!(text, "# migrate: {note}");
        }
        if self.backends.is_empty() && !self.has_none_backend {
            // VCL 4.1 requires a backend.
            self.has_none_backend = true;
            let _ = writeln!(text, "backend {name}_none none;");
        }
        let _ = write!(
            text,
            "{acls}sub vcl_init {{\n    new {name} = {vmod}.director(port = {port}, {arguments}, ttl = {ttl}, retry_after = {ttl});\n}}"
        );
        text
    }

    /// The value of an attribute, with its unit.
    fn director_value(&self, field: &Field) -> Option<String> {
        let FieldValue::Tokens(first, end) = field.value else { return None };
        let value = self.row.flat(first, end.saturating_sub(1).max(first));
        let counts_seconds = end == first + 1
            && matches!(
                self.row.text(field.name),
                "ttl" | "connect_timeout" | "first_byte_timeout" | "between_bytes_timeout"
            );
        Some(if counts_seconds { format!("{value}s") } else { value })
    }

    /// Replacement for a dns director where a backend is expected; `http` is the request whose Host
    /// is used.
    pub(super) fn name_asked_for(&self, name: &str, suffix: Option<At>, http: &str) -> String {
        let suffix = suffix.map_or(String::new(), |token| format!(" + {}", self.row.text(token)));
        format!("{name}.backend(regsub({http}.http.Host, \":.*$\", \"\"){suffix})")
    }

    /// The token with the text of `.suffix`.
    pub(super) fn suffix_of(row: &super::edit::Row<'_>, director: &Director) -> Option<At> {
        let suffix = director.fields.iter().find(|field| row.text(field.name) == "suffix")?;
        match suffix.value {
            FieldValue::Tokens(first, _) => Some(first),
            FieldValue::Fields(_) => None,
        }
    }

    /// Number of times that a member is chosen.
    pub(super) fn tries_of(row: &super::edit::Row<'_>, director: &Director) -> u32 {
        let retries = director.fields.iter().find(|field| row.text(field.name) == "retries");
        let said = retries.and_then(|field| match field.value {
            FieldValue::Tokens(first, _) => row.text(first).parse().ok(),
            FieldValue::Fields(_) => None,
        });
        said.unwrap_or(director.members.len() as u32)
    }

    /// The names of a director's members, in order; a member described inside the director has
    /// none.
    pub(super) fn members_of(row: &super::edit::Row<'_>, director: &Director) -> Vec<String> {
        let named = |member: &DirectorMember| {
            let field = member.fields.iter().find(|field| row.text(field.name) == "backend")?;
            match field.value {
                FieldValue::Tokens(first, _) => Some(row.text(first).to_ascii_lowercase()),
                FieldValue::Fields(_) => None,
            }
        };
        director.members.iter().map(|member| named(member).unwrap_or_default()).collect()
    }

    /// True if a director resolves host names.
    pub(super) fn looks_up(&self, name: &str) -> bool {
        self.directors.get(&name.to_ascii_lowercase()).is_some_and(|known| known.policy == DirectorPolicy::Dns)
    }
}

/// The directors that used to choose when the backend was needed, not when VCL named them.
impl Writer<'_> {
    /// True if a director's choice depends on something that may change after it was named.
    fn chooses_late(&self, director: &super::writer::Director) -> bool {
        match director.policy {
            DirectorPolicy::Dns => true,
            DirectorPolicy::Client => self.known.sets_identity,
            DirectorPolicy::RoundRobin | DirectorPolicy::Random | DirectorPolicy::Fallback | DirectorPolicy::Hash => {
                false
            }
        }
    }

    /// The names of those directors, in order.
    pub(super) fn late_directors(&self) -> Vec<String> {
        let late = self.directors.iter().filter(|(_, director)| self.chooses_late(director));
        let mut names: Vec<String> = late.map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// The name of such a director, if the expression is one.
    pub(super) fn late_director(&self, value: &Expression) -> Option<String> {
        let ExpressionKind::Path(path) = &value.kind else { return None };
        let name = self.row.text(path.first()).to_ascii_lowercase();
        let is_late = path.segments.len() == 1 && self.directors.get(&name).is_some_and(|it| self.chooses_late(it));
        is_late.then_some(name)
    }

    /// After a statement that names a backend: records the director, for the time when the backend
    /// is needed.
    pub(super) fn mark_director(&mut self, found: &Found, value: &Expression, context: Context) {
        let is_backend = found.means == Means::Variable(Var::ReqBackendHint);
        if !is_backend || context.is_fetch() || self.late_directors().is_empty() {
            return;
        }
        let next = self.next_statement(value.first.saturating_sub(3));
        let mark = match self.late_director(value) {
            Some(name) => format!("set req.http.migrate-director = \"{name}\""),
            None => "unset req.http.migrate-director".to_owned(),
        };
        self.edits.after(value.last, &format!("{next}{mark}"));
    }

    /// The health test for the backend of a request. A director that resolves names was always
    /// healthy.
    pub(super) fn healthy(&self, std: &str, backend: &str, http: &str) -> String {
        let tests: Vec<String> = self
            .late_directors()
            .iter()
            .filter(|name| self.looks_up(name))
            .map(|name| format!("{http}.http.migrate-director == \"{name}\" || "))
            .collect();
        match tests.is_empty() {
            true => format!("{std}.healthy({backend})"),
            false => format!("({}{std}.healthy({backend}))", tests.concat()),
        }
    }
}
