//! `copal demo`: a slow blog, Copal in front of it, and the difference, in half a minute.
//!
//! Everything runs on loopback, on ports chosen by the system. Copal runs as in production: the
//! same program started as a daemon, with `demo/demo.vcl`. The same pages are there over https,
//! with a certificate made on the spot.

mod origin;
mod secured;
mod visitors;

use secured::Secured;
use shm::read::counters::{CounterReader, CounterValue};
use shm::read::vsm::Vsm;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use surface::quantity::hit_percent;
use tokio::signal::unix::{Signal, SignalKind, signal};
use visitors::Seen;

/// Visitors at once.
const VISITORS: u64 = 100;
/// Duration of each of the two measurements.
const MEASURED: Duration = Duration::from_secs(8);
/// Time limit for Copal's start.
const START: Duration = Duration::from_secs(20);

/// Runs the demo; returns the exit status.
pub fn run(arguments: &[OsString]) -> i32 {
    let mut once = false;
    for argument in arguments {
        match argument.to_str() {
            Some("--once") => once = true,
            Some("--help" | "-h") => {
                return crate::output::print(&surface::program::program("demo").usage(surface::program::Called::Copal));
            }
            _ => {
                let shown = surface::legible::line(argument.as_encoded_bytes());
                eprintln!("copal demo: unknown option {shown}");
                return 2;
            }
        }
    }
    match demo(once) {
        Ok(()) => 0,
        Err(Stop::Signal(number)) => 128 + number,
        Err(Stop::Failure(message)) => {
            eprintln!("copal demo: {}", surface::legible::lines(message.as_bytes()));
            1
        }
    }
}

/// Reason for the demo's early end.
enum Stop {
    /// A signal with that number. Everything created is removed as at any other end.
    Signal(i32),
    Failure(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Failure(message)
    }
}

/// The demo's event loop, with the signals that end it.
struct Stage {
    runtime: tokio::runtime::Runtime,
    signals: [Signal; 3],
}

/// The signals that end the demo: Ctrl-C, `kill`, and the closing of the terminal.
const ENDING: [fn() -> SignalKind; 3] = [SignalKind::interrupt, SignalKind::terminate, SignalKind::hangup];

impl Stage {
    fn new() -> Result<Stage, String> {
        let text = |error: std::io::Error| error.to_string();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
        let within = runtime.enter();
        let [interrupt, terminate, hangup] = ENDING.map(|kind| signal(kind()).map_err(text));
        let signals = [interrupt?, terminate?, hangup?];
        drop(within);
        Ok(Stage { runtime, signals })
    }

    /// Runs a part to its end, unless a signal comes first.
    fn play<T>(&mut self, part: impl Future<Output = T>) -> Result<T, Stop> {
        let [interrupt, terminate, hangup] = &mut self.signals;
        self.runtime.block_on(async {
            let at = tokio::select! {
                played = part => return Ok(played),
                _ = interrupt.recv() => 0,
                _ = terminate.recv() => 1,
                _ = hangup.recv() => 2,
            };
            Err(Stop::Signal(ENDING[at]().as_raw_value()))
        })
    }
}

fn demo(once: bool) -> Result<(), Stop> {
    let mut stage = Stage::new()?;
    let blog = origin::start().map_err(|error| format!("the blog could not start: {error}"))?;
    let folder = Folder::new()?;
    let vcl = include_str!("demo/demo.vcl").replace("@PORT@", &blog.address.port().to_string());
    let vcl_path = folder.0.join("demo.vcl");
    std::fs::write(&vcl_path, vcl).map_err(|error| format!("{}: {error}", vcl_path.display()))?;
    let [address, secured] = free_addresses()?;
    let secured = Secured::make(&folder.0, secured)?;
    let mut copal = stage.play(Daemon::start(&folder.0, &vcl_path, address, &secured))??;
    let protocols = secured.protocols();
    println!("{}", heading(blog.address, address, &vcl_path, secured.address, protocols));
    ask_secured(&mut stage, &secured)?;
    let mut direct = measure(&mut stage, "the blog alone", blog.address)?;
    let asked_before = blog.requests.load(Ordering::Relaxed);
    let mut cached = measure(&mut stage, "through Copal ", address)?;
    let asked = blog.requests.load(Ordering::Relaxed) - asked_before;
    println!("{}", report(&mut direct, &mut cached, asked));
    if cached.leaked > 0 {
        return Err(format!("{} personal pages were served to the wrong visitor", cached.leaked).into());
    }
    if cached.latencies.is_empty() {
        return Err(nothing_came(&folder.0).into());
    }
    if !once {
        serve(&mut stage, &mut copal, [address, secured.address], &blog, &folder.0)?;
    }
    copal.stop();
    Ok(())
}

/// Copal's output is deleted with the folder, so it is printed here.
fn nothing_came(folder: &Path) -> String {
    let said = std::fs::read_to_string(folder.join("copal.log")).unwrap_or_default();
    format!("nothing came through Copal, which said:\n{said}")
}

