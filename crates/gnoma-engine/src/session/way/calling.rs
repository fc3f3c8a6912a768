//! A call of the turn: room is made for it, then whoever is in charge is asked.

use std::sync::Arc;

use gnoma_core::{ErrorKind, Event, Provider as _, ProviderError, ledger::Ask};
use tokio::time::Instant;

use super::{Call, Closed, Prepared, Session, Way, room};
use crate::{
    routing::{OWN, meter::Meter, several},
    turn::Input,
};

impl Session {
    /// Reserves what the call may take, where any of its pools has a limit.
    pub(in crate::session) async fn make_room(&mut self) -> Result<(), Closed> {
        let untold = self.way.settle_rest();
        self.tell_costs(untold).await?;
        self.weigh_context();
        let Some(course) = &self.way.course else { return Ok(()) };
        if let Some(why) = course.is_beyond() {
            let error = ProviderError::new(ErrorKind::Quota, OWN, why);
            self.inbox.push_back(Input::Model(Err(error)));
            return Ok(());
        }
        self.look_for_paths();
        if let Some(error) = self.way.kept_from() {
            self.refuse_call(error);
            return Ok(());
        }
        let Some(course) = &self.way.course else { return Ok(()) };
        let Way { routes, scope, .. } = &self.way;
        let arm = course.arm.name();
        let (context, warm) = (course.task.need.context_tokens, self.way.warm.get(&arm));
        let amount = routes.expected(&course.arm, context, warm);
        let draws = routes.draws_for(&course.arm, scope, &amount);
        let is_limited = draws.iter().any(|draw| !draw.limits.is_empty());
        let Some(ledger) = routes.ledger().filter(|_| is_limited).cloned() else {
            return self.start_stream().await;
        };
        let ask = Ask { at_ms: routes.now_ms(), arm, amount, draws };
        let (routes, unsettled) = (Arc::clone(routes), self.way.unsettled.clone());
        self.way.preparing = Some(Box::pin(async move {
            Prepared::Room(room::reserved(&routes, &*ledger, ask, unsettled).await)
        }));
        Ok(())
    }

    /// Asks whoever is in charge.
    pub(super) async fn start_stream(&mut self) -> Result<(), Closed> {
        let Some(course) = &self.way.course else { return Ok(()) };
        let (arm, why) = (course.arm.clone(), course.why.clone());
        let (round, attempt) = self.way.asked;
        if attempt == 1 {
            self.emit(Event::RoundStarted { round, arm: arm.name(), why }).await?;
        }
        let request = self.request(&arm, round);
        self.way.routes.called(&arm);
        let context = self.context_tokens();
        let expected = self.way.routes.expected(&arm, context, None);

        let panel = if round == 1 { self.panel(&request) } else { None };
        let shares = panel.as_ref().map(|panel| panel.shares.clone());
        self.stream = Some(match panel {
            Some(panel) => {
                // The members settle for themselves.
                self.way.hold = None;
                several::stream(panel)
            }
            None => {
                let at_ms = self.way.routes.now_ms();
                if let Some(hold) = &mut self.way.hold {
                    hold.sent(at_ms, expected);
                }
                arm.guarded(&self.firewall).stream(request)
            }
        });
        self.way.call = Some(Call {
            arm,
            since: Instant::now(),
            first: None,
            meter: Meter::new(expected.input),
            messages: self.turn.history().len(),
            shares,
            is_over: false,
        });
        self.tell_notices().await
    }
}
