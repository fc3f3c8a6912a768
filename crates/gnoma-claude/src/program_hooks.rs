//! Hooks and permission callbacks of the driving program.

use std::sync::Arc;

use gnoma_core::{
    CallId, Event, Message,
    json_value::json,
    lifecycle::{Lifecycle, Point, PointAnswer, PointKind, PreparedPrompt, SideModel},
    session::PermissionMode,
    tool::BoxFuture,
};
use gnoma_extend::hooks::{CallbackResult, Callbacks, HookCallError, HookCaller, merge_answers};
use serde_json::Value;

use super::{
    control::ControlChannel,
    permission::{Permission, SessionCall},
};

/// The sub-agent that a session is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SubagentIdentity {
    /// The id of the sub-agent's session.
    pub(super) id: String,
    /// The name of the agent.
    pub(super) name: String,
}

/// Calls the program's hooks.
pub(super) struct ProgramHookCaller {
    pub(super) control: ControlChannel,
    /// The sub-agent, if the session is one.
    pub(super) agent: Option<SubagentIdentity>,
}

impl HookCaller for ProgramHookCaller {
    fn call(&self, id: &str, mut facts: Value) -> BoxFuture<'static, Result<Value, HookCallError>> {
        if let (Some(SubagentIdentity { id, name }), Some(fields)) =
            (&self.agent, facts.as_object_mut())
        {
            fields.insert("agent_id".to_owned(), id.as_str().into());
            fields.insert("agent_type".to_owned(), name.as_str().into());
        }
        let call = facts.get("tool_use_id").and_then(Value::as_str).map(str::to_owned);
        let mut request = json!({"subtype": "hook_callback", "callback_id": id, "input": facts});
        if let (Some(call), Some(fields)) = (call, request.as_object_mut()) {
            fields.insert("tool_use_id".to_owned(), call.into());
        }
        let answer = self.control.send_request(request);
        Box::pin(async move { answer.await.map_err(HookCallError::new) })
    }
}

/// The parties that are asked at points of a session's life: the added extensions and the program.
#[derive(Clone)]
pub(super) struct ProgramLifecycle {
    pub(super) added: Arc<dyn Lifecycle>,
    pub(super) callbacks: Callbacks,
    pub(super) permission: Permission,
    /// The session, where it is a sub-agent.
    pub(super) session: Option<String>,
}

impl std::fmt::Debug for ProgramLifecycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Points").field("added", &self.added).finish_non_exhaustive()
    }
}

impl ProgramLifecycle {
    async fn answer_point(self, point: Point, mode: PermissionMode) -> PointAnswer {
        let added = self
            .added
            .has_listener(point.kind())
            .then(|| self.added.run_hooks(point.clone(), mode));
        let called = self.callbacks.run_at(point.clone(), mode);
        let added = async {
            match added {
                Some(added) => added.await,
                None => PointAnswer::default(),
            }
        };
        let (added, called) = futures_util::join!(added, called);
        self.merge_answers(point, added, called).await
    }

    /// Merges the answers of the extensions and the program. Only the merged answer can allow a call: one side that
    /// denies it, wants it asked for or changes it beats the other side that allows it.
    async fn merge_answers(
        self,
        point: Point,
        added: PointAnswer,
        called: CallbackResult,
    ) -> PointAnswer {
        let is_changed = added.arguments.is_some() && called.answer.arguments.is_none();
        let mut allows = called.allows && !is_changed;
        let mut answer = merge_answers([added, called.answer]);
        allows &= answer.block.is_none() && answer.ask.is_none();
        let of = |call: &CallId| SessionCall { session: self.session.clone(), call: call.clone() };
        match point {
            Point::BeforeTool { call } => {
                // Ids come again in later rounds: what was approved before was another call.
                self.permission.revoke_approval(&of(&call.id));
                if allows {
                    self.permission.approve_call(of(&call.id));
                }
            }
            Point::PermissionAsked { mut call, reason } => {
                let decisions = called.said.iter();
                let decisions =
                    decisions.filter_map(|it| it.pointer("/hookSpecificOutput/decision"));
                decisions.for_each(|decision| self.permission.take_updates(decision, allows));
                if allows {
                    self.permission.approve_call(of(&call.id));
                } else if answer.block.is_none() {
                    if let Some(changed) = &answer.arguments {
                        self.permission.revoke_approval(&of(&call.id));
                        call.arguments = changed.clone();
                    }
                    let said = self.permission.before_question(of(&call.id), &call, &reason).await;
                    answer.block = said.block;
                    answer.arguments = said.arguments.or(answer.arguments);
                }
            }
            _ => (),
        }
        answer
    }
}

impl Lifecycle for ProgramLifecycle {
    fn has_listener(&self, kind: PointKind) -> bool {
        matches!(kind, PointKind::BeforeTool | PointKind::PermissionAsked)
            || self.added.has_listener(kind)
            || self.callbacks.has_hook_at(kind)
    }

    fn run_hooks(&self, point: Point, mode: PermissionMode) -> BoxFuture<'static, PointAnswer> {
        Box::pin(self.clone().answer_point(point, mode))
    }

    fn prepare_prompt(
        &self,
        text: String,
        mode: PermissionMode,
        starter: Option<String>,
    ) -> BoxFuture<'static, PreparedPrompt> {
        let this = self.clone();
        Box::pin(async move {
            let point = Point::Prompt { text: text.clone() };
            let PointAnswer { block, context, notices, .. } =
                this.callbacks.run_at(point, mode).await.answer;
            if block.is_some() {
                return PreparedPrompt { block, notices, ..PreparedPrompt::default() };
            }
            let mut prepared = this.added.prepare_prompt(text, mode, starter).await;
            prepared.context.extend(context);
            prepared.notices.extend(notices);
            prepared
        })
    }

    fn held_to(&self) -> Option<Arc<[String]>> {
        self.added.held_to()
    }

    fn retained_texts(&self) -> Vec<String> {
        self.added.retained_texts()
    }

    fn used_skills(&self) -> Vec<String> {
        self.added.used_skills()
    }

    fn on_resume(&self, history: &[Arc<Message>]) {
        self.added.on_resume(history);
    }

    fn on_event(&self, event: &Event) {
        self.added.on_event(event);
        self.callbacks.observe_event(event);
    }

    fn set_side_model(&self, model: Arc<dyn SideModel>) {
        self.added.set_side_model(model);
    }

    fn hooks_told(&self) -> Vec<String> {
        self.added.hooks_told()
    }

    fn turn_ended(&self) {
        self.permission.forget_all(self.session.as_deref());
        self.added.turn_ended();
    }
}
