//! Messages of the compiler. The texts are those that users of Varnish 7.1.1 search for; the hints
//! are Copal's own.

use super::{Files, HEAD, compile_with, compiled};

/// Checks that the text compiles.
fn accepts(text: &str) {
    if let Err(error) = compiled(text) {
        panic!("{text}\n{}", error.text);
    }
}

/// Checks that the text is refused, and that the messages contain each of these.
fn refuses(text: &str, expect: &[&str]) {
    let error = compiled(text).expect_err(text).text;
    for part in expect {
        assert!(error.contains(part), "{text}\nexpected: {part}\ngot: {error}");
    }
}

/// Checks that a statement in vcl_recv is refused.
fn recv_refuses(statement: &str, expect: &[&str]) {
    refuses(&format!("sub vcl_recv {{ {statement} }}"), expect);
}

fn recv_accepts(statement: &str) {
    accepts(&format!("sub vcl_recv {{ {statement} }}"));
}

#[test]
fn message_has_text_place_line_marker_and_hint() {
    let error = compiled("sub vcl_recv {\n\tset req.urll = \"a\";\n}").unwrap_err();
    assert_eq!(
        error.text,
        "Symbol not found: 'req.urll'\n\
         At: ('/etc/vcl/test.vcl' Line 3 Pos 13) -- (Pos 20)\n        set req.urll = \"a\";\n------------########-------\n\
         hint: did you mean req.url?\nexplain: copal vcl explain V0301\n"
    );
    assert_eq!(
        error.report(),
        format!(
            "Message from VCC-compiler:\n{}\nRunning VCC-compiler failed, exited with 2\nVCL compilation failed",
            error.text
        )
    );
}

#[test]
fn calls_that_recurse_are_listed_from_the_last_one_on() {
    // The circle begins at the name that comes first in the alphabet.
    let text = "sub z { call c; } sub c { call m; } sub m { call z; } sub vcl_recv { call z; }";
    let error = compiled(text).unwrap_err().text;
    assert!(error.contains("Subroutine recurses on\n('/etc/vcl/test.vcl' Line 2 Pos 23)"), "{error}");
    let called: Vec<&str> = error.lines().filter(|line| line.starts_with("...called from")).collect();
    assert_eq!(called, ["...called from \"z\"", "...called from \"m\"", "...called from \"c\""]);
}

#[test]
fn error_before_a_missing_token_is_reported_too() {
    recv_refuses("set foo;", &["Symbol not found: 'foo'", "Expected '=' got ';'"]);
    recv_refuses("set set == 1;", &["Symbol 'set' has wrong type (action), expected var:", "Expected '=' got '=='"]);
    recv_refuses("set req.ttl = 1 1;", &["Expression has type INT, expected DURATION", "Expected ';' got '1'"]);
    recv_refuses("if (foo { }", &["Symbol not found: 'foo'", "Expected ')' got '{'"]);
    recv_refuses("if (foo) pass;", &["Symbol not found: 'foo'", "Expected '{' got 'pass'"]);
    recv_refuses("ban(foo;", &["Symbol not found: 'foo'", "Expected ')' got ';'"]);
    recv_refuses("unset now }", &["Variable cannot be unset.", "Expected ';' got '}'"]);
    recv_refuses("call req.url }", &["Expression has type STRING, expected SUB", "Expected ';' got '}'"]);
}

#[test]
fn a_read_only_variable_hides_nothing_about_its_value() {
    recv_refuses("set req.time = 1;", &["Variable is read only.", "Expression has type INT, expected TIME"]);
    recv_refuses("set req += 1s;", &["Variable is read only.", "Expected '=' got '+='"]);
}

#[test]
fn wrong_arguments_are_reported_with_missing_and_unknown_ones() {
    let refuses = |call: &str, expect: &[&str]| {
        refuses(&format!("import std; import blob; sub vcl_recv {{ set req.http.x = {call}; }}"), expect);
    };
    refuses("blob.encode(foo)", &["Wrong enum value.", "Argument 'blob' missing"]);
    refuses("blob.equal(\"a\", s = \"b\")", &["Expression has type STRING, expected BLOB", "Unknown argument 's'"]);
    refuses("std.syntax(\"a\", \"b\")", &["Expression has type STRING, expected REAL", "Expected ')' got '\"b\"'"]);
}

#[test]
fn names_of_another_kind_are_called_what_they_are() {
    recv_refuses("foo 1;", &["Symbol not found: 'foo'\n", "\nSymbol not found.\n('/etc/vcl/test.vcl' Line 2 Pos 20)"]);
    recv_refuses("client = 1;", &["Symbol not found: 'client'"]);
    recv_refuses("true;", &["Symbol cannot be used here."]);
    recv_refuses("set false = 1;", &["Symbol 'false' has wrong type (func), expected var:", "Symbol was builtin"]);
    recv_refuses("call true;", &["Expression has type BOOL, expected SUB"]);
    recv_refuses("set req.backend_hint = vcl_foo;", &["Symbols named 'vcl_*' are reserved.\nAt:"]);
    recv_refuses("set storage.foo.free_space = 1;", &["Symbol not found: 'storage.foo.free_space'"]);
    recv_refuses("set req.http.x = default;", &["is a reserved word.", "While compiling function call:"]);
    recv_refuses("set req.http.x = vcl_recv;", &["as a SUB expression", "While compiling function call:\n\n("]);
    // A use above the declaration, in the words of Varnish 7.1.
    let below = |statement: &str, declaration: &str, expect: &[&str]| {
        refuses(&format!("import std; sub vcl_recv {{ {statement} }}\n{declaration}"), expect);
    };
    below("if (client.ip ~ a) { }", "backend a none;", &["Name a must have type 'acl'.\n('", "Line 3 Pos 9)"]);
    below("if (client.ip ~ a) { }", "probe a { }", &["Name a must have type 'acl'.\n('", "Line 3 Pos 7)"]);
    below("set req.backend_hint = a;", "acl a { }", &["Name a must have type 'backend'.\n('", "Line 3 Pos 5)"]);
    below("if (req.backend_hint == a) { }", "acl a { }", &["Name a must have type 'backend'."]);
    below("call a;", "acl a { }", &["Name a must have type 'sub'."]);
    let declared = "Symbol 'a' has wrong type (acl), expected sub:\nAt: ('";
    below("if (client.ip ~ a) { }", "sub a { }", &[declared, "Symbol was declared here: ('"]);
    below("if (client.ip ~ std.log) { }", "backend a none;", &["Function returns VOID:\n('"]);
    refuses("import b;", &["Symbol 'b' has wrong type (backend), expected vmod:", "Symbol was defined here:"]);
    refuses("import set;", &["Symbol 'set' has wrong type (action), expected vmod:", "Symbol was builtin"]);
}

