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
        let mut used: Option<Usage> = None;
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
            Event::Usage { round, .. } => used = Some(*round),
            _ => (),
        }
        self.tell_points(&event);
        let is_retold = matches!(event, Event::Compacted { .. } | Event::Uncompacted { .. });
        self.send_event(event).await?;
        match used {
            Some(usage) => self.record_usage(usage).await,
            None if is_retold => self.tell_context().await,
            None => Ok(()),
        }
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
    /// reported, and those of a call that was stopped with it.
    async fn turn_is_over(&mut self, outcome: &Outcome) -> Result<Usage, FrontEndGone> {
        self.drop_call();
        let stopped = self.spending.call.as_ref().filter(|call| call.is_dropped);
        let stopped = stopped.map(|call| call.meter.total_usage());
        let mut taken = mem::take(&mut self.spending.unreported_usage);
        let rest = self.settle_rest();
        self.tell_costs(rest).await?;
        let last = mem::take(&mut self.spending.unreported_usage);
        // The meter of a call that was stopped has counted what its shares count.
        taken += stopped.unwrap_or(last);
        if let Some(plan) = self.router.end_turn(outcome, self.turn.tool_handling()) {
            self.share_out(&plan);
            self.router.put_away(plan);
        }
        Ok(taken)
    }
}
