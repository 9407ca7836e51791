//! Layouts of `param.show`: the short list, the long form and JSON.

use cli_proto::json;
use surface::parameter::value::{alias, format, is_available, is_default, maximum, minimum};
use surface::parameter::{
    BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, FLAGS, ParameterKind, ParameterRow, Parameters,
    ValueRef,
};

const MARGIN: &str = "        ";
/// Widest line of text, without the margin.
const TEXT_WIDTH: usize = 64;

/// Appended to the text of a bit without effect.
const IDLE: &str = "(no effect)";

/// The row of the short list, with its newline.
#[must_use]
pub fn short(parameters: &Parameters, defaults: &Parameters, row: &ParameterRow) -> String {
    if !is_available(row) {
        return format!("{:<30}-\n", row.name);
    }
    format!("{:<30}{}\n", row.name, value_line(parameters, defaults, row))
}

fn value_line(parameters: &Parameters, defaults: &Parameters, row: &ParameterRow) -> String {
    let mut line = format(parameters, row);
    if !row.unit.is_empty() {
        line.push_str(&format!(" [{}]", row.unit));
    }
    if is_default(parameters, defaults, row) {
        line.push_str(" (default)");
    }
    line
}

/// The long form.
#[must_use]
pub fn long(parameters: &Parameters, defaults: &Parameters, row: &ParameterRow, asked: &str) -> String {
    if let Some(real) = alias(asked) {
        let value = format(parameters, row);
        return format!(
            "{asked}\n{MARGIN}Value is: {value}\n{MARGIN}Alias of: {real}\n\n{MARGIN}Old name of {real}.\n\n"
        );
    }
    if !is_available(row) {
        let note = wrap("NB: What it needs is not available on this platform.");
        return format!("{}\n{MARGIN}Not available\n\n{}\n{note}\n", row.name, wrap(row.text));
    }
    let mut out = format!("{}\n{MARGIN}Value is: {}\n", row.name, value_line(parameters, defaults, row));
    if !is_default(parameters, defaults, row) {
        out.push_str(&format!("{MARGIN}Default is: {}\n", format(defaults, row)));
    }
    if let Some(bound) = minimum(parameters, row) {
        out.push_str(&format!("{MARGIN}Minimum is: {}\n", bound.text));
    }
    if let Some(bound) = maximum(parameters, row) {
        out.push_str(&format!("{MARGIN}Maximum is: {}\n", bound.text));
    }
    out.push('\n');
    out.push_str(&wrap(row.text));
    if let Some(bits) = bits(row.kind) {
        out.push_str(&bit_list(bits));
    }
    for (_, _, note) in FLAGS.iter().filter(|(flag, ..)| row.flags & flag != 0) {
        out.push('\n');
        out.push_str(&wrap(&format!("NB: {note}")));
    }
    out.push('\n');
    out
}

/// The bits of a parameter that is a set.
fn bits(kind: ParameterKind) -> Option<&'static [BitRow]> {
    match kind {
        ParameterKind::DebugBits => Some(DEBUG_BITS),
        ParameterKind::FeatureBits => Some(FEATURE_BITS),
        ParameterKind::ExperimentalBits => Some(EXPERIMENTAL_BITS),
        ParameterKind::CompilerBits => Some(COMPILER_BITS),
        ParameterKind::Seconds
        | ParameterKind::Double
        | ParameterKind::Bool
        | ParameterKind::Unsigned
        | ParameterKind::Bytes
        | ParameterKind::Pool
        | ParameterKind::LogMask
        | ParameterKind::Encodings
        | ParameterKind::Policy
        | ParameterKind::EvictionPolicy
        | ParameterKind::NameSource
        | ParameterKind::Placement
        | ParameterKind::LeakGuard
        | ParameterKind::WhenLost
        | ParameterKind::Addresses
        | ParameterKind::Text => None,
    }
}

