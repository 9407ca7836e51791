//! An explanation as one JSON object on one line. Every member is always present; its type is in
//! [`MEMBERS`], against which the table in `docs/reference/json.md` is checked.

use serde_json::{Map, Value, json};
use surface::legible;
use surface::tag::Tag;

use super::account::{Account, Decision, Step};
use super::handling::{handling, is_made_here};
use super::source::piece;
use super::tell::{moment, named_cookies, shared_cookies, strips};

/// The type of a member. `null` means that the log doesn't contain the value, if it is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg(test)]
pub(super) enum Kind {
    Text,
    Number,
    Whole,
    Truth,
    Texts,
    Objects,
    Object,
}

/// A member: its path, its type, true if it may be `null`, its description.
#[cfg(test)]
pub(super) struct Member(pub &'static str, pub Kind, pub bool, pub &'static str);

/// Every member of the object, in the order of the document. `[]` represents each entry of a list.
#[cfg(test)]
pub(super) static MEMBERS: &[Member] = &[
    Member("method", Kind::Text, true, "the method as received; `null` if the request could not be read"),
    Member(
        "scheme",
        Kind::Text,
        true,
        "`http` or `https`: how the client came; `null` in the log of a daemon that speaks no TLS",
    ),
    Member("protocol", Kind::Text, true, "the protocol as received, such as `HTTP/2.0`"),
    Member("host", Kind::Text, true, "the host as VCL left it"),
    Member("url", Kind::Text, true, "the URL with its query, as VCL left it"),
    Member("received_host", Kind::Text, true, "the host as received"),
    Member("received_url", Kind::Text, true, "the URL as received"),
    Member("page", Kind::Whole, true, "the request for the page that this is a fragment of"),
    Member("status", Kind::Whole, true, "the status that was sent; `null` if none was sent"),
    Member("reason", Kind::Text, true, "the reason phrase that follows the status"),
    Member(
        "handling",
        Kind::Text,
        false,
        "`hit`, `hit-grace`, `hit-stale`, `miss`, `pass`, `pipe`, `purge`, `synth`, `error`, or `answer` if the log doesn't say",
    ),
    Member(
        "made_here",
        Kind::Truth,
        true,
        "true if Copal made the answer, false if it is the origin's; `null` if it came from the cache",
    ),
    Member("seconds", Kind::Number, true, "how long the request took, from start to end"),
    Member("hit", Kind::Object, true, "the stored copy that was served"),
    Member("hit.xid", Kind::Whole, false, "the fetch that brought the copy"),
    Member("hit.ttl", Kind::Number, false, "seconds of TTL left"),
    Member("hit.grace", Kind::Number, false, "seconds of grace"),
    Member("hit.keep", Kind::Number, false, "seconds of keep"),
    Member("near", Kind::Objects, false, "according to the log, what was in the cache under almost the same address"),
    Member(
        "near[].differs",
        Kind::Text,
        false,
        "what differs: `host`, `query`, or `order` (the same parameters in another order)",
    ),
    Member("near[].host", Kind::Text, false, ""),
    Member("near[].url", Kind::Text, false, ""),
    Member("near[].xid", Kind::Whole, false, "the request that shows this in the log"),
    Member("steps", Kind::Objects, false, "the request, its restarts and its fetches"),
    Member("steps[].xid", Kind::Whole, false, ""),
    Member("steps[].fetch", Kind::Truth, false, "true for a fetch, false for a client's request"),
    Member(
        "steps[].status",
        Kind::Whole,
        true,
        "status of the fetch's response: the origin's, or that of the response made in its place",
    ),
    Member("steps[].origin_status", Kind::Whole, true, "status of the origin's answer"),
    Member("steps[].revalidated", Kind::Truth, false, "true if the origin confirmed the stored copy (304)"),
    Member("steps[].backend", Kind::Object, true, "the backend that the fetch asked"),
    Member("steps[].backend.name", Kind::Text, false, ""),
    Member("steps[].backend.address", Kind::Text, true, ""),
    Member("steps[].backend.port", Kind::Text, true, ""),
    Member("steps[].waited", Kind::Number, true, "seconds that the request waited for another request's fetch"),
    Member("steps[].seconds", Kind::Number, true, "how long the step took, from start to end"),
    Member("steps[].marker", Kind::Object, true, "the hit-for-miss or hit-for-pass that lookup found"),
    Member("steps[].marker.xid", Kind::Whole, false, "the fetch that left the marker"),
    Member("steps[].marker.seconds", Kind::Number, false, "for how long the marker is valid"),
    Member("steps[].ttl", Kind::Objects, false, "how the lifetime was computed, step by step"),
    Member("steps[].ttl[].by", Kind::Text, false, "what set it: `RFC` (headers and defaults), `VCL`, `HFP`"),
    Member("steps[].ttl[].ttl", Kind::Number, false, "TTL in seconds"),
    Member("steps[].ttl[].grace", Kind::Number, false, "grace in seconds"),
    Member("steps[].ttl[].keep", Kind::Number, false, "keep in seconds"),
    Member("steps[].headers", Kind::Texts, false, "headers of the origin that affect the lifetime"),
    Member(
        "steps[].set_cookies",
        Kind::Texts,
        false,
        "names of the cookies that the origin sets; of a request, those of the stored copy",
    ),
    Member(
        "steps[].shared_cookies",
        Kind::Texts,
        false,
        "those of them that every client gets, since the response was stored with them",
    ),
    Member("steps[].errors", Kind::Objects, false, "log records that report a failure"),
    Member("steps[].errors[].tag", Kind::Text, false, ""),
    Member("steps[].errors[].text", Kind::Text, false, ""),
    Member("steps[].decisions", Kind::Objects, false, "the reasons, in the order in which they were recorded"),
    Member("steps[].decisions[].reason", Kind::Text, false, "the word in the record (`docs/migrate/records.md`)"),
    Member("steps[].decisions[].text", Kind::Text, false, "what the word means"),
    Member(
        "steps[].decisions[].because",
        Kind::Text,
        true,
        "why the built-in VCL decided so, if one of its subroutines did",
    ),
    Member("steps[].decisions[].next", Kind::Text, true, "what to look at next"),
    Member("steps[].decisions[].at", Kind::Text, true, "file and line of the VCL that decided"),
    Member(
        "steps[].decisions[].in",
        Kind::Texts,
        false,
        "the subroutines that were running, beginning with the method",
    ),
    Member("steps[].decisions[].ttl_at", Kind::Text, true, "file and line that set the TTL"),
    Member(
        "steps[].decisions[].seconds",
        Kind::Number,
        true,
        "depends on the reason: a lifetime, how long past its end the copy was, or how long ago the copy left",
    ),
    Member(
        "steps[].decisions[].gone",
        Kind::Text,
        true,
        "how the last copy left: `purged`, `banned`, `cutoff`, `expired`, `evicted`, `dropped`, `invalidated`, or `never` if there was none",
    ),
    Member("steps[].decisions[].ban", Kind::Text, true, "the ban as `ban.list` shows it, cut to 200 bytes"),
    Member("steps[].decisions[].ban_time", Kind::Text, true, "when the ban was added, RFC 3339"),
    Member("steps[].decisions[].bans", Kind::Whole, true, "how many copies bans removed"),
    Member("steps[].decisions[].limit", Kind::Text, true, "the parameter whose limit the request broke"),
    Member("steps[].decisions[].max", Kind::Whole, true, "the value of that parameter"),
    Member("steps[].decisions[].vary", Kind::Texts, false, "headers that the stored variants vary on"),
    Member(
        "steps[].decisions[].differs",
        Kind::Texts,
        false,
        "headers in which this request differs from a stored variant",
    ),
    Member(
        "steps[].decisions[].cookies",
        Kind::Texts,
        false,
        "names of the cookies that made the request a pass, or kept the response from being stored",
    ),
    Member(
        "steps[].decisions[].strip",
        Kind::Text,
        true,
        "lines of VCL that strip the trackers among these cookies, in the dialect of your VCL",
    ),
    Member("steps[].decisions[].said", Kind::Text, true, "the text that was recorded with a failure"),
];

