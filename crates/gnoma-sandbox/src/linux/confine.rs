//! What a process gives up for itself before it becomes the command: rights, resources, terminal.

use std::fs;

use rustix::{
    process::{Resource, Rlimit, geteuid, getrlimit, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use super::fault::{Fault, FaultStep};

/// The capabilities that root keeps: those to work on files of any owner, as it would outside. They end at the
/// sandbox, because they count only inside the session's user namespace.
const KEPT_BY_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// The privileges that a command keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// Those of root over files, where it is root.
    OfOwner,
    /// The same but for the right to open what the file's own bits forbid.
    WithoutOverride,
    /// The command keeps no privileges.
    None,
}

/// The number of capabilities that a kernel can have.
const KNOWN_RIGHTS: u32 = 64;
/// Most processes that are counted when no namespace counts them.
const MAX_COUNTED: usize = 65_536;

/// Leaves no dump of memory behind, in a file or for anybody who watches.
pub(super) fn no_core_dumps() -> Result<(), Fault> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .with_step(|| "forbid core dumps".to_owned())
}

/// Bounds processes and threads. In the session's user namespace only its own count; without one
/// all of the user's do, so what runs already is added.
pub(super) fn bound_processes(limit: u32, in_namespace: bool) -> Result<(), Fault> {
    let room = u64::from(limit);
    let wanted = if in_namespace { room } else { room.saturating_add(running_tasks()) };
    let maximum = getrlimit(Resource::Nproc).maximum;
    let bound = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    setrlimit(Resource::Nproc, Rlimit { current: bound, maximum: bound })
        .with_step(|| "limit the number of processes".to_owned())
}

/// Threads of this user, over all processes that can be seen.
fn running_tasks() -> u64 {
    let user = format!("Uid:\t{}\t", geteuid().as_raw());
    let Ok(processes) = fs::read_dir("/proc") else {
        return 0;
    };
    let threads = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Threads:\t"))?;
        line.parse::<u64>().ok().filter(|_| status.contains(&user))
    };
    processes
        .take(MAX_COUNTED)
        .filter_map(|process| fs::read_to_string(process.ok()?.path().join("status")).ok())
        .filter_map(threads)
        .sum()
}

/// Gives up every right, in a process that becomes no other program.
pub(super) fn drop_all_rights() -> Result<(), Fault> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).with_step(|| "drop capabilities".to_owned())
}

/// Gives up every right that a command has no use for, for good.
pub(super) fn drop_rights(rights: Rights) -> Result<(), Fault> {
    let kept = match rights {
        Rights::OfOwner if geteuid().is_root() => KEPT_BY_ROOT,
        Rights::WithoutOverride if geteuid().is_root() => {
            KEPT_BY_ROOT.difference(CapabilitySet::DAC_OVERRIDE)
        }
        Rights::OfOwner | Rights::WithoutOverride | Rights::None => CapabilitySet::empty(),
    };
    // A kernel without ambient capabilities has none to clear.
    clear_ambient_capability_set().ok();
    for right in (0..KNOWN_RIGHTS).map(|bit| 1_u64 << bit) {
        let right = CapabilitySet::from_bits_retain(right);
        if !kept.contains(right) {
            // Refused for rights the kernel does not know, or where they cannot be given back
            // anyway: the sets below are what counts.
            remove_capability_from_bounding_set(right).ok();
        }
    }
    let held = rustix::thread::capabilities(None).with_step(|| "read capabilities".to_owned())?;
    let kept = kept.intersection(held.permitted);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).with_step(|| "drop capabilities".to_owned())?;
    set_no_new_privs(true).with_step(|| "forbid new privileges".to_owned())
}
