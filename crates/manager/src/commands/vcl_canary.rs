//! Canaries: `vcl.use` with options, `vcl.canary`, `vcl.promote`, and the task that follows the one
//! that runs.
//!
//! Every change holds `changes`, and begins in the worker: one replacement of its table begins a
//! canary, ends it, or makes it the active VCL. A worker that dies meanwhile gets the state of the
//! manager's table. *Invariant:* at most one canary runs, and it is in the manager's table of VCLs
//! exactly while it is in [`Trials`](crate::state::Trials).

use super::vcl_noting::noting;
use super::{Call, ask_worker};
use crate::canary::judge::Figure;
use crate::canary::options::Plan;
use crate::canary::{Decision, Running, clock, shown};
use crate::canary_end::ended;
use crate::clock::now;
use crate::report::Level;
use crate::state::Manager;
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use cli_proto::table;
use control::canary::parse_counts;
use control::messages::Request;
use std::rc::Rc;
use std::time::Duration;
use surface::canary::{Percent, SHARE_WHOLE};

/// Interval between looks at a canary.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Call<'_> {
    /// `vcl.use` with options.
    pub(super) async fn begin_canary(self) -> Response {
        let plan = match Plan::read(self.arguments) {
            Ok(plan) => plan,
            Err(text) => return Response::new(status::PARAMETER, text),
        };
        let manager = self.manager;
        let _changes = manager.changes.lock().await;
        if let Err(refusal) = manager.vcls.borrow().check_canary(&plan.name) {
            return refusal;
        }
        if manager.running_worker().is_none() {
            return Response::new(status::CANNOT, "A canary needs a running child: start");
        }
        let running = Running::begin(plan, self.who, now(), clock(), &mut rand::rng());
        let request = Request::VclCanary(Some(Box::new(running.configuration())));
        if let Some(refusal) = ask_worker(manager, request).await.filter(|reply| !reply.is_ok()) {
            return refusal;
        }
        let (plan, shares) = (&running.plan, if running.plan.shares_cache { ", in the shared cache" } else { "" });
        let text = format!(
            "VCL '{}' is a canary for {} of clients ({}) for {}{shares}",
            plan.name,
            Percent(plan.share),
            plan.stick,
            shown(plan.lasting),
        );
        manager.vcls.borrow_mut().set_canary(Some(&plan.name));
        manager.trials.borrow_mut().running = Some(running);
        manager.say(Level::Info, &text);
        Response::ok(text)
    }

    pub(super) async fn vcl_promote(self) -> Response {
        let _changes = self.manager.changes.lock().await;
        match promote(self.manager, self.who, "vcl.promote").await {
            Ok(name) => Response::ok(format!("VCL '{name}' now active")),
            Err(refusal) => refusal,
        }
    }

    pub(super) async fn vcl_canary(self) -> Response {
        // The counts of the last second are old for a test script and for an impatient eye.
        collect(self.manager).await;
        let trials = self.manager.trials.borrow();
        match (&trials.running, self.json) {
            (Some(running), false) => Response::ok(running_text(running, self.manager)),
            (None, false) => {
                let last = trials.last.as_ref().map(|last| format!("\nThe last one: {last}")).unwrap_or_default();
                Response::ok(format!("No canary runs{last}\n"))
            }
            (running, true) => {
                let running = running.as_ref().map_or("null".to_owned(), |running| running_json(running, self.manager));
                let last = trials.last.as_ref().map_or("null".to_owned(), |last| string(last));
                let mut reply = self.json_reply(2);
                reply.push("\n  ", &format!("{{\n    \"canary\": {running},\n    \"last\": {last}\n  }}"));
                Response::ok(reply.finish())
            }
        }
    }
}

/// Makes the canary the active VCL. The caller must hold `changes`. Returns its name.
///
/// # Errors
/// The reply: none runs, or the worker refuses.
async fn promote(manager: &Rc<Manager>, who: &str, why: &str) -> Result<String, Response> {
    let name = manager.vcls.borrow().canary().map(str::to_owned);
    let Some(name) = name else { return Err(Response::new(status::CANNOT, "No canary runs")) };
    let reply = ask_worker(manager, Request::VclUse { name: name.clone() }).await;
    if let Some(refusal) = reply.filter(|reply| !reply.is_ok()) {
        return Err(refusal);
    }
    noting(manager, who, why, || {
        manager.vcls.borrow_mut().set_active(&name);
        ended(manager, Level::Info, "is now active", why);
    });
    Ok(name)
}

