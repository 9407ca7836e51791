//! Agents as processes with real NATS servers; each test is the manager of all of them.

mod agent;
mod servers;

use agent::{ARGUMENTS, Agent};
use fleet::exchange::Answer;
use nix::sys::signal::Signal;
use rand::RngExt as _;
use servers::{Servers, is_installed};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpListener;
use surface::fleet::MessageRefusal;
use surface::limits::FLEET_MESSAGE_BYTES_MAX;

/// Run by the tests below, as a process of its own.
#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn agent_process() {
    let Some(arguments) = std::env::var_os(ARGUMENTS) else { return };
    let arguments: Vec<_> = arguments.to_str().unwrap().lines().map(OsString::from).collect();
    std::process::exit(fleet_agent::run(&arguments));
}

/// Agents that are in step, each with the others.
fn fleet(names: &[&str], urls: &str) -> Vec<Agent> {
    let mut agents: Vec<_> = names.iter().map(|name| Agent::new(name, urls)).collect();
    for agent in &mut agents {
        agent.start();
        agent.until_in_step();
    }
    for agent in &mut agents {
        agent.until_state("all members", |state| state.status.members.len() + 1 == names.len());
    }
    agents
}

#[test]
fn invalidation_that_waits_reaches_all_nodes() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    for number in 0..20 {
        for index in 0..2 {
            let url = format!("/{index}/{number}");
            agents[index].purge_of_all(&url, 2);
            assert!(agents.iter().all(|agent| agent.has_applied(&url)), "{url}");
        }
    }
    agents[0].until_line("has one copy");
    let state = agents[0].state();
    assert!(state.server.is_some_and(|server| server.starts_with("127.0.0.1:")));
    assert_eq!((state.counters.holes, state.counters.drops), (0, 0));
}

#[test]
fn each_server_may_be_killed() {
    if !is_installed() {
        return;
    }
    let mut servers = Servers::start(3);
    let mut agents = fleet(&["a", "b", "c"], &servers.urls());
    // One of them leads the stream.
    for index in 0..3 {
        servers.kill(index);
        agents[index].purge_of_all(&format!("/killed/{index}"), 3);
        servers.run(index);
        agents[(index + 1) % 3].purge_of_all(&format!("/back/{index}"), 3);
    }
    for agent in &agents {
        assert!((0..3).all(|index| agent.has_applied(&format!("/killed/{index}"))));
    }
}

#[test]
fn all_servers_may_be_killed_and_local_invalidations_go_on() {
    if !is_installed() {
        return;
    }
    let mut servers = Servers::start(3);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    (0..3).for_each(|index| servers.kill(index));
    for number in 0..100 {
        let answer = agents[0].purge(&format!("/{number}"), None);
        assert!(matches!(answer, Answer::Kept { .. }), "{answer:?}");
    }
    assert!(agents[0].has_applied("/99") && !agents[1].has_applied("/0"));
    (0..3).for_each(|index| servers.run(index));
    agents[0].purge_of_all("/last", 2);
    assert!((0..100).all(|number| agents[1].has_applied(&format!("/{number}"))));
}

#[test]
fn stream_that_is_deleted_is_made_again_and_nothing_is_missed() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(3);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    (0..50).for_each(|number| _ = agents[0].purge(&format!("/before/{number}"), None));
    agents[0].purge_of_all("/before", 2);
    delete_stream(&servers.url(0));
    (0..10).for_each(|number| _ = agents[0].purge(&format!("/after/{number}"), None));
    agents[0].purge_of_all("/after", 2);
    assert!((0..10).all(|number| agents[1].has_applied(&format!("/after/{number}"))));
    for agent in &mut agents {
        agent.until_state("an epoch", |state| state.counters.epochs > 0);
    }
    agents[1].purge_of_all("/again", 2);
}

fn delete_stream(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(url).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
        assert!(jetstream.delete_stream("copal_shop_inv").await.unwrap().success);
    });
}

#[test]
fn killed_agent_returns_and_gets_all_it_missed() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    agents[1].kill();
    for number in 0..1000 {
        let answer = agents[0].purge(&format!("/{number}"), None);
        assert!(matches!(answer, Answer::Kept { .. }), "{answer:?}");
    }
    agents[0].kill();
    agents[0].start();
    agents[1].start();
    for agent in &agents {
        agent.until_in_step();
    }
    assert!((0..1000).all(|number| agents[1].has_applied(&format!("/{number}"))));
    agents[0].purge_of_all("/last", 2);
    assert_eq!(agents[1].state().counters.drops, 0);
}

#[test]
fn agent_may_be_killed_at_any_moment() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    let mut random = rand::rng();
    let mut kept = Vec::new();
    for round in 0..10 {
        let publisher = round % 2;
        for number in 0..random.random_range(1..200) {
            let url = format!("/{round}/{number}");
            assert!(matches!(agents[publisher].purge(&url, None), Answer::Kept { .. }), "{url}");
            kept.push(url);
        }
        let killed = random.random_range(0..2);
        agents[killed].kill();
        agents[killed].start();
    }
    for agent in &mut agents {
        agent.until_in_step();
        agent.purge_of_all("/last", 2);
    }
    for url in kept {
        assert!(agents.iter().all(|agent| agent.has_applied(&url)), "{url}");
    }
}

