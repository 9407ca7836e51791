//! The cases as data: the client's requests, the origin's answers, and the expected responses. The
//! language of the files is described in `caching.rs`.

/// The weight of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Kind {
    /// Required behaviour of a cache.
    Required,
    /// Behaviour of a good cache.
    Optimal,
    /// A question without a right answer.
    Check,
}

/// A case: requests one after the other for one resource.
#[derive(Clone, Debug)]
pub struct Case {
    pub id: String,
    pub kind: Kind,
    /// The case is meaningless unless these pass.
    pub needs: Vec<String>,
    pub steps: Vec<Step>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub value: String,
    /// True if a client that gets the origin's answer should see it.
    pub is_passed_on: bool,
}

/// The expected source of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum From {
    #[default]
    Anywhere,
    Cache,
    Origin,
    /// The origin answered 304 to `If-None-Match`.
    Etag,
    /// The origin answered 304 to `If-Modified-Since`.
    Date,
}

/// Further conditions of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    Has(String),
    HasNot(String),
    Is(String, String),
    IsNot(String, String),
    Above(String, i64),
    /// As in the first response.
    Same(String),
    /// The origin saw this field in the request.
    Seen(String, String),
    SeenMethod(String),
    Interim(Interim),
    NoInterim,
}

/// An interim response.
pub type Interim = (u16, Vec<Field>);

/// One request and its response.
#[derive(Clone, Debug)]
pub struct Step {
    pub method: String,
    /// The suffix of the resource's path.
    pub suffix: String,
    pub fields: Vec<Field>,
    pub body: Option<String>,
    pub answer: Answer,
    pub from: From,
    /// Expected status; `None` = any.
    pub status: Option<u16>,
    /// Expected body; the inner `None` = any.
    pub text: Option<Option<String>>,
    pub expectations: Vec<Expectation>,
    /// Seconds to wait afterwards.
    pub pause: u64,
}

/// The origin's answer, if it gets a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// 0 = 200.
    pub status: u16,
    pub fields: Vec<Field>,
    pub body: Option<String>,
    pub interim: Vec<Interim>,
    /// Closes the connection instead.
    pub breaks: bool,
    /// Delay in seconds.
    pub late: u64,
}

impl Answer {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.as_str())
    }
}

/// Reads the cases of a file.
pub fn parse(text: &str) -> Vec<Case> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    let (mut cases, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let Some(names) = lines[at].strip_prefix("each ") else {
            let end = at + 1 + lines[at + 1..].iter().take_while(|line| line.starts_with(' ')).count();
            cases.push(case(&lines[at..end].iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()));
            at = end;
            continue;
        };
        let names: Vec<&str> = names.split_whitespace().collect();
        let end = at + lines[at..].iter().position(|line| *line == "end").expect("an end of `each`");
        let (rows, template): (Vec<&str>, Vec<&str>) =
            lines[at + 1..end].iter().partition(|line| line.trim_start().starts_with("+ "));
        for row in rows {
            let values: Vec<&str> = row.trim_start()[2..].split(" | ").map(str::trim_end).collect();
            assert_eq!(values.len(), names.len(), "{row}");
            let filled = |line: &&str| {
                names.iter().zip(&values).fold((*line).to_owned(), |line, (name, value)| {
                    let value = if *value == "-" { "" } else { value };
                    line.replace(&format!("{{{name}}}"), value)
                })
            };
            let filled: Vec<String> = template.iter().map(filled).collect();
            let starts: Vec<usize> = (0..filled.len()).filter(|at| filled[*at].starts_with("case ")).collect();
            for (index, start) in starts.iter().enumerate() {
                cases.push(case(&filled[*start..starts.get(index + 1).copied().unwrap_or(filled.len())]));
            }
        }
        at = end + 1;
    }
    cases
}

fn case(lines: &[String]) -> Case {
    let mut words = lines[0].strip_prefix("case ").unwrap_or_else(|| panic!("{}", lines[0])).split_whitespace();
    let id = words.next().expect("an id").to_owned();
    let kind = match words.next() {
        Some("required") => Kind::Required,
        Some("optimal") => Kind::Optimal,
        Some("check") => Kind::Check,
        other => panic!("{id}: {other:?}"),
    };
    let mut case = Case { kind, needs: words.map(str::to_owned).collect(), steps: Vec::new(), id };
    let path = case.path();
    for line in &lines[1..] {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix("ask") {
            let (method, suffix) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
            case.steps.push(Step::new(if method.is_empty() { "GET" } else { method }, suffix));
        } else {
            let step = case.steps.last_mut().unwrap_or_else(|| panic!("{}: {line}", case.id));
            step.read(line, &path);
        }
    }
    case
}

