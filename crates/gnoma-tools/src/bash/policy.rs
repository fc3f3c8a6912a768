//! What one command may see and change: the policy of its sandbox, from what the session allows and what its
//! verdict grants.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gnoma_core::ToolCx;
use gnoma_sandbox::{Overlay, Policy, ReadScope, SandboxPart, Support};

use super::{
    survey,
    writable::{FoundInWorkspace, make_writable},
};
use crate::{ReadingPlaces, WorkspaceRepository};

/// The mounts that this process sees (proc(5)), and where a line of them names the place.
pub(super) const MOUNTS: &str = "/proc/self/mountinfo";
pub(super) const MOUNT_PLACE: usize = 4;

/// The policy of one command: the workspace, what every command may touch, what its verdict grants.
pub(super) fn narrow_policy(
    policy: &Policy,
    cx: &ToolCx,
    network_on_grant: bool,
    too_wide: &[PathBuf],
    found: FoundInWorkspace,
) -> Policy {
    let mut policy = policy.clone();
    let trees: Vec<PathBuf> = found.work_trees().cloned().collect();
    let changed = trees.iter().filter(|tree| cx.grant.writable.contains(tree));
    let held = cx.roots.iter().chain(changed).flat_map(|root| survey::held_below(root));
    // What git keeps for itself, no checkout writes.
    let is_of_tree = |path: &PathBuf| !path.iter().any(|name| name == ".git");
    let is_held = |path: &PathBuf| !(cx.grant.writes_tree && is_of_tree(path));
    policy.protected.extend(held.chain(found.survey.held.iter().cloned()).filter(is_held));
    policy.bare_repository = found.is_in_bare_repository();
    // A program that git starts meanwhile would write under these names as well.
    policy.git_hardening |= cx.grant.writes_tree;
    // What git keeps of the workspace is the workspace's, wherever it lies.
    for repository in found.repositories {
        policy.writable.extend(repository.git_folders);
        policy.protected.extend(repository.guarded);
    }
    // What a person let the command change or read is neither protected nor hidden from it. A grant
    // for a folder is none for what is protected or hidden in it.
    let is_granted =
        |granted: &[PathBuf], path: &Path| granted.iter().any(|granted| granted.starts_with(path));
    policy.protected.retain(|path| !is_granted(&cx.grant.writable, path));
    if let ReadScope::Except(hidden) = &mut policy.readable {
        hidden.retain(|path| !is_granted(&cx.grant.paths, path));
    }
    make_writable(&mut policy, cx, too_wide, &trees);
    policy.network = has_network(&policy, network_on_grant, cx);
    policy
}

/// Reports whether a command that may change something has the network of the machine.
pub(super) fn has_network(policy: &Policy, network_on_grant: bool, cx: &ToolCx) -> bool {
    policy.network || (network_on_grant && cx.grant.network)
}

/// Walls for what was taken to change nothing. Whatever it does, it changes nothing that lasts, sends
/// nothing and reads no secret: it finds the workspace and what is on the list of places, and writes
/// nowhere but among the temporary files of its session.
pub(super) fn held_to_reading(
    policy: &Policy,
    cx: &ToolCx,
    reading: &ReadingPlaces,
    scratch: Option<&Path>,
    found: FoundInWorkspace,
) -> Policy {
    let is_inside = |path: &PathBuf| cx.roots.iter().any(|root| path.starts_with(root));
    // In the workspace only secrets are granted, and folders where a pattern names some.
    let (inside, outside): (Vec<_>, Vec<_>) =
        cx.grant.paths.iter().partition(|path| is_inside(path));
    let is_secret_granted = |secret: &PathBuf| {
        inside.iter().any(|path| path.starts_with(secret) || secret.starts_with(path))
            || outside.iter().any(|path| path.starts_with(secret))
    };
    let around = found.repositories.iter().flat_map(WorkspaceRepository::places);
    let marks = found.repositories.iter().flat_map(|found| &found.work_tree_marks);
    let around: Vec<PathBuf> = around.chain(marks).cloned().collect();
    let bare_repository = found.is_in_bare_repository();
    let secrets = found.survey.secrets.into_iter();
    let sealed: Vec<_> = secrets.filter(|secret| !is_secret_granted(secret)).collect();
    let judged = cx.roots.iter().chain(&around).chain(outside).chain(&cx.grant.readable_by_all);
    let shown: Vec<_> = reading.shown.iter().chain(judged.clone()).cloned().collect();
    let hidden = select_hidden_paths(policy, reading, &shown, &cx.grant.paths);
    Policy {
        writable: Vec::new(),
        protected: Vec::new(),
        readable: ReadScope::Only { shown, hidden },
        exact: policy.exact.iter().chain(judged).cloned().collect(),
        sealed,
        network: false,
        alone: true,
        local_sockets: false,
        temporary: scratch.map(Path::to_path_buf),
        bare_repository,
        scrub: policy.scrub.iter().chain(&reading.scrubbed).cloned().collect(),
        ..policy.clone()
    }
}

