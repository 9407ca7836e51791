//! Names that change their addresses, fail, are dropped, and return; with a resolver made from a
//! table, in paused time.

use crate::Backend;
use crate::director::choice::{Notes, ResolveContext};
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::director::table::resolve::NoBackend;
use crate::director::tests::empty_program;
use crate::dns_names::DnsNames;
use crate::dns_names::item::Item;
use crate::dns_names::resolve::{Answer, Resolve, ResolveError, Resolving, Source, Target};
use crate::dns_names::run::{Surroundings, run};
use crate::dns_names::settings::{MakerSettings, TtlFrom, Via};
use crate::dns_names::table::FIRST_ID;
use crate::finding::Findings;
use crate::health::AdminHealth;
use crate::listing::{self, Details};
use crate::memory::MemoryDial;
use crate::random::TestableRandom;
use shm::log::{LogConfiguration, LogRing};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::limits::{DYNAMIC_ADDRESSES_MAX, DYNAMIC_DOMAINS_MAX, DYNAMIC_NAME_BYTES_MAX};
use surface::parameter::Parameters;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};
use vcl_run::program::{AclDefinition, AclEntry, Endpoint, InstanceDefinition};
use vcl_run::value::DirectorId;

/// A resolver that gives prepared answers.
#[derive(Default)]
struct Table {
    addresses: RefCell<HashMap<String, Vec<SocketAddr>>>,
    targets: RefCell<HashMap<String, Vec<Target>>>,
    ttl: Cell<Option<f64>>,
    delay: Cell<f64>,
    asked: Cell<usize>,
    at_once: Cell<usize>,
    most_at_once: Cell<usize>,
}

impl Table {
    fn set(&self, host: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.addresses.borrow_mut().insert(host.to_owned(), addresses);
    }

    async fn take(&self) {
        self.asked.set(self.asked.get() + 1);
        self.at_once.set(self.at_once.get() + 1);
        self.most_at_once.set(self.most_at_once.get().max(self.at_once.get()));
        sleep(Duration::from_secs_f64(self.delay.get())).await;
        self.at_once.set(self.at_once.get() - 1);
    }
}

fn unknown() -> ResolveError {
    ResolveError { code: -2, text: "Name or service not known".to_owned() }
}

impl Resolve for Table {
    fn addresses<'a>(&'a self, _source: Source, host: &'a str, _port: &'a str) -> Resolving<'a, SocketAddr> {
        Box::pin(async move {
            self.take().await;
            let list = self.addresses.borrow().get(host).cloned().ok_or_else(unknown)?;
            Ok(Answer { list, ttl: self.ttl.get(), missing: None })
        })
    }

    fn targets<'a>(&'a self, service: &'a str) -> Resolving<'a, Target> {
        Box::pin(async move {
            self.take().await;
            let list = self.targets.borrow().get(service).cloned().ok_or_else(unknown)?;
            Ok(Answer { list, ttl: self.ttl.get(), missing: None })
        })
    }
}

/// Records the backends that were added and removed.
struct Around {
    start: Instant,
    events: RefCell<Vec<String>>,
}

impl Surroundings for Around {
    fn now(&self) -> f64 {
        1000.0 + self.start.elapsed().as_secs_f64()
    }

    fn prefers_v6(&self) -> bool {
        false
    }

    fn found(&self) -> Rc<Findings> {
        Rc::default()
    }

    fn appeared(&self, backend: &Arc<Backend>) {
        self.events.borrow_mut().push(format!("+{}", backend.name()));
    }

    fn vanished(&self, backend: &Arc<Backend>) {
        self.events.borrow_mut().push(format!("-{}", backend.name()));
    }
}

struct Scene {
    directors: Directors,
    table: Rc<Table>,
    around: Rc<Around>,
    ring: LogRing,
    random: TestableRandom,
    running: RefCell<Option<tokio::task::JoinHandle<()>>>,
}

fn settings() -> MakerSettings {
    MakerSettings { ttl: 60.0, ..MakerSettings::of("d") }
}

