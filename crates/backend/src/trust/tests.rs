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

fn trial_of(leave: Leave) -> Option<u64> {
    match leave {
        Leave::Trial(number) => Some(number),
        Leave::Granted | Leave::Refused => None,
    }
}

async fn pass(seconds: u64) {
    advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_put_it_aside_and_a_success_between_them_does_not() {
    let trust = Trust::new(rules(3, 0));
    for _ in 0..5 {
        assert_eq!(trust.failed(None), None);
        assert_eq!(trust.failed(None), None);
        trust.succeeded();
    }
    assert!(trust.failed(None).is_none() && trust.failed(None).is_none());
    assert_eq!(trust.ask(), Leave::Granted);
    assert_eq!(time_of(trust.failed(None)), Some(10));
    assert_eq!((trust.ask(), trust.is_usable()), (Leave::Refused, false));
    assert_eq!(trust.facts().aside, Some(Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn one_fetch_tries_when_the_time_is_over_and_its_answer_brings_it_back() {
    let trust = Trust::new(rules(1, 0));
    assert_eq!(time_of(trust.failed(None)), Some(10));
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
    assert!(!trust.answered(None), "an answer to an older fetch is no news");
    assert!(trust.answered(Some(1)));
    assert_eq!(trust.ask(), Leave::Granted);
    trust.end_trial(1);
    assert_eq!(trust.ask(), Leave::Granted, "it has found out something");
}

#[tokio::test(start_paused = true)]
async fn it_is_aside_for_twice_as_long_each_time_until_it_has_been_good_for_long_enough() {
    let trust = Trust::new(TrustDefinition { aside_time_max: 35.0, ..rules(1, 0) });
    let mut trial = None;
    for time in [10, 20, 35, 35] {
        assert_eq!(time_of(trust.failed(trial)), Some(time));
        pass(time).await;
        trial = trial_of(trust.ask());
        assert!(trial.is_some());
    }
    assert!(trust.answered(trial));
    pass(30).await;
    assert_eq!(time_of(trust.failed(None)), Some(35), "it was good for less than it was aside");
    pass(35).await;
    assert!(trust.answered(trial_of(trust.ask())));
    pass(36).await;
    assert_eq!(time_of(trust.failed(None)), Some(10));
}

#[tokio::test(start_paused = true)]
async fn a_share_of_failures_counts_once_there_are_enough_fetches_and_only_within_the_window() {
    let trust = Trust::new(rules(0, 50));
    for _ in 0..4 {
        assert_eq!(trust.failed(None), None);
        trust.succeeded();
    }
    assert_eq!(trust.facts().share, (4, 8));
    trust.succeeded();
    assert!(matches!(trust.failed(None), Some(Turn::Aside { share: (5, 10), .. })));

    let trust = Trust::new(rules(0, 50));
    for _ in 0..9 {
        assert_eq!(trust.failed(None), None);
    }
    pass(11).await;
    assert_eq!(trust.failed(None), None, "the others are too long ago");
    assert_eq!(trust.facts().share, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_an_older_fetch_does_not_keep_it_aside_for_longer() {
    let trust = Trust::new(rules(1, 0));
    assert!(trust.failed(None).is_some());
    pass(5).await;
    assert_eq!(trust.failed(None), None);
    assert_eq!(trust.facts().aside, Some(Duration::from_secs(5)));
}

#[tokio::test(start_paused = true)]
async fn only_trials_decide_what_becomes_of_it_while_it_is_not_trusted() {
    let trust = Trust::new(rules(1, 0));
    assert!(trust.failed(None).is_some());
    pass(10).await;
    assert_eq!(trust.ask(), Leave::Trial(0));
    assert_eq!(trust.failed(None), None, "of a fetch from before");
    assert_eq!(trust.ask(), Leave::Refused);
    assert!(trust.answered(Some(0)), "the trial still decides");

    // One that gets no connection has left when its failure is told.
    assert!(trust.failed(None).is_some());
    pass(20).await;
    assert_eq!(trust.ask(), Leave::Trial(1));
    trust.end_trial(1);
    assert_eq!(time_of(trust.failed(Some(1))), Some(40));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_finds_out_nothing_for_as_long_as_it_was_aside_is_followed_by_another() {
    let trust = Trust::new(rules(1, 0));
    assert!(trust.failed(None).is_some());
    pass(10).await;
    assert_eq!(trust.ask(), Leave::Trial(0));
    pass(9).await;
    assert_eq!((trust.ask(), trust.is_usable()), (Leave::Refused, false));
    pass(1).await;
    assert!(trust.is_usable());
    assert_eq!((trust.ask(), trust.ask()), (Leave::Trial(1), Leave::Refused));
    trust.end_trial(0);
    assert_eq!(trust.ask(), Leave::Refused, "another one tries");
    // The first one is not forgotten.
    assert_eq!(time_of(trust.failed(Some(0))), Some(20));
    assert_eq!(trust.failed(Some(1)), None, "that is known already");
    assert_eq!(trust.ask(), Leave::Refused);
    pass(20).await;
    assert_eq!((trust.ask(), trust.answered(Some(2))), (Leave::Trial(2), true));
}