/// Ends the canary in the worker and in the table; the active VCL stays. The caller must hold
/// `changes`. Returns its name; `None` if none runs.
///
/// # Errors
/// The reply of a worker that refuses.
pub(super) async fn back(manager: &Rc<Manager>, level: Level, why: &str) -> Result<Option<String>, Response> {
    let name = manager.vcls.borrow().canary().map(str::to_owned);
    let Some(name) = name else { return Ok(None) };
    let reply = ask_worker(manager, Request::VclCanary(None)).await;
    // A worker that does not answer is killed, and the next one gets the table.
    if let Some(refusal) = reply.filter(|reply| !reply.is_ok() && reply.status != status::COMMUNICATION) {
        return Err(refusal);
    }
    ended(manager, level, "went back", why);
    Ok(Some(name))
}

/// Follows canaries for ever: collects their counts, and carries out decisions.
pub async fn watch(manager: Rc<Manager>) {
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        collect(&manager).await;
        let decision =
            manager.trials.borrow_mut().running.as_mut().map(|running| (running.id(), running.look(clock())));
        let Some((id, decision)) = decision.filter(|(_, decision)| *decision != Decision::Wait) else { continue };
        let _changes = manager.changes.lock().await;
        // An operator may have been faster.
        if manager.trials.borrow().running.as_ref().is_none_or(|running| running.id() != id) {
            continue;
        }
        let refusal = match &decision {
            Decision::Wait => None,
            Decision::Promote => promote(&manager, "canary", "canary within its limits").await.err(),
            Decision::Back(why) => back(&manager, Level::Warning, why).await.err(),
        };
        if let Some(refusal) = refusal {
            manager.say(Level::Error, format!("Canary: the child refuses {decision:?}: {}", refusal.body));
        }
    }
}

/// Adds the worker's counts to those of the running canary.
async fn collect(manager: &Rc<Manager>) {
    let Some(id) = manager.trials.borrow().running.as_ref().map(Running::id) else { return };
    let Some(worker) = manager.running_worker() else { return };
    let Some(reply) = ask_worker(manager, Request::CanaryCounts).await.filter(Response::is_ok) else { return };
    let Some(counts) = parse_counts(&reply.body) else { return };
    if let Some(running) = manager.trials.borrow_mut().running.as_mut().filter(|running| running.id() == id) {
        running.report(worker.pid, counts);
    }
}

fn running_text(running: &Running, manager: &Manager) -> String {
    let plan = &running.plan;
    let active = manager.vcls.borrow().active().unwrap_or("-").to_owned();
    let mut rows = vec![
        vec!["VCL".to_owned(), plan.name.clone(), "control".to_owned(), active],
        vec!["Share".to_owned(), Percent(plan.share).to_string(), plan.stick.to_string()],
        vec!["Cache".to_owned(), if plan.shares_cache { "shared" } else { "of its own" }.to_owned()],
        vec!["Begun".to_owned(), semantics::date::text(running.began_at), running.who.clone()],
        vec!["Ends in".to_owned(), format!("{:.0} s", (running.ends_at - clock()).max(0.0))],
        vec!["Figure".to_owned(), "canary".to_owned(), "control".to_owned(), "limit".to_owned()],
    ];
    let [canary, control] = &running.total;
    rows.push(vec!["requests".to_owned(), canary.requests.to_string(), control.requests.to_string()]);
    for figure in Figure::ALL {
        let cells = [canary, control].map(|counts| figure.shown(figure.of(counts)));
        let [of_canary, of_control] = cells;
        rows.push(vec![figure.word().to_owned(), of_canary, of_control, figure.limit_shown(&plan.limits)]);
    }
    table::layout(&rows)
}

fn running_json(running: &Running, manager: &Manager) -> String {
    let plan = &running.plan;
    let group = |counts: &control::canary::Counts| {
        format!(
            "{{\"requests\": {}, \"errors\": {}, \"failures\": {}, \"lookups\": {}, \"hits\": {}, \"p95\": {:.6}}}",
            counts.requests,
            counts.errors,
            counts.failures,
            counts.lookups,
            counts.hits,
            Figure::P95.of(counts),
        )
    };
    let [canary, control] = &running.total;
    format!(
        "{{\n      \"name\": {},\n      \"active\": {},\n      \"percent\": {},\n      \"stick\": {},\n      \
         \"share_cache\": {},\n      \"who\": {},\n      \"begun\": {:.3},\n      \"seconds_left\": {:.3},\n      \
         \"groups\": {{\"canary\": {}, \"control\": {}}}\n    }}",
        string(&plan.name),
        string(manager.vcls.borrow().active().unwrap_or_default()),
        f64::from(plan.share) * 100.0 / f64::from(SHARE_WHOLE),
        string(&plan.stick.to_string()),
        plan.shares_cache,
        string(&running.who),
        running.began_at,
        (running.ends_at - clock()).max(0.0),
        group(canary),
        group(control),
    )
}
