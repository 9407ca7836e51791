//! The fleet of this node: what its agent, the worker and the CLI have to do with one another.
//!
//! ```text
//! agent ──Serve, Apply──▶ queue ──▶ worker          CLI ──Command──▶ agent
//!       ◀──Applied────────────────                      ◀──Answer───
//! ```
//!
//! The agent is less trusted: its messages have a bounded length, its queue is bounded (beyond, it
//! is not read), its lines are escaped and counted, its orders are checked. *Invariant:* orders and
//! conditions are carried out in the order in which they came, and an order is answered when the
//! worker has carried it out durably. Requests never wait for the agent. Without one the last
//! conditions hold for `fleet_lost_after`, then those of `fleet_when_lost`.
//!
//! Next files: `fleet/agent.rs` (the process), `fleet/work.rs` (the worker), `fleet/order.rs`.

mod agent;
pub mod order;
mod work;

use crate::arguments::fleet::FleetArgument;
use crate::report::Level;
use crate::state::Manager;
use control::fleet::{FleetOrder, FleetServing};
use fleet::exchange::{ApplyId, RequestId};
use fleet::link::{Command, Reply, Settings, ToAgent, ToManager};
use fleet::{NodeId, Serving};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use surface::fleet::WhenLost;
use surface::legible::line;
use surface::limits::{FLEET_APPLIES_MAX, FLEET_LINE_BYTES_MAX, FLEET_LINES_MAX, FLEET_WAITS_MAX};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::spawn_local;

/// Time that a command may take longer than it waits for members.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// Time for which lines of the agent are counted.
const LINES_TIME: Duration = Duration::from_secs(10);
/// The file with the number in the name of this node.
const NUMBER_FILE: &str = "_.fleet_node";
/// The folder of the agent's files.
const FOLDER: &str = "fleet";

/// The fleet.
pub struct Fleet {
    argument: FleetArgument,
    state: RefCell<State>,
    /// Wakes the task for the worker.
    work: Notify,
    /// Wakes the reader of the agent: the queue has room.
    room: Notify,
    /// The agent does not read its messages.
    broken: Notify,
}

/// A thing that the agent has ordered.
#[derive(Clone, Debug)]
enum Item {
    /// Conditions.
    Serve(Serving),
    /// An invalidation.
    Apply(ApplyId, FleetOrder),
}

struct State {
    /// Messages to the agent that runs.
    agent: Option<mpsc::Sender<ToAgent>>,
    /// Number of agents so far: items of an earlier one are not answered.
    agents: u64,
    queue: VecDeque<Item>,
    /// Commands that wait for their answer.
    commands: HashMap<RequestId, oneshot::Sender<Reply>>,
    last_request: RequestId,
    /// The conditions that the last agent ordered, or that the manager set without one.
    serving: Serving,
    /// They are the manager's: there was no agent for too long.
    is_lost: bool,
    /// An agent has ended before it had all of its conditions carried out.
    is_cut: bool,
    /// No agent, or none that has said anything, since then.
    silent_since: Option<Instant>,
    /// Worker that the agent knows of.
    told: Option<u32>,
    /// Worker that the last agent knew of.
    known: Option<u32>,
    /// Number of the last agent that was told of a worker.
    greeted: u64,
    /// Conditions that a worker has.
    carried: Option<(u32, FleetServing)>,
    settings: Option<Settings>,
    lines: (Instant, u32),
}

impl Fleet {
    /// The fleet of the command line.
    #[must_use]
    pub fn new(argument: FleetArgument) -> Fleet {
        let now = Instant::now();
        let state = State {
            agent: None,
            agents: 0,
            queue: VecDeque::new(),
            commands: HashMap::new(),
            last_request: 0,
            serving: Serving::Joining,
            is_lost: false,
            is_cut: false,
            silent_since: Some(now),
            told: None,
            known: None,
            greeted: 0,
            carried: None,
            settings: None,
            lines: (now, 0),
        };
        Fleet { argument, state: RefCell::new(state), work: Notify::new(), room: Notify::new(), broken: Notify::new() }
    }

    /// A worker has started or ended, or may take requests now.
    pub fn worker_changed(&self) {
        self.work.notify_one();
    }

    /// Conditions for a worker that is about to start.
    #[must_use]
    pub fn serving(&self) -> FleetServing {
        of_worker(self.state.borrow().serving)
    }

