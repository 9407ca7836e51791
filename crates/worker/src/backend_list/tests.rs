//! The lists, compared with what a stock varnishd 7.1.1 printed for the same VCL.

use super::*;
use backend::DirectorKind;
use backend::director::choice::Member;
use backend::director::kind::fallback::Fallback;
use backend::director::kind::hash::Hash;
use backend::director::kind::random::Random;
use backend::director::kind::round_robin::RoundRobin;
use backend::dns_names::settings::MakerSettings;
use backend::listing::{Details, MemberFacts, ShardMemberFacts};
use std::sync::Arc;
use vcl_run::program::{
    BackendDefinition, BreakerDefinition, Endpoint, FollowedName, InstanceDefinition, ProbeDefinition, Program,
};
use vcl_run::value::DirectorId;

const NOW: f64 = 1_795_202_223.485;

/// b1 and b2 with probes, b3 without; one director of each kind, and an empty one.
fn loaded(vcl: &str) -> Directors {
    let mut program = Program { syntax: 41, ..Program::default() };
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

fn definition(name: &str) -> BackendDefinition {
    BackendDefinition {
        host: "192.0.2.1".to_owned(),
        port: "80".to_owned(),
        host_header: "origin.example".to_owned(),
        ..BackendDefinition::new(name, Endpoint::Ip { v4: Some(([192, 0, 2, 1], 80).into()), v6: None })
    }
}

fn probe(initial: u32, window: u32, threshold: u32) -> ProbeDefinition {
    ProbeDefinition {
        name: String::new(),
        url: "/".to_owned(),
        request: String::new(),
        expected_response: 200,
        timeout: 2.0,
        interval: 5.0,
        initial,
        window,
        threshold,
        expect_close: true,
    }
}

fn make(directors: &Directors, index: u32, kind: DirectorKind, members: &[(DirectorId, f64)]) -> DirectorId {
    let id = directors.object_id(index);
    assert!(directors.create(id, kind));
    for (director, weight) in members {
        directors.add_member(id, Member { director: *director, weight: *weight }).unwrap();
    }
    id
}

fn list(words: &[&str], directors: &Directors) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    backend_list(&words, false, &[directors], Some("vcl1"), NOW)
}

#[test]
fn the_list_is_laid_out_as_varnish_does() {
    let expected = "\
Backend name   Admin      Probe    Health     Last change
vcl1.b1        probe      1/4      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.b2        probe      2/8      sick       Fri, 20 Nov 2026 19:17:03 GMT
vcl1.b3        healthy    0/0      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.rr        probe      1/2      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.fb        probe      2/3      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.rnd       probe      2/3      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.hs        healthy    0/0      healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.empty     probe      0/0      sick       Fri, 20 Nov 2026 19:17:03 GMT
";
    assert_eq!(list(&[], &loaded("vcl1")).unwrap(), expected);
}

#[test]
fn details_show_windows_and_members() {
    let expected = "\
Backend name   Admin      Probe      Health     Last change
vcl1.b1        probe      1/4        healthy    Fri, 20 Nov 2026 19:17:03 GMT
 Current states  good:  1 threshold:  1 window:  4
  Average response time of good probes: 0.000000
  Oldest ================================================== Newest
  ---------------------------------------------------------------H Happy

vcl1.b2        probe      2/8        sick       Fri, 20 Nov 2026 19:17:03 GMT
 Current states  good:  2 threshold:  3 window:  8
  Average response time of good probes: 0.000000
  Oldest ================================================== Newest
  --------------------------------------------------------------HH Happy

vcl1.b3        healthy    0/0        healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.rr        probe      1/2        healthy    Fri, 20 Nov 2026 19:17:03 GMT

               Backend    Weight     Health
               b1         -          healthy
               b2         -          sick

vcl1.fb        probe      2/3        healthy    Fri, 20 Nov 2026 19:17:03 GMT

               Backend    Current    Health
               b3         *          healthy
               b2                    sick
               rr                    healthy

vcl1.rnd       probe      2/3        healthy    Fri, 20 Nov 2026 19:17:03 GMT

               Backend    Weight     Health
               b1          83.33%    healthy
               b2           0.00%    sick
               b3          16.67%    healthy

vcl1.hs        healthy    0/0        healthy    Fri, 20 Nov 2026 19:17:03 GMT
vcl1.empty     probe      0/0        sick       Fri, 20 Nov 2026 19:17:03 GMT

               Backend    Weight     Health

";
    assert_eq!(list(&["-p"], &loaded("vcl1")).unwrap(), expected);
}

