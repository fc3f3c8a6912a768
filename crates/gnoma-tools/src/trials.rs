//! What a session needs to run commands on trial: the place of its layers, and the layer over its workspace.
//!
//! One layer lasts as long as the session. After each command it is emptied, except for folders that a tool can
//! build again: the next build begins where the last one ended, and none of it is in the workspace. While only
//! looking is allowed, it is not emptied at all, so that one step can build on another.

use std::{
    collections::{HashMap, HashSet},
    fmt, fs, iter,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

use gnoma_core::places::LocalPlaces;
use gnoma_sandbox::{
    MemoryFolder, Overlay, Scratch, SessionSandbox, Strength, Support, TEMPORARY, holds_temporary,
    layer::{ChangeKind, Changes, KeepRecovery, Layer, LayerChange, LayerError, Site},
    scratch_place,
};

pub use crate::trials_error::TrialsError;
use crate::{
    ScratchPlace,
    build_output::{EntryStamp, hidden_output_stamps},
    trials_error::LayerStartError,
};

/// About how many rebuilt paths a session reports.
const MAX_TOLD: usize = 10_000;
/// The folder of the layers within one in memory.
const LAYERS: &str = "trials";
/// Bytes that must be free where layers are, before a command.
pub(crate) const MIN_FREE_BYTES: u64 = 512 << 20;

/// Tries the commands of a session.
pub struct Trials {
    launcher: PathBuf,
    pub(crate) roots: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Folders of build output that are updated in the workspace, by name or path below it.
    updated: Vec<PathBuf>,
    site: OnceLock<Result<Site, Arc<TrialsError>>>,
    layers: Mutex<Layers>,
    /// Locked by the command that is on trial.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The session's temporary files, once they are needed; `None` where no folder for them can be made.
    scratch: OnceLock<Option<Scratch>>,
    /// The place where [`Trials::scratch_folder`] makes the folder of temporary files.
    scratch_base: Option<ScratchPlace>,
    /// `true` if commands find the session's temporary files in place of the machine's.
    replaces_temporary: OnceLock<bool>,
    /// The paths that are guarded on this machine.
    pub(crate) local: LocalPlaces,
    /// The memory that holds the layers where nothing may be saved; it is dropped after them.
    memory: Option<Arc<MemoryFolder>>,
}

/// The layers of a session, while no command is in them.
#[derive(Default)]
pub(crate) struct Layers {
    /// The layer over the workspace.
    pub(crate) workspace: Option<Layer>,
    /// Over what else a command may write. Nothing of it is ever kept.
    pub(crate) beside: Option<Layer>,
    /// `true` if the layer holds something that later commands are to see.
    is_seen: bool,
    /// Rebuilt folders and files in the layer, with what the real ones looked like then.
    built: HashMap<PathBuf, Vec<EntryStamp>>,
    /// The build output in the layer that has been reported.
    told: HashSet<PathBuf>,
    /// The changes in the layer that have been reported, with their state at that time.
    reported: HashMap<PathBuf, Option<SystemTime>>,
}

impl Layers {
    /// Drops build output of the layer of which the real files have changed since: somebody else has built there, and
    /// commands see it as it is.
    fn drop_stale_builds(&mut self) -> Result<(), LayerError> {
        let Self { workspace: Some(layer), built, .. } = self else { return Ok(()) };
        let layer = &*layer;
        let stale = built.extract_if(|path, then| hidden_output_stamps(layer, path) != *then);
        for (path, _) in stale {
            layer.discard_path(&path)?;
        }
        Ok(())
    }
}

/// The treatment of a layer after a command has run in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerDecision {
    /// Later commands see all of it.
    Lasts,
    /// Later commands see what was built.
    Built,
    /// Changes were discarded, and with them what was built from changed files: builders go by times, and would
    /// take it for newer than the files as they are.
    Discarded,
}

