//! Command line of this daemon, so that an upgrade can start the present program file in the same
//! way.
//!
//! The program is searched again where it was found: at the path in the first argument, or along
//! `PATH`. So a replaced file is run, and a changed link is followed. If the first argument does
//! not lead to the running program (`exec -a`), the path of its file is used. Relative names are
//! relative to the directory in which the daemon was started, though it has changed to its work
//! directory.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Command line of this process.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    /// The arguments before the options: the name, and the part of the program to run.
    name: OsString,
    part: Vec<OsString>,
    options: Vec<OsString>,
    directory: Option<PathBuf>,
}

impl Program {
    /// This process; `options` are its last arguments. `marks` of our own precede them.
    #[must_use]
    pub fn of_process(marks: usize, options: &[OsString]) -> Program {
        let all: Vec<OsString> = std::env::args_os().collect();
        let before = all.len().saturating_sub(options.len() + marks);
        let name = all.first().cloned().unwrap_or_default();
        let search = std::env::var_os("PATH").unwrap_or_default();
        Program {
            path: find(&name, &search, Path::new("/proc/self/exe")),
            name,
            part: all.get(1..before).unwrap_or_default().to_vec(),
            options: options.to_vec(),
            directory: std::env::current_dir().ok(),
        }
    }

    /// Path of the program's file for the next start.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that starts the present program file, with the same arguments after `marks`.
    #[must_use]
    pub fn command(&self, marks: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.part).args(marks).args(&self.options);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

/// The path that leads to the running program: that of its name, or along `search`, else that of
/// its file.
fn find(name: &OsStr, search: &OsStr, running: &Path) -> PathBuf {
    let of_file = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let runs = of_file(running);
    let candidates: Vec<PathBuf> = match name.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(name)],
        false => std::env::split_paths(search).map(|folder| folder.join(name)).collect(),
    };
    let found = candidates.into_iter().find(|path| runs.is_some() && of_file(path) == runs);
    let found = found.or_else(|| fs::read_link(running).ok()).unwrap_or_else(|| running.to_owned());
    std::path::absolute(&found).unwrap_or(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn name_leads_to_the_program_unless_it_leads_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = |name: &str| folder.join(name);
        fs::write(path("copal-1"), "one").unwrap();
        fs::create_dir(path("bin")).unwrap();
        symlink(path("copal-1"), path("bin/varnishd")).unwrap();
        fs::create_dir(path("stock")).unwrap();
        fs::write(path("stock/varnishd"), "another").unwrap();
        symlink(path("copal-1"), path("exe")).unwrap();
        let find = |name: &str, search: &str| find(OsStr::new(name), OsStr::new(search), &path("exe"));
        let of = |name: &str| path(name).display().to_string();
        assert_eq!(find(&of("bin/varnishd"), ""), path("bin/varnishd"), "the link, which may lead elsewhere tomorrow");
        let search = format!("{}:{}:{}", of("nowhere"), of("stock"), of("bin"));
        assert_eq!(find("varnishd", &search), path("bin/varnishd"));
        assert_eq!(find("varnishd", &of("stock")), path("copal-1"), "another program is never started");
        assert_eq!(find("gone", ""), path("copal-1"));
    }

    #[test]
    fn arguments_are_the_same_behind_the_marks() {
        let program = Program {
            path: PathBuf::from("/usr/bin/copal"),
            name: "copal".into(),
            part: vec!["daemon".into()],
            options: vec!["-F".into(), "-a".into(), ":80".into()],
            directory: Some(PathBuf::from("/srv")),
        };
        let command = program.command(&["--mark"]);
        let words: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(words, ["daemon", "--mark", "-F", "-a", ":80"]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/srv")));
        let own = Program::of_process(0, &[]);
        assert!(own.path().is_absolute() && own.path().exists());
    }
}