impl Scene {
    fn new(settings: MakerSettings) -> Rc<Scene> {
        let ring = LogRing::in_memory(4 << 20);
        let parameters = Parameters { vsl_mask: [0; 32], ..Parameters::default() };
        ring.configure(&LogConfiguration::from(&parameters));
        let mut program = empty_program();
        program.instances = vec![InstanceDefinition {
            name: "f".to_owned(),
            vmod: "directors".to_owned(),
            class: "fallback".to_owned(),
            director: Some(0),
        }];
        let directors = Directors::new("vcl1", &program, 1000.0);
        assert!(directors.dns_names().make(0, settings));
        let scene = Rc::new(Scene {
            directors,
            table: Rc::default(),
            around: Rc::new(Around { start: Instant::now(), events: RefCell::default() }),
            ring,
            random: TestableRandom::new(1),
            running: RefCell::default(),
        });
        scene.start();
        scene
    }

    fn start(&self) {
        let running = tokio::task::spawn_local(run(
            Arc::clone(self.names()),
            Rc::clone(&self.table) as Rc<dyn Resolve>,
            Rc::new(MemoryDial::default()),
            Rc::clone(&self.around) as Rc<dyn Surroundings>,
            self.ring.clone(),
        ));
        *self.running.borrow_mut() = Some(running);
    }

    fn stop(&self) {
        self.running.borrow_mut().take().unwrap().abort();
    }

    fn names(&self) -> &Arc<DnsNames> {
        self.directors.dns_names()
    }

    fn domain(&self, host: &str) -> DirectorId {
        let maker = self.names().maker(0).unwrap();
        self.names().domain(&maker, host, None, None, self.around.now()).unwrap().id()
    }

    fn set_health(&self, pattern: &str, admin: AdminHealth) {
        assert_ne!(listing::set_health(pattern, admin, &[&self.directors], Some("vcl1"), 1001.0), 0, "{pattern}");
    }

    async fn ready(&self, id: DirectorId) {
        let notes = Notes::new();
        for name in self.directors.first_lookups(id, &self.context(&notes)) {
            name.ready().await;
        }
    }

    fn context<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        ResolveContext {
            now: self.around.now(),
            random: &self.random,
            url: b"/",
            host: None,
            digest: None,
            is_for_cache: false,
            shard: None,
            client: crate::director::choice::ClientName::default(),
            notes,
        }
    }

    fn resolve(&self, id: DirectorId) -> Result<Arc<Backend>, NoBackend> {
        let notes = Notes::new();
        self.directors.resolve(Some(id), &self.context(&notes)).map(|resolved| resolved.backend)
    }

    /// The names of the next `count` choices.
    fn choices(&self, id: DirectorId, count: usize) -> Vec<String> {
        (0..count).map(|_| self.resolve(id).map_or_else(|no| no.text(), |one| one.name().to_owned())).collect()
    }

    fn log(&self, what: &str) -> Vec<String> {
        let lines = self.ring.records().into_iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned());
        lines.filter(|line| line.contains(what)).collect()
    }

    fn events(&self) -> Vec<String> {
        self.around.events.take()
    }

    /// The events sorted by name, since events at the same time have no order.
    fn sorted_events(&self) -> Vec<String> {
        let mut events = self.events();
        events.sort();
        events
    }
}

fn tell<F: Future<Output = ()>>(settings: MakerSettings, story: impl FnOnce(Rc<Scene>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async { story(Scene::new(settings)).await });
}

async fn seconds(seconds: f64) {
    sleep(Duration::from_secs_f64(seconds)).await;
}

#[test]
fn a_first_request_waits_for_the_first_lookup_and_later_ones_take_turns() {
    tell(settings(), async |scene| {
        scene.table.set("www.example", &["192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80"]);
        scene.table.delay.set(2.0);
        let id = scene.domain("www.example");
        assert!(id.0 >= FIRST_ID);
        assert_eq!(scene.resolve(id).unwrap_err().text(), "Director d(www.example:http) returned no backend");
        scene.ready(id).await;
        assert_eq!(scene.around.start.elapsed().as_secs_f64(), 2.0);
        let mut choices = scene.choices(id, 6);
        choices.sort();
        assert_eq!(choices[..2], ["d(192.0.2.1:http)"; 2]);
        assert_eq!(choices[4..], ["d(2001:db8::1:http)"; 2]);
        assert_eq!(scene.table.asked.get(), 1);
        scene.ready(id).await;
        assert_eq!(scene.domain("www.example"), id, "the same name is the same director");
    });
}

