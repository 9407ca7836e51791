//! Bodies in brotli and Zstandard with real clients: curl requests them, and curl, node and zstd
//! decode them. Missing programs are reported. The rules one by one:
//! `crates/engine/tests/codings.rs`.

use crate::daemon::{Answer, Daemon, Origin, eventually, needs, ok};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A page long enough to be worth a copy, whose brotli form is long enough to be worth one in gzip.
fn page() -> String {
    let mut state = 7_u32;
    let mut words = String::from("<html>\n");
    while words.len() < 40_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words.push_str(&format!("<p>number {} of a page</p>\n", state >> 12));
    }
    words
}

const HEAD: &str = "Content-Type: text/html\r\nETag: \"page\"\r\nCache-Control: max-age=600\r\n";

const ENCODINGS: [&str; 4] = ["-p", "http_encodings=zstd br gzip", "-p", "compress_cpu=100"];

/// A program that packs or unpacks from standard input to standard output; `None` if it is missing.
struct Filter {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Filter {
    fn packs(encoding: &str) -> Option<Filter> {
        Filter::new(encoding, "brotliCompressSync", "-c")
    }

    fn unpacks(encoding: &str) -> Option<Filter> {
        Filter::new(encoding, "brotliDecompressSync", "-dc")
    }

    fn new(encoding: &str, function: &str, flag: &str) -> Option<Filter> {
        let (name, arguments) = match encoding {
            "br" => {
                let script = format!("process.stdout.write(require('zlib').{function}(require('fs').readFileSync(0)))");
                ("node", vec!["-e".to_owned(), script])
            }
            "zstd" => ("zstd", vec!["-q".to_owned(), flag.to_owned()]),
            _ => ("gzip", vec![flag.to_owned()]),
        };
        Some(Filter { program: needs(name)?, arguments })
    }

    fn run(&self, input: &[u8]) -> Vec<u8> {
        let mut command = Command::new(&self.program);
        let mut child = command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = input.to_vec();
        // Concurrently with reading: neither pipe holds all of it.
        let writer = std::thread::spawn(move || pipe.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{:?} ended with {}", self.program, output.status);
        output.stdout
    }
}

/// curl in front of one Copal.
struct Curl {
    program: PathBuf,
    daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Curl {
    fn new(program: PathBuf, daemon: Daemon) -> Curl {
        Curl { program, daemon, folder: tempfile::tempdir().unwrap() }
    }

    /// Requests a path; the body is curl's output, decoded with `--compressed`.
    fn ask(&self, path: &str, arguments: &[&str]) -> Answer {
        let head = self.folder.path().join("head");
        let output = Command::new(&self.program)
            .args(["-sS", "--max-time", "20", "-D"])
            .arg(&head)
            .args(arguments)
            .arg(format!("http://127.0.0.1:{}{path}", self.daemon.port))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let mut answer = Answer::parse(&without_chunks(&head));
        if !arguments.contains(&"-I") {
            answer.body = output.stdout;
        }
        answer
    }

    fn accepting(&self, path: &str, encoding: &str, arguments: &[&str]) -> Answer {
        let accept = format!("Accept-Encoding: {encoding}");
        self.ask(path, &[&["-H", accept.as_str()], arguments].concat())
    }

    /// True if this curl can decode a coding itself.
    fn knows(&self, encoding: &str) -> bool {
        let feature = match encoding {
            "br" => "brotli",
            "gzip" => "libz",
            other => other,
        };
        let output = Command::new(&self.program).arg("--version").output().unwrap();
        String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == feature)
    }

    /// Checks that a body in this coding decodes to the page, with curl itself and with `filter`.
    fn unpacks_to(&self, path: &str, encoding: &str, filter: &Filter, page: &str) -> Answer {
        let packed = self.accepting(path, encoding, &[]);
        assert_eq!((packed.status, packed.header("content-encoding")), (200, Some(encoding)), "{}", packed.head);
        assert_eq!(packed.header("vary"), Some("Accept-Encoding"), "{}", packed.head);
        assert_eq!(packed.header("content-length"), Some(packed.body.len().to_string().as_str()));
        assert!(packed.body.len() < page.len() / 2, "{encoding}: {} bytes", packed.body.len());
        assert!(filter.run(&packed.body) == page.as_bytes(), "{encoding}: it unpacks to something else");
        if self.knows(encoding) {
            assert!(self.accepting(path, encoding, &["--compressed"]).text() == page, "{encoding}: curl unpacks it");
        } else {
            println!("skipped: this curl does not know {encoding}");
        }
        packed
    }

