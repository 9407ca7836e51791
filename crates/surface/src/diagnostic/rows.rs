//! The rows of the table of messages, in the order of their numbers.

use super::CodeRow;

/// Subject of a message. Source: the table below.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Code {
    VersionMissing,
    VersionMalformed,
    VersionUnsupported,
    VersionUnfinished,
    VersionHigher,
    SourceTooLarge,
    IncludeMalformed,
    IncludeUnreadable,
    IncludeUnsafe,
    IncludeRecursive,
    IncludeRelative,
    NotVcl,
    UnterminatedString,
    UnterminatedLongString,
    UnterminatedComment,
    NestedComment,
    InlineC,
    UnterminatedInlineC,
    NumberTooLong,
    BlobMalformed,
    Expected,
    ExpectedStatement,
    ExpectedDeclaration,
    ExpectedExpression,
    NestedTooDeep,
    Unclosed,
    ElseAlone,
    OldBackendField,
    UnknownSymbol,
    UnknownProperty,
    UndefinedReference,
    WrongSymbol,
    ReservedName,
    MalformedName,
    Redefined,
    UnknownMethod,
    OtherVersion,
    HeaderName,
    UnknownVmod,
    AliasTaken,
    MethodOfClass,
    NoBackend,
    Unused,
    NotReadable,
    NotSettable,
    NotUnsettable,
    ReadOnly,
    NotHere,
    InvalidReturn,
    UnknownReturn,
    ReturnArguments,
    Recursion,
    Unreachable,
    RetiredReturn,
    TypeMismatch,
    OperatorImpossible,
    ComparisonMismatch,
    BooleanExpected,
    UnknownUnit,
    RegexInvalid,
    PatternNotConstant,
    AddressConstant,
    ArgumentMissing,
    ArgumentUnknown,
    ArgumentRepeated,
    EnumValue,
    VoidResult,
    UnknownField,
    FieldRepeated,
    FieldValue,
    BackendAddressMissing,
    BackendUnresolved,
    BackendManyAddresses,
    UnixPath,
    ProbeWindow,
    ProbeMissing,
    AclFlag,
    AclMask,
    AclHostBits,
    AclUnresolved,
    AclConflict,
    DialectAssumed,
    DialectOther,
    PercentEscape,
    BareAction,
    WithoutEffect,
    Approximated,
    PurgeTest,
    DirectorPolicy,
    DirectorMember,
}

