//! debug through the table: the behaviour that Varnish's test cases rely on.

use super::*;

fn value_on(engine: &mut Engine, instance: u32, name: Function, values: &[Value]) -> Value {
    match engine.call_on(Some(instance), name, values) {
        Ok(Called::Value(value)) => value,
        other => panic!("{name:?}: {other:?}"),
    }
}

#[test]
fn texts_are_kept_for_the_task_and_end_with_it() {
    let mut engine = Engine::with(Method::Recv, &[("debug", "obj")]);
    let [foo, bar, empty] = ["foo", "bar", ""].map(|word| engine.text(word));
    engine.value(Function::DebugTestPrivTask, &[foo]);
    let both = engine.value(Function::DebugTestPrivTask, &[bar]);
    assert_eq!(engine.string(both).as_deref(), Some("foo bar"));
    let both = engine.value(Function::DebugTestPrivTask, &[empty]);
    assert_eq!(engine.string(both).as_deref(), Some("foo bar"));
    assert_eq!(engine.records[0], "Debug test_priv_task(0x1000) = 0x1003 (new)");
    let none = value_on(&mut engine, 0, Function::DebugObjTestPrivTask, &[empty]);
    assert_eq!(engine.string(none).as_deref(), Some(""));
    value_on(&mut engine, 0, Function::DebugObjTestPrivTask, &[bar]);
    let kept = value_on(&mut engine, 0, Function::DebugObjTestPrivTask, &[empty]);
    assert_eq!(engine.string(kept).as_deref(), Some("bar"));
    for (given, expected) in [(None, None), (Some(foo), Some("foo")), (Some(bar), Some("foo"))] {
        let text = engine.value(Function::DebugPrivTaskWithOption, &[given.unwrap_or(Value::Absent)]);
        assert_eq!(engine.string(text).as_deref(), expected);
    }
    let notes = Notes::new();
    engine.task.leave(&engine.directors, &notes);
    let said: Vec<String> = notes.take().into_iter().map(|note| note.text).collect();
    assert_eq!(said, ["priv_task_fini(0x1007)", "obj_priv_task_fini(0x1003)"]);
    let gone = engine.value(Function::DebugTestPrivTask, &[empty]);
    assert_eq!(engine.string(gone), None);
}

#[test]
fn objects_show_what_they_were_given() {
    let classes = [("debug", "obj"), ("debug", "obj_opt"), ("debug", "concat"), ("debug", "caller")];
    let mut engine = Engine::with(Method::Init, &classes);
    let [text, two] = ["text", "two"].map(|word| engine.text(word));
    value_on(&mut engine, 0, Function::DebugObj, &[text, two]);
    for (name, expected) in [(Function::DebugObjString, "text"), (Function::DebugObjNumber, "two")] {
        let shown = value_on(&mut engine, 0, name, &[]);
        assert_eq!(engine.string(shown).as_deref(), Some(expected));
    }
    assert_eq!(engine.instances.missing(), Some("a_concat"), "obj_opt need not be made");
    assert!(engine.call_on(Some(1), Function::DebugObjOptMethOpt, &[Value::Absent, Value::Absent]).is_err());
    value_on(&mut engine, 1, Function::DebugObjOpt, &[text, Value::Absent]);
    let all = value_on(&mut engine, 1, Function::DebugObjOptMethOpt, &[Value::Absent, Value::Bool(true)]);
    let expected = "obj a_obj_opt obj_s text obj_b *undef* met_s *undef* met_b true";
    assert_eq!(engine.string(all).as_deref(), Some(expected));
    value_on(&mut engine, 2, Function::DebugConcat, &[Value::Text(Text::UNSET)]);
    let empty = value_on(&mut engine, 2, Function::DebugConcatGet, &[]);
    assert_eq!(engine.string(empty).as_deref(), Some(""));
    value_on(&mut engine, 3, Function::DebugCaller, &[Value::Sub(1)]);
    assert_eq!(engine.instances.missing(), None);
    assert_eq!(value_on(&mut engine, 3, Function::DebugCallerXsub, &[]), Value::Sub(1));
    assert_eq!(engine.call_on(Some(3), Function::DebugCallerCall, &[]), Ok(Called::Sub(1)));
    assert_eq!(engine.call(Function::DebugCheckCall, &[Value::Sub(2)]), Ok(Called::Check(2)));
}

