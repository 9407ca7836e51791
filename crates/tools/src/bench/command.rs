//! The command line of `copal bench`.

use super::urls;
use crate::Streams;
use crate::access_log::Format;
use load::choice::{Choice, Zipf};
use load::plan::{CONNECTIONS_MAX, DURATION_MAX, Pace, Plan, Protocol, STREAMS_MAX, THREADS_MAX, Target, is_clean};
use std::ffi::OsString;
use std::time::Duration;
use surface::nearest::did_you_mean;
use surface::program::program;

/// Methods without a body that a cache handles.
const METHODS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "PURGE"];
/// Highest request rate that can be set.
const RATE_MAX: f64 = 1e8;
/// Most headers.
const HEADERS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Options {
    pub plan: Plan,
    pub json: bool,
    pub progress: bool,
}

fn value(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().map(|value| value.to_string_lossy().into_owned()).map_err(|error| error.to_string())
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    parser: &mut lexopt::Parser,
    name: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    let text = value(parser)?;
    let number = text.parse().ok().filter(|number| (&least..=&most).contains(&number));
    number.ok_or_else(|| format!("{name}: '{text}' is not from {least} to {most}"))
}

fn seconds(parser: &mut lexopt::Parser, name: &str, least: f64) -> Result<Duration, String> {
    number(parser, name, least, DURATION_MAX.as_secs_f64()).map(Duration::from_secs_f64)
}

/// Source of the paths.
enum Source {
    Url,
    List(String),
    Log(String),
    Zipf(f64, u64),
    Count(u64),
}

