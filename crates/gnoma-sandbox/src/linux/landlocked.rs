//! The same walls a second time, by Landlock: rules on files that hold for the process itself and do
//! not depend on mounts.
//!
//! Landlock only grants: to leave something out, everything beside it is granted. So for each hidden
//! path, every entry of every folder on the way to it is granted except the way itself.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::{fault::Fault, mounts::HARMLESS_DEVICES};

/// The newest version whose rights are asked for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V9;
/// Most entries of one folder that are granted one by one. What is beyond cannot be read.
const MAX_ENTRIES: usize = 8192;

/// What the rules are made from. Paths are real ones: no links.
#[derive(Debug)]
pub(super) struct Grants<'a> {
    pub(super) writable: &'a [PathBuf],
    pub(super) hidden: &'a [PathBuf],
    pub(super) devices: &'a [PathBuf],
    /// `/dev` is the command's own.
    pub(super) own_devices: bool,
    /// TCP by address, where no network namespace decides.
    pub(super) internet: bool,
}

/// Puts this process, and all that it starts, under the rules, for good.
pub(super) fn apply(grants: &Grants<'_>) -> Result<(), Fault> {
    restrict(grants).map_err(|error| Fault::new("set Landlock rules", error))
}

fn restrict(grants: &Grants<'_>) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !grants.internet {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    for (path, rights) in reading(grants).into_iter().chain(writing(grants)) {
        rules = add(rules, &path, rights)?;
    }
    rules.restrict_self()?;
    Ok(())
}

/// What does not exist, or cannot even be opened, needs no rule.
fn add(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(opened) => rules.add_rule(PathBeneath::new(opened, rights)),
        Err(_) => Ok(rules),
    }
}

type Rules = Vec<(PathBuf, BitFlags<AccessFs>)>;

fn reading(grants: &Grants<'_>) -> Rules {
    let read = AccessFs::from_read(NEWEST);
    let mut left_out: BTreeSet<&Path> = grants.hidden.iter().map(PathBuf::as_path).collect();
    if !grants.own_devices {
        left_out.insert(Path::new("/dev"));
    }
    if left_out.is_empty() {
        return vec![("/".into(), read)];
    }
    let on_the_way: BTreeSet<&Path> =
        left_out.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let mut rules = Vec::new();
    for folder in &on_the_way {
        // Names can be seen, contents cannot.
        rules.push((folder.to_path_buf(), AccessFs::ReadDir.into()));
        let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES);
        let granted = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| !left_out.contains(&**path) && !on_the_way.contains(&**path))
            .filter(|path| !path.is_symlink());
        rules.extend(granted.map(|path| (path, read)));
    }
    rules
}

fn writing(grants: &Grants<'_>) -> Rules {
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let everything = AccessFs::from_all(NEWEST) & !never;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let terminal = device | AccessFs::IoctlDev | AccessFs::ReadDir;
    let mut rules: Rules = grants.writable.iter().map(|root| (root.clone(), everything)).collect();
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
