//! Bans through the index: the result equals that of testing every ban in turn, and costs only a
//! few tests.

use super::lives::{Files, kill};
use super::*;
use pcre2::bytes::Regex;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;

/// One condition, evaluated without the cache's code.
enum Condition {
    Equal(String, String),
    Differs(String, String),
    Matches(String, Regex),
}

/// The known properties of an object: its headers, and the number of bans it has been tested
/// against.
struct Known {
    headers: BTreeMap<String, String>,
    tested: usize,
}

fn conditions(text: &str) -> Vec<Condition> {
    let condition = |part: &str| {
        let [field, operator, argument] = part.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let (field, argument): (String, String) = (field.to_lowercase(), argument.to_owned());
        match operator {
            "==" => Condition::Equal(field, argument),
            "!=" => Condition::Differs(field, argument),
            _ => Condition::Matches(field, Regex::new(&argument).unwrap()),
        }
    };
    text.split(" && ").map(condition).collect()
}

/// True if a ban hits, given the fields that can be seen.
fn hits(ban: &[Condition], fields: &BTreeMap<String, String>) -> bool {
    ban.iter().all(|condition| match condition {
        Condition::Equal(field, text) => fields.get(field) == Some(text),
        Condition::Differs(field, text) => fields.get(field) != Some(text),
        Condition::Matches(field, regex) => {
            fields.get(field).is_some_and(|value| regex.is_match(value.as_bytes()).unwrap())
        }
    })
}

fn tag(random: &mut SmallRng) -> String {
    ["p", "cat_p_", "node:", "x-"][random.random_range(0..4)].to_owned() + &random.random_range(0..150).to_string()
}

fn path(random: &mut SmallRng) -> String {
    format!("/{}/{}", ["blog", "shop", "b", "a.b"][random.random_range(0..4)], random.random_range(0..200))
}

fn object_headers(random: &mut SmallRng) -> BTreeMap<String, String> {
    let separator = [",", ", ", " ", ";"][random.random_range(0..4)];
    let tags: Vec<String> = (0..random.random_range(0..5)).map(|_| tag(random)).collect();
    let mut headers = BTreeMap::from([("x-host".to_owned(), format!("h{}", random.random_range(0..4)))]);
    if random.random_bool(0.9) {
        headers.insert("x-tags".to_owned(), tags.join(separator));
        headers.insert("x-url".to_owned(), path(random));
    }
    headers
}

/// A condition on the object alone, rarely true.
fn on_object(random: &mut SmallRng) -> String {
    let (one, two, path) = (tag(random), tag(random), path(random));
    match random.random_range(0..16) {
        0 | 1 => format!("obj.http.X-Tags ~ (^|,){one}(,|$)"),
        2 => format!("obj.http.X-Tags ~ ((^|,){one}(,|$))|((^|,){two}(,|$))"),
        3 => format!("obj.http.x-tags ~ (^|[\\s,;])({one}|{two})([,\\s;]|$)"),
        4 => format!("obj.http.X-Tags ~ \\b{one}\\b"),
        5 => format!("obj.http.x-tags ~ (^|\\s){one}($|\\s)"),
        6 => format!("obj.http.x-url ~ ^{path}"),
        7 => format!("obj.http.x-url ~ ^{path}.*$"),
        8 => format!("obj.http.x-url ~ ^{path}$"),
        9 => format!("obj.http.x-url == {path}"),
        10 => format!("obj.http.x-url ~ ^{path}[0-4]?"),
        11 => format!("obj.http.x-url ~ {path}$"),
        12 => format!("obj.http.x-host == h{} && obj.http.x-url == {path}", random.random_range(0..5)),
        13 => format!("obj.http.x-host != h1 && obj.http.X-Tags ~ (^|,){one}(,|$)"),
        14 => format!("obj.http.x-url ~ ^({path}|/none)$"),
        _ => format!("obj.http.none ~ (^|,){one}(,|$)"),
    }
}

