//! The report: groups by size, and everything that splits objects by the gain of normalising it.

use super::sample::{Names, Sample, distinct, hash};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use surface::legible;
use surface::parameter::value::format_bytes;

/// Rows of each table.
const ROWS_MAX: usize = 10;
/// Titles of the groups.
const GROUPS: [(&str, &str); 3] = [("hosts", "Host"), ("paths", "First path element"), ("types", "Content type")];

/// A group of objects.
struct Group {
    name: String,
    requests: u64,
    hits: u64,
    objects: u64,
    bytes: u64,
}

/// Something that makes several objects of one.
struct Splitter {
    name: String,
    requests: u64,
    values: u64,
    /// Objects less, and hits more, if it were left out.
    objects_less: u64,
}

/// A cookie of requests that were passed.
struct Cookie {
    name: String,
    requests: u64,
    /// Passed requests that have it, and those that have no other one.
    passes: u64,
    passes_alone: u64,
}

/// Results of a sample.
pub(super) struct Report {
    requests: u64,
    hits: u64,
    passes: u64,
    objects: u64,
    bytes: u64,
    groups: [Vec<Group>; 3],
    arguments: Vec<Splitter>,
    /// Objects less if the arguments were sorted.
    sorted_less: u64,
    cookies: Vec<Cookie>,
    fields: Vec<Splitter>,
}

impl Report {
    pub fn of(sample: &Sample) -> Report {
        let cached = || sample.all.iter().filter(|request| !request.is_pass);
        let mut sizes: HashMap<u64, u64> = HashMap::new();
        for request in cached() {
            let bytes = sizes.entry(request.key(None)).or_default();
            *bytes = request.bytes.max(*bytes);
        }
        let count = |is: fn(&super::sample::Request) -> bool| sample.all.iter().filter(|one| is(one)).count() as u64;
        let sorted = distinct(cached().map(super::sample::Request::sorted_key));
        Report {
            requests: sample.all.len() as u64,
            hits: count(|request| request.is_hit),
            passes: count(|request| request.is_pass),
            objects: sizes.len() as u64,
            bytes: sizes.values().sum(),
            groups: std::array::from_fn(|place| groups(sample, place, &sizes)),
            arguments: arguments(sample, sizes.len()),
            sorted_less: (sizes.len() - sorted) as u64,
            cookies: cookies(sample),
            fields: fields(sample),
        }
    }

    /// Hits that an object less means, as a share of the requests in per cent.
    fn share(&self, objects_less: u64) -> f64 {
        100.0 * objects_less as f64 / self.requests.max(1) as f64
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{} requests, {} hits, {} passes; {} URLs with {} could be cached",
            self.requests,
            self.hits,
            self.passes,
            self.objects,
            format_bytes(self.bytes)
        )?;
        for ((_, title), groups) in GROUPS.iter().zip(&self.groups) {
            writeln!(out, "\n{:<32} {:>9} {:>6} {:>9} {:>9}", title, "requests", "hits", "URLs", "bytes")?;
            for group in groups {
                let hits = 100.0 * group.hits as f64 / group.requests.max(1) as f64;
                let bytes = format_bytes(group.bytes);
                let Group { name, requests, objects, .. } = group;
                writeln!(out, "{name:<32} {requests:>9} {hits:>5.1}% {objects:>9} {bytes:>9}")?;
            }
        }
        self.splitters("Query argument", &self.arguments, out)?;
        if self.sorted_less > 0 {
            let (less, share) = (self.sorted_less, self.share(self.sorted_less));
            writeln!(out, "sorting the arguments (std.querysort) gives -{less} objects, +{share:.1}% hits")?;
        }
        self.splitters("Vary field", &self.fields, out)?;
        if !self.cookies.is_empty() {
            writeln!(out, "\n{:<32} {:>9} {:>9} {:>9}", "Cookie", "requests", "passes", "alone")?;
            for Cookie { name, requests, passes, passes_alone } in &self.cookies {
                writeln!(out, "{name:<32} {requests:>9} {passes:>9} {passes_alone:>9}")?;
            }
            writeln!(out, "alone: passed requests with no other cookie, which could be looked up without it")?;
        }
        Ok(())
    }

    fn splitters(&self, title: &str, all: &[Splitter], out: &mut dyn Write) -> io::Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{title:<32} {:>9} {:>9}  leaving it out gives", "requests", "values")?;
        for Splitter { name, requests, values, objects_less } in all {
            let share = self.share(*objects_less);
            writeln!(out, "{name:<32} {requests:>9} {values:>9}  -{objects_less} objects, +{share:.1}% hits")?;
        }
        Ok(())
    }

    pub fn object(&self, out: &mut dyn Write) -> io::Result<()> {
        let splitters = |all: &[Splitter]| -> Vec<Value> {
            let row = |one: &Splitter| {
                json!({
                    "name": one.name, "requests": one.requests, "values": one.values,
                    "objects_less": one.objects_less, "hits_more_percent": self.share(one.objects_less),
                })
            };
            all.iter().map(row).collect()
        };
        let mut object = json!({
            "requests": self.requests, "hits": self.hits, "passes": self.passes,
            "objects": self.objects, "bytes": self.bytes,
            "arguments": splitters(&self.arguments),
            "sorted_arguments": { "objects_less": self.sorted_less, "hits_more_percent": self.share(self.sorted_less) },
            "vary": splitters(&self.fields),
            "cookies": self.cookies.iter().map(|one| json!({
                "name": one.name, "requests": one.requests, "passes": one.passes, "passes_alone": one.passes_alone,
            })).collect::<Vec<_>>(),
        });
        for ((key, _), groups) in GROUPS.iter().zip(&self.groups) {
            let row = |one: &Group| {
                json!({
                    "name": one.name, "requests": one.requests, "hits": one.hits,
                    "objects": one.objects, "bytes": one.bytes,
                })
            };
            object[*key] = groups.iter().map(row).collect();
        }
        writeln!(out, "{}", legible::json(&object.to_string()))
    }
}