#[test]
fn json_is_json_and_has_the_fields_of_each_kind() {
    let directors = loaded("vcl1");
    let text = list(&["-jp"], &directors).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0], 3);
    assert_eq!(json[1], serde_json::json!(["backend.list", "-jp"]));
    let items = &json[3];
    assert_eq!(items.as_object().unwrap().len(), 8);
    assert_eq!(items["vcl1.b2"]["type"], "backend");
    assert_eq!(items["vcl1.b2"]["probe_message"], serde_json::json!([2, 8, "sick"]));
    assert_eq!(items["vcl1.b2"]["probe_details"]["bits_H"], 3);
    assert_eq!(items["vcl1.b3"]["probe_details"], serde_json::json!({}));
    assert_eq!(items["vcl1.rr"]["type"], "round-robin");
    assert_eq!(items["vcl1.fb"]["probe_details"]["sticky"], false);
    assert_eq!(items["vcl1.fb"]["probe_details"]["backends"]["b3"]["current"], true);
    assert_eq!(items["vcl1.rnd"]["probe_details"]["total_weight"], 12.0);
    assert_eq!(items["vcl1.empty"]["probe_details"], serde_json::json!({ "backends": {} }));
    assert_eq!(items["vcl1.empty"]["last_change"], NOW);

    let text = list(&["-j", "nope"], &directors).unwrap();
    assert_eq!(text, "[ 3, [\"backend.list\", \"-j\", \"nope\"], 1795202223.485,\n  {\n  \n  }\n]\n");
    let named = backend_list(&[], true, &[&directors], Some("vcl1"), NOW).unwrap();
    assert!(named.starts_with("[ 3, [\"backend.list\", \"-j\"], "), "{named}");
}

#[test]
fn one_json_object_is_written_as_varnish_writes_it() {
    let expected = "[ 3, [\"backend.list\", \"-j\", \"b3\"], 1795202223.485,
  {
    \"vcl1.b3\": {
      \"type\": \"backend\",
      \"admin_health\": \"healthy\",
      \"probe_message\": [0, 0, \"healthy\"],
      \"last_change\": 1795202223.485
    }
  }
]
";
    assert_eq!(list(&["-j", "b3"], &loaded("vcl1")).unwrap(), expected);
}

#[test]
fn wrong_words_are_named() {
    let directors = loaded("vcl1");
    assert_eq!(list(&["-q"], &directors), Err("Invalid flag q".to_owned()));
    assert_eq!(list(&["a", "b"], &directors), Err("Too many arguments".to_owned()));
    let set = |pattern, state| set_health(pattern, state, &[&directors], Some("vcl1"), NOW + 60.0);
    assert_eq!(set("nope", "sick"), Err("No Backends matches".to_owned()));
    assert_eq!(set("", "sick"), Err("No Backends matches".to_owned()));
    assert_eq!(set("nope", "sic"), Err("Invalid state sic".to_owned()));
}

#[test]
fn the_operators_word_shows_as_admin_and_counts_for_directors() {
    let directors = loaded("vcl1");
    set_health("b3", "sick", &[&directors], Some("vcl1"), NOW + 60.0).unwrap();
    let text = list(&[], &directors).unwrap();
    assert!(text.contains("vcl1.b3        sick       0/0      healthy    Fri, 20 Nov 2026 19:18:03 GMT\n"), "{text}");
    assert!(text.contains("vcl1.fb        probe      1/3      healthy    Fri, 20 Nov 2026 19:18:03 GMT\n"), "{text}");
    set_health("*.*", "auto", &[&directors], None, NOW + 90.0).unwrap();
    assert!(
        list(&["b3"], &directors).unwrap().contains("healthy    0/0      healthy    Fri, 20 Nov 2026 19:18:33 GMT")
    );
}

fn row(name: &str, kind: &'static str, admin: AdminHealth, details: Details) -> Listed {
    let (name, details) = (name.to_owned(), Some(details));
    Listed { name, kind, admin, good: 1, all: 1, is_healthy: true, changed: NOW, care: None, details }
}

fn json_of(row: &Listed) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(&format!("{{{}}}", object(row))).unwrap()[&row.name].take()
}

