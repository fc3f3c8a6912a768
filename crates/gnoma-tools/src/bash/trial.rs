//! Runs commands on trial: first in a view of the workspace where their changes have no effect yet. What they
//! changed is then a fact, and is discarded, kept, or shown in a question.

use std::{path::PathBuf, sync::Arc};

use gnoma_core::{CallId, ToolCx, ToolOutcome, session::TrialEnd, tool::Trial};
use gnoma_sandbox::{
    Overlay,
    layer::{Changes, Layer, known_difference},
};
use tokio::task::spawn_blocking;

use super::{
    FollowEnd, TimeLimit, Transcript,
    absent_names::names_said_absent,
    add_line, follow_process,
    process::{Process, ShellEnd},
    reading_commands,
    shared::ShellTools,
    stopped_outcome,
    trial_changes::ReadChanges,
    trial_facts,
    trial_limits::{self, TrialLimit},
    trial_outcome::{Output, TrialOutcome, report_trial},
    unreported_trials,
};
use crate::{
    bash::capture::Capture,
    trials::{LayerDecision, Trials},
    trials_error::LayerStartError,
};

/// A command that has run on trial.
struct TriedCommand {
    layer: Layer,
    ending: ShellEnd,
    text: String,
    /// The secret files that it tried to open, and all that it could not.
    tried: Vec<PathBuf>,
    /// What it tried to open of the names outside.
    outside: Vec<PathBuf>,
    missed_server: bool,
    sealed: Vec<PathBuf>,
}

/// The failure of a command that can only run on trial.
const NO_TRIAL: &str = "the command was not run: it needs a trial run, which is not possible";

impl ShellTools {
    /// Runs a command on trial, and settles what it changed.
    pub(super) async fn on_trial(
        &self,
        trial: Trial,
        command: String,
        limit: TimeLimit,
        call: CallId,
        cx: ToolCx,
    ) -> ToolOutcome {
        let Some(trials) = self.shell.trials() else {
            return ToolOutcome::failure_text(NO_TRIAL);
        };
        let stop = cx.stop.clone();
        let Some(_turn) = stop.run_until_cancelled(trials.wait_for_turn()).await else {
            return ToolOutcome::Interrupted(String::new());
        };
        let tried = match self.run_trial(&trials, &command, limit, &call, &cx).await {
            Ok(tried) => tried,
            Err(outcome) => return outcome,
        };
        let TriedCommand { layer, ending, mut text, tried, outside, missed_server, sealed } = tried;
        let (layer, read) = match read_changes(layer, &trials, trial, &cx.roots).await {
            Ok(read) => read,
            Err(outcome) => return outcome,
        };
        let ReadChanges { changes, updates, built } = read;
        let secrets = trial_limits::secrets_met(tried, &changes, &sealed, &cx.roots);
        let ended = (ending, text.as_str());
        let is_named = secrets.iter().any(|path| reading_commands::names_file(&command, path, &cx));
        let secrets_met = (secrets.as_slice(), is_named);
        let limit_met = TrialLimit::at_outside_names(trial, &outside)
            .or_else(|| TrialLimit::find(trial, &changes, ended, secrets_met, missed_server))
            .or_else(|| find_unseen_secrets(trial, &command, (&layer, &changes), &sealed, &cx));
        let met = known_difference(&text, ending.exit_code());
        add_line(&mut text, &trial_limits::note_of_secrets(&secrets, &cx.roots));
        add_line(&mut text, trial_limits::note_of_servers(missed_server));
        add_line(&mut text, &trial_limits::note_of_outside(&outside, &cx.roots));
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
        limit: TimeLimit,
        call: &CallId,
        cx: &ToolCx,
    ) -> Result<TriedCommand, ToolOutcome> {
        let Some(policy) = self.shell.policy_hiding_secrets_in_trial(cx) else {
            return Err(ToolOutcome::failure_text(NO_TRIAL));
        };
        let (layer, overlays) = begin_layers(trials, policy.beside.clone()).await?;
        let (sealed, known) = (policy.sealed_files(), policy.known_places(&cx.roots));
        let layers = overlays.iter().map(|overlay| overlay.upper.clone());
        let room = self.shell.session_room(cx).with_layers(layers).wait_until_full();
        let mut process = self
            .shell
            .start_on_trial(command, cx, policy, overlays)
            .map_err(|error| ToolOutcome::failure_text(error.to_string()))?;
        let mut transcript = Transcript::for_call(call.clone(), cx);
        let halt = tokio::select! {
            halt = follow_process(&mut process, &mut transcript, cx, limit.time) => halt,
            why = room => FollowEnd::NoRoom(why),
        };
        let ending = match halt {
            FollowEnd::Ended(ending) => ending,
            halt => {
                let outcome =
                    discard_stopped(&mut process, &mut transcript, halt, command, limit).await;
                trials.return_layer(layer, LayerDecision::Discarded);
                return Err(outcome);
            }
        };
        process.drain_output(|text| transcript.push(text)).await;
        let mut text = transcript.take_text();
        let tried = process.tried_files(&text, &cx.cwd);
        let mut outside = process.tried_outside();
        if outside.is_empty() {
            outside = names_said_absent(&text, (&cx.cwd, &cx.roots), &known);
        }
        add_sandbox_notes(&mut text, &process);
        let missed_server = process.has_missed_server();
        Ok(TriedCommand { layer, ending, text, tried, outside, missed_server, sealed })
    }
}

