//! Promises of a fleet, each in a run of its own.

use crate::world::{Odds, World};
use fleet::exchange::{Answer, Loss, Report};
use fleet::memory_folder::MemoryFolder;
use fleet::message::{Acknowledgement, Body, Heartbeat, Listed, Standing, StreamMark, roster_digest};
use fleet::record::{CacheMark, Entry, Kept, Record};
use fleet::{
    Config, Envelope, FleetId, Incarnation, Input, Invalidation, Keeper, Keys, Node, NodeId, Now, Output, Position,
    Serving, Start,
};
use std::collections::VecDeque;
use surface::fleet::{InvalidationKind, MessageRefusal, WhenLost};

fn url(key: usize) -> Invalidation {
    Invalidation::Url { url: format!("/{key}"), is_soft: false }
}

fn in_step(nodes: usize) -> World {
    let mut world = World::new(7, nodes);
    world.heal(60_000);
    // Until the caches are filled.
    world.run(5000);
    world
}

fn drops(world: &World, of: usize) -> u64 {
    world.node(of).counters().drops
}

#[test]
fn wait_ends_with_receipts_of_all_or_names_the_missing() {
    let mut world = in_step(3);
    let request = world.command(0, Invalidation::Prefix { prefix: "/".to_owned(), is_soft: false }, Some(5000));
    world.run(300);
    let (is_complete, receipts) = world.receipts(request);
    assert!(is_complete);
    assert_eq!(receipts.len(), 3);
    assert!(receipts.iter().all(|receipt| receipt.applied_after_ms.is_some() && receipt.objects.unwrap() > 0));
    world.kill(2);
    let request = world.command(1, url(1), Some(5000));
    world.run(4900);
    assert!(!world.answers.contains_key(&request), "it waits");
    world.run(200);
    let (is_complete, receipts) = world.receipts(request);
    assert!(!is_complete);
    let missing: Vec<_> = receipts.iter().filter(|receipt| receipt.applied_after_ms.is_none()).collect();
    assert_eq!(missing.iter().map(|receipt| receipt.node.as_str()).collect::<Vec<_>>(), ["node-2"]);
}

#[test]
fn confirmed_entries_leave_the_outbox() {
    let mut world = in_step(2);
    for _ in 0..500 {
        world.command(0, url(1), None);
    }
    world.run(3000);
    assert_eq!(world.node(0).status().outbox_entries, 0);
    world.kill(1);
    world.command(0, url(1), None);
    world.run(3000);
    assert_eq!(world.node(0).status().outbox_entries, 1, "a member has not confirmed it");
}

#[test]
fn node_that_missed_thousands_catches_up_past_a_wiped_stream_and_drops_nothing() {
    let mut world = in_step(2);
    world.kill(1);
    for _ in 0..100 {
        (0..200).for_each(|number| _ = world.command(0, url(number % 7), None));
        world.run(100);
    }
    world.recreate_stream();
    let before = world.machines[1].cache.get(7);
    world.start(1);
    world.run(5000);
    assert_eq!(world.machines[1].serving, Serving::InStep);
    assert_eq!(drops(&world, 1), 0);
    assert!(before.is_some() && world.machines[1].cache.get(7) == before, "what was not removed is kept");
}

#[test]
fn node_that_was_away_longer_than_the_history_drops_its_objects_and_says_how_many() {
    let mut world = World::new(7, 2);
    world.config = |config| config.history_ms = 60_000;
    world.heal(60_000);
    world.run(5000);
    world.kill(1);
    world.command(0, url(1), None);
    world.run(70_000);
    assert_eq!(world.node(0).status().outbox_entries, 0);
    assert!(world.node(0).counters().unconfirmed_dropped > 0);
    world.recreate_stream();
    let objects = (0..8).filter(|key| world.machines[1].cache.get(*key).is_some()).count() as u64;
    world.start(1);
    world.run(5000);
    assert_eq!(world.machines[1].serving, Serving::InStep);
    assert!(world.dropped(1, Loss::History));
    assert_eq!(world.node(1).counters().rejoin_dropped_objects, objects);
    assert!(objects > 0 && world.machines[1].reports.contains(&Report::Dropped(objects)));
}

