//! Directors whose members are not all reachable: the old text and the migrated one find the same.

use super::migrated;
use crate::support::{OriginRequest, Table, World, look_up, run_with, serve_each};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

const MEMBERS: &str = r#"
backend one { .host = "10.0.0.1"; .port = "80"; }
backend two { .host = "10.0.0.2"; .port = "80"; }
backend three { .host = "10.0.0.3"; .port = "80"; }
"#;

/// The origins that answer the requests, of which only some can be reached; with names that can be
/// looked up.
fn answers(
    vcl: &str,
    up: &'static [&'static str],
    names: &'static [(&'static str, &'static [&'static str])],
) -> Vec<String> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let result = Rc::clone(&told);
    run_with(
        |_| {},
        vcl,
        |world: Rc<World>| async move {
            let table: Rc<Table> = look_up(&world);
            for (name, addresses) in names {
                table.set(name, addresses);
            }
            for address in up {
                world.origin_at(
                    address,
                    serve_each(move |_: &OriginRequest| {
                        let body = format!("I am {address}");
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
                    }),
                );
            }
            for number in 0..12 {
                let mut client = world.client();
                client
                    .send(format!("GET /{number} HTTP/1.1\r\nHost: www.example.com\r\nX-User: u{number}\r\n\r\n"))
                    .await;
                let response = client.response().await;
                let line = response.head.lines().next().unwrap_or("").to_owned();
                told.borrow_mut().push(format!(
                    "/{number}: {line} {}",
                    if response.status() == 200 { response.text() } else { String::new() }
                ));
                // The effect of a failed connection has expired.
                sleep(Duration::from_secs(61)).await;
            }
        },
    );
    result.take()
}

#[track_caller]
fn check(text: &str, up: &'static [&'static str]) {
    check_names(text, up, &[]);
}

#[track_caller]
fn check_names(text: &str, up: &'static [&'static str], names: &'static [(&'static str, &'static [&'static str])]) {
    let new = migrated(text).1;
    assert_eq!(answers(text, up, names), answers(&new, up, names), "{new}");
}

const PASSES: &str = "
sub vcl_recv { set req.backend = d; return (pass); }
sub vcl_fetch { return (hit_for_pass); }";

const ONE_IS_UP: [&[&str]; 3] = [&["10.0.0.1:80"], &["10.0.0.2:80"], &["10.0.0.3:80"]];

#[test]
fn a_director_finds_the_one_member_that_can_be_reached() {
    for policy in ["round-robin", "fallback"] {
        let text = format!(
            "{MEMBERS}director d {policy} {{ {{ .backend = one; }} {{ .backend = two; }} {{ .backend = three; }} }}{PASSES}"
        );
        for up in ONE_IS_UP {
            check(&text, up);
        }
        check(&text, &[]);
    }
}

#[test]
fn a_fallback_director_goes_down_its_list_each_time() {
    let text = format!(
        "{MEMBERS}director d fallback {{ {{ .backend = one; }} {{ .backend = two; }} {{ .backend = three; }} }}{PASSES}"
    );
    check(&text, &["10.0.0.2:80", "10.0.0.3:80"]);
    check(&text, &["10.0.0.1:80", "10.0.0.3:80"]);
}

#[test]
fn director_with_a_key_keeps_its_retries() {
    for policy in ["client", "hash"] {
        for (retries, up) in
            [(".retries = 50;", ONE_IS_UP[1]), ("", &["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"][..])]
        {
            let text = format!(
                "{MEMBERS}director d {policy} {{ {retries} {{ .backend = one; .weight = 1; }} {{ .backend = two; .weight = 1; }}
                 {{ .backend = three; .weight = 1; }} }}
                 sub vcl_recv {{ set req.backend = d; set client.identity = req.url; return (lookup); }}
                 sub vcl_fetch {{ return (hit_for_pass); }}"
            );
            let (old, new) = (answers(&text, up, &[]), answers(&migrated(&text).1, up, &[]));
            let found = |all: &[String]| all.iter().filter(|one| one.contains("I am")).count();
            // The member for a key may differ; and there are four retries, of which those of a
            // client director may choose the same member again.
            let at_least = if policy == "client" { 9 } else { 12 };
            assert!(found(&old) == 12 && found(&new) >= at_least, "{policy}\n{old:?}\n{new:?}\n{}", migrated(&text).1);
        }
    }
}

#[test]
fn the_first_director_is_the_default() {
    let text = "\ndirector d fallback {
        { .backend = { .host = \"10.0.0.1\"; .port = \"80\"; } }
        { .backend = { .host = \"10.0.0.2\"; .port = \"80\"; } }
    }
    sub vcl_recv { return (pass); } sub vcl_fetch { return (hit_for_pass); }";
    check(text, &["10.0.0.1:80", "10.0.0.2:80"]);
    check(text, &["10.0.0.2:80"]);
    check(text, &[]);
}

#[test]
fn a_director_of_directors_goes_on() {
    let text = format!(
        "{MEMBERS}director inner round-robin {{ {{ .backend = one; }} {{ .backend = two; }} }}
         director d fallback {{ {{ .backend = inner; }} {{ .backend = three; }} }}{PASSES}"
    );
    for up in ONE_IS_UP {
        check(&text, up);
    }
    // For any number of requests to the first of them, the next one gets some.
    let text = format!(
        "{MEMBERS}director inner random {{ .retries = 9; {{ .backend = one; .weight = 1; }} }}
         director d fallback {{ {{ .backend = inner; }} {{ .backend = two; }} {{ .backend = three; }} }}{PASSES}"
    );
    check(&text, ONE_IS_UP[2]);
}

#[test]
fn a_name_leads_to_its_addresses() {
    let text = "\ndirector d dns { .list = { .port = \"80\"; \"10.0.0.0\"/30; } .ttl = 5m; }
        sub vcl_recv { set req.backend = d; return (pass); } sub vcl_fetch { return (hit_for_pass); }";
    const UP: &[&str] = &["10.0.0.1:80", "10.0.0.2:80"];
    check_names(text, UP, &[("www.example.com", &["10.0.0.1"])]);
    check_names(text, UP, &[("www.example.com", &["10.0.0.1", "10.0.0.2"])]);
    check_names(text, UP, &[("www.example.com", &["10.0.0.9"])]);
    check_names(text, UP, &[("www.example.com", &["10.0.0.9", "10.0.0.2"])]);
    check_names(text, UP, &[]);
    check_names(text, &["10.0.0.2:80"], &[("www.example.com", &["10.0.0.1", "10.0.0.2"])]);
    check_names(text, &[], &[("www.example.com", &["10.0.0.1", "10.0.0.2"])]);
}
