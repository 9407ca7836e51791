//! What `backend.list -p` adds to a row: the probe's window, or the members of a director.

use crate::director::choice::Member;
use crate::director::kind::DirectorKind;
use crate::director::kind::shard::{ListedMember, Shard};
use crate::health::health_word;
use crate::listing::{Item, cells, named};
use crate::probe::window::{BITS, FLAGS, Window};
use cli_proto::json;
use std::fmt::Write;

/// Rows below the item's own.
pub(super) fn text(item: &Item<'_>, now: f64, rows: &mut Vec<Vec<String>>) {
    if let Some(window) = item.backend().and_then(|backend| backend.probe().map(|probe| probe.window())) {
        window_text(&window, rows);
    }
    if let Some(backends) = item.named().and_then(|name| name.backends()) {
        named::text(&backends, rows);
    }
    match item.director() {
        Some(DirectorKind::Shard(shard)) => shard_text(item, shard, now, rows),
        Some(director) => members_text(item, director, rows),
        None => {}
    }
}

fn window_text(window: &Window, rows: &mut Vec<Vec<String>>) {
    rows.push(vec![format!(
        " Current states  good: {:2} threshold: {:2} window: {:2}",
        window.good(),
        window.threshold(),
        window.size()
    )]);
    rows.push(vec![format!("  Average response time of good probes: {:.6}", window.average_seconds())]);
    rows.push(vec![format!("  Oldest {} Newest", "=".repeat(50))]);
    for (mask, row) in window.masks().iter().zip(&FLAGS) {
        if *mask != 0 || row.always {
            let bits: String = (0..BITS).rev().map(|bit| if mask >> bit & 1 == 1 { row.letter } else { '-' }).collect();
            rows.push(vec![format!("  {bits} {}", row.text)]);
        }
    }
    rows.push(cells(&[""]));
}

fn members_text(item: &Item<'_>, director: &DirectorKind, rows: &mut Vec<Vec<String>>) {
    let header = match director {
        DirectorKind::RoundRobin(_) | DirectorKind::Random(_) | DirectorKind::LeastConnections(_) => {
            ["", "Backend", "Weight", "Health"]
        }
        DirectorKind::Fallback(_) => ["", "Backend", "Current", "Health"],
        DirectorKind::Hash(_)
        | DirectorKind::Shard(_)
        | DirectorKind::Saint(_)
        | DirectorKind::Dns(_)
        | DirectorKind::Dynamic(_)
        | DirectorKind::Failing => return,
    };
    rows.push(cells(&[""]));
    rows.push(cells(&header));
    let members = director.members();
    let total = healthy_weight(item, &members);
    for (place, member) in members.iter().enumerate() {
        let healthy = item.directors.is_healthy(member.director);
        let middle = match director {
            DirectorKind::Fallback(fallback) if fallback.current() == place => "*".to_owned(),
            DirectorKind::Fallback(_) => String::new(),
            DirectorKind::Random(_) | DirectorKind::LeastConnections(_) => {
                format!("{:6.2}%", 100.0 * effective_weight(member, healthy) / total.max(1e-300))
            }
            DirectorKind::RoundRobin(_)
            | DirectorKind::Hash(_)
            | DirectorKind::Shard(_)
            | DirectorKind::Saint(_)
            | DirectorKind::Dns(_)
            | DirectorKind::Dynamic(_)
            | DirectorKind::Failing => "-".to_owned(),
        };
        rows.push(cells(&["", &item.directors.name(member.director), &middle, health_word(healthy)]));
    }
    rows.push(cells(&[""]));
}

fn effective_weight(member: &Member, healthy: bool) -> f64 {
    if healthy { member.weight } else { 0.0 }
}

fn healthy_weight(item: &Item<'_>, members: &[Member]) -> f64 {
    members.iter().map(|member| effective_weight(member, item.directors.is_healthy(member.director))).sum()
}

/// The element `probe_details`.
pub(super) fn json(item: &Item<'_>, now: f64, out: &mut String) {
    if matches!(item.director(), Some(DirectorKind::Hash(_))) {
        return;
    }
    out.push_str("      \"probe_details\": {");
    if let Some(window) = item.backend().and_then(|backend| backend.probe().map(|probe| probe.window())) {
        window_json(&window, out);
    } else if let Some(name) = item.named() {
        named::json(&name, out);
    } else if let Some(DirectorKind::Shard(shard)) = item.director() {
        shard_json(item, shard, now, out);
    } else if let Some(director) = item.director() {
        members_json(item, director, out);
    }
    out.push_str("},\n");
}

