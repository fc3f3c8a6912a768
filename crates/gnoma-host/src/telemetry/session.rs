//! Spans of one session from its events: turns, tools, questions and compactions.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    CallId, Event, Message, Role, ToolCall, ToolResult,
    info::ChildInfo,
    session::{CommandEnd, Outcome, SessionState, TrialEnd},
    store::SessionId,
    sync::Mutex,
};
use gnoma_extend::mcp;
use gnoma_otel::{
    Attribute, AttributeValue, Instrument, LogSeverity, Span, SpanContext, SpanEvent, SpanId,
    SpanKind,
};

use super::{
    calls::{arm_attributes, error_name, error_type, provider_name},
    content::{Redaction, result_text},
    open_call::{AskedQuestion, OpenCall},
    process::{Telemetry, to_nanoseconds},
    spans::SessionSpans,
};
use crate::Project;

/// The variable that names the span of whatever started this program.
const TRACEPARENT: &str = "TRACEPARENT";

/// Calls and questions of a session that are open at once; more have no spans.
const MAX_OPEN: usize = 64;
/// Events that a turn's span has.
const MAX_SPAN_EVENTS: usize = 128;

/// A session as its spans have it.
pub(crate) struct TracedSession {
    /// The id of the session.
    pub(crate) id: SessionId,
    /// The session that started it, with the call that did.
    pub(crate) parent: Option<(SessionId, ChildInfo)>,
}

/// Makes the spans of one session. Dropping it ends those that are open.
pub struct SessionTrace {
    telemetry: Arc<Telemetry>,
    project: Arc<Project>,
    redaction: Redaction,
    session: TracedSession,
    spans: Arc<Mutex<SessionSpans>>,
    turn: Option<OpenTurn>,
    calls: HashMap<CallId, OpenCall>,
    questions: HashMap<CallId, AskedQuestion>,
    /// The time of the last event that a compaction can follow.
    last_ms: i64,
}

struct OpenTurn {
    context: SpanContext,
    begin_ms: i64,
    events: Vec<SpanEvent>,
    /// Facts that become known in the turn.
    attributes: Vec<Attribute>,
}

impl SessionTrace {
    /// Begins the spans of a session, if its project sends telemetry. Must be called within a runtime.
    pub(crate) fn open(project: &Arc<Project>, session: TracedSession) -> Option<Self> {
        let telemetry = Arc::clone(project.telemetry.as_ref()?);
        let strict = Arc::new(project.strict_firewall().ok()?);
        let redaction = Redaction([Arc::clone(&project.firewall), strict]);
        let remote = match &session.parent {
            Some((parent, child)) => {
                telemetry.spans_of(parent.as_str())?.lock().call_or_above(&child.call)
            }
            None => project.environment().get(TRACEPARENT).and_then(SpanContext::parse),
        };
        let spans = Arc::new(Mutex::new(SessionSpans::with_remote(remote)));
        telemetry.exporter();
        telemetry.register_session(session.id.as_str(), &spans, &project.notices);
        Some(Self {
            telemetry,
            project: Arc::clone(project),
            redaction,
            session,
            spans,
            turn: None,
            calls: HashMap::new(),
            questions: HashMap::new(),
            last_ms: 0,
        })
    }

