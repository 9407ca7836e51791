//! Requests to answers: the paths and their queries.

use crate::selection::Selection;

/// The wanted answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// `/metrics`, with this selection.
    Metrics(Selection),
    /// `/healthz`: this process runs.
    Health,
    /// `/readyz`: a worker serves.
    Ready,
    /// A query that cannot be answered, with the reason.
    Refused(String),
    /// Anything else.
    Missing,
}

/// The answer that a method and a target ask for.
pub(crate) fn route(method: &[u8], target: &[u8]) -> Route {
    if !matches!(method, b"GET" | b"HEAD") {
        return Route::Missing;
    }
    let target = String::from_utf8_lossy(target);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    match path {
        "/metrics" => Selection::parse(query).map_or_else(Route::Refused, Route::Metrics),
        "/healthz" => Route::Health,
        "/readyz" => Route::Ready,
        _ => Route::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::metric::Scope;

    #[test]
    fn paths_choose_the_answer() {
        let all = Route::Metrics(Selection::all());
        for (method, target, expected) in [
            ("GET", "/metrics", all.clone()),
            ("HEAD", "/metrics?", all.clone()),
            ("GET", "/metrics?scope=&x=1", all),
            ("GET", "/metrics?scope=cache", Route::Metrics(Selection::of(&[Scope::Cache]))),
            ("GET", "/healthz", Route::Health),
            ("HEAD", "/readyz?verbose", Route::Ready),
            ("POST", "/metrics", Route::Missing),
            ("GET", "/", Route::Missing),
            ("GET", "/metrics/", Route::Missing),
            ("GET", "http://x/metrics", Route::Missing),
            ("GET", "\u{fffd}", Route::Missing),
        ] {
            assert_eq!(route(method.as_bytes(), target.as_bytes()), expected, "{target}");
        }
        assert!(matches!(route(b"GET", b"/metrics?scope=<b>"), Route::Refused(_)));
    }
}
