//! Published counters: event loops count in their own memory, this sums them into the segment.

use crate::event_loop::LoopHandle;
use crate::histograms::Histograms;
use backend::Backend;
use engine::context::Engine;
use engine::storages::Storages;
use shm::counters::MainCounters;
use shm::histogram::REASON_COUNT;
use shm::locks;
use shm::vsc::{CounterBlock, Publisher};
use shm::vsm::VsmWriter;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use store::{FileUsage, Usage};
use surface::counter::{self, LockClass, Main, Mempool, Smf, Vbe, Xkey};
use surface::parameter::debug;
use surface::reason::WHY;

/// First document number of a worker's sections; the manager's are below.
const DOCUMENT_BASE: u64 = 1 << 32;

/// A backend and its published section.
type Published = (Arc<Backend>, CounterBlock);

/// Part of the names of a discarded VCL's counters until it ends: no VCL has a name with a blank in
/// it.
const RETIRED: char = ' ';

/// Number of updates of the counters for one of the histograms, which are larger.
const UPDATES_PER_HISTOGRAM: u64 = 5;

/// Every section that this worker publishes.
pub struct Statistics {
    publisher: Publisher,
    main: CounterBlock,
    /// One for each storage, Transient last.
    storages: Vec<CounterBlock>,
    /// For the requests and sessions of each loop.
    pools: Vec<(CounterBlock, CounterBlock)>,
    /// For the fetches of all loops.
    fetches: CounterBlock,
    locks: Vec<(LockClass, CounterBlock)>,
    /// Reasons for decisions.
    reasons: CounterBlock,
    histograms: RefCell<Histograms>,
    /// By VCL name: its backends and their sections.
    backends: RefCell<BTreeMap<String, Vec<Published>>>,
    /// The tags' section, once a VCL imports xkey.
    tags: OnceCell<CounterBlock>,
    started: f64,
    /// The counter of the VMOD debug, while VCL shows it.
    debug: RefCell<Option<CounterBlock>>,
    /// Number of runs of [`Statistics::update`].
    sums_made: Cell<u64>,
}

impl Statistics {
    /// Publishes the sections that always exist.
    ///
    /// # Errors
    /// The segment files cannot be written.
    pub fn publish(
        vsm: &VsmWriter,
        storages: &Storages,
        (loops, thread_pools): (usize, u64),
        now: f64,
    ) -> io::Result<Statistics> {
        let publisher = Publisher::new(vsm, DOCUMENT_BASE);
        let main = publisher.publish(&counter::MAIN, "MAIN")?;
        let names = storages.all().filter_map(|storage| Some((storages.name(storage)?, storages.file_usage(storage))));
        let of_storages = names.map(|(storage, file)| match file {
            Some(_) => publisher.publish(&counter::SMF, &format!("SMF.{}", storage.name)),
            None => publisher.publish(&counter::SMA, &format!("SMA.{}", storage.name)),
        });
        let of_storages = of_storages.collect::<io::Result<_>>()?;
        let pool = |name: &str| publisher.publish(&counter::MEMPOOL, &format!("MEMPOOL.{name}"));
        let fetches = pool("busyobj")?;
        // Compat: tools look for the sections of as many pools as there should be; those without a
        // loop stay at 0.
        let sections = loops.max(usize::try_from(thread_pools).unwrap_or(loops));
        let pools = (0..sections).map(|number| Ok((pool(&format!("req{number}"))?, pool(&format!("sess{number}"))?)));
        let pools = pools.collect::<io::Result<_>>()?;
        let lock = |class: LockClass| Ok((class, publisher.publish(&counter::LCK, &format!("LCK.{}", class.word()))?));
        let locks = LockClass::ALL.into_iter().map(lock).collect::<io::Result<_>>()?;
        Ok(Statistics {
            pools,
            fetches,
            locks,
            reasons: publisher.publish(&WHY, "WHY")?,
            histograms: RefCell::new(Histograms::new(vsm)),
            publisher,
            main,
            storages: of_storages,
            backends: RefCell::new(BTreeMap::new()),
            tags: OnceCell::new(),
            debug: RefCell::new(None),
            started: now,
            sums_made: Cell::new(0),
        })
    }

    /// Adds the backends of a VCL.
    ///
    /// # Errors
    /// The segment files cannot be written.
    pub fn add_backends(&self, vcl: &str, backends: &[Arc<Backend>]) -> io::Result<()> {
        let mut published = Vec::with_capacity(backends.len());
        for backend in backends {
            match self.publisher.publish(&counter::VBE, &format!("VBE.{}", backend.display_name())) {
                Ok(section) => published.push((Arc::clone(backend), section)),
                Err(error) => {
                    self.withdraw(published);
                    return Err(error);
                }
            }
        }
        self.backends.borrow_mut().insert(vcl.to_owned(), published);
        Ok(())
    }

