//! Properties of methods.

/// True if sending a request with this method twice has the same effect as sending it once. An
/// unknown method has no such guarantee. Source: RFC 9110 §9.2.2; methods are case-sensitive.
#[must_use]
pub fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"QUERY" | b"PUT" | b"DELETE")
}

/// True if a method only reads. The effect of an unknown method is unknown, so it counts as one
/// that changes something. Source: RFC 9110 §9.2.1 and the registry of methods.
#[must_use]
pub fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"QUERY" | b"PROPFIND" | b"REPORT" | b"SEARCH")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_unknown_methods_promise_nothing() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PUT", "DELETE"] {
            assert!(is_idempotent(method.as_bytes()), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "LOCK", "get", "GETX", ""] {
            assert!(!is_idempotent(method.as_bytes()), "{method}");
        }
    }

    #[test]
    fn whatever_is_not_known_to_be_safe_changes_something() {
        for method in ["GET", "HEAD", "OPTIONS", "QUERY", "PROPFIND"] {
            assert!(is_safe(method.as_bytes()), "{method}");
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "PURGE", "get", ""] {
            assert!(!is_safe(method.as_bytes()), "{method}");
        }
    }
}
