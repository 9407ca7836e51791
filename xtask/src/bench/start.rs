//! Starts the servers of a scene.

use super::rows::{Behind, Scene, Servers};
use super::running::{Running, Started};
use crate::frontdoor::servers::{Certificates, Door, Peer, installed_peers, origin};
use crate::place::free_port;
use crate::process::Server;
use crate::servers::{Build, Kind, Setting};
use std::path::Path;

/// Selection among a scene's servers.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Their names; `None` for all.
    pub only: Option<&'a [&'a str]>,
    /// More builds of Copal, for each scene with Copal.
    pub builds: &'a [Build],
}

/// Starts the servers of a scene; also returns those that are not installed.
pub fn start(scene: &Scene, sized: u16, folder: &Path, core: usize, wanted: Wanted<'_>) -> Started {
    let is_wanted = |name: &str| {
        wanted.only.is_none_or(|only| only.contains(&name)) || wanted.builds.iter().any(|build| build.name == name)
    };
    let mut running = Vec::new();
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
                let door = Door::open(peer, port, folder, &certificates, core)?;
                running.push(Running::door(column(peer), door));
            }
            // The origin stays as long as they do.
            running.insert(0, Running::clear(Kind::Floor.name(), vec![floor], port));
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
                    running.push(Running::clear(kind.name(), vec![server], port));
                }
            }
        }
    }
    Ok((running, missing))
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

/// The column of a front door: varnishd runs behind hitch.
fn column(peer: Peer) -> &'static str {
    match peer {
        Peer::Copal => Kind::Copal.name(),
        Peer::Build(build) => build.name,
        Peer::Nginx => Kind::Nginx.name(),
        Peer::Haproxy => Kind::Haproxy.name(),
        Peer::Varnish => Kind::Varnish.name(),
    }
}
