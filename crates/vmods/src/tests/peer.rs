//! The client at the other end: what the system and a proxy in front say about it.

use super::*;

#[test]
fn elements_of_a_proxy_header_are_values() {
    let mut engine = Engine::new(Method::Recv);
    let alpn = engine.value(Function::ProxyAlpn, &[]);
    assert_eq!(engine.string(alpn).as_deref(), Some("h2"));
    let authority = engine.value(Function::ProxyAuthority, &[]);
    assert_eq!(engine.string(authority), None);
    assert_eq!(engine.value(Function::ProxyIsSsl, &[]), Value::Bool(true));
    assert_eq!(engine.value(Function::ProxyClientHasCertConn, &[]), Value::Bool(true));
    assert_eq!(engine.value(Function::ProxyClientHasCertSess, &[]), Value::Bool(false));
    assert_eq!(engine.value(Function::ProxySslVerifyResult, &[]), Value::Int(9));
    engine.method = Method::Init;
    assert_eq!(engine.value(Function::ProxyIsSsl, &[]), Value::Bool(false));
}

#[tokio::test]
async fn the_peer_of_a_unix_domain_socket_has_user_and_group() {
    let mut engine = Engine::new(Method::Recv);
    assert_eq!(engine.value(Function::UnixUid, &[]), Value::Int(-1));
    assert_eq!(engine.records, ["VCLError vmod unix error: not listening on a Unix domain socket"]);
    engine.credentials = Some((0, 0));
    assert_eq!(engine.value(Function::UnixGid, &[]), Value::Int(0));
    for name in [Function::UnixUser, Function::UnixGroup] {
        let value = engine.waited(name, &[]).await.unwrap();
        assert_eq!(engine.string(value).as_deref(), Some("root"));
    }
    engine.credentials = Some((u32::MAX - 7, 0));
    let nobody = engine.waited(Function::UnixUser, &[]).await.unwrap();
    assert_eq!(engine.string(nobody), None);
    engine.method = Method::Init;
    let refused = engine.call(Function::UnixUid, &[]).unwrap_err();
    assert_eq!(refused.0, "vmod unix failure: may not be called in vcl_init or vcl_fini");
}
