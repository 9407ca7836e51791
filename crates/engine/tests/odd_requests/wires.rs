//! Three clients for one row: bytes of HTTP/1, frames of HTTP/2 made by hand, and streams of
//! HTTP/3.

use super::{End, Row};
use crate::support::World;
use crate::support::quic::{Outcome, QuicClient, headers};
use engine::peer::Listener;
use engine::transport::FirstProtocol;
use field_coding::{huffman, integer};
use http2::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// The protocols, in the order of [`Row::ends`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Over {
    Http1,
    Http2,
    Http3,
}

/// The request that follows.
const NEXT: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "next.example"), (":path", "/next")];

/// Sends a row and the request that follows. Returns the outcome of the row, and true if the other
/// was answered: on the same connection, or on a new one where HTTP/2 or HTTP/3 has ended it.
pub(super) async fn say(world: &World, over: Over, row: &Row) -> (End, bool) {
    match over {
        Over::Http1 => over_http1(world, row).await,
        Over::Http2 => over_http2(world, row).await,
        Over::Http3 => over_http3(world, row).await,
    }
}

/// Both requests at once: a server that mistakes the end of the first receives another second one.
async fn over_http1(world: &World, row: &Row) -> (End, bool) {
    let mut client = world.client_with(1 << 20);
    client
        .send(row.text.clone().unwrap_or_else(|| http1_text(row)) + "GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n")
        .await;
    let is_head = row.fields.iter().any(|(name, value)| name == ":method" && value == "HEAD");
    let mut came = End::Gone;
    loop {
        let response = if is_head { client.response_to_head().await } else { client.response().await };
        match response.status() {
            0 => break,
            100 => {}
            status => {
                came = End::Answered(status);
                break;
            }
        }
    }
    (came, client.response().await.status() == 200)
}

fn http1_text(row: &Row) -> String {
    let pseudo = |name: &str| row.fields.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    let mut text = format!("{} {} HTTP/1.1\r\n", pseudo(":method").unwrap_or(""), pseudo(":path").unwrap_or(""));
    if let Some(authority) = pseudo(":authority") {
        text += &format!("Host: {authority}\r\n");
    }
    let fields = || row.fields.iter().filter(|(name, _)| !name.starts_with(':'));
    fields().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    let is_framed = fields().any(|(name, _)| name == "content-length" || name == "transfer-encoding");
    match row.body {
        None => text + "\r\n",
        Some(body) if is_framed => text + "\r\n" + body,
        Some(body) => {
            let trailers: String = row.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let chunk = if body.is_empty() { String::new() } else { format!("{:x}\r\n{body}\r\n", body.len()) };
            text + "Transfer-Encoding: chunked\r\n\r\n" + &chunk + "0\r\n" + &trailers + "\r\n"
        }
    }
}

/// A connection of HTTP/2 and the frames received on it.
struct Http2 {
    wire: DuplexStream,
    statuses: HashMap<u32, u16>,
    ended: HashMap<u32, Option<ErrorCode>>,
    is_gone: bool,
}

impl Http2 {
    async fn connect(world: &World) -> Http2 {
        let mut wire = world.wire(1 << 20, FirstProtocol::Http2);
        // No header table: their heads can be decoded without state.
        let settings = frame(kind::SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]);
        wire.write_all(&[PREFACE.to_vec(), settings].concat()).await.unwrap();
        Http2 { wire, statuses: HashMap::new(), ended: HashMap::new(), is_gone: false }
    }

    /// Sends a request. The daemon may close during that.
    async fn send(&mut self, id: u32, fields: &[(&str, &str)], body: Option<&str>, trailers: &[(&str, &str)]) {
        let ends = |is_last: bool| if is_last { flag::END_STREAM } else { 0 };
        let mut bytes = head(id, fields, ends(body.is_none() && trailers.is_empty()));
        if let Some(body) = body {
            bytes.extend(frame(kind::DATA, ends(trailers.is_empty()), id, body.as_bytes()));
        }
        if !trailers.is_empty() {
            bytes.extend(head(id, trailers, flag::END_STREAM));
        }
        let _ = self.wire.write_all(&bytes).await;
    }

    /// Reads until a stream or the connection has ended.
    async fn end_of(&mut self, id: u32) -> End {
        while !self.ended.contains_key(&id) && !self.is_gone {
            let mut bytes = [0; HEAD_BYTES];
            if self.wire.read_exact(&mut bytes).await.is_err() {
                self.is_gone = true;
                break;
            }
            let head = FrameHead::parse(&bytes);
            let mut payload = vec![0; head.payload_bytes as usize];
            self.wire.read_exact(&mut payload).await.unwrap();
            match head.kind {
                kind::HEADERS => {
                    let status = status_of(&payload);
                    if status >= 200 {
                        self.statuses.entry(head.stream).or_insert(status);
                    }
                }
                kind::RST_STREAM => {
                    let code = u32::from_be_bytes(payload[..4].try_into().unwrap());
                    self.ended.entry(head.stream).or_insert(ErrorCode::of(code));
                }
                kind::GOAWAY => self.is_gone = payload[4..8] != [0; 4],
                _ => {}
            }
            if matches!(head.kind, kind::HEADERS | kind::DATA) && head.has(flag::END_STREAM) {
                self.ended.insert(head.stream, None);
            }
        }
        match (self.ended.get(&id), self.statuses.get(&id)) {
            (Some(None), Some(status)) => End::Answered(*status),
            (Some(code), _) => {
                assert_eq!(code, &Some(ErrorCode::ProtocolError));
                End::Reset
            }
            (None, _) => End::Gone,
        }
    }
}

