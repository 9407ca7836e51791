//! Commands of `copal` without a counterpart among the stock programs.

use super::{DIRECTORY, HELP, OptionGroup, OptionRow, Program, either, option, word_option};

const fn own(part: &'static str, line: &'static str, groups: &'static [OptionGroup]) -> Program {
    Program { part, stock: None, line, about: "", groups, rest: "", notes: "", usage_status: 2, stops_at_word: false }
}

const STORAGE: OptionRow =
    word_option('s', "storage", "<name>", "A storage besides s0 and Transient; may be repeated.");
const DIALECT: OptionRow =
    word_option('d', "dialect", "<auto|1|2.0|2.1|3.0|4>", "The generation of the language; auto looks at the text.");
const BACKEND: OptionRow =
    option('b', "none|<address>[:<port>]|/<path>", "The backend of a text without one, as for copal daemon.");
const LABEL: OptionRow =
    word_option('l', "label", "<name>", "A label that return (vcl(name)) may name; may be repeated.");
const INCLUDES: OptionRow = option('I', "<dir>", "Where includes are looked for first; may be repeated.");

pub(super) static DEMO: Program = Program {
    about: "Starts a slow blog and Copal in front of it, measures both, prints the difference, and serves until Ctrl-C: over http, \
            and over https (HTTP/2, HTTP/3) with a certificate made on the spot.",
    ..own(
        "demo",
        "a slow blog, Copal in front of it, and the difference",
        &[OptionGroup {
            title: "Options",
            options: &[word_option('o', "once", "", "End after the measurement."), HELP],
        }],
    )
};

pub(super) static WHY: Program = Program {
    about: "Why a request was a hit, a miss, a pass or an error. Without URL and XID: every request.\n\n\
            URL is /path, host/path or http://host/path, as it is printed; * matches anything. With the address of the server instead of a \
            host, where no request says that host: those for any host. XID is the number in X-Varnish, of a request or of a fetch.",
    rest: "[[METHOD] URL | XID]",
    notes: "Exit status: 0 something was explained, 1 no matching request, 2 wrong command line or no server.",
    ..own(
        "why",
        "why a request was a hit, a miss, a pass or an error",
        &[OptionGroup {
            title: "Options",
            options: &[
                either('f', "follow", "", "Explain requests as they come, instead of those still in the log."),
                either('k', "count", "<num>", "Only the last N; with --follow the first N."),
                word_option('J', "json", "", "One JSON object a line (docs/reference/json.md)."),
                DIRECTORY,
                option('r', "<file>", "Read a log file that copal log -w wrote."),
                option('t', "<seconds|off>", "Time to wait for a server; off = no limit."),
                HELP,
            ],
        }],
    )
};

pub(super) static KEYS: Program = Program {
    about: "What fills the cache, and what splits it: hosts, paths and content types by space; query arguments, cookies and Vary fields by \
            what leaving them out would give. From GET and HEAD requests in the log; values are never shown.",
    notes: "The estimate is for a cache without a limit, and for the requests that were read. Exit status: 0 done, 1 no request in the log, \
            2 wrong command line or no server.",
    ..own(
        "keys",
        "what fills the cache, and what splits it",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('s', "sample", "<num>", "Most requests that are read; default 100000."),
                word_option(
                    'S',
                    "seconds",
                    "<num>",
                    "Read the requests of the next seconds, instead of those still in the log.",
                ),
                word_option('J', "json", "", "One JSON object (docs/reference/json.md)."),
                DIRECTORY,
                option('r', "<file>", "Read a log file that copal log -w wrote."),
                option('t', "<seconds|off>", "Time to wait for a server; off = no limit."),
                HELP,
            ],
        }],
    )
};

pub(super) static RECORD: Program = Program {
    about: "Records requests for copal replay: what clients sent, what the origin answered, and what the cache decided. Values of cookies, \
            credentials, tokens and addresses of clients are replaced by keyed hashes. Bodies are not recorded.",
    notes: "docs/guide/change-vcl-safely.md says more. Exit status: 0 something was recorded, 1 no request came, 2 wrong command line, no \
            server, or a file that cannot be written.",
    ..own(
        "record",
        "records requests, to try another VCL with them",
        &[OptionGroup {
            title: "Options",
            options: &[
                either('o', "output", "<file>", "The file, which must not exist."),
                word_option('F', "for", "<duration>", "End after this time, such as 10m."),
                word_option('N', "requests", "<num>", "End after so many requests; default 100000."),
                word_option('c', "client-sample", "<percent>", "Only this part of the clients, such as 1%."),
                word_option('s', "sample", "<percent>", "Only this part of the requests."),
                either('q', "query", "<VSLQ>", "Only requests that match the query."),
                word_option('K', "keep-secrets", "", "Record cookies, credentials and addresses as they are."),
                either('d', "whole", "", "Record what is still in the log, and end."),
                word_option(
                    'R',
                    "record-bytes",
                    "<num>",
                    "vsl_reclen of the server, if it cannot be asked; default 255. Requests with a longer record are cut.",
                ),
                DIRECTORY,
                option('r', "<file>", "Read a log file that copal log -w wrote."),
                option('t', "<seconds|off>", "Time to wait for a server; off = no limit."),
                HELP,
            ],
        }],
    )
};

