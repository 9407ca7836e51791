//! The score as an HTTP cache: 365 cases under `http_policy=rfc`, played in memory under a virtual
//! clock.
//!
//! They correspond to the public suite http-tests/cache-tests, under the same ids, so that its
//! scores can be compared (`cargo xtask caching` runs that suite itself). The failing cases are
//! listed in `expected.txt` with the reason; any difference, in either direction, fails the test.
//!
//! The files in `caching/` are written like this:
//!
//! ```text
//! case ID required|optimal|check [cases that must pass first]
//!   ask [METHOD [SUFFIX]]       a request for the case's resource
//!     > Name: value; …          its fields           >> text    its body
//!     < 206                     the origin's answer, if it gets a request: status (200),
//!     < Name: value; …          fields (`?Name`: optional for the client; `@60`: a date in 60 s),
//!     <> text                   body (the id), <1 an interim response, < break, < late SECONDS
//!     = cache|origin|etag|date  where the response must come from (the last two: validated)
//!     = 304, = any, = "text", = anything, = Name: value, = Name > 2, = has Name, = no Name,
//!     = not Name: value,
//!     = same Name (as in the first response), = sees Name: value (the origin), = method M,
//!     = 1 103 …, = no interim
//!   wait                        three seconds
//! each NAME …                   repeats the cases up to `end` for each row that begins with `+`
//! ```

mod case;
mod play;

use crate::support::{World, run_with};
use case::{Case, Kind};
use play::{is_right, play_all, score};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

fn cases() -> Vec<Case> {
    [include_str!("caching/freshness.txt"), include_str!("caching/storing.txt"), include_str!("caching/reusing.txt")]
        .into_iter()
        .flat_map(case::parse)
        .collect()
}

#[test]
fn there_are_as_many_cases_as_in_the_public_suite() {
    let cases = cases();
    let count = |kind| cases.iter().filter(|case| case.kind == kind).count();
    assert_eq!([Kind::Required, Kind::Optimal, Kind::Check].map(count), [160, 105, 100]);
    let mut ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), cases.len());
    assert!(cases.iter().flat_map(|case| &case.needs).all(|need| ids.binary_search(&need.as_str()).is_ok()));
}

/// The lines of a list of expected failures: an id and the reason.
fn expected(list: &str) -> BTreeMap<&str, &str> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"))).collect()
}

/// Plays all cases with these parameters besides `http_policy`.
fn played(change: impl FnOnce(&mut surface::parameter::Parameters)) -> (Vec<Case>, HashMap<String, String>) {
    let cases = cases();
    let wrong = Rc::new(std::cell::RefCell::default());
    let (played, result) = (cases.clone(), Rc::clone(&wrong));
    run_with(
        |parameters| {
            parameters.http_policy = "rfc".to_owned();
            change(parameters);
        },
        "",
        |world: Rc<World>| async move {
            let wrong = play_all(&world, &played).await;
            *result.borrow_mut() = wrong;
        },
    );
    (cases, wrong.take())
}

/// Fails unless exactly the listed cases fail.
fn compare(cases: &[Case], wrong: &HashMap<String, String>, list: &str) {
    let expected = expected(list);
    let mut differences = Vec::new();
    for case in cases {
        let is_expected = expected.contains_key(case.id.as_str());
        let why = wrong.get(&case.id).map_or("what it needs", String::as_str);
        match (is_right(cases, wrong, case), is_expected) {
            (false, false) => differences.push(format!("{:?} {} fails: {why}", case.kind, case.id)),
            (true, true) => differences.push(format!("{:?} {} comes out right and is listed", case.kind, case.id)),
            _ => {}
        }
    }
    let scores = [Kind::Required, Kind::Optimal, Kind::Check].map(|kind| score(cases, wrong, kind));
    assert!(differences.is_empty(), "{scores:?}\n{}", differences.join("\n"));
}

#[test]
fn the_score_is_the_one_that_is_expected() {
    let (cases, wrong) = played(|_| {});
    compare(&cases, &wrong, include_str!("caching/expected.txt"));
}

#[test]
fn with_all_leniencies_one_case_fails_that_the_rfc_forbids() {
    let (cases, wrong) = played(|parameters| {
        parameters.partial_leniency = true;
        parameters.unknown_transfer_encoding = true;
        parameters.vary_language_order = true;
        parameters.vary_language_select = true;
    });
    let scores = [Kind::Required, Kind::Optimal].map(|kind| score(&cases, &wrong, kind));
    assert_eq!(scores, [(160, 160), (104, 105)], "{wrong:?}");
}
