//! Saves what the router learns. Each outcome is added to the current file, under a lock, so that sessions that run at
//! once share one state.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    bounded_file,
    store::{StoreError, StoreErrorKind, StoreFuture},
};
use gnoma_engine::routing;
use gnoma_router::{Arm, ArmId, Attempt, AttemptResult, Router, TaskKind, TaskOutcome, Tuning};
use tokio::task::spawn_blocking;

use super::{
    discovery::KnownArms,
    quality::Quality,
    state_file::{LoadedScores, SavedScores, StateFile, UnjudgedTask},
};
use crate::{Notices, clock::Clock, session_stores::BegunSessionId};

/// Largest file of scores that is read.
pub const MAX_SCORES_BYTES: u64 = 8 << 20;
/// An undo counts for the last task when the conversation continued no longer than this after it: what
/// is written down at a session's end may be a moment younger.
const SAME_MOMENT_MS: i64 = 1_000;

/// The router as it was left, with what was published of the arms.
pub fn restore_router(kept: &SavedScores, known: &[Arc<Arm>]) -> Router {
    let tuning = Tuning::default();
    let state = kept.state.as_ref();
    let restored = state.and_then(|state| Router::from_state(tuning, state).ok());
    let mut router = restored.unwrap_or_else(|| Router::new(tuning));
    router.register_arms(known);
    router
}

/// The place where scores are saved.
#[derive(Clone, Debug)]
pub struct ScoreStore {
    file: StateFile,
    /// The older gnoma's scores, taken over when there is nothing yet.
    scores: PathBuf,
    notices: Notices,
}

