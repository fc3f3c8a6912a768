//! Runs the project's checks and reviews before the work of a turn is delivered. If a check fails, the next arm gets
//! the work and the findings.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use gnoma_core::{
    Event, Role,
    ledger::CHECK_PART,
    session::{NoticeLevel, Outcome},
    tool::{Tier, ToolKind},
};
use gnoma_router::{Arm, Verify};

use super::state::{FrontEndGone, PendingWork, ReviewOutcome, Session};
use crate::{
    routing::{
        ask::Account,
        review::{self, Review, Work},
        verify::{Finding, VerificationMethod, quote_commands},
    },
    turn::{Checks, FinishInput, Input, SeparateWork, WorkCheckOutcome},
};

/// Arms that are asked to review, one after the other, until one gives a verdict.
const MOST_REVIEWERS: usize = 3;
/// Longest wait for a review.
const REVIEW_PATIENCE: Duration = Duration::from_secs(120);

/// Makes the marks around reviewed material differ from the seed itself.
const NONCE: u64 = 0x9E37_79B9_7F4A_7C15;

impl Session {
    /// Says how the work of the turn is looked at, which would end like this.
    pub(super) async fn start_verification(
        &mut self,
        outcome: &Outcome,
    ) -> Result<(), FrontEndGone> {
        let settings = &self.router.routes.settings;
        let verify = settings.verify;
        let look = match &self.router.plan {
            Some(_) => self.router.signals.choose_verification(outcome, settings),
            None => VerificationMethod::No,
        };
        match look {
            VerificationMethod::No => {
                if let Some(plan) = &mut self.router.plan {
                    plan.close_attempt(None);
                }
                self.inbox.push_back(FinishInput::Checked(WorkCheckOutcome::Deliver).into());
            }
            VerificationMethod::Seen(finding) => {
                self.inbox.push_back(FinishInput::Found(finding).into());
            }
            VerificationMethod::Review => self.start_review().await?,
            VerificationMethod::Prove(commands) => {
                let Some(shell) = self.tools.of_kind(Tier::Full, ToolKind::Shell) else {
                    return self.start_review().await;
                };
                let tool = shell.name.clone();
                if let Some(arm) = self.router.plan.as_ref().map(|plan| plan.arm.id.clone()) {
                    self.emit(Event::Checking { arm, by: quote_commands(&commands) }).await?;
                }
                let else_review = verify == Verify::Auto;
                let checks = Checks { tool, commands, else_review };
                self.inbox.push_back(FinishInput::Prove(checks).into());
            }
        }
        Ok(())
    }

    /// The project's checks run although nothing was said.
    pub(super) async fn prove_again(&mut self) -> Result<(), FrontEndGone> {
        let shell = self.tools.of_kind(Tier::Full, ToolKind::Shell).map(|it| it.name.clone());
        // No arm answers for what was brought in from elsewhere.
        self.router.plan = None;
        let checks = &self.router.routes.settings.checks;
        let commands = if shell.is_some() { checks.clone() } else { Vec::new() };
        let tool = shell.unwrap_or_default();
        let checks = Checks { tool, commands, else_review: false };
        self.feed_input(Input::Run(SeparateWork::Checks(checks))).await
    }

    async fn concluded_again(
        &mut self,
        by: String,
        passed: Option<bool>,
        evidence: String,
    ) -> Result<(), FrontEndGone> {
        let arm = self.turn.last_model().cloned();
        let said = match (arm, passed) {
            (Some(arm), Some(passed)) => Event::Checked { arm, by, passed, evidence },
            _ => Event::Notice {
                level: NoticeLevel::Info,
                text: format!("the work was not checked: {evidence}"),
            },
        };
        self.emit(said).await?;
        self.inbox.push_back(FinishInput::Checked(WorkCheckOutcome::Deliver).into());
        Ok(())
    }

