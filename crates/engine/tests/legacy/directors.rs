//! `director` blocks: the member that a request is sent to.

use super::{noting, page};
use crate::support::{World, run_with};
use std::rc::Rc;

/// Three origins that identify themselves, as a text of backends.
const THREE: &str = r#"
backend one { .host = "10.0.0.1"; .port = "80"; }
backend two { .host = "10.0.0.2"; .port = "80"; }
backend three { .host = "10.0.0.3"; .port = "80"; }
"#;

fn run_three<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(
        |_| {},
        &format!("{THREE}{vcl}"),
        |world| async move {
            for (address, name) in [("10.0.0.1:80", "one"), ("10.0.0.2:80", "two"), ("10.0.0.3:80", "three")] {
                world.origin_at(address, noting(&super::Asked::default(), move |_| page("200 OK", "", name)));
            }
            story(world).await;
        },
    );
}

/// The origins that answer that many requests for a URL.
async fn answers(world: &World, target: &str, headers: &str, count: usize) -> Vec<String> {
    let mut client = world.client();
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        names.push(client.get(target, headers).await.text());
    }
    names
}

#[test]
fn round_robin_goes_round_and_a_member_may_be_described_in_it() {
    let vcl = r#"
director all round-robin {
    { .backend = one; }
    { .backend = { .host = "10.0.0.2"; .port = "80"; } }
}
sub vcl_recv { set req.backend = all; return (pass); }
sub vcl_fetch { return (hit_for_pass); }"#;
    run_three(vcl, |world| async move {
        assert_eq!(answers(&world, "/", "", 4).await, ["one", "two", "one", "two"], "{}", world.story());
    });
}

#[test]
fn the_first_director_is_the_default_when_no_backend_comes_before_it() {
    let vcl = r#"
director default round-robin {
    { .backend = { .host = "10.0.0.3"; .port = "80"; } }
    { .backend = { .host = "10.0.0.2"; .port = "80"; } }
}
sub vcl_recv { return (pass); }
sub vcl_fetch { return (hit_for_pass); }"#;
    run_three(vcl, |world| async move {
        assert_eq!(answers(&world, "/", "", 3).await, ["three", "two", "three"], "{}", world.story());
    });
}

#[test]
fn client_director_uses_the_identity_at_the_time_of_choice() {
    let vcl = r#"
director sticky client {
    { .backend = one; .weight = 1; }
    { .backend = two; .weight = 1; }
    { .backend = three; .weight = 1; }
}
sub vcl_recv {
    set req.backend = sticky;
    if (req.http.X-User) { set client.identity = req.http.X-User; }
    return (pass);
}
sub vcl_fetch { return (hit_for_pass); }"#;
    run_three(vcl, |world| async move {
        let mut all = std::collections::BTreeSet::new();
        for user in 0..16 {
            let names = answers(&world, "/", &format!("X-User: someone {user}\r\n"), 3).await;
            assert!(names.iter().all(|name| *name == names[0]), "{user}: {names:?}");
            all.extend(names);
        }
        assert_eq!(all.len(), 3, "users are spread");
        let unnamed = answers(&world, "/a", "", 2).await;
        assert_eq!(unnamed[0], unnamed[1], "the same address");
    });
}

#[test]
fn hash_director_chooses_by_the_request() {
    let vcl = r#"
director by_url hash {
    { .backend = one; .weight = 1; }
    { .backend = two; .weight = 1; }
    { .backend = three; .weight = 1; }
}
sub vcl_recv { set req.backend = by_url; return (lookup); }
sub vcl_fetch { set beresp.ttl = 1s; return (hit_for_pass); }"#;
    run_three(vcl, |world| async move {
        let mut all = std::collections::BTreeSet::new();
        for page in 0..16 {
            let target = format!("/{page}");
            let names = answers(&world, &target, "", 2).await;
            assert_eq!(names[0], names[1], "{target}");
            all.extend(names);
        }
        assert_eq!(all.len(), 3, "pages are spread");
    });
}

#[test]
fn a_fallback_director_uses_the_first_that_is_well() {
    let vcl = r#"
director d fallback { { .backend = one; } { .backend = two; } }
sub vcl_recv {
    set req.backend = d;
    if (!req.backend.healthy) { error 503 "all sick"; }
    return (pass);
}
sub vcl_fetch { return (hit_for_pass); }"#;
    run_three(vcl, |world| async move {
        assert_eq!(answers(&world, "/", "", 2).await, ["one", "one"], "{}", world.story());
    });
}

/// An origin at the address of `well` only: connections to the others are refused.
fn run_one_of_three<F: Future<Output = ()>>(vcl: &str, well: &'static str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(
        |_| {},
        &format!("{THREE}{vcl}"),
        |world| async move {
            world.origin_at(well, noting(&super::Asked::default(), |_| page("200 OK", "", "well")));
            story(world).await;
        },
    );
}

const PASSES: &str = "
sub vcl_recv { set req.backend = d; return (pass); }
sub vcl_fetch { return (hit_for_pass); }";

#[test]
fn a_member_that_cannot_be_reached_is_followed_by_the_next() {
    for policy in ["round-robin", "fallback"] {
        let vcl = format!(
            "director d {policy} {{ {{ .backend = one; }} {{ .backend = two; }} {{ .backend = three; }} }}{PASSES}"
        );
        run_one_of_three(&vcl, "10.0.0.3:80", |world| async move {
            assert_eq!(answers(&world, "/", "", 1).await, ["well"], "{}", world.story());
            world.expect_log("FetchError backend one: fail errno 111 (Connection refused)");
            world.expect_log("FetchError backend two: fail errno 111 (Connection refused)");
        });
    }
}

