//! Randomly generated queries select the same records as in the stock program, and are refused with
//! the same messages.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::recording::recorded_file;
use super::{run_ours, run_stock, stock};

/// Queries per test; each run of the stock program takes about ten milliseconds.
const QUERIES: usize = 250;

const TAGS: &[&str] = &[
    "ReqURL",
    "requrl",
    "ReqMethod",
    "RespStatus",
    "BerespStatus",
    "ReqHeader",
    "*Header",
    "*Status",
    "Resp*",
    "Timestamp",
    "Begin",
    "Link",
    "End",
    "VCL_call",
    "VCL_Log",
    "VCL_ret",
    "ReqAcct",
    "Hash",
    "HttpGarbage",
    "SessClose",
    "CLI",
    "*",
    "Debug,ReqURL",
    "VSL",
    "Gzip",
    "H2*",
    "Hit,HitMiss",
];
const PREFIXES: &[&str] = &[
    "user-agent",
    "Host",
    "\"host\"",
    "'User-Agent'",
    "Resp",
    "Process",
    "key",
    "Authorization",
    "Age",
    "none",
    "a.b",
];
const FIELDS: &[&str] = &["1", "2", "3", "4", "5", "9", "64", "255", "01", "\"2\""];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "200",
    "404",
    "100",
    "500",
    "-1",
    "+3",
    "0x10",
    "010",
    "0.25",
    ".5",
    "1.",
    "1e3",
    "1700000000",
    "1.7e9",
    "99999999999999999999",
    "'200'",
    "\"0.5\"",
    "-0.001",
    "0.0",
];
const STRINGS: &[&str] = &[
    "HIT",
    "'HIT'",
    "\"tester/2.0\"",
    "esi",
    "rxreq",
    "/",
    "'/a?b=c&d'",
    "''",
    "\"\"",
    "'a\\'b'",
    "\"a\\\"b\"",
    "GET",
    "get",
    "\"GET \"",
    "'sess 0 HTTP/1'",
    "a*b",
];
const PATTERNS: &[&str] = &[
    "'^/a'",
    "tester",
    "\"(?i)TESTER\"",
    "'[?]'",
    "'(a|b)+$'",
    "HIT",
    "'^.{3,5}$'",
    "''",
    "'\\d+'",
    "\"^$\"",
    "a.c",
    "\"\\\\\"",
];
const NOISE: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "==",
    "=",
    "!=",
    "!~",
    "~",
    "<",
    ">",
    "<=",
    ">=",
    "eq",
    "ne",
    "and",
    "or",
    "not",
    "vxid",
    "\"",
    "'",
    "\\",
    "#",
    "\n",
    "{1}",
    "{2+}",
    "{3-}",
    "{-1}",
    "{1.5}",
    "{+}",
    "{1++}",
    "{}",
    "[0]",
    "[-1]",
    "[x]",
    "[1.0]",
    "[256]",
    "[99999999999]",
    "1",
    "-1",
    "1.5",
    "1..5",
    "1e",
    "abc",
    "*a*",
    "**",
    "Req",
    "Nothing",
    "$",
    "!",
    "%",
    "&",
    "|",
    ";",
    "\u{e9}",
    "AND",
    "Not",
    "\"unfinished",
    "'(unclosed'",
    "'[z-a]'",
    "'*'",
    "\\\n",
    "ReqURL",
    "vxid == 5",
    "0x",
    "0xg",
    "08",
    "--1",
];

fn one_of<'a>(random: &mut SmallRng, list: &[&'a str]) -> &'a str {
    list[random.random_range(0..list.len())]
}

