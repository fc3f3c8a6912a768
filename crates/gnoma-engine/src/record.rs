//! Writes a session down while it happens.
//!
//! The session waits until a message is stored; for what is noted beside it (who was called, what
//! was judged, what it cost) nobody waits, but the order is kept: one task writes, out of a bounded
//! queue. Each entry goes after the last one that the store has acknowledged, so whatever became of
//! one that it did not acknowledge, the path to the tip is the conversation.
//!
//! A failing store stops nothing. What is missing afterwards is the end of the history, which the
//! session has anyway, so nothing piles up here while the store is down.

mod failure;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    CallId, Message, ToolResult, Usage, duration,
    session::NoticeLevel,
    store::{
        Durability, EntryId, NewEntry, NewSession, PageRequest, Parent, Record, SessionId,
        SessionStore, StoreError, StoreErrorKind,
    },
    task::box_future,
    tool::ON_TRIAL,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use failure::RecordingFailure;

use crate::{compact::MAX_TAIL_MESSAGES, session_notices::NoticeSender};

/// Entries that may wait to be written; with more, the caller waits.
const MAX_QUEUED: usize = 64;

/// The time that a store may take for one entry before it counts as failing.
const PATIENCE: Duration = Duration::from_secs(15);

/// Entries that are read at once where the end of a continued session is looked at.
const PAGE_ENTRIES: usize = 256;
/// Bytes that are read at once there.
const PAGE_BYTES: usize = 1 << 20;
/// Most pages that are read there.
const MAX_PAGES: usize = 64;

type SessionBegunCallback = Box<dyn Fn(&SessionId) + Send + Sync>;
type Clock = Box<dyn Fn() -> i64 + Send + Sync>;

/// The parts that a recorder is made of.
pub(crate) struct RecorderOptions {
    pub(crate) store: Arc<dyn SessionStore>,
    /// The session to continue, which must be held.
    pub(crate) session: Option<SessionId>,
    /// Messages at the start; those of a continued session are stored already.
    pub(crate) history_len: usize,
    pub(crate) begun: SessionBegunCallback,
    pub(crate) now_ms: Clock,
    pub(crate) asides: NoticeSender,
    /// That nothing can be written was said.
    pub(crate) is_told: bool,
}

/// The session's end of the queue. Dropping it stops the writing.
pub(crate) struct Recorder {
    ink: RecordSender,
    /// The number of messages of the history that are stored.
    stored: usize,
    /// With the next message a store that failed is tried again.
    may_retry: bool,
    /// True if something is stored that a loss of power could still destroy.
    is_unflushed: bool,
    /// Calls of this turn about which a person was asked.
    asked: HashSet<CallId>,
    /// Calls of the last message that have ended.
    ended: usize,
    writer: JoinSet<()>,
    asides: NoticeSender,
    has_broken: bool,
}

impl Recorder {
    /// Starts the writing task. Touches the store only when the first message comes.
    pub(crate) fn new(options: RecorderOptions) -> Self {
        let stored = if options.session.is_some() { options.history_len } else { 0 };
        if let Some(session) = &options.session {
            (options.begun)(session);
        }
        let (queue, jobs) = mpsc::channel(MAX_QUEUED);
        let asides = options.asides.clone();
        let mut writer = JoinSet::new();
        writer.spawn(box_future(Writer::new(options).run_queue(jobs)));
        Self {
            ink: RecordSender(queue),
            stored,
            may_retry: false,
            is_unflushed: false,
            asked: HashSet::new(),
            ended: 0,
            writer,
            asides,
            has_broken: false,
        }
    }

    /// For what is noted from elsewhere. Writing ends only when all of it is dropped.
    pub(crate) fn record_sender(&self) -> RecordSender {
        self.ink.clone()
    }

    /// Prepares for a new turn: allows a store that failed to be tried again, and forgets the questions of the last
    /// turn.
    pub(crate) fn turn_begins(&mut self) {
        self.may_retry = true;
        self.asked.clear();
    }

