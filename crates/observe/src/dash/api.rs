//! Requests to answers: the files of the page, and the API `/api/1/`.
//!
//! | | path | |
//! | --- | --- | --- |
//! | GET | `now`, `history`, `reasons`, `tops`, `requests`, `why/XID`, `events`, `stream`, `session` | the feed and the log |
//! | GET | `vcl`, `vcl/NAME/source`, `backends`, `bans`, `params`, `certificates` | the manager |
//! | POST | `login`, `logout`, `invalidate`, `backend/NAME`, `vcl/use` | operations |

use super::assets;
use super::guard::{self, CSRF, FIELDS};
use super::session::{Role, Session};
use super::state::Dash;
use super::tops::By;
use super::users::CLI_USER;
use crate::negotiation::accepts_gzip;
use message::Message;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use surface::legible;
use surface::limits::DASH_SESSION_SECONDS_MAX;
use surface::operation::{Health, Operation, Order};

/// Age of an answer of the manager that is still given.
const FRESH: Duration = Duration::from_secs(2);
/// Most answers of the manager that are kept.
const ANSWERS_MAX: usize = 64;
/// Entries of a ranking that are sent.
const TOPS_SENT: usize = 50;
/// Status of the CLI for success.
const DONE: u16 = 200;
/// Length of the id of a session.
const SESSION_ID_BYTES: usize = 64;

/// A request with its circumstances.
pub(super) struct Asked<'a> {
    pub request: &'a Message,
    pub body: &'a [u8],
    pub client: IpAddr,
    pub local: Option<IpAddr>,
}

/// An answer.
pub(super) enum Answer {
    /// A whole response.
    Whole {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
        /// Further fields, each with its line end.
        fields: String,
    },
    /// The event stream of the session with this id.
    Stream(String),
}

impl Answer {
    fn json(status: u16, body: &Value) -> Answer {
        Answer::text(status, body.to_string())
    }

    /// JSON that is written already.
    fn text(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        let fields = "Cache-Control: no-store\r\n".to_owned();
        Answer::Whole { status, content_type: "application/json", body: body.into(), fields }
    }

    /// An error.
    pub fn error(status: u16, why: &str) -> Answer {
        Answer::json(status, &json!({ "error": why }))
    }

    fn with(self, field: &str) -> Answer {
        match self {
            Answer::Whole { status, content_type, body, fields } => {
                Answer::Whole { status, content_type, body, fields: format!("{fields}{field}\r\n") }
            }
            stream => stream,
        }
    }

    /// Head and body.
    pub fn bytes(&self, is_head: bool) -> Vec<u8> {
        let Answer::Whole { status, content_type, body, fields } = self else { return Vec::new() };
        let reason = surface::status::phrase(*status);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{fields}{FIELDS}\
             Connection: close\r\n\r\n"
        );
        let body = if is_head { &[][..] } else { body };
        [head.as_bytes(), body].concat()
    }

    /// The head of an event stream.
    pub fn stream_head() -> String {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n\
             {FIELDS}Connection: close\r\n\r\n"
        )
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer to a request.
pub(super) fn answer(dash: &Dash, asked: &Asked<'_>) -> Answer {
    let request = asked.request;
    if !guard::is_for_us(request, asked.local, &dash.settings.hosts) {
        return Answer::error(421, "this server does not have that name; -o dash_hosts adds names");
    }
    let target = String::from_utf8_lossy(request.target()).into_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let is_get = matches!(request.method(), b"GET" | b"HEAD");
    let Some(name) = path.strip_prefix("/api/1/") else {
        return if is_get { file(request, path) } else { Answer::error(405, "only GET") };
    };
    if is_get {
        if let Err(why) = guard::fetched_by_us(request, b"none") {
            return Answer::error(403, why);
        }
        return match session(dash, request, asked.client) {
            Some((id, session)) => read(dash, asked, &session, id, name, query),
            None => Answer::error(401, "log in"),
        };
    }
    if request.method() != b"POST" {
        return Answer::error(405, "only GET and POST");
    }
    if let Err(why) = guard::same_origin(request) {
        return Answer::error(403, why);
    }
    let Ok(body) = serde_json::from_slice::<Value>(asked.body) else {
        return Answer::error(400, "the body is not JSON");
    };
    if name == "login" {
        return login(dash, asked, &body);
    }
    let Some((id, session)) = session(dash, request, asked.client) else { return Answer::error(401, "log in") };
    if request.get(CSRF) != Some(session.csrf.as_bytes()) {
        return Answer::error(403, "the token of the session is missing");
    }
    if name == "logout" {
        lock(&dash.sessions).end(&id);
        let operation = Operation::Forget(id);
        lock(&dash.operator).execute(&Order { user: session.user, from: asked.client.to_string(), operation });
        return Answer::json(200, &json!({})).with(&cookie(request, "", 0));
    }
    if name == "invalidate/preview" {
        return match order("invalidate", &body) {
            Err(refusal) => refusal,
            Ok(operation) => preview(dash, asked, &session, &operation, &body),
        };
    }
    match order(name, &body) {
        Err(refusal) => refusal,
        Ok(_) if session.role < Role::Operate => {
            Answer::error(403, "you may only look; operations need the role, and a login within 30 minutes")
        }
        Ok(operation) => {
            lock(&dash.sessions).operate(&id, Instant::now());
            operate(dash, asked, &session, operation)
        }
    }
}

