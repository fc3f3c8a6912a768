//! Deletes objects that no snapshot needs.
//!
//! Marking and copying happen beside running snapshots; only the deletion itself is exclusive. An object is deleted
//! if three things are true while no one adds any: no record leads to it, its file is older than the grace period,
//! and what else is needed from that file is in a finished pack. A crash anywhere leaves too many objects, never
//! too few.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use super::{
    compare::load_tree,
    error::{Error, PathErrorExt},
    hash::Hash,
    lock,
    objects::{ObjectLocation, Objects, list_names},
    pack::{self, Spot},
    places::{Places, replace_file, unique_name},
    record::{self, Snapshot},
    snapshot_id::SnapshotId,
    tree::Item,
    vault::{SNAPSHOTS, Vault},
    write::Batch,
};

/// Packs below this size are put together once there are several.
const SMALL_PACK_BYTES: u64 = 4 << 20;
const MANY_SMALL_PACKS: usize = 16;

/// A pack is rewritten when less than one part in this many is needed.
const WORTH_REWRITING: u64 = 2;

/// The result of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionReport {
    /// Bytes of the deleted files, minus those that were rewritten.
    pub freed_bytes: u64,
    /// Bytes of what is left.
    pub kept_bytes: u64,
    /// Of these, what no snapshot needs and is only too young to be deleted.
    pub young_bytes: u64,
    /// Objects that snapshots need.
    pub live_objects: usize,
}

impl Vault {
    /// Deletes what no snapshot of any workspace needs. Other processes continue meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another process tidies up, or the file system has no locks; [`Error::Damaged`] if a
    /// snapshot's tree cannot be read, because then it is unknown what the snapshot needs. Nothing was deleted
    /// then.
    pub fn collect_garbage(&self) -> Result<CollectionReport, Error> {
        self.collect_with_cancel(&AtomicBool::new(false))
    }

    /// As [`collect_garbage`](Self::collect_garbage), until `cancel` is set.
    pub(super) fn collect_with_cancel(
        &self,
        cancel: &AtomicBool,
    ) -> Result<CollectionReport, Error> {
        let objects = &self.0.objects;
        let places = &objects.places;
        let held = lock::try_alone(&places.collect_lock())?;
        if !held.is_real {
            return Err(Error::Busy);
        }
        objects.refresh()?;
        let mut live = LiveObjects::default();
        self.mark_live(&mut live, cancel)?;
        let oldest = SystemTime::now().checked_sub(self.0.options.grace);
        let mut plan = Plan::from_live(objects, &live.objects, oldest)?;
        let (young_bytes, written_bytes) = (plan.young_bytes, self.copy_live(&mut plan, cancel)?);

        let alone = lock::lock_exclusive(&places.lock_path())?;
        self.mark_live(&mut live, cancel)?;
        plan.exclude_live(objects, &live.objects);
        let mut freed_bytes = 0;
        if !plan.is_empty() {
            replace_file(places, &places.generation_path(), unique_name().as_bytes(), false)?;
            freed_bytes = plan.delete_files();
        }
        freed_bytes += remove_unfinished(places, oldest)?;
        objects.refresh()?;
        drop(alone);
        let freed_bytes = freed_bytes.saturating_sub(written_bytes);
        let kept_bytes = objects_size(places)?;
        self.0.size.lock().bytes = Some(kept_bytes);
        Ok(CollectionReport {
            freed_bytes,
            kept_bytes,
            young_bytes,
            live_objects: live.objects.len(),
        })
    }

    /// Marks everything the records lead to; those seen before are passed over.
    fn mark_live(&self, live: &mut LiveObjects, cancel: &AtomicBool) -> Result<(), Error> {
        for folder in self.workspace_folders()? {
            let records = folder.join(SNAPSHOTS);
            if !records.exists() {
                continue;
            }
            for id in record::list_ids(&records)? {
                go_on(cancel)?;
                if !live.records.insert((folder.clone(), id.clone())) {
                    continue;
                }
                match Snapshot::read(&records, &id) {
                    Ok(snapshot) => live.mark_snapshot(&self.0.objects, &snapshot)?,
                    // Torn when it was written, or deleted just now.
                    Err(Error::Unknown(_)) => {}
                    Err(failed) => return Err(failed),
                }
            }
        }
        Ok(())
    }

