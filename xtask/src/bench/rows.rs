//! The rows of the table: the requests, the servers, and the setting.
//!
//! Rows of a *scene* share running servers. `@` in a path is replaced by a number that no other
//! measurement has, so that intended misses are misses in every round.

use super::running::{Running, Started};
use crate::frontdoor::servers::{Entry, Key};
use crate::measure::hits;
use crate::servers::{Kind, Setting};
use load::choice::{Choice, Zipf};
use load::plan::{Pace, Plan, Protocol};
use std::path::Path;
use std::time::Duration;

/// Sizes that `--quick` makes small.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Objects among which hits are spread.
    pub objects: [u64; 3],
    /// Idle connections.
    pub idle: usize,
    /// The large object, in bytes.
    pub large_bytes: u64,
    /// Number of clients that fetch it.
    pub large_clients: usize,
}

/// The whole table.
pub const FULL: Size =
    Size { objects: [10_000, 100_000, 1_000_000], idle: 50_000, large_bytes: 1 << 30, large_clients: 200 };
/// Enough to see that every row works.
pub const QUICK: Size = Size { objects: [100, 1_000, 5_000], idle: 500, large_bytes: 8 << 20, large_clients: 20 };

/// The origin behind the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    /// The bare epoll loop.
    Floor,
    /// `origin.rs`.
    Sized,
}

/// Running servers, and the rows measured on them.
pub struct Scene {
    /// The measured servers.
    pub servers: Servers,
    /// Their origin.
    pub behind: Behind,
    /// Objects requested once before the measurement: a pattern and their number.
    pub fill: Option<(String, u64)>,
    /// The rows, in the order of each round.
    pub rows: Vec<Row>,
}

/// Selection of servers.
#[derive(Clone)]
pub enum Servers {
    /// Servers without TLS, in this setting.
    Clear(&'static [Kind], Setting),
    /// Servers with TLS, HTTP/2 and HTTP/3.
    Doors,
    /// Started by a function, from a folder, the port of `origin.rs` and the servers' core; the
    /// result includes the names of missing programs.
    Made(fn(&Path, u16, usize) -> Started),
}

/// A line of a plot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Family {
    /// Plots over the number of connections.
    Connections,
    /// Plots over the length of the body.
    Bodies,
    /// Plots over the number of objects.
    Objects,
    /// Plots over the number of loops.
    Loops,
}

/// A row.
pub struct Row {
    /// Name on the command line.
    pub name: String,
    /// Title for readers.
    pub title: String,
    /// The load.
    pub plan: Plan,
    /// Listener that receives the load.
    pub entry: Entry,
    /// A concurrent second load, whose results are ignored.
    pub beside: Option<Plan>,
    /// A point of plots: the family, and the position.
    pub points: Vec<(Family, f64)>,
    /// True if the row uses a feature that the floor lacks.
    pub is_beyond_the_floor: bool,
    /// True if it ends by its number of requests, and one round is enough.
    pub is_long: bool,
}

impl Row {
    /// The port of a running server for this row; `None` if the server cannot do it.
    pub fn port_at(&self, server: &Running) -> Option<u16> {
        server.port(self.entry, self.plan.protocol, self.plan.idle > 0 || self.is_beyond_the_floor)
    }

    /// A row without TLS and special settings.
    pub fn new(name: &str, title: &str, plan: Plan) -> Row {
        Row {
            name: name.to_owned(),
            title: title.to_owned(),
            plan,
            entry: Entry::Clear,
            beside: None,
            points: Vec::new(),
            is_beyond_the_floor: false,
            is_long: false,
        }
    }

    fn at(self, entry: Entry) -> Row {
        let tls = matches!(entry, Entry::Secured(_));
        let mut plan = self.plan;
        plan.target.tls = tls;
        Row { entry, plan, ..self }
    }

    fn point(mut self, family: Family, place: f64) -> Row {
        self.points.push((family, place));
        self
    }
}

