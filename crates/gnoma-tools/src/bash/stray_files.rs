//! Detects new files by which a command would influence later runs of programs.
//!
//! To hold such a name, an entry would have to stand in the workspace, and the archives, copies and tests of the command
//! would find it. So the command may make it, and a person decides about it when the command has ended.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use gnoma_core::{CallId, ToolCx, tool::Question};
use gnoma_sandbox::Policy;

use super::{
    guarded_names::really_exists,
    reading_commands::{describe_paths, one_line},
};

/// Sends git to another repository's configuration, which can name programs to run. Nobody needs it.
const STRAYS: [&str; 1] = [".git/commondir"];
/// The end of the name under which an entry is kept that nobody approved.
const HELD_SUFFIX: &str = "held";
/// The rights that a folder's owner needs to rename an entry.
const OWNERS_RIGHTS: u32 = 0o300;
/// Most numbered names that are tried before one with the time.
const MAX_HELD: usize = 100;

/// Names that were absent before a command.
#[derive(Debug, Default)]
pub(super) struct StrayFiles {
    removed: Vec<PathBuf>,
    guarded: Vec<PathBuf>,
}

impl StrayFiles {
    /// Looks before a command runs in `roots`, and takes out of its policy the names in them that are absent.
    pub(super) fn take_absent(policy: &mut Policy, roots: &[PathBuf]) -> Self {
        let removed = roots.iter().flat_map(|root| STRAYS.map(|name| root.join(name)));
        let removed = removed.filter(|path| path.symlink_metadata().is_err()).collect();
        let is_of_workspace = |path: &Path| {
            roots.iter().any(|root| path.starts_with(root)) || path.iter().any(|it| it == ".git")
        };
        let guarded = policy
            .protected
            .extract_if(.., |path| is_of_workspace(path) && !really_exists(path))
            .collect();
        Self { removed, guarded }
    }

    /// Removes what sends git elsewhere, and has a person decide about other names that have appeared. Those that
    /// nobody approves get another name. Returns the note for the model; empty where nothing has appeared.
    pub(super) async fn resolve_new_names(
        self,
        command: &str,
        call: &CallId,
        cx: &ToolCx,
    ) -> String {
        let removed: Vec<PathBuf> = self
            .removed
            .into_iter()
            .filter(|path| !is_led_away(path, &cx.roots) && fs::remove_file(path).is_ok())
            .collect();
        let mut notes = Vec::new();
        if !removed.is_empty() {
            let names = describe_paths(&removed, &cx.roots);
            notes.push(format!("[removed {names}: it would send git to settings elsewhere]"));
        }
        let made: Vec<PathBuf> =
            self.guarded.into_iter().filter(|path| really_exists(path)).collect();
        if made.is_empty() || may_stay(&made, command, call, cx).await {
            return notes.join("\n");
        }
        let (moved, left): (Vec<PathBuf>, Vec<PathBuf>) = made
            .into_iter()
            .partition(|path| !is_led_away(path, &cx.roots) && move_aside(path).is_ok());
        if !moved.is_empty() {
            notes.push(format!(
                "[renamed to end with `.{HELD_SUFFIX}`, because it decides what programs run later and nobody approved it: {}]",
                describe_paths(&moved, &cx.roots)
            ));
        }
        if !left.is_empty() {
            notes.push(format!(
                "[still there, although it decides what programs run later and nobody approved it: {}]",
                describe_paths(&left, &cx.roots)
            ));
        }
        notes.join("\n")
    }
}

/// Asks a person whether new entries may stay. A stopped turn asks nobody.
async fn may_stay(made: &[PathBuf], command: &str, call: &CallId, cx: &ToolCx) -> bool {
    if cx.stop.is_cancelled() {
        return false;
    }
    let text = format!(
        "`{}` has made {}, which decides what programs run later: keep it?",
        one_line(command),
        describe_paths(made, &cx.roots),
    );
    let question = Question { dangers: vec![text.clone()], text, ..Question::default() };
    cx.ask_user(call, question).await.is_approval()
}

