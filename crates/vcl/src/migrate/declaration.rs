//! Declarations: backends, probes, access lists, directors, imports.

use super::failover::{DIRECTORS_DEEP_MAX, fallback_rest, fallback_rests};
use super::name_of::NameOf;
use super::tables::DURATION_FIELDS;
use super::writer::Writer;
use crate::dialect::DirectorPolicy;
use crate::source::{Kind, Sign};
use crate::tree::{Acl, At, Backend, Director, Field, FieldValue, Import, Name, Probe};
use std::fmt::Write as _;
use std::net::IpAddr;

/// Number of good results that a probe requires by default.
const THRESHOLD: &str = "3";
/// Number of requests for which a backend is in trouble before it counts as sick: the parameter
/// `saintmode_threshold`.
const SAINTMODE_THRESHOLD: &str = "10";

impl Writer<'_> {
    pub(super) fn import(&mut self, import: &Import) {
        if import.alias.is_none()
            && let Some(alias) = self.aliases.get(self.row.text(import.name)).cloned()
        {
            self.edits.after(import.name, &format!(" as {alias}"));
        }
        if self.language.is_some()
            && let Some(path) = import.path
        {
            self.listed(import.keyword, "VMODs are native: the path is left out");
            self.edits.remove(path - 1, path);
        }
    }

    /// Writes the new name of a declaration.
    fn rename(&mut self, kind: NameOf, name: Name) {
        let old: String = (name.first..=name.last).map(|index| self.row.text(index)).collect();
        let new = self.name_now(kind, &old);
        if new != old {
            self.listed(name.first, &format!("{old} is called {new}: the name is not free in VCL 4.1"));
            self.edits.replace(name.first, name.last, new);
        }
    }

    /// Continues to accept entries whose address has bits beyond the mask.
    pub(super) fn acl(&mut self, acl: &Acl) {
        self.rename(NameOf::Acl, acl.name);
        let beyond = acl.entries.iter().any(|entry| {
            let Some((_, bits)) = entry.mask else { return false };
            let host = String::from_utf8_lossy(self.row.sources.content(self.row.token(entry.host))).into_owned();
            let Ok(bits) = self.row.text(bits).parse::<u32>() else { return false };
            match host.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => bits < 32 && u32::from(address) << bits != 0,
                Ok(IpAddr::V6(address)) => bits < 128 && u128::from(address) << bits != 0,
                // A name may have any address.
                Err(_) => true,
            }
        });
        if beyond && !self.dialect.defaults.acl_pedantic {
            self.edits.after(acl.name.last, " -pedantic");
        }
    }

    pub(super) fn backend(&mut self, backend: &Backend) {
        self.rename(NameOf::Backend, backend.name);
        if let Some(fields) = &backend.fields {
            self.fields(fields);
        }
    }

    pub(super) fn probe(&mut self, probe: &Probe) {
        self.rename(NameOf::Probe, probe.name);
        self.probe_fields(&probe.fields);
    }

    /// The declaration that wraps a backend in saint mode; `None` if the text does not use it.
    pub(super) fn saint(&mut self, name: &str, fields: &[Field]) -> Option<String> {
        if !self.known.blacklists {
            return None;
        }
        let vmod = self.vmod("saintmode");
        let threshold = fields.iter().find_map(|field| match field.value {
            FieldValue::Tokens(first, end) if self.row.text(field.name) == "saintmode_threshold" => {
                Some(self.row.flat(first, end.saturating_sub(1).max(first)))
            }
            _ => None,
        });
        let threshold = threshold.unwrap_or_else(|| SAINTMODE_THRESHOLD.to_owned());
        Some(format!("\nsub vcl_init {{\n    new {name}_saint = {vmod}.saintmode({name}, {threshold});\n}}"))
    }

    fn fields(&mut self, fields: &[Field]) {
        for field in fields {
            let name = self.row.text(field.name);
            let dot = field.name.saturating_sub(1);
            if self.dialect.ignored_backend_fields.contains(&name) {
                let old_form = self.dialect.forms.set_backend && dot >= 2 && self.row.text(dot - 1) == "backend";
                let first = if old_form { dot - 2 } else { dot };
                let end = self.row.semicolon(field.name);
                let why = match name {
                    "saintmode_threshold" if self.known.blacklists => "it is an argument of the saintmode VMOD",
                    "saintmode_threshold" => "saint mode is a VMOD now",
                    _ => "it had no effect",
                };
                self.comment_out(first, end, why);
                continue;
            }
            if self.dialect.forms.set_backend && dot >= 2 && self.row.text(dot - 1) == "backend" {
                self.edits.replace(dot - 2, dot, ".");
            }
            match &field.value {
                FieldValue::Fields(inner) => self.probe_fields(inner),
                FieldValue::Tokens(first, _) if name == "probe" => {
                    let old = self.row.text(*first);
                    let new = self.name_now(NameOf::Probe, old);
                    if new != old {
                        self.edits.replace(*first, *first, new);
                    }
                }
                FieldValue::Tokens(first, end) => self.duration_field(name, *first, *end),
            }
        }
    }

    /// Adds the unit to a number that meant seconds.
    fn duration_field(&mut self, name: &str, first: At, end: At) {
        let number = matches!(self.row.token(first).kind, Kind::Integer | Kind::Real);
        if self.dialect.forms.bare_seconds && number && end == first + 1 && DURATION_FIELDS.contains(&name) {
            self.edits.after(first, "s");
        }
    }

    /// Probes used to start with the required number of good results, rather than with one too few.
    fn probe_fields(&mut self, fields: &[Field]) {
        let mut threshold = THRESHOLD.to_owned();
        let mut says = false;
        for field in fields {
            let name = self.row.text(field.name);
            if let FieldValue::Tokens(first, end) = field.value {
                match name {
                    "initial" => says = true,
                    "threshold" => threshold = self.row.flat(first, end.saturating_sub(1).max(first)),
                    _ => {}
                }
                self.duration_field(name, first, end);
            }
        }
        let Some(first) = fields.first() else { return };
        if says || !self.dialect.defaults.probes_begin_good {
            return;
        }
        let dot = first.name - 1;
        let space = if self.row.begins_line(dot) { format!("\n{}", self.row.indentation(dot)) } else { " ".to_owned() };
        self.edits.before(dot, &format!(".initial = {threshold};{space}"));
    }

    /// Turns a `director` block into an object created in vcl_init.
    pub(super) fn director(&mut self, director: &Director) {
        let open = director.policy + 1;
        let close = self.row.closing(open);
        let old_name: String = (director.name.first..=director.name.last).map(|index| self.row.text(index)).collect();
        let name = self.director_name(&old_name);
        if name != old_name {
            self.listed(director.keyword, &format!("the director {old_name} is called {name}"));
        }
        let word = self.row.text(director.policy).to_owned();
        let policy = self.dialect.directors.iter().find(|(known, _)| *known == word).map(|&(_, policy)| policy);
        let mut text = self.comments(open, close);
        let Some(policy) = policy else {
            self.listed(director.keyword, "there is no director of this kind: name its backends one by one");
            let _ = write!(text, "# migrate: there is no director of the kind {word}\nbackend {name} none;");
            return self.edits.rewrite(director.keyword, close, text);
        };
        let (class, weighs) = match policy {
            DirectorPolicy::RoundRobin => ("round_robin", false),
            DirectorPolicy::Random => ("random", true),
            DirectorPolicy::Fallback => ("fallback", false),
            DirectorPolicy::Client => ("hash", true),
            DirectorPolicy::Hash => ("shard", true),
            DirectorPolicy::Dns => {
                text += &self.names_director(director, &name);
                return self.edits.rewrite(director.keyword, close, text);
            }
        };
        let vmod = self.vmod("directors");
        if class == "shard" {
            let note = "requests are spread over the backends by what vcl_hash hashes, but not as before";
            self.listed(director.keyword, note);
            let _ = writeln!(text, "# migrate: {note}");
        }
        let mut added = Vec::new();
        for (number, member) in director.members.iter().enumerate() {
            let mut weight = String::from("1");
            let mut backend = String::new();
            for field in &member.fields {
                match (&field.value, self.row.text(field.name)) {
                    (FieldValue::Tokens(first, end), "weight") => weight = self.row.flat(*first, end.saturating_sub(1)),
                    (FieldValue::Tokens(first, _), "backend") => {
                        let word = self.row.text(*first);
                        if self.looks_up(word) {
                            let note = format!("{word} looks a host up, and can be no member of another director");
                            self.listed(*first, &note);
                            let _ = writeln!(text, "# migrate: {note}");
                            continue;
                        }
                        backend = self.backend_value(word, "req").unwrap_or_else(|| word.to_owned());
                    }
                    (FieldValue::Fields(inner), "backend") => {
                        backend = format!("{}_{number}", old_name.replace('-', "_"));
                        let _ = writeln!(text, "backend {backend} {}", self.inline_backend(field.name, inner));
                        if let Some(saint) = self.saint(&backend, inner) {
                            text += saint.trim_start();
                            text.push('\n');
                            backend += "_saint.backend()";
                        }
                    }
                    _ => {}
                }
            }
            if backend.is_empty() {
                continue;
            }
            let weight = match (weighs, class) {
                (false, _) => String::new(),
                (true, "shard") if weight == "1" => String::new(),
                (true, "shard") => format!(", weight={weight}.0"),
                (true, _) => format!(", {weight}.0"),
            };
            added.push(format!("add_backend({backend}{weight});"));
        }
        let known = self.directors.get(&old_name.to_ascii_lowercase());
        let (retries, tries) =
            known.map_or((0, 0), |known| (self.retries_of(known), self.tries_in(known, DIRECTORS_DEEP_MAX)));
        let mut init = "sub vcl_init {\n".to_owned();
        // The remaining members of a fallback director after its first ones have failed.
        let rests =
            if policy == DirectorPolicy::Fallback { fallback_rests(director.members.len(), retries) } else { 0 };
        for number in 0..=rests {
            let name = fallback_rest(&name, number);
            let _ = writeln!(init, "    new {name} = {vmod}.{class}();");
            for member in added.iter().skip(number) {
                let _ = writeln!(init, "    {name}.{member}");
            }
        }
        if class == "shard" {
            let _ = writeln!(init, "    {name}.reconfigure();");
        }
        if retries > 0 {
            let note = "a GET or HEAD that fails, in whatever way, is sent to another member by return (retry); what has a body \
                        fails with the first";
            self.listed(director.keyword, note);
            let _ = writeln!(text, "# migrate: {note}");
            if retries + 1 < tries && policy != DirectorPolicy::Hash {
                let note = format!(
                    "at most {retries} times: for more, the parameter max_retries and a higher number in vcl_backend_error"
                );
                self.listed(director.keyword, &note);
                let _ = writeln!(text, "# migrate: {note}");
            }
        }
        text += &init;
        text.push('}');
        self.edits.rewrite(director.keyword, close, text);
    }

    /// `{ … }` after `.backend =`.
    fn inline_backend(&mut self, name: At, fields: &[Field]) -> String {
        self.fields(fields);
        let open = name + 2;
        let close = self.row.closing(open);
        let text = String::from_utf8_lossy(&self.written(open, close)).into_owned();
        // One level of indentation less than inside the director.
        let indentation = self.row.indentation(close);
        let lines: Vec<&str> = text.lines().collect();
        let lines = lines.iter().map(|line| line.strip_prefix(&indentation).unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The comments between two tokens, one per line.
    fn comments(&self, first: At, last: At) -> String {
        let mut text = String::new();
        for index in first + 1..=last {
            let lead = self.row.lead(index);
            for comment in crate::format::trivia::gap(lead, 0, lead.len()).comments {
                let comment = String::from_utf8_lossy(&lead[comment.start..comment.end]).into_owned();
                let _ = writeln!(text, "{}", comment.trim_end());
            }
        }
        text
    }

    /// The last token of a declaration that ends in a block.
    pub(super) fn block_end(&self, from: At) -> At {
        let mut open = from;
        while !self.row.is(open, Sign::BraceOpen) && self.row.token(open).kind != Kind::End {
            if self.row.is(open, Sign::Semicolon) {
                return open;
            }
            open += 1;
        }
        self.row.closing(open)
    }
}