    /// Stores what of the history is not stored yet, and waits for it as far as the store works.
    pub(crate) async fn store_history(&mut self, history: &[Arc<Message>], durability: Durability) {
        self.ended = 0;
        let missing = history.iter().enumerate().skip(self.stored);
        for (at, message) in missing {
            let is_last = at + 1 == history.len();
            let durability = if is_last { durability } else { Durability::Process };
            let record = Record::Message(Arc::clone(message));
            let retry = std::mem::take(&mut self.may_retry);
            if !self.ink.store_record(record, durability, retry).await {
                return self.tell_if_broken();
            }
            self.stored = at + 1;
            self.is_unflushed = durability == Durability::Process;
        }
    }

    /// Notes that from now on models receive `summary` instead of the first `messages`. If the store has failed and
    /// lacks some of them, the note is left out: whoever continues the session finds all messages.
    pub(crate) async fn record_summary(
        &mut self,
        summary: String,
        history: &[Arc<Message>],
        messages: usize,
    ) {
        if self.stored == history.len() {
            let tail = history.len().saturating_sub(messages);
            let summary = EntryContent::Summary { text: summary, tail };
            self.ink.put_words(summary, Durability::Process, false).await;
        }
    }

    /// Notes that models receive everything again.
    pub(crate) async fn clear_summary(&mut self) {
        let nothing = Record::Summary { text: String::new(), up_to: EntryId(0) };
        self.ink.store_record(nothing, Durability::Process, false).await;
    }

    /// Stores the result of one of `calls` where others have not ended; else a message with all results follows at once.
    pub(crate) async fn tool_ended(&mut self, result: &ToolResult, calls: usize) {
        self.ended += 1;
        if self.ended < calls {
            self.ink
                .store_record(Record::ToolEnded(result.clone()), Durability::Process, false)
                .await;
        }
    }

    /// Notes what goes beside the conversation. Waits for what tells, after a crash, whether a call
    /// can have run, and how: the question about it and the answer, that it runs on trial, and, of several calls, that
    /// it is this one's turn. One alone that nobody was asked about may have.
    pub(crate) async fn add_record(&mut self, record: Record, calls: usize) {
        let tells = match &record {
            Record::Asked { call } => {
                self.asked.insert(call.clone());
                true
            }
            Record::Judged { call, reason, .. } => {
                calls > 1 || self.asked.contains(call) || reason.starts_with(ON_TRIAL)
            }
            _ => false,
        };
        if tells {
            self.ink.store_record(record, Durability::Process, false).await;
        } else {
            self.ink.queue_record(record).await;
        }
    }

    /// The task that writes is gone only when the store has panicked.
    fn tell_if_broken(&mut self) {
        if self.ink.0.is_closed() && !std::mem::replace(&mut self.has_broken, true) {
            self.asides.warn(
                "this conversation is no longer saved: the session store crashed. You can keep working; restart gnoma to save again"
                    .to_owned(),
            );
        }
    }

    /// A turn has ended: what is stored of it now survives a power failure. A store that failed meanwhile gets
    /// another chance, because no other turn may follow.
    pub(crate) async fn turn_ends(&mut self, history: &[Arc<Message>]) {
        if self.stored < history.len() {
            self.may_retry = true;
            self.store_history(history, Durability::Disk).await;
        }
        if std::mem::take(&mut self.is_unflushed) {
            // The turn ended with a call that gave nothing; as far as is known it used nothing.
            let nothing = Record::Used(Usage::default());
            self.ink.store_record(nothing, Durability::Disk, true).await;
        }
    }

    /// Writes what is queued and lets go of the session.
    pub(crate) async fn close(self) {
        let Self { ink, mut writer, .. } = self;
        drop(ink);
        while writer.join_next().await.is_some() {}
    }
}

/// The content of an entry to write.
enum EntryContent {
    Record(Record),
    /// A summary of all but the last messages.
    Summary {
        text: String,
        /// The number of messages at the end that the summary does not replace.
        tail: usize,
    },
}

/// An entry to write.
struct RecordJob {
    words: EntryContent,
    durability: Durability,
    /// A store that failed is tried again.
    retry: bool,
    /// Told whether it is stored.
    done: Option<oneshot::Sender<bool>>,
}

impl RecordJob {
    /// Returns the record of the entry and the failures that it must survive; `None` if the record depends on what
    /// is stored before it.
    fn to_record(&self) -> Option<(Record, Durability)> {
        match &self.words {
            EntryContent::Record(record) => Some((record.clone(), self.durability)),
            EntryContent::Summary { .. } => None,
        }
    }
}

