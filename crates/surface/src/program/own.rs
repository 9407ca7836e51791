//! The commands of `copal` that no stock program has.

use super::{DIRECTORY, HELP, OptionGroup, OptionRow, Program, either, option, word_option};

const fn own(part: &'static str, line: &'static str, groups: &'static [OptionGroup]) -> Program {
    Program { part, stock: None, line, about: "", groups, rest: "", notes: "", usage_status: 2, stops_at_word: false }
}

const STORAGE: OptionRow =
    word_option('s', "storage", "<name>", "A storage besides s0 and Transient; may be repeated.");
const INCLUDES: OptionRow = option('I', "<dir>", "Where includes are looked for first; may be repeated.");

pub(super) static DEMO: Program = Program {
    about: "Starts a slow blog and Copal in front of it, measures both, prints the difference, and goes on serving until Ctrl-C: over http, \
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
            URL is /path, host/path or http://host/path, as it is printed; * stands for anything. With the address of the server in place of a \
            host, where no request says that host: those for any host. XID is the number in X-Varnish, of a request or of a fetch.",
    rest: "[[METHOD] URL | XID]",
    notes: "Exit status: 0 something was explained, 1 there was no such request, 2 the command line is wrong or there is no server.",
    ..own(
        "why",
        "why a request was a hit, a miss, a pass or an error",
        &[OptionGroup {
            title: "Options",
            options: &[
                either('f', "follow", "", "Explain requests as they come, instead of those still in the log."),
                either('k', "count", "<num>", "Only the last so many; with --follow the first."),
                word_option('J', "json", "", "One JSON object a line (docs/json.md)."),
                DIRECTORY,
                option('r', "<file>", "Read a log file that varnishlog -w wrote."),
                option('t', "<seconds|off>", "How long to wait for a server; off = for ever."),
                HELP,
            ],
        }],
    )
};

pub(super) static POLICY: Program = Program {
    about: "What hit ratio each eviction policy would have had with this access log, by size of the cache. GET requests that were answered \
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
                    "combined is also varnishncsa's; with vhost the virtual host comes first.",
                ),
                word_option(
                    'u',
                    "urls",
                    "<num>",
                    "How many URLs are kept track of, 65536 if not given. With more of them in the log, only one in 2, 4, 8, … URLs is replayed, by a \
                     hash, in caches as much smaller. Memory: at most 8 KiB for each, and as a rule less than 1 KiB.",
                ),
                word_option('J', "json", "", "One JSON object (docs/json.md)."),
                HELP,
            ],
        }],
    )
};

pub(super) static BENCH: Program = Program {
    about: "Makes load on a server and says how it fared. Each of the connections asks again when it has its answer (a closed loop), or, with \
            --rate, requests fall due at a rate whatever the answers do (an open loop). Certificates are not verified.",
    rest: "<url>",
    notes: "docs/bench.md says how to read the account. Exit status: 0 done, 1 nothing was answered, 2 the command line is wrong, a file \
            cannot be read, or there is no way to the server.",
    ..own(
        "bench",
        "makes load on a server and says how it fared",
        &[
            OptionGroup {
                title: "How much",
                options: &[
                    either('c', "connections", "<num>", "Connections; 50 if not given."),
                    either('t', "time", "<seconds>", "How long; 10 if not given."),
                    either('n', "requests", "<num>", "Ends sooner, after so many requests."),
                    either('r', "rate", "<num>", "Requests a second; each is timed from when it is due."),
                    word_option('b', "burst", "<num>", "With --rate: so many fall due at one moment."),
                    either(
                        'k',
                        "per-connection",
                        "<num>",
                        "Requests before a connection is replaced by another; 0 only opens connections.",
                    ),
                    word_option('i', "idle", "<num>", "Holds so many idle connections besides (HTTP/1)."),
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
                title: "What",
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
                title: "What is right",
                options: &[
                    word_option('S', "expect-status", "<num>", "Any below 400 if not given."),
                    word_option('B', "expect-bytes", "<num>", "The length of each body, as it is sent."),
                ],
            },
            OptionGroup {
                title: "Output",
                options: &[
                    word_option('J', "json", "", "One JSON object (docs/json.md)."),
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
                word_option('R', "root", "<dir>", "The installation lies below this directory."),
                word_option('q', "problems", "", "Leave out what works."),
                word_option('J', "json", "", "One JSON document."),
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
                word_option(
                    'd',
                    "dialect",
                    "<auto|1|2.0|2.1|3.0|4>",
                    "The generation of the language; auto looks at the text.",
                ),
                word_option('l', "label", "<name>", "A label that return (vcl(name)) may name; may be repeated."),
                STORAGE,
                HELP,
            ],
        }],
    )
};

pub(super) static VCL_FMT: Program = Program {
    about: "Writes each file anew in one style: spaces, line ends and indentation change, tokens and comments do not. VCL of every \
            generation. - or no file is the standard input, which goes to the standard output. A text with an error is left alone.",
    rest: "[<file>...]",
    notes: "Exit status: 0 done, 1 an invalid text, or with --check one that would change, 2 wrong command line or unreadable file.",
    ..own(
        "vcl fmt",
        "one style for every text",
        &[OptionGroup {
            title: "Options",
            options: &[
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
    about: "Says what a word means: the code of a message (V0301), a variable (beresp.ttl), a subroutine (vcl_recv), an action (deliver), \
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

pub(super) static UPGRADE: Program = Program {
    about: "The running server starts the program that now has its name, with its own arguments, and hands over its sockets, the cache, the \
            bans, VCLs, parameters and certificates. No connection is refused.",
    notes: "Exit status: 0 the new program serves, 1 the old one goes on, 2 no server.",
    usage_status: 1,
    ..own(
        "upgrade",
        "lets the program that is installed now take over from a running server",
        &[OptionGroup { title: "Options", options: &[DIRECTORY, HELP] }],
    )
};