/// All messages.
pub static CODES: &[CodeRow] = &[
    CodeRow {
        code: Code::VersionMissing,
        number: "V0001",
        title: r"The text does not say which VCL it is",
        explanation: r"The first line of a VCL names the version of the language: 4.0 or 4.1. Only files that are included may leave it out. Copal reads a text without it as 4.1 if nothing in it is of an older version; under the name varnishd it is an error, as in Varnish.",
        bad: r"backend default none;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::VersionMalformed,
        number: "V0002",
        title: r"The version is not a digit, a dot and a digit",
        explanation: r"A version has one digit before the dot and one after it. The version of the language is not that of the program: there is 4.0 and 4.1.",
        bad: r"vcl 4;
backend default none;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::VersionUnsupported,
        number: "V0003",
        title: r"This version of VCL does not exist",
        explanation: r"The versions 4.0 and 4.1 are known. Where the program listens on a Unix socket, 4.1 is the least.",
        bad: r"vcl 9.9;
backend default none;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::VersionUnfinished,
        number: "V0004",
        title: r"The version does not end in a semicolon",
        explanation: r"The declaration of the version is a statement like others: the word vcl, the number, a semicolon.",
        bad: r"vcl 4.1
backend default none;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::VersionHigher,
        number: "V0005",
        title: r"An included file asks for a newer version",
        explanation: r"The main file says in which version of the language everything is written; what it includes can ask for the same version or an older one. Raise the version of the main file.",
        bad: r#"vcl 4.0;
backend default none;
include "newer.vcl";
"#,
        good: r#"vcl 4.1;
backend default none;
include "newer.vcl";
"#,
    },
    CodeRow {
        code: Code::SourceTooLarge,
        number: "V0006",
        title: r"Too much text",
        explanation: r"The main text, or all texts together, or their number, is beyond what the compiler takes: 128 MB, 10,000 files, 16 million words and signs. Data of that size belongs into a VMOD or a backend.",
        bad: r"vcl 4.1;
# followed by 128 MB of text
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::IncludeMalformed,
        number: "V0007",
        title: r#"An include that is not include "path";"#,
        explanation: r"After the word include come, perhaps, the flag +glob, a path in quotes, and a semicolon.",
        bad: r"vcl 4.1;
backend default none;
include other.vcl;
",
        good: r#"vcl 4.1;
backend default none;
include "other.vcl";
"#,
    },
    CodeRow {
        code: Code::IncludeUnreadable,
        number: "V0008",
        title: r"An included file cannot be read",
        explanation: r"The file does not exist or cannot be opened. A path that begins with ./ is resolved next to the including file, one that begins with / is used as given, others are searched in the directories of the parameter vcl_path, in their order. The reason in parentheses is the system's.",
        bad: r#"vcl 4.1;
backend default none;
include "/no/such/file.vcl";
"#,
        good: r#"vcl 4.1;
backend default none;
include "other.vcl";
"#,
    },
    CodeRow {
        code: Code::IncludeUnsafe,
        number: "V0009",
        title: r"A path that the parameter vcc_unsafe_path forbids",
        explanation: r"While the parameter vcc_unsafe_path is off, include takes only names without a slash, which are found in the directories of vcl_path.",
        bad: r#"vcl 4.1;
backend default none;
include "/etc/passwd";
"#,
        good: r#"vcl 4.1;
backend default none;
include "other.vcl";
"#,
    },
    CodeRow {
        code: Code::IncludeRecursive,
        number: "V0010",
        title: r"A file that includes itself",
        explanation: r"The places show the chain of includes that leads back to the file. Put what both need into a third file.",
        bad: r#"vcl 4.1;
backend default none;
include "itself.vcl";
"#,
        good: r#"vcl 4.1;
backend default none;
include "other.vcl";
"#,
    },
    CodeRow {
        code: Code::IncludeRelative,
        number: "V0011",
        title: r"A path relative to a file without a place",
        explanation: r"A path that begins with ./ is meant relative to the including file, whose own name must be absolute for that; a text that was given on the command line has none.",
        bad: r#"vcl 4.1;
backend default none;
include "./other.vcl";
"#,
        good: r#"vcl 4.1;
backend default none;
include "other.vcl";
"#,
    },
    CodeRow {
        code: Code::NotVcl,
        number: "V0101",
        title: r"Characters that VCL does not have",
        explanation: r"Names, numbers, operators and brackets are ASCII. Anything else belongs in a string or a comment. Often it is a quotation mark of a word processor, or a stray @ or $. A file with NUL bytes, in UTF-16 or with a byte order mark is not text: save it as plain UTF-8.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = @;
}
",
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "@";
}
"#,
    },
    CodeRow {
        code: Code::UnterminatedString,
        number: "V0102",
        title: r"A string that does not end on its line",
        explanation: r#"A string in plain quotes ends on the line on which it begins and cannot contain a quote; nothing in it is an escape. Longer ones are written {"..."} or """..."""."#,
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "abc;
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "abc";
}
"#,
    },
    CodeRow {
        code: Code::UnterminatedLongString,
        number: "V0103",
        title: r"A long string that never ends",
        explanation: r#"A string that begins with {" ends with "}, one that begins with three quotes ends with three."#,
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = {"abc";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = {"abc"};
}
"#,
    },
    CodeRow {
        code: Code::UnterminatedComment,
        number: "V0104",
        title: r"A comment that never ends",
        explanation: r"A comment that begins with /* ends with */. Comments that begin with # or // end with the line.",
        bad: r"vcl 4.1;
backend default none;
/* what follows is never seen
",
        good: r"vcl 4.1;
backend default none;
/* a comment */
",
    },
    CodeRow {
        code: Code::NestedComment,
        number: "V0105",
        title: r"A comment within a comment",
        explanation: r"Comments do not nest: the first */ ends the comment, whatever was opened in between. That is almost always a mistake, so it is refused.",
        bad: r"vcl 4.1;
backend default none;
/* a /* b */
",
        good: r"vcl 4.1;
backend default none;
/* a */ /* b */
",
    },
    CodeRow {
        code: Code::InlineC,
        number: "V0106",
        title: r"C code in a VCL",
        explanation: r"Nothing is compiled as C: Copal has no C compiler, and the effect of C code on the program cannot be checked. Most of what was written in C has a VMOD today: std (numbers, time, logging, sorting, environment), header and cookie, digest and blob (hashes, encodings), var (variables), str (pieces of text).",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    C{ syslog(LOG_INFO, "x"); }C
}
"#,
        good: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    std.syslog(6, "x");
}
"#,
    },
    CodeRow {
        code: Code::UnterminatedInlineC,
        number: "V0107",
        title: r"C code that never ends",
        explanation: r"C code stood between C{ and }C. It is not compiled here in any case; see V0106.",
        bad: r"vcl 4.1;
backend default none;
C{ int x;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::NumberTooLong,
        number: "V0108",
        title: r"A number with too many digits",
        explanation: r"A whole number has at most 15 digits, one with a dot at most 12 before and 3 after it.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = 1.23456;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = 1.234;
}
",
    },
    CodeRow {
        code: Code::BlobMalformed,
        number: "V0109",
        title: r"A BLOB that is not base64 between colons",
        explanation: r"A BLOB is written as base64 between two colons: letters, digits, + and /, in groups of four, the last one filled up with =.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = :aGVsbG8:;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = :aGVsbG8=:;
}
",
    },
    CodeRow {
        code: Code::Expected,
        number: "V0201",
        title: r"Something else was expected here",
        explanation: r"The grammar leaves no choice at this place. Most often a semicolon, a closing parenthesis or the + between two strings is missing just before it.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "a" "b";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "a" + "b";
}
"#,
    },
    CodeRow {
        code: Code::ExpectedStatement,
        number: "V0202",
        title: r"No statement begins like this",
        explanation: r"A subroutine is made of statements: set, unset, call, return, if, new, ban, hash_data, synthetic, calls of VMODs, and blocks in braces. A stray semicolon or parenthesis is none.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    ;
}
",
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "a";
}
"#,
    },
    CodeRow {
        code: Code::ExpectedDeclaration,
        number: "V0203",
        title: r"No declaration begins like this",
        explanation: r"Outside of subroutines there are only declarations: acl, backend, import, include, probe and sub. Statements belong in a sub. After a mistake with braces the rest of a subroutine ends up here.",
        bad: r#"vcl 4.1;
backend default none;
set req.url = "/";
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.url = "/";
}
"#,
    },
    CodeRow {
        code: Code::ExpectedExpression,
        number: "V0204",
        title: r"No value begins like this",
        explanation: r"A value was looked for: a string, a number, a variable, the result of a function, or something in parentheses.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.url = ;
}
",
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.url = "/";
}
"#,
    },
    CodeRow {
        code: Code::NestedTooDeep,
        number: "V0205",
        title: r"Nested too deep",
        explanation: r"Blocks, parentheses and calls within calls can be nested 200 deep. Put a part into a subroutine of its own.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    # and so on, more than 200 deep
    set req.http.x = ((((((((((((1))))))))))));
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = (((1)));
}
",
    },
    CodeRow {
        code: Code::Unclosed,
        number: "V0206",
        title: r"A brace is never closed",
        explanation: r"The text ends, or a declaration begins, within a block. The second place shows where the block begins that was open last; the one that lacks its brace may be further out.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url == "/") {
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url == "/") {
    }
}
"#,
    },
    CodeRow {
        code: Code::ElseAlone,
        number: "V0207",
        title: r"An else without if or block",
        explanation: r"A block in braces or another if follows else.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url == "/") { } else set req.url = "/";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url == "/") { } else { set req.url = "/"; }
}
"#,
    },
    CodeRow {
        code: Code::OldBackendField,
        number: "V0208",
        title: r"The way backends were written in VCL 1.0",
        explanation: r"The attributes of a backend begin with a dot, without set and backend in front of them.",
        bad: r#"vcl 4.1;
backend default {
    set backend.host = "192.0.2.1";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
}
"#,
    },
    CodeRow {
        code: Code::UnknownSymbol,
        number: "V0301",
        title: r"Nothing has this name",
        explanation: r"It is neither a variable nor a function nor declared by the VCL before this place. The hint names the nearest word that exists. Functions of a VMOD exist once it is imported, objects once they are made in vcl_init, and both only below that place.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.urll = "/";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.url = "/";
}
"#,
    },
    CodeRow {
        code: Code::UnknownProperty,
        number: "V0302",
        title: r"This value has no such property or method",
        explanation: r"The methods of a value, after a dot, depend on its type: STRINGs have .upper() and .lower(), a BACKEND has .resolve(), a STEVEDORE has .free_space, .used_space and .happy, objects have the methods of their VMOD.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = req.url.length();
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = req.url.lower();
}
",
    },
    CodeRow {
        code: Code::UndefinedReference,
        number: "V0303",
        title: r"No backend, acl, probe or subroutine has this name",
        explanation: r"The name is used where only one kind of symbol is allowed, and the VCL does not declare one.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    if (client.ip ~ internal) {
        return (pass);
    }
}
",
        good: r#"vcl 4.1;
