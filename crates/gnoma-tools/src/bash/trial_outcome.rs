//! Settles what a command on trial changed: discards it, saves it, or asks a person first.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    CallId, ToolCx, ToolOutcome,
    session::{PermissionAnswer, TrialEnd},
    tool::{Question, ToolOutput, Trial},
};
use gnoma_sandbox::layer::{Changes, KeepError, Layer, LayerChange};
use tokio::task::spawn_blocking;

use super::{
    TimeLimit, add_line, chosen_changes, command_outcome,
    process::ShellEnd,
    shared::ShellTools,
    trial_facts::{self, ChangeDecision},
    trial_limits::TrialLimit,
    trial_question::{ChangeFacts, ChangeQuestion},
};
use crate::trials::{LayerDecision, Trials};

/// The output of a command and the way it ended.
pub(super) struct Output {
    pub(super) ending: ShellEnd,
    pub(super) text: String,
    /// The build output of the command that stays in the layer.
    pub(super) built: Vec<PathBuf>,
}

/// A command that has run, whose changes are to be settled.
pub(super) struct TrialOutcome {
    pub(super) trials: Arc<Trials>,
    pub(super) layer: Layer,
    pub(super) changes: Changes,
    pub(super) updates: Changes,
    pub(super) command: String,
    pub(super) output: Output,
    pub(super) trial: Trial,
    /// The secret files that the command could not open.
    pub(super) sealed: Vec<PathBuf>,
}