/// `None`: help was requested.
pub(super) fn parse(args: &[OsString], streams: &mut Streams) -> Result<Option<Options>, String> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(args.iter().cloned());
    let mut plan = Plan::new(Target::local(80, false));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (plan.threads, plan.streams) = (cores.min(THREADS_MAX), 10);
    let (mut url, mut source, mut format) = (None, Source::Url, Format::Combined);
    let (mut rate, mut burst) = (None, 1);
    let (mut json, mut progress) = (false, true);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("json") => json = true,
            Long("no-progress") => progress = false,
            Long("resume") => plan.resume = true,
            Short('c') | Long("connections") => plan.connections = number(&mut parser, "-c", 1, CONNECTIONS_MAX)?,
            Short('t') | Long("time") => plan.duration = seconds(&mut parser, "-t", 0.01)?,
            Short('n') | Long("requests") => plan.requests_max = Some(number(&mut parser, "-n", 1, u64::MAX >> 1)?),
            Short('r') | Long("rate") => rate = Some(number(&mut parser, "-r", 0.001, RATE_MAX)?),
            Long("burst") => burst = number(&mut parser, "--burst", 1, 1_000_000)?,
            Short('k') | Long("per-connection") => {
                plan.per_connection = Some(number(&mut parser, "-k", 0, u64::MAX >> 1)?)
            }
            Long("idle") => plan.idle = number(&mut parser, "--idle", 0, CONNECTIONS_MAX)?,
            Long("warm-up") => plan.warm_up = seconds(&mut parser, "--warm-up", 0.0)?,
            Long("timeout") => plan.timeout = seconds(&mut parser, "--timeout", 0.001)?,
            Long("threads") => plan.threads = number(&mut parser, "--threads", 1, THREADS_MAX)?,
            Long("seed") => plan.seed = number(&mut parser, "--seed", 0, u64::MAX)?,
            Short('m') | Long("streams") => plan.streams = number(&mut parser, "-m", 1, STREAMS_MAX)?,
            Long("expect-status") => plan.expect_status = Some(number(&mut parser, "--expect-status", 200, 599)?),
            Long("expect-bytes") => plan.expect_bytes = Some(number(&mut parser, "--expect-bytes", 0, u64::MAX)?),
            Long("urls") => source = Source::List(value(&mut parser)?),
            Long("log") => source = Source::Log(value(&mut parser)?),
            Long("format") => {
                let text = value(&mut parser)?;
                format =
                    Format::named(&text).ok_or(format!("--format: '{text}' is none of combined, common, vhost"))?;
            }
            Long("count") => source = Source::Count(number(&mut parser, "--count", 1, 1 << 48)?),
            Long("zipf") => source = zipf(&value(&mut parser)?)?,
            Long("http") => {
                plan.protocol = match value(&mut parser)?.as_str() {
                    "1" | "1.1" => Protocol::Http1,
                    "2" => Protocol::Http2,
                    "3" => Protocol::Http3,
                    other => return Err(format!("--http: '{other}' is none of 1, 2, 3")),
                }
            }
            Short('X') | Long("method") => {
                let text = value(&mut parser)?;
                let is_known = METHODS.contains(&text.as_str());
                plan.method = is_known.then_some(text).ok_or(format!("--method: one of {}", METHODS.join(", ")))?;
            }
            Short('H') | Long("header") => plan.headers.push(header(&value(&mut parser)?)?),
            Value(word) if url.is_none() => url = Some(word.to_string_lossy().into_owned()),
            other => {
                let meant = match &other {
                    Long(word) => {
                        let words = program("bench").options().filter_map(|row| row.word);
                        did_you_mean(word, "--", words)
                    }
                    _ => String::new(),
                };
                return Err(other.unexpected().to_string() + &meant);
            }
        }
    }
    if plan.headers.len() > HEADERS_MAX {
        return Err(format!("-H: more than {HEADERS_MAX} headers"));
    }
    plan.target = Target::parse(&url.ok_or("no URL is named")?)?;
    plan.choice = match source {
        Source::Url => Choice::InTurn([plan.target.path.clone()].into()),
        Source::List(file) => Choice::InTurn(urls::list(&file, &plan.target, streams)?),
        Source::Log(file) => Choice::InTurn(urls::log(&file, format, &plan.target, streams)?),
        Source::Zipf(..) | Source::Count(_) if !plan.target.path.contains("{}") => {
            return Err("--zipf, --count: the URL has no {} in it, where the number goes".to_owned());
        }
        Source::Zipf(skew, ranks) => Choice::Zipf { pattern: plan.target.path.clone(), law: Zipf::new(ranks, skew) },
        Source::Count(numbers) => Choice::Counted { pattern: plan.target.path.clone(), numbers },
    };
    plan.pace = match rate {
        Some(per_second) => Pace::Open { per_second, burst },
        None if burst > 1 => return Err("--burst needs --rate".to_owned()),
        None => Pace::Closed,
    };
    if plan.protocol == Protocol::Http3 && !plan.target.tls {
        return Err("--http 3 needs a URL of https".to_owned());
    }
    if plan.idle > 0 && plan.protocol != Protocol::Http1 {
        return Err("--idle needs --http 1".to_owned());
    }
    if plan.connections + plan.idle > CONNECTIONS_MAX {
        return Err(format!("more than {CONNECTIONS_MAX} connections"));
    }
    Ok(Some(Options { plan, json, progress }))
}

/// `0.9,100000`
fn zipf(text: &str) -> Result<Source, String> {
    let (skew, ranks) = text.split_once(',').ok_or("--zipf: two numbers, as in 0.9,100000")?;
    let skew = skew.parse().ok().filter(|skew| (0.0..=10.0).contains(skew));
    let ranks = ranks.parse().ok().filter(|ranks| (1..=1 << 48).contains(ranks));
    match (skew, ranks) {
        (Some(skew), Some(ranks)) => Ok(Source::Zipf(skew, ranks)),
        _ => Err(format!("--zipf: '{text}' is not a skew from 0 to 10 and a number from 1 to 2^48")),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("-H: '{text}' is not a header");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    let value = value.trim();
    let is_value = value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte));
    // Headers that frame a request are set by the tool.
    let is_framing =
        ["connection", "transfer-encoding", "content-length"].iter().any(|word| name.eq_ignore_ascii_case(word));
    if is_framing {
        return Err(format!("-H: {name} is set by the load itself (-k)"));
    }
    let is_host = !name.eq_ignore_ascii_case("host") || is_clean(value);
    if is_name && is_value && is_host { Ok((name.to_owned(), value.to_owned())) } else { Err(wrong()) }
}
