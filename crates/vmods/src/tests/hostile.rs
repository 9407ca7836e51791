//! The VMODs of the collections, called with arguments from hostile clients.

use super::*;

/// Functions that take texts, by VMOD.
fn functions(vmods: &[&str]) -> Vec<Function> {
    Function::ALL.iter().copied().filter(|function| vmods.contains(&function.row().vmod)).collect()
}

#[test]
fn huge_and_strange_texts_end_in_a_value_or_a_failure() {
    let vmods = [
        "accept",
        "basicauth",
        "crypto",
        "digest",
        "header",
        "jq",
        "json",
        "jwt",
        "querystring",
        "re",
        "str",
        "uuid",
        "var",
        "vsthrottle",
        "ykey",
    ];
    let texts: [Vec<u8>; 6] = [
        vec![b'a'; 80_000],
        b"&?=&".repeat(12_000),
        b"(".repeat(8_000),
        (0..=255).collect(),
        b"q=1;,q=".repeat(8_000),
        b"\\1\\".repeat(12_000),
    ];
    for name in functions(&vmods) {
        for text in &texts {
            let classes = [("re", "regex"), ("querystring", "filter"), ("accept", "rule")];
            let mut engine = Engine::with(Method::Recv, &classes);
            engine.request.append(b"X", b"value");
            let text = Value::Text(engine.scratch.put(text));
            for (instance, constructor) in
                [Function::ReRegex, Function::QuerystringFilter, Function::AcceptRule].into_iter().enumerate()
            {
                engine.call_on(Some(instance as u32), constructor, &[text]).unwrap();
            }
            let instance =
                classes.iter().position(|(vmod, class)| (*vmod, *class) == (name.row().vmod, name.row().class));
            let arguments: Vec<Value> = name
                .row()
                .arguments
                .iter()
                .map(|argument| match argument.kind {
                    surface::vcl::Type::Header => Value::Header(HttpObject::Req, 0),
                    surface::vcl::Type::Http => Value::Http(HttpObject::Req),
                    surface::vcl::Type::Regex => Value::Regex(0),
                    surface::vcl::Type::Int => Value::Int(i64::MAX),
                    surface::vcl::Type::Real => Value::Real(f64::MAX),
                    surface::vcl::Type::Duration => Value::Duration(1e300),
                    surface::vcl::Type::Bool => Value::Bool(true),
                    _ => text,
                })
                .collect();
            for _ in 0..3 {
                let _ = engine.call_on(instance.map(|index| index as u32), name, &arguments);
            }
            assert!(engine.request.memory_bytes() < 3 << 20, "{name:?}");
        }
    }
}

#[test]
fn invalid_expression_is_reported_once() {
    let mut engine = Engine::with(Method::Recv, &[("re", "regex")]);
    let (pattern, subject) = (engine.text("a("), engine.text("a"));
    engine.call_on(Some(0), Function::ReRegex, &[pattern]).unwrap();
    assert_eq!(engine.call_on(Some(0), Function::ReFailed, &[]), Ok(Called::Value(Value::Bool(true))));
    assert_eq!(engine.call_on(Some(0), Function::ReMatch, &[subject]), Ok(Called::Value(Value::Bool(false))));
    let fallback = engine.text("fallback");
    assert_eq!(engine.call_on(Some(0), Function::ReBackref, &[Value::Int(0), fallback]), Ok(Called::Value(fallback)));
    assert_eq!(engine.records, ["VCLError vmod re: error compiling regex: missing closing parenthesis (position 2)"]);
    assert_eq!(engine.call_on(Some(0), Function::ReBackref, &[Value::Int(-1), fallback]), Ok(Called::Value(fallback)));
    assert_eq!(engine.records[1], "VCLError vmod re: backref -1 out of range");
}

#[test]
fn a_header_named_at_run_time_is_a_place_like_others() {
    let mut engine = Engine::new(Method::Recv);
    let (name, value) = (engine.text("X-Made: up"), engine.text("1"));
    let place = engine.value(Function::HeaderDyn, &[Value::Http(HttpObject::Req), name]);
    engine.value(Function::HeaderAppend, &[place, value]);
    engine.value(Function::HeaderAppend, &[place, value]);
    engine.value(Function::StdCollect, &[place, Value::Text(Text::UNSET)]);
    assert_eq!(engine.request.get("x-made"), Some(&b"1, 1"[..]));
    assert_eq!(engine.records, ["ReqHeader X-Made: 1", "ReqHeader X-Made: 1"]);
    let obj = engine.value(Function::HeaderDyn, &[Value::Http(HttpObject::Obj), name]);
    let expected = Failure("header.append(): these headers cannot be changed here".to_owned());
    assert_eq!(engine.call(Function::HeaderAppend, &[obj, value]), Err(expected));
}