impl TrialOutcome {
    /// Asks whether the command runs where what stopped it does not. Otherwise its changes are settled as always.
    pub(super) async fn settle_limit(
        self,
        met: TrialLimit,
        fate: ChangeDecision,
        tools: &ShellTools,
        (limit, call, mut cx): (TimeLimit, CallId, ToolCx),
    ) -> ToolOutcome {
        let text = met.question(&self.command, &cx.roots);
        let leaves_sandbox = matches!(met, TrialLimit::Sandbox(_));
        let mut question = self.question_with_changes(text.clone(), &cx);
        question.leaves_sandbox = leaves_sandbox;
        question.dangers.push(text);
        match cx.ask_user(&call, question).await {
            PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. } => {
                let Self { trials, layer, command, .. } = self;
                trials.return_layer(layer, LayerDecision::Discarded);
                cx.grant.trial = None;
                cx.grant.outside |= leaves_sandbox;
                if let TrialLimit::Outside(paths) = met {
                    // Not the secrets in them, and nothing that a rule denies.
                    cx.grant.readable_by_all.extend(paths);
                }
                tools.in_place(command, limit, call, cx).await
            }
            PermissionAnswer::Deny { reason } | PermissionAnswer::Text { text: reason }
                if !leaves_sandbox =>
            {
                self.discard_changes(&reason, &cx)
            }
            PermissionAnswer::Part { .. } if !leaves_sandbox => self.discard_changes("", &cx),
            PermissionAnswer::Deny { .. }
            | PermissionAnswer::Text { .. }
            | PermissionAnswer::Part { .. } => {
                self.apply_fate(fate, tools, (limit, call, cx)).await
            }
        }
    }

    pub(super) async fn apply_fate(
        self,
        fate: ChangeDecision,
        tools: &ShellTools,
        (limit, call, cx): (TimeLimit, CallId, ToolCx),
    ) -> ToolOutcome {
        match fate {
            ChangeDecision::Nothing => match self.update_build_output().await {
                Ok(updated) => {
                    updated.finish_trial(LayerDecision::Built, None, TrialEnd::Kept, &cx)
                }
                Err(why) => ToolOutcome::failure_text(why),
            },
            ChangeDecision::Dropped => {
                let what =
                    "not saved: later commands see them, the file tools and the workspace do not";
                // The layer holds what earlier commands changed as well.
                let new = self.trials.take_new(&self.layer, &self.changes);
                let note =
                    (!new.is_empty()).then(|| trial_facts::describe_changes(what, &new, &cx.roots));
                let end = if note.is_none() { TrialEnd::Kept } else { TrialEnd::NotKept };
                self.finish_trial(LayerDecision::Lasts, note, end, &cx)
            }
            ChangeDecision::Kept => self.keep_changes(&cx, None).await,
            ChangeDecision::Asked => self.ask_about_changes(&call, &cx).await,
            ChangeDecision::InPlace(why) => {
                let command = trial_facts::one_line(&self.command);
                let text = format!("`{command}` has to run in the workspace itself: {why}");
                let question = self.question_with_changes(text, &cx);
                match cx.ask_user(&call, question).await {
                    PermissionAnswer::Deny { reason } | PermissionAnswer::Text { text: reason } => {
                        self.discard_changes(&reason, &cx)
                    }
                    PermissionAnswer::Part { .. } => self.discard_changes("", &cx),
                    PermissionAnswer::Allow
                    | PermissionAnswer::Always
                    | PermissionAnswer::Rule { .. } => {
                        let Self { trials, layer, command, .. } = self;
                        trials.return_layer(layer, LayerDecision::Discarded);
                        tools.in_place(command, limit, call, cx).await
                    }
                }
            }
        }
    }

    /// A question about a run in the workspace, with what the trial showed that the command changes.
    fn question_with_changes(&self, mut text: String, cx: &ToolCx) -> Question {
        if self.changes.is_empty() {
            return Question { text, ..Question::default() };
        }
        let is_ignored = |path: &Path| self.trials.is_ignored(path);
        let ChangeQuestion { deeds, preview, notable, is_danger, .. } =
            self.change_facts(cx, &is_ignored).build_question(&self.command);
        text.push_str(&format!(" On trial it {deeds}"));
        let dangers = Vec::from_iter(is_danger.then_some(deeds));
        Question { text, preview: Some(preview), notable, dangers, ..Question::default() }
    }

    async fn ask_about_changes(self, call: &CallId, cx: &ToolCx) -> ToolOutcome {
        let is_ignored = |path: &Path| self.trials.is_ignored(path);
        let asked = self.change_facts(cx, &is_ignored).build_question(&self.command);
        let ChangeQuestion {
            text, preview, notable, is_danger, may_be_always, unnamed, order, ..
        } = asked;
        let dangers = Vec::from_iter(is_danger.then(|| text.clone()));
        let parts = chosen_changes::nameable_changes(&order, &self.changes, &cx.roots);
        let question = Question {
            text,
            preview: Some(preview),
            may_be_always,
            parts,
            notable,
            dangers,
            ..Question::default()
        };
        match cx.ask_user(call, question).await {
            PermissionAnswer::Deny { reason } | PermissionAnswer::Text { text: reason } => {
                self.discard_changes(&reason, cx)
            }
            PermissionAnswer::Part { names } => {
                let wanted = chosen_changes::select_paths(&self.changes, &names, &cx.roots);
                if wanted.is_empty() {
                    let why = "none of the named files is among them";
                    return self.discard_changes(why, cx);
                }
                self.keep_changes(cx, Some(wanted)).await
            }
            PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. } => {
                let wanted = (!unnamed.is_empty()).then(|| self.all_but(&unnamed));
                self.keep_changes(cx, wanted).await
            }
        }
    }

    fn change_facts<'a>(
        &'a self,
        cx: &'a ToolCx,
        is_ignored: &'a dyn Fn(&Path) -> bool,
    ) -> ChangeFacts<'a> {
        let Self { trials, layer, changes, sealed, .. } = self;
        let (roots, local) = (&cx.roots, &trials.local);
        ChangeFacts { layer, changes, roots, local, is_ignored, secrets: sealed }
    }

    fn all_but(&self, left: &[PathBuf]) -> BTreeSet<PathBuf> {
        let left: BTreeSet<&Path> = gnoma_core::sort::to_set(left.iter().map(PathBuf::as_path));
        let paths = self.changes.list.iter().map(LayerChange::path);
        paths.filter(|path| !left.contains(path)).map(Path::to_path_buf).collect()
    }

    /// Discards all of it, also build output that would be updated: it was made of what is discarded.
    fn discard_changes(self, reason: &str, cx: &ToolCx) -> ToolOutcome {
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let what = format!("discarded{why}; later commands do not see them");
        let note = if self.changes.is_empty() {
            format!("[ran on trial, and was not run again in the workspace{why}]")
        } else {
            trial_facts::describe_changes(&what, &self.changes, &cx.roots)
        };
        // Whatever the command said of it, what it did is not there.
        let end = TrialEnd::NotKept;
        mark_failed(self.finish_trial(LayerDecision::Discarded, Some(note), end, cx))
    }

    /// Updates the folders of build output that are to be in any case.
    async fn update_build_output(self) -> Result<Self, &'static str> {
        if self.updates.is_empty() {
            return Ok(self);
        }
        let Self { trials, mut layer, changes, updates, command, mut output, trial, sealed } = self;
        let all = chosen_changes::merge_changes(changes.clone(), updates);
        let left: BTreeSet<_> = gnoma_core::sort::to_set(
            changes.list.iter().map(LayerChange::path).map(Path::to_path_buf),
        );
        let kept = spawn_blocking(move || {
            let kept = layer.apply_changes(&all, &|change| !left.contains(change.path()));
            (layer, kept.map_err(|error| error.to_string()))
        });
        let (layer, kept) = kept.await.map_err(|_| "what it built could not be saved")?;
        if let Err(why) = kept {
            add_line(&mut output.text, &format!("[what it built could not be saved: {why}]"));
        }
        let updates = Changes::default();
        Ok(Self { trials, layer, changes, updates, command, output, trial, sealed })
    }

    /// Keeps what is wanted; `None` means all.
    async fn keep_changes(self, cx: &ToolCx, wanted: Option<BTreeSet<PathBuf>>) -> ToolOutcome {
        let Self { trials, mut layer, changes, updates, command, output, trial, sealed } = self;
        let (changes, rest) = chosen_changes::split_changes(changes, wanted.as_ref());
        let diff = ChangeFacts {
            layer: &layer,
            changes: &changes,
            roots: &cx.roots,
            local: &trials.local,
            is_ignored: &|_| false,
            secrets: &sealed,
        }
        .preview();
        let kept = spawn_blocking(move || {
            let kept = save_changes(&mut layer, &changes, &rest, updates);
            (layer, changes, rest, kept)
        });
        let Ok((layer, changes, rest, kept)) = kept.await else {
            return ToolOutcome::failure_text("its changes could not be saved");
        };
        let what = match &kept {
            Ok(()) => "kept".to_owned(),
            Err(why) => format!("discarded, because they could not be saved: {why}"),
        };
        let mut note = trial_facts::describe_changes(&what, &changes, &cx.roots);
        if kept.is_ok() && !rest.is_empty() {
            let what = "discarded; later commands do not see them";
            add_line(&mut note, &trial_facts::describe_changes(what, &rest, &cx.roots));
        }
        let is_kept = kept.is_ok();
        let (fate, end) = if is_kept && rest.is_empty() {
            (LayerDecision::Built, TrialEnd::Kept)
        } else {
            (LayerDecision::Discarded, TrialEnd::NotKept)
        };
        let updates = Changes::default();
        let settled = Self { trials, layer, changes, updates, command, output, trial, sealed };
        let outcome = settled.finish_trial(fate, Some(note), end, cx);
        if is_kept { with_diff(outcome, diff) } else { mark_failed(outcome) }
    }

    /// The result, when nothing is open any more.
    fn finish_trial(
        self,
        fate: LayerDecision,
        note: Option<String>,
        end: TrialEnd,
        cx: &ToolCx,
    ) -> ToolOutcome {
        let Self { trials, layer, command, output, trial, .. } = self;
        let Output { ending, mut text, built } = output;
        let lasts = trial == Trial::Discard;
        let stayed = trials.return_layer(layer, if lasts { LayerDecision::Lasts } else { fate });
        let there: Vec<_> =
            built.into_iter().filter(|path| lasts || stayed.contains(path)).collect();
        add_line(
            &mut text,
            &trial_facts::describe_built(&trials.filter_unreported(there), &cx.roots),
        );
        add_line(&mut text, &note.unwrap_or_default());
        report_trial(command_outcome(command, ending, text, Some("")), end)
    }
}

