//! A question to one arm beside the conversation: the whole answer as text, within a time, paid like
//! every other call.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use gnoma_core::{
    Accumulator, ErrorKind, ModelRef, ModelRequest, Provider as _, ProviderError, StreamEvent,
    Usage,
    ledger::{Ask, HoldId, Ledger, Reserved},
    message::Content,
};
use gnoma_router::pool;
use tokio::time::{Instant, timeout};

use super::{OWN, desk::Routes};
use crate::arm::Arm;

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The text of the answer, thinking left out.
    pub(crate) text: String,
    /// What it took, which is settled already; not yet told to anybody.
    pub(crate) share: Option<Share>,
}

/// What one call took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) arm: ModelRef,
    pub(crate) usage: Usage,
}

/// Room that is held for a call. Dropped unsettled, nothing was taken.
pub(crate) struct Hold {
    ledger: Arc<dyn Ledger>,
    id: Option<HoldId>,
}

impl Hold {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, id: HoldId) -> Self {
        Self { ledger, id: Some(id) }
    }

    /// Hands over what must be settled by hand.
    pub(crate) fn settle(mut self) -> Option<(Arc<dyn Ledger>, HoldId)> {
        self.id.take().map(|id| (Arc::clone(&self.ledger), id))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.ledger.rollback(id);
        }
    }
}

/// On whose account questions are asked.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) routes: Arc<Routes>,
    pub(crate) turn: String,
    pub(crate) session: String,
}

impl Account {
    /// Reserves room, asks, waits for the whole answer, settles, and notes how the arm did.
    ///
    /// # Errors
    /// There is no room, or the arm failed or was too slow. What it took until then is settled.
    pub(crate) async fn ask(
        &self,
        arm: &Arm,
        request: ModelRequest,
        patience: Duration,
    ) -> Result<Said, ProviderError> {
        let hold = self.reserve(arm).await?;
        self.routes.called(arm);
        let began = Instant::now();
        let mut answer = Accumulator::new();
        let heard = timeout(patience, hear(arm, request, &mut answer)).await;
        let response = answer.finish();
        let usage = response.usage;
        self.settle(arm, hold, usage.unwrap_or_default()).await;
        match heard {
            Ok(Ok(())) => {
                let whole = began.elapsed();
                self.routes.worked(arm, whole, whole, usage.unwrap_or_default());
            }
            Ok(Err(error)) => {
                self.routes.failed(arm, &error);
                return Err(error);
            }
            Err(_late) => {
                let name = arm.provider.facts().name.clone();
                let error = ProviderError::new(ErrorKind::Timeout, name, "did not answer in time");
                self.routes.abandoned(arm);
                return Err(error);
            }
        }
        let text = response.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.text.as_str()),
            Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_)
            | Content::ToolResult(_) => None,
        });
        let share = usage.map(|usage| Share { arm: arm.name(), usage });
        Ok(Said { text: text.collect(), share })
    }

    async fn reserve(&self, arm: &Arm) -> Result<Option<Hold>, ProviderError> {
        let Some(ledger) = self.routes.ledger().cloned() else { return Ok(None) };
        let draws = self.routes.draws(arm, &self.turn, &self.session);
        let at_ms = self.routes.now_ms();
        let amount = self.routes.expected(arm, 0, None);
        match ledger.reserve(Ask { at_ms, arm: arm.name(), amount, draws }).await {
            Ok(Reserved::Held(id)) => Ok(Some(Hold::new(ledger, id))),
            Ok(Reserved::Full(full)) => {
                let why = pool::words(&full, at_ms);
                Err(ProviderError::new(ErrorKind::Quota, OWN, why))
            }
            // Beside the conversation nothing is worth a call that nobody counts.
            Err(error) => Err(ProviderError::new(ErrorKind::Quota, OWN, error.sentence)),
        }
    }

    async fn settle(&self, arm: &Arm, hold: Option<Hold>, usage: Usage) {
        let Some((ledger, id)) = hold.and_then(Hold::settle) else { return };
        let amount = self.routes.taken(arm, &usage);
        // The session complains about a ledger that fails at its own next call.
        let _failed = ledger.commit(id, self.routes.now_ms(), amount).await;
    }
}

async fn hear(
    arm: &Arm,
    request: ModelRequest,
    answer: &mut Accumulator,
) -> Result<(), ProviderError> {
    let mut stream = arm.provider.stream(request);
    while let Some(event) = stream.next().await {
        let event = event?;
        answer.push(&event);
        if matches!(event, StreamEvent::Stop(_)) || answer.is_full() {
            return Ok(());
        }
    }
    let name = arm.provider.facts().name.clone();
    Err(ProviderError::new(ErrorKind::Network, name, "the answer ended before it was complete"))
}
