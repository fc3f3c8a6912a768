//! Hooks of a program that drives the session: it is called back over its own wire, with the facts that a
//! hook's program would read, and answers with the JSON that one would print.

use std::{path::PathBuf, sync::Arc, time::Duration};

use gnoma_core::{
    Event,
    lifecycle::{Point, PointAnswer, PointKind},
    session::PermissionMode,
    sync::Mutex,
    task::box_future,
    tool::BoxFuture,
};
use serde_json::Value;
use tokio::{task::JoinSet, time::timeout};

use super::{
    answer::{self, HookEnd, HookRun},
    error::HookCallError,
    files::EVENTS,
    hook::{Hook, HookContract, HookKind, USUAL_TIMEOUT},
    input::{self, HookSession},
    matcher::Matcher,
};
use crate::places::ExtensionSource;

/// Most callbacks that a program may register.
pub const MAX_CALLBACKS: usize = 1_000;
/// Longest that one may take.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Messages are not counted here.
const NO_PROMPT: u64 = 0;

/// Calls a program back.
pub trait HookCaller: Send + Sync {
    /// Calls the callback of that id with the facts of a point, and gives its answer. Dropping the future
    /// takes the question back.
    ///
    /// # Errors
    /// The program refused, or cannot be asked.
    fn call(&self, id: &str, facts: Value) -> BoxFuture<'static, Result<Value, HookCallError>>;
}

/// A callback as a program registers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Callback {
    /// The event, as Claude names it.
    pub event: String,
    /// For which tools or words; empty for all.
    pub matcher: String,
    /// The id under which the program is called back.
    pub id: String,
    /// The time that the callback may take, in seconds.
    pub timeout: Option<f64>,
    /// `true` if the callback blocks when it fails.
    pub fails_closed: bool,
}

/// The combined answer of the callbacks at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallbackResult {
    /// The combined blocks, restrictions and additions.
    pub answer: PointAnswer,
    /// One of them allows the call, and no other denies it, asks about it or changes it.
    pub allows: bool,
    /// The answer of each, in their order.
    pub said: Vec<Value>,
}

/// The callbacks of a session.
#[derive(Clone)]
pub struct Callbacks {
    hooks: Arc<[Arc<Hook>]>,
    session: Arc<Mutex<HookSession>>,
    caller: Arc<dyn HookCaller>,
}

impl Callbacks {
    /// Callbacks of the session `session`, which works in `cwd`.
    #[must_use]
    pub fn new(
        callbacks: &[Callback],
        session: String,
        cwd: String,
        caller: Arc<dyn HookCaller>,
    ) -> Self {
        let hooks =
            callbacks.iter().take(MAX_CALLBACKS).filter_map(to_hook).map(Arc::new).collect();
        let session = HookSession { id: session, cwd, ..HookSession::default() };
        Self { hooks, session: Arc::new(Mutex::new(session)), caller }
    }

    /// Reports whether gnoma has such an event, so that a callback for it can ever be called.
    #[must_use]
    pub fn is_known_event(event: &str) -> bool {
        EVENTS.iter().any(|(name, _)| *name == event)
    }

    /// Reports whether a matcher can be read. One that cannot be read matches nothing: its callbacks would never be
    /// called.
    #[must_use]
    pub fn is_valid_matcher(matcher: &str) -> bool {
        !matches!(Matcher::from_pattern(matcher), Matcher::Broken)
    }

    /// Records an event of the session: which model is asked, and how much it thinks.
    pub fn observe_event(&self, event: &Event) {
        self.session.lock().observe_event(event);
    }

    /// Reports whether a callback is registered for such a point.
    #[must_use]
    pub fn has_hook_at(&self, kind: PointKind) -> bool {
        self.hooks.iter().any(|hook| hook.point == kind)
    }

