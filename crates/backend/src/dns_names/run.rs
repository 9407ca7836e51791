//! The background work of [`DnsNames`]: looks up names repeatedly, drops unused ones, and runs
//! probes and shows counters for the backends that are added and removed.
//!
//! One task per name, and one above them that starts and ends them, all on one event loop; dropping
//! the future of [`run`] ends them all. The results stay, and a later run continues with them.
//! Lookups leave log records outside transactions.

use crate::backend::Backend;
use crate::dial::Dial;
use crate::dns_names::DnsNames;
use crate::dns_names::domain::{Domain, Life};
use crate::dns_names::maker::{Changes, Maker};
use crate::dns_names::resolve::{Answer, Resolve, ResolveError, Resolving};
use crate::dns_names::service::Service;
use crate::dns_names::settings::MakerSettings;
use crate::finding::Findings;
use crate::probing::run_probe;
use shm::log::{LogId, LogRing};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::tag::Tag;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use vcl_run::value::DirectorId;

/// The longest time between two searches for unused names, seconds.
const EXPIRY_INTERVAL_MAX: f64 = 60.0;
/// The shortest such time, seconds.
const EXPIRY_INTERVAL_MIN: f64 = 0.05;

/// getaddrinfo's error number for a temporary failure.
const EAI_AGAIN: i32 = -3;

/// The interface of a run to the process.
pub trait Surroundings {
    /// Seconds since 1970.
    fn now(&self) -> f64;
    /// The parameter `prefer_ipv6`.
    fn prefers_v6(&self) -> bool;
    /// Findings about backends whose probes were good.
    fn found(&self) -> Rc<Findings>;
    /// A backend has been made: show its counters.
    fn appeared(&self, backend: &Arc<Backend>);
    /// A backend is gone.
    fn vanished(&self, backend: &Arc<Backend>);
}

/// Common data of all lookups.
struct Background {
    names: Arc<DnsNames>,
    resolver: Rc<dyn Resolve>,
    dial: Rc<dyn Dial>,
    around: Rc<dyn Surroundings>,
    ring: LogRing,
}

