//! The fence around the worker: limits what a compromised process could do to the machine.
//!
//! Two fences, each raised if the kernel has it. Seccomp refuses (`EPERM`) system calls that serving traffic never
//! makes: starting programs and processes (one would outlive the worker, with its sockets and arenas), tracing and looking
//! into other processes, mounting, loading code into the kernel, changing users or clocks. Landlock refuses writing anywhere
//! but files below the work directory, executing anything, and signals to others. Both hold for every thread started later
//! and cannot be taken down again. Reading is not fenced: VCL may read any file that the worker's user may
//! (`std.fileread`). `crates/copal/tests/integration/confinement.rs` tests what a
//! compromised worker can still do. Next file: `configure.rs`.

use landlock::{
    ABI, AccessFs, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::unistd::{Gid, Uid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Newest known version of Landlock; older kernels get the rights that they support.
const LANDLOCK: ABI = ABI::V6;
/// The one place outside the work directory where programs write as a matter of course.
const SINK: &str = "/dev/null";

/// System calls that a process needs only for something other than serving.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_personality,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_capset,
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// What [`raise`] has achieved.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fence {
    /// System calls are refused.
    pub has_seccomp: bool,
    /// Writing and executing is refused.
    pub has_landlock: bool,
    /// Why one of them is missing; silent about a kernel without Landlock.
    pub remarks: Vec<String>,
}

/// Permanently gives up everything that serving traffic does not need: the process becomes user and group of `run_as`
/// without supplementary groups, cannot regain rights, and is behind the fence if `is_fenced`. Must be called before any
/// other thread is started, and before anything is read from a client.
///
/// # Errors
/// When rights could not be given up: then nobody may be served.
pub fn confine(work_directory: &Path, run_as: Option<(u32, u32)>, is_fenced: bool) -> Result<Fence, String> {
    if let Some((user, group)) = run_as {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        nix::unistd::setgroups(&[group]).map_err(|error| format!("giving up groups: {error}"))?;
        nix::unistd::setresgid(group, group, group).map_err(|error| format!("becoming group {group}: {error}"))?;
        nix::unistd::setresuid(user, user, user).map_err(|error| format!("becoming user {user}: {error}"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("giving up privileges: {error}"))?;
    Ok(if is_fenced { raise(work_directory) } else { Fence::default() })
}

/// Raises the fence around the calling thread and all threads it will start. The process must not be able to gain
/// privileges.
#[must_use]
fn raise(work_directory: &Path) -> Fence {
    let mut fence = Fence::default();
    match landlock(work_directory) {
        Ok(stands) => fence.has_landlock = stands,
        Err(error) => fence.remarks.push(format!("landlock: {error}")),
    }
    match seccomp() {
        Ok(()) => fence.has_seccomp = true,
        Err(error) => fence.remarks.push(format!("seccomp: {error}")),
    }
    fence
}

/// Whether the kernel has Landlock; if so, the fence is up.
fn landlock(work_directory: &Path) -> Result<bool, landlock::RulesetError> {
    let writing = AccessFs::from_write(LANDLOCK);
    let fenced: BitFlags<AccessFs> = writing | AccessFs::Execute;
    // Shared memory is files in one directory.
    let of_files =
        AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Refer;
    let status = Ruleset::default()
        .handle_access(fenced)?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules([work_directory, Path::new(SINK)], of_files))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn seccomp() -> Result<(), String> {
    let invalid = |error: seccompiler::BackendError| error.to_string();
    // A call without conditions on its arguments is always refused.
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let is_process =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0);
    let of_processes = SeccompRule::new(vec![is_process.map_err(invalid)?]).map_err(invalid)?;
    rules.insert(libc::SYS_clone, vec![of_processes]);
    // A filter cannot see the flags of this one. As if the kernel did not have it, the C library uses the other for threads.
    refuse([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)?;
    refuse(rules, libc::EPERM)
}

/// Has these calls end with an error, from now on.
fn refuse(rules: Rules, error: i32) -> Result<(), String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(|error| format!("{error:?}"))?;
    let refusal = SeccompAction::Errno(error as u32);
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture).map_err(|error| error.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    fn kernel() -> (u32, u32) {
        let names = nix::sys::utsname::uname().unwrap();
        let mut numbers = names.release().to_str().unwrap().split(['.', '-']).map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// Runs in a process of its own, since a fence cannot be taken down.
    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn inside_the_fence() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        // What the manager has opened, such as the file of a storage and the journal of bans, stays usable.
        let path = outside.path().join("storage");
        let inherited = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
        nix::sys::prctl::set_no_new_privs().unwrap();
        let fence = raise(folder.path());
        let others = std::thread::spawn(|| Command::new("/bin/true").status());
        let refused = Command::new("/bin/true").status().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{fence:?}");
        assert!(others.join().unwrap().is_err());
        assert!(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER).is_err());
        assert!(nix::sys::ptrace::traceme().is_err());
        // Landlock can refuse signals since Linux 6.12.
        let parent = nix::sys::signal::kill(nix::unistd::getppid(), None);
        assert_eq!(parent.is_err(), fence.has_landlock && kernel() >= (6, 12), "{fence:?}");
        std::fs::write(folder.path().join("log"), "allowed").unwrap();
        std::fs::rename(folder.path().join("log"), folder.path().join("moved")).unwrap();
        std::fs::rename(folder.path().join("moved"), folder.path().join("log")).unwrap();
        assert!(std::fs::create_dir(folder.path().join("directory")).is_err(), "{fence:?}");
        std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        inherited.write_all_at(b"body", 1 << 20).unwrap();
        inherited.sync_data().unwrap();
        let mut found = [0; 4];
        inherited.read_exact_at(&mut found, 1 << 20).unwrap();
        assert_eq!(&found, b"body");
        inherited.set_len(1).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "allowed");
        let elsewhere = std::fs::write(outside.path().join("file"), "refused");
        assert_eq!(elsewhere.is_err(), fence.has_landlock, "{fence:?}");
        println!("fence: {fence:?}");
    }

    #[test]
    fn fenced_process_serves_but_starts_nothing_and_writes_nowhere_else() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "fence::tests::inside_the_fence"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("has_seccomp: false") {
            println!("skipped: needs a kernel with seccomp");
            return;
        }
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("fence: "), "{said}");
    }
}
