//! The file of scores: versioned, with a checksum, and only replaced as a whole.
//!
//! One JSON object of three fields; the checksum (CRC-32, IEEE 802.3) is over the bytes of the last. A
//! process holds a lock beside the file while it changes it, so that processes never lose each other's scores.

use std::{
    cmp::Ordering,
    fmt,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::{bounded_file, private_file};
use gnoma_router::{ArmId, RouterState, TaskKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of the file now.
pub const FORM: u32 = 1;
/// Largest file that is read; a year of use takes a tenth of it.
pub const MAX_BYTES: u64 = 8 << 20;
/// The time to wait for other processes, each of which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// Projects whose last task is remembered.
const MOST_PROJECTS: usize = 200;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedScores {
    /// The state that the router learnt; `None` if there was nothing yet.
    pub state: Option<RouterState>,
    /// The last task of each project without a verdict on its end, the newest last.
    #[serde(default)]
    pub open: Vec<UnjudgedTask>,
    /// Scores of the older gnoma were taken over.
    #[serde(default)]
    pub imported: bool,
    /// The arms whose work got worse, until a person is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worse: Vec<ArmId>,
}

/// A task that is over and has no verdict yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnjudgedTask {
    /// The key of the project.
    pub project: String,
    /// The session's id in its store.
    pub session: String,
    /// The type of the task.
    pub kind: TaskKind,
    /// The arm that worked on the task last.
    pub arm: ArmId,
    /// The time when the task was over, in milliseconds since 1970.
    pub at_ms: i64,
}

impl SavedScores {
    /// The content before anything is saved.
    pub const NONE: Self =
        Self { state: None, open: Vec::new(), imported: false, worse: Vec::new() };

    /// Remembers arms whose work got worse, each once.
    pub fn remember_worse(&mut self, arms: Vec<ArmId>) {
        self.worse.retain(|known| !arms.contains(known));
        self.worse.extend(arms);
    }

    /// Remembers the last task of a project in place of the one before.
    pub fn remember_task(&mut self, open: UnjudgedTask) {
        self.open.retain(|known| known.project != open.project);
        self.open.push(open);
        let extra = self.open.len().saturating_sub(MOST_PROJECTS);
        self.open.drain(..extra);
    }

    /// Forgets the last task of a project.
    pub fn forget_task(&mut self, project: &str) -> Option<UnjudgedTask> {
        let at = self.open.iter().position(|known| known.project == project)?;
        Some(self.open.remove(at))
    }
}

/// The reason why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateFileError {
    /// The file is not what was written.
    Damaged,
    /// A newer gnoma wrote it.
    Newer,
    /// The file cannot be read at all.
    Unreadable(String),
}

#[derive(Deserialize)]
struct Form {
    gnoma_router: u32,
}

#[derive(Serialize, Deserialize)]
struct ChecksummedState<'a> {
    gnoma_router: u32,
    crc32: String,
    #[serde(borrow)]
    kept: &'a RawValue,
}

/// The bytes of a file.
pub fn encode_state(kept: &SavedScores) -> Result<Vec<u8>, serde_json::Error> {
    let kept = serde_json::value::to_raw_value(kept)?;
    let crc32 = format!("{:08x}", crc32fast::hash(kept.get().as_bytes()));
    let mut bytes =
        serde_json::to_vec(&ChecksummedState { gnoma_router: FORM, crc32, kept: &kept })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Decodes the content of a file from its bytes.
pub fn decode_state(bytes: &[u8]) -> Result<SavedScores, StateFileError> {
    let Ok(wrapped) = gnoma_core::json::from_bytes::<ChecksummedState<'_>>(bytes) else {
        // In a newer one only the number has the form that is known.
        let form = gnoma_core::json::from_bytes::<Form>(bytes);
        let is_newer = form.is_ok_and(|form| form.gnoma_router > FORM);
        return Err(if is_newer { StateFileError::Newer } else { StateFileError::Damaged });
    };
    match wrapped.gnoma_router.cmp(&FORM) {
        Ordering::Greater => return Err(StateFileError::Newer),
        // There was none before this form.
        Ordering::Less => return Err(StateFileError::Damaged),
        Ordering::Equal => (),
    }
    let content = wrapped.kept.get();
    if wrapped.crc32 != format!("{:08x}", crc32fast::hash(content.as_bytes())) {
        return Err(StateFileError::Damaged);
    }
    let kept: SavedScores =
        gnoma_core::json::from_str(content).map_err(|_| StateFileError::Damaged)?;
    match &kept.state {
        Some(state) if state.version > gnoma_router::state::STATE_VERSION => {
            Err(StateFileError::Newer)
        }
        Some(_) | None => Ok(kept),
    }
}

