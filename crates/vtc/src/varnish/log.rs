//! Copy of the daemon's log in the test's log, record by record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use shm::layout::Layout;
use shm::read::record::Records;
use shm::read::ring::{RingCursor, Start};
use shm::read::vsm::Vsm;
use shm::read::{Cursor, Next};
use surface::tag::Tag;

use crate::journal::Journal;
use crate::test::{Cancel, Outcome};
use crate::threads;

/// Pause of the copier when there is nothing to copy. Compat: scripts that use `-vsl_catchup` rely
/// on a delay of this order.
const IDLE: Duration = Duration::from_millis(100);

/// Layout of the log of the daemon in `folder`; `None` if it has none.
pub(super) fn layout(folder: &Path) -> Option<Layout> {
    let mut vsm = Vsm::new(folder);
    vsm.poll();
    let region = vsm.map(vsm.find("Log", None)?).ok()?;
    Some(RingCursor::open(region, Start::Head)?.layout())
}

/// The thread that copies.
pub(super) struct LogCopy {
    thread: JoinHandle<()>,
    cancel: Arc<Cancel>,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    has_record: AtomicBool,
    idles: AtomicU64,
}

impl LogCopy {
    pub fn start(journal: &Journal, folder: &Path) -> Outcome<LogCopy> {
        let (cancel, progress) = (threads::cancel(journal)?, Arc::new(Progress::default()));
        let mut copier = Copier {
            journal: journal.forked(),
            cancel: Arc::clone(&cancel),
            progress: Arc::clone(&progress),
            vsm: Vsm::new(folder),
            cursor: None,
            start: Start::Head,
        };
        let thread = threads::start(journal, move || {
            while copier.copy().is_ok() {}
            // The last records before the end matter most.
            copier.drain();
        })?;
        Ok(LogCopy { thread, cancel, progress })
    }

    pub fn stop(self) {
        self.cancel.set();
        let _ = self.thread.join();
    }

    pub fn wait_for_record(&self, cancel: &Cancel) -> Outcome {
        while !self.progress.has_record.load(Ordering::SeqCst) {
            cancel.sleep(IDLE / 10)?;
        }
        Ok(())
    }

    pub fn wait_for_idle(&self, cancel: &Cancel) -> Outcome {
        let before = self.progress.idles.load(Ordering::SeqCst);
        while self.progress.idles.load(Ordering::SeqCst) == before {
            cancel.sleep(IDLE / 10)?;
        }
        Ok(())
    }
}

struct Copier {
    journal: Journal,
    cancel: Arc<Cancel>,
    progress: Arc<Progress>,
    vsm: Vsm,
    cursor: Option<(u64, RingCursor)>,
    start: Start,
}

impl Copier {
    /// Copies the available records.
    fn drain(&mut self) {
        let mut words = Vec::new();
        while let Some((_, cursor)) = &mut self.cursor {
            match cursor.next(&mut words) {
                Next::Chunk => self.print(&words),
                Next::Overrun => {
                    self.journal.log(3, "vsl|the log was overrun");
                    cursor.reset(Start::Tail);
                }
                Next::Damaged => {
                    self.journal.log(3, "vsl|the log is damaged");
                    cursor.reset(Start::Tail);
                    break;
                }
                Next::Wait | Next::End => break,
            }
        }
    }

    /// Copies the available records, then pauses.
    fn copy(&mut self) -> Outcome {
        self.drain();
        if self.cursor.is_some() {
            self.progress.idles.fetch_add(1, Ordering::SeqCst);
        }
        self.cancel.sleep(IDLE)?;
        self.vsm.poll();
        if self.cursor.as_ref().is_some_and(|(serial, _)| !self.vsm.is_listed(*serial)) {
            self.cursor = None;
        }
        if self.cursor.is_none()
            && let Some(entry) = self.vsm.find("Log", None)
            && let Ok(region) = self.vsm.map(entry)
            && let Some(cursor) = RingCursor::open(region, self.start)
        {
            self.cursor = Some((entry.serial, cursor));
            self.start = Start::Tail;
        }
        Ok(())
    }

    fn print(&self, words: &[u32]) {
        self.progress.has_record.store(true, Ordering::SeqCst);
        for record in Records::new(words) {
            let side = match (record.id.is_client(), record.id.is_backend()) {
                (true, _) => 'c',
                (_, true) => 'b',
                _ => '-',
            };
            let row = record.tag().map(Tag::row);
            let name = row.map_or("?", |row| row.name);
            let payload = if row.is_some_and(|row| row.binary) {
                let hex: String = record.payload.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("[{hex}]")
            } else {
                String::from_utf8_lossy(record.text()).into_owned()
            };
            self.journal.log(4, format!("vsl| {:>10} {name:<15} {side} {payload}", record.id.vxid()));
        }
    }
}