#[test]
fn full_outbox_becomes_one_removal_of_everything() {
    let mut world = World::new(7, 2);
    world.config = |config| config.outbox_entries_max = 100;
    world.heal(60_000);
    world.run(5000);
    world.kill(1);
    for _ in 0..50 {
        (0..10).for_each(|_| _ = world.command(0, url(1), None));
        world.run(100);
    }
    assert!(world.node(0).status().outbox_entries <= 100);
    world.recreate_stream();
    world.start(1);
    world.run(5000);
    assert_eq!(world.machines[1].serving, Serving::InStep);
    assert!(world.dropped(1, Loss::History));
}

#[test]
fn removed_node_is_not_waited_for_and_drops_its_objects_when_it_returns() {
    let mut world = in_step(3);
    world.set_side(2, 0);
    world.machines[2].is_expelled = true;
    world.run(1000);
    let request = world.forget(0, 2, Some(5000));
    world.run(1000);
    assert!(world.receipts(request).0, "{:?}", world.answers[&request]);
    let request = world.command(1, url(3), Some(5000));
    world.run(1000);
    let (is_complete, receipts) = world.receipts(request);
    assert!(is_complete && receipts.len() == 2);
    assert!(world.dropped(0, Loss::Forgotten), "its last entries may be lost");
    // It was alive all the time.
    world.set_side(2, 1);
    world.run(5000);
    world.machines[2].is_expelled = false;
    assert_eq!(world.machines[2].serving, Serving::InStep);
    assert!(world.dropped(2, Loss::Expelled));
    let request = world.command(0, url(3), Some(5000));
    world.run(1000);
    assert_eq!(world.receipts(request).1.len(), 3, "it is a member again");
    world.run(20_000);
}

#[test]
fn node_that_leaves_in_order_can_be_forgotten_without_a_loss() {
    let mut world = in_step(3);
    world.leave(2, None);
    world.run(1000);
    assert_eq!(world.machines[2].serving, Serving::Joining, "it passes");
    let request = world.command(2, url(1), None);
    assert!(matches!(world.answers[&request], Answer::Refused(_)));
    world.kill(2);
    let request = world.command(0, url(1), Some(5000));
    world.run(1000);
    assert!(world.receipts(request).0, "it is not waited for");
    let before = [0, 1].map(|of| drops(&world, of));
    world.forget(1, 2, None);
    world.run(1000);
    assert_eq!([0, 1].map(|of| drops(&world, of)), before);
    assert_eq!(world.node(0).status().members.len(), 1);
}

#[test]
fn publisher_with_an_empty_disk_makes_all_drop_what_it_may_have_removed() {
    let mut world = in_step(3);
    world.command(0, url(1), None);
    world.run(1000);
    world.kill(0);
    world.void_promises(0);
    *world.machines[0].files.0.borrow_mut() = Default::default();
    world.start(0);
    world.run(10_000);
    assert!((0..3).all(|of| world.machines[of].serving == Serving::InStep));
    assert!((0..3).all(|of| drops(&world, of) > 0));
    let request = world.command(0, url(1), Some(5000));
    world.run(1000);
    assert!(world.receipts(request).0);
}

#[test]
fn state_that_was_cut_at_any_byte_loses_no_wait() {
    let mut world = in_step(2);
    let bytes = world.machines[1].files.0.borrow_mut().files().find(|file| file.0 == "state").unwrap().1.len();
    for length in (0..bytes).step_by(7) {
        world.kill(1);
        for (name, bytes) in world.machines[1].files.0.borrow_mut().files() {
            if name == "state" {
                bytes.truncate(length);
            }
        }
        let request = world.command(0, url(1), Some(20_000));
        world.heal(60_000);
        world.run(1000);
        assert!(world.receipts(request).0, "{length}");
    }
}

#[test]
fn node_out_of_contact_serves_by_its_policy_and_returns() {
    for when_lost in WhenLost::ALL {
        let may_serve = when_lost != WhenLost::Refuse;
        let mut world = World::new(7, 2);
        world.config = match when_lost {
            WhenLost::Serve => |config| config.when_lost = WhenLost::Serve,
            WhenLost::StaleLimit => |config| config.when_lost = WhenLost::StaleLimit,
            WhenLost::Refuse => |config| config.when_lost = WhenLost::Refuse,
        };
        world.heal(60_000);
        world.set_side(1, 0);
        world.run(9000);
        assert_eq!(world.machines[1].serving, Serving::InStep);
        world.run(2000);
        let serving = world.machines[1].serving;
        assert!(serving != Serving::InStep && serving.may_serve() == may_serve, "{serving:?}");
        assert_eq!(world.node(0).status().members[0].standing, Standing::Missing);
        world.set_side(1, 1);
        world.run(3000);
        assert_eq!(world.machines[1].serving, Serving::InStep);
    }
}

