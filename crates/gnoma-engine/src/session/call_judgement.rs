//! Judges tool calls on a thread beside the loop: permission rules, previews and edits that cannot apply. One call at
//! a time, in the order in which they came.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx,
    lifecycle::PointAnswer,
    message::CallId,
    session::NoticeLevel,
    task::box_future,
    tool::{Access, Grant, is_about},
};
use tokio::task::spawn_blocking;

use super::{
    extension_calls::BeforeCallHooks,
    handle::MissingFilesError,
    state::{FrontEndGone, Session},
    verdicts::{Decision, JudgedCall},
};
use crate::{
    gate::Judge,
    rights::ToolLimit,
    routing::arm_panel,
    turn::{HookInstructions, Input, Verdict},
};

impl Session {
    pub(super) fn queue_judgement(&mut self, call: ToolCall) {
        self.judging.queue.push_back(call);
        self.judge_next();
    }

    /// A verdict is there, or the files are that calls wait for; the next call is judged.
    pub(super) async fn on_judgement(
        &mut self,
        judged: Option<JudgedCall>,
    ) -> Result<(), FrontEndGone> {
        let Some(judged) = judged else {
            self.judge_next();
            return self.drain_inbox().await;
        };
        let JudgedCall { call, decision: Decision { verdict, admitted, said } } = judged;
        if let Some(admitted) = admitted {
            self.gate.register_call(call.clone(), admitted);
        }
        if let Verdict::Deny { reason } = &verdict {
            self.tell_refused(&call, reason);
        }
        self.inbox.push_back(Input::Judged(call, verdict, Box::new(said)));
        self.judge_next();
        self.drain_inbox().await
    }

    fn judge_next(&mut self) {
        while self.judging.current.is_none() {
            let Some(there) = self.judging.files_ready() else { return };
            let Some(call) = self.judging.queue.pop_front() else { return };
            if let Err(MissingFilesError(reason)) = there {
                self.tell_refused(&call.id, &reason);
                self.refuse_call(call.id, reason);
                continue;
            }
            let Some(tool) = self.tools.by_name.get(&call.name).map(Arc::clone) else {
                let reason = format!("there is no tool `{}`", call.name);
                self.refuse_call(call.id, reason);
                continue;
            };
            let starts = tool.start_arguments(&call).is_some();
            if self.router.is_looking() && (tool.spec().access != Access::Read || starts) {
                let reason = arm_panel::ONLY_LOOKS.to_owned();
                self.refuse_call(call.id, reason);
                continue;
            }
            self.judging.current = Some(call.id.clone());
            let deciding = CallJudge {
                judge: self.gate.current_judge(),
                starter: self.tools.session_starter(),
                tool,
                cx: self.tool_cx(),
                limits: self.gate.rights.tool_limits(),
            };
            match self.before_calls() {
                None => {
                    self.judging
                        .under_way
                        .spawn_blocking(move || deciding.decide_normalized(&call, None));
                }
                Some(before) => {
                    self.judging
                        .under_way
                        .spawn(box_future(decide_with_hooks(before, deciding, call)));
                }
            }
        }
    }

    /// Answers that a call must not run, for this reason.
    fn refuse_call(&mut self, call: CallId, reason: String) {
        self.inbox.push_back(Input::Judged(call, Verdict::Deny { reason }, Box::default()));
    }

    /// A person's answer holds for later calls, too.
    pub(super) async fn remember_answer(
        &mut self,
        call: &CallId,
        rule: Option<String>,
    ) -> Result<(), FrontEndGone> {
        let kept = match rule {
            None => {
                self.gate.add_offered_rules(call);
                Ok(())
            }
            Some(rule) => self.gate.remember_written(call, &rule),
        };
        match kept {
            Ok(()) => Ok(()),
            Err(error) => self.notify(NoticeLevel::Warning, error.to_string()).await,
        }
    }
}

/// A call that is about to be decided.
#[derive(Clone)]
struct CallJudge {
    judge: Judge,
    tool: Arc<dyn Tool>,
    /// The tool that starts sessions, as whose calls some of `tool` are judged and run.
    starter: Option<Arc<dyn Tool>>,
    cx: ToolCx,
    limits: Vec<ToolLimit>,
}