#[test]
fn addresses_come_and_go_and_keep_their_backends_meanwhile() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80", "192.0.2.2:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        seconds(0.1).await;
        assert_eq!(scene.sorted_events(), ["+d(192.0.2.1:http)", "+d(192.0.2.2:http)"]);
        let kept = scene.names().backends()[1].clone();
        let in_use = scene.names().backends()[0].clone();
        scene.table.set("a", &["192.0.2.2:80", "192.0.2.3:80"]);
        seconds(59.0).await;
        assert!(scene.events().is_empty(), "not before the ttl is over");
        seconds(1.5).await;
        assert_eq!(scene.events(), ["-d(192.0.2.1:http)", "+d(192.0.2.3:http)"]);
        assert!(scene.names().backends().iter().any(|backend| Arc::ptr_eq(backend, &kept)));
        assert_eq!(scene.directors.id_of(&in_use), None, "who has it may go on with it");
        let mut choices = scene.choices(id, 4);
        choices.sort();
        assert_eq!(choices[1..3], ["d(192.0.2.2:http)", "d(192.0.2.3:http)"]);
    });
}

#[test]
fn an_address_that_is_not_in_the_answer_is_kept_for_a_few_lookups_but_not_used() {
    tell(MakerSettings { keep: 2, ..settings() }, async |scene| {
        scene.table.set("a", &["192.0.2.1:80", "192.0.2.2:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        let first = scene.names().backends()[0].clone();
        scene.table.set("a", &["192.0.2.2:80"]);
        seconds(121.0).await;
        assert_eq!(scene.choices(id, 3), ["d(192.0.2.2:http)"; 3]);
        scene.table.set("a", &["192.0.2.1:80", "192.0.2.2:80"]);
        seconds(60.0).await;
        assert!(scene.names().backends().iter().any(|backend| Arc::ptr_eq(backend, &first)), "it is back");
        scene.table.set("a", &["192.0.2.2:80"]);
        seconds(181.0).await;
        assert_eq!(scene.names().backends().len(), 1);
    });
}

#[test]
fn failed_lookup_is_logged_retried_and_changes_nothing() {
    tell(settings(), async |scene| {
        let id = scene.domain("a");
        scene.ready(id).await;
        assert!(scene.resolve(id).is_err());
        assert_eq!(
            scene.log("getaddrinfo"),
            ["vmod-dynamic: vcl1 d a:http getaddrinfo -2 (Name or service not known)"]
        );
        scene.table.set("a", &["192.0.2.1:80"]);
        seconds(29.0).await;
        assert!(scene.resolve(id).is_err());
        seconds(2.0).await;
        assert_eq!(scene.resolve(id).unwrap().name(), "d(192.0.2.1:http)");
        scene.table.addresses.borrow_mut().clear();
        seconds(200.0).await;
        assert!(scene.resolve(id).is_ok(), "the last addresses hold");
        let stamps = scene.log("vmod-dynamic vcl1.d(a:http)");
        assert!(
            stamps[0].starts_with("vmod-dynamic vcl1.d(a:http) Lookup: 1000.000000 0.000000 0.000000"),
            "{stamps:?}"
        );
        assert!(stamps[1].contains("Results: ") && !stamps[2].contains("Update: "), "{stamps:?}");
    });
}

#[test]
fn a_lookup_that_takes_too_long_costs_the_first_request_and_no_more() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80"]);
        scene.table.delay.set(25.0);
        let id = scene.domain("a");
        scene.ready(id).await;
        assert_eq!(scene.around.start.elapsed().as_secs_f64(), 10.0);
        assert!(scene.resolve(id).is_err());
        seconds(16.0).await;
        assert!(scene.resolve(id).is_ok());
    });
}

#[test]
fn names_share_backends_unless_disabled() {
    for (is_shared_by_host, expected) in
        [(false, vec!["d(192.0.2.1:http)"]), (true, vec!["d(a.192.0.2.1:http)", "d(b.192.0.2.1:http)"])]
    {
        tell(MakerSettings { is_shared_by_host, ..settings() }, async |scene| {
            for host in ["a", "b"] {
                scene.table.set(host, &["192.0.2.1:80", "192.0.2.1:80"]);
                let id = scene.domain(host);
                scene.ready(id).await;
            }
            let names: Vec<String> = scene.names().backends().iter().map(|one| one.name().to_owned()).collect();
            assert_eq!(names, expected);
            let header = scene.names().backends()[0].definition().host_header.clone();
            assert_eq!(header, if is_shared_by_host { "a" } else { "192.0.2.1" });
            scene.table.set("a", &[]);
            seconds(61.0).await;
            assert_eq!(scene.names().backends().len(), 1, "b has it still");
        });
    }
}

