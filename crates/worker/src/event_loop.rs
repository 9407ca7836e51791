//! One event loop: a thread with a tokio current_thread runtime, its own listening sockets, its own
//! idle connections.
//!
//! A connection stays on the loop that accepted it. The main thread controls a loop only through a
//! channel.

use engine::clock::Clock;
use engine::context::{Engine, Loop, LoopPools};
use engine::mempool_sizes;
use engine::peer::Listener;
use engine::request::PoolLimits;
use net::accept::{ListenSocket, accept_loop};
use net::descriptors::Complaints;
use net::dial::SocketDial;
use net::handshake::{SharedTls, TlsService};
use net::options::ConnectedSockets;
use net::quic::{self, QuicConfiguration, QuicEndpoint};
use shm::counters::MainCounters;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tls::origin::OriginTls;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// State that all loops of a worker share.
#[derive(Clone)]
pub struct Shared {
    /// Reports that descriptors have run out.
    pub complaints: Arc<Complaints>,
    /// TLS configuration towards origins.
    pub origin_tls: Arc<OriginTls>,
    /// TLS configuration towards clients.
    pub tls: Arc<SharedTls>,
}

/// Interval between searches for idle connections to close.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between reports of a loop that is stopping.
const REPORT_INTERVAL: Duration = Duration::from_millis(5);

/// Time after the beginning of a stop at which HTTP/2 and HTTP/3 connections have received it.
const LEAVING_BEGINS: Duration = Duration::from_millis(5);

/// Interval between checks of a loop that is to end.
const END_INTERVAL: Duration = Duration::from_millis(1);

/// A listening descriptor of one loop, with its facts.
pub struct Listening {
    /// Descriptor, inherited from the manager.
    pub descriptor: OwnedFd,
    /// Facts that sessions need.
    pub listener: Listener,
    /// The UDP socket, with HTTP/3.
    pub datagrams: Option<Datagrams>,
}

/// A UDP socket of one loop.
pub struct Datagrams {
    /// Descriptor, inherited from the manager.
    pub descriptor: OwnedFd,
    /// The loop's number.
    pub number: usize,
    /// Configuration that all loops share.
    pub configuration: QuicConfiguration,
}

/// Main thread to loop.
pub enum LoopCommand {
    /// Begin to accept.
    Accept(Vec<Listening>),
    /// Stop accepting, and report requests in flight.
    Stop,
    /// Ends the loop. Requests that have just begun may take this long.
    End(Duration),
}

/// The main thread's end of a loop.
pub struct LoopHandle {
    commands: mpsc::UnboundedSender<LoopCommand>,
    /// Counters of this loop.
    pub counters: Arc<MainCounters>,
    /// Counters of its requests, sessions and fetches, sections MEMPOOL.
    pub pools: LoopPools,
    /// Requests and fetches in flight, as of the loop's last report while stopping.
    pub in_flight: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl LoopHandle {
    /// Starts the thread, and waits until it has its runtime.
    ///
    /// # Errors
    /// The system cannot start a thread, or has no descriptor or further thread for its runtime.
    pub fn start(number: usize, engine: &Arc<Engine>, clock: &Clock, shared: &Shared) -> Result<LoopHandle, String> {
        let (commands, received) = mpsc::unbounded_channel();
        let counters = Arc::new(MainCounters::new());
        let in_flight = Arc::new(AtomicUsize::new(usize::MAX));
        let (engine, clock, shared) = (Arc::clone(engine), clock.clone(), shared.clone());
        let pools = LoopPools::default();
        let of_thread = (Arc::clone(&counters), pools.clone());
        let reported = Arc::clone(&in_flight);
        let served = move |runtime: &Runtime| run(runtime, engine, clock, &shared, of_thread, received, &reported);
        let thread = start_thread(number, crate::runtime::build, served)?;
        Ok(LoopHandle { commands, counters, pools, in_flight, thread })
    }

    /// True if the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the loop's end, also by a panic.
    pub async fn ended(&self) {
        self.commands.closed().await;
    }

    /// Sends a command; has no effect if the loop is gone.
    pub fn send(&self, command: LoopCommand) {
        let _ = self.commands.send(command);
    }
}

/// Starts the thread of a loop. Returns once it has its runtime: a loop without one would accept
/// its share of the clients, and serve none.
fn start_thread(
    number: usize,
    build: impl FnOnce() -> io::Result<Runtime> + Send + 'static,
    served: impl FnOnce(&Runtime) + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    let of_thread = move || match build() {
        Ok(runtime) => {
            let _ = begun.send(Ok(()));
            served(&runtime);
        }
        Err(error) => _ = begun.send(Err(error)),
    };
    let thread = std::thread::Builder::new()
        .name(format!("loop-{number}"))
        .spawn(of_thread)
        .map_err(|error| format!("no thread for an event loop: {error}"))?;
    match has_begun.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(format!("no event loop: {error}")),
        Err(_) => Err("no event loop: its thread has ended".to_owned()),
    }
}

