//! Pays for model calls: cost by price, settled with the ledger, and learned from.

use std::{collections::BTreeMap, time::Duration};

use gnoma_core::{
    Event, ModelRef, Role, Usage,
    ledger::{CallOrigin, PoolDraw, ReservationOutcome, ReservationRequest, SettledCall, Unit},
    session::NoticeLevel,
    store::StoreError,
    tool::split_mcp_name,
};
use gnoma_router::{
    Arm,
    choice::{RoutePlan, WarmPrompt},
    pool,
};
use tokio::time::timeout;

use super::{
    room::{LEDGER_PATIENCE, wait_until_settled},
    spending::PendingCall,
    state::{FrontEndGone, PendingWork, Session},
};
use crate::{
    context::Counter,
    prompt::is_from_user,
    routing::{
        ask::{DroppedCall, Hold, Share},
        call_origin::UsedExtensions,
        meter::Meter,
        routes,
    },
};

const MICRO: f64 = 1e6;
/// Longest wait at the end of a session for what is still being settled.
const SETTLING_PATIENCE: Duration = Duration::from_secs(10);

impl Session {
    /// The pools that a call of the arm draws on.
    pub(super) fn draws(&self, arm: &Arm) -> Vec<PoolDraw> {
        self.router.routes.with_state(|state| state.draws(arm, &self.router.scope))
    }

    /// The turn waits for this; what was called before is settled first, so that no cap is passed.
    pub(super) fn wait_for(&mut self, work: impl Future<Output = PendingWork> + Send + 'static) {
        let unsettled = self.spending.unsettled.clone();
        self.waiting = Some(Box::pin(async move {
            let _unsettled = timeout(LEDGER_PATIENCE, wait_until_settled(unsettled)).await;
            work.await
        }));
    }

    /// Tells the costs of calls beside the conversation that were not read to their end.
    pub(super) async fn settle_side_calls(&mut self) -> Result<(), FrontEndGone> {
        let dropped = self.spending.dropped.take_calls().into_iter();
        let rest =
            dropped.flat_map(|DroppedCall { arm, meter, .. }| Share::from_meter(&arm, &meter));
        let rest = rest.collect();
        if let Some(told) = self.router.routes.tell_others() {
            self.spending.settling.spawn(told);
        }
        self.tell_costs(rest).await
    }

    /// Commits what a call took to the ledger, with the times until the first part and the end of its answer.
    fn commit_call(
        &mut self,
        arm: &Arm,
        hold: Option<Hold>,
        meter: &Meter,
        (first, whole): (Option<Duration>, Duration),
    ) {
        let routes = &self.router.routes;
        let Some(ledger) = routes.ledger().cloned() else { return };
        let at_ms = routes.now_ms();
        let call = routes::settled_call(arm, meter, first, whole);
        if let Some(hold) = hold {
            return self.spending.settle_in_time(commit_hold(hold, at_ms, call));
        }
        // It has happened: limits are for what is still to come.
        let only_counted = |draw: PoolDraw| PoolDraw { limits: Vec::new(), ..draw };
        let draws = self.draws(arm).into_iter().map(only_counted).collect();
        let origin = self.call_origin(arm);
        let (arm, amount, is_priced) = (arm.id.clone(), call.amount, call.is_priced);
        let ask = ReservationRequest { at_ms, arm, amount, is_priced, draws, origin };
        self.spending.settle_in_time(async move {
            match ledger.reserve(ask).await {
                Ok(ReservationOutcome::Held(id)) => ledger.commit(id, at_ms, call).await,
                Ok(ReservationOutcome::Full(_)) => Ok(()),
                Err(error) => Err(error),
            }
        });
    }

    /// Returns the work that calls of the arm in the current turn belong to.
    pub(super) fn call_origin(&self, arm: &Arm) -> CallOrigin {
        let task = self.router.plan.as_ref().and_then(|plan| plan.task.known_kind());
        let used = self.used_extensions();
        self.router.routes.call_origin(&self.router.scope, arm, task, used)
    }