/// Adds what the model must know of a trial to make sense of what the command says.
fn add_sandbox_notes(text: &mut String, process: &Process) {
    add_line(text, trial_limits::note_of_left(process.has_left_running()));
    for note in trial_limits::notes_of_lists(process.partial_lists()) {
        add_line(text, note);
    }
}

/// Prepares the layers for a command that begins now.
async fn begin_layers(
    trials: &Arc<Trials>,
    beside: Vec<PathBuf>,
) -> Result<(Layer, Vec<Overlay>), ToolOutcome> {
    let trials = Arc::clone(trials);
    let begun = spawn_blocking(move || {
        let layer = trials.begin_layer()?;
        let mut overlays = layer.overlays();
        overlays.extend(trials.overlays_beside(&beside));
        Ok::<_, LayerStartError>((layer, overlays))
    });
    let failure = match begun.await {
        Ok(Ok(begun)) => return Ok(begun),
        Ok(Err(error)) => {
            format!("the command was not run, because it cannot run on trial: {error}")
        }
        Err(_) => "the trial could not begin".to_owned(),
    };
    Err(ToolOutcome::failure_text(failure))
}

/// Reads what a command changed in its layer.
async fn read_changes(
    layer: Layer,
    trials: &Arc<Trials>,
    trial: Trial,
    roots: &Arc<[PathBuf]>,
) -> Result<(Layer, ReadChanges), ToolOutcome> {
    let (trials, roots) = (Arc::clone(trials), Arc::clone(roots));
    let read = spawn_blocking(move || {
        let read = ReadChanges::from_layer(&layer, &trials, trial, &roots);
        (layer, read)
    });
    let failure = match read.await {
        Ok((layer, Ok(read))) => return Ok((layer, read)),
        Ok((_, Err(error))) => format!("its changes were discarded: {error}"),
        Err(_) => "its changes could not be read, and were discarded".to_owned(),
    };
    Err(ToolOutcome::failure_text(failure))
}

/// Finds secret files that a command may have met where the sandbox does not report it.
fn find_unseen_secrets(
    trial: Trial,
    command: &str,
    made: (&Layer, &Changes),
    sealed: &[PathBuf],
    cx: &ToolCx,
) -> Option<TrialLimit> {
    if trial == Trial::Discard || gnoma_sandbox::reports_tried_files() {
        return None;
    }
    let files = unreported_trials::possibly_met(command, &cx.cwd, made, sealed, &cx.roots);
    (!files.is_empty()).then_some(TrialLimit::UnseenSecrets(files))
}

/// Returns the outcome of a call whose command was stopped. None of its changes are saved.
async fn discard_stopped(
    process: &mut Process,
    transcript: &mut Transcript,
    halt: FollowEnd,
    command: &str,
    limit: TimeLimit,
) -> ToolOutcome {
    process.terminate(|text| transcript.push(text)).await;
    let mut text = Capture::truncate_text(transcript.take_text());
    add_line(&mut text, "[ran on trial; what it changed was discarded]");
    let outcome = stopped_outcome(&halt, command.to_owned(), limit, text);
    report_trial(outcome, TrialEnd::NotKept)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn one_command_is_on_trial_at_a_time() {
        let trials = Trials::new(PathBuf::new(), Vec::new(), Vec::new());
        let first = trials.wait_for_turn().await;
        let moment = std::time::Duration::from_millis(20);
        assert!(timeout(moment, trials.wait_for_turn()).await.is_err());
        drop(first);
        assert!(timeout(moment, trials.wait_for_turn()).await.is_ok());
    }
}