/// Creates the private part of a loop on the current thread; `sockets` are its clients' sockets.
pub fn context(
    engine: Arc<Engine>,
    clock: Clock,
    shared: &Shared,
    (counters, pools): Counters,
    sockets: Rc<ConnectedSockets>,
) -> Rc<Loop> {
    let dial = SocketDial::new(Arc::clone(&shared.complaints), clock.clone(), Arc::clone(&shared.origin_tls));
    let context = Loop::new(engine, counters, Rc::new(dial), clock);
    mempool_sizes::note(&pools);
    Rc::new(context.with_sockets(sockets).with_pool_counters(pools))
}

/// Counters of a loop: MAIN, and MEMPOOL.
pub type Counters = (Arc<MainCounters>, LoopPools);

/// Closes connections to origins that were unused for `backend_idle_timeout`, and keeps `pool_req`
/// requests in reserve.
async fn close_idle(context: Rc<Loop>) {
    loop {
        let (timeout, limits) = {
            let parameters = context.engine.parameters.load();
            (parameters.backend_idle_timeout, PoolLimits::parse(&parameters.pool_req))
        };
        let now = context.clock.now();
        context.close_idle_origins(now, timeout);
        context.requests.adjust(limits, &context.engine.ring, now);
        tokio::time::sleep(IDLE_INTERVAL).await;
    }
}

/// Serves HTTP/3 on a UDP socket.
fn receive(
    context: &Rc<Loop>,
    datagrams: Datagrams,
    listener: &Rc<Listener>,
    tls: &Arc<SharedTls>,
) -> io::Result<(Rc<QuicEndpoint>, tokio::task::JoinHandle<()>)> {
    let Datagrams { descriptor, number, configuration } = datagrams;
    let endpoint = Rc::new(QuicEndpoint::new(context, descriptor, number, &configuration)?);
    let (tls, name) = (Arc::clone(tls), listener.name.clone());
    let frontend = move || tls.load().of(&name);
    let accepting = quic::accept_loop(Rc::clone(context), Rc::clone(&endpoint), Rc::clone(listener), frontend);
    Ok((endpoint, tokio::task::spawn_local(accepting)))
}

