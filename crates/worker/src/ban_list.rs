//! `ban.list`: the facts of [`cache::ListedBan`] as text and as JSON.

use cache::ListedBan;
use cli_proto::json;
use std::fmt::Write;

/// The text to show: nothing for a completed ban.
fn shown(ban: &ListedBan) -> &str {
    if ban.is_completed { "" } else { &ban.specification }
}

/// The reply to `ban.list`.
pub(crate) fn text(bans: &[ListedBan]) -> String {
    let mut out = "Present bans:\n".to_owned();
    for ban in bans {
        let completed = if ban.is_completed { 'C' } else { '-' };
        let _ = write!(out, "{:10.6} {:5} {completed}", ban.time, ban.references);
        if let Some(addresses) = &ban.addresses {
            let request = if ban.tests_requests { 'R' } else { '-' };
            let object = if ban.tests_objects { 'O' } else { '-' };
            let _ = write!(out, "{request}{object} {:#x} ", addresses.ban);
        }
        let _ = writeln!(out, "  {}", shown(ban));
        for address in ban.addresses.iter().flat_map(|addresses| &addresses.objects) {
            let _ = writeln!(out, "  oc = {address:#x}");
        }
    }
    out
}

/// The elements of the reply to `ban.list -j`, without the list around them.
pub(crate) fn json(bans: &[ListedBan]) -> String {
    let mut elements = Vec::with_capacity(bans.len());
    for ban in bans {
        let mut out = String::new();
        let _ = write!(
            out,
            "  {{\n    \"time\": {:.6},\n    \"refs\": {},\n    \"completed\": {},\n    \"spec\": {}",
            ban.time,
            ban.references,
            ban.is_completed,
            json::string(shown(ban)),
        );
        if let Some(addresses) = &ban.addresses {
            let objects: Vec<String> = addresses.objects.iter().map(|address| format!("\"{address:#x}\"")).collect();
            let _ = write!(
                out,
                ",\n    \"req_tests\": {},\n    \"obj_tests\": {},\n    \"pointer\": \"{:#x}\",\n    \
                 \"objcores\": [\n      {}\n]",
                ban.tests_requests,
                ban.tests_objects,
                addresses.ban,
                objects.join(",\n      "),
            );
        }
        out.push_str("\n}");
        elements.push(out);
    }
    elements.join(",\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::BanAddresses;

    fn ban(time: f64, references: u64, specification: &str) -> ListedBan {
        ListedBan {
            time,
            references,
            is_completed: false,
            specification: specification.to_owned(),
            tests_requests: specification.contains("req."),
            tests_objects: specification.contains("obj."),
            addresses: None,
        }
    }

    #[test]
    fn ban_list_has_a_line_per_ban_and_omits_the_text_of_completed_ones() {
        let completed = ListedBan { is_completed: true, ..ban(1_700_000_000.0, 2, "obj.status == 1") };
        let bans = [ban(1_700_000_001.5, 1, "req.url == /0"), completed];
        let expected = "Present bans:\n1700000001.500000     1 -  req.url == /0\n1700000000.000000     2 C  \n";
        assert_eq!(text(&bans), expected);
        let json = json(&bans);
        assert!(
            json.starts_with("  {\n    \"time\": 1700000001.500000,\n    \"refs\": 1,\n    \"completed\": false,\n")
        );
        assert!(json.ends_with("    \"refs\": 2,\n    \"completed\": true,\n    \"spec\": \"\"\n}"), "{json}");
    }

    #[test]
    fn with_debug_lurker_the_list_shows_the_objects() {
        let addresses = Some(BanAddresses { ban: 0xabc, objects: vec![0xdef] });
        let bans = [ListedBan { addresses, ..ban(1.0, 0, "req.url == foo && obj.status == 200") }];
        let lines = text(&bans);
        assert_eq!(
            lines,
            "Present bans:\n  1.000000     0 -RO 0xabc   req.url == foo && obj.status == 200\n  oc = 0xdef\n"
        );
        let json = json(&bans);
        assert!(json.contains("\"req_tests\": true,\n    \"obj_tests\": true,\n    \"pointer\": \"0x"), "{json}");
        assert!(json.contains("\"objcores\": [\n      \"0xdef\"\n]"), "{json}");
    }
}
