//! `cargo xtask bench --seeds`: the measurements of the articles that made HTTP accelerators
//! popular, repeated with today's programs: a CGI program, images of four sizes for three numbers
//! of users, a blog, hits in bursts, two tiers, and a site that one client reads from end to end
//! while others request the hot set.
//!
//! Servers of the articles that are not installed are reported in a line.

mod caches;
mod wordpress;

use crate::bench::rows::{Behind, Row, Scene, Servers};
use crate::bench::running::{Running, Started};
use crate::bench::start::launch;
use crate::measure::hits;
use crate::place::free_port;
use crate::process::Server;
use crate::servers::{Kind, Setting, installed};
use caches::{launch_caches, set_readable};
use load::choice::Choice;
use load::plan::{Pace, Plan};
use std::path::Path;

/// Sizes of the images, in bytes.
const IMAGES: [usize; 4] = [1_024, 5_120, 10_240, 20_480];
/// Users at a time.
const USERS: [usize; 3] = [50, 100, 200];
/// The CGI program; the articles had Perl and PHP.
const PROGRAM: &str = "#!/bin/sh\nprintf 'Content-Type: text/html\\r\\nCache-Control: max-age=3600\\r\\n\\r\\n<html>'\n\
                       i=0; while [ $i -lt 100 ]; do printf '<p>line %d of what a program made</p>\\n' $i; i=$((i+1)); done\n";
/// VCL of the first of two tiers.
const NEAR: &str = "sub vcl_recv { if (req.url !~ \"^/near/\") { return (pass); } }\n";
/// Request rate of the clients of the hot set.
const HOT_PER_SECOND: f64 = 1_000.0;

/// All scenes.
pub fn scenes(is_quick: bool) -> Vec<Scene> {
    let made = |servers, rows| Scene { servers, behind: Behind::Sized, fill: None, rows };
    let users: &[usize] = if is_quick { &USERS[..1] } else { &USERS };
    let images = IMAGES.into_iter().flat_map(|bytes| {
        users.iter().map(move |users| {
            let title = format!("images of {} KiB, {users} users", bytes >> 10);
            Row::new(&format!("image-{}k-{users}", bytes >> 10), &title, hits(&format!("/image-{bytes}.png"), *users))
        })
    });
    // ab without -k: a connection for each request.
    let program = Plan { per_connection: Some(1), ..hits("/cgi/page.cgi", 50) };
    let mut site = images.collect::<Vec<_>>();
    site.push(Row::new("cgi", "a CGI program, 50 users, a connection for each request (`ab -c 50`)", program));
    let blog = |users: usize| {
        let title =
            format!("the front page of WordPress, {users} users, a connection for each request (`ab -c {users}`)");
        Row::new(&format!("blog-{users}"), &title, Plan { per_connection: Some(1), ..hits("/", users) })
    };
    let bursts = |count: u64| {
        let pace = Pace::Open { per_second: 5_000.0, burst: count };
        let title = format!("1 B, 5,000 a second, {count} at a time");
        Row::new(&format!("bursts-{count}"), &title, Plan { pace, ..hits("/b0", 200) })
    };
    let hot = |per_second| {
        let choice = Choice::Counted { pattern: "/hot/{}/10240".to_owned(), numbers: 100 };
        Plan { choice, pace: Pace::Open { per_second, burst: 1 }, ..hits("/", 50) }
    };
    let bot = Choice::Counted { pattern: "/site/@-{}/10240".to_owned(), numbers: 1 << 40 };
    let mut traversal = Row::new(
        "hot-and-bot",
        "the same while a bot reads a site larger than the cache, 10 at a time",
        hot(HOT_PER_SECOND),
    );
    traversal.beside = Some(Plan { choice: bot, ..hits("/", 10) });
    let small = Setting { cache_mebibytes: 64, ..Setting::default() };
    vec![
        made(Servers::Made(start_sites), site),
        made(Servers::Made(wordpress::start), vec![blog(10), blog(100)]),
        Scene {
            behind: Behind::Floor,
            ..made(
                Servers::Clear(&crate::servers::ALL, Setting::default()),
                vec![bursts(1), bursts(100), bursts(1_000)],
            )
        },
        made(
            Servers::Made(start_tiers),
            vec![
                Row::new(
                    "tiers",
                    "hits in the second tier, the first one passes, 1 KiB, 50 connections",
                    hits("/page/1024", 50),
                ),
                Row::new("tiers-near", "hits in the first tier, 1 KiB, 50 connections", hits("/near/1024", 50)),
            ],
        ),
        made(
            Servers::Clear(&[Kind::Copal, Kind::Varnish, Kind::Nginx], small),
            vec![Row::new("hot", "a hot set of 100 pages of 10 KiB, 1,000 a second", hot(HOT_PER_SECOND)), traversal],
        ),
    ]
}

