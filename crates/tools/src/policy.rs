//! `copal policy`: hit ratios of each eviction policy and each cache size for a site's own log.
//!
//! The log is read once, line by line ([`access_log`]); each request goes through one small model
//! of a cache for each policy and size ([`panel`]). Only the hash of a request is stored; nothing
//! of the log is printed, except the names of files on the command line.

mod panel;

use crate::Streams;
use crate::access_log::{self, Format, Got, Line};
use crate::options::{self, Given};
use eviction::mix;
use eviction::replay::Request;
use panel::{Panel, Row};
use serde_json::json;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader};
use surface::eviction::POLICIES;
use surface::legible;
use surface::parameter::value::{format_bytes, parse_bytes};
use surface::program::program;
use surface::quantity::size;

/// The row of this tool.
const PART: &str = "policy";
/// Exit status if nothing could be replayed.
const NOTHING: i32 = 1;
/// Exit status for a wrong command line, and for files that cannot be read.
const USAGE_ERROR: i32 = 2;
/// Most sizes on the command line.
const SIZES_MAX: usize = 16;
/// The range of the sizes: models add up bytes, and must not overflow.
const SIZE_BYTES: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 50;
/// The range of `--urls`.
const URLS: std::ops::RangeInclusive<usize> = 1024..=1 << 26;
const URLS_DEFAULT: usize = 1 << 16;

#[derive(Debug)]
struct Options {
    sizes: Vec<u64>,
    format: Format,
    urls: usize,
    json: bool,
    files: Vec<OsString>,
}

fn read(given: Given) -> Result<Options, String> {
    let mut options = Options {
        sizes: Vec::new(),
        format: Format::Combined,
        urls: URLS_DEFAULT,
        json: given.has('J'),
        files: given.rest,
    };
    for (letter, text) in &given.options {
        let text = text.to_string_lossy();
        match letter {
            's' => {
                for text in text.split(',') {
                    let bytes = parse_bytes(text).map_err(|reason| format!("-s: size \"{text}\": {reason}"))?;
                    if bytes < *SIZE_BYTES.start() {
                        return Err(format!("-s: size \"{text}\": too small, did you forget to specify M or G?"));
                    }
                    if bytes > *SIZE_BYTES.end() {
                        return Err(format!("-s: size \"{text}\": too large"));
                    }
                    options.sizes.push(bytes);
                }
            }
            'f' => {
                options.format = Format::named(&text)
                    .ok_or_else(|| format!("--format: '{text}' is none of combined, common, vhost"))?;
            }
            'u' => {
                let count = text.parse().ok().filter(|count| URLS.contains(count));
                options.urls =
                    count.ok_or_else(|| format!("--urls: '{text}' is not from {} to {}", URLS.start(), URLS.end()))?;
            }
            _ => {}
        }
    }
    options.sizes.sort_unstable();
    options.sizes.dedup();
    if options.sizes.len() > SIZES_MAX {
        return Err(format!("-s: more than {SIZES_MAX} sizes"));
    }
    if options.files.is_empty() {
        return Err("no access log is named; - is the standard input".to_owned());
    }
    Ok(options)
}

/// Lines by their classification.
#[derive(Default)]
struct Lines {
    replayed: u64,
    /// Other methods and statuses.
    others: u64,
    bad: u64,
}

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let options = match options::parse(PART, args, streams) {
        Ok(given) => read(given),
        Err(status) => return status,
    };
    let options = match options {
        Ok(options) => options,
        Err(text) => return options::wrong(program(PART), &text, streams),
    };
    let mut panel = Panel::new(&options.sizes, options.urls);
    let mut lines = Lines::default();
    for file in &options.files {
        let read = if file == "-" {
            replay(&mut BufReader::new(&mut *streams.input), &options, &mut panel, &mut lines)
        } else {
            std::fs::File::open(file)
                .and_then(|file| replay(&mut BufReader::new(file), &options, &mut panel, &mut lines))
        };
        if let Err(error) = read {
            let _ = writeln!(streams.error, "copal policy: {}: {error}", file.to_string_lossy());
            return USAGE_ERROR;
        }
    }
    if lines.replayed == 0 && !options.json {
        // A table of zeros would look like a result.
        let why = match (lines.bad, lines.others) {
            (0, 0) => "there are no lines".to_owned(),
            (0, _) => "no line is a GET that was answered with 200".to_owned(),
            (bad, _) => format!("{bad} of {} lines are not in this format; --format names another", lines.all()),
        };
        let _ = writeln!(streams.error, "copal policy: nothing to replay: {why}");
        return NOTHING;
    }
    if lines.bad > 0 {
        let _ = writeln!(streams.error, "copal policy: {} of {} lines are not in this format", lines.bad, lines.all());
    }
    let written = if options.json { json_of(&panel, &lines) } else { text_of(&panel, &lines) };
    let _ = streams.output.write_all(written.as_bytes());
    if lines.replayed == 0 { NOTHING } else { 0 }
}

