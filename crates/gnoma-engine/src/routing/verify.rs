//! How the work of a turn is checked before it is delivered, and what the check shows. Pure.

use gnoma_core::{ResultPart, ToolOutcome, session::Outcome, tool::ToolOutput};
use gnoma_router::{RouterSettings, Verify};

use super::signals::{self, Signals};

/// Most characters of a check's output that the next arm and the person see.
const MAX_EVIDENCE_CHARS: usize = 4_000;

/// The result of a check of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The person, arm or command that checked.
    pub(crate) by: String,
    /// The work held; `None`: nobody could tell.
    pub(crate) passed: Option<bool>,
    /// The evidence that was found, in a few lines.
    pub(crate) evidence: String,
}

impl Finding {
    pub(crate) fn new(by: String, passed: Option<bool>, evidence: String) -> Self {
        Self { by, passed, evidence }
    }

    /// No one could check: the work is delivered as it is.
    pub(crate) fn without_check(why: &str) -> Self {
        Self::new("nobody".to_owned(), None, why.to_owned())
    }

    /// All these commands passed.
    pub(crate) fn from_passed_checks(commands: &[String]) -> Self {
        Self::new(quote_commands(commands), Some(true), "all of them passed".to_owned())
    }

    /// The command failed with this output.
    fn from_failed_check(command: &str, output: &ToolOutput) -> Self {
        let text = |part: &ResultPart| match part {
            ResultPart::Text { text } => Some(text.clone()),
            ResultPart::Image(_) => None,
        };
        let text = output.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n");
        let from = text.char_indices().rev().nth(MAX_EVIDENCE_CHARS).map_or(0, |(at, _)| at);
        let evidence = text.get(from..).unwrap_or_default().to_owned();
        Self::new(format!("`{command}`"), Some(false), evidence)
    }
}

/// The way in which work is checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VerificationMethod {
    /// The work is not checked at all.
    No,
    /// The turn itself has already shown the result.
    Seen(Finding),
    /// The project's checks run, in this order.
    Prove(Vec<String>),
    /// A reviewer is asked.
    Review,
}

impl Signals {
    /// Decides how the work of the turn is checked if the turn ends with this outcome.
    pub(crate) fn choose_verification(
        &self,
        outcome: &Outcome,
        settings: &RouterSettings,
    ) -> VerificationMethod {
        match outcome {
            Outcome::Stuck { what: why } | Outcome::Unfit { why, .. } => {
                return VerificationMethod::Seen(Finding::new(
                    "gnoma".to_owned(),
                    Some(false),
                    why.clone(),
                ));
            }
            // A person's limit says nothing of the work, and nobody else may continue.
            Outcome::RoundLimit { .. } => return VerificationMethod::No,
            Outcome::Complete { .. } | Outcome::Cancelled | Outcome::Failed { .. } => (),
        }
        // What the model ran itself counts where nothing else was asked for.
        let counts = settings.verify != Verify::Reviewer && settings.checks.is_empty();
        if let Some((command, passed)) = self.last_check().filter(|_| counts) {
            let evidence = format!("its last run {}", if passed { "passed" } else { "failed" });
            return VerificationMethod::Seen(Finding::new(
                format!("`{command}`"),
                Some(passed),
                evidence,
            ));
        }
        if !self.has_edited {
            return VerificationMethod::No;
        }
        match settings.verify {
            Verify::Auto | Verify::Checks if !settings.checks.is_empty() => {
                VerificationMethod::Prove(settings.checks.clone())
            }
            Verify::Auto | Verify::Checks | Verify::Reviewer | Verify::Off => {
                VerificationMethod::Review
            }
        }
    }
}

/// The result of running one of the project's checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CheckEvidence {
    /// This command found no problem.
    Right,
    /// This command found a problem.
    Wrong(Finding),
    /// The command proved nothing, for the given reason.
    Nothing(String),
}

/// Reads how the run of a check ended.
pub(crate) fn interpret_check(command: &str, ended: ToolOutcome) -> CheckEvidence {
    let output = match ended {
        ToolOutcome::Done(output) | ToolOutcome::Failed(output) => output,
        ToolOutcome::Denied(why) => {
            return CheckEvidence::Nothing(format!("`{command}` was not run: {why}"));
        }
        ToolOutcome::Interrupted(_) => {
            return CheckEvidence::Nothing(format!("`{command}` did not run to the end"));
        }
    };
    let code = output.report.as_ref().and_then(|report| report.exit_code);
    match code.filter(|code| !signals::CANNOT_RUN.contains(code)) {
        Some(0) => CheckEvidence::Right,
        Some(_) => CheckEvidence::Wrong(Finding::from_failed_check(command, &output)),
        None => CheckEvidence::Nothing(format!("`{command}` could not run to the end")),
    }
}

/// Commands as people read them.
pub(crate) fn quote_commands(commands: &[String]) -> String {
    commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ")
}
