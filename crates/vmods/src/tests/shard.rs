//! The shard director through its VCL methods: the places of permitted arguments, and the errors
//! for wrong ones.

use super::*;

const SHARD: Option<u32> = Some(0);
const SET: Option<u32> = Some(1);

/// The shard director `a_shard` with b0 and b1, and the set `a_shard_param`.
fn ready(method: Method) -> Engine {
    let mut engine = Engine::with(Method::Init, &[("directors", "shard"), ("directors", "shard_param")]);
    engine.call_on(SHARD, Function::Shard, &[]).unwrap();
    engine.call_on(SET, Function::ShardParam, &[]).unwrap();
    for backend in [0, 1] {
        let added = engine.call_on(SHARD, Function::ShardAddBackend, &add(backend));
        assert_eq!(added, Ok(Called::Value(Value::Bool(true))));
    }
    assert_eq!(reconfigure(&mut engine, 25), Value::Bool(true));
    engine.method = method;
    engine
}

fn add(backend: u32) -> [Value; 4] {
    [Value::Backend(Some(DirectorId(backend))), Value::Absent, Value::Absent, Value::Absent]
}

fn reconfigure(engine: &mut Engine, replicas: i64) -> Value {
    value(engine.call_on(SHARD, Function::ShardReconfigure, &[Value::Int(replicas)]))
}

fn value(called: Result<Called, Failure>) -> Value {
    match called {
        Ok(Called::Value(value)) => value,
        other => panic!("{other:?}"),
    }
}

/// The arguments of `.backend()`, all left out except those given by position.
fn arguments(given: &[(usize, Value)]) -> [Value; 9] {
    let mut all = [Value::Absent; 9];
    for (place, value) in given {
        all[*place] = *value;
    }
    all
}

fn backend(engine: &mut Engine, given: &[(usize, Value)]) -> Result<Called, Failure> {
    engine.call_on(SHARD, Function::ShardBackend, &arguments(given))
}

fn refusal(called: Result<Called, Failure>) -> String {
    called.unwrap_err().0
}

/// The word `by`, and a key.
fn by_key(engine: &mut Engine, key: i64) -> Vec<(usize, Value)> {
    vec![(0, engine.text("KEY")), (1, Value::Int(key))]
}

#[test]
fn a_key_chooses_at_once_on_both_sides() {
    for method in [Method::Recv, Method::BackendFetch] {
        let mut engine = ready(method);
        // With three backends and 25 replicas these fall to s1 and s2; b0 and b1 have points of
        // their own.
        let chosen: Vec<Value> = [1, 0x7fff_ffff, 0xffff_ffff]
            .map(|key| {
                let given = by_key(&mut engine, key);
                value(backend(&mut engine, &given))
            })
            .to_vec();
        assert!(chosen.iter().all(|it| matches!(it, Value::Backend(Some(DirectorId(0 | 1))))), "{chosen:?}");
    }
}

#[test]
fn a_lazy_call_leaves_its_arguments_for_the_time_of_use() {
    let mut engine = ready(Method::BackendFetch);
    let id = engine.directors.object_id(0);
    let lazy = engine.text("LAZY");
    let resolved = |engine: &Engine| {
        let notes = Notes::new();
        let context = engine.resolve_context(&notes);
        engine.directors.resolve(Some(id), &context).unwrap().backend.name().to_owned()
    };
    let mut names = Vec::new();
    for key in [3, 0x4000_0000, 0x8000_0000, 0xc000_0000, 0xffff_ffff] {
        let mut given = by_key(&mut engine, key);
        let now = value(backend(&mut engine, &given));
        given.push((8, lazy));
        assert_eq!(value(backend(&mut engine, &given)), Value::Backend(Some(id)));
        let Value::Backend(Some(now)) = now else { panic!("{now:?}") };
        assert_eq!(resolved(&engine), engine.directors.name(now));
        names.push(resolved(&engine));
    }
    assert!(names.contains(&"b0".to_owned()) && names.contains(&"b1".to_owned()), "{names:?}");
}

