//! Sandbox support of this machine, in words for a person (`gnoma doctor`).

use std::{fmt, sync::OnceLock};

/// The parts that a sandbox can be made of on this machine. The first detection takes a few milliseconds at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// Every part, strongest first.
    pub parts: Vec<SandboxPart>,
    /// The strength that follows from the parts.
    pub strength: Strength,
}

/// One part of the walls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPart {
    /// The name of the part.
    pub name: &'static str,
    /// True if the part works on this machine.
    pub holds: bool,
    /// A description of what the part does, or of what is missing, what is lost by that, and what to do about it.
    pub note: String,
}

/// The strength of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Nothing: commands are refused while the sandbox is on.
    None,
    /// Files and network are walled; some of what is told in the parts is lost.
    Partial,
    /// Every part of the sandbox works.
    Full,
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no sandbox is available on this machine",
            Self::Partial => "the sandbox works partly",
            Self::Full => "the sandbox works",
        })
    }
}

impl Support {
    /// Finds out. Tries namespaces in a process that ends at once; changes nothing. A sandbox that works is remembered; if
    /// the system refuses one of its parts later, the launcher says so.
    #[must_use]
    pub fn detect() -> Self {
        static WORKING: OnceLock<Support> = OnceLock::new();
        if let Some(working) = WORKING.get() {
            return working.clone();
        }
        let found = Self::from_probe(probe_platform());
        if found.strength == Strength::Full {
            WORKING.set(found.clone()).ok();
        }
        found
    }

    /// True if commands get namespaces of their own.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_namespaces(&self) -> bool {
        self.parts.iter().any(|part| part.name == NAMESPACES && part.holds)
    }
}

#[cfg(target_os = "linux")]
const NAMESPACES: &str = "namespaces";

/// The sandbox features that were detected in the kernel.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSupport {
    pub(crate) namespaces: Result<(), NoNamespaces>,
    pub(crate) landlock: Option<u32>,
    pub(crate) filter: bool,
}

/// The reason why there are no namespaces.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoNamespaces {
    Refused,
    Useless,
    Unknown,
}

#[cfg(target_os = "linux")]
fn probe_platform() -> KernelSupport {
    use crate::linux::trial::{self, Refusal};
    KernelSupport {
        namespaces: trial::try_namespaces().map_err(|refusal| match refusal {
            Refusal::Namespaces => NoNamespaces::Refused,
            Refusal::Mounts => NoNamespaces::Useless,
            Refusal::Trial => NoNamespaces::Unknown,
        }),
        landlock: trial::landlock_version(),
        filter: trial::can_filter_calls(),
    }
}

#[cfg(target_os = "linux")]
impl Support {
    fn from_probe(found: KernelSupport) -> Self {
        let files = found.namespaces.is_ok() || found.landlock.is_some();
        let strength = match (found.namespaces, found.landlock) {
            _ if !found.filter || !files => Strength::None,
            (Ok(()), Some(SIGNALS..)) => Strength::Full,
            _ => Strength::Partial,
        };
        let parts = vec![
            namespaces_part(found.namespaces),
            landlock_part(found.landlock),
            filter_part(found.filter),
        ];
        Self { parts, strength }
    }
}

#[cfg(target_os = "linux")]
fn namespaces_part(namespaces: Result<(), NoNamespaces>) -> SandboxPart {
    const LOST: &str = "Without them, protected files in the workspace are restored after a command instead of being read-only, a command can change modes and times of files outside and see other processes, it cannot use sockets (so no local servers), and what it starts in the background may run until gnoma exits.";
    let note = match namespaces {
        Ok(()) => "each command has its own files, processes and network".to_owned(),
        Err(NoNamespaces::Refused) => format!(
            "the system refuses namespaces (a container, or `user.max_user_namespaces` or another of these limits is 0). \
             {LOST}"
        ),
        Err(NoNamespaces::Useless) => format!(
            "user namespaces have no rights, as under AppArmor on Ubuntu; to allow them, add a profile for gnoma with `userns,` or set `kernel.apparmor_restrict_unprivileged_userns=0`. \
             {LOST}"
        ),
        Err(NoNamespaces::Unknown) => format!("namespaces could not be tested. {LOST}"),
    };
    SandboxPart { name: NAMESPACES, holds: namespaces.is_ok(), note }
}

