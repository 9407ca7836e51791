//! VMODs that exist elsewhere but not here: their purpose, and the native replacement, if any.
//!
//! The compiler adds this text to the message about an unknown `import`, to help with the migration
//! of a VCL. Source: the names and purposes under which they are published.

/// A VMOD that exists elsewhere.
#[derive(Debug)]
pub struct ForeignRow {
    /// Its name in `import`.
    pub name: &'static str,
    /// Its purpose.
    pub purpose: &'static str,
    /// Replacement here; empty for none.
    pub instead: &'static str,
}

const fn foreign(name: &'static str, purpose: &'static str, instead: &'static str) -> ForeignRow {
    ForeignRow { name, purpose, instead }
}

/// VMODs that exist elsewhere, ordered by name.
pub static FOREIGN: &[ForeignRow] = &[
    foreign("accounting", "counting requests by key", "std.log() and copal ncsa"),
    foreign("aclplus", "acls written as strings", "std.ip() and an acl"),
    foreign("activedns", "backends by name", "dynamic"),
    foreign("akamai", "edge authentication tokens", ""),
    foreign("awsrest", "signing requests to object stores", ""),
    foreign("binlog", "log files of one's own", "std.log() and copal log -w"),
    foreign("blobdigest", "hashes of blobs", "digest, of strings"),
    foreign("blobsynth", "bodies made of blobs", "set resp.body = a BLOB"),
    foreign("boltsort", "sorting of query strings", "querystring"),
    foreign("cachefilter", "what is stored", "return (pass), and beresp.uncacheable"),
    foreign("cfg", "configuration from files", "std.fileread()"),
    foreign("constant", "values fixed when the VCL is loaded", ""),
    foreign("cookieplus", "cookies", "cookie"),
    foreign("curl", "requests to other servers", ""),
    foreign("dbrw", "rewriting by rules of a database", ""),
    foreign("dclass", "kinds of devices", "regular expressions on req.http.User-Agent"),
    foreign("deviceatlas", "kinds of devices", "regular expressions on req.http.User-Agent"),
    foreign("dict", "tables of strings from files", "if and elseif with =="),
    foreign("drbg", "random numbers", "std.random(), and uuid.uuid_v4()"),
    foreign("edgestash", "templates in bodies", ""),
    foreign("file", "files", "std.fileread()"),
    foreign("fileserver", "files as backends", ""),
    foreign("format", "text with placeholders", "joining text with +"),
    foreign("frozen", "JSON", "json"),
    foreign("fsdirector", "files as backends", ""),
    foreign("gcrypt", "encryption", ""),
    foreign("goto", "backends by name", "dynamic"),
    foreign("headerplus", "headers by pattern", "header"),
    foreign("hoailona", "edge authentication tokens", "digest, for its keyed hashes"),
    foreign("http", "requests to other servers", ""),
    foreign("ipcast", "addresses of text", "std.ip()"),
    foreign("j", "JSON made in VCL", "joining text with +"),
    foreign("js", "scripts in other languages", ""),
    foreign("ldap", "passwords of a directory", ""),
    foreign("leastconn", "the backend with the fewest connections", "directors.least_conn"),
    foreign("lua", "scripts in other languages", ""),
    foreign("memcache", "values of a memcached server", ""),
    foreign("memcached", "values of a memcached server", ""),
    foreign("mmdb", "places of addresses", "geoip2"),
    foreign("mse", "the choice of a store", "beresp.storage"),
    foreign("mysql", "values of a database", ""),
    foreign("named", "backends by name", "dynamic"),
    foreign("nodes", "backends from files", "a backend for each"),
    foreign("objvar", "variables", "var"),
    foreign("parseform", "fields of forms in bodies", ""),
    foreign("parsereq", "fields of forms and queries", "regsub() on req.url"),
    foreign("pcre2", "regular expressions", "re, and the operator ~"),
    foreign("pesi", "parallel ESI", "ESI as it is"),
    foreign("policy", "rules for headers", ""),
    foreign("probe_proxy", "probes through a proxy", ""),
    foreign("python", "scripts in other languages", ""),
    foreign("re2", "regular expressions", "re, and the operator ~"),
    foreign("redis", "values of a redis server", ""),
    foreign(
        "remoteip",
        "the client's address behind proxies",
        "the PROXY protocol (-a ...,PROXY), or std.ip() of a header",
    ),
    foreign("reqwest", "requests to other servers", ""),
    foreign("rers", "regular expressions and bodies", "re for headers"),
    foreign("resolver", "backends by name", "dynamic"),
    foreign("rewrite", "rules for URLs and headers", "regsub()"),
    foreign("rfc6052", "IPv4 addresses within IPv6 ones", ""),
    foreign("rtstatus", "counters as a page", "copal stat -j"),
    foreign("s3", "signing requests to object stores", ""),
    foreign("secdownload", "links that expire", "digest and std.time()"),
    foreign("selector", "tables of strings", "if and elseif with == or ~"),
    foreign("session", "timeouts of the client's connection", "sess.timeout_idle"),
    foreign("shield", "closing connections of hostile clients", "vsthrottle, and return (synth(429))"),
    foreign("slash", "kinds of storage", "the option -s"),
    foreign("slicer", "large objects in pieces", ""),
    foreign("sql", "values of a database", ""),
    foreign("sqlite3", "values of a database", ""),
    foreign("stale", "reviving objects past their time", "beresp.grace and purge.soft()"),
    foreign("stat", "counters", "copal stat"),
    foreign("statsd", "counters sent elsewhere", "copal stat -j"),
    foreign("strftime", "dates as text", "std.strftime()"),
    foreign("synthbackend", "answers without an origin", "return (synth(200))"),
    foreign("tag", "purging by tag", "xkey and ykey"),
    foreign("task_var", "variables of a request", "var"),
    foreign("tbf", "limits on how often something may happen", "vsthrottle"),
    foreign("throttle", "limits on how often something may happen", "vsthrottle"),
    foreign("timers", "time spent", "std.timestamp(), which copal log and copal ncsa show"),
    foreign("timeutils", "dates as text", "std.strftime() and std.time()"),
    foreign("udo", "sets of backends", "directors"),
    foreign("unidirectors", "sets of backends", "directors"),
    foreign("uri", "parts of URLs", "querystring, and regsub()"),
    foreign("urlcode", "percent encoding", "blob.transcode()"),
    foreign("urlencode", "percent encoding", "blob.transcode()"),
    foreign("urlplus", "parts of URLs", "querystring, and regsub()"),
    foreign("utils", "assorted functions", "std"),
    foreign("variable", "variables", "var"),
    foreign("vha", "copies of objects on other nodes", ""),
    foreign("vslp", "consistent hashing", "directors.shard"),
    foreign("waf", "rules against attacks", ""),
    foreign("wasm", "scripts in other languages", ""),
    foreign("weightadjust", "weights from probes", "directors.random"),
    foreign("wurfl", "kinds of devices", "regular expressions on req.http.User-Agent"),
    foreign("xbody", "searching in bodies", "bodyaccess, for those of requests"),
    foreign("xcounter", "counters of one's own", "std.log()"),
];

