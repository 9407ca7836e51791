//! Commands of a manager without a worker, compared with the replies of Varnish 7.1.1.

use super::*;
use crate::arguments::{self, Parsed};
use crate::directory::WorkDirectory;
use crate::report::{LogFormat, Reporter};
use crate::state::Parts;
use crate::vcl_table::Loaded;
use std::ffi::OsString;
use surface::closed_set::VclState;
use surface::program::Called;
use tempfile::TempDir;
use tokio::task::LocalSet;

/// A manager in a folder of its own.
pub(crate) struct Bench {
    pub(crate) manager: Rc<Manager>,
    pub(crate) runtime: tokio::runtime::Runtime,
    _directory: TempDir,
}

impl Bench {
    pub(crate) fn new(options: &[&str]) -> Bench {
        Bench::started_as(Called::Stock, options)
    }

    fn started_as(called: Called, options: &[&str]) -> Bench {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("v");
        let mut line: Vec<OsString> = ["-d", "-j", "none", "-T", "none", "-n"].iter().map(OsString::from).collect();
        line.push(path.into());
        line.extend(options.iter().map(OsString::from));
        let Ok(Parsed::Run(arguments)) = arguments::parse(called, &line) else { panic!("bad options") };
        let parts = Parts {
            directory: WorkDirectory::open(&arguments.work_directory, &arguments.jail, &[]).unwrap(),
            listeners: Vec::new(),
            acme: None,
            tls: crate::tls::open::open(&arguments, &Reporter::new(Called::Stock, false, LogFormat::Plain)).unwrap(),
            secret: None,
            storage_limits_bytes: vec![1 << 20],
            memory: crate::memory_files::MemoryFiles::create(1).unwrap(),
            cli_sockets: Vec::new(),
            metrics: Vec::new(),
            dash: Vec::new(),
            program: crate::program::Program::of_process(0, &[]),
        };
        let reporter = Reporter::new(Called::Stock, false, LogFormat::Plain);
        reporter.disable_syslog();
        reporter.detach();
        let manager = Rc::new(Manager::new(*arguments, reporter, parts).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Bench { manager, runtime, _directory: directory }
    }

    fn ask(&self, line: &str) -> (u16, String) {
        let words = cli_proto::command_line::split(line.as_bytes()).unwrap();
        let reply = LocalSet::new().block_on(&self.runtime, execute(&self.manager, &words, &[], "test"));
        (reply.status, reply.body)
    }

    #[track_caller]
    fn check(&self, line: &str, status: u16, body: &str) {
        assert_eq!(self.ask(line), (status, body.to_owned()), "{line}");
    }

    fn json(&self, line: &str) -> serde_json::Value {
        let (status, body) = self.ask(line);
        assert_eq!(status, 200, "{line}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{line}: {error}: {body}"))
    }
}

#[test]
fn unknown_commands_are_refused_as_by_varnish() {
    let bench = Bench::new(&[]);
    let unknown = "Unknown request.\nType 'help' for more info.\n";
    bench.check("# foo", 101, unknown);
    bench.check("1", 101, unknown);
    bench.check("Ping", 101, &format!("{unknown}all commands are in lower-case.\n"));
    let no_worker = "Unknown request in manager process (child not running).\nType 'help' for more info.";
    bench.check("foo", 101, no_worker);
    bench.check("ban req.url ~ x", 101, no_worker);
    bench.check("vcl.load", 104, "Too few parameters\n");
    bench.check("quit x", 105, "Too many parameters\n");
    bench.check("banner -j", 102, "JSON unimplemented\n");
}

#[test]
fn state_commands_report_the_state() {
    let bench = Bench::new(&["-s", "main=malloc,1m"]);
    bench.check("status", 200, "Child in state stopped");
    bench.check("start", 300, "No VCL loaded");
    bench.check("stop", 300, "Child in state stopped");
    bench.check("panic.show", 300, "Child has not panicked or panic has been cleared");
    bench.check("panic.clear", 300, "No panic to clear");
    bench.check("panic.clear -x", 106, "Unknown parameter \"-x\".");
    bench.check("pid", 200, &format!("Master: {:10}\n", std::process::id()));
    bench.check("storage.list", 200, "Storage devices:\n\tstorage.main = malloc\n\tstorage.Transient = malloc\n");
    bench.check("quit", 500, "Closing CLI connection");
    assert!(bench.ask("ping").1.starts_with("PONG "));
    assert!(bench.ask("banner").1.contains("Type 'start' to launch worker process.\n"));
    assert_eq!(bench.json("status -j")[3], "stopped");
    assert_eq!(bench.json("ping -j")[3], "PONG");
    assert_eq!(bench.json("pid -j")[3]["master"], std::process::id());
    assert_eq!(bench.json("storage.list -j")[4]["name"], "Transient");
}

