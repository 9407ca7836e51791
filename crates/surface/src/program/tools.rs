//! Options of the tools that replace stock programs.
//!
//! Options of the stock programs are letters; Copal's own are words after two dashes.

use super::{DIRECTORY, HELP, OptionGroup, OptionRow, Program, option, word_option};

// Options that several tools have.
const WAIT: OptionRow = option('t', "<seconds|off>", "Time to wait for a server.");
const IGNORE_CASE: OptionRow = option('C', "", "Ignore case in regular expressions.");
const INCOMPLETE: OptionRow = option('L', "<limit>", "Incomplete transactions to keep.");
const QUERY_FILE: OptionRow = option('Q', "<file>", "File with a query.");
const QUERY: OptionRow = option('q', "<query>", "Query that a group must satisfy.");
const LOG_FILE: OptionRow = option('r', "<filename>", "Read a log file.");
const TRANSACTION_WAIT: OptionRow = option('T', "<seconds>", "Time to wait for the end of a transaction.");
const APPEND: OptionRow = option('a', "", "Append to the output file.");
const REPORT_ONCE: OptionRow = option('d', "", "Report the log as it is, then exit.");
const DAEMON: OptionRow = option('D', "", "Run as a daemon.");
const WITH_ESI: OptionRow = option('E', "", "Client transactions, ESI included.");
const GROUP_ANY: OptionRow = option('g', "<session|request|vxid|raw>", "Grouping (default: vxid).");
const GROUP_REQUEST: OptionRow = option('g', "<request|vxid>", "Grouping (default: vxid).");
const INCLUDE_TAGS: OptionRow = option('i', "<taglist>", "Include tags.");
const INCLUDE: OptionRow = option('I', "<[taglist:]regex>", "Include by regular expression.");
const EXCLUDE_TAGS: OptionRow = option('x', "<taglist>", "Exclude tags.");
const EXCLUDE: OptionRow = option('X', "<[taglist:]regex>", "Exclude by regular expression.");
const PROCESS_ID: OptionRow = option('P', "<file>", "File for the process id.");
const RATE: OptionRow = option('R', "<limit[/duration]>", "Limit the rate of groups.");
const OUTPUT: OptionRow = option('w', "<filename>", "Output file.");
const GROUPS_READ: OptionRow = option('k', "<num>", "Stop reading after this many groups.");

/// Option string, requested by wrapper scripts.
const OPTSTRING: OptionRow =
    word_option('O', "optstring", "", "Print the letters as getopt(3) takes them, for wrapper scripts.");
const VERSION: OptionRow = option('V', "", "Print the version.");

const fn tool(
    part: &'static str,
    stock: &'static str,
    line: &'static str,
    about: &'static str,
    groups: &'static [OptionGroup],
) -> Program {
    Program {
        part,
        stock: Some(stock),
        line,
        about,
        groups,
        rest: "",
        notes: "Exit status: 0 done, 1 the command line is wrong or the server cannot be found.",
        usage_status: 1,
        stops_at_word: false,
    }
}

pub(super) static ADM: Program = Program {
    rest: "[command [argument...]]",
    notes: "Exit status: 0 done, 1 refused or wrong command line, 2 no server reached.",
    stops_at_word: true,
    ..tool(
        "adm",
        "varnishadm",
        "commands to a running server",
        "Sends one command to a server, or those that it reads; a terminal gets an editor with completion. 'help' lists them, varnish-cli(7) says more.",
        ADM_OPTIONS,
    )
};

const ADM_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        HELP,
        DIRECTORY,
        option('p', "", "Print replies as the protocol frames them."),
        option('S', "<file>", "Secret file, with -T."),
        option('t', "<seconds>", "Patience for the server (default: 5); if given, for replies too."),
        option('T', "<address:port>", "Where its CLI listens, or the path of a socket."),
        VERSION,
        word_option('e', "strict", "", "End at the first command that fails."),
        OPTSTRING,
    ],
}];

pub(super) static LOG: Program = tool(
    "log",
    "varnishlog",
    "its log, by transaction",
    "Prints the records of the shared-memory log, grouped by transaction. vsl(7) lists the tags.",
    LOG_OPTIONS,
);

const LOG_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        APPEND,
        option('A', "", "Write text into the output file."),
        option('b', "", "Only backend transactions."),
        option('c', "", "Only client transactions."),
        IGNORE_CASE,
        REPORT_ONCE,
        DAEMON,
        WITH_ESI,
        GROUP_ANY,
        HELP,
        INCLUDE_TAGS,
        INCLUDE,
        option('k', "<num>", "Exit after this many groups."),
        INCOMPLETE,
        DIRECTORY,
        PROCESS_ID,
        QUERY_FILE,
        QUERY,
        LOG_FILE,
        RATE,
        WAIT,
        TRANSACTION_WAIT,
        option('u', "", "Write every group at once."),
        option('v', "", "Number on every line."),
        VERSION,
        OUTPUT,
        EXCLUDE_TAGS,
        EXCLUDE,
        word_option('J', "json", "", "One JSON object a line for every group."),
        OPTSTRING,
    ],
}];

pub(super) static NCSA: Program = tool(
    "ncsa",
    "varnishncsa",
    "its log, one line a request",
    "Prints a line for each request, in the combined format of access logs or by a template.",
    NCSA_OPTIONS,
);

