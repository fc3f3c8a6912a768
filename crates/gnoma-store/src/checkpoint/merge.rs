//! Decides what happens to the files if two sides changed the same state. Changes nothing but the objects that a
//! merge adds.

use std::{
    ffi::OsStr,
    fmt,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use gnoma_core::merge::{ConflictRegion, merge_texts};

use super::{
    compare::{compare_trees, find_item},
    edit::{Edit, EntryChange},
    error::Error,
    hash::Hash,
    objects::Objects,
    renames::Renames,
    rules::is_rebuilt,
    tree::Item,
    write::Batch,
};

/// Largest file whose lines are merged.
const MAX_MERGED_BYTES: u64 = 8 << 20;
/// Longest that the lines of one file are compared before the stretches get coarse.
const PATIENCE: Duration = Duration::from_secs(2);
/// A NUL within this many bytes makes a file binary, as for git.
const SNIFFED_BYTES: usize = 8_000;
/// Bits of a mode that lend the owner's or group's rights.
const LENDING_BITS: u32 = 0o6000;
/// Bytes of the text that shows both sides of one file.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// The reason why the two sides of a path cannot be brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MergeClash {
    /// The same lines, or lines beside each other.
    Lines,
    /// Contents that have no lines to merge.
    Binary,
    /// Permissions that differ on both sides.
    Mode,
    /// Removed here, changed in the copy.
    RemovedHere,
    /// Changed here, removed in the copy.
    RemovedThere,
    /// New on both sides.
    Added,
    /// Renamed on both sides, to different names.
    Renamed,
    /// Renamed here, changed in the copy.
    RenamedHere,
    /// Changed here, renamed in the copy.
    RenamedThere,
    /// A file, a link or a folder took the place of something else.
    Kind,
    /// A thing that is not kept, such as a file that is too large.
    NotKept,
}

impl fmt::Display for MergeClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "both changed the same lines",
            Self::Binary => "both changed it, and it has no lines that could be merged",
            Self::Mode => "both changed its permissions",
            Self::RemovedHere => "it was removed in the project and changed in the copy",
            Self::RemovedThere => "it was changed in the project and removed in the copy",
            Self::Added => "both added it, with different contents",
            Self::Renamed => "both renamed it, to different names",
            Self::RenamedHere => "it was renamed in the project and changed in the copy",
            Self::RenamedThere => "it was changed in the project and renamed in the copy",
            Self::Kind => "on one side a file, a link or a folder took the place of something else",
            Self::NotKept => "it is too large or not a regular file, so it cannot be merged",
        })
    }
}

/// A path whose two sides cannot be brought together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The reason for the conflict.
    pub why: MergeClash,
    /// Both sides of what is at odds, where they can be shown.
    pub text: String,
}

/// The state that both sides began with, and what each made of it.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    pub(super) base: Hash,
    pub(super) ours: Hash,
    pub(super) theirs: Hash,
}

/// The changes that a merge makes.
#[derive(Default)]
pub(super) struct MergePlan {
    pub(super) edits: Edit,
    /// The paths that change, folders aside.
    pub(super) paths: Vec<PathBuf>,
    pub(super) conflicts: Vec<MergeConflict>,
    /// The paths that the copy changed and version control ignores: they are not merged.
    pub(super) ignored: Vec<PathBuf>,
}

/// Items of one path: as they were, as they are here, and in the copy.
#[derive(Clone, Copy)]
struct ThreeWayItems<'a> {
    base: Option<&'a Item>,
    ours: Option<&'a Item>,
    theirs: Option<&'a Item>,
}

/// The decision about a path.
enum PathDecision {
    /// The path stays as it is here.
    Nothing,
    Set(EntryChange),
    Clash(MergeClash, String),
}

