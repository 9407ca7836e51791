//! `vcl.use NAME --compare FILE`: recorded requests are replayed with the VCL and the active one
//! before it becomes active.
//!
//! The replay runs in a process of its own (`copal replay`, `vcl-test/src/replay/inherited.rs`) as
//! the worker's user, in the sandbox, with limits of time and memory. The manager reads nothing of
//! the recording. `changes` is not held meanwhile; if the active VCL has changed afterwards, the
//! comparison is of no use, and nothing is changed.

use super::Call;
use super::vcl_switch::activate;
use crate::arguments::jail::Jail;
use crate::arguments::reason;
use crate::report::Level;
use crate::state::Manager;
use crate::vcl_table::Loaded;
use cli_proto::response::{Response, status};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::rc::Rc;
use surface::legible;
use surface::limits::{REPLAY_GATE_SECONDS_MAX, REPLAY_REPORT_BYTES_MAX};
use surface::option::REPLAY_INHERITED;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The option that begins a comparison.
const COMPARE: &str = "--compare";
/// Exit statuses of `copal replay` with which a VCL is accepted: no differences, and those within
/// the limits.
const ACCEPTED: [i32; 2] = [0, 1];

/// The words of the command.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    name: &'a str,
    recording: &'a str,
    limits: Vec<&'a str>,
    is_forced: bool,
}

/// True if these words ask for a comparison.
fn is_meant(words: &[String]) -> bool {
    words
        .iter()
        .skip(1)
        .any(|word| word == COMPARE || word.strip_prefix(COMPARE).is_some_and(|rest| rest.starts_with('=')))
}

impl<'a> Plan<'a> {
    fn read(words: &'a [String]) -> Result<Plan<'a>, String> {
        let (name, words) = words.split_first().ok_or("A VCL is missing")?;
        let mut plan = Plan { name, recording: "", limits: Vec::new(), is_forced: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word.as_str(), None),
            };
            if option == "--force" && attached.is_none() {
                plan.is_forced = true;
                continue;
            }
            if ![COMPARE, "--limit"].contains(&option) {
                let text = "with --compare there are --limit and --force; begin a canary afterwards";
                return Err(format!("Unknown option {word}: {text}"));
            }
            let value = match attached {
                Some(value) => value,
                None => words.next().map(String::as_str).ok_or(format!("{option} needs a value"))?,
            };
            match option {
                COMPARE if plan.recording.is_empty() => plan.recording = value,
                COMPARE => return Err(format!("{COMPARE} is given twice")),
                _ => plan.limits.push(value),
            }
        }
        if plan.recording.is_empty() {
            return Err(format!("{COMPARE} needs the file of a recording"));
        }
        Ok(plan)
    }
}

impl Call<'_> {
    /// True if the words of `vcl.use` ask for a comparison.
    pub(super) fn is_comparison(&self) -> bool {
        is_meant(self.arguments)
    }

    /// `vcl.use` with `--compare`.
    pub(super) async fn vcl_use_compared(self) -> Response {
        let plan = match Plan::read(self.arguments) {
            Ok(plan) => plan,
            Err(text) => return Response::new(status::PARAMETER, text),
        };
        let manager = self.manager;
        let (active, old, new) = {
            let vcls = manager.vcls.borrow();
            match vcls.check_use(plan.name) {
                Ok(true) => {}
                Ok(false) => return Response::ok(format!("VCL '{}' is active", plan.name)),
                Err(refusal) => return refusal,
            }
            let Some(active) = vcls.active().map(str::to_owned) else {
                return Response::new(status::CANNOT, "No VCL is active: there is nothing to compare with");
            };
            (active.clone(), vcls.program(&active), vcls.program(plan.name))
        };
        let (Some(old), Some(new)) = (old, new) else {
            return Response::new(status::CANNOT, "The VCL has no program");
        };
        if !old.labels.is_empty() || !new.labels.is_empty() {
            let text = "A VCL that returns to labels cannot be replayed by itself; copal replay in front of each";
            return Response::new(status::CANNOT, text);
        }
        let _replay = match manager.replaying.try_lock() {
            Ok(replay) => replay,
            Err(_) => return Response::new(status::CANNOT, "Another comparison is under way"),
        };
        let (is_accepted, report) = match replay(manager, &plan, &old, &new).await {
            Ok((code, report)) => (ACCEPTED.contains(&code), report),
            Err(text) => (false, format!("The comparison failed: {text}\n")),
        };
        if !is_accepted && !plan.is_forced {
            return Response::new(
                status::CANNOT,
                format!("{report}\nVCL '{active}' stays active; --force overrides this"),
            );
        }
        let _changes = manager.changes.lock().await;
        if manager.vcls.borrow().active() != Some(&active) {
            let text = format!("The active VCL has changed: it is not '{active}' any more; nothing was done");
            return Response::new(status::CANNOT, text);
        }
        if let Err(refusal) = manager.vcls.borrow().check_use(plan.name) {
            return refusal;
        }
        if !is_accepted {
            let text = format!("vcl.use {} by {}: forced against the result of a replay", plan.name, self.who);
            manager.say(Level::Warning, text);
        }
        match activate(manager, plan.name, self.who, "vcl.use --compare").await {
            Ok(()) => Response::ok(format!("{report}\nVCL '{}' now active", plan.name)),
            Err(refusal) => refusal,
        }
    }
}

