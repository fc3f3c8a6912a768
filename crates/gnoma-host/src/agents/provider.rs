//! An agent as a provider: a request is what is new in the conversation, and the answer is what the agent
//! says until it takes a step that others should see.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use futures_util::stream::unfold;
use gnoma_acp::client::AgentEvent;
use gnoma_core::{
    ErrorKind, EventStream, Message, ModelInfo, ModelRequest, Provider, ProviderError, Role,
    StopReason, StreamEvent, ToolChoice, ToolResult,
    message::{CallId, ModelRef, ResultPart},
    plan::PlanStep,
    tool::{BoxFuture, INTERRUPTED, NOT_RUN, ToolKind},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    brief::{self, SeenPart},
    live_agent::{LiveAgent, PendingStep},
    program::{AgentProgram, PROVIDER},
    steps::{self, AgentStep, StepCall},
};

/// The time an agent may be silent in a turn: a command of its own may take long.
const SILENCE: Duration = Duration::from_secs(3600);

/// The agent as a provider.
pub(super) struct AgentProvider(pub(super) Arc<AgentProgram>);

impl Provider for AgentProvider {
    fn name(&self) -> &str {
        PROVIDER
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let talk = AgentAnswer {
            agent: Arc::clone(&self.0),
            request: Some(request),
            live: None,
            plan_tool: None,
            out: VecDeque::new(),
            block: (AgentAnswerBlock::None, 0),
            is_over: false,
        };
        Box::pin(unfold(talk, AgentAnswer::next))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        let id = self.0.settings.name.clone();
        Box::pin(async { Ok(vec![ModelInfo { id, ..ModelInfo::default() }]) })
    }
}

/// The content of the answer's block that is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentAnswerBlock {
    None,
    Text,
    Thinking,
    Call,
}

/// One answer. Dropped before its end, it stops the agent's turn.
struct AgentAnswer {
    agent: Arc<AgentProgram>,
    request: Option<ModelRequest>,
    live: Option<LiveAgent>,
    /// The tool that sets the plan, where it is on offer.
    plan_tool: Option<String>,
    out: VecDeque<StreamEvent>,
    block: (AgentAnswerBlock, u32),
    is_over: bool,
}

impl Drop for AgentAnswer {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            self.agent.desk.stop_turn(live);
        }
    }
}

/// The result that a request brings to a call of an agent's tool, and what was said behind it.
struct ReturnedResults<'m> {
    results: Vec<&'m ToolResult>,
    later: &'m [Arc<Message>],
}

fn trailing_results(messages: &[Arc<Message>]) -> Option<ReturnedResults<'_>> {
    let at = messages.iter().rposition(|message| message.role() != Role::User)?;
    let (message, later) = messages.get(at..)?.split_first()?;
    (message.role() == Role::Tool)
        .then(|| ReturnedResults { results: message.tool_results().collect(), later })
}

