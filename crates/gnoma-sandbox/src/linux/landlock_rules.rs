//! The walls of the mounts a second time, by Landlock: rules on files that hold for the process itself and do
//! not depend on mounts.
//!
//! Landlock only grants: to leave something out, everything beside it is granted. So for each hidden
//! path, every entry of every folder on the way to it is granted except the way itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::OFlags;

use super::{fault::Fault, mounts::HARMLESS_DEVICES, paths::OutsideNames, real::open_real};
use crate::policy::Overlay;

/// The folders that a command's own root holds in addition to the shown paths.
const OWN: [&str; 2] = ["/proc", "/dev"];

/// Other folders of a command's own root.
const ALWAYS_THERE: [&str; 2] = ["/run", "/var"];

/// The folder of the machine in which a command that looks at it sees names.
const NAMES_OF_MACHINE: &str = "/dev";

/// The newest version whose rights are asked for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V9;
/// Most entries of one folder that are granted one by one. What is beyond cannot be read.
const MAX_ENTRIES: usize = 8192;

/// The paths and settings that the Landlock rules are made from. Paths are real ones: no links.
#[derive(Debug)]
pub(super) struct Grants<'a> {
    pub(super) writable: &'a [PathBuf],
    pub(super) hidden: &'a [PathBuf],
    /// Left out like what is hidden.
    pub(super) sealed: Vec<&'a Path>,
    /// Names outside of what is shown: whoever serves them decides what can be opened, and is told of it.
    pub(super) outside: &'a OutsideNames,
    /// The machine's own `/proc` and the names in its `/dev` can be read.
    pub(super) shows_machine: bool,
    pub(super) devices: &'a [PathBuf],
    /// `/dev` is the command's own.
    pub(super) own_devices: bool,
    /// TCP by address, where no network namespace decides.
    pub(super) internet: bool,
    /// All that can be read, where that is a list.
    pub(super) shown: Option<&'a [PathBuf]>,
    /// Folders for temporary files.
    pub(super) temporary: Vec<&'a Path>,
}

/// Rules that are ready to be put on.
#[derive(Debug)]
pub(super) struct Rules(RulesetCreated);

impl Rules {
    /// Makes the rules from what is there now.
    pub(super) fn for_grants(grants: &Grants<'_>) -> Result<Self, Fault> {
        build_ruleset(grants).map(Self).map_err(landlock_fault)
    }

    /// The same with layers that came later.
    pub(super) fn and_layers(self, overlays: &[Overlay]) -> Result<Self, Fault> {
        let mut rules = self.0;
        for overlay in overlays {
            let rights =
                if overlay.is_view() { AccessFs::from_read(NEWEST) } else { writable_rights() };
            rules = add_path_rule(rules, &overlay.at, rights).map_err(landlock_fault)?;
        }
        Ok(Self(rules))
    }

    /// Puts this process, and all that it starts, under the rules, for good.
    pub(super) fn apply(self) -> Result<(), Fault> {
        self.0.restrict_self().map(drop).map_err(landlock_fault)
    }
}

fn landlock_fault(error: RulesetError) -> Fault {
    Fault::new("set Landlock rules", error)
}

fn build_ruleset(grants: &Grants<'_>) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !grants.internet {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    for (path, rights) in read_rules(grants).into_iter().chain(write_rules(grants)) {
        rules = add_path_rule(rules, &path, rights)?;
    }
    Ok(rules)
}

/// Adds a rule for a path. A path that does not exist, or cannot even be opened, needs no rule. A path that a link
/// has replaced gets none.
fn add_path_rule(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match open_real(path, OFlags::empty()) {
        Ok(opened) => rules.add_rule(PathBeneath::new(opened, rights)),
        Err(_) => Ok(rules),
    }
}

type GrantedPaths = Vec<(PathBuf, BitFlags<AccessFs>)>;

