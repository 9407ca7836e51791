//! One table of requests, sent over three protocols by a script (`tests/clients/protocols.py`) that
//! sends them as given.

use super::*;
use std::io::Write as _;

/// A request in the form of HTTP/2; over HTTP/1 its equivalent is sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub trailers: Vec<(String, String)>,
}

impl Request {
    /// A GET of a path at the first name.
    pub fn get(path: &str) -> Request {
        Request::new("GET", path)
    }

    pub fn new(method: &str, path: &str) -> Request {
        let pseudo = [(":method", method), (":scheme", "https"), (":authority", NAMES[0]), (":path", path)];
        let headers = pseudo.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Request { headers, body: None, trailers: Vec::new() }
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// The received answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 0 = no head was received.
    pub status: u64,
    /// Statuses below 200, in their order.
    pub interim: Vec<u64>,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The error that ended the request or its connection, if any.
    pub error: Option<String>,
}

impl Answer {
    /// The first header of a name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// A Python that has the libraries, from the variable COPAL_AIOQUIC_PYTHON or the path.
fn interpreter() -> Option<PathBuf> {
    let named = std::env::var_os("COPAL_AIOQUIC_PYTHON").map(PathBuf::from);
    let found = named.into_iter().chain([PathBuf::from("python3")]).find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import aioquic, hpack, hyperframe"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    });
    if found.is_none() {
        println!("skipped: needs python3 with aioquic, hpack and hyperframe");
    }
    found
}

/// Sends each request on a connection of its own. `protocol` is h1, h2 or h3; `None` = the script
/// can't run here.
pub fn send(door: &Door, protocol: &str, requests: &[Request]) -> Option<Vec<Answer>> {
    let python = interpreter()?;
    let requests: Vec<serde_json::Value> = requests
        .iter()
        .map(|request| {
            serde_json::json!({"headers": request.headers, "body": request.body, "trailers": request.trailers})
        })
        .collect();
    let job = serde_json::json!({
        "host": NAMES[0], "port": door.port, "authority": door.authority.file(), "protocol": protocol, "requests": requests
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/protocols.py");
    let mut command = Command::new("timeout");
    command.args(["-k", "1", &TEST_HANG_SECONDS.to_string()]).arg(python).arg(script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(job.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{protocol}: {}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    Some(answers.iter().map(answer).collect())
}

fn answer(value: &serde_json::Value) -> Answer {
    let pair = |pair: &serde_json::Value| (text(&pair[0]), text(&pair[1]));
    let list = |name: &str| value[name].as_array().cloned().unwrap_or_default();
    Answer {
        status: value["status"].as_u64().unwrap(),
        interim: list("interim").iter().filter_map(serde_json::Value::as_u64).collect(),
        headers: list("headers").iter().map(pair).collect(),
        body: text(&value["body"]),
        error: value["error"].as_str().map(str::to_owned),
    }
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
