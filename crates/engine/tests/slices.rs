//! A resource is fetched and stored in slices: the requests that cause that, the requests to the
//! origin, the responses to clients, and changes of the origin's version or behaviour.

use crate::support::{Client, OriginRequest, OriginStream, Response, World, run_with};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;

const SLICE: u64 = 65_536;
const KEPT: &str = "sub vcl_backend_response { set beresp.ttl = 60s; return (deliver); }";
const ALL: &str = "sub vcl_recv { set req.slice_bytes = 64KB; }
    sub vcl_backend_response { set beresp.ttl = 60s; return (deliver); }";

fn sliced(parameters: &mut Parameters) {
    parameters.slice_bytes = SLICE;
}

/// An origin with one file, whose version and behaviour can change.
#[derive(Clone)]
struct File {
    state: Rc<State>,
}

struct State {
    length: Cell<u64>,
    version: Cell<u8>,
    habit: Cell<Habit>,
    asked: RefCell<Vec<String>>,
    /// Delay of a 304, and of every slice but the first, in seconds.
    thinks: Cell<u64>,
    /// While set, slices stop in the middle.
    is_held: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Habit {
    /// Normal behaviour.
    Good,
    /// Does not support ranges.
    Whole,
    /// Has no validator.
    Nameless,
    /// Answers with a range one byte longer than the requested one.
    Generous,
    /// Gives another version for all but the first slice, and ignores If-Range.
    Mixed,
    /// 500 for all but the first slice.
    Fails,
}

impl File {
    fn new(length: u64) -> File {
        let state = State {
            length: Cell::new(length),
            version: Cell::new(1),
            habit: Cell::new(Habit::Good),
            asked: RefCell::default(),
            thinks: Cell::new(0),
            is_held: Cell::new(false),
        };
        File { state: Rc::new(state) }
    }

    fn habit(self, habit: Habit) -> File {
        self.state.habit.set(habit);
        self
    }

    fn serve(&self, world: &World) {
        let file = self.clone();
        world.origin(move |mut stream| {
            let file = file.clone();
            async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let answer = file.answer(&request);
                    if file.send(&mut stream, &answer).await.is_none() {
                        return;
                    }
                }
            }
        });
    }

    async fn send(&self, stream: &mut OriginStream, answer: &[u8]) -> Option<()> {
        let text = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
        if text.starts_with("HTTP/1.1 304") || text.contains("bytes ") && !text.contains("bytes 0-") {
            tokio::time::sleep(Duration::from_secs(self.state.thinks.get())).await;
        }
        let (before, after) = answer.split_at(answer.len().min(30_000));
        stream.write_all(before).await.ok()?;
        while self.state.is_held.get() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stream.write_all(after).await.ok()
    }

    fn answer(&self, request: &OriginRequest) -> Vec<u8> {
        let state = &*self.state;
        let header = |name| request.header(name).unwrap_or("-").to_owned();
        let (range, habit) = (header("range"), state.habit.get());
        state.asked.borrow_mut().push(range.trim_start_matches("bytes=").to_owned());
        let length = state.length.get();
        let part = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
        let part = part.map(|(first, last)| (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap()));
        let is_later = part.is_some_and(|(first, _)| first > 0);
        let version = state.version.get() + u8::from(is_later && habit == Habit::Mixed);
        let mut fields = "Content-Type: video/x\r\n".to_owned();
        let tag = format!("\"v{version}\"");
        if habit != Habit::Nameless {
            fields += &format!("ETag: {tag}\r\n");
        }
        if header("if-none-match") == tag {
            return response("304 Not Modified", &fields, 0, b"");
        }
        if is_later && habit == Habit::Fails {
            return response("500 No", "", 0, b"");
        }
        let holds = [tag.as_str(), "-"].contains(&header("if-range").as_str()) || habit == Habit::Mixed;
        let Some((first, last)) = part.filter(|_| holds && habit != Habit::Whole) else {
            return response("200 OK", &fields, length, &body(version, 0, length));
        };
        if first >= length {
            return response("416 No", &format!("Content-Range: bytes */{length}\r\n"), 0, b"");
        }
        let last = (last + u64::from(habit == Habit::Generous)).min(length - 1);
        fields += &format!("Content-Range: bytes {first}-{last}/{length}\r\n");
        let bytes = body(version, first, last + 1);
        response("206 Partial Content", &fields, last + 1 - first, &bytes)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.asked.borrow_mut())
    }
}