#[test]
fn the_time_to_live_is_whose_it_shall_be() {
    for (ttl_from, answered, expected) in [
        (TtlFrom::Configuration, Some(5.0), 60.0),
        (TtlFrom::Dns, Some(5.0), 5.0),
        (TtlFrom::Dns, None, 60.0),
        (TtlFrom::Dns, Some(0.0), 60.0),
        (TtlFrom::Minimum, Some(5.0), 5.0),
        (TtlFrom::Minimum, Some(500.0), 60.0),
        (TtlFrom::Maximum, Some(5.0), 60.0),
        (TtlFrom::Maximum, Some(500.0), 500.0),
    ] {
        let settings = MakerSettings { ttl_from, ..settings() };
        assert_eq!(settings.interval(answered), expected, "{ttl_from:?} {answered:?}");
        assert_eq!(TtlFrom::parse(ttl_from.word().as_bytes()), ttl_from);
    }
    let odd = MakerSettings { ttl: f64::NAN, retry_after: -1.0, ..settings() };
    assert!(odd.interval(None) > 1e6 && odd.retry_interval() == 0.1);
}

#[test]
fn only_allowed_addresses_become_backends() {
    let entry = AclEntry { address: [192, 0, 2, 0].into(), bits: 24, negated: false, text: String::new() };
    let acl = AclDefinition { name: "local".to_owned(), log: false, entries: vec![entry] };
    let allowed = Some(Arc::new(vcl_run::acl::AclIndex::new(&acl)));
    tell(MakerSettings { allowed, ..settings() }, async |scene| {
        scene.table.set("a", &["198.51.100.1:80", "192.0.2.1:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        assert_eq!(scene.choices(id, 2), ["d(192.0.2.1:http)"; 2]);
        assert_eq!(scene.log("whitelist"), ["vmod-dynamic: vcl1 d a:http whitelist mismatch 198.51.100.1:80"]);
    });
}

#[test]
fn unused_name_is_forgotten_and_its_id_never_reused() {
    tell(MakerSettings { domain_usage_timeout: 100.0, ..settings() }, async |scene| {
        scene.table.set("a", &["192.0.2.1:80"]);
        scene.table.set("b", &["192.0.2.2:80"]);
        let (a, b) = (scene.domain("a"), scene.domain("b"));
        scene.ready(a).await;
        scene.ready(b).await;
        seconds(90.0).await;
        scene.domain("b");
        seconds(20.0).await;
        assert!(scene.resolve(a).is_err() && !scene.directors.exists(a) && scene.resolve(b).is_ok());
        assert_eq!(
            scene.log("d a:http "),
            ["vmod-dynamic: vcl1 d a:http timeout", "vmod-dynamic: vcl1 d a:http deleted"]
        );
        assert_eq!(scene.sorted_events(), ["+d(192.0.2.1:http)", "+d(192.0.2.2:http)", "-d(192.0.2.1:http)"]);
        let asked = scene.table.asked.get();
        let again = scene.domain("a");
        assert_ne!(again, a);
        scene.ready(again).await;
        assert!(scene.resolve(again).is_ok() && scene.resolve(a).is_err());
        assert_eq!(scene.table.asked.get(), asked + 1);
        assert_eq!(scene.directors.name(a), "");
    });
}

#[test]
fn of_too_many_names_the_one_unused_for_longest_makes_room() {
    tell(settings(), async |scene| {
        let maker = scene.names().maker(0).unwrap();
        let made = |number: usize| {
            let host = format!("h{number}");
            scene.names().domain(&maker, &host, None, None, 1000.0 + number as f64).unwrap().id()
        };
        scene.table.set("h1", &["192.0.2.1:80"]);
        let first = made(0);
        let second = made(1);
        scene.ready(second).await;
        assert!(scene.resolve(second).is_ok());
        for number in 2..DYNAMIC_DOMAINS_MAX {
            made(number);
        }
        assert!(scene.directors.exists(first));
        made(DYNAMIC_DOMAINS_MAX);
        assert!(!scene.directors.exists(first) && scene.directors.exists(second));
        made(DYNAMIC_DOMAINS_MAX + 1);
        assert!(!scene.directors.exists(second));
        assert_eq!(scene.names().backends().len(), 0, "its backends go with it");
        let long = "x".repeat(DYNAMIC_NAME_BYTES_MAX + 1);
        assert!(scene.names().domain(&maker, &long, None, None, 0.0).is_none());
        assert!(scene.names().domain(&maker, "", None, None, 0.0).is_none());
    });
}

#[test]
fn an_answer_counts_up_to_a_limit() {
    tell(settings(), async |scene| {
        let many: Vec<SocketAddr> = (0..DYNAMIC_ADDRESSES_MAX as u32 + 50)
            .map(|number| (std::net::Ipv4Addr::from(number), 80).into())
            .collect();
        scene.table.addresses.borrow_mut().insert("a".to_owned(), many);
        let id = scene.domain("a");
        scene.ready(id).await;
        assert_eq!(scene.names().backends().len(), DYNAMIC_ADDRESSES_MAX);
    });
}

#[test]
fn resolver_has_the_configured_number_of_concurrent_lookups() {
    tell(MakerSettings { source: Source::Dns, parallel: Some(2), ..settings() }, async |scene| {
        scene.table.delay.set(1.0);
        let ids: Vec<DirectorId> = (0..6).map(|number| scene.domain(&format!("h{number}"))).collect();
        for id in ids {
            scene.ready(id).await;
        }
        assert_eq!((scene.table.most_at_once.get(), scene.table.asked.get()), (2, 6));
    });
}

#[test]
fn a_lookup_takes_no_longer_than_the_object_allows() {
    tell(MakerSettings { source: Source::Dns, lookup_timeout: Some(0.5), ..settings() }, async |scene| {
        scene.table.set("a", &["192.0.2.1:80"]);
        scene.table.delay.set(20.0);
        let start = tokio::time::Instant::now();
        let id = scene.domain("a");
        scene.ready(id).await;
        assert_eq!(start.elapsed().as_millis(), 500);
        assert!(scene.names().backends().is_empty());
    });
}

#[test]
fn resolved_addresses_survive_a_pause_of_the_lookups() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        seconds(0.1).await;
        scene.stop();
        scene.table.set("a", &["192.0.2.2:80"]);
        seconds(500.0).await;
        assert_eq!(scene.choices(id, 1), ["d(192.0.2.1:http)"]);
        scene.start();
        seconds(0.1).await;
        assert_eq!(scene.choices(id, 1), ["d(192.0.2.2:http)"]);
        let events = scene.events();
        assert_eq!(events[..2], ["+d(192.0.2.1:http)", "-d(192.0.2.1:http)"], "{events:?}");
        assert_eq!(events.last().unwrap(), "+d(192.0.2.2:http)");
    });
}

