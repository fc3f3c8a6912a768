//! Looking at the work of a turn before it is delivered: by what the turn has shown, by the project's
//! checks, or by a reviewing arm. What does not hold goes to the next arm with what was found.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    CallId, Event, RawJson, ResultPart, Role, Tool, ToolCall, ToolOutcome,
    session::{NoticeLevel, Outcome},
    tool::{Grant, ToolCx, ToolOutput},
};
use serde_json::json;

use super::{Closed, Session};
use crate::{
    arm::Arm,
    routing::{
        ask::{Account, Share},
        desk::Verify,
        review::{self, Work},
        signals,
    },
    turn::{Checked, Input},
};

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
    /// Who looked, where it was an arm, and what that took.
    share: Option<Share>,
}

impl Found {
    /// Nobody could look: the work stands as it is.
    pub(super) fn nobody(why: &str) -> Self {
        let (by, evidence) = ("nobody".to_owned(), why.to_owned());
        Self { by, passed: None, evidence, share: None }
    }
}

impl Session {
    /// Looks at the work of the turn, which would end like this.
    pub(in crate::session) async fn check(&mut self, outcome: &Outcome) -> Result<(), Closed> {
        let Some(course) = &mut self.way.course else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        let not_done = |evidence: String| Found {
            by: "gnoma".to_owned(),
            passed: Some(false),
            evidence,
            share: None,
        };
        let options = &self.way.routes.options;
        let found = match outcome {
            Outcome::Stuck { what } => Some(not_done(what.clone())),
            Outcome::RoundLimit { rounds } => {
                Some(not_done(format!("not done after {rounds} rounds")))
            }
            Outcome::Complete { .. } | Outcome::Cancelled | Outcome::Failed { .. } => {
                // What the model ran itself counts where nothing else was asked for.
                let counts = options.verify != Verify::Reviewer && options.checks.is_empty();
                course.signals.check().filter(|_| counts).map(|(command, passed)| Found {
                    by: format!("`{command}`"),
                    passed: Some(passed),
                    evidence: format!("its last run {}", if passed { "passed" } else { "failed" }),
                    share: None,
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
        self.look();
        Ok(())
    }

    /// Starts whoever looks at the work.
    pub(super) fn look(&mut self) {
        let Some(course) = &self.way.course else { return };
        let options = &self.way.routes.options;
        let uses_checks = options.verify != Verify::Reviewer && !options.checks.is_empty();
        if uses_checks && let Some(bash) = self.tools.by_name.get("bash").map(Arc::clone) {
            let (checks, cx) = (options.checks.clone(), self.tool_cx());
            self.way.checking.spawn(async move { run_checks(bash, checks, cx).await });
            return;
        }
        let author = course.arm.name();
        let moment = self.way.moment_of(course);
        let reviewer = (options.verify != Verify::Checks)
            .then(|| self.way.routes.reviewer(&course.task, moment, Some(&author)))
            .flatten();
        let (account, nonce) = (self.way.account(), course.seed.rotate_left(17) ^ NONCE);
        let history = self.turn.history();
        let answer = history.iter().rev().find(|message| message.role() == Role::Assistant);
        let work = Work {
            task: course.task.words.clone(),
            changes: course.signals.changes(),
            answer: answer.map(|message| message.text_content()).unwrap_or_default(),
        };
        self.way.checking.spawn(async move {
            match reviewer {
                Some(reviewer) => reviewed(&reviewer, &work, &account, nonce).await,
                None => Found::nobody("nobody is there to review it"),
            }
        });
    }

    /// Goes on with what the check found.
    pub(super) async fn found(&mut self, found: Found) -> Result<(), Closed> {
        let Found { by, passed, evidence, share } = found;
        if let Some(share) = share {
            self.tell_cost(share).await?;
        }
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
        let way = &mut self.way;
        let next = way
            .course
            .as_ref()
            .filter(|_| passed == Some(false))
            .and_then(|course| way.routes.go_on(course, way.moment_of(course)));
        let (Some(next), Some(course)) = (next, &mut way.course) else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        let to = next.name();
        let why = "its work does not hold".to_owned();
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

async fn reviewed(reviewer: &Arm, work: &Work, account: &Account, nonce: u64) -> Found {
    let by = reviewer.name();
    let request = review::request(reviewer, work, nonce);
    let said = match account.ask(reviewer, request, REVIEW_PATIENCE).await {
        Ok(said) => said,
        Err(error) => return Found::nobody(&format!("{by} could not review it: {error}")),
    };
    let share = said.share;
    match review::read(&said.text) {
        Some(review) => {
            let evidence =
                if review.why.is_empty() { "no reason given".into() } else { review.why };
            Found { by: by.to_string(), passed: Some(review.holds), evidence, share }
        }
        None => Found { share, ..Found::nobody(&format!("{by} gave no verdict that can be read")) },
    }
}

/// Runs the commands that prove the project right, until one fails.
async fn run_checks(bash: Arc<dyn Tool>, checks: Vec<String>, cx: ToolCx) -> Found {
    for (number, command) in checks.iter().enumerate() {
        let Ok(arguments) = RawJson::of(&json!({ "command": command })) else { continue };
        let id = CallId::new(format!("check-{}", number + 1));
        let call = ToolCall::new(id, "bash", arguments);
        let outcome = bash.run(call, ToolCx { grant: Grant::default(), ..cx.clone() }).await;
        let (ToolOutcome::Done(output) | ToolOutcome::Failed(output)) = outcome else {
            return Found::nobody(&format!("`{command}` was not run to its end"));
        };
        let code = output.report.as_ref().and_then(|report| report.exit_code);
        let Some(code) = code.filter(|code| !signals::CANNOT_RUN.contains(code)) else {
            return Found::nobody(&format!("`{command}` could not be run to its end"));
        };
        if code != 0 {
            let text = words_of(&output);
            let from = text.char_indices().rev().nth(MAX_EVIDENCE_CHARS).map_or(0, |(at, _)| at);
            let evidence = text.get(from..).unwrap_or_default().to_owned();
            return Found {
                by: format!("`{command}`"),
                passed: Some(false),
                evidence,
                share: None,
            };
        }
    }
    let by = checks.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
    Found { by, passed: Some(true), evidence: "all of them passed".to_owned(), share: None }
}
