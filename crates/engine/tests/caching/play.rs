//! Plays a case: a client, an origin that answers according to the case, and the verdict.

use super::case::{Answer, Case, Expectation, Field, From, Interim, Kind, Step};
use crate::support::{OriginRequest, Response, World};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// The origin's knowledge of each case.
#[derive(Default)]
pub struct Book {
    cases: HashMap<String, Case>,
    /// The received requests, with their numbers.
    seen: RefCell<HashMap<String, Vec<(usize, OriginRequest)>>>,
}

/// Plays all cases at once. Returns the failures, by id; nothing for a case that passed.
pub async fn play_all(world: &Rc<World>, cases: &[Case]) -> HashMap<String, String> {
    let cases_of = cases.iter().map(|case| (case.id.clone(), case.clone())).collect();
    let book = Rc::new(Book { cases: cases_of, seen: RefCell::default() });
    let (origin, clock) = (Rc::clone(&book), Rc::clone(world));
    world.origin(move |mut stream| {
        let (book, world) = (Rc::clone(&origin), Rc::clone(&clock));
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if !book.answer(&world, &request, &mut stream).await {
                    return;
                }
            }
        }
    });
    let tasks: Vec<_> = cases
        .iter()
        .map(|case| {
            let (world, book, case) = (Rc::clone(world), Rc::clone(&book), case.clone());
            tokio::task::spawn_local(async move { (case.id.clone(), play(&world, &book, &case).await) })
        })
        .collect();
    let mut wrong = HashMap::new();
    for task in tasks {
        if let (id, Err(why)) = task.await.unwrap() {
            wrong.insert(id, why);
        }
    }
    wrong
}

