//! Quantities as users read and write them: sizes, the hit ratio, units of time. Every program has
//! them in one form.

/// Units of a size, each 1,024 times the one before.
const UNITS: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Longest time that is accepted, in seconds: ten years.
const DURATION_SECONDS_MAX: f64 = 10.0 * 31_536_000.0;

/// Bytes in the largest unit that leaves a number of at least one, with a decimal unless it is 0.
#[must_use]
pub fn size(bytes: u64) -> String {
    let unit = ((bytes.max(1).ilog2() / 10) as usize).min(UNITS.len() - 1);
    let tenths = (u128::from(bytes) * 10) >> (10 * unit);
    let name = UNITS[unit];
    if tenths.is_multiple_of(10) {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// Percentage of hits among the lookups; `None` without lookups. A page with fragments has several,
/// and a request that is passed has none.
#[must_use]
pub fn hit_percent(hits: u64, misses: u64) -> Option<f64> {
    let lookups = hits.saturating_add(misses);
    (lookups > 0).then(|| 100.0 * hits as f64 / lookups as f64)
}

/// Seconds in a unit of time as VCL and the tools name it; `None` for any other text.
#[must_use]
pub fn seconds_in(unit: &str) -> Option<f64> {
    match unit {
        "ms" => Some(0.001),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        "d" => Some(86_400.0),
        "w" => Some(604_800.0),
        "y" => Some(31_536_000.0),
        _ => None,
    }
}

/// Seconds of a text such as `5m`, `1h30m` or `1.5s`; `None` if it is none, or is too long.
#[must_use]
pub fn seconds(text: &str) -> Option<f64> {
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
    (0.0..=DURATION_SECONDS_MAX).contains(&total).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_a_unit_for_readers() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (256 << 20, "256 MiB"),
            (5 << 29, "2.5 GiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn hit_ratio_is_a_share_of_the_lookups() {
        assert_eq!((hit_percent(0, 0), hit_percent(3, 1), hit_percent(0, 9)), (None, Some(75.0), Some(0.0)));
        assert_eq!(hit_percent(u64::MAX, u64::MAX), Some(100.0));
    }

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
