//! `fleet.*`: each asks the agent; texts of other nodes are escaped.

use super::{Call, ask_worker};
use crate::fleet::order;
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use cli_proto::table;
use control::messages::Request;
use fleet::exchange::{Answer, Receipt};
use fleet::link::{Command, Reply, State};
use fleet::message::Standing;
use fleet::{Invalidation, NodeId, Serving};
use std::time::Duration;
use surface::legible::line;
use surface::limits::FLEET_WAIT_SECONDS_MAX;

/// Time that `--wait` waits.
const WAIT: Duration = Duration::from_secs(5);
const NO_FLEET: &str = "No fleet: the server was started without -o fleet";

/// The arguments of a command.
#[derive(Debug, Default, PartialEq)]
struct Words {
    wait: Option<Duration>,
    is_soft: bool,
    is_prefix: bool,
    is_tags: bool,
    rest: Vec<String>,
}

impl Words {
    /// Reads options up to the first other word.
    ///
    /// # Errors
    /// An option that is not known, or a time that is none.
    fn read(words: &[String], is_purge: bool) -> Result<Words, String> {
        let mut read = Words::default();
        let mut words = words.iter();
        for word in words.by_ref() {
            match (word.as_str(), word.strip_prefix("--wait=")) {
                ("--wait", _) => read.wait = Some(WAIT),
                (_, Some(time)) => read.wait = Some(time_of(time)?),
                ("--soft", _) if is_purge => read.is_soft = true,
                ("--prefix", _) if is_purge => read.is_prefix = true,
                ("--tag", _) if is_purge => read.is_tags = true,
                (other, _) if other.starts_with("--") => return Err(format!("Unknown option {other}")),
                (other, _) => {
                    read.rest.push(other.to_owned());
                    break;
                }
            }
        }
        for word in words {
            match word.as_str() {
                "--tag" if read.is_tags => {}
                other if is_purge && other.starts_with("--") => {
                    return Err(format!("{other} comes before the URL or the tags"));
                }
                other => read.rest.push(other.to_owned()),
            }
        }
        if read.is_prefix && read.is_tags {
            return Err("--prefix and --tag exclude each other".to_owned());
        }
        Ok(read)
    }
}

/// `5`, `5s`, `500ms` or `2m`.
fn time_of(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("", 1.0)];
    let (unit, scale) = units.into_iter().find(|(unit, _)| text.ends_with(unit)).unwrap_or(("", 1.0));
    let digits = &text[..text.len() - unit.len()];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match digits.parse::<f64>().map(|number| number * scale) {
        Ok(seconds) if is_number && seconds <= FLEET_WAIT_SECONDS_MAX => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) | Err(_) => Err(format!("--wait={text}: not a time like 5s, of at most an hour")),
    }
}

