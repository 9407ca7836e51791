//! Whole installations, as packages and operators leave them, and the report on each.

mod documents;
mod hitch;
mod older;
mod same_as_daemon;

use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that represents `/` of another machine.
pub struct Installation(TempDir);

impl Installation {
    pub fn new(files: &[(&str, &str)]) -> Installation {
        let installation = Installation(tempfile::tempdir().unwrap());
        for (path, text) in files {
            installation.write(path, text.as_bytes());
        }
        installation
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Exit status, output and messages of a preflight of this installation.
    pub fn preflight(&self, more: &[&str]) -> (i32, String, String) {
        let root = self.0.path().as_os_str().to_owned();
        run([OsString::from("--root"), root].into_iter().chain(more.iter().map(OsString::from)).collect())
    }

    /// The same as a document.
    pub fn document(&self, more: &[&str]) -> (i32, Value) {
        let (status, output, error) = self.preflight(&[&["--json"], more].concat());
        assert_eq!(error, "");
        (status, serde_json::from_str(&output).unwrap())
    }
}

pub fn run(arguments: Vec<OsString>) -> (i32, String, String) {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let status = preflight::run_to(&arguments, &mut output, &mut error);
    (status, String::from_utf8(output).unwrap(), String::from_utf8(error).unwrap())
}

/// The report's lines with a verdict: `file:line what -> remedy`.
pub fn said(document: &Value, verdict: &str) -> Vec<String> {
    let findings = document["findings"].as_array().unwrap().iter();
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or("").to_owned();
        let line = finding["line"].as_u64().map_or_else(String::new, |line| format!(":{line}"));
        let name = Path::new(&text("file")).file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{name}{line} {} -> {}", text("what"), text("remedy"))
    };
    findings.filter(|finding| finding["verdict"] == verdict).map(line).collect()
}

/// Asserts that one of these texts has this beginning.
#[track_caller]
pub fn has(said: &[String], beginning: &str) {
    assert!(said.iter().any(|text| text.starts_with(beginning)), "{beginning:?} in {said:#?}");
}

pub const SMALL_VCL: &str = "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; .port = \"8080\"; }\n";

/// The unit of Debian 12, word for word.
const DEBIAN_UNIT: &str = "\
[Unit]
Description=Varnish Cache, a high-performance HTTP accelerator
Documentation=https://www.varnish-cache.org/docs/ man:varnishd

[Service]
Type=simple

# Maximum number of open files (for ulimit -n)
LimitNOFILE=131072

# Locked shared memory - should suffice to lock the shared memory log
# (varnishd -l argument)
# Default log size is 80MB vsl + 1M vsm + header -> 82MB
# unit is bytes
LimitMEMLOCK=85983232
ExecStart=/usr/sbin/varnishd \\
          -j unix,user=vcache \\
          -F \\
          -a :6081 \\
          -T localhost:6082 \\
          -f /etc/varnish/default.vcl \\
          -S /etc/varnish/secret \\
          -s malloc,256m
ExecReload=/usr/share/varnish/varnishreload
ProtectSystem=full
ProtectHome=true
PrivateTmp=true
PrivateDevices=true

[Install]
WantedBy=multi-user.target
";

/// The unit of varnishncsa of Debian 12, its `[Service]`.
const DEBIAN_NCSA: &str = "\
[Service]
Type=forking
PIDFile=/run/varnishncsa/varnishncsa.pid
RuntimeDirectory=varnishncsa
User=varnishlog
Group=varnish
ExecStart=/usr/bin/varnishncsa -a -w /var/log/varnish/varnishncsa.log -D -P /run/varnishncsa/varnishncsa.pid
ExecReload=/bin/kill -HUP $MAINPID
";

