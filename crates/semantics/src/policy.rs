//! Selection of the rules for storing and lifetimes.

/// The choice made by the parameter `http_policy`, or by an old dialect of VCL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HttpPolicy {
    /// The rules of Varnish 7.1.
    #[default]
    Varnish,
    /// RFC 9111 in full.
    Rfc,
    /// The rules of Varnish 3.0, which VCL of that time relies on; the parameter cannot select it.
    Varnish3,
    /// The rules of Varnish 1 and 2: the status decides if a response is cacheable, not for which
    /// time.
    Varnish2,
}

impl HttpPolicy {
    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "varnish" => Some(HttpPolicy::Varnish),
            "rfc" => Some(HttpPolicy::Rfc),
            _ => None,
        }
    }

    /// The name as the parameter shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HttpPolicy::Varnish => "varnish",
            HttpPolicy::Rfc => "rfc",
            HttpPolicy::Varnish3 => "varnish3",
            HttpPolicy::Varnish2 => "varnish2",
        }
    }
}
