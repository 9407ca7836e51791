//! Orders that Pebble fulfils, sooner or later.

use super::client::Connection;
use super::*;

/// Pebble, with a DNS server that resolves every name to this machine.
struct Pebble {
    _servers: [Process; 2],
    folder: tempfile::TempDir,
    identity: Identity,
    port: u16,
}

/// The program, from the variable COPAL_PEBBLE, the path or Go's folder; with the DNS server next
/// to it.
fn programs() -> Option<(PathBuf, PathBuf)> {
    let named = std::env::var_os("COPAL_PEBBLE").map(PathBuf::from);
    let path = std::env::var("PATH").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_default() + "/go/bin";
    let mut places =
        named.into_iter().chain(path.split(':').chain([home.as_str()]).map(|at| Path::new(at).join("pebble")));
    let found = places.find_map(|pebble| {
        let dns = pebble.with_file_name("pebble-challtestsrv");
        (pebble.is_file() && dns.is_file()).then_some((pebble, dns))
    });
    if found.is_none() {
        println!("skipped: needs pebble");
    }
    found
}

impl Pebble {
    /// Starts it; it validates names at these ports.
    fn start(http: u16, tls: u16, environment: &[(&str, &str)]) -> Option<Pebble> {
        let (program, dns) = programs()?;
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::make(folder.path());
        let (port, management, dns_port, dns_management) = (free_port(), free_port(), free_port(), free_port());
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": folder.path().join("server.pem"),
            "privateKey": folder.path().join("server.key"),
            "httpPort": http,
            "tlsPort": tls,
            "retryAfter": {"authz": 1, "order": 1},
            "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "-", "validityPeriod": 7_776_000}},
        }});
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        let log = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let none = ["-doh", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
        let dns = Command::new(dns)
            .args(none)
            .args(["-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .args(["-management", &format!("127.0.0.1:{dns_management}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log("dns"))
            .spawn()
            .unwrap();
        let pebble = Command::new(program)
            .arg("-config")
            .arg(folder.path().join("config.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log("pebble"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let servers = [Process(dns), Process(pebble)];
        eventually("Pebble accepts", || TcpStream::connect(("127.0.0.1", port)).ok());
        eventually("its DNS server accepts", || TcpStream::connect(("127.0.0.1", dns_port)).ok());
        Some(Pebble { _servers: servers, folder, identity, port })
    }

    fn options(&self) -> Vec<String> {
        options(self.port, &self.identity, &self.state())
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("pebble")).unwrap()
    }
}

#[test]
fn a_certificate_is_obtained_over_http_and_not_ordered_again_after_a_start() {
    let (http, tls) = (free_port(), free_port());
    let Some(pebble) = Pebble::start(http, tls, &[]) else { return };
    let (plain, secure) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{tls},https,acme=a.example+b.example"));
    let listeners = ["-a", &plain, "-a", &secure];
    let daemon = start(&pebble.options(), &listeners);
    let serial = certificate_of(&daemon, "");
    let row = listed(&daemon);
    assert_eq!((&row["names"][1], &row["error"]), (&"b.example".into(), &serde_json::Value::Null));
    assert!(seconds_until_next(&row) > 50.0 * 86_400.0 && seconds_until_next(&row) < 70.0 * 86_400.0, "{row}");
    let connection = Connection::open(tls, "b.example").unwrap();
    let log = daemon.applet("log", &["-d", "-g", "request", "-q", "Witness eq 'why certificate-challenge'"]);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.contains("/.well-known/acme-challenge/"), "{log}");
    assert!(times(&daemon.said(), "ACME: ordering") >= 1, "{}", daemon.said());
    drop(daemon);
    let daemon = start(&pebble.options(), &listeners);
    assert_eq!(certificate_of(&daemon, ""), serial);
    assert_eq!(Connection::open(tls, "a.example").unwrap().certificate(), connection.certificate());
    assert_eq!(times(&daemon.said(), "ACME: ordering"), 0, "{}", daemon.said());
    assert_eq!(times(&pebble.said(), "Issued certificate"), 1);
}

#[test]
fn a_certificate_is_obtained_in_a_handshake() {
    let tls = free_port();
    let Some(pebble) = Pebble::start(free_port(), tls, &[]) else { return };
    let secure = format!("127.0.0.1:{tls},https,acme=a.example");
    let daemon = start(&pebble.options(), &["-o", "acme_challenge=tls-alpn-01", "-a", &secure]);
    certificate_of(&daemon, "");
    assert!(Connection::open(tls, "a.example").is_ok());
    assert!(pebble.said().contains("tls-alpn-01") || daemon.said().contains("by tls-alpn-01"), "{}", daemon.said());
}

