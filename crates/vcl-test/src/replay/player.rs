//! Plays recorded requests against one VCL.

use super::answers::{Answers, DialRecorded, Origin, Seen};
use crate::world::{Setting, World};
use recording::{Exchange, Line, gather};
use shm::log::{LogPlace, OwnedRecord};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::REPLAY_BODY_BYTES_MAX;
use surface::parameter::Parameters;
use surface::tag::Tag;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use vcl_run::program::Program;

/// Virtual time for one request. VCL may sleep.
const REQUEST: Duration = Duration::from_secs(3600);
/// Turns of the event loop in which background work ends, before virtual time has to pass.
const TURNS: usize = 1000;
/// Virtual time for background work that needs more.
const SETTLE: Duration = Duration::from_millis(1);

/// A VCL with a cache of its own.
pub(super) struct Player {
    world: World,
    origin: Rc<Origin>,
    place: LogPlace,
}

/// The result of a request.
pub(super) struct Played {
    /// As the log of the replay has it.
    pub(super) exchange: Exchange,
    pub(super) records: Vec<OwnedRecord>,
    pub(super) seen: Seen,
}

impl Player {
    /// # Errors
    /// The VCL cannot be loaded, in words.
    pub(super) fn new(
        program: &Program,
        parameters: &Parameters,
        answers: &Rc<Answers>,
        setting: &Setting,
    ) -> Result<Player, String> {
        let origin = Rc::new(Origin::new(Rc::clone(answers)));
        let dial = Rc::new(DialRecorded(Rc::clone(&origin)));
        let world = World::new(program, parameters, dial, setting)?;
        world.set_health(&[]);
        let mut place = LogPlace::default();
        world.engine.ring.take(&mut place);
        Ok(Player { world, origin, place })
    }

    /// Plays a request; `None` if the engine did not handle it as one.
    pub(super) async fn play(&mut self, number: u32, recorded: &Exchange) -> Option<Played> {
        self.origin.begin(number, recorded.start);
        let (near, session) = self.world.connect(recorded.client, &recorded.listener);
        let is_head = recorded.request.line[0] == b"HEAD";
        let _ = tokio::time::timeout(REQUEST, exchange(near, &request(recorded), is_head)).await;
        // The client has left.
        let _ = session.await;
        let records = self.settle().await;
        let lines: Vec<Line> = records
            .iter()
            .map(|record| Line { vxid: record.id.vxid(), tag: record.tag, text: &record.payload })
            .collect();
        let exchange = gather(&lines, usize::MAX)?;
        Some(Played { exchange, records, seen: self.origin.take_seen() })
    }

    /// Waits until all transactions have ended, and returns their records.
    async fn settle(&mut self) -> Vec<OwnedRecord> {
        let mut records = self.world.engine.ring.take(&mut self.place);
        for turn in 0..TURNS + 10 {
            let count = |tag| records.iter().filter(|record| record.tag == tag).count();
            if count(Tag::Begin) <= count(Tag::End) {
                break;
            }
            match turn {
                ..TURNS => tokio::task::yield_now().await,
                _ => tokio::time::sleep(SETTLE).await,
            }
            records.extend(self.world.engine.ring.take(&mut self.place));
        }
        records
    }
}

/// The bytes of a request. Its body is made up; only its length is recorded.
fn request(recorded: &Exchange) -> Vec<u8> {
    let [method, url, _] = &recorded.request.line;
    let mut bytes = [&method[..], b" ", url, b" HTTP/1.1\r\n"].concat();
    let body = recorded.body_bytes.min(REPLAY_BODY_BYTES_MAX) as usize;
    for (name, value) in &recorded.request.fields {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        // The client of the recording may have waited for it, or kept its connection.
        if is("content-length") || is("transfer-encoding") || is("expect") || is("connection") || is("upgrade") {
            continue;
        }
        bytes.extend_from_slice(&[name, b": " as &[u8], value, b"\r\n"].concat());
    }
    if recorded.request.value("Content-Length").is_some() || body > 0 {
        bytes.extend_from_slice(format!("Content-Length: {body}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.resize(bytes.len() + body, b'x');
    bytes
}

/// Sends a request, and reads its response to the end.
async fn exchange(near: DuplexStream, request: &[u8], is_head: bool) {
    let (mut reader, mut writer) = tokio::io::split(near);
    let send = async {
        let _ = writer.write_all(request).await;
        std::future::pending::<()>().await;
    };
    let receive = async {
        let mut bytes = Vec::new();
        let mut chunk = [0; 16 << 10];
        while let Ok(count @ 1..) = reader.read(&mut chunk).await {
            bytes.extend_from_slice(&chunk[..count]);
            if is_complete(&mut bytes, is_head) {
                return;
            }
        }
    };
    tokio::select! {
        () = send => {}
        () = receive => {}
    }
}

/// True if these bytes end with the end of a final response. Removes interim responses.
fn is_complete(bytes: &mut Vec<u8>, is_head: bool) -> bool {
    loop {
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n").map(|place| place + 4) else {
            return false;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if status.starts_with('1') && status != "101" {
            bytes.drain(..end);
            continue;
        }
        if is_head || matches!(status.as_str(), "101" | "204" | "304") {
            return true;
        }
        if head.contains("\r\ntransfer-encoding: chunked\r\n") {
            return bytes.ends_with(b"\r\n0\r\n\r\n") || bytes[end..] == *b"0\r\n\r\n";
        }
        let length = head.split("\r\ncontent-length: ").nth(1).and_then(|rest| rest.lines().next());
        return length
            .and_then(|length| length.trim().parse::<usize>().ok())
            .is_some_and(|length| bytes.len() >= end + length);
    }
}
