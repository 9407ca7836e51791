//! Parts of responses under the policy of the RFC: several ranges; parts that are stored, completed
//! and joined; and false Content-Range fields.

use crate::support::{Client, OriginRequest, World, run_with, serve_each};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use surface::counter::Main;
use surface::parameter::Parameters;

/// Everything is stored: the policy's lifetimes are not tested here.
const STORED: &str = "sub vcl_backend_response { set beresp.ttl = 60s; return (deliver); }";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".into();
}

fn lenient(parameters: &mut Parameters) {
    rfc(parameters);
    parameters.partial_leniency = true;
}

/// The requests to the origin: the Range, If-Range and Accept-Encoding of each.
type Asked = Rc<RefCell<Vec<String>>>;

/// An origin with a file whose name for the version can change.
#[derive(Clone)]
struct File {
    body: Rc<RefCell<Vec<u8>>>,
    tag: Rc<Cell<&'static str>>,
    asked: Asked,
}

impl File {
    fn new(body: &[u8], tag: &'static str) -> File {
        File { body: Rc::new(RefCell::new(body.to_vec())), tag: Rc::new(Cell::new(tag)), asked: Asked::default() }
    }

    fn serve(&self, world: &World) {
        let file = self.clone();
        world.origin(serve_each(move |request| file.answer(request)));
    }

    fn answer(&self, request: &OriginRequest) -> Vec<u8> {
        let header = |name| request.header(name).unwrap_or("-").to_owned();
        let (range, if_range) = (header("range"), header("if-range"));
        self.asked.borrow_mut().push(format!("{range} {if_range} {}", header("accept-encoding")));
        let body = self.body.borrow();
        let fields = format!("ETag: {}\r\nContent-Type: text/plain\r\nX-Tag: {0}\r\n", self.tag.get());
        let part = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
        let Some((first, last)) = part.filter(|_| if_range == "-" || if_range == self.tag.get()) else {
            return response("200 OK", &fields, &body);
        };
        let (first, last) = match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => (first, last.min(body.len() - 1)),
            (Ok(first), Err(_)) => (first, body.len() - 1),
            (Err(_), Ok(suffix)) => (body.len() - suffix, body.len() - 1),
            (Err(_), Err(_)) => return response("400 Bad", "", b""),
        };
        if first >= body.len() {
            return response("416 No", &format!("Content-Range: bytes */{}\r\n", body.len()), b"");
        }
        let fields = format!("{fields}Content-Range: bytes {first}-{last}/{}\r\n", body.len());
        response("206 Partial Content", &fields, &body[first..=last])
    }

    fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }
}

