//! The metrics that a request asks for: `?scope=` and `?metrics=`.

use surface::limits::OBSERVE_NAMES_MAX;
use surface::metric::Scope;

/// Wanted metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    /// Wanted scopes.
    pub scopes: Vec<Scope>,
    /// Names after `metrics=`, in their order; with `true` for those that are wanted.
    names: Vec<(bool, String)>,
}

impl Selection {
    /// Everything.
    #[cfg(test)]
    pub fn all() -> Selection {
        Selection::of(&Scope::ALL)
    }

    /// All metrics of some scopes.
    #[cfg(test)]
    pub fn of(scopes: &[Scope]) -> Selection {
        Selection { scopes: scopes.to_vec(), names: Vec::new() }
    }

    /// The selection of a query. `scope=cache,backend`, repeated or not; all scopes if none is
    /// named. `metrics=a,b*,-c`: only these names, without those that follow a minus; a star at the
    /// end stands for any rest. Other keys are ignored.
    ///
    /// # Errors
    /// The text of the answer: there is no such scope, or there are too many names.
    pub fn parse(query: &str) -> Result<Selection, String> {
        let mut scopes = Vec::new();
        for name in words(query, "scope=") {
            let Some(scope) = Scope::ALL.into_iter().find(|scope| scope.name() == name) else {
                let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.name()).collect();
                return Err(format!("unknown scope; there are {}\n", known.join(", ")));
            };
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        if scopes.is_empty() {
            scopes = Scope::ALL.to_vec();
        }
        let names = words(query, "metrics=").map(|word| match word.strip_prefix('-') {
            Some(name) => (false, name.to_owned()),
            None => (true, word.to_owned()),
        });
        let names: Vec<_> = names.take(OBSERVE_NAMES_MAX + 1).collect();
        if names.len() > OBSERVE_NAMES_MAX {
            return Err(format!("more than {OBSERVE_NAMES_MAX} names of metrics\n"));
        }
        Ok(Selection { scopes, names })
    }

    /// True if the metric with this name is wanted, given that its scope is.
    pub fn takes(&self, name: &str) -> bool {
        let is_named = |wanted: bool| {
            self.names.iter().filter(|(is_wanted, _)| *is_wanted == wanted).any(|(_, word)| {
                match word.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == word,
                }
            })
        };
        let is_open = self.names.iter().all(|(is_wanted, _)| !is_wanted);
        (is_open || is_named(true)) && !is_named(false)
    }
}

/// The words of the lists after a key.
fn words<'a>(query: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let values = query.split('&').filter_map(move |pair| pair.strip_prefix(key));
    values.flat_map(|value| value.split(',')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_named_once_and_others_are_refused() {
        for query in ["", "scope=&x=1", "metrics="] {
            assert_eq!(Selection::parse(query), Ok(Selection::all()), "{query}");
        }
        assert_eq!(Selection::parse("scope=vcl,cache&scope=cache"), Ok(Selection::of(&[Scope::Vcl, Scope::Cache])));
        let text = Selection::parse("scope=<b>").unwrap_err();
        assert!(text.contains("process, listener, cache") && !text.contains("<b>"), "{text}");
    }

    #[test]
    fn names_choose_and_exclude_metrics() {
        let takes = |query: &str| {
            let selection = Selection::parse(query).unwrap();
            ["copal_bans", "copal_bans_added_total", "copal_worker_up"].map(|name| selection.takes(name))
        };
        assert_eq!(takes("metrics=copal_bans"), [true, false, false]);
        assert_eq!(takes("metrics=copal_bans*,-copal_bans"), [false, true, false]);
        assert_eq!(takes("metrics=-copal_bans"), [false, true, true]);
        assert_eq!(takes("metrics=-copal_bans&metrics=copal_worker_up"), [false, false, true]);
        assert!(Selection::parse(&format!("metrics={}", "a,".repeat(OBSERVE_NAMES_MAX + 1))).is_err());
    }
}
