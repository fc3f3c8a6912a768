//! Calls that are being judged, each on a thread of its own, one at a time and in order.

use std::collections::VecDeque;

use gnoma_core::{ToolCall, message::CallId};
use tokio::task::JoinSet;

use crate::{gate::Admitted, turn::Verdict};

/// Calls that wait to be judged, at most those of one answer. Dropped, nobody hears of them any more.
#[derive(Default)]
pub(super) struct Judging {
    pub(super) queue: VecDeque<ToolCall>,
    pub(super) current: Option<CallId>,
    /// On a thread of its own; at most one.
    pub(super) under_way: JoinSet<(Verdict, Option<Admitted>)>,
}

/// A call that was judged.
pub(super) struct Judged {
    pub(super) call: CallId,
    pub(super) verdict: Verdict,
    /// What may run, unless the verdict is no.
    pub(super) admitted: Option<Admitted>,
}

impl Judging {
    /// The next verdict. Where nothing is judged: never. Safe to drop.
    pub(super) async fn next(&mut self) -> Judged {
        let Some(call) = self.current.clone() else { return std::future::pending().await };
        let (verdict, admitted) = match self.under_way.join_next().await {
            Some(Ok(judged)) => judged,
            Some(Err(_)) | None => {
                let reason = "whoever judged it crashed; this is a bug in gnoma".to_owned();
                (Verdict::Deny { reason }, None)
            }
        };
        self.current = None;
        Judged { call, verdict, admitted }
    }
}
