//! The JSON document of a counter section, derived from its rows in `surface`.
//!
//! The stock tools require every key and exactly `elements` members of `elem`, and show the
//! counters in the order of the document; so the text is composed here rather than from an
//! unordered map.

use std::fmt::Write;

use surface::counter::{CounterFormat, CounterKind, CounterLevel, SectionRow};

/// The document of `section`.
#[must_use]
pub fn json(section: &SectionRow) -> String {
    let mut out = String::with_capacity(256 + 200 * section.counters.len());
    let _ = write!(
        out,
        "{{\"version\": \"1\", \"name\": {}, \"oneliner\": {}, \"order\": {}, \"docs\": \"\", \"elements\": {}, \"elem\": {{",
        quoted(section.name),
        quoted(section.oneliner),
        section.order,
        section.counters.len()
    );
    for (index, counter) in section.counters.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let _ = write!(
            out,
            "{separator}\n{name}: {{\"type\": \"{kind}\", \"ctype\": \"uint64_t\", \"level\": \"{level}\", \
             \"oneliner\": {oneliner}, \"format\": \"{format}\", \"index\": {offset}, \"name\": {name}, \"docs\": \"\"}}",
            name = quoted(counter.name),
            kind = kind_word(counter.kind),
            level = level_word(counter.level),
            oneliner = quoted(counter.oneliner),
            format = format_word(counter.format),
            offset = 8 * index,
        );
    }
    out.push_str("\n}}\n");
    out
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn kind_word(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::Counter => "counter",
        CounterKind::Gauge => "gauge",
        CounterKind::Bitmap => "bitmap",
    }
}

fn level_word(level: CounterLevel) -> &'static str {
    match level {
        CounterLevel::Info => "info",
        CounterLevel::Diag => "diag",
        CounterLevel::Debug => "debug",
    }
}

fn format_word(format: CounterFormat) -> &'static str {
    match format {
        CounterFormat::Integer => "integer",
        CounterFormat::Bytes => "bytes",
        CounterFormat::Bitmap => "bitmap",
        CounterFormat::Duration => "duration",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_a_document_with_all_its_counters() {
        use surface::counter as table;
        for section in [&table::MAIN, &table::MGT, &table::SMA, &table::VBE, &table::LCK, &table::MEMPOOL] {
            let value: serde_json::Value = serde_json::from_str(&json(section)).unwrap();
            assert_eq!(value["elements"], section.counters.len());
            assert_eq!(value["elem"].as_object().unwrap().len(), section.counters.len());
            for (index, counter) in section.counters.iter().enumerate() {
                assert_eq!(value["elem"][counter.name]["index"], 8 * index);
            }
        }
    }
}