    /// Withdraws sections, the last one first: it is found fastest.
    fn withdraw(&self, published: Vec<Published>) {
        for (_, section) in published.into_iter().rev() {
            // A section that cannot be removed stays as it is until the next worker.
            let _ = self.publisher.withdraw(section);
        }
    }

    /// Adds a backend that appeared while its VCL runs; does nothing when it is already there.
    ///
    /// # Errors
    /// The segment files cannot be written.
    pub fn add_backend(&self, vcl: &str, backend: &Arc<Backend>) -> io::Result<()> {
        let mut all = self.backends.borrow_mut();
        let Some(published) = all.get_mut(vcl) else { return Ok(()) };
        if !published.iter().any(|(held, _)| Arc::ptr_eq(held, backend)) {
            let section = self.publisher.publish(&counter::VBE, &format!("VBE.{}", backend.display_name()))?;
            published.push((Arc::clone(backend), section));
        }
        Ok(())
    }

    /// Removes a backend that is gone.
    pub fn remove_backend(&self, vcl: &str, backend: &Arc<Backend>) {
        let mut all = self.backends.borrow_mut();
        let Some(published) = all.get_mut(vcl) else { return };
        if let Some(place) = published.iter().position(|(held, _)| Arc::ptr_eq(held, backend)) {
            let (_, section) = published.remove(place);
            let _ = self.publisher.withdraw(section);
        }
    }

    /// Follows the backends that come and go while a VCL runs. Returns true if anything changed. If
    /// a section cannot be written, the next call tries again.
    pub fn follow_backends(&self, vcl: &str, backends: &[Arc<Backend>]) -> bool {
        let mut all = self.backends.borrow_mut();
        let Some(published) = all.get_mut(vcl) else { return false };
        let is_same = |(held, _): &Published, other: &Arc<Backend>| Arc::ptr_eq(held, other);
        let mut is_changed = false;
        let mut kept = Vec::with_capacity(backends.len());
        for one in std::mem::take(published) {
            if backends.iter().any(|backend| is_same(&one, backend)) {
                kept.push(one);
            } else {
                let _ = self.publisher.withdraw(one.1);
                is_changed = true;
            }
        }
        for backend in backends {
            if !kept.iter().any(|one| is_same(one, backend))
                && let Ok(section) = self.publisher.publish(&counter::VBE, &format!("VBE.{}", backend.display_name()))
            {
                kept.push((Arc::clone(backend), section));
                is_changed = true;
            }
        }
        *published = kept;
        is_changed
    }

    /// Adds the tags' section if it is not there yet.
    ///
    /// # Errors
    /// The segment files cannot be written.
    pub fn add_tags(&self) -> io::Result<()> {
        if self.tags.get().is_none() {
            let _ = self.tags.set(self.publisher.publish(&counter::XKEY, "XKEY")?);
        }
        Ok(())
    }

    /// Publishes the counter of debug, or withdraws it. If it cannot be written, the next call
    /// tries again.
    fn follow_debug(&self, count: Option<u64>) {
        let mut section = self.debug.borrow_mut();
        match count {
            Some(count) => {
                if section.is_none() {
                    *section = self.publisher.publish(&counter::DEBUG_VMOD, "DEBUG").ok();
                }
                if let Some(section) = section.as_ref() {
                    section.set_all(&[count]);
                }
            }
            None => {
                if let Some(section) = section.take() {
                    let _ = self.publisher.withdraw(section);
                }
            }
        }
    }

    /// A VCL is discarded, and its backends count until it ends. Returns the name under which
    /// [`Statistics::remove_backends`] finds them then.
    pub fn retire_backends(&self, vcl: &str) -> String {
        let mut all = self.backends.borrow_mut();
        let free = (0..=all.len()).map(|number| format!("{vcl}{RETIRED}{number}")).find(|name| !all.contains_key(name));
        let name = free.unwrap_or_default();
        let published = all.remove(vcl).unwrap_or_default();
        all.insert(name.clone(), published);
        name
    }

    /// Hides or shows the backends of a VCL that becomes cold or warm.
    pub fn hide_backends(&self, vcl: &str, hidden: bool) {
        for (_, section) in self.backends.borrow().get(vcl).into_iter().flatten() {
            section.hide(hidden);
        }
    }

    /// Removes the backends of a VCL that is gone.
    pub fn remove_backends(&self, vcl: &str) {
        let published = self.backends.borrow_mut().remove(vcl);
        self.withdraw(published.unwrap_or_default());
    }

