//! Blobs as values: their addresses, their ends as strings, and the errors for invalid ones.

use super::*;

#[test]
fn an_object_keeps_its_bytes_at_one_place_during_a_method() {
    let mut engine = Engine::with(Method::Init, &[("blob", "blob"), ("blob", "blob")]);
    let [identity, text] = ["IDENTITY", "foobar"].map(|word| engine.text(word));
    let get = |engine: &mut Engine, number| match engine.call_on(Some(number), Function::BlobGet, &[]) {
        Ok(Called::Value(value)) => value,
        other => panic!("{other:?}"),
    };
    for number in [0, 1] {
        engine.call_on(Some(number), Function::Blob, &[identity, text]).unwrap();
    }
    let (one, again, other) = (get(&mut engine, 0), get(&mut engine, 0), get(&mut engine, 1));
    assert_eq!(engine.value(Function::BlobSame, &[one, again]), Value::Bool(true));
    assert_eq!(engine.value(Function::BlobSame, &[one, other]), Value::Bool(false));
    assert_eq!(engine.value(Function::BlobEqual, &[one, other]), Value::Bool(true));
    let all = engine.value(Function::BlobSub, &[one, Value::Bytes(6), Value::Bytes(0)]);
    assert_eq!(engine.value(Function::BlobSame, &[one, all]), Value::Bool(true));
    engine.scratch.clear(1 << 20);
    let next = get(&mut engine, 1);
    assert_eq!(engine.string(next).as_deref(), Some("foobar"), "in the next method it is put down anew");
}

#[test]
fn a_string_ends_at_the_first_nul_of_a_blob() {
    let mut engine = Engine::new(Method::Recv);
    let [hex, identity, default, encoded] = ["HEX", "IDENTITY", "DEFAULT", "610062"].map(|word| engine.text(word));
    let text = engine.value(Function::BlobTranscode, &[hex, identity, default, Value::Int(0), encoded]);
    assert_eq!(engine.string(text).as_deref(), Some("a"));
    let blob = engine.value(Function::BlobDecode, &[hex, Value::Int(0), encoded]);
    assert_eq!(engine.value(Function::BlobLength, &[blob]), Value::Int(3));
    let text = engine.value(Function::BlobEncode, &[identity, default, blob]);
    assert_eq!(engine.string(text).as_deref(), Some("a"));
}

#[test]
fn an_object_that_cannot_be_made_is_named() {
    let mut engine = Engine::with(Method::Init, &[("blob", "blob")]);
    let [hex, text] = ["HEX", "g"].map(|word| engine.text(word));
    let refused = engine.call_on(Some(0), Function::Blob, &[hex, text]).unwrap_err();
    assert_eq!(refused.0, "vmod blob error: cannot create blob a_blob, illegal encoding beginning with \"g\"");
}
