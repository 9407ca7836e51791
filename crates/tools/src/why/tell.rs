//! An explanation as text; as JSON: `why/object.rs`.

use super::account::{Account, Decision, Step};
use super::cookies;
use super::handling::{handling, is_made_here};
use super::near_miss::Difference;
use crate::clock;
use shm::read::transaction::Reason as Begun;
use std::fmt::Write as _;
use std::io::Read as _;
use surface::legible;
use surface::limits::VCL_SOURCE_BYTES_MAX;
use surface::reason::{BUILTIN_PIECES, DEPARTURES, Layer, NEVER, Reason};
use surface::vcl::Generation;

/// The piece of the built-in VCL that passes requests with cookies.
const COOKIE_PIECE: &str = "vcl_req_cookie";

/// The message if there should be reasons but are none.
const NO_REASONS: &str =
    "No reasons were recorded: parameter vsl_reasons is off, vsl_mask hides Witness, or the log is Varnish's.";

/// The explanation in plain words, on several lines.
pub(crate) fn plain(account: &Account) -> String {
    let mut text = String::new();
    let url = if account.url.is_empty() { &account.received_url } else { &account.url };
    let xid = account.steps.first().map_or(0, |step| step.xid);
    if account.method.is_empty() {
        // Neither method nor URL was logged.
        text.push_str("A request that was refused at once");
    } else {
        let _ = write!(text, "{} {}{url}: {}", account.method, account.host, handling(account).text());
    }
    if !account.status.is_empty() {
        let _ = write!(text, ", status {} {}", account.status, account.phrase);
    }
    if let Some(seconds) = account.seconds {
        let _ = write!(text, ", {:.1} ms", seconds * 1000.0);
    }
    let _ = writeln!(text, "  (XID {xid})");
    if let Some(page) = account.page {
        let _ = writeln!(text, "  a fragment of the page with XID {page}");
    }
    tell_way(account, &mut text);
    if account.received_url != *url {
        let _ = writeln!(text, "  asked for as {}", account.received_url);
    }
    if account.steps.iter().all(|step| step.hit.is_none() && step.decisions.is_empty()) {
        let _ = writeln!(text, "  {NO_REASONS}");
    }
    if account.status.starts_with('5') {
        let status = &account.status;
        let _ = match is_made_here(account) {
            Some(false) => writeln!(text, "  The status {status} is the origin's own: the answer was not made here."),
            Some(true) => {
                writeln!(text, "  The answer with status {status} was made here: the origin did not send it.")
            }
            None => Ok(()),
        };
    }
    for step in &account.steps {
        tell_step(step, &mut text);
    }
    tell_near(account, &mut text);
    text.push('\n');
    text
}

/// How the client came, where there is more than one way.
fn tell_way(account: &Account, text: &mut String) {
    if account.scheme.is_empty() || account.page.is_some() {
        return;
    }
    let _ = writeln!(text, "  came over {}, {}", account.scheme, account.protocol);
}

/// Lists what the cache had under almost the same address.
fn tell_near(account: &Account, text: &mut String) {
    for (difference, stored) in &account.near {
        let (what, advice) = match difference {
            Difference::Host => (
                format!("the same URL of host {}", stored.host),
                "if both are the same site, give them one Host in vcl_recv",
            ),
            Difference::Query => {
                (stored.url.clone(), "strip parameters that change nothing (tracking) from req.url in vcl_recv")
            }
            Difference::Order => {
                (stored.url.clone(), "only the order differs: set req.url = std.querysort(req.url); in vcl_recv")
            }
        };
        let _ = writeln!(text, "  near miss, by the log: {what} was in the cache (XID {})", stored.xid);
        let _ = writeln!(text, "    next: {advice}");
    }
}

