//! `-A` files as operators write them, and the messages about mistakes in them.

use super::*;
use std::net::SocketAddr;

fn parsed(text: &str) -> TlsFile {
    parse(text, "f", &mut 0).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[track_caller]
fn refuses(text: &str, line: usize, what: &str) {
    let shown = text.lines().nth(line - 1).unwrap().trim();
    assert_eq!(parse(text, "f", &mut 0).unwrap_err(), format!("-A file 'f' line {line}: {what}\n\t{shown}"), "{text}");
}

fn addresses(frontend: &TlsFrontend) -> Vec<SocketAddr> {
    match &frontend.listener.address {
        ListenAddress::Tcp(addresses) => addresses.clone(),
        ListenAddress::Unix { .. } => Vec::new(),
    }
}

fn certificates(of: &[PemArgument]) -> Vec<(&str, bool)> {
    of.iter().map(|pem| (pem.files.certificate.to_str().unwrap(), pem.is_default)).collect()
}

#[test]
fn frontends_stand_in_one_line_or_in_a_block() {
    let file = parsed(
        r#"
        frontend = "[127.0.0.1]:8443+/own.pem"
        frontend = "*:444"
        frontend = { host = "::1" port = "445" name = "edge" h3 = on acme = "a.example+b.example" }
        frontend = { }
        frontend = "[::1]:0"
        "#,
    );
    let named: Vec<_> = file.frontends.iter().map(|found| found.listener.name.as_str()).collect();
    assert_eq!(named, ["a0", "a1", "edge", "a2", "a3"]);
    assert_eq!(addresses(&file.frontends[0]), ["127.0.0.1:8443".parse().unwrap()]);
    assert_eq!(addresses(&file.frontends[1]), ["0.0.0.0:444".parse().unwrap(), "[::]:444".parse().unwrap()]);
    assert_eq!(addresses(&file.frontends[2]), ["[::1]:445".parse().unwrap()]);
    assert_eq!(addresses(&file.frontends[3])[0].port(), 443);
    assert_eq!(addresses(&file.frontends[4]), ["[::1]:0".parse().unwrap()]);
    assert_eq!(certificates(&file.frontends[0].certificates), [("/own.pem", true)]);
    assert_eq!(file.frontends[2].listener.acme, [["a.example".to_owned(), "b.example".to_owned()]]);
    assert!(file.frontends.iter().all(|found| found.listener.tls && !found.listener.proxy));
    let http3: Vec<bool> = file.frontends.iter().map(|found| found.listener.http3).collect();
    assert_eq!(http3, [false, false, true, false, false]);
}

#[test]
fn the_last_certificate_of_a_level_is_its_default() {
    let file = parsed(
        r#"
        pem-file = "/one.pem"
        pem-file = { cert = "/two.pem" private-key = "/two.key" name = "second" ocsp-resp-file = "/two.der" }
        frontend = { pem-file = "/a.pem" pem-file = "/b.pem" match-global-certs = yes }
        frontend = ":444"
        "#,
    );
    assert_eq!(certificates(&file.certificates), [("/one.pem", false), ("/two.pem", true)]);
    let second = &file.certificates[1];
    assert_eq!((second.name.as_deref(), second.files.key_path()), (Some("second"), Path::new("/two.key")));
    assert_eq!(second.files.ocsp.as_deref(), Some(Path::new("/two.der")));
    assert_eq!(certificates(&file.frontends[0].certificates), [("/a.pem", false), ("/b.pem", true)]);
    assert!(file.frontends[0].matches_global && !file.frontends[1].matches_global);
    assert!(file.frontends[1].certificates.is_empty());
}

#[test]
fn a_folder_gives_its_certificates_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.pem", "a.pem", "a.pem.ocsp", "notes.txt"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let shown = folder.path().display();
    let names = |text: &str| -> Vec<(String, bool)> {
        let file = parsed(&format!("frontend = \":1\" {text}"));
        let name = |pem: &PemArgument| pem.files.certificate.file_name().unwrap().to_str().unwrap().to_owned();
        file.certificates.iter().map(|pem| (name(pem), pem.is_default)).collect()
    };
    let own = |all: &[(&str, bool)]| -> Vec<(String, bool)> {
        all.iter().map(|(name, default)| ((*name).to_owned(), *default)).collect()
    };
    let with_glob = format!("pem-dir-glob = \"*.pem\" pem-dir = \"{shown}\"");
    assert_eq!(names(&with_glob), own(&[("a.pem", true), ("b.pem", false)]));
    let without = format!("pem-dir = \"{shown}\" pem-file = \"/x.pem\"");
    let expected = own(&[("a.pem", false), ("b.pem", false), ("notes.txt", false), ("x.pem", true)]);
    assert_eq!(names(&without), expected);
}

