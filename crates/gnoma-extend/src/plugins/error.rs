//! Errors of plugins: unreadable, not fetched, not installed, not approved.

use std::{io, path::PathBuf, time::Duration};

use gnoma_core::duration::format_duration;

use super::content_error::{PluginArchiveError, PluginPathError, PluginTreeError};
use crate::places::TextFileError;

/// A name that a plugin may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a valid plugin name: letters, digits, `-`, `_` and `.`, at most {limit}",
    .name.escape_debug()
)]
pub struct PluginNameError {
    /// The name as it is written.
    pub name: String,
    /// The longest name, in bytes.
    pub limit: usize,
}

/// The reason why a JSON file of a plugin or marketplace cannot be read.
#[derive(thiserror::Error)]
pub enum PluginJsonError {
    /// The file has no text that can be read.
    #[error("`{file}`: {source}")]
    Text {
        /// The name of the file.
        file: String,
        /// The reason why there is no text.
        source: TextFileError,
    },
    /// The text is not JSON.
    #[error("`{file}` is not valid JSON: {source}")]
    Json {
        /// The name of the file.
        file: String,
        /// The error in the text.
        source: serde_json::Error,
    },
}

/// The reason why a folder cannot be used as a plugin at all.
#[derive(thiserror::Error)]
pub enum ManifestError {
    /// The folder cannot be found.
    #[error("`{}`: {source}", .folder.display())]
    Folder {
        /// The path of the folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The manifest has no text that can be read.
    #[error(transparent)]
    Text(#[from] TextFileError),
    /// The manifest is not JSON.
    #[error("its manifest is not valid JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The manifest is JSON, but not an object.
    #[error("its manifest is not a JSON object")]
    NotAnObject,
    /// The plugin has a name that it may not have.
    #[error(transparent)]
    Name(#[from] PluginNameError),
    /// The folder has neither a manifest nor a part of a plugin.
    #[error(
        "it is not a plugin: it has neither `.claude-plugin/plugin.json` nor `plugin.json`, and nothing that \
         belongs to a plugin"
    )]
    NoPlugin,
}

/// The reason why a path in a manifest is not used.
#[derive(thiserror::Error)]
pub(super) enum ManifestPathError {
    /// No file of a plugin may have the path.
    #[error(transparent)]
    Path(#[from] PluginPathError),
    /// Nothing has the path.
    #[error("there is no `{0}`")]
    Missing(String),
    /// Links lead out of the plugin.
    #[error("`{0}` leads outside the plugin")]
    Outside(String),
}

/// The reason why a plugin of a marketplace cannot be installed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarketSourceError {
    /// The plugin has no source.
    #[error("it has no `source`")]
    NoSource,
    /// The source lacks a field.
    #[error("its `source` has no `{0}`")]
    NoField(&'static str),
    /// The source is of a kind that gnoma does not know.
    #[error("gnoma does not install from `{0}`")]
    UnknownKind(String),
    /// The path of the plugin leads elsewhere.
    #[error(transparent)]
    Path(#[from] PluginPathError),
}

/// The reason why a plugin could not be brought to this machine.
#[derive(thiserror::Error)]
pub enum PluginSourceError {
    /// A plugin of a marketplace was named, but the place is none.
    #[error(
        "`{place}` is not a marketplace, so it has no `{name}`; install the plugin itself: `gnoma plugin install \
         {place}`"
    )]
    NoMarket {
        /// The place, without a login.
        place: String,
        /// The name of the plugin.
        name: String,
    },
    /// The place is a marketplace of several plugins, and none was named.
    #[error(
        "`{place}` is the marketplace `{market}`; name one of its plugins, as in `gnoma plugin install \
         NAME@{place}`:{}",
        plugin_lines(.plugins)
    )]
    NoNameInMarket {
        /// The place, without a login.
        place: String,
        /// The name of the marketplace.
        market: String,
        /// The plugins of the marketplace with their descriptions.
        plugins: Vec<(String, String)>,
    },
    /// The marketplace has no such plugin.
    #[error("the marketplace `{market}` has no plugin `{name}`")]
    NotInMarket {
        /// The name of the marketplace.
        market: String,
        /// The name of the plugin.
        name: String,
    },
    /// The file of the marketplace cannot be read.
    #[error(transparent)]
    MarketFile(#[from] PluginJsonError),
    /// The marketplace says nothing usable about the source of the plugin.
    #[error("the plugin `{name}` cannot be installed: {source}")]
    MarketSource {
        /// The name of the plugin.
        name: String,
        /// The reason why its source is not usable.
        source: MarketSourceError,
    },
    /// The path of a folder in a marketplace or repository leads elsewhere.
    #[error(transparent)]
    Path(#[from] PluginPathError),
    /// The marketplace or repository has no such folder.
    #[error("there is no folder `{0}`")]
    NoFolder(String),
    /// The path is not a folder of the marketplace or repository.
    #[error("`{0}` leads outside, or is not a folder")]
    OutsideFolder(String),
    /// The source is an archive on the network.
    #[error("gnoma downloads no archives; download `{0}` yourself and install the file")]
    RemoteArchive(String),
    /// Nothing has the path.
    #[error("there is no folder or archive `{}`", .0.display())]
    NoSuchPlace(PathBuf),
    /// The path is a file of another kind.
    #[error("`{}` is neither a folder nor an archive (.tar, .tar.gz, .tgz, .zip)", .0.display())]
    NotAnArchive(PathBuf),
    /// The archive cannot be unpacked.
    #[error("`{place}`: {source}")]
    Archive {
        /// The archive as it was named.
        place: String,
        /// The reason why it cannot be unpacked.
        source: PluginArchiveError,
    },
    /// A text is not the address of a repository.
    #[error("`{}` is not the address of a repository", .0.escape_debug())]
    NotAnAddress(String),
    /// The repository cannot be cloned.
    #[error("`{address}` cannot be cloned: {source}")]
    Clone {
        /// The address, without a login.
        address: String,
        /// The reason why it cannot be cloned.
        source: GitError,
    },
    /// A folder for what is brought cannot be made or found.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The plugins of a marketplace, each on a line of its own.
fn plugin_lines(plugins: &[(String, String)]) -> String {
    plugins.iter().map(|(name, description)| format!("\n  {name}: {description}")).collect()
}

/// The reason why git did not do its work.
#[derive(thiserror::Error)]
pub enum GitError {
    /// Git cannot be started.
    #[error("git cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    /// Git cannot be waited for, or its messages cannot be stored.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Git took too long.
    #[error("git took longer than {}", format_duration(*.0))]
    TimedOut(Duration),
    /// Git failed; the line of its messages that names the cause.
    #[error("{}", .0.as_deref().unwrap_or("git failed"))]
    Failed(Option<String>),
    /// The repository has no such commit.
    #[error("there is no commit `{id}`: {source}")]
    NoCommit {
        /// The id of the commit.
        id: String,
        /// The error of the checkout.
        source: Box<Self>,
    },
}

/// The reason why it cannot be read or saved which plugins are approved.
#[derive(thiserror::Error)]
pub enum PluginPinsError {
    /// The file cannot be looked at.
    #[error("cannot read `{}`: {source}", .path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Other users can write the file.
    #[error(
        "`{}` can be written by other users, so no plugin is loaded; if that is a mistake, run `chmod 600` on it",
        .0.display()
    )]
    WritableByOthers(PathBuf),
    /// The file is too large or not what gnoma writes.
    #[error(
        "`{}` is damaged, so no plugin is loaded; delete it and approve your plugins again with `gnoma plugin \
         trust NAME`",
        .0.display()
    )]
    Damaged(PathBuf),
    /// The file cannot be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Unwritable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The reason why a plugin was not installed, updated, approved or removed.
