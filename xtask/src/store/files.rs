//! `cargo xtask store --files`: the articles' experiment with a set of pages larger than memory,
//! and the benefit of a file storage.
//!
//! The pages are requested in order, twice, once with a storage in memory that holds a part of
//! them, and once with a file that holds all. Then the hot set is requested while cold pages are
//! read from the disk; the worker is killed; the whole daemon is restarted. The page cache is
//! emptied of the file in between (`posix_fadvise`), for which no rights are needed.

use super::Scene;
use super::client::{Client, per_second};
use crate::place::{free_port, percentile};
use crate::process::{Server, memory_bytes};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Body of a page, in bytes.
const PAGE_BYTES: u64 = 64 << 10;
/// Number of pages.
const PAGES: u64 = 8_000;
/// The memory of a storage without a file, in MiB: a quarter of the pages.
const MEMORY_MEBIBYTES: u64 = 128;
/// Size of the file in MiB, with room for all of them.
const FILE_MEBIBYTES: u64 = 800;
/// Number of hot pages.
const HOT: u64 = 50;

fn page(number: u64) -> String {
    format!("/leaf-{number}/{PAGE_BYTES}")
}

/// Drops a file from the page cache.
fn chill(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = file.sync_all();
        let _ = nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }
}

impl Scene {
    fn start_with(&self, storage: &str, folder: &Path) -> Result<(Server, u16), String> {
        let port = free_port()?;
        let mut launch = self.kind.launch(port, self.origin, folder, 64)?;
        let place = launch.arguments.iter().position(|argument| argument == "-s").ok_or("no storage")?;
        storage.clone_into(&mut launch.arguments[place + 1]);
        launch.arguments.extend(["-l".to_owned(), "2m".to_owned()]);
        let log = folder.join("log");
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log)?;
        Ok((server, port))
    }

    fn file(&self, name: &str) -> Result<(PathBuf, PathBuf, String), String> {
        let folder = self.folder.join(format!("files-{}-{name}", self.kind.name()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let path = folder.join("bodies");
        let storage = format!("file,{},{FILE_MEBIBYTES}m", path.display());
        Ok((folder, path, storage))
    }

    /// All pages in order, twice, from memory and from a file.
    pub(super) fn traversal(&self) -> Result<String, String> {
        let mut report = String::new();
        for is_file in [false, true] {
            let (folder, path, file) = self.file(if is_file { "file" } else { "memory" })?;
            let storage = if is_file { file } else { format!("malloc,{MEMORY_MEBIBYTES}m") };
            let (server, port) = self.start_with(&storage, &folder)?;
            let mut client = Client::new(port)?;
            let begin = Instant::now();
            client.ask_all((0..PAGES).map(page))?;
            let first = per_second(PAGES, begin);
            chill(&path);
            let begin = Instant::now();
            let hits = client.ask_all((0..PAGES).map(page))?;
            let second = per_second(PAGES, begin);
            let memory = memory_bytes(&server.tree()) >> 20;
            report += &format!(
                "{PAGES} pages of {} KiB in order, {}: {first:.0} pages a second, again {second:.0} with {:.1} % hits; \
                 {memory} MiB resident\n",
                PAGE_BYTES >> 10,
                if is_file {
                    format!("file of {FILE_MEBIBYTES} MiB")
                } else {
                    format!("memory of {MEMORY_MEBIBYTES} MiB")
                },
                hits as f64 * 100.0 / PAGES as f64,
            );
        }
        Ok(report)
    }

    /// Hot pages while cold ones are read; then a kill, and a start of everything.
    pub(super) fn cold(&self) -> Result<String, String> {
        let (folder, path, storage) = self.file("cold")?;
        let (server, port) = self.start_with(&storage, &folder)?;
        let mut client = Client::new(port)?;
        client.ask_all((0..PAGES).map(page))?;
        std::thread::sleep(Duration::from_secs(2));
        let hot = |client: &mut Client, rounds: usize| -> Result<f64, String> {
            let mut times = Vec::new();
            for _ in 0..rounds {
                for number in 0..HOT {
                    times.push(client.time(page(number))?);
                }
            }
            times.sort_by(f64::total_cmp);
            Ok(percentile(&times, 0.99))
        };
        hot(&mut client, 3)?;
        let quiet = hot(&mut client, 60)?;
        chill(&path);
        hot(&mut client, 3)?;
        let colder = std::thread::spawn(move || {
            let begin = Instant::now();
            let asked = Client::new(port).and_then(|mut client| client.ask_all((HOT..PAGES).map(page)));
            asked.map(|hits| (hits, per_second(PAGES - HOT, begin)))
        });
        let during = hot(&mut client, 60)?;
        let (hits, speed) = colder.join().map_err(|_| "a client panicked")??;
        let mut report = format!(
            "hot pages: p99 {quiet:.0} µs, {during:.0} µs while {speed:.0} cold pages a second come from the disk ({:.1} % hits)\n",
            hits as f64 * 100.0 / (PAGES - HOT) as f64
        );
        drop(server);
        chill(&path);
        let begin = Instant::now();
        let (server, port) = self.start_with(&storage, &folder)?;
        let mut client = Client::new(port)?;
        let first = client.ask_all(std::iter::once(page(1)))?;
        let back = begin.elapsed().as_secs_f64() * 1e3;
        let hits = client.ask_all((0..PAGES).map(page))?;
        drop(server);
        report += &format!(
            "everything stopped and started: first answer after {back:.0} ms ({}), then {:.1} % hits\n",
            if first > 0 { "a hit" } else { "a miss" },
            hits as f64 * 100.0 / PAGES as f64
        );
        Ok(report)
    }
}