fn response(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Requests a range (or, if that is empty, everything); returns status, Content-Range and body.
async fn part(client: &mut Client, range: &str) -> (u16, String, String) {
    let headers = if range.is_empty() { String::new() } else { format!("Range: bytes={range}\r\n") };
    let response = client.get("/", &headers).await;
    let content_range = response.header("content-range").unwrap_or("-").to_owned();
    (response.status(), content_range, response.text())
}

fn expected(status: u16, range: &str, body: &str) -> (u16, String, String) {
    (status, range.to_owned(), body.to_owned())
}

/// Number of objects in the index.
fn objects(world: &World) -> u64 {
    let mut found = 0;
    world.engine.cache.counters(&mut |counter, amount| {
        if counter as usize == Main::NObject as usize {
            found = amount;
        }
    });
    found
}

/// A test of one client and one file.
fn story<F: Future<Output = ()>>(file: &File, story: impl FnOnce(Rc<World>, Client) -> F) {
    story_with(rfc, STORED, file, story);
}

fn story_with<F: Future<Output = ()>>(
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

#[test]
fn several_ranges_of_a_whole_come_in_one_response() {
    story(&File::new(b"0123456789", "\"a\""), async |_, mut client| {
        client.get("/", "").await;
        let several = client.get("/", "Range: bytes=7-,0-1,1-2\r\n").await;
        let kind = several.header("content-type").unwrap().to_owned();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
        assert_eq!((several.status(), several.header("content-range")), (206, None));
        let one = |range: &str, body: &str| {
            format!("--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n{body}\r\n")
        };
        assert_eq!(several.text(), format!("{}{}--{boundary}--\r\n", one("0-2", "012"), one("7-9", "789")));
        assert_eq!(several.header("content-length"), Some(several.body.len().to_string().as_str()));
        let another = client.get("/", "Range: bytes=0-0,9-9\r\n").await;
        assert_ne!(another.header("content-type"), Some(kind.as_str()), "no boundary can be foreseen");
        // One is left, and needs no parts.
        assert_eq!(part(&mut client, "0-1,2-3,90-99").await, expected(206, "bytes 0-3/10", "0123"));
        let many = format!("0-0{}", ",2-2".repeat(100));
        assert_eq!(part(&mut client, &many).await, expected(200, "-", "0123456789"));
        assert_eq!(part(&mut client, "5-3").await, expected(200, "-", "0123456789"));
        assert_eq!(part(&mut client, "90-,99-").await, expected(416, "bytes */10", ""));
    });
}

#[test]
fn varnish_serves_one_range_only_and_fetches_the_whole_for_it() {
    let file = File::new(b"0123456789", "\"a\"");
    story_with(
        |_| {},
        STORED,
        &file,
        async |_, mut client| {
            assert_eq!(part(&mut client, "2-3").await, expected(206, "bytes 2-3/10", "23"));
            assert_eq!(part(&mut client, "0-1,4-5").await, expected(416, "bytes */10", ""));
            assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
        },
    );
    assert_eq!(file.asked(), ["- - gzip"]);
}

#[test]
fn range_is_forwarded_and_its_part_serves_ranges_within_it() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |world, mut client| {
        assert_eq!(part(&mut client, "2-6").await, expected(206, "bytes 2-6/10", "23456"));
        assert_eq!(part(&mut client, "2-6").await, expected(206, "bytes 2-6/10", "23456"));
        assert_eq!(part(&mut client, "3-4").await, expected(206, "bytes 3-4/10", "34"));
        assert_eq!(part(&mut client, "99-").await, expected(416, "bytes */10", ""));
        let several = client.get("/", "Range: bytes=2-2,5-6\r\n").await;
        assert!(several.text().contains("bytes 5-6/10\r\n\r\n56\r\n"), "{}", several.text());
        assert_eq!(world.count(Main::CacheHit), 4);
        let head = client.get("/", "Range: bytes=3-4\r\nIf-Range: \"a\"\r\n").await;
        assert_eq!((head.status(), head.header("x-tag")), (206, Some("\"a\"")));
    });
    assert_eq!(file.asked(), ["bytes=2-6 - identity"]);
}

#[test]
fn suffix_is_served_from_a_part_with_known_length() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |_, mut client| {
        assert_eq!(part(&mut client, "-5").await, expected(206, "bytes 5-9/10", "56789"));
        assert_eq!(part(&mut client, "-2").await, expected(206, "bytes 8-9/10", "89"));
        assert_eq!(part(&mut client, "6-").await, expected(206, "bytes 6-9/10", "6789"));
    });
    assert_eq!(file.asked(), ["bytes=-5 - identity"]);
}

#[test]
fn a_part_is_completed_with_the_rest_of_the_same_version() {
    for (first, rest) in [("0-3", "bytes=4-"), ("4-", "bytes=0-3")] {
        let file = File::new(b"0123456789", "\"a\"");
        story(&file, async |world, mut client| {
            part(&mut client, first).await;
            assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"), "{}", world.story());
            assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
            assert_eq!(part(&mut client, "1-8").await, expected(206, "bytes 1-8/10", "12345678"));
            let whole = client.get("/", "").await;
            assert_eq!(whole.header("content-length"), Some("10"));
            assert_eq!(objects(&world), 1, "the part has gone");
        });
        assert_eq!(file.asked(), [format!("bytes={first} - identity"), format!("{rest} \"a\" identity")]);
    }
}

#[test]
fn another_version_replaces_the_part() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |_, mut client| {
        part(&mut client, "0-3").await;
        file.tag.set("\"b\"");
        file.body.replace(b"abcdefghij".to_vec());
        assert_eq!(part(&mut client, "").await, expected(200, "-", "abcdefghij"));
        assert_eq!(part(&mut client, "0-3").await, expected(206, "bytes 0-3/10", "abcd"));
    });
    assert_eq!(file.asked().len(), 2);
}

