//! The choice of members: which one, in what order, and at what frequency.

mod shard;

use crate::backend::Backend;
use crate::director::choice::{ClientName, Member, Notes, ResolveContext, hash_text};
use crate::director::kind::DirectorKind;
use crate::director::kind::dynamic::{Dynamic, GENERATION_MAX};
use crate::director::kind::fallback::Fallback;
use crate::director::kind::hash::{Hash, HashKey};
use crate::director::kind::random::Random;
use crate::director::kind::round_robin::RoundRobin;
use crate::director::table::resolve::NoBackend;
use crate::director::table::{Directors, MemberError};
use crate::health::AdminHealth;
use crate::memory::definition;
use crate::random::TestableRandom;
use std::collections::HashMap;
use std::sync::Arc;
use vcl_run::program::{Endpoint, InstanceDefinition, Program};
use vcl_run::value::DirectorId;

/// Backends `b0` … and directors `d0` …; none of the directors is made yet.
pub(crate) fn table(backends: usize, directors: usize) -> Directors {
    let mut program = empty_program();
    program.backends = (0..backends).map(|number| definition(&format!("b{number}"))).collect();
    program.instances = (0..directors)
        .map(|number| InstanceDefinition {
            name: format!("d{number}"),
            vmod: "directors".to_owned(),
            class: String::new(),
            director: Some(number as u32),
        })
        .collect();
    program.default_backend = (backends > 0).then_some(0);
    Directors::new("vcl1", &program, 100.0)
}

pub(crate) fn empty_program() -> Program {
    Program { syntax: 41, ..Program::default() }
}

pub(crate) fn make(directors: &Directors, index: u32, kind: DirectorKind, members: &[(DirectorId, f64)]) -> DirectorId {
    let id = directors.object_id(index);
    assert!(directors.create(id, kind));
    for (director, weight) in members {
        directors.add_member(id, Member { director: *director, weight: *weight }).unwrap();
    }
    id
}

fn backends(count: u32) -> Vec<(DirectorId, f64)> {
    (0..count).map(|number| (DirectorId(number), 1.0)).collect()
}

fn sick(directors: &Directors, backend: u32) {
    directors.own_health(DirectorId(backend)).unwrap().set_admin(AdminHealth::Sick, 200.0);
}

fn well(directors: &Directors, backend: u32) {
    directors.own_health(DirectorId(backend)).unwrap().set_admin(AdminHealth::Auto, 300.0);
}

fn choose(directors: &Directors, id: DirectorId, random: &TestableRandom) -> String {
    let notes = Notes::new();
    let context = ResolveContext {
        now: 400.0,
        random,
        url: b"/",
        host: None,
        client: ClientName::default(),
        digest: None,
        is_for_cache: false,
        shard: None,
        notes: &notes,
    };
    match directors.resolve(Some(id), &context) {
        Ok(resolved) => resolved.backend.name().to_owned(),
        Err(error) => error.text(),
    }
}

fn sequence(directors: &Directors, id: DirectorId, count: usize) -> Vec<String> {
    let random = TestableRandom::new(1);
    (0..count).map(|_| choose(directors, id, &random)).collect()
}

#[test]
fn round_robin_takes_the_healthy_members_in_turn() {
    let directors = table(3, 1);
    let id = make(&directors, 0, DirectorKind::RoundRobin(RoundRobin::default()), &backends(3));
    assert_eq!(sequence(&directors, id, 4), ["b0", "b1", "b2", "b0"]);
    sick(&directors, 1);
    assert_eq!(sequence(&directors, id, 3), ["b2", "b0", "b2"]);
    sick(&directors, 0);
    sick(&directors, 2);
    assert_eq!(sequence(&directors, id, 1), ["Director d0 returned no backend"]);
    assert!(!directors.is_healthy(id));
}

#[test]
fn one_of_two_equal_members_is_removed_at_a_time() {
    let directors = table(2, 1);
    let id = make(
        &directors,
        0,
        DirectorKind::RoundRobin(RoundRobin::default()),
        &[(DirectorId(0), 1.0), (DirectorId(1), 1.0), (DirectorId(0), 1.0)],
    );
    directors.remove_member(id, DirectorId(0));
    assert_eq!(sequence(&directors, id, 2), ["b1", "b0"]);
    directors.remove_member(id, DirectorId(0));
    directors.remove_member(id, DirectorId(0));
    assert_eq!(sequence(&directors, id, 2), ["b1", "b1"]);
}

