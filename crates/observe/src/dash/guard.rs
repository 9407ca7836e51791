//! Which requests are answered at all: the names of the server, the pages that may ask, and the
//! fields that tell the browser what it may do with a response.
//!
//! A page of another site can make a browser send requests to the dashboard, and its own name can
//! be made to resolve to the dashboard's address. *Invariant:* no request is answered whose `Host`
//! is not a name of this server, and nothing is changed by a request that a page of another origin
//! could send. Source: RFC 9110 §7.4 (421), Fetch Metadata, RFC 6454.

use message::Message;
use std::net::IpAddr;

/// Fields of every response.
pub(super) const FIELDS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'\r\n\
     X-Content-Type-Options: nosniff\r\n\
     Referrer-Policy: no-referrer\r\n\
     Cross-Origin-Opener-Policy: same-origin\r\n\
     Cross-Origin-Resource-Policy: same-origin\r\n\
     Permissions-Policy: interest-cohort=()\r\n";

/// Field with the session's token against forged requests.
pub(super) const CSRF: &str = "X-Copal-Csrf";

/// The host in `Host`, without port and brackets, in lower case. `None` if there is not exactly
/// one.
fn host(request: &Message) -> Option<String> {
    let mut all = request.get_all("Host");
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let text = std::str::from_utf8(value).ok()?.trim().to_ascii_lowercase();
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| host.to_owned()),
        None => Some(text.rsplit_once(':').map_or(text.as_str(), |(host, _)| host).to_owned()),
    }
}

/// True if the request is for this server: the address that the connection came to, `localhost`
/// (only over loopback), or a name of `dash_hosts`. The port is free, as it differs behind a
/// tunnel.
pub(super) fn is_for_us(request: &Message, local: Option<IpAddr>, names: &[String]) -> bool {
    let Some(host) = host(request) else { return false };
    let is_loopback = local.is_none_or(|local| local.to_canonical().is_loopback());
    let is_address = host.parse::<IpAddr>().is_ok_and(|address| {
        let address = address.to_canonical();
        local.is_some_and(|local| local.to_canonical() == address) || (is_loopback && address.is_loopback())
    });
    is_address || (is_loopback && host == "localhost") || names.contains(&host)
}

/// Refuses a request that a page of another origin could have sent.
///
/// # Errors
/// The reason.
pub(super) fn same_origin(request: &Message) -> Result<(), &'static str> {
    let host = only(request, "Host").unwrap_or_default();
    let origin = only(request, "Origin").ok_or("there is no Origin")?;
    let origin = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
        return Err("Origin is another one");
    }
    fetched_by_us(request, b"")?;
    match only(request, "Content-Type") {
        Some(b"application/json") => Ok(()),
        _ => Err("Content-Type is not application/json"),
    }
}

/// The value of a field that occurs once.
fn only<'a>(request: &'a Message, name: &'a str) -> Option<&'a [u8]> {
    let mut all = request.get_all(name);
    all.next().filter(|_| all.next().is_none())
}

/// Refuses a request whose `Sec-Fetch-Site` is neither `same-origin` nor `permitted`. Browsers omit
/// the field over plain HTTP to other hosts than loopback.
///
/// # Errors
/// The reason.
pub(super) fn fetched_by_us(request: &Message, permitted: &[u8]) -> Result<(), &'static str> {
    let mut sites = request.get_all("Sec-Fetch-Site");
    if sites.all(|site| site == b"same-origin" || (!permitted.is_empty() && site == permitted)) {
        Ok(())
    } else {
        Err("another site asks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        fields.iter().for_each(|(name, value)| message.append(name.as_bytes(), value.as_bytes()));
        message
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        let names = ["cache.example.net".to_owned()];
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        for (host, expected) in [
            ("127.0.0.1:9132", true),
            ("localhost:8000", true),
            ("LOCALHOST", true),
            ("[::1]:9132", true),
            ("cache.example.net", true),
            ("evil.test", false),
            ("127.0.0.1.evil.test", false),
            ("localhost.evil.test:9132", false),
            ("192.0.2.1", false),
            ("", false),
        ] {
            assert_eq!(is_for_us(&request(&[("Host", host)]), Some(local), &names), expected, "{host}");
        }
        assert!(!is_for_us(&request(&[]), Some(local), &names));
        assert!(!is_for_us(&request(&[("Host", "localhost"), ("Host", "localhost")]), Some(local), &names));
        // On another address loopback is not a name of this server.
        let local: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert!(is_for_us(&request(&[("Host", "192.0.2.1:9132")]), Some(local), &[]));
        assert!(!is_for_us(&request(&[("Host", "localhost")]), Some(local), &[]));
        assert!(!is_for_us(&request(&[("Host", "127.0.0.1")]), Some(local), &[]));
    }

    #[test]
    fn pages_of_other_origins_change_nothing() {
        let good = [
            ("Host", "localhost:1"),
            ("Origin", "http://localhost:1"),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/json"),
        ];
        assert_eq!(same_origin(&request(&good)), Ok(()));
        let with = |name: &str, value: &str| {
            let mut fields = good;
            fields.iter_mut().filter(|field| field.0 == name).for_each(|field| field.1 = "");
            let mut kept: Vec<(&str, &str)> = fields.into_iter().filter(|field| !field.1.is_empty()).collect();
            if !value.is_empty() {
                kept.push((name, value));
            }
            same_origin(&request(&kept)).is_ok()
        };
        assert!(with("Origin", "https://localhost:1") && with("Sec-Fetch-Site", ""));
        for (name, value) in [
            ("Origin", ""),
            ("Origin", "null"),
            ("Origin", "http://localhost:2"),
            ("Origin", "http://evil.test"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Sec-Fetch-Site", "none"),
            ("Content-Type", "text/plain"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Content-Type", ""),
        ] {
            assert!(!with(name, value), "{name}: {value}");
        }
    }
}
