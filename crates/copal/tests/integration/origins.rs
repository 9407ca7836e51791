//! Real origins behind Copal: nginx, Apache httpd with PHP, Python's http.server, a Node server.
//! The test starts each one in the foreground on a port chosen by the system, with a generated
//! configuration; if the program is missing the test prints a note.

use crate::daemon::{CLOSED_PORT, Daemon, HANG, Process, eventually, exchange, free_port, needs};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts an origin, and waits until it accepts connections.
pub fn start(command: &mut Command, port: u16) -> Process {
    let mut process =
        Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    eventually("the origin accepts", || {
        if let Some(status) = process.0.try_wait().unwrap() {
            let mut said = String::new();
            if let Some(errors) = process.0.stderr.as_mut() {
                let _ = errors.read_to_string(&mut said);
            }
            panic!("the origin ended with {status}: {said}");
        }
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    process
}

/// A server whose children would outlive it if it were killed: it is ended with a signal.
struct Asked(Process);

impl Drop for Asked {
    fn drop(&mut self) {
        let id = nix::unistd::Pid::from_raw(self.0.0.id().cast_signed());
        if nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).is_ok() {
            let _ = self.0.0.wait();
        }
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// A folder that a web server running as another user can read.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    folder
}

#[test]
fn nginx_files_are_cached_revalidated_and_cut_into_ranges() {
    let Some(nginx) = needs("nginx") else { return };
    let folder = folder();
    let at = folder.path().display();
    let port = free_port();
    let big: String = (0..200_000).map(|n| format!("{n},")).collect();
    std::fs::create_dir(folder.path().join("www")).unwrap();
    write(&folder.path().join("www/page.html"), "<h1>hello</h1>\n");
    write(&folder.path().join("www/big.txt"), &big);
    write(
        &folder.path().join("nginx.conf"),
        &format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}}\n\
             http {{ access_log {at}/access.log; types {{ text/html html; text/plain txt; }} gzip on; gzip_types text/plain;\n\
             client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;\n\
             server {{ listen 127.0.0.1:{port}; root {at}/www; location / {{ expires 1h; }} location /short/ {{ alias {at}/www/; add_header Cache-Control max-age=0; }} }} }}\n"
        ),
    );
    let _nginx = start(Command::new(nginx).args(["-c", &format!("{at}/nginx.conf"), "-p", &at.to_string()]), port);
    let vcl = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
               sub vcl_backend_response { set beresp.keep = 1h; if (bereq.url ~ \"^/short\") { set beresp.ttl = 0.001s; set beresp.grace = 0s; } }";
    let daemon = Daemon::with_vcl(vcl, port, &[]);
    assert_eq!(daemon.get("/page.html").text(), "<h1>hello</h1>\n");
    let again = daemon.get("/page.html");
    assert!(again.is_hit() && again.text() == "<h1>hello</h1>\n", "{}", again.head);
    // Stored gzipped (nginx compresses), delivered plain to a client that can't unpack it, complete
    // both times.
    for _ in 0..2 {
        let answer = daemon.get("/big.txt");
        assert_eq!(answer.body.len(), big.len());
        assert!(answer.text() == big);
    }
    let part = daemon
        .request("GET /big.txt HTTP/1.1\r\nHost: example.com\r\nRange: bytes=100-199\r\nConnection: close\r\n\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, &big[100..200]), "{}", part.head);
    // An expired object with a validator is revalidated, not fetched again: nginx responds with
    // 304.
    assert_eq!(daemon.get("/short/page.html").text(), "<h1>hello</h1>\n");
    eventually("a 304 from nginx", || {
        assert_eq!(daemon.get("/short/page.html").text(), "<h1>hello</h1>\n");
        let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
        log.contains("GET /short/page.html HTTP/1.1\" 304").then_some(())
    });
    // A client's own condition is evaluated in the cache.
    let etag = daemon.get("/page.html").header("etag").unwrap().to_owned();
    let conditional = daemon.request(&format!(
        "GET /page.html HTTP/1.1\r\nHost: example.com\r\nIf-None-Match: {etag}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!((conditional.status, conditional.body.len()), (304, 0));
    assert_eq!(daemon.get("/missing").status, 404);
}

const PHP_PAGE: &str = "<?php
if (isset($_COOKIE['login'])) { header('Cache-Control: private'); echo 'hello ' . $_COOKIE['login']; exit; }
if ($_SERVER['REQUEST_METHOD'] == 'POST') { echo 'got ' . strlen(file_get_contents('php://input')); exit; }
header('Cache-Control: max-age=600');
if (isset($_GET['session'])) { setcookie('session', 'secret'); }
echo 'made at ' . hrtime(true);
";

/// The behaviour that every PHP application relies on, with any server.
fn php_application(daemon: &Daemon, path: &str) {
    let first = daemon.get(path).text();
    assert!(first.starts_with("made at "), "{first}");
    assert_eq!(daemon.get(path).text(), first, "the page is made once");
    let session = format!("{path}?session=1");
    let one = daemon.get(&session);
    assert!(one.header("set-cookie").is_some());
    assert_ne!(daemon.get(&session).text(), one.text(), "a page that sets a cookie is not shared");
    for name in ["alice", "bob"] {
        let answer = daemon.request(&format!(
            "GET {path} HTTP/1.1\r\nHost: example.com\r\nCookie: login={name}\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!((answer.text(), answer.is_hit()), (format!("hello {name}"), false));
    }
    let body = "x".repeat(100_000);
    let posted = daemon.request(&format!(
        "POST {path} HTTP/1.1\r\nHost: example.com\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(posted.text(), "got 100000");
}

#[test]
fn a_php_application_behind_its_own_server_is_cached_as_it_says() {
    let Some(php) = needs("php") else { return };
    let folder = folder();
    let port = free_port();
    write(&folder.path().join("index.php"), PHP_PAGE);
    let _php = start(Command::new(php).args(["-S", &format!("127.0.0.1:{port}"), "-t"]).arg(folder.path()), port);
    let daemon = Daemon::in_front_of(port, &[]);
    php_application(&daemon, "/index.php");
    // Not in Apache: a CGI program gets no length for a chunked body, and reads none of it.
    let chunked = daemon.request(
        "POST /index.php HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n",
    );
    assert_eq!(chunked.text(), "got 8");
}

/// As WordPress behind a proxy: the proxy decides if the request is https, and everything else is
/// redirected there.
const PHP_HTTPS_ONLY: &str = "<?php
if (isset($_SERVER['HTTP_X_FORWARDED_PROTO']) && $_SERVER['HTTP_X_FORWARDED_PROTO'] === 'https') { $_SERVER['HTTPS'] = 'on'; }
header('Cache-Control: max-age=600');
if (empty($_SERVER['HTTPS'])) { header('Location: https://' . $_SERVER['HTTP_HOST'] . $_SERVER['REQUEST_URI'], true, 301); exit; }
echo 'made at ' . hrtime(true);
";

#[test]
fn https_before_a_php_application_that_insists_on_https_does_not_loop() {
    let (Some(php), Some(curl), Some(_)) = (needs("php"), needs("curl"), needs("openssl")) else { return };
    let folder = folder();
    let (port, secure, redirecting) = (free_port(), free_port(), free_port());
    write(&folder.path().join("index.php"), PHP_HTTPS_ONLY);
    let _php = start(Command::new(php).args(["-S", &format!("127.0.0.1:{port}"), "-t"]).arg(folder.path()), port);
    crate::tls_certificates::certificate(folder.path(), "site", "shop.example");
    let https = format!("127.0.0.1:{secure},https");
    let http = format!("127.0.0.1:{redirecting},redirect=https:{secure}");
    let daemon = Daemon::in_front_of(port, &["-p", "http_policy=rfc", "-a", &https, "-a", &http]);
    let pem = folder.path().join("site.pem").display().to_string();
    for words in [&["tls.cert.load", &pem][..], &["tls.cert.commit"]] {
        let (is_good, text) = daemon.cli(words);
        assert!(is_good, "{text}");
    }
    let ask = |url: &str, more: &[&str]| {
        let mut command = Command::new(&curl);
        command.args(["-sk", "-m", "60", "-w", " %{http_code} %{num_redirects} %{redirect_url}"]).args(more);
        for port in [secure, redirecting, daemon.port] {
            command.args(["--resolve", &format!("shop.example:{port}:127.0.0.1")]);
        }
        String::from_utf8(command.arg(url).output().unwrap().stdout).unwrap()
    };
    // The redirect is stored first, and must not answer https requests.
    let to_https = "https://shop.example/index.php";
    let plain = format!("http://shop.example:{}/index.php", daemon.port);
    let redirect = ask(&plain, &["-H", "Host: shop.example", "-H", "X-Forwarded-Proto: https"]);
    assert_eq!(redirect, format!(" 301 0 {to_https}"), "a client's own word does not count");
    let page = ask(&format!("https://shop.example:{secure}/index.php"), &["-L"]);
    assert!(page.starts_with("made at ") && page.ends_with(" 200 0 "), "{page}");
    assert_eq!(ask(&format!("https://shop.example:{secure}/index.php"), &["-L"]), page, "it is made once");
    assert_eq!(ask(&plain, &["-H", "Host: shop.example"]), redirect);
    assert_eq!(daemon.counter_reaching("MAIN.cache_hit", 2), 2);
    // The listener redirects without the application.
    let page_by_redirect = ask(&format!("http://shop.example:{redirecting}/index.php"), &["-L"]);
    assert_eq!(page_by_redirect, page.replace(" 200 0 ", " 200 1 "));
}

/// A shop as PHP applications are: one page for all visitors, and a corner that shows the logged-in
/// user of the session.
const SHOP: [(&str, &str); 3] = [
    (
        "shop.php",
        "<?php header('Cache-Control: max-age=600');
        echo '<h1>Shop</h1><div><esi:include src=\"/corner.php\"/></div>made at ' . hrtime(true);",
    ),
    ("corner.php", "<?php session_start(); echo isset($_SESSION['name']) ? 'Hello ' . $_SESSION['name'] : 'Log in';"),
    ("login.php", "<?php session_start(); $_SESSION['name'] = $_POST['name']; echo 'welcome';"),
];

/// As `docs/guide/esi.md` has it.
const SHOP_VCL: &str = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
sub vcl_recv { if (req.url == \"/shop.php\") { unset req.http.Cookie; } }
sub vcl_backend_response { if (bereq.url == \"/shop.php\") { set beresp.do_esi = true; } }";

#[test]
fn a_php_page_with_a_corner_for_who_is_logged_in_is_shared_and_its_corner_is_not() {
    let Some(php) = needs("php") else { return };
    let folder = folder();
    let port = free_port();
    for (name, text) in SHOP {
        write(&folder.path().join(name), text);
    }
    let sessions = format!("session.save_path={}", folder.path().display());
    let listen = format!("127.0.0.1:{port}");
    let _php = start(Command::new(php).args(["-d", &sessions, "-S", &listen, "-t"]).arg(folder.path()), port);
    let daemon = Daemon::with_vcl(SHOP_VCL, port, &[]);
    let log_in = |name: &str| {
        let body = format!("name={name}");
        let welcome = daemon.request(&format!(
            "POST /login.php HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(welcome.text(), "welcome", "{}", welcome.head);
        welcome.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let cookies = [log_in("alice"), log_in("bob")];
    let visit = |cookie: &str| {
        let page = daemon.request(&format!(
            "GET /shop.php HTTP/1.1\r\nHost: example.com\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(page.header("set-cookie"), None, "the corner's cookie is not the page's");
        page
    };
    let made = |page: &str| page.split_once("made at ").unwrap().1.to_owned();
    let first = visit(&cookies[0]).text();
    for _ in 0..2 {
        for (cookie, corner) in [(&*cookies[0], "Hello alice"), (&cookies[1], "Hello bob"), ("other=1", "Log in")] {
            let page = visit(cookie);
            assert!(page.text().starts_with(&format!("<h1>Shop</h1><div>{corner}</div>")), "{}", page.text());
            assert!(page.is_hit() && made(&page.text()) == made(&first), "the page around it is made once");
        }
    }
}

#[test]
fn a_php_application_in_apache_is_cached_as_it_says() {
    let Some(apache) = needs("apache2") else { return };
    if needs("php-cgi").is_none() {
        return;
    }
    let folder = folder();
    let at = folder.path().display();
    let port = free_port();
    std::fs::create_dir(folder.path().join("www")).unwrap();
    write(&folder.path().join("www/index.php"), PHP_PAGE);
    write(&folder.path().join("mime.types"), "");
    let modules = "/usr/lib/apache2/modules";
    let load = |name: &str| {
        let file = format!("{modules}/mod_{name}.so");
        if Path::new(&file).exists() { format!("LoadModule {name}_module {file}\n") } else { String::new() }
    };
    let modules: String = ["mpm_event", "authz_core", "mime", "dir", "alias", "cgi", "cgid", "actions", "env", "unixd"]
        .map(load)
        .concat();
    write(
        &folder.path().join("httpd.conf"),
        &format!(
            "ServerRoot {at}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {at}/pid\nErrorLog {at}/error.log\n{modules}\
             TypesConfig {at}/mime.types\n\
             ScriptSock {at}/cgisock\nUser nobody\nGroup nogroup\nDocumentRoot {at}/www\n\
             <Directory {at}/www>\nRequire all granted\nOptions +ExecCGI\n</Directory>\n\
             ScriptAlias /run-php/ /usr/bin/\n<Directory /usr/bin>\nRequire all granted\n</Directory>\n\
             AddHandler php-script .php\nAction php-script /run-php/php-cgi\n\
             SetEnv REDIRECT_STATUS 200\n"
        ),
    );
    let mut command = Command::new(apache);
    let _apache = Asked(start(command.args(["-D", "FOREGROUND", "-f", &format!("{at}/httpd.conf")]), port));
    let daemon = Daemon::in_front_of(port, &[]);
    let probe = daemon.get("/index.php");
    assert_eq!(
        probe.status,
        200,
        "{}\n{}",
        probe.text(),
        std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default()
    );
    php_application(&daemon, "/index.php");
}

#[test]
fn pythons_server_is_cached_by_its_last_modified_and_the_default_ttl() {
    let Some(python) = needs("python3") else { return };
    let folder = folder();
    let port = free_port();
    write(&folder.path().join("file.txt"), "from python\n");
    let _python = start(
        Command::new(python)
            .args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"])
            .arg(folder.path())
            .arg(port.to_string()),
        port,
    );
    let daemon = Daemon::in_front_of(port, &["-t", "60"]);
    assert_eq!(daemon.get("/file.txt").text(), "from python\n");
    write(&folder.path().join("file.txt"), "changed\n");
    let hit = daemon.get("/file.txt");
    assert_eq!((hit.text().as_str(), hit.is_hit()), ("from python\n", true));
    assert!(daemon.cli(&["ban", "req.url", "~", "^/file"]).0);
    assert_eq!(daemon.get("/file.txt").text(), "changed\n");
}

const NODE_SERVER: &str = "
const http = require('http'), crypto = require('crypto');
const server = http.createServer((request, response) => {
  if (request.url == '/slow-stream') {
    response.writeHead(200, { 'Cache-Control': 'max-age=60' });
    let n = 0;
    const timer = setInterval(() => { response.write('part ' + n + '\\n'); if (++n == 5) { clearInterval(timer); response.end(); } }, 30);
  } else if (request.url == '/echo') {
    response.writeHead(200, { 'Cache-Control': 'no-store' });
    request.pipe(response);
  } else {
    response.writeHead(200, { 'Cache-Control': 'max-age=60', 'Vary': 'Accept-Language' });
    response.end('language ' + request.headers['accept-language']);
  }
});
server.on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'];
  const accept = crypto.createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  socket.on('data', (data) => socket.write(data));
  socket.on('error', () => {});
});
server.listen(Number(process.argv[2]), '127.0.0.1');
";

#[test]
fn a_node_server_streams_varies_echoes_and_upgrades_to_websocket() {
    let Some(node) = needs("node") else { return };
    let folder = folder();
    let port = free_port();
    let script = folder.path().join("server.js");
    write(&script, NODE_SERVER);
    let _node = start(Command::new(node).arg(&script).arg(port.to_string()), port);
    let vcl = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
               sub vcl_recv { if (req.http.Upgrade ~ \"(?i)websocket\") { return (pipe); } }
               sub vcl_pipe { if (req.http.Upgrade) { set bereq.http.Upgrade = req.http.Upgrade; set bereq.http.Connection = req.http.Connection; } }";
    let daemon = Daemon::with_vcl(vcl, port, &[]);
    let whole = "part 0\npart 1\npart 2\npart 3\npart 4\n";
    assert_eq!(daemon.get("/slow-stream").text(), whole);
    assert!(daemon.get("/slow-stream").is_hit());
    for language in ["fr", "de", "fr", "de"] {
        let answer = daemon.request(&format!(
            "GET /page HTTP/1.1\r\nHost: example.com\r\nAccept-Language: {language}\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(answer.text(), format!("language {language}"));
    }
    eventually("three hits are counted", || (daemon.counter("MAIN.cache_hit") == 3).then_some(()));
    let echoed = daemon.request(
        "POST /echo HTTP/1.1\r\nHost: example.com\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello there",
    );
    assert_eq!(echoed.text(), "hello there");
    web_socket(daemon.port);
}

/// Switches a connection to WebSocket and reads the echo of its bytes, several times in both
/// directions.
fn web_socket(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream
        .write_all(
            b"GET /socket HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .unwrap();
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&received);
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    for frame in [&b"\x81\x85abcd\x09\x07\x0f\x08\x0e"[..], b"\x81\x80wxyz"] {
        stream.write_all(frame).unwrap();
        let mut back = vec![0; frame.len()];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, frame);
    }
}

#[test]
fn curl_sees_what_a_browser_would() {
    let Some(curl) = needs("curl") else { return };
    let origin = crate::daemon::Origin::start(|_| crate::daemon::ok("Cache-Control: max-age=60\r\n", "hello curl\n"));
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let url = format!("http://127.0.0.1:{}/", daemon.port);
    let run = |arguments: &[&str]| {
        let output = Command::new(&curl).args(["-sS", "--max-time", "10"]).args(arguments).arg(&url).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&[]), "hello curl\n");
    assert!(run(&["-I"]).starts_with("HTTP/1.1 200"));
    assert_eq!(run(&["--http1.0"]), "hello curl\n");
    assert_eq!(run(&["--compressed"]), "hello curl\n");
    assert_eq!(run(&["-H", "Expect: 100-continue", "-d", "some=form"]), "hello curl\n");
}

#[test]
fn an_origin_that_misbehaves_gives_a_503_with_the_reason_in_the_log() {
    for (name, bytes, reason) in
        [("garbage", "this is not HTTP\r\n\r\n", "http format error"), ("empty", "", "HTC eof (-1)")]
    {
        let origin = crate::daemon::Origin::start(|_| bytes.as_bytes().to_vec());
        let daemon = Daemon::in_front_of(origin.port, &[]);
        let failed = daemon.get("/");
        assert_eq!(failed.status, 503, "{name}: {}", failed.head);
        let log = daemon.applet("log", &["-d", "-g", "raw", "-i", "FetchError"]);
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        assert!(text.contains(reason), "{name}: {text}");
    }
    let refused = Daemon::in_front_of(CLOSED_PORT, &[]);
    assert_eq!(refused.get("/").status, 503);
    // A body shorter than its length is never kept: the next client does not get the truncated one
    // from the cache.
    let origin = TornOrigin::start();
    let daemon = Daemon::in_front_of(origin.port, &[]);
    for _ in 0..2 {
        let answer = exchange(daemon.port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.starts_with("HTTP/1.1 503") || text.ends_with("half"), "{text}");
    }
    assert_eq!(daemon.counter("MAIN.cache_hit"), 0);
}

/// Promises ten bytes and closes after four.
struct TornOrigin {
    port: u16,
}

impl TornOrigin {
    fn start() -> TornOrigin {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer);
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhalf");
            }
        });
        TornOrigin { port }
    }
}
