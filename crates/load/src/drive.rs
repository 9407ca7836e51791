//! Execution of a plan: threads, event loops, and on each the required number of clients.
//!
//! ```text
//! client: ticket ─due→ connection (kept, or opened) ─ask→ answer ─count→ ticket …
//! ```
//!
//! A ticket is the permission for one request. In a closed loop their number depends on the time
//! and the limit of requests; in an open one the tickets of a thread are due at equal intervals (or
//! in bursts), and any free client takes the next one: if early, it waits until the ticket is due;
//! if late, the delay counts. Being late although a client was free is this program's own delay and
//! is counted separately.

use crate::choice::Asker;
use crate::client::{Client, Connector};
use crate::exchange::{Answer, Ask};
use crate::failure::{Failure, Kind};
use crate::plan::{Pace, Plan, Protocol};
use crate::results::{Outcome, Own, Results};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The pause after a connection that could not be opened.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Interval at which the observer is called.
const TICK: Duration = Duration::from_millis(50);
/// Idle connections opened at a time by a thread.
const IDLE_AT_ONCE: usize = 64;

/// Descriptors that are not connections.
const DESCRIPTORS_BESIDE: usize = 1_000;

/// Events for an observer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// The measured time begins.
    Begin,
    /// Some time has passed.
    Tick {
        /// The completed share of the measured time, or of the requests: 0 to 1.
        done: f64,
        /// Correct answers so far, the warm-up included.
        answers: u64,
        /// Failures so far.
        failures: u64,
    },
    /// The measured time is over; the last answers may still be expected.
    End,
}

#[derive(Default)]
struct Shared {
    /// Tickets taken, if there is a limit.
    taken: AtomicU64,
    answers: AtomicU64,
    failures: AtomicU64,
    idle_ready: AtomicU64,
    stop: AtomicBool,
    ended: AtomicU64,
}

/// Points in time of a run.
#[derive(Clone, Copy)]
struct Moments {
    start: Instant,
    begin: Instant,
    end: Instant,
}

/// Makes the load. The observer returns false to stop it; then the outcome covers the results so
/// far.
///
/// # Errors
/// Threads or event loops could not be created, or the target is unreachable.
pub fn run(plan: &Plan, observe: &mut dyn FnMut(Event) -> bool) -> Result<Outcome, String> {
    raise_descriptor_limit((plan.connections + plan.idle + DESCRIPTORS_BESIDE) as u64);
    let threads = plan.threads.clamp(1, plan.connections.max(1));
    let plan = Arc::new(plan.clone());
    let shared = Arc::new(Shared::default());
    // Threads begin together, when all idle connections are open.
    let barrier = Arc::new(tokio::sync::watch::channel::<Option<Moments>>(None));
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let (plan, shared, barrier) = (Arc::clone(&plan), Arc::clone(&shared), Arc::clone(&barrier));
            std::thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn(move || thread(plan, &shared, barrier.0.subscribe(), number, threads))
                .map_err(|error| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    let is_dead = || workers.iter().any(std::thread::JoinHandle::is_finished);
    while shared.idle_ready.load(Ordering::Acquire) < threads as u64 && !is_dead() {
        std::thread::sleep(Duration::from_millis(1));
        if !observe(Event::Tick { done: 0.0, answers: 0, failures: shared.failures.load(Ordering::Relaxed) }) {
            shared.stop.store(true, Ordering::Relaxed);
            break;
        }
    }
    let start = Instant::now();
    let moments = Moments { start, begin: start + plan.warm_up, end: start + plan.warm_up + plan.duration };
    let _ = barrier.0.send(Some(moments));
    let ended = watch(&plan, &shared, moments, threads, observe);
    let mut results = Results::default();
    let mut own = Own::default();
    for worker in workers {
        let (one, took) = worker.join().map_err(|_| "a thread of the load panicked")??;
        results.merge(&one);
        own = Own { busy: own.busy.max(took.busy), starved: own.starved.max(took.starved) };
    }
    let seconds = ended.saturating_duration_since(moments.begin).as_secs_f64();
    Ok(Outcome::new(results, plan.pace, seconds, own))
}

/// Calls the observer until the end; returns the time of the end.
fn watch(
    plan: &Plan,
    shared: &Shared,
    moments: Moments,
    threads: usize,
    observe: &mut dyn FnMut(Event) -> bool,
) -> Instant {
    let mut has_begun = false;
    let mut goes_on = true;
    loop {
        let now = Instant::now();
        if now >= moments.begin && !has_begun {
            has_begun = true;
            goes_on &= observe(Event::Begin);
        }
        let is_over = now >= moments.end || shared.ended.load(Ordering::Acquire) == threads as u64;
        if is_over || !goes_on {
            shared.stop.store(!is_over, Ordering::Relaxed);
            observe(Event::End);
            return now.min(moments.end).max(moments.begin);
        }
        let answers = shared.answers.load(Ordering::Relaxed);
        let failures = shared.failures.load(Ordering::Relaxed);
        let of_time = (now - moments.start).as_secs_f64() / (moments.end - moments.start).as_secs_f64();
        let of_requests = plan.requests_max.map_or(0.0, |most| (answers + failures) as f64 / most.max(1) as f64);
        goes_on &= observe(Event::Tick { done: of_time.max(of_requests).clamp(0.0, 1.0), answers, failures });
        let next = if has_begun { moments.end } else { moments.begin };
        std::thread::sleep(TICK.min(next.saturating_duration_since(Instant::now())));
    }
}

/// Raises the limit of descriptors to `wanted`, as far as this process may.
pub fn raise_descriptor_limit(wanted: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Only the system's administrator may exceed the hard limit.
        if soft < wanted && (hard >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted).is_err()) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}

