//! An explanation as text, and as JSON.

use super::account::{Account, Decision, Step};
use serde_json::{Value, json};
use shm::read::group::Reason as Begun;
use std::fmt::Write as _;
use surface::legible;
use surface::reason::{BUILTIN_PIECES, Layer, Reason};

/// The handling in a word, for the first line.
fn handling(account: &Account) -> &'static str {
    let mut decisions = account.steps.iter().filter(|step| !step.is_fetch).flat_map(|step| &step.decisions);
    let last = decisions.rfind(|decision| decision.reason != Reason::RestartByVcl).map(|last| last.reason);
    match last {
        Some(Reason::HitGrace) => "hit (stale, in grace)",
        Some(Reason::PassByVcl | Reason::HitForPass) => "pass",
        Some(Reason::PipeByVcl) => "pipe",
        Some(Reason::PurgeByVcl) => "purge",
        Some(Reason::SynthByVcl) => "answer made by VCL",
        Some(
            Reason::VclFailed
            | Reason::TooManyRestarts
            | Reason::InternalError
            | Reason::BadRequest
            | Reason::ExpectationUnknown
            | Reason::ClientGone,
        ) => "error",
        Some(reason) if reason.row().layer == Layer::Lookup => "miss",
        Some(_) => "error",
        None if account.hit.is_some() => "hit",
        None if account.method.is_empty() => "error",
        None => handling_without_reasons(account),
    }
}

/// As far as the log of any Varnish tells: by what the first fetch was for.
fn handling_without_reasons(account: &Account) -> &'static str {
    match account.steps.iter().find(|step| step.is_fetch).map(|step| step.begun) {
        Some(Begun::Fetch) => "miss",
        Some(Begun::Pass) => "pass",
        Some(Begun::Pipe) => "pipe",
        _ => "answer",
    }
}

/// Where there should be reasons and are none.
const NO_REASONS: &str =
    "No reasons were recorded: parameter vsl_reasons is off, vsl_mask hides Witness, or the log is Varnish's.";

/// Plain words, some lines.
pub(crate) fn plain(account: &Account) -> String {
    let mut text = String::new();
    let url = if account.url.is_empty() { &account.received_url } else { &account.url };
    let xid = account.steps.first().map_or(0, |step| step.xid);
    if account.method.is_empty() {
        // Neither method nor URL were logged.
        text.push_str("A request that was refused at once");
    } else {
        let _ = write!(text, "{} {}{url}: {}", account.method, account.host, handling(account));
    }
    if !account.status.is_empty() {
        let _ = write!(text, ", status {} {}", account.status, account.phrase);
    }
    if let Some(seconds) = account.seconds {
        let _ = write!(text, ", {:.1} ms", seconds * 1000.0);
    }
    let _ = writeln!(text, "  (XID {xid})");
    if account.received_url != *url {
        let _ = writeln!(text, "  asked for as {}", account.received_url);
    }
    if account.hit.is_none() && account.steps.iter().all(|step| step.decisions.is_empty()) {
        let _ = writeln!(text, "  {NO_REASONS}");
    }
    for step in &account.steps {
        tell_step(account, step, &mut text);
    }
    text.push('\n');
    text
}

fn tell_step(account: &Account, step: &Step, text: &mut String) {
    let indent = if step.is_fetch { "    " } else { "  " };
    if step.is_fetch {
        let what = match step.begun {
            Begun::Bgfetch => "fetch in the background",
            Begun::Pass => "fetch for this client alone",
            Begun::Pipe => "pipe",
            Begun::Restart | Begun::Unknown | Begun::Http1 | Begun::Rxreq | Begun::Esi | Begun::Fetch => "fetch",
        };
        let _ = write!(text, "  {what} (XID {})", step.xid);
        let words: Vec<&str> = step.backend.split(' ').collect();
        if let [_, name, address, port, ..] = words[..] {
            let _ = write!(text, " from {name} ({address}:{port})");
        }
        if !step.status.is_empty() {
            let _ = write!(text, ": status {}", step.status);
        }
        if step.is_revalidated {
            text.push_str(", since the origin confirmed the stored copy (304)");
        }
        if let Some(seconds) = step.seconds {
            let _ = write!(text, " after {:.1} ms", seconds * 1000.0);
        }
        text.push('\n');
    } else if step.begun == Begun::Restart {
        let _ = writeln!(text, "  after the restart (XID {}):", step.xid);
    }
    if let Some(seconds) = step.waited {
        let _ = writeln!(text, "{indent}It waited {:.1} ms for another request's fetch.", seconds * 1000.0);
    }
    let is_lost = |after: &[Decision]| after.iter().any(|decision| decision.reason.row().layer == Layer::Origin);
    for (index, decision) in step.decisions.iter().enumerate() {
        if decision.reason == Reason::Stored && is_lost(&step.decisions[index + 1..]) {
            let _ = writeln!(text, "{indent}The response was being stored, and was dropped when its body failed.");
            continue;
        }
        tell_decision(decision, step.marker.as_deref(), indent, text);
    }
    if !step.is_fetch
        && let Some(hit) = account.hit.as_deref().filter(|_| step.decisions.is_empty())
    {
        let _ = writeln!(text, "{indent}{}", Reason::Hit.row().sentence);
        let words: Vec<&str> = hit.split(' ').collect();
        if let [xid, ttl, ..] = words[..] {
            let ttl = ttl.split('.').next().unwrap_or(ttl);
            let _ = writeln!(text, "{indent}  fetched by XID {xid}, fresh for another {ttl} s");
        }
    }
    let mut last = "";
    let aged = step.ttl.iter().find_map(|record| aged(record)).unwrap_or(0);
    for record in &step.ttl {
        // What changes nothing is not worth a line.
        let numbers = record.split_once(' ').map_or("", |(_, numbers)| numbers);
        let numbers = numbers.match_indices(' ').nth(2).map_or(numbers, |(at, _)| &numbers[..at]);
        if let Some(line) = lifetime(record, aged).filter(|_| numbers != last) {
            let _ = writeln!(text, "{indent}{line}");
        }
        last = numbers;
    }
    if step.is_fetch && !step.headers.is_empty() && !step.ttl.is_empty() {
        let _ = writeln!(text, "{indent}  the origin said: {}", step.headers.join("; "));
    }
    let is_told = |error: &str| step.decisions.iter().any(|decision| decision.detail("text") == Some(error));
    for (tag, error) in step.errors.iter().filter(|(_, error)| !is_told(error)) {
        let _ = writeln!(text, "{indent}{}: {error}", tag.name());
    }
}

