//! `backend.list`, the facts of [`backend::listing`] as text and as JSON, and `backend.set_health`.
//!
//! Compat: layout, columns and texts as observed in Varnish 7.1.1. The column Health shows the
//! verdict of the probe or of the members, the column Admin that of the operator.

mod care;
mod details;

use backend::Directors;
use backend::health::{AdminHealth, health_word};
use backend::listing::{self, Listed};
use cli_proto::json::{self, JsonReply};
use cli_proto::table;

/// The reply. `words` are the arguments as typed; `json` requests JSON, as does a `-j` among them.
/// `vcls` are the loaded VCLs, `active` is the name of the active one.
///
/// # Errors
/// The text of a reply with status 106.
pub(crate) fn backend_list(
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
    let items = listing::list(patterns.first().map(String::as_str), vcls, active, details, now);
    if !json && !json_asked {
        return Ok(text(&items));
    }
    let mut command = vec!["backend.list".to_owned()];
    if json {
        command.push("-j".to_owned());
    }
    command.extend(words.iter().cloned());
    let mut reply = JsonReply::new(3, &command, now);
    let objects: Vec<String> = items.iter().map(object).collect();
    let body = if objects.is_empty() { "  ".to_owned() } else { objects.join(",\n") };
    reply.push("\n  ", &format!("{{\n{body}\n  }}"));
    Ok(reply.finish())
}

/// `backend.set_health <pattern> <state>`.
///
/// # Errors
/// The text of a reply with status 106.
pub(crate) fn set_health(
    pattern: &str,
    state: &str,
    vcls: &[&Directors],
    active: Option<&str>,
    now: f64,
) -> Result<(), String> {
    let admin = AdminHealth::parse(state).ok_or_else(|| format!("Invalid state {state}"))?;
    match listing::set_health(pattern, admin, vcls, active, now) {
        0 => Err("No Backends matches".to_owned()),
        _ => Ok(()),
    }
}

fn text(items: &[Listed]) -> String {
    let mut rows = vec![cells(&["Backend name", "Admin", "Probe", "Health", "Last change"])];
    for item in items {
        rows.push(vec![
            item.name.clone(),
            item.admin.word().to_owned(),
            format!("{}/{}", item.good, item.all),
            health_word(item.is_healthy).to_owned(),
            date(item.changed),
        ]);
        if let Some(details) = &item.details {
            details::text(details, &mut rows);
        }
        if let Some(facts) = &item.care {
            care::text(facts, &mut rows);
        }
    }
    table::layout(&rows)
}

fn object(item: &Listed) -> String {
    let mut out = format!(
        "    {}: {{\n      \"type\": \"{}\",\n      \"admin_health\": \"{}\",\n      \"probe_message\": [{}, {}, \"{}\"],\n",
        json::string(&item.name),
        item.kind,
        item.admin.word(),
        item.good,
        item.all,
        health_word(item.is_healthy),
    );
    if let Some(details) = &item.details {
        details::json(details, &mut out);
    }
    if let Some(facts) = &item.care {
        care::json(facts, &mut out);
    }
    out.push_str(&format!("      \"last_change\": {:.3}\n    }}", item.changed));
    out
}

fn cells(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// An HTTP date; the epoch for times before it, and for those that have none.
fn date(seconds: f64) -> String {
    semantics::date::text(if seconds.is_finite() { seconds.max(0.0) } else { 0.0 })
}

#[cfg(test)]
mod tests;
