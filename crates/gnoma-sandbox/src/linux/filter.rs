//! The seccomp filter: system calls that a command does not get.
//!
//! Everything is allowed that is not listed: what a command reads and writes is for mounts and
//! Landlock to decide, not for a list of calls. Refused is what reaches past them: other processes'
//! memory, namespaces, mounts, the kernel's wide and young interfaces, and sockets that leave. Calls
//! that programs try and can do without answer with an error; only a foreign instruction set ends
//! the program, for there the numbers mean something else.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::fault::Fault;

/// The kinds of sockets that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sockets {
    /// Between processes by a path. Not where paths of the host cannot be masked.
    pub(super) local: bool,
    /// By address. What they reach is decided by the network namespace.
    pub(super) internet: bool,
}

/// Calls that are refused whatever their arguments.
const REFUSED: &[c_long] = &[
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Files by a number instead of a path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The kernel itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // Keys of the user's session.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// Calls that only some instruction sets have.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
/// `kexec_file_load`, which not every table of numbers has.
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[c_long] = &[294];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REFUSED_HERE: &[c_long] = &[];

/// Calls that seem not to exist, so that callers take the older one, whose arguments can be seen.
const ABSENT: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// `open_tree_attr`, the same number everywhere; younger than the table of numbers.
const SYS_OPEN_TREE_ATTR: c_long = 467;
/// `fchmodat2`, the same number everywhere; younger than the table of numbers.
const SYS_FCHMODAT2: c_long = 452;

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    CLONE_NEWTIME,
];
/// A flag of `clone` that shares its bit with the number of the signal sent at the end; no signal
/// has that number.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Requests to a descriptor that are refused.
const REQUESTS: [u64; 9] = [
    // Put words into the mouth of whoever sits at a terminal: `TIOCSTI`, `TIOCLINUX`.
    0x5412,
    0x541C,
    // Make and remove parts of a file system that hold a copy of others, hidden files included:
    // snapshots of btrfs, in both versions, and of bcachefs.
    0x5000_9401,
    0x5000_9417,
    0x5000_940E,
    0x5000_9418,
    0x5000_940F,
    0x5000_943F,
    0x4020_BC10,
];

/// Modes under which a program runs as its owner, whoever starts it.
const SET_ID_MODES: [libc::c_uint; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Execution domains that are harmless: the normal one, the question which one it is, and the
/// normal one without shuffled addresses, which debuggers and sanitizers ask for.
const PERSONALITIES: [u64; 3] = [0, 0xFFFF_FFFF, 0x0004_0000];

/// The part of a socket's type that is not a flag.
const SOCKET_TYPE_MASK: u64 = 0xF;

/// From this number on, a call is meant for another instruction set (x32).
const FOREIGN_CALLS: u32 = 0x4000_0000;

/// Filters that are ready to be put on.
#[derive(Debug)]
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Makes the filters; `shows_machine` for a command that looks at the machine itself.
    pub(super) fn for_sockets(sockets: Sockets, shows_machine: bool) -> Result<Self, Fault> {
        let architecture = target_architecture().map_err(filter_fault)?;
        let program =
            |calls: FilterResult<Calls>, error| compile_filter(calls?, error, architecture);
        let mut programs = Vec::new();
        if shows_machine {
            programs.push(program(only_looking(), libc::EPERM).map_err(filter_fault)?);
        } else {
            programs.push(program(refused_calls(sockets), libc::EPERM).map_err(filter_fault)?);
        }
        programs.push(program(absent_calls(), libc::ENOSYS).map_err(filter_fault)?);
        programs.push(without_foreign_calls());
        Ok(Self(programs))
    }

    /// Takes the calls away, for good, from this process and all that it starts. The last filter is
    /// asked first, and the strictest answer counts.
    pub(super) fn apply(&self) -> Result<(), Fault> {
        self.0.iter().try_for_each(|program| apply_filter(program)).map_err(filter_fault)
    }
}

fn filter_fault(error: seccompiler::Error) -> Fault {
    Fault::new("filter system calls", error)
}

type Calls = BTreeMap<i64, Vec<SeccompRule>>;
type FilterResult<T> = Result<T, seccompiler::Error>;

fn target_architecture() -> FilterResult<TargetArch> {
    Ok(TargetArch::try_from(std::env::consts::ARCH)?)
}

fn compile_filter(
    calls: Calls,
    error: libc::c_int,
    architecture: TargetArch,
) -> FilterResult<BpfProgram> {
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, architecture)?;
    Ok(BpfProgram::try_from(filter)?)
}

/// Ends programs that speak to the kernel as x32; other foreign sets are told apart by the number
/// of the architecture, which every compiled filter checks.
fn without_foreign_calls() -> BpfProgram {
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, FOREIGN_CALLS),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn absent_calls() -> FilterResult<Calls> {
    Ok(ABSENT.iter().map(|call| (*call, Vec::new())).collect())
}

/// Calls by which a process acts on others, or on files without opening them: what looks at the machine has no name
/// space in which they would be harmless.
const ACTING: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_mrelease,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    libc::SYS_truncate,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];
/// `setxattrat` and `removexattrat`, the same numbers everywhere; younger than the table of numbers.
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;

/// Calls that change how a process runs, which is harmless for the caller (number zero).
const ACTING_ON_OTHERS: [c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
];

