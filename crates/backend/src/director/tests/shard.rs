//! Rings whose points are known from Varnish 7.1.1, and the members chosen from them.

use crate::details::Details;
use crate::director::choice::shard_parameters::{By, ParameterSet, Parameters, TaskParameters, Wanted, blob_key};
use crate::director::choice::{ClientName, Notes, ResolveContext};
use crate::director::kind::DirectorKind;
use crate::director::kind::shard::{Change, Shard};
use crate::director::table::Directors;
use crate::director::tests::empty_program;
use crate::health::AdminHealth;
use crate::memory::definition;
use crate::random::TestableRandom;
use std::sync::Arc;
use vcl_run::program::InstanceDefinition;
use vcl_run::value::DirectorId;

const VD: DirectorId = DirectorId(3);
const CREATED: f64 = 100.0;

/// Backends `s1` to `s3` and the shard director `vd`, without members.
fn table() -> Directors {
    let mut program = empty_program();
    program.backends = (1..=3).map(|number| definition(&format!("s{number}"))).collect();
    program.instances = vec![InstanceDefinition {
        name: "vd".to_owned(),
        vmod: "directors".to_owned(),
        class: "shard".to_owned(),
        director: Some(0),
    }];
    let directors = Directors::new("vcl1", &program, CREATED);
    assert!(directors.create(VD, DirectorKind::Shard(Shard::new("vd"))));
    directors
}

fn shard(directors: &Directors) -> &Shard {
    match directors.director(VD) {
        Some(DirectorKind::Shard(shard)) => shard,
        other => panic!("{other:?}"),
    }
}

fn add(backend: u32, ident: Option<&str>) -> Change {
    Change::Add { director: DirectorId(backend), ident: ident.map(str::to_owned), rampup: None, weight: 1.0 }
}

fn remove(backend: Option<u32>, ident: Option<&str>) -> Change {
    Change::Remove { director: backend.map(DirectorId), ident: ident.map(str::to_owned) }
}

/// Applies changes; returns the texts of all records.
fn reconfigure(directors: &Directors, changes: &[Change], replicas: u32) -> (bool, Vec<String>) {
    let notes = Notes::new();
    let done = directors.reconfigure_shard(VD, changes, replicas, &notes);
    (done, notes.take().into_iter().map(|note| note.text).collect())
}

fn three(replicas: u32) -> Directors {
    let directors = table();
    assert_eq!(reconfigure(&directors, &[add(0, None), add(1, None), add(2, None)], replicas), (true, Vec::new()));
    directors
}

fn by_key(key: u32) -> Parameters {
    Parameters { by: Some(By::Key(key)), ..Parameters::default() }
}

fn choose_at(directors: &Directors, parameters: &Parameters, now: f64) -> (String, Vec<String>) {
    let (random, notes) = (TestableRandom::new(1), Notes::new());
    let context = ResolveContext {
        now,
        random: &random,
        url: b"/",
        host: None,
        client: ClientName::default(),
        digest: None,
        is_for_cache: false,
        shard: None,
        notes: &notes,
    };
    let chosen = shard(directors).choose(directors, &parameters.completed(), &context);
    let name = chosen.map_or("none".to_owned(), |id| directors.name(id).into_owned());
    (name, notes.take().into_iter().map(|note| note.text).collect())
}

fn choose(directors: &Directors, parameters: &Parameters) -> String {
    choose_at(directors, parameters, 1_000.0).0
}

fn set(directors: &Directors, backend: u32, health: AdminHealth, now: f64) {
    directors.own_health(DirectorId(backend)).unwrap().set_admin(health, now);
}

/// The point and host in each record of the ring.
fn ring(records: &[String]) -> Vec<(String, String)> {
    records
        .iter()
        .filter_map(|record| {
            let (_, rest) = record.split_once("{point =")?;
            let (point, host) = rest.split_once(", host =")?;
            Some((point.trim().to_owned(), host.trim_end_matches(['}', '\n']).trim().to_owned()))
        })
        .collect()
}

#[test]
fn keys_fall_as_they_do_in_varnish() {
    let directors = three(25);
    for (key, expected) in [
        (0x68b9_02f7, "s1"),
        (0x39dc_4613, "s2"),
        (0xc779_3505, "s3"),
        (1, "s1"),
        (2_147_483_647, "s2"),
        (u32::MAX, "s3"),
    ] {
        assert_eq!(choose(&directors, &by_key(key)), expected, "{key:x}");
    }
}