/// Nanoseconds that this thread ran on a core, and that it waited for one.
fn on_core() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut words = text.split_ascii_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

type Start = tokio::sync::watch::Receiver<Option<Moments>>;

fn thread(
    plan: Arc<Plan>,
    shared: &Arc<Shared>,
    mut start: Start,
    number: usize,
    threads: usize,
) -> Result<(Results, Own), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let result = tokio::task::LocalSet::new().block_on(&runtime, async {
        let way = Connector::new(&plan).map_err(|failure| failure.said)?;
        let own = Rc::new(Worker {
            asker: RefCell::new(Asker::new(&plan.choice, plan.seed, number, threads)),
            results: RefCell::default(),
            ticket: Cell::new(0),
            moments: Cell::new(None),
            way,
            shared: Arc::clone(shared),
            number,
            threads,
            plan,
        });
        let idle = own.open_idle().await;
        own.shared.idle_ready.fetch_add(1, Ordering::Release);
        let moments = start.wait_for(Option::is_some).await.map_err(|error| error.to_string())?.ok_or("no start")?;
        own.moments.set(Some(moments));
        let used = own.run(moments).await;
        drop(idle);
        own.shared.ended.fetch_add(1, Ordering::Release);
        let mut results = own.results.take();
        if let Some((count, wait)) = own.unsent(moments) {
            results.miss(wait, count);
        }
        Ok((results, used))
    });
    runtime.shutdown_background();
    result
}

/// The state of one thread.
struct Worker {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    way: Connector,
    asker: RefCell<Asker>,
    results: RefCell<Results>,
    /// The number of the next ticket of an open loop.
    ticket: Cell<u64>,
    moments: Cell<Option<Moments>>,
    number: usize,
    threads: usize,
}

/// The permission for one request.
struct Ticket {
    /// Start of the measured time of the answer.
    due: Instant,
    /// Taken before it was due: its client was free.
    was_free: bool,
}

/// Resources of a client.
struct ClientSlot {
    client: Option<Client>,
    asked: u64,
}

impl Worker {
    /// This thread's share of a number.
    fn share(&self, all: usize) -> usize {
        all / self.threads + usize::from(self.number < all % self.threads)
    }

