//! Storages whose file gets another length, granularity or metadata limit, objects without a body,
//! and clocks that are set back.

use super::FileOptions;
use super::disk::Disk;
use super::tests::{FILE_BYTES, Kept, body, made, new_memory, opened, options};
use crate::attributes::BodyState;
use rand::{SeedableRng, rngs::SmallRng};
use surface::closed_set::Advice;

fn changes() -> [(&'static str, FileOptions); 6] {
    let (bytes, metadata_bytes) = (FILE_BYTES as u64, 512 << 10);
    [
        ("grown", FileOptions { bytes: bytes * 2, ..options() }),
        ("grown a lot", FileOptions { bytes: bytes * 8, ..options() }),
        ("shrunk", FileOptions { bytes: bytes / 2, ..options() }),
        ("less metadata", FileOptions { metadata_bytes: metadata_bytes / 2, ..options() }),
        ("finer", FileOptions { granularity_bytes: 512, ..options() }),
        ("coarser", FileOptions { granularity_bytes: 8192, advice: Advice::Normal, ..options() }),
    ]
}

/// The file with the length that the manager gives it.
fn sized(disk: Disk, options: &FileOptions) -> Disk {
    disk.resize(options.bytes as usize);
    disk
}

async fn filled() -> Kept {
    let kept = made();
    for xid in 1..60 {
        kept.store(xid, xid as usize * 900, xid % 2 == 0).await.unwrap();
    }
    assert!(kept.store.settle().await);
    (1..60).step_by(7).for_each(|xid| kept.remove(xid));
    assert!(kept.store.settle().await);
    kept
}

async fn all_right(kept: &Kept) -> Vec<u32> {
    let content = kept.content().await;
    for (xid, found) in &content {
        assert!(*found == body(*xid, found.len()) && found.len() == *xid as usize * 900, "{xid}");
    }
    assert!(content.keys().all(|xid| xid % 7 != 1 || *xid >= 200), "what was removed stays away");
    content.into_keys().collect()
}

#[tokio::test]
async fn resized_file_keeps_objects_that_fit_and_no_removed_ones() {
    let kept = filled().await;
    let before = all_right(&kept).await;
    for (what, other) in changes() {
        for metadata in [new_memory(), kept.copy_of_memory()] {
            let disk = sized(kept.disk.after_kill(), &other);
            let (changed, recovered) = opened(&disk, &metadata, &other);
            let found = all_right(&changed).await;
            println!("{what}: {} of {}", found.len(), before.len());
            match what {
                "shrunk" | "coarser" => {
                    assert!(found.len() > before.len() / 8, "{what}: {} {recovered:?}", found.len())
                }
                _ => assert_eq!(found, before, "{what}"),
            }
            assert_eq!(recovered.anew, None);
            changed.store.check();
            if what != "shrunk" {
                // In a region that has room for it.
                changed.store(100, 90_000, true).await.unwrap();
                changed.remove(100);
            }
            // Later removals are durable, too.
            let gone = found[found.len() / 2];
            changed.remove(gone);
            assert!(changed.store.settle().await);
            let (again, _) = opened(&changed.disk.after_kill(), &new_memory(), &other);
            let expected: Vec<u32> = found.iter().copied().filter(|xid| *xid != gone).collect();
            assert_eq!(all_right(&again).await, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn a_change_that_is_cut_short_loses_nothing() {
    let kept = filled().await;
    for (what, other) in changes() {
        for seed in 0..6 {
            let disk = sized(kept.disk.after_kill(), &other);
            let (changed, _) = opened(&disk, &new_memory(), &other);
            // At any point of the writer's work.
            let mut random = SmallRng::seed_from_u64(seed);
            let disk = changed.disk.after_power_loss(&mut random);
            let found = all_right(&changed).await;
            let (again, recovered) = opened(&disk, &new_memory(), &other);
            assert_eq!((all_right(&again).await, recovered.anew), (found, None), "{what} {seed}");
        }
    }
}

#[tokio::test]
async fn an_object_without_a_body_survives_a_reboot() {
    let kept = made();
    for (xid, is_known) in [(1, true), (2, false)] {
        let object = kept.store(xid, 0, is_known).await.unwrap();
        assert!(object.is_on_disk() && object.is_whole() && object.state() == BodyState::Complete);
    }
    kept.store(3, 10, true).await.unwrap();
    assert!(kept.store.settle().await);
    assert_eq!(kept.store.file_usage().unwrap().usage.g_bytes, 4096, "they take no room in the file");
    kept.store(4, 0, true).await.unwrap();
    kept.remove(2);
    assert!(kept.store.settle().await);
    let (again, _) = opened(&kept.disk.after_kill(), &new_memory(), &options());
    let lengths: Vec<_> = again.content().await.into_iter().map(|(xid, body)| (xid, body.len())).collect();
    assert_eq!(lengths, [(1, 0), (3, 10), (4, 0)]);
    let (next, _) = kept.killed(kept.disk.after_kill());
    assert_eq!(next.content().await.len(), 3);
}

#[tokio::test]
async fn a_clock_that_was_set_back_gives_no_number_twice() {
    let kept = made();
    kept.store(1, 5000, true).await.unwrap();
    // The value in a process a year later.
    let year = 365 * 86_400 * 1_000_000_000;
    let tier = kept.store.inner.disk_tier().unwrap();
    tier.has_seen(tier.new_id() + year);
    kept.store(2, 5000, true).await.unwrap();
    kept.remove(2);
    kept.store(3, 5000, true).await.unwrap();
    assert!(kept.store.settle().await);
    let latest = tier.new_id();
    for metadata in [new_memory(), kept.copy_of_memory()] {
        let (again, _) = opened(&kept.disk.after_kill(), &metadata, &options());
        assert!(again.store.inner.disk_tier().unwrap().new_id() >= latest);
        assert_eq!(again.content().await.keys().copied().collect::<Vec<_>>(), [1, 3]);
    }
}

#[tokio::test]
async fn a_file_grows_and_shrinks_again_and_goes_on() {
    let kept = filled().await;
    let mut disk = kept.disk.after_kill();
    for (factor, at_least) in [(8, 50), (8, 50), (64, 50), (32, 0), (1, 0), (2, 0)] {
        let other = FileOptions { bytes: FILE_BYTES as u64 * factor, ..options() };
        disk = sized(disk, &other);
        let (changed, recovered) = opened(&disk, &new_memory(), &other);
        let found = all_right(&changed).await;
        assert!(found.len() >= at_least, "{factor}: {} {recovered:?}", found.len());
        for xid in 200..210 {
            let object = changed.store(xid, xid as usize * 900, true).await.unwrap();
            assert!(object.is_on_disk());
        }
        assert!(changed.store.settle().await);
        assert!(all_right(&changed).await.contains(&209));
        let new: Vec<u32> = changed.index.lock().iter().map(|object| object.xid()).filter(|xid| *xid >= 200).collect();
        new.into_iter().for_each(|xid| changed.remove(xid));
        assert!(changed.store.settle().await);
        changed.store.check();
        changed.store.close();
    }
}