#[test]
fn a_fetch_fails_with_the_last_member_when_none_can_be_reached() {
    let vcl = format!("director d fallback {{ {{ .backend = one; }} {{ .backend = two; }} }}{PASSES}");
    run_one_of_three(&vcl, "10.0.0.3:80", |world| async move {
        assert_eq!(world.client().get("/", "").await.status(), 503);
        let failed = world.log().into_iter().filter(|line| line.contains("FetchError")).collect::<Vec<_>>();
        assert_eq!(failed.len(), 2, "{failed:?}");
    });
}

/// Number of forty requests that found the one reachable member of four, and number of connection
/// attempts.
fn forty(policy: &str, retries: &str) -> (usize, usize) {
    let found = Rc::new(std::cell::Cell::new((0, 0)));
    let told = Rc::clone(&found);
    let vcl = format!(
        "director d {policy} {{ {retries} {{ .backend = one; .weight = 1; }} {{ .backend = two; .weight = 1; }}
         {{ .backend = three; .weight = 1; }} {{ .backend = {{ .host = \"10.0.0.4\"; .port = \"80\"; }} .weight = 1; }} }}
         sub vcl_recv {{ set req.backend = d; set client.identity = req.url; return (lookup); }}
         sub vcl_fetch {{ return (hit_for_pass); }}"
    );
    run_one_of_three(&vcl, "10.0.0.3:80", |world| async move {
        let mut well = 0;
        for number in 0..40 {
            // Failures do not affect later requests.
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            well += usize::from(world.client().get(&format!("/{number}"), "").await.status() == 200);
        }
        told.set((well, world.log().iter().filter(|line| line.contains("FetchError")).count()));
    });
    found.get()
}

#[test]
fn retries_say_how_often_a_member_is_chosen() {
    for policy in ["random", "client", "hash"] {
        let (once, _) = forty(policy, ".retries = 1;");
        assert!((3..=18).contains(&once), "{policy}: one of four, by luck: {once}");
        let (unsaid, _) = forty(policy, "");
        assert!((20..40).contains(&unsaid), "{policy}: four times, as there are four members: {unsaid}");
        let (often, tried) = forty(policy, ".retries = 50;");
        assert_eq!(often, 40, "{policy}");
        assert!(tried > 60, "{policy}: {tried}");
        assert_eq!(forty(policy, ".retries = 0;").0, 0, "{policy}");
    }
}

#[test]
fn retries_are_bounded() {
    let vcl = format!("director d random {{ .retries = 100000; {{ .backend = one; .weight = 1; }} }}{PASSES}");
    run_one_of_three(&vcl, "10.0.0.3:80", |world| async move {
        assert_eq!(world.client().get("/", "").await.status(), 503);
        let failed = world.log().iter().filter(|line| line.contains("FetchError")).count();
        assert_eq!(failed, surface::limits::DIRECTOR_TRIES_MAX);
    });
}

#[test]
fn a_director_of_directors_goes_on_when_one_of_them_has_no_more() {
    let vcl = format!(
        "director inner random {{ .retries = 2; {{ .backend = one; .weight = 1; }} }}
         director d fallback {{ {{ .backend = inner; }} {{ .backend = two; }} {{ .backend = three; }} }}{PASSES}"
    );
    run_one_of_three(&vcl, "10.0.0.3:80", |world| async move {
        assert_eq!(answers(&world, "/", "", 1).await, ["well"], "{}", world.story());
        let failed = world.log().into_iter().filter(|line| line.contains("FetchError")).collect::<Vec<_>>();
        assert_eq!(failed.len(), 3, "{failed:?}");
    });
}

#[test]
fn the_host_is_that_of_the_member_that_is_asked() {
    let vcl = format!(
        "director d fallback {{ {{ .backend = one; }} {{ .backend = three; }} }}
         sub vcl_miss {{ unset bereq.http.Host; }} sub vcl_pass {{ unset bereq.http.Host; }}{PASSES}"
    );
    let asked = super::Asked::default();
    let noted = Rc::clone(&asked);
    run_one_of_three(&vcl, "10.0.0.9:80", |world| async move {
        world.origin_at("10.0.0.3:80", noting(&asked, |_| page("200 OK", "", "three")));
        assert_eq!(answers(&world, "/", "", 1).await, ["three"], "{}", world.story());
    });
    assert_eq!(noted.borrow()[0].header("host"), Some("10.0.0.3"), "{:?}", noted.borrow()[0]);
}

#[test]
fn a_pipe_goes_to_the_member_that_can_be_reached() {
    let vcl = "director d round-robin { { .backend = one; } { .backend = three; } }
        sub vcl_recv { set req.backend = d; return (pipe); } sub vcl_fetch { return (hit_for_pass); }";
    run_one_of_three(vcl, "10.0.0.3:80", |world| async move {
        assert_eq!(answers(&world, "/", "Connection: close\r\n", 1).await, ["well"], "{}", world.story());
    });
}

#[test]
fn a_director_is_healthy_while_a_member_is_whatever_it_chooses_by() {
    for policy in ["client", "hash", "random"] {
        let vcl = format!(
            "director d {policy} {{ {{ .backend = one; .weight = 1; }} }}
             sub vcl_recv {{ set req.backend = d; if (!req.backend.healthy) {{ error 500 \"sick\"; }} return (pass); }}
             sub vcl_fetch {{ return (hit_for_pass); }}"
        );
        run_three(&vcl, |world| async move {
            assert_eq!(world.client().get("/", "").await.status(), 200, "{policy}");
            let active = world.engine.vcl.load().active.clone().unwrap();
            let one = active.directors.lookup("one").unwrap();
            active.directors.own_health(one).unwrap().set_admin(backend::health::AdminHealth::Sick, 1.0);
            assert_eq!(world.client().get("/", "").await.status(), 500, "{policy}");
        });
    }
}