/// Every server but the floor.
const CACHES: &[Kind] = &[Kind::Copal, Kind::Varnish, Kind::Nginx, Kind::Haproxy];
/// Servers that store large objects and refresh in the background.
const LARGE: &[Kind] = &[Kind::Copal, Kind::Varnish, Kind::Nginx];
/// Servers that run VCL.
const VCL: &[Kind] = &[Kind::Copal, Kind::Varnish];

/// Under the policy of the RFCs a cookie alone does not cause a pass.
const PASS: &str = "sub vcl_recv { if (req.http.Cookie) { return (pass); } }\n";

/// Request rate of the calm clients next to slow misses.
const CALM_PER_SECOND: f64 = 2_000.0;

fn counted(pattern: &str, plan: Plan) -> Plan {
    Plan { choice: Choice::Counted { pattern: pattern.to_owned(), numbers: u64::MAX >> 1 }, ..plan }
}

fn open(per_second: f64, burst: u64, plan: Plan) -> Plan {
    Plan { pace: Pace::Open { per_second, burst }, ..plan }
}

fn with_header(name: &str, value: &str, mut plan: Plan) -> Plan {
    plan.headers.push((name.to_owned(), value.to_owned()));
    plan
}

/// All scenes.
pub fn scenes(size: &Size) -> Vec<Scene> {
    let clear =
        |kinds, behind, setting, rows| Scene { servers: Servers::Clear(kinds, setting), behind, fill: None, rows };
    let usual = Setting::default;
    let passed = with_header("Cookie", "user=one", hits("/b1", 50));
    let pass = Row::new("pass", "passes to a fast origin, 1 KiB, 50 connections", passed);
    let mut all = vec![
        clear(&crate::servers::ALL, Behind::Floor, usual(), hit_rows()),
        clear(
            CACHES,
            Behind::Floor,
            Setting { passes_cookies: true, vcl: Some(PASS.to_owned()), ..usual() },
            vec![Row { is_beyond_the_floor: true, ..pass }],
        ),
        clear(
            LARGE,
            Behind::Sized,
            Setting { refreshes: true, ..usual() },
            vec![Row::new(
                "refresh",
                "hits on an object that lives for a second and is refreshed behind them, 50 connections",
                hits("/ttl-1/refreshed/1024", 50),
            )],
        ),
        clear(CACHES, Behind::Sized, usual(), slow_rows()),
        clear(LARGE, Behind::Sized, usual(), site_rows()),
        clear(
            CACHES,
            Behind::Sized,
            Setting { passes_cookies: true, vcl: Some(PASS.to_owned()), ..usual() },
            vec![Row::new(
                "pass-1m",
                "passes, 1 MiB, 10 connections",
                with_header("Cookie", "user=one", hits("/page/1048576", 10)),
            )],
        ),
    ];
    all.extend([0, 100, 300].map(|statements| {
        let vcl = Some(crate::vcl::receive_of(statements));
        let title = format!("hits with {statements} statements of VCL, 1 KiB, 50 connections");
        let row = Row::new(&format!("vcl-{statements}"), &title, hits("/b1", 50));
        clear(VCL, Behind::Floor, Setting { vcl, ..usual() }, vec![Row { is_beyond_the_floor: true, ..row }])
    }));
    all.push(object_scene(size));
    let two = Setting { loops: 2, ..usual() };
    let title = "two loops on two cores, which they share with the load, 1 KiB, 100 connections";
    let row = Row::new("loops-2", title, hits("/b1", 100)).point(Family::Loops, 2.0);
    all.push(clear(&crate::servers::ALL, Behind::Floor, two, vec![row]));
    let idle = Plan { idle: size.idle, ..hits("/b1", 50) };
    let title = format!("hits beside {} idle connections, 1 KiB, 50 connections", size.idle);
    all.push(clear(CACHES, Behind::Floor, usual(), vec![Row::new("idle", &title, idle)]));
    all.push(large_scene(size));
    let squeezed =
        Setting { vcl: Some("sub vcl_backend_response { set beresp.do_gzip = true; }\n".to_owned()), ..usual() };
    let page = || hits("/text/page/51200", 50);
    all.push(clear(
        VCL,
        Behind::Sized,
        squeezed,
        vec![
            Row::new(
                "gzip",
                "a page of 50 KiB, kept packed, for clients that unpack it",
                with_header("Accept-Encoding", "gzip", page()),
            ),
            Row::new("gunzip", "the same for clients that do not", page()),
        ],
    ));
    let pieces = "sub vcl_backend_response { if (bereq.url ~ \"^/page-\") { set beresp.do_esi = true; } }\n";
    all.push(clear(
        VCL,
        Behind::Sized,
        Setting { vcl: Some(pieces.to_owned()), ..usual() },
        vec![Row::new("esi", "pages of ten fragments, all of them hits, 50 connections", hits("/page-10/x", 50))],
    ));
    all.push(Scene { servers: Servers::Doors, behind: Behind::Floor, fill: None, rows: door_rows() });
    all
}