impl fmt::Debug for Trials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trials").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Trials {
    /// For commands that work in `roots`, whose paths contain no links. `folders` are tried for layers in their
    /// order; `launcher` builds the sandbox, see [`gnoma_sandbox::launcher`].
    #[must_use]
    pub fn new(launcher: PathBuf, roots: Vec<PathBuf>, folders: Vec<PathBuf>) -> Self {
        Self {
            launcher,
            roots,
            folders,
            updated: Vec::new(),
            site: OnceLock::new(),
            layers: Mutex::default(),
            turn: Arc::default(),
            scratch: OnceLock::new(),
            scratch_base: None,
            replaces_temporary: OnceLock::new(),
            local: LocalPlaces::default(),
            memory: None,
        }
    }

    /// The same with a folder that keeps the temporary files of sessions: commands and file tools find their own
    /// there in place of the machine's.
    #[must_use]
    pub fn with_scratch(self, base: ScratchPlace) -> Self {
        Self { scratch_base: Some(base), ..self }
    }

    /// The same where changes to these places are never kept without a question.
    #[must_use]
    pub fn with_local_places(self, local: LocalPlaces) -> Self {
        Self { local, ..self }
    }

    /// The same with all layers in memory, so that nothing of them is left however the session ends. The folders
    /// are only for what earlier sessions were keeping when they were killed.
    #[must_use]
    pub fn in_memory(self, memory: Arc<MemoryFolder>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The same where commands update these folders in the workspace without a question, as far as version
    /// control ignores them: names such as `target`, or paths below the workspace.
    #[must_use]
    pub fn with_updated_folders(self, folders: Vec<String>) -> Self {
        Self { updated: folders.into_iter().map(PathBuf::from).collect(), ..self }
    }

    /// Reports whether commands update this folder in the workspace.
    pub(crate) fn is_updated(&self, path: &Path) -> bool {
        let mut roots = self.roots.iter();
        let is_named = |named: &PathBuf| {
            path.file_name() == Some(named.as_os_str())
                || roots.any(|root| path.strip_prefix(root).is_ok_and(|below| below == named))
        };
        self.updated.iter().any(is_named) && self.is_ignored(path)
    }

    /// Returns the reason why commands cannot be tried in this workspace. Finding out makes a layer and runs a
    /// command in it, once.
    #[must_use]
    pub fn unavailable_reason(&self) -> Option<&TrialsError> {
        self.site().err().map(|error| &**error)
    }

    /// The layers' place. What killed processes were keeping is finished or undone when it is found.
    pub(crate) fn site(&self) -> Result<&Site, &Arc<TrialsError>> {
        self.site.get_or_init(|| self.find_site().map_err(Arc::new)).as_ref()
    }

    fn find_site(&self) -> Result<Site, TrialsError> {
        let support = Support::detect();
        if support.strength != Strength::Full {
            return Err(TrialsError::Sandbox(support.strength));
        }
        let root = self.roots.first().ok_or(TrialsError::NoWorkspace)?;
        let walls = SessionSandbox::new(self.launcher.clone(), &support);
        let site = match &self.memory {
            None => Site::find_usable(root, &self.folders, &walls)?,
            Some(memory) => Site::find_usable(root, &[memory.path()?.join(LAYERS)], &walls)?,
        };
        site.recover_layers()?;
        Ok(site)
    }

    /// Finishes or undoes what a killed process was keeping in any of the places, and says what could be
    /// neither. To be called before anything else works in the workspace.
    #[must_use]
    pub fn recover(&self) -> Vec<String> {
        let there = self.folders.iter().filter(|folder| folder.is_dir());
        let recovered =
            there.filter_map(|folder| Site::in_folder(folder.clone()).recover_layers().ok());
        let torn = recovered.flatten().filter_map(|recovered| match recovered {
            KeepRecovery::Torn(error) => Some(format!("an interrupted keep: {error}")),
            KeepRecovery::Finished | KeepRecovery::Undone => None,
        });
        torn.collect()
    }

    pub(crate) fn lock_layers(&self) -> MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other command is on trial; none is as long as the guard lasts. Two at once would each have a layer,
    /// and later commands would see only one of them.
    pub(crate) async fn wait_for_turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// The layer over the workspace, ready for a command that begins now. Rebuilt folders in which
    /// somebody else has built meanwhile are seen as they are.
    pub(crate) fn begin_layer(&self) -> Result<Layer, LayerStartError> {
        let site = self.site().map_err(|error| LayerStartError::Unavailable(Arc::clone(error)))?;
        let mut layers = self.lock_layers();
        layers.drop_stale_builds()?;
        let mut layer = match layers.workspace.take() {
            Some(layer) => layer,
            None => site.create_layer(self.roots.clone())?,
        };
        let free_bytes = layer.free_bytes()?;
        if free_bytes < MIN_FREE_BYTES {
            return Err(LayerStartError::LittleSpace { free_bytes });
        }
        layer.record_start()?;
        Ok(layer)
    }

    /// The layer is put back for the next command, emptied unless it is to last. Returns what was built and
    /// stays in it.
    pub(crate) fn return_layer(&self, layer: Layer, fate: LayerDecision) -> Vec<PathBuf> {
        let is_discarded = fate == LayerDecision::Discarded && self.has_changed_files(&layer);
        let mut layers = self.lock_layers();
        layers.is_seen = fate == LayerDecision::Lasts;
        let mut built = Vec::new();
        if fate != LayerDecision::Lasts {
            let stays = |path: &Path| {
                self.is_rebuilt(&layer, path) && !(is_discarded && layer.has_changed(path))
            };
            let Ok(stayed) = layer.reset_but(&stays) else { return Vec::new() };
            layers.is_seen = !stayed.is_empty();
            layers.built = stayed
                .iter()
                .map(|path| (path.clone(), hidden_output_stamps(&layer, path)))
                .collect();
            built = stayed;
        }
        layers.workspace = Some(layer);
        built
    }

    /// Reports whether existing files were changed or deleted in a layer, besides build output. Files that exist
    /// only in the layer do not count, because a builder notices by itself when they are gone.
    fn has_changed_files(&self, layer: &Layer) -> bool {
        let changes = layer.changes_but(&|path| self.is_rebuilt(layer, path));
        let is_there = |change: &LayerChange| change.kind() != ChangeKind::Created;
        changes.map_or(true, |all| all.list.iter().any(is_there) || !all.differences.is_empty())
    }

    /// The build output that is in the layer and not in the workspace.
    pub(crate) fn built_paths(&self) -> Vec<PathBuf> {
        self.lock_layers().built.keys().cloned().collect()
    }

    /// The rebuilt paths that have not been reported yet.
    pub(crate) fn filter_unreported(&self, rebuilt: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut layers = self.lock_layers();
        if layers.told.len() >= MAX_TOLD {
            return Vec::new();
        }
        rebuilt.into_iter().filter(|path| layers.told.insert(path.clone())).collect()
    }

    /// The changes that have not been reported yet, or have changed since.
    pub(crate) fn take_new(&self, layer: &Layer, changes: &Changes) -> Changes {
        let mut layers = self.lock_layers();
        let time = |path: &Path| layer.place_of(path)?.symlink_metadata().ok()?.modified().ok();
        let is_new = |change: &&LayerChange| {
            let (path, time) = (change.path().to_owned(), time(change.path()));
            layers.reported.insert(path, time) != Some(time)
        };
        Changes {
            list: changes.list.iter().filter(is_new).cloned().collect(),
            ..Changes::default()
        }
    }

    /// The workspace as commands on trial have left it, for commands that only read; empty where that is how it
    /// really is, and while one is running.
    pub(crate) fn workspace_views(&self) -> Vec<Overlay> {
        let mut layers = self.lock_layers();
        // What cannot be dropped must not hide what is newer.
        let is_current = layers.drop_stale_builds().is_ok();
        let layer = layers.workspace.as_ref().filter(|_| layers.is_seen && is_current);
        let view = |overlay: Overlay| {
            // The kernel takes nothing for a lower folder that is within another one.
            if overlay.lower.iter().any(|lower| overlay.upper.starts_with(lower)) {
                return Overlay { is_frozen: true, ..overlay };
            }
            let lower = iter::once(overlay.upper).chain(overlay.lower).collect();
            Overlay { at: overlay.at, lower, ..Overlay::default() }
        };
        layer.map(Layer::overlays).unwrap_or_default().into_iter().map(view).collect()
    }

    /// Reports whether commands that begin now see something other than the workspace's own files.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        let layers = self.lock_layers();
        layers.is_seen && layers.workspace.is_some()
    }

    /// The folder of the session's temporary files, made when it is first needed.
    pub(crate) fn scratch_folder(&self) -> Option<&Path> {
        let make = || self.scratch_base.as_ref()?.create_scratch().ok();
        self.scratch.get_or_init(make).as_ref().map(Scratch::folder)
    }

    /// The folder, where one was made.
    fn made_scratch(&self) -> Option<&Path> {
        self.scratch.get()?.as_ref().map(Scratch::folder)
    }

    /// Reports whether commands and file tools find temporary files of the session in place of the machine's.
    #[must_use]
    pub fn replaces_temporary(&self) -> bool {
        // Elsewhere than on the disk it is for commands alone: file tools would not find what they wrote.
        let is_on_disk = matches!(self.scratch_base, Some(ScratchPlace::Below(_)));
        let is_whole =
            || Support::detect().strength == Strength::Full && self.scratch_folder().is_some();
        is_on_disk
            && !holds_temporary(&self.roots)
            && *self.replaces_temporary.get_or_init(is_whole)
    }

    /// Returns the place of the session's own entry for a path among temporary files, regardless of what is there
    /// on the machine. Returns `None` for all other paths, and for those that go up with `..`.
    pub(crate) fn temporary_place(&self, path: &Path) -> Option<PathBuf> {
        let is_plain = !path.components().any(|part| part == Component::ParentDir);
        let is_temporary = TEMPORARY.iter().any(|place| path.starts_with(place));
        let is_own = is_temporary && is_plain && self.replaces_temporary();
        scratch_place(self.scratch_folder().filter(|_| is_own)?, path)
    }

    /// Reports whether a path among temporary files means one of the session's: it exists there, or it is new. An
    /// entry that exists only on the machine is the machine's.
    #[must_use]
    pub fn is_own_temporary(&self, path: &Path) -> bool {
        if !self.replaces_temporary() || !TEMPORARY.iter().any(|place| path.starts_with(place)) {
            return false;
        }
        let leads_to_root = |path: &Path| self.roots.iter().any(|root| root.starts_with(path));
        for path in path.ancestors() {
            if TEMPORARY.iter().any(|place| path == Path::new(place)) {
                return true;
            }
            let own = self.made_scratch().and_then(|folder| scratch_place(folder, path));
            let own = own.and_then(|place| Some((place.symlink_metadata().ok()?, place)));
            let on_machine = path.symlink_metadata().is_ok();
            match own {
                // Something is mounted on what is empty, or was.
                Some((facts, place)) if !on_machine || !is_empty(&facts, &place) => return true,
                _ if on_machine || leads_to_root(path) => return false,
                _ => {}
            }
        }
        false
    }

    /// Reports whether commands that begin now find files that earlier commands left, in the workspace or among
    /// temporary files, in place of the real ones.
    #[must_use]
    pub fn have_left(&self) -> bool {
        let has_entries = |place: &str| {
            let folder = self.made_scratch();
            let place = folder.and_then(|folder| scratch_place(folder, place.as_ref()));
            place.and_then(|place| fs::read_dir(place).ok()).is_some_and(|all| all.count() > 0)
        };
        self.is_seen() || TEMPORARY.into_iter().any(has_entries)
    }

    /// The real path of what such commands find at a path, if an earlier one left it there; also the marker of a
    /// deletion.
    #[must_use]
    pub fn left_at(&self, path: &Path) -> Option<PathBuf> {
        let leads_to_workspace = |root: &PathBuf| root.starts_with(path) || path.starts_with(root);
        let temporary = self.made_scratch().and_then(|folder| scratch_place(folder, path));
        if let Some(place) = temporary.filter(|_| !self.roots.iter().any(leads_to_workspace)) {
            return place.symlink_metadata().is_ok().then_some(place);
        }
        let layers = self.lock_layers();
        let layer = layers.workspace.as_ref().filter(|_| layers.is_seen)?;
        layer.place_of(path).filter(|place| place.symlink_metadata().is_ok())
    }

    /// Layers over folders besides the workspace, as far as they work there. They last as long as the
    /// session, and nothing of them is kept.
    pub(crate) fn overlays_beside(&self, folders: &[PathBuf]) -> Vec<Overlay> {
        let Ok(site) = self.site() else { return Vec::new() };
        let mut layers = self.lock_layers();
        if layers.beside.is_none() {
            let support = Support::detect();
            let walls = SessionSandbox::new(self.launcher.clone(), &support);
            let works = |folder: &&PathBuf| site.works_over(folder, &walls).is_ok();
            let folders = folders.iter().filter(works).cloned().collect();
            layers.beside = site.create_layer(folders).ok();
        }
        let overlays = layers.beside.as_ref().map(Layer::overlays).unwrap_or_default();
        overlays.into_iter().filter(|overlay| folders.contains(&overlay.at)).collect()
    }
}

/// Reports whether the path is an empty file or a folder with nothing in it.
fn is_empty(facts: &fs::Metadata, place: &Path) -> bool {
    match facts.is_dir() {
        true => fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none()),
        false => facts.is_file() && facts.len() == 0,
    }
}
