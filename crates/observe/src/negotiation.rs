//! Choice of format and coding by `Accept` and `Accept-Encoding`. Source: RFC 9110 §12.5.

use crate::exposition::Format;

/// An element of a list: its name in lower case, its weight, the value of `version`.
struct Element {
    name: String,
    weight: f32,
    version: Option<String>,
}

fn elements(list: &str) -> impl Iterator<Item = Element> {
    list.split(',').map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut found = Element { name, weight: 1.0, version: None };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim().to_ascii_lowercase().as_str() {
                // A weight that is not a number excludes the element.
                "q" => found.weight = value.trim().parse().unwrap_or(0.0),
                "version" => found.version = Some(value.trim().trim_matches('"').to_owned()),
                _ => {}
            }
        }
        found
    })
}

/// The format for the values of `Accept`, joined by commas: OpenMetrics only if it is named, and
/// not less preferred than plain text.
pub(crate) fn format(accept: &str) -> Format {
    let (mut open, mut text) = (0.0f32, 0.0f32);
    for element in elements(accept) {
        match (element.name.as_str(), element.version.as_deref()) {
            ("application/openmetrics-text", None | Some("1.0.0")) => open = open.max(element.weight),
            ("text/plain", None | Some("0.0.4")) => text = text.max(element.weight),
            _ => {}
        }
    }
    if open > 0.0 && open >= text { Format::OpenMetrics } else { Format::Text }
}

/// True if the values of `Accept-Encoding`, joined by commas, allow gzip.
pub(crate) fn accepts_gzip(accept: &str) -> bool {
    let mut any = false;
    for element in elements(accept) {
        match element.name.as_str() {
            "gzip" | "x-gzip" => return element.weight > 0.0,
            "*" => any = element.weight > 0.0,
            _ => {}
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_chosen_only_if_it_is_named_and_preferred() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;\
                          q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.2";
        for (accept, expected) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text; version=\"1.0.0\"", Format::OpenMetrics),
            ("Application/OpenMetrics-Text", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text;q=0.1,text/plain", Format::Text),
            ("application/openmetrics-text;q=x", Format::Text),
            ("*/*", Format::Text),
            ("", Format::Text),
        ] {
            assert_eq!(format(accept), expected, "{accept}");
        }
    }

    #[test]
    fn gzip_is_used_only_if_it_is_accepted() {
        for (accept, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("*", true),
            ("*;q=0", false),
            ("gzip;q=0, *", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(accept), expected, "{accept}");
        }
    }
}