fn tell_decision(decision: &Decision, marker: Option<&str>, indent: &str, text: &mut String) {
    let row = decision.reason.row();
    let _ = writeln!(text, "{indent}{}", row.sentence);
    if let Some(place) = decision.detail("at") {
        let _ = write!(text, "{indent}  at {place}");
        if let Some(subs) = decision.detail("in") {
            let _ = write!(text, ", in {}", subs.replace('>', " → "));
        }
        text.push('\n');
        if let Some(line) = line_of(place) {
            let _ = writeln!(text, "{indent}      {line}");
        }
    }
    if let Some(cause) = piece(decision) {
        let _ = writeln!(text, "{indent}  because {cause}");
    }
    if let Some(place) = decision.detail("ttl-at") {
        let _ = writeln!(text, "{indent}  its TTL was set at {place}");
        if let Some(line) = line_of(place) {
            let _ = writeln!(text, "{indent}      {line}");
        }
    }
    if let Some((xid, left)) = marker.and_then(|marker| marker.split_once(' '))
        && matches!(decision.reason, Reason::HitForMiss | Reason::HitForPass)
    {
        let left = left.split('.').next().unwrap_or(left);
        let _ = writeln!(text, "{indent}  remembered since XID {xid}, for another {left} s");
    }
    for (name, value) in &decision.details {
        let _ = match (name.as_str(), decision.reason) {
            ("headers", _) => writeln!(text, "{indent}  it varies on {value}"),
            ("seconds", Reason::MissExpired | Reason::HitGrace) => {
                writeln!(text, "{indent}  it expired {value} s before")
            }
            ("bans", _) => writeln!(text, "{indent}  copies removed: {value}"),
            ("text", _) => writeln!(text, "{indent}  it said: {value}"),
            _ => Ok(()),
        };
    }
    if !row.advice.is_empty() {
        let _ = writeln!(text, "{indent}  next: {}", row.advice);
    }
}

/// Why a piece of the built-in VCL decided so.
fn piece(decision: &Decision) -> Option<&'static str> {
    let subs = decision.detail("in")?;
    subs.split('>').rev().find_map(|sub| BUILTIN_PIECES.iter().find(|(name, _)| *name == sub)).map(|(_, cause)| *cause)
}

/// The line of VCL at `file:line`, when the file can be read and is still what it was.
fn line_of(place: &str) -> Option<String> {
    let (file, number) = place.rsplit_once(':')?;
    let number: usize = number.parse().ok()?;
    let content = match file {
        "<builtin>" => vcl::BUILTIN.to_owned(),
        path if path.starts_with('/') => std::fs::read_to_string(path).ok()?,
        _ => return None,
    };
    let line = content.lines().nth(number.checked_sub(1)?)?.trim();
    Some(legible::line(line.as_bytes()).into_owned())
}