/// The line, without its newline.
pub(crate) fn line(account: &Account) -> String {
    let text = value(account).to_string();
    legible::json(&text).into_owned()
}

fn value(account: &Account) -> Value {
    let near = account.near.iter().map(|(difference, stored)| {
        json!({ "differs": difference.word(), "host": stored.host, "url": stored.url, "xid": stored.xid })
    });
    let hit = account.hit().map(|hit| json!({ "xid": hit.xid, "ttl": hit.ttl, "grace": hit.grace, "keep": hit.keep }));
    json!({
        "method": text(&account.method),
        "scheme": text(&account.scheme),
        "protocol": text(&account.protocol),
        "host": text(&account.host),
        "url": text(&account.url),
        "received_host": text(&account.received_host),
        "received_url": text(&account.received_url),
        "page": account.page,
        "status": whole(&account.status),
        "reason": text(&account.phrase),
        "handling": handling(account).word(),
        "made_here": is_made_here(account),
        "seconds": account.seconds,
        "hit": hit,
        "near": Value::from_iter(near),
        "steps": Value::from_iter(account.steps.iter().map(step)),
    })
}

fn step(step: &Step) -> Value {
    let words: Vec<&str> = step.backend.split(' ').collect();
    let backend = words.get(1).map(|name| json!({ "name": name, "address": words.get(2), "port": words.get(3) }));
    let marker = step.marker.map(|(xid, seconds)| json!({ "xid": xid, "seconds": seconds }));
    let errors = step.errors.iter().map(|(tag, text): &(Tag, String)| json!({ "tag": tag.name(), "text": text }));
    json!({
        "xid": step.xid,
        "fetch": step.is_fetch,
        "status": whole(&step.status),
        "origin_status": step.origin_status.as_deref().map_or(Value::Null, whole),
        "revalidated": step.is_revalidated,
        "backend": backend,
        "waited": step.waited,
        "seconds": step.seconds,
        "marker": marker,
        "ttl": Value::from_iter(step.ttl.iter().filter_map(|record| lifetime(record))),
        "headers": step.headers,
        "set_cookies": step.set_cookies,
        "shared_cookies": shared_cookies(step),
        "errors": Value::from_iter(errors),
        "decisions": Value::from_iter(step.decisions.iter().map(|made| decision(made, step))),
    })
}