/// A file of the page.
fn file(request: &Message, path: &str) -> Answer {
    let name = if path == "/" { "index.html" } else { path.strip_prefix('/').unwrap_or_default() };
    let Some(asset) = assets::asset(name) else { return Answer::error(404, "there is no such page") };
    let mut fields = format!("ETag: {}\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n", asset.etag);
    if request.get("If-None-Match").is_some_and(|tag| tag == asset.etag.as_bytes()) {
        return Answer::Whole { status: 304, content_type: asset.content_type, body: Vec::new(), fields };
    }
    let accepted: Vec<_> = request.get_all("Accept-Encoding").map(String::from_utf8_lossy).collect();
    let body = match accepts_gzip(&accepted.join(",")) {
        true => {
            fields += "Content-Encoding: gzip\r\n";
            asset.gzip.clone()
        }
        false => asset.text.clone().into_bytes(),
    };
    Answer::Whole { status: 200, content_type: asset.content_type, body, fields }
}

/// The name of the cookie: cookies are not separated by port, dashboards are.
fn cookie_name(request: &Message) -> String {
    let host = request.get("Host").unwrap_or_default();
    let port = host.rsplit(|byte| *byte == b':').next().filter(|port| port.iter().all(u8::is_ascii_digit));
    format!("copal_dash_{}", String::from_utf8_lossy(port.unwrap_or_default()))
}

fn cookie(request: &Message, value: &str, seconds: u64) -> String {
    // The page of a proxy with TLS is at another origin, where this name demands Secure.
    let is_secure = request.get("Origin").is_some_and(|origin| origin.starts_with(b"https://"));
    let secure = if is_secure { "; Secure" } else { "" };
    format!(
        "Set-Cookie: {}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        cookie_name(request)
    )
}

/// The session of a request, and its id.
fn session(dash: &Dash, request: &Message, client: IpAddr) -> Option<(String, Session)> {
    let name = cookie_name(request);
    let cookies = request.get_all("Cookie").flat_map(|value| value.split(|byte| *byte == b';'));
    let mut ids = cookies.filter_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?.trim();
        pair.split_once('=').filter(|(found, _)| *found == name).map(|(_, id)| id.to_owned())
    });
    let id = ids.next()?;
    let known = lock(&dash.sessions).find(&id, Instant::now());
    let mut session = known.or_else(|| recalled(dash, client, &id))?;
    if dash.settings.is_view_only {
        session.role = Role::View;
    }
    Some((id, session))
}