/// The bits of a set, one per line.
fn bit_list(rows: &[BitRow]) -> String {
    let mut out = format!("\n{MARGIN}+name sets a bit, -name takes it away:\n");
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let note = if row.is_accepted_only { IDLE } else { "" };
        let line = format!("{MARGIN}   {:<width$}  {} {note}", row.name, row.text);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Wraps text into lines with the margin; line breaks in the text are kept.
fn wrap(text: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > TEXT_WIDTH {
                out.push_str(&format!("{MARGIN}{line}\n"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if line.is_empty() {
            out.push('\n');
        } else {
            out.push_str(&format!("{MARGIN}{line}\n"));
        }
    }
    out
}

/// The JSON object, indented as an element of a reply.
#[must_use]
pub fn json(parameters: &Parameters, defaults: &Parameters, row: &ParameterRow, asked: &str) -> String {
    if let Some(real) = alias(asked) {
        let value = json_value(parameters, row);
        let text = json::string(&format!("Old name of {real}."));
        return format!(
            "{{\n    \"name\": {},\n    \"alias\": {},\n    \"implemented\": true,\n    \"value\": {value},\n    \
             \"description\": {text},\n    \"flags\": []\n  }}",
            json::string(asked),
            json::string(real)
        );
    }
    let mut fields =
        vec![format!("\"name\": {}", json::string(asked)), format!("\"implemented\": {}", is_available(row))];
    if is_available(row) {
        fields.push(format!("\"value\": {}", json_value(parameters, row)));
        if !row.unit.is_empty() {
            fields.push(format!("\"units\": {}", json::string(row.unit)));
        }
        fields.push(format!("\"default\": {}", json::string(&format(defaults, row))));
        if let Some(bound) = minimum(parameters, row) {
            fields.push(format!("\"minimum\": {}", json::string(&bound.text)));
        }
        if let Some(bound) = maximum(parameters, row) {
            fields.push(format!("\"maximum\": {}", json::string(&bound.text)));
        }
        let list = bits(row.kind).map(|rows| bit_list(rows).replace(MARGIN, "")).unwrap_or_default();
        fields.push(format!("\"description\": {}", json::string(&format!("{}{}", row.text, list.trim_end()))));
        let flags: Vec<String> = FLAGS
            .iter()
            .filter(|(flag, ..)| row.flags & flag != 0)
            .map(|(_, word, _)| format!("\n      {}", json::string(word)))
            .collect();
        let end = if flags.is_empty() { "" } else { "\n    " };
        fields.push(format!("\"flags\": [{}{end}]", flags.join(",")));
    }
    format!("{{\n    {}\n  }}", fields.join(",\n    "))
}

fn json_value(parameters: &Parameters, row: &ParameterRow) -> String {
    let text = format(parameters, row);
    match (row.kind, parameters.value(row.name)) {
        (ParameterKind::Pool, _) => {
            let mut fields = text.split([',', ' ']).map(|field| field.trim_matches('"').parse().unwrap_or(0.0));
            let mut next = || fields.next().unwrap_or_default();
            let (min, max, age): (f64, f64, f64) = (next(), next(), next());
            format!(
                "{{\n        \"min_pool\": {min},\n        \"max_pool\": {max},\n        \"max_age\": {age}\n    }}"
            )
        }
        (ParameterKind::Bytes | ParameterKind::Unsigned, Some(ValueRef::Number(number))) => number.to_string(),
        (_, Some(ValueRef::Bool(on))) => on.to_string(),
        (_, Some(ValueRef::Float(_))) => text,
        _ => json::string(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::parameter::PARAMETERS;
    use surface::parameter::value::{row, set};

    #[test]
    fn the_short_list_has_one_row_a_parameter() {
        let mut parameters = Parameters::default();
        let show = |parameters: &Parameters, name: &str| short(parameters, &Parameters::default(), row(name).unwrap());
        assert_eq!(show(&parameters, "accept_filter"), "accept_filter                 -\n");
        assert_eq!(show(&parameters, "default_ttl"), "default_ttl                   120.000 [seconds] (default)\n");
        assert_eq!(show(&parameters, "gzip_level"), "gzip_level                    6 (default)\n");
        set(&mut parameters, &Parameters::default(), "default_ttl", "1", &[]).unwrap();
        assert_eq!(show(&parameters, "default_ttl"), "default_ttl                   1.000 [seconds]\n");
    }

    #[test]
    fn the_long_form_has_bounds_and_notes() {
        let mut parameters = Parameters::default();
        set(&mut parameters, &Parameters::default(), "default_ttl", "1.5", &[]).unwrap();
        let text = long(&parameters, &Parameters::default(), row("default_ttl").unwrap(), "default_ttl");
        let head = "default_ttl\n        Value is: 1.500 [seconds]\n        Default is: 120.000\n        Minimum is: 0.000\n\n        ";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\n\n        NB: Only objects"), "{text}");
        assert!(text.ends_with("\n\n"));
        let text = long(&parameters, &Parameters::default(), row("thread_pool_min").unwrap(), "thread_pool_min");
        assert!(text.contains("        Minimum is: 5\n        Maximum is: 5000\n\n"), "{text}");
        let lines = PARAMETERS.iter().flat_map(|row| {
            let text = long(&parameters, &Parameters::default(), row, row.name);
            text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
        });
        assert!(lines.filter(|line| !line.contains(" is: ")).all(|line| line.len() <= 80), "too wide");
    }

    #[test]
    fn bit_set_lists_its_bits_and_marks_those_without_effect() {
        let parameters = Parameters::default();
        for row in PARAMETERS.iter().filter(|row| bits(row.kind).is_some()) {
            let text = long(&parameters, &Parameters::default(), row, row.name);
            for bit in bits(row.kind).unwrap() {
                let line = text.lines().find(|line| line.split_whitespace().next() == Some(bit.name)).unwrap();
                assert!(line.len() <= 80 && line.contains(bit.text), "{line}");
                assert_eq!(line.ends_with(IDLE), bit.is_accepted_only, "{line}");
            }
        }
    }

    #[test]
    fn the_json_of_all_parameters_fits_the_limit_of_replies() {
        let defaults = Parameters::default();
        let bytes: usize = PARAMETERS.iter().map(|row| json(&defaults, &defaults, row, row.name).len() + 8).sum();
        // Values that were set take space, too, and truncated JSON is invalid.
        assert!(bytes + (8 << 10) < defaults.cli_limit as usize, "{bytes}");
    }

    #[test]
    fn json_is_valid_for_every_parameter() {
        let parameters = Parameters::default();
        for row in PARAMETERS {
            let value: serde_json::Value =
                serde_json::from_str(&json(&parameters, &Parameters::default(), row, row.name)).unwrap();
            assert_eq!(value["name"], row.name);
            assert_eq!(value["implemented"], is_available(row));
        }
        let value = |name: &str| -> serde_json::Value {
            serde_json::from_str(&json(&parameters, &Parameters::default(), row(name).unwrap(), name)).unwrap()
        };
        assert_eq!(value("vsl_space")["value"], 83886080);
        assert_eq!(value("auto_restart")["value"], true);
        assert_eq!(value("default_ttl")["value"], 120.0);
        assert_eq!(value("pool_req")["value"]["max_pool"], 100);
        assert_eq!(value("vsl_space")["flags"][0], "must_restart");
        assert_eq!(value("deprecated_dummy")["alias"], "debug");
    }
}