impl ScoreStore {
    /// `folder`: the state folder of the profile; `config_dir`: where the older gnoma left its scores.
    pub(super) fn in_folder(folder: &Path, config_dir: &Path, notices: Notices) -> Self {
        let file = StateFile::at_path(folder.join("router.json"));
        Self { file, scores: config_dir.join("quality.json"), notices }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the scores; creates nothing. Reports what had to be set aside.
    pub fn read(&self) -> io::Result<SavedScores> {
        let LoadedScores { kept, told } = self.file.read()?;
        self.report_set_aside(told);
        Ok(kept)
    }

    /// Lets `change` have the router and what else is kept, and keeps both.
    pub fn update_state<T>(
        &self,
        known: &[Arc<Arm>],
        change: impl FnOnce(&mut Router, &mut SavedScores) -> T,
    ) -> io::Result<T> {
        let (given, told) = self.file.update_locked(|kept| {
            let mut router = restore_router(kept, known);
            let given = change(&mut router, kept);
            kept.state = Some(router.to_state());
            given
        })?;
        self.report_set_aside(told);
        Ok(given)
    }

    /// Returns the arms whose work got worse, once for each time.
    pub fn take_worse_arms(&self) -> io::Result<Vec<ArmId>> {
        let (worse, told) = self.file.update_locked(|kept| std::mem::take(&mut kept.worse))?;
        self.report_set_aside(told);
        Ok(worse)
    }

    /// Forgets everything that was learnt.
    pub fn reset(&self) -> io::Result<()> {
        // Scores that were taken over once are not taken over again.
        let (_, told) = self
            .file
            .update_locked(|kept| *kept = SavedScores { imported: true, ..SavedScores::NONE })?;
        self.report_set_aside(told);
        Ok(())
    }

    /// Reports whether an older gnoma left scores that could be imported.
    pub fn has_scores(&self) -> bool {
        self.scores.exists()
    }

    /// Puts another state in place of what was learnt.
    pub fn replace(&self, with: SavedScores) -> io::Result<()> {
        let (_, told) = self.file.update_locked(|kept| *kept = with)?;
        self.report_set_aside(told);
        Ok(())
    }

    /// Takes the older gnoma's scores over, once and where nothing was learnt yet.
    pub fn import_once(&self, kept: SavedScores, known: &[Arc<Arm>]) -> SavedScores {
        if kept.imported || kept.state.is_some() || !self.scores.exists() {
            return kept;
        }
        let taken = self.take_scores(known);
        match taken {
            Ok(kept) => kept,
            Err(error) => {
                let path = self.scores.display();
                self.notices.warning(format_args!("did not import `{path}`: {error}"));
                kept
            }
        }
    }

    fn take_scores(&self, known: &[Arc<Arm>]) -> io::Result<SavedScores> {
        let bytes = bounded_file::read_existing(&self.scores, MAX_SCORES_BYTES)?;
        let quality = Quality::read(&io::read_to_string(&*bytes)?)?;
        let kept = self.teach_scores(&quality, known)?;
        self.notices.info(taken_over(&quality, &self.scores));
        Ok(kept)
    }

    /// Says what had to be set aside.
    fn report_set_aside(&self, aside: Option<String>) {
        if let Some(aside) = aside {
            self.notices.warning(aside);
        }
    }

    /// Teaches scores to what was learnt.
    pub fn teach_scores(&self, quality: &Quality, known: &[Arc<Arm>]) -> io::Result<SavedScores> {
        self.update_state(known, |router, kept| {
            quality.teach_router(router);
            kept.imported = true;
            SavedScores { state: Some(router.to_state()), ..kept.clone() }
        })
    }

    /// Records that a person rewound the last turn: its work was not right. Once for a task; returns false if it is
    /// unknown whose work that was. `ended_ms`: when the conversation last continued.
    pub fn record_rewind(&self, project: &str, session: &str, ended_ms: i64) -> io::Result<bool> {
        let is_it = |open: &UnjudgedTask| {
            open.project == project
                && open.session == session
                && open.at_ms.saturating_add(SAME_MOMENT_MS) >= ended_ms
        };
        if !self.path().exists() || !self.read()?.open.iter().any(is_it) {
            return Ok(false);
        }
        self.update_state(&[], |router, kept| {
            let Some(open) = kept.forget_task(project).filter(is_it) else { return false };
            let attempt = Attempt { arm: open.arm, verdict: None, cost_micro_usd: 0 };
            let tried = vec![AttemptResult { attempt, right: Some(false), weight: 1.0 }];
            router.correct_outcome(&TaskOutcome { kind: open.kind, tried });
            kept.remember_worse(router.take_worse_arms());
            true
        })
    }
}

/// Describes in a sentence how many scores were imported.
pub fn taken_over(quality: &Quality, path: &Path) -> String {
    let lost = match quality.lost {
        0 => String::new(),
        lost => format!("; skipped {lost} that name unknown models or tasks, or are not scores"),
    };
    format!("imported {} scores of `{}`{lost}", quality.score_count(), path.display())
}

/// Remembers for a session.
pub(super) struct OutcomeRecorder {
    pub book: ScoreStore,
    /// The key of the project.
    pub project: String,
    /// The session's id in its store, once there is one.
    pub begun: BegunSessionId,
    pub clock: Clock,
    pub known: KnownArms,
}

impl routing::OutcomeStore for OutcomeRecorder {
    fn learn_outcome(&self, outcome: TaskOutcome) -> StoreFuture<'_, ()> {
        let book = self.book.clone();
        let known = self.known.lock().clone();
        let (project, session) = (self.project.clone(), self.begun.get().map(ToString::to_string));
        let at_ms = self.clock.now_ms();
        let kept = spawn_blocking(move || {
            let open = unjudged_task(&outcome, &project, session, at_ms);
            if !book.path().exists() {
                book.import_once(SavedScores::NONE, &known);
            }
            book.update_state(&known, |router, kept| {
                router.record_outcome(&outcome);
                kept.remember_worse(router.take_worse_arms());
                kept.forget_task(&project);
                open.into_iter().for_each(|open| kept.remember_task(open));
            })
        });
        let path = self.book.path();
        Box::pin(async move {
            match kept.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(not_changed(path, &error)),
                Err(error) => Err(not_changed(path, &error.into())),
            }
        })
    }
}

/// A task whose end nobody has judged, if that is what the outcome tells of.
fn unjudged_task(
    outcome: &TaskOutcome,
    project: &str,
    session: Option<String>,
    at_ms: i64,
) -> Option<UnjudgedTask> {
    let last = outcome.tried.last().filter(|tried| tried.right.is_none())?;
    Some(UnjudgedTask {
        project: project.to_owned(),
        session: session?,
        kind: TaskKind::clone(&outcome.kind),
        arm: last.attempt.arm.clone(),
        at_ms,
    })
}

