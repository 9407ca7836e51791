//! The `vcl.*` commands that load, list and discard; those that switch are in `vcl_switch.rs`.
//!
//! Compilation runs on another thread, before `changes` is taken, so that the CLI can answer
//! meanwhile. The result is sent to a running worker first; only a program that the worker accepts
//! enters the table.

use super::vcl_noting::noting;
use super::{Call, ask_worker};
use crate::arguments::{read_vcl, reason};
use crate::compile::{Done, Job, unreadable};
use crate::state::Manager;
use crate::vcl_table::{Entry, Kind, state_word};
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use cli_proto::table;
use control::messages::Request;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use surface::closed_set::VclState;
use surface::program::Called;

impl Call<'_> {
    pub(super) async fn vcl_load(self) -> Response {
        let (name, file) = (self.arguments[0].clone(), self.arguments[1].clone());
        if let Err(refusal) = self.check_load(&name) {
            return refusal;
        }
        let vcl_path = self.manager.parameters.borrow().vcl_path.clone();
        match read_vcl(Path::new(&file), &vcl_path, None, &self.manager.arguments.jail) {
            Ok((source_name, text)) => self.counted_load(&name, source_name, text).await,
            Err(error) => {
                let is_own = self.manager.arguments.called == Called::Copal;
                let is_searched = error.kind() == std::io::ErrorKind::NotFound && !Path::new(&file).is_absolute();
                let places = if is_own && is_searched { format!("; looked in {vcl_path}") } else { String::new() };
                Response::new(status::PARAMETER, unreadable(&file, &(reason(&error) + &places)))
            }
        }
    }

    pub(super) async fn vcl_inline(self) -> Response {
        let (name, text) = (self.arguments[0].clone(), self.argument_octets(1));
        match self.check_load(&name) {
            Ok(()) => self.counted_load(&name, "<vcl.inline>".to_owned(), text).await,
            Err(refusal) => refusal,
        }
    }

    /// Checks the state word, the name, and the number of VCLs.
    fn check_load(&self, name: &str) -> Result<(), Response> {
        self.wanted_state()?;
        self.manager.vcls.borrow().check_new(name)?;
        let parameters = self.manager.parameters.borrow();
        let count = self.manager.vcls.borrow().programs();
        if parameters.max_vcl_handling == 2 && count as u64 >= parameters.max_vcl {
            let text = format!("Too many ({count}) VCLs already loaded\n(See max_vcl and max_vcl_handling parameters)");
            return Err(Response::new(status::CANNOT, text));
        }
        Ok(())
    }

    fn wanted_state(&self) -> Result<VclState, Response> {
        self.arguments.get(2).map_or(Ok(VclState::Auto), |word| state_word(word))
    }

    async fn counted_load(self, name: &str, source_name: String, text: Vec<u8>) -> Response {
        let manager = self.manager.clone();
        let response = self.load(name, source_name, text).await;
        manager.published.count_load(response.status == status::OK, crate::clock::now() as u64);
        response
    }

    async fn load(self, name: &str, source_name: String, text: Vec<u8>) -> Response {
        let job = Job::new(self.manager, source_name, text);
        let done = match tokio::task::spawn_blocking(move || job.run(false)).await {
            Ok(Ok(done)) => done,
            Ok(Err(report)) => return Response::new(status::PARAMETER, report),
            Err(_) => {
                let text = "The VCL compiler failed by a fault of its own\nVCL compilation failed";
                return Response::new(status::CANNOT, text);
            }
        };
        let _changes = self.manager.changes.lock().await;
        if let Err(refusal) = self.check_load(name) {
            return refusal;
        }
        let state = match self.wanted_state() {
            Ok(state) => state,
            Err(refusal) => return refusal,
        };
        let Done { loaded, warnings, .. } = done;
        if let Some(label) = loaded.labels.iter().find(|label| self.manager.vcls.borrow().get(label).is_none()) {
            return Response::new(status::PARAMETER, format!("Label {label} was discarded meanwhile"));
        }
        let request = Request::VclLoad { name: name.to_owned(), program: loaded.program.clone(), state };
        let reply = ask_worker(self.manager, request).await;
        if let Some(refusal) = reply.as_ref().filter(|reply| !reply.is_ok()) {
            return refusal.clone();
        }
        self.manager.vcls.borrow_mut().add(name, state, loaded);
        let compiled = if reply.is_none() { "VCL compiled.\n" } else { "" };
        Response::ok(format!("{}{warnings}{compiled}", self.too_many_note()))
    }

    fn too_many_note(&self) -> String {
        let parameters = self.manager.parameters.borrow();
        let count = self.manager.vcls.borrow().programs();
        if parameters.max_vcl_handling != 1 || count as u64 <= parameters.max_vcl {
            return String::new();
        }
        format!(
            "{count} VCLs loaded\nRemember to vcl.discard the old/unused VCLs.\n\
             (See max_vcl and max_vcl_handling parameters)"
        )
    }

    pub(super) async fn vcl_state(self) -> Response {
        let (name, word) = (&self.arguments[0], &self.arguments[1]);
        let _changes = self.manager.changes.lock().await;
        let known = self.manager.vcls.borrow().check_known(name);
        let state = match known.and_then(|()| state_word(word)) {
            Ok(state) => state,
            Err(refusal) => return refusal,
        };
        match self.manager.vcls.borrow().check_state(name, state) {
            Ok(true) => {}
            Ok(false) => return Response::ok(""),
            Err(refusal) => return refusal,
        }
        let reply = ask_worker(self.manager, Request::VclState { name: name.clone(), state }).await;
        if let Some(refusal) = reply.filter(|reply| !reply.is_ok()) {
            let text = format!("Failed <vcl.state {name} {word}>\nMessage:\n\t{}", refusal.body);
            return Response::new(status::CANNOT, text);
        }
        self.manager.vcls.borrow_mut().set_state(name, state);
        Response::ok("")
    }

    pub(super) async fn vcl_discard(self) -> Response {
        let _changes = self.manager.changes.lock().await;
        let names = match self.manager.vcls.borrow().check_discard(self.arguments) {
            Ok(names) => names,
            Err(refusal) => return refusal,
        };
        for name in names {
            let reply = ask_worker(self.manager, Request::VclDiscard { name: name.clone() }).await;
            if let Some(refusal) = reply.filter(|reply| !reply.is_ok()) {
                return refusal;
            }
            self.manager.vcls.borrow_mut().remove(&name);
        }
        Response::ok("")
    }

    pub(super) async fn vcl_list(self) -> Response {
        let reported = ask_worker(self.manager, Request::VclStatus).await.filter(Response::is_ok);
        let worker_runs = reported.is_some();
        let Reported { loaded: mut reported, discarded } =
            parse_status(&reported.map(|reply| reply.body).unwrap_or_default());
        let table = self.manager.vcls.borrow();
        // Discarded VCLs that the worker still holds; a new VCL may already have the name.
        let mut rows: Vec<Row> = discarded.into_iter().map(Row::discarded).collect();
        for entry in table.entries() {
            let known = reported.remove(entry.name.as_str());
            let target = match &entry.kind {
                Kind::Label(target) => table.get(target).unwrap_or(entry),
                Kind::Program(_) => entry,
            };
            let resting = if target.state == VclState::Cold { "cold" } else { "warm" };
            let (temperature, busy) = known.unwrap_or((resting.to_owned(), 0));
            rows.push(Row {
                status: match entry.name.as_str() {
                    name if table.active() == Some(name) => "active",
                    name if table.canary() == Some(name) => "canary",
                    _ => "available",
                },
                state: if entry.is_label() { "label" } else { entry.state.word() },
                temperature,
                busy: worker_runs.then_some(busy),
                name: entry.name.clone(),
                link: link(entry, &table.dependants(&entry.name)),
            });
        }
        if self.json {
            let mut reply = self.json_reply(2);
            rows.iter().for_each(|row| reply.push("\n  ", &row.json()));
            return Response::ok(reply.finish());
        }
        Response::ok(table::layout(&rows.iter().map(Row::cells).collect::<Vec<_>>()))
    }

    pub(super) fn vcl_deps(self) -> Response {
        let table = self.manager.vcls.borrow();
        if self.json {
            let mut reply = self.json_reply(1);
            for entry in table.entries() {
                let needs: Vec<String> = entry.needs().iter().map(|need| format!("\n      {}", string(need))).collect();
                let end = if needs.is_empty() { "" } else { "\n    " };
                let (name, needs) = (string(&entry.name), needs.join(","));
                reply.push("\n  ", &format!("{{\n    \"name\": {name},\n    \"deps\": [{needs}{end}]\n  }}"));
            }
            return Response::ok(reply.finish());
        }
        let mut rows = Vec::new();
        for entry in table.entries() {
            if entry.needs().is_empty() {
                rows.push(vec![entry.name.clone()]);
            }
            rows.extend(entry.needs().iter().map(|need| vec![entry.name.clone(), need.clone()]));
        }
        Response::ok(table::layout(&rows))
    }

    pub(super) fn vcl_show(self) -> Response {
        let (all, names) = match self.arguments.split_first() {
            Some((flag, rest)) if flag == "-v" => (true, rest),
            _ => (false, self.arguments),
        };
        if let Some(surplus) = names.get(1) {
            return Response::new(status::PARAMETER, format!("Too many parameters: '{surplus}'"));
        }
        let table = self.manager.vcls.borrow();
        let Some(name) = names.first().map(String::as_str).or(table.active()) else {
            return Response::new(status::CANNOT, "No active VCL");
        };
        let Some(loaded) = table.program(name) else {
            return Response::new(status::PARAMETER, format!("No VCL named '{name}'"));
        };
        if !all {
            return Response::ok(loaded.sources.first().map(|source| source.text.clone()).unwrap_or_default());
        }
        let shown = loaded.sources.iter().enumerate().map(|(index, source)| {
            format!("// VCL.SHOW {index} {} {}\n{}\n", source.text.len(), source.name, source.text)
        });
        Response::ok(shown.collect::<String>())
    }

    pub(super) fn vcl_symtab(self) -> Response {
        let table = self.manager.vcls.borrow();
        let mut text = String::new();
        for entry in table.entries() {
            if let Kind::Program(loaded) = &entry.kind {
                text.push_str(&format!("Vcl: {}\n  program: {} bytes\n", entry.name, loaded.program.len()));
                loaded.sources.iter().for_each(|source| text.push_str(&format!("  source: {}\n", source.name)));
            }
        }
        Response::ok(text)
    }
}