#[test]
fn a_key_on_a_point_is_that_points_and_one_above_the_last_point_is_the_last_ones() {
    let directors = table();
    shard(&directors).set_debug(3);
    let changes = [
        add(0, None),
        Change::Add { director: DirectorId(1), ident: None, rampup: None, weight: 2.0 },
        Change::Add { director: DirectorId(2), ident: None, rampup: None, weight: 3.0 },
    ];
    let (done, records) = reconfigure(&directors, &changes, 25);
    assert!(done);
    let points = ring(&records);
    assert_eq!(points.len(), 25 + 50 + 75);
    let at = |place: usize| (points[place].0.as_str(), points[place].1.as_str());
    assert_eq!(at(0), ("238d0ef", "2"));
    assert_eq!(at(2), ("3b6b56a", "0"));
    assert_eq!(at(10), ("1112f910", "1"));
    assert_eq!(at(149), ("fc28e8d2", "2"));
    assert_eq!(records[0], "vmod_directors: shard: hashcircle[    0] = {point =  238d0ef, host =  2}\n");
    for (key, host) in [(0x564c_a84f, "idx 45 host 0"), (0x19cf_e9f3, "idx 16 host 1"), (u32::MAX, "idx 149 host 2")] {
        let (_, records) = choose_at(&directors, &by_key(key), 1_000.0);
        assert_eq!(records, [format!("vmod_directors: shard: lookup key {key:x} {host}")]);
    }
}

#[test]
fn members_come_and_go_and_keep_the_places_they_have_in_varnish() {
    let directors = table();
    shard(&directors).set_debug(2);
    let change = |changes: &[Change]| {
        let (done, records) = reconfigure(&directors, changes, 1);
        (done, ring(&records), records)
    };
    assert_eq!(change(&[]).2, Vec::<String>::new(), "nothing to do");
    let (done, _, records) = change(&[Change::Clear]);
    assert_eq!((done, records), (false, vec!["vmod_directors: shard vd: .reconfigure() no backends".to_owned()]));
    let (done, _, records) = change(&[add(0, None), add(1, None), add(0, None)]);
    assert!(done);
    assert_eq!(records[0], "vmod_directors: shard vd: backend s1 already exists - skipping");
    let all = [
        Change::Clear,
        add(0, None),
        add(0, Some("s1_1")),
        add(0, Some("s1_2")),
        add(1, None),
        add(1, Some("s1")),
        add(1, Some("s1_1")),
    ];
    let (_, points, records) = change(&all);
    let hosts = |points: &[(String, String)]| points.iter().map(|point| point.1.clone()).collect::<Vec<_>>();
    assert_eq!(hosts(&points), ["3", "2", "1", "0"]);
    assert_eq!(records[1], "vmod_directors: shard vd: backend s1/s1_1 already exists - skipping");
    let (_, points, _) = change(&[remove(None, Some("s1_2"))]);
    assert_eq!(hosts(&points), ["2", "1", "0"], "the last one moves into the free place");
    let (_, points, _) = change(&[remove(Some(0), None)]);
    assert_eq!(points, [("6e040182".to_owned(), "0".to_owned())]);
    let (done, _, records) = change(&[remove(Some(1), None)]);
    assert!(!done, "{records:?}");
    assert_eq!(choose(&directors, &by_key(1)), "none");
}

#[test]
fn new_members_fill_the_places_of_those_removed() {
    let directors = table();
    let idents = ["1", "2", "3", "4", "5", "6"];
    let mut changes: Vec<Change> = idents.iter().map(|ident| add(2, Some(ident))).collect();
    changes.extend([
        remove(Some(2), Some("3")),
        remove(Some(2), Some("4")),
        add(0, Some("3")),
        add(1, Some("4")),
        remove(None, Some("4")),
        remove(None, Some("3")),
        add(2, Some("3a")),
        add(2, Some("4a")),
    ]);
    assert!(reconfigure(&directors, &changes, 1).0);
    let Some(Details::Shard { members, .. }) = directors.director(VD).map(|kind| kind.details(&directors, 0.0)) else {
        panic!("no shard director");
    };
    let listed: Vec<_> = members.into_iter().map(|member| member.ident).collect();
    assert_eq!(listed, ["1", "2", "3a", "4a", "5", "6"]);
}

#[test]
fn the_sick_are_passed_over_unless_health_is_ignored() {
    let directors = three(25);
    let key = 1_756_955_383;
    assert_eq!(choose(&directors, &by_key(key)), "s1");
    set(&directors, 0, AdminHealth::Sick, 200.0);
    assert_eq!(choose(&directors, &by_key(key)), "s2");
    let ignoring = Parameters { healthy: Some(Wanted::Ignore), ..by_key(key) };
    assert_eq!(choose(&directors, &ignoring), "s1");
    let second = |healthy| Parameters { alt: Some(1), healthy: Some(healthy), ..by_key(key) };
    assert_eq!(choose(&directors, &second(Wanted::Chosen)), "s2", "s1 counts");
    assert_eq!(choose(&directors, &second(Wanted::All)), "s3", "s1 does not count");
    set(&directors, 1, AdminHealth::Sick, 200.0);
    assert_eq!(choose(&directors, &by_key(key)), "s3");
    set(&directors, 2, AdminHealth::Sick, 200.0);
    assert_eq!(choose(&directors, &by_key(key)), "none");
}