impl Book {
    /// Answers a request. Returns false if the connection must not be used again.
    async fn answer(&self, world: &World, request: &OriginRequest, stream: &mut (impl AsyncWriteExt + Unpin)) -> bool {
        let id = request.target().trim_start_matches("/test/").split(['/', '?']).next().unwrap_or_default();
        let case = &self.cases[id];
        let number: usize = request.header("req-num").and_then(|number| number.parse().ok()).unwrap_or(0);
        let Some(step) = case.steps.get(number.wrapping_sub(1)) else { return false };
        let before = number.checked_sub(2).map(|before| &case.steps[before].answer);
        let answer = &step.answer;
        let (count, numbers) = {
            let mut seen = self.seen.borrow_mut();
            let seen = seen.entry(id.to_owned()).or_default();
            seen.push((number, request.clone()));
            let numbers: Vec<String> = seen.iter().map(|(number, _)| number.to_string()).collect();
            (seen.len(), numbers.join(" "))
        };
        tokio::time::sleep(Duration::from_secs(answer.late)).await;
        if answer.breaks {
            return false;
        }
        let now = world.context.clock.now();
        let mut head = String::new();
        for (status, fields) in &answer.interim {
            head += &format!("HTTP/1.1 {status} Interim\r\n{}\r\n", lines(fields, now));
        }
        let status = status_of(step, before, request, now);
        let body = answer.body.as_deref().unwrap_or(id);
        let has_body = !matches!(status, 204 | 304) && !request.head.starts_with("HEAD ");
        head += &format!(
            "HTTP/1.1 {status} Said\r\nServer-Request-Count: {count}\r\nClient-Request-Count: {number}\r\nRequest-Numbers: {numbers}\r\n{}",
            lines(&answer.fields, now)
        );
        for (name, value) in [("Content-Type", "text/plain".to_owned()), ("Date", date(now, 0.0))] {
            if answer.field(name).is_none() {
                head += &format!("{name}: {value}\r\n");
            }
        }
        let is_framed = answer.field("Content-Length").is_some() || answer.field("Transfer-Encoding").is_some();
        if !matches!(status, 204 | 304) && !is_framed {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        if has_body {
            head += body;
        }
        stream.write_all(head.as_bytes()).await.is_ok() && answer.field("Transfer-Encoding").is_none()
    }
}

/// The status of the origin's answer. If a case expects a validation, a request other than the
/// right one gets a 999.
fn status_of(step: &Step, before: Option<&Answer>, request: &OriginRequest, now: f64) -> u16 {
    if matches!(step.from, From::Etag | From::Date) {
        let asked = |name: &str, field: &str| {
            let stored = before.and_then(|before| before.field(field));
            match (stored, request.header(name)) {
                // The date was made three seconds ago.
                (Some(stored), Some(asked)) if stored.starts_with('@') => {
                    (0..20).any(|ago| value(stored, now - f64::from(ago)) == asked)
                }
                (Some(stored), Some(asked)) => stored == asked,
                _ => false,
            }
        };
        let is_valid = asked("if-none-match", "ETag") || asked("if-modified-since", "Last-Modified");
        return if is_valid { 304 } else { 999 };
    }
    if step.answer.status == 0 { 200 } else { step.answer.status }
}

fn lines(fields: &[Field], now: f64) -> String {
    fields.iter().map(|field| format!("{}: {}\r\n", field.name, value(&field.value, now))).collect()
}

/// A value; `@` and a number is a date that many seconds from now.
fn value(value: &str, now: f64) -> String {
    match value.strip_prefix('@').map(str::parse) {
        Some(Ok(seconds)) => date(now, seconds),
        _ => value.to_owned(),
    }
}

fn date(now: f64, seconds: f64) -> String {
    let mut date = [0; 29];
    semantics::date::format((now + seconds).floor(), &mut date);
    String::from_utf8_lossy(&date).into_owned()
}

/// As [`date`], in the form of RFC 850.
fn old_date(now: f64, seconds: f64) -> String {
    let date = date(now, seconds);
    let day = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
        .into_iter()
        .find(|day| day.starts_with(&date[..3]))
        .unwrap_or_default();
    format!("{day}, {}-{}-{} {}", &date[5..7], &date[8..11], &date[14..16], &date[17..])
}

async fn play(world: &World, book: &Book, case: &Case) -> Result<(), String> {
    let mut responses: Vec<(Vec<Interim>, Response)> = Vec::new();
    // The time of the response before this one, from which a client takes its dates.
    let mut before = world.context.clock.now();
    for (index, step) in case.steps.iter().enumerate() {
        let number = index + 1;
        let mut client = world.client();
        client.send(request(case, step, number, before)).await;
        before = world.context.clock.now();
        let mut interim = Vec::new();
        let response = loop {
            let response =
                if step.method == "HEAD" { client.response_to_head().await } else { client.response().await };
            if response.status() == 0 || response.status() >= 200 {
                break response;
            }
            interim.push((response.status(), fields_of(&response)));
        };
        let first = responses.first().map(|(_, response)| response.clone());
        judge(case, step, number, &interim, &response, first.as_ref()).map_err(|why| format!("{number}: {why}"))?;
        responses.push((interim, response));
        tokio::time::sleep(Duration::from_secs(step.pause)).await;
    }
    let seen = book.seen.borrow();
    let seen = seen.get(&case.id).map_or(&[][..], Vec::as_slice);
    for (index, step) in case.steps.iter().enumerate() {
        let request = seen.iter().find(|(number, _)| *number == index + 1).map(|(_, request)| request);
        judge_seen(step, request, &responses[index].1).map_err(|why| format!("{}: {why}", index + 1))?;
    }
    Ok(())
}

fn request(case: &Case, step: &Step, number: usize, before: f64) -> String {
    let mut head = format!(
        "{} {}{} HTTP/1.1\r\nHost: example.com\r\nReq-Num: {number}\r\nAccept: */*\r\n",
        step.method,
        case.path(),
        step.suffix
    );
    for (name, own) in [("Cache-Control", "never-heard-of-this"), ("Pragma", "foo")] {
        if !step.fields.iter().any(|field| field.name == name) {
            head += &format!("{name}: {own}\r\n");
        }
    }
    for field in &step.fields {
        let value = if let Some(seconds) = field.value.strip_prefix("@@") {
            date(before, seconds.parse().unwrap())
        } else if let Some(seconds) = field.value.strip_prefix("@850") {
            old_date(before, seconds.parse().unwrap())
        } else {
            field.value.clone()
        };
        head += &format!("{}: {value}\r\n", field.name);
    }
    if let Some(body) = &step.body {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    format!("{head}\r\n{}", step.body.as_deref().unwrap_or_default())
}

fn fields_of(response: &Response) -> Vec<Field> {
    let pairs = response.head.lines().skip(1).filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| Field { name: name.to_owned(), value: value.trim().to_owned(), is_passed_on: true })
        .collect()
}

/// The value of all fields of that name.
fn joined(response: &Response, name: &str) -> Option<String> {
    let values: Vec<String> = fields_of(response)
        .into_iter()
        .filter(|field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn judge(
    case: &Case,
    step: &Step,
    number: usize,
    interim: &[Interim],
    response: &Response,
    first: Option<&Response>,
) -> Result<(), String> {
    let count: Option<usize> = joined(response, "Server-Request-Count").and_then(|count| count.parse().ok());
    let is_from_cache = count.map_or(response.status() == 304, |count| count < number);
    match step.from {
        From::Cache if !is_from_cache => return Err(format!("not from the cache: {}", response.head)),
        From::Origin if count != Some(number) => return Err(format!("not from the origin: {}", response.head)),
        _ => {}
    }
    let wanted = match step.status {
        Some(0) if step.answer.status != 0 && step.from != From::Etag && step.from != From::Date => {
            Some(step.answer.status)
        }
        Some(0) => Some(200),
        other => other,
    };
    if wanted.is_some_and(|wanted| wanted != response.status()) {
        return Err(format!("status {} instead of {wanted:?}", response.status()));
    }
    let numbers = joined(response, "Request-Numbers").unwrap_or_default();
    let mut different: Vec<&str> = numbers.split(' ').collect();
    different.sort_unstable();
    different.dedup();
    if different.len() != numbers.split(' ').count() {
        return Err("the origin was asked twice".to_owned());
    }
    for expectation in &step.expectations {
        if !is_granted(expectation, interim, response, first) {
            return Err(format!("{expectation:?} is not so: {interim:?} {}", response.head));
        }
    }
    let own = step.answer.body.clone().unwrap_or_else(|| case.id.clone());
    let text = step.text.clone().unwrap_or(Some(own));
    let has_body = !matches!(response.status(), 204 | 304) && step.method != "HEAD";
    match text {
        Some(text) if has_body && response.text() != text => Err(format!("body {:?}", response.text())),
        _ => Ok(()),
    }
}

fn is_granted(expectation: &Expectation, interim: &[Interim], response: &Response, first: Option<&Response>) -> bool {
    match expectation {
        Expectation::Has(name) => joined(response, name).is_some(),
        Expectation::HasNot(name) => joined(response, name).is_none(),
        Expectation::Is(name, value) => joined(response, name).as_ref() == Some(value),
        Expectation::IsNot(name, value) => joined(response, name).as_ref() != Some(value),
        Expectation::Above(name, least) => {
            joined(response, name).and_then(|value| value.parse().ok()).is_some_and(|value: i64| value > *least)
        }
        Expectation::Same(name) => first.is_some_and(|first| joined(first, name) == joined(response, name)),
        Expectation::Interim((status, fields)) => interim.iter().any(|(found, seen)| {
            found == status
                && fields.iter().all(|field| {
                    seen.iter().any(|seen| seen.name.eq_ignore_ascii_case(&field.name) && seen.value == field.value)
                })
        }),
        Expectation::NoInterim => interim.is_empty(),
        Expectation::Seen(..) | Expectation::SeenMethod(_) => true,
    }
}

/// Checks of the request that the origin received, and of its answer as the client got it.
fn judge_seen(step: &Step, request: Option<&OriginRequest>, response: &Response) -> Result<(), String> {
    let wanted = match step.from {
        From::Etag => Some("if-none-match"),
        From::Date => Some("if-modified-since"),
        From::Anywhere | From::Cache | From::Origin => None,
    };
    if let Some(name) = wanted
        && request.is_none_or(|request| request.header(name).is_none())
    {
        return Err(format!("the origin saw no {name}"));
    }
    for expectation in &step.expectations {
        let is_so = match expectation {
            Expectation::Seen(name, value) => {
                request.and_then(|request| request.header(&name.to_ascii_lowercase())) == Some(value.as_str())
            }
            Expectation::SeenMethod(method) => {
                request.is_some_and(|request| request.head.starts_with(&format!("{method} ")))
            }
            _ => true,
        };
        if !is_so {
            return Err(format!("{expectation:?} is not so: {:?}", request.map(|request| &request.head)));
        }
    }
    if request.is_none() || step.from == From::Cache {
        return Ok(());
    }
    for field in step.answer.fields.iter().filter(|field| field.is_passed_on && field.name != "Date") {
        let values: Vec<&str> = step
            .answer
            .fields
            .iter()
            .filter(|other| other.name.eq_ignore_ascii_case(&field.name))
            .map(|other| other.value.as_str())
            .collect();
        let got = joined(response, &field.name);
        let is_date = field.value.starts_with('@');
        if got.is_none() || (!is_date && got.as_deref() != Some(values.join(", ").as_str())) {
            return Err(format!("{} is {got:?} instead of {values:?}", field.name));
        }
    }
    Ok(())
}

/// Number of cases of a kind, and of those that passed, including the cases they need.
pub fn score(cases: &[Case], wrong: &HashMap<String, String>, kind: Kind) -> (usize, usize) {
    let of_kind: Vec<&Case> = cases.iter().filter(|case| case.kind == kind).collect();
    let right = of_kind.iter().filter(|case| is_right(cases, wrong, case)).count();
    (right, of_kind.len())
}

/// True if a case and all cases that it needs passed.
pub fn is_right(cases: &[Case], wrong: &HashMap<String, String>, case: &Case) -> bool {
    let needed = |id: &String| cases.iter().find(|case| case.id == *id).unwrap_or_else(|| panic!("no case {id}"));
    !wrong.contains_key(&case.id) && case.needs.iter().all(|id| is_right(cases, wrong, needed(id)))
}
