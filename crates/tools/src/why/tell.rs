//! An explanation as text; as JSON: `why/object.rs`.

use super::account::{Account, Decision, Step};
use super::causes::Causes;
use super::cookies;
use super::handling::{handling, is_made_here};
use super::lifetime::{aged, lifetime};
use super::near_miss::Difference;
use super::page::{Page, Shade, shaded};
use super::source::{first_of_recv, generation, is_by_cookie, line_of, piece};
use crate::clock;
use shm::read::transaction::Reason as Begun;
use std::fmt::Write as _;
use surface::reason::{Handling, Layer, NEVER, REMOVAL_REASONS, Reason};
use surface::vcl::Generation;

/// The message if reasons are expected but missing.
const NO_REASONS: &str =
    "No reasons were recorded: parameter vsl_reasons is off, vsl_mask hides Witness, or the log is Varnish's.";

/// Headers of a response that say nothing about caching by themselves.
const NOT_ABOUT_CACHING: &[&str] = &["date:", "age:"];

/// The explanation in plain words, on several lines. Advice that `causes` has is not repeated.
pub(super) fn plain(account: &Account, causes: &mut Causes) -> Page {
    let mut page = Page::default();
    let url = if account.url.is_empty() { &account.received_url } else { &account.url };
    tell_verdict(account, url, &mut page);
    if let Some(xid) = account.page {
        page.say(2, &format!("a fragment of the page with XID {xid}"));
    }
    tell_way(account, &mut page);
    if account.received_url != *url {
        page.say(2, &format!("asked for as {}", account.received_url));
    }
    if account.steps.iter().all(|step| step.hit.is_none() && step.decisions.is_empty()) {
        page.say(2, NO_REASONS);
    }
    if account.status.starts_with('5') {
        let status = &account.status;
        match is_made_here(account) {
            Some(false) => {
                page.say(2, &format!("The status {status} is the origin's own: the answer was not made here."))
            }
            Some(true) => {
                page.say(2, &format!("The answer with status {status} was made here: the origin did not send it."));
            }
            None => {}
        }
    }
    let mut teller = Teller { page, causes, xid: account.xids().next().unwrap_or(0) };
    account.steps.iter().for_each(|step| teller.step(step));
    tell_near(account, &mut teller.page);
    teller.page.gap();
    teller.page
}

/// The first line: the request, and the verdict.
fn tell_verdict(account: &Account, url: &str, page: &mut Page) {
    let mut line = String::new();
    if account.method.is_empty() {
        // Neither method nor URL was logged.
        line.push_str("A request that was refused at once");
    } else {
        let handling = handling(account);
        let verdict = shaded(shade(handling), handling.text());
        let _ = write!(line, "{} {}{url}: {verdict}", account.method, account.host);
    }
    if !account.status.is_empty() {
        let _ = write!(line, ", status {} {}", account.status, account.phrase);
    }
    if let Some(seconds) = account.seconds {
        let _ = write!(line, ", {:.1} ms", seconds * 1000.0);
    }
    let xid = account.xids().next().unwrap_or(0);
    page.say(0, &format!("{line}  (XID {xid})"));
}

fn shade(handling: Handling) -> Shade {
    match handling {
        Handling::Hit | Handling::HitGrace => Shade::Good,
        Handling::Error | Handling::HitStale => Shade::Bad,
        Handling::Miss | Handling::Pass | Handling::Pipe | Handling::Purge | Handling::Synth | Handling::Answer => {
            Shade::Plain
        }
    }
}

/// The scheme of the client's request, if there is more than one possibility.
fn tell_way(account: &Account, page: &mut Page) {
    if !account.scheme.is_empty() && account.page.is_none() {
        page.say(2, &format!("came over {}, {}", account.scheme, account.protocol));
    }
}

/// Lists the objects that the cache had under almost the same address.
fn tell_near(account: &Account, page: &mut Page) {
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
        page.say(2, &format!("near miss, by the log: {what} was in the cache (XID {})", stored.xid));
        page.say(4, &format!("next: {advice}"));
    }
}

/// Writes the steps of one request.
struct Teller<'a> {
    page: Page,
    causes: &'a mut Causes,
    /// The request, to refer to it later.
    xid: u64,
}