#[test]
fn fallback_takes_the_first_healthy_member() {
    let directors = table(3, 1);
    let id = make(&directors, 0, DirectorKind::Fallback(Fallback::new(false)), &backends(3));
    assert_eq!(sequence(&directors, id, 2), ["b0", "b0"]);
    sick(&directors, 0);
    assert_eq!(sequence(&directors, id, 1), ["b1"]);
    well(&directors, 0);
    assert_eq!(sequence(&directors, id, 1), ["b0"]);
}

#[test]
fn a_sticky_fallback_stays_until_its_member_is_sick() {
    let directors = table(3, 1);
    let id = make(&directors, 0, DirectorKind::Fallback(Fallback::new(true)), &backends(3));
    assert_eq!(sequence(&directors, id, 1), ["b0"]);
    sick(&directors, 0);
    assert_eq!(sequence(&directors, id, 1), ["b1"]);
    well(&directors, 0);
    assert_eq!(sequence(&directors, id, 1), ["b1"]);
    directors.remove_member(id, DirectorId(0));
    assert_eq!(sequence(&directors, id, 1), ["b1"], "removing another does not move it");
    sick(&directors, 1);
    assert_eq!(sequence(&directors, id, 1), ["b2"]);
    sick(&directors, 2);
    well(&directors, 1);
    assert_eq!(sequence(&directors, id, 1), ["b1"], "it starts over at the beginning");
}

#[test]
fn random_follows_the_seed_and_the_weights() {
    let directors = table(3, 1);
    let id = make(
        &directors,
        0,
        DirectorKind::Random(Random::default()),
        &[(DirectorId(0), 1.0), (DirectorId(1), 2.0), (DirectorId(2), 1.0)],
    );
    // Seed 1 gives these fractions: 0.656, 0.763, 0.039, 0.068, 0.292, 0.363.
    assert_eq!(sequence(&directors, id, 6), ["b1", "b2", "b0", "b0", "b1", "b1"]);
    let mut shares: HashMap<String, usize> = HashMap::new();
    for name in sequence(&directors, id, 10_000) {
        *shares.entry(name).or_default() += 1;
    }
    for (name, expected) in [("b0", 2500.0), ("b1", 5000.0), ("b2", 2500.0)] {
        let share = shares[name] as f64;
        assert!((share - expected).abs() < 200.0, "{name}: {share}");
    }
    sick(&directors, 1);
    assert!(sequence(&directors, id, 100).iter().all(|name| name != "b1"));
}

#[test]
fn weights_of_zero_and_below_get_nothing() {
    let directors = table(3, 1);
    let id = make(
        &directors,
        0,
        DirectorKind::Random(Random::default()),
        &[(DirectorId(0), 0.0), (DirectorId(1), 1.0), (DirectorId(2), -3.0)],
    );
    assert!(sequence(&directors, id, 100).iter().all(|name| name == "b1"));
    sick(&directors, 1);
    assert_eq!(sequence(&directors, id, 1), ["Director d0 returned no backend"]);
}

#[test]
fn hash_keeps_a_text_at_its_member() {
    let directors = table(2, 1);
    let id = make(&directors, 0, DirectorKind::Hash(Hash::default()), &[(DirectorId(0), 1.0), (DirectorId(1), 9.0)]);
    let Some(DirectorKind::Hash(hash)) = directors.director(id) else { panic!("not a hash director") };
    let (random, notes) = (TestableRandom::new(1), Notes::new());
    let context = ResolveContext {
        now: 1.0,
        random: &random,
        url: b"/",
        host: None,
        client: ClientName::default(),
        digest: None,
        is_for_cache: false,
        shard: None,
        notes: &notes,
    };
    let chosen = |text: &str| hash.choose(&directors, &context, text.as_bytes()).unwrap();
    let mut counts = [0; 2];
    for number in 0..2000 {
        let text = format!("/object/{number}");
        assert_eq!(chosen(&text), chosen(&text));
        counts[chosen(&text).0 as usize] += 1;
    }
    assert!((150..250).contains(&counts[0]), "{counts:?}");
    sick(&directors, 1);
    assert!((0..100).all(|number| chosen(&format!("{number}")) == DirectorId(0)));
    // The SHA-256 digest of the empty string ends in 7852b855.
    assert_eq!(hash_text(b""), u32::from_le_bytes([0x78, 0x52, 0xb8, 0x55]));
}