#[test]
fn directors_before_a_name_wait_for_it_too() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80"]);
        scene.table.delay.set(1.0);
        let fallback = scene.directors.object_id(0);
        let kind = DirectorKind::Fallback(crate::director::kind::fallback::Fallback::new(false));
        assert!(scene.directors.create(fallback, kind));
        let member = crate::director::choice::Member { director: scene.domain("a"), weight: 1.0 };
        scene.directors.add_member(fallback, member).unwrap();
        assert!(scene.resolve(fallback).is_err());
        scene.ready(fallback).await;
        assert_eq!(scene.resolve(fallback).unwrap().name(), "d(192.0.2.1:http)");
        assert!(scene.directors.is_healthy(fallback));
    });
}

#[test]
fn the_operator_can_take_a_name_out() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80", "192.0.2.2:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        assert!(scene.directors.is_healthy(id));
        scene.set_health("vcl1.d(192.0.2.1*", AdminHealth::Sick);
        assert_eq!(scene.choices(id, 3), ["d(192.0.2.2:http)"; 3], "the healthy one has all turns");
        scene.set_health("vcl1.d(192*", AdminHealth::Sick);
        assert!(!scene.directors.is_healthy(id));
        assert_eq!(scene.choices(id, 2).len(), 2, "without a healthy one any is taken");
        scene.set_health("vcl1.d(a*", AdminHealth::Healthy);
        assert!(scene.directors.is_healthy(id));
    });
}

