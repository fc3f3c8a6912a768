//! The record of a run: written before and after each step, so that a run continues where it was, and no step runs
//! twice without a person's decision.

use std::fmt;

use gnoma_core::ModelRef;
pub use gnoma_core::protocol::{
    TaskResumeChoice as ResumeChoice, TaskRunState as RunState, TaskStepState as StepState,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{plan::TaskPlan, steps::StepKind};

/// The form of the record.
const VERSION: u32 = 1;
/// Bytes of a message's digest that are recorded, as hexadecimal digits.
const DIGEST_BYTES: usize = 8;
/// Most bytes of a reason that are recorded.
const MAX_WHY_BYTES: usize = 2 << 10;

/// A step of a run, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The heading of the step.
    pub title: String,
    /// The kind of the step.
    pub kind: StepKind,
    /// Tells whether it is the same step in a later plan.
    pub digest: String,
    /// The progress so far.
    pub state: StepState,
    /// The reason of a failure; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The time of its begin, in milliseconds since 1970; 0 before it.
    #[serde(default)]
    pub began_ms: i64,
    /// The duration, in milliseconds.
    #[serde(default)]
    pub took_ms: i64,
    /// The cost of model calls, in millionths of a dollar; calls without a known price count as nothing.
    #[serde(default)]
    pub micro_usd: u64,
    /// The models that answered in it, those of earlier attempts first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelRef>,
    /// The person wants a stronger model than those that have answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalates: bool,
}

impl StepRecord {
    /// Returns whether the step is done or left out.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, StepState::Done | StepState::Skipped)
    }

    /// Returns whether the step has begun and is not done, so that it may have had effects.
    fn has_begun_only(&self) -> bool {
        matches!(self.state, StepState::Begun | StepState::Failed | StepState::Stopped)
    }
}

/// The end of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// `Done`, `Failed` or `Stopped`.
    pub state: StepState,
    /// The reason, if the step is not done.
    pub why: String,
    /// The cost, in millionths of a dollar.
    pub micro_usd: u64,
    /// The person's answer, if it was a question.
    pub answer: Option<String>,
    /// The message that the step has put into the session, if it has put one.
    pub message: Option<String>,
    /// The models that answered in it.
    pub models: Vec<ModelRef>,
    /// The duration in milliseconds, if it is not the time since its begin: steps beside it may have held it up.
    pub took_ms: Option<u64>,
}

/// A run of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The form of the record.
    pub version: u32,
    /// The id; later runs have greater ones.
    pub id: String,
    /// The name of the task.
    pub task: String,
    /// The arguments with their values.
    pub arguments: Vec<(String, String)>,
    /// The session that it runs in.
    pub session: String,
    /// The time of its begin, in milliseconds since 1970.
    pub began_ms: i64,
    /// The time of the last change, in milliseconds since 1970.
    pub changed_ms: i64,
    /// The progress so far.
    pub state: RunState,
    /// The steps, in order.
    pub steps: Vec<StepRecord>,
    /// The person's last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The messages that steps have put into sessions, the oldest first: the session and a digest of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<(String, String)>,
    /// An argument or the answer contained a secret, which is not in the record: the run cannot be resumed.
    #[serde(default)]
    pub is_redacted: bool,
}

/// The reason why a run does not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// All steps are done.
    Done,
    /// A step that is done is another one in the file now.
    Changed {
        /// Number of the step, from 1.
        number: usize,
        /// The step as it ran.
        title: String,
    },
    /// A person must decide what happens to the steps that have begun.
    Undecided {
        /// The steps: number from 1, heading and progress so far. Not empty.
        steps: Vec<(usize, String, StepState)>,
        /// The number of all steps.
        count: usize,
        /// A model answered in one of them, so a stronger one can repeat it.
        can_escalate: bool,
        /// None of them is a question.
        can_skip: bool,
    },
    /// A question cannot be left out: it has no default, and later steps would have no answer.
    Unanswered {
        /// Number of the step, from 1.
        number: usize,
        /// The heading of the step.
        title: String,
    },
    /// No model answered in the steps, so none can be replaced by a stronger one.
    NoModel {
        /// The steps: number from 1 and heading. Not empty.
        steps: Vec<(usize, String)>,
    },
    /// The record contains no secrets, and the run needs one.
    Redacted,
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("it is done; start the task again"),
            Self::Changed { number, title } => write!(
                f,
                "step {number} (`{title}`) is done and has changed in the file since; start the task again"
            ),
            Self::Undecided { steps, count, .. } => {
                let mut of = format!(" of {count}");
                for (number, title, state) in steps {
                    write!(f, "step {number}{of} (`{title}`) {}, ", describe_open_state(*state))?;
                    of.clear();
                }
                let they = if steps.len() == 1 { "it" } else { "they" };
                write!(f, "so {they} may have had effects")
            }
            Self::Unanswered { number, title } => write!(
                f,
                "step {number} (`{title}`) asks a question and cannot be left out, because later steps would have no answer"
            ),
            Self::NoModel { steps } => {
                let named =
                    steps.iter().map(|(number, title)| format!("step {number} (`{title}`)"));
                let named = named.collect::<Vec<_>>().join(", ");
                write!(
                    f,
                    "no model answered in {named}, so there is none to replace by a stronger one"
                )
            }
            Self::Redacted => f.write_str(
                "its arguments contained a secret, which is not saved; start the task again",
            ),
        }
    }
}

