//! `copal vcl trace`: each statement that one request runs, with the values that it reads and
//! writes.
//!
//! The statements are VCL_trace records. The values are those of the log: a table of variables
//! follows the records, and a statement shows the entries that its line names. Records between two
//! statements are effects of the first.

use crate::case::{Origin, Ready, Request, Step, Values};
use crate::command::{USAGE_ERROR, read_file, read_vcl, setting, words_of};
use crate::facts::point;
use crate::program::{Settings, compile};
use crate::runner;
use crate::wire::HttpMessage;
use crate::world;
use shm::log::OwnedRecord;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use surface::legible;
use surface::limits::{VCL_TEST_CASE_SECONDS_MAX, VCL_TEST_MESSAGE_BYTES_MAX};
use surface::program::program;
use surface::tag::Tag;
use tools::Streams;
use tools::options::{self, Given};
use vcl_run::program::Program;

struct Command {
    vcl: OsString,
    request: Request,
    origin: Origin,
    shows_builtin: bool,
    settings: Settings,
}

pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("vcl trace", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let command = match read(given) {
        Ok(command) => command,
        Err(text) => return options::wrong(program("vcl trace"), &text, streams),
    };
    match trace(command) {
        Ok(text) => {
            let _ = streams.output.write_all(text.as_bytes());
            0
        }
        Err(text) => {
            let _ = writeln!(streams.error, "{}", legible::lines(text.trim_end().as_bytes()));
            USAGE_ERROR
        }
    }
}

fn read(given: Given) -> Result<Command, String> {
    let [vcl] = <[OsString; 1]>::try_from(given.rest).map_err(|_| "which VCL?")?;
    let (request, origin) = (Request::default(), Origin { body: "hello\n".to_owned(), ..Origin::default() });
    let mut command = Command { vcl, request, origin, shows_builtin: false, settings: Settings::default() };
    let mut headers = Vec::new();
    let mut url = None;
    for (letter, argument) in given.options {
        match letter {
            'r' => command.request = request_of(message(&PathBuf::from(argument))?),
            'g' => command.origin = origin_of(message(&PathBuf::from(argument))?)?,
            'u' => url = Some(words_of(argument)?),
            'H' => headers.push(words_of(argument)?),
            'a' => command.shows_builtin = true,
            _ => setting(&mut command.settings, letter, argument)?,
        }
    }
    command.request.url = url.unwrap_or(command.request.url);
    for header in headers {
        let (name, value) = header.split_once(':').ok_or("-H takes name: value")?;
        add(&mut command.request.headers, name.trim(), value.trim());
    }
    Ok(command)
}

fn add(headers: &mut BTreeMap<String, Values>, name: &str, value: &str) {
    let mut values = headers.remove(name).map_or_else(Vec::new, |values| values.all().to_vec());
    values.push(value.to_owned());
    headers.insert(name.to_owned(), Values::Many(values));
}

/// A message from a file: the lines of its head, an empty line, its body.
fn message(path: &Path) -> Result<HttpMessage, String> {
    let text = String::from_utf8_lossy(&read_file(path, VCL_TEST_MESSAGE_BYTES_MAX)?).into_owned();
    let text = text.replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut message = HttpMessage::of_head(head);
    message.body = body.as_bytes().to_vec();
    Ok(message)
}

fn headers_of(message: &HttpMessage) -> BTreeMap<String, Values> {
    let mut headers = BTreeMap::new();
    for (name, value) in &message.headers {
        // Bodies in files are neither chunked nor of the length that was recorded.
        if !["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase()) {
            add(&mut headers, name, value);
        }
    }
    headers
}

fn request_of(message: HttpMessage) -> Request {
    let headers = headers_of(&message);
    let body = Some(String::from_utf8_lossy(&message.body).into_owned()).filter(|body| !body.is_empty());
    let (method, url) = (message.word(0).to_owned(), message.word(1).to_owned());
    Request { method, url, headers, body, client: None }
}

