//! A transaction as readers get it: what it is, why it was started, and its records.

use super::record::{Record, Records};
use crate::log::LogId;

/// What a transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Its Begin made no sense, or is still to come.
    Unknown,
    /// A client connection.
    Session,
    /// A client request.
    Request,
    /// A backend request.
    BackendRequest,
    /// A single record.
    Raw,
}

impl Kind {
    pub(super) fn parse(word: &[u8]) -> Kind {
        match word {
            b"sess" => Kind::Session,
            b"req" => Kind::Request,
            b"bereq" => Kind::BackendRequest,
            _ => Kind::Unknown,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Session => "sess",
            Kind::Request => "req",
            Kind::BackendRequest => "bereq",
            Kind::Unknown | Kind::Raw => "unknown",
        }
    }

    /// The id of the notes in such a transaction; those of a session belong to neither side.
    pub(super) fn id(self, vxid: u32) -> LogId {
        match self {
            Kind::Request => LogId::client(vxid),
            Kind::BackendRequest => LogId::backend(vxid),
            Kind::Session | Kind::Unknown | Kind::Raw => LogId(vxid),
        }
    }
}

/// Why a transaction was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Reason {
    Unknown,
    Http1,
    Rxreq,
    Esi,
    Restart,
    Pass,
    Fetch,
    Bgfetch,
    Pipe,
}

impl Reason {
    pub(super) fn parse(word: &[u8]) -> Reason {
        match word {
            b"HTTP/1" => Reason::Http1,
            b"rxreq" => Reason::Rxreq,
            b"esi" => Reason::Esi,
            b"restart" => Reason::Restart,
            b"pass" => Reason::Pass,
            b"fetch" => Reason::Fetch,
            b"bgfetch" => Reason::Bgfetch,
            b"pipe" => Reason::Pipe,
            _ => Reason::Unknown,
        }
    }
}

/// One transaction of a reported group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// Depth in the group, 1 at the top; 0 for a raw record.
    pub level: u32,
    /// Its number.
    pub vxid: u32,
    /// The number of the transaction that started it within the group; 0 at the top.
    pub parent: u32,
    /// What it is.
    pub kind: Kind,
    /// Why it was started.
    pub reason: Reason,
    pub(super) words: Vec<u32>,
}

impl Transaction {
    /// A group of one raw record.
    #[must_use]
    pub fn raw(record: &Record) -> Transaction {
        let mut words = vec![u32::from(record.number) << 24 | record.payload.len() as u32, record.id.0];
        words.extend(record.payload.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_ne_bytes(word)
        }));
        Transaction { level: 0, vxid: record.id.vxid(), parent: 0, kind: Kind::Raw, reason: Reason::Unknown, words }
    }

    /// Its records in the order of the log.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.words)
    }

    /// Its records as they stand in a log file.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}