/// A session that an earlier process began, and the manager has kept. Unknown ids must not keep the
/// manager busy, so questions are limited like logins.
fn recalled(dash: &Dash, client: IpAddr, id: &str) -> Option<Session> {
    let operation = Operation::Recall(id.to_owned());
    if id.len() != SESSION_ID_BYTES || operation.check().is_err() {
        return None;
    }
    // Several requests of a page come at once: one of them asks.
    let mut recalls = lock(&dash.recalls);
    let now = Instant::now();
    if let Some(session) = lock(&dash.sessions).find(id, now) {
        return Some(session);
    }
    if !recalls.take(client, now) {
        return None;
    }
    let order = Order { user: String::new(), from: client.to_string(), operation };
    let (status, text) = lock(&dash.operator).execute(&order);
    let mut words = text.splitn(4, ' ');
    let (role, csrf, age, user) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let role = [Role::View, Role::Operate].into_iter().find(|one| one.word() == role).filter(|_| status == DONE)?;
    // The file of users may have changed since the login.
    let role = if user == CLI_USER { role } else { dash.settings.users.role(user)?.min(role) };
    let session = Session { user: user.to_owned(), role, csrf: csrf.to_owned() };
    let mut sessions = lock(&dash.sessions);
    sessions.resume(id, session, age.parse().ok()?, now);
    sessions.find(id, now)
}

fn shown(session: &Session) -> Value {
    json!({"user": session.user, "role": session.role.word(), "csrf": session.csrf,
           "version": surface::version::COPAL_VERSION})
}

/// Begins a session: with a token of the CLI, or with a name and a password.
fn login(dash: &Dash, asked: &Asked<'_>, body: &Value) -> Answer {
    if !lock(&dash.logins).take(asked.client, Instant::now()) {
        return Answer::error(429, "too many logins; wait a minute").with("Retry-After: 60");
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let found = match (text("token"), text("user"), text("password")) {
        (Some(token), ..) => {
            let order = Order {
                user: String::new(),
                from: asked.client.to_string(),
                operation: Operation::Login(token.to_owned()),
            };
            let is_right = order.operation.check().is_ok() && lock(&dash.operator).execute(&order).0 == DONE;
            is_right.then(|| (CLI_USER.to_owned(), Role::Operate))
        }
        (None, Some(user), Some(password)) if !dash.settings.users.is_empty() => {
            let _one = lock(&dash.hashing);
            dash.settings.users.check(user, password).map(|role| (user.to_owned(), role))
        }
        _ => None,
    };
    let Some((user, role)) = found else {
        return Answer::error(403, "the login is wrong, or its time is over");
    };
    let id = lock(&dash.sessions).begin(&user, role, Instant::now());
    let begun = lock(&dash.sessions).find(&id, Instant::now());
    match begun {
        Some(mut session) => {
            let kept = Operation::Keep { id: id.clone(), role: role.word().to_owned(), csrf: session.csrf.clone() };
            lock(&dash.operator).execute(&Order { user, from: asked.client.to_string(), operation: kept });
            session.role = if dash.settings.is_view_only { Role::View } else { session.role };
            Answer::json(200, &shown(&session)).with(&cookie(asked.request, &id, DASH_SESSION_SECONDS_MAX))
        }
        None => Answer::error(503, "too many sessions"),
    }
}

/// A value of the query.
fn argument(query: &str, name: &str) -> Option<String> {
    let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    pair.map(decoded)
}

/// Decodes `%2F` and `+`.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(code.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn read(dash: &Dash, asked: &Asked<'_>, session: &Session, id: String, name: &str, query: &str) -> Answer {
    let ask = |operation: Operation| ask(dash, asked, session, operation);
    let number = |name: &str| argument(query, name).and_then(|text| text.parse::<u64>().ok());
    match name {
        "session" => Answer::json(200, &shown(session)),
        "now" => Answer::text(200, dash.feed.now().1.as_bytes()),
        "stream" => Answer::Stream(id),
        "history" => Answer::json(200, &dash.feed.history(number("from").unwrap_or(0), number("step") == Some(60))),
        "reasons" => Answer::json(200, &dash.feed.reasons()),
        "events" => Answer::json(200, &dash.feed.events()),
        "tops" => {
            let by = argument(query, "by").unwrap_or_else(|| By::Requests.word().to_owned());
            match By::ALL.into_iter().find(|one| one.word() == by) {
                Some(by) => tops(dash, by, &argument(query, "filter").unwrap_or_default()),
                None => Answer::error(404, "there is no such ranking"),
            }
        }
        "requests" => {
            let filter = argument(query, "filter").unwrap_or_default();
            Answer::json(200, &lock(&dash.requests).rows(&filter, argument(query, "all").is_some()))
        }
        "vcl" => ask(Operation::Vcls),
        "backends" => ask(Operation::Backends),
        "bans" => ask(Operation::Bans),
        "params" => ask(Operation::Parameters),
        "certificates" => ask(Operation::Certificates),
        _ => {
            if let Some(vxid) = name.strip_prefix("why/") {
                let found = vxid.parse().ok().and_then(|vxid| lock(&dash.requests).why(vxid));
                return found.map_or_else(|| Answer::error(404, "it is no longer kept"), |why| Answer::json(200, &why));
            }
            let vcl = name.strip_prefix("vcl/").and_then(|rest| rest.strip_suffix("/source"));
            match vcl.map(|vcl| Operation::Source(decoded(vcl))) {
                Some(operation) if operation.check().is_ok() => ask(operation),
                _ => Answer::error(404, "there is no such answer"),
            }
        }
    }
}