    /// Returns the skills and MCP servers that the turn has used so far, servers since the last message of the person.
    pub(super) fn used_extensions(&self) -> UsedExtensions {
        let history = self.turn.history().iter().rev();
        let of_turn = history.take_while(|message| !is_from_user(message));
        let calls = of_turn.flat_map(|message| message.tool_calls());
        let servers = calls.filter_map(|call| split_mcp_name(&call.name));
        let skills = self.added.lifecycle.as_ref().map(|all| all.used_skills()).unwrap_or_default();
        UsedExtensions {
            skills: join_names(skills.iter().map(String::as_str)),
            servers: join_names(servers.map(|(server, _)| server)),
        }
    }

    /// Adds what a call cost to the turn's and the session's sums.
    fn add_cost(&mut self, share: &Share) {
        let micro_usd = share.micro_usd.unwrap_or(0);
        let session = &mut self.spending.session_micro_usd;
        *session = session.saturating_add(micro_usd);
        if let Some(plan) = &mut self.router.plan {
            plan.add_cost(&share.arm, micro_usd);
        }
    }

    /// Tells the router what the turn spent of each pool.
    pub(super) fn share_out(&self, plan: &RoutePlan) {
        if self.router.levels.is_empty() {
            return;
        }
        let mut by_pool = BTreeMap::new();
        for (name, micro_usd) in &plan.spent {
            let Some(arm) = self.router.routes.find_arm(name) else { continue };
            for budget in pool::budget_pools(&self.draws(&arm)) {
                *by_pool.entry(budget).or_insert(0.0) += *micro_usd as f64 / MICRO;
            }
        }
        self.router.routes.record_spend(&by_pool);
    }

    pub(super) fn learn_outcome(&mut self, plan: &RoutePlan, right: Option<bool>) {
        let outcome = plan.to_outcome(right);
        if outcome.tried.is_empty() {
            return;
        }
        if let Some(learnt) = self.router.routes.learn_outcome(outcome) {
            self.spending.settling.spawn(learnt);
        }
    }

    /// Settles the call of the turn, by the usage that its provider reported and gnoma's own count of the rest.
    pub(super) async fn settle_call(
        &mut self,
        reported: Option<Usage>,
    ) -> Result<(), FrontEndGone> {
        let Some(call) = self.spending.call.take() else { return Ok(()) };
        let before = self.spending.unreported_usage;
        let PendingCall { arm, meter, since, first, .. } = &call;
        let shares = match &call.shares {
            // The members have settled for themselves.
            Some(shares) => shares.take_shares(),
            None => {
                if let Some(usage) = reported {
                    self.record_usage(&call, usage);
                }
                let hold = self.spending.hold.take();
                self.commit_call(arm, hold, meter, (*first, since.elapsed()));
                Share::from_meter(arm, meter)
            }
        };
        self.tell_costs(shares).await?;
        if reported.is_some() {
            return if call.shares.is_none() { self.tell_context().await } else { Ok(()) };
        }
        self.settle_side_calls().await?;
        if call.is_dropped {
            // The meter of a call that was stopped has counted what its shares count.
            self.spending.unreported_usage = before;
            self.spending.unreported_usage += meter.total_usage();
        }
        Ok(())
    }

    /// Notes the size of the conversation, and the prompt that is warm now, as the provider of a call reported them.
    fn record_usage(&mut self, call: &PendingCall, usage: Usage) {
        let PendingCall { arm, messages, .. } = call;
        let history = self.turn.history();
        let answer = history.get(*messages).filter(|it| it.role() == Role::Assistant);
        let known = messages + usize::from(answer.is_some());
        self.spending.tracker.record_usage(usage, history, known, Counter::for_arm(arm));
        self.prompts.gauge.with_cache(|cache| cache.record_usage(usage, arm.price));
        let (tokens, at_ms) = (usage.total_tokens(), self.router.routes.now_ms());
        self.router.warm.insert(arm.id.clone(), WarmPrompt { tokens, at_ms });
    }