/// Selects the places that a reading command does not find, of those that the policy and the list of places hide.
fn select_hidden_paths(
    policy: &Policy,
    reading: &ReadingPlaces,
    shown: &[PathBuf],
    granted: &[PathBuf],
) -> Vec<PathBuf> {
    // Of a hidden folder of which only parts are on the list, nothing else is there.
    let is_there = |path: &&PathBuf| {
        let is_part = |shown: &PathBuf| shown != *path && shown.starts_with(path);
        shown.iter().any(|shown| path.starts_with(shown)) || !shown.iter().any(is_part)
    };
    let is_granted = |path: &&PathBuf| granted.iter().any(|granted| granted.starts_with(path));
    let hidden = policy.readable.hidden_paths().iter().filter(is_there).chain(&reading.hidden);
    hidden.filter(|path| !is_granted(path)).cloned().collect()
}

/// Reports whether a command can be run without these files of the workspace: each lies in a root that can be
/// looked at through a layer, on the same file system, and by its own name.
pub(super) fn can_leave_out(absent: &[PathBuf], roots: &[PathBuf]) -> bool {
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    let is_mounted_below = |root: &Path| {
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(MOUNT_PLACE));
        places.map(Path::new).any(|place| place.starts_with(root) && place != root)
    };
    absent.iter().all(|path| {
        let root = roots.iter().find(|root| path.starts_with(root));
        let is_itself = fs::canonicalize(path).is_ok_and(|real| real == *path);
        is_itself && root.is_some_and(|root| !is_mounted_below(root))
    })
}

/// Leaves files of the workspace out of what a command finds. What its layers do not leave out stays sealed.
pub(super) fn leave_out(policy: &mut Policy, absent: &[PathBuf], roots: &[PathBuf]) {
    let mut left = Vec::new();
    for root in roots {
        let below = absent.iter().filter(|path| path.starts_with(root)).cloned();
        let below: Vec<_> = below.collect();
        if below.is_empty() {
            continue;
        }
        match policy.overlays.iter().find(|overlay| overlay.at == *root) {
            Some(overlay) if overlay.is_view() => {}
            Some(_) => continue,
            None => {
                let lower = vec![root.clone()];
                policy.overlays.push(Overlay { at: root.clone(), lower, ..Overlay::default() });
            }
        }
        left.extend(below);
    }
    policy.sealed.retain(|path| !left.contains(path));
    policy.absent = left;
}

/// The places that answer a command which looks at the machine, besides its processes and sockets.
const PLACES_OF_MACHINE: [&str; 8] = [
    "/run/utmp",
    "/var/log/btmp",
    "/var/log/lastlog",
    "/var/log/wtmp",
    "/run/systemd/sessions",
    "/run/udev/data",
    "/run/log/journal",
    "/var/log/journal",
];

/// The part of the sandbox without which the machine cannot be shown.
const LANDLOCK: &str = "landlock";

/// Reports whether commands can be shown the machine: Landlock keeps them from what they must not see.
pub(super) fn can_show_machine() -> bool {
    let is_landlock = |part: &SandboxPart| part.name == LANDLOCK;
    Support::detect().parts.iter().any(|part| is_landlock(part) && part.holds)
}

