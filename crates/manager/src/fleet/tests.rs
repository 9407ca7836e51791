//! An agent and a worker that follow a script, at both ends of the manager.

use super::*;
use crate::commands::tests::Bench;
use crate::link::Link;
use crate::state::{ChildState, Worker};
use cli_proto::response::{Response, status};
use control::fleet::Applied;
use control::messages::{self, Request, Said};
use fleet::exchange::{Answer, Receipt};
use fleet::record::CacheMark;
use fleet::{Invalidation, Position, link};
use surface::limits::{FLEET_LINK_BYTES_MAX, TEST_HANG_SECONDS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet};

/// A manager with a fleet.
fn bench(folder: &tempfile::TempDir) -> Bench {
    let key = folder.path().join("key");
    fs::write(&key, (0..32).collect::<Vec<u8>>()).unwrap();
    let key = format!("fleet_key={}", key.display());
    Bench::new(&["-o", "fleet=nats://127.0.0.1:1", "-o", &key])
}

fn run(story: impl AsyncFnOnce(&Rc<Manager>)) {
    let folder = tempfile::TempDir::new().unwrap();
    let bench = bench(&folder);
    let work = async {
        let limit = Duration::from_secs(TEST_HANG_SECONDS);
        tokio::time::timeout(limit, story(&bench.manager)).await.expect("the story hangs");
    };
    LocalSet::new().block_on(&bench.runtime, work);
}

/// The agent's end of a link.
struct Agent {
    stream: UnixStream,
    manager_side: JoinHandle<io::Result<()>>,
}

impl Agent {
    /// A new agent, which has received its settings.
    async fn start(manager: &Rc<Manager>) -> Agent {
        let (ours, stream) = UnixStream::pair().unwrap();
        let of_manager = manager.clone();
        let converse = async move { agent::converse(&of_manager, of_manager.fleet.as_ref().unwrap(), ours).await };
        let mut agent = Agent { stream, manager_side: spawn_local(converse) };
        let ToAgent::Settings(settings) = agent.receive().await else { panic!("no settings") };
        assert_eq!((settings.lost_after_ms, settings.keys.len()), (10_000, 1));
        agent
    }

    async fn send(&mut self, message: &ToManager) {
        let mut bytes = Vec::new();
        link::write(&mut bytes, message).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn receive(&mut self) -> ToAgent {
        let length = self.stream.read_u32().await.unwrap();
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.resize(4 + length as usize, 0);
        self.stream.read_exact(&mut bytes[4..]).await.unwrap();
        link::read(&mut &bytes[..]).unwrap().unwrap()
    }
}

/// Starts a worker that notes its requests. An order `bad` cannot be carried out.
fn worker(manager: &Rc<Manager>, pid: u32) -> Rc<RefCell<Vec<Request>>> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (_, gone) = watch::channel(false);
    *manager.worker.borrow_mut() = Some(Worker { pid, link: Link::new(ours), since: Instant::now(), gone });
    manager.state.set(ChildState::Running);
    let noted = Rc::new(RefCell::new(Vec::new()));
    let notes = noted.clone();
    spawn_local(async move {
        let mut sequence = 0;
        while let Ok(Some(request)) = messages::receive::<Request>(&mut theirs).await {
            let reply = match &request {
                Request::FleetApply(orders) => {
                    sequence += 1;
                    let bad = FleetOrder::Ban("bad".to_owned());
                    let one = |order: &FleetOrder| if *order == bad { Err("bad".to_owned()) } else { Ok(3) };
                    let orders = orders.iter().map(one).collect();
                    Response::ok(Applied { identity: 9, sequence, orders }.text())
                }
                Request::FleetCheck(FleetOrder::Ban(text)) if text == "bad" => Response::new(status::PARAMETER, "bad"),
                _ => Response::ok(""),
            };
            notes.borrow_mut().push(request);
            if messages::send(&mut theirs, &Said::Reply(reply)).await.is_err() {
                return;
            }
        }
    });
    manager.fleet.as_ref().unwrap().worker_changed();
    noted
}

fn apply(id: ApplyId, text: &str) -> ToManager {
    ToManager::Apply { id, invalidation: Invalidation::Ban { expression: text.to_owned() } }
}

