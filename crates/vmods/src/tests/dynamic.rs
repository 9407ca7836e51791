//! dynamic: the settings of objects, and the arguments that are refused.

use super::*;
use backend::dns_names::resolve::Source;
use backend::dns_names::settings::TtlFrom;

const OBJECTS: &[(&str, &str)] = &[("dynamic", "director"), ("dynamic", "resolver")];

/// The constructor's arguments as the compiler completes them.
fn defaults(engine: &mut Engine) -> Vec<Value> {
    let seconds = Value::Duration;
    vec![
        engine.text("http"),
        Value::Absent,
        engine.text("DEFAULT"),
        Value::Absent,
        Value::Absent,
        seconds(3600.0),
        seconds(-1.0),
        seconds(-1.0),
        seconds(-1.0),
        seconds(7200.0),
        seconds(10.0),
        Value::Int(0),
        Value::Int(0),
        Value::Absent,
        engine.text("cfg"),
        seconds(30.0),
        Value::Absent,
        Value::Int(3),
        Value::Absent,
        seconds(-1.0),
        Value::Int(0),
    ]
}

fn make(change: impl FnOnce(&mut Engine, &mut Vec<Value>)) -> Result<Engine, String> {
    let mut engine = Engine::with(Method::Init, OBJECTS);
    let mut arguments = defaults(&mut engine);
    change(&mut engine, &mut arguments);
    match engine.call_on(Some(0), Function::DynamicDirector, &arguments) {
        Ok(_) => Ok(engine),
        Err(failure) => Err(failure.0),
    }
}

#[test]
fn omitted_arguments_have_the_documented_defaults() {
    let engine = make(|_, _| {}).unwrap_or_else(|text| panic!("{text}"));
    let maker = engine.directors.dns_names().maker(0).unwrap();
    let settings = maker.settings();
    assert_eq!((settings.name.as_str(), settings.port.as_str()), ("a_director", "http"));
    assert_eq!((settings.ttl, settings.retry_after, settings.keep), (3600.0, 30.0, 3));
    assert_eq!((settings.source, settings.ttl_from), (Source::System, TtlFrom::Configuration));
    assert!(!settings.is_shared_by_host && settings.connect_timeout.is_none() && settings.via.is_none());
}

#[test]
fn invalid_arguments_are_refused() {
    let cases: [(usize, Value, &str); 8] = [
        (0, Value::Text(Text::EMPTY), "port may not be empty"),
        (5, Value::Duration(0.0), "ttl may not be 0s or less"),
        (9, Value::Duration(0.0), "domain_usage_timeout may not be 0s or less"),
        (10, Value::Duration(f64::NAN), "first_lookup_timeout may not be 0s or less"),
        (11, Value::Int(-1), "max_connections may not be negative"),
        (12, Value::Int(3), "proxy_header must be 0, 1 or 2"),
        (17, Value::Int(-1), "keep may not be negative"),
        (16, Value::Backend(Some(DirectorId(2))), "via must be a backend"),
    ];
    for (place, value, text) in cases {
        let failure = make(|_, arguments| arguments[place] = value).err();
        assert_eq!(failure, Some(format!("dynamic.director(): {text}")));
    }
    let failure = make(|engine, arguments| arguments[14] = engine.text("dns")).err();
    assert_eq!(failure.unwrap(), "dynamic.director(): ttl_from = dns only valid with resolver");
    let failure = make(|engine, arguments| {
        let Value::Text(text) = engine.text("junk") else { panic!() };
        arguments[13] = Value::Blob(text);
    });
    assert_eq!(failure.err().unwrap(), "dynamic.director(): invalid resolver argument");
}

#[test]
fn a_resolver_asks_dns_and_its_size_counts() {
    let engine = make(|engine, arguments| {
        let made = engine.call_on(Some(1), Function::DynamicResolver, &[Value::Bool(true), Value::Int(4)]);
        assert!(made.is_ok());
        let Ok(Called::Value(blob)) = engine.call_on(Some(1), Function::DynamicResolverUse, &[]) else { panic!() };
        arguments[13] = blob;
        arguments[14] = engine.text("min");
        arguments[16] = Value::Backend(Some(DirectorId(0)));
    });
    let engine = engine.unwrap_or_else(|text| panic!("{text}"));
    let maker = engine.directors.dns_names().maker(0).unwrap();
    let settings = maker.settings();
    assert_eq!((settings.source, settings.parallel), (Source::Dns, Some(4)));
    assert_eq!((settings.ttl_from, settings.is_shared_by_host), (TtlFrom::Minimum, true), "by way of another: by host");
    let mut engine = Engine::with(Method::Init, OBJECTS);
    for (from_system, parallel) in [(false, 1), (true, 0), (true, -1)] {
        let arguments = [Value::Bool(from_system), Value::Int(parallel)];
        assert!(engine.call_on(Some(1), Function::DynamicResolver, &arguments).is_err());
    }
}

