//! Requests a summary of the past. [`crate::compact`] decides what stays and what to ask, and `turn` whether to
//! accept it.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    ErrorKind, Message, ModelRef, ProviderError,
    lifecycle::{Lifecycle, Point, PointKind},
    session::{NoticeLevel, PermissionMode},
};
use gnoma_router::Arm;

use super::{
    compaction_extras::CompactionExtras,
    state::{FrontEndGone, PendingWork, Session},
};
use crate::{
    compact::{self, CompactionSummary, SummarizedRange},
    compaction::{CompactionFailure, CompactionInput},
    context::{Strategy, brief::Brief},
    effect::CompactionRequest,
    routing::{
        OWN,
        ask::{Account, Share},
    },
    summary_input::{self, SummaryInput, SummaryInputParts},
    turn::Input,
};

/// Longest wait for the words about one part.
const PATIENCE: Duration = Duration::from_secs(120);

impl Session {
    pub(super) async fn start_compaction(
        &mut self,
        wish: CompactionRequest,
    ) -> Result<(), FrontEndGone> {
        self.settle_side_calls().await?;
        let begun = self.ask_for_summary(wish);
        self.inbox.push_back(match begun {
            Ok(cut) => CompactionInput::Begun(cut).into(),
            Err(why) => CompactionInput::Ended(Err(why)).into(),
        });
        Ok(())
    }

    fn ask_for_summary(
        &mut self,
        wish: CompactionRequest,
    ) -> Result<SummarizedRange, CompactionFailure> {
        let CompactionRequest { focus, whatever_it_wins, strategy, is_asked } = wish;
        self.look_for_paths();
        let answering = self.answering_arm();
        let arm = answering.as_ref().and_then(|name| self.router.routes.find_arm(name));
        let window_tokens = arm.and_then(|arm| arm.context_window);
        let (summary, rest) = self.turn.conversation();
        let cut = compact::find_cut(summary.is_some(), rest, window_tokens)
            .ok_or(CompactionFailure::NothingToShorten)?;
        let messages = self.turn.history().len() - rest.len() + cut;
        let past = rest.iter().take(cut);
        let past: Vec<Arc<Message>> = summary.into_iter().chain(past).cloned().collect();
        let past_tokens = compact::estimate_messages(&past);
        let mut brief = Brief::from_past(&past, self.turn.specs(), window_tokens);
        brief.keep_skills(
            self.added.retained_texts(rest.get(cut..).unwrap_or_default()),
            window_tokens,
        );
        let brief = Arc::new(brief);
        // The messages of the person stay.
        let shortened = past_tokens.saturating_sub(brief.words_tokens());
        if !whatever_it_wins && !compact::is_worth_it(shortened, window_tokens) {
            return Err(CompactionFailure::NothingToShorten);
        }
        let tellers = self.summarizers(strategy, is_asked, answering.as_ref())?;
        let telling = SummaryJob {
            tellers,
            kept: self.kept_beside(&past, &brief, strategy, window_tokens),
            past: SummaryInput { messages: past, focus },
            account: self.account(),
            before: self.added.listener_for(PointKind::BeforeCompaction),
            mode: self.gate.rights.mode(),
            is_asked,
        };
        self.wait_for(telling.request_summary());
        Ok(SummarizedRange { brief, messages, past_tokens, window_tokens })
    }

    /// Returns the arms that are asked for a summary, in their order; none if the past is simply left out.
    fn summarizers(
        &mut self,
        strategy: Strategy,
        is_asked: bool,
        answering: Option<&ModelRef>,
    ) -> Result<Vec<Arc<Arm>>, CompactionFailure> {
        let task = self.current_task();
        let context = self.router.choice_context();
        let arms = self
            .router
            .routes
            .with_state(|state| state.rank_summarizers(&task, context, answering));
        if arms.is_empty() && (is_asked || strategy == Strategy::Summarize) {
            return Err(CompactionFailure::NobodyToAsk);
        }
        Ok(if strategy == Strategy::Truncate { Vec::new() } else { arms })
    }

    /// The arm has told the past, or none has.
    pub(super) async fn finish_compaction(
        &mut self,
        told: Result<(CompactionSummary, Option<String>), CompactionFailure>,
        shares: Vec<Share>,
    ) -> Result<(), FrontEndGone> {
        self.count_all_apart(shares).await?;
        self.tell_notices().await?;
        if let Ok((_, Some(left_out))) = &told {
            self.notify(NoticeLevel::Info, left_out.clone()).await?;
        }
        self.inbox.push_back(CompactionInput::Ended(told.map(|(told, _)| told)).into());
        Ok(())
    }