    /// A worker has got these conditions.
    pub fn carried(&self, pid: u32, serving: FleetServing) {
        self.state.borrow_mut().carried = Some((pid, serving));
    }

    /// Sends new values of parameters to the agent.
    pub fn parameters_changed(&self, manager: &Manager) {
        let settings = settings(manager, &self.argument);
        let mut state = self.state.borrow_mut();
        if state.settings.as_ref() != Some(&settings)
            && let Some(agent) = &state.agent
        {
            if agent.try_send(ToAgent::Settings(settings.clone())).is_err() {
                self.broken.notify_one();
            }
            state.settings = Some(settings);
        }
    }

    /// A line about the state for the operator: conditions, and the time without an agent.
    #[must_use]
    pub fn shown(&self) -> String {
        let state = self.state.borrow();
        let serving = serving_shown(state.serving);
        match state.silent_since {
            Some(since) if state.agent.is_none() || state.is_lost => {
                format!("{serving}; no agent for {} s", since.elapsed().as_secs())
            }
            _ => serving.to_owned(),
        }
    }

    /// Sends a command to the agent and waits for its answer.
    ///
    /// # Errors
    /// The reason why there is none.
    pub async fn ask(&self, command: Command, wait: Option<Duration>) -> Result<Reply, String> {
        let wait_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let (request, reply) = {
            let mut state = self.state.borrow_mut();
            if state.commands.len() >= FLEET_WAITS_MAX {
                return Err(format!("{FLEET_WAITS_MAX} commands wait for the fleet already"));
            }
            let Some(agent) = state.agent.clone() else {
                return Err("the fleet's agent does not run; it is started again".to_owned());
            };
            let (answer, reply) = oneshot::channel();
            state.last_request += 1;
            let request = state.last_request;
            let has_room = agent.capacity() > agent.max_capacity() / 2;
            if !has_room || agent.try_send(ToAgent::Command { request, command, wait_ms }).is_err() {
                return Err("the fleet's agent does not read its messages".to_owned());
            }
            state.commands.insert(request, answer);
            (request, reply)
        };
        // The connection that asked may end while this waits.
        let _forget = Forget { fleet: self, request };
        match tokio::time::timeout(ANSWER_PATIENCE + wait.unwrap_or_default(), reply).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(_)) => Err("the fleet's agent ended; it may have carried the command out".to_owned()),
            Err(_) => Err("the fleet's agent does not answer; it may have carried the command out".to_owned()),
        }
    }

    /// Takes a message of the agent.
    ///
    /// # Errors
    /// There is no room: the message is to be given again later.
    fn take(&self, manager: &Manager, message: ToManager) -> Result<(), ToManager> {
        let mut state = self.state.borrow_mut();
        if state.queue.len() >= FLEET_APPLIES_MAX && matches!(message, ToManager::Serve(_) | ToManager::Apply { .. }) {
            return Err(message);
        }
        state.silent_since = None;
        if state.is_lost {
            // It is not a continuation: until its first conditions, those of the start hold.
            state.is_lost = false;
            state.queue.push_back(Item::Serve(Serving::Joining));
            self.work.notify_one();
        }
        match message {
            ToManager::Serve(serving) => {
                state.queue.push_back(Item::Serve(serving));
                self.work.notify_one();
            }
            ToManager::Apply { id, invalidation } => match order::of(&invalidation) {
                Ok(order) => {
                    state.queue.push_back(Item::Apply(id, order));
                    self.work.notify_one();
                }
                Err(error) => {
                    drop(state);
                    self.tell(ToAgent::NotApplied { id, error });
                }
            },
            ToManager::Answer { request, reply } => {
                // One that is not known has waited too long.
                if let Some(answer) = state.commands.remove(&request) {
                    let _ = answer.send(reply);
                }
            }
            ToManager::Say { is_warning, text } => {
                let text = state.limited(&text);
                drop(state);
                let level = if is_warning { Level::Warning } else { Level::Info };
                text.iter().for_each(|text| manager.say(level, text));
            }
        }
        Ok(())
    }
}

/// Removes a command that nothing waits for any more.
struct Forget<'a> {
    fleet: &'a Fleet,
    request: RequestId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.fleet.state.borrow_mut().commands.remove(&self.request);
    }
}

