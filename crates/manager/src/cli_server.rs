//! The CLI over the network: `-T` listeners, `-M` connections out, standard input under `-d`, the `-I` file.
//!
//! Every connection is a task of its own, so that a slow or silent client harms nobody. Limits: so many connections at
//! once, a short time and short lines until a client has shown that it knows the secret.

use crate::arguments::CliAddress;
use crate::commands;
use crate::platform::banner;
use crate::report::Level;
use crate::state::Manager;
use cli_proto::auth;
use cli_proto::request::{Request, RequestReader};
use cli_proto::response::{Response, status};
use cli_proto::server::{Event, ServerSession};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{CLI_COMMAND_BYTES_MAX, CLI_CONNECTIONS_MAX, CLI_UNAUTHENTICATED_SECONDS_MAX};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// First and longest pause between attempts to reach a `-M` address.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Opens every `-T` address; those of one argument that can't be had are left out as long as one can.
///
/// # Errors
/// The message for the operator.
pub fn listen(arguments: &[CliAddress]) -> Result<Vec<std::net::TcpListener>, String> {
    let mut all = Vec::new();
    for argument in arguments {
        let opened: Vec<_> = argument.addresses.iter().filter_map(|address| open(*address).ok()).collect();
        if opened.is_empty() {
            return Err(format!("-T {} could not be listened on.", argument.text));
        }
        all.extend(opened);
    }
    Ok(all)
}

fn open(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(10)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Serves a `-T` listener for ever.
///
/// # Errors
/// When the listener can't be watched.
pub async fn accept(manager: Rc<Manager>, listener: std::net::TcpListener) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptors left, most likely: wait for some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if manager.connections.get() >= CLI_CONNECTIONS_MAX {
            manager.say(Level::Error, format!("CLI connection refused: there are {CLI_CONNECTIONS_MAX} already"));
            continue;
        }
        let manager = manager.clone();
        spawn_local(async move { serve_stream(&manager, stream).await });
    }
}

/// Connects to a `-M` address, serves it until it closes, and begins again.
pub async fn connect(manager: Rc<Manager>, argument: CliAddress) {
    let mut pause = RECONNECT.0;
    loop {
        for address in &argument.addresses {
            if let Ok(stream) = TcpStream::connect(address).await {
                pause = RECONNECT.0;
                serve_stream(&manager, stream).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECONNECT.1);
    }
}

async fn serve_stream(manager: &Rc<Manager>, mut stream: TcpStream) {
    let ends = match (stream.local_addr(), stream.peer_addr()) {
        (Ok(ours), Ok(theirs)) => format!("telnet {} {} {} {}", theirs.ip(), theirs.port(), ours.ip(), ours.port()),
        _ => "telnet".to_owned(),
    };
    let _ = stream.set_nodelay(true);
    let mut session = match manager.secret {
        Some(_) => ServerSession::challenging(auth::challenge(&mut rand::thread_rng()), CLI_COMMAND_BYTES_MAX),
        None => ServerSession::open(CLI_COMMAND_BYTES_MAX),
    };
    manager.connections.set(manager.connections.get() + 1);
    let (reader, writer) = stream.split();
    serve(manager, &mut session, reader, writer, &ends).await;
    manager.connections.set(manager.connections.get() - 1);
}

/// Serves one connection until it closes.
async fn serve(
    manager: &Rc<Manager>,
    session: &mut ServerSession,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    ends: &str,
) {
    let greeting = session.greeting(&banner(&manager.identification, manager.running_worker().is_some()));
    if writer.write_all(&greeting.encode()).await.is_err() {
        return;
    }
    let mut buffer = vec![0; 16 << 10];
    let deadline = tokio::time::Instant::now() + Duration::from_secs(CLI_UNAUTHENTICATED_SECONDS_MAX);
    loop {
        while let Some(event) = session.next() {
            let response = respond(manager, session, event, ends).await;
            if writer.write_all(&response.encode()).await.is_err() {
                return;
            }
        }
        if session.is_closed() {
            let _ = writer.shutdown().await;
            return;
        }
        let read = reader.read(&mut buffer);
        let length = if session.is_authenticated() {
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
    }
}

/// The reply to one event, cut to the limit and logged.
async fn respond(manager: &Rc<Manager>, session: &mut ServerSession, event: Event, ends: &str) -> Response {
    let mut response = match event {
        Event::Send(response) => response,
        Event::Command(command) => {
            log_traffic(manager, ends, "Rd", &command.line);
            commands::execute(manager, &command.words).await
        }
        Event::Answer(answer) => authenticate(manager, session, &answer, ends),
    };
    let limit = usize::try_from(manager.parameters.borrow().cli_limit).unwrap_or(usize::MAX);
    response.truncate(limit);
    session.reply(&response);
    log_traffic(manager, ends, "Wr", &format!("{} {}", response.status, response.body));
    response
}

/// Checks an answer against the secret as it is now in its file.
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
        manager.say(Level::Cli, format!("CLI {ends} {direction} {text}"));
    }
}

/// The CLI on standard input and output (`-d`); returns when the input ends or `quit` comes.
pub async fn standard_input(manager: &Rc<Manager>) {
    let mut session = ServerSession::open(CLI_COMMAND_BYTES_MAX);
    let print = |response: &Response| {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&response.encode()).and_then(|()| out.flush());
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

/// Standard input as it comes. A thread of its own reads it: nothing else can wait for a terminal, a pipe and a file
/// alike, and a thread that waits for ever must not keep the process from ending.
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

/// Does the commands of the `-I` file, each shown on standard error with its reply.
///
/// # Errors
/// The message for the operator, when a command fails that was not allowed to.
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
                let response = commands::execute(manager, &command.words).await;
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
