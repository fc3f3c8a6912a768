//! A snapshot's record: a small file that says which tree it is. It is written last, so that everything it names
//! exists.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    codec::{ByteReader, put_bytes, put_number},
    error::{Error, PathErrorExt},
    hash::Hash,
    places::{Places, UnfinishedFile, sync_folder},
    skipped::{SkipCause, SkippedPath},
    snapshot_cause::SnapshotCause,
    snapshot_id::SnapshotId,
};

const MAGIC: &[u8; 7] = b"gnomacp";
const VERSION: u8 = 1;

/// Largest record that is read.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// Longest label that is kept.
const MAX_LABEL_BYTES: usize = 4 << 10;

/// The number of skipped paths that a record names; the rest is counted.
pub(super) const MAX_NAMED_SKIPPED: usize = 200;

/// A state of the workspace's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of the snapshot.
    pub id: SnapshotId,
    /// The label that the caller gave the snapshot.
    pub label: String,
    /// The session it was taken for, as [`Workspace::set_session`](super::Workspace::set_session)
    /// named it.
    pub session: Option<String>,
    /// The event that led to the snapshot.
    pub made: SnapshotCause,
    /// Files, links and folders that differ from the snapshot before.
    pub changed: usize,
    /// The paths that were not kept; named up to a limit.
    pub skipped: Vec<SkippedPath>,
    /// The number of paths that were not kept.
    pub skipped_count: usize,
    pub(super) tree: Hash,
    pub(super) links: Option<Hash>,
}

impl Snapshot {
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(&self.tree.0);
        out.push(u8::from(self.links.is_some()));
        if let Some(links) = &self.links {
            out.extend_from_slice(&links.0);
        }
        put_number(&mut out, self.changed as u64);
        put_bytes(&mut out, self.label.as_bytes());
        put_number(&mut out, self.skipped_count as u64);
        put_number(&mut out, self.skipped.len() as u64);
        for skipped in &self.skipped {
            out.push(skipped.why.code());
            put_bytes(&mut out, skipped.path.as_os_str().as_bytes());
        }
        put_bytes(&mut out, self.session.as_deref().unwrap_or_default().as_bytes());
        self.made.encode_into(&mut out);
        let digest = Hash::of_bytes(&out);
        out.extend_from_slice(&digest.0);
        out
    }

    fn decode(id: SnapshotId, bytes: &[u8]) -> Option<Self> {
        let body_bytes = bytes.len().checked_sub(super::hash::HASH_BYTES)?;
        let (body, digest) = bytes.split_at_checked(body_bytes)?;
        if Hash::of_bytes(body).0 != digest {
            return None;
        }
        let mut reader = ByteReader(body);
        reader.take_bytes(MAGIC.len() + 1)?;
        let tree = reader.read_hash()?;
        let links = if reader.read_byte()? == 0 { None } else { Some(reader.read_hash()?) };
        let changed = usize::try_from(reader.read_number()?).ok()?;
        let label = String::from_utf8_lossy(reader.read_bytes()?).into_owned();
        let skipped_count = usize::try_from(reader.read_number()?).ok()?;
        let named = reader.read_number()?;
        let mut skipped = Vec::new();
        for _ in 0..named.min(MAX_NAMED_SKIPPED as u64) {
            let why = SkipCause::from_code(reader.read_byte()?)?;
            let path = PathBuf::from(OsStr::from_bytes(reader.read_bytes()?));
            skipped.push(SkippedPath { path, why });
        }
        // The first records ended here.
        let (session, made) = if reader.is_done() {
            (None, SnapshotCause::default())
        } else {
            read_origin(&mut reader)?
        };
        Some(Self { id, label, session, made, changed, skipped, skipped_count, tree, links })
    }

    /// Puts the record among the workspace's; `false` when the id is taken.
    pub(super) fn write(&self, places: &Places, folder: &Path, sync: bool) -> Result<bool, Error> {
        use std::io::Write;
        let unfinished = UnfinishedFile::create(places)?;
        let place = folder.join(self.id.as_str());
        unfinished.file().write_all(&self.encode()).io_context("write", &place)?;
        if sync {
            unfinished.file().sync_data().io_context("write to disk", &place)?;
        }
        // A link fails where a rename would replace another process's record.
        match fs::hard_link(unfinished.path(), &place) {
            Ok(()) => {}
            Err(taken) if taken.kind() == std::io::ErrorKind::AlreadyExists => {
                return Ok(false);
            }
            Err(_) => unfinished.finish(&place, false)?,
        }
        if sync {
            sync_folder(folder)?;
        }
        Ok(true)
    }

    /// Reads a record; [`Error::Unknown`] when there is none or it was never completed.
    pub(super) fn read(folder: &Path, id: &SnapshotId) -> Result<Self, Error> {
        use std::io::Read;
        let path = folder.join(id.as_str());
        let unknown = || Error::Unknown(id.to_string());
        let file = match fs::File::open(&path) {
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Err(unknown()),
            opened => opened.io_context("open", &path)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes).io_context("read", &path)?;
        if bytes.starts_with(MAGIC) && bytes.get(MAGIC.len()).is_some_and(|v| *v > VERSION) {
            return Err(Error::Newer(path));
        }
        Self::decode(id.clone(), &bytes).ok_or_else(unknown)
    }
}

