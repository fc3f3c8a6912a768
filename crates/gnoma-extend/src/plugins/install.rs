//! Installing, updating, approving and removing plugins of the person's.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gnoma_core::{diff::unified_diff, quantity::describe_count};

use super::{
    error::{ManifestError, PluginError, PluginNameError},
    manifest::{Manifest, check_name},
    pins::{PluginPins, PluginRecord},
    source::{FetchedPlugin, Fetcher, without_login},
    tree::{self, PluginFiles, PluginTree, TreeChange},
};
use crate::{
    hooks,
    mcp::{self, ServerReach},
    places::{ExtensionSource, read_text},
};

/// Longest difference of texts that is shown, in bytes; and the longest time that is spent on it.
const MAX_SHOWN_DIFF: usize = 64 << 10;
const DIFF_TIME: Duration = Duration::from_secs(2);
/// The folder within the state folder with the contents that were approved last, to show what changed since.
const APPROVED: &str = "approved-plugins";
/// Lines around a change.
const CONTEXT: usize = 2;

/// The installer of plugins, with the folders that it works in.
#[derive(Clone, Debug)]
pub struct PluginInstaller {
    /// The folder of the person's plugins.
    pub plugins: PathBuf,
    /// The folder of what is known of them.
    pub state: PathBuf,
    /// The folder that relative paths start from.
    pub cwd: PathBuf,
    /// The home folder of the person.
    pub home: Option<PathBuf>,
    /// The variables of the session.
    pub variables: Vec<(String, String)>,
}

/// The result of installing, updating or previewing a plugin.
#[derive(Clone, Debug)]
pub struct PluginReview {
    /// The manifest of the plugin.
    pub manifest: Manifest,
    /// The content of the plugin.
    pub tree: PluginTree,
    /// The difference from the content that was approved last.
    pub change: TreeChange,
    /// The same, line by line, for files on both sides.
    pub diff: String,
    /// `true` if the content of the plugin is approved.
    pub is_approved: bool,
}

impl PluginInstaller {
    /// Installs a plugin: its content is the one that is approved.
    ///
    /// # Errors
    /// The plugin cannot be fetched, used or saved; nothing was changed then.
    pub fn install(&self, source: &str) -> Result<PluginReview, PluginError> {
        let mut pins = PluginPins::open(&self.state)?;
        let (fetched, manifest) = self.fetch_with_manifest(source)?;
        let target = self.plugin_folder(&manifest.name)?;
        if target.symlink_metadata().is_ok() {
            return Err(PluginError::AlreadyInstalled(manifest.name));
        }
        let tree = self.copy_atomically(&fetched.root, &target)?;
        let record = PluginRecord {
            source: self.new_fetcher().recorded_source(source),
            approved: Some(tree.hash.clone()),
            files: tree.files.clone(),
        };
        pins.all.insert(manifest.name, record);
        if let Err(error) = pins.save() {
            fs::remove_dir_all(&target).ok();
            return Err(error.into());
        }
        self.save_approved(&target, &tree);
        let mut manifest = Manifest::read(&target, ExtensionSource::User, None)?;
        manifest.faults.extend(fetched.faults);
        let (change, diff) = (TreeChange::default(), String::new());
        Ok(PluginReview { manifest, tree, change, diff, is_approved: true })
    }

    /// Updates a plugin from its source. Changed content waits for approval.
    ///
    /// # Errors
    /// The source has no such plugin any more, or the plugin cannot be written.
    pub fn update(&self, name: &str) -> Result<PluginReview, PluginError> {
        let mut pins = PluginPins::open(&self.state)?;
        let target = self.installed_folder(name)?;
        let record = pins.all.get_mut(name).filter(|record| !record.source.is_empty());
        let record = record.ok_or_else(|| PluginError::UnknownSource(name.to_owned()))?;
        let (fetched, manifest) = self.fetch_with_manifest(&record.source)?;
        if manifest.name != name {
            let (place, now) = (record.source.clone(), manifest.name);
            return Err(PluginError::Renamed { place, now, name: name.to_owned() });
        }
        let new = tree::read_tree(&fetched.root)?;
        let change = TreeChange::from_trees(&record.files, &new.files);
        let diff = render_differences(&target, &fetched.root, &change);
        let is_approved = record.approved.as_ref() == Some(&new.hash);
        if !is_approved {
            record.approved = None;
        }
        // Out of force before its content is another one.
        pins.save()?;
        let tree = self.copy_atomically(&fetched.root, &target)?;
        let manifest = Manifest::read(&target, ExtensionSource::User, None)?;
        Ok(PluginReview { manifest, tree, change, diff, is_approved })
    }