fn hit_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, (name, title)) in [("1b", "1 B"), ("1k", "1 KiB"), ("10k", "10 KiB"), ("100k", "100 KiB"), ("1m", "1 MiB")]
        .into_iter()
        .enumerate()
    {
        let bytes = crate::floor::BODIES[at] as f64;
        let row =
            Row::new(&format!("hit-{name}"), &format!("hits, {title}, 50 connections"), hits(&format!("/b{at}"), 50));
        let row = row.point(Family::Bodies, bytes);
        rows.push(if name == "1k" { row.point(Family::Connections, 50.0).point(Family::Loops, 1.0) } else { row });
    }
    for connections in [1, 10, 200, 500, 1000] {
        let title = format!("hits, 1 KiB, {connections} connections");
        let row = Row::new(&format!("hit-1k-{connections}"), &title, hits("/b1", connections));
        rows.push(row.point(Family::Connections, connections as f64));
    }
    for (name, title, count) in [("per-10", "ten requests a connection", 10), ("per-1", "one request a connection", 1)]
    {
        let plan = Plan { per_connection: Some(count), ..hits("/b1", 50) };
        rows.push(Row::new(name, &format!("hits, 1 KiB, {title}, 50 at a time"), plan));
    }
    let bursts = open(10_000.0, 200, hits("/b0", 200));
    rows.push(Row::new("bursts", "1 B, 10,000 a second in bursts of 200", bursts));
    rows.push(Row::new(
        "miss",
        "misses from a fast origin, 1 KiB, 50 connections",
        counted("/b1?@-{}", hits("/b1", 50)),
    ));
    rows
}

fn slow_rows() -> Vec<Row> {
    let calm = || open(CALM_PER_SECOND, 1, hits("/page/1024", 50));
    let misses = open(CALM_PER_SECOND / 100.0, 1, counted("/slow-1000/@-{}/1024", hits("/", 100)));
    let mut slow =
        Row::new("slow-misses", "the same, and one in a hundred is a miss that takes its origin a second", calm());
    slow.beside = Some(misses);
    vec![Row::new("calm", "hits, 1 KiB, 2,000 a second", calm()), slow]
}

/// Pages of a site with a program as its origin.
fn site_rows() -> Vec<Row> {
    vec![
        Row::new(
            "pieces",
            "hits on a page of 45 KiB whose origin did not tell its length, 50 connections",
            hits("/pieces/page/46080", 50),
        ),
        Row::new(
            "miss-pieces",
            "misses on such pages, 50 connections",
            counted("/pieces/@-{}/46080", hits("/pieces/page/46080", 50)),
        ),
        Row::new("miss-45k", "misses, 45 KiB, 50 connections", counted("/@-{}/46080", hits("/pieces/page/46080", 50))),
        Row::new(
            "valid",
            "hits on a page of 45 KiB that clients have already (304), 50 connections",
            Plan {
                expect_status: Some(304),
                ..with_header("If-None-Match", "\"5f3a-64\"", hits("/etag/page/46080", 50))
            },
        ),
    ]
}

