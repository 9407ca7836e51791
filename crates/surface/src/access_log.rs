//! `-o access-log=…` of the daemon and `--access-log` of `copal observe`: one access log.
//!
//! ```text
//! <destination>[,side=c|b|both][,rotate=<size>x<files>][,query=<query>][,format=<format>]
//! ```
//! The query ends at `,format=`; the format extends to the end, as it may contain commas.

use std::fmt;

/// Destination of the lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// A file, by its path.
    File(String),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// `/dev/log`, with this facility.
    Syslog(&'static str, u8),
    /// A Unix-domain datagram socket, by its path.
    Datagram(String),
}

/// The facilities of syslog. Source: RFC 5424 §6.2.1.
pub const FACILITIES: &[(&str, u8)] = &[
    ("user", 1),
    ("daemon", 3),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// Path of the socket of syslog.
pub const SYSLOG_PATH: &str = "/dev/log";
/// Most old files that `rotate=` keeps.
pub const ROTATED_FILES_MAX: u32 = 1000;

/// Form of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LineFormat {
    /// That of varnishncsa without options.
    Combined,
    /// One JSON object, as varnishncsa --json writes.
    Json,
    /// The first line of a file, as varnishncsa -f reads it.
    File(String),
    /// As varnishncsa -F.
    Text(String),
}

/// Rotation by size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// Size at which a file is replaced.
    pub bytes: u64,
    /// Number of old files that are kept.
    pub files: u32,
}

/// One access log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessLog {
    /// Destination.
    pub destination: Destination,
    /// Client requests are logged.
    pub client: bool,
    /// Backend requests are logged.
    pub backend: bool,
    /// Only transactions that match this query, as of varnishncsa -q.
    pub query: Option<String>,
    /// Form of a line.
    pub format: LineFormat,
    /// `None`: the file is replaced by others, and opened again then.
    pub rotation: Option<Rotation>,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::File(path) => f.write_str(path),
            Destination::Stdout => f.write_str("stdout"),
            Destination::Stderr => f.write_str("stderr"),
            Destination::Syslog(facility, _) => write!(f, "syslog:{facility}"),
            Destination::Datagram(path) => write!(f, "unix:{path}"),
        }
    }
}

impl AccessLog {
    /// Parses an access log.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn parse(text: &str) -> Result<AccessLog, String> {
        let (text, format) = match text.split_once(",format=") {
            Some((text, format)) => (text, line_format(format)?),
            None => (text, LineFormat::Combined),
        };
        let (text, query) = match text.split_once(",query=") {
            Some((text, query)) => (text, Some(query.to_owned())),
            None => (text, None),
        };
        let mut parts = text.split(',');
        let destination = destination(parts.next().unwrap_or_default())?;
        let (mut client, mut backend, mut rotation) = (true, false, None);
        for part in parts {
            match part.split_once('=') {
                Some(("side", side)) => {
                    (client, backend) = match side {
                        "c" => (true, false),
                        "b" => (false, true),
                        "both" => (true, true),
                        _ => return Err(format!("side={side} is not c, b or both")),
                    };
                }
                Some(("rotate", value)) if matches!(destination, Destination::File(_)) => {
                    rotation = Some(parse_rotation(value)?);
                }
                Some(("rotate", _)) => return Err("only a file can have rotate=".to_owned()),
                _ => return Err(format!("{part} is not side=, rotate=, query= or format=")),
            }
        }
        Ok(AccessLog { destination, client, backend, query, format, rotation })
    }
}

fn destination(text: &str) -> Result<Destination, String> {
    let facility = |name: &str| FACILITIES.iter().find(|(known, _)| *known == name);
    match text {
        "stdout" => Ok(Destination::Stdout),
        "stderr" => Ok(Destination::Stderr),
        "syslog" => Ok(Destination::Syslog("daemon", 3)),
        _ => match text.split_once(':') {
            Some(("syslog", name)) => {
                let (name, number) = facility(name).ok_or_else(|| format!("{name} is not a facility"))?;
                Ok(Destination::Syslog(name, *number))
            }
            Some(("unix", path)) if path.starts_with('/') => Ok(Destination::Datagram(path.to_owned())),
            _ if text.starts_with('/') => Ok(Destination::File(text.to_owned())),
            _ => Err(format!("{text} is not an absolute path, stdout, stderr, syslog or unix:<path>")),
        },
    }
}

fn line_format(text: &str) -> Result<LineFormat, String> {
    match text {
        "" => Err("format= lacks a format".to_owned()),
        "combined" => Ok(LineFormat::Combined),
        "json" => Ok(LineFormat::Json),
        _ => Ok(match text.strip_prefix('@') {
            Some(path) => LineFormat::File(path.to_owned()),
            None => LineFormat::Text(text.to_owned()),
        }),
    }
}

fn parse_rotation(text: &str) -> Result<Rotation, String> {
    let wrong = || format!("rotate={text} is not like 100Mx5");
    let (size, files) = text.split_once('x').ok_or_else(wrong)?;
    let digits = size.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match size[digits.len()..].to_ascii_lowercase().as_str() {
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes > 0);
    let files = files.parse().ok().filter(|files| (1..=ROTATED_FILES_MAX).contains(files));
    Ok(Rotation { bytes: bytes.ok_or_else(wrong)?, files: files.ok_or_else(wrong)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_an_access_log_are_parsed() {
        let plain = AccessLog {
            destination: Destination::File("/x/a".to_owned()),
            client: true,
            backend: false,
            query: None,
            format: LineFormat::Combined,
            rotation: None,
        };
        assert_eq!(AccessLog::parse("/x/a"), Ok(plain.clone()));
        let full = "/x/a,side=both,rotate=100Mx5,query=RespStatus >= 500, or so,format=%s,%b";
        let expected = AccessLog {
            backend: true,
            query: Some("RespStatus >= 500, or so".to_owned()),
            format: LineFormat::Text("%s,%b".to_owned()),
            rotation: Some(Rotation { bytes: 100 << 20, files: 5 }),
            ..plain
        };
        assert_eq!(AccessLog::parse(full), Ok(expected));
        let shown = |text: &str| AccessLog::parse(text).unwrap().destination.to_string();
        for text in ["stdout", "stderr", "syslog:local7", "unix:/x"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(AccessLog::parse("stdout,format=json").unwrap().format, LineFormat::Json);
    }

    #[test]
    fn wrong_access_logs_are_refused() {
        for wrong in [
            "",
            "a",
            "unix:a",
            "syslog:mail",
            "/a,side=x",
            "/a,format=",
            "/a,rotate=5",
            "/a,rotate=0Mx1",
            "/a,rotate=99999999999999Gx1",
            "/a,rotate=1Mx0",
            "stdout,rotate=1Mx1",
            "/a,b",
        ] {
            assert!(AccessLog::parse(wrong).is_err(), "{wrong}");
        }
    }
}
