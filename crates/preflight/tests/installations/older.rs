//! Installations of older generations: files of init scripts, varnish.params, VCL before 4.0, VMODs
//! that are not installed.

use crate::{Installation, SMALL_VCL, has, said};

/// `/etc/default/varnish` of Debian, its first alternative, and the third, as they were shipped
/// except for their comment signs.
const ALTERNATIVE_1: &str = "\
NFILES=131072
MEMLOCK=82000
INSTANCE=$(uname -n)
DAEMON_OPTS=\"-a :6081 \\
             -T localhost:6082 \\
\t     -b localhost:8080 \\
\t     -u varnish -g varnish \\
           -S /etc/varnish/secret \\
\t     -s file,/var/lib/varnish/$INSTANCE/varnish_storage.bin,1G\"
";
const ALTERNATIVE_2: &str = "\
NFILES=131072
DAEMON_OPTS=\"-a :6081 \\
             -T localhost:6082 \\
             -f /etc/varnish/default.vcl \\
             -S /etc/varnish/secret \\
             -s malloc,256m\"
";
const ALTERNATIVE_3: &str = "\
VARNISH_VCL_CONF=/etc/varnish/default.vcl
VARNISH_LISTEN_ADDRESS=
VARNISH_LISTEN_PORT=6081
VARNISH_ADMIN_LISTEN_ADDRESS=127.0.0.1
VARNISH_ADMIN_LISTEN_PORT=6082
VARNISH_SECRET_FILE=/etc/varnish/secret
VARNISH_STORAGE=\"malloc,1G\"
VARNISH_TTL=120
DAEMON_OPTS=\"-a ${VARNISH_LISTEN_ADDRESS}:${VARNISH_LISTEN_PORT} \\
             -f ${VARNISH_VCL_CONF} \\
             -T ${VARNISH_ADMIN_LISTEN_ADDRESS}:${VARNISH_ADMIN_LISTEN_PORT} \\
             -t ${VARNISH_TTL} \\
\t       -S ${VARNISH_SECRET_FILE} \\
             -s ${VARNISH_STORAGE}\"
";
/// varnish.params of Red Hat's packages.
const PARAMS: &str = "\
# Varnish environment configuration description. This was derived from
# the old style sysconfig/defaults settings

# Set this to 1 to make systemd reload try to switch VCL without restart.
RELOAD_VCL=1

# Main configuration file. You probably want to change it.
VARNISH_VCL_CONF=/etc/varnish/default.vcl

# Default address and port to bind to. Blank address means all IPv4
# and IPv6 interfaces, otherwise specify a host name, an IPv4 dotted
# quad, or an IPv6 address in brackets.
# VARNISH_LISTEN_ADDRESS=192.168.1.5
VARNISH_LISTEN_PORT=6081

# Admin interface listen address and port
VARNISH_ADMIN_LISTEN_ADDRESS=127.0.0.1
VARNISH_ADMIN_LISTEN_PORT=6082

# Shared secret file for admin interface
VARNISH_SECRET_FILE=/etc/varnish/secret

# Backend storage specification, see Storage Types in the varnishd(5)
# man page for details.
VARNISH_STORAGE=\"malloc,256M\"

# User and group for the varnishd worker processes
VARNISH_USER=varnish
VARNISH_GROUP=varnish

# Other options, see the man page varnishd(1)
DAEMON_OPTS=\"-p thread_pool_min=5 -p thread_pool_max=500 -p thread_pool_timeout=300\"
";
/// The unit in addition, of the packages of Varnish 4.0.
const PARAMS_UNIT: &str = "\
[Unit]
Description=Varnish Cache, a high-performance HTTP accelerator
After=network.target

[Service]
EnvironmentFile=/etc/varnish/varnish.params
Type=forking
PIDFile=/var/run/varnish.pid
PrivateTmp=true
ExecStart=/usr/sbin/varnishd \\
\t-P /var/run/varnish.pid \\
\t-f $VARNISH_VCL_CONF \\
\t-a ${VARNISH_LISTEN_ADDRESS}:${VARNISH_LISTEN_PORT} \\
\t-T ${VARNISH_ADMIN_LISTEN_ADDRESS}:${VARNISH_ADMIN_LISTEN_PORT} \\
\t-S $VARNISH_SECRET_FILE \\
\t-u $VARNISH_USER \\
\t-g $VARNISH_GROUP \\
\t-s $VARNISH_STORAGE \\
\t$DAEMON_OPTS
ExecReload=/usr/sbin/varnish_reload_vcl
";