#[test]
fn silent_consumer_and_recreated_stream_are_noticed_within_seconds() {
    let mut world = in_step(2);
    world.silence(1);
    world.command(0, url(1), None);
    world.run(3000);
    assert!(world.node(1).counters().consumers > 0);
    assert_eq!(world.node(1).counters().epochs, 0);
    world.recreate_stream();
    world.run(2000);
    assert!(world.node(1).counters().epochs > 0);
    let request = world.command(0, url(1), Some(1000));
    world.run(1000);
    assert!(world.receipts(request).0);
}

#[test]
fn message_without_a_valid_signature_or_seen_before_is_counted_and_has_no_effect() {
    let mut world = in_step(2);
    world.odds = Odds { forged: 100, ..Odds::default() };
    (0..200).for_each(|_| {
        world.command(0, url(1), None);
        world.run(100);
    });
    let counters = world.node(1).counters();
    for cause in [MessageRefusal::TooLong, MessageRefusal::Signature, MessageRefusal::Truncated, MessageRefusal::Replay]
    {
        assert!(counters.refused[cause as usize] > 0, "{}", cause.word());
    }
    let lines = world.machines[1].reports.iter().filter(|report| matches!(report, Report::Refused(_))).count();
    let refused: u64 = counters.refused.iter().sum();
    assert!(lines as u64 * 5 < refused, "{lines} lines for {refused}");
    assert_eq!(counters.drops, 1, "that of joining");
}

/// A node alone, with a peer that this test plays.
struct Alone {
    node: Node,
    now: Now,
    keys: Keys,
    sent: u64,
}

const PEER: Incarnation = Incarnation(5 << 32);

impl Alone {
    fn new() -> Alone {
        Alone::with(Default::default())
    }

    fn with(kept: Kept) -> Alone {
        let config = Config {
            fleet: FleetId::of_name("shop"),
            node: NodeId::new("a").unwrap(),
            zone: String::new(),
            address: String::new(),
            lost_after_ms: 10_000,
            when_lost: WhenLost::Serve,
            join_timeout_ms: 30_000,
            history_ms: 1_000_000,
            outbox_entries_max: 1000,
            outbox_bytes_max: 1 << 20,
        };
        let keys = Keys::new(&[1; 32], None);
        let now = Now { monotone_ms: 1, wall_ms: 1 };
        let start = Start { random: 1, cache: Default::default(), is_continued: false };
        let node = Node::new(config, keys.clone(), kept, start, now);
        Alone { node, now, keys, sent: 0 }
    }

    fn handle(&mut self, input: Input) -> Vec<Output> {
        self.node.handle(self.now, input);
        std::iter::from_fn(|| self.node.next_output()).collect()
    }

    fn receive(&mut self, incarnation: Incarnation, counter: u64, name: &str, body: Body) -> Vec<Output> {
        let node = NodeId::new(name).unwrap();
        let envelope = Envelope { fleet: FleetId::of_name("shop"), node, incarnation, counter, wall_ms: 0, body };
        let bytes = envelope.seal(&self.keys).unwrap();
        self.handle(Input::Message { bytes, sequence: None })
    }

    fn heartbeat(&mut self, name: &str, incarnation: Incarnation) -> Vec<Output> {
        self.heartbeat_with(name, incarnation, 0, Vec::new())
    }

    /// A heartbeat of a node in step, whose last entry is `last`.
    fn heartbeat_with(&mut self, name: &str, incarnation: Incarnation, last: u64, members: Vec<Listed>) -> Vec<Output> {
        self.sent += 1;
        let incarnation_of_last = if last == 0 { Incarnation::default() } else { incarnation };
        let heartbeat = Heartbeat {
            stream: StreamMark::default(),
            last: Position { counter: last, incarnation: incarnation_of_last },
            is_established: true,
            is_draining: false,
            zone: String::new(),
            address: String::new(),
            members,
        };
        self.receive(incarnation, self.sent, name, Body::Heartbeat(heartbeat))
    }

