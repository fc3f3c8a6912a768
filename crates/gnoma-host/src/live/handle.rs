//! A handle to a live session of this process.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::{
    protocol::{LiveSession, Request, RequestError, RequestErrorKind, RequestId, SessionSpec},
    session::Outcome,
    store::SessionId,
    sync::Mutex,
    text_truncation,
};
use gnoma_engine::{ProjectCheckRunner, Rights};
use gnoma_router::pool::Scope;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
};

use super::{
    child_status::ChildStatusFold,
    log::EventLog,
    ports::{JobCounter, Services},
    replier::{Replier, ended_error},
    replies::ReplyOutcome as RequestOutcome,
    spending::SpendingSums,
    step_children::StepChildren,
};

/// Characters of a title that is made of the first words.
const MAX_TITLE_CHARS: usize = 80;

/// Merges that are remembered of a session's elfs.
const MAX_MERGES: usize = 20;

/// A request to a session.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) replier: Replier,
}

/// A session that lives in this process. Clones are the same session; the last one's drop ends it.
#[derive(Clone)]
pub(super) struct SessionHandle {
    pub(super) log: EventLog,
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) close: Arc<Notify>,
    pub(super) ended: watch::Receiver<bool>,
    /// The facts about the session that change and are not part of its log.
    pub(super) kept: Arc<Mutex<SessionMeta>>,
    pub(super) _task: Arc<JoinSet<()>>,
}

/// The facts about a session that change and are not part of its log.
pub(super) struct SessionMeta {
    /// The options that the session was last opened with.
    pub(super) spec: SessionSpec,
    /// The title that a user gave the session.
    pub(super) title: Option<String>,
    /// The services that answer requests that the session's engine does not.
    pub(super) services: Arc<dyn Services>,
    /// Whose money it spends.
    pub(super) scope: Scope,
    /// The rights of the session, once its engine is there.
    pub(super) rights: Option<Rights>,
    /// Has the project's checks run in it, once its engine is there and if there are any.
    pub(super) prover: Option<ProjectCheckRunner>,
    /// Counts what runs in the background, once its engine is there.
    pub(super) jobs: Option<JobCounter>,
    /// The outcome of the session's last turn.
    pub(super) outcome: Option<Outcome>,
    /// The information that the session's starter receives about it, if a tool started it.
    pub(super) following: Option<ChildStatusFold>,
    /// The spending of the session and of the sessions below it.
    pub(super) spending: SpendingSums,
    /// `true` if the session starts no other sessions any more.
    pub(super) is_ending: bool,
    /// The results of merging the changes of elfs that worked in copies, the newest last.
    pub(super) merges: VecDeque<String>,
    /// The elfs that do steps of a task.
    pub(super) step_children: StepChildren,
}

impl SessionMeta {
    pub(super) fn remember_merge(&mut self, line: String) {
        if self.merges.len() == MAX_MERGES {
            self.merges.pop_front();
        }
        self.merges.push_back(line);
    }
}

impl SessionHandle {
    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    /// Asks the session; a request that it cannot take is answered at once.
    pub(super) fn send(&self, job: Job) {
        // Dropping the replier with a channel that is closed says that the session has ended.
        if let Err(mpsc::error::TrySendError::Full(job)) = self.jobs.try_send(job) {
            job.replier.reply(Err(busy_error()));
        }
    }

    /// Asks the session and waits for its reply.
    pub(super) async fn ask(&self, request: Request) -> RequestOutcome {
        let (replier, told) = Replier::new(None, "", RequestId(0));
        self.send(Job { request, replier });
        told.await.unwrap_or_else(|_| Err(ended_error()))
    }

    /// Reports whether another session has started this one.
    pub(super) fn has_parent(&self) -> bool {
        self.log.with_view(|view| view.parent.is_some())
    }

    pub(super) fn is_child_of(&self, parent: &SessionId) -> bool {
        self.log.with_view(|view| view.parent.as_ref() == Some(parent))
    }

    /// Asks the session's task to end the session.
    pub(super) fn close(&self) {
        self.close.notify_one();
    }

    /// Waits for its end.
    pub(super) async fn wait_until_ended(&self) {
        let mut ended = self.ended.clone();
        let _gone = ended.wait_for(|ended| *ended).await;
    }

    /// Commands that it runs in the background.
    pub(super) fn count_jobs(&self) -> usize {
        let jobs = self.kept.lock().jobs.clone();
        jobs.map_or(0, |count| count())
    }

    /// Reports whether no client sees the session, and it neither works, also in the background, nor waits for a
    /// user.
    pub(super) fn is_idle(&self) -> bool {
        self.log.is_idle() && self.count_jobs() == 0
    }

    pub(super) fn facts(&self) -> LiveSession {
        let (status, parent, changed_ms, question) = self.log.with_view(|view| {
            let question = view.questions().next().map(|it| title_line(&it.reason).to_owned());
            (view.status(), view.parent.clone(), view.at_ms, question)
        });
        let jobs = self.count_jobs();
        let kept = self.kept.lock();
        let title = match &kept.following {
            Some(it) if !it.name().is_empty() => format!("{}: {}", it.name(), self.first_words()),
            _ => kept.title.clone().unwrap_or_else(|| self.first_words()),
        };
        LiveSession {
            status,
            parent,
            jobs,
            folder: kept.spec.folder.clone(),
            title: match question {
                Some(question) if !title.contains(&question) => {
                    format!("{title} (asks: {question})")
                }
                Some(_) | None => title,
            },
            subscribers: self.log.subscribers(),
            changed_ms,
        }
    }

    fn first_words(&self) -> String {
        let (_, first) = self.log.messages(Some(1), 1);
        let text = first.first().map(|message| message.text_content()).unwrap_or_default();
        // The first step of a task may be a question.
        let question =
            || self.log.with_view(|view| view.questions().next().map(|it| it.reason.clone()));
        let text = if text.trim().is_empty() { question().unwrap_or_default() } else { text };
        title_line(&text).to_owned()
    }
}

/// Returns the first line of a text that is not blank, as far as a title goes.
fn title_line(text: &str) -> &str {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    text_truncation::head_chars(line.trim(), MAX_TITLE_CHARS)
}

/// Ends sessions and waits for that.
pub(super) async fn end_all(sessions: Vec<SessionHandle>) {
    sessions.iter().for_each(SessionHandle::close);
    for live in sessions {
        live.wait_until_ended().await;
    }
}

/// Too much waits for the session.
pub(super) fn busy_error() -> RequestError {
    RequestError::new(RequestErrorKind::Busy, "too many requests are waiting for the session")
        .with_remedy("Retry in a moment.")
}
