//! A place that a call names, in the forms it is known by.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use gnoma_core::{glob::glob_matches, names::escape_path, places::original_path};

use super::name::{Name, NameKind, fits_names};
use super::tables::{self, PlaceStart, SensitivePlace};
use crate::permission::{
    JudgementContext, one_line,
    pattern_overlap::{Dialect, Letter, PatternStep},
};

/// Longest path shown in a reason, in characters.
const MAX_SHOWN_CHARS: usize = 120;

/// A path or a pattern, as written and with links followed.
#[derive(Clone, Debug)]
pub(crate) struct JudgedPath {
    literal: PathForm,
    real: PathForm,
    /// In a copy of a folder: the same in the original.
    original: Option<PathForm>,
    is_pattern: bool,
}

/// One way to name a place.
#[derive(Clone, Debug)]
pub(crate) struct PathForm {
    /// Absolute, without `.` and `..`; may hold a shell's stars.
    pub(crate) path: PathBuf,
    names: Vec<Name>,
}

impl JudgedPath {
    /// The path that a call names; relative ones start in the working folder.
    pub(crate) fn from_path(path: &Path, world: &JudgementContext<'_>) -> Self {
        let whole = world.cwd.join(path);
        // The kernel follows a link before it takes `..`, so the path is resolved as it is written.
        let real = without_dots(&(world.resolve)(&whole));
        Self {
            literal: PathForm::new(without_dots(&whole), Dialect::Plain),
            original: original_path(&real, world.copies)
                .map(|path| PathForm::new(path, Dialect::Plain)),
            real: PathForm::new(real, Dialect::Plain),
            is_pattern: false,
        }
    }

    /// Everything that a shell would expand `pattern` to; it starts with the folder `base`.
    pub(crate) fn from_pattern(base: &Path, pattern: &str, world: &JudgementContext<'_>) -> Self {
        let literal = without_dots(Path::new(pattern));
        let rest = literal.strip_prefix(without_dots(base)).unwrap_or(&literal);
        let real = without_dots(&(world.resolve)(base)).join(rest);
        Self {
            literal: PathForm::new(literal.clone(), Dialect::Shell),
            original: original_path(&real, world.copies)
                .map(|path| PathForm::new(path, Dialect::Shell)),
            real: PathForm::new(real, Dialect::Shell),
            is_pattern: true,
        }
    }

    pub(crate) fn forms(&self) -> impl Iterator<Item = &PathForm> {
        [&self.literal, &self.real].into_iter().chain(&self.original)
    }

    /// Returns the form with links followed.
    pub(crate) fn real_form(&self) -> &PathForm {
        &self.real
    }

    pub(crate) fn is_pattern(&self) -> bool {
        self.is_pattern
    }

    /// Returns the path of the place, for a grant: of a pattern the folder that is certain.
    pub(crate) fn folder_or_path(&self) -> PathBuf {
        if !self.is_pattern {
            return self.real.path.clone();
        }
        let certain = self.real.names.iter().take_while(|name| name.kind == NameKind::Literal);
        self.real.path.iter().take(certain.count() + 1).collect()
    }

    /// A device that swallows or makes bytes and keeps none.
    pub(crate) fn is_sink(&self) -> bool {
        let path = &self.literal.path;
        tables::SINKS.iter().any(|sink| path == Path::new(sink)) || path.starts_with("/dev/fd")
    }

    /// As people write it, on one line.
    pub(crate) fn to_line(&self, world: &JudgementContext<'_>) -> String {
        display_path(&self.literal.path, world)
    }

    /// Returns the path to which links lead the place, when that is not where it seems to be.
    pub(crate) fn link_target(&self, world: &JudgementContext<'_>) -> Option<String> {
        let expected = match self.literal.path.strip_prefix(world.cwd) {
            Ok(rest) => (world.resolve)(world.cwd).join(rest),
            Err(_) => self.literal.path.clone(),
        };
        (self.real.path != expected).then(|| display_path(&self.real.path, world))
    }
}

fn display_path(path: &Path, world: &JudgementContext<'_>) -> String {
    let below = |base: &Path| path.strip_prefix(base).ok();
    let text = if let Some(rest) = below(world.cwd) {
        if rest.as_os_str().is_empty() { ".".to_owned() } else { escape_path(rest) }
    } else if let Some(rest) = world.home.and_then(below) {
        escape_path(&Path::new("~").join(rest))
    } else {
        escape_path(path)
    };
    one_line(&text, MAX_SHOWN_CHARS)
}

impl PathForm {
    fn new(path: PathBuf, dialect: Dialect) -> Self {
        let names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(Name::new(&name.to_string_lossy(), dialect)),
            _ => None,
        });
        Self { names: names.collect(), path }
    }

    /// Returns the names of the path, each as it is written and ready for comparing.
    pub(super) fn named_parts(&self) -> impl Iterator<Item = (&OsStr, &Name)> {
        let written = self.path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        written.zip(&self.names)
    }

    /// Returns the names of the path as steps, for patterns of rules.
    pub(crate) fn pattern_steps(&self) -> Vec<PatternStep<Vec<PatternStep<Letter>>>> {
        let step = |name: &Name| {
            if name.kind == NameKind::Anything && name.folded == "**" {
                PatternStep::Run
            } else {
                PatternStep::One(name.letters.clone())
            }
        };
        self.names.iter().map(step).collect()
    }

    /// Reports whether the path is the place; `homes` are the folders that one of the home may begin in.
    pub(super) fn is_at(&self, place: &SensitivePlace, homes: &[PathBuf]) -> bool {
        match place.start {
            PlaceStart::Anywhere => {
                let Some(last) = self.names.len().checked_sub(place.names.len()) else {
                    return false;
                };
                let first = if place.below { 0 } else { last };
                (first..=last).any(|at| self.is_from(at, place))
            }
            PlaceStart::Root => self.is_from(0, place) && self.ends_with(0, place),
            PlaceStart::Home => homes.iter().any(|home| {
                let depth = home.iter().count().saturating_sub(1);
                self.is_below(home) && self.is_from(depth, place) && self.ends_with(depth, place)
            }),
        }
    }

    /// Reports whether the names of the place stand here from the name `at` on.
    fn is_from(&self, at: usize, place: &SensitivePlace) -> bool {
        let window = self.names.get(at..at + place.names.len());
        window.is_some_and(|window| fits_names(&place.names, window))
    }

    /// Reports whether a place that begins with the name `at` ends with the path, where it must.
    fn ends_with(&self, at: usize, place: &SensitivePlace) -> bool {
        place.below || self.names.len() == at + place.names.len()
    }

    /// Reports whether the path is `folder` or is in it.
    pub(super) fn is_below(&self, folder: &Path) -> bool {
        let folder = Self::new(without_dots(folder), Dialect::Plain);
        self.names.len() >= folder.names.len()
            && folder.names.iter().zip(&self.names).all(|(one, two)| one.overlaps_name(two))
    }

    pub(super) fn is_below_any(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Reports whether the last name of the path is one of `names`.
    pub(super) fn is_named_like(&self, names: &[&str]) -> bool {
        self.names.last().is_some_and(|last| {
            last.kind == NameKind::Literal
                && names.iter().any(|name| glob_matches(name, &last.folded))
        })
    }

    /// Reports whether the path means everything in a folder.
    pub(super) fn ends_in_anything(&self) -> bool {
        self.names.last().is_some_and(|name| name.kind == NameKind::Anything)
    }
}

/// `path` with `.` and `..` taken out by their letters.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}
