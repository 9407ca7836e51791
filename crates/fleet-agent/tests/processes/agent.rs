//! An agent as a process, and the manager's end of its link.

use fleet::exchange::Answer;
use fleet::link::{self, Command, Key, Reply, Settings, State, ToAgent, ToManager};
use fleet::record::CacheMark;
use fleet::{Invalidation, Serving};
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use surface::fleet::WhenLost;
use surface::limits::TEST_HANG_SECONDS;
use tempfile::TempDir;

/// Variable with the arguments of an agent, one a line.
pub const ARGUMENTS: &str = "COPAL_TEST_FLEET_AGENT";
/// Time to wait for all members, in milliseconds: longer than any election.
pub const WAIT_MS: u64 = 60_000;

/// The manager's view.
#[derive(Default)]
pub struct Seen {
    pub applied: Vec<Invalidation>,
    pub cache: CacheMark,
    pub serving: Option<Serving>,
    pub lines: Vec<String>,
    pub answers: HashMap<u64, Reply>,
    pub is_ended: bool,
}

type Shared = Arc<(Mutex<Seen>, Condvar)>;

pub struct Agent {
    pub name: String,
    pub key: u8,
    pub folder: TempDir,
    pub urls: String,
    /// More words of the command line.
    pub options: Vec<String>,
    shared: Shared,
    process: Option<(Child, Arc<Mutex<UnixStream>>)>,
    requests: u64,
}

impl Agent {
    /// An agent that is not started.
    pub fn new(name: &str, urls: &str) -> Agent {
        let shared = Shared::default();
        shared.0.lock().unwrap().cache = CacheMark { identity: 7, sequence: 1 };
        let folder = tempfile::tempdir().unwrap();
        Agent {
            name: name.to_owned(),
            key: 1,
            folder,
            urls: urls.to_owned(),
            options: Vec::new(),
            shared,
            process: None,
            requests: 0,
        }
    }

    pub fn start(&mut self) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let folder = self.folder.path().to_str().unwrap();
        let arguments = [
            ["--inherited", "-", "sandbox"].join("\n"),
            ["--folder", folder, "--servers", &self.urls, "--fleet", "shop", "--node", &self.name].join("\n"),
            self.options.join("\n"),
        ];
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "agent_process", "--ignored", "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (reading, writing) = (ours.try_clone().unwrap(), Arc::new(Mutex::new(ours)));
        let (shared, to) = (self.shared.clone(), writing.clone());
        let cache = {
            let mut seen = shared.0.lock().unwrap();
            (seen.serving, seen.is_ended) = (None, false);
            seen.cache
        };
        std::thread::spawn(move || manage(reading, &to, &shared));
        self.process = Some((child, writing));
        self.send(&ToAgent::Settings(Settings {
            lost_after_ms: 5000,
            when_lost: WhenLost::Serve,
            join_timeout_ms: 30_000,
            history_ms: 3_600_000,
            keys: vec![Key([self.key; 32])],
        }));
        self.send(&ToAgent::Cache { mark: Some(cache), is_continued: false });
    }

    pub fn send(&self, message: &ToAgent) {
        let (_, socket) = self.process.as_ref().unwrap();
        link::write(&mut *socket.lock().unwrap(), message).unwrap();
    }

    /// Bytes that are not a message.
    pub fn send_bytes(&self, bytes: &[u8]) {
        let (_, socket) = self.process.as_ref().unwrap();
        socket.lock().unwrap().write_all(bytes).unwrap();
    }

    pub fn kill(&mut self) {
        if let Some((mut child, _)) = self.process.take() {
            child.kill().unwrap();
            child.wait().unwrap();
            self.until("ended", |seen| seen.is_ended.then_some(()));
        }
    }

    /// Waits for the end of the process, which is due for another reason.
    pub fn wait(&mut self) -> Option<i32> {
        let (mut child, _) = self.process.take().unwrap();
        child.wait().unwrap().code()
    }

    /// Waits until the manager has seen something.
    pub fn until<T>(&self, what: &str, mut find: impl FnMut(&mut Seen) -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        let mut seen = self.shared.0.lock().unwrap();
        loop {
            if let Some(found) = find(&mut seen) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{}: {what}: {:?} {:?}", self.name, seen.serving, seen.lines);
            seen = self.shared.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    pub fn until_in_step(&self) {
        self.until("in step", |seen| (seen.serving == Some(Serving::InStep)).then_some(()));
    }

    /// Waits for a line with this text.
    pub fn until_line(&self, text: &str) -> String {
        self.until(text, |seen| seen.lines.iter().find(|line| line.contains(text)).cloned())
    }

    pub fn command(&mut self, command: Command, wait_ms: Option<u64>) -> Reply {
        self.requests += 1;
        let request = self.requests;
        self.send(&ToAgent::Command { request, command, wait_ms });
        self.until("answer", |seen| seen.answers.remove(&request))
    }

    /// Removes a URL everywhere; true if all members have confirmed it.
    pub fn purge(&mut self, url: &str, wait_ms: Option<u64>) -> Answer {
        match self.command(Command::Invalidate(purge(url)), wait_ms) {
            Reply::Invalidation(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// As above, until the answer is that all of these members have confirmed it.
    pub fn purge_of_all(&mut self, url: &str, members: usize) {
        let answer = self.purge(url, Some(WAIT_MS));
        match &answer {
            Answer::Waited { receipts, is_complete: true, .. } if receipts.len() == members => {}
            _ => {
                let state = self.state();
                panic!("{}: {url}: {answer:?} {state:#?}", self.name);
            }
        }
    }

    pub fn state(&mut self) -> State {
        match self.command(Command::Status, None) {
            Reply::Status(state) => *state,
            other => panic!("{other:?}"),
        }
    }

    /// Asks for the state until it is as expected.
    pub fn until_state(&mut self, what: &str, is_expected: impl Fn(&State) -> bool) {
        let end = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
        loop {
            let state = self.state();
            if is_expected(&state) {
                return;
            }
            assert!(Instant::now() < end, "{}: {what}: {state:#?}", self.name);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn has_applied(&self, url: &str) -> bool {
        self.shared.0.lock().unwrap().applied.contains(&purge(url))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn purge(url: &str) -> Invalidation {
    Invalidation::Url { url: url.to_owned(), is_soft: false }
}

/// Answers as a manager does, whose worker applies everything at once.
fn manage(mut reading: UnixStream, to: &Mutex<UnixStream>, shared: &Shared) {
    while let Ok(Some(message)) = link::read::<ToManager>(&mut reading) {
        let mut seen = shared.0.lock().unwrap();
        match message {
            ToManager::Serve(serving) => seen.serving = Some(serving),
            ToManager::Apply { id, invalidation } => {
                seen.applied.push(invalidation);
                seen.cache.sequence += 1;
                let cache = seen.cache;
                let _ = link::write(&mut *to.lock().unwrap(), &ToAgent::Applied { id, objects: 1, cache });
            }
            ToManager::Answer { request, reply } => _ = seen.answers.insert(request, reply),
            ToManager::Say { text, .. } => seen.lines.push(text),
        }
        shared.1.notify_all();
    }
    shared.0.lock().unwrap().is_ended = true;
    shared.1.notify_all();
}