#[test]
fn help_lists_what_there_is_now() {
    let bench = Bench::new(&[]);
    let (_, list) = bench.ask("help");
    assert!(
        list.starts_with("acme.list [-j]\nacme.renew [<name>]\nauth <response>\nbanner\ndash.login\nfleet.ban "),
        "{list}"
    );
    assert!(list.contains("\nfleet.status [-j]\nhelp [-j|<command>]\n"), "{list}");
    assert!(!list.contains("ban.list"));
    assert_eq!(bench.ask("help -d").1, "debug.panic.master\nvcl.symtab\n");
    assert!(bench.ask("help -a").1.contains("vcl.symtab\n"));
    bench.check("help -x", 101, "Unknown flag\n");
    bench.check("help foo", 101, "Unknown request.\nType 'help' for more info.\n");
    assert!(bench.ask("help ping").1.starts_with("ping [-j] [<timestamp>]\n"));
    let json = bench.json("help -j");
    let discard = json.as_array().unwrap().iter().find(|row| row["request"] == "vcl.discard").unwrap();
    assert_eq!((&discard["minarg"], &discard["maxarg"]), (&1.into(), &(-1).into()));
}

#[test]
fn the_defaults_are_those_of_the_name_under_which_it_was_started() {
    let bench = Bench::started_as(Called::Copal, &["-b", "none"]);
    bench.check("param.show changed", 200, "");
    bench.check("param.set feature none", 200, "");
    bench.check("param.set feature default", 200, "");
    bench.check("param.show changed", 200, "");
    bench.check("param.set feature -http2", 200, "");
    assert!(bench.ask("param.show feature").1.contains("Default is: +http2,+validate_headers\n"));
    assert_eq!(bench.json("param.show -j feature")[3]["default"], "+http2,+validate_headers");
    bench.check("param.reset feature", 200, "");
    bench.check("param.set http_policy varnish", 200, "");
    bench.check("param.show changed", 200, "http_policy                   varnish\n");
    bench.check("param.reset http_policy", 200, "");
    bench.check("param.show changed", 200, "");
}

#[test]
fn parameters_are_shown_and_set() {
    let bench = Bench::new(&["-r", "default_keep"]);
    bench.check("param.set default_ttl 3", 200, "");
    bench.check("param.show changed", 200, "default_ttl                   3.000 [seconds]\n");
    assert!(bench.ask("param.show default_ttl").1.starts_with("default_ttl\n        Value is: 3.000 [seconds]\n"));
    bench.check("param.reset default_ttl", 200, "");
    bench.check("param.show changed", 200, "");
    let refusal = "Must be greater or equal to 0.000\n\n(attempting to set param 'default_ttl' to '-1')";
    bench.check("param.set default_ttl -1", 106, refusal);
    bench.check("param.set default_keep 1", 107, "parameter \"default_keep\" is protected.");
    bench.check("param.set feature +http2", 200, "");
    bench.check("param.set feature -http2", 200, "");
    bench.check("param.set h2_max_frame_size 32k", 200, "");
    bench.check("param.reset h2_max_frame_size", 200, "");
    bench.check("param.set feature +esi_remove_bom", 200, "");
    bench.check("param.reset feature", 200, "");
    bench.check("param.set foo 1", 106, "Unknown parameter \"foo\".");
    bench.check("param.show a b", 105, "Too many parameters");
    bench.check("param.show -l -j", 106, "Unknown parameter \"-j\".");
    bench.check("param.set accept_filter on", 300, "parameter \"accept_filter\" is not available on this platform.");
    assert_eq!(bench.json("param.set -j default_ttl 5")[3]["value"], 5.0);
    assert_eq!(bench.json("param.show -j").as_array().unwrap().len(), 3 + surface::parameter::PARAMETERS.len());
}