pub(super) static REPLAY: Program = Program {
    about: "Runs recorded requests through a VCL, with a virtual clock and the recorded responses of the origin, and reports what changes. \
            With --against, that VCL is replayed first, and its differences from the recording are left out.",
    rest: "<recording>",
    notes: "docs/guide/change-vcl-safely.md says more. Exit status: 0 no differences, 1 differences within the limits, 2 a limit was passed, \
            3 the recording or a VCL cannot be used.",
    usage_status: 3,
    ..own(
        "replay",
        "tries a VCL with recorded requests",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('v', "vcl", "<file>", "The new VCL."),
                word_option(
                    'a',
                    "against",
                    "<file>|recorded",
                    "The old VCL; recorded (the default) compares with the recording itself.",
                ),
                word_option(
                    'l',
                    "limit",
                    "<name>=<value>[,...]",
                    "Most differences of a class, as a number or a percentage of the requests, such as status=0.1%,leak=0; also \
                     hit-ratio=-1% and origin=+5%, as changes.",
                ),
                word_option('J', "json", "", "One JSON object (docs/reference/json.md)."),
                word_option('M', "markdown", "", "Markdown, for a comment on a change."),
                word_option('S', "cache-size", "<size>", "Size of the cache, such as 256m (the default)."),
                word_option(
                    'w',
                    "warm",
                    "",
                    "Responses that were delivered from the cache stand in for those that the origin sent before.",
                ),
                option('p', "<parameter>=<value>", "A run-time parameter of the server."),
                INCLUDES,
                BACKEND,
                HELP,
            ],
        }],
    )
};

pub(super) static POLICY: Program = Program {
    about: "Hit ratio that each eviction policy would have had with this access log, by size of the cache. GET requests that were answered \
            with 200 are replayed as if all could be stored and nothing expired. - is the standard input.",
    rest: "<file>...",
    notes: "Each object is counted with 600 bytes for its head and the index. Exit status: 0 done, 1 no line could be used, 2 the command \
            line is wrong or a file cannot be read.",
    ..own(
        "policy",
        "what hit ratio each eviction policy would have had with an access log",
        &[OptionGroup {
            title: "Options",
            options: &[
                option(
                    's',
                    "<size>[,<size>...]",
                    "The sizes, such as 256m,1g; otherwise 16 MiB, 32 MiB and so on until everything fits.",
                ),
                word_option(
                    'f',
                    "format",
                    "<combined|common|vhost>",
                    "combined is also that of copal ncsa; with vhost the virtual host comes first.",
                ),
                word_option(
                    'u',
                    "urls",
                    "<num>",
                    "Number of URLs to track, default 65536. With more of them in the log, only one in 2, 4, 8, … URLs is replayed, by a \
                     hash, in caches as much smaller. Memory: at most 8 KiB for each, and as a rule less than 1 KiB.",
                ),
                word_option('J', "json", "", "One JSON object (docs/reference/json.md)."),
                HELP,
            ],
        }],
    )
};