/// The hashes of the VMOD digest.
const DIGEST_HASHES: &str = "hash_sha256, hash_sha512, hash_sha384, hash_sha224, hash_sha1, hash_md5, hash_crc32, \
     hash_crc32b and hash_adler32";

/// The hashes of the VMOD crypto.
const CRYPTO_HASHES: &str = "hash_sha256, hash_sha512, hash_sha384, hash_sha224, hash_sha1 and hash_md5";

/// Functions and classes that our VMODs had in older versions, with their replacements.
pub static FORMER: &[(&str, &str)] = &[
    ("cookie.filter_except", "cookie.keep"),
    ("crypto.hash_md4", CRYPTO_HASHES),
    ("crypto.hash_ripemd160", CRYPTO_HASHES),
    ("crypto.hash_whirlpool", CRYPTO_HASHES),
    ("crypto.signer", "nothing, a private key is not for a process that reads requests"),
    ("digest.hash_gost", DIGEST_HASHES),
    ("digest.hash_haval128", DIGEST_HASHES),
    ("digest.hash_haval160", DIGEST_HASHES),
    ("digest.hash_haval192", DIGEST_HASHES),
    ("digest.hash_haval224", DIGEST_HASHES),
    ("digest.hash_haval256", DIGEST_HASHES),
    ("digest.hash_md2", DIGEST_HASHES),
    ("digest.hash_md4", DIGEST_HASHES),
    ("digest.hash_ripemd128", DIGEST_HASHES),
    ("digest.hash_ripemd160", DIGEST_HASHES),
    ("digest.hash_ripemd256", DIGEST_HASHES),
    ("digest.hash_ripemd320", DIGEST_HASHES),
    ("digest.hash_snefru128", DIGEST_HASHES),
    ("digest.hash_snefru256", DIGEST_HASHES),
    ("digest.hash_tiger", DIGEST_HASHES),
    ("digest.hash_tiger128", DIGEST_HASHES),
    ("digest.hash_tiger160", DIGEST_HASHES),
    ("digest.hash_whirlpool", DIGEST_HASHES),
    ("directors.client", "directors.hash, asked with client.identity"),
    ("directors.dns", "the VMOD dynamic"),
    ("re.match", "match() of an object that re.regex makes in vcl_init, and re.match_dyn"),
    ("std.author", "nothing, it said who wrote Varnish"),
];