/// Reports whether the folder of an entry lies elsewhere than its path says: by a link that the command may have made.
fn is_led_away(path: &Path, roots: &[PathBuf]) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let folder = path.parent().and_then(real);
    let root = roots.iter().find(|root| path.starts_with(root));
    match (folder, root.and_then(|root| real(root))) {
        (Some(folder), Some(root)) => !folder.starts_with(root),
        (Some(folder), None) => path.parent() != Some(folder.as_path()),
        (None, _) => true,
    }
}

/// Gives an entry a name beside its own that no program looks for. A command may have taken away the right to do so, or
/// all the names.
fn move_aside(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let other = (1..=MAX_HELD)
        .map(|number| match number {
            1 => path.with_file_name(format!("{name}.{HELD_SUFFIX}")),
            _ => path.with_file_name(format!("{name}.{number}.{HELD_SUFFIX}")),
        })
        .find(|other| other.symlink_metadata().is_err());
    let nanos = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let other =
        other.unwrap_or_else(|| path.with_file_name(format!("{name}.{}.{HELD_SUFFIX}", nanos())));
    fs::rename(path, &other).or_else(|error| {
        let folder = path.parent().ok_or(error)?;
        let facts = fs::symlink_metadata(folder)?;
        if !facts.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let before = facts.permissions();
        fs::set_permissions(folder, fs::Permissions::from_mode(before.mode() | OWNERS_RIGHTS))?;
        let renamed = fs::rename(path, &other);
        fs::set_permissions(folder, before)?;
        renamed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_protected_files_of_the_workspace_are_checked_after_the_command() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |folder: &tempfile::TempDir, name: &str| folder.path().join(name);
        fs::create_dir(of(&root, ".vscode")).unwrap();
        let protected = vec![
            of(&root, ".vscode"),
            of(&root, ".mcp.json"),
            of(&elsewhere, ".bashrc"),
            of(&elsewhere, "repository/.git/modules"),
        ];
        let mut policy = Policy { protected, ..Policy::default() };
        let strays = StrayFiles::take_absent(&mut policy, &[root.path().to_owned()]);
        assert_eq!(policy.protected, [of(&root, ".vscode"), of(&elsewhere, ".bashrc")]);
        assert_eq!(
            strays.guarded,
            [of(&root, ".mcp.json"), of(&elsewhere, "repository/.git/modules")]
        );
    }

    #[test]
    fn stray_files_behind_a_symlink_to_outside_are_not_moved() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let roots = [root.path().to_owned()];
        fs::create_dir(root.path().join("own")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.path().join(".git")).unwrap();
        assert!(is_led_away(&root.path().join(".git/hooks"), &roots));
        assert!(!is_led_away(&root.path().join("own/.vscode"), &roots));
        assert!(!is_led_away(&root.path().join(".vscode"), &roots));
    }

    #[test]
    fn stray_files_are_renamed_to_a_free_name() {
        let root = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            fs::create_dir(root.path().join(".vscode")).unwrap();
            move_aside(&root.path().join(".vscode")).unwrap();
        }
        for name in [".vscode.held", ".vscode.2.held", ".vscode.3.held"] {
            assert!(root.path().join(name).is_dir(), "{name}");
        }
    }

    #[test]
    fn stray_files_are_renamed_in_a_read_only_folder() {
        let root = tempfile::tempdir().unwrap();
        let of = |name: &str| root.path().join(name);
        fs::write(of(".mcp.json.held"), "").unwrap();
        for number in 2..=MAX_HELD {
            fs::write(of(&format!(".mcp.json.{number}.held")), "").unwrap();
        }
        fs::write(of(".mcp.json"), "{}").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o555)).unwrap();
        move_aside(&of(".mcp.json")).unwrap();
        assert!(!of(".mcp.json").exists());
        assert_eq!(root.path().metadata().unwrap().permissions().mode() & 0o777, 0o555);
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}