#[derive(thiserror::Error)]
pub enum PluginError {
    /// The record of approved plugins cannot be used.
    #[error(transparent)]
    Pins(#[from] PluginPinsError),
    /// The plugin cannot be brought to this machine.
    #[error(transparent)]
    Source(#[from] PluginSourceError),
    /// The name cannot be that of a plugin.
    #[error(transparent)]
    Name(#[from] PluginNameError),
    /// The installed plugin cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The content cannot be that of a plugin.
    #[error(transparent)]
    Content(#[from] PluginTreeError),
    /// The content of the source cannot be used as a plugin.
    #[error("`{place}`: {source}")]
    FetchedManifest {
        /// The source, without a login.
        place: String,
        /// The reason why it cannot be used.
        source: ManifestError,
    },
    /// A plugin of that name is installed already.
    #[error("the plugin `{0}` is already installed; `gnoma plugin update {0}` updates it")]
    AlreadyInstalled(String),
    /// No plugin of that name is installed.
    #[error("no plugin `{0}` is installed; `gnoma plugin list` lists them")]
    NotInstalled(String),
    /// Nothing is recorded about the source of the plugin.
    #[error("the source of `{0}` is unknown; remove it and install it again")]
    UnknownSource(String),
    /// The source has a plugin of another name now.
    #[error("the plugin at `{place}` is now called `{now}`, not `{name}`")]
    Renamed {
        /// The source of the plugin.
        place: String,
        /// The new name.
        now: String,
        /// The name that it is installed by.
        name: String,
    },
    /// The folder of the plugin and its manifest name it differently.
    #[error("the plugin in the folder `{folder}` calls itself `{name}`")]
    NameDiffers {
        /// The name of the folder.
        folder: String,
        /// The name in the manifest.
        name: String,
    },
    /// The content has changed since it was shown.
    #[error("`{0}` changed while you read; run `gnoma plugin trust {0}` again")]
    ChangedMeanwhile(String),
    /// The folder of all plugins cannot be written.
    #[error("cannot write in `{}`: {source}", .folder.display())]
    FolderUnwritable {
        /// The path of the folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder of the plugin cannot be written.
    #[error("`{}` cannot be written: {source}", .folder.display())]
    Unwritable {
        /// The path of the folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder of the plugin cannot be removed.
    #[error("`{}` cannot be removed: {source}", .folder.display())]
    NotRemoved {
        /// The path of the folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A folder for the new copy cannot be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

gnoma_core::debug_as_display!(
    PluginJsonError,
    ManifestError,
    ManifestPathError,
    MarketSourceError,
    PluginSourceError,
    GitError,
    PluginPinsError,
    PluginError
);