/// Returns what is to be done to `ours` so that it has the changes of `theirs`.
pub(super) fn plan_merge(
    objects: &Objects,
    batch: &Batch<'_>,
    sides: Sides,
    is_ignored: &dyn Fn(&[u8], bool) -> bool,
) -> Result<MergePlan, Error> {
    let mut changes = Vec::new();
    compare_trees(objects, Some(sides.base), Some(sides.theirs), &mut |path, before, after| {
        changes.push((path.to_vec(), before.cloned(), after.cloned()));
    })?;
    let mut planned = MergePlan::default();
    let here = Renames::find_between(objects, sides.base, sides.ours)?;
    let there = Renames::find_between(objects, sides.base, sides.theirs)?;
    let merging = TreeMerge { objects, batch, sides, here, there };
    let mut moved = Vec::new();
    for (path, base, theirs) in &changes {
        let items = [base.as_ref(), theirs.as_ref()];
        if is_passed_over(path, items) {
            continue;
        }
        let is_folder = items.into_iter().flatten().all(|item| matches!(item, Item::Folder { .. }));
        if is_ignored(path, is_folder) {
            planned.ignored.extend((!is_folder).then(|| to_path(path)));
            continue;
        }
        let ours = find_item(objects, sides.ours, path)?;
        let three =
            ThreeWayItems { base: base.as_ref(), ours: ours.as_ref(), theirs: theirs.as_ref() };
        let decided = merging.decide_path(path, three, &planned.edits)?;
        match merging.follow_rename(path, three, decided)? {
            PlacedDecision::Here(decided) => planned.add_decision(path, decided, is_folder),
            PlacedDecision::At { place, decided, old_name } => {
                planned.add_decision(path, old_name, false);
                moved.push((place, decided));
            }
        }
    }
    // Last: what is new under that name was looked at by itself.
    for (place, decided) in moved {
        planned.add_decision(&place, decided, false);
    }
    Ok(planned)
}

/// Reports whether a merge passes over a change: what was not kept is missing in a copy, and what can be built
/// again is each side's own.
fn is_passed_over(path: &[u8], [base, theirs]: [Option<&Item>; 2]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match (base, theirs) {
        (Some(Item::Unsaved), None | Some(Item::Unsaved)) => true,
        (None, Some(Item::Unsaved)) => is_rebuilt(name),
        _ => false,
    }
}

impl MergePlan {
    fn add_decision(&mut self, path: &[u8], decided: PathDecision, is_folder: bool) {
        match decided {
            PathDecision::Nothing => {}
            PathDecision::Set(set) => {
                let was = self.edits.edit_at(path).set.replace(set);
                self.paths.extend((!is_folder && was.is_none()).then(|| to_path(path)));
            }
            PathDecision::Clash(why, text) => {
                let path = to_path(path);
                // What is below is at odds for the same reason.
                if !self.conflicts.iter().any(|known| path.starts_with(&known.path)) {
                    self.conflicts.push(MergeConflict { path, why, text });
                }
            }
        }
    }
}

impl PathDecision {
    /// Both sides of what is at odds.
    fn clash_text(&self) -> &str {
        match self {
            Self::Clash(_, text) => text,
            Self::Nothing | Self::Set(_) => "",
        }
    }
}

/// The decision, and the path that it is about.
enum PlacedDecision {
    /// The one that was looked at.
    Here(PathDecision),
    /// The one that the file has now, and the decision about its old name, which is removed where it still exists.
    At { place: Vec<u8>, decided: PathDecision, old_name: PathDecision },
}

/// A merge at work.
struct TreeMerge<'a> {
    objects: &'a Objects,
    batch: &'a Batch<'a>,
    sides: Sides,
    /// The files that were renamed here.
    here: Renames,
    /// The files that were renamed in the copy.
    there: Renames,
}

