//! The options of the server.

use super::{OptionGroup, OptionRow, Program, either, option, word_option};

pub(super) static DAEMON: Program = Program {
    part: "daemon",
    stock: Some("varnishd"),
    line: "the server",
    about: "Starts a manager, which compiles VCL and keeps what must outlive a crash, and a worker, which serves. As copal daemon it \
            follows RFC 9111, as varnishd the habits of Varnish 7.1 (parameter http_policy).",
    groups: &[
        OptionGroup { title: "Serving", options: SERVING },
        OptionGroup { title: "Management", options: MANAGEMENT },
        OptionGroup { title: "Tuning", options: TUNING },
        OptionGroup { title: "Looking inside", options: LOOKING },
    ],
    rest: "",
    notes: "Exit status: 0 the server runs in the background, or has ended well; 1 it could not start; 2 the command line is wrong or the \
            VCL does not compile.",
    usage_status: 2,
    stops_at_word: false,
};

const SERVING: &[OptionRow] = &[
    option(
        'a',
        "[<name>=]<address>[:<port>][,HTTP|https[,h3]][,PROXY]",
        "Listen here; may be repeated; default :80. https needs a certificate: -A, acme= or the CLI's tls.cert.load; h3 is HTTP/3, over UDP.",
    ),
    option(
        'a',
        "[<name>=]/<path>[,PROXY|HTTP|https][,user=<u>][,group=<g>][,mode=<m>]",
        "Listen on a Unix-domain socket.",
    ),
    option(
        'a',
        "...,https,acme=<name>[+<name>...]",
        "Order a certificate for these names; repeated, one more. Needs -o acme.",
    ),
    option('a', "...,https,self-signed", "Make a certificate at the start, for a trial: clients do not trust it."),
    option(
        'a',
        "...,redirect=https[:<port>]",
        "Redirect what comes in clear to https, before VCL; on a listener without https. Challenges of certificate authorities are answered.",
    ),
    option(
        'o',
        "acme=<mail>|none",
        "Certificates are ordered from an authority, whose terms you accept; it may write to this address.",
    ),
    option('o', "acme_directory=letsencrypt|staging|<url>", "The authority; default letsencrypt."),
    option('o', "acme_dir=<folder>", "Where account and certificates are kept; default /var/lib/copal/acme."),
    option(
        'o',
        "acme_challenge=auto|http-01|tls-alpn-01",
        "Type of challenge that proves control of a name; default auto, whichever works.",
    ),
    option('o', "acme_ca=<file>", "Issuer of the authority's own certificate."),
    option(
        'o',
        "metrics=<address>[:<port>]|unix:<path>",
        "Serve metrics to Prometheus here, by a process of their own (copal observe); may be repeated; port 9131, unless given.",
    ),
    option(
        'o',
        "access-log=<destination>[,<setting>...]",
        "Write an access log, by copal observe; may be repeated. Destination: the absolute path of a file, stdout, stderr, \
         syslog[:<facility>] or unix:<path>. Settings: side=c|b|both, rotate=<size>x<files>, query=<query>, format=combined|json|@<file>|<text>; \
         docs/operate/observe.md describes them.",
    ),
    option(
        'o',
        "vsl=7.1|7.3|auto",
        "Layout of the log: that of Varnish 4.1 to 7.2, that of 7.3 and later, or (default) the one that the installed libvarnishapi reads, else 7.1.",
    ),
    option(
        'o',
        "otlp=http(s)://<host>[:<port>][/<path>]|env",
        "Send traces to this collector, with OTLP over HTTP, by copal observe; env: OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
    option(
        'o',
        "otlp_sample=<choice>[,<choice>...]",
        "The traces that are sent: <share>, errors, slow:<time>, why:<reason>, ignore-parent; default 0.01,errors. Traces that the caller has sampled are sent too.",
    ),
    option(
        'o',
        "dash=<address>[:<port>]",
        "Serve the dashboard here, by copal observe; may be repeated; port 9132, unless given. docs/operate/dashboard.md describes it.",
    ),
    option(
        'o',
        "dash_users=<file>",
        "Users of the dashboard, one a line: <name>:<bcrypt hash>[:view|operate], as htpasswd -B makes them. Without it copal dash logs in.",
    ),
    option(
        'o',
        "dash_hosts=<name>[,<name>...]",
        "Names by which browsers may address the dashboard, besides its address and localhost.",
    ),
    option('o', "dash_operate=on|off", "The dashboard may change the server; default on."),
    option('o', "dash_insecure=on", "Serve the dashboard without TLS on addresses other than loopback."),
    option(
        'o',
        "dash_clients=hash|show",
        "Rank clients in the dashboard: by a keyed hash of their address, or by the address.",
    ),
    option('o', "otlp_query=keep", "Send the values of query arguments; otherwise they are masked."),
    option(
        'o',
        "fleet=nats://<host>[:<port>][,...]",
        "Exchange invalidations with other nodes through these NATS servers (or tls://). docs/guide/fleet.md describes it.",
    ),
    option('o', "fleet_name=<name>", "Name of the fleet, the same on all nodes; default copal."),
    option(
        'o',
        "fleet_key=<file>",
        "The fleet's key, the same on all nodes: 32 bytes, or 64 hexadecimal digits. Messages without its signature are refused.",
    ),
    option('o', "fleet_key_old=<file>", "A second key that is accepted, while fleet_key is being changed."),
    option(
        'o',
        "fleet_node=<name>",
        "Name of this node; default its host name and a number kept in the work directory.",
    ),
    option('o', "fleet_zone=<name>", "Zone of this node, shown by fleet.list."),
    option('o', "fleet_creds=<file>", "Credentials for the NATS servers, a file of nsc."),
    option('o', "fleet_nkey=<file>", "Seed of an nkey for the NATS servers."),
    option(
        'o',
        "fleet_tls_ca=<file>",
        "PEM file of the issuers that are trusted for the NATS servers, instead of the system's.",
    ),
    option('A', "<file>", "TLS listeners and their certificates, in the format of hitch.conf."),
    option('b', "none", "No backend."),
    option('b', "<address>[:<port>]", "One backend by address; with -f, that of a VCL without one."),
    option('b', "/<path>", "One backend by its Unix-domain socket."),
    option(
        'f',
        "<file>",
        "A VCL file, searched in vcl_path and the current directory; may be repeated, the last one is active; '' for none.",
    ),
    option('n', "<dir>", "Work directory; default /var/lib/varnish/varnishd, or one of your own if that is not yours."),
    option(
        's',
        "[<name>=]malloc[,<size>][,policy=<policy>]",
        "Where objects are stored; without a size three quarters of the memory, or the memory that log and requests leave; 75% is a share \
         of the memory. <name> may be Transient. <policy>: eviction policy: lru, s3fifo, sieve or tinylfu.",
    ),
    option(
        's',
        "[<name>=]file,<path>,<size>[,<granularity>[,<advice>]][,meta=<size>]",
        "Bodies are stored in a file, and survive a reboot. <path> may be a directory. 80% is a share of what is free on the disk. <advice> is \
         normal, random or sequential. meta= is the memory for all else; a 64th of the file, unless given.",
    ),
    word_option(
        'y',
        "memory",
        "auto|<size>",
        "Memory available to the daemon: the limit of the machine or its control groups, followed when it changes (the default), or this size.",
    ),
];

const MANAGEMENT: &[OptionRow] = &[
    option('F', "", "Stay in the foreground."),
    option('T', "<address>[:<port>]|none", "Management CLI; default localhost:0."),
    option('M', "<address>:<port>", "Connect the CLI to this address."),
    option('S', "<file>|none", "Secret of the CLI."),
    word_option(
        'z',
        "log-format",
        "<text|plain|json>",
        "Format of the daemon's messages on standard error: with the time (not where the journal has its own), without it, or as JSON.",
    ),
    option('P', "<file>", "Write the process number here; may be repeated."),
    option('i', "<identity>", "Name of this server."),
    option('I', "<file>", "CLI commands to do at the start."),
];

const TUNING: &[OptionRow] = &[
    option('p', "<parameter>=<value>", "Set a parameter; may be repeated."),
    option('r', "<parameter>[,<parameter>]", "Make parameters read-only."),
    option('t', "<seconds>", "Parameter default_ttl."),
    option('l', "<size>", "Parameter vsl_space."),
    option(
        'j',
        "none|unix[,user=<u>][,workuser=<u>][,admingroup=<g>]",
        "Whose rights VCL is read with, whose the worker runs with, and who may read the CLI's secret.",
    ),
    option('h', "<critbit|classic|simple>", "Accepted for compatibility."),
    option('W', "<epoll|poll>", "Accepted for compatibility."),
];

const LOOKING: &[OptionRow] = &[
    option('C', "", "Compile the VCL, print the program and exit."),
    option('d', "", "Stay in the foreground, CLI on standard input."),
    either('V', "version", "", "Print the version and exit."),
    option('x', "<builtin|cli|optstring|parameter|vsl>", "Print a part of the documentation and exit."),
    either('?', "help", "", "Print this and exit."),
];
