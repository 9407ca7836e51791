//! The servers of a scene, while they run.

use super::rows::{Behind, Row, Scene, Servers};
use crate::frontdoor::servers::{Certificates, Door, Entry, Peer, installed_peers, origin};
use crate::place::free_port;
use crate::process::Server;
use crate::servers::{Build, Kind, Setting};
use load::plan::Protocol;
use std::path::Path;
use std::time::Duration;

/// A running server, or servers that stand for one.
pub struct Standing {
    name: &'static str,
    servers: Vec<Server>,
    place: Place,
}

/// The servers of a scene, and the names of those that are not installed.
pub type Started = Result<(Vec<Standing>, Vec<String>), String>;

enum Place {
    Clear(u16),
    Door(Box<Door>),
}

/// Which of a scene's servers are wanted.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Their names; `None` for all.
    pub only: Option<&'a [&'a str]>,
    /// More builds of Copal, wherever it takes part.
    pub builds: &'a [Build],
}

/// Starts the servers of a scene; returns those that are not installed, too.
pub fn start(scene: &Scene, sized: u16, folder: &Path, core: usize, wanted: Wanted<'_>) -> Started {
    let is_wanted = |name: &str| {
        wanted.only.is_none_or(|only| only.contains(&name)) || wanted.builds.iter().any(|build| build.name == name)
    };
    let mut standing = Vec::new();
    let mut missing = Vec::new();
    match &scene.servers {
        Servers::Made(make) => return make(folder, sized, core),
        Servers::Doors => {
            let certificates = Certificates::make(folder)?;
            let (floor, port) = origin(folder, core)?;
            let mut peers = installed_peers(None);
            missing.extend(
                crate::frontdoor::servers::ALL.iter().filter(|peer| !peers.contains(peer)).map(|p| p.name().to_owned()),
            );
            peers.extend(wanted.builds.iter().copied().map(Peer::Build));
            for peer in peers.into_iter().filter(|peer| is_wanted(column(*peer))) {
                let door = Box::new(Door::open(peer, port, folder, &certificates, core)?);
                standing.push(Standing { name: column(peer), servers: Vec::new(), place: Place::Door(door) });
            }
            // The origin stays as long as they do.
            standing.insert(0, Standing::clear(Kind::Floor.name(), vec![floor], port));
        }
        Servers::Clear(kinds, setting) => {
            // The floor is the origin of all the others.
            let floor = if scene.behind == Behind::Floor { free_port()? } else { sized };
            let mut kinds: Vec<Kind> = kinds.to_vec();
            if kinds.contains(&Kind::Copal) {
                kinds.extend(wanted.builds.iter().copied().map(Kind::Build));
            }
            if scene.behind == Behind::Floor && !kinds.contains(&Kind::Floor) {
                kinds.insert(0, Kind::Floor);
            }
            let cores = if setting.loops > 1 { format!("0-{}", setting.loops - 1) } else { core.to_string() };
            for kind in kinds {
                if kind.program().is_none() {
                    missing.push(kind.name().to_owned());
                } else if kind == Kind::Floor || is_wanted(kind.name()) {
                    let port = if kind == Kind::Floor { floor } else { free_port()? };
                    let server = launch(kind, port, floor, folder, setting, &cores)?;
                    standing.push(Standing::clear(kind.name(), vec![server], port));
                }
            }
        }
    }
    Ok((standing, missing))
}

/// Starts one server and waits until it listens.
pub fn launch(
    kind: Kind,
    port: u16,
    origin: u16,
    folder: &Path,
    setting: &Setting,
    cores: &str,
) -> Result<Server, String> {
    let launch = kind.launch_with(port, origin, folder, setting)?;
    let log = folder.join(format!("{}-{port}.log", kind.name()));
    let mut server = Server::start(cores, &launch.program, &launch.arguments, &log)?;
    server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
    Ok(server)
}

/// The column of a front door: varnishd stands behind hitch.
fn column(peer: Peer) -> &'static str {
    match peer {
        Peer::Copal => Kind::Copal.name(),
        Peer::Build(build) => build.name,
        Peer::Nginx => Kind::Nginx.name(),
        Peer::Haproxy => Kind::Haproxy.name(),
        Peer::Varnish => Kind::Varnish.name(),
    }
}

impl Standing {
    /// What listens on a port in clear, and what stands behind it and counts with it.
    pub fn clear(name: &'static str, servers: Vec<Server>, port: u16) -> Standing {
        Standing { name, servers, place: Place::Clear(port) }
    }

    /// The name of its column.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The port in clear.
    pub fn port_in_clear(&self) -> u16 {
        match &self.place {
            Place::Clear(port) => *port,
            Place::Door(door) => door.clear,
        }
    }

    /// Whether it has a cache to fill.
    pub fn fills(&self) -> bool {
        self.name != Kind::Floor.name()
    }

    /// Where a row comes in; `None` if the server cannot do it.
    pub fn port(&self, row: &Row) -> Option<u16> {
        match &self.place {
            Place::Clear(port) => {
                // The floor has one object for whoever asks: no VCL, no index, no room for the idle.
                let is_compared = self.fills() || (row.plan.idle == 0 && !row.is_beyond_the_floor);
                (row.entry == Entry::Clear && is_compared).then_some(*port)
            }
            Place::Door(door) => {
                let speaks = row.plan.protocol != Protocol::Http3 || door.peer.is_ours();
                speaks.then(|| door.port(row.entry))
            }
        }
    }

    /// Ends it, and waits so long for it to write what it writes at its end.
    pub fn end(&mut self, patience: Duration) {
        let behind = match &mut self.place {
            Place::Clear(_) => &mut [][..],
            Place::Door(door) => door.servers(),
        };
        self.servers.iter_mut().chain(behind).for_each(|server| server.end(patience));
    }

    /// All its processes.
    pub fn pids(&self) -> Vec<u32> {
        let behind = match &self.place {
            Place::Clear(_) => Vec::new(),
            Place::Door(door) => door.pids(),
        };
        self.servers.iter().flat_map(Server::tree).chain(behind).collect()
    }
}
