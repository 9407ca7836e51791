//! `director` blocks: which member a request goes to.

use super::{noting, page};
use crate::support::{World, run_with};
use std::rc::Rc;

/// Three origins that say which one they are, as a text of backends.
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

/// Who answers that many requests for a URL.
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
fn a_client_director_goes_by_the_identity_that_is_set_when_the_backend_is_needed() {
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
fn a_hash_director_goes_by_what_is_asked_for() {
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