/// Bytes of a version of the file.
fn body(version: u8, first: u64, end: u64) -> Vec<u8> {
    (first..end).map(|at| (at % 251) as u8 ^ (at >> 16) as u8 ^ version).collect()
}

fn response(status: &str, fields: &str, length: u64, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Status, Content-Range and body.
async fn get(client: &mut Client, range: &str) -> (u16, String, Vec<u8>) {
    let headers = if range.is_empty() { String::new() } else { format!("Range: bytes={range}\r\n") };
    let response = client.get("/film", &headers).await;
    let content_range = response.header("content-range").unwrap_or("-").to_owned();
    (response.status(), content_range, response.body)
}

async fn head_of(client: &mut Client) -> Response {
    client.send("HEAD /film HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
    client.response_to_head().await
}

async fn purge(client: &mut Client) -> u16 {
    client.send("PURGE /film HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
    client.response().await.status()
}

fn story<F: Future<Output = ()>>(
    change: fn(&mut Parameters),
    vcl: &str,
    file: &File,
    story: impl FnOnce(Rc<World>, Client) -> F,
) {
    run_with(change, vcl, |world| {
        file.serve(&world);
        let client = world.client();
        story(world, client)
    });
}

fn total(world: &World, wanted: Main) -> u64 {
    let mut found = world.context.counters.get(wanted);
    world.engine.cache.counters(&mut |counter, amount| {
        if counter as usize == wanted as usize {
            found += amount;
        }
    });
    found
}

/// A range in the middle of 100 GiB costs one slice, and the next one if it is wanted.
#[test]
fn a_range_from_the_middle_of_a_huge_file_costs_its_slices() {
    let huge = 100 << 30;
    let file = File::new(huge);
    story(sliced, KEPT, &file, async |world, mut client| {
        let first = 50 << 30;
        let (status, range, bytes) = get(&mut client, &format!("{first}-{}", first + 99)).await;
        assert_eq!((status, range), (206, format!("bytes {first}-{}/{huge}", first + 99)));
        assert!(bytes == body(1, first, first + 100));
        assert_eq!(file.asked(), [format!("{first}-{}", first + SLICE - 1)]);
        // Within the slice, and across its end.
        let (_, _, bytes) = get(&mut client, &format!("{}-{}", first + 1000, first + 1999)).await;
        assert!(bytes == body(1, first + 1000, first + 2000) && file.asked().is_empty());
        let (_, _, bytes) = get(&mut client, &format!("{}-{}", first + SLICE - 10, first + SLICE + 9)).await;
        assert!(bytes == body(1, first + SLICE - 10, first + SLICE + 10));
        assert_eq!(file.asked(), [format!("{}-{}", first + SLICE, first + 2 * SLICE - 1)]);
        // The end of it.
        let (status, range, bytes) = get(&mut client, "-5").await;
        assert_eq!((status, range), (206, format!("bytes {}-{}/{huge}", huge - 5, huge - 1)));
        assert!(bytes == body(1, huge - 5, huge));
        assert_eq!(file.asked(), [format!("{}-{}", huge - SLICE, huge - 1)]);
        assert_eq!(get(&mut client, &format!("{huge}-")).await.0, 416);
        assert!(file.asked().is_empty());
        // A head and three slices.
        assert_eq!(total(&world, Main::NObject), 4);
        assert!(world.engine.cache.store().usage().g_bytes < 1 << 20);
    });
}

#[test]
fn a_whole_is_put_together_from_slices_and_stays_in_them() {
    let length = 5 * SLICE + 17;
    for policy in ["varnish", "rfc"] {
        let file = File::new(length);
        run_with(
            move |parameters| parameters.http_policy = policy.into(),
            ALL,
            async |world| {
                file.serve(&world);
                let mut client = world.client();
                for turn in 0..2 {
                    let response = client.get("/film", "").await;
                    assert_eq!((response.status(), response.header("content-range")), (200, None));
                    assert_eq!(response.header("content-length"), Some(length.to_string().as_str()));
                    assert!(response.body == body(1, 0, length), "{policy} {turn}");
                }
                let asked: Vec<String> =
                    (0..6).map(|n| format!("{}-{}", n * SLICE, ((n + 1) * SLICE).min(length) - 1)).collect();
                assert_eq!(file.asked(), asked, "{policy}");
                // Ranges come from the same slices; HEAD needs none.
                let (status, range, bytes) = get(&mut client, "100000-200000").await;
                assert_eq!((status, range), (206, format!("bytes 100000-200000/{length}")));
                assert!(bytes == body(1, 100_000, 200_001));
                let head = head_of(&mut client).await;
                assert_eq!(head.header("content-length"), Some(length.to_string().as_str()));
                if policy == "rfc" {
                    let response = client.get("/film", "Range: bytes=5-6,300000-300001\r\n").await;
                    assert_eq!(response.status(), 206);
                    let text = response.body.windows(4).filter(|four| *four == b"\r\n\r\n").count();
                    assert_eq!(text, 2);
                }
                assert!(file.asked().is_empty(), "{policy}");
            },
        );
    }
}

#[test]
fn requests_without_a_range_are_sliced_only_if_vcl_enables_it() {
    let file = File::new(3 * SLICE);
    story(sliced, KEPT, &file, async |world, mut client| {
        assert_eq!(get(&mut client, "").await.0, 200);
        assert_eq!(file.asked(), ["-"]);
        // A resource that is stored in one object serves ranges from it.
        assert!(get(&mut client, "70000-70009").await.2 == body(1, 70_000, 70_010));
        assert!(file.asked().is_empty());
        assert_eq!(total(&world, Main::NObject), 1);
    });
    let off = "sub vcl_recv { set req.slice_bytes = 0B; }";
    let file = File::new(3 * SLICE);
    story(sliced, off, &file, async |_, mut client| {
        assert_eq!(get(&mut client, "70000-70009").await.0, 206);
        assert_eq!(file.asked(), ["-"]);
    });
}

#[test]
fn object_within_one_slice_is_stored_whole() {
    let file = File::new(1000);
    story(sliced, ALL, &file, async |world, mut client| {
        for _ in 0..2 {
            let response = client.get("/film", "").await;
            assert_eq!((response.status(), response.header("content-range")), (200, None));
            assert!(response.body == body(1, 0, 1000));
        }
        assert_eq!(get(&mut client, "10-19").await.1, "bytes 10-19/1000");
        assert_eq!((file.asked(), total(&world, Main::NObject)), (vec![format!("0-{}", SLICE - 1)], 1));
    });
}

#[test]
fn an_origin_that_has_no_slices_is_asked_for_none_for_a_while() {
    for (habit, first) in [(Habit::Whole, 1), (Habit::Nameless, 2), (Habit::Generous, 2)] {
        let file = File::new(3 * SLICE).habit(habit);
        let vcl = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 0s; }";
        story(sliced, vcl, &file, async |world, _| {
            for turn in 0..2 {
                let (status, _, bytes) = get(&mut world.client(), "70000-70009").await;
                assert!(status == 206 && bytes == body(1, 70_000, 70_010), "{habit:?} {turn}");
                let asked = file.asked();
                assert_eq!(asked.len(), if turn == 0 { first } else { 1 }, "{habit:?}: {asked:?}");
                assert_eq!(
                    asked.last().map(String::as_str),
                    Some(if turn == 0 && first == 1 { "65536-131071" } else { "-" })
                );
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            tokio::time::sleep(Duration::from_secs(200)).await;
            get(&mut world.client(), "70000-70009").await;
            assert_eq!(file.asked().len(), first, "{habit:?}");
        });
    }
}

#[test]
fn a_response_that_is_not_for_all_is_fetched_whole() {
    let ways = [
        "set beresp.uncacheable = true;",
        "set beresp.do_gzip = true; set beresp.http.Content-Type = \"text/plain\";",
        "unset beresp.http.ETag;",
        "set beresp.status = 203;",
        "set beresp.http.Vary = \"*\";",
    ];
    for way in ways {
        let vcl = format!(
            "sub vcl_recv {{ set req.slice_bytes = 64KB; }}
             sub vcl_backend_response {{ set beresp.ttl = 60s; {way} return (deliver); }}"
        );
        let file = File::new(3 * SLICE);
        story(
            |_| {},
            &vcl,
            &file,
            async |_, mut client| {
                let (status, _, bytes) = get(&mut client, "").await;
                assert!([200, 203].contains(&status) && bytes == body(1, 0, 3 * SLICE), "{way}: {status}");
                assert_eq!(file.asked(), [format!("0-{}", SLICE - 1), "-".to_owned()], "{way}");
            },
        );
    }
}

#[test]
fn many_clients_make_one_fetch_of_each_slice() {
    let length = 4 * SLICE;
    let file = File::new(length);
    story(sliced, ALL, &file, async |world, _| {
        file.state.is_held.set(true);
        let clients: Vec<_> = (0..200)
            .map(|_| {
                let mut client = world.client();
                tokio::task::spawn_local(async move { get(&mut client, "").await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        file.state.is_held.set(false);
        for client in clients {
            let (status, _, bytes) = client.await.unwrap();
            assert!(status == 200 && bytes == body(1, 0, length));
        }
        let mut asked = file.asked();
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), 4);
    });
}

/// The version changes between two slices: a response already begun is aborted, another one is an
/// error, and no client gets bytes of two versions.
#[test]
fn versions_are_never_mixed() {
    let length = 3 * SLICE;
    for habit in [Habit::Good, Habit::Mixed] {
        let file = File::new(length).habit(habit);
        story(sliced, KEPT, &file, async |world, mut client| {
            assert!(get(&mut client, "0-9").await.2 == body(1, 0, 10));
            if habit == Habit::Good {
                file.state.version.set(2);
            }
            // Nothing has been sent yet.
            assert_eq!(get(&mut client, "70000-70009").await.0, 503, "{habit:?}");
            let mut client = world.client();
            if habit == Habit::Good {
                // The resource begins anew.
                assert!(get(&mut client, "70000-70009").await.2 == body(2, 70_000, 70_010));
                assert!(get(&mut client, "0-9").await.2 == body(2, 0, 10));
            }
        });
        let file = File::new(length).habit(habit);
        story(sliced, ALL, &file, async |world, mut client| {
            assert!(get(&mut client, "0-9").await.2 == body(1, 0, 10));
            file.state.version.set(if habit == Habit::Good { 2 } else { 1 });
            let response = client.get("/film", "").await;
            assert!(response.status() == 200 && !response.is_whole && response.body == body(1, 0, SLICE), "{habit:?}");
            drop(world);
        });
    }
}

#[test]
fn a_slice_that_fails_fails_alone() {
    let file = File::new(3 * SLICE).habit(Habit::Fails);
    story(sliced, KEPT, &file, async |world, mut client| {
        assert!(get(&mut client, "0-9").await.2 == body(1, 0, 10));
        assert_eq!(get(&mut client, "70000-70009").await.0, 503);
        // The head and the first slice are unchanged.
        file.state.habit.set(Habit::Good);
        let mut client = world.client();
        file.asked();
        assert!(get(&mut client, "0-9").await.2 == body(1, 0, 10) && file.asked().is_empty());
        assert!(get(&mut client, "70000-70009").await.2 == body(1, 70_000, 70_010));
    });
}

#[test]
fn slices_outlive_a_validation_and_die_with_a_purge() {
    let file = File::new(3 * SLICE);
    let vcl = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }
        sub vcl_backend_response { set beresp.ttl = 10s; set beresp.grace = 0s; set beresp.keep = 60s; return (deliver); }";
    story(sliced, vcl, &file, async |world, _| {
        assert!(get(&mut world.client(), "70000-70009").await.2 == body(1, 70_000, 70_010));
        assert_eq!(file.asked(), ["65536-131071"]);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(11)).await;
            assert!(get(&mut world.client(), "70000-70009").await.2 == body(1, 70_000, 70_010));
            world.engine.cache.tick(world.context.clock.now());
            assert_eq!(file.asked().len(), 1, "only a 304");
            assert_eq!(total(&world, Main::NObject), 2);
        }
        // Expired, and of another version: it begins anew.
        file.state.version.set(2);
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert!(get(&mut world.client(), "70000-70009").await.2 == body(2, 70_000, 70_010));
        assert_eq!(file.asked(), ["65536-131071"]);
        world.engine.cache.tick(world.context.clock.now());
        assert_eq!(total(&world, Main::NObject), 2);
        assert_eq!(purge(&mut world.client()).await, 200);
        world.engine.cache.tick(world.context.clock.now());
        assert_eq!(total(&world, Main::NObject), 0);
        assert!(get(&mut world.client(), "70000-70009").await.2 == body(2, 70_000, 70_010));
        assert_eq!(file.asked(), ["65536-131071"]);
    });
}

#[test]
fn slices_that_are_purged_while_the_origin_is_asked_are_fetched_anew() {
    let file = File::new(3 * SLICE);
    let vcl = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }
        sub vcl_backend_response { set beresp.ttl = 10s; set beresp.grace = 0s; set beresp.keep = 60s; return (deliver); }";
    story(sliced, vcl, &file, async |world, _| {
        assert!(get(&mut world.client(), "70000-70009").await.2 == body(1, 70_000, 70_010));
        assert_eq!(file.asked(), ["65536-131071"]);
        file.state.thinks.set(5);
        tokio::time::sleep(Duration::from_secs(11)).await;
        let asking = tokio::task::spawn_local({
            let world = Rc::clone(&world);
            async move { get(&mut world.client(), "70000-70009").await }
        });
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(purge(&mut world.client()).await, 200);
        assert!(asking.await.unwrap().2 == body(1, 70_000, 70_010));
        assert_eq!(file.asked(), ["65536-131071", "65536-131071"]);
    });
}

/// As for other objects (`origins/waiting.rs`).
#[test]
fn waiters_for_a_slice_are_bounded_and_may_leave() {
    let file = File::new(3 * SLICE);
    let limited = |parameters: &mut Parameters| {
        sliced(parameters);
        (parameters.waiting_timeout, parameters.waiting_requests_max) = (4.0, 2);
        parameters.client_half_close = true;
    };
    story(limited, KEPT, &file, async |world, mut client| {
        get(&mut client, "0-9").await;
        file.asked();
        file.state.thinks.set(10);
        let ask = || {
            let world = Rc::clone(&world);
            tokio::task::spawn_local(async move {
                let began = world.context.clock.now();
                let (status, ..) = get(&mut world.client(), "70000-70009").await;
                (status, (world.context.clock.now() - began).round() as u64)
            })
        };
        let first = ask();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut leaving = world.client();
        leaving.send("GET /film HTTP/1.1\r\nHost: example.com\r\nRange: bytes=70000-70009\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.count(Main::NWaiting), 1, "{}", world.story());
        drop(leaving);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.count(Main::NWaiting), 0, "{}", world.story());
        let others = [ask(), ask(), ask()];
        let mut found = Vec::new();
        for other in others {
            found.push(other.await.unwrap());
        }
        found.sort_unstable();
        assert_eq!(found, [(503, 0), (503, 4), (503, 4)], "{}", world.story());
        assert_eq!((world.count(Main::WaitingRefused), world.count(Main::WaitingTimeout)), (1, 2));
        assert_eq!(first.await.unwrap(), (206, 10));
        // One that waits for a fetch of its own may leave too; the fetch continues.
        let mut leaving = world.client();
        leaving.send("GET /film HTTP/1.1\r\nHost: example.com\r\nRange: bytes=140000-140009\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(leaving);
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.expect_log("why client-gone");
        tokio::time::sleep(Duration::from_secs(10)).await;
        file.asked();
        assert_eq!(get(&mut world.client(), "140000-140009").await.0, 206);
        assert!(file.asked().is_empty());
    });
}

/// Under the RFC's policy the response to a request with Authorization is for its client alone,
/// slices too.
#[test]
fn a_slice_that_must_not_be_stored_is_for_the_client_that_ordered_it() {
    let file = File::new(3 * SLICE);
    story(
        |parameters| parameters.http_policy = "rfc".into(),
        ALL,
        &file,
        async |_, mut client| {
            assert!(get(&mut client, "0-9").await.2 == body(1, 0, 10));
            file.asked();
            let response = client.get("/film", "Authorization: secret\r\nRange: bytes=70000-70009\r\n").await;
            assert!(response.status() == 206 && response.body == body(1, 70_000, 70_010), "{}", response.head);
            assert!(get(&mut client, "70000-70009").await.2 == body(1, 70_000, 70_010));
            assert!(get(&mut client, "70000-70009").await.2 == body(1, 70_000, 70_010));
            assert_eq!(file.asked(), ["65536-131071", "65536-131071"]);
        },
    );
}

/// A client that does not read holds one slice, and does not block others, even if the body is much
/// larger than the storage.
#[test]
fn no_client_waits_for_the_slowest() {
    let length = 4 << 20;
    let file = File::new(length);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::with_storage(Parameters::default(), 1 << 20));
        world.load("boot", ALL);
        file.serve(&world);
        let mut slow: Vec<_> = (0..5).map(|_| world.client_with(1000)).collect();
        for client in &mut slow {
            client.send("GET /film HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = tokio::time::Instant::now();
        for _ in 0..3 {
            let (status, _, bytes) = get(&mut world.client(), "").await;
            assert!(status == 200 && bytes == body(1, 0, length));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        for client in &mut slow {
            let response = client.response().await;
            assert!(response.is_whole && response.body == body(1, 0, length));
        }
    });
}

/// A client that reads a resource gets all of it, even if its head expires during that and the
/// origin has another version.
#[test]
fn a_slow_client_reads_on_what_is_stored_after_the_head_has_expired() {
    let file = File::new(3 * SLICE);
    let vcl = "sub vcl_recv { set req.slice_bytes = 64KB; }
        sub vcl_backend_response { set beresp.ttl = 2s; set beresp.grace = 0s; set beresp.keep = 0s; return (deliver); }";
    story(
        |_| {},
        vcl,
        &file,
        async |world, mut client| {
            assert!(get(&mut client, "").await.2 == body(1, 0, 3 * SLICE));
            let mut slow = world.client_with(1000);
            slow.send("GET /film HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            file.state.version.set(2);
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                world.engine.cache.tick(world.context.clock.now());
            }
            file.asked();
            let response = slow.response().await;
            assert!(response.is_whole && response.body == body(1, 0, 3 * SLICE));
            assert!(file.asked().is_empty());
            drop(slow);
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.engine.cache.tick(world.context.clock.now());
            assert_eq!(total(&world, Main::NObject), 0);
        },
    );
}

/// A body much larger than the storage passes through it in slices.
#[test]
fn a_body_of_many_times_the_storage_passes_through_it() {
    let length = 20 << 20;
    let file = File::new(length);
    let parameters = Parameters::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::with_storage(parameters, 1 << 20));
        world.load("boot", ALL);
        file.serve(&world);
        for _ in 0..2 {
            let (status, _, bytes) = get(&mut world.client(), "").await;
            assert!(status == 200 && bytes == body(1, 0, length));
        }
        assert!(world.engine.cache.store().usage().g_bytes <= 1 << 20);
        // The slices at the end are still there.
        file.asked();
        let last = length - 100;
        assert!(get(&mut world.client(), &format!("{last}-")).await.2 == body(1, last, length));
        assert!(file.asked().is_empty());
    });
}
