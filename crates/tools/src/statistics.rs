//! `varnishstat`: the counters, once or again and again.
//!
//! One report on standard output with `-1`, `-j` or `-x`; a list of names with `-l`; without any of them a table that is
//! drawn anew every second, by plain control codes (the stock program's keys are not there).

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use chrono::Local;
use shm::read::counters::{CounterFilter, CounterReader, CounterValue};
use shm::read::vsm::Vsm;

use crate::Streams;
use crate::options::{Given, OptionRow, Program, option};
use crate::patience::Patience;
use crate::signals::Signals;

const OPTIONS: &[OptionRow] = &[
    option('1', "", "Print the counters once"),
    option('f', "<glob>", "Show what matches, or hide with a leading ^"),
    option('h', "", "This text"),
    option('I', "<glob>", "Show what matches"),
    option('j', "", "Print the counters once, as JSON"),
    option('l', "", "List the names"),
    option('n', "<dir>", "Work directory of the server"),
    option('r', "", "Show gauges as they are, also below zero"),
    option('t', "<seconds|off>", "How long to wait for a server"),
    option('V', "", "Version"),
    option('X', "<glob>", "Hide what matches"),
    option('x', "", "Print the counters once, as XML"),
];

const PROGRAM: Program =
    Program { name: "varnishstat", options: OPTIONS, rest: "", usage_status: 1, stops_at_word: false };

/// Narrowest column of names.
const NAME_WIDTH: usize = 18;

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match PROGRAM.parse(args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    match prepare(&given) {
        Ok(mut report) => report.run(&given, streams),
        Err(message) => {
            let _ = writeln!(streams.error, "{message}");
            1
        }
    }
}

fn prepare(given: &Given) -> Result<Report, String> {
    let mut filter = CounterFilter::default();
    let mut patience = Patience::default();
    for (letter, argument) in &given.options {
        let text = argument.to_string_lossy();
        match letter {
            'f' => match text.strip_prefix('^') {
                Some(glob) => filter.add(false, glob),
                None => filter.add(true, &text),
            },
            'I' => filter.add(true, &text),
            'X' => filter.add(false, &text),
            't' => patience = Patience::parse(argument).ok_or_else(|| format!("-t: Invalid argument: {text}"))?,
            _ => {}
        }
    }
    let vsm = patience.attach(given.last('n')).ok_or("Could not get hold of varnishd, is it running?")?;
    Ok(Report { vsm, reader: CounterReader::new(), filter, raw: given.has('r'), uptime: 0 })
}

struct Report {
    vsm: Vsm,
    reader: CounterReader,
    filter: CounterFilter,
    raw: bool,
    /// The worker's age in seconds, for averages; known even when it is not to be shown.
    uptime: u64,
}

impl Report {
    fn run(&mut self, given: &Given, streams: &mut Streams) -> i32 {
        let form = given.options.iter().map(|(letter, _)| *letter).rfind(|letter| "1jxl".contains(*letter));
        let values = self.values();
        let uptime = self.uptime;
        let output = &mut *streams.output;
        let written = match form {
            Some('1') => once(&values, uptime, output),
            Some('j') => json(&values, output),
            Some('x') => xml(&values, output),
            Some(_) => list(&values, output),
            None => {
                let signals = if streams.program { Signals::listen() } else { Signals::deaf() };
                self.repeat(&signals, output)
            }
        };
        i32::from(written.and_then(|()| streams.output.flush()).is_err())
    }

    /// All visible counters that the filter lets through; a gauge that wrapped below zero counts as zero unless `-r`.
    fn values(&mut self) -> Vec<CounterValue> {
        let mut values = self.reader.read(&self.vsm);
        self.uptime = values.iter().find(|value| value.name == "MAIN.uptime").map_or(0, |value| value.value);
        values.retain(|value| self.filter.shows(&value.name));
        for value in &mut values {
            if !self.raw && value.text.kind == "gauge" && value.value > i64::MAX as u64 {
                value.value = 0;
            }
        }
        values
    }

