//! When failures put a backend aside, for how long, and how it comes back; under a clock that stands still.

use super::*;
use tokio::time::advance;

fn rules(fail_limit: u32, fail_ratio: u32) -> TrustDefinition {
    TrustDefinition { fail_limit, fail_ratio, ..TrustDefinition::default() }
}

fn time_of(turn: Option<Turn>) -> Option<u64> {
    match turn {
        Some(Turn::Aside { time, .. }) => Some(time.as_secs()),
        Some(Turn::Back) | None => None,
    }
}

async fn pass(seconds: u64) {
    advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_put_it_aside_and_a_success_between_them_does_not() {
    let trust = Trust::new(rules(3, 0));
    for _ in 0..5 {
        assert_eq!(trust.failed(), None);
        assert_eq!(trust.failed(), None);
        trust.succeeded();
    }
    assert!(trust.failed().is_none() && trust.failed().is_none());
    assert_eq!(trust.ask(), Leave::Granted);
    assert_eq!(time_of(trust.failed()), Some(10));
    assert_eq!((trust.ask(), trust.is_usable()), (Leave::Refused, false));
    assert_eq!(trust.facts().aside, Some(Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn one_fetch_tries_when_the_time_is_over_and_its_answer_brings_it_back() {
    let trust = Trust::new(rules(1, 0));
    assert_eq!(time_of(trust.failed()), Some(10));
    pass(9).await;
    assert_eq!(trust.ask(), Leave::Refused);
    pass(1).await;
    assert!(trust.is_usable());
    assert_eq!(trust.ask(), Leave::Trial(0));
    assert_eq!((trust.ask(), trust.is_usable()), (Leave::Refused, false), "one fetch tries, the others don't");
    trust.end_trial(0);
    assert_eq!(trust.ask(), Leave::Trial(1), "the first has found out nothing");
    trust.end_trial(0);
    assert_eq!(trust.ask(), Leave::Refused, "that was not the one that tries");
    assert!(trust.answered());
    assert_eq!(trust.ask(), Leave::Granted);
    trust.end_trial(1);
    assert_eq!(trust.ask(), Leave::Granted, "it has found out something");
}

#[tokio::test(start_paused = true)]
async fn it_is_aside_for_twice_as_long_each_time_until_it_has_been_good_for_long_enough() {
    let trust = Trust::new(TrustDefinition { aside_time_max: 35.0, ..rules(1, 0) });
    for time in [10, 20, 35, 35] {
        let failed = trust.failed();
        assert_eq!(time_of(failed), Some(time));
        pass(time).await;
        assert!(matches!(trust.ask(), Leave::Trial(_)));
    }
    assert!(trust.answered());
    pass(30).await;
    assert_eq!(time_of(trust.failed()), Some(35), "it was good for less than it was aside");
    pass(35).await;
    assert!(matches!(trust.ask(), Leave::Trial(_)) && trust.answered());
    pass(36).await;
    assert_eq!(time_of(trust.failed()), Some(10));
}

#[tokio::test(start_paused = true)]
async fn a_share_of_failures_counts_once_there_are_enough_fetches_and_only_within_the_window() {
    let trust = Trust::new(rules(0, 50));
    for _ in 0..4 {
        assert_eq!(trust.failed(), None);
        trust.succeeded();
    }
    assert_eq!(trust.facts().share, (4, 8));
    trust.succeeded();
    assert!(matches!(trust.failed(), Some(Turn::Aside { share: (5, 10), .. })));

    let trust = Trust::new(rules(0, 50));
    for _ in 0..9 {
        assert_eq!(trust.failed(), None);
    }
    pass(11).await;
    assert_eq!(trust.failed(), None, "the others are too long ago");
    assert_eq!(trust.facts().share, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_an_older_fetch_does_not_keep_it_aside_for_longer() {
    let trust = Trust::new(rules(1, 0));
    assert!(trust.failed().is_some());
    pass(5).await;
    assert_eq!(trust.failed(), None);
    assert_eq!(trust.facts().aside, Some(Duration::from_secs(5)));
}
