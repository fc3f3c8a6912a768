//! A call of the turn: the current arm is called, and its answer is read.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use gnoma_core::{
    ErrorKind, Event, EventStream, FormatStage, Message, ModelRequest, Provider as _,
    ProviderError, StreamEvent, ToolChoice, ToolSpec, Usage, duration,
    ledger::SettledCall,
    session::NoticeLevel,
    tool::{Tier, ToolKind},
};
use gnoma_router::{Arm, Wire, choice::expected_amount};
use tokio::time::Instant;

use super::{
    lean_first_look::first_look,
    silence::{ObservedSilence, Silence},
    spending::PendingCall,
    state::{FrontEndGone, Session},
};
use crate::{
    call::CallInput,
    context::cache::SentPrefix,
    prompt,
    routing::{arm_panel, meter::Meter, routes},
};

/// A server that sends empty pieces is believed to be thinking for so long, and so many of them.
const EMPTY_PATIENCE: Duration = Duration::from_secs(300);
const MAX_EMPTY_PIECES: usize = 64;

impl Session {
    /// Calls the current arm.
    pub(super) async fn call_model(
        &mut self,
        round: u32,
        attempt: u32,
    ) -> Result<(), FrontEndGone> {
        let Some(plan) = &self.router.plan else { return Ok(()) };
        let (arm, why) = (plan.arm.clone(), plan.why.clone());
        let is_panel = plan.panel_mode().is_some() && !plan.is_looking;
        if attempt == 1 {
            self.emit(Event::RoundStarted { round, arm: arm.id.clone(), why }).await?;
        }
        if attempt == 1
            && !is_panel
            && let Some(look) = first_look(&self.tools, &self.turn, &arm, &self.cwd)
        {
            self.begin_request(&arm);
            // No model is called, so nothing is spent.
            (self.spending.hold, self.spending.call) = (None, None);
            self.stream = Some(look);
            return Ok(());
        }
        if let Some(text) = self.router.thinking.describe_unsupported(&arm) {
            self.notify(NoticeLevel::Info, text).await?;
        }
        let request = self.build_request(&arm);
        let context_tokens = self.context_tokens();
        let routes = &self.router.routes;
        routes.record_call_start(&arm);
        let now_ms = routes.now_ms();
        let expected_call =
            routes::expected_call(&arm, expected_amount(&arm, context_tokens, None, now_ms));
        let panel = if round == 1 { self.first_call_panel(&request) } else { None };
        let shares = panel.as_ref().map(|panel| panel.shares.clone());
        self.stream = Some(match panel {
            Some(panel) => {
                // The members settle for themselves.
                self.spending.hold = None;
                arm_panel::stream_panel(panel)
            }
            None => self.stream_arm(&arm, request, (now_ms, expected_call)),
        });
        self.spending.call = Some(self.call_of(arm, context_tokens, shares));
        self.tell_notices().await
    }