fn run(
    runtime: &Runtime,
    engine: Arc<Engine>,
    clock: Clock,
    shared: &Shared,
    counters: Counters,
    mut commands: mpsc::UnboundedReceiver<LoopCommand>,
    in_flight: &AtomicUsize,
) {
    let local = tokio::task::LocalSet::new();
    local.block_on(runtime, async {
        let sockets = Rc::new(ConnectedSockets::default());
        let context = context(engine, clock, shared, counters, Rc::clone(&sockets));
        tokio::task::spawn_local(close_idle(Rc::clone(&context)));
        let tls = TlsService::new(Arc::clone(&shared.tls));
        let (mut acceptors, mut endpoints) = (Vec::new(), Vec::new());
        while let Some(command) = commands.recv().await {
            match command {
                LoopCommand::Accept(listening) => {
                    for one in listening {
                        let name = one.listener.name.clone();
                        let listener = Rc::new(one.listener);
                        if let Some(datagrams) = one.datagrams {
                            match receive(&context, datagrams, &listener, &shared.tls) {
                                Ok((endpoint, acceptor)) => {
                                    endpoints.push(endpoint);
                                    acceptors.push(acceptor);
                                }
                                Err(error) => eprintln!("listener {name}, UDP: {error}"),
                            }
                        }
                        let complaints = Arc::clone(&shared.complaints);
                        match ListenSocket::new(one.descriptor, listener, complaints, tls.clone()) {
                            Ok(socket) => acceptors.push(tokio::task::spawn_local(accept_loop(
                                Rc::clone(&context),
                                socket,
                                Rc::clone(&sockets),
                            ))),
                            Err(error) => eprintln!("listener {name}: {error}"),
                        }
                    }
                }
                LoopCommand::Stop => {
                    endpoints.iter().for_each(|endpoint: &Rc<QuicEndpoint>| endpoint.leave());
                    if context.tell_of_stop() || !endpoints.is_empty() {
                        // Idle clients of HTTP/2 are sent a GOAWAY; HTTP/3 connections count as in
                        // flight until their tasks have sent theirs.
                        tokio::time::sleep(LEAVING_BEGINS).await;
                    }
                    for acceptor in acceptors.drain(..) {
                        acceptor.abort();
                    }
                    loop {
                        let busy = if context.open_sessions() == 0 { 0 } else { context.in_flight() };
                        in_flight.store(busy, Ordering::Release);
                        if busy == 0 {
                            break;
                        }
                        match tokio::time::timeout(REPORT_INTERVAL, commands.recv()).await {
                            Ok(Some(LoopCommand::End(patience))) => {
                                return finish(&context, patience, &mut commands).await;
                            }
                            Ok(None) => return,
                            // No other command follows a stop.
                            Ok(Some(LoopCommand::Accept(_) | LoopCommand::Stop)) | Err(_) => {}
                        }
                    }
                }
                LoopCommand::End(patience) => return finish(&context, patience, &mut commands).await,
            }
        }
    });
}

/// Waits for requests that arrived after the last report: idle clients may have sent one meanwhile.
/// Each is the last one of its connection. A second command ends the wait.
async fn finish(context: &Loop, patience: Duration, commands: &mut mpsc::UnboundedReceiver<LoopCommand>) {
    let finished = async {
        while context.open_sessions() > 0 && context.in_flight() > 0 {
            tokio::time::sleep(END_INTERVAL).await;
        }
    };
    tokio::select! {
        () = finished => {}
        () = tokio::time::sleep(patience) => {}
        _ = commands.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop with this behaviour.
    fn started(served: impl FnOnce(mpsc::UnboundedReceiver<LoopCommand>) + Send + 'static) -> LoopHandle {
        let (commands, received) = mpsc::unbounded_channel();
        let thread = start_thread(0, crate::runtime::build, move |_| served(received)).unwrap();
        LoopHandle {
            commands,
            counters: Arc::new(MainCounters::new()),
            pools: LoopPools::default(),
            in_flight: Arc::default(),
            thread,
        }
    }

    #[test]
    fn a_loop_without_a_runtime_is_an_error() {
        let failing = || Err(io::Error::from_raw_os_error(24));
        let why = start_thread(3, failing, |_| unreachable!()).map(drop).unwrap_err();
        assert_eq!(why, "no event loop: Too many open files (os error 24)");
    }

    #[test]
    fn the_end_of_a_loop_is_noticed_even_if_it_panics() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let fine = started(|mut commands| drop(commands.blocking_recv()));
        let panicking = started(|_| panic!("on purpose"));
        runtime.block_on(panicking.ended());
        let still = tokio::task::unconstrained(async {
            let mut ended = std::pin::pin!(fine.ended());
            std::future::poll_fn(|context| std::task::Poll::Ready(ended.as_mut().poll(context).is_pending())).await
        });
        assert!(runtime.block_on(still));
        fine.send(LoopCommand::Stop);
        runtime.block_on(fine.ended());
    }
}
