//! Runs commands on trial: first in a view of the workspace where their changes have no effect yet. What they
//! changed is then a fact, and is discarded, kept, or shown in a question.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    CallId, ToolCx, ToolOutcome,
    session::{PermissionAnswer, TrialEnd},
    tool::{Question, ToolOutput, Trial},
};
use gnoma_sandbox::{
    Overlay,
    layer::{Changes, Layer, LayerChange, known_difference},
};
use tokio::task::spawn_blocking;

use super::{
    FollowEnd, Transcript, add_line, chosen_changes, command_outcome, follow_process,
    process::{Process, ShellEnd},
    reading_commands,
    shared::ShellTools,
    stopped_outcome,
    trial_changes::ReadChanges,
    trial_facts::{self, ChangeDecision},
    trial_limits::{self, TrialLimit},
    trial_question::{ChangeFacts, ChangeQuestion},
    unreported_trials,
};
use crate::{
    bash::capture::Capture,
    trials::{LayerDecision, Trials},
};

/// A command that has run on trial.
struct TriedCommand {
    layer: Layer,
    ending: ShellEnd,
    text: String,
    /// The secret files that it tried to open, and all that it could not.
    tried: Vec<PathBuf>,
    missed_server: bool,
    sealed: Vec<PathBuf>,
}

/// The reason why a trial has no changes to settle.
enum TrialExit {
    /// The outcome of the call.
    Over(ToolOutcome),
}

impl ShellTools {
    /// Runs a command on trial, and settles what it changed.
    pub(super) async fn on_trial(
        &self,
        trial: Trial,
        command: String,
        limit: Duration,
        call: CallId,
        cx: ToolCx,
    ) -> ToolOutcome {
        let Some(trials) = self.shell.trials() else {
            return ToolOutcome::failure_text(
                "the command was not run: it needs a trial run, which is not possible",
            );
        };
        let tried = match self.run_trial(&trials, &command, limit, &call, &cx).await {
            Ok(tried) => tried,
            Err(TrialExit::Over(outcome)) => return outcome,
        };
        let TriedCommand { layer, ending, mut text, tried, missed_server, sealed } = tried;
        let (reader, roots) = (Arc::clone(&trials), Arc::clone(&cx.roots));
        let read = spawn_blocking(move || {
            let read = ReadChanges::from_layer(&layer, &reader, trial, &roots);
            (layer, read)
        });
        let (layer, ReadChanges { changes, updates, built }) = match read.await {
            Ok((layer, Ok(read))) => (layer, read),
            Ok((_, Err(why))) => {
                return ToolOutcome::failure_text(format!("its changes were discarded: {why}"));
            }
            Err(_) => {
                return ToolOutcome::failure_text(
                    "its changes could not be read, and were discarded",
                );
            }
        };
        let secrets = trial_limits::secrets_met(tried, &changes, &sealed, &cx.roots);
        let ended = (ending, text.as_str());
        let is_named = secrets.iter().any(|path| reading_commands::names_file(&command, path, &cx));
        let secrets_met = (secrets.as_slice(), is_named);
        let limit_met = TrialLimit::find(trial, &changes, ended, secrets_met, missed_server);
        let limit_met = limit_met.or_else(|| {
            let made = (&layer, &changes);
            let is_unseen = trial != Trial::Discard && !gnoma_sandbox::reports_tried_files();
            let unseen = is_unseen.then(|| {
                unreported_trials::possibly_met(&command, &cx.cwd, made, &sealed, &cx.roots)
            });
            unseen.filter(|files| !files.is_empty()).map(TrialLimit::UnseenSecrets)
        });
        let met = known_difference(&text, ending.exit_code());
        add_line(&mut text, &trial_limits::note_of_secrets(&secrets, &cx.roots));
        add_line(&mut text, trial_limits::note_of_servers(missed_server));
        let fate = trial_facts::decide_fate(trial, &changes, met, &cx.roots, &trials.local);
        let output = Output { ending, text, built };
        let settling =
            TrialOutcome { trials, layer, changes, updates, command, output, trial, sealed };
        match limit_met {
            Some(met) => settling.settle_limit(met, fate, self, (limit, call, cx)).await,
            None => settling.apply_fate(fate, self, (limit, call, cx)).await,
        }
    }

