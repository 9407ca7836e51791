//! Certificates while the daemon runs: effects of the CLI, SIGHUP and changed files on handshakes,
//! and the state that outlives a worker. The client is OpenSSL's.

use crate::daemon::{Daemon, copal, eventually, free_port, needs};
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A daemon with a TLS listener, and a folder for certificates.
struct Served {
    daemon: Daemon,
    folder: tempfile::TempDir,
    port: u16,
}

impl Served {
    /// Starts it, if OpenSSL is installed. In `arguments` `@PORT@` is the port of TLS and `@` the
    /// folder; `prepare` fills that first.
    fn start(arguments: &[&str], prepare: impl FnOnce(&Path)) -> Option<Served> {
        needs("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let port = free_port();
        for conf in std::fs::read_dir(folder.path()).unwrap().flatten() {
            if conf.path().extension().is_some_and(|extension| extension == "conf") {
                let text = std::fs::read_to_string(conf.path()).unwrap();
                let text = text.replace("@PORT@", &port.to_string()).replace('@', folder.path().to_str().unwrap());
                std::fs::write(conf.path(), text).unwrap();
            }
        }
        let of_folder =
            |text: &&str| text.replace("@PORT@", &port.to_string()).replace('@', folder.path().to_str().unwrap());
        let arguments: Vec<String> = arguments.iter().map(of_folder).collect();
        let mut all = vec!["-b", "none"];
        all.extend(arguments.iter().map(String::as_str));
        Some(Served { daemon: Daemon::start(&all), folder, port })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    #[track_caller]
    fn cli(&self, words: &[&str]) -> String {
        let (is_good, text) = self.daemon.cli(words);
        assert!(is_good, "{words:?}: {text}");
        text
    }

    /// The subject of the certificate that a client gets; `None` = the handshake failed.
    fn subject(&self, host: Option<&str>) -> Option<String> {
        let output = self.client(host, &[]).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("subject=")).map(|subject| subject.replace(' ', ""))
    }

    fn client(&self, host: Option<&str>, more: &[&str]) -> Command {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &format!("127.0.0.1:{}", self.port)]);
        match host {
            Some(host) => command.args(["-servername", host]),
            None => command.arg("-noservername"),
        };
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn said(&self, what: &str) {
        eventually(what, || self.daemon.said().contains(what).then_some(()));
    }
}

