//! What a session spends: the call under way, the room held for it, and what is still being settled.

use std::{sync::Arc, time::Duration};

use gnoma_core::Message;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    arm::Arm,
    compact,
    routing::{
        ask::{Dropped, Hold},
        meter::Meter,
        several::Shares,
    },
};

/// The call under way, and afterwards until it is paid.
pub(super) struct Call {
    /// Who is called: the plan may have moved on when the bill comes.
    pub(super) arm: Arm,
    pub(super) since: Instant,
    pub(super) first: Option<Duration>,
    /// When something of the answer came last, and how many empty pieces came since.
    pub(super) heard: (Instant, usize),
    /// What it takes.
    pub(super) meter: Meter,
    /// Messages of the history that it was asked with.
    pub(super) messages: usize,
    /// Whose calls these really are, where several arms answer together.
    pub(super) shares: Option<Shares>,
    /// It was answered to its end, or its failure is noted.
    pub(super) is_over: bool,
}

/// What a session spends.
pub(super) struct Spending {
    /// The call under way.
    pub(super) call: Option<Call>,
    /// The round it belongs to.
    pub(super) round: u32,
    /// The room that is held for it.
    pub(super) hold: Option<Hold>,
    pub(super) session_micro_usd: u64,
    /// Tokens of the conversation, as the last call told.
    pub(super) context_tokens: u64,
    /// Messages of the history that these are the tokens of.
    pub(super) context_messages: usize,
    /// Work that nobody waits for, each with what went wrong.
    pub(super) settling: JoinSet<Option<String>>,
    /// Calls that are being settled, each until its token is cancelled: the next call waits for
    /// them, so that the ledger knows of them when it says whether there is room.
    pub(super) unsettled: Vec<CancellationToken>,
    /// Questions that nobody waited for to the end.
    pub(super) dropped: Dropped,
    pub(super) has_complained: bool,
}

impl Spending {
    /// `history`: the conversation that is continued.
    pub(super) fn new(history: &[Arc<Message>]) -> Self {
        Self {
            call: None,
            round: 0,
            hold: None,
            session_micro_usd: 0,
            context_tokens: compact::estimate(history),
            context_messages: history.len(),
            settling: JoinSet::new(),
            unsettled: Vec::new(),
            dropped: Dropped::default(),
            has_complained: false,
        }
    }

    /// The first `messages` of the history are so many tokens.
    pub(super) fn measured(&mut self, tokens: u64, messages: usize) {
        self.context_tokens = tokens;
        self.context_messages = messages;
    }

    /// Settles beside the session, but before its next call.
    pub(super) fn settle_in_time(
        &mut self,
        settle: impl Future<Output = Option<String>> + Send + 'static,
    ) {
        let call = CancellationToken::new();
        let guard = call.clone().drop_guard();
        self.unsettled.retain(|call| !call.is_cancelled());
        self.unsettled.push(call);
        self.settling.spawn(async move {
            let _guard = guard;
            settle.await
        });
    }
}