/// Describes the state of a step that has begun and is not done, as in `failed`.
#[must_use]
pub fn describe_open_state(state: StepState) -> &'static str {
    match state {
        StepState::Failed => "failed",
        StepState::Stopped => "was stopped",
        StepState::Begun | StepState::Waiting | StepState::Done | StepState::Skipped => {
            "has begun and its end is not known"
        }
    }
}

/// A step that has begun and is not done, and what stands for it in the plan by which the run continues.
struct ReopenedStep<'r> {
    number: usize,
    record: &'r StepRecord,
    /// The place and the kind of the step in the new plan; `None` if the plan has no such step.
    target: Option<(usize, StepKind)>,
}

impl ReopenedStep<'_> {
    fn has_kind(&self, kind: StepKind) -> bool {
        self.target.is_some_and(|(_, own)| own == kind)
    }

    fn can_escalate(&self) -> bool {
        self.has_kind(StepKind::Prompt) && !self.record.models.is_empty()
    }
}

impl RunRecord {
    /// Returns the record of a run that has not begun its first step.
    #[must_use]
    pub fn new(id: String, plan: &TaskPlan, session: String, now_ms: i64) -> Self {
        Self {
            version: VERSION,
            id,
            task: plan.task.clone(),
            arguments: plan.arguments.clone(),
            session,
            began_ms: now_ms,
            changed_ms: now_ms,
            state: RunState::Running,
            steps: step_records(plan),
            answer: None,
            messages: Vec::new(),
            is_redacted: false,
        }
    }