/// Requests the front page once, as a browser does: later measurements use http.
fn ask_secured(stage: &mut Stage, secured: &Secured) -> Result<(), Stop> {
    let answer = stage.play(secured.ask("/"))??;
    let names = |names: bool| if names { "which names HTTP/3" } else { "without a word of HTTP/3" };
    if answer.status != 200 || answer.names_http3 != secured.has_http3 {
        let what = format!("the answer over https is {}, {}", answer.status, names(answer.names_http3));
        return Err(what.into());
    }
    println!("{}", secured_line(answer.status, names(answer.names_http3)));
    Ok(())
}

/// Two at once, so that they differ.
fn free_addresses() -> Result<[SocketAddr; 2], String> {
    let text = |error: std::io::Error| error.to_string();
    let listen = || TcpListener::bind("127.0.0.1:0").map_err(text);
    let (one, other) = (listen()?, listen()?);
    Ok([one.local_addr().map_err(text)?, other.local_addr().map_err(text)?])
}

fn measure(stage: &mut Stage, title: &str, address: SocketAddr) -> Result<Seen, Stop> {
    let is_watched = std::io::stderr().is_terminal();
    let shown = title.to_owned();
    let seen = stage.play(visitors::visit(address, VISITORS, MEASURED, move |part| {
        if is_watched {
            let _ = std::io::stderr().write_all(format!("\r{}", progress(&shown, part)).as_bytes());
        }
    }));
    if is_watched {
        // To the beginning of the line, and nothing there.
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    } else {
        println!("measured {title}");
    }
    seen
}

/// The line that is shown at this share of a measurement.
fn progress(title: &str, part: f64) -> String {
    const WIDTH: usize = 40;
    let done = ((part * WIDTH as f64) as usize).min(WIDTH);
    let bar = format!("{}{}", "=".repeat(done), if done < WIDTH { ">" } else { "" });
    format!("measuring {title} [{bar:<WIDTH$}] {:>3} %", (part * 100.0) as u32)
}

/// Addresses of the blog and of Copal.
fn heading(blog: SocketAddr, copal: SocketAddr, vcl: &Path, secured: SocketAddr, protocols: &str) -> String {
    format!(
        "blog:   http://{blog}  (a page takes about 200 ms, eight at once)\ncopal:  http://{copal}  with {}\n        \
         https://{secured}  ({protocols})\n",
        vcl.display()
    )
}

fn secured_line(status: u16, names: &str) -> String {
    format!("asked over https: HTTP/2, status {status}, {names}")
}

/// The table of both measurements.
fn report(direct: &mut Seen, cached: &mut Seen, asked: u64) -> String {
    let mut lines = Vec::new();
    let seconds = MEASURED.as_secs_f64();
    let rate = |seen: &Seen| seen.latencies.len() as f64 / seconds;
    let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let share = |part: u64, seen: &Seen| 100.0 * part as f64 / (seen.latencies.len() as f64).max(1.0);
    lines.push(format!("{VISITORS} visitors for {seconds:.0} s      {:>16} {:>16}", "the blog alone", "through Copal"));
    lines.push(format!("requests a second          {:>16.0} {:>16.0}", rate(direct), rate(cached)));
    for (name, part) in [("latency, median           ", 0.5), ("latency, 99th percentile  ", 0.99)] {
        lines.push(format!(
            "{name} {:>16} {:>16}",
            milliseconds(direct.latency(part)),
            milliseconds(cached.latency(part))
        ));
    }
    lines.push(format!("answers from the cache     {:>16} {:>14.1} %", "–", share(cached.hits, cached)));
    lines.push(format!("failed answers (5xx)       {:>16} {:>16}", direct.failures, cached.failures));
    lines.push(format!("requests the blog got      {:>16} {:>16}", direct.latencies.len(), asked));
    lines.push(format!(
        "personal pages             {:>16} {:>16}   ({} from the cache or for somebody else)",
        direct.personal, cached.personal, cached.leaked
    ));
    lines.push(format!(
        "… with a private corner    {:>16} {:>16}   ({} of these pages from the cache, the corner for one visitor)",
        direct.corners, cached.corners, cached.corners_around_hits
    ));
    if rate(direct) > 0.0 {
        lines.push(String::new());
        lines.push(format!("{:.0} times as many requests a second.", rate(cached) / rate(direct)));
    }
    lines.join("\n")
}