fn a_ban(random: &mut SmallRng) -> String {
    let url = format!("/{}", random.random_range(0..300));
    match random.random_range(0..12) {
        0 => format!("req.url == {url}"),
        1 => format!("req.url ~ ^{url}$"),
        2 => format!("req.http.host == h{} && req.url ~ ^{url}", random.random_range(0..4)),
        3 => format!("req.http.host ~ ^h2 && {}", on_object(random)),
        _ => on_object(random),
    }
}

fn message_of(fields: &BTreeMap<String, String>) -> Message {
    request(&fields["req.url"], &[("Host", &fields["req.http.host"])])
}

fn stored_head(headers: &BTreeMap<String, String>) -> Vec<u8> {
    let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    head(&pairs)
}

impl Bench {
    fn make_with(&mut self, number: u32, headers: &BTreeMap<String, String>) -> Arc<Object> {
        self.xid += 1;
        let attributes = ObjectAttributes {
            key: key(number),
            xid: self.xid.into(),
            origin: self.now,
            ttl: 1e6,
            body_bytes: Some(0),
            ..ObjectAttributes::default()
        };
        let object = self.cache.store().create(&attributes, &stored_head(headers)).unwrap();
        object.finish();
        object
    }

    fn ban_text(&self, text: &str) {
        self.cache.ban(cache::BanSpecification::parse_text(text).unwrap(), self.now).unwrap();
    }
}

/// Counts of events in a run, which prove that the run was meaningful.
#[derive(Default, Debug)]
struct Seen {
    hits: usize,
    banned: usize,
    stillborn: usize,
    restarts: usize,
}

fn run(seed: u64, seen: &mut Seen) {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    let mut random = SmallRng::seed_from_u64(seed);
    let configure = |bench: &Bench, random: &mut SmallRng| {
        let (age, dups) = (random.random_range(0.0..20.0), random.random_bool(0.7));
        bench.set(|parameters| {
            (parameters.ban_lurker_age, parameters.ban_dups, parameters.ban_lurker_batch) = (age, dups, 3);
        });
    };
    configure(&bench, &mut random);
    let mut bans: Vec<Vec<Condition>> = Vec::new();
    let mut objects: BTreeMap<u32, Known> = BTreeMap::new();
    let mut fetches: BTreeMap<u32, (Busy, usize)> = BTreeMap::new();
    for step in 0..1000 {
        let number = random.random_range(0..40);
        match random.random_range(0..100) {
            0..=54 => {
                let fields = BTreeMap::from([
                    ("req.url".to_owned(), format!("/{}", random.random_range(0..300))),
                    ("req.http.host".to_owned(), format!("h{}", random.random_range(0..4))),
                ]);
                let verdict = objects.get(&number).map(|object| {
                    let mut all = fields.clone();
                    all.extend(object.headers.iter().map(|(name, value)| (format!("obj.http.{name}"), value.clone())));
                    bans[object.tested..].iter().any(|ban| hits(ban, &all))
                });
                let answer = bench.ask(&key(number), &message_of(&fields), |_| {});
                let context = format!("seed {seed} step {step}: {number}");
                match (verdict, answer) {
                    (Some(false), Lookup::Hit(_)) => {
                        seen.hits += 1;
                        objects.get_mut(&number).unwrap().tested = bans.len();
                    }
                    (Some(true), Lookup::Miss { busy, .. }) => {
                        seen.banned += 1;
                        objects.remove(&number);
                        fetches.insert(number, (busy, bans.len()));
                    }
                    (None, Lookup::Miss { busy, .. }) => _ = fetches.insert(number, (busy, bans.len())),
                    (None, Lookup::Wait(_)) => assert!(fetches.contains_key(&number), "{context}"),
                    (verdict, answer) => panic!("{context}: banned {verdict:?}, but {answer:?}"),
                }
            }
            55..=79 => {
                let Some((busy, since)) = fetches.remove(&number) else { continue };
                let headers = object_headers(&mut random);
                let object = bench.make_with(number, &headers);
                busy.publish(&object);
                let known = Known { headers, tested: since };
                seen.stillborn += usize::from(object.is_removed());
                objects.insert(number, known);
                if object.is_removed() {
                    // Only a ban can have removed it; the next lookup's verdict must agree.
                    let all: BTreeMap<_, _> = objects[&number]
                        .headers
                        .iter()
                        .map(|(name, value)| (format!("obj.http.{name}"), value.clone()))
                        .collect();
                    assert!(bans[since..].iter().any(|ban| hits(ban, &all)), "seed {seed} step {step}");
                }
            }
            80..=89 => {
                // Completed bans leave the middle of the list only when it is long.
                let most = if seed % 4 == 3 { 400 } else { 40 };
                for _ in 0..random.random_range(1..most) {
                    let text = a_ban(&mut random);
                    bench.ban_text(&text);
                    bans.push(conditions(&text));
                }
            }
            90..=97 => bench.wait(random.random_range(0.0..8.0)),
            98 => configure(&bench, &mut random),
            _ => {
                let now = bench.now + 1.0;
                std::mem::forget(std::mem::take(&mut fetches));
                kill(bench);
                (bench, _) = files.worker(now);
                configure(&bench, &mut random);
                seen.restarts += 1;
            }
        }
    }
    drop(fetches);
}