#[test]
fn directors_nest_and_cannot_contain_themselves() {
    let directors = table(3, 3);
    let inner = make(&directors, 0, DirectorKind::RoundRobin(RoundRobin::default()), &backends(2));
    let outer =
        make(&directors, 1, DirectorKind::Fallback(Fallback::new(false)), &[(inner, 1.0), (DirectorId(2), 1.0)]);
    assert_eq!(sequence(&directors, outer, 3), ["b0", "b1", "b0"]);
    sick(&directors, 0);
    sick(&directors, 1);
    assert_eq!(sequence(&directors, outer, 1), ["b2"]);
    for (director, member) in [(inner, outer), (inner, inner), (outer, outer)] {
        let member = Member { director: member, weight: 1.0 };
        assert_eq!(directors.add_member(director, member), Err(MemberError::Ring));
    }
    let never_made = Member { director: directors.object_id(2), weight: 1.0 };
    assert_eq!(directors.add_member(inner, never_made), Err(MemberError::Unknown));
    directors.own_health(inner).unwrap().set_admin(AdminHealth::Healthy, 500.0);
    assert_eq!(directors.health(outer), (true, 500.0));
    assert_eq!(sequence(&directors, outer, 1), ["Director d1 returned no backend"], "the operator was wrong");
}

#[test]
fn a_chain_of_directors_resolves_or_is_refused() {
    let depth = surface::limits::DIRECTOR_DEPTH_MAX as u32;
    let directors = table(1, depth as usize + 3);
    let mut member = DirectorId(0);
    for index in 0..=depth {
        member = make(&directors, index, DirectorKind::Fallback(Fallback::new(false)), &[(member, 1.0)]);
    }
    assert!(directors.is_healthy(member));
    assert_eq!(sequence(&directors, member, 1), ["b0"]);
    let above = make(&directors, depth + 1, DirectorKind::Fallback(Fallback::new(false)), &[]);
    assert_eq!(directors.add_member(above, Member { director: member, weight: 1.0 }), Err(MemberError::Ring));
    // The chain is made longer at its far end, where this can't be detected: no endless loop, no
    // backend.
    let below = make(&directors, depth + 2, DirectorKind::Fallback(Fallback::new(false)), &[(DirectorId(0), 1.0)]);
    directors.remove_member(directors.object_id(0), DirectorId(0));
    directors.add_member(directors.object_id(0), Member { director: below, weight: 1.0 }).unwrap();
    assert!(!directors.is_healthy(member));
    assert!(sequence(&directors, member, 1)[0].ends_with("returned no backend"));
}

#[test]
fn a_backend_without_address_counts_as_none() {
    let mut program = empty_program();
    let mut none = definition("n");
    none.endpoint = Endpoint::None;
    program.backends = vec![none, definition("b")];
    program.default_backend = Some(0);
    let directors = Directors::new("vcl1", &program, 1.0);
    let random = TestableRandom::new(1);
    let notes = Notes::new();
    let context = ResolveContext {
        now: 1.0,
        random: &random,
        url: b"/",
        host: None,
        client: ClientName::default(),
        digest: None,
        is_for_cache: false,
        shard: None,
        notes: &notes,
    };
    for id in [None, Some(DirectorId(0)), Some(DirectorId(9))] {
        assert_eq!(directors.resolve(id, &context).unwrap_err(), NoBackend::None);
    }
    assert_eq!(directors.default_director(), None);
    assert_eq!((&*directors.name(DirectorId(0)), &*directors.name(DirectorId(1))), ("", "b"));
    assert_eq!(directors.lookup("b"), Some(DirectorId(1)));
    assert_eq!(directors.lookup("n"), None);
    assert_eq!(directors.ids().collect::<Vec<_>>(), [DirectorId(1)]);
}

#[test]
fn a_backend_in_trouble_is_left_out_for_that_digest_where_the_dialect_has_saint_mode() {
    let (random, notes) = (TestableRandom::new(1), Notes::new());
    let asked = |digest: &'static [u8; 32], is_for_cache| ResolveContext {
        now: 400.0,
        random: &random,
        url: b"/",
        host: None,
        client: ClientName::default(),
        digest: Some(digest),
        is_for_cache,
        shard: None,
        notes: &notes,
    };
    for (syntax, expected) in [(30, "b1"), (41, "b0")] {
        let mut program = empty_program();
        program.syntax = syntax;
        program.backends = vec![definition("b0"), definition("b1")];
        program.instances = vec![InstanceDefinition {
            name: "d0".to_owned(),
            vmod: "directors".to_owned(),
            class: String::new(),
            director: Some(0),
        }];
        let directors = Directors::new("vcl1", &program, 100.0);
        let id = make(&directors, 0, DirectorKind::Fallback(Fallback::new(false)), &backends(2));
        let name =
            |context: &ResolveContext<'_>| directors.resolve(Some(id), context).unwrap().backend.name().to_owned();
        directors.backends()[0].troubles().add(&[7; 32], 500.0, 400.0);
        assert_eq!(name(&asked(&[7; 32], true)), expected);
        assert_eq!(name(&asked(&[8; 32], true)), "b0", "another request");
        assert_eq!(name(&asked(&[7; 32], false)), "b0", "passed");
        directors.own_health(DirectorId(0)).unwrap().set_admin(AdminHealth::Healthy, 410.0);
        assert_eq!(name(&asked(&[7; 32], true)), "b0", "the operator knows better");
    }
}

