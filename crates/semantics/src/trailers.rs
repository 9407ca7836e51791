//! Selection of the trailer fields that may be passed on.
//!
//! Many recipients merge trailers with the headers, so a trailer must never contain a field that
//! would have been checked as a header: towards an origin VCL has not seen it, towards a client the
//! cache has not. A field is passed on if the `Trailer` header announces it, as VCL left it, and
//! its name has no meaning to HTTP. Everything else is dropped, which every recipient has to
//! expect. Source: RFC 9110 §6.5, §6.6.2.
//!
//! *Invariant:* a trailer is passed on only if the `Trailer` header, as VCL left it, announces it
//! and its name has no meaning in HTTP, or if the passed response is gRPC.

use crate::list;
use message::Message;
use surface::header;

/// Prefixes of names that control routing, framing, authorization or the meaning of the content.
const FORBIDDEN_PREFIXES: [&str; 8] =
    ["access-control-", "content-", "forwarded", "proxy-", "sec-", "x-forwarded", "x-real-", "cdn-"];
/// Other such names that the table of known headers does not contain.
const FORBIDDEN: [&str; 8] = [
    "cookie2",
    "location",
    "origin",
    "priority",
    "set-cookie2",
    "surrogate-control",
    "x-http-method-override",
    "x-original-url",
];
/// Names that only look like them. Source: RFC 9530.
const ALLOWED: [&str; 1] = ["content-digest"];

/// True if a trailer of that name may be passed on.
#[must_use]
pub fn is_allowed(name: &[u8]) -> bool {
    let is = |other: &&str| name.eq_ignore_ascii_case(other.as_bytes());
    let begins = |prefix: &&str| {
        name.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    if ALLOWED.iter().any(is) {
        return true;
    }
    header::find(name).is_none() && !FORBIDDEN.iter().any(is) && !FORBIDDEN_PREFIXES.iter().any(begins)
}

/// The trailers that the `Trailer` headers of a message announce and that may be passed on, as the
/// value of one such header; `None` if there are none.
#[must_use]
pub fn announced(message: &Message) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    for name in message.get_all("Trailer").flat_map(list::members).filter(|name| is_allowed(name)) {
        if !names.is_empty() {
            names.extend_from_slice(b", ");
        }
        names.extend_from_slice(name);
    }
    (!names.is_empty()).then_some(names)
}

/// Copies to `to` the trailers that may be passed on, given the value of the `Trailer` header.
pub fn select(received: &Message, announced: &[u8], to: &mut Message) {
    for field in received.headers() {
        let is_announced = || list::members(announced).any(|name| field.name().eq_ignore_ascii_case(name));
        if is_allowed(field.name()) && is_announced() {
            to.append(field.name(), field.value());
        }
    }
}

/// Copies to `to` the trailers that may be passed on, announced or not: see [`are_part_of`].
pub fn select_all(received: &Message, to: &mut Message) {
    for field in received.headers().filter(|field| is_allowed(field.name())) {
        to.append(field.name(), field.value());
    }
}

/// True if a message is meaningless without its trailers, so that they need no announcement: gRPC,
/// which has its status there and never announces it
/// (`docs/decisions/grpc-trailers-need-no-announcement.md`).
#[must_use]
pub fn are_part_of(message: &Message) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let Some(kind) = message.get("Content-Type") else { return false };
    kind.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
        && matches!(kind.get(GRPC.len()), None | Some(b'+' | b';' | b' '))
}

/// True if a client accepts trailers: its `TE` lists them. Source: RFC 9110 §10.1.4.
#[must_use]
pub fn are_taken(request: &Message) -> bool {
    request.get_all("TE").flat_map(list::members).any(|member| member.eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        for (name, value) in fields {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    #[test]
    fn only_what_is_announced_and_means_nothing_to_http_is_passed_on() {
        let head =
            of(&[("Trailer", "X-Sum, content-LENGTH,,Set-Cookie"), ("trailer", "Server-Timing, Content-Digest")]);
        let announced = announced(&head).unwrap();
        assert_eq!(announced, b"X-Sum, Server-Timing, Content-Digest");
        let names =
            "x-sum Content-Length Set-Cookie server-timing Content-Digest X-Other Transfer-Encoding Host Trailer";
        let received: Vec<_> = names.split(' ').map(|name| (name, "v")).collect();
        let mut selected = Message::new();
        select(&of(&received), &announced, &mut selected);
        let selected: Vec<_> = selected.headers().map(|field| field.name().to_vec()).collect();
        assert_eq!(selected, [&b"x-sum"[..], b"server-timing", b"Content-Digest"]);
    }

    #[test]
    fn deciding_fields_cannot_be_announced_as_trailers() {
        let names = "Host Content-Length Transfer-Encoding Authorization Cookie Set-Cookie Cache-Control Vary Location \
            X-Forwarded-For x-forwarded-proto X-Real-IP Forwarded Content-Type CDN-Cache-Control Proxy-Authorization \
            Access-Control-Allow-Origin Sec-Fetch-Site Connection TE Trailer Age Via Expect ETag";
        for name in names.split_ascii_whitespace() {
            assert_eq!(announced(&of(&[("Trailer", name)])), None, "{name}");
        }
    }

    #[test]
    fn only_grpc_needs_no_announcement() {
        let is = |kind| are_part_of(&of(&[("Content-Type", kind)]));
        assert!(is("application/grpc") && is("Application/gRPC+proto") && is("application/grpc; charset=utf-8"));
        assert!(!is("application/grpc-web") && !is("application/json") && !is("") && !are_part_of(&of(&[])));
        let mut selected = Message::new();
        select_all(
            &of(&[("grpc-status", "0"), ("Content-Length", "1"), ("grpc-message", ""), ("x-a", "1")]),
            &mut selected,
        );
        let names: Vec<_> = selected.headers().map(|field| field.name().to_vec()).collect();
        assert_eq!(names, [&b"grpc-status"[..], b"grpc-message", b"x-a"]);
    }

    #[test]
    fn trailers_are_sent_only_to_clients_that_accept_them() {
        assert!(are_taken(&of(&[("TE", "gzip;q=0.5, Trailers")])));
        assert!(!are_taken(&of(&[("TE", "trailersx, gzip")])) && !are_taken(&of(&[])));
    }
}
