//! The commands that change which VCL is active, and its history: `vcl.use`, `vcl.label`,
//! `vcl.rollback`, `vcl.history`.
//!
//! Each change is checked, sent to a running worker, entered in the table, and then noted in the
//! history, all while `changes` is held: table, worker and history agree at every instant.

use super::vcl_canary::back;
use super::vcl_noting::noting;
use super::{Call, ask_worker};
use crate::canary_end::ended;
use crate::report::Level;
use crate::state::Manager;
use crate::vcl_history::{Change, Used};
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use cli_proto::table;
use control::messages::Request;
use std::rc::Rc;
use surface::limits::VCL_HISTORY_CHANGES_MAX;

impl Call<'_> {
    pub(super) async fn vcl_use(self) -> Response {
        if self.arguments.len() > 1 {
            return self.begin_canary().await;
        }
        let name = &self.arguments[0];
        let _changes = self.manager.changes.lock().await;
        let checked = self.manager.vcls.borrow().check_use(name);
        match checked {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("vcl.use {name} by {}", self.who);
                return match back(self.manager, Level::Info, &why).await {
                    Ok(_) => Response::ok(""),
                    Err(refusal) => refusal,
                };
            }
            Err(refusal) => return refusal,
        }
        match activate(self.manager, name, self.who, "vcl.use").await {
            Ok(()) => Response::ok(format!("VCL '{name}' now active")),
            Err(refusal) => refusal,
        }
    }

    pub(super) async fn vcl_label(self) -> Response {
        let (label, vcl) = (&self.arguments[0], &self.arguments[1]);
        let _changes = self.manager.changes.lock().await;
        match point_label(self.manager, label, vcl, self.who, "vcl.label").await {
            Ok(()) => Response::ok(""),
            Err(refusal) => refusal,
        }
    }

    pub(super) async fn vcl_rollback(self) -> Response {
        let steps = match self.arguments.first().map(|word| word.parse::<usize>()) {
            None => 1,
            Some(Ok(steps)) if (1..=VCL_HISTORY_CHANGES_MAX).contains(&steps) => steps,
            Some(_) => {
                let text = format!("The number of changes to take back is 1 to {VCL_HISTORY_CHANGES_MAX}");
                return Response::new(status::PARAMETER, text);
            }
        };
        let _changes = self.manager.changes.lock().await;
        let canary = self.manager.vcls.borrow().canary().map(str::to_owned);
        if let Some(name) = canary {
            if !self.arguments.is_empty() {
                let text = format!("VCL '{name}' is a canary: vcl.rollback without a number ends it");
                return Response::new(status::CANNOT, text);
            }
            let ended = back(self.manager, Level::Info, &format!("vcl.rollback by {}", self.who)).await;
            return match ended {
                Ok(_) => Response::ok(format!("The canary of VCL '{name}' has ended")),
                Err(refusal) => refusal,
            };
        }
        let before = self.manager.history.borrow().before(steps).cloned();
        let wanted = match before {
            Ok(wanted) => wanted,
            Err(text) => return Response::new(status::CANNOT, text),
        };
        let why = if steps == 1 { "vcl.rollback".to_owned() } else { format!("vcl.rollback {steps}") };
        match self.roll_back(&wanted, &why).await {
            Ok(true) => Response::ok(format!("VCL '{wanted}' now active")),
            Ok(false) => Response::ok(format!("VCL '{wanted}' is active already")),
            Err(refusal) => refusal,
        }
    }

    /// Makes a VCL or label of the history active again, and points the label at its VCL of then.
    /// Returns false if nothing had to change.
    async fn roll_back(&self, wanted: &Used, why: &str) -> Result<bool, Response> {
        let now = {
            let vcls = self.manager.vcls.borrow();
            for name in [Some(&wanted.name), wanted.target.as_ref()].into_iter().flatten() {
                if vcls.get(name).is_none() {
                    return Err(Response::new(status::CANNOT, format!("VCL {name} is no longer loaded")));
                }
            }
            Used::named(&vcls, &wanted.name)
        };
        let mut is_changed = false;
        if let Some(target) = wanted.target.as_ref().filter(|target| now.target.as_ref() != Some(*target)) {
            point_label(self.manager, &wanted.name, target, self.who, why).await?;
            is_changed = true;
        }
        let is_other = self.manager.vcls.borrow().check_use(&wanted.name)?;
        if is_other {
            activate(self.manager, &wanted.name, self.who, why).await?;
            is_changed = true;
        }
        Ok(is_changed)
    }

    pub(super) fn vcl_history(self) -> Response {
        let history = self.manager.history.borrow();
        if self.json {
            let mut reply = self.json_reply(2);
            history.newest_first().for_each(|change| reply.push("\n  ", &change_json(change)));
            return Response::ok(reply.finish());
        }
        let rows = history.newest_first().enumerate().map(|(index, change)| {
            let from = change.from.as_ref().map_or("-".to_owned(), Used::to_string);
            vec![
                format!("{:>2}", index + 1).trim_start().to_owned(),
                semantics::date::text(change.at),
                from,
                "->".to_owned(),
                change.to.to_string(),
                change.why.clone(),
                change.who.clone(),
            ]
        });
        Response::ok(table::layout(&rows.collect::<Vec<_>>()))
    }
}

/// Makes an entry active in the worker and in the table, and notes the change. The caller must hold
/// `changes`, and has checked that the entry may be used.
///
/// # Errors
/// The reply: the worker refuses.
pub(super) async fn activate(manager: &Rc<Manager>, name: &str, who: &str, why: &str) -> Result<(), Response> {
    let reply = ask_worker(manager, Request::VclUse { name: name.to_owned() }).await;
    if let Some(refusal) = reply.filter(|reply| !reply.is_ok()) {
        return Err(refusal);
    }
    noting(manager, who, why, || {
        manager.vcls.borrow_mut().set_active(name);
        ended(manager, Level::Info, "ended", &format!("{why} {name} by {who}"));
    });
    Ok(())
}

/// Points a label at a VCL, in the worker and in the table; if the label is active, that is noted
/// as a change. The caller must hold `changes`.
async fn point_label(manager: &Rc<Manager>, label: &str, vcl: &str, who: &str, why: &str) -> Result<(), Response> {
    manager.vcls.borrow().check_label(label, vcl)?;
    let request = Request::VclLabel { label: label.to_owned(), vcl: vcl.to_owned() };
    if let Some(refusal) = ask_worker(manager, request).await.filter(|reply| !reply.is_ok()) {
        return Err(refusal);
    }
    noting(manager, who, why, || manager.vcls.borrow_mut().set_label(label, vcl));
    Ok(())
}

fn change_json(change: &Change) -> String {
    let used = |used: &Used| {
        let target = used.target.as_ref().map(|target| format!(", \"vcl\": {}", string(target))).unwrap_or_default();
        format!("{{\"name\": {}{target}}}", string(&used.name))
    };
    format!(
        "{{\n    \"time\": {:.3},\n    \"who\": {},\n    \"from\": {},\n    \"to\": {},\n    \"why\": {}\n  }}",
        change.at,
        string(&change.who),
        change.from.as_ref().map_or("null".to_owned(), used),
        used(&change.to),
        string(&change.why),
    )
}