/// The way into the queue.
#[derive(Clone, Debug)]
pub(crate) struct RecordSender(mpsc::Sender<RecordJob>);

impl RecordSender {
    /// Queues an entry. Waits only while the queue is full.
    async fn queue_record(&self, record: Record) {
        let words = EntryContent::Record(record);
        let job = RecordJob { words, durability: Durability::Process, retry: false, done: None };
        drop(self.0.send(job).await);
    }

    /// Queues an entry and waits; says whether it is stored.
    pub(crate) async fn store_record(
        &self,
        record: Record,
        durability: Durability,
        retry: bool,
    ) -> bool {
        self.put_words(EntryContent::Record(record), durability, retry).await
    }

    async fn put_words(&self, words: EntryContent, durability: Durability, retry: bool) -> bool {
        let (done, answer) = oneshot::channel();
        let job = RecordJob { words, durability, retry, done: Some(done) };
        self.0.send(job).await.is_ok() && answer.await.unwrap_or(false)
    }
}

/// The task that writes.
struct Writer {
    store: Arc<dyn SessionStore>,
    session: Option<SessionId>,
    /// The last entry that the store acknowledged.
    last: Option<EntryId>,
    /// The entry directly before each of the latest messages.
    before: VecDeque<Option<EntryId>>,
    /// The place in the store at which the first entry goes.
    first: Parent,
    begun: SessionBegunCallback,
    now_ms: Clock,
    asides: NoticeSender,
    down: Option<RecordingFailure>,
    /// The last reported failure, until something is stored again.
    told: Option<StoreErrorKind>,
}

impl Writer {
    fn new(options: RecorderOptions) -> Self {
        let RecorderOptions { store, session, begun, now_ms, asides, is_told, .. } = options;
        let first = if session.is_some() { Parent::Tip } else { Parent::Start };
        let (last, before) = (None, VecDeque::new());
        let told = is_told.then_some(StoreErrorKind::ReadOnly);
        Self { store, session, last, before, first, begun, now_ms, asides, down: None, told }
    }

    async fn run_queue(mut self, mut jobs: mpsc::Receiver<RecordJob>) {
        let mut waiting = Vec::new();
        while jobs.recv_many(&mut waiting, MAX_QUEUED).await > 0 {
            while !waiting.is_empty() {
                let (count, are_stored) = self.write(&waiting).await;
                for done in waiting.drain(..count).filter_map(|job| job.done) {
                    // Whoever waited may be gone.
                    let _gone = done.send(are_stored);
                }
            }
        }
        if let (Some(session), None | Some(RecordingFailure::ForNow)) = (self.session, self.down) {
            // A store that cannot let go now is not worth a word: the hold ends with the process.
            drop(timeout(PATIENCE, self.store.release_session(session)).await);
        }
    }

    /// Writes the first of these entries, and those after it that the store takes with it, unless the store
    /// is given up. Says how many entries these are and whether they are stored.
    async fn write(&mut self, jobs: &[RecordJob]) -> (usize, bool) {
        match self.down {
            Some(RecordingFailure::ForGood) => return (1, false),
            Some(RecordingFailure::ForNow) if jobs.first().is_none_or(|job| !job.retry) => {
                return (1, false);
            }
            Some(RecordingFailure::ForNow) | None => (),
        }
        let mut count = 1;
        let mut appended = timeout(PATIENCE, self.append(jobs)).await;
        // It may be one of those behind the first that the store does not take.
        if let ([first, _, ..], Ok(Err(error))) = (jobs, &appended)
            && matches!(RecordingFailure::because_of(&error.kind), RecordingFailure::ForGood)
        {
            appended = timeout(PATIENCE, self.append(std::slice::from_ref(first))).await;
        }
        match appended {
            Ok(Ok(stored)) => {
                count = stored;
                self.is_up();
            }
            Ok(Err(error)) => self.is_down(RecordingFailure::because_of(&error.kind), error),
            // Nobody shall wait as long as that again.
            Err(_late) => self.is_down(RecordingFailure::ForGood, no_answer()),
        }
        (count, self.down.is_none())
    }

