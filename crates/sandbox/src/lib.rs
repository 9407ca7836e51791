//! Sandbox of the worker and of `copal observe`: limits the damage that a compromised process could
//! do to the machine.
//!
//! It has two parts, each used if the kernel supports it. Seccomp refuses (`EPERM`) system calls
//! that serving traffic never makes: starting programs and processes (one would outlive the worker,
//! with its sockets and arenas), tracing and inspecting other processes, mounting, loading code
//! into the kernel, changing users or clocks. Landlock refuses executing anything, signals to
//! others, and file access according to [`Access`]. Both apply to every thread started later and
//! cannot be removed. `crates/copal/tests/integration/confinement.rs` tests the remaining rights of
//! a compromised worker.
//!
//! *Invariant:* the worker drops its rights and enters the sandbox before it reads anything from a
//! client. It holds no access to the manager or to the CLI's secret.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Newest known version of Landlock; older kernels get the rights that they support.
const LANDLOCK: ABI = ABI::V6;
/// The one path outside the work directory that ordinary programs write to.
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

/// Files and addresses that remain usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access<'a> {
    /// Writing only to files below the work directory. Reading is not restricted: VCL may read any
    /// file that the worker's user may (`std.fileread`).
    Serve,
    /// Reading only below the work directory, no writing, and connections only from clients, except
    /// for these grants.
    Read(Grants<'a>),
}

/// Additional rights of a process that reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grants<'a> {
    /// Directories in which files may be created, written, renamed and removed.
    pub writable: &'a [PathBuf],
    /// Files and directories that may be read. Missing ones are ignored.
    pub readable: &'a [PathBuf],
    /// TCP ports to which connections may be opened.
    pub ports: &'a [u16],
}

/// Result of [`confine`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sandbox {
    /// System calls are refused.
    pub has_seccomp: bool,
    /// Writing and executing is refused.
    pub has_landlock: bool,
    /// Reasons why a part is missing; empty for a kernel without Landlock.
    pub remarks: Vec<String>,
}

/// Permanently gives up everything that `access` does not need: the process becomes user and group
/// of `run_as` without supplementary groups, cannot regain rights, and is in the sandbox if
/// `is_sandboxed`. Must be called before any other thread is started, and before anything is read
/// from a client.
///
/// # Errors
/// Rights could not be given up: then no client may be served.
pub fn confine(
    work_directory: &Path,
    run_as: Option<(u32, u32)>,
    is_sandboxed: bool,
    access: Access<'_>,
) -> Result<Sandbox, String> {
    if let Some((user, group)) = run_as {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        nix::unistd::setgroups(&[group]).map_err(|error| format!("giving up groups: {error}"))?;
        nix::unistd::setresgid(group, group, group).map_err(|error| format!("becoming group {group}: {error}"))?;
        nix::unistd::setresuid(user, user, user).map_err(|error| format!("becoming user {user}: {error}"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("giving up privileges: {error}"))?;
    Ok(if is_sandboxed { enter(work_directory, access) } else { Sandbox::default() })
}

/// Limits CPU time, in seconds, and address space, in bytes, of this process. Beyond the first the
/// kernel ends it, beyond the second it gets no memory.
///
/// # Errors
/// The kernel refuses, in words.
pub fn limit(cpu_seconds: u64, memory_bytes: u64) -> Result<(), String> {
    for (resource, most) in [(Resource::RLIMIT_CPU, cpu_seconds), (Resource::RLIMIT_AS, memory_bytes)] {
        setrlimit(resource, most, most).map_err(|error| format!("limiting resources: {error}"))?;
    }
    Ok(())
}

/// System calls with which a thread reaches a file, a network or another program.
const OUTSIDE: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_io_uring_setup,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_kill,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
];

/// Takes from the calling thread, and from the threads it will start, the means to open files, to
/// use the network and to start programs. Other threads of the process keep them; the process
/// cannot gain privileges any more.
///
/// # Errors
/// The kernel does not support it, in words.
pub fn isolate_thread() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("giving up privileges: {error}"))?;
    refuse(OUTSIDE.iter().map(|call| (*call, Vec::new())).collect(), libc::EPERM)
}

/// Puts the calling thread and all threads it will start into the sandbox. The process must not be
/// able to gain privileges.
#[must_use]
fn enter(work_directory: &Path, access: Access<'_>) -> Sandbox {
    let mut sandbox = Sandbox::default();
    let landlock = match access {
        Access::Serve => landlock_to_serve(work_directory),
        Access::Read(grants) => landlock_to_read(work_directory, grants),
    };
    match landlock {
        Ok(stands) => sandbox.has_landlock = stands,
        Err(error) => sandbox.remarks.push(format!("landlock: {error}")),
    }
    match seccomp() {
        Ok(()) => sandbox.has_seccomp = true,
        Err(error) => sandbox.remarks.push(format!("seccomp: {error}")),
    }
    sandbox
}

/// Rights to create, write, rename and remove files.
fn writing_of_files() -> BitFlags<AccessFs> {
    AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Refer
}

/// Applies Landlock; false if the kernel does not have it.
fn landlock_to_serve(work_directory: &Path) -> Result<bool, landlock::RulesetError> {
    let writing = AccessFs::from_write(LANDLOCK);
    let handled: BitFlags<AccessFs> = writing | AccessFs::Execute;
    // Shared memory is files in one directory.
    let of_files = writing_of_files();
    let status = Ruleset::default()
        .handle_access(handled)?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules([work_directory, Path::new(SINK)], of_files))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// The same for a process that only reads, and only accepts from sockets that it has.