impl Teller<'_> {
    fn step(&mut self, step: &Step) {
        let indent = if step.is_fetch { 4 } else { 2 };
        if step.is_fetch {
            self.page.say(2, &fetch_line(step));
        } else if step.begun == Some(Begun::Restart) {
            self.page.say(2, &format!("after the restart (XID {}):", step.xid));
        }
        if let Some(seconds) = step.waited {
            self.page.say(indent, &format!("It waited {:.1} ms for another request's fetch.", seconds * 1000.0));
        }
        for (index, decision) in step.decisions.iter().enumerate() {
            let after = &step.decisions[index + 1..];
            match (decision.reason, fate(after)) {
                // A later decision explains why it was not stored after all.
                (Reason::Stored, Some(Layer::Store)) => {}
                (Reason::Stored, Some(Layer::Origin)) => {
                    self.page.say(indent, "The response was being stored, and was dropped when its body failed.");
                }
                _ => self.decision(decision, step, indent),
            }
        }
        if let Some(hit) = step.hit.filter(|_| step.decisions.is_empty()) {
            self.page.say(indent, Reason::Hit.row().sentence);
            let left = hit.ttl.floor();
            self.page.say(indent + 2, &format!("fetched by XID {}, fresh for another {left:.0} s", hit.xid));
        }
        self.lifetimes(step, indent);
        self.shared_cookies(step, indent);
        let is_told = |error: &str| step.decisions.iter().any(|decision| decision.detail("text") == Some(error));
        for (tag, error) in step.errors.iter().filter(|(_, error)| !is_told(error)) {
            self.page.say(indent, &format!("{}: {error}", tag.name()));
        }
    }

    fn lifetimes(&mut self, step: &Step, indent: usize) {
        let mut last = "";
        let aged = step.ttl.iter().find_map(|record| aged(record)).unwrap_or(0);
        for (index, record) in step.ttl.iter().enumerate() {
            let is_vcl = |record: &String| record.starts_with("VCL ");
            if is_vcl(record) && step.ttl[index + 1..].iter().any(is_vcl) {
                // VCL has changed its mind: only the last values count.
                continue;
            }
            // A record that changes nothing gets no line.
            let numbers = record.split_once(' ').map_or("", |(_, numbers)| numbers);
            let numbers = numbers.match_indices(' ').nth(2).map_or(numbers, |(at, _)| &numbers[..at]);
            if let Some(line) = lifetime(record, aged).filter(|_| numbers != last) {
                self.page.say(indent, &line);
            }
            last = numbers;
        }
        if step.is_fetch && !step.ttl.is_empty() {
            let is_other = |line: &String| {
                let line = line.to_ascii_lowercase();
                NOT_ABOUT_CACHING.iter().any(|name| line.starts_with(name))
            };
            if step.headers.iter().all(is_other) {
                self.page.say(indent + 2, "the origin said nothing about caching");
            } else {
                self.page.say(indent + 2, &format!("the origin said: {}", step.headers.join("; ")));
            }
        }
    }

    /// Cookies that the response sets; a warning if every client receives them.
    fn shared_cookies(&mut self, step: &Step, indent: usize) {
        if step.is_fetch && !step.set_cookies.is_empty() {
            self.page.say(indent + 2, &format!("the origin sets cookies: {}", step.set_cookies.join(", ")));
        }
        let shared = shared_cookies(step);
        if shared.is_empty() {
            return;
        }
        let how = if step.is_fetch { "It was stored with Set-Cookie" } else { "The copy has Set-Cookie" };
        let warning = shaded(Shade::Bad, "warning:");
        self.page.say(indent, &format!("{warning} {how} ({}): every client gets that cookie.", shared.join(", ")));
        self.advise(
            "shared cookies",
            indent + 2,
            "unset beresp.http.Set-Cookie in vcl_backend_response where the cookie is not needed, or have the origin \
             say Cache-Control: private=\"set-cookie\"; with parameter store_set_cookie off no such response is stored",
        );
    }

    fn decision(&mut self, decision: &Decision, step: &Step, indent: usize) {
        let row = decision.reason.row();
        match decision.detail("gone") {
            Some(NEVER) => {
                let seconds = decision.number("seconds").map_or("?".to_owned(), |seconds| format!("{seconds:.0}"));
                self.page.say(indent, &format!("Not in the cache (removal history reaches back {seconds} s)."));
            }
            _ => self.page.say(indent, row.sentence),
        }
        self.place(decision, indent);
        if let Some((xid, left)) = step.marker
            && matches!(decision.reason, Reason::HitForMiss | Reason::HitForPass)
        {
            let left = left.floor();
            self.page.say(indent + 2, &format!("remembered since XID {xid}, for another {left:.0} s"));
        }
        self.details(decision, indent + 2);
        let named = named_cookies(decision, step);
        if !named.is_empty() {
            self.page.say(indent + 2, &format!("its cookies: {}", named.join(", ")));
            self.strip(decision, &named, indent + 2);
        }
        if !row.advice.is_empty() {
            self.advise(&format!("{}{}", row.word, decision.detail("at").unwrap_or("")), indent + 2, row.advice);
        }
    }

    /// The line of VCL that decided.
    fn place(&mut self, decision: &Decision, indent: usize) {
        if let Some(place) = decision.detail("at") {
            let subs = decision.detail("in").map(|subs| format!(", in {}", subs.replace('>', " → ")));
            self.page.say(indent + 2, &format!("at {place}{}", subs.unwrap_or_default()));
            self.source(place, generation(decision), indent + 6);
        }
        if let Some(cause) = piece(decision) {
            self.page.say(indent + 2, &format!("because {cause}"));
        }
        if let Some(place) = decision.detail("ttl-at") {
            self.page.say(indent + 2, &format!("its TTL was set at {place}"));
            self.source(place, Generation::V4, indent + 6);
        }
    }

    fn source(&mut self, place: &str, generation: Generation, indent: usize) {
        if let Some(line) = line_of(place, generation) {
            self.page.quote(indent, &line);
        }
    }

    fn details(&mut self, decision: &Decision, indent: usize) {
        if let Some(line) = absence(decision) {
            self.page.say(indent, &line);
        }
        for (name, value) in &decision.details {
            let line = match (name.as_str(), decision.reason) {
                ("headers", _) => format!("it varies on {value}"),
                ("differs", _) => format!("this request differs in {value}"),
                ("seconds", Reason::MissExpired | Reason::HitGrace) => format!("it expired {value} s before"),
                ("bans" | "copies", _) => format!("copies removed: {value}"),
                ("limit", _) => {
                    let max = decision.detail("max").unwrap_or("?");
                    format!("it broke the parameter {value}, which is {max}")
                }
                ("marks", _) => format!("the mark: {value}"),
                ("text", _) => format!("it said: {value}"),
                _ => continue,
            };
            self.page.say(indent, &line);
        }
        if let Some(ban) = decision.detail("ban") {
            let added =
                decision.number("ban-time").and_then(moment).map_or(String::new(), |time| format!(", added {time}"));
            self.page.say(indent, &format!("the ban: {ban}{added}"));
        }
    }

    /// Lines of VCL that strip the trackers among the cookies, and their place; the other cookies
    /// are left to the operator.
    fn strip(&mut self, decision: &Decision, named: &[&str], indent: usize) {
        let others = cookies::others(named);
        if let Some(lines) = cookies::snippet(named, generation(decision)) {
            if let Some(first) = self.causes.printed_for(&lines, self.xid) {
                self.page.say(indent, &format!("next: strip the trackers as for XID {first} above"));
            } else {
                let place = first_of_recv(decision)
                    .map_or("the first sub vcl_recv of your VCL".to_owned(), |place| format!("{place}, sub vcl_recv"));
                let products = cookies::products(named).join(", ");
                self.page.say(indent, &format!("next: strip the trackers ({products}); this goes before {place}:"));
                lines.lines().for_each(|line| self.page.quote(indent + 2, line));
            }
            if !others.is_empty() {
                let left = others.join(", ");
                self.page.say(indent, &format!("it leaves {left}: a request with one of these is treated as before"));
            }
        }
        if !others.is_empty() {
            self.advise(
                "other cookies",
                indent,
                "a cookie that is not known as a tracker may be a session. For URLs whose pages are the same with and \
                 without it: unset req.http.Cookie; in vcl_recv",
            );
        }
    }

    /// Prints advice, once for each cause.
    fn advise(&mut self, cause: &str, indent: usize, advice: &str) {
        if self.causes.printed_for(cause, self.xid).is_none() {
            self.page.say(indent, &format!("next: {advice}"));
        }
    }
}