#[test]
fn an_origin_that_sends_a_rest_of_another_version_is_asked_for_the_whole() {
    run_with(rfc, STORED, async |world| {
        let asked = Asked::default();
        let seen = Rc::clone(&asked);
        world.origin(serve_each(move |request| {
            let range = request.header("range").unwrap_or("-").to_owned();
            seen.borrow_mut().push(range.clone());
            match range.as_str() {
                "bytes=0-3" => response("206 Part", "ETag: \"a\"\r\nContent-Range: bytes 0-3/10\r\n", b"0123"),
                "bytes=4-" => response("206 Part", "ETag: \"b\"\r\nContent-Range: bytes 4-9/10\r\n", b"efghij"),
                _ => response("200 OK", "ETag: \"b\"\r\n", b"abcdefghij"),
            }
        }));
        let mut client = world.client();
        part(&mut client, "0-3").await;
        assert_eq!(part(&mut client, "").await, expected(200, "-", "abcdefghij"));
        assert_eq!(*asked.borrow(), ["bytes=0-3", "bytes=4-", "-"]);
        world.expect_log("Witness why part-outdated");
    });
}

#[test]
fn without_a_strong_validator_the_whole_is_asked_for() {
    let file = File::new(b"0123456789", "W/\"a\"");
    story(&file, async |_, mut client| {
        part(&mut client, "0-3").await;
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
    });
    assert_eq!(file.asked(), ["bytes=0-3 - identity", "- - gzip"]);
}

#[test]
fn a_whole_made_with_a_private_rest_is_for_its_client_only() {
    run_with(rfc, STORED, async |world| {
        world.origin(serve_each(|request| match request.header("range") {
            Some("bytes=0-4") => {
                let fields = "ETag: \"a\"\r\nCache-Control: max-age=60\r\nContent-Range: bytes 0-4/10\r\n";
                response("206 Partial Content", fields, b"01234")
            }
            Some(_) => {
                let fields = "ETag: \"a\"\r\nCache-Control: private\r\nContent-Range: bytes 5-9/10\r\n";
                response("206 Partial Content", fields, request.header("cookie").unwrap_or("56789").as_bytes())
            }
            None => response("200 OK", "Cache-Control: private\r\n", b"everybody's"),
        }));
        let mut client = world.client();
        assert_eq!(part(&mut client, "0-4").await, expected(206, "bytes 0-4/10", "01234"));
        for name in ["anna.", "bobby"] {
            let text = world.client().get("/", &format!("Cookie: {name}\r\n")).await.text();
            assert!(text == format!("01234{name}") || text == "everybody's", "{name} gets {text}");
        }
    });
}

#[test]
fn parts_that_meet_are_joined() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |world, mut client| {
        part(&mut client, "2-4").await;
        assert_eq!(part(&mut client, "4-6").await, expected(206, "bytes 4-6/10", "456"));
        assert_eq!(part(&mut client, "2-6").await, expected(206, "bytes 2-6/10", "23456"));
        assert_eq!(objects(&world), 1);
        part(&mut client, "0-2").await;
        assert_eq!(part(&mut client, "0-6").await, expected(206, "bytes 0-6/10", "0123456"));
        // The last one completes it.
        assert_eq!(part(&mut client, "7-").await, expected(206, "bytes 7-9/10", "789"));
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
        assert_eq!(objects(&world), 1);
    });
    assert_eq!(file.asked().len(), 4);
}

#[test]
fn parts_of_different_versions_are_not_joined() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |world, mut client| {
        part(&mut client, "0-4").await;
        file.tag.set("\"b\"");
        file.body.replace(b"abcdefghij".to_vec());
        assert_eq!(part(&mut client, "5-9").await, expected(206, "bytes 5-9/10", "fghij"));
        assert_eq!(objects(&world), 2);
        assert_eq!(part(&mut client, "0-9").await, expected(206, "bytes 0-9/10", "abcdefghij"));
    });
}

#[test]
fn a_range_of_everything_is_stored_as_the_whole() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |_, mut client| {
        assert_eq!(part(&mut client, "0-").await, expected(206, "bytes 0-9/10", "0123456789"));
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
        assert_eq!(part(&mut client, "-1").await, expected(206, "bytes 9-9/10", "9"));
    });
    assert_eq!(file.asked(), ["bytes=0- - identity"]);
}

#[test]
fn an_origin_that_ignores_ranges_is_fetched_whole_and_cut() {
    run_with(rfc, STORED, async |world| {
        world.origin(crate::support::always("Cache-Control: max-age=60\r\n", "0123456789"));
        let mut client = world.client();
        assert_eq!(part(&mut client, "2-4").await, expected(206, "bytes 2-4/10", "234"));
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
        assert_eq!(world.count(Main::CacheHit), 1);
    });
}

