//! A question to one arm beside the conversation: the whole answer as text, within a time, paid like
//! every other call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use gnoma_core::{
    Accumulator, ErrorKind, ModelRef, ModelRequest, Provider as _, ProviderError, StreamEvent,
    Usage,
    ledger::{
        Amount, CallOrigin, HoldId, Ledger, ReservationOutcome, ReservationRequest, SettledCall,
    },
    message::Content,
};
use gnoma_guard::firewall::Firewall;
use gnoma_router::{
    Arm, TaskKind,
    choice::{OVERHEAD_TOKENS, TYPICAL_ANSWER},
    pool::{self, Expectation, Scope},
};
use tokio::time::{Instant, timeout_at};

use super::{
    OWN,
    call_origin::UsedExtensions,
    meter::Meter,
    routes::{self, Routes},
};
use crate::{compact, tokens};

/// The answer of an arm to a question, with its usage.
#[derive(Debug)]
pub(crate) struct ArmReply {
    /// The text of the answer, thinking left out; or why there is none.
    pub(crate) text: Result<String, ProviderError>,
    /// The usage of the question, which is already paid for in the ledger but not yet reported.
    pub(crate) shares: Vec<Share>,
}

/// The usage and price of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) arm: ModelRef,
    pub(crate) usage: Usage,
    /// In micro-dollars; `None` if the arm's price is not known. The shares of a call add up to what the ledger counts
    /// for it.
    pub(crate) micro_usd: Option<u64>,
    /// The provider did not tell: this is gnoma's own count.
    pub(crate) is_estimated: bool,
}

impl Share {
    /// The usage of a call: the reported part and the rest.
    pub(crate) fn from_meter(arm: &Arm, meter: &Meter) -> Vec<Self> {
        let name = arm.id.clone();
        let reported = meter.reported_usage();
        let cost = |usage: &Usage| arm.price.map(|price| price.cost_micro_usd(usage));
        let told = reported.map(|usage| (usage, cost(&usage), false));
        // Both parts were rounded up if each was paid by its price.
        let reported_cost = reported.and_then(|usage| cost(&usage)).unwrap_or(0);
        let rest = cost(&meter.total_usage()).map(|all| all.saturating_sub(reported_cost));
        let untold = Some((meter.unreported_usage(), rest, true))
            .filter(|(usage, ..)| usage.total_tokens() > 0);
        let share = |(usage, micro_usd, is_estimated)| Self {
            arm: name.clone(),
            usage,
            micro_usd,
            is_estimated,
        };
        told.into_iter().chain(untold).map(share).collect()
    }
}

/// Room that is held for a call. Dropped before the call is made, nothing was taken; dropped
/// afterwards, what was expected of it.
pub(crate) struct Hold {
    ledger: Arc<dyn Ledger>,
    id: Option<HoldId>,
    sent: Option<(i64, SettledCall)>,
}

impl Hold {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, id: HoldId) -> Self {
        Self { ledger, id: Some(id), sent: None }
    }

    /// The call is made; so much is expected of it.
    pub(crate) fn mark_sent(&mut self, at_ms: i64, expected: SettledCall) {
        self.sent = Some((at_ms, expected));
    }

    /// Hands over what must be settled by hand.
    pub(crate) fn into_parts(mut self) -> Option<(Arc<dyn Ledger>, HoldId)> {
        self.id.take().map(|id| (Arc::clone(&self.ledger), id))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match (self.id.take(), self.sent) {
            // It settles though nobody waits for it.
            (Some(id), Some((at_ms, expected))) => {
                drop(self.ledger.commit(id, at_ms, expected));
            }
            (Some(id), None) => self.ledger.rollback(id),
            (None, _) => {}
        }
    }
}

/// A call that was dropped before its end, and what it took until then.
pub(crate) struct DroppedCall {
    pub(crate) arm: Arc<Arm>,
    pub(crate) hold: Option<Hold>,
    pub(crate) meter: Meter,
}

/// Calls that were dropped before their end, and are settled: what they took is to be told.
#[derive(Clone, Default)]
pub(crate) struct DroppedCalls(Arc<Mutex<Vec<DroppedCall>>>);

impl DroppedCalls {
    fn lock_calls(&self) -> MutexGuard<'_, Vec<DroppedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what was not taken yet.
    pub(crate) fn take_calls(&self) -> Vec<DroppedCall> {
        std::mem::take(&mut self.lock_calls())
    }
}