fn tell_step(step: &Step, text: &mut String) {
    let indent = if step.is_fetch { "    " } else { "  " };
    if step.is_fetch {
        let what = match step.begun {
            Some(Begun::Bgfetch) => "fetch in the background",
            Some(Begun::Pass) => "fetch for this client alone",
            Some(Begun::Pipe) => "pipe",
            _ => "fetch",
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
    } else if step.begun == Some(Begun::Restart) {
        let _ = writeln!(text, "  after the restart (XID {}):", step.xid);
    }
    if let Some(seconds) = step.waited {
        let _ = writeln!(text, "{indent}It waited {:.1} ms for another request's fetch.", seconds * 1000.0);
    }
    let is_lost = |after: &[Decision]| after.iter().any(|decision| decision.reason.row().layer == Layer::Origin);
    // A later decision explains why it could not be kept after all.
    let is_revised = |after: &[Decision]| after.iter().any(|decision| decision.reason.row().layer == Layer::Store);
    for (index, decision) in step.decisions.iter().enumerate() {
        if decision.reason == Reason::Stored && is_revised(&step.decisions[index + 1..]) {
            continue;
        }
        if decision.reason == Reason::Stored && is_lost(&step.decisions[index + 1..]) {
            let _ = writeln!(text, "{indent}The response was being stored, and was dropped when its body failed.");
            continue;
        }
        tell_decision(decision, step, indent, text);
    }
    if let Some(hit) = step.hit.filter(|_| step.decisions.is_empty()) {
        let _ = writeln!(text, "{indent}{}", Reason::Hit.row().sentence);
        let _ = writeln!(text, "{indent}  fetched by XID {}, fresh for another {:.0} s", hit.xid, hit.ttl.floor());
    }
    let mut last = "";
    let aged = step.ttl.iter().find_map(|record| aged(record)).unwrap_or(0);
    for record in &step.ttl {
        // A record that changes nothing gets no line.
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
    if !step.set_cookies.is_empty() {
        let _ = writeln!(text, "{indent}  the origin sets cookies: {}", step.set_cookies.join(", "));
    }
    let is_told = |error: &str| step.decisions.iter().any(|decision| decision.detail("text") == Some(error));
    for (tag, error) in step.errors.iter().filter(|(_, error)| !is_told(error)) {
        let _ = writeln!(text, "{indent}{}: {error}", tag.name());
    }
}

fn tell_decision(decision: &Decision, step: &Step, indent: &str, text: &mut String) {
    let row = decision.reason.row();
    let _ = writeln!(text, "{indent}{}", row.sentence);
    if let Some(place) = decision.detail("at") {
        let _ = write!(text, "{indent}  at {place}");
        if let Some(subs) = decision.detail("in") {
            let _ = write!(text, ", in {}", subs.replace('>', " → "));
        }
        text.push('\n');
        if let Some(line) = line_of(place, generation(decision)) {
            let _ = writeln!(text, "{indent}      {line}");
        }
    }
    if let Some(cause) = piece(decision) {
        let _ = writeln!(text, "{indent}  because {cause}");
    }
    if let Some(place) = decision.detail("ttl-at") {
        let _ = writeln!(text, "{indent}  its TTL was set at {place}");
        if let Some(line) = line_of(place, Generation::V4) {
            let _ = writeln!(text, "{indent}      {line}");
        }
    }
    if let Some((xid, left)) = step.marker
        && matches!(decision.reason, Reason::HitForMiss | Reason::HitForPass)
    {
        let _ = writeln!(text, "{indent}  remembered since XID {xid}, for another {:.0} s", left.floor());
    }
    tell_absence(decision, indent, text);
    for (name, value) in &decision.details {
        let _ = match (name.as_str(), decision.reason) {
            ("headers", _) => writeln!(text, "{indent}  it varies on {value}"),
            ("differs", _) => writeln!(text, "{indent}  this request differs in {value}"),
            ("seconds", Reason::MissExpired | Reason::HitGrace) => {
                writeln!(text, "{indent}  it expired {value} s before")
            }
            ("bans" | "copies", _) => writeln!(text, "{indent}  copies removed: {value}"),
            ("limit", _) => {
                let max = decision.detail("max").unwrap_or("?");
                writeln!(text, "{indent}  it broke the parameter {value}, which is {max}")
            }
            ("text", _) => writeln!(text, "{indent}  it said: {value}"),
            _ => Ok(()),
        };
    }
    if let Some(ban) = decision.detail("ban") {
        let added =
            decision.number("ban-time").and_then(moment).map_or(String::new(), |time| format!(", added {time}"));
        let _ = writeln!(text, "{indent}  the ban: {ban}{added}");
    }
    let named = named_cookies(decision);
    if !named.is_empty() {
        let _ = writeln!(text, "{indent}  its cookies: {}", named.join(", "));
    }
    if let Some(lines) = strips(decision) {
        let _ = writeln!(text, "{indent}  next: in VCL, these lines strip them:");
        for line in lines.lines() {
            let _ = writeln!(text, "{indent}    {line}");
        }
    }
    if !row.advice.is_empty() {
        let _ = writeln!(text, "{indent}  next: {}", row.advice);
    }
}

/// Tells what happened to the last copy.
fn tell_absence(decision: &Decision, indent: &str, text: &mut String) {
    let Some(gone) = decision.detail("gone") else { return };
    let Some((_, _, sentence)) = DEPARTURES.iter().find(|(_, word, _)| *word == gone) else { return };
    let seconds = decision.detail("seconds").unwrap_or("?");
    let _ = if gone == NEVER {
        writeln!(text, "{indent}  {sentence} in the last {seconds} s either: so far back does the cache remember.")
    } else {
        writeln!(text, "{indent}  {sentence}, {seconds} s before.")
    };
}

/// Seconds since 1970 as a date.
pub(super) fn moment(seconds: f64) -> Option<String> {
    clock::utc(seconds, "%Y-%m-%dT%H:%M:%SZ")
}

/// The cookies that made a request a pass; empty when something else did.
pub(super) fn named_cookies(decision: &Decision) -> Vec<&str> {
    if is_by_cookie(decision) { cookies::names(decision.all("cookies")) } else { Vec::new() }
}

/// Lines of VCL that remove these cookies.
pub(super) fn strips(decision: &Decision) -> Option<String> {
    cookies::snippet(&named_cookies(decision), generation(decision))
}

fn generation(decision: &Decision) -> Generation {
    decision.detail("dialect").and_then(Generation::of_name).unwrap_or(Generation::V4)
}

/// How many lines above an action its condition is searched for.
const CONDITION_LINES: usize = 5;

/// Whether VCL decided because of a cookie: by its built-in piece, or because the lines before the action mention
/// cookies.
fn is_by_cookie(decision: &Decision) -> bool {
    if decision.detail("in").is_some_and(|subs| subs.split('>').any(|sub| sub == COOKIE_PIECE)) {
        return true;
    }
    if piece(decision).is_some() {
        return false;
    }
    let Some((content, number)) = decision.detail("at").and_then(|place| source_of(place, generation(decision))) else {
        // The text cannot be read from here; so the cookies are named to be on the safe side.
        return decision.detail("cookies").is_some();
    };
    let lines: Vec<&str> = content.lines().take(number).collect();
    let near = &lines[lines.len().saturating_sub(CONDITION_LINES)..];
    // Not beyond the end of the previous block.
    let from = near[..near.len().saturating_sub(1)].iter().rposition(|line| line.trim() == "}").map_or(0, |at| at + 1);
    near[from..].iter().any(|line| line.to_ascii_lowercase().contains("cookie"))
}

/// Why a piece of the built-in VCL made this decision.
pub(super) fn piece(decision: &Decision) -> Option<&'static str> {
    let subs = decision.detail("in")?;
    subs.split('>').rev().find_map(|sub| BUILTIN_PIECES.iter().find(|(name, _)| *name == sub)).map(|(_, cause)| *cause)
}

/// The line of VCL at `file:line`, if the file is readable and unchanged.
fn line_of(place: &str, generation: Generation) -> Option<String> {
    let (content, number) = source_of(place, generation)?;
    let line = content.lines().nth(number - 1)?.trim();
    Some(legible::line(line.as_bytes()).into_owned())
}

/// The VCL text that contains a place, and its line number, from 1.
fn source_of(place: &str, generation: Generation) -> Option<(String, usize)> {
    let (file, number) = place.rsplit_once(':')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let content = match file {
        "<builtin>" => vcl::builtin_of(generation).to_owned(),
        vcl::BUILTIN_RFC_NAME => vcl::BUILTIN_RFC.to_owned(),
        // The path comes from the log: it may lead to anything, even something endless.
        path if path.starts_with('/') && std::fs::metadata(path).is_ok_and(|found| found.is_file()) => {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(VCL_SOURCE_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => return None,
    };
    Some((content, number))
}

/// A `TTL` record in words: `RFC <ttl> <grace> <keep> <reference> <age> <date> <expires> <max-age> …`, `VCL <ttl>
/// <grace> …`. `aged` is the age of the response on arrival, in seconds: VCL's values count from then, those in the
/// record from before.
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

/// The age of the response on arrival, by its `Age` or `Date`, from an `RFC` record: `RFC <ttl> <grace> <keep> <now>
/// <origin> …`; `None` for other records and for a difference of a second.
fn aged(record: &str) -> Option<i64> {
    let words: Vec<&str> = record.split(' ').collect();
    let ["RFC", _, _, _, now, origin, ..] = words[..] else { return None };
    let seconds = now.parse::<i64>().ok()? - origin.parse::<i64>().ok()?;
    (seconds > 1).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(decisions: Vec<Decision>) -> Step {
        Step {
            xid: 4,
            begun: Some(Begun::Fetch),
            is_fetch: true,
            decisions,
            status: "200".to_owned(),
            is_revalidated: true,
            ..Step::default()
        }
    }

    #[test]
    fn how_the_client_came_is_told_where_the_log_names_it() {
        let account = |scheme: &str, page| Account {
            method: "GET".to_owned(),
            scheme: scheme.to_owned(),
            protocol: "HTTP/3.0".to_owned(),
            page,
            ..Account::default()
        };
        assert!(plain(&account("https", None)).contains("\n  came over https, HTTP/3.0\n"));
        assert!(!plain(&account("", None)).contains("came over"));
        assert!(!plain(&account("https", Some(3))).contains("came over"), "a fragment came over nothing");
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
    fn a_response_that_proved_too_large_is_not_called_stored() {
        let decision = |reason| Decision { reason, details: Vec::new() };
        let steps = vec![fetch(vec![decision(Reason::Stored), decision(Reason::NotStoredTooLarge)])];
        let said = plain(&Account { method: "GET".to_owned(), steps, ..Account::default() });
        assert!(said.contains("too large for its share") && !said.contains("was stored."), "{said}");
    }

    #[test]
    fn a_marker_says_since_which_fetch_and_for_how_long() {
        let mut step = fetch(vec![Decision { reason: Reason::HitForMiss, details: Vec::new() }]);
        step.marker = Some((15, 119.501));
        let said = plain(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() });
        assert!(said.contains("remembered since XID 15, for another 119 s"), "{said}");
    }

    fn decided(reason: Reason, details: &[(&str, &str)]) -> Decision {
        let details = details.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Decision { reason, details }
    }

    fn said_of(decision: Decision) -> String {
        let steps = vec![Step { xid: 7, decisions: vec![decision], ..Step::default() }];
        plain(&Account { method: "GET".to_owned(), steps, ..Account::default() })
    }

    #[test]
    fn cookies_are_named_with_the_lines_that_strip_them_in_the_dialect_of_the_vcl() {
        let said = said_of(decided(
            Reason::PassByVcl,
            &[("at", "<builtin>:1"), ("in", "vcl_recv>vcl_req_cookie"), ("dialect", "4"), ("cookies", "_ga; session")],
        ));
        assert!(said.contains("its cookies: _ga, session"), "{said}");
        assert!(said.contains("(_ga|session)=[^;]*") && said.contains("unset req.http.Cookie;"), "{said}");
        let line = vcl::builtin_of(Generation::V20).lines().position(|line| line.contains("req.http.Cookie")).unwrap();
        let place = format!("<builtin>:{}", line + 2);
        let old = [("at", place.as_str()), ("in", "vcl_recv"), ("dialect", "2.0"), ("cookies", "_ga")];
        let said = said_of(decided(Reason::PassByVcl, &old));
        assert!(said.contains("remove req.http.Cookie;"), "{said}");
        let other = [("at", "<builtin>:20"), ("in", "vcl_recv>vcl_req_method"), ("dialect", "4"), ("cookies", "_ga")];
        let said = said_of(decided(Reason::PassByVcl, &other));
        assert!(!said.contains("_ga"), "the method made it a pass: {said}");
    }

    #[test]
    fn place_that_is_no_file_is_not_read() {
        for place in ["/dev/zero:1", "/proc/self:1", "/nonexistent:1", "<builtin>:0", "relative.vcl:1", "/etc/passwd"] {
            assert!(line_of(place, Generation::V4).is_none(), "{place}");
        }
    }

    #[test]
    fn ways_out_of_the_cache_and_bans_are_told() {
        let gone = [("gone", "banned"), ("seconds", "5.000"), ("ban-time", "1700000000.250"), ("ban", "req.url ~ /x")];
        let said = said_of(decided(Reason::MissAbsent, &gone));
        assert!(said.contains("The last copy was removed by a ban, 5.000 s before."), "{said}");
        assert!(said.contains("the ban: req.url ~ /x, added 2023-11-14T22:13:20Z"), "{said}");
        let said = said_of(decided(Reason::MissAbsent, &[("gone", "never"), ("seconds", "60.000")]));
        assert!(said.contains("It was not in the cache in the last 60.000 s either"), "{said}");
        let said = said_of(decided(Reason::RequestTooLarge, &[("limit", "http_req_hdr_len"), ("max", "8192")]));
        assert!(said.contains("it broke the parameter http_req_hdr_len, which is 8192"), "{said}");
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