    /// Opens the idle connections, each of which answers one request.
    async fn open_idle(self: &Rc<Worker>) -> Vec<Client> {
        let mut held = Vec::new();
        let opening = async {
            let mut missing = self.share(if self.plan.protocol == Protocol::Http1 { self.plan.idle } else { 0 });
            while missing > 0 {
                let count = missing.min(IDLE_AT_ONCE);
                let before = held.len();
                let mut opening = tokio::task::JoinSet::new();
                for _ in 0..count {
                    opening.spawn_local(Rc::clone(self).open_one_idle());
                }
                let mut has_waited = false;
                while let Some(one) = opening.join_next().await {
                    match one {
                        Ok(Ok(client)) => held.push(client),
                        Ok(Err(failure)) => {
                            has_waited |= failure.kind == Kind::Timeout;
                            self.failed(failure);
                        }
                        Err(_) => {}
                    }
                }
                // The others would only wait equally long, one after another.
                if has_waited && held.len() == before {
                    return;
                }
                missing -= count;
            }
        };
        tokio::select! {
            () = opening => {}
            () = self.broken_off() => {}
        }
        held
    }

    async fn open_one_idle(self: Rc<Worker>) -> Result<Client, Failure> {
        let opening = async {
            let mut client = self.way.open().await?;
            let path = self.asker.borrow_mut().next().to_owned();
            client.ask(&self.ask(&path, false), None).await.map(|_| client)
        };
        tokio::time::timeout(self.plan.timeout, opening).await.unwrap_or_else(|_| Err(self.too_late()))
    }

    fn too_late(&self) -> Failure {
        Failure::new(Kind::Timeout, format!("no answer in {:?}", self.plan.timeout))
    }