#[test]
fn complete_object_is_renewed_as_a_whole() {
    let file = File::new(b"0123456789", "\"a\"");
    let vcl = "sub vcl_backend_response { set beresp.ttl = 10s; set beresp.grace = 10s; return (deliver); }";
    story_with(rfc, vcl, &file, async |world, mut client| {
        part(&mut client, "").await;
        tokio::time::sleep(std::time::Duration::from_secs(15)).await;
        let mut client = world.client();
        assert_eq!(part(&mut client, "0-3").await, expected(206, "bytes 0-3/10", "0123"));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"), "{}", world.story());
    });
    assert!(file.asked().iter().all(|asked| asked.starts_with("- ")), "{:?}", file.asked());
}

/// The response to a client whose range is answered with that head and body, and the response to
/// the next one.
fn lied_to(change: fn(&mut Parameters), range: &str, head: &'static str, body: &'static [u8]) -> Vec<(u16, String)> {
    let mut got = Vec::new();
    run_with(change, STORED, async |world| {
        world.origin(serve_each(move |_| [head.as_bytes(), b"\r\n", body].concat()));
        for _ in 0..2 {
            // A body that contradicts its head is aborted, and the connection with it.
            let response = world.client().get("/", range).await;
            got.push((response.status(), if response.is_whole { response.text() } else { "broken".into() }));
        }
        assert_eq!(world.count(Main::CacheHit), 0, "nothing of it is kept");
    });
    got
}

#[test]
fn inconsistent_206_reaches_no_client() {
    const PART: &str = "HTTP/1.1 206 Part\r\nETag: \"a\"\r\n";
    for (range, head, body) in [
        ("", "Content-Range: bytes 0-4/10\r\nContent-Length: 5\r\n", &b"01234"[..]),
        ("Range: bytes=0-4\r\n", "Content-Length: 5\r\n", b"01234"),
        ("Range: bytes=0-4\r\n", "Content-Range: bytes 0-4/10\r\nContent-Length: 3\r\n", b"012"),
        ("Range: bytes=0-4\r\n", "Content-Range: bytes 1-5/10\r\nContent-Length: 5\r\n", b"01234"),
        ("Range: bytes=0-4\r\n", "Content-Range: bytes 0-4/3\r\nContent-Length: 5\r\n", b"01234"),
        ("Range: bytes=0-4\r\n", "Content-Range: bytes 0-9/10\r\nContent-Length: 10\r\n", b"0123456789"),
        (
            "Range: bytes=0-4\r\n",
            "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 9\r\n",
            b"--x\r\n--x--",
        ),
    ] {
        let head: &'static str = Box::leak(format!("{PART}{head}").into_boxed_str());
        for (status, _) in lied_to(rfc, range, head, body) {
            assert_eq!(status, 503, "{range} {head}");
        }
    }
    for chunks in [&b"3\r\n012\r\n0\r\n\r\n"[..], b"7\r\n0123456\r\n0\r\n\r\n"] {
        let head = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/10\r\nTransfer-Encoding: chunked\r\n";
        for (status, text) in lied_to(rfc, "Range: bytes=0-4\r\n", head, chunks) {
            assert!(status == 503 || text == "broken", "{status} {text}");
        }
    }
}

#[test]
fn several_ranges_that_are_passed_come_back_as_they_are() {
    let vcl = "sub vcl_recv { return (pass); }";
    run_with(rfc, vcl, async |world| {
        world.origin(serve_each(|request| {
            let range = request.header("range").unwrap_or("-").to_owned();
            let fields = format!("Content-Type: multipart/byteranges; boundary=x\r\nX-Range: {range}\r\n");
            response("206 Part", &fields, b"--x\r\n...\r\n--x--")
        }));
        let answer = world.client().get("/", "Range: bytes=0-1,4-5\r\n").await;
        assert_eq!((answer.status(), answer.header("x-range")), (206, Some("bytes=0-1,4-5")));
        assert_eq!(answer.text(), "--x\r\n...\r\n--x--");
    });
}

#[test]
fn a_part_that_vcl_disguises_is_not_shared() {
    let file = File::new(b"0123456789", "\"a\"");
    let vcl = "sub vcl_backend_response { set beresp.ttl = 60s; set beresp.status = 200; return (deliver); }";
    story_with(rfc, vcl, &file, async |world, mut client| {
        part(&mut client, "0-3").await;
        part(&mut client, "0-3").await;
        assert_eq!(world.count(Main::CacheHit), 0);
    });
    assert_eq!(file.asked().len(), 2);
}