fn window_json(window: &Window, out: &mut String) {
    out.push('\n');
    for (mask, row) in window.masks().iter().zip(&FLAGS) {
        let _ = writeln!(out, "        \"bits_{}\": {mask},", row.letter);
    }
    let _ = write!(
        out,
        "        \"good\": {},\n        \"threshold\": {},\n        \"window\": {}\n      ",
        window.good(),
        window.threshold(),
        window.size()
    );
}

fn members_json(item: &Item<'_>, director: &DirectorKind, out: &mut String) {
    let members = director.members();
    match director {
        DirectorKind::RoundRobin(_) => out.push('\n'),
        DirectorKind::Fallback(fallback) => {
            let _ = write!(out, "\n        \"sticky\": {},\n", fallback.is_sticky());
        }
        DirectorKind::Random(_) | DirectorKind::LeastConnections(_) => {
            let _ = write!(out, "\n        \"total_weight\": {:.6},\n", healthy_weight(item, &members));
        }
        DirectorKind::Hash(_)
        | DirectorKind::Shard(_)
        | DirectorKind::Saint(_)
        | DirectorKind::Dns(_)
        | DirectorKind::Dynamic(_)
        | DirectorKind::Failing => return,
    }
    let objects: Vec<String> = members
        .iter()
        .enumerate()
        .map(|(place, member)| {
            let healthy = item.directors.is_healthy(member.director);
            let mut fields = Vec::new();
            match director {
                DirectorKind::Fallback(fallback) => {
                    fields.push(format!("\"current\": {}", fallback.current() == place));
                }
                DirectorKind::Random(_) | DirectorKind::LeastConnections(_) => {
                    fields.push(format!("\"weight\": {:.6}", effective_weight(member, healthy)));
                }
                DirectorKind::RoundRobin(_)
                | DirectorKind::Hash(_)
                | DirectorKind::Shard(_)
                | DirectorKind::Saint(_)
                | DirectorKind::Dns(_)
                | DirectorKind::Dynamic(_)
                | DirectorKind::Failing => {}
            }
            fields.push(format!("\"health\": \"{}\"", health_word(healthy)));
            let name = json::string(&item.directors.name(member.director));
            object_of(&name, &fields)
        })
        .collect();
    backends_json(&objects, out);
}

fn object_of(name: &str, fields: &[String]) -> String {
    format!("          {name}: {{\n            {}\n          }}", fields.join(",\n            "))
}

fn backends_json(objects: &[String], out: &mut String) {
    let body = if objects.is_empty() { "          ".to_owned() } else { objects.join(",\n") };
    let _ = write!(out, "        \"backends\": {{\n{body}\n        }}\n      ");
}

/// A member of a shard director: healthy, share of its ramp-up that is over, seconds of it that remain.
fn ramp(item: &Item<'_>, member: &ListedMember, now: f64) -> (bool, f64, f64) {
    let (healthy, changed) = item.directors.health(member.director);
    let since = now - changed;
    match healthy {
        false => (false, 0.0, 0.0),
        true if since < member.rampup => (true, since / member.rampup, member.rampup - since),
        true => (true, 1.0, 0.0),
    }
}

fn shard_text(item: &Item<'_>, shard: &Shard, now: f64, rows: &mut Vec<Vec<String>>) {
    rows.push(cells(&[""]));
    rows.push(cells(&["", "Backend", "Ident", "Health", "Rampup  Remaining"]));
    for member in shard.listed() {
        let (healthy, over, remaining) = ramp(item, &member, now);
        let name = item.directors.name(member.director);
        let ident = member.ident.as_deref().unwrap_or(&name);
        let rampup = format!("{:6.2}% {remaining:8.3}s", over * 100.0);
        rows.push(cells(&["", &name, ident, health_word(healthy), &rampup]));
    }
    rows.push(cells(&[""]));
}

fn shard_json(item: &Item<'_>, shard: &Shard, now: f64, out: &mut String) {
    let _ = write!(
        out,
        "\n        \"warmup\": {:.6},\n        \"rampup_duration\": {:.6},\n",
        shard.warmup(),
        shard.rampup()
    );
    let object = |member: &ListedMember| {
        let (healthy, over, remaining) = ramp(item, member, now);
        let name = item.directors.name(member.director);
        let fields = [
            format!("\"ident\": {}", json::string(member.ident.as_deref().unwrap_or(&name))),
            format!("\"health\": \"{}\"", health_word(healthy)),
            format!("\"rampup\": {over:.6}"),
            format!("\"rampup_remaining\": {remaining:.3}"),
        ];
        object_of(&json::string(&name), &fields)
    };
    let objects: Vec<String> = shard.listed().iter().map(object).collect();
    backends_json(&objects, out);
}
