//! VMODs that exist elsewhere and not here: what they are for, and which native one, if any, does that.
//!
//! The compiler says it of an `import` that finds nothing, so that whoever moves a VCL here knows what to change.
//! Source: the names and purposes under which these are published.

/// One VMOD of elsewhere.
#[derive(Debug)]
pub struct ForeignRow {
    /// Its name in `import`.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// What does that here; empty for nothing.
    pub instead: &'static str,
}

const fn foreign(name: &'static str, purpose: &'static str, instead: &'static str) -> ForeignRow {
    ForeignRow { name, purpose, instead }
}

/// VMODs of elsewhere, in order of name.
pub static FOREIGN: &[ForeignRow] = &[
    foreign("activedns", "backends by name", "dynamic"),
    foreign("akamai", "edge authentication tokens", ""),
    foreign("awsrest", "signing requests to object stores", ""),
    foreign("basicauth", "passwords of HTTP basic authentication", "comparing req.http.Authorization"),
    foreign("boltsort", "sorting of query strings", "querystring"),
    foreign("brotli", "compression with brotli", ""),
    foreign("cfg", "configuration from files", "std.fileread()"),
    foreign("constant", "values fixed when the VCL is loaded", ""),
    foreign("cookieplus", "cookies", "cookie"),
    foreign("crypto", "hashes and signatures", "digest for hashes"),
    foreign("curl", "requests to other servers", ""),
    foreign("deviceatlas", "kinds of devices", "regular expressions on req.http.User-Agent"),
    foreign("edgestash", "templates in bodies", ""),
    foreign("file", "files", "std.fileread()"),
    foreign("fileserver", "files as backends", ""),
    foreign("format", "text with placeholders", "joining text with +"),
    foreign("frozen", "JSON", ""),
    foreign("gcrypt", "encryption", ""),
    foreign("geoip", "places of addresses", "an acl for each region"),
    foreign("geoip2", "places of addresses", "an acl for each region"),
    foreign("goto", "backends by name", "dynamic"),
    foreign("headerplus", "headers by pattern", "header"),
    foreign("http", "requests to other servers", ""),
    foreign("json", "JSON", ""),
    foreign("jwt", "signed tokens", ""),
    foreign("kvstore", "values kept between requests", "var, its global variables"),
    foreign("leastconn", "the backend with the fewest connections", "directors.least_conn"),
    foreign("maxminddb", "places of addresses", "an acl for each region"),
    foreign("memcached", "values of a memcached server", ""),
    foreign("mmdb", "places of addresses", "an acl for each region"),
    foreign("nodes", "backends from files", "a backend for each"),
    foreign("parseform", "fields of forms in bodies", ""),
    foreign("parsereq", "fields of forms and queries", "regsub() on req.url"),
    foreign("pcre2", "regular expressions", "re, and the operator ~"),
    foreign("pesi", "parallel ESI", "ESI as it is"),
    foreign("probe_proxy", "probes through a proxy", ""),
    foreign("re2", "regular expressions", "re, and the operator ~"),
    foreign("redis", "values of a redis server", ""),
    foreign("reqwest", "requests to other servers", ""),
    foreign("rers", "regular expressions and bodies", "re for headers"),
    foreign("rewrite", "rules for URLs and headers", "regsub()"),
    foreign("rtstatus", "counters as a page", "varnishstat -j"),
    foreign("selector", "tables of strings", "if and elseif with =="),
    foreign("shield", "closing connections of hostile clients", "vsthrottle, and return (synth(429))"),
    foreign("slicer", "large objects in pieces", ""),
    foreign("softpurge", "purging that keeps grace", "purge.soft()"),
    foreign("stat", "counters", "varnishstat"),
    foreign("tag", "purging by tag", "xkey"),
    foreign("task_var", "variables of a request", "var"),
    foreign("timers", "time spent", "std.timestamp()"),
    foreign("tls", "facts about TLS", "proxy"),
    foreign("unidirectors", "sets of backends", "directors"),
    foreign("urlcode", "percent encoding", "blob.transcode()"),
    foreign("urlplus", "parts of URLs", "querystring, and regsub()"),
    foreign("utils", "assorted functions", "std"),
    foreign("weightadjust", "weights from probes", "directors.random"),
    foreign("wurfl", "kinds of devices", "regular expressions on req.http.User-Agent"),
    foreign("xcounter", "counters of one's own", "std.log()"),
    foreign("ykey", "purging by tag", "xkey"),
];

/// What inline C was used for, by a word of it, with what does that here. The first row that fits counts.
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
    ("GeoIP", "an acl for each region tells addresses apart"),
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

/// What does what a piece of C was probably for.
#[must_use]
pub fn instead_of_c(code: &[u8]) -> Option<&'static str> {
    let code = String::from_utf8_lossy(&code[..code.len().min(64 << 10)]);
    INLINE_C.iter().find(|(word, _)| code.contains(word)).map(|&(_, instead)| instead)
}

/// What is known of a VMOD that is not here.
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
    fn what_is_here_is_not_foreign() {
        for row in FOREIGN {
            assert!(VMODS.iter().all(|known| known.name != row.name), "{} is native: remove its row", row.name);
        }
    }
}
