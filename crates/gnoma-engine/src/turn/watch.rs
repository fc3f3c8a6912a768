//! Watches a turn for a model that has lost its way.

use gnoma_core::{
    ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, CommandReport, ToolOutput, Touches},
};
use serde_json::Value;

use crate::{
    detect::{
        PatchSpiral, RedCheck, Repeat, Repetition, SameCall, announces, claims_success,
        denies_change, greets,
    },
    prompt,
    routing::signals::Handling,
};

use super::small::Small;

/// From this many identical calls with identical results on, the model receives a note.
const TELL_REPEATS: u32 = 2;
/// At this many, the model may only answer any more.
const STOP_REPEATS: u32 = 4;
/// The same for a small model, which has been kept from the tool once by then.
const STOP_SMALL_REPEATS: u32 = 3;

/// How often a small model may see a command succeed after its changes before it must answer.
const MAX_GREENS: u32 = 2;

/// Signs of a loop in a call's arguments before it counts as one: files may repeat themselves.
const ARGUMENT_LOOPS: u32 = 3;

/// What to say to the model, and where.
#[derive(Debug)]
pub(super) enum Advice {
    /// With the result.
    InResult(String),
    /// Before the next round.
    NextRound(String),
}

/// The detectors of one turn.
#[derive(Debug, Default)]
pub(super) struct Watch {
    repetition: Repetition,
    /// Signs of a loop in the arguments of this answer.
    argument_loops: u32,
    spiral: PatchSpiral,
    same_call: SameCall,
    check: RedCheck,
    /// How the model handles its tools.
    pub(super) handling: Handling,
    has_run_tools: bool,
    /// Something was changed since a command last succeeded.
    has_edited: bool,
    /// The file of the last change that failed, until a change succeeds.
    unchanged: Option<String>,
    /// The model knows that this change failed.
    told_unchanged: bool,
    /// The file of the last change that was made in this turn.
    changed: Option<String>,
    told_changed: bool,
    /// A small model has to read before anything else.
    needs_read: bool,
    /// A tool that a small model does not get in the next round: it has called it twice alike.
    withheld: Option<String>,
    /// How often a command succeeded after a change.
    greens: u32,
    /// The model is a small one, which does not know when it is done.
    pub(super) small_model: bool,
    /// What only such a model is watched for.
    pub(super) small: Small,
    /// The model knows that a check fails.
    told_red: bool,
    stuck: Option<String>,
    /// How often the model was put right.
    pub(super) corrections: u32,
}

impl Watch {
    /// A new answer begins.
    pub(super) fn new_answer(&mut self) {
        self.repetition = Repetition::default();
        self.argument_loops = 0;
    }

    /// Whether the streamed text has become a loop.
    pub(super) fn text_repeats(&mut self, piece: &str) -> bool {
        self.repetition.push(piece)
    }

    /// Whether the arguments that are being written have become a loop.
    pub(super) fn arguments_repeat(&mut self, piece: &str) -> bool {
        self.argument_loops += u32::from(self.repetition.push(piece));
        self.argument_loops >= ARGUMENT_LOOPS
    }

    /// Looks at a call that is over.
    pub(super) fn ran(
        &mut self,
        call: &ToolCall,
        spec: Option<&ToolSpec>,
        outcome: &ToolOutcome,
    ) -> Vec<Advice> {
        self.has_run_tools |= !self.small.takes_own();
        self.withheld = None;
        // How an agent works is for itself to watch.
        if spec.is_some_and(|spec| spec.kind.is_of_agent()) {
            return Vec::new();
        }
        self.handling.ended(call, spec, outcome);
        let mut advice = Vec::new();
        if self.small_model {
            let is_forbidden = self.small.forbids(spec).is_some();
            self.stuck = self.small.ran(call, spec, outcome).or(self.stuck.take());
            if is_forbidden {
                return advice;
            }
        }
        let (output, ok) = match outcome {
            ToolOutcome::Done(output) => (output, true),
            ToolOutcome::Failed(output) => (output, false),
            ToolOutcome::Denied(why) => return self.repeated(call, why).into_iter().collect(),
            ToolOutcome::Interrupted(_) => return advice,
        };
        if let Some(CommandReport { command, exit_code, .. }) = &output.report {
            self.check.record(command, *exit_code);
        }
        advice.extend(self.green(output));
        let access = spec.map_or(Access::Execute, |spec| spec.access);
        self.needs_read &= access != Access::Read;
        if access == Access::Edit
            && let Some(path) = touched_path(call, spec)
        {
            if self.spiral.record(&path, ok) {
                advice.push(Advice::NextRound(prompt::patch_spiral(&path)));
            }
            if ok && output.diff.is_some() {
                self.changed = Some(path.clone());
            }
            self.told_unchanged &= !ok && self.unchanged.as_ref() == Some(&path);
            self.unchanged = (!ok).then_some(path);
        }
        if access == Access::Edit && output.diff.is_some() {
            self.has_edited = true;
            self.same_call.changed();
        }
        advice.extend(self.repeated(call, &format!("{:?}", output.parts)));
        advice
    }