impl CallJudge {
    /// The call with the arguments that it means, where they are others.
    fn normalized_call(&self, call: &ToolCall) -> Option<ToolCall> {
        let arguments = self.tool.normalize_arguments(call, &self.cx)?;
        Some(ToolCall { arguments, ..call.clone() })
    }

    /// Puts the arguments into a call that it means, on a separate thread.
    async fn normalize_on_thread(&self, call: &mut ToolCall) {
        let (deciding, given) = (self.clone(), call.clone());
        let normalized = spawn_blocking(move || deciding.normalized_call(&given)).await;
        if let Some(normalized) = normalized.ok().flatten() {
            *call = normalized;
        }
    }

    /// The call that starts a session, as which a call is judged and run.
    fn session_start_call(&self, call: &ToolCall) -> Option<ToolCall> {
        let starter = self.starter.as_ref()?;
        let arguments = self.tool.start_arguments(call)?;
        Some(ToolCall { name: starter.spec().name.clone(), arguments, ..call.clone() })
    }

    /// Decides about a call; `ask`: a person has to be asked in any case, and why.
    fn decide_normalized(self, call: &ToolCall, ask: Option<String>) -> Decision {
        let normalized = self.normalized_call(call);
        let call = normalized.as_ref().unwrap_or(call);
        let started = self.session_start_call(call);
        let decision = self.decide_both(call, started.as_ref(), ask);
        Decision { said: HookInstructions { amended: normalized, ..decision.said }, ..decision }
    }

    /// The same, with what it starts: it must be allowed as what it is and as that.
    fn decide_both(
        self,
        call: &ToolCall,
        started: Option<&ToolCall>,
        ask: Option<String>,
    ) -> Decision {
        let Some((started, starter)) = started.zip(self.starter.clone()) else {
            return self.decide_as_it_is(call, ask);
        };
        let first = self.clone().decide_as_it_is(call, ask);
        let (ask, first_dangers) = match &first.verdict {
            Verdict::Deny { .. } | Verdict::Fail { .. } => return first,
            Verdict::Ask { reason, dangers, .. } => (Some(reason.clone()), dangers.clone()),
            Verdict::Allow { .. } => (None, Vec::new()),
        };
        let mut both = Self { tool: starter, ..self }.decide_as_it_is(started, ask.clone());
        if let (Some(first), Verdict::Ask { reason, dangers, .. }) = (ask, &mut both.verdict) {
            if *reason != first {
                *reason = format!("{first}; {reason}");
            }
            dangers.extend(first_dangers);
        }
        both
    }

    fn decide_as_it_is(self, call: &ToolCall, ask: Option<String>) -> Decision {
        let Self { judge, tool, cx, limits, starter: _ } = self;
        let refused = |limit: &ToolLimit| match limit {
            ToolLimit::Only(tools, why) => (!judge.is_within(tools, tool.spec(), call))
                .then(|| format!("{why}: {}", tools.join(", "))),
            ToolLimit::Never(tools) => tools
                .iter()
                .any(|rule| is_about(rule, &tool.spec().name))
                .then(|| format!("this session may not use these tools: {}", tools.join(", "))),
        };
        if let Some(why) = limits.iter().find_map(refused) {
            return denial_with_reason(why);
        }
        let preview = |call: &ToolCall, grant: &Grant| {
            tool.preview(call, &ToolCx { grant: grant.clone(), ..cx })
        };
        let (verdict, admitted) = match ask {
            None => judge.decide(tool.judged_as(), call, preview),
            Some(why) => judge.require_approval(tool.judged_as(), call, &why, preview),
        };
        Decision { verdict, admitted, said: HookInstructions::default() }
    }

    /// The same, on a separate thread.
    async fn both_off_loop(
        &self,
        call: &ToolCall,
        started: Option<ToolCall>,
        ask: Option<String>,
    ) -> Decision {
        let (deciding, judged) = (self.clone(), call.clone());
        let decided = move || deciding.decide_both(&judged, started.as_ref(), ask);
        spawn_blocking(decided).await.unwrap_or_else(|_panic| {
            denial_with_reason("the permission check crashed; this is a bug in gnoma".to_owned())
        })
    }
}

