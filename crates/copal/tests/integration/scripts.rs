//! The test runner as a program: our scripts pass with it, failing ones end and name the line,
//! hanging ones end, and no process or file is left. The same scripts with the stock runner:
//! `stock_tools.rs`.

use crate::daemon::{copal, eventually};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use surface::limits::TEST_HANG_SECONDS;
use tempfile::TempDir;

/// A folder with the program under the name that scripts use, one for the tests' folders, and
/// scripts.
struct Bench {
    bin: TempDir,
    temporary: TempDir,
    scripts: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            bin: tempfile::tempdir().unwrap(),
            temporary: tempfile::tempdir().unwrap(),
            scripts: tempfile::tempdir().unwrap(),
        };
        for name in ["varnishd", "varnishadm", "varnishlog", "varnishncsa", "varnishstat", "varnishtest"] {
            symlink(copal(), bench.bin.path().join(name)).unwrap();
        }
        // The worker may run as another user.
        std::fs::set_permissions(bench.temporary.path(), PermissionsExt::from_mode(0o755)).unwrap();
        bench
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.scripts.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str], scripts: &[PathBuf]) -> Output {
        Command::new(self.bin.path().join("varnishtest"))
            .args(arguments)
            .args(scripts)
            .env("TMPDIR", self.temporary.path())
            .output()
            .unwrap()
    }

    fn left_folders(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Our own scripts, in order.
pub fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vtc");
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> = files(&folder).chain(files(&folder.join("vmod"))).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "vtc"));
    scripts.sort();
    assert!(!scripts.is_empty());
    scripts
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn our_scripts_pass_with_our_runner() {
    let bench = Bench::new();
    let output = bench.run(&["-k", "-j", "2", "-t", &TEST_HANG_SECONDS.to_string()], &scripts());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
}

#[test]
fn exit_status_reflects_the_test_results() {
    let bench = Bench::new();
    let passes = bench.script("passes.vtc", "# a comment\nvtest \"passes\"\nshell true\n");
    let fails = bench.script("fails.vtc", "vtest \"fails\"\nshell false\n");
    let skips = bench.script("skips.vtc", "varnishtest \"skips\"\nfeature cmd false\nshell false\n");
    let speaks_http2 = bench.script(
        "http2.vtc",
        "vtest \"HTTP/2\"\nserver s1 {\n stream 1 {\n rxreq\n txresp\n } -run\n} -start\n\
         client c1 -connect ${s1_sock} {\n stream 1 {\n txreq\n rxresp\n } -run\n} -run\n",
    );
    let nothing = bench.script("nothing.vtc", "shell true\n");
    let status = |arguments: &[&str], scripts: &[&PathBuf]| {
        let scripts: Vec<PathBuf> = scripts.iter().map(|path| (*path).clone()).collect();
        let output = bench.run(arguments, &scripts);
        (output.status.code().unwrap(), said(&output))
    };
    assert_eq!(status(&[], &[&passes]).0, 0);
    assert_eq!(status(&[], &[&passes, &skips]).0, 0);
    assert_eq!(status(&[], &[&skips]).0, 77);
    assert_eq!(status(&[], &[&speaks_http2]).0, 0);
    let (code, text) = status(&[], &[&fails, &passes]);
    assert!(code == 2 && !text.contains("passed"), "{text}");
    let (code, text) = status(&["-k"], &[&fails, &passes, &skips, &nothing]);
    assert!(code == 1 && text.contains("1 tests failed, 2 tests skipped, 1 tests passed"), "{text}");
    assert!(status(&[], &[&nothing]).1.contains("doesn't start with"));
    assert_eq!(status(&["-n", "3", "-j", "2"], &[&passes]).1.matches("passed").count(), 3);
    assert_eq!(status(&["-q"], &[&passes]).1, "");
    assert!(status(&["-v"], &[&passes]).1.contains("**** top   shell_status = 0x0000"));
    assert!(status(&["-Z"], &[&passes]).1.contains("Usage:"));
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
}