    /// HEAD and a conditional request get the same headers as the GET.
    fn agrees(&self, path: &str, encoding: &str, get: &Answer) {
        let head = self.accepting(path, encoding, &["-I"]);
        for name in ["content-encoding", "content-length", "etag", "vary", "content-type"] {
            assert_eq!(head.header(name), get.header(name), "{encoding}: {name} of HEAD");
        }
        let tag = get.header("etag").unwrap();
        let unchanged = self.accepting(path, encoding, &["-H", &format!("If-None-Match: {tag}")]);
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{}", unchanged.head);
        assert_eq!(unchanged.header("etag"), Some(tag), "{encoding}");
        let other = self.accepting(path, encoding, &["-H", "If-None-Match: \"other\""]);
        assert_eq!((other.status, &other.body), (200, &get.body), "{encoding}");
    }
}

/// The head that curl has written; it has removed the chunked coding of the body.
fn without_chunks(head: &Path) -> Vec<u8> {
    let text = std::fs::read_to_string(head).unwrap();
    text.replace("Transfer-Encoding: chunked\r\n", "").into_bytes()
}

#[test]
fn page_that_is_asked_for_often_comes_to_curl_in_the_coding_that_it_accepts() {
    let Some(curl) = needs("curl") else { return };
    let origin = Origin::start(|_| ok(HEAD, &page()));
    let curl = Curl::new(curl, Daemon::in_front_of(origin.port, &ENCODINGS));
    let mut copies = 0;
    for encoding in ["br", "zstd", "gzip"] {
        let Some(filter) = Filter::unpacks(encoding) else { continue };
        let path = format!("/{encoding}");
        // A miss and two hits; the third hit starts the copy, which later ones get.
        for _ in 0..3 {
            let plain = curl.accepting(&path, encoding, &["--compressed"]);
            assert_eq!((plain.header("content-encoding"), plain.header("etag")), (None, Some("\"page\"")));
            assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "{}", plain.head);
            assert!(plain.text() == page(), "{encoding}: it is the page before there is a copy");
        }
        eventually("there is a copy", || {
            let answer = curl.accepting(&path, encoding, &[]);
            answer.header("content-encoding").is_some().then_some(())
        });
        copies += 1;
        let copy = curl.unpacks_to(&path, encoding, &filter, &page());
        assert_eq!((copy.header("etag"), copy.header("accept-ranges")), (Some("W/\"page\""), None));
        curl.agrees(&path, encoding, &copy);
        // All other clients, and those that request a range, get the page.
        let plain = curl.ask(&path, &[]);
        assert!(plain.text() == page() && plain.header("content-encoding").is_none(), "{}", plain.head);
        assert_eq!((plain.header("etag"), plain.header("vary")), (Some("\"page\""), Some("Accept-Encoding")));
        let part = curl.accepting(&path, encoding, &["-r", "100-199"]);
        assert_eq!((part.status, part.text().as_str()), (206, &page()[100..200]), "{}", part.head);
        assert_eq!((part.header("content-encoding"), part.header("etag")), (None, Some("\"page\"")));
        let weak = curl.accepting(&path, encoding, &["-r", "100-199", "-H", "If-Range: W/\"page\""]);
        assert_eq!((weak.status, weak.text() == page()), (200, true), "{}", weak.head);
    }
    assert_eq!(curl.daemon.counter_reaching("MAIN.n_copies", copies), copies);
    assert_eq!(origin.count() as u64, copies, "each page was fetched once");
    let asked = origin.requests.lock().unwrap();
    assert!(asked.iter().all(|head| head.contains("Accept-Encoding: zstd, br, gzip")), "{asked:?}");
}

#[test]
fn compressed_body_is_passed_on_and_decompressed_for_clients_without_support() {
    let Some(curl) = needs("curl") else { return };
    for encoding in ["br", "zstd"] {
        let (Some(packs), Some(unpacks)) = (Filter::packs(encoding), Filter::unpacks(encoding)) else { continue };
        let packed = packs.run(page().as_bytes());
        let head = format!(
            "HTTP/1.1 200 OK\r\n{HEAD}Content-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n",
            packed.len()
        );
        let answer = [head.as_bytes(), &packed[..]].concat();
        let origin = Origin::start(move |_| answer.clone());
        let curl = Curl::new(curl.clone(), Daemon::in_front_of(origin.port, &ENCODINGS));
        for _ in 0..2 {
            let as_it_is = curl.unpacks_to("/", encoding, &unpacks, &page());
            assert!(as_it_is.body == packed && as_it_is.header("etag") == Some("\"page\""), "{}", as_it_is.head);
            curl.agrees("/", encoding, &as_it_is);
        }
        let part = curl.accepting("/", encoding, &["-r", "10-19"]);
        assert_eq!((part.status, &part.body[..]), (206, &packed[10..20]), "{}", part.head);
        let plain = curl.ask("/", &[]);
        assert!(plain.text() == page() && plain.header("content-encoding").is_none(), "{}", plain.head);
        assert_eq!((plain.header("etag"), plain.header("vary")), (Some("W/\"page\""), Some("Accept-Encoding")));
        let part = curl.ask("/", &["-r", "10-19"]);
        assert_eq!((part.status, part.text() == page()), (200, true), "{}", part.head);
        let head = curl.ask("/", &["-I"]);
        assert_eq!((head.header("content-encoding"), head.header("etag")), (None, Some("W/\"page\"")));
        // A client that accepts only gzip gets a copy in that.
        eventually("there is a copy in gzip", || {
            let answer = curl.accepting("/", "gzip", &["--compressed"]);
            assert!(answer.text() == page(), "before there is one, and from then on: {}", answer.head);
            (answer.header("content-encoding") == Some("gzip")).then_some(())
        });
        assert_eq!(origin.count(), 1);
    }
}

#[test]
fn page_that_nginx_has_gzipped_gets_a_copy_in_brotli() {
    let (Some(curl), Some(nginx)) = (needs("curl"), needs("nginx")) else { return };
    let Some(unpacks) = Filter::unpacks("br") else { return };
    let folder = crate::origins::folder();
    let (at, port) = (folder.path().display(), crate::daemon::free_port());
    std::fs::write(folder.path().join("page.html"), page()).unwrap();
    let configuration = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}}\n\
         http {{ access_log off; types {{ text/html html; }} gzip on; client_body_temp_path {at}/a; proxy_temp_path {at}/b;\n\
         fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;\n\
         server {{ listen 127.0.0.1:{port}; root {at}; gzip_proxied any; expires 1h; }} }}\n"
    );
    std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let mut command = Command::new(nginx);
    let _nginx = crate::origins::start(command.args(["-c", &format!("{at}/nginx.conf"), "-p", &at.to_string()]), port);
    let curl = Curl::new(curl, Daemon::in_front_of(port, &ENCODINGS));
    let gzipped = curl.accepting("/page.html", "gzip, br", &[]);
    assert_eq!(gzipped.header("content-encoding"), Some("gzip"), "{}", gzipped.head);
    eventually("there is a copy in brotli", || {
        let answer = curl.accepting("/page.html", "gzip, br", &[]);
        (answer.header("content-encoding") == Some("br")).then_some(())
    });
    let copy = curl.unpacks_to("/page.html", "br", &unpacks, &page());
    assert!(copy.body.len() < gzipped.body.len(), "{} and {} bytes", copy.body.len(), gzipped.body.len());
    assert_eq!(curl.accepting("/page.html", "gzip", &[]).body, gzipped.body);
    assert!(curl.ask("/page.html", &["--compressed"]).text() == page());
    assert!(curl.ask("/page.html", &[]).text() == page());
}

#[test]
fn brotli_and_zstandard_are_sent_only_if_enabled() {
    let Some(curl) = needs("curl") else { return };
    let origin = Origin::start(|_| ok(HEAD, &page()));
    let curl = Curl::new(curl, Daemon::in_front_of(origin.port, &["-p", "compress_after=0"]));
    for _ in 0..5 {
        let answer = curl.accepting("/", "zstd, br, gzip", &["--compressed"]);
        assert!(answer.text() == page() && answer.header("content-encoding").is_none(), "{}", answer.head);
        assert_eq!(answer.header("vary"), None);
    }
    assert_eq!(curl.daemon.counter("MAIN.n_copies"), 0);
    assert!(origin.requests.lock().unwrap().iter().all(|head| head.contains("Accept-Encoding: gzip\r\n")));
}
