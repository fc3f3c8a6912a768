//! The elfs of one session that run in the background. Whoever drops it ends them all.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    CallId,
    session::NoticeLevel,
    task::box_future,
    tool::{ChildControl, ChildHandle, ChildLink, ToolEvent, ToolSession},
};
use tokio::{
    sync::{Notify, mpsc::error::TrySendError, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    report::{self, ElfReport},
    run::{ElfRun, GRACE},
    task::PlannedElf,
};

/// Most elfs of a session that run in the background at once.
pub(super) const MAX_RUNNING: usize = 50;
/// Most elfs whose results wait to be read; of the oldest a sentence stays.
const MAX_UNREAD: usize = 64;
/// Most of those sentences.
const MAX_SENTENCES: usize = 256;
/// Names of elfs whose results were read.
const MAX_READ: usize = 64;

/// The elfs of one session that run in the background, and those whose results nobody has read.
#[derive(Default)]
pub(super) struct ElfManager(Mutex<Elfs>);

#[derive(Default)]
struct Elfs {
    elfs: Vec<Elf>,
    read: VecDeque<String>,
    /// The names of elfs whose results were not read in time, with what is left of these results.
    sentences: VecDeque<(String, String)>,
    /// The tasks of the elfs; dropping the set ends them.
    tasks: JoinSet<()>,
}

/// The reason why an elf in the background cannot be used, for the model.
#[derive(thiserror::Error)]
pub(super) enum ElfError {
    #[error("`send` needs a `text`, and one elf in `names`")]
    SendArguments,
    #[error("there is no elf `{0}`: none runs in the background")]
    NoneRuns(String),
    #[error("there is no elf `{name}`; choose one of: {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("the result of elf `{0}` was already delivered")]
    Delivered(String),
    #[error(
        "the result of elf `{name}` was older than {MAX_UNREAD} unread others; only this line \
         was saved: {sentence}"
    )]
    Dropped { name: String, sentence: String },
    #[error("elf `{0}` has ended; `wait` gives its result")]
    Ended(String),
    #[error("too many messages are waiting for elf `{0}`; send it again later")]
    TooManyMessages(String),
    #[error("elf `{0}` is ending")]
    Ending(String),
}

gnoma_core::debug_as_display!(ElfError);

/// An elf in the background.
#[derive(Clone)]
struct Elf {
    name: String,
    about: String,
    begun: Instant,
    handle: ChildHandle,
    cancel: Arc<Notify>,
    end: watch::Receiver<Option<Arc<ElfReport>>>,
    /// The number of calls that wait for the end of the elf.
    awaited: watch::Sender<usize>,
    /// A call has given its result.
    is_read: Arc<AtomicBool>,
}

impl Elf {
    fn is_running(&self) -> bool {
        self.end.borrow().is_none() && self.end.has_changed().is_ok()
    }
}

/// Counts a call that waits, as long as it does.
struct WaitCounter(watch::Sender<usize>);

impl WaitCounter {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for WaitCounter {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Elfs {
    /// Makes room for one more: of the oldest result that nobody has read a sentence stays.
    fn make_room(&mut self) {
        while self.elfs.len() >= MAX_UNREAD
            && let Some(at) = self.elfs.iter().position(|elf| !elf.is_running())
        {
            let elf = self.elfs.remove(at);
            let sentence = elf.end.borrow().as_ref().map(|report| report.to_sentence());
            if self.sentences.len() >= MAX_SENTENCES {
                self.sentences.pop_front();
            }
            self.sentences.push_back((elf.name, sentence.unwrap_or_default()));
        }
    }
}

impl ElfManager {
    fn lock_state(&self) -> MutexGuard<'_, Elfs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_running(&self) -> usize {
        self.lock_state().elfs.iter().filter(|elf| elf.is_running()).count()
    }

    pub(super) fn is_taken(&self, name: &str) -> bool {
        let state = self.lock_state();
        state.elfs.iter().any(|elf| elf.name == name)
            || state.read.iter().any(|read| read == name)
            || state.sentences.iter().any(|(gone, _)| gone == name)
    }

    /// Starts an elf that continues when the call that starts it is over.
    pub(super) fn start(
        &self,
        mut planned: PlannedElf,
        session: Arc<dyn ToolSession>,
        (call, stop): (CallId, CancellationToken),
    ) {
        planned.child.call = Some(call);
        let (link, handle) = ChildLink::new();
        let (told, end) = watch::channel(None);
        let (cancel, awaited) = (Arc::<Notify>::default(), watch::Sender::new(0));
        let is_read = Arc::<AtomicBool>::default();
        let elf = Elf {
            name: planned.name.clone(),
            about: planned.about.clone(),
            begun: Instant::now(),
            handle: handle.clone(),
            cancel: Arc::clone(&cancel),
            end,
            awaited: awaited.clone(),
            is_read: Arc::clone(&is_read),
        };
        // A call of its own: what it asks does not end with the call that starts it.
        let call = CallId::new(format!("elf-{}", planned.name));
        let port = Arc::clone(&session);
        let run = ElfRun { planned, session, call: call.clone(), stop, link, handle, cancel };
        let mut state = self.lock_state();
        while state.tasks.try_join_next().is_some() {}
        state.make_room();
        state.elfs.push(elf);
        state.tasks.spawn(box_future(async move {
            let report = Arc::new(run.run_to_end().await);
            told.send_replace(Some(Arc::clone(&report)));
            let text = format!("elf `{}`: {}", report.name, report.to_line());
            port.emit_event(
                call,
                ToolEvent::Notice { level: NoticeLevel::Info, text: text.clone() },
            );
            // A call that waits for the result reads it, unless the call gives up.
            let _never = awaited.subscribe().wait_for(|count| *count == 0).await.is_ok();
            if !is_read.load(Ordering::Relaxed) {
                port.deliver_to_model(format!("{text}; `elf` with action `wait` gives its result"))
                    .await;
            }
        }));
    }