#[test]
fn broken_scripts_are_reported_with_their_line() {
    let bench = Bench::new();
    for (number, (body, line, text)) in [
        ("client c1 {\n\ttxreq\n", 3, "Unterminated block"),
        ("shell \"echo\n", 3, "Unterminated quoted string"),
        ("shell \"\\q\"\n", 3, "backslash"),
        ("nonsense\n", 3, "Unknown command: \"nonsense\""),
        ("rxreq\n", 3, "the blocks of servers"),
        ("shell true\n\nshell \"echo ${no_such}\"\n", 5, "Macro ${no_such} not found"),
        ("client c1 -connect ${bad_backend} {\n\ttxreq\n} -run\n", 3, "Failed to open"),
        ("server s1 {\n\trxreq\n\ttxresp -nonsense\n} -start\nclient c1 -connect ${s1_sock} {\n\ttxreq\n\trxresp\n} -run\n", 5, "Unknown http txresp spec: -nonsense"),
        ("server s1 {\n\trxreq\n\ttxresp\n} -start\nclient c1 -connect ${s1_sock} {\n\ttxreq\n\trxresp\n\texpect resp.status == 204\n} -run\n", 10, "EXPECT resp.status (200) == \"204\" failed"),
        ("loop x {\n}\n", 3, "no whole number"),
        ("barrier b1 cond 1\n", 3, "wrong expectation"),
        ("barrier b1 sync\n", 3, "not initialized"),
        ("logexpect l1 -v v1 {\n\texpect * * Nonsense\n}\n", 4, "Unknown tag name"),
        ("process p1 \"exit 3\" -run\n", 3, "Bad exit status"),
        ("varnish v1 -arg \"-p no_such_parameter=1\" -vcl {\n}\n", 3, "ended before it connected"),
        ("varnish v1 -vcl {\n}\n", 3, "VCL compilation failed expected success"),
        ("varnish v1 -expect\n", 3, "the counter is missing"),
        ("feature nonsense\n", 3, "unknown feature"),
        ("haproxy c1\n", 3, "must start with 'h'"),
        ("include /nonexistent\n", 3, "cannot read /nonexistent"),
        ("include ${testdir}/again.vtc\n", 1, "scripts within each other"),
        ("delay -1\n", 3, "no time in seconds"),
        ("client ../c1\n", 3, "must start with 'c'"),
    ]
    .into_iter()
    .enumerate()
    {
        bench.script("again.vtc", "include ${testdir}/again.vtc\n");
        let path = bench.script(&format!("broken{number}.vtc"), &format!("vtest \"broken\"\n\n{body}"));
        let output = bench.run(&["-t", &TEST_HANG_SECONDS.to_string()], std::slice::from_ref(&path));
        let shown = said(&output);
        assert_eq!(output.status.code(), Some(2), "{body}: {shown}");
        assert!(shown.contains(text), "{body}: {shown}");
        assert!(shown.contains(&format!("{}:{line}: ", path.display())), "{body}: {shown}");
        assert!(!shown.contains("panicked"), "{body}: {shown}");
    }
    for bytes in
        [&b"vtest \xff\xfe {\0}"[..], b"vtest", b"vtest \"x\"\n\"", b"vtest x\n{{{{{", b"vtest x\n${", b"vtest x\n}"]
    {
        let path = bench.scripts.path().join("bytes.vtc");
        std::fs::write(&path, bytes).unwrap();
        let output = bench.run(&["-t", &TEST_HANG_SECONDS.to_string()], &[path]);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{}", said(&output));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
    }
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
}

/// Processes that have this text in their command line.
fn processes_of(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_of = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    pids.filter(is_of).collect()
}

#[test]
fn a_hung_script_ends_with_all_that_it_started() {
    let bench = Bench::new();
    let hangs = bench.script(
        "hangs.vtc",
        "vtest \"hangs\"\n\
         server s1 { rxreq\n delay 100\n } -start\n\
         varnish v1 -vcl+backend { } -start\n\
         shell \"setsid sleep 7777 > /dev/null 2>&1 &\"\n\
         process p1 \"exec sleep 6666\" -start\n\
         client c1 { txreq\n delay 100\n } -start\n\
         delay 100\n",
    );
    let output = bench.run(&["-t", "3"], &[hangs]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("TIMED OUT") && text.contains("the script was at: delay 100"), "{text}");
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
    let folder = bench.temporary.path().display().to_string();
    for of in [folder.as_str(), "sleep\u{0}7777", "sleep\u{0}6666"] {
        eventually("its processes are gone", || processes_of(of).is_empty().then_some(()));
    }
}

#[test]
fn an_interrupted_runner_takes_everything_with_it() {
    let bench = Bench::new();
    let hangs = bench.script("hangs.vtc", "vtest \"hangs\"\nvarnish v1 -vcl { backend b None; } -start\ndelay 100\n");
    let runner = Command::new(bench.bin.path().join("varnishtest"))
        .arg(&hangs)
        .env("TMPDIR", bench.temporary.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut runner = crate::daemon::Process(runner);
    let folder = bench.temporary.path().display().to_string();
    eventually("the daemon runs", || (processes_of(&folder).len() > 2).then_some(()));
    runner.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(runner.wait().code(), Some(2));
    eventually("its processes are gone", || processes_of(&folder).is_empty().then_some(()));
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
}

#[test]
fn folders_are_left_when_asked_for() {
    let bench = Bench::new();
    let passes = bench.script("passes.vtc", "vtest \"passes\"\n");
    let fails = bench.script("fails.vtc", "vtest \"fails\"\nshell \"echo traces > here; false\"\n");
    bench.run(&["-k", "-l"], &[passes.clone(), fails]);
    let left = bench.left_folders();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::read_to_string(left[0].join("here")).unwrap(), "traces\n");
    assert!(std::fs::read_to_string(left[0].join("LOG")).unwrap().contains("---- top   shell_exit"));
    assert!(std::fs::read_to_string(left[0].join("INFO")).unwrap().contains("fails.vtc"));
    bench.run(&["-L"], &[passes]);
    assert_eq!(bench.left_folders().len(), 2);
}

#[test]
fn without_a_varnishd_to_be_found_it_tests_itself() {
    let bench = Bench::new();
    let script = bench.script(
        "itself.vtc",
        "vtest \"itself\"\n\
         varnish v1 -vcl { backend b None; } -start\n\
         shell -expect Copal {varnishadm -V 2>&1}\n",
    );
    let output = Command::new(copal())
        .args(["test", "-t", &TEST_HANG_SECONDS.to_string()])
        .arg(&script)
        .env("TMPDIR", bench.temporary.path())
        .env("PATH", "/usr/bin:/bin:/nonexistent")
        .output()
        .unwrap();
    if !Path::new("/usr/bin/varnishd").exists() && !copal().with_file_name("varnishd").exists() {
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    assert_eq!(bench.left_folders(), Vec::<PathBuf>::new());
}