#[test]
fn call_chain_leads_from_the_fault_to_the_method() {
    let error = compile_with(
        b"vcl 4.1; backend b none;\nsub foo { set req.http.foo = 100 + beresp.status; }\nsub bar { call foo; }\nsub vcl_recv { call bar; }\n",
        &Files::default(),
        |_| {},
    )
    .unwrap_err();
    assert_eq!(
        error.text,
        "('/etc/vcl/test.vcl' Line 2 Pos 36) -- (Pos 41)\n\
         sub foo { set req.http.foo = 100 + beresp.status; }\n\
         -----------------------------------######----------\n\
         \nNot available from subroutine 'vcl_recv'.\n\n\
         ...in subroutine \"foo\"\n('/etc/vcl/test.vcl' Line 2 Pos 5)\n\
         sub foo { set req.http.foo = 100 + beresp.status; }\n\
         ----###--------------------------------------------\n\n\n\
         ...called from \"bar\"\n('/etc/vcl/test.vcl' Line 3 Pos 16)\nsub bar { call foo; }\n---------------###---\n\n\n\
         ...called from \"vcl_recv\"\n('/etc/vcl/test.vcl' Line 4 Pos 21)\nsub vcl_recv { call bar; }\n--------------------###---\n\n\n\
         ...which is the \"vcl_recv\" subroutine\n\
         hint: it is available in vcl_backend_refresh, vcl_backend_response, vcl_backend_error\n\
         explain: copal vcl explain V0401\n"
    );
}

#[test]
fn several_errors_are_reported_in_the_order_of_the_text() {
    let error = compiled(
        "acl a { \"192.0.2.1\"/33; }\nsub vcl_recv {\n  set req.url == \"a\";\n  set req.foo = 1;\n  if (req.url ~ \"(\") { }\n  return (deliver);\n}\nsub vcl_deliver { unset req.url; }",
    )
    .unwrap_err()
    .text;
    let mut from = 0;
    for part in [
        "Too wide mask (/33) for IPv4 address",
        "Expected '=' got '=='",
        "Symbol not found: 'req.foo'",
        "Regexp compilation error:",
        "Invalid return \"deliver\"",
        "Variable cannot be unset.",
    ] {
        from += error[from..].find(part).unwrap_or_else(|| panic!("{part} in order in {error}"));
    }
}

#[test]
fn version_comes_first() {
    for (text, expect) in [
        ("backend b none;", "VCL version declaration missing"),
        ("", "VCL version declaration missing"),
        ("vcl 4;", "Don't play silly buggers with VCL version numbers"),
        ("vcl 4;", "Expected FNUM got '4'"),
        ("vcl 4.12;", "Don't play silly buggers with VCL version numbers"),
        ("vcl 4.1; backend b none; vcl 4;", "Expected FNUM got '4'"),
        ("vcl 4.1; backend b none; vcl;", "Don't play silly buggers with VCL version numbers"),
        ("vcl 4.1; backend b none; vcl 4.12;", "Don't play silly buggers with VCL version numbers"),
        ("vcl 4.1; backend b none; vcl 4.1 sub x { }", "Expected 'vcl N.N;' found no semi-colon"),
        ("vcl 3.9;", "VCL version 3.9 not supported."),
        ("vcl 9.9;", "VCL version 9.9 not supported."),
        ("vcl 4.1 backend b none;", "Expected 'vcl N.N;' found no semi-colon"),
        ("vcl 4.1", "Expected 'vcl N.N;' found no semi-colon"),
        ("vcl 4.1; vcl 4.2; backend b none;", "VCL version 4.2 not supported."),
        ("vcl 4.1;", "No backends or directors found in VCL program, at least one is necessary."),
    ] {
        let error = compile_with(text.as_bytes(), &Files::default(), |_| {}).unwrap_err().text;
        assert!(error.contains(expect), "{text}: {error}");
    }
    let error = compile_with(b"vcl 4.0; backend b none;", &Files::default(), |options| options.syntax_min = 41);
    assert!(error.unwrap_err().text.contains("VCL version 4.0 not supported."));
    assert!(compile_with(b"vcl 4.0; backend b none;", &Files::default(), |_| {}).is_ok());
}

