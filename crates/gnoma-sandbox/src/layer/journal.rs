//! The steps of a keep, written down before the first is taken.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{
    plan::{Access, Step, StepAct},
    stamp::Stamp,
};

/// Begins every journal; a later format gets another number.
const BEGINS: &str = "gnoma keep 1";
/// The last line of every journal.
const ENDS: &str = "end";
/// The file, and what it is called until it is whole.
const NAME: &str = "journal";
const UNFINISHED_NAME: &str = "journal.new";
/// Largest journal that is read.
const MAX_BYTES: u64 = 256 << 20;

/// The folders of a root, by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeepRoot {
    pub(super) at: PathBuf,
    pub(super) upper: PathBuf,
    pub(super) aside: PathBuf,
}

/// The steps of a keep, with the folders that they work on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) roots: Vec<KeepRoot>,
    pub(super) steps: Vec<Step>,
}

impl Journal {
    /// Writes it into the folder of a layer; from then on it holds.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let unfinished = folder.join(UNFINISHED_NAME);
        let mut file = File::create(&unfinished)?;
        file.write_all(&self.to_bytes())?;
        file.sync_data()?;
        fs::rename(unfinished, folder.join(NAME))
    }

    /// Reads it; `None` when nothing was being kept.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(NAME);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            facts if facts.as_ref().is_ok_and(|facts| facts.len() > MAX_BYTES) => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            facts => facts?,
        };
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the journal cannot be read");
        Self::from_bytes(&fs::read(path)?).ok_or_else(broken).map(Some)
    }

    /// Says that all of it is done, or taken back.
    pub(super) fn remove(folder: &Path) -> io::Result<()> {
        fs::remove_file(folder.join(NAME))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut words = JournalWriter(Vec::new());
        words.push_text(BEGINS);
        words.push_number(self.roots.len() as u64);
        for root in &self.roots {
            for path in [&root.at, &root.upper, &root.aside] {
                words.push_path(path);
            }
        }
        words.push_number(self.steps.len() as u64);
        for step in &self.steps {
            words.push_number(step.place.0 as u64);
            words.push_path(&step.place.1);
            words.push_act(&step.act);
        }
        words.push_text(ENDS);
        words.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = JournalReader(bytes);
        (words.next()? == BEGINS.as_bytes()).then_some(())?;
        let mut journal = Self::default();
        for _ in 0..words.read_number()? {
            let (at, upper, aside) = (words.read_path()?, words.read_path()?, words.read_path()?);
            journal.roots.push(KeepRoot { at, upper, aside });
        }
        for _ in 0..words.read_number()? {
            let root = usize::try_from(words.read_number()?).ok()?;
            journal.steps.push(Step { place: (root, words.read_path()?), act: words.read_act()? });
        }
        (words.next()? == ENDS.as_bytes() && words.0.is_empty()).then_some(journal)
    }
}

/// Words that end in a zero, which no path holds.
struct JournalWriter(Vec<u8>);

impl JournalWriter {
    fn push_text(&mut self, text: &str) {
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn push_path(&mut self, path: &Path) {
        self.0.extend(path.as_os_str().as_bytes());
        self.0.push(0);
    }

    fn push_number(&mut self, number: u64) {
        self.push_text(&number.to_string());
    }

    fn push_act(&mut self, act: &StepAct) {
        match act {
            StepAct::Remove(before) => {
                self.push_text("remove");
                self.push_stamp(before);
            }
            StepAct::Folder(access) => {
                self.push_text("folder");
                self.push_access(*access);
            }
            StepAct::Put { new, replaces, copied } => {
                self.push_text(if *copied { "put copy" } else { "put" });
                self.push_number(*new);
                self.push_number(replaces.is_some().into());
                if let Some(before) = replaces {
                    self.push_stamp(before);
                }
            }
            StepAct::Mode { from, to } => {
                self.push_text("mode");
                self.push_access(*from);
                self.push_access(*to);
            }
        }
    }

    fn push_access(&mut self, access: Access) {
        for number in [access.mode, access.owner.0, access.owner.1] {
            self.push_number(number.into());
        }
    }

    fn push_stamp(&mut self, stamp: &Stamp) {
        let Stamp { device, inode, kind, mode, owner, links, size, written, changed } = *stamp;
        let (kind, mode) = (kind.into(), mode.into());
        let (user, group) = (owner.0.into(), owner.1.into());
        for number in [device, inode, kind, mode, user, group, links, size, written.1, changed.1] {
            self.push_number(number);
        }
        for seconds in [written.0, changed.0] {
            self.push_text(&seconds.to_string());
        }
    }
}

struct JournalReader<'a>(&'a [u8]);

