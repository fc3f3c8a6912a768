//! All that a session keeps, in one hand: its conversation, its files, its large results.
//!
//! Says when; [`crate::record`], [`crate::checkpoint`] and [`crate::large_results`] say how. Without ports
//! every function here is nothing.

use std::{sync::Arc, time::Duration};

use gnoma_core::{Event, Message, session::SessionState, store::Durability, task::box_future};
use gnoma_guard::firewall::Firewall;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::{
    checkpoint::CheckpointSaver,
    event_audit,
    large_results::LargeResults,
    limits::Limits,
    persistence_options::PersistenceOptions,
    record::{self, Recorder},
    session_notices::{NoticeSender, SessionNotice},
};

/// The time that a session which ends waits until the files of its last turn are saved.
const LAST_FILES: Duration = Duration::from_secs(30);

/// All that a session keeps: its conversation, its files and its large results.
pub(crate) struct Persistence {
    recorder: Option<Recorder>,
    pub(crate) files: Option<Arc<CheckpointSaver>>,
    pub(crate) large_results: Option<Arc<LargeResults>>,
    /// The notices that are to be shown to people.
    pub(crate) asides: mpsc::Receiver<SessionNotice>,
    /// A call of this turn may have changed files.
    has_written: bool,
    /// Files being kept after turns.
    closing: JoinSet<()>,
}

impl Persistence {
    pub(crate) fn new(
        keeping: PersistenceOptions,
        firewall: &Arc<Firewall>,
        limits: &Limits,
        history_len: usize,
    ) -> Self {
        let (tell, asides) = NoticeSender::channel();
        let PersistenceOptions { store, begun, result_store, checkpoints, unkept, is_told, now_ms } =
            keeping;
        let recorder = store.map(|(store, session)| {
            let asides = tell.clone();
            Recorder::new(record::RecorderOptions {
                store,
                session,
                history_len,
                begun,
                now_ms,
                asides,
                is_told,
            })
        });
        let files = checkpoints.map(|checkpoints| {
            let ink = recorder.as_ref().map(Recorder::record_sender);
            Arc::new(CheckpointSaver::new(checkpoints, unkept, ink, tell.clone(), is_told))
        });
        let large_results = result_store.map(|result_store| {
            let firewall = Arc::clone(firewall);
            Arc::new(LargeResults::new(result_store, firewall, limits.result_tokens, tell))
        });
        let closing = JoinSet::new();
        Self { recorder, files, large_results, asides, has_written: false, closing }
    }

    /// Stores what an event means, before anybody hears of it. `turn_ends` with the wishes that the
    /// event is one of.
    pub(crate) async fn store_event(
        &mut self,
        event: &Event,
        history: &[Arc<Message>],
        turn_ends: bool,
    ) {
        if let Event::TurnEnded { .. } = event {
            self.keep_files_after_turn();
        }
        let Some(recorder) = &mut self.recorder else { return };
        let calls = || history.last().map_or(0, |message| message.tool_calls().count());
        match event {
            Event::State(SessionState::Active) => recorder.turn_begins(),
            Event::Appended(_) if turn_ends => {
                recorder.store_history(history, Durability::Disk).await;
            }
            Event::Appended(_) => recorder.store_history(history, Durability::Process).await,
            Event::TurnEnded { .. } => recorder.turn_ends(history).await,
            Event::Compacted { summary, messages }
            | Event::Uncompacted { summary: Some(summary), messages } => {
                recorder.record_summary(summary.clone(), history, *messages).await;
            }
            Event::Uncompacted { summary: None, .. } => recorder.clear_summary().await,
            Event::ToolEnded { result, .. } => recorder.tool_ended(result, calls()).await,
            other => {
                if let Some(record) = event_audit::note_of(other) {
                    recorder.add_record(record, calls()).await;
                }
            }
        }
    }

    /// The model is about to ask for a call that may change files.
    pub(crate) fn prepare_checkpoint(&self) {
        if let Some(files) = &self.files {
            files.checkpoints.preload_workspace();
        }
    }

    /// A call that may change files is about to run: who keeps them before.
    pub(crate) fn begin_write(&mut self) -> Option<Arc<CheckpointSaver>> {
        self.has_written = true;
        self.files.clone()
    }

    fn keep_files_after_turn(&mut self) {
        while self.closing.try_join_next().is_some() {}
        if std::mem::take(&mut self.has_written)
            && let Some(files) = self.files.clone()
        {
            self.closing.spawn(box_future(async move { files.keep_after_turn().await }));
        }
    }

    /// Ends what is under way. The session's tools have ended.
    pub(crate) async fn close(&mut self) {
        let all = async { while self.closing.join_next().await.is_some() {} };
        if timeout(LAST_FILES, all).await.is_err() {
            self.closing.shutdown().await;
        }
        // It holds a pen too.
        self.files = None;
        if let Some(recorder) = self.recorder.take() {
            recorder.close().await;
        }
    }
}