#[test]
fn text_that_is_not_vcl_is_reported() {
    recv_refuses("set req.url = \"abc", &["Unterminated string, starting at"]);
    refuses("/* abc", &["Unterminated /* ... */ comment, starting at"]);
    refuses("/* a /* b */", &["/* ... */ comment contains /*"]);
    recv_refuses("C{ int x; }C", &["Inline-C not allowed", "hint:"]);
    refuses("@", &["Syntax error at"]);
    recv_refuses("set req.http.a = 1234567890123456;", &["Too many digits for integer."]);
    recv_refuses("set req.http.a = 1.2345;", &["Too many digits for real."]);
    recv_refuses("set req.http.a = :abc:;", &["BLOB must have n*4 base64 characters"]);
    refuses("foo { }", &["Expected one of\n\t'acl', 'sub', 'backend', 'probe', 'import'", "Found: 'foo' at"]);
    refuses("sub vcl_recv { set req.url = \"a\"; } }", &["Found: '}' at", "one } too many"]);
    refuses("sub vcl_recv { if (true) {", &["Expected '}' got end of input"]);
}

#[test]
fn incomplete_statements_are_reported_with_the_missing_part() {
    for (statement, expect) in [
        ("set req.url \"a\";", "Expected '=' got '\"a\"'"),
        ("set req.url = \"a\" }", "Expected ';' got '}'"),
        ("set req.url = \"a\" if", "Expected ';' got 'if'"),
        ("set req.url = \"a\" \"b\";", "hint: strings are joined with +"),
        ("set req.url = << 1;", "Unknown token '<<' when looking for STRING"),
        ("set req.url = ;", "Unknown token ';' when looking for STRING"),
        ("if () { }", "Unknown token ')' when looking for BOOL"),
        ("if (!!true) { }", "Unknown token '!' when looking for BOOL"),
        ("if req.url { }", "Expected '(' got 'req'"),
        ("if (req.url { }", "Expected ')' got '{'"),
        ("if (req.url) set req.url = \"a\";", "Expected '{' got 'set'"),
        ("if (req.url) { } else set", "'else' must be followed by 'if' or '{'"),
        ("elseif (req.url) { }", "Symbol not found: 'elseif'"),
        ("; set req.url = \"a\";", "Expected an action, 'if', '{' or '}'"),
        ("call foo", "Expected ';' got '}'"),
        ("call 1;", "Expected ID got '1'"),
        ("return;", "Expected '(' got ';'"),
        ("return deliver;", "Expected '(' got 'deliver'"),
        ("return ();", "Expected ID got ')'"),
        ("return (foo);", "Expected return action name."),
        ("return (synth);", "Missing argument."),
        ("return (hash(1));", "Arguments not allowed."),
        ("return (pipe(foo);", "Arguments not allowed."),
        ("return (synth(\"a\"));", "Expression has type STRING, expected INT"),
        ("return (synth(200, \"a\", 1));", "Expected ')' got ','"),
        ("return (vcl(foo));", "Symbol not found: 'foo'"),
        ("return (vcl(b));", "Symbol 'b' has wrong type (backend), expected vcl:"),
        ("return (vcl(vcl_recv));", "Symbol 'vcl_recv' has wrong type (sub), expected vcl:"),
        ("ban();", "Unknown token ')' when looking for STRING"),
        ("ban \"a\";", "Expected '(' got '\"a\"'"),
        ("hash_data(\"a\");", "Not a valid action in subroutine 'vcl_recv'."),
        ("foo;", "Symbol not found: 'foo'"),
        ("req.url = \"a\";", "hint: set req.url = ...;"),
        ("now();", "Symbol cannot be used here"),
        ("b.foo();", "Symbol cannot be used here"),
        ("error 404;", "hint: VCL 4 says: return (synth(404, \"reason\"));"),
        ("remove req.http.a;", "hint: VCL 4 says: unset"),
        ("purge;", "hint: VCL 4 says: return (purge); in vcl_recv"),
        ("sett req.url = \"a\";", "hint: did you mean set?"),
    ] {
        recv_refuses(statement, &[expect]);
    }
}

