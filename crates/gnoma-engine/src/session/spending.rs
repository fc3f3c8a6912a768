//! Spending of a session: the current call, its reservation, and calls that are being settled.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Message, ModelRef, Role, StreamEvent, Usage, session::ContextUse, store::StoreError,
    task::box_future,
};
use gnoma_router::{Arm, Wire};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{router::Router, silence::Silence};
use crate::{
    context::{Counter, Tracker},
    resume::MeasuredPrefix,
    routing::{
        arm_panel::Shares,
        ask::{DroppedCalls, Hold},
        meter::Meter,
    },
};

/// The call under way, and afterwards until it is paid.
pub(super) struct PendingCall {
    /// The arm that is called. The plan may have moved on to another when the bill comes.
    pub(super) arm: Arc<Arm>,
    pub(super) since: Instant,
    pub(super) first: Option<Duration>,
    /// The time when a piece of the answer came last, and the number of empty pieces since.
    pub(super) heard: (Instant, usize),
    /// The meter that counts what the call takes.
    pub(super) meter: Meter,
    /// Messages of the history that it was asked with.
    pub(super) messages: usize,
    /// Whose calls these really are, where several arms answer together.
    pub(super) shares: Option<Shares>,
    /// True if the call was answered to its end, or its failure is noted.
    pub(super) is_over: bool,
    /// True if the call was abandoned in the middle of its answer.
    pub(super) is_dropped: bool,
    /// The silence of the call so far, if its silence is limited.
    pub(super) silence: Option<Silence>,
}

impl PendingCall {
    /// Takes in an event of the answer.
    pub(super) fn record_event(&mut self, event: &StreamEvent) {
        if let Some(silence) = &mut self.silence {
            silence.reset_on_event(event);
        }
    }
}

/// The spending of a session.
#[derive(Default)]
pub(super) struct Spending {
    /// The call under way.
    pub(super) call: Option<PendingCall>,
    /// The room that is held for it.
    pub(super) hold: Option<Hold>,
    /// Most tokens of its answer, where the room is small.
    pub(super) answer_tokens: Option<u32>,
    pub(super) session_micro_usd: u64,
    /// Tokens of the turn's calls as gnoma counts them, where no provider has reported them.
    pub(super) unreported_usage: Usage,
    /// The tracker that counts the tokens of the conversation.
    pub(super) tracker: Tracker,
    /// The last reported value.
    pub(super) told_context: Option<ContextUse>,
    /// Saves that the session does not wait for.
    pub(super) settling: JoinSet<Result<(), StoreError>>,
    /// Calls that are being settled, each until its token is cancelled: the next call waits for
    /// them, so that the ledger knows of them when it says whether there is room.
    pub(super) unsettled: Vec<CancellationToken>,
    /// Questions that nobody waited for to the end.
    pub(super) dropped: DroppedCalls,
    pub(super) has_complained: bool,
    /// True if a notice has said that a provider reports impossible token numbers.
    pub(super) has_doubted: bool,
    /// True if a notice has said that a cap cannot count calls whose price is not known.
    pub(super) has_named_unpriced: bool,
}

impl Spending {
    pub(super) fn new(tracker: Tracker, is_told: bool) -> Self {
        Self { tracker, has_complained: is_told, ..Self::default() }
    }

    /// Settles beside the session, but before its next call.
    pub(super) fn settle_in_time(
        &mut self,
        settle: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) {
        let call = CancellationToken::new();
        let guard = call.clone().drop_guard();
        self.unsettled.retain(|call| !call.is_cancelled());
        self.unsettled.push(call);
        self.settling.spawn(box_future(async move {
            let _guard = guard;
            settle.await
        }));
    }
}

/// Returns a tracker for a conversation that is continued. `measured` is the size that its provider reported.
pub(super) fn resume_tracker(
    history: &[Arc<Message>],
    measured: Option<MeasuredPrefix>,
    router: &Router,
) -> Tracker {
    let Some(MeasuredPrefix { usage, messages }) = measured else { return Tracker::default() };
    let mut before = history.iter().take(messages).rev();
    let origin = before.find(|it| it.role() == Role::Assistant).and_then(|it| it.origin());
    let counter = counter_for(router, origin);
    Tracker::from_reported_usage(usage, history, messages, counter)
}

/// Returns how a model counts tokens, as far as that is known.
pub(super) fn counter_for(router: &Router, name: Option<&ModelRef>) -> Counter {
    let arm = name.and_then(|name| router.routes.find_arm(name));
    let unknown = || ModelRef { provider: String::new(), model: String::new() };
    let by_name = || Counter { wire: Wire::default(), name: name.cloned().unwrap_or_else(unknown) };
    arm.map_or_else(by_name, |arm| Counter::for_arm(&arm))
}