#[test]
fn arguments_patterns_and_headers_are_as_in_varnish() {
    let mut engine = Engine::new(Method::Recv);
    let [one, three, comma] = ["1", "3", ","].map(|word| engine.text(word));
    let all = [one, Value::Real(2.0), three, comma, Value::Int(4), Value::Absent];
    let text = engine.value(Function::DebugArgtest, &all);
    assert_eq!(engine.string(text).as_deref(), Some("1 2 3 , 4 0 <undef>"));
    for (given, expected) in [("a.b", "\\Qa.b\\E"), ("a\\Eb", "\\Qa\\\\EE\\Qb\\E"), ("", "")] {
        let given = engine.text(given);
        let quoted = engine.value(Function::DebugReQuote, &[given]);
        assert_eq!(engine.string(quoted).as_deref(), Some(expected));
    }
    let bad = engine.text("a\nb");
    assert_eq!(engine.value(Function::DebugValidhdr, &[bad]), Value::Bool(false));
    assert_eq!(engine.value(Function::DebugValidhdr, &[one]), Value::Bool(true));
    let place = Value::Header(HttpObject::Req, 0);
    engine.value(Function::DebugSethdr, &[place, one]);
    assert_eq!(engine.request.get("x"), Some(&b"1"[..]));
    assert!(engine.call(Function::DebugSethdr, &[place, bad]).is_err());
    engine.value(Function::DebugRot52, &[Value::Http(HttpObject::Req)]);
    assert_eq!(engine.request.get("Encrypted"), Some(&b"ROT52"[..]));
    assert_eq!(engine.call(Function::DebugFail, &[]), Err(Failure("Forced failure".to_owned())));
    let ip = engine.value(Function::DebugClientIp, &[]);
    assert_eq!(engine.string(ip).as_deref(), Some("192.0.2.7"));
    let address = Value::Ip(Some(([1, 2, 3, 4].into(), 5)));
    engine.value(Function::DebugStoreIp, &[address]);
    assert_eq!(engine.value(Function::DebugGetIp, &[]), address);
}

#[test]
fn backends_are_replaced_and_sockets_checked() {
    let classes = [("debug", "dyn"), ("debug", "dyn_uds"), ("debug", "director")];
    let mut engine = Engine::with(Method::Init, &classes);
    let [host, port, other] = ["127.0.0.1", "80", "::1"].map(|word| engine.text(word));
    value_on(&mut engine, 0, Function::DebugDyn, &[host, port, Value::Absent]);
    let before = value_on(&mut engine, 0, Function::DebugDynBackend, &[]);
    assert_eq!(engine.value(Function::StdHealthy, &[before]), Value::Bool(true));
    value_on(&mut engine, 0, Function::DebugDynRefresh, &[other, port, Value::Absent]);
    let after = value_on(&mut engine, 0, Function::DebugDynBackend, &[]);
    assert_eq!(engine.value(Function::StdHealthy, &[before]), Value::Bool(false));
    assert_eq!(engine.value(Function::StdHealthy, &[after]), Value::Bool(true));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap().to_owned();
    for (path, expected) in [
        (String::new(), "path must be an absolute path: ".to_owned()),
        ("s1.sock".to_owned(), "path must be an absolute path: s1.sock".to_owned()),
        (format!("{path}/none"), format!("Cannot stat path {path}/none: No such file or directory (os error 2)")),
        (path.clone(), format!("{path} is not a socket")),
    ] {
        let path = engine.text(&path);
        let refused = engine.call_on(Some(1), Function::DebugDynUds, &[path]).unwrap_err();
        assert_eq!(refused.0, expected);
    }
    let socket = directory.path().join("sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let path = engine.text(socket.to_str().unwrap());
    value_on(&mut engine, 1, Function::DebugDynUds, &[path]);
    assert_ne!(value_on(&mut engine, 1, Function::DebugDynUdsBackend, &[]), Value::Backend(None));
    value_on(&mut engine, 2, Function::DebugDirector, &[]);
    let failing = value_on(&mut engine, 2, Function::DebugDirectorFail, &[]);
    assert!(engine.call(Function::StdHealthy, &[failing]).is_err());
}
