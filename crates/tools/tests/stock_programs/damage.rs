//! Randomly damaged segments and log files: the tools print the readable part, and end.

use std::fs;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::recording::written_directory;
use super::{Tool, run_ours};

const ROUNDS: u64 = 60;

fn damage(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..random.random_range(1..30) {
        let at = match random.random_range(0..3) {
            0 => random.random_range(0..bytes.len().min(128)),
            1 => random.random_range(0..bytes.len().min(65_536)),
            _ => random.random_range(0..bytes.len()),
        };
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => {
                let end = (at + random.random_range(1..32)).min(bytes.len());
                random.fill_bytes(&mut bytes[at..end]);
            }
            2 => {
                let words = [0xFE45_4545u32, 0xFE57_5757, 0xFF00_0000, 0, u32::MAX, 0x4C00_FFFF, 0xFF00_FFFF];
                let at = at / 4 * 4;
                if let Some(word) = bytes.get_mut(at..at + 4) {
                    word.copy_from_slice(&words[random.random_range(0..words.len())].to_ne_bytes());
                }
            }
            _ => {
                let from = random.random_range(0..bytes.len());
                let count = random.random_range(0..256).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + count, at);
            }
        }
    }
    if random.random_range(0..6) == 0 {
        bytes.truncate(random.random_range(0..bytes.len()));
    }
}

/// Copies a server's directories, and damages some of their files.
fn damaged_copy(from: &Path, to: &Path, random: &mut SmallRng) {
    for directory in ["_.vsm_mgt", "_.vsm_child"] {
        fs::create_dir(to.join(directory)).unwrap();
        for entry in fs::read_dir(from.join(directory)).unwrap() {
            let entry = entry.unwrap();
            let mut bytes = fs::read(entry.path()).unwrap();
            match random.random_range(0..4) {
                0 | 1 => damage(&mut bytes, random),
                2 if random.random_range(0..8) == 0 => continue,
                _ => {}
            }
            fs::write(to.join(directory).join(entry.file_name()), bytes).unwrap();
        }
    }
}

#[test]
fn damaged_segments_end_no_tool_in_a_crash_or_never() {
    let whole = written_directory();
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let damaged = tempfile::tempdir().unwrap();
        damaged_copy(whole.path(), damaged.path(), &mut random);
        let name = damaged.path().to_str().unwrap();
        let grouping = ["raw", "vxid", "request", "session"][seed as usize % 4];
        let tools: [(Tool, &[&str]); 5] = [
            (tools::log_to, &["-d", "-t", "0", "-g", grouping]),
            (tools::log_to, &["-d", "-t", "0", "-g", grouping, "--json", "-q", "RespStatus >= 300 or Begin[2] > 0"]),
            (tools::ncsa_to, &["-d", "-t", "0", "-b", "-E"]),
            (tools::ncsa_to, &["-d", "-t", "0", "--json"]),
            (tools::stat_to, &["-1", "-t", "0"]),
        ];
        for (tool, more) in tools {
            let args = [&["-n", name], more].concat();
            let ran = run_ours(tool, &args, b"");
            assert!(matches!(ran.status, 0 | 1), "seed {seed} {args:?}: {} {}", ran.status, ran.error);
            assert!(ran.error.lines().count() <= 8, "seed {seed}: {}", ran.error);
            if more.contains(&"--json") {
                assert!(std::str::from_utf8(&ran.output).is_ok());
                for line in ran.output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok(), "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn damaged_log_files_are_read_up_to_where_they_make_sense() {
    let whole = written_directory();
    let name = whole.path().to_str().unwrap();
    let recorded = whole.path().join("recorded");
    let path = recorded.to_str().unwrap();
    run_ours(tools::log_to, &["-n", name, "-d", "-g", "raw", "-w", path], b"");
    let bytes = fs::read(&recorded).unwrap();
    for seed in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut damaged = bytes.clone();
        damage(&mut damaged, &mut random);
        for (tool, args) in [
            (tools::log_to as Tool, &["-r", "-", "-g", "session"][..]),
            (tools::log_to, &["-r", "-", "-g", "raw", "--json"]),
            (tools::ncsa_to, &["-r", "-", "-j", "-b", "-c"]),
        ] {
            let ran = run_ours(tool, args, &damaged);
            assert!(matches!(ran.status, 0 | 1), "seed {seed}: {}", ran.error);
        }
    }
}