/// Loads a VCL of the command line before there is a worker, and makes it active.
///
/// # Errors
/// The report of the compiler.
pub fn load_at_start(manager: &Rc<Manager>, name: &str, source_name: &str, text: &[u8]) -> Result<(), String> {
    let done = Job::new(manager, source_name.to_owned(), text.to_vec()).run(false)?;
    if !done.warnings.is_empty() {
        manager.reporter.say_plain(done.warnings.trim_end());
    }
    manager.vcls.borrow_mut().add(name, VclState::Auto, done.loaded);
    noting(manager, "start", "command line", || manager.vcls.borrow_mut().set_active(name));
    manager.published.count_load(true, crate::clock::now() as u64);
    Ok(())
}

/// One row of `vcl.list`.
struct Row {
    status: &'static str,
    state: &'static str,
    temperature: String,
    /// `None` without a worker.
    busy: Option<u64>,
    name: String,
    link: Link,
}

/// Label column of a row of `vcl.list`.
enum Link {
    None,
    /// A label: its VCL, and the number of VCLs that refer to it in return(vcl).
    To(String, usize),
    /// A VCL with this many labels.
    From(usize),
}

fn link(entry: &Entry, dependants: &[&Entry]) -> Link {
    match &entry.kind {
        Kind::Label(target) => Link::To(target.clone(), dependants.len()),
        Kind::Program(_) if dependants.is_empty() => Link::None,
        Kind::Program(_) => Link::From(dependants.len()),
    }
}

