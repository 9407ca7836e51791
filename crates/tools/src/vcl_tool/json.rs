//! Messages of the compiler as JSON: one document, with positions in bytes as well as in lines and
//! columns.

use serde_json::{Value, json};
use vcl::{Diagnostic, Place, Severity};

/// One message. `main` is the file that was checked; the position may be in a file that it
/// includes.
pub(super) fn message(main: &str, diagnostic: &Diagnostic) -> Value {
    let place = diagnostic.place();
    let mut value = place.map_or_else(|| json!({}), place_value);
    value["main"] = Value::from(main);
    value["severity"] = Value::from(match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    });
    value["code"] = Value::from(diagnostic.code.number());
    value["title"] = Value::from(diagnostic.code.row().title);
    value["message"] = Value::from(diagnostic.message());
    value["excerpt"] = place.map_or(Value::Null, |place| Value::from(place.excerpt.as_str()));
    value["hint"] = diagnostic.hint.as_deref().map_or(Value::Null, Value::from);
    let suggestions = diagnostic.suggestions.iter().map(|suggestion| {
        let mut value = place_value(&suggestion.place);
        value["replacement"] = Value::from(suggestion.replacement.as_str());
        value
    });
    value["suggestions"] = Value::from_iter(suggestions);
    let related = diagnostic.related().into_iter().map(|(words, place)| {
        let mut value = place_value(place);
        value["message"] = Value::from(words);
        value
    });
    value["related"] = Value::from_iter(related);
    value["text"] = Value::from(diagnostic.text());
    value
}

pub(super) fn place_value(place: &Place) -> Value {
    json!({
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "start": place.start,
        "end": place.end,
    })
}