/// A `TTL` record in words: `RFC <ttl> <grace> <keep> <reference> <age> <date> <expires> <max-age> …`, `VCL <ttl> <grace> …`.
/// `aged` is how old the response was when it came, in seconds: what VCL sets counts from then, in the record from before.
fn lifetime(record: &str, aged: i64) -> Option<String> {
    let words: Vec<&str> = record.split(' ').collect();
    let (who, ttl, grace, keep) = match words[..] {
        [who, ttl, grace, keep, ..] => (who, ttl, grace, keep),
        _ => return None,
    };
    let by = match who {
        "RFC" => "from the response's headers and the defaults",
        "VCL" => "set by VCL",
        "HFP" => "of a hit-for-pass",
        _ => return None,
    };
    let line = |ttl: &str| format!("TTL {ttl} s, grace {grace} s, keep {keep} s: {by}");
    match ttl.parse::<i64>() {
        Ok(_) if aged == 0 => Some(line(ttl)),
        Ok(seconds) if who == "RFC" => {
            Some(format!("{}; it was {aged} s old when it came, so {} s are left", line(ttl), seconds - aged))
        }
        Ok(seconds) => Some(line(&(seconds - aged).to_string())),
        Err(_) => Some(line(ttl)),
    }
}

/// How old the response was when it came, by its `Age` or `Date`: from an `RFC` record, `RFC <ttl> <grace> <keep> <now>
/// <origin> …`; `None` for other records and for a second's difference.
fn aged(record: &str) -> Option<i64> {
    let words: Vec<&str> = record.split(' ').collect();
    let ["RFC", _, _, _, now, origin, ..] = words[..] else { return None };
    let seconds = now.parse::<i64>().ok()? - origin.parse::<i64>().ok()?;
    (seconds > 1).then_some(seconds)
}

/// The same as one JSON value.
pub(crate) fn json(account: &Account) -> Value {
    let steps: Vec<Value> = account
        .steps
        .iter()
        .map(|step| {
            let decisions: Vec<Value> = step
                .decisions
                .iter()
                .map(|decision| {
                    let row = decision.reason.row();
                    let details: serde_json::Map<String, Value> =
                        decision.details.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                    json!({ "reason": row.word, "text": row.sentence, "because": piece(decision),
                        "next": (!row.advice.is_empty()).then_some(row.advice), "details": details })
                })
                .collect();
            let errors: Vec<Value> =
                step.errors.iter().map(|(tag, text)| json!({ "tag": tag.name(), "text": text })).collect();
            json!({ "xid": step.xid, "fetch": step.is_fetch, "decisions": decisions, "ttl": step.ttl, "errors": errors,
                "status": (!step.status.is_empty()).then_some(&step.status), "waited": step.waited,
                "revalidated": step.is_revalidated, "marker": step.marker,
                "backend": (!step.backend.is_empty()).then_some(&step.backend), "seconds": step.seconds })
        })
        .collect();
    json!({ "method": account.method, "host": account.host, "url": account.url, "received_url": account.received_url,
        "status": account.status, "handling": handling(account), "hit": account.hit, "seconds": account.seconds,
        "steps": steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(decisions: Vec<Decision>) -> Step {
        Step {
            xid: 4,
            begun: Begun::Fetch,
            is_fetch: true,
            decisions,
            ttl: Vec::new(),
            errors: Vec::new(),
            status: "200".to_owned(),
            is_revalidated: true,
            marker: None,
            headers: Vec::new(),
            backend: String::new(),
            waited: None,
            seconds: None,
        }
    }

    #[test]
    fn a_log_without_reasons_is_told_as_far_as_it_goes() {
        let account = Account { method: "GET".to_owned(), steps: vec![fetch(Vec::new())], ..Account::default() };
        let said = plain(&account);
        assert!(said.contains(": miss") && said.contains(NO_REASONS), "{said}");
        assert!(said.contains("status 200, since the origin confirmed the stored copy (304)"), "{said}");
    }

    #[test]
    fn a_response_whose_body_failed_is_not_called_stored() {
        let decision = |reason| Decision { reason, details: Vec::new() };
        let steps = vec![fetch(vec![decision(Reason::Stored), decision(Reason::BodyBroken)])];
        let said = plain(&Account { method: "GET".to_owned(), steps, ..Account::default() });
        assert!(said.contains("was dropped when its body failed") && !said.contains("was stored."), "{said}");
        assert!(!said.contains(NO_REASONS), "{said}");
    }

    #[test]
    fn a_marker_says_since_which_fetch_and_for_how_long() {
        let mut step = fetch(vec![Decision { reason: Reason::HitForMiss, details: Vec::new() }]);
        step.marker = Some("15 119.501000".to_owned());
        let said = plain(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() });
        assert!(said.contains("remembered since XID 15, for another 119 s"), "{said}");
    }

    #[test]
    fn what_an_old_response_has_left_is_told() {
        let record = "RFC 100 10 0 1795312975 1795312475 1795312975 0 100 cacheable";
        assert_eq!(aged(record), Some(500));
        let said = lifetime(record, 500).unwrap();
        assert!(said.ends_with("; it was 500 s old when it came, so -400 s are left"), "{said}");
        let said = lifetime("VCL 620 10 0 1795312475 cacheable", 500).unwrap();
        assert_eq!(said, "TTL 120 s, grace 10 s, keep 0 s: set by VCL");
        assert_eq!(aged("RFC 120 10 0 1795312977 1795312976 1795312976 0 0 cacheable"), None, "a rounded second");
        assert_eq!(aged("VCL 120 10 0 1795312977 cacheable"), None);
    }
}
