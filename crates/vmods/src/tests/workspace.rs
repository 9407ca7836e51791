//! vtc: a task with little memory left, and records without another source.

use super::*;

#[test]
fn memory_that_is_taken_is_missing_for_the_rest_of_the_task() {
    let mut engine = Engine::new(Method::Recv);
    let client = engine.text("client");
    let free = |engine: &mut Engine| match engine.value(Function::VtcWorkspaceFree, &[client]) {
        Value::Int(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    let before = free(&mut engine);
    engine.value(Function::VtcWorkspaceSnapshot, &[client]);
    engine.value(Function::VtcWorkspaceAlloc, &[client, Value::Int(1000)]);
    assert_eq!(free(&mut engine), before - 1000);
    engine.value(Function::VtcWorkspaceReset, &[client]);
    assert_eq!(free(&mut engine), before);
    engine.value(Function::VtcWorkspaceAlloc, &[client, Value::Int(-100)]);
    assert_eq!(free(&mut engine), 100);
    assert!(engine.task.taken_bytes() > 1_000_000);
    assert_eq!(engine.value(Function::VtcWorkspaceReserve, &[client, Value::Int(100)]), Value::Bytes(100));
    assert_eq!(engine.value(Function::VtcWorkspaceReserve, &[client, Value::Int(101)]), Value::Bytes(0));
    for size in [0, -101, 101] {
        assert!(engine.call(Function::VtcWorkspaceAlloc, &[client, Value::Int(size)]).is_err(), "{size}");
    }
    assert_eq!(engine.value(Function::VtcWorkspaceOverflowed, &[client]), Value::Bool(false));
    engine.text(&"x".repeat(101));
    assert_eq!(engine.value(Function::VtcWorkspaceOverflowed, &[client]), Value::Bool(true));
    engine.task.clear();
    assert_eq!(engine.task.taken_bytes(), 0);
}

#[test]
fn an_overflow_can_be_pretended() {
    let mut engine = Engine::new(Method::Recv);
    let [client, session] = ["client", "session"].map(|word| engine.text(word));
    engine.value(Function::VtcWorkspaceOverflow, &[session]);
    assert_eq!(engine.value(Function::VtcWorkspaceOverflowed, &[session]), Value::Bool(true));
    assert!(!engine.scratch.overflowed());
    engine.value(Function::VtcWorkspaceOverflow, &[client]);
    assert!(engine.scratch.overflowed());
}

#[test]
fn a_dump_shows_the_strings_so_far_and_no_more() {
    let mut engine = Engine::new(Method::Recv);
    let [client, start, free] = ["client", "s", "f"].map(|word| engine.text(word));
    let dump = |from, offset, length| [client, from, Value::Bytes(offset), Value::Bytes(length)];
    let shown = engine.value(Function::VtcWorkspaceDump, &dump(start, 0, 6));
    assert_eq!(engine.string(shown).as_deref(), Some("client"));
    for values in [dump(free, 0, 64), dump(start, 1 << 20, 64), dump(start, 0, -1), dump(start, 0, 1025)] {
        assert!(engine.call(Function::VtcWorkspaceDump, &values).is_err(), "{values:?}");
    }
}

#[test]
fn records_of_any_transaction_are_written_and_replayed() {
    let mut engine = Engine::new(Method::Init);
    let [tag, side, url] = ["BereqURL", "b", "/x"].map(|word| engine.text(word));
    engine.value(Function::VtcVsl, &[Value::Int(7), tag, side, url]);
    let lines = engine.text("**** v1 vsl| 1001 Begin c req 1000 rxreq\nnothing\n1001 End c \n");
    engine.value(Function::VtcVslReplay, &[lines]);
    assert_eq!(engine.records, ["Backend(7) BereqURL /x", "Client(1001) Begin req 1000 rxreq", "Client(1001) End "]);
    let unknown = engine.text("NoSuchTag");
    for (number, tag, expected) in
        [(7, unknown, "No such tag: NoSuchTag"), (-1, tag, "id out of bounds"), (1 << 30, tag, "id out of bounds")]
    {
        let refused = engine.call(Function::VtcVsl, &[Value::Int(number), tag, side, url]).unwrap_err();
        assert_eq!(refused.0, expected);
    }
}
