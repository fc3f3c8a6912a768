//! Asking for a summary of the past. What stays and what is asked is decided in [`crate::compact`],
//! whether it is taken in `turn`.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    ErrorKind, Event, Message, ModelRef, ProviderError,
    lifecycle::{Point, PointKind},
    session::NoticeLevel,
};

use super::state::{Awaited, Gone, Session};
use crate::{
    arm::Arm,
    compact::{self, Cut},
    past::{self, Parts, Past},
    routing::{
        OWN,
        ask::{Account, Share},
    },
    turn::{Input, NotCompacted},
};

/// Longest wait for the words about one part.
const PATIENCE: Duration = Duration::from_secs(120);

impl Session {
    pub(super) async fn compact(
        &mut self,
        focus: String,
        whatever_it_wins: bool,
    ) -> Result<(), Gone> {
        // A call that has failed for its length is over.
        let rest = self.settle_rest();
        self.tell_costs(rest).await?;
        let begun = self.ask_for_summary(focus, whatever_it_wins);
        self.inbox.push_back(match begun {
            Ok(cut) => Input::CompactionBegun(cut),
            Err(why) => Input::Compacted(Err(why)),
        });
        Ok(())
    }

    fn ask_for_summary(
        &mut self,
        focus: String,
        whatever_it_wins: bool,
    ) -> Result<Cut, NotCompacted> {
        self.look_for_paths();
        let answering = self.answering();
        let arm = answering.as_ref().and_then(|name| self.router.routes.arm(name));
        let window_tokens = arm.and_then(|arm| arm.context_window);
        let (summary, rest) = self.turn.conversation();
        let cut = compact::cut(summary.is_some(), rest, window_tokens)
            .ok_or(NotCompacted::NothingToShorten)?;
        let messages = self.turn.history().len() - rest.len() + cut;
        let past = rest.iter().take(cut);
        let past: Vec<Arc<Message>> = summary.into_iter().chain(past).cloned().collect();
        let past_tokens = compact::estimate(&past);
        let kept = self.added.kept(rest.get(cut..).unwrap_or_default());
        if !whatever_it_wins && !compact::is_worth_it(past_tokens, window_tokens) {
            return Err(NotCompacted::NothingToShorten);
        }
        let (task, context) = (self.task(), self.router.choice_context());
        let tellers = self.router.routes.tellers(&task, context, answering.as_ref());
        if tellers.is_empty() {
            return Err(NotCompacted::NobodyToAsk);
        }
        let before = self.added.listening(PointKind::BeforeCompaction);
        let mode = self.gate.rights.mode();
        let (past, account) = (Past { messages: past, focus: focus.clone() }, self.account());
        self.wait_for(async move {
            if let Some(before) = before {
                let point = Point::BeforeCompaction { is_asked: whatever_it_wins, focus };
                if let Some(why) = before.at(point, mode).await.block {
                    return Awaited::Summary(Err(why), Vec::new());
                }
            }
            let (words, shares) = asked(&tellers, &past, &account).await;
            Awaited::Summary(words, shares)
        });
        Ok(Cut { messages, past_tokens, window_tokens, kept })
    }

    /// The arm has told the past, or none has.
    pub(super) async fn summarized(
        &mut self,
        told: Result<(String, Option<String>), String>,
        shares: Vec<Share>,
    ) -> Result<(), Gone> {
        for share in shares {
            self.count_apart(share).await?;
        }
        self.tell_notices().await?;
        if let Ok((_, Some(left_out))) = &told {
            self.notify(NoticeLevel::Info, left_out.clone()).await?;
        }
        let words = told.map(|(words, _)| words);
        self.inbox.push_back(Input::Compacted(words.map_err(NotCompacted::Failed)));
        Ok(())
    }

    /// Who answers, or will probably.
    fn answering(&self) -> Option<ModelRef> {
        let plan = self.router.plan.as_ref().map(|plan| plan.arm.name());
        let before = || self.turn.history().iter().rev().find_map(|it| it.origin().cloned());
        plan.or_else(|| self.router.pinned().cloned()).or_else(before)
    }

    /// Counts a call beside the conversation.
    async fn count_apart(&mut self, share: Share) -> Result<(), Gone> {
        if !share.is_estimated {
            let round = share.usage;
            let turn = self.turn.also_used(round);
            self.tell(Event::Usage { round, turn }).await?;
        }
        self.tell_costs(vec![share]).await
    }
}

/// Asks one arm after the other until one has told it.
async fn asked(
    tellers: &[Arm],
    past: &Past,
    account: &Account,
) -> (Result<(String, Option<String>), String>, Vec<Share>) {
    let (mut failures, mut shares) = (Vec::new(), Vec::new());
    for arm in tellers {
        match summarize(arm, past, account, &mut shares).await {
            Ok(told) => return (Ok(told), shares),
            Err(error) => failures.push(format!("{} could not summarize it: {error}", arm.name())),
        }
    }
    (Err(failures.join("; ")), shares)
}

/// The past in an arm's words, and what it was not shown of it. It is told part by part where it is
/// long, and what was told of the parts is told again until one telling is left.
async fn summarize(
    arm: &Arm,
    past: &Past,
    account: &Account,
    shares: &mut Vec<Share>,
) -> Result<(String, Option<String>), ProviderError> {
    let Parts { mut texts, left_out } = past::parts(arm, past);
    loop {
        let count = texts.len();
        let mut told = Vec::with_capacity(count);
        for (number, text) in (1..).zip(&texts) {
            let request = past::request(arm, text, (number, count), &past.focus);
            let said = account.ask(arm, request, PATIENCE).await;
            shares.extend(said.shares);
            let words = said.text?;
            if count == 1 {
                return Ok((words, left_out.words()));
            }
            told.extend(compact::words(&words, arm.context_window));
        }
        texts = past::retold(arm, &told);
        if texts.len() >= count {
            let text = "the past does not get shorter by being told";
            return Err(ProviderError::new(ErrorKind::ContextTooLong, OWN, text));
        }
    }
}