    /// Describes the state of the elfs.
    pub(super) fn describe_status(&self) -> String {
        let state = self.lock_state();
        let line = |elf: &Elf| match elf.end.borrow().as_ref() {
            Some(ended) => {
                format!("- `{}` ({}): {}; unread\n", elf.name, elf.about, ended.to_line())
            }
            None => {
                let status = elf.handle.status.borrow().clone();
                report::describe_running(&elf.name, &elf.about, &status, elf.begun.elapsed())
            }
        };
        let gone = state.sentences.iter().map(|(name, sentence)| {
            format!("- `{name}`: {sentence}; unread, and only this line was saved\n")
        });
        let lines: String = state.elfs.iter().map(line).chain(gone).collect();
        if lines.is_empty() { "no elfs run in the background\n".to_owned() } else { lines }
    }

    /// Returns the elfs of these names, or all if there are no names.
    fn select_elfs(&self, names: &[String]) -> Result<Vec<Elf>, ElfError> {
        let state = self.lock_state();
        if names.is_empty() {
            return Ok(state.elfs.clone());
        }
        let found = names.iter().map(|name| {
            let found = state.elfs.iter().find(|elf| elf.name == *name);
            found.cloned().ok_or_else(|| unknown_elf(&state, name))
        });
        found.collect()
    }

    /// The results of these elfs, or of all, once they have ended; and the names of those that have not
    /// within that time.
    pub(super) async fn wait(
        &self,
        names: &[String],
        patience: Duration,
    ) -> Result<(Vec<Arc<ElfReport>>, Vec<String>), ElfError> {
        let meant = self.select_elfs(names)?;
        let until = Instant::now() + patience;
        let _awaits: Vec<_> = meant.iter().map(|elf| WaitCounter::new(&elf.awaited)).collect();
        let (mut ended, mut running) = (Vec::new(), Vec::new());
        for mut elf in meant {
            let end = timeout_at(until, elf.end.wait_for(Option::is_some)).await;
            match end.ok().and_then(Result::ok).and_then(|end| end.clone()) {
                Some(report) => ended.push(report),
                None => running.push(elf.name),
            }
        }
        self.mark_read(&ended);
        Ok((ended, running))
    }

    /// Their results were read.
    fn mark_read(&self, reports: &[Arc<ElfReport>]) {
        let mut state = self.lock_state();
        for report in reports {
            let read = state.elfs.extract_if(.., |elf| elf.name == report.name);
            read.for_each(|elf| elf.is_read.store(true, Ordering::Relaxed));
            state.read.push_back(report.name.clone());
            if state.read.len() > MAX_READ {
                state.read.pop_front();
            }
        }
    }

    /// Tells an elf something.
    pub(super) fn send_message(&self, name: &str, text: &str) -> Result<(), ElfError> {
        let meant = self.select_elfs(&[name.to_owned()])?;
        let Some(elf) = meant.first().filter(|elf| elf.is_running()) else {
            return Err(ElfError::Ended(name.to_owned()));
        };
        match elf.handle.control.try_send(ChildControl::Say(text.to_owned())) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(ElfError::TooManyMessages(name.to_owned())),
            Err(TrySendError::Closed(_)) => Err(ElfError::Ending(name.to_owned())),
        }
    }

    /// Stops these elfs, or all, and gives what came of them until then.
    pub(super) async fn cancel(&self, names: &[String]) -> Result<Vec<Arc<ElfReport>>, ElfError> {
        self.select_elfs(names)?.iter().for_each(|elf| elf.cancel.notify_one());
        Ok(self.wait(names, GRACE * 2).await?.0)
    }
}

/// Returns the reason why no elf of this name is in the background.
fn unknown_elf(state: &Elfs, name: &str) -> ElfError {
    let name = name.to_owned();
    if state.read.contains(&name) {
        return ElfError::Delivered(name);
    }
    if let Some((_, sentence)) = state.sentences.iter().find(|(gone, _)| *gone == name) {
        return ElfError::Dropped { name, sentence: sentence.clone() };
    }
    if state.elfs.is_empty() {
        return ElfError::NoneRuns(name);
    }
    let known = state.elfs.iter().map(|elf| elf.name.clone()).collect();
    ElfError::Unknown { name, known }
}
