//! Handles a failed model call: failover to another arm, or the error for the machine.

use std::sync::Arc;

use gnoma_core::{ErrorKind, ModelRef, ProviderError, error_policy::FaultScope};
use gnoma_router::{
    Arm,
    choice::{
        self, ChoiceContext, RoutePlan,
        failover::{self, FailoverAction, Failure},
    },
};

use super::state::Session;
use crate::call::CallInput;

/// Most models that are named as a way out.
const MAX_OTHERS: usize = 5;

impl Session {
    /// Finds another arm for the turn; `was_called`: the one in charge was really called.
    pub(super) fn fail_over(
        &mut self,
        error: ProviderError,
        attempt: u32,
        has_content: bool,
        was_called: bool,
    ) {
        self.weigh_context();
        let input = self.after_failure(error, attempt, has_content, was_called);
        self.inbox.push_back(input.into());
    }

    fn after_failure(
        &mut self,
        error: ProviderError,
        attempt: u32,
        has_content: bool,
        was_called: bool,
    ) -> CallInput {
        let router = &self.router;
        let (routes, Some(plan)) = (&router.routes, &router.plan) else {
            return CallInput::Stayed(error);
        };
        let next = failover::decide_failover(Failure {
            error: &error,
            attempt,
            has_content,
            cached_micro_usd: choice::cache_savings(&plan.arm, &router.warm, routes.now_ms()),
        });
        if !routes.settings.failover || next == FailoverAction::Stay {
            return CallInput::Stayed(error);
        }
        if plan.is_pinned {
            return CallInput::Stayed(with_others(error, &routes.arms(), &plan.arm.id));
        }
        let why = if was_called {
            failover::describe_failure(&error, has_content)
        } else {
            error.message.clone()
        };
        let role = routes.with_state(|state| state.in_place_of(plan, &plan.arm.id, why.clone()));
        match self.replace_arm(&error, &why, was_called) {
            Some((from, to)) => CallInput::Moved { from, to, why: role },
            None => CallInput::Stayed(error),
        }
    }

    /// Puts another arm in the place of the one that failed.
    fn replace_arm(
        &mut self,
        error: &ProviderError,
        why: &str,
        was_called: bool,
    ) -> Option<(ModelRef, ModelRef)> {
        let mut plan = self.router.plan.take()?;
        let from = plan.arm.id.clone();
        if error.kind == ErrorKind::ContextTooLong {
            // Smaller windows will not do either, where what is known of this one can be right.
            let need = &mut plan.task.need;
            let window = plan.arm.context_window.map_or(0, u64::from);
            if need.context_tokens >= window / 2 {
                need.context_tokens = need.context_tokens.max(window + 1);
            }
        }
        plan.given_up.push((from.clone(), format!("failed: {why}").into()));
        let context = self.router.moment_of(&plan);
        let replacement = |plan: &RoutePlan, context| {
            self.router.routes.with_state(|state| state.choose_replacement(plan, context))
        };
        let free = replacement(&plan, ChoiceContext { may_wait: false, ..context });
        let next = free.or_else(|| {
            // Nobody is free: as if this one had not failed.
            plan.given_up.pop();
            let waits = !was_called && error.kind == ErrorKind::RateLimited;
            // Where a limit must be waited for, the one that frees first is.
            let soonest = waits.then(|| replacement(&plan, context)).flatten();
            soonest.filter(|arm| arm.id != from)
        });
        let moved = next.map(|arm| {
            let to = arm.id.clone();
            plan.move_to(arm, format!("in place of {from}: {why}"));
            (from.clone(), to)
        });
        // A limit of gnoma's own passes and says nothing against the arm.
        if !was_called && error.kind.is_transient() {
            plan.given_up.retain(|(name, _)| *name != from);
        }
        self.router.plan = Some(plan);
        if moved.is_some() {
            self.router.signals.begin_again();
        }
        moved
    }
}

fn with_others(error: ProviderError, arms: &[Arc<Arm>], failed: &ModelRef) -> ProviderError {
    // What a provider cannot do for one of its models it cannot do for the others.
    let is_provider = match error.kind.policy().scope {
        FaultScope::Provider | FaultScope::Host => true,
        FaultScope::Arm => false,
    };
    let can_help =
        |name: &ModelRef| name != failed && (!is_provider || name.provider != failed.provider);
    let others: Vec<String> = arms
        .iter()
        .map(|arm| arm.id.clone())
        .filter(can_help)
        .take(MAX_OTHERS)
        .map(|name| name.to_string())
        .collect();
    if others.is_empty() {
        return error;
    }
    let remedy = format!("Another model may answer: {}.", others.join(", "));
    let hint = match &error.hint {
        Some(hint) => format!("{hint} {remedy}"),
        None => remedy,
    };
    error.with_hint(hint)
}
