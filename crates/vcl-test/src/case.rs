//! Files of test cases: TOML, with a message and a line for everything that is not understood.

use serde::Deserialize;
use std::collections::BTreeMap;
use surface::quantity::seconds;
use toml::Spanned;
use toml::Value;

/// One file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// Parameters of the daemon, by name.
    #[serde(default)]
    pub(crate) parameters: BTreeMap<String, Scalar>,
    /// The origin's response where a case has none.
    pub(crate) origin: Option<Origin>,
    /// The cases.
    #[serde(default)]
    pub(crate) case: Vec<Spanned<Case>>,
}

/// The value of a parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Scalar {
    Text(String),
    Integer(i64),
    Real(f64),
    Flag(bool),
}

impl Scalar {
    /// The value as `param.set` takes it.
    pub(crate) fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Integer(number) => number.to_string(),
            Scalar::Real(number) => number.to_string(),
            Scalar::Flag(flag) => if *flag { "on" } else { "off" }.to_owned(),
        }
    }
}

/// One case: a request with an empty cache, and perhaps further ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) request: Request,
    pub(crate) origin: Option<Origin>,
    /// Responses of single backends, by name.
    #[serde(default)]
    pub(crate) origins: BTreeMap<String, Origin>,
    /// Names of backends that are sick.
    #[serde(default)]
    pub(crate) sick: Vec<String>,
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, Value>,
    /// Later requests.
    #[serde(default)]
    pub(crate) then: Vec<Later>,
}

/// A later request; the origin and the sick backends stay as they were if not given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Later {
    /// Time since the request before, such as `5m`.
    pub(crate) after: Option<String>,
    #[serde(default)]
    pub(crate) request: Request,
    pub(crate) origin: Option<Origin>,
    pub(crate) origins: Option<BTreeMap<String, Origin>>,
    pub(crate) sick: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, Value>,
}

/// The request of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: String,
    /// Several values of one name are several lines.
    pub(crate) headers: BTreeMap<String, Values>,
    pub(crate) body: Option<String>,
    /// Address of the client.
    pub(crate) client: Option<String>,
}

impl Default for Request {
    fn default() -> Request {
        let (method, url) = ("GET".to_owned(), "/".to_owned());
        Request { method, url, headers: BTreeMap::new(), body: None, client: None }
    }
}

/// One value or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Values {
    One(String),
    Many(Vec<String>),
}

impl Values {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

/// The response of an origin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Origin {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: BTreeMap<String, Values>,
    pub(crate) body: String,
    /// Time before the response, such as `2s`.
    pub(crate) delay: Option<String>,
    pub(crate) fail: Option<Fault>,
}

impl Default for Origin {
    fn default() -> Origin {
        Origin {
            status: 200,
            reason: "OK".to_owned(),
            headers: BTreeMap::new(),
            body: String::new(),
            delay: None,
            fail: None,
        }
    }
}

/// The way in which an origin fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// The connection is refused.
    Refuse,
    /// The connection is not accepted in time.
    Timeout,
    /// The connection is closed without a response.
    Close,
}

/// One request of a case, with everything that holds for it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Seconds since the request before.
    pub(crate) after: f64,
    pub(crate) request: Request,
    pub(crate) origin: Origin,
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) sick: Vec<String>,
    pub(crate) expect: BTreeMap<String, Value>,
}

/// A case, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) file: String,
    /// Line of the case in its file.
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
}

/// Reads a file.
///
/// # Errors
/// A message with the line.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Ready>, String> {
    let suite: Suite = toml::from_str(text).map_err(|error| format!("{file}: {}", error.to_string().trim_end()))?;
    let parameters: Vec<(String, String)> =
        suite.parameters.iter().map(|(name, value)| (name.clone(), value.text())).collect();
    let fallback = suite.origin.unwrap_or_default();
    let mut ready = Vec::new();
    for spanned in suite.case {
        let line = text[..spanned.span().start.min(text.len())].matches('\n').count() + 1;
        let case = spanned.into_inner();
        let name = case.name.clone();
        let steps = steps(case, &fallback).map_err(|error| format!("{file}:{line}: {name}: {error}"))?;
        ready.push(Ready { file: file.to_owned(), line, name, parameters: parameters.clone(), steps });
    }
    Ok(ready)
}

fn steps(case: Case, fallback: &Origin) -> Result<Vec<Step>, String> {
    let mut steps = vec![Step {
        after: 0.0,
        request: case.request,
        origin: case.origin.unwrap_or_else(|| fallback.clone()),
        origins: case.origins,
        sick: case.sick,
        expect: case.expect,
    }];
    for later in case.then {
        let before = &steps[steps.len() - 1];
        let after = match &later.after {
            Some(text) => seconds(text).ok_or_else(|| format!("after = {text:?} is not a time such as \"5m\""))?,
            None => 0.0,
        };
        steps.push(Step {
            after,
            request: later.request,
            origin: later.origin.unwrap_or_else(|| before.origin.clone()),
            origins: later.origins.unwrap_or_else(|| before.origins.clone()),
            sick: later.sick.unwrap_or_else(|| before.sick.clone()),
            expect: later.expect,
        });
    }
    for step in &steps {
        check(step)?;
    }
    Ok(steps)
}

/// Checks everything of a step that its types do not, but for the expectations.
fn check(step: &Step) -> Result<(), String> {
    for origin in step.origins.values().chain([&step.origin]) {
        if let Some(delay) = origin.delay.as_ref().filter(|delay| seconds(delay).is_none()) {
            return Err(format!("delay = {delay:?} is not a time such as \"2s\""));
        }
        if !(100..=999).contains(&origin.status) {
            return Err(format!("{} is not a status", origin.status));
        }
    }
    match &step.request.client {
        Some(client) if client.parse::<std::net::IpAddr>().is_err() => Err(format!("{client:?} is not an address")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_request_keeps_the_origin_unless_it_has_one() {
        let text = "[origin]\nstatus = 404\n\n[[case]]\nname = \"a\"\n[[case.then]]\nafter = \"1m\"\norigin = { status = 500 }\n[[case.then]]\n";
        let cases = read("t.toml", text).unwrap();
        let all: Vec<(u16, f64)> = cases[0].steps.iter().map(|step| (step.origin.status, step.after)).collect();
        assert_eq!((all, cases[0].line), (vec![(404, 0.0), (500, 60.0), (500, 0.0)], 4));
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        for (text, message) in [
            ("[[case]]\nname = \"a\"\nurl = 1\n", "line 3"),
            (
                "[[case]]\nname = \"a\"\n[[case.then]]\nafter = \"soon\"\n",
                "t.toml:1: a: after = \"soon\" is not a time",
            ),
            ("[[case]]\nname = \"a\"\norigin = { status = 7 }\n", "7 is not a status"),
            ("[[case]]\nname = \"a\"\nrequest = { client = \"me\" }\n", "\"me\" is not an address"),
            ("x", "t.toml: "),
        ] {
            let error = read("t.toml", text).unwrap_err();
            assert!(error.contains(message) && error.starts_with("t.toml"), "{error}");
        }
    }
}
