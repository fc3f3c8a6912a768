//! Folders that gnoma searches for extensions, and whether a project's are trusted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{bounded_file, home, places::find_secret, written_text};

pub use crate::extension_source::ExtensionSource;
use crate::plugin::PluginPlace;

/// Most bytes of one file of text.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 10;

/// The folders in which gnoma looks for extensions.
#[derive(Clone, Debug, Default)]
pub struct ExtendPlaces {
    /// The home folder of the person.
    pub home: Option<PathBuf>,
    /// The person's own settings of gnoma.
    pub config_dir: PathBuf,
    /// The project's folder, links resolved.
    pub project: PathBuf,
    /// The folder that the session works in, links resolved.
    pub cwd: PathBuf,
    /// All folders that the session works in, links resolved.
    pub roots: Vec<PathBuf>,
    /// The person trusts what the project contains.
    pub is_trusted: bool,
    /// The plugins that are in force.
    pub plugins: Vec<Arc<PluginPlace>>,
}

/// A place in which extensions of one kind are.
#[derive(Clone, Debug)]
pub(crate) struct ExtendFolder {
    /// The party that provides the extensions in this place.
    pub(crate) by: ExtensionSource,
    /// A folder; in a plugin also a single file.
    pub(crate) path: PathBuf,
    /// The plugin that it is of.
    pub(crate) plugin: Option<Arc<PluginPlace>>,
}

impl ExtendFolder {
    /// Returns the full name of an extension in this place that calls itself `name`.
    pub(crate) fn qualified_name(&self, name: String) -> String {
        match &self.plugin {
            Some(plugin) => plugin.qualified_name(&name),
            None => name,
        }
    }

    /// A text of it, as it is meant.
    pub(crate) fn fill_variables(&self, text: &str) -> String {
        self.plugin.as_ref().map_or_else(|| text.to_owned(), |plugin| plugin.fill_variables(text))
    }
}

impl ExtendPlaces {
    /// The folders in which one kind of extension is, `kind` as in `.claude/KIND`; the weightiest last.
    /// `shared`: also those of the location that several programs share.
    pub(crate) fn extension_folders(&self, kind: &str, shared: bool) -> Vec<ExtendFolder> {
        let mut all = Vec::new();
        for plugin in &self.plugins {
            let place = |path: &PathBuf| ExtendFolder {
                by: plugin.by,
                path: path.clone(),
                plugin: Some(Arc::clone(plugin)),
            };
            all.extend(plugin.of_kind(kind).iter().map(place));
        }
        let mut add = |by, path| all.push(ExtendFolder { by, path, plugin: None });
        if let Some(home) = &self.home {
            add(ExtensionSource::User, home.join(".claude").join(kind));
            if shared {
                add(ExtensionSource::User, home.join(".agents").join(kind));
            }
        }
        add(ExtensionSource::User, self.config_dir.join(kind));
        // If the home is the project, its files are the person's.
        if self.home.as_deref().is_some_and(|home| home == self.project) {
            return all;
        }
        // Trust in the project is pinned to the files here, not to those of deeper folders.
        add(ExtensionSource::Project, self.project.join(".claude").join(kind));
        if shared {
            add(ExtensionSource::Project, self.project.join(".agents").join(kind));
        }
        add(ExtensionSource::Project, self.project.join(".gnoma").join(kind));
        all
    }

    /// Returns whether an extension of this origin waits for trust in the project.
    #[must_use]
    pub fn waits_for_trust(&self, by: ExtensionSource) -> bool {
        by == ExtensionSource::Project && !self.is_trusted
    }

    /// Returns the weight of an origin: of one name, the extension of the greatest counts.
    pub(crate) fn origin_weight(&self, by: ExtensionSource) -> Option<ExtensionSource> {
        (!self.waits_for_trust(by)).then_some(by)
    }

    /// Retains the weightiest extension of each name and sorts by name; `found` has the weightiest last. A project's that
    /// waits for trust weighs least, so that it replaces nothing that the person has.
    pub(crate) fn retain_weightiest<T>(
        &self,
        found: &mut Vec<T>,
        name: impl Fn(&T) -> &str,
        by: impl Fn(&T) -> ExtensionSource,
    ) {
        found.reverse();
        gnoma_core::sort::sort_by(found, |one: &T, other: &T| {
            let waits = |it| self.waits_for_trust(by(it));
            name(one).cmp(name(other)).then(waits(one).cmp(&waits(other)))
        });
        found.dedup_by(|later, earlier| name(later) == name(earlier));
    }

    /// Reports whether a file lies where the party that provides it may have files, whatever links lead to it.
    pub(crate) fn may_read(&self, folder: &ExtendFolder, path: &Path) -> bool {
        match &folder.plugin {
            Some(plugin) => plugin.contains_path(path),
            None => self.is_inside(folder.by, path),
        }
    }

    /// Reports whether a project's file is in the project, whatever links lead to it, and none of these leads to a
    /// file that holds secrets by its name.
    pub(crate) fn is_inside(&self, by: ExtensionSource, path: &Path) -> bool {
        let is_its_own = |real: &Path| {
            let below = real.strip_prefix(&self.project);
            below.is_ok_and(|below| real == path || find_secret(below).is_none())
        };
        by != ExtensionSource::Project || path.canonicalize().is_ok_and(|real| is_its_own(&real))
    }

    /// A path for people.
    #[must_use]
    pub fn display_path(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.project) {
            return in_a_line(below);
        }
        in_a_line(&home::shorten(path, self.home.as_deref()))
    }
}

/// A path in one line: names may contain anything, and a reader would not take what follows a line break for a
/// name.
#[must_use]
pub fn in_a_line(path: &Path) -> String {
    let fits = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    path.display().to_string().chars().map(fits).collect()
}

/// Names of which the first that is there counts, in each folder, and those that count where none is.
const INSTRUCTIONS: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];
const THEIR_INSTRUCTIONS: [&str; 3] = ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// The instruction files that apply in a folder, the most important last.
#[must_use]
pub fn instructions_in(folder: &Path) -> Vec<PathBuf> {
    let there = |name: &&str| Some(folder.join(name)).filter(|path| path.is_file());
    match INSTRUCTIONS.iter().find_map(there) {
        Some(first) => vec![first],
        None => THEIR_INSTRUCTIONS.iter().filter_map(there).collect(),
    }
}

/// The reason why a file has no text that can be read, as what follows the name of the file.
#[derive(thiserror::Error)]
pub enum TextFileError {
    /// The file is too large.
    #[error("it is larger than {limit_kib} KiB")]
    TooLarge {
        /// The most bytes that are read, in KiB.
        limit_kib: u64,
    },
    /// The file is neither UTF-8 nor UTF-16 with a mark.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

gnoma_core::debug_as_display!(TextFileError);

/// Returns the text of a file of at most [`MAX_FILE_BYTES`].
pub(crate) fn read_text(path: &Path) -> Result<String, TextFileError> {
    let read = bounded_file::read_existing(path, MAX_FILE_BYTES);
    let bytes = read.map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => TextFileError::TooLarge { limit_kib: MAX_FILE_BYTES >> 10 },
        _ => TextFileError::Io(error),
    })?;
    written_text::decode(bytes).map_err(|_| TextFileError::NotUtf8)
}