/// Makes a certificate `NAME.crt` with its key `NAME.key`, and both in `NAME.pem`.
pub fn certificate(folder: &Path, file: &str, host: &str) {
    let path = |end: &str| folder.join(format!("{file}.{end}"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-subj", &format!("/CN={host}"), "-addext", &format!("subjectAltName=DNS:{host}")]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(path("key")).arg("-out").arg(path("crt"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let both = [std::fs::read(path("key")).unwrap(), std::fs::read(path("crt")).unwrap()].concat();
    std::fs::write(path("pem"), both).unwrap();
    for end in ["key", "pem"] {
        std::fs::set_permissions(path(end), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// A connection over TLS that stays open.
struct Kept {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Kept {
    fn open(served: &Served, host: &str) -> Kept {
        let mut child = served.client(Some(host), &["-quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut kept = Kept { child, answers };
        assert!(kept.ask().starts_with("HTTP/1.1 503"));
        kept
    }

    /// Sends a request and returns the first line of its answer.
    fn ask(&mut self) -> String {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").unwrap();
        let (mut first, mut length) = (String::new(), 0);
        self.answers.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            match line.trim_end().to_ascii_lowercase().strip_prefix("content-length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        self.answers.read_exact(&mut vec![0; length]).unwrap();
        first
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate for a.example that was valid in January 2020, with its key: Debian's OpenSSL
/// cannot make one in the past without a CA.
const EXPIRED: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq+XsociEsiZl8hl4
u6gWLKXx44a/hCs0o1n08pK7DpuhRANCAASTiW4lon577qkpQPOnpePC64nYlHxk
V7l4jg+Ag4Z6+jBKNAp/pT8n/sxFZxxzHo4D9u8soirk57ghRKK+q0Y1
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBTDCB9KADAgECAgECMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWEuZXhhbXBs
ZTAeFw0yMDAxMDEwMDAwMDBaFw0yMDAyMDEwMDAwMDBaMBQxEjAQBgNVBAMMCWEu
ZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJOJbiWifnvuqSlA86el
48LridiUfGRXuXiOD4CDhnr6MEo0Cn+lPyf+zEVnHHMejgP27yyiKuTnuCFEor6r
RjWjNzA1MBQGA1UdEQQNMAuCCWEuZXhhbXBsZTAdBgNVHQ4EFgQUua3+ZFqyEYbZ
p59Hbt37wxrVY58wCgYIKoZIzj0EAwIDRwAwRAIgbl2KXmLS44xGVUzaEGqgBpn4
zJK5aSR0nPhb8ci8AZUCIB0oe4kCYqJ/JT9k+41vPmmPc2uQMbqTTgoOBAJ3hZZW
-----END CERTIFICATE-----
";

const SUBJECT_A: Option<&str> = Some("CN=a.example");
const SUBJECT_B: Option<&str> = Some("CN=b.example");

#[test]
fn certificates_are_loaded_and_discarded_under_connections_that_go_on() {
    let Some(served) = Served::start(&["-a", "tls=127.0.0.1:@PORT@,https", "-p", "timeout_idle=60"], |folder| {
        certificate(folder, "a", "a.example");
        certificate(folder, "b", "b.example");
    }) else {
        return;
    };
    served.said("listener tls speaks TLS and has no certificate");
    assert_eq!(served.subject(Some("a.example")), None);
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    assert_eq!(served.subject(Some("a.example")), None, "it is staged only");
    served.cli(&["tls.cert.commit"]);
    assert_eq!(served.subject(Some("a.example")).as_deref(), SUBJECT_A);
    let mut kept = Kept::open(&served, "a.example");
    served.cli(&["tls.cert.load", "b", &served.path("b.crt"), "-k", &served.path("b.key")]);
    served.cli(&["tls.cert.discard", "cert0"]);
    served.cli(&["tls.cert.commit"]);
    assert_eq!(served.subject(Some("a.example")).as_deref(), SUBJECT_B, "it is the default now");
    assert!(kept.ask().starts_with("HTTP/1.1 503"), "the connection goes on");
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    served.cli(&["tls.cert.rollback"]);
    served.cli(&["tls.cert.commit"]);
    assert!(!served.cli(&["tls.cert.list"]).contains("a.example"));
    let (is_good, text) = served.daemon.cli(&["tls.cert.load", &served.path("a.crt"), "-k", &served.path("b.key")]);
    assert!(!is_good && text.contains("mismatch") && text.contains("a.crt"), "{text}");
    assert_eq!(served.subject(Some("b.example")).as_deref(), SUBJECT_B);
}

/// A successor, which is not our child; killed when dropped.
struct Successor(i32);

impl Drop for Successor {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

#[test]
fn served_and_staged_certificates_survive_an_upgrade_without_their_files() {
    let Some(served) = Served::start(&["-a", "tls=127.0.0.1:@PORT@,https"], |folder| {
        certificate(folder, "a", "a.example");
        certificate(folder, "b", "b.example");
    }) else {
        return;
    };
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    served.cli(&["tls.cert.commit"]);
    served.cli(&["tls.cert.load", "b", &served.path("b.crt"), "-k", &served.path("b.key")]);
    served.cli(&["tls.cert.discard", "cert0"]);
    let session = served.path("session");
    let out = ["-tls1_2", "-sess_out", &session];
    let first = served.client(Some("a.example"), &out).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&first.stdout).contains("New, TLSv1.2"));
    for file in ["a.pem", "a.crt", "a.key", "b.pem", "b.crt", "b.key"] {
        std::fs::remove_file(served.path(file)).unwrap();
    }
    let output = served.daemon.applet("upgrade", &[]);
    assert!(output.status.success(), "{}", served.daemon.said());
    let pid = std::fs::read_to_string(served.daemon.folder.path().join("pid")).unwrap();
    let _successor = Successor(pid.trim().parse().unwrap());
    assert_eq!(served.subject(Some("a.example")).as_deref(), SUBJECT_A);
    let again =
        served.client(Some("a.example"), &["-tls1_2", "-sess_in", &session]).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("Reused, TLSv1.2"), "the keys of tickets are the same");
    served.cli(&["tls.cert.commit"]);
    assert_eq!(served.subject(Some("a.example")).as_deref(), SUBJECT_B);
    assert!(!served.cli(&["tls.cert.list"]).contains("a.example"));
}

#[test]
fn a_frontend_has_its_own_default_and_can_refuse_names() {
    let conf = "frontend = { host = \"127.0.0.1\" port = \"@PORT@\" sni-nomatch-abort = on }\n\
                pem-file = \"@/a.pem\"\npem-file = { cert = \"@/b.crt\" private-key = \"@/b.key\" }\n";
    let Some(served) = Served::start(&["-A", "@/tls.conf"], |folder| {
        certificate(folder, "a", "a.example");
        certificate(folder, "b", "*.b.example");
        std::fs::write(folder.join("tls.conf"), conf).unwrap();
    }) else {
        return;
    };
    assert_eq!(served.subject(Some("A.Example")).as_deref(), SUBJECT_A);
    assert_eq!(served.subject(Some("www.b.example")).as_deref(), Some("CN=*.b.example"));
    assert_eq!(served.subject(None).as_deref(), Some("CN=*.b.example"), "the last one is the default");
    assert_eq!(served.subject(Some("c.example")), None);
}

#[test]
fn clients_show_certificates_where_a_frontend_asks_for_them() {
    let conf = "frontend = { host = \"127.0.0.1\" port = \"@PORT@\" client-verify = required }\n\
                pem-file = \"@/a.pem\"\nclient-verify-ca = \"@/b.crt\"\n";
    let Some(served) = Served::start(&["-A", "@/tls.conf"], |folder| {
        for name in ["a", "b", "c"] {
            certificate(folder, name, &format!("{name}.example"));
        }
        std::fs::write(folder.join("tls.conf"), conf).unwrap();
    }) else {
        return;
    };
    let answer = |more: &[&str]| -> String {
        let mut child = served.client(None, &[&["-quiet"], more].concat()).stdin(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.as_mut().unwrap().write_all(b"GET / HTTP/1.0\r\n\r\n");
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        child.wait().unwrap();
        String::from_utf8_lossy(&text).into_owned()
    };
    let with = |name: &str| {
        answer(&["-cert", &served.path(&format!("{name}.crt")), "-key", &served.path(&format!("{name}.key"))])
    };
    assert!(with("b").starts_with("HTTP/1.1 503"));
    assert_eq!(with("c"), "", "it is nobody's we know");
    assert_eq!(answer(&[]), "", "there is none");
}

#[test]
fn files_that_change_are_loaded_by_themselves_and_a_half_written_pair_breaks_nothing() {
    let conf = "frontend = { host = \"127.0.0.1\" port = \"@PORT@\" pem-file = { cert = \"@/a.crt\" private-key = \"@/a.key\" } }\n";
    let Some(served) = Served::start(&["-A", "@/tls.conf", "-p", "tls_file_poll=0.05"], |folder| {
        certificate(folder, "a", "a.example");
        certificate(folder, "b", "b.example");
        std::fs::write(folder.join("tls.conf"), conf).unwrap();
    }) else {
        return;
    };
    let replace =
        |end: &str| std::fs::rename(served.path(&format!("b.{end}")), served.path(&format!("a.{end}"))).unwrap();
    replace("crt");
    served.said("certificate cert0 has changed and cannot be used");
    assert_eq!(served.subject(None).as_deref(), SUBJECT_A);
    replace("key");
    served.said("has changed and is loaded");
    assert_eq!(served.subject(None).as_deref(), SUBJECT_B);
    let complaints = served.daemon.said().matches("cannot be used").count();
    assert_eq!(complaints, 1, "one message, not one every poll");
}

#[test]
fn a_hang_up_loads_all_files_or_none() {
    let Some(served) = Served::start(&["-a", "127.0.0.1:@PORT@,https", "-p", "tls_file_poll=0"], |folder| {
        certificate(folder, "a", "a.example");
    }) else {
        return;
    };
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    served.cli(&["tls.cert.commit"]);
    std::fs::write(served.path("a.pem"), "").unwrap();
    served.daemon.process.signal(Signal::SIGHUP);
    served.said("Manager got SIGHUP, and nothing is changed");
    assert_eq!(served.subject(None).as_deref(), SUBJECT_A);
    certificate(served.folder.path(), "a", "b.example");
    served.daemon.process.signal(Signal::SIGHUP);
    served.said("1 certificates are read again");
    assert_eq!(served.subject(None).as_deref(), SUBJECT_B);
}

#[test]
fn certificates_and_tickets_outlive_the_worker() {
    let Some(served) = Served::start(&["-a", "127.0.0.1:@PORT@,https"], |folder| {
        certificate(folder, "a", "a.example");
    }) else {
        return;
    };
    served.cli(&["stop"]);
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    served.cli(&["tls.cert.commit"]);
    std::fs::remove_file(served.path("a.pem")).unwrap();
    served.cli(&["start"]);
    let session = served.path("session");
    let output = served.client(Some("a.example"), &["-tls1_2", "-sess_out", &session]).stdin(Stdio::null()).output();
    assert!(String::from_utf8_lossy(&output.unwrap().stdout).contains("New, TLSv1.2"));
    let before = served.daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(before), Signal::SIGKILL).unwrap();
    eventually("another worker runs", || (served.daemon.worker() != before).then_some(()));
    let again = served.client(Some("a.example"), &["-tls1_2", "-sess_in", &session]).stdin(Stdio::null()).output();
    let text = String::from_utf8_lossy(&again.unwrap().stdout).into_owned();
    assert!(text.contains("Reused, TLSv1.2"), "{text}");
    assert_eq!(served.subject(None).as_deref(), SUBJECT_A);
}

#[test]
fn no_file_descriptor_argument_or_variable_of_a_worker_leads_to_a_key() {
    let Some(served) = Served::start(&["-a", "127.0.0.1:@PORT@,https"], |folder| {
        certificate(folder, "a", "a.example");
    }) else {
        return;
    };
    served.cli(&["tls.cert.load", &served.path("a.pem")]);
    served.cli(&["tls.cert.commit"]);
    assert_eq!(served.subject(None).as_deref(), SUBJECT_A);
    let process = PathBuf::from(format!("/proc/{}", served.daemon.worker()));
    for descriptor in std::fs::read_dir(process.join("fd")).unwrap().flatten() {
        let Ok(target) = std::fs::read_link(descriptor.path()) else { continue };
        assert!(!target.starts_with(served.folder.path()), "{}", target.display());
    }
    let shown = served.folder.path().display().to_string();
    let key = std::fs::read_to_string(served.path("a.key")).unwrap();
    let secret = key.lines().nth(1).unwrap();
    for name in ["cmdline", "environ"] {
        let text = String::from_utf8_lossy(&std::fs::read(process.join(name)).unwrap()).into_owned();
        assert!(!text.contains(&shown) && !text.contains(secret), "{name}");
    }
    let mut folders = vec![PathBuf::from(served.daemon.run())];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                let bytes = std::fs::read(&path).unwrap_or_default();
                assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{}", path.display());
            }
        }
    }
    assert!(!served.daemon.said().contains(secret));
}

#[test]
fn a_certificate_at_fault_keeps_the_daemon_from_starting_and_an_expired_one_does_not() {
    if needs("openssl").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "a", "a.example");
    certificate(folder.path(), "b", "b.example");
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let refused = |pem_file: &str| -> String {
        let conf = path("tls.conf");
        std::fs::write(&conf, format!("frontend = \"127.0.0.1:0\"\npem-file = {pem_file}\n")).unwrap();
        let mut command = Command::new(copal());
        command.args([
            "daemon",
            "-F",
            "-j",
            "none",
            "-T",
            "none",
            "-b",
            "none",
            "-a",
            "127.0.0.1:0",
            "-A",
            &conf,
            "-n",
        ]);
        let output = command.arg(folder.path().join("run")).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = refused(&format!("\"{}\"", path("none.pem")));
    assert!(
        missing.contains(&format!("Error: Cannot read {}: No such file or directory", path("none.pem"))),
        "{missing}"
    );
    let empty = refused(&format!("\"{}\"", path("empty.pem")));
    assert!(empty.contains(&format!("{}: the file is empty", path("empty.pem"))), "{empty}");
    let keyless = refused(&format!("\"{}\"", path("a.crt")));
    assert!(keyless.contains("no private key in it"), "{keyless}");
    let mixed = refused(&format!("{{ cert = \"{}\" private-key = \"{}\" }}", path("a.crt"), path("b.key")));
    assert!(mixed.contains("mismatch"), "{mixed}");
    let unknown = refused("\"x\"\nfoo = bar");
    assert!(unknown.contains("line 3: unknown key 'foo'\n\tfoo = bar"), "{unknown}");
    let conf = "frontend = { host = \"127.0.0.1\" port = \"@PORT@\" }\npem-file = \"@/old.pem\"\n";
    let served = Served::start(&["-A", "@/tls.conf"], |folder| {
        std::fs::write(folder.join("old.pem"), EXPIRED).unwrap();
        std::fs::write(folder.join("tls.conf"), conf).unwrap();
    });
    let served = served.unwrap();
    assert_eq!(served.subject(None).as_deref(), SUBJECT_A);
    let said = served.daemon.said();
    assert!(said.contains("old.pem) expired on Sat, 01 Feb 2020 00:00:00 GMT"), "{said}");
    assert!(said.contains("everybody on this machine can read the private key in "), "{said}");
}