impl State {
    /// A line of the agent as it is reported; `None` if there were too many.
    fn limited(&mut self, text: &str) -> Option<String> {
        let now = Instant::now();
        if now.duration_since(self.lines.0) > LINES_TIME {
            self.lines = (now, 0);
        }
        self.lines.1 = self.lines.1.saturating_add(1);
        let bytes = &text.as_bytes()[..text.len().min(FLEET_LINE_BYTES_MAX)];
        match self.lines.1 {
            ..=FLEET_LINES_MAX => Some(format!("Fleet: {}", line(bytes))),
            count if count == FLEET_LINES_MAX + 1 => Some("Fleet: more lines follow, which are not shown".to_owned()),
            _ => None,
        }
    }
}

/// The conditions of the worker.
fn of_worker(serving: Serving) -> FleetServing {
    match serving {
        Serving::InStep | Serving::LostServe { .. } => FleetServing::Cache,
        Serving::LostStaleLimit { .. } => FleetServing::StaleLimit,
        Serving::Joining | Serving::Behind | Serving::LostRefuse { .. } => FleetServing::Pass,
    }
}

/// Conditions in a phrase.
#[must_use]
pub fn serving_shown(serving: Serving) -> &'static str {
    match serving {
        Serving::InStep => "in step, serves from the cache",
        Serving::Joining => "joining, passes all requests",
        Serving::Behind => "invalidations are missing, passes all requests",
        Serving::LostServe { .. } => "out of contact, serves from the cache",
        Serving::LostStaleLimit { .. } => "out of contact, serves nothing older than fleet_lost_ttl",
        Serving::LostRefuse { .. } => "out of contact, passes all requests",
    }
}

/// The policy for a node that is out of contact.
fn when_lost(manager: &Manager) -> WhenLost {
    WhenLost::from_word(&manager.parameters.borrow().fleet_when_lost).unwrap_or(WhenLost::Serve)
}

fn settings(manager: &Manager, argument: &FleetArgument) -> Settings {
    let parameters = manager.parameters.borrow();
    let milliseconds = |seconds: f64| (seconds.max(0.0) * 1e3) as u64;
    Settings {
        lost_after_ms: milliseconds(parameters.fleet_lost_after),
        when_lost: WhenLost::from_word(&parameters.fleet_when_lost).unwrap_or(WhenLost::Serve),
        join_timeout_ms: milliseconds(parameters.fleet_join_timeout),
        history_ms: milliseconds(parameters.fleet_history),
        keys: argument.keys.clone(),
    }
}

/// Starts the agent and the tasks of the fleet, if there is one.
///
/// # Errors
/// The line for the operator.
pub fn begin(manager: &Rc<Manager>) -> Result<(), String> {
    let Some(fleet) = &manager.fleet else { return Ok(()) };
    for remark in &fleet.argument.remarks {
        manager.say(Level::Warning, remark);
    }
    let directory = manager.directory.borrow().path().to_owned();
    let node = match &fleet.argument.node {
        Some(node) => node.clone(),
        None => node_of_host(&directory).map_err(|error| format!("-o fleet: {NUMBER_FILE}: {error}"))?,
    };
    let owner = manager.arguments.jail.observer();
    make_folder(&directory.join(FOLDER), owner).map_err(|error| format!("-o fleet: the folder {FOLDER}: {error}"))?;
    manager.say(Level::Info, format!("Fleet: {} of {} through {}", node, fleet.argument.name, fleet.argument.servers));
    spawn_local(work::work(manager.clone()));
    spawn_local(work::watch(manager.clone()));
    spawn_local(agent::keep(manager.clone(), node));
    Ok(())
}

/// The name of this node: that of its host, and a number that it keeps.
fn node_of_host(directory: &Path) -> io::Result<NodeId> {
    let path = directory.join(NUMBER_FILE);
    let kept = fs::read_to_string(&path).ok().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let number = match kept {
        Some(number) => number,
        None => {
            let number = u64::from(rand::random::<u32>());
            let other = directory.join(format!("{NUMBER_FILE}.new"));
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&other)?;
            io::Write::write_all(&mut file, format!("{number:08x}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(&other, &path)?;
            number
        }
    };
    Ok(NodeId::of_host(&crate::platform::host_name(), number))
}

/// Makes the folder of the agent, which only it may enter.
fn make_folder(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !fs::symlink_metadata(path)?.is_dir() {
                return Err(io::Error::other("it is not a directory"));
            }
        }
        made => made?,
    }
    match owner {
        Some((user, group)) => chown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
