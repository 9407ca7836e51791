//! Output of headers and records by `varnishlog`.
//!
//! Compat: the stock program prints all bytes of a text record unchanged; here those that a
//! terminal would interpret or that begin a line are escaped (`surface::legible`).

use std::io::Write;

use shm::read::record::Record;
use shm::read::transaction::{Kind, Transaction};
use surface::legible;
use surface::tag::Tag;

/// Prints a transaction's header line; raw records have none.
pub(super) fn header(transaction: &Transaction, verbose: bool, out: &mut Vec<u8>) {
    if transaction.level == 0 {
        return;
    }
    prefix(transaction.level, '*', out);
    let kind = match transaction.kind {
        Kind::Session => "<< Session  >>",
        Kind::Request => "<< Request  >>",
        Kind::BackendRequest => "<< BeReq    >>",
        Kind::Unknown => "<< Unknown  >>",
        Kind::Raw => "<< Record   >>",
    };
    let (before, after) = if verbose { ("           ", "  ") } else { ("", "") };
    let _ = writeln!(out, "{before}{kind} {after}{:<10}", transaction.vxid);
}

/// Prints a record.
pub(super) fn record(transaction: &Transaction, record: &Record, verbose: bool, out: &mut Vec<u8>) {
    let Some(tag) = record.tag() else { return };
    if transaction.level > 0 {
        prefix(transaction.level, '-', out);
    }
    if verbose || transaction.level == 0 {
        let side = match (record.id.is_client(), record.id.is_backend()) {
            (true, _) => 'c',
            (false, true) => 'b',
            (false, false) => '-',
        };
        let _ = write!(out, "{:>10} {:<14} {side} ", record.id.vxid(), tag.name());
    } else {
        let _ = write!(out, "{:<14} ", tag.name());
    }
    payload(tag, record, out);
    out.push(b'\n');
}

fn prefix(level: u32, mark: char, out: &mut Vec<u8>) {
    let _ = if level > 3 {
        write!(out, "{mark}{level}{mark} ")
    } else {
        write!(out, "{:<3} ", mark.to_string().repeat(level as usize))
    };
}

fn payload(tag: Tag, record: &Record, out: &mut Vec<u8>) {
    if tag.row().binary {
        out.push(b'[');
        for byte in record.payload {
            let _ = write!(out, "{byte:02x}");
        }
        out.push(b']');
    } else if is_unsafe(tag) {
        out.push(b'"');
        for byte in record.payload {
            match byte {
                0x20..=0x7e => out.push(*byte),
                _ => {
                    let _ = write!(out, "%{byte:02x}");
                }
            }
        }
        out.push(b'"');
    } else {
        out.extend_from_slice(legible::line(record.text()).as_bytes());
    }
}

/// True for tags whose payload comes unchecked from a peer: shown in full and escaped.
pub(crate) fn is_unsafe(tag: Tag) -> bool {
    matches!(tag, Tag::Debug | Tag::HttpGarbage | Tag::Hash)
}
