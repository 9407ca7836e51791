//! The CLI over the network: `-T` listeners, `-M` connections out, standard input under `-d`, the
//! `-I` file.
//!
//! Each connection is a task of its own, so a slow or silent client affects no other. Limits: the
//! number of connections, of which unauthenticated ones give way; before authentication, a short
//! time and short lines; a bounded time for a client to take a reply. Sockets and places →
//! `cli_connections.rs`.

use crate::arguments::CliAddress;
use crate::cli_connections::{CliListener, CliStream, CliTarget, Place};
use crate::commands;
use crate::platform::banner;
use crate::report::Level;
use crate::state::Manager;
use cli_proto::auth;
use cli_proto::request::{Request, RequestReader};
use cli_proto::response::{Response, status};
use cli_proto::server::{Event, ServerSession};
use std::io::{IsTerminal as _, Read, Write};
use std::rc::Rc;
use std::time::Duration;
use surface::legible;
use surface::limits::{
    CLI_COMMAND_BYTES_MAX, CLI_CONNECTIONS_MAX, CLI_SHOWN_BYTES_MAX, CLI_UNAUTHENTICATED_SECONDS_MAX,
    CLI_WRITE_SECONDS_MAX,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// First and longest pause between attempts to reach a `-M` address.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Serves a `-T` listener for ever.
///
/// # Errors
/// The listener cannot be watched.
pub async fn accept(manager: Rc<Manager>, listener: CliListener) -> std::io::Result<()> {
    let listener = listener.watch()?;
    let mut is_said = false;
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                // Most likely no descriptors are left: wait until some are free.
                if !is_said {
                    manager.say(Level::Error, format!("CLI connection could not be accepted: {error}"));
                }
                is_said = true;
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        is_said = false;
        let Some(place) = manager.connections.enter() else {
            manager.say(Level::Error, format!("CLI connection refused: there are {CLI_CONNECTIONS_MAX} already"));
            stream.refuse(&Response::new(status::CLOSE, "Too many CLI connections\n"));
            continue;
        };
        let manager = manager.clone();
        spawn_local(async move { serve_stream(&manager, stream, place).await });
    }
}