#[test]
fn sets_count_below_arguments_and_for_the_task_alone_outside_vcl_init() {
    let mut engine = ready(Method::Init);
    let set = |engine: &mut Engine, given: &[(usize, Value)]| {
        let all = arguments(given);
        engine.call_on(SET, Function::ShardParamSet, &all[..7])
    };
    let get = |engine: &mut Engine, name| value(engine.call_on(SET, name, &[]));
    let key_9 = by_key(&mut engine, 9);
    set(&mut engine, &key_9).unwrap();
    let used = get(&mut engine, Function::ShardParamUse);
    engine.call_on(SHARD, Function::ShardAssociate, &[used]).unwrap();
    assert_eq!(get(&mut engine, Function::ShardParamGetKey), Value::Int(9));
    engine.method = Method::Recv;
    let text = refusal(set(&mut engine, &key_9));
    assert!(text.ends_with("shard_param.set() may only be used in vcl_init and in backend/pipe context"), "{text}");
    engine.method = Method::BackendFetch;
    set(&mut engine, &[(3, Value::Int(1)), (5, Value::Bool(false))]).unwrap();
    assert_eq!(get(&mut engine, Function::ShardParamGetAlt), Value::Int(1));
    assert_eq!(get(&mut engine, Function::ShardParamGetKey), Value::Int(9), "from the set itself");
    assert_eq!(get(&mut engine, Function::ShardParamGetRampup), Value::Bool(false));
    assert_eq!(get(&mut engine, Function::ShardParamGetWarmup), Value::Real(-1.0));
    let by = get(&mut engine, Function::ShardParamGetBy);
    assert_eq!(engine.string(by).unwrap(), "KEY");
    let healthy = get(&mut engine, Function::ShardParamGetHealthy);
    assert_eq!(engine.string(healthy).unwrap(), "CHOSEN");
    engine.call_on(SET, Function::ShardParamClear, &[]).unwrap();
    assert_eq!(get(&mut engine, Function::ShardParamGetAlt), Value::Int(0));
    engine.task.clear();
    assert_eq!(get(&mut engine, Function::ShardParamGetKey), Value::Int(9));
    let forged = engine.text("copal shard set\0");
    assert!(refusal(engine.call_on(SHARD, Function::ShardAssociate, &[forged])).contains("param invalid"));
}

#[test]
fn wrong_arguments_are_named() {
    let mut engine = ready(Method::Recv);
    let word = |engine: &mut Engine, text: &str| engine.text(text);
    let (key, blob, url, lazy) =
        (word(&mut engine, "KEY"), word(&mut engine, "BLOB"), word(&mut engine, "URL"), word(&mut engine, "LAZY"));
    for (given, expected) in [
        (vec![(0, key)], "shard.backend() missing key argument with by=KEY"),
        (vec![(0, key), (1, Value::Int(-1))], "shard.backend() invalid key argument -1 with by=KEY"),
        (vec![(0, key), (1, Value::Int(1 << 32))], "shard.backend() invalid key argument 4294967296 with by=KEY"),
        (vec![(0, blob)], "shard.backend() missing key_blob argument with by=BLOB"),
        (vec![(1, Value::Int(1))], "shard.backend() key and key_blob arguments are invalid with by=HASH"),
        (vec![(0, url), (1, Value::Int(1))], "shard.backend() key and key_blob arguments are invalid with by=URL"),
        (vec![(3, Value::Int(-1))], "shard.backend() invalid alt argument -1"),
        (vec![(4, Value::Real(1.1))], "shard.backend() invalid warmup argument 1.100000"),
        (
            vec![(8, lazy), (3, Value::Int(1))],
            ".backend(resolve=LAZY) with other parameters can only be used in backend/pipe context",
        ),
    ] {
        assert_eq!(refusal(backend(&mut engine, &given)), format!("vmod_directors: shard a_shard: {expected}"));
    }
    let empty = Value::Blob(Text::EMPTY);
    value(backend(&mut engine, &[(0, blob), (2, empty)]));
    assert!(engine.records[0].ends_with("by=BLOB but no or empty key_blob - using key 0"), "{:?}", engine.records);
    engine.method = Method::Init;
    assert_eq!(value(backend(&mut engine, &[])), Value::Backend(Some(engine.directors.object_id(0))));
    let now = engine.text("NOW");
    assert!(refusal(backend(&mut engine, &[(8, now)])).ends_with("can not be used in vcl_init{}/vcl_fini{}"));
}

#[test]
fn changes_wait_for_reconfigure_or_for_the_end_of_the_task() {
    let mut engine = ready(Method::Init);
    assert_eq!(reconfigure(&mut engine, 0), Value::Bool(false));
    assert_eq!(engine.records, ["Error vmod_directors: shard a_shard: .reconfigure() invalid replicas argument 0"]);
    let id = engine.directors.object_id(0);
    let b0 = [Value::Backend(Some(DirectorId(0))), Value::Absent];
    engine.call_on(SHARD, Function::ShardRemoveBackend, &b0).unwrap();
    let members = |engine: &Engine| engine.directors.director(id).unwrap().members().len();
    assert_eq!(members(&engine), 2);
    let notes = Notes::new();
    engine.task.leave(&engine.directors, &notes);
    assert_eq!(members(&engine), 1);
    let neither = [Value::Absent, Value::Absent];
    let text = refusal(engine.call_on(SHARD, Function::ShardRemoveBackend, &neither));
    assert!(text.ends_with(".remove_backend(): either backend or ident are required"));
    engine.call_on(SHARD, Function::ShardClear, &[]).unwrap();
    assert_eq!(reconfigure(&mut engine, 67), Value::Bool(false));
    let weak = [Value::Backend(Some(DirectorId(0))), Value::Absent, Value::Absent, Value::Real(0.3)];
    engine.call_on(SHARD, Function::ShardAddBackend, &weak).unwrap();
    assert!(
        engine
            .records
            .contains(&"Notice vmod_directors: shard a_shard: .add_backend(weight=0.300000) ignored".to_owned())
    );
}
