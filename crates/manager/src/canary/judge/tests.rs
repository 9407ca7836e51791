//! The judgement on counts that are given.

use super::*;

fn counts(requests: u64, errors: u64) -> Counts {
    let mut durations = [0; BUCKETS];
    durations[5] = requests;
    Counts { requests, errors, lookups: requests, hits: requests / 2, durations, ..Counts::default() }
}

const SURE: f64 = 1e-4;

#[test]
fn a_vcl_with_more_errors_is_found_once_there_are_enough_requests() {
    let limits = Limits::default();
    assert_eq!(judge(&[counts(499, 400), counts(499, 0)], &limits, SURE), None);
    let finding = judge(&[counts(812, 42), counts(790, 1)], &limits, SURE).unwrap();
    assert_eq!(finding.to_string(), "errors 5.17 % of 812, control 0.13 % of 790");
    assert_eq!(judge(&[counts(800, 0), counts(800, 40)], &limits, SURE), None, "it is better");
    assert_eq!(judge(&[counts(1000, 505), counts(1000, 500)], &limits, SURE), None);
    let wide = Limits { errors: 0.1, ..limits };
    assert_eq!(judge(&[counts(812, 42), counts(790, 1)], &wide, SURE), None, "within its limit");
}

#[test]
fn failures_hits_and_durations_are_compared_too() {
    let (limits, good) = (Limits::default(), counts(1000, 0));
    let figure = |canary: Counts| judge(&[canary, good], &limits, SURE).map(|finding| finding.figure);
    assert_eq!(figure(good), None);
    assert_eq!(figure(Counts { failures: 60, ..good }), Some(Figure::Failures));
    assert_eq!(figure(Counts { hits: 300, ..good }), Some(Figure::HitRatio));
    assert_eq!(figure(Counts { hits: 480, ..good }), None);
    assert_eq!(figure(Counts { hits: 900, ..good }), None);
    let mut slow = good;
    (slow.durations[5], slow.durations[12]) = (800, 200);
    assert_eq!(figure(slow), Some(Figure::P95));
    let text = judge(&[slow, good], &limits, SURE).unwrap().to_string();
    assert!(text.starts_with("p95 ") && text.contains(" ms of 1000, control 0.3 ms of 1000"), "{text}");
    let mut faster = good;
    (faster.durations[5], faster.durations[1]) = (0, 1000);
    assert_eq!(figure(faster), None);
}

#[test]
fn a_difference_below_a_millisecond_is_not_slower() {
    let mut quick = Counts { requests: 1000, ..Counts::default() };
    let mut slower = quick;
    quick.durations[0] = 1000;
    slower.durations[4] = 1000;
    assert_eq!(judge(&[slower, quick], &Limits::default(), SURE), None);
}

#[test]
fn a_broken_vcl_needs_few_requests_and_a_broken_origin_is_not_its_fault() {
    let thresholds = Thresholds::of(Duration::from_secs(600));
    let is_broken = |canary, control| broken(&[canary, control], thresholds.each_second).is_some();
    assert!(is_broken(counts(50, 50), counts(50, 0)));
    assert!(is_broken(counts(100, 30), counts(90, 0)));
    assert!(!is_broken(counts(50, 50), counts(0, 0)), "one client may have made them all");
    assert!(!is_broken(counts(50, 50), counts(12, 0)) && is_broken(counts(50, 50), counts(13, 0)));
    assert!(!is_broken(counts(49, 49), counts(500, 0)));
    assert!(!is_broken(counts(50, 2), counts(50, 0)), "below a twentieth");
    assert!(!is_broken(counts(500, 500), counts(500, 500)), "the origin is down");
    assert!(!is_broken(counts(50, 4), counts(50, 1)), "as chance has it");
}

#[test]
fn the_end_needs_enough_traffic_in_both_groups() {
    let (limits, thresholds) = (Limits::default(), Thresholds::of(Duration::from_secs(60)));
    let end = |canary, control| conclude(&[canary, control], &limits, thresholds.at_end);
    assert_eq!(end(counts(312, 0), counts(800, 0)), Err("not enough traffic: 312 of 500 requests".into()));
    assert_eq!(end(counts(800, 0), counts(0, 0)), Err("not enough traffic: 0 of 500 requests".into()));
    assert_eq!(end(counts(500, 0), counts(500, 0)), Ok(()));
    assert!(end(counts(5000, 100), counts(5000, 0)).is_err());
    // One client of the control group that only gets errors makes no canary good.
    let flooded = end(counts(4035, 1347), counts(57_969, 54_467));
    assert_eq!(flooded, Err("no fair comparison: 4035 requests, control 57969".into()));
    let as_bad = end(counts(4035, 1347), counts(4035, 3800));
    assert_eq!(as_bad, Err("no fair comparison: errors 33.38 %, control 94.18 %".into()));
    assert_eq!(end(counts(500, 0), counts(2000, 0)), Ok(()));
    assert!(end(counts(500, 0), counts(2001, 0)).is_err());
}

#[test]
fn counts_without_requests_or_with_nonsense_are_judged_without_a_fault() {
    let none = Counts::default();
    assert_eq!(judge(&[none, none], &Limits::default(), SURE), None);
    let mut last = counts(1000, 2000);
    (last.durations[5], last.durations[BUCKETS - 1]) = (0, 1000);
    let _ = judge(&[last, last], &Limits::default(), SURE);
    let _ = broken(&[last, none], SURE);
    assert!(p95(&last).is_finite() && p95(&none) == 0.0);
}
