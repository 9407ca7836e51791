//! A request of a client with everything that it caused.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A request of a client, its fetches, its response, and the decisions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// Time at which the request arrived, in seconds since 1970.
    pub start: f64,
    /// Address of the client; with masks, one that stands for it.
    pub client: IpAddr,
    /// Name of the listener (`-a`).
    pub listener: String,
    /// Name of the VCL that handled it.
    pub vcl: String,
    /// The request as received.
    pub request: Head,
    /// Length of the request's body, in bytes.
    pub body_bytes: u64,
    /// A record of the log was cut (`vsl_reclen`), or is missing: it cannot be replayed.
    pub is_cut: bool,
    /// Host and URL as they were at the lookup; `None` if nothing was looked up.
    pub lookup: Option<(Vec<u8>, Vec<u8>)>,
    /// A hash of the parts of the key; `None` if they are not in the log.
    pub key: Option<u64>,
    /// The `vxid` of the fetch that brought the stored response; `None` if none was served.
    pub hit: Option<u64>,
    /// Fetches for it, by their start.
    pub fetches: Vec<Fetch>,
    /// The response as delivered; `None` if there was none.
    pub response: Option<Head>,
    /// Length of the response's body as sent, in bytes.
    pub response_bytes: u64,
    /// The handling, a word of `surface::reason::Handling`.
    pub handling: String,
    /// The recorded reasons, in order.
    pub reasons: Vec<Said>,
    /// Number of restarts.
    pub restarts: u32,
    /// Number of fragments (ESI).
    pub fragments: u32,
}

/// The first line and the fields of a message. For a request: method, URL, protocol; for a
/// response: protocol, status, reason.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The words of the first line.
    pub line: [Vec<u8>; 3],
    /// Names and values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A fetch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fetch {
    /// Number of its transaction.
    pub vxid: u64,
    /// Time of its start, in seconds since 1970.
    pub start: f64,
    /// It ran after the response was delivered.
    pub is_background: bool,
    /// Name of the backend; empty = none was reached.
    pub backend: String,
    /// The request as sent to the origin.
    pub request: Head,
    /// The response as received from the origin; `None` if it failed.
    pub response: Option<Head>,
    /// Length of the response's body as received, in bytes.
    pub body_bytes: u64,
    /// The failure; empty = none.
    pub failure: String,
    /// True if the response was stored, false if not; `None` if the log does not say.
    pub stored: Option<bool>,
    /// TTL, grace and keep, in seconds.
    pub lifetime: Option<[f64; 3]>,
}

/// A recorded reason (`surface::reason`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Said {
    /// Its word.
    pub word: String,
    /// File and line of the VCL statement that decided.
    pub place: Option<(String, u32)>,
    /// It was recorded by a fetch.
    pub is_fetch: bool,
}

impl Head {
    /// The values of a field, ignoring case.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.fields.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| value.as_slice())
    }

    /// The first value of a field.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let mut named = self.fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
        named.next().map(|(_, value)| value.as_slice())
    }

    /// The status of a response; 0 if it is not a number.
    #[must_use]
    pub fn status(&self) -> u16 {
        std::str::from_utf8(&self.line[1]).ok().and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

impl Exchange {
    /// The status that was delivered; 0 = none.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.as_ref().map_or(0, Head::status)
    }

    /// The last fetch whose result the client waited for, or else the last one.
    #[must_use]
    pub fn fetch(&self) -> Option<&Fetch> {
        self.fetches.iter().rfind(|fetch| !fetch.is_background).or(self.fetches.last())
    }

    /// True if the request carried credentials.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        self.request.value("Cookie").is_some() || self.request.value("Authorization").is_some()
    }
}
