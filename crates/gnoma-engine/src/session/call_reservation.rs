//! Reserves a call before it is made: room in the context window, and money and requests in spending caps and rate
//! limits. A spending cap that is reached refuses the call here.

use std::sync::Arc;

use gnoma_core::{
    ErrorKind, ProviderError,
    ledger::{
        Amount, ExhaustedLimit, Level, PoolDraw, ReservationOutcome, ReservationRequest, Unit,
    },
    session::{Fullness, NoticeLevel},
    store::StoreError,
    tool::Tier,
};
use gnoma_router::{
    Wire,
    choice::{RoutePlan, expected_amount},
};

use super::{
    room::{self, RoomResult},
    state::{FrontEndGone, PendingWork, Session},
};
use crate::{
    call::{CallArm, CallInput, Room},
    routing::{OWN, ask::Hold},
};

impl Session {
    /// Reserves what the call may take, where any of its pools has a limit.
    pub(super) async fn reserve_call(&mut self, may_compact: bool) -> Result<(), FrontEndGone> {
        self.spending.answer_tokens = None;
        self.prefix_known();
        self.tell_context().await?;
        if may_compact && self.is_filled() {
            self.answer_reservation(Room::Filled);
            return Ok(());
        }
        self.settle_side_calls().await?;
        self.weigh_context();
        self.look_for_paths();
        let Some(plan) = &self.router.plan else { return Ok(()) };
        if let Some(refusal) = self.find_refusal(plan) {
            self.answer_reservation(refusal);
            return Ok(());
        }
        let routes = Arc::clone(&self.router.routes);
        let arm = plan.arm.id.clone();
        let (context, warm) = (plan.task.need.context_tokens, self.router.warm.get(&arm));
        let at_ms = routes.now_ms();
        let amount = expected_amount(&plan.arm, context, warm, at_ms);
        let draws = routes
            .with_state(|state| state.draws_for(&plan.arm, &self.router.scope, &amount, at_ms));
        let is_limited = draws.iter().any(|draw| !draw.limits.is_empty());
        let Some(ledger) = routes.ledger().filter(|_| is_limited).cloned() else {
            self.answer_held();
            return Ok(());
        };
        let price = plan.arm.price;
        let origin = self.call_origin(&plan.arm);
        let is_priced = price.is_some();
        let ask = ReservationRequest { at_ms, arm, amount, is_priced, draws, origin };
        let unsettled = self.spending.unsettled.clone();
        self.waiting = Some(Box::pin(async move {
            let reserved =
                room::reserve_when_settled(&routes, &*ledger, ask.clone(), unsettled).await;
            PendingWork::Room(match reserved {
                Ok(reserved) => {
                    room::reserve_shorter(&routes, &*ledger, ask, price, reserved).await
                }
                Err(error) => Err(error),
            })
        }));
        Ok(())
    }

    /// The ledger has answered.
    pub(super) async fn on_reservation(
        &mut self,
        found: Result<RoomResult, StoreError>,
    ) -> Result<(), FrontEndGone> {
        match found {
            Ok(RoomResult { reserved: ReservationOutcome::Held(id), answer_tokens, .. }) => {
                let ledger = self.router.routes.ledger().cloned();
                self.spending.hold = ledger.map(|ledger| Hold::new(ledger, id));
                self.spending.answer_tokens = answer_tokens.and_then(|it| u32::try_from(it).ok());
                self.answer_held();
                if let Some(tokens) = answer_tokens {
                    let text = format!(
                        "the spending cap leaves room for an answer of at most {tokens} tokens"
                    );
                    self.notify(NoticeLevel::Warning, text).await?;
                }
            }
            Ok(RoomResult { reserved: ReservationOutcome::Full(full), need, .. }) => {
                self.refuse_full_pool(&full, &need);
            }
            Err(error) => self.without_ledger(error).await?,
        }
        Ok(())
    }

    /// There is room: the arm in charge is called.
    fn answer_held(&mut self) {
        let Some(RoutePlan { arm, .. }) = &self.router.plan else { return };
        let (is_lean, is_agent) = (arm.tier() == Tier::Lean, arm.wire == Wire::Agent);
        let arm = CallArm { name: arm.id.clone(), is_lean, is_agent };
        self.answer_reservation(Room::Held(arm));
    }

    fn answer_reservation(&mut self, room: Room) {
        self.inbox.push_back(CallInput::Reserved(room).into());
    }

    /// Reports whether too little room is left in the window of the current arm.
    fn is_filled(&mut self) -> bool {
        self.context_meter().fullness == Fullness::Critical
    }

    /// Refuses the call, for which a pool has no room.
    fn refuse_full_pool(&mut self, full: &ExhaustedLimit, need: &Amount) {
        // Known from now on, so that no other arm that draws on it is tried in vain.
        let ExhaustedLimit { pool, limit, used, free_at_ms } = full.clone();
        let levels = &mut self.router.levels;
        levels.retain(|level| level.pool != pool || level.limit != limit);
        levels.push(Level { pool, limit, used, held: 0, resets_at_ms: free_at_ms });
        let routes = &self.router.routes;
        let error = room::limit_error(full, need, routes);
        self.answer_reservation(Room::Refused(error));
    }

    /// Returns the answer to a call that its plan or the user's rules forbid.
    fn find_refusal(&self, plan: &RoutePlan) -> Option<Room> {
        if let Some(why) = plan.is_beyond() {
            return Some(Room::Denied(ProviderError::new(ErrorKind::Quota, OWN, why)));
        }
        self.router.kept_from().map(Room::Refused)
    }

    /// The ledger does not work: what costs nothing, or has no limit, is asked all the same.
    async fn without_ledger(&mut self, error: StoreError) -> Result<(), FrontEndGone> {
        let money = |draw: &PoolDraw| draw.limits.iter().any(|limit| limit.unit == Unit::MicroUsd);
        let is_capped = self.router.plan.as_ref().is_some_and(|plan| {
            let is_free = plan.arm.price.is_some_and(|price| price.is_free());
            !is_free && self.draws(&plan.arm).iter().any(money)
        });
        if is_capped {
            let text = format!("cannot count what was spent: {}", error.sentence);
            let hint = "Fix the cause, or remove the caps (`router.caps`, `spend_cap`) for now.";
            // Not the arm's failure: another one could not be counted either.
            let error = ProviderError::new(ErrorKind::BadRequest, OWN, text).with_hint(hint);
            self.answer_reservation(Room::Denied(error));
            return Ok(());
        }
        self.warn_save_failure(error).await?;
        self.answer_held();
        Ok(())
    }
}
