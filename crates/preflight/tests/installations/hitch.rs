//! Conversion of hitch.conf to `-A`.

use crate::{Installation, SMALL_VCL, has, said};

fn pem(name: &str) -> String {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    made.cert.pem() + &made.signing_key.serialize_pem()
}

const CONF: &str = "\
# hitch in front of Varnish
frontend = {
    host = \"127.0.0.1\"
    port = \"8443\"
}
backend = \"[127.0.0.1]:6086\"    # 6086 is the default Varnish PROXY port.
workers = 4
daemon = on
user = \"_hitch\"
write-proxy-v2 = on
alpn-protos = \"h2, http/1.1\"
tls-protos = TLSv1.1 TLSv1.2 TLSv1.3
pem-file = \"/etc/hitch/one.pem\"
pem-file = \"/etc/hitch/two.pem\"
pem-file = {
    cert = \"/etc/hitch/three.crt\"
    private-key = \"/etc/hitch/three.key\"
}
";

fn installation(conf: &str) -> Installation {
    let installation = Installation::new(&[
        ("/etc/default/varnish", "DAEMON_OPTS=\"-a 127.0.0.1:8080 -a 127.0.0.1:6086,PROXY -f /x.vcl -s malloc,1m\"\n"),
        ("/x.vcl", SMALL_VCL),
        ("/etc/hitch/hitch.conf", conf),
        ("/etc/hitch/one.pem", &pem("one.example")),
        ("/etc/hitch/two.pem", &pem("two.example")),
    ]);
    let made = rcgen::generate_simple_self_signed(["three.example".to_owned()]).unwrap();
    installation.write("/etc/hitch/three.crt", made.cert.pem().as_bytes());
    installation.write("/etc/hitch/three.key", made.signing_key.serialize_pem().as_bytes());
    installation
}

#[test]
fn a_hitch_conf_with_several_certificates_becomes_an_option() {
    let (status, document) = installation(CONF).document(&[]);
    assert_eq!(status, 1, "{document:#}");
    let works = said(&document, "works");
    for (line, file, name) in [(13, "one.pem", "one"), (14, "two.pem", "two"), (16, "three.crt", "three")] {
        has(&works, &format!("hitch.conf:{line} /etc/hitch/{file}: certificate and key for {name}.example"));
    }
    has(&works, "hitch.conf TLS at 127.0.0.1:8443");
    let changes = said(&document, "changes");
    for beginning in [
        "hitch.conf:6 backend: requests need no way",
        "hitch.conf:7 workers: means nothing here",
        "hitch.conf:8 daemon: means nothing here",
        "hitch.conf:10 write-proxy-v2: means nothing here",
        "hitch.conf:11 alpn-protos: HTTP/2 is offered",
        "hitch.conf hitch is needed no more: the daemon speaks TLS -> -A /etc/hitch/hitch.conf",
        "varnish:1 -a 127.0.0.1:6086,PROXY: hitch spoke to this listener -> drop it",
    ] {
        has(&changes, beginning);
    }
    assert!(changes.iter().any(|text| text.contains("line 12: TLSv1.1 is not spoken")), "{changes:#?}");
    let command: Vec<&str> = document["command"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert!(command.ends_with(&["-A", "/etc/hitch/hitch.conf"]), "{command:?}");
}

#[test]
fn blocking_findings_in_hitch_conf_have_their_line() {
    let blocks = |conf: &str| said(&installation(conf).document(&["--hitch", "/etc/hitch/hitch.conf"]).1, "blocks");
    has(&blocks(&CONF.replace("two.pem", "none.pem")), "hitch.conf:14 ");
    has(
        &blocks(&CONF.replace("workers = 4", "wrokers = 4")),
        "hitch.conf:7 -A file '/etc/hitch/hitch.conf' line 7: unknown key 'wrokers'",
    );
    has(&blocks(&CONF.replace("TLSv1.1 TLSv1.2 TLSv1.3", "TLSv1.0")), "hitch.conf:12 ");
    has(&blocks("frontend = {\n"), "hitch.conf:");
    assert!(blocks("workers = 1\n")[0].contains("has no frontend"));
    // A key of another certificate.
    let mixed = installation(CONF);
    mixed.write("/etc/hitch/three.key", pem("other.example").as_bytes());
    let (status, document) = mixed.document(&[]);
    assert_eq!(status, 2);
    has(&said(&document, "blocks"), "hitch.conf:16 ");
}
