//! Groups of stored responses (RFC 9875).

use super::*;

/// A POST is passed.
const VCL: &str = "sub vcl_recv { if (req.method == \"POST\") { return (pass); } }";

/// Stores these targets, each with its header lines, and posts to `host` with an answer that has
/// these. Returns the targets that are still stored then. `vcl` follows that of these tests, and
/// `answer_line` is the status of the answer.
fn kept_of(
    targets: &[(&'static str, &'static str, &'static str)],
    vcl: &str,
    host: &str,
    answer_line: &'static str,
    answer: &str,
) -> Vec<bool> {
    let (targets, host, answer) = (targets.to_vec(), host.to_owned(), answer.to_owned());
    let mut kept = Vec::new();
    run_rfc_with(
        |_| {},
        &format!("{VCL} {vcl}"),
        async |world| {
            let headers = targets.clone();
            origin(&world, move |_, request| match request.line().starts_with("GET") {
                true => {
                    let found = headers.iter().find(|(_, target, _)| request.target() == *target).unwrap();
                    ok(&format!("Cache-Control: max-age=100\r\n{}", found.2), "x")
                }
                false => bare(answer_line, &answer),
            });
            let mut client = world.client();
            for (host, target, _) in &targets {
                client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
                let head = client.response().await.head.to_ascii_lowercase();
                assert!(head.starts_with("http/1.1 200") && !head.contains('\0'), "{head}");
            }
            client.send(format!("POST /changed HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n")).await;
            client.response().await;
            for (host, target, _) in &targets {
                client
                    .send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCache-Control: only-if-cached\r\n\r\n"))
                    .await;
                kept.push(client.response().await.status() == 200);
            }
        },
    );
    kept
}

const SITE: [(&str, &str, &str); 4] = [
    ("a.example", "/1", "Cache-Groups: \"one\"\r\n"),
    ("a.example", "/2", "Cache-Groups: \"two\", \"one\";x\r\n"),
    ("a.example", "/3", "Cache-Groups: \"two words\"\r\nCache-Groups: \"two\"\r\n"),
    ("a.example", "/4", "xkey: one two\r\n"),
];

#[test]
fn the_answer_to_a_change_removes_the_groups_that_it_names() {
    for (answer, expected) in [
        ("", [true, true, true, true]),
        ("Cache-Group-Invalidation: \"one\"\r\n", [false, false, true, true]),
        ("Cache-Group-Invalidation: \"two words\", \"none\"\r\n", [true, true, false, true]),
        ("Cache-Group-Invalidation: \"one\"\r\nCache-Group-Invalidation: \"two\"\r\n", [false, false, false, true]),
        ("Cache-Group-Invalidation: \"ONE\"\r\n", [true, true, true, true]),
        ("Cache-Group-Invalidation: one\r\n", [true, true, true, true]),
        ("Cache-Group-Invalidation: \"one\", 2\r\n", [true, true, true, true]),
        ("Cache-Groups: \"one\"\r\n", [true, true, true, true]),
    ] {
        assert_eq!(kept_of(&SITE, "", "a.example", "200 OK", answer), expected, "{answer}");
    }
}

#[test]
fn an_error_and_a_safe_request_remove_no_groups() {
    let answer = "Cache-Group-Invalidation: \"one\", \"two\"\r\n";
    for line in ["500 Oops", "404 Not Found"] {
        assert_eq!(kept_of(&SITE, "", "a.example", line, answer), [true; 4], "{line}");
    }
    let targets = [
        ("a.example", "/1", "Cache-Groups: \"one\"\r\n"),
        ("a.example", "/2", "Cache-Group-Invalidation: \"one\"\r\n"),
    ];
    assert_eq!(kept_of(&targets, "", "a.example", "200 OK", ""), [true; 2], "GET is safe");
}

#[test]
fn a_site_cannot_remove_the_groups_of_another_one() {
    let targets = [
        ("a.example", "/1", "Cache-Groups: \"one\"\r\n"),
        ("b.example", "/1", "Cache-Groups: \"one\"\r\n"),
        ("a.example:8080", "/1", "Cache-Groups: \"one\"\r\n"),
    ];
    let answer = "Cache-Group-Invalidation: \"one\"\r\n";
    for (host, expected) in [
        ("a.example", [false, true, true]),
        ("B.example:80", [true, false, true]),
        ("a.example:8080", [true, true, false]),
        ("c.example", [true, true, true]),
        ("example", [true, true, true]),
    ] {
        assert_eq!(kept_of(&targets, "", host, "200 OK", answer), expected, "{host}");
    }
    let one_name_for_backends = "sub vcl_backend_fetch { set bereq.http.Host = \"inside\"; }";
    assert_eq!(kept_of(&targets, one_name_for_backends, "a.example", "200 OK", answer), [false, true, true]);
}

#[test]
fn groups_count_up_to_the_limit() {
    let many: String = (0..700).map(|number| format!(", \"{number}\"")).collect();
    let answer = format!("Cache-Group-Invalidation: \"one\"{many}\r\n");
    assert_eq!(kept_of(&SITE, "", "a.example", "200 OK", &answer), [false, false, true, true]);
    let answer = format!("Cache-Group-Invalidation: {}, \"one\"\r\n", &many[2..]);
    assert_eq!(kept_of(&SITE, "", "a.example", "200 OK", &answer), [true; 4]);
}

#[test]
fn groups_removed_by_vcl_do_not_count() {
    let vcl = "sub vcl_backend_response { if (bereq.url == \"/1\") { unset beresp.http.Cache-Groups; } }";
    let answer = "Cache-Group-Invalidation: \"one\"\r\n";
    assert_eq!(kept_of(&SITE, vcl, "a.example", "200 OK", answer), [true, false, true, true]);
}

#[test]
fn groups_are_kept_where_neither_clients_nor_records_see_them() {
    run_rfc_with(
        |_| {},
        VCL,
        async |world| {
            origin(&world, |_, request| match request.line().split(' ').collect::<Vec<_>>()[..2] {
                ["GET", "/private"] => ok("Cache-Control: private\r\nCache-Groups: \"one\", \"two\"\r\n", "x"),
                ["GET", _] => ok("Cache-Control: max-age=100\r\nCache-Groups: \"one\", \"two\", \"one\"\r\n", "x"),
                _ => bare("200 OK", "Cache-Group-Invalidation: \"one\", \"two\"\r\n"),
            });
            let mut client = world.client();
            client.get("/private", "").await;
            assert_eq!(world.engine.cache.tag_usage().entries, 0, "what is private is in no group");
            let first = client.get("/1", "").await.head;
            let names = |head: &str| -> Vec<String> {
                head.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
            };
            let hit = client.get("/1", "").await.head;
            assert_eq!(names(&first), names(&hit));
            assert_eq!(names(&hit).iter().filter(|name| name.starts_with("Cache-G")).count(), 1, "{hit}");
            assert_eq!(world.engine.cache.tag_usage().entries, 2);
            send(&mut client, "POST", "/changed", "Content-Length: 0\r\n").await;
            assert_eq!(world.engine.cache.tag_usage().entries, 0);
            let reasons = reasons(&world);
            assert!(reasons.iter().any(|reason| reason == "invalidated copies=1 groups=2"), "{reasons:?}");
            client.get("/1", "").await;
            world.expect_log("miss-absent gone=invalidated");
        },
    );
}

#[test]
fn a_response_that_was_validated_is_in_the_groups_that_it_names_now() {
    run_rfc_with(
        |_| {},
        VCL,
        async |world| {
            origin(&world, |number, request| match (request.line().starts_with("GET"), number) {
                (true, 1) => ok("Cache-Control: max-age=10\r\nETag: \"1\"\r\nCache-Groups: \"old\"\r\n", "x"),
                (true, _) => {
                    "HTTP/1.1 304 Same\r\nCache-Control: max-age=100\r\nETag: \"1\"\r\nCache-Groups: \"new\"\r\n\r\n"
                        .to_owned()
                }
                (false, _) => {
                    let named = request.header("named").unwrap_or_default();
                    bare("200 OK", &format!("Cache-Group-Invalidation: \"{named}\"\r\n"))
                }
            });
            let mut client = world.client();
            client.get("/1", "").await;
            wait(20).await;
            assert_eq!(client.get("/1", "").await.text(), "x");
            for (named, count) in [("old", 1), ("new", 0)] {
                send(&mut client, "POST", "/changed", &format!("Named: {named}\r\nContent-Length: 0\r\n")).await;
                assert_eq!(world.engine.cache.object_count(), count, "{named}\n{}", world.story());
            }
        },
    );
}

#[test]
fn under_varnish_nothing_is_in_a_group() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            origin(&world, |_, request| match request.line().starts_with("GET") {
                true => ok("Cache-Control: max-age=100\r\nCache-Groups: \"one\"\r\n", "x"),
                false => bare("200 OK", "Cache-Group-Invalidation: \"one\"\r\n"),
            });
            let mut client = world.client();
            client.get("/1", "").await;
            assert_eq!(world.engine.cache.tag_usage().entries, 0);
            send(&mut client, "POST", "/changed", "Content-Length: 0\r\n").await;
            assert_eq!(world.engine.cache.object_count(), 1);
        },
    );
}