pub(super) static BENCH: Program = Program {
    about: "Makes load on a server and says how it fared. Each of the connections asks again when it has its answer (a closed loop), or, with \
            --rate, requests fall due at a rate whatever the answers do (an open loop). Certificates are not verified.",
    rest: "<url>",
    notes: "docs/operate/bench.md says how to read the account. Exit status: 0 done, 1 nothing was answered, 2 the command line is wrong, a file \
            cannot be read, or the server cannot be reached.",
    ..own(
        "bench",
        "makes load on a server and says how it fared",
        &[
            OptionGroup {
                title: "Amount",
                options: &[
                    either('c', "connections", "<num>", "Connections; 50 if not given."),
                    either('t', "time", "<seconds>", "Duration, default 10."),
                    either('n', "requests", "<num>", "Ends sooner, after N requests."),
                    either('r', "rate", "<num>", "Requests a second; each is timed from when it is due."),
                    word_option('b', "burst", "<num>", "With --rate: N requests fall due at one moment."),
                    either(
                        'k',
                        "per-connection",
                        "<num>",
                        "Requests before a connection is replaced by another; 0 only opens connections.",
                    ),
                    word_option('i', "idle", "<num>", "Also holds N idle connections (HTTP/1)."),
                    word_option('w', "warm-up", "<seconds>", "Comes first and is not counted."),
                    word_option(
                        'o',
                        "timeout",
                        "<seconds>",
                        "A request that takes longer has failed; 10 if not given.",
                    ),
                    word_option(
                        'T',
                        "threads",
                        "<num>",
                        "As many as there are cores, at most one a connection, if not given.",
                    ),
                ],
            },
            OptionGroup {
                title: "Requests",
                options: &[
                    word_option('u', "urls", "<file>", "URLs or paths of this server, one a line, in turn."),
                    word_option(
                        'l',
                        "log",
                        "<file>",
                        "The GET requests of an access log that were answered with 200, in its order.",
                    ),
                    word_option('f', "format", "<combined|common|vhost>", "Of the log."),
                    word_option('N', "count", "<num>", "{} in the URL is 1, 2, 3 to num, again and again."),
                    word_option(
                        'z',
                        "zipf",
                        "<skew>,<num>",
                        "{} in the URL is a number from 1 to num, drawn by Zipf's law.",
                    ),
                    word_option('s', "seed", "<num>", "Where chance begins; 1 if not given."),
                    either('X', "method", "<GET|HEAD|OPTIONS|PURGE>", "The method."),
                    either('H', "header", "<name: value>", "A header; may be repeated."),
                ],
            },
            OptionGroup {
                title: "Over what",
                options: &[
                    word_option(
                        'p',
                        "http",
                        "<1|2|3>",
                        "HTTP/1.1 if not given; 2 in clear is spoken by prior knowledge, 3 needs https.",
                    ),
                    either(
                        'm',
                        "streams",
                        "<num>",
                        "Requests at a time on each connection of HTTP/2 and 3; 10 if not given.",
                    ),
                    word_option('R', "resume", "", "Takes up earlier TLS sessions."),
                ],
            },
            OptionGroup {
                title: "Expectations",
                options: &[
                    word_option('S', "expect-status", "<num>", "Any below 400 if not given."),
                    word_option('B', "expect-bytes", "<num>", "The length of each body, as it is sent."),
                ],
            },
            OptionGroup {
                title: "Output",
                options: &[
                    word_option('J', "json", "", "One JSON object (docs/reference/json.md)."),
                    word_option('q', "no-progress", "", "Nothing on the terminal while it runs."),
                    HELP,
                ],
            },
        ],
    )
};

pub(super) static PREFLIGHT: Program = Program {
    about: "Reads an installation of Varnish and lists what works as it is with Copal, what changes and what blocks, each with its place and \
            what to do. It changes nothing. Without options it looks for varnish.service, or else /etc/default/varnish, \
            /etc/sysconfig/varnish or /etc/varnish/varnish.params, and for varnishncsa.service and /etc/hitch/hitch.conf.",
    rest: "[-- <varnishd arguments>]",
    notes: "Exit status: 0 all works as it is, 1 something changes, 2 something blocks, 3 wrong command line, or nothing to look at.",
    usage_status: 3,
    ..own(
        "preflight",
        "what of an installation of Varnish works as it is, changes or blocks",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option(
                    'u',
                    "unit",
                    "<file>",
                    "The unit of varnishd, by name or file, with its drop-ins and files of variables.",
                ),
                word_option(
                    'e',
                    "environment",
                    "<file>",
                    "Variables as an init script reads them: DAEMON_OPTS, or those of varnish.params.",
                ),
                word_option('r', "running", "", "The command line of the varnishd that runs here."),
                word_option('p', "pid", "<num>", "The command line of this process."),
                word_option('v', "vcl", "<file>", "A VCL besides those of the command line; may be repeated."),
                word_option(
                    'P',
                    "params",
                    "<file>",
                    "Parameters: what varnishadm param.show prints, lines of param.set, or name=value.",
                ),
                word_option('H', "hitch", "<file>", "A hitch.conf."),
                word_option('n', "ncsa", "<file>", "The unit of varnishncsa, by name or file."),
                word_option('R', "root", "<dir>", "Root directory of the installation."),
                word_option('q', "problems", "", "Leave out what works."),
                word_option('J', "json", "", "One JSON document."),
                HELP,
            ],
        }],
    )
};

