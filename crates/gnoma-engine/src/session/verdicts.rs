//! Calls that are being judged, each on a separate thread, one at a time and in order.

use std::collections::VecDeque;

use gnoma_core::{ToolCall, message::CallId};
use tokio::task::JoinSet;

use super::handle::{CheckpointReadiness, MissingFilesError};
use crate::{
    gate::ApprovedCall,
    turn::{HookInstructions, Verdict},
};

/// The decision about a call, and what hooks said before it.
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) admitted: Option<ApprovedCall>,
    pub(super) said: HookInstructions,
}

/// Calls that wait to be judged, at most those of one answer. Dropped, nobody hears of them any more.
#[derive(Default)]
pub(super) struct JudgementQueue {
    pub(super) queue: VecDeque<ToolCall>,
    pub(super) current: Option<CallId>,
    /// The judgement in progress, on a separate thread; at most one.
    pub(super) under_way: JoinSet<Decision>,
    /// None is judged before the files are there.
    pub(super) ready: Option<CheckpointReadiness>,
}

/// A call that was judged.
pub(super) struct JudgedCall {
    pub(super) call: CallId,
    /// With what was decided.
    pub(super) decision: Decision,
}

impl JudgementQueue {
    /// Returns `Ok` if the files that calls may be about are there, and the reason if they never will be; `None` if
    /// that is not known yet.
    pub(super) fn files_ready(&self) -> Option<Result<(), MissingFilesError>> {
        let Some(ready) = &self.ready else { return Some(Ok(())) };
        let gone = || Err(MissingFilesError("the files are not there".to_owned()));
        let told = ready.borrow().clone();
        told.or_else(|| ready.has_changed().is_err().then(gone))
    }

    /// The next verdict, or nothing where calls can be judged now that had to wait for files: what holds then
    /// decides, not what held when they came. Where nothing is judged: never. Safe to drop.
    pub(super) async fn next(&mut self) -> Option<JudgedCall> {
        let Some(call) = self.current.clone() else {
            match &mut self.ready {
                Some(ready) if !self.queue.is_empty() => {
                    drop(ready.wait_for(Option::is_some).await);
                }
                _ => std::future::pending().await,
            }
            return None;
        };
        let decision = match self.under_way.join_next().await {
            Some(Ok(judged)) => judged,
            Some(Err(_)) | None => {
                let reason = "the permission check crashed; this is a bug in gnoma".to_owned();
                Decision {
                    verdict: Verdict::Deny { reason },
                    admitted: None,
                    said: HookInstructions::default(),
                }
            }
        };
        self.current = None;
        Some(JudgedCall { call, decision })
    }
}
