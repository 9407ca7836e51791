//! How the ban list is shown: `ban.list` as text and as JSON.

use super::Ban;
use crate::Cache;
use cli_proto::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is shown of a completed ban: nothing.
fn shown(ban: &Ban) -> &str {
    if ban.is_completed() { "" } else { ban.specification.text() }
}

/// Addresses of objects by the ban they refer to.
type Addresses = BTreeMap<u64, Vec<usize>>;

impl Cache {
    /// The bans, newest first; with debug bit `lurker` also the addresses of the objects that refer to each.
    fn listed(&self) -> (Vec<Arc<Ban>>, Option<Addresses>) {
        let inner = &*self.inner;
        let bans = inner.bans.list.read().after(0).rev().cloned().collect();
        let objects = inner.parameters.debug_lurker.load(Ordering::Relaxed).then(|| {
            let mut objects = Addresses::new();
            for shard in &inner.shards {
                let shard = shard.lock();
                for object in (0..shard.slots.len()).filter_map(|slot| shard.slots.get(slot)) {
                    objects.entry(object.ban()).or_default().push(Arc::as_ptr(object) as usize);
                }
            }
            objects
        });
        (bans, objects)
    }

    /// The reply to `ban.list`.
    #[must_use]
    pub fn ban_list(&self) -> String {
        let (bans, objects) = self.listed();
        let mut out = "Present bans:\n".to_owned();
        for ban in &bans {
            let references = ban.references.load(Ordering::Relaxed);
            let completed = if ban.is_completed() { 'C' } else { '-' };
            let _ = write!(out, "{:10.6} {references:5} {completed}", ban.time);
            if objects.is_some() {
                let request = if ban.specification.has_request_tests() { 'R' } else { '-' };
                let object = if ban.specification.has_object_tests() { 'O' } else { '-' };
                let _ = write!(out, "{request}{object} {:#x} ", Arc::as_ptr(ban) as usize);
            }
            let _ = writeln!(out, "  {}", shown(ban));
            for address in objects.as_ref().and_then(|objects| objects.get(&ban.sequence)).into_iter().flatten() {
                let _ = writeln!(out, "  oc = {address:#x}");
            }
        }
        out
    }

    /// The elements of the reply to `ban.list -j`, newest first, without the list around them.
    #[must_use]
    pub fn ban_list_json(&self) -> String {
        let (bans, objects) = self.listed();
        let mut elements = Vec::with_capacity(bans.len());
        for ban in &bans {
            let mut out = String::new();
            let _ = write!(
                out,
                "  {{\n    \"time\": {:.6},\n    \"refs\": {},\n    \"completed\": {},\n    \"spec\": {}",
                ban.time,
                ban.references.load(Ordering::Relaxed),
                ban.is_completed(),
                json::string(shown(ban)),
            );
            if let Some(objects) = &objects {
                let addresses = objects.get(&ban.sequence).map_or(&[][..], Vec::as_slice);
                let addresses: Vec<String> = addresses.iter().map(|address| format!("\"{address:#x}\"")).collect();
                let _ = write!(
                    out,
                    ",\n    \"req_tests\": {},\n    \"obj_tests\": {},\n    \"pointer\": \"{:#x}\",\n    \
                     \"objcores\": [\n      {}\n]",
                    ban.specification.has_request_tests(),
                    ban.specification.has_object_tests(),
                    Arc::as_ptr(ban) as usize,
                    addresses.join(",\n      "),
                );
            }
            out.push_str("\n}");
            elements.push(out);
        }
        elements.join(",\n")
    }
}
