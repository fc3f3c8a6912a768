//! A snapshot's record: a small file that says which tree it is. Written last, so that whatever it
//! names is there.

use std::{
    ffi::OsStr,
    fmt, fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{
    codec::{Reader, put_bytes, put_number},
    error::{At, Error},
    hash::Hash,
    made::Made,
    places::{Places, Unfinished, sync_folder},
};

const MAGIC: &[u8; 7] = b"gnomacp";
const VERSION: u8 = 1;

/// Largest record that is read.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// Longest label that is kept.
const MAX_LABEL_BYTES: usize = 4 << 10;

/// How many skipped paths a record names; the rest is counted.
pub(super) const MAX_NAMED_SKIPPED: usize = 200;

/// Digits of an id that give its time in milliseconds, and all of them.
const TIME_DIGITS: usize = 11;
const ID_DIGITS: usize = 16;

/// Names a snapshot of a workspace. Ids sort by time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotId(String);

impl SnapshotId {
    /// An id for this moment that sorts after `last`.
    pub(super) fn next(now_ns: i128, last: Option<&Self>, salt: &str) -> Self {
        let now_ms = u64::try_from(now_ns / 1_000_000).unwrap_or(0);
        let floor = last.map_or(0, |last| last.millis() + 1);
        let digest = Hash::of(salt.as_bytes()).to_string();
        let random = digest.get(..ID_DIGITS - TIME_DIGITS).unwrap_or_default();
        Self(format!("{:011x}{random}", now_ms.max(floor)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn millis(&self) -> u64 {
        self.0.get(..TIME_DIGITS).and_then(|d| u64::from_str_radix(d, 16).ok()).unwrap_or(0)
    }

    /// When the snapshot was taken.
    #[must_use]
    pub fn taken(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis())
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == ID_DIGITS && text.bytes().all(digits) {
            Ok(Self(text))
        } else {
            Err(Error::Unknown(text))
        }
    }
}

impl std::str::FromStr for SnapshotId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.to_owned().try_into()
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why something was not kept, or not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// The system refuses to read it.
    Unreadable,
    /// Neither file, folder nor link.
    Special,
    /// Version control ignores it and it is large.
    Ignored,
    /// Above the limit for any file.
    TooLarge,
    /// On another file system.
    Mounted,
    /// Folders nested too deeply.
    TooDeep,
    /// It was written to while it was read; what was kept may be a mixture.
    Unsteady,
    /// A folder whose contents a tool makes, and makes again.
    Rebuilt,
}

impl Why {
    const ALL: [Self; 8] = [
        Self::Unreadable,
        Self::Special,
        Self::Ignored,
        Self::TooLarge,
        Self::Mounted,
        Self::TooDeep,
        Self::Unsteady,
        Self::Rebuilt,
    ];

    pub(super) fn code(self) -> u8 {
        Self::ALL.iter().position(|why| *why == self).unwrap_or(0) as u8
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "cannot be read",
            Self::Special => "is neither file, folder nor link",
            Self::Ignored => "is large and ignored by version control",
            Self::TooLarge => "is above the size limit",
            Self::Mounted => "is on another file system",
            Self::TooDeep => "lies too deep",
            Self::Unsteady => "was written to while it was read",
            Self::Rebuilt => "is made by a tool, which can make it again",
        })
    }
}

/// Something that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where, relative to the workspace.
    pub path: PathBuf,
    /// Why.
    pub why: Why,
}

