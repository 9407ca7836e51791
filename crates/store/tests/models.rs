//! The store's protocols between threads, tried in every order that the memory model allows.
//!
//! These are models: each writes out one protocol, with the words, the bits and the orderings of
//! the sources (`memory.rs`: a load is Acquire, a store Release, a change a loop of
//! compare-and-exchange with AcqRel), and loom runs it in all orders. A byte of an arena is a cell:
//! loom fails when one thread reads it while another one writes, or before the write is visible to
//! it. The rest is covered elsewhere: the allocator is behind a lock, and kills are covered by
//! `crash_tests`. Miri and ThreadSanitizer run over the sources themselves (`cargo xtask sound`).

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use loom::thread;

const COMPLETE: u64 = 1;
const FAILED: u64 = 2;
const INDEXED: u64 = 4;
const REMOVED: u64 = 8;
const HAS_NEXT: u64 = 16;
const UNCHECKED: u64 = 32;

/// `Memory::update`.
fn update(word: &AtomicU64, change: impl Fn(u64) -> u64) -> u64 {
    let mut old = word.load(Acquire);
    loop {
        let new = change(old);
        match word.compare_exchange_weak(old, new, AcqRel, Acquire) {
            Ok(_) => return new,
            Err(now) => old = now,
        }
    }
}

/// A record with a body of two blocks of one byte each.
struct Record {
    head: AtomicU64,
    /// Number of bytes of the body that may be read.
    length: AtomicU64,
    /// Location of the second block; a word of the arena like any other.
    link: AtomicU64,
    checksum: AtomicU64,
    body: [UnsafeCell<u8>; 2],
}

impl Record {
    fn new() -> Record {
        Record {
            head: AtomicU64::new(0),
            length: AtomicU64::new(0),
            link: AtomicU64::new(0),
            checksum: AtomicU64::new(0),
            body: [UnsafeCell::new(0), UnsafeCell::new(0)],
        }
    }

    fn write(&self, at: usize, byte: u8) {
        // SAFETY: loom checks that no other thread reads or writes it meanwhile.
        self.body[at].with_mut(|cell| unsafe { *cell = byte });
    }

    fn read(&self, at: usize) -> u8 {
        // SAFETY: loom checks that no thread writes it meanwhile.
        self.body[at].with(|cell| unsafe { *cell })
    }

    /// `writer.rs`: bytes first, then the length that publishes them; a new block is linked before
    /// anything in it is published.
    fn append_all(&self) {
        self.write(0, 1);
        self.length.store(1, Release);
        self.write(1, 2);
        self.link.store(1, Release);
        update(&self.head, |head| head | HAS_NEXT);
        self.length.store(2, Release);
    }

    /// `end_stored`.
    fn finish(&self) {
        update(&self.checksum, |_| 3);
        update(&self.head, |head| head | COMPLETE);
    }

    /// `find`: the length is loaded before any head or link.
    fn read_available(&self) -> Vec<u8> {
        let available = self.length.load(Acquire);
        if available == 0 {
            return Vec::new();
        }
        let mut bytes = vec![self.read(0)];
        if available == 2 {
            assert!(self.head.load(Acquire) & HAS_NEXT != 0, "published bytes lie in a block that nothing leads to");
            bytes.push(self.read(self.link.load(Acquire) as usize));
        }
        bytes
    }
}

fn is_committed(head: u64) -> bool {
    head & COMPLETE != 0 && head & INDEXED != 0 && head & REMOVED == 0
}

#[test]
fn a_reader_of_a_growing_body_sees_only_what_was_published() {
    loom::model(|| {
        let record = Arc::new(Record::new());
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                record.append_all();
                record.finish();
            })
        };
        let is_complete = record.head.load(Acquire) & COMPLETE != 0;
        let seen = record.read_available();
        assert!([1, 2].starts_with(&seen));
        if is_complete {
            // The state is read before the bytes: once it is complete, all bytes are visible.
            assert_eq!((seen.len(), record.checksum.load(Acquire)), (2, 3));
        }
        writer.join().unwrap();
    });
}

#[test]
fn two_readers_and_a_writer_never_meet_in_a_byte() {
    loom::model(|| {
        let record = Arc::new(Record::new());
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let record = Arc::clone(&record);
                thread::spawn(move || record.read_available().len())
            })
            .collect();
        record.append_all();
        for reader in readers {
            assert!(reader.join().unwrap() <= 2);
        }
    });
}

/// An object is removed while its fetch ends and the index takes it: all three bits are set in the
/// end, so it is not committed, and recovery will not find it.
#[test]
fn a_removed_object_is_never_committed_again() {
    loom::model(|| {
        let record = Arc::new(Record::new());
        let ways: [fn(&Record); 2] = [Record::finish, |record| _ = update(&record.head, |head| head | INDEXED)];
        let threads: Vec<_> = ways
            .into_iter()
            .map(|way| {
                let record = Arc::clone(&record);
                thread::spawn(move || way(&record))
            })
            .collect();
        let after = update(&record.head, |head| head | REMOVED);
        assert!(!is_committed(after) && !is_committed(record.head.load(Acquire)));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(record.head.load(Acquire), COMPLETE | INDEXED | REMOVED);
    });
}

/// An object of an earlier process is checked by several threads at once, and by a lookup that only
/// reads its flags. Damaged, it is never used; sound, it is never removed.
#[test]
fn damaged_object_is_used_by_no_thread_however_many_check_it() {
    for is_sound in [true, false] {
        loom::model(move || {
            let head = Arc::new(AtomicU64::new(COMPLETE | INDEXED | UNCHECKED));
            // `Object::check`; true = it may be used.
            let check = move |head: &AtomicU64| {
                if head.load(Acquire) & UNCHECKED == 0 {
                    return true;
                }
                if is_sound {
                    update(head, |head| head & !UNCHECKED);
                } else {
                    update(head, |head| head | REMOVED);
                }
                is_sound
            };
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let head = Arc::clone(&head);
                    thread::spawn(move || assert_eq!(check(&head), is_sound))
                })
                .collect();
            // `Object::is_usable` without a check.
            let seen = head.load(Acquire);
            assert!(is_sound || seen & (REMOVED | FAILED | UNCHECKED) != 0, "damaged and usable");
            for thread in threads {
                thread.join().unwrap();
            }
            let after = head.load(Acquire);
            assert_eq!(after, COMPLETE | INDEXED | if is_sound { 0 } else { UNCHECKED | REMOVED });
        });
    }
}

/// Two halves of a word that are changed by different threads at once (the lifetime and the newest
/// ban) lose neither change.
#[test]
fn halves_of_a_word_that_change_at_once_are_both_kept() {
    loom::model(|| {
        let word = Arc::new(AtomicU64::new(0));
        let other = {
            let word = Arc::clone(&word);
            thread::spawn(move || update(&word, |word| word & 0xffff_ffff | 7 << 32))
        };
        update(&word, |word| word & !0xffff_ffff | 5);
        other.join().unwrap();
        assert_eq!(word.load(Acquire), 7 << 32 | 5);
    });
}

/// A self-test of the models: a writer that publishes a length before the byte is detected.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_length_that_comes_before_its_byte_is_found_out() {
    loom::model(|| {
        let record = Arc::new(Record::new());
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                record.length.store(1, Release);
                record.write(0, 1);
            })
        };
        record.read_available();
        writer.join().unwrap();
    });
}