backend default none;
acl internal {
    "192.0.2.0"/24;
}
sub vcl_recv {
    if (client.ip ~ internal) {
        return (pass);
    }
}
"#,
    },
    CodeRow {
        code: Code::WrongSymbol,
        number: "V0304",
        title: r"The name means something of another kind",
        explanation: r"This symbol cannot be used in this place: a backend is not a subroutine, an action is not a value. The message says what it is and, where the VCL declares it, where.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set default = "x";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "x";
}
"#,
    },
    CodeRow {
        code: Code::ReservedName,
        number: "V0305",
        title: r"A name that belongs to the language",
        explanation: r"Names that begin with vcl_, words of the language and names of variables cannot be given to anything else.",
        bad: r"vcl 4.1;
backend vcl_default none;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::MalformedName,
        number: "V0306",
        title: r"A name with a dot in it",
        explanation: r"Names that a VCL declares are letters, digits, underscores and hyphens. The dot leads to the parts of a thing.",
        bad: r"vcl 4.1;
backend www.example.com none;
",
        good: r"vcl 4.1;
backend www-example-com none;
",
    },
    CodeRow {
        code: Code::Redefined,
        number: "V0307",
        title: r"The name is already taken",
        explanation: r"Names of backends, acls, probes, subroutines and objects share one namespace: each name has one meaning. Only the methods and hooks of the language (vcl_recv, vcl_req_host) may be defined several times; they are joined. A VCL that declares backends cannot be combined with -b, which names the backend of a VCL without one.",
        bad: r"vcl 4.1;
backend a none;
backend a none;
",
        good: r"vcl 4.1;
backend a none;
",
    },
    CodeRow {
        code: Code::UnknownMethod,
        number: "V0308",
        title: r"No subroutine of the language has this name",
        explanation: r"Names that begin with vcl_ are those of the language's own subroutines; the message lists them. A subroutine of your own needs another name.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_fetch {
    return (deliver);
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_backend_response {
    return (deliver);
}
",
    },
    CodeRow {
        code: Code::OtherVersion,
        number: "V0309",
        title: r"The version of the VCL does not have this",
        explanation: r"Some variables exist in VCL 4.0 only and others from 4.1 on. Change the number in the first line, or use what the hint names.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.esi = false;
}
",
        good: r"vcl 4.0;
