//! A replay that a manager starts, for `vcl.use --compare`.
//!
//! ```text
//! copal replay --inherited <programs> <user>:<group>|- sandbox|- [<limits>]…
//! ```
//! Standard input is the recording. The file `programs` has the compiled old and new VCL and the
//! parameters, in postcard. Before anything of the recording is read, this process becomes another
//! user, enters the sandbox, and limits its time and memory.

use super::command::{UNUSABLE, report_to};
use super::limits::Limits;
use super::report::Form;
use super::session::{Job, Prepared, Sources, collect, in_thread};
use crate::command::words_of;
use sandbox::{Access, Grants, confine};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use surface::legible;
use surface::limits::{
    REPLAY_GATE_CACHE_BYTES, REPLAY_GATE_MEMORY_BYTES_MAX, REPLAY_GATE_SECONDS_MAX, REPLAY_PROGRAMS_BYTES_MAX,
};
use surface::parameter::Parameters;
use tools::Streams;
use vcl_run::program::Program;

pub(super) use surface::option::REPLAY_INHERITED as MARK;

/// Runs the replay; returns the exit status.
pub(super) fn run(arguments: &[OsString], streams: &mut Streams) -> i32 {
    match prepare(arguments) {
        Ok((job, limits)) => match in_thread(job, streams) {
            Ok(summary) => report_to(&summary, true, &limits, Form::Text, streams),
            Err(text) => fail(&text, streams),
        },
        Err(text) => fail(&text, streams),
    }
}

fn fail(text: &str, streams: &mut Streams) -> i32 {
    let _ = writeln!(streams.error, "{}", legible::lines(text.trim_end().as_bytes()));
    UNUSABLE
}

fn prepare(arguments: &[OsString]) -> Result<(Job, Limits), String> {
    let [programs, run_as, sandbox, texts @ ..] = arguments else {
        return Err("copal replay: only the server starts it so".to_owned());
    };
    let run_as = match &*words_of(run_as.clone())? {
        "-" => None,
        ids => {
            let ids = ids.split_once(':').and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
            Some(ids.ok_or("copal replay: a user and a group are numbers")?)
        }
    };
    let mut limits = Limits::default();
    for text in texts {
        limits.add(&words_of(text.clone())?)?;
    }
    let bytes = crate::command::read_file(Path::new(programs), REPLAY_PROGRAMS_BYTES_MAX)?;
    let stdin = std::io::stdin();
    let recording = stdin.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let grants = Grants { writable: &[], readable: &[], ports: &[] };
    confine(Path::new("."), run_as, sandbox == "sandbox", Access::Read(grants))?;
    sandbox::limit(REPLAY_GATE_SECONDS_MAX, REPLAY_GATE_MEMORY_BYTES_MAX)?;
    let wrong = |error: postcard::Error| format!("the programs cannot be read: {error}");
    let (old, new, parameters): (Vec<u8>, Vec<u8>, Parameters) = postcard::from_bytes(&bytes).map_err(wrong)?;
    let parameters = crate::program::with_facts(parameters);
    let prepared = |program: &[u8]| {
        let program = postcard::from_bytes::<Program>(program).map_err(wrong)?;
        Ok::<_, String>(Prepared { program, parameters: parameters.clone() })
    };
    let (old, new) = (prepared(&old)?, prepared(&new)?);
    let (recording, sources) = (File::from(recording), Sources { old: Some(old), new });
    let job = collect(recording, sources, REPLAY_GATE_CACHE_BYTES, false)?;
    Ok((job, limits))
}