    /// Runs a command in its layers until it ends, with all that it has started.
    async fn run_trial(
        &self,
        trials: &Arc<Trials>,
        command: &str,
        limit: Duration,
        call: &CallId,
        cx: &ToolCx,
    ) -> Result<TriedCommand, TrialExit> {
        let over = |why: String| TrialExit::Over(ToolOutcome::failure_text(why));
        let Some(policy) = self.shell.policy_hiding_secrets_in_trial(cx) else {
            return Err(over(
                "the command was not run: it needs a trial run, which is not possible".into(),
            ));
        };
        let (begins, beside) = (Arc::clone(trials), policy.beside.clone());
        let begun = spawn_blocking(move || begin_layers(&begins, &beside)).await;
        let (layer, overlays) =
            begun.map_err(|_| over("the trial could not begin".to_owned()))?.map_err(|why| {
                over(format!("the command was not run, because it cannot run on trial: {why}"))
            })?;
        let sealed = policy.sealed_files();
        let layers = overlays.iter().map(|overlay| overlay.upper.clone());
        let room = self.shell.session_room(cx).with_layers(layers).wait_until_full();
        let mut process = self.shell.start_on_trial(command, cx, policy, overlays).map_err(over)?;
        let mut transcript = Transcript::for_call(call.clone(), cx);
        let halt = tokio::select! {
            halt = follow_process(&mut process, &mut transcript, cx, limit) => halt,
            why = room => FollowEnd::NoRoom(why),
        };
        let ending = match halt {
            FollowEnd::Ended(ending) => ending,
            halt => {
                let outcome =
                    discard_stopped(&mut process, &mut transcript, halt, command, limit).await;
                trials.return_layer(layer, LayerDecision::Discarded);
                return Err(TrialExit::Over(outcome));
            }
        };
        process.drain_output(|text| transcript.push(text)).await;
        let text = transcript.take_text();
        let tried = process.tried_files(&text);
        let missed_server = process.has_missed_server();
        Ok(TriedCommand { layer, ending, text, tried, missed_server, sealed })
    }
}

/// The layers for a command that begins now.
fn begin_layers(trials: &Trials, beside: &[PathBuf]) -> Result<(Layer, Vec<Overlay>), String> {
    let layer = trials.begin_layer()?;
    let mut overlays = layer.overlays();
    overlays.extend(trials.overlays_beside(beside));
    Ok((layer, overlays))
}

/// Returns the outcome of a call whose command was stopped. None of its changes are saved.
async fn discard_stopped(
    process: &mut Process,
    transcript: &mut Transcript,
    halt: FollowEnd,
    command: &str,
    limit: Duration,
) -> ToolOutcome {
    process.terminate(|text| transcript.push(text)).await;
    let mut text = Capture::truncate_text(transcript.take_text());
    add_line(&mut text, "[ran on trial; what it changed was discarded]");
    let outcome = stopped_outcome(&halt, command.to_owned(), limit, text);
    report_trial(outcome, TrialEnd::NotKept)
}

/// The output of a command and the way it ended.
struct Output {
    ending: ShellEnd,
    text: String,
    /// The build output of the command that stays in the layer.
    built: Vec<PathBuf>,
}

/// A command that has run, whose changes are to be settled.
struct TrialOutcome {
    trials: Arc<Trials>,
    layer: Layer,
    changes: Changes,
    updates: Changes,
    command: String,
    output: Output,
    trial: Trial,
    /// The secret files that the command could not open.
    sealed: Vec<PathBuf>,
}

impl TrialOutcome {
    /// Asks whether the command runs where what stopped it does not. Otherwise its changes are settled as always.
    async fn settle_limit(
        self,
        met: TrialLimit,
        fate: ChangeDecision,
        tools: &ShellTools,
        (limit, call, mut cx): (Duration, CallId, ToolCx),
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

    async fn apply_fate(
        self,
        fate: ChangeDecision,
        tools: &ShellTools,
        (limit, call, cx): (Duration, CallId, ToolCx),
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
            let mut left: BTreeSet<_> =
                gnoma_core::sort::to_set(rest.list.iter().map(|it| it.path().to_owned()));
            if !rest.is_empty() {
                // It was made of what is discarded as well.
                left.extend(updates.list.iter().map(|it| it.path().to_owned()));
            }
            let all = chosen_changes::merge_changes(
                chosen_changes::merge_changes(changes.clone(), rest.clone()),
                updates,
            );
            let is_wanted = |change: &LayerChange| !left.contains(change.path());
            let kept = layer.apply_changes(&all, &is_wanted).map_err(|error| error.to_string());
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
        match settled.finish_trial(fate, Some(note), end, cx) {
            ToolOutcome::Done(output) if is_kept => {
                ToolOutcome::Done(ToolOutput { diff: Some(diff), ..output })
            }
            ToolOutcome::Failed(output) if is_kept => {
                ToolOutcome::Failed(ToolOutput { diff: Some(diff), ..output })
            }
            outcome => mark_failed(outcome),
        }
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
fn report_trial(mut outcome: ToolOutcome, end: TrialEnd) -> ToolOutcome {
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
    fn report_says_what_happened_to_the_changes() {
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
