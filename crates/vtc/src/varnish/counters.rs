//! `-expect` and `-vsc`: the daemon's counters.

use std::time::Duration;

use shm::read::counters::CounterValue;

use super::Varnish;
use crate::specification::{Arguments, parse_number};
use crate::test::{Cancel, Outcome};

/// Number of reads of a counter before it counts as wrong.
const LOOKS: u32 = 50;
/// Time between two reads.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// One side of a comparison.
enum Operand {
    Number(u64),
    Pattern(String),
}

impl Operand {
    fn value(&self, counters: &[CounterValue]) -> Option<u64> {
        match self {
            Operand::Number(number) => Some(*number),
            Operand::Pattern(pattern) => {
                counters.iter().find(|counter| is_meant(pattern, &counter.name)).map(|counter| counter.value)
            }
        }
    }
}

impl Varnish {
    /// `-expect LEFT OPERATOR RIGHT` or `-expect !PATTERN`.
    pub(super) fn expect_counter(&mut self, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
        let left_text = arguments.text("the counter")?;
        if let Some(pattern) = left_text.strip_prefix('!') {
            arguments.end()?;
            return self.expect_no_counter(pattern, cancel);
        }
        let operator = arguments.text("the operator")?;
        let right_text = arguments.text("the value")?;
        let left = Operand::Pattern(left_text.clone());
        let right = parse_number(&right_text).map_or_else(|| Operand::Pattern(right_text.clone()), Operand::Number);
        let mut seen = (None, None);
        for _ in 0..LOOKS {
            let counters = self.launched(cancel)?.counters();
            seen = (left.value(&counters), right.value(&counters));
            if let (Some(left), Some(right)) = seen {
                let Some(holds) = compare(left, &operator, right) else {
                    return Err(self.journal.fail(format!("comparison {operator} unknown")));
                };
                if holds {
                    let text = format!("as expected: {left_text} ({left}) {operator} {right_text} ({right})");
                    self.journal.log(2, text);
                    return Ok(());
                }
            }
            cancel.sleep(LOOK_AGAIN)?;
        }
        Err(self.journal.fail(match seen {
            (Some(left), Some(right)) => format!("Not true: {left_text} ({left}) {operator} {right_text} ({right})"),
            (None, _) => format!("stats field {left_text} unknown"),
            (_, None) => format!("stats field {right_text} unknown"),
        }))
    }

    fn expect_no_counter(&mut self, pattern: &str, cancel: &Cancel) -> Outcome {
        for _ in 0..LOOKS {
            let counters = self.launched(cancel)?.counters();
            if counters.iter().any(|counter| is_meant(pattern, &counter.name)) {
                return Err(self.journal.fail(format!("Found (not expected): {pattern}")));
            }
            cancel.sleep(LOOK_AGAIN)?;
        }
        self.journal.log(2, format!("not found (as expected): {pattern}"));
        Ok(())
    }

    /// `-vsc PATTERN`: logs counters.
    pub(super) fn log_counters(&mut self, pattern: &str, cancel: &Cancel) -> Outcome {
        for counter in self.launched(cancel)?.counters() {
            if pattern == "*" || matches(pattern, &counter.name) {
                self.journal.log(4, format!("VSC {} {}", counter.name, counter.value));
            }
        }
        Ok(())
    }
}

/// True if a pattern selects a counter. A pattern without a dot refers to `MAIN`.
fn is_meant(pattern: &str, name: &str) -> bool {
    if pattern.contains('.') {
        return matches(pattern, name);
    }
    name.strip_prefix("MAIN.").is_some_and(|name| matches(pattern, name))
}

fn matches(glob: &str, name: &str) -> bool {
    pattern::matches(glob.as_bytes(), name.as_bytes(), pattern::Flags::default())
}

fn compare(left: u64, operator: &str, right: u64) -> Option<bool> {
    Some(match operator {
        "==" => left == right,
        "!=" => left != right,
        ">" => left > right,
        "<" => left < right,
        ">=" => left >= right,
        "<=" => left <= right,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_need_not_be_said() {
        assert!(is_meant("cache_hit", "MAIN.cache_hit") && is_meant("MAIN.cache_hit", "MAIN.cache_hit"));
        assert!(is_meant("SM?.s1.g_space", "SMA.s1.g_space") && is_meant("VBE.*.s1.req", "VBE.vcl1.s1.req"));
        assert!(!is_meant("cache_hit", "MGT.cache_hit") && !is_meant("cache_hit", "MAIN.cache_hit_grace"));
    }

    #[test]
    fn counters_are_compared_as_whole_numbers() {
        assert_eq!((compare(1, "<=", 1), compare(2, "<", 1), compare(1, "=", 1)), (Some(true), Some(false), None));
    }
}
