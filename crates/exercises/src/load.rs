//! Server answers to the load of `copal bench`.

use load::client::Connector;
use load::exchange::{Answer, Ask};
use load::failure::Failure;
use load::plan::{Plan, Target};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};

/// A server on loopback that answers each connection with the next given bytes, and closes.
struct Server {
    port: u16,
    next: Sender<Vec<u8>>,
}

static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (next, answers) = channel();
    std::thread::spawn(move || serve(&listener, &answers));
    Mutex::new(Server { port, next })
});

fn serve(listener: &TcpListener, answers: &Receiver<Vec<u8>>) {
    for mut stream in listener.incoming().flatten() {
        let Ok(answer) = answers.recv() else { return };
        let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                _ => break,
            }
        }
        // The client may already have closed.
        let _ = stream.write_all(&answer);
    }
}

/// Reads the bytes as a server's HTTP/1 answer to a request: HEAD if the first one is odd,
/// otherwise GET.
///
/// # Panics
/// When a kept answer has another length than announced, or reads differently from a dropped one.
pub fn answer(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let method = if first % 2 == 1 { "HEAD" } else { "GET" };
    let server = SERVER.lock().expect("nobody panicked here");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut body = Vec::new();
    let kept = ask(&server, &runtime, bytes, method, Some(&mut body));
    let dropped = ask(&server, &runtime, bytes, method, None);
    if let Ok(answer) = &kept {
        assert_eq!(answer.body_bytes, body.len() as u64, "what is counted is what came");
        assert!(answer.status >= 200, "an interim answer is none");
        assert!(body.len() <= bytes.len());
    }
    // Bytes after the end are detected if they arrive with it, so one of both may have seen them.
    if let (Ok(kept), Ok(dropped)) = (&kept, &dropped) {
        assert_eq!(kept, dropped);
    }
}

fn ask(
    server: &Server,
    runtime: &tokio::runtime::Runtime,
    bytes: &[u8],
    method: &str,
    keep: Option<&mut Vec<u8>>,
) -> Result<Answer, Failure> {
    server.next.send(bytes.to_vec()).expect("a server");
    tokio::task::LocalSet::new().block_on(runtime, async {
        let way = Connector::new(&Plan::new(Target::local(server.port, false)))?;
        let mut client = way.open().await?;
        let ask = Ask { method, path: "/", authority: "localhost", headers: &[], is_last: true };
        client.ask(&ask, keep).await
    })
}
