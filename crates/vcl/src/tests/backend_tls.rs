//! Tests of the TLS attributes of a backend.

use super::{Files, compile_with};
use rcgen::{CertificateParams, KeyPair};
use vcl_run::program::{BackendDefinition, Endpoint, TlsDefinition};

fn backend(attributes: &str, files: &Files, follows_rfc: bool) -> BackendDefinition {
    let text = format!("vcl 4.1; backend default {{ {attributes} }}");
    let compiled = compile_with(text.as_bytes(), files, |options| options.follows_rfc = follows_rfc);
    compiled.unwrap_or_else(|error| panic!("{text}\n{}", error.text)).program.backends[0].clone()
}

fn tls(attributes: &str) -> TlsDefinition {
    *backend(attributes, &Files::default(), false).tls.unwrap()
}

fn port(definition: &BackendDefinition) -> u16 {
    let Endpoint::Ip { v4: Some(address), .. } = definition.endpoint else { panic!("{definition:?}") };
    address.port()
}

/// A certificate and its key, in PEM.
fn made() -> (&'static str, &'static str) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem().leak(), key.serialize_pem().leak())
}

#[test]
fn the_port_is_443_unless_it_is_given() {
    let port = |attributes: &str| port(&backend(attributes, &Files::default(), false));
    assert_eq!(port(".host = \"192.0.2.1\"; .ssl = 1;"), 443);
    assert_eq!(port(".host = \"192.0.2.1\"; .ssl = 0;"), 80);
    assert_eq!(port(".host = \"192.0.2.1:8443\"; .ssl = 1;"), 8443);
    assert_eq!(port(".host = \"192.0.2.1\"; .port = \"8444\"; .ssl = true;"), 8444);
}

#[test]
fn the_name_is_that_of_ssl_name_or_host_header_or_host_and_never_an_address() {
    let named = |attributes: &str| {
        let tls = tls(attributes);
        (tls.server_name, tls.host)
    };
    let both = |name: &str| (Some(name.to_owned()), name.to_owned());
    assert_eq!(named(".host = \"one.example\"; .ssl = 1;"), both("one.example"));
    assert_eq!(named(".host = \"one.example\"; .host_header = \"www.example:8443\"; .ssl = 1;"), both("www.example"));
    let all = ".host = \"one.example\"; .host_header = \"www.example\"; .ssl = 1; .ssl_name = \"x.example\";";
    assert_eq!(named(all), both("x.example"));
    assert_eq!(named(".host = \"192.0.2.1\"; .ssl = 1;"), (None, "192.0.2.1".to_owned()));
    assert_eq!(named(".host = \"[2001:db8::1]:443\"; .ssl = 1;"), (None, "2001:db8::1".to_owned()));
    assert_eq!(named(".host = \"one.example\"; .ssl = 1; .ssl_nosni = 1;"), (None, "one.example".to_owned()));
    assert_eq!(named(".host = \"one.example\"; .ssl = 1; .ssl_sni = 0;"), (None, "one.example".to_owned()));
    assert_eq!(named(".host = \"one.example\"; .host_header = \"www.example.\"; .ssl = 1;"), both("www.example"));
}

#[test]
fn the_chain_is_verified_unless_vcl_says_no_and_the_name_if_it_or_the_policy_says_so() {
    let verified = |more: &str, follows_rfc: bool| {
        let attributes = format!(".host = \"one.example\"; .ssl = 1; {more}");
        let tls = backend(&attributes, &Files::default(), follows_rfc).tls.unwrap();
        (tls.verify_peer, tls.verify_host)
    };
    for (more, under_varnish, under_rfc) in [
        ("", (true, false), (true, true)),
        (".ssl_verify_host = 1;", (true, true), (true, true)),
        (".ssl_verify_host = 0;", (true, false), (true, false)),
        (".ssl_name = \"x.example\";", (true, true), (true, true)),
        (".ssl_name = \"x.example\"; .ssl_verify_host = 0;", (true, false), (true, false)),
        (".ssl_noverify = 1;", (false, false), (false, false)),
        (".ssl_verify_peer = 0;", (false, false), (false, false)),
        (".ssl_noverify = 0; .ssl_verify_peer = 1;", (true, false), (true, true)),
        (".ssl_noverify = 1; .ssl_verify_host = 1;", (false, true), (false, true)),
    ] {
        assert_eq!(verified(more, false), under_varnish, "{more}");
        assert_eq!(verified(more, true), under_rfc, "{more}");
    }
}

#[test]
fn certificates_and_keys_are_in_the_program_and_the_key_is_never_printed() {
    let ((certificate, key), (other, foreign)) = (made(), made());
    let both: &str = format!("{certificate}{key}").leak();
    let chain: &str = format!("{certificate}{other}").leak();
    let files = || {
        let all = [("/c", certificate), ("/k", key), ("/both", both), ("/ca", chain), ("/foreign", foreign)];
        Files(all.into_iter().collect())
    };
    let of = |more: &str| {
        let attributes = format!(".host = \"one.example\"; .ssl = 1; .ssl_ca = \"/ca\"; {more}");
        backend(&attributes, &files(), false).tls.unwrap()
    };
    let apart = of(".ssl_cert = \"/c\"; .ssl_key = \"/k\";");
    assert_eq!(apart, of(".ssl_cert = \"/both\";"));
    assert_eq!(apart.authorities.len(), 2);
    let client = apart.client.as_ref().unwrap();
    assert_eq!((client.chain.len(), client.key.is_empty()), (1, false));
    assert!(format!("{apart:?}").contains("ClientIdentity"));
    let printed = format!("{:?}", client.key);
    assert!(!format!("{apart:?}").contains(printed.trim_matches(['[', ']'])));
    let text =
        "vcl 4.1; backend default { .host = \"one.example\"; .ssl = 1; .ssl_cert = \"/c\"; .ssl_key = \"/foreign\"; }";
    let error = compile_with(text.as_bytes(), &files(), |_| {}).unwrap_err();
    assert!(error.text.contains("'\"/foreign\"': key and certificate mismatch"), "{}", error.text);
    let text = "vcl 4.1; backend default { .host = \"one.example\"; .ssl = 1; .ssl_cert = \"/c\"; }";
    let error = compile_with(text.as_bytes(), &files(), |_| {}).unwrap_err();
    assert!(error.text.contains("'\"/c\"': no private key in it"), "{}", error.text);
}