/// A state of the workspace's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// What the caller called it.
    pub label: String,
    /// The session it was taken for, as [`Workspace::set_session`](super::Workspace::set_session)
    /// named it.
    pub session: Option<String>,
    /// What led to it.
    pub made: Made,
    /// Files, links and folders that differ from the snapshot before.
    pub changed: usize,
    /// What was not kept; named up to a limit.
    pub skipped: Vec<Skipped>,
    /// How many were not kept.
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
        self.made.put(&mut out);
        let digest = Hash::of(&out);
        out.extend_from_slice(&digest.0);
        out
    }

    fn decode(id: SnapshotId, bytes: &[u8]) -> Option<Self> {
        let body_bytes = bytes.len().checked_sub(super::hash::HASH_BYTES)?;
        let (body, digest) = bytes.split_at_checked(body_bytes)?;
        if Hash::of(body).0 != digest {
            return None;
        }
        let mut reader = Reader(body);
        reader.take(MAGIC.len() + 1)?;
        let tree = reader.hash()?;
        let links = if reader.byte()? == 0 { None } else { Some(reader.hash()?) };
        let changed = usize::try_from(reader.number()?).ok()?;
        let label = String::from_utf8_lossy(reader.bytes()?).into_owned();
        let skipped_count = usize::try_from(reader.number()?).ok()?;
        let named = reader.number()?;
        let mut skipped = Vec::new();
        for _ in 0..named.min(MAX_NAMED_SKIPPED as u64) {
            let why = Why::from_code(reader.byte()?)?;
            let path = PathBuf::from(OsStr::from_bytes(reader.bytes()?));
            skipped.push(Skipped { path, why });
        }
        // The first records ended here.
        let (session, made) =
            if reader.is_done() { (None, Made::default()) } else { origin(&mut reader)? };
        Some(Self { id, label, session, made, changed, skipped, skipped_count, tree, links })
    }

    /// Puts the record among the workspace's; `false` when the id is taken.
    pub(super) fn write(&self, places: &Places, folder: &Path, sync: bool) -> Result<bool, Error> {
        use std::io::Write;
        let unfinished = Unfinished::create(places)?;
        let place = folder.join(self.id.as_str());
        unfinished.file().write_all(&self.encode()).at("write", &place)?;
        if sync {
            unfinished.file().sync_data().at("write to disk", &place)?;
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
            opened => opened.at("open", &path)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes).at("read", &path)?;
        if bytes.starts_with(MAGIC) && bytes.get(MAGIC.len()).is_some_and(|v| *v > VERSION) {
            return Err(Error::Newer(path));
        }
        Self::decode(id.clone(), &bytes).ok_or_else(unknown)
    }
}

/// For which session a snapshot was taken, and why.
fn origin(reader: &mut Reader<'_>) -> Option<(Option<String>, Made)> {
    let session = String::from_utf8_lossy(reader.bytes()?).into_owned();
    Some((Some(session).filter(|session| !session.is_empty()), Made::read(reader)?))
}

/// Cuts a label to what is kept.
pub(super) fn clip_label(label: &str) -> String {
    let mut end = label.len().min(MAX_LABEL_BYTES);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    label.get(..end).unwrap_or_default().to_owned()
}

/// The ids of a workspace, oldest first.
pub(super) fn list(folder: &Path) -> Result<Vec<SnapshotId>, Error> {
    let mut ids: Vec<_> = super::objects::names(folder)?
        .into_iter()
        .filter_map(|name| SnapshotId::try_from(name).ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_as_written_and_torn_ones_refused(
            label: String, session in "[a-z]{0,3}", changed: usize, linked: bool, made in 0..3,
            cut in 1usize..60
        ) {
            let id = SnapshotId::next(1 << 60, None, &label);
            let snapshot = Snapshot {
                id: id.clone(),
                label: clip_label(&label),
                session: Some(session).filter(|session| !session.is_empty()),
                made: match made {
                    0 => Made::Asked,
                    1 => Made::BeforeRestore { target: id },
                    _ => Made::Restored { target: id.clone(), before: id },
                },
                changed,
                skipped: vec![Skipped { path: "a/b".into(), why: Why::Special }],
                skipped_count: 9,
                tree: Hash::of(b"tree"),
                links: linked.then(|| Hash::of(b"links")),
            };
            let bytes = snapshot.encode();
            let id = snapshot.id.clone();
            prop_assert_eq!(Snapshot::decode(id.clone(), &bytes), Some(snapshot));
            prop_assert_eq!(Snapshot::decode(id, &bytes[..bytes.len() - cut]), None);
        }

        #[test]
        fn ids_grow(now in 0i128..1 << 62, back in 0i128..1 << 40) {
            let first = SnapshotId::next(now, None, "a");
            let second = SnapshotId::next(now - back, Some(&first), "b");
            prop_assert!(second > first);
            prop_assert_eq!(second.to_string().parse::<SnapshotId>().unwrap(), second);
        }
    }
}