impl Lines {
    fn all(&self) -> u64 {
        self.replayed + self.others + self.bad
    }
}

fn replay(input: &mut dyn BufRead, options: &Options, panel: &mut Panel, lines: &mut Lines) -> std::io::Result<()> {
    access_log::each(input, options.format, |line| match line {
        Line::Got(got) => {
            lines.replayed += 1;
            panel.request(request(&got));
        }
        Line::Other => lines.others += 1,
        Line::Bad => lines.bad += 1,
    })
}

fn request(got: &Got<'_>) -> Request {
    let mut hasher = DefaultHasher::new();
    hasher.write(got.host);
    hasher.write_u8(b' ');
    hasher.write(got.url);
    Request { key: mix(hasher.finish()), bytes: got.bytes }
}

fn text_of(panel: &Panel, lines: &Lines) -> String {
    use std::fmt::Write as _;
    let seen = panel.seen();
    let mut text = String::new();
    let _ =
        writeln!(text, "requests     {} replayed, {} others, {} bad lines", lines.replayed, lines.others, lines.bad);
    let one_in = panel.one_in();
    let about = if one_in > 1 { "about " } else { "" };
    let _ = writeln!(
        text,
        "URLs         {about}{}, of which {:.1} % were asked for once",
        seen.urls,
        seen.once_share * 100.0
    );
    let _ = writeln!(text, "working set  {about}{}", size(seen.bytes));
    if one_in > 1 {
        let _ = writeln!(text, "sample       one URL in {one_in}; sizes marked ~ hold too few of them to be relied on");
    }
    let names: String = POLICIES.iter().map(|row| format!("{:>8}", row.name)).collect();
    let width = 8 * POLICIES.len();
    let _ = writeln!(text, "\n{:<12}{:>width$}   {:>width$}", "", "hits, % of requests", "hits, % of bytes");
    let _ = writeln!(text, "{:<12}{names}   {names}", "size");
    for Row { capacity_bytes, is_vague, ratios } in panel.rows() {
        let cell = |share: f64| format!("{:>8.1}", share * 100.0);
        let hits: String = ratios.iter().map(|ratio| cell(ratio.0)).collect();
        let bytes: String = ratios.iter().map(|ratio| cell(ratio.1)).collect();
        let mark = if is_vague { "~" } else { "" };
        let _ = writeln!(text, "{:<12}{hits}   {bytes}", format!("{mark}{}", size(capacity_bytes)));
    }
    text.push('\n');
    for row in &POLICIES {
        let _ = writeln!(text, "{:<8} {}", row.name, row.text);
    }
    text
}

fn json_of(panel: &Panel, lines: &Lines) -> String {
    let seen = panel.seen();
    let rows: Vec<_> = panel
        .rows()
        .into_iter()
        .map(|row| {
            let policies: serde_json::Map<String, serde_json::Value> = POLICIES
                .iter()
                .zip(row.ratios)
                .map(|(policy, (hits, bytes))| {
                    (policy.name.to_owned(), json!({ "hit_ratio": hits, "byte_hit_ratio": bytes }))
                })
                .collect();
            json!({ "bytes": row.capacity_bytes, "size": format_bytes(row.capacity_bytes), "vague": row.is_vague,
                "policies": policies })
        })
        .collect();
    let whole = json!({
        "requests": lines.replayed, "other_lines": lines.others, "bad_lines": lines.bad,
        "urls": seen.urls, "once_share": seen.once_share, "working_set_bytes": seen.bytes,
        "sampled_one_in": panel.one_in(), "sizes": rows,
    });
    format!("{}\n", legible::json(&whole.to_string()))
}

#[cfg(test)]
mod tests;