/// The first line of a fetch.
fn fetch_line(step: &Step) -> String {
    let what = match step.begun {
        Some(Begun::Bgfetch) => "fetch in the background",
        Some(Begun::Pass) => "fetch for this client alone",
        Some(Begun::Pipe) => "pipe",
        _ => "fetch",
    };
    let mut line = format!("{what} (XID {})", step.xid);
    let words: Vec<&str> = step.backend.split(' ').collect();
    if let [_, name, address, port, ..] = words[..] {
        let _ = write!(line, " from {name} ({address}:{port})");
    }
    if !step.status.is_empty() {
        let _ = write!(line, ": status {}", step.status);
    }
    if step.is_revalidated {
        line.push_str(", since the origin confirmed the stored copy (304)");
    }
    if let Some(seconds) = step.seconds {
        let _ = write!(line, " after {:.1} ms", seconds * 1000.0);
    }
    line
}

/// The layer that revised an earlier decision to store a response; `None` if none did.
fn fate(after: &[Decision]) -> Option<Layer> {
    let is_of = |layer| after.iter().any(|decision| decision.reason.row().layer == layer);
    [Layer::Store, Layer::Origin].into_iter().find(|layer| is_of(*layer))
}

/// Names of the cookies in a response that was stored, or in a stored copy: every client receives
/// them.
pub(super) fn shared_cookies(step: &Step) -> Vec<&str> {
    let is_shared = match step.is_fetch {
        true => {
            let stored = step.decisions.iter().position(|made| made.reason == Reason::Stored);
            stored.is_some_and(|at| fate(&step.decisions[at + 1..]).is_none())
        }
        false => step.hit.is_some(),
    };
    // A directive with field names, as private="set-cookie", keeps the cookie out of the copy.
    let is_kept_out = step.headers.iter().any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("cache-control:") && line.contains("set-cookie")
    });
    let names = step.set_cookies.iter().map(String::as_str);
    if is_shared && !is_kept_out { names.collect() } else { Vec::new() }
}