#[test]
fn global_settings_apply_to_frontends_without_their_own() {
    let file = parsed(
        r#"
        frontend = ":1"
        frontend = { port = "2" tls-protos = TLSv1.2 sni-nomatch-abort = off ciphers = "ECDHE-RSA-AES128-GCM-SHA256"
                     early-data = on client-verify = none }
        sni-nomatch-abort = on
        prefer-server-ciphers = on
        tls-protos = TLSv1.3 TLSv1.1
        client-verify = required
        client-verify-ca = "/ca.pem"
        "#,
    );
    let (first, second) = (&file.frontends[0], &file.frontends[1]);
    assert!(first.settings.aborts_unknown_names && !second.settings.aborts_unknown_names);
    assert!(first.settings.prefers_own_order && second.settings.prefers_own_order);
    assert_eq!((first.settings.tls12, first.settings.tls13), (false, true));
    assert_eq!((second.settings.tls12, second.settings.tls13), (true, false));
    assert_eq!(first.settings.suites, Vec::<String>::new());
    assert_eq!(second.settings.suites.last().unwrap(), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    assert_eq!(second.settings.suites.len(), 4, "those of TLS 1.3 and the one that is named");
    assert!(!first.settings.early_data && second.settings.early_data);
    let required = Authorities { file: "/ca.pem".into(), demand: ClientDemand::Required };
    assert_eq!((first.authorities.as_ref(), second.authorities.as_ref()), (Some(&required), None));
    assert_eq!(file.notes, ["f line 7: TLSv1.1 is not spoken any more"]);
}

#[test]
fn a_hitch_conf_works_as_it_is() {
    let file = parsed(
        r#"
        # Run 'man hitch.conf' for a description of all options.
        frontend = {
            host = "*"
            port = "443"
        }
        backend = "[127.0.0.1]:6086"    # 6086 is the default Varnish PROXY port.
        workers = 4                     # number of CPU cores
        daemon = on
        user = "_hitch"
        group = "_hitch"
        alpn-protos = "h2, http/1.1"
        write-proxy-v2 = on
        ecdh-curve = "X25519:prime256v1"
        pem-file = "/etc/hitch/testcert.pem"
        "#,
    );
    let meaningless = "alpn-protos, backend, daemon, ecdh-curve, group, user, workers, write-proxy-v2";
    assert_eq!(file.notes, [format!("f: these mean nothing here: {meaningless}")]);
    assert!(parsed("frontend = \":1\" proxy-proxy = on").frontends[0].listener.proxy);
}

#[test]
fn mistake_is_reported_with_the_line_and_its_text() {
    assert_eq!(parse("pem-file = \"x\"", "f", &mut 0), Err("-A file 'f' has no frontend".to_owned()));
    refuses("frontend = \":1\"\nfoo = 1", 2, "unknown key 'foo'");
    refuses("frontend = {\n  workers = 1\n  backlog }", 3, "'=' is missing after 'backlog'");
    refuses("frontend = {\n  pem-dir = \"/\" }", 2, "unknown key 'pem-dir'");
    refuses("frontend = \"443\"", 1, "a frontend is \"HOST:PORT\"");
    refuses("frontend = \"no-such-host.invalid:443\"", 1, "Got no socket(s) for no-such-host.invalid:443");
    refuses("ciphers = \"RC4\"", 1, "Invalid cipher list");
    refuses("frontend = { ciphersuites = \"ROT13\" }", 1, "Invalid ciphersuites");
    refuses("pem-file = {\n cert = \"x\"\n ciphers = \"ROT13\" }", 3, "Invalid cipher list");
    refuses("pem-file = { private-key = \"x\" }", 1, "'cert' is missing in a pem-file");
    refuses("pem-file = { cert = \"x\"\nkey = \"y\" }", 2, "unknown key 'key' in a pem-file");
    refuses("pem-file = \"\"", 1, "'pem-file' is empty");
    refuses("tls-protos = TLSv1.4", 1, "unknown protocol 'TLSv1.4'");
    let none = "neither TLSv1.2 nor TLSv1.3 is allowed, and nothing older is spoken";
    refuses("tls-protos = SSLv3 TLSv1.1", 1, none);
    refuses("sni-nomatch-abort = perhaps", 1, "'sni-nomatch-abort' is on or off");
    refuses("sni-nomatch-abort = on off", 1, "'sni-nomatch-abort' takes one value");
    refuses("client-verify = maybe", 1, "'client-verify' is none, optional or required");
    refuses("frontend = { client-verify = optional }", 1, "'client-verify' needs 'client-verify-ca'");
    refuses("h3 = on\nfrontend = { host = \"/s\" }", 2, "h3 needs an IP address");
    let both = "h3 and proxy-proxy exclude each other: there is no such header over UDP";
    refuses("frontend = { h3 = on }\nproxy-proxy = on", 1, both);
    refuses("frontend = { name = \"a b\" }", 1, "'a b' is no name: letters, digits and _ - . make one");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let refused = |path: &str| read(Path::new(path), &mut 0).unwrap_err();
    assert_eq!(refused("/nonexistent"), "Cannot read -A file '/nonexistent' (No such file or directory)");
    assert_eq!(refused("/"), "Cannot read -A file '/' (Is a directory)");
}
