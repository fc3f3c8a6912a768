//! What becomes of a call that failed: another arm goes on, or the machine is told.

use std::time::Duration;

use gnoma_core::{
    ErrorKind, ModelRef, ProviderError,
    ledger::{Draw, Full, Level, Unit},
    store::StoreError,
};
use gnoma_router::pool;

use super::{Closed, Session, Way};
use crate::{
    arm::Arm,
    routing::{
        OWN,
        failover::{self, Failure, Next},
        offers::{self, Moment},
    },
    turn::Input,
};

impl Way {
    /// Another arm for the turn, in place of the one that failed; `was_asked`: it was really called.
    fn instead(
        &mut self,
        error: &ProviderError,
        why: &str,
        was_asked: bool,
    ) -> Option<(ModelRef, ModelRef)> {
        let mut course = self.course.take()?;
        let from = course.arm.name();
        if error.kind == ErrorKind::ContextTooLong {
            // Smaller windows will not do either, where what is known of this one can be right.
            let need = &mut course.task.need;
            let window = course.arm.context_window.map_or(0, u64::from);
            if need.context_tokens >= window / 2 {
                need.context_tokens = need.context_tokens.max(window + 1);
            }
        }
        course.given_up.push((from.clone(), format!("failed: {why}").into()));
        let moment = self.moment_of(&course);
        let free = self.routes.instead(&course, Moment { may_wait: false, ..moment });
        let next = free.or_else(|| {
            // Nobody is free: as if this one had not failed.
            course.given_up.pop();
            let waits = !was_asked && error.kind == ErrorKind::RateLimited;
            // Where a limit must be waited for, the one that frees first is.
            let soonest = waits.then(|| self.routes.instead(&course, moment)).flatten();
            soonest.filter(|arm| arm.name() != from)
        });
        let moved = next.map(|arm| {
            let to = arm.name();
            course.move_to(arm, format!("in place of {from}: {why}"));
            (from.clone(), to)
        });
        // A limit of gnoma's own passes and says nothing against the arm.
        if !was_asked && error.kind.is_transient() {
            course.given_up.retain(|(name, _)| *name != from);
        }
        self.course = Some(course);
        moved
    }
}

impl Session {
    pub(super) fn refuse_call(&mut self, error: ProviderError) {
        let input = self.after_failure(error, false);
        self.inbox.push_back(input);
    }

    /// A pool has no room for the call.
    pub(super) fn refuse_full(&mut self, full: &Full) {
        // Known from now on, so that no other arm that draws on it is tried in vain.
        let Full { pool, limit, used, free_at_ms } = full.clone();
        self.way.levels.retain(|level| level.pool != pool || level.limit != limit);
        self.way.levels.push(Level { pool, limit, used, held: 0, resets_at_ms: free_at_ms });
        self.refuse_call(no_room(full, self.way.routes.now_ms()));
    }

    /// A call has failed: the fact for the machine, which is another arm's where one goes on.
    pub(in crate::session) fn after_failure(
        &mut self,
        error: ProviderError,
        was_asked: bool,
    ) -> Input {
        self.weigh_context();
        let has_content = self.turn.has_content();
        let way = &mut self.way;
        if was_asked && let Some(call) = &mut way.call {
            call.is_over = true;
            call.meter.fail(error.kind);
            // The members of a panel are noted as they fail, and its error may be any one's.
            if call.shares.is_none() {
                way.routes.failed(&call.arm, &error);
            }
        }
        let Some(course) = &way.course else { return Input::Model(Err(error)) };
        let next = failover::next(Failure {
            error: &error,
            attempt: way.asked.1,
            has_content,
            cached_micro_usd: offers::cached(&course.arm, &way.warm, way.routes.now_ms()),
        });
        if !way.routes.options.failover || next == Next::Stay {
            return Input::Model(Err(error));
        }
        if course.is_pinned {
            return Input::Model(Err(with_others(error, &way.routes.arms(), &course.arm.name())));
        }
        let why =
            if was_asked { failover::words(&error, has_content) } else { error.message.clone() };
        let role = way.routes.in_place_of(course, &course.arm.name(), why.clone());
        match way.instead(&error, &why, was_asked) {
            Some((from, to)) => Input::Moved { from, to, why: role },
            None => Input::Model(Err(error)),
        }
    }

    /// The ledger does not work: what costs nothing, or has no limit, is asked all the same.
    pub(super) async fn without_ledger(&mut self, error: StoreError) -> Result<(), Closed> {
        let money = |draw: &Draw| draw.limits.iter().any(|limit| limit.unit == Unit::MicroUsd);
        let is_capped = self.way.course.as_ref().is_some_and(|course| {
            let is_free = course.arm.price.is_some_and(|price| price.is_free());
            !is_free && self.way.draws(&course.arm).iter().any(money)
        });
        if is_capped {
            let text = format!("what was spent cannot be counted: {}", error.sentence);
            let hint =
                "Mend the ledger, or take the caps (`router.caps`, `spend_cap`) away for now.";
            // Not the arm's failure: another one could not be counted either.
            let error = ProviderError::new(ErrorKind::BadRequest, OWN, text).with_hint(hint);
            self.inbox.push_back(Input::Model(Err(error)));
            return Ok(());
        }
        self.complain(error.sentence).await?;
        self.start_stream().await
    }
}

/// A limit that has no room, as a failure: one that waiting mends, where it does.
fn no_room(full: &Full, now_ms: i64) -> ProviderError {
    let kind = match full.limit.unit {
        Unit::MicroUsd => ErrorKind::Quota,
        Unit::Requests
        | Unit::Input
        | Unit::Output
        | Unit::Tokens
        | Unit::AllInput
        | Unit::AllTokens => match full.free_at_ms {
            Some(_) => ErrorKind::RateLimited,
            None => ErrorKind::Quota,
        },
    };
    let mut error = ProviderError::new(kind, OWN, pool::words(full, now_ms));
    error.retry_after = full
        .free_at_ms
        .and_then(|at_ms| u64::try_from(at_ms.saturating_sub(now_ms)).ok())
        .map(Duration::from_millis);
    error.with_hint(
        "`gnoma router pools` shows every limit; they are set in `router.caps` and `rate_limits`.",
    )
}

fn with_others(error: ProviderError, arms: &[Arm], failed: &ModelRef) -> ProviderError {
    let others: Vec<String> = arms
        .iter()
        .map(Arm::name)
        .filter(|name| name != failed)
        .map(|name| name.to_string())
        .collect();
    if others.is_empty() {
        return error;
    }
    let remedy = format!("Others could go on: --model or /model {}.", others.join(", "));
    let hint = match &error.hint {
        Some(hint) => format!("{hint} {remedy}"),
        None => remedy,
    };
    error.with_hint(hint)
}
