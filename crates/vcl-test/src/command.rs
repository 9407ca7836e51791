//! The command line of `copal vcl test`.

use crate::case::{self, Ready};
use crate::coverage::Coverage;
use crate::expectation;
use crate::program::{Settings, compile};
use crate::report;
use crate::runner::{self, Job, Outcome, Prepared};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surface::legible;
use surface::limits::{VCL_SOURCE_BYTES_MAX, VCL_TEST_FILE_BYTES_MAX};
use surface::program::program;
use tools::Streams;
use tools::options::{self, Given};
use vcl_run::program::Program;

/// Exit status for a wrong command line, and for files that cannot be used.
pub(crate) const USAGE_ERROR: i32 = 2;

/// Form of the coverage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CoverageForm {
    Text,
    Lcov,
}

struct Request {
    vcl: OsString,
    files: Vec<OsString>,
    filter: Option<String>,
    is_tap: bool,
    junit: Option<PathBuf>,
    coverage: Option<CoverageForm>,
    coverage_file: Option<PathBuf>,
    settings: Settings,
}

pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match options::parse("vcl test", args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    let request = match read(given) {
        Ok(request) => request,
        Err(text) => return options::wrong(program("vcl test"), &text, streams),
    };
    let jobs = match prepare(&request) {
        Ok(jobs) => jobs,
        Err(text) => {
            let _ = writeln!(streams.error, "{}", legible::lines(text.trim_end().as_bytes()));
            return USAGE_ERROR;
        }
    };
    let results = run_all(&request, &jobs, streams);
    match write_reports(&request, &results, streams) {
        Err(text) => {
            let _ = writeln!(streams.error, "{}", legible::lines(text.as_bytes()));
            USAGE_ERROR
        }
        Ok(()) => i32::from(results.iter().any(|(_, outcome)| !outcome.has_passed())),
    }
}

fn read(given: Given) -> Result<Request, String> {
    let mut words = given.rest.into_iter();
    let vcl = words.next().ok_or("which VCL?")?;
    let files: Vec<OsString> = words.collect();
    if files.is_empty() {
        return Err("which test file?".to_owned());
    }
    let mut request = Request {
        vcl,
        files,
        filter: None,
        is_tap: false,
        junit: None,
        coverage: None,
        coverage_file: None,
        settings: Settings::default(),
    };
    for (letter, argument) in given.options {
        match letter {
            'f' => request.filter = Some(words_of(argument)?),
            't' => request.is_tap = true,
            'x' => request.junit = Some(argument.into()),
            'c' => {
                request.coverage = Some(match words_of(argument)?.as_str() {
                    "text" => CoverageForm::Text,
                    "lcov" => CoverageForm::Lcov,
                    _ => return Err("--coverage takes text or lcov".to_owned()),
                });
            }
            'o' => request.coverage_file = Some(argument.into()),
            _ => setting(&mut request.settings, letter, argument)?,
        }
    }
    if request.coverage_file.is_some() && request.coverage.is_none() {
        return Err("--coverage-file needs --coverage".to_owned());
    }
    Ok(request)
}

/// An option that both commands have.
///
/// # Errors
/// Its value is not accepted.
pub(crate) fn setting(settings: &mut Settings, letter: char, argument: OsString) -> Result<(), String> {
    match letter {
        'p' => {
            let text = words_of(argument)?;
            let (name, value) = text.split_once('=').ok_or("-p takes param=value")?;
            settings.parameters.push((name.to_owned(), value.to_owned()));
        }
        'I' => settings.path.push(PathBuf::from(argument)),
        'b' => settings.default_backend = Some(vcl::backend_option(&words_of(argument)?)),
        _ => {}
    }
    Ok(())
}

/// An argument as text.
pub(crate) fn words_of(argument: OsString) -> Result<String, String> {
    argument.into_string().map_err(|_| "an argument is not text".to_owned())
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// The name and the error.
pub(crate) fn read_file(path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() > bytes_max => Err(format!("{}: larger than {bytes_max} bytes", path.display())),
        Ok(bytes) => Ok(bytes),
        Err(error) => {
            let text = error.to_string();
            Err(format!("{}: {}", path.display(), text.split(" (os error").next().unwrap_or_default()))
        }
    }
}

/// The absolute name of the VCL, so that relative includes work, and its text.
///
/// # Errors
/// As [`read_file`].
pub(crate) fn read_vcl(file: &OsStr) -> Result<(String, Vec<u8>), String> {
    let path = std::path::absolute(Path::new(file)).map_err(|error| error.to_string())?;
    let text = read_file(&path, VCL_SOURCE_BYTES_MAX)?;
    Ok((path.display().to_string(), text))
}