    fn repeat(&mut self, signals: &Signals, output: &mut dyn Write) -> io::Result<()> {
        let mut before: Vec<(String, u64)> = Vec::new();
        let mut last = Instant::now();
        loop {
            let values = self.values();
            let seconds = last.elapsed().as_secs_f64();
            last = Instant::now();
            // Home, then clear to the end of each line and of the screen: no flicker, no terminal library.
            write!(output, "\x1b[H")?;
            let uptime = self.uptime;
            write!(
                output,
                "Uptime {}+{:02}:{:02}:{:02}",
                uptime / 86400,
                uptime / 3600 % 24,
                uptime / 60 % 60,
                uptime % 60
            )?;
            write!(output, "   (interrupt to end)\x1b[K\n\x1b[K\n")?;
            writeln!(output, "{:<40} {:>16} {:>12} {:>12}\x1b[K", "NAME", "CURRENT", "CHANGE", "AVERAGE")?;
            for value in &values {
                if value.value == 0 || value.text.level != "info" {
                    continue;
                }
                let earlier = before.iter().find(|(name, _)| *name == value.name).map(|(_, earlier)| *earlier);
                let change = earlier.map_or(0.0, |earlier| (value.value as f64 - earlier as f64) / seconds.max(0.001));
                let average = if value.text.kind == "counter" { rate(value.value, uptime) } else { ".".to_owned() };
                writeln!(output, "{:<40} {:>16} {change:>12.2} {average:>12}\x1b[K", value.name, value.value)?;
            }
            write!(output, "\x1b[J")?;
            output.flush()?;
            before = values.into_iter().map(|value| (value.name, value.value)).collect();
            for _ in 0..20 {
                if signals.stop() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            self.vsm.poll();
        }
    }
}

fn rate(value: u64, uptime: u64) -> String {
    format!("{:.2}", if uptime == 0 { 0.0 } else { value as f64 / uptime as f64 })
}

fn once(values: &[CounterValue], uptime: u64, output: &mut dyn Write) -> io::Result<()> {
    let mut width = NAME_WIDTH;
    for value in values {
        if value.name.len() >= width {
            width = value.name.len() + 1;
        }
        let average = if value.text.kind == "counter" { rate(value.value, uptime) } else { ".  ".to_owned() };
        writeln!(output, "{:<width$}{:>12} {average:>12} {}", value.name, value.value, value.text.oneliner)?;
    }
    Ok(())
}

fn timestamp() -> String {
    Local::now().format("%Y-%m-%dT%H:%M:%S").to_string()
}

fn json(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
    write!(output, "{{\n  \"version\": 1,\n  \"timestamp\": \"{}\",\n  \"counters\": {{", timestamp())?;
    for (index, value) in values.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(
            output,
            "{separator}\n    {}: {{\n      \"description\": {},\n      \"flag\": \"{}\",\n      \"format\": \"{}\",\n      \
             \"value\": {}\n    }}",
            quoted(&value.name),
            quoted(&value.text.oneliner),
            value.text.kind_letter(),
            value.text.format_letter(),
            value.value
        )?;
    }
    write!(output, "\n  }}\n}}\n")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn xml(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "<?xml version=\"1.0\"?>\n<varnishstat timestamp=\"{}\">", timestamp())?;
    for value in values {
        writeln!(
            output,
            "\t<stat>\n\t\t<name>{}</name>\n\t\t<value>{}</value>\n\t\t<flag>{}</flag>\n\t\t<format>{}</format>\n\t\t\
             <description>{}</description>\n\t</stat>",
            escaped(&value.name),
            value.value,
            value.text.kind_letter(),
            value.text.format_letter(),
            escaped(&value.text.oneliner)
        )?;
    }
    writeln!(output, "</varnishstat>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn list(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "Varnishstat -f option fields:")?;
    writeln!(output, "{:<30} Description\n{:<30} -----------", "Field name", "----------")?;
    for value in values {
        writeln!(output, "{:<30} {}", value.name, value.text.oneliner)?;
    }
    Ok(())
}
