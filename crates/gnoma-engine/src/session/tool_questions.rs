//! Shows permission questions and other questions of running tools to the person.

use gnoma_core::{
    Event, RawJson, ToolCall,
    message::CallId,
    session::PermissionAnswer,
    tool::{Budget, Progress, Question, Tier, ToolEvent, ToolKind},
};
use tokio::sync::oneshot;

use super::{
    pending::{MAX_QUESTIONS, OpenQuestion, ToolRequest},
    state::{FrontEndGone, Session},
};
use crate::{gate::NOBODY_TO_ASK, turn::Input};

const NOT_ASKED_ANY_MORE: &str = "no longer asked";

/// The id of a question of a tool; no model's call has such an id.
fn question_id(number: u64) -> CallId {
    CallId::new(format!("gnoma-question-{number}"))
}

impl Session {
    pub(super) async fn on_tool_request(
        &mut self,
        request: ToolRequest,
    ) -> Result<(), FrontEndGone> {
        match request {
            ToolRequest::Tell { call, event: ToolEvent::Progress(text) } => {
                self.emit_progress(Progress { call, text }).await
            }
            ToolRequest::Tell { event: ToolEvent::Notice { level, text }, .. } => {
                self.emit(Event::Notice { level, text }).await
            }
            ToolRequest::Ask { call, question, answer } => {
                self.show_question(call, question, answer).await
            }
            ToolRequest::AskModel(question, answer) => {
                self.ask_model(question, answer);
                Ok(())
            }
            ToolRequest::Paid(shares) => self.count_all_apart(shares).await,
            ToolRequest::Deliver(news) => self.feed_input(Input::News(news)).await,
            ToolRequest::TakeBack(question) => {
                self.pending.open.remove(&question);
                self.emit_decision(question, false, NOT_ASKED_ANY_MORE).await
            }
        }
    }

    /// Shows a tool's question to the person, under a separate id.
    async fn show_question(
        &mut self,
        call: CallId,
        question: Question,
        answer: oneshot::Sender<PermissionAnswer>,
    ) -> Result<(), FrontEndGone> {
        if question.leaves_sandbox && !self.gate.may_offer_outside(&call) {
            let _gone = answer.send(PermissionAnswer::Deny { reason: String::new() });
            return Ok(());
        }
        let running = self.turn.open_call(&call).cloned();
        let goes_on = running.is_none();
        let shown = running.or_else(|| self.of_child(&question));
        if let Some(reason) = self.gate.unattended_denial(&question) {
            return self.deny_unattended(&question, reason, answer).await;
        }
        let pending = &mut self.pending;
        // Without an answer the question counts as taken back.
        let Some(mut shown) = shown.filter(|_| pending.open.len() < MAX_QUESTIONS) else {
            return Ok(());
        };
        let always = self.gate.offered_rules(&call).filter(|_| question.may_be_always);
        let wants_words = question.inquiry.is_some();
        pending.asked += 1;
        shown.id = question_id(pending.asked);
        let (id, during) = (shown.id.clone(), Some(call.clone()));
        let Question { text: reason, preview, inquiry, parts, notable, dangers, .. } = question;
        let asked = Event::PermissionAsked {
            call: shown,
            reason,
            preview,
            always,
            inquiry,
            during,
            parts,
            notable,
            dangers,
        };
        let goes_on = goes_on.then(|| asked.clone());
        pending.open.insert(id, OpenQuestion { call, answer, wants_words, goes_on });
        self.emit(asked).await
    }

    /// Denies a tool's question, because no person is there to answer it.
    async fn deny_unattended(
        &mut self,
        question: &Question,
        reason: String,
        answer: oneshot::Sender<PermissionAnswer>,
    ) -> Result<(), FrontEndGone> {
        // No rule can give an answer in words.
        let reason = match question.inquiry {
            Some(_) => format!("{}, and {NOBODY_TO_ASK}", question.text),
            None => reason,
        };
        self.pending.asked += 1;
        let id = question_id(self.pending.asked);
        let _gone = answer.send(PermissionAnswer::Deny { reason: NOBODY_TO_ASK.to_owned() });
        self.emit_decision(id, false, &reason).await
    }

