//! Bodies in a file (disk tier): every kind of delivery, failing reads, the placement of responses,
//! and copies in memory.

use crate::support::{OriginRequest, World, serve_each};
use cache::Cache;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{FileOptions, FileUsage, Journal, Store};
use surface::closed_set::Advice;
use surface::counter::Main;
use surface::limits::TEST_HANG_SECONDS;
use surface::parameter::Parameters;
use tokio::task::LocalSet;
use tokio::time::sleep;

const PIECE: usize = 64 << 10;
/// Bodies begin at multiples of it in the file.
const GRANULARITY: usize = 4096;
/// Bytes of a body that are unique in the file.
const MARK: usize = 24;

/// A world with one storage in memory, `s0`, and one in a file, `file`.
struct Setting {
    world: Rc<World>,
    file: TheFile,
    asked: Rc<RefCell<Vec<String>>>,
}

/// The file of the storage.
struct TheFile {
    file: File,
    path: PathBuf,
    options: FileOptions,
}

impl Drop for TheFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A new file in the directory for such files.
fn new_file(name: &str) -> (File, PathBuf) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let path = std::env::temp_dir().join(format!("copal-engine-{}-{number}-{name}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    (file, path)
}

/// A file that can be made to refuse writes: [`TheFile::refuse_writes`].
fn sealable_file() -> (File, PathBuf) {
    let descriptor = rustix::fs::memfd_create("bodies", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into();
    (descriptor.into(), path)
}

fn file_store(journal: &Journal, (file, path): (File, PathBuf)) -> (Store, TheFile) {
    let (metadata, metadata_path) = new_file("metadata");
    std::fs::remove_file(metadata_path).unwrap();
    let options = FileOptions {
        bytes: 16 << 20,
        metadata_bytes: 4 << 20,
        granularity_bytes: GRANULARITY as u64,
        advice: Advice::Random,
        journal: journal.identity(),
    };
    let opened = Store::open_disk_tier(metadata.into(), file.try_clone().unwrap().into(), "file", &options);
    (opened.unwrap().0, TheFile { file, path, options })
}

impl TheFile {
    /// The offset in the file of the bytes at this offset of a body.
    fn find(&self, body: &[u8], offset: usize) -> Option<u64> {
        let mut all = vec![0; self.file.metadata().unwrap().len() as usize];
        self.file.read_exact_at(&mut all, 0).unwrap();
        let mark = &body[offset..offset + MARK];
        let places = (offset % GRANULARITY..all.len() - MARK).step_by(GRANULARITY);
        places.into_iter().find(|at| &all[*at..at + MARK] == mark).map(|at| at as u64)
    }

    /// Waits until a body is in the file.
    async fn await_written(&self, world: &World, body: &[u8]) {
        for offset in (0..body.len() - MARK).step_by(PIECE).chain([body.len() - MARK]) {
            while self.find(body, offset).is_none() {
                assert!(world.engine.cache.stores()[1].settle().await);
            }
        }
    }

    /// Damages a body at this byte, wherever it is stored.
    async fn damage(&self, world: &World, body: &[u8], offset: usize) {
        self.await_written(world, body).await;
        assert!(world.engine.cache.stores()[1].settle().await);
        while let Some(at) = self.find(body, offset) {
            self.file.write_all_at(&[b'!'; MARK], at).unwrap();
        }
    }

    /// Number of objects that would exist after a power failure now.
    fn objects_after_power_loss(&self) -> usize {
        let (metadata, metadata_path) = new_file("metadata");
        let (copy, path) = new_file("copy");
        std::fs::copy(&self.path, &path).unwrap();
        let opened = Store::open_disk_tier(metadata.into(), copy.into(), "copy", &self.options).unwrap();
        for path in [metadata_path, path] {
            std::fs::remove_file(path).unwrap();
        }
        assert_eq!(opened.1.anew, None);
        opened.1.objects.len()
    }

    /// Makes the kernel drop its cache of the file. Not all file systems do that.
    fn cool(&self) {
        let of = format!("of={}", self.path.display());
        let arguments = [&of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"];
        assert!(Command::new("dd").arg("if=/dev/null").args(arguments).status().unwrap().success());
    }

    /// Makes the file refuse every write, like a full disk.
    fn refuse_writes(&self) {
        rustix::fs::fcntl_add_seals(&self.file, rustix::fs::SealFlags::WRITE).unwrap();
    }

    /// Number of pieces that have been read.
    fn reads(&self, world: &World) -> u64 {
        let usage = usage(world);
        usage.warm_reads + usage.cold_reads
    }
}

fn usage(world: &World) -> FileUsage {
    world.engine.cache.stores()[1].file_usage().unwrap()
}

fn tell<F: Future<Output = ()>>(change: impl FnOnce(&mut Parameters), vcl: &str, story: impl FnOnce(Setting) -> F) {
    tell_on(new_file("bodies"), change, vcl, story);
}

fn tell_on<F: Future<Output = ()>>(
    bodies: (File, PathBuf),
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Setting) -> F,
) {
    tell_in(64 << 20, bodies, change, vcl, story);
}

fn tell_in<F: Future<Output = ()>>(
    memory_bytes: u64,
    bodies: (File, PathBuf),
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Setting) -> F,
) {
    let mut parameters = Parameters { storage_placement: "tiers".to_owned(), ..Parameters::default() };
    // A copy in memory would hide the file.
    parameters.storage_promote_hits = 0;
    change(&mut parameters);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let journal = Journal::in_memory().unwrap();
        let (on_disk, file) = file_store(&journal, bodies);
        let stores = vec![Store::in_memory_as("s0", memory_bytes).unwrap(), on_disk];
        let cache = Cache::new(stores, journal, crate::support::START).unwrap();
        let world = Rc::new(World::over(parameters, cache));
        world.load("boot", vcl);
        let asked = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&asked);
        world.origin(serve_each(move |request| {
            seen.borrow_mut().push(request.target().to_owned());
            answer(request)
        }));
        story(Setting { world, file, asked }).await;
    });
}

