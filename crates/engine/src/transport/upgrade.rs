//! `Upgrade: h2c`: the answer 101, and the request in HTTP/2 form.
//!
//! The answer to the request follows the client's preface. Compat: Varnish 7.1. The bytes are made
//! in `http2::upgrade`. Source: RFC 7540 §3.2.

use crate::context::Loop;
use crate::deadline::duration;
use crate::request::RequestSlot;
use ::http1::split_absolute_form;
use ::http2::upgrade::{Beginning, beginning, opening, settings};
use message::Message;
use surface::header::is_of_connection;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

const ANSWER: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

/// Answers 101. Returns the bytes to be read before the client's own, once its preface is complete.
///
/// # Errors
/// The session must end; the text is for the log. Compat: the texts of Varnish 7.1.
pub(super) async fn grant<S: AsyncWrite + Unpin>(
    context: &Loop,
    stream: &mut S,
    slot: &RequestSlot,
) -> Result<Prologue, &'static str> {
    let head = &slot.request.task.request;
    let mut values = head.get_all("HTTP2-Settings");
    let settings = match (values.next(), values.next()) {
        (Some(value), None) => settings(value),
        _ => None,
    };
    let settings = settings.ok_or("H2: Bad HTTP-Settings")?;
    let due = Instant::now() + duration(context.engine.parameters.load().idle_send_timeout);
    if !matches!(timeout_at(due, stream.write_all(ANSWER)).await, Ok(Ok(()))) {
        return Err("H2: Upgrade: Error writing 101");
    }
    let target = Target::of(head);
    let fields = target.fields(head).map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    Ok(Prologue { settings, fields, received: slot.buffers.unread().to_vec() })
}

/// First input of the library: the client's preface and settings, which have to arrive, and then
/// the request.
pub(super) struct Prologue {
    settings: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes that the client has sent after the request's head.
    received: Vec<u8>,
}

impl Prologue {
    /// Takes more of the client's bytes. Returns everything up to here in the form for the library,
    /// once the preface and settings are complete. Other bytes are returned unchanged: the library
    /// refuses them.
    pub(super) fn take(&mut self, received: &[u8]) -> Option<Vec<u8>> {
        self.received.extend_from_slice(received);
        match beginning(&self.received, self.settings.len()) {
            Beginning::Partial => None,
            Beginning::Wrong => Some(std::mem::take(&mut self.received)),
            Beginning::Complete(end) => {
                let fields = self.fields.iter().map(|(name, value)| (&name[..], &value[..]));
                let mut bytes = opening(&self.received[..end], &self.settings, fields).unwrap_or_default();
                bytes.extend_from_slice(&self.received[end..]);
                Some(bytes)
            }
        }
    }
}

/// Target of a request.
struct Target {
    host: Vec<u8>,
    path: Vec<u8>,
}

impl Target {
    fn of(head: &Message) -> Target {
        match split_absolute_form(head.method(), head.target()) {
            Ok(Some(form)) => Target { host: form.host.to_vec(), path: form.origin_form(head.method()) },
            _ => Target { host: head.get("Host").unwrap_or_default().to_vec(), path: head.target().to_vec() },
        }
    }

    /// The request's fields in HTTP/2, pseudo headers first.
    fn fields<'a>(&'a self, head: &'a Message) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let pseudo: [(&[u8], &[u8]); 4] =
            [(b":method", head.method()), (b":scheme", b"http"), (b":path", &self.path), (b":authority", &self.host)];
        let pseudo = pseudo.into_iter().filter(|(_, value)| !value.is_empty());
        let headers = head.headers().filter(|header| {
            !header.is_hop() && !is_of_connection(header.name()) && !header.is("Host") && !header.is("TE")
        });
        pseudo.chain(headers.map(|header| (header.name(), header.value())))
    }
}