#[test]
fn vcls_are_listed_with_their_labels() {
    let bench = Bench::new(&[]);
    bench.check("vcl.list", 200, "");
    bench.check("vcl.show", 300, "No active VCL");
    {
        let mut table = bench.manager.vcls.borrow_mut();
        let loaded = |labels: &[&str], text: &str| Loaded {
            program: Vec::new(),
            files: crate::vcl_files::VclFiles::default(),
            sources: vec![
                vcl_run::program::Source { name: "<vcl.inline>".to_owned(), text: text.to_owned() },
                vcl_run::program::Source { name: "<builtin>".to_owned(), text: "b\n".to_owned() },
            ],
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        table.add("boot", VclState::Auto, loaded(&[], "one"));
        table.add("v2", VclState::Auto, loaded(&[], "two"));
        table.set_label("l1", "boot");
        table.add("v4", VclState::Cold, loaded(&["l1"], "four"));
        table.set_active("v2");
    }
    let expected = "available   auto     warm         -    boot    <-    (1 label)\n\
                    active      auto     warm         -    v2\n\
                    available   label    warm         -    l1      ->    boot (1 return(vcl))\n\
                    available   cold     cold         -    v4\n";
    bench.check("vcl.list", 200, expected);
    bench.check("vcl.deps", 200, "boot\nv2\nl1     boot\nv4     l1\n");
    bench.check("vcl.show", 200, "two");
    bench.check("vcl.show l1", 200, "one");
    bench.check("vcl.show -v v4", 200, "// VCL.SHOW 0 4 <vcl.inline>\nfour\n// VCL.SHOW 1 2 <builtin>\nb\n\n");
    bench.check("vcl.show foo", 106, "No VCL named 'foo'");
    bench.check("vcl.show a b", 106, "Too many parameters: 'b'");
    let list = bench.json("vcl.list -j");
    assert_eq!(list[3]["labels"], 1);
    assert_eq!(list[5]["label"]["refs"], 1);
    assert_eq!(bench.json("vcl.deps -j")[6]["deps"][0], "l1");
    bench.check("vcl.use l1", 200, "VCL 'l1' now active");
    bench.check("vcl.use l1", 200, "");
    bench.check("vcl.state v4 auto", 200, "");
    bench.check("vcl.state v9 lukewarm", 106, "No VCL named v9 known\n");
    bench.check("vcl.state v4 lukewarm", 106, "State must be one of auto, cold or warm.");
    bench.check("vcl.use -x", 106, "Illegal character in VCL name ('-')");
    bench.check("vcl.label l1 é", 106, "Illegal character in VCL name (0xc3)");
    bench.check("vcl.discard v2", 200, "");
    bench.check("vcl.discard l1", 300, "Cannot discard active VCL program l1\n");
}

#[test]
fn a_vcl_that_cannot_be_loaded_changes_nothing() {
    let bench = Bench::new(&["-p", "max_vcl=0", "-p", "max_vcl_handling=1"]);
    let report = "Message from VCC-compiler:\nCannot read file '/nonexistent' (No such file or directory)\n\
                  Running VCC-compiler failed, exited with 2\nVCL compilation failed";
    bench.check("vcl.load a /nonexistent", 106, report);
    bench.check("vcl.load a b c", 106, "State must be one of auto, cold or warm.");
    bench.check("vcl.inline 1a x", 106, "Illegal character in VCL name ('1')");
    bench.ask("param.set max_vcl_handling 2");
    let refusal = "Too many (0) VCLs already loaded\n(See max_vcl and max_vcl_handling parameters)";
    bench.check("vcl.inline a x", 300, refusal);
    bench.check("vcl.list", 200, "");
}

#[test]
fn a_panic_is_kept_until_it_is_cleared() {
    let bench = Bench::new(&[]);
    *bench.manager.panic.borrow_mut() = Some("Panic at: now\nAssert \"x\"\n".to_owned());
    bench.check("panic.show", 200, "Panic at: now\nAssert \"x\"\n");
    assert_eq!(bench.json("panic.show -j")[3], "Panic at: now\nAssert \"x\"\n");
    bench.check("panic.clear -z", 200, "");
    bench.check("panic.show", 300, "Child has not panicked or panic has been cleared");
}

/// Writes a certificate with its key, and returns the file's name.
fn pem(folder: &TempDir, file: &str, names: &[&str]) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = rcgen::CertificateParams::new(names.clone()).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, names[0].clone());
    let certificate = parameters.self_signed(&key).unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, format!("{}{}", key.serialize_pem(), certificate.pem())).unwrap();
    path.display().to_string()
}