/// The removal of the last object.
fn absence(decision: &Decision) -> Option<String> {
    let gone = decision.detail("gone").filter(|gone| *gone != NEVER)?;
    let (_, _, sentence) = REMOVAL_REASONS.iter().find(|(_, word, _)| *word == gone)?;
    Some(format!("{sentence}, {} s before.", decision.detail("seconds").unwrap_or("?")))
}

/// Seconds since 1970 as a date.
pub(super) fn moment(seconds: f64) -> Option<String> {
    clock::utc(seconds, "%Y-%m-%dT%H:%M:%SZ")
}

/// The cookies that made a request a pass, or kept its response from being stored; empty if another
/// condition did.
pub(super) fn named_cookies<'a>(decision: &'a Decision, step: &'a Step) -> Vec<&'a str> {
    if !is_by_cookie(decision) {
        return Vec::new();
    }
    let recorded = cookies::names(decision.all("cookies"));
    if recorded.is_empty() && step.is_fetch {
        return step.request_cookies.iter().map(String::as_str).collect();
    }
    recorded
}

/// Lines of VCL that remove the trackers among these cookies.
pub(super) fn strips(decision: &Decision, step: &Step) -> Option<String> {
    cookies::snippet(&named_cookies(decision, step), generation(decision))
}

#[cfg(test)]
mod tests {
    use super::super::page::COLUMNS;
    use super::*;

    /// The explanation with one blank for each gap, whatever the line breaks.
    fn plain(account: &Account) -> String {
        let text = super::plain(account, &mut Causes::default()).finish(false);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS || !line.trim().contains(' ')), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

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
    fn protocol_of_the_client_is_shown_if_the_log_has_it() {
        let account = |scheme: &str, page| Account {
            method: "GET".to_owned(),
            scheme: scheme.to_owned(),
            protocol: "HTTP/3.0".to_owned(),
            page,
            ..Account::default()
        };
        assert!(plain(&account("https", None)).contains(" came over https, HTTP/3.0 "));
        assert!(!plain(&account("", None)).contains("came over"));
        assert!(!plain(&account("https", Some(3))).contains("came over"), "a fragment came over nothing");
    }