    /// A line of a list, for a node that has applied nothing.
    fn line(&self, name: &str, incarnation: Incarnation) -> Listed {
        let (node, applied) = (NodeId::new(name).unwrap(), Position::default());
        Listed { node, incarnation, applied, standing: Standing::Present }
    }

    /// This node's line in the list of another, which has its entries up to `applied`.
    fn own_line(&self, applied: u64) -> Listed {
        let incarnation = self.node.status().incarnation;
        let of_entry = if applied == 0 { Incarnation::default() } else { incarnation };
        Listed { applied: Position { counter: applied, incarnation: of_entry }, ..self.line("a", incarnation) }
    }

    /// Carries out writes and applications; returns all other outputs.
    fn settle(&mut self, outputs: Vec<Output>) -> Vec<Output> {
        let (mut todo, mut others) = (VecDeque::from(outputs), Vec::new());
        while let Some(output) = todo.pop_front() {
            match output {
                Output::Write(through, _) => todo.extend(self.handle(Input::Written { through })),
                Output::Apply(id, _) => {
                    todo.extend(self.handle(Input::Applied { id, objects: 1, cache: Default::default() }));
                }
                other => others.push(other),
            }
        }
        others
    }

    /// Time passes; "b" lists this node, and its last entry is `last`.
    fn pass(&mut self, duration_ms: u64, last: u64) -> Vec<Output> {
        let mut all = Vec::new();
        for _ in 0..duration_ms / 100 {
            self.now.monotone_ms += 100;
            let members = vec![self.own_line(0)];
            let outputs = [self.heartbeat_with("b", PEER, last, members), self.handle(Input::Tick)].concat();
            all.extend(self.settle(outputs));
        }
        all
    }

    /// A member of a fleet with "b", in step.
    fn joined() -> Alone {
        let mut alone = Alone::new();
        alone.pass(2000, 0);
        assert_eq!(alone.node.serving(), Serving::InStep);
        alone
    }

    fn entry(&mut self, counter: u64, invalidation: Vec<u8>) -> Vec<Output> {
        let after = if counter == 1 { Incarnation::default() } else { PEER };
        self.receive(PEER, counter, "b", Body::Entry { after, invalidation })
    }
}

fn applied(outputs: &[Output]) -> Vec<Invalidation> {
    let orders = outputs.iter().filter_map(|output| match output {
        Output::Apply(_, invalidation) => Some(invalidation.clone()),
        _ => None,
    });
    orders.collect()
}

#[test]
fn invalidation_of_a_later_version_removes_everything() {
    let mut alone = Alone::new();
    alone.heartbeat("b", PEER);
    assert_eq!(applied(&alone.entry(1, url(1).encode())), [url(1)]);
    assert_eq!(applied(&alone.entry(2, vec![InvalidationKind::ALL.len() as u8, 1, 2])), [Invalidation::Everything]);
}

#[test]
fn ban_that_does_not_compile_removes_everything() {
    let mut alone = Alone::new();
    alone.heartbeat("b", PEER);
    let outputs = alone.entry(1, Invalidation::Ban { expression: "odd".to_owned() }.encode());
    let Some(Output::Apply(id, _)) = outputs.iter().find(|output| matches!(output, Output::Apply(..))) else {
        panic!("{outputs:?}")
    };
    let outputs = alone.handle(Input::NotApplied { id: *id, error: "no".to_owned() });
    assert_eq!(applied(&outputs), [Invalidation::Everything]);
}

#[test]
fn order_that_could_not_be_written_is_refused_and_published_nowhere() {
    let mut alone = Alone::new();
    let outputs = alone.handle(Input::Invalidate { request: 1, invalidation: url(1), wait_ms: None });
    let ticket = outputs.iter().rev().find_map(|output| match output {
        Output::Write(ticket, _) => Some(*ticket),
        _ => None,
    });
    let outputs = alone.handle(Input::NotWritten { ticket: ticket.unwrap(), error: "disk full".to_owned() });
    assert!(matches!(&outputs[0], Output::Answer(1, Answer::Refused(why)) if why.contains("disk full")), "{outputs:?}");
    assert!(applied(&alone.handle(Input::Written { through: ticket.unwrap() })).is_empty());
    let long = Invalidation::Url { url: "x".repeat(64 << 10), is_soft: false };
    let outputs = alone.handle(Input::Invalidate { request: 2, invalidation: long, wait_ms: None });
    assert!(matches!(&outputs[..], [Output::Answer(2, Answer::Refused(_))]), "{outputs:?}");
}