/// Looks up the names of a VCL until dropped.
pub async fn run(
    names: Arc<DnsNames>,
    resolver: Rc<dyn Resolve>,
    dial: Rc<dyn Dial>,
    around: Rc<dyn Surroundings>,
    ring: LogRing,
) {
    let background = Rc::new(Background { names, resolver, dial, around, ring });
    let mut lookups = JoinSet::new();
    let mut running = HashSet::new();
    let mut shown = Shown { background: Rc::clone(&background), backends: BTreeMap::new(), probes: JoinSet::new() };
    loop {
        for maker in background.names.makers() {
            for domain in maker.domains() {
                if running.insert(domain.id()) {
                    lookups.spawn_local(tend_domain(Rc::clone(&background), Arc::clone(&maker), domain));
                }
            }
            for service in maker.services() {
                if running.insert(service.id()) {
                    lookups.spawn_local(tend_service(Rc::clone(&background), Arc::clone(&maker), service));
                }
            }
        }
        let pause = background.forget_unused();
        shown.follow();
        tokio::select! {
            () = background.names.work().notified() => {}
            Some(done) = lookups.join_next(), if !lookups.is_empty() => {
                if let Ok(id) = done {
                    running.remove(&id);
                }
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The backends whose counters and probes are active.
struct Shown {
    background: Rc<Background>,
    backends: BTreeMap<usize, (Arc<Backend>, AbortHandle)>,
    probes: JoinSet<()>,
}

impl Shown {
    /// Starts showing new backends and stops showing those that are gone.
    fn follow(&mut self) {
        let background = Rc::clone(&self.background);
        let present: BTreeMap<usize, Arc<Backend>> =
            background.names.backends().into_iter().map(|backend| (Arc::as_ptr(&backend) as usize, backend)).collect();
        self.backends.retain(|place, (backend, probe)| {
            let stays = present.contains_key(place);
            if !stays {
                probe.abort();
                background.around.vanished(backend);
            }
            stays
        });
        // The same for all of them, and looked up only for those with a probe.
        let mut known = None;
        for (place, backend) in present {
            if self.backends.contains_key(&place) {
                continue;
            }
            background.around.appeared(&backend);
            let (of_clock, of_family) = (Rc::clone(&background.around), Rc::clone(&background.around));
            let nothing = Rc::default();
            let found = match backend.probe() {
                Some(_) => known.get_or_insert_with(|| background.around.found()),
                None => &nothing,
            };
            let probe = self.probes.spawn_local(run_probe(
                Arc::clone(&backend),
                Rc::clone(&background.dial),
                found,
                move || of_clock.now(),
                move || of_family.prefers_v6(),
                background.ring.clone(),
            ));
            self.backends.insert(place, (backend, probe));
        }
        // Collects finished tasks, mostly of backends without a probe.
        while self.probes.try_join_next().is_some() {}
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        for (backend, _) in self.backends.values() {
            self.background.around.vanished(backend);
        }
    }
}

impl Background {
    /// Drops names that were unused for too long; returns the time until the next call.
    fn forget_unused(&self) -> Duration {
        let now = self.around.now();
        let mut next = EXPIRY_INTERVAL_MAX;
        let is_over = |life: &Life, settings: &MakerSettings, next: &mut f64| {
            let left = life.last_used() + settings.domain_usage_timeout - now;
            *next = next.min(left);
            left <= 0.0
        };
        for maker in self.names.makers() {
            for service in maker.services() {
                if is_over(&service.life, maker.settings(), &mut next) {
                    self.log_of(maker.settings(), Tag::VCLLog, &service.service, "timeout");
                    maker.give_up_service(self.names.table(), &service);
                    continue;
                }
                // Using a service uses its targets too.
                for domain in service.domains() {
                    domain.life.use_at(service.last_used());
                }
            }
            for domain in maker.domains() {
                if is_over(&domain.life, maker.settings(), &mut next) {
                    self.log(&domain, Tag::VCLLog, "timeout");
                    let changes = maker.give_up(self.names.table(), &domain);
                    self.log_changes(&maker, &domain, &changes);
                    self.log(&domain, Tag::VCLLog, "deleted");
                }
            }
        }
        Duration::from_secs_f64(next.clamp(EXPIRY_INTERVAL_MIN, EXPIRY_INTERVAL_MAX))
    }

    fn log_of(&self, settings: &MakerSettings, tag: Tag, name: &str, text: &str) {
        let (speaker, vcl, object) = (settings.speaker.name(), self.names.vcl_name(), &settings.name);
        self.ring.write_fmt(tag, LogId::NONE, format_args!("{speaker}: {vcl} {object} {name} {text}"));
    }

    fn log(&self, domain: &Domain, tag: Tag, text: &str) {
        let name = format!("{}:{}", domain.host, domain.port);
        self.log_of(&domain.settings, tag, &name, text);
    }

    fn log_changes(&self, maker: &Maker, domain: &Domain, changes: &Changes) {
        for address in &changes.refused {
            self.log(domain, Tag::Error, &format!("whitelist mismatch {}:{}", address.ip(), address.port()));
        }
        if maker.is_debugged() {
            for event in &changes.events {
                self.log(domain, Tag::Debug, event);
            }
        }
    }

    /// Logs one stage of a lookup: the time, and the seconds since the start of the lookup and
    /// since the previous stage.
    fn timestamp(&self, of: (&MakerSettings, &str), event: &str, now: f64, since_start: f64, since_last: f64) {
        let (speaker, name, vcl) = (of.0.speaker.name(), of.1, self.names.vcl_name());
        self.ring.write_fmt(
            Tag::Timestamp,
            LogId::NONE,
            format_args!("{speaker} {vcl}.{name} {event}: {now:.6} {since_start:.6} {since_last:.6}"),
        );
    }

    /// Logs a failed lookup.
    fn log_failure(&self, settings: &MakerSettings, name: &str, error: &ResolveError) {
        let text = format!("{} {} ({})", settings.source.name(), error.code, error.text);
        self.log_of(settings, Tag::Error, name, &text);
    }
}

/// Waits between lookups; returns true if the name was dropped.
async fn pause(life: &Life, since: Instant, seconds: f64) -> bool {
    tokio::select! {
        () = sleep_until(since + Duration::from_secs_f64(seconds)) => false,
        () = life.given_up() => true,
    }
}

/// Runs a lookup, with the time limit of the object's settings.
async fn bounded<T>(settings: &MakerSettings, lookup: Resolving<'_, T>) -> Result<Answer<T>, ResolveError> {
    let Some(seconds) = settings.lookup_timeout else { return lookup.await };
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let timeout = |_| Err(ResolveError { code: EAI_AGAIN, text: "Timeout".to_owned() });
    tokio::time::timeout(limit, lookup).await.unwrap_or_else(timeout)
}

/// Looks up a domain repeatedly until it is dropped; returns its id.
async fn tend_domain(background: Rc<Background>, maker: Arc<Maker>, domain: Arc<Domain>) -> DirectorId {
    let settings = Arc::clone(&domain.settings);
    let name = format!("{}:{}", domain.host, domain.port);
    loop {
        let (start, began) = (background.around.now(), Instant::now());
        background.timestamp((&settings, domain.name()), "Lookup", start, 0.0, 0.0);
        let answer = tokio::select! {
            answer = async {
                let _turn = maker.turn().await;
                bounded(&settings, background.resolver.addresses(settings.source, &domain.host, &domain.port)).await
            } => answer,
            () = domain.life.given_up() => break,
        };
        let lasted = began.elapsed().as_secs_f64();
        background.timestamp((&settings, domain.name()), "Results", start + lasted, lasted, lasted);
        let interval = match answer {
            Ok(mut answer) => {
                let unanswered = answer.keep_unanswered(domain.addresses()).cloned();
                let changes = maker.update(background.names.table(), &domain, &answer.list);
                background.log_changes(&maker, &domain, &changes);
                background.timestamp(
                    (&settings, domain.name()),
                    "Update",
                    background.around.now(),
                    began.elapsed().as_secs_f64(),
                    0.0,
                );
                match unanswered {
                    None => settings.interval(answer.ttl),
                    Some(error) => {
                        background.log_failure(&settings, &name, &error);
                        settings.retry_interval()
                    }
                }
            }
            Err(error) => {
                background.log_failure(&settings, &name, &error);
                settings.retry_interval()
            }
        };
        domain.life.looked_up();
        background.names.work().notify_one();
        if pause(&domain.life, Instant::now(), interval).await {
            break;
        }
    }
    background.timestamp((&settings, domain.name()), "Done", background.around.now(), 0.0, 0.0);
    background.names.work().notify_one();
    domain.id()
}

/// As [`tend_domain`], for a service.
async fn tend_service(background: Rc<Background>, maker: Arc<Maker>, service: Arc<Service>) -> DirectorId {
    let settings = Arc::clone(&service.settings);
    loop {
        let (start, began) = (background.around.now(), Instant::now());
        background.timestamp((&settings, service.name()), "Lookup", start, 0.0, 0.0);
        let answer = tokio::select! {
            answer = async {
                let _turn = maker.turn().await;
                bounded(&settings, background.resolver.targets(&service.service)).await
            } => answer,
            () = service.life.given_up() => break,
        };
        let lasted = began.elapsed().as_secs_f64();
        background.timestamp((&settings, service.name()), "Results", start + lasted, lasted, lasted);
        let interval = match answer {
            Ok(answer) => {
                background.names.set_targets(&maker, &service, &answer.list);
                background.timestamp(
                    (&settings, service.name()),
                    "Update",
                    background.around.now(),
                    began.elapsed().as_secs_f64(),
                    0.0,
                );
                settings.interval(answer.ttl)
            }
            Err(error) => {
                background.log_failure(&settings, &service.service, &error);
                settings.retry_interval()
            }
        };
        service.life.looked_up();
        background.names.work().notify_one();
        if pause(&service.life, Instant::now(), interval).await {
            break;
        }
    }
    background.timestamp((&settings, service.name()), "Done", background.around.now(), 0.0, 0.0);
    service.id()
}