#[test]
fn settings_of_a_resolver_count_or_say_what_cannot_be_had() {
    let engine = make(|engine, arguments| {
        engine.call_on(Some(1), Function::DynamicResolver, &[Value::Bool(true), Value::Int(16)]).unwrap();
        let words = |engine: &mut Engine, function, word| {
            let word = engine.text(word);
            engine.call_on(Some(1), function, &[word])
        };
        let yes = Ok(Called::Value(Value::Bool(true)));
        for (function, word) in [
            (Function::DynamicResolverResolutionType, "STUB"),
            (Function::DynamicResolverAddNamespace, "DNS"),
            (Function::DynamicResolverAddTransport, "TCP"),
            (Function::DynamicResolverFollowRedirects, "REDIRECTS_FOLLOW"),
        ] {
            assert_eq!(words(engine, function, word), yes, "{word}");
        }
        for (function, word, says) in [
            (Function::DynamicResolverResolutionType, "RECURSING", "use STUB"),
            (Function::DynamicResolverAddNamespace, "MDNS", "leave the resolver out"),
            (Function::DynamicResolverAddTransport, "TLS", "a local forwarder"),
            (Function::DynamicResolverSetTransports, "", "UDP cannot be left out"),
            (Function::DynamicResolverFollowRedirects, "REDIRECTS_DO_NOT_FOLLOW", "aliases are followed"),
        ] {
            let Err(Failure(text)) = words(engine, function, word) else { panic!("{word}") };
            assert!(text.contains(says), "{text}");
        }
        assert_eq!(words(engine, Function::DynamicResolverAddTransport, "UDP"), yes);
        assert_eq!(words(engine, Function::DynamicResolverSetTransports, ""), yes);
        let Ok(Called::Value(blob)) = engine.call_on(Some(1), Function::DynamicResolverUse, &[]) else { panic!() };
        let timeout = [Value::Duration(2.5)];
        assert_eq!(engine.call_on(Some(1), Function::DynamicResolverTimeout, &timeout), yes);
        assert!(engine.call_on(Some(1), Function::DynamicResolverTimeout, &[Value::Duration(0.0)]).is_err());
        assert_eq!(engine.call_on(Some(1), Function::DynamicResolverOutstanding, &[Value::Int(5)]), yes);
        assert!(engine.call_on(Some(1), Function::DynamicResolverOutstanding, &[Value::Int(-1)]).is_err());
        arguments[13] = blob;
    });
    let engine = engine.unwrap_or_else(|text| panic!("{text}"));
    let maker = engine.directors.dns_names().maker(0).unwrap();
    assert_eq!((maker.settings().parallel, maker.settings().lookup_timeout), (Some(5), Some(2.5)));
}

#[test]
fn a_director_refuses_to_let_fetches_wait() {
    for (place, value) in [(19, Value::Duration(1.0)), (20, Value::Int(3))] {
        let failure = make(|_, arguments| arguments[place] = value);
        assert!(failure.err().unwrap().ends_with("no fetch waits for a connection"));
    }
}

#[test]
fn a_name_comes_from_the_argument_or_the_host_header() {
    let mut engine = make(|_, _| {}).unwrap_or_else(|text| panic!("{text}"));
    engine.method = Method::Recv;
    let (nothing, www, port) = (engine.text(""), engine.text("www"), engine.text("8080"));
    let call = |engine: &mut Engine, host, port| match engine.call_on(
        Some(0),
        Function::DynamicDirectorBackend,
        &[host, port, Value::Absent],
    ) {
        Ok(Called::Value(Value::Backend(id))) => id.map(|id| engine.directors.name(id).into_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(call(&mut engine, nothing, nothing), None);
    engine.request.append(b"Host", b"example.com");
    assert_eq!(call(&mut engine, nothing, nothing).unwrap(), "a_director(example.com:http)");
    assert_eq!(call(&mut engine, www, port).unwrap(), "a_director(www:8080)");
    let long = engine.text(&"x".repeat(300));
    assert_eq!(call(&mut engine, long, nothing), None);
    assert_eq!(engine.records, ["VCLError dynamic: host or port is too long to be looked up"]);
    let service = engine.call_on(Some(0), Function::DynamicDirectorService, &[www]);
    assert_eq!(service, Err(Failure("a_director.service(): only valid with resolver".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn on_the_backend_side_the_first_lookup_is_waited_for_but_not_for_ever() {
    let mut engine = make(|_, _| {}).unwrap_or_else(|text| panic!("{text}"));
    engine.method = Method::BackendFetch;
    let (www, nothing) = (engine.text("www"), engine.text(""));
    let start = tokio::time::Instant::now();
    let called = engine.call_on(Some(0), Function::DynamicDirectorBackend, &[www, nothing, Value::Absent]);
    assert_eq!(called, Ok(Called::Wait));
    let finish = engine.pending.take().unwrap().await;
    assert_eq!(start.elapsed().as_secs(), 10, "nobody looks anything up here");
    let value = finish(&mut engine, &mut Scratch::new(100));
    assert!(matches!(value, Ok(Value::Backend(Some(_)))));
}