#[test]
fn the_result_is_that_of_testing_every_ban_in_turn() {
    let mut seen = Seen::default();
    for seed in 0..8 {
        run(seed, &mut seen);
    }
    assert!(seen.hits > 500 && seen.banned > 150 && seen.stillborn > 10 && seen.restarts > 10, "{seen:?}");
}

#[test]
fn a_lookup_tests_a_handful_of_ten_thousand_bans() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.ban_lurker_sleep = 0.0);
    for number in 0..50 {
        let headers = BTreeMap::from([
            ("X-Magento-Tags".to_owned(), format!("store,cms_b_{number},cat_p_{number},FPC")),
            ("x-url".to_owned(), format!("/blog/{number}/")),
            ("x-host".to_owned(), "shop.example".to_owned()),
        ]);
        let Lookup::Miss { busy, .. } = bench.look(number) else { panic!("{number}") };
        let object = bench.make_with(number, &headers);
        busy.publish(&object);
    }
    for number in 100..5100 {
        bench.ban_text(&format!("obj.http.X-Magento-Tags ~ ((^|,)cat_p_{number}(,|$))|((^|,)cms_p_{number}(,|$))"));
        bench.ban_text(&format!("obj.http.x-host == shop.example && obj.http.x-url ~ ^/blog/{number}/"));
        bench.ban_text(&format!("req.http.host == shop.example && req.url == /none/{number}"));
    }
    bench.ban_text("obj.http.X-Magento-Tags ~ ((^|,)cat_p_7(,|$))");
    bench.ban_text("obj.http.x-host == shop.example && obj.http.x-url ~ ^/blog/8/");
    bench.ban_text("req.url == /9");
    for number in 0..50 {
        let is_banned = matches!(bench.look(number), Lookup::Miss { .. });
        assert_eq!(is_banned, (7..10).contains(&number), "{number}");
    }
    let tests = bench.total(Main::BansTestsTested);
    assert!(tests < 200, "{tests} conditions tested for 50 lookups and 15,000 bans");
}

#[test]
fn the_lurker_completes_ten_thousand_bans_with_a_look_at_each_object() {
    let mut bench = Bench::new();
    bench.set(|parameters| (parameters.ban_lurker_age, parameters.ban_lurker_batch) = (1.0, 100));
    for number in 0..50 {
        let headers = BTreeMap::from([("xt".to_owned(), format!("a b{number}"))]);
        let Lookup::Miss { busy, .. } = bench.look(number) else { panic!("{number}") };
        let object = bench.make_with(number, &headers);
        busy.publish(&object);
    }
    for number in 25..10_000 {
        bench.ban_text(&format!("obj.http.xt ~ (^|\\s)b{number}(\\s|$)"));
    }
    bench.wait(3.0);
    assert_eq!(bench.total(Main::NObject), 25);
    assert_eq!((bench.total(Main::BansLurkerTested), bench.total(Main::BansLurkerObjKilled)), (25, 25));
    assert_eq!(bench.total(Main::Bans), 1, "no object refers to the others");
    assert!(bench.total(Main::BansPersistedBytes) < 1000, "nor does the journal keep them");
    bench.hit(3);
}