/// Commands to a descriptor that have signals sent to another process: `F_SETOWN`, `F_SETOWN_EX`; and the requests
/// that do the same, `FIOSETOWN`, `SIOCSPGRP`.
const SET_OWNER: [u64; 2] = [8, 15];
const SET_OWNER_REQUESTS: [u64; 2] = [0x8901, 0x8902];

/// The kinds of netlink that list: routes and addresses, sockets (`NETLINK_SOCK_DIAG`).
const LISTING_NETLINK: [u64; 2] = [0, 4];

/// All that is refused anyway, every socket but those that list, and what acts on others.
fn only_looking() -> FilterResult<Calls> {
    let mut calls = refused_calls(Sockets { local: false, internet: false })?;
    calls.extend(ACTING.iter().map(|call| (*call, Vec::new())));
    for call in ACTING_ON_OTHERS {
        calls.insert(call, vec![all_of([is_not(0, 0)])?]);
    }
    calls.insert(libc::SYS_fcntl, any_of(SET_OWNER.map(|command| argument_equals(1, command)))?);
    let requests = REQUESTS
        .into_iter()
        .chain(SET_OWNER_REQUESTS)
        .map(|request| all_of([argument_equals(1, request)]));
    calls.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let other_kind = LISTING_NETLINK.map(|kind| is_not(2, kind));
    calls.insert(
        libc::SYS_socket,
        vec![
            all_of([is_not(0, netlink)])?,
            all_of([argument_equals(0, netlink)].into_iter().chain(other_kind))?,
        ],
    );
    Ok(calls)
}

fn refused_calls(sockets: Sockets) -> FilterResult<Calls> {
    let refused = REFUSED.iter().chain(REFUSED_HERE);
    let mut calls: Calls = gnoma_core::sort::to_map(refused.map(|call| (*call, Vec::new())));
    let namespaces = NEW_NAMESPACES.map(|flag| u64::from(flag.unsigned_abs()));
    calls.insert(libc::SYS_clone, any_of(namespaces.map(|flag| has_bit(0, flag)))?);
    calls.insert(libc::SYS_ioctl, any_of(REQUESTS.map(|request| argument_equals(1, request)))?);
    calls.insert(
        libc::SYS_personality,
        vec![all_of(PERSONALITIES.map(|domain| is_not(0, domain)))?],
    );
    calls.insert(libc::SYS_socket, socket_rules(sockets)?);
    calls.insert(
        libc::SYS_socketpair,
        vec![all_of([is_not(0, libc::AF_UNIX.unsigned_abs().into())])?],
    );
    for (call, argument) in MODE_ARGUMENTS {
        let modes = SET_ID_MODES.map(|mode| has_bit(*argument, mode.into()));
        calls.insert(*call, any_of(modes)?);
    }
    for (call, flags) in CREATING_OPENS {
        calls.insert(*call, creating_rules(*flags)?);
    }
    Ok(calls)
}

/// Calls that set the mode of a file, with the place of the mode.
const MODE_ARGUMENTS: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that may make a file, with the place of the flags; the mode stands behind them.
const CREATING_OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// The mode counts only when a file is made; otherwise the register holds anything.
fn creating_rules(flags: u8) -> FilterResult<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for making in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
        for mode in SET_ID_MODES {
            let making = u64::from(making.unsigned_abs());
            rules.push(all_of([has_bit(flags, making), has_bit(flags + 1, mode.into())])?);
        }
    }
    Ok(rules)
}

/// Refuses families that are not granted, raw sockets of those that are, and every kind of netlink
/// but the one that lists addresses.
fn socket_rules(sockets: Sockets) -> FilterResult<Vec<SeccompRule>> {
    let family = |family: libc::c_int| u64::from(family.unsigned_abs());
    let mut granted = Vec::new();
    if sockets.local {
        granted.push(family(libc::AF_UNIX));
    }
    let mut rules = Vec::new();
    if sockets.internet {
        granted.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(family));
        let raw = family(libc::SOCK_RAW);
        for address in [libc::AF_INET, libc::AF_INET6] {
            rules.push(all_of([
                argument_equals(0, family(address)),
                masked_equals(1, SOCKET_TYPE_MASK, raw),
            ])?);
        }
        let route = family(libc::NETLINK_ROUTE);
        rules.push(all_of([argument_equals(0, family(libc::AF_NETLINK)), is_not(2, route)])?);
    }
    if granted.is_empty() {
        return Ok(Vec::new());
    }
    rules.push(all_of(granted.into_iter().map(|family| is_not(0, family)))?);
    Ok(rules)
}

type Condition = Result<SeccompCondition, seccompiler::BackendError>;

/// The kernel reads these arguments as 32 bits, and so must the filter.
fn compare_argument(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn argument_equals(argument: u8, value: u64) -> Condition {
    compare_argument(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Condition {
    compare_argument(argument, SeccompCmpOp::Ne, value)
}

fn masked_equals(argument: u8, mask: u64, value: u64) -> Condition {
    compare_argument(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn has_bit(argument: u8, bit: u64) -> Condition {
    masked_equals(argument, bit, bit)
}

/// One rule under which every condition must hold.
fn all_of(conditions: impl IntoIterator<Item = Condition>) -> FilterResult<SeccompRule> {
    Ok(SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)?)
}

/// A rule for each condition: one that holds is enough.
fn any_of<const N: usize>(conditions: [Condition; N]) -> FilterResult<Vec<SeccompRule>> {
    conditions.into_iter().map(|condition| all_of([condition])).collect()
}