    /// Calls that are settled: what they cost goes to the sums and to the person.
    pub(super) async fn tell_costs(&mut self, shares: Vec<Share>) -> Result<(), FrontEndGone> {
        for share in shares {
            self.add_cost(&share);
            if share.is_estimated {
                self.spending.unreported_usage += share.usage;
            }
            let call_micro_usd = share.micro_usd;
            if call_micro_usd.is_none() {
                self.tell_unpriced(&share.arm).await?;
            }
            // Between turns it is all there is.
            let alone = call_micro_usd.unwrap_or(0);
            let plan = self.router.plan.as_ref();
            let turn_micro_usd = plan.map_or(alone, |plan| plan.turn_micro_usd);
            let session_micro_usd = self.spending.session_micro_usd;
            let Share { arm, is_estimated: estimated, .. } = share;
            let cost =
                Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd, estimated };
            self.send_event(cost).await?;
        }
        Ok(())
    }

    /// Says once that a cap does not count calls whose price is not known.
    async fn tell_unpriced(&mut self, name: &ModelRef) -> Result<(), FrontEndGone> {
        let Some(arm) = self.router.routes.find_arm(name) else { return Ok(()) };
        let is_money =
            |draw: &PoolDraw| draw.limits.iter().any(|limit| limit.unit == Unit::MicroUsd);
        if !self.draws(&arm).iter().any(is_money)
            || std::mem::replace(&mut self.spending.has_named_unpriced, true)
        {
            return Ok(());
        }
        let text = format!(
            "the price of {name} is not known, so your spending caps do not count its calls. Set `input_price` and \
             `output_price` in its entry of `[[arms]]`, or 0 for both if it costs nothing"
        );
        self.send_event(Event::Notice { level: NoticeLevel::Warning, text }).await
    }

    /// Says once that something beside the work could not be saved.
    pub(super) async fn warn_save_failure(
        &mut self,
        error: StoreError,
    ) -> Result<(), FrontEndGone> {
        if std::mem::replace(&mut self.spending.has_complained, true) {
            return Ok(());
        }
        let text = format!("could not save all spending and routing data: {error}");
        self.notify(NoticeLevel::Warning, text).await
    }

    pub(super) async fn tell_unsettled(&mut self) -> Result<(), FrontEndGone> {
        while let Some(done) = self.spending.settling.try_join_next() {
            if let Ok(Err(error)) = done {
                self.warn_save_failure(error).await?;
            }
        }
        Ok(())
    }

    /// Ends what is in progress. Returns what could not be saved, if that was not reported yet.
    pub(super) async fn end_spending(&mut self) -> Option<StoreError> {
        self.waiting = None;
        self.drop_call();
        // The session that started this one counts it, too.
        let _gone = self.settle_call(None).await;
        let _gone = self.settle_side_calls().await;
        if let Some(plan) = self.router.last.take() {
            let right = self.router.take_verdict();
            self.learn_outcome(&plan, right);
        }
        let settling = &mut self.spending.settling;
        let mut failure = None;
        let all = async {
            while let Some(done) = settling.join_next().await {
                failure = failure.take().or(done.ok().and_then(Result::err));
            }
        };
        let _late = timeout(SETTLING_PATIENCE, all).await;
        failure
    }
}

/// Joins names with commas, each once and sorted.
fn join_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names = gnoma_core::sort::to_set(names);
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// A session that is stopped before this has begun lets the room go.
async fn commit_hold(hold: Hold, at_ms: i64, call: SettledCall) -> Result<(), StoreError> {
    let Some((ledger, id)) = hold.into_parts() else { return Ok(()) };
    ledger.commit(id, at_ms, call).await
}