impl Case {
    /// The path of its resource.
    pub fn path(&self) -> String {
        format!("/test/{}", self.id)
    }
}

impl Step {
    fn new(method: &str, suffix: &str) -> Step {
        Step {
            method: method.to_owned(),
            suffix: suffix.to_owned(),
            fields: Vec::new(),
            body: None,
            answer: Answer::default(),
            from: From::Anywhere,
            status: Some(0),
            text: None,
            expectations: Vec::new(),
            pause: 0,
        }
    }

    fn read(&mut self, line: &str, path: &str) {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (sign, rest) {
            ("wait", _) => self.pause = 3,
            (">>", text) => self.body = Some(text.to_owned()),
            (">", list) => self.fields.extend(fields(list, path)),
            ("<>", text) => self.answer.body = Some(text.to_owned()),
            ("<1", interim) => self.answer.interim.push(interim_of(interim, path)),
            ("<", "break") => self.answer.breaks = true,
            ("<", list) => match (list.parse(), list.strip_prefix("late ")) {
                (Ok(status), _) => self.answer.status = status,
                (_, Some(seconds)) => self.answer.late = seconds.parse().unwrap(),
                _ => self.answer.fields.extend(fields(list, path)),
            },
            ("=", expectation) => self.expectation(expectation, path),
            _ => panic!("{path}: {line}"),
        }
    }

    fn expectation(&mut self, expectation: &str, path: &str) {
        let pair = |text: &str| {
            let field = fields(text, path).pop().unwrap_or_else(|| panic!("{path}: {text}"));
            (field.name, field.value)
        };
        match expectation {
            "cache" => self.from = From::Cache,
            "origin" => self.from = From::Origin,
            "etag" => self.from = From::Etag,
            "date" => self.from = From::Date,
            "any" => self.status = None,
            "anything" => self.text = Some(None),
            "no interim" => self.expectations.push(Expectation::NoInterim),
            _ => {
                if let Ok(status) = expectation.parse() {
                    self.status = Some(status);
                } else if let Some(text) = expectation.strip_prefix('"') {
                    self.text = Some(Some(text.trim_end_matches('"').to_owned()));
                } else if let Some(name) = expectation.strip_prefix("has ") {
                    self.expectations.push(Expectation::Has(name.to_owned()));
                } else if let Some(name) = expectation.strip_prefix("no ") {
                    self.expectations.push(Expectation::HasNot(name.to_owned()));
                } else if let Some(name) = expectation.strip_prefix("same ") {
                    self.expectations.push(Expectation::Same(name.to_owned()));
                } else if let Some(method) = expectation.strip_prefix("method ") {
                    self.expectations.push(Expectation::SeenMethod(method.to_owned()));
                } else if let Some(interim) = expectation.strip_prefix("1 ") {
                    self.expectations.push(Expectation::Interim(interim_of(interim, path)));
                } else if let Some((name, value)) = expectation.strip_prefix("not ").map(pair) {
                    self.expectations.push(Expectation::IsNot(name, value));
                } else if let Some((name, value)) = expectation.strip_prefix("sees ").map(pair) {
                    self.expectations.push(Expectation::Seen(name, value));
                } else if let Some((name, least)) = expectation.split_once(" > ") {
                    self.expectations.push(Expectation::Above(name.to_owned(), least.parse().unwrap()));
                } else {
                    let (name, value) = pair(expectation);
                    self.expectations.push(Expectation::Is(name, value));
                }
            }
        }
    }
}

fn interim_of(text: &str, path: &str) -> Interim {
    let (status, list) = text.split_once(' ').unwrap_or((text, ""));
    (status.parse().unwrap(), fields(list, path))
}

/// Fields separated by `;`. A `?` before the name: the client need not see it. `&` at the start of
/// a value is the path of the resource; `%3B` and `%FC` are literal.
fn fields(list: &str, path: &str) -> Vec<Field> {
    let parts = list.split(';').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let part = part.trim_start();
            let (name, value) = part.split_once(':').unwrap_or_else(|| panic!("{path}: {part}"));
            let value = value.strip_prefix(' ').unwrap_or(value);
            let value = match value.strip_prefix('&') {
                Some(rest) if value.starts_with("&/") || rest.is_empty() => format!("{path}{rest}"),
                _ => value.to_owned(),
            };
            Field {
                name: name.trim_start_matches('?').to_owned(),
                value: value.replace("%3B", ";").replace("%FC", "ü"),
                is_passed_on: !name.starts_with('?'),
            }
        })
        .collect()
}