fn tops(dash: &Dash, by: By, filter: &str) -> Answer {
    let requests = lock(&dash.requests);
    let (greatest, total) = requests.tops.sketch(by).greatest(TOPS_SENT, filter);
    let rows: Vec<Value> =
        greatest.iter().map(|top| json!({"text": &*top.text, "count": top.count, "error": top.error})).collect();
    Answer::json(200, &json!({"by": by.word(), "rows": rows, "total": total, "one_of": requests.ranked_one_of()}))
}

/// A question to the manager. An answer that is not old is given again.
fn ask(dash: &Dash, asked: &Asked<'_>, session: &Session, operation: Operation) -> Answer {
    let key = operation.command().join(" ");
    // Without TLS there is no list.
    let may_be_missing = operation == Operation::Certificates;
    let fresh = {
        let answers = lock(&dash.answers);
        answers.get(&key).filter(|(at, ..)| at.elapsed() < FRESH).map(|(_, status, text)| (*status, text.clone()))
    };
    let (status, text) = match fresh {
        Some(fresh) => fresh,
        None => {
            let order = Order { user: session.user.clone(), from: asked.client.to_string(), operation };
            let (status, text) = lock(&dash.operator).execute(&order);
            let mut answers = lock(&dash.answers);
            answers.retain(|_, (at, ..)| at.elapsed() < FRESH);
            if answers.len() < ANSWERS_MAX {
                answers.insert(key, (Instant::now(), status, text.clone()));
            }
            (status, text)
        }
    };
    if status != DONE && may_be_missing {
        return Answer::json(200, &json!([]));
    }
    if status != DONE {
        return Answer::error(502, &legible::lines(text.as_bytes()));
    }
    // JSON of the CLI begins with its version, the command and the time.
    let value = serde_json::from_str::<Value>(&text).ok();
    let elements = value.and_then(|value| match value {
        Value::Array(elements) => Some(elements.into_iter().skip(3).collect::<Vec<_>>()),
        _ => None,
    });
    match elements {
        Some(elements) => Answer::json(200, &Value::Array(elements)),
        None => Answer::json(200, &json!({"text": legible::lines(text.as_bytes())})),
    }
}

/// The operation that a request asks for.
fn order(name: &str, body: &Value) -> Result<Operation, Answer> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let wrong = |why: &str| Answer::error(400, why);
    let operation = match name {
        "invalidate" => invalidation(body).map_err(|why| wrong(&why))?,
        "vcl/use" => Operation::Use(text("name")),
        _ => match name.strip_prefix("backend/") {
            Some(backend) => {
                let health = Health::ALL.into_iter().find(|health| health.word() == text("health"));
                Operation::Health(decoded(backend), health.ok_or_else(|| wrong("health is auto, healthy or sick"))?)
            }
            None => return Err(Answer::error(404, "there is no such operation")),
        },
    };
    operation.check().map_err(wrong)?;
    Ok(operation)
}

