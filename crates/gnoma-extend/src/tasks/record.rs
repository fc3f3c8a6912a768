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
    /// A person must decide what happens to a step that has begun.
    Undecided {
        /// Number of the step, from 1.
        number: usize,
        /// The number of all steps.
        count: usize,
        /// The heading of the step.
        title: String,
        /// The progress so far.
        state: StepState,
    },
    /// A question cannot be left out: it has no default, and later steps would have no answer.
    Unanswered {
        /// Number of the step, from 1.
        number: usize,
        /// The heading of the step.
        title: String,
    },
    /// No model answered in the step, so none can be replaced by a stronger one.
    NoModel {
        /// Number of the step, from 1.
        number: usize,
        /// The heading of the step.
        title: String,
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
            Self::Undecided { number, count, title, state } => {
                let what = match state {
                    StepState::Failed => "failed",
                    StepState::Stopped => "was stopped",
                    _ => "has begun and its end is not known",
                };
                write!(f, "step {number} of {count} (`{title}`) {what}, so it may have had effects")
            }
            Self::Unanswered { number, title } => write!(
                f,
                "step {number} (`{title}`) asks a question and cannot be left out, because later steps would have no answer"
            ),
            Self::NoModel { number, title } => write!(
                f,
                "no model answered in step {number} (`{title}`), so there is none to replace by a stronger one"
            ),
            Self::Redacted => f.write_str(
                "its arguments contained a secret, which is not saved; start the task again",
            ),
        }
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
        let begun: Vec<(usize, &StepRecord)> =
            self.steps.iter().enumerate().filter(|(_, step)| step.has_begun_only()).collect();
        self.check_choice(&begun, choice)?;
        for (at, open) in begun {
            let Some(step) = steps.get_mut(at) else { continue };
            // What the first attempt cost was spent.
            step.micro_usd = open.micro_usd;
            step.models.clone_from(&open.models);
            match choice {
                Some(ResumeChoice::Skip) => step.state = StepState::Skipped,
                Some(ResumeChoice::Stronger) => step.escalates = !open.models.is_empty(),
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

    /// Checks that a choice says what happens to the steps that have begun.
    fn check_choice(
        &self,
        begun: &[(usize, &StepRecord)],
        choice: Option<ResumeChoice>,
    ) -> Result<(), ResumeError> {
        let Some((at, open)) = begun.first() else { return Ok(()) };
        let (number, title, state) = (at + 1, open.title.clone(), open.state);
        match choice {
            None => {
                let count = self.steps.len();
                Err(ResumeError::Undecided { number, count, title, state })
            }
            Some(ResumeChoice::Stronger)
                if begun.iter().all(|(_, step)| step.models.is_empty()) =>
            {
                Err(ResumeError::NoModel { number, title })
            }
            Some(ResumeChoice::Skip) if open.kind == StepKind::Question => {
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

    /// Returns how long the steps took together, in milliseconds. Those that ran side by side have the same begin.
    #[must_use]
    pub fn took_ms(&self) -> i64 {
        let beside =
            |one: &StepRecord, next: &StepRecord| one.began_ms > 0 && one.began_ms == next.began_ms;
        let groups = self.steps.chunk_by(beside);
        groups.filter_map(|steps| steps.iter().map(|step| step.took_ms).max()).sum()
    }

    /// Returns how many steps are done or left out.
    #[must_use]
    pub fn finished_steps(&self) -> usize {
        self.steps.iter().filter(|step| step.is_over()).count()
    }

    /// Returns the first step that failed, or else the first that is neither done nor left out, with its number from 1.
    #[must_use]
    pub fn open_step(&self) -> Option<(usize, &StepRecord)> {
        let mut steps = (1..).zip(&self.steps);
        let failed = steps.clone().find(|(_, step)| step.state == StepState::Failed);
        failed.or_else(|| steps.find(|(_, step)| !step.is_over()))
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
mod tests {
    use std::collections::HashMap;

    use super::{
        super::{parse_task, plan_task},
        *,
    };

    fn plan(text: &str) -> TaskPlan {
        let tasks = HashMap::from([("t".to_owned(), parse_task("t", text).unwrap())]);
        plan_task("t", &[], &tasks).unwrap()
    }

    const THREE: &str = "## A\na\n## B\n```sh\nb\n```\n## C\nc";

    fn ended(state: StepState) -> StepResult {
        let (why, message) = ("w".to_owned(), Some("said".to_owned()));
        let models = vec![ModelRef { provider: "p".into(), model: "weak".into() }];
        let took_ms = None;
        StepResult { state, why, micro_usd: 5, answer: None, message, models, took_ms }
    }

    fn begun() -> RunRecord {
        RunRecord::new("r1".to_owned(), &plan(THREE), "s".to_owned(), 100)
    }

    #[test]
    fn run_goes_through_its_steps_and_is_done() {
        let mut run = begun();
        for at in 0..3 {
            assert_eq!(run.next_step(), Some(at));
            run.begin_step(at, 100);
            run.end_step(at, ended(StepState::Done), 150);
        }
        assert_eq!((run.next_step(), run.state, run.micro_usd()), (None, RunState::Done, 15));
        assert_eq!(run.steps[2].took_ms, 50);
        let resumed = run.resume(&plan(THREE), None, 200);
        assert_eq!(resumed, Err(ResumeError::Done));
    }

    #[test]
    fn step_that_has_begun_runs_again_only_if_a_person_says_so() {
        for state in [StepState::Begun, StepState::Failed, StepState::Stopped] {
            let mut run = begun();
            run.begin_step(0, 100);
            run.end_step(0, ended(StepState::Done), 110);
            run.begin_step(1, 120);
            if state != StepState::Begun {
                run.end_step(1, ended(state), 130);
                assert_eq!(run.next_step(), None);
            }
            let refused = run.clone().resume(&plan(THREE), None, 200).unwrap_err();
            assert!(refused.to_string().starts_with("step 2 of 3 (`B`) "), "{refused}");
            let again = run.clone().resume(&plan(THREE), Some(ResumeChoice::Again), 200).unwrap();
            assert_eq!(again.next_step(), Some(1));
            let skipped = run.clone().resume(&plan(THREE), Some(ResumeChoice::Skip), 200).unwrap();
            assert_eq!((skipped.next_step(), skipped.finished_steps()), (Some(2), 2));
            // The step that failed may be edited, those that are done may not.
            let edited = THREE.replace("\nb\n", "\nb2\n");
            assert!(run.clone().resume(&plan(&edited), Some(ResumeChoice::Again), 200).is_ok());
            let edited = THREE.replace("\na\n", "\na2\n");
            let refused = run.resume(&plan(&edited), Some(ResumeChoice::Again), 200).unwrap_err();
            assert!(
                refused.to_string().contains("step 1 (`A`) is done and has changed"),
                "{refused}"
            );
        }
    }

    #[test]
    fn stronger_model_is_wanted_in_place_of_those_that_answered() {
        let mut run = begun();
        run.begin_step(0, 100);
        let interrupted = run.clone().resume(&plan(THREE), Some(ResumeChoice::Stronger), 200);
        assert!(interrupted.unwrap_err().to_string().starts_with("no model answered in step 1"));
        run.end_step(0, ended(StepState::Failed), 110);
        let run = run.resume(&plan(THREE), Some(ResumeChoice::Stronger), 200).unwrap();
        assert!(run.steps[0].escalates && run.steps[0].models.len() == 1);
        assert_eq!((run.next_step(), run.micro_usd()), (Some(0), 5));
        // Saved before models were recorded.
        let old = serde_json::to_string(&begun()).unwrap();
        assert!(!old.contains("models") && serde_json::from_str::<RunRecord>(&old).is_ok());
    }

    #[test]
    fn steps_side_by_side_end_in_any_order_and_only_open_ones_run_again() {
        let plan = plan("## A {parallel}\na\n## B {parallel}\nb\n## C {parallel}\nc\n## D\nd");
        let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
        (0..3).for_each(|at| run.begin_step(at, 100));
        run.end_step(2, StepResult { took_ms: Some(7), ..ended(StepState::Done) }, 110);
        assert_eq!((run.state, run.steps[2].took_ms), (RunState::Running, 7));
        run.end_step(1, ended(StepState::Failed), 120);
        // Killed now, the first one has no end.
        let refused = run.clone().resume(&plan, None, 200).unwrap_err();
        assert!(refused.to_string().contains("step 1 of 4 (`A`) has begun"), "{refused}");
        let skipped = run.clone().resume(&plan, Some(ResumeChoice::Skip), 200).unwrap();
        assert_eq!((skipped.next_step(), skipped.finished_steps()), (Some(3), 3));
        run.stop(0, 130);
        assert_eq!((run.state, run.open_step().unwrap().0), (RunState::Failed, 2));
        let again = run.resume(&plan, Some(ResumeChoice::Again), 200).unwrap();
        let open: Vec<bool> = again.steps.iter().map(StepRecord::is_over).collect();
        assert_eq!(open, [false, false, true, false]);
        assert_eq!((again.next_step(), again.micro_usd()), (Some(0), 10));
    }

    #[test]
    fn question_is_not_left_out_without_an_answer() {
        let plan = plan("## Q\n? Push it?\n## B\nUse $answer.");
        let mut run = RunRecord::new("r1".to_owned(), &plan, "s".to_owned(), 100);
        run.begin_step(0, 100);
        run.end_step(0, ended(StepState::Stopped), 110);
        let refused = run.clone().resume(&plan, Some(ResumeChoice::Skip), 200).unwrap_err();
        assert!(
            refused.to_string().contains("step 1 (`Q`) asks a question and cannot be left out")
        );
        assert_eq!(run.resume(&plan, Some(ResumeChoice::Again), 200).unwrap().next_step(), Some(0));
    }

    #[test]
    fn run_that_was_stopped_before_a_step_goes_on_without_a_choice() {
        let mut run = begun();
        run.begin_step(0, 100);
        run.stop(0, 100);
        assert_eq!((run.next_step(), run.state), (None, RunState::Stopped));
        assert_eq!(run.resume(&plan(THREE), None, 200).unwrap().next_step(), Some(0));
    }

    #[test]
    fn messages_of_steps_are_recorded_once_and_stay_after_a_resume() {
        let mut run = begun();
        run.begin_step(0, 100);
        run.add_message("said");
        run.end_step(0, ended(StepState::Failed), 110);
        let message = ("s".to_owned(), digest_message("said "));
        assert_eq!(run.messages, std::slice::from_ref(&message));
        let run = run.resume(&plan(THREE), Some(ResumeChoice::Again), 200).unwrap();
        assert_eq!(run.messages, [message]);
    }

    #[test]
    fn killed_between_two_steps_the_run_goes_on_with_the_next() {
        let mut run = begun();
        run.begin_step(0, 100);
        run.end_step(0, ended(StepState::Done), 110);
        let text = serde_json::to_string(&run).unwrap();
        let read: RunRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(read, run);
        assert_eq!(read.resume(&plan(THREE), None, 200).unwrap().next_step(), Some(1));
    }
}