/// The replacement of a removed function or class, by its old name.
#[must_use]
pub fn present_name(written: &str) -> Option<&'static str> {
    FORMER.iter().find(|(old, _)| old.eq_ignore_ascii_case(written)).map(|&(_, new)| new)
}

/// Purposes of inline C, each recognised by a word in it, with the replacement here. The first
/// matching row is used.
pub static INLINE_C: &[(&str, &str)] = &[
    ("VRT_SetHdr", "set writes headers: set req.http.x = ...;"),
    ("VRT_GetHdr", "headers are read by name: req.http.x"),
    ("syslog", "std.syslog() writes to the system's log"),
    ("VSL", "std.log() writes to the log"),
    ("getenv", "std.getenv() reads the environment"),
    ("rand", "std.random() gives random numbers"),
    ("time", "now, std.time() and std.strftime() give times as text"),
    ("MD5", "the VMOD digest makes hashes"),
    ("SHA", "the VMOD digest makes hashes"),
    ("sha", "the VMOD digest makes hashes"),
    ("GeoIP", "the VMOD geoip2 finds the country of an address"),
    ("uuid", "the VMOD uuid makes unique identifiers"),
    ("regexec", "the operator ~, regsub() and the VMOD re match regular expressions"),
    ("inet_", "std.ip() and acls compare addresses"),
    ("sockaddr", "std.ip() and acls compare addresses"),
    ("setsockopt", "the VMOD tcp sets options of connections"),
    ("ato", "std.integer(), std.real() and std.duration() read numbers"),
    ("strto", "std.integer(), std.real() and std.duration() read numbers"),
    ("str", "the VMOD str has pieces of strings, std.tolower() and others their cases"),
    ("fopen", "std.fileread() reads files"),
];

/// The replacement for a piece of C, according to its probable purpose.
#[must_use]
pub fn instead_of_c(code: &[u8]) -> Option<&'static str> {
    let code = String::from_utf8_lossy(&code[..code.len().min(64 << 10)]);
    INLINE_C.iter().find(|(word, _)| code.contains(word)).map(|&(_, instead)| instead)
}

/// Description of a VMOD that does not exist here.
#[must_use]
pub fn find(name: &str) -> Option<&'static ForeignRow> {
    FOREIGN.iter().find(|row| row.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmod::VMODS;

    #[test]
    fn rows_stand_in_order() {
        assert!(FOREIGN.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn former_names_stand_in_order_and_are_names_of_nothing() {
        assert!(FORMER.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (old, _) in FORMER {
            let (vmod, name) = old.split_once('.').unwrap();
            assert!(VMODS.iter().any(|row| row.name == vmod), "{old}");
            let is_it = |row: &crate::vmod::FunctionRow| {
                row.vmod == vmod && [(name, ""), ("", name)].contains(&(row.name, row.class))
            };
            assert!(!crate::vmod::FUNCTIONS.iter().any(is_it), "{old} is here: remove its row");
        }
    }

    #[test]
    fn native_vmods_are_not_listed_as_foreign() {
        for row in FOREIGN {
            assert!(VMODS.iter().all(|known| known.name != row.name), "{} is native: remove its row", row.name);
        }
    }
}