    #[test]
    fn log_without_reasons_is_explained_as_far_as_possible() {
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
    fn marker_reports_its_fetch_and_remaining_time() {
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
        assert!(said.contains("(_ga)=[^;]*") && said.contains("unset req.http.Cookie;"), "{said}");
        assert!(said.contains("before the first sub vcl_recv of your VCL: sub vcl_recv {"), "{said}");
        assert!(said.contains("it leaves session: a request with one of these is treated as before next: a cookie that is not known as a tracker"), "{said}");
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
    fn removals_and_bans_are_reported() {
        let gone = [("gone", "banned"), ("seconds", "5.000"), ("ban-time", "1700000000.250"), ("ban", "req.url ~ /x")];
        let said = said_of(decided(Reason::MissAbsent, &gone));
        assert!(said.contains("The last copy was removed by a ban, 5.000 s before."), "{said}");
        assert!(said.contains("the ban: req.url ~ /x, added 2023-11-14T22:13:20Z"), "{said}");
        let said = said_of(decided(Reason::MissAbsent, &[("gone", "never"), ("seconds", "60.000")]));
        assert!(
            said.contains("Not in the cache (removal history reaches back 60 s).") && !said.contains("Nothing is"),
            "{said}"
        );
        let said = said_of(decided(Reason::RequestTooLarge, &[("limit", "http_req_hdr_len"), ("max", "8192")]));
        assert!(said.contains("it broke the parameter http_req_hdr_len, which is 8192"), "{said}");
    }

    fn passed(xid: u64, cookies: &str) -> Account {
        let decision = decided(Reason::PassByVcl, &[("in", "vcl_recv>vcl_req_cookie"), ("cookies", cookies)]);
        let steps = vec![Step { xid, decisions: vec![decision], ..Step::default() }];
        Account { method: "GET".to_owned(), steps, ..Account::default() }
    }

    #[test]
    fn advice_is_printed_once_for_each_cause() {
        let mut causes = Causes::default();
        let mut said = |account: &Account| super::plain(account, &mut causes).finish(false);
        let (first, second) = (said(&passed(7, "_ga; sid")), said(&passed(9, "_ga; sid")));
        assert!(first.contains("regsuball") && first.contains("may be a session"), "{first}");
        assert!(second.contains("next: strip the trackers as for XID 7 above"), "{second}");
        assert!(!second.contains("regsuball") && !second.contains("may be a session"), "{second}");
        let other = said(&passed(11, "_fbp"));
        assert!(other.contains("regsuball") && other.contains("(_fbp)"), "another cause: {other}");
    }

    #[test]
    fn lines_go_before_vcl_recv_in_the_file_of_the_decision() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.vcl");
        std::fs::write(&path, "vcl 4.1;\n\nsub vcl_recv {\n  if (req.http.Cookie) {\n    return (pass);\n").unwrap();
        let at = format!("{}:5", path.display());
        let said = said_of(decided(Reason::PassByVcl, &[("at", &at), ("in", "vcl_recv"), ("cookies", "_ga")]));
        assert!(said.contains(&format!("this goes before {}:3, sub vcl_recv:", path.display())), "{said}");
    }

    #[test]
    fn cookies_that_kept_a_response_from_being_stored_are_named() {
        let mut step = fetch(vec![decided(Reason::NotStoredRequestCookie, &[])]);
        step.request_cookies = vec!["_ga".to_owned(), "sid".to_owned()];
        let said = plain(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() });
        assert!(said.contains("its cookies: _ga, sid") && said.contains("(_ga)=[^;]*"), "{said}");
    }

    #[test]
    fn stored_response_with_set_cookie_is_warned_of() {
        let of = |decisions, headers: &[&str]| {
            let mut step = fetch(decisions);
            step.set_cookies = vec!["sid".to_owned()];
            step.headers = headers.iter().map(|line| (*line).to_owned()).collect();
            plain(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() })
        };
        let stored = || vec![decided(Reason::Stored, &[])];
        assert!(of(stored(), &[]).contains("warning: It was stored with Set-Cookie (sid): every client gets"));
        assert!(!of(stored(), &["Cache-Control: max-age=9, private=\"Set-Cookie\""]).contains("warning"));
        assert!(!of(vec![decided(Reason::NotStoredSetCookie, &[])], &[]).contains("warning"));
        assert!(!of(vec![stored().remove(0), decided(Reason::BodyBroken, &[])], &[]).contains("warning"));
        let step = Step { hit: Some(Default::default()), set_cookies: vec!["sid".to_owned()], ..Step::default() };
        let hit = plain(&Account { method: "GET".to_owned(), steps: vec![step], ..Account::default() });
        assert!(hit.contains("warning: The copy has Set-Cookie (sid)"), "{hit}");
    }

    #[test]
    fn verdict_is_colored_on_request() {
        let account = passed(7, "_ga");
        let said = super::plain(&account, &mut Causes::default()).finish(true);
        assert!(said.starts_with("GET : \x1b[1;33mpass\x1b[0m"), "{said:?}");
    }
}