fn shown(names: &Names, number: Option<u32>) -> String {
    match number.map(|number| names.name(number)) {
        None => "(others)".to_owned(),
        Some(b"") => "-".to_owned(),
        Some(name) => legible::line(name).into_owned(),
    }
}

fn groups(sample: &Sample, place: usize, sizes: &HashMap<u64, u64>) -> Vec<Group> {
    let mut all: HashMap<Option<u32>, (u64, u64, HashSet<u64>)> = HashMap::new();
    for request in &sample.all {
        let (requests, hits, keys) = all.entry(request.groups[place]).or_default();
        *requests += 1;
        *hits += u64::from(request.is_hit);
        if !request.is_pass {
            keys.insert(request.key(None));
        }
    }
    let made = all.into_iter().map(|(number, (requests, hits, keys))| Group {
        name: shown(&sample.groups[place], number),
        requests,
        hits,
        objects: keys.len() as u64,
        bytes: keys.iter().filter_map(|key| sizes.get(key)).sum(),
    });
    let mut groups: Vec<Group> = made.collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(b.requests.cmp(&a.requests)).then(a.name.cmp(&b.name)));
    groups.truncate(ROWS_MAX);
    groups
}

fn arguments(sample: &Sample, objects: usize) -> Vec<Splitter> {
    let mut found: HashMap<u32, (u64, HashSet<u64>)> = HashMap::new();
    let cached = || sample.all.iter().filter(|request| !request.is_pass);
    for (name, value) in cached().flat_map(|request| &request.arguments) {
        if let Some(name) = name {
            let (requests, values) = found.entry(*name).or_default();
            *requests += 1;
            values.insert(*value);
        }
    }
    let made = found.into_iter().map(|(name, (requests, values))| Splitter {
        name: shown(&sample.arguments, Some(name)),
        requests,
        values: values.len() as u64,
        objects_less: (objects - distinct(cached().map(|request| request.key(Some(name))))) as u64,
    });
    ranked(made.collect())
}

fn fields(sample: &Sample) -> Vec<Splitter> {
    /// Requests that a field occurs in, and hashes of what it had and of what it splits.
    #[derive(Default)]
    struct Field {
        requests: u64,
        values: HashSet<u64>,
        variants: HashSet<u64>,
        keys: HashSet<u64>,
    }
    let mut found: HashMap<u32, Field> = HashMap::new();
    for request in sample.all.iter().filter(|request| !request.is_pass) {
        for (name, value) in &request.vary {
            let field = found.entry(*name).or_default();
            let key = request.key(None);
            field.requests += 1;
            field.values.insert(*value);
            field.variants.insert(hash((key, value)));
            field.keys.insert(key);
        }
    }
    let made = found.into_iter().map(|(name, field)| Splitter {
        name: shown(&sample.fields, Some(name)),
        requests: field.requests,
        values: field.values.len() as u64,
        objects_less: (field.variants.len() - field.keys.len()) as u64,
    });
    ranked(made.collect())
}

fn ranked(mut all: Vec<Splitter>) -> Vec<Splitter> {
    let order = |a: &Splitter, b: &Splitter| {
        b.objects_less.cmp(&a.objects_less).then(b.requests.cmp(&a.requests)).then(a.name.cmp(&b.name))
    };
    all.sort_by(order);
    all.truncate(ROWS_MAX);
    all
}

fn cookies(sample: &Sample) -> Vec<Cookie> {
    let mut found: HashMap<u32, [u64; 3]> = HashMap::new();
    for request in &sample.all {
        let is_alone = request.cookies.len() == 1;
        for name in &request.cookies {
            let [requests, passes, alone] = found.entry(*name).or_default();
            *requests += 1;
            *passes += u64::from(request.is_pass);
            *alone += u64::from(request.is_pass && is_alone);
        }
    }
    let made = found.into_iter().map(|(name, [requests, passes, passes_alone])| Cookie {
        name: shown(&sample.cookies, Some(name)),
        requests,
        passes,
        passes_alone,
    });
    let mut cookies: Vec<Cookie> = made.collect();
    cookies.sort_by(|a, b| b.passes.cmp(&a.passes).then(b.requests.cmp(&a.requests)).then(a.name.cmp(&b.name)));
    cookies.truncate(ROWS_MAX);
    cookies
}