#[test]
fn certificates_are_staged_listed_committed_and_rolled_back() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (pem(&folder, "1", &["a.example", "b.example"]), pem(&folder, "2", &["c.example"]));
    let bench = Bench::new(&["-a", "web=127.0.0.1:0,https"]);
    bench.check("tls.cert.list", 200, "");
    bench.check(&format!("tls.cert.load {one}"), 200, "");
    bench.check(&format!("tls.cert.load second {two} -f web -d"), 200, "");
    let staged = "default\tcert0\tstaged\tCN=a.example\nweb\tsecond\tstaged\tCN=c.example\n";
    bench.check("tls.cert.list", 200, staged);
    bench.check("tls.cert.list -s", 200, staged);
    bench.check("tls.cert.reload", 300, "Certificates are staged: commit them or roll them back first");
    bench.check("tls.cert.commit", 200, "");
    bench.check("tls.cert.list", 200, &staged.replace("staged", "active"));
    bench.check("tls.cert.list -s", 200, "");
    bench.check("tls.cert.discard cert0", 200, "");
    bench.check("tls.cert.discard cert0", 300, "There is no certificate \"cert0\"");
    bench.check("tls.cert.list -s", 200, "default\tcert0\tdiscard\tCN=a.example\n");
    bench.check("tls.cert.rollback", 200, "");
    bench.check("tls.cert.list", 200, &staged.replace("staged", "active"));
    bench.check("tls.cert.discard cert0", 200, "");
    bench.check("tls.cert.commit", 200, "");
    bench.check("tls.cert.list", 200, "web\tsecond\tactive\tCN=c.example\n");
    let reply = bench.json("tls.cert.list -j");
    assert_eq!(reply[3]["id"], "second");
    assert_eq!(reply[3]["names"][0], "c.example");
    assert_eq!(reply[3]["default"], true);
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_when_it_is_loaded() {
    let folder = TempDir::new().unwrap();
    let one = pem(&folder, "1", &["a.example"]);
    let same = pem(&folder, "2", &["b.example", "a.example"]);
    let bench = Bench::new(&["-a", "web=127.0.0.1:0,https"]);
    bench.check("tls.cert.load /nonexistent", 300, "Cannot read /nonexistent: No such file or directory");
    bench.check(
        &format!("tls.cert.load {one} -k {same}"),
        300,
        &format!("{one} and {same}: key and certificate mismatch"),
    );
    bench.check(&format!("tls.cert.load {one} -f other"), 300, "There is no frontend \"other\"");
    bench.check(&format!("tls.cert.load {one} -c RC4"), 300, "Invalid cipher list");
    bench.check(&format!("tls.cert.load {one} -s RC4"), 300, "Invalid ciphersuites");
    bench.check(&format!("tls.cert.load {one} -p SSLv2"), 300, "unknown protocol 'SSLv2'");
    bench.check(&format!("tls.cert.load {one} -k"), 300, "Option -k needs a value");
    bench.check(&format!("tls.cert.load {one} -z"), 300, "Unknown option -z");
    bench.check(&format!("tls.cert.load a b {one}"), 300, "One file is needed, perhaps after an id");
    bench.check(&format!("tls.cert.load a/b {one}"), 300, "\"a/b\" is no id: letters, digits and _ - . : make one");
    bench.check("tls.cert.discard none", 300, "There is no certificate \"none\"");
    assert_eq!(bench.ask("tls.cert.list").1, "", "nothing of that is staged");
    bench.check(&format!("tls.cert.load x {one}"), 200, "");
    bench.check(&format!("tls.cert.load x {same}"), 300, "There is a certificate \"x\" already");
    bench.check(&format!("tls.cert.load y {same}"), 200, "");
    bench.check("tls.cert.rollback", 200, "");
    bench.check("param.set tls_err_dup_servername on", 200, "");
    bench.check(&format!("tls.cert.load x {one}"), 200, "");
    let text = "there is a certificate for a.example already, x (parameter tls_err_dup_servername)";
    bench.check(&format!("tls.cert.load y {same}"), 300, &format!("y ({same}): {text}"));
}

#[test]
fn a_reload_takes_all_files_or_none() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (pem(&folder, "1", &["a.example"]), pem(&folder, "2", &["b.example"]));
    let bench = Bench::new(&["-a", "127.0.0.1:0,https"]);
    bench.check(&format!("tls.cert.load {one}"), 200, "");
    bench.check(&format!("tls.cert.load {two}"), 200, "");
    bench.check("tls.cert.commit", 200, "");
    let listed = |first: &str, second: &str| {
        let body = format!("default\tcert0\tactive\tCN={first}\ndefault\tcert1\tactive\tCN={second}\n");
        bench.check("tls.cert.list", 200, &body);
    };
    pem(&folder, "1", &["new.example"]);
    std::fs::write(&two, "").unwrap();
    bench.check("tls.cert.reload", 300, &format!("{two}: the file is empty"));
    listed("a.example", "b.example");
    pem(&folder, "2", &["newer.example"]);
    bench.check("tls.cert.reload", 200, "");
    listed("new.example", "newer.example");
}