pub(super) static INIT: Program = Program {
    about: "Writes default.vcl, a VCL for an application, and tests.toml, test cases for it: wordpress, woocommerce, drupal, magento, joomla, \
            mediawiki, discourse, static (a site of files) or registry (of packages). Without a directory: into this one. It makes no \
            connection.",
    rest: "<application> [<dir>]",
    notes: "docs/guide/profiles.md describes the files. Exit status: 0 written, 1 a file exists or cannot be written, 2 wrong command line.",
    ..own(
        "init",
        "writes a VCL for WordPress and other applications, with tests",
        &[OptionGroup {
            title: "Options",
            options: &[
                either('b', "backend", "<host>[:<port>]", "The web server; port 80 if not given."),
                either(
                    'H',
                    "host",
                    "<name>",
                    "A site of that server, which the probe asks for; else that of --backend.",
                ),
                either('f', "force", "", "Replace files that exist."),
                HELP,
            ],
        }],
    )
};

pub(super) static VCL: Program = Program {
    rest: "<command> [arguments]",
    notes: "copal vcl <command> --help says more.",
    ..own("vcl", "checks and explains VCL, without a server", &[OptionGroup { title: "Options", options: &[HELP] }])
};

pub(super) static VCL_CHECK: Program = Program {
    about: "Compiles each file as a VCL of its own and shows all messages. - is the standard input.",
    rest: "<file>...",
    notes: "Exit status: 0 no errors, 1 errors, 2 wrong command line or unreadable file.",
    ..own(
        "vcl check",
        "all messages of the compiler about a text",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('J', "json", "", "One JSON document with the array \"diagnostics\"."),
                word_option('T', "text", "", "Messages as a server's CLI shows them."),
                option(
                    'p',
                    "<parameter>=<value>",
                    "A run-time parameter, e.g. vcc_err_unref=off or vcl_path=/etc/varnish.",
                ),
                INCLUDES,
                DIALECT,
                BACKEND,
                LABEL,
                STORAGE,
                HELP,
            ],
        }],
    )
};