impl<'a> JournalReader<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (word, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(word)
    }

    fn read_path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.next()?.to_vec()).into())
    }

    fn parse<T: std::str::FromStr>(&mut self) -> Option<T> {
        std::str::from_utf8(self.next()?).ok()?.parse().ok()
    }

    fn read_number(&mut self) -> Option<u64> {
        self.parse()
    }

    fn read_act(&mut self) -> Option<StepAct> {
        Some(match self.next()? {
            b"remove" => StepAct::Remove(self.read_stamp()?),
            b"folder" => StepAct::Folder(self.read_access()?),
            b"mode" => StepAct::Mode { from: self.read_access()?, to: self.read_access()? },
            put @ (b"put" | b"put copy") => {
                let new = self.read_number()?;
                let replaces =
                    if self.read_number()? == 1 { Some(self.read_stamp()?) } else { None };
                StepAct::Put { new, replaces, copied: put != b"put" }
            }
            _ => return None,
        })
    }

    fn read_access(&mut self) -> Option<Access> {
        Some(Access { mode: self.parse()?, owner: (self.parse()?, self.parse()?) })
    }

    fn read_stamp(&mut self) -> Option<Stamp> {
        let (device, inode) = (self.parse()?, self.parse()?);
        let (kind, mode) = (self.parse()?, self.parse()?);
        let owner = (self.parse()?, self.parse()?);
        let (links, size) = (self.parse()?, self.parse()?);
        let (written, changed) = (self.parse()?, self.parse()?);
        let (written, changed) = ((self.parse()?, written), (self.parse()?, changed));
        Some(Stamp { device, inode, kind, mode, owner, links, size, written, changed })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    prop_compose! {
        fn stamps()(
            (device, inode, links, size) in any::<(u64, u64, u64, u64)>(),
            (kind, mode) in any::<(u32, u32)>(),
            owner in any::<(u32, u32)>(),
            written in any::<(i64, u64)>(),
            changed in any::<(i64, u64)>(),
        ) -> Stamp {
            Stamp { device, inode, kind, mode, owner, links, size, written, changed }
        }
    }

    prop_compose! {
        fn accesses()(mode: u32, owner in any::<(u32, u32)>()) -> Access {
            Access { mode, owner }
        }
    }

    fn acts() -> impl Strategy<Value = StepAct> {
        prop_oneof![
            stamps().prop_map(StepAct::Remove),
            accesses().prop_map(StepAct::Folder),
            (any::<u64>(), proptest::option::of(stamps()), any::<bool>())
                .prop_map(|(new, replaces, copied)| StepAct::Put { new, replaces, copied }),
            (accesses(), accesses()).prop_map(|(from, to)| StepAct::Mode { from, to }),
        ]
    }

    fn paths() -> impl Strategy<Value = PathBuf> {
        vec(1_u8.., 0..9).prop_map(|bytes| OsString::from_vec(bytes).into())
    }

    proptest! {
        #[test]
        fn layer_journal_round_trips_and_a_truncated_one_is_rejected(
            roots in vec((paths(), paths(), paths()), 0..3),
            steps in vec((0_usize..9, paths(), acts()), 0..6),
            cut: prop::sample::Index,
        ) {
            let root = |(at, upper, aside)| KeepRoot { at, upper, aside };
            let step = |(root, below, act)| Step { place: (root, below), act };
            let journal = Journal {
                roots: roots.into_iter().map(root).collect(),
                steps: steps.into_iter().map(step).collect(),
            };
            let bytes = journal.to_bytes();
            prop_assert_eq!(Journal::from_bytes(&bytes), Some(journal));
            prop_assert_eq!(Journal::from_bytes(&bytes[..cut.index(bytes.len())]), None);
        }
    }
}