fn object_scene(size: &Size) -> Scene {
    let most = size.objects[2];
    // Room for all of them in the peers, too.
    let cache_mebibytes = u32::try_from(64 + most / 300).unwrap_or(u32::MAX);
    let rows = size.objects.into_iter().map(|objects| {
        let choice = Choice::Zipf { pattern: "/b0?{}".to_owned(), law: Zipf::new(objects, 0.0) };
        let title = format!("hits spread over {objects} of {most} objects, 50 connections");
        let row = Row::new(&format!("objects-{objects}"), &title, Plan { choice, ..hits("/b0", 50) });
        Row { is_beyond_the_floor: true, ..row.point(Family::Objects, objects as f64) }
    });
    Scene {
        servers: Servers::Clear(VCL, Setting { cache_mebibytes, ..Setting::default() }),
        behind: Behind::Floor,
        fill: Some(("/b0?{}".to_owned(), most)),
        rows: rows.collect(),
    }
}

fn large_scene(size: &Size) -> Scene {
    let bytes = size.large_bytes;
    let plan = Plan {
        requests_max: Some(size.large_clients as u64),
        per_connection: Some(1),
        timeout: Duration::from_secs(1200),
        ..hits(&format!("/large/{bytes}"), size.large_clients)
    };
    let title = format!("an object of {} MiB for {} clients at a time", bytes >> 20, size.large_clients);
    let cache_mebibytes = u32::try_from((bytes >> 20) * 2 + 256).unwrap_or(u32::MAX);
    Scene {
        servers: Servers::Clear(LARGE, Setting { cache_mebibytes, ..Setting::default() }),
        behind: Behind::Sized,
        fill: Some((format!("/large/{bytes}"), 1)),
        rows: vec![Row { is_long: true, ..Row::new("large", &title, plan) }],
    }
}

fn door_rows() -> Vec<Row> {
    let row = |name: &str, title: &str, plan: Plan, key: Key| Row::new(name, title, plan).at(Entry::Secured(key));
    let handshakes = || Plan { per_connection: Some(0), ..hits("/b1", 16) };
    let resumed = Plan { per_connection: Some(1), resume: true, ..hits("/b1", 16) };
    let streams = |protocol| Plan { protocol, streams: 10, ..hits("/b1", 10) };
    vec![
        row("tls-full", "TLS 1.3 handshakes, ECDSA P-256", handshakes(), Key::Ecdsa),
        row("tls-full-rsa", "TLS 1.3 handshakes, RSA 2048", handshakes(), Key::Rsa),
        row("tls-resumed", "TLS 1.3 handshakes, resumed, and a hit of 1 KiB each", resumed, Key::Ecdsa),
        row("tls-hit", "hits, 1 KiB, HTTP/1.1 over TLS, 50 connections", hits("/b1", 50), Key::Ecdsa),
        Row::new("h2-clear", "hits, 1 KiB, HTTP/2 in clear, 10 connections of 10 streams", streams(Protocol::Http2))
            .at(Entry::ClearHttp2),
        row("h2", "hits, 1 KiB, HTTP/2 over TLS, 10 connections of 10 streams", streams(Protocol::Http2), Key::Ecdsa),
        row("h3", "hits, 1 KiB, HTTP/3, 10 connections of 10 streams", streams(Protocol::Http3), Key::Ecdsa),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_have_names_of_their_own_and_points_are_on_lines() {
        let scenes = scenes(&FULL);
        let rows: Vec<&Row> = scenes.iter().flat_map(|scene| &scene.rows).collect();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        for family in [Family::Connections, Family::Bodies, Family::Objects, Family::Loops] {
            let places = rows.iter().flat_map(|row| &row.points).filter(|point| point.0 == family).count();
            assert!(places >= 2, "{family:?}");
        }
    }
}
