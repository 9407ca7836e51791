//! Arbitrary files of an installation of Varnish, the input of `copal preflight`.

use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use surface::legible::is_commanding;

/// The files that a line `==== name` begins: the name, and the path of the following text in the
/// installation.
const FILES: [(&str, &str); 8] = [
    ("unit", "etc/systemd/system/varnish.service"),
    ("drop-in", "etc/systemd/system/varnish.service.d/site.conf"),
    ("ncsa", "etc/systemd/system/varnishncsa.service"),
    ("environment", "etc/default/varnish"),
    ("params", "etc/varnish/varnish.params"),
    ("hitch", "etc/hitch/hitch.conf"),
    ("vcl", "etc/varnish/default.vcl"),
    ("parameters", "parameters"),
];

/// Divides the bytes into the files of an installation and checks it, with options for the files
/// that exist.
///
/// # Panics
/// When a check ends with an unknown status, prints nothing, prints a character that a terminal
/// interprets, prints invalid JSON, or reaches another verdict in JSON than in text.
pub fn installation(bytes: &[u8]) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let written = lay_out(bytes, folder.path());
    let has = |name: &str| written.contains(&name);
    look(folder.path(), &[]);
    if has("params") {
        look(folder.path(), &["--environment", "/etc/varnish/varnish.params"]);
    }
    if has("parameters") {
        look(folder.path(), &["--params", "/parameters", "--vcl", "/etc/varnish/default.vcl"]);
    }
}

/// Writes the files; returns their names.
fn lay_out(bytes: &[u8], root: &Path) -> Vec<&'static str> {
    let mut written = Vec::new();
    let mut open: Option<(&'static str, PathBuf, Vec<u8>)> = None;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let title = line.strip_prefix(b"==== ").map(<[u8]>::trim_ascii);
        let begun = title.and_then(|title| FILES.iter().find(|(name, _)| name.as_bytes() == title));
        match (begun, &mut open) {
            (Some((name, path)), _) => {
                if let Some(file) = open.replace((name, root.join(path), Vec::new())) {
                    written.extend(write(file));
                }
            }
            (None, Some((_, _, text))) => text.extend_from_slice(line),
            (None, None) => {}
        }
    }
    written.extend(open.and_then(write));
    written
}

fn write((name, path, text): (&'static str, PathBuf, Vec<u8>)) -> Option<&'static str> {
    std::fs::create_dir_all(path.parent()?).and_then(|()| std::fs::write(&path, text)).expect("a file");
    Some(name)
}

fn look(root: &Path, options: &[&str]) {
    let look = |more: &[&str]| {
        let mut args: Vec<OsString> = vec!["--root".into(), root.into()];
        args.extend(options.iter().chain(more).map(OsString::from));
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let status = preflight::run_to(&args, &mut output, &mut error);
        assert!((0..=3).contains(&status), "a status of {status}");
        assert!(!(if status == 3 { &error } else { &output }).is_empty(), "a verdict is said");
        for text in [&output, &error] {
            let text = std::str::from_utf8(text).expect("text");
            let commands = |letter| letter != '\n' && is_commanding(letter);
            assert!(!text.replace("\r\n", "\n").contains(commands), "{text:?}");
        }
        (status, output)
    };
    let (status, _) = look(&[]);
    let (of_json, json) = look(&["--json"]);
    assert_eq!(status, of_json, "the verdict does not depend on how it is printed");
    if status != 3 {
        let value: Result<Value, _> = serde_json::from_slice(&json);
        assert!(value.is_ok(), "{value:?}: {}", String::from_utf8_lossy(&json));
    }
}