/// Describes why a file could not be changed, and what to do about it if a user can.
fn not_changed(path: &Path, error: &io::Error) -> StoreError {
    let path = path.display();
    let (kind, sentence) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            StoreErrorKind::Full,
            format!("cannot write `{path}`: the disk is full; free some space"),
        ),
        _ => (StoreErrorKind::Io, format!("`{path}` could not be changed: {error}")),
    };
    StoreError::new(kind, sentence)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ModelRef, store::SessionId};
    use gnoma_engine::routing::OutcomeStore as _;

    use super::*;

    #[test]
    fn router_state_error_on_a_full_disk_says_to_free_space() {
        let told =
            |kind: io::ErrorKind| not_changed(Path::new("router.json"), &kind.into()).sentence;
        assert!(told(io::ErrorKind::StorageFull).ends_with("the disk is full; free some space"));
        assert!(told(io::ErrorKind::PermissionDenied).ends_with("permission denied"));
    }

    fn arm() -> ModelRef {
        ModelRef { provider: "a".into(), model: "b".into() }
    }

    fn outcome(right: Option<bool>) -> TaskOutcome {
        let attempt = Attempt { arm: arm(), verdict: None, cost_micro_usd: 50_000 };
        TaskOutcome {
            kind: TaskKind::new("debug"),
            tried: vec![AttemptResult { attempt, right, weight: 1.0 }],
        }
    }

    fn memory(folder: &Path) -> OutcomeRecorder {
        let begun = BegunSessionId::default();
        begun.set(SessionId::new("s1")).unwrap();
        OutcomeRecorder {
            book: ScoreStore::in_folder(folder, folder, Notices::without_sink()),
            project: "p".to_owned(),
            begun,
            clock: Clock::default(),
            known: KnownArms::default(),
        }
    }

    #[tokio::test]
    async fn rewind_in_another_process_counts_once_as_bad_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        memory.learn_outcome(outcome(None)).await.unwrap();
        let standing = || {
            let kept = memory.book.read().unwrap();
            // What was learnt of an arm counts once it is there.
            let known = Arc::new(Arm::new(arm()));
            restore_router(&kept, &[known]).estimate_arm(&arm(), &TaskKind::new("debug"))
        };
        let quality = || standing().quality;
        let before = quality();
        let tasks = standing().tasks;
        assert!(!memory.book.record_rewind("p", "s2", 0).unwrap());
        assert!(!memory.book.record_rewind("q", "s1", 0).unwrap());
        assert!(!memory.book.record_rewind("p", "s1", i64::MAX).unwrap(), "it went on since");
        assert!(memory.book.record_rewind("p", "s1", 0).unwrap());
        assert!(quality() < before);
        assert_eq!((tasks, standing().tasks), (1, 1), "the task is the same");
        let after = quality();
        assert!(!memory.book.record_rewind("p", "s1", 0).unwrap());
        assert!((quality() - after).abs() < f64::EPSILON);
    }

    #[tokio::test]
    async fn worse_model_warning_appears_once_across_processes() {
        const MOST_TASKS: usize = 40;
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        let overall = Some(gnoma_router::Prior { quality: 0.85, cost: 0.1, tasks: 300.0 });
        let published = Arc::new(gnoma_router::Published { overall, ..Default::default() });
        *memory.known.lock() = [Arc::new(Arm { published, ..Arm::new(arm()) })].into();
        assert!(memory.book.take_worse_arms().unwrap().is_empty());
        let is_noticed = || !memory.book.read().unwrap().worse.is_empty();
        for _ in 0..MOST_TASKS {
            if !is_noticed() {
                memory.learn_outcome(outcome(Some(false))).await.unwrap();
            }
        }
        let again = ScoreStore::in_folder(folder.path(), folder.path(), Notices::without_sink());
        assert_eq!(again.take_worse_arms().unwrap(), [arm()]);
        assert!(memory.book.take_worse_arms().unwrap().is_empty());
    }

    #[tokio::test]
    async fn rated_task_takes_no_further_verdict_from_a_rewind() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        memory.learn_outcome(outcome(Some(true))).await.unwrap();
        assert!(!memory.book.record_rewind("p", "s1", 0).unwrap());
    }

    #[test]
    fn old_quality_scores_are_imported_once() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"scores": {"a/b": {"debug": {"Value": 1, "Count": 9}}}}"#;
        std::fs::write(folder.path().join("quality.json"), text).unwrap();
        let book = ScoreStore::in_folder(folder.path(), folder.path(), Notices::without_sink());
        let kept = book.import_once(book.read().unwrap(), &[]);
        assert!(kept.imported && kept.state.is_some());
        assert_eq!(book.import_once(kept.clone(), &[]), kept);
        book.reset().unwrap();
        let kept = book.read().unwrap();
        assert_eq!(book.import_once(kept.clone(), &[]), kept);
        assert_eq!(kept.state, None);
    }

    #[test]
    fn reading_router_scores_creates_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let book = ScoreStore::in_folder(
            &folder.path().join("state"),
            folder.path(),
            Notices::without_sink(),
        );
        assert!(!book.record_rewind("p", "s", 0).unwrap());
        assert_eq!(book.read().unwrap(), SavedScores::NONE);
        assert!(!folder.path().join("state").exists());
    }
}
