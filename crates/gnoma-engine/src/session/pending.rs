//! What running tools want of their session: questions to a person, words to people, other sessions.

use std::{
    collections::HashMap,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use gnoma_core::{
    Content, Event,
    lifecycle::{Lifecycle, Point, PointKind, SideQuestion},
    message::CallId,
    session::{NoticeLevel, PermissionAnswer},
    task::box_future,
    tool::{
        BoxFuture, CallSpans, ChildLink, ChildResult, ChildTask, Parent, Question, SpawnError,
        Spawner, ToolEvent, ToolSession,
    },
};
use gnoma_router::pool::Scope;
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::side_answer::SideAnswer;
use crate::{rights::Rights, routing::ask::Share};

/// Requests of tools that may wait for the session.
const MAX_REQUESTS: usize = 32;
/// Questions of tools that may be open at once, those of sessions that they start among them.
pub(super) const MAX_QUESTIONS: usize = 64;
const NOBODY: &str = "the session is over";

/// A request by a tool to its session.
pub(super) enum ToolRequest {
    Ask {
        call: CallId,
        question: Question,
        answer: oneshot::Sender<PermissionAnswer>,
    },
    Tell {
        call: CallId,
        event: ToolEvent,
    },
    /// A text for the model, delivered when it is asked next.
    Deliver(String),
    /// A question whose answer is no longer awaited.
    TakeBack(CallId),
    /// A question that an extension wants to ask a model.
    AskModel(SideQuestion, oneshot::Sender<SideAnswer>),
    /// The usage of such a question.
    Paid(Vec<Share>),
}

/// A question that nobody has answered yet.
pub(super) struct OpenQuestion {
    pub(super) call: CallId,
    pub(super) answer: oneshot::Sender<PermissionAnswer>,
    /// True if the question is answered with words, not with yes or no.
    pub(super) wants_words: bool,
    /// The question, if it does not end with the turn because its session continues.
    pub(super) goes_on: Option<Event>,
}

/// The session's side of its tools' requests.
pub(super) struct PendingRequests {
    requests: (mpsc::Sender<ToolRequest>, mpsc::Receiver<ToolRequest>),
    pub(super) open: HashMap<CallId, OpenQuestion>,
    /// Questions so far; they number the ids.
    pub(super) asked: u64,
    port: Arc<Port>,
}

/// The tools' side of it, for one turn.
#[derive(Clone)]
struct Port {
    requests: mpsc::Sender<ToolRequest>,
    starts: ChildStarter,
    scope: Arc<Scope>,
}

/// The spawner that starts sessions for tools, and the extensions that are asked about it.
#[derive(Clone)]
pub(super) struct ChildStarter {
    pub(super) spawner: Option<Arc<dyn Spawner>>,
    pub(super) lifecycle: Option<Arc<dyn Lifecycle>>,
    pub(super) rights: Rights,
    /// Reports of the end of sessions that nobody waits for any more. Dropping it stops them.
    pub(super) telling: Arc<Mutex<JoinSet<()>>>,
    /// The spans of calls.
    pub(super) spans: Option<Arc<dyn CallSpans>>,
}

impl ChildStarter {
    pub(super) fn new(
        spawner: Option<Arc<dyn Spawner>>,
        lifecycle: Option<Arc<dyn Lifecycle>>,
        rights: Rights,
        spans: Option<Arc<dyn CallSpans>>,
    ) -> Self {
        Self { spawner, lifecycle, rights, telling: Arc::default(), spans }
    }

    fn listener_for(&self, kind: PointKind) -> Option<Arc<dyn Lifecycle>> {
        self.lifecycle.clone().filter(|lifecycle| lifecycle.has_listener(kind))
    }

    /// Starts a session where nobody keeps it from that, and tells of its end.
    async fn start_child(
        self,
        parent: Parent,
        mut child: ChildTask,
        link: ChildLink,
    ) -> Result<ChildResult, SpawnError> {
        let Some(spawner) = &self.spawner else { return Err(SpawnError::Unavailable) };
        if child.id.is_empty() {
            child.id = child.resume.clone().unwrap_or_else(|| spawner.new_id());
        }
        let (id, name) = (child.id.clone(), child.agent.as_ref().unwrap_or(&child.name).clone());
        if let Some(lifecycle) = self.listener_for(PointKind::ChildStart) {
            let texts = child.content.iter().filter_map(|content| match content {
                Content::Text(text) => Some(&*text.text),
                _ => None,
            });
            let task = texts.collect::<Vec<_>>().join("\n");
            let point = Point::ChildStart { id: id.clone(), name: name.clone(), task };
            let answer = lifecycle.run_hooks(point, self.rights.mode()).await;
            emit_warnings(&*parent.port, answer.notices);
            if let Some(why) = answer.block {
                return Err(SpawnError::Failed(format!("a hook refused to start it: {why}")));
            }
        }
        let port = Arc::clone(&parent.port);
        let lifecycle = self.listener_for(PointKind::ChildStop);
        let (rights, telling) = (self.rights.clone(), Arc::clone(&self.telling));
        let child_of = (id, name);
        let mut end =
            ChildEnding { heard: lifecycle.map(|it| (it, rights)), child: child_of, port, telling };
        let ended = spawner.spawn_child(parent, child, link).await;
        let last_words = match &ended {
            Ok(result) => result.text.clone(),
            Err(error) => error.to_string(),
        };
        if let Some(told) = end.stop_report(last_words) {
            told.await;
        }
        ended
    }
}

/// Reports the end of a session, even if its waiter is gone first.
struct ChildEnding {
    /// The extensions that are told about the end; `None` once they have been told.
    heard: Option<(Arc<dyn Lifecycle>, Rights)>,
    /// The id and the name of the child session.
    child: (String, String),
    port: Arc<dyn ToolSession>,
    telling: Arc<Mutex<JoinSet<()>>>,
}

impl ChildEnding {
    fn stop_report(&mut self, last_words: String) -> Option<BoxFuture<'static, ()>> {
        let (lifecycle, rights) = self.heard.take()?;
        let ((id, name), port) = (std::mem::take(&mut self.child), Arc::clone(&self.port));
        Some(Box::pin(async move {
            let point = Point::ChildStop { id, name, last_words };
            emit_warnings(&*port, lifecycle.run_hooks(point, rights.mode()).await.notices);
        }))
    }
}

