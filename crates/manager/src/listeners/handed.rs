//! Listeners that a manager passes to its successor, with their sockets: a connection that waits in
//! one of them keeps waiting.

use super::{Listener, Place};
use crate::arguments::listen::{DEFAULT_ADDRESS, ListenArgument, parse};
use crate::socket_file::SocketFile;
use serde::{Deserialize, Serialize};
use socket2::{Socket, Type};
use std::io;
use std::os::fd::OwnedFd;

/// A listener without its sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedListener {
    name: String,
    endpoint: String,
    proxy: bool,
    tls: bool,
    #[serde(default)]
    redirect_port: Option<u16>,
    http3: bool,
    place: Place,
    sockets: usize,
    datagram_sockets: usize,
}

impl Listener {
    /// A description, and other descriptors of the sockets: first those of streams, then those of
    /// datagrams.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn hand_over(&self) -> io::Result<(HandedListener, Vec<OwnedFd>)> {
        let sockets = self.sockets.iter().chain(&self.datagram_sockets);
        let descriptors = sockets.map(|socket| Ok(socket.try_clone()?.into())).collect::<io::Result<_>>()?;
        let handed = HandedListener {
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            proxy: self.proxy,
            tls: self.tls,
            redirect_port: self.redirect_port,
            http3: self.http3,
            place: self.place.clone(),
            sockets: self.sockets.len(),
            datagram_sockets: self.datagram_sockets.len(),
        };
        Ok((handed, descriptors))
    }
}

impl HandedListener {
    /// The listener again. Takes its sockets from `descriptors`.
    ///
    /// # Errors
    /// They do not match the description.
    pub fn take_over(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<Listener, String> {
        let mut take = |count: usize, kind: Type| -> Result<Vec<Socket>, String> {
            let taken: Vec<Socket> = descriptors.take(count).map(Socket::from).collect();
            let is_good = |socket: &Socket| {
                socket.r#type().is_ok_and(|found| found == kind)
                    && (matches!(self.place, Place::Passed(_)) || self.place.is_of(socket))
            };
            match taken.len() == count && taken.iter().all(is_good) {
                true => Ok(taken),
                false => Err(format!("the sockets of the listener {} are not its own", self.name)),
            }
        };
        let sockets = take(self.sockets, Type::STREAM)?;
        let datagram_sockets = take(self.datagram_sockets, Type::DGRAM)?;
        let file = match &self.place {
            Place::Unix { path, .. } if !sockets.is_empty() => {
                Some(SocketFile::of(path).map_err(|error| format!("{}: {error}", path.display()))?)
            }
            _ => None,
        };
        Ok(Listener {
            name: self.name,
            endpoint: self.endpoint,
            proxy: self.proxy,
            tls: self.tls,
            redirect_port: self.redirect_port,
            http3: self.http3,
            place: self.place,
            file,
            sockets,
            datagram_sockets,
        })
    }

    fn is_of(&self, argument: &ListenArgument) -> bool {
        (&self.name, &self.endpoint, self.proxy, self.tls, self.redirect_port, self.http3)
            == (
                &argument.name,
                &argument.endpoint,
                argument.proxy,
                argument.tls,
                argument.redirect_port,
                argument.http3,
            )
    }
}

/// Checks that the received listeners match the command line and the files it names: files may have
/// changed.
///
/// # Errors
/// The listener that differs.
pub fn check(handed: &[HandedListener], arguments: &[ListenArgument]) -> Result<(), String> {
    if arguments.is_empty() && handed.iter().all(|one| matches!(one.place, Place::Passed(_))) {
        return Ok(());
    }
    let default = [parse(DEFAULT_ADDRESS, &mut 0)?];
    let arguments = if arguments.is_empty() { &default[..] } else { arguments };
    let missing = arguments.iter().find(|argument| !handed.iter().any(|one| one.is_of(argument)));
    let superfluous = handed.iter().find(|one| !arguments.iter().any(|argument| one.is_of(argument)));
    let name = missing.map(|argument| &argument.name).or(superfluous.map(|one| &one.name));
    name.map_or(Ok(()), |name| {
        Err(format!("the listener {name} is not what it was when the daemon was started: stop it and start it anew"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    fn listeners(text: &str, loops: usize) -> (Vec<ListenArgument>, Vec<Listener>) {
        let arguments = vec![parse(text, &mut 0).unwrap()];
        let listeners = open(&arguments, loops, Vec::new(), Duration::ZERO).unwrap();
        (arguments, listeners)
    }

    fn handed(listeners: &[Listener]) -> (Vec<HandedListener>, Vec<OwnedFd>) {
        let (mut all, mut descriptors) = (Vec::new(), Vec::new());
        for listener in listeners {
            let (one, sockets) = listener.hand_over().unwrap();
            all.push(serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap());
            descriptors.extend(sockets);
        }
        (all, descriptors)
    }

    #[test]
    fn successor_has_the_same_sockets_and_connections_wait_on() {
        let (arguments, first) = listeners("site=127.0.0.1:0,h3,https", 3);
        first[0].listen(10).unwrap();
        let (all, descriptors) = handed(&first);
        check(&all, &arguments).unwrap();
        let address = first[0].ip_address().unwrap();
        let _waiting = TcpStream::connect(address).unwrap();
        drop(first);
        let mut descriptors = descriptors.into_iter();
        let next: Vec<Listener> = all.into_iter().map(|one| one.take_over(&mut descriptors).unwrap()).collect();
        assert_eq!((next[0].sockets().len(), next[0].datagram_sockets().len()), (3, 3));
        assert_eq!((next[0].name.as_str(), next[0].tls), ("site", true));
        let accepted = next[0].sockets().iter().filter(|socket| {
            let listener = TcpListener::from(Socket::try_clone(socket).unwrap());
            listener.accept().is_ok()
        });
        assert_eq!(accepted.count(), 1);
    }

    #[test]
    fn file_of_a_socket_has_one_owner_who_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (_, first) = listeners(&format!("u={}", path.display()), 1);
        let (all, descriptors) = handed(&first);
        // A predecessor ends without cleaning up.
        std::mem::forget(first);
        let mut descriptors = descriptors.into_iter();
        let next: Vec<Listener> = all.into_iter().map(|one| one.take_over(&mut descriptors).unwrap()).collect();
        drop(next);
        assert!(path.exists(), "as long as it is its predecessor's");
        let (_, first) = listeners(&format!("u={}", folder.path().join("t").display()), 1);
        let (all, descriptors) = handed(&first);
        let next = all.into_iter().next().unwrap().take_over(&mut descriptors.into_iter()).unwrap();
        std::mem::forget(first);
        next.own();
        drop(next);
        assert!(!folder.path().join("t").exists());
    }

    #[test]
    fn sockets_of_others_and_other_arguments_are_refused() {
        let (_, first) = listeners("site=127.0.0.1:0", 2);
        let (all, descriptors) = handed(&first);
        let foreign = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        for wrong in
            [vec![foreign(), foreign()], vec![], vec![std::fs::File::open("/dev/null").unwrap().into(), foreign()]]
        {
            let text = all[0].clone().take_over(&mut wrong.into_iter()).unwrap_err();
            assert_eq!(text, "the sockets of the listener site are not its own");
        }
        drop(descriptors);
        for other in ["site=127.0.0.1:0,proxy", "other=127.0.0.1:0", "site=127.0.0.1:81"] {
            let arguments = [parse(other, &mut 0).unwrap()];
            assert!(check(&all, &arguments).unwrap_err().contains("is not what it was"), "{other}");
        }
        assert!(check(&all, &[]).is_err(), "the default is another");
    }
}
