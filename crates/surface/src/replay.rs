//! Words of `copal replay`: classes of differences between two VCLs.

use crate::closed_set::closed_set;

closed_set! {
    /// The classes of differences, the gravest first.
    DifferenceClass {
        /// A response that was fetched with the credentials of one client is served to another, or
        /// stored although it was not before.
        Leak "leak",
        /// A stored response with `Set-Cookie` is served.
        SetCookie "set-cookie",
        /// Another status.
        Status "status",
        /// Another handling (hit, miss, pass, …).
        Handling "handling",
        /// Another backend.
        Backend "backend",
        /// Another TTL of the response.
        Ttl "ttl",
        /// Another key.
        Key "key",
        /// Another request to the origin.
        Request "request",
        /// Other fields in the response.
        Response "response",
        /// A request to the origin for which the recording has no response.
        Unanswered "unanswered",
    }
}

impl DifferenceClass {
    /// The meaning, for reports.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            DifferenceClass::Leak => "response for one client shared",
            DifferenceClass::SetCookie => "Set-Cookie served from the cache",
            DifferenceClass::Status => "another status",
            DifferenceClass::Handling => "another handling",
            DifferenceClass::Backend => "another backend",
            DifferenceClass::Ttl => "another TTL",
            DifferenceClass::Key => "another key",
            DifferenceClass::Request => "another request to the origin",
            DifferenceClass::Response => "other fields in the response",
            DifferenceClass::Unanswered => "no recorded response of the origin",
        }
    }

    /// Words of VCL statements that decide.
    #[must_use]
    pub const fn statements(self) -> &'static [&'static str] {
        match self {
            DifferenceClass::Leak | DifferenceClass::Key => &["hash_data", "return (hash)", "return(hash)"],
            DifferenceClass::SetCookie => &["set-cookie", "return (deliver)", "return(deliver)"],
            DifferenceClass::Status => &["synth", "resp.status", "beresp.status", "error"],
            DifferenceClass::Handling => &["return"],
            DifferenceClass::Backend => &["backend_hint", "req.backend", "bereq.backend"],
            DifferenceClass::Ttl => &["beresp.ttl", "beresp.uncacheable"],
            DifferenceClass::Request | DifferenceClass::Unanswered => &["bereq.", "req.url", "req.http."],
            DifferenceClass::Response => &["resp.http."],
        }
    }
}