backend default none;
sub vcl_recv {
    set req.esi = false;
}
",
    },
    CodeRow {
        code: Code::HeaderName,
        number: "V0310",
        title: r"This cannot be the name of a header",
        explanation: r"A header's name has 1 to 127 characters of those that HTTP allows in names. From VCL 4.1 on it may be quoted, for names that would not be words of VCL.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http."a b" = "x";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http."a.b" = "x";
}
"#,
    },
    CodeRow {
        code: Code::UnknownVmod,
        number: "V0311",
        title: r"Unknown VMOD",
        explanation: r"VMODs are part of the program: none is loaded from a file, and the path after from is ignored. The message lists those that there are and says where one does what the named one did.",
        bad: r"vcl 4.1;
backend default none;
import redis;
",
        good: r"vcl 4.1;
backend default none;
import std;
",
    },
    CodeRow {
        code: Code::AliasTaken,
        number: "V0312",
        title: r"Two VMODs under one name",
        explanation: r"The name after as is the name of one VMOD in this VCL. The same import may be repeated.",
        bad: r"vcl 4.1;
backend default none;
import std as a;
import directors as a;
",
        good: r"vcl 4.1;
backend default none;
import std as a;
import directors as b;
",
    },
    CodeRow {
        code: Code::MethodOfClass,
        number: "V0313",
        title: r"A method is called without an object",
        explanation: r"A class makes objects: new name = vmod.class(...); in vcl_init. Methods belong to the object, not to the class.",
        bad: r"vcl 4.1;
backend default none;
import directors;
sub vcl_recv {
    set req.backend_hint = directors.round_robin.backend();
}
",
        good: r"vcl 4.1;
backend default none;
import directors;
sub vcl_init {
    new pool = directors.round_robin();
    pool.add_backend(default);
}
sub vcl_recv {
    set req.backend_hint = pool.backend();
}
",
    },
    CodeRow {
        code: Code::NoBackend,
        number: "V0314",
        title: r"The VCL has no backend",
        explanation: r"Every VCL declares at least one backend, unless the option -b of copal daemon names it. The one named default, or else the first, gets the requests that the VCL gives no other. Where there is nothing to name, backend default none; is a backend that is always sick.",
        bad: r"vcl 4.1;
",
        good: r"vcl 4.1;
backend default none;
",
    },
    CodeRow {
        code: Code::Unused,
        number: "V0316",
        title: r"Declared, but never used",
        explanation: r"A backend, acl, probe or subroutine that nothing uses is most often a slip of the pen elsewhere. While the parameter vcc_err_unref is off, this is a warning.",
        bad: r#"vcl 4.1;
backend default none;
acl internal {
    "192.0.2.0"/24;
}
"#,
        good: r#"vcl 4.1;
backend default none;
acl internal {
    "192.0.2.0"/24;
}
sub vcl_recv {
    if (client.ip !~ internal) {
        return (synth(403));
    }
}
"#,
    },
    CodeRow {
        code: Code::NotReadable,
        number: "V0401",
        title: r"Not available in this subroutine",
        explanation: r"A variable or function exists only while its object exists: beresp from the answer of the origin on, obj in vcl_hit and vcl_deliver, req never on the side of the origin. Where a subroutine is called by several methods, each of them has to allow it. The hint lists the methods that have it.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = beresp.status;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_backend_response {
    set beresp.http.x = beresp.status;
}
",
    },
    CodeRow {
        code: Code::NotSettable,
        number: "V0402",
        title: r"Cannot be set in this subroutine",
        explanation: r"The variable can be set, but not by this method: it does not exist yet, or what it decides has been decided. The hint lists the methods that can.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set beresp.ttl = 1h;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_backend_response {
    set beresp.ttl = 1h;
}
",
    },
    CodeRow {
        code: Code::NotUnsettable,
        number: "V0403",
        title: r"Cannot be unset in this subroutine",
        explanation: r"The headers can be unset, but not by this method. The hint lists the methods that can.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    unset resp.http.Server;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_deliver {
    unset resp.http.Server;
}
",
    },
    CodeRow {
        code: Code::ReadOnly,
        number: "V0404",
        title: r"A variable that cannot be changed that way anywhere",
        explanation: r"Some variables are only read, bodies are only set, and only headers, bodies, timeouts, req.ttl and req.grace can be unset. No method can do what was asked.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.restarts = 0;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.restarts > 0) {
        return (pass);
    }
}
",
    },
    CodeRow {
        code: Code::NotHere,
        number: "V0405",
        title: r"A statement that another subroutine may use",
        explanation: r"hash_data() belongs to vcl_hash, synthetic() to vcl_synth and vcl_backend_error, and new to vcl_init.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    hash_data(req.url);
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_hash {
    hash_data(req.url);
}
",
    },
    CodeRow {
        code: Code::InvalidReturn,
        number: "V0406",
        title: r"An action that this subroutine cannot return",
        explanation: r"Each method allows a few actions, which the message lists. A subroutine that is called may return what all of its callers may.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (deliver);
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (pass);
}
",
    },
    CodeRow {
        code: Code::UnknownReturn,
        number: "V0407",
        title: r"No action has this name",
        explanation: r"The word in return (...) is one of the actions: abandon, deliver, error, fail, fetch, hash, lookup, ok, pass, pipe, purge, restart, retry, synth, vcl.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (passs);
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (pass);
}
",
    },
    CodeRow {
        code: Code::ReturnArguments,
        number: "V0408",
        title: r"An action with the wrong arguments",
        explanation: r"synth takes a status and perhaps a reason, vcl a label; error may take a status and a reason, fail a text, pass a duration; the others take nothing.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (synth);
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    return (synth(404));
}
",
    },
    CodeRow {
        code: Code::Recursion,
        number: "V0409",
        title: r"A subroutine that calls itself",
        explanation: r"The places show the calls that form the loop. VCL has no loops: return (restart) and return (retry) begin a request anew, a limited number of times.",
        bad: r"vcl 4.1;
backend default none;
sub again {
    call again;
}
sub vcl_recv {
    call again;
}
",
        good: r#"vcl 4.1;
backend default none;
sub once {
    set req.http.x = "1";
}
sub vcl_recv {
    call once;
}
"#,
    },
    CodeRow {
        code: Code::Unreachable,
        number: "V0410",
        title: r"Statements that are never reached",
        explanation: r"All ways through the statements before this one end in a return. A warning: the VCL works, but probably not as it was meant.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    return (pass);
    set req.http.x = "never";
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.http.x = "first";
    return (pass);
}
"#,
    },
    CodeRow {
        code: Code::RetiredReturn,
        number: "V0411",
        title: r"An action of the first releases of VCL 4",
        explanation: r"vcl_hit could return miss or fetch, to replace an object that is stored. The VCL works: the request continues in vcl_miss, and the response replaces the object. Varnish 7 refuses the action. copal vcl migrate writes a restart with req.hash_always_miss instead.",
        bad: r"vcl 4.0;
backend default none;
sub vcl_hit {
    if (obj.ttl < 0s) {
        return (miss);
    }
}
",
        good: r"vcl 4.0;
backend default none;
sub vcl_hit {
    if (obj.ttl < 0s) {
        set req.hash_always_miss = true;
        return (restart);
    }
}
",
    },
    CodeRow {
        code: Code::TypeMismatch,
        number: "V0501",
        title: r"A value of another type was expected",
        explanation: r"Few types turn into others by themselves: numbers, times, addresses and names into text, an INT into a REAL, and STRING, INT, DURATION and BACKEND into a truth. Everything else is said: a duration has a unit (10s), and std has functions that read numbers, times and addresses from text.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10s;
}
",
    },
    CodeRow {
        code: Code::OperatorImpossible,
        number: "V0502",
        title: r"The operator does not fit these types",
        explanation: r"Sums need two values of one type (INT and REAL mix, a TIME takes a DURATION); products take a number on the right. The + joins text where text is expected or is the left operand.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10s + 5;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10s + 5s;
}
",
    },
    CodeRow {
        code: Code::ComparisonMismatch,
        number: "V0503",
        title: r"Two types are compared",
        explanation: r#"Both sides of a comparison have one type. "" + x makes text of a value; std reads values from text."#,
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.restarts == "1") { }
}
"#,
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.restarts == 1) { }
}
",
    },
    CodeRow {
        code: Code::BooleanExpected,
        number: "V0504",
        title: r"Not something that is true or false",
        explanation: r"The operators !, && and || take BOOLs, and what has a truth: a STRING that is set, an INT that is not 0, a DURATION above 0, a BACKEND.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    if (!1.5) { }
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    if (!req.http.x) { }
}
",
    },
    CodeRow {
        code: Code::UnknownUnit,
        number: "V0505",
        title: r"A number with an unknown unit, or without one",
        explanation: r"Durations have the units ms, s, m, h, d, w and y; BYTES have B, KB, MB, GB, TB and PB.",
        bad: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10sec;
}
",
        good: r"vcl 4.1;