async fn over_http2(world: &World, row: &Row) -> (End, bool) {
    let mut connection = Http2::connect(world).await;
    let fields: Vec<(&str, &str)> = row.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    connection.send(1, &fields, row.body, row.trailers).await;
    let came = connection.end_of(1).await;
    if connection.is_gone {
        connection = Http2::connect(world).await;
    }
    connection.send(3, &NEXT, None, &[]).await;
    (came, connection.end_of(3).await == End::Answered(200))
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

/// The largest payload that may be sent without negotiation.
const FRAME_BYTES_MAX: usize = 16 << 10;

/// HEADERS and the necessary CONTINUATION frames, every field as a literal.
fn head(id: u32, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer::write(text.len() as u64, 7, 0, &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let mut frames = Vec::new();
    let count = block.len().div_ceil(FRAME_BYTES_MAX).max(1);
    for place in 0..count {
        let piece = &block[place * FRAME_BYTES_MAX..block.len().min((place + 1) * FRAME_BYTES_MAX)];
        let kind = if place == 0 { kind::HEADERS } else { kind::CONTINUATION };
        let flags = if place == 0 { flags } else { 0 };
        let last = if place + 1 == count { flag::END_HEADERS } else { 0 };
        frames.extend(frame(kind, flags | last, id, piece));
    }
    frames
}

/// The status at the beginning of a block; 0 in trailers.
fn status_of(mut block: &[u8]) -> u16 {
    const IN_TABLE: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    while block[0] & 0xe0 == 0x20 {
        integer::read(&mut block, 5, 4).unwrap();
    }
    if block[0] & 0x80 != 0 {
        return block[0].checked_sub(0x88).and_then(|place| IN_TABLE.get(usize::from(place))).copied().unwrap_or(0);
    }
    let bits = if block[0] & 0x40 != 0 { 6 } else { 4 };
    if !(8..=14).contains(&integer::read(&mut block, bits, 4).unwrap()) {
        return 0;
    }
    let is_packed = block[0] & 0x80 != 0;
    let length = integer::read(&mut block, 7, 4).unwrap() as usize;
    let mut text = Vec::new();
    if is_packed {
        huffman::decode(&block[..length], &mut text).unwrap();
    } else {
        text.extend_from_slice(&block[..length]);
    }
    std::str::from_utf8(&text).unwrap().parse().unwrap()
}

const MESSAGE_ERROR: u64 = 0x10e;

fn connect_http3(world: &World) -> QuicClient {
    let mut peer = world.peer();
    peer.listener = Rc::new(Listener { tls: true, names_scheme: true, ..(*peer.listener).clone() });
    QuicClient::connect(&world.context, peer, false)
}

async fn over_http3(world: &World, row: &Row) -> (End, bool) {
    let client = connect_http3(world);
    let fields: Vec<(&str, &str)> = row.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let id = client.begin(&fields);
    if let Some(body) = row.body {
        client.data(id, body.as_bytes());
    }
    if !row.trailers.is_empty() {
        client.say(id, &headers(row.trailers));
    }
    client.finish(id);
    let came = match client.outcome(id).await {
        Outcome::Reset(code) => {
            assert_eq!(code, MESSAGE_ERROR, "{}", row.what);
            End::Reset
        }
        Outcome::Closed(_) => End::Gone,
        Outcome::Response(fields, _) => {
            // Interim ones come before it.
            let status = fields.iter().rfind(|(name, _)| name == ":status").unwrap();
            End::Answered(status.1.parse().unwrap())
        }
    };
    let client = if came == End::Gone { connect_http3(world) } else { client };
    let next = client.ask(&NEXT).await;
    (came, matches!(next, Outcome::Response(..)) && next.status() == 200)
}