#[test]
fn orders_and_conditions_reach_the_worker_in_turn_and_are_answered() {
    run(async |manager| {
        spawn_local(work::work(manager.clone()));
        let mut agent = Agent::start(manager).await;
        // Nothing is applied without a worker.
        agent.send(&apply(1, "a")).await;
        agent.send(&ToManager::Serve(Serving::InStep)).await;
        agent.send(&apply(2, "bad")).await;
        let tags = Invalidation::Tags { tags: vec!["a b".to_owned()], is_soft: false };
        agent.send(&ToManager::Apply { id: 3, invalidation: tags }).await;
        assert!(matches!(agent.receive().await, ToAgent::NotApplied { id: 3, .. }), "refused without the worker");
        let noted = worker(manager, 7);
        let mark = |sequence| CacheMark { identity: 9, sequence };
        assert_eq!(agent.receive().await, ToAgent::Cache { mark: Some(mark(1)), is_continued: false });
        assert_eq!(agent.receive().await, ToAgent::Applied { id: 1, objects: 3, cache: mark(2) });
        assert!(matches!(agent.receive().await, ToAgent::NotApplied { id: 2, .. }));
        let order = |text: &str| Request::FleetApply(vec![FleetOrder::Ban(text.to_owned())]);
        let expected = [
            Request::FleetServe(FleetServing::Pass),
            Request::FleetApply(vec![FleetOrder::Nothing]),
            order("a"),
            Request::FleetServe(FleetServing::Cache),
            order("bad"),
        ];
        assert_eq!(*noted.borrow(), expected);
        // Another worker: the agent knows, and it has the conditions that hold.
        *manager.worker.borrow_mut() = None;
        manager.fleet.as_ref().unwrap().worker_changed();
        assert_eq!(agent.receive().await, ToAgent::Cache { mark: None, is_continued: false });
        let noted = worker(manager, 8);
        assert_eq!(agent.receive().await, ToAgent::Cache { mark: Some(mark(1)), is_continued: false });
        assert_eq!(noted.borrow()[0], Request::FleetServe(FleetServing::Cache));
    });
}

#[test]
fn next_agent_continues_unless_conditions_were_lost() {
    run(async |manager| {
        spawn_local(work::work(manager.clone()));
        let noted = worker(manager, 7);
        let mut agent = Agent::start(manager).await;
        assert!(matches!(agent.receive().await, ToAgent::Cache { is_continued: false, .. }));
        agent.send(&ToManager::Serve(Serving::InStep)).await;
        agent.send(&apply(1, "a")).await;
        agent.receive().await;
        drop(agent.stream);
        agent.manager_side.await.unwrap().unwrap();
        let mut agent = Agent::start(manager).await;
        assert!(matches!(agent.receive().await, ToAgent::Cache { is_continued: true, .. }));
        drop(agent.stream);
        agent.manager_side.await.unwrap().unwrap();
        // No agent for too long.
        manager.parameters.borrow_mut().fleet_lost_after = 0.0;
        manager.parameters.borrow_mut().fleet_when_lost = "refuse".to_owned();
        let fleet = manager.fleet.as_ref().unwrap();
        fleet.look(manager);
        assert_eq!(fleet.serving(), FleetServing::Pass);
        assert!(fleet.shown().contains("no agent for 0 s"), "{}", fleet.shown());
        manager.parameters.borrow_mut().fleet_lost_after = 10.0;
        let mut agent = Agent::start(manager).await;
        assert!(matches!(agent.receive().await, ToAgent::Cache { is_continued: false, .. }));
        agent.send(&ToManager::Serve(Serving::InStep)).await;
        agent.send(&apply(1, "a")).await;
        assert!(matches!(agent.receive().await, ToAgent::Applied { id: 1, .. }));
        assert_eq!(fleet.serving(), FleetServing::Cache);
        assert!(noted.borrow().contains(&Request::FleetServe(FleetServing::Pass)));
    });
}

#[test]
fn agent_that_breaks_the_rules_is_ended_and_its_lines_are_bounded() {
    run(async |manager| {
        for bytes in [&[0xff; 4][..], &[0, 0, 0, 1, 99], &[0, 0, 0, 6, 1, 1, 0xff, 0xff, 0xff, 0xff]] {
            let mut agent = Agent::start(manager).await;
            agent.stream.write_all(bytes).await.unwrap();
            assert!(agent.manager_side.await.unwrap().is_err(), "{bytes:?}");
        }
        let mut agent = Agent::start(manager).await;
        agent.stream.write_all(&(FLEET_LINK_BYTES_MAX as u32 + 1).to_be_bytes()).await.unwrap();
        assert!(agent.manager_side.await.unwrap().is_err());
        let mut state = manager.fleet.as_ref().unwrap().state.borrow_mut();
        let shown: Vec<_> = (0..100).filter_map(|_| state.limited("a\u{1b}[2J\nb")).collect();
        assert_eq!(shown.len(), FLEET_LINES_MAX as usize + 1);
        assert!(!shown[0].contains(['\u{1b}', '\n']), "{}", shown[0]);
        state.lines.1 = 0;
        assert!(state.limited(&"x".repeat(1 << 20)).unwrap().len() < 2 * FLEET_LINE_BYTES_MAX);
        assert!(state.limited(&"ü".repeat(1 << 10)).is_some(), "it may be cut within a letter");
    });
}