fn denial_with_reason(reason: String) -> Decision {
    Decision {
        verdict: Verdict::Deny { reason },
        admitted: None,
        said: HookInstructions::default(),
    }
}

/// Decides about a call once hooks have had their say, about it and about what it starts. What they changed is
/// judged like any call; what they forbid is not judged at all.
async fn decide_with_hooks(
    before: BeforeCallHooks,
    deciding: CallJudge,
    mut call: ToolCall,
) -> Decision {
    let (mut heard, written) = (HookAnswers::default(), call.arguments.clone());
    let decision = heard
        .decide_after_hooks(&before, &deciding, &mut call)
        .await
        .unwrap_or_else(|HookDenial(reason)| denial_with_reason(reason));
    let HookAnswers { mut said, ask: _ } = heard;
    said.amended = (call.arguments != written).then_some(call);
    Decision { said, ..decision }
}

/// The denial of a call by a hook, with the hook's reason.
#[derive(thiserror::Error)]
#[error("{0}")]
struct HookDenial(String);

gnoma_core::debug_as_display!(HookDenial);

/// The answers of hooks before a call.
#[derive(Default)]
struct HookAnswers {
    said: HookInstructions,
    /// The reason why a person has to be asked.
    ask: Option<String>,
}

impl HookAnswers {
    /// Decides about a call once the hooks before it have answered.
    async fn decide_after_hooks(
        &mut self,
        before: &BeforeCallHooks,
        deciding: &CallJudge,
        call: &mut ToolCall,
    ) -> Result<Decision, HookDenial> {
        // Hooks hear of the call as it is judged.
        deciding.normalize_on_thread(call).await;
        self.run_before_tool_hooks(before, call).await?;
        deciding.normalize_on_thread(call).await;
        let mut started = self.hear_started(before, deciding, call).await?;
        let decision = deciding.both_off_loop(call, started.clone(), self.ask.clone()).await;
        let Verdict::Ask { reason, .. } = &decision.verdict else { return Ok(decision) };
        // Hooks may change a call before a person is asked about it.
        let mut is_changed = run_permission_hooks(before, call, reason).await?;
        if is_changed {
            deciding.normalize_on_thread(call).await;
            started = self.hear_started(before, deciding, call).await?;
        }
        if let Some(started) = &mut started {
            is_changed |= run_permission_hooks(before, started, reason).await?;
        }
        if !is_changed {
            return Ok(decision);
        }
        Ok(deciding.both_off_loop(call, started, self.ask.clone()).await)
    }

    /// Returns the call that a call starts, as hooks have amended it.
    async fn hear_started(
        &mut self,
        before: &BeforeCallHooks,
        deciding: &CallJudge,
        call: &ToolCall,
    ) -> Result<Option<ToolCall>, HookDenial> {
        let Some(mut started) = deciding.session_start_call(call) else { return Ok(None) };
        self.run_before_tool_hooks(before, &mut started).await?;
        Ok(Some(started))
    }

    /// Asks hooks about a call, which they may change.
    async fn run_before_tool_hooks(
        &mut self,
        before: &BeforeCallHooks,
        call: &mut ToolCall,
    ) -> Result<(), HookDenial> {
        let PointAnswer { block, ask, arguments, context, stop, .. } =
            before.ask_before_tool(call).await;
        if let Some(arguments) = arguments {
            call.arguments = arguments;
        }
        self.ask = self.ask.take().or(ask);
        self.said.context.extend(context);
        self.said.stop = self.said.stop.take().or(stop);
        block.map_or(Ok(()), |reason| Err(HookDenial(reason)))
    }
}

/// Asks hooks about a call that a person would be asked about; says whether they changed it.
async fn run_permission_hooks(
    before: &BeforeCallHooks,
    call: &mut ToolCall,
    reason: &str,
) -> Result<bool, HookDenial> {
    let PointAnswer { block, arguments, .. } =
        before.ask_permission_hooks(call, reason.to_owned()).await;
    if let Some(reason) = block {
        return Err(HookDenial(reason));
    }
    let is_changed = arguments.is_some();
    if let Some(arguments) = arguments {
        call.arguments = arguments;
    }
    Ok(is_changed)
}
