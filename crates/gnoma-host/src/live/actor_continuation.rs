//! Continues a turn that ended because every model was at its limit, when one can be called again.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    Content, Event,
    protocol::Request,
    session::{PermissionAnswer, PermissionMode},
    store::SessionId,
    task::box_future,
};
use gnoma_engine::Rights;
use tokio::{sync::oneshot, time::sleep};

use super::actor::{Actor, MAX_WORK};
use crate::{
    Project, Result,
    blocking_work::off_loop,
    clock,
    continuation::{CONTINUE_MESSAGE, Continuation, schedule_continuation, take_continuation},
};

/// Longest time between two looks at the clock, which can jump.
const MAX_NAP: Duration = Duration::from_secs(20);

impl Actor {
    /// Takes in what happens in the session, and returns the question or its end that follows it.
    pub(super) fn follow_limits(&mut self, event: &Event) -> Vec<Event> {
        let is_child = self.log.with_view(|view| view.parent.is_some());
        let is_interactive = self.kept.lock().spec.interactive;
        // The run of a task asks by itself what to do about a step that failed.
        let is_attended = is_interactive && !is_child && !self.tasks.is_running();
        self.continuation.observe_event(event, is_attended).into_iter().collect()
    }

    /// Takes the answer of a person to whether the turn continues.
    pub(super) fn answer_continuation(&mut self, answer: PermissionAnswer) {
        let (continues, events) = self.continuation.answer_question(&answer.to_inquiry());
        self.push_question(events);
        if continues {
            self.continue_at_reset();
        }
    }

    /// Continues the turn when limits reset, unless another one begins before.
    fn continue_at_reset(&mut self) {
        if self.work.len() >= MAX_WORK {
            return self
                .notices
                .warning("the turn is not continued: too much work of this session is under way");
        }
        let (cancel, cancelled) = oneshot::channel::<()>();
        self.continuation.waiting = Some(cancel);
        let (services, notices) = (self.services.clone(), self.notices.clone());
        let (shared, id) = (Weak::clone(&self.shared), self.id.clone());
        let mode = self.kept.lock().rights.as_ref().map(Rights::mode).unwrap_or_default();
        self.work.spawn(box_future(async move {
            let Some(files) = services.task_files() else { return };
            let (project, stored) = (files.project(), files.stored_id(&id));
            let planned = match plan_continuation(Arc::clone(&project), stored, mode).await {
                Ok(planned) => planned,
                Err(error) => {
                    return notices.warning(format_args!("the turn is not continued: {error}"));
                }
            };
            let when = clock::time_near(planned.at_ms, project.now_ms());
            notices.info(format_args!("This turn continues at {when}. Any message cancels that"));
            let is_reset = tokio::select! {
                () = wait_until(&project, planned.at_ms) => true,
                _ = cancelled => false,
            };
            let taken = off_loop(move || async move { Ok(take_continuation(&project, planned)) });
            let is_own = taken.await.unwrap_or(false);
            let live = shared.upgrade().and_then(|shared| shared.find_session(&id).ok());
            if let Some(live) = live.filter(|_| is_reset && is_own) {
                let content = vec![Content::from_text(CONTINUE_MESSAGE)];
                if let Err(error) = live.ask(Request::Send { content }).await {
                    notices.warning(format_args!("the turn is not continued: {}", error.cause));
                }
            }
        }));
    }
}

/// Waits until the clock shows a moment, in milliseconds since 1970.
async fn wait_until(project: &Project, at_ms: i64) {
    loop {
        let left_ms = u64::try_from(at_ms.saturating_sub(project.now_ms())).unwrap_or(0);
        if left_ms == 0 {
            return;
        }
        sleep(Duration::from_millis(left_ms).min(MAX_NAP)).await;
    }
}

async fn plan_continuation(
    project: Arc<Project>,
    session: SessionId,
    mode: PermissionMode,
) -> Result<Continuation> {
    off_loop(move || async move { schedule_continuation(&project, &session, mode).await }).await
}
