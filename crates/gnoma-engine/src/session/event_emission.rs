//! Telling events: what one means is kept first, and what it means for the session is done.

use std::mem;

use gnoma_core::{
    Event, Usage,
    session::{NoticeLevel, Outcome, SessionState},
};

use super::state::{FrontEndGone, Session};

impl Session {
    /// Tells an event of the turn, and does what it means for the session.
    pub(super) async fn emit(&mut self, mut event: Event) -> Result<(), FrontEndGone> {
        match &mut event {
            Event::ToolCallDrafted { name, .. } if self.tools.may_write(name) => {
                self.persistence.prepare_checkpoint();
            }
            Event::ToolEnded { call, .. } => self.gate.remove_call(&call.id),
            Event::Compacted { .. } | Event::Uncompacted { .. } => self.reset_context(),
            Event::State(SessionState::Active) => {
                self.spending.unreported_usage = Usage::default();
            }
            Event::TurnEnded { outcome, usage, .. } => {
                *usage += self.turn_is_over(outcome).await?;
            }
            _ => (),
        }
        self.tell_points(&event);
        let is_retold = matches!(event, Event::Compacted { .. } | Event::Uncompacted { .. });
        self.send_event(event).await?;
        if is_retold { self.tell_context().await } else { Ok(()) }
    }

    /// Tells an event that means nothing for the session.
    pub(super) async fn send_event(&mut self, event: Event) -> Result<(), FrontEndGone> {
        if let Some(lifecycle) = &self.added.lifecycle {
            lifecycle.on_event(&event);
        }
        self.persistence.store_event(&event, self.turn.history(), self.turn_ends).await;
        self.front_end.events.send(event).await.map_err(|_| FrontEndGone)
    }

    pub(super) async fn notify(
        &mut self,
        level: NoticeLevel,
        text: String,
    ) -> Result<(), FrontEndGone> {
        self.emit(Event::Notice { level, text }).await
    }

    /// Reports to people what the firewall did to requests, once per secret.
    pub(super) async fn tell_notices(&mut self) -> Result<(), FrontEndGone> {
        for notice in self.firewall.take_notices() {
            self.notify(NoticeLevel::Warning, notice.to_string()).await?;
        }
        Ok(())
    }

    /// From now on, models receive the conversation in another form: no prompt of it is cached.
    fn reset_context(&mut self) {
        let (summary, rest) = self.turn.conversation();
        self.prompts.gauge.set_summary(summary.cloned());
        let told = summary.into_iter().chain(rest).map(AsRef::as_ref);
        self.spending.tracker.replace_first_messages(told, self.turn.history().len());
        let tokens = self.context_tokens();
        self.router.reset_context(tokens);
    }

    /// A turn has ended: its plan waits for what the person thinks of it. Returns the tokens that no provider has
    /// reported.
    async fn turn_is_over(&mut self, outcome: &Outcome) -> Result<Usage, FrontEndGone> {
        self.settle_side_calls().await?;
        let taken = mem::take(&mut self.spending.unreported_usage);
        if let Some(plan) = self.router.end_turn(outcome, self.turn.tool_handling()) {
            self.share_out(&plan);
            self.router.put_away(plan);
        }
        Ok(taken)
    }
}
