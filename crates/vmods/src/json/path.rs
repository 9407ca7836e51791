//! Paths to values: `a.b[0]`, `.a`, `."a b"`, `.["a"]`, `[-1]`, and `.` for the whole text. A
//! question mark after a step is ignored.

use crate::json_text::Step;

/// Most steps of a path.
const STEPS_MAX: usize = 64;

/// Reads a path; `None` if it is not one.
pub(super) fn parse(text: &[u8]) -> Option<Vec<Step>> {
    let mut rest = std::str::from_utf8(text).ok()?.trim_ascii();
    if rest.is_empty() {
        return None;
    }
    if rest == "." {
        return Some(Vec::new());
    }
    let mut steps = Vec::new();
    let mut is_first = true;
    while !rest.is_empty() {
        if steps.len() >= STEPS_MAX {
            return None;
        }
        let dotted = rest.strip_prefix('.');
        let step;
        (step, rest) = match dotted.unwrap_or(rest).strip_prefix('[') {
            Some(inner) => bracketed(inner)?,
            None if dotted.is_some() || is_first => name(dotted.unwrap_or(rest))?,
            None => return None,
        };
        steps.push(step);
        rest = rest.strip_prefix('?').unwrap_or(rest);
        is_first = false;
    }
    Some(steps)
}

fn quoted(text: &str) -> Option<(Step, &str)> {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find_map(|(place, letter)| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends.then_some(place + 1)
    })?;
    let name = serde_json::from_str(&text[..end]).ok()?;
    Some((Step::Name(name), &text[end..]))
}

fn name(text: &str) -> Option<(Step, &str)> {
    if text.starts_with('"') {
        return quoted(text);
    }
    let end = text.find(['.', '[', '?']).unwrap_or(text.len());
    let is_plain = |letter: char| !letter.is_ascii_whitespace() && !"|(),:;{}\"]".contains(letter);
    let name = &text[..end];
    (!name.is_empty() && name.chars().all(is_plain)).then(|| (Step::Name(name.to_owned()), &text[end..]))
}

fn bracketed(inner: &str) -> Option<(Step, &str)> {
    if inner.starts_with('"') {
        let (step, rest) = quoted(inner)?;
        return Some((step, rest.strip_prefix(']')?));
    }
    let (index, rest) = inner.split_once(']')?;
    Some((Step::Index(index.trim_ascii().parse().ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        let shown = |step: &Step| match step {
            Step::Name(name) => format!("<{name}>"),
            Step::Index(index) => index.to_string(),
        };
        parse(text.as_bytes()).map(|steps| steps.iter().map(shown).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn paths_of_both_notations_are_read() {
        for (text, expected) in [
            ("baz[1]", "<baz> 1"),
            (".a.b[0][-1].c", "<a> <b> 0 -1 <c>"),
            (".", ""),
            (".[2]", "2"),
            ("[2]", "2"),
            (".\"a b\".c", "<a b> <c>"),
            (".[\"x\\\"]y\"][0]", "<x\"]y> 0"),
            (".a?.b?", "<a> <b>"),
            ("user-id.é", "<user-id> <é>"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "..",
            ".a.",
            ".a[",
            ".a[]",
            ".a[x]",
            ".a|length",
            ".a, .b",
            "a b",
            ".\"a",
            ".[\"a\"",
            "map(.x)",
            ".a[0]b",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(shown(&".a".repeat(1000)), None);
    }
}
