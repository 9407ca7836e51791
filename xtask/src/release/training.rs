//! The training load of the instrumented build.
//!
//! Requests are counted, not timed, so that each part has its share on a machine of any speed.
//! Shares are weighted by executed code: a page that is decompressed takes as many steps as a
//! hundred hits, so there are few of those; the largest part is the usual work of sites, hits.

use crate::bench::rows::{Behind, QUICK, Row, Scene, Servers, scenes};
use crate::bench::running::Running;
use crate::bench::start::{Wanted, start};
use crate::bench::{fill, unique};
use crate::measure::{hits, measure};
use crate::place::{cores, folder};
use crate::servers::{Build, Kind, Setting};
use load::choice::Choice;
use load::plan::{Pace, Plan};
use std::time::Duration;

/// Rows of `cargo xtask bench`, with the number of requests of each.
const ROWS: &[(&str, u64)] = &[
    ("hit-1b", 10_000),
    ("hit-1k", 30_000),
    ("hit-10k", 20_000),
    ("hit-100k", 3_000),
    ("hit-1m", 100),
    ("hit-1k-500", 10_000),
    ("per-10", 5_000),
    ("per-1", 2_000),
    ("miss", 10_000),
    ("pass", 5_000),
    ("refresh", 5_000),
    ("vcl-100", 5_000),
    ("objects-5000", 10_000),
    ("large", 10),
    ("gzip", 2_000),
    ("gunzip", 50),
    ("esi", 1_000),
    ("tls-full", 300),
    ("tls-resumed", 300),
    ("tls-hit", 10_000),
    ("h2-clear", 5_000),
    ("h2", 10_000),
    ("h3", 5_000),
];

/// A typical site's VCL.
const SITE: &str = r#"
acl inside { "127.0.0.0"/8; "10.0.0.0"/8; ! "10.1.2.3"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ inside) { return (synth(405)); }
        return (purge);
    }
    set req.url = regsub(req.url, "[?&](utm_[a-z]+|fbclid)=[^&]*$", "");
    if (req.url ~ "^/(wp-admin|checkout)/" || req.url ~ "preview=true") { return (pass); }
    if (req.http.Cookie) {
        set req.http.Cookie = regsuball(req.http.Cookie, "(^|; ) *(_ga|_gid|has_js)=[^;]+;? *", "\1");
        if (req.http.Cookie == "") { unset req.http.Cookie; }
    }
    if (req.http.User-Agent ~ "(?i)(iphone|android.*mobile)") { set req.http.X-Device = "phone"; }
    else { set req.http.X-Device = "desk"; }
}
sub vcl_hash { hash_data(req.http.X-Device); }
sub vcl_backend_response {
    unset beresp.http.Set-Cookie;
    if (bereq.url ~ "\.(css|js|png|jpe?g|woff2)(\?|$)") { set beresp.ttl = 1d; }
    set beresp.grace = 1h;
}
sub vcl_deliver {
    if (obj.hits > 0) { set resp.http.X-Cache = "HIT " + obj.hits; } else { set resp.http.X-Cache = "MISS"; }
    unset resp.http.Via;
}
"#;

/// Headers of a browser besides those that all loads have.
const BROWSER: &[(&str, &str)] = &[
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Cookie", "_ga=GA1.2.1234567890.1700000000; has_js=1; _gid=GA1.2.99"),
    ("Referer", "https://localhost/shop/index.html"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Upgrade-Insecure-Requests", "1"),
    ("Cache-Control", "max-age=0"),
];
/// The entity tag of the origin's 1 KiB.
const TAG: &str = "\"691f4a3c-400\"";

/// Time limit for one row; slow machines must complete it.
const LONGEST: Duration = Duration::from_secs(600);
/// Time limit for the daemon to end and to write its profile.
const PATIENCE: Duration = Duration::from_secs(60);
/// Duration of each half of the mixed load, in seconds.
const MIXED_SECONDS: f64 = 3.0;

/// Runs every load on the build; its processes have ended, and written their profiles, when this
/// returns.
pub fn train(build: Build) -> Result<(), String> {
    let mut scenes = scenes(&QUICK);
    for scene in &mut scenes {
        scene.rows.retain(|row| requests(row).is_some());
    }
    scenes.retain(|scene| !scene.rows.is_empty());
    scenes.push(site());
    let (core, sized) = (cores().0, crate::origin::sized_origin()?);
    for scene in &scenes {
        let folder = folder()?;
        let wanted = Wanted { only: Some(&[]), builds: &[build] };
        // The origin among them stays until all have been asked.
        let (mut running, _) = start(scene, sized, folder.path(), core, wanted)?;
        for one in running.iter_mut().filter(|one| one.fills()) {
            fill(scene, one)?;
            for row in &scene.rows {
                ask(row, one)?;
            }
            one.end(PATIENCE);
        }
    }
    let answers = crate::soak::exercise(Kind::Build(build), MIXED_SECONDS, PATIENCE)?;
    println!("training: {answers} answers of a mixed load");
    Ok(())
}

fn requests(row: &Row) -> Option<u64> {
    ROWS.iter().find(|(name, _)| *name == row.name).map(|(_, requests)| *requests)
}

fn ask(row: &Row, one: &Running) -> Result<(), String> {
    let Some(port) = row.port_at(one) else { return Ok(()) };
    let count = requests(row).or(row.plan.requests_max).unwrap_or_default();
    let counted = Plan {
        requests_max: Some(count),
        duration: LONGEST,
        timeout: LONGEST,
        pace: Pace::Closed,
        ..unique(&row.plan)
    };
    let measured = measure(&counted, port, &[])?;
    println!("training: {:<14} {} answers, {} failures", row.name, measured.requests, measured.errors);
    // Handshakes alone are not answers.
    if measured.requests == 0 || measured.errors > count / 10 {
        return Err(format!("{}: {} of {count} were answered: {:?}", row.name, measured.requests, measured.notes));
    }
    Ok(())
}

/// Hits and validations under the VCL of a site.
fn site() -> Scene {
    let pattern = "/b1/shop/item-{}.html?colour=red&utm_source=news".to_owned();
    let mut browsed = Plan { choice: Choice::Counted { pattern, numbers: 500 }, ..hits("/", 50) };
    browsed.headers.extend(BROWSER.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    browsed.requests_max = Some(20_000);
    let mut validated = browsed.clone();
    validated.headers.push(("If-None-Match".to_owned(), TAG.to_owned()));
    (validated.expect_status, validated.requests_max) = (Some(304), Some(5_000));
    Scene {
        servers: Servers::Clear(&[Kind::Copal], Setting { vcl: Some(SITE.to_owned()), ..Setting::default() }),
        behind: Behind::Floor,
        fill: None,
        rows: vec![
            Row::new("site", "browsers on a site", browsed),
            Row::new("validated", "who has it already", validated),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_is_trained_with_exists() {
        let scenes = scenes(&QUICK);
        let rows: Vec<&str> = scenes.iter().flat_map(|scene| &scene.rows).map(|row| row.name.as_str()).collect();
        for (name, requests) in ROWS {
            assert!(rows.contains(name) && *requests > 0, "{name}");
        }
    }
}