impl Drop for ChildEnding {
    fn drop(&mut self) {
        let Some(told) = self.stop_report(SpawnError::Stopped.to_string()) else { return };
        // Where the program itself ends, nobody is told any more.
        if runtime::Handle::try_current().is_ok() {
            let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
            while telling.try_join_next().is_some() {}
            telling.spawn(box_future(told));
        }
    }
}

/// Tells people what came up.
pub(super) fn emit_warnings(port: &dyn ToolSession, notices: Vec<String>) {
    for text in notices {
        let level = NoticeLevel::Warning;
        port.emit_event(CallId::new(""), ToolEvent::Notice { level, text });
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("scope", &self.scope).finish_non_exhaustive()
    }
}

fn denial_answer(reason: &str) -> PermissionAnswer {
    PermissionAnswer::Deny { reason: reason.to_owned() }
}

impl ToolSession for Port {
    fn ask_user(&self, call: CallId, question: Question) -> BoxFuture<'static, PermissionAnswer> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            if requests.send(ToolRequest::Ask { call, question, answer }).await.is_err() {
                return denial_answer(NOBODY);
            }
            answered.await.unwrap_or_else(|_gone| denial_answer("the question was withdrawn"))
        })
    }

    fn emit_event(&self, call: CallId, event: ToolEvent) {
        let _full = self.requests.try_send(ToolRequest::Tell { call, event });
    }

    fn deliver_to_model(&self, news: String) -> BoxFuture<'static, ()> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let _gone = requests.send(ToolRequest::Deliver(news)).await;
        })
    }

    fn spawn_child(
        &self,
        call: CallId,
        child: ChildTask,
        link: ChildLink,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>> {
        let (session, turn) = (self.scope.session().to_owned(), self.scope.turn().to_owned());
        let parent = Parent { session, turn, call, port: Arc::new(self.clone()) };
        Box::pin(self.starts.clone().start_child(parent, child, link))
    }
}

impl PendingRequests {
    pub(super) fn new(starts: ChildStarter, scope: Arc<Scope>) -> Self {
        let requests = mpsc::channel(MAX_REQUESTS);
        let port = Port { requests: requests.0.clone(), starts, scope };
        Self { requests, open: HashMap::new(), asked: 0, port: Arc::new(port) }
    }

    /// The next request, or a question that nobody waits for the answer of. Safe to drop.
    pub(super) async fn next(&mut self) -> ToolRequest {
        poll_fn(|cx| {
            if let Poll::Ready(Some(request)) = self.requests.1.poll_recv(cx) {
                return Poll::Ready(request);
            }
            for (question, open) in &mut self.open {
                if open.answer.poll_closed(cx).is_ready() {
                    return Poll::Ready(ToolRequest::TakeBack(question.clone()));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the sending end of the channel for requests.
    pub(super) fn request_sender(&self) -> mpsc::Sender<ToolRequest> {
        self.requests.0.clone()
    }

    /// Returns the spawner that starts sessions, and the parent on whose behalf it starts them outside of any call.
    pub(super) fn child_spawner(&self) -> Option<(Arc<dyn Spawner>, Parent)> {
        let Port { starts, scope, .. } = &*self.port;
        let (session, turn) = (scope.session().to_owned(), scope.turn().to_owned());
        let parent = Parent { session, turn, call: CallId::new(""), port: self.port() };
        Some((starts.spawner.clone()?, parent))
    }

    /// Reports of the end of sessions, starting now; each began with one.
    pub(super) fn take_reports(&self) -> JoinSet<()> {
        let telling = &self.port.starts.telling;
        std::mem::take(&mut *telling.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The span of a call, where there is telemetry.
    pub(super) fn traceparent(&self, call: &CallId) -> Option<String> {
        let Port { starts, scope, .. } = &*self.port;
        starts.spans.as_ref()?.traceparent(scope.session(), call)
    }

    /// Returns the session port that tools of the turn are given.
    pub(super) fn port(&self) -> Arc<dyn ToolSession> {
        Arc::clone(&self.port) as Arc<dyn ToolSession>
    }

    /// Begins another turn, if it is another.
    pub(super) fn in_turn(&mut self, scope: &Arc<Scope>) {
        if !Arc::ptr_eq(&self.port.scope, scope) {
            let Port { requests, starts, .. } = &*self.port;
            let (requests, starts) = (requests.clone(), starts.clone());
            let scope = Arc::clone(scope);
            self.port = Arc::new(Port { requests, starts, scope });
        }
    }
}
