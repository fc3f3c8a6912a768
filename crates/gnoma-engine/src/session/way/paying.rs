//! What calls take: counted, paid by their price, settled with the ledger, learnt from.

use gnoma_core::{
    Event, ModelRef, Usage,
    ledger::{Amount, Ask, Draw, Reserved},
    session::NoticeLevel,
    store::StoreError,
};
use gnoma_router::pool;

use super::{Closed, Session, Way};
use crate::{
    arm::Arm,
    routing::course::{Course, Warm},
};

impl Way {
    /// Counts what nobody reported: one request.
    pub(super) fn settle_rest(&mut self) {
        let at_ms = self.routes.now_ms();
        if let Some(hold) = self.hold.take() {
            self.settling.spawn(async move {
                let amount = Amount { requests: 1, ..Amount::default() };
                failure(hold.ledger.commit(hold.id, at_ms, amount).await)
            });
        }
    }

    /// Counts a call. Money is what the price list says.
    pub(super) fn settle(
        &mut self,
        name: &ModelRef,
        arm: Option<&Arm>,
        usage: Usage,
        is_main: bool,
    ) {
        let Some(ledger) = self.routes.ledger().cloned() else { return };
        let at_ms = self.routes.now_ms();
        let limits = &self.routes.options.limits;
        let custom = arm.map_or(0, |arm| limits.custom_units(name, &arm.pools));
        let price = arm.and_then(|arm| arm.price).unwrap_or_default();
        let amount = pool::taken(&usage, &price, custom);
        let hold = if is_main { self.hold.take() } else { None };
        let (arm, draws) = (name.clone(), arm.map(|arm| self.draws(arm)));
        self.settling.spawn(async move {
            if let Some(hold) = hold {
                return failure(hold.ledger.commit(hold.id, at_ms, amount).await);
            }
            let draws = draws.unwrap_or_default().into_iter();
            // It has happened: limits are for what is still to come.
            let draws = draws.map(|draw| Draw { limits: Vec::new(), ..draw }).collect();
            match ledger.reserve(Ask { at_ms, arm, amount, draws }).await {
                Ok(Reserved::Held(id)) => failure(ledger.commit(id, at_ms, amount).await),
                Ok(Reserved::Full(_)) => None,
                Err(error) => Some(error.sentence),
            }
        });
    }

    pub(super) fn learn(&mut self, course: &Course, right: Option<bool>) {
        if course.attempts.is_empty() {
            return;
        }
        if let Some(learnt) = self.routes.learn(course.outcome(right)) {
            self.settling.spawn(async move { learnt.await.err() });
        }
    }
}

impl Session {
    /// Tokens of a call were reported.
    pub(in crate::session) async fn count(&mut self, usage: Usage) -> Result<(), Closed> {
        let Some(course) = &self.way.course else { return Ok(()) };
        let main = course.arm.name();
        let shares = self.way.shares.take().map(|shares| shares.take()).unwrap_or_default();
        let mut parts: Vec<_> = shares.into_iter().map(|share| (share.arm, share.usage)).collect();
        if parts.is_empty() {
            parts.push((main.clone(), usage));
        }
        if let Some(clock) = self.way.clock.take() {
            let whole = clock.since.elapsed();
            self.way.routes.worked(&course.arm, clock.first.unwrap_or(whole), whole, usage);
        }
        let at_ms = self.way.routes.now_ms();
        let tokens = usage.prompt().saturating_add(usage.output);
        self.way.warm.insert(main.clone(), Warm { tokens, at_ms });
        for (arm, usage) in parts {
            self.pay(arm, usage).await?;
        }
        Ok(())
    }

    pub(super) async fn pay(&mut self, arm: ModelRef, usage: Usage) -> Result<(), Closed> {
        let known = self.way.routes.arm(&arm);
        let price = known.as_ref().and_then(|arm| arm.price);
        let call_micro_usd = price.map(|price| price.of(&usage));
        let micro_usd = call_micro_usd.unwrap_or(0);
        let is_main = self.way.course.as_ref().is_some_and(|course| course.arm.name() == arm);
        self.way.settle(&arm, known.as_ref(), usage, is_main);
        let way = &mut self.way;
        way.session_micro_usd = way.session_micro_usd.saturating_add(micro_usd);
        let session_micro_usd = way.session_micro_usd;
        let Some(course) = &mut way.course else { return Ok(()) };
        course.attempt_micro_usd = course.attempt_micro_usd.saturating_add(micro_usd);
        course.turn_micro_usd = course.turn_micro_usd.saturating_add(micro_usd);
        let turn_micro_usd = course.turn_micro_usd;
        if call_micro_usd.is_none() {
            return Ok(());
        }
        self.emit(Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd }).await
    }

    /// Says once that something beside the work does not work.
    pub(super) async fn complain(&mut self, why: String) -> Result<(), Closed> {
        if std::mem::replace(&mut self.way.has_complained, true) {
            return Ok(());
        }
        let text = format!("what is spent and learnt is not all kept: {why}");
        self.emit(Event::Notice { level: NoticeLevel::Warning, text }).await
    }

    pub(super) async fn tell_unsettled(&mut self) -> Result<(), Closed> {
        while let Some(done) = self.way.settling.try_join_next() {
            if let Ok(Some(why)) = done {
                self.complain(why).await?;
            }
        }
        Ok(())
    }
}

fn failure(result: Result<(), StoreError>) -> Option<String> {
    result.err().map(|error| error.sentence)
}
