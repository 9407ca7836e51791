//! `cargo xtask memory --object`: distribution of the bytes of a small object.
//!
//! The store and the index are filled in this process, through the same calls as in the engine.
//! Accounted bytes are taken from them, resident ones from the kernel; the difference is the
//! overhead of both allocators.

use ::store::ObjectAttributes;
use cache::{Cache, Lookup, LookupRequest};
use message::Message;
use semantics::vary::Sameness;
use shm::counters::MainCounters;
use std::fmt::Write as _;

/// Objects that exist before the counting begins, so that one-time allocations are not counted.
const BEFORE: u64 = 20_000;
/// Bytes of a body.
const BODY: [u8; 100] = [0x5a; 100];
/// The time, in seconds since 1970.
const NOW: f64 = 1_795_000_000.0;

/// A head with five short fields.
fn head(number: u64) -> Message {
    let mut head = Message::new();
    head.set_protocol(b"HTTP/1.1");
    head.set_status(200);
    head.set_reason(b"OK");
    head.append(b"Content-Length", b"100");
    head.append(b"Content-Type", b"text/html; charset=utf-8");
    head.append(b"Cache-Control", b"max-age=3600");
    head.append(b"Date", &message::date::imf_fixdate(NOW as i64));
    head.append(b"ETag", format!("\"{:08x}\"", number as u32).as_bytes());
    head
}

/// Bytes of a head on the wire.
fn sent_bytes(head: &Message) -> usize {
    let first = head.protocol().len() + head.reason().len() + " 200 \r\n\r\n".len();
    first + head.headers().map(|header| header.line().len() + 2).sum::<usize>()
}

/// Resident bytes of this process, and bytes of its page tables.
fn resident() -> [f64; 2] {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmPTE:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
    })
}

/// Bytes in blocks of the arena, other accounted bytes, and the kernel's numbers.
fn held(cache: &Cache) -> [f64; 4] {
    let store = cache.store();
    let private = store.private_bytes() as f64;
    let [resident, tables] = resident();
    [store.held_bytes() as f64 - private, private, resident, tables]
}

/// Stores `objects` objects and returns the table.
pub fn table(objects: u64) -> Result<String, String> {
    let limit = (objects + BEFORE) * 1024;
    let cache = Cache::in_memory(limit, NOW).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let counters = MainCounters::new();
    let (mut encoded, mut before, request) = (Vec::new(), [0.0; 4], Message::new());
    for number in 0..BEFORE + objects {
        if number == BEFORE {
            before = held(&cache);
        }
        let mut key = [0; 32];
        for (place, part) in key.chunks_exact_mut(8).zip(1..) {
            // A digest has no order.
            let scattered = number.wrapping_add(part << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            place.copy_from_slice(&(scattered ^ scattered >> 29).to_le_bytes());
        }
        let lookup_request = LookupRequest {
            key: &key,
            now: NOW,
            request: &request,
            ttl_cap: None,
            grace_cap: None,
            always_miss: false,
            ignore_busy: false,
            ignore_vary: false,
            gzip_support: true,
            parts: false,
            sameness: Sameness::Bytes,
            conditions: None,
            vary_notice: 0,
            unused_seconds: None,
        };
        let Lookup::Miss { busy, .. } = cache.lookup(&lookup_request, &counters, &mut |_, _| {}) else {
            return Err("two objects under one key".to_owned());
        };
        encoded.clear();
        head(number).encode(&mut encoded);
        let attributes = ObjectAttributes {
            key,
            xid: number,
            origin: NOW,
            ttl: 3600.0,
            grace: 10.0,
            body_bytes: Some(BODY.len() as u64),
            ..ObjectAttributes::default()
        };
        let object = cache.store().create(&attributes, &encoded).map_err(|error| error.to_string())?;
        runtime.block_on(object.append(&BODY)).map_err(|error| error.to_string())?;
        object.finish();
        busy.publish(&object);
    }
    let after = held(&cache);
    let [arena, private, resident, tables] = std::array::from_fn(|at| (after[at] - before[at]) / objects as f64);
    let (sent, stored, body) = (sent_bytes(&head(0)) as f64, encoded.len() as f64, BODY.len() as f64);
    let mut text = format!("\n{objects} objects, five header fields each\n\n| what | bytes |\n| --- | --- |\n");
    for (what, bytes) in [
        ("head as it is sent", sent),
        ("head as it is stored", stored),
        ("body", body),
        ("record beside them: 80 bytes with the key, rounded up to eight", arena - stored - body),
        ("handle, slot and table", private),
        ("**counted against the limit**", arena + private),
        ("of that, beyond head and body as they are sent", arena + private - sent - body),
        ("**resident**", resident),
        ("page tables of the process", tables),
    ] {
        let _ = writeln!(text, "| {what} | {bytes:.1} |");
    }
    Ok(text)
}
