//! `copal policy`: what hit ratio each eviction policy and each size of cache would have had with a site's own log.
//!
//! The log is read once, line by line ([`access_log`]); each request goes through one small model of a cache for each
//! policy and size ([`panel`]). Nothing of the log is printed, but for the names of files on the command line.

mod access_log;
mod panel;

use crate::Streams;
use access_log::{Format, Line};
use panel::{Panel, Row};
use serde_json::json;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use surface::eviction::POLICIES;
use surface::legible;
use surface::parameter::value::{format_bytes, parse_bytes};

pub(crate) const HELP: &str = "\
Usage: copal policy [options] FILE… | -

What hit ratio each eviction policy would have had with this access log, by size of the cache. GET requests that were
answered with 200 are replayed as if all could be stored and nothing expired.

  -s SIZE,…         the sizes, such as 256m,1g; otherwise 16 MiB, 32 MiB and so on until everything fits
      --format WORD combined (also varnishncsa's), common, or vhost (the virtual host comes first)
      --urls N      how many URLs are kept track of, 65536 if not given. With more of them in the log, only one in 2, 4,
                    8, … URLs is replayed, by a hash, in caches as much smaller. Memory: at most 8 KiB for each, and as
                    a rule less than 1 KiB
      --json        one JSON object (docs/json.md)
  -h, --help        this text

Each object is counted with 600 bytes for its head and the index. Exit status: 0 done, 1 no line could be used,
2 the command line is wrong or a file cannot be read.
";

/// Exit status when nothing could be replayed.
const NOTHING: i32 = 1;
/// Exit status for a wrong command line, and for files that cannot be read.
const USAGE_ERROR: i32 = 2;
/// How many sizes may be asked for.
const SIZES_MAX: usize = 16;
/// The range of the sizes: models add up bytes, and must not come near the end of the numbers.
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

fn value(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().map(|value| value.to_string_lossy().into_owned()).map_err(|error| error.to_string())
}

fn parse(args: &[OsString]) -> Result<Option<Options>, String> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(args.iter().cloned());
    let mut options =
        Options { sizes: Vec::new(), format: Format::Combined, urls: URLS_DEFAULT, json: false, files: Vec::new() };
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("json") => options.json = true,
            Short('s') => {
                for text in value(&mut parser)?.split(',') {
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
            Long("format") => {
                let text = value(&mut parser)?;
                options.format = Format::named(&text)
                    .ok_or_else(|| format!("--format: '{text}' is none of combined, common, vhost"))?;
            }
            Long("urls") => {
                let text = value(&mut parser)?;
                let count = text.parse().ok().filter(|count| URLS.contains(count));
                options.urls =
                    count.ok_or_else(|| format!("--urls: '{text}' is not from {} to {}", URLS.start(), URLS.end()))?;
            }
            Value(word) => options.files.push(word),
            other => return Err(other.unexpected().to_string()),
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
    Ok(Some(options))
}

/// Lines by what became of them.
#[derive(Default)]
struct Lines {
    replayed: u64,
    /// Other methods and statuses.
    others: u64,
    bad: u64,
}

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let options = match parse(args) {
        Ok(Some(options)) => options,
        Ok(None) => {
            let _ = streams.output.write_all(HELP.as_bytes());
            return 0;
        }
        Err(text) => {
            let _ = writeln!(streams.error, "copal policy: {text}; see copal policy --help");
            return USAGE_ERROR;
        }
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

fn replay(input: &mut impl BufRead, options: &Options, panel: &mut Panel, lines: &mut Lines) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = access_log::LINE_BYTES_MAX as u64 + 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() as u64 == limit && line.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
            lines.bad += 1;
            continue;
        }
        match access_log::parse(&line, options.format) {
            Line::Stored(request) => {
                lines.replayed += 1;
                panel.request(request);
            }
            Line::Other => lines.others += 1,
            Line::Bad => lines.bad += 1,
        }
    }
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

/// A size in the largest unit that divides it, or with two digits behind the point.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(5);
    let divisor = 1u64 << (10 * unit);
    let unit = units[unit as usize];
    if bytes.is_multiple_of(divisor) {
        format!("{} {unit}", bytes / divisor)
    } else {
        format!("{:.2} {unit}", bytes as f64 / divisor as f64)
    }
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
