//! Resolves the paths that words name, in the text alone, without following links.
//!
//! The kernel follows a link before it takes `..`, so `..` stays in a path unless what stands before it is
//! known to be no link. `cd` is different: the shell takes `..` from the text.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::Field;
use crate::facts::FilePlace;

/// Folders that are kept apart; beyond it the folder is unknown.
const MAX_FOLDERS: usize = 8;

/// The folders a command may run in: mostly one, none when it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders {
    /// The most likely one first.
    possible: Vec<PathBuf>,
    /// A folder that is there and that no link leads to, nor to those above it.
    solid: Arc<Path>,
}

impl Folders {
    pub(crate) fn new(solid: &Path) -> Self {
        Self { possible: vec![solid.to_owned()], solid: solid.into() }
    }

    /// Some folder that is not known, for a command line that starts where this one does.
    pub(crate) fn to_unknown(&self) -> Self {
        Self { possible: Vec::new(), solid: Arc::clone(&self.solid) }
    }

    /// The most likely folder alone.
    pub(crate) fn to_likely(&self) -> Self {
        self.with_possible(self.possible.first().cloned().into_iter().collect())
    }

    /// The folder when there is only one.
    pub(crate) fn only_folder(&self) -> Option<&Path> {
        if self.possible.len() == 1 { self.likely_folder() } else { None }
    }

    /// The most likely folder where any other would be the one it all began in.
    pub(crate) fn likely_folder(&self) -> Option<&Path> {
        let (first, rest) = self.possible.split_first()?;
        rest.iter().all(|folder| **folder == *self.solid).then_some(first)
    }

    /// Either these or `other`.
    pub(crate) fn merge_with(&mut self, other: &Self) {
        if self.possible.is_empty() || other.possible.is_empty() {
            self.possible.clear();
            return;
        }
        for folder in &other.possible {
            if !self.possible.contains(folder) {
                self.possible.push(folder.clone());
            }
        }
        if self.possible.len() > MAX_FOLDERS {
            self.possible.clear();
        }
    }

    /// Returns the folders in which a program works that is told to work in `text`.
    pub(crate) fn enter_folder(&self, field: &Field) -> Self {
        let paths = field
            .possible_texts()
            .map(|texts| self.map_folders(&texts, |text, cwd| self.absolute_path(text, cwd)));
        self.with_possible(paths.unwrap_or_default())
    }

    /// Returns the folders to which `cd` goes: `..` is taken from the text.
    pub(crate) fn change_folder(&self, texts: &[&str]) -> Self {
        self.with_possible(
            self.map_folders(texts, |text, cwd| Some(normalize_path(&join_path(text, cwd)?))),
        )
    }

    fn with_possible(&self, mut possible: Vec<PathBuf>) -> Self {
        if possible.len() > MAX_FOLDERS {
            possible.clear();
        }
        Self { possible, solid: Arc::clone(&self.solid) }
    }

    /// True if all of the folders certainly exist.
    pub(crate) fn are_there(&self, home: Option<&Path>) -> bool {
        let there = |folder: &PathBuf| {
            self.solid.starts_with(folder)
                || home.is_some_and(|home| home.starts_with(folder))
                || folder == Path::new("/tmp")
        };
        !self.possible.is_empty() && self.possible.iter().all(there)
    }

    /// Returns the places that `field` points to.
    pub(crate) fn resolve_places(&self, field: &Field) -> Vec<FilePlace> {
        let found = match field {
            Field::Pattern(text) => {
                self.map_folders(&[text], |text, cwd| self.pattern_place(text, cwd))
            }
            _ => field
                .possible_texts()
                .map(|texts| {
                    self.map_folders(&texts, |text, cwd| {
                        self.absolute_path(text, cwd).map(FilePlace::Path)
                    })
                })
                .unwrap_or_default(),
        };
        if found.is_empty() { vec![FilePlace::Unknown(field.to_string())] } else { found }
    }

    /// Returns the folders themselves as places.
    pub(crate) fn current_places(&self) -> Vec<FilePlace> {
        self.resolve_places(&Field::Known(".".to_owned()))
    }

    /// Everything below the folders that `text` names.
    pub(crate) fn places_below(&self, text: &str) -> Vec<FilePlace> {
        let all = |text: &str, cwd: Option<&Path>| {
            let base = self.absolute_path(text, cwd)?;
            let pattern = format!("{}/**", base.display()).replacen("//", "/", 1);
            Some(FilePlace::Pattern { base, pattern })
        };
        self.map_folders(&[text], all)
    }

    /// Returns the result of each text in each folder; empty if one of them has no result.
    fn map_folders<T: PartialEq>(
        &self,
        texts: &[&str],
        of: impl Fn(&str, Option<&Path>) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let somewhere = self.possible.iter().map(|folder| Some(folder.as_path()));
        let folders: Vec<_> =
            if self.possible.is_empty() { vec![None] } else { somewhere.collect() };
        for (text, folder) in
            texts.iter().flat_map(|text| folders.iter().map(move |cwd| (text, cwd)))
        {
            match of(text, *folder) {
                Some(one) if found.contains(&one) => {}
                Some(one) => found.push(one),
                None => return Vec::new(),
            }
        }
        found
    }

    /// An absolute path; `None` when it is relative to an unknown folder.
    fn absolute_path(&self, text: &str, cwd: Option<&Path>) -> Option<PathBuf> {
        let path = join_path(text, cwd)?;
        let mut clean = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Normal(name) => clean.push(name),
                Component::ParentDir if self.solid.starts_with(&clean) => {
                    clean.pop();
                }
                Component::ParentDir => clean.push(".."),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Some(clean)
    }

    /// A pattern with the folder it certainly stays in; none when a part after a wildcard may lead out.
    fn pattern_place(&self, text: &str, cwd: Option<&Path>) -> Option<FilePlace> {
        let certain = Field::Pattern(text.to_owned()).known_start().len();
        let folder_end = text.get(..certain)?.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, rest) = text.split_at_checked(folder_end)?;
        let leads_out =
            |name: &str| name == ".." || name.starts_with(".*") || name.starts_with(".?");
        if rest.split('/').any(leads_out) {
            return None;
        }
        let base = self.absolute_path(if folder.is_empty() { "." } else { folder }, cwd)?;
        let pattern = format!("{}/{rest}", base.display()).replacen("//", "/", 1);
        Some(FilePlace::Pattern { base, pattern })
    }
}

fn join_path(text: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = Path::new(text);
    if path.is_absolute() { Some(path.to_owned()) } else { Some(cwd?.join(path)) }
}

/// `path` with every `..` taken out, as if there were no links.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => tidy.push(name),
            Component::ParentDir => {
                tidy.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    tidy
}
