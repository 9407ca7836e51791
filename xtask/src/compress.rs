//! `cargo xtask compress`: cost of a page in brotli, in bytes on the wire and CPU of the server,
//! compared with nginx.
//!
//! One page of HTML is in the cache and is requested many times over one connection: uncompressed,
//! in gzip and in brotli. Copal compresses it once for each coding, in the background; nginx, which
//! caches the origin's bytes, compresses each response anew (its module for precompressed brotli
//! files does not work with its cache). All use the same levels.

use crate::place::{build, folder, free_port, pin};
use crate::process::{Server, cpu_microseconds};
use crate::servers::{Kind, Launch};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Approximate length of the page, in bytes.
const PAGE_BYTES: usize = 50 << 10;

/// Level of gzip and brotli in all servers: the default of Copal for both, and of nginx for brotli.
const LEVEL: u8 = 6;

/// Path of Debian's nginx module for brotli.
const BROTLI_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so";

/// Source of the page's text.
const PROSE: [&str; 3] = [
    include_str!("../../docs/operate/run.md"),
    include_str!("../../docs/guide/esi.md"),
    include_str!("../../docs/reference/request-smuggling.md"),
];

/// Time limit for a compressed copy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest line of a head that is accepted, and longest body, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--as-built") {
        build()?;
    }
    let requests = crate::task::number(arguments, "--requests", 10_000)?;
    let patience = Duration::from_secs_f64(crate::task::number(arguments, "--seconds", 60.0)?);
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        pin(1)?;
    }
    let folder = folder()?;
    let origin = origin()?;
    let mut rows = Vec::new();
    for kind in [Kind::Copal, Kind::Nginx] {
        if kind == Kind::Nginx && (has("--no-peer") || kind.program().is_none()) {
            println!("skipped: nginx");
            continue;
        }
        let mut running = Running::start(kind, origin, folder.path())?;
        for coding in codings(kind) {
            println!("{} {} …", kind.name(), coding.unwrap_or("identity"));
            let row = running.measure(*coding, requests, patience);
            rows.push(row.map_err(|error| format!("{} {coding:?}: {error}", kind.name()))?);
        }
    }
    println!("{}", report(&rows));
    Ok(())
}

/// The requested codings; `None` is uncompressed.
fn codings(kind: Kind) -> &'static [Option<&'static str>] {
    match kind {
        Kind::Copal => &[None, Some("gzip"), Some("br"), Some("zstd")],
        _ if Path::new(BROTLI_MODULE).exists() => &[None, Some("gzip"), Some("br")],
        _ => {
            println!("skipped: nginx in brotli needs {BROTLI_MODULE}");
            &[None, Some("gzip")]
        }
    }
}

/// The measurement of one server in one coding.
struct Row {
    kind: Kind,
    coding: &'static str,
    requests: usize,
    /// Bytes of a response with its head, on average.
    bytes: f64,
    /// CPU time of the server for a response, in microseconds.
    cpu: f64,
    /// CPU time until the first response in the coding, in microseconds: making the copy, if one is
    /// made, and the requests during that time.
    before: f64,
}

struct Running {
    kind: Kind,
    server: Server,
    connection: BufReader<TcpStream>,
}

impl Running {
    fn start(kind: Kind, origin: u16, folder: &Path) -> Result<Running, String> {
        let port = free_port()?;
        let launch = if kind == Kind::Nginx {
            nginx(port, origin, folder)?
        } else {
            let mut launch = kind.launch(port, origin, folder, 64)?;
            let level = LEVEL.to_string();
            for (name, value) in [("http_encodings", "br zstd gzip"), ("gzip_level", &level), ("brotli_level", &level)]
            {
                launch.arguments.extend(["-p".to_owned(), format!("{name}={value}")]);
            }
            launch
        };
        let log = folder.join(format!("{}.log", kind.name()));
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
        let connection = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        let _ = connection.set_nodelay(true);
        let _ = connection.set_read_timeout(Some(PATIENCE));
        Ok(Running { kind, server, connection: BufReader::new(connection) })
    }

