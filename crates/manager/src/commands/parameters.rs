//! `param.show`, `param.set`, `param.reset`.

use super::Call;
use crate::default_parameters::default_parameters;
use crate::parameter_text;
use crate::report::Level;
use cli_proto::response::{Response, status};
use control::messages::Request;
use surface::parameter::value::{self, SetError};
use surface::parameter::{MUST_RELOAD, MUST_RESTART, PARAMETERS, ParameterRow, debug};
use surface::program::Called;

impl Call<'_> {
    pub(super) fn parameter_show(self) -> Response {
        let mut names = self.arguments;
        let mut long = false;
        while let [flag, rest @ ..] = names
            && flag == "-l"
        {
            if self.json {
                return Response::new(status::PARAMETER, "-l not permitted with param.show -j");
            }
            (long, names) = (true, rest);
        }
        if names.len() > 1 {
            return Response::new(status::TOO_MANY, "Too many parameters");
        }
        let parameters = self.manager.parameters.borrow();
        let defaults = default_parameters(self.manager.arguments.called);
        let asked = names.first().map(String::as_str);
        let rows: Vec<(&ParameterRow, &str)> = match asked {
            None => PARAMETERS.iter().map(|row| (row, row.name)).collect(),
            Some("changed") => PARAMETERS
                .iter()
                .filter(|row| value::is_available(row) && !value::is_default(&parameters, &defaults, row))
                .map(|row| (row, row.name))
                .collect(),
            Some(name) => match value::row(name) {
                Some(row) => vec![(row, name)],
                None => return self.refuse(&SetError::Unknown(name.to_owned())),
            },
        };
        if self.json {
            let mut reply = self.json_reply(2);
            rows.iter()
                .for_each(|(row, name)| reply.push("\n  ", &parameter_text::json(&parameters, &defaults, row, name)));
            return Response::ok(reply.finish());
        }
        let long = long || asked.is_some_and(|name| name != "changed");
        let text = rows.iter().map(|(row, name)| {
            if long {
                parameter_text::long(&parameters, &defaults, row, name)
            } else {
                parameter_text::short(&parameters, &defaults, row)
            }
        });
        Response::ok(text.collect::<String>())
    }

    pub(super) async fn parameter_set(self) -> Response {
        let (name, text) = (self.arguments[0].clone(), self.arguments[1].clone());
        let storages = self.manager.arguments.storages.names();
        let defaults = default_parameters(self.manager.arguments.called);
        let reply = self.change(&name, |parameters| value::set(parameters, &defaults, &name, &text, &storages)).await;
        if self.json && reply.is_ok() {
            let shown = [name];
            return Call { arguments: &shown, ..self }.parameter_show();
        }
        reply
    }

    pub(super) async fn parameter_reset(self) -> Response {
        let name = self.arguments[0].clone();
        let defaults = default_parameters(self.manager.arguments.called);
        self.change(&name, |parameters| value::reset(parameters, &defaults, &name)).await
    }

    /// Changes a parameter that may be changed, and informs the worker.
    async fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut surface::parameter::Parameters) -> Result<(), SetError>,
    ) -> Response {
        let Some(row) = value::row(name) else {
            return self.refuse(&SetError::Unknown(name.to_owned()));
        };
        if self.manager.arguments.protected.contains(row.name) {
            return Response::new(status::AUTHENTICATE, format!("parameter \"{name}\" is protected."));
        }
        let result = change(&mut self.manager.parameters.borrow_mut());
        if let Err(error) = result {
            return self.refuse(&error);
        }
        if self.manager.debug(debug::VTC_MODE) {
            self.manager.reporter.disable_syslog();
        }
        self.manager.fleet.iter().for_each(|fleet| fleet.parameters_changed(self.manager));
        let Some(worker) = self.manager.worker() else {
            return Response::ok("");
        };
        let parameters = Box::new(self.manager.parameters.borrow().clone());
        let told = worker.link.ask(Request::Parameters(parameters), self.manager.reply_timeout()).await;
        if let Some(reply) = told.ok().filter(|reply| reply.status != status::OK) {
            let text = format!("Child ({}) refused parameters: {}", worker.pid, reply.body);
            self.manager.say(Level::Error, text);
        }
        let note = if row.flags & MUST_RESTART != 0 {
            "\nChange will take effect when child is restarted"
        } else if row.flags & MUST_RELOAD != 0 {
            "\nChange will take effect when VCL script is reloaded"
        } else {
            ""
        };
        Response::ok(note)
    }

    /// The reply about a value or name that cannot be used. Compat: `varnishd` does not ask which
    /// name was meant.
    fn refuse(&self, error: &SetError) -> Response {
        let is_own = self.manager.arguments.called == Called::Copal;
        let near = error.unknown_name().filter(|_| is_own).and_then(value::nearest_name);
        let meant = near.map(|near| format!("\nDid you mean {near}?")).unwrap_or_default();
        Response::new(error.status(), error.text() + &meant)
    }
}
