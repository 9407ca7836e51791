//! `backend.list` and `backend.set_health`: which backends a pattern means, and their rows as text and as JSON.
//!
//! Compat: layout, columns and texts as observed in Varnish 7.1.1. The column Health shows what probe or members say,
//! the column Admin what the operator says.

mod details;
mod named;

use crate::backend::Backend;
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::dns_names;
use crate::health::{AdminHealth, health_word};
use cli_proto::json::{self, JsonReply};
use cli_proto::table;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vcl_run::value::DirectorId;

/// A backend or director of some VCL.
#[derive(Clone, Copy)]
struct Item<'a> {
    directors: &'a Directors,
    id: DirectorId,
}

impl<'a> Item<'a> {
    fn name(&self) -> Cow<'a, str> {
        self.directors.name(self.id)
    }

    fn display_name(&self) -> String {
        format!("{}.{}", self.directors.vcl_name(), self.name())
    }

    fn backend(&self) -> Option<Arc<Backend>> {
        self.directors.any_backend(self.id)
    }

    /// A name that is looked up; `None` for backends themselves.
    fn named(&self) -> Option<dns_names::item::Item> {
        self.directors.dns_names().get(self.id).filter(|item| item.backends().is_some())
    }

    fn director(&self) -> Option<&'a DirectorKind> {
        self.directors.director(self.id)
    }

    /// Whether probe or members have a say: backends without a probe and hash directors are simply healthy.
    fn is_judged(&self) -> bool {
        match (self.backend(), self.director()) {
            (Some(backend), _) => backend.probe().is_some(),
            (None, Some(DirectorKind::Hash(_) | DirectorKind::Dns(_))) => false,
            (None, Some(_)) => true,
            (None, None) => self.named().is_some(),
        }
    }

    fn admin_word(&self) -> &'static str {
        match self.directors.own_health(self.id).map_or(AdminHealth::Auto, |health| health.admin()) {
            AdminHealth::Auto if !self.is_judged() => AdminHealth::Healthy.word(),
            admin => admin.word(),
        }
    }

    /// Good and all: checks of a probe's window, members of a director.
    fn probe_counts(&self) -> (usize, usize) {
        if !self.is_judged() || matches!(self.director(), Some(DirectorKind::Saint(_))) {
            return (0, 0);
        }
        if let Some(window) = self.backend().and_then(|backend| backend.probe().map(|probe| probe.window())) {
            return (window.good() as usize, window.size() as usize);
        }
        if let Some(backends) = self.named().and_then(|item| item.backends()) {
            return (backends.iter().filter(|backend| backend.is_healthy()).count(), backends.len());
        }
        let members = self.director().map_or_else(|| Arc::from([]), |director| director.members());
        let good = members.iter().filter(|member| self.directors.is_healthy(member.director)).count();
        (good, members.len())
    }

    fn type_name(&self) -> &'static str {
        match (self.director(), self.named()) {
            (Some(director), _) => director.type_name(),
            (None, Some(_)) => "dynamic",
            (None, None) => "backend",
        }
    }
}

/// Which items a pattern means: none = all of the active VCL, without a dot = of the active VCL, else of any VCL.
fn matching<'a>(wanted: Option<&str>, vcls: &[&'a Directors], active: Option<&str>) -> Vec<Item<'a>> {
    let full = match wanted {
        Some(wanted) if wanted.contains('.') => wanted.to_owned(),
        other => format!("{}.{}", active.unwrap_or(""), other.filter(|name| !name.is_empty()).unwrap_or("*")),
    };
    vcls.iter()
        .flat_map(|directors| directors.ids().map(|id| Item { directors, id }))
        .filter(|item| pattern::matches(full.as_bytes(), item.display_name().as_bytes(), pattern::Flags::default()))
        .collect()
}

/// `backend.list`: `words` are the arguments as typed, `json` asks for JSON besides a `-j` among them. `vcls` are the loaded
/// VCLs, `active` the name of the active one.
///
/// # Errors
/// The text of a reply with status 106.
pub fn backend_list(
    words: &[String],
    json: bool,
    vcls: &[&Directors],
    active: Option<&str>,
    now: f64,
) -> Result<String, String> {
    let mut json_asked = false;
    let mut details = false;
    let flag_words = words.iter().take_while(|word| word.starts_with('-')).count();
    for letter in words[..flag_words].iter().flat_map(|word| word.chars().skip(1)) {
        match letter {
            'j' => json_asked = true,
            'p' => details = true,
            other => return Err(format!("Invalid flag {other}")),
        }
    }
    let patterns = &words[flag_words..];
    if patterns.len() > 1 {
        return Err("Too many arguments".to_owned());
    }
    let items = matching(patterns.first().map(String::as_str), vcls, active);
    if !json && !json_asked {
        return Ok(text(&items, details, now));
    }
    let mut command = vec!["backend.list".to_owned()];
    if json {
        command.push("-j".to_owned());
    }
    command.extend(words.iter().cloned());
    let mut reply = JsonReply::new(3, &command, now);
    let objects: Vec<String> = items.iter().map(|item| object(item, details, now)).collect();
    let body = if objects.is_empty() { "  ".to_owned() } else { objects.join(",\n") };
    reply.push("\n  ", &format!("{{\n{body}\n  }}"));
    Ok(reply.finish())
}

fn text(items: &[Item<'_>], details: bool, now: f64) -> String {
    let mut rows = vec![cells(&["Backend name", "Admin", "Probe", "Health", "Last change"])];
    for item in items {
        let (good, all) = item.probe_counts();
        let (healthy, changed) = item.directors.unforced_health(item.id, now);
        rows.push(vec![
            item.display_name(),
            item.admin_word().to_owned(),
            format!("{good}/{all}"),
            health_word(healthy).to_owned(),
            date(changed),
        ]);
        if details {
            details::text(item, now, &mut rows);
        }
    }
    table::layout(&rows)
}

fn object(item: &Item<'_>, details: bool, now: f64) -> String {
    let (good, all) = item.probe_counts();
    let (healthy, changed) = item.directors.unforced_health(item.id, now);
    let mut out = format!(
        "    {}: {{\n      \"type\": \"{}\",\n      \"admin_health\": \"{}\",\n      \"probe_message\": [{good}, {all}, \"{}\"],\n",
        json::string(&item.display_name()),
        item.type_name(),
        item.admin_word(),
        health_word(healthy),
    );
    if details {
        details::json(item, now, &mut out);
    }
    out.push_str(&format!("      \"last_change\": {changed:.3}\n    }}"));
    out
}

/// `backend.set_health <pattern> <state>`.
///
/// # Errors
/// The text of a reply with status 106.
pub fn set_health(
    pattern: &str,
    state: &str,
    vcls: &[&Directors],
    active: Option<&str>,
    now: f64,
) -> Result<(), String> {
    let admin = AdminHealth::parse(state).ok_or_else(|| format!("Invalid state {state}"))?;
    // Nothing means all where backends are shown, never where they are changed: a script's variable may be unset.
    let items = if pattern.is_empty() { Vec::new() } else { matching(Some(pattern), vcls, active) };
    if items.is_empty() {
        return Err("No Backends matches".to_owned());
    }
    for item in items {
        if let Some(health) = item.directors.own_health(item.id) {
            health.set_admin(admin, now);
        }
    }
    Ok(())
}

fn cells(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// An HTTP date; the epoch for times that have none.
fn date(seconds: f64) -> String {
    let since = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(Duration::from_secs(250_000_000_000));
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests;