    /// Returns whether its form is one that this version reads.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.version == VERSION
    }

    /// Returns the place of the next step to run; `None` after the last one.
    #[must_use]
    pub fn next_step(&self) -> Option<usize> {
        let next = self.steps.iter().position(|step| !step.is_over());
        next.filter(|_| self.state == RunState::Running)
    }

    /// Notes that a step begins.
    pub fn begin_step(&mut self, at: usize, now_ms: i64) {
        self.changed_ms = now_ms;
        if let Some(step) = self.steps.get_mut(at) {
            (step.state, step.began_ms) = (StepState::Begun, now_ms);
        }
    }

    /// Notes how a step ended. After one that is not done, the run has ended as well.
    pub fn end_step(&mut self, at: usize, result: StepResult, now_ms: i64) {
        self.changed_ms = now_ms;
        let StepResult { state, why, micro_usd, answer, message, models, took_ms } = result;
        if let Some(message) = message {
            self.add_message(&message);
        }
        if let Some(step) = self.steps.get_mut(at) {
            step.state = state;
            why_of(&why).clone_into(&mut step.why);
            let took_ms = took_ms.and_then(|took_ms| i64::try_from(took_ms).ok());
            step.took_ms = took_ms.unwrap_or_else(|| now_ms.saturating_sub(step.began_ms)).max(0);
            step.micro_usd = step.micro_usd.saturating_add(micro_usd);
            for model in models {
                if !step.models.contains(&model) {
                    step.models.push(model);
                }
            }
        }
        if answer.is_some() {
            self.answer = answer;
        }
        self.state = self.state_by_steps();
    }

    /// The state after the end of a step. Other steps may still run beside it.
    fn state_by_steps(&self) -> RunState {
        let has = |wanted| self.steps.iter().any(|step| step.state == wanted);
        if has(StepState::Failed) {
            RunState::Failed
        } else if has(StepState::Stopped) {
            RunState::Stopped
        } else if self.steps.iter().all(StepRecord::is_over) {
            RunState::Done
        } else {
            RunState::Running
        }
    }

    /// Notes that the run stopped before this step began: a person stopped it, or a step beside it failed.
    pub fn stop(&mut self, at: usize, now_ms: i64) {
        self.changed_ms = now_ms;
        if let Some(step) = self.steps.get_mut(at) {
            (step.state, step.began_ms) = (StepState::Waiting, 0);
        }
        let state = self.state_by_steps();
        self.state = if state == RunState::Running { RunState::Stopped } else { state };
    }

    /// Notes that a step puts a message into the session; the same one only once for each step.
    pub fn add_message(&mut self, text: &str) {
        let message = (self.session.clone(), digest_message(text));
        if self.messages.last() != Some(&message) {
            self.messages.push(message);
        }
    }

    /// Continues the run with the steps of `plan`, behind the last one that is done.
    ///
    /// # Errors
    /// The run cannot continue, or a step has begun and a person must choose what happens to it.
    pub fn resume(
        mut self,
        plan: &TaskPlan,
        choice: Option<ResumeChoice>,
        now_ms: i64,
    ) -> Result<Self, ResumeError> {
        if self.is_redacted {
            return Err(ResumeError::Redacted);
        }
        if self.state == RunState::Done || self.steps.iter().all(StepRecord::is_over) {
            return Err(ResumeError::Done);
        }
        let mut steps = step_records(plan);
        self.keep_finished_steps(&mut steps)?;
        let reopened = self.reopened_steps(&steps);
        self.check_choice(&reopened, choice)?;
        for open in &reopened {
            let Some(step) = open.target.and_then(|(at, _)| steps.get_mut(at)) else { continue };
            // What the first attempt cost was spent.
            step.micro_usd = open.record.micro_usd;
            step.models.clone_from(&open.record.models);
            match choice {
                Some(ResumeChoice::Skip) => step.state = StepState::Skipped,
                Some(ResumeChoice::Stronger) => step.escalates = open.can_escalate(),
                Some(ResumeChoice::Again) | None => (),
            }
        }
        self.steps = steps;
        self.changed_ms = now_ms;
        self.state = self.state_by_steps();
        Ok(self)
    }

    /// Takes over the steps that are done or left out. Others may stand before them that ran beside them.
    fn keep_finished_steps(&self, steps: &mut [StepRecord]) -> Result<(), ResumeError> {
        for (at, done) in self.steps.iter().enumerate().filter(|(_, step)| step.is_over()) {
            match steps.get_mut(at) {
                Some(step) if step.digest == done.digest => step.clone_from(done),
                _ => {
                    return Err(ResumeError::Changed { number: at + 1, title: done.title.clone() });
                }
            }
        }
        Ok(())
    }

    /// Returns the steps that have begun and are not done, each with its step among those of the new plan: the same
    /// one, wherever it stands now, or else one of its title, or else a new one in its place.
    fn reopened_steps(&self, steps: &[StepRecord]) -> Vec<ReopenedStep<'_>> {
        let mut reopened: Vec<ReopenedStep<'_>> = Vec::new();
        for (at, record) in self.steps.iter().enumerate().filter(|(_, it)| it.has_begun_only()) {
            let is_free = |place: usize| {
                let is_target =
                    |it: &ReopenedStep<'_>| it.target.is_some_and(|(own, _)| own == place);
                steps.get(place).is_some_and(|it| !it.is_over()) && !reopened.iter().any(is_target)
            };
            let find = |is_it: &dyn Fn(&StepRecord) -> bool| {
                let places = [at].into_iter().chain(0..steps.len());
                let mut places = places.filter(|place| is_free(*place));
                places.find(|place| steps.get(*place).is_some_and(is_it))
            };
            let is_new = |step: &StepRecord| self.steps.iter().all(|it| it.digest != step.digest);
            let place = find(&|step| step.digest == record.digest)
                .or_else(|| find(&|step| step.title == record.title && is_new(step)))
                .or_else(|| {
                    Some(at).filter(|at| is_free(*at) && steps.get(*at).is_some_and(is_new))
                });
            let target = place.and_then(|place| Some((place, steps.get(place)?.kind)));
            reopened.push(ReopenedStep { number: at + 1, record, target });
        }
        reopened
    }

    /// Checks that a choice says what happens to the steps that have begun.
    fn check_choice(
        &self,
        begun: &[ReopenedStep<'_>],
        choice: Option<ResumeChoice>,
    ) -> Result<(), ResumeError> {
        if begun.is_empty() {
            return Ok(());
        }
        let can_escalate = begun.iter().any(ReopenedStep::can_escalate);
        let question = begun.iter().find(|step| step.has_kind(StepKind::Question));
        match choice {
            None => {
                let open =
                    |it: &ReopenedStep<'_>| (it.number, it.record.title.clone(), it.record.state);
                let (steps, count) = (begun.iter().map(open).collect(), self.steps.len());
                let can_skip = question.is_none();
                Err(ResumeError::Undecided { steps, count, can_escalate, can_skip })
            }
            Some(ResumeChoice::Stronger) if !can_escalate => {
                let named = begun.iter().map(|step| (step.number, step.record.title.clone()));
                Err(ResumeError::NoModel { steps: named.collect() })
            }
            Some(ResumeChoice::Skip) if let Some(step) = question => {
                let (number, title) = (step.number, step.record.title.clone());
                Err(ResumeError::Unanswered { number, title })
            }
            Some(ResumeChoice::Again | ResumeChoice::Stronger | ResumeChoice::Skip) => Ok(()),
        }
    }

    /// Returns what all steps cost, in millionths of a dollar.
    #[must_use]
    pub fn micro_usd(&self) -> u64 {
        self.steps.iter().map(|step| step.micro_usd).fold(0, u64::saturating_add)
    }

    /// Returns how long the steps took together, in milliseconds. Those that ran side by side have the same begin, and
    /// count once, with the longest of them.
    #[must_use]
    pub fn took_ms(&self) -> i64 {
        let longer = |(at, step): (usize, &StepRecord)| {
            let beside = self.steps.iter().take(at);
            let beside = beside.filter(|it| it.began_ms > 0 && it.began_ms == step.began_ms);
            let counted = beside.map(|it| it.took_ms).max().unwrap_or(0);
            step.took_ms.saturating_sub(counted).max(0)
        };
        self.steps.iter().enumerate().map(longer).fold(0, i64::saturating_add)
    }

    /// Returns how many steps are done or left out.
    #[must_use]
    pub fn finished_steps(&self) -> usize {
        self.steps.iter().filter(|step| step.is_over()).count()
    }

    /// Returns the steps that have begun and have no good end, each with its number from 1, those that failed first.
    #[must_use]
    pub fn begun_steps(&self) -> Vec<(usize, &StepRecord)> {
        let begun = || (1_usize..).zip(&self.steps).filter(|(_, step)| step.has_begun_only());
        let is_failed = |it: &(usize, &StepRecord)| it.1.state == StepState::Failed;
        begun().filter(is_failed).chain(begun().filter(|it| !is_failed(it))).collect()
    }

    /// Returns the first step that failed, with its number from 1; or else the first that has begun and has no good
    /// end, about which a resume asks; or else the first that is neither done nor left out.
    #[must_use]
    pub fn open_step(&self) -> Option<(usize, &StepRecord)> {
        let mut steps = (1_usize..).zip(&self.steps);
        let begun = self.begun_steps().into_iter().next();
        begun.or_else(|| steps.find(|(_, step)| !step.is_over()))
    }
}

/// Returns the digest under which the message of a step is recorded.
#[must_use]
pub fn digest_message(text: &str) -> String {
    let bytes = Sha256::digest(text.trim());
    bytes.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn step_records(plan: &TaskPlan) -> Vec<StepRecord> {
    let record = |step: &super::plan::PlannedStep| StepRecord {
        title: step.title.clone(),
        kind: step.kind(),
        digest: step.digest(),
        state: StepState::Waiting,
        why: String::new(),
        began_ms: 0,
        took_ms: 0,
        micro_usd: 0,
        models: Vec::new(),
        escalates: false,
    };
    plan.steps.iter().map(record).collect()
}

fn why_of(why: &str) -> &str {
    gnoma_core::text_truncation::word_prefix(why.trim(), MAX_WHY_BYTES)
}

#[cfg(test)]
mod tests;
