//! The context meter: reports how full the context window is whenever it changes.

use gnoma_core::{
    Event, ModelRef,
    session::{ContextUse, Fullness},
};

use super::{
    spending::counter_for,
    state::{FrontEndGone, Session},
};
use crate::context::{Counter, classify_fullness};

impl Session {
    /// Returns the model that answers, or probably will.
    pub(super) fn answering_arm(&self) -> Option<ModelRef> {
        let plan = self.router.plan.as_ref().map(|plan| plan.arm.id.clone());
        let before = || self.turn.history().iter().rev().find_map(|it| it.origin().cloned());
        plan.or_else(|| self.router.pinned_model().cloned()).or_else(before)
    }

    /// Tokens of what the next call carries.
    pub(super) fn context_tokens(&mut self) -> u64 {
        let counter = self.token_counter();
        self.spending.tracker.count_tokens(self.turn.history(), &counter)
    }

    /// Returns how full the window of the current arm is.
    pub(super) fn context_meter(&mut self) -> ContextUse {
        let tokens = self.context_tokens();
        let window = match &self.router.plan {
            Some(plan) => plan.arm.context_window,
            None => {
                let arm = self.answering_arm().and_then(|name| self.router.routes.find_arm(&name));
                arm.and_then(|arm| arm.context_window)
            }
        };
        let window = window.map(u64::from);
        let fullness = window.map_or(Fullness::Ok, |window| classify_fullness(window, tokens));
        ContextUse { tokens, window, fullness }
    }

    /// Tells how full it is, where that has changed.
    pub(super) async fn tell_context(&mut self) -> Result<(), FrontEndGone> {
        let context = self.context_meter();
        if self.spending.told_context.replace(context) == Some(context) {
            return Ok(());
        }
        self.send_event(Event::Context(context)).await
    }

    /// Tells the token tracker what precedes the conversation in requests to the current arm.
    pub(super) fn prefix_known(&mut self) {
        let Some(plan) = &self.router.plan else { return };
        let tier = plan.arm.tier();
        let (system, tools) = (self.prompts.system_prompt(tier), self.tools.specs(tier));
        self.spending.tracker.set_prefix(&system, tools);
    }

    fn token_counter(&self) -> Counter {
        match &self.router.plan {
            Some(plan) => Counter::for_arm(&plan.arm),
            None => counter_for(&self.router, self.answering_arm().as_ref()),
        }
    }
}