/// Reads and compiles everything.
fn prepare(request: &Request) -> Result<Vec<Job>, String> {
    let (name, text) = read_vcl(&request.vcl)?;
    let mut jobs = Vec::new();
    for file in &request.files {
        let shown = file.to_string_lossy();
        let bytes = read_file(Path::new(file), VCL_TEST_FILE_BYTES_MAX)?;
        let toml = String::from_utf8(bytes).map_err(|_| format!("{shown}: not UTF-8"))?;
        let cases = read_cases(&shown, &toml)?;
        let Some(first) = cases.first() else { return Err(format!("{shown}: no cases")) };
        let parameters = request.settings.parameters(&first.parameters).map_err(|text| format!("{shown}: {text}"))?;
        let program = compile(&name, &text, &request.settings, &parameters).map_err(|error| error.text)?;
        let prepared = Arc::new(Prepared { program, parameters });
        for case in cases {
            check_names(&case, &prepared.program)?;
            if request.filter.as_ref().is_none_or(|filter| case.name.contains(filter.as_str())) {
                jobs.push(Job { prepared: Arc::clone(&prepared), case: Arc::new(case) });
            }
        }
    }
    if jobs.is_empty() {
        return Err("no case has this in its name".to_owned());
    }
    Ok(jobs)
}

/// Reads a file of cases and checks it, but for the names of backends.
///
/// # Errors
/// A message with the line.
pub(crate) fn read_cases(file: &str, text: &str) -> Result<Vec<Ready>, String> {
    let cases = case::read(file, text)?;
    for case in &cases {
        for step in &case.steps {
            expectation::check(&step.expect)
                .map_err(|error| format!("{file}:{}: {}: {error}", case.line, case.name))?;
        }
    }
    Ok(cases)
}

/// Checks the names of backends.
fn check_names(case: &Ready, program: &Program) -> Result<(), String> {
    let names = || program.backends.iter().map(|backend| backend.name.as_str());
    for step in &case.steps {
        for name in step.origins.keys().chain(&step.sick) {
            if !names().any(|known| known == name) {
                let meant = surface::nearest::did_you_mean(name, "", names());
                return Err(format!("{}:{}: no backend is called {name}{meant}", case.file, case.line));
            }
        }
    }
    Ok(())
}

fn run_all(request: &Request, jobs: &[Job], streams: &mut Streams) -> Vec<(Job, Outcome)> {
    if request.is_tap {
        let _ = streams.output.write_all(report::tap_head(jobs.len()).as_bytes());
    }
    let mut results = Vec::new();
    let remark = runner::run(jobs, |job, outcome| {
        let shown = match request.is_tap {
            true => report::tap(results.len() + 1, job, &outcome),
            false => report::text(job, &outcome),
        };
        let _ = streams.output.write_all(shown.as_bytes());
        results.push((job.clone(), outcome));
    });
    if let Some(text) = remark {
        let _ = writeln!(streams.error, "copal vcl test: VMODs can reach files and networks here: {text}");
    }
    results
}

fn write_reports(request: &Request, results: &[(Job, Outcome)], streams: &mut Streams) -> Result<(), String> {
    if !request.is_tap {
        let failed = results.iter().filter(|(_, outcome)| !outcome.has_passed()).count();
        let seconds = results.iter().map(|(_, outcome)| outcome.seconds).sum();
        let _ = streams.output.write_all(report::summary(results.len(), failed, seconds).as_bytes());
    }
    let write =
        |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    if let Some(path) = &request.junit {
        write(path, &report::junit(results))?;
    }
    let Some(form) = request.coverage else { return Ok(()) };
    let mut coverage = Coverage::default();
    for (job, outcome) in results {
        coverage.add_program(&job.prepared.program);
        coverage.count(&job.prepared.program, &outcome.lines);
    }
    let text = match form {
        CoverageForm::Text => coverage.text(),
        CoverageForm::Lcov => coverage.lcov(),
    };
    match &request.coverage_file {
        Some(path) => write(path, &text),
        None => {
            let is_comment = request.is_tap.then(|| text.lines().map(|line| format!("# {line}\n")).collect::<String>());
            let _ = streams.output.write_all(is_comment.unwrap_or(text).as_bytes());
            Ok(())
        }
    }
}