#[test]
fn names_are_found_or_the_nearest_is_named() {
    for (statement, expect) in [
        ("set foo = 1;", "Symbol not found: 'foo'"),
        ("set req.restarts = 1;", "Variable is read only."),
        ("set bereq.body = \"a\";", "Variable cannot be set."),
        ("set req.\"http\".a = \"a\";", "Expected '=' got '.'"),
        ("set req. = \"a\";", "Expected '=' got '.'"),
        ("set req.http.a = include;", "include not followed by string constant."),
        ("return;", "Expected '(' got ';'"),
        ("set beresp.ttl = 1s;", "Cannot be set in subroutine 'vcl_recv'."),
        ("set b = b;", "Symbol 'b' has wrong type (backend), expected var:"),
        ("unset req.url;", "Variable cannot be unset."),
        ("unset beresp.http.a;", "Cannot be unset in subroutine 'vcl_recv'."),
        ("set req.http.a = beresp.http.a;", "Not available in subroutine 'vcl_recv'."),
        ("set req.http.a = req.foo;", "Unknown property 'foo' for type HTTP"),
        ("set req.http.a = req.request;", "hint: use req.method"),
        ("set req.http.a = req.urk;", "hint: did you mean req.url?"),
        ("set req.http.a = req.url.foo;", "Unknown property 'foo' for type STRINGS"),
        ("set req.http.a = b.foo;", "Unknown property 'foo' for type BACKEND"),
        ("set req.http = \"a\";", "Symbol 'req.http' has wrong type (none), expected var:"),
        ("set req.backend_hint = foo;", "Undefined backend foo, first reference:"),
        ("if (client.ip ~ foo) { }", "Undefined acl foo, first reference:"),
        ("call foo;", "Undefined sub foo, first reference:"),
        ("call b;", "Expression has type BACKEND, expected SUB"),
        ("set req.http.a = default;", "Symbol 'default' is a reserved word."),
        ("set req.http.a = acl;", "Symbol 'acl' type (reserved) can not be used in expression."),
        ("set req.http.a = set;", "Symbol 'set' type (action) can not be used in expression."),
        ("set req.http.a = vcl_recv;", "Symbol 'vcl_recv' can only be used as a SUB expression"),
        ("set req.http.a = storage.foo;", "Symbol not found: 'storage.foo'"),
        ("set req.storage = storage.foo;", "hint: storages: s0, Transient"),
        ("set req.esi = false;", "Symbol not found: 'req.esi' (Only available when VCL syntax <= 4.0)"),
        ("set req.http.\"a b\" = \"a\";", "Invalid character ' ' in header name."),
        ("set req.http.{\"a\nb\"} = \"a\";", "Invalid character '\\n' in header name"),
        ("std.log(\"a\");", "hint: import std; first"),
    ] {
        recv_refuses(statement, &[expect]);
    }
    recv_refuses(
        &format!("set req.http.{} = \"a\";", "a".repeat(127)),
        &["HTTP header (aaaaaaaaaaaaaaaaaaaa..) is too long."],
    );
    recv_accepts(&format!("set req.http.{} = \"a\";", "a".repeat(126)));
    recv_accepts("SET REQ.URL = \"a\"; IF (True) { }");
    recv_accepts("set req.http.\"x!y\" = \"a\"; set req.http.include = req.http.import; unset req.http.if;");
    let old = |statement: &str| {
        let text = format!("vcl 4.0; backend b none; sub vcl_recv {{ {statement} }}");
        compile_with(text.as_bytes(), &Files::default(), |_| {}).map(|_| ()).map_err(|error| error.text)
    };
    assert_eq!(old("set req.esi = false; set req.proto = \"x\";"), Ok(()));
    let error = old("set req.http.a = sess.xid;").unwrap_err();
    assert!(error.contains("Symbol not found: 'sess.xid' (Only available when 4.1 <= VCL syntax)"), "{error}");
    let error = old("set req.http.\"foo\" = \"a\";").unwrap_err();
    assert!(error.contains("Quoted headers are available for VCL >= 4.1"), "{error}");
}

#[test]
fn pieces_of_builtin_methods_return_to_them() {
    accepts("sub vcl_req_cookie { return; } sub vcl_beresp_stale { if (beresp.ttl > 0s) { return; } }");
    accepts("backend c None; sub vcl_recv { set req.backend_hint = c; }");
}

#[test]
fn types_fit_or_the_mismatch_is_named() {
    for (statement, expect) in [
        ("set req.ttl = 1;", "Expression has type INT, expected DURATION"),
        ("set req.ttl = 1k;", "Unknown duration unit 'k'"),
        ("set req.ttl = 1s + 1;", "DURATION + INT not possible."),
        ("set req.ttl = 1s * 1s;", "DURATION * DURATION not possible."),
        ("set req.ttl = 1s + now;", "DURATION + TIME not possible."),
        ("set req.ttl *= 1s;", "Expression has type DURATION, expected REAL"),
        ("set req.ttl = now - 1s;", "Expression has type TIME, expected DURATION"),
        ("set req.url *= 2;", "Expected '=' got '*='"),
        ("set req.backend_hint += b;", "Expected '=' got '+='"),
        ("set req.backend_hint = \"b\";", "Expression has type STRING, expected BACKEND"),
        ("set req.hash_always_miss = true + true;", "BOOL + BOOL not possible."),
        ("set req.http.a = 1 - \"a\";", "INT - STRING not possible."),
        ("set req.http.a = \"a\" - \"a\";", "STRING - STRING not possible."),
        ("set req.http.a = \"a\" * 2;", "Operator * not possible on type STRING."),
        ("set req.http.a = 1 * \"a\";", "INT * STRING not possible."),
        ("set req.http.a = 1 * :abcd:;", "INT * BLOB not possible."),
        ("set req.http.a = 1.5 % 2;", "Operator % only possible on INT."),
        ("set req.http.a = -req.url;", "Operator - not possible on type STRING."),
        ("set req.http.a = req;", "Cannot convert HTTP to STRING"),
        ("if (1 + \"a\" == \"1a\") { }", "INT + STRING not possible."),
        ("if (1.5) { }", "Expression has type REAL, expected BOOL"),
        ("if (! 1.5) { }", "'!' must be followed by BOOL, found REAL."),
        ("if (1.5 && true) { }", "'&&' must be preceeded by BOOL, found REAL."),
        ("if (true && 1.5) { }", "'&&' must be followed by BOOL, found REAL."),
        ("if (1.5 || true) { }", "'||' must be preceeded by BOOL, found REAL."),
        ("if (true || 1.5) { }", "'||' must be followed by BOOL, found REAL."),
        ("if (req.url == 1) { }", "Comparison of different types: STRING '==' INT"),
        ("if (req.restarts != \"a\") { }", "Comparison of different types: INT '!=' STRING"),
        ("if (req.backend_hint == \"b\") { }", "Comparison of different types: BACKEND '==' STRING"),
        ("if (client.ip > client.ip) { }", "Operator > not possible on IP"),
        ("if (req.backend_hint > b) { }", "Operator > not possible on BACKEND"),
        ("if (req.restarts ~ \"a\") { }", "Operator ~ not possible on INT"),
        ("if (req.url ~ req.url) { }", "Expression has type STRING, expected REGEX"),
        ("if (req.url ~ \"a\" + req.url) { }", "Expected CSTR got 'req'"),
        ("if (req.url ~ \"a\" - \"b\") { }", "Expected ')' got '-'"),
        ("set req.url = regsub(req.url, \"a\" + req.url, \"\");", "Expected CSTR got 'req'"),
        ("if (client.ip == \"/tmp/socket\") { }", "Cannot convert to an IP address: '\"/tmp/socket\"'"),
        ("if (req.url ~ \"(\") { }", "Regexp compilation error:\n\nmissing closing parenthesis"),
        ("if (client.ip ~ \"a\") { }", "Expression has type STRING, expected ACL"),
        (
            "if (client.ip == \":80\") { }",
            "IP constant \":80\": resolves to too many addresses.\nOnly one IPv4 or IPv6",
        ),
        ("if (client.ip == \"no such\") { }", "IP constant '\"no such\"' could not be resolved to an IP address:"),
        ("set req.http.a = regsub(req.url, \"a\");", "Expected ',' got ')'"),
        ("if (storage.s0.free_space > 1) { }", "Expected BYTES unit (B, KB, MB...) got ')'"),
        ("if (storage.s0.free_space > 1X) { }", "Unknown BYTES unit"),
    ] {
        recv_refuses(statement, &[expect]);
    }
    refuses("sub vcl_synth { if (resp.body) { } }", &["Expression has type BODY, expected BOOL"]);
}

