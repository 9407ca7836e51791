//! `copal observe` reads a real daemon: its numbers are those of varnishstat, it follows restarts,
//! and Prometheus accepts its text.

use crate::daemon::{Answer, Daemon, Origin, Process, copal, eventually, exchange, needs, ok};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

const VCL: &str = r#"vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "@PORT@"; }
backend dead { .host = "127.0.0.1"; .port = "1"; }
sub vcl_recv {
    if (req.url ~ "^/pass") { return (pass); }
    if (req.url ~ "^/synth") { return (synth(700, "Made up")); }
    if (req.url ~ "^/dead") { set req.backend_hint = dead; return (pass); }
}"#;

/// A running `copal observe`, and the port that it serves on.
struct Observe {
    port: u16,
    _process: Process,
}

impl Observe {
    fn start(work_directory: &str) -> Observe {
        let mut command = Command::new(copal());
        command.args(["observe", "-n", work_directory, "--metrics", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let port = port_in(&line).unwrap_or_else(|| panic!("no address in: {line}"));
        Observe { port, _process: Process(child) }
    }
}

/// The port in `http://127.0.0.1:PORT/metrics`.
fn port_in(text: &str) -> Option<u16> {
    text.split("http://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()
}

fn get(port: u16, path: &str) -> Answer {
    Answer::parse(&exchange(port, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()))
}

/// The text of a scrape.
fn scrape(port: u16, query: &str) -> String {
    let answer = get(port, &format!("/metrics{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    String::from_utf8(answer.body).unwrap()
}

/// The series of a scrape with their values.
fn series(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (series.to_owned(), value.parse::<f64>().unwrap_or_else(|_| panic!("{line}")) as u64)
    });
    pairs.collect()
}

/// As [`series`], with histograms.
fn measured(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (series.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    });
    pairs.collect()
}

/// All counters, as varnishstat prints them.
fn counters(daemon: &Daemon) -> BTreeMap<String, u64> {
    let text = String::from_utf8(daemon.applet("stat", &["-1"]).stdout).unwrap();
    let pairs = text.lines().map(|line| {
        let mut words = line.split_whitespace();
        (words.next().unwrap().to_owned(), words.next().unwrap().parse().unwrap())
    });
    pairs.collect()
}

/// Counters that are read by varnishstat and served under the same name or another one.
const SAME: &[(&str, &str)] = &[
    ("MAIN.client_req", "copal_http_requests_total"),
    ("MAIN.cache_hit", "copal_cache_lookups_total{result=\"hit\"}"),
    ("MAIN.cache_miss", "copal_cache_lookups_total{result=\"miss\"}"),
    ("MAIN.s_synth", "copal_http_synthetic_responses_total"),
    ("MAIN.s_pass", "copal_http_passes_total"),
    ("MAIN.s_req_hdrbytes", "copal_http_request_bytes_total{part=\"head\"}"),
    ("MAIN.s_resp_bodybytes", "copal_http_response_bytes_total{part=\"body\"}"),
    ("MAIN.sess_conn", "copal_http_connections_total"),
    ("MAIN.n_object", "copal_cache_objects"),
    ("MAIN.fetch_failed", "copal_backend_fetch_failures_total"),
    ("MAIN.bans", "copal_bans"),
    ("SMA.s0.g_bytes", "copal_cache_bytes{storage=\"s0\"}"),
    ("VBE.boot.origin.req", "copal_backend_requests_total{vcl=\"boot\",backend=\"origin\"}"),
    ("VBE.boot.origin.healthy", "copal_backend_up{vcl=\"boot\",backend=\"origin\"}"),
    (
        "VBE.boot.dead.fail_econnrefused",
        "copal_backend_failures_total{vcl=\"boot\",backend=\"dead\",kind=\"ECONNREFUSED\"}",
    ),
    ("LCK.ban.locks", "copal_varnish_lck_locks_total{lock=\"ban\"}"),
    ("MEMPOOL.req0.allocs", "copal_varnish_mempool_allocs_total{pool=\"req0\"}"),
];

#[test]
fn numbers_are_those_of_varnishstat() {
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::with_vcl(VCL, origin.port, &[]);
    for path in ["/a", "/a", "/a", "/b", "/pass/1", "/synth", "/dead"] {
        daemon.get(path);
    }
    daemon.counter_reaching("MAIN.client_req", 7);
    let observe = Observe::start(&daemon.run());
    // Read before and after: a counter with the same value twice had it in between.
    let (before, text, after) = eventually("counters at rest", || {
        let (before, text, after) = (counters(&daemon), scrape(observe.port, ""), counters(&daemon));
        let is_at_rest = |name: &&str| before.contains_key(*name) && before.get(*name) == after.get(*name);
        SAME.iter().map(|(name, _)| name).all(is_at_rest).then_some((before, text, after))
    });
    let series = series(&text);
    for (counter, name) in SAME {
        assert_eq!(series.get(*name), before.get(*counter), "{counter} {name}\n{text}");
    }
    assert_eq!(series["copal_http_requests_total"], 7);
    assert_eq!(series["copal_cache_lookups_total{result=\"hit\"}"], 2);
    assert_eq!(series["copal_backend_requests_total{vcl=\"boot\",backend=\"origin\"}"], 3);
    // All others by their own names.
    let mut compared = 0;
    for (name, value) in before.iter().filter(|(name, value)| after.get(*name) == Some(value)) {
        let Some(element) = name.strip_prefix("MAIN.") else { continue };
        let name = format!("copal_varnish_main_{element}");
        let found = series.get(&name).or_else(|| series.get(&format!("{name}_total")));
        if let Some(found) = found {
            assert_eq!(found, value, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
    assert_eq!((series["copal_worker_up"], series["copal_manager_up"], series["copal_metrics_truncated"]), (1, 1, 0));
}

/// The sum of all series that begin so.
fn sum_of(series: &BTreeMap<String, f64>, start: &str) -> f64 {
    series.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, value)| value).sum()
}

#[test]
fn histograms_count_each_request_once_by_result() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=60\r\n", "hello"));
    let daemon = Daemon::with_vcl(VCL, origin.port, &[]);
    for path in ["/a", "/a", "/a", "/b", "/pass/1", "/synth", "/dead"] {
        daemon.get(path);
    }
    exchange(daemon.port, b"NOT HTTP\r\n\r\n");
    let observe = Observe::start(&daemon.run());
    let text = eventually("all requests are counted", || {
        let text = scrape(observe.port, "");
        let count = sum_of(&measured(&text), "copal_http_request_duration_seconds_count");
        (count == 8.0).then_some(text)
    });
    let series = measured(&text);
    for (result, status, expected) in [
        ("hit", "2xx", 2.0),
        ("miss", "2xx", 2.0),
        ("pass", "2xx", 1.0),
        ("pass", "5xx", 1.0),
        ("synth", "other", 1.0),
        ("error", "4xx", 1.0),
    ] {
        let labels = format!("listener=\"a0\",protocol=\"h1\",result=\"{result}\",status=\"{status}\"");
        let count = series.get(&format!("copal_http_request_duration_seconds_count{{{labels}}}"));
        assert_eq!(count, Some(&expected), "{labels}\n{text}");
        let last = series.get(&format!("copal_http_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}}"));
        assert_eq!(last, count, "{labels}");
    }
    assert_eq!(series["copal_http_response_size_bytes_sum{result=\"hit\"}"], 10.0);
    let backend = "{vcl=\"boot\",backend=\"origin\",status=\"2xx\"}";
    assert_eq!(series[&format!("copal_backend_first_byte_seconds_count{backend}")], 3.0);
    for (reason, expected) in [("hit", 2.0), ("miss-absent", 2.0), ("pass", 2.0), ("connect-refused", 1.0)] {
        assert_eq!(series[&format!("copal_http_reasons_total{{reason=\"{reason}\"}}")], expected, "{text}");
    }
    assert_eq!(series["copal_vcl_active{vcl=\"boot\"}"], 1.0);
    assert_eq!(series["copal_vcl_last_load_success"], 1.0);
    assert!(!daemon.cli(&["vcl.inline", "bad", "\"vcl 4.1;\""]).0);
    eventually("the failure is visible", || {
        let series = measured(&scrape(observe.port, "?scope=vcl"));
        let failed = series["copal_vcl_loads_total{result=\"failed\"}"];
        (failed == 1.0 && series["copal_vcl_last_load_success"] == 0.0).then_some(())
    });
    // Only what was asked for.
    let text = scrape(observe.port, "?metrics=copal_http_re*,-copal_http_reasons_total");
    assert!(text.contains("copal_http_requests_total 7") && !text.contains("reasons"), "{text}");
    assert!(text.lines().all(|line| line.contains("copal_http_re")), "{text}");
}

#[test]
fn exemplar_names_a_transaction_that_the_log_has() {
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let vxid = daemon.get("/a").header("X-Varnish").unwrap().to_owned();
    let observe = Observe::start(&daemon.run());
    let request = "GET /metrics?metrics=copal_http_request_duration_seconds HTTP/1.1\r\nHost: x\r\n\
                   Accept: application/openmetrics-text\r\n\r\n";
    eventually("the exemplar is served", || {
        let answer = Answer::parse(&exchange(observe.port, request.as_bytes()));
        let text = String::from_utf8(answer.body).unwrap();
        text.contains(&format!(" 1 # {{vxid=\"{vxid}\"}} 0.")).then_some(())
    });
}

#[test]
fn stock_tools_skip_histograms_and_show_the_reasons() {
    let Some(varnishstat) = needs("varnishstat") else { return };
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &[]);
    daemon.get("/a");
    eventually("the stock tool shows the miss", || {
        let output = Command::new(&varnishstat).args(["-1", "-n", &daemon.run()]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.starts_with("WHY.miss_absent"))?.to_owned();
        assert!(text.contains("MAIN.client_req") && output.stderr.is_empty(), "{text}");
        (line.split_whitespace().nth(1) == Some("1")).then_some(())
    });
}

#[test]
fn restarts_of_the_worker_are_followed_and_a_stopped_one_is_not_ready() {
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let observe = Observe::start(&daemon.run());
    assert_eq!(get(observe.port, "/healthz").status, 200);
    eventually("ready", || (get(observe.port, "/readyz").status == 200).then_some(()));
    daemon.get("/a");
    daemon.counter_reaching("MAIN.client_req", 1);
    assert_eq!(series(&scrape(observe.port, ""))["copal_http_requests_total"], 1);
    let worker = nix::unistd::Pid::from_raw(daemon.worker());
    nix::sys::signal::kill(worker, Signal::SIGKILL).unwrap();
    eventually("the next worker counts", || {
        let series = series(&scrape(observe.port, ""));
        let restarts = series.get("copal_worker_restarts_total") == Some(&1);
        (restarts && series.get("copal_http_requests_total") == Some(&0)).then_some(())
    });
    daemon.worker();
    assert!(daemon.cli(&["stop"]).0);
    eventually("not ready", || (get(observe.port, "/readyz").status == 503).then_some(()));
    assert_eq!(series(&scrape(observe.port, ""))["copal_worker_up"], 0);
    assert_eq!(get(observe.port, "/healthz").status, 200);
    assert!(daemon.cli(&["start"]).0);
    eventually("ready again", || (get(observe.port, "/readyz").status == 200).then_some(()));
}

#[test]
fn end_of_the_daemon_is_visible_and_its_successor_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let observe = Observe::start(&run);
    let up = || series(&scrape(observe.port, "?scope=process"))["copal_manager_up"];
    assert_eq!(up(), 0);
    for _ in 0..2 {
        let port = crate::daemon::free_port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(copal());
        command.args(["daemon", "-F", "-j", "none", "-n", &run, "-a", &address, "-b", "none"]);
        let mut process = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        eventually("ready", || (get(observe.port, "/readyz").status == 200).then_some(()));
        assert_eq!(up(), 1);
        process.signal(Signal::SIGTERM);
        process.wait();
        assert_eq!((up(), get(observe.port, "/readyz").status), (0, 503));
    }
}