/// For which session a snapshot was taken, and why.
fn read_origin(reader: &mut ByteReader<'_>) -> Option<(Option<String>, SnapshotCause)> {
    let session = String::from_utf8_lossy(reader.read_bytes()?).into_owned();
    Some((Some(session).filter(|session| !session.is_empty()), SnapshotCause::decode_from(reader)?))
}

/// Cuts a label to what is kept.
pub(super) fn clip_label(label: &str) -> String {
    crate::text::text_prefix(label, MAX_LABEL_BYTES).to_owned()
}

/// The ids of a workspace, oldest first.
pub(super) fn list_ids(folder: &Path) -> Result<Vec<SnapshotId>, Error> {
    let mut ids: Vec<_> = super::objects::list_names(folder)?
        .into_iter()
        .filter_map(|name| SnapshotId::try_from(name).ok())
        .collect();
    gnoma_core::sort::sort_items(&mut ids);
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn snapshot_record_round_trips_and_a_truncated_one_is_rejected(
            label: String, session in "[a-z]{0,3}", changed: usize, linked: bool, made in 0..5,
            cut in 1usize..60
        ) {
            let id = SnapshotId::next(1 << 60, None, &label);
            let snapshot = Snapshot {
                id: id.clone(),
                label: clip_label(&label),
                session: Some(session).filter(|session| !session.is_empty()),
                made: match made {
                    0 => SnapshotCause::Asked,
                    1 => SnapshotCause::BeforeRestore { target: id },
                    2 => SnapshotCause::Planned { before: id },
                    3 => SnapshotCause::Merged { before: id },
                    _ => SnapshotCause::Restored { target: id.clone(), before: id },
                },
                changed,
                skipped: vec![SkippedPath { path: "a/b".into(), why: SkipCause::Special }],
                skipped_count: 9,
                tree: Hash::of_bytes(b"tree"),
                links: linked.then(|| Hash::of_bytes(b"links")),
            };
            let bytes = snapshot.encode();
            let id = snapshot.id.clone();
            prop_assert_eq!(Snapshot::decode(id.clone(), &bytes), Some(snapshot));
            prop_assert_eq!(Snapshot::decode(id, &bytes[..bytes.len() - cut]), None);
        }

        #[test]
        fn snapshot_ids_increase(now in 0i128..1 << 62, back in 0i128..1 << 40) {
            let first = SnapshotId::next(now, None, "a");
            let second = SnapshotId::next(now - back, Some(&first), "b");
            prop_assert!(second > first);
            prop_assert_eq!(second.to_string().parse::<SnapshotId>().unwrap(), second);
        }
    }
}