#[test]
fn odd_but_valid_expressions_are_accepted() {
    for statement in [
        "set req.http.a = now + now;",
        "set req.http.a = 1s + now;",
        "set req.http.a = true + true;",
        "set req.http.a = client.ip + b + storage.s0 + :YWJj: + 1.5 + 2;",
        "set req.http.a = (1 + 2) * 3 + \"a\" + 1 + 2;",
        "set req.http.a = req.http.b == \"a\";",
        "set req.http.a = \"a\" + req.http.b ~ \"x\" + \"y\";",
        "set req.ttl = (1s + 2s) * 2; set req.ttl = -(1s + 2s); set req.ttl = - req.ttl;",
        "set req.ttl = 1 s; set req.ttl /= 2; set req.ttl = now - now;",
        "if (!req.url ~ \"a\" && (true) || !(1 == 2) == true) { }",
        "if (b) { } if (req.ttl) { } if (req.url) { }",
        "if (client.ip == \"192.0.2.1\" || client.ip != \"[2001:db8::1]:80\") { }",
        "set req.backend_hint = default; if (req.backend_hint == default) { }",
        "set req.http.a = \"a\".upper() + (req.url + \"b\").lower() + b.resolve();",
        "if (storage.s0.free_space > 1KB + 1kb && storage.Transient.happy) { }",
        "if (true) { } else if (false) { } elif (true) { } elsif (true) { } elseif (true) { } else { }",
        "{ } { set req.url = {\"a\n\"b\"} + \"\"\"c\"d\"\"\"; }",
        "return (synth(req.restarts + 200, \"a\" + req.url + 1));",
        "return (fail(\"a\" + \"b\"));",
        "return (pass(1s));",
        "return (vcl(label1));",
    ] {
        recv_accepts(statement);
    }
}

#[test]
fn subroutines_are_defined_once_used_and_do_not_recurse() {
    accepts("sub foo { return; } sub vcl_recv { call foo; } sub vcl_recv { call FOO; }");
    accepts("sub vcl_builtin_recv { return (pass); } sub vcl_req_host { }");
    refuses(
        "sub foo { } sub foo { } sub vcl_recv { call foo; }",
        &["Subroutine 'foo' redefined", "Previously defined here:"],
    );
    refuses("sub foo { }", &["Unused sub foo, defined:"]);
    refuses("sub foo { call foo; }", &["Subroutine recurses on", "...called from \"foo\""]);
    refuses("sub vcl_foo { }", &["The names 'vcl_*' are reserved for subroutines.", "\tvcl_backend_fetch\n"]);
    refuses("sub vcl_rcv { }", &["hint: did you mean vcl_recv?"]);
    refuses("sub vcl_recieve { }", &["hint: did you mean vcl_recv?"]);
    refuses("sub foo.bar { }", &["Name of subroutine, 'foo.bar', contains illegal character '.'"]);
    refuses("sub b { }", &["Symbol 'b' has wrong type (backend), expected sub:"]);
    refuses("sub if { }", &["Symbol 'if' has wrong type (action), expected sub:"]);
    refuses(
        "sub foo { return (deliver); } sub vcl_recv { call foo; }",
        &[
            "Invalid return \"deliver\"",
            "...in subroutine \"foo\"",
            "...called from \"vcl_recv\"",
            "...which is the \"vcl_recv\" subroutine",
            "Legal returns are: \"fail\" \"hash\" \"pass\" \"pipe\" \"purge\" \"restart\" \"synth\" \"vcl\"",
        ],
    );
    refuses("sub vcl_recv { call vcl_pass; }", &["Invalid return \"fetch\"", "<builtin>"]);
    refuses(
        "sub foo { hash_data(\"a\"); } sub vcl_recv { call foo; }",
        &["Not a valid action from subroutine 'vcl_recv'."],
    );
    refuses(
        "sub foo { unset beresp.http.a; } sub vcl_recv { call foo; }",
        &["Cannot be unset from subroutine 'vcl_recv'."],
    );
    refuses(
        "sub foo { set req.restarts = 1; } sub vcl_recv { call foo; }",
        &["Variable is read only.\n\n...called from \"vcl_recv\"", "...which is the \"vcl_recv\" subroutine"],
    );
    refuses(
        "sub foo { set obj.ttl = 1s; } sub vcl_recv { call foo; }",
        &["Not available from subroutine 'vcl_recv'.\n\n...in subroutine \"foo\""],
    );
    refuses("sub foo { set req.restarts = 1; }", &["Variable is read only."]);
}