    /// Reads a plugin's content and what changed since it was approved last. Changes nothing.
    ///
    /// # Errors
    /// No such plugin is installed, or its content cannot be read.
    pub fn preview(&self, name: &str) -> Result<PluginReview, PluginError> {
        let pins = PluginPins::open(&self.state)?;
        let target = self.installed_folder(name)?;
        let manifest = Manifest::read(&target, ExtensionSource::User, Some(name))?;
        if manifest.name != name {
            let folder = name.to_owned();
            return Err(PluginError::NameDiffers { folder, name: manifest.name });
        }
        let tree = tree::read_tree(&target)?;
        let record = pins.all.get(name).cloned().unwrap_or_default();
        let change = TreeChange::from_trees(&record.files, &tree.files);
        let before = self.state.join(APPROVED).join(name);
        let is_known = tree::read_tree(&before).is_ok_and(|before| before.files == record.files);
        let diff =
            if is_known { render_differences(&before, &target, &change) } else { String::new() };
        let is_approved = record.approved.as_ref() == Some(&tree.hash);
        Ok(PluginReview { manifest, tree, change, diff, is_approved })
    }

    /// Approves the content that was previewed.
    ///
    /// # Errors
    /// The content has changed since, or the approval cannot be saved.
    pub fn approve(&self, name: &str, previewed: &PluginTree) -> Result<(), PluginError> {
        let mut pins = PluginPins::open(&self.state)?;
        let target = self.installed_folder(name)?;
        if tree::read_tree(&target)? != *previewed {
            return Err(PluginError::ChangedMeanwhile(name.to_owned()));
        }
        let record = pins.all.entry(name.to_owned()).or_default();
        record.approved = Some(previewed.hash.clone());
        record.files = previewed.files.clone();
        pins.save()?;
        self.save_approved(&target, previewed);
        Ok(())
    }

    /// Saves a copy of approved content. Without one, a later change is shown without its lines.
    fn save_approved(&self, target: &Path, tree: &PluginTree) {
        let Some(name) = target.file_name() else { return };
        let copy = self.state.join(APPROVED).join(name);
        fs::remove_dir_all(&copy).ok();
        let copied = fs::create_dir_all(&copy).is_ok()
            && tree::copy_tree(target, &copy).is_ok_and(|copied| copied == *tree);
        if !copied {
            fs::remove_dir_all(&copy).ok();
        }
    }

    /// Revokes the approval of a plugin. Returns `false` if it was not approved.
    ///
    /// # Errors
    /// It cannot be saved.
    pub fn revoke(&self, name: &str) -> Result<bool, PluginError> {
        let mut pins = PluginPins::open(&self.state)?;
        self.installed_folder(name)?;
        let record = pins.all.get_mut(name);
        let was_approved = record.and_then(|record| record.approved.take()).is_some();
        pins.save()?;
        Ok(was_approved)
    }