#[test]
fn second_process_with_the_same_name_is_reported_and_nothing_is_served() {
    let mut alone = Alone::new();
    let outputs = alone.heartbeat("a", Incarnation(u64::MAX >> 1));
    assert!(outputs.contains(&Output::Report(Report::NameInUse)));
    alone.handle(Input::Tick);
    assert_eq!(alone.node.serving(), Serving::Joining);
}

#[test]
fn fleet_takes_64_nodes_and_refuses_more() {
    let mut alone = Alone::new();
    for number in 0..63 {
        alone.heartbeat(&format!("n{number}"), PEER);
    }
    assert_eq!(alone.node.counters().refused, [0; MessageRefusal::ALL.len()]);
    alone.heartbeat("one-more", PEER);
    assert_eq!(alone.node.counters().refused[MessageRefusal::TooManyNodes as usize], 1);
}

fn answers(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Answer(..))).count()
}

#[test]
fn confirmation_of_a_member_that_knows_an_unknown_one_does_not_end_a_wait() {
    let mut alone = Alone::joined();
    let outputs = alone.handle(Input::Invalidate { request: 1, invalidation: url(1), wait_ms: Some(5000) });
    assert_eq!(answers(&alone.settle(outputs)), 0);
    let [a, b, c] = ["a", "b", "c"].map(|name| NodeId::new(name).unwrap());
    let applied = alone.own_line(1).applied;
    let acknowledge = |alone: &mut Alone, roster| {
        let acknowledgement = Acknowledgement { publisher: a.clone(), applied, objects: vec![(1, 4)], roster };
        alone.sent += 1;
        let outputs = alone.receive(PEER, alone.sent, "b", Body::Acknowledgement(acknowledgement));
        answers(&alone.settle(outputs))
    };
    assert_eq!(acknowledge(&mut alone, roster_digest([&a, &b, &c].into_iter())), 0, "c was not asked");
    // The list that goes with it: from now on the wait is for c too.
    let members = vec![alone.own_line(1), alone.line("c", PEER)];
    let outputs = alone.heartbeat_with("b", PEER, 0, members);
    assert_eq!(answers(&alone.settle(outputs)), 0);
    assert_eq!(acknowledge(&mut alone, roster_digest([&a, &b, &c].into_iter())), 0);
    let members = vec![alone.own_line(1), alone.line("b", PEER)];
    let outputs = alone.heartbeat_with("c", PEER, 0, members);
    assert_eq!(answers(&alone.settle(outputs)), 1, "all three have it");
}

#[test]
fn node_that_has_not_joined_ends_no_wait_with_0() {
    let mut alone = Alone::new();
    let outputs = alone.handle(Input::Invalidate { request: 1, invalidation: url(1), wait_ms: Some(100) });
    assert_eq!(answers(&alone.settle(outputs)), 0);
    alone.now.monotone_ms += 200;
    let outputs = alone.handle(Input::Tick);
    let answer = alone.settle(outputs).into_iter().find(|output| matches!(output, Output::Answer(..)));
    assert!(
        matches!(&answer, Some(Output::Answer(1, Answer::Waited { is_complete: false, why: Some(_), .. }))),
        "{answer:?}"
    );
}

#[test]
fn node_joins_only_when_a_member_lists_its_run_and_after_removing_what_it_had() {
    let mut alone = Alone::new();
    let old_run = Incarnation(1);
    for _ in 0..200 {
        alone.now.monotone_ms += 100;
        // A replay of a heartbeat from an earlier run.
        let members = vec![alone.line("a", old_run)];
        let outputs = [alone.heartbeat_with("b", PEER, 0, members), alone.handle(Input::Tick)].concat();
        assert!(applied(&outputs).is_empty());
        alone.settle(outputs);
        assert_eq!(alone.node.serving(), Serving::Joining);
    }
    let members = vec![alone.own_line(0)];
    let outputs = [alone.heartbeat_with("b", PEER, 0, members), alone.handle(Input::Tick)].concat();
    assert_eq!(applied(&outputs), [Invalidation::Everything]);
    assert_eq!(alone.node.serving(), Serving::Joining, "not before that is done");
    alone.settle(outputs);
    alone.pass(200, 0);
    assert_eq!(alone.node.serving(), Serving::InStep);
}