#[test]
fn flood_of_orders_waits_in_the_link_and_not_in_memory() {
    run(async |manager| {
        let mut agent = Agent::start(manager).await;
        let fleet = manager.fleet.as_ref().unwrap();
        let count = FLEET_APPLIES_MAX as u64 + 100;
        let sender = async {
            for id in 1..=count {
                agent.send(&apply(id, "a")).await;
            }
            agent
        };
        let watcher = async {
            while fleet.state.borrow().queue.len() < FLEET_APPLIES_MAX {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            assert_eq!(fleet.state.borrow().queue.len(), FLEET_APPLIES_MAX);
            spawn_local(work::work(manager.clone()));
            worker(manager, 7);
        };
        let (mut agent, ()) = tokio::join!(sender, watcher);
        agent.receive().await;
        for expected in 1..=count {
            let ToAgent::Applied { id, .. } = agent.receive().await else { panic!("not applied") };
            assert_eq!(id, expected);
        }
    });
}

async fn cli(manager: &Rc<Manager>, line: &str) -> (u16, String) {
    let words = cli_proto::command_line::split(line.as_bytes()).unwrap();
    let reply = crate::commands::execute(manager, &words, &[], "test").await;
    (reply.status, reply.body)
}

#[test]
fn commands_report_each_node_and_name_the_missing_ones() {
    run(async |manager| {
        let refused = cli(manager, "fleet.purge --wait --tag a b").await;
        assert_eq!(refused, (300, "Child not running: it is needed to carry this out".to_owned()));
        worker(manager, 7);
        assert!(cli(manager, "fleet.purge --tag a").await.1.contains("agent does not run"));
        let mut agent = Agent::start(manager).await;
        for (line, part) in [
            ("fleet.ban bad", "bad"),
            ("fleet.ban --wait=x a", "not a time"),
            ("fleet.ban --wait=9h a", "not a time"),
            ("fleet.purge --soft /a", "--soft is for --tag"),
            ("fleet.purge /a /b", "One URL"),
            ("fleet.purge --tag", "no tag"),
            ("fleet.purge --all", "Unknown option --all"),
            ("fleet.purge \"a b\"", "no blanks"),
            ("fleet.forget a.b", "the name of a node"),
        ] {
            let (code, text) = cli(manager, line).await;
            assert!(code != 200 && text.contains(part), "{line}: {code} {text}");
        }
        let node = |name: &str| NodeId::new(name).unwrap();
        let receipt = |name: &str, ms| Receipt { node: node(name), applied_after_ms: ms, objects: Some(2) };
        let of_agent = async {
            for is_complete in [true, false] {
                let ToAgent::Command { request, command, wait_ms } = agent.receive().await else { panic!() };
                let tags = Invalidation::Tags { tags: vec!["a".to_owned(), "b".to_owned()], is_soft: true };
                assert_eq!((command, wait_ms), (Command::Invalidate(tags), Some(2000)));
                let receipts = vec![receipt("own", Some(1)), receipt("far", is_complete.then_some(30))];
                let answer = Answer::Waited { position: Position::default(), receipts, is_complete, why: None };
                // An answer to another command, and one too many, change nothing.
                agent.send(&ToManager::Answer { request: 99, reply: Reply::Done }).await;
                agent.send(&ToManager::Answer { request, reply: Reply::Invalidation(answer) }).await;
                agent.send(&ToManager::Answer { request, reply: Reply::Done }).await;
            }
        };
        let of_cli = async {
            let line = "fleet.purge --soft --wait=2s --tag a --tag b";
            (cli(manager, line).await, cli(manager, line).await)
        };
        let (complete, partial) = tokio::join!(of_cli, of_agent).0;
        assert_eq!(complete, (200, "own  applied  2 objects  1 ms\nfar  applied  2 objects  30 ms\n".to_owned()));
        assert_eq!(partial, (300, "own  applied  2 objects  1 ms\nfar  missing\nmissing: far\n".to_owned()));
        drop(agent.stream);
        agent.manager_side.await.unwrap().unwrap();
        let (code, text) = cli(manager, "fleet.status").await;
        assert!(code == 300 && text.contains("This node: joining"), "{text}");
    });
}

#[test]
fn changed_parameter_reaches_the_agent() {
    run(async |manager| {
        let mut agent = Agent::start(manager).await;
        assert_eq!(cli(manager, "param.set fleet_when_lost stale-limit").await.0, 200);
        assert_eq!(cli(manager, "param.set default_ttl 5").await.0, 200);
        assert_eq!(cli(manager, "param.set fleet_lost_after 20").await.0, 200);
        let ToAgent::Settings(settings) = agent.receive().await else { panic!() };
        assert_eq!((settings.when_lost, settings.lost_after_ms), (WhenLost::StaleLimit, 10_000));
        let ToAgent::Settings(settings) = agent.receive().await else { panic!() };
        assert_eq!(settings.lost_after_ms, 20_000);
        assert_eq!(cli(manager, "param.set fleet_when_lost never").await.0, 106);
    });
}

#[test]
fn name_of_the_node_is_kept() {
    let folder = tempfile::TempDir::new().unwrap();
    let first = node_of_host(folder.path()).unwrap();
    assert_eq!(node_of_host(folder.path()).unwrap(), first);
    fs::write(folder.path().join(NUMBER_FILE), "garbage").unwrap();
    assert!(node_of_host(folder.path()).is_ok());
    make_folder(&folder.path().join(FOLDER), None).unwrap();
    make_folder(&folder.path().join(FOLDER), None).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("link")).unwrap();
    assert!(make_folder(&folder.path().join("link"), None).is_err());
}
