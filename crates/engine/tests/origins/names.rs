//! Names of backends that change while requests arrive.

use super::backend;
use crate::support::{OriginRequest, Table, World, always, run_with};
use backend::dns_names::resolve::Resolve;
use backend::{FollowSettings, follow_name};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::counter::{Main, Vbe};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

const VCL: &str = "vcl 4.1; backend default { .host = \"origin.example\"; } sub vcl_recv { return (pass); }";

/// Looks up the name of the default backend repeatedly, as the worker does.
fn follow(world: &World) -> Rc<Table> {
    let table = Rc::new(Table::default());
    let engine = Arc::clone(&world.engine);
    tokio::task::spawn_local(follow_name(
        backend(world, "default"),
        Rc::clone(&table) as Rc<dyn Resolve>,
        move || FollowSettings::of(&engine.parameters.load()),
        world.engine.ring.clone(),
    ));
    table
}

async fn answers(world: &World, count: usize) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for _ in 0..count {
        seen.insert(world.client().get("/", "").await.text());
    }
    seen
}

#[test]
fn requests_follow_a_name_to_all_its_addresses_and_those_under_way_end_where_they_began() {
    run_with(
        |parameters| parameters.backend_follow_dns = "system".to_owned(),
        VCL,
        async |world| {
            for (address, text) in [("192.0.2.81:80", "one"), ("192.0.2.82:80", "two"), ("192.0.2.83:80", "three")] {
                world.origin_at(address, move |mut stream| async move {
                    while let Some(request) = OriginRequest::read(&mut stream).await {
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
                        let _ = stream.write_all(head.as_bytes()).await;
                        if request.target() == "/slow" {
                            sleep(Duration::from_secs(60)).await;
                        }
                        let _ = stream.write_all(text.as_bytes()).await;
                    }
                });
            }
            let table = follow(&world);
            table.set("origin.example", &["192.0.2.81", "192.0.2.82"]);
            sleep(Duration::from_secs(2)).await;
            assert_eq!(answers(&world, 10).await.len(), 2, "{}", world.story());
            assert_eq!(super::vbe(&world, "default", Vbe::Addresses), 2);

            let mut slow = world.client();
            slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            table.set("origin.example", &["192.0.2.83"]);
            sleep(Duration::from_secs(40)).await;
            assert_eq!(answers(&world, 10).await, BTreeSet::from(["three".to_owned()]), "{}", world.story());
            let old = slow.response().await;
            assert!(old.is_whole && ["one", "two"].contains(&old.text().as_str()), "{old:?}");
            world.context.close_idle_origins(world.context.clock.now(), 1000.0);
            assert_eq!(world.context.pool.len(), 1, "the connections to the old addresses are closed");

            // DNS fails: the last good answer stays valid.
            table.addresses.borrow_mut().clear();
            sleep(Duration::from_secs(500)).await;
            assert_eq!(answers(&world, 3).await, BTreeSet::from(["three".to_owned()]), "{}", world.story());
            assert_eq!(world.count(Main::FetchFailed), 0);
        },
    );
}

#[test]
fn an_address_of_several_that_refuses_costs_no_request() {
    run_with(
        |parameters| parameters.backend_follow_dns = "system".to_owned(),
        VCL,
        async |world| {
            world.origin_at("192.0.2.82:80", always("Connection: close\r\n", "two"));
            let table = follow(&world);
            table.set("origin.example", &["192.0.2.81", "192.0.2.82"]);
            sleep(Duration::from_secs(2)).await;
            assert_eq!(answers(&world, 10).await, BTreeSet::from(["two".to_owned()]), "{}", world.story());
            assert_eq!(world.count(Main::FetchFailed), 0);
            assert!(world.dialled() <= 11, "it is tried once in a while: {}", world.dialled());
        },
    );
}

#[test]
fn name_keeps_its_address_from_load_time_unless_the_parameter_is_set() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            assert_eq!(backend(&world, "default").definition().follows, None);
            world.origin_at("192.0.2.80:80", always("", "first"));
            let table = follow(&world);
            table.set("origin.example", &["192.0.2.81"]);
            sleep(Duration::from_secs(100)).await;
            assert_eq!(answers(&world, 3).await, BTreeSet::from(["first".to_owned()]), "{}", world.story());
            assert_eq!(table.asked.get(), 0);
        },
    );
}

/// An origin of HTTP/2 that identifies itself.
fn named(world: &World, address: &str, name: &'static str) {
    world.origin_at(address, move |stream| async move {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let mut body = respond.send_response(http::Response::new(()), false).unwrap();
            body.send_data(bytes::Bytes::from_static(name.as_bytes()), true).unwrap();
        }
    });
}

#[test]
fn connections_that_requests_share_take_turns_among_the_addresses_too() {
    run_with(
        |parameters| parameters.backend_follow_dns = "system".to_owned(),
        &VCL.replace("example\";", "example\"; .http2 = true;"),
        async |world| {
            named(&world, "192.0.2.91:80", "one");
            named(&world, "192.0.2.93:80", "three");
            let table = follow(&world);
            table.set("origin.example", &["192.0.2.91", "192.0.2.92"]);
            sleep(Duration::from_secs(2)).await;
            assert_eq!(answers(&world, 10).await, BTreeSet::from(["one".to_owned()]), "{}", world.story());
            assert_eq!(world.dialled(), 3, "the other one cannot be reached");
            named(&world, "192.0.2.92:80", "two");
            sleep(Duration::from_secs(11)).await;
            assert_eq!(answers(&world, 10).await.len(), 2, "{}", world.story());
            assert_eq!(world.dialled(), 4);

            table.set("origin.example", &["192.0.2.93"]);
            sleep(Duration::from_secs(40)).await;
            assert_eq!(answers(&world, 10).await, BTreeSet::from(["three".to_owned()]), "{}", world.story());
            world.context.close_idle_origins(world.context.clock.now(), 1000.0);
            assert_eq!(world.context.shared_connections(), 1, "the connections to the old addresses are closed");
        },
    );
}