/// The process number of the daemon's own observe, other than `before`.
pub fn observer(daemon: &Daemon, before: i32) -> i32 {
    let daemon_pid = daemon.process.pid();
    eventually("an observe runs", || {
        let children = std::fs::read_to_string(format!("/proc/{daemon_pid}/task/{daemon_pid}/children")).ok()?;
        let mut pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.find(|pid: &i32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim() == "copal-observe" && *pid != before
        })
    })
}

#[test]
fn daemon_serves_metrics_and_the_death_of_that_process_harms_no_request() {
    let origin = Origin::start(|_| ok("", "hello"));
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("metrics");
    let path = format!("metrics=unix:{}", socket.display());
    let mut daemon = Daemon::in_front_of(origin.port, &["-o", "metrics=127.0.0.1:0", "-o", &path]);
    let port = eventually("the address is reported", || port_in(&daemon.said()));
    let first = observer(&daemon, 0);
    for _ in 0..3 {
        assert_eq!(daemon.get("/a").status, 200);
    }
    daemon.counter_reaching("MAIN.client_req", 3);
    assert_eq!(series(&scrape(port, ""))["copal_http_requests_total"], 3);
    // A scraper that sends nothing meanwhile.
    let _silent = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let send = |pid, signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    send(first, Signal::SIGKILL);
    assert_eq!(daemon.get("/a").status, 200);
    let second = observer(&daemon, first);
    assert_eq!(get(port, "/healthz").status, 200);
    eventually("the end is reported", || daemon.said().contains("copal observe (").then_some(()));
    // A process that is stopped harms nothing either.
    send(second, Signal::SIGSTOP);
    assert_eq!((daemon.get("/a").status, daemon.cli(&["ping"]).0), (200, true));
    send(second, Signal::SIGCONT);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // It ends with the daemon, even if that is killed.
    daemon.process.signal(Signal::SIGKILL);
    daemon.process.wait();
    eventually("it is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{second}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn daemon_started_by_root_serves_metrics_as_the_user_of_the_jail_in_a_sandbox() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &["-j", "unix", "-o", "metrics=127.0.0.1:0"]);
    let port = eventually("the address is reported", || port_in(&daemon.said()));
    eventually("ready", || (get(port, "/readyz").status == 200).then_some(()));
    daemon.get("/a");
    daemon.counter_reaching("MAIN.client_req", 1);
    assert_eq!(series(&scrape(port, ""))["copal_http_requests_total"], 1);
    let status = std::fs::read_to_string(format!("/proc/{}/status", observer(&daemon, 0))).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_ne!(field("Uid:").split_whitespace().next(), Some("0"), "{status}");
    assert_eq!((field("CapEff:"), field("NoNewPrivs:")), ("0000000000000000".to_owned(), "1".to_owned()));
    assert_eq!(field("Seccomp:"), "2", "{status}");
    // The next worker's counters are readable too.
    let worker = nix::unistd::Pid::from_raw(daemon.worker());
    nix::sys::signal::kill(worker, Signal::SIGKILL).unwrap();
    eventually("the next worker counts", || {
        let series = series(&scrape(port, ""));
        (series.get("copal_http_requests_total") == Some(&0)).then_some(())
    });
}

#[test]
fn wrong_address_for_metrics_is_refused_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("metrics=127.0.0.1:{}", taken.local_addr().unwrap().port());
    let wrong =
        [(taken.as_str(), "could not be listened on"), ("metrics=", "needs an address"), ("metric=x", "Unknown -o")];
    for (option, said) in wrong {
        let run = tempfile::tempdir().unwrap();
        let mut command = Command::new(copal());
        command.args(["daemon", "-F", "-j", "none", "-a", "127.0.0.1:0", "-b", "none", "-o", option, "-n"]);
        let output = command.arg(run.path().join("run")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{option}: {text}");
    }
}

/// A process that is killed when dropped.
struct Killed(i32);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

#[test]
fn upgrade_keeps_the_socket_for_metrics() {
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &["-o", "metrics=127.0.0.1:0"]);
    let port = eventually("the address is reported", || port_in(&daemon.said()));
    let first = observer(&daemon, 0);
    let output = daemon.applet("upgrade", &[]);
    assert!(output.status.success(), "{output:?} {}", daemon.said());
    eventually("the first one is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{first}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    eventually("ready", || (get(port, "/readyz").status == 200).then_some(()));
    let successor: i32 = std::fs::read_to_string(daemon.folder.path().join("pid")).unwrap().trim().parse().unwrap();
    let _guard = Killed(successor);
    assert_ne!(successor, daemon.process.pid());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(successor), Signal::SIGTERM).unwrap();
    let is_gone = || !std::path::Path::new(&format!("/proc/{successor}")).exists();
    eventually("the successor ends", || is_gone().then_some(()));
}