#[test]
fn names_and_their_backends_are_listed() {
    tell(settings(), async |scene| {
        scene.table.set("a", &["192.0.2.1:80", "192.0.2.2:80"]);
        let id = scene.domain("a");
        scene.ready(id).await;
        let list = listing::list(None, &[&scene.directors], Some("vcl1"), true, 1001.0);
        let rows: Vec<_> =
            list.iter().map(|row| (row.name.as_str(), row.admin, row.good, row.all, row.is_healthy)).collect();
        assert_eq!(rows[0], ("vcl1.d(a:http)", AdminHealth::Auto, 2, 2, true));
        assert_eq!(rows[1], ("vcl1.d(192.0.2.1:http)", AdminHealth::Healthy, 0, 0, true));
        assert_eq!(list[0].kind, "dynamic");
        let Some(Details::Name { settings, backends }) = &list[0].details else { panic!("{:?}", list[0]) };
        assert_eq!(settings.ttl, 60.0);
        let shown: Vec<_> = backends.iter().map(|backend| (backend.name.as_str(), backend.is_healthy)).collect();
        assert_eq!(shown, [("d(192.0.2.1:http)", true), ("d(192.0.2.2:http)", true)]);
    });
}

#[test]
fn a_connection_by_way_of_another_backend_says_where_to() {
    let there: SocketAddr = "198.51.100.9:8443".parse().unwrap();
    let endpoint = Endpoint::Ip { v4: Some(there), v6: None };
    let via = Some(Via { name: "tls".to_owned(), endpoint: endpoint.clone() });
    tell(MakerSettings { via, ..settings() }, async |scene| {
        scene.table.set("www.example", &["192.0.2.1:443"]);
        let id = scene.domain("www.example");
        scene.ready(id).await;
        let backend = scene.resolve(id).unwrap();
        assert_eq!(backend.name(), "d(192.0.2.1:http/www.example)");
        assert_eq!(backend.definition().endpoint, endpoint);
        let preamble = &backend.definition().preamble;
        assert!(preamble.starts_with(&proxy_protocol::SIGNATURE) && preamble.ends_with(b"www.example"));
    });
}

fn target(priority: u16, weight: u16, port: u16, host: &str) -> Target {
    Target { priority, weight, port, host: host.to_owned() }
}

#[test]
fn a_service_leads_to_its_targets_by_priority_and_weight() {
    tell(MakerSettings { source: Source::Dns, ..settings() }, async |scene| {
        scene.table.set("one", &["192.0.2.1:81"]);
        scene.table.set("two", &["192.0.2.2:82"]);
        scene.table.set("spare", &["192.0.2.3:83"]);
        scene.table.targets.borrow_mut().insert(
            "_web._tcp.example".to_owned(),
            vec![target(20, 1, 83, "spare"), target(10, 30, 81, "one"), target(10, 10, 82, "two")],
        );
        let maker = scene.names().maker(0).unwrap();
        let id = scene.names().service(&maker, "_web._tcp.example", 1000.0).unwrap().id();
        scene.ready(id).await;
        let choices = scene.choices(id, 4000);
        let count = |name: &str| choices.iter().filter(|choice| *choice == name).count();
        assert!((2850..3150).contains(&count("d(192.0.2.1:81)")), "{}", count("d(192.0.2.1:81)"));
        assert_eq!(count("d(192.0.2.3:83)"), 0);
        assert!(matches!(scene.names().get(id), Some(Item::Service(_))));
        for backend in ["192.0.2.1", "192.0.2.2"] {
            let pattern = format!("vcl1.d({backend}*");
            scene.set_health(&pattern, AdminHealth::Sick);
        }
        assert_eq!(scene.choices(id, 2), ["d(192.0.2.3:83)"; 2]);
        scene.table.targets.borrow_mut().insert("_web._tcp.example".to_owned(), vec![target(1, 0, 82, "two")]);
        seconds(61.0).await;
        assert_eq!(scene.choices(id, 2), ["d(192.0.2.2:82)"; 2], "sick, but there is no other");
        seconds(8000.0).await;
        assert!(scene.names().ids().is_empty(), "nobody uses it any more");
    });
}
