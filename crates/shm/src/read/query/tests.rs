//! Queries from text to verdict: tables of expressions against records.

use super::*;
use crate::log::{LogId, LogRing};
use crate::read::transaction::Transaction;
use surface::tag::Tag;

/// The vxids of the numbered `VCL_Log` records that satisfy `query` in raw grouping.
fn satisfying(records: &[&str], query: &str) -> Vec<u64> {
    let query = Query::parse(query, false).unwrap_or_else(|error| panic!("{error}"));
    let ring = LogRing::in_memory(1 << 16);
    for (index, text) in records.iter().enumerate() {
        ring.write(Tag::VCLLog, LogId::client(index as u64 + 1), text.as_bytes());
    }
    let mut found = Vec::new();
    for record in ring.records() {
        let mut payload = record.payload.clone();
        payload.push(0);
        let record = Record { number: record.tag as u8, id: record.id, payload: &payload };
        if query.matches(&[Transaction::raw(&record)]) {
            found.push(record.id.vxid());
        }
    }
    found
}

#[test]
fn fields_may_be_quoted() {
    let records = [
        r#"a "b c" d"#,
        r#"a "b"#,
        r#"a "b"c d"#,
        r#""" x y"#,
        r#"a "b""#,
        r#"a"b c" d"#,
        r#"a "b\"c" d"#,
        r#"a "" d"#,
    ];
    assert_eq!(satisfying(&records, "VCL_Log[1]"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(satisfying(&records, "VCL_Log[2]"), [1, 4, 5, 6, 8]);
    assert_eq!(satisfying(&records, "VCL_Log[3]"), [1, 4, 6, 8]);
    assert_eq!(satisfying(&records, "VCL_Log[2] eq 'b c'"), [1]);
    assert_eq!(satisfying(&records, "VCL_Log[2] eq ''"), [8]);
    assert_eq!(satisfying(&records, "VCL_Log[1] eq ''"), [4]);
}

#[test]
fn numbers_are_read_from_the_start_of_a_record() {
    let records = [
        "12abc",
        " 12",
        "12.9",
        "-3",
        "1e3",
        "+5",
        "",
        "12 34",
        "12.",
        ".5",
        "99999999999999999999",
        "0x10",
        "12 ",
        "-",
        "12.3.4",
        "1.5e3",
        "-0.5",
        "1234567890123456",
        "123456789012345",
        "12,34",
        "--3",
    ];
    assert_eq!(satisfying(&records, "VCL_Log == 12"), [1, 2, 3, 8, 9, 13, 15, 20]);
    assert_eq!(satisfying(&records, "VCL_Log == 12.0"), [1, 2, 8, 9, 13, 20]);
    assert_eq!(satisfying(&records, "VCL_Log == 0"), [10, 12, 17]);
    assert_eq!(satisfying(&records, "VCL_Log <= -3"), [4]);
    assert_eq!(satisfying(&records, "VCL_Log == 123456789012345"), [19]);
    assert_eq!(satisfying(&records, "VCL_Log > 1000."), [0u64; 0]);
    assert_eq!(satisfying(&records, "VCL_Log != 12"), [4, 5, 10, 12, 16, 17, 19]);
    assert_eq!(satisfying(&records, "VCL_Log > .4 and VCL_Log < 1.6"), [5, 10, 16]);
}

#[test]
fn decimals_are_compared_to_the_thousandth() {
    let records = ["0.001327", "0.001999", "0.0009999", "1.9996", "-0.0019", "0.0005"];
    assert_eq!(satisfying(&records, "VCL_Log == 0.001"), [1, 2]);
    assert_eq!(satisfying(&records, "VCL_Log >= 0.0012"), [1, 2, 4]);
    assert_eq!(satisfying(&records, "VCL_Log == -.001"), [5]);
    assert_eq!(satisfying(&records, "VCL_Log == ' 1.999 '"), [4]);
}

#[test]
fn prefix_and_field_narrow_the_text_before_it_is_tested() {
    let records = ["Key:value one", "key:   12 34", "key :12", "key:", "keyx:12", "key:12:13", "a\tb  c", " lead x"];
    assert_eq!(satisfying(&records, "VCL_Log:key"), [1, 2, 4, 6]);
    assert_eq!(satisfying(&records, "VCL_Log:key == 12"), [2, 6]);
    assert_eq!(satisfying(&records, "VCL_Log:key[1]"), [1, 2, 6]);
    assert_eq!(satisfying(&records, "VCL_Log : key [ 2 ]"), [1, 2]);
    assert_eq!(satisfying(&records, "VCL_Log:key eq '12 34'"), [2]);
    assert_eq!(satisfying(&records, "VCL_Log:key eq \"\""), [4]);
    assert_eq!(satisfying(&records, "VCL_Log:\"key:12\" == 13"), [6]);
    assert_eq!(satisfying(&records, "VCL_Log[2] eq b"), [7]);
    assert_eq!(satisfying(&records, "VCL_Log[1] eq lead"), [8]);
    assert_eq!(satisfying(&records, "VCL_Log[300]"), [0u64; 0]);
}

#[test]
fn boolean_functions_have_the_documented_precedence() {
    let records = ["a", "b", "ab", "c"];
    assert_eq!(satisfying(&records, "VCL_Log ~ a and VCL_Log ~ b or VCL_Log eq c"), [3, 4]);
    assert_eq!(satisfying(&records, "VCL_Log eq c or VCL_Log ~ a and VCL_Log ~ b"), [3, 4]);
    assert_eq!(satisfying(&records, "not VCL_Log ~ a and VCL_Log ~ b"), [2]);
    assert_eq!(satisfying(&records, "not (VCL_Log ~ a or VCL_Log ~ b)"), [4]);
    assert_eq!(satisfying(&records, "# none\n\nVCL_Log eq a\n  VCL_Log \\\n eq b # or b\n"), [1, 2]);
    assert_eq!(satisfying(&records, "vxid > 2 and not vxid == 3"), [4]);
    assert_eq!(satisfying(&records, "*_Log ne a"), [2, 3, 4]);
    assert_eq!(satisfying(&records, "VCL_Log !~ '[ab]'"), [4]);
}

#[test]
fn caseless_queries_ignore_case_in_strings_and_regular_expressions() {
    let record = Record { number: Tag::ReqURL as u8, id: LogId::client(1), payload: b"/Path\0" };
    let group = [Transaction::raw(&record)];
    for (query, caseless, expected) in [
        ("ReqURL eq '/path'", false, false),
        ("ReqURL eq '/path'", true, true),
        ("ReqURL ~ '^/path'", false, false),
        ("ReqURL ~ '^/path'", true, true),
        ("ReqURL ne '/PATH'", true, false),
    ] {
        let found = Query::parse(query, caseless).unwrap().matches(&group);
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn a_level_limits_the_test_to_transactions_at_that_level() {
    let record = Record { number: Tag::ReqURL as u8, id: LogId::client(1), payload: b"/\0" };
    let mut group = [Transaction::raw(&record)];
    group[0].level = 2;
    for (query, expected) in
        [("{2}ReqURL", true), ("{1}ReqURL", false), ("{1+}ReqURL", true), ("{3+}ReqURL", false), ("{2-}ReqURL", true)]
    {
        assert_eq!(Query::parse(query, false).unwrap().matches(&group), expected, "{query}");
    }
}

#[test]
fn errors_name_their_place() {
    for (query, message) in [
        ("ReqURL ~ a(", "Expected EOI got '(' (Pos 11)"),
        ("ReqURL eq", "Expected string got '' (Pos 10)"),
        ("ReqURL == abc", "Integer parse error (Pos 11)"),
        ("ReqURL[0]", "Expected positive integer (Pos 8)"),
        ("{x}ReqURL", "Syntax error in level limit (Pos 2)"),
        ("ReqURL foo", "Expected operator got 'foo' (Pos 8)"),
        ("Foo == 1", "Tag name matches zero tags (Pos 1)"),
        ("Beresp", "Tag name is ambiguous (Pos 1)"),
        ("vxid", "Expected vxid operator got '' (Pos 5)"),
        ("vxid eq 1", "Expected vxid operator got 'eq' (Pos 6)"),
        ("vxid == 1.5", "Expected integer got '1.5' (Pos 9)"),
        ("ReqURL and", "Expected VSL tag name got '' (Pos 11)"),
        ("(ReqURL", "Expected ')' got end of input (Pos 8)"),
        ("ReqURL)", "Expected EOI got ')' (Pos 7)"),
        ("not not ReqURL", "Expected VSL tag name got 'not' (Pos 5)"),
        ("ReqURL == 1.5e", "Floating point parse error (Pos 11)"),
        ("ReqURL = 1", "Syntax error (Pos 8)"),
        ("ReqURL !~ \"(\"", "Regular expression error: missing closing parenthesis (Pos 12)"),
        ("ReqURL:", "Expected string got '' (Pos 8)"),
        ("ReqURL[1", "Expected ']' got end of input (Pos 9)"),
    ] {
        let error = Query::parse(query, false).unwrap_err().to_string();
        assert_eq!(error.lines().next(), Some(message), "{query}");
    }
    assert!(Query::parse("", false).is_err());
    assert!(Query::parse("# only a comment", false).is_err());
}

#[test]
fn nesting_and_noise_end_in_an_error_not_in_a_crash() {
    assert!(Query::parse(&"(".repeat(100_000), false).is_err());
    assert!(Query::parse(&"not (".repeat(1000), false).is_err());
    for query in ["\u{e9}", "ReqURL eq \"\u{e9}", "{", "[", "\\", "\\\n", "{99999999999}ReqURL", "ReqURL['", "ReqURL:é"]
    {
        let _ = Query::parse(query, true).map_err(|error| error.to_string());
    }
}