    /// The turn is over; questions of sessions that continue stay open.
    pub(super) async fn ask_again(&mut self) -> Result<(), FrontEndGone> {
        let open = self.pending.open.values().filter_map(|open| open.goes_on.clone());
        for asked in open.collect::<Vec<_>>() {
            self.front_end.events.send(asked).await.map_err(|_| FrontEndGone)?;
        }
        Ok(())
    }

    /// Builds the call that is shown for a question of a child session whose starting call is over.
    fn of_child(&self, question: &Question) -> Option<ToolCall> {
        let from = question.from.as_deref()?;
        let starter = self.tools.of_kind(Tier::Full, ToolKind::StartsSessions)?;
        let arguments = RawJson::from_value(&serde_json::json!({ "name": from })).ok()?;
        Some(ToolCall::new(CallId::new(""), &*starter.name, arguments))
    }

    /// A person has answered. Returns the answer if it is not for a tool's question.
    pub(super) async fn tool_answered(
        &mut self,
        question: &CallId,
        answer: PermissionAnswer,
    ) -> Result<Option<PermissionAnswer>, FrontEndGone> {
        let Some(open) = self.pending.open.remove(question) else { return Ok(Some(answer)) };
        let answer = if open.wants_words { answer.to_inquiry() } else { answer.to_permission() };
        match &answer {
            PermissionAnswer::Always => self.remember_answer(&open.call, None).await?,
            PermissionAnswer::Rule { rule, .. } => {
                self.remember_answer(&open.call, Some(rule.clone())).await?;
            }
            PermissionAnswer::Allow
            | PermissionAnswer::Part { .. }
            | PermissionAnswer::Deny { .. }
            | PermissionAnswer::Text { .. } => {}
        }
        let allowed = !matches!(answer, PermissionAnswer::Deny { .. });
        let reason = match (open.wants_words, allowed) {
            _ if matches!(answer, PermissionAnswer::Part { .. }) => "allowed in part by the user",
            (true, true) => "answered by the user",
            (true, false) => "not answered by the user",
            (false, true) => "allowed by the user",
            (false, false) => "denied by the user",
        };
        // A tool that has ended meanwhile does not hear it.
        let _gone = open.answer.send(answer);
        self.emit_decision(question.clone(), allowed, reason).await?;
        Ok(None)
    }

    /// Takes back what is still asked for a call, or for all.
    pub(super) async fn take_back(&mut self, call: Option<&CallId>) -> Result<(), FrontEndGone> {
        let is_over = |open: &OpenQuestion| call.is_none_or(|call| open.call == *call);
        let over = self.pending.open.extract_if(|_, open| is_over(open));
        for question in over.map(|(question, _)| question).collect::<Vec<_>>() {
            self.emit_decision(question, false, NOT_ASKED_ANY_MORE).await?;
        }
        Ok(())
    }

    async fn emit_decision(
        &mut self,
        call: CallId,
        allowed: bool,
        reason: &str,
    ) -> Result<(), FrontEndGone> {
        self.emit(Event::PermissionDecided { call, allowed, reason: reason.to_owned() }).await
    }

    /// Returns the amount that the turn and the session may still spend, as far as their own caps tell.
    pub(super) fn budget(&self) -> Budget {
        let [turn_micro_usd, session_micro_usd] = self.remaining_caps();
        Budget { turn_micro_usd, session_micro_usd }
    }

    /// Micro-dollars that are left of the turn's and the session's caps, where they have any.
    fn remaining_caps(&self) -> [Option<u64>; 2] {
        let caps = self.router.routes.settings.limits.caps();
        let in_turn = self.router.plan.as_ref().map_or(0, |plan| plan.spent.values().sum());
        let session = [self.router.scope.limit(), caps.session].into_iter().flatten().min();
        [(caps.turn, in_turn), (session, self.spending.session_micro_usd)]
            .map(|(most, spent)| most.map(|most| most.saturating_sub(spent)))
    }
}