#[test]
fn slices_that_vcl_asks_for_under_keys_of_its_own_are_stored_as_they_are() {
    let file = File::new(b"0123456789", "\"a\"");
    let vcl = "sub vcl_recv { set req.http.X-Slice = req.http.Range; unset req.http.Range; return (hash); }
        sub vcl_hash { hash_data(req.http.X-Slice); }
        sub vcl_backend_fetch { set bereq.http.Range = bereq.http.X-Slice; }
        sub vcl_backend_response { set beresp.ttl = 60s; return (deliver); }";
    story_with(rfc, vcl, &file, async |world, mut client| {
        for _ in 0..2 {
            assert_eq!(part(&mut client, "2-4").await, expected(206, "bytes 2-4/10", "234"));
            assert_eq!(part(&mut client, "5-6").await, expected(206, "bytes 5-6/10", "56"));
        }
        assert_eq!(world.count(Main::CacheHit), 2);
    });
}

#[test]
fn client_that_has_the_part_gets_a_304() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |_, mut client| {
        part(&mut client, "0-4").await;
        let same = client.get("/", "Range: bytes=0-4\r\nIf-None-Match: \"a\"\r\n").await;
        assert_eq!((same.status(), same.header("content-range")), (304, None));
        let other = client.get("/", "Range: bytes=0-4\r\nIf-None-Match: \"b\"\r\n").await;
        assert_eq!(other.status(), 206);
    });
    assert_eq!(file.asked().len(), 1);
}

#[test]
fn leniency_uses_parts_that_are_not_what_they_say() {
    run_with(lenient, STORED, async |world| {
        world.origin(serve_each(|_| {
            response("206 Part", "Cache-Control: max-age=60\r\nContent-Range: bytes 4-9/10\r\n", b"01234")
        }));
        let mut client = world.client();
        assert_eq!(part(&mut client, "-5").await, expected(206, "bytes 4-9/10", "01234"));
        assert_eq!(part(&mut client, "-5").await.2, "01234");
        assert_eq!(part(&mut client, "6-8").await.2, "234");
        assert_eq!(part(&mut client, "6-").await.2, "234");
        assert_eq!(part(&mut client, "-1").await.2, "4");
        assert_eq!(world.count(Main::CacheHit), 4);
    });
}

#[test]
fn leniency_asks_for_the_rest_of_a_part_without_a_version_but_does_not_join_it() {
    let file = File::new(b"0123456789", "W/\"a\"");
    story_with(lenient, STORED, &file, async |_, mut client| {
        part(&mut client, "0-3").await;
        assert_eq!(part(&mut client, "").await, expected(200, "-", "0123456789"));
    });
    assert_eq!(file.asked(), ["bytes=0-3 - identity", "bytes=4- - identity", "- - identity"]);
}

#[test]
fn many_small_parts_are_not_copied_again_and_again() {
    let body: Vec<u8> = (0..200_000u32).map(|index| (index / 1000) as u8).collect();
    let file = File::new(&body, "\"a\"");
    story(&file, async |world, mut client| {
        for index in 0..200usize {
            let range = format!("Range: bytes={}-{}\r\n", index * 1000, index * 1000 + 999);
            let response = client.get("/", &range).await;
            assert!(response.status() == 206 && response.body == vec![index as u8; 1000], "{index}");
        }
        let copied: u64 = world.log().iter().filter_map(|line| line.strip_prefix("Length ")?.parse::<u64>().ok()).sum();
        assert!(copied < 20 * 200_000, "{copied} bytes were written for 200,000");
        assert!(objects(&world) < 20);
        assert_eq!(client.get("/", "").await.body.len(), body.len());
    });
}

#[test]
fn requests_for_different_parts_do_not_wait_for_one_another() {
    let file = File::new(b"0123456789", "\"a\"");
    story(&file, async |world, _| {
        let (mut one, mut two, mut same) = (world.client(), world.client(), world.client());
        let (one, two, same) = tokio::join!(part(&mut one, "0-3"), part(&mut two, "6-8"), part(&mut same, "0-3"));
        assert_eq!((one.2.as_str(), two.2.as_str(), same.2.as_str()), ("0123", "678", "0123"));
        assert_eq!(world.count(Main::BusySleep), 1, "only for the same part");
    });
    assert_eq!(file.asked().len(), 2);
}