fn with(file: &str, text: &str) -> Installation {
    Installation::new(&[(file, text), ("/etc/varnish/default.vcl", SMALL_VCL), ("/etc/varnish/secret", "x")])
}

#[test]
fn the_alternatives_of_debians_defaults_are_judged_by_their_lines() {
    let (status, document) = with("/etc/default/varnish", ALTERNATIVE_2).document(&[]);
    assert_eq!(status, 0, "{document:#}");
    has(&said(&document, "works"), "varnish:6 -s malloc,256m -> ");
    let (status, document) = with("/etc/default/varnish", ALTERNATIVE_3).document(&[]);
    assert_eq!(status, 0, "{document:#}");
    has(&said(&document, "works"), "varnish:9 -a :6081 -> ");
    has(&said(&document, "works"), "varnish:12 -t 120 -> ");
    let (status, document) = with("/etc/default/varnish", ALTERNATIVE_1).document(&[]);
    assert_eq!(status, 2);
    has(&said(&document, "changes"), "varnish:3 a command of the shell, which was not run");
    let blocks = said(&document, "blocks");
    assert_eq!(blocks.len(), 2, "{blocks:#?}");
    has(&blocks, "varnish:7 -u varnish: invalid option");
    has(&blocks, "varnish:7 -g varnish: invalid option");
    has(&said(&document, "works"), "varnish:9 -s file,/var/lib/varnish/");
}

#[test]
fn varnish_params_are_judged_with_their_unit_and_without() {
    let installation = with("/etc/varnish/varnish.params", PARAMS);
    let (status, document) = installation.document(&[]);
    assert_eq!(status, 1, "{document:#}");
    assert!(said(&document, "blocks").is_empty(), "{document:#}");
    has(&said(&document, "works"), "varnish.params:25 -s malloc,256M -> ");
    has(&said(&document, "changes"), "varnish.params:32 -p thread_pool_min=5: accepted, and without effect");
    installation.write("/usr/lib/systemd/system/varnish.service", PARAMS_UNIT.as_bytes());
    let (status, document) = installation.document(&[]);
    assert_eq!(status, 2);
    let blocks = said(&document, "blocks");
    assert_eq!(blocks.len(), 2, "{blocks:#?}");
    has(&blocks, "varnish.params:28 -u varnish: invalid option, it is of Varnish 1 to 4.0 -> -j unix,user=USER");
    has(&blocks, "varnish.params:29 -g varnish: invalid option");
    has(&said(&document, "works"), "varnish.service:13 -a :6081 -> ");
}

/// Tuning of Varnish 2.1 from an article of 2010 on great loads, and a command line from one of
/// 2011.
const TUNED: &str = "thread_pools 8\nthread_pool_min 100\nthread_pool_max 5000\nthread_pool_add_delay 2\ncli_timeout 25\n\
                     session_linger 50\nlru_interval 20\n";

#[test]
fn recommended_tunings_are_judged_line_by_line() {
    let installation = with("/params", TUNED);
    let line = ["--params", "/params", "--", "-f", "/etc/varnish/default.vcl", "-a", ":6081", "-s", "malloc,256m"];
    let (status, document) = installation.document(&line);
    assert_eq!(status, 2);
    let linger = "timeout_linger, in seconds: 50 (milliseconds) is 0.05 there";
    assert_eq!(said(&document, "blocks"), [format!("params:6 session_linger 50: no such parameter -> {linger}")]);
    for line in 1..=4 {
        has(&said(&document, "changes"), &format!("params:{line} thread_pool"));
    }
    has(&said(&document, "works"), "params:5 cli_timeout 25");
    let command = document["command"].to_string();
    assert!(command.contains("lru_interval=20") && !command.contains("session_linger"), "{command}");
}

/// A VCL of each generation, the older ones as in articles of the time.
const GENERATIONS: &[(&str, &str)] = &[
    (
        "1.1",
        "backend default {\n    set backend.host = \"127.0.0.1\";\n    set backend.port = \"81\";\n}\n\
         sub vcl_recv {\n    if (req.request != \"GET\" && req.request != \"HEAD\") { pipe; }\n    lookup;\n}\n\
         sub vcl_fetch { if (!obj.valid) { error; } insert; }\n",
    ),
    (
        "2.0",
        "backend default { .host = \"127.0.0.1\"; .port = \"81\"; }\n\
         sub vcl_recv { if (req.url ~ \"\\.(png|gif)$\") { unset req.http.cookie; lookup; } }\n\
         sub vcl_fetch { if (req.url ~ \"\\.png$\") { set obj.ttl = 3600s; } deliver; }\n",
    ),
    (
        "2.1",
        "backend default { .host = \"127.0.0.1\"; .port = \"81\"; }\n\
         sub vcl_fetch { if (!beresp.cacheable) { return (pass); } set beresp.ttl = 1h; return (deliver); }\n",
    ),
    (
        "3.0",
        "import std;\nbackend default { .host = \"127.0.0.1\"; .port = \"81\"; }\n\
         sub vcl_recv { if (req.request == \"BAN\") { ban(\"req.url ~ \" + req.url); error 200 \"Banned\"; } }\n\
         sub vcl_fetch { set beresp.ttl = 1h; return (hit_for_pass); }\n",
    ),
    (
        "4.0",
        "vcl 4.0;\nimport directors;\nbackend default { .host = \"127.0.0.1\"; }\nsub vcl_init { new d = directors.round_robin(); d.add_backend(default); }\n",
    ),
];

