//! Tests: a log written by the test, read by the thread.

use super::*;
use shm::histogram::{HistogramSegment, Total};
use shm::log::{LogBuffer, LogId, LogRing};
use shm::vsm::{VsmWriter, WORKER_DIRECTORY};
use std::sync::Mutex;

const RING_BYTES: usize = 1 << 16;

/// A log of a server that does not run.
struct Server {
    folder: tempfile::TempDir,
    ring: LogRing,
    requests: HistogramSegment,
}

impl Server {
    fn new() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let writer = VsmWriter::create(&folder.path().join(WORKER_DIRECTORY)).unwrap();
        let ring = LogRing::publish(&writer, RING_BYTES, shm::layout::Layout::V73).unwrap();
        let requests = HistogramSegment::publish(&writer, HistogramFamily::Request, "a0").unwrap();
        Server { folder, ring, requests }
    }

    fn request(&self, vxid: u64, link: &str) {
        let mut log = LogBuffer::new(&self.ring);
        log.start(LogId::client(vxid), 1.0);
        log.record(Tag::Begin, b"req 1 rxreq");
        if !link.is_empty() {
            log.record(Tag::Link, link.as_bytes());
        }
        log.end();
        log.flush();
    }

    /// The worker publishes the number of finished requests.
    fn count(&self, requests: u64) {
        let mut total = Total::default();
        total.buckets[0] = requests;
        self.requests.set(0, &total);
    }
}

/// Notes what it gets.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<(u64, Fate)>>>);

impl Consumer for Noted {
    fn transaction(&mut self, transaction: &Transaction, fate: Fate) {
        self.0.lock().unwrap().push((transaction.vxid, fate));
    }
}

#[test]
fn requests_restarts_and_the_rest_are_told_apart() {
    let server = Server::new();
    let (noted, totals) = (Noted::default(), Arc::<Totals>::default());
    let reader = LogReader::start(server.folder.path(), vec![Box::new(noted.clone())], &totals).unwrap();
    // From now on the log is read.
    thread::sleep(2 * LOOK_INTERVAL);
    server.request(2, "req 3 restart");
    server.request(3, "bereq 4 fetch");
    drop(reader);
    assert_eq!(*noted.0.lock().unwrap(), [(2, Fate::Restarted), (3, Fate::Request)]);
    assert_eq!((totals.overruns(), totals.lost_requests()), (0, 0));
}

#[test]
fn requests_of_an_overrun_log_are_counted_to_the_last() {
    let server = Server::new();
    server.count(7);
    let (noted, totals) = (Noted::default(), Arc::<Totals>::default());
    let mut follower = Follower::new(server.folder.path(), vec![Box::new(noted.clone())], Arc::clone(&totals));
    const REQUESTS: u64 = 20_000;
    (1..=REQUESTS).for_each(|number| server.request(2 * number, ""));
    server.count(7 + REQUESTS);
    let ends = AtomicBool::new(true);
    follower.run(&ends);
    server.request(900_002, "");
    server.count(8 + REQUESTS);
    follower.run(&ends);
    follower.losses.update(&follower.vsm, follower.cursor.as_ref().map(|(serial, _)| *serial), &totals);
    let read = noted.0.lock().unwrap().len() as u64;
    assert!(totals.overruns() > 0 && read > 0, "{read}");
    assert_eq!(read + totals.lost_requests(), REQUESTS + 1);
}

#[test]
fn messages_that_repeat_are_said_once_a_minute() {
    let seldom = Seldom::default();
    seldom.say(format_args!("this message of a test is expected"));
    let said = seldom.0.load(Ordering::Relaxed);
    seldom.say(format_args!("this message of a test must not appear"));
    assert!(said > 0 && seldom.0.load(Ordering::Relaxed) == said);
}