/// Runs the replay. Returns its exit status and its report.
async fn replay(manager: &Rc<Manager>, plan: &Plan<'_>, old: &Loaded, new: &Loaded) -> Result<(i32, String), String> {
    let shown = |error: io::Error| format!("{}: {}", plan.recording, reason(&error));
    // Opening must not wait for the other end of a pipe.
    let recording =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(plan.recording).map_err(shown)?;
    if !recording.metadata().map_err(shown)?.is_file() {
        return Err(format!("{}: not a file", plan.recording));
    }
    let parameters = manager.parameters.borrow().clone();
    let bytes = postcard::to_stdvec(&(&old.program, &new.program, &parameters)).map_err(|error| error.to_string())?;
    let failed = |error: io::Error| format!("it could not be started: {}", reason(&error));
    // In the work directory, where this process is. Only its owner can read it.
    let mut programs = tempfile::Builder::new().prefix("_.replay").tempfile_in(".").map_err(failed)?;
    programs.write_all(&bytes).map_err(failed)?;
    let jail = &manager.arguments.jail;
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("copal").args(["replay", REPLAY_INHERITED]).arg(programs.path());
    command.arg(jail.observer().map_or("-".to_owned(), |(user, group)| format!("{user}:{group}")));
    command.arg(if *jail == (Jail::None { asked: true }) { "-" } else { "sandbox" });
    command.args(&plan.limits);
    command.env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::from(recording)).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = Command::from(command).kill_on_drop(true).spawn().map_err(failed)?;
    let (output, error) = (child.stdout.take(), child.stderr.take());
    let (output, error) = tokio::join!(text_of(output), text_of(error));
    let ended = child.wait().await.map_err(failed)?;
    match ended.code() {
        Some(code) => Ok((code, output + &error)),
        None => Err(format!(
            "it ended by a signal ({ended}); it may take {REPLAY_GATE_SECONDS_MAX} s of CPU time: record less, or \
             run copal replay by hand"
        )),
    }
}

/// Everything that a pipe yields up to the limit, made legible.
async fn text_of(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut bytes = Vec::new();
    let _ = (&mut pipe).take(REPLAY_REPORT_BYTES_MAX as u64).read_to_end(&mut bytes).await;
    // A full pipe would stop the process.
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    legible::lines(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_of_a_comparison_are_read() {
        let all = words("new --limit status=1% --compare /a.rec --force --limit=leak=0");
        assert!(
            is_meant(&all) && is_meant(&words("new --compare=/a.rec")) && !is_meant(&words("--compare --percent 5"))
        );
        let plan = Plan { name: "new", recording: "/a.rec", limits: vec!["status=1%", "leak=0"], is_forced: true };
        assert_eq!(Plan::read(&all), Ok(plan));
        for text in ["new --compare", "new --compare a --compare b", "new --compare a --percent 5", "new --compare="] {
            assert!(Plan::read(&words(text)).is_err(), "{text}");
        }
    }
}