backend default none;
sub vcl_recv {
    set req.ttl = 10s;
}
",
    },
    CodeRow {
        code: Code::RegexInvalid,
        number: "V0506",
        title: r"A regular expression that is none",
        explanation: r"The text after ~ is a PCRE2 pattern; the message says what is wrong with it. In VCL strings a backslash is an ordinary character, so nothing has to be escaped twice.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url ~ "(") { }
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url ~ "\(") { }
}
"#,
    },
    CodeRow {
        code: Code::PatternNotConstant,
        number: "V0507",
        title: r"A pattern has to be written out",
        explanation: r"Patterns are compiled when the VCL is loaded, so they are strings, perhaps joined with +, without variables in them. To match what is only known later there is the VMOD re.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url ~ "a" + req.http.x) { }
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (req.url ~ "a" + "b") { }
}
"#,
    },
    CodeRow {
        code: Code::AddressConstant,
        number: "V0508",
        title: r"Text that is not an IP address",
        explanation: r"Where an IP is wanted, a string is an address or the name of a host that has one, perhaps with a port: it is looked up when the VCL is loaded.",
        bad: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (client.ip == "/run/socket") { }
}
"#,
        good: r#"vcl 4.1;
backend default none;
sub vcl_recv {
    if (client.ip == "192.0.2.1") { }
}
"#,
    },
    CodeRow {
        code: Code::ArgumentMissing,
        number: "V0509",
        title: r"An argument is missing",
        explanation: r"The function has a parameter without a default, and the call gives it nothing. The hint shows all parameters.",
        bad: r"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    std.log();
}
",
        good: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    std.log("x");
}
"#,
    },
    CodeRow {
        code: Code::ArgumentUnknown,
        number: "V0510",
        title: r"The function has no parameter of this name",
        explanation: r"Arguments are given in order, or as name = value. The hint names the nearest parameter.",
        bad: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    set req.ttl = std.duration("1s", falback = 2s);
}
"#,
        good: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    set req.ttl = std.duration("1s", fallback = 2s);
}
"#,
    },
    CodeRow {
        code: Code::ArgumentRepeated,
        number: "V0511",
        title: r"An argument is given twice",
        explanation: r"A parameter that was given in its place cannot be given by name as well.",
        bad: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    set req.ttl = std.duration("1s", 2s, fallback = 3s);
}
"#,
        good: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    set req.ttl = std.duration("1s", fallback = 3s);
}
"#,
    },
    CodeRow {
        code: Code::EnumValue,
        number: "V0512",
        title: r"Not one of the words that this parameter takes",
        explanation: r"The parameter takes one of a few words, without quotes; the message lists them.",
        bad: r"vcl 4.1;
backend default none;
import blob;
sub vcl_recv {
    set req.http.x = blob.encode(BASE63, blob = :aGVsbG8=:);
}
",
        good: r"vcl 4.1;
backend default none;
import blob;
sub vcl_recv {
    set req.http.x = blob.encode(BASE64, blob = :aGVsbG8=:);
}
",
    },
    CodeRow {
        code: Code::VoidResult,
        number: "V0513",
        title: r"The function has no result",
        explanation: r"The function is called for what it does. Use it as a statement of its own.",
        bad: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    set req.http.x = std.log("x");
}
"#,
        good: r#"vcl 4.1;