#[test]
fn a_backend_made_at_run_time_is_replaced_whole_and_its_old_id_is_of_nothing() {
    let directors = table(1, 1);
    let object = directors.object_id(0);
    assert!(directors.create(object, DirectorKind::Dynamic(Dynamic::new())));
    assert!(!directors.exists(directors.current_id(object)), "nothing made yet");
    let made = |name: &str| Backend::new("vcl1", definition(name), None, 100.0);
    let dynamic = directors.dynamic(object).unwrap();
    let first = made("d0");
    dynamic.replace(Arc::clone(&first));
    let old = directors.current_id(object);
    let random = TestableRandom::new(1);
    assert_eq!(directors.id_of(&first), Some(old));
    assert!(directors.is_healthy(old));
    assert_eq!(choose(&directors, old, &random), "d0");
    dynamic.replace(made("d0"));
    let new = directors.current_id(object);
    assert_ne!(new, old);
    assert!(!directors.is_healthy(old) && directors.is_healthy(new));
    assert_eq!(choose(&directors, old, &random), "No backend");
    assert_eq!((&*directors.name(old), &*directors.name(new)), ("d0", "d0"));
    assert_eq!(directors.id_of(&first), None);
    assert_eq!(directors.ids().collect::<Vec<_>>(), [DirectorId(0), new]);
    assert_eq!(directors.run_time_backends().len(), 1);
    directors.own_health(new).unwrap().set_admin(AdminHealth::Sick, 200.0);
    assert!(!directors.is_healthy(new));
}

#[test]
fn generations_begin_again_without_touching_other_ids() {
    let directors = table(1, 2);
    let object = directors.object_id(0);
    directors.create(object, DirectorKind::Dynamic(Dynamic::new()));
    let dynamic = directors.dynamic(object).unwrap();
    let backend = Backend::new("vcl1", definition("d0"), None, 100.0);
    for _ in 0..GENERATION_MAX + 3 {
        dynamic.replace(Arc::clone(&backend));
        assert!(directors.any_backend(directors.current_id(object)).is_some());
    }
    assert_eq!(dynamic.generation(), 3);
}

#[test]
fn hash_directors_of_the_old_dialects_choose_when_they_are_used() {
    let directors = table(8, 4);
    let by = |number, key| make(&directors, number, DirectorKind::Hash(Hash::by(key, None)), &backends(8));
    let (given, digest, client) = (by(0, HashKey::Given), by(1, HashKey::Digest), by(2, HashKey::Client));
    let random = TestableRandom::new(1);
    let notes = Notes::new();
    let chosen = |id, digest: u8, client: ClientName<'_>| {
        let digest = [digest * 16; 32];
        let context = ResolveContext {
            now: 1.0,
            random: &random,
            url: b"/",
            host: None,
            client,
            digest: Some(&digest),
            is_for_cache: false,
            shard: None,
            notes: &notes,
        };
        directors.resolve(Some(id), &context).ok().map(|resolved| resolved.backend.name().to_owned())
    };
    fn named(identity: &[u8]) -> ClientName<'_> {
        ClientName { identity: Some(identity), address: Some("192.0.2.1".parse().unwrap()) }
    }
    assert_eq!(chosen(given, 1, named(b"one")), None);
    let by_digest: Vec<_> = (0..16).map(|key| chosen(digest, key, named(b"one"))).collect();
    assert!(by_digest.iter().any(|name| *name != by_digest[0]), "other objects, other members");
    assert_eq!(chosen(digest, 3, named(b"two")), by_digest[3], "whoever asks");
    let by_client: Vec<_> = (b'a'..b'q').map(|key| chosen(client, 1, named(&[key]))).collect();
    assert!(by_client.iter().any(|name| *name != by_client[0]), "other clients, other members");
    assert_eq!(chosen(client, 9, named(b"b")), by_client[1], "whatever they ask for");
    let address = |text: &str| ClientName { identity: None, address: Some(text.parse().unwrap()) };
    assert_eq!(chosen(client, 1, address("192.0.2.7")), chosen(client, 1, named(b"192.0.2.7")));

    let pair = make(&directors, 3, DirectorKind::Hash(Hash::by(HashKey::Client, None)), &backends(2));
    let of_pair: Vec<_> = [&b"127.0.0.1"[..], b"foo", b"baz"].map(|name| chosen(pair, 1, named(name))).into();
    assert_eq!(of_pair, [Some("b1".to_owned()), Some("b0".to_owned()), Some("b1".to_owned())], "as in 3.0");
}