impl TreeMerge<'_> {
    /// Reports whether a folder on the way to the path is something else here, and does not become a folder.
    fn is_blocked(&self, ours: Hash, path: &[u8], edits: &Edit) -> Result<bool, Error> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (end, _) in ends {
            let above = path.get(..end).unwrap_or_default();
            match find_item(self.objects, ours, above)? {
                Some(Item::Folder { .. }) => {}
                None => return Ok(false),
                Some(_) => return Ok(!edits.makes_folder(above)),
            }
        }
        Ok(false)
    }

    /// Decides about a path, which clashes if a folder on the way to it is something else here.
    fn decide_path(
        &self,
        path: &[u8],
        three: ThreeWayItems<'_>,
        edits: &Edit,
    ) -> Result<PathDecision, Error> {
        match self.is_blocked(self.sides.ours, path, edits)? {
            true if three.theirs.is_none() => Ok(PathDecision::Nothing),
            true => Ok(PathDecision::Clash(MergeClash::Kind, String::new())),
            false => self.decide(three),
        }
    }

    fn decide(&self, three: ThreeWayItems<'_>) -> Result<PathDecision, Error> {
        use MergeClash::{Added, Kind, NotKept, RemovedHere, RemovedThere};
        let ThreeWayItems { base, ours, theirs } = three;
        let clash = |why| PathDecision::Clash(why, String::new());
        let is_folder = |item: Option<&Item>| matches!(item, Some(Item::Folder { .. }));
        if ours == theirs {
            return Ok(PathDecision::Nothing);
        }
        if [ours, theirs].contains(&Some(&Item::Unsaved)) {
            return Ok(clash(NotKept));
        }
        if [base, ours, theirs].into_iter().any(is_folder) {
            return Ok(decide_folders(three));
        }
        if base == ours {
            return Ok(PathDecision::Set(theirs.map_or(EntryChange::Remove, |theirs| {
                EntryChange::Put(strip_lending_bits(theirs))
            })));
        }
        Ok(match (base, ours, theirs) {
            (Some(_), None, Some(_)) => clash(RemovedHere),
            (Some(_), Some(_), None) => clash(RemovedThere),
            (Some(Item::File { .. }), Some(Item::File { .. }), Some(Item::File { .. })) => {
                self.merge_contents(three)?
            }
            (None, Some(Item::File { .. }), Some(Item::File { .. })) => {
                match self.merge_contents(three)? {
                    PathDecision::Clash(_, text) => PathDecision::Clash(Added, text),
                    decided @ (PathDecision::Nothing | PathDecision::Set(_)) => decided,
                }
            }
            _ => clash(Kind),
        })
    }

    /// Merges two files; without one that was before they can only be alike.
    fn merge_contents(
        &self,
        ThreeWayItems { base, ours, theirs }: ThreeWayItems<'_>,
    ) -> Result<PathDecision, Error> {
        let parts = |item: Option<&Item>| match item {
            Some(Item::File { hash, mode, size }) => Some((*hash, *mode, *size)),
            _ => None,
        };
        let (Some((our, our_mode, our_size)), Some((their, their_mode, their_size))) =
            (parts(ours), parts(theirs))
        else {
            return Ok(PathDecision::Clash(MergeClash::Kind, String::new()));
        };
        let was = parts(base);
        let mode = match was {
            _ if our_mode == their_mode => our_mode,
            Some((_, was, _)) if was == their_mode => our_mode,
            Some((_, was, _)) if was == our_mode => their_mode,
            _ => return Ok(PathDecision::Clash(MergeClash::Mode, String::new())),
        };
        let file = |hash, size| {
            PathDecision::Set(EntryChange::Put(strip_lending_bits(&Item::File {
                hash,
                mode,
                size,
            })))
        };
        match was {
            _ if our == their => return Ok(file(our, our_size)),
            Some((was, ..)) if was == their => return Ok(file(our, our_size)),
            Some((was, ..)) if was == our => return Ok(file(their, their_size)),
            _ => {}
        }
        let text = |hash, size| self.read_text(hash, size);
        let was = was.map_or(Ok(Some(String::new())), |(was, _, size)| text(was, size))?;
        let (Some(was), Some(our), Some(their)) =
            (was, text(our, our_size)?, text(their, their_size)?)
        else {
            return Ok(PathDecision::Clash(MergeClash::Binary, String::new()));
        };
        match merge_texts(&was, &our, &their, Some(Instant::now() + PATIENCE)) {
            Ok(text) => Ok(file(self.batch.store_bytes(text.as_bytes())?, text.len() as u64)),
            Err(clashes) => Ok(PathDecision::Clash(MergeClash::Lines, both_sides(&clashes))),
        }
    }

    /// `None` for what has no lines.
    fn read_text(&self, hash: Hash, size: u64) -> Result<Option<String>, Error> {
        if size > MAX_MERGED_BYTES {
            return Ok(None);
        }
        let bytes = self.objects.read(&hash)?;
        let is_binary = bytes.iter().take(SNIFFED_BYTES).any(|byte| *byte == 0);
        Ok(String::from_utf8(bytes).ok().filter(|_| !is_binary))
    }

    /// Merges a file that was only renamed on one side under its new name.
    fn merge_renamed(
        &self,
        path: &[u8],
        ThreeWayItems { base, ours, theirs }: ThreeWayItems<'_>,
        decided: &PathDecision,
    ) -> Result<Option<PlacedDecision>, Error> {
        let is_free = |side, to| Ok::<_, Error>(find_item(self.objects, side, to)?.is_none());
        let PathDecision::Clash(why, _) = decided else { return Ok(None) };
        let (to, three, is_gone) = match (why, self.here.new_name(path), self.there.new_name(path))
        {
            (MergeClash::RemovedHere, Some(to), _) if is_free(self.sides.theirs, to)? => {
                (to, [find_item(self.objects, self.sides.ours, to)?, theirs.cloned()], false)
            }
            (MergeClash::RemovedThere, _, Some(to)) if is_free(self.sides.ours, to)? => {
                (to, [ours.cloned(), find_item(self.objects, self.sides.theirs, to)?], true)
            }
            _ => return Ok(None),
        };
        let [ours, theirs] = &three;
        let decided =
            self.decide(ThreeWayItems { base, ours: ours.as_ref(), theirs: theirs.as_ref() })?;
        let old_name =
            if is_gone { PathDecision::Set(EntryChange::Remove) } else { PathDecision::Nothing };
        Ok(Some(PlacedDecision::At { place: to.to_vec(), decided, old_name }))
    }

    /// Merges a renamed file under its new name; where that is not possible, its clash names the new name.
    fn follow_rename(
        &self,
        path: &[u8],
        three: ThreeWayItems<'_>,
        decided: PathDecision,
    ) -> Result<PlacedDecision, Error> {
        if let Some(placed) = self.merge_renamed(path, three, &decided)? {
            return Ok(placed);
        }
        let ThreeWayItems { base, ours, theirs } = three;
        let (here, there) = (self.here.new_name(path), self.there.new_name(path));
        let (why, text) = match (&decided, here, there) {
            (PathDecision::Clash(MergeClash::RemovedHere, _), ..) => {
                let to = self.here.perhaps_to(self.objects, path, base)?;
                let Some(to) = to else { return Ok(PlacedDecision::Here(decided)) };
                let ours = find_item(self.objects, self.sides.ours, &to)?;
                let both = self.decide(ThreeWayItems { base, ours: ours.as_ref(), theirs })?;
                (MergeClash::RenamedHere, now_named("project", &to) + both.clash_text())
            }
            (PathDecision::Clash(MergeClash::RemovedThere, _), ..) => {
                let to = self.there.perhaps_to(self.objects, path, base)?;
                let Some(to) = to else { return Ok(PlacedDecision::Here(decided)) };
                let theirs = find_item(self.objects, self.sides.theirs, &to)?;
                let both = self.decide(ThreeWayItems { base, ours, theirs: theirs.as_ref() })?;
                (MergeClash::RenamedThere, now_named("copy", &to) + both.clash_text())
            }
            (PathDecision::Nothing, Some(here), Some(there)) if here != there => {
                (MergeClash::Renamed, now_named("project", here) + &now_named("copy", there))
            }
            (PathDecision::Nothing, Some(to), None) if theirs.is_none() => {
                (MergeClash::RemovedThere, now_named("project", to))
            }
            (PathDecision::Nothing, None, Some(to)) if ours.is_none() => {
                (MergeClash::RemovedHere, now_named("copy", to))
            }
            _ => return Ok(PlacedDecision::Here(decided)),
        };
        Ok(PlacedDecision::Here(PathDecision::Clash(why, text)))
    }
}