#[test]
fn where_one_way_is_closed_the_other_is_taken() {
    let (closed, tls) = (free_port(), free_port());
    let Some(pebble) = Pebble::start(closed, tls, &[]) else { return };
    let secure = format!("127.0.0.1:{tls},https,acme=a.example");
    let daemon = start(&pebble.options(), &["-a", &secure]);
    certificate_of(&daemon, "");
    let said = daemon.said();
    assert!(said.contains("a.example by http-01: connection") && said.contains("by tls-alpn-01"), "{said}");
    // The challenge type that worked comes first from now on.
    let serial = listed(&daemon)["serial"].as_str().unwrap().to_owned();
    assert!(daemon.cli(&["acme.renew"]).0);
    certificate_of(&daemon, &serial);
    assert_eq!(times(&daemon.said(), "from localhost"), times(&said, "from localhost") + 1, "{}", daemon.said());
}

#[test]
fn renewal_disturbs_no_client() {
    let (http, tls) = (free_port(), free_port());
    let Some(pebble) = Pebble::start(http, tls, &[]) else { return };
    let (plain, secure) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{tls},https,acme=a.example"));
    let daemon = start(&pebble.options(), &["-a", &plain, "-a", &secure]);
    let serial = certificate_of(&daemon, "");
    let mut old = Connection::open(tls, "a.example").unwrap();
    assert_eq!(old.get(), Ok(503));
    let (is_over, shaken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load = {
        let (is_over, shaken) = (Arc::clone(&is_over), Arc::clone(&shaken));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let mut connection = Connection::open(tls, "a.example")?;
                connection.get()?;
                shaken.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), String>(())
        })
    };
    assert!(daemon.cli(&["acme.renew", "a.example"]).0);
    let renewed = certificate_of(&daemon, &serial);
    let before = shaken.load(Ordering::Relaxed);
    eventually("handshakes with the new one", || (shaken.load(Ordering::Relaxed) > before + 2).then_some(()));
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(load.join().unwrap(), Ok(()));
    assert_eq!(old.get(), Ok(503), "a connection from before goes on");
    assert_ne!(Connection::open(tls, "a.example").unwrap().certificate(), old.certificate());
    assert_ne!(renewed, serial);
}

#[test]
fn numbers_that_the_authority_takes_for_old_ones_are_asked_for_again() {
    let (http, tls) = (free_port(), free_port());
    let Some(pebble) = Pebble::start(http, tls, &[("PEBBLE_WFE_NONCEREJECT", "25")]) else { return };
    let (plain, secure) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{tls},https,acme=a.example"));
    let daemon = start(&pebble.options(), &["-a", &plain, "-a", &secure]);
    certificate_of(&daemon, "");
}

#[test]
fn a_worker_that_dies_in_the_middle_of_an_order_costs_nothing() {
    let (http, tls) = (free_port(), free_port());
    let Some(pebble) = Pebble::start(http, tls, &[]) else { return };
    let (plain, secure) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{tls},https,acme=a.example"));
    let daemon = start(&pebble.options(), &["-a", &plain, "-a", &secure]);
    let challenges = pebble.state().join(format!("localhost-{}/challenges", pebble.port));
    eventually("a challenge", || std::fs::read_dir(&challenges).ok()?.flatten().next());
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), nix::sys::signal::Signal::SIGKILL).unwrap();
    certificate_of(&daemon, "");
    assert_ne!(daemon.worker(), worker);
    assert!(!daemon.said().contains("next try at"), "{}", daemon.said());
    assert!(std::fs::read_dir(&challenges).unwrap().next().is_none(), "nothing is left to be answered");
}

#[test]
fn of_two_servers_that_share_a_folder_one_orders_and_the_other_may_be_asked() {
    let (http, tls, other_tls) = (free_port(), free_port(), free_port());
    let Some(pebble) = Pebble::start(http, tls, &[]) else { return };
    // A redirect to https does not prevent a challenge.
    let plain = format!("127.0.0.1:{http},redirect=https");
    let secure = format!("127.0.0.1:{tls},https,acme=a.example");
    let reached = start(&pebble.options(), &["-a", &plain, "-a", &secure]);
    let first = certificate_of(&reached, "");
    let secure = format!("127.0.0.1:{other_tls},https,acme=a.example");
    let other = start(&pebble.options(), &["-o", "acme_challenge=http-01", "-a", &secure]);
    assert_eq!(certificate_of(&other, ""), first, "what is there is taken over");
    assert_eq!(times(&other.said(), "ACME: ordering"), 0);
    // Pebble validates the other server's order at the first one.
    assert!(other.cli(&["acme.renew"]).0);
    let renewed = certificate_of(&other, &first);
    assert_eq!(certificate_of(&reached, &first), renewed);
    assert_eq!(times(&reached.said(), "ACME: ordering"), times(&other.said(), "ACME: ordering"), "one order each");
    assert_eq!(times(&other.said(), "ACME: ordering"), 1);
    let served = |port: u16| Connection::open(port, "a.example").unwrap().certificate();
    assert_eq!(served(tls), served(other_tls));
}
