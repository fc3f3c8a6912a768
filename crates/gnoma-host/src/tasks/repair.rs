//! Proposes a change of a task whose last runs failed at the same step.

use std::{fs, time::Instant};

use gnoma_core::diff::unified_diff;
use gnoma_extend::tasks::{RunRecord, commands_run_instead, digest_message, propose_repair};

use super::{
    catalog::Tasks,
    draft::DraftedTask,
    history::{REPEATED_FAILURES, repeated_failure, run_store},
    past_log::read_history,
};
use crate::{HostError, Project, Result};

/// Lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// Drafts a change of a task whose last three runs failed at the same step: what the person did instead, or the parts of
/// the step as steps of their own.
///
/// # Errors
/// There is no such task, its runs did not fail at the same step, or nothing can be proposed.
pub async fn draft_repair(project: &Project, name: &str) -> Result<DraftedTask> {
    let tasks = Tasks::find(project);
    let file = tasks.file(name)?;
    let runs = run_store(project).map(|store| store.runs(Some(name))).unwrap_or_default();
    let edit = || Some(format!("`gnoma task edit {name}` opens it in your editor"));
    let (number, title, _) = repeated_failure(&runs).ok_or_else(|| {
        let cause =
            format!("the last {REPEATED_FAILURES} runs of {name} did not fail at the same step");
        HostError { remedy: edit(), ..HostError::usage(cause) }
    })?;
    let before = fs::read_to_string(&file.path)
        .map_err(|error| HostError::failure(format!("cannot read the task {name}: {error}")))?;
    let history = read_history(project).await?;
    let turns_of = |run: &RunRecord| history.iter().find(|it| it.id == run.session);
    let instead = runs.iter().take(REPEATED_FAILURES).find_map(|run| {
        let is_of_step = |digest: &str| run.messages.iter().any(|(_, known)| known == digest);
        let commands = commands_run_instead(&turns_of(run)?.turns, |turn| {
            is_of_step(&digest_message(&project.firewall.redact_text(&turn.message)))
        });
        let redact = |command: &String| project.firewall.redact_text(command).into_owned();
        let commands: Vec<String> = commands.iter().map(redact).collect();
        (!commands.is_empty()).then_some((commands, run.arguments.clone()))
    });
    let (instead, values) = instead.unwrap_or_default();
    let text = propose_repair(name, &before, &title, &instead, &values).ok_or_else(|| {
        let cause = format!(
            "step {number} ({title}) of {name} has no parts that can be steps of their own, and nothing was run instead"
        );
        HostError { remedy: edit(), ..HostError::usage(cause) }
    })?;
    let shown = tasks.places().display_path(&file.path);
    let hunks = unified_diff(&before, &text, CONTEXT_LINES, None::<Instant>);
    let diff = format!("--- a/{shown}\n+++ b/{shown}\n{hunks}");
    let diff = project.firewall.redact_text(&diff).into_owned();
    let replaces = Some((file.path.clone(), before));
    Ok(DraftedTask { name: name.to_owned(), text, diff, replaces })
}
