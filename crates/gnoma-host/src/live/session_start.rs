//! Starts sessions in this process.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::{
    Event,
    protocol::{ProcessEvent, RequestError, RequestErrorKind, SessionSpec, Start},
    store::SessionId,
    sync::Mutex,
    task::box_future,
};
use gnoma_router::pool::Scope;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    actor::Actor,
    child_status::ChildStatusFold,
    handle::{SessionHandle, SessionMeta},
    log::EventLog,
    notice_queue::Notice,
    ports::{PreparedSession, SessionOpening},
    shared::HostShared,
    spending::SpendingSums,
    step_children::StepChildren,
};
use crate::Notices;

/// Requests that may wait for a session.
const MAX_JOBS: usize = 64;
/// Notices that may wait for the log; more are dropped.
const MAX_NOTICES: usize = 64;

/// Opens a session. One that lives here already under its id is not opened twice.
pub(super) async fn open_session(
    shared: &Arc<HostShared>,
    spec: SessionSpec,
) -> Result<SessionId, RequestError> {
    if let Some(living) = find_live_session(shared, &spec).await? {
        return Ok(living);
    }
    let (notices, heard) = notice_channel();
    let wanted = SessionOpening {
        spec: spec.clone(),
        session: None,
        carried: Vec::new(),
        notices: notices.clone(),
        spawner: Arc::clone(&shared.spawner),
    };
    let prepared = shared.opener.open(wanted).await?;
    start_session(
        shared,
        SessionStartup { spec, scope: None, following: None, notices, heard },
        prepared,
    )
}

/// The session that a spec wants to continue with, where it lives here already: one of the same project,
/// and with the settings that are asked for.
async fn find_live_session(
    shared: &Arc<HostShared>,
    spec: &SessionSpec,
) -> Result<Option<SessionId>, RequestError> {
    let goes_on = match spec.start {
        Start::New => false,
        Start::Newest { fork } | Start::Stored { fork, .. } => !fork,
    };
    if !goes_on || shared.state.lock().sessions.is_empty() {
        return Ok(None);
    }
    let id = match shared.opener.goes_on(spec.clone()).await {
        Ok(id) => id,
        // Nothing was said in it yet, or nothing of it is kept.
        Err(error) => return shared.find_live_session(spec).map(Some).ok_or(error),
    };
    let Ok(live) = shared.find_session(&id) else { return Ok(None) };
    let has = live.kept.lock().spec.profile.clone();
    match &spec.profile {
        Some(wanted) if has.as_ref() != Some(wanted) => {
            let has = has.unwrap_or_else(|| "none".to_owned());
            let cause =
                format!("session `{id}` is open in the server with another profile ({has})");
            Err(RequestError::new(RequestErrorKind::Held, cause)
                .with_remedy("`gnoma attach` shows it as it is."))
        }
        _ => Ok(Some(id)),
    }
}

/// The things that a session begins with, besides those that were prepared for it.
pub(super) struct SessionStartup {
    /// The options that the session is opened with.
    pub(super) spec: SessionSpec,
    /// Whose money it spends, where another session started it.
    pub(super) scope: Option<Scope>,
    /// The information that the session's starter receives about it, if a tool started it.
    pub(super) following: Option<ChildStatusFold>,
    pub(super) notices: Notices,
    pub(super) heard: mpsc::Receiver<Notice>,
}

/// Starts the task of a session, unless one of that id was started here since.
pub(super) fn start_session(
    shared: &Arc<HostShared>,
    SessionStartup { spec, scope, following, notices, heard }: SessionStartup,
    prepared: PreparedSession,
) -> Result<SessionId, RequestError> {
    let PreparedSession { id, info, messages, notes, opening, services } = prepared;
    let scope = scope.unwrap_or_else(|| Scope::new(id.as_str()));
    let parent = scope.parent().map(|parent| SessionId::new(parent.session()));
    let log = EventLog::new(id.clone(), shared.next_epoch(), parent.clone(), messages);
    log.add_stored_notes(notes);
    let mut state = shared.state.lock();
    if !state.may_open(&id)? {
        return Ok(id);
    }
    parent.as_ref().map_or(Ok(()), |parent| state.may_have_child(parent))?;
    log.push(Event::Info(Box::new(info)), shared.opener.now_ms());
    let (jobs, inbox) = mpsc::channel(MAX_JOBS);
    let (end, ended) = watch::channel(false);
    let close = Arc::default();
    let kept = Arc::new(Mutex::new(SessionMeta {
        spec,
        title: None,
        services,
        scope,
        rights: None,
        prover: None,
        jobs: None,
        outcome: None,
        following,
        spending: SpendingSums::default(),
        is_ending: false,
        merges: VecDeque::new(),
        step_children: StepChildren::default(),
    }));
    let weak = Arc::downgrade(shared);
    let actor = Actor::new(weak, log.clone(), Arc::clone(&kept), notices, opening);
    let mut task = JoinSet::new();
    task.spawn(box_future(actor.run_loop(inbox, heard, Arc::clone(&close), end)));
    let live = SessionHandle { log, jobs, close, ended, kept, _task: Arc::new(task) };
    state.sessions.insert(id.clone(), live);
    drop(state);
    shared.publish_event(ProcessEvent::Opened { session: id.clone() });
    Ok(id)
}

/// Sends notices to the log of the session.
pub(super) fn notice_channel() -> (Notices, mpsc::Receiver<Notice>) {
    let (say, heard) = mpsc::channel(MAX_NOTICES);
    let list = say.clone();
    let notices = Notices::with_sink(move |level, text| {
        let _full = say.try_send(Notice::Said(level, text.to_owned()));
    });
    let notices = notices.and_prompts(move |prompts| {
        let _full = list.try_send(Notice::Prompts(prompts));
    });
    (notices, heard)
}
