//! Which names and folders matter: the project's table of places made ready for comparing, and what
//! only judging needs.

use std::sync::LazyLock;

use gnoma_core::places::{GUARDED, Group, HOME_SETTINGS, SECRETS};

use super::name::Name;
use crate::permission::pattern_overlap::Dialect;

/// Names that matter in any position.
#[derive(Debug)]
pub(super) struct SensitivePlace {
    pub(super) names: Vec<Name>,
    /// The point at which the place begins.
    pub(super) start: PlaceStart,
    /// All below it matters too.
    pub(super) below: bool,
    /// The description of the place, as the end of a sentence.
    pub(super) kind: &'static str,
}

/// The point at which the names of a place begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceStart {
    Anywhere,
    Root,
    Home,
}

pub(super) fn secret_places() -> &'static [SensitivePlace] {
    static PLACES: LazyLock<Vec<SensitivePlace>> = LazyLock::new(|| parse_places(SECRETS));
    &PLACES
}

/// Returns the places that matter only when they are changed.
pub(super) fn guarded_places() -> &'static [SensitivePlace] {
    static PLACES: LazyLock<Vec<SensitivePlace>> = LazyLock::new(|| parse_places(GUARDED));
    &PLACES
}

/// Everything with a dot directly in the home.
pub(super) fn home_settings() -> &'static SensitivePlace {
    static PLACE: LazyLock<SensitivePlace> = LazyLock::new(|| parse_place(HOME_SETTINGS, "~/.*/"));
    &PLACE
}

fn parse_places<W>(groups: &[Group<W>]) -> Vec<SensitivePlace> {
    groups
        .iter()
        .flat_map(|group| group.names().map(|text| parse_place(group.kind, text)))
        .collect()
}

fn parse_place(kind: &'static str, text: &str) -> SensitivePlace {
    let (start, rest) = match (text.strip_prefix('/'), text.strip_prefix("~/")) {
        (Some(rest), _) => (PlaceStart::Root, rest),
        (_, Some(rest)) => (PlaceStart::Home, rest),
        (None, None) => (PlaceStart::Anywhere, text),
    };
    let names = rest.split('/').filter(|name| !name.is_empty());
    SensitivePlace {
        names: names.map(|name| Name::new(name, Dialect::Rule)).collect(),
        start,
        below: text.ends_with('/'),
        kind,
    }
}

/// Folders of the system. A workspace within one is the user's own.
pub(super) const SYSTEM: &[&str] = &[
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/boot",
    "/efi",
    "/dev",
    "/proc",
    "/sys",
    "/snap",
    "/nix",
    "/System",
    "/Library",
    "/Applications",
    "/private/etc",
    "/Windows",
    "/var/spool",
    "/var/lib",
    "/var/run",
    "/run",
    "/opt",
];

/// Folders with what comes with programs, such as certificates of authorities and examples: it is
/// for everybody, unless people work or live there.
pub(super) const PUBLIC: &[&str] = &[
    "/usr/include",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
];

/// Folders that programs use for what need not last.
pub(super) const TEMPORARY: &[&str] =
    &["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp", "/private/var/folders"];

/// The folders where people keep their own files.
pub(super) const PEOPLE: &[&str] =
    &["/home", "/root", "/Users", "/mnt", "/media", "/Volumes", "/run/media", "/run/user", "/net"];

/// Memory, disks and terminals as they are.
pub(super) const RAW: &[&str] = &["/dev"];

/// Files that the kernel makes up: a sandbox has its own.
pub(super) const MADE_BY_KERNEL: &[&str] = &["/dev", "/proc", "/sys"];

/// Devices that hold nothing, and the command's own inlets and outlets.
pub(super) const SINKS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
];
