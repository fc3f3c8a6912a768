//! Guarded paths: files that contain secrets, affect later runs, or belong to others.
//!
//! A path is examined both as written and with links followed, name by name, ignoring case and composition; the
//! stricter answer applies. Patterns that a shell would expand count as everything that they could name. The caller
//! follows links ([`JudgedPath`]'s makers receive the means); nothing here touches a disk.

mod existing_paths;
#[cfg(test)]
mod expansion;
mod judged_path;
mod name;
mod tables;

use std::{
    cmp::Reverse,
    collections::HashSet,
    path::{Path, PathBuf},
};

use gnoma_core::places::{
    CACHES, EXAMPLES, HOME_SETTINGS, OWN_FILES, PROGRAM_FOLDER, TOOL_CHAINS, is_plain_at_home,
};

pub(crate) use judged_path::{JudgedPath, without_dots};

use judged_path::PathForm;
use tables::SensitivePlace;

use crate::permission::JudgementContext;

/// Longest path that is looked at; longer ones no kernel takes.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// Folders around a path that are looked at.
const MAX_FOLDERS: usize = 128;

/// Most paths that fit a pattern and are followed where links may lead them.
const MAX_FOLLOWED: usize = 1024;
/// Most places outside of the workspace to which the links of one pattern lead.
const MAX_LED: usize = 16;

/// The kind of access to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileAccess {
    /// Contents or names are read.
    Read,
    /// A file or folder is created or changed.
    Write,
    /// A file or folder is removed, with all below it.
    Delete,
}

impl FileAccess {
    /// In a sentence about a command.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Delete => "deletes",
        }
    }
}

/// The severity of an access to a place, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Severity {
    /// The mode alone decides.
    Plain,
    /// The place is outside the workspace.
    Outside,
    /// A secret would be shown.
    Secret,
    /// A file or folder outside the workspace would be changed or lost.
    Beyond,
    /// A change would affect later runs, credentials, or the system.
    Guarded,
}

/// The severity and the description of an access to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceConcern {
    pub(crate) gravity: Severity,
    /// Continues "`command` …", such as "reads `.env`, an environment file".
    pub(crate) what: String,
}