backend default none;
import std;
sub vcl_recv {
    std.log("x");
}
"#,
    },
    CodeRow {
        code: Code::UnknownField,
        number: "V0601",
        title: r"A backend or probe has no such attribute",
        explanation: r"The hint names the nearest attribute, or all of them.",
        bad: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .prot = "8080";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .port = "8080";
}
"#,
    },
    CodeRow {
        code: Code::FieldRepeated,
        number: "V0602",
        title: r"An attribute is given twice",
        explanation: r"Each attribute is given once, a backend has one address (.host or .path), and a probe one request (.url or .request).",
        bad: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .host = "192.0.2.2";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
}
"#,
    },
    CodeRow {
        code: Code::FieldValue,
        number: "V0603",
        title: r"An attribute cannot have this value",
        explanation: r"The message says which values it can have: .proxy_header is 1 or 2, .expected_response has three digits, only .probe is written in braces.",
        bad: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .proxy_header = 3;
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .proxy_header = 2;
}
"#,
    },
    CodeRow {
        code: Code::BackendAddressMissing,
        number: "V0604",
        title: r"A backend without an address",
        explanation: r"A backend has a .host or a .path, or is written backend name none;.",
        bad: r#"vcl 4.1;
backend default {
    .port = "8080";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .port = "8080";
}
"#,
    },
    CodeRow {
        code: Code::BackendUnresolved,
        number: "V0605",
        title: r"The host of a backend has no address",
        explanation: r"The name is looked up when the VCL is loaded; the message has the system's reason. Hosts whose addresses change belong to a VMOD that asks again.",
        bad: r#"vcl 4.1;
backend default {
    .host = "no such host";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
}
"#,
    },
    CodeRow {
        code: Code::BackendManyAddresses,
        number: "V0606",
        title: r"The host of a backend has several addresses",
        explanation: r"A backend has at most one IPv4 and one IPv6 address. Declare one backend for each address and put them into a director.",
        bad: r#"vcl 4.1;
backend default {
    .host = "many.example";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .host = "192.0.2.12";
}
"#,
    },
    CodeRow {
        code: Code::UnixPath,
        number: "V0607",
        title: r"The .path of a backend cannot be used",
        explanation: r"A path is absolute, leads to a socket, and needs VCL 4.1. If nothing is there yet, the message is a warning.",
        bad: r#"vcl 4.1;
backend default {
    .path = "run/socket";
}
"#,
        good: r#"vcl 4.1;
backend default {
    .path = "/run/socket";
}
"#,
    },
    CodeRow {
        code: Code::ProbeWindow,
        number: "V0608",
        title: r".window and .threshold do not fit",
        explanation: r"A backend is healthy when .threshold of the last .window probes were good: the threshold is not above the window, and both are 64 at most. A window needs a threshold.",
        bad: r#"vcl 4.1;
probe default {
    .window = 3;
    .threshold = 5;
}
backend default {
    .host = "192.0.2.1";
}
"#,
        good: r#"vcl 4.1;
probe default {
    .window = 8;
    .threshold = 5;
}
backend default {
    .host = "192.0.2.1";
}
"#,
    },
    CodeRow {
        code: Code::ProbeMissing,
        number: "V0609",
        title: r"No probe is named default",
        explanation: r"A backend that says .probe = default; needs a declaration probe default { ... } above it.",
        bad: r#"vcl 4.1;
backend default {
    .host = "192.0.2.1";
    .probe = default;
}
"#,
        good: r#"vcl 4.1;
probe default {
}
backend default {
    .host = "192.0.2.1";
    .probe = default;
}
"#,
    },
    CodeRow {
        code: Code::AclFlag,
        number: "V0701",
        title: r"An acl has no such flag",
        explanation: r"The flags are log, table and pedantic, each with + or - directly before it.",
        bad: r"vcl 4.1;
backend default none;
acl a +logg { }
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
",
        good: r"vcl 4.1;
backend default none;
acl a +log { }
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
",
    },
    CodeRow {
        code: Code::AclMask,
        number: "V0702",
        title: r"The mask of an acl entry is wrong",
        explanation: r"The mask is the number of leading bits that count: up to 32 for IPv4 and 128 for IPv6. It is written once, within the quotes or after them.",
        bad: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.0"/33;
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.0"/24;
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
    },
    CodeRow {
        code: Code::AclHostBits,
        number: "V0703",
        title: r"An acl entry with bits beyond its mask",
        explanation: r"The address has bits that the mask says do not count, so one of the two is probably wrong. An acl with the flag -pedantic clears these bits and warns.",
        bad: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.1"/24;
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.0"/24;
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
    },
    CodeRow {
        code: Code::AclUnresolved,
        number: "V0704",
        title: r"The host of an acl entry has no address",
        explanation: r"Names are looked up when the VCL is loaded. An entry in parentheses is left out when it has no address, with a warning.",
        bad: r#"vcl 4.1;
backend default none;
acl a {
    "no such host";
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.1";
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
    },
    CodeRow {
        code: Code::AclConflict,
        number: "V0705",
        title: r"An acl says yes and no to the same addresses",
        explanation: r"Two entries name the same network, one with ! and one without. The more specific entry decides, so two alike cannot both.",
        bad: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.1";
    ! "192.0.2.1";
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
        good: r#"vcl 4.1;
backend default none;
acl a {
    "192.0.2.0"/24;
    ! "192.0.2.1";
}
sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
"#,
    },
    CodeRow {
        code: Code::DialectAssumed,
        number: "V0801",
        title: r"A text without a version, read as an old dialect",
        explanation: r"VCL before 4.0 had no line that says its version. A text without one is read as the VCL of the Varnish version that has most of its words; the message shows the most telling word. It keeps the meaning that it had there, with the built-in VCL of that time. The first line vcl 4.1; makes it VCL 4, --dialect of copal vcl says which one is meant.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_fetch {
    return (hit_for_pass);
}
"#,
        good: r#"vcl 4.1;
backend default { .host = "192.0.2.1"; }
sub vcl_backend_response {
    return (pass(beresp.ttl));
}
"#,
    },
    CodeRow {
        code: Code::DialectOther,
        number: "V0802",
        title: r"The text says another version than the one asked for",
        explanation: r"An old dialect was asked for, but the text begins with a version line, which only VCL 4 has. Remove the line, or do not ask for a dialect.",
        bad: r#"vcl 4.1;
backend default { .host = "192.0.2.1"; }
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
"#,
    },
    CodeRow {
        code: Code::PercentEscape,
        number: "V0803",
        title: r"A percent sign that begins no escape",
        explanation: r"In strings on one line VCL 1 and 2 read %xx as the character with that number in hexadecimal, of those that can be seen. A percent sign itself is %25. Strings in braces are left as they are.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_fetch {
    set obj.http.x = "100%";
}
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
sub vcl_fetch {
    set obj.http.x = "100%25";
}
"#,
    },
    CodeRow {
        code: Code::BareAction,
        number: "V0804",
        title: r"An action that has to be returned",
        explanation: r"Up to 2.0 an action was a statement of its own. Since 2.1 it is returned, which says that what follows is not reached.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    pass;
}
sub vcl_fetch {
    set beresp.ttl = 10s;
    set beresp.grace = 10s;
}
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    return (pass);
}
sub vcl_fetch {
    set beresp.ttl = 10s;
    set beresp.grace = 10s;
}
"#,
    },
    CodeRow {
        code: Code::WithoutEffect,
        number: "V0805",
        title: r"Accepted, but without effect",
        explanation: r"The old dialects could say things that have no counterpart any more: how often a name is looked up, what happens before an object is discarded. They are accepted so that the text can stay as it is.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    lookup;
}
sub vcl_timeout {
    discard;
}
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    lookup;
}
"#,
    },
    CodeRow {
        code: Code::Approximated,
        number: "V0806",
        title: r"Not quite what it was",
        explanation: r"The statement has no exact equivalent; the nearest one is used. The message says how it differs.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    purge_hash(req.url);
}
sub vcl_fetch {
    set obj.ttl = 10s;
}
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    purge_url(req.url);
}
sub vcl_fetch {
    set obj.ttl = 10s;
}
"#,
    },
    CodeRow {
        code: Code::PurgeTest,
        number: "V0807",
        title: r"A purge that is not made of comparisons",
        explanation: r"The purge of VCL 2 takes a string, or comparisons joined with &&: on the left req.url, a header of the request or a header of the object, then ~, !~, == or !=, on the right a string.",
        bad: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    purge(req.url == "/" && req.http.host);
}
"#,
        good: r#"backend default { .host = "192.0.2.1"; }
