//! `acme.list` and `acme.renew`.

use super::Call;
use crate::acme::table::Item;
use crate::clock::now;
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use semantics::date::rfc3339;

const NOT_CONFIGURED: &str = "ACME has not been configured";

impl Call<'_> {
    pub(super) fn acme_list(self) -> Response {
        let Some(acme) = &self.manager.acme else { return Response::new(status::CANNOT, NOT_CONFIGURED) };
        let (items, now) = (acme.items.borrow(), now());
        if self.json {
            let mut reply = self.json_reply(2);
            items.iter().for_each(|item| reply.push("\n  ", &row_json(item, acme.authority(), now)));
            return Response::ok(reply.finish());
        }
        Response::ok(items.iter().map(|item| row(item, now)).collect::<String>())
    }

    pub(super) fn acme_renew(self) -> Response {
        let Some(acme) = &self.manager.acme else { return Response::new(status::CANNOT, NOT_CONFIGURED) };
        let wanted = self.arguments.first().map(String::as_str);
        let mut items = acme.items.borrow_mut();
        let mut found = items
            .iter_mut()
            .filter(|item| wanted.is_none_or(|name| item.wanted.names.iter().any(|one| one.eq_ignore_ascii_case(name))))
            .peekable();
        if found.peek().is_none() {
            let text = format!("No certificate is ordered for \"{}\"", wanted.unwrap_or_default());
            return Response::new(status::CANNOT, text);
        }
        found.for_each(|item| item.is_asked = !item.is_ordering);
        acme.wake.notify_one();
        Response::ok("")
    }
}

/// Time of the next order, if it is known.
fn next(item: &Item, now: f64) -> String {
    rfc3339(item.due_at().max(now))
}

fn expires(item: &Item) -> Option<String> {
    item.held.as_ref().map(|held| rfc3339(held.facts.not_after as f64))
}

fn row(item: &Item, now: f64) -> String {
    let (names, state, next) = (item.names(), item.state(now), next(item, now));
    let (expires, error) = (expires(item), &item.record.last_error);
    let expires = expires.as_deref().unwrap_or("-");
    let error = if error.is_empty() { "-" } else { error };
    format!("{names}\t{state}\t{expires}\t{next}\t{error}\n")
}

fn row_json(item: &Item, authority: &str, now: f64) -> String {
    let names: Vec<String> = item.wanted.names.iter().map(|name| string(name)).collect();
    let listeners: Vec<String> = item.wanted.listeners.iter().map(|name| string(name)).collect();
    let optional = |text: Option<String>| text.map_or_else(|| "null".to_owned(), |text| string(&text));
    let error = Some(item.record.last_error.clone()).filter(|text| !text.is_empty());
    format!(
        "{{\n    \"names\": [{}],\n    \"frontends\": [{}],\n    \"authority\": {},\n    \"state\": {},\n    \"serial\": {},\n    \
         \"expires\": {},\n    \"next\": {},\n    \"failures\": {},\n    \"error\": {}\n  }}",
        names.join(", "),
        listeners.join(", "),
        string(authority),
        string(item.state(now)),
        optional(item.held.as_ref().map(|held| held.facts.serial.clone())),
        optional(expires(item)),
        string(&next(item, now)),
        item.record.failures,
        optional(error),
    )
}