    /// Writes what is needed of mostly dead packs into new ones.
    fn copy_live(&self, plan: &mut Plan, cancel: &AtomicBool) -> Result<u64, Error> {
        let batch = Batch::new(&self.0.objects, true);
        let mut sound = Vec::new();
        for doomed in std::mem::take(&mut plan.packs) {
            go_on(cancel)?;
            if copy_pack(&self.0.objects, &batch, &doomed).is_ok() {
                sound.push(doomed);
            }
        }
        plan.packs = sound;
        batch.finish()
    }
}

fn go_on(cancel: &AtomicBool) -> Result<(), Error> {
    if cancel.load(Ordering::Acquire) { Err(Error::Cancelled) } else { Ok(()) }
}

/// Copies the live objects of a pack; fails when one is damaged, which then stays where it is.
fn copy_pack(objects: &Objects, batch: &Batch<'_>, doomed: &DoomedPack) -> Result<(), Error> {
    let Some(number) = objects.pack_number(&doomed.name) else { return Err(Error::Busy) };
    for (hash, spot) in &doomed.live {
        // Read as a person would get it: what is copied is known to be right.
        objects.read(hash)?;
        let stored = objects.read_packed(number, *spot)?;
        batch.push(*hash, &stored, spot.plain as usize, spot.is_compressed)?;
    }
    Ok(())
}

#[derive(Default)]
struct LiveObjects {
    objects: HashSet<Hash>,
    records: HashSet<(PathBuf, SnapshotId)>,
}

impl LiveObjects {
    fn mark_snapshot(&mut self, objects: &Objects, snapshot: &Snapshot) -> Result<(), Error> {
        self.objects.extend(snapshot.links);
        let mut trees = vec![snapshot.tree];
        while let Some(hash) = trees.pop() {
            if !self.objects.insert(hash) {
                continue;
            }
            if !objects.contains(&hash) {
                objects.refresh()?;
            }
            for (_, item) in load_tree(objects, &hash)?.0 {
                match item {
                    Item::File { hash, .. } => drop(self.objects.insert(hash)),
                    Item::Folder { hash, .. } => trees.push(hash),
                    Item::Link { .. } | Item::Unsaved => {}
                }
            }
        }
        Ok(())
    }
}

/// A pack that is to go.
struct DoomedPack {
    name: String,
    path: PathBuf,
    bytes: u64,
    all: Vec<Hash>,
    /// The objects that must be elsewhere before the pack goes.
    live: Vec<(Hash, Spot)>,
}

/// The files that are to be deleted.
#[derive(Default)]
struct Plan {
    packs: Vec<DoomedPack>,
    large: HashMap<Hash, (PathBuf, u64)>,
    /// The bytes that are to go later.
    young_bytes: u64,
}

impl Plan {
    fn from_live(
        objects: &Objects,
        live: &HashSet<Hash>,
        oldest: Option<SystemTime>,
    ) -> Result<Self, Error> {
        let mut plan = Self::default();
        let mut small = Vec::new();
        for file in list_files(&objects.places.packs_folder(), oldest)? {
            if Path::new(&file.name).extension().is_some_and(|ending| ending == pack::ENDING) {
                plan.classify_pack(file, live, &mut small)?;
            }
        }
        if small.len() >= MANY_SMALL_PACKS {
            plan.packs.append(&mut small);
        }
        for file in list_files(&objects.places.loose_folder(), oldest)? {
            let stem = file.name.split('.').next().unwrap_or_default();
            let Some(hash) = Hash::parse(stem).filter(|hash| !live.contains(hash)) else {
                continue;
            };
            if file.is_old {
                plan.large.insert(hash, (file.path, file.bytes));
            } else {
                plan.young_bytes += file.bytes;
            }
        }
        Ok(plan)
    }

