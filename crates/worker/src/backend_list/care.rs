//! Extra lines of `backend.list -p` for backends with attributes of Copal's own: state of the
//! circuit breaker, progress of the slow start, and addresses of the host name.

use backend::BreakerFacts;
use backend::listing::CareFacts;
use cli_proto::json;
use std::fmt::Write;

/// Rows below the item's own.
pub(super) fn text(facts: &CareFacts, rows: &mut Vec<Vec<String>>) {
    if let Some(breaker) = &facts.breaker {
        let until = match breaker.open_for {
            None => "trusted".to_owned(),
            Some(left) if left.is_zero() => "aside, the next fetch tries".to_owned(),
            Some(left) => format!("aside for {:.3}s", left.as_secs_f64()),
        };
        rows.push(vec![format!("  Fetches: {until}, {}", failures(breaker))]);
    }
    if let Some(warmth) = facts.warmth {
        rows.push(vec![format!("  Slow start: {:.0}% of its load", warmth * 100.0)]);
    }
    if let Some((host, addresses)) = &facts.follows {
        let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        rows.push(vec![format!("  Addresses of {host}: {}", list.join(" "))]);
    }
    rows.push(vec![String::new()]);
}

fn failures(breaker: &BreakerFacts) -> String {
    let of = |limit: u32, unit: &str| if limit == 0 { String::new() } else { format!(" (limit {limit}{unit})") };
    let (failed, all) = breaker.share;
    format!(
        "{} failures in a row{}, {failed} of {all} failed of late{}",
        breaker.in_row,
        of(breaker.fail_limit, ""),
        of(breaker.fail_ratio, "%")
    )
}

/// The element `care`.
pub(super) fn json(facts: &CareFacts, out: &mut String) {
    let mut fields = Vec::new();
    if let Some(breaker) = &facts.breaker {
        let aside = breaker.open_for.map_or("null".to_owned(), |left| format!("{:.3}", left.as_secs_f64()));
        fields.push(format!("\"aside\": {aside}"));
        fields.push(format!("\"failures_in_row\": {}", breaker.in_row));
        fields.push(format!("\"failures\": [{}, {}]", breaker.share.0, breaker.share.1));
    }
    if let Some(warmth) = facts.warmth {
        fields.push(format!("\"warmth\": {warmth:.6}"));
    }
    if let Some((host, addresses)) = &facts.follows {
        let list: Vec<String> = addresses.iter().map(|address| json::string(&address.to_string())).collect();
        fields.push(format!("\"follows\": {}", json::string(host)));
        fields.push(format!("\"addresses\": [{}]", list.join(", ")));
    }
    let _ = write!(out, "      \"care\": {{\n        {}\n      }},\n", fields.join(",\n        "));
}
