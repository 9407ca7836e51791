//! Times as files of cases have them.

use surface::quantity::seconds_in;

/// Longest time of a case, in seconds: ten years.
const SECONDS_MAX: f64 = 10.0 * 31_536_000.0;

/// Seconds of a text such as `5m`, `1h30m` or `1.5s`; `None` if it is none, or is too long.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let letters = &rest[digits..];
        let end = letters.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(letters.len());
        total += number * seconds_in(&letters[..end])?;
        rest = &letters[end..];
    }
    (0.0..=SECONDS_MAX).contains(&total).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_others_refused() {
        assert_eq!(
            (seconds("5m"), seconds("1h30m"), seconds("1.5s"), seconds("0s")),
            (Some(300.0), Some(5400.0), Some(1.5), Some(0.0))
        );
        for text in ["", "5", "m", "5 m", "5x", "-5s", "11y", "..s", "1e9s", "\u{e4}"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