pub(super) static LSP: Program = Program {
    about: "A language server for VCL: an editor starts it and talks to it over its standard input and output. It reports what copal vcl check \
            and copal vcl lint find, with corrections, and completes, explains, formats and renames. It opens no connection and asks no name \
            server; it reads the files that an open document includes. Set-ups for editors are in editors/.",
    notes: "Exit status: 0 ended by its client, 1 the client vanished, 2 wrong command line.",
    ..own(
        "lsp",
        "language server for VCL, for editors",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('o', "stdio", "", "As always; for clients that insist on it."),
                option(
                    'p',
                    "<parameter>=<value>",
                    "A run-time parameter, e.g. http_policy=rfc or vcl_path=/etc/varnish.",
                ),
                INCLUDES,
                DIALECT,
                BACKEND,
                LABEL,
                STORAGE,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_LINT: Program = Program {
    about: "Looks for faults in a VCL that compiles: responses that leak from one client to another, purges without an access check, rules \
            that make hits rare, statements without effect. docs/reference/lint.md lists the rules. A comment '# copal: allow(S1) reason' \
            suppresses a finding in its line, or in the next one if it is alone in its line; one without effect is a finding. - is the \
            standard input.",
    rest: "<file>...",
    notes: "Exit status: 0 nothing of the level of --deny or above, 1 findings of it, or a text that does not compile, 2 wrong command line \
            or unreadable file.",
    ..own(
        "vcl lint",
        "faults that the compiler accepts",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('D', "deny", "<note|warning|error>", "The lowest level that fails; error if not given."),
                word_option('J', "json", "", "One JSON document (docs/reference/json.md)."),
                word_option('S', "sarif", "", "SARIF 2.1.0, for code scanning."),
                word_option('G', "github", "", "Annotations as GitHub Actions reads them."),
                option(
                    'p',
                    "<parameter>=<value>",
                    "A run-time parameter; with http_policy=rfc the rules S2 and S3 find nothing.",
                ),
                INCLUDES,
                DIALECT,
                BACKEND,
                LABEL,
                STORAGE,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_TEST: Program = Program {
    about: "Runs test cases against a VCL: requests, responses of the origin, and what is expected of them. The engine is the real one, in \
            this process; the clock is virtual, so that hours pass at once. Nothing is listened on and nothing is connected to. \
            docs/guide/change-vcl-safely.md describes the files.",
    rest: "<vcl> <tests.toml>...",
    notes: "Without -p http_policy=varnish the policy is rfc, as for copal daemon. Exit status: 0 all cases passed, 1 some did not, 2 wrong \
            command line, an unreadable or invalid file, or a VCL that does not compile.",
    ..own(
        "vcl test",
        "test cases for a VCL, under a virtual clock",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('f', "filter", "<text>", "Only cases whose name contains this."),
                word_option('t', "tap", "", "The Test Anything Protocol on the standard output."),
                word_option('x', "junit", "<file>", "Also writes a report in JUnit's XML."),
                word_option(
                    'c',
                    "coverage",
                    "<text|lcov>",
                    "The lines of the VCL that the cases ran, after the results.",
                ),
                word_option('o', "coverage-file", "<file>", "Where the coverage goes instead."),
                option('p', "<parameter>=<value>", "A run-time parameter of the daemon."),
                INCLUDES,
                BACKEND,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_TRACE: Program = Program {
    about: "Runs one request through a VCL and shows each statement that ran, with the values that it read and wrote. The engine is the real \
            one; the origin is a file, or a response 200 without headers. Nothing is connected to.",
    rest: "<vcl>",
    notes: "Exit status: 0 shown, 2 wrong command line, an unreadable file, or a VCL that does not compile.",
    ..own(
        "vcl trace",
        "each statement that a request runs, with its values",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('r', "request", "<file>", "The request, as HTTP/1; GET / of example.com if not given."),
                word_option('u', "url", "<url>", "Another URL for it."),
                either('H', "header", "<name: value>", "A further header of it; may be repeated."),
                word_option('g', "origin", "<file>", "The response of the origin, as HTTP/1."),
                word_option('a', "builtin", "", "The statements of the built-in VCL, too."),
                option('p', "<parameter>=<value>", "A run-time parameter of the daemon."),
                INCLUDES,
                BACKEND,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_FMT: Program = Program {
    about: "Prints each file in one style: spaces, line ends and indentation change, tokens and comments do not. VCL of every generation. \
            - or no file is the standard input. A text with an error is not printed, and its file is not changed.",
    rest: "[<file>...]",
    notes: "Exit status: 0 done, 1 an invalid text, or with --check one that would change, 2 wrong command line or unreadable file.",
    ..own(
        "vcl fmt",
        "one style for every text",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option('w', "write", "", "Into the files themselves, instead of the standard output."),
                word_option('c', "check", "", "Change nothing; name the files that would change."),
                word_option('d', "diff", "", "Change nothing; show what would change."),
                word_option('s', "stdin", "", "The standard input, as -."),
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_MIGRATE: Program = Program {
    about: "Writes a VCL of Varnish 1, 2, 3 or 4.0 anew in VCL 4.1, so that it does what it did. Comments and layout stay where they can; \
            files that it includes become part of it. Where a meaning cannot carry over, a comment that begins with 'migrate:' says so; all \
            of them are listed on the standard error. - is the standard input.",
    rest: "<file>",
    notes: "Exit status: 0 done, 1 the old text does not compile, or the new one needs work, 2 wrong command line or unreadable file.",
    ..own(
        "vcl migrate",
        "an old text in VCL 4.1",
        &[OptionGroup {
            title: "Options",
            options: &[
                option('o', "<file>", "Where to write; without it, the standard output."),
                word_option('i', "in-place", "", "Into the file itself."),
                INCLUDES,
                word_option(
                    'd',
                    "dialect",
                    "<auto|1|2.0|2.1|3.0|4>",
                    "The generation of the old text; auto looks at it.",
                ),
                STORAGE,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_EXPLAIN: Program = Program {
    about: "Says what a word means: the code of a message (V0301), a lint rule (S1), a variable (beresp.ttl), a subroutine (vcl_recv), an action (deliver), \
            a statement (hash_data), a VMOD or a function of one (std, std.healthy); also those of VCL before 4.0 (vcl_fetch, \
            obj.cacheable, hit_for_pass). Without words: all codes.",
    rest: "[<word>...]",
    notes: "Exit status: 0 explained, 1 nothing has that name, 2 wrong command line.",
    ..own(
        "vcl explain",
        "what a message, a variable, an action or a function means",
        &[OptionGroup { title: "Options", options: &[HELP] }],
    )
};

pub(super) static STATUS: Program = Program {
    about: "Shows a server by its work directory: its processes, what it listens on, its VCL. Without a CLI (-T none) only its processes.",
    notes: "Exit status: 0 it serves, 1 its manager runs without a worker, 2 no server runs there, or the command line is wrong.",
    ..own("status", "what a server is doing", &[OptionGroup { title: "Options", options: &[DIRECTORY, HELP] }])
};

pub(super) static STOP: Program = Program {
    about: "Stops a server by its work directory, and waits until it has ended. Requests in flight have the time of the parameter \
            drain_timeout; a second stop cuts them. The command stop of the CLI is another thing: it stops the worker, the manager stays.",
    notes: "Exit status: 0 it has ended, 1 it still runs, 2 no server runs there, or the command line is wrong.",
    ..own(
        "stop",
        "stops a server",
        &[OptionGroup {
            title: "Options",
            options: &[
                DIRECTORY,
                option('t', "<seconds|off>", "Time to wait for its end; default 60, off = no limit."),
                HELP,
            ],
        }],
    )
};

pub(super) static UPGRADE: Program = Program {
    about: "The running server starts the program that now has its name, with its own arguments, and hands over its sockets, the cache, the \
            bans, VCLs, parameters and certificates. No connection is refused.",
    notes: "Exit status: 0 the new program serves, 1 the old one still serves, 2 no server.",
    usage_status: 1,
    ..own(
        "upgrade",
        "lets the program that is installed now take over from a running server",
        &[OptionGroup { title: "Options", options: &[DIRECTORY, HELP] }],
    )
};

pub(super) static DASH: Program = Program {
    about: "Opens the dashboard of a running server: prints an address that logs a browser in once, within a minute. If the server serves a \
            dashboard itself (-o dash), it is that one. Otherwise this program serves one on loopback until Ctrl-C, with the rights of its \
            user: the secret of the CLI is needed for everything but looking.",
    notes: "docs/operate/dashboard.md describes it. Exit status: 1 it cannot listen, 2 the command line is wrong or there is no server.",
    ..own(
        "dash",
        "opens the dashboard of a running server in a browser",
        &[OptionGroup {
            title: "Options",
            options: &[
                DIRECTORY,
                word_option(
                    'p',
                    "port",
                    "<port>",
                    "Port of a dashboard that this program serves; default 0, any free one.",
                ),
                word_option('o', "open", "", "Start a browser (xdg-open) with the address."),
                word_option('v', "view", "", "Serve a dashboard that changes nothing, even if the server has one."),
                HELP,
            ],
        }],
    )
};

pub(super) static OBSERVE: Program = Program {
    about: "Serves the counters of a running server to Prometheus: GET /metrics, as Prometheus text or OpenMetrics, whichever is asked for; \
            ?scope=cache,backend selects. /healthz is 200 while this program runs, /readyz while a worker serves. The server need not run \
            yet, and may restart.",
    notes: "docs/operate/observe.md describes the metrics. There is no authentication: listen on an address that only the monitoring can \
            reach. Exit status: 1 it cannot listen, 2 the command line is wrong.",
    ..own(
        "observe",
        "serves the counters to Prometheus",
        &[OptionGroup {
            title: "Options",
            options: &[
                word_option(
                    'm',
                    "metrics",
                    "<address>[:<port>]|unix:<path>",
                    "Where to listen; may be repeated. Port 9131, unless given.",
                ),
                word_option(
                    'l',
                    "access-log",
                    "<destination>[,<setting>...]",
                    "Write an access log; may be repeated. Destination: the absolute path of a file, stdout, stderr, syslog[:<facility>] or \
                     unix:<path>. Settings: side=c|b|both, rotate=<size>x<files>, query=<query>, format=combined|json|@<file>|<text>.",
                ),
                word_option(
                    'o',
                    "otlp",
                    "http(s)://<host>[:<port>][/<path>]|env",
                    "Send traces to this collector, with OTLP over HTTP; env: OTEL_EXPORTER_OTLP_ENDPOINT.",
                ),
                word_option(
                    's',
                    "otlp-sample",
                    "<choice>[,<choice>...]",
                    "The traces that are sent: <share>, errors, slow:<time>, why:<reason>, ignore-parent; default 0.01,errors. Traces that the caller has sampled are sent too.",
                ),
                word_option(
                    'q',
                    "otlp-query",
                    "keep",
                    "Send the values of query arguments; otherwise they are masked.",
                ),
                DIRECTORY,
                HELP,
            ],
        }],
    )
};