    /// Decides what happens to one pack.
    fn classify_pack(
        &mut self,
        file: AgedFile,
        live: &HashSet<Hash>,
        small: &mut Vec<DoomedPack>,
    ) -> Result<(), Error> {
        // One that is not whole holds nothing.
        let index = pack::read_index(&file.path)?.unwrap_or_default();
        let all = index.iter().map(|(hash, _)| *hash).collect();
        let live: Vec<_> = index.into_iter().filter(|(hash, _)| live.contains(hash)).collect();
        let live_bytes: u64 = live.iter().map(|(_, spot)| u64::from(spot.stored)).sum();
        let AgedFile { path, name, bytes, is_old } = file;
        let is_spent = live.is_empty() || live_bytes < bytes / WORTH_REWRITING;
        if !is_old {
            self.young_bytes += if is_spent { bytes.saturating_sub(live_bytes) } else { 0 };
            return Ok(());
        }
        let doomed = DoomedPack { name, path, bytes, all, live };
        if is_spent {
            self.packs.push(doomed);
        } else if bytes < SMALL_PACK_BYTES {
            small.push(doomed);
        }
        Ok(())
    }

    /// Takes out what a snapshot taken meanwhile needs.
    fn exclude_live(&mut self, objects: &Objects, live: &HashSet<Hash>) {
        self.large.retain(|hash, _| !live.contains(hash));
        self.packs.retain(|doomed| {
            let copied: HashSet<&Hash> = doomed.live.iter().map(|(hash, _)| hash).collect();
            let elsewhere = |hash: &Hash| {
                copied.contains(hash)
                    || matches!(objects.location(hash), Some(ObjectLocation::Large { .. }))
            };
            doomed.all.iter().all(|hash| !live.contains(hash) || elsewhere(hash))
        });
    }

    fn is_empty(&self) -> bool {
        self.packs.is_empty() && self.large.is_empty()
    }

    /// Gives the bytes freed. A file that cannot be deleted stays for the next time.
    fn delete_files(self) -> u64 {
        let packs = self.packs.into_iter().map(|doomed| (doomed.path, doomed.bytes));
        packs.chain(self.large.into_values()).map(|(path, bytes)| delete_file(&path, bytes)).sum()
    }
}

fn delete_file(path: &Path, bytes: u64) -> u64 {
    if std::fs::remove_file(path).is_ok() { bytes } else { 0 }
}

/// A file and whether it is older than the grace period.
struct AgedFile {
    path: PathBuf,
    name: String,
    bytes: u64,
    is_old: bool,
}

fn list_files(folder: &Path, oldest: Option<SystemTime>) -> Result<Vec<AgedFile>, Error> {
    let mut found = Vec::new();
    for name in list_names(folder)? {
        let path = folder.join(&name);
        let about = path.symlink_metadata().io_context("read", &path)?;
        let modified = about.modified().io_context("read", &path)?;
        if about.is_file() {
            let is_old = oldest.is_some_and(|oldest| modified <= oldest);
            found.push(AgedFile { path, name, bytes: about.len(), is_old });
        }
    }
    Ok(found)
}

/// Files of processes that were killed: nobody else is at work now, but a slow file system may still
/// show the newest late.
const UNFINISHED_GRACE: Duration = Duration::from_secs(60);

fn remove_unfinished(places: &Places, oldest: Option<SystemTime>) -> Result<u64, Error> {
    let recent = SystemTime::now().checked_sub(UNFINISHED_GRACE);
    let files = list_files(&places.unfinished_folder(), oldest.min(recent))?;
    Ok(files
        .iter()
        .filter(|file| file.is_old)
        .map(|file| delete_file(&file.path, file.bytes))
        .sum())
}

/// Bytes of all objects.
pub(super) fn objects_size(places: &Places) -> Result<u64, Error> {
    let mut bytes = 0;
    for folder in [places.packs_folder(), places.loose_folder()] {
        for entry in std::fs::read_dir(&folder).io_context("list", &folder)? {
            bytes += entry.and_then(|entry| entry.metadata()).map_or(0, |about| about.len());
        }
    }
    Ok(bytes)
}