fn origin_of(message: HttpMessage) -> Result<Origin, String> {
    let status = message.word(1).parse().ok().filter(|status| (100..=999).contains(status));
    let status = status.ok_or("the response does not begin with HTTP/1.1 and a status")?;
    let reason = message.start.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&message.body).into_owned();
    Ok(Origin { status, reason, headers: headers_of(&message), body, ..Origin::default() })
}

fn trace(command: Command) -> Result<String, String> {
    let (name, text) = read_vcl(&command.vcl)?;
    let parameters = command.settings.parameters(&[])?;
    let program = compile(&name, &text, &command.settings, &parameters).map_err(|error| error.text)?;
    let step = Step {
        after: 0.0,
        request: command.request,
        origin: command.origin,
        origins: BTreeMap::new(),
        sick: Vec::new(),
        expect: BTreeMap::new(),
    };
    let case =
        Ready { file: String::new(), line: 0, name: "trace".to_owned(), parameters: Vec::new(), steps: vec![step] };
    let (sender, receiver) = std::sync::mpsc::channel();
    let shows_builtin = command.shows_builtin;
    std::thread::Builder::new()
        .stack_size(runner::STACK_BYTES)
        .spawn(move || {
            // Without isolation the trace still uses neither files nor networks by itself.
            let _ = sandbox::isolate_thread();
            let shown = world::run(&program, &parameters, &case).map(|ran| {
                let records = ran.facts.into_iter().flat_map(|facts| facts.records).collect::<Vec<_>>();
                Shown::new(&program, shows_builtin).all(&records)
            });
            let _ = sender.send(shown);
        })
        .map_err(|error| error.to_string())?;
    let limit = Duration::from_secs(VCL_TEST_CASE_SECONDS_MAX);
    receiver.recv_timeout(limit).map_err(|_| "the request did not end".to_owned())?
}

/// The text under construction.
struct Shown<'a> {
    program: &'a Program,
    shows_builtin: bool,
    /// Values of variables, by name in lower case.
    values: BTreeMap<String, String>,
    /// A method runs.
    is_running: bool,
    /// The last statement is shown, so its effects are, too.
    is_shown: bool,
    out: String,
}