    async fn append(&mut self, jobs: &[RecordJob]) -> Result<usize, StoreError> {
        let mut records: Vec<_> = jobs.iter().map_while(RecordJob::to_record).collect();
        if let Some(EntryContent::Summary { text, tail }) = jobs.first().map(|job| &job.words) {
            match self.before_last(*tail).await? {
                Some(up_to) => {
                    let text = text.clone();
                    records = vec![(Record::Summary { text, up_to }, Durability::Process)];
                }
                // Nobody can say what it stands for; without it nothing is lost.
                None => return Ok(1),
            }
        }
        let at_ms = (self.now_ms)();
        let session = match &self.session {
            Some(session) => session.clone(),
            None => self.begin_session(at_ms).await?,
        };
        let parent = self.last.map_or(self.first, Parent::After);
        let are_messages: Vec<_> =
            records.iter().map(|(record, _)| matches!(record, Record::Message(_))).collect();
        let entry = |(record, durability)| {
            let session = session.clone();
            NewEntry { session, parent, at_ms, record, durability }
        };
        let new: Vec<_> = records.into_iter().map(entry).collect();
        let entries = match self.store.append_all(new.clone()).await {
            // The last entry was lost to damage and the rest recovered: it continues from there.
            Err(error) if error.kind == StoreErrorKind::NotFound && self.last.is_some() => {
                let at_tip = |new| NewEntry { parent: Parent::Tip, ..new };
                self.store.append_all(new.into_iter().map(at_tip).collect()).await?
            }
            appended => appended?,
        };
        for (entry, is_message) in entries.iter().zip(are_messages) {
            let before = self.last.replace(*entry);
            if is_message {
                self.before.push_back(before);
                if self.before.len() > MAX_TAIL_MESSAGES {
                    self.before.pop_front();
                }
            }
        }
        Ok(entries.len().max(1))
    }

    /// The entry right before the last `tail` messages.
    async fn before_last(&self, tail: usize) -> Result<Option<EntryId>, StoreError> {
        let known = match tail {
            0 => self.last,
            _ => {
                let at = self.before.len().checked_sub(tail);
                at.and_then(|at| *self.before.get(at)?)
            }
        };
        if known.is_some() {
            return Ok(known);
        }
        let Some(session) = &self.session else { return Ok(None) };
        self.look_back(session, tail).await
    }

    /// Goes on with a session whose last messages were stored before it was continued.
    async fn look_back(
        &self,
        session: &SessionId,
        tail: usize,
    ) -> Result<Option<EntryId>, StoreError> {
        let (max_entries, max_bytes) = (PAGE_ENTRIES, PAGE_BYTES);
        let mut request = PageRequest { tip: self.last, max_entries, max_bytes };
        let mut left = tail;
        for _ in 0..MAX_PAGES {
            let page = self.store.load(session.clone(), request).await?;
            for entry in page.entries.iter().rev() {
                if left == 0 {
                    return Ok(Some(entry.id));
                }
                left -= usize::from(matches!(entry.record, Record::Message(_)));
            }
            if page.earlier.is_none() {
                break;
            }
            request.tip = page.earlier;
        }
        Ok(None)
    }

    async fn begin_session(&mut self, at_ms: i64) -> Result<SessionId, StoreError> {
        let session = self.store.begin(NewSession { at_ms, ..NewSession::default() }).await?;
        self.store.hold_session(session.clone(), at_ms).await?;
        (self.begun)(&session);
        self.session = Some(session.clone());
        Ok(session)
    }

    fn is_up(&mut self) {
        if self.down.take().is_some() {
            self.told = None;
            let text = "the conversation is saved again, including what was missing".to_owned();
            self.asides.send_notice(NoticeLevel::Info, text);
        }
    }

    fn is_down(&mut self, down: RecordingFailure, error: StoreError) {
        self.down = Some(down);
        if self.told.as_ref() != Some(&error.kind) {
            let StoreError { kind, sentence } = error;
            let remedy = down.remedy();
            self.asides.warn(format!("this conversation is not being saved: {sentence}; {remedy}"));
            self.told = Some(kind);
        }
    }
}

fn no_answer() -> StoreError {
    let sentence =
        format!("the session store did not respond for {}", duration::format_duration(PATIENCE));
    StoreError::new(StoreErrorKind::Busy, sentence)
}
