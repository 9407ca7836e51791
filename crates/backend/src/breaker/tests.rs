//! Opening, duration and closing of a backend's circuit breaker; under a paused clock.

use super::*;
use tokio::time::advance;

fn rules(fail_limit: u32, fail_ratio: u32) -> BreakerDefinition {
    BreakerDefinition { fail_limit, fail_ratio, ..BreakerDefinition::default() }
}

fn time_of(transition: Option<Transition>) -> Option<u64> {
    match transition {
        Some(Transition::Opened { time, .. }) => Some(time.as_secs()),
        Some(Transition::Closed) | None => None,
    }
}

fn trial_of(permit: Permit) -> Option<u64> {
    match permit {
        Permit::Trial(number) => Some(number),
        Permit::Granted | Permit::Refused => None,
    }
}

async fn pass(seconds: u64) {
    advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn consecutive_failures_open_the_breaker_and_a_success_resets_the_count() {
    let breaker = Breaker::new(rules(3, 0));
    for _ in 0..5 {
        assert_eq!(breaker.failed(None), None);
        assert_eq!(breaker.failed(None), None);
        breaker.succeeded();
    }
    assert!(breaker.failed(None).is_none() && breaker.failed(None).is_none());
    assert_eq!(breaker.ask(), Permit::Granted);
    assert_eq!(time_of(breaker.failed(None)), Some(10));
    assert_eq!((breaker.ask(), breaker.is_usable()), (Permit::Refused, false));
    assert_eq!(breaker.facts().open_for, Some(Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn one_trial_is_permitted_after_the_open_time_and_its_answer_closes_the_breaker() {
    let breaker = Breaker::new(rules(1, 0));
    assert_eq!(time_of(breaker.failed(None)), Some(10));
    pass(9).await;
    assert_eq!(breaker.ask(), Permit::Refused);
    pass(1).await;
    assert!(breaker.is_usable());
    assert_eq!(breaker.ask(), Permit::Trial(0));
    assert_eq!((breaker.ask(), breaker.is_usable()), (Permit::Refused, false), "one fetch tries, the others don't");
    breaker.end_trial(0);
    assert_eq!(breaker.ask(), Permit::Trial(1), "the first has found out nothing");
    breaker.end_trial(0);
    assert_eq!(breaker.ask(), Permit::Refused, "that was not the one that tries");
    assert!(!breaker.answered(None), "an answer to an older fetch is no news");
    assert!(breaker.answered(Some(1)));
    assert_eq!(breaker.ask(), Permit::Granted);
    breaker.end_trial(1);
    assert_eq!(breaker.ask(), Permit::Granted, "it has found out something");
}

#[tokio::test(start_paused = true)]
async fn open_time_doubles_until_the_backend_has_worked_for_that_long() {
    let breaker = Breaker::new(BreakerDefinition { aside_time_max: 35.0, ..rules(1, 0) });
    let mut trial = None;
    for time in [10, 20, 35, 35] {
        assert_eq!(time_of(breaker.failed(trial)), Some(time));
        pass(time).await;
        trial = trial_of(breaker.ask());
        assert!(trial.is_some());
    }
    assert!(breaker.answered(trial));
    pass(30).await;
    assert_eq!(time_of(breaker.failed(None)), Some(35), "it was good for less than it was aside");
    pass(35).await;
    assert!(breaker.answered(trial_of(breaker.ask())));
    pass(36).await;
    assert_eq!(time_of(breaker.failed(None)), Some(10));
}

#[tokio::test(start_paused = true)]
async fn failure_ratio_counts_within_the_window_and_from_the_minimum_of_fetches() {
    let breaker = Breaker::new(rules(0, 50));
    for _ in 0..4 {
        assert_eq!(breaker.failed(None), None);
        breaker.succeeded();
    }
    assert_eq!(breaker.facts().share, (4, 8));
    breaker.succeeded();
    assert!(matches!(breaker.failed(None), Some(Transition::Opened { share: (5, 10), .. })));

    let breaker = Breaker::new(rules(0, 50));
    for _ in 0..9 {
        assert_eq!(breaker.failed(None), None);
    }
    pass(11).await;
    assert_eq!(breaker.failed(None), None, "the others are too long ago");
    assert_eq!(breaker.facts().share, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn failure_of_an_older_fetch_does_not_extend_the_open_time() {
    let breaker = Breaker::new(rules(1, 0));
    assert!(breaker.failed(None).is_some());
    pass(5).await;
    assert_eq!(breaker.failed(None), None);
    assert_eq!(breaker.facts().open_for, Some(Duration::from_secs(5)));
}

#[tokio::test(start_paused = true)]
async fn only_trials_change_a_breaker_that_is_not_closed() {
    let breaker = Breaker::new(rules(1, 0));
    assert!(breaker.failed(None).is_some());
    pass(10).await;
    assert_eq!(breaker.ask(), Permit::Trial(0));
    assert_eq!(breaker.failed(None), None, "of a fetch from before");
    assert_eq!(breaker.ask(), Permit::Refused);
    assert!(breaker.answered(Some(0)), "the trial still decides");

    // A fetch without a connection has left before its failure is reported.
    assert!(breaker.failed(None).is_some());
    pass(20).await;
    assert_eq!(breaker.ask(), Permit::Trial(1));
    breaker.end_trial(1);
    assert_eq!(time_of(breaker.failed(Some(1))), Some(40));
}

#[tokio::test(start_paused = true)]
async fn trial_without_outcome_within_the_open_time_is_followed_by_another() {
    let breaker = Breaker::new(rules(1, 0));
    assert!(breaker.failed(None).is_some());
    pass(10).await;
    assert_eq!(breaker.ask(), Permit::Trial(0));
    pass(9).await;
    assert_eq!((breaker.ask(), breaker.is_usable()), (Permit::Refused, false));
    pass(1).await;
    assert!(breaker.is_usable());
    assert_eq!((breaker.ask(), breaker.ask()), (Permit::Trial(1), Permit::Refused));
    breaker.end_trial(0);
    assert_eq!(breaker.ask(), Permit::Refused, "another one tries");
    // The first opening still counts.
    assert_eq!(time_of(breaker.failed(Some(0))), Some(20));
    assert_eq!(breaker.failed(Some(1)), None, "that is known already");
    assert_eq!(breaker.ask(), Permit::Refused);
    pass(20).await;
    assert_eq!((breaker.ask(), breaker.answered(Some(2))), (Permit::Trial(2), true));
}