impl AgentAnswer {
    async fn next(mut self) -> Option<(Result<StreamEvent, ProviderError>, Self)> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Some((Ok(event), self));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.advance_once().await {
                self.is_over = true;
                // Its process ends with it.
                self.live = None;
                self.out.clear();
                return Some((Err(error), self));
            }
        }
    }

    async fn advance_once(&mut self) -> Result<(), ProviderError> {
        if let Some(request) = self.request.take() {
            let plan = request.tools.iter().find(|spec| spec.kind == ToolKind::Plans);
            self.plan_tool = plan.map(|spec| spec.name.clone());
            let model = Some(self.agent.settings.name.clone());
            self.out.push_back(StreamEvent::Started { model, id: None });
            return self.begin_request(&request).await;
        }
        let Some(live) = &mut self.live else { return Err(self.failure("is not running")) };
        match timeout(SILENCE, live.next_message()).await {
            Ok(Ok(said)) => self.on_message(said),
            Ok(Err(error)) => Err(self.failure(&error.to_string())),
            Err(_) => Err(self.failure("sent nothing for an hour")),
        }
    }

    fn model_ref(&self) -> ModelRef {
        ModelRef { provider: PROVIDER.to_owned(), model: self.agent.settings.name.clone() }
    }

    /// A failure that another attempt would only repeat: it would start the agent again each time.
    fn failure(&self, why: &str) -> ProviderError {
        ProviderError::new(ErrorKind::Agent, &self.agent.settings.name, why)
    }

    /// Goes on where the request comes with what the agent waits for; else the agent is wanted first.
    async fn begin_request(&mut self, request: &ModelRequest) -> Result<(), ProviderError> {
        let messages = &request.messages;
        let mut stopped = None;
        if let Some(ReturnedResults { results, later }) = trailing_results(messages) {
            for result in results {
                match self.agent.desk.take_waiting(&result.call_id) {
                    // The turn was stopped that the agent waited in.
                    Some(Some(live)) if was_stopped(result) => {
                        stopped = Some(live);
                    }
                    Some(Some(live)) if result.is_error && !live.is_in_turn() => {
                        self.agent.desk.add_idle(live);
                        return Err(self.failure(&result_text(result)));
                    }
                    Some(Some(live)) => {
                        self.resume_agent(live, result, later, messages);
                        return Ok(());
                    }
                    Some(None) => return Err(self.failure(&result_text(result))),
                    None => (),
                }
            }
        }
        if request.tool_choice == ToolChoice::None {
            let why = "is another program's agent: it runs its own turns, and cannot write \
                       summaries or reviews for other models";
            return Err(self.failure(why));
        }
        let live = match stopped.or_else(|| self.take_waiting_agent(messages)) {
            Some(mut live) => (live.cancel().await && live.seen.is_some()).then_some(live),
            None => self.agent.desk.take_idle(messages),
        };
        let id =
            self.end_with_call(AgentStep::Begin.tool_name(&self.agent.settings.name), &json!({}));
        self.agent.desk.add_waiting(id, live);
        Ok(())
    }

    /// The process that still waits under a call of this conversation, where others have answered since.
    fn take_waiting_agent(&self, messages: &[Arc<Message>]) -> Option<LiveAgent> {
        let mut calls = messages.iter().rev().flat_map(|message| message.tool_calls());
        calls.find_map(|call| self.agent.desk.take_waiting(&call.id)?)
    }

    fn resume_agent(
        &mut self,
        mut live: LiveAgent,
        result: &ToolResult,
        later: &[Arc<Message>],
        messages: &[Arc<Message>],
    ) {
        let words = result_text(result);
        match (&live.waits, result.is_error) {
            (PendingStep::Nothing, _) => (),
            (PendingStep::Text | PendingStep::Written | PendingStep::Leave(_), true) => {
                live.send_answer(Err(&words));
            }
            // The first line says what follows.
            (PendingStep::Text, false) => {
                live.send_answer(Ok(words.split_once('\n').map_or("", |(_, text)| text)));
            }
            (PendingStep::Written | PendingStep::Leave(_), false) => live.send_answer(Ok("")),
        }
        if live.is_in_turn() {
            live.later.extend((!later.is_empty()).then(|| brief::user_text(later)));
        } else {
            // The call that began the turn is no part of what is told.
            let told = messages.len().saturating_sub(later.len() + BEGINNING);
            let told = [messages.get(..told).unwrap_or_default(), later].concat();
            let known = live.seen.and_then(|seen| Some((true, seen.unseen_messages(&told)?)));
            let (is_known, new) = known.unwrap_or((false, &told));
            let prompt = brief::build_prompt(new, &self.model_ref(), !is_known);
            live.send_prompt(&prompt);
        }
        live.seen = Some(SeenPart::from_messages(messages));
        self.live = Some(live);
    }

    fn on_message(&mut self, said: AgentEvent) -> Result<(), ProviderError> {
        match said {
            AgentEvent::Text(text) if text.is_empty() => (),
            AgentEvent::Text(text) => {
                let slot = self.slot_for_block(AgentAnswerBlock::Text);
                self.out.push_back(StreamEvent::TextDelta { slot, text });
            }
            AgentEvent::Thought(text) => self.push_thinking(text),
            AgentEvent::Began(title) => self.push_thinking(format!("{title}\n")),
            AgentEvent::Plan(plan) => self.call_plan_tool(&plan),
            AgentEvent::Ended(id, call) => self.take_step(steps::completed_call(id, call)),
            AgentEvent::Asks(wish) => self.take_step(steps::requested_call(wish)),
            AgentEvent::Stopped(stop, usage) => {
                self.out.extend(usage.map(StreamEvent::Usage));
                self.on_stop(stop);
            }
            AgentEvent::Failed(words) => return Err(self.failure(&format!("failed: {words}"))),
            AgentEvent::Ready | AgentEvent::Opened => (),
        }
        Ok(())
    }

    fn push_thinking(&mut self, text: String) {
        let slot = self.slot_for_block(AgentAnswerBlock::Thinking);
        self.out.push_back(StreamEvent::ThinkingDelta { slot, text });
    }

    fn slot_for_block(&mut self, block: AgentAnswerBlock) -> u32 {
        if self.block.0 != block {
            self.block = (block, self.block.1 + 1);
        }
        self.block.1
    }

    fn on_stop(&mut self, stop: StopReason) {
        let Some(mut live) = self.live.take() else { return };
        if !live.later.is_empty() {
            let words = std::mem::take(&mut live.later).join("\n\n");
            live.send_prompt(&words);
            self.live = Some(live);
            return;
        }
        self.agent.desk.add_idle(live);
        self.out.push_back(StreamEvent::Stop(stop));
        self.is_over = true;
    }

    /// The plan is set by the session's own tool, if it has one.
    fn call_plan_tool(&mut self, plan: &[PlanStep]) {
        let Some(tool) = self.plan_tool.clone() else { return };
        let step = |step: &PlanStep| json!({ "text": step.text, "status": step.status });
        let steps: Vec<Value> = plan.iter().map(step).collect();
        let id = self.end_with_call(tool, &json!({ "steps": steps }));
        self.agent.desk.add_waiting(id, self.live.take());
    }

    fn take_step(&mut self, StepCall { step, arguments, waits, call }: StepCall) {
        let id = self.end_with_call(step.tool_name(&self.agent.settings.name), &arguments);
        if let Some(live) = &mut self.live {
            (live.waits, live.call) = (waits, call);
        }
        self.agent.desk.add_waiting(id, self.live.take());
    }

    /// Ends the round with a call.
    fn end_with_call(&mut self, name: String, arguments: &Value) -> CallId {
        let slot = self.slot_for_block(AgentAnswerBlock::Call);
        // No other session's call may be taken for it, nor one of an earlier life of this one.
        let id = format!("{}-{:016x}", self.agent.settings.name, RandomState::new().hash_one(slot));
        let fragment = steps::to_raw_json(arguments).get().to_owned();
        self.out.extend([
            StreamEvent::ToolCallStart { slot, id: id.clone(), name },
            StreamEvent::ToolCallDelta { slot, fragment },
            StreamEvent::ToolCallDone { slot },
            StreamEvent::Stop(StopReason::ToolUse),
        ]);
        self.is_over = true;
        CallId::new(id)
    }
}

/// Messages that begin an agent's turn: the call that starts it, and its result.
const BEGINNING: usize = 2;

/// Reports whether the turn to which the call belongs was stopped.
fn was_stopped(result: &ToolResult) -> bool {
    let text = result_text(result);
    text.ends_with(INTERRUPTED) || text == NOT_RUN
}

/// The words of a result; what gnoma added to it behind them is left out.
fn result_text(result: &ToolResult) -> String {
    let texts = result.parts.iter().find_map(|part| match part {
        ResultPart::Text { text } => Some(text.clone()),
        ResultPart::Image(_) => None,
    });
    texts.unwrap_or_default()
}