    /// Counts calls beside the conversation.
    pub(super) async fn count_all_apart(&mut self, shares: Vec<Share>) -> Result<(), FrontEndGone> {
        for share in shares {
            self.count_apart(share).await?;
        }
        Ok(())
    }

    /// Counts a call beside the conversation.
    async fn count_apart(&mut self, share: Share) -> Result<(), FrontEndGone> {
        if !share.is_estimated {
            self.feed_input(Input::SideUsage(share.usage)).await?;
        }
        self.tell_costs(vec![share]).await
    }
}

/// The inputs for summarizing a past.
struct SummaryJob {
    /// The arms that are asked for the summary; none if the past is simply left out.
    tellers: Vec<Arc<Arm>>,
    past: SummaryInput,
    kept: CompactionExtras,
    account: Account,
    /// The extensions that are asked before the summary is made.
    before: Option<Arc<dyn Lifecycle>>,
    mode: PermissionMode,
    is_asked: bool,
}

impl SummaryJob {
    async fn request_summary(self) -> PendingWork {
        let Self { tellers, past, kept, account, before, mode, is_asked } = self;
        if let Some(before) = before {
            let point = Point::BeforeCompaction { is_asked, focus: past.focus.clone() };
            if let Some(why) = before.run_hooks(point, mode).await.block {
                return PendingWork::Summary(Err(CompactionFailure::Blocked(why)), Vec::new());
            }
        }
        let (told, shares) = if tellers.is_empty() {
            (Ok(None), Vec::new())
        } else {
            ask_summarizers(&tellers, &past, &account).await
        };
        let told = match told {
            Err(failures) => Err(CompactionFailure::Failed(join_failures(&failures))),
            Ok(told) => {
                let (summary, left_out) = told.unzip();
                let (aside, read_back) = kept.save_and_reread().await;
                Ok((CompactionSummary { summary, aside, read_back }, left_out.flatten()))
            }
        };
        PendingWork::Summary(told, shares)
    }
}

/// The reason why an arm gave no summary.
#[derive(thiserror::Error)]
#[error("{arm} could not summarize it: {error}")]
struct SummaryError {
    arm: ModelRef,
    #[source]
    error: ProviderError,
}

gnoma_core::debug_as_display!(SummaryError);

fn join_failures(failures: &[SummaryError]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Asks one arm after the other until one has summarized it.
async fn ask_summarizers(
    tellers: &[Arc<Arm>],
    past: &SummaryInput,
    account: &Account,
) -> (Result<Option<(String, Option<String>)>, Vec<SummaryError>>, Vec<Share>) {
    let (mut failures, mut shares) = (Vec::new(), Vec::new());
    for arm in tellers {
        match summarize_with_arm(arm, past, account, &mut shares).await {
            Ok(told) => return (Ok(Some(told)), shares),
            Err(error) => failures.push(SummaryError { arm: arm.id.clone(), error }),
        }
    }
    (Err(failures), shares)
}

/// An arm's summary of the past, and what it did not see of it. A long past is summarized part by part, and the
/// summaries again until one is left.
async fn summarize_with_arm(
    arm: &Arc<Arm>,
    past: &SummaryInput,
    account: &Account,
    shares: &mut Vec<Share>,
) -> Result<(String, Option<String>), ProviderError> {
    let SummaryInputParts { mut texts, left_out } = summary_input::split_past(arm, past);
    loop {
        let count = texts.len();
        let mut told = Vec::with_capacity(count);
        for (number, text) in (1..).zip(&texts) {
            let request = summary_input::summary_request(arm, text, (number, count), &past.focus);
            let said = account.ask_arm(arm, request, PATIENCE).await;
            shares.extend(said.shares);
            let words = said.text?;
            if count == 1 {
                return Ok((words, left_out.describe_omissions()));
            }
            told.extend(compact::clip_summary(&words, arm.context_window));
        }
        texts = summary_input::split_summaries(arm, &told);
        if texts.len() >= count {
            let text = "the summary is not shorter than the conversation";
            return Err(ProviderError::new(ErrorKind::ContextTooLong, OWN, text));
        }
    }
}