/// On whose account questions are asked.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) routes: Arc<Routes>,
    /// The firewall between the session's secrets and the models that are called.
    pub(crate) firewall: Arc<Firewall>,
    pub(crate) scope: Arc<Scope>,
    /// The kind of task of the turn, once it is known.
    pub(crate) task: Option<TaskKind>,
    pub(crate) used: UsedExtensions,
    /// The part of the work that the questions are, as the ledger names it; may be empty.
    pub(crate) part: &'static str,
    pub(crate) dropped: DroppedCalls,
}

/// A question that is being answered.
struct ArmCallInProgress<'a> {
    account: &'a Account,
    left: Option<DroppedCall>,
    began: Instant,
    /// The time from the start of the call until the answer began.
    first: Option<Duration>,
}

impl ArmCallInProgress<'_> {
    fn record_event(&mut self, event: &Result<StreamEvent, ProviderError>) {
        let Some(DroppedCall { meter, .. }) = &mut self.left else { return };
        self.first.get_or_insert_with(|| self.began.elapsed());
        match event {
            Ok(event) => meter.record_event(event),
            Err(error) => meter.record_failure(error.kind),
        }
    }

    /// The answer is over, or nobody waits for it any more.
    fn finish_call(mut self) -> Option<DroppedCall> {
        self.left.take()
    }
}

impl Drop for ArmCallInProgress<'_> {
    fn drop(&mut self) {
        let Some(mut left) = self.left.take() else { return };
        let routes = &self.account.routes;
        routes.record_abandonment(&left.arm);
        // Settled at once: other sessions have the room that is left over.
        if let Some(mut hold) = left.hold.take() {
            let call =
                routes::settled_call(&left.arm, &left.meter, self.first, self.began.elapsed());
            hold.mark_sent(routes.now_ms(), call);
        }
        self.account.dropped.lock_calls().push(left);
    }
}

impl Account {
    /// Reserves room, asks, waits for the whole answer, settles, and notes how the arm did; all of it
    /// within `patience`. Without an answer there was no room, or the arm failed or was too slow.
    pub(crate) async fn ask_arm(
        &self,
        arm: &Arc<Arm>,
        request: ModelRequest,
        patience: Duration,
    ) -> ArmReply {
        let nothing = |error| ArmReply { text: Err(error), shares: Vec::new() };
        let deadline = Instant::now() + patience;
        let expected = expected_amount(arm, &request);
        let mut hold = match self.reserve_until(deadline, arm, expected).await {
            Ok(hold) => hold,
            Err(error) => return nothing(error),
        };
        if let Some(hold) = &mut hold {
            hold.mark_sent(self.routes.now_ms(), routes::expected_call(arm, expected));
        }
        self.routes.record_call_start(arm);

        let left =
            DroppedCall { arm: Arc::clone(arm), hold, meter: Meter::for_arm(arm, expected.input) };
        let mut call = ArmCallInProgress {
            account: self,
            left: Some(left),
            began: Instant::now(),
            first: None,
        };
        let mut answer = Accumulator::new();
        let heard = timeout_at(deadline, read_answer(arm, request, &mut answer, &mut call)).await;
        let whole = call.began.elapsed();
        let first = call.first.unwrap_or(whole);
        let heard_first = call.first;
        let Some(DroppedCall { hold, mut meter, .. }) = call.finish_call() else {
            return nothing(timeout_error(arm));
        };
        if heard.is_err() {
            meter.time_out();
        }
        let settled = routes::settled_call(arm, &meter, heard_first, whole);
        let _late = timeout_at(deadline, self.settle_hold(hold, settled)).await;
        let usage = meter.reported_usage().unwrap_or_default();
        let text = self
            .record_answer(arm, heard.ok(), (first, whole), usage)
            .map(|()| answer_text(answer));
        ArmReply { text, shares: Share::from_meter(arm, &meter) }
    }