    /// Publishes the current sums.
    pub fn update(&self, engine: &Engine, loops: &[LoopHandle], own: &MainCounters, now: f64) {
        let mut sums = [0; counter::MAIN.counters.len()];
        own.sum_into(&mut sums);
        for one in loops {
            one.counters.sum_into(&mut sums);
        }
        let mut add = |counter: Main, amount: u64| {
            sums[counter as usize] = sums[counter as usize].wrapping_add(amount);
        };
        engine.cache.counters(&mut add);
        let log = engine.ring.totals();
        add(Main::ShmRecords, log.shm_records);
        add(Main::ShmWrites, log.shm_writes);
        add(Main::ShmFlushes, log.shm_flushes);
        add(Main::ShmCont, log.shm_cont);
        add(Main::ShmCycles, log.shm_cycles);
        add(Main::ShmBytes, log.shm_bytes);
        let table = engine.vcl.load();
        let vcls = table.loaded.len() as u64;
        let backends = self.backends.borrow();
        let retired = backends.keys().filter(|name| name.contains(RETIRED)).count() as u64;
        let vmods = table.loaded.values().flat_map(|vcl| &vcl.program.program().vmods);
        add(Main::Vmods, vmods.collect::<BTreeSet<_>>().len() as u64);
        add(Main::NVcl, vcls + retired);
        add(Main::NVclDiscard, retired);
        add(Main::NVclAvail, vcls);
        add(Main::NBackend, backends.values().map(|list| list.len() as u64).sum());
        add(Main::Uptime, (now - self.started).max(0.0) as u64);
        add(Main::Pools, 1);
        add(Main::Threads, loops.len() as u64);
        add(Main::ThreadsCreated, loops.len() as u64);
        self.sums_made.set(self.sums_made.get() + 1);
        add(Main::Summs, self.sums_made.get());
        self.main.set_all(&sums);
        let mut fetches = [0; counter::MEMPOOL.counters.len()];
        for ((requests, sessions), one) in self.pools.iter().zip(loops) {
            requests.set_all(&one.pools.requests.values());
            sessions.set_all(&one.pools.sessions.values());
            add_up(&mut fetches, &one.pools.fetches.values());
        }
        for (requests, sessions) in self.pools.iter().skip(loops.len()) {
            let Some(first) = loops.first() else { continue };
            requests.set_all(&sizes_alone(&first.pools.requests.values()));
            sessions.set_all(&sizes_alone(&first.pools.sessions.values()));
        }
        for size in [Mempool::SzWanted, Mempool::SzActual] {
            fetches[size as usize] = loops.first().map_or(0, |one| one.pools.fetches.get(size as usize));
        }
        self.fetches.set_all(&fetches);
        for (class, section) in &self.locks {
            let mut counts = locks::counts(*class);
            match class {
                LockClass::Hcb => add_up(&mut counts, &engine.cache.lock_counts()),
                LockClass::Sma => {
                    let stores = engine.storages.all().filter(|storage| *storage != engine.storages.transient());
                    stores.for_each(|storage| add_up(&mut counts, &engine.storages.store(storage).lock_counts()));
                }
                LockClass::Ban
                | LockClass::Busyobj
                | LockClass::ConnPool
                | LockClass::Director
                | LockClass::Probe
                | LockClass::Vcl => {}
            }
            section.set_all(&counts);
        }
        for (section, storage) in self.storages.iter().zip(engine.storages.all()) {
            match engine.storages.file_usage(storage) {
                Some(file) => section.set_all(&file_usage(&file, &engine.storages.store(storage).usage())),
                None => section.set_all(&usage(&engine.storages.usage(storage).unwrap_or_default())),
            }
        }
        self.follow_debug(engine.vmod_state.debug_count());
        if let Some(section) = self.tags.get() {
            let usage = engine.cache.tag_usage();
            let mut values = [0; counter::XKEY.counters.len()];
            values[Xkey::GKeys as usize] = usage.tags;
            values[Xkey::GOcBytes as usize] = usage.bytes;
            values[Xkey::GBytes as usize] = usage.bytes;
            section.set_all(&values);
        }
        if self.sums_made.get() % UPDATES_PER_HISTOGRAM == 1 || engine.parameters.load().debug & debug::VTC_MODE != 0 {
            self.update_histograms(loops, backends.values().flatten().map(|(backend, _)| backend));
        }
        for (backend, section) in backends.values().flatten() {
            let mut values = backend.counters().values();
            values[Vbe::Healthy as usize] = u64::from(backend.is_healthy());
            section.set_all(&values);
        }
    }
}

