//! A transaction as readers get it: its kind, its reason, and its records.

use super::record::{Record, Records, append};
use crate::log::LogId;

/// Kind of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Its Begin is invalid, or is still to come.
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

    /// The id of the grouper's `VSL` records in such a transaction; those of a session belong to
    /// neither side.
    pub(super) fn id(self, vxid: u64) -> LogId {
        match self {
            Kind::Request => LogId::client(vxid),
            Kind::BackendRequest => LogId::backend(vxid),
            Kind::Session | Kind::Unknown | Kind::Raw => LogId(vxid),
        }
    }
}

/// Reason why a transaction was started.
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
    pub vxid: u64,
    /// The number of the transaction that started it within the group; 0 at the top.
    pub parent: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its reason.
    pub reason: Reason,
    pub(super) words: Vec<u32>,
}

impl Transaction {
    /// A group of one raw record.
    #[must_use]
    pub fn raw(record: &Record) -> Transaction {
        let mut words = Vec::new();
        append(&mut words, record.number, record.id, record.payload);
        Transaction { level: 0, vxid: record.id.vxid(), parent: 0, kind: Kind::Raw, reason: Reason::Unknown, words }
    }

    /// Its records in the order of the log.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.words)
    }

    /// Its records in the plain form (`crate::layout`).
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}