/// Connects to a `-M` address, serves the connection until it closes, and starts again.
pub async fn connect(manager: Rc<Manager>, argument: CliAddress) {
    let mut pause = RECONNECT.0;
    loop {
        for target in CliTarget::of(&argument) {
            if let Ok(stream) = target.connect().await
                && let Some(place) = manager.connections.enter()
            {
                pause = RECONNECT.0;
                serve_stream(&manager, stream, place).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECONNECT.1);
    }
}

async fn serve_stream(manager: &Rc<Manager>, stream: CliStream, place: Place) {
    let ends = stream.ends();
    let mut session = match manager.secret {
        Some(_) => ServerSession::challenging(auth::challenge(&mut rand::rng()), CLI_COMMAND_BYTES_MAX),
        None => ServerSession::open(CLI_COMMAND_BYTES_MAX),
    };
    let (reader, writer) = stream.split();
    tokio::select! {
        () = place.displaced() => manager.say(Level::Cli, format!("CLI {ends} gave way to another connection")),
        () = serve(manager, &mut session, reader, writer, &ends, &place) => {}
    }
}

/// Sends a reply to a client that may have stopped reading.
async fn send(writer: &mut (impl AsyncWrite + Unpin), response: &Response) -> std::io::Result<()> {
    let patience = Duration::from_secs(CLI_WRITE_SECONDS_MAX);
    match tokio::time::timeout(patience, writer.write_all(&response.encode())).await {
        Ok(written) => written,
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}

/// Serves one connection until it closes.
async fn serve(
    manager: &Rc<Manager>,
    session: &mut ServerSession,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    ends: &str,
    place: &Place,
) {
    let greeting = session.greeting(&banner(&manager.identification, manager.running_worker().is_some()));
    if send(&mut writer, &greeting).await.is_err() {
        return;
    }
    let mut buffer = vec![0; 16 << 10];
    let deadline = tokio::time::Instant::now() + Duration::from_secs(CLI_UNAUTHENTICATED_SECONDS_MAX);
    loop {
        while let Some(event) = session.next() {
            place.hold(session.pending_bytes());
            let is_upgrade =
                matches!(&event, Event::Command(it) if it.words.first().is_some_and(|verb| verb == "upgrade"));
            let response = respond(manager, session, event, ends).await;
            // Commands that arrived together with the secret are not cut off by unauthenticated
            // clients.
            if session.is_authenticated() {
                place.keep();
            }
            let sent = send(&mut writer, &response).await;
            if is_upgrade {
                manager.upgrade_answered.notify_waiters();
            }
            if sent.is_err() {
                return;
            }
        }
        if session.is_closed() {
            let _ = writer.shutdown().await;
            return;
        }
        let read = reader.read(&mut buffer);
        let length = if session.is_authenticated() {
            place.keep();
            read.await
        } else {
            match tokio::time::timeout_at(deadline, read).await {
                Ok(length) => length,
                Err(_) => return,
            }
        };
        match length {
            Ok(0) | Err(_) => return,
            Ok(length) => session.push(&buffer[..length]),
        }
        if !place.hold(session.pending_bytes()) {
            manager.say(
                Level::Error,
                format!("CLI {ends}: refused, commands of {CLI_COMMAND_BYTES_MAX} bytes are under way"),
            );
            session.refuse_pending();
        }
    }
}

/// The reply to one event, cut to the limit and logged.
async fn respond(manager: &Rc<Manager>, session: &mut ServerSession, event: Event, ends: &str) -> Response {
    let mut response = match event {
        Event::Send(response) => response,
        Event::Command(command) => {
            log_traffic(manager, ends, "Rd", &command.line);
            commands::execute(manager, &command.words, &command.octets, ends).await
        }
        Event::Answer(answer) => authenticate(manager, session, &answer, ends),
    };
    let limit = usize::try_from(manager.parameters.borrow().cli_limit).unwrap_or(usize::MAX);
    response.truncate(limit);
    session.reply(&response);
    log_traffic(manager, ends, "Wr", &format!("{} {}", response.status, response.body));
    response
}

/// Checks an answer against the secret that is now in the file.
fn authenticate(manager: &Manager, session: &mut ServerSession, answer: &str, ends: &str) -> Response {
    let Some(path) = &manager.secret else {
        return Response::new(status::CANNOT, "Secret file not configured\n");
    };
    let secret = match std::fs::read(path) {
        Ok(secret) => secret,
        Err(error) => {
            let reason = crate::arguments::reason(&error);
            return Response::new(status::CANNOT, format!("Cannot open secret file ({reason})\n"));
        }
    };
    let banner = banner(&manager.identification, manager.running_worker().is_some());
    let response = session.authenticate(answer, &secret, &banner);
    if !response.is_ok() {
        manager.say(Level::Cli, format!("CLI Authentication failure from {ends}"));
    }
    response
}

fn log_traffic(manager: &Manager, ends: &str, direction: &str, text: &str) {
    if manager.parameters.borrow().syslog_cli_traffic {
        let end = (0..=CLI_SHOWN_BYTES_MAX.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let more = if end < text.len() { "…" } else { "" };
        manager.say(Level::Cli, format!("CLI {ends} {direction} {}{more}", &text[..end]));
    }
}

/// The CLI on standard input and output (`-d`); returns at the end of the input or on `quit`.
pub async fn standard_input(manager: &Rc<Manager>) {
    let mut session = ServerSession::open(CLI_COMMAND_BYTES_MAX);
    let print = |response: &Response| {
        let mut out = std::io::stdout().lock();
        // A program gets the bytes unchanged.
        let bytes = if out.is_terminal() {
            Response::new(response.status, legible::lines(response.body.as_bytes())).encode()
        } else {
            response.encode()
        };
        let _ = out.write_all(&bytes).and_then(|()| out.flush());
    };
    print(&session.greeting(&banner(&manager.identification, false)));
    let mut input = read_standard_input();
    while let Some(bytes) = input.recv().await {
        session.push(&bytes);
        while let Some(event) = session.next() {
            let response = respond(manager, &mut session, event, "stdin").await;
            print(&response);
        }
        if session.is_closed() {
            return;
        }
    }
}

/// Standard input as it arrives. A separate thread reads it: nothing else can wait for a terminal,
/// a pipe and a file alike, and a thread that waits for ever must not keep the process from ending.
fn read_standard_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        loop {
            match std::io::stdin().lock().read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(length) if sender.blocking_send(buffer[..length].to_vec()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    receiver
}

/// Executes the commands of the `-I` file; each is shown on standard error with its reply.
///
/// # Errors
/// The message for the operator, when a command failed that must not fail.
pub async fn run_file(manager: &Rc<Manager>, content: &[u8]) -> Result<(), String> {
    let show = |text: &str| manager.reporter.say_plain(text);
    let show_reply = |response: &Response| {
        show(&format!("{:<3} {:<8}\n{}", response.status, response.body.len(), response.body));
    };
    show("BEGIN of -I file processing");
    show_reply(&Response::ok(banner(&manager.identification, false)));
    let mut reader = RequestReader::new(CLI_COMMAND_BYTES_MAX);
    reader.push(content);
    reader.push(b"\n");
    while let Some(request) = reader.next() {
        let (line, may_fail, response) = match request {
            Request::Command(command) => {
                show(&format!("> {}{}", if command.may_fail { "-" } else { "" }, command.line));
                let response = commands::execute(manager, &command.words, &command.octets, "-I file").await;
                (command.line, command.may_fail, response)
            }
            Request::Empty => (String::new(), true, Response::new(status::SYNTAX, "Empty CLI command.\n")),
            Request::Malformed(error) => {
                let body = format!("Syntax Error: {}\n", error.text());
                (String::new(), false, Response::new(status::SYNTAX, body))
            }
            Request::TooLong => {
                return Err(format!("-I file CLI command failed ({})\nCommand too long", status::SYNTAX));
            }
        };
        if !response.is_ok() && !may_fail {
            let text = format!("-I file CLI command failed ({})\n{}", response.status, response.body.trim_end());
            return Err(if line.is_empty() { text } else { format!("{text}\n> {line}") });
        }
        show_reply(&response);
    }
    if reader.is_partial() {
        return Err("-I file ends in the middle of a command".to_owned());
    }
    show("END of -I file processing");
    Ok(())
}