/// Weighs one touch of one place.
pub(crate) fn weigh_access(
    touch: FileAccess,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> PlaceConcern {
    let (gravity, remark) = grade_access(touch, spot, world);
    describe_access(touch, spot, gravity, remark, world)
}

/// Weighs that name, size and dates of one place are shown.
pub(crate) fn weigh_metadata(spot: &JudgedPath, world: &JudgementContext<'_>) -> PlaceConcern {
    let (gravity, remark) = grade_of_reading(None, spot, world);
    describe_access(FileAccess::Read, spot, gravity, remark, world)
}

fn describe_access(
    touch: FileAccess,
    spot: &JudgedPath,
    gravity: Severity,
    remark: Option<&'static str>,
    world: &JudgementContext<'_>,
) -> PlaceConcern {
    let mut what = format!("{} `{}`", touch.verb(), spot.to_line(world));
    if let Some(target) = spot.link_target(world) {
        what.push_str(&format!(", which leads to `{target}`"));
    }
    if let Some(remark) = remark {
        what.push_str(", ");
        what.push_str(remark);
    }
    PlaceConcern { gravity, what }
}

fn grade_access(
    touch: FileAccess,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> (Severity, Option<&'static str>) {
    if spot.is_sink() {
        return (Severity::Plain, None);
    }
    match touch {
        FileAccess::Read => grade_of_reading(readable_secret(spot, world), spot, world),
        FileAccess::Write | FileAccess::Delete => grade_change(touch, spot, world),
    }
}

fn grade_of_reading(
    secret: Option<&'static str>,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> (Severity, Option<&'static str>) {
    match secret {
        Some(kind) => (Severity::Secret, Some(kind)),
        None if !spot.is_sink() && is_private(spot, world) => {
            (Severity::Outside, Some(describe_outside(spot, world)))
        }
        None => (Severity::Plain, None),
    }
}

fn grade_change(
    touch: FileAccess,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> (Severity, Option<&'static str>) {
    let takes_root = touch == FileAccess::Delete && takes_root(spot, world);
    if !takes_root && is_own_temporary(spot, world) {
        // Nothing there outlives the session, and no other program finds it.
        return (Severity::Plain, None);
    }
    if let Some(kind) = guarded_kind(spot, world) {
        return (Severity::Guarded, Some(kind));
    }
    if takes_root {
        return (Severity::Guarded, Some("the whole workspace or more"));
    }
    if is_inside(spot, world) {
        return (Severity::Plain, None);
    }
    if in_temporary(spot, world) {
        return (Severity::Outside, Some(describe_outside(spot, world)));
    }
    (Severity::Beyond, Some("outside the workspace"))
}

/// Reports whether the place means a temporary file of the session, which ends with the session.
pub(crate) fn is_own_temporary(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    spot.forms().all(|form| world.repositories.is_own_temporary(&form.path))
}

/// Reports whether a command learns the truth about a place without its being named: it finds what is there, or
/// nothing is there that fits the pattern. In a folder of secrets that there is nothing says something, too.
pub(crate) fn is_found_unnamed(
    spot: &JudgedPath,
    in_secret_folder: bool,
    world: &JudgementContext<'_>,
) -> bool {
    if is_inside(spot, world) || is_own_temporary(spot, world) {
        return true;
    }
    let is_nothing = !in_secret_folder
        && existing_paths::matching_paths(spot, world).is_some_and(|it| it.is_empty());
    let real = &spot.real_form().path;
    let around = || world.repositories.outside_places(real).work_tree;
    is_nothing || around().is_some_and(|tree| real.starts_with(tree))
}

/// Returns the paths that fit a pattern of a shell and are led outside of the workspace by links: one for each place,
/// those that weigh most first. A shell goes through links in front of a `/`: `*/` fits a link to a folder. A link in the
/// place of the last name leads on if `follows_last`.
pub(crate) fn match_led_outside(
    (base, pattern): (&Path, &str),
    follows_last: bool,
    world: &JudgementContext<'_>,
) -> Vec<PathBuf> {
    let follows_all = follows_last || pattern.ends_with('/');
    let folders = pattern.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    if !follows_all && !folders.contains(['*', '?', '[']) {
        return Vec::new();
    }
    let spot = JudgedPath::from_pattern(base, pattern, world);
    if !is_found_unnamed(&spot, false, world) {
        return Vec::new();
    }
    let found = existing_paths::at_most_matching(MAX_FOLLOWED, &spot, world).unwrap_or_default();
    let ends = found.into_iter().filter_map(|path| {
        if follows_all { Some(path) } else { path.parent().map(Path::to_owned) }
    });
    let mut places = HashSet::new();
    let mut led: Vec<_> = ends
        .filter_map(|path| {
            let spot = JudgedPath::from_path(&path, world);
            let is_led = !is_found_unnamed(&spot, false, world)
                && places.insert(spot.real_form().path.clone());
            is_led.then(|| (Reverse(weigh_metadata(&spot, world).gravity), path))
        })
        .collect();
    gnoma_core::sort::by_key(&mut led, |(gravity, _)| *gravity);
    led.into_iter().take(MAX_LED).map(|(_, path)| path).collect()
}

/// Reports whether a concern is of no weight because its place is among the session's own temporary files, which
/// commands find without its being named.
pub(crate) fn is_plain_temporary(
    spot: &JudgedPath,
    concern: &PlaceConcern,
    world: &JudgementContext<'_>,
) -> bool {
    let is_temporary = in_temporary(spot, world) && world.repositories.replaces_temporary();
    is_temporary && concern.gravity == Severity::Plain
}

/// The place of the machine that reading `spot` shows; `None` inside the workspace, among temporary files, and where
/// the kernel makes files up for each process.
pub(crate) fn readable_by_all(spot: &JudgedPath, world: &JudgementContext<'_>) -> Option<PathBuf> {
    let is_elsewhere = is_inside(spot, world)
        || in_temporary(spot, world)
        || is_own_temporary(spot, world)
        || spot.real_form().is_below_any(tables::MADE_BY_KERNEL);
    (!is_elsewhere).then(|| spot.folder_or_path())
}

/// Describes where a place outside the workspace is.
fn describe_outside(spot: &JudgedPath, world: &JudgementContext<'_>) -> &'static str {
    if in_temporary(spot, world) && world.repositories.replaces_temporary() {
        "among the temporary files of the machine, which are not those of this session"
    } else {
        "outside the workspace"
    }
}

/// Reports whether all of the place is in the workspace, links followed.
pub(crate) fn is_inside(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let real = spot.real_form();
    world.roots.iter().any(|root| real.path.starts_with(root))
}

/// Returns the kind of secret that a place holds, which should not be shown.
pub(crate) fn secret_kind(spot: &JudgedPath, world: &JudgementContext<'_>) -> Option<&'static str> {
    let secret = |form: &PathForm| {
        let is_shown = is_public(form, world) || form.is_named_like(EXAMPLES);
        let by_shape = || gnoma_core::places::find_secret(&form.path).map(|known| known.kind);
        find_place_kind(form, tables::secret_places(), world)
            .or_else(by_shape)
            .filter(|_| !is_shown)
    };
    let is_own = || is_own(spot, world) && !is_skill(spot, world);
    spot.forms().find_map(secret).or_else(|| is_own().then_some(OWN_FILES))
}

/// The secret that reading a place would show. A pattern shows what is there and fits it, where the sandbox keeps
/// secrets that appear later from the command.
fn readable_secret(spot: &JudgedPath, world: &JudgementContext<'_>) -> Option<&'static str> {
    let kind = secret_kind(spot, world)?;
    let is_secret =
        |path: &PathBuf| secret_kind(&JudgedPath::from_path(path, world), world).is_some();
    let paths = if world.sandboxed { existing_paths::matching_paths(spot, world) } else { None };
    paths.is_none_or(|paths| paths.iter().any(is_secret)).then_some(kind)
}

/// Returns a description of what a place decides about, so that changing it needs a person.
fn guarded_kind(spot: &JudgedPath, world: &JudgementContext<'_>) -> Option<&'static str> {
    let by_name = |form: &PathForm| find_place_kind(form, tables::guarded_places(), world);
    secret_kind(spot, world)
        .or_else(|| is_own(spot, world).then_some(OWN_FILES))
        .or_else(|| spot.forms().find_map(by_name))
        .or_else(|| spot.forms().any(|form| is_program(form, world)).then_some(PROGRAM_FOLDER))
        .or_else(|| works_at_home(world).then(|| home_setting(spot, world)).flatten())
        .or_else(|| in_repository(spot, world).then_some("inside git's own folder"))
        .or_else(|| is_system(spot, world).then_some("part of the system"))
}

/// Reports whether the session works on the home itself, or on a copy of it. Elsewhere the home's settings are
/// outside the workspace.
fn works_at_home(world: &JudgementContext<'_>) -> bool {
    let copied = world.copies.iter().map(|(_, original)| original);
    let worked_on: Vec<_> = world.roots.iter().chain(copied).collect();
    home_folders(world).iter().any(|home| worked_on.iter().any(|folder| home.starts_with(folder)))
}

/// Returns a description of a path that begins with a dot directly in the home, or of a pattern that could name
/// one, apart from caches, work and copies.
fn home_setting(spot: &JudgedPath, world: &JudgementContext<'_>) -> Option<&'static str> {
    let homes = home_folders(world);
    let is_plain = |form: &PathForm| {
        let below = homes.iter().find_map(|home| form.path.strip_prefix(home).ok());
        let is_copy = world.copies.iter().any(|(copy, _)| form.path.starts_with(copy));
        below.is_some_and(|below| (is_copy || is_plain_at_home(below)) && !may_expand(below))
    };
    let is_setting =
        |form: &PathForm| form.is_at(tables::home_settings(), &homes) && !is_plain(form);
    spot.forms().any(is_setting).then_some(HOME_SETTINGS)
}

/// Reports whether a path is a folder of programs or directly in one, or a pattern that could name one.
fn is_program(form: &PathForm, world: &JudgementContext<'_>) -> bool {
    let programs = world.programs.iter();
    programs
        .filter(|folder| form.is_below(folder))
        .any(|folder| form.path.iter().count() <= folder.iter().count() + 1)
}

/// Reports whether the place is in a repository's own folder, whatever that is called, or would make its folder
/// one.
fn in_repository(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let real = &spot.real_form().path;
    let inside = real.ancestors().take_while(|path| {
        path.parent().is_some_and(|folder| world.roots.iter().any(|root| folder.starts_with(root)))
    });
    inside.take(MAX_FOLDERS).any(|path| {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        world.repositories.is_git_folder(folder, name)
    })
}

/// Reports whether the place belongs to the system and not to a workspace within one of its folders.
fn is_system(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let is_workspace = |form: &PathForm, folder: &Path| {
        let within = |root: &&PathBuf| root.starts_with(folder) && form.path.starts_with(root);
        world.roots.iter().any(|root| within(&root))
    };
    !in_temporary(spot, world)
        && spot.forms().any(|form| {
            let folders = tables::SYSTEM.iter().map(Path::new);
            folders.filter(|folder| form.is_below(folder)).any(|folder| !is_workspace(form, folder))
        })
}

fn find_place_kind(
    form: &PathForm,
    places: &[SensitivePlace],
    world: &JudgementContext<'_>,
) -> Option<&'static str> {
    let homes = home_folders(world);
    places.iter().find(|place| form.is_at(place, &homes)).map(|place| place.kind)
}

/// The user's home, as it is written and with links followed.
fn home_folders(world: &JudgementContext<'_>) -> Vec<PathBuf> {
    let written = world.home.map(Path::to_path_buf);
    written.clone().into_iter().chain(written.map(|home| (world.resolve)(&home))).collect()
}

/// Reports whether the place came with a program; false for a home or a workspace among programs.
fn is_public(form: &PathForm, world: &JudgementContext<'_>) -> bool {
    let own = home_folders(world);
    form.is_below_any(tables::PUBLIC)
        && !own.iter().chain(world.roots).any(|folder| form.is_below(folder))
}

fn is_own(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let folders = own_folders(world);
    spot.forms().any(|form| folders.iter().any(|folder| form.is_below(folder)))
}

/// Reports whether the place is among the skills in gnoma's own folders, however it is reached: they may be read
/// like other files of a person. A path that a shell would expand may be elsewhere.
fn is_skill(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let folders: Vec<_> = own_folders(world).iter().map(|folder| folder.join("skills")).collect();
    spot.forms().all(|form| {
        let rest = folders.iter().find_map(|folder| form.path.strip_prefix(folder).ok());
        rest.is_some_and(|rest| !may_expand(rest))
    })
}

/// Reports whether a shell could make something else of the path.
fn may_expand(path: &Path) -> bool {
    const EXPANDED: [char; 9] = ['*', '?', '[', ']', '{', '}', '$', '`', '!'];
    path.to_string_lossy().contains(EXPANDED)
}

/// The program's own folders, as they are written and with links followed.
fn own_folders(world: &JudgementContext<'_>) -> Vec<PathBuf> {
    let real = world.config_dirs.iter().map(|folder| (world.resolve)(folder));
    real.chain(world.config_dirs.iter().cloned()).collect()
}

/// Reports whether reading there needs a reason: folders of people, and what is beside the workspace. Programs,
/// headers, documentation and the caches of tool chains are everybody's.
fn is_private(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    if is_inside(spot, world) || is_own_temporary(spot, world) {
        return false;
    }
    if in_temporary(spot, world) {
        // They are for handing over, unless the workspace is among them or the session has its own.
        let shares_temporary = world.roots.iter().any(|root| below_temporary(root));
        return shares_temporary || world.repositories.replaces_temporary();
    }
    let real = spot.real_form();
    let home = world.home.map(|home| (world.resolve)(home));
    let shared = || CACHES.iter().chain(TOOL_CHAINS);
    let in_cache = |home: &Path| shared().any(|cache| real.path.starts_with(home.join(cache)));
    if home.as_deref().is_some_and(in_cache) {
        return false;
    }
    let beside = world.roots.iter().filter_map(|root| root.parent());
    let beside = beside.filter(|parent| parent.parent().is_some());
    let people = tables::PEOPLE.iter().map(Path::new);
    let all = beside.chain(people).chain(home.as_deref());
    // A folder above them holds them.
    all.into_iter().any(|folder| real.path.starts_with(folder) || folder.starts_with(&real.path))
        || real.is_below_any(tables::RAW)
}

/// Reports whether the place need not last, because it is temporary. A home that was put among temporary files
/// holds what must last.
fn in_temporary(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    let real = spot.real_form();
    let at_home = |home: &PathBuf| real.is_below(home) || home.starts_with(&real.path);
    below_temporary(&real.path) && !home_folders(world).iter().any(at_home)
}

fn below_temporary(path: &Path) -> bool {
    let below = |dir: &&str| path.starts_with(dir) && path != Path::new(dir);
    tables::TEMPORARY.iter().any(below)
}

/// Reports whether deleting the place would take a whole root of the workspace, or a folder around one.
fn takes_root(spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
    spot.forms().any(|form| {
        let sweep = if form.ends_in_anything() { form.path.parent() } else { None };
        let gone = sweep.unwrap_or(&form.path);
        let kept = world.roots.iter().map(PathBuf::as_path);
        kept.chain([world.cwd]).chain(world.home).any(|root| root.starts_with(gone))
    })
}