    /// Calls those that fit the point, side by side, and puts their answers together.
    #[must_use]
    pub fn run_at(&self, point: Point, mode: PermissionMode) -> BoxFuture<'static, CallbackResult> {
        let kind = point.kind();
        let name = match &point {
            Point::ChildStart { name, .. } | Point::ChildStop { name, .. } => Some(name.clone()),
            point => point.tool_call().map(|call| call.name.clone()),
        };
        let fits = |hook: &Hook| {
            hook.point == kind && name.as_ref().is_none_or(|name| hook.matcher.matches_name(name))
        };
        let point = Arc::new(point);
        let mut calling = JoinSet::new();
        let session = self.session.lock().clone();
        for (at, hook) in self.hooks.iter().enumerate().filter(|(_, hook)| fits(hook)) {
            let (hook, point) = (Arc::clone(hook), Arc::clone(&point));
            let facts = input::build_input(&hook, &point, mode, &session, NO_PROMPT);
            let call = self.caller.call(&hook.command, facts);
            calling.spawn(box_future(async move { (at, run_callback(&hook, &point, call).await) }));
        }
        Box::pin(async move {
            let mut answers = Vec::new();
            while let Some(answer) = calling.join_next().await {
                answers.extend(answer.ok());
            }
            gnoma_core::sort::by_key(&mut answers, |(at, _)| *at);
            merge_answers(answers.into_iter().map(|(_, answer)| answer).collect())
        })
    }
}

/// The response of one callback, and what it means.
struct CallbackAnswer {
    answer: PointAnswer,
    allows: bool,
    said: Value,
}

/// Merges the answers of several callbacks: denying beats asking, and asking beats allowing. A callback allows only
/// the arguments that it has seen or written.
fn merge_answers(answers: Vec<CallbackAnswer>) -> CallbackResult {
    let is_changed = answers.iter().any(|it| !it.allows && it.answer.arguments.is_some());
    let is_allowed = answers.iter().any(|it| it.allows);
    let (answers, said): (Vec<_>, Vec<_>) =
        answers.into_iter().map(|it| (it.answer, it.said)).unzip();
    let answer = answer::merge_answers(answers);
    let allows = is_allowed && !is_changed && answer.block.is_none() && answer.ask.is_none();
    CallbackResult { answer, allows, said }
}

async fn run_callback(
    hook: &Hook,
    point: &Point,
    call: BoxFuture<'static, Result<Value, HookCallError>>,
) -> CallbackAnswer {
    let (end, said) = match timeout(hook.timeout, call).await {
        Ok(Ok(value)) => (HookEnd::Code(0), value),
        Ok(Err(error)) => (HookEnd::Failed(format!("failed: {error}")), Value::Null),
        Err(_) => (HookEnd::TimedOut, Value::Null),
    };
    let run = HookRun { end, stdout: said.to_string(), stderr: String::new() };
    let answer = answer::interpret_hook_exit_code(hook, point, &run);
    CallbackAnswer { answer, allows: answer::is_call_allowed(hook, point, &said), said }
}

fn to_hook(callback: &Callback) -> Option<Hook> {
    let (_, point) = EVENTS.iter().find(|(name, _)| *name == callback.event)?;
    let seconds = callback.timeout.filter(|seconds| *seconds > 0.0);
    let timeout = seconds.map_or(USUAL_TIMEOUT, |seconds| {
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)
    });
    Some(Hook {
        name: callback.id.clone(),
        point: *point,
        event: callback.event.clone(),
        condition: None,
        matcher: Matcher::from_pattern(&callback.matcher),
        kind: HookKind::Command,
        command: callback.id.clone(),
        timeout,
        contract: HookContract::Claude,
        is_async: false,
        fails_closed: callback.fails_closed,
        by: ExtensionSource::User,
        origin: PathBuf::new(),
        root: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(allows: bool, answer: PointAnswer) -> CallbackAnswer {
        CallbackAnswer { answer, allows, said: json!({}) }
    }

    #[test]
    fn hook_deny_ask_or_changed_input_overrides_an_allow() {
        let some = || Some("why".to_owned());
        let denies = PointAnswer { block: some(), ..PointAnswer::default() };
        let asks = PointAnswer { ask: some(), ..PointAnswer::default() };
        let arguments = Some(gnoma_core::RawJson::empty_object());
        let changes = PointAnswer { arguments, ..PointAnswer::default() };
        let allow = || one(true, PointAnswer::default());
        assert!(merge_answers(vec![allow(), one(false, PointAnswer::default())]).allows);
        for other in [denies, asks, changes.clone()] {
            assert!(!merge_answers(vec![allow(), one(false, other.clone())]).allows);
            assert!(!merge_answers(vec![one(false, other), allow()]).allows);
        }
        assert!(merge_answers(vec![one(true, changes)]).allows);
        assert!(!merge_answers(vec![one(false, PointAnswer::default())]).allows);
    }
}