impl Call<'_> {
    pub(super) async fn fleet_ban(self) -> Response {
        let words = match Words::read(self.arguments, false) {
            Ok(words) => words,
            Err(why) => return Response::new(status::PARAMETER, why),
        };
        if words.rest.iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) && words.rest.len() > 1 {
            return Response::new(
                status::PARAMETER,
                "An argument with a blank in it cannot be sent: use a pattern with .",
            );
        }
        self.invalidate(Invalidation::Ban { expression: words.rest.join(" ") }, words.wait).await
    }

    pub(super) async fn fleet_purge(self) -> Response {
        let words = match Words::read(self.arguments, true) {
            Ok(words) => words,
            Err(why) => return Response::new(status::PARAMETER, why),
        };
        let (is_soft, wait) = (words.is_soft, words.wait);
        if words.is_tags {
            return self.invalidate(Invalidation::Tags { tags: words.rest, is_soft }, wait).await;
        }
        if is_soft {
            return Response::new(status::PARAMETER, "--soft is for --tag: a URL is removed by a ban");
        }
        let [url] = &words.rest[..] else {
            return Response::new(status::PARAMETER, "One URL is needed, as /path or example.org/path");
        };
        let invalidation = match words.is_prefix {
            true => Invalidation::Prefix { prefix: url.clone(), is_soft },
            false => Invalidation::Url { url: url.clone(), is_soft },
        };
        self.invalidate(invalidation, wait).await
    }

    /// Checks an invalidation here, so that no other node gets one that cannot be carried out.
    async fn invalidate(self, invalidation: Invalidation, wait: Option<Duration>) -> Response {
        if self.manager.fleet.is_none() {
            return Response::new(status::CANNOT, NO_FLEET);
        }
        let counts_objects = matches!(invalidation, Invalidation::Tags { .. });
        let order = match order::of(&invalidation) {
            Ok(order) => order,
            Err(why) => return Response::new(status::PARAMETER, why),
        };
        match ask_worker(self.manager, Request::FleetCheck(order)).await {
            None => return Response::new(status::CANNOT, "Child not running: it is needed to carry this out"),
            Some(refusal) if !refusal.is_ok() => return refusal,
            Some(_) => {}
        }
        self.command(Command::Invalidate(invalidation), wait, counts_objects).await
    }

    pub(super) async fn fleet_forget(self) -> Response {
        let words = match Words::read(self.arguments, false) {
            Ok(words) => words,
            Err(why) => return Response::new(status::PARAMETER, why),
        };
        let [name] = &words.rest[..] else { return Response::new(status::PARAMETER, "One node is needed") };
        match NodeId::new(name) {
            Ok(node) => self.command(Command::Forget(node), words.wait, false).await,
            Err(why) => Response::new(status::PARAMETER, why.to_string()),
        }
    }

    pub(super) async fn fleet_leave(self) -> Response {
        match Words::read(self.arguments, false) {
            Ok(words) if words.rest.is_empty() => self.command(Command::Leave, words.wait, false).await,
            Ok(_) => Response::new(status::PARAMETER, "fleet.leave takes no node: it is for this one"),
            Err(why) => Response::new(status::PARAMETER, why),
        }
    }

    pub(super) async fn fleet_drain(self) -> Response {
        match self.arguments.first().map(String::as_str) {
            None => self.command(Command::Drain(true), None, false).await,
            Some("off") => self.command(Command::Drain(false), None, false).await,
            Some(_) => Response::new(status::PARAMETER, "fleet.drain takes nothing, or off"),
        }
    }

    async fn command(self, command: Command, wait: Option<Duration>, counts_objects: bool) -> Response {
        let Some(fleet) = &self.manager.fleet else { return Response::new(status::CANNOT, NO_FLEET) };
        match fleet.ask(command, wait).await {
            Ok(Reply::Invalidation(answer)) => answered(&answer, counts_objects),
            Ok(Reply::Done) => Response::ok(""),
            Ok(Reply::Status(_)) => Response::new(status::CANNOT, "the fleet's agent gave another answer"),
            Err(why) => Response::new(status::CANNOT, why),
        }
    }

    /// The state of the agent.
    async fn state(&self) -> Result<Box<State>, Response> {
        let Some(fleet) = &self.manager.fleet else { return Err(Response::new(status::CANNOT, NO_FLEET)) };
        match fleet.ask(Command::Status, None).await {
            Ok(Reply::Status(state)) => Ok(state),
            Ok(_) => Err(Response::new(status::CANNOT, "the fleet's agent gave another answer")),
            Err(why) => Err(Response::new(status::CANNOT, format!("{why}\nThis node: {}", fleet.shown()))),
        }
    }

    pub(super) async fn fleet_status(self) -> Response {
        let state = match self.state().await {
            Ok(state) => state,
            Err(refusal) => return refusal,
        };
        if self.json {
            let mut reply = self.json_reply(2);
            reply.push("\n  ", &status_json(&state));
            return Response::ok(reply.finish());
        }
        Response::ok(status_text(&state))
    }

    pub(super) async fn fleet_list(self) -> Response {
        let state = match self.state().await {
            Ok(state) => state,
            Err(refusal) => return refusal,
        };
        if self.json {
            let mut reply = self.json_reply(2);
            members(&state).iter().for_each(|row| reply.push("\n  ", &row.json()));
            return Response::ok(reply.finish());
        }
        let head = ["node", "state", "zone", "missing here", "unconfirmed", "clock"].map(str::to_owned).to_vec();
        let rows = members(&state).into_iter().map(Member::cells);
        Response::ok(table::layout(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
    }
}

/// The reply to an invalidation.
fn answered(answer: &Answer, counts_objects: bool) -> Response {
    match answer {
        Answer::Kept { objects, .. } if counts_objects => {
            Response::ok(format!("{objects} objects here; the other nodes follow"))
        }
        Answer::Kept { .. } => Response::ok("done here; the other nodes follow"),
        Answer::Waited { receipts, is_complete, why, .. } => {
            let mut text: String = receipts.iter().map(|receipt| receipt_line(receipt, counts_objects)).collect();
            if *is_complete {
                return Response::ok(text);
            }
            let missing = receipts.iter().filter(|receipt| receipt.applied_after_ms.is_none());
            let missing: Vec<&str> = missing.map(|receipt| receipt.node.as_str()).collect();
            match (&missing[..], why) {
                ([], Some(why)) => text += &format!("not confirmed: {}\n", line(why.as_bytes())),
                ([], None) => text += "not confirmed by all nodes\n",
                (missing, _) => text += &format!("missing: {}\n", missing.join(", ")),
            }
            Response::new(status::CANNOT, text)
        }
        Answer::Refused(why) => Response::new(status::CANNOT, line(why.as_bytes()).into_owned()),
    }
}

fn receipt_line(receipt: &Receipt, counts_objects: bool) -> String {
    let objects = match receipt.objects.filter(|_| counts_objects) {
        Some(objects) => format!("  {objects} objects"),
        None => String::new(),
    };
    match receipt.applied_after_ms {
        Some(milliseconds) => format!("{}  applied{objects}  {milliseconds} ms\n", receipt.node),
        None => format!("{}  missing\n", receipt.node),
    }
}

/// The conditions, with the time since which they hold.
fn serving_shown(state: &State) -> String {
    let shown = crate::fleet::serving_shown(state.status.serving);
    match state.status.serving {
        Serving::LostServe { .. } | Serving::LostStaleLimit { .. } | Serving::LostRefuse { .. } => {
            format!("{shown} (for {} s)", state.status.silent_ms / 1000)
        }
        Serving::InStep | Serving::Joining | Serving::Behind => shown.to_owned(),
    }
}

fn status_text(state: &State) -> String {
    let status = &state.status;
    let server = match &state.server {
        Some(server) => format!("{} ({})", line(server.as_bytes()), line(state.server_version.as_bytes())),
        None => format!("none: out of contact for {} s", status.silent_ms / 1000),
    };
    let present = status.members.iter().filter(|member| member.standing == Standing::Present && !member.has_left);
    let applied: u64 = state.counters.applied.iter().fold(0, |sum, count| sum.saturating_add(*count));
    let refused: u64 = state.counters.refused.iter().fold(0, |sum, count| sum.saturating_add(*count));
    format!(
        "Node:     {}{}\nServing:  {}\nServer:   {server}\nMembers:  {} present of {}\nOutbox:   {} entries, {} bytes\n\
         Backlog:  {} entries, {} messages of the stream\nApplied:  {applied}\nRefused:  {refused}\nHoles:    {}\nEpochs:   {}\n",
        state.node,
        if status.is_draining { ", draining" } else { "" },
        serving_shown(state),
        present.count() + 1,
        status.members.len() + 1,
        status.outbox_entries,
        status.outbox_bytes,
        status.backlog,
        state.lag,
        state.counters.holes,
        state.counters.epochs,
    )
}

fn status_json(state: &State) -> String {
    let status = &state.status;
    let sum = |counts: &[u64]| counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let text = |text: &str| string(&line(text.as_bytes()));
    format!(
        "{{\n    \"node\": {},\n    \"serving\": {},\n    \"serves_from_cache\": {},\n    \"joined\": {},\n    \"draining\": {},\n    \
         \"server\": {},\n    \"silent_ms\": {},\n    \"members\": {},\n    \"outbox_entries\": {},\n    \"outbox_bytes\": {},\n    \
         \"backlog\": {},\n    \"lag\": {},\n    \"applied\": {},\n    \"refused\": {},\n    \"holes\": {},\n    \"epochs\": {}\n  }}",
        text(state.node.as_str()),
        string(crate::fleet::serving_shown(status.serving)),
        status.serving.may_serve(),
        status.is_joined,
        status.is_draining,
        state.server.as_deref().map_or("null".to_owned(), text),
        status.silent_ms,
        status.members.len() + 1,
        status.outbox_entries,
        status.outbox_bytes,
        status.backlog,
        state.lag,
        sum(&state.counters.applied),
        sum(&state.counters.refused),
        state.counters.holes,
        state.counters.epochs,
    )
}

/// A row of `fleet.list`.
struct Member {
    node: String,
    state: &'static str,
    is_draining: bool,
    zone: String,
    missing_here: u64,
    unconfirmed: Option<u64>,
    skew_ms: i64,
}

/// This node, then the others.
fn members(state: &State) -> Vec<Member> {
    let own = Member {
        node: state.node.as_str().to_owned(),
        state: "this node",
        is_draining: state.status.is_draining,
        zone: String::new(),
        missing_here: 0,
        unconfirmed: Some(0),
        skew_ms: 0,
    };
    let others = state.status.members.iter().map(|member| Member {
        node: member.node.as_str().to_owned(),
        state: match member.standing {
            _ if member.has_left => "left",
            Standing::Present if !member.is_established => "joining",
            Standing::Present => "present",
            Standing::Missing => "missing",
            Standing::Forgotten => "forgotten",
        },
        is_draining: member.is_draining,
        zone: line(member.zone.as_bytes()).into_owned(),
        missing_here: member.missing_here,
        unconfirmed: member.unconfirmed,
        skew_ms: member.skew_ms,
    });
    std::iter::once(own).chain(others).collect()
}

impl Member {
    fn cells(self) -> Vec<String> {
        let state = if self.is_draining { format!("{}, draining", self.state) } else { self.state.to_owned() };
        let unconfirmed = self.unconfirmed.map_or("-".to_owned(), |count| count.to_string());
        let zone = if self.zone.is_empty() { "-".to_owned() } else { self.zone };
        let clock = format!("{:+.1} s", self.skew_ms as f64 / 1e3);
        vec![self.node, state, zone, self.missing_here.to_string(), unconfirmed, clock]
    }

    fn json(&self) -> String {
        format!(
            "{{\n    \"node\": {},\n    \"state\": {},\n    \"draining\": {},\n    \"zone\": {},\n    \"missing_here\": {},\n    \
             \"unconfirmed\": {},\n    \"skew_ms\": {}\n  }}",
            string(&self.node),
            string(self.state),
            self.is_draining,
            string(&self.zone),
            self.missing_here,
            self.unconfirmed.map_or("null".to_owned(), |count| count.to_string()),
            self.skew_ms,
        )
    }
}