/// The file, wherever it is.
#[derive(Clone, Debug)]
pub(super) struct StateFile(PathBuf);

/// Others wait while this lives.
struct StateFileLock {
    _lock: File,
}

/// The content that was read, and a sentence if something had to be set aside for it.
pub(super) struct LoadedScores {
    pub kept: SavedScores,
    pub told: Option<String>,
}

impl StateFile {
    pub(super) fn at_path(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads it; what cannot be used is set aside. Makes nothing.
    pub(super) fn read(&self) -> io::Result<LoadedScores> {
        match self.read_unlocked() {
            Ok(kept) => Ok(LoadedScores { kept: kept.unwrap_or(SavedScores::NONE), told: None }),
            Err(StateFileError::Unreadable(why)) => Err(io::Error::other(why)),
            Err(StateFileError::Damaged | StateFileError::Newer) => {
                let _alone = self.lock()?;
                self.read_alone()
            }
        }
    }

    /// Changes it under a lock. What `change` gives comes back with what is to be told.
    pub(super) fn update_locked<T>(
        &self,
        change: impl FnOnce(&mut SavedScores) -> T,
    ) -> io::Result<(T, Option<String>)> {
        let _alone = self.lock()?;
        let LoadedScores { mut kept, told } = self.read_alone()?;
        let before = kept.clone();
        let given = change(&mut kept);
        if kept != before {
            self.write(&kept)?;
        }
        Ok((given, told))
    }

    /// `None` where there is no file.
    fn read_unlocked(&self) -> Result<Option<SavedScores>, StateFileError> {
        let bytes = bounded_file::read(&self.0, MAX_BYTES).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => StateFileError::Damaged,
            _ => StateFileError::Unreadable(error.to_string()),
        })?;
        bytes.map(|bytes| decode_state(&bytes)).transpose()
    }

    fn read_alone(&self) -> io::Result<LoadedScores> {
        let (why, ending) = match self.read_unlocked() {
            Ok(kept) => {
                return Ok(LoadedScores { kept: kept.unwrap_or(SavedScores::NONE), told: None });
            }
            Err(StateFileError::Unreadable(why)) => return Err(io::Error::other(why)),
            Err(StateFileError::Damaged) => ("is damaged", "damaged"),
            Err(StateFileError::Newer) => ("was written by a newer gnoma", "newer"),
        };
        let aside = self.set_aside(ending)?;
        let told =
            format!("routing data {why}: moved to `{}`, learning starts over", aside.display());
        Ok(LoadedScores { kept: SavedScores::NONE, told: Some(told) })
    }

    /// Renames the file to an unused name.
    fn set_aside(&self, ending: &str) -> io::Result<PathBuf> {
        const MOST_ASIDE: u32 = 1_000;
        for number in 1..=MOST_ASIDE {
            let aside = self.sibling_path(format_args!("{ending}-{number}"));
            // A link fails where there is something already, which a rename would overwrite.
            match fs::hard_link(&self.0, &aside) {
                Ok(()) => return fs::remove_file(&self.0).map(|()| aside),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(_) if !aside.exists() => return fs::rename(&self.0, &aside).map(|()| aside),
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many files are set aside beside it"))
    }

    fn sibling_path(&self, ending: impl fmt::Display) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(format!(".{ending}"));
        PathBuf::from(name)
    }

    fn lock(&self) -> io::Result<StateFileLock> {
        private_file::create_folder(self.0.parent().unwrap_or(Path::new(".")))?;
        let path = self.sibling_path("lock");
        let file = File::options().create(true).append(true).mode(0o600).open(path)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another gnoma is using it"));
                }
                // Where the file system has no locks one continues without.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(StateFileLock { _lock: file }),
            }
        }
    }

    fn write(&self, kept: &SavedScores) -> io::Result<()> {
        private_file::replace(&self.0, &encode_state(kept)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use gnoma_router::{Attempt, AttemptResult, Router, TaskOutcome, Tuning, classify::TaskType};
    use proptest::prelude::*;

    use super::*;

    fn kept() -> SavedScores {
        let mut kept = SavedScores {
            state: Some(Router::new(Tuning::default()).to_state()),
            ..SavedScores::NONE
        };
        kept.remember_task(open("p", 1));
        kept
    }

    fn open(project: &str, at_ms: i64) -> UnjudgedTask {
        UnjudgedTask {
            project: project.to_owned(),
            session: "s".to_owned(),
            kind: TaskKind::new("debug"),
            arm: ArmId { provider: "a".into(), model: "b".into() },
            at_ms,
        }
    }

    #[test]
    fn state_file_checksum_is_standard_crc32() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32fast::hash(b""), 0);
    }

    #[test]
    fn router_state_file_detects_any_changed_byte() {
        let bytes = encode_state(&kept()).unwrap();
        assert_eq!(decode_state(&bytes), Ok(kept()));
        for at in 0..bytes.len() - 1 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(decode_state(&changed).is_err(), "byte {at}");
        }
        assert_eq!(
            decode_state(br#"{"gnoma_router":2,"anything":[1]}"#),
            Err(StateFileError::Newer)
        );
    }

    #[test]
    fn router_state_file_stays_small() {
        let kinds: Vec<TaskKind> = TaskType::ALL.map(TaskType::task_kind).to_vec();
        let mut router = Router::new(Tuning::default());
        for number in 0..64 {
            for kind in &kinds {
                let arm =
                    ArmId { provider: "a-provider".into(), model: format!("a-model-{number}") };
                let attempt = Attempt { arm, verdict: Some(number % 3 == 0), cost_micro_usd: 70 };
                let tried = vec![AttemptResult { attempt, right: None, weight: 1.0 }];
                router.record_outcome(&TaskOutcome { kind: kind.clone(), tried });
            }
        }
        let mut kept = SavedScores { state: Some(router.to_state()), ..SavedScores::NONE };
        (0..1_000).for_each(|project| kept.remember_task(open(&format!("project-{project}"), 0)));
        let bytes = encode_state(&kept).unwrap();
        assert!(bytes.len() < 500_000, "{} bytes", bytes.len());
        // Numbers may come back with another last digit.
        assert!(decode_state(&bytes).is_ok_and(|read| read.open == kept.open));
    }

    #[test]
    fn unreadable_router_state_file_is_set_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at_path(folder.path().join("router.json"));
        assert_eq!(file.read().unwrap().kept, SavedScores::NONE);
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "looking makes nothing");
        for number in 1..=2 {
            fs::write(file.path(), format!("junk {number}")).unwrap();
            let read = file.read().unwrap();
            assert!(read.told.unwrap().contains("is damaged"));
            let aside = folder.path().join(format!("router.json.damaged-{number}"));
            assert_eq!(fs::read_to_string(aside).unwrap(), format!("junk {number}"));
        }
        fs::write(file.path(), r#"{"gnoma_router":9}"#).unwrap();
        assert!(file.read().unwrap().told.unwrap().contains("newer gnoma"));
        assert!(!file.path().exists());
    }

    #[test]
    fn concurrent_router_state_updates_are_all_saved() {
        const WRITERS: usize = 4;
        const EACH: usize = 10;
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at_path(folder.path().join("deep/router.json"));
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let file = file.clone();
                scope.spawn(move || {
                    for number in 0..EACH {
                        let project = format!("{writer}-{number}");
                        file.update_locked(|kept| kept.remember_task(open(&project, 0))).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().kept.open.len(), WRITERS * EACH);
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn router_state_remembers_one_open_task_per_project() {
        let mut kept = kept();
        kept.remember_task(open("q", 2));
        kept.remember_task(open("p", 3));
        assert_eq!(kept.open.len(), 2);
        assert_eq!(kept.forget_task("p").map(|open| open.at_ms), Some(3));
        assert_eq!(kept.forget_task("p"), None);
    }

    proptest! {
        #[test]
        fn router_state_file_decoder_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _trouble = decode_state(&bytes);
        }
    }
}
