//! Build output: which changes of a trial a build makes again.

use std::{fs, iter, path::Path};

use gnoma_core::places::{CACHE_MARK, REBUILT_FOLDERS, is_output_beside};
use gnoma_sandbox::layer::Layer;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{
    build_output::{COMPILED, UNMISTAKABLE, is_program},
    trials::Trials,
};

const CACHES_OF_CHECKERS: [&str; 5] = [
    ".eslintcache",
    ".stylelintcache",
    ".coverage",
    ".phpunit.result.cache",
    ".php-cs-fixer.cache",
];
/// Names beside a folder among which a builder's file is searched for.
const MAX_BESIDE: usize = 1_000;

impl Trials {
    /// Reports whether a tool fills this folder and can fill it again: by its name, and because version control
    /// ignores it or its builder has marked it.
    ///
    /// One that a command has deleted or emptied is not: a build fills it again, and this command did not.
    pub(crate) fn is_rebuilt(&self, layer: &Layer, path: &Path) -> bool {
        self.is_build_output(layer, path) && !(path.exists() && layer.has_only_deletions(path))
    }

    fn is_build_output(&self, layer: &Layer, path: &Path) -> bool {
        if self.is_updated(path) {
            return false;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !REBUILT_FOLDERS.contains(&name) {
            return self.is_output(layer, path, name) || self.is_compiled(layer, path, name);
        }
        let has_mark = |folder: &Path| folder.join(CACHE_MARK).is_file();
        UNMISTAKABLE.contains(&name)
            || has_mark(path)
            || layer.place_of(path).is_some_and(|place| has_mark(&place))
            || self.is_ignored(path)
    }

    /// Reports whether the path is a folder of build output: the builder whose file is beside it fills it, and
    /// version control ignores it.
    fn is_output(&self, layer: &Layer, path: &Path, name: &str) -> bool {
        // Read only where the name is one of those.
        let beside = iter::once_with(|| path.parent().and_then(|folder| fs::read_dir(folder).ok()));
        let names = beside.flatten().flatten().flatten().map(|entry| entry.file_name());
        let names = names.take(MAX_BESIDE).filter_map(|name| name.into_string().ok());
        is_output_beside(name, names) && is_folder_in(layer, path) && self.is_ignored(path)
    }

    /// Reports whether a compiler or a checker made the file from others, and version control ignores it.
    fn is_compiled(&self, layer: &Layer, path: &Path, name: &str) -> bool {
        let is_named = COMPILED.iter().any(|end| name.len() > end.len() && name.ends_with(end))
            || CACHES_OF_CHECKERS.contains(&name);
        let is_program = || {
            let place = layer.place_of(path);
            place.is_some_and(|place| is_program(&place)) || is_program(path)
        };
        (is_named || is_program()) && !is_folder_in(layer, path) && self.is_ignored(path)
    }

    /// Reports whether version control ignores a folder of the workspace.
    pub(crate) fn is_ignored(&self, path: &Path) -> bool {
        let Some(root) = self.roots.iter().find(|root| path.starts_with(root)) else {
            return false;
        };
        // In a subfolder of a repository the rules of those around it hold as well.
        let top = root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(root);
        let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
        let mut said = folders.map(|folder| {
            let rules = rules_of(folder);
            let said = rules.matched_path_or_any_parents(path, true);
            (!said.is_none()).then(|| said.is_ignore())
        });
        said.find_map(|said| said).unwrap_or(false)
    }
}

/// Reports whether a folder exists, in the layer or without it.
fn is_folder_in(layer: &Layer, path: &Path) -> bool {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    is_folder(path) || layer.place_of(path).is_some_and(|it| is_folder(&it))
}

/// The rules that stand in a folder; broken ones say nothing.
fn rules_of(folder: &Path) -> Gitignore {
    let mut rules = GitignoreBuilder::new(folder);
    for name in [".gitignore", ".git/info/exclude"] {
        let _broken = rules.add(folder.join(name));
    }
    rules.build().unwrap_or_else(|_broken| Gitignore::empty())
}