    /// Calls the reviewer of the work.
    pub(super) async fn start_review(&mut self) -> Result<(), FrontEndGone> {
        let Some(plan) = &self.router.plan else { return Ok(()) };
        let author = plan.arm.id.clone();
        let routes = &self.router.routes;
        let reviewers = match routes.settings.verify {
            Verify::Checks | Verify::Off => Vec::new(),
            Verify::Auto | Verify::Reviewer => {
                let context = self.router.moment_of(plan);
                routes.with_state(|state| state.rank_reviewers(&plan.task, context, Some(&author)))
            }
        };
        let Some(first) = reviewers.first().map(|arm| arm.id.clone()) else {
            let nobody = Finding::without_check("no model is available to review it");
            self.inbox.push_back(FinishInput::Found(nobody).into());
            return Ok(());
        };
        let nonce = plan.seed.rotate_left(17) ^ NONCE;
        let history = self.turn.history();
        let answer = history.iter().rev().find(|message| message.role() == Role::Assistant);
        let work = Work {
            task: plan.task.words.clone(),
            changes: self.router.signals.render_changes(),
            answer: answer.map(|message| message.text_content()).unwrap_or_default(),
        };
        let account = Account { part: CHECK_PART, ..self.account() };
        self.wait_for(async move {
            let looked = ask_reviewers(&reviewers, &work, &account, nonce);
            let looked = AssertUnwindSafe(looked).catch_unwind().await;
            PendingWork::Reviewed(looked.unwrap_or_else(|_panic| {
                let finding = Finding::without_check("the review crashed");
                ReviewOutcome { finding, shares: Vec::new(), failures: Vec::new() }
            }))
        });
        self.emit(Event::Checking { arm: author, by: first.to_string() }).await
    }

    /// A reviewer has spoken.
    pub(super) async fn finish_review(
        &mut self,
        reviewed: ReviewOutcome,
    ) -> Result<(), FrontEndGone> {
        let ReviewOutcome { finding, shares, failures } = reviewed;
        self.tell_costs(shares).await?;
        for text in failures {
            self.notify(NoticeLevel::Info, text).await?;
        }
        self.inbox.push_back(FinishInput::Found(finding).into());
        Ok(())
    }

    /// Goes on with what was found: the work is delivered, or the next arm has it.
    pub(super) async fn apply_finding(
        &mut self,
        finding: Finding,
        may_continue: bool,
    ) -> Result<(), FrontEndGone> {
        let Finding { by, passed, evidence } = finding;
        self.weigh_context();
        let Some(plan) = &mut self.router.plan else {
            return self.concluded_again(by, passed, evidence).await;
        };
        let arm = plan.arm.id.clone();
        plan.close_attempt(passed);
        let said = match passed {
            Some(passed) => {
                let (by, evidence) = (by.clone(), evidence.clone());
                Event::Checked { arm: arm.clone(), by, passed, evidence }
            }
            None => Event::Notice {
                level: NoticeLevel::Info,
                text: format!("the work was not checked: {evidence}"),
            },
        };
        self.emit(said).await?;
        let may_continue = passed == Some(false) && may_continue;
        let router = &mut self.router;
        let plan = router.plan.as_ref().filter(|_| may_continue);
        let next = plan.and_then(|plan| {
            let context = router.moment_of(plan);
            router.routes.with_state(|state| state.choose_successor(plan, context))
        });
        let (Some(next), Some(plan)) = (next, &mut router.plan) else {
            self.inbox.push_back(FinishInput::Checked(WorkCheckOutcome::Deliver).into());
            return Ok(());
        };
        let to = next.id.clone();
        let why = "its work did not pass review".to_owned();
        let why = router.routes.with_state(|state| state.in_place_of(plan, &arm, why));
        plan.begin_again(next, format!("the work of {arm} did not pass review"));
        router.signals.begin_again();
        self.emit(Event::ArmChanged { from: arm, to, why, retracted: false }).await?;
        let note = review::failed_check_note(&by, &evidence);
        self.inbox.push_back(FinishInput::Checked(WorkCheckOutcome::Again { note }).into());
        Ok(())
    }
}

/// Asks one reviewer after the other until one has said something that can be read.
async fn ask_reviewers(
    reviewers: &[Arc<Arm>],
    work: &Work,
    account: &Account,
    nonce: u64,
) -> ReviewOutcome {
    let (mut shares, mut failures) = (Vec::new(), Vec::new());
    for reviewer in reviewers.iter().take(MOST_REVIEWERS) {
        let by = reviewer.id.clone();
        let request = review::review_request(reviewer, work, nonce);
        let said = account.ask_arm(reviewer, request, REVIEW_PATIENCE).await;
        shares.extend(said.shares);
        match said.text.map(|text| review::parse_review(&text)) {
            Ok(Some(Review { holds, why })) => {
                let evidence = if why.is_empty() { "no reason given".into() } else { why };
                let finding = Finding::new(by.to_string(), Some(holds), evidence);
                return ReviewOutcome { finding, shares, failures };
            }
            Ok(None) => failures.push(format!("{by}'s review could not be understood")),
            Err(error) => failures.push(format!("{by} could not review the work: {error}")),
        }
    }
    // One line says all of it.
    let finding = match failures.as_slice() {
        [] => Finding::without_check("no reviewer gave a verdict"),
        failures => Finding::without_check(&failures.join("; ")),
    };
    ReviewOutcome { finding, shares, failures: Vec::new() }
}
