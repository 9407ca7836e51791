//! gRPC through the whole program, with Google's library for Go at both ends: over HTTP/2 and TLS
//! to the daemon, and from it to the origin.

use super::*;
use crate::daemon::{Process, eventually};
use std::io::{BufRead as _, BufReader};

/// The server, and the port that it has chosen.
struct Server {
    port: u16,
    /// Dropped first: the server ends with its input, or else is killed.
    _process: Process,
}

fn serve(program: &Path, both: &Path) -> Server {
    let mut command = Command::new(program);
    command.arg("server").args([both, both]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Server { port: line.trim().parse().unwrap(), _process: Process(child) }
}

/// Expected output of the client.
const EXPECTED: &str = "\
unary UNARY [yes] OK
large 1048576 OK
server-stream a
server-stream ab
server-stream abc
server-stream abcd
server-stream ends OK [yes]
client-stream 10000
client-stream ends OK [yes]
in turn ONE <nil>
in turn TWO <nil>
in turn THREE <nil>
both ends OK [yes]
fails ends NotFound nothing of the kind: 100 %
fails late some
fails late ends Aborted no more
waits begun <nil>
given up ends Canceled context canceled
the server it was told OK
after UNARY OK
";

#[test]
fn calls_of_every_kind_pass_through_with_their_trailers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = go_program("grpc", folder.path()) else { return };
    let authority = Authority::new(folder.path());
    let server = serve(&program, &authority.certify("calls.example"));
    let vcl = format!(
        "vcl 4.1; backend calls {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; .ssl = 1; .http2 = true;
            .ssl_name = \"calls.example\"; .ssl_ca = \"{}\"; }}",
        authority.file().display()
    );
    let door = Door::open_with(&vcl, server.port, &[]);
    let mut client = Command::new(&program);
    client.args(["client", &format!("127.0.0.1:{}", door.port)]).arg(door.authority.file()).arg(NAMES[0]);
    assert_eq!(succeeds(&mut client), EXPECTED, "{}", log(&door));
    // The origin's connection used HTTP/2 over TLS.
    let records = log(&door);
    assert!(records.contains("BerespProtocol b HTTP/2.0") && records.contains("calls.example h2 full"), "{records}");
    eventually("nothing is under way", || (door.daemon.counter("MAIN.req_bytes") == 0).then_some(()));
    eventually("they shared a connection", || (door.daemon.counter("MAIN.backend_reuse") >= 6).then_some(()));
}

/// Log records of the origin, without the columns of the tags.
fn log(door: &Door) -> String {
    let tags = "BerespProtocol,BackendSSL,BackendOpen,BackendClose,FetchError,VCL_Error";
    let output = door.daemon.applet("log", &["-d", "-g", "raw", "-i", tags]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}
