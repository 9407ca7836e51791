//! Attributes of a backend for the handling of failures and slowness, which are Copal's own: the
//! conditions that open the circuit breaker (`.fail_limit`, `.fail_ratio` and their refinements),
//! the load after recovery (`.slow_start`), the repetition of fetches (`.retry_budget`), and two
//! timeouts that Varnish has for all backends or not at all.

use super::{Checked, Checker};
use crate::tree::{At, Field};
use surface::diagnostic::Code;
use vcl_run::program::BreakerDefinition;

/// The attributes, which the old dialects do not have.
pub(super) const CARE_FIELDS: &[&str] = &[
    "last_byte_timeout",
    "idle_timeout",
    "fail_limit",
    "fail_ratio",
    "fail_window",
    "fail_minimum",
    "fail_5xx",
    "aside_time",
    "aside_time_max",
    "slow_start",
    "retry_budget",
];

/// The attributes that were set.
#[derive(Default)]
pub(super) struct CareFields {
    pub(super) last_byte_timeout: Option<f64>,
    pub(super) idle_timeout: Option<f64>,
    pub(super) slow_start: f64,
    pub(super) retry_budget: Option<u32>,
    breaker: BreakerDefinition,
    /// The first attribute that has no meaning without `.fail_limit` or `.fail_ratio`.
    detail: Option<At>,
    /// The first attribute that has no meaning without `.fail_ratio`.
    detail_of_ratio: Option<At>,
    /// The place of the value of `.aside_time_max`.
    longest: Option<At>,
}

impl Checker<'_> {
    /// Reads one of [`CARE_FIELDS`].
    pub(super) fn care_field(&mut self, field: &Field, set: &mut CareFields) -> Checked<()> {
        let name = self.text(field.name);
        if matches!(name, "fail_5xx" | "aside_time" | "aside_time_max") {
            set.detail.get_or_insert(field.name);
        }
        if matches!(name, "fail_window" | "fail_minimum") {
            set.detail_of_ratio.get_or_insert(field.name);
        }
        match name {
            "last_byte_timeout" => set.last_byte_timeout = Some(self.duration_field(field)?),
            "idle_timeout" => set.idle_timeout = Some(self.duration_field(field)?),
            "fail_limit" => set.breaker.fail_limit = self.integer_field(field)?.0,
            "fail_ratio" => set.breaker.fail_ratio = self.percent_field(field, 1..=100)?,
            "fail_window" => set.breaker.fail_window = self.some_time_field(field)?.0,
            "fail_minimum" => set.breaker.fail_minimum = self.integer_field(field)?.0,
            "fail_5xx" => set.breaker.fail_5xx = self.switch_field(field)?,
            "aside_time" => {
                set.breaker.aside_time = self.some_time_field(field)?.0;
                if set.longest.is_none() {
                    set.breaker.aside_time_max = set.breaker.aside_time_max.max(set.breaker.aside_time);
                }
            }
            "aside_time_max" => {
                let (seconds, place) = self.some_time_field(field)?;
                set.breaker.aside_time_max = seconds;
                set.longest = Some(place);
            }
            "slow_start" => set.slow_start = self.duration_field(field)?,
            _ => set.retry_budget = Some(self.percent_field(field, 0..=1000)?),
        }
        Ok(())
    }

    /// A duration greater than zero, and its place.
    fn some_time_field(&mut self, field: &Field) -> Checked<(f64, At)> {
        let place = self.field_value(field)?.place();
        let seconds = self.duration_field(field)?;
        if seconds > 0.0 {
            return Ok((seconds, place));
        }
        let text = format!(".{} must be more than nothing", self.text(field.name));
        Err(self.error_at(Code::FieldValue, &text, place))
    }

    fn percent_field(&mut self, field: &Field, range: std::ops::RangeInclusive<u32>) -> Checked<u32> {
        let (percent, _) = self.integer_field(field)?;
        if range.contains(&percent) {
            return Ok(percent);
        }
        let place = self.field_value(field)?.place();
        let text = format!(".{} is in percent: {} to {}", self.text(field.name), range.start(), range.end());
        Err(self.error_at(Code::FieldValue, &text, place))
    }

    /// The circuit breaker that the attributes define together; `None` = they define none.
    pub(super) fn breaker_definition(&mut self, set: &CareFields) -> Checked<Option<Box<BreakerDefinition>>> {
        let breaker = &set.breaker;
        if let Some(place) = set.detail_of_ratio.filter(|_| breaker.fail_ratio == 0) {
            self.idle_attribute(place, ".fail_ratio");
        }
        if breaker.fail_limit == 0 && breaker.fail_ratio == 0 {
            if let Some(place) = set.detail {
                self.idle_attribute(place, ".fail_limit or .fail_ratio");
            }
            return Ok(None);
        }
        if let Some(place) = set.longest.filter(|_| breaker.aside_time_max < breaker.aside_time) {
            return Err(self.error_at(Code::FieldValue, ".aside_time_max is shorter than .aside_time", place));
        }
        Ok(Some(Box::new(breaker.clone())))
    }

    fn idle_attribute(&mut self, place: At, without: &str) {
        let text = format!("'.{}' has no effect without {without}:", self.text(place));
        let draft = self.draft_at(Code::WithoutEffect, &text, place);
        self.warning(place, draft);
    }
}