    /// Sends a request to an arm, and notes when, and what the call is expected to take.
    fn stream_arm(
        &mut self,
        arm: &Arm,
        request: ModelRequest,
        (at_ms, expected): (i64, SettledCall),
    ) -> EventStream {
        if let Some(hold) = &mut self.spending.hold {
            hold.mark_sent(at_ms, expected);
        }
        match self.router.routes.with_firewall(&arm.id, &self.firewall) {
            Ok(provider) => provider.stream(request),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }

    fn call_of(
        &self,
        arm: Arc<Arm>,
        context_tokens: u64,
        shares: Option<arm_panel::Shares>,
    ) -> PendingCall {
        let limits = self.turn.limits();
        let is_own = is_own_server(&arm);
        let first = if is_own { limits.local_first_byte } else { limits.first_byte };
        // The members of a panel have their own patience.
        // So have agents, whose commands may take long.
        let is_waited_for = shares.is_none() && arm.wire != Wire::Agent;
        let silence = is_waited_for.then(|| Silence::new(first, limits.silence, is_own));
        let meter = Meter::for_arm(&arm, context_tokens);
        PendingCall {
            arm,
            since: Instant::now(),
            first: None,
            heard: (Instant::now(), 0),
            // The prompt is in it already, which what is expected has again.
            meter,
            messages: self.turn.history().len(),
            shares,
            is_over: false,
            is_dropped: false,
            silence,
        }
    }

    /// Handles an event of the model's answer, or the failure of the call.
    pub(super) async fn on_stream_event(
        &mut self,
        event: Result<StreamEvent, ProviderError>,
    ) -> Result<(), FrontEndGone> {
        if let (Ok(event), Some(call)) = (&event, &mut self.spending.call) {
            call.record_event(event);
        }
        match &event {
            Ok(StreamEvent::RateLimits { headers }) => {
                if let Some(call) = &self.spending.call {
                    self.router.routes.limits_told(&call.arm.id, headers);
                }
                return Ok(());
            }
            Ok(StreamEvent::Adapted { note }) => {
                return self.notify(NoticeLevel::Warning, note.clone()).await;
            }
            Ok(StreamEvent::Usage(usage)) if self.is_implausible_usage(usage) => {
                return self.tell_doubt(*usage).await;
            }
            Ok(event) => {
                self.meter_event(event);
                self.panel_answered().await?;
            }
            Err(error) => self.note_failure(error),
        }
        if let Some(error) = self.says_nothing() {
            self.stream = None;
            self.note_failure(&error);
            return self.feed_input(CallInput::Stream(Err(error)).into()).await;
        }
        self.feed_input(CallInput::Stream(event).into()).await
    }

    fn is_implausible_usage(&self, usage: &Usage) -> bool {
        // What the members of a panel report is summed up.
        let call = self.spending.call.as_ref().filter(|call| call.shares.is_none());
        call.is_some_and(|call| call.meter.is_implausible(usage))
    }

    /// Says once that a provider reports what cannot be; gnoma's own count takes its place.
    async fn tell_doubt(&mut self, usage: Usage) -> Result<(), FrontEndGone> {
        let Some(call) = &mut self.spending.call else { return Ok(()) };
        call.meter.record_event(&StreamEvent::Usage(usage));
        let name = call.arm.id.clone();
        if std::mem::replace(&mut self.spending.has_doubted, true) {
            return Ok(());
        }
        let text = format!(
            "{name} reported {} tokens, more than the request and the answer can have; gnoma counts its own \
             estimate",
            usage.total_tokens()
        );
        self.notify(NoticeLevel::Warning, text).await
    }

    fn meter_event(&mut self, event: &StreamEvent) {
        let Some(call) = &mut self.spending.call else { return };
        call.meter.record_event(event);
        call.heard = if says_something(event) {
            (Instant::now(), 0)
        } else {
            (call.heard.0, call.heard.1 + 1)
        };
        let first = *call.first.get_or_insert_with(|| call.since.elapsed());
        if matches!(event, StreamEvent::Stop(_)) {
            call.is_over = true;
            // The members of a panel speak for themselves.
            if call.shares.is_none() {
                let usage = call.meter.reported_usage().unwrap_or_default();
                self.router.routes.record_success(&call.arm, first, call.since.elapsed(), usage);
                if let Some(plan) = &mut self.router.plan {
                    plan.parts.credit_arm(&call.arm.id);
                }
            }
        }
    }

    /// The failure of a call whose server keeps sending, but nothing of an answer.
    fn says_nothing(&self) -> Option<ProviderError> {
        let call = self.spending.call.as_ref().filter(|call| !call.is_over)?;
        let (since, pieces) = call.heard;
        (pieces > MAX_EMPTY_PIECES && since.elapsed() > EMPTY_PATIENCE).then(|| {
            let said = "sent no part of an answer for a long time, but did not end it";
            ProviderError::new(ErrorKind::Timeout, &call.arm.id.provider, said)
        })
    }

    fn note_failure(&mut self, error: &ProviderError) {
        if let Some(call) = &mut self.spending.call {
            call.is_over = true;
            call.meter.record_failure(error.kind);
            // The members of a panel are noted as they fail, and its error may be any one's.
            if call.shares.is_none() {
                self.router.routes.record_failure(&call.arm, error);
            }
        }
    }

    /// The call is given up, unless it is over.
    pub(super) fn drop_call(&mut self) {
        if let Some(call) = &mut self.spending.call
            && !std::mem::replace(&mut call.is_over, true)
        {
            call.is_dropped = true;
            self.router.routes.record_abandonment(&call.arm);
        }
    }

    /// The tools are made ready for the arm that is asked.
    fn begin_request(&mut self, arm: &Arm) {
        // Calls of an earlier round that never ran are over.
        self.gate.clear();
        self.add_next_tools();
        self.reads_results = self.tools.of_kind(arm.tier(), ToolKind::ReadsResults).cloned();
    }

    /// The request to an arm, with the current history.
    pub(super) fn build_request(&mut self, arm: &Arm) -> ModelRequest {
        self.begin_request(arm);
        let tier = arm.tier();
        let mut messages = self.messages_to_send(tier);
        let tools = match (arm.tools, self.router.is_looking()) {
            (false, _) => Arc::default(),
            (true, false) => {
                let withheld = self.turn.withheld_tool().filter(|_| tier == Tier::Lean);
                self.tools.specs_without(tier, withheld)
            }
            (true, true) => {
                messages.push(Arc::new(Message::user_text(prompt::system_note(arm_panel::LOOK))));
                self.tools.read_only_specs(tier)
            }
        };
        let tool_choice = if !self.turn.may_use_tools() || tools.is_empty() {
            ToolChoice::None
        } else {
            ToolChoice::Auto
        };
        let system = self.prompts.system_prompt(tier);
        self.note_prefix(arm, &system, &tools, messages.clone());
        let task = self.router.plan.as_ref().map(|plan| &plan.task);
        let (effort, thinking) = self.router.thinking.effort_for(arm, task);
        ModelRequest {
            model: arm.id.model.as_str().into(),
            system,
            messages,
            tools,
            tool_choice,
            max_output_tokens: match (arm.answer_limit(), self.spending.answer_tokens) {
                (Some(most), Some(room)) => Some(most.min(room)),
                (most, room) => most.or(room),
            },
            temperature: arm.sampling_temperature(),
            effort,
            thinking,
            context_window: arm.context_window,
            format: self
                .turn
                .answer_format()
                .filter(|it| arm.tools || it.stage != FormatStage::AsCall),
        }
    }

    /// The messages to send: an example for a lean arm, the summary, and what was said since.
    fn messages_to_send(&mut self, tier: Tier) -> Vec<Arc<Message>> {
        let (summary, rest) = self.turn.conversation();
        let summary = summary.map(std::slice::from_ref).unwrap_or_default();
        // Where only the answer is wanted, calls are no example.
        let example = if self.turn.wants_shape() {
            &[]
        } else {
            self.prompts.example_messages(tier, self.tools.specs(tier))
        };
        [example, summary, rest].concat()
    }

    /// Notes the request, to show what fills the window or what invalidated a cache.
    fn note_prefix(
        &self,
        arm: &Arm,
        system: &Arc<str>,
        tools: &Arc<[Arc<ToolSpec>]>,
        messages: Vec<Arc<Message>>,
    ) {
        self.prompts.gauge.record_request(Arc::clone(system), Arc::clone(tools), messages);
        let history = self.turn.history();
        let (summary, rest) = self.turn.conversation();
        let last = history.len().checked_sub(1);
        let sent = SentPrefix {
            arm: arm.id.clone(),
            system: Arc::clone(system),
            tools: Arc::clone(tools),
            summary: summary.cloned(),
            from: history.len() - rest.len(),
            last: last.and_then(|at| Some((at, Arc::clone(history.get(at)?)))),
            at_ms: self.router.routes.now_ms(),
        };
        let message_at = |place: usize| history.get(place).cloned();
        self.prompts.gauge.with_cache(|cache| cache.record_request(sent, message_at));
    }

    /// Returns the time at which the silence of the model has to be checked; `None` if no model is being waited
    /// for.
    pub(super) fn silent_until(&self) -> Option<Instant> {
        self.stream.as_ref()?;
        Some(self.spending.call.as_ref()?.silence.as_ref()?.next_check_at())
    }

    /// The model has been silent for long: a notice says so, or the call is abandoned.
    pub(super) async fn on_silence(&mut self) -> Result<(), FrontEndGone> {
        let Some(PendingCall { arm, silence: Some(silence), .. }) = &mut self.spending.call else {
            return Ok(());
        };
        let ObservedSilence { waited, limit, has_begun } = silence.observe_silence();
        let (name, is_local) = (arm.id.clone(), is_own_server(arm));
        if waited < limit {
            let (waited_ms, limit_ms) = (to_milliseconds(waited), to_milliseconds(limit));
            return self.emit(Event::Waiting { arm: name, waited_ms, limit_ms }).await;
        }
        let (what, key) = match (has_begun, is_local) {
            (true, _) => ("no part of the answer came", "idle_timeout"),
            (false, true) => ("no answer", "local_first_byte_timeout"),
            (false, false) => ("no answer", "first_byte_timeout"),
        };
        let text = format!("{what} for {}", duration::format_duration(limit));
        let hint =
            format!("Raise `network.{key}` if the model needs longer to load, think or read.");
        let error = ProviderError::new(ErrorKind::Timeout, name.provider, text).with_hint(hint);
        self.on_stream_event(Err(error)).await
    }
}

/// Reports whether the arm's server may have to load its model first: a server on this machine, whatever its name.
fn is_own_server(arm: &Arm) -> bool {
    arm.local || arm.stays_here
}

fn to_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reports whether an event makes the answer longer or ends it: empty pieces could continue forever.
fn says_something(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::TextDelta { text, .. } | StreamEvent::ThinkingDelta { text, .. } => {
            !text.is_empty()
        }
        StreamEvent::ToolCallDelta { fragment, .. } => !fragment.is_empty(),
        StreamEvent::Redacted { .. } | StreamEvent::ToolCallStart { .. } | StreamEvent::Stop(_) => {
            true
        }
        StreamEvent::RateLimits { .. }
        | StreamEvent::Adapted { .. }
        | StreamEvent::UnknownStop { .. }
        | StreamEvent::Started { .. }
        | StreamEvent::Signature { .. }
        | StreamEvent::Item { .. }
        | StreamEvent::ToolCallDone { .. }
        | StreamEvent::Usage(_) => false,
    }
}