#[test]
fn without_a_listener_that_speaks_tls_there_is_nothing_to_do() {
    let bench = Bench::new(&["-a", "127.0.0.1:0"]);
    for command in ["load x", "commit", "discard x", "rollback", "list", "list -s", "list -j", "reload"] {
        bench.check(&format!("tls.cert.{command}"), 300, "TLS has not been configured");
    }
}

#[test]
fn certificates_of_the_command_line_are_there_from_the_start() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (pem(&folder, "1", &["a.example"]), pem(&folder, "2", &["b.example"]));
    let file = folder.path().join("tls.conf");
    let text = format!(
        "frontend = {{ host = \"127.0.0.1\" port = \"0\" name = \"web\" pem-file = \"{two}\" }}\n\
         pem-file = \"{one}\"\npem-file = {{ cert = \"{two}\" name = \"cert0\" }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let bench = Bench::new(&["-A", file.to_str().unwrap(), "-a", "127.0.0.1:0,https"]);
    let listed = "default\tcert1\tactive\tCN=a.example\ndefault\tcert0\tactive\tCN=b.example\nweb\tcert2\tactive\tCN=b.example\n";
    bench.check("tls.cert.list", 200, listed);
}

#[test]
fn the_active_vcl_can_be_rolled_back_along_its_history() {
    let bench = Bench::new(&[]);
    bench.check("vcl.history", 200, "");
    bench.check("vcl.rollback", 300, "No change of the active VCL is known");
    for name in ["a", "b", "c"] {
        assert_eq!(bench.ask(&format!("vcl.inline {name} \"vcl 4.1; backend default none;\"")).0, 200);
    }
    bench.check("vcl.use a", 200, "VCL 'a' now active");
    bench.check("vcl.rollback", 300, "No VCL was active before a");
    bench.check("vcl.use b", 200, "VCL 'b' now active");
    bench.check("vcl.use b", 200, "");
    bench.check("vcl.use c", 200, "VCL 'c' now active");
    bench.check("vcl.rollback 0", 106, "The number of changes to take back is 1 to 16");
    bench.check("vcl.rollback 17", 106, "The number of changes to take back is 1 to 16");
    bench.check("vcl.rollback x", 106, "The number of changes to take back is 1 to 16");
    bench.check("vcl.rollback 4", 300, "Only 3 changes of the active VCL are known, see vcl.history");
    bench.check("vcl.rollback 2", 200, "VCL 'a' now active");
    bench.check("vcl.rollback", 200, "VCL 'c' now active");
    bench.check("vcl.discard a", 200, "");
    bench.check("vcl.rollback", 300, "VCL a is no longer loaded");
    bench.check("vcl.state b cold", 200, "");
    bench.check("vcl.rollback 3", 300, "VCL 'b' is cold - set to auto or warm first");
    let json = bench.json("vcl.history -j");
    let changes: Vec<_> = json.as_array().unwrap()[3..].iter().collect();
    assert_eq!(changes.len(), 5);
    assert_eq!((&changes[0]["from"]["name"], &changes[0]["to"]["name"]), (&"a".into(), &"c".into()));
    assert_eq!((&changes[1]["why"], &changes[0]["who"]), (&"vcl.rollback 2".into(), &"test".into()));
    assert!(changes[4]["from"].is_null() && changes[4]["to"]["name"] == "a");
    let (_, text) = bench.ask("vcl.history");
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.starts_with("1 ") && text.contains("->") && text.contains("vcl.rollback 2"), "{text}");
}

#[test]
fn a_move_of_the_active_label_is_a_change_that_is_taken_back() {
    let bench = Bench::new(&[]);
    for name in ["a", "b"] {
        assert_eq!(bench.ask(&format!("vcl.inline {name} \"vcl 4.1; backend default none;\"")).0, 200);
    }
    bench.check("vcl.label live a", 200, "");
    bench.check("vcl.use live", 200, "VCL 'live' now active");
    bench.check("vcl.label live b", 200, "");
    let json = bench.json("vcl.history -j");
    assert_eq!((&json[3]["from"]["vcl"], &json[3]["to"]["vcl"]), (&"a".into(), &"b".into()));
    bench.check("vcl.rollback", 200, "VCL 'live(a)' now active");
    let list = bench.json("vcl.list -j");
    let live = list.as_array().unwrap().iter().find(|row| row["name"] == "live").unwrap();
    assert_eq!(live["label"]["name"], "a");
    bench.check("vcl.use b", 200, "VCL 'b' now active");
    bench.check("vcl.rollback", 200, "VCL 'live(a)' now active");
}