/// The operation of `{"kind": "url"|"prefix"|"tag"|"ban", "value": …, "host": …, "hard": …}`.
fn invalidation(body: &Value) -> Result<Operation, String> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let (value, host) = (text("value"), text("host"));
    if value.is_empty() {
        return Err("there is nothing to invalidate".to_owned());
    }
    let mut words: Vec<String> = Vec::new();
    match text("kind") {
        "tag" => {
            let is_hard = body.get("hard").and_then(Value::as_bool).unwrap_or(false);
            let tags = value.split_whitespace().map(str::to_owned).collect();
            return Ok(Operation::Tags { is_hard, tags });
        }
        "url" => words.extend(["req.url", "==", value].map(str::to_owned)),
        "prefix" => words.extend(["req.url".to_owned(), "~".to_owned(), format!("^{}", quoted(value))]),
        "ban" => words = cli_proto::command_line::split(value.as_bytes()).map_err(|error| error.text().to_owned())?,
        _ => return Err("kind is url, prefix, tag or ban".to_owned()),
    }
    if !host.is_empty() {
        words.extend(["&&", "req.http.host", "==", host].map(str::to_owned));
    }
    Ok(Operation::Ban(words))
}

/// Addresses of a preview that are sent.
const EXAMPLES: usize = 20;

/// The effect of an invalidation, without it: the command, the number of objects if it can be
/// known, and addresses that it hits among the busiest of the log.
fn preview(dash: &Dash, asked: &Asked<'_>, session: &Session, operation: &Operation, body: &Value) -> Answer {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let command = legible::line(operation.command().join(" ").as_bytes()).into_owned();
    let (value, host, kind) = (text("value"), text("host"), text("kind"));
    let mut objects = Value::Null;
    let note = match operation {
        Operation::Tags { tags, .. } => {
            let operation = Operation::Count(tags.clone());
            let order = Order { user: session.user.clone(), from: asked.client.to_string(), operation };
            let (status, text) = lock(&dash.operator).execute(&order);
            if status != DONE {
                return Answer::error(502, &legible::lines(text.as_bytes()));
            }
            let reply = serde_json::from_str::<Value>(&text).unwrap_or_default();
            objects = reply.pointer("/3/objects").cloned().unwrap_or_default();
            "Objects are found by an index of their tags; they are gone when the receipt is here."
        }
        _ if operation.command().iter().any(|word| word.starts_with("req.")) => {
            "A test of the request: each object is tested at its next lookup. The ban lurker cannot do it in advance."
        }
        _ => "Only tests of objects: the ban lurker removes them in the background, and each lookup tests at once.",
    };
    let (busiest, _) = lock(&dash.requests).tops.sketch(By::Requests).greatest(usize::MAX, "");
    let is_hit = |address: &str| {
        let (of_host, url) = address.split_at(address.find('/').unwrap_or(address.len()));
        (host.is_empty() || of_host == host)
            && match kind.as_str() {
                "url" => url == value,
                "prefix" => url.starts_with(&value),
                _ => false,
            }
    };
    let hit: Vec<Value> = busiest
        .iter()
        .filter(|top| is_hit(&top.text))
        .map(|top| json!({"text": &*top.text, "count": top.count}))
        .take(EXAMPLES + 1)
        .collect();
    let has_more = hit.len() > EXAMPLES;
    let rows: Vec<Value> = hit.into_iter().take(EXAMPLES).collect();
    Answer::json(200, &json!({"command": command, "note": note, "objects": objects, "rows": rows, "more": has_more}))
}

/// The text as a regular expression that matches it alone.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        if !letter.is_alphanumeric() && !matches!(letter, '/' | '_' | '-') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn operate(dash: &Dash, asked: &Asked<'_>, session: &Session, operation: Operation) -> Answer {
    let shown = legible::line(operation.command().join(" ").as_bytes()).into_owned();
    let order = Order { user: session.user.clone(), from: asked.client.to_string(), operation };
    let begun = Instant::now();
    let (status, text) = lock(&dash.operator).execute(&order);
    lock(&dash.answers).clear();
    let text = legible::lines(text.as_bytes()).into_owned();
    if status != DONE {
        return Answer::error(422, text.trim());
    }
    dash.feed.note("operation", &format!("{}: {shown}", legible::line(session.user.as_bytes())));
    let result = serde_json::from_str::<Value>(&text).ok().and_then(|value| value.get(3).cloned());
    let milliseconds = begun.elapsed().as_millis() as u64;
    Answer::json(200, &json!({"command": shown, "text": text.trim(), "result": result, "milliseconds": milliseconds}))
}