    fn measure(&mut self, coding: Option<&'static str>, requests: usize, patience: Duration) -> Result<Row, String> {
        let accept = coding.map(|name| format!("Accept-Encoding: {name}\r\n")).unwrap_or_default();
        let request = format!("GET /page HTTP/1.1\r\nHost: bench\r\n{accept}\r\n");
        let pids = self.server.tree();
        let used = || cpu_microseconds(&pids).0;
        let (begin, cpu) = (Instant::now(), used());
        while self.ask(&request)?.coding.as_deref() != coding {
            if begin.elapsed() > PATIENCE {
                return Err("it does not come in that coding".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = used() - cpu;
        let (begin, cpu) = (Instant::now(), used());
        let (mut done, mut bytes) = (0, 0);
        while done < requests && begin.elapsed() < patience {
            let answer = self.ask(&request)?;
            if answer.coding.as_deref() != coding {
                return Err(format!("one came in {:?}", answer.coding));
            }
            bytes += answer.bytes;
            done += 1;
        }
        let count = done.max(1) as f64;
        Ok(Row {
            kind: self.kind,
            coding: coding.unwrap_or("identity"),
            requests: done,
            bytes: bytes as f64 / count,
            cpu: (used() - cpu) / count,
            before,
        })
    }

    fn ask(&mut self, request: &str) -> Result<Answer, String> {
        self.connection.get_mut().write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        Answer::read(&mut self.connection).map_err(|error| error.to_string())
    }
}

struct Answer {
    coding: Option<String>,
    /// Bytes of head and body, with the framing of chunks.
    bytes: usize,
}

impl Answer {
    fn read(connection: &mut BufReader<TcpStream>) -> std::io::Result<Answer> {
        let mut answer = Answer { coding: None, bytes: 0 };
        let (mut length, mut is_chunked) = (0, false);
        let status = line(connection, &mut answer.bytes)?;
        if !status.starts_with("http/1.1 200 ") {
            return Err(std::io::Error::other(status));
        }
        loop {
            let line = line(connection, &mut answer.bytes)?;
            let Some((name, value)) = line.split_once(':') else { break };
            match (name, value.trim()) {
                ("content-length", value) => length = value.parse().map_err(std::io::Error::other)?,
                ("transfer-encoding", value) => is_chunked = value == "chunked",
                ("content-encoding", value) => answer.coding = Some(value.to_owned()),
                _ => {}
            }
        }
        if !is_chunked {
            answer.bytes += skip(connection, length)?;
            return Ok(answer);
        }
        loop {
            let size = line(connection, &mut answer.bytes)?;
            let size = u64::from_str_radix(&size, 16).map_err(std::io::Error::other)?;
            answer.bytes += skip(connection, size + 2)?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }
}

/// A line in lower case without its end; its bytes are counted.
fn line(connection: &mut BufReader<TcpStream>, bytes: &mut usize) -> std::io::Result<String> {
    let mut text = String::new();
    let count = connection.take(ANSWER_BYTES_MAX).read_line(&mut text)?;
    if count == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    *bytes += count;
    Ok(text.trim_end().to_ascii_lowercase())
}

/// Reads `length` bytes, and returns their number.
fn skip(connection: &mut BufReader<TcpStream>, length: u64) -> std::io::Result<usize> {
    if length > ANSWER_BYTES_MAX {
        return Err(std::io::Error::other("the body is too long"));
    }
    let read = std::io::copy(&mut connection.take(length), &mut std::io::sink())?;
    if read < length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    usize::try_from(read).map_err(std::io::Error::other)
}

/// nginx with its cache in `folder`, which compresses its responses.
fn nginx(port: u16, origin: u16, folder: &Path) -> Result<Launch, String> {
    let program = Kind::Nginx.program().ok_or("nginx is not installed")?;
    let at = folder.display();
    let (load, brotli) = if Path::new(BROTLI_MODULE).exists() {
        (format!("load_module {BROTLI_MODULE};\n"), format!("brotli on; brotli_comp_level {LEVEL};"))
    } else {
        (String::new(), String::new())
    };
    // The folder belongs to this user, so the worker runs as the same user.
    let configuration = format!(
        "{load}daemon off; user root; worker_processes 1; pid {at}/nginx.pid; error_log {at}/nginx-error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {at}/cb; proxy_temp_path {at}/pt;\n\
         fastcgi_temp_path {at}/ft; uwsgi_temp_path {at}/ut; scgi_temp_path {at}/st;\n\
         proxy_cache_path {at}/cache keys_zone=c:16m max_size=64m inactive=1h;\n\
         gzip on; gzip_comp_level {LEVEL}; {brotli}\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache c; }} }} }}\n"
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, configuration).map_err(|error| format!("{}: {error}", path.display()))?;
    let arguments = ["-c".to_owned(), path.display().to_string(), "-p".to_owned(), at.to_string()];
    Ok(Launch { program, arguments: arguments.to_vec() })
}

/// An origin in this process that answers every request with the page, uncompressed and storable
/// for an hour.
fn origin() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let page = page();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"page\"\r\nCache-Control: max-age=3600\r\n\
         Content-Length: {}\r\n\r\n{page}",
        page.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = serve(stream, answer.as_bytes());
        }
    });
    Ok(port)
}