/// Saves changes in the workspace, without the rest.
fn save_changes(
    layer: &mut Layer,
    changes: &Changes,
    rest: &Changes,
    updates: Changes,
) -> Result<(), KeepError> {
    let mut left: BTreeSet<_> =
        gnoma_core::sort::to_set(rest.list.iter().map(|it| it.path().to_owned()));
    if !rest.is_empty() {
        // Build output was made of what is discarded as well.
        left.extend(updates.list.iter().map(|it| it.path().to_owned()));
    }
    let all = chosen_changes::merge_changes(
        chosen_changes::merge_changes(changes.clone(), rest.clone()),
        updates,
    );
    layer.apply_changes(&all, &|change| !left.contains(change.path()))
}

/// Adds the changes that were saved to the outcome of a command.
fn with_diff(outcome: ToolOutcome, diff: String) -> ToolOutcome {
    match outcome {
        ToolOutcome::Done(output) => ToolOutcome::Done(ToolOutput { diff: Some(diff), ..output }),
        ToolOutcome::Failed(output) => {
            ToolOutcome::Failed(ToolOutput { diff: Some(diff), ..output })
        }
        other @ (ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_)) => other,
    }
}

/// The outcome of a command whose changes were not kept.
fn mark_failed(outcome: ToolOutcome) -> ToolOutcome {
    match outcome {
        ToolOutcome::Done(output) => ToolOutcome::Failed(output),
        other @ (ToolOutcome::Failed(_) | ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_)) => {
            other
        }
    }
}

/// Reports what happened to the changes of the command. A person has been asked whether it may run outside, where that
/// could help.
pub(super) fn report_trial(mut outcome: ToolOutcome, end: TrialEnd) -> ToolOutcome {
    if let ToolOutcome::Done(output) | ToolOutcome::Failed(output) = &mut outcome
        && let Some(report) = &mut output.report
    {
        report.walled = None;
        report.trial = Some(end);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_report_says_whether_changes_were_saved() {
        for (code, end) in [(0, TrialEnd::Kept), (7, TrialEnd::NotKept)] {
            let outcome =
                command_outcome("make".into(), ShellEnd::Code(code), "out".into(), Some(""));
            let (ToolOutcome::Done(output) | ToolOutcome::Failed(output)) =
                report_trial(outcome, end)
            else {
                panic!("it has run")
            };
            let report = output.report.unwrap();
            assert_eq!((report.exit_code, report.trial), (Some(code), Some(end)));
        }
    }
}
