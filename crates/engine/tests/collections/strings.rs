//! str, digest, uuid and querystring through VCL.

use super::*;

/// The value of a `STRING` expression; `None` if it is unset.
fn value(import: &str, expression: &str, headers: &str) -> Option<String> {
    let vcl = format!(
        "import {import}; sub vcl_recv {{ return (synth(200)); }}
         sub vcl_synth {{ if ({expression}) {{ set resp.http.X = \"<\" + {expression} + \">\"; }} return (deliver); }}"
    );
    let mut found = None;
    told(&vcl, async |world| {
        let response = world.client().get("/", headers).await;
        assert_eq!(response.status(), 200, "{expression}\n{}", world.story());
        found = response.header("x").map(|text| text[1..text.len() - 1].to_owned());
    });
    found
}

#[test]
fn pieces_of_strings() {
    for (expression, expected) in [
        (r#""" + str.count("abc")"#, Some("3")),
        (r#""" + str.count(req.http.None)"#, Some("-1")),
        (r#""" + str.startswith("abc", "ab")"#, Some("true")),
        (r#""" + str.startswith("abc", req.http.None)"#, Some("false")),
        (r#""" + str.endswith("abc", "bc")"#, Some("true")),
        (r#""" + str.endswith("c", "bc")"#, Some("false")),
        (r#""" + str.contains("abc", "b")"#, Some("true")),
        (r#""" + str.contains("abc", "")"#, Some("true")),
        (r#""" + str.contains("abc", "d")"#, Some("false")),
        (r#"str.take("abcdef", 2)"#, Some("ab")),
        (r#"str.take("abcdef", 2, offset = -3)"#, Some("de")),
        (r#"str.take(req.http.None, 2)"#, None),
        (r#"str.reverse("abc")"#, Some("cba")),
        (r#"str.reverse(req.http.None)"#, None),
        (r#"str.split("a b  c", 3)"#, Some("c")),
        (r#"str.split("a b  c", -2)"#, Some("b")),
        (r#"str.split("a b  c", 4)"#, None),
        (r#"str.split("a b  c", 0)"#, None),
        (r#"str.split("a=b;c", 2, "=;")"#, Some("b")),
        (r#""" + str.token_intersect("a, b", "c b")"#, Some("true")),
        (r#""" + str.token_intersect("a, b", "c,d")"#, Some("false")),
        (r#""" + str.token_intersect("a;b", "b;c", ";")"#, Some("true")),
    ] {
        assert_eq!(value("str", expression, "").as_deref(), expected, "{expression}");
    }
}

#[test]
fn hashes_and_base64() {
    for (expression, expected) in [
        (r#"digest.hash_md5("abc")"#, Some("900150983cd24fb0d6963f7d28e17f72")),
        (r#"digest.hash_md5(req.http.None)"#, Some("d41d8cd98f00b204e9800998ecf8427e")),
        (r#"digest.hash_sha1("abc")"#, Some("a9993e364706816aba3e25717850c26c9cd0d89d")),
        (r#"digest.hash_crc32b("abc")"#, Some("c2412435")),
        (
            r#"digest.hmac_sha256("key", "The quick brown fox jumps over the lazy dog")"#,
            Some("0xf7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"),
        ),
        (r#"digest.hmac_md5(req.http.None, "x")"#, None),
        (r#"digest.hmac_md5("", req.http.None)"#, Some("0x74e6f7298a9c2d168935f58c001bad88")),
        (r#"digest.base64("TeSTTeSTTeST")"#, Some("VGVTVFRlU1RUZVNU")),
        (r#"digest.base64_hex("0x54655354")"#, Some("VGVTVA==")),
        (r#"digest.base64url_nopad_hex("54655354")"#, Some("VGVTVA")),
        (r#"digest.base64_decode("SGk=")"#, Some("Hi")),
        (
            r#"digest.base64url_decode("MHg4MDA3MDcxMzQ2M2U3NzQ5YjkwYzJkYzI0OTExZTI3NQ")"#,
            Some("0x80070713463e7749b90c2dc24911e275"),
        ),
        (r#"digest.base64_decode("a-b")"#, Some("")),
        (r#"digest.version()"#, Some("1.0.3")),
    ] {
        assert_eq!(value("digest", expression, "").as_deref(), expected, "{expression}");
    }
}

#[test]
fn identifiers() {
    for (expression, expected) in [
        (r#"uuid.uuid_v3("ns:DNS", "www.example.com")"#, Some("5df41881-3aed-3515-88a7-2f4a814cf09e")),
        (r#"uuid.uuid_v5("ns:DNS", "www.example.com")"#, Some("2ed6657d-e927-568b-95e1-2665a8aea6a2")),
        (r#"uuid.uuid_v5("elsewhere", "www.example.com")"#, None),
        // The characters of a text, not the text itself.
        (r#"regsuball(uuid.uuid(), "[0-9a-f]", "x")"#, Some("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")),
        (r#"regsub(uuid.uuid_v1(), "^.{8}-.{4}-(.).*$", "\1")"#, Some("1")),
        (r#"regsub(uuid.uuid_v4(), "^.{8}-.{4}-(.).*$", "\1")"#, Some("4")),
    ] {
        assert_eq!(value("uuid", expression, "").as_deref(), expected, "{expression}");
    }
}

#[test]
fn query_strings_by_functions() {
    let utm = r#""utm_source" + querystring.filtersep() + "utm_medium""#;
    let url = r#""/a?x=1&utm_source=2&&y&utm_medium=3&x=0""#;
    for (expression, expected) in [
        (format!("querystring.clean({url})"), "/a?x=1&utm_source=2&y&utm_medium=3&x=0"),
        (format!("querystring.sort({url})"), "/a?utm_medium=3&utm_source=2&x=0&x=1&y"),
        (r#"querystring.sort("/?a&b&a", uniq = true)"#.to_owned(), "/?a&b"),
        (format!("querystring.remove({url})"), "/a"),
        ("querystring.remove()".to_owned(), "/"),
        ("querystring.clean()".to_owned(), "/"),
        (format!("querystring.filter({url}, {utm})"), "/a?x=1&y&x=0"),
        (format!("querystring.filter_except({url}, {utm})"), "/a?utm_source=2&utm_medium=3"),
        (format!(r#"querystring.regfilter({url}, "^utm_")"#), "/a?x=1&y&x=0"),
        (format!(r#"querystring.regfilter_except({url}, "^utm_")"#), "/a?utm_source=2&utm_medium=3"),
        (format!(r#"querystring.regfilter({url}, "utm(")"#), "/a?x=1&utm_source=2&y&utm_medium=3&x=0"),
        (format!(r#"querystring.globfilter({url}, "utm_*")"#), "/a?x=1&y&x=0"),
        (format!(r#"querystring.globfilter_except({url}, "utm_*")"#), "/a?utm_source=2&utm_medium=3"),
    ] {
        assert_eq!(value("querystring", &expression, "").as_deref(), Some(expected), "{expression}");
    }
    assert_eq!(value("querystring", "querystring.clean(req.http.None)", ""), None);
}
