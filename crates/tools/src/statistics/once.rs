//! `varnishstat` without a screen: the counters once, as a table, as JSON or as XML, or only their
//! names.

use std::io::{self, Write};
use std::time::SystemTime;

use shm::read::counters::CounterValue;
use surface::legible;

use crate::clock;

/// Narrowest column of names.
const NAME_WIDTH: usize = 18;

fn rate(value: u64, uptime: u64) -> String {
    format!("{:.2}", if uptime == 0 { 0.0 } else { value as f64 / uptime as f64 })
}

/// Prints the counters as a table; `uptime` is that of the worker in seconds.
pub(super) fn once(values: &[CounterValue], uptime: u64, output: &mut dyn Write) -> io::Result<()> {
    let mut width = NAME_WIDTH;
    for value in values {
        if value.name.len() >= width {
            width = value.name.len() + 1;
        }
        let average = if value.text.kind == "counter" { rate(value.value, uptime) } else { ".  ".to_owned() };
        let name = legible::line(value.name.as_bytes());
        let text = legible::line(value.text.oneliner.as_bytes());
        writeln!(output, "{name:<width$}{:>12} {average:>12} {text}", value.value)?;
    }
    Ok(())
}

fn timestamp() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    clock::local(now.as_secs_f64(), "%Y-%m-%dT%H:%M:%S").unwrap_or_default()
}

/// Prints the counters as one JSON object.
pub(super) fn json(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
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
    legible::json(&serde_json::Value::from(text).to_string()).into_owned()
}

/// Prints the counters as XML.
pub(super) fn xml(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
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
    legible::line(text.as_bytes()).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Prints the names that can be selected.
pub(super) fn list(values: &[CounterValue], output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "Varnishstat -f option fields:")?;
    writeln!(output, "{:<30} Description\n{:<30} -----------", "Field name", "----------")?;
    for value in values {
        let text = legible::line(value.text.oneliner.as_bytes());
        writeln!(output, "{:<30} {text}", legible::line(value.name.as_bytes()))?;
    }
    Ok(())
}
