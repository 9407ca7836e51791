//! The selections of patterns, and the facts of each kind.

use super::*;
use crate::director::kind::fallback::Fallback;
use crate::director::kind::hash::Hash;
use crate::director::kind::random::Random;
use crate::director::kind::round_robin::RoundRobin;
use crate::director::tests::{empty_program, make};
use crate::memory::{definition, probe};
use vcl_run::program::InstanceDefinition;

const NOW: f64 = 1_795_202_223.485;

/// b1 and b2 with probes, b3 without; one director of each kind, and an empty one.
fn loaded(vcl: &str) -> Directors {
    let mut program = empty_program();
    program.probes = vec![probe(1, 4, 1), probe(2, 8, 3)];
    program.backends = ["b1", "b2", "b3"].map(definition).to_vec();
    program.backends[0].probe = Some(0);
    program.backends[1].probe = Some(1);
    program.instances = ["rr", "fb", "rnd", "hs", "empty"]
        .iter()
        .enumerate()
        .map(|(index, name)| InstanceDefinition {
            name: (*name).to_owned(),
            vmod: "directors".to_owned(),
            class: String::new(),
            director: Some(index as u32),
        })
        .collect();
    let directors = Directors::new(vcl, &program, NOW);
    let [b1, b2, b3] = [0, 1, 2].map(DirectorId);
    let rr = make(&directors, 0, DirectorKind::RoundRobin(RoundRobin::default()), &[(b1, 1.0), (b2, 1.0)]);
    make(&directors, 1, DirectorKind::Fallback(Fallback::new(false)), &[(b3, 1.0), (b2, 1.0), (rr, 1.0)]);
    make(&directors, 2, DirectorKind::Random(Random::default()), &[(b1, 10.0), (b2, 3.0), (b3, 2.0)]);
    make(&directors, 3, DirectorKind::Hash(Hash::default()), &[(b1, 10.0)]);
    make(&directors, 4, DirectorKind::RoundRobin(RoundRobin::default()), &[]);
    directors
}

#[test]
fn patterns_without_a_dot_mean_the_active_vcl() {
    let (one, two) = (loaded("vcl1"), loaded("vcl2"));
    let names = |pattern: Option<&str>| -> Vec<String> {
        matching(pattern, &[&one, &two], Some("vcl2")).iter().map(Item::display_name).collect()
    };
    assert_eq!(names(Some("b1")), ["vcl2.b1"]);
    assert_eq!(names(Some("vcl1.b*")), ["vcl1.b1", "vcl1.b2", "vcl1.b3"]);
    assert_eq!(names(Some("*.b1")), ["vcl1.b1", "vcl2.b1"]);
    assert_eq!(names(None).len(), 8);
    assert!(names(Some("nope")).is_empty());
}

fn details(directors: &Directors, name: &str) -> Details {
    list(Some(name), &[directors], Some("vcl1"), true, NOW).remove(0).details.unwrap()
}

#[test]
fn each_kind_has_its_details() {
    let directors = loaded("vcl1");
    assert!(matches!(details(&directors, "b1"), Details::Probe(window) if (window.good(), window.size()) == (1, 4)));
    assert!(matches!(details(&directors, "b3"), Details::Nothing));
    assert!(matches!(details(&directors, "hs"), Details::Hash));
    let member = |name: &str, is_healthy, weight| MemberFacts { name: name.to_owned(), is_healthy, weight };
    let Details::RoundRobin(members) = details(&directors, "rr") else { panic!() };
    assert_eq!(members, [member("b1", true, 1.0), member("b2", false, 0.0)]);
    let Details::Fallback { is_sticky, current, members } = details(&directors, "fb") else { panic!() };
    assert_eq!((is_sticky, current), (false, 0));
    assert_eq!(members, [member("b3", true, 1.0), member("b2", false, 0.0), member("rr", true, 1.0)]);
    let Details::Weighted { total, members } = details(&directors, "rnd") else { panic!() };
    assert_eq!(total, 12.0);
    assert_eq!(members, [member("b1", true, 10.0), member("b2", false, 0.0), member("b3", true, 2.0)]);
    assert!(list(Some("rr"), &[&directors], Some("vcl1"), false, NOW)[0].details.is_none());
}

#[test]
fn an_empty_pattern_shows_all_and_changes_nothing() {
    let directors = loaded("vcl1");
    assert_eq!(list(Some(""), &[&directors], Some("vcl1"), false, NOW).len(), 8);
    assert_eq!(set_health("", AdminHealth::Sick, &[&directors], Some("vcl1"), NOW), 0);
    assert_eq!(set_health("*", AdminHealth::Sick, &[&directors], Some("vcl1"), NOW), 8);
}
