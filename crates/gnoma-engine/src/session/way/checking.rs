//! Looking at the work of a turn before it is delivered: by what the turn has shown, by the project's
//! checks, or by a reviewing arm. What does not hold goes to the next arm with what was found.

use std::time::Duration;

use gnoma_core::{
    Event, ResultPart, Role, ToolOutcome,
    session::{NoticeLevel, Outcome},
    tool::ToolOutput,
};

use super::{Came, Closed, Session};
use crate::{
    arm::Arm,
    routing::{
        ask::{Account, Share},
        desk::Verify,
        review::{self, Review, Work},
    },
    turn::{Checked, Input},
};

/// Arms that are asked to review, one after the other, until one gives a verdict.
const MOST_REVIEWERS: usize = 3;
/// Longest wait for a review.
const REVIEW_PATIENCE: Duration = Duration::from_secs(120);
/// Most characters of a check's output that the next arm and the person see.
const MAX_EVIDENCE_CHARS: usize = 4_000;

/// Makes the marks around reviewed material differ from the seed itself.
const NONCE: u64 = 0x9E37_79B9_7F4A_7C15;

/// What looking at the work found.
pub(in crate::session) struct Found {
    by: String,
    /// It held; `None`: nobody could tell.
    passed: Option<bool>,
    evidence: String,
    /// What looking took, where arms did.
    shares: Vec<Share>,
    /// Who could not tell, and why.
    failures: Vec<String>,
}

impl Found {
    fn told(by: String, passed: Option<bool>, evidence: String) -> Self {
        Self { by, passed, evidence, shares: Vec::new(), failures: Vec::new() }
    }

    /// Nobody could look: the work stands as it is.
    pub(super) fn nobody(why: &str) -> Self {
        Self::told("nobody".to_owned(), None, why.to_owned())
    }

    /// All these commands passed.
    pub(super) fn passed(by: String) -> Self {
        Self::told(by, Some(true), "all of them passed".to_owned())
    }

    /// The command failed with this output.
    pub(super) fn failed(command: &str, output: &ToolOutput) -> Self {
        let text = words_of(output);
        let from = text.char_indices().rev().nth(MAX_EVIDENCE_CHARS).map_or(0, |(at, _)| at);
        let evidence = text.get(from..).unwrap_or_default().to_owned();
        Self::told(format!("`{command}`"), Some(false), evidence)
    }
}

impl Session {
    /// Looks at the work of the turn, which would end like this.
    pub(in crate::session) async fn check(&mut self, outcome: &Outcome) -> Result<(), Closed> {
        let Some(course) = &mut self.way.course else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        if course.is_looking {
            self.confer(outcome);
            return Ok(());
        }
        if !course.is_checked() {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        }
        let not_done = |evidence: String| Found::told("gnoma".to_owned(), Some(false), evidence);
        let options = &self.way.routes.options;
        let found = match outcome {
            Outcome::Stuck { what } => Some(not_done(what.clone())),
            // A person's limit says nothing of the work, and nobody else may go on.
            Outcome::RoundLimit { .. } => {
                course.close_attempt(None);
                self.inbox.push_back(Input::Checked(Checked::Deliver));
                return Ok(());
            }
            Outcome::Complete { .. } | Outcome::Cancelled | Outcome::Failed { .. } => {
                // What the model ran itself counts where nothing else was asked for.
                let counts = options.verify != Verify::Reviewer && options.checks.is_empty();
                course.signals.check().filter(|_| counts).map(|(command, passed)| {
                    let word = if passed { "passed" } else { "failed" };
                    Found::told(
                        format!("`{command}`"),
                        Some(passed),
                        format!("its last run {word}"),
                    )
                })
            }
        };
        if let Some(found) = found {
            return self.found(found).await;
        }
        if !course.signals.has_edited {
            course.close_attempt(None);
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        }
        let checks = match options.verify {
            Verify::Reviewer | Verify::Off => Vec::new(),
            Verify::Auto | Verify::Checks => options.checks.clone(),
        };
        if self.prove(checks).await? { Ok(()) } else { self.review().await }
    }