    /// Records how an arm did with a question; `heard` is `None` if it was too slow. `first` and `whole` are the
    /// times until the beginning and the end of the answer.
    fn record_answer(
        &self,
        arm: &Arm,
        heard: Option<Result<(), ProviderError>>,
        (first, whole): (Duration, Duration),
        usage: Usage,
    ) -> Result<(), ProviderError> {
        match heard {
            Some(Ok(())) => {
                self.routes.record_success(arm, first, whole, usage);
                Ok(())
            }
            Some(Err(error)) => {
                self.routes.record_failure(arm, &error);
                Err(error)
            }
            None => {
                self.routes.record_abandonment(arm);
                Err(timeout_error(arm))
            }
        }
    }

    /// Reserves room for a question before a deadline.
    async fn reserve_until(
        &self,
        deadline: Instant,
        arm: &Arm,
        amount: Amount,
    ) -> Result<Option<Hold>, ProviderError> {
        timeout_at(deadline, self.reserve(arm, amount)).await.unwrap_or_else(|_late| {
            let text = "the spending ledger does not respond";
            Err(ProviderError::new(ErrorKind::Quota, OWN, text))
        })
    }

    async fn reserve(&self, arm: &Arm, amount: Amount) -> Result<Option<Hold>, ProviderError> {
        let Some(ledger) = self.routes.ledger().cloned() else { return Ok(None) };
        let at_ms = self.routes.now_ms();
        let draws =
            self.routes.with_state(|state| state.draws_for(arm, &self.scope, &amount, at_ms));
        let used = self.used.clone();
        let origin = self.routes.call_origin(&self.scope, arm, self.task.as_ref(), used);
        let origin = CallOrigin { part: self.part.to_owned(), ..origin };
        let is_priced = arm.price.is_some();
        let arm = arm.id.clone();
        match ledger
            .reserve(ReservationRequest { at_ms, arm, amount, is_priced, draws, origin })
            .await
        {
            Ok(ReservationOutcome::Held(id)) => Ok(Some(Hold::new(ledger, id))),
            Ok(ReservationOutcome::Full(full)) => {
                let why = self.routes.settings.describe_full_limit(&full, &amount, at_ms);
                Err(ProviderError::new(ErrorKind::Quota, OWN, why))
            }
            // Beside the conversation nothing is worth a call that nobody counts.
            Err(error) => Err(ProviderError::new(ErrorKind::Quota, OWN, error.sentence)),
        }
    }

    async fn settle_hold(&self, hold: Option<Hold>, call: SettledCall) {
        let Some((ledger, id)) = hold.and_then(Hold::into_parts) else { return };
        // The session complains about a ledger that fails at its own next call.
        let _failed = ledger.commit(id, self.routes.now_ms(), call).await;
    }
}

fn timeout_error(arm: &Arm) -> ProviderError {
    let name = arm.id.provider.clone();
    ProviderError::new(ErrorKind::Timeout, name, "did not answer in time")
}

fn answer_text(answer: Accumulator) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => Some(text.text.clone()),
        Content::Image(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    };
    answer.into_response().content.iter().filter_map(text).collect()
}

/// Returns the amount that a question is expected to take.
fn expected_amount(arm: &Arm, request: &ModelRequest) -> Amount {
    let said =
        tokens::estimate(&request.system) as u64 + compact::estimate_messages(&request.messages);
    let tools = if request.tools.is_empty() { 0 } else { OVERHEAD_TOKENS };
    let call = Expectation {
        prompt_tokens: said + tools,
        cached_tokens: 0,
        typical_output_tokens: TYPICAL_ANSWER,
        max_output_tokens: request.max_output_tokens.map(u64::from),
    };
    pool::expected_amount(&call, &arm.price.unwrap_or_default())
}

async fn read_answer(
    arm: &Arm,
    request: ModelRequest,
    answer: &mut Accumulator,
    call: &mut ArmCallInProgress<'_>,
) -> Result<(), ProviderError> {
    let mut stream =
        call.account.routes.with_firewall(&arm.id, &call.account.firewall)?.stream(request);
    while let Some(event) = stream.next().await {
        if let Ok(StreamEvent::RateLimits { headers }) = &event {
            call.account.routes.limits_told(&arm.id, headers);
            continue;
        }
        call.record_event(&event);
        let event = event?;
        answer.push(&event);
        if matches!(event, StreamEvent::Stop(_)) || answer.is_full() {
            return Ok(());
        }
    }
    let name = arm.id.provider.clone();
    Err(ProviderError::new(ErrorKind::Network, name, "the answer ended before it was complete"))
}