impl Statistics {
    /// Publishes the histograms and the counts of reasons.
    fn update_histograms<'a>(&self, loops: &[LoopHandle], backends: impl Iterator<Item = &'a Arc<Backend>>) {
        let mut reasons = [0; REASON_COUNT];
        for one in loops {
            add_up(&mut reasons, &one.pools.histograms.reasons());
        }
        self.reasons.set_all(&reasons);
        let mut histograms = self.histograms.borrow_mut();
        histograms.update_loops(loops.iter().map(|one| &*one.pools.histograms));
        histograms.update_backends(backends);
    }
}

/// Of a MEMPOOL section, only the sizes of its pieces.
fn sizes_alone(counters: &[u64; counter::MEMPOOL.counters.len()]) -> [u64; counter::MEMPOOL.counters.len()] {
    let mut sizes = [0; counter::MEMPOOL.counters.len()];
    for size in [Mempool::SzWanted, Mempool::SzActual] {
        sizes[size as usize] = counters[size as usize];
    }
    sizes
}

/// Adds counters to sums of the same section.
fn add_up<const N: usize>(sums: &mut [u64; N], counters: &[u64; N]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum = sum.wrapping_add(*counter);
    }
}

/// The elements of section SMA in order.
fn usage(usage: &Usage) -> [u64; 7] {
    [usage.c_req, usage.c_fail, usage.c_bytes, usage.c_freed, usage.g_alloc, usage.g_bytes, usage.g_space]
}

/// The elements of section SMF in order; `metadata` is the usage of the memory.
fn file_usage(file: &FileUsage, metadata: &Usage) -> [u64; counter::SMF.counters.len()] {
    let mut values = [0; counter::SMF.counters.len()];
    values[..counter::SMA.counters.len()].copy_from_slice(&usage(&file.usage));
    let mut set = |counter: Smf, value: u64| values[counter as usize] = value;
    set(Smf::GSmf, file.pieces);
    set(Smf::GSmfFrag, file.small_runs);
    set(Smf::GSmfLarge, file.large_runs);
    set(Smf::WrittenBytes, file.written_bytes);
    set(Smf::StoredBytes, file.stored_bytes);
    set(Smf::WarmReads, file.warm_reads);
    set(Smf::ColdReads, file.cold_reads);
    set(Smf::ReadErrors, file.read_errors);
    set(Smf::WriteErrors, file.write_errors);
    set(Smf::GMetaBytes, metadata.g_bytes);
    set(Smf::GMetaSpace, metadata.g_space);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::read::vsm::Vsm;
    use shm::vsm::{WORKER_DIRECTORY, recreate_directory};
    use store::Store;
    use vcl_run::program::{BackendDefinition, Endpoint};

    fn backend(name: &str) -> Arc<Backend> {
        Backend::new("v", BackendDefinition::new(name, Endpoint::None), None, 0.0)
    }

    #[test]
    fn counters_of_a_file_stand_where_the_stock_tools_and_ours_look_for_them() {
        let metadata = Usage { g_bytes: 1, g_space: 2, ..Usage::default() };
        let usage = Usage { c_req: 3, g_space: 4, ..Usage::default() };
        let (pieces, small_runs, large_runs, write_errors) = (5, 6, 7, 8);
        let file = FileUsage { usage, pieces, small_runs, large_runs, write_errors, ..FileUsage::default() };
        let values = file_usage(&file, &metadata);
        let named = |name: &str| values[counter::SMF.counters.iter().position(|row| row.name == name).unwrap()];
        let names =
            ["c_req", "g_space", "g_smf", "g_smf_frag", "g_smf_large", "write_errors", "g_meta_bytes", "g_meta_space"];
        assert_eq!(names.map(named), [3, 4, 5, 6, 7, 8, 1, 2]);
    }

    #[test]
    fn a_vcl_whose_counters_have_no_room_leaves_none_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(WORKER_DIRECTORY);
        recreate_directory(&path, 0o755).unwrap();
        let storages = Storages::of(&[Store::in_memory(1 << 20).unwrap()]);
        let statistics = Statistics::publish(&VsmWriter::create(&path).unwrap(), &storages, (1, 1), 0.0).unwrap();
        let mut reader = Vsm::new(directory.path());
        let mut listed = move || {
            reader.poll();
            reader.entries().filter(|entry| entry.ident.starts_with("VBE.")).count()
        };
        // A name that an index cannot hold simulates a full file system or address space.
        assert!(statistics.add_backends("v", &[backend("a"), backend("b"), backend("c d")]).is_err());
        assert_eq!(listed(), 0);
        statistics.add_backends("v", &[backend("a"), backend("b")]).unwrap();
        assert_eq!(listed(), 2);
        statistics.remove_backends("v");
        assert_eq!(listed(), 0);
    }
}