#[test]
fn promtool_accepts_the_text() {
    let Some(promtool) = needs("promtool") else { return };
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::with_vcl(VCL, origin.port, &[]);
    daemon.get("/a");
    let observe = Observe::start(&daemon.run());
    let text = eventually("counters", || {
        Some(scrape(observe.port, "")).filter(|text| text.contains("copal_http_requests_total"))
    });
    let mut command = Command::new(promtool);
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn stock_varnishd_can_be_observed() {
    let Some(varnishd) = needs("varnishd") else { return };
    let daemon = Daemon::start_stock(&varnishd, &["-b", "none"]);
    let observe = Observe::start(&daemon.run());
    eventually("counters", || series(&scrape(observe.port, "")).get("copal_http_requests_total").copied());
    eventually("a worker", || (get(observe.port, "/readyz").status == 200).then_some(()));
}

/// A file of `packaging`.
fn shipped(path: &str) -> String {
    std::fs::read_to_string(crate::layers::root().join("packaging").join(path)).unwrap()
}

#[test]
fn shipped_rules_and_dashboard_use_metrics_that_are_served() {
    for path in ["prometheus/rules.yml", "prometheus/alerts.yml", "grafana/copal.json"] {
        let text = shipped(path);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("copal_")).collect();
        assert!(names.len() > 5, "{path}");
        for name in names {
            assert!(surface::metric::row(name).is_some(), "{path}: {name}");
        }
    }
    let dashboard: serde_json::Value = serde_json::from_str(&shipped("grafana/copal.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| panel["datasource"]["uid"] == "${datasource}"));
}

#[test]
fn promtool_accepts_the_shipped_rules() {
    let Some(promtool) = needs("promtool") else { return };
    let mut command = Command::new(promtool);
    command.args(["check", "rules", "rules.yml", "alerts.yml"]);
    let output = command.current_dir(crate::layers::root().join("packaging/prometheus")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The value that a Prometheus computes for a query; the query is written as in a URL.
fn computed(prometheus: u16, query: &str) -> Option<f64> {
    let bytes =
        exchange(prometheus, format!("GET /api/v1/query?query={query} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes());
    let answer: serde_json::Value = serde_json::from_slice(&Answer::parse(&bytes).body).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// The queries in the guide.
fn queries_of_the_guide() -> Vec<String> {
    let text = std::fs::read_to_string(crate::layers::root().join("docs/operate/observe.md")).unwrap();
    let table = text.split("| question | query |").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let spans = table.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|"));
    let queries: Vec<String> = spans.collect();
    assert!(queries.len() >= 5, "{queries:?}");
    queries
}

#[test]
fn prometheus_scrapes_and_computes_the_known_numbers() {
    let Some(prometheus) = needs("prometheus") else { return };
    let origin = Origin::start(|_| ok("", "hello"));
    let daemon = Daemon::in_front_of(origin.port, &["-o", "metrics=127.0.0.1:0"]);
    let port = eventually("the address is reported", || port_in(&daemon.said()));
    for path in ["/a", "/a", "/a", "/b"] {
        daemon.get(path);
    }
    daemon.counter_reaching("MAIN.client_req", 4);
    let folder = tempfile::tempdir().unwrap();
    let rules = crate::layers::root().canonicalize().unwrap().join("packaging/prometheus");
    let rules = rules.display();
    let configuration = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{rules}/rules.yml', '{rules}/alerts.yml']
scrape_configs:
- job_name: copal
  static_configs:
  - targets: ['127.0.0.1:{port}']
"
    );
    let file = folder.path().join("prometheus.yml");
    std::fs::write(&file, configuration).unwrap();
    let own = crate::daemon::free_port();
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{own}"));
    command.arg("--enable-feature=exemplar-storage");
    let _process = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    eventually("it listens", || std::net::TcpStream::connect(("127.0.0.1", own)).ok());
    // A text that it cannot read would make the target fail; it requests OpenMetrics.
    eventually("the target is up", || computed(own, "up").filter(|up| *up == 1.0));
    let numbers = [
        ("copal_http_requests_total", 4.0),
        ("sum(copal_cache_lookups_total%7Bresult=%22hit%22%7D)/sum(copal_cache_lookups_total)", 0.5),
        ("count(copal_build_info)", 1.0),
        ("copal_worker_up", 1.0),
        ("sum(copal_http_request_duration_seconds_count)", 4.0),
        ("sum(copal_http_request_duration_seconds_count%7Bresult=%22hit%22,status=%222xx%22%7D)", 2.0),
        ("copal_http_reasons_total%7Breason=%22miss-absent%22%7D", 2.0),
        ("histogram_quantile(0.99,sum(copal_http_request_duration_seconds_bucket)by(le))%3Ebool%200", 1.0),
    ];
    for (query, expected) in numbers {
        eventually(query, || computed(own, query).filter(|value| *value == expected));
    }
    eventually("an exemplar is stored", || {
        let query = "query=copal_http_request_duration_seconds_bucket&start=0&end=9999999999";
        let request = format!("GET /api/v1/query_exemplars?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let answer: serde_json::Value =
            serde_json::from_slice(&Answer::parse(&exchange(own, request.as_bytes())).body).ok()?;
        answer["data"][0]["exemplars"][0]["labels"]["vxid"].as_str().map(str::to_owned)
    });
    for query in queries_of_the_guide() {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let request = format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let answer = String::from_utf8(Answer::parse(&exchange(own, request.as_bytes())).body).unwrap();
        assert!(answer.contains("\"status\":\"success\""), "{query}: {answer}");
    }
    eventually("a rule is computed", || computed(own, "copal:cache_use_ratio"));
}
