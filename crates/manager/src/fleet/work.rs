//! The worker's part: orders and conditions of the agent, one after the other, and the conditions
//! without an agent.

use super::{Fleet, Item, of_worker, when_lost};
use crate::commands::ask_worker;
use crate::report::Level;
use crate::state::Manager;
use cli_proto::response::status;
use control::fleet::{Applied, FleetOrder};
use control::messages::Request;
use fleet::Serving;
use fleet::exchange::ApplyId;
use fleet::link::ToAgent;
use fleet::record::CacheMark;
use std::rc::Rc;
use std::time::Duration;
use surface::fleet::WhenLost;
use surface::limits::FLEET_ORDERS_MAX;

/// Pause after orders that the worker could not carry out.
const RETRY: Duration = Duration::from_secs(1);
/// Interval between looks for an agent.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The next thing to do.
enum Step {
    /// The agent must know that no worker runs.
    TellEnd,
    /// The agent must know the cache of this worker.
    TellCache(u32),
    /// The worker must serve under the present conditions.
    Serve(u32),
    /// The worker must carry these orders out.
    Apply(Vec<(ApplyId, FleetOrder)>),
    /// Nothing.
    Wait,
}

/// Carries everything out, one after the other, until the manager ends.
pub(super) async fn work(manager: Rc<Manager>) {
    let Some(fleet) = &manager.fleet else { return };
    while !manager.ending.get() {
        let worker = manager.running_worker().map(|worker| worker.pid);
        let is_done = match fleet.next(worker) {
            Step::Wait => {
                fleet.work.notified().await;
                Ok(())
            }
            Step::TellEnd => {
                fleet.tell(ToAgent::Cache { mark: None, is_continued: false });
                Ok(())
            }
            Step::TellCache(pid) => fleet.tell_cache(&manager, pid).await,
            Step::Serve(pid) => fleet.serve(&manager, pid).await,
            Step::Apply(orders) => fleet.apply(&manager, orders).await,
        };
        if let Err(why) = is_done {
            if !why.is_empty() {
                manager.say(Level::Error, format!("Fleet: orders are repeated, since the child could not: {why}"));
            }
            // Without a worker this ends when there is one.
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Sets the conditions of a node without an agent.
pub(super) async fn watch(manager: Rc<Manager>) {
    let Some(fleet) = &manager.fleet else { return };
    while !manager.ending.get() {
        tokio::time::sleep(LOOK_INTERVAL).await;
        fleet.look(&manager);
    }
}

impl Fleet {
    /// The next step with this worker, or without one.
    fn next(&self, worker: Option<u32>) -> Step {
        let mut state = self.state.borrow_mut();
        // Conditions at the front hold from now on; a worker gets the last of them.
        while let Some(Item::Serve(serving)) = state.queue.front() {
            state.serving = *serving;
            state.queue.pop_front();
            self.room.notify_one();
        }
        let Some(pid) = worker else {
            let is_told = state.agent.is_some() && state.told.take().is_some();
            return if is_told { Step::TellEnd } else { Step::Wait };
        };
        if state.carried != Some((pid, of_worker(state.serving))) {
            return Step::Serve(pid);
        }
        if state.agent.is_none() {
            return Step::Wait;
        }
        if state.told != Some(pid) {
            return Step::TellCache(pid);
        }
        let orders = state.queue.iter().map_while(|item| match item {
            Item::Apply(id, order) => Some((*id, order.clone())),
            Item::Serve(_) => None,
        });
        let orders: Vec<_> = orders.take(FLEET_ORDERS_MAX).collect();
        if orders.is_empty() { Step::Wait } else { Step::Apply(orders) }
    }

    pub(super) fn tell(&self, message: ToAgent) {
        let state = self.state.borrow();
        if let Some(agent) = &state.agent
            && agent.try_send(message).is_err()
        {
            // It sends orders and does not read answers.
            self.broken.notify_one();
        }
    }

    async fn serve(&self, manager: &Rc<Manager>, pid: u32) -> Result<(), String> {
        let serving = self.serving();
        match ask_worker(manager, Request::FleetServe(serving)).await {
            Some(reply) if reply.is_ok() => {
                self.carried(pid, serving);
                Ok(())
            }
            Some(reply) if reply.status != status::COMMUNICATION => Err(reply.body),
            Some(_) | None => Err(String::new()),
        }
    }

    async fn tell_cache(&self, manager: &Rc<Manager>, pid: u32) -> Result<(), String> {
        let agents = self.state.borrow().agents;
        let applied = ask(manager, vec![FleetOrder::Nothing]).await?;
        let mut state = self.state.borrow_mut();
        if state.agents != agents || state.agent.is_none() {
            return Ok(());
        }
        let is_continued = state.known == Some(pid) && !state.is_lost && !state.is_cut;
        let is_first = state.greeted != agents;
        if is_first && !is_continued && !state.is_lost {
            // The agent takes it that this holds from its start on.
            state.serving = Serving::Joining;
            if state.carried != Some((pid, of_worker(Serving::Joining))) {
                return Ok(());
            }
        }
        (state.known, state.told, state.greeted, state.is_cut) = (Some(pid), Some(pid), agents, false);
        drop(state);
        self.tell(ToAgent::Cache { mark: Some(mark(&applied)), is_continued });
        Ok(())
    }

    async fn apply(&self, manager: &Rc<Manager>, orders: Vec<(ApplyId, FleetOrder)>) -> Result<(), String> {
        let agents = self.state.borrow().agents;
        let (ids, orders): (Vec<_>, Vec<_>) = orders.into_iter().unzip();
        let applied = ask(manager, orders).await?;
        if applied.orders.len() != ids.len() {
            return Err("it answered other orders".to_owned());
        }
        let mut state = self.state.borrow_mut();
        if state.agents != agents || state.agent.is_none() {
            return Ok(());
        }
        state.queue.drain(..ids.len());
        drop(state);
        self.room.notify_one();
        let cache = mark(&applied);
        for (id, result) in ids.into_iter().zip(applied.orders) {
            self.tell(match result {
                Ok(objects) => ToAgent::Applied { id, objects, cache },
                Err(error) => ToAgent::NotApplied { id, error },
            });
        }
        Ok(())
    }

    /// Sets the conditions if there has been no agent for too long.
    pub(super) fn look(&self, manager: &Manager) {
        let mut state = self.state.borrow_mut();
        let Some(since) = state.silent_since.filter(|_| !state.is_lost) else { return };
        let (lost_after, join_timeout) = {
            let parameters = manager.parameters.borrow();
            (parameters.fleet_lost_after, parameters.fleet_join_timeout)
        };
        // A node that was not in step waits longer: its cache may be out of date.
        let seconds = if state.serving.may_serve() { lost_after } else { lost_after.max(join_timeout) };
        if since.elapsed().as_secs_f64() < seconds {
            return;
        }
        state.is_lost = true;
        let since_ms = 0;
        state.serving = match when_lost(manager) {
            WhenLost::Serve => Serving::LostServe { since_ms },
            WhenLost::StaleLimit => Serving::LostStaleLimit { since_ms },
            WhenLost::Refuse => Serving::LostRefuse { since_ms },
        };
        let shown = super::serving_shown(state.serving);
        drop(state);
        manager.say(Level::Warning, format!("Fleet: no agent for {} s: {shown}", since.elapsed().as_secs()));
        self.work.notify_one();
    }
}

fn mark(applied: &Applied) -> CacheMark {
    CacheMark { identity: applied.identity, sequence: applied.sequence }
}

/// Has the worker carry out orders.
///
/// # Errors
/// The reason why it could not; empty if there is no worker.
async fn ask(manager: &Rc<Manager>, orders: Vec<FleetOrder>) -> Result<Applied, String> {
    match ask_worker(manager, Request::FleetApply(orders)).await {
        Some(reply) if reply.is_ok() => {
            Applied::parse(&reply.body).ok_or_else(|| "its answer cannot be read".to_owned())
        }
        Some(reply) if reply.status != status::COMMUNICATION => Err(reply.body),
        Some(_) | None => Err(String::new()),
    }
}
