//! What calls take: paid by their price, settled with the ledger, learnt from.

use std::collections::BTreeMap;

use gnoma_core::{
    Event, Role, Usage,
    ledger::{Amount, Ask, Draw, Reserved},
    session::NoticeLevel,
    store::StoreError,
};
use gnoma_router::pool;
use tokio_util::sync::CancellationToken;

use super::{Call, Closed, Session, Told, Way};
use crate::{
    arm::Arm,
    routing::{
        ask::{Hold, Left, Share},
        course::Course,
        offers::Warm,
    },
};

const MICRO: f64 = 1e6;

impl Way {
    /// Settles what was not heard to its end, by what was told of it and gnoma's own count of the rest.
    /// What it took is to be told.
    pub(super) fn settle_rest(&mut self) -> Vec<Share> {
        let mut rest = Vec::new();
        if let Some(Call { arm, meter, shares, .. }) = self.call.take() {
            match shares {
                Some(shares) => rest.extend(shares.take()),
                None => {
                    let hold = self.hold.take();
                    self.settle(&arm, hold, meter.all());
                    rest.extend(Share::of(&arm.name(), &meter));
                }
            }
        }
        for Left { arm, meter, .. } in self.dropped.take() {
            rest.extend(Share::of(&arm.name(), &meter));
        }
        if let Some(told) = self.routes.tell_others() {
            self.settling.spawn(async move { told.await.err() });
        }
        rest
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
    fn settle(&mut self, arm: &Arm, hold: Option<Hold>, usage: Usage) {
        let Some(ledger) = self.routes.ledger().cloned() else { return };
        let at_ms = self.routes.now_ms();
        let amount = self.routes.taken(arm, &usage);
        if let Some(hold) = hold {
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
            for budget in pool::budgets(&self.draws(&arm)) {
                *by_pool.entry(budget).or_insert(0.0) += *micro_usd as f64 / MICRO;
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
        let Some(Call { arm, shares, meter, messages, .. }) = self.way.call.take() else {
            return Ok(());
        };
        if let Some(shares) = shares {
            // The members have settled for themselves.
            return self.tell_costs(shares.take()).await;
        }
        let (name, at_ms) = (arm.name(), self.way.routes.now_ms());
        let history = self.turn.history();
        let is_kept = history.get(messages).is_some_and(|it| it.role() == Role::Assistant);
        self.way.told = if is_kept {
            Told { tokens: usage.total(), messages: messages + 1 }
        } else {
            Told { tokens: usage.prompt(), messages }
        };
        self.way.warm.insert(name.clone(), Warm { tokens: usage.total(), at_ms });
        let hold = self.way.hold.take();
        self.way.settle(&arm, hold, meter.all());
        self.tell_costs(Share::of(&name, &meter)).await
    }

    /// Calls that are settled: what they cost goes to the sums and to the person.
    pub(in crate::session) async fn tell_costs(
        &mut self,
        shares: Vec<Share>,
    ) -> Result<(), Closed> {
        for share in shares {
            let call_micro_usd = self.way.book(&share);
            // Between turns it is all there is.
            let alone = call_micro_usd.unwrap_or(0);
            let course = self.way.course.as_ref();
            let turn_micro_usd = course.map_or(alone, |course| course.turn_micro_usd);
            let session_micro_usd = self.way.session_micro_usd;
            let Share { arm, is_estimated: estimated, .. } = share;
            let cost =
                Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd, estimated };
            self.tell(cost).await?;
        }
        Ok(())
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