fn now_named(side: &str, path: &[u8]) -> String {
    format!("in the {side} it is now `{}`\n", String::from_utf8_lossy(path))
}

/// The item without bits that lend rights.
fn strip_lending_bits(item: &Item) -> Item {
    match item {
        Item::File { hash, mode, size } => {
            Item::File { hash: *hash, mode: mode & !LENDING_BITS, size: *size }
        }
        item => item.clone(),
    }
}

/// Decides about a path where a folder is among the items, which are all kept and not alike on both sides.
fn decide_folders(ThreeWayItems { base, ours, theirs }: ThreeWayItems<'_>) -> PathDecision {
    let clash = |why| PathDecision::Clash(why, String::new());
    let mode = |item: Option<&Item>| match item {
        Some(Item::Folder { mode, .. }) => Some(*mode),
        _ => None,
    };
    match (mode(base), mode(ours), mode(theirs)) {
        (Some(was), Some(our), Some(their)) if our != their => {
            if was == our {
                PathDecision::Set(EntryChange::Folder(their))
            } else {
                clash(MergeClash::Mode)
            }
        }
        // What is in them is looked at by itself.
        (_, Some(_), Some(_)) => PathDecision::Nothing,
        (Some(_), Some(_), None) if theirs.is_none() => PathDecision::Set(EntryChange::Remove),
        (Some(_), None, Some(_)) if ours.is_none() => clash(MergeClash::RemovedHere),
        (None, None, Some(their)) if base == ours => PathDecision::Set(EntryChange::Folder(their)),
        _ => clash(MergeClash::Kind),
    }
}

/// The stretches that are at odds, with the marks that people know.
fn both_sides(clashes: &[ConflictRegion]) -> String {
    let mut text = String::new();
    for ConflictRegion { line, base, ours, theirs } in clashes {
        let ended = |part: &str| match part.is_empty() || part.ends_with('\n') {
            true => part.to_owned(),
            false => format!("{part}\n"),
        };
        text.push_str(&format!(
            "line {line}:\n<<<<<<< the project now\n{}||||||| before\n{}=======\n{}>>>>>>> the copy\n",
            ended(ours),
            ended(base),
            ended(theirs)
        ));
        if text.len() > MAX_SHOWN_BYTES {
            text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
            text.push_str("\n[the rest is left out]\n");
            break;
        }
    }
    text
}

fn to_path(path: &[u8]) -> PathBuf {
    OsStr::from_bytes(path).into()
}