#[test]
fn debians_own_installation_starts_as_it_is() {
    let installation = Installation::new(&[
        ("/lib/systemd/system/varnish.service", DEBIAN_UNIT),
        ("/lib/systemd/system/varnishncsa.service", DEBIAN_NCSA),
        ("/etc/varnish/default.vcl", SMALL_VCL),
        ("/etc/varnish/secret", "x"),
    ]);
    let (status, document) = installation.document(&[]);
    assert!(said(&document, "blocks").is_empty(), "{document:#}");
    let works = said(&document, "works");
    for (line, option) in [
        (18, "-F"),
        (19, "-a :6081"),
        (20, "-T localhost:6082"),
        (21, "-f /etc/varnish/default.vcl"),
        (22, "-S /etc/varnish/secret"),
        (23, "-s malloc,256m"),
    ] {
        has(&works, &format!("varnish.service:{line} {option} -> "));
    }
    has(&works, "default.vcl VCL 4.1");
    has(&works, "varnish.service:24 ExecReload=");
    has(&works, "varnishncsa.service:7 varnishncsa -a -w ");
    let changes = said(&document, "changes");
    has(&changes, "varnish.service:15 LimitMEMLOCK=85983232: nothing is locked");
    assert_eq!((status, document["verdict"].as_str()), (1, Some("changes")));
    let command: Vec<&str> = document["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(command.join(" ").starts_with("varnishd -j unix,user=vcache -F -a :6081 "), "{command:?}");
}

#[test]
fn drop_ins_and_files_of_variables_say_what_counts() {
    let installation = Installation::new(&[
        ("/lib/systemd/system/varnish.service", DEBIAN_UNIT),
        ("/lib/systemd/system/varnish.service.d/x.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n"),
        (
            "/etc/systemd/system/varnish.service.d/x.conf",
            "[Service]\nEnvironment=SIZE=1m \"MORE=-p default_ttl=3\"\nEnvironmentFile=-/etc/none\n\
             EnvironmentFile=/etc/sysconfig/varnish\nExecStart=\n\
             ExecStart=/usr/sbin/varnishd -F -b none -s malloc,${SIZE} $MORE $TUNING\n",
        ),
        ("/etc/sysconfig/varnish", "# tuned\nSIZE=2g\nTUNING=\"-p thread_pool_min=100 \\\n  -p sess_timeout=9\"\n"),
    ]);
    let (status, document) = installation.document(&[]);
    assert_eq!(status, 2);
    has(&said(&document, "works"), "x.conf:6 -s malloc,2g -> ");
    has(&said(&document, "works"), "x.conf:2 -p default_ttl=3 -> ");
    has(&said(&document, "changes"), "varnish:3 -p thread_pool_min=100: accepted, and without effect");
    assert_eq!(
        said(&document, "blocks"),
        ["varnish:4 -p sess_timeout=9: Unknown parameter \"sess_timeout\". -> it is called timeout_idle now"]
    );
    let read: Vec<&str> = document["read"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(read.contains(&"/etc/sysconfig/varnish") && read.contains(&"/etc/systemd/system/varnish.service.d/x.conf"));
}

#[test]
fn a_masked_drop_in_counts_no_more() {
    let installation = Installation::new(&[
        ("/lib/systemd/system/varnish.service", DEBIAN_UNIT),
        ("/lib/systemd/system/varnish.service.d/x.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n"),
        ("/etc/varnish/default.vcl", SMALL_VCL),
        ("/etc/varnish/secret", "secret\n"),
        ("/etc/systemd/system/varnish.service.d/y.conf", "[Service]\n"),
    ]);
    let mask = installation.path("/etc/systemd/system/varnish.service.d/x.conf");
    std::os::unix::fs::symlink("/dev/null", mask).unwrap();
    let (_, document) = installation.document(&[]);
    has(
        &said(&document, "works"),
        "varnish.service:16 ExecStart=/usr/sbin/varnishd: a link of this name to copal is varnishd",
    );
}

#[test]
fn links_of_another_root_lead_within_it() {
    let installation = Installation::new(&[
        (
            "/lib/systemd/system/varnish.service",
            "[Service]\nExecStart=/usr/sbin/varnishd -F -f /etc/varnish/default.vcl\n",
        ),
        ("/srv/sites/prod.vcl", "vcl 4.1;\ninclude \"/etc/varnish/backends.vcl\";\n"),
        ("/srv/sites/backends.vcl", "backend default { .host = \"127.0.0.1\"; }\n"),
    ]);
    std::fs::create_dir_all(installation.path("/etc/varnish")).unwrap();
    let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, installation.path(path)).unwrap();
    link("/srv/sites/prod.vcl", "/etc/varnish/default.vcl");
    link("../../../../../srv/sites/backends.vcl", "/etc/varnish/backends.vcl");
    let (status, document) = installation.document(&[]);
    assert_eq!((status, said(&document, "blocks")), (0, Vec::new()), "{document}");
    // A link to itself cannot be followed.
    std::fs::remove_file(installation.path("/etc/varnish/backends.vcl")).unwrap();
    link("backends.vcl", "/etc/varnish/backends.vcl");
    assert_eq!(installation.document(&[]).0, 2);
}

#[test]
fn a_unit_that_takes_away_too_much_blocks() {
    let drop_in = "/etc/systemd/system/varnish.service.d/hardened.conf";
    let installation = Installation::new(&[
        ("/lib/systemd/system/varnish.service", DEBIAN_UNIT),
        ("/etc/varnish/default.vcl", SMALL_VCL),
        ("/etc/varnish/secret", "secret\n"),
    ]);
    let blocks = |settings: &str| {
        installation.write(drop_in, format!("[Service]\n{settings}\n").as_bytes());
        said(&installation.document(&[]).1, "blocks")
    };
    has(&blocks("CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_CHOWN"), "hardened.conf:2 CapabilityBoundingSet=");
    has(
        &blocks("SystemCallFilter=@system-service"),
        "hardened.conf:2 SystemCallFilter=@system-service: the worker is killed",
    );
    has(&blocks("RestrictAddressFamilies=AF_INET"), "hardened.conf:2 RestrictAddressFamilies=AF_INET: without AF_UNIX");
    has(&blocks("User=varnish"), "hardened.conf:2 User=varnish: -j unix must be started by root");
    assert_eq!(blocks("SystemCallFilter=@system-service\nSystemCallFilter="), [""; 0]);
    assert_eq!(blocks("User=varnish\nExecStart=\nExecStart=/usr/sbin/varnishd -F -b none"), [""; 0]);
    let privileged = blocks("User=varnish\nExecStart=\nExecStart=+/usr/sbin/varnishd -j unix -F -b none");
    assert!(privileged.iter().all(|line| !line.contains("User=")), "{privileged:?}");
}

#[test]
fn unreadable_parts_of_an_installation_are_reported() {
    let missing = "[Service]\nEnvironmentFile=/etc/none\nExecStart=/usr/sbin/varnishd -F -b none $OPTIONS\n";
    let installation = Installation::new(&[
        ("/etc/systemd/system/varnish.service", missing),
        ("/etc/systemd/system/shell.service", "[Service]\nExecStart=/bin/sh -c 'exec varnishd -F -b none'\n"),
        ("/etc/systemd/system/empty.service", "[Service]\n"),
    ]);
    let (status, document) = installation.document(&[]);
    assert_eq!(status, 2);
    has(&said(&document, "blocks"), "varnish.service:2 EnvironmentFile=/etc/none: /etc/none: No such file");
    let (status, document) = installation.document(&["--unit", "shell.service"]);
    assert_eq!(status, 1);
    has(&said(&document, "changes"), "shell.service:2 /bin/sh: not varnishd, so what it starts was not looked at");
    // Paths in it are found for an absolute or relative root.
    installation.write("/etc/varnish/default.vcl", SMALL_VCL.as_bytes());
    let line = "[Service]\nExecStart=/usr/sbin/varnishd -F -f /etc/varnish/default.vcl\n";
    installation.write("/etc/systemd/system/first.service", line.as_bytes());
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    let relative = format!("{up}{}", installation.path("/").display());
    let (status, output, _) = run(["--root", &relative, "--unit", "first.service"].map(OsString::from).into());
    assert!(status == 0 && output.contains("\nto start:\n  varnishd -F -f /etc/varnish/default.vcl\n"), "{output}");
    // A drop-in that does not reset the line before.
    installation.write("/etc/systemd/system/first.service.d/more.conf", line.as_bytes());
    let (status, document) = installation.document(&["--unit", "first.service"]);
    assert_eq!(status, 2);
    has(&said(&document, "blocks"), "more.conf:2 a second ExecStart=, with which systemd refuses the unit -> an empty");
    let (_, output, _) = installation.preflight(&["--unit", "first.service"]);
    assert!(output.contains("\nto start, without what blocks:\n"), "{output}");
    installation.write("/etc/systemd/system/first.service.d/more.conf", line.replace(']', "]\nExecStart=").as_bytes());
    assert_eq!(installation.preflight(&["--unit", "first.service"]).0, 0);
    for line in [&["--unit", "empty.service"][..], &["--unit", "none.service"], &["--nonsense"], &["x"]] {
        let (status, output, error) = installation.preflight(line);
        assert_eq!((status, output.as_str()), (3, ""), "{line:?}");
        assert!(error.starts_with("copal preflight: "), "{error}");
    }
    assert_eq!(Installation::new(&[]).preflight(&[]).0, 3, "nothing to look at");
    assert_eq!(installation.preflight(&["--unit", "varnish.service", "--running"]).0, 3, "one at a time");
    let (status, output, _) = run(vec!["--help".into()]);
    assert!(status == 0 && output.starts_with("Usage: copal preflight"));
}

#[test]
fn a_running_process_is_looked_at_by_its_number() {
    // Any process has a command line; this test's is not varnishd's.
    let own = std::process::id().to_string();
    let (status, document) = Installation::new(&[]).document(&["--pid", &own]);
    assert_eq!(status, 2, "{document:#}");
    assert!(document["read"][0].as_str().unwrap_or("/proc/").starts_with("/proc/"));
    assert_eq!(Installation::new(&[]).preflight(&["--pid", "4294967295"]).0, 3);
}
