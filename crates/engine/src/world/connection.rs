//! `client`, `server`, `remote`, `local`: the two ends of the client's connection, and the server
//! itself.

use super::value::{bytes_of, formatted, text};
use super::{Side, World, out_of_reach};
use std::net::SocketAddr;
use surface::vcl::Var;
use vcl_run::host::Failure;
use vcl_run::value::{Scratch, Value};

pub(super) fn read(world: &World<'_>, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
    match var {
        Var::ServerHostname => return Ok(text(world.engine.hostname.as_bytes(), scratch)),
        Var::ServerIdentity => return Ok(text(world.engine.identity.as_bytes(), scratch)),
        _ => {}
    }
    let (peer, identity) = match &world.side {
        Side::Client(client) => (&client.session.peer, &client.task.choices.client_identity),
        Side::Fetch(fetch) => (&fetch.task.order.peer, &fetch.task.choices.client_identity),
        Side::Housekeeping(_) => return Err(out_of_reach()),
    };
    let address = |address: SocketAddr| Value::Ip(Some((address.ip(), address.port())));
    Ok(match var {
        Var::ClientIp => address(peer.client),
        Var::ClientIdentity => match identity {
            Some(identity) => text(identity, scratch),
            None => formatted(format_args!("{}", peer.client.ip()), scratch),
        },
        Var::ServerIp => address(peer.server),
        Var::RemoteIp => address(peer.remote),
        Var::LocalIp => address(peer.local),
        Var::LocalEndpoint => text(peer.listener.endpoint.as_bytes(), scratch),
        Var::LocalSocket => text(peer.listener.name.as_bytes(), scratch),
        _ => return Err(out_of_reach()),
    })
}

pub(super) fn write(world: &mut World<'_>, var: Var, value: Value, scratch: &Scratch) -> Result<(), Failure> {
    let identity = bytes_of(value, scratch).to_vec();
    match (&mut world.side, var) {
        (Side::Client(client), Var::ClientIdentity) => client.task.choices.client_identity = Some(identity),
        (Side::Fetch(fetch), Var::ClientIdentity) => {
            if let Some(client) = &mut fetch.task.life.client {
                client.choices.client_identity = Some(identity.clone());
            }
            fetch.task.choices.client_identity = Some(identity);
        }
        (_, _) => return Err(out_of_reach()),
    }
    Ok(())
}
