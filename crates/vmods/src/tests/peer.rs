//! The client as peer: information from the system and from a proxy in front.

use super::*;
use http2::ResetLimits;

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

#[test]
fn the_limits_of_an_http2_connection_are_read_and_set() {
    let mut engine = Engine::new(Method::Recv);
    assert_eq!(engine.value(Function::H2Is, &[]), Value::Bool(false));
    assert_eq!(engine.value(Function::H2RapidResetLimit, &[Value::Int(5)]), Value::Int(-1));
    assert_eq!(engine.value(Function::H2RapidReset, &[]), Value::Duration(-1.0));
    assert_eq!(engine.value(Function::H2RapidResetBudget, &[]), Value::Real(-1.0));

    engine.resets = Some(Resets::new(ResetLimits { rapid: 1.0, limit: 100, period: 60.0 }));
    assert_eq!(engine.value(Function::H2Is, &[]), Value::Bool(true));
    assert_eq!(engine.value(Function::H2RapidResetLimit, &[Value::Int(5)]), Value::Int(100), "the one before");
    assert_eq!(engine.value(Function::H2RapidResetLimit, &[]), Value::Int(5));
    assert_eq!(engine.value(Function::H2RapidResetBudget, &[]), Value::Real(5.0));
    assert_eq!(engine.value(Function::H2RapidReset, &[Value::Duration(2.0)]), Value::Duration(1.0));
    assert_eq!(engine.value(Function::H2RapidResetPeriod, &[Value::Duration(3.0)]), Value::Duration(60.0));
    let limits = engine.resets.as_ref().unwrap().limits();
    assert_eq!(limits, ResetLimits { rapid: 2.0, limit: 5, period: 3.0 });
}

#[test]
fn tls_facts_are_available_and_unset_in_clear() {
    let mut engine = Engine::new(Method::Deliver);
    assert_eq!(engine.value(Function::TlsIsTls, &[]), Value::Bool(false));
    let version = engine.value(Function::TlsVersion, &[]);
    assert_eq!(engine.string(version), None);
    engine.tls = Some(vcl_run::tls::TlsFacts {
        version: "TLSv1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        server_name: Some("a.example".into()),
        is_resumed: true,
        client_certificate: Some(Box::new(vcl_run::tls::ClientCertificate {
            subject: "CN=somebody".into(),
            ..Default::default()
        })),
        ..Default::default()
    });
    assert_eq!(engine.value(Function::TlsIsTls, &[]), Value::Bool(true));
    assert_eq!(engine.value(Function::TlsIsResumed, &[]), Value::Bool(true));
    assert_eq!(engine.value(Function::TlsIsEarly, &[]), Value::Bool(false));
    for (function, text) in [
        (Function::TlsVersion, Some("TLSv1.3")),
        (Function::TlsCipher, Some("TLS_AES_128_GCM_SHA256")),
        (Function::TlsAuthority, Some("a.example")),
        (Function::TlsAlpn, None),
        (Function::TlsClientCertSubject, Some("CN=somebody")),
    ] {
        let value = engine.value(function, &[]);
        assert_eq!(engine.string(value).as_deref(), text, "{function:?}");
    }
    // Once the origin has answered, the functions refer to its connection.
    engine.method = Method::BackendResponse;
    assert_eq!(engine.value(Function::TlsIsTls, &[]), Value::Bool(false));
}
