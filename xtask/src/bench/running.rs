//! A server of a scene while it runs.

use crate::frontdoor::servers::{Door, Entry};
use crate::process::Server;
use crate::servers::Kind;
use load::plan::Protocol;
use std::time::Duration;

/// A running server, or servers that stand for one.
pub struct Running {
    name: &'static str,
    servers: Vec<Server>,
    place: Place,
}

/// The servers of a scene, and the names of those that are not installed.
pub type Started = Result<(Vec<Running>, Vec<String>), String>;

enum Place {
    Clear(u16),
    Door(Box<Door>),
}

impl Running {
    /// A front door with TLS.
    pub fn door(name: &'static str, door: Door) -> Running {
        Running { name, servers: Vec::new(), place: Place::Door(Box::new(door)) }
    }

    /// Servers with one port in clear; those behind it are counted together with it.
    pub fn clear(name: &'static str, servers: Vec<Server>, port: u16) -> Running {
        Running { name, servers, place: Place::Clear(port) }
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

    /// True if it has a cache to fill.
    pub fn fills(&self) -> bool {
        self.name != Kind::Floor.name()
    }

    /// The port for a row that enters there over this protocol; `None` if the server cannot do it.
    /// The floor has no VCL, no index and no room for idle connections, so it takes part only if
    /// the row is not `beyond_the_floor`.
    pub fn port(&self, entry: Entry, protocol: Protocol, beyond_the_floor: bool) -> Option<u16> {
        match &self.place {
            Place::Clear(port) => (entry == Entry::Clear && (self.fills() || !beyond_the_floor)).then_some(*port),
            Place::Door(door) => (protocol != Protocol::Http3 || door.peer.is_ours()).then(|| door.port(entry)),
        }
    }

    /// Ends it, and waits up to `patience` for its last output.
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
