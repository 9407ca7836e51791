//! The background of [`DnsNames`]: looks names up, again and again, forgets those nobody uses, and has probes run and
//! counters shown for the backends that come and go.
//!
//! One task a name, and one over them that starts and ends them; all on one event loop, all ended by dropping the future of
//! [`run`]. What was found stays, and a later run goes on with it. Lookups leave records of no transaction.

use crate::backend::Backend;
use crate::dial::Dial;
use crate::dns_names::DnsNames;
use crate::dns_names::domain::{Domain, Life};
use crate::dns_names::maker::{Changes, Maker};
use crate::dns_names::resolve::{Answer, Resolve, ResolveError, Resolving};
use crate::dns_names::service::Service;
use crate::dns_names::settings::MakerSettings;
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

/// How often to look for names that nobody uses, at least.
const EXPIRY_INTERVAL_MAX: f64 = 60.0;
/// … and at most.
const EXPIRY_INTERVAL_MIN: f64 = 0.05;

/// The number of getaddrinfo for a failure that may pass.
const EAI_AGAIN: i32 = -3;

/// What a run needs of the process around it.
pub trait Surroundings {
    /// Seconds since 1970.
    fn now(&self) -> f64;
    /// The parameter `prefer_ipv6`.
    fn prefers_v6(&self) -> bool;
    /// A backend has come: its counters are to be shown.
    fn appeared(&self, backend: &Arc<Backend>);
    /// A backend is gone.
    fn vanished(&self, backend: &Arc<Backend>);
}

/// Everything that lookups need.
struct Background {
    names: Arc<DnsNames>,
    resolver: Rc<dyn Resolve>,
    dial: Rc<dyn Dial>,
    around: Rc<dyn Surroundings>,
    ring: LogRing,
}

/// Looks the names of a VCL up until dropped.
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

/// The backends that the process around shows, with their probes.
struct Shown {
    background: Rc<Background>,
    backends: BTreeMap<usize, (Arc<Backend>, AbortHandle)>,
    probes: JoinSet<()>,
}

impl Shown {
    /// Shows what has come, and no longer what has gone.
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
        for (place, backend) in present {
            if self.backends.contains_key(&place) {
                continue;
            }
            background.around.appeared(&backend);
            let (of_clock, of_family) = (Rc::clone(&background.around), Rc::clone(&background.around));
            let probe = self.probes.spawn_local(run_probe(
                Arc::clone(&backend),
                Rc::clone(&background.dial),
                move || of_clock.now(),
                move || of_family.prefers_v6(),
                background.ring.clone(),
            ));
            self.backends.insert(place, (backend, probe));
        }
        // Those that are over, of backends without a probe for the most part.
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
    /// Gives up what was not used for too long; returns how long to wait until the next look.
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
                // Its targets are used through it.
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

    /// The record of one stage of a lookup: the moment, and the seconds since the lookup and the stage before began.
    fn timestamp(&self, of: (&MakerSettings, &str), event: &str, now: f64, since_start: f64, since_last: f64) {
        let (speaker, name, vcl) = (of.0.speaker.name(), of.1, self.names.vcl_name());
        self.ring.write_fmt(
            Tag::Timestamp,
            LogId::NONE,
            format_args!("{speaker} {vcl}.{name} {event}: {now:.6} {since_start:.6} {since_last:.6}"),
        );
    }

    /// Logs a lookup that failed.
    fn log_failure(&self, settings: &MakerSettings, name: &str, error: &ResolveError) {
        let text = format!("{} {} ({})", settings.source.name(), error.code, error.text);
        self.log_of(settings, Tag::Error, name, &text);
    }
}

/// Waits between lookups; true when the name was given up.
async fn pause(life: &Life, since: Instant, seconds: f64) -> bool {
    tokio::select! {
        () = sleep_until(since + Duration::from_secs_f64(seconds)) => false,
        () = life.given_up() => true,
    }
}

/// A lookup that takes no longer than the object allows.
async fn bounded<T>(settings: &MakerSettings, lookup: Resolving<'_, T>) -> Result<Answer<T>, ResolveError> {
    let Some(seconds) = settings.lookup_timeout else { return lookup.await };
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let timeout = |_| Err(ResolveError { code: EAI_AGAIN, text: "Timeout".to_owned() });
    tokio::time::timeout(limit, lookup).await.unwrap_or_else(timeout)
}

/// Looks a domain up until it is given up; returns its id.
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
            Ok(answer) => {
                let changes = maker.update(background.names.table(), &domain, &answer.list);
                background.log_changes(&maker, &domain, &changes);
                background.timestamp(
                    (&settings, domain.name()),
                    "Update",
                    background.around.now(),
                    began.elapsed().as_secs_f64(),
                    0.0,
                );
                settings.interval(answer.ttl)
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

/// The same for a service.
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
