//! The thread that writes to the disk and reads from it. All writes that wait are made durable at
//! once.

use crate::queue::Queue;
use fleet::exchange::Ticket;
use fleet::folder::DiskFolder;
use fleet::record::{Entry, Record};
use fleet::{Input, Keeper};
use std::io;
use std::ops::RangeInclusive;
use std::thread;
use surface::limits::FLEET_BATCH_MAX;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Results that wait for the machine.
const RESULTS: usize = 16;

/// An order to the thread. They are carried out one after another.
pub(crate) enum Work {
    /// A write.
    Write(Ticket, Record),
    /// Reads entries of the outbox.
    Read {
        /// Their numbers, only a few.
        counters: RangeInclusive<u64>,
        /// Handed back with the entries.
        is_stored: bool,
    },
}

/// A result.
pub(crate) enum Done {
    /// Events for the machine.
    Inputs(Vec<Input>),
    /// Entries that were read.
    Entries {
        /// The entries.
        entries: Vec<Entry>,
        /// As in [`Work::Read`].
        is_stored: bool,
    },
}

/// Starts the thread. It ends when the queue is dropped.
///
/// # Errors
/// There are too many threads.
pub(crate) fn begin(keeper: Keeper<DiskFolder>) -> io::Result<(Queue<Work>, Receiver<Done>)> {
    let (queue, orders) = Queue::new();
    let (results, done) = channel(RESULTS);
    thread::Builder::new().name("disk".to_owned()).spawn(move || work(keeper, orders, &results))?;
    Ok((queue, done))
}

fn work(mut keeper: Keeper<DiskFolder>, mut orders: Receiver<Work>, results: &Sender<Done>) {
    while let Some(first) = orders.blocking_recv() {
        let mut next = Some(first);
        let mut writes = 0;
        while let Some(order) = next.take() {
            match order {
                Work::Write(ticket, record) => {
                    keeper.write(ticket, &record);
                    writes += 1;
                }
                Work::Read { counters, is_stored } => {
                    if results.blocking_send(read(&keeper, counters, is_stored)).is_err() {
                        return;
                    }
                }
            }
            if writes < FLEET_BATCH_MAX {
                next = orders.try_recv().ok();
            }
        }
        let inputs = keeper.sync();
        if !inputs.is_empty() && results.blocking_send(Done::Inputs(inputs)).is_err() {
            return;
        }
    }
}

fn read(keeper: &Keeper<DiskFolder>, counters: RangeInclusive<u64>, is_stored: bool) -> Done {
    match counters.map(|counter| keeper.read(counter)).collect() {
        Ok(entries) => Done::Entries { entries, is_stored },
        Err(error) => {
            eprintln!("an entry of the outbox cannot be read: {error}");
            Done::Inputs(vec![Input::OutboxLost])
        }
    }
}
