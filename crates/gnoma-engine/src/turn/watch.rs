//! Watches a turn for a model that has lost its way.

use gnoma_core::{
    ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, CommandReport, TouchedResource},
};
use serde_json::Value;

use crate::{
    detect::{PatchSpiral, RedCheck, RepeatVerdict, SameCall},
    prompt,
    routing::signals::ToolHandling,
};

/// From this many identical calls with identical results on, the model receives a note.
const TELL_REPEATS: u32 = 2;
/// At this many, the model may only answer any more.
const STOP_REPEATS: u32 = 4;
/// The same for a lean arm, which was not offered the tool in one round by then.
const STOP_LEAN_REPEATS: u32 = 3;

/// The advice to the model, and the place where it is given.
#[derive(Debug)]
pub(super) enum Advice {
    /// The advice is added to the result.
    InResult(String),
    /// Before the next round.
    NextRound(String),
}

/// The detectors of one turn.
#[derive(Debug, Default)]
pub(super) struct TurnDetectors {
    spiral: PatchSpiral,
    same_call: SameCall,
    check: RedCheck,
    /// A count of how well the model handles its tools.
    pub(super) handling: ToolHandling,
    has_run_tools: bool,
    /// The tool of the last call, if it was made before with the same result: a lean arm is not offered it in the
    /// next round.
    withheld: Option<String>,
    /// The arm has the lean tool set.
    pub(super) is_lean: bool,
    stuck: Option<String>,
    /// The number of times that the model was corrected.
    pub(super) corrections: u32,
}

impl TurnDetectors {
    /// Looks at a call that is over.
    pub(super) fn record_call(
        &mut self,
        call: &ToolCall,
        spec: Option<&ToolSpec>,
        outcome: &ToolOutcome,
    ) -> Vec<Advice> {
        self.has_run_tools = true;
        self.withheld = None;
        // How an agent works is for itself to watch.
        if spec.is_some_and(|spec| spec.kind.is_of_agent()) {
            return Vec::new();
        }
        self.handling.record_outcome(call, spec, outcome);
        let mut advice = Vec::new();
        let (output, ok) = match outcome {
            ToolOutcome::Done(output) => (output, true),
            ToolOutcome::Failed(output) => (output, false),
            ToolOutcome::Denied(why) => return self.advise_repeat(call, why).into_iter().collect(),
            ToolOutcome::Interrupted(_) => return advice,
        };
        if let Some(CommandReport { command, exit_code, .. }) = &output.report {
            self.check.record_command(command, *exit_code);
        }
        let access = spec.map_or(Access::Execute, |spec| spec.access);
        if access == Access::Edit
            && let Some(path) = touched_path(call, spec)
            && self.spiral.record_edit(&path, ok)
        {
            advice.push(Advice::NextRound(prompt::patch_spiral(&path)));
        }
        if access == Access::Edit && output.diff.is_some() {
            self.same_call.forget_calls();
        }
        advice.extend(self.advise_repeat(call, &format!("{:?}", output.parts)));
        advice
    }

    /// Returns the advice about a call that was made before and had the same result, refusals included.
    fn advise_repeat(&mut self, call: &ToolCall, result: &str) -> Option<Advice> {
        let most = if self.is_lean { STOP_LEAN_REPEATS } else { STOP_REPEATS };
        match self.same_call.record_call(&call.name, call.arguments.get(), result) {
            RepeatVerdict::Again(times) if times >= most => {
                self.stuck =
                    Some(format!("`{}` was called {times} times with the same result", call.name));
                None
            }
            RepeatVerdict::Again(times) if times >= TELL_REPEATS => {
                self.withheld = Some(call.name.clone());
                Some(Advice::InResult(prompt::repeated_call_note(times)))
            }
            RepeatVerdict::New | RepeatVerdict::Again(_) => None,
        }
    }

    /// Reports whether a tool has run in this turn.
    pub(super) fn has_run_tools(&self) -> bool {
        self.has_run_tools
    }

    /// Returns a description of the action that was repeated until it is of no use any more.
    pub(super) fn take_stuck_reason(&mut self) -> Option<String> {
        self.stuck.take()
    }

    /// A tool that a lean arm is not offered in the next round.
    pub(super) fn withheld_tool(&self) -> Option<&str> {
        self.withheld.as_deref()
    }

    /// Records a check of the project that passed.
    pub(super) fn check_passed(&mut self, command: &str) {
        self.check.record_command(command, Some(0));
    }

    /// Returns the command whose last run in this turn was red, once.
    pub(super) fn take_red_check(&mut self) -> Option<String> {
        std::mem::take(&mut self.check).failing_command().map(str::to_owned)
    }
}

fn touched_path(call: &ToolCall, spec: Option<&ToolSpec>) -> Option<String> {
    let argument = spec?.touches.iter().find_map(|touches| match touches {
        TouchedResource::Path(argument) => Some(argument),
        TouchedResource::Command(_) | TouchedResource::Action(..) | TouchedResource::Url(_) => None,
    })?;
    let arguments: Value = call.arguments.read().ok()?;
    arguments.get(&**argument)?.as_str().map(str::to_owned)
}