fn read_rules(grants: &Grants<'_>) -> GrantedPaths {
    let read = AccessFs::from_read(NEWEST);
    let mut left_out = gnoma_core::sort::to_set(grants.hidden.iter().map(PathBuf::as_path));
    left_out.extend(&grants.sealed);
    if !grants.own_devices {
        left_out.insert(Path::new("/dev"));
    }
    let Some(shown) = grants.shown else {
        return reading_below("/".as_ref(), &left_out, read);
    };
    let (mut rules, mut own) = (Vec::new(), &[][..]);
    if grants.own_devices {
        // The root is the command's own: names of folders on the way to what is shown.
        rules.extend(rules_for_names(shown, grants.outside));
        rules.extend(grants.outside.closed.iter().map(|(_, path)| (path.clone(), read)));
        own = &OWN[..];
    }
    if grants.shows_machine {
        rules.push((Path::new("/proc").into(), read));
        rules.push((NAMES_OF_MACHINE.into(), AccessFs::ReadDir.into()));
    }
    for root in own.iter().map(Path::new).chain(shown.iter().map(PathBuf::as_path)) {
        rules.extend(reading_below(root, &left_out, read));
    }
    rules
}

/// Rules for lists of the folders on the way to what is shown. Of a folder with names outside of that there is none:
/// with these names a list tells too much, without them it is wrong. Whoever serves such a folder refuses and reports
/// the list, so the rules leave it to that.
fn rules_for_names(shown: &[PathBuf], outside: &OutsideNames) -> GrantedPaths {
    let list: BitFlags<AccessFs> = AccessFs::ReadDir.into();
    if outside.is_empty() {
        return vec![("/".into(), list)];
    }
    let unserved = outside.closed.iter().map(|(_, path)| path.as_path());
    let with_names = on_the_way(unserved.filter(|path| !outside.is_in_folder(path)));
    let folders = on_the_way(shown.iter().map(PathBuf::as_path)).into_iter();
    let folders = folders.chain(ALWAYS_THERE.map(Path::new)).filter(|it| !with_names.contains(it));
    let served = outside.folders.iter().map(|(_, path)| path.as_path());
    folders.chain(served).map(|folder| (folder.to_path_buf(), list)).collect()
}

/// Everything below `root` but what is left out.
fn reading_below(
    root: &Path,
    left_out: &BTreeSet<&Path>,
    read: BitFlags<AccessFs>,
) -> GrantedPaths {
    if left_out.contains(root) {
        return Vec::new();
    }
    let below: BTreeSet<_> =
        left_out.iter().copied().filter(|path| path.starts_with(root)).collect();
    if below.is_empty() {
        return vec![(root.to_owned(), read)];
    }
    let mut rules = Vec::new();
    for (folder, apart) in
        group_by_folder(&below).into_iter().filter(|(path, _)| path.starts_with(root))
    {
        // Names can be seen, contents cannot.
        rules.push((folder.to_path_buf(), AccessFs::ReadDir.into()));
        let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
        let granted = entries
            .filter(|entry| !apart.contains(&*entry.file_name()))
            // Told by the folder itself: a look at each of hundreds of entries takes longer than the rest.
            .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        rules.extend(granted.map(|entry| (entry.path(), read)));
    }
    rules
}

/// The folders that lead to `left_out`, each with the names in it that are not granted as a whole.
fn group_by_folder<'a>(left_out: &BTreeSet<&'a Path>) -> BTreeMap<&'a Path, BTreeSet<&'a OsStr>> {
    let mut apart: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for path in left_out.iter().flat_map(|path| path.ancestors()) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            apart.entry(folder).or_default().insert(name);
        }
    }
    apart
}

/// The folders that lead to paths: their entries are granted one by one.
pub(super) fn on_the_way<'a>(paths: impl Iterator<Item = &'a Path>) -> BTreeSet<&'a Path> {
    paths.flat_map(|path| path.ancestors().skip(1)).collect()
}

/// All that is granted in a folder that can be written.
fn writable_rights() -> BitFlags<AccessFs> {
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_all(NEWEST) & !never
}

fn write_rules(grants: &Grants<'_>) -> GrantedPaths {
    let everything = writable_rights();
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let terminal = device | AccessFs::IoctlDev | AccessFs::ReadDir;
    let mut rules: GrantedPaths =
        grants.writable.iter().map(|root| (root.clone(), everything)).collect();
    rules.extend(grants.temporary.iter().map(|path| (path.to_path_buf(), everything)));
    let harmless =
        HARMLESS_DEVICES.iter().filter(|path| grants.own_devices || **path != "/dev/tty");
    rules.extend(harmless.map(|path| (path.into(), device)));
    rules.extend(grants.devices.iter().map(|path| (path.clone(), terminal)));
    if grants.own_devices {
        rules.push(("/dev/shm".into(), everything));
        rules.extend(["/dev/tty", "/dev/pts"].map(|path| (path.into(), terminal)));
    }
    rules
}
