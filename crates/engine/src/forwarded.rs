//! `X-Forwarded-Proto` and `Forwarded`: the scheme of a client's request, for origins and for the
//! key.
//!
//! A client's own headers count only on a connection from a trusted front: one that sends a PROXY
//! header before requests in clear, one over a Unix-domain socket, or an address in the parameter
//! `trusted_fronts`. Any other value is replaced by that of the listener and the PROXY header, so
//! the value is always `http` or `https`. All that depends on the connection is decided once, when
//! its facts are known. Source: RFC 7239; the elements of a PROXY header,
//! `proxy_protocol::element`.
//!
//! *Invariant:* under `rfc` the connection decides the scheme of a request, which is part of the
//! built-in key. A client's own header counts only from a trusted front.

use crate::logged::{self, REQ};
use crate::peer::Peer;
use message::Message;
use proxy_protocol::element::{self, OVER_TLS, TLS};
use shm::log::LogBuffer;
use surface::front;
use surface::parameter::Parameters;

/// The header with the scheme.
pub(crate) const PROTO: &str = "X-Forwarded-Proto";
/// The standardised header.
const FORWARDED: &str = "Forwarded";
/// The port that a TCP load balancer without a TLS element serves HTTPS on.
const HTTPS_PORT: u16 = 443;

/// The scheme of a request's URI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The name, in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The other scheme.
    pub(crate) fn other(self) -> Scheme {
        match self {
            Scheme::Http => Scheme::Https,
            Scheme::Https => Scheme::Http,
        }
    }

    /// The scheme of that name, in any case.
    pub(crate) fn named(name: &[u8]) -> Option<Scheme> {
        [Scheme::Http, Scheme::Https].into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.name().as_bytes()))
    }
}

/// Facts about a connection that the headers are made from.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// The scheme of the connection, according to the listener or the PROXY header.
    scheme: Scheme,
    /// The peer's own headers count.
    is_front_trusted: bool,
    /// The element of `Forwarded`; `None` if none is sent.
    element: Option<Box<str>>,
}

impl Forwarding {
    pub(crate) fn of(peer: &Peer, parameters: &Parameters) -> Forwarding {
        let elements = peer.proxy_elements.as_deref().unwrap_or_default();
        let of_front =
            element::find(elements, TLS).and_then(|value| value.first()).map(|flags| match flags & OVER_TLS {
                0 => Scheme::Http,
                _ => Scheme::Https,
            });
        // A PROXY header before TLS is from a load balancer that cannot see requests, so it vouches
        // for none of their fields.
        let is_proxied_in_clear = peer.listener.proxy && peer.tls.is_none();
        let scheme = match (&peer.tls, of_front) {
            (Some(_), _) => Scheme::Https,
            (None, Some(scheme)) => scheme,
            (None, None) if is_proxied_in_clear && peer.server.port() == HTTPS_PORT => Scheme::Https,
            (None, None) => Scheme::Http,
        };
        let is_unix = peer.listener.path.is_some() && peer.tls.is_none();
        let is_front_trusted = match of_front {
            Some(_) if peer.tls.is_none() => false,
            _ => is_proxied_in_clear || is_unix || front::includes(&parameters.trusted_fronts, peer.client.ip()),
        };
        let element = parameters.http_forwarded.then(|| {
            let client = if peer.client.is_ipv6() {
                format!("\"[{}]\"", peer.client.ip())
            } else {
                peer.client.ip().to_string()
            };
            format!("for={client};proto={}", scheme.name()).into_boxed_str()
        });
        Forwarding { scheme, is_front_trusted, element }
    }

    /// The scheme of a request: from the header of a trusted front, else that of the connection. Of
    /// several values the last counts, which the nearest front has added.
    pub(crate) fn scheme_of(&self, request: &Message) -> Scheme {
        let said = match self.is_front_trusted {
            true => request.get_all(PROTO).last().and_then(|value| value.rsplit(|&byte| byte == b',').next()),
            false => None,
        };
        said.and_then(|value| Scheme::named(value.trim_ascii())).unwrap_or(self.scheme)
    }

    /// Gives a request the headers, under `http_policy=rfc`.
    pub(crate) fn describe(&self, request: &mut Message, log: &mut LogBuffer) {
        let scheme = self.scheme_of(request);
        // Set in any case: the client may have named it in Connection, or sent two.
        logged::set(log, REQ, request, PROTO, scheme.name().as_bytes());
        match &self.element {
            None if self.is_front_trusted => {}
            None => logged::unset(log, REQ, request, FORWARDED),
            Some(element) if self.is_front_trusted && request.has(FORWARDED) => {
                request.join(FORWARDED);
                let before = request.get(FORWARDED).unwrap_or_default().to_vec();
                let joined = [&before[..], b", ", element.as_bytes()].concat();
                logged::set(log, REQ, request, FORWARDED, &joined);
            }
            Some(element) => logged::set(log, REQ, request, FORWARDED, element.as_bytes()),
        }
    }
}