/// Servers of the articles and the caches in front of the first of them.
fn start_sites(folder: &Path, _: u16, core: usize) -> Started {
    let root = folder.join("site");
    std::fs::create_dir_all(root.join("cgi")).map_err(|error| error.to_string())?;
    for bytes in IMAGES {
        let image = crate::origin::body(&format!("/image-{bytes}"), bytes);
        std::fs::write(root.join(format!("image-{bytes}.png")), image).map_err(|error| error.to_string())?;
    }
    let program = root.join("cgi/page.cgi");
    std::fs::write(&program, PROGRAM).map_err(|error| error.to_string())?;
    set_readable(folder, 0o755)?;
    set_readable(&program, 0o755)?;
    let mut running = Vec::new();
    let mut missing: Vec<String> = ["lighttpd", "apache2", "varnishd"]
        .into_iter()
        .filter(|name| installed(name).is_none())
        .map(str::to_owned)
        .collect();
    let start = |name: &str, arguments: &[&str], port: u16| -> Result<Server, String> {
        let program = installed(name).ok_or_else(|| format!("{name} is not installed"))?;
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let log = folder.join(format!("{name}.log"));
        let mut server = Server::start(&core.to_string(), &program, &arguments, &log)?;
        server.wait_for_port(port, &log).map_err(|error| format!("{name}: {error}"))?;
        Ok(server)
    };
    if installed("lighttpd").is_some() {
        let port = free_port()?;
        let file = folder.join("lighttpd.conf");
        std::fs::write(&file, lighttpd(port, &root)).map_err(|error| error.to_string())?;
        running.push(Running::clear(
            "lighttpd",
            vec![start("lighttpd", &["-D", "-f", &file.display().to_string()], port)?],
            port,
        ));
    }
    if installed("apache2").is_none() {
        return Ok((running, missing));
    }
    let origin = free_port()?;
    let file = folder.join("apache.conf");
    std::fs::write(&file, apache(origin, folder, &root)).map_err(|error| error.to_string())?;
    let server = start("apache2", &["-D", "FOREGROUND", "-f", &file.display().to_string()], origin)?;
    running.push(Running::clear("apache", vec![server], origin));
    running.extend(launch_caches(folder, origin, core)?);
    missing.dedup();
    Ok((running, missing))
}

/// One server of each kind, and a pair of each kind whose first one passes everything to the
/// second, except the objects that it is to store.
fn start_tiers(folder: &Path, sized: u16, core: usize) -> Started {
    let (mut running, mut missing) = (Vec::new(), Vec::new());
    let pass = Setting { vcl: Some(NEAR.to_owned()), ..Setting::default() };
    for (kind, pair) in [(Kind::Copal, "copal, two"), (Kind::Varnish, "varnish, two")] {
        if kind.program().is_none() {
            missing.push(kind.name().to_owned());
            continue;
        }
        let start = |name: &str, origin: u16, setting: &Setting| -> Result<(Server, u16), String> {
            let folder = folder.join(format!("{}-{name}", kind.name()));
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let port = free_port()?;
            Ok((launch(kind, port, origin, &folder, setting, &core.to_string())?, port))
        };
        let (single, port) = start("single", sized, &Setting::default())?;
        running.push(Running::clear(kind.name(), vec![single], port));
        let (second, behind) = start("second", sized, &Setting::default())?;
        let (first, port) = start("first", behind, &pass)?;
        running.push(Running::clear(pair, vec![first, second], port));
    }
    Ok((running, missing))
}

fn apache(port: u16, folder: &Path, root: &Path) -> String {
    let modules = Path::new("/usr/lib/apache2/modules");
    let load: String = ["mpm_event", "authz_core", "mime", "unixd", "cgid"]
        .into_iter()
        .map(|name| (name, modules.join(format!("mod_{name}.so"))))
        .filter(|(_, file)| file.exists())
        .map(|(name, file)| format!("LoadModule {name}_module {}\n", file.display()))
        .collect();
    let user = if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
    format!(
        "ServerName localhost\nListen 127.0.0.1:{port}\n{load}{user}PidFile {at}/apache.pid\nErrorLog {at}/apache-error.log\n\
         DocumentRoot {root}\nTypesConfig /dev/null\nScriptSock {at}/cgid.sock\nMaxKeepAliveRequests 0\nServerLimit 16\n\
         <Directory />\nRequire all granted\n</Directory>\n<Directory {root}/cgi>\nOptions +ExecCGI\nSetHandler cgi-script\n</Directory>\n",
        at = folder.display(),
        root = root.display(),
    )
}

fn lighttpd(port: u16, root: &Path) -> String {
    format!(
        "server.port = {port}\nserver.bind = \"127.0.0.1\"\nserver.document-root = \"{root}\"\nserver.modules = (\"mod_cgi\")\n\
         server.max-keep-alive-requests = 0\ncgi.assign = (\".cgi\" => \"/bin/sh\")\nmimetype.assign = (\".png\" => \"image/png\")\n",
        root = root.display()
    )
}
