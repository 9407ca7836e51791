//! `TTL` records in words.

/// A `TTL` record in words: `RFC <ttl> <grace> <keep> <reference> <age> <date> <expires> <max-age>
/// …`, `VCL <ttl> <grace> …`. `aged` is the age of the response on arrival, in seconds: VCL's
/// values count from then, those in the record from before.
pub(super) fn lifetime(record: &str, aged: i64) -> Option<String> {
    let words: Vec<&str> = record.split(' ').collect();
    let (who, ttl, grace, keep) = match words[..] {
        [who, ttl, grace, keep, ..] => (who, ttl, grace, keep),
        _ => return None,
    };
    let by = match who {
        "RFC" => "from the response's headers and the defaults",
        "VCL" => "set by VCL",
        "HFP" => "of a hit-for-pass",
        _ => return None,
    };
    let line = |ttl: &str| format!("TTL {ttl} s, grace {grace} s, keep {keep} s: {by}");
    match ttl.parse::<i64>() {
        Ok(_) if aged == 0 => Some(line(ttl)),
        Ok(seconds) if who == "RFC" => {
            Some(format!("{}; it was {aged} s old when it came, so {} s are left", line(ttl), seconds - aged))
        }
        Ok(seconds) => Some(line(&(seconds - aged).to_string())),
        Err(_) => Some(line(ttl)),
    }
}

/// The age of the response on arrival, by its `Age` or `Date`, from an `RFC` record: `RFC <ttl>
/// <grace> <keep> <now> <origin> …`; `None` for other records and for a difference of a second.
pub(super) fn aged(record: &str) -> Option<i64> {
    let words: Vec<&str> = record.split(' ').collect();
    let ["RFC", _, _, _, now, origin, ..] = words[..] else { return None };
    let seconds = now.parse::<i64>().ok()? - origin.parse::<i64>().ok()?;
    (seconds > 1).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_lifetime_of_an_old_response_is_reported() {
        let record = "RFC 100 10 0 1795312975 1795312475 1795312975 0 100 cacheable";
        assert_eq!(aged(record), Some(500));
        let said = lifetime(record, 500).unwrap();
        assert!(said.ends_with("; it was 500 s old when it came, so -400 s are left"), "{said}");
        let said = lifetime("VCL 620 10 0 1795312475 cacheable", 500).unwrap();
        assert_eq!(said, "TTL 120 s, grace 10 s, keep 0 s: set by VCL");
        assert_eq!(aged("RFC 120 10 0 1795312977 1795312976 1795312976 0 0 cacheable"), None, "a rounded second");
        assert_eq!(aged("VCL 120 10 0 1795312977 cacheable"), None);
    }
}
