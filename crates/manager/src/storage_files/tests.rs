//! Files of storages that are opened, refused, locked and passed on.

use super::*;
use crate::arguments::jail::Reader;
use crate::arguments::storage::parse;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use surface::limits::TEST_HANG_SECONDS;
use tempfile::TempDir;

const HERE: Jail = Jail::None { asked: true };

/// Opens the files of these `-s file`; `@` is replaced by the folder.
fn open_all(folder: &TempDir, arguments: &[&str], jail: &Jail) -> Result<StorageFiles, String> {
    let at = folder.path().display().to_string();
    let arguments: Vec<String> = arguments.iter().map(|text| format!("file,{}", text.replace('@', &at))).collect();
    let wanted = wanted(&parse(&arguments).unwrap());
    let mut files = StorageFiles::none(wanted.len());
    files.open(&wanted, jail, Duration::ZERO, &mut |_| {})?;
    Ok(files)
}

fn refused(folder: &TempDir, arguments: &[&str]) -> String {
    let at = folder.path().display().to_string();
    open_all(folder, arguments, &HERE).unwrap_err().replace(&at, "@")
}

#[test]
fn storage_file_has_its_length_and_disk_space_and_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let files = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
    let found = fs::metadata(folder.path().join("bodies")).unwrap();
    assert_eq!((found.len(), found.permissions().mode() & 0o777), (1 << 20, 0o600));
    assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
    assert!(folder.path().join("bodies.bans").is_file());
    assert_eq!((files.bytes(), files.has(0), files.has(1)), (vec![1 << 20], true, false));
    let pid = std::process::id();
    let message = refused(&folder, &["@/bodies,1m"]);
    assert_eq!(message, format!("(-sfile) \"@/bodies\" is used by another process ({pid})"));
    // A handle keeps the lock.
    let handle = files.of_storages[0].as_ref().unwrap().handle().unwrap();
    drop(files);
    assert!(refused(&folder, &["@/bodies,1m"]).contains("is used by"));
    drop(handle);
    open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
}

#[test]
fn a_lock_that_is_about_to_go_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let first = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
    let other = opening::open(&folder.path().join("bodies"), &HERE).unwrap();
    let waiting = std::thread::spawn(move || other.lock(Duration::from_secs(TEST_HANG_SECONDS)));
    drop(first);
    waiting.join().unwrap().unwrap();
}

#[test]
fn file_content_is_kept_unless_the_size_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bodies");
    drop(open_all(&folder, &["@/bodies,2m"], &HERE).unwrap());
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"body", 1 << 20).unwrap();
    let has = |size: &str| {
        let files = open_all(&folder, &[&format!("@/bodies,{size}")], &HERE).unwrap();
        let mut found = [0; 4];
        let file = File::open(&path).unwrap();
        let _ = file.read_exact_at(&mut found, 1 << 20);
        (files.bytes()[0], &found == b"body")
    };
    assert_eq!(has("2m"), (2 << 20, true));
    assert_eq!(has("1%"), (2 << 20, true), "a file that is there keeps its length");
    assert_eq!(has("3m"), (3 << 20, true));
    assert_eq!(has("1000k"), (1000 << 10, false));
    assert_eq!(has("1000001"), (999_424, false), "whole pages");
}

#[test]
fn a_directory_gets_a_file_for_each_storage() {
    let folder = tempfile::tempdir().unwrap();
    let files = open_all(&folder, &["@,1m", "@,2m"], &HERE).unwrap();
    assert_eq!(files.bytes(), [1 << 20, 2 << 20]);
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copal.s0", "copal.s0.bans", "copal.s1"]);
}

#[test]
fn invalid_storage_paths_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&folder.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(refused(&folder, &["@/fifo,1m"]), "(-sfile) \"@/fifo\" is neither file nor directory");
    assert_eq!(refused(&folder, &["/dev/null,1m"]), "(-sfile) \"/dev/null\" is neither file nor directory");
    let missing = "(-sfile) \"@/no/x\" does not exist and could not be created: No such file or directory";
    assert_eq!(refused(&folder, &["@/no/x,1m"]), missing);
    assert_eq!(refused(&folder, &["@/x,1000P"]), "(-sfile) size \"1000P\": larger than file system");
}