    /// What to say to a call that was made before and had the same result, refusals included.
    fn repeated(&mut self, call: &ToolCall, result: &str) -> Option<Advice> {
        let most = if self.small_model { STOP_SMALL_REPEATS } else { STOP_REPEATS };
        match self.same_call.seen(&call.name, call.arguments.get(), result) {
            Repeat::Again(times) if times >= most => {
                self.stuck =
                    Some(format!("`{}` was called {times} times with the same result", call.name));
                None
            }
            Repeat::Again(times) if times >= TELL_REPEATS => {
                // A change that fails twice alike was copied wrongly; anything else is known by now.
                if self.unchanged.is_some() {
                    self.needs_read = true;
                } else {
                    self.withheld = Some(call.name.clone());
                }
                Some(Advice::InResult(prompt::repeated(times)))
            }
            Repeat::New | Repeat::Again(_) => None,
        }
    }

    /// A small model keeps changing what already works: tells it that a command succeeded and, the second time,
    /// takes the tools away.
    fn green(&mut self, output: &ToolOutput) -> Option<Advice> {
        let succeeded = output.report.as_ref().is_some_and(|report| report.exit_code == Some(0));
        if !self.small_model || !succeeded || !std::mem::take(&mut self.has_edited) {
            return None;
        }
        self.greens += 1;
        if self.greens == MAX_GREENS {
            self.stuck = Some(format!("a command succeeded {MAX_GREENS} times after a change"));
        }
        Some(Advice::InResult(prompt::GREEN.to_owned()))
    }

    /// Whether a tool has run in this turn.
    pub(super) fn has_run_tools(&self) -> bool {
        self.has_run_tools
    }

    /// What has been repeated until it is no use any more.
    pub(super) fn stuck(&mut self) -> Option<String> {
        self.stuck.take()
    }

    /// The message to a small model that goes in circles, in place of forcing an answer: after a failed change, it
    /// has to read first.
    pub(super) fn reads_first(&mut self) -> Option<String> {
        let path =
            self.unchanged.as_deref().filter(|_| self.small_model && self.stuck.is_some())?;
        if std::mem::replace(&mut self.told_unchanged, true) {
            return None;
        }
        (self.stuck, self.needs_read) = (None, true);
        Some(prompt::unchanged(path))
    }

    /// Whether the next call has to be one that reads.
    pub(super) fn needs_read(&self) -> bool {
        self.small_model && self.needs_read
    }

    /// A tool that is not offered in the next round.
    pub(super) fn withheld(&self) -> Option<&str> {
        self.withheld.as_deref().filter(|_| self.small_model)
    }

    /// What to say after an answer that became a loop. A small model that had to call a tool may have
    /// gone on with words because it could not end, so it need not any more.
    pub(super) fn looped(&mut self) -> String {
        if !self.small_model {
            return prompt::REPETITION.to_owned();
        }
        self.needs_read = false;
        prompt::REPETITION_SMALL.to_owned() + &self.small.reminder()
    }

    /// What to say to a model that may only answer any more.
    pub(super) fn last_words(&self) -> String {
        let reminder = if self.small_model { self.small.reminder() } else { String::new() };
        prompt::LAST_WORDS.to_owned() + &reminder
    }

    /// What to hold against an answer that ends the turn, if anything.
    pub(super) fn contradicts(&mut self, text: &str) -> Option<String> {
        if self.has_run_tools && greets(text) {
            return Some(prompt::GREETING.to_owned());
        }
        if !self.has_run_tools && self.corrections == 0 && announces(text) {
            return Some(prompt::ACT.to_owned());
        }
        if let Some(note) = self.contradicts_change(text) {
            return Some(note);
        }
        if self.small_model
            && let Some(note) = self.small.misses()
        {
            return Some(note);
        }
        let note = prompt::red_check(self.red_claim(text)?);
        (!std::mem::replace(&mut self.told_red, true)).then_some(note)
    }

    /// What to hold against an answer that does not fit the last change.
    fn contradicts_change(&mut self, text: &str) -> Option<String> {
        // Reading a long answer takes as long as receiving a part of it.
        if let Some(path) = &self.unchanged {
            let is_doubtful = self.small_model || claims_success(text);
            if !is_doubtful || std::mem::replace(&mut self.told_unchanged, true) {
                return None;
            }
            self.needs_read = self.small_model;
            return Some(prompt::unchanged(path));
        }
        let path = self.changed.as_deref().filter(|path| denies_change(text, path))?;
        let note = prompt::changed(path);
        (!std::mem::replace(&mut self.told_changed, true)).then_some(note)
    }

    /// The command that is red although `text` claims success.
    pub(super) fn red_claim(&self, text: &str) -> Option<&str> {
        self.check.red().filter(|_| claims_success(text))
    }
}

fn touched_path(call: &ToolCall, spec: Option<&ToolSpec>) -> Option<String> {
    let argument = spec?.touches.iter().find_map(|touches| match touches {
        Touches::Path(argument) => Some(argument),
        Touches::Command(_) | Touches::Action(..) | Touches::Url(_) => None,
    })?;
    let arguments: Value = call.arguments.read().ok()?;
    arguments.get(&**argument)?.as_str().map(str::to_owned)
}
