//! `-o otlp=…`, `-o otlp_sample=…` and `-o otlp_query=…` of the daemon, and the options of `copal
//! observe` for traces.

use crate::reason::{HANDLINGS, REASONS};

/// Value of `otlp_query` that keeps the values of query arguments.
pub const QUERY_KEEP: &str = "keep";
/// Environment variable with the endpoint, for `otlp=env`.
pub const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Value of `otlp`: the endpoint is in [`ENDPOINT_VARIABLE`].
pub const ENDPOINT_OF_ENVIRONMENT: &str = "env";
/// Path if the URL has none.
const PATH: &str = "/v1/traces";
/// Port if the URL has none.
const PORT: u16 = 4318;

/// A collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The connection uses TLS.
    pub is_tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path of the requests.
    pub path: String,
}

impl Endpoint {
    /// Parses `http(s)://<host>[:<port>][/<path>]`.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let wrong = |why: &str| format!("{url}: {why}");
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("not like http://127.0.0.1:4318"))?;
        let is_tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("neither http nor https")),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || authority.contains('@') || path.contains(['?', '#']) {
            return Err(wrong("only scheme, host, port and path are allowed"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong("the port is wrong"))?),
            _ => (authority, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let path = if matches!(path, "" | "/") { PATH } else { path };
        Ok(Endpoint { is_tls, host, port, path: path.to_owned() })
    }
}

/// The traces that are sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Share of all traces.
    pub ratio: f64,
    /// Those with an error.
    pub errors: bool,
    /// Those that took at least this many milliseconds.
    pub slow_milliseconds: Option<u64>,
    /// Those with one of these reasons or handlings.
    pub reasons: Vec<&'static str>,
    /// The decision of the caller does not count.
    pub ignores_parent: bool,
}

impl Default for Sample {
    /// One per cent, and all errors.
    fn default() -> Sample {
        Sample { ratio: 0.01, errors: true, slow_milliseconds: None, reasons: Vec::new(), ignores_parent: false }
    }
}

impl Sample {
    /// Parses a list: a share (`0.01`), `errors`, `slow:500ms`, `why:<reason>`, `ignore-parent`.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn parse(text: &str) -> Result<Sample, String> {
        let mut sample = Sample { ratio: 0.0, errors: false, ..Sample::default() };
        for word in text.split(',') {
            match word.split_once(':') {
                None if word == "errors" => sample.errors = true,
                None if word == "ignore-parent" => sample.ignores_parent = true,
                Some(("slow", time)) => {
                    sample.slow_milliseconds =
                        Some(milliseconds(time).ok_or_else(|| format!("{word} is not like slow:500ms"))?);
                }
                Some(("why", name)) => {
                    let known = REASONS.iter().map(|row| row.word).chain(HANDLINGS.iter().map(|row| row.1));
                    let reason = known.into_iter().find(|known| *known == name);
                    sample.reasons.push(reason.ok_or_else(|| format!("{name} is not a reason"))?);
                }
                _ => {
                    let ratio = word.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                    sample.ratio =
                        ratio.ok_or_else(|| format!("{word} is not a share, errors, slow:, why: or ignore-parent"))?;
                }
            }
        }
        Ok(sample)
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let (digits, factor) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s')?, 1000),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_default_port_and_path() {
        let endpoint =
            |is_tls, host: &str, port, path: &str| Endpoint { is_tls, host: host.into(), port, path: path.into() };
        for (url, expected) in [
            ("http://127.0.0.1:4318", endpoint(false, "127.0.0.1", 4318, "/v1/traces")),
            ("https://otel.example/", endpoint(true, "otel.example", 4318, "/v1/traces")),
            ("http://[::1]:1/a/b", endpoint(false, "::1", 1, "/a/b")),
            ("http://[::1]", endpoint(false, "::1", 4318, "/v1/traces")),
        ] {
            assert_eq!(Endpoint::parse(url), Ok(expected), "{url}");
        }
        for wrong in
            ["", "x", "ftp://x", "http://", "http://x:y", "http://a@b", "http://x/?q", "http://x y", "http://x\r\n"]
        {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn samples_are_lists() {
        let sample = Sample::parse("0.5,errors,slow:2s,why:pass,why:miss-vary,ignore-parent").unwrap();
        let expected = Sample {
            ratio: 0.5,
            errors: true,
            slow_milliseconds: Some(2000),
            reasons: vec!["pass", "miss-vary"],
            ignores_parent: true,
        };
        assert_eq!(sample, expected);
        assert_eq!(Sample::parse("errors").unwrap().ratio, 0.0);
        for wrong in ["", "2", "-1", "NaN", "slow:5", "slow:", "why:because", "errors:"] {
            assert!(Sample::parse(wrong).is_err(), "{wrong}");
        }
    }
}