fn landlock_to_read(work_directory: &Path, grants: Grants<'_>) -> Result<bool, landlock::RulesetError> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules([work_directory], reading))?
        .add_rules(path_beneath_rules(grants.readable, reading))?
        .add_rules(path_beneath_rules(grants.writable, reading | writing_of_files()))?
        .add_rules(
            grants.ports.iter().map(|port| Ok::<_, landlock::RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
        )?
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
    // A filter cannot see the flags of this one. As if the kernel did not have it, the C library
    // uses the other for threads.
    refuse([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)?;
    refuse(rules, libc::EPERM)
}

/// Makes these calls fail with an error, from now on.
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

    /// Runs in a process of its own, since the sandbox cannot be removed.
    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn inside_the_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        // Descriptors that the manager has opened, such as the file of a storage and the journal of
        // bans, stay usable.
        let path = outside.path().join("storage");
        let inherited = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
        nix::sys::prctl::set_no_new_privs().unwrap();
        let sandbox = enter(folder.path(), Access::Serve);
        let others = std::thread::spawn(|| Command::new("/bin/true").status());
        let refused = Command::new("/bin/true").status().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{sandbox:?}");
        assert!(others.join().unwrap().is_err());
        assert!(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER).is_err());
        assert!(nix::sys::ptrace::traceme().is_err());
        // Landlock can refuse signals since Linux 6.12.
        let parent = nix::sys::signal::kill(nix::unistd::getppid(), None);
        assert_eq!(parent.is_err(), sandbox.has_landlock && kernel() >= (6, 12), "{sandbox:?}");
        std::fs::write(folder.path().join("log"), "allowed").unwrap();
        std::fs::rename(folder.path().join("log"), folder.path().join("moved")).unwrap();
        std::fs::rename(folder.path().join("moved"), folder.path().join("log")).unwrap();
        assert!(std::fs::create_dir(folder.path().join("directory")).is_err(), "{sandbox:?}");
        std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        inherited.write_all_at(b"body", 1 << 20).unwrap();
        inherited.sync_data().unwrap();
        let mut found = [0; 4];
        inherited.read_exact_at(&mut found, 1 << 20).unwrap();
        assert_eq!(&found, b"body");
        inherited.set_len(1).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "allowed");
        let elsewhere = std::fs::write(outside.path().join("file"), "refused");
        assert_eq!(elsewhere.is_err(), sandbox.has_landlock, "{sandbox:?}");
        println!("sandbox: {sandbox:?}");
    }

    /// Runs in a process of its own, too.
    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn inside_the_sandbox_of_a_reader() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let logs = tempfile::tempdir().unwrap();
        for file in [folder.path().join("index"), outside.path().join("secret")] {
            std::fs::write(file, "text").unwrap();
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        nix::sys::prctl::set_no_new_privs().unwrap();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let granted = other.local_addr().unwrap();
        let writable = [logs.path().to_owned()];
        let grants = Grants { writable: &writable, ports: &[granted.port()], ..Grants::default() };
        let sandbox = enter(folder.path(), Access::Read(grants));
        std::fs::write(logs.path().join("log"), "line").unwrap();
        std::fs::rename(logs.path().join("log"), logs.path().join("log.1")).unwrap();
        std::net::TcpStream::connect(granted).unwrap();
        assert!(Command::new("/bin/true").status().is_err());
        assert_eq!(std::fs::read_to_string(folder.path().join("index")).unwrap(), "text");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let refused = [
            std::fs::read_to_string(outside.path().join("secret")).is_err(),
            std::fs::write(folder.path().join("index"), "other").is_err(),
            std::fs::File::create(folder.path().join("new")).is_err(),
        ];
        assert_eq!(refused, [sandbox.has_landlock; 3], "{sandbox:?}");
        // Landlock can refuse connections since Linux 6.7.
        let connected = std::net::TcpStream::connect(address);
        assert_eq!(connected.is_err(), sandbox.has_landlock && kernel() >= (6, 7), "{sandbox:?}");
        println!("sandbox: {sandbox:?}");
    }

    #[test]
    fn isolated_thread_opens_nothing_and_others_are_unaffected() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let inner = file.clone();
        let refused = std::thread::spawn(move || {
            isolate_thread().map(|()| {
                (
                    std::fs::read(&inner).is_err(),
                    std::net::UdpSocket::bind("127.0.0.1:0").is_err(),
                    Command::new("/bin/true").status().is_err(),
                )
            })
        });
        match refused.join().unwrap() {
            Ok(refused) => assert_eq!(refused, (true, true, true)),
            Err(text) => println!("skipped: {text}"),
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
    }

    #[test]
    fn sandboxed_reader_reads_its_directory_and_nothing_else() {
        check("tests::inside_the_sandbox_of_a_reader");
    }

    #[test]
    fn sandboxed_process_serves_but_executes_nothing_and_writes_only_to_its_files() {
        check("tests::inside_the_sandbox");
    }

    /// Runs an ignored test in a process of its own.
    fn check(name: &str) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("has_seccomp: false") {
            println!("skipped: needs a kernel with seccomp");
            return;
        }
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("sandbox: "), "{said}");
    }
}