sub vcl_recv {
    purge(req.url == "/" && req.http.host ~ "example");
}
"#,
    },
    CodeRow {
        code: Code::DirectorPolicy,
        number: "V0808",
        title: r"A director of a kind that there is not",
        explanation: r"A director block says behind its name how it chooses. VCL 2.0 has random and round-robin, 2.1 also hash, client and dns (which looks hosts up), 3.0 also fallback.",
        bad: r#"backend one { .host = "192.0.2.1"; }
director all rotating {
    { .backend = one; }
}
sub vcl_recv {
    set req.backend = all;
}
"#,
        good: r#"backend one { .host = "192.0.2.1"; }
director all round-robin {
    { .backend = one; }
}
sub vcl_recv {
    set req.backend = all;
}
"#,
    },
    CodeRow {
        code: Code::DirectorMember,
        number: "V0809",
        title: r"A member of a director that is not complete",
        explanation: r"Every member of a director has a .backend, and in those that weigh them (random, hash and client) a .weight of one or more.",
        bad: r#"backend one { .host = "192.0.2.1"; }
director all random {
    { .backend = one; }
}
sub vcl_recv {
    set req.backend = all;
}
"#,
        good: r#"backend one { .host = "192.0.2.1"; }
director all random {
    { .backend = one; .weight = 1; }
}
sub vcl_recv {
    set req.backend = all;
}
"#,
    },
];