/// A valid term.
fn term(random: &mut SmallRng) -> String {
    if random.random_range(0..12) == 0 {
        let operator = one_of(random, &["==", "!=", "<", "<=", ">", ">="]);
        return format!("vxid {operator} {}", random.random_range(90..500));
    }
    let mut text = String::new();
    if random.random_range(0..5) == 0 {
        text += one_of(random, &["{0}", "{1}", "{2}", "{ 1 }", "{2+}", "{1-}", "{3+}", "{0+}"]);
    }
    text += one_of(random, TAGS);
    if random.random_range(0..3) == 0 {
        text = format!("{text}:{}", one_of(random, PREFIXES));
    }
    if random.random_range(0..3) == 0 {
        text = format!("{text}[{}]", one_of(random, FIELDS));
    }
    let blank = one_of(random, &[" ", "  ", "\t", ""]);
    match random.random_range(0..5) {
        0 => text,
        1 | 2 => {
            let operator = one_of(random, &["==", "!=", "<", "<=", ">", ">="]);
            format!("{text}{blank}{operator}{blank}{}", one_of(random, NUMBERS))
        }
        3 => format!("{text} {} {}", one_of(random, &["eq", "ne"]), one_of(random, STRINGS)),
        _ => format!("{text}{blank}{}{blank}{}", one_of(random, &["~", "!~"]), one_of(random, PATTERNS)),
    }
}

fn expression(random: &mut SmallRng, depth: usize) -> String {
    let mut text = String::new();
    for index in 0..random.random_range(1..4) {
        if index > 0 {
            text += one_of(random, &[" and ", " or ", "\tor  ", " and not ", "\n", " \\\nor ", " # or\n"]);
        } else if random.random_range(0..5) == 0 {
            text += "not ";
        }
        if depth < 3 && random.random_range(0..4) == 0 {
            text += &format!("({})", expression(random, depth + 1).replace('\n', " or "));
        } else {
            text += &term(random);
        }
    }
    text
}

/// If the first character is wrong the stock program reports an invented position beyond the query,
/// and it has no message for a query that consists only of comments.
fn in_our_words(error: &str) -> String {
    if error == "Query expression error:" {
        return format!("{error}\nEmpty query");
    }
    let Some((before, number, after)) = error.split_once("(Pos ").and_then(|(before, rest)| {
        let (number, after) = rest.split_once(')')?;
        Some((before, number.parse::<u32>().ok()?, after))
    }) else {
        return error.to_owned();
    };
    format!("{before}(Pos {}){after}", if number > 10_000 { 1 } else { number })
}

fn compare_queries(queries: impl Iterator<Item = String>) {
    let Some(program) = stock("varnishlog") else { return };
    let (directory, file) = recorded_file(&program);
    let mut different = Vec::new();
    for (index, query) in queries.enumerate() {
        let grouping = ["raw", "vxid", "request", "session"][index % 4];
        let mut args = vec!["-r", &file, "-g", grouping, "-i", "Begin", "-q", &query];
        if index % 7 == 0 {
            args.push("-C");
        }
        let (theirs, ours) = (run_stock(&program, &args), run_ours(tools::log_to, &args, b""));
        let same_words = ours.error.trim_end() == in_our_words(theirs.error.trim_end());
        if ours.status != theirs.status || !same_words || ours.output != theirs.output {
            let shown =
                |ran: &super::Ran| format!("{} bytes, status {}, {:?}", ran.output.len(), ran.status, ran.error);
            different.push(format!("-g {grouping} -q {query:?}\n  ours: {}\ntheirs: {}", shown(&ours), shown(&theirs)));
        }
    }
    drop(directory);
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn right_queries_select_the_same_groups() {
    let mut random = SmallRng::seed_from_u64(11);
    compare_queries((0..QUERIES).map(move |_| expression(&mut random, 0)));
}

#[test]
fn wrong_queries_are_refused_in_the_same_words() {
    let mut random = SmallRng::seed_from_u64(12);
    compare_queries((0..QUERIES).map(move |_| {
        let mut words: Vec<String> = Vec::new();
        for _ in 0..random.random_range(1..5) {
            let word =
                if random.random_range(0..3) > 0 { term(&mut random) } else { one_of(&mut random, NOISE).to_owned() };
            words.push(word);
        }
        let at = random.random_range(0..=words.len());
        words.insert(at, one_of(&mut random, NOISE).to_owned());
        words.join(one_of(&mut random, &[" ", ""]))
    }));
}
