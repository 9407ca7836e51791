//! Orders of the dashboard: what `copal observe` may ask of the manager.
//!
//! It is a process without rights that parses what browsers send. *Invariant:* an order is one of
//! `surface::operation`, is checked again here, and with `-o dash_operate=off` none is executed
//! that changes something. Each change leaves a message: who, from where, what, with which result.

use crate::commands;
use crate::report::Level;
use crate::state::Manager;
use cli_proto::response::{Response, status};
use std::io;
use std::rc::Rc;
use std::time::Instant;
use surface::legible::line;
use surface::limits::{DASH_ANSWER_BYTES_MAX, DASH_ORDER_BYTES_MAX};
use surface::operation::{Operation, Order, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Executes orders until the other end is closed, or sends something else.
pub async fn obey(manager: Rc<Manager>, mut stream: UnixStream) {
    while let Ok(frame) = read(&mut stream).await {
        let response = match Order::decode(&frame) {
            Ok(order) => execute(&manager, &order).await,
            Err(why) => Response::new(status::PARAMETER, why),
        };
        if stream.write_all(&answer(&response)).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await? as usize;
    if length > DASH_ORDER_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn answer(response: &Response) -> Vec<u8> {
    const TOO_LONG: &str = "the answer is too long for the dashboard";
    let (status, text) = match response.body.len() {
        0..DASH_ANSWER_BYTES_MAX => (response.status, response.body.as_str()),
        _ => (status::CANNOT, TOO_LONG),
    };
    frame(&[&status.to_string(), text])
}

async fn execute(manager: &Rc<Manager>, order: &Order) -> Response {
    let now = Instant::now();
    let found = |is_found: bool, text: String| match is_found {
        true => Response::ok(text),
        false => Response::new(status::CANNOT, "it is wrong, or its time is over"),
    };
    match &order.operation {
        Operation::Login(token) => return found(manager.tokens.take(token, now), String::new()),
        Operation::Keep { id, role, csrf } => {
            manager.dash_sessions.keep(id, &order.user, role, csrf, now);
            return Response::ok("");
        }
        Operation::Recall(id) => {
            let text = manager.dash_sessions.recall(id, now);
            return found(text.is_some(), text.unwrap_or_default());
        }
        Operation::Forget(id) => {
            manager.dash_sessions.forget(id);
            return Response::ok("");
        }
        Operation::Vcls
        | Operation::Source(_)
        | Operation::Backends
        | Operation::Bans
        | Operation::Parameters
        | Operation::Certificates
        | Operation::Count(_)
        | Operation::Health(..)
        | Operation::Use(_)
        | Operation::Ban(_)
        | Operation::Tags { .. } => {}
    }
    let words = order.operation.command();
    let (user, from) = (line(order.user.as_bytes()), line(order.from.as_bytes()));
    let who = format!("dashboard {user} {from}");
    if !order.operation.is_change() {
        return commands::execute(manager, &words, &[], &who).await;
    }
    let response = match manager.arguments.dash.is_view_only {
        true => Response::new(status::CANNOT, "-o dash_operate=off: the dashboard may change nothing"),
        false => commands::execute(manager, &words, &[], &who).await,
    };
    let quoted = |word: &String| if word.contains([' ', '"']) { format!("{word:?}") } else { word.clone() };
    let shown = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let result = if response.is_ok() { "done".to_owned() } else { format!("refused: {}", response.body.trim()) };
    manager.say(
        Level::Info,
        format!("Dashboard: {user} from {from}: {} ({})", line(shown.as_bytes()), line(result.as_bytes())),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::Bench;

    /// The status of an order.
    fn status_of(bench: &Bench, operation: Operation) -> u16 {
        let order = Order { user: "anna".to_owned(), from: "127.0.0.1".to_owned(), operation };
        bench.runtime.block_on(execute(&bench.manager, &order)).status
    }

    #[test]
    fn view_only_dashboard_changes_nothing_whatever_observe_sends() {
        let options = ["-b", "none", "-o", "dash=127.0.0.1:0"];
        let bench = Bench::new(&options);
        let ban = || Operation::Ban(["req.url", "~", "."].map(str::to_owned).to_vec());
        // There is no worker: the command itself is unknown, so it was executed.
        assert_eq!(status_of(&bench, ban()), status::UNKNOWN);
        assert_eq!(status_of(&bench, Operation::Vcls), status::OK);
        let view = Bench::new(&[&options[..], &["-o", "dash_operate=off"]].concat());
        for change in [ban(), Operation::Use("boot".to_owned())] {
            assert_eq!(status_of(&view, change), status::CANNOT);
        }
        assert_eq!(status_of(&view, Operation::Vcls), status::OK);
    }

    #[test]
    fn orders_that_cannot_be_read_get_an_answer_and_huge_ones_end_the_conversation() {
        let bench = Bench::new(&[]);
        let (mut ours, theirs) = bench.runtime.block_on(async { UnixStream::pair() }).unwrap();
        let work = async {
            let obeys = obey(bench.manager.clone(), theirs);
            let talks = async {
                ours.write_all(&frame(&["quit", "a", "b"])).await.unwrap();
                let length = ours.read_u32().await.unwrap() as usize;
                let mut answer = vec![0; length];
                ours.read_exact(&mut answer).await.unwrap();
                let parts = surface::operation::parts(&answer).unwrap();
                assert_eq!(parts, ["106", "there is no such operation"]);
                ours.write_u32(u32::MAX).await.unwrap();
                assert_eq!(ours.read(&mut [0]).await.unwrap(), 0);
            };
            tokio::join!(obeys, talks);
        };
        bench.runtime.block_on(work);
    }
}
