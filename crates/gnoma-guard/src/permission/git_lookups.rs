//! What a git command that only looks does, given the content of the repository.

use std::path::{Path, PathBuf};

use gnoma_shell::{Effect, Invocation};

use super::{JudgementContext, effects, one_line};
use crate::{
    git::{self, GitInspection, OutsidePlaces},
    places::{PlaceConcern, Severity, without_dots},
};

/// Longest name that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Effects of a command of git, which the words of the command do not tell.
pub(super) fn git_effects(
    command: &Invocation,
    world: &JudgementContext<'_>,
) -> Vec<(Effect, PlaceConcern)> {
    let Some(look) = git::parse_look(&command.words) else { return Vec::new() };
    let Some(folder) = repository_folder(command, &look) else {
        let what = "looks at a repository that is only known when it runs".to_owned();
        let effect = Effect::Unknown(what.clone());
        return vec![(effect, PlaceConcern { gravity: Severity::Plain, what })];
    };
    let folder = (world.resolve)(&folder);
    let runs = world.repositories.find_program_setting(&folder).map(|setting| {
        let setting = one_line(&setting, 2 * MAX_SHOWN_CHARS);
        let what = format!("runs what the repository's settings name: {setting}");
        (Effect::Runs(setting), PlaceConcern { gravity: Severity::Plain, what })
    });
    // What a setting runs takes nothing away from what is shown.
    let shown =
        look.shows.then(|| find_shown_secret(&look, &folder, world)).flatten().map(|secret| {
            let name = secret.file_name().unwrap_or_default().to_string_lossy();
            let what =
                format!("may show `{}` as it was committed", one_line(&name, MAX_SHOWN_CHARS));
            (Effect::Secret(what.clone()), PlaceConcern { gravity: Severity::Secret, what })
        });
    shown.into_iter().chain(runs).collect()
}

/// Places outside of the workspace that git would use, and that nothing says to belong to it.
pub(super) fn at_foreign_repository(
    command: &Invocation,
    world: &JudgementContext<'_>,
) -> Vec<(PathBuf, PlaceConcern)> {
    let concern = |path: PathBuf| {
        let shown = one_line(&path.display().to_string(), 2 * MAX_SHOWN_CHARS);
        let what = format!("uses a repository at `{shown}`, outside the workspace");
        (path, PlaceConcern { gravity: Severity::Outside, what })
    };
    outside_places(command, world).foreign.into_iter().map(concern).collect()
}

/// The work tree around the workspace that a command of git changes.
pub(super) fn changed_work_tree(
    command: &Invocation,
    world: &JudgementContext<'_>,
) -> Option<PathBuf> {
    changes_repository(command).then(|| outside_places(command, world).work_tree).flatten()
}

/// Reports whether a command is one of git that may write the repository's settings besides what it does.
pub(super) fn writes_settings(command: &Invocation) -> bool {
    effects::program_of(command) == "git" && git::writes_settings(&command.words)
}

/// The files with a repository's settings that a command of git may write beside what it does. Where nobody was asked,
/// none if git runs other programs meanwhile, which would write the settings, too, or if the repository is not known to
/// be the workspace's.
pub(super) fn changed_settings(
    command: &Invocation,
    is_asked: bool,
    world: &JudgementContext<'_>,
) -> Vec<PathBuf> {
    if !writes_settings(command) || !changes_repository(command) {
        return Vec::new();
    }
    let folder = git::parse_look(&command.words).and_then(|look| repository_folder(command, &look));
    let Some(folder) = folder.map(|folder| (world.resolve)(&folder)) else { return Vec::new() };
    let repositories = world.repositories;
    let needs_question = || {
        repositories.has_hooks(&folder)
            || repositories.find_program_setting(&folder).is_some()
            || !repositories.outside_places(&folder).foreign.is_empty()
    };
    if !is_asked && needs_question() {
        return Vec::new();
    }
    let files = repositories.settings_files(&folder);
    // In a bare repository all that git writes lies beside them.
    if files.iter().any(|file| file.parent() == Some(&folder)) { Vec::new() } else { files }
}

/// Reports whether a command of git takes a lock of a repository whose own folder is outside the workspace, and changes
/// nothing: on trial it could not.
pub(super) fn locks_outside(command: &Invocation, world: &JudgementContext<'_>) -> bool {
    let runs = |effect: &Effect| matches!(effect, Effect::Runs(_));
    git::takes_lock(&command.words)
        && !changes_repository(command)
        && command.effects.iter().any(runs)
        && outside_places(command, world).has_git_folder
}

fn changes_repository(command: &Invocation) -> bool {
    command.effects.iter().any(|effect| matches!(effect, Effect::Repository(_)))
}

/// Reports whether a command is one of git that writes the work tree and does nothing else.
pub(super) fn writes_tree(command: &Invocation) -> bool {
    effects::program_of(command) == "git" && git::writes_tree(&command.words)
}

fn outside_places(command: &Invocation, world: &JudgementContext<'_>) -> OutsidePlaces {
    let folder = git::parse_look(&command.words).and_then(|look| repository_folder(command, &look));
    folder
        .map(|folder| world.repositories.outside_places(&(world.resolve)(&folder)))
        .unwrap_or_default()
}

/// Programs of rustup: each starts that of its name which the project's `rust-toolchain.toml` chooses.
const CHOSEN_BY_PROJECT: [&str; 10] = [
    "cargo",
    "cargo-clippy",
    "cargo-fmt",
    "clippy-driver",
    "rust-analyzer",
    "rust-gdb",
    "rust-lldb",
    "rustc",
    "rustdoc",
    "rustfmt",
];

/// Returns the reason why a compiler may not be the program that its name says; `None` where the project names none
/// of its own.
pub(super) fn at_compiler(
    program: &str,
    command: &Invocation,
    world: &JudgementContext<'_>,
) -> Option<String> {
    if !CHOSEN_BY_PROJECT.contains(&program) {
        return None;
    }
    let Some(folder) = &command.cwd else {
        return Some(format!("runs the `{program}` of a folder that is only known when it runs"));
    };
    let file = world.repositories.own_compiler(&(world.resolve)(folder))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Some(format!("runs the `{program}` that `{name}` names"))
}

/// Returns the folder in which a git command looks; `None` when that cannot be told.
fn repository_folder(command: &Invocation, look: &GitInspection<'_>) -> Option<PathBuf> {
    let start = command.cwd.clone()?;
    look.folders.iter().try_fold(start, |folder, next| Some(folder.join((*next)?)))
}

/// The first secret file that it may show.
fn find_shown_secret(
    look: &GitInspection<'_>,
    folder: &Path,
    world: &JudgementContext<'_>,
) -> Option<PathBuf> {
    let secrets = world.repositories.secret_files(folder);
    let only: Option<Vec<PathBuf>> = look
        .only
        .as_ref()
        .map(|names| names.iter().map(|name| without_dots(&folder.join(name))).collect());
    let may_show = |secret: &&PathBuf| {
        only.as_ref().is_none_or(|only| only.iter().any(|path| secret.starts_with(path)))
    };
    secrets.iter().find(may_show).cloned()
}
