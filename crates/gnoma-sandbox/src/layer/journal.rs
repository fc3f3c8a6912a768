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
        let mut words = Words(Vec::new());
        words.text(BEGINS);
        words.number(self.roots.len() as u64);
        for root in &self.roots {
            for path in [&root.at, &root.upper, &root.aside] {
                words.path(path);
            }
        }
        words.number(self.steps.len() as u64);
        for step in &self.steps {
            words.number(step.place.0 as u64);
            words.path(&step.place.1);
            words.act(&step.act);
        }
        words.text(ENDS);
        words.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = JournalReader(bytes);
        (words.next()? == BEGINS.as_bytes()).then_some(())?;
        let mut journal = Self::default();
        for _ in 0..words.number()? {
            let (at, upper, aside) = (words.path()?, words.path()?, words.path()?);
            journal.roots.push(KeepRoot { at, upper, aside });
        }
        for _ in 0..words.number()? {
            let root = usize::try_from(words.number()?).ok()?;
            journal.steps.push(Step { place: (root, words.path()?), act: words.act()? });
        }
        (words.next()? == ENDS.as_bytes() && words.0.is_empty()).then_some(journal)
    }
}

/// Words that end in a zero, which no path holds.
struct Words(Vec<u8>);

impl Words {
    fn text(&mut self, text: &str) {
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn path(&mut self, path: &Path) {
        self.0.extend(path.as_os_str().as_bytes());
        self.0.push(0);
    }

    fn number(&mut self, number: u64) {
        self.text(&number.to_string());
    }

    fn act(&mut self, act: &StepAct) {
        match act {
            StepAct::Remove(before) => {
                self.text("remove");
                self.stamp(before);
            }
            StepAct::Folder(access) => {
                self.text("folder");
                self.access(*access);
            }
            StepAct::Put { new, replaces, copied } => {
                self.text(if *copied { "put copy" } else { "put" });
                self.number(*new);
                self.number(replaces.is_some().into());
                if let Some(before) = replaces {
                    self.stamp(before);
                }
            }
            StepAct::Mode { from, to } => {
                self.text("mode");
                self.access(*from);
                self.access(*to);
            }
        }
    }

    fn access(&mut self, access: Access) {
        for number in [access.mode, access.owner.0, access.owner.1] {
            self.number(number.into());
        }
    }

    fn stamp(&mut self, stamp: &Stamp) {
        let Stamp { device, inode, kind, mode, owner, links, size, written, changed } = *stamp;
        let (kind, mode) = (kind.into(), mode.into());
        let (user, group) = (owner.0.into(), owner.1.into());
        for number in [device, inode, kind, mode, user, group, links, size, written.1, changed.1] {
            self.number(number);
        }
        for seconds in [written.0, changed.0] {
            self.text(&seconds.to_string());
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

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.next()?.to_vec()).into())
    }

    fn parse<T: std::str::FromStr>(&mut self) -> Option<T> {
        std::str::from_utf8(self.next()?).ok()?.parse().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.parse()
    }

    fn act(&mut self) -> Option<StepAct> {
        Some(match self.next()? {
            b"remove" => StepAct::Remove(self.stamp()?),
            b"folder" => StepAct::Folder(self.access()?),
            b"mode" => StepAct::Mode { from: self.access()?, to: self.access()? },
            put @ (b"put" | b"put copy") => {
                let new = self.number()?;
                let replaces = if self.number()? == 1 { Some(self.stamp()?) } else { None };
                StepAct::Put { new, replaces, copied: put != b"put" }
            }
            _ => return None,
        })
    }

    fn access(&mut self) -> Option<Access> {
        Some(Access { mode: self.parse()?, owner: (self.parse()?, self.parse()?) })
    }

    fn stamp(&mut self) -> Option<Stamp> {
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
        fn a_journal_is_read_as_it_was_written_and_a_part_of_one_never(
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
