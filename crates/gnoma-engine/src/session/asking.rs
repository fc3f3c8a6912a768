//! What running tools want of their session: questions to a person, words to people, other sessions.

use std::{collections::HashMap, fmt, sync::Arc};

use gnoma_core::{
    Event,
    message::CallId,
    session::Answer,
    tool::{
        BoxFuture, Budget, ChildResult, ChildTask, Parent, Question, SpawnError, Spawner,
        ToolEvent, ToolSession,
    },
};
use gnoma_router::pool::Scope;
use tokio::sync::{mpsc, oneshot};

use super::{Closed, Session};

/// Wishes of tools that may wait for the session.
const MAX_WISHES: usize = 32;
/// Questions of tools that may be open at once.
const MAX_QUESTIONS: usize = 16;
const NOBODY: &str = "there is nobody to ask";

/// What a tool wants of its session.
pub(super) enum Wish {
    Ask { call: CallId, question: Question, answer: oneshot::Sender<Answer> },
    Tell { call: CallId, event: ToolEvent },
}

/// A question that nobody has answered yet.
struct Open {
    call: CallId,
    answer: oneshot::Sender<Answer>,
}

/// The session's side of its tools' wishes.
pub(super) struct ToolWishes {
    wishes: (mpsc::Sender<Wish>, mpsc::Receiver<Wish>),
    open: HashMap<CallId, Open>,
    /// Questions so far; they number the ids.
    asked: u64,
    port: Arc<Port>,
}

/// The tools' side of it, for one turn.
struct Port {
    wishes: mpsc::Sender<Wish>,
    interactive: bool,
    spawner: Option<Arc<dyn Spawner>>,
    scope: Arc<Scope>,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("scope", &self.scope).finish_non_exhaustive()
    }
}

fn refused(reason: &str) -> Answer {
    Answer::Deny { reason: reason.to_owned() }
}

impl ToolSession for Port {
    fn ask(&self, call: CallId, question: Question) -> BoxFuture<'static, Answer> {
        let wishes = self.interactive.then(|| self.wishes.clone());
        Box::pin(async move {
            let Some(wishes) = wishes else { return refused(NOBODY) };
            let (answer, answered) = oneshot::channel();
            if wishes.send(Wish::Ask { call, question, answer }).await.is_err() {
                return refused(NOBODY);
            }
            answered.await.unwrap_or_else(|_gone| refused("the question was taken back"))
        })
    }

    fn emit(&self, call: CallId, event: ToolEvent) {
        let _full = self.wishes.try_send(Wish::Tell { call, event });
    }

    fn spawn(
        &self,
        call: CallId,
        child: ChildTask,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>> {
        let Some(spawner) = &self.spawner else {
            return Box::pin(async { Err(SpawnError::Unavailable) });
        };
        let (session, turn) = (self.scope.session().to_owned(), self.scope.turn().to_owned());
        spawner.spawn(Parent { session, turn, call }, child)
    }
}

impl ToolWishes {
    pub(super) fn new(
        interactive: bool,
        spawner: Option<Arc<dyn Spawner>>,
        scope: Arc<Scope>,
    ) -> Self {
        let wishes = mpsc::channel(MAX_WISHES);
        let port = Port { wishes: wishes.0.clone(), interactive, spawner, scope };
        Self { wishes, open: HashMap::new(), asked: 0, port: Arc::new(port) }
    }

    /// The next wish. Safe to drop.
    pub(super) async fn next(&mut self) -> Option<Wish> {
        self.wishes.1.recv().await
    }

    /// What tools of the turn are given.
    pub(super) fn port(&self) -> Arc<dyn ToolSession> {
        Arc::clone(&self.port) as Arc<dyn ToolSession>
    }

    /// Another turn, where it is another.
    pub(super) fn in_turn(&mut self, scope: &Arc<Scope>) {
        if !Arc::ptr_eq(&self.port.scope, scope) {
            let Port { wishes, interactive, spawner, .. } = &*self.port;
            let (wishes, spawner) = (wishes.clone(), spawner.clone());
            let scope = Arc::clone(scope);
            self.port = Arc::new(Port { wishes, interactive: *interactive, spawner, scope });
        }
    }
}

impl Session {
    pub(super) async fn wished(&mut self, wish: Wish) -> Result<(), Closed> {
        match wish {
            Wish::Tell { call, event: ToolEvent::Progress(text) } => {
                self.emit(Event::ToolProgress { call, text }).await
            }
            Wish::Tell { event: ToolEvent::Notice { level, text }, .. } => {
                self.emit(Event::Notice { level, text }).await
            }
            Wish::Ask { call, question, answer } => self.put(call, question, answer).await,
        }
    }

    /// Puts a question of a tool to the person, under an id of its own.
    async fn put(
        &mut self,
        call: CallId,
        question: Question,
        answer: oneshot::Sender<Answer>,
    ) -> Result<(), Closed> {
        let shown = self.turn.call(&call).cloned();
        let wishes = &mut self.wishes;
        // Without an answer the question counts as taken back.
        let Some(mut shown) = shown.filter(|_| wishes.open.len() < MAX_QUESTIONS) else {
            return Ok(());
        };
        wishes.asked += 1;
        // No model's call has such an id.
        shown.id = CallId::new(format!("gnoma-question-{}", wishes.asked));
        wishes.open.insert(shown.id.clone(), Open { call, answer });
        let Question { text: reason, preview } = question;
        self.emit(Event::PermissionAsked { call: shown, reason, preview, always: None }).await
    }

    /// A person has answered. Gives the answer back where it is to no question of a tool.
    pub(super) async fn tool_answered(
        &mut self,
        question: &CallId,
        answer: Answer,
    ) -> Result<Option<Answer>, Closed> {
        let Some(open) = self.wishes.open.remove(question) else { return Ok(Some(answer)) };
        let allowed = !matches!(answer, Answer::Deny { .. });
        let reason = if allowed { "allowed by the user" } else { "refused by the user" };
        // A tool that has ended meanwhile does not hear it.
        let _gone = open.answer.send(answer);
        self.decided(question.clone(), allowed, reason).await?;
        Ok(None)
    }

    /// Takes back what is still asked for a call, or for all.
    pub(super) async fn take_back(&mut self, call: Option<&CallId>) -> Result<(), Closed> {
        let is_over = |open: &Open| call.is_none_or(|call| open.call == *call);
        let over = self.wishes.open.extract_if(|_, open| is_over(open));
        for question in over.map(|(question, _)| question).collect::<Vec<_>>() {
            self.decided(question, false, "it is not asked any more").await?;
        }
        Ok(())
    }

    async fn decided(&mut self, call: CallId, allowed: bool, reason: &str) -> Result<(), Closed> {
        self.emit(Event::PermissionDecided { call, allowed, reason: reason.to_owned() }).await
    }

    /// What the turn and the session may still spend, as far as their own caps tell.
    pub(super) fn budget(&self) -> Budget {
        let [turn_micro_usd, session_micro_usd] = self.way.left();
        Budget { turn_micro_usd, session_micro_usd }
    }
}