/// Continues to serve, with one line that shows the traffic, until Ctrl-C or another signal: the
/// regular end.
fn serve(
    stage: &mut Stage,
    copal: &mut Daemon,
    [address, secured]: [SocketAddr; 2],
    blog: &origin::Origin,
    folder: &Path,
) -> Result<(), Stop> {
    println!();
    println!("Serving on http://{address} and https://{secured} until Ctrl-C.");
    println!("  curl --http2 --cacert {} https://{secured}/", folder.join(secured::CERTIFICATE).display());
    println!("Look at it with");
    println!("  copal log -n {0}    copal stat -n {0}    copal why -n {0}", folder.join("run").display());
    match dashboard(&folder.join("run")) {
        Ok(address) => {
            println!("and in a browser, with an address that logs in once, within a minute:");
            println!("  {address}");
            println!("  (another one: copal dash -n {})", folder.join("run").display());
        }
        Err(why) => println!("The dashboard is not there: {why}"),
    }
    let mut statistics = Statistics::new(&folder.join("run"));
    let shown = stage.play(async {
        statistics.read();
        let mut last = (Instant::now(), statistics.value("MAIN.client_req"));
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(status) = copal.ended() {
                let said = std::fs::read_to_string(folder.join("copal.log")).unwrap_or_default();
                return format!("Copal ended: {status}; it said:\n{said}");
            }
            statistics.read();
            let requests = statistics.value("MAIN.client_req");
            let hits = statistics.value("MAIN.cache_hit");
            let rate = requests.saturating_sub(last.1) as f64 / last.0.elapsed().as_secs_f64();
            last = (Instant::now(), requests);
            print!(
                "\r{requests} requests, {rate:.0}/s, {:.1} % hits, {} objects, the blog got {}   ",
                hit_percent(hits, statistics.value("MAIN.cache_miss")).unwrap_or(0.0),
                statistics.value("MAIN.n_object"),
                blog.requests.load(Ordering::Relaxed)
            );
            let _ = std::io::stdout().flush();
        }
    });
    println!();
    match shown {
        Ok(message) => Err(Stop::Failure(message)),
        Err(Stop::Signal(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// An address of the dashboard that logs in.
fn dashboard(work_directory: &Path) -> Result<String, String> {
    let (status, text) = tools::CliClient::open(work_directory.as_os_str())?.ask(&["dash.login".to_owned()])?;
    match text.lines().next() {
        Some(address) if status == 200 => Ok(address.to_owned()),
        _ => Err(text),
    }
}

/// The counters that Copal publishes.
struct Statistics {
    vsm: Vsm,
    reader: CounterReader,
    values: Vec<CounterValue>,
}

impl Statistics {
    fn new(directory: &Path) -> Statistics {
        Statistics { vsm: Vsm::new(directory), reader: CounterReader::new(), values: Vec::new() }
    }

    fn read(&mut self) {
        self.vsm.poll();
        self.values = self.reader.read(&self.vsm);
    }

    fn value(&self, name: &str) -> u64 {
        self.values.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
    }
}

/// The demo's own folder, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("copal-demo-{}", std::process::id()));
        // It must be new: an existing folder of another user would be trusted.
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copal as a separate process.
struct Daemon {
    child: Child,
}

impl Daemon {
    async fn start(folder: &Path, vcl: &Path, address: SocketAddr, secured: &Secured) -> Result<Daemon, String> {
        let log = folder.join("copal.log");
        let output = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(["daemon", "-F", "-j", "none", "-s", "malloc,256m", "-p", "feature=+http2"])
            .args(["-o", "dash=127.0.0.1:0", "-n"])
            .arg(folder.join("run"))
            .arg("-A")
            .arg(&secured.file)
            .args(["-a", &address.to_string(), "-f"])
            .arg(vcl)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("Copal could not start: {error}"))?;
        let mut daemon = Daemon { child };
        let deadline = Instant::now() + START;
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = daemon.ended() {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("Copal ended at once ({status}):\n{said}"));
            }
            if Instant::now() > deadline {
                return Err(format!("Copal does not listen on {address} after {} s", START.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(daemon)
    }

    fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    fn stop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text without the numbers and the widths that a run decides.
    fn shape(text: &str) -> String {
        let mut shape = String::new();
        for letter in text.chars() {
            let letter = if letter.is_ascii_digit() || letter == '.' { '0' } else { letter };
            if !(matches!(letter, '0' | ' ') && shape.ends_with(letter)) {
                shape.push(letter);
            }
        }
        shape
    }

    #[test]
    fn listing_in_the_documents_is_what_the_demo_prints() {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let seen = |count: u64| Seen { latencies: vec![Duration::from_millis(1); count as usize], ..Seen::default() };
        let (vcl, protocols) = (Path::new("/tmp/copal-demo-1/demo.vcl"), "HTTP/1.1, HTTP/2 and HTTP/3");
        let printed = [
            heading(address(1), address(2), vcl, address(3), protocols),
            secured_line(200, "which names HTTP/3"),
            report(&mut seen(1), &mut seen(2), 3),
        ];
        let page = include_str!("../../../docs/operate/overview.md");
        let listing = page.split("```\n").find(|part| part.starts_with("blog:")).expect("a listing");
        let shapes = |text: &str| text.lines().map(|line| shape(line.trim_end())).collect::<Vec<_>>();
        assert_eq!(shapes(listing), shapes(&printed.join("\n")));
    }
}