    /// Removes the plugin of this name.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), PluginError> {
        let mut pins = PluginPins::open(&self.state)?;
        let target = self.installed_folder(name)?;
        pins.all.remove(name);
        pins.save()?;
        fs::remove_dir_all(self.state.join(APPROVED).join(name)).ok();
        // A person may have put a link here: only the link is removed.
        let removed = if target.is_symlink() {
            fs::remove_file(&target)
        } else {
            fs::remove_dir_all(&target)
        };
        removed.map_err(|source| PluginError::NotRemoved { folder: target, source })
    }

    fn new_fetcher(&self) -> Fetcher<'_> {
        Fetcher { cwd: &self.cwd, home: self.home.as_deref(), variables: &self.variables }
    }

    fn fetch_with_manifest(&self, place: &str) -> Result<(FetchedPlugin, Manifest), PluginError> {
        let fetched = self.new_fetcher().fetch_plugin(place)?;
        let of_place = |source: ManifestError| PluginError::FetchedManifest {
            place: without_login(place),
            source,
        };
        let name = fetched.otherwise.as_deref();
        let manifest =
            Manifest::read(&fetched.root, ExtensionSource::User, name).map_err(of_place)?;
        Ok((fetched, manifest))
    }

    fn plugin_folder(&self, name: &str) -> Result<PathBuf, PluginNameError> {
        check_name(name)?;
        Ok(self.plugins.join(name))
    }

    fn installed_folder(&self, name: &str) -> Result<PathBuf, PluginError> {
        let folder = self.plugin_folder(name)?;
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(PluginError::NotInstalled(name.to_owned()))
    }

    /// Copies a plugin to its place, whole or not at all.
    fn copy_atomically(&self, from: &Path, target: &Path) -> Result<PluginTree, PluginError> {
        let made = fs::create_dir_all(&self.plugins)
            .and_then(|()| tempfile::Builder::new().prefix(".new-").tempdir_in(&self.plugins));
        let staging = made.map_err(|source| PluginError::FolderUnwritable {
            folder: self.plugins.clone(),
            source,
        })?;
        let whole = staging.path().join("new");
        fs::create_dir(&whole)?;
        let tree = tree::copy_tree(from, &whole)?;
        let swap = || -> std::io::Result<()> {
            if target.symlink_metadata().is_ok() {
                fs::rename(target, staging.path().join("old"))?;
            }
            fs::rename(&whole, target)
        };
        swap().map_err(|source| PluginError::Unwritable { folder: target.to_owned(), source })?;
        Ok(tree)
    }
}

/// The differences of two contents, line by line where both are texts.
fn render_differences(before: &Path, now: &Path, change: &TreeChange) -> String {
    let deadline = Instant::now() + DIFF_TIME;
    let mut text = String::new();
    let all = change.removed.iter().chain(&change.changed).chain(&change.added);
    for name in all {
        let [old, new] = [before, now].map(|root| match root.join(name) {
            path if path.exists() => read_text(&path),
            _ => Ok(String::new()),
        });
        text.push_str(&format!("--- {name}\n"));
        match (old, new) {
            (Ok(old), Ok(new)) if old == new => text.push_str("(its permission to run changed)\n"),
            (Ok(old), Ok(new)) => text.push_str(&unified_diff(&old, &new, CONTEXT, Some(deadline))),
            _ => text.push_str("(no text, or a long one)\n"),
        }
        if text.len() > MAX_SHOWN_DIFF {
            let shown = gnoma_core::text_truncation::word_prefix(&text, MAX_SHOWN_DIFF);
            return format!("{shown}\n[the rest of the differences is not shown]\n");
        }
    }
    text
}

/// Returns what a plugin would let act, and what of it cannot be used, a line each.
#[must_use]
pub fn describe_capabilities(manifest: &Manifest, files: &PluginFiles) -> Vec<String> {
    let place = &manifest.place;
    let mut lines = Vec::new();
    let hooks = hooks::of_plugin(place);
    lines.extend(hooks.hooks.iter().map(|hook| format!("hook {}: {}", hook.event, hook.to_line())));
    // The values of variables are not known here, and not shown.
    let servers = mcp::of_plugin(place, &|name| Some(format!("${{{name}}}")));
    for server in &servers.servers {
        let what = match &server.reach {
            ServerReach::Process { .. } => "runs",
            ServerReach::Http { .. } => "reaches",
        };
        lines.push(format!("MCP server {} {what} {}", server.name, server.to_line()));
    }
    let below = |paths: &[PathBuf], ending: &str| {
        let is_below = |name: &&String| {
            let path = place.root.join(name);
            name.to_lowercase().ends_with(ending) && paths.iter().any(|it| path.starts_with(it))
        };
        files.keys().filter(is_below).count()
    };
    let (commands, agents) = (below(&place.commands, ".md"), below(&place.agents, ".md"));
    let skills = below(&place.skills, "skill.md");
    let counts =
        [(commands, "command"), (skills, "skill"), (agents, "agent"), (files.len(), "file")];
    lines.push(counts.map(|(count, noun)| describe_count(count, noun)).join(", "));
    let faults = manifest.faults.iter().chain(&hooks.faults).chain(&servers.faults);
    lines.extend(faults.map(|fault| format!("not used: {fault}")));
    lines
}