const NCSA_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        APPEND,
        option('b', "", "Backend requests."),
        option('c', "", "Client requests (default)."),
        IGNORE_CASE,
        REPORT_ONCE,
        DAEMON,
        option('E', "", "Client requests, ESI included."),
        option('F', "<format>", "Format of a line."),
        option('f', "<formatfile>", "File with the format of a line."),
        GROUP_REQUEST,
        HELP,
        option('j', "", "Escape as JSON does."),
        INCOMPLETE,
        DIRECTORY,
        PROCESS_ID,
        QUERY_FILE,
        QUERY,
        LOG_FILE,
        RATE,
        WAIT,
        VERSION,
        OUTPUT,
        word_option('J', "json", "", "A JSON object a line; with -F or -f, lines of that template."),
        OPTSTRING,
    ],
}];

pub(super) static STAT: Program = tool(
    "stat",
    "varnishstat",
    "its counters",
    "Shows the counters of a server on a full screen, or prints them once. varnish-counters(7) lists them.",
    STAT_OPTIONS,
);

const STAT_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        option('1', "", "Print the counters once."),
        option('f', "<glob>", "Show what matches, or hide with a leading ^."),
        HELP,
        option('I', "<glob>", "Show what matches."),
        option('j', "", "Print the counters once, as JSON."),
        option('l', "", "List the names."),
        DIRECTORY,
        option('r', "", "Show gauges as they are, also below zero."),
        WAIT,
        VERSION,
        option('X', "<glob>", "Hide what matches."),
        option('x', "", "Print the counters once, as XML."),
        OPTSTRING,
    ],
}];

pub(super) static TOP: Program = tool(
    "top",
    "varnishtop",
    "the most frequent records of its log",
    "Ranks the records of the log by how often they come, fading with time.",
    TOP_OPTIONS,
);

const TOP_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        option('1', "", "Print the ranking once."),
        option('b', "", "Only backend records."),
        option('c', "", "Only client records."),
        IGNORE_CASE,
        option('d', "", "Start with the log as it is."),
        WITH_ESI,
        option('f', "", "Only the first field of a record."),
        GROUP_ANY,
        HELP,
        INCLUDE_TAGS,
        INCLUDE,
        GROUPS_READ,
        INCOMPLETE,
        DIRECTORY,
        option('p', "<period>", "Seconds over which counts fade (default: 60)."),
        QUERY_FILE,
        QUERY,
        LOG_FILE,
        WAIT,
        TRANSACTION_WAIT,
        EXCLUDE_TAGS,
        EXCLUDE,
        VERSION,
        OPTSTRING,
    ],
}];

pub(super) static HIST: Program = tool(
    "hist",
    "varnishhist",
    "how long requests take, as a histogram",
    "Draws a histogram of the log: hits as |, misses as #.",
    HIST_OPTIONS,
);

const HIST_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        option('B', "<factor>", "Bend time: 1 as it was, less slower, more faster."),
        IGNORE_CASE,
        option('d', "", "Draw the log as it is."),
        GROUP_REQUEST,
        HELP,
        GROUPS_READ,
        INCOMPLETE,
        option('m', "<power>", "Lower edge, in powers of ten."),
        option('M', "<power>", "Upper edge, in powers of ten."),
        DIRECTORY,
        option('p', "<period>", "Seconds between two drawings (default: 1)."),
        option('P', "<profile>", "Profile to draw: a name, see below, or [cb:]tag:[prefix]:field_num[:min:max]."),
        QUERY_FILE,
        QUERY,
        LOG_FILE,
        WAIT,
        TRANSACTION_WAIT,
        VERSION,
        OPTSTRING,
    ],
}];

pub(super) static TEST: Program = Program {
    rest: "<file>...",
    notes: "The daemon is the varnishd next to this program, else the one in PATH, else this program itself. Exit status: 0 passed, 1 \
            failed (with -k) or the command line is wrong, 2 failed, 77 skipped.",
    ..tool(
        "test",
        "varnishtest",
        "runs test scripts (.vtc)",
        "Runs scripts in Varnish's own language for tests: clients, servers and a daemon.",
        TEST_OPTIONS,
    )
};

const TEST_OPTIONS: &[OptionGroup] = &[OptionGroup {
    title: "Options",
    options: &[
        option('b', "<size>", "Most bytes of a test's log that are kept (default: 1M)."),
        option('C', "", "Taken and ignored: cleaning up needs no process of its own."),
        option('D', "<name=val>", "Define macro (varnishd=PATH: the daemon to test)."),
        HELP,
        word_option('H', "help-commands", "", "List what scripts can say."),
        word_option('E', "help-features", "", "List the features that scripts can ask for."),
        option('i', "", "Find the daemon and its tools in the build tree around."),
        option('j', "<jobs>", "Run this many tests at a time."),
        option('k', "", "Go on when a test fails."),
        option('L', "", "Always leave the tests' folders (vtc.*)."),
        option('l', "", "Leave a test's folder when it fails."),
        option('n', "<iterations>", "Run every test this many times."),
        option('p', "<name=val>", "Give every daemon a parameter."),
        option('q', "", "Report failures only."),
        option('t', "<duration>", "End a test after this many seconds (default: 60)."),
        option('v', "", "Report the whole log of every test."),
        option('W', "", "Have the daemon log its locks (debug bit witness)."),
    ],
}];
