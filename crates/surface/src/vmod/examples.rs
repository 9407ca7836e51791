//! Examples of VMODs for the reference page. A test of the engine runs each of them: see
//! `crates/engine/tests/vmod_examples.rs`.
//!
//! A VMOD that has an example has one for each of its functions.

/// An example of a VMOD.
#[derive(Debug)]
pub struct ExampleRow {
    /// The VMOD.
    pub vmod: &'static str,
    /// The files that the VCL names, by path.
    pub files: &'static [(&'static str, &'static [u8])],
    /// A complete VCL. Its backend is at 10.0.0.1 and answers with 200.
    pub vcl: &'static str,
    /// Header fields of the request.
    pub request: &'static [(&'static str, &'static str)],
    /// Status of the response.
    pub status: u16,
    /// Header fields of the response.
    pub response: &'static [(&'static str, &'static str)],
}

/// The examples, in the order of the VMODs.
pub static EXAMPLES: &[ExampleRow] = &[
    ExampleRow {
        vmod: "basicauth",
        files: &[("/etc/varnish/.htpasswd", b"ann:$2y$04$OWXsCbdhXWWU3TiosutkUeTQ/XrR4HLINOF0ZUUe/VQ5W8D5bNh5a\n")],
        vcl: r#"vcl 4.1;
import basicauth;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_recv {
    if (!basicauth.match("/etc/varnish/.htpasswd", req.http.Authorization)) {
        return (synth(401, "Authentication required"));
    }
    # The origin does not need the password, and the response is the same for all users.
    unset req.http.Authorization;
}
sub vcl_synth {
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Basic realm="Restricted area""};
    }
}
"#,
        request: &[("Authorization", "Basic YW5uOnNlY3JldA==")],
        status: 200,
        response: &[],
    },
    ExampleRow {
        vmod: "brotli",
        files: &[],
        vcl: r#"vcl 4.1;
import brotli;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_backend_response {
    # Stores the object compressed with brotli; clients that do not accept that get it decompressed.
    set beresp.filters = "br";
}
sub vcl_deliver {
    set resp.http.Brotli = brotli.version();
}
"#,
        request: &[],
        status: 200,
        response: &[("Vary", r#"Accept-Encoding"#), ("Brotli", r#"built in"#)],
    },
    ExampleRow {
        vmod: "crypto",
        files: &[],
        vcl: r#"vcl 4.1;
import blob;
import crypto;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    new public = crypto.key();
    public.pem_pubkey({"-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArRJfyyHl8/mbwFBymerQ
7hb0pDWk2YO6hRNbyx80B5Jzaoe1eqQNyp9D4B45ZI3+D1rvp0YSQ6tFsEClDL2r
K6XSVdMt1akUeOQJTKFvDHFzCMfztKFK8eL9XgKp0Tty3O1nMNOTK0Ve2CuCssb2
vHvBWJkUvMelL+YLeAmI0w/gNeB6Hfc5HYBo0/DHTuXGIRrPLV7TOTH2GVXnPKOb
37VWQny4eXPhHlSb0JppmX6SdmUAYnO2nrhEchTUUg5eixMvH56ZEgJFz2oEV0ai
k3yu20Je3ZCBjZfSekW3/cjrsecqIPnM1F8PJqNRMS60bgIyvkGbl7XXcCDAcyzq
XwIDAQAB
-----END PUBLIC KEY-----"});
    new v = crypto.verifier(sha256, key = public.use());
    # The same key by its numbers.
    new numbers = crypto.key();
    numbers.rsa(blob.decode(BASE64URLNOPAD, encoded = "rRJfyyHl8_mbwFBymerQ7hb0pDWk2YO6hRNbyx80B5Jzaoe1eqQNyp9D4B45ZI3-D1rvp0YSQ6tFsEClDL2rK6XSVdMt1akUeOQJTKFvDHFzCMfztKFK8eL9XgKp0Tty3O1nMNOTK0Ve2CuCssb2vHvBWJkUvMelL-YLeAmI0w_gNeB6Hfc5HYBo0_DHTuXGIRrPLV7TOTH2GVXnPKOb37VWQny4eXPhHlSb0JppmX6SdmUAYnO2nrhEchTUUg5eixMvH56ZEgJFz2oEV0aik3yu20Je3ZCBjZfSekW3_cjrsecqIPnM1F8PJqNRMS60bgIyvkGbl7XXcCDAcyzqXw"), blob.decode(HEX, encoded = "010001"));
    new w = crypto.verifier(sha256, key = numbers.use());
}
sub vcl_recv {
    # Is the signature of the request that of the text "data"?
    v.update("da");
    v.update("ta");
    w.update_blob(blob.decode(IDENTITY, encoded = "not this"));
    w.reset();
    w.update_blob(blob.decode(IDENTITY, encoded = "data"));
    if (!v.valid(blob.decode(BASE64URLNOPAD, encoded = req.http.Signature))
        || !w.valid(blob.decode(BASE64URLNOPAD, encoded = req.http.Signature))) {
        return (synth(403, "Invalid signature"));
    }
    if (!crypto.equal(req.http.Code, crypto.hmac_sha256("key", "abc"))) {
        return (synth(403, "Invalid code"));
    }
}
sub vcl_deliver {
    set resp.http.hex = crypto.hex_encode(crypto.hash(sha256, "abc"));
    set resp.http.md5 = crypto.hash_md5("abc");
    set resp.http.hmac-md5 = crypto.hmac_md5("key", "abc");
    set resp.http.sha1 = crypto.hash_sha1("abc");
    set resp.http.hmac-sha1 = crypto.hmac_sha1("key", "abc");
    set resp.http.sha224 = crypto.hash_sha224("abc");
    set resp.http.hmac-sha224 = crypto.hmac_sha224("key", "abc");
    set resp.http.sha256 = crypto.hash_sha256("abc");
    set resp.http.hmac-sha256 = crypto.hmac_sha256("key", "abc");
    set resp.http.sha384 = crypto.hash_sha384("abc");
    set resp.http.hmac-sha384 = crypto.hmac_sha384("key", "abc");
    set resp.http.sha512 = crypto.hash_sha512("abc");
    set resp.http.hmac-sha512 = crypto.hmac_sha512("key", "abc");
}
"#,
        request: &[
            (
                "Signature",
                "EC5cmVTdsmjiz6-DhpQFeJaJGyrtNlmsrmMaqWezmS1Yua0SjAH--y5_ZWrHQ20NNKLIu9JyhKPCqz_tgIx_HVMAJDV0tdM1y0Z9mMC-PpfBTaox_e21sbGG92F2WTBeaQmhva4fNrmp7zOF3C458xkZqV8aNanxsgAfGOU6S5k_xwrc3bAXmZm-LTYxmcwGEFKbqmpzKR-Ndeut8HUz5K65_HZGe9RLc9NAPEytc_i0t2TvDrYOcEwK9a2p8AZzMRjKBVMa9KIkD_yKkRDl7qpjiJkLRy23rCnVLudS8xZzLsn_4i__npKBRkqGjO2MHOqCA-m2aXOw6swLPezpZw",
            ),
            ("Code", "0x9c196e32dc0175f86f4b1cb89289d6619de6bee699e4c378e68309ed97a1a6ab"),
        ],
        status: 200,
        response: &[
            ("hex", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("hmac-md5", "0xd2fe98063f876b03193afb49b4979591"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("hmac-sha1", "0x4fd0b215276ef12f2b3e4c8ecac2811498b656fc"),
            ("sha224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            ("hmac-sha224", "0xf524670b7e34f31467de0aa96593861cf65117d414fb2d86158d760e"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("hmac-sha256", "0x9c196e32dc0175f86f4b1cb89289d6619de6bee699e4c378e68309ed97a1a6ab"),
            (
                "sha384",
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                "hmac-sha384",
                "0x30ddb9c8f347cffbfb44e519d814f074cf4047a55d6f563324f1c6a33920e5edfb2a34bac60bdc96cd33a95623d7d638",
            ),
            (
                "sha512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            (
                "hmac-sha512",
                "0x3926a207c8c42b0c41792cbd3e1a1aaaf5f7a25704f62dfc939c4987dd7ce060009c5bb1c2447355b3216f10b537e9afa7b64a4e5391b0d631172d07939e087a",
            ),
        ],
    },
    ExampleRow {
        vmod: "geoip",
        files: &[],
        vcl: r#"vcl 4.1;
import geoip;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_deliver {
    set resp.http.Code = geoip.country_code("not an address");
    set resp.http.Name = geoip.country_name("not an address");
}
"#,
        request: &[],
        status: 200,
        response: &[("Code", r#"Unknown"#), ("Name", r#"Unknown"#)],
    },
    ExampleRow {
        vmod: "geoip2",
        files: &[("/var/lib/GeoIP/GeoLite2-City.mmdb", include_bytes!("examples/city.mmdb"))],
        vcl: r#"vcl 4.1;
import geoip2;
import std;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    new city = geoip2.geoip2("/var/lib/GeoIP/GeoLite2-City.mmdb");
}
sub vcl_recv {
    # Usually client.ip.
    set req.http.Country = city.lookup("country/iso_code", std.ip("192.0.2.7", "0.0.0.0"));
}
sub vcl_deliver {
    set resp.http.Country = req.http.Country;
    set resp.http.Region = city.lookup("subdivisions/0/iso_code", std.ip("192.0.2.7", "0.0.0.0"));
    set resp.http.City = city.lookup("city/names/en", std.ip("2001:db8::1", "0.0.0.0"), json = true);
    set resp.http.Nothing = "<" + city.lookup("city/names/en", std.ip("198.51.100.1", "0.0.0.0")) + ">";
}
"#,
        request: &[],
        status: 200,
        response: &[
            ("Country", r#"GB"#),
            ("Region", r#"ENG"#),
            ("City", r#""A \"quoted\" name""#),
            ("Nothing", r#"<>"#),
        ],
    },
    ExampleRow {
        vmod: "jq",
        files: &[],
        vcl: r#"vcl 4.1;
import jq;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_deliver {
    if (jq.parse(string, {"{ "user": { "name": "ann", "groups": ["a", "b"] } }"}) && jq.is_a(object)) {
        set resp.http.Name = jq.get(".user.name", "nobody", raw = true);
        set resp.http.Groups = jq.get(".user.groups", "[]");
        set resp.http.Last = jq.get(".user.groups[-1]", "none");
        set resp.http.Members = jq.length();
    }
}
"#,
        request: &[],
        status: 200,
        response: &[("Name", r#"ann"#), ("Groups", r#"["a","b"]"#), ("Last", r#""b""#), ("Members", r#"1"#)],
    },
    ExampleRow {
        vmod: "json",
        files: &[],
        vcl: r#"vcl 4.1;
import json;
import std;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_recv {
    std.cache_req_body(100KB);
    json.parse_req_body();
}
sub vcl_deliver {
    # A GET has no body.
    set resp.http.Body = json.is_valid();
    json.parse({"{ "baz": [3.14159, "pie", true], "n": null }"});
    if (json.is_valid() && json.is_object() && json.contains("baz[1]")) {
        set resp.http.Pie = json.get("baz[1]");
        set resp.http.Quoted = json.get("baz[1]", json_string = true);
        set resp.http.Missing = json.get("x.y", "none");
        set resp.http.Members = json.length();
    }
    json.parse("[1]");
    set resp.http.Kinds = json.is_array() + " " + json.is_string() + " " + json.is_number() + " " + json.is_boolean() + " " + json.is_null();
}
"#,
        request: &[],
        status: 200,
        response: &[
            ("Body", r#"false"#),
            ("Pie", r#"pie"#),
            ("Quoted", r#""pie""#),
            ("Missing", r#"none"#),
            ("Members", r#"2"#),
            ("Kinds", r#"true false false false false"#),
        ],
    },
    ExampleRow {
        vmod: "jwt",
        files: &[],
        vcl: r#"vcl 4.1;
import jwt;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    new reader = jwt.reader();
}
sub vcl_recv {
    if (!reader.parse(req.http.Authorization) || !reader.set_key("secret")
        || !reader.verify("HS256", skew = 30s)) {
        return (synth(401, "Invalid token"));
    }
    set req.http.User = reader.get_sub();
    unset req.http.Authorization;
}
sub vcl_deliver {
    set resp.http.User = req.http.User;
    set resp.http.Issuer = reader.get_iss();
    set resp.http.Audience = reader.get_aud();
    set resp.http.Identifier = reader.get_jti();
    set resp.http.Scope = reader.get_claim("scope");
    set resp.http.Times = reader.has_exp() + " " + reader.has_nbf() + " " + reader.has_iat();
    set resp.http.End = reader.get_exp();
    set resp.http.Start = reader.get_nbf();
    set resp.http.Issued = reader.get_iat();
    set resp.http.Algorithm = reader.get_alg() + " " + reader.get_typ() + " " + reader.get_kid();
    set resp.http.Header = reader.get_header();
    set resp.http.Same = reader.is_jwt() + " " + (reader.to_string() ==
        reader.get_header_encoded() + "." + reader.get_payload_encoded() + "." + reader.get_signature());
    if (reader.get_payload()) { set resp.http.Claims = "yes"; }
}
"#,
        request: &[(
            "Authorization",
            "Bearer eyJhbGciOiJIUzI1NiIsImtpZCI6IjEiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhbm4iLCJpc3MiOiJzaG9wIiwiYXVkIjoic2l0ZSIsImp0aSI6IjciLCJzY29wZSI6WyJyZWFkIl0sImV4cCI6NDAwMDAwMDAwMCwibmJmIjoxMDAwMDAwMDAwLCJpYXQiOjEwMDAwMDAwMDB9.N9emUd5q-P-2Td6pdLiNCoyR1EHmQ-eyDa3f1oyWgP8",
        )],
        status: 200,
        response: &[
            ("User", "ann"),
            ("Issuer", "shop"),
            ("Audience", "site"),
            ("Identifier", "7"),
            ("Scope", r#"["read"]"#),
            ("Times", "true true true"),
            ("End", "Tue, 02 Oct 2096 07:06:40 GMT"),
            ("Start", "Sun, 09 Sep 2001 01:46:40 GMT"),
            ("Issued", "Sun, 09 Sep 2001 01:46:40 GMT"),
            ("Algorithm", "HS256 JWT 1"),
            ("Header", r#"{"alg":"HS256","kid":"1","typ":"JWT"}"#),
            ("Same", "true true"),
            ("Claims", "yes"),
        ],
    },
    ExampleRow {
        vmod: "jwt",
        files: &[("/etc/varnish/keys.json", br#"{"keys":[{"kty":"oct","kid":"1","alg":"HS256","k":"c2VjcmV0"}]}"#)],
        vcl: r#"vcl 4.1;
import jwt;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    new reader = jwt.reader();
    new from_text = jwt.reader();
    from_text.set_jwk({"{ "kty": "oct", "k": "c2VjcmV0" }"});
    new writer = jwt.writer();
}
sub vcl_recv {
    # A key of the file, by the name in the token.
    if (!reader.set_jwk_file("/etc/varnish/keys.json") || !reader.parse(req.http.Authorization)
        || !reader.verify(reader.get_alg())) {
        return (synth(401, "Invalid token"));
    }
}
sub vcl_deliver {
    writer.from_string(reader.to_string());
    writer.set_alg("HS256");
    writer.set_typ("JWT");
    writer.set_kid("1");
    writer.set_sub("bob");
    writer.set_iss("shop");
    writer.set_aud("site");
    writer.set_jti("8");
    writer.set_exp(now + 6h);
    writer.set_nbf(now);
    writer.set_iat(now);
    set resp.http.Token = writer.generate("secret");
    if (writer.error()) { set resp.http.Error = writer.error(); }
    if (from_text.parse(resp.http.Token) && from_text.verify("HS256")) {
        set resp.http.User = from_text.get_sub();
        set resp.http.Scope = from_text.get_claim("scope");
    }
    unset resp.http.Token;
}
"#,
        request: &[(
            "Authorization",
            "Bearer eyJhbGciOiJIUzI1NiIsImtpZCI6IjEiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhbm4iLCJpc3MiOiJzaG9wIiwiYXVkIjoic2l0ZSIsImp0aSI6IjciLCJzY29wZSI6WyJyZWFkIl0sImV4cCI6NDAwMDAwMDAwMCwibmJmIjoxMDAwMDAwMDAwLCJpYXQiOjEwMDAwMDAwMDB9.N9emUd5q-P-2Td6pdLiNCoyR1EHmQ-eyDa3f1oyWgP8",
        )],
        status: 200,
        response: &[("User", "bob"), ("Scope", r#"["read"]"#)],
    },
    ExampleRow {
        vmod: "kvstore",
        files: &[],
        vcl: r#"vcl 4.1;
import kvstore;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    new store = kvstore.init();
    store.set("color", "green", 30d);
}
sub vcl_deliver {
    set resp.http.Color = store.get("color");
    store.delete("color");
    set resp.http.Then = store.get("color", "none");
    set resp.http.First = store.counter("visits", 1, 1h);
    set resp.http.Second = store.counter("visits", 1, 1h);
}
"#,
        request: &[],
        status: 200,
        response: &[("Color", r#"green"#), ("Then", r#"none"#), ("First", r#"1"#), ("Second", r#"2"#)],
    },
    ExampleRow {
        vmod: "maxminddb",
        files: &[("/var/lib/GeoIP/GeoLite2-City.mmdb", include_bytes!("examples/city.mmdb"))],
        vcl: r#"vcl 4.1;
import maxminddb;
import std;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_init {
    maxminddb.init_db("/var/lib/GeoIP/GeoLite2-City.mmdb");
}
sub vcl_deliver {
    set resp.http.Place = maxminddb.query_continent(std.ip("192.0.2.7", "0.0.0.0")) + " "
        + maxminddb.query_country(std.ip("192.0.2.7", "0.0.0.0")) + " "
        + maxminddb.query_state(std.ip("192.0.2.7", "0.0.0.0")) + " "
        + maxminddb.query_city(std.ip("192.0.2.7", "0.0.0.0")) + " "
        + maxminddb.query_postalcode(std.ip("192.0.2.7", "0.0.0.0"));
    set resp.http.Coordinates = maxminddb.query_latitude(std.ip("192.0.2.7", "0.0.0.0")) + " "
        + maxminddb.query_longitude(std.ip("192.0.2.7", "0.0.0.0"));
    set resp.http.Unknown = maxminddb.query_city(std.ip("198.51.100.1", "0.0.0.0"));
}
"#,
        request: &[],
        status: 200,
        response: &[("Place", r#"EU GB ENG London OX1"#), ("Coordinates", r#"51.5142 -0.0931"#), ("Unknown", r#"-"#)],
    },
    ExampleRow {
        vmod: "softpurge",
        files: &[],
        vcl: r#"vcl 4.1;
import softpurge;
backend default { .host = "10.0.0.1"; .port = "80"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        return (hash);
    }
}
sub vcl_hit {
    if (req.method == "PURGE") {
        softpurge.softpurge();
        return (synth(200, "Purged"));
    }
}
sub vcl_miss {
    if (req.method == "PURGE") {
        softpurge.softpurge();
        return (synth(404, "Not in the cache"));
    }
}
"#,
        request: &[],
        status: 200,
        response: &[],
    },
    ExampleRow {
        vmod: "ykey",
        files: &[],
        vcl: r#"vcl 4.1;
import ykey;
backend default { .host = "10.0.0.1"; .port = "80"; }
acl purgers { "192.0.2.0"/24; }
sub vcl_recv {
    if (req.method == "PURGE" && client.ip ~ purgers) {
        set req.http.Tagged = ykey.purge_header(req.http.Tags, sep = ",;", soft = true);
        set req.http.Front = ykey.purge_keys("front-page");
        set req.http.Spare = ykey.purge("draft preview");
        return (synth(200, "Purged " + req.http.Tagged + ", " + req.http.Front + " and " + req.http.Spare));
    }
}
sub vcl_backend_response {
    ykey.add_key("article-7");
    ykey.add_header(beresp.http.Tags, ",");
}
sub vcl_deliver {
    set resp.http.Tags = resp.http.xkey;
    unset resp.http.xkey;
}
"#,
        request: &[],
        status: 200,
        response: &[("Tags", r#"article-7"#)],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcl::Type;
    use crate::vmod::{FUNCTIONS, VMODS};

    #[test]
    fn examples_use_every_function_of_their_vmod() {
        for vmod in VMODS {
            let texts: Vec<&str> = EXAMPLES.iter().filter(|row| row.vmod == vmod.name).map(|row| row.vcl).collect();
            if texts.is_empty() {
                continue;
            }
            for row in FUNCTIONS.iter().filter(|row| row.vmod == vmod.name) {
                let call = match (row.class, row.returns) {
                    ("", _) => format!("{}.{}(", row.vmod, row.name),
                    (class, Type::Instance) => format!("= {}.{class}(", row.vmod),
                    _ => format!(".{}(", row.name),
                };
                assert!(texts.iter().any(|text| text.contains(&call)), "{}: no example of {call}", vmod.name);
            }
        }
    }

    #[test]
    fn examples_are_of_vmods_and_in_their_order() {
        assert!(EXAMPLES.is_sorted_by_key(|row| row.vmod));
        assert!(EXAMPLES.iter().all(|row| VMODS.iter().any(|vmod| vmod.name == row.vmod)));
    }
}