fn decision(made: &Decision, step: &Step) -> Value {
    let row = made.reason.row();
    let subs: Vec<&str> = made.detail("in").map_or_else(Vec::new, |subs| subs.split('>').collect());
    let members = [
        ("reason", json!(row.word)),
        ("text", json!(row.sentence)),
        ("because", json!(piece(made))),
        ("next", text(row.advice)),
        ("at", json!(made.detail("at"))),
        ("in", json!(subs)),
        ("ttl_at", json!(made.detail("ttl-at"))),
        ("seconds", json!(made.number("seconds"))),
        ("gone", json!(made.detail("gone"))),
        ("ban", json!(made.detail("ban"))),
        ("ban_time", json!(made.number("ban-time").and_then(moment))),
        ("bans", made.detail("bans").map_or(Value::Null, whole)),
        ("limit", json!(made.detail("limit"))),
        ("max", made.detail("max").map_or(Value::Null, whole)),
        ("vary", json!(made.list("headers"))),
        ("differs", json!(made.list("differs"))),
        ("cookies", json!(named_cookies(made, step))),
        ("strip", json!(strips(made, step))),
        ("said", json!(made.detail("text"))),
    ];
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// `RFC <ttl> <grace> <keep> …`; `None` if the record is damaged.
fn lifetime(record: &str) -> Option<Value> {
    let mut words = record.split(' ');
    let by = words.next()?;
    let mut number = || words.next()?.parse().ok().filter(|number: &f64| number.is_finite());
    Some(json!({ "by": by, "ttl": number()?, "grace": number()?, "keep": number()? }))
}

fn text(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { Value::from(text) }
}

fn whole(text: &str) -> Value {
    text.parse::<u64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::super::account::Hit;
    use super::super::near_miss::{Difference, Stored};
    use super::*;
    use surface::reason::{DETAILS, HANDLINGS, REASONS, REMOVAL_REASONS};

    impl Kind {
        fn word(self) -> &'static str {
            match self {
                Kind::Text => "text",
                Kind::Number => "number",
                Kind::Whole => "whole number",
                Kind::Truth => "true or false",
                Kind::Texts => "list of texts",
                Kind::Objects => "list of objects",
                Kind::Object => "object",
            }
        }

        fn is(self, value: &Value) -> bool {
            match self {
                Kind::Text => value.is_string(),
                Kind::Number => value.is_number(),
                Kind::Whole => value.is_u64(),
                Kind::Truth => value.is_boolean(),
                Kind::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
                Kind::Objects => value.as_array().is_some_and(|list| list.iter().all(Value::is_object)),
                Kind::Object => value.is_object(),
            }
        }
    }

    /// Checks every member of an object against the table, and that no member of the table is
    /// missing.
    pub(super) fn check(path: &str, value: &Value) {
        let object = value.as_object().unwrap_or_else(|| panic!("{path} is no object"));
        let is_direct =
            |member: &&Member| member.0.strip_prefix(path).is_some_and(|name| !name.is_empty() && !name.contains('.'));
        let rows: Vec<&Member> = MEMBERS.iter().filter(is_direct).collect();
        for Member(name, kind, optional, _) in &rows {
            let value = object.get(&name[path.len()..]).unwrap_or_else(|| panic!("{name} is missing"));
            assert!(kind.is(value) || *optional && value.is_null(), "{name} is {value}, not a {}", kind.word());
            match (kind, value) {
                (Kind::Objects, Value::Array(list)) => {
                    list.iter().for_each(|entry| check(&format!("{name}[]."), entry))
                }
                (Kind::Object, value @ Value::Object(_)) => check(&format!("{name}."), value),
                _ => {}
            }
        }
        assert_eq!(object.len(), rows.len(), "{path}: {:?}", object.keys());
    }

    fn full(reason: surface::reason::Reason) -> Account {
        let values = DETAILS.iter().map(|name| {
            let value = match *name {
                "at" | "ttl-at" => "/etc/a.vcl:1",
                "in" => "vcl_recv>vcl_req_cookie",
                "dialect" => "4",
                "cookies" => "a; b",
                "headers" | "differs" => "A, B",
                _ => "7",
            };
            ((*name).to_owned(), value.to_owned())
        });
        let step = Step {
            xid: 7,
            is_fetch: true,
            decisions: vec![Decision { reason, details: values.collect() }],
            ttl: vec!["RFC 120 10 0 1 2 3 4 5 cacheable".to_owned(), "damaged".to_owned()],
            errors: vec![(Tag::FetchError, "no".to_owned())],
            status: "200".to_owned(),
            origin_status: Some("304".to_owned()),
            marker: Some((5, 1.5)),
            backend: "24 boot.b 127.0.0.1 80 connect".to_owned(),
            waited: Some(1.0),
            seconds: Some(2.0),
            ..Step::default()
        };
        let stored = Stored { host: "b".to_owned(), url: "/x".to_owned(), xid: 9, ..Stored::default() };
        Account {
            method: "GET".to_owned(),
            status: "200".to_owned(),
            near: vec![(Difference::Host, stored)],
            steps: vec![step, Step { hit: Some(Hit::default()), ..Step::default() }],
            ..Account::default()
        }
    }

    #[test]
    fn every_member_is_there_and_of_its_type() {
        check("", &value(&Account::default()));
        for row in REASONS {
            let parsed: Value = serde_json::from_str(&line(&full(row.reason))).unwrap();
            check("", &parsed);
        }
        let said = |name: &str, word: &str| {
            let row = MEMBERS.iter().find(|member| member.0 == name).unwrap();
            assert!(row.3.contains(&format!("`{word}`")), "{name}: {word}");
        };
        HANDLINGS.iter().for_each(|(_, word, _)| said("handling", word));
        REMOVAL_REASONS.iter().for_each(|(_, word, _)| said("steps[].decisions[].gone", word));
    }

    #[test]
    fn members_are_documented_with_their_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
        let page = std::fs::read_to_string(path).unwrap();
        let row = |Member(name, kind, optional, text): &Member| {
            let absent = if *optional { " or `null`" } else { "" };
            format!("| `{name}` | {}{absent} | {text} |\n", kind.word())
        };
        let table: String = MEMBERS.iter().map(row).collect();
        if std::env::var_os("REFERENCE_UPDATE").is_some() && !page.contains(&table) {
            let begin = page.find("| `method` |").unwrap();
            let end = page[begin..].find("\n\n").map_or(page.len(), |at| begin + at + 1);
            std::fs::write(path, format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
            return;
        }
        assert!(page.contains(&table), "docs/reference/json.md is stale, run REFERENCE_UPDATE=1 cargo test -p tools");
    }
}