#[test]
fn nothing_is_published_or_applied_before_it_is_durable() {
    let mut alone = Alone::joined();
    let outputs = alone.handle(Input::Connected);
    alone.settle(outputs);
    let outputs = alone.handle(Input::Invalidate { request: 1, invalidation: url(1), wait_ms: None });
    assert!(matches!(&outputs[..], [Output::Write(..)]), "{outputs:?}");
    let outputs = alone.settle(outputs);
    assert!(matches!(&outputs[..], [Output::Publish { .. }, Output::Answer(1, Answer::Kept { .. })]), "{outputs:?}");
}

#[test]
fn entry_is_confirmed_only_after_its_position_is_durable() {
    let mut alone = Alone::joined();
    let outputs = alone.entry(1, url(1).encode());
    let [Output::Apply(id, _)] = &outputs[..] else { panic!("{outputs:?}") };
    let outputs = alone.handle(Input::Applied { id: *id, objects: 3, cache: CacheMark::default() });
    let [Output::Write(through, Record::Applied { .. })] = &outputs[..] else { panic!("{outputs:?}") };
    // Nor does a heartbeat tell of it.
    alone.now.monotone_ms += 1000;
    let bytes = alone.handle(Input::Tick).into_iter().find_map(|output| match output {
        Output::Send(_, bytes) => Some(bytes),
        _ => None,
    });
    let envelope = Envelope::open(&bytes.unwrap(), FleetId::of_name("shop"), &alone.keys).unwrap();
    let Body::Heartbeat(heartbeat) = envelope.body else { panic!("{envelope:?}") };
    assert_eq!(heartbeat.members[0].applied, Position::default());
    let outputs = alone.handle(Input::Written { through: *through });
    assert!(matches!(&outputs[..], [Output::Send(..)]), "{outputs:?}");
}

#[test]
fn own_entries_that_the_cache_may_not_have_are_applied_after_a_restart() {
    let (mut keeper, _) = Keeper::open(MemoryFolder::default()).unwrap();
    for counter in 1..=2 {
        let after = if counter == 1 { Incarnation::default() } else { PEER };
        let (position, invalidation) = (Position { counter, incarnation: PEER }, url(counter as usize).encode());
        keeper.write(counter, &Record::Entry(Entry { position, after, wall_ms: 1, invalidation }));
    }
    keeper.sync();
    let (_, kept) = Keeper::open(keeper.into_folder()).unwrap();
    let mut alone = Alone::with(kept);
    let outputs: Vec<Output> = std::iter::from_fn(|| alone.node.next_output()).collect();
    assert_eq!(applied(&outputs), [url(1), url(2)]);
}

#[test]
fn node_passes_when_entries_do_not_come_and_removes_everything_in_the_end() {
    let mut alone = Alone::joined();
    let drops = alone.node.counters().drops;
    alone.pass(9000, 5);
    assert_eq!(alone.node.serving(), Serving::InStep);
    alone.pass(2000, 5);
    assert_eq!(alone.node.serving(), Serving::Behind);
    alone.pass(20_000, 5);
    assert_eq!((alone.node.serving(), alone.node.counters().drops), (Serving::InStep, drops + 1));
}

#[test]
fn publisher_that_gives_a_number_twice_makes_members_remove_everything() {
    let mut alone = Alone::joined();
    let outputs = alone.entry(1, url(1).encode());
    alone.settle(outputs);
    // The publisher has lost entries after 1, and another run has written the next one after them.
    let other = Incarnation(PEER.0 + (1 << 32));
    let body = Body::Entry { after: other, invalidation: url(2).encode() };
    let outputs = alone.receive(other, 2, "b", body);
    let [Output::Apply(id, _)] = &outputs[..] else { panic!("{outputs:?}") };
    let outputs = alone.handle(Input::Applied { id: *id, objects: 0, cache: CacheMark::default() });
    assert_eq!(applied(&outputs), [Invalidation::Everything]);
}