    /// Takes in what happens.
    pub(crate) fn observe(&mut self, event: &Event) {
        let now_ms = self.project.now_ms();
        match event {
            Event::State(SessionState::Active) => self.begin_turn(now_ms),
            Event::TurnEnded { outcome, rounds, .. } => self.end_turn(now_ms, outcome, *rounds),
            Event::State(SessionState::Idle | SessionState::Closed) => self.close_turn(now_ms),
            Event::RoundStarted { arm, .. } => {
                self.set_attribute("gen_ai.provider.name", provider_name(&arm.provider).into());
                self.set_attribute(
                    "gen_ai.request.model",
                    AttributeValue::Text(self.redaction.redact_name(&arm.model)),
                );
            }
            Event::ArmChanged { from, to, .. } => {
                let arm = |name: &'static str, arm: &dyn ToString| {
                    (
                        name.into(),
                        AttributeValue::Text(self.redaction.redact_name(&arm.to_string())),
                    )
                };
                let facts = vec![arm("gnoma.arm.from", from), arm("gnoma.arm.to", to)];
                self.add_event(now_ms, "gnoma.failover", facts);
                let facts = arm_attributes(from);
                self.telemetry.exporter().add_count(Instrument::Failovers, 1, facts);
            }
            Event::Retrying { error, .. } => {
                let facts = vec![error_type(&error_name(error.kind))];
                self.add_event(now_ms, "gnoma.retry", facts);
            }
            Event::Appended(message) => self.add_message(message),
            Event::Compacted { summary, messages } => {
                self.add_compaction(now_ms, summary.len(), *messages);
            }
            _ => self.observe_call(now_ms, event),
        }
        if !matches!(event, Event::Cost { .. } | Event::Context(_) | Event::Notice { .. }) {
            self.last_ms = now_ms;
        }
    }

    fn observe_call(&mut self, now_ms: i64, event: &Event) {
        match event {
            Event::PermissionAsked { call, inquiry, during, parts, .. } => {
                let kind = match (inquiry, during) {
                    (Some(_), _) => "inquiry",
                    (None, Some(_)) if !parts.is_empty() => "trial",
                    (None, _) => "approval",
                };
                let open = match during {
                    Some(running) => self.calls.get_mut(running),
                    None => self.open_call(now_ms, &call.id, &call.name),
                };
                if let Some(open) = open {
                    open.was_asked = true;
                }
                let above = self.spans.lock().call_or_above(during.as_ref().unwrap_or(&call.id));
                if let Some(above) = above.filter(|_| self.questions.len() < MAX_OPEN) {
                    let is_within = during.is_some();
                    let question = AskedQuestion { begin_ms: now_ms, above, is_within, kind };
                    self.questions.insert(call.id.clone(), question);
                }
            }
            Event::PermissionDecided { call, allowed, .. } => {
                let is_within = self.questions.get(call).is_some_and(|it| it.is_within);
                self.end_question(now_ms, call, Some(*allowed));
                if !is_within && let Some(open) = self.open_call(now_ms, call, "") {
                    open.allowed = Some(*allowed);
                }
            }
            Event::ToolStarted { call } => {
                let arguments = self.telemetry.has_content;
                let arguments =
                    arguments.then(|| self.redaction.redact_content(call.arguments.get()));
                if let Some(open) = self.open_call(now_ms, &call.id, &call.name) {
                    (open.is_started, open.arguments) = (true, arguments);
                }
            }
            Event::ToolEnded { call, result, duration_ms, command, .. } => {
                self.end_call(now_ms, (call, result), *duration_ms, command.unwrap_or_default());
            }
            _ => (),
        }
    }

    fn begin_turn(&mut self, now_ms: i64) {
        self.close_turn(now_ms);
        let context = self.spans.lock().begin_turn(|| self.telemetry.random_id());
        let (events, attributes) = (Vec::new(), Vec::new());
        self.turn = Some(OpenTurn { context, begin_ms: now_ms, events, attributes });
    }

    fn end_turn(&mut self, now_ms: i64, outcome: &Outcome, rounds: u32) {
        let name = outcome.name();
        let error = match outcome {
            Outcome::Complete { .. } | Outcome::Cancelled => None,
            Outcome::RoundLimit { .. } | Outcome::Stuck { .. } | Outcome::Unfit { .. } => {
                Some(name.to_owned())
            }
            Outcome::Failed { error, .. } => Some(error_name(error.kind)),
        };
        self.set_attribute("gnoma.turn.outcome", name.into());
        self.set_attribute("gnoma.turn.rounds", u64::from(rounds).into());
        let kind = if self.session.parent.is_some() { "elf" } else { "turn" };
        let facts = vec![
            ("gnoma.turn.outcome".into(), name.into()),
            ("gnoma.turn.kind".into(), kind.into()),
        ];
        if let Some(error) = &error {
            let context = self.turn.as_ref().map(|turn| turn.context);
            let mut facts = facts.clone();
            facts.push(error_type(error));
            let event = ("gnoma.error", LogSeverity::Error);
            self.telemetry.send_log(event, now_ms, context, facts);
        }
        self.telemetry.exporter().add_count(Instrument::Turns, 1, facts);
        self.finish_turn(now_ms, error);
    }

    /// Ends what is open: the turn, its calls and questions.
    fn close_turn(&mut self, now_ms: i64) {
        if self.turn.is_some() {
            self.finish_turn(now_ms, None);
        }
    }

    fn finish_turn(&mut self, now_ms: i64, error: Option<String>) {
        let asked: Vec<_> = self.questions.keys().cloned().collect();
        asked.iter().for_each(|call| self.end_question(now_ms, call, None));
        for (id, call) in std::mem::take(&mut self.calls) {
            // A call that was only judged has no name yet.
            if call.tool.is_empty() {
                continue;
            }
            self.send_call(now_ms, &id, call, vec![error_type("interrupted")]);
        }
        let Some(OpenTurn { context, begin_ms, events, attributes }) = self.turn.take() else {
            return;
        };
        let agent = match &self.session.parent {
            Some((_, child)) if !child.name.is_empty() => self.redaction.redact_name(&child.name),
            Some(_) | None => "gnoma".to_owned(),
        };
        let mut all: Vec<Attribute> = vec![
            ("gen_ai.operation.name".into(), "invoke_agent".into()),
            ("gen_ai.agent.name".into(), AttributeValue::Text(agent.clone())),
            ("gen_ai.conversation.id".into(), self.session.id.as_str().into()),
        ];
        all.extend(attributes);
        all.extend(error.as_deref().map(error_type));
        let parent = self.spans.lock().remote.map(|remote| remote.span);
        let name = format!("invoke_agent {agent}");
        let times = (begin_ms, now_ms);
        self.send_span(context, parent, name, SpanKind::Internal, times, (all, events, error));
    }

    /// The open call of that id, which begins now if it is new; `None` if too many are open.
    fn open_call(&mut self, now_ms: i64, id: &CallId, tool: &str) -> Option<&mut OpenCall> {
        if self.turn.is_none() || self.calls.len() >= MAX_OPEN && !self.calls.contains_key(id) {
            return None;
        }
        if !self.calls.contains_key(id) {
            let context = self.spans.lock().open_call(id, self.telemetry.random_id())?;
            self.calls.insert(id.clone(), OpenCall::new(context, now_ms));
        }
        let open = self.calls.get_mut(id)?;
        if open.tool.is_empty() {
            open.tool = self.redaction.redact_name(tool);
        }
        Some(open)
    }

    fn end_call(
        &mut self,
        now_ms: i64,
        (call, result): (&ToolCall, &ToolResult),
        took_ms: u64,
        command: CommandEnd,
    ) {
        let begin_ms = now_ms.saturating_sub(i64::try_from(took_ms).unwrap_or_default());
        if self.open_call(begin_ms, &call.id, &call.name).is_none() {
            return;
        }
        let Some(open) = self.calls.remove(&call.id) else { return };
        let mut facts: Vec<Attribute> = Vec::new();
        if let Some(end) = command.trial {
            let end = match end {
                TrialEnd::Kept => "kept",
                TrialEnd::NotKept => "not_kept",
            };
            facts.push(("gnoma.tool.trial".into(), end.into()));
        }
        if let Some(code) = command.exit_code {
            facts.push(("gnoma.tool.exit_code".into(), AttributeValue::Int(code.into())));
        }
        if self.telemetry.has_content {
            let text = self.redaction.redact_content(&result_text(&result.parts));
            let result = AttributeValue::Text(text);
            facts.push(("gen_ai.tool.call.result".into(), result));
        }
        if result.is_error {
            let is_denied = open.allowed == Some(false);
            facts.push(error_type(if is_denied { "denied" } else { "tool_error" }));
        }
        self.send_call(now_ms, &call.id, open, facts);
    }

    fn send_call(&self, now_ms: i64, id: &CallId, call: OpenCall, facts: Vec<Attribute>) {
        self.spans.lock().end_call(id);
        let Some(turn) = &self.turn else { return };
        let is_of_server = call.tool.starts_with(mcp::PREFIX);
        let mut all: Vec<Attribute> = vec![
            ("gen_ai.operation.name".into(), "execute_tool".into()),
            (
                "gen_ai.tool.call.id".into(),
                AttributeValue::Text(self.redaction.redact_name(id.as_str())),
            ),
            ("gen_ai.tool.type".into(), if is_of_server { "extension" } else { "function" }.into()),
            ("gnoma.tool.asked".into(), AttributeValue::Bool(call.was_asked)),
        ];
        if is_of_server && call.is_started {
            all.push(("mcp.method.name".into(), "tools/call".into()));
        }
        if let Some(allowed) = call.allowed {
            let verdict = if allowed { "allowed" } else { "denied" };
            all.push(("gnoma.tool.verdict".into(), verdict.into()));
        }
        if let Some(arguments) = call.arguments {
            all.push(("gen_ai.tool.call.arguments".into(), AttributeValue::Text(arguments)));
        }
        let error = facts.iter().find(|(name, _)| name == "error.type");
        let error = error.and_then(|(_, value)| match value {
            AttributeValue::Text(text) => Some(text.clone()),
            _ => None,
        });
        let name = format!("execute_tool {}", call.tool);
        all.push(("gen_ai.tool.name".into(), AttributeValue::Text(call.tool)));
        all.extend(facts);
        // A call of a server is one span, as the conventions of MCP recommend, so it is the client's.
        let kind = if is_of_server { SpanKind::Client } else { SpanKind::Internal };
        let times = (call.begin_ms, now_ms);
        let parts = (all, Vec::new(), error);
        self.send_span(call.context, Some(turn.context.span), name, kind, times, parts);
    }

    /// Ends a question. Those of an elf are shown at the call of its parent as well, where they have their span.
    fn end_question(&mut self, now_ms: i64, id: &CallId, allowed: Option<bool>) {
        let Some(question) = self.questions.remove(id) else { return };
        if self.session.parent.is_some() {
            return;
        }
        let answer = match allowed {
            Some(true) => "allowed",
            Some(false) => "denied",
            None => "withdrawn",
        };
        let facts = || -> Vec<Attribute> {
            vec![
                ("gnoma.question.kind".into(), question.kind.into()),
                ("gnoma.question.answer".into(), answer.into()),
            ]
        };
        self.telemetry.exporter().add_count(Instrument::Questions, 1, facts());
        let above = question.above;
        let context =
            SpanContext { span: SpanId::from_random(self.telemetry.random_id()), ..above };
        let log = ("gnoma.question", LogSeverity::Info);
        self.telemetry.send_log(log, now_ms, Some(context), facts());
        let times = (question.begin_ms, now_ms);
        let parts = (facts(), Vec::new(), None);
        self.send_span(
            context,
            Some(above.span),
            "question".to_owned(),
            SpanKind::Internal,
            times,
            parts,
        );
    }

    fn add_compaction(&mut self, now_ms: i64, summary_bytes: usize, messages: usize) {
        let Some(above) = self.spans.lock().parent_span() else { return };
        let context =
            SpanContext { span: SpanId::from_random(self.telemetry.random_id()), ..above };
        let facts = vec![
            ("gnoma.compaction.messages".into(), (messages as u64).into()),
            ("gnoma.compaction.summary_bytes".into(), (summary_bytes as u64).into()),
        ];
        let begin_ms = if self.last_ms == 0 { now_ms } else { self.last_ms };
        let parts = (facts, Vec::new(), None);
        let times = (begin_ms, now_ms);
        self.send_span(
            context,
            Some(above.span),
            "compaction".to_owned(),
            SpanKind::Internal,
            times,
            parts,
        );
    }

    fn add_message(&mut self, message: &Message) {
        if !self.telemetry.has_content {
            return;
        }
        let (name, role) = match message.role() {
            Role::User => ("gen_ai.input.messages", "user"),
            Role::Assistant => ("gen_ai.output.messages", "assistant"),
            Role::Tool => return,
        };
        // The first message of a turn is the question, and the last one the answer.
        let is_known = self.turn.as_ref().is_some_and(|turn| {
            role == "user" && gnoma_otel::find_attribute(&turn.attributes, name).is_some()
        });
        if !is_known {
            self.set_attribute(
                name,
                AttributeValue::Text(self.redaction.format_message(role, message)),
            );
        }
    }

    fn set_attribute(&mut self, name: &'static str, value: AttributeValue) {
        if let Some(turn) = &mut self.turn {
            turn.attributes.retain(|(known, _)| known != name);
            turn.attributes.push((name.into(), value));
        }
    }

    fn add_event(&mut self, now_ms: i64, name: &'static str, attributes: Vec<Attribute>) {
        let context = self.turn.as_ref().map(|turn| turn.context);
        let log = (name, LogSeverity::Warning);
        self.telemetry.send_log(log, now_ms, context, attributes.clone());
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.events.len() < MAX_SPAN_EVENTS) {
            turn.events.push(SpanEvent { name, at_ns: to_nanoseconds(now_ms), attributes });
        }
    }

    fn send_span(
        &self,
        context: SpanContext,
        parent: Option<SpanId>,
        name: String,
        kind: SpanKind,
        (begin_ms, end_ms): (i64, i64),
        (attributes, events, error): (Vec<Attribute>, Vec<SpanEvent>, Option<String>),
    ) {
        if context.is_sampled {
            self.telemetry.exporter().send_span(Span {
                trace: context.trace,
                id: context.span,
                parent,
                name,
                kind,
                start_ns: to_nanoseconds(begin_ms),
                end_ns: to_nanoseconds(end_ms),
                attributes,
                events,
                error,
            });
        }
    }
}

impl Drop for SessionTrace {
    fn drop(&mut self) {
        let now_ms = self.project.now_ms();
        self.close_turn(now_ms);
    }
}