#[test]
fn vcl_of_every_generation_works_as_it_is() {
    let installation = Installation::new(&[]);
    for (generation, text) in GENERATIONS {
        installation.write("/etc/varnish/x.vcl", text.as_bytes());
        let (status, document) = installation.document(&["--vcl", "/etc/varnish/x.vcl"]);
        has(&said(&document, "works"), &format!("x.vcl VCL {generation}"));
        // A text without a version line is reported with its detected version.
        let notes = said(&document, "changes");
        assert_eq!(status, i32::from(!text.starts_with("vcl ")), "{generation}: {document:#}");
        assert!(notes.iter().all(|note| note.contains("V0801")), "{notes:#?}");
    }
}

#[test]
fn the_compilers_messages_are_the_verdicts_with_their_places() {
    let installation = Installation::new(&[
        (
            "/etc/varnish/main.vcl",
            "vcl 4.1;\nimport std;\nimport headerplus;\ninclude \"sub/more.vcl\";\nbackend default none;\nacl unused { }\n",
        ),
        ("/etc/varnish/sub/more.vcl", "sub vcl_recv {\n    set req.urll = \"/\";\n}\n"),
    ]);
    let (status, document) = installation.document(&["--vcl", "main.vcl"]);
    assert_eq!(status, 2);
    let blocks = said(&document, "blocks");
    has(&blocks, "main.vcl:3 V");
    assert!(blocks.iter().any(|text| text.contains("headerplus") && text.contains("there is header")), "{blocks:#?}");
    has(&said(&document, "works"), "main.vcl:2 import std: built in");
    installation.write("/etc/varnish/main.vcl", b"vcl 4.1;\ninclude \"sub/more.vcl\";\nbackend default none;\n");
    let blocks = said(&installation.document(&["--vcl", "main.vcl"]).1, "blocks");
    has(&blocks, "more.vcl:2 V0301: Symbol not found: 'req.urll' -> did you mean req.url? (copal vcl explain V0301)");
    installation.write("/etc/varnish/main.vcl", b"vcl 4.1;\nbackend default none;\nacl unused { }\n");
    let (status, document) = installation.document(&["--vcl", "main.vcl", "--params", "/p"]);
    assert_eq!(status, 2, "{document:#}");
    has(&said(&document, "blocks"), "p /p: No such file");
    has(&said(&document, "blocks"), "main.vcl:3 V0316: Unused acl unused");
    installation.write("/p", b"vcc_err_unref off [bool]\n");
    let (status, document) = installation.document(&["--vcl", "main.vcl", "--params", "/p"]);
    assert_eq!(status, 1, "{document:#}");
    has(&said(&document, "changes"), "main.vcl:3 V0316: Unused acl unused");
}

#[test]
fn commands_of_the_start_name_labels_and_further_vcls() {
    let installation = Installation::new(&[
        ("/etc/default/varnish", "DAEMON_OPTS=\"-a :80 -f '' -I /etc/varnish/start.cli\"\n"),
        (
            "/etc/varnish/start.cli",
            "vcl.load one one.vcl\nvcl.label lab one\nvcl.load top /etc/varnish/top.vcl\nvcl.load bad bad.vcl\n",
        ),
        ("/etc/varnish/one.vcl", SMALL_VCL),
        ("/etc/varnish/top.vcl", "vcl 4.1;\nbackend default none;\nsub vcl_recv { return (vcl(lab)); }\n"),
    ]);
    let (_, document) = installation.document(&[]);
    has(&said(&document, "works"), "one.vcl VCL 4.1");
    has(&said(&document, "works"), "top.vcl VCL 4.1");
    assert_eq!(
        said(&document, "blocks"),
        ["start.cli:4 bad.vcl: in none of the directories of vcl_path -> write the whole path"]
    );
}