/// A body of that length whose positions are all distinguishable, and which hardly compresses.
fn body(bytes: usize) -> Vec<u8> {
    let mut state = bytes as u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(next).collect()
}

fn text() -> Vec<u8> {
    (0..20_000).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

const LARGE: usize = 5 * PIECE + 100;

/// `/<n>` is a body of that many bytes; others are named.
fn answer(request: &OriginRequest) -> Vec<u8> {
    let fields = "ETag: \"a\"\r\nCache-Control: max-age=100\r\nxkey: tag\r\n";
    let whole = |more: &str, body: &[u8]| {
        [format!("HTTP/1.1 200 OK\r\n{fields}{more}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
    };
    if request.header("if-none-match").is_some() {
        return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes();
    }
    match request.target().trim_start_matches('/') {
        "zipped" => whole("Content-Encoding: gzip\r\n", &zipped(&body(LARGE))),
        "page" => {
            let text = [b"<p>before</p><esi:include src=\"/100000\"/>", &body(LARGE)[..], b"<p>after</p>"].concat();
            whole("X-Esi: yes\r\n", &text)
        }
        "text" => whole("Content-Type: text/plain\r\n", &text()),
        "unsized" => {
            let mut answer = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            answer.extend_from_slice(b"5\r\nhello\r\n0\r\n\r\n");
            answer
        }
        number => whole("", &body(number.parse().unwrap())),
    }
}

/// Number of objects in each storage: `s0`, and the file.
fn objects(world: &World) -> Vec<u64> {
    let cache = &world.engine.cache;
    let of = |number: u16| cache.stores()[usize::from(number)].usage().g_alloc;
    vec![of(0), of(1)]
}

#[test]
fn every_kind_of_delivery_reads_a_body_in_a_file() {
    tell(
        |_| {},
        "",
        async |setting| {
            let world = &setting.world;
            let whole = body(LARGE);
            let url = format!("/{LARGE}");
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get(&url, "").await;
                assert!(response.is_whole && response.body == whole, "{}", world.story());
            }
            assert_eq!(objects(world), [0, 1]);
            setting.file.await_written(world, &whole).await;
            // Nothing is read for a response without a body.
            let reads = setting.file.reads(world);
            client.send(format!("HEAD {url} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let head = client.response_to_head().await;
            assert_eq!(head.header("content-length"), Some(LARGE.to_string().as_str()));
            assert_eq!(client.get(&url, "If-None-Match: \"a\"\r\n").await.status(), 304);
            assert_eq!(setting.file.reads(world), reads);
            // A range in the middle costs the pieces that it touches.
            let begin = 3 * PIECE - 10;
            let part = client.get(&url, &format!("Range: bytes={begin}-{}\r\n", begin + 99)).await;
            assert_eq!((part.status(), &part.body[..]), (206, &whole[begin..begin + 100]));
            assert!(setting.file.reads(world) <= reads + 2, "{}", setting.file.reads(world));
            let part = client.get(&url, "Range: bytes=-7\r\n").await;
            assert_eq!((part.status(), &part.body[..]), (206, &whole[LARGE - 7..]));
            // Another transport.
            let streamed =
                world.stream_client().ask(&format!("GET {url} HTTP/1.1\r\nHost: example.com\r\n\r\n"), b"").await;
            assert!(streamed.is_whole && streamed.body == whole);
            assert_eq!(setting.asked.borrow().len(), 2, "{:?}", setting.asked.borrow());
        },
    );
}

#[test]
fn several_ranges_and_parts_come_from_a_file() {
    tell(
        |parameters| parameters.http_policy = "rfc".to_owned(),
        "",
        async |setting| {
            let (world, whole) = (&setting.world, body(LARGE));
            let url = format!("/{LARGE}");
            let mut client = world.client();
            client.get(&url, "").await;
            setting.file.await_written(world, &whole).await;
            let reads = setting.file.reads(world);
            let last = LARGE - 3;
            let parts = client.get(&url, &format!("Range: bytes=5-9,{last}-\r\n")).await;
            assert_eq!(parts.status(), 206);
            let has = |bytes: &[u8]| parts.body.windows(bytes.len()).any(|window| window == bytes);
            assert!(parts.is_whole && has(&whole[5..10]) && has(&whole[last..]), "{}", parts.text());
            assert!(setting.file.reads(world) <= reads + 2, "{}", setting.file.reads(world));
        },
    );
}

#[test]
fn body_in_a_file_is_unpacked_with_its_length_known() {
    tell(
        |_| {},
        "",
        async |setting| {
            let world = &setting.world;
            let mut client = world.client();
            for _ in 0..2 {
                let response = client.get("/zipped", "").await;
                assert!(response.is_whole && response.body == body(LARGE), "{}", world.story());
            }
            let response = client.get("/zipped", "").await;
            assert_eq!(response.header("content-length"), Some(LARGE.to_string().as_str()), "{}", response.head);
            let packed = client.get("/zipped", "Accept-Encoding: gzip\r\n").await;
            assert_eq!(packed.body, zipped(&body(LARGE)));
        },
    );
}

#[test]
fn page_in_a_file_is_put_together() {
    let vcl = "sub vcl_backend_response { set beresp.do_esi = beresp.http.X-Esi == \"yes\"; }";
    tell(
        |_| {},
        vcl,
        async |setting| {
            let world = &setting.world;
            let expected = [b"<p>before</p>", &body(100_000)[..], &body(LARGE), b"<p>after</p>"].concat();
            for _ in 0..3 {
                let response = world.client().get("/page", "").await;
                assert!(response.is_whole && response.body == expected, "{}", world.story());
            }
            assert_eq!(objects(world), [0, 2]);
            let page = [b"<p>before</p><esi:include src=\"/100000\"/>", &body(LARGE)[..], b"<p>after</p>"].concat();
            setting.file.damage(world, &page, 2 * PIECE).await;
            let response = world.client().get("/page", "").await;
            assert!(!response.is_whole);
            world.expect_log("why body-unreadable");
        },
    );
}

#[test]
fn renewed_object_gets_its_body_from_the_file() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 10s; set beresp.grace = 0s; set beresp.keep = 1h; }";
    tell(
        |_| {},
        vcl,
        async |setting| {
            let (world, whole) = (&setting.world, body(LARGE));
            let url = format!("/{LARGE}");
            for _ in 0..2 {
                let response = world.client().get(&url, "").await;
                assert!(response.is_whole && response.body == whole, "{}", world.story());
                sleep(Duration::from_secs(20)).await;
            }
            world.expect_log("BerespStatus 304");
            assert!(world.client().get(&url, "").await.body == whole);
            sleep(Duration::from_secs(20)).await;
            // A body that cannot be read cannot be renewed: the whole is requested.
            setting.file.damage(world, &whole, 0).await;
            let response = world.client().get(&url, "").await;
            assert!(response.status() == 200 && response.body == whole, "{}", world.story());
            world.expect_log("why body-unreadable");
        },
    );
}

#[test]
fn body_that_cannot_be_read_is_fetched_anew() {
    tell(
        |_| {},
        "",
        async |setting| {
            let (world, whole) = (&setting.world, body(LARGE));
            let url = format!("/{LARGE}");
            world.client().get(&url, "").await;
            setting.file.damage(world, &whole, 0).await;
            let response = world.client().get(&url, "").await;
            assert!(response.is_whole && response.body == whole, "{}", world.story());
            world.expect_log("could not be read: fetched anew");
            assert_eq!(setting.asked.borrow().len(), 2);
        },
    );
}

#[test]
fn response_breaks_off_where_its_body_cannot_be_read() {
    tell(
        |_| {},
        "",
        async |setting| {
            let (world, whole) = (&setting.world, body(LARGE));
            let url = format!("/{LARGE}");
            world.client().get(&url, "").await;
            setting.file.damage(world, &whole, 2 * PIECE).await;
            let response = world.client().get(&url, "").await;
            assert!(!response.is_whole && response.body == whole[..2 * PIECE], "{}", response.body.len());
            world.expect_log(&format!("Error Stored body of 3 could not be read from byte {} on", 2 * PIECE));
            world.expect_log(&format!("Witness why body-unreadable text=object 3, byte {}", 2 * PIECE));
            world.expect_log("SessClose REM_CLOSE");
            // The object has gone.
            let streams = world.stream_client();
            let head = format!("GET {url} HTTP/1.1\r\nHost: example.com\r\n\r\n");
            let again = streams.ask(&head, b"").await;
            assert!(again.is_whole && again.body == whole && world.count(Main::CacheMiss) == 2, "{}", world.story());
            setting.file.damage(world, &whole, 2 * PIECE).await;
            let once_more = streams.ask(&head, b"").await;
            assert!(once_more.status() == 200 && !once_more.is_whole, "a stream is reset");
        },
    );
}

#[test]
fn slow_readers_of_files_are_counted_and_bounded() {
    let limited = |parameters: &mut Parameters| parameters.requests_memory_max = 8 << 20;
    tell(limited, "", async |setting| {
        let world = &setting.world;
        let url = format!("/{}", 4 << 20);
        world.client().get(&url, "").await;
        let before = world.count(Main::ReqBytes);
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = world.client_with(1000);
            client.send(format!("GET {url} HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
            sleep(Duration::from_millis(10)).await;
            clients.push(client);
        }
        assert!(world.count(Main::ReqBytes) - before >= 40 * PIECE as u64, "{}", world.count(Main::ReqBytes));
        for _ in 0..200 {
            let mut client = world.client_with(1000);
            client.send(format!("GET {url} HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
            sleep(Duration::from_millis(10)).await;
            clients.push(client);
        }
        assert!(world.count(Main::ReqRefused) > 100, "{}", world.count(Main::ReqRefused));
        assert!(world.count(Main::ReqBytes) <= 9 << 20, "{}", world.count(Main::ReqBytes));
        drop(clients);
        sleep(Duration::from_secs(1)).await;
        assert!(world.count(Main::ReqBytes) <= before + PIECE as u64, "{}", world.count(Main::ReqBytes));
    });
}

const TELLING: &str = "sub vcl_deliver { set resp.http.Where = obj.storage; }";

#[test]
fn small_bodies_go_to_memory_and_others_to_the_file_unless_vcl_chooses() {
    let vcl = r#"
        sub vcl_backend_response {
            set beresp.http.Was = beresp.storage;
            if (bereq.http.Chosen == "file") { set beresp.storage = storage.file; }
            if (bereq.http.Chosen == "memory") { set beresp.storage = storage.s0; }
        }"#;
    tell(
        |parameters| parameters.storage_small_bytes = 1000,
        &format!("{vcl}{TELLING}"),
        async |setting| {
            let world = &setting.world;
            let cases = [
                ("/1000", "", "storage.s0", "storage.s0"),
                ("/1001", "", "storage.file", "storage.file"),
                ("/unsized", "", "storage.file", "storage.file"),
                ("/0", "", "storage.s0", "storage.s0"),
                ("/1", "Chosen: file\r\n", "storage.s0", "storage.file"),
                ("/100000", "Chosen: memory\r\n", "storage.file", "storage.s0"),
            ];
            for (url, fields, was, is) in cases {
                let response = world.client().get(url, fields).await;
                assert_eq!((response.header("was"), response.header("where")), (Some(was), Some(is)), "{url}");
            }
        },
    );
}

#[test]
fn storages_take_turns_if_configured() {
    let turns = |parameters: &mut Parameters| parameters.storage_placement = "turns".to_owned();
    tell(turns, TELLING, async |setting| {
        let mut places = Vec::new();
        for url in ["/1", "/100000", "/2", "/100001"] {
            let response = setting.world.client().get(url, "").await;
            places.push(response.header("where").unwrap().to_owned());
        }
        assert_eq!(places, ["storage.s0", "storage.file", "storage.s0", "storage.file"]);
    });
}

fn promoting(parameters: &mut Parameters) {
    parameters.storage_promote_hits = 2;
}

/// Sends requests until there is a copy in memory.
async fn have_promoted(setting: &Setting, url: &str) {
    let before = setting.world.count(Main::Promoted);
    for _ in 0..3 {
        setting.world.client().get(url, "").await;
    }
    let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
    while Instant::now() < deadline {
        if setting.world.count(Main::Promoted) > before {
            return;
        }
        // The virtual clock does not wait for the disk.
        std::thread::sleep(Duration::from_millis(1));
        sleep(Duration::from_millis(1)).await;
    }
    panic!("no copy\n{}", setting.world.story());
}

#[test]
fn body_that_is_asked_for_again_is_sent_from_memory() {
    tell(promoting, "", async |setting| {
        let (world, whole) = (&setting.world, body(LARGE));
        let url = format!("/{LARGE}");
        have_promoted(&setting, &url).await;
        assert_eq!(objects(world), [1, 1]);
        setting.file.damage(world, &whole, 0).await;
        let reads = setting.file.reads(world);
        let mut client = world.client();
        let response = client.get(&url, "").await;
        assert!(response.is_whole && response.body == whole);
        assert!(response.header("accept-ranges") == Some("bytes") && response.header("etag") == Some("\"a\""));
        world.expect_log("why hit-promoted");
        let part = client.get(&url, "Range: bytes=70000-70009\r\n").await;
        assert_eq!((part.status(), &part.body[..]), (206, &whole[70000..70010]));
        assert_eq!((setting.file.reads(world), world.count(Main::PromotedSent)), (reads, 2));
        assert_eq!(setting.asked.borrow().len(), 1);
    });
}

#[test]
fn nothing_old_comes_from_a_copy_in_memory() {
    let vcl = r#"
        sub vcl_recv {
            if (req.method == "PURGE") { return (purge); }
            if (req.method == "BAN") { ban("req.url == /" + req.http.What); return (synth(200)); }
        }
        sub vcl_backend_response { set beresp.ttl = 1h; }"#;
    tell(promoting, vcl, async |setting| {
        let world = &setting.world;
        for method in ["PURGE", "BAN"] {
            have_promoted(&setting, "/100000").await;
            let sent = world.count(Main::PromotedSent);
            world.client().get("/100000", "").await;
            assert_eq!(world.count(Main::PromotedSent), sent + 1);
            let mut client = world.client();
            client.send(format!("{method} /100000 HTTP/1.1\r\nHost: example.com\r\nWhat: 100000\r\n\r\n")).await;
            assert_eq!(client.response().await.status(), 200);
            let before = setting.asked.borrow().len();
            world.client().get("/100000", "").await;
            assert_eq!(setting.asked.borrow().len(), before + 1, "{method}\n{}", world.story());
        }
    });
}

#[test]
fn body_stays_where_vcl_has_put_it() {
    let vcl = "sub vcl_backend_response { set beresp.storage = storage.file; }";
    tell(promoting, vcl, async |setting| {
        let world = &setting.world;
        for _ in 0..6 {
            assert_eq!(world.client().get("/100000", "").await.body, body(100_000));
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((world.count(Main::CacheHit), world.count(Main::Promoted)), (5, 0));
        assert_eq!(objects(world), [0, 1]);
    });
}

#[test]
fn long_bodies_have_no_copy_in_memory() {
    let short =
        |parameters: &mut Parameters| (parameters.storage_promote_hits, parameters.storage_promote_bytes) = (1, 99_999);
    tell(short, "", async |setting| {
        for _ in 0..4 {
            setting.world.client().get("/100000", "").await;
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(setting.world.count(Main::Promoted), 0);
        have_promoted(&setting, "/99999").await;
    });
}

#[test]
fn page_in_memory_keeps_its_plan() {
    let vcl = "sub vcl_backend_response { set beresp.do_esi = beresp.http.X-Esi == \"yes\"; }";
    tell(promoting, vcl, async |setting| {
        let world = &setting.world;
        have_promoted(&setting, "/page").await;
        let sent = world.count(Main::PromotedSent);
        let response = world.client().get("/page", "").await;
        let expected = [b"<p>before</p>", &body(100_000)[..], &body(LARGE), b"<p>after</p>"].concat();
        assert!(response.is_whole && response.body == expected, "{}", world.story());
        assert!(world.count(Main::PromotedSent) > sent);
    });
}

#[test]
fn compressed_copy_is_made_of_a_body_in_a_file() {
    let coded = |parameters: &mut Parameters| {
        parameters.http_encodings = surface::encoding::Encodings::parse("br gzip").unwrap().parameter();
        (parameters.compress_after, parameters.compress_cpu) = (1, 100);
    };
    tell(coded, "", async |setting| {
        let world = &setting.world;
        for _ in 0..2 {
            world.client().get("/text", "Accept-Encoding: br\r\n").await;
        }
        while world.engine.is_copying.load(std::sync::atomic::Ordering::Acquire) {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(world.count(Main::NCopies), 1, "{}", world.story());
        let response = world.client().get("/text", "Accept-Encoding: br\r\n").await;
        assert_eq!(response.header("content-encoding"), Some("br"));
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut brotli::Decompressor::new(&response.body[..], 4096), &mut plain).unwrap();
        assert!(plain == text());
    });
}

#[test]
fn cold_pieces_are_awaited() {
    tell(
        |_| {},
        "",
        async |setting| {
            let (world, whole) = (&setting.world, body(LARGE));
            let url = format!("/{LARGE}");
            world.client().get(&url, "").await;
            setting.file.await_written(world, &whole).await;
            // A file system in memory has no cold data.
            let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(&setting.file.path).output().unwrap().stdout;
            let can_be_cold = !kind.starts_with(b"tmpfs");
            let begin = 3 * PIECE + 7;
            let range = format!("Range: bytes={begin}-{}\r\n", begin + 99);
            for (fields, expected) in [("", &whole[..]), (&range, &whole[begin..begin + 100])] {
                // The kernel may keep pages that are still in use.
                let mut has_waited = !can_be_cold;
                for _ in 0..20 {
                    setting.file.cool();
                    let cold = usage(world).cold_reads;
                    let response = world.client().get(&url, fields).await;
                    assert!(response.is_whole && response.body == expected, "{}", world.story());
                    has_waited |= usage(world).cold_reads > cold;
                    if has_waited {
                        break;
                    }
                }
                assert!(has_waited, "{:?}", usage(world));
            }
            assert_eq!(usage(world).read_errors, 0);
        },
    );
}

#[test]
fn purge_is_answered_when_the_disk_has_it() {
    let vcl = r#"
        import purge;
        import xkey;
        sub vcl_recv {
            if (req.method == "PURGE") { return (purge); }
            if (req.method == "TAG") { return (synth(200, "" + xkey.purge("tag"))); }
        }
        sub vcl_hit {
            if (req.http.Hard) { return (synth(200, "" + purge.hard())); }
        }
        sub vcl_backend_response { set beresp.ttl = 1h; }"#;
    tell(
        |_| {},
        vcl,
        async |setting| {
            let world = &setting.world;
            for (method, fields) in [("PURGE", ""), ("TAG", ""), ("GET", "Hard: yes\r\n")] {
                world.client().get("/100000", "").await;
                setting.file.await_written(world, &body(100_000)).await;
                while setting.file.objects_after_power_loss() == 0 {
                    assert!(world.engine.cache.stores()[1].settle().await);
                }
                let mut client = world.client();
                client.send(format!("{method} /100000 HTTP/1.1\r\nHost: example.com\r\n{fields}\r\n")).await;
                assert_eq!(client.response().await.status(), 200, "{}", world.story());
                assert_eq!(setting.file.objects_after_power_loss(), 0, "{method} {fields}");
            }
            assert_eq!(setting.asked.borrow().len(), 3);
        },
    );
}

#[test]
fn purge_that_cannot_be_persisted_gets_a_503_and_still_removes() {
    let vcl = r#"
        sub vcl_recv { if (req.method == "PURGE") { return (purge); } }
        sub vcl_backend_response { set beresp.ttl = 1h; }"#;
    tell_on(
        sealable_file(),
        |_| {},
        vcl,
        async |setting| {
            let world = &setting.world;
            world.client().get("/100000", "").await;
            setting.file.await_written(world, &body(100_000)).await;
            setting.file.refuse_writes();
            let mut client = world.client();
            client.send("PURGE /100000 HTTP/1.1\r\nHost: example.com\r\n\r\n".to_owned()).await;
            let answer = client.response().await;
            assert_eq!(answer.status(), 503, "{}", world.story());
            assert!(world.story().contains("RespReason Purge not on disk"), "{}", world.story());
            assert!(world.story().contains("Removed, but the disk failed"), "{}", world.story());
            world.client().get("/100000", "").await;
            assert_eq!(setting.asked.borrow().len(), 2, "it is gone from the cache");
        },
    );
}

#[test]
fn a_disk_that_takes_nothing_costs_hits_and_no_memory() {
    tell_on(
        sealable_file(),
        |_| {},
        "",
        async |setting| {
            let world = &setting.world;
            setting.file.refuse_writes();
            for number in 0..20 {
                let bytes = 100_000 + number;
                assert!(world.client().get(&format!("/{bytes}"), "").await.body == body(bytes));
                let _ = world.engine.cache.stores()[1].settle().await;
            }
            assert_eq!((world.count(Main::NObject), usage(world).usage.g_bytes), (0, 0));
        },
    );
}

/// The counter of the cache.
fn kept(world: &World, wanted: Main) -> u64 {
    let mut sum = 0;
    world
        .engine
        .cache
        .counters(&mut |counter, amount| sum += if counter as usize == wanted as usize { amount } else { 0 });
    sum
}

/// Runs a test with little memory and a file.
fn tell_in_little_memory<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Setting) -> F,
) {
    tell_in(1 << 20, new_file("bodies"), change, vcl, story);
}

/// Requests bodies of this many bytes and more, each of a length of its own, and returns the number
/// of requests to the origin.
async fn ask_for(setting: &Setting, lengths: std::ops::Range<usize>) -> usize {
    for length in lengths {
        let response = setting.world.client().get(&format!("/{length}"), "").await;
        assert!(response.is_whole && response.body == body(length), "{length}: {}", setting.world.story());
        // The writer thread runs in real time.
        assert!(setting.world.engine.cache.stores()[1].settle().await);
    }
    setting.asked.borrow().len()
}

#[test]
fn objects_without_room_in_memory_are_demoted_to_the_file() {
    for demotes in [true, false] {
        let change = |parameters: &mut Parameters| parameters.storage_demote = demotes;
        tell_in_little_memory(change, "", async |setting| {
            let world = &setting.world;
            assert_eq!(ask_for(&setting, 50_000..50_040).await, 40);
            assert!(objects(world)[0] < 21, "{:?}", objects(world));
            let asked = ask_for(&setting, 50_000..50_040).await;
            assert_eq!(asked == 40, demotes, "{asked} of 40 and 40\n{}", world.story());
            assert_eq!(kept(world, Main::Demoted) > 18, demotes);
            assert_eq!(kept(world, Main::NLruNuked) == 0, demotes);
        });
    }
}

#[test]
fn copies_in_memory_push_nothing_out_of_the_cache() {
    tell_in_little_memory(promoting, "", async |setting| {
        let world = &setting.world;
        ask_for(&setting, 40_000..40_015).await;
        for length in 100_000..100_012 {
            have_promoted(&setting, &format!("/{length}")).await;
        }
        let before = setting.asked.borrow().len();
        assert_eq!(before, 15 + 12, "{}", world.story());
        assert_eq!(ask_for(&setting, 40_000..40_015).await, before, "{}", world.story());
    });
}

#[test]
fn demoted_objects_can_be_purged_and_banned() {
    let vcl = r#"
        import xkey;
        sub vcl_recv {
            if (req.method == "PURGE") { return (purge); }
            if (req.method == "BAN") { ban("req.url == /40000"); return (synth(200)); }
            if (req.method == "OBJBAN") { ban("obj.http.X-Url == /40000"); return (synth(200)); }
            if (req.method == "TAG") { return (synth(200, "" + xkey.purge("tag"))); }
            if (req.method == "SOFT") { return (synth(200, "" + xkey.softpurge("tag"))); }
        }
        sub vcl_backend_response {
            set beresp.ttl = 1h; set beresp.grace = 0s; set beresp.keep = 1h;
            set beresp.http.X-Url = bereq.url;
        }"#;
    for method in ["PURGE", "BAN", "OBJBAN", "TAG", "SOFT"] {
        tell_in_little_memory(
            |_| {},
            vcl,
            async |setting| {
                let world = &setting.world;
                ask_for(&setting, 40_000..40_040).await;
                assert!(kept(world, Main::Demoted) > 5, "{}", kept(world, Main::Demoted));
                assert_eq!(ask_for(&setting, 40_000..40_001).await, 40, "it is there");
                let mut client = world.client();
                client.send(format!("{method} /40000 HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
                assert_eq!(client.response().await.status(), 200);
                assert_eq!(ask_for(&setting, 40_000..40_001).await, 41, "{method}\n{}", world.story());
                assert_eq!(ask_for(&setting, 40_000..40_001).await, 41, "{method}\n{}", world.story());
            },
        );
    }
}

#[test]
fn objects_placed_in_memory_by_vcl_are_not_demoted() {
    let vcl = "sub vcl_backend_response { set beresp.storage = storage.s0; }";
    tell_in_little_memory(
        |_| {},
        vcl,
        async |setting| {
            ask_for(&setting, 40_000..40_040).await;
            let world = &setting.world;
            let (evicted, moved) = (kept(world, Main::NLruNuked), kept(world, Main::Demoted));
            assert!(evicted > 10 && moved == 0, "{evicted} {moved}");
        },
    );
}

#[test]
fn demoted_objects_survive_a_start_without_memory() {
    tell_in_little_memory(
        |_| {},
        "",
        async |setting| {
            ask_for(&setting, 50_000..50_040).await;
            assert!(setting.world.engine.cache.stores()[1].settle().await);
            let moved = kept(&setting.world, Main::Demoted);
            while (setting.file.objects_after_power_loss() as u64) < moved {
                assert!(setting.world.engine.cache.stores()[1].settle().await);
            }
            assert_eq!(setting.file.objects_after_power_loss() as u64, moved);
        },
    );
}

#[test]
fn failed_demotion_frees_the_object_and_its_memory() {
    tell_in(
        1 << 20,
        sealable_file(),
        |_| {},
        "",
        async |setting| {
            let world = &setting.world;
            setting.file.refuse_writes();
            for length in 50_000..50_300 {
                let response = world.client().get(&format!("/{length}"), "").await;
                assert!(response.is_whole && response.body == body(length), "{length}: {}", world.story());
            }
            assert!(kept(world, Main::Demoted) + kept(world, Main::NLruNuked) >= 279);
            // The writer thread runs in real time.
            let deadline = Instant::now() + Duration::from_secs(TEST_HANG_SECONDS);
            while Instant::now() < deadline {
                if usage(world).usage.g_bytes == 0 {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("{:?}", usage(world));
        },
    );
}