#[test]
fn names_and_their_backends_are_listed() {
    let settings = Arc::new(MakerSettings { ttl: 60.0, ..MakerSettings::of("d") });
    let backend = |address: &str| MemberFacts { name: format!("d({address}:http)"), is_healthy: true, weight: 1.0 };
    let backends = vec![backend("192.0.2.1"), backend("192.0.2.2")];
    let rows = [
        row("vcl1.d(a:http)", "dynamic", AdminHealth::Auto, Details::Name { settings, backends }),
        row("vcl1.d(192.0.2.1:http)", "backend", AdminHealth::Healthy, Details::Nothing),
    ];
    assert!(text(&rows).contains("d(192.0.2.2:http)  healthy"), "{}", text(&rows));
    let row = json_of(&rows[0]);
    assert_eq!(row["type"], "dynamic");
    assert_eq!(row["probe_details"]["ttl"], 60.0);
    assert_eq!(row["probe_details"]["backends"]["d(192.0.2.1:http)"]["health"], "healthy");
}

#[test]
fn members_of_a_shard_director_show_how_far_they_have_come() {
    let member = |name: &str, is_healthy, ramped, remaining| ShardMemberFacts {
        name: name.to_owned(),
        ident: format!("i{name}"),
        is_healthy,
        ramped,
        remaining,
    };
    let members = vec![member("b1", true, 0.25, 7.5), member("b2", false, 0.0, 0.0)];
    let row = row("vcl1.vd", "shard", AdminHealth::Auto, Details::Shard { warmup: 0.5, rampup: 10.0, members });
    let json = json_of(&row);
    let text = text(&[row]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[3], ["Backend", "Ident", "Health", "Rampup", "Remaining"]);
    assert_eq!(lines[4], ["b1", "ib1", "healthy", "25.00%", "7.500s"]);
    assert_eq!(lines[5], ["b2", "ib2", "sick", "0.00%", "0.000s"]);
    assert_eq!(
        (&json["probe_details"]["warmup"], &json["probe_details"]["rampup_duration"]),
        (&0.5.into(), &10.0.into())
    );
    assert_eq!(json["probe_details"]["backends"]["b1"]["rampup_remaining"], 7.5);
}

#[test]
fn backend_with_copal_attributes_shows_its_state() {
    let mut program = Program { syntax: 41, ..Program::default() };
    let breaker = BreakerDefinition { fail_limit: 2, ..BreakerDefinition::default() };
    program.backends = vec![BackendDefinition {
        breaker: Some(Box::new(breaker)),
        slow_start: 60.0,
        follows: Some(FollowedName { host: "app.example".to_owned(), port: 80 }),
        ..definition("app")
    }];
    let directors = Directors::new("v", &program, NOW);
    let list = |words: &[&str], json: bool| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        backend_list(&words, json, &[&directors], Some("v"), NOW).unwrap()
    };
    let plain = list(&[], false);
    let cells: Vec<_> = plain.lines().nth(1).unwrap().split_whitespace().take(4).collect();
    assert_eq!(cells, ["v.app", "probe", "0/0", "healthy"], "{plain}");
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let detailed = lines(&list(&["-p"], false));
    assert!(
        detailed.contains(&"Fetches: trusted, 0 failures in a row (limit 2), 0 of 0 failed of late".to_owned()),
        "{detailed:?}"
    );
    assert!(detailed.contains(&"Slow start: 100% of its load".to_owned()), "{detailed:?}");
    assert!(detailed.contains(&"Addresses of app.example: 192.0.2.1:80".to_owned()), "{detailed:?}");

    directors.backends()[0].note_fault(None, NOW);
    directors.backends()[0].note_fault(None, NOW);
    let detailed = list(&["-p"], false);
    assert!(detailed.lines().nth(1).unwrap().contains("sick"), "{detailed}");
    assert!(detailed.contains("2 failures in a row (limit 2), 2 of 2 failed of late"), "{detailed}");
    let json: serde_json::Value = serde_json::from_str(&list(&["-p"], true)).unwrap();
    let care = &json[3]["v.app"]["care"];
    assert!(care["aside"].as_f64().is_some_and(|seconds| (9.0..=10.0).contains(&seconds)), "{json}");
    assert_eq!((&care["failures_in_row"], &care["failures"]), (&2.into(), &serde_json::json!([2, 2])));
    assert_eq!((&care["follows"], &care["addresses"]), (&"app.example".into(), &serde_json::json!(["192.0.2.1:80"])));
}