impl Row {
    /// The row of a discarded VCL on which requests still run. Discarding makes it cold.
    fn discarded((name, temperature, busy): (String, String, u64)) -> Row {
        Row { status: "discarded", state: VclState::Cold.word(), temperature, busy: Some(busy), name, link: Link::None }
    }

    fn cells(&self) -> Vec<String> {
        let busy = self.busy.map_or_else(|| format!("{:>6}", "-"), |busy| format!("{busy:6}"));
        let mut cells =
            vec![self.status.to_owned(), self.state.to_owned(), self.temperature.clone(), busy, self.name.clone()];
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match &self.link {
            Link::None => {}
            Link::To(target, 0) => cells.extend(["->".to_owned(), target.clone()]),
            Link::To(target, count) => {
                let possessive = if *count == 1 { "" } else { "'s" };
                cells.extend(["->".to_owned(), format!("{target} ({count} return(vcl){possessive})")]);
            }
            Link::From(count) => cells.extend(["<-".to_owned(), format!("({count} label{})", plural(*count))]),
        }
        cells
    }

    fn json(&self) -> String {
        let mut fields = vec![
            format!("\"status\": {}", string(self.status)),
            format!("\"state\": {}", string(self.state)),
            format!("\"temperature\": {}", string(&self.temperature)),
        ];
        fields.extend(self.busy.map(|busy| format!("\"busy\": {busy}")));
        fields.push(format!("\"name\": {}", string(&self.name)));
        match &self.link {
            Link::None => {}
            Link::To(target, count) => {
                let count = if *count == 0 { String::new() } else { format!(",\n\"refs\": {count}") };
                // The depth of the closing bracket shows who answers, as it does in Varnish.
                let end = if self.busy.is_some() { "      " } else { "    " };
                fields.push(format!("\"label\": {{\n      \"name\": {}{count}\n{end}}}", string(target)));
            }
            Link::From(count) => fields.push(format!("\"labels\": {count}")),
        }
        format!("{{\n    {}\n}}", fields.join(",\n    "))
    }
}

/// The worker's report about its VCLs.
#[derive(Default)]
struct Reported {
    /// Temperature and number of requests of the loaded ones, by name.
    loaded: HashMap<String, (String, u64)>,
    /// Discarded ones on which requests still run: name, temperature and number of requests.
    discarded: Vec<(String, String, u64)>,
}

/// Parses lines of `name temperature busy`; those of discarded VCLs have another word.
fn parse_status(text: &str) -> Reported {
    let mut reported = Reported::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, temperature, busy, rest @ ..] = &words[..] else { continue };
        let (name, temperature, busy) = ((*name).to_owned(), (*temperature).to_owned(), busy.parse().unwrap_or(0));
        if rest.is_empty() {
            reported.loaded.insert(name, (temperature, busy));
        } else {
            reported.discarded.push((name, temperature, busy));
        }
    }
    reported
}