#[test]
fn server_that_stops_with_open_connections_is_left() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(3);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    for index in 0..3 {
        servers.signal(index, Signal::SIGSTOP);
        agents[0].purge_of_all(&format!("/stopped/{index}"), 2);
        servers.signal(index, Signal::SIGCONT);
        agents[1].purge_of_all(&format!("/goes on/{index}"), 2);
    }
}

#[test]
fn servers_with_tls_and_an_nkey_are_used_and_strangers_are_not() {
    if !is_installed() {
        return;
    }
    const SEED: &str = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y";
    const USER: &str = "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK";
    let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let servers = Servers::start_with(1, |folder| {
        let (file, key) = (folder.join("certificate"), folder.join("key"));
        std::fs::write(&file, certificate.cert.pem()).unwrap();
        std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
        std::fs::write(folder.join("seed"), format!("{SEED}\n")).unwrap();
        let (file, key) = (file.display(), key.display());
        format!("tls {{ cert_file: \"{file}\", key_file: \"{key}\" }}\nauthorization {{ users: [{{ nkey: {USER} }}] }}")
    });
    let urls = servers.urls().replace("nats://", "tls://");
    let path = |name: &str| servers.path().join(name).to_str().unwrap().to_owned();
    let mut agents = [Agent::new("a", &urls), Agent::new("b", &urls)];
    for agent in &mut agents {
        agent.options = ["--tls-ca", &path("certificate"), "--nkey", &path("seed")].map(str::to_owned).to_vec();
        agent.start();
        agent.until_in_step();
    }
    agents[0].until_state("both", |state| state.status.members.len() == 1);
    agents[0].purge_of_all("/x", 2);
    for options in [["--tls-ca", &path("certificate")], ["--nkey", &path("seed")]] {
        let mut stranger = Agent::new("c", &urls);
        stranger.options = options.map(str::to_owned).to_vec();
        stranger.start();
        println!("{}", stranger.until_line("cannot connect: "));
        assert_eq!(stranger.state().server, None);
    }
}

#[test]
fn node_with_another_key_is_refused() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    let mut stranger = Agent::new("c", &servers.urls());
    stranger.key = 2;
    stranger.start();
    stranger.until_line("signature is wrong");
    agents[0].until_line("signature is wrong");
    stranger.purge("/strange", None);
    agents[0].purge_of_all("/own", 2);
    assert!(!agents[0].has_applied("/strange") && !stranger.has_applied("/own"));
    assert!(agents[0].state().counters.refused[MessageRefusal::Signature as usize] > 0);
}

#[test]
fn garbage_and_giants_on_the_subjects_are_refused() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let mut agents = fleet(&["a", "b"], &servers.urls());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(servers.url(0)).await.unwrap();
        for kind in ["inv", "ack", "node", "ctl"] {
            for bytes in [vec![], vec![1; 40], vec![255; FLEET_MESSAGE_BYTES_MAX], vec![0; 1 << 20]] {
                for _ in 0..20 {
                    client.publish(format!("copal.shop.{kind}.a"), bytes.clone().into()).await.unwrap();
                }
            }
        }
        client.flush().await.unwrap();
    });
    agents[0].purge_of_all("/first", 2);
    agents[1].purge_of_all("/second", 2);
    for cause in [MessageRefusal::TooLong, MessageRefusal::Truncated, MessageRefusal::Signature] {
        agents[0].until_state(cause.word(), |state| state.counters.refused[cause as usize] > 0);
    }
}

/// A server that says these bytes to everyone, and then only reads.
fn false_server(greeting: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.write_all(greeting.as_bytes());
                let mut bytes = [0; 1024];
                while stream.read(&mut bytes).is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(if greeting.is_empty() { b"" } else { b"PONG\r\n" });
                }
            });
        }
    });
    url
}

#[test]
fn old_server_is_refused_with_its_version() {
    let greeting = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"max_payload\":1048576,\"headers\":true}\r\n";
    let mut agent = Agent::new("a", &false_server(greeting));
    agent.start();
    agent.until_line("nats-server 2.9.10 is too old: 2.12.3 or later is needed");
    assert_eq!(agent.state().server, None);
}

#[test]
fn server_that_never_answers_is_passed_over() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(1);
    let urls = [false_server(""), false_server("garbage\r\n\r\n"), servers.urls()].join(",");
    let mut agents = fleet(&["a", "b"], &urls);
    agents[0].purge_of_all("/x", 2);
}

#[test]
fn other_bytes_from_the_manager_end_the_agent() {
    let mut agent = Agent::new("a", &false_server(""));
    agent.start();
    agent.send_bytes(&[255; 100]);
    assert_eq!(agent.wait(), Some(0));
    agent.start();
    agent.send_bytes(&[0, 0, 0, 2, 99, 99]);
    assert_eq!(agent.wait(), Some(0));
}