/// Serves one connection: each server sends one request.
fn serve(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while memchr::memmem::find(&received, b"\r\n\r\n").is_none() && received.len() < 64 << 10 {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&buffer[..count]);
    }
    stream.write_all(answer)
}

/// A page like those of a shop: the same markup around names, prices and prose, which is that of
/// the project's documents.
fn page() -> String {
    let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".,:;'-".contains(&byte));
    let mut words = PROSE.iter().flat_map(|text| text.split_whitespace()).filter(is_plain).cycle();
    let mut some = |count: usize| words.by_ref().take(count).collect::<Vec<_>>().join(" ");
    let mut state = 1_u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut text =
        String::from("<!doctype html><html><head><title>A shop</title></head><body><ul class=\"products\">\n");
    while text.len() < PAGE_BYTES {
        let (id, price) = (below(1_000_000), below(10_000));
        let (name, prose) = (some(3), some(40));
        let _ = writeln!(
            text,
            "<li class=\"product\" data-id=\"{id}\"><a href=\"/product/{id}\"><img src=\"/media/{id}.jpg\" alt=\"{name}\">\
             <h2>{name}</h2></a><p class=\"text\">{prose}</p><span class=\"price\">{}.{:02}</span></li>",
            price / 100,
            price % 100
        );
    }
    text.push_str("</ul></body></html>\n");
    text
}

fn report(rows: &[Row]) -> String {
    let mut text = format!(
        "A page of {} bytes, gzip and brotli at level {LEVEL}; ratios are to the first row\n\n\
         | server | coding | responses | bytes each | ratio | CPU each, µs | ratio | CPU until the first, ms |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        page().len()
    );
    let Some(first) = rows.first() else { return text };
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} | {:.3} | {:.1} | {:.2} | {:.1} |",
            row.kind.name(),
            row.coding,
            row.requests,
            row.bytes,
            row.bytes / first.bytes,
            row.cpu,
            row.cpu / first.cpu,
            row.before / 1000.0
        );
    }
    for peer in rows.iter().filter(|row| row.kind != Kind::Copal) {
        if let Some(own) = rows.iter().find(|row| row.kind == Kind::Copal && row.coding == peer.coding) {
            let _ = writeln!(
                text,
                "\n{}: Copal as a ratio to {}: bytes {:.3}, CPU {:.4}",
                peer.coding,
                peer.kind.name(),
                own.bytes / peer.bytes,
                own.cpu / peer.cpu
            );
        }
    }
    text
}