/// The policy of a command that reads, for one that looks at the machine itself.
pub(super) fn looking_at_machine(mut policy: Policy) -> Policy {
    if let ReadScope::Only { shown, .. } = &mut policy.readable {
        shown.extend(PLACES_OF_MACHINE.map(PathBuf::from));
    }
    Policy { shows_machine: true, ..policy }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::tool::Grant;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::{
        super::survey::{Survey, SurveyMemory},
        *,
    };

    fn workspace(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    /// The policy of a command in `folder`, with what its verdict grants.
    fn policy_in(folder: &tempfile::TempDir, grant: Grant) -> Policy {
        let root = folder.path().to_owned();
        let cx = ToolCx {
            cwd: Arc::new(root.clone()),
            roots: [root].into(),
            grant,
            stop: CancellationToken::new(),
            progress: mpsc::channel(1).0,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        };
        let survey = Survey::from_roots(&cx.roots, &mut SurveyMemory::default());
        let found = FoundInWorkspace { survey, ..FoundInWorkspace::default() };
        let mut reading = ReadingPlaces::default();
        reading.shown.push("/usr".into());
        if cx.grant.reads_only {
            return held_to_reading(&Policy::default(), &cx, &reading, None, found);
        }
        narrow_policy(&Policy::default(), &cx, true, &[], found)
    }

    #[test]
    fn read_only_command_policy_has_an_allowlist_and_no_writable_paths() {
        let folder = workspace(&["file"]);
        let granted = PathBuf::from("/elsewhere/notes");
        let grant = Grant {
            reads_only: true,
            network: true,
            paths: vec![granted.clone()],
            ..Grant::default()
        };
        let policy = policy_in(&folder, grant);
        let shown = policy.readable.shown_paths().unwrap();
        assert_eq!(shown, [PathBuf::from("/usr"), folder.path().to_owned(), granted]);
        assert!(policy.writable.is_empty() && !policy.network);
        assert!(policy.alone && !policy.local_sockets);
    }

    #[test]
    fn only_read_only_commands_have_workspace_secrets_sealed() {
        let folder = workspace(&["api/.env", "api/.env.example", "certs/server.key"]);
        let at = |name: &str| folder.path().join(name);
        let hidden = |reads_only: bool, paths: Vec<PathBuf>| {
            let grant = Grant { reads_only, paths, ..Grant::default() };
            let mut hidden = policy_in(&folder, grant).sealed;
            hidden.sort();
            hidden
        };
        assert_eq!(hidden(true, vec![]), [at("api/.env"), at("certs/server.key")]);
        assert!(hidden(false, vec![]).is_empty());
        assert_eq!(hidden(true, vec![at("api/.env")]), [at("certs/server.key")]);
        assert_eq!(hidden(true, vec![at("certs")]), [at("api/.env")]);
        let around = folder.path().parent().unwrap().to_owned();
        assert_eq!(
            hidden(true, vec![around]).len(),
            2,
            "a grant for what lies around opens nothing"
        );
    }

    #[test]
    fn nested_repositories_are_protected_unless_a_verdict_names_them() {
        let folder = workspace(&["vendor/a/.git/hooks/x", "vendor/a/.git/config", ".husky/x"]);
        let at = |name: &str| folder.path().join(name);
        let protected = |writable: Vec<PathBuf>| {
            policy_in(&folder, Grant { writable, ..Grant::default() }).protected
        };
        let all = protected(vec![]);
        for name in
            [".git/hooks", ".mcp.json", ".husky", "vendor/a/.git/hooks", "vendor/a/.git/config"]
        {
            assert!(all.contains(&at(name)), "{name}");
        }
        assert!(!all.contains(&at(".vimrc")), "what is not there needs no place held");
        let granted = protected(vec![at("vendor/a/.git/hooks/x")]);
        assert!(!granted.contains(&at("vendor/a/.git/hooks")));
        assert!(granted.contains(&at("vendor/a/.git/config")));
    }
}
