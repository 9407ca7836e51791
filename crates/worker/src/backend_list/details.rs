//! Details of a row in `backend.list -p`: the probe's window, the members of a director, or, for a
//! name that is resolved, its backends and the settings of its object. Compat: for names, the
//! elements that libvmod-dynamic shows.

use backend::dns_names::settings::MakerSettings;
use backend::health::health_word;
use backend::listing::{Details, MemberFacts, ShardMemberFacts};
use backend::probe::window::{BITS, FLAGS, Window};
use cli_proto::json;
use std::fmt::Write;

/// Rows below the item's own.
pub(super) fn text(details: &Details, rows: &mut Vec<Vec<String>>) {
    match details {
        Details::Nothing | Details::Hash => {}
        Details::Probe(window) => window_text(window, rows),
        Details::Name { backends, .. } => members_text(&["Backend", "Health"], backends, |_, _| None, rows),
        Details::RoundRobin(members) => {
            members_text(&["Backend", "Weight", "Health"], members, |_, _| Some("-".to_owned()), rows);
        }
        Details::Fallback { current, members, .. } => {
            let mark = |place: usize, _: &MemberFacts| Some(if place == *current { "*" } else { "" }.to_owned());
            members_text(&["Backend", "Current", "Health"], members, mark, rows);
        }
        Details::Weighted { total, members } => {
            let share =
                |_: usize, member: &MemberFacts| Some(format!("{:6.2}%", 100.0 * member.weight / total.max(1e-300)));
            members_text(&["Backend", "Weight", "Health"], members, share, rows);
        }
        Details::Shard { members, .. } => shard_text(members, rows),
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
    rows.push(vec![String::new()]);
}

/// A table of members; `middle` returns the columns between name and health, if any.
fn members_text(
    header: &[&str],
    members: &[MemberFacts],
    middle: impl Fn(usize, &MemberFacts) -> Option<String>,
    rows: &mut Vec<Vec<String>>,
) {
    let line = members.iter().enumerate().map(|(place, member)| {
        let health = health_word(member.is_healthy).to_owned();
        [member.name.clone()].into_iter().chain(middle(place, member)).chain([health]).collect()
    });
    members_table(header, line, rows);
}

fn shard_text(members: &[ShardMemberFacts], rows: &mut Vec<Vec<String>>) {
    let line = members.iter().map(|member| {
        let rampup = format!("{:6.2}% {:8.3}s", member.ramped * 100.0, member.remaining);
        vec![member.name.clone(), member.ident.clone(), health_word(member.is_healthy).to_owned(), rampup]
    });
    members_table(&["Backend", "Ident", "Health", "Rampup  Remaining"], line, rows);
}

/// An empty line, the header, one line per member, all with an empty first column, and an empty
/// line.
fn members_table(header: &[&str], lines: impl Iterator<Item = Vec<String>>, rows: &mut Vec<Vec<String>>) {
    let header = header.iter().map(|cell| (*cell).to_owned()).collect();
    rows.push(vec![String::new()]);
    rows.extend([header].into_iter().chain(lines).map(|line| [vec![String::new()], line].concat()));
    rows.push(vec![String::new()]);
}

/// The element `probe_details`.
pub(super) fn json(details: &Details, out: &mut String) {
    if matches!(details, Details::Hash) {
        return;
    }
    out.push_str("      \"probe_details\": {");
    match details {
        Details::Nothing | Details::Hash => {}
        Details::Probe(window) => window_json(window, out),
        Details::Name { settings, backends } => {
            settings_json(settings, out);
            let objects: Vec<String> = backends.iter().map(|backend| member_json(backend, None)).collect();
            let _ = write!(out, "        \"backends\": {{\n{}\n        }}\n      ", objects.join(",\n"));
        }
        Details::RoundRobin(members) => {
            out.push('\n');
            backends_json(members.iter().map(|member| member_json(member, None)), out);
        }
        Details::Fallback { is_sticky, current, members } => {
            let _ = write!(out, "\n        \"sticky\": {is_sticky},\n");
            let object = |(place, member): (usize, &MemberFacts)| {
                member_json(member, Some(format!("\"current\": {}", place == *current)))
            };
            backends_json(members.iter().enumerate().map(object), out);
        }
        Details::Weighted { total, members } => {
            let _ = write!(out, "\n        \"total_weight\": {total:.6},\n");
            let object = |member: &MemberFacts| member_json(member, Some(format!("\"weight\": {:.6}", member.weight)));
            backends_json(members.iter().map(object), out);
        }
        Details::Shard { warmup, rampup, members } => {
            let _ = write!(out, "\n        \"warmup\": {warmup:.6},\n        \"rampup_duration\": {rampup:.6},\n");
            backends_json(members.iter().map(shard_member_json), out);
        }
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

fn settings_json(settings: &MakerSettings, out: &mut String) {
    let text = |text: Option<&str>| json::string(text.unwrap_or(""));
    let seconds = |seconds: Option<f64>| format!("{:.2}", seconds.unwrap_or(-1.0));
    let fields = [
        ("port", json::string(&settings.port)),
        ("hosthdr", text(settings.host_header.as_deref())),
        ("share", json::string(if settings.is_shared_by_host { "HOST" } else { "DIRECTOR" })),
        ("probe", settings.probe.is_some().to_string()),
        ("whitelist", settings.allowed.is_some().to_string()),
        ("connect_timeout", seconds(settings.connect_timeout)),
        ("first_byte_timeout", seconds(settings.first_byte_timeout)),
        ("between_bytes_timeout", seconds(settings.between_bytes_timeout)),
        ("domain_usage_timeout", seconds(Some(settings.domain_usage_timeout))),
        ("first_lookup_timeout", seconds(Some(settings.first_lookup_timeout))),
        ("max_connections", settings.max_connections.to_string()),
        ("proxy_header", settings.proxy_header.to_string()),
        ("resolver", json::string(settings.source.name())),
        ("retry_after", seconds(Some(settings.retry_after))),
        ("via", text(settings.via.as_ref().map(|via| via.name.as_str()))),
        ("ttl_from", json::string(settings.ttl_from.word())),
        ("ttl", seconds(Some(settings.ttl))),
        ("keep", settings.keep.to_string()),
    ];
    out.push('\n');
    for (name, value) in fields {
        let _ = writeln!(out, "        \"{name}\": {value},");
    }
}

/// One member; `first` is a field that precedes its health.
fn member_json(member: &MemberFacts, first: Option<String>) -> String {
    let health = format!("\"health\": \"{}\"", health_word(member.is_healthy));
    let fields: Vec<String> = first.into_iter().chain([health]).collect();
    object_of(&member.name, &fields)
}

fn shard_member_json(member: &ShardMemberFacts) -> String {
    let fields = [
        format!("\"ident\": {}", json::string(&member.ident)),
        format!("\"health\": \"{}\"", health_word(member.is_healthy)),
        format!("\"rampup\": {:.6}", member.ramped),
        format!("\"rampup_remaining\": {:.3}", member.remaining),
    ];
    object_of(&member.name, &fields)
}

fn object_of(name: &str, fields: &[String]) -> String {
    format!("          {}: {{\n            {}\n          }}", json::string(name), fields.join(",\n            "))
}

fn backends_json(objects: impl Iterator<Item = String>, out: &mut String) {
    let objects: Vec<String> = objects.collect();
    let body = if objects.is_empty() { "          ".to_owned() } else { objects.join(",\n") };
    let _ = write!(out, "        \"backends\": {{\n{body}\n        }}\n      ");
}