#[test]
fn backend_without_a_host_name_is_on_this_machine() {
    use vcl_run::program::Endpoint;
    let any = |port| Endpoint::Ip {
        v4: Some(std::net::SocketAddr::from(([0; 4], port))),
        v6: Some(std::net::SocketAddr::from(([0u16; 8], port))),
    };
    for (fields, port) in [
        (".host = \":80\";", 80),
        (".host = \":http\";", 80),
        (".host = \"*\";", 80),
        (".host = \"*:81\";", 81),
        (".host = \"\"; .port = \"82\";", 82),
    ] {
        let text = format!("vcl 4.1; backend c {{ {fields} }}");
        let program = compile_with(text.as_bytes(), &Files::default(), |_| {}).unwrap().program;
        assert_eq!(program.backends[0].endpoint, any(port), "{fields}");
    }
}

#[test]
fn unused_symbols_are_errors_or_warnings() {
    let text = format!("{HEAD}sub f {{ }} acl a {{ }} probe p {{ }} backend c {{ .host = \"192.0.2.2\"; }}");
    let error = compile_with(text.as_bytes(), &Files::default(), |_| {}).unwrap_err().text;
    for part in
        ["Unused sub f, defined:", "Unused acl a, defined:", "Unused probe p, defined:", "Unused backend c, defined:"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(!error.contains("Unused backend b"), "the first backend is used as the default: {error}");
    let warnings =
        compile_with(text.as_bytes(), &Files::default(), |options| options.err_unref = false).unwrap().warnings;
    assert_eq!(warnings.matches("(That was just a warning)").count(), 4, "{warnings}");
}

#[test]
fn acl_entries_are_checked() {
    let used = |acl: &str| format!("{acl} sub vcl_recv {{ if (client.ip ~ a) {{ }} }}");
    for text in [
        "acl a { }",
        "acl a { \"192.0.2.0\"/24; ! \"192.0.2.1\"; (\"nowhere.example\"); ! (\"nowhere.example\"/24); (! \"both.example\"); }",
        "acl a +log -table +pedantic { \"192.0.2.0/24\"; \"192.0.2.0\"/24; \"::\"/0; }",
        "acl a -pedantic { \"192.0.2.1\"/24; }",
    ] {
        accepts(&used(text));
    }
    for (text, expect) in [
        ("acl a { \"192.0.2.0\"/33; }", "Too wide mask (/33) for IPv4 address"),
        ("acl a { \"::1\"/129; }", "Too wide mask (/129) for IPv6 address"),
        ("acl a { \"192.0.2.1\"/24; }", "Non-zero bits in masked part, (maybe use 192.0.2.0/24 ?)"),
        ("acl a { \"192.0.2.0/24\"/24; }", "/mask only allowed once."),
        ("acl a { \"192.0.2.0/x\"; }", ".../mask is not numeric."),
        ("acl a { \"192.0.2.1\"/-1; }", "Expected CNUM got '-'"),
        ("acl a { \"nowhere.example\"; }", "DNS lookup(nowhere.example): Name or service not known"),
        ("acl a { 192.0.2.1; }", "Expected CSTR got '192.0'"),
        ("acl a { \"192.0.2.1\" }", "Expected ';' got '}'"),
        ("acl a { (\"192.0.2.1\"; }", "Expected ')' got ';'"),
        ("acl a { \"192.0.2.1\"); }", "Expected ';' got ')'"),
        ("acl a { \"192.0.2.1\"; ! \"192.0.2.1\"; }", "Conflicting ACL entries:"),
        ("acl a +foo { }", "Unknown ACL flag:"),
        ("acl a + { }", "Expected a flag at:"),
        ("acl a.c { }", "Name of ACL, 'a.c', contains illegal character '.'"),
        ("acl b { }", "Name 'b' already defined."),
        ("acl vcl_a { }", "Symbols named 'vcl_*' are reserved."),
        ("acl acl { }", "Name acl must have type 'reserved'."),
        ("acl a { } acl a { }", "Acl 'a' redefined."),
    ] {
        refuses(&used(text), &[expect]);
    }
}

#[test]
fn backends_are_checked() {
    let used = |text: &str| format!("{text} sub vcl_recv {{ set req.backend_hint = c; }}");
    for text in [
        "backend c none;",
        "backend c { .host = \"both.example\"; .port = \"http\"; .connect_timeout = 1.5s; .first_byte_timeout = 0.5 s; .between_bytes_timeout = 1ms; .max_connections = 5; .proxy_header = 2; .preamble = :YWJj:; .host_header = \"x\"; .probe = { .url = \"/x\"; } }",
        "backend c { .path = \"/run/socket\"; }",
        "backend c { .path = \"/run/absent\"; }",
        "backend c { .host = \"[2001:db8::1]:8080\"; }",
        "probe p { .request = \"GET / HTTP/1.1\" \"Host: a\"; .threshold = 5; .initial = 9; } backend c { .host = \"192.0.2.2\"; .probe = p; }",
    ] {
        accepts(&used(text));
    }
    for (text, expect) in [
        ("backend c { }", "Expected .host or .path."),
        ("backend c { .port = \"80\"; }", "In backend specification starting at:"),
        ("backend c { host = \"a\"; }", "Expected '.' got 'host'"),
        ("backend c { set backend.host = \"a\"; }", "NB: Backend Syntax has changed:"),
        ("backend c { .hots = \"a\"; }", "Unknown field: 'hots' at"),
        ("backend c { .hots = \"a\"; }", "hint: did you mean .host?"),
        ("backend c { .host = 192.0.2.1; }", "Expected CSTR got '192.0'"),
        ("backend c { .host = \"a\" \"b\"; }", "Expected ';' got '\"b\"'"),
        ("backend c { .host = \"a\" }", "Expected ';' got '}'"),
        ("backend c { .host = \"192.0.2.1\"; .port = 80; }", "Expected CSTR got '80'"),
        ("backend c { .host = \"192.0.2.1\"; .port = \"80\"; .port = \"81\"; }", "Field 'port' redefined at:"),
        (
            "backend c { .host = \"nowhere.example\"; }",
            "Backend host '\"nowhere.example\"' could not be resolved to an IP address:",
        ),
        ("backend c { .host = \"many.example\"; }", "Only one IPv4 and one IPv6 are allowed.\nPlease specify which"),
        ("backend c { .host = \":\"; }", "Backend host '\":\"' could not be resolved to an IP address:"),
        ("backend c { .host = \"\"; }", "Backend host '\"\"' could not be resolved to an IP address:"),
        ("backend c { .host = \"[::1\"; }", "IPv6 address lacks ']'"),
        ("backend c { .host = \"[::1]80\"; }", "IPv6 address has wrong port separator"),
        ("backend c { .host = \"192.0.2.1\"; .connect_timeout = 1; }", "Expected ID got ';'"),
        ("backend c { .host = \"192.0.2.1\"; .connect_timeout = \"1s\"; }", "Expected CNUM got '\"1s\"'"),
        ("backend c { .host = \"192.0.2.1\"; .connect_timeout = 1k; }", "Unknown duration unit 'k'"),
        ("backend c { .host = \"192.0.2.1\"; .max_connections = 1.5; }", "Expected CNUM got '1.5'"),
        ("backend c { .host = \"192.0.2.1\"; .proxy_header = 3; }", ".proxy_header must be 1 or 2"),
        ("backend c { .host = \"192.0.2.1\"; .preamble = \"a\"; }", "Expected CBLOB got '\"a\"'"),
        ("backend c { .host = \"192.0.2.1\"; .path = \"/a\"; }", "Address redefinition at:"),
        ("backend c { .path = \"a\"; }", "Backend path: Must be an absolute path:"),
        ("backend c { .path = \"/run/file\"; }", "Backend path: Not a socket:"),
        ("backend c { .host = \"192.0.2.1\"; .probe = \"a\"; }", "Expected '{' or name of probe, got '\"a\"'"),
        ("backend c { .host = \"192.0.2.1\"; .probe = p; }", "Symbol not found: 'p'"),
        ("backend c { .host = \"192.0.2.1\"; .probe = default; }", "No default probe defined"),
        ("backend c { .host = \"192.0.2.1\"; .probe = { .foo = 1; } }", "Unknown field: 'foo' at"),
        ("backend c none; backend c none;", "Backend 'c' redefined"),
        ("backend default none; backend default none;", "Only one default director possible."),
        ("backend c NONE;", "Expected '{' got 'NONE'"),
        ("backend c.d none;", "Name of backend, 'c.d', contains illegal character '.'"),
        ("probe p { .url = \"/\"; .request = \"a\"; }", "Probe request redefinition at:"),
        ("probe p { .interval = \"120s\"; }", "Expected CNUM got '\"120s\"'"),
        ("probe p { .expected_response = 20; }", "Must specify .expected_response with exactly three digits"),
        ("probe p { .window = 10; }", "Must specify .threshold with .window"),
        ("probe p { .window = 70; .threshold = 1; }", "Window must be 64 or less"),
        ("probe p { .threshold = 70; }", "Threshold must be 64 or less"),
        ("probe p { .window = 5; .threshold = 6; }", "Threshold can not be greater than window"),
        ("probe p { } probe p { }", "Probe 'p' redefined"),
    ] {
        refuses(&used(text), &[expect]);
    }
    let warnings = compiled(&used("backend c { .path = \"/run/absent\"; }")).unwrap().warnings;
    assert!(warnings.starts_with("Backend path: Cannot stat: No such file or directory\n"), "{warnings}");
    assert!(warnings.ends_with("\n(That was just a warning)\n"), "{warnings}");
}

#[test]
fn vmods_are_imported_and_called_rightly() {
    accepts(
        "import std; import std; import std as s; sub vcl_recv { std.log(\"a\" + 1); s.log(s = \"b\"); STD.LOG(\"c\"); }",
    );
    accepts(
        "import std from \"/usr/lib/libvmod_std.so\"; sub vcl_recv { set req.http.a = std.random(1, 2); std.collect(sep = \",\", hdr = req.http.a); }",
    );
    accepts(
        "import directors; sub vcl_init { new d = directors.random(); d.add_backend(b, 1); } sub vcl_recv { set req.backend_hint = d.backend(); }",
    );
    for (text, expect) in [
        ("import foo;", "Could not find VMOD foo"),
        ("import sdt;", "hint: did you mean std?"),
        ("import std from;", "Expected CSTR got ';'"),
        ("import std foo;", "Expected 'from path ...'"),
        ("import \"std\";", "Expected ID got '\"std\"'"),
        ("import std; import directors as std;", "Another module already imported as std."),
        ("import std as b;", "Symbol 'b' has wrong type (backend), expected vmod:"),
        ("import std; acl std { }", "Name 'std' already defined."),
        ("import std; sub vcl_recv { std.foo(); }", "Symbol not found: 'std.foo'"),
        ("import std; sub vcl_recv { std.lgo(\"a\"); }", "hint: did you mean std.log?"),
        ("import std; sub vcl_recv { std.log; }", "Expected '(' got ';'"),
        ("import std; sub vcl_recv { std.log(); }", "Argument 's' missing"),
        ("import std; sub vcl_recv { std.log(\"a\" }", "Expected ',' got '}'"),
        ("import std; sub vcl_recv { std.log(\"a\", \"b\"); }", "Expected ')' got '\"b\"'"),
        ("import std; sub vcl_recv { set req.http.a = std.log(\"a\"); }", "Function returns VOID"),
        (
            "import std; sub vcl_recv { set req.http.a = std.random(\"a\", 2); }",
            "Expression has type STRING, expected REAL",
        ),
        (
            "import std; sub vcl_recv { set req.http.a = std.random(\"a\", 2); }",
            "Expected argument: REAL lo\n\nWhile compiling function call:",
        ),
        ("import std; sub vcl_recv { std.collect(req.url); }", "Expression has type STRING, expected HEADER"),
        (
            "import std; sub vcl_recv { std.collect(req.http.a, sep = \"a\", sep = \"b\"); }",
            "Argument 'sep' already used",
        ),
        ("import std; sub vcl_recv { std.collect(req.http.a, foo = \"b\"); }", "Unknown argument 'foo'"),
        ("import std; sub vcl_recv { std.collect(hdr = req.http.a, \",\"); }", "Expected ')' got '\",\"'"),
        (
            "import std; sub vcl_recv { set req.http.a = std; }",
            "Symbol 'std' type (vmod) can not be used in expression.",
        ),
        (
            "import directors; sub vcl_recv { new d = directors.random(); }",
            "Not a valid action in subroutine 'vcl_recv'.",
        ),
        ("import directors; sub vcl_init { new d = directors.foo(); }", "Symbol not found: 'directors.foo'"),
        (
            "import directors; sub vcl_init { new d.e = directors.random(); }",
            "Name of VCL object, 'd.e', contains illegal character '.'",
        ),
        ("import directors; sub vcl_init { new b = directors.random(); }", "Name 'b' already defined."),
        (
            "import directors; sub vcl_init { new d = directors.random(); new d = directors.hash(); }",
            "Instance 'd' redefined.",
        ),
        (
            "import directors; sub vcl_init { d.add_backend(b, 1); new d = directors.random(); }",
            "hint: d is defined further down, on line 2",
        ),
        (
            "import directors; sub vcl_init { new d = directors.random(); d.foo(); }",
            "Unknown property 'foo' for type directors.random",
        ),
        ("import directors; sub vcl_init { new d = directors.random(); d.add_backend(b); }", "Argument 2 missing"),
        (
            "import directors; sub vcl_init { new d = directors.random(); } sub vcl_recv { set req.backend_hint = d; }",
            "Expression has type directors.random, expected BACKEND",
        ),
    ] {
        refuses(text, &[expect]);
    }
}

#[test]
fn includes_are_found_and_faults_in_them_placed() {
    let files = || {
        Files(
            [
                ("/etc/vcl/a.vcl", "sub vcl_recv { set req.http.a = \"a\"; }"),
                ("/etc/vcl/part.inc", "set req.http.part = \"p\";"),
                ("/etc/vcl/bad.vcl", "sub vcl_recv {\n  set req.url = bad;\n}"),
                ("/etc/vcl/self.vcl", "include \"self.vcl\";"),
                ("/etc/vcl/v41.vcl", "vcl 4.1; sub vcl_recv { }"),
                ("/etc/vcl/d/1.vcl", "sub vcl_recv { set req.http.n = \"1\"; }"),
                ("/etc/vcl/d/2.vcl", "sub vcl_recv { set req.http.n = \"2\"; }"),
            ]
            .into(),
        )
    };
    let try_it = |text: &str, change: fn(&mut crate::CompileOptions)| {
        let compiled = compile_with(format!("{HEAD}{text}").as_bytes(), &files(), change);
        compiled.map(|compiled| compiled.program.sources.len()).map_err(|error| error.text)
    };
    assert_eq!(try_it("include \"a.vcl\"; include \"./a.vcl\"; include \"/etc/vcl/a.vcl\";", |_| {}), Ok(5));
    assert_eq!(try_it("include +glob \"./d/*.vcl\";", |_| {}), Ok(4));
    assert_eq!(try_it("sub vcl_recv { include \"part.inc\"; if (true) { include \"part.inc\"; } }", |_| {}), Ok(4));
    for (text, expect) in [
        ("include \"bad.vcl\";", "('/etc/vcl/bad.vcl' Line 2 Pos 17)"),
        ("include \"nope.vcl\";", "Cannot read file '/etc/vcl/nope.vcl' (No such file or directory)"),
        ("include \"self.vcl\";", "Recursive use of file \"/etc/vcl/self.vcl\""),
        ("include +glob \"/etc/none/*.vcl\";", "glob pattern matched no files."),
        ("include +foo \"a.vcl\";", "Unknown include flag:"),
        ("include foo;", "include not followed by string constant."),
        ("include \"a.vcl\"", "include <string> not followed by semicolon."),
    ] {
        let error = try_it(text, |_| {}).unwrap_err();
        assert!(error.contains(expect), "{text}\n{error}");
    }
    let error = try_it("include \"./a.vcl\";", |options| options.unsafe_path = false).unwrap_err();
    assert!(error.contains("' is unsafe"), "{error}");
    let older = b"vcl 4.0; backend b none; include \"v41.vcl\";";
    let error = compile_with(older, &files(), |_| {}).unwrap_err().text;
    assert!(error.contains("VCL version 4.1 higher than the top level version 4.0"), "{error}");
    let inline = crate::SourceText { name: "<vcl.inline>", text: b"vcl 4.1; backend b none; include \"./a.vcl\";" };
    let error = crate::compile(&inline, &crate::CompileOptions::default()).unwrap_err().text;
    assert!(error.contains("needs absolute filename of including file."), "{error}");
}
