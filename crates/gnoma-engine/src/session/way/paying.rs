//! What calls take: paid by their price, settled with the ledger, learnt from.

use std::collections::BTreeMap;

use gnoma_core::{
    Event, ModelRef, Usage,
    ledger::{Amount, Ask, Draw, Reserved},
    session::NoticeLevel,
    store::StoreError,
};
use tokio_util::sync::CancellationToken;

use super::{Call, Closed, Session, Way};
use crate::{
    arm::Arm,
    routing::{
        ask::{Hold, Share},
        course::Course,
        offers::Warm,
    },
};

const MICRO: f64 = 1e6;

impl Way {
    /// Settles what nobody reported: of a call one request, of a panel what its members took.
    pub(super) fn settle_rest(&mut self) {
        let at_ms = self.routes.now_ms();
        if let Some(hold) = self.hold.take() {
            let amount = Amount { requests: 1, ..Amount::default() };
            self.settle_in_time(commit(hold, at_ms, amount));
        }
        let shares = self.call.take().and_then(|call| call.shares);
        for share in shares.map(|shares| shares.take()).unwrap_or_default() {
            self.book(&share);
        }
        if let Some(told) = self.routes.tell_others() {
            self.settling.spawn(async move { told.await.err() });
        }
    }

    /// Settles beside the session, but before its next call.
    fn settle_in_time(&mut self, settle: impl Future<Output = Option<String>> + Send + 'static) {
        let call = CancellationToken::new();
        let settled = call.clone().drop_guard();
        self.unsettled.retain(|call| !call.is_cancelled());
        self.unsettled.push(call);
        self.settling.spawn(async move {
            let _settled = settled;
            settle.await
        });
    }

    /// Settles a call with what it took.
    fn settle(&mut self, arm: &Arm, usage: Usage) {
        let Some(ledger) = self.routes.ledger().cloned() else { return };
        let at_ms = self.routes.now_ms();
        let amount = self.routes.taken(arm, &usage);
        if let Some(hold) = self.hold.take() {
            return self.settle_in_time(commit(hold, at_ms, amount));
        }
        // It has happened: limits are for what is still to come.
        let only_counted = |draw: Draw| Draw { limits: Vec::new(), ..draw };
        let draws = self.draws(arm).into_iter().map(only_counted).collect();
        let ask = Ask { at_ms, arm: arm.name(), amount, draws };
        self.settle_in_time(async move {
            match ledger.reserve(ask).await {
                Ok(Reserved::Held(id)) => failure(ledger.commit(id, at_ms, amount).await),
                Ok(Reserved::Full(_)) => None,
                Err(error) => Some(error.sentence),
            }
        });
    }

    /// Adds what a call took to the turn's and the session's sums: micro-dollars, where its price is
    /// known.
    fn book(&mut self, share: &Share) -> Option<u64> {
        let price = self.routes.arm(&share.arm).and_then(|arm| arm.price);
        let call_micro_usd = price.map(|price| price.of(&share.usage));
        let micro_usd = call_micro_usd.unwrap_or(0);
        self.session_micro_usd = self.session_micro_usd.saturating_add(micro_usd);
        if let Some(course) = &mut self.course {
            course.book(&share.arm, micro_usd);
        }
        call_micro_usd
    }

    /// Tells the router what the turn spent of each pool.
    pub(super) fn share_out(&self, course: &Course) {
        if self.levels.is_empty() {
            return;
        }
        let mut by_pool = BTreeMap::new();
        for (name, micro_usd) in &course.spent {
            let Some(arm) = self.routes.arm(name) else { continue };
            for draw in self.draws(&arm) {
                *by_pool.entry(draw.pool.into()).or_insert(0.0) += *micro_usd as f64 / MICRO;
            }
        }
        self.routes.spent(&by_pool);
    }

    pub(super) fn learn(&mut self, course: &Course, right: Option<bool>) {
        let outcome = course.outcome(right);
        if outcome.tried.is_empty() {
            return;
        }
        if let Some(learnt) = self.routes.learn(outcome) {
            self.settling.spawn(async move { learnt.await.err() });
        }
    }
}

impl Session {
    /// Tokens of a call were reported.
    pub(in crate::session) async fn count(&mut self, usage: Usage) -> Result<(), Closed> {
        let Some(Call { arm, shares, .. }) = self.way.call.take() else { return Ok(()) };
        let at_ms = self.way.routes.now_ms();
        let Some(shares) = shares else {
            let tokens = usage.prompt().saturating_add(usage.output);
            self.way.context_tokens = tokens;
            self.way.warm.insert(arm.name(), Warm { tokens, at_ms });
            self.way.settle(&arm, usage);
            return self.tell_cost(Share { arm: arm.name(), usage }).await;
        };
        if let Some(course) = &mut self.way.course {
            match shares.winner().and_then(|name| self.way.routes.arm(&name)) {
                Some(winner) => course.arm = winner,
                // An answer made of several is nobody's own.
                None => course.is_mixed = true,
            }
        }
        for text in shares.failures() {
            self.emit(Event::Notice { level: NoticeLevel::Warning, text }).await?;
        }
        for share in shares.take() {
            self.tell_cost(share).await?;
        }
        Ok(())
    }

    /// A call that is settled: its cost goes to the sums and to the person.
    pub(in crate::session) async fn tell_cost(&mut self, share: Share) -> Result<(), Closed> {
        let call_micro_usd = self.way.book(&share);
        // Between turns it is all there is.
        let alone = call_micro_usd.unwrap_or(0);
        let turn_micro_usd = self.way.course.as_ref().map_or(alone, |course| course.turn_micro_usd);
        let session_micro_usd = self.way.session_micro_usd;
        let arm: ModelRef = share.arm;
        self.emit(Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd }).await
    }

    /// Says once that something beside the work does not work.
    pub(in crate::session) async fn complain(&mut self, why: String) -> Result<(), Closed> {
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

/// A session that is stopped before this has begun lets the room go.
async fn commit(hold: Hold, at_ms: i64, amount: Amount) -> Option<String> {
    let (ledger, id) = hold.settle()?;
    failure(ledger.commit(id, at_ms, amount).await)
}

fn failure(result: Result<(), StoreError>) -> Option<String> {
    result.err().map(|error| error.sentence)
}