/// The version from which Landlock keeps signals and abstract sockets inside.
#[cfg(target_os = "linux")]
const SIGNALS: u32 = 6;
/// The version from which it decides about connections.
#[cfg(target_os = "linux")]
const CONNECTIONS: u32 = 4;
/// The version from which it decides about shortening files.
#[cfg(target_os = "linux")]
const TRUNCATION: u32 = 3;

#[cfg(target_os = "linux")]
fn landlock_part(version: Option<u32>) -> SandboxPart {
    let note = match version {
        None => {
            "the kernel has no Landlock, or it is turned off (`lsm=` on the kernel's command line). Only namespaces isolate files and network."
                .to_owned()
        }
        Some(version) => {
            let missing = match version {
                SIGNALS.. => "",
                CONNECTIONS.. => ": only namespaces isolate signals and abstract sockets",
                TRUNCATION.. => ": only other layers isolate connections, signals and abstract sockets",
                _ => ": without namespaces, files outside can be emptied",
            };
            format!("version {version}{missing}")
        }
    };
    SandboxPart { name: "landlock", holds: version.is_some(), note }
}

#[cfg(target_os = "linux")]
fn filter_part(holds: bool) -> SandboxPart {
    let note = if holds {
        "dangerous system calls and other kinds of sockets are blocked"
    } else {
        "the kernel cannot filter system calls (`CONFIG_SECCOMP_FILTER`), without which the rest could be bypassed"
    };
    SandboxPart { name: "seccomp", holds, note: note.to_owned() }
}

#[cfg(target_os = "macos")]
fn probe_platform() -> bool {
    std::path::Path::new(crate::seatbelt::PROGRAM).exists()
}

#[cfg(target_os = "macos")]
impl Support {
    fn from_probe(holds: bool) -> Self {
        let note = if holds {
            "files and network of a command are restricted".to_owned()
        } else {
            format!("`{}` is not there", crate::seatbelt::PROGRAM)
        };
        let strength = if holds { Strength::Partial } else { Strength::None };
        Self { parts: vec![SandboxPart { name: "seatbelt", holds, note }], strength }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn probe_platform() {}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
impl Support {
    fn from_probe((): ()) -> Self {
        Self { parts: Vec::new(), strength: Strength::None }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn rate_strength(namespaces: bool, landlock: Option<u32>, filter: bool) -> Strength {
        let namespaces = if namespaces { Ok(()) } else { Err(NoNamespaces::Refused) };
        Support::from_probe(KernelSupport { namespaces, landlock, filter }).strength
    }

    #[test]
    fn sandbox_strength_depends_on_namespaces_landlock_and_seccomp() {
        assert_eq!(rate_strength(true, Some(7), true), Strength::Full);
        assert_eq!(rate_strength(true, Some(4), true), Strength::Partial);
        assert_eq!(rate_strength(true, None, true), Strength::Partial);
        assert_eq!(rate_strength(false, Some(7), true), Strength::Partial);
        assert_eq!(rate_strength(false, None, true), Strength::None);
        assert_eq!(rate_strength(true, Some(7), false), Strength::None);
    }

    #[test]
    fn sandbox_support_explains_each_missing_kernel_feature() {
        let found = KernelSupport {
            namespaces: Err(NoNamespaces::Useless),
            landlock: Some(3),
            filter: true,
        };
        let support = Support::from_probe(found);
        let missing: Vec<_> = support.parts.iter().filter(|part| !part.holds).collect();
        assert_eq!(missing.len(), 1);
        assert!(missing[0].note.contains("restored after"));
        assert!(support.parts[1].note.contains("version 3"));
    }
}
