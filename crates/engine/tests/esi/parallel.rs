//! Fragments are fetched in parallel, within bounds, and delivered in order.

use super::site::{Site, page, run_parsing, run_parsing_with};
use crate::support::run_with;
use std::cell::Cell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;
use surface::parameter::debug;
use tokio::time::Instant;

const SLOW: Duration = Duration::from_millis(200);

fn including(count: usize, prefix: &str) -> String {
    let mut text = String::from("<p>");
    (0..count).for_each(|number| _ = write!(text, "<esi:include src=\"/{prefix}{number}\"/>"));
    text + "</p>"
}

fn slow_site(count: usize) -> impl Iterator<Item = (String, super::site::Answer)> {
    let fragments = (0..count).map(|number| (format!("/f{number}"), page(format!("[{number}]")).after(SLOW)));
    [("/".to_owned(), page(including(count, "f")))].into_iter().chain(fragments)
}

fn expected(count: usize) -> String {
    format!("<p>{}</p>", (0..count).map(|number| format!("[{number}]")).collect::<String>())
}

#[test]
fn ten_fragments_of_a_slow_origin_take_as_long_as_one() {
    run_parsing(async |world| {
        Site::serve(&world, slow_site(10));
        let begun = Instant::now();
        assert_eq!(world.client().get("/", "").await.text(), expected(10));
        let took = begun.elapsed();
        assert!((SLOW..SLOW + Duration::from_millis(10)).contains(&took), "{took:?}");
    });
}

#[test]
fn the_parameter_bounds_how_many_are_under_way() {
    for (most, rounds) in [(1, 10), (2, 5), (5, 2), (10, 1)] {
        run_parsing_with(
            |parameters| parameters.esi_parallel = most,
            async |world| {
                Site::serve(&world, slow_site(10));
                let begun = Instant::now();
                assert_eq!(world.client().get("/", "").await.text(), expected(10));
                let took = begun.elapsed();
                let least = SLOW * rounds;
                assert!((least..least + Duration::from_millis(20)).contains(&took), "{most}: {took:?}");
            },
        );
    }
}

#[test]
fn under_a_test_script_fragments_come_one_after_the_other_on_one_connection() {
    run_parsing_with(
        |parameters| parameters.debug |= debug::VTC_MODE,
        async |world| {
            let site = Site::serve(&world, slow_site(5));
            assert_eq!(world.client().get("/", "").await.text(), expected(5));
            assert_eq!(site.targets(), ["/", "/f0", "/f1", "/f2", "/f3", "/f4"]);
            assert_eq!(world.dialled(), 1);
        },
    );
}

#[test]
fn nested_pages_share_one_bound_and_never_wait_for_one_another() {
    // Three levels of four: 84 fragments, of which at most five and the three ancestors are under
    // way.
    for most in [1, 2, 5, 1000] {
        run_parsing_with(
            |parameters| parameters.esi_parallel = most,
            async |world| {
                let mut pages = vec![("/".to_owned(), page(including(4, "a")))];
                for one in 0..4 {
                    pages.push((format!("/a{one}"), page(including(4, &format!("b{one}"))).after(SLOW)));
                    for two in 0..4 {
                        pages.push((format!("/b{one}{two}"), page(including(4, &format!("c{one}{two}"))).after(SLOW)));
                        for three in 0..4 {
                            pages.push((format!("/c{one}{two}{three}"), page("<x>").after(SLOW)));
                        }
                    }
                }
                Site::serve(&world, pages);
                let peak = Rc::new(Cell::new(0));
                let (context, seen) = (Rc::clone(&world.context), Rc::clone(&peak));
                let watcher = tokio::task::spawn_local(async move {
                    loop {
                        seen.set(seen.get().max(context.in_flight()));
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                });
                let begun = Instant::now();
                let text = world.client().get("/", "").await.text();
                watcher.abort();
                let inner = format!("<p>{}</p>", "<x>".repeat(4));
                let middle = format!("<p>{}</p>", inner.repeat(4));
                assert_eq!(text, format!("<p>{}</p>", middle.repeat(4)), "{most}");
                // Each fragment is a request and a fetch; the page is a request.
                let allowed = 2 * (usize::try_from(most).unwrap() + 3) + 1;
                assert!(peak.get() <= allowed, "{most}: {} under way", peak.get());
                if most == 1000 {
                    assert!(begun.elapsed() < SLOW * 4, "{:?}", begun.elapsed());
                }
                assert_eq!(world.context.in_flight(), 0);
            },
        );
    }
}

/// A VCL whose origin takes one connection at a time; `more` configures the waiting for it.
fn with_one_connection(more: &str) -> String {
    format!(
        "vcl 4.1; backend default {{ .host = \"10.0.0.1\"; .port = \"80\"; .max_connections = 1; {more} }}
         sub vcl_recv {{ if (req.url ~ \"^/(f|big)\") {{ return (pass); }} }}
         sub vcl_backend_response {{ set beresp.do_esi = bereq.url !~ \"^/(f|big)\"; }}"
    )
}

#[test]
fn an_origin_that_takes_one_connection_at_a_time_loses_no_fragment() {
    run_with(
        |_| {},
        &with_one_connection(""),
        async |world| {
            let site = Site::serve(&world, slow_site(10));
            assert_eq!(world.client().get("/", "").await.text(), expected(10), "{}", world.story());
            assert_eq!(site.targets().len(), 11, "each is asked for once");
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn a_fragment_that_waits_for_its_turn_gives_its_connection_to_the_one_before_it() {
    run_with(
        |_| {},
        &with_one_connection(".wait_limit = 10; .wait_timeout = 30s;"),
        async |world| {
            let big = "b".repeat(1_000_000);
            let site = Site::serve(
                &world,
                [
                    ("/", page("<p><esi:include src=\"/nested\"/><esi:include src=\"/big\"/></p>")),
                    ("/nested", page("<q><esi:include src=\"/f0\"/></q>")),
                    ("/f0", page("[0]")),
                    ("/big", page(big.clone())),
                ],
            );
            world.client().get("/nested", "").await;
            let begun = Instant::now();
            let text = world.client().get("/", "").await.text();
            assert!(text == format!("<p><q>[0]</q>{big}</p>"), "{} bytes\n{}", text.len(), world.story());
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            assert_eq!(site.targets().iter().filter(|target| *target == "/big").count(), 2);
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn text_before_a_slow_fragment_is_sent_at_once() {
    run_parsing(async |world| {
        Site::serve(
            &world,
            [
                ("/", page("<p>first<esi:include src=\"/slow\"/>last</p>")),
                ("/slow", page("slow").after(Duration::from_secs(5))),
            ],
        );
        let mut client = world.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let begun = Instant::now();
        let early = client.read_until("first").await;
        assert!(early.ends_with("first") && begun.elapsed() < Duration::from_millis(10), "{early}");
        let rest = client.read_until("0\r\n\r\n").await;
        assert!(rest.contains("slow") && rest.contains("last</p>"), "{rest}");
    });
}