    /// Waits until the observer stops the load.
    async fn broken_off(&self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(TICK).await;
        }
    }

    fn ask<'a>(&'a self, path: &'a str, is_last: bool) -> Ask<'a> {
        let plan = &*self.plan;
        Ask { method: &plan.method, path, authority: &plan.target.authority, headers: &plan.headers, is_last }
    }

    /// Runs all clients of this thread to their end.
    async fn run(self: &Rc<Worker>, moments: Moments) -> Own {
        let used = Rc::new(Cell::new((None, None)));
        let meter = {
            let used = Rc::clone(&used);
            tokio::task::spawn_local(async move {
                tokio::time::sleep_until(moments.begin.into()).await;
                used.set((on_core().map(|taken| (taken, Instant::now())), None));
                tokio::time::sleep_until(moments.end.into()).await;
                used.set((used.get().0, on_core().map(|taken| (taken, Instant::now()))));
            })
        };
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..self.share(self.plan.connections) {
            if self.plan.protocol == Protocol::Http1 {
                clients.spawn_local(Rc::clone(self).one_after_another());
            } else {
                let client_slot = Rc::new(tokio::sync::Mutex::new(ClientSlot { client: None, asked: 0 }));
                for _ in 0..self.plan.streams.max(1) {
                    clients.spawn_local(Rc::clone(self).side_by_side(Rc::clone(&client_slot)));
                }
            }
        }
        tokio::select! {
            () = async { while clients.join_next().await.is_some() {} } => {}
            () = self.broken_off() => self.results.borrow_mut().unfinished += clients.len() as u64,
        }
        let (first, last) = match used.get() {
            (Some(first), Some(last)) => (first, last),
            (Some(first), None) => (first, (on_core().unwrap_or_default(), Instant::now())),
            (None, _) => return Own::default(),
        };
        meter.abort();
        let nanoseconds = (last.1 - first.1).as_nanos().max(1) as f64;
        let share = |taken: u64, before: u64| taken.saturating_sub(before) as f64 / nanoseconds;
        Own { busy: share(last.0.0, first.0.0), starved: share(last.0.1, first.0.1) }
    }

    /// Due time of a ticket of an open loop; `None` in a closed one.
    fn due(&self, number: u64, moments: Moments) -> Option<Instant> {
        let Pace::Open { per_second, burst } = self.plan.pace else { return None };
        let burst = burst.max(1);
        // Bursts of all threads begin together; single requests of one thread are interleaved with
        // those of the others.
        let all = number * self.threads as u64 + self.number as u64;
        let seconds = (all / burst * burst) as f64 / per_second;
        Some(moments.start + Duration::try_from_secs_f64(seconds).unwrap_or(crate::plan::DURATION_MAX))
    }

    /// The next ticket, when it is due; `None` at the end.
    async fn ticket(&self) -> Option<Ticket> {
        let moments = self.moments.get()?;
        let now = Instant::now();
        if let Some(most) = self.plan.requests_max
            && self.shared.taken.fetch_add(1, Ordering::Relaxed) >= most
        {
            return None;
        }
        let number = self.ticket.get();
        let Some(due) = self.due(number, moments) else {
            return (now < moments.end).then_some(Ticket { due: now, was_free: false });
        };
        if due >= moments.end || now >= moments.end {
            return None;
        }
        self.ticket.set(number + 1);
        if due > now {
            tokio::time::sleep_until(due.into()).await;
        }
        Some(Ticket { due, was_free: due > now })
    }

    /// Tickets of an open loop that no client took, and the wait of the first of them at the end.
    /// Only a complete run has any.
    fn unsent(&self, moments: Moments) -> Option<(u64, Duration)> {
        if self.plan.requests_max.is_some() || self.shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.due(self.ticket.get(), moments)?;
        let wait = moments.end.checked_duration_since(first.max(moments.begin)).filter(|wait| !wait.is_zero())?;
        let Pace::Open { per_second, .. } = self.plan.pace else { return None };
        Some(((wait.as_secs_f64() * per_second / self.threads as f64).ceil() as u64, wait))
    }

    /// A client of HTTP/1, with a connection of its own.
    async fn one_after_another(self: Rc<Worker>) {
        let mut client_slot = ClientSlot { client: None, asked: 0 };
        let mut path = String::new();
        while let Some(ticket) = self.ticket().await {
            let sent = Instant::now();
            self.path(&mut path);
            let asking = async {
                let mut may_repeat = client_slot.client.is_some();
                loop {
                    let is_last = self.plan.per_connection.is_some_and(|most| client_slot.asked + 1 >= most);
                    let client = match &mut client_slot.client {
                        Some(client) => client,
                        none => none.insert(self.open().await?),
                    };
                    if self.plan.per_connection == Some(0) {
                        return Ok(None);
                    }
                    client_slot.asked += 1;
                    match client.ask(&self.ask(&path, is_last), None).await {
                        // A kept connection may reach its timeout, which is not an error.
                        Err(failure) if may_repeat && !client.has_begun() && is_end(failure.kind) => {
                            may_repeat = false;
                            (client_slot.client, client_slot.asked) = (None, 0);
                            self.count(|results| results.reopened += 1);
                        }
                        result => return result.map(Some),
                    }
                }
            };
            let result = tokio::time::timeout(self.plan.timeout, asking).await;
            let is_ended = match &result {
                Ok(Ok(_)) => {
                    client_slot.client.as_ref().is_some_and(Client::is_over) || self.plan.per_connection == Some(0)
                }
                _ => true,
            };
            if is_ended {
                client_slot.asked = 0;
                if let Some(client) = client_slot.client.take() {
                    client.close().await;
                }
            }
            self.done(&ticket, sent, result).await;
        }
    }

    /// A stream of HTTP/2 or HTTP/3, which shares its connection.
    async fn side_by_side(self: Rc<Worker>, client_slot: Rc<tokio::sync::Mutex<ClientSlot>>) {
        let mut path = String::new();
        while let Some(ticket) = self.ticket().await {
            let sent = Instant::now();
            self.path(&mut path);
            let asking = async {
                let mut held = client_slot.lock().await;
                let is_used_up = self.plan.per_connection.is_some_and(|most| held.asked >= most);
                if held.client.as_ref().is_some_and(Client::is_over) || is_used_up {
                    (held.client, held.asked) = (None, 0);
                }
                if held.client.is_none() {
                    held.client = Some(self.open().await?);
                }
                held.asked += 1;
                let shared = held.client.as_ref().and_then(Client::share);
                drop(held);
                let mut client = shared.ok_or_else(|| Failure::new(Kind::Other, "no connection"))?;
                if self.plan.per_connection == Some(0) {
                    client.close().await;
                    return Ok(None);
                }
                client.ask(&self.ask(&path, false), None).await.map(Some)
            };
            let result = tokio::time::timeout(self.plan.timeout, asking).await;
            self.done(&ticket, sent, result).await;
        }
    }

    fn path(&self, into: &mut String) {
        into.clear();
        into.push_str(self.asker.borrow_mut().next());
    }

    async fn open(&self) -> Result<Client, Failure> {
        let since = Instant::now();
        let client = self.way.open().await?;
        self.count(|results| {
            results.connections += 1;
            results.resumed += u64::from(client.is_resumed());
            results.connecting.add(since.elapsed());
        });
        Ok(client)
    }

    /// Counts, unless this is the warm-up.
    fn count(&self, add: impl FnOnce(&mut Results)) {
        if self.moments.get().is_some_and(|moments| Instant::now() >= moments.begin) {
            add(&mut self.results.borrow_mut());
        }
    }

    fn failed(&self, failure: Failure) {
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
        self.results.borrow_mut().fail(failure);
    }

    /// Counts the result of a ticket; `Ok(Ok(None))`: a connection was opened, as the plan
    /// requires.
    async fn done(
        &self,
        ticket: &Ticket,
        sent: Instant,
        result: Result<Result<Option<Answer>, Failure>, tokio::time::error::Elapsed>,
    ) {
        let now = Instant::now();
        let Some(moments) = self.moments.get().filter(|moments| now >= moments.begin) else {
            self.shared.answers.fetch_add(1, Ordering::Relaxed);
            // The pause below applies to the warm-up too.
            if matches!(result, Ok(Err(_))) {
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            return;
        };
        // Sent late by a free client: that is not the server's delay.
        let from = if ticket.was_free { sent } else { ticket.due };
        let time = |results: &mut Results| {
            results.latency.add(now - from);
            results.service.add(now - sent);
            if ticket.was_free {
                results.late.add(sent - ticket.due);
            }
        };
        let judged = match result {
            Ok(Ok(answer)) => self.judge(answer).map(|()| answer),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(self.too_late()),
        };
        match judged {
            Ok(answer) => {
                self.shared.answers.fetch_add(1, Ordering::Relaxed);
                let mut results = self.results.borrow_mut();
                results.answers += 1;
                results.answers_in_time += u64::from(now <= moments.end);
                if let Some(answer) = answer {
                    results.body_bytes += answer.body_bytes;
                    results.hits.0 += u64::from(answer.hit == Some(true));
                    results.hits.1 += u64::from(answer.hit.is_some());
                }
                time(&mut results);
            }
            Err(failure) => {
                let kind = failure.kind;
                // Failed requests have waited too; a quick refusal would only improve the
                // percentiles.
                if matches!(kind, Kind::Timeout | Kind::Status | Kind::Length) {
                    time(&mut self.results.borrow_mut());
                }
                self.failed(failure);
                if !matches!(kind, Kind::Timeout | Kind::Status | Kind::Length) {
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    /// Checks that an answer is the expected one.
    fn judge(&self, answer: Option<Answer>) -> Result<(), Failure> {
        let Some(answer) = answer else { return Ok(()) };
        let is_right = match self.plan.expect_status {
            Some(status) => answer.status == status,
            None => answer.status < 400,
        };
        if !is_right {
            return Err(Failure::new(Kind::Status, answer.status.to_string()));
        }
        match self.plan.expect_bytes {
            Some(bytes) if bytes != answer.body_bytes => {
                Err(Failure::new(Kind::Length, format!("{} bytes of body, {bytes} expected", answer.body_bytes)))
            }
            _ => Ok(()),
        }
    }
}

/// True if a failure is the regular end of a kept connection.
fn is_end(kind: Kind) -> bool {
    matches!(kind, Kind::Closed | Kind::Reset)
}