#[test]
fn too_high_an_alternative_is_limited_and_logged() {
    let directors = three(25);
    let wish = Parameters { alt: Some(7), ..by_key(1_756_955_383) };
    let (name, records) = choose_at(&directors, &wish, 1_000.0);
    assert_eq!(name, "s3");
    assert_eq!(records, ["vmod_directors: shard vd: parameter alt=7 limited to 2"]);
}

#[test]
fn a_member_that_became_healthy_ramps_up() {
    let directors = three(25);
    shard(&directors).set_rampup(15.0);
    let key = by_key(1_756_955_383);
    assert_eq!(choose_at(&directors, &key, CREATED + 1.0).0, "s1", "the alternative ramps up as well");
    set(&directors, 0, AdminHealth::Sick, CREATED + 20.0);
    set(&directors, 0, AdminHealth::Healthy, CREATED + 30.0);
    assert_eq!(choose_at(&directors, &key, CREATED + 30.001).0, "s2");
    let without = Parameters { rampup: Some(false), ..key.clone() };
    assert_eq!(choose_at(&directors, &without, CREATED + 30.001).0, "s1");
    assert_eq!(choose_at(&directors, &key, CREATED + 46.0).0, "s1");
}

#[test]
fn warm_up_sends_some_to_the_next_member() {
    let directors = three(25);
    let wish = |warmup| Parameters { warmup: Some(warmup), ..by_key(1_756_955_383) };
    assert_eq!(choose(&directors, &wish(1.0)), "s2");
    assert_eq!(choose(&directors, &wish(0.0)), "s1");
    shard(&directors).set_warmup(0.999_999);
    assert_eq!(choose(&directors, &wish(-1.0)), "s2");
}

#[test]
fn layers_of_parameters_hide_each_other() {
    let directors = three(25);
    let shard = shard(&directors);
    let associated = Arc::new(ParameterSet::new(7, "p"));
    associated.set(Parameters { alt: Some(1), ..by_key(1) });
    assert_eq!(shard.parameters(VD, None).by, Some(By::Hash));
    shard.associate(Some(Arc::clone(&associated)));
    assert_eq!(shard.parameters(VD, None).by, Some(By::Key(1)));
    let mut task = TaskParameters::default();
    task.change_set(7, by_key(2));
    let parameters = shard.parameters(VD, Some(&task));
    assert_eq!((parameters.by, parameters.alt), (Some(By::Key(2)), Some(1)));
    assert_eq!(shard.parameters(VD, None).by, Some(By::Key(1)), "other tasks see nothing of it");
    let other = Arc::new(ParameterSet::new(8, "q"));
    other.set(by_key(3));
    task.director_mut(VD).set = Some(Arc::clone(&other));
    assert_eq!(shard.parameters(VD, Some(&task)).by, Some(By::Key(3)));
    task.director_mut(VD).values = by_key(4);
    assert_eq!(shard.parameters(VD, Some(&task)).by, Some(By::Key(4)));
    task.clear();
    assert_eq!(shard.parameters(VD, Some(&task)).by, Some(By::Key(1)));
}

#[test]
fn keys_come_from_blobs_hashes_and_urls() {
    assert_eq!(blob_key(b"\x01"), 1);
    assert_eq!(blob_key(b"\x56\x4c\xa8\x4f\xff"), 0x564c_a84f);
    let (random, notes) = (TestableRandom::new(1), Notes::new());
    let task = TaskParameters::default();
    let context = |shard| ResolveContext {
        now: 1.0,
        random: &random,
        url: b"",
        host: None,
        client: ClientName::default(),
        digest: Some(&[9; 32]),
        is_for_cache: false,
        shard,
        notes: &notes,
    };
    assert_eq!(context(Some(&task)).shard_key(By::Hash), 0x0909_0909);
    assert_eq!(context(None).shard_key(By::Hash), 0x55b8_5278, "on the client side the hash of the URL, here nothing");
    assert_eq!(context(Some(&task)).shard_key(By::Url), 0x55b8_5278);
}

#[test]
fn rings_of_directors_and_of_too_many_points_are_refused() {
    let directors = table();
    let (done, records) = reconfigure(&directors, &[add(3, None)], 67);
    assert!(!done);
    assert_eq!(records[0], "vmod_directors: shard vd: backend vd leads back to it and cannot be added");
    let (done, records) = reconfigure(&directors, &[add(0, None)], u32::MAX);
    assert!(!done);
    assert_eq!(records, ["vmod_directors: shard vd: .reconfigure() 4294967295 points are too many"]);
}
