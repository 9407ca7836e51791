//! Detection of a storage's file that is truncated while it is in use: otherwise the operator would
//! see objects disappear without a reason.
//!
//! No limit follows from it. Later objects are written where they would have been, so the file
//! becomes long again.

use super::CutFile;
use crate::memory::Size as Shown;
use crate::report::Level;
use crate::state::Manager;
use std::rc::Rc;
use std::time::Duration;

/// Interval between checks of the lengths.
const LOOK: Duration = Duration::from_secs(2);

/// Watches the files, without end.
pub async fn watch(manager: Rc<Manager>) {
    if manager.memory.borrow().files().of_storages.iter().all(Option::is_none) {
        return;
    }
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let cut = manager.memory.borrow().files().cut();
        for text in news(&mut told, cut) {
            manager.say(Level::Error, text);
        }
    }
}

/// The messages about files that have become shorter, or shorter still, since the reports in
/// `told`.
fn news(told: &mut Vec<CutFile>, cut: Vec<CutFile>) -> Vec<String> {
    let is_new = |one: &&CutFile| told.iter().all(|before| before.path != one.path || before.bytes > one.bytes);
    let texts = cut.iter().filter(is_new).map(text).collect();
    *told = cut;
    texts
}

fn text(CutFile { path, given_bytes, bytes }: &CutFile) -> String {
    let (path, given, now) = (path.display(), Shown(*given_bytes), Shown(*bytes));
    format!(
        "Somebody has cut {path} from {given} to {now} while it is in use: the bodies behind that are lost and will be fetched anew; no room on the disk is kept for it until the daemon starts anew"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_truncation_is_reported_once() {
        let cut = |bytes| vec![CutFile { path: "/x".into(), given_bytes: 200 << 20, bytes }];
        let mut told = Vec::new();
        let first = news(&mut told, cut(1 << 20));
        assert!(first.len() == 1 && first[0].starts_with("Somebody has cut /x from 200M to 1M while"), "{first:?}");
        assert!(news(&mut told, cut(1 << 20)).is_empty() && news(&mut told, cut(2 << 20)).is_empty());
        assert_eq!(news(&mut told, cut(0)).len(), 1, "shorter still");
        assert!(news(&mut told, Vec::new()).is_empty());
        assert_eq!(news(&mut told, cut(0)).len(), 1, "again");
    }
}