    /// Asks whoever reviews the work.
    pub(super) async fn review(&mut self) -> Result<(), Closed> {
        let Some(course) = &self.way.course else { return Ok(()) };
        let author = course.arm.name();
        let reviewers = match self.way.routes.options.verify {
            Verify::Checks | Verify::Off => Vec::new(),
            Verify::Auto | Verify::Reviewer => {
                let moment = self.way.moment_of(course);
                self.way.routes.reviewers(&course.task, moment, Some(&author))
            }
        };
        let Some(first) = reviewers.first().map(Arm::name) else {
            return self.found(Found::nobody("nobody is there to review it")).await;
        };
        let (account, nonce) =
            (self.way.account(&self.firewall), course.seed.rotate_left(17) ^ NONCE);
        let history = self.turn.history();
        let answer = history.iter().rev().find(|message| message.role() == Role::Assistant);
        let work = Work {
            task: course.task.words.clone(),
            changes: course.signals.changes(),
            answer: answer.map(|message| message.text_content()).unwrap_or_default(),
        };
        self.way
            .checking
            .spawn(async move { Came::Found(reviewed(&reviewers, &work, &account, nonce).await) });
        self.emit(Event::Checking { arm: author, by: first.to_string() }).await
    }

    /// Goes on with what the check found.
    pub(super) async fn found(&mut self, found: Found) -> Result<(), Closed> {
        let Found { by, passed, evidence, shares, failures } = found;
        self.tell_costs(shares).await?;
        for text in failures {
            self.emit(Event::Notice { level: NoticeLevel::Warning, text }).await?;
        }
        self.weigh_context();
        let Some(course) = &mut self.way.course else { return Ok(()) };
        let arm = course.arm.name();
        course.close_attempt(passed);
        let said = match passed {
            Some(passed) => Event::Checked {
                arm: arm.clone(),
                by: by.clone(),
                passed,
                evidence: evidence.clone(),
            },
            None => Event::Notice {
                level: NoticeLevel::Warning,
                text: format!("the work was not checked: {evidence}"),
            },
        };
        self.emit(said).await?;
        let may_go_on = passed == Some(false) && self.turn.has_rounds();
        let way = &mut self.way;
        let next = way
            .course
            .as_ref()
            .filter(|_| may_go_on)
            .and_then(|course| way.routes.go_on(course, way.moment_of(course)));
        let (Some(next), Some(course)) = (next, &mut way.course) else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        let to = next.name();
        let why = "its work does not hold".to_owned();
        let why = way.routes.in_place_of(course, &arm, why);
        course.begin_again(next, format!("the work of {arm} does not hold"));
        self.emit(Event::ArmChanged { from: arm, to, why, retracted: false }).await?;
        let note = review::note(&by, &evidence);
        self.inbox.push_back(Input::Checked(Checked::Again { note }));
        Ok(())
    }

    /// A call has ended: what it shows about the work.
    pub(in crate::session) fn observe(&mut self, outcome: &ToolOutcome) {
        let Some(course) = &mut self.way.course else { return };
        match outcome {
            ToolOutcome::Done(output) | ToolOutcome::Failed(output) => {
                course.signals.changed(output.diff.as_deref());
                if output.diff.is_some() {
                    course.parts.add(&course.arm.name());
                }
                if let Some(report) = &output.report {
                    course.signals.command_ended(report);
                }
            }
            ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => (),
        }
    }
}

fn words_of(output: &ToolOutput) -> String {
    let text = |part: &ResultPart| match part {
        ResultPart::Text { text } => Some(text.clone()),
        ResultPart::Image(_) => None,
    };
    output.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// Asks one reviewer after the other until one has said something that can be read.
async fn reviewed(reviewers: &[Arm], work: &Work, account: &Account, nonce: u64) -> Found {
    let (mut shares, mut failures) = (Vec::new(), Vec::new());
    for reviewer in reviewers.iter().take(MOST_REVIEWERS) {
        let by = reviewer.name();
        let request = review::request(reviewer, work, nonce);
        let said = account.ask(reviewer, request, REVIEW_PATIENCE).await;
        shares.extend(said.shares);
        match said.text.map(|text| review::read(&text)) {
            Ok(Some(Review { holds, why })) => {
                let evidence = if why.is_empty() { "no reason given".into() } else { why };
                let found = Found::told(by.to_string(), Some(holds), evidence);
                return Found { shares, failures, ..found };
            }
            Ok(None) => failures.push(format!("{by} gave no verdict that can be read")),
            Err(error) => failures.push(format!("{by} could not review the work: {error}")),
        }
    }
    Found { shares, failures, ..Found::nobody("no reviewer gave a verdict") }
}
