//! Which rules decide what may be stored and for how long.

/// The choice behind the parameter `http_policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HttpPolicy {
    /// The habits of Varnish 7.1.
    #[default]
    Varnish,
}

impl HttpPolicy {
    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "varnish" => Some(HttpPolicy::Varnish),
            _ => None,
        }
    }

    /// The name, as the parameter shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HttpPolicy::Varnish => "varnish",
        }
    }
}