#[test]
fn a_start_that_is_refused_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let free = nix::sys::statvfs::statvfs(folder.path()).unwrap();
    let more = (free.blocks_available() * free.fragment_size()).min(1 << 50) + (1 << 30);
    let is_refused = |arguments: &[&str]| open_all(&folder, arguments, &HERE).unwrap_err();
    for size in [format!("{more}b"), "1000P".to_owned()] {
        let message = is_refused(&[&format!("@/x,{size}")]);
        assert!(message.contains("more are needed") || message.contains("larger than file system"), "{message}");
        is_refused(&["@/one,1m", &format!("@/two,{size}")]);
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    // An existing file stays.
    fs::write(folder.path().join("old"), "old").unwrap();
    is_refused(&["@/old,1000P"]);
    assert_eq!(fs::read(folder.path().join("old")).unwrap(), b"old");
}

#[test]
fn a_file_that_is_cut_while_in_use_keeps_the_length_that_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let files = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
    assert_eq!(files.cut(), []);
    File::options().write(true).open(folder.path().join("bodies")).unwrap().set_len(4096).unwrap();
    assert_eq!(files.bytes(), [1 << 20]);
    let path = folder.path().join("bodies");
    assert_eq!(files.cut(), [CutFile { path, given_bytes: 1 << 20, bytes: 4096 }]);
}

#[test]
fn no_two_storages_have_one_file_by_whatever_names() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one"), "").unwrap();
    fs::hard_link(folder.path().join("one"), folder.path().join("two")).unwrap();
    let twice = refused(&folder, &["@/one,1m", "@/two,1m"]);
    assert_eq!(twice, "(-sfile) \"@/two\": the storage 's0' has that file");
    let bans = refused(&folder, &["@/x,1m", "@/x.bans,1m"]);
    assert_eq!(bans, "(-sfile) \"@/x.bans\" is for the bans, and the storage 's1' has it");
}

#[test]
fn only_its_own_kind_of_file_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, "1").unwrap();
    let read_only = File::open(&path).unwrap();
    let why = LockedFile::adopt(read_only.into(), path.clone()).unwrap_err();
    assert!(why.ends_with("/x is no such file"), "{why}");
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    assert!(LockedFile::adopt(null.into(), path.clone()).is_err());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let adopted = LockedFile::adopt(file.into(), path.clone()).unwrap();
    assert!(adopted.is_at(&path));
    fs::remove_file(&path).unwrap();
    assert!(!adopted.is_at(&path));
}

#[test]
fn erased_means_that_nothing_is_at_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let files = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
    let file = files.of_storages[0].as_ref().unwrap();
    file.file().write_all_at(b"header", 0).unwrap();
    file.erase().unwrap();
    let mut found = [1; 6];
    file.file().read_exact_at(&mut found, 0).unwrap();
    assert_eq!((found, file.bytes()), ([0; 6], 1 << 20));
    let journal = files.journal.as_ref().unwrap();
    journal.file().write_all_at(b"bans", 0).unwrap();
    journal.clear().unwrap();
    assert_eq!(journal.bytes(), 0);
}

#[test]
fn a_path_is_followed_with_the_rights_of_the_jails_user() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jail = Jail::Unix {
        reader: Reader { user: 65_534, group: 65_534, groups: Vec::new() },
        worker: (65_533, 65_533),
        administrators: None,
    };
    let mode = |mode: u32| fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o755);
    // Only root writes here: it makes the file, and gives it away.
    drop(open_all(&folder, &["@/given,1m"], &jail).unwrap());
    assert_eq!(fs::metadata(folder.path().join("given")).unwrap().uid(), 65_534);
    drop(open_all(&folder, &["@/given,1m"], &jail).unwrap());
    // A file of root's cannot be a storage, by any name.
    fs::write(folder.path().join("root"), "secret").unwrap();
    fs::set_permissions(folder.path().join("root"), PermissionsExt::from_mode(0o600)).unwrap();
    let message = open_all(&folder, &["@/root,1m"], &jail).unwrap_err();
    assert!(message.ends_with("/root\" could not open (Permission denied)"), "{message}");
    mode(0o777);
    std::os::unix::fs::symlink(folder.path().join("root"), folder.path().join("led")).unwrap();
    assert!(open_all(&folder, &["@/led,1m"], &jail).unwrap_err().contains("could not open"));
    assert_eq!(fs::read(folder.path().join("root")).unwrap(), b"secret");
    // Files of the worker's user come from stock programs.
    fs::write(folder.path().join("stock"), "").unwrap();
    fchown(File::open(folder.path().join("stock")).unwrap(), Some(65_533), Some(65_533)).unwrap();
    fs::set_permissions(folder.path().join("stock"), PermissionsExt::from_mode(0o600)).unwrap();
    drop(open_all(&folder, &["@/stock,1m"], &jail).unwrap());
    mode(0o700);
    let message = open_all(&folder, &["@/new,1m"], &jail).unwrap_err();
    assert!(message.ends_with("does not exist and could not be created: Permission denied"), "{message}");
}