impl<'a> Shown<'a> {
    fn new(program: &'a Program, shows_builtin: bool) -> Shown<'a> {
        let values = BTreeMap::new();
        Shown { program, shows_builtin, values, is_running: false, is_shown: true, out: String::new() }
    }

    /// All transactions, in the order in which they began.
    fn all(mut self, records: &[OwnedRecord]) -> String {
        let mut transactions: BTreeMap<u64, Vec<&OwnedRecord>> = BTreeMap::new();
        for record in records {
            transactions.entry(record.id.vxid()).or_default().push(record);
        }
        for (vxid, records) in transactions {
            let begin = records.iter().find(|record| record.tag == Tag::Begin);
            let kind = begin.map(|record| String::from_utf8_lossy(&record.payload).into_owned()).unwrap_or_default();
            let title = match kind.split(' ').next() {
                Some("req") => "request",
                Some("bereq") => "fetch",
                _ => continue,
            };
            self.values.clear();
            self.is_running = false;
            let _ = writeln!(self.out, "{title} {vxid}");
            for record in records {
                self.record(record);
            }
        }
        self.out
    }

    fn record(&mut self, record: &OwnedRecord) {
        let text = String::from_utf8_lossy(&record.payload).into_owned();
        match record.tag {
            Tag::VCLCall => {
                (self.is_running, self.is_shown) = (true, true);
                self.line(2, &text);
            }
            Tag::VCLReturn => {
                self.is_running = false;
                self.line(4, &format!("→ {text}"));
            }
            Tag::VCLTrace => self.statement(&text),
            Tag::VCLError => self.line(6, &format!("error: {text}")),
            Tag::VCLLog | Tag::VCLAcl | Tag::Hash if self.is_running && self.is_shown => {
                self.line(6, &format!("{}: {text}", record.tag.name()));
            }
            tag => self.variable(tag, &text),
        }
    }

    fn statement(&mut self, text: &str) {
        let Some(at) = point(text) else { return };
        let Some(source) = self.program.sources.get(at.0 as usize) else { return };
        self.is_shown = self.shows_builtin || !source.name.starts_with("<builtin");
        if !self.is_shown {
            return;
        }
        let code = runner::text(self.program, at).unwrap_or_default().trim();
        let file = Path::new(&source.name)
            .file_name()
            .map_or_else(|| source.name.clone(), |name| name.to_string_lossy().into_owned());
        let reads: Vec<String> = variables(code).into_iter().map(|name| self.value(&name)).collect();
        let blank = if reads.is_empty() { "" } else { "    # " };
        self.line(4, &format!("{file}:{}: {code}{blank}{}", at.1, reads.join(", ")));
    }

    fn value(&self, name: &str) -> String {
        match self.values.get(&name.to_ascii_lowercase()) {
            Some(value) => format!("{name} = {value:?}"),
            None => format!("{name} is unset"),
        }
    }

    /// Follows a record about a variable; shows it if a statement wrote it.
    fn variable(&mut self, tag: Tag, text: &str) {
        let Some((object, part)) = part_of(tag.name()) else { return };
        let (name, value) = match part {
            "Header" | "Unset" => match text.split_once(':') {
                Some((name, value)) => (format!("{object}.http.{}", name.trim()), value.trim().to_owned()),
                None => return,
            },
            part => (format!("{object}.{}", part.to_ascii_lowercase()), text.to_owned()),
        };
        let key = name.to_ascii_lowercase();
        if part == "Unset" {
            self.values.remove(&key);
        } else {
            self.values.insert(key, value.clone());
        }
        if self.is_running && self.is_shown {
            let what = if part == "Unset" { format!("unset {name}") } else { format!("{name} = {value:?}") };
            self.line(6, &what);
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.out, "{:indent$}{}", "", legible::line(text.as_bytes()));
    }
}

/// The object and the part of a tag such as `BerespHeader`.
fn part_of(tag: &str) -> Option<(&'static str, &str)> {
    let objects = [("Bereq", "bereq"), ("Beresp", "beresp"), ("Req", "req"), ("Resp", "resp"), ("Obj", "obj")];
    let parts = ["Header", "Unset", "Method", "URL", "Status", "Reason"];
    objects.into_iter().find_map(|(prefix, object)| {
        let rest = tag.strip_prefix(prefix)?;
        parts.contains(&rest).then_some((object, rest))
    })
}

/// The variables that a line of VCL names and that the log has, each once.
fn variables(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    for word in code.split(|letter| !is_part(letter)) {
        let mut parts = word.split('.');
        let (Some(object), Some(part)) = (parts.next(), parts.next()) else { continue };
        let is_object = ["req", "bereq", "beresp", "resp", "obj"].contains(&object);
        let name = match (part, parts.next()) {
            ("http", Some(header)) if !header.is_empty() => format!("{object}.http.{header}"),
            ("url" | "method" | "status" | "reason", _) => format!("{object}.{part}"),
            _ => continue,
        };
        if is_object && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_line_are_found_once() {
        let code = "if (req.url ~ \"^/a\" && req.http.X-A.lower() == req.http.X-A && client.ip ~ req.x) {";
        assert_eq!(variables(code), ["req.url", "req.http.X-A"]);
        assert_eq!(variables("# http. .. req. req.http."), [""; 0]);
    }

    #[test]
    fn tags_name_their_variables() {
        assert_eq!(part_of("BerespHeader"), Some(("beresp", "Header")));
        assert_eq!((part_of("ReqURL"), part_of("ReqAcct")), (Some(("req", "URL")), None));
    }
}
